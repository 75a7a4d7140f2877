"""A search that is shown while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leastwise.model_selection.checkpoint import Diary, Entry, Step


@dataclass
class Watched:
    """Shows every step of a search.

    Attributes
    ----------
    status : object with a method ``update``
    inner : Diary, optional
        Who else listens, and may know a step from before.
    best : Entry, optional
        The best step so far; on more rows is better than on fewer.
    """

    status: Any
    inner: Diary | None = None
    best: Entry | None = None

    def recall(self, step: Step) -> Entry | None:
        """What the other listener knows."""
        known = None if self.inner is None else self.inner.recall(step)
        if known is not None:
            self._keep(known)
        self._show(step)
        return known

    def note(self, step: Step, entry: Entry) -> None:
        """A step is done."""
        if self.inner is not None:
            self.inner.note(step, entry)
        self._keep(entry)
        self._show(step)

    def _keep(self, entry: Entry) -> None:
        if self.best is None or _rank(entry) > _rank(self.best):
            self.best = entry

    def _show(self, step: Step) -> None:
        best = "" if self.best is None else "; best so far: " + self.best.line.partition(" (")[0]
        self.status.update(f"step {step.number + 1}, {step.n_rows:,} rows{best}")


def _rank(entry: Entry) -> tuple[int, float]:
    return entry.step.n_rows, entry.outcome.score
