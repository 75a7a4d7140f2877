"""Sparsity by pruning: the rows of the largest weights, and what is lost by keeping no others."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from leastwise.estimators._model import Training
from leastwise.estimators._tuned import Found, TunedModel
from leastwise.model_selection.objective import ValueJudge
from leastwise.problem.basis import Basis
from leastwise.solvers.evaluator import Judge, Rows, Settings
from leastwise.solvers.heldout import Held

Array = np.ndarray

#: Share of the rows that one step of pruning takes away.
PRUNE_STEP = 0.2


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


class Pruning(TunedModel):
    """Mixin for models with a coefficient for every row, of which some may be taken away; ``prune`` is a parameter.

    A subclass says how the trial of some rows is made (``_part``) and solved (``_solved``), which of a solution are
    the coefficients of the rows (``_row_coef``), and what it predicts for rows that are gone (``_said``).
    """

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
        held = None if self.cv is None else some.settled(some.heldout(best.sigma, 1)(alpha))
        solution = self._solved(some, best.sigma, alpha, consume=True)
        pruned = replace(best, alpha=alpha)
        self.pruning_: dict[str, float] = {"n_rows": n, "n_kept": len(index)}
        if held is not None:
            F = np.empty((n, held.F.shape[1]), dtype=held.F.dtype)
            F[index], gone = held.F, np.setdiff1d(np.arange(n), index)
            if len(gone):
                F[gone] = self._said(some, solution, best.sigma, data.rows, gone, index)
            judge = trial.settings.judge
            score, calibrator = judge(data.rows, Held(F), None)
            whole = best.score
            if isinstance(judge, ValueJudge):  # without any charge for degrees of freedom, as the pruned one
                whole, _ = judge(data.rows, Held(best.F), None)
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
        nothing, _ = judge(rows, Held(np.tile(mean, (len(rows), 1))), None)
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

    prune: Any
    pruning_: dict[str, float]


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
