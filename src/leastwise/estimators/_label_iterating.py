"""Many labels of many rows: parameters from some rows, what held-out rows are like from a tenth, then iterations."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from leastwise.basis import evaluate
from leastwise.estimators._iterating import DIRECT_ROWS
from leastwise.estimators._label_search import LabelSearch
from leastwise.estimators._labels import grouped_folds
from leastwise.estimators._model import Training
from leastwise.estimators._tuned import Found
from leastwise.heldout import Held
from leastwise.kernels import Precomputed
from leastwise.krylov_fitting import Effort
from leastwise.label_fitting import LabelSolution
from leastwise.label_krylov_fitting import solve_labels_free
from leastwise.memory import available_memory
from leastwise.selection.labels import LabelRows, LabelTrial
from leastwise.selection.plan import ARRAYS
from leastwise.selection.trial import Settings

Array = np.ndarray


class LabelIterating(LabelSearch):
    """Base of models of many labels that may be solved by iterations; ``solver`` is a parameter."""

    def _by_cg(self, data: Training, settings: Settings) -> bool:
        """Whether to iterate: where it was asked for, is cheaper, or nothing else fits into memory."""
        square = self.n_centers is None and isinstance(self.centers, str)
        unfit = isinstance(data.kernel, Precomputed) or data.kernel.definite is False or not square
        if self.solver == "cg" and unfit:
            raise ValueError(
                "solver='cg' needs every row as a centre, and a positive definite kernel to compute from rows: leave "
                "n_centers and centers as they are, or use solver='sylvester'."
            )
        if self.solver != "auto" or unfit:
            return self.solver == "cg"
        n = len(data.rows)
        need = ARRAYS[settings.norm] * n * n * data.rows.X.dtype.itemsize
        return n > DIRECT_ROWS or need > available_memory()

    def _iterate(self, data: Training, settings: Settings, choice: Found) -> tuple[Found, LabelSolution, Array]:
        """With parameters chosen on some rows, judge on a tenth of all that is held out, and solve for all.

        The last of what is returned are the rows that were held out.
        """
        rows, best, trial = data.rows, choice.outcome, choice.searched
        assert isinstance(rows, LabelRows)
        assert isinstance(trial, LabelTrial)
        ties = trial.tied(best.sharing).ties
        effort = Effort(self.tol, int(self.max_iter), data.rng, self._report)
        held, start = np.empty(0, dtype=int), None
        if self.cv is not None:
            fold = grouped_folds(10, rows.y, rows.group, int(data.rng.integers(2**31 - 1)))
            held, rest = np.flatnonzero(fold == 0), np.flatnonzero(fold != 0)
            self._report(f"without {len(held)} rows that are held out:")
            part = rows.take(rest, precomputed=False)
            first = solve_labels_free(part, settings, best.sigma, best.alpha, ties, effort)
            best.F = np.full((len(rows), settings.n_outputs), np.nan, dtype=rows.X.dtype)
            F, _ = evaluate(settings.kernel, best.sigma, rows.X[held], part.X, None, first.coef)
            best.F[held] = F + first.intercept
            best.score, best.calibrator = settings.judge(rows, Held(best.F, first.intercept), best.calibrator)
            start = [_spread(story.Q, rest, len(rows)) for story in first.story]
        self._report("all rows:")
        last = solve_labels_free(rows, settings, best.sigma, best.alpha, ties, effort, start)
        return choice, last, held

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
                f"{self.residual_:.1e} of the right-hand side (tol={self.tol:g}): raise max_iter, tol or alpha. "
                "Predictions are as far from exact as that.",
                ConvergenceWarning,
                stacklevel=4,
            )

    solver: str


def _spread(Q: Array, rest: Array, n: int) -> Any:
    """Coefficients of some rows as those of all, zeros elsewhere."""
    wide = np.zeros((Q.shape[0], n, Q.shape[2]), dtype=Q.dtype)
    wide[:, rest] = Q
    return wide
