"""The one path of ``fit``: check, read, plan, choose, solve, store.

Every estimator passes its ``Spec``. Dask collections are fitted like streams, with Dask as the source.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sklearn.exceptions import ConvergenceWarning

from leastwise.estimators.configuring import configure
from leastwise.estimators.planning import (
    check_plannable,
    check_size,
    choose_solver,
    draft_plan,
    is_shape,
    plan_of_shape,
)
from leastwise.estimators.ridge_problem import choose
from leastwise.estimators.solver_table import SOLVERS
from leastwise.estimators.solving import Fitted, make_problem
from leastwise.estimators.source_fitting import fit_dask
from leastwise.estimators.spec import Spec
from leastwise.estimators.storing import store
from leastwise.estimators.task_streaming import fit_dask_tasks
from leastwise.estimators.validation import Dataset, computed, read_dataset
from leastwise.problem.inputs import Inputs
from leastwise.solvers.choose import timed
from leastwise.solvers.evaluator import Candidate, Settings
from leastwise.solvers.plan import Plan
from leastwise.solvers.solve import Solution
from leastwise.solvers.solve_tasks import DualForm, TaskSolution
from leastwise.solvers.task_evaluators import CoupledRefitEvaluator
from leastwise.utils.arrays import is_dask
from leastwise.utils.threads import threads_for
from leastwise.utils.warn import warn_user

if TYPE_CHECKING:
    from leastwise.estimators.base import KernelEstimator


def fit(model: Any, spec: Spec, X: Any, y: Any, sample_weight: Any, groups: Any, tasks: Any = None) -> Any:
    """Fit a model to rows."""
    if is_dask(X) and not spec.logistic:
        if spec.many_tasks:
            return fit_dask_tasks(model, spec, X, y, sample_weight, groups, tasks)
        return fit_dask(model, X, y, sample_weight, groups)
    data, settings = prepare(model, spec, X, y, sample_weight, groups, tasks)
    check_size(spec, data, settings)
    # Tasks with few basis functions are eliminated one by one.
    with threads_for(0 if spec.many_tasks and spec.few_functions(data.kernel) else len(data.rows)):
        spec, data, settings = configure(spec, data, settings)
        if spec.logistic:
            return store(model, spec, data, fit_logistic(spec, data, settings))
        solver = SOLVERS[choose_solver(spec, data, settings)]
        data = data if solver.device_rows else data.to_numpy()
        return store(model, spec, data, solver.fit(spec, data, settings))


def prepare(
    model: Any, spec: Spec, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, tasks: Any = None
) -> tuple[Dataset, Settings]:
    """Checked parameters, validated rows, and the settings that do not change during a search."""
    data = read_dataset(spec, model, X, y, sample_weight, groups, spec.check(), tasks)
    return data, spec.settings(data.kernel, data.targets, data.rows)


# -------------------------------------------------------------------------- plan


def plan(
    self: KernelEstimator,
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
    self: KernelEstimator,
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


# --------------------------------------------------------- kernel logistic regression


def fit_logistic(spec: Spec, data: Dataset, settings: Settings) -> Fitted:
    """Kernel logistic regression: the same search, by refits, and Newton's method or L-BFGS on all rows."""
    choice = choose(make_problem(spec, data, settings))
    point = choice.outcome
    refits = choice.evaluator.with_sharing(point.sharing)
    solution, n_iter = _solve_logistic(spec, refits, point)
    choice = replace(choice, evaluator=refits, searched=refits)
    return Fitted(choice, settings, refits.basis, solution, False, point.alpha, {"n_iter_": n_iter})


def _solve_logistic(spec: Spec, refits: Any, point: Candidate) -> tuple[Any, int]:
    """Fit to all rows at the chosen point."""
    design, dtype = refits.design(point.sigma), refits.Z.dtype
    found = refits.solve(design.D, refits.rows.y, refits.rows.w, point.alpha)
    if not found.converged or (point.sigma, point.alpha) in refits.unconverged:
        where = "The fit" if not found.converged else "A refit for the held-out scores"
        warn_user(
            f"{where} did not converge (max_iter={spec.max_iter}, tol={spec.tol:g}; the norm of the gradient "
            f"on all rows is {found.gradient:.1e}): raise max_iter, alpha or tol.",
            ConvergenceWarning,
        )
    coef = design.factor.unwhiten(found.Theta)
    coef = coef if refits.penalised else coef.astype(dtype)
    intercept, jitter = found.intercept.astype(dtype), design.factor.jitter
    n_iter = max(found.n_iter, 1)
    if isinstance(refits, CoupledRefitEvaluator):
        return TaskSolution(DualForm(coef, refits.task, refits.coupling_matrix), intercept, jitter), n_iter
    return Solution(coef, intercept, jitter), n_iter
