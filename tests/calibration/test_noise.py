"""Noise is left alone: calibrators are shrunk towards the class shares where held-out scores could be chance."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import PLAIN
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.datasets import load_iris, make_moons

import leastwise.calibration.blend
import leastwise.calibration.label_calibrators
from leastwise import LSPC, LSSVC, MultiLabelLSPC, MultiTaskLSPC, MultiTaskLSSVC
from leastwise.calibration.blend import Sample, credibility
from leastwise.calibration.calibrators import Signed, fit_calibrator, fit_label_calibrator
from leastwise.calibration.label_blend import LabelSample
from leastwise.calibration.label_calibrators import _agreement, _sizes

GAINS = st.floats(-50, 500)
SLOPES = st.floats(1e-3, 1e3)


# ------------------------------------------------------------------ the rule


@given(GAINS, SLOPES)
def test_the_formula(gain, slope):
    assert credibility(gain, slope) == pytest.approx(expit(gain / 2 - 1 - np.log(slope) ** 2), rel=1e-12)


@given(GAINS, SLOPES, st.floats(0, 10))
def test_more_gain_is_believed_more_and_a_slope_of_one_most(gain, slope, more):
    assert credibility(gain + more, slope) >= credibility(gain, slope)
    assert credibility(gain, 1.0) >= credibility(gain, slope)
    assert credibility(gain, slope) == pytest.approx(credibility(gain, 1 / slope), rel=1e-9)


def test_it_vanishes_with_strong_evidence_and_is_whole_without_any():
    assert 1 - credibility(60.0, 2.0) < 1e-12
    assert credibility(0.0, 0.0) == 0


# ------------------------------------------------- calibrators, the long way


def draw(n=60, c=3, strength=0.15, seed=0):
    """Held-out scores with a little signal, weights, and fewer independent observations than rows."""
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(c), rng.integers(c, size=n - c)]
    F = 1 / c + strength * (np.eye(c)[y] - 1 / c) + 0.2 * rng.standard_normal((n, c))
    w = rng.uniform(0.5, 2, size=n)
    return Sample(F, y, w / w.mean(), n - 10)


def believed(s, blend):
    """The credibility, row by row."""
    gain = 0.0
    for f, k, w in zip(s.F, s.y, s.w, strict=True):
        gain += w * np.log(blend.proba(f[None])[0, k] / s.shares[k])
    fisher = np.diag(s.shares) - np.outer(s.shares, s.shares)
    slope = blend.power + blend.sharpness * np.trace(fisher) / (len(s.shares) - 1)
    return expit(s.size * gain / s.w.sum() / 2 - 1 - np.log(slope) ** 2)


@pytest.mark.parametrize("kind", ["blend", "temperature"])
@pytest.mark.parametrize("seed", range(5))
def test_sharpness_and_power_are_those_of_the_best_fit_shrunk(kind, seed):
    s = draw(seed=seed)
    best, found = (fit_calibrator(kind, s, credibility=part) for part in (1.0, None))
    part = believed(s, best)
    assert 0 < part < 1
    np.testing.assert_allclose(
        [found.sharpness, found.power], part * np.array([best.sharpness, best.power]), rtol=1e-9
    )
    assert found.floor == best.floor


def test_scores_of_both_signs_are_shrunk_as_those_from_zero_to_one():
    s = draw()
    plain = fit_calibrator("blend", s)
    signed = fit_calibrator("blend", replace(s, F=2 * s.F - 1), signed=True)
    assert isinstance(signed, Signed)
    np.testing.assert_allclose(signed.proba(2 * s.F - 1), plain.proba(s.F), rtol=1e-8)


def test_step_functions_are_mixed_with_the_class_shares():
    s = draw()
    best, found = (fit_calibrator("isotonic", s, credibility=part) for part in (1.0, None))
    part = believed(s, fit_calibrator("blend", s, credibility=1.0))
    P = part * best.proba(s.F) + (1 - part) * s.shares
    np.testing.assert_allclose(found.proba(s.F), P, rtol=1e-9)


def labels(seed=0, n=80):
    """Three labels of two, three and two classes: two weak signals, noise; some entries are not known."""
    rng = np.random.default_rng(seed)
    widths, strength = (2, 3, 2), (0.1, 0.08, 0.0)
    codes = np.column_stack([rng.integers(c, size=n) for c in widths])
    F = np.hstack(
        [
            1 / c + b * (np.eye(c)[codes[:, t]] - 1 / c) + 0.2 * rng.standard_normal((n, c))
            for t, (c, b) in enumerate(zip(widths, strength, strict=True))
        ]
    )
    W = rng.uniform(0.5, 2, size=(n, 3)) * (rng.random((n, 3)) < 0.9)
    codes[W == 0] = -1
    return LabelSample(F, codes, W, np.array([0, 2, 5, 7]), n)


@pytest.mark.parametrize("kind", ["blend", "temperature", "isotonic"])
@pytest.mark.parametrize("pooled", [True, False])
def test_labels_are_shrunk_by_their_common_gain(kind, pooled):
    s = labels()
    blend = fit_label_calibrator(kind if kind != "isotonic" else "blend", s, pooled=True, shrink=False)
    P, size = blend.proba(s.F), _sizes(s)
    gain, slope, gains = 0.0, 0.0, np.zeros(s.W.shape)
    for t in range(3):
        a, b = s.starts[t : t + 2]
        for i in np.flatnonzero(s.W[:, t] > 0):
            gains[i, t] = np.log(P[i, a + s.codes[i, t]] / blend.shares[a + s.codes[i, t]])
            gain += size[t] * s.W[i, t] / s.W[:, t].sum() * gains[i, t]
        intercept_ratio = np.sum(blend.shares[a:b] * (1 - blend.shares[a:b])) / (b - a - 1)
        slope += size[t] / size.sum() * (blend.power[t] + blend.sharpness[t] * intercept_ratio)
    part = credibility(gain / _agreement(gains, s.W), slope)
    assert 0.01 < part < 0.99
    best, found = (fit_label_calibrator(kind, s, pooled=pooled, shrink=b) for b in (False, True))
    if kind == "isotonic":
        shares = np.broadcast_to(best.shares, s.F.shape)
        np.testing.assert_allclose(found.proba(s.F), part * best.proba(s.F) + (1 - part) * shares, rtol=1e-8)
    else:
        np.testing.assert_allclose(found.sharpness, part * best.sharpness, rtol=1e-8)
        np.testing.assert_allclose(found.power, part * best.power, rtol=1e-8)


def test_labels_that_say_the_same_count_as_one():
    rng = np.random.default_rng(0)
    gain, W = rng.standard_normal((4000, 5)), np.ones((4000, 5))
    assert _agreement(gain, W) == pytest.approx(1, abs=0.1)
    assert _agreement(np.repeat(gain[:, :1], 5, axis=1), W) == pytest.approx(5)
    pairs = np.repeat(gain[:, :2], 2, axis=1)
    assert _agreement(pairs, W[:, :4]) == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("pooled", [True, False])
def test_copies_of_a_label_add_no_evidence(pooled):
    s = labels(n=60)
    one = LabelSample(s.F[:, 2:5], s.codes[:, 1:2], s.W[:, 1:2], np.array([0, 3]), 60)
    four = LabelSample(
        np.tile(one.F, 4), np.repeat(one.codes, 4, 1), np.repeat(one.W, 4, 1), np.arange(5) * 3, one.size
    )
    a, b = (fit_label_calibrator("blend", x, pooled=pooled) for x in (one, four))
    np.testing.assert_allclose(b.sharpness, a.sharpness[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(b.power, a.power[0], rtol=1e-4, atol=1e-6)


def test_repeated_rows_are_weights_for_the_agreement():
    rng = np.random.default_rng(0)
    gain, count = rng.standard_normal((50, 1)) + rng.standard_normal((50, 3)), rng.integers(1, 4, size=50)
    weighted = _agreement(gain, np.repeat(count[:, None], 3, axis=1).astype(float))
    assert _agreement(np.repeat(gain, count, axis=0), np.ones((count.sum(), 3))) == pytest.approx(weighted)


# ------------------------------------------------------------------- fits


def excess(make, n, d, counts, seed, **inputs):
    """By how much the expected log-loss exceeds that of the class shares, on labels that are noise."""
    rng = np.random.default_rng([seed, n, d])
    share = np.array(counts) / np.sum(counts)
    X, X_test = rng.standard_normal((n, d)), rng.standard_normal((200, d))
    y = rng.permutation(np.repeat(np.arange(len(counts)), np.round(share * n).astype(int)))
    n = len(y)
    task, kept = rng.integers(3, size=n), np.bincount(y) / n
    if make in (MultiTaskLSPC, MultiTaskLSSVC):
        model = make(**inputs).fit(X[:n], y, tasks=task)
        P = model.predict_proba(X_test, tasks=rng.integers(3, size=200))
    elif make is MultiLabelLSPC:
        model = make(**inputs).fit(X[:n], np.column_stack([y, rng.permutation(y)]))
        P = np.asarray(model.predict_proba(X_test))[:, :1]
        P = np.hstack([1 - P, P])
    else:
        model = make(**inputs).fit(X[:n], y)
        P = model.predict_proba(X_test)
    return float(np.mean(np.log(kept / P) @ kept))


SETTINGS = [(60, 30, (4, 1)), (100, 1, (2, 1, 1)), (100, 30, (1, 1))]


@pytest.fixture
def unshrunk(monkeypatch):
    """Calibrators as they were fitted."""

    def whole(gain, slope):
        return 1.0

    def turn_off():
        monkeypatch.setattr(leastwise.calibration.blend, "credibility", whole)
        monkeypatch.setattr(leastwise.calibration.label_calibrators, "credibility", whole)

    return turn_off


#: The more there is to choose, the more noise looks like a signal.
INPUTS = [(PLAIN, 10, 0.004), ({}, 4, 0.012)]


@pytest.mark.parametrize(("make", "before"), [(LSPC, 0.015), (LSSVC, 0.005)])
@pytest.mark.parametrize(("inputs", "seeds", "bound"), INPUTS, ids=["plain", "chosen"])
def test_noise_is_answered_by_the_class_shares(make, before, inputs, seeds, bound, unshrunk):
    """Over three draws for each seed; the same fits without shrinking show that the bound means something."""

    def mean():
        draws = [(setting, seed) for seed in range(seeds) for setting in SETTINGS]
        return np.mean([excess(make, *setting, seed, **inputs) for setting, seed in draws])

    assert mean() < bound
    unshrunk()
    assert mean() > before


@pytest.mark.parametrize("make", [MultiTaskLSPC, MultiTaskLSSVC, MultiLabelLSPC])
def test_noise_in_tasks_and_labels(make, unshrunk):
    def mean():
        return np.mean([excess(make, 60, 5, (1, 1), seed, **PLAIN) for seed in range(8)])

    shrunk = mean()
    unshrunk()
    assert shrunk < 0.016
    assert shrunk < 0.6 * mean()


def test_noise_for_tasks_that_are_not_known(unshrunk):
    """Their own calibrator has tasks for witnesses; whether there is a signal at all is what the rows say."""

    def mean():
        losses = []
        for seed in range(6):
            rng = np.random.default_rng(seed)
            X, y, task = rng.standard_normal((60, 5)), rng.permutation(np.repeat([0, 1], 30)), np.repeat(range(6), 10)
            model = MultiTaskLSPC(**PLAIN).fit(X, y, tasks=task)
            assert model.unseen_task_calibrator_ is not None
            P = model.predict_proba(rng.standard_normal((200, 5)), tasks=np.full(200, 99))
            losses.append(-np.mean(np.log(2 * P)))
        return np.mean(losses)

    shrunk = mean()
    unshrunk()
    assert 0 <= shrunk < 0.006
    assert shrunk < mean()


def test_held_out_probabilities_of_noise_claim_less(unshrunk):
    """What abstention and prediction sets are based on: the gain over the class shares in nats, over 10 draws."""

    def median():
        gains = []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            X, y = rng.standard_normal((60, 10)), np.repeat([0, 1], 30)
            P = LSPC(**PLAIN).fit(X, y).heldout_proba_
            gains.append(np.sum(np.log(2 * P[np.arange(60), y])))
        return np.median(gains)

    assert median() < 0.5
    unshrunk()
    assert median() > 0.5


@pytest.mark.parametrize("make", [LSPC, LSSVC])
@pytest.mark.parametrize("data", ["iris", "moons"])
def test_a_clear_signal_is_left_alone(make, data, unshrunk):
    X, y = load_iris(return_X_y=True) if data == "iris" else make_moons(100, noise=0.2, random_state=0)
    rng = np.random.default_rng(0)
    X, y = X[order := rng.permutation(len(X))], y[order]
    shrunk = make().fit(X[:80], y[:80])
    P = shrunk.predict_proba(X[80:])
    unshrunk()
    plain = make().fit(X[:80], y[:80])
    assert (shrunk.sigma_, shrunk.alpha_) == (plain.sigma_, plain.alpha_)
    np.testing.assert_allclose(P, plain.predict_proba(X[80:]), atol=1e-5)


def test_labels_with_a_signal_are_left_alone(unshrunk):
    X, y = make_moons(200, noise=0.2, random_state=0)
    Y = np.column_stack([y, X[:, 0] > 0.5, X[:, 1] > 0.2])
    P = MultiLabelLSPC(**PLAIN).fit(X[:150], Y[:150]).predict_proba(X[150:])
    unshrunk()
    np.testing.assert_allclose(P, MultiLabelLSPC(**PLAIN).fit(X[:150], Y[:150]).predict_proba(X[150:]), atol=1e-5)
