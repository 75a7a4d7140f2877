"""From columns of any kind to numbers, by rules that are learned in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from leastwise.sources.blocks import TableError
from leastwise.tables.columns import Column, ColumnKind, find_kind, fit_column, texts_of, values_of
from leastwise.tables.date_parts import part_features
from leastwise.tables.table import Array, Table
from leastwise.utils.atomic_fit import all_or_nothing
from leastwise.utils.resources import available_memory, human

#: Numbers are clipped to so many standard deviations around the mean: a million is far from all data, and squares of
#: larger values might overflow.
FAR = 1e6
#: What ``output`` may be.
OUTPUTS = ("features", "codes")


@dataclass(frozen=True)
class Encoded:
    """Features, and what was unusual about the rows.

    Attributes
    ----------
    X : ndarray of shape (n, n_features)
    unseen : dict of str to int
        The number of cells with categories that did not occur in training, for each column with any.
    missing : dict of str to int
        The number of missing cells, for each column without missing cells in training.
    extra : list of str
        Columns that did not occur in training.
    """

    X: Array
    unseen: dict[str, int]
    missing: dict[str, int]
    extra: list[str]

    @property
    def notes(self) -> list[str]:
        """The same as text."""
        notes = [
            f'Column "{c}": {k} cells with values that did not occur in training.' for c, k in self.unseen.items()
        ]
        notes += [f'Column "{c}": {k} missing cells; training had none.' for c, k in self.missing.items()]
        if self.extra:
            more = f" and {len(self.extra) - 10} more" if len(self.extra) > 10 else ""
            notes.append(f"Columns that the model does not use: {', '.join(self.extra[:10])}{more}.")
        return notes


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a table: as features for any estimator, or as codes for the estimators of this library.

    The kinds of the columns are found in ``fit``; ``describe`` shows them. The page "Tables" documents all rules.

    Parameters
    ----------
    kinds : mapping of str to str, optional
        Kinds of columns, to override what is found: "number", "date" (or "date:%d/%m/%Y"), "boolean", "category" or
        "ignore".
    ignore : sequence of str, default=()
        Columns that are not used.
    max_categories : int, default=50
        Maximum number of values of a category with their own feature, the most frequent ones.
    min_share : float, default=0.005
        Values in a smaller share of the rows, or in a single row, share one feature.
    output : {"features", "codes"}, default="features"
        "features": numbers standardised, categories one-hot, missing values filled and indicated. "codes": one column
        for each input, and some for parts of dates: numbers as they are, and for categories and booleans a code from
        0, -1 if the value did not occur in training; NaN where a cell is missing. The estimators of this library take
        them with ``categories=encoder.nominal_``.

    Attributes
    ----------
    columns_ : list of Column
        What was found in every column.
    nominal_ : list of int
        The columns of "codes" that are categories or booleans.
    n_features_in_, feature_names_in_
        As in scikit-learn; for a table, all columns of ``fit``, including ignored ones.

    Notes
    -----
    In ``transform``, columns may come in any order, and there may be others. A missing column is an error, and so is
    a cell that is not of the kind of its column; the message names them.

    Examples
    --------
    >>> from leastwise.tables import Table, TableEncoder
    >>> table = Table.of({"size": [1.0, 3.0, None, 1.0], "line": ["north", "south", "north", "south"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'size=(missing)', 'line=north', 'line=south']
    """

    def __init__(
        self,
        *,
        kinds: Mapping[str, str] | None = None,
        ignore: Sequence[str] = (),
        max_categories: int = 50,
        min_share: float = 0.005,
        output: str = "features",
    ) -> None:
        self.kinds = kinds
        self.ignore = ignore
        self.max_categories = max_categories
        self.min_share = min_share
        self.output = output

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    # ------------------------------------------------------------------ fit

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Find the kinds of the columns, and learn their encoding.

        Parameters
        ----------
        X : Table, frame, mapping of columns, or array of shape (n, n_columns)
        y : array-like of shape (n,) or (n, T), optional
            Targets: of dates, only parts (time of year, weekday, time of day) that are related to them are kept.
        """
        table = self._table(X, reset=True)
        return self._learn(table, np.arange(len(table)), None if y is None else np.asarray(y))

    @all_or_nothing
    def fit_rows(self, table: Table, rows: Array, y: Array | None = None) -> TableEncoder:
        """Like ``fit``, but learn from some rows only, with targets y; kinds are found from all rows."""
        return self._learn(self._table(table, reset=True), rows, y)

    def _learn(self, table: Table, rows: Array, y: Array | None) -> TableEncoder:
        if self.output not in OUTPUTS:
            raise TableError(f"output={self.output!r} is unknown: use one of {list(OUTPUTS)}.")
        if not len(rows):
            raise TableError("there are no training rows: Found array with 0 sample(s).")
        found, some = self._found(table), table.take(rows)
        rare = (self.max_categories, self.min_share)
        self.columns_ = [fit_column(some, name, kind, *rare, y) for name, kind in found.items()]
        return self

    def _found(self, table: Table) -> dict[str, ColumnKind]:
        """The given kinds, and those that are found."""
        given = {**dict(self.kinds or {}), **dict.fromkeys(self.ignore, "ignore")}
        absent = [name for name in given if name not in table.columns]
        if absent:
            raise table.missing_error(absent, "kinds= and ignore= name")
        known = {name: ColumnKind.given(name, kind) for name, kind in given.items()}
        return {name: known[name] if name in known else find_kind(table, name) for name in table.names}

    def _table(self, X: Any, reset: bool) -> Table:
        """A table; arrays have the columns x0, x1, ..."""
        frame = isinstance(X, Table | Mapping) or hasattr(X, "columns") or hasattr(X, "column_names")
        if frame and not sparse.issparse(X):  # some sparse matrices are mappings
            table = Table.of(X)
            if reset:
                self.feature_names_in_, self.n_features_in_ = np.array(table.names, dtype=object), len(table.names)
            return table
        X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        names = [f"x{j}" for j in range(X.shape[1])]
        if not reset and hasattr(self, "feature_names_in_"):
            names = [str(name) for name in self.feature_names_in_]
        return Table.of(dict(zip(names, X.T, strict=True)))

    # ------------------------------------------------------------ transform

    def transform(self, X: Any) -> Array:
        """Features or codes of the rows, an array of shape (n, n_features_out)."""
        return self.encode(X).X

    def encode(self, X: Any) -> Encoded:
        """Features or codes of the rows, with notes on unusual cells and columns."""
        check_is_fitted(self)
        table = self._table(X, reset=False)
        used = [column for column in self.columns_ if column.used]
        absent = [column.name for column in used if column.name not in table.columns]
        if absent and table.absent is None:
            raise table.missing_error(absent)
        if absent:
            zeros = {name: np.full(len(table), table.absent) for name in absent}
            table = replace(table, columns={**table.columns, **zeros})
        width = self._n_features_out
        if 8 * len(table) * width > available_memory():
            raise TableError(
                f"{len(table)} rows with {width} features need {human(8 * len(table) * width)}, more than the "
                "available memory: use fewer columns (ignore=) or fewer rows."
            )
        out, at = np.zeros((len(table), width)), 0
        unseen, missing = {}, {}
        write = _write_codes if self.output == "codes" else _write_features
        for column in used:
            codes, unseen[column.name] = _codes(table, column)
            missing[column.name] = 0 if column.n_missing else int(np.isnan(codes).sum())
            own = out[:, at : at + self._width_of(column)]
            write(codes, column, own)
            at += own.shape[1]
        known = {column.name for column in self.columns_}
        extra = [name for name in table.names if name not in known]
        return Encoded(out, _positive(unseen), _positive(missing), extra)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Column names; for features, with ``=value`` for categories and ``=(missing)``."""
        check_is_fitted(self)
        return np.array([name for column in self.columns_ for name in self._names_of(column)], dtype=object)

    @property
    def nominal_(self) -> list[int]:
        """The columns of codes that are categories or booleans."""
        each = [column for column in self.columns_ for _ in self._names_of(column)]
        return [j for j, column in enumerate(each) if column.nominal]

    def _names_of(self, column: Column) -> list[str]:
        """Names of what a column becomes."""
        if self.output == "features":
            return column.features
        return [column.name, *column.part_names] if column.used else []

    def _width_of(self, column: Column) -> int:
        """Number of features or codes that a column becomes."""
        return column.n_codes if self.output == "codes" else column.n_features

    def describe(self) -> Table:
        """A row for each column: its kind, missing cells, values, features and a note."""
        check_is_fitted(self)
        return Table.of(
            {
                "column": [c.name for c in self.columns_],
                "kind": [c.kind for c in self.columns_],
                "missing": np.array([c.n_missing for c in self.columns_]),
                "values": np.array([c.n_values for c in self.columns_]),
                "features": np.array([self._width_of(c) for c in self.columns_]),
                "note": [c.note for c in self.columns_],
            }
        )

    @property
    def _n_features_out(self) -> int:
        return sum(map(self._width_of, self.columns_))


