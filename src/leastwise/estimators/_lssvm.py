"""What the four LS-SVMs have in common: the way of a fit, kernels with a linear part, targets of -1 and 1."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from leastwise.calibration.calibrators import Calibrator, Signed
from leastwise.estimators._calibrated import CalibratedClassifier
from leastwise.estimators._checks import check_count, check_positive, parse_grid
from leastwise.estimators._explained import Explained
from leastwise.estimators._iterating import Iterating
from leastwise.estimators._model import Targets, Training
from leastwise.estimators._plan import Size
from leastwise.estimators._pruning import Fitted, Pruning
from leastwise.estimators._tuned import Found
from leastwise.model_selection.grid import Grid, Levels, best_of
from leastwise.model_selection.objective import ClassJudge, ValueJudge
from leastwise.model_selection.search import Search
from leastwise.problem.basis import Basis
from leastwise.problem.kernels import Kernel, Linear, Scaled, Sum
from leastwise.solvers.evaluator import Outcome, Settings, Trial
from leastwise.solvers.heldout import Held

Array = np.ndarray


class LSSVM(Explained, Pruning, Iterating):
    """Mixin for LS-SVMs. A subclass has the parameters linear_weight, solver, prune, tol and max_iter.

    ``_fitted`` is the way of the data: choose, with the search of ``SingleTaskModel`` or ``TaskSearch``, then solve,
    prune (``Pruning``) or iterate (``Iterating``). What comes of it is stored by ``KernelRegressor`` or
    ``CalibratedClassifier``, which also say what the targets are and what is maximised (for classes,
    ``SignedTargets``). Which task a row is of is the concern of ``TaskModel``.
    """

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
        super()._check_krylov(kernel)
        if self.prune is not None:
            raise ValueError("prune= solves many times, which 'krylov' is no good at: use solver='auto' with it.")

    def _may_iterate(self, kernel: Kernel) -> bool:
        return super()._may_iterate(kernel) and self.prune is None

    def _store(self, data: Training, basis: Basis, settings: Settings, outcome: Outcome, solution: Any) -> None:
        super()._store(data, basis, settings, outcome, solution)
        kernel = settings.kernel
        self.linear_weight_ = np.inf if isinstance(kernel, Scaled) else getattr(kernel, "weight", None)
        self.n_iter_ = getattr(self, "n_iter_", 1)  # a factor is one step

    # ------------------------------------------------------------------- fit

    def _own_facts(self, kernel: Kernel, size: Size, square: bool) -> dict[str, Any]:
        weights, linear = self._linear_weights(kernel), getattr(kernel, "parts", ())
        rival = next((part for part in linear if isinstance(part, Linear) and np.inf in weights), None)
        return {
            **super()._own_facts(kernel, size, square),
            "iterates": square and self._may_iterate(kernel),
            "options": max(1, len(weights)),
            "cautious": bool(getattr(self._scorer(), "cautious", False)),
            "rival": size.d if rival is not None and self.solver != "krylov" else 0,
        }

    def _fitted(self, data: Training, settings: Settings, solver: str) -> Fitted:
        """Choose and solve, by a factor or by iterations.

        Iterations have parameters that were found on some rows. A linear kernel, if it may be all, is chosen and
        solved on all of them for little: it is taken where it did best on some rows, or iterations do not beat it.
        """
        if solver != "krylov":
            return self._direct(data, settings, [])
        guess = self._guess(data, settings)
        linear = self._linear_rival(data)
        if linear is None:
            return self._iterate(data, guess)
        rival = self._direct(data, replace(settings, kernel=linear), guess.seen)
        if guess.searched.weight == np.inf:
            return rival
        iterated = self._iterate(data, guess)
        if self._beats(data, iterated, rival):
            return iterated
        del self.n_iter_, self.residual_
        return rival

    def _direct(self, data: Training, settings: Settings, seen: list[dict]) -> Fitted:
        """Choose, solve by a factor, and prune; ``seen`` are points of a search before."""
        choice = self._choose(data, settings)
        choice = replace(choice, seen=seen + choice.seen)
        if self.prune is not None:
            return self._prune(data, choice)
        trial, best = choice.trial, choice.outcome
        plain = trial.basis.square and not trial.streams
        solution = self._solved(trial, best.sigma, best.alpha, consume=True)
        return Fitted(choice, trial.settings, trial.basis, solution, plain, best.alpha)

    def _linear_rival(self, data: Training) -> Linear | None:
        """The linear part of a sum of kernels, if it may be all there is, and be had from few coefficients."""
        kernel = data.kernel
        if self.solver == "krylov" or self.cv is None or np.inf not in self._linear_weights(kernel):
            return None
        assert isinstance(kernel, Sum)
        part = next(part for part in kernel.parts if isinstance(part, Linear))
        return part if self._few_unknowns(data, part) else None

    def _beats(self, data: Training, iterated: Fitted, rival: Fitted) -> bool:
        """Whether iterations are better, with caution clearly so, on the rows that they held out."""
        F, judge = iterated.choice.outcome.F, iterated.settings.judge
        held = np.flatnonzero(~np.isnan(F[:, 0]))
        rows, other = data.rows.part(held), rival.choice.outcome.F[held]
        if isinstance(judge, ValueJudge) and judge.scorer.cautious:
            return judge.clearly_better(rows, F[held], other)
        return iterated.choice.outcome.score > judge(rows, Held(other), None)[0]

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
        trials = [trial.spreading(spread) for spread in self._intercept_spreads(trial)]
        outcomes = [Search(other, search.seen).at(found.sigma, sharing, alphas) for other in trials]
        best = best_of(outcomes)
        trial = trials[outcomes.index(best)]
        return trial, Search(trial, search.seen).refine(best, alphas, known=True) if alphas.ratio else best

    def _intercept_spreads(self, trial: Trial) -> tuple[float, ...]:
        """Spreads of the tasks' intercepts that may be tried in a trial."""
        return (0.0,)

    linear_weight: Any


class SignedTargets(CalibratedClassifier):
    """Mixin for classifiers that fit -1 and 1, one column for each class: one against the rest."""

    SIGNED = True

    def _coded(self, y: Array, dtype: Any, known: Any) -> Targets:
        return replace(super()._coded(y, dtype, known), values=(2 * np.eye(len(known)) - 1).astype(dtype)[y])

    def _judge(self, classes: Array, calibration: str | None = None) -> ClassJudge:
        return replace(super()._judge(classes, calibration), signed=True)

    def _uncalibrated(self, data: Training) -> Calibrator:
        return Signed(super()._uncalibrated(data))
