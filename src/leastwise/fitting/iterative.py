"""Iterative solvers: conjugate gradients, and stochastic gradient descent.

Hyperparameters are chosen on a subsample in closed form. A tenth of all rows is held out for the calibration (for
many labels, all rows in turn). Then the model of all rows is solved, starting from that of the other rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from leastwise.calibration.calibrators import fit_calibrator
from leastwise.fitting.dataset import Dataset
from leastwise.fitting.direct import Fitted, fit_direct, label_attributes, make_problem
from leastwise.fitting.ridge_problem import choose
from leastwise.fitting.spec import Spec
from leastwise.linalg.krylov import Krylov
from leastwise.model_selection.folds import held_out_tenth, input_hashes
from leastwise.model_selection.grids import Grid
from leastwise.model_selection.objective import ValueObjective
from leastwise.model_selection.search import SearchResult
from leastwise.model_selection.splitters import grouped_folds
from leastwise.problem.basis import Basis, evaluate
from leastwise.problem.kernels import Linear, Sum
from leastwise.solvers.evaluator import Candidate, Rows, Settings
from leastwise.solvers.heldout import HeldOut
from leastwise.solvers.krylov import KrylovProblem, KrylovSolution, RowCoupling, SolverOptions
from leastwise.solvers.label_evaluators import LabelRows
from leastwise.solvers.label_modes import CoupledLabels
from leastwise.solvers.solve import (
    Solution,
    scores,
    solve_by_sgd,
    solve_labels_free,
)
from leastwise.solvers.solve_tasks import (
    DualForm,
    TaskSolution,
    common_intercept,
    evaluate_tasks,
)
from leastwise.solvers.work import SETTLE_ROWS, STAND_IN, folds_to_hold_out
from leastwise.utils.warn import warn_user

Array = np.ndarray

#: Relative differences of scores that do not justify the iterations of a smaller alpha.
ALIKE = 5e-3
#: Number of steps by which alpha may exceed the best value.
FURTHER = 2


# ------------------------------------------------------------------------ Krylov


def fit_by_krylov(spec: Spec, data: Dataset, settings: Settings) -> Fitted:
    """Conjugate gradients with hyperparameters chosen on a subsample.

    If a linear kernel alone is allowed, it is tuned and solved on all rows at little cost. It is used if it was best
    on the subsample, or if the iterative model is not better.
    """
    guess = choose(make_problem(spec, data, settings), on_all_rows=False)
    kernel = _linear_alternative(spec, data)
    if kernel is None:
        return _iterate(spec, data, guess)
    linear = fit_direct(spec, data, replace(settings, kernel=kernel), guess.seen)
    if guess.searched.weight == np.inf:
        return linear
    iterated = _iterate(spec, data, guess)
    return iterated if _better(data, iterated, linear) else linear


def _linear_alternative(spec: Spec, data: Dataset) -> Linear | None:
    """The linear part of a sum of kernels, if it may be used alone and has few coefficients."""
    kernel = data.kernel
    if spec.solver == "krylov" or spec.cv is None or np.inf not in spec.linear_weights(kernel):
        return None
    assert isinstance(kernel, Sum)
    part = next(part for part in kernel.parts if isinstance(part, Linear))
    n, d = data.rows.X.shape
    few = spec.few_functions(part) if spec.many_tasks else spec.linear_directions(n, d, part)
    return part if few else None


def _better(data: Dataset, iterated: Fitted, linear: Fitted) -> bool:
    """True if the iterative model is better on its held-out rows (clearly better for "cautious")."""
    F, objective = iterated.outcome.F, iterated.settings.objective
    held = np.flatnonzero(~np.isnan(F[:, 0]))
    rows, other = data.rows.part(held), linear.outcome.F[held]
    if isinstance(objective, ValueObjective) and objective.scorer.cautious:
        return objective.clearly_better(rows, F[held], other)
    return iterated.outcome.score > objective(rows, HeldOut(other), None)[0]


def _iterate(spec: Spec, data: Dataset, choice: SearchResult) -> Fitted:
    """With hyperparameters chosen on a subsample, hold out a tenth of all rows for scores, then solve for all."""
    solver_options = SolverOptions(spec.tol, spec.max_iterations, spec.report)
    if spec.cv is not None and not spec.many_tasks:
        choice = _settle_alpha(spec, data, choice, solver_options)
    best, rows, settings = choice.outcome, data.rows, choice.searched.settings
    row_coupling = None
    if spec.many_tasks:
        assert rows.task is not None
        row_coupling = RowCoupling(choice.coupling.at(best.sharing), rows.task, choice.searched.intercept_ratio)
    last, F, runs = _solve(spec, rows, settings, best, row_coupling, solver_options)
    if spec.cv is not None:
        score, calibrator = settings.objective(rows, HeldOut(F), None)
        best = replace(best, score=score, calibrator=calibrator)
    basis = Basis(rows.X, np.arange(len(rows)), (), square=True)
    choice = replace(choice, outcome=replace(best, F=F))
    attributes = _iteration_attributes(spec, runs)
    return Fitted(choice, settings, basis, _krylov_solution(last, row_coupling), False, best.alpha, attributes)


def _solve(
    spec: Spec,
    rows: Rows,
    settings: Settings,
    best: Candidate,
    row_coupling: RowCoupling | None,
    solver_options: SolverOptions,
) -> tuple[KrylovSolution, Array, list[Krylov]]:
    """The solution of all rows, held-out scores of a tenth of them (otherwise NaN), and the runs.

    The held-out rows come last: a block of kernel values then serves both solves.
    """
    held = np.empty(0, dtype=int) if spec.cv is None else _held_out(rows)
    order = np.r_[np.setdiff1d(np.arange(len(rows)), held), held]
    coupled = None if row_coupling is None else row_coupling.part(order)
    first = len(rows) - len(held)
    problem = KrylovProblem(rows.part(order), settings, best.sigma, coupled, solver_options, first)
    F, start, runs = np.full((len(rows), settings.n_outputs), np.nan, dtype=rows.X.dtype), None, []
    if len(held):
        spec.report(f"without {len(held)} rows that are held out:")
        part = problem.of_first_rows().solve(best.alpha)
        F[held] = _krylov_scores(settings, best.sigma, rows, held, order[:first], row_coupling, part)
        start = np.pad(part.summary.X, ((0, len(held)), (0, 0)))
        runs.append(part.summary)
    spec.report("all rows:")
    last = problem.solve(best.alpha, start)
    return replace(last, A=last.A[np.argsort(order)]), F, [*runs, last.summary]


def _held_out(rows: Rows) -> Array:
    """About a tenth of the rows, of all tasks."""
    return held_out_tenth(rows if rows.task is None else replace(rows, y=rows.task), "krylov")


def _krylov_scores(
    settings: Settings,
    sigma: float,
    rows: Rows,
    held: Array,
    rest: Array,
    row_coupling: RowCoupling | None,
    model: KrylovSolution,
) -> Array:
    """Scores of the rows ``held`` by a model of the rows ``rest``."""
    if row_coupling is None:
        F, _ = evaluate(settings.kernel, sigma, rows.X[held], rows.X[rest], None, model.A)
        return F + model.intercept
    form, task = DualForm(model.A, row_coupling.task[rest], row_coupling.coupling_matrix), row_coupling.task[held]
    F, _ = evaluate_tasks(settings.kernel, sigma, rows.X[held], task, rows.X[rest], None, form)
    return F + model.intercept + (0 if model.own is None else model.own[task])


def _krylov_solution(model: KrylovSolution, row_coupling: RowCoupling | None) -> Solution | TaskSolution:
    if row_coupling is None:
        return Solution(model.A, model.intercept)
    intercept, own = common_intercept(model.intercept, model.own, bool(np.isfinite(row_coupling.intercept_ratio)))
    return TaskSolution(DualForm(model.A, row_coupling.task, row_coupling.coupling_matrix), intercept, own=own)


def _settle_alpha(spec: Spec, data: Dataset, choice: SearchResult, solver_options: SolverOptions) -> SearchResult:
    """A refined alpha for classifiers: chosen on a held-out tenth of some rows, converted to all rows."""
    rows, settings, best = data.rows, choice.searched.settings, choice.outcome
    alphas = spec.data_grids(rows, settings)[1]
    if not alphas.ratio or not settings.objective.of_classes:
        return choice
    some = make_problem(spec, data, settings).take(max(SETTLE_ROWS, len(rows) // 4)).rows
    held = held_out_tenth(some, "krylov")
    rest, ratio, seen = np.setdiff1d(np.arange(len(some)), held), len(some) / len(rows), list(choice.seen)
    spec.report(f"alpha on {len(rest)} rows, without {len(held)} that are held out:")
    problem = KrylovProblem(some.take(rest, precomputed=False), settings, best.sigma, None, solver_options)
    F, start = np.full((len(some), settings.n_outputs), np.nan, dtype=some.X.dtype), None

    def score(alpha: float) -> float:
        nonlocal start
        model = problem.solve(alpha, start)
        start = model.summary.X
        F[held] = _krylov_scores(settings, best.sigma, some, held, rest, None, model)
        found = settings.objective(some, HeldOut(F), None)[0]
        point = {"sigma": best.sigma, "sharing": None, "intercept_ratio": best.intercept_ratio, "weight": best.weight}
        seen.append({**point, "alpha": alpha * ratio, "score": found, "rows": len(some)})
        spec.report(f"alpha {alpha * ratio:.2g}: score {found:.5g}, {model.summary.n_iter} iterations")
        return found

    # A small subsample may choose tiny ridges, which take hundreds of iterations with more rows.
    alpha = smoothest(alphas, max(best.alpha / ratio, 10 * alphas.values[0]), score) * ratio
    return replace(choice, outcome=replace(best, alpha=alpha), seen=seen)


def smoothest(alphas: Grid, start: float, score: Callable[[float], float]) -> float:
    """From ``start`` up while scores are about equal, since larger alphas are cheaper; otherwise down."""
    value = alphas.around(start)
    here = value(0)
    assert here is not None
    best, top = score(here), 0
    for way in (1, -1):
        steps = way
        while abs(steps - top) <= FURTHER and (there := value(steps)) is not None:
            found = score(there)
            if not found > best - way * ALIKE * abs(best):
                break
            top = steps if found >= best else top
            here, best, steps = there, max(best, found), steps + way
        if steps != way:
            break
    return here


def _iteration_attributes(spec: Spec, runs: list[Krylov]) -> dict[str, Any]:
    """Iterations and residual; warns if they did not converge."""
    worst = max(runs, key=lambda run: float(np.max(run.residual, initial=0.0)))
    n_iter, residual = max(worst.n_iter, 1), float(np.max(worst.residual, initial=0.0))
    if not all(run.converged for run in runs):
        more = f"{spec.iteration_limit}, " if worst.n_iter >= spec.max_iterations else ""
        warn_user(
            f"solver='krylov' stopped after {n_iter} iterations with a residual of {residual:.1e} of "
            f"the right-hand side (tol={spec.tol:g}): raise {more}tol or alpha, or use another solver. Conjugate "
            "gradients need a positive definite kernel. The relative error of predictions is of that order.",
            ConvergenceWarning,
        )
    return {"n_iter_": n_iter, "residual_": residual}


# --------------------------------------------------------------------------- SGD


def fit_by_sgd(spec: Spec, data: Dataset, settings: Settings) -> Fitted:
    """Choose hyperparameters on a subsample in closed form, fit nine tenths of all rows, calibrate on the rest."""
    rows, basis = data.rows, spec.basis_of(data.rows, data.seed, settings)
    found = choose(make_problem(spec, data, settings), on_all_rows=False)
    best = found.outcome
    held = np.empty(0, dtype=int) if spec.cv is None else held_out_tenth(rows, "sgd")
    train = rows.take(np.setdiff1d(np.arange(len(rows)), held), precomputed=False)
    options = {"max_epochs": int(spec.max_passes), "tol": spec.tol}
    solution = solve_by_sgd(train, basis, settings, best.sigma, best.alpha, data.rng("sgd"), **options)
    F = np.full((len(rows), len(data.classes)), np.nan, dtype=rows.X.dtype)
    F[held] = scores(solution, settings, best.sigma, rows.X[held], basis)
    calibrator = best.calibrator
    if spec.cv is not None:
        calibrator = fit_calibrator(spec.calibration, rows.sample(F), signed=data.targets.signed)
    descent = solution.descent
    assert descent is not None
    if not descent.converged:
        warn_user(
            f"solver='sgd' stopped after max_passes={spec.max_passes} passes with its scores still off by about "
            f"{descent.change:.1e} of their size (tol={spec.tol:g}): raise max_passes or alpha.",
            ConvergenceWarning,
        )
    choice = replace(found, outcome=replace(best, F=F, calibrator=calibrator))
    return Fitted(choice, settings, basis, solution, False, best.alpha, {"n_passes_": descent.epochs})


# ----------------------------------------------------------- labels by iterations


def fit_labels_by_cg(spec: Spec, data: Dataset, settings: Settings) -> Fitted:
    """With hyperparameters chosen on a subsample, compute held-out scores, then solve for all rows.

    All rows are held out in turn; with very many rows some folds of them, or a tenth.
    """
    choice = choose(make_problem(spec, data, settings), on_all_rows=False)
    rows, best = data.rows, choice.outcome
    assert isinstance(rows, LabelRows)
    coupled = choice.searched.with_sharing(best.sharing).coupled_labels
    solver_options = SolverOptions(spec.tol, spec.max_iterations, spec.report)
    start, runs = None, []
    if spec.cv is not None:
        count = folds_to_hold_out(len(rows), settings.n_outputs)
        fold = grouped_folds(STAND_IN if count > 1 else 10, rows.y, rows.group, input_hashes(rows))
        F = np.full((len(rows), settings.n_outputs), np.nan, dtype=rows.X.dtype)
        for k in range(min(count, int(fold.max()) + 1)):
            start, run = _hold_out_labels(spec, rows, settings, best, coupled, solver_options, fold == k, F)
            runs += run
        score, calibrator = settings.objective(rows, HeldOut(F), best.calibrator)
        choice = replace(choice, outcome=replace(best, F=F, score=score, calibrator=calibrator))
    spec.report("all rows:")
    last = solve_labels_free(rows, settings, best.sigma, best.alpha, coupled, solver_options, start)
    solution = replace(last, summary=runs + last.summary)
    basis = Basis(rows.X, np.arange(len(rows)), (), square=True)
    return Fitted(choice, settings, basis, solution, False, best.alpha, label_attributes(spec, solution))


def _hold_out_labels(
    spec: Spec,
    rows: LabelRows,
    settings: Settings,
    best: Candidate,
    coupled: list[CoupledLabels],
    solver_options: SolverOptions,
    out: Array,
    F: Array,
) -> tuple[list[Array], list]:
    """Fill in the scores of the rows ``out`` by a model of the others; return a start for all rows, and the runs."""
    rest = np.flatnonzero(~out)
    spec.report(f"without {int(out.sum())} rows that are held out:")
    part = rows.take(rest, precomputed=False)
    found = solve_labels_free(part, settings, best.sigma, best.alpha, coupled, solver_options)
    values, _ = evaluate(settings.kernel, best.sigma, rows.X[out], part.X, None, found.coef)
    F[out] = values + found.intercept
    starts = []
    for summary in found.summary:
        wide = np.zeros((summary.Q.shape[0], len(rows), summary.Q.shape[2]), dtype=summary.Q.dtype)
        wide[:, rest] = summary.Q
        starts.append(wide)
    return starts, found.summary
