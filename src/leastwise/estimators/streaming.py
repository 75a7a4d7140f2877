"""Fits to blocks of rows, and models to which rows can be added or removed; the functions are used as methods.

``fit_stream`` and the first ``partial_fit`` are :func:`~leastwise.fitting.sources.fit_source` with a source
of blocks. The sums of the rows are in ``moments_``, a sample in ``kept_``: adding rows, removing rows and merging
models are arithmetic on these, after which :func:`~leastwise.fitting.sums.conclude` computes the model again.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from leastwise.fitting.sources import RowReader, SumTask, fit_source, store_conclusion, sum_rows
from leastwise.fitting.spec import Spec
from leastwise.fitting.sums import StreamState, block_moments
from leastwise.linalg.moments import Moments
from leastwise.model_selection.folds import observation_counts
from leastwise.problem.basis import given_basis
from leastwise.problem.targets import Targets
from leastwise.solvers.evaluator import Candidate
from leastwise.solvers.moments import SAMPLE_ROWS
from leastwise.sources.blocks import Block
from leastwise.sources.bottom_k import BottomKSample, Kept
from leastwise.sources.opening import open_blocks
from leastwise.sources.row_source import BlockSource, RowSource
from leastwise.utils.arrays import bring, is_dask
from leastwise.utils.atomic_fit import all_or_nothing
from leastwise.utils.hashing import EVERY
from leastwise.utils.resources import explained_memory
from leastwise.utils.warn import warn_user

if TYPE_CHECKING:
    from leastwise.estimators.base import KernelEstimator

Array = np.ndarray
Model = TypeVar("Model", bound="KernelEstimator")

#: Rounding of sums, relative to these.
ROUNDING = 1e-9
#: A model whose rows weigh less than this together has forgotten all of them.
LEAST_MASS = 1e-100
#: Attributes that do not change when rows are added or removed.
UNCHANGED = ("n_features_in_", "feature_names_in_", "categories_", "label_index_")


# ----------------------------------------------------------------------- methods


def fit_stream(
    self: Model,
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
) -> Model:
    """Fit to rows that come in blocks, with memory that depends on the number of centres, not on that of rows.

    Parameters
    ----------
    source : path, list of paths, array, memmap, frame, iterator or callable
        Where rows come from, see :func:`leastwise.sources.open_blocks`. A source that can be read repeatedly is read
        twice: once for a sample, on which centres, kernel and sigma are chosen, and once for the sums. An iterator is
        read once, and its first rows are the sample.
    %(y.stream)s
    %(target)s
    %(features)s
    %(weight)s
    group : str or array, default=None
        Column of files and frames that holds the groups, or the groups if ``source`` is an array.
    %(classes)s
    keep_rows : int, default=20000
        Number of rows that the model stores (``kept_``). Alpha and the calibration are chosen on their held-out
        scores, and chosen again whenever rows are added or removed. Groups are stored whole, and at least two of
        them. 0, with ``cv=None``, stores none: centres are then chosen from 20,000 rows that are not stored.
    %(block_rows)s

    Returns
    -------
    %(self)s
        With ``n_centers=None``, 1,000 centres are chosen. Held-out attributes (``heldout_proba_``, ...) are those
        of the stored rows.

    Notes
    -----
    A block that cannot be read ends the fit with a :class:`leastwise.sources.StreamError` that names it. The
    model is then that of the rows before it, and ``partial_fit`` continues from there.
    """
    names = {"target": target, "features": features, "weight": weight, "group": group}

    def open_source(spec: Spec) -> RowSource:
        blocks = open_blocks(source, y, **names, categories=spec.categories, block_rows=block_rows)
        return BlockSource(blocks, blocks.repeatable, spec.report, until_error=True)

    error = fit_source(self, open_source, classes, keep_rows, getattr(y, "columns", target))
    if error is not None:
        raise error
    return self


def _can_stream(model: KernelEstimator) -> bool:
    """True if the parameters allow a fit from sums; otherwise an error with the reason."""
    try:
        model._spec().check_stream(SAMPLE_ROWS)
    except ValueError as error:
        raise AttributeError(f"partial_fit() is not possible with these parameters. {error}") from error
    return True


@available_if(_can_stream)
@explained_memory()
def partial_fit(
    self: Model, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, groups: Any = None
) -> Model:
    """Add rows. Centres, kernel and sigma are chosen at the first call; alpha and the calibration at every call.

    Parameters
    ----------
    %(X)s
    %(y.any)s
    %(classes)s
        Used at the first call.
    %(sample_weight)s
    %(groups)s

    Returns
    -------
    %(self)s
        The same model as if all rows had been added at once, with these centres and this sigma.
    """
    check_in_memory(X)
    block = as_block(X, y, sample_weight, groups)
    if not _goes_on(self):
        # Not repeatable: the class shares are unknown, since more rows may follow.
        fit_source(self, lambda spec: BlockSource([block], False, spec.report), classes, SAMPLE_ROWS)
        return self
    kept, targets = vars(self).get("kept_"), known_targets(self)
    begun, factor = begun_before(self), targets.class_factors(None)
    more = sum_rows(block, None, SumTask(known_reader(self), begun, factor, 0 if kept is None else kept.limit))
    if kept is not None and more.sample is not None:
        kept = (BottomKSample(kept.limit, (kept,)) + more.sample).kept()
    return renew(self, begun, self.moments_ + more.moments, kept, targets)


@explained_memory()
def unfit(self: Model, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Model:
    """Remove rows that were added before: the model is then the same as without them.

    Centres and sigma do not change, even if they came from these rows.

    Parameters
    ----------
    %(X)s
    %(y.any)s
    %(sample_weight)s
        As they were when the rows were added, times the factors of :meth:`forget` since then.
    %(groups)s
        As they were when the rows were added.

    Returns
    -------
    %(self)s

    Notes
    -----
    Rows that were never added are refused, and nothing is changed, if the model can tell: a row that belongs to the
    stored sample and is not in it, or sums that no rows can have, with a negative weight of a class or a negative
    eigenvalue.
    """
    check_sums(self, "unfit")
    check_in_memory(X)
    targets, block = known_targets(self), as_block(X, y, sample_weight, groups)
    X, codes, w = known_reader(self).encoded(block, targets.class_factors(None))
    begun, kept = begun_before(self), vars(self).get("kept_")
    removed = block_moments(X, codes, w, targets, begun)
    moments = self.moments_ - removed
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
                f"unfit() of {len(w)} rows would remove all but {len(kept)} of the rows that the model keeps, "
                "too few to choose alpha and to calibrate: fit a new model without them. Nothing "
                "was changed."
            )
    _check_possible(self, moments, removed, targets)
    return renew(self, begun, moments, kept, targets)


def _check_possible(model: KernelEstimator, moments: Moments, removed: Moments, targets: Targets) -> None:
    """Raise an error for sums that no rows can have, clearly beyond rounding."""
    before, known = model.moments_, targets.kind == "classes"
    if targets.signed:  # from targets of 1 and -1 to those of 1 and 0
        moments = replace(moments, C=(moments.C + moments.p[:, None]) / 2, z=(moments.z + moments.mass) / 2)
    # Kernel values of a row may be rounded differently in another block, and whitening multiplies the difference.
    eps = float(np.finfo(model.intercept_.dtype).eps)
    size, lost = (float(np.trace(m.A)) for m in (before, removed))
    slack = np.sqrt(eps) * lost + max(ROUNDING, 10 * eps) * size
    unit = np.sqrt(size / before.mass) or 1.0
    weight = float(moments.z.min()) if targets.kind != "values" else 0.0
    smallest = moments.least_eigenvalue(unit, known)
    if weight * unit**2 < -slack or smallest < -2 * slack:
        what = f"a weight of {weight:.3g}" if weight * unit**2 < -slack else f"an eigenvalue of {smallest:.3g}"
        raise ValueError(
            f"unfit() of {removed.n} rows would leave sums that no rows can have ({what}): at least one of these "
            "rows was not added before, or with another target or less weight. Nothing was changed."
        )


@explained_memory()
def forget(self: Model, keep: float) -> Model:
    """Multiply the weights of all rows so far by a factor.

    If it is called before every ``partial_fit``, rows that are k calls old have weight ``keep ** k``, also when they
    are removed by ``unfit``.

    Parameters
    ----------
    keep : float
        The factor, above 0 and at most 1.

    Returns
    -------
    %(self)s
    """
    check_sums(self, "forget")
    if isinstance(keep, bool) or not isinstance(keep, int | float | np.number) or not 0 < keep <= 1:
        raise ValueError(f"keep={keep!r} must be a number above 0 and at most 1, the factor of all weights so far.")
    if not self.moments_.n:  # without_rows(): there is nothing to forget
        return self
    kept = vars(self).get("kept_")
    kept = None if kept is None else kept.weighted(float(keep))
    moments = self.moments_ * float(keep)
    if moments.mass < LEAST_MASS:
        raise ValueError(
            f"forget(keep={keep:g}) would leave a total weight of {moments.mass:.3g}, which is too small: "
            "use a larger factor, or start again with without_rows(). Nothing was changed."
        )
    return renew(self, begun_before(self), moments, kept, known_targets(self))


def without_rows(self: Model) -> Model:
    """A copy with the same centres, kernel, sigma and classes that has not learned from any rows.

    Models to be merged start from such a copy and continue with ``partial_fit``. Until then the copy
    predicts as this model does.
    """
    check_sums(self, "without_rows")
    other, kept = copy.copy(self), self.kept_
    other.moments_ = self.moments_.cleared()
    other.kept_ = None if kept is None else replace(kept.part(np.zeros(len(kept), dtype=bool)), bound=int(EVERY))
    return other


def check_in_memory(X: Any) -> None:
    """Raise an error for Dask collections, which would be computed in this process."""
    if is_dask(X):
        raise ValueError(
            "partial_fit() and unfit() need rows in memory, not Dask collections: use fit(), or pass the "
            "partitions one after the other."
        )


def as_block(X: Any, y: Any, sample_weight: Any, groups: Any) -> Block:
    """Rows that the user has in memory; frames keep their names, arrays of other libraries become numpy arrays."""
    X, y, sample_weight, groups = (bring(a) for a in (X, y, sample_weight, groups))
    return Block(X, y, sample_weight, None, None if groups is None else np.asarray(groups))


# ------------------------------------------------------------------- state of a model


def known_reader(model: KernelEstimator) -> RowReader:
    """The reader that validates rows for a fitted model."""
    scaled = not model.inputs_.identity
    dtype, categories = model.intercept_.dtype, model.categories_
    return RowReader(model, known_targets(model), model.kernel_, dtype, scaled, categories)


def known_targets(model: KernelEstimator) -> Targets:
    """The targets of a fitted model."""
    targets, known = model._spec().targets, vars(model)
    if targets.kind == "classes":
        return targets.with_known(classes=model.classes_)
    if targets.kind == "labels":
        return targets.with_known(labels=model.label_index_)
    return targets.with_known(unit=known["unit_"], offset=known["offset_"], flat=known["flat_"])


def begun_before(model: KernelEstimator) -> StreamState:
    """The choices made when this model was started."""
    basis, known = given_basis(model.centers_, model.coef_.shape[-1]), vars(model)
    guess = Candidate(
        model.sigma_, model.alpha_, np.nan, np.empty(0), known.get("calibrator_"), known.get("sharing_")
    )
    state = StreamState(model.kernel_, basis, guess, model.moments_.n, [], model.moments_.whitening)
    return replace(state, inputs=model.inputs_)


def renew(model: Model, begun: StreamState, moments: Moments, kept: Kept | None, targets: Targets) -> Model:
    """The model of other rows with the same centres."""
    unchanged = {name: vars(model)[name] for name in UNCHANGED if name in vars(model)}
    all_or_nothing(store_conclusion)(model, model._spec(), begun, moments, kept, targets, unchanged)
    return model


def check_sums(model: KernelEstimator, method: str) -> None:
    """Raise an error for a model without sums."""
    check_is_fitted(model)
    if "moments_" not in vars(model):
        raise ValueError(
            f"{method}() needs a model that was fitted by fit_stream() or partial_fit(); this one has no sums, "
            "because it was fitted by fit() or saved with keep='predict'."
        )


def _goes_on(model: KernelEstimator) -> bool:
    """True if there is a model to continue from; warns if a model fitted by ``fit`` is discarded."""
    if "coef_" in vars(model) and "moments_" not in vars(model):
        warn_user(
            "This model has no sums to continue from, because it was fitted by fit() or saved with keep='predict': "
            "partial_fit() starts again with these rows only. Use fit_stream() or partial_fit() from the start."
        )
    return "moments_" in vars(model)
