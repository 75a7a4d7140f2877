"""Evaluation of a regressor: errors, coverage of intervals, tasks, and the rows with the largest errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.calibration.conformal import upper_quantile
from leastwise.calibration.extrapolation import independent_weights
from leastwise.fitting.new_rows import task_codes
from leastwise.metrics.reliability import resampled_groups
from leastwise.report.evaluation import LEVEL, Subject, call_with_tasks, mean_interval
from leastwise.report.formatting import column, plain, plain_list, table
from leastwise.report.tables import MAX_LINES, ShownColumns
from leastwise.solvers.solve_tasks import DualForm
from leastwise.utils.unwrap import arrive

Array = np.ndarray

#: Nominal coverages of the intervals, and the one in the table of tasks.
COVERAGES, MAIN_COVERAGE = (0.5, 0.8, 0.9, 0.95), 0.9
#: At most this many points in a scatter plot, and outputs with charts.
MAX_POINTS, MAX_OUTPUTS = 700, 4
BOOTSTRAP_DRAWS = 200


@dataclass(frozen=True)
class ValuePredictions:
    """Predictions for rows that the model was not trained on, and the true values.

    Attributes
    ----------
    y, F : ndarray of shape (n, outputs)
    w : ndarray of shape (n,)
    rows : ndarray of int of shape (n,)
    unit : ndarray of int of shape (n,), optional
        Dependent rows have the same number, from 0.
    task : ndarray of int of shape (n,), optional
    n : int
        Number of rows, including those that do not count.
    heldout : bool
    covered : dict of float to (inside, width), optional
        For rows that were given: whether the model's intervals contain the value (n, outputs), and mean widths.
    group : ndarray of int of shape (n,), optional
        The user's groups; each counts as one observation in intervals.
    scale : ndarray of shape (n, outputs), optional
        Scales of adaptive intervals, estimated without the row; by default 1.
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
    scale: Array | None = None

    @property
    def residual(self) -> Array:
        """True value minus prediction."""
        return self.y - self.F


def heldout_values(subject: Subject, tasks: Any = None) -> ValuePredictions | None:
    """The held-out rows of a regressor; None where there are none."""
    known = vars(subject.model).get("residuals_")
    if known is None:
        return None
    model = subject.model
    every = np.asarray(model.heldout_prediction_, dtype=float)
    every = every.reshape(len(every), -1)
    y = known.values * model.unit_ + model.offset_
    F = np.asarray(model._shown(known.values - known.residual), dtype=float).reshape(y.shape)
    n = len(every)
    rows = np.flatnonzero(~np.isnan(every[:, 0])) if known.position is None else known.position
    # With leave-one-out the folds are duplicates and groups, which are dependent; larger folds are not.
    unit = known.fold if isinstance(model.cv, str) and model.cv == "loo" else None
    task = _task_codes(model, tasks, rows, n)
    scale = None if known.spread is None else known.spread.heldout
    return ValuePredictions(y, F, known.w, rows, unit, task, n, group=known.group, scale=scale)


def _task_codes(model: Any, tasks: Any, rows: Array, n: int) -> Array | None:
    """Codes of the tasks of held-out rows: those given, or those stored with the coefficients of the rows."""
    if not hasattr(model, "task_index_"):
        return None
    if tasks is not None:
        if len(tasks) != n:
            raise ValueError(
                f"tasks has {len(tasks)} entries and there are {n} training rows: give one entry for each."
            )
        return model.task_index_.codes(list(np.asarray(tasks, dtype=object)[rows]))
    own = model.form_.task if isinstance(model.form_, DualForm) else None
    return own if own is not None and len(own) == len(rows) else None


