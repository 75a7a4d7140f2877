"""Scores of many labels to probabilities."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import softmax

from leastwise.calibration import label_blend as blending
from leastwise.calibration.blend import Blend, Sample
from leastwise.calibration.calibrators import ClipNormalise, fit_calibrator, fit_label_calibrator
from leastwise.calibration.label_blend import BlendFit, LabelSample
from leastwise.calibration.label_calibrators import LabelBlend, LabelClip, _shares, _sizes

KINDS = ("blend", "temperature", "isotonic", None)
BLENDS = ("blend", "temperature")


def draw(n=200, widths=(2, 2, 2, 2), seed=0, known=1.0, weights=False, rate=None, noise=0.3):
    """Scores that point to the classes, each label in its own way."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(widths)])
    signal = rng.uniform(0.1, 0.6, len(widths))
    codes, F = np.empty((n, len(widths)), int), np.empty((n, starts[-1]))
    for t, c in enumerate(widths):
        p = np.full(c, 1 / c) if rate is None or c != 2 else [1 - rate, rate]
        codes[:, t] = rng.choice(c, n, p=p)
        clear = signal[t] * np.eye(c)[codes[:, t]] + noise * rng.normal(size=(n, c))
        # Sharpness is of use in the first part, power in the second.
        F[:, starts[t] : starts[t + 1]] = 0.2 * clear + 0.8 * softmax(8 * clear, axis=1) - 0.02
    W = rng.uniform(0.2, 2, codes.shape) if weights else np.ones(codes.shape)
    hidden = rng.random(codes.shape) >= known
    return LabelSample(F, np.where(hidden, -1, codes), np.where(hidden, 0.0, W), starts, n)


def zeros(s):
    return np.zeros(s.starts[-1])


def alone(s, t, rows=slice(None)):
    """One label as a sample of its own, of its known rows only."""
    known = np.flatnonzero(s.W[:, t] > 0)[rows]
    cut = slice(s.starts[t], s.starts[t + 1])
    size = _sizes(s)[t]
    starts = np.array([0, s.starts[t + 1] - s.starts[t]])
    return LabelSample(s.F[known, cut], s.codes[known][:, [t]], s.W[known][:, [t]], starts, size)


def parameters(c):
    return np.column_stack([c.sharpness, c.power])


def best_fit(*args, **kwargs):
    """Maximum likelihood, before anything is shrunk."""
    return fit_label_calibrator(*args, **kwargs, shrink=False)


def label_sums(P, starts):
    return np.column_stack([P[:, a:b].sum(axis=1) for a, b in pairwise(starts)])


def nll(P, s):
    i, t = np.nonzero(s.W > 0)
    return -np.average(np.log(P[i, s.starts[t] + s.codes[i, t]]), weights=s.W[i, t])


def own_loss(s, c, t, theta):
    """The smoothed negative log-likelihood of one label, in rows, the long way."""
    one = alone(s, t)
    cut = slice(s.starts[t], s.starts[t + 1])
    L = Blend(c.shares[cut], c.delta[t], 0.0, *theta).decision(one.F)
    log_p = L - np.logaddexp.reduce(L, axis=1, keepdims=True)
    T = c.floor[t] * c.shares[cut] + (1 - c.floor[t]) * np.eye(L.shape[1])[one.codes[:, 0]]
    w = one.W[:, 0] / one.W.sum() * _sizes(s)[t]
    return -np.sum(w * (T * log_p).sum(axis=1))


def hessian(f, x, h=1e-3):
    e = h * np.eye(len(x))
    mixed = [[f(x + a + b) - f(x + a - b) - f(x - a + b) + f(x - a - b) for a in e] for b in e]
    return np.array(mixed) / (4 * h * h)


@pytest.mark.parametrize("kind", BLENDS)
@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("pooled", [True, False])
def test_one_label_is_one_blend(kind, width, pooled):
    s = draw(widths=(width,), weights=True, seed=1, noise=0.2)
    found = fit_label_calibrator(kind, s, pooled=pooled)
    w = s.W[:, 0] / s.W.mean()
    one = fit_calibrator(kind, Sample(s.F, s.codes[:, 0], w, s.size, prior=found.shares))
    assert max(one.sharpness, one.power) > 0.1
    np.testing.assert_allclose(parameters(found), [[one.sharpness, one.power]], atol=1e-6)
    np.testing.assert_allclose(found.proba(s.F), one.proba(s.F), atol=1e-7)
    in_domain = np.linspace(0, 1, len(s.F))
    np.testing.assert_allclose(found.decision(s.F, in_domain), one.decision(s.F, in_domain), atol=1e-5)


