"""Kernels, computed in two steps so that a search over widths computes the first step once.

``pairs(X, Y)``
    independent of sigma: squared distances, city-block distances or inner products;
``values(pairs, sigma)``
    elementwise map from these to kernel values.

``KERNELS`` is the only list of the names that ``kernel=`` takes. A new kernel is a registered class with these two
methods::

    @register_kernel("cauchy")
    @dataclass(frozen=True)
    class Cauchy(Kernel):
        distance = True

        def pairs(self, X, Y):
            return squared_distances(X, Y)

        def values(self, pairs, sigma, out=None):
            return 1 / (1 + pairs / sigma**2)

Estimators, sums of kernels, error messages and model files read this list. Export to ONNX needs a converter
(:mod:`leastwise.onnx.registry`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy import sparse
from scipy.linalg import get_blas_funcs
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances

from leastwise.utils.arrays import (
    DeviceRows,
    get_namespace,
    is_finite,
    is_numpy,
    mapped,
    scalar,
    times,
    to_namespace,
    to_numpy,
)
from leastwise.utils.warn import warn_user

Array = np.ndarray


#: Products with up to this many entries are computed by NumPy, which does not keep Python's lock: blocks of kernels
#: are computed by several threads at a time.
SMALL_PRODUCT = 2**19


def inner_products(X: Any, Y: Any) -> Array:
    """``X @ Y.T`` as a dense array, for dense or sparse inputs.

    Large products use SciPy's BLAS, not NumPy's: a SciPy factorisation follows, and the thread pools of two BLAS
    libraries compete for the cores (see ``leastwise.linalg.decompositions``). Arrays of another library are
    multiplied by that library.
    """
    if not is_numpy(X):
        return X @ to_namespace(Y, X).T
    if sparse.issparse(X) or sparse.issparse(Y):
        product = X @ Y.T
        return product.toarray() if sparse.issparse(product) else np.asarray(product)
    if X.shape[0] * Y.shape[0] <= SMALL_PRODUCT:
        return X @ Y.T
    (gemm,) = get_blas_funcs(("gemm",), (X, Y))
    return gemm(1.0, Y.T, X.T, trans_a=1).T  # transposed: gemm is column-major


def squared_norms(X: Any) -> Array:
    """Squared Euclidean norm of every row."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel().astype(X.dtype, copy=False)
    if not is_numpy(X):
        return get_namespace(X).sum(X * X, axis=1)
    return np.einsum("ij,ij->i", X, X)


#: Distances of up to this many rows are computed without a matrix product.
FEW_ROWS = 2


def squared_distances(X: Any, Y: Any) -> Array:
    """Squared Euclidean distances between the rows of X and of Y.

    The mean of Y is subtracted from dense rows first: distances do not change, and data far from the origin lose no
    digits. All distances are then one matrix product: (-2x, |x|^2, 1) times (y, 1, |y|^2). For one row or two, the
    sums of squared differences take less time than these copies of Y.
    """
    same = X is Y
    if not is_numpy(X):
        return _foreign_squared_distances(X, to_namespace(Y, X))
    if sparse.issparse(X) or sparse.issparse(Y):
        D = inner_products(-2 * X, Y)
        D += squared_norms(Y)
        D += squared_norms(X)[:, None]
    elif 0 < X.shape[0] <= FEW_ROWS and not same:
        return np.array([squared_norms(Y - x) for x in X])
    else:
        middle = Y.mean(axis=0)
        Y = Y - middle
        X = Y if same else X - middle
        D = inner_products(_append_columns(-2 * X, squared_norms(X), 1), _append_columns(Y, 1, squared_norms(Y)))
    np.clip(D, D.dtype.type(0), D.dtype.type(np.inf), out=D)  # a third of the time of np.maximum(D, 0)
    if same:
        np.fill_diagonal(D, 0)
    return D


