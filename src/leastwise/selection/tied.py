"""What trials of tasks tied together have in common."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from leastwise.centring import Centring
from leastwise.coupling import Coupling, Tie
from leastwise.heldout import Held
from leastwise.selection.trial import Outcome, Trial

Array = np.ndarray


class TiedTrial(Trial):
    """A trial of many tasks at one sharing, with intercepts of their own of one spread."""

    coupling: Coupling
    tie: Tie
    spread: float = 0.0
    #: Spreads to choose from; none where tasks have no intercepts of their own.
    spreads: tuple[float, ...] = ()

    @property
    def bias(self) -> bool:
        """Whether there is an intercept that all tasks share; where each has a free one, there is no room for it."""
        return self.settings.bias and np.isfinite(self.spread)

    def centring(self) -> Centring | None:
        """What intercepts of the tasks' own do to the rows; None where there are none."""
        if self.spread == 0:
            return None
        assert self.rows.task is not None
        root = np.sqrt(self.rows.w).astype(self.rows.X.dtype)
        return Centring.of(self.rows.task, root, self.unit_spread, len(self.tie.own))

    @property
    def unit_spread(self) -> float:
        """The spread in units of the noise of a row of mean weight; as given it is for a row of weight 1."""
        return self.spread * self.rows.mass

    def described(self) -> str:
        """What there is to say of a trial beside sigma and alpha."""
        spread = f", spread {self.spread:.3g}" if self.spreads else ""
        return f", sharing {self.tie.sharing:.3g}{spread}{super().described()}"

    def spreading(self, spread: float) -> Self:
        """The trial with intercepts of this spread."""
        other = copy.copy(self)
        other.spread = spread
        return other

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
        if self.spread != 0:
            return None
        lonely = self.tie.lonely(self.rows.task, self.rows.fold)
        split = self.rows.split_count  # of several observations the others stay
        return lonely if split is None else lonely & (split <= 1)

    def judge(self, sigma: float, alpha: float, held: Held, last: Outcome | None) -> Outcome:
        """Calibrate held-out scores and score the result."""
        outcome = super().judge(sigma, alpha, held, last)
        outcome.sharing, outcome.spread = self.tie.sharing, self.spread
        return outcome
