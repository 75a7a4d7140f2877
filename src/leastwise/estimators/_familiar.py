"""How familiar rows are to a model: ``familiarity`` of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from leastwise.calibration.novelty import Neighbourhood, fit_neighbourhood
from leastwise.problem.basis import Basis
from leastwise.problem.kernels import Kernel, Laplace, Precomputed
from leastwise.sources.dask import by_partition
from leastwise.utils.arrays import bring

Array = np.ndarray


class Familiar:
    """Mixin for models that know their training rows."""

    @by_partition
    def familiarity(self, X: Any) -> Array:
        """The share of training rows that were, held out, at least as far from the nearest other one as each row.

        Of new rows like the training rows about 5 in 100 are at or below 0.05, so that ``familiarity(X) <= 0.05``
        marks rows that are far from the data, with 5 false alarms in 100. See :mod:`leastwise.calibration.novelty`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
            From ``1 / (n_training_rows + 1)`` (further than all) to 1 (training rows themselves). Distances are
            measured to 2,000 training rows at most, and judged by those of 1,000.
        """
        check_is_fitted(self)
        known = vars(self).get("neighbourhood_")
        if known is None:
            raise ValueError(
                "familiarity() measures distances between rows, which this model does not have: it has "
                "kernel='precomputed', was fitted with keep_rows=0, or comes from a file that was saved with "
                "keep='predict'."
            )
        return known.familiarity(self._measured_rows(X), vars(self).get("centers_"))

    def _measured_rows(self, X: Any) -> Any:
        """Rows as an array."""
        checks = {"accept_sparse": "csr", "accept_large_sparse": False}
        return validate_data(self, bring(X), reset=False, dtype=[self.intercept_.dtype], **checks)

    def _meet_neighbours(self, rows: Any, basis: Basis, kernel: Kernel) -> None:
        """Keep how far the training rows are from one another."""
        if not isinstance(kernel, Precomputed):
            city = isinstance(kernel.ruler, Laplace)
            self.neighbourhood_ = fit_neighbourhood(rows.X, rows.w, rows.group, rows.count, basis.rows, city)

    intercept_: Array
    neighbourhood_: Neighbourhood
