"""From the chosen hyperparameters to a fitted model, by each solver.

Every function takes the parameters, the data and the settings, and returns a :class:`Fitted`. Direct solvers choose
on all rows and solve by a factorisation. Iterative ones choose on some rows, judge a tenth of all rows that is held
out, then solve for all.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from leastwise.calibration.calibrators import fit_calibrator
from leastwise.estimators.choosing import SearchResult, choose_single, first_look, some_rows
from leastwise.estimators.label_choice import choose_labels
from leastwise.estimators.spec import Spec
from leastwise.estimators.task_choice import choose_tasks, guess_tasks
from leastwise.estimators.validation import STAND_IN, Dataset
from leastwise.linalg.krylov import Krylov
from leastwise.model_selection.grid import Grid
from leastwise.model_selection.label_folds import grouped_folds
from leastwise.model_selection.objective import ValueObjective
from leastwise.model_selection.subsample import held_out_tenth, input_hashes
from leastwise.problem.basis import Basis, evaluate
from leastwise.problem.kernels import Linear, Precomputed, Sum
from leastwise.solvers.arrow import ArrowEvaluator
from leastwise.solvers.evaluator import Candidate, Evaluator, Rows, Settings
from leastwise.solvers.heldout import HeldOut
from leastwise.solvers.krylov import KrylovProblem, KrylovSolution, RowCoupling, SolverOptions, solve_by_krylov
from leastwise.solvers.label_evaluators import LabelRows
from leastwise.solvers.label_modes import Tied
from leastwise.solvers.solve import (
    LabelSolution,
    Solution,
    scores,
    solve,
    solve_by_sgd,
    solve_labels,
    solve_labels_free,
)
from leastwise.solvers.solve_tasks import (
    DualForm,
    TaskSolution,
    common_intercept,
    evaluate_tasks,
    solve_tasks,
    stream_tasks,
)
from leastwise.solvers.task_evaluators import CoupledEvaluator
from leastwise.utils.warn import warn_user

Array = np.ndarray

#: Alpha of iterative solvers is settled on so many rows, or on a quarter of them if these are more.
SETTLE_ROWS = 8000
#: Relative differences of scores that are not worth the iterations of a smaller alpha.
ALIKE = 5e-3
#: Cap how many steps alpha may exceed the best value.
FURTHER = 2
#: Share of the rows that one step of pruning takes away.
PRUNE_STEP = 0.2
#: Squared rows times outputs up to which all rows of many labels are held out in turn.
IN_TURN = 2_000_000_000


@dataclass(frozen=True)
class Fitted:
    """A fitted model, and all that is known of how it came about.

    Attributes
    ----------
    choice : Found
        With the outcome of this model.
    settings : Settings
    basis : Basis
        Its rows are numbered among all that count.
    solution : Solution, TaskSolution or LabelSolution
    plain : bool
        Every row that counts has a coefficient, and was held out.
    chosen : float
        The alpha that was chosen for all rows; pruning changes that of the outcome.
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


# ------------------------------------------------------------------------ direct