def _positive(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def _codes(table: Table, column: Column) -> tuple[Array, int]:
    """A column as numbers or codes, NaN where missing, and the number of cells with unseen categories.

    Codes of a category count first the values with their own feature, then the pooled ones; -1 is an unseen value.
    """
    if column.kind != "category":
        values = values_of(table, column.name, column.kind, column.format)
        if column.kind == "boolean":
            return values, 0
        with np.errstate(over="ignore"):
            return np.clip(values, column.mean - FAR * column.scale, column.mean + FAR * column.scale), 0
    code: dict[str | None, float] = {text: float(k) for k, text in enumerate((*column.categories, *column.pooled))}
    code[None] = np.nan
    codes = np.array([code.get(text, -1.0) for text in texts_of(table, column.name)], dtype=float)
    return codes, int(np.sum(codes < 0)) if column.categories else 0


def _write_codes(codes: Array, column: Column, out: Array) -> None:
    out[:, 0] = codes
    out[:, 1:] = part_features(codes, column.parts)


def _write_features(codes: Array, column: Column, out: Array) -> None:
    """Numbers standardised, categories one-hot; missing values filled, with an indicator if training had any."""
    missing = np.isnan(codes)
    if column.n_missing:
        out[:, -1] = missing
    if column.kind == "category":
        n_own = len(column.categories)
        other = (codes < 0) | (codes >= n_own)
        rows = np.flatnonzero(~missing & (~other | bool(column.pooled)))
        out[rows, np.where(other[rows], n_own, codes[rows]).astype(int)] = 1
    elif column.scale > 0:
        with np.errstate(over="ignore"):
            scaled = (np.where(missing, column.fill, codes) - column.mean) / column.scale
        out[:, 0] = np.clip(scaled, -FAR, FAR)
        if column.parts:
            out[:, 1 : 1 + len(column.part_names)] = np.nan_to_num(part_features(codes, column.parts))
