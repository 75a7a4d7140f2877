"""Models that are fitted to rows in blocks, and changed by more rows or fewer."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from leastwise.estimators._dask import check_in_memory
from leastwise.estimators._model import all_or_nothing
from leastwise.estimators._stream_fitting import StreamFitting
from leastwise.estimators._stream_passes import OneBlock, Progress, Sums, look_first
from leastwise.model_selection.folds import observation_counts
from leastwise.solvers.moment_evaluators import SAMPLE_ROWS
from leastwise.sources.blocks import Block, StreamError
from leastwise.sources.bottom_k import Keeper, Kept
from leastwise.sources.opening import open_blocks
from leastwise.utils.arrays import bring
from leastwise.utils.hashing import EVERY

Array = np.ndarray


def _can_stream(model: Any) -> bool:
    """Whether the parameters are those of a model that learns from sums; an error that says why not."""
    try:
        model._checked_stream(SAMPLE_ROWS)
    except ValueError as error:
        raise AttributeError(f"partial_fit() is not possible with these parameters. {error}") from error
    return True


def _block(X: Any, y: Any, sample_weight: Any, groups: Any) -> Block:
    """Rows that the user has in memory; frames keep their names, arrays of other libraries become numpy's."""
    X, y, sample_weight, groups = (bring(a) for a in (X, y, sample_weight, groups))
    return Block(X, y, sample_weight, None, None if groups is None else np.asarray(groups))


class Streaming(StreamFitting):
    """Mixin for models of few centres; one of ``_stream_targets`` tells what their targets are."""

    # --------------------------------------------------------------- surface

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
        error = self._fit_stream(source, y, names, classes, keep_rows, block_rows)
        if error is not None:
            raise error
        return self

    @available_if(_can_stream)
    def partial_fit(
        self: Any, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> Any:
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
        if not self._goes_on():
            error = self._fit_stream(OneBlock(block), None, {}, classes, SAMPLE_ROWS, None)
            assert error is None
            return self
        known = self._known()
        X, codes, w = self._read(block, known, self._class_factors(known, None), self.intercept_.dtype)
        begun, kept = self._begun_before(), vars(self).get("kept_")
        moments = self.moments_ + self._block_moments(X, codes, w, known, begun)
        if kept is not None:
            keeper = Keeper(kept.limit, kept)
            keeper.add(X, codes, w, block.groups, observation_counts(block.sample_weight))
            kept = keeper.kept()
        return self._renew(begun, moments, kept, known)

    def unfit(self: Any, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        """Take rows away that were added before: the model is then what it would be without them.

        Centres and sigma stay, even where they came from these rows. Give targets, weights and groups as they were
        given when the rows were added; weights times what :meth:`forget` has left of them since.
        """
        self._check_sums("unfit")
        check_in_memory(X)
        known = self._known()
        block = _block(X, y, sample_weight, groups)
        X, codes, w = self._read(block, known, self._class_factors(known, None), self.intercept_.dtype)
        begun, kept = self._begun_before(), vars(self).get("kept_")
        moments = self.moments_ - self._block_moments(X, codes, w, known, begun)
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
        return self._renew(begun, moments, kept, known)

    def forget(self: Any, keep: float) -> Any:
        """Let all rows so far count less: ``keep`` times what they counted, above 0 and up to 1.

        Called before every ``partial_fit``, rows that are k calls old weigh ``keep ** k``, also when they are taken
        away by ``unfit``.
        """
        self._check_sums("forget")
        if isinstance(keep, bool) or not isinstance(keep, int | float | np.number) or not 0 < keep <= 1:
            raise ValueError(
                f"keep={keep!r} must be a number above 0 and up to 1: what rows so far count from now on."
            )
        if not self.moments_.n:  # without_rows(): there is nothing to forget
            return self
        kept = vars(self).get("kept_")
        kept = None if kept is None else kept.weighted(float(keep))
        return self._renew(self._begun_before(), self.moments_ * float(keep), kept, self._known())

    def without_rows(self: Any) -> Any:
        """A copy that has learned from no rows yet, with the same centres, kernel, sigma and classes.

        What sites begin with that are to be merged: ``partial_fit`` goes on from it, in each. It answers as this
        model does until then.
        """
        self._check_sums("without_rows")
        other, kept = copy.copy(self), self.kept_
        other.moments_ = self.moments_.cleared()
        other.kept_ = None if kept is None else replace(kept.part(np.zeros(len(kept), dtype=bool)), bound=int(EVERY))
        return other

    # ------------------------------------------------------------------- fit

    @all_or_nothing
    def _fit_stream(
        self: Any, source: Any, y: Any, names: dict, classes: Any, keep_rows: int, block_rows: int | None
    ) -> StreamError | None:
        """Fit; what ended the stream too early, if something did after some rows."""
        kernel, limit = self._checked_stream(keep_rows), self._sample_rows(keep_rows)
        self._check_class_weight()
        blocks = open_blocks(source, y, **names, block_rows=block_rows)
        stream = iter(blocks)
        first = look_first(self, blocks, stream, None if classes is None else self._learn_classes(classes), limit)
        known, kept = first.completed(self, getattr(y, "columns", names.get("target")))
        self._check_known(known)
        factor = self._class_factors(known, first.counts if blocks.repeatable else None)
        kept = kept if factor is None else kept.weighted(factor[kept.y])
        begun = self._begun(kept, known, kernel, keep_rows)
        keeper = Keeper(keep_rows, replace(kept, limit=keep_rows).lowered()) if keep_rows else None
        progress = Progress(self._report, "sums", first.n_rows if blocks.repeatable else None)
        sums = Sums(self, begun, known, factor, begun.zero(), progress)
        error = sums.run(blocks, stream, first, keeper)
        self._conclude(begun, sums.moments, None if keeper is None else keeper.kept(), known)
        if first.names is not None:
            self.feature_names_in_ = np.array(first.names, dtype=object)
        return error

    def _goes_on(self: Any) -> bool:
        """Whether there is a model to go on from; one of ``fit`` is none, and is said to be lost."""
        if "coef_" in vars(self) and "moments_" not in vars(self):
            warnings.warn(
                "This model keeps no sums to go on from, as it was fitted by fit(), or saved with keep='predict': "
                "partial_fit() begins anew with these rows. Begin with fit_stream() or partial_fit() to go on.",
                UserWarning,
                stacklevel=3,
            )
        return "moments_" in vars(self)

    def _check_sums(self: Any, method: str) -> None:
        """Refuse a model without sums."""
        check_is_fitted(self)
        if "moments_" not in vars(self):
            raise ValueError(
                f"{method}() needs the sums of a model that was fitted by fit_stream() or partial_fit(); this one "
                "was fitted by fit(), which keeps none, or saved with keep='predict'."
            )