def fit_direct(spec: Spec, data: Dataset, settings: Settings, seen: Sequence[dict] = ()) -> Fitted:
    """Choose, solve by a factorisation, and prune; ``seen`` are points of an earlier search."""
    solution: Any = None
    if spec.many_labels:
        choice = choose_labels(spec, data, settings, iterated=False)
    elif spec.many_tasks:
        choice, solution = _with_scores_of_all(spec, data, settings, choose_tasks(spec, data, settings))
    else:
        choice = choose_single(spec, data, settings)
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
    """The choice at its sharing; where it was judged on some tasks only, with held-out scores of all rows.

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
    return SearchResult(best, found.seen, evaluator, found.searched.with_sharing(best.sharing)), solution


def _solved(evaluator: Any, best: Candidate, keep: bool = False) -> Any:
    """The exact solution of an evaluator, which is not to be used afterwards unless ``keep``."""
    if isinstance(evaluator.rows, LabelRows):
        return solve_labels(evaluator, best.sigma, best.alpha, best.sharing or 0.0)
    if isinstance(evaluator, CoupledEvaluator | ArrowEvaluator):
        return solve_tasks(evaluator, best.sigma, best.alpha)
    if keep:  # the solver writes into the pairs
        evaluator = copy.copy(evaluator)
        evaluator.pairs = evaluator.pairs.copy()
    return solve(evaluator, best.sigma, best.alpha)


def label_attributes(spec: Spec, solution: LabelSolution) -> dict[str, Any]:
    """Iterations and residual of conjugate gradients; warns where these did not converge."""
    if not solution.summary:
        return {"n_iter_": 1}  # two decompositions are one step
    n_iter = max(1, *(summary.n_iter for summary in solution.summary))
    residual = max(float(np.max(summary.residual, initial=0.0)) for summary in solution.summary)
    if not all(summary.converged for summary in solution.summary):
        warn_user(
            f"Conjugate gradients stopped after {n_iter} iterations with a residual of "
            f"{residual:.1e} of the right-hand side (tol={spec.tol:g}): raise max_iter, tol or alpha; "
            "a kernel that is not positive definite has no solution this way. Predictions are as far from exact.",
            ConvergenceWarning,
        )
    return {"n_iter_": n_iter, "residual_": residual}


# ----------------------------------------------------------------------- pruning


def _prune(spec: Spec, data: Dataset, choice: SearchResult) -> Fitted:
    """Remove the rows of the smallest coefficients, a few at a time, and judge what is left on all rows.

    The ridge on the sum of the losses stays as it was. Rows that are left are held out one by one, the others are
    predicted: the model has not seen them.
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
        F[index], gone = held.F, np.setdiff1d(np.arange(n), index)
        if len(gone):
            F[gone] = _predicted(some, solution, best.sigma, data.rows, gone, index)
        objective = evaluator.settings.objective
        score, calibrator = objective(data.rows, HeldOut(F), None)
        whole = best.score
        if isinstance(objective, ValueObjective):  # without any charge for degrees of freedom, as the pruned one
            whole, _ = objective(data.rows, HeldOut(best.F), None)
        pruning |= {"score": whole, "pruned_score": score}
        _warn_ruined(spec, data.rows, objective, pruning)
        pruned = replace(pruned, F=F, calibrator=calibrator, score=score)
    basis = replace(some.basis, rows=index)
    attributes = {"n_iter_": 1, "pruning_": pruning}
    return Fitted(replace(choice, outcome=pruned), evaluator.settings, basis, solution, False, best.alpha, attributes)


def _part(spec: Spec, data: Dataset, evaluator: Any, index: Array) -> Any:
    """The evaluator of some of its rows."""
    settings = evaluator.settings
    rows = data.rows.take(index, isinstance(settings.kernel, Precomputed))
    basis = spec.basis_of(rows, data.seed, settings)
    if not isinstance(evaluator, CoupledEvaluator):
        return Evaluator(rows, basis, settings)
    part = CoupledEvaluator(rows, basis, settings, evaluator.coupling)
    return part.with_sharing(evaluator.tie.sharing).with_intercept_variance(evaluator.spread)


def _row_coef(solution: Any) -> Array:
    """A coefficient for every row."""
    if isinstance(solution, Solution):
        return solution.coef
    if not isinstance(solution.form, DualForm):
        raise ValueError("prune= needs a coefficient for every row: use solver='dual' with it.")
    return solution.form.A


def _predicted(evaluator: Any, solution: Any, sigma: float, rows: Rows, gone: Array, kept: Array) -> Array:
    """Scores of the rows ``gone`` by a model of the rows ``kept``."""
    precomputed = isinstance(evaluator.settings.kernel, Precomputed)
    if isinstance(solution, Solution):
        if precomputed:
            return rows.X[np.ix_(gone, kept)] @ solution.coef + solution.intercept
        return scores(solution, evaluator.settings, sigma, rows.X[gone], evaluator.basis)
    assert rows.task is not None
    task = rows.task[gone]
    if precomputed:
        F = solution.form.weigh(rows.X[np.ix_(gone, kept)].copy(), task)
    else:
        kernel = evaluator.settings.kernel
        F, _ = evaluate_tasks(kernel, sigma, rows.X[gone], task, evaluator.basis.centers, None, solution.form)
    return F + solution.intercept + (0 if solution.own is None else solution.own[task])