def _foreign_squared_distances(X: Any, Y: Any) -> Any:
    """Squared distances in another array library."""
    xp = get_namespace(X)
    middle = xp.mean(Y, axis=0, keepdims=True)
    X, Y = X - middle, Y - middle
    x, y = squared_norms(X)[:, None], squared_norms(Y)[:, None]
    left, right = xp.concat([-2 * X, x, xp.ones_like(x)], axis=1), xp.concat([Y, xp.ones_like(y), y], axis=1)
    return xp.clip(left @ right.T, 0, None)


def city_distances(X: Any, Y: Any) -> Any:
    """Sums of absolute differences between the rows of X and of Y."""
    if sparse.issparse(X) or sparse.issparse(Y):
        return manhattan_distances(X, Y).astype(X.dtype, copy=False)
    if is_numpy(X):
        return cdist(X, Y, "cityblock").astype(X.dtype, copy=False)
    xp, Y = get_namespace(X), to_namespace(Y, X)
    D = xp.zeros((X.shape[0], Y.shape[0]), dtype=X.dtype, device=X.device)
    for j in range(X.shape[1]):  # by columns, to avoid a three-dimensional array
        D += xp.abs(X[:, j, None] - Y[None, :, j])
    return D


def _append_columns(X: Array, first: Any, second: Any) -> Array:
    """X with two more columns."""
    wide = np.empty((X.shape[0], X.shape[1] + 2), dtype=X.dtype)
    wide[:, :-2], wide[:, -2], wide[:, -1] = X, first, second
    return wide


def check_symmetric(K: Any, what: str) -> None:
    """Raise an error if a kernel matrix of rows with themselves is not symmetric."""
    A = K.toarray() if sparse.issparse(K) else K
    eps = np.finfo(A.dtype).eps if np.issubdtype(A.dtype, np.floating) else 0
    if np.abs(A - A.T).max(initial=0) > 1e3 * eps * np.abs(A).max(initial=0):
        raise ValueError(f"{what} is not symmetric; the kernel matrix of rows with themselves must be symmetric.")


@dataclass(frozen=True)
class Kernel:
    """A kernel function.

    ``has_sigma`` is True if there is a width, ``definite`` if Gram matrices are positive semi-definite (None:
    unknown), ``distance`` if the kernel is a function of a distance.
    """

    has_sigma: ClassVar[bool] = True
    definite: ClassVar[bool | None] = True
    distance: ClassVar[bool] = False
    file_fields: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def from_parameters(cls, degree: Any, coef0: Any) -> Kernel:
        """The kernel with the parameters of an estimator; raises an error for invalid values."""
        return cls()

    @property
    def summand(self) -> Kernel | None:
        """The kernel as a part of a sum; None if unsupported. Kernels of a distance are bounded and supported."""
        return self if self.distance else None

    def pairs(self, X: Any, Y: Any) -> Array:
        """The part that does not depend on sigma, of shape (rows of X, rows of Y)."""
        return inner_products(X, Y)

    def values(self, pairs: Array, sigma: float, out: Array | None = None) -> Array:
        """The kernel from ``pairs``; ``out`` may be ``pairs`` itself."""
        raise TypeError(f"{type(self).__name__} must implement values(pairs, sigma)")

    def length(self, pairs: Array, norms: Array) -> float:
        """The length scale of these data, the unit of the sigma grid."""
        return float(np.sqrt(np.mean(norms)))

    def distances(self, pairs: Array) -> Array:
        """Distances from pairs, for kernels of a distance."""
        return pairs

    def fitted(self, X: Any, w: Array | None = None) -> Kernel:
        """The kernel with its statistics of the training rows and their weights, such as their mean."""
        return self

    @property
    def ruler(self) -> Kernel:
        """The part that has the width."""
        return self

    @property
    def layers(self) -> int:
        """Number of values that ``pairs`` has for each pair of rows."""
        return 1

    def __call__(self, X: Any, Y: Any, sigma: float) -> Array:
        """The kernel matrix between the rows of X and of Y."""
        pairs = self.pairs(X, Y)
        return self.values(pairs, sigma, out=pairs)


KernelClass = TypeVar("KernelClass", bound=type[Kernel])

#: The kernels by name.
KERNELS: dict[str, type[Kernel]] = {}


