"""Calibration of held-out predictions: against the long way, its limits, and what it may not depend on."""

import numpy as np
import pytest
from conftest import DATA, blobs
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from leastwise import LSPC, LSSVC, KernelLogisticRegression, MultiLabelLSPC, MultiTaskLSPC
from leastwise.calibration.blend import minimise, nonnegative_step
from leastwise.calibration.logits import Logits, fit_slopes, fit_temperature, matrices, off_diagonal
from leastwise.calibration.maps import FAMILIES, CalibrationSet, Family, Predictions, Setting, fit_family
from leastwise.calibration.recalibration import choose_family, fold_of
from leastwise.datasets import load, make_related_tasks, make_rotated_labels
from leastwise.estimators.abstaining import Abstaining
from leastwise.estimators.prior_shift import estimate_class_prior
from leastwise.estimators.recalibrated import Recalibrated

NAMES = ["temperature", "vector", "beta", "quadratic", "isotonic", "structured", "dirichlet"]


def heldout(n=300, c=3, sharp=2.0, seed=0, n_groups=1, slopes=None):
    """Over-confident probabilities: the truth has logits ``Z * slopes``, the model says ``sharp * Z``."""
    rng = np.random.default_rng(seed)
    Z = 1.5 * rng.normal(size=(n, c))
    group = rng.integers(n_groups, size=n)
    true = softmax(Z if slopes is None else Z * np.asarray(slopes)[group][:, None], axis=1)
    y = (true.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    shares = (np.bincount(y, minlength=c) + 1) / (n + c)
    base = np.repeat(np.log(shares)[None], n, axis=0)
    return CalibrationSet(softmax(sharp * Z, axis=1), base, group, None, y, np.ones(n), np.arange(n), n, n_groups)


def mapped(logits_of, n=300, c=3, spread=1.5, seed=0):
    """The model says exp(Z), the truth is ``softmax(logits_of(Z))``: a sample, and the true probabilities."""
    rng = np.random.default_rng(seed)
    Z = log_softmax(spread * rng.normal(size=(n, c)), axis=1)
    true = softmax(logits_of(Z), axis=1)
    y = (true.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    base = np.full((n, c), -np.log(c))
    rows = np.zeros(n, dtype=int), None, y, np.ones(n), np.arange(n), n
    return CalibrationSet(np.exp(Z), base, *rows), true


def loss(sample, P, rows=slice(None)):
    return -np.mean(np.log(P[np.arange(len(P)), sample.y])[rows])


# ------------------------------------------------------------- the Newton loop


def test_newton_steps_are_halved_for_each_function_by_itself():
    """log cosh, on which full steps diverge from far away; the last function gets steps uphill and stays."""
    centre, start = np.array([[0.0], [3.0], [-40.0], [1.0]]), np.array([[8.0], [3.1], [0.0], [2.0]])

    def value_at(theta):
        return np.logaddexp(theta - centre, centre - theta)[:, 0] + 1e-3 * (theta - centre)[:, 0] ** 2, None

    def step_at(theta, _):
        gradient = np.tanh(theta - centre) + 2e-3 * (theta - centre)
        step = -gradient / (1 / np.cosh(theta - centre) ** 2 + 2e-3)
        return gradient, step * np.array([[1.0], [1.0], [1.0], [-1.0]])

    theta, _ = minimise(value_at, step_at, start, rtol=1e-14)
    np.testing.assert_allclose(theta[:3], centre[:3], atol=1e-6)
    assert theta[3] == start[3]


@given(st.integers(0, 2**31), st.booleans())
def test_steps_of_two_parameters_stay_at_zero_or_above_and_are_the_best(seed, use_second):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 2))
    H, gradient, theta = A.T @ A, rng.normal(size=2), np.maximum(rng.normal(size=2), 0)
    theta[1] *= use_second
    step = nonnegative_step(gradient[None], H[None], theta[None], use_second)[0]
    assert (theta + step >= -1e-12).all()

    def value(s):
        return gradient @ s + s @ H @ s / 2

    other = np.maximum(theta + step + rng.normal(size=(200, 2)) * [0.1, 0.1 * use_second], 0) - theta
    assert value(step) <= min(map(value, other)) + 1e-9


# ------------------------------------------------------------------ families


def added(kind, x, E):
    """What parameters add to the logits, written out."""
    c = E.shape[1]
    if kind == "quadratic":
        S, (D, u, b) = E - E.mean(axis=1, keepdims=True), x[1:].reshape(3, c)
        return x[0] * E + D * S + u * S**2 + b
    W, b = matrices(kind, x, c)
    return E @ W.T + b


