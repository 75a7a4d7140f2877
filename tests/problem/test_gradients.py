"""Mean squared gradients against finite differences."""

import numpy as np
import pytest

from leastwise.problem import gradients
from leastwise.problem.coupling import Shared
from leastwise.problem.gradients import POWER, gradient_parts, mean_squared_gradient, weights_of
from leastwise.problem.kernels import RBF, Laplace, Linear, Poly, Sum, resolve_kernel

RNG = np.random.default_rng(0)
N, D = 30, 4
X = RNG.normal(size=(N, D))
Z = np.column_stack([np.sin(X[:, 0]) + X[:, 1], X[:, 1] ** 2])
W = RNG.uniform(0.5, 2, N)
W /= W.mean()
ALPHA, SIGMA = 1e-2, 1.7


def by_differences(kernel, couple=lambda K: K, between=lambda K: K, step=1e-6):
    """Solve the weighted ridge, and differentiate its function at every row numerically."""
    K = couple(kernel(X, X, SIGMA))
    target = Z - np.average(Z, axis=0, weights=W)
    A = np.linalg.solve(K + N * ALPHA * np.diag(1 / W), target)

    def f(rows):
        return between(kernel(rows, X, SIGMA)) @ A

    total = np.zeros(D)
    for j in range(D):
        e = np.zeros(D)
        e[j] = step
        G = (f(X + e) - f(X - e)) / (2 * step)
        total[j] = W @ np.sum(G**2, axis=1) / W.sum()
    return total


def kernels():
    mixed = resolve_kernel("rbf+linear", 3, 1.0).fitted(X, W)
    return {"rbf": RBF(), "rbf+linear": mixed, "weighted sum": mixed.with_linear_weight(0.3)}


@pytest.mark.parametrize("name", list(kernels()))
def test_gradients_are_those_of_the_fitted_function(name):
    kernel = kernels()[name]
    found = mean_squared_gradient(kernel, SIGMA, X, Z, W, ALPHA, lambda K: K)
    np.testing.assert_allclose(found, by_differences(kernel), rtol=1e-6)


def test_laplace_has_a_kink_at_every_row_that_does_not_count():
    """The derivative of |x - x| is 0 at a row itself; central differences agree."""
    found = mean_squared_gradient(Laplace(), SIGMA, X, Z, W, ALPHA, lambda K: K)
    np.testing.assert_allclose(found, by_differences(Laplace(), step=1e-7), rtol=1e-5)


@pytest.mark.parametrize("sharing", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("name", list(kernels()))
def test_coupled_tasks(name, sharing):
    kernel, task = kernels()[name], np.arange(N) % 3
    matrix = Shared(np.ones(3)).at(sharing)

    def couple(K):
        return matrix.couple(K, task, task)

    found = mean_squared_gradient(kernel, SIGMA, X, Z, W, ALPHA, couple)
    np.testing.assert_allclose(found, by_differences(kernel, couple, couple), rtol=1e-6)


def test_weights_are_repeated_rows():
    count = np.arange(N) % 3 + 1
    w = count / count.mean()
    repeated = np.repeat(np.arange(N), count)
    one = mean_squared_gradient(RBF(), SIGMA, X, Z, w, ALPHA, lambda K: K)
    other = mean_squared_gradient(RBF(), SIGMA, X[repeated], Z[repeated], np.ones(len(repeated)), ALPHA, lambda K: K)
    np.testing.assert_allclose(one, other, rtol=1e-8)


def test_weights_have_a_mean_square_of_1_and_keep_the_order():
    weights = weights_of(np.array([4.0, 0.25, 0.0, 1.0]))
    assert np.mean(weights**2) == pytest.approx(1)
    assert weights[2] == 0
    assert weights[0] / weights[3] == pytest.approx(4**POWER)
    np.testing.assert_array_equal(weights_of(np.zeros(3)), 1)


def test_kernels_without_distances_have_no_metric():
    assert gradient_parts(Linear()) is None
    assert gradient_parts(Poly()) is None
    assert gradient_parts(Sum((RBF(), Poly()), (1.0, 1.0))) is None
    assert len(gradient_parts(resolve_kernel("laplace+linear", 3, 1.0))) == 2


def test_many_outputs_are_replaced_by_their_main_components():
    """Outputs that are combinations of two have the gradients of these two."""
    mixing = RNG.normal(size=(2, 20))
    many = mean_squared_gradient(RBF(), SIGMA, X, Z @ mixing, W, ALPHA, lambda K: K)
    each = [mean_squared_gradient(RBF(), SIGMA, X, (Z @ mixing)[:, [c]], W, ALPHA, lambda K: K) for c in range(20)]
    np.testing.assert_allclose(many, np.sum(each, axis=0), rtol=0.1)
    assert np.all(np.sum(each, axis=0) >= many * (1 - 1e-9))  # what is left out only adds


def test_all_components_give_the_same_as_all_outputs(monkeypatch):
    mixing = RNG.normal(size=(2, 20))
    each = [mean_squared_gradient(RBF(), SIGMA, X, (Z @ mixing)[:, [c]], W, ALPHA, lambda K: K) for c in range(20)]
    monkeypatch.setattr(gradients, "ENERGY", 1 - 1e-14)
    many = mean_squared_gradient(RBF(), SIGMA, X, Z @ mixing, W, ALPHA, lambda K: K)
    np.testing.assert_allclose(many, np.sum(each, axis=0), rtol=1e-8)


# ----------------------------------------------- held-out scores of models with weights
