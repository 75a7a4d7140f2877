"""Many labels of many rows: parameters from some rows, what held-out rows are like from a tenth, then iterations."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from leastwise.estimators._label_search import LabelSearch
from leastwise.estimators._labels import STAND_IN, grouped_folds
from leastwise.estimators._model import Training
from leastwise.estimators._plan import Planned, Size
from leastwise.estimators._tuned import Found
from leastwise.model_selection.subsample import input_keys
from leastwise.problem.basis import evaluate
from leastwise.problem.kernels import Kernel, Precomputed
from leastwise.solvers.evaluator import Outcome, Settings
from leastwise.solvers.heldout import Held
from leastwise.solvers.krylov import Effort
from leastwise.solvers.label_evaluators import LabelRows, LabelTrial
from leastwise.solvers.label_modes import Tied
from leastwise.solvers.solve_labels import LabelSolution, solve_labels_free

Array = np.ndarray

#: Squared rows times outputs up to which all rows are held out in turn.
IN_TURN = 2_000_000_000


class LabelIterating(LabelSearch, Planned):
    """Base of models of many labels that may be solved by iterations; ``solver`` is a parameter."""

    FAMILY = "labels"

    def _may_iterate(self, kernel: Kernel) -> bool:
        """Whether iterations are possible: every row a centre, and kernels to compute."""
        square = self.n_centers is None and isinstance(self.centers, str)
        unfit = isinstance(kernel, Precomputed) or kernel.definite is False or not square
        if self.solver == "cg" and unfit:
            raise ValueError(
                "solver='cg' needs every row as a centre, and a positive definite kernel to compute from rows: leave "
                "n_centers and centers as they are, or use solver='sylvester'."
            )
        return not unfit

    def _own_facts(self, kernel: Kernel, size: Size, square: bool) -> dict[str, Any]:
        sharings = self._checked_search()
        pairs = self._table_of_pairs(sharings)
        return {"iterates": self._may_iterate(kernel), "sharings": len(sharings.values), "pairs": pairs}

    def _iterate(self, data: Training, settings: Settings, choice: Found) -> tuple[Found, LabelSolution, Array]:
        """With parameters chosen on some rows, judge on rows that are held out, and solve for all.

        The last of what is returned are the rows that were held out: all of them in turn, or a tenth of very many.
        """
        rows, best, trial = data.rows, choice.outcome, choice.searched
        assert isinstance(rows, LabelRows)
        assert isinstance(trial, LabelTrial)
        ties = trial.tied(best.sharing).ties
        effort = Effort(self.tol, int(self.max_iter), self._report)
        held, start, stories = np.empty(0, dtype=int), None, []
        if self.cv is not None:
            every = len(rows) ** 2 * settings.n_outputs <= IN_TURN
            fold = grouped_folds(STAND_IN if every else 10, rows.y, rows.group, input_keys(rows))
            parts = range(int(fold.max()) + 1) if every else range(1)
            best.F = np.full((len(rows), settings.n_outputs), np.nan, dtype=rows.X.dtype)
            for k in parts:
                start, told = self._hold_out(rows, settings, best, ties, effort, fold == k)
                stories += told
            held = np.flatnonzero(~np.isnan(best.F[:, 0]))
            best.score, best.calibrator = settings.judge(rows, Held(best.F), best.calibrator)
        self._report("all rows:")
        last = solve_labels_free(rows, settings, best.sigma, best.alpha, ties, effort, start)
        return choice, replace(last, story=stories + last.story), held

    def _hold_out(
        self, rows: LabelRows, settings: Settings, best: Outcome, ties: list[Tied], effort: Effort, out: Array
    ) -> tuple[list[Array], list]:
        """Fill in the scores of some rows by a model of the others; a start for a model of all rows, and stories."""
        rest = np.flatnonzero(~out)
        self._report(f"without {int(out.sum())} rows that are held out:")
        part = rows.take(rest, precomputed=False)
        found = solve_labels_free(part, settings, best.sigma, best.alpha, ties, effort)
        F, _ = evaluate(settings.kernel, best.sigma, rows.X[out], part.X, None, found.coef)
        best.F[out] = F + found.intercept
        return [_spread(story.Q, rest, len(rows)) for story in found.story], found.story

    def _keep_story(self, solution: LabelSolution) -> None:
        """Keep what is known of the iterations, and say so if they did not get there."""
        self.n_iter_ = 1  # two decompositions are one step
        if not solution.story:
            return
        self.n_iter_ = max(1, *(story.n_iter for story in solution.story))
        self.residual_ = max(float(np.max(story.residual, initial=0.0)) for story in solution.story)
        if not all(story.converged for story in solution.story):
            warnings.warn(
                f"Conjugate gradients stopped after {self.n_iter_} iterations with a residual of "
                f"{self.residual_:.1e} of the right-hand side (tol={self.tol:g}): raise max_iter, tol or alpha; "
                "a kernel that is not positive definite has no solution this way. Predictions are as far from exact.",
                ConvergenceWarning,
                stacklevel=4,
            )

    solver: str


def _spread(Q: Array, rest: Array, n: int) -> Any:
    """Coefficients of some rows as those of all, zeros elsewhere."""
    wide = np.zeros((Q.shape[0], n, Q.shape[2]), dtype=Q.dtype)
    wide[:, rest] = Q
    return wide
