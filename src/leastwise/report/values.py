"""How good predictions of quantities are: errors, intervals, tasks, and the rows that are predicted worst."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.calibration.conformal import upper_quantile
from leastwise.calibration.heldout_rows import witnesses
from leastwise.estimators.validation import task_codes
from leastwise.report.numbers import LEVEL, mean_of, plain, plain_list
from leastwise.report.reading import Subject, with_tasks
from leastwise.report.tables import column, table
from leastwise.report.uncertain_rows import UNSURE, Shown
from leastwise.solvers.solve_tasks import DualForm
from leastwise.utils.unwrap import arrive

Array = np.ndarray

#: Points of a picture, at most; coverages that are looked at, the one of the tables, and outputs that have pictures.
POINTS, COVERAGES, MAIN, OUTPUTS = 700, (0.5, 0.8, 0.9, 0.95), 0.9, 4
DRAWS = 200


@dataclass(frozen=True)
class Predicted:
    """Predictions of rows that the model did not see, and the truth.

    Attributes
    ----------
    y, F : ndarray of shape (n, outputs)
    w : ndarray of shape (n,)
    rows : ndarray of int of shape (n,)
    unit : ndarray of int of shape (n,), optional
        Rows that vary together, numbered from 0.
    task : ndarray of int of shape (n,), optional
    n : int
        Number of rows, also of those that do not count.
    heldout : bool
    covered : dict of float to (inside, width), optional
        Of rows that were given: whether intervals of the model hold the value (n, outputs), and mean widths.
    group : ndarray of int of shape (n,), optional
        The user's groups, each of which counts as one for intervals.
    """

    y: Array
    F: Array
    w: Array
    rows: Array
    unit: Array | None
    task: Array | None
    n: int
    heldout: bool = True
    covered: dict[float, tuple[Array, Array]] | None = None
    group: Array | None = None

    @property
    def residual(self) -> Array:
        """Truth less prediction."""
        return self.y - self.F


def held_out_values(subject: Subject, tasks: Any = None) -> Predicted | None:
    """The held-out rows of a regressor; None where there are none."""
    known = vars(subject.model).get("residuals_")
    if known is None:
        return None
    model = subject.model
    every = np.asarray(model.heldout_prediction_, dtype=float)
    every = every.reshape(len(every), -1)
    y, F = ((v * model.unit_ + model.offset_) for v in (known.values, known.values - known.residual))
    rows, n = rows_of(every, F), len(every)
    # With leave-one-out these are copies and groups, which vary together; folds of many rows are not.
    unit = known.fold if isinstance(model.cv, str) and model.cv == "loo" else None
    return Predicted(y, F, known.w, rows, unit, _tasks(model, tasks, rows, n), n, group=known.group)


def rows_of(every: Array, held: Array) -> Array:
    """Where rows that count stand: rows of weight zero have predictions too, and are passed over."""
    rows = np.flatnonzero(~np.isnan(every[:, 0]))
    if len(rows) == len(held):
        return rows
    found: list[int] = []
    near = 1e-6 * np.abs(held).max()
    for row in rows.tolist():
        if len(found) < len(held) and np.abs(every[row] - held[len(found)]).max() <= near:
            found.append(row)
    return np.array(found)


def _tasks(model: Any, tasks: Any, rows: Array, n: int) -> Array | None:
    """Codes of the tasks of held-out rows: as they are told, or as the coefficients of the rows have them."""
    if not hasattr(model, "task_index_"):
        return None
    if tasks is not None:
        if len(tasks) != n:
            raise ValueError(f"tasks has {len(tasks)} entries and there are {n} training rows: give one for each.")
        return model.task_index_.codes(list(np.asarray(tasks, dtype=object)[rows]))
    own = model.form_.task if isinstance(model.form_, DualForm) else None
    return own if own is not None and len(own) == len(rows) else None


def given_values(subject: Subject, X: Any, y: Any, tasks: Any) -> Predicted:
    """What a regressor says of rows that are given, with its intervals where it has any."""
    model, within = subject.model, arrive(subject.whole, X, through=True)[1]
    F = np.asarray(with_tasks(model.predict, within, tasks), dtype=float)
    y = np.asarray(y, dtype=float)
    if y.shape != F.shape:
        raise ValueError(f"y has shape {y.shape} and predictions have {F.shape}: give the value of every row of X.")
    y, F, covered = y.reshape(len(y), -1), F.reshape(len(F), -1), None
    if vars(model).get("residuals_") is not None:
        covered = {}
        for level in COVERAGES:
            ends = np.asarray(with_tasks(model.predict_interval, within, tasks, coverage=level)).reshape(*F.shape, 2)
            inside = (ends[..., 0] <= y) & (y <= ends[..., 1])
            covered[level] = inside, (ends[..., 1] - ends[..., 0]).mean(axis=0)
    task = task_codes(model, within, tasks) if hasattr(model, "task_index_") else None
    n = len(y)
    return Predicted(y, F, np.ones(n), np.arange(n), None, task, n, False, covered)


def coverage_of(known: Predicted, level: float) -> tuple[Array, Array]:
    """Whether values lie within their intervals (n, outputs), and mean widths of these.

    Held-out residuals are judged by the width that the other half of the rows (or groups) asks for.
    """
    if known.covered is not None:
        return known.covered[level]
    size = np.abs(known.residual)
    unit = np.arange(len(size)) if known.unit is None else known.unit
    half = np.random.default_rng(0).permutation(int(unit.max()) + 1)[unit] % 2
    widths = np.empty((2, size.shape[1]))
    for side in (0, 1):
        there = half != side
        w = witnesses(known.w[there], None if known.group is None else known.group[there])
        widths[side] = [upper_quantile(s[None, there], w, level)[0] if there.any() else np.inf for s in size.T]
    inside = size <= widths[half]
    return inside, 2 * widths.mean(axis=0)


# ------------------------------------------------------------------------------------- data


def value_data(subject: Subject, known: Predicted, shown: Shown) -> dict[str, Any]:
    """All that the page says of quantities."""
    outputs = [_output(known, j) for j in range(min(known.y.shape[1], OUTPUTS))]
    return {
        "rows": len(known.y),
        "outputs": outputs,
        "left_out": max(known.y.shape[1] - OUTPUTS, 0),
        "worst": worst_table(subject, known, shown),
        "tasks": value_tasks(subject, known) if known.task is not None else None,
    }


def _output(known: Predicted, j: int) -> dict[str, Any]:
    y, F, r, w = known.y[:, j], known.F[:, j], known.residual[:, j], known.w
    some = np.sort(np.random.default_rng(0).permutation(len(y))[:POINTS])
    low, high = np.quantile(r, [0.001, 0.999]) if len(r) > 1000 else (r.min(), r.max())
    edges = np.linspace(low, high if high > low else low + 1, 25)
    counts = np.histogram(np.clip(r, low, high), bins=edges, weights=w)[0] / w.sum()
    inside = [coverage_of(known, level) for level in COVERAGES]
    covers = [plain(np.average(i[:, j], weights=w)) for i, _ in inside]
    rmse, r2 = root_and_share(y, r, w, known.unit)
    return {
        "rmse": rmse,
        "mae": mean_of(np.abs(r), w, known.unit),
        "r2": r2,
        "points": [plain_list(y[some]), plain_list(F[some])],
        "histogram": {"edges": plain_list(edges), "share": plain_list(counts)},
        "coverage": [
            [plain(level), cover, plain(width[j])]
            for level, cover, (_, width) in zip(COVERAGES, covers, inside, strict=True)
        ],
    }


def root_and_share(y: Array, r: Array, w: Array, unit: Array | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Root of the mean squared error, and the share of the variance that is explained, with bootstrap intervals."""
    centred = y - np.average(y, weights=w)
    member = np.arange(len(y)) if unit is None else unit
    m = int(member.max()) + 1
    sums = np.column_stack(
        [np.bincount(member, weights=v, minlength=m) for v in (w, w * r**2, w * centred, w * centred**2)]
    )
    rng = np.random.default_rng(0)
    draws = np.array([np.bincount(rng.integers(m, size=m), minlength=m) @ sums for _ in range(DRAWS)])
    totals = np.vstack([sums.sum(axis=0), draws])
    totals = totals[totals[:, 0] > 0]
    root = np.sqrt(totals[:, 1] / totals[:, 0])
    spread = totals[:, 3] - totals[:, 2] ** 2 / totals[:, 0]
    share = np.where(spread > 0, 1 - totals[:, 1] / np.where(spread > 0, spread, 1), np.nan)
    tail = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    made = []
    for values in (root, share):
        known = values[np.isfinite(values)]
        low, high = np.quantile(known, tail) if len(known) else (np.nan, np.nan)
        made.append({"value": plain(values[0]), "low": plain(low), "high": plain(high)})
    return made[0], made[1]


