"""Decisions on many labels, and thresholds that suit what is wanted."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leastwise.calibration import label_thresholds as thresholds
from leastwise.calibration.label_thresholds import PULL, THRESHOLD_RULES, choose_thresholds, decide
from leastwise.metrics.labels import hamming, label_f1, subset_accuracy
from leastwise.model_selection.label_objective import LABEL_SCORINGS

MEASURES = {
    "f1_micro": lambda Y, D, W: label_f1(Y, D, sample_weight=W),
    "f1_samples": lambda Y, D, W: label_f1(Y, D, average="samples", sample_weight=W),
    "hamming": lambda Y, D, W: 1 - hamming(Y, D, sample_weight=W),
    "accuracy": lambda Y, D, W: subset_accuracy(Y, D, sample_weight=W),
}


def two_columns(p):
    return np.stack([1 - p, p], axis=2).reshape(len(p), -1)


def drawn(n, T, seed, unknown=0.0, rarity=3.0):
    """Probabilities that are right, labels drawn from them, weights."""
    rng = np.random.default_rng(seed)
    P = rng.beta(0.4, rarity, size=(n, T))
    codes = (rng.random((n, T)) < P).astype(int)
    codes[rng.random((n, T)) < unknown] = -1
    return P, codes, np.where(codes >= 0, rng.integers(1, 4, (n, T)), 0).astype(float)


# -------------------------------------------------------------------- decisions


def test_half_is_the_most_probable_class():
    P, starts = np.array([[0.5, 0.5, 0.2, 0.5, 0.3], [0.4, 0.6, 0.4, 0.2, 0.4], [0.7, 0.3, 0.1, 0.1, 0.8]]), [0, 2, 5]
    expected = np.column_stack([P[:, :2].argmax(axis=1), P[:, 2:].argmax(axis=1)])
    np.testing.assert_array_equal(decide(P, np.array(starts), 0.5), expected)
    assert expected[0, 0] == 0  # the tie


def test_thresholds_are_for_labels_of_two_classes():
    P = np.array([[0.7, 0.3, 0.2, 0.5, 0.3, 0.9, 0.1]] * 2)
    starts = np.array([0, 2, 5, 7])
    np.testing.assert_array_equal(decide(P, starts, np.array([0.2, 0.99, 0.2])), [[1, 1, 0]] * 2)
    np.testing.assert_array_equal(decide(P, starts, 0.05), [[1, 1, 1]] * 2)
    np.testing.assert_array_equal(decide(P, starts, 1.0), [[0, 1, 0]] * 2)


# --------------------------------------------------------- one threshold for all


@given(st.sampled_from(sorted(MEASURES)), st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 4), st.booleans())
@settings(max_examples=150, deadline=None)
def test_no_threshold_is_better(metric, seed, n, T, single):
    P, codes, W = drawn(n, T, seed, unknown=0.3, rarity=1.0)
    P = P.round(1)  # ties, and zeros and ones
    codes[0, 0], W[0, 0] = 1, 1.0
    P = P.astype(np.float32) if single else P
    Y = np.where(codes < 0, np.nan, codes)
    chosen = choose_thresholds(metric, P, codes, W)
    assert isinstance(chosen, float)
    assert 0 <= chosen <= 1
    if metric == "hamming" and chosen == 0.5:
        return
    scores = [MEASURES[metric](Y, t < P, W) for t in [0, 0.5, *np.unique(P)]]
    found = decide(two_columns(P), 2 * np.arange(T + 1), chosen)
    assert MEASURES[metric](Y, found, W) == pytest.approx(max(scores))


def test_hamming_loss_leaves_half_for_a_clear_gain_only():
    y = np.repeat([1, 0], [7, 3])[:, None]
    W = np.ones((10, 1))
    P = np.where(np.arange(10) < 9, 0.4, 0.1)[:, None]  # at 0.4 and below 7 - 2 = 5 more are right: sqrt(9) is less
    assert choose_thresholds("hamming", P, y, W) == 0.1
    y[1:4] = 0  # now 4 - 5
    assert choose_thresholds("hamming", P, y, W) == 0.5
    y[1:3] = 1  # now 6 - 3, no more than sqrt(9)
    assert choose_thresholds("hamming", P, y, W) == 0.5


@pytest.mark.parametrize("metric", sorted(THRESHOLD_RULES))
def test_what_is_not_known_makes_no_difference(metric):
    P, codes, W = drawn(60, 4, 0, unknown=0.4)
    other = np.where(codes < 0, np.random.default_rng(1).random(P.shape), P)
    np.testing.assert_array_equal(
        choose_thresholds(metric, P, codes, W), choose_thresholds(metric, other, codes, np.where(codes < 0, 5, W))
    )


@pytest.mark.parametrize("metric", sorted(THRESHOLD_RULES))
def test_weights_are_copies(metric):
    P, codes, W = drawn(40, 3, 0)
    W = np.repeat(W[:, :1], 3, axis=1)
    times = W[:, 0].astype(int)
    copies = [np.repeat(A, times, axis=0) for A in (P, codes, np.ones_like(W))]
    np.testing.assert_allclose(choose_thresholds(metric, P, codes, W), choose_thresholds(metric, *copies))


@pytest.mark.parametrize("metric", sorted(MEASURES))
def test_large_tables_are_swept_in_steps(metric, monkeypatch):
    P, codes, W = drawn(300, 8, 0)
    exact = choose_thresholds("f1_micro", P, codes, W), choose_thresholds(metric, P, codes, W)
    monkeypatch.setattr(thresholds, "MANY", 100)
    monkeypatch.setattr(thresholds, "GRID", 40)
    coarse = choose_thresholds(metric, P, codes, W)
    best, found = (MEASURES[metric](codes, t < P, W) for t in (exact[1], coarse))
    assert best - 0.01 < found <= best


def test_calibrated_probabilities():
    """The best threshold for F1 is half the best F1 (Lipton et al. 2014), and 0.5 for the Hamming loss."""
    P, codes, W = drawn(40_000, 4, 0)
    W = np.ones_like(W)
    t = choose_thresholds("f1_micro", P, codes, W)
    assert t == pytest.approx(label_f1(codes, t < P) / 2, abs=0.02)
    assert choose_thresholds("hamming", P, codes, W) == pytest.approx(0.5, abs=0.05)


def test_nothing_to_choose_by():
    P, codes, W = drawn(20, 3, 0)
    for metric in (*MEASURES, "f1_macro", "balanced"):
        np.testing.assert_array_equal(choose_thresholds(metric, P, np.full_like(codes, -1), 0 * W), 0.5)
    for metric in ("log_loss", "jaccard_micro"):
        assert choose_thresholds(metric, P, codes, W) == 0.5
    none = np.zeros_like(codes)
    for metric in ("hamming", "accuracy"):  # giving no label is right
        assert choose_thresholds(metric, P, none, W) >= P.max()
        assert choose_thresholds(metric, P / 4, none, W) == 0.5


def test_every_score_of_decisions_has_its_thresholds():
    scorings = {name for name, scorer in LABEL_SCORINGS.items() if scorer.decides}
    assert set(THRESHOLD_RULES) == {*scorings, "balanced"}


# ------------------------------------------------------- one threshold for each label


def slow_label_threshold(p, y, w):
    """The rule of the module's text, by trying all."""
    known = y >= 0
    p, y, w = p[known], y[known], w[known]
    positives = np.sum(w * y)
    scale = positives / np.sum(w * p) if positives else 1
    in_domain = positives / (positives + PULL)
    q = in_domain * y + (1 - in_domain) * scale * p
    tried = sorted({0.0, *p})[:-1]
    values = [2 * np.sum((w * q)[p > t]) / (np.sum(w[p > t]) + np.sum(w * q)) for t in tried]
    return tried[int(np.argmax(values))]


