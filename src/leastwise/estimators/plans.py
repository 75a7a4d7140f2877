"""``plan`` of the estimators: solver, operations, memory and time of a fit, before it is made."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from leastwise.fitting.dataset import computed
from leastwise.fitting.fit import prepare
from leastwise.fitting.planning import check_plannable, draft_plan, is_shape, plan_of_shape
from leastwise.problem.inputs import Inputs
from leastwise.solvers.choose import timed
from leastwise.solvers.plan import Plan


def plan(
    self: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    *,
    n_outputs: int | None = None,
) -> Plan:
    """Solver, operations, memory and time that ``fit`` would need. Nothing is fitted or changed.

    Parameters
    ----------
    %(X)s
        %(shape_instead)s
    %(y.any)s
    %(sample_weight)s
    %(groups)s
    %(n_outputs)s

    Returns
    -------
    Plan
        ``print(plan)`` shows it as a table.
    """
    given = {"y": y, "sample_weight": sample_weight, "groups": groups}
    return _plan(self, X, given, n_outputs, 1)


def task_plan(
    self: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    tasks: Any = None,
    *,
    n_outputs: int | None = None,
    n_tasks: int = 10,
) -> Plan:
    """Solver, operations, memory and time that ``fit`` would need. Nothing is fitted or changed.

    Parameters
    ----------
    %(X.task)s
        %(shape_instead)s
    %(y.any)s
    %(sample_weight)s
    %(groups)s
    %(tasks)s
    %(n_outputs)s
    n_tasks : int, default=10
        If X is a shape: the number of tasks.

    Returns
    -------
    Plan
        ``print(plan)`` shows it as a table.
    """
    given = {"y": y, "sample_weight": sample_weight, "groups": groups, "tasks": tasks}
    return _plan(self, X, given, n_outputs, int(n_tasks))


def _plan(model: Any, X: Any, given: dict[str, Any], n_outputs: int | None, n_tasks: int) -> Plan:
    spec = model._spec()
    if is_shape(X):
        return plan_of_shape(spec, X, n_outputs, n_tasks, given)
    check_plannable(spec, X)
    # A random generator must not be advanced, and validation writes the columns to the model.
    spec = replace(spec, random_state=copy.deepcopy(spec.random_state), cv=copy.deepcopy(spec.cv))
    data, settings = prepare(copy.copy(model), spec, X, **given)
    if computed(data.kernel):
        inputs = Inputs.fit(None, data.rows.X, data.rows.w, data.category_columns)
        data = data if inputs.identity else data.with_inputs(inputs, data.kernel)  # with the columns of categories
    return timed(draft_plan(spec, data, settings))
