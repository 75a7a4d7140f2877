"""What fits to rows in blocks are made of: rows that are read, sums that are settled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from leastwise.estimators._by_moments import STREAM_CENTERS, Begun, ByMoments
from leastwise.estimators._checks import block_weights, check_groups, check_range
from leastwise.estimators._dask import OnDask
from leastwise.estimators._model import Training, all_or_nothing
from leastwise.linalg.moments import Moments
from leastwise.problem.basis import given_basis, row_chunks
from leastwise.problem.kernels import Kernel, Precomputed
from leastwise.solvers.choose import refuse_stream
from leastwise.solvers.evaluator import Outcome
from leastwise.solvers.moment_evaluators import SAMPLE_ROWS, center_whitening, pivot_centers, row_sums
from leastwise.sources.blocks import Block
from leastwise.sources.bottom_k import Kept

Array = np.ndarray

#: Attributes that do not change when rows come or go.
KNOWN = ("n_features_in_", "feature_names_in_", "label_index_")


class StreamFitting(OnDask, ByMoments):
    """Mixin for models of few centres; ``Streaming`` is what users see of it."""

    def _sample_rows(self: Any, keep_rows: int) -> int:
        """Rows that begin: as many as are kept, if these are any, and no fewer than the centres among them."""
        centers = self.n_centers or STREAM_CENTERS if isinstance(self.centers, str) else 0
        return max(keep_rows, int(centers)) if keep_rows > 1 else SAMPLE_ROWS

    def _checked_stream(self: Any, keep_rows: int) -> Kernel:
        """Parameters checked, before any row is read."""
        kernel = self._stream_kernel()
        if isinstance(kernel, Precomputed):
            raise ValueError("kernel='precomputed' knows no rows: a stream needs rows to compute the kernel from.")
        if self.solver not in ("auto", "moments"):
            raise ValueError(f"solver={self.solver!r} does not work on streams: use 'auto' or 'moments'.")
        if self.cv is not None and not (isinstance(self.cv, str) and self.cv == "loo"):
            raise ValueError(
                f"cv={self.cv!r}: rows of a stream are held out one by one, or in groups: use cv='loo' (and groups), "
                "or None."
            )
        if isinstance(keep_rows, bool) or not isinstance(keep_rows, int | np.integer) or keep_rows < 0:
            raise ValueError(f"keep_rows={keep_rows!r} must be a whole number of rows, 0 or more.")
        if keep_rows < 2 and self.cv is not None:
            raise ValueError(
                f"keep_rows={keep_rows} leaves no rows to choose alpha and to calibrate by: keep some, or set "
                "cv=None, calibration=None, and numbers for sigma and alpha."
            )
        return kernel

    def _begun(self: Any, kept: Kept, targets: Any, kernel: Kernel, keep_rows: int = SAMPLE_ROWS) -> Begun:
        """Centres, kernel and sigma, chosen on the rows that were kept."""
        data = self._kept_rows(kept, targets, kernel, None)
        settings = self._stream_settings(data)
        facts = self._facts(settings.kernel, settings.norm, self._size(data, settings))
        refuse_stream(facts, self.n_centers or STREAM_CENTERS, min(len(kept), keep_rows))
        begun = self._begin(data, settings)
        self._report(
            f"{len(data.rows)} rows chose {begun.basis.n_functions} centres, sigma {begun.guess.sigma:.4g} and alpha "
            f"{begun.guess.alpha:.2g}"
        )
        known = center_whitening(begun.kernel, begun.basis.centers, begun.guess.sigma, settings.norm)
        return replace(begun, whitening=known)

    def _conclude(self: Any, begun: Begun, moments: Moments, kept: Kept | None, known: Any) -> None:
        """Settle, and store."""
        if not moments.mass > 0:
            raise ValueError("There are no rows (of a weight above 0) to learn from: add some by partial_fit().")
        known = self._seen(known, moments)
        some = kept or self._places(begun, known, moments)
        data = self._kept_rows(some, known, begun.kernel, moments)
        settings = replace(self._stream_settings(data), kernel=begun.kernel)
        scaled = moments * (1 / data.rows.mass)
        trial = self._moment_trial(data, data.rows, begun.basis, settings, lambda sigma: [scaled])
        outcome, seen = self._settled(data, settings, begun, trial, moments.n)
        held = np.arange(len(data.rows) if self.cv is not None else 0)
        self._keep_moment_fit(data, begun.basis, settings, outcome, seen, trial, held)
        self.moments_, self.kept_ = moments, kept
        if not kept:
            del self.neighbourhood_  # which holds rows

    def _renew(self: Any, begun: Begun, moments: Moments, kept: Kept | None, known: Any) -> Any:
        """The model of other rows with the same centres."""
        said = {name: vars(self)[name] for name in KNOWN if name in vars(self)}
        self._replaced(begun, moments, kept, known, said)
        return self

    @all_or_nothing
    def _replaced(self: Any, begun: Begun, moments: Moments, kept: Kept | None, known: Any, said: dict) -> None:
        vars(self).update(said)
        self._conclude(begun, moments, kept, known)

    def _begun_before(self: Any) -> Begun:
        """What was chosen when this model began."""
        basis = given_basis(self.centers_, self.coef_.shape[-1])
        known = vars(self)
        guess = Outcome(
            self.sigma_, self.alpha_, np.nan, np.empty(0), known.get("calibrator_"), known.get("sharing_")
        )
        return Begun(self.kernel_, basis, guess, self.moments_.n, [], self.moments_.whitening)

    # ------------------------------------------------------------------ rows

    def _block_rows(self: Any, block: Block, dtype: Any) -> tuple[Any, Array]:
        """The rows of a block, validated, and their weights; the first one, without a type, tells the columns."""
        if block.y is None:
            raise ValueError("There are no targets: give y, or target= the name of their column.")
        checks = {"accept_sparse": "csr", "accept_large_sparse": False, "ensure_min_samples": 0}
        wanted = [np.float64, np.float32] if dtype is None else [dtype]
        X = validate_data(self, block.X, reset=dtype is None, dtype=wanted, **checks)
        check_range(X, self._stream_kernel())
        self._check_weight(block.sample_weight)
        if block.groups is not None:
            check_groups(block.groups, X.shape[0])
        return X, block_weights(block.sample_weight, X.shape[0])

    def _read(self: Any, block: Block, known: Any, factor: Array | None, dtype: Any) -> tuple[Any, Array, Array]:
        """Rows, codes of the targets, and weights."""
        X, w = self._block_rows(block, dtype)
        codes = self._encode(block.y, known)
        self._check_lengths(codes, w)
        return X, codes, w if factor is None else w * factor[codes]

    def _check_lengths(self: Any, codes: Array, w: Array) -> None:
        if len(codes) != len(w):
            raise ValueError(f"X has {len(w)} rows and y {len(codes)}: every row needs its target.")

    def _block_moments(self: Any, X: Any, codes: Array, w: Array, known: Any, begun: Begun) -> Moments:
        """Sums over the rows of a block, of which no more than a part of the design is held at a time."""
        b, c = begun.basis.n_functions, begun.n_outputs
        total, plain = begun.zero(), bool(np.all(w == 1))
        centers = pivot_centers(begun.basis.centers, begun.whitening)
        for part in row_chunks(X.shape[0], max(b, X.shape[1]), 8, least=b):
            targets = self._coded(codes[part], X.dtype, known)
            Z = np.eye(c)[targets.codes] if targets.values is None else targets.values
            some = X[part], centers, begun.guess.sigma, begun.whitening, Z, None if plain else w[part]
            total = total + row_sums(begun.kernel, *some)
        return total

    def _kept_rows(self: Any, kept: Kept, known: Any, kernel: Kernel, moments: Moments | None) -> Training:
        """Rows that were kept as training data; with the class shares of all rows, once these are known."""
        W = self._row_weights(kept.w.astype(float), known)
        count = None if np.all(kept.count <= 1) else kept.count
        data = self._arranged(kept.X, kept.y, W, kept.group, kernel, None, known, count)
        if moments is None:
            return replace(data, rows=replace(data.rows, shares=self._first_shares(kept.y, kept.w, known)))
        shares = self._shares(moments, data.rows.mass)
        return replace(data, rows=replace(data.rows, shares=shares), kernel=kernel)

    def _places(self: Any, begun: Begun, known: Any, moments: Moments) -> Kept:
        """The centres in the place of rows, where none were kept: nothing is learned from them."""
        n = begun.basis.n_functions
        return Kept.all(begun.basis.centers, self._blank(n, known), np.ones(n), None, n)