def _warn_ruined(spec: Spec, rows: Rows, objective: Any, pruning: dict[str, Any]) -> None:
    """Warn where pruning lost more than half of what there was to learn."""
    mean = np.average(rows.targets(objective.n_outputs), axis=0, weights=rows.w).astype(rows.X.dtype)
    nothing, _ = objective(rows, HeldOut(np.tile(mean, (len(rows), 1))), None)
    whole, left = pruning["score"], pruning["pruned_score"]
    if whole > nothing and left - nothing < (whole - nothing) / 2:
        warn_user(
            f"prune={spec.prune!r} ruins this model: {objective.scorer.name} on held-out rows is "
            f"{objective.scorer.shown(left):.3g} after it, {objective.scorer.shown(whole):.3g} before, and "
            f"{objective.scorer.shown(nothing):.3g} for the mean alone. The rows of the largest weights are those "
            f"that fit worst, noise among them. Take less away, or use n_centers={pruning['n_kept']}, "
            "which is as fast and learns from all rows."
        )


def prune_sizes(n: int, kept: int) -> list[int]:
    """Numbers of rows after each step of pruning."""
    sizes = []
    while n > kept:
        n = max(kept, int(n * (1 - PRUNE_STEP)))
        sizes.append(n)
    return sizes


def heaviest(size: Array, count: int, task: Array | None) -> Array:
    """Rows of the largest coefficients, in order; of every task at least two, or all it has."""
    order, count = np.argsort(-size, kind="stable"), max(count, 2)
    if task is not None:
        rank = np.empty(len(size), dtype=int)
        by_task = order[np.argsort(task[order], kind="stable")]
        starts = np.searchsorted(task[by_task], task[by_task])
        rank[by_task] = np.arange(len(size)) - starts
        order = np.concatenate([order[rank[order] < 2], order[rank[order] >= 2]])
        count = max(count, int(np.sum(rank < 2)))
    return np.sort(order[:count])


# ------------------------------------------------------------------------ Krylov


def fit_by_krylov(spec: Spec, data: Dataset, settings: Settings) -> Fitted:
    """Conjugate gradients at parameters that were found on some rows.

    A linear kernel, if it may be all, is chosen and solved on all rows for little: it is taken where it did best on
    some rows, or iterations do not beat it.
    """
    guess = (guess_tasks if spec.many_tasks else first_look)(spec, data, settings)
    linear = _linear_rival(spec, data)
    if linear is None:
        return _iterate(spec, data, guess)
    rival = fit_direct(spec, data, replace(settings, kernel=linear), guess.seen)
    if guess.searched.weight == np.inf:
        return rival
    iterated = _iterate(spec, data, guess)
    return iterated if _beats(data, iterated, rival) else rival


def _linear_rival(spec: Spec, data: Dataset) -> Linear | None:
    """The linear part of a sum of kernels, if it may be all there is, and has few coefficients."""
    kernel = data.kernel
    if spec.solver == "krylov" or spec.cv is None or np.inf not in spec.linear_weights(kernel):
        return None
    assert isinstance(kernel, Sum)
    part = next(part for part in kernel.parts if isinstance(part, Linear))
    n, d = data.rows.X.shape
    few = spec.few_functions(part) if spec.many_tasks else spec.linear_directions(n, d, part)
    return part if few else None


def _beats(data: Dataset, iterated: Fitted, rival: Fitted) -> bool:
    """True if iterations are better, with caution clearly so, on the rows that they held out."""
    F, objective = iterated.outcome.F, iterated.settings.objective
    held = np.flatnonzero(~np.isnan(F[:, 0]))
    rows, other = data.rows.part(held), rival.outcome.F[held]
    if isinstance(objective, ValueObjective) and objective.scorer.cautious:
        return objective.clearly_better(rows, F[held], other)
    return iterated.outcome.score > objective(rows, HeldOut(other), None)[0]