@pytest.mark.parametrize("family", ["temperature", "vector", "quadratic", "dirichlet", "structured"])
@pytest.mark.parametrize("c", [2, 3])
def test_slopes_are_those_of_a_general_minimiser(family, c):
    sample, pull, kind = heldout(c=c), 20.0, "dirichlet" if family == "structured" else family
    E, T = sample.log_ratios(sample.floor), sample.targets
    logits = sample.logits(kind)
    tau = fit_temperature(logits)
    factors = off_diagonal(c) if family == "structured" else 1.0
    theta = fit_slopes(logits, tau, pull, factors=factors)
    h = factors * logits.curvature(logits.at(tau * logits.start)[1])
    h[0] = 0

    def objective(x):
        fit = -np.sum(T * log_softmax(sample.base + added(kind, x, E), axis=1))
        return fit + (pull / 2 * np.sum(h * (x - tau * logits.start) ** 2) if kind != "temperature" else 0)

    best = minimize(objective, logits.start, method="BFGS", options={"gtol": 1e-7})
    assert objective(theta) <= best.fun + 1e-8
    np.testing.assert_allclose(theta, best.x, atol=2e-4)
    P = (1 - sample.floor) * softmax(sample.base + added(kind, theta, E), axis=1) + sample.floor * np.exp(sample.base)
    np.testing.assert_allclose(fit_family(sample, Setting(family, pull=pull)).proba(sample), P, atol=1e-12)


@pytest.mark.parametrize("kind", ["temperature", "vector", "quadratic", "dirichlet"])
def test_derivatives(kind):
    sample = heldout(n=40)
    rng = np.random.default_rng(1)
    w, in_domain = rng.random((2, 40))
    logits = Logits(kind, sample.log_ratios(0.01), sample.base, sample.targets, w, in_domain, max_logit=2.0)
    theta, v = rng.normal(size=len(logits.start)), rng.normal(size=len(logits.start))
    step = 1e-6
    ends = [logits.at(theta + s * v) for s in (step, -step)]
    P = logits.at(theta)[1]
    assert (ends[0][0] - ends[1][0]) / (2 * step) == pytest.approx(logits.gradient(P) @ v, rel=1e-5)
    curved = (logits.gradient(ends[0][1]) - logits.gradient(ends[1][1])) / (2 * step)
    np.testing.assert_allclose(curved, logits.curved(P)(v), rtol=1e-4, atol=1e-5)
    columns = np.column_stack([logits.curved(P)(e) for e in np.eye(len(theta))])
    np.testing.assert_allclose(np.diag(columns) / w.sum(), logits.curvature(P), rtol=1e-4)
    if kind != "dirichlet":
        np.testing.assert_allclose(columns, logits.hessian(P), atol=1e-9)


def test_a_strong_pull_leaves_the_temperature():
    sample = heldout()
    P = fit_family(sample, Setting("temperature")).proba(sample)
    for family in ("vector", "quadratic", "structured", "dirichlet"):
        np.testing.assert_allclose(fit_family(sample, Setting(family, pull=1e9)).proba(sample), P, atol=1e-5)
        assert np.abs(fit_family(sample, Setting(family, pull=1.0)).proba(sample) - P).max() > 1e-3


@pytest.mark.parametrize("family", ["quadratic", "structured"])
def test_few_rows_leave_the_temperature(family):
    """The penalty is a number of rows: few rows cannot bend the map, whatever their classes, and many can."""
    M = np.array([[1.0, 0.8, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.4]])
    new = mapped(lambda Z: Z @ M.T, seed=1)[0]
    gaps = []
    for n in (6, 100, 10_000):
        sample = mapped(lambda Z: Z @ M.T, n)[0]
        P, Q = (fit_family(sample, Setting(name, pull=1000.0)).proba(new) for name in (family, "temperature"))
        gaps.append(np.abs(P - Q).mean())
    assert gaps[0] < 0.005
    assert gaps[0] < gaps[1] < gaps[2]
    assert gaps[2] > 0.02


@pytest.mark.parametrize("c", [2, 3, 6])
def test_structured_is_closer_to_a_diagonal_than_dirichlet(c):
    sample = heldout(n=200, c=c)
    beside = ~np.eye(c, dtype=bool)
    sizes = [
        np.abs(fit_family(sample, Setting(f, pull=10.0)).W[-1][beside]).mean() for f in ("structured", "dirichlet")
    ]
    assert 0 < sizes[0] < sizes[1]


