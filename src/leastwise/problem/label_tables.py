"""Tables of labels of every kind, read column by column, without the values that are not known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

Array = np.ndarray


@dataclass(frozen=True)
class Table:
    """Labels as they were given.

    Attributes
    ----------
    columns : iterable of (ndarray, ndarray of bool)
        Of every label the values that are known, and which rows have them.
    names : tuple
    form : {"array", "sparse", "pandas", "polars"}
    dtypes : tuple
        Types of the columns, of the whole where there is one only.
    container : type, optional
        Kind of sparse matrix.
    """

    columns: Iterable[tuple[Array, Array]]
    names: tuple
    form: str
    dtypes: tuple
    container: Any = None

    def where(self, t: int) -> str:
        """How errors speak of a column."""
        return f"Column {self.names[t]!r} of Y"


def read_table(Y: Any, n: int, missing: Any) -> Table:
    """Labels of n rows; ``missing`` is a value that stands for unknown, beside NaN, None, NA and masks."""
    if Y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: give a table of labels, one column a label."
        )
    if hasattr(Y, "collect"):
        raise ValueError(f"Y is a {type(Y).__name__}, which holds no rows yet: give Y.collect().")
    Y = Y if hasattr(Y, "shape") else _array_of(Y)
    _check_shape(Y, n)
    missing = _check_missing(missing)
    if hasattr(Y, "iloc"):
        return _read_pandas(Y, missing)
    if hasattr(Y, "get_columns"):
        series = Y.get_columns()
        pairs = ((s.drop_nulls().to_numpy(), s.is_not_null().to_numpy()) for s in series)
        columns = (_narrow(values, known, missing) for values, known in pairs)
        return Table(columns, tuple(Y.columns), "polars", tuple(s.dtype for s in series))
    if sparse.issparse(Y):
        dense, form, container = Y.toarray(), "sparse", type(Y)
    else:
        dense, form, container = np.asarray(Y), "array", None  # of a masked array the data, hidden values included
    dense = dense.astype(object) if dense.dtype.kind == "T" else dense  # strings of any length
    everywhere = ~np.ma.getmaskarray(Y) if isinstance(Y, np.ma.MaskedArray) else np.ones(dense.shape, dtype=bool)
    columns = (_narrow(dense[k, t], k, missing) for t, k in enumerate(everywhere.T))
    return Table(columns, tuple(range(dense.shape[1])), form, (dense.dtype,), container)


def _read_pandas(Y: Any, missing: Any) -> Table:
    names = list(Y.columns)
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise ValueError(f"Y has several columns with the name {twice[0]!r}: give every label a name of its own.")
    parts = [Y.iloc[:, t] for t in range(len(names))]
    pairs = ((part, part.notna().to_numpy(dtype=bool)) for part in parts)
    columns = (_narrow(part[known].to_numpy(), known, missing) for part, known in pairs)
    return Table(columns, tuple(names), "pandas", tuple(part.dtype for part in parts))


def _array_of(Y: Any) -> Array:
    """Rows given as lists; objects where text and other things are mixed, so that NaN does not become text."""
    try:
        plain = np.asarray(Y)
    except ValueError:
        raise ValueError(
            "Y has rows of different lengths; it must be a table, one column a label. "
            "sklearn.preprocessing.MultiLabelBinarizer makes one of lists of labels."
        ) from None
    if plain.dtype.kind not in "US":
        return plain
    mixed = np.asarray(Y, dtype=object)
    return plain if all(isinstance(value, str | bytes) for value in mixed.ravel()) else mixed


def _check_shape(Y: Any, n: int) -> None:
    shape = tuple(Y.shape)
    if len(shape) != 2:
        flat = np.asarray(Y) if len(shape) == 1 and not sparse.issparse(Y) else np.empty(0)
        flat = flat[np.isfinite(flat)] if flat.dtype.kind == "f" else np.empty(0)
        quantity = bool((flat != np.floor(flat)).any())
        raise ValueError(
            f"Y has shape {shape}; it must be a table of shape (rows, labels), one column a label. For the classes "
            "of one label use LSPC, or give one column: y.reshape(-1, 1), y.to_frame() of a series. Lists of labels "
            "become a table by sklearn.preprocessing.MultiLabelBinarizer."
            + (" Besides, its values are continuous, and labels have classes." if quantity else "")
        )
    if shape[1] == 0:
        raise ValueError(f"Y has shape {shape}, no columns: give one column or more, each of them a label.")
    if shape[0] != n:
        raise ValueError(f"X has {n} rows and Y has {shape[0]}: give the labels of every row of X.")


def _check_missing(missing: Any) -> Any:
    """The value that stands for unknown, None where there is none beside those that always do."""
    if _absent(missing):
        return None
    if not isinstance(missing, Real | str | np.bool_):
        raise ValueError(f"missing={missing!r} must be NaN, or a number or string that stands for an unknown label.")
    return missing


# ------------------------------------------------------------------- columns


def _narrow(values: Array, known: Array, missing: Any) -> tuple[Array, Array]:
    """Without the values that stand for unknown; ``values`` are those of the rows that seemed known."""
    if values.dtype.kind == "O":
        keep = np.array([not (_absent(v) or _is(v, missing)) for v in values], dtype=bool)
    else:
        keep = values == values  # all but NaN
        if missing is not None and isinstance(missing, str) == (values.dtype.kind == "U"):
            keep = keep & (values != missing)
    if keep.all():
        return values, known
    known = known.copy()
    known[known] = keep
    return values[keep], known


def _absent(value: Any) -> bool:
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType")


def _is(value: Any, missing: Any) -> bool:
    return missing is not None and isinstance(value, Real | str | np.bool_) and bool(value == missing)
