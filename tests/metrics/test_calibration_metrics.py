"""Parts of the Brier score, calibration errors without bias, and reports with intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from leastwise.inspection.calibration_report import calibration_report
from leastwise.metrics.calibration import (
    brier_decomposition,
    calibration_error,
    classwise_calibration_error,
    ece_debias,
    equal_mass_bins,
    expected_calibration_error,
)
from leastwise.metrics.labels import label_log_loss
from leastwise.metrics.probabilities import brier_score, task_log_loss

seeds = st.integers(0, 10_000)


def drawn(n=200, c=3, seed=0, sharp=1.0, digits=None):
    """Labels drawn from probabilities, and what a model says that is ``sharp`` times as sure."""
    rng = np.random.default_rng(seed)
    Z = 1.5 * rng.normal(size=(n, c))
    if digits is not None:
        Z = np.round(Z, digits)
    P, Q = (np.exp(a) / np.exp(a).sum(axis=1, keepdims=True) for a in (Z, sharp * Z))
    return (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), Q


# ------------------------------------------------------------------- Brier


@given(seed=seeds, c=st.integers(2, 5), n_bins=st.integers(1, 30))
def test_the_parts_add_up(seed, c, n_bins):
    y, P = drawn(80, c, seed)
    parts = brier_decomposition(y, P, classes=range(c), n_bins=n_bins)
    assert parts.brier == pytest.approx(brier_score(y, P, classes=range(c)))
    assert parts.brier == pytest.approx(parts.reliability - parts.resolution + parts.uncertainty + parts.within)
    assert min(parts.reliability, parts.resolution) >= 0


def test_the_parts_are_those_of_the_definition():
    y, P = drawn(150, 3)
    reliability = resolution = within = 0.0
    for k in range(3):
        p, hit = P[:, k], (y == k) * 1.0
        order = np.argsort(p)
        for rows in np.split(order, 10):
            reliability += len(rows) / 150 * (p[rows].mean() - hit[rows].mean()) ** 2
            resolution += len(rows) / 150 * (hit[rows].mean() - hit.mean()) ** 2
            intercept_ratio = p[rows].var() - 2 * np.mean((p[rows] - p[rows].mean()) * (hit[rows] - hit[rows].mean()))
            within += len(rows) / 150 * intercept_ratio
    parts = brier_decomposition(y, P, n_bins=10)
    assert (parts.reliability, parts.resolution) == pytest.approx((reliability, resolution))
    assert parts.within == pytest.approx(within)


@given(seed=seeds)
def test_repeated_probabilities_are_bins_of_their_own(seed):
    rng = np.random.default_rng(seed)
    p = rng.choice([0.1, 0.4, 0.7, 0.9], size=100)
    y = (rng.random(100) < p).astype(int)
    parts = brier_decomposition(y, np.column_stack([1 - p, p]), classes=[0, 1], n_bins=4)
    assert parts.within == pytest.approx(0, abs=1e-12)
    by_value = [np.mean(p == v) * (v - y[p == v].mean()) ** 2 for v in np.unique(p)]
    assert parts.reliability == pytest.approx(2 * sum(by_value))


@given(seed=seeds)
def test_the_class_shares_have_neither_reliability_nor_resolution(seed):
    y, _ = drawn(60, 3, seed)
    shares = np.bincount(y, minlength=3) / 60
    parts = brier_decomposition(y, np.tile(shares, (60, 1)), classes=range(3))
    assert (parts.reliability, parts.resolution, parts.within) == pytest.approx((0, 0, 0), abs=1e-12)
    assert parts.uncertainty == pytest.approx(1 - np.sum(shares**2))


@given(seed=seeds)
def test_weights_are_copies_and_classes_have_no_order(seed):
    y, P = drawn(40, 3, seed, sharp=2.0)
    times = np.random.default_rng(seed).integers(0, 3, size=40)
    times[0] = 1
    rows, turn = np.repeat(np.arange(40), times), [2, 0, 1]
    one = brier_decomposition(y, P, classes=range(3), n_bins=5, sample_weight=times)
    other = brier_decomposition(y[rows], P[rows][:, turn], classes=turn, n_bins=5)
    assert one.brier == pytest.approx(other.brier)
    assert one.uncertainty == pytest.approx(other.uncertainty)
    options = {"n_bins": 5, "debiased": False}
    one = calibration_error(y, P, classes=range(3), sample_weight=times, **options)
    assert one == pytest.approx(calibration_error(y[rows], P[rows][:, turn], classes=turn, **options))


# -------------------------------------------------------- calibration errors


@given(seed=seeds, n_bins=st.integers(1, 20))
def test_equal_values_share_a_bin_and_bins_are_of_equal_mass(seed, n_bins):
    rng = np.random.default_rng(seed)
    values = rng.random(100)
    assert np.bincount(equal_mass_bins(values, n_bins), minlength=n_bins).max() <= np.ceil(100 / n_bins) + 1
    tied = rng.integers(8, size=100)
    bins = equal_mass_bins(tied, n_bins)
    assert all(len(np.unique(bins[tied == v])) == 1 for v in np.unique(tied))
    assert bins.max() < n_bins
    assert (np.diff(bins[np.argsort(tied, kind="stable")]) >= 0).all()


def test_the_plain_error_is_the_expected_calibration_error():
    y, P = drawn(150, 3, sharp=2.0)
    plain = calibration_error(y, P, debiased=False)
    assert plain == pytest.approx(expected_calibration_error(y, P))
    assert calibration_error(y, P) < plain


@given(seed=seeds, n_bins=st.integers(1, 20), n=st.integers(1, 60))
def test_bins_of_weighted_rows_are_those_of_repeated_rows(seed, n_bins, n):
    rng = np.random.default_rng(seed)
    values, times = rng.integers(30, size=n) / 30, rng.integers(1, 4, size=n)
    repeated = equal_mass_bins(np.repeat(values, times), n_bins)
    np.testing.assert_array_equal(np.repeat(equal_mass_bins(values, n_bins, times.astype(float)), times), repeated)


@given(seed=seeds, n_bins=st.integers(1, 20), n=st.integers(1, 60))
def test_bins_of_distinct_values_differ_by_one_row(seed, n_bins, n):
    values = np.random.default_rng(seed).permutation(n)
    bins = equal_mass_bins(values, n_bins)
    assert (np.diff(bins[np.argsort(values, kind="stable")]) >= 0).all()
    assert np.ptp(np.bincount(bins, minlength=n_bins)) <= 1


def test_ties_do_not_depend_on_the_order_of_rows_and_heavy_ones_are_alone():
    rng = np.random.default_rng(0)
    p = np.round(rng.uniform(0.5, 1, 400), 2)
    y = (rng.random(400) < p).astype(int)
    order, P = rng.permutation(400), np.column_stack([1 - p, p])
    for metric in (calibration_error, expected_calibration_error):
        assert metric(y, P) == pytest.approx(metric(y[order], P[order]))
    values = np.concatenate([np.linspace(0, 0.3, 33), np.full(34, 0.5), np.linspace(0.7, 1, 33)])
    bins = equal_mass_bins(values, 15)
    assert (bins[33:67] == bins[33]).all()
    assert bins[33] not in [*bins[:33], *bins[67:]]


def test_right_probabilities_have_no_error_on_average():
    """Plain errors are far above zero for chance alone; 300 draws leave the mean uncertain by about 0.0015."""
    samples = [drawn(300, 4, seed) for seed in range(300)]
    options = {"classes": range(4)}
    plain, debiased, classwise = np.mean(
        [
            [
                calibration_error(y, P, debiased=False, **options),
                calibration_error(y, P, **options),
                classwise_calibration_error(y, P, **options),
            ]
            for y, P in samples
        ],
        axis=0,
    )
    assert plain > 0.06
    assert abs(debiased) < 0.008
    assert abs(classwise) < 0.005


def test_almost_certain_and_right_has_no_error_on_average():
    """Where errors are rare the gap of a bin is far from normal; the normal correction gives about -0.003."""
    rng = np.random.default_rng(0)
    values = []
    for _ in range(300):
        p = 1 - 0.02 * rng.random(300)
        y = (rng.random(300) < p).astype(int)
        values.append(calibration_error(y, np.column_stack([1 - p, p]), classes=[0, 1]))
    assert abs(np.mean(values)) < 0.0015


@given(n=st.integers(1, 60), p=st.floats(0.01, 0.99))
def test_chance_takes_off_what_it_makes(n, p):
    k = np.arange(n + 1)
    gap = p - k / n
    taken = ece_debias(np.full(n + 1, n), np.full(n + 1, p), gap)
    mean = binom.pmf(k, n, p) @ (np.abs(gap) - taken)
    assert abs(mean) < 1e-3 if n * min(p, 1 - p) >= 20 else abs(mean) < 1e-12


def test_a_large_error_is_left_as_it_is():
    y, P = drawn(20_000, 3, sharp=4.0)
    plain, debiased = (calibration_error(y, P, debiased=d) for d in (False, True))
    assert plain > 0.1
    assert debiased == pytest.approx(plain, rel=0.01)


def test_certain_and_right_is_no_error():
    assert calibration_error([0, 1, 1], [[1.0, 0], [0, 1], [0, 1]]) == 0
    assert calibration_error([1, 0, 0], [[1.0, 0], [0, 1], [0, 1]]) == 1


def test_classwise_is_the_mean_over_classes():
    y, P = drawn(150, 3, sharp=2.0)
    errors = []
    for k in range(3):
        order = np.argsort(P[:, k])
        gaps = [np.sum(P[rows, k] - (y[rows] == k)) for rows in np.split(order, 15)]
        errors.append(np.abs(gaps).sum() / 150)
    assert classwise_calibration_error(y, P, debiased=False) == pytest.approx(np.mean(errors))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0, 1], [[0.5, 0.6], [0.5, 0.5]]), {}, "sum to 1"),
        (([0, 2], [[0.5, 0.5], [0.5, 0.5]]), {"classes": [0, 1]}, "not one of"),
        (([0, 1], [[0.5, 0.5], [0.5, 0.5]]), {"n_bins": 0}, "n_bins=0"),
        (([0, 1], [[0.5, 0.5], [0.5, 0.5]]), {"sample_weight": [0, 0]}, "sample_weight"),
    ],
)
def test_errors_say_what_was_given(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        brier_decomposition(*arguments, **options)


# ------------------------------------------------------------------- reports


def test_a_report_by_task():
    y, P = drawn(300, 3, sharp=2.0)
    task = np.array(["north", "south", "west"])[np.arange(300) % 3]
    report = calibration_report(y, P, tasks=task, n_boot=50)
    assert report.names == ["all", "north", "south", "west"]
    assert report.rows.tolist() == [300, 100, 100, 100]
    _, losses = task_log_loss(y, P, task, average=None)
    np.testing.assert_allclose(report.values["log_loss"][1:], losses)
    south = brier_decomposition(y[task == "south"], P[task == "south"], n_bins=10)
    assert report.values["reliability"][2] == pytest.approx(south.reliability)
    for name in ("log_loss", "brier", "ece", "classwise_ece"):
        assert (report.low[name] <= report.values[name]).all(), name
        assert (report.values[name] <= report.high[name]).all(), name
    text = str(report)
    assert "log-loss" in text
    assert "south" in text
    assert len({len(line) for line in text.splitlines()[:-1]}) == 1


def test_a_report_by_label_leaves_out_what_is_not_known():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    P = rng.random((120, 3))
    Y = (rng.random((120, 3)) < P).astype(float)
    Y[rng.random((120, 3)) < 0.3] = np.nan
    report = calibration_report(Y, P, labels=["a", "b", "c"], n_boot=20)
    frame = report.to_frame()
    assert list(frame.index) == ["all", "a", "b", "c"]
    assert frame["rows"].tolist() == [int(k) for k in [(~np.isnan(Y)).sum(), *(~np.isnan(Y)).sum(axis=0)]]
    np.testing.assert_allclose(frame["log_loss"].iloc[1:], label_log_loss(Y, P, average=None))
    assert frame.loc["all", "log_loss"] == pytest.approx(label_log_loss(Y, P))
    named = calibration_report(pandas.DataFrame(Y, columns=["u", "v", "w"]), P, n_boot=0)
    assert named.names == ["all", "u", "v", "w"]
    assert np.isnan(named.low["ece"]).all()


def test_groups_widen_the_intervals():
    """Ten rows of each person that are all the same tell as much as one."""
    y, P = drawn(60, 2, sharp=1.0)
    rows = np.repeat(np.arange(60), 10)
    alone = calibration_report(y, P, n_boot=300)
    widths = [
        float((r.high["log_loss"] - r.low["log_loss"])[0])
        for r in (calibration_report(y[rows], P[rows], groups=g, n_boot=300) for g in (None, rows))
    ]
    assert widths[1] > 2 * widths[0]
    assert widths[1] == pytest.approx(float((alone.high["log_loss"] - alone.low["log_loss"])[0]), rel=0.25)


def test_intervals_of_the_log_loss_cover():
    """Nominal 90 percent; 40 draws leave that uncertain by about 5 percent."""
    y, P = drawn(100_000, 3, seed=1, sharp=1.5)
    truth = -np.log(P[np.arange(len(y)), y]).mean()
    inside = 0
    for k in range(40):
        rows = slice(150 * k, 150 * (k + 1))
        report = calibration_report(y[rows], P[rows], classes=range(3), n_boot=60, level=0.9, random_state=k)
        inside += report.low["log_loss"][0] <= truth <= report.high["log_loss"][0]
    assert inside >= 29


def test_a_report_is_the_same_for_the_same_seed():
    y, P = drawn(100, 3)
    one, other, third = (calibration_report(y, P, n_boot=20, random_state=s) for s in (0, 0, 1))
    assert str(one) == str(other) != str(third)


def test_reports_refuse_what_does_not_go_together():
    y, P = drawn(20, 3)
    with pytest.raises(ValueError, match="labels= names the columns"):
        calibration_report(y, P, labels=["a"])
    with pytest.raises(ValueError, match="table of labels"):
        calibration_report(np.eye(3), np.eye(3), tasks=[0, 1, 2])
    with pytest.raises(ValueError, match="2 names for 3 columns"):
        calibration_report(np.eye(3), np.eye(3), labels=["a", "b"])


@pytest.mark.parametrize("options", [{"n_bins": 0}, {"n_bins": 2.5}, {"n_boot": -1}, {"level": 1.0}])
def test_reports_refuse_numbers_that_make_no_sense(options):
    name, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=f"{name}={value}"):
        calibration_report(*drawn(20, 3), **options)


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="no rows"):
        calibration_error([], np.empty((0, 2)), classes=[0, 1])