def test_structured_finds_classes_that_are_taken_for_each_other():
    M = np.array([[1.0, 0.6, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    sample, true = mapped(lambda Z: Z @ M.T, 20_000)
    errors = [
        np.abs(fit_family(sample, Setting(f, 10.0)).proba(sample) - true).mean() for f in ("structured", "vector")
    ]
    assert errors[0] < 0.01
    assert errors[1] > 0.03


def test_quadratic_finds_a_bent_logit():
    """Two classes: logit = 0.3 + 0.8 s + 0.06 s^2, which rises where there are rows."""

    def bent(Z):
        s = Z[:, 1] - Z[:, 0]
        return np.column_stack([np.zeros_like(s), 0.3 + 0.8 * s + 0.06 * s**2])

    sample, true = mapped(bent, 40_000, c=2, spread=0.8)
    error = {f: np.abs(fit_family(sample, Setting(f, 10.0)).proba(sample) - true).max() for f in NAMES[:4]}
    assert error["quadratic"] < 0.02
    assert error["temperature"] > 0.05


@settings(max_examples=25)
@given(seed=st.integers(0, 2**31), n=st.integers(5, 200), pull=st.sampled_from([0.1, 10.0]))
def test_quadratic_never_falls(seed, n, pull):
    """Also beyond the rows of the fit, and where the classes of these ask for a map that falls."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    y = (rng.random(n) < rng.choice([p, 1 - p, np.abs(2 * p - 1), 1 - np.abs(2 * p - 1)])).astype(int)
    rows = np.zeros(n, dtype=int), None, y, np.ones(n), np.arange(n), n
    base = np.log(np.tile([0.7, 0.3], (n, 1)))
    fitted = fit_family(CalibrationSet(np.column_stack([1 - p, p]), base, *rows), Setting("quadratic", pull))
    grid = np.r_[0, np.logspace(-12, -2, 50), np.linspace(0.01, 0.99, 200), 1 - np.logspace(-2, -12, 50), 1]
    new = Predictions(
        np.column_stack([1 - grid, grid]), np.log(np.tile([0.7, 0.3], (len(grid), 1))), np.zeros(len(grid), dtype=int)
    )
    assert (np.diff(fitted.proba(new)[:, 1]) >= -1e-12).all()


@pytest.mark.parametrize("family", NAMES)
@pytest.mark.parametrize("c", [2, 3])
def test_probabilities_of_0_and_1_that_are_wrong(family, c):
    rng = np.random.default_rng(0)
    said, y = rng.integers(c, size=(2, 60))
    y = np.where(rng.random(60) < 0.8, said, y)
    rows = np.zeros(60, dtype=int), None, y, np.ones(60), np.arange(60), 60
    sure = CalibrationSet(np.eye(c)[said], np.full((60, c), -np.log(c)), *rows)
    P = fit_family(sure, Setting(family)).proba(sure)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert P.min() > 0
    assert P[np.arange(60), said].mean() == pytest.approx((said == y).mean(), abs=0.05)


def test_the_temperature_is_found():
    sample = heldout(n=4000, sharp=2.5)
    W = fit_family(sample, Setting("temperature")).W[-1]
    assert W[0, 0] == pytest.approx(1 / 2.5, rel=0.1)


def test_with_two_classes_beta_is_kulls_logistic_regression():
    sample = heldout(c=2, n=500)
    E = sample.log_ratios(sample.floor)
    # the targets of a logistic regression are hard: give it both classes of every row with their weights
    X, y = np.vstack([E, E]), np.repeat([0, 1], len(E))
    offset = sample.base[:, 1] - sample.base[:, 0]
    objective = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(
        np.column_stack([-X[:, 0], X[:, 1]]), y, sample_weight=sample.targets.T.ravel()
    )
    assert np.ptp(offset) == 0  # an offset is a part of the intercept then
    P = fit_family(sample, Setting("beta", pull=1e-7)).proba(sample)
    expected = objective.predict_proba(np.column_stack([-E[:, 0], E[:, 1]]))
    expected = (1 - sample.floor) * expected + sample.floor * np.exp(sample.base)
    np.testing.assert_allclose(P, expected, atol=2e-4)


def test_beta_of_many_classes_is_one_against_the_rest():
    sample = heldout()
    together = fit_family(sample, Setting("beta", pull=10.0)).proba(sample)
    parts = []
    for k in range(3):
        p, s = sample.P[:, k], np.exp(sample.base[:, k])
        one = CalibrationSet(
            np.column_stack([1 - p, p]), np.log(np.column_stack([1 - s, s])), sample.group, None,
            (sample.y == k).astype(int), sample.w, sample.unit, sample.n_units,
        )  # fmt: skip
        parts.append(fit_family(one, Setting("vector", pull=10.0)).proba(one)[:, 1])
    Q = np.column_stack(parts)
    np.testing.assert_allclose(together, Q / Q.sum(axis=1, keepdims=True))


def test_isotonic_keeps_the_order_and_is_scikit_learns_but_for_one_row_a_level():
    sample = heldout(c=2, n=2000)
    P = fit_family(sample, Setting("isotonic")).proba(sample)
    order = np.argsort(sample.P[:, 1])
    assert (np.diff(P[order, 1]) >= -1e-12).all()
    plain = IsotonicRegression(y_min=0, y_max=1).fit(sample.P[:, 1], sample.y == 1).predict(sample.P[:, 1])
    assert np.abs(P[:, 1] - plain).mean() < 0.02
    assert 0 < P.min() < P.max() < 1


@pytest.mark.parametrize("family", NAMES)
def test_far_from_the_data_the_class_shares_are_the_answer(family):
    sample = heldout()
    fitted = fit_family(sample, Setting(family, pull=10.0))
    shares = np.exp(sample.base)
    far = Predictions(shares, sample.base, sample.group, np.zeros(len(shares)))
    np.testing.assert_allclose(fitted.proba(far), shares, atol=1e-9)


@pytest.mark.parametrize("family", NAMES)
def test_rows_sum_to_one_and_no_probability_is_zero(family):
    sample = heldout(n=60, sharp=200.0)
    assert (sample.P < 1e-30).any()
    for P in (fit_family(sample, Setting(family, pull=10.0)).proba(sample), choose_family([sample], family).P[0]):
        np.testing.assert_allclose(P.sum(axis=1), 1)
        assert P.min() > 0


@pytest.mark.parametrize("family", NAMES)
def test_the_order_of_the_classes_does_not_matter(family):
    sample, turn = heldout(), np.array([2, 0, 1])
    turned = CalibrationSet(
        sample.P[:, turn], sample.base[:, turn], sample.group, None, np.argsort(turn)[sample.y], sample.w,
        sample.unit, sample.n_units,
    )  # fmt: skip
    setting = Setting(family, pull=10.0)
    P, Q = (fit_family(s, setting).proba(s) for s in (sample, turned))
    np.testing.assert_allclose(P[:, turn], Q, atol=1e-7)


@pytest.mark.parametrize("family", NAMES)
@settings(max_examples=5)
@given(seed=st.integers(0, 1000))
def test_a_weight_of_two_is_a_row_twice_in_any_order(family, seed):
    sample, rng = heldout(n=80, seed=seed), np.random.default_rng(seed)
    times = rng.integers(1, 4, size=80)
    rows = rng.permutation(np.repeat(np.arange(80), times))
    heavy = CalibrationSet(sample.P, sample.base, sample.group, None, sample.y, times * 1.0, sample.unit, 80)
    many = sample.take(rows)
    assert (fold_of(many, 5) == fold_of(heavy, 5)[rows]).all()
    one, other = choose_family([heavy], family), choose_family([many], family)
    assert one.scores[family] == pytest.approx(other.scores[family], abs=1e-6)
    np.testing.assert_allclose(one.maps[0].proba(sample), other.maps[0].proba(sample), atol=1e-6)


# -------------------------------------------------------------------- choice


def test_scores_are_those_of_maps_fitted_without_the_rows():
    sample = heldout(n=100)
    choice = choose_family([sample], "temperature")
    fold, P = fold_of(sample, 5), np.empty_like(sample.P)
    for k in range(5):
        P[fold == k] = fit_family(sample.take(fold != k), choice.setting).proba(sample.take(fold == k))
    np.testing.assert_allclose(choice.P[0], P)
    assert choice.scores == pytest.approx({None: loss(sample, sample.P), "temperature": loss(sample, P)})


@pytest.mark.parametrize("family", NAMES)
def test_where_a_fit_starts_does_not_matter(family):
    """Fits on folds start from that of all rows, those of a weak pull from a stronger one."""
    for sample in (heldout(n=200), heldout(n=400, n_groups=3, slopes=[0.3, 1.0, 2.0])):
        grouped = 100.0 if sample.n_groups > 1 else np.inf
        setting, stronger = Setting(family, 10.0, grouped), Setting(family, 1000.0, grouped)
        part = sample.take(np.arange(len(sample.y)) % 5 > 0)
        cold = fit_family(part, setting)
        for start in (fit_family(sample, setting), fit_family(part, stronger), fit_family(sample, Setting(family))):
            warm = fit_family(part, setting, start)
            np.testing.assert_allclose(warm.proba(sample), cold.proba(sample), atol=2e-5)
            assert loss(part, warm.proba(part)) == pytest.approx(loss(part, cold.proba(part)), abs=1e-7)


def test_auto_tries_what_there_are_rows_for():
    tried = lambda **options: set(choose_family([heldout(**options)]).scores)  # noqa: E731
    assert tried(n=300, c=2) == {None, "temperature", "beta"}
    assert tried(n=300, c=3) == {None, "temperature", "vector", "dirichlet"}
    assert tried(n=300, c=3, n_groups=2) == {None, "temperature", "vector"}
    assert tried(n=50, c=3) == {None, "temperature", "vector"}
    assert tried(n=25, c=3) == {None, "temperature"}


def test_of_several_families_the_simplest_that_is_as_good():
    sample = heldout(n=400)
    choice = choose_family([sample], ("isotonic", "temperature"))
    assert set(choice.scores) == {None, "temperature", "isotonic"}
    assert choice.setting.family == "temperature"
    assert choose_family([sample], ("isotonic",)).setting.family == "isotonic"
    assert choose_family([heldout(n=400, sharp=1.0)], ("isotonic",)).setting.family is None


def test_zeros_are_never_left_as_they_are():
    """No held-out row is hit by one, but a new one will be."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=100)
    P = np.column_stack([y == 0, y == 1]).astype(float)
    rows = np.zeros(100, dtype=int), None, y, np.ones(100), np.arange(100), 100
    sure, nearly = (CalibrationSet(p, np.full((100, 2), np.log(0.5)), *rows) for p in (P, 0.999 * P + 0.0005))
    for method in ("auto", ("beta", "temperature")):
        assert choose_family([sure], method).setting.family == "temperature"
    assert choose_family([sure], None).setting.family is None
    assert choose_family([nearly]).scores.keys() == {None, "temperature", "beta"}
    assert choose_family([nearly]).setting.family is None


def test_intercepts_count_as_far_as_rows_are_trusted():
    sample = heldout(n=300)
    half = CalibrationSet(
        sample.P, sample.base, sample.group, np.full(300, 0.5), sample.y, sample.w, sample.unit, sample.n_units
    )
    full, less = (fit_family(s, Setting("vector", pull=1e-3)) for s in (sample, half))
    np.testing.assert_allclose(less.b, 2 * full.b, rtol=0.01, atol=1e-4)
    np.testing.assert_allclose(less.proba(half), full.proba(sample), atol=1e-4)


def test_units_stay_in_one_fold():
    sample = heldout(n=90)
    grouped = CalibrationSet(
        sample.P, sample.base, sample.group, None, sample.y, sample.w / 3, np.arange(90) // 3, 30
    )
    fold = fold_of(grouped, 5).reshape(30, 3)
    assert (fold == fold[:, :1]).all()
    assert len(np.unique(fold)) == 5


def test_auto_leaves_right_probabilities_and_mends_wrong_ones():
    right = [choose_family([heldout(n=400, sharp=1.0, seed=seed)]).setting.family for seed in range(6)]
    assert right.count(None) >= 4
    for seed in range(3):
        sample, new = heldout(n=400, seed=seed), heldout(n=4000, seed=seed + 100)
        choice = choose_family([sample])
        assert choice.setting.family is not None
        assert loss(new, choice.maps[0].proba(new)) < loss(new, new.P) - 0.02


def test_chance_makes_no_differences_between_tasks():
    """With folds that are stratified by class within tasks these come out as real."""
    samples = [heldout(n=300, c=2, n_groups=10, seed=seed) for seed in range(5)]
    assert sum(np.isinf(choose_family([sample], "beta").setting.group_pull) for sample in samples) >= 4


# --------------------------------------------------------------------- tasks


@pytest.mark.parametrize("family", ["temperature", "vector", "quadratic", "isotonic", "structured"])
def test_limits_of_the_pull_to_what_tasks_share(family):
    sample = heldout(n=600, n_groups=2, slopes=[0.3, 2.0])
    common = fit_family(sample, Setting(family)).proba(sample)
    strong = fit_family(sample, Setting(family, group_pull=1e9)).proba(sample)
    np.testing.assert_allclose(strong, common, atol=1e-5)
    weak = fit_family(sample, Setting(family, group_pull=1e-6)).proba(sample)
    if family == "temperature":  # each alone, but for the floor, which all rows make together
        for g in range(2):
            own = sample.take(sample.group == g)
            np.testing.assert_allclose(
                weak[sample.group == g], fit_family(own, Setting(family)).proba(own), atol=1e-5
            )
    assert loss(sample, weak) < loss(sample, common) - 0.02


def test_tasks_that_differ_get_parameters_of_their_own_and_unknown_ones_the_common():
    sample = heldout(n=1200, n_groups=3, slopes=[0.2, 1.0, 3.0])
    choice = choose_family([sample], "temperature")
    assert choice.setting.group_pull <= 1000
    assert choice.scores["temperature"] < choose_family([heldout_of_one(sample)], "temperature").scores["temperature"]
    W = choice.maps[0].W[:, 0, 0]
    assert W[0] < W[3] < W[2]
    new = Predictions(sample.P, sample.base, np.full(1200, -1))
    np.testing.assert_allclose(choice.maps[0].proba(new), fit_family(sample, Setting("temperature")).proba(sample))


def heldout_of_one(sample):
    return CalibrationSet(
        sample.P, sample.base, np.zeros_like(sample.group), None, sample.y, sample.w, sample.unit, sample.n_units
    )


def test_a_small_task_keeps_closer_to_the_others():
    sample = heldout(n=1000, n_groups=2, slopes=[0.3, 1.0])
    few = np.flatnonzero(sample.group == 0)[:15]
    small = sample.take(np.sort(np.r_[few, np.flatnonzero(sample.group == 1)]))
    W = [fit_family(s, Setting("temperature", group_pull=100.0)).W[:, 0, 0] for s in (small, sample)]
    assert abs(W[0][0] - W[0][2]) < 0.5 * abs(W[1][0] - W[1][1])


# ------------------------------------------------------------- the estimator


@pytest.mark.parametrize(
    "model", [LSPC(), LSPC(calibration=None), LSSVC(), KernelLogisticRegression(0.5, 0.01, random_state=0)]
)
@pytest.mark.parametrize("method", [None, "auto", "vector", "isotonic"])
def test_recalibrated(model, method):
    X, y = blobs(80, seed=3)
    names = np.array(["a", "b", "c"])[y]
    fitted = Recalibrated(model, method).fit(X, names)
    plain = clone(model).fit(X, names)
    P = fitted.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-6)
    assert (fitted.predict(X) == names).mean() > 0.6
    assert fitted.heldout_proba_.shape == P.shape
    assert (fitted.predict(X) == fitted.classes_[fitted.decision_function(X).argmax(axis=1)]).all()
    assert fitted.score(X, names) == (fitted.predict(X) == names).mean()
    held = np.maximum(fitted.heldout_proba_[np.arange(80), y], np.finfo(float).eps)
    assert fitted.scores_[fitted.method_] == pytest.approx(-np.log(held).mean())
    assert set(fitted.scores_) >= {None, fitted.method_}
    if method is None:
        np.testing.assert_array_equal(P, plain.predict_proba(X))
        np.testing.assert_array_equal(fitted.heldout_proba_, plain.heldout_proba_)


def test_a_fit_is_a_fit():
    """The model inside is the model alone, and the one that was given stays as it was."""
    X, y = blobs(60)
    model = LSPC()
    fitted = Recalibrated(model, "vector").fit(X, y)
    assert not hasattr(model, "classes_")
    np.testing.assert_array_equal(fitted.estimator_.scores(X), LSPC().fit(X, y).scores(X))


def test_groups_are_kept_together():
    X, y = blobs(90)
    fitted = Recalibrated(LSPC(), "temperature").fit(X, y, groups=np.arange(90) // 3)
    assert fitted.calibrators_[0].floor == 1 / 32


def test_other_class_shares_come_after_the_calibration():
    X, y = blobs(90, seed=3)
    fitted = Recalibrated(LSPC(), "vector").fit(X, y)
    new, P = np.array([0.1, 0.2, 0.7]), fitted.predict_proba(X)
    expected = P * new / (np.bincount(y) / 90)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(X, class_prior=new), expected)
    np.testing.assert_allclose(fitted.predict_log_proba(X, class_prior=new), np.log(expected))
    np.testing.assert_array_equal(fitted.predict(X, class_prior=new), expected.argmax(axis=1))
    np.testing.assert_allclose(fitted.decision_function(X, class_prior=new), np.log(expected))
    np.testing.assert_allclose(fitted.predict_proba(1000 * X[:1], class_prior=new)[0], new)
    assert estimate_class_prior(fitted, X) == pytest.approx(fitted.class_prior_, abs=0.05)
    with pytest.raises(ValueError, match="there are 3 classes"):
        fitted.predict(X, class_prior=[0.5, 0.5])


def test_other_shares_of_labels():
    data = make_rotated_labels(n_labels=3, n_rows=120, n_features=4, noise=0.1, random_state=0)
    fitted = Recalibrated(MultiLabelLSPC(1.5, 0.01, 0.5), "temperature").fit(data.X, data.Y)
    P, prior = fitted.predict_proba(data.X), fitted.class_prior_
    yes, no = P * 0.9 / prior, (1 - P) * 0.1 / (1 - prior)
    np.testing.assert_allclose(fitted.predict_proba(data.X, class_prior=[0.9] * 3), yes / (yes + no), rtol=1e-5)
    assert estimate_class_prior(fitted, data.X) == pytest.approx(prior, abs=0.1)


def test_the_scale_of_weights_does_not_matter():
    X, y = blobs(70)
    P, Q = (
        Recalibrated(LSPC(0.5, 0.01), "vector").fit(X, y, sample_weight=np.full(70, scale)).predict_proba(X)
        for scale in (1.0, 0.37)
    )
    np.testing.assert_allclose(P, Q)


def test_class_weights_count_in_the_calibration_too():
    X, y = blobs(200, c=2, intercept_ratio=3.0)
    keep = (y == 0) | (np.arange(200) % 5 == 0)
    fitted = Recalibrated(LSPC(class_weight="balanced"), "vector").fit(X[keep], y[keep])
    assert fitted.predict_proba(1000 * X[:1])[0] == pytest.approx([0.5, 0.5])


def test_task_columns_and_tasks():
    data = make_related_tasks(n_tasks=4, random_state=0)
    model = MultiTaskLSPC(0.7, 0.01, 0.5)
    by_argument = Recalibrated(model, "temperature", by_task=True).fit(data.X, data.y, tasks=data.task)
    column = np.column_stack([data.X, data.task])
    by_column = Recalibrated(clone(model).set_params(task_column=-1), "temperature", by_task=True).fit(column, data.y)
    P = by_argument.predict_proba(data.X, tasks=data.task)
    np.testing.assert_allclose(P, by_column.predict_proba(column))
    assert by_argument.score(data.X, data.y, tasks=data.task) > 0.7
    unseen = by_argument.predict_proba(data.X[:3], tasks="new")
    np.testing.assert_allclose(unseen, by_argument.estimator_.predict_proba(data.X[:3], tasks="new"))


def test_tasks_that_are_miscalibrated_in_two_ways():
    """The classes are the same function of x in both tasks, but in one of them 30 % of the labels are noise.

    The model takes the tasks for one, and is too careful in the first and too bold in the second.
    """
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(2600, 2)), np.arange(2600) % 2
    y = (X[:, 0] > 0).astype(int)
    y = np.where((task == 1) & (rng.random(2600) < 0.3), 1 - y, y)
    model = MultiTaskLSPC(0.7, 0.01, 1.0, calibration="temperature")
    rows, new = slice(600), slice(600, None)
    losses = []
    for by_task in (True, False):
        fitted = Recalibrated(model, by_task=by_task).fit(X[rows], y[rows], tasks=task[rows])
        P = fitted.predict_proba(X[new], tasks=task[new])[np.arange(2000), y[new]]
        losses.append([-np.log(P[task[new] == t]).mean() for t in (0, 1)])
        if by_task:
            assert fitted.setting_.group_pull <= 1000
            slopes = fitted.calibrators_[0].W[:, 0, 0]
            assert slopes[0] > 1.5 * slopes[1]
            assert fitted.scores_[fitted.method_] < fitted.scores_[None] - 0.01
    assert losses[0][0] < losses[1][0] - 0.02  # both on new rows
    assert losses[0][1] < losses[1][1] - 0.005


def test_labels():
    data = make_rotated_labels(n_labels=4, n_rows=150, n_features=5, noise=0.1, random_state=0)
    Y = data.Y.astype(float)
    Y[np.random.default_rng(0).random(Y.shape) < 0.2] = np.nan
    model = MultiLabelLSPC(1.5, 0.01, 0.5, random_state=0, threshold="auto")
    fitted = Recalibrated(model, "temperature").fit(data.X, Y)
    P, D = fitted.predict_proba(data.X), fitted.decision_function(data.X)
    assert P.shape == D.shape == fitted.heldout_proba_.shape == (150, 4)
    np.testing.assert_allclose(D, np.log(P) - np.log(1 - P), atol=1e-6)
    np.testing.assert_array_equal(fitted.predict(data.X), fitted.threshold_ < P)
    assert fitted.score(data.X, data.Y) > 0.5
    known, H = ~np.isnan(Y), fitted.heldout_proba_
    entries = -np.log(np.where(Y == 1, H, 1 - H)[known])
    assert fitted.scores_["temperature"] == pytest.approx(entries.mean(), rel=0.02)


def test_labels_of_several_widths():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    Y = np.empty((120, 3), dtype=object)
    Y[:, 0] = np.where(X[:, 0] > 0, "yes", "no")
    Y[:, 1] = np.array(["low", "middle", "high"])[np.digitize(X[:, 1] + 0.5 * rng.normal(size=120), [-0.5, 0.5])]
    Y[:, 2] = np.where(X.sum(axis=1) > 0, "yes", "no")
    fitted = Recalibrated(MultiLabelLSPC(0.7, 0.01, 0.0), "vector").fit(X, Y)
    P = fitted.predict_proba(X)
    assert [p.shape for p in P] == [(120, 2), (120, 3), (120, 2)]
    assert all(np.allclose(p.sum(axis=1), 1) for p in P)
    assert (fitted.predict(X) == Y).mean() > 0.8


def test_in_a_pipeline_and_with_frames():
    pandas = pytest.importorskip("pandas")
    X, y = blobs(60)
    frame = pandas.DataFrame(X, columns=["u", "v"])
    model = make_pipeline(StandardScaler(), Recalibrated(LSPC())).fit(frame, y)
    assert model.predict_proba(frame).shape == (60, 3)
    fitted = Recalibrated(LSPC().set_output(transform="pandas")).fit(frame, y)
    assert list(fitted.predict_proba(frame).columns) == [0, 1, 2]
    assert list(fitted.feature_names_in_) == ["u", "v"]


def test_errors_say_what_to_do():
    X, y = blobs(30)
    with pytest.raises(TypeError, match="held-out predictions"):
        Recalibrated(LogisticRegression()).fit(X, y)
    with pytest.raises(TypeError, match="pipeline that ends in one"):
        Recalibrated(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, y)
    with pytest.raises(TypeError, match="Use Abstaining around"):
        Recalibrated(Abstaining(LSPC(), cost=0.1)).fit(X, y)
    with pytest.raises(ValueError, match="cv='loo'"):
        Recalibrated(LSPC(0.5, 0.01, calibration=None, cv=None)).fit(X, y)
    with pytest.raises(ValueError, match="method='platt' is not known"):
        Recalibrated(LSPC(), "platt").fit(X, y)
    with pytest.raises(ValueError, match="method='platt' is not known"):
        Recalibrated(LSPC(), ("vector", "platt")).fit(X, y)
    with pytest.raises(ValueError, match="method=3 is not known"):
        Recalibrated(LSPC(), 3).fit(X, y)
    with pytest.raises(ValueError, match="by_task=True needs a multi-task model"):
        Recalibrated(LSPC(), by_task=True).fit(X, y)
    with pytest.raises(ValueError, match="is not a multi-task model"):
        Recalibrated(LSPC()).fit(X, y).predict(X, tasks=1)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([Recalibrated(LSPC(0.7, 0.01)), Recalibrated(LSSVC(0.5, 0.01), "dirichlet")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.skipif(not (DATA / "satimage.npz").exists(), reason="satimage.npz is not there")
def test_satimage_of_an_lssvm_gains():
    data = load("satimage", DATA)
    order = np.random.default_rng(0).permutation(len(data.X))[:1600]
    X, y = StandardScaler().fit_transform(np.asarray(data.X, dtype=float)[order]), data.y[order]
    fitted = Recalibrated(LSSVC(1.0, 1e-4)).fit(X[:600], y[:600])
    new, old = fitted.predict_proba(X[600:]), fitted.estimator_.predict_proba(X[600:])
    own = np.arange(1000), np.searchsorted(fitted.classes_, y[600:])
    assert -np.log(new[own]).mean() < -np.log(old[own]).mean() + 0.005


# ------------------------------------------------------------------- the table


def test_a_registered_family_is_a_value_of_method(monkeypatch):
    class Even:
        def proba(self, given):
            return np.full_like(given.P, 1 / given.P.shape[1])

    X, y = blobs(90, 3)
    with pytest.raises(ValueError, match=r"method='even' is not known: use one of \['auto', None, .*'dirichlet'\]"):
        Recalibrated(LSPC(), method="even").fit(X, y)
    monkeypatch.setitem(FAMILIES, "even", Family(lambda sample, setting, near: Even()))
    model = Recalibrated(LSPC(), method="even").fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X[:3]), 1 / 3)
    assert model.method_ == "even"
    several = Recalibrated(LSPC(), method=["even", "temperature"]).fit(X, y)
    assert list(several.scores_) == [None, "temperature", "even"]
    assert several.method_ != "even"


def test_the_docstring_names_every_family():
    names = ", ".join(['"auto"', *(f'"{name}"' for name in FAMILIES if name)])
    assert f"{names}, or None" in " ".join(Recalibrated.__doc__.split())
