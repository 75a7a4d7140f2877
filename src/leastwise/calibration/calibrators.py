r"""From scores to probabilities: the calibrators of classes, and the table of all calibrations by name.

LSPC fits scores F_y(x) to the class posterior by least squares. Three kinds of calibrators turn them into
probabilities. Their parameters are fitted to held-out scores, without a refit of the model:

``ClipNormalise``, eq. (3) and (10)
    negative scores become zero, and each row is divided by its sum. Where every class is clipped to zero the result
    is the class shares of the training rows.
``Blend``
    a log-linear family between clip-and-normalise and a softmax, see :mod:`leastwise.calibration.blend`.
``Isotonic``
    one monotone step function per class, then divided by the sum.

Fitted parameters are shrunk towards the class shares where the held-out scores are hardly better than these: by the
credibility of :mod:`leastwise.calibration.blend`.

``CALIBRATIONS`` is the only list of the names that ``calibration=`` takes. A new calibrator is one entry there::

    CALIBRATIONS["name"] = Calibration(fit, fit_labels)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression

from leastwise.calibration.blend import Calibrator, Sample, blend_credibility, fit_blend
from leastwise.calibration.label_blend import LabelSample
from leastwise.calibration.label_calibrators import (
    LabelCalibrator,
    fit_label_blend,
    fit_label_clip,
    fit_label_isotonic,
)
from leastwise.calibration.prior import Shift
from leastwise.utils.arrays import get_namespace, is_numpy, numbers_like, scalar, to_namespace, to_numpy

Array = np.ndarray


# ----------------------------------------------------------------- calibrators


@dataclass(frozen=True)
class ClipNormalise:
    """Eq. (3) and (10). Ignores the domain weight, as in the paper."""

    shares: Array

    def proba(self, F: Array, in_domain: Array | None = None) -> Array:
        xp = get_namespace(F)
        P = xp.clip(F, 0, None)
        total = xp.sum(P, axis=1, keepdims=True)
        return xp.where(total > 0, P / xp.where(total > 0, total, 1), to_namespace(self.shares, F))

    def decision(self, F: Array, in_domain: Array | None = None) -> Array:
        return self.proba(F)


@dataclass(frozen=True)
class Isotonic:
    """One step function per class; ``knots[y]`` and ``steps[y]`` are its corners.

    They are evaluated by numpy: scores of another array library are converted and the values converted back.
    """

    shares: Array
    floor: float
    knots: tuple[Array, ...]
    steps: tuple[Array, ...]

    def proba(self, F: Array, in_domain: Array | None = None) -> Array:
        known, shares = to_numpy(F), to_namespace(self.shares, F)
        columns = zip(known.T, self.knots, self.steps, strict=True)
        P = np.column_stack([np.interp(f, x, p) for f, x, p in columns]).astype(known.dtype, copy=False)
        P = ClipNormalise(self.shares).proba(to_namespace(P, F))
        weight = scalar(1 - self.floor, shares) * (1 if in_domain is None else in_domain[:, None])
        return weight * P + (1 - weight) * shares

    def decision(self, F: Array, in_domain: Array | None = None) -> Array:
        return self.proba(F, in_domain)


@dataclass(frozen=True)
class Signed:
    """A calibrator for scores fitted to -1 and 1: ``inner`` is applied to (F + 1) / 2."""

    inner: Calibrator

    def proba(self, F: Array, in_domain: Array | None = None) -> Array:
        return self.inner.proba((F + 1) / 2, in_domain)

    def decision(self, F: Array, in_domain: Array | None = None) -> Array:
        return self.inner.decision((F + 1) / 2, in_domain)


# ------------------------------------------------------------------------ fits


def fit_isotonic(sample: Sample, start: Calibrator | None = None, credibility: float | None = None) -> Isotonic:
    """Step functions, shrunk towards the class shares.

    The gain of step functions on the rows they were fitted to says little, so the credibility is that of a blend.
    """
    if credibility is None:
        credibility = blend_credibility(sample, start)
    knots, steps = [], []
    for k, scores in enumerate(sample.F.T):
        fit = IsotonicRegression(y_min=0, y_max=1).fit(scores, sample.y == k, sample_weight=sample.w)
        knots.append(fit.X_thresholds_)
        steps.append(fit.y_thresholds_)
    floor = 1 / (sample.size + 2)
    return Isotonic(sample.shares, floor + (1 - credibility) * (1 - floor), tuple(knots), tuple(steps))


# ------------------------------------------------------------ the calibrations


@dataclass(frozen=True)
class Calibration:
    """How one value of ``calibration=`` is fitted.

    Attributes
    ----------
    fit : callable
        ``fit(sample, start, credibility)`` returns a Calibrator; parameters as in :func:`fit_calibrator`.
    fit_labels : callable
        ``fit_labels(sample, start, pooled, pull, shrink)`` returns a LabelCalibrator; parameters as in
        :func:`fit_label_calibrator`.
    search_with : str, optional
        The calibration that replaces this one during the search, where calibrators are evaluated on the rows that
        they were fitted to. For calibrations flexible enough to overfit these rows.
    """

    fit: Callable[[Sample, Calibrator | None, float | None], Calibrator]
    fit_labels: Callable[[LabelSample, LabelCalibrator | None, bool, float | None, bool], LabelCalibrator]
    search_with: str | None = None


#: Every allowed value of ``calibration=``. Parameter checks and error messages read the names from here.
CALIBRATIONS: dict[str | None, Calibration] = {
    "blend": Calibration(fit_blend, fit_label_blend),
    "temperature": Calibration(partial(fit_blend, use_power=False), partial(fit_label_blend, use_power=False)),
    "isotonic": Calibration(fit_isotonic, fit_label_isotonic, search_with="blend"),
    None: Calibration(
        lambda sample, start, credibility: ClipNormalise(sample.shares),
        lambda sample, start, pooled, pull, shrink: fit_label_clip(sample),
    ),
}


def search_calibration(kind: str | None) -> str | None:
    """The calibration to use during the search if ``kind`` is that of the final model."""
    return CALIBRATIONS[kind].search_with or kind


def fit_calibrator(
    kind: str | None,
    sample: Sample,
    start: Calibrator | None = None,
    signed: bool = False,
    credibility: float | None = None,
) -> Calibrator:
    """A calibrator fitted to held-out scores.

    Parameters
    ----------
    kind : {"blend", "temperature", "isotonic", None} or another key of ``CALIBRATIONS``
    sample : Sample
    start : Calibrator, optional
        Where the search for the parameters of a blend starts, if it is one.
    signed : bool
        True if the targets were -1 and 1.
    credibility : float, optional
        The credibility, from 0 for the class shares to 1 for maximum likelihood; by default estimated from the
        held-out scores.
    """
    if signed:
        inner = start.inner if isinstance(start, Signed) else None
        return Signed(fit_calibrator(kind, replace(sample, F=(sample.F + 1) / 2), inner, credibility=credibility))
    return CALIBRATIONS[kind].fit(sample, start, credibility)


def fit_label_calibrator(
    kind: str | None,
    sample: LabelSample,
    start: LabelCalibrator | None = None,
    pooled: bool = False,
    pull: float | None = None,
    shrink: bool = True,
) -> LabelCalibrator:
    """A calibrator of many labels fitted to held-out scores.

    Parameters
    ----------
    kind : {"blend", "temperature", "isotonic", None} or another key of ``CALIBRATIONS``
    sample : LabelSample
    start : LabelCalibrator, optional
        Where the search for the parameters of a blend starts, if it is one.
    pooled : bool
        True if sharpness and power are the same for all labels, before they are shrunk.
    pull : float, optional
        Number of rows that the pooled parameters count for in the fit of each label, 0 or more; by default estimated
        from the held-out scores.
    shrink : bool
        False leaves out the credibility.
    """
    return CALIBRATIONS[kind].fit_labels(sample, start, pooled, pull, shrink)


def sample_credibility(kind: str | None, sample: Sample, signed: bool = False) -> float:
    """The credibility that ``fit_calibrator`` gives these held-out scores."""
    if signed:
        sample = replace(sample, F=(sample.F + 1) / 2)
    return blend_credibility(sample, use_power=kind != "temperature")


# -------------------------------------------------------------- scores of rows


@dataclass(frozen=True)
class CalibratedScores:
    """Scores of some rows, their domain weights, and their calibration.

    ``unseen`` marks rows of unseen tasks, which have their own calibrator, ``unseen_task``. ``task`` holds the codes
    of the tasks, ``shift`` changes the class shares.
    """

    F: Array
    in_domain: Array
    calibrator: Calibrator
    unseen: Array | None = None
    unseen_task: Calibrator | None = None
    task: Array | None = None
    shift: Shift | None = None

    def proba(self) -> Array:
        """Probabilities, of shape (n, c)."""
        P = self._calibrated(lambda c, rows: c.proba(self.F[rows], self.in_domain[rows]))
        return P if self.shift is None else self.shift.proba(P)

    def table(self) -> Array:
        """Values that order the classes as the probabilities do, of shape (n, c)."""
        if self.shift is not None:
            return self.shift.decision(replace(self, shift=None).proba())
        return self._calibrated(lambda c, rows: c.decision(self.F[rows], self.in_domain[rows]))

    def decision(self) -> Array:
        """Decision values, of shape (n,) with two classes (second minus first), else (n, c)."""
        D = self.table()
        return D[:, 1] - D[:, 0] if D.shape[1] == 2 else D

    def to_numpy(self) -> CalibratedScores:
        """The same in numpy arrays."""
        return replace(self, F=to_numpy(self.F), in_domain=to_numpy(self.in_domain))

    def best(self) -> Array:
        """Code of the most probable class."""
        P = self.proba()
        return get_namespace(P).argmax(P, axis=1)

    def _calibrated(self, apply: Callable[[Calibrator, Any], Array]) -> Array:
        if self.unseen is None or self.unseen_task is None or not self.unseen.any():
            return apply(self.calibrator, ...)
        if not is_numpy(self.F):  # both calibrators for all rows: other libraries cannot assign to indexed rows
            unseen = get_namespace(self.F).astype(
                numbers_like(self.unseen.astype(int), self.F), get_namespace(self.F).bool
            )
            known, other = apply(self.calibrator, ...), apply(self.unseen_task, ...)
            return get_namespace(self.F).where(unseen[:, None], other, known)
        values = np.empty_like(self.F)
        values[~self.unseen] = apply(self.calibrator, ~self.unseen)
        values[self.unseen] = apply(self.unseen_task, self.unseen)
        return values
