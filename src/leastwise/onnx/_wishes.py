"""What some models can be asked for beside their answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leastwise.estimators.base import Classifier, Regressor
from leastwise.estimators.recalibrated import Recalibrated


@dataclass(frozen=True)
class Wishes:
    """Intervals of regressors; other class shares, and sets, of classifiers.

    With ``marks`` labels that are not accepted are marked as such, and have no class.
    """

    interval: float | None = None
    class_prior: Any = None
    coverage: float | None = None
    marks: bool = True

    def check(self, model: Any) -> None:
        """Refuse what this one cannot."""
        name, classifier = type(model).__name__, isinstance(model, Classifier | Recalibrated)
        if self.interval is not None and not isinstance(model, Regressor):
            raise ValueError(f"interval={self.interval!r} is for regressors such as LSSVR; {name} is none.")
        if self.class_prior is not None and not classifier:
            raise ValueError(f"class_prior= is for classifiers that take it in predict_proba; {name} does not.")
        if self.coverage is not None:
            self._check_sets(name, classifier)

    def _check_sets(self, name: str, classifier: bool) -> None:
        if not classifier:
            raise ValueError(
                f"coverage={self.coverage!r} is for classifiers with predict_set; {name} has none. (Regressors have "
                "interval=.)"
            )
        if self.class_prior is not None:
            raise ValueError(
                "coverage= and class_prior= do not go together: held-out rows tell how large sets must be for the "
                "class shares of training. Write two graphs."
            )
        assert self.coverage is not None
        if not 0 < self.coverage < 1:
            raise ValueError(f"coverage={self.coverage!r} must be a number above 0 and below 1, such as 0.9.")
