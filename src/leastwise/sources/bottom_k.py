"""A bottom-k sample of a stream: the rows with the lowest hash keys.

The sample is uniform over distinct rows (or groups), and does not depend on the order of the rows or the blocks.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from leastwise.utils.hashing import EVERY, id_keys, pair_hashes, row_hashes, threshold

Array = np.ndarray

#: Copies of rows are merged if there are more rows than this multiple of the limit.
COPIES = 2
#: Maximum number of rows of two groups, one of which is held out.
LARGE = 100_000
#: Weights below this, relative to the largest, are zero.
NEGLIGIBLE = 1e-9


@dataclass(frozen=True, eq=False)
class Kept:
    """Sampled rows, each with all of its copies, or whole groups of rows.

    Attributes
    ----------
    key : ndarray of uint64 of shape (m,)
        The hash of the row, or of its group.
    X : array or sparse matrix of shape (m, n_features)
    y : ndarray of shape (m, ...)
        Class codes, or regression targets.
    w : ndarray of shape (m,)
        Weights, as in the sums.
    group : ndarray of shape (m,) or None
        The user's groups.
    limit : int
        Maximum number of distinct keys; with groups, of rows, but at least two groups are kept.
    bound : int
        The largest key that is kept.
    count : ndarray of shape (m,)
        Number of observations that each row represents.
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
        """The sample of some rows."""
        return cls.all(X, y, w, group, limit, count).lowered()

    @classmethod
    def all(cls, X: Any, y: Array, w: Array, group: Array | None, limit: int, count: Array | None = None) -> Kept:
        """All rows with a positive weight; each is one observation unless ``count`` is given."""
        count = np.ones(len(w)) if count is None else count
        if group is not None:
            key = id_keys(group)
        elif y.dtype.kind == "f":  # equal inputs with other targets are separate measurements
            key = pair_hashes(row_hashes(X), row_hashes(y.reshape(len(y), -1)))
        else:
            key = row_hashes(X)
        return cls(key, X, y, w, group, limit, int(EVERY), count).part(w > 0)

    def __len__(self) -> int:
        return len(self.key)

    def part(self, some: Array) -> Kept:
        """Some of the rows."""
        index = np.flatnonzero(some)
        if len(index) == len(self):
            return self
        group = None if self.group is None else self.group[index]
        taken = {name: getattr(self, name)[index] for name in ("key", "X", "y", "w", "count")}
        return replace(self, **taken, group=group)

    def owned(self) -> Kept:
        """A copy, for iterators that refill the arrays they have yielded."""
        group = None if self.group is None else self.group.copy()
        copied = {name: getattr(self, name).copy() for name in ("X", "y", "w", "count")}
        return replace(self, **copied, group=group)

    def lowered(self) -> Kept:
        """The rows with the lowest keys, up to the limit."""
        bound = min(int(threshold(self.key, self.limit, rows=self.group is not None)), self.bound)
        low = replace(self.part(self.key <= np.uint64(bound)), bound=bound)
        # Copies of equal weight are held out exactly; if there are too many weights, by their mean weight.
        for exact in (True, False):
            low = low.merged(exact) if len(low) > COPIES * self.limit else low
        if self.group is not None and len(low) > max(LARGE, COPIES * self.limit):
            raise ValueError(
                f"Two groups have {len(low)} rows together, too many to keep and hold out: give smaller groups, or "
                "none."
            )
        return low

    def merged(self, exact: bool) -> Kept:
        """Copies merged into one row, with summed weights and counts; with ``exact``, only copies of equal weight."""
        place: dict[tuple, int] = {}
        unit = (self.w / self.count).tolist() if exact else [0.0] * len(self)
        names = zip(self._names(), unit, strict=True)
        first = np.array([place.setdefault(name, i) for i, name in enumerate(names)])
        w, count = (np.bincount(first, weights=each, minlength=len(self)) for each in (self.w, self.count))
        return replace(self, w=w.astype(self.w.dtype), count=count).part(first == np.arange(len(self)))

    def recoded(self, targets: Any, old: Any) -> Kept:
        """The sample with the codes of other targets, which ``old`` encoded."""
        return self if targets is old else replace(self, y=targets.recode(self.y, old))

    def weighted(self, factor: float | Array) -> Kept:
        """The sample with weights multiplied by a number, or by one number for each row."""
        return replace(self, w=self.w * factor)

    def without(self, gone: Kept) -> Kept:
        """The sample without some rows; an error if a row whose key is below the bound is not in the sample."""
        if len(self) and (gone.group is None) != (self.group is None):
            raise ValueError(
                "Groups were given for the added rows and not here, or the other way round: give both or neither."
            )
        places, w, most = defaultdict(list), self.w.astype(float), float(self.w.max(initial=0.0))
        count = self.count.copy()
        for i, name in enumerate(self._names()):
            places[name].append(i)
        gone = gone.part(gone.key <= np.uint64(self.bound))
        for name, weight, lost in zip(gone._names(), gone.w.tolist(), gone.count.tolist(), strict=True):
            for i in places[name]:
                taken = min(weight, w[i])
                w[i], weight = w[i] - taken, weight - taken
                fewer = min(lost, count[i] - 1)  # a row with any weight left is at least one observation
                count[i], lost = count[i] - fewer, lost - fewer
            if weight > NEGLIGIBLE * most:
                raise ValueError(
                    "unfit() removes rows that were added before, with the same target and no more weight than they "
                    "have (after forget(), pass the remaining weight as sample_weight=); at least one of these rows "
                    "was not. Nothing was changed."
                )
        return replace(self, w=w.astype(self.w.dtype), count=count).part(w > NEGLIGIBLE * most)

    def _names(self) -> list[tuple]:
        """Identifiers of the rows: key, inputs and target."""
        rows = row_hashes(self.X)
        y = np.ascontiguousarray(self.y)
        return [(int(k), int(r), v.tobytes()) for k, r, v in zip(self.key, rows, y, strict=True)]


