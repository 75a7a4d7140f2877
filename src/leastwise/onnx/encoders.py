"""Missing values, categories, columns of tables, task ids and scaled inputs as ONNX nodes.

ONNX has no missing text: a missing cell is an empty string, for imputers and encoders too.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from leastwise.onnx.graph import Graph, Value
from leastwise.onnx.registry import scales, transformers
from leastwise.onnx.transformers import Block, Columns
from leastwise.problem.inputs import Inputs, Quantile, Robust, Standard
from leastwise.problem.tasks import Tasks
from leastwise.sources.formats.cells import FALSE, MISSING, TRUE
from leastwise.sources.frames import is_missing
from leastwise.tables import TableEncoder
from leastwise.tables.columns import Column
from leastwise.tables.date_parts import PERIODS
from leastwise.tables.encoder import FAR

Array = np.ndarray

#: An index that is out of bounds in every table, so that the runtime stops with an error, as the standard demands.
OUT_OF_BOUNDS = 2**31 - 1


def positions(g: Graph, x: Value, keys: list) -> Value:
    """Positions of the entries of a column, of shape (n,), among ``keys``, text or numbers; -1 for others."""
    if isinstance(keys[0], str):
        return g.lookup(x, keys)
    numbers = np.array(keys, dtype=float).astype(g.io_dtype).astype(g.dtype)  # rounded as the input rounds them
    if len(np.unique(numbers)) < len(keys):
        raise ValueError(
            f"The numbers of tasks or categories, such as {keys[:3]}, are not distinct as {g.io_dtype}: use "
            "dtype='float64'."
        )
    same = x.unsqueeze(1).equal(numbers)
    if np.isnan(numbers).any():
        both_nan = g.node("And", g.node("IsNaN", x.unsqueeze(1)), np.isnan(numbers))
        same = g.node("Or", same, both_nan)
    return first_true(g, same)


def first_true(g: Graph, same: Value) -> Value:
    """The index of the first true entry of each row; -1 if there is none."""
    hit = same.cast(np.int32)  # ArgMax of int64 needs onnxruntime 1.20
    return g.where(hit.max(keep=False).cast(np.int64).equal(np.array(1)), hit.argmax(), np.array(-1))


# --------------------------------------------------------------------- task ids

TASK_DTYPES: dict[str, Any] = {"text": object, "integer": np.int64, "real": np.float64}


def split_tasks(g: Graph, columns: Columns, model: Any, tasks: Tasks) -> tuple[Columns, Value]:
    """Columns without that of the tasks, and task codes of shape (n,); -1 for unseen tasks.

    Without a task column the ids have an input of their own, ``tasks``, text or numbers, unless they are a column of
    a table.
    """
    kind = _id_kind(tasks.ids)
    if model.task_column is None:
        ids = g.input("tasks", TASK_DTYPES[kind], []) if g.task_ids is None else g.task_ids
        rest = columns
        if kind == "real":
            known = g.constant(np.array(tasks.ids, dtype=float), np.float64)
            code = first_true(g, ids.unsqueeze(1).equal(known))
        else:
            code = g.lookup(ids, tasks.ids)
    else:
        column = model.task_column
        named = isinstance(column, str)
        place = list(model.feature_names_in_).index(column) if named else int(column) % len(columns)
        ids = columns.text(place) if kind == "text" else columns.pick([place]).numbers()
        rest, code = columns.without(place), positions(g, ids.squeeze(1), tasks.ids)
    if getattr(model, "unknown_task", "error") == "error":
        index = g.where(code < np.array(0), np.array(OUT_OF_BOUNDS), code)
        code = g.node("Gather", np.arange(len(tasks)), index, label="unknown_task_is_an_error")
    return rest, code


def _id_kind(ids: list) -> str:
    if all(isinstance(name, str) for name in ids):
        return "text"
    if all(isinstance(name, int) and abs(name) < 2**63 for name in ids):
        return "integer"
    if all(isinstance(name, int | float) for name in ids):
        return "real"
    example = next(name for name in ids if not isinstance(name, str))
    raise TypeError(
        f"Task ids such as {example!r} have no type in ONNX: all must be text, or all numbers. Fit with str(id) for "
        "each id."
    )


# --------------------------------------------------------------- missing values


@transformers.register(SimpleImputer)
def _impute(g: Graph, step: SimpleImputer, columns: Columns) -> Columns:
    """Fill missing values; columns that were empty in training are left out if the imputer leaves them out."""
    fill = np.asarray(step.statistics_)
    kept = [j for j in range(len(columns)) if not is_missing(fill[j])]
    if step.strategy == "constant" or step.keep_empty_features:
        kept = list(range(len(columns)))
    if fill.dtype.kind in "OUS" and any(isinstance(value, str) for value in fill.tolist()):
        filled = Columns.joined(g, [_fill_text(g, step, columns, j, str(fill[j])) for j in kept])
    else:
        X, fill = columns.pick(kept).numbers(), np.asarray(fill[kept], dtype=float)
        filled = Columns.of(g.where(_missing(g, step, X), np.nan_to_num(fill), X), len(kept))
    return Columns.joined(g, [filled, _indicators(g, step, columns)]) if step.add_indicator else filled


def _missing(g: Graph, step: SimpleImputer, X: Value) -> Value:
    return g.node("IsNaN", X) if is_missing(step.missing_values) else X.equal(float(step.missing_values))


def _fill_text(g: Graph, step: SimpleImputer, columns: Columns, j: int, fill: str) -> Columns:
    text = columns.text(j)
    absent = "" if is_missing(step.missing_values) else str(step.missing_values)
    missing = g.lookup(text, [absent]).equal(np.array(0))
    return Columns.of(g.where(missing, np.array(fill, dtype=object), text), 1, text=True)


def _indicators(g: Graph, step: SimpleImputer, columns: Columns) -> Columns:
    """1 where a number is missing, for the columns that have an indicator."""
    if np.asarray(step.statistics_).dtype.kind in "OUS":
        raise TypeError(
            "SimpleImputer(add_indicator=True) on text has no ONNX converter: use add_indicator=False, and encode "
            "missing values as a category."
        )
    which = step.indicator_.features_.tolist()
    if not which:
        return columns.pick([])
    return Columns.of(_missing(g, step, columns.pick(which).numbers()).cast(g.dtype), len(which))


# ------------------------------------------------------------------- categories


@transformers.register(OneHotEncoder)
def _one_hot(g: Graph, step: OneHotEncoder, columns: Columns) -> Columns:
    """One column for each category, one for all infrequent ones, without those that are dropped.

    An unknown category counts as infrequent, or is all zeros.
    """
    refuse = step.handle_unknown == "error"
    tables = [(j, list(categories), _one_hot_table(step, j)) for j, categories in enumerate(step.categories_)]
    return Columns.joined(g, [_encode(g, columns, j, categories, table, refuse) for j, categories, table in tables])


def _one_hot_table(step: OneHotEncoder, j: int) -> Array:
    """A row for each category of a column, and a last one for unknown categories."""
    categories = list(step.categories_[j])
    rare = _infrequent(step, j)
    common = [k for k in range(len(categories)) if k not in rare]
    code = np.full(len(categories), len(common))
    code[common] = np.arange(len(common))
    width = len(common) + bool(rare)
    unknown = np.zeros(width)
    if rare and step.handle_unknown in ("infrequent_if_exist", "warn"):
        unknown[-1] = 1
    table = np.vstack([np.eye(width)[code], unknown])
    if step.drop_idx_ is not None and step.drop_idx_[j] is not None:
        table = np.delete(table, code[step.drop_idx_[j]], axis=1)
    return table


def _infrequent(step: OneHotEncoder, j: int) -> list[int]:
    """Positions of the infrequent categories, which share a column."""
    listed = getattr(step, "infrequent_categories_", None)
    if listed is None or listed[j] is None:
        return []
    rare, missing = list(listed[j]), any(is_missing(c) for c in listed[j])
    return [k for k, c in enumerate(step.categories_[j]) if (missing if is_missing(c) else c in rare)]


@transformers.register(OrdinalEncoder)
def _ordinal(g: Graph, step: OrdinalEncoder, columns: Columns) -> Columns:
    """Positions of the categories."""
    if step.min_frequency is not None or step.max_categories is not None:
        raise TypeError(
            "OrdinalEncoder with infrequent categories has no ONNX converter: leave out min_frequency= and "
            "max_categories=."
        )
    parts, refuse = [], step.handle_unknown == "error"
    for j, categories in enumerate(step.categories_):
        code = [step.encoded_missing_value if is_missing(c) else k for k, c in enumerate(categories)]
        table = np.array([*code, np.nan if refuse else step.unknown_value], dtype=float)[:, None]
        parts.append(_encode(g, columns, j, list(categories), table, refuse))
    return Columns.joined(g, parts)


def _encode(g: Graph, columns: Columns, j: int, categories: list, table: Array, refuse: bool) -> Columns:
    """The row of a table for each category; the last row is for unknown ones, or these stop the runtime."""
    return Columns.of(encode_categories(g, columns, j, categories, table, refuse), table.shape[1])


def encode_categories(
    g: Graph, columns: Columns, j: int, categories: list, table: Array, refuse: bool = False
) -> Value:
    """The row of a table for each value of column j; the last row is for unknown ones, or these stop the runtime."""
    if any(isinstance(c, str) for c in categories):
        keys = ["" if is_missing(c) else c for c in categories]
        if not all(isinstance(key, str) for key in keys) or len(set(keys)) < len(keys):
            raise ValueError(
                f"Categories {categories[:5]} mix text and numbers, or several are missing: use one type."
            )
        place = positions(g, columns.text(j).squeeze(1), keys)
    else:
        numbers = [np.nan if is_missing(c) else c for c in categories]
        place = positions(g, columns.pick([j]).numbers().squeeze(1), numbers)
    if refuse:
        place = g.where(place < np.array(0), np.array(OUT_OF_BOUNDS), place)
    label = "unknown_category_is_an_error" if refuse else None
    return g.node("Gather", table, place, label=label)


# ----------------------------------------------------------------------- tables


@transformers.register(TableEncoder)
def encode_table(g: Graph, step: TableEncoder, columns: Columns) -> Columns:
    """All features or codes of a table, column by column; columns that are no inputs are not read.

    Inputs hold the cells of a file: numbers with NaN where they are missing, dates as days since 1970, and text,
    which is looked up. Cells that Python rejects become infinite, and the probabilities of their rows NaN.
    """
    numeric = [j for j, c in enumerate(step.columns_) if c.used and not c.nominal]
    codes = step.output == "codes"
    parts = _numeric_features(g, step, columns, numeric) if numeric else {}
    for j, column in enumerate(step.columns_):
        if column.used:
            columns.set_kind(j, column.kind)
            if j not in parts:
                as_features = _boolean_features if column.kind == "boolean" else _category_features
                convert = _category_codes if codes else as_features
                parts[j] = convert(g, column, columns.text(j))
    return Columns.joined(g, [parts[j] for j in sorted(parts)])


def _numeric_features(g: Graph, step: TableEncoder, columns: Columns, which: list[int]) -> dict[int, Columns]:
    """Numbers and dates: as they are, or imputed and standardised together with indicators of missing values."""
    known = [step.columns_[j] for j in which]
    if any(c.kind == "date" for c in known):
        each = zip(which, known, strict=True)
        X = g.concat([columns.days(j) if c.kind == "date" else columns.pick([j]).numbers() for j, c in each])
    else:
        X = columns.pick(which).numbers()
    fill, mean, scale = (np.array([getattr(c, name) for c in known]) for name in ("fill", "mean", "scale"))
    missing, infinite = g.node("IsNaN", X), g.node("IsInf", X)
    if step.output == "codes":
        with np.errstate(over="ignore"):
            low, high = (np.nan_to_num(mean + side * FAR * scale) for side in (-1, 1))
        near = X.maximum(low).minimum(high)  # of NaN, some runtimes make a number
        numbers = Columns.of(g.where(g.node("Or", missing, infinite), X, near), len(known))
        made = {j: numbers.pick([k]) for k, j in enumerate(which)}
        dates = {j: k for k, (j, c) in enumerate(zip(which, known, strict=True)) if c.parts}
        for j, k in dates.items():
            days = g.where(g.node("Or", missing, infinite), X, near).take([k])
            made[j] = Columns.joined(g, [made[j], _date_parts(g, days, step.columns_[j].parts)])
        return made
    Z = ((g.where(missing, fill, X) - mean) / np.where(scale > 0, scale, 1.0)).maximum(-FAR).minimum(FAR)
    values, flags = (Block(g.where(infinite, np.inf, part), len(known)) for part in (Z, missing.cast(g.dtype)))
    features = {}
    for k, (j, c) in enumerate(zip(which, known, strict=True)):
        own: list[Columns] = [Columns(g, ((values, k),))] if c.scale > 0 else []
        if c.parts:
            days = X.take([k]).maximum(c.mean - FAR * c.scale).minimum(c.mean + FAR * c.scale)
            cycles = _date_parts(g, g.where(missing.take([k]), 0.0, days), c.parts).numbers()
            own.append(Columns.of(g.where(missing.take([k]), 0.0, cycles), len(c.part_names)))
        own += [Columns(g, ((flags, k),))] if c.n_missing else []
        features[j] = Columns.joined(g, own)
    return features


def _date_parts(g: Graph, days: Value, parts: tuple[str, ...]) -> Columns:
    """Sine and cosine of the cycles of dates (n x 1), and weekends, as ``tables.date_parts.part_features``."""
    columns = []
    for part in parts:
        turns = ((g.node("Floor", days) + 3.0) if part == "weekday" else days) * (1 / PERIODS[part])
        phase = turns - g.node("Floor", turns)
        columns += [g.node("Sin", phase * (2 * np.pi)), g.node("Sin", phase * (2 * np.pi) + np.pi / 2)]
        if part == "weekday":
            weekend = (phase > 4.5 / 7).cast(g.dtype)
            columns.append(g.where(g.node("IsNaN", phase), phase, weekend))
    return Columns.of(g.concat(columns), len(columns))


def _boolean_features(g: Graph, column: Column, text: Value) -> Columns:
    """0 and 1, missing values imputed; other text is infinite."""
    words = [[*spellings(FALSE), "0", "0.0"], [*spellings(TRUE), "1", "1.0"], spellings(MISSING)]
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [column.fill, 1.0], [np.inf, np.inf]])
    return _lookup_rows(g, text, words, rows[:, [column.scale > 0, column.n_missing > 0]], 3)


def _category_codes(g: Graph, column: Column, text: Value) -> Columns:
    """Codes of categories and booleans, as the encoder makes them; infinite for text that is no boolean."""
    if column.kind == "boolean":
        words, rest = [[*spellings(FALSE), "0", "0.0"], [*spellings(TRUE), "1", "1.0"]], np.inf
    else:
        words, rest = [[value] for value in (*column.categories, *column.pooled)], -1.0
    table = np.array([*range(len(words)), np.nan, rest], dtype=float)[:, None]
    return _lookup_rows(g, text, [*words, spellings(MISSING), []], table, len(words) + 1)


def _category_features(g: Graph, column: Column, text: Value) -> Columns:
    """One-hot features: each category, all others, and missing values; zeros if there is no such feature."""
    width = len(column.features)
    table = np.vstack([np.eye(width), np.zeros(width)])
    other = len(column.categories) if column.pooled else width
    words: list[list[str]] = [[c] for c in column.categories] + [[]] * (width - len(column.categories) + 1)
    words[width - 1 if column.n_missing else width] = spellings(MISSING)
    return _lookup_rows(g, text, words, table, other)


def _lookup_rows(g: Graph, text: Value, words: list[list[str]], table: Array, other: int) -> Columns:
    """For each cell the row of the table that lists its text among ``words``; row ``other`` for all other text."""
    keys = [word for each in words for word in each]
    rows = [row for row, each in enumerate(words) for _ in each]
    place = g.lookup(text.squeeze(1), keys, other, rows)
    return Columns.of(g.node("Gather", table, place), table.shape[1])


def spellings(words: Iterable[str]) -> list[str]:
    """The words in every combination of upper and lower case."""
    return sorted({"".join(w) for word in words for w in product(*((c.lower(), c.upper()) for c in word))})


# ---------------------------------------------------------------- scaled inputs


def convert_inputs(g: Graph, model: Any, columns: Columns) -> tuple[Value, list[Value]]:
    """Rows as the kernel of a model sees them, and tables of zeros with NaN where a value is not allowed."""
    inputs, known = model.inputs_, model.categories_
    numeric = [j for j in range(len(columns)) if known[j] is None]
    parts, invalid = [], list[Value]()
    if numeric:
        X = columns.pick(numeric).numbers()
        parts = _numbers(g, inputs, X, numeric)
        wrong = X * 0.0 if inputs.fill is None else g.where(g.node("IsInf", X), np.nan, 0.0)
        invalid.append(wrong.sum())
    for category in inputs.categories:
        values = list(known[category.column])
        # Rows for all values, for a missing value, and for unknown values.
        table = category.transform(np.r_[np.arange(len(values)), np.nan, -1])
        if not any(isinstance(value, str) for value in values):  # text that is not of the kind of its column
            x = columns.pick([category.column]).numbers()
            invalid.append(g.where(g.node("IsInf", x), np.nan, 0.0).sum())
        parts.append(encode_categories(g, columns, category.column, [*values, None], table))
    Z = g.concat(parts)
    return Z if inputs.weights is None else Z * np.asarray(inputs.weights, dtype=float), invalid


def _numbers(g: Graph, inputs: Inputs, X: Value, numeric: list[int]) -> list[Value]:
    """Scaled numbers, and indicators of missing ones; X has the columns ``numeric`` of the rows."""
    place = {j: k for k, j in enumerate(numeric)}
    Z, parts = X, list[Value]()
    if inputs.columns is not None:
        Z = X.take(np.array([place[j] for j in inputs.columns.tolist()], dtype=int))
    if inputs.fill is not None and len(inputs.fill):
        filled = g.where(g.node("IsNaN", Z), np.asarray(inputs.fill, dtype=float), Z)
        Z = g.where(g.node("IsInf", Z), np.nan, filled)
    if inputs.columns is None or len(inputs.columns) or (inputs.missing is None and not inputs.categories):
        parts.append(Z if inputs.rule is None else scales.find(inputs.rule).convert(g, inputs.rule, Z))
    if inputs.missing is not None and inputs.missing_factors is not None:
        absent = g.node("IsNaN", X.take(np.array([place[j] for j in inputs.missing.tolist()], dtype=int)))
        parts.append(absent.cast(g.dtype) * np.asarray(inputs.missing_factors, dtype=float))
    return parts


@scales.register(Standard)
def _standard(g: Graph, rule: Standard, X: Value) -> Value:
    return (X - rule.shift) * (1 / np.where(rule.unit > 0, rule.unit, 1.0))


@scales.register(Robust)
def _robust(g: Graph, rule: Robust, X: Value) -> Value:
    """``asinh(z) = sign(z) log(|z| + sqrt(z^2 + 1))``; onnxruntime has Asinh in single precision only."""
    z = (X - rule.center) * (1 / rule.spread)
    size = g.node("Abs", z)
    bent = g.node("Sign", z) * g.log(size + g.node("Sqrt", z * z + 1.0))
    return _standard(g, rule.standard, bent)


@scales.register(Quantile)
def _quantile(g: Graph, rule: Quantile, X: Value) -> Value:
    """A sum over the pieces between knots: slope times how far x is into the piece."""
    low, high = rule.knots[:, 0], rule.knots[:, -1]
    width, rise = np.diff(rule.knots, axis=1), np.diff(rule.scores, axis=1)
    slope = rise / np.where(width > 0, width, 1)
    into = (X.unsqueeze(2) - rule.knots[None, :, :-1]).maximum(0.0).minimum(width[None])
    inside = (into * slope[None]).sum(axis=2, keep=False) + rule.scores[:, 0]
    tail = (rule.scores[:, -1] - rule.scores[:, 0]) / np.where(high > low, high - low, 1)
    return inside + ((X - high).maximum(0.0) - (low - X).maximum(0.0)) * tail
