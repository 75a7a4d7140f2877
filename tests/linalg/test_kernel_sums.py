"""Sums of kernels: "rbf+linear" and its like, against the explicit sum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import rbf, sum_kernel
from scipy import sparse

from leastwise import LSPC, LSSVC, LSSVR, MultiTaskLSSVR
from leastwise.problem.kernels import Sum, resolve_kernel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(25, 3)) + np.array([5, 0, -2])
NEW = RNG.normal(size=(8, 3))
Y = X @ [1.0, -2, 0.5] + np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=25)
WEIGHTS = pytest.mark.parametrize("weight", [0.0, 0.1, 1.0, 10.0, np.inf])


def svr(**changes):
    given = {"sigma": 1.5, "alpha": 0.01, "kernel": "rbf+linear", "linear_weight": 2.0, "random_state": 0}
    return LSSVR(**{**given, **changes})


def laplace(A, B, sigma):
    return np.array([[np.exp(-np.abs(a - b).sum() / sigma) for b in B] for a in A])


@WEIGHTS
def test_a_sum_is_the_explicit_sum(weight):
    kernel = resolve_kernel("rbf+linear").fitted(X).with_linear_weight(weight)
    np.testing.assert_allclose(kernel(X, X, 1.3), sum_kernel(X, X, 1.3, weight, X), atol=1e-10)
    np.testing.assert_allclose(kernel(NEW, X, 1.3), sum_kernel(NEW, X, 1.3, weight, X), atol=1e-10)


def test_sums_of_two_and_three():
    two = resolve_kernel("rbf+laplace").fitted(X)
    np.testing.assert_allclose(two(NEW, X, 1.3), rbf(NEW, X, 1.3) + laplace(NEW, X, 1.3), atol=1e-10)
    three = resolve_kernel("rbf+laplace+linear").fitted(X).with_linear_weight(0.5)
    expected = sum_kernel(NEW, X, 1.3, 0.5, X) + laplace(NEW, X, 1.3)
    np.testing.assert_allclose(three(NEW, X, 1.3), expected, atol=1e-10)


@pytest.mark.parametrize("name", ["linear+rbf", "rbf + linear", " rbf+ linear "])
def test_order_and_blanks_do_not_matter(name):
    kernel = resolve_kernel(name).fitted(X)
    np.testing.assert_allclose(kernel(NEW, X, 1.0), sum_kernel(NEW, X, 1.0, 1.0, X), atol=1e-10)


def test_the_linear_part_is_one_on_average():
    kernel = resolve_kernel("rbf+linear").fitted(X).with_linear_weight(np.inf)
    assert np.diagonal(kernel(X, X, 1.0)).mean() == pytest.approx(1)


@given(st.integers(0, 10_000), st.floats(0, 100), st.floats(0.2, 5))
@settings(max_examples=20)
def test_sums_are_positive_semi_definite(seed, weight, sigma):
    rows = np.random.default_rng(seed).normal(size=(12, 3))
    for name in ("rbf+linear", "laplace+linear", "rbf+laplace", "rbf+laplace+linear"):
        K = resolve_kernel(name).fitted(rows).with_linear_weight(weight)(rows, rows, sigma)
        np.testing.assert_allclose(K, K.T)
        assert np.linalg.eigvalsh(K).min() > -1e-9 * np.linalg.eigvalsh(K).max()


def test_linear_weight():
    kernel = resolve_kernel("rbf+linear")
    assert isinstance(kernel, Sum)
    assert [kernel.with_linear_weight(w).weight for w in (0, 0.5, 7, np.inf)] == [0, 0.5, 7, np.inf]
    assert kernel.with_linear_weight(0).weights == (1.0, 0.0)
    assert kernel.with_linear_weight(np.inf).weights == (0.0, 1.0)
    assert resolve_kernel("rbf+laplace").weight is None
    assert kernel.with_linear_weight(np.inf).with_linear_weight(3).weight == 3


def test_without_a_linear_part_it_is_the_rest():
    a, b = svr(linear_weight=0).fit(X, Y), svr(kernel="rbf").fit(X, Y)
    np.testing.assert_allclose(a.predict(NEW), b.predict(NEW), atol=1e-10)
    np.testing.assert_allclose(a.heldout_prediction_, b.heldout_prediction_, atol=1e-10)


def test_with_nothing_else_it_is_the_linear_kernel_in_another_unit():
    height = np.mean(np.sum((X - X.mean(axis=0)) ** 2, axis=1))
    a = svr(linear_weight=np.inf).fit(X, Y)
    b = svr(kernel="linear", alpha=0.01 * height).fit(X, Y)  # the intercept takes the origin
    np.testing.assert_allclose(a.predict(NEW), b.predict(NEW), atol=1e-8)
    np.testing.assert_allclose(a.heldout_prediction_, b.heldout_prediction_, atol=1e-8)


@WEIGHTS
@pytest.mark.parametrize("bias", ["shared", None])
def test_a_model_of_a_sum_is_that_of_the_explicit_kernel(weight, bias):
    a = svr(linear_weight=weight, bias=bias).fit(X, Y)
    b = svr(kernel=lambda A, B: sum_kernel(A, B, 1.5, weight, X), bias=bias).fit(X, Y)
    np.testing.assert_allclose(a.predict(NEW), b.predict(NEW), atol=1e-8)
    np.testing.assert_allclose(a.heldout_prediction_, b.heldout_prediction_, atol=1e-8)
    np.testing.assert_allclose(a.predict_interval(NEW), b.predict_interval(NEW), atol=1e-8)
    assert a.linear_weight_ == weight


@WEIGHTS
@pytest.mark.parametrize("bias", ["task", "shared", 0.3, None])
def test_tasks_with_a_sum(weight, bias):
    task = np.arange(25) % 3
    given = {"sigma": 1.5, "alpha": 0.01, "sharing": 0.5, "bias": bias}
    a = MultiTaskLSSVR(kernel="rbf+linear", linear_weight=weight, **given).fit(X, Y, tasks=task)
    explicit = {"kernel": lambda A, B: sum_kernel(A, B, 1.5, weight, X)}
    b = MultiTaskLSSVR(**explicit, **given).fit(X, Y, tasks=task)
    for who in (0, 1, 2, "new"):
        np.testing.assert_allclose(a.predict(NEW, who), b.predict(NEW, who), atol=1e-7)
    np.testing.assert_allclose(a.heldout_prediction_, b.heldout_prediction_, atol=1e-7)


def test_classes_with_a_sum():
    y = (np.median(Y) < Y).astype(int)
    given = {"sigma": 1.5, "alpha": 0.01, "calibration": None}
    a = LSSVC(kernel="rbf+linear", linear_weight=2.0, **given).fit(X, y)
    b = LSSVC(kernel=lambda A, B: sum_kernel(A, B, 1.5, 2.0, X), **given).fit(X, y)
    np.testing.assert_allclose(a.scores(NEW), b.scores(NEW), atol=1e-8)
    assert np.isfinite(LSSVC(kernel="rbf+linear", random_state=0).fit(X, y).predict_proba(NEW)).all()


@pytest.mark.parametrize("weight", [0.0, 2.0, np.inf])
def test_few_centres_with_a_sum(weight):
    a = svr(linear_weight=weight, centers=X[:9]).fit(X, Y)
    b = svr(kernel=lambda A, B: sum_kernel(A, B, 1.5, weight, X), centers=X[:9]).fit(X, Y)
    np.testing.assert_allclose(a.predict(NEW), b.predict(NEW), atol=1e-4)
    np.testing.assert_allclose(a.heldout_prediction_, b.heldout_prediction_, atol=1e-4)
    assert svr(linear_weight=weight, n_centers=9).fit(X, Y).centers_.shape == (9, 3)


def test_a_grid_of_weights_is_chosen_from():
    model = svr(linear_weight=[0.1, 5, np.inf], scoring="r2").fit(X, X @ [1.0, -2, 0.5])
    assert model.linear_weight_ in (0.1, 5, np.inf)
    again = svr(linear_weight=model.linear_weight_).fit(X, X @ [1.0, -2, 0.5])
    np.testing.assert_allclose(model.predict(NEW), again.predict(NEW), atol=1e-10)
    np.testing.assert_allclose(model.heldout_prediction_, again.heldout_prediction_, atol=1e-10)


def test_a_kernel_that_is_no_such_sum_has_no_weight():
    for kernel in ("rbf", "linear", "rbf+laplace"):
        assert svr(kernel=kernel).fit(X, Y).linear_weight_ is None


def test_a_line_is_a_line_far_away():
    """What the linear part is for: beyond the data the Gaussian knows nothing."""
    line = X @ [1.0, -2, 0.5]
    far = X + 50
    model = svr(linear_weight=np.inf, alpha=1e-8).fit(X, line)
    np.testing.assert_allclose(model.predict(far), far @ [1.0, -2, 0.5], rtol=1e-4)


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array])
def test_sparse_rows_stay_where_they_are(form):
    """About zero instead of about the mean, and of the same average height."""
    rows, new = np.where(np.abs(X) < 1, 0, X), np.where(np.abs(NEW) < 1, 0, NEW)
    height = np.mean(np.sum(rows**2, axis=1))
    model = svr().fit(form(rows), Y)
    b = svr(kernel=lambda A, B: rbf(A, B, 1.5) + 2.0 * A @ B.T / height).fit(rows, Y)
    np.testing.assert_allclose(model.predict(form(new)), b.predict(new), atol=1e-8)
    np.testing.assert_allclose(model.predict(new), b.predict(new), atol=1e-8)
    np.testing.assert_allclose(model.heldout_prediction_, b.heldout_prediction_, atol=1e-8)


def test_a_model_of_dense_rows_predicts_sparse_ones():
    model, S = svr().fit(X, Y), sparse.csr_matrix(NEW)
    np.testing.assert_allclose(model.predict(S), model.predict(NEW), atol=1e-10)
    np.testing.assert_allclose(model.predict_interval(S), model.predict_interval(NEW), atol=1e-8)


def test_float32():
    kernel = resolve_kernel("rbf+linear").fitted(X.astype(np.float32)).with_linear_weight(2.0)
    K = kernel(X.astype(np.float32), X.astype(np.float32), 1.3)
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, sum_kernel(X, X, 1.3, 2.0, X), atol=1e-4)


def test_all_rows_equal_have_no_height():
    kernel = resolve_kernel("rbf+linear").fitted(np.ones((4, 2)))
    np.testing.assert_allclose(kernel(np.ones((4, 2)), np.ones((4, 2)), 1.0), 1)


@pytest.mark.parametrize(
    "name",
    ["rbf+foo", "linear+linear", "rbf+rbf", "linear+", "+rbf", "+", "rbf+poly", "rbf+precomputed", "RBF+linear"],
)
@pytest.mark.parametrize("make", [LSSVR, LSSVC, LSPC])
def test_bad_names_are_refused(name, make):
    message = r"parts of a sum must be different kernels out of \['laplace', 'linear', 'rbf'\], such as 'rbf\+linear'"
    with pytest.raises(ValueError, match=message):
        make(kernel=name).fit(X, Y > 0)


@pytest.mark.parametrize("weight", [-1, -0.1, np.nan, None, "much", [], [1, -1], True, [[1, 2]]], ids=str)
@pytest.mark.parametrize("kernel", ["rbf+linear", "rbf"])
def test_bad_weights_are_refused(weight, kernel):
    with pytest.raises(ValueError, match=r"linear_weight=.*a number from 0 to inf"):
        svr(linear_weight=weight, kernel=kernel).fit(X, Y)


def test_weights_of_numpy_are_numbers():
    plain = svr(linear_weight=2.0).fit(X, Y).predict(NEW)
    for weight in (np.float32(2), np.int64(2), 2, np.array([2.0]), np.array(2.0), (2.0,)):
        np.testing.assert_allclose(svr(linear_weight=weight).fit(X, Y).predict(NEW), plain)


def test_lspc_takes_sums_too():
    """The kernel is one for all models; without a weight to choose it has that of the sum."""
    y = (np.median(Y) < Y).astype(int)
    a = LSPC(1.5, 0.01, kernel="rbf+linear", calibration=None).fit(X, y)
    b = LSPC(1.5, 0.01, kernel=lambda A, B: sum_kernel(A, B, 1.5, 1.0, X), calibration=None).fit(X, y)
    np.testing.assert_allclose(a.scores(NEW), b.scores(NEW), atol=1e-8)