@given(st.integers(0, 10**6), st.integers(2, 40))
@settings(max_examples=60, deadline=None)
def test_label_thresholds_by_loops(seed, n):
    P, codes, W = drawn(n, 4, seed, unknown=0.2)
    codes[0], W[0] = 1, 1.0
    codes[:, 1] = np.minimum(codes[:, 1], 0)  # a label without positives
    found = choose_thresholds("f1_macro", P, codes, W)
    expected = [slow_label_threshold(*columns) for columns in zip(P.T, codes.T, W.T, strict=True)]
    np.testing.assert_allclose(found, expected)


def test_many_positives_have_their_own_best_threshold():
    P, codes, _ = drawn(4000, 1, 0, rarity=1.0)
    P = P**3  # far from calibrated
    found = choose_thresholds("f1_macro", P, codes, np.ones(P.shape))
    best = max(label_f1(codes, t < P) for t in np.quantile(P, np.linspace(0, 1, 400)))
    assert label_f1(codes, found < P) > best - 0.002


def test_ties_are_decided_together():
    P = np.array([[0.3], [0.3], [0.3], [0.1], [0.1]])
    for y in np.eye(5, dtype=int)[:3]:  # to give the label to the true row alone would be best, and cannot be
        assert choose_thresholds("f1_macro", P, y[:, None], np.full((5, 1), 100.0)) == [0.1]