def _iterate(spec: Spec, data: Dataset, choice: SearchResult) -> Fitted:
    """With parameters chosen on some rows, judge a tenth of all rows that is held out, then solve for all."""
    solver_options = SolverOptions(spec.tol, spec.max_iterations, spec.report)
    if spec.cv is not None and not spec.many_tasks:
        choice = _settle_alpha(spec, data, choice, solver_options)
    best, rows, settings = choice.outcome, data.rows, choice.searched.settings
    row_coupling = None
    if spec.many_tasks:
        assert rows.task is not None
        row_coupling = RowCoupling(choice.coupling.at(best.sharing), rows.task, choice.searched.spread)
    F, start, runs = np.full((len(rows), settings.n_outputs), np.nan, dtype=rows.X.dtype), None, []
    if spec.cv is not None:
        start, run = _hold_out_tenth(spec, rows, settings, best, row_coupling, solver_options, F)
        runs.append(run)
    spec.report("all rows:")
    last = solve_by_krylov(rows, settings, best.sigma, best.alpha, row_coupling, solver_options, start)
    if spec.cv is not None:
        score, calibrator = settings.objective(rows, HeldOut(F), None)
        best = replace(best, score=score, calibrator=calibrator)
    basis = Basis(rows.X, np.arange(len(rows)), (), square=True)
    choice = replace(choice, outcome=replace(best, F=F))
    attributes = _iteration_attributes(spec, [*runs, last.summary])
    return Fitted(choice, settings, basis, _krylov_solution(last, row_coupling), False, best.alpha, attributes)


def _hold_out_tenth(
    spec: Spec,
    rows: Rows,
    settings: Settings,
    best: Candidate,
    row_coupling: RowCoupling | None,
    solver_options: SolverOptions,
    F: Array,
) -> tuple[Array, Krylov]:
    """Fill in the scores of a tenth of the rows by a model of the others; a start for all rows, and its run."""
    held = held_out_tenth(rows if rows.task is None else replace(rows, y=rows.task), "krylov")
    rest = np.setdiff1d(np.arange(len(rows)), held)
    spec.report(f"without {len(held)} rows that are held out:")
    train, part = rows.take(rest, precomputed=False), None if row_coupling is None else row_coupling.part(rest)
    model = solve_by_krylov(train, settings, best.sigma, best.alpha, part, solver_options)
    F[held] = _krylov_scores(settings, best.sigma, rows, held, rest, row_coupling, model)
    start = np.zeros((len(rows), model.summary.X.shape[1]))
    start[rest] = model.summary.X
    return start, model.summary


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
    form, task = DualForm(model.A, row_coupling.task[rest], row_coupling.tie), row_coupling.task[held]
    F, _ = evaluate_tasks(settings.kernel, sigma, rows.X[held], task, rows.X[rest], None, form)
    return F + model.intercept + (0 if model.own is None else model.own[task])


def _krylov_solution(model: KrylovSolution, row_coupling: RowCoupling | None) -> Solution | TaskSolution:
    if row_coupling is None:
        return Solution(model.A, model.intercept)
    intercept, own = common_intercept(model.intercept, model.own, bool(np.isfinite(row_coupling.spread)))
    return TaskSolution(DualForm(model.A, row_coupling.task, row_coupling.tie), intercept, own=own)


