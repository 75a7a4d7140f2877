"""Fits of models of one task, or many labels, to rows that Dask has: a first look and a sum, where the rows are."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leastwise.estimators._by_moments import Begun
from leastwise.estimators._stream_passes import counted
from leastwise.linalg.moments import Moments
from leastwise.model_selection.folds import observation_counts
from leastwise.solvers.moment_evaluators import SAMPLE_ROWS
from leastwise.sources.blocks import Block
from leastwise.sources.bottom_k import Kept, joined_kept
from leastwise.sources.dask import DaskParts, is_dask
from leastwise.sources.parts import Piece

Array = np.ndarray


@dataclass(frozen=True)
class PartFacts:
    """What a part of the rows tells before anything is chosen; that of two parts is their sum.

    Attributes
    ----------
    model : estimator
        Without anything fitted: it knows how targets are read.
    known : Any
        What is known of the targets; None for no rows.
    kept : Kept or None
        Rows with the lowest keys.
    counts : dict
        Weights of the classes.
    columns : tuple or None
        Number and names of the columns.
    """

    model: Any
    known: Any = None
    kept: Kept | None = None
    counts: dict | None = None
    columns: tuple | None = None

    def __add__(self, other: PartFacts) -> PartFacts:
        if other.known is None or self.known is None:
            return self if other.known is None else other
        if self.columns != other.columns:
            raise ValueError(f"Partitions have different columns: {self.columns} and {other.columns}.")
        known = self.model._combined(self.known, other.known)
        kept = [
            facts.kept.recoded(self.model._recode, facts.known, known)
            for facts in (self, other)
            if facts.kept is not None
        ]
        counts = {
            name: (self.counts or {}).get(name, 0.0) + (other.counts or {}).get(name, 0.0)
            for name in {**(self.counts or {}), **(other.counts or {})}
        }
        return replace(self, known=known, kept=joined_kept(kept), counts=counts)


@dataclass(frozen=True)
class Chosen:
    """What workers have to know to make sums."""

    model: Any
    begun: Begun
    known: Any
    factor: Array | None
    columns: tuple

    def worker(self) -> Any:
        """A model that knows its columns."""
        model = copy.copy(self.model)
        meet_columns(model, self.columns)
        return model


def check_in_memory(X: Any) -> None:
    """Refuse collections of Dask, all of which would come here."""
    if is_dask(X):
        raise ValueError(
            "partial_fit() and unfit() take rows in memory, not collections of Dask: fit() those, or give their "
            "partitions one after the other."
        )


def meet_columns(model: Any, columns: tuple) -> None:
    """Number and names of the columns."""
    model.n_features_in_ = columns[0]
    if columns[1] is not None:
        model.feature_names_in_ = np.array(columns[1], dtype=object)


def look(piece: Piece, own: None, model: Any) -> PartFacts:
    """The facts of a part."""
    if not len(piece):
        return PartFacts(model)
    worker = copy.copy(model)
    block = Block(piece.X, piece.y, piece.sample_weight)
    X, w = worker._block_rows(block, None)
    known = worker._learn(piece.y)
    codes = worker._encode(piece.y, known)
    worker._check_lengths(codes, w)
    names = getattr(worker, "feature_names_in_", None)
    columns = X.shape[1], None if names is None else tuple(names)
    kept = Kept.of(X, codes, w, None, SAMPLE_ROWS, observation_counts(piece.sample_weight))
    return PartFacts(model, known, kept, counted(codes, w, known), columns)


def summed(piece: Piece, own: None, chosen: Chosen) -> Moments:
    """The sums of a part."""
    begun, known = chosen.begun, chosen.known
    if not len(piece):
        return begun.zero()
    worker = chosen.worker()
    block = Block(piece.X, piece.y, piece.sample_weight)
    X, codes, w = worker._read(block, known, chosen.factor, begun.basis.centers.dtype)
    return worker._block_moments(X, codes, w, known, begun)


class OnDask:
    """Mixin for models with ``fit_stream``: ``fit`` takes arrays and frames of Dask."""

    def _fit_dask(self: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> Any:
        """One pass for a sample, one for the sums; no more than these leave the workers."""
        if groups is not None:
            raise ValueError(
                "groups= is not possible with rows that Dask has: they are held out one by one. Use fit_stream() "
                "with group= for groups."
            )
        kernel, bare = self._checked_stream(SAMPLE_ROWS), copy.copy(self)
        self._check_class_weight()
        parts = DaskParts.with_targets(X, y, sample_weight)
        facts: PartFacts = parts.total(look, None, bare)
        if facts.known is None or not facts.kept or facts.columns is None:
            raise ValueError("X has no rows (of a weight above 0): there is nothing to learn from.")
        known = self._completed(facts.known, len(facts.kept))
        sample = facts.kept.recoded(self._recode, facts.known, known)
        self._check_known(known)
        meet_columns(self, facts.columns)
        factor = self._class_factors(known, facts.counts)
        kept = sample if factor is None else sample.weighted(factor[sample.y])
        begun = self._begun(kept, known, kernel)
        moments = parts.total(summed, None, Chosen(bare, begun, known, factor, facts.columns))
        self._conclude(begun, moments, kept, known)
        return self