def test_clip_and_normalise_is_eq_3_for_each_label():
    s = draw(widths=(2, 3, 1, 2), known=0.7)
    found = fit_label_calibrator(None, s)
    F = np.random.default_rng(0).normal(size=(50, 8))
    cuts = [slice(a, b) for a, b in pairwise(s.starts)]
    expected = [ClipNormalise(found.shares[cut]).proba(F[:, cut]) for cut in cuts]
    np.testing.assert_allclose(found.proba(F), np.hstack(expected))
    assert isinstance(found, LabelClip)


def test_class_shares_have_half_a_row_more_per_class():
    codes = np.array([[0, 1, -1], [0, 1, -1], [0, 0, -1], [0, -1, 2]])
    s = LabelSample(np.zeros((4, 7)), codes, (codes >= 0) * 1.0, np.array([0, 2, 4, 7]), 4)
    np.testing.assert_allclose(_sizes(s), [4, 3, 1])
    expected = [4.5 / 5, 0.5 / 5, 1.5 / 4, 2.5 / 4, 0.5 / 2.5, 0.5 / 2.5, 1.5 / 2.5]
    np.testing.assert_allclose(_shares(s, _sizes(s)), expected)


@pytest.mark.parametrize("kind", BLENDS)
def test_pooled_parameters_are_the_best_for_all_labels_together(kind):
    s = draw(widths=(2, 3, 2, 4), known=0.8)
    found = best_fit(kind, s, pooled=True)
    known = (s.W > 0).sum(axis=0) / _sizes(s)

    def loss(theta):
        pair = np.maximum([theta[0], theta[1] if kind == "blend" else 0.0], 0)
        return sum(known[t] * own_loss(s, found, t, pair) for t in range(4))

    best = minimize(loss, [1.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10})
    assert np.ptp(parameters(found), axis=0).max() == 0
    assert loss(parameters(found)[0]) <= best.fun + 1e-7


