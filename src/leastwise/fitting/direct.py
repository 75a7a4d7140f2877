"""Direct solvers: choose the hyperparameters, solve by a factorisation, and prune.

``Fitted`` is the result of every solver: the chosen point, the basis functions, the coefficients, and details of the
fit.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from leastwise.fitting.dataset import Dataset
from leastwise.fitting.feature_weights import cross_fit_heldout
from leastwise.fitting.label_problem import LabelProblem, relation_of
from leastwise.fitting.ridge_problem import RidgeProblem, choose
from leastwise.fitting.spec import Spec
from leastwise.fitting.task_problem import TaskProblem, coupling_of, shared_coupling
from leastwise.model_selection.objective import ValueObjective
from leastwise.model_selection.search import SearchResult
from leastwise.problem.basis import Basis
from leastwise.problem.kernels import Precomputed
from leastwise.solvers.arrow import ArrowEvaluator
from leastwise.solvers.evaluator import Candidate, Evaluator, Rows, Settings
from leastwise.solvers.heldout import HeldOut
from leastwise.solvers.label_evaluators import LabelRows
from leastwise.solvers.solve import (
    LabelSolution,
    Solution,
    scores,
    solve,
    solve_labels,
)
from leastwise.solvers.solve_tasks import (
    DualForm,
    TaskSolution,
    evaluate_tasks,
    solve_tasks,
    stream_tasks,
)
from leastwise.solvers.task_evaluators import CoupledEvaluator, CoupledRefitEvaluator
from leastwise.utils.arrays import in_precision
from leastwise.utils.warn import warn_user

Array = np.ndarray
#: Share of the rows that one step of pruning removes.
PRUNE_STEP = 0.2


@dataclass(frozen=True)
class Fitted:
    """A fitted model, and details of the fit.

    Attributes
    ----------
    choice : SearchResult
        Search result, with the outcome of this model.
    settings : Settings
    basis : Basis
        Its row numbers refer to the rows with a weight above 0.
    solution : Solution, TaskSolution or LabelSolution
    plain : bool
        Whether every row with a weight above 0 has a coefficient and was held out.
    chosen : float
        The alpha chosen for all rows; pruning changes that of the outcome.
    attributes : dict
        Fitted attributes of this solver, such as ``n_iter_``.
    """

    choice: SearchResult
    settings: Settings
    basis: Basis
    solution: Any
    plain: bool = False
    chosen: float = np.nan
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def outcome(self) -> Candidate:
        """The chosen point."""
        return self.choice.outcome

    def in_precision(self, dtype: Any) -> Fitted:
        """The same with scores, calibrator and intercepts of this type; coefficients keep their digits."""
        best, found = self.outcome, self.solution
        best = replace(best, F=best.F.astype(dtype), calibrator=in_precision(best.calibrator, dtype))
        names = [name for name in ("intercept", "own") if getattr(found, name, None) is not None]
        found = replace(found, **{name: getattr(found, name).astype(dtype) for name in names})
        return replace(self, choice=replace(self.choice, outcome=best), solution=found)


# ------------------------------------------------------------------------ direct


def make_problem(spec: Spec, data: Dataset, settings: Settings) -> RidgeProblem:
    """The coupled ridge of these data."""
    if spec.many_labels:
        return LabelProblem(spec, data, settings, relation_of(spec, data))
    if spec.many_tasks:
        coupling = shared_coupling(spec, data) if spec.logistic else coupling_of(spec, data)
        return TaskProblem(spec, data, settings, coupling)
    return RidgeProblem(spec, data, settings)


def fit_direct(spec: Spec, data: Dataset, settings: Settings, seen: Sequence[dict] = ()) -> Fitted:
    """Choose, solve by a factorisation, and prune; ``seen`` are points of an earlier search."""
    problem, solution = make_problem(spec, data, settings), None
    choice = cross_fit_heldout(problem, choose(problem))
    if spec.many_tasks:
        choice, solution = _with_scores_of_all(spec, data, settings, choice)
    choice = replace(choice, seen=[*seen, *choice.seen])
    if spec.prune is not None:
        return _prune(spec, data, choice)
    evaluator, best = choice.evaluator, choice.outcome
    solution = _solved(evaluator, best) if solution is None else solution
    attributes: dict[str, Any] = {}
    if isinstance(solution, LabelSolution):
        attributes = label_attributes(spec, solution)
    elif spec.machine:
        attributes = {"n_iter_": 1}  # a factorisation is one step
    plain = evaluator.basis.square and not evaluator.streams
    return Fitted(choice, evaluator.settings, evaluator.basis, solution, plain, best.alpha, attributes)


def _with_scores_of_all(
    spec: Spec, data: Dataset, settings: Settings, found: SearchResult
) -> tuple[SearchResult, TaskSolution | None]:
    """The choice at its sharing; if only some tasks were evaluated, with held-out scores of all rows.

    These come with the solution.
    """
    best, evaluator, solution = found.outcome, found.evaluator.with_sharing(found.outcome.sharing), None
    if spec.cv is not None and len(best.F) != len(data.rows):
        assert isinstance(evaluator, ArrowEvaluator)
        solution, held = stream_tasks(evaluator, best.sigma, best.alpha, hold=True)
        assert held is not None
        held = evaluator.without_rounding(held)
        score, calibrator = settings.objective(data.rows, held, None)
        best = replace(best, F=held.F, score=score, calibrator=calibrator)
    searched = found.searched.with_sharing(best.sharing)
    return replace(found, outcome=best, evaluator=evaluator, searched=searched), solution


def _solved(evaluator: Any, best: Candidate, keep: bool = False) -> Any:
    """The exact solution of an evaluator, which must not be used afterwards unless ``keep``."""
    if isinstance(evaluator.rows, LabelRows):
        return solve_labels(evaluator, best.sigma, best.alpha, best.sharing or 0.0)
    if isinstance(evaluator, CoupledEvaluator | ArrowEvaluator):
        return solve_tasks(evaluator, best.sigma, best.alpha)
    if keep:  # the solver overwrites the pairs
        evaluator = copy.copy(evaluator)
        evaluator.pairs = evaluator.pairs.copy()
    return solve(evaluator, best.sigma, best.alpha)


def label_attributes(spec: Spec, solution: LabelSolution) -> dict[str, Any]:
    """Iterations and residual of conjugate gradients; warns if they did not converge."""
    if not solution.summary:
        return {"n_iter_": 1}  # two decompositions are one step
    n_iter = max(1, *(summary.n_iter for summary in solution.summary))
    residual = max(float(np.max(summary.residual, initial=0.0)) for summary in solution.summary)
    if not all(summary.converged for summary in solution.summary):
        warn_user(
            f"Conjugate gradients stopped after {n_iter} iterations with a residual of "
            f"{residual:.1e} of the right-hand side (tol={spec.tol:g}): raise max_iter, tol or alpha. Conjugate "
            "gradients need a positive definite kernel. The relative error of predictions is of that order.",
            ConvergenceWarning,
        )
    return {"n_iter_": n_iter, "residual_": residual}


# ----------------------------------------------------------------------- pruning


def _prune(spec: Spec, data: Dataset, choice: SearchResult) -> Fitted:
    """Remove the rows with the smallest coefficients, a few at a time, and score the remaining model on all rows.

    The ridge on the sum of the losses does not change. Remaining rows are held out one at a time; the removed ones
    are predicted, since the model has not seen them.
    """
    evaluator, best = choice.evaluator, choice.outcome
    n, w, index = len(data.rows), data.rows.w, np.arange(len(data.rows))
    some, alpha = evaluator, best.alpha
    for count in prune_sizes(n, spec.rows_after_pruning(n)):
        solution = _solved(some, replace(best, alpha=alpha), keep=True)
        keep = heaviest(np.linalg.norm(_row_coef(solution), axis=1), count, some.rows.task)
        index = index[keep]
        some = _part(spec, data, evaluator, index)
        alpha = best.alpha * float(w.sum() / w[index].sum())
    held = None if spec.cv is None else some.without_rounding(some.heldout(best.sigma, 1)(alpha))
    solution = _solved(some, replace(best, alpha=alpha))
    pruned = replace(best, alpha=alpha)
    pruning: dict[str, Any] = {"n_rows": n, "n_kept": len(index)}
    if held is not None:
        F = np.empty((n, held.F.shape[1]), dtype=held.F.dtype)
        F[index], removed = held.F, np.setdiff1d(np.arange(n), index)
        if len(removed):
            F[removed] = _predicted(some, solution, best.sigma, data.rows, removed, index)
        objective = evaluator.settings.objective
        score, calibrator = objective(data.rows, HeldOut(F), None)
        whole = best.score
        if isinstance(objective, ValueObjective):  # no penalty for degrees of freedom, as for the pruned model
            whole, _ = objective(data.rows, HeldOut(best.F), None)
        pruning |= {"score": whole, "pruned_score": score}
        _warn_ruined(spec, data.rows, objective, pruning)
        pruned = replace(pruned, F=F, calibrator=calibrator, score=score)
    basis = replace(some.basis, rows=index)
    attributes = {"n_iter_": 1, "pruning_": pruning}
    return Fitted(replace(choice, outcome=pruned), evaluator.settings, basis, solution, False, best.alpha, attributes)


def _part(spec: Spec, data: Dataset, evaluator: Any, index: Array) -> Any:
    """The evaluator restricted to some rows."""
    settings = evaluator.settings
    rows = data.rows.take(index, isinstance(settings.kernel, Precomputed))
    basis = spec.basis_of(rows, data.seed, settings)
    if not isinstance(evaluator, CoupledEvaluator):
        return Evaluator(rows, basis, settings)
    part = CoupledEvaluator(rows, basis, settings, evaluator.coupling)
    return part.with_sharing(evaluator.coupling_matrix.sharing).with_intercept_ratio(evaluator.intercept_ratio)


def _row_coef(solution: Any) -> Array:
    """A coefficient for every row."""
    if isinstance(solution, Solution):
        return solution.coef
    if not isinstance(solution.form, DualForm):
        raise ValueError("prune= needs a coefficient for every row: use solver='dual' with it.")
    return solution.form.A


def _predicted(evaluator: Any, solution: Any, sigma: float, rows: Rows, removed: Array, kept: Array) -> Array:
    """Scores of the rows ``removed`` by a model of the rows ``kept``."""
    precomputed = isinstance(evaluator.settings.kernel, Precomputed)
    if isinstance(solution, Solution):
        if precomputed:
            return rows.X[np.ix_(removed, kept)] @ solution.coef + solution.intercept
        return scores(solution, evaluator.settings, sigma, rows.X[removed], evaluator.basis)
    assert rows.task is not None
    task = rows.task[removed]
    if precomputed:
        F = solution.form.weigh(rows.X[np.ix_(removed, kept)].copy(), task)
    else:
        kernel = evaluator.settings.kernel
        F, _ = evaluate_tasks(kernel, sigma, rows.X[removed], task, evaluator.basis.centers, None, solution.form)
    return F + solution.intercept + (0 if solution.own is None else solution.own[task])


def _warn_ruined(spec: Spec, rows: Rows, objective: Any, pruning: dict[str, Any]) -> None:
    """Warn if pruning lost more than half of the explained score."""
    mean = np.average(rows.targets(objective.n_outputs), axis=0, weights=rows.w).astype(rows.X.dtype)
    nothing, _ = objective(rows, HeldOut(np.tile(mean, (len(rows), 1))), None)
    whole, left = pruning["score"], pruning["pruned_score"]
    if whole > nothing and left - nothing < (whole - nothing) / 2:
        warn_user(
            f"prune={spec.prune!r} degrades this model: {objective.scorer.name} on held-out rows is "
            f"{objective.scorer.shown(left):.3g} after it, {objective.scorer.shown(whole):.3g} before, and "
            f"{objective.scorer.shown(nothing):.3g} for the mean alone. The rows with the largest weights are those "
            f"that fit worst, including noise. Prune less, or use n_centers={pruning['n_kept']}, "
            "which predicts as fast and is trained on all rows."
        )


def prune_sizes(n: int, kept: int) -> list[int]:
    """Numbers of rows after each step of pruning."""
    sizes = []
    while n > kept:
        n = max(kept, int(n * (1 - PRUNE_STEP)))
        sizes.append(n)
    return sizes


def heaviest(size: Array, count: int, task: Array | None) -> Array:
    """Rows with the largest coefficients, in order; at least two of every task, or all if it has fewer."""
    order, count = np.argsort(-size, kind="stable"), max(count, 2)
    if task is not None:
        rank = np.empty(len(size), dtype=int)
        by_task = order[np.argsort(task[order], kind="stable")]
        starts = np.searchsorted(task[by_task], task[by_task])
        rank[by_task] = np.arange(len(size)) - starts
        order = np.concatenate([order[rank[order] < 2], order[rank[order] >= 2]])
        count = max(count, int(np.sum(rank < 2)))
    return np.sort(order[:count])


# -------------------------------------------------- kernel logistic regression


def fit_logistic(spec: Spec, data: Dataset, settings: Settings) -> Fitted:
    """Kernel logistic regression: the same search, by refits, and Newton's method or L-BFGS on all rows."""
    problem = make_problem(spec, data, settings)
    choice = cross_fit_heldout(problem, choose(problem))
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
