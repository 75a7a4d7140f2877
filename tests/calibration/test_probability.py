"""Scores to probabilities."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from conftest import blobs
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression

from leastwise import LSPC, LSSVC, MultiLabelLSPC, MultiTaskLSPC, MultiTaskLSSVC
from leastwise.calibration.blend import BinaryLikelihood, Blend, Sample, _Likelihood
from leastwise.calibration.calibrators import (
    CALIBRATIONS,
    CalibratedScores,
    Calibration,
    ClipNormalise,
    Signed,
    fit_calibrator,
    fit_label_calibrator,
    sample_credibility,
)
from leastwise.calibration.maps import FAMILIES

KINDS = ("blend", "temperature", "isotonic", None)


def sample(n=200, c=3, seed=0, sharp=0.4, weights=False):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, c, n)
    F = sharp * np.eye(c)[y] + 0.2 * rng.normal(size=(n, c)) + 0.1
    w = rng.uniform(0.2, 2, n) if weights else np.ones(n)
    return Sample(F, y, w / w.mean(), n)


def nll(P, s):
    return -np.average(np.log(P[np.arange(len(s.y)), s.y]), weights=s.w)


def test_clip_and_normalise():
    shares = np.array([0.5, 0.3, 0.2])
    F = np.array([[0.2, -0.1, 0.6], [-1.0, -2.0, -0.5], [0.0, 0.0, 0.0], [0.3, 0.3, 0.3]])
    P = ClipNormalise(shares).proba(F)
    np.testing.assert_allclose(P, [[0.25, 0, 0.75], shares, shares, [1 / 3] * 3])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", [False, True])
def test_rows_are_probabilities(kind, weights):
    s = sample(weights=weights)
    P = fit_calibrator(kind, s).proba(s.F)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert (P >= 0).all()
    if kind is not None:
        assert P.min() >= s.shares.min() / (s.size + 2) * 0.999


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("use_power", [False, True])
def test_blend_is_the_maximum_of_the_smoothed_likelihood(use_power, c):
    s = sample(c=c, weights=True)
    found = fit_calibrator("blend" if use_power else "temperature", s)
    e = 1 / (s.size + 2)
    T = e * s.shares + (1 - e) * np.eye(c)[s.y]

    def loss(theta):
        power = theta[1] if use_power else 0.0
        logit = Blend(s.shares, found.delta, 0.0, theta[0], power).decision(s.F)
        logp = logit - np.logaddexp.reduce(logit, axis=1, keepdims=True)
        return -np.average((T * logp).sum(axis=1), weights=s.w)

    best = minimize(
        loss, [1.0, 1.0], method="Nelder-Mead", bounds=[(0, None)] * 2, options={"xatol": 1e-7, "fatol": 1e-12}
    )
    assert loss([found.sharpness, found.power]) <= best.fun + 1e-9


@pytest.mark.parametrize("use_power", [False, True])
@pytest.mark.parametrize("sharp", [-0.2, 0.05, 0.4, 30.0])
def test_two_classes_are_fitted_like_many(use_power, sharp):
    """Value, Newton step and probabilities from the margins of the true classes, against those of all classes."""
    s = sample(c=2, sharp=sharp, weights=True)
    A = np.stack([s.F.T, np.log(np.maximum(s.F, 0).T / s.shares[:, None] + 0.2)])[: 1 + use_power]
    many, two = (kind.of(A, s.shares, 0.01, s.y, s.w) for kind in (_Likelihood, BinaryLikelihood))
    for theta in ((0.0, 0.0), (1.0, 0.5 * use_power), (20.0, 3.0 * use_power)):
        (value, P), (other, q) = many.value_at(*theta), two.value_at(*theta)
        np.testing.assert_allclose(other, value, rtol=1e-10)
        np.testing.assert_allclose(q, P[1 - s.y, np.arange(len(s.y))], rtol=1e-9, atol=1e-300)
        np.testing.assert_allclose(two._step(*theta, q), many._step(*theta, P), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(two.minimise((1.0, 0.0), 1e-13)[1], many.minimise((1.0, 0.0), 1e-13)[1], atol=1e-6)


def test_parameters_stay_at_zero_or_above():
    s = sample(sharp=-0.5)  # scores that point the wrong way
    found = fit_calibrator("blend", s)
    assert found.sharpness == 0
    assert found.power == 0
    np.testing.assert_allclose(found.proba(s.F), np.repeat(s.shares[None], 200, axis=0))


def test_perfect_scores_do_not_explode():
    """Held-out scores that separate perfectly: the sharpness is finite, and no probability is zero."""
    y = np.arange(300) % 3
    F = np.eye(3)[y]
    for kind in ("blend", "temperature", "isotonic"):
        found = fit_calibrator(kind, Sample(F, y, np.ones(300), 300))
        P = found.proba(F)
        assert P.min() > 1e-4
        assert nll(P, Sample(F, y, np.ones(300), 300)) < 0.02
        wrong = found.proba(F[:, [1, 2, 0]])  # and when they turn out all wrong
        assert nll(wrong, Sample(F, y, np.ones(300), 300)) < 8


@pytest.mark.parametrize("kind", ["blend", "temperature"])
def test_where_scores_are_zero_or_not_trusted_the_answer_is_the_class_shares(kind):
    s = sample()
    found = fit_calibrator(kind, s)
    np.testing.assert_allclose(found.proba(np.zeros((1, 3)))[0], s.shares, atol=1e-12)
    np.testing.assert_allclose(found.proba(s.F[:1], np.zeros(1))[0], s.shares, atol=1e-12)


@pytest.mark.parametrize("shift", [0.0, 0.4])
def test_the_level_of_scores_makes_no_difference_to_a_temperature(shift):
    """An intercept that all classes share cancels: what counts are differences between classes."""
    s = sample()
    moved = Sample(s.F + shift, s.y, s.w, s.size)
    one, other = fit_calibrator("temperature", s), fit_calibrator("temperature", moved)
    np.testing.assert_allclose(one.proba(s.F), other.proba(moved.F), atol=1e-8)


def test_calibration_improves_an_underconfident_score():
    s = sample(n=2000, c=10, sharp=0.5)
    raw = nll(np.maximum(fit_calibrator(None, s).proba(s.F), 1e-12), s)
    for kind in ("blend", "temperature", "isotonic"):
        assert nll(fit_calibrator(kind, s).proba(s.F), s) < raw


def test_true_posteriors_pass_almost_unchanged():
    """The blend contains the identity up to the delta, which goes to zero: consistency is kept."""
    rng = np.random.default_rng(0)
    gaps = []
    for n in (1000, 100_000):
        p = rng.beta(0.7, 0.7, n)
        y = (rng.uniform(size=n) < p).astype(int)
        s = Sample(np.column_stack([1 - p, p]), y, np.ones(n), n)
        found = fit_calibrator("blend", s)
        gaps.append(np.abs(found.proba(s.F)[:, 1] - p).mean())
    assert gaps[1] < gaps[0]
    assert gaps[1] < 0.01


def test_warm_start_leads_to_the_same_point():
    s = sample()
    cold = fit_calibrator("blend", s)
    warm = fit_calibrator("blend", s, start=Blend(s.shares, 0.1, 0.1, 20.0, 5.0))
    assert warm.sharpness == pytest.approx(cold.sharpness, abs=1e-5)
    assert warm.power == pytest.approx(cold.power, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_targets_minus_one_and_one_are_moved_to_those_of_zero_and_one(kind):
    s = sample(seed=3)
    signed = replace(s, F=2 * s.F - 1)
    inner = fit_calibrator(kind, s)
    np.testing.assert_allclose(Signed(inner).proba(signed.F), inner.proba(s.F), atol=1e-12)
    np.testing.assert_allclose(Signed(inner).decision(signed.F), inner.decision(s.F), atol=1e-12)


@pytest.mark.parametrize("kind", ["blend", "temperature"])
def test_the_credibility_of_signed_scores_is_that_of_the_scores(kind):
    s = sample(n=12, seed=3, sharp=0.1)  # few rows and a weak signal
    expected = sample_credibility(kind, s)
    assert 0.01 < expected < 0.99
    assert sample_credibility(kind, replace(s, F=2 * s.F - 1), signed=True) == pytest.approx(expected)


@pytest.mark.parametrize("c", [2, 3])
def test_the_decision_of_two_classes_is_that_of_the_second_minus_the_first(c):
    s = sample(c=c, seed=5)
    found = CalibratedScores(s.F, np.ones(len(s.F)), fit_calibrator("blend", s))
    D = found.decision()
    assert D.ndim == (1 if c == 2 else 2)
    largest = (D > 0).astype(int) if c == 2 else D.argmax(axis=1)
    np.testing.assert_array_equal(largest, found.best())
    np.testing.assert_array_equal(found.best(), found.proba().argmax(axis=1))
    assert len(np.unique(largest)) == c


def test_isotonic_is_one_step_function_per_class():
    s = sample()
    found = fit_calibrator("isotonic", s)
    columns = [
        IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(s.F[:, k], s.y == k).predict(s.F[:, k])
        for k in range(3)
    ]
    P = ClipNormalise(s.shares).proba(np.column_stack(columns))
    np.testing.assert_allclose(found.proba(s.F), (1 - found.floor) * P + found.floor * s.shares, atol=1e-9)


@given(st.integers(0, 10_000), st.sampled_from(["blend", "temperature", "isotonic"]))
def test_weights_are_repeated_rows(seed, kind):
    rng = np.random.default_rng(seed)
    s = sample(60, seed=seed)
    times = rng.integers(1, 4, 60)
    weighted = Sample(s.F, s.y, times / times.mean(), 60)
    repeated = Sample(np.repeat(s.F, times, axis=0), np.repeat(s.y, times), np.ones(times.sum()), 60)
    a, b = (fit_calibrator(kind, x).proba(s.F) for x in (weighted, repeated))
    np.testing.assert_allclose(a, b, atol=1e-6)


@given(st.integers(0, 10_000))
def test_permuting_classes_permutes_probabilities(seed):
    s = sample(80, seed=seed)
    order = np.random.default_rng(seed).permutation(3)
    other = Sample(s.F[:, order], np.argsort(order)[s.y], s.w, s.size)
    a = fit_calibrator("blend", s).proba(s.F)
    b = fit_calibrator("blend", other).proba(other.F)
    np.testing.assert_allclose(a[:, order], b, atol=1e-6)


# ------------------------------------------------------------ the calibrations


@dataclass(frozen=True)
class Toy:
    """Class shares everywhere, for classes and labels."""

    shares: np.ndarray

    def proba(self, F, in_domain=None):
        return np.repeat(self.shares[None], len(F), axis=0)

    def decision(self, F, in_domain=None):
        return self.proba(F)


def toy_labels(sample, start, pooled, pull, shrink):
    return Toy(fit_label_calibrator(None, sample).shares)


def test_a_registered_calibrator_is_a_value_of_calibration(monkeypatch):
    X, y = blobs(60, 3)
    with pytest.raises(ValueError, match=r"calibration='toy' is not known: use one of \['blend', .*None\]"):
        LSPC(calibration="toy").fit(X, y)
    monkeypatch.setitem(CALIBRATIONS, "toy", Calibration(lambda s, start, credibility: Toy(s.shares), toy_labels))
    model = LSPC(calibration="toy").fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X[:5]), np.repeat(model.class_prior_[None], 5, axis=0))
    assert isinstance(LSSVC(calibration="toy").fit(X, y).calibrator_.inner, Toy)
    labels = MultiLabelLSPC(calibration="toy").fit(X, np.column_stack([y == 0, y == 1]).astype(int))
    assert np.ptp(labels.predict_proba(X), axis=0).max() == 0
    with pytest.raises(ValueError, match=r"calibration='none' is not known: use one of .*'toy'"):
        LSPC(calibration="none").fit(X, y)


@pytest.mark.parametrize("estimator", [LSPC, LSSVC, MultiLabelLSPC, MultiTaskLSPC, MultiTaskLSSVC])
def test_docstrings_name_every_calibration(estimator):
    line = re.search(r"^ *calibration : (\{.*?\})", estimator.__doc__, re.MULTILINE)[1]
    assert line == "{" + ", ".join("None" if name is None else f'"{name}"' for name in CALIBRATIONS) + "}"


@pytest.mark.parametrize(
    ("page", "table", "title"),
    [("probabilities.md", CALIBRATIONS, "calibration="), ("calibration.md", FAMILIES, "method=")],
)
def test_the_docs_have_a_row_for_every_name(page, table, title):
    text = (Path(__file__).parents[2] / "docs" / page).read_text()
    rows = re.search(rf"\| `{title}` \|.*?\n\n", text, re.DOTALL)[0]
    names = re.findall(r"^\| `(None|\".*?\")`", rows, re.MULTILINE)
    assert sorted(names) == sorted("None" if name is None else f'"{name}"' for name in table)