def register_kernel(name: str, fields: Mapping[str, Any] | None = None) -> Callable[[KernelClass], KernelClass]:
    """Decorator that registers a kernel class under a name, replacing an earlier one.

    ``fields`` declares the values that its fields take in model files (:mod:`leastwise.persistence.fields`); plain
    booleans, integers, floats and strings need no declaration.
    """

    def add(cls: KernelClass) -> KernelClass:
        KERNELS[name] = cls
        cls.file_fields = dict(fields or {})
        return cls

    return add


@register_kernel("rbf")
@dataclass(frozen=True)
class RBF(Kernel):
    """Gaussian kernel, eq. (6): exp(-||x - x'||^2 / (2 sigma^2))."""

    distance: ClassVar[bool] = True

    def pairs(self, X: Any, Y: Any) -> Array:
        return squared_distances(X, Y)

    def values(self, pairs: Array, sigma: float, out: Array | None = None) -> Array:
        out = times(pairs, -0.5 / sigma**2, out)
        return mapped("exp", out, out)

    def length(self, pairs: Array, norms: Array) -> float:
        return float(np.sqrt(np.median(pairs)))

    def distances(self, pairs: Array) -> Array:
        return get_namespace(pairs).sqrt(pairs)


@register_kernel("laplace")
@dataclass(frozen=True)
class Laplace(Kernel):
    """Laplace kernel: exp(-||x - x'||_1 / sigma)."""

    distance: ClassVar[bool] = True

    def pairs(self, X: Any, Y: Any) -> Array:
        return city_distances(X, Y)

    def values(self, pairs: Array, sigma: float, out: Array | None = None) -> Array:
        out = times(pairs, -1.0 / sigma, out)
        return mapped("exp", out, out)

    def length(self, pairs: Array, norms: Array) -> float:
        return float(np.median(pairs))


@register_kernel("linear")
@dataclass(frozen=True)
class Linear(Kernel):
    """Linear kernel: x'x'. It has no width."""

    has_sigma: ClassVar[bool] = False

    @property
    def summand(self) -> Kernel | None:
        return Scaled()

    def directions(self, d: int, dtype: Any) -> Array:
        """Rows (d x d) whose kernels with x are the coordinates of x, up to a factor and a shift."""
        return np.eye(d, dtype=dtype)

    def values(self, pairs: Array, sigma: float, out: Array | None = None) -> Array:
        return pairs if out is pairs else np.array(pairs)


@dataclass(frozen=True, eq=False)
class Scaled(Linear):
    """The linear kernel as a part of a sum: centred at the mean of the training rows, with a mean k(x, x) of 1.

    Sparse rows are not centred.
    """

    origin: Array | None = None
    height: float = 1.0

    def pairs(self, X: Any, Y: Any) -> Array:
        if self.origin is not None:
            rows = self._centred(X)
            X, Y = rows, rows if X is Y else self._centred(to_namespace(Y, X))
        return inner_products(X, Y) / scalar(self.height, X)

    def _centred(self, X: Any) -> Array:
        """Rows without the mean of the training rows; sparse ones become dense."""
        X = X.toarray() if sparse.issparse(X) else X
        return X - to_namespace(self.origin, X)

    def directions(self, d: int, dtype: Any) -> Array:
        shift = 0 if self.origin is None else self.origin
        return (np.eye(d) + shift).astype(dtype)

    def fitted(self, X: Any, w: Array | None = None) -> Kernel:
        if isinstance(X, DeviceRows):
            return self._fitted_on_device(X, w)
        origin = None if sparse.issparse(X) else np.average(X, axis=0, weights=w).astype(X.dtype)
        height = float(np.average(squared_norms(X if origin is None else X - origin), weights=w))
        return Scaled(origin, height if height > 0 else 1.0)

    def _fitted_on_device(self, rows: DeviceRows, w: Array | None) -> Kernel:
        """The same for rows on another device, which are not copied."""
        w = np.ones(rows.shape[0]) if w is None else w
        share = to_namespace(w / w.sum(), rows.there)
        origin = share @ rows.there
        height = float(share @ squared_norms(rows.there - origin))
        return Scaled(to_numpy(origin), height if height > 0 else 1.0)


