"""The coupled ridge of one fit: rows, targets, kernel, basis functions and coupling.

Only sigma, alpha and sharing are left open; :func:`leastwise.estimators.choosing.choose` finds them on held-out rows.
One task, many tasks and many labels differ in how rows are sampled and in which evaluator has the held-out scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from leastwise.estimators.spec import Spec
from leastwise.estimators.validation import Dataset
from leastwise.linalg.logistic import Stop
from leastwise.model_selection.grid import Grid, SharingGrid
from leastwise.model_selection.subsample import search_sample
from leastwise.problem.basis import Basis
from leastwise.problem.kernels import Precomputed
from leastwise.solvers.evaluator import Candidate, Evaluator, Rows, Settings
from leastwise.solvers.newton import RefitEvaluator, RefitOptions
from leastwise.solvers.search_rows import SEARCH_ROWS, rows_to_search

Array = np.ndarray


@dataclass(frozen=True)
class Grids:
    """Values of sigma, alpha and, for tasks and labels, sharing that the search starts from."""

    sigmas: Grid
    alphas: Grid
    sharings: SharingGrid | None = None

    @property
    def single(self) -> bool:
        """True if there is nothing to choose."""
        one = self.sharings is None or len(self.sharings.values) == 1
        return self.sigmas.single and self.alphas.single and one

    def for_share(self, share: float) -> Grids:
        """The grids for a share of the rows.

        What suits a model is a ridge on the sum of the losses, and alphas are on the mean. Alphas that the user gave
        are for all rows; automatic grids suit any number of rows.
        """
        if self.alphas.ratio or share == 1:
            return self
        return replace(self, alphas=Grid(tuple(a / share for a in self.alphas.values)))


@dataclass(frozen=True)
class RidgeProblem:
    """The ridge of one task, or, with a logistic loss, its kernel logistic regression.

    Attributes
    ----------
    spec : Spec
    data : Dataset
        All rows, or a subsample.
    settings : Settings
        Kernel, norm and objective.
    coupling : Coupling, Relation or None
        How tasks, or labels, are coupled.
    """

    spec: Spec
    data: Dataset
    settings: Settings
    coupling: Any = None

    def __len__(self) -> int:
        return len(self.data.rows)

    @property
    def rows(self) -> Rows:
        """Training rows."""
        return self.data.rows

    @property
    def precomputed(self) -> bool:
        """True if X is a kernel matrix."""
        return isinstance(self.settings.kernel, Precomputed)

    @cached_property
    def grids(self) -> Grids:
        """Values to search, in the units of these data."""
        return Grids(*self.spec.data_grids(self.rows, self.settings), self.sharings)

    @property
    def sharings(self) -> SharingGrid | None:
        """Sharings to try; None for one task."""
        return None

    @cached_property
    def basis(self) -> Basis:
        """Basis functions of these rows."""
        return self.spec.basis_of(self.rows, self.data.seed, self.settings, self.spec.basis)

    # ------------------------------------------------------------- subsamples

    def rows_to_search(self, on_all_rows: bool) -> int:
        """Number of rows to search on; ``on_all_rows`` says that an evaluator of all rows follows."""
        if self.spec.logistic:
            return len(self)
        if on_all_rows:
            return rows_to_search(self.basis, len(self), self.spec.search_rows)
        return SEARCH_ROWS if self.spec.search_rows == "auto" else int(self.spec.search_rows or len(self))

    def take(self, count: int) -> Self:
        """About ``count`` rows, the classes in proportion; all if there are no more, or no two folds among them."""
        rows = self.rows
        if count < len(rows):
            index = search_sample(rows, count, self.precomputed)
            if len(np.unique(rows.fold[index])) > 1:
                return self.with_rows(rows.take(index, self.precomputed))
        return self.with_rows(rows.to_numpy())

    def with_rows(self, rows: Rows) -> Self:
        """The same problem with other rows, and with a start whose ridge on the sum of the losses is the same."""
        if rows is self.rows:
            return self
        settings, start = self.settings, self.settings.start
        if start is not None:
            settings = replace(settings, start=replace(start, alpha=start.alpha * len(self) / len(rows)))
        return replace(self, data=replace(self.data, rows=rows), settings=settings)

    def simplified(self) -> RidgeProblem:
        """A problem with a closed form for the first search; itself where it has one."""
        return self

    # -------------------------------------------------------------- evaluators

    def evaluator(self) -> Any:
        """Held-out scores of these rows at any sigma, alpha and sharing."""
        if self.spec.logistic:
            return RefitEvaluator(self.rows, self.basis, self.settings, self.refit_options)
        return Evaluator(self.rows, self.basis, self.settings)

    @property
    def refit_options(self) -> RefitOptions:
        """Solver of kernel logistic regression and its limits."""
        stop = Stop(int(self.spec.max_iter), self.spec.tol)
        return RefitOptions(self.grids.alphas, self.spec.solver, stop)

    def check_search(self, evaluator: Any, sample: RidgeProblem) -> None:
        """Raise an error where a search on this sample is not possible."""

    def too_large_to_settle(self, evaluator: Any) -> bool:
        """True if one or two passes over the rows are affordable, but no search on them."""
        return False

    def exact(self, evaluator: Any, found: Candidate) -> Candidate:
        """The candidate with exact held-out scores, where the search used approximate ones."""
        return found
