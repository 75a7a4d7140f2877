"""Kernel logistic regression by Newton's method: held-out scores by refitting every fold, with warm starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp

from leastwise.linalg.decompositions import Cholesky, cholesky
from leastwise.linalg.logistic import Logistic, Stop, Task, solve_logistic
from leastwise.linalg.moments import Whitening, whitening
from leastwise.problem.basis import Basis
from leastwise.solvers.evaluator import Candidate, Evaluator, Rows, Settings
from leastwise.solvers.heldout import HeldOut
from leastwise.utils.arrays import get_namespace, softmax, to_namespace

Array = np.ndarray

#: With more folds than this, refits start from zero: storing the last solution of every fold takes too much memory.
WARM_FOLDS = 20


@dataclass(frozen=True)
class Softmax:
    """Calibrator of scores that are log-probabilities up to a constant per row, with class shares as the fallback."""

    shares: Array | None = None

    def proba(self, F: Array, in_domain: Array | None = None) -> Array:
        """Probabilities; rows sum to one."""
        return softmax(self.decision(F, in_domain))

    def decision(self, F: Array, in_domain: Array | None = None) -> Array:
        """Scores, blended with the log class shares by ``in_domain``; differences are log-odds."""
        if in_domain is None or self.shares is None:
            return F
        trusted = in_domain[:, None]
        blended = trusted * F + (1 - trusted) * to_namespace(np.log(self.shares), F)
        return get_namespace(F).where(trusted == 1, F, blended)


@dataclass(frozen=True)
class Coordinates:
    """Whitened features, in which the penalty is the identity: ``D = K L'^-1`` with ``L L' = K_cc``.

    If every row is a centre, D is L.
    """

    D: Array
    factor: Cholesky | Whitening


@dataclass(frozen=True)
class RefitOptions:
    """Options of refits: the grid of alphas, the solver, and its stopping criterion."""

    alphas: Any
    solver: str
    stop: Stop


class RefitEvaluator(Evaluator):
    """Held-out scores by refits, from the largest alpha down, each started from the previous solution."""

    def __init__(self, rows: Rows, basis: Basis, settings: Settings, solver_options: RefitOptions) -> None:
        super().__init__(rows, basis, settings)
        self.solver_options = solver_options
        self.folds_out = [np.flatnonzero(rows.fold == label) for label in np.unique(rows.fold)]
        self.unconverged: set[tuple[float, float]] = set()
        #: For every sigma: held-out scores by alpha, and the last parameters by fold.
        self.past: dict[float, tuple[dict[float, Array], dict[int, Array]]] = {}

    def for_worker(self) -> Self:
        """Copy for a parallel worker, without past solutions."""
        other = super().for_worker()
        other.past, other.unconverged = {}, set()
        return other

    def holding_out(self, rows: Array) -> Self:
        """Copy that holds out these rows together, and no others."""
        other = super().holding_out(rows)
        other.folds_out = [rows]
        return other

    @property
    def room(self) -> int:
        """Peak memory of a search step in bytes; refits run in double precision."""
        return super().room * 8 // self.rows.X.dtype.itemsize

    def warm_start(self, sigma: float) -> Any:
        """Held-out scores by alpha, last parameters by fold, and alphas that did not converge, as lists."""
        known, starts = self.past[sigma]
        unconverged = [alpha for other, alpha in self.unconverged if other == sigma]
        return [list(known), list(known.values()), list(starts), list(starts.values()), sorted(unconverged)]

    def set_warm_start(self, sigma: float, state: Any) -> None:
        """Adopt the past solutions of a copy, or of a checkpoint."""
        alphas, scores, folds, starts, unconverged = state
        self.past[sigma] = dict(zip(alphas, scores, strict=True)), dict(zip(folds, starts, strict=True))
        self.unconverged |= {(sigma, alpha) for alpha in unconverged}

    def identity(self, sigma: float) -> tuple:
        """Everything that held-out scores at this sigma depend on: also the solutions that refits start from."""
        known = list(self.past[sigma][0]) if sigma in self.past else []
        return *super().identity(sigma), self.solver_options, known

    def design(self, sigma: float, removed: Array | None = None) -> Coordinates:
        """Whitened features of all rows, without the centres ``removed``."""
        if not self.penalised:
            K = self.kernel(sigma)
            # A subset of these rows is a valid design for the subset: the ridge sets directions outside its span to
            # zero. So one factor serves all folds.
            factor = cholesky(K, overwrite=True)
            return Coordinates(np.ascontiguousarray(factor.L, dtype=np.float64), factor)
        columns = np.arange(self.basis.n_functions)
        columns = columns if removed is None else np.delete(columns, removed)
        known = whitening(self.center_kernel(sigma, columns))
        return Coordinates(self.whitened(sigma, known, columns).astype(float, copy=False), known)

    def solve(self, D: Array, y: Array, w: Array, alpha: float, start: Array | None = None) -> Logistic:
        """Fit some rows; every class from 0 to the largest must occur."""
        task = Task(D, y, w, alpha, int(y.max()) + 1, self.settings.bias)
        return solve_logistic(task, self.solver_options.solver, self.solver_options.stop, start)

    def heldout(self, sigma: float, count: int) -> Callable[[float], HeldOut]:
        """A function from alpha to held-out scores at this sigma."""
        design = self.design(sigma)
        known, starts = self.past.setdefault(sigma, ({}, {}))

        def at(alpha: float) -> HeldOut:
            for a in [*(a for a in self.solver_options.alphas.values[::-1] if a > alpha), alpha]:
                if a not in known:
                    known[a] = self._heldout(design, sigma, a, starts)
            return HeldOut(known[alpha])

        return at

    def _heldout(self, design: Coordinates, sigma: float, alpha: float, starts: dict[int, Array]) -> Array:
        """Held-out scores at one point; ``starts`` maps folds to their last parameters."""
        F = np.empty_like(self.Z)
        for k, out in enumerate(self.folds_out):
            removed = self._removed_centers(out)
            D = design.D if removed is None else self.design(sigma, removed).D
            stay, w = self._training_rows(out)
            F[out], summary = self._refit(D, stay, w, out, alpha, starts.get(k))
            if summary is not None and len(self.folds_out) <= WARM_FOLDS:
                starts[k] = summary.start
            if summary is not None and not summary.converged:
                self.unconverged.add((sigma, alpha))
        return F

    def _training_rows(self, out: Array) -> tuple[Array, Array]:
        """Training rows and weights when ``out`` is held out; of a row with several observations, one is removed."""
        every_row, count = np.arange(len(self.rows)), self.rows.split_count
        if count is None or count[out[0]] <= 1:
            stay = np.setdiff1d(every_row, out)
            return stay, self.rows.w[stay]
        w = self.rows.w.copy()
        w[out] *= 1 - 1 / count[out]
        return every_row, w

    def _removed_centers(self, out: Array) -> Array | None:
        """Centres deleted with the rows ``out``: their own, unless these are all centres."""
        own, count = self.basis.blocks[0].own, self.rows.split_count
        if count is not None and count[out[0]] > 1:  # other observations at the same centre remain
            return None
        if self.basis.square or own is None:
            return None
        removed = np.unique(own[out][own[out] >= 0])
        return removed if 0 < len(removed) < self.basis.n_functions else None

    def _refit(
        self, D: Array, stay: Array, w: Array, out: Array, alpha: float, start: Array | None
    ) -> tuple[Array, Logistic | None]:
        """Scores of the rows ``out`` from a model fitted to the rows ``stay`` with weights w.

        A class without a row in ``stay`` cannot be fitted. It gets the probability 1 / (n + 2) for n training rows.
        """
        present, y = np.unique(self.rows.y[stay], return_inverse=True)
        F = np.empty((len(out), self.Z.shape[1]))
        summary = None
        if len(present) > 1:
            summary = self.solve(D[stay], y, w, alpha, start)
        F[:, present] = 0 if summary is None else summary.scores(D[out])
        absent = np.setdiff1d(np.arange(F.shape[1]), present)
        if len(absent):
            F[:, absent] = logsumexp(F[:, present], axis=1, keepdims=True) - np.log(len(stay) + 2)
        return F, summary

    def objective(self, sigma: float, alpha: float, held: HeldOut, last: Candidate | None) -> Candidate:
        """Score held-out predictions."""
        objective: Any = self.settings.objective
        sample = self.rows.sample(held.F)
        return Candidate(sigma, alpha, objective.scorer(sample, Softmax(), objective.classes), held.F, Softmax())
