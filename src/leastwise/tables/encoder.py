"""From columns of any kind to numbers, by rules that are found in training and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from leastwise.tables.cells import text_cells, values_of
from leastwise.tables.kinds import KINDS, Column, Found, find_kind, fit_column
from leastwise.tables.table import Array, Table, TableError
from leastwise.utils.memory import available_memory, human

#: Standardised values beyond this are taken for this: a million standard deviations is far from all data, and squares
#: of more might overflow.
FAR = 1e6


@dataclass(frozen=True)
class Encoded:
    """Features, and what had to be decided on the way.

    Attributes
    ----------
    X : ndarray of shape (n, n_features)
    unseen : dict of str to int
        For each column with categories that training has not seen, the number of such cells.
    gaps : dict of str to int
        For each column that had no missing cells in training, the number of missing ones.
    extra : list of str
        Columns that the model does not know.
    """

    X: Array
    unseen: dict[str, int]
    gaps: dict[str, int]
    extra: list[str]

    @property
    def notes(self) -> list[str]:
        """The same in words."""
        notes = [f'Column "{c}": {k} cells with values that training has not seen.' for c, k in self.unseen.items()]
        notes += [f'Column "{c}": {k} cells missing; in training there were none.' for c, k in self.gaps.items()]
        if self.extra:
            more = f" and {len(self.extra) - 10} more" if len(self.extra) > 10 else ""
            notes.append(f"Columns that the model does not use: {', '.join(self.extra[:10])}{more}.")
        return notes


class TableEncoder(TransformerMixin, BaseEstimator):
    """Make features of a table: numbers standardised, categories one-hot, missing values by stated rules.

    The kinds of the columns are found in ``fit`` and kept; ``describe`` shows them. All rules stand on the page
    "Tables".

    Parameters
    ----------
    kinds : mapping of str to str, optional
        Kinds of columns where what is found is not what is meant: "number", "date", "boolean", "category" or
        "ignore".
    ignore : sequence of str, default=()
        Columns that are not used.
    max_categories : int, default=50
        So many of the most frequent values of a category have a feature each.
    min_share : float, default=0.005
        Values that are in a smaller share of the rows, or in one row only, have none. All of these share one.

    Attributes
    ----------
    columns_ : list of Column
        What was found in every column.
    n_features_in_, feature_names_in_
        As in scikit-learn. (For a table, the columns of ``fit``, also those that are ignored.)

    Notes
    -----
    In ``transform`` columns may stand in any order, and there may be others. A column that is not there is an error,
    and so is a cell that is not of the kind of its column; both are named.

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
    ) -> None:
        self.kinds = kinds
        self.ignore = ignore
        self.max_categories = max_categories
        self.min_share = min_share

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    # ------------------------------------------------------------------ fit

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Find the kinds of the columns, and what they need.

        Parameters
        ----------
        X : Table, frame, mapping of columns, or array of shape (n, n_columns)
        y : ignored
        """
        table = self._table(X, reset=True)
        return self._learn(table, np.arange(len(table)))

    def fit_rows(self, table: Table, rows: Array) -> TableEncoder:
        """The same, with what columns need learned from some rows only; kinds are found by all of them."""
        return self._learn(self._table(table, reset=True), rows)

    def _learn(self, table: Table, rows: Array) -> TableEncoder:
        if not len(rows):
            raise TableError("there are no rows to learn from: Found array with 0 sample(s).")
        found, some = self._found(table), table.take(rows)
        self.columns_ = [fit_column(some, name, f, self.max_categories, self.min_share) for name, f in found.items()]
        return self

    def _found(self, table: Table) -> dict[str, Found]:
        """The kinds that were said, then those that are found."""
        said = {**dict(self.kinds or {}), **dict.fromkeys(self.ignore, "ignore")}
        lost = [name for name in said if name not in table.columns]
        if lost:
            raise table.lacks(lost, "kinds= and ignore= name")
        for name, kind in said.items():
            if kind not in KINDS:
                raise TableError(f'kinds= says {kind!r} of column "{name}": use one of {list(KINDS)}.')
        return {
            name: Found(said[name], "as said") if name in said else find_kind(table, name) for name in table.names
        }

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
        """Features of the rows, an array of shape (n, n_features_out)."""
        return self.encode(X).X

    def encode(self, X: Any) -> Encoded:
        """Features of the rows, with what is worth saying about them."""
        check_is_fitted(self)
        table = self._table(X, reset=False)
        used = [column for column in self.columns_ if column.features]
        lost = [column.name for column in used if column.name not in table.columns]
        if lost and table.absent is None:
            raise table.lacks(lost)
        if lost:
            zeros = {name: np.full(len(table), table.absent) for name in lost}
            table = replace(table, columns={**table.columns, **zeros})
        width = sum(len(column.features) for column in used)
        if 8 * len(table) * width > available_memory():
            raise TableError(
                f"{len(table)} rows with {width} features need {human(8 * len(table) * width)}, more than there is: "
                "leave columns out (ignore=), or rows."
            )
        out, at = np.zeros((len(table), width)), 0
        unseen, gaps = {}, {}
        for column in used:
            unseen[column.name], gaps[column.name] = _encode(table, column, out[:, at : at + len(column.features)])
            at += len(column.features)
        known = {column.name for column in self.columns_}
        extra = [name for name in table.names if name not in known]
        return Encoded(out, _some(unseen), _some(gaps), extra)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the features: those of the columns, with ``=value`` for categories and ``=(missing)``."""
        check_is_fitted(self)
        return np.array([name for column in self.columns_ for name in column.features], dtype=object)

    def describe(self) -> Table:
        """What was found: a row for every column, with its kind, missing cells, values, features and a note."""
        check_is_fitted(self)
        return Table.of(
            {
                "column": [c.name for c in self.columns_],
                "kind": [c.kind for c in self.columns_],
                "missing": np.array([c.n_missing for c in self.columns_]),
                "values": np.array([c.n_values for c in self.columns_]),
                "features": np.array([len(c.features) for c in self.columns_]),
                "note": [c.note for c in self.columns_],
            }
        )

    @property
    def _n_features_out(self) -> int:
        return sum(len(column.features) for column in self.columns_)


def _some(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def _encode(table: Table, column: Column, out: Array) -> tuple[int, int]:
    """Write the features of a column; count cells that training has not seen, and gaps where it had none."""
    if column.kind == "category":
        return _encode_category(text_cells(table[column.name]), column, out)
    values = values_of(table, column.name, column.kind)
    missing = np.isnan(values)
    if column.n_missing:
        out[:, -1] = missing
    if column.scale > 0:
        with np.errstate(over="ignore"):
            scaled = (np.where(missing, column.fill, values) - column.mean) / column.scale
        out[:, 0] = np.clip(scaled, -FAR, FAR)
    return 0, 0 if column.n_missing else int(missing.sum())


def _encode_category(texts: list[str | None], column: Column, out: Array) -> tuple[int, int]:
    place: dict[str | None, int] = {text: k for k, text in enumerate(column.categories)}
    other = len(column.categories) if column.pooled else -1
    if column.n_missing:
        place[None] = out.shape[1] - 1
    codes = np.array([place.get(text, -1 if text is None else other) for text in texts], dtype=int)
    rows = np.flatnonzero(codes >= 0)
    out[rows, codes[rows]] = 1
    known = {None, *column.categories, *column.pooled}
    unseen = sum(text not in known for text in texts) if column.categories else 0
    return unseen, 0 if column.n_missing else texts.count(None)
