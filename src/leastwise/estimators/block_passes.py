"""Passes over the blocks of a stream: blocks are read and validated, sampled first, then summed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from leastwise.estimators.checks import check_groups, check_range
from leastwise.estimators.spec import Spec
from leastwise.estimators.sums import StreamState, block_moments
from leastwise.estimators.validation import CHECKS
from leastwise.linalg.moments import Moments
from leastwise.model_selection.folds import observation_counts
from leastwise.problem.kernels import resolve_kernel
from leastwise.problem.targets import Targets
from leastwise.problem.weights import block_weights
from leastwise.sources.blocks import Block, Blocks, StreamError
from leastwise.sources.bottom_k import BottomKSample, Kept
from leastwise.utils.arrays import bring

Array = np.ndarray

#: Seconds between two lines of progress.
PAUSE = 2.0


@dataclass(frozen=True)
class OneBlock:
    """A block of rows in memory as a stream."""

    block: Block
    repeatable: bool = False
    n_rows: int | None = None

    def __iter__(self) -> Iterator[Block]:
        return iter([self.block])


def as_block(X: Any, y: Any, sample_weight: Any, groups: Any) -> Block:
    """Rows that the user has in memory; frames keep their names, arrays of other libraries become numpy arrays."""
    X, y, sample_weight, groups = (bring(a) for a in (X, y, sample_weight, groups))
    return Block(X, y, sample_weight, None, None if groups is None else np.asarray(groups))


def block_rows(model: Any, spec: Spec, block: Block, dtype: Any) -> tuple[Any, Array]:
    """The rows of a block, validated, and their weights; the first one, without a type, tells the columns."""
    if block.y is None:
        raise ValueError("There are no targets: give y, or target= the name of their column.")
    wanted = [np.float64, np.float32] if dtype is None else [dtype]
    X = validate_data(model, block.X, reset=dtype is None, dtype=wanted, ensure_min_samples=0, **CHECKS)
    check_range(X, resolve_kernel(spec.kernel, spec.degree, spec.coef0))
    spec.targets.check_block_weight(block.sample_weight)
    if block.groups is not None:
        check_groups(block.groups, X.shape[0])
    return X, block_weights(block.sample_weight, X.shape[0])


def read_block(
    model: Any, spec: Spec, block: Block, targets: Targets, factor: Array | None, dtype: Any
) -> tuple[Any, Array, Array]:
    """Rows, codes of the targets, and weights."""
    X, w = block_rows(model, spec, block, dtype)
    codes = targets.encode(block.y)
    check_lengths(codes, w)
    return X, codes, w if factor is None else w * factor[codes]


def check_lengths(codes: Array, w: Array) -> None:
    """Every row needs its target."""
    if len(codes) != len(w):
        raise ValueError(f"X has {len(w)} rows and y {len(codes)}: every row needs its target.")


@contextmanager
def located(block: Block) -> Iterator[None]:
    """Errors about a block name its place."""
    try:
        yield
    except StreamError:
        raise
    except (ValueError, TypeError) as error:
        if not block.where:
            raise
        raise StreamError(f"{block.where}: {error}", where=block.where) from error


@dataclass
class Progress:
    """Lines on rows that have been gone through, one every few seconds at most."""

    report: Callable[[str], None]
    what: str
    total: int | None = None
    began: float = field(default_factory=time.monotonic)
    told: float = 0.0

    def tell(self, rows: int) -> None:
        """So many rows."""
        now = time.monotonic() - self.began
        if now - self.told >= PAUSE:
            self.told = now
            of = "" if self.total is None else f" of {self.total:,}"
            self.report(f"{self.what}: {rows:,}{of} rows, {now:.0f} s")


@dataclass
class FirstLook:
    """What the first rows, or a first pass over all, tell.

    Attributes
    ----------
    keeper : Keeper
        A sample of the rows.
    targets : Targets
        Known once the first rows, or ``classes``, were read.
    seen : bool
        ``targets`` are known.
    counts : dict
        Weights of the classes.
    waiting : list of Block
        Blocks that were taken from an iterator, and are still to be learned from.
    n_rows : int
        Rows of a weight above 0.
    names : list of str or None
        Names of the columns.
    error : StreamError or None
        What ended an iterator.
    dtype : dtype
        That of the first rows, and of all that follow.
    """

    keeper: BottomKSample
    targets: Targets
    seen: bool = False
    counts: dict = field(default_factory=dict)
    waiting: list[Block] = field(default_factory=list)
    n_rows: int = 0
    names: Any = None
    error: StreamError | None = None
    dtype: Any = None

    def add(self, model: Any, spec: Spec, block: Block) -> None:
        """One more block."""
        with located(block):
            X, w = block_rows(model, spec, block, self.dtype)
            self.dtype = X.dtype
            if not len(w):
                return
            fresh, old = spec.targets.learn(block.y), self.targets
            targets: Targets = old + fresh if self.seen else fresh
            if self.seen and targets is not old:
                self.keeper.recode(lambda codes: targets.recode(codes, old))
            codes = targets.encode(block.y)
            check_lengths(codes, w)
        self.targets, self.seen, self.n_rows = targets, True, self.n_rows + int(np.sum(w > 0))
        self.keeper.add(X, codes, w, block.groups, observation_counts(block.sample_weight))
        for name, mass in targets.counts(codes, w).items():
            self.counts[name] = self.counts.get(name, 0.0) + mass

    def completed(self, names: Any) -> tuple[Targets, Kept]:
        """The targets, and the rows that were kept."""
        kept = self.keeper.kept()
        targets = self.targets.completed(len(kept), names)
        return targets, recoded(kept, targets, self.targets)


def recoded(kept: Kept, targets: Targets, old: Targets) -> Kept:
    """Rows that were kept, under the codes of other targets."""
    return kept.recoded(lambda codes, before, after: after.recode(codes, before), old, targets)


def look_first(model: Any, spec: Spec, blocks: Blocks, stream: Iterator[Block], first: FirstLook, limit: int) -> None:
    """A first pass over rows that can be gone through again, else the first of them.

    A block that cannot be read ends it: what comes before is learned from, if there is anything.
    """
    progress = Progress(spec.report, "first look")
    try:
        for block in stream:
            first.add(model, spec, block)
            progress.tell(first.n_rows)
            if not blocks.repeatable:
                first.waiting.append(block)
                if first.n_rows >= limit:
                    break
                first.waiting[-1] = block.owned()
    except StreamError as error:
        if not first.n_rows:
            raise
        first.error = error
    if not first.n_rows:
        raise ValueError("The stream has no rows (of a weight above 0): there is nothing to learn from.")
    first.names = getattr(blocks, "names", None)


@dataclass
class RunningSums:
    """Sums over the blocks of a stream, as they come."""

    model: Any
    spec: Spec
    begun: StreamState
    targets: Targets
    factor: Array | None
    moments: Moments
    progress: Progress

    def add(self, block: Block, keeper: BottomKSample | None) -> None:
        """One more block; ``keeper`` keeps some of its rows."""
        with located(block):
            dtype = self.begun.basis.centers.dtype
            X, codes, w = read_block(self.model, self.spec, block, self.targets, self.factor, dtype)
            self.moments = self.moments + block_moments(X, codes, w, self.targets, self.begun)
        if keeper is not None:
            keeper.add(X, codes, w, block.groups, observation_counts(block.sample_weight))
        self.progress.tell(self.moments.n)

    def run(
        self, blocks: Blocks, stream: Iterator[Block], first: FirstLook, keeper: BottomKSample | None
    ) -> StreamError | None:
        """All blocks, up to one that cannot be read: the error that it makes."""
        try:
            if blocks.repeatable:
                for block in blocks:
                    self.add(block, None)
                return None
            for block in first.waiting:
                self.add(block, None)  # the keeper has seen them
            for block in stream if first.error is None else ():
                self.add(block, keeper)
        except StreamError as error:
            if not self.moments.n:
                raise
            return first.error or error
        return first.error
