"""The size of a model of a table: the number of kernel centres, and the plan of the fit.

The plan has the steps of the estimator, and those of the table: its columns are encoded before, and baselines, column
effects and the distributions of the columns are computed after.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from leastwise.solvers.plan import Plan, Step, duration
from leastwise.solvers.work import Work, kernel, speed
from leastwise.sources.blocks import TableError
from leastwise.tables import effects, linear
from leastwise.tables.prepare import Prepared
from leastwise.utils.warn import warn_user

#: Up to this many rows, every row is a kernel centre, unless fewer are as good (``n_centers="auto"`` of the models).
MANY_ROWS = 10_000
#: With more rows there are so many centres; fewer if memory or time are limited.
CENTERS = (500, 200, 100, 50)


def sized_model(
    make: Callable[[Any], Any], found: Prepared, n_centers: Any, time_limit: float | None
) -> tuple[Any, Plan | None]:
    """The estimator with its number of centres, and its plan; None if it has none.

    Parameters
    ----------
    make : callable
        Returns the estimator with this number of centres.
    found : Prepared
        The training data.
    n_centers : "auto", int or None
        "auto" takes the first number that keeps the limits of memory and time.
    time_limit : float or None
        Seconds.
    """
    if n_centers != "auto":
        model = make(n_centers)
        return model, plan_of(model, found)
    n = len(found.used)
    numbers: list[Any] = ["auto"] * (n <= MANY_ROWS) + [count for count in CENTERS if count < n]
    for count in numbers or ["auto"]:
        model = make(count)
        plan = plan_of(model, found)
        if plan is None or (plan.fits and (time_limit is None or plan.seconds <= time_limit)):
            return model, plan
    return model, plan


def plan_of(model: Any, found: Prepared) -> Plan | None:
    """The plan of a fit to the training data, from their size; None for estimators that have no plans."""
    plan = getattr(model, "plan", None)
    if plan is None:
        return None
    kind, y = found.target.kind, found.target.y
    outputs = 1 if kind == "numbers" else len(np.unique(y)) if kind == "classes" else 2 * y.shape[1]
    sizes: dict[str, Any] = {"n_outputs": outputs}
    if "tasks" in found.params:
        sizes["n_tasks"] = len(set(found.params["tasks"].tolist()))
    made: Plan = plan((len(found.used), len(found.encoder.get_feature_names_out())), **sizes)
    before, after = table_steps(found, made, sizes.get("n_tasks", 0))
    steps = (*before, *made.steps[:-1], *after)
    room = max(step.peak_bytes for step in steps) + 16 * len(found.used) * len(found.encoder.get_feature_names_out())
    return replace(
        made,
        steps=(*steps, made.steps[-1]),
        peak_bytes=max(made.peak_bytes, room),
        flops=sum(step.flops for step in steps),
        seconds=sum(step.seconds for step in steps),
    )


#: Numbers that are read or written for a cell that is encoded, and for one whose distribution is stored.
ENCODED, BINNED = 100.0, 100.0
#: The same for an entry of the features of the linear baseline, for all its fits, and small operations of these.
LOGISTIC, RIDGE, FITS = 400.0, 200.0, 10_000.0
#: Small operations of a call for predictions.
PREDICTED = 1500.0


def table_steps(found: Prepared, plan: Plan, n_tasks: int) -> tuple[list[Step], list[Step]]:
    """The steps of a fit to a table before and after that of the estimator."""
    n, columns = len(found.used), sum(column.used for column in found.encoder.columns_)
    width = sum(column.n_features for column in found.encoder.columns_)
    rows, features = min(n, linear.MAX_ROWS), width + n_tasks
    cells = float(rows) * features
    if found.target.kind == "numbers":
        fits = Work(factors=RIDGE * cells * features, calls=FITS)
    else:
        fits = Work(numbers=LOGISTIC * cells * plan.n_outputs, calls=FITS)
    points = effects.LINES * effects.POINTS
    shown = min(columns, effects.MAX_COLUMNS)
    asked = min(effects.MAX_ROWS, n, max(effects.MAX_PREDICTIONS // max(shown, 1), 20)) * (shown + points)
    predicted = kernel(asked, plan.n_centers, columns) * 1.5 + Work(
        products=2.0 * asked * plan.n_centers * plan.n_outputs, calls=PREDICTED * (shown + 2 * effects.LINES)
    )
    room = int(8 * cells * 3)
    return [_step("encode columns", n, Work(numbers=ENCODED * n * columns), 16 * n * columns)], [
        _step("baselines", rows, fits, room),
        _step("column effects", asked, predicted, int(min(8 * asked * plan.n_centers, 2**24))),
        _step("distributions of columns", n, Work(numbers=BINNED * n * columns), 24 * n),
    ]


def _step(what: str, rows: int, work: Work, peak_bytes: int) -> Step:
    return Step(what, rows, 1, work.flops, peak_bytes, speed(np.float64).seconds(work))


def check_time_limit(limit: Any) -> None:
    """Raise an error unless a time limit is None or a positive number of seconds."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0):
        raise TableError(f"time_limit={limit!r} must be a number of seconds above 0, or None.")


def warn_time_limit(plan: Plan | None, time_limit: float | None) -> None:
    """Warn if a fit is planned to take longer than its limit."""
    if plan is not None and time_limit is not None and plan.seconds > time_limit:
        warn_user(
            f"The fit is planned to take about {duration(plan.seconds)}, more than the time limit of "
            f"{duration(time_limit)}, with {plan.n_centers:,} kernel centres: the search will stop at the limit."
        )
