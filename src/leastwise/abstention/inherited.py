"""What ``Abstaining`` has of the estimator inside."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.inside import Wrapping, inner_model, is_frozen

Array = np.ndarray


class Inherited(Wrapping):
    """Mixin for ``Abstaining``: attributes that are there where the estimator has them."""

    @property
    def n_features_in_(self) -> int:
        """Number of columns seen in ``fit``."""
        return self._fitted().n_features_in_

    @property
    def feature_names_in_(self) -> Array:
        """Names of the columns seen in ``fit``, where they had names."""
        return self._fitted().feature_names_in_

    @property
    def heldout_proba_(self) -> Any:
        """What the estimator says of its training rows when these are held out."""
        if is_frozen(self._fitted()):
            raise AttributeError("The estimator is frozen: the rows that it held out are not those given to fit.")
        return inner_model(self.estimator_).heldout_proba_

    @property
    def class_prior_(self) -> Any:
        """Class shares that the estimator was trained on."""
        return inner_model(self._fitted()).class_prior_

    def _fitted(self) -> Any:
        if "estimator_" not in vars(self):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet: call fit first.")
        return self.estimator_
