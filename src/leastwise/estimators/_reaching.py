"""How far from their data classifiers are believed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from leastwise.calibration.extrapolation import (
    RANK,
    SOME,
    Reach,
    fit_reach,
    further_distances,
    heldout_distances,
    ranked_distances,
)
from leastwise.model_selection.subsample import distinct_sample
from leastwise.problem.basis import Basis, row_chunks
from leastwise.problem.kernels import Kernel
from leastwise.solvers.evaluator import Rows, Settings, Trial

Array = np.ndarray


class Reaching:
    """Mixin for classifiers whose probabilities go to the class shares; ``extrapolate`` is a parameter."""

    def _reach(self, trial: Trial) -> tuple[Reach | None, Array | None]:
        """How far from the data the model is believed, and how far held-out rows are; None for everywhere."""
        rows, kernel = trial.rows, trial.settings.kernel
        if not self._reaches(kernel):
            return None, None
        nearest = heldout_distances(kernel, trial.basis, trial.pairs, rows.place)
        some = distinct_sample(rows, SOME, "reach")
        further = further_distances(kernel, trial.basis, trial.pairs, rows.place, rows.copy, some)
        reach = fit_reach(nearest, further, rows.copy)
        return reach, None if reach is None else reach.trust(nearest)

    def _chunked_reach(
        self, rows: Rows, basis: Basis, settings: Settings, held: Array
    ) -> tuple[Reach | None, Array | None]:
        """The same without the distances between all rows and centres at once, from the rows that are held out."""
        kernel = settings.kernel
        if not self._reaches(kernel) or not len(held):
            return None, None
        home = None if basis.rows is None else rows.place[basis.rows]
        nearest = np.full(len(rows), np.inf, dtype=rows.X.dtype)
        for part in row_chunks(len(held), basis.n_functions, rows.X.dtype.itemsize):
            pairs = kernel.pairs(rows.X[held[part]], basis.centers)
            nearest[held[part]] = ranked_distances(kernel, pairs, rows.place[held[part]], home)
        cell = np.unique(np.stack([rows.copy, rows.place]), axis=1, return_inverse=True)[1].reshape(-1)
        some = held[distinct_sample(replace(rows, copy=cell).part(held), SOME, "reach")]
        distinct = slice(None) if basis.rows is None else np.unique(cell[basis.rows], return_index=True)[1]
        pairs = kernel.pairs(rows.X[some], basis.centers[distinct])
        home = None if home is None else home[distinct]
        reach = fit_reach(nearest, ranked_distances(kernel, pairs, rows.place[some], home, RANK), rows.copy)
        return reach, None if reach is None else reach.trust(nearest)

    def _reaches(self, kernel: Kernel) -> bool:
        """Whether trust falls with the distance from the data."""
        return kernel.distance and not self.extrapolate

    extrapolate: Any
    reach_: Reach | None
