"""Decisions with a mark in the place of those that do not stand."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from leastwise.extras import frames
from leastwise.labels.encoding import Labels

Array = np.ndarray


def marked(values: Array, accepted: Array, reject: Any) -> Array:
    """Classes with another value in the place of those that are not accepted."""
    number = values.dtype.kind in "biuf"
    value = (np.nan if number else None) if reject is None else reject
    alike = isinstance(value, Real) if number else values.dtype.kind == "U" and isinstance(value, str)
    out = values.astype(np.result_type(values, np.asarray(value)) if alike else object)
    out[~accepted] = value
    return out


def marked_labels(labels: Labels, codes: Array, accepted: Array, reject: Any, index: Any) -> Any:
    """Labels in the form in which they were given, with those that are not accepted marked."""
    if labels.form == "pandas":
        return _in_pandas(labels.decode(codes, index), accepted, reject)
    if labels.form == "polars":
        return _in_polars(labels.decode(codes), accepted, reject)
    if labels.form == "flat":
        return marked(labels.classes[0][codes], accepted, reject)
    return marked(replace(labels, form="array").decode(codes), accepted, reject)


def _in_pandas(table: Any, accepted: Array, reject: Any) -> Any:
    """NaN, or what a column's own type has for missing; types do not depend on whether a label is rejected."""
    pandas = frames("pandas")
    columns = []
    for t in range(table.shape[1]):
        column = table.iloc[:, t]
        plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf"
        if plain or reject is not None:
            column = pandas.Series(marked(column.to_numpy(), accepted[:, t], reject), index=table.index)
        else:
            column = column.where(accepted[:, t])
        columns.append(column)
    marks = pandas.DataFrame(dict(enumerate(columns)), index=table.index)
    marks.columns = table.columns
    return marks


def _in_polars(table: Any, accepted: Array, reject: Any) -> Any:
    """Null, which every type has."""
    polars = frames("polars")
    columns = []
    for t, column in enumerate(table.iter_columns()):
        kept = zip(column.to_list(), accepted[:, t].tolist(), strict=True)
        values = [value if ok else reject for value, ok in kept]
        kind = column.dtype if reject is None else None
        columns.append(polars.Series(column.name, values, dtype=kind, strict=False))
    return polars.DataFrame(columns)
