"""What held-out scores are worth: those of classes, calibrated, and those of quantities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.heldout import Held
from leastwise.probability import Calibrator, fit_calibrator
from leastwise.scoring import Scorer, ValueScorer
from leastwise.selection.trial import Rows

Array = np.ndarray


@dataclass(frozen=True)
class ClassJudge:
    """Calibrates held-out scores of classes, and scores the probabilities.

    ``signed`` says that the targets were -1 and 1, not 0 and 1.
    """

    classes: Array
    calibration: str | None
    scorer: Scorer
    signed: bool = False

    @property
    def n_outputs(self) -> int:
        """One for each class."""
        return len(self.classes)

    def __call__(self, rows: Rows, held: Held, last: Calibrator | None) -> tuple[float, Calibrator]:
        """The score, and the calibrator."""
        sample = rows.sample(held.F)
        # An isotonic fit is judged on the rows that made it; the blend stands in for it during the search.
        kind = "blend" if self.calibration == "isotonic" else self.calibration
        calibrator = fit_calibrator(kind, sample, held.far, last, self.signed)
        return self.scorer(sample, calibrator, self.classes), calibrator


@dataclass(frozen=True)
class ValueJudge:
    """Scores held-out predictions of quantities, in the unit of the targets."""

    n_outputs: int
    scorer: ValueScorer
    unit: float = 1.0

    def __call__(self, rows: Rows, held: Held, last: Any) -> tuple[float, None]:
        """The score."""
        assert rows.values is not None
        return self.scorer(self.unit * rows.values, self.unit * held.F, rows.w, rows.task), None
