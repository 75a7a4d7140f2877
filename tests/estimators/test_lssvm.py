"""LS-SVMs of one task against the long way: the paper's systems, refits through the public surface, limits."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import blobs
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import lssvc_system, lssvr_system, rbf, sum_kernel
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneGroupOut, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leastwise import LSPC, LSSVC, LSSVR
from leastwise.linalg.krylov import Krylov, three_steps

N = 30


def wave(n=N, d=2, seed=0, noise=0.2):
    """A smooth function of two of the columns, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(1.5 * X[:, 0]) + 0.5 * X[:, -1] + 2 + noise * rng.normal(size=n)


X, Y = wave()
NEW = np.random.default_rng(1).normal(size=(15, 2))
LABELS = np.where(Y > 2, 1, -1)
TWO = np.column_stack([Y, -3 * X[:, 1] + Y**2])
KERNELS = ["rbf", "linear", "laplace", "poly"]
BIASES = pytest.mark.parametrize("bias", ["shared", None])


def svr(**changes):
    return LSSVR(**{"sigma": 1.2, "alpha": 0.01, "kernel": "rbf", "linear_weight": 1.0, "random_state": 0, **changes})


def svc(**changes):
    given = {"sigma": 1.2, "alpha": 0.01, "linear_weight": 1.0, "calibration": None, "random_state": 0, **changes}
    return LSSVC(**given)


def fixed_svr(**changes):
    return svr(cv=None, **changes)


def fixed_svc(**changes):
    return svc(cv=None, **changes)


# --------------------------------------------------------------- the paper's systems


@pytest.mark.parametrize("gamma", [0.1, 3.0, 200.0])
def test_regression_is_the_system_11_and_the_decision_12(gamma):
    b, alpha = lssvr_system(rbf(X, X, 1.2), Y, gamma)
    model = fixed_svr(alpha=1 / (N * gamma)).fit(X, Y)
    np.testing.assert_allclose(model.coef_[:, 0] * model.unit_, alpha, atol=1e-9)
    np.testing.assert_allclose(model.intercept_[0] * model.unit_, b, atol=1e-10)
    np.testing.assert_allclose(model.predict(NEW), rbf(NEW, X, 1.2) @ alpha + b, atol=1e-10)


@pytest.mark.parametrize("gamma", [0.1, 3.0, 200.0])
def test_classification_is_the_system_5_and_the_decision_6(gamma):
    b, alpha = lssvc_system(rbf(X, X, 1.2), LABELS, gamma)
    model = fixed_svc(alpha=1 / (N * gamma)).fit(X, LABELS)
    np.testing.assert_allclose(model.coef_[:, 1], alpha * LABELS, atol=1e-9)
    np.testing.assert_allclose(model.intercept_[1], b, atol=1e-10)
    decision = rbf(NEW, X, 1.2) @ (alpha * LABELS) + b
    np.testing.assert_allclose(model.scores(NEW)[:, 1], decision, atol=1e-10)
    np.testing.assert_array_equal(model.predict(NEW), np.sign(decision))


@pytest.mark.parametrize("classify", [False, True])
def test_the_three_steps_of_section_2_3_are_the_model(classify):
    gamma, K = 3.0, rbf(X, X, 1.2)
    sign = LABELS if classify else np.ones(N)
    right = np.ones(N) if classify else Y
    H = sign[:, None] * sign * K + np.eye(N) / gamma

    def solve(B):
        return Krylov(np.linalg.solve(H, B), 1, True, np.zeros(B.shape[1]), 1)

    alpha, b, _ = three_steps(solve, sign[:, None].astype(float), right[:, None])
    model = (fixed_svc if classify else fixed_svr)(alpha=1 / (N * gamma)).fit(X, LABELS if classify else Y)
    unit = 1.0 if classify else model.unit_
    np.testing.assert_allclose(model.coef_[:, -1] * unit, sign * alpha[:, 0], atol=1e-9)
    np.testing.assert_allclose(model.intercept_[-1] * unit, b[0, 0], atol=1e-10)


def test_without_an_intercept_it_is_kernel_ridge():
    a = np.linalg.solve(rbf(X, X, 1.2) + 0.01 * N * np.eye(N), Y)
    model = fixed_svr(bias=None).fit(X, Y)
    assert model.intercept_.tolist() == [0]
    np.testing.assert_allclose(model.predict(NEW), rbf(NEW, X, 1.2) @ a, atol=1e-10)


def test_two_scores_are_one_with_both_signs():
    model = svc(cv=None).fit(X, LABELS)
    F = model.scores(NEW)
    np.testing.assert_allclose(F[:, 0], -F[:, 1], atol=1e-12)
    np.testing.assert_allclose(model.coef_[:, 0], -model.coef_[:, 1], atol=1e-12)


def test_every_class_is_told_from_the_rest():
    rows, y = blobs(30)
    model = fixed_svc().fit(rows, y)
    for k in range(3):
        alone = fixed_svc().fit(rows, y == k)
        np.testing.assert_allclose(model.scores(NEW)[:, k], alone.scores(NEW)[:, 1], atol=1e-11)


