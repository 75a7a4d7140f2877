"""Basis functions of a model, and its design matrix.

A basis consists of centres and blocks. A block assigns centres to classes:

* model (5), ``basis="full"``: one block, all centres for all classes;
* model (7), ``basis="class"``: one block per class, with the centres of that class only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.linalg.decompositions import Spectrum, design_spectrum, gram_spectrum, square_spectrum
from leastwise.linalg.moments import Whitening
from leastwise.problem.centers import Recipe, center_rows, cluster_centers, given_centers
from leastwise.problem.kernels import Kernel, Precomputed
from leastwise.utils.arrays import get_namespace, is_numpy, numbers_like, on_host, to_namespace, widest
from leastwise.utils.resources import block_bytes

Array = np.ndarray

#: Bytes of kernel values in memory at a time: they fit into the processor's cache, which was measured to be twice as
#: fast as blocks of 64 MB.
CHUNK = 2**22
#: Maximal bytes of a block if every block adds a (width x width) array to a sum.
SUM_CHUNK = 2**26
#: Below this many bytes the available memory is not checked.
LITTLE = 2**20
#: Factor by which blocks are smaller for array libraries that allocate memory for every operation.
SMALLER = 8


@dataclass(frozen=True)
class Block:
    """Basis functions ``columns`` of the classes ``classes``; ``own[i]`` is the one of row i, -1 for none."""

    columns: slice
    classes: slice
    own: Array | None


@dataclass(frozen=True)
class Basis:
    """All basis functions.

    Attributes
    ----------
    centers : array or sparse matrix of shape (b, d)
        The centres; None with a precomputed kernel, which only uses ``rows``.
    rows : ndarray of shape (b,) or None
        Training rows that are the centres; None for other centres.
    blocks : tuple of Block
    square : bool
        True if the centres are all rows in order, for all classes: the design is the kernel matrix.
    weighted : bool
        True if the penalty is on the coefficients of all rows. A row's weight then applies to its basis function too,
        so that repeating a row is equivalent to doubling its weight.
    """

    centers: Any
    rows: Array | None
    blocks: tuple[Block, ...]
    square: bool = False
    weighted: bool = False

    @property
    def n_functions(self) -> int:
        """Number of basis functions."""
        return self.blocks[-1].columns.stop if self.blocks else self.centers.shape[0]

    def pairs(self, kernel: Kernel, X: Any) -> Array:
        """Distances or inner products between rows and centres, from which the kernel is computed for any sigma."""
        if isinstance(kernel, Precomputed):
            return X if self.square else X[:, self.rows]
        return kernel.pairs(X, X if self.square else self.centers)


def make_basis(
    recipe: Recipe,
    X: Any,
    y: Array,
    w: Array,
    fold: Array,
    copy: Array,
    rng: np.random.Generator,
    n_outputs: int | None = None,
    task: Array | None = None,
) -> Basis:
    """Choose the centres.

    Centres that are rows are deleted when these rows are held out. The choice of the other centres does not change.

    Parameters
    ----------
    y : ndarray of int
        Class codes; every class occurs.
    w : ndarray
        Weights of the rows.
    fold, copy : ndarray of int
        Labels of rows held out together, and of equal rows.
    n_outputs : int, optional
        Number of target columns; by default the number of classes.
    task : ndarray of int, optional
        Task codes, for ``centers="task"``.
    """
    n, n_classes, all_rows = len(y), n_outputs or int(y.max()) + 1, np.arange(len(y))
    if recipe.kind == "class":
        members = [all_rows[y == k] for k in range(n_classes)]
        targets = [slice(k, k + 1) for k in range(n_classes)]
    else:
        members, targets = [all_rows], [slice(0, n_classes)]
    if not isinstance(recipe.centers, str):
        return given_basis(given_centers(recipe.centers, X.shape[1], X.dtype), n_classes)
    # A copy of a centre would only make the matrix singular.
    distinct = [m[np.sort(np.unique(copy[m], return_index=True)[1])] for m in members]
    count = recipe.n_centers
    if count is not None and recipe.centers == "kmeans":
        sizes = [min(count, len(d)) for d in distinct]
        parts = [cluster_centers(X[m], w[m], k, rng) for m, k in zip(members, sizes, strict=True)]
        return Basis(np.vstack(parts), None, _blocks(sizes, targets, [None] * len(parts)))
    every = count is None or count >= max(len(m) for m in members)
    if every and (recipe.kind == "full" or recipe.norm == "coefficients"):
        chosen, own = members, [_positions(m, n) for m in members]
    else:
        kind = task if recipe.centers == "task" else y
        weights = [np.bincount(copy[m], weights=w[m])[copy[d]] for m, d in zip(members, distinct, strict=True)]
        chosen = [center_rows(recipe, X, kind, v, d, rng) for v, d in zip(weights, distinct, strict=True)]
        own = [_owners(c, m, fold, copy, n) for c, m in zip(chosen, members, strict=True)]
    rows = np.concatenate(chosen)
    return Basis(
        None if isinstance(recipe.kernel, Precomputed) else X[rows],
        rows,
        _blocks([len(c) for c in chosen], targets, own),
        square=len(members) == 1 and np.array_equal(rows, all_rows),
        weighted=every and recipe.norm == "coefficients",
    )


def given_basis(C: Any, n_classes: int) -> Basis:
    """Basis with given centres, for all classes."""
    return Basis(C, None, _blocks([C.shape[0]], [slice(0, n_classes)], [None]))


def _blocks(sizes: list[int], targets: list[slice], own: list) -> tuple[Block, ...]:
    ends = np.cumsum([0, *sizes]).tolist()
    return tuple(Block(slice(ends[k], ends[k + 1]), t, own[k]) for k, t in enumerate(targets))


def _positions(rows: Array, n: int) -> Array:
    """Position of each of n rows in ``rows``; -1 if it is not there."""
    position = np.full(n, -1)
    position[rows] = np.arange(len(rows))
    return position


def _owners(centers: Array, members: Array, fold: Array, copy: Array, n: int) -> Array:
    """For every row the centre deleted when the row is held out: its own, unless a copy of it remains in training."""
    column = np.full(int(copy.max()) + 1, -1)
    column[copy[centers]] = np.arange(len(centers))
    own = np.full(n, -1)
    own[members] = column[copy[members]]
    owners = members[own[members] >= 0]
    lowest, highest = np.full(len(centers), fold.max()), np.zeros(len(centers), dtype=int)
    np.minimum.at(lowest, own[owners], fold[owners])
    np.maximum.at(highest, own[owners], fold[owners])
    own[owners[(lowest != highest)[own[owners]]]] = -1
    return own


def double_kernel(kernel: Kernel, X: Any, centers: Any, sigma: float) -> Array:
    """Kernel between rows and centres in double precision, or the best precision of their device."""
    wide = widest(X)
    return kernel(wide, wide if centers is X else widest(centers), sigma)


@dataclass(frozen=True)
class Design:
    """Kernel values and weights of one block, for the solvers.

    Attributes
    ----------
    K : ndarray of shape (n, r)
        Kernel between rows and the block's centres, whitened if ``whitening`` is not None.
    whitening : Whitening or None
        For the penalty on the function and a design that is not square: transformation that makes the penalty the
        identity. It is applied in double precision: rounding whitened features to single precision causes errors
        relative to each feature, rounding kernel values would cause errors relative to the largest.
    root : ndarray of shape (n,)
        Square roots of the rows' weights.
    column : ndarray of shape (b,) or None
        Square roots of the basis functions' weights; None if these are 1.
    square : bool
        True if the centres are the rows.
    function : bool
        True if the penalty is on the function.
    """

    K: Array
    whitening: Whitening | None
    root: Array
    column: Array | None
    square: bool
    function: bool

    @property
    def n_functions(self) -> int:
        """Number of basis functions."""
        return self.K.shape[1] if self.whitening is None else self.whitening.size

    @property
    def jitter(self) -> float:
        """Value added to the diagonal of the penalty."""
        return 0.0 if self.whitening is None else self.whitening.jitter

    @property
    def scaled(self) -> Array:
        """K with rows and columns multiplied by the square roots of their weights."""
        if self.square and self.function:
            columns: Array | None = self.root
        else:
            columns = self.column
        A = self.K if np.all(self.root == 1) else self.K * self.root[:, None]
        return A if columns is None or np.all(columns == 1) else A * columns

    def left(self, removed: Array) -> Array:
        """Features without the basis functions ``removed``: columns of K, or an orthonormal basis (r x k).

        With whitening, it spans the whitened coefficients for which the coefficients of ``removed`` are zero.
        """
        if self.whitening is None or not len(removed):
            return np.delete(np.arange(self.K.shape[1]), removed)
        Q = np.linalg.qr(self.whitening.unwhiten(np.eye(self.K.shape[1]))[removed].T, mode="complete")[0]
        return np.ascontiguousarray(Q[:, len(removed) :], dtype=self.K.dtype)

    def features(self, rows: Array, left: Array) -> Array:
        """Some rows of K, restricted to the remaining features."""
        return self.K[np.ix_(rows, left)] if left.ndim == 1 else self.K[rows] @ left

    def without(self, rows: Array, left: Array) -> Design:
        """The design without some rows, restricted to the remaining features."""
        stay = np.delete(np.arange(len(self.K)), rows)
        column = None if self.column is None else self.column[left]
        return replace(self, K=self.features(stay, left), whitening=None, root=self.root[stay], column=column)

    def spectrum(self) -> Spectrum:
        """Decomposition of the ridge problem; coefficients refer to the unscaled K."""
        if self.square:
            spectrum = gram_spectrum(self.scaled) if self.function else square_spectrum(self.scaled)
        else:
            spectrum = replace(design_spectrum(self.scaled), jitter=self.jitter)
        columns = self.root if self.square and self.function else self.column
        return spectrum if columns is None else replace(spectrum, V=columns[:, None] * spectrum.V)

    def function_spectrum(self) -> Spectrum:
        """The same with coefficients of the basis functions, for deletion formulas."""
        spectrum = self.spectrum()
        return spectrum if self.whitening is None else replace(spectrum, V=self.back(spectrum.V).astype(self.K.dtype))

    def back(self, A: Array) -> Array:
        """Coefficients of the basis functions from those of K; with whitening in double precision."""
        return A if self.whitening is None else self.whitening.unwhiten(A)


def block_design(basis: Basis, block: Block, K: Array, norm: str, root: Array) -> Design:
    """The design of one block from the kernel of all centres, without whitening."""
    part = K if basis.square else K[:, block.columns]
    column = root[basis.rows[block.columns]] if basis.weighted and basis.rows is not None else None
    return Design(part, None, root, column, basis.square, norm == "function")


def row_chunks(n: int, width: int, itemsize: int, least: int = 1) -> Iterator[slice]:
    """Slices of rows such that a (rows x width) array takes at most ``CHUNK`` bytes, or less if memory is short.

    If every slice has a fixed cost, at least ``least`` rows are taken, up to ``SUM_CHUNK`` bytes.
    """
    row = max(1, width * itemsize)
    most = max(CHUNK, min(least * row, SUM_CHUNK))
    step = n if n * row <= min(most, LITTLE) else max(1, block_bytes(most) // row)
    return (slice(start, min(start + step, n)) for start in range(0, n, max(step, 1)))


def chunks_there(X: Any, width: int) -> Iterator[slice]:
    """The same for rows of another array library, which allocates memory for every operation.

    On the host, small arrays are reused but large ones are requested from the system. A separate device waits for the
    host between chunks, so that they are as large as for numpy.
    """
    return row_chunks(X.shape[0], width, 8 * (SMALLER if on_host(X) else 1))


def evaluate(
    kernel: Kernel,
    sigma: float,
    X: Any,
    centers: Any,
    rows: Array | None,
    coef: Array,
    weigh: Callable[[Array, slice], Array] | None = None,
) -> tuple[Array, Array]:
    """``k(X, centres) @ coef`` by chunks of rows, in bounded memory.

    Also returns the distance from every row to its nearest centre for distance-based kernels, zeros for others.
    ``weigh(K, part)`` replaces the product if coefficients differ between rows; ``coef``, of shape (..., b, c), then
    only gives the sizes. Rows of another array library give results of that library and type.

    The kernel is computed in the precision of the coefficients, which is double if these are large and cancel; scores
    have the type of the rows.
    """
    if not is_numpy(X):
        return _evaluate_there(kernel, sigma, X, centers, rows, coef, weigh)
    dtype = np.result_type(X.dtype, coef.dtype)
    F = np.empty((X.shape[0], coef.shape[-1]), dtype=X.dtype)
    nearest = np.zeros(X.shape[0], dtype=X.dtype)
    if sparse.issparse(X):
        X = X.tocsr()
    centers = centers if centers is None else centers.astype(dtype, copy=False)
    for part in row_chunks(X.shape[0], max(coef.shape[-2], X.shape[1]), dtype.itemsize):
        if isinstance(kernel, Precomputed):
            K = X[part][:, rows]
            K = K.toarray() if sparse.issparse(K) else K
        else:
            pairs = kernel.pairs(X[part].astype(dtype, copy=False), centers)
            if kernel.distance:
                nearest[part] = kernel.distances(pairs.min(axis=1))
            with np.errstate(invalid="ignore", over="ignore"):
                K = kernel.values(pairs, sigma, out=pairs)
        with np.errstate(invalid="ignore", over="ignore"):
            F[part] = K @ coef if weigh is None else weigh(K, part)
    return F, nearest


def _evaluate_there(
    kernel: Kernel,
    sigma: float,
    X: Any,
    centers: Any,
    rows: Array | None,
    coef: Array,
    weigh: Callable[[Any, slice], Any] | None,
) -> tuple[Any, Any]:
    xp, kind = get_namespace(X), {"dtype": X.dtype, "device": X.device}
    F = xp.empty((X.shape[0], coef.shape[-1]), **kind)
    nearest = xp.zeros(X.shape[0], **kind)
    chosen = None if rows is None else numbers_like(rows, X)
    centers, theta = to_namespace(centers, X), None if weigh is not None else to_namespace(coef, X)
    for part in chunks_there(X, max(coef.shape[-2], X.shape[1])):
        if isinstance(kernel, Precomputed):
            K = xp.take(X[part, ...], chosen, axis=1)
        else:
            pairs = kernel.pairs(X[part, ...], centers)
            if kernel.distance:
                nearest[part] = kernel.distances(xp.min(pairs, axis=1))
            K = kernel.values(pairs, sigma, out=pairs)
        F[part, ...] = weigh(K, part) if weigh is not None else K @ theta
    return F, nearest
