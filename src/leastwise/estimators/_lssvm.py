"""What the four LS-SVMs have in common: kernels with a linear part, pruning, the Krylov solver."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from leastwise.basis import Basis
from leastwise.estimators._calibrated import CalibratedClassifier
from leastwise.estimators._checks import check_count, check_positive, parse_grid
from leastwise.estimators._model import Targets, Training
from leastwise.estimators._tuned import Found, TunedModel
from leastwise.heldout import Held
from leastwise.kernels import Kernel, Linear, Precomputed, Scaled, Sum
from leastwise.krylov_fitting import Bonds, Effort, Iterated, solve_by_krylov
from leastwise.linalg.krylov import Krylov
from leastwise.memory import available_memory
from leastwise.probability import Calibrator, Signed
from leastwise.selection.grid import Grid, Levels, best_of
from leastwise.selection.judge import ClassJudge, ValueJudge
from leastwise.selection.plan import ARRAYS
from leastwise.selection.search import Search, held_out_tenth
from leastwise.selection.trial import Judge, Outcome, Rows, Settings, Trial

Array = np.ndarray


@dataclass(frozen=True)
class Fitted:
    """A model, and all that is known of how it came about.

    Attributes
    ----------
    choice : Found
        With the outcome of this model.
    settings : Settings
    basis : Basis
        Its rows are numbered among all that count.
    solution : Solution or TaskSolution
    plain : bool
        Whether every row that counts has a coefficient, and was held out.
    chosen : float
        The alpha that was chosen for all rows.
    """

    choice: Found
    settings: Settings
    basis: Basis
    solution: Any
    plain: bool
    chosen: float


class LSSVM(TunedModel):
    """Mixin for LS-SVMs. A subclass has the parameters linear_weight, solver, prune, tol and max_iter."""

    #: linear_weight="auto"; the search begins at 1.
    LINEAR_WEIGHTS: ClassVar[tuple[float, ...]] = (1.0, np.inf)
    #: sigma="auto" beside a linear part, which leaves less to do for it.
    SUM_MULTIPLES: ClassVar[tuple[float, ...]] = (0.5, 1.0, 2.0)
    SUM_RATIO: ClassVar[float] = 2.0

    def _check_lssvm(self, kernel: Kernel) -> None:
        """The parameters of this mixin."""
        if len(self._linear_weights(kernel)) > 1 and self.cv is None:
            raise ValueError("cv=None holds nothing out, so there is nothing to choose by: give one linear_weight.")
        check_positive("tol", self.tol)
        if check_count("max_iter", self.max_iter) is None:
            raise ValueError("max_iter=None must be a whole number of 1 or more.")
        self._kept(100)
        if self.prune is not None and (self.n_centers is not None or not isinstance(self.centers, str)):
            raise ValueError("prune= takes away rows that are centres: leave n_centers and centers as they are.")
        if self.solver == "krylov":
            self._check_krylov(kernel)

    def _check_krylov(self, kernel: Kernel) -> None:
        if kernel.definite is False:
            raise ValueError("solver='krylov' needs a kernel that is positive definite, which 'sigmoid' is not.")
        if isinstance(kernel, Precomputed):
            raise ValueError("solver='krylov' computes the kernel anew, block by block: give it rows, not a kernel.")
        if self.n_centers is not None or not isinstance(self.centers, str):
            raise ValueError("solver='krylov' is for all rows as centres: leave n_centers and centers as they are.")
        if self.prune is not None:
            raise ValueError("prune= solves many times, which 'krylov' is no good at: use solver='auto' with it.")

    def _store(self, data: Training, basis: Basis, settings: Settings, outcome: Outcome, solution: Any) -> None:
        super()._store(data, basis, settings, outcome, solution)
        kernel = settings.kernel
        self.linear_weight_ = np.inf if isinstance(kernel, Scaled) else getattr(kernel, "weight", None)
        self.n_iter_ = getattr(self, "n_iter_", 1)  # a factor is one step

    # ------------------------------------------------------------------- fit

    def _fitted(self, data: Training, settings: Settings) -> Fitted:
        """Choose and solve, by the way that fits."""
        seen: list[dict] = []
        if self._by_krylov(data):
            guess = self._guess(data, settings)
            linear = guess.searched.settings.kernel.only_linear
            if linear is None or self.solver == "krylov" or not self._few_unknowns(data, linear):
                return self._iterate(data, guess)
            seen = guess.seen  # the linear part alone did best: on to a solver that has few unknowns then
            settings = replace(settings, kernel=linear)
        choice = self._choose(data, settings)
        choice = replace(choice, seen=seen + choice.seen)
        if self.prune is not None:
            return self._prune(data, choice)
        trial, best = choice.trial, choice.outcome
        plain = trial.basis.square and not trial.streams
        solution = self._solved(trial, best.sigma, best.alpha, consume=True)
        return Fitted(choice, trial.settings, trial.basis, solution, plain, best.alpha)

    def _choose(self, data: Training, settings: Settings) -> Found:
        """Search on all rows, or on some and then on all."""
        raise NotImplementedError

    def _few_unknowns(self, data: Training, kernel: Kernel) -> bool:
        """Whether a linear kernel may be solved by its coefficients."""
        raise NotImplementedError

    # ---------------------------------------------------------------- kernel

    def _linear_weights(self, kernel: Kernel) -> tuple[float, ...]:
        """Weights of the linear part of a sum of kernels to try, from the parameter."""
        value = self.linear_weight
        value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
        if isinstance(value, str):
            if value != "auto":
                raise ValueError(
                    f"linear_weight={value!r} is not known: use 'auto', a number from 0 to inf, or several."
                )
            weights = self.LINEAR_WEIGHTS
        else:
            given = list(value) if isinstance(value, Iterable) and np.ndim(value) else [value]  # type: ignore[arg-type]
            if not given or not all(isinstance(v, Real) and not isinstance(v, bool) and float(v) >= 0 for v in given):
                raise ValueError(f"linear_weight={value!r}: every value must be a number from 0 to inf.")
            weights = tuple(sorted({float(v) for v in given}))
        linear = isinstance(kernel, Sum) and kernel.weight is not None
        return weights if linear else ()

    def _weighted(self, kernel: Kernel) -> Kernel:
        """The kernel that the search begins with."""
        weights = self._linear_weights(kernel)
        if not weights:
            return kernel
        assert isinstance(kernel, Sum)
        return kernel.weighing(1.0 if 1.0 in weights else weights[len(weights) // 2])

    def _sigma_grid(self, length: float) -> Grid:
        if not isinstance(self.kernel, str) or "+" not in self.kernel:
            return super()._sigma_grid(length)
        return parse_grid("sigma", self.sigma, np.multiply(self.SUM_MULTIPLES, length), self.SUM_RATIO)

    # ---------------------------------------------------------------- search

    def _run(self, search: Search, sigmas: Grid, alphas: Grid, sharings: Levels | None = None) -> Outcome:
        """A whole search; with "cautious", a simple model in the place of one that is not clearly better."""
        found, judge = super()._run(search, sigmas, alphas, sharings), search.trial.settings.judge
        if not isinstance(judge, ValueJudge) or not judge.scorer.cautious:
            return found
        simple = self._simplest(search, found, alphas, sharings)
        if simple is None or judge.clearly_better(search.trial.rows, found.F, simple[1].F):
            return found
        search.trial = simple[0]
        return simple[1]

    def _simplest(
        self, search: Search, found: Outcome, alphas: Grid, sharings: Levels | None
    ) -> tuple[Trial, Outcome] | None:
        """The linear model that all tasks share, with its intercepts: its trial, and the best point of that.

        None where it is what was found, or was not asked for.
        """
        trial, kernel, sharing = search.trial, search.trial.settings.kernel, None if sharings is None else 1.0
        if isinstance(kernel, Sum) and np.inf in self._linear_weights(kernel):
            trial = trial.weighing(np.inf)
        elif not isinstance(kernel, Linear):
            return None
        pooled = sharings is None or (1.0 in sharings.values and found.sharing == 1)
        if (pooled and found.weight in (None, np.inf)) or (sharings is not None and 1.0 not in sharings.values):
            return None
        trials = [trial.spreading(spread) for spread in self._intercept_spreads(trial.rows)]
        outcomes = [Search(other, search.seen).at(found.sigma, sharing, alphas) for other in trials]
        best = best_of(outcomes)
        trial = trials[outcomes.index(best)]
        return trial, Search(trial, search.seen).refine(best, alphas, known=True) if alphas.ratio else best

    def _intercept_spreads(self, rows: Rows) -> tuple[float, ...]:
        """Spreads of the tasks' intercepts that may be tried on these rows."""
        return (0.0,)

    # --------------------------------------------------------------- pruning

    def _kept(self, n: int) -> int:
        """How many of n rows pruning leaves."""
        value = self.prune
        if value is None:
            return n
        if isinstance(value, Real) and not isinstance(value, bool):
            if isinstance(value, int | np.integer) and value >= 1:
                return max(n - int(value), 1)
            if 0 < float(value) < 1:
                return max(round(n * (1 - float(value))), 1)
        raise ValueError(
            f"prune={value!r} must be None, a share of the rows to take away (above 0 and below 1), or their number."
        )

    def _prune(self, data: Training, choice: Found) -> Fitted:
        """Take away the rows of the smallest weights, a few at a time, and judge what is left on all rows.

        The ridge on the sum of the losses stays as it was. Rows that are left are held out one by one, the others are
        predicted: the model has not seen them.
        """
        trial, best = choice.trial, choice.outcome
        n, w, index = len(data.rows), data.rows.w, np.arange(len(data.rows))
        some, alpha = trial, best.alpha
        for count in prune_sizes(n, self._kept(n)):
            solution = self._solved(some, best.sigma, alpha, consume=False)
            keep = heaviest(np.linalg.norm(self._row_coef(solution), axis=1), count, some.rows.task)
            index = index[keep]
            some = self._part(data, trial, index)
            alpha = best.alpha * float(w.sum() / w[index].sum())
        held = None if self.cv is None else some.centred_far(some.settled(some.heldout(best.sigma, 1)(alpha)))
        solution = self._solved(some, best.sigma, alpha, consume=True)
        pruned = replace(best, alpha=alpha)
        self.pruning_: dict[str, float] = {"n_rows": n, "n_kept": len(index)}
        if held is not None:
            F = np.empty((n, held.F.shape[1]), dtype=held.F.dtype)
            F[index], gone = held.F, np.setdiff1d(np.arange(n), index)
            if len(gone):
                F[gone] = self._said(some, solution, best.sigma, data.rows, gone, index)
            judge = trial.settings.judge
            score, calibrator = judge(data.rows, Held(F, held.far), None)
            whole = best.score
            if isinstance(judge, ValueJudge):  # without any charge for degrees of freedom, as the pruned one
                whole, _ = judge(data.rows, Held(best.F, held.far), None)
            self.pruning_ |= {"score": whole, "pruned_score": score}
            self._warn_ruined(data.rows, judge)
            pruned = replace(pruned, F=F, calibrator=calibrator, score=score)
        basis = replace(some.basis, rows=index)
        return Fitted(
            replace(choice, outcome=pruned), trial.settings, basis, solution, plain=False, chosen=best.alpha
        )

    def _warn_ruined(self, rows: Rows, judge: Judge) -> None:
        """Say so where pruning took most of what there was to know."""
        mean = np.average(rows.targets(judge.n_outputs), axis=0, weights=rows.w).astype(rows.X.dtype)
        nothing, _ = judge(rows, Held(np.tile(mean, (len(rows), 1)), mean), None)
        whole, left = self.pruning_["score"], self.pruning_["pruned_score"]
        if whole > nothing and left - nothing < (whole - nothing) / 2:
            warnings.warn(
                f"prune={self.prune!r} ruins this model: {judge.scorer.name} on held-out rows is "
                f"{judge.scorer.shown(left):.3g} after it, {judge.scorer.shown(whole):.3g} before, and "
                f"{judge.scorer.shown(nothing):.3g} for the mean alone. The rows of the largest weights are those "
                f"that fit worst, noise among them. Take less away, or use n_centers={self.pruning_['n_kept']}, "
                "which is as fast and learns from all rows.",
                UserWarning,
                stacklevel=6,
            )

    def _part(self, data: Training, trial: Any, index: Array) -> Any:
        """The trial of some of its rows."""
        raise NotImplementedError

    def _solved(self, trial: Any, sigma: float, alpha: float, consume: bool) -> Any:
        """The model of a trial; with ``consume`` the trial may be used up."""
        raise NotImplementedError

    def _row_coef(self, solution: Any) -> Array:
        """A coefficient for every row."""
        raise NotImplementedError

    def _said(self, trial: Any, solution: Any, sigma: float, rows: Rows, gone: Array, kept: Array) -> Array:
        """What the model of the rows that were kept says of those that are gone."""
        raise NotImplementedError

    # ---------------------------------------------------------------- krylov

    def _by_krylov(self, data: Training) -> bool:
        """Whether to iterate: where it was asked for, is cheaper, or nothing else fits into memory."""
        unfit = isinstance(data.kernel, Precomputed) or data.kernel.definite is False
        if self.solver != "auto" or self.prune is not None or unfit:
            return self.solver == "krylov"
        n = len(data.rows)
        need = ARRAYS["function"] * n * n * data.rows.X.dtype.itemsize
        return self._square(data) and (n > DIRECT_ROWS or need > available_memory())

    def _square(self, data: Training) -> bool:
        """Whether every row is a centre."""
        return self.n_centers is None and isinstance(self.centers, str)

    def _iterate(self, data: Training, choice: Found) -> Fitted:
        """With parameters chosen on some rows, judge on a tenth of all that is held out, and solve for all."""
        best, rows, settings = choice.outcome, data.rows, choice.searched.settings
        bonds = self._bonds(data, choice)
        effort = Effort(self.tol, int(self.max_iter), data.rng, self._report)
        F = np.full((len(rows), settings.n_outputs), np.nan, dtype=rows.X.dtype)
        start: Array | None = None
        stories: list[Krylov] = []
        if self.cv is not None:
            held = held_out_tenth(rows if rows.task is None else replace(rows, y=rows.task), data.rng, "krylov")
            rest = np.setdiff1d(np.arange(len(rows)), held)
            part = None if bonds is None else bonds.part(rest)
            train = rows.take(rest, precomputed=False)
            self._report(f"without {len(held)} rows that are held out:")
            first = solve_by_krylov(train, settings, best.sigma, best.alpha, part, effort)
            F[held] = self._iterated_scores(settings, best.sigma, rows, held, rest, bonds, first)
            start = np.zeros((len(rows), first.story.X.shape[1]))
            start[rest] = first.story.X
            stories.append(first.story)
            self._report("all rows:")
        last = solve_by_krylov(rows, settings, best.sigma, best.alpha, bonds, effort, start)
        self._keep_stories([*stories, last.story])
        if self.cv is not None:
            middle = np.average(rows.targets(settings.n_outputs), axis=0, weights=rows.w).astype(F.dtype)
            free = bonds is not None and np.isinf(bonds.spread)  # then there is no score that all tasks tend to
            score, calibrator = settings.judge(rows, Held(F, middle if free else last.intercept), None)
            best = replace(best, score=score, calibrator=calibrator)
        basis = Basis(rows.X, np.arange(len(rows)), (), square=True)
        choice = replace(choice, outcome=replace(best, F=F))
        return Fitted(choice, settings, basis, self._iterated_solution(last, bonds), plain=False, chosen=best.alpha)

    def _guess(self, data: Training, settings: Settings) -> Found:
        """Parameters found on some rows, with an alpha that suits all."""
        raise NotImplementedError

    def _bonds(self, data: Training, choice: Found) -> Bonds | None:
        """How tasks are tied, where there are several."""
        return None

    def _iterated_scores(
        self, settings: Settings, sigma: float, rows: Rows, held: Array, rest: Array, bonds: Any, model: Iterated
    ) -> Array:
        """What a model of the rows ``rest`` says of the rows ``held``."""
        raise NotImplementedError

    def _iterated_solution(self, model: Iterated, bonds: Any) -> Any:
        """In the form of other solvers."""
        raise NotImplementedError

    def _keep_stories(self, stories: list[Krylov]) -> None:
        """Keep what is known of the iterations, and say so if they did not get there."""
        worst = max(stories, key=lambda story: float(np.max(story.residual, initial=0.0)))
        self.n_iter_, self.residual_ = max(worst.n_iter, 1), float(np.max(worst.residual, initial=0.0))
        if not all(story.converged for story in stories):
            more = "max_iter, " if worst.n_iter >= int(self.max_iter) else ""
            warnings.warn(
                f"solver='krylov' stopped after {self.n_iter_} iterations with a residual of {self.residual_:.1e} of "
                f"the right-hand side (tol={self.tol:g}): raise {more}tol or alpha, or use another solver; a kernel "
                "that is not positive definite has no solution this way. Predictions are as far from exact as that.",
                ConvergenceWarning,
                stacklevel=6,
            )

    linear_weight: Any
    prune: Any
    solver: str
    tol: float
    max_iter: int
    n_iter_: int
    residual_: float


