"""Which library an array belongs to: numpy, or another one that scikit-learn's array API dispatch lets in.

Inside of ``sklearn.config_context(array_api_dispatch=True)`` tensors of torch, and arrays of every library that keeps
to the array API standard, are not made into numpy's: validation hands them on, and the kernels, the product with the
coefficients and the calibration run where they lie. Models themselves are always of numpy; what they hold is moved to
the rows that they are asked about.

This is the only place that looks into scikit-learn's own tools for that, which are not public: where they are used
and no sooner, so that nothing else depends on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config

Array = np.ndarray


# ----------------------------------------------------------------- whose it is


def at_home(A: Any) -> bool:
    """Whether an array is numpy's, or a sparse matrix, as all are where nothing is dispatched."""
    return isinstance(A, np.ndarray | np.generic) or sparse.issparse(A)


def foreign(A: Any) -> bool:
    """Whether something that is not validated yet is an array of another library, and is to stay one."""
    return (
        bool(get_config()["array_api_dispatch"])
        and not at_home(A)
        and hasattr(A, "__dlpack__")
        and hasattr(A, "device")
    )


def library(A: Any) -> Any:
    """The namespace with the functions for an array; numpy itself for all that is at home."""
    if at_home(A):
        return np
    from sklearn.utils._array_api import get_namespace

    return get_namespace(A)[0]


def on_host(A: Any) -> bool:
    """Whether the numbers lie in the memory of the machine itself."""
    return at_home(A) or "cpu" in str(A.device).lower()


def numpy_dtype(A: Any) -> np.dtype:
    """The type of the numbers of an array, in numpy's words."""
    return np.dtype(_numpy_name(A.dtype))


def _numpy_name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


# ------------------------------------------------------------------ moving them


def here(A: Any) -> Any:
    """An array as numpy's; None and what is at home as it is."""
    if isinstance(A, Away):
        return here(A.there)
    if A is None or at_home(A):
        return A
    from sklearn.utils._array_api import _convert_to_numpy

    _check_dense(A)
    return _convert_to_numpy(A.detach() if hasattr(A, "detach") else A, library(A))


def bring(A: Any) -> Any:
    """The same for what is not validated yet: lists and frames, and tensors without dispatch, are left alone."""
    return here(A) if foreign(A) else A


def like(value: Any, A: Any) -> Any:
    """Numbers of numpy's in the library, on the device and of the type of A; as they are where A is at home."""
    if value is None or at_home(A) or not (at_home(value) or isinstance(value, float)):
        return value
    return _sent(value, A, A.dtype)


def numbers_like(index: Array, A: Any) -> Any:
    """Whole numbers of numpy's in the library and on the device of A."""
    return index if at_home(A) else _sent(index, A, library(A).int64)


def back_like(values: Any, A: Any) -> Any:
    """An answer in the library and on the device of A, of its own type; words stay where they are."""
    if at_home(A) or not isinstance(values, np.ndarray) or values.dtype.kind not in "biuf":
        return values
    single = values.dtype == np.float64 and len(float_dtypes(A)) == 1  # the device has no double precision
    return _sent(values.astype(np.float32) if single else values, A, None)


def _sent(value: Any, A: Any, dtype: Any) -> Any:
    dense = value.toarray() if sparse.issparse(value) else np.asarray(value)
    if dtype is not None:  # before it moves: not every device has double precision
        dense = dense.astype(_numpy_name(dtype), copy=False)
    if not dense.flags.writeable or any(stride < 0 for stride in dense.strides):  # torch shares memory, or refuses
        dense = dense.copy()
    return library(A).asarray(dense, dtype=dtype, device=A.device)


def float_dtypes(A: Any, dtype: Any = None) -> list:
    """What validation is told of the type of rows: that of the model for those at home, else what the device has."""
    if not foreign(A):
        return [np.float64, np.float32] if dtype is None else [dtype]
    _check_dense(A)
    known = library(A).__array_namespace_info__().dtypes(kind="real floating", device=A.device)
    return [known[name] for name in ("float64", "float32") if name in known]


