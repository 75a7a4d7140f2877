"""Factors and spectra against explicit inverses."""

import numpy as np
import pytest
from conftest import blobs
from reference import gram_fit, rbf, ridge_fit

from leastwise.linalg.decompositions import (
    cholesky,
    design_spectrum,
    gram_spectrum,
    pivoted_cholesky,
    solve_design,
    solve_gram,
    solve_square,
    square_spectrum,
)
from leastwise.linalg.moments import whitening
from leastwise.linalg.sgd import descend

N = 30


@pytest.fixture
def K():
    X, _ = blobs(N)
    return rbf(X, X, 0.7)


@pytest.fixture
def Z():
    return np.eye(3)[blobs(N)[1]]


@pytest.mark.parametrize("overwrite", [False, True])
def test_cholesky_factor_and_solves(K, rng, overwrite):
    A = K + 0.1 * np.eye(N)
    B = rng.normal(size=(N, 4))
    factor = cholesky(K.copy(), ridge=0.1, overwrite=overwrite)
    assert factor.jitter == 0
    np.testing.assert_allclose(factor.L @ factor.L.T, A, atol=1e-12)
    np.testing.assert_allclose(factor.solve(B), np.linalg.solve(A, B), atol=1e-10)
    np.testing.assert_allclose(factor.whiten(B.T) @ factor.whiten(B.T).T, B.T @ np.linalg.inv(A) @ B, atol=1e-9)
    np.testing.assert_allclose(factor.L.T @ factor.unwhiten(B), B, atol=1e-10)
    np.testing.assert_allclose(factor.inverse_factor() @ factor.L, np.eye(N), atol=1e-10)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_cholesky_reports_its_jitter(overwrite, dtype):
    A = np.ones((5, 5), dtype=dtype)  # rank one
    A[0, 0] -= dtype(1e-3)  # and indefinite
    factor = cholesky(A.copy(), overwrite=overwrite)
    assert factor.jitter >= 1e-3 * 0.5
    assert factor.jitter < 1
    np.testing.assert_allclose(factor.L @ factor.L.T, A + factor.jitter * np.eye(5), atol=1e-5)


def test_cholesky_keeps_its_input(K):
    before = K.copy()
    cholesky(K, ridge=1.0)
    np.testing.assert_array_equal(K, before)


def test_cholesky_gives_up_on_nan():
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        cholesky(np.full((3, 3), np.nan))


@pytest.mark.parametrize("bias", [False, True])
def test_alpha_path_equals_separate_solves(K, Z, bias):
    """Section 4: one eigendecomposition gives the solutions for all ridges."""
    ones = np.ones(N)
    column = ones if bias else None
    spectra = gram_spectrum(K), square_spectrum(K), design_spectrum(K[:, :9])
    for alpha in 10.0 ** np.arange(-5, 2):
        rho = alpha * N
        for spectrum, expected in zip(
            spectra,
            (
                gram_fit(K, Z, ones, alpha, bias),
                ridge_fit(K, Z, ones, alpha, bias=bias),
                ridge_fit(K[:, :9], Z, ones, alpha, bias=bias),
            ),
            strict=True,
        ):
            for got, want in zip(spectrum.coefficients(rho, Z, column), expected, strict=True):
                np.testing.assert_allclose(got, want, atol=1e-7 * (1 + np.abs(want).max()))


@pytest.mark.parametrize("bias", [False, True])
def test_direct_solves(K, Z, bias):
    column = np.ones(N) if bias else None
    A, b, jitter = solve_gram(K.copy(), Z, 0.3 * N, column)
    want_A, want_b = gram_fit(K, Z, np.ones(N), 0.3, bias)
    np.testing.assert_allclose(A, want_A, atol=1e-10)
    np.testing.assert_allclose(b, want_b, atol=1e-10)
    assert jitter == 0
    theta, b, _ = solve_square(K, Z, 0.3 * N, column)
    want_theta, want_b = ridge_fit(K, Z, np.ones(N), 0.3, bias=bias)
    np.testing.assert_allclose(theta, want_theta, atol=1e-10)
    np.testing.assert_allclose(b, want_b, atol=1e-10)


