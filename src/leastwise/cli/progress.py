"""A search that is shown while it runs, and kept on disk so that it can be taken up again."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from leastwise.selection.diary import Diary, Entry, Step


@dataclass
class Watched:
    """Shows every step of a search.

    Attributes
    ----------
    status : object with a method ``update``
    inner : Diary, optional
        Who else listens, and may know a step from before.
    """

    status: Any
    inner: Diary | None = None
    best: float = -float("inf")
    recalled: int = 0
    began: float = field(default_factory=time.monotonic)

    def recall(self, step: Step) -> Entry | None:
        """What the other listener knows."""
        known = None if self.inner is None else self.inner.recall(step)
        if known is not None:
            self.recalled += 1
            self._show(step, known)
        else:
            self.status.update(f"step {step.number + 1}: sigma {step.sigma:.3g} on {step.n_rows:,} rows")
        return known

    def note(self, step: Step, entry: Entry) -> None:
        """A step is done."""
        if self.inner is not None:
            self.inner.note(step, entry)
        self._show(step, entry)

    def _show(self, step: Step, entry: Entry) -> None:
        seconds = time.monotonic() - self.began
        self.status.update(f"step {step.number + 1} done after {seconds:.0f} s: {entry.line}")
