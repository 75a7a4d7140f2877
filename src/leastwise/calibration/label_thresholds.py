"""Decision thresholds for many labels, chosen on held-out rows for a given metric.

A label of two classes is predicted as its second class if the probability of that class is above the threshold. For
F1 0.5 is too high, the more so the rarer the labels. Thresholds are chosen on held-out rows:

one for all labels
    for micro F1, F1 by rows, Hamming loss and subset accuracy: the best one, since it depends on very many entries.
    For the Hamming loss, for which 0.5 is optimal if probabilities are calibrated, it must be better than 0.5 by a
    margin.
one for each label
    for macro F1. The best one on a label's own rows would depend on a handful of them for a rare label. Instead, rows
    are soft positives: ``q = trust y + (1 - trust) p``, where y is 0 or 1, p its probability, scaled such that all
    rows add up to the positives of the label, and ``trust = positives / (positives + 20)``. F1 is maximised with q
    instead of y: with many positives that is the F1 of the rows, with few the expected F1 if the probabilities are
    right up to a factor.

one for each label, for all metrics
    ``"balanced"``: the greatest sum of micro F1, macro F1 and 1 - (Hamming loss / that of random labels of the same
    frequency, 2 positives per entry), each from 0 to 1, with soft positives as above. Thresholds for macro F1 alone
    give rare labels to many rows, which the other two metrics count as errors.

The rule of a scoring is given when it is registered, with ``register_label_scoring(thresholds=)``.

Of all thresholds that give the same decisions the lowest is taken. On new messages of Enron that gave a better macro
F1 than the midpoint between two probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leastwise.calibration.label_blend import by_width
from leastwise.metrics.labels import row_weights

Array = np.ndarray

#: Number of positives that the probabilities of a label count for.
PULL = 20.0
#: Largest number of thresholds for metrics that need a number for each row and threshold.
GRID = 256
#: With more entries than this the same limit holds for all metrics.
MANY = 200_000
#: Largest number of tangents of micro F1; a few suffice.
STEPS = 50

#: ``rule(P, codes, W)`` returns the best thresholds; parameters and result as in :func:`choose_thresholds`.
ThresholdRule = Callable[[Array, Array, Array], "float | Array"]
#: The rule of each label scoring that has one. ``register_label_scoring`` adds to it.
THRESHOLD_RULES: dict[str, ThresholdRule] = {}


def decide(P: Array, starts: Array, threshold: float | Array) -> Array:
    """Codes of the predicted classes, of shape (n, T).

    Labels of two classes are the second one if its probability is above the threshold, so that at 0.5 an exact tie
    goes to the first class, as with ``argmax``. Labels of more classes are the most probable one, for any threshold.

    Parameters
    ----------
    P : ndarray of shape (n, O)
        Probabilities; label t has the columns ``starts[t] ... starts[t + 1] - 1``.
    starts : ndarray of int of shape (T + 1,)
    threshold : float or ndarray of shape (T,)
    """
    threshold = np.broadcast_to(threshold, len(starts) - 1)
    D = np.empty((len(P), len(starts) - 1), dtype=int)
    for labels, columns in by_width(starts):
        if columns.shape[1] == 2:
            D[:, labels] = P[:, columns[:, 1]] > threshold[labels]
        else:
            D[:, labels] = P[:, columns].argmax(axis=2)
    return D


def choose_thresholds(metric: str, P: Array, codes: Array, W: Array) -> float | Array:
    """The best thresholds for a metric, for labels of two classes.

    Parameters
    ----------
    metric : str
        Name of a label scoring; without a rule in ``THRESHOLD_RULES`` the threshold is 0.5.
    P : ndarray of shape (n, T)
        Probabilities of the second class, on held-out rows.
    codes : ndarray of int of shape (n, T)
        0 or 1; -1 where a label is unknown.
    W : ndarray of shape (n, T)
        Weights; 0 where a label is unknown.

    Returns
    -------
    float
        One threshold for all labels; the middle one if several are equally good. 0.5 if all have a score of 0.
    ndarray of shape (T,)
        With "f1_macro" and "balanced".
    """
    rule = THRESHOLD_RULES.get(metric)
    return 0.5 if rule is None else rule(P, codes, W)


@dataclass(frozen=True)
class SharedThreshold:
    """Rule for one threshold for all labels: the maximum of a curve over thresholds.

    Attributes
    ----------
    curve : callable
        ``curve(place, true, W, size)`` returns the metric at each of ``size`` thresholds in rising order. ``place``
        is the last threshold that an entry reaches, -1 for none.
    by_row : bool
        True if the curve needs a number for each row and threshold, so that fewer thresholds are tried.
    margin : bool
        True if 0.5 is kept unless the best threshold is better by more than a standard error.
    """

    curve: Callable[[Array, Array, Array, int], Array]
    by_row: bool = False
    margin: bool = False

    def __call__(self, P: Array, codes: Array, W: Array) -> float:
        """The best threshold; parameters and result as in :func:`choose_thresholds`."""
        true, W = codes == 1, np.where(codes >= 0, W, 0)
        tried = _tried(P[true & (W > 0)], GRID if self.by_row or P.size > MANY else P.size)
        place = np.searchsorted(tried, P, side="right") - 1
        curve = self.curve(place, true, W, len(tried))
        if not curve.max() > 0:
            return 0.5
        best = np.flatnonzero(curve >= curve.max() * (1 - 1e-12))
        chosen = _just_below(P[W > 0], tried[best[len(best) // 2]])
        return 0.5 if self.margin and not _worth_it(P, true, W, chosen) else chosen


def _worth_it(P: Array, true: Array, W: Array, threshold: float) -> bool:
    """True if more entries are correct than at 0.5, by more than a standard error over rows."""
    right = ((t < P) == true for t in (threshold, 0.5))
    gain = np.sum(W * np.subtract(*right, dtype=int), axis=1)
    return bool(gain.sum() > np.sqrt(np.sum(gain**2 / np.where(gain != 0, row_weights(W), 1))))


def _tried(positive: Array, most: int) -> Array:
    """Candidate probabilities: those of positives, since others only add negatives, and infinity."""
    values = np.unique(positive[positive > 0])
    if len(values) > most:
        values = values[np.linspace(0, len(values) - 1, most).round().astype(int)]
    return np.append(values, np.inf)


def _just_below(values: Array, first: float) -> float:
    """The next lower probability, so that ``first`` is the lowest one above the threshold."""
    if np.isinf(first):
        return max(0.5, float(values.max()))
    return float(values[values < first].max(initial=0))


# ----------------------------------- metrics at every threshold for all labels


def micro_f1_curve(place: Array, true: Array, W: Array, size: int) -> Array:
    """F1 of all entries."""
    both, given = (_reaching(place.ravel(), V.ravel(), size) for V in (W * true, W))
    return 2 * both / np.maximum(given + np.sum(W * true), np.finfo(float).tiny)


def row_f1_curve(place: Array, true: Array, W: Array, size: int) -> Array:
    """Sum over rows of their F1."""
    both, given = (_reaching(place, V, size) for V in (W * true, W))
    total = given + np.sum(W * true, axis=1, keepdims=True)
    return row_weights(W) @ (2 * both / np.where(total > 0, total, 1))


def correct_entries_curve(place: Array, true: Array, W: Array, size: int) -> Array:
    """Weight of the correct entries."""
    gain = _reaching(place.ravel(), np.where(true, W, -W).ravel(), size)
    return gain + np.sum(W * ~true)


def correct_rows_curve(place: Array, true: Array, W: Array, size: int) -> Array:
    """Weight of the correct rows: those where the threshold is above all negatives and below all positives."""
    low = np.where(~true & (W > 0), place, -1).max(axis=1) + 1
    high = np.where(true & (W > 0), place, size - 1).min(axis=1) + 1
    w, possible = row_weights(W), low < high
    starts, ends = (np.bincount(i[possible], w[possible], size + 1) for i in (low, high))
    return np.cumsum(starts - ends)[:size]


def _reaching(place: Array, weights: Array, size: int) -> Array:
    """Weight of the entries at each place or a later one, in each row of a table or in a flat list."""
    shape = (*place.shape[:-1], size + 1)
    offset = np.arange(len(place))[:, None] * (size + 1) if place.ndim == 2 else 0
    counts = np.bincount((place + 1 + offset).ravel(), weights.ravel(), int(np.prod(shape))).reshape(shape)
    return np.cumsum(counts[..., :0:-1], axis=-1)[..., ::-1]


# -------------------------------------------------------- one threshold for each label


def label_thresholds(P: Array, codes: Array, W: Array) -> Array:
    """Thresholds for macro F1, of shape (T,), see above; 0.5 for a label without known entries.

    Parameters are those of :func:`choose_thresholds`.
    """
    sweep = _sweep(P, codes, W)
    value = sweep.f1()
    best = value.argmax(axis=1)
    return np.where(value.max(axis=1) > 0, sweep.at(sweep.thresholds, best), 0.5)


def balanced_thresholds(P: Array, codes: Array, W: Array) -> Array:
    """Thresholds for several metrics at once, of shape (T,), see above; 0.5 for a label without known entries.

    Macro F1 and the Hamming loss are sums over labels. Micro F1 is replaced by its tangent, each label takes its best
    threshold, and the tangent is renewed, until no label changes.

    Parameters are those of :func:`choose_thresholds`.
    """
    sweep = _sweep(P, codes, W)
    total, macro = sweep.positives.sum(), sweep.f1() / max(1, np.sum(sweep.known))
    if not total > 0:
        return np.full(P.shape[1], 0.5)
    chosen = best = np.zeros(P.shape[1], dtype=int)
    reached = -np.inf
    for _ in range(STEPS):
        hits, given = (sweep.at(A, best).sum() for A in (sweep.hits, sweep.given))
        micro = 2 * hits / (given + total)
        value = micro + sweep.at(macro, best).sum() - (given - 2 * hits) / (2 * total)
        if value <= reached:
            break
        chosen, reached = best, value
        tangent = (2 * sweep.hits - micro * sweep.given) / (given + total)
        gain = macro + tangent - (sweep.given - 2 * sweep.hits) / (2 * total)
        best = np.where(sweep.possible, gain, -np.inf).argmax(axis=1)
    return np.where(sweep.known, sweep.at(sweep.thresholds, chosen), 0.5)


@dataclass(frozen=True)
class _Sweep:
    """All decisions on each label: the row of a label has one entry for each number of rows that are given it.

    Attributes
    ----------
    thresholds : ndarray of shape (T, n + 1)
        Falling thresholds that give a label to 0 ... n rows.
    possible : ndarray of bool of shape (T, n + 1)
        False where a threshold would separate rows of equal probability.
    hits, given : ndarray of shape (T, n + 1)
        Weight of the soft positives among the rows that are given the label, and of these rows.
    positives : ndarray of shape (T,)
        Weight of all soft positives.
    known : ndarray of bool of shape (T,)
        True for labels with known entries.
    """

    thresholds: Array
    possible: Array
    hits: Array
    given: Array
    positives: Array
    known: Array

    def f1(self) -> Array:
        """F1 of each label; 0 where a decision is not possible."""
        total = self.given + self.positives[:, None]
        return np.where(self.possible, 2 * self.hits / np.where(total > 0, total, 1), 0)

    @staticmethod
    def at(values: Array, places: Array) -> Array:
        """One entry of each label."""
        return np.take_along_axis(values, places[:, None], axis=1)[:, 0]


def _sweep(P: Array, codes: Array, W: Array) -> _Sweep:
    """Parameters are those of :func:`choose_thresholds`."""
    known = (codes >= 0) & (W > 0)
    p, w = np.where(known, P, 0).T, np.where(known, W, 0).T
    q = w * _soft(p, (codes == 1).T, w)
    order = np.argsort(-p, axis=1)
    p, q, w = (np.take_along_axis(A, order, axis=1) for A in (p, q, w))
    lower = np.pad(p, ((0, 0), (0, 1)))
    first = np.maximum(p[:, :1], 0.5)  # for none
    before = np.column_stack([np.full(len(p), np.inf), p])
    hits, given = (np.pad(np.cumsum(A, axis=1), ((0, 0), (1, 0))) for A in (q, w))
    thresholds = np.column_stack([first, lower[:, 1:]])
    return _Sweep(thresholds, before > lower, hits, given, hits[:, -1], np.asarray(known.any(axis=0)))


def _soft(p: Array, true: Array, w: Array) -> Array:
    """Soft positives: true labels mixed with their probabilities."""
    positives, expected = np.sum(w * true, axis=1, keepdims=True), np.sum(w * p, axis=1, keepdims=True)
    scale = np.where((positives > 0) & (expected > 0), positives / np.where(expected > 0, expected, 1), 1)
    trust = positives / (positives + PULL)
    return trust * true + (1 - trust) * scale * p


#: The rule that belongs to no single metric.
THRESHOLD_RULES["balanced"] = balanced_thresholds
