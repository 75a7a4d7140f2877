"""The reader of label tables: arrays, lists of rows, sparse matrices, masked arrays, pandas and polars data frames.

``fit`` reads them column by column, metrics as one array (:meth:`Table.dense`). NaN, None, NA and masked entries are
unknown labels, and so is the value ``missing``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

Array = np.ndarray

#: Types of values, frequent ones first: every entry of a table of objects is checked.
PLAIN = (str, int, float, np.bool_, Real)


@dataclass(frozen=True)
class Table:
    """Labels as they were given.

    Attributes
    ----------
    columns : iterable of (ndarray, ndarray of bool)
        For every label the known values, and a mask of the rows that have them.
    names : tuple
    form : {"array", "sparse", "pandas", "polars"}
    dtypes : tuple
        Types of the columns; one entry for an array or sparse matrix.
    container : type, optional
        Class of a sparse matrix.
    name : str
        What error messages call the table.
    """

    columns: Iterable[tuple[Array, Array]]
    names: tuple
    form: str
    dtypes: tuple
    container: Any = None
    name: str = "Y"

    def where(self, t: int) -> str:
        """What error messages call a column."""
        return f"Column {self.names[t]!r} of {self.name}"

    def dense(self) -> tuple[Array, Array]:
        """Values of shape (n, T), and a mask of the known ones.

        Numbers if all known values are numbers, with NaN where one is unknown; objects otherwise, with None.
        """
        parts, masks = zip(*self.columns, strict=True)
        parts, known = tuple(_checked_values(values, self.name) for values in parts), np.column_stack(masks)
        if all(values.dtype.kind in "biuf" for values in parts):
            dtypes = {values.dtype for values in parts} | (set() if known.all() else {np.dtype(float)})
            table = np.full(known.shape, np.nan if not known.all() else 0, dtype=np.result_type(*dtypes))
        else:
            table = np.full(known.shape, None, dtype=object)
        for t, values in enumerate(parts):
            table[known[:, t], t] = values
        return table, known


class NamedLabels(np.ndarray):
    """An array of labels whose columns have names, as those of a data frame do."""

    names: tuple[str, ...] | None = None

    @staticmethod
    def of(Y: Array, names: Sequence[str]) -> NamedLabels:
        """The array with these names."""
        named = np.asarray(Y).view(NamedLabels)
        named.names = tuple(names)
        return named


def read_table(Y: Any, n: int | None, missing: Any, name: str = "Y") -> Table:
    """Read a table of labels.

    Parameters
    ----------
    Y : array, masked array, sparse matrix, data frame or list of rows, of shape (n, T)
    n : int or None
        The number of rows in ``fit``; None for metrics, which take any number of rows and repeated names.
    missing : number or str
        A value for unknown labels, in addition to NaN, None, NA and masks.
    name : str
        What error messages call the table.
    """
    if Y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: give a table of labels, one column per label."
        )
    if hasattr(Y, "collect"):
        raise ValueError(f"{name} is a {type(Y).__name__}, which holds no rows yet: give {name}.collect().")
    Y = Y if hasattr(Y, "shape") else _array_of(Y, name)
    _check_shape(Y, n, name)
    missing = _check_missing(missing)
    if hasattr(Y, "iloc"):
        return _read_pandas(Y, missing, name, unique_names=n is not None)
    if hasattr(Y, "get_columns"):
        series = Y.get_columns()
        pairs = ((s.drop_nulls().to_numpy(), s.is_not_null().to_numpy()) for s in series)
        columns = (_narrow(values, known, missing) for values, known in pairs)
        return Table(columns, tuple(Y.columns), "polars", tuple(s.dtype for s in series), name=name)
    if sparse.issparse(Y):
        dense, form, container = Y.toarray(), "sparse", type(Y)
    else:
        dense, form, container = np.asarray(Y), "array", None  # for a masked array the data with masked values
    dense = dense.astype(object) if dense.dtype.kind == "T" else dense  # strings of any length
    everywhere = ~np.ma.getmaskarray(Y) if isinstance(Y, np.ma.MaskedArray) else np.ones(dense.shape, dtype=bool)
    columns = (_narrow(dense[k, t], k, missing) for t, k in enumerate(everywhere.T))
    names = Y.names if isinstance(Y, NamedLabels) and Y.names is not None else tuple(range(dense.shape[1]))
    return Table(columns, names, form, (dense.dtype,), container, name)


def _read_pandas(Y: Any, missing: Any, name: str, unique_names: bool) -> Table:
    names = list(Y.columns)
    if unique_names:
        check_unique_names(names, name)
    parts = [Y.iloc[:, t] for t in range(len(names))]
    pairs = ((part, part.notna().to_numpy(dtype=bool)) for part in parts)
    columns = (_narrow(part[known].to_numpy(), known, missing) for part, known in pairs)
    return Table(columns, tuple(names), "pandas", tuple(part.dtype for part in parts), name=name)


def check_unique_names(names: Sequence[Any], name: str) -> None:
    """An error for repeated names of columns."""
    twice = next((x for x in names if names.count(x) > 1), None) if len({*names}) < len(names) else None
    if twice is not None:
        raise ValueError(f"{name} has several columns with the name {twice!r}: give every label a name of its own.")


def _array_of(Y: Any, name: str) -> Array:
    """An array from a list of rows; of objects if it has text, so that NaN stays NaN and text has no common width."""
    try:
        mixed = np.asarray(Y, dtype=object)
        plain = mixed if any(isinstance(value, str | bytes) for value in mixed.ravel()) else np.asarray(Y)
    except ValueError:
        raise ValueError(
            f"{name} has rows of different lengths; it must be a table of numbers or strings, one column per label. "
            "sklearn.preprocessing.MultiLabelBinarizer makes one from lists of labels."
        ) from None
    return plain


def _check_shape(Y: Any, n: int | None, name: str) -> None:
    shape = tuple(Y.shape)
    if n is None:
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"{name} has shape {shape}: give a table of rows, one column per label.")
        return
    if len(shape) != 2:
        flat = np.asarray(Y) if len(shape) == 1 and not sparse.issparse(Y) else np.empty(0)
        flat = flat[np.isfinite(flat)] if flat.dtype.kind == "f" else np.empty(0)
        quantity = bool((flat != np.floor(flat)).any())
        raise ValueError(
            f"{name} has shape {shape}; it must be a table of shape (rows, labels), one column per label. For the "
            "classes of one label use LSPC, or give one column: y.reshape(-1, 1), y.to_frame() for a series. Lists "
            "of labels become a table by sklearn.preprocessing.MultiLabelBinarizer."
            + (" Its values are also continuous, but labels have classes." if quantity else "")
        )
    if shape[1] == 0:
        raise ValueError(f"{name} has shape {shape}, no columns: give one column per label.")
    if shape[0] != n:
        raise ValueError(f"X has {n} rows and {name} has {shape[0]}: give the labels of every row of X.")


def _check_missing(missing: Any) -> Any:
    """The value for unknown labels; None if there is none besides NaN, None, NA and masks."""
    if _absent(missing):
        return None
    if not isinstance(missing, PLAIN):
        raise ValueError(f"missing={missing!r} must be NaN, or a number or string that marks unknown labels.")
    return missing


# ------------------------------------------------------------------- columns


def _narrow(values: Array, known: Array, missing: Any) -> tuple[Array, Array]:
    """Known values and their mask, without missing ones; ``values`` are those of the rows in the mask ``known``."""
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


def _checked_values(values: Array, name: str) -> Array:
    """Known values of a column for metrics; objects that are numbers become floats."""
    if values.dtype.kind == "O":
        listed = values.tolist()
        unseen = next((v for v in listed if not isinstance(v, PLAIN)), None)
        if unseen is not None:
            raise ValueError(
                f"{name} is not a table of numbers or strings, one column per label: it holds {unseen!r:.40} of "
                f"type {type(unseen).__name__}."
            )
        return values if any(isinstance(v, str) for v in listed) else np.array(listed, dtype=float)
    if values.dtype.kind not in "biufU":
        raise ValueError(f"{name} is of type {values.dtype}: give numbers or strings.")
    return values


def _absent(value: Any) -> bool:
    if isinstance(value, str):
        return False
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType")


def _is(value: Any, missing: Any) -> bool:
    return missing is not None and isinstance(value, PLAIN) and bool(value == missing)