@register_kernel("poly")
@dataclass(frozen=True)
class Poly(Kernel):
    """Polynomial kernel: (x'x' / sigma^2 + coef0)^degree."""

    degree: int = 3
    coef0: float = 1.0

    @classmethod
    def from_parameters(cls, degree: Any, coef0: Any) -> Kernel:
        if not isinstance(degree, Real) or not float(degree).is_integer() or degree < 1:
            raise ValueError(f"degree={degree!r} must be an integer of 1 or more.")
        return cls(degree=int(float(degree)), coef0=coef0)

    def values(self, pairs: Array, sigma: float, out: Array | None = None) -> Array:
        with np.errstate(over="ignore"):  # callers check that values are finite
            out = times(pairs, 1 / sigma**2, out)
            out += scalar(self.coef0, out)
            return np.power(out, self.degree, out=out) if is_numpy(out) else out**self.degree


@register_kernel("sigmoid")
@dataclass(frozen=True)
class Sigmoid(Kernel):
    """Sigmoid kernel: tanh(x'x' / sigma^2 + coef0). Not positive definite."""

    definite: ClassVar[bool | None] = False
    coef0: float = 1.0

    @classmethod
    def from_parameters(cls, degree: Any, coef0: Any) -> Kernel:
        warn_user(
            "The sigmoid kernel is not positive definite: a penalty on the function needs a correction, which is "
            "reported in jitter_. norm='coefficients' of LSPC needs none."
        )
        return cls(coef0=coef0)

    def values(self, pairs: Array, sigma: float, out: Array | None = None) -> Array:
        out = times(pairs, 1 / sigma**2, out)
        out += scalar(self.coef0, out)
        return mapped("tanh", out, out)


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """A user-supplied function of two arrays of rows. It has no width."""

    has_sigma: ClassVar[bool] = False
    definite: ClassVar[bool | None] = None
    function: Callable[[Any, Any], Any] = inner_products

    def pairs(self, X: Any, Y: Any) -> Array:
        K = np.asarray(self.function(X, Y)) if is_numpy(X) else self._call_foreign(X, to_namespace(Y, X))
        wanted = (X.shape[0], Y.shape[0])
        if tuple(K.shape) != wanted:
            raise ValueError(
                f"The kernel function returned an array of shape {tuple(K.shape)}; for inputs of {wanted[0]} and "
                f"{wanted[1]} rows it must return shape {wanted}."
            )
        if is_numpy(K) and K.dtype.kind not in "fiub":
            raise ValueError(f"The kernel function returned values of type {K.dtype}; they must be real numbers.")
        if not is_finite(K):
            raise ValueError("The kernel function returned values that are not finite numbers (NaN or inf).")
        if not is_numpy(K):
            return K
        if X is Y:
            check_symmetric(K, "The kernel function returned a matrix that")
        return np.array(K, dtype=X.dtype)  # a copy: the function may keep a reference to its result

    def _call_foreign(self, X: Any, Y: Any) -> Any:
        """The kernel of rows of another array library, in the dtype of the rows."""
        K = self.function(X, Y)
        return (
            to_namespace(np.asarray(K), X)
            if isinstance(K, list) or is_numpy(K)
            else get_namespace(X).asarray(K, dtype=X.dtype)
        )

    def values(self, pairs: Array, sigma: float, out: Array | None = None) -> Array:
        return pairs if out is pairs else np.array(pairs)


@register_kernel("precomputed")
@dataclass(frozen=True)
class Precomputed(Kernel):
    """The input is the kernel matrix. It has no width."""

    has_sigma: ClassVar[bool] = False
    definite: ClassVar[bool | None] = None

    def pairs(self, X: Any, Y: Any) -> Array:
        return X

    def values(self, pairs: Array, sigma: float, out: Array | None = None) -> Array:
        return np.array(pairs)