def test_rare_labels_keep_to_their_probabilities():
    """On new rows the rule does better than each label's own best threshold, and much better than 0.5."""
    gains = []
    for seed in range(8):
        P, codes, _ = drawn(400, 40, seed, rarity=12.0)
        rows, new, W = slice(0, 100), slice(100, 400), np.ones((100, 40))
        own = [
            max(np.unique(p), key=lambda t, p=p, y=y: np.sum(y[p > t]) / (np.sum(p > t) + y.sum() + 1e-9))
            for p, y in zip(P[rows].T, codes[rows].T, strict=True)
        ]
        ours = choose_thresholds("f1_macro", P[rows], codes[rows], W)
        scores = [label_f1(codes[new], P[new] > t, average="macro") for t in (ours, own, 0.5)]
        gains.append([scores[0] - scores[1], scores[0] - scores[2]])
    assert np.min(np.mean(gains, axis=0) - [0.02, 0.1]) > 0


# ------------------------------------------------- one threshold for each label, several metrics


def slow_sum(P, Q, W, cuts):
    """Micro F1, macro F1 and the Hamming loss relative to that of random labels, with soft positives."""
    given = W * (cuts < P)
    hits, total = given * Q, np.sum(W * Q)
    micro = 2 * hits.sum() / (given.sum() + total)
    macro = np.mean(2 * hits.sum(axis=0) / (given.sum(axis=0) + np.sum(W * Q, axis=0)))
    return micro + macro + 1 - (given.sum() + total - 2 * hits.sum()) / (2 * total)


@pytest.mark.parametrize("seed", range(12))
def test_balanced_thresholds_are_the_best_of_all(seed):
    P, codes, W = drawn(14, 3, seed, rarity=1.5)
    P, codes[:3] = P.round(1), np.eye(3, dtype=int)
    Q = thresholds._soft(P.T, (codes == 1).T, W.T).T
    tried = [np.unique([0, 0.99, *column]) for column in P.T]
    best = max(slow_sum(P, Q, W, np.array(cuts)) for cuts in itertools.product(*tried))
    found = slow_sum(P, Q, W, choose_thresholds("balanced", P, codes, W))
    assert found == pytest.approx(best, rel=0.01)


def test_balanced_thresholds_give_rare_labels_to_few_rows():
    """Macro F1 alone gives them to many; 0.5 gives them to none."""
    P, codes, W = drawn(2000, 12, 0, rarity=1.0)
    P[:, 3:] *= 0.1
    codes[:, 3:] = np.random.default_rng(0).random((2000, 9)) < P[:, 3:]
    W = np.ones_like(P)
    decided = {name: choose_thresholds(name, P, codes, W) < P for name in ("balanced", "f1_macro", "f1_micro")}
    micro = {name: label_f1(codes, D) for name, D in decided.items()}
    macro = {name: label_f1(codes, D, average="macro") for name, D in decided.items()}
    loss = {name: hamming(codes, D) for name, D in decided.items()}
    assert micro["balanced"] > 0.97 * micro["f1_micro"] > micro["f1_macro"]
    assert macro["balanced"] > macro["f1_micro"] + 0.05
    assert loss["balanced"] < 0.8 * loss["f1_macro"]
