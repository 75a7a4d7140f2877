"""Related regression tasks: how much they have in common, their intercepts, and linear functions."""

import numpy as np
import pytest

from leastwise.datasets import make_related_tasks

BOTH = pytest.mark.parametrize("function", ["smooth", "linear"])


@pytest.fixture
def points():
    return np.random.default_rng(5).normal(size=(200, 3))


def draw(n_tasks=4, n_rows=5, **more):
    return make_related_tasks(n_tasks, n_rows, **{"kind": "regression", "n_features": 3, "random_state": 0, **more})


def moments(points, draws, **more):
    """Mean products of the functions of all pairs of tasks, over points and draws."""
    T = 4
    total = np.zeros((T, T))
    for seed in range(draws):
        data = draw(T, 1, random_state=seed, **more)
        F = np.array([data.mean(points, t) - data.intercept[t] for t in range(T)])
        total += F @ F.T / len(points)
    return total / draws, data.correlation


# ---------------------------------------------------------------- relatedness


@BOTH
@pytest.mark.parametrize("relatedness", [0.0, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("more", [{}, {"n_groups": 2, "reversed_tasks": 1, "offset": 3.0}])
def test_functions_correlate_by_the_relatedness(points, function, relatedness, more):
    points, draws = points[:60], 400 if function == "linear" else 150  # a linear one has fewer weights to average
    found, claimed = moments(points, draws, function=function, relatedness=relatedness, **more)
    size = np.mean(points**2) if function == "linear" else 1.0
    np.testing.assert_allclose(found / size, claimed, atol=0.15)
    if not more:
        np.testing.assert_array_equal(claimed, relatedness + (1 - relatedness) * np.eye(4))


@BOTH
def test_full_relatedness_is_one_function(points, function):
    data = draw(function=function, relatedness=1, reversed_tasks=1)
    for t in (1, 2):
        np.testing.assert_allclose(data.mean(points, t), data.mean(points, 0))
    np.testing.assert_allclose(data.mean(points, 3), -data.mean(points, 0))


@BOTH
@pytest.mark.parametrize("relatedness", [0.0, 0.6])
def test_noise_is_around_the_mean(function, relatedness):
    data = draw(3, 10_000, function=function, relatedness=relatedness, offset=2.0, noise=0.5)
    residual = data.y - data.mean(data.X, data.task)
    for t in range(3):
        assert residual[data.task == t].mean() == pytest.approx(0, abs=0.02)
        assert residual[data.task == t].std() == pytest.approx(0.5, rel=0.03)


# ----------------------------------------------------------------- intercepts


@BOTH
def test_intercepts_shift_what_is_the_same_without(points, function):
    without, shifted = draw(function=function), draw(function=function, offset=2.0)
    np.testing.assert_array_equal(without.intercept, np.zeros(4))
    np.testing.assert_array_equal(without.X, shifted.X)
    np.testing.assert_allclose(shifted.y - without.y, shifted.intercept[shifted.task])
    for t in range(4):
        np.testing.assert_allclose(shifted.mean(points, t) - without.mean(points, t), shifted.intercept[t])
    task = np.arange(200) % 4
    np.testing.assert_allclose(shifted.mean(points, task) - without.mean(points, task), shifted.intercept[task])


def test_intercepts_have_the_deviation_asked_for():
    data = draw(2000, 1, offset=3.0, relatedness=1)
    assert data.intercept.std() == pytest.approx(3, rel=0.06)
    assert data.intercept.mean() == pytest.approx(0, abs=0.3)


def test_without_noise_the_mean_is_the_target():
    data = draw(noise=0, offset=1.0, function="linear")
    np.testing.assert_array_equal(data.mean(data.X, data.task), data.y)


# --------------------------------------------------------------------- linear


def test_linear_functions_are_their_weights(points):
    data = draw(function="linear", offset=1.0, reversed_tasks=1)
    assert data.coef.shape == (4, 3)
    for t in range(4):
        np.testing.assert_allclose(data.mean(points, t), points @ data.coef[t] + data.intercept[t])


def test_weights_are_found_from_rows():
    data = draw(2, 4000, function="linear", offset=2.0, noise=0.1)
    for t in range(2):
        rows = data.task == t
        found, *_ = np.linalg.lstsq(np.column_stack([data.X[rows], np.ones(4000)]), data.y[rows], rcond=None)
        np.testing.assert_allclose(found, [*data.coef[t], data.intercept[t]], atol=0.01)


def test_linear_classes(points):
    data = make_related_tasks(3, n_features=3, n_classes=3, function="linear", noise=1.0, random_state=0)
    L = np.log(data.posterior(points, 1))
    ratio = L[:, 1:] - L[:, :1]
    weights, *_ = np.linalg.lstsq(points, ratio, rcond=None)
    np.testing.assert_allclose(points @ weights, ratio, atol=1e-9)
    assert data.coef is None


def test_only_linear_regression_has_weights():
    assert draw().coef is None


# --------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offset": -1}, "offset=-1 must be 0 or more"),
        ({"offset": np.nan}, "offset=nan must be 0 or more"),
        ({"offset": 1.0, "kind": "classification"}, "offset=1.0 is for regression"),
        ({"function": "cubic"}, r"function='cubic' is unknown: use one of \['smooth', 'linear'\]"),
    ],
)
def test_wrong_arguments_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        draw(**changes)
