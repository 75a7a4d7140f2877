"""Scorings of many labels: metrics of held-out predictions that the search maximises.

F1, average precision and the area under the ROC curve are metrics of binary events. For a label of two classes the
event is the second class; a label of more classes is one event per class, each against the rest. All metrics are
weighted, and unknown entries have weight 0; see :mod:`leastwise.metrics` for what averages leave out.

``LABEL_SCORINGS`` is the only list of names that ``scoring=`` takes, besides those of scikit-learn. A new one is a
registered function, greater is better::

    @register_label_scoring("precision", decides=True)
    def precision(sample, P, D):
        found = sample.W * (D > 0)
        return float(np.sum(found * (sample.codes == D)) / max(found.sum(), 1e-300))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer, get_scorer_names

from leastwise.calibration.calibrators import fit_label_calibrator, search_calibration
from leastwise.calibration.label_blend import LabelSample
from leastwise.calibration.label_thresholds import (
    THRESHOLD_RULES,
    SharedThreshold,
    ThresholdRule,
    choose_thresholds,
    correct_entries_curve,
    correct_rows_curve,
    decide,
    label_thresholds,
    micro_f1_curve,
    row_f1_curve,
)
from leastwise.metrics.labels import Ranking, auc_of, average_precision_of, f1_of, mean_of, subset_of
from leastwise.metrics.probabilities import log_losses
from leastwise.model_selection.objective import TINY, takes_weights
from leastwise.solvers.heldout import HeldOut
from leastwise.solvers.label_evaluators import LabelRows

Array = np.ndarray
Function = Callable[[LabelSample, Array, Array], float]


@dataclass(frozen=True)
class LabelScorer:
    """``scorer(sample, P, D)``, greater is better.

    P has the probabilities, of shape (n, O), and D the decisions, as codes of the classes, of shape (n, T).

    Attributes
    ----------
    name : str
    function : callable
    decides : bool
        True if the scoring depends on the decisions; otherwise it depends on the probabilities only.
    by_label : bool
        True if a subset of the labels estimates it; False if it needs all labels of a row.
    loss : bool
        True for the negative of a loss, which is displayed without the minus.
    """

    name: str
    function: Function
    decides: bool = False
    by_label: bool = False
    loss: bool = False

    def __call__(self, sample: LabelSample, P: Array, D: Array) -> float:
        """The score; raises an error if it is NaN."""
        value = float(self.function(sample, P, D))
        if np.isnan(value):
            raise ValueError(
                f"scoring={self.name!r} is NaN on the held-out predictions: no label has the rows that it needs, "
                "such as known rows of two classes."
            )
        return value

    def shown(self, score: float) -> float:
        """The score for display: losses are positive."""
        return -score if self.loss else score


#: Scorings of labels by name.
LABEL_SCORINGS: dict[str, LabelScorer] = {}


def register_label_scoring(
    name: str,
    decides: bool = False,
    by_label: bool = True,
    loss: bool = False,
    thresholds: ThresholdRule | None = None,
) -> Callable[[Function], Function]:
    """Decorator that registers a scoring of labels; options are fields of :class:`LabelScorer`.

    ``thresholds(P, codes, W)`` chooses the decision thresholds that maximise the scoring, see
    :mod:`leastwise.calibration.label_thresholds`. Without it decisions are made at 0.5.
    """

    def add(function: Function) -> Function:
        LABEL_SCORINGS[name] = LabelScorer(name, function, decides, by_label, loss)
        if thresholds is not None:
            THRESHOLD_RULES[name] = thresholds
        return function

    return add


def threshold_metric(threshold: str, scorer: LabelScorer) -> str:
    """The scoring to choose thresholds for: "auto" is that of the search, or micro F1 if that needs no decisions."""
    if threshold != "auto":
        return threshold
    return scorer.name if scorer.decides else "f1_micro"


# ------------------------------------------------------------- probabilities


@register_label_scoring("log_loss", loss=True)
@register_label_scoring("neg_log_loss", loss=True)
def log_likelihood(sample: LabelSample, P: Array, D: Array) -> float:
    """Mean log-probability of the true classes, over known entries."""
    p = np.take_along_axis(P, sample.starts[:-1] + np.maximum(sample.codes, 0), axis=1)
    return -_mean(log_losses(p), sample.W)


@register_label_scoring("brier", loss=True)
def negative_brier(sample: LabelSample, P: Array, D: Array) -> float:
    """Minus the mean, over known entries, of the squared distance between probabilities and one-hot labels."""
    p = np.take_along_axis(P, sample.starts[:-1] + np.maximum(sample.codes, 0), axis=1)
    squares = np.add.reduceat(P * P, sample.starts[:-1], axis=1)
    return -_mean(squares - 2 * p + 1, sample.W)


def _mean(values: Array, W: Array) -> float:
    return float(np.einsum("ij,ij", values, W) / W.sum())


@register_label_scoring("average_precision")
def average_precision(sample: LabelSample, P: Array, D: Array) -> float:
    """Mean average precision, over labels for which both classes occur."""
    ranking = Ranking.of(*(A.T for A in _events(sample, P)))
    values = np.where(ranking.false > 0, ranking.average_precision(), np.nan)
    return float(mean_of(values, np.ones(len(values))))


@register_label_scoring("average_precision_micro")
def micro_average_precision(sample: LabelSample, P: Array, D: Array) -> float:
    """Average precision of all known entries in one ranking."""
    return float(average_precision_of(*_events(sample, P), "micro"))


@register_label_scoring("auc")
def auc(sample: LabelSample, P: Array, D: Array) -> float:
    """Mean area under the ROC curve, over labels for which both classes occur."""
    return float(auc_of(*_events(sample, P), "macro"))


# ----------------------------------------------------------------- decisions


def f1(average: str) -> Function:
    """F1 of all entries ("micro"), or the mean over labels ("macro") or rows ("samples")."""

    def score(sample: LabelSample, P: Array, D: Array) -> float:
        occurred, W = _occurred(sample.codes, sample.starts), _weights(sample)
        return float(f1_of(occurred, _occurred(D, sample.starts), W, average))

    return score


register_label_scoring("f1_micro", decides=True, thresholds=SharedThreshold(micro_f1_curve))(f1("micro"))
register_label_scoring("f1_macro", decides=True, thresholds=label_thresholds)(f1("macro"))
register_label_scoring(
    "f1_samples", decides=True, by_label=False, thresholds=SharedThreshold(row_f1_curve, by_row=True)
)(f1("samples"))


@register_label_scoring(
    "hamming", decides=True, loss=True, thresholds=SharedThreshold(correct_entries_curve, margin=True)
)
def negative_hamming(sample: LabelSample, P: Array, D: Array) -> float:
    """Minus the share of known entries whose decision is wrong."""
    return -_mean(sample.codes != D, sample.W)


@register_label_scoring("accuracy", decides=True, by_label=False, thresholds=SharedThreshold(correct_rows_curve))
def subset_accuracy(sample: LabelSample, P: Array, D: Array) -> float:
    """Share of rows whose known labels are all predicted correctly."""
    return subset_of(sample.codes == D, sample.W)


def _columns(starts: Array) -> tuple[Array, Array]:
    """Columns of the binary events and their labels: the second of two classes, or every class of more than two."""
    label = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    place = np.arange(starts[-1]) - starts[label]
    kept = (np.diff(starts)[label] != 2) | (place == 1)
    return np.flatnonzero(kept), label[kept]


def _occurred(codes: Array, starts: Array) -> Array:
    column, label = _columns(starts)
    return codes[:, label] == column - starts[label]


def _weights(sample: LabelSample) -> Array:
    return sample.W[:, _columns(sample.starts)[1]]


def _events(sample: LabelSample, P: Array) -> tuple[Array, Array, Array]:
    """Probabilities, outcomes and weights of all binary events."""
    return P[:, _columns(sample.starts)[0]], _occurred(sample.codes, sample.starts), _weights(sample)


# --------------------------------------------------- scikit-learn and callables


class HeldoutLabels(ClassifierMixin, BaseEstimator):
    """A fitted classifier of T binary labels that returns stored predictions, for scikit-learn's scorers."""

    def __init__(self, proba: Array, decided: Array) -> None:
        self.proba = proba
        self.decided = decided

    @property
    def classes_(self) -> list[Array]:
        """0 and 1 for every label."""
        return [np.array([0, 1])] * self.decided.shape[1]

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Array:
        """Decisions, of shape (n, T)."""
        return self.decided

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of 1, of shape (n, T)."""
        return self.proba

    def decision_function(self, X: Any) -> Array:
        """Their log-odds."""
        tiny = np.finfo(self.proba.dtype).tiny
        return np.log(np.maximum(self.proba, tiny)) - np.log(np.maximum(1 - self.proba, tiny))


def resolve_label_scoring(scoring: Any) -> LabelScorer:
    """The scorer for a registered name, a name of scikit-learn, or a callable ``f(estimator, X, Y)``.

    Scorers that are not registered here receive labels as 0 and 1, where 1 is the second class, so all labels must be
    known and have two classes.
    """
    if isinstance(scoring, str) and scoring in LABEL_SCORINGS:
        return LABEL_SCORINGS[scoring]
    if isinstance(scoring, str) and scoring in get_scorer_names():
        return _borrowed(scoring, get_scorer(scoring))
    if callable(scoring):
        return _borrowed(getattr(scoring, "__name__", type(scoring).__name__), scoring)
    raise ValueError(
        f"scoring={scoring!r} is not known: use one of {sorted(LABEL_SCORINGS)}, a name that "
        "sklearn.metrics.get_scorer_names() lists, or a callable f(estimator, X, Y)."
    )


def _borrowed(name: str, scorer: Callable) -> LabelScorer:
    """A scorer that takes an estimator, applied to held-out predictions."""
    weighted = takes_weights(scorer)

    def score(sample: LabelSample, P: Array, D: Array) -> float:
        _check_complete(name, sample)
        w = sample.W[:, 0]
        weights = {"sample_weight": w} if weighted and np.any(w != 1) else {}
        seen = HeldoutLabels(P[:, 1::2], D)
        try:
            return float(scorer(seen, np.zeros((len(D), 1)), sample.codes, **weights))
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(
                f"scoring={name!r} does not support predictions of many labels ({error}): use one of "
                f"{sorted(LABEL_SCORINGS)}, or a multi-label scorer of scikit-learn."
            ) from error

    methods = getattr(scorer, "_response_method", "predict")  # a callable may use anything
    return LabelScorer(name, score, "predict" in (methods if isinstance(methods, list | tuple) else (methods,)))


def _check_complete(name: str, sample: LabelSample) -> None:
    """Raise an error for unknown labels, more than two classes and weights by label, which scikit-learn lacks."""
    unknown = int(np.sum(sample.codes < 0))
    if unknown:
        problem = f"needs all labels, and {unknown} of {sample.codes.size} are unknown"
    elif not sample.binary:
        t = int(np.flatnonzero(np.diff(sample.starts) != 2)[0])
        problem = f"needs labels of two classes, and label {t} has {np.diff(sample.starts)[t]}"
    elif np.any(np.ptp(sample.W, axis=1) > 0):
        problem = "supports one weight per row only, and here labels of a row have different weights"
    else:
        return
    raise ValueError(f"scoring={name!r} {problem}: use one of {sorted(LABEL_SCORINGS)}.")


@dataclass(frozen=True)
class LabelObjective:
    """Metric of held-out probabilities of many labels, from one pooled calibrator, or of decisions based on them.

    Attributes
    ----------
    starts : ndarray of int of shape (T + 1,)
    calibration : str or None
    scorer : LabelScorer
    threshold : float, ndarray of shape (T,) or str
        Probability above which a label is predicted; "auto" selects the best thresholds for the scorer, a name those
        for another scoring.
    """

    starts: Array
    calibration: str | None
    scorer: LabelScorer
    threshold: Any = 0.5
    scale: float = 1.0
    of_classes: ClassVar[bool] = True

    @property
    def n_outputs(self) -> int:
        """One per class of each label."""
        return int(self.starts[-1])

    def take(self, labels: Array) -> LabelObjective:
        """The objective of a subset of the labels."""
        starts = np.cumsum([0, *np.diff(self.starts)[labels]])
        each = isinstance(self.threshold, np.ndarray)
        return replace(self, starts=starts, threshold=self.threshold[labels] if each else self.threshold)

    def __call__(self, rows: Any, held: HeldOut, last: Any) -> tuple[float, Any]:
        """Objective value and calibrator."""
        assert isinstance(rows, LabelRows)
        sample = rows.label_sample(held.F)
        calibrator = fit_label_calibrator(search_calibration(self.calibration), sample, last, pooled=True)
        P = calibrator.proba(sample.F)
        if not self.scorer.decides:
            return self.scorer(sample, P, sample.codes), calibrator
        threshold = self.threshold
        if isinstance(threshold, str):
            threshold = choose_thresholds(
                threshold_metric(threshold, self.scorer), P[:, 1::2], sample.codes, sample.W
            )
        return self.scorer(sample, P, decide(P, self.starts, threshold)), calibrator

    def row_losses(self, rows: Any, held: HeldOut, calibrator: Any = None) -> Array:
        """Log-losses of the held-out probabilities, averaged over the known labels of each row."""
        P = (calibrator or self(rows, held, None)[1]).proba(held.F)
        column = self.starts[:-1] + np.maximum(rows.y, 0)
        losses = -np.log(np.maximum(np.take_along_axis(P, column, axis=1), TINY))
        known = rows.W * (rows.y >= 0)
        return np.sum(known * losses, axis=1) / np.maximum(known.sum(axis=1), TINY)