def given_values(subject: Subject, X: Any, y: Any, tasks: Any) -> ValuePredictions:
    """Rows that are given with their true values; with intervals where the model has them."""
    model, inner_rows = subject.model, arrive(subject.whole, X, through=True)[1]
    F = np.asarray(call_with_tasks(model.predict, inner_rows, tasks), dtype=float)
    y = np.asarray(y, dtype=float)
    if y.shape != F.shape:
        raise ValueError(
            f"y has shape {y.shape} and predictions have shape {F.shape}: give the value of every row of X."
        )
    y, F, covered = y.reshape(len(y), -1), F.reshape(len(F), -1), None
    if vars(model).get("residuals_") is not None:
        covered = {}
        for level in COVERAGES:
            ends = np.asarray(call_with_tasks(model.predict_interval, inner_rows, tasks, coverage=level)).reshape(
                *F.shape, 2
            )
            inside = (ends[..., 0] <= y) & (y <= ends[..., 1])
            covered[level] = inside, (ends[..., 1] - ends[..., 0]).mean(axis=0)
    task = task_codes(model, inner_rows, tasks) if hasattr(model, "task_index_") else None
    n = len(y)
    return ValuePredictions(y, F, np.ones(n), np.arange(n), None, task, n, False, covered)


def coverage_of(known: ValuePredictions, level: float) -> tuple[Array, Array]:
    """Whether values lie within their intervals (n, outputs), and the mean widths of the intervals.

    The intervals of held-out rows have the width that the residuals of the other half of the rows (or groups) need,
    relative to the scales of the rows.
    """
    if known.covered is not None:
        return known.covered[level]
    scale = np.ones(known.y.shape) if known.scale is None else known.scale
    size = np.abs(known.residual) / scale
    unit = np.arange(len(size)) if known.unit is None else known.unit
    half = np.random.default_rng(0).permutation(int(unit.max()) + 1)[unit] % 2
    widths = np.empty((2, size.shape[1]))
    for side in (0, 1):
        there = half != side
        w = independent_weights(known.w[there], None if known.group is None else known.group[there])
        widths[side] = [upper_quantile(s[None, there], w, level)[0] if there.any() else np.inf for s in size.T]
    inside = size <= widths[half]
    return inside, 2 * (widths[half] * scale).mean(axis=0)


# ------------------------------------------------------------------------------------- data


def value_data(subject: Subject, known: ValuePredictions, shown: ShownColumns) -> dict[str, Any]:
    """The part of a report on a regressor."""
    outputs = [_output(known, j) for j in range(min(known.y.shape[1], MAX_OUTPUTS))]
    return {
        "rows": len(known.y),
        "outputs": outputs,
        "left_out": max(known.y.shape[1] - MAX_OUTPUTS, 0),
        "largest_errors": largest_errors(subject, known, shown),
        "tasks": _task_table(subject, known) if known.task is not None else None,
    }


def _output(known: ValuePredictions, j: int) -> dict[str, Any]:
    y, F, r, w = known.y[:, j], known.F[:, j], known.residual[:, j], known.w
    some = np.sort(np.random.default_rng(0).permutation(len(y))[:MAX_POINTS])
    low, high = np.quantile(r, [0.001, 0.999]) if len(r) > 1000 else (r.min(), r.max())
    edges = np.linspace(low, high if high > low else low + 1, 25)
    counts = np.histogram(np.clip(r, low, high), bins=edges, weights=w)[0] / w.sum()
    inside = [coverage_of(known, level) for level in COVERAGES]
    covers = [plain(np.average(i[:, j], weights=w)) for i, _ in inside]
    rmse, r2 = _rmse_and_r2(y, r, w, known.unit)
    return {
        "rmse": rmse,
        "mae": mean_interval(np.abs(r), w, known.unit),
        "r2": r2,
        "points": [plain_list(y[some]), plain_list(F[some])],
        "histogram": {"edges": plain_list(edges), "share": plain_list(counts)},
        "coverage": [
            [plain(level), cover, plain(width[j])]
            for level, cover, (_, width) in zip(COVERAGES, covers, inside, strict=True)
        ],
    }


