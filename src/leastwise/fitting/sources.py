"""Fits to the rows of a source, from sums: one function for streams and for collections of Dask.

A first pass makes a summary of the rows, whose sample chooses centres, kernel and sigma. With categories it is made
twice, as their codes depend on the values of all rows. Another pass sums over all rows. Passes call functions of a
block, which a :class:`~leastwise.sources.row_source.RowSource` calls where the rows are, in this process or on
workers, and whose results it adds.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from leastwise.fitting.checks import check_groups, check_range
from leastwise.fitting.dataset import computed, read_matrix
from leastwise.fitting.spec import Spec
from leastwise.fitting.store import store
from leastwise.fitting.sums import STREAM_CENTERS, StreamState, begin_stream, block_moments, conclude
from leastwise.fitting.task_streams import fit_task_source
from leastwise.linalg.moments import Moments
from leastwise.model_selection.folds import observation_counts
from leastwise.problem.kernels import Kernel
from leastwise.problem.targets import Targets
from leastwise.problem.targets.classes import block_weights
from leastwise.solvers.moments import SAMPLE_ROWS
from leastwise.sources.blocks import Block, Known, StreamError
from leastwise.sources.bottom_k import BottomKSample, Kept
from leastwise.sources.dask import DaskSource
from leastwise.sources.frames import category_columns, has_categories, merged_categories
from leastwise.sources.row_source import RowSource
from leastwise.utils.atomic_fit import all_or_nothing

Array = np.ndarray


# --------------------------------------------------------------------------- fit


def fit_dask(
    model: Any, spec: Spec, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, tasks: Any = None
) -> Any:
    """Fit to Dask collections: only a sample and sums leave the workers."""
    if groups is not None:
        instead = "" if spec.many_tasks else " Use fit_stream() with group= instead."
        raise ValueError(
            f"groups= is not supported for Dask collections, whose rows are held out one at a time.{instead}"
        )
    if spec.many_tasks:
        return fit_task_source(model, spec, DaskSource.with_targets(X, y, sample_weight, tasks))
    fit_source(model, lambda spec: DaskSource.with_targets(X, y, sample_weight), None, SAMPLE_ROWS)
    return model


@all_or_nothing
def fit_source(
    model: Any,
    open_source: Callable[[Spec], RowSource],
    classes: Any,
    keep_rows: int,
    target_names: Any = None,
) -> StreamError | None:
    """Fit to the rows of a source; return the error that ended the source early, if any.

    Parameters
    ----------
    model : estimator
    open_source : callable
        Called once the parameters are checked.
    classes : array-like or None
        All classes, if the user lists them.
    keep_rows : int
        Number of rows that the model stores.
    target_names : list of str, optional
        Names of the target columns.
    """
    spec = model._spec()
    kernel, limit = spec.check_stream(keep_rows), sample_rows(spec, keep_rows)
    spec.targets.check_parameters()
    source = open_source(spec)
    listed = None if classes is None else spec.targets.named(classes)
    reader = RowReader(copy.copy(model), spec.targets, kernel, scaled=spec.scales_inputs(kernel))
    found, rest = source.first_look(summarize, (reader, listed, limit), limit)
    if has_categories(found.categories):
        reader = replace(reader, categories=found.categories).with_columns(found.columns, found.dtype)
        found, rest = rest.first_look(summarize, (reader, listed, limit), limit)
    targets, kept = found.completed(target_names)
    targets.check_learnable()
    factor = targets.class_factors(found.counts if source.repeatable else None)
    kept = kept if factor is None else kept.weighted(factor[kept.y])
    begun = begin_stream(spec, kept, targets, kernel, keep_rows, found.categories)
    reader = replace(reader, targets=targets, categories=found.categories)
    reader = reader.with_columns(found.columns, begun.basis.centers.dtype)
    sums = rest.total(sum_rows, SumTask(reader, begun, factor, 0 if source.repeatable else keep_rows))
    if source.repeatable:
        kept = replace(kept, limit=keep_rows).lowered() if keep_rows else None
    else:  # the first look has not seen all rows
        kept = None if sums.sample is None else sums.sample.kept()
    known = column_attributes(found.columns[0], source.names or found.columns[1], found.categories)
    store_conclusion(model, spec, begun, sums.moments, kept, targets, known)
    return rest.error


def sample_rows(spec: Spec, keep_rows: int) -> int:
    """Number of rows of the first sample: as many as are kept, if any, and at least the number of centres."""
    centers = spec.n_centers or STREAM_CENTERS if isinstance(spec.centers, str) else 0
    return max(keep_rows, int(centers)) if keep_rows > 1 else SAMPLE_ROWS


def store_conclusion(
    model: Any,
    spec: Spec,
    begun: StreamState,
    moments: Moments,
    kept: Kept | None,
    targets: Targets,
    known: dict[str, Any],
) -> None:
    """Choose alpha, calibrate, and store the model of these sums, with attributes that are ``known``."""
    model.__dict__.update(known)
    store(model, spec, *conclude(spec, begun, moments, kept, targets))
    model.moments_, model.kept_ = moments, kept
    if not kept:
        del model.neighbourhood_  # which holds rows


# -------------------------------------------------------------------- validation


@contextmanager
def located(block: Block) -> Iterator[None]:
    """Turn errors about the content of a block into StreamErrors that name its origin, if it is known."""
    try:
        yield
    except StreamError:
        raise
    except (ValueError, TypeError) as error:
        if not block.where:
            raise
        raise StreamError(f"{block.where}: {error}", where=block.where) from error


@dataclass(frozen=True)
class RowReader:
    """Validates blocks of rows for a model.

    Attributes
    ----------
    model : estimator
        Its columns are those that blocks must have; not used before ``dtype`` is known.
    targets : Targets
        As the parameters say, or with the classes, units or labels of the rows.
    kernel : Kernel
    dtype : dtype or None
        The type of the rows; None if a block may have any columns, and float32 or float64.
    scaled : bool
        True if rows are scaled later, so that any finite value is allowed.
    categories : list or None
        The values of the columns; None if they are not known yet, so that those of every block are learned.
    """

    model: Any
    targets: Targets
    kernel: Kernel
    dtype: Any = None
    scaled: bool = False
    categories: Known | None = None

    def with_columns(self, columns: tuple[int, Any], dtype: Any) -> RowReader:
        """For blocks with these columns, their number and names."""
        model = copy.copy(self.model)
        model.__dict__.update(column_attributes(*columns, self.categories))
        return replace(self, model=model, dtype=dtype)

    def rows(self, block: Block) -> tuple[Any, Array, tuple[int, Any], Known]:
        """Rows and weights of a block, the number and names of its columns, and the values of its categories."""
        if block.y is None:
            raise ValueError("There are no targets: give y, or the name of their column as target=.")
        model, learn = copy.copy(self.model), None
        wanted = [np.float64, np.float32] if self.dtype is None else [self.dtype]
        if self.categories is None:
            learn = category_columns(block.X, model.categories if computed(self.kernel) else None)
        X = read_matrix(model, block.X, self.kernel, wanted, learn=learn, ensure_min_samples=0)
        if not self.scaled:
            check_range(X, self.kernel)
        self.targets.check_block_weight(block.sample_weight)
        if block.groups is not None:
            check_groups(block.groups, X.shape[0])
        names = getattr(model, "feature_names_in_", None)
        columns = X.shape[1], None if names is None else tuple(names)
        return X, block_weights(block.sample_weight, X.shape[0]), columns, model.categories_

    def encoded(self, block: Block, factor: Array | None) -> tuple[Any, Array, Array]:
        """Rows, codes of the targets, and weights, of which ``factor`` holds those of the classes."""
        X, w, *_ = self.rows(block)
        codes = encoded(self.targets, block.y, w)
        return X, codes, w if factor is None else w * factor[codes]


def encoded(targets: Targets, y: Any, w: Array) -> Array:
    """Codes of the targets, one for each row."""
    codes = targets.encode(y)
    if len(codes) != len(w):
        raise ValueError(f"X has {len(w)} rows and y has {len(codes)}: every row needs one target.")
    return codes


def column_attributes(n_columns: int, names: Any, categories: Known | None) -> dict[str, Any]:
    """Fitted attributes for the number, the names and the categories of the columns."""
    known = {} if names is None else {"feature_names_in_": np.array(names, dtype=object)}
    return {"n_features_in_": n_columns, "categories_": categories or [None] * n_columns, **known}


# -------------------------------------------------------------------- first pass


@dataclass(frozen=True)
class RowSummary:
    """Summary of some rows in the first pass; summaries of two sets of rows can be added.

    Attributes
    ----------
    targets : Targets or None
        None for no rows.
    sample : BottomKSample or None
    counts : dict
        Weights of the classes.
    columns : tuple or None
        Number and names of the columns.
    n_rows : int
        Number of rows with a weight above 0.
    dtype : dtype
        The type of the rows.
    categories : list or None
        The values of the columns.
    """

    targets: Any = None
    sample: Any = None
    counts: dict = field(default_factory=dict)
    columns: Any = None
    n_rows: int = 0
    dtype: Any = None
    categories: Known | None = None

    def __add__(self, other: RowSummary) -> RowSummary:
        if other.targets is None or self.targets is None:
            return self if other.targets is None else other
        if self.columns != other.columns:
            raise ValueError(f"Partitions have different columns: {self.columns} and {other.columns}.")
        targets = self.targets + other.targets
        sample = self.sample.recoded(targets, self.targets) + other.sample.recoded(targets, other.targets)
        names = {**self.counts, **other.counts}
        counts = {name: self.counts.get(name, 0.0) + other.counts.get(name, 0.0) for name in names}
        dtype = np.result_type(self.dtype, other.dtype)
        categories = merged_categories(self.categories or [], other.categories or [])
        return RowSummary(targets, sample, counts, self.columns, self.n_rows + other.n_rows, dtype, categories)

    def completed(self, names: Any) -> tuple[Targets, Kept]:
        """The targets, with these names of their columns, and the sample; an error if there are no rows."""
        if not self.n_rows:
            raise ValueError("There are no rows with a weight above 0: there is nothing to learn from.")
        kept = self.sample.kept()
        targets = self.targets.completed(len(kept), names)
        return targets, kept.recoded(targets, self.targets)


def summarize(block: Block, before: RowSummary | None, shared: tuple[RowReader, Targets | None, int]) -> RowSummary:
    """The summary of a block.

    Parameters
    ----------
    block : Block
    before : RowSummary or None
        That of the blocks before, whose columns and type this one must have; None for partitions.
    shared : tuple
        The reader, the targets that the user lists, and the number of rows to sample.
    """
    reader, known, limit = shared
    if not len(block):
        return RowSummary()
    if before is not None and before.targets is not None:
        reader, known = reader.with_columns(before.columns, before.dtype), before.targets
    with located(block):
        X, w, columns, categories = reader.rows(block)
        targets = reader.targets.learn(block.y)
        targets = targets if known is None else known + targets
        codes = encoded(targets, block.y, w)
    sample = BottomKSample.of(X, codes, w, block.groups, limit, observation_counts(block.sample_weight))
    return RowSummary(targets, sample, targets.counts(codes, w), columns, int(np.sum(w > 0)), X.dtype, categories)


# ------------------------------------------------------------------- second pass


@dataclass(frozen=True)
class RowSums:
    """Sums over some rows, and a sample of them if the first pass could not sample all rows."""

    moments: Moments
    sample: BottomKSample | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows with a weight above 0."""
        return self.moments.n

    def __add__(self, other: RowSums) -> RowSums:
        sample = None if self.sample is None or other.sample is None else self.sample + other.sample
        return RowSums(self.moments + other.moments, sample)


@dataclass(frozen=True)
class SumTask:
    """Parameters of the second pass.

    Attributes
    ----------
    reader : RowReader
        With the targets of all rows, and their columns.
    begun : StreamState
    factor : ndarray or None
        Weights of the classes.
    sample_rows : int
        Number of rows to sample; 0 for none.
    """

    reader: RowReader
    begun: StreamState
    factor: Array | None
    sample_rows: int = 0


def sum_rows(block: Block, own: None, task: SumTask) -> RowSums:
    """The sums of a block."""
    limit = task.sample_rows
    if not len(block):
        return RowSums(task.begun.zero(), BottomKSample(limit) if limit else None)
    with located(block):
        X, codes, w = task.reader.encoded(block, task.factor)
        moments = block_moments(X, codes, w, task.reader.targets, task.begun)
    if not limit:
        return RowSums(moments)
    return RowSums(
        moments, BottomKSample.of(X, codes, w, block.groups, limit, observation_counts(block.sample_weight))
    )
