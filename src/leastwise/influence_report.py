"""What ``influence`` returns: the training rows behind some predictions, as arrays, text and a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from textwrap import wrap
from typing import Any, ClassVar

import numpy as np

from leastwise.naming import LINE, NAME, shortened

Array = np.ndarray

#: So many predictions, and so many other tasks of each, are printed.
SHOWN, TASKS = 5, 3
#: The first line.
HEAD = "row: place of a training row in what fit was given, counted from 0 (not an index of a frame)"


@dataclass(frozen=True, eq=False)
class Influence:
    """The training rows behind m predictions, those of the largest effects first.

    Attributes
    ----------
    rows : ndarray of int of shape (m, k)
        Places of the training rows in what ``fit`` was given, counted from 0, whatever index a frame has.
    target : ndarray of shape (m, k), or (m, k, n_outputs)
        Their classes, or values.
    contribution : ndarray of shape (m, k, n_outputs)
        Their parts of the scores (of the predictions, for quantities). Those of all training rows sum to ``score``.
    effect : ndarray of shape (m, k, n_outputs)
        Score less that of the model without the row: positive where the row raises it. NaN where the model without
        the row would not know the task.
    score : ndarray of shape (m, n_outputs)
        What is explained: raw scores, one for each class, or predictions.
    outputs : sequence
        The classes, or 0, 1, ... for quantities.
    by_task : ndarray of shape (m, T, n_outputs) or None
        Contributions of all rows of each task; they sum to ``score``. None where there are no tasks.
    tasks : sequence or None
        The ids of the tasks.
    row_task : ndarray of int of shape (m, k) or None
        Tasks of the training rows, as places in ``tasks``.
    task : ndarray of int of shape (m,) or None
        Tasks of the predictions, as places in ``tasks``; -1 where it is not known.
    """

    rows: Array
    target: Array
    contribution: Array
    effect: Array
    score: Array
    outputs: Sequence[Any]
    by_task: Array | None = None
    tasks: Sequence[Any] | None = None
    row_task: Array | None = None
    task: Array | None = None

    #: What is the same for all predictions.
    COMMON: ClassVar[tuple[str, ...]] = ("outputs", "tasks")

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Influence:
        """Some of the predictions, or one."""
        index = np.atleast_1d(np.arange(len(self))[index])
        parts = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in self.COMMON}
        return replace(self, **{name: a[index] for name, a in parts.items() if a is not None})

    @property
    def own(self) -> Array:
        """What comes from rows of the prediction's own task, (m, n_outputs); zeros for a task that is not known."""
        if self.by_task is None or self.task is None:
            raise ValueError("This model knows no tasks, so there is no part of the score that is a task's own.")
        own = self.by_task[np.arange(len(self)), self.task]
        return np.where(self.task[:, None] >= 0, own, 0)

    @property
    def others(self) -> Array:
        """What comes from rows of the other tasks, (m, n_outputs)."""
        return self.score - self.own

    # ------------------------------------------------------------------ shown

    def to_frame(self) -> Any:
        """A frame (pandas) with a line for every prediction, training row and output."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame() needs pandas: install it with  pip install 'leastwise[frames]'") from None
        m, k, c = self.effect.shape
        target = self.target if self.target.ndim == 3 else np.repeat(self.target[:, :, None], c, axis=2)
        columns: dict[str, Any] = {"prediction": np.repeat(np.arange(m), k * c), "row": np.repeat(self.rows, c)}
        if self.row_task is not None and self.tasks is not None:
            columns["task"] = [self.tasks[t] for t in np.repeat(self.row_task, c)]
        columns |= {"target": target.ravel(), "output": [o for _ in range(m * k) for o in self.outputs]}
        return pd.DataFrame({**columns, "contribution": self.contribution.ravel(), "effect": self.effect.ravel()})

    def __str__(self) -> str:
        lines = [HEAD, *(line for i in range(min(len(self), SHOWN)) for line in self._lines(i))]
        hidden = len(self) - SHOWN
        return "\n".join(lines + ([f"... {hidden} more predictions: to_frame() has them all"] if hidden > 0 else []))

    def _lines(self, i: int) -> list[str]:
        """One prediction: the output with the largest score, its rows, and its tasks."""
        j = int(self.score[i].argmax())
        of = f"score of {self.outputs[j]!s}" if len(self.outputs) > 1 else "value"
        lines = wrapped(f"prediction {i}: {of} {self.score[i, j]:.4g}{self._tasks(i, j)}")
        lines += [f"{'row':>8}  {'target':>10}  {'contribution':>12}  {'effect':>10}" + ("  task" * self._tasked)]
        for r, row in enumerate(self.rows[i]):
            target = np.atleast_1d(self.target[i, r])[j if self.target.ndim == 3 else 0]
            shown = f"{target:.4g}" if isinstance(target, float) else str(target)
            line = f"{row:>8}  {shown:>10}  {self.contribution[i, r, j]:>12.4g}  {self.effect[i, r, j]:>+10.4g}"
            lines.append(line + (f"  {self._task_names[self.row_task[i, r]]}" if self._tasked else ""))  # type: ignore[index]
        return lines

    @cached_property
    def _task_names(self) -> list[str]:
        return shortened(self.tasks or [], NAME)

    @property
    def _tasked(self) -> bool:
        return self.tasks is not None

    def _tasks(self, i: int, j: int) -> str:
        """Where the score comes from, task by task."""
        if self.tasks is None or self.by_task is None or self.task is None:
            return ""
        t, part, names = int(self.task[i]), self.by_task[i, :, j], self._task_names
        order = [u for u in np.argsort(-np.abs(part), kind="stable") if u != t]
        own = "a task that is not known" if t < 0 else f"{part[t]:.4g} from its own task {names[t]}"
        return f" ({'; '.join([own, *sources(part, order, names, TASKS)])})"


def wrapped(text: str) -> list[str]:
    """Lines that are not too long."""
    return wrap(text, LINE, subsequent_indent="    ", break_on_hyphens=False)


def sources(part: Array, order: list[int], names: Sequence[str], shown: int) -> list[str]:
    """Where a score comes from, the largest parts by name and the others as a sum; empty where there are none."""
    told = [f"{part[u]:.4g} from {names[u]}" for u in order[:shown]]
    rest = order[shown:]
    told += [f"{part[rest].sum():.4g} from {len(rest)} others"] if rest else []
    return [", ".join(told)] if told else []
