"""What there is in all parts, from what there is in each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from leastwise.problem.kernels import Kernel, Scaled, Sum
from leastwise.problem.tasks import Tasks
from leastwise.problem.weights import balanced_factors, check_class_weight, is_balanced, mapped_factors
from leastwise.sources.parts import Move, moves
from leastwise.sources.task_reading import Facts, Rules, merged

Array = np.ndarray


@dataclass(frozen=True)
class Known:
    """What there is in all parts.

    Attributes
    ----------
    parts : list of Facts
    class_weight : mapping, "balanced" or None
    """

    parts: list[Facts]
    class_weight: Any = None

    @cached_property
    def filled(self) -> list[Facts]:
        """Parts with rows that count."""
        return [part for part in self.parts if part.dtype is not None]

    @cached_property
    def tasks(self) -> Tasks:
        """All tasks, sorted if they can be."""
        names = in_order(dict.fromkeys(name for part in self.parts for name in part.ids))
        given = in_order(dict.fromkeys(name for part in self.parts for name in (*part.ids, *part.lost)))
        return Tasks(names, None if len(given) == len(names) else given)

    @cached_property
    def classes(self) -> Array:
        """All classes, in order."""
        return np.unique(np.concatenate([part.classes for part in self.filled]))

    @cached_property
    def dtype(self) -> np.dtype:
        """That of the rows."""
        return np.result_type(*(part.dtype for part in self.filled))

    def unit(self, dtype: Any, bias: bool) -> tuple[Array, Array, bool]:
        """Unit and offset of quantities, and whether they came as one column; as ``KernelRegressor`` has them."""
        low = np.min([part.classes[0] for part in self.filled], axis=0)
        high = np.max([part.classes[1] for part in self.filled], axis=0)
        mean = np.sum([part.classes[2] for part in self.filled], axis=0) / self.n
        offset = mean if dtype == np.float32 and bias else np.zeros(len(low))
        largest = np.maximum(high - offset, offset - low)
        return 2.0 ** np.floor(np.log2(np.where(largest > 0, largest, 1.0))), offset, self.filled[0].flat

    @cached_property
    def moments(self) -> dict:
        """For every class the weight, the mean of the rows and the sum of their squared distances from it."""
        names = dict.fromkeys(name for part in self.filled for name in part.moments)
        return {name: merged([p.moments[name] for p in self.filled if name in p.moments]) for name in names}

    @cached_property
    def factors(self) -> dict:
        """The weight of each class beside those of the rows."""
        if self.class_weight is None:
            return dict.fromkeys(self.moments, 1.0)
        if is_balanced(self.class_weight):
            factor = balanced_factors(np.array([moments[0] for moments in self.moments.values()]))
        else:
            factor = mapped_factors(self.class_weight, self.moments)
        return dict(zip(self.moments, factor.tolist(), strict=True))

    @cached_property
    def width(self) -> int:
        """Number of features."""
        return len(next(iter(self.moments.values()))[1])

    @cached_property
    def alone(self) -> list:
        """Tasks of a single observation: leave-one-out leaves nothing of them."""
        total: dict[Any, float] = {}
        for part in self.parts:
            for name, count in part.alone.items():
                total[name] = total.get(name, 0.0) + count
        return [name for name, count in total.items() if count <= 1]

    @cached_property
    def n(self) -> int:
        """Rows that count."""
        return int(self.cells[2].sum())

    @cached_property
    def mass(self) -> float:
        """Mean weight of the rows that count."""
        return sum(self.factors[name] * moments[0] for name, moments in self.moments.items()) / self.n

    @cached_property
    def shares(self) -> Array:
        """Weighted class shares."""
        total = np.array([self.factors[name] * self.moments[name][0] for name in self.classes.tolist()])
        return total / total.sum()

    @cached_property
    def cells(self) -> Array:
        """As in ``Facts``, with the numbers of all tasks and classes, and weights with those of the classes."""
        found = []
        for part in self.filled:
            names = list(part.moments)
            place = np.searchsorted(self.classes, part.classes) if names != [None] else np.zeros(1, dtype=int)
            factor = np.array([self.factors[name] for name in names])
            task, label = self.tasks.codes(part.ids), part.cells[1].astype(int)
            found.append(
                [task[part.cells[0].astype(int)], place[label], part.cells[2], part.cells[3] * factor[label]]
            )
        return np.concatenate([np.stack(cells) for cells in found], axis=1)

    def moves(self, column: Any, home: str) -> list[Move]:
        """What has to move so that every task lies in one part."""
        rows = [part.rows for part in self.parts]
        return moves([part.ids for part in self.parts], [part.sizes for part in self.parts], rows, column, home)

    def waiting(self, plan: list[Move]) -> int:
        """Bytes of rows that wait for the part that they are at home in, at most, where parts come in order."""
        now, most, due = 0, 0, np.zeros(len(plan), dtype=int)
        for part, move in zip(self.parts, plan, strict=True):
            for name, size in zip(part.ids, part.sizes.tolist(), strict=True):
                if name in move.home:
                    now, due[move.home[name]] = now + size, due[move.home[name]] + size
            most, now = max(most, now), now - int(due[move.place])
        return most * (self.width + 2) * 8

    def fitted(self, kernel: Kernel) -> Kernel:
        """The kernel with all that it needs to know of all rows, as ``Kernel.fitted`` has it."""
        if isinstance(kernel, Sum):
            return replace(kernel, parts=tuple(self.fitted(part) for part in kernel.parts))
        if not isinstance(kernel, Scaled):
            return kernel
        total, mean, spread = merged(
            [(self.factors[k] * W, m, self.factors[k] * s) for k, (W, m, s) in self.moments.items()]
        )
        if any(part.sparse for part in self.filled):
            height = spread / total + float(mean @ mean)
            return Scaled(None, height if height > 0 else 1.0)
        return Scaled(mean.astype(self.dtype), spread / total if spread > 0 else 1.0)


def in_order(names: Iterable) -> list:
    """Ids sorted if they can be, else as they come."""
    names = list(names)
    try:
        return sorted(names)
    except TypeError:
        return names


def known_of(found: Sequence[Facts], rules: Rules) -> Known:
    """What there is in all parts; an error where that is nothing."""
    known = Known(list(found), rules.class_weight)
    met = in_order(dict.fromkeys(name for part in known.parts for name in part.met))
    check_class_weight(rules.class_weight, met or None)
    if not known.filled:
        rows = sum(part.rows for part in known.parts)
        raise ValueError(f"There are {rows} rows in {len(known.parts)} parts, and none with a weight above 0.")
    widths = {len(next(iter(part.moments.values()))[1]) for part in known.filled}
    if len(widths) > 1:
        raise ValueError(f"Parts have different numbers of columns: {sorted(widths)}.")
    return known
