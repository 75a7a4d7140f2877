"""When a decision stands: the rule that was asked for, and the thresholds that it leads to."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real

import numpy as np

from leastwise.calibration.risk import Decisions, fewest, safe_threshold

Array = np.ndarray


@dataclass(frozen=True)
class Rule:
    """One of three: a limit of the errors, a confidence, or the cost of a rejection."""

    max_error: float | None
    min_confidence: float | None
    cost: float | None
    confidence: float

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in ("max_error", "min_confidence", "cost")}
        named = {name: value for name, value in given.items() if value is not None}
        if len(named) != 1:
            raise ValueError(
                f"Give one of max_error, min_confidence and cost; given are {named or 'none'}. For one error in a "
                "hundred accepted rows: max_error=0.01."
            )
        for name, value in {**named, "confidence": self.confidence}.items():
            open_ends = name in ("max_error", "confidence")
            number = isinstance(value, Real) and not isinstance(value, bool)
            if not number or not (0 < value < 1 if open_ends else 0 <= value <= 1):
                ends = "above 0 and below 1" if open_ends else "from 0 to 1"
                raise ValueError(f"{name}={value!r} must be a number {ends}.")

    @property
    def doubt(self) -> float:
        """The probability with which a limit may be missed."""
        return 1 - self.confidence

    def threshold(self, decisions: Decisions) -> float:
        """The confidence from which on decisions stand; inf if none does."""
        if self.min_confidence is not None:
            return float(self.min_confidence)
        if self.cost is not None:  # strictly above 1 - cost
            return float(np.nextafter(1 - self.cost, np.inf))
        assert self.max_error is not None
        return safe_threshold(decisions, float(self.max_error), self.doubt)

    def task_thresholds(self, decisions: Decisions, task: Array, count: int, common: float) -> tuple[Array, Array]:
        """The tasks' own thresholds, and what they promise; tasks with few rows are one together, or have the common.

        Which tasks these are depends on numbers of rows alone, so that the guarantee holds for all of them together.
        """
        thresholds, promised = np.full(count, common), np.full(count, "none", dtype="<U8")
        if self.max_error is None:
            return thresholds, promised
        own = {t: decisions.part(np.flatnonzero(task == t)) for t in range(count)}
        large = [t for t, part in own.items() if self._enough(part)]
        small = np.setdiff1d(np.arange(count), large)
        together = decisions.part(np.flatnonzero(np.isin(task, small)))
        if self._enough(together):
            thresholds[small], promised[small] = self.threshold(together), "together"
        thresholds[large], promised[large] = [self.threshold(own[t]) for t in large], "own"
        return thresholds, promised

    def _enough(self, decisions: Decisions) -> bool:
        """Whether these rows could vouch for the limit, if all were right."""
        assert self.max_error is not None
        need = fewest(float(self.max_error), self.doubt, decisions.plain)
        return len(decisions) > 0 and decisions.size >= need

    def outcome(self, decisions: Decisions, level: Array) -> tuple[float, float]:
        """Coverage of held-out rows with thresholds of each row's own, and the bound of their errors."""
        settled = decisions.against(level)
        return settled.coverage(0.0), settled.bound(0.0, self.doubt)

    def warn_empty(self, decisions: Decisions, of: str = "") -> None:
        """Say what would be possible where nothing is accepted."""
        text = "No held-out row is as sure as was asked for: everything is rejected."
        if self.max_error is not None:
            seen = f"{len(decisions)} held-out rows"
            seen += "" if decisions.plain else f" (about {decisions.size:.0f} witnesses)"
            need = fewest(float(self.max_error), self.doubt, decisions.plain)
            text = (
                f"max_error={self.max_error:g} cannot be vouched for by {seen}{of}: everything is rejected{of}. "
                f"{self._possible(decisions)} At least {need} held-out rows without an error among them are needed."
            )
        warnings.warn(text, UserWarning, stacklevel=4)

    def warn_tasks(self, names: list) -> None:
        """Say which tasks are rejected whole."""
        shown = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        text = (
            f"max_error={self.max_error:g} cannot be vouched for by the held-out rows of the tasks {shown}: all of "
            "their rows are rejected. A larger max_error, or by_task=False, which promises for all tasks together, "
            "would accept some."
        )
        warnings.warn(text, UserWarning, stacklevel=4)

    def _possible(self, decisions: Decisions) -> str:
        """A limit that these rows can vouch for, in words."""
        limit = float(self.max_error or 1)
        while (limit := 1.25 * limit) < 1:
            threshold = safe_threshold(decisions, limit, self.doubt)
            if np.isfinite(threshold):
                return f"max_error={limit:.2g} would accept {decisions.coverage(threshold):.0%} of the rows."
        return "No limit would do with so few."
