"""The size of a model of a table: the number of kernel centres, and the plan of the fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leastwise.solvers.plan import Plan, duration
from leastwise.sources.blocks import TableError
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
    return plan((len(found.used), len(found.encoder.get_feature_names_out())), **sizes)


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