@pytest.mark.parametrize("classes", [2, 3])
def test_with_an_intercept_the_classifier_is_lspc_in_other_units(classes):
    """Targets of -1 and 1 are those of 0 and 1, stretched and moved; the intercept takes the move."""
    rows, y = blobs(36, classes)
    plain = LSPC(1.2, 0.01, norm="function", bias="shared", calibration=None).fit(rows, y)
    model = svc().fit(rows, y)
    np.testing.assert_allclose((model.scores(NEW) + 1) / 2, plain.scores(NEW), atol=1e-10)
    np.testing.assert_allclose((model.heldout_scores_ + 1) / 2, plain.heldout_scores_, atol=1e-9)


@pytest.mark.parametrize("calibration", ["temperature", None])
def test_probabilities_are_those_of_lspc(calibration):
    rows, y = blobs(60)
    plain = LSPC(1.2, 0.01, norm="function", bias="shared", calibration=calibration).fit(rows, y)
    model = svc(calibration=calibration).fit(rows, y)
    np.testing.assert_allclose(model.predict_proba(NEW), plain.predict_proba(NEW), atol=2e-3)


@pytest.mark.parametrize("calibration", ["blend", "temperature", "isotonic", None])
def test_predict_is_the_most_probable_class(calibration):
    rows, y = blobs(60)
    names = np.array(["a", "b", "c"])[y]
    model = svc(calibration=calibration).fit(rows, names)
    P = model.predict_proba(NEW)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(model.predict(NEW), model.classes_[P.argmax(axis=1)])


def test_probabilities_are_honest():
    rows, y = blobs(400, 2, intercept_ratio=2.0, seed=3)
    model = LSSVC(random_state=0).fit(rows[:200], y[:200])
    constant = log_loss(y[200:], np.full(200, y[:200].mean()))
    assert log_loss(y[200:], model.predict_proba(rows[200:])) < constant


# ------------------------------------------------------------------- held-out rows


def labels_of(cv, groups):
    """Splits of the training rows."""
    if groups is not None:
        return list(LeaveOneGroupOut().split(X, Y, groups))
    return [(np.delete(np.arange(N), i), np.array([i])) for i in range(N)] if cv == "loo" else list(cv.split(X))


