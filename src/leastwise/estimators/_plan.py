"""The plan of a fit: how a model tells its costs, and how its fit follows them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import is_regressor

from leastwise.estimators._model import Training
from leastwise.problem.kernels import Kernel, Precomputed
from leastwise.solvers.choose import Draft, draft, timed
from leastwise.solvers.costs import Facts
from leastwise.solvers.evaluator import Settings
from leastwise.solvers.plan import Plan
from leastwise.sources.dask import is_dask

Array = np.ndarray


class _Stopped(Exception):
    """A fit that was to be planned only has come to its plan."""

    def __init__(self, made: Draft) -> None:
        super().__init__("planned")
        self.made = made


@dataclass(frozen=True)
class Size:
    """What a plan knows of the data."""

    n: int
    d: int
    c: int
    itemsize: int = 8
    distinct: int = 0
    folds: int = 0
    largest: int = 1
    exact: bool = True
    tasks: int = 1
    labels: int = 1
    stored: int = 0


class Planned:
    """Mixin for models that choose their solver by its costs. A subclass has the parameters of ``TunedModel``."""

    #: Which solvers there are, see ``leastwise.solvers.costs``.
    FAMILY: ClassVar[str]

    def plan(
        self: Any,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        *,
        n_outputs: int | None = None,
    ) -> Plan:
        """What ``fit`` would do and cost: solver, operations, memory, seconds. Nothing is fitted, nothing changes.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in ``fit``; they are checked as there. Or X is a shape such as ``(1_000_000, 20)``, and no more is
            needed.
        n_outputs : int, optional
            With a shape: the number of classes (2 unless told), of quantities (1), or of labels times their classes:
            100 for 50 labels that are true or not.

        Returns
        -------
        Plan
            ``print(plan)`` shows it as a table.
        """
        if is_shape(X):
            self._nothing_beside(y=y, sample_weight=sample_weight, groups=groups)
            return timed(draft(self._facts_of_shape(X, n_outputs)))
        return self._planned_fit(X, y, sample_weight=sample_weight, groups=groups)

    def _planned_fit(self: Any, X: Any, y: Any, **given: Any) -> Plan:
        """A fit of a copy, up to where it has its plan."""
        if is_dask(X):
            raise ValueError(
                "X is a collection of Dask, which is fitted where its rows are: plan() is about rows in memory. Give "
                "a shape, such as plan((1_000_000, 20)), to know what these would take here."
            )
        if isinstance(self.cv, Iterator):
            raise ValueError("cv is an iterator, which can be read only once: give a list to plan with.")
        other = copy.copy(self)
        other.random_state = copy.deepcopy(self.random_state)  # a generator is not to be used up
        other.cv = copy.deepcopy(self.cv)
        other._only_planned = True
        try:
            other.fit(X, y, **given)
        except _Stopped as stopped:
            return timed(stopped.made)
        raise AssertionError("A fit went on without a plan.")

    def _follow(self: Any, data: Training, settings: Settings) -> str:
        """The solver of the plan; refused before any work where that would not fit in memory."""
        made = draft(self._facts(settings.kernel, settings.norm, self._size(data, settings)))
        if getattr(self, "_only_planned", False):
            raise _Stopped(made)
        self._check_room(data)
        made.refuse()
        if self.verbose:
            self._report(f"plan: {timed(made).summary}")
        return made.solver

    def _check_room(self: Any, data: Training) -> None:
        """Refuse what else would not fit, with words of its own."""

    # ------------------------------------------------------------------ facts

    def _size(self: Any, data: Training, settings: Settings) -> Size:
        rows = data.rows
        sizes = np.bincount(rows.fold)
        return Size(
            len(rows),
            0 if isinstance(settings.kernel, Precomputed) else rows.X.shape[1],
            settings.n_outputs,
            rows.X.dtype.itemsize,
            int(rows.copy.max()) + 1,
            len(sizes),
            int(sizes.max()),
            rows.complete if hasattr(rows, "complete") else rows.equal_weights,
            1 if rows.task is None else int(rows.task.max()) + 1,
            rows.y.shape[1] if rows.y.ndim == 2 else 1,
            2 * rows.X.nnz // len(rows) + 1 if sparse.issparse(rows.X) else 0,
        )

    def _nothing_beside(self: Any, **given: Any) -> None:
        """Refuse what a plan of a shape would pass over."""
        strange = [name for name, value in given.items() if value is not None]
        if strange:
            more = ", n_tasks=" if "tasks" in given else ""
            raise ValueError(f"{strange[0]} cannot be given with a shape: tell numbers by n_outputs={more}.")

    def _facts_of_shape(self: Any, shape: tuple[int, int], wanted: int | None, tasks: int = 1) -> Facts:
        """As if there were such data: all rows of the same weight, none twice."""
        n_outputs = (1 if is_regressor(self) else 2) if wanted is None else wanted
        n, d = (int(size) for size in shape)
        kernel = self._shape_kernel()
        folds = int(self.cv) if isinstance(self.cv, Integral) and not isinstance(self.cv, bool) else n
        labels = max(1, int(n_outputs) // 2) if self.FAMILY == "labels" else 1
        size = Size(n, d, int(n_outputs), 8, n, folds, -(-n // max(folds, 1)), True, tasks, labels)
        return self._facts(kernel, getattr(self, "norm", "function"), size)

    def _shape_kernel(self: Any) -> Kernel:
        return self._checked()

    def _facts(self: Any, kernel: Kernel, norm: str, size: Size) -> Facts:
        b, square = self._planned_functions(size)
        sigmas, alphas = self._grids(1.0, 1.0)
        blocks = size.c if getattr(self, "basis", "full") == "class" else 1
        facts = {
            "b": b,
            "square": square,
            "cuttable": isinstance(self.centers, str) and not isinstance(kernel, Precomputed),
            "sums": not isinstance(kernel, Precomputed)
            and (self.n_centers is not None or not isinstance(self.centers, str)),
            "blocks": blocks,
            "norm": norm,
            "layers": kernel.layers,
            "search_rows": self.search_rows,
            "sigmas": len(sigmas.values) if kernel.has_sigma else 1,
            "alphas": len(alphas.values),
            "grows": alphas.ratio is not None,
            "chooses": self.cv is not None,
            **{name: getattr(size, name) for name in ("tasks", "labels", "folds", "largest", "exact", "stored")},
            **self._own_facts(kernel, size, square),
        }
        return Facts(self.FAMILY, self.solver, size.n, size.d, size.c, itemsize=size.itemsize, **facts)

    def _planned_functions(self: Any, size: Size) -> tuple[int, bool]:
        """Basis functions of all rows, and whether these are the rows in order."""
        if not isinstance(self.centers, str):
            return int(np.shape(self.centers)[0]), False
        whole = getattr(self, "basis", "full") == "full"
        if self.n_centers is None:
            return size.n, whole
        count = int(self.n_centers) * (1 if whole else size.c)
        if count >= size.n and self.centers == "random":
            return size.n, whole
        return min(count, size.distinct or size.n), False

    def _own_facts(self: Any, kernel: Kernel, size: Size, square: bool) -> dict[str, Any]:
        """What a family has beside."""
        return {}


def is_shape(X: Any) -> bool:
    """Whether X is a shape rather than rows: two whole numbers."""
    whole = isinstance(X, tuple) and len(X) == 2 and all(isinstance(v, Integral) for v in X)
    if whole and not all(v > 0 for v in X):
        raise ValueError(f"X={X!r} is a shape without rows or features: both numbers must be 1 or more.")
    return whole


class TaskPlanned(Planned):
    """Mixin for models of many tasks."""

    def plan(
        self: Any,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        tasks: Any = None,
        *,
        n_outputs: int | None = None,
        n_tasks: int = 10,
    ) -> Plan:
        """What ``fit`` would do and cost: solver, operations, memory, seconds. Nothing is fitted, nothing changes.

        Parameters
        ----------
        X, y, sample_weight, groups, tasks
            As in ``fit``; they are checked as there. Or X is a shape such as ``(1_000_000, 20)``.
        n_outputs : int, optional
            With a shape: the number of classes (2 unless told) or of quantities (1).
        n_tasks : int, default=10
            With a shape: the number of tasks.

        Returns
        -------
        Plan
            ``print(plan)`` shows it as a table.
        """
        if is_shape(X):
            self._nothing_beside(y=y, sample_weight=sample_weight, groups=groups, tasks=tasks)
            return timed(draft(self._facts_of_shape(X, n_outputs, int(n_tasks))))
        return self._planned_fit(X, y, sample_weight=sample_weight, groups=groups, tasks=tasks)

    def _shape_kernel(self: Any) -> Kernel:
        kernel = self._checked()[0]
        assert isinstance(kernel, Kernel)
        return kernel

    def _own_facts(self: Any, kernel: Kernel, size: Size, square: bool) -> dict[str, Any]:
        few = self._few_functions(kernel)
        known = {"few": few, "alike": self._alike, "sharings": len(self._checked_tasks().values)}
        # A linear kernel has the inputs for basis functions, where these are fewer than the rows.
        chosen = self.n_centers is not None or not isinstance(self.centers, str)
        if few and not chosen and self.solver != "dual" and (size.d < size.n or self.solver == "arrow"):
            known |= {"b": size.d, "square": False, "cuttable": False}
        return known