def _rmse_and_r2(y: Array, r: Array, w: Array, unit: Array | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """RMSE and R² with bootstrap intervals."""
    centred = y - np.average(y, weights=w)
    member = np.arange(len(y)) if unit is None else unit
    m = int(member.max()) + 1
    sums = np.column_stack(
        [np.bincount(member, weights=v, minlength=m) for v in (w, w * r**2, w * centred, w * centred**2)]
    )
    resamples = resampled_groups(m, BOOTSTRAP_DRAWS, np.random.default_rng(0))
    draws = np.array([times @ sums for times in resamples])
    totals = np.vstack([sums.sum(axis=0), draws])
    totals = totals[totals[:, 0] > 0]
    rmse = np.sqrt(totals[:, 1] / totals[:, 0])
    variance = totals[:, 3] - totals[:, 2] ** 2 / totals[:, 0]
    r2 = np.where(variance > 0, 1 - totals[:, 1] / np.where(variance > 0, variance, 1), np.nan)
    tail = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    made = []
    for values in (rmse, r2):
        known = values[np.isfinite(values)]
        low, high = np.quantile(known, tail) if len(known) else (np.nan, np.nan)
        made.append({"value": plain(values[0]), "low": plain(low), "high": plain(high)})
    return made[0], made[1]


def largest_errors(subject: Subject, known: ValuePredictions, shown: ShownColumns) -> dict[str, Any]:
    """The rows with the largest errors, relative to the RMSE of their output."""
    size = np.abs(known.residual) / np.maximum(np.sqrt(np.mean(known.residual**2, axis=0)), 1e-300)
    i, j = np.unravel_index(np.argsort(-size, axis=None, kind="stable")[:MAX_LINES], size.shape)
    many, tasks = known.y.shape[1] > 1, known.task is not None
    columns = [column("Row", "whole"), *([column("Output", "whole")] if many else [])]
    columns += [column("Task", "text")] if tasks else []
    columns += [column("True", "figures", 4), column("Predicted", "figures", 4), column("Residual", "figures", 4)]
    lines = []
    for row, out in zip(i.tolist(), j.tolist(), strict=True):
        line: list = [int(known.rows[row]), *([out] if many else [])]
        if known.task is not None:
            t = int(known.task[row])
            line.append(subject.tasks[t] if t >= 0 else "unknown")
        line += [plain(A[row, out]) for A in (known.y, known.F, known.residual)]
        lines.append([*line, *shown.cells(int(known.rows[row]))])
    return table("Largest errors", [*columns, *shown.header()], lines, "rows")


def _task_table(subject: Subject, known: ValuePredictions) -> dict[str, Any]:
    """A line for every task (first output), those with the largest RMSE first."""
    inside, task = coverage_of(known, MAIN_COVERAGE)[0][:, 0], known.task
    columns = [
        column("Task", "text"),
        column("Rows", "whole"),
        column("Mean", "figures", 4),
        column("RMSE", "figures", 4),
    ]
    columns += [column("MAE", "figures", 4), column("Mean residual", "figures", 4), column("R²")]
    columns.append(column(f"In {MAIN_COVERAGE:.0%} interval", "percent", 1))
    lines = []
    for t, name in enumerate(subject.tasks):
        here = np.flatnonzero(task == t)
        if len(here):
            lines.append(
                [name, len(here), *_task_cells(known, here), plain(np.average(inside[here], weights=known.w[here]))]
            )
    lines.sort(key=lambda line: -(line[3] or 0.0))
    return table("By task", columns, lines, "tasks")


def _task_cells(known: ValuePredictions, here: Array) -> list:
    y, r, w = known.y[here, 0], known.residual[here, 0], known.w[here]
    mean = np.average(y, weights=w)
    squares, variance = np.average(r**2, weights=w), np.average((y - mean) ** 2, weights=w)
    share = 1 - squares / variance if variance > 0 and len(here) > 1 else np.nan
    return [
        plain(v) for v in (mean, np.sqrt(squares), np.average(np.abs(r), weights=w), np.average(r, weights=w), share)
    ]