def _check_dense(A: Any) -> None:
    """Tensors of torch may be sparse, which no other library knows how to read."""
    layout = str(getattr(A, "layout", ""))
    if "sparse" in layout:
        raise TypeError(
            f"A sparse tensor ({layout}) was given, and tensors have to be dense: give its to_dense(), or a matrix "
            "of scipy.sparse, which numpy and scipy compute with."
        )


def widest(A: Any) -> Any:
    """An array of floats in double precision, or the best that its device has."""
    if at_home(A):
        return A.astype(float, copy=False)
    return library(A).asarray(A, dtype=float_dtypes(A)[0])


def shows_bits(A: Any) -> bool:
    """Whether the bits of floats can be had as whole numbers, which the standard has no word for, and of doubles."""
    return hasattr(A, "view") and len(float_dtypes(A)) > 1


def bits_of(A: Any) -> Any:
    """The bits of double precision numbers, as whole numbers."""
    return A.view(library(A).int64)


def rows_at(A: Any, index: Array) -> Any:
    """Rows by number, in the library of A."""
    return A[index] if at_home(A) else library(A).take(A, numbers_like(index, A), axis=0)


# ------------------------------------------------------- arithmetic on either side


def scalar(value: float, A: Any) -> Any:
    """A number that does not change the type of an array it is combined with."""
    return A.dtype.type(value) if at_home(A) else float(value)


def times(A: Any, factor: float, out: Any = None) -> Any:
    """``factor * A``, into ``out``, which is A itself or new."""
    if at_home(A):
        return np.multiply(A, scalar(factor, A), out=out)
    if out is None:
        return A * factor
    out *= factor
    return out


def mapped(name: str, A: Any, out: Any = None) -> Any:
    """A function of one array by its name, such as "exp"; numpy's into ``out``."""
    return getattr(np, name)(A, out=out) if at_home(A) else getattr(library(A), name)(A)


def is_finite(A: Any) -> bool:
    """Whether all numbers are."""
    xp = library(A)
    return bool(xp.all(xp.isfinite(A)))


def largest(A: Any) -> float:
    """The largest absolute value; 0 of none."""
    if isinstance(A, Away):
        return largest(A.there)
    if at_home(A):
        return float(np.abs(A.data if sparse.issparse(A) else A).max(initial=0))
    xp = library(A)
    return float(xp.max(xp.abs(A)))


def softmax(A: Any) -> Any:
    """Exponentials of every row over their sum."""
    xp = library(A)
    E = xp.exp(A - xp.max(A, axis=1, keepdims=True))
    return E / xp.sum(E, axis=1, keepdims=True)


def spread_over(name: str, A: Any, starts: Array) -> Any:
    """Sums ("sum") or maxima ("max") over the columns of each part, at every column of the part.

    Part t has the columns ``starts[t] ... starts[t + 1] - 1``.
    """
    xp, widths = library(A), np.diff(starts)
    reduce = getattr(xp, name)
    if np.all(widths == 2):
        parts = [reduce(xp.stack([A[:, ::2], A[:, 1::2]], axis=-1), axis=-1)]
    else:
        ends = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        parts = [reduce(A[:, a:b], axis=1, keepdims=True) for a, b in ends]
    every = parts[0] if len(parts) == 1 else xp.concat(parts, axis=1)
    return xp.take(every, numbers_like(np.repeat(np.arange(len(widths)), widths), A), axis=1)


# -------------------------------------------------------------------- many rows


@dataclass(frozen=True, eq=False)
class Away:
    """Training rows that stay where they are: those that are asked for by number come over, as numpy's.

    Attributes
    ----------
    there : array of another library of shape (n, d)
    """

    there: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return tuple(self.there.shape)

    @property
    def dtype(self) -> np.dtype:
        """The type of the numbers, in numpy's words."""
        return numpy_dtype(self.there)

    def __getitem__(self, index: Any) -> Array:
        if isinstance(index, slice):
            return here(
                self.there[slice(*index.indices(self.shape[0])), ...]
            )  # an end beyond the end is not standard
        index = np.flatnonzero(index) if np.asarray(index).dtype == bool else np.asarray(index)
        return here(rows_at(self.there, index))

    def only(self, index: Array) -> Away:
        """Some of the rows, which stay there as well."""
        return Away(rows_at(self.there, index))