def _settle_alpha(spec: Spec, data: Dataset, choice: SearchResult, solver_options: SolverOptions) -> SearchResult:
    """A better alpha for classes: what a tenth of some rows says, in proportion for all."""
    rows, settings, best = data.rows, choice.searched.settings, choice.outcome
    alphas = spec.data_grids(rows, settings)[1]
    if not alphas.ratio or not settings.objective.of_classes:
        return choice
    some = some_rows(data, max(SETTLE_ROWS, len(rows) // 4), settings)
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
        point = {"sigma": best.sigma, "sharing": None, "spread": best.spread, "weight": best.weight}
        seen.append({**point, "alpha": alpha * ratio, "score": found, "rows": len(some)})
        spec.report(f"alpha {alpha * ratio:.2g}: score {found:.5g}, {model.summary.n_iter} iterations")
        return found

    # Few rows may choose tiny ridges, which take hundreds of iterations with more rows.
    alpha = smoothest(alphas, max(best.alpha / ratio, 10 * alphas.values[0]), score) * ratio
    return replace(choice, outcome=replace(best, alpha=alpha), seen=seen)


def smoothest(alphas: Grid, start: float, score: Callable[[float], float]) -> float:
    """From ``start`` up while scores stay alike, larger alphas being cheaper, a bit beyond the best; else down."""
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
    """Iterations and residual; warns where these did not converge."""
    worst = max(runs, key=lambda run: float(np.max(run.residual, initial=0.0)))
    n_iter, residual = max(worst.n_iter, 1), float(np.max(worst.residual, initial=0.0))
    if not all(run.converged for run in runs):
        more = f"{spec.iteration_limit}, " if worst.n_iter >= spec.max_iterations else ""
        warn_user(
            f"solver='krylov' stopped after {n_iter} iterations with a residual of {residual:.1e} of "
            f"the right-hand side (tol={spec.tol:g}): raise {more}tol or alpha, or use another solver; a kernel "
            "that is not positive definite has no solution this way. Predictions are as far from exact as that.",
            ConvergenceWarning,
        )
    return {"n_iter_": n_iter, "residual_": residual}


# --------------------------------------------------------------------------- SGD


def fit_by_sgd(spec: Spec, data: Dataset, settings: Settings) -> Fitted:
    """Choose on some rows in closed form, descend on nine tenths of all, calibrate on the tenth."""
    rows, basis = data.rows, spec.basis_of(data.rows, data.seed, settings)
    found = first_look(spec, data, settings)
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
    """With parameters chosen on some rows, judge rows that are held out, then solve for all.

    All rows are held out in turn, or a tenth of very many.
    """
    choice = choose_labels(spec, data, settings, iterated=True)
    rows, best = data.rows, choice.outcome
    assert isinstance(rows, LabelRows)
    ties = choice.searched.with_sharing(best.sharing).ties
    solver_options = SolverOptions(spec.tol, spec.max_iterations, spec.report)
    start, runs = None, []
    if spec.cv is not None:
        every = len(rows) ** 2 * settings.n_outputs <= IN_TURN
        fold = grouped_folds(STAND_IN if every else 10, rows.y, rows.group, input_hashes(rows))
        F = np.full((len(rows), settings.n_outputs), np.nan, dtype=rows.X.dtype)
        for k in range(int(fold.max()) + 1) if every else range(1):
            start, run = _hold_out_labels(spec, rows, settings, best, ties, solver_options, fold == k, F)
            runs += run
        score, calibrator = settings.objective(rows, HeldOut(F), best.calibrator)
        choice = replace(choice, outcome=replace(best, F=F, score=score, calibrator=calibrator))
    spec.report("all rows:")
    last = solve_labels_free(rows, settings, best.sigma, best.alpha, ties, solver_options, start)
    solution = replace(last, summary=runs + last.summary)
    basis = Basis(rows.X, np.arange(len(rows)), (), square=True)
    return Fitted(choice, settings, basis, solution, False, best.alpha, label_attributes(spec, solution))


def _hold_out_labels(
    spec: Spec,
    rows: LabelRows,
    settings: Settings,
    best: Candidate,
    ties: list[Tied],
    solver_options: SolverOptions,
    out: Array,
    F: Array,
) -> tuple[list[Array], list]:
    """Fill in the scores of the rows ``out`` by a model of the others; a start for all rows, and the runs."""
    rest = np.flatnonzero(~out)
    spec.report(f"without {int(out.sum())} rows that are held out:")
    part = rows.take(rest, precomputed=False)
    found = solve_labels_free(part, settings, best.sigma, best.alpha, ties, solver_options)
    values, _ = evaluate(settings.kernel, best.sigma, rows.X[out], part.X, None, found.coef)
    F[out] = values + found.intercept
    starts = []
    for summary in found.summary:
        wide = np.zeros((summary.Q.shape[0], len(rows), summary.Q.shape[2]), dtype=summary.Q.dtype)
        wide[:, rest] = summary.Q
        starts.append(wide)
    return starts, found.summary