HOLD = {
    "loo": ("loo", None),
    "folds": (KFold(5, shuffle=True, random_state=0), None),
    "uneven folds": (KFold(4), None),
    "groups": ("loo", np.arange(N) // 4),
}
WEIGHTS = np.random.default_rng(5).uniform(0.3, 3, N)
hold = pytest.mark.parametrize("held", HOLD)
weighted = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weights"])


@hold
@BIASES
@weighted
@pytest.mark.parametrize("target", [Y, TWO], ids=["one", "two"])
def test_heldout_predictions_are_those_of_refits(held, bias, weights, target):
    cv, groups = HOLD[held]
    model = svr(bias=bias, cv=cv).fit(X, target, sample_weight=weights, groups=groups)
    for train, test in labels_of(cv, groups):
        part = None if weights is None else weights[train]
        refit = fixed_svr(bias=bias).fit(X[train], target[train], sample_weight=part)
        np.testing.assert_allclose(model.heldout_prediction_[test], refit.predict(X[test]), atol=1e-8)


@hold
@BIASES
@weighted
@pytest.mark.parametrize("classes", [2, 3])
def test_heldout_scores_are_those_of_refits(held, bias, weights, classes):
    cv, groups = HOLD[held]
    y = np.digitize(Y, np.quantile(Y, np.arange(1, classes) / classes))
    model = svc(bias=bias, cv=cv).fit(X, y, sample_weight=weights, groups=groups)
    for train, test in labels_of(cv, groups):
        part = None if weights is None else weights[train]
        refit = fixed_svc(bias=bias).fit(X[train], y[train], sample_weight=part)
        np.testing.assert_allclose(model.heldout_scores_[test], refit.scores(X[test]), atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_heldout_predictions_of_every_kernel(kernel):
    model = svr(kernel=kernel).fit(X, Y)
    for i in range(0, N, 5):
        rest = np.arange(N) != i
        refit = fixed_svr(kernel=kernel).fit(X[rest], Y[rest])
        np.testing.assert_allclose(model.heldout_prediction_[i], refit.predict(X[i : i + 1])[0], rtol=1e-6)


@BIASES
@pytest.mark.parametrize("weight", [0.0, 1.0, np.inf])
def test_heldout_predictions_of_a_sum_keep_the_scale_of_all_rows(bias, weight):
    """The linear part is about the mean of the training rows; where a row is held out, it stays what it was."""
    model = svr(bias=bias, kernel="rbf+linear", linear_weight=weight).fit(X, Y)
    for i in range(0, N, 5):
        rest = np.arange(N) != i
        kernel = {"kernel": lambda A, B: sum_kernel(A, B, 1.2, weight, X)}
        refit = fixed_svr(bias=bias, **kernel).fit(X[rest], Y[rest])
        np.testing.assert_allclose(model.heldout_prediction_[i], refit.predict(X[i : i + 1])[0], atol=1e-8)


@pytest.mark.parametrize("cv", ["loo", 5], ids=str)
@BIASES
def test_a_held_out_row_takes_its_centre_along(cv, bias):
    """Few centres: a centre that is a held-out row is no centre then."""
    model = svr(bias=bias, n_centers=10, cv=KFold(5) if cv == 5 else cv).fit(X, Y)
    splits = labels_of(KFold(5) if cv == 5 else "loo", None)
    for train, test in splits:
        kept = np.array([c for c in model.centers_ if not (X[test] == c).all(axis=1).any()])
        refit = fixed_svr(bias=bias, centers=kept).fit(X[train], Y[train])
        np.testing.assert_allclose(model.heldout_prediction_[test], refit.predict(X[test]), atol=1e-7)


@BIASES
def test_given_centres_stay(bias):
    model = svr(bias=bias, centers=NEW).fit(X, Y)
    np.testing.assert_array_equal(model.centers_, NEW)
    for i in range(0, N, 4):
        rest = np.arange(N) != i
        refit = fixed_svr(bias=bias, centers=NEW).fit(X[rest], Y[rest])
        np.testing.assert_allclose(model.heldout_prediction_[i], refit.predict(X[i : i + 1])[0], atol=1e-7)


def test_a_number_of_folds_holds_every_row_out_once():
    model = svr(cv=5).fit(X, Y)
    assert np.isfinite(model.heldout_prediction_).all()
    assert 0.4 < r2_score(Y, model.heldout_prediction_) < 1


def test_rows_of_weight_zero_are_no_rows():
    w = np.ones(N)
    w[::5] = 0
    model = svr().fit(X, Y, sample_weight=w)
    rest = svr().fit(X[w > 0], Y[w > 0])
    np.testing.assert_allclose(model.predict(NEW), rest.predict(NEW), atol=1e-10)
    np.testing.assert_allclose(model.heldout_prediction_[w > 0], rest.heldout_prediction_, atol=1e-9)
    np.testing.assert_allclose(model.heldout_prediction_[w == 0], rest.predict(X[w == 0]), atol=1e-9)


def test_search_points_hold_the_best_one():
    model = svr(sigma=[0.5, 1.0, 2.0], alpha=[1e-3, 1e-1], scoring="r2").fit(X, Y)
    assert len(model.cv_results_["mean_test_score"]) >= 6
    best = model.cv_results_["mean_test_score"].max()
    assert best == pytest.approx(r2_score(Y, model.heldout_prediction_), abs=1e-5)


# ------------------------------------------------------- properties and limits

FORMS = st.fixed_dictionaries(
    {
        "kernel": st.sampled_from(["rbf", "laplace", "linear"]),
        "bias": st.sampled_from(["shared", None]),
        "sigma": st.floats(0.5, 3),
        "alpha": st.floats(1e-3, 1),
    }
)
SEEDS = st.integers(0, 10_000)


@given(FORMS, SEEDS)
@settings(max_examples=15)
def test_weights_are_repeated_rows(form, seed):
    rows, y = wave(20, seed=seed)
    times = np.random.default_rng(seed).integers(0, 4, 20)
    times[:3] += 1
    one = svr(**form).fit(rows, y, sample_weight=times)
    other = svr(**form).fit(np.repeat(rows, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(one.predict(NEW), other.predict(NEW), atol=1e-7)
    used = times > 0
    np.testing.assert_allclose(
        np.repeat(one.heldout_prediction_[used], times[used]), other.heldout_prediction_, atol=1e-6
    )


def test_weights_are_repeated_rows_with_a_sum_of_kernels():
    """The kernel of the default: its linear part has an origin and a scale that come from the rows."""
    times = np.random.default_rng(0).integers(1, 4, N)
    one = svr(kernel="rbf+linear").fit(X, Y, sample_weight=times)
    other = svr(kernel="rbf+linear").fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
    np.testing.assert_allclose(one.predict(NEW), other.predict(NEW), atol=1e-8)


def test_rows_of_weight_zero_are_no_rows_with_a_sum_of_kernels():
    w = np.ones(N)
    w[::5] = 0
    one = fixed_svr(kernel="rbf+linear").fit(X, Y, sample_weight=w)
    other = fixed_svr(kernel="rbf+linear").fit(X[w > 0], Y[w > 0])
    np.testing.assert_allclose(one.predict(NEW), other.predict(NEW), atol=1e-10)


@given(FORMS, SEEDS)
@settings(max_examples=10)
def test_order_of_rows_does_not_matter(form, seed):
    rows, y = wave(20, seed=seed)
    order = np.random.default_rng(seed).permutation(20)
    one, other = svr(**form).fit(rows, y), svr(**form).fit(rows[order], y[order])
    np.testing.assert_allclose(one.predict(NEW), other.predict(NEW), atol=1e-8)
    np.testing.assert_allclose(one.heldout_prediction_[order], other.heldout_prediction_, atol=1e-8)


@given(FORMS, SEEDS, st.floats(-1e3, 1e3).filter(lambda v: abs(v) > 1e-3))
@settings(max_examples=15)
def test_another_unit_of_y_is_another_unit_of_the_predictions(form, seed, unit):
    rows, y = wave(20, seed=seed)
    one, other = svr(**form).fit(rows, y), svr(**form).fit(rows, unit * y)
    np.testing.assert_allclose(other.predict(NEW), unit * one.predict(NEW), rtol=1e-8, atol=1e-9 * abs(unit))
    np.testing.assert_allclose(
        other.predict_interval(NEW, 0.7),
        np.sort(unit * one.predict_interval(NEW, 0.7), axis=1),
        rtol=1e-6,
        atol=1e-7 * abs(unit),
    )


@given(SEEDS, st.floats(-1e4, 1e4))
@settings(max_examples=10)
def test_with_an_intercept_another_zero_of_y_is_another_zero_of_the_predictions(seed, shift):
    rows, y = wave(20, seed=seed)
    one, other = svr().fit(rows, y), svr().fit(rows, y + shift)
    np.testing.assert_allclose(other.predict(NEW), shift + one.predict(NEW), atol=1e-7)
    np.testing.assert_allclose(other.predict_interval(NEW), shift + one.predict_interval(NEW), atol=1e-6)


@pytest.mark.parametrize("unit", [1e300, 1e-300, 1e-320, 2.0**1000], ids=str)
@pytest.mark.parametrize("scoring", ["r2", "cautious", "mae"])
def test_extreme_units_of_y(unit, scoring):
    """The same choice as in an ordinary unit, wherever a double can say it."""
    given = {"alpha": [1e-3, 1e-1, 1e3], "scoring": scoring}
    plain = svr(**given).fit(X, Y)
    model = svr(**given).fit(X, unit * Y)
    assert model.alpha_ == plain.alpha_
    atol = 1e-3 if unit < 1e-307 else 1e-9
    np.testing.assert_allclose(model.predict(NEW) / unit, plain.predict(NEW), atol=atol)


@pytest.mark.parametrize("unit", [1e300, 1e-300])
def test_squares_that_no_double_can_hold_are_refused(unit):
    with pytest.raises(ValueError, match=r"scoring='mse' .*divide y by that, or use scoring='r2'"):
        svr(alpha=[1e-3, 1e-1], scoring="mse").fit(X, unit * Y)


@pytest.mark.parametrize("unit", [1e-6, 1e-4, 1e-2, 1e3, 1e6])
@pytest.mark.parametrize("scoring", ["r2", "mse", "mae", "neg_mean_squared_error", "neg_root_mean_squared_error"])
def test_the_choice_does_not_depend_on_the_unit_of_y(unit, scoring):
    """Errors of kilometres and of millimetres are compared in the same way."""
    given = {"alpha": [1e-3, 1e-1, 1e3], "sigma": [0.5, 1.5], "scoring": scoring}
    plain, other = svr(**given).fit(X, Y), svr(**given).fit(X, unit * Y)
    assert (other.sigma_, other.alpha_) == (plain.sigma_, plain.alpha_)


@pytest.mark.parametrize("scale", [1e-9, 0.7, 1.0, 3.0, 1e8])
def test_the_unit_is_a_power_of_two_near_the_largest_value(scale):
    model = fixed_svr().fit(X, scale * Y)
    mantissa, _ = np.frexp(model.unit_)
    assert mantissa == 0.5
    assert 1 <= np.abs(scale * Y).max() / model.unit_ < 2


def test_several_outputs_are_each_alone():
    both = svr().fit(X, TWO)
    assert both.predict(NEW).shape == (15, 2)
    assert both.heldout_prediction_.shape == (N, 2)
    for k in (0, 1):
        alone = svr().fit(X, TWO[:, k])
        np.testing.assert_allclose(both.predict(NEW)[:, k], alone.predict(NEW), atol=1e-10)
        np.testing.assert_allclose(both.heldout_prediction_[:, k], alone.heldout_prediction_, atol=1e-9)


def test_a_table_of_one_column_stays_a_table():
    model = svr().fit(X, Y[:, None])
    assert model.predict(NEW).shape == (15, 1)
    assert model.predict_interval(NEW).shape == (15, 1, 2)
    np.testing.assert_allclose(model.predict(NEW)[:, 0], svr().fit(X, Y).predict(NEW))


def test_an_output_far_smaller_than_another_keeps_its_digits():
    both = svr().fit(X, np.column_stack([1e12 * Y, 1e-12 * Y]))
    P = both.predict(NEW)
    np.testing.assert_allclose(P[:, 1] * 1e12, P[:, 0] / 1e12, rtol=1e-9)


def test_a_large_ridge_leaves_the_mean_and_a_small_one_interpolates():
    np.testing.assert_allclose(fixed_svr(alpha=1e9).fit(X, Y).predict(NEW), Y.mean(), atol=1e-6)
    np.testing.assert_allclose(fixed_svr(sigma=0.3, alpha=1e-13).fit(X, Y).predict(X), Y, atol=1e-6)


def test_all_rows_twice_is_the_same_model_where_copies_are_held_out_together():
    once, twice = svr().fit(X, Y), svr().fit(np.tile(X, (2, 1)), np.tile(Y, 2), groups="duplicates")
    np.testing.assert_allclose(twice.predict(NEW), once.predict(NEW), atol=1e-9)
    np.testing.assert_allclose(twice.heldout_prediction_, np.tile(once.heldout_prediction_, 2), atol=1e-8)


def test_class_weights_are_weights_of_rows():
    model = fixed_svc(class_weight={-1: 3.0}).fit(X, LABELS)
    other = fixed_svc().fit(X, LABELS, sample_weight=np.where(LABELS < 0, 3.0, 1.0))
    np.testing.assert_allclose(model.scores(NEW), other.scores(NEW), atol=1e-12)


# ------------------------------------------------------------------ kernels, types


@pytest.mark.parametrize("n_centers", [None, 8])
def test_callable_and_precomputed_equal_the_named_kernel(n_centers):
    fixed = {"n_centers": n_centers, "alpha": [0.01, 0.1]}
    named = svr(**fixed).fit(X, Y)
    given = svr(kernel=lambda A, B: rbf(A, B, 1.2), **fixed).fit(X, Y)
    ready = svr(kernel="precomputed", **fixed).fit(rbf(X, X, 1.2), Y)
    K = rbf(NEW, X, 1.2)
    np.testing.assert_allclose(given.predict(NEW), named.predict(NEW), atol=1e-8)
    np.testing.assert_allclose(ready.predict(K), named.predict(NEW), atol=1e-8)
    np.testing.assert_allclose(given.predict_interval(NEW), named.predict_interval(NEW), atol=1e-8)
    even = {"adaptive": False}  # the widths are learned from features, which a precomputed kernel hides
    np.testing.assert_allclose(ready.predict_interval(K, **even), named.predict_interval(NEW, **even), atol=1e-8)
    np.testing.assert_array_equal(ready.predict_interval(K), ready.predict_interval(K, **even))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplace", "poly"])
def test_sparse_equals_dense(kernel):
    S = sparse.csr_matrix(np.where(np.abs(X) < 0.4, 0, X))
    dense, thin = svr(kernel=kernel).fit(S.toarray(), Y), svr(kernel=kernel).fit(S, Y)
    new = sparse.csr_matrix(NEW)
    np.testing.assert_allclose(thin.predict(new), dense.predict(NEW), atol=1e-8)
    np.testing.assert_allclose(thin.predict_interval(new), dense.predict_interval(NEW), atol=1e-7)
    np.testing.assert_allclose(dense.predict(new), dense.predict(NEW), atol=1e-10)


def test_float32_is_returned_as_float32():
    model = svr().fit(X.astype(np.float32), Y.astype(np.float32))
    assert model.coef_.dtype == model.centers_.dtype == np.float64
    np.testing.assert_allclose(model.predict(NEW.astype(np.float32)), svr().fit(X, Y).predict(NEW), atol=1e-5)
    np.testing.assert_allclose(model.predict_interval(NEW), svr().fit(X, Y).predict_interval(NEW), atol=1e-2)
    classes = svc().fit(X.astype(np.float32), LABELS)
    assert classes.intercept_.dtype == np.float32
    assert classes.scores(NEW.astype(np.float32)).dtype == np.float32


def test_targets_may_be_whole_numbers_or_truths():
    whole = fixed_svr().fit(X, np.round(Y).astype(int))
    np.testing.assert_allclose(whole.predict(NEW), fixed_svr().fit(X, np.round(Y)).predict(NEW))
    truth = fixed_svr().fit(X, Y > 2)
    np.testing.assert_allclose(truth.predict(NEW), fixed_svr().fit(X, (Y > 2).astype(float)).predict(NEW))


# ------------------------------------------------------------------------- krylov

BIG, BIG_Y = wave(150, 3, seed=4)
BIG_NEW = np.random.default_rng(2).normal(size=(20, 3))


@BIASES
@pytest.mark.parametrize("kernel", ["rbf", "linear", "rbf+linear"])
@pytest.mark.parametrize("weights", [None, np.random.default_rng(0).uniform(0.2, 4, 150)], ids=["equal", "weights"])
def test_krylov_is_the_exact_solver_to_tolerance(bias, kernel, weights):
    fixed = {"bias": bias, "kernel": kernel, "alpha": 1e-3}
    exact = fixed_svr(solver="cholesky", **fixed).fit(BIG, BIG_Y, sample_weight=weights)
    model = fixed_svr(solver="krylov", tol=1e-11, **fixed).fit(BIG, BIG_Y, sample_weight=weights)
    np.testing.assert_allclose(model.predict(BIG_NEW), exact.predict(BIG_NEW), atol=1e-7)
    assert model.residual_ <= 1e-11
    assert model.n_iter_ >= 1


def test_krylov_solves_for_all_classes_at_once():
    rows, y = blobs(120)
    exact, model = (fixed_svc(solver=s, tol=1e-10).fit(rows, y) for s in ("cholesky", "krylov"))
    np.testing.assert_allclose(model.scores(NEW), exact.scores(NEW), atol=1e-7)


def test_krylov_holds_a_tenth_out_and_makes_intervals_and_probabilities_of_it():
    model = svr(solver="krylov").fit(BIG, BIG_Y)
    held = np.flatnonzero(~np.isnan(model.heldout_prediction_))
    assert 10 <= len(held) <= 20
    rest = np.setdiff1d(np.arange(150), held)
    refit = fixed_svr().fit(BIG[rest], BIG_Y[rest])
    np.testing.assert_allclose(model.heldout_prediction_[held], refit.predict(BIG[held]), atol=1e-3)
    width = model.predict_interval(BIG_NEW, coverage=0.8)
    half = np.sort(np.abs(BIG_Y - model.heldout_prediction_)[held])[int(np.ceil(0.8 * (len(held) + 1))) - 1]
    np.testing.assert_allclose(width, model.predict(BIG_NEW)[:, None] + half * np.array([-1, 1]), atol=1e-8)
    rows, y = blobs(200)
    classes = LSSVC(1.2, 0.01, solver="krylov", random_state=0).fit(rows, y)
    np.testing.assert_allclose(classes.predict_proba(NEW).sum(axis=1), 1)
    assert (~np.isnan(classes.heldout_scores_[:, 0])).sum() == 20


@pytest.mark.parametrize("calibration", ["blend", "temperature", "isotonic", None])
def test_krylov_with_few_rows_of_a_class_calibrates(calibration):
    """The tenth that is held out may have no row of some class."""
    rng = np.random.default_rng(0)
    for seed in range(20):
        rows = rng.normal(size=(20, 2))
        y = (np.arange(20) >= 15).astype(int)
        model = svc(solver="krylov", calibration=calibration, random_state=seed).fit(rows, y)
        np.testing.assert_allclose(model.predict_proba(NEW).sum(axis=1), 1)


@pytest.mark.parametrize("cv", [2, 5, 10, KFold(4)], ids=str)
@pytest.mark.parametrize("make", [svr, svc])
def test_krylov_with_few_large_folds(make, cv):
    """A fold is more than a tenth of the rows: one of them, or a part of one, is held out all the same."""
    y = BIG_Y if make is svr else (BIG_Y > 2).astype(int)
    model = make(solver="krylov", cv=cv).fit(BIG, y)
    assert np.isfinite(model.predict(BIG_NEW)).all()


def test_warnings_point_at_the_line_that_fits(monkeypatch):
    monkeypatch.setattr("leastwise.solvers.work.RANK", 5)
    with pytest.warns(ConvergenceWarning) as caught:
        svr(sigma=0.5, alpha=1e-8, solver="krylov", max_iter=1).fit(BIG, BIG_Y)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="y is constant") as caught:
        svr().fit(X, np.ones(N))
    assert caught[0].filename == __file__


def test_float32_rows_with_large_quantities():
    """Values that a single-precision number holds, and whose squares it does not."""
    given = {"alpha": [1e-3, 1e3], "scoring": "r2"}
    model = svr(**given).fit(X.astype(np.float32), 1e25 * Y)
    assert model.alpha_ == svr(**given).fit(X.astype(np.float32), Y).alpha_


def test_krylov_with_too_few_groups_speaks_of_itself():
    """Rows in two groups, each with a class of its own: neither can be spared."""
    rows, y = np.random.default_rng(0).normal(size=(16, 2)), np.arange(16) // 8
    with pytest.raises(ValueError, match=r"(?=.*krylov)(?!.*sgd)"):
        svc(solver="krylov").fit(rows, y, groups=y)


def test_krylov_holds_out_a_group_that_can_be_spared():
    rows, groups = np.random.default_rng(0).normal(size=(16, 2)), np.r_[np.zeros(15), 1]
    model = svr(solver="krylov").fit(rows, np.arange(16.0), groups=groups)
    np.testing.assert_array_equal(np.isnan(model.heldout_prediction_), groups == 0)


def test_krylov_that_stops_early_says_how_far_it_got(monkeypatch):
    monkeypatch.setattr("leastwise.solvers.work.RANK", 5)  # a preconditioner of all rows would do it in one step
    with pytest.warns(ConvergenceWarning, match=r"after 1 iterations with a residual of .*raise max_iter, tol or al"):
        model = svr(sigma=0.5, alpha=1e-8, solver="krylov", max_iter=1).fit(BIG, BIG_Y)
    assert model.n_iter_ == 1
    assert model.residual_ > 1e-6
    assert np.isfinite(model.predict(BIG_NEW)).all()


def test_a_factor_is_one_step():
    model = svr().fit(X, Y)
    assert model.n_iter_ == 1
    assert not hasattr(model, "residual_")


@pytest.mark.parametrize("cv", ["loo", None])
def test_short_of_memory_the_solver_is_krylov(monkeypatch, cv):
    monkeypatch.setenv("LEASTWISE_MEMORY", "300KB")
    model = svr(cv=cv, search_rows=60, tol=1e-10).fit(BIG, BIG_Y)
    assert model.n_iter_ >= 1
    exact = fixed_svr(solver="cholesky")
    with pytest.raises(MemoryError, match=r"n_centers=.* would fit"):
        exact.fit(BIG, BIG_Y)
    monkeypatch.delenv("LEASTWISE_MEMORY")
    np.testing.assert_allclose(model.predict(BIG_NEW), exact.fit(BIG, BIG_Y).predict(BIG_NEW), atol=1e-6)


def test_short_of_memory_the_parameters_are_searched_on_some_rows(monkeypatch):
    monkeypatch.setenv("LEASTWISE_MEMORY", "300KB")
    model = LSSVR(search_rows=60, random_state=0).fit(BIG, BIG_Y)
    assert model.score(BIG, BIG_Y) > 0.5
    assert model.cv_results_["n_rows"].max() <= 60


# ------------------------------------------------------------------------ pruning


def numbers(kept, rows):
    """Which of the rows were kept."""
    return np.array([int(np.flatnonzero((rows == c).all(axis=1))[0]) for c in kept])


@BIASES
@pytest.mark.parametrize(("prune", "left"), [(0.5, 15), (10, 20), (0.1, 27), (1, 29), (np.int64(4), 26)])
def test_a_pruned_model_is_that_of_the_rows_that_are_left(bias, prune, left):
    model = svr(bias=bias, prune=prune, scoring="r2").fit(X, Y)
    kept = numbers(model.centers_, X)
    assert len(np.unique(kept)) == left
    assert model.pruning_["n_rows"] == N
    assert model.pruning_["n_kept"] == left
    alone = svr(bias=bias, alpha=0.01 * N / left).fit(X[kept], Y[kept])
    np.testing.assert_allclose(model.predict(NEW), alone.predict(NEW), atol=1e-9)
    assert model.alpha_ == pytest.approx(0.01 * N / left)
    np.testing.assert_allclose(model.heldout_prediction_[kept], alone.heldout_prediction_, atol=1e-8)
    gone = np.setdiff1d(np.arange(N), kept)
    np.testing.assert_allclose(model.heldout_prediction_[gone], alone.predict(X[gone]), atol=1e-9)


def test_what_pruning_cost():
    whole, model = svr(scoring="r2").fit(X, Y), svr(prune=0.5, scoring="r2").fit(X, Y)
    assert set(model.pruning_) == {"n_rows", "n_kept", "score", "pruned_score"}
    assert model.pruning_["score"] == pytest.approx(r2_score(Y, whole.heldout_prediction_))
    assert model.pruning_["pruned_score"] == pytest.approx(r2_score(Y, model.heldout_prediction_))
    assert not hasattr(whole, "pruning_")


def test_the_first_row_to_go_is_that_of_the_smallest_weight():
    whole, model = fixed_svr().fit(X, Y), svr(prune=1).fit(X, Y)
    assert np.setdiff1d(np.arange(N), numbers(model.centers_, X)) == np.abs(whole.coef_[:, 0]).argmin()


@pytest.mark.filterwarnings("ignore:prune=")
def test_a_pruned_classifier():
    rows, y = blobs(60)
    model = svc(calibration="blend", prune=0.5).fit(rows, y)
    kept = numbers(model.centers_, rows)
    alone = fixed_svc(alpha=0.02).fit(rows[kept], y[kept])
    np.testing.assert_allclose(model.scores(NEW), alone.scores(NEW), atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(NEW).sum(axis=1), 1)
    assert model.pruning_["n_kept"] == 30


def test_pruning_a_precomputed_kernel():
    named = svr(prune=0.5).fit(X, Y)
    ready = svr(prune=0.5, kernel="precomputed").fit(rbf(X, X, 1.2), Y)
    np.testing.assert_array_equal(ready.center_indices_, numbers(named.centers_, X))
    np.testing.assert_allclose(ready.predict(rbf(NEW, X, 1.2)), named.predict(NEW), atol=1e-9)


def test_pruning_with_weights_and_rows_of_weight_zero():
    w = WEIGHTS.copy()
    w[::6] = 0
    model = svr(prune=0.4).fit(X, Y, sample_weight=w)
    kept = numbers(model.centers_, X)
    assert (w[kept] > 0).all()
    rho = 0.01 * w.sum()
    alone = fixed_svr(alpha=rho / w[kept].sum()).fit(X[kept], Y[kept], sample_weight=w[kept])
    np.testing.assert_allclose(model.predict(NEW), alone.predict(NEW), atol=1e-9)


def test_pruning_without_anything_held_out():
    model = fixed_svr(prune=0.5).fit(X, Y)
    held = svr(prune=0.5).fit(X, Y)
    np.testing.assert_allclose(model.predict(NEW), held.predict(NEW), atol=1e-10)


@pytest.mark.filterwarnings("ignore:prune=")
@pytest.mark.parametrize("prune", [28, 29, 0.99, 1000])
@pytest.mark.parametrize("make", [svr, svc])
def test_pruning_almost_everything_leaves_a_model(make, prune):
    """As with tasks, of which each keeps two rows: of one row nothing is known when it is held out."""
    model = make(prune=prune).fit(X, Y if make is svr else LABELS)
    assert 1 <= len(model.centers_) <= 2
    assert np.isfinite(model.predict(NEW)).all()


# ------------------------------------------------------------ the rest of the world


@pytest.mark.parametrize("make", [svr, svc])
def test_clone_parameters_and_representation(make):
    model = make(prune=0.3, cv=5)
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert "prune=0.3" in repr(again)
    again.set_params(alpha=0.5, kernel="laplace")
    assert (again.alpha, again.kernel) == (0.5, "laplace")
    with pytest.raises(ValueError, match="Invalid parameter"):
        again.set_params(gamma=1)


@pytest.mark.parametrize("way", [pickle, joblib], ids=["pickle", "joblib"])
def test_models_are_kept_in_files(way, tmp_path):
    model = svr().fit(X, Y)
    before = model.predict_interval(NEW)
    with (tmp_path / "model").open("wb") as file:
        way.dump(model, file)
    with (tmp_path / "model").open("rb") as file:
        again = way.load(file)
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(again.predict_interval(NEW), before)
    np.testing.assert_array_equal(copy.deepcopy(model).predict_interval(NEW), before)


def test_a_file_does_not_grow_by_asking_for_intervals():
    model = svr().fit(X, Y)
    before = len(pickle.dumps(model))
    model.predict_interval(NEW)
    assert len(pickle.dumps(model)) == before


def test_grid_search_and_cross_validation():
    search = GridSearchCV(svr(), {"alpha": [1e-4, 1e-2, 1e4], "kernel": ["rbf", "linear"]}, cv=3).fit(X, Y)
    assert search.best_params_["alpha"] < 1e4
    P = cross_val_predict(svr(), X, Y, cv=KFold(3))
    train, test = next(iter(KFold(3).split(X)))
    np.testing.assert_allclose(P[test], svr().fit(X[train], Y[train]).predict(X[test]))
    assert len(cross_val_score(svc(), X, LABELS, cv=3)) == 3


def test_pipeline_is_the_model_of_scaled_rows():
    pipe = make_pipeline(StandardScaler(), svr()).fit(50 * X + 7, Y)
    scaler = StandardScaler().fit(X)
    by_hand = svr().fit(scaler.transform(X), Y)
    np.testing.assert_allclose(pipe.predict(50 * NEW + 7), by_hand.predict(scaler.transform(NEW)), atol=1e-9)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame):
    table = frame({"a": X[:, 0], "b": X[:, 1]})
    model = svr().fit(table, Y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    new = frame({"a": NEW[:, 0], "b": NEW[:, 1]})
    np.testing.assert_array_equal(model.predict(new), svr().fit(X, Y).predict(NEW))
    with pytest.raises(ValueError, match="same order"):
        model.predict(new[["b", "a"]])


def test_series_and_frames_of_targets():
    np.testing.assert_array_equal(svr().fit(X, pd.Series(Y)).predict(NEW), svr().fit(X, Y).predict(NEW))
    np.testing.assert_array_equal(svr().fit(X, pd.DataFrame(TWO)).predict(NEW), svr().fit(X, TWO).predict(NEW))


def test_the_score_is_the_explained_variance():
    model = svr().fit(X, Y)
    assert model.score(NEW, np.arange(15.0)) == pytest.approx(r2_score(np.arange(15.0), model.predict(NEW)))


def test_fits_are_reproducible():
    kinds = [{"n_centers": 8}, {"cv": 4}, {"prune": 0.5}]
    for changes in kinds:
        a, b = (svr(**changes).fit(X, Y).predict(NEW) for _ in range(2))
        np.testing.assert_array_equal(a, b)


def test_what_is_given_is_not_changed():
    rows, y, w = X.copy(), Y.copy(), WEIGHTS.copy()
    svr(prune=0.5).fit(rows, y, sample_weight=w).predict_interval(rows)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(y, Y)
    np.testing.assert_array_equal(w, WEIGHTS)
    K = rbf(X, X, 1.2)
    before = K.copy()
    svr(kernel="precomputed", alpha=[0.01, 0.1]).fit(K, Y).predict_interval(K)
    np.testing.assert_array_equal(K, before)


def test_verbose_prints_the_search(capsys):
    svr(sigma=[0.5, 1.0], verbose=1).fit(X, Y)
    assert "[LSSVR]" in capsys.readouterr().out


@pytest.mark.parametrize("make", [svr, svc])
def test_not_fitted(make):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        make().predict(X)


def test_everything_is_chosen_by_default():
    rows, y = wave(80, seed=2)
    new, truth = wave(400, seed=3)
    model = LSSVR(random_state=0).fit(rows, y)
    assert model.score(new, truth) > 0.7
    rows, y = blobs(90)
    assert LSSVC(random_state=0).fit(rows, y).score(rows, y) > 0.6


def test_pruning_that_ruins_a_model_says_so():
    """Of noisy classes the rows of the largest weights are the noise."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(120, 3))
    y = rows[:, 0] + rows[:, 1] + 1.5 * rng.normal(size=120) > 0
    with pytest.warns(UserWarning, match=r"prune=0.5 degrades this model: log_loss .* use n_centers=60"):
        LSSVC(random_state=0, prune=0.5).fit(rows, y)
