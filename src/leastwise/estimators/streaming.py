"""Fits to rows in blocks, and models that change by more rows or fewer.

A first pass keeps a sample of the rows, which chooses centres, kernel and sigma. A second pass sums over all rows.
What rows were summed is in ``moments_``, and the sample in ``kept_``: adding rows, taking rows away and merging
models are arithmetic on these, after which :func:`conclude` makes the model anew. The methods are taken into class
bodies.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from leastwise.estimators.checks import check_groups, check_range
from leastwise.estimators.spec import Spec
from leastwise.estimators.storing import store
from leastwise.estimators.sums import STREAM_CENTERS, StreamState, begin_stream, block_moments, conclude
from leastwise.estimators.validation import CHECKS, all_or_nothing
from leastwise.linalg.moments import Moments
from leastwise.model_selection.folds import observation_counts
from leastwise.problem.basis import given_basis
from leastwise.problem.kernels import Kernel, resolve_kernel
from leastwise.problem.targets import Targets
from leastwise.problem.weights import block_weights
from leastwise.solvers.evaluator import Candidate
from leastwise.solvers.moments import SAMPLE_ROWS
from leastwise.sources.blocks import Block, Blocks, StreamError
from leastwise.sources.bottom_k import BottomKSample, Kept, joined_kept
from leastwise.sources.dask import DaskParts, is_dask
from leastwise.sources.opening import open_blocks
from leastwise.sources.parts import Piece
from leastwise.utils.arrays import bring
from leastwise.utils.hashing import EVERY
from leastwise.utils.warn import warn_user

Array = np.ndarray

#: Seconds between two lines of progress.
PAUSE = 2.0
#: Attributes that do not change when rows come or go.
UNCHANGED = ("n_features_in_", "feature_names_in_", "label_index_")


# ----------------------------------------------------------------------- methods


def fit_stream(
    self: Any,
    source: Any,
    y: Any = None,
    *,
    target: Any = None,
    features: Any = None,
    weight: Any = None,
    group: Any = None,
    classes: Any = None,
    keep_rows: int = SAMPLE_ROWS,
    block_rows: int | None = None,
) -> Any:
    """Fit to rows that come in blocks, in memory that depends on the number of centres, not on that of the rows.

    Parameters
    ----------
    source : path, list of paths, array, memmap, frame, iterator or callable
        Where rows come from, see :func:`leastwise.sources.open_blocks`. What can be gone through twice is: once
        for a sample, which chooses centres, kernel and sigma, and once for the sums. An iterator is gone through
        once, and its first rows are the sample.
    y : array, optional
        Targets, where ``source`` is an array.
    target, features, weight, group : str or list of str, optional
        Columns of files and frames; weights and groups as arrays, where ``source`` is one.
    classes : array-like, optional
        All classes of a classifier, where an iterator may come to some of them late.
    keep_rows : int, default=20000
        Rows that the model keeps (``kept_``): their held-out scores choose alpha and make the calibration, and do
        so again whenever rows are added or taken away. Of groups whole ones are kept, and two at least. 0, with
        ``cv=None``, keeps none: centres are then chosen from 20,000 rows that are not kept.
    block_rows : int, optional
        Rows of a block, where that is ours to choose.

    Returns
    -------
    self
        With ``n_centers=None``, 1,000 centres are chosen. Held-out attributes (``heldout_proba_``, ...) are those
        of the rows that were kept.

    Notes
    -----
    A block that cannot be read ends the fit with a :class:`leastwise.sources.StreamError` that names it. The
    model is then that of the rows before it, and ``partial_fit`` goes on from there.
    """
    names = {"target": target, "features": features, "weight": weight, "group": group}
    error = _fit_blocks(
        self,
        lambda: open_blocks(source, y, **names, block_rows=block_rows),
        classes,
        keep_rows,
        getattr(y, "columns", target),
    )
    if error is not None:
        raise error
    return self


def _can_stream(model: Any) -> bool:
    """True if the parameters allow a fit from sums; an error that says why not."""
    try:
        model._spec().check_stream(SAMPLE_ROWS)
    except ValueError as error:
        raise AttributeError(f"partial_fit() is not possible with these parameters. {error}") from error
    return True


@available_if(_can_stream)
def partial_fit(self: Any, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, groups: Any = None) -> Any:
    """Add rows. The first ones choose centres, kernel and sigma; all of them alpha and the calibration.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, n_features)
    y : array-like of shape (n,) or (n, n_outputs)
    classes : array-like, optional
        All classes of a classifier, at the first call.
    sample_weight, groups : array-like of shape (n,), optional

    Returns
    -------
    self
        The same model as if all rows had come at once, with these centres and this sigma.
    """
    check_in_memory(X)
    block = _block(X, y, sample_weight, groups)
    if not _goes_on(self):
        error = _fit_blocks(self, lambda: OneBlock(block), classes, SAMPLE_ROWS, None)
        assert error is None
        return self
    spec, targets = self._spec(), known_targets(self)
    X, codes, w = _read(self, spec, block, targets, targets.class_factors(None), self.intercept_.dtype)
    begun, kept = begun_before(self), vars(self).get("kept_")
    moments = self.moments_ + block_moments(X, codes, w, targets, begun)
    if kept is not None:
        keeper = BottomKSample(kept.limit, kept)
        keeper.add(X, codes, w, block.groups, observation_counts(block.sample_weight))
        kept = keeper.kept()
    return renew(self, begun, moments, kept, targets)


def unfit(self: Any, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
    """Take rows away that were added before: the model is then what it would be without them.

    Centres and sigma stay, even where they came from these rows. Give targets, weights and groups as they were
    given when the rows were added; weights times what :meth:`forget` has left of them since.
    """
    check_sums(self, "unfit")
    check_in_memory(X)
    spec, targets, block = self._spec(), known_targets(self), _block(X, y, sample_weight, groups)
    X, codes, w = _read(self, spec, block, targets, targets.class_factors(None), self.intercept_.dtype)
    begun, kept = begun_before(self), vars(self).get("kept_")
    moments = self.moments_ - block_moments(X, codes, w, targets, begun)
    if moments.n < 2 or moments.mass <= 1e-9 * self.moments_.mass:
        raise ValueError(
            f"unfit() of {len(w)} rows would leave {moments.n} of {self.moments_.n}, with a weight of "
            f"{moments.mass:.3g} of {self.moments_.mass:.3g}: too few for a model. Nothing was changed."
        )
    if kept is not None:
        count = observation_counts(block.sample_weight)
        kept = kept.without(Kept.all(X, codes, w, block.groups, kept.limit, count))
        if len(np.unique(kept.key)) < 2 and self.cv is not None:
            raise ValueError(
                f"unfit() of {len(w)} rows would take away all but {len(kept)} of the rows that the model keeps, "
                "and nothing would be left to choose alpha and to calibrate by: fit anew without them. Nothing "
                "was changed."
            )
    return renew(self, begun, moments, kept, targets)


def forget(self: Any, keep: float) -> Any:
    """Let all rows so far count less: ``keep`` times what they counted, above 0 and up to 1.

    Called before every ``partial_fit``, rows that are k calls old weigh ``keep ** k``, also when they are taken
    away by ``unfit``.
    """
    check_sums(self, "forget")
    if isinstance(keep, bool) or not isinstance(keep, int | float | np.number) or not 0 < keep <= 1:
        raise ValueError(f"keep={keep!r} must be a number above 0 and up to 1: what rows so far count from now on.")
    if not self.moments_.n:  # without_rows(): there is nothing to forget
        return self
    kept = vars(self).get("kept_")
    kept = None if kept is None else kept.weighted(float(keep))
    return renew(self, begun_before(self), self.moments_ * float(keep), kept, known_targets(self))


def without_rows(self: Any) -> Any:
    """A copy that has learned from no rows yet, with the same centres, kernel, sigma and classes.

    What sites begin with that are to be merged: ``partial_fit`` goes on from it, in each. It answers as this
    model does until then.
    """
    check_sums(self, "without_rows")
    other, kept = copy.copy(self), self.kept_
    other.moments_ = self.moments_.cleared()
    other.kept_ = None if kept is None else replace(kept.part(np.zeros(len(kept), dtype=bool)), bound=int(EVERY))
    return other


# ------------------------------------------------------------------- state of a model


def known_targets(model: Any) -> Targets:
    """The targets that a fitted model knows."""
    targets, known = model._spec().targets, vars(model)
    if targets.kind == "classes":
        return targets.with_known(classes=model.classes_)
    if targets.kind == "labels":
        return targets.with_known(labels=model.label_index_)
    return targets.with_known(unit=known["unit_"], offset=known["offset_"], flat=known["flat_"])


def begun_before(model: Any) -> StreamState:
    """What was chosen when this model began."""
    basis, known = given_basis(model.centers_, model.coef_.shape[-1]), vars(model)
    guess = Candidate(
        model.sigma_, model.alpha_, np.nan, np.empty(0), known.get("calibrator_"), known.get("sharing_")
    )
    return StreamState(model.kernel_, basis, guess, model.moments_.n, [], model.moments_.whitening)


def renew(model: Any, begun: StreamState, moments: Moments, kept: Kept | None, targets: Targets) -> Any:
    """The model of other rows with the same centres."""
    unchanged = {name: vars(model)[name] for name in UNCHANGED if name in vars(model)}
    _renew(model, begun, moments, kept, targets, unchanged)
    return model


@all_or_nothing
def _renew(
    model: Any, begun: StreamState, moments: Moments, kept: Kept | None, targets: Targets, unchanged: dict[str, Any]
) -> None:
    vars(model).update(unchanged)
    _conclude(model, model._spec(), begun, moments, kept, targets)


def _conclude(
    model: Any, spec: Spec, begun: StreamState, moments: Moments, kept: Kept | None, targets: Targets
) -> None:
    """Settle, and store."""
    store(model, spec, *conclude(spec, begun, moments, kept, targets))
    model.moments_, model.kept_ = moments, kept
    if not kept:
        del model.neighbourhood_  # which holds rows


def check_sums(model: Any, method: str) -> None:
    """Raise an error for a model without sums."""
    check_is_fitted(model)
    if "moments_" not in vars(model):
        raise ValueError(
            f"{method}() needs the sums of a model that was fitted by fit_stream() or partial_fit(); this one "
            "was fitted by fit(), which keeps none, or saved with keep='predict'."
        )


def _goes_on(model: Any) -> bool:
    """True if there is a model to go on from; warns that one of ``fit`` is lost."""
    if "coef_" in vars(model) and "moments_" not in vars(model):
        warn_user(
            "This model keeps no sums to go on from, as it was fitted by fit(), or saved with keep='predict': "
            "partial_fit() begins anew with these rows. Begin with fit_stream() or partial_fit() to go on."
        )
    return "moments_" in vars(model)


# ------------------------------------------------------------------------- blocks


@dataclass(frozen=True)
class OneBlock:
    """A block of rows in memory as a stream."""

    block: Block
    repeatable: bool = False
    n_rows: int | None = None

    def __iter__(self) -> Iterator[Block]:
        return iter([self.block])


def _block(X: Any, y: Any, sample_weight: Any, groups: Any) -> Block:
    """Rows that the user has in memory; frames keep their names, arrays of other libraries become numpy arrays."""
    X, y, sample_weight, groups = (bring(a) for a in (X, y, sample_weight, groups))
    return Block(X, y, sample_weight, None, None if groups is None else np.asarray(groups))


def _block_rows(model: Any, spec: Spec, block: Block, dtype: Any) -> tuple[Any, Array]:
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


def _read(
    model: Any, spec: Spec, block: Block, targets: Targets, factor: Array | None, dtype: Any
) -> tuple[Any, Array, Array]:
    """Rows, codes of the targets, and weights."""
    X, w = _block_rows(model, spec, block, dtype)
    codes = targets.encode(block.y)
    check_lengths(codes, w)
    return X, codes, w if factor is None else w * factor[codes]


def check_lengths(codes: Array, w: Array) -> None:
    """Every row needs its target."""
    if len(codes) != len(w):
        raise ValueError(f"X has {len(w)} rows and y {len(codes)}: every row needs its target.")


@contextmanager
def _located(block: Block) -> Iterator[None]:
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
        with _located(block):
            X, w = _block_rows(model, spec, block, self.dtype)
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


def _look_first(
    model: Any, spec: Spec, blocks: Blocks, stream: Iterator[Block], first: FirstLook, limit: int
) -> None:
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
        with _located(block):
            dtype = self.begun.basis.centers.dtype
            X, codes, w = _read(self.model, self.spec, block, self.targets, self.factor, dtype)
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


@all_or_nothing
def _fit_blocks(
    self: Any, open_source: Callable[[], Any], classes: Any, keep_rows: int, target_names: Any
) -> StreamError | None:
    """Fit to blocks; the error that ended the stream too early, if one did after some rows."""
    spec = self._spec()
    kernel, limit = spec.check_stream(keep_rows), sample_rows(spec, keep_rows)
    spec.targets.check_parameters()
    blocks = open_source()
    stream = iter(blocks)
    known = spec.targets if classes is None else spec.targets.named(classes)
    first = FirstLook(BottomKSample(limit), known, seen=classes is not None)
    _look_first(self, spec, blocks, stream, first, limit)
    targets, kept = first.completed(target_names)
    targets.check_learnable()
    factor = targets.class_factors(first.counts if blocks.repeatable else None)
    kept = kept if factor is None else kept.weighted(factor[kept.y])
    begun = begin_stream(spec, kept, targets, kernel, keep_rows)
    keeper = BottomKSample(keep_rows, replace(kept, limit=keep_rows).lowered()) if keep_rows else None
    progress = Progress(spec.report, "sums", first.n_rows if blocks.repeatable else None)
    sums = RunningSums(self, spec, begun, targets, factor, begun.zero(), progress)
    error = sums.run(blocks, stream, first, keeper)
    _conclude(self, spec, begun, sums.moments, None if keeper is None else keeper.kept(), targets)
    if first.names is not None:
        self.feature_names_in_ = np.array(first.names, dtype=object)
    return error


def sample_rows(spec: Spec, keep_rows: int) -> int:
    """Rows of the first sample: as many as are kept, if these are any, and no fewer than the centres."""
    centers = spec.n_centers or STREAM_CENTERS if isinstance(spec.centers, str) else 0
    return max(keep_rows, int(centers)) if keep_rows > 1 else SAMPLE_ROWS


def check_in_memory(X: Any) -> None:
    """Raise an error for collections of Dask, all of which would be computed here."""
    if is_dask(X):
        raise ValueError(
            "partial_fit() and unfit() take rows in memory, not collections of Dask: fit() those, or give their "
            "partitions one after the other."
        )


# --------------------------------------------------------------------------- Dask


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
    X, w = _block_rows(worker, spec, Block(piece.X, piece.y, piece.sample_weight), None)
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
    X, codes, w = _read(worker, worker._spec(), block, task.targets, task.factor, dtype)
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
    _conclude(model, spec, begun, moments, kept, targets)
    return model