def test_penalised_design_equals_kernel_ridge_when_all_rows_are_centres(K, Z):
    known = whitening(K)
    a, _ = design_spectrum(known.whiten(known.columns(K))).coefficients(0.1 * N, Z)
    got = known.unwhiten(a)
    want, _ = gram_fit(K, Z, np.ones(N), 0.1)
    np.testing.assert_allclose(K @ got, K @ want, atol=1e-7)


def test_wide_and_tall_designs(rng):
    for shape in ((5, 20), (20, 5), (12, 9)):
        Phi, Z = rng.normal(size=shape), rng.normal(size=(shape[0], 2))
        got, _ = design_spectrum(Phi).coefficients(0.5 * shape[0], Z)
        want, _ = ridge_fit(Phi, Z, np.ones(shape[0]), 0.5)
        np.testing.assert_allclose(got, want, atol=1e-10)


def test_indefinite_gram_is_lifted_and_says_so():
    K = np.diag([2.0, 1.0, -0.5])
    spectrum = gram_spectrum(K)
    assert spectrum.jitter == pytest.approx(0.5)
    assert (spectrum.g >= 0).all()
    np.testing.assert_allclose(spectrum.U * spectrum.g @ spectrum.U.T, K + 0.5 * np.eye(3), atol=1e-12)


@pytest.mark.parametrize("weights", ["equal", "unequal"])
def test_sgd_converges_to_the_direct_solution(rng, weights):
    n, b = 400, 12
    X = rng.normal(size=(n, 3))
    Phi = np.tanh(X @ rng.normal(size=(3, b)))
    Z = rng.normal(size=(n, 2)) + X[:, :2]
    w = np.ones(n) if weights == "equal" else rng.uniform(0.2, 2, n)
    w /= w.mean()
    R = np.eye(b)
    batch = lambda rows: (Phi[rows], Z[rows], w[rows])  # noqa: E731
    found = descend(batch, n, R, 0.05, np.arange(200), rng=rng, batch_size=20, max_epochs=60, tol=1e-6)
    want, _ = ridge_fit(Phi, Z, w, 0.05)
    assert found.converged
    assert np.linalg.norm(Phi @ (found.theta - want)) < 1e-5 * np.linalg.norm(Phi @ want)


def test_sgd_says_when_it_has_not_settled(rng):
    Phi, Z, w = rng.normal(size=(50, 5)), rng.normal(size=(50, 1)), np.ones(50)
    found = descend(lambda r: (Phi[r], Z[r], w[r]), 50, np.eye(5), 0.1, np.arange(50), rng=rng, max_epochs=2, tol=0)
    assert not found.converged
    assert found.epochs == 2
    assert found.change > 0


@pytest.mark.parametrize("bias", [False, True])
def test_design_against_its_normal_equations(K, Z, rng, bias):
    """The intercept's column is not penalised, and need not be constant."""
    Phi, column, rho = K[:, :7], rng.uniform(0.5, 2, N), 0.3
    theta, b = solve_design(Phi, Z, rho, column if bias else None)
    whole = np.column_stack([Phi, column]) if bias else Phi
    ridge = rho * np.diag(np.arange(whole.shape[1]) < 7).astype(float)
    expected = np.linalg.solve(whole.T @ whole + ridge, whole.T @ Z)
    np.testing.assert_allclose(theta, expected[:7], atol=1e-9)
    np.testing.assert_allclose(b, expected[7] if bias else 0, atol=1e-9)


def test_pivoted_cholesky_of_full_rank_is_the_matrix(K, rng):
    A = K + 0.1 * np.eye(N)
    L, pivots = pivoted_cholesky(np.diagonal(A), lambda i: A[:, i], N, rng)
    np.testing.assert_allclose(L @ L.T, A, atol=1e-9)
    np.testing.assert_array_equal(np.sort(pivots), np.arange(N))
