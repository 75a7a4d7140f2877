"""Arrays of numpy, and of other libraries through scikit-learn's array API dispatch.

Inside ``sklearn.config_context(array_api_dispatch=True)``, torch tensors and arrays of every library that follows the
array API standard are not converted to numpy: kernels, the product with the coefficients and the calibration run in
that library, on its device. Fitted models always consist of numpy arrays, which are moved to the device of the rows
to predict.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config

Array = np.ndarray


# ------------------------------------------------------ which library, which dtype


def is_numpy(A: Any) -> bool:
    """True for numpy arrays and sparse matrices."""
    return isinstance(A, np.ndarray | np.generic) or sparse.issparse(A)


def foreign(A: Any) -> bool:
    """True if unvalidated input is an array of another library and dispatch is enabled."""
    return (
        bool(get_config()["array_api_dispatch"])
        and not is_numpy(A)
        and hasattr(A, "__dlpack__")
        and hasattr(A, "device")
    )


def is_dask(A: Any) -> bool:
    """True for Dask collections; Dask is not imported for the check."""
    return type(A).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(A, "__dask_graph__")


def get_namespace(A: Any) -> Any:
    """The array API namespace of an array; numpy for numpy arrays and sparse matrices."""
    if is_numpy(A):
        return np
    if hasattr(A, "__array_namespace__"):
        return A.__array_namespace__()
    # Torch tensors follow the standard only through array-api-compat. Scikit-learn 1.7 and later ship a copy of it;
    # 1.6 needs the package for its own dispatch.
    copy = "array_api_compat" if find_spec("array_api_compat") else "sklearn.externals.array_api_compat"
    return import_module(copy).array_namespace(A)


def on_host(A: Any) -> bool:
    """True if the data are in the main memory."""
    return is_numpy(A) or "cpu" in str(A.device).lower()


def numpy_dtype(A: Any) -> np.dtype:
    """The numpy dtype that corresponds to the dtype of an array."""
    return np.dtype(_numpy_name(A.dtype))


def _numpy_name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


# -------------------------------------------------------------------- conversions


def to_numpy(A: Any) -> Any:
    """Convert to numpy; None, numpy arrays and sparse matrices are returned unchanged."""
    if isinstance(A, DeviceRows):
        return to_numpy(A.there)
    if A is None or is_numpy(A):
        return A
    _check_dense(A)
    if hasattr(A, "detach"):  # torch
        A = A.detach().cpu()
    elif not hasattr(A, "__dlpack__") or on_host(A):
        pass
    elif copy := getattr(A, "get", None) or getattr(A, "asnumpy", None):  # CuPy, dpnp
        A = copy()
    else:
        A = A.to_device(get_namespace(A).__array_namespace_info__().default_device())
    return np.asarray(A)


def bring(A: Any) -> Any:
    """Convert unvalidated input to numpy if it is an array to dispatch on; leave lists and frames unchanged."""
    return to_numpy(A) if foreign(A) else A


def text_objects(values: Any) -> Any:
    """Text in a list becomes an array of objects; NumPy would give every text the width of the longest."""
    listed = isinstance(values, list | tuple) and len(values) > 0
    return np.array(values, dtype=object) if listed and all(isinstance(v, str) for v in values) else values


def to_namespace(value: Any, A: Any) -> Any:
    """Convert numpy floats to the library, device and dtype of A; unchanged if A is a numpy array."""
    if value is None or is_numpy(A) or not (is_numpy(value) or isinstance(value, float)):
        return value
    return _sent(value, A, A.dtype)


def numbers_like(index: Array, A: Any) -> Any:
    """Convert a numpy integer array to the library and device of A."""
    return index if is_numpy(A) else _sent(index, A, get_namespace(A).int64)


def back_like(values: Any, A: Any) -> Any:
    """Convert a numeric result to the library and device of A, keeping its dtype; strings stay in numpy."""
    if is_numpy(A) or not isinstance(values, np.ndarray) or values.dtype.kind not in "biuf":
        return values
    single = values.dtype == np.float64 and len(float_dtypes(A)) == 1  # no double precision on the device
    return _sent(values.astype(np.float32) if single else values, A, None)


def _sent(value: Any, A: Any, dtype: Any) -> Any:
    dense = value.toarray() if sparse.issparse(value) else np.asarray(value)
    if dtype is not None:  # before the transfer: not every device has double precision
        dense = dense.astype(_numpy_name(dtype), copy=False)
    if not dense.flags.writeable or any(stride < 0 for stride in dense.strides):  # torch would share memory, or fail
        dense = dense.copy()
    return get_namespace(A).asarray(dense, dtype=dtype, device=A.device)


def float_dtypes(A: Any, dtype: Any = None) -> list:
    """Dtypes that validation accepts: that of the model for numpy, otherwise the float types of the device."""
    if not foreign(A):
        return [np.float64, np.float32] if dtype is None else [dtype]
    _check_dense(A)
    known = get_namespace(A).__array_namespace_info__().dtypes(kind="real floating", device=A.device)
    return [known[name] for name in ("float64", "float32") if name in known]


def _check_dense(A: Any) -> None:
    """Refuse sparse torch tensors."""
    layout = str(getattr(A, "layout", ""))
    if "sparse" in layout:
        raise TypeError(
            f"A sparse tensor ({layout}) was given, but tensors must be dense: give its to_dense(), or a "
            "scipy.sparse matrix."
        )


def in_precision(value: Any, dtype: Any) -> Any:
    """Numpy arrays of floats in this type, also those in dataclasses and tuples; anything else is unchanged."""
    if isinstance(value, np.ndarray):
        return value.astype(dtype, copy=False) if value.dtype.kind == "f" else value
    if isinstance(value, tuple):
        return tuple(in_precision(each, dtype) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: in_precision(getattr(value, f.name), dtype) for f in fields(value)})
    return value


def widest(A: Any) -> Any:
    """Convert to double precision, or to the widest float type of the device."""
    if is_numpy(A):
        return A.astype(float, copy=False)
    return get_namespace(A).asarray(A, dtype=float_dtypes(A)[0])


def rows_at(A: Any, index: Array) -> Any:
    """``A[index]`` in the library of A."""
    return A[index] if is_numpy(A) else get_namespace(A).take(A, numbers_like(index, A), axis=0)


# --------------------------------------------------- arithmetic in either library


def scalar(value: float, A: Any) -> Any:
    """A scalar that does not change the dtype of A in arithmetic."""
    return A.dtype.type(value) if is_numpy(A) else float(value)


def times(A: Any, factor: float, out: Any = None) -> Any:
    """``factor * A``, written to ``out``, which is A itself or None for a new array."""
    if is_numpy(A):
        return np.multiply(A, scalar(factor, A), out=out)
    if out is None:
        return A * factor
    out *= factor
    return out


def mapped(name: str, A: Any, out: Any = None) -> Any:
    """Apply a function by name, such as "exp"; ``out`` is used for numpy arrays."""
    return getattr(np, name)(A, out=out) if is_numpy(A) else getattr(get_namespace(A), name)(A)


def is_finite(A: Any) -> bool:
    """True if all entries are finite."""
    xp = get_namespace(A)
    return bool(xp.all(xp.isfinite(A)))


def largest(A: Any) -> float:
    """The largest absolute value; 0 for an empty array."""
    if isinstance(A, DeviceRows):
        return largest(A.there)
    if is_numpy(A):
        return float(np.abs(A.data if sparse.issparse(A) else A).max(initial=0))
    xp = get_namespace(A)
    return float(xp.max(xp.abs(A)))


def softmax(A: Any) -> Any:
    """Softmax of every row."""
    xp = get_namespace(A)
    E = xp.exp(A - xp.max(A, axis=1, keepdims=True))
    return E / xp.sum(E, axis=1, keepdims=True)


def spread_over(name: str, A: Any, starts: Array) -> Any:
    """Sums ("sum") or maxima ("max") over groups of columns, broadcast to every column of the group.

    Group t has the columns ``starts[t] ... starts[t + 1] - 1``.
    """
    xp, widths = get_namespace(A), np.diff(starts)
    reduce = getattr(xp, name)
    if np.all(widths == 2):
        parts = [reduce(xp.stack([A[:, ::2], A[:, 1::2]], axis=-1), axis=-1)]
    else:
        ends = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        parts = [reduce(A[:, a:b], axis=1, keepdims=True) for a, b in ends]
    every = parts[0] if len(parts) == 1 else xp.concat(parts, axis=1)
    return xp.take(every, numbers_like(np.repeat(np.arange(len(widths)), widths), A), axis=1)


# -------------------------------------------------------- rows on another device


@dataclass(frozen=True, eq=False)
class DeviceRows:
    """Training rows that stay in another library or device; indexing copies rows to numpy.

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
        """The corresponding numpy dtype."""
        return numpy_dtype(self.there)

    def __getitem__(self, index: Any) -> Array:
        if isinstance(index, slice):
            return to_numpy(
                self.there[slice(*index.indices(self.shape[0])), ...]
            )  # slices beyond the end are not standard
        index = np.flatnonzero(index) if np.asarray(index).dtype == bool else np.asarray(index)
        return to_numpy(rows_at(self.there, index))

    def only(self, index: Array) -> DeviceRows:
        """A subset of the rows, without copying them to numpy."""
        return DeviceRows(rows_at(self.there, index))
