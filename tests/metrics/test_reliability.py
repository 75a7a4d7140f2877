"""Reliability bins and intervals, against loops, repeated rows and the calibration metrics."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leastwise.metrics.calibration import (
    calibration_error,
    classwise_calibration_error,
    equal_mass_bins,
    expected_calibration_error,
)
from leastwise.metrics.reliability import (
    _error_draws,
    bin_count,
    binary_bins,
    calibration_errors,
    centred_quantiles,
    event_calibration_error,
    merged_width_bins,
    reliability_bins,
    resampled_groups,
)


def events(n, seed=0, bias=0.0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, rng.random(n) < np.clip(p + bias, 0, 1), rng.integers(1, 4, size=n)


@pytest.mark.parametrize("rule", [merged_width_bins, lambda p: equal_mass_bins(p, 9)])
def test_bins_against_a_loop(rule):
    p, true, w = events(120)
    member = rule(p)
    bins = reliability_bins(p, true, member, w)
    for k, b in enumerate(np.unique(member)):
        rows = np.flatnonzero(member == b)
        assert bins.counts[k] == len(rows)
        assert bins.p[k] == pytest.approx(np.average(p[rows], weights=w[rows]))
        assert bins.share[k] == pytest.approx(np.average(true[rows], weights=w[rows]))
        assert bins.effective[k] == pytest.approx(w[rows].sum() ** 2 / (w[rows] ** 2).sum())
        assert (bins.member[rows] == k).all()
    assert (np.diff(bins.p) > 0).all()


def test_whole_weights_are_repeated_rows():
    p, true, w = events(80)
    member = merged_width_bins(p)
    weighted = reliability_bins(p, true, member, w)
    repeated = reliability_bins(*(np.repeat(a, w) for a in (p, true, member)))
    for name in ("p", "share", "mass"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name))
    assert weighted.error == pytest.approx(repeated.error)


def test_empty_bins_are_dropped():
    p = np.array([0.1, 0.1, 0.9])
    bins = reliability_bins(p, p > 0.5, np.array([2, 2, 7]))
    assert bins.counts.tolist() == [2, 1]
    assert bins.member.tolist() == [0, 0, 1]


def test_errors_are_those_of_the_metrics():
    p, true, _ = events(200, bias=0.2)
    P, y = np.column_stack([1 - p, p]), true.astype(int)
    top, right = P.max(axis=1), P.argmax(axis=1) == y
    bins = reliability_bins(top, right, equal_mass_bins(top, 15))
    assert bins.error == pytest.approx(expected_calibration_error(y, P, n_bins=15))
    found = event_calibration_error(top, right, np.ones(200), None)
    assert found.value == pytest.approx(max(calibration_error(y, P), 0))
    assert 0 <= found.low <= found.value <= found.high
    of_top, classwise = calibration_errors(y, P)
    assert of_top == found
    assert classwise.value == pytest.approx(classwise_calibration_error(y, P))
    assert 0 <= classwise.low <= classwise.value <= classwise.high


def test_draws_are_those_of_the_definition():
    p, true, w = events(150, bias=0.1)
    group, bins = np.arange(150) // 3, binary_bins(p, true, w)
    draws = _error_draws(bins, w, group, 0)[0]
    resamples = resampled_groups(50, len(draws), np.random.default_rng(0))
    wanted = [bins.error(0, w * times[group], debiased=True) for times in resamples]
    np.testing.assert_allclose(draws, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_an_error_of_zero_has_an_interval_above_it(seed):
    """Calibrated probabilities: a debiased error below zero becomes zero, and what may be is still told."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, 400)
    for found in calibration_errors((rng.random(400) < p).astype(int), np.column_stack([1 - p, p])):
        assert 0 < found.high < 0.15


def test_intervals_of_groups_are_wider():
    p, true, _ = (np.repeat(a, 8) for a in events(60, bias=0.2))
    found = [event_calibration_error(p, true, np.ones(480), group) for group in (None, np.arange(480) // 8)]
    widths = [one.high - one.low for one in found]
    assert widths[1] > 1.5 * widths[0]


@given(st.integers(0, 500))
def test_number_of_bins(n):
    found = bin_count(n, 15)
    assert 1 <= found <= 15
    assert found == 1 or n / found >= 10
    assert found == 15 or n < 10 * (found + 1)


def test_resampling():
    draws = list(resampled_groups(6, 50, np.random.default_rng(0)))
    assert all(len(times) == 6 and times.sum() == 6 for times in draws)
    low, high = centred_quantiles(np.arange(101.0), 10.0, 0.9)
    assert (low, high) == pytest.approx((10 - 45, 10 + 45))