def worst_table(subject: Subject, known: Predicted, shown: Shown) -> dict[str, Any]:
    """The rows with the largest errors, in units of the usual error of their output."""
    size = np.abs(known.residual) / np.maximum(np.sqrt(np.mean(known.residual**2, axis=0)), 1e-300)
    i, j = np.unravel_index(np.argsort(-size, axis=None, kind="stable")[:UNSURE], size.shape)
    many, tasks = known.y.shape[1] > 1, known.task is not None
    columns = [column("Row", "whole"), *([column("Output", "whole")] if many else [])]
    columns += [column("Task", "text")] if tasks else []
    columns += [column("True", "figures", 4), column("Predicted", "figures", 4), column("Difference", "figures", 4)]
    lines = []
    for row, out in zip(i.tolist(), j.tolist(), strict=True):
        line: list = [int(known.rows[row]), *([out] if many else [])]
        if known.task is not None:
            t = int(known.task[row])
            line.append(subject.tasks[t] if t >= 0 else "not known")
        line += [plain(A[row, out]) for A in (known.y, known.F, known.residual)]
        lines.append([*line, *shown.cells(int(known.rows[row]))])
    return table("The rows with the largest errors", [*columns, *shown.header()], lines, "rows")


def value_tasks(subject: Subject, known: Predicted) -> dict[str, Any]:
    """A line for every task (first output), those with the largest errors first."""
    inside, task = coverage_of(known, MAIN)[0][:, 0], known.task
    columns = [
        column("Task", "text"),
        column("Rows", "whole"),
        column("Mean", "figures", 4),
        column("RMSE", "figures", 4),
    ]
    columns += [column("MAE", "figures", 4), column("Mean difference", "figures", 4), column("R²")]
    columns.append(column(f"Within {MAIN:.0%} interval", "percent", 1))
    lines = []
    for t, name in enumerate(subject.tasks):
        here = np.flatnonzero(task == t)
        if len(here):
            lines.append(
                [name, len(here), *_task_cells(known, here), plain(np.average(inside[here], weights=known.w[here]))]
            )
    lines.sort(key=lambda line: -(line[3] or 0.0))
    return table("Task by task", columns, lines, "tasks")


def _task_cells(known: Predicted, here: Array) -> list:
    y, r, w = known.y[here, 0], known.residual[here, 0], known.w[here]
    mean = np.average(y, weights=w)
    squares, spread = np.average(r**2, weights=w), np.average((y - mean) ** 2, weights=w)
    share = 1 - squares / spread if spread > 0 and len(here) > 1 else np.nan
    return [
        plain(v) for v in (mean, np.sqrt(squares), np.average(np.abs(r), weights=w), np.average(r, weights=w), share)
    ]
