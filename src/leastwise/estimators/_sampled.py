"""A sample of whole tasks, and what was learned with its help of all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from leastwise.estimators._model import Training
from leastwise.estimators._tuned import Found
from leastwise.solvers.evaluator import Rows
from leastwise.solvers.solve_tasks import TaskSolution
from leastwise.sources.task_statistics import Known
from leastwise.sources.task_workers import Remote

Array = np.ndarray


@dataclass(frozen=True)
class SampledTasks:
    """A fit whose sample is at hand.

    Attributes
    ----------
    data : Training
        The sample, as if it were all.
    remote : Remote
        All rows.
    known : Known
    kept : ndarray of int
        Numbers of the tasks in the sample.
    order : ndarray of int or None
        See ``PartsTrial``.
    """

    data: Training
    remote: Remote
    known: Known
    kept: Array
    order: Array | None

    @cached_property
    def among(self) -> Rows:
        """The rows of the sample with the weights that they have among all."""
        rows, known = self.data.rows, self.known
        w = rows.w.astype(float) * (rows.mass / known.mass)
        w[np.abs(w - 1) < 1e-12] = 1
        shares = None if self.data.targets.classes is None else known.shares
        return replace(rows, w=w.astype(rows.X.dtype), mass=known.mass, shares=shares)

    @property
    def more(self) -> float:
        """How many rows there are for each of the sample."""
        return self.known.n / len(self.data.rows)


@dataclass(frozen=True)
class Done:
    """A model of all rows, found on a sample: held-out scores are those of the sample's rows."""

    found: Found
    solution: TaskSolution
