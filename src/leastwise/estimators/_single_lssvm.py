"""What LS-SVMs of a single task have in common."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from leastwise.estimators._checks import check_search_rows, choose
from leastwise.estimators._lssvm import LSSVM
from leastwise.estimators._model import Training
from leastwise.estimators._plan import Size
from leastwise.estimators._single_iterating import SingleIterating
from leastwise.estimators._streaming import Streaming
from leastwise.estimators._tuned import Found
from leastwise.problem.basis import Basis, given_basis
from leastwise.problem.kernels import Kernel, Linear, Precomputed
from leastwise.solvers.evaluator import Rows, Settings, Trial
from leastwise.solvers.solve import Solution, scores, solve

Array = np.ndarray


#: A linear kernel of more rows than this is fitted by its coefficients.
MANY_ROWS = 1000


class SingleTaskLSSVM(Streaming, LSSVM, SingleIterating):
    """What the two of them have in common."""

    def _checked(self, calibrated: bool) -> Kernel:
        """All parameters checked, before any data are looked at; the kernel."""
        choose("solver", self.solver, ["auto", "cholesky", "moments", "krylov"])
        check_search_rows(self.search_rows)
        kernel = self._weighted(self._checked_kernel(calibrated))
        self._check_lssvm(kernel)
        if self.solver == "moments" and (self._chooses_rows or isinstance(kernel, Precomputed)):
            raise ValueError("solver='moments' goes with few centres: give n_centers, or an array of centers.")
        return kernel

    def _stream_kernel(self) -> Kernel:
        if self.prune is not None:
            raise ValueError("prune= takes away rows that are centres, which a stream has few of: leave it None.")
        return self._checked("calibration" in self.get_params(deep=False) and self.calibration is not None)

    def _few_centers(self, data: Training, settings: Settings) -> Basis:
        directions = self._by_directions(data.rows, settings.kernel)
        return self._basis(data.rows, data.seed, settings) if directions else super()._few_centers(data, settings)

    def _choose(self, data: Training, settings: Settings) -> Found:
        outcome, seen, trial = self._select(data, settings)
        return Found(outcome, seen, trial, trial)

    def _by_directions(self, rows: Rows, kernel: Kernel) -> bool:
        """Whether a linear function of many rows is had from its few coefficients."""
        return self._linear_directions(rows.X.shape[0], rows.X.shape[1], kernel)

    def _linear_directions(self, n: int, d: int, kernel: Kernel) -> bool:
        return isinstance(kernel, Linear) and self._chooses_rows and self.prune is None and n > max(2 * d, MANY_ROWS)

    @property
    def _chooses_rows(self) -> bool:
        """Whether every row is a centre, as far as parameters say."""
        return self.n_centers is None and isinstance(self.centers, str)

    def _basis(self, rows: Rows, seed: int, settings: Settings, kind: str = "full") -> Basis:
        kernel = settings.kernel
        if not self._by_directions(rows, kernel):
            return super()._basis(rows, seed, settings, kind)
        assert isinstance(kernel, Linear)
        return given_basis(kernel.directions(rows.X.shape[1], rows.X.dtype), settings.n_outputs)

    FAMILY = "machine"

    def _shape_kernel(self) -> Kernel:
        return self._checked(calibrated=getattr(self, "calibration", None) is not None)

    def _own_facts(self, kernel: Kernel, size: Size, square: bool) -> dict[str, Any]:
        known = super()._own_facts(kernel, size, square)
        if self._linear_directions(size.n, size.d, kernel):
            known |= {"b": size.d, "square": False, "cuttable": False, "iterates": False}
        return known

    def _few_unknowns(self, data: Training, kernel: Kernel) -> bool:
        return self._by_directions(data.rows, kernel)

    # --------------------------------------------------------------- pruning

    def _part(self, data: Training, trial: Trial, index: Array) -> Trial:
        rows = data.rows.take(index, isinstance(trial.settings.kernel, Precomputed))
        return Trial(rows, self._basis(rows, data.seed, trial.settings), trial.settings)

    def _solved(self, trial: Trial, sigma: float, alpha: float, consume: bool) -> Solution:
        if not consume:  # the solver writes into the pairs
            trial = copy.copy(trial)
            trial.pairs = trial.pairs.copy()
        return solve(trial, sigma, alpha)

    def _row_coef(self, solution: Solution) -> Array:
        return solution.coef

    def _said(self, trial: Trial, solution: Solution, sigma: float, rows: Rows, gone: Array, kept: Array) -> Array:
        if isinstance(trial.settings.kernel, Precomputed):
            return rows.X[np.ix_(gone, kept)] @ solution.coef + solution.intercept
        return scores(solution, trial.settings, sigma, rows.X[gone], trial.basis)