def joined_kept(parts: list[Kept]) -> Kept:
    """The sample of the union of several parts."""
    full = [part for part in parts if len(part)] or parts
    first = full[0]
    if any((part.group is None) != (first.group is None) for part in full):
        raise ValueError("Some rows have groups, others do not: give groups for all rows, or for none.")
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


@dataclass(frozen=True)
class BottomKSample:
    """A sample to which samples of further rows are added.

    Attributes
    ----------
    limit : int
        Maximum number of distinct keys.
    parts : tuple of Kept
        Samples that are not joined yet: to join them at every block would copy the whole sample for a few rows.
    """

    limit: int
    parts: tuple[Kept, ...] = ()

    @classmethod
    def of(cls, X: Any, y: Array, w: Array, group: Array | None, limit: int, count: Array | None = None) -> Self:
        """The sample of some rows."""
        kept = Kept.of(X, y, w, group, limit, count)
        return cls(limit, (kept.owned() if kept.X is X else kept,))

    def __add__(self, other: BottomKSample) -> BottomKSample:
        if not self.parts:
            return other
        bound = np.uint64(self.parts[0].bound)
        parts = (*self.parts, *(part.part(part.key <= bound) for part in other.parts))
        if sum(map(len, parts[1:])) > max(self.limit, len(parts[0])):
            parts = (joined_kept(list(parts)),)
        return BottomKSample(self.limit, parts)

    def recoded(self, targets: Any, old: Any) -> BottomKSample:
        """The sample with the codes of other targets, which ``old`` encoded."""
        return self if targets is old else replace(self, parts=tuple(p.recoded(targets, old) for p in self.parts))

    def kept(self) -> Kept:
        """The sample of all rows so far."""
        return joined_kept(list(self.parts))
