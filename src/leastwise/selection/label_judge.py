"""What held-out scores of many labels are worth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from leastwise.heldout import Held
from leastwise.labels.probability import fit_label_calibrator
from leastwise.labels.scoring import LabelScorer
from leastwise.labels.thresholds import choose_thresholds, decide
from leastwise.selection.labels import LabelRows

Array = np.ndarray


@dataclass(frozen=True)
class LabelJudge:
    """Calibrates held-out scores of many labels, all in one, and scores the probabilities or what is decided by them.

    Attributes
    ----------
    starts : ndarray of int of shape (T + 1,)
    calibration : str or None
    scorer : LabelScorer
    threshold : float, ndarray of shape (T,) or str
        Above which probability a label is given; "auto" takes what suits the scorer best.
    """

    starts: Array
    calibration: str | None
    scorer: LabelScorer
    threshold: Any = 0.5
    scale: float = 1.0
    of_classes: ClassVar[bool] = True

    @property
    def n_outputs(self) -> int:
        """One for each class of each label."""
        return int(self.starts[-1])

    def take(self, labels: Array) -> LabelJudge:
        """The judge of some of the labels."""
        starts = np.cumsum([0, *np.diff(self.starts)[labels]])
        each = isinstance(self.threshold, np.ndarray)
        return replace(self, starts=starts, threshold=self.threshold[labels] if each else self.threshold)

    def __call__(self, rows: Any, held: Held, last: Any) -> tuple[float, Any]:
        """The score, and the calibrator."""
        assert isinstance(rows, LabelRows)
        sample = rows.label_sample(held.F)
        # An isotonic fit is judged on the rows that made it; the blend stands in for it during the search.
        kind = "blend" if self.calibration == "isotonic" else self.calibration
        calibrator = fit_label_calibrator(kind, sample, last, pooled=True)
        P = calibrator.proba(sample.F)
        if not self.scorer.decides:
            return self.scorer(sample, P, sample.codes), calibrator
        threshold = self.threshold
        if isinstance(threshold, str):
            threshold = choose_thresholds(self.scorer.name, P[:, 1::2], sample.codes, sample.W)
        return self.scorer(sample, P, decide(P, self.starts, threshold)), calibrator