class SignedTargets(CalibratedClassifier):
    """Mixin for classifiers that fit -1 and 1, one column for each class: one against the rest."""

    SIGNED = True

    def _targets(self, y: Array, dtype: Any) -> Targets:
        targets = super()._targets(y, dtype)
        assert targets.classes is not None
        return replace(targets, values=(2 * np.eye(len(targets.classes)) - 1).astype(dtype)[targets.codes])

    def _judge(self, classes: Array, calibration: str | None = None) -> ClassJudge:
        return replace(super()._judge(classes, calibration), signed=True)

    def _uncalibrated(self, data: Training) -> Calibrator:
        return Signed(super()._uncalibrated(data))


#: Up to so many rows factors are cheaper than iterations.
DIRECT_ROWS = 4000
#: Share of the rows that one step of pruning takes away.
PRUNE_STEP = 0.2


def prune_sizes(n: int, kept: int) -> list[int]:
    """Numbers of rows after each step of pruning."""
    sizes = []
    while n > kept:
        n = max(kept, int(n * (1 - PRUNE_STEP)))
        sizes.append(n)
    return sizes


def heaviest(size: Array, count: int, task: Array | None) -> Array:
    """The rows of the largest weights, in order; of every task at least two, or all it has."""
    order, count = np.argsort(-size, kind="stable"), max(count, 2)
    if task is not None:
        rank = np.empty(len(size), dtype=int)
        by_task = order[np.argsort(task[order], kind="stable")]
        starts = np.searchsorted(task[by_task], task[by_task])
        rank[by_task] = np.arange(len(size)) - starts
        order = np.concatenate([order[rank[order] < 2], order[rank[order] >= 2]])
        count = max(count, int(np.sum(rank < 2)))
    return np.sort(order[:count])
