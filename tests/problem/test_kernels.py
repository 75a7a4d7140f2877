"""Kernels against loops."""

import numpy as np
import pytest
from reference import rbf
from scipy import sparse

from leastwise.problem.kernels import KERNELS, resolve_kernel, squared_distances


@pytest.fixture
def rows(rng):
    return rng.normal(size=(12, 4)), rng.normal(size=(7, 4))


FORMULAS = {
    "rbf": lambda x, y, s: np.exp(-np.sum((x - y) ** 2) / (2 * s**2)),
    "laplace": lambda x, y, s: np.exp(-np.sum(np.abs(x - y)) / s),
    "linear": lambda x, y, s: x @ y,
    "poly": lambda x, y, s: (x @ y / s**2 + 0.5) ** 2,
    "sigmoid": lambda x, y, s: np.tanh(x @ y / s**2 + 0.5),
}


@pytest.mark.filterwarnings("ignore:The sigmoid kernel")
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", FORMULAS)
def test_values_are_the_formula(name, container, rows):
    X, Y = rows
    kernel = resolve_kernel(name, degree=2, coef0=0.5)
    expected = [[FORMULAS[name](x, y, 1.7) for y in Y] for x in X]
    np.testing.assert_allclose(kernel(container(X), container(Y), 1.7), expected, atol=1e-12)


@pytest.mark.filterwarnings("ignore:The sigmoid kernel")
@pytest.mark.parametrize("name", FORMULAS)
def test_one_set_of_pairs_serves_every_sigma(name, rows):
    X, Y = rows
    kernel = resolve_kernel(name)
    pairs = kernel.pairs(X, Y)
    before = pairs.copy()
    for sigma in (0.3, 1.0, 5.0):
        np.testing.assert_allclose(kernel.values(pairs, sigma), kernel(X, Y, sigma), atol=1e-12)
    np.testing.assert_array_equal(pairs, before)
    out = kernel.values(pairs, 2.0, out=pairs)
    assert out is pairs


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_distances_of_few_rows_are_those_of_many(rng, n, dtype):
    X, Y = (rng.normal(size=(m, 4)).astype(dtype) + 1000 for m in (n, 7))
    found = squared_distances(X, Y)
    assert found.dtype == dtype
    expected = ((X[:, None].astype(float) - Y.astype(float)) ** 2).sum(axis=2)
    np.testing.assert_allclose(found, expected, rtol=1e-10 if dtype == np.float64 else 1e-2)


def test_distances_keep_their_digits_far_from_the_origin(rng):
    X = rng.normal(size=(20, 3))
    near, far = squared_distances(X, X), squared_distances(X + 1e7, X + 1e7)
    np.testing.assert_allclose(far, near, atol=1e-6)
    np.testing.assert_allclose(near, ((X[:, None] - X[None]) ** 2).sum(-1), atol=1e-12)
    assert (np.diagonal(near) == 0).all()
    assert (squared_distances(X, X.copy()) >= 0).all()


def test_gram_matrices_are_positive_semi_definite(rows):
    X, _ = rows
    for name in ("rbf", "laplace", "linear", "poly"):
        kernel = resolve_kernel(name)
        assert kernel.definite
        K = kernel(X, X, 1.0)
        np.testing.assert_allclose(K, K.T)
        assert np.linalg.eigvalsh(K).min() > -1e-9


def test_natural_lengths(rng):
    X = rng.normal(size=(40, 3))
    upper = np.triu_indices(40, 1)
    kernel = resolve_kernel("rbf")
    pairs = kernel.pairs(X, X)[upper]
    expected = np.median([np.linalg.norm(X[i] - X[j]) for i, j in zip(*upper, strict=True)])
    assert kernel.length(pairs, np.empty(0)) == pytest.approx(expected)
    assert resolve_kernel("poly").length(np.empty(0), (X**2).sum(axis=1)) == pytest.approx(
        np.sqrt((X**2).sum(axis=1).mean())
    )


def test_unknown_kernel_names_the_known_ones():
    with pytest.raises(ValueError, match=r"Unknown kernel 'gauss'.*'rbf'"):
        resolve_kernel("gauss")
    with pytest.raises(ValueError, match="degree=0"):
        resolve_kernel("poly", degree=0)
    assert set(KERNELS) == {"rbf", "laplace", "linear", "poly", "sigmoid", "precomputed"}


def test_a_function_of_the_user(rows):
    X, Y = rows
    kernel = resolve_kernel(lambda A, B: rbf(A, B, 1.0))
    np.testing.assert_allclose(kernel(X, Y, 99.0), rbf(X, Y, 1.0))
    with pytest.raises(ValueError, match=r"shape \(12,\).*\(12, 7\)"):
        resolve_kernel(lambda A, B: np.ones(len(A)))(X, Y, 1.0)
    with pytest.raises(ValueError, match="not finite"):
        resolve_kernel(lambda A, B: np.full((len(A), len(B)), np.nan))(X, Y, 1.0)