@dataclass(frozen=True)
class Sum(Kernel):
    """A sum of kernels with a common width: ``sum_p weight_p k_p``; the last axis of ``pairs`` is the parts."""

    parts: tuple[Kernel, ...] = ()
    weights: tuple[float, ...] = ()

    @property
    def ruler(self) -> Kernel:
        return next(part for part in self.parts if part.has_sigma)

    def fitted(self, X: Any, w: Array | None = None) -> Kernel:
        return replace(self, parts=tuple(part.fitted(X, w) for part in self.parts))

    @property
    def weight(self) -> float | None:
        """Weight of the linear part relative to the others; None without a linear part."""
        linear = [w for part, w in zip(self.parts, self.weights, strict=True) if isinstance(part, Linear)]
        rest = [w for part, w in zip(self.parts, self.weights, strict=True) if not isinstance(part, Linear)]
        return (linear[0] if rest[0] else np.inf) if linear else None

    @property
    def layers(self) -> int:
        return len(self.parts)

    def with_linear_weight(self, weight: float) -> Sum:
        """The sum with this weight of its linear part; infinity means the linear part alone."""
        rest, linear = (0.0, 1.0) if np.isinf(weight) else (1.0, float(weight))
        return replace(self, weights=tuple(linear if isinstance(p, Linear) else rest for p in self.parts))

    def pairs(self, X: Any, Y: Any) -> Array:
        pairs = [part.pairs(X, Y) for part in self.parts]
        if not is_numpy(pairs[0]):
            return get_namespace(X).stack(pairs, axis=-1)
        return np.moveaxis(np.stack(pairs), 0, -1)  # each part is contiguous, for many sigmas

    def values(self, pairs: Array, sigma: float, out: Array | None = None) -> Array:
        if not is_numpy(pairs):
            return self._foreign_values(pairs, sigma)
        K = np.zeros(pairs.shape[:-1], dtype=pairs.dtype)
        for p, (part, weight) in enumerate(zip(self.parts, self.weights, strict=True)):
            if weight:
                K += pairs.dtype.type(weight) * part.values(np.ascontiguousarray(pairs[..., p]), sigma)
        return K

    def _foreign_values(self, pairs: Any, sigma: float) -> Any:
        layers = [pairs[..., p] for p in range(len(self.parts))]
        used = [each for each in zip(self.parts, self.weights, layers, strict=True) if each[1]]
        return sum(weight * part.values(layer, sigma, layer) for part, weight, layer in used)


def resolve_kernel(kernel: str | Callable, degree: int = 3, coef0: float = 1.0) -> Kernel:
    """The kernel for a name or a function.

    Parameters
    ----------
    kernel : str or callable
        A key of ``KERNELS``, a sum such as "rbf+linear", or a function ``f(X, Y)`` that returns an array of shape
        (rows of X, rows of Y).
    degree, coef0 : number
        Shape of ``"poly"`` and (coef0) ``"sigmoid"``.
    """
    if callable(kernel):
        return CallableKernel(function=kernel)
    if not isinstance(coef0, Real) or not np.isfinite(float(coef0)):
        raise ValueError(f"coef0={coef0!r} must be a finite number.")
    if isinstance(kernel, str) and "+" in kernel:
        return _sum_of([name.strip() for name in kernel.split("+")])
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise ValueError(
            f"Unknown kernel {kernel!r}: use one of {sorted(KERNELS)}, a sum such as 'rbf+linear', or a function of "
            "two arrays."
        )
    return KERNELS[kernel].from_parameters(degree, coef0)


def _sum_of(names: list[str]) -> Sum:
    """The kernel for a sum such as "rbf+linear"."""
    summands = {name: part for name, cls in KERNELS.items() if (part := cls().summand) is not None}
    if len(set(names)) < len(names) or not set(names) <= set(summands) or set(names) == {"linear"}:
        raise ValueError(
            f"kernel={'+'.join(names)!r}: the parts of a sum must be different kernels out of "
            f"{sorted(summands)}, such as 'rbf+linear'."
        )
    return Sum(tuple(summands[name] for name in names), (1.0,) * len(names))
