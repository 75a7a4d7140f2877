"""Gaps and categories: imputers and encoders. Text that is missing is an empty string, since ONNX has no other."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from leastwise.onnx._columns import Block, Columns, place_of
from leastwise.onnx._graph import Graph, Value

Array = np.ndarray

#: A place that is out of bounds wherever it is looked up: by the standard the runtime then stops with an error.
NOWHERE = 2**31 - 1


def is_missing(x: Any) -> bool:
    """None, NaN and what else is not equal to itself."""
    return x is None or type(x).__name__ == "NAType" or bool(x != x)


# ---------------------------------------------------------------------- gaps


def impute(g: Graph, step: SimpleImputer, columns: Columns) -> Columns:
    """Gaps filled; columns that were empty in training are left out where the imputer leaves them out."""
    if step.add_indicator:
        return Columns.joined(g, [_imputed(g, step, columns), _indicated(g, step, columns)])
    return _imputed(g, step, columns)


def _imputed(g: Graph, step: SimpleImputer, columns: Columns) -> Columns:
    fill = np.asarray(step.statistics_)
    kept = [j for j in range(len(columns)) if not is_missing(fill[j])]
    if step.strategy == "constant" or step.keep_empty_features:
        kept = list(range(len(columns)))
    if fill.dtype.kind in "OUS" and any(isinstance(value, str) for value in fill.tolist()):
        return Columns.joined(g, [_filled_text(g, step, columns, j, str(fill[j])) for j in kept])
    X, fill = columns.pick(kept).numbers(), np.asarray(fill[kept], dtype=float)
    return Columns.of(Block(g.where(_gaps(g, step, X), np.nan_to_num(fill), X), len(kept)))


def _gaps(g: Graph, step: SimpleImputer, X: Value) -> Value:
    return g.node("IsNaN", X) if is_missing(step.missing_values) else X.equals(float(step.missing_values))


def _indicated(g: Graph, step: SimpleImputer, columns: Columns) -> Columns:
    """1 where a number is missing, for the columns that the imputer says so of."""
    if np.asarray(step.statistics_).dtype.kind in "OUS":
        raise TypeError(
            "SimpleImputer(add_indicator=True) on text has no converter to ONNX: use add_indicator=False, and encode "
            "the gap as a category."
        )
    which = step.indicator_.features_.tolist()
    if not which:
        return columns.pick([])
    return Columns.of(Block(_gaps(g, step, columns.pick(which).numbers()).cast(g.real), len(which)))


def _filled_text(g: Graph, step: SimpleImputer, columns: Columns, j: int, fill: str) -> Columns:
    text = columns.text(j)
    gap = g.lookup(text, ["" if is_missing(step.missing_values) else str(step.missing_values)]).equals(np.array(0))
    return Columns.of(Block(g.where(gap, np.array(fill, dtype=object), text), 1, text=True))


# ---------------------------------------------------------------- categories


def one_hot(g: Graph, step: OneHotEncoder, columns: Columns) -> Columns:
    """One column for every category, rare ones together, without those that are dropped.

    A category that is not known is a rare one, or zeros.
    """
    refuse = step.handle_unknown == "error"
    each = enumerate(step.categories_)
    return Columns.joined(g, [_encoded(g, columns, j, list(c), _one_hot_table(step, j), refuse) for j, c in each])


def _one_hot_table(step: OneHotEncoder, j: int) -> Array:
    """A row for each category of a column, the last for one that is not known."""
    categories = list(step.categories_[j])
    rare = _rare(step, j)
    common = [k for k in range(len(categories)) if k not in rare]
    code = np.full(len(categories), len(common))
    code[common] = np.arange(len(common))
    width = len(common) + bool(rare)
    strange = np.zeros(width)
    if rare and step.handle_unknown in ("infrequent_if_exist", "warn"):
        strange[-1] = 1
    table = np.vstack([np.eye(width)[code], strange])
    if step.drop_idx_ is not None and step.drop_idx_[j] is not None:
        table = np.delete(table, code[step.drop_idx_[j]], axis=1)
    return table


def _rare(step: OneHotEncoder, j: int) -> list[int]:
    """Places of the categories that share a column."""
    listed = getattr(step, "infrequent_categories_", None)
    if listed is None or listed[j] is None:
        return []
    rare, gap = list(listed[j]), any(is_missing(c) for c in listed[j])
    return [k for k, c in enumerate(step.categories_[j]) if (gap if is_missing(c) else c in rare)]


def ordinal(g: Graph, step: OrdinalEncoder, columns: Columns) -> Columns:
    """Places of the categories."""
    if step.min_frequency is not None or step.max_categories is not None:
        raise TypeError("OrdinalEncoder with rare categories in one has no converter to ONNX: leave these out.")
    parts, refuse = [], step.handle_unknown == "error"
    for j, categories in enumerate(step.categories_):
        code = [step.encoded_missing_value if is_missing(c) else k for k, c in enumerate(categories)]
        table = np.array([*code, np.nan if refuse else step.unknown_value], dtype=float)[:, None]
        parts.append(_encoded(g, columns, j, list(categories), table, refuse))
    return Columns.joined(g, parts)


def _encoded(g: Graph, columns: Columns, j: int, categories: list, table: Array, refuse: bool) -> Columns:
    """The row of a table for each category; the last is for one that is not known, where these are not refused."""
    place = _category(g, columns, j, categories)
    if refuse:
        place = g.where(place < np.array(0), np.array(NOWHERE), place)
    label = "unknown_category_is_an_error" if refuse else None
    return Columns.of(Block(g.node("Gather", table, place, label=label), table.shape[1]))


def _category(g: Graph, columns: Columns, j: int, categories: list) -> Value:
    if any(isinstance(c, str) for c in categories):
        keys = ["" if is_missing(c) else c for c in categories]
        if not all(isinstance(key, str) for key in keys) or len(set(keys)) < len(keys):
            raise ValueError(
                f"Categories {categories[:5]} are text and numbers, or several are missing: use one kind."
            )
        return place_of(g, columns.text(j).squeezed(1), keys)
    return place_of(g, columns.pick([j]).numbers().squeezed(1), [np.nan if is_missing(c) else c for c in categories])
