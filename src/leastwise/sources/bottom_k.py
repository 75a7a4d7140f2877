"""Rows of a stream that are kept: those with the lowest keys, a random sample whatever the order and the blocks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.utils.hashing import EVERY, id_keys, pair_keys, row_keys, threshold

Array = np.ndarray

#: Copies are merged where there are more rows than so many times the limit.
COPIES = 2
#: Groups of more rows than this are too large to hold one of them out.
LARGE = 100_000
#: Weights below this, relative to others, are zero.
NOTHING = 1e-9


@dataclass(frozen=True, eq=False)
class Kept:
    """Some rows, each with all of its copies, or whole groups of rows.

    Attributes
    ----------
    key : ndarray of uint64 of shape (m,)
        Of the row, or of its group.
    X : array or sparse matrix of shape (m, n_features)
    y : ndarray of shape (m, ...)
        Codes of the classes, or quantities.
    w : ndarray of shape (m,)
        Weights, as they are in the sums.
    group : ndarray of shape (m,) or None
        The user's groups.
    limit : int
        Number of different keys that are kept, at most; of rows, where there are groups, but two groups at least.
    bound : int
        Rows with keys up to this one are kept.
    count : ndarray of shape (m,)
        How many observations each row stands for.
    """

    key: Array
    X: Any
    y: Array
    w: Array
    group: Array | None
    limit: int
    bound: int
    count: Array

    @classmethod
    def of(cls, X: Any, y: Array, w: Array, group: Array | None, limit: int, count: Array | None = None) -> Kept:
        """Those of some rows."""
        return cls.all(X, y, w, group, limit, count).lowered()

    @classmethod
    def all(cls, X: Any, y: Array, w: Array, group: Array | None, limit: int, count: Array | None = None) -> Kept:
        """All rows that have a weight; each is one observation unless ``count`` tells otherwise."""
        count = np.ones(len(w)) if count is None else count
        if group is not None:
            key = id_keys(group)
        elif y.dtype.kind == "f":  # rows with equal inputs and other values are measurements of their own
            key = pair_keys(row_keys(X), row_keys(y.reshape(len(y), -1)))
        else:
            key = row_keys(X)
        return cls(key, X, y, w, group, limit, int(EVERY), count).part(w > 0)

    def __len__(self) -> int:
        return len(self.key)

    def __add__(self, other: Kept) -> Kept:
        return joined_kept([self, other])

    def part(self, some: Array) -> Kept:
        """Some of them."""
        index = np.flatnonzero(some)
        if len(index) == len(self):
            return self
        group = None if self.group is None else self.group[index]
        taken = {name: getattr(self, name)[index] for name in ("key", "X", "y", "w", "count")}
        return replace(self, **taken, group=group)

    def owned(self) -> Kept:
        """The same in arrays of its own, where the next block might be written into those that it has."""
        group = None if self.group is None else self.group.copy()
        copied = {name: getattr(self, name).copy() for name in ("X", "y", "w", "count")}
        return replace(self, **copied, group=group)

    def lowered(self) -> Kept:
        """No more than the limit."""
        bound = min(int(threshold(self.key, self.limit, rows=self.group is not None)), self.bound)
        low = replace(self.part(self.key <= np.uint64(bound)), bound=bound)
        # Observations of one weight each are left out exactly; if there are too many weights, by their mean weight.
        for exact in (True, False):
            low = low.merged(exact) if len(low) > COPIES * self.limit else low
        if self.group is not None and len(low) > max(LARGE, COPIES * self.limit):
            raise ValueError(
                f"Two groups have {len(low)} rows together, which are too many to be kept and held out: give smaller "
                "groups, or none."
            )
        return low

    def merged(self, exact: bool) -> Kept:
        """Copies in one row, with the sums of their weights and counts; ``exact``: those whose weights are equal."""
        place: dict[tuple, int] = {}
        unit = (self.w / self.count).tolist() if exact else [0.0] * len(self)
        names = zip(self._names(), unit, strict=True)
        first = np.array([place.setdefault(name, i) for i, name in enumerate(names)])
        w, count = (np.bincount(first, weights=each, minlength=len(self)) for each in (self.w, self.count))
        return replace(self, w=w.astype(self.w.dtype), count=count).part(first == np.arange(len(self)))

    def recoded(self, change: Callable[[Array, Any, Any], Array], old: Any, new: Any) -> Kept:
        """With other codes for the same targets."""
        return replace(self, y=change(self.y, old, new))

    def weighted(self, factor: float | Array) -> Kept:
        """With weights multiplied by a number, or one for each row."""
        return replace(self, w=self.w * factor)

    def without(self, gone: Kept) -> Kept:
        """Without some rows, each of which has to be among them if its key says so."""
        if len(self) and (gone.group is None) != (self.group is None):
            raise ValueError("Groups were given for all rows that were added, or for none: give them here alike.")
        places, w, most = defaultdict(list), self.w.astype(float), float(self.w.max(initial=0.0))
        count = self.count.copy()
        for i, name in enumerate(self._names()):
            places[name].append(i)
        gone = gone.part(gone.key <= np.uint64(self.bound))
        for name, weight, lost in zip(gone._names(), gone.w.tolist(), gone.count.tolist(), strict=True):
            for i in places[name]:
                taken = min(weight, w[i])
                w[i], weight = w[i] - taken, weight - taken
                fewer = min(lost, count[i] - 1)  # a row that has any weight left is one observation at least
                count[i], lost = count[i] - fewer, lost - fewer
            if weight > NOTHING * most:
                raise ValueError(
                    "unfit() takes away rows that were added before, with the same class or value and no more weight "
                    "than they have (after forget(), give sample_weight=: what they still count); one of these was "
                    "not. Nothing was changed."
                )
        return replace(self, w=w.astype(self.w.dtype), count=count).part(w > NOTHING * most)

    def _names(self) -> list[tuple]:
        """What tells a row from others."""
        rows = row_keys(self.X)
        y = np.ascontiguousarray(self.y)
        return [(int(k), int(r), v.tobytes()) for k, r, v in zip(self.key, rows, y, strict=True)]


def joined_kept(parts: list[Kept]) -> Kept:
    """What is kept of all of several parts."""
    full = [part for part in parts if len(part)] or parts
    first = full[0]
    if any((part.group is None) != (first.group is None) for part in full):
        raise ValueError("Some rows have groups, others have none: give groups for all rows, or for none.")
    limit, bound = min(part.limit for part in parts), min(part.bound for part in parts)
    some = [part.part(part.key <= np.uint64(bound)) for part in full]
    whole = Kept(
        np.concatenate([part.key for part in some]),
        _stacked([part.X for part in some]),
        np.concatenate([part.y for part in some]),
        np.concatenate([part.w for part in some]),
        None if first.group is None else np.concatenate([part.group for part in some if part.group is not None]),
        limit,
        bound,
        np.concatenate([part.count for part in some]),
    )
    return whole.lowered()


def _stacked(parts: list[Any]) -> Any:
    if any(sparse.issparse(X) for X in parts):
        return sparse.vstack([sparse.csr_matrix(X) for X in parts], format="csr")
    return np.concatenate(parts)


class Keeper:
    """Keeps rows of blocks as they come."""

    def __init__(self, limit: int, start: Kept | None = None) -> None:
        self.limit = limit
        self._parts: list[Kept] = [] if start is None else [start]

    def add(self, X: Any, y: Array, w: Array, group: Array | None, count: Array | None = None) -> None:
        """Some more rows."""
        fresh = Kept.of(X, y, w, group, self.limit, count)
        if self._parts:
            fresh = fresh.part(fresh.key <= np.uint64(self._parts[0].bound))
        self._parts.append(fresh.owned() if fresh.X is X else fresh)
        # Not at every block: that would copy all that is kept for every few rows.
        if sum(map(len, self._parts[1:])) > max(self.limit, len(self._parts[0])):
            self._parts = [joined_kept(self._parts)]

    def recode(self, change: Callable[[Array], Array]) -> None:
        """Other codes for the same targets."""
        self._parts = [replace(part, y=change(part.y)) for part in self._parts]

    def kept(self) -> Kept:
        """What is kept of all blocks so far."""
        self._parts = [joined_kept(self._parts)]
        return self._parts[0]