@pytest.mark.parametrize("kind", BLENDS)
def test_each_label_minimises_its_loss_with_the_pull(kind):
    """Against Nelder-Mead label by label, with the Hessian by differences."""
    s, pull, use = draw(widths=(2, 3, 2), known=0.8, noise=0.2), 50.0, 2 if kind == "blend" else 1
    pool = parameters(best_fit(kind, s, pooled=True))[0]
    found = best_fit(kind, s, pull=pull)
    scale = (s.W > 0).sum(axis=0) / _sizes(s)

    def full(theta):
        return np.array([theta[0], theta[1] if use == 2 else 0.0])

    total = hessian(lambda th: sum(scale[t] * own_loss(s, found, t, full(th)) for t in range(3)), pool)
    H = total[:use, :use] / np.sum(s.W > 0)
    for t in range(3):

        def loss(theta, t=t):
            gap = (full(theta) - pool)[:use]
            return own_loss(s, found, t, full(theta)) + pull / 2 * gap @ H @ gap

        best = minimize(
            loss,
            np.maximum(pool, 0.1),
            method="Nelder-Mead",
            bounds=[(0, None)] * 2,
            options={"xatol": 1e-8, "fatol": 1e-11},
        )
        assert np.ptp(parameters(found), axis=0).max() > 0.01
        assert loss(parameters(found)[t]) <= best.fun + 1e-5
        np.testing.assert_allclose(parameters(found)[t, :use], full(best.x)[:use], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", BLENDS)
def test_the_pull_leads_from_each_alone_to_all_together(kind):
    s = draw(widths=(2, 2, 3, 2), known=0.7, weights=True)
    pool = parameters(best_fit(kind, s, pooled=True))
    np.testing.assert_allclose(parameters(best_fit(kind, s, pull=1e12)), pool, atol=1e-6)
    free = best_fit(kind, s, pull=0.0)
    for t in range(4):
        one = alone(s, t)
        single = best_fit(kind, one, zeros(one), pooled=True)
        np.testing.assert_allclose(parameters(free)[t], parameters(single)[0], rtol=1e-5, atol=1e-5)


def loss_on_new_rows(kind, pull, **how):
    """Of labels whose scores are as good as those of the fit: that depends on the seed alone."""
    s, new = draw(seed=1, **how), draw(seed=1, **{**how, "n": 4000})
    return nll(fit_label_calibrator(kind, s, pull=pull).proba(new.F), new)


def test_rare_labels_are_not_overfitted():
    how = {"n": 60, "widths": (2,) * 30, "rate": 0.05}
    chosen, free = loss_on_new_rows("blend", None, **how), loss_on_new_rows("blend", 0.0, **how)
    assert chosen < free - 0.002


def test_the_chosen_pull_depends_on_how_different_labels_are():
    rng = np.random.default_rng(0)
    n, T = 500, 12
    p = rng.beta(0.8, 0.8, (n, T))
    codes = (rng.random((n, T)) < p).astype(int)
    pulls = []
    for intercept_ratio in (np.zeros(T), np.linspace(-0.45, 1, T)):
        q = 0.5 + (p - 0.5) * np.exp(-2 * intercept_ratio)  # scores that say the same, more or less loudly
        F = np.stack([1 - q, q], axis=2).reshape(n, -1)
        s = LabelSample(F, codes, np.ones((n, T)), np.arange(0, 2 * T + 1, 2), n)
        fit = blend_fit(s)
        pulls.append(fit._best_pull(*fit.pooled(np.array([[0.0, 1.0]]))))
    assert pulls == [max(blending.PULLS), min(blending.PULLS)]


def blend_fit(s):
    size = _sizes(s)
    return blending.BlendFit(s, _shares(s, size), size ** (-1 / 3), 1 / (size + 2), size, True)


@pytest.mark.parametrize(("seed", "n_free"), [(2, 1), (4, 2)])
def test_the_expected_loss_is_that_of_rows_left_out(seed, n_free):
    """The criterion against refits, each without one row."""
    s = draw(n=120, widths=(2,), seed=seed)
    fit = blend_fit(s)
    pool, H = fit.pooled(np.array([[0.0, 1.0]]))
    pool, pull = pool * 0.7, 20.0 * H
    full = fit._own(np.array([0]), np.array([[0, 1]]))
    theta, P = fit._minimise([full], pool, pool, pull)
    assert np.sum(theta > 0) == n_free
    left_out = 0.0
    for i in range(120):
        without, only = full.w.copy(), np.zeros(120)
        without[i], only[i] = 0.0, full.w[i]
        refit = fit._minimise([replace(full, w=without)], theta, pool, pull)[0]
        left_out += replace(full, w=only).at(refit)[0][0]
    inside = full.at(theta)[0][0]
    assert left_out > inside
    expected = blending._expected_loss([full], theta, P, pull)
    assert expected - inside == pytest.approx(left_out - inside, rel=0.1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize("filler", [np.nan, 1e9, -3.0])
def test_scores_of_unknown_entries_do_not_matter(kind, pooled, filler):
    s = draw(widths=(2, 3, 2), known=0.6, weights=True)
    F = s.F.copy()
    F[np.repeat(s.W == 0, np.diff(s.starts), axis=1)] = filler
    one, other = (fit_label_calibrator(kind, x, pooled=pooled) for x in (s, replace(s, F=F)))
    np.testing.assert_array_equal(one.proba(s.F), other.proba(s.F))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooled", [True, False])
def test_repeated_rows_are_weights(kind, pooled):
    s = draw(n=80, widths=(2, 3, 2), known=0.7)
    times = np.random.default_rng(1).integers(0, 4, 80)
    index = np.repeat(np.arange(80), times)
    repeated = replace(s, F=s.F[index], codes=s.codes[index], W=s.W[index], size=80)
    weighted = replace(s, W=s.W * times[:, None], size=80)
    one, other = (fit_label_calibrator(kind, x, pooled=pooled) for x in (repeated, weighted))
    np.testing.assert_allclose(one.proba(s.F), other.proba(s.F), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooled", [True, False])
def test_only_proportions_of_weights_matter(kind, pooled):
    s = draw(n=80, widths=(2, 3, 2), known=0.7, weights=True)
    one, other = (fit_label_calibrator(kind, replace(s, W=u * s.W), pooled=pooled) for u in (1, 100))
    np.testing.assert_allclose(one.proba(s.F), other.proba(s.F), rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooled", [True, False])
def test_permuted_labels_have_permuted_parameters(kind, pooled):
    s, order = draw(widths=(2, 3, 1, 2, 4), known=0.8), np.array([3, 0, 4, 2, 1])
    columns = np.concatenate([np.arange(s.starts[t], s.starts[t + 1]) for t in order])
    starts = np.concatenate([[0], np.cumsum(np.diff(s.starts)[order])])
    moved = replace(s, F=s.F[:, columns], codes=s.codes[:, order], W=s.W[:, order], starts=starts)
    one, other = (fit_label_calibrator(kind, x, pooled=pooled) for x in (s, moved))
    np.testing.assert_allclose(one.proba(s.F)[:, columns], other.proba(moved.F), rtol=1e-6)
    if isinstance(one, LabelBlend):
        np.testing.assert_allclose(parameters(one)[order], parameters(other), rtol=1e-5, atol=1e-8)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    pooled=st.booleans(),
    widths=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    n=st.integers(1, 30),
    known=st.sampled_from([0.1, 0.5, 1.0]),
    scale=st.sampled_from([0.0, 1e-8, 1.0, 1e8]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 1000),
)
def test_probabilities_sum_to_one_and_are_finite(kind, pooled, widths, n, known, scale, dtype, seed):
    s = draw(n, widths, seed, known)
    s = replace(s, F=(scale * s.F).astype(dtype), W=s.W.astype(dtype))
    found = fit_label_calibrator(kind, s, pooled=pooled)
    extreme = np.concatenate([s.F, np.outer([-1e6, 0, 1e6], np.arange(s.starts[-1]))]).astype(dtype)
    for in_domain in (None, np.linspace(0, 1, len(extreme)).astype(dtype)):
        P = found.proba(extreme, in_domain)
        assert P.dtype == dtype
        assert P.shape == extreme.shape
        np.testing.assert_allclose(label_sums(P, s.starts), 1, rtol=1e-5)
        assert (P >= 0).all()
        assert found.decision(extreme, in_domain).dtype == dtype
        assert np.isfinite(found.decision(extreme, in_domain)).all()
        if kind is not None:
            assert (P > 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pooled", [True, False])
def test_labels_that_say_nothing(kind, pooled):
    """Never there, always there, known once, not known at all, one class only."""
    s = draw(n=100, widths=(2, 2, 2, 2, 2, 1))
    codes, W = s.codes.copy(), s.W.copy()
    codes[:, 1], codes[:, 2] = 0, 1
    W[1:, 3], W[:, 4] = 0, 0
    codes[W == 0] = -1
    s = replace(s, codes=codes, W=W)
    found = fit_label_calibrator(kind, s, pooled=pooled)
    P = found.proba(s.F)
    np.testing.assert_array_equal(P[:, 10], 1)
    np.testing.assert_allclose(found.proba(np.zeros((1, 11)))[0, 8:10], 0.5)
    if kind is not None:
        assert 0 < P[:, 3].min() <= P[:, 3].mean() + 1e-12 < 0.05
        assert 0.95 < P[:, 5].mean() <= P[:, 5].max() + 1e-12 < 1
        assert (P[:, :10] > 1e-6).all()


@pytest.mark.parametrize("kind", BLENDS)
def test_wrong_scores_and_perfect_scores(kind):
    codes = np.arange(200)[:, None] // [1, 2, 3] % 2
    right = np.eye(2)[codes].reshape(200, -1)
    for sign in (1, -1):
        s = LabelSample(0.5 + sign * (right - 0.5), codes, np.ones((200, 3)), np.array([0, 2, 4, 6]), 200)
        found = fit_label_calibrator(kind, s)
        assert np.isfinite(parameters(found)).all()
        assert (parameters(found) >= 0).all()
        assert nll(found.proba(s.F), s) < (0.03 if sign == 1 else 0.7)


@pytest.mark.parametrize("kind", ["blend", "temperature", "isotonic"])
def test_without_trust_the_answer_is_the_class_shares(kind):
    s = draw(widths=(2, 3, 2))
    found = fit_label_calibrator(kind, s)
    expected = np.repeat(found.shares[None], len(s.F), axis=0)
    np.testing.assert_allclose(found.proba(s.F, np.zeros(len(s.F))), expected)
    np.testing.assert_allclose(found.proba(s.F, np.ones(len(s.F))), found.proba(s.F))


@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize("kind", BLENDS)
def test_warm_start_leads_to_the_same_point(kind, pooled):
    s = draw(widths=(2, 3, 2))
    cold = fit_label_calibrator(kind, s, pooled=pooled)
    for start in (
        replace(cold, sharpness=cold.sharpness + 30, power=cold.power + 5),
        LabelClip(s.starts, cold.shares),
    ):
        warm = fit_label_calibrator(kind, s, start=start, pooled=pooled)
        np.testing.assert_allclose(parameters(warm), parameters(cold), rtol=1e-5, atol=1e-6)


def test_blocks_of_labels_do_not_matter(monkeypatch):
    s = draw(widths=(2, 3) * 6)
    whole = fit_label_calibrator("blend", s, pull=30.0)
    monkeypatch.setattr(blending, "BLOCK", 450)
    np.testing.assert_allclose(
        parameters(fit_label_calibrator("blend", s, pull=30.0)), parameters(whole), rtol=1e-5, atol=1e-8
    )


def test_pooled_parameters_from_some_of_the_entries(monkeypatch):
    """Evenly over rows and labels, whatever the number of either."""
    s = draw(n=2000, widths=(2,) * 20)
    s = replace(s, W=s.W + np.arange(2000)[:, None])
    whole = fit_label_calibrator("blend", s, pooled=True)
    monkeypatch.setattr(blending, "ENTRIES", 4000)
    used = []
    monkeypatch.setattr(blending.Entries, "minimise", spying(blending.Entries.minimise, used))
    some = fit_label_calibrator("blend", s, pooled=True)
    assert {len(part.w) for part in used} == {4000}
    np.testing.assert_array_equal(np.bincount(used[0].group), 200)
    np.testing.assert_array_equal(np.bincount(used[0].w.astype(int) - 1), 2)
    np.testing.assert_allclose(some.proba(s.F), whole.proba(s.F), atol=0.05)
    np.testing.assert_array_equal(some.shares, whole.shares)


def spying(at, used):
    def spy(self, theta):
        used.append(self)
        return at(self, theta)

    return spy


def test_isotonic_is_monotone_and_near_that_of_one_label():
    s = draw(n=3000, widths=(2, 3), known=0.9)
    found = fit_label_calibrator("isotonic", s)
    for k in range(5):
        assert (np.diff(found.steps[found.corners[k] : found.corners[k + 1]]) >= 0).all()
    one = alone(s, 1)
    single = fit_calibrator("isotonic", Sample(one.F, one.codes[:, 0], one.W[:, 0], len(one.F)))
    assert np.abs(found.proba(s.F)[:, 2:] - single.proba(s.F[:, 2:])).mean() < 0.01


def test_isotonic_does_not_trust_a_single_row():
    """One row with the label, and it has the highest score."""
    codes = np.zeros((50, 1), int)
    codes[-1] = 1
    f = np.linspace(0, 1, 50)
    s = LabelSample(np.column_stack([1 - f, f]), codes, np.ones((50, 1)), np.array([0, 2]), 50)
    P = best_fit("isotonic", s).proba(s.F)[:, 1]
    assert P[-1] == pytest.approx(0.5, abs=0.03)
    shrunk = fit_label_calibrator("isotonic", s).proba(s.F)[:, 1]
    assert 0.02 < shrunk[-1] < 0.3
    assert 0 < P[0] < 0.002


@pytest.mark.parametrize("known", [1.0, 0.7])
@pytest.mark.parametrize("noise", [0.05, 0.3, 3.0])
def test_labels_of_two_classes_are_pooled_by_their_margins(known, noise):
    """Parameters and probabilities are those of the fit for any number of classes and groups."""
    s = draw(known=known, weights=True, noise=noise)
    size = _sizes(s)
    fit = BlendFit(s, _shares(s, size), size ** (-1 / 3), 1 / (size + 2), size, True)
    ((labels, columns),) = fit._widths()
    entries, first = fit._entries(labels, columns), np.array([[0.0, 1.0]])
    theta, (P,) = entries.minimise(first)
    expected, (other,) = fit._minimise([entries], first, first, np.zeros((2, 2)))
    np.testing.assert_allclose(theta, expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(P, other, atol=1e-9)
