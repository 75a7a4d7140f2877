"""What trials of tasks tied together have in common."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from leastwise.coupling import Coupling, Tie
from leastwise.heldout import Held
from leastwise.selection.trial import Outcome, Trial

Array = np.ndarray


class TiedTrial(Trial):
    """A trial of many tasks at one sharing."""

    coupling: Coupling
    tie: Tie

    def tied(self, sharing: float | None) -> Self:
        """The trial with this sharing; what was computed for the last sigma is kept for all sharings."""
        if sharing is None:
            return self
        other = copy.copy(self)
        other.tie = self.coupling.at(sharing)
        return other

    @property
    def lonely(self) -> Array | None:
        """Rows whose tasks share nothing with any row that stays."""
        assert self.rows.task is not None
        return self.tie.lonely(self.rows.task, self.rows.fold)

    def judge(self, sigma: float, alpha: float, held: Held, last: Outcome | None) -> Outcome:
        """Calibrate held-out scores and score the result."""
        outcome = super().judge(sigma, alpha, held, last)
        outcome.sharing = self.tie.sharing
        return outcome
