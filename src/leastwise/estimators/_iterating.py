"""The Krylov solver in a fit: parameters from some rows, what held-out rows are like from a tenth."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from leastwise.estimators._model import Training
from leastwise.estimators._plan import Planned
from leastwise.estimators._pruning import Fitted
from leastwise.estimators._tuned import Found, TunedModel
from leastwise.linalg.krylov import Krylov
from leastwise.model_selection.subsample import held_out_tenth
from leastwise.problem.basis import Basis
from leastwise.problem.kernels import Kernel, Precomputed
from leastwise.solvers.evaluator import Rows, Settings
from leastwise.solvers.heldout import Held
from leastwise.solvers.krylov import Bonds, Effort, Iterated, solve_by_krylov

Array = np.ndarray


class Iterating(Planned, TunedModel):
    """Mixin for models that may be solved by iterations; ``solver``, ``tol`` and ``max_iter`` are parameters.

    A subclass says how parameters are found on some rows (``_guess``), how tasks are tied (``_bonds``), what an
    iterated model predicts (``_iterated_scores``), and what it looks like as that of another solver
    (``_iterated_solution``).
    """

    #: The parameter that limits the iterations.
    LIMIT: ClassVar[str] = "max_iter"

    def _may_iterate(self, kernel: Kernel) -> bool:
        """Whether iterations do all that was asked for: every row a centre, and kernels to compute."""
        unfit = isinstance(kernel, Precomputed) or kernel.definite is False
        return not unfit and self.n_centers is None and isinstance(self.centers, str)

    def _check_krylov(self, kernel: Kernel) -> None:
        """Refuse what ``solver="krylov"`` cannot do."""
        if kernel.definite is False:
            raise ValueError("solver='krylov' needs a kernel that is positive definite, which 'sigmoid' is not.")
        if isinstance(kernel, Precomputed):
            raise ValueError("solver='krylov' computes the kernel anew, block by block: give it rows, not a kernel.")
        if self.n_centers is not None or not isinstance(self.centers, str):
            raise ValueError("solver='krylov' is for all rows as centres: leave n_centers and centers as they are.")

    def _iterate(self, data: Training, choice: Found) -> Fitted:
        """With parameters chosen on some rows, judge on a tenth of all that is held out, and solve for all."""
        effort = Effort(self.tol, int(getattr(self, self.LIMIT)), self._report)
        choice = choice if self.cv is None else self._settle(data, choice, effort)
        best, rows, settings = choice.outcome, data.rows, choice.searched.settings
        bonds = self._bonds(data, choice)
        F, start, stories = np.full((len(rows), settings.n_outputs), np.nan, dtype=rows.X.dtype), None, []
        if self.cv is not None:
            start, story = self._hold_out(data, choice, bonds, effort, F)
            stories.append(story)
        self._report("all rows:")
        last = solve_by_krylov(rows, settings, best.sigma, best.alpha, bonds, effort, start)
        self._keep_stories([*stories, last.story])
        if self.cv is not None:
            score, calibrator = settings.judge(rows, Held(F), None)
            best = replace(best, score=score, calibrator=calibrator)
        basis = Basis(rows.X, np.arange(len(rows)), (), square=True)
        choice = replace(choice, outcome=replace(best, F=F))
        return Fitted(choice, settings, basis, self._iterated_solution(last, bonds), plain=False, chosen=best.alpha)

    def _hold_out(
        self, data: Training, choice: Found, bonds: Bonds | None, effort: Effort, F: Array
    ) -> tuple[Array, Krylov]:
        """Fill in the scores of a tenth of the rows by a model of the others; a start for all rows, and its story."""
        best, rows, settings = choice.outcome, data.rows, choice.searched.settings
        held = held_out_tenth(rows if rows.task is None else replace(rows, y=rows.task), "krylov")
        rest = np.setdiff1d(np.arange(len(rows)), held)
        self._report(f"without {len(held)} rows that are held out:")
        train, part = rows.take(rest, precomputed=False), None if bonds is None else bonds.part(rest)
        model = solve_by_krylov(train, settings, best.sigma, best.alpha, part, effort)
        F[held] = self._iterated_scores(settings, best.sigma, rows, held, rest, bonds, model)
        start = np.zeros((len(rows), model.story.X.shape[1]))
        start[rest] = model.story.X
        return start, model.story

    def _guess(self, data: Training, settings: Settings) -> Found:
        """Parameters found on some rows, with an alpha that suits all."""
        raise NotImplementedError

    def _settle(self, data: Training, choice: Found, effort: Effort) -> Found:
        """The same with what more rows say of alpha."""
        return choice

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
            more = f"{self.LIMIT}, " if worst.n_iter >= int(getattr(self, self.LIMIT)) else ""
            warnings.warn(
                f"solver='krylov' stopped after {self.n_iter_} iterations with a residual of {self.residual_:.1e} of "
                f"the right-hand side (tol={self.tol:g}): raise {more}tol or alpha, or use another solver; a kernel "
                "that is not positive definite has no solution this way. Predictions are as far from exact as that.",
                ConvergenceWarning,
                stacklevel=6,
            )

    solver: str
    tol: float
    n_iter_: int
    residual_: float
