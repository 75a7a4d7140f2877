"""Fits of one task, or many labels, to collections of Dask: a sample and sums, made where the rows are."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leastwise.estimators.block_passes import (
    block_rows,
    check_lengths,
    read_block,
    recoded,
)
from leastwise.estimators.spec import Spec
from leastwise.estimators.streaming import store_conclusion
from leastwise.estimators.sums import StreamState, begin_stream, block_moments
from leastwise.linalg.moments import Moments
from leastwise.model_selection.folds import observation_counts
from leastwise.problem.kernels import Kernel
from leastwise.problem.targets import Targets
from leastwise.solvers.moments import SAMPLE_ROWS
from leastwise.sources.blocks import Block
from leastwise.sources.bottom_k import Kept, joined_kept
from leastwise.sources.dask import DaskParts
from leastwise.sources.parts import Piece

Array = np.ndarray


@dataclass(frozen=True)
class PartitionSummary:
    """What a partition of the rows tells before anything is chosen; that of two partitions is their sum.

    Attributes
    ----------
    targets : Targets or None
        None for no rows.
    kept : Kept or None
        Rows with the lowest hashes.
    counts : dict
        Weights of the classes.
    columns : tuple or None
        Number and names of the columns.
    """

    targets: Any = None
    kept: Kept | None = None
    counts: dict | None = None
    columns: tuple | None = None

    def __add__(self, other: PartitionSummary) -> PartitionSummary:
        if other.targets is None or self.targets is None:
            return self if other.targets is None else other
        if self.columns != other.columns:
            raise ValueError(f"Partitions have different columns: {self.columns} and {other.columns}.")
        targets = self.targets + other.targets
        kept = [recoded(part.kept, targets, part.targets) for part in (self, other) if part.kept is not None]
        names = {**(self.counts or {}), **(other.counts or {})}
        counts = {name: (self.counts or {}).get(name, 0.0) + (other.counts or {}).get(name, 0.0) for name in names}
        return replace(self, targets=targets, kept=joined_kept(kept), counts=counts)


@dataclass(frozen=True)
class SumTask:
    """What workers have to know to make sums."""

    model: Any
    begun: StreamState
    targets: Targets
    factor: Array | None
    columns: tuple


def _summarize(piece: Piece, own: None, model: Any) -> PartitionSummary:
    """The summary of a partition."""
    if not len(piece):
        return PartitionSummary()
    worker, spec = copy.copy(model), model._spec()
    X, w = block_rows(worker, spec, Block(piece.X, piece.y, piece.sample_weight), None)
    targets = spec.targets.learn(piece.y)
    codes = targets.encode(piece.y)
    check_lengths(codes, w)
    names = getattr(worker, "feature_names_in_", None)
    columns = X.shape[1], None if names is None else tuple(names)
    kept = Kept.of(X, codes, w, None, SAMPLE_ROWS, observation_counts(piece.sample_weight))
    return PartitionSummary(targets, kept, targets.counts(codes, w), columns)


def _sum(piece: Piece, own: None, task: SumTask) -> Moments:
    """The sums of a partition."""
    begun = task.begun
    if not len(piece):
        return begun.zero()
    worker = copy.copy(task.model)
    set_columns(worker, task.columns)
    block, dtype = Block(piece.X, piece.y, piece.sample_weight), begun.basis.centers.dtype
    X, codes, w = read_block(worker, worker._spec(), block, task.targets, task.factor, dtype)
    return block_moments(X, codes, w, task.targets, begun)


def set_columns(model: Any, columns: tuple) -> None:
    """Number and names of the columns."""
    model.n_features_in_ = columns[0]
    if columns[1] is not None:
        model.feature_names_in_ = np.array(columns[1], dtype=object)


def fit_dask(model: Any, spec: Spec, X: Any, y: Any, sample_weight: Any, groups: Any) -> Any:
    """One pass for a sample, one for the sums; no more than these leave the workers."""
    if groups is not None:
        raise ValueError(
            "groups= is not possible with rows that Dask has: they are held out one by one. Use fit_stream() "
            "with group= for groups."
        )
    kernel: Kernel = spec.check_stream(SAMPLE_ROWS)
    bare = copy.copy(model)
    spec.targets.check_parameters()
    parts = DaskParts.with_targets(X, y, sample_weight)
    found: PartitionSummary = parts.total(_summarize, None, bare)
    if found.targets is None or not found.kept or found.columns is None:
        raise ValueError("X has no rows (of a weight above 0): there is nothing to learn from.")
    targets = found.targets.completed(len(found.kept))
    sample = recoded(found.kept, targets, found.targets)
    targets.check_learnable()
    set_columns(model, found.columns)
    factor = targets.class_factors(found.counts)
    kept = sample if factor is None else sample.weighted(factor[sample.y])
    begun = begin_stream(spec, kept, targets, kernel)
    moments = parts.total(_sum, None, SumTask(bare, begun, targets, factor, found.columns))
    store_conclusion(model, spec, begun, moments, kept, targets)
    return model
