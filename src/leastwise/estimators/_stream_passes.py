"""Passes over the blocks of a stream: a first look, and sums."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leastwise.linalg.moments import Moments
from leastwise.model_selection.folds import observation_counts
from leastwise.sources.blocks import Block, Blocks, StreamError
from leastwise.sources.bottom_k import Keeper, Kept

Array = np.ndarray

#: Seconds between two lines of progress.
PAUSE = 2.0


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


@contextmanager
def named(block: Block) -> Iterator[None]:
    """What is wrong with a block is said with its place."""
    try:
        yield
    except StreamError:
        raise
    except (ValueError, TypeError) as error:
        if not block.where:
            raise
        raise StreamError(f"{block.where}: {error}", where=block.where) from error


@dataclass(frozen=True)
class OneBlock:
    """A block of rows that are in memory as a stream."""

    block: Block
    repeatable: bool = False
    n_rows: int | None = None

    def __iter__(self) -> Iterator[Block]:
        return iter([self.block])


def counted(codes: Array, w: Array, known: Any) -> dict:
    """Weights of classes by name; of quantities and many labels none."""
    if codes.ndim > 1 or codes.dtype.kind != "i":
        return {}
    mass = np.bincount(codes, weights=w, minlength=len(known))
    return dict(zip(known.tolist(), mass.tolist(), strict=True))


@dataclass
class FirstLook:
    """What the first rows, or a first pass over all, tell.

    Attributes
    ----------
    keeper : Keeper
        A sample of the rows.
    known : Any
        What is known of the targets.
    counts : dict
        Weights of the classes.
    waiting : list of Block
        Blocks that have been taken from an iterator, and are still to be learned from.
    n_rows : int
        Of a weight above 0.
    names : list of str or None
        Names of the columns.
    error : StreamError or None
        What ended an iterator.
    dtype : dtype
        That of the first rows, and of all that follow.
    """

    keeper: Keeper
    known: Any
    counts: dict = field(default_factory=dict)
    waiting: list[Block] = field(default_factory=list)
    n_rows: int = 0
    names: Any = None
    error: StreamError | None = None
    dtype: Any = None

    def add(self, model: Any, block: Block) -> None:
        """One more block."""
        with named(block):
            X, w = model._block_rows(block, self.dtype)
            self.dtype = X.dtype
            if not len(w):
                return
            known = model._learn(block.y) if self.known is None else model._grown(self.known, block.y)
            if self.known is not None and known is not self.known:
                old = self.known
                self.keeper.recode(lambda codes: model._recode(codes, old, known))
            codes = model._encode(block.y, known)
            model._check_lengths(codes, w)
        self.known, self.n_rows = known, self.n_rows + int(np.sum(w > 0))
        self.keeper.add(X, codes, w, block.groups, observation_counts(block.sample_weight))
        for name, mass in counted(codes, w, known).items():
            self.counts[name] = self.counts.get(name, 0.0) + mass

    def completed(self, model: Any, names: Any) -> tuple[Any, Kept]:
        """What is known of the targets, and the rows that were kept."""
        kept = self.keeper.kept()
        known = model._completed(self.known, len(kept), names)
        return known, kept.recoded(model._recode, self.known, known)


def look_first(model: Any, blocks: Blocks, stream: Iterator[Block], known: Any, limit: int) -> FirstLook:
    """A first pass over rows that can be gone through again, else the first of them.

    A block that cannot be read ends it: what comes before is learned from, if there is anything.
    """
    first, progress = FirstLook(Keeper(limit), known), Progress(model._report, "first look")
    try:
        for block in stream:
            first.add(model, block)
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
    return first


@dataclass
class Sums:
    """Sums over the blocks of a stream, as they come."""

    model: Any
    begun: Any
    known: Any
    factor: Array | None
    moments: Moments
    progress: Progress

    def add(self, block: Block, keeper: Keeper | None) -> None:
        """One more block; ``keeper`` keeps some of its rows."""
        with named(block):
            X, codes, w = self.model._read(block, self.known, self.factor, self.begun.basis.centers.dtype)
            self.moments = self.moments + self.model._block_moments(X, codes, w, self.known, self.begun)
        if keeper is not None:
            keeper.add(X, codes, w, block.groups, observation_counts(block.sample_weight))
        self.progress.tell(self.moments.n)

    def run(
        self, blocks: Blocks, stream: Iterator[Block], first: FirstLook, keeper: Keeper | None
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
