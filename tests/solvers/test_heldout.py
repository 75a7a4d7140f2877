"""Every held-out formula against refits."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import blobs
from reference import gram_heldout_by_refits, heldout_by_refits, rbf

from leastwise.linalg.decompositions import design_spectrum, gram_spectrum, square_spectrum
from leastwise.linalg.moments import full_whitening
from leastwise.problem.basis import Design
from leastwise.solvers.heldout import CholeskyHeldout, Folds, Problem, RefitHeldout, SpectralHeldout

N, C = 40, 3
FOLDS = {
    "loo": np.arange(N),
    "five folds": np.arange(N) % 5,
    "groups of unequal size": np.r_[np.arange(30), 50, 50, 60, 60, 60, 70, 70, 70, 70, 70],
    "two copies": np.r_[np.arange(36), 50, 50, 60, 60],
}
CENTERS = np.arange(0, N, 3)
OWN = np.where(np.arange(N) % 3 == 0, np.arange(N) // 3, -1)
WEIGHTS = {"equal": np.ones(N), "unequal": np.random.default_rng(1).uniform(0.2, 3, N)}
CASES = pytest.mark.parametrize(
    ("folds", "weights", "bias", "alpha"),
    [
        pytest.param(f, w, b, a, id=f"{fn}-{wn}-bias={b}-{a}")
        for fn, f in FOLDS.items()
        for wn, w in WEIGHTS.items()
        for b in (False, True)
        for a in (1e-4, 1e-1)
    ],
)


@pytest.fixture
def setting():
    X, y = blobs(N, C)
    return rbf(X, X, 1.0), np.eye(C)[y]


def problem(Z, weights, bias, own, folds):
    root = np.sqrt(weights / weights.mean())
    return Problem(Z * root[:, None], root, bias, own, Folds.from_labels(folds)), root


@CASES
def test_penalty_on_the_function(setting, folds, weights, bias, alpha):
    K, Z = setting
    p, root = problem(Z, weights, bias, None, folds)
    F = SpectralHeldout(p, gram_spectrum(K * root[:, None] * root)).at(alpha).F
    np.testing.assert_allclose(F, gram_heldout_by_refits(K, Z, weights, alpha, folds, bias), atol=1e-9)


@CASES
def test_penalty_on_the_coefficients_own_function_removed(setting, folds, weights, bias, alpha):
    K, Z = setting
    p, root = problem(Z, weights, bias, np.arange(N), folds)
    F = SpectralHeldout(p, square_spectrum(K * root[:, None] * root)).at(alpha).F
    w = weights / weights.mean()
    expected = heldout_by_refits(K, Z, w, alpha, folds, own=np.arange(N), bias=bias, weigh_basis=True)
    np.testing.assert_allclose(F, expected, atol=1e-9)


@CASES
def test_some_rows_are_centres(setting, folds, weights, bias, alpha):
    K, Z = setting
    p, root = problem(Z, weights, bias, OWN, folds)
    F = SpectralHeldout(p, design_spectrum(K[:, CENTERS] * root[:, None])).at(alpha).F
    expected = heldout_by_refits(K[:, CENTERS], Z, weights, alpha, folds, own=OWN, bias=bias)
    np.testing.assert_allclose(F, expected, atol=1e-9)


@CASES
def test_some_rows_are_centres_penalty_on_the_function(setting, folds, weights, bias, alpha):
    K, Z = setting
    penalty = K[np.ix_(CENTERS, CENTERS)] + 1e-8 * np.eye(len(CENTERS))
    p, root = problem(Z, weights, bias, OWN, folds)
    known = full_whitening(penalty)
    design = Design(known.whiten(K[:, CENTERS]), known, root, None, False, True)
    F = SpectralHeldout(p, design.function_spectrum()).at(alpha).F
    expected = heldout_by_refits(K[:, CENTERS], Z, weights, alpha, folds, own=OWN, penalty=penalty, bias=bias)
    np.testing.assert_allclose(F, expected, atol=1e-8)


@CASES
def test_centres_that_are_no_rows(setting, folds, weights, bias, alpha):
    K, Z = setting
    Phi = K[:, :7] + 0.1
    p, root = problem(Z, weights, bias, None, folds)
    F = SpectralHeldout(p, design_spectrum(Phi * root[:, None])).at(alpha).F
    np.testing.assert_allclose(F, heldout_by_refits(Phi, Z, weights, alpha, folds, bias=bias), atol=1e-9)


@pytest.mark.parametrize("folds", FOLDS.values(), ids=FOLDS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("square", [False, True])
@pytest.mark.parametrize("alpha", [1e-4, 1e-1])
def test_cholesky_form_equals_spectral_form(setting, folds, bias, square, alpha):
    """The Neumann series for blocks converges to full precision, even for blocks of an eighth of the rows."""
    K, Z = setting
    p, _ = problem(Z, WEIGHTS["equal"], bias, np.arange(N) if square else None, folds)
    spectrum = square_spectrum(K) if square else gram_spectrum(K)
    expected = SpectralHeldout(p, spectrum).at(alpha).F
    np.testing.assert_allclose(CholeskyHeldout(p, K, square).at(alpha).F, expected, atol=1e-8)


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("folds", FOLDS.values(), ids=FOLDS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("form", ["gram", "square", "columns", "penalised"])
def test_a_decomposition_for_every_fold_equals_the_formulas(setting, weights, folds, bias, form):
    K, Z = setting
    centers, own = CENTERS, OWN
    whole = form in ("gram", "square")
    root = np.sqrt(weights / weights.mean())
    penalty = K[np.ix_(centers, centers)] + 1e-6 * np.eye(len(centers)) if form == "penalised" else None
    column = root if form == "square" else None
    known = None if penalty is None else full_whitening(penalty)
    Phi = K if whole else K[:, centers]
    Phi = Phi if known is None else known.whiten(Phi)
    design = Design(Phi, known, root, column, whole, form in ("gram", "penalised"))
    p, _ = problem(Z, weights, bias, {"gram": None, "square": np.arange(N)}.get(form, own), folds)
    spectral, refits = SpectralHeldout(p, design.function_spectrum()), RefitHeldout(p, design)
    for alpha in (1e-3, 1e-1):
        np.testing.assert_allclose(refits.at(alpha).F, spectral.at(alpha).F, atol=1e-7)


def test_cholesky_form_keeps_the_kernel_and_serves_many_alphas(setting):
    K, Z = setting
    before = K.copy()
    p, _ = problem(Z, WEIGHTS["equal"], True, None, FOLDS["two copies"])
    held = CholeskyHeldout(p, K, square=False)
    first = held.at(0.1).F
    held.at(1e-3)
    np.testing.assert_array_equal(held.at(0.1).F, first)
    np.testing.assert_array_equal(K, before)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("square", [False, True])
@pytest.mark.parametrize("out", [np.arange(3, 12), np.array([5])], ids=["several", "one"])
def test_only_some_rows_are_held_out(setting, bias, square, out):
    K, Z = setting
    p, _ = problem(Z, WEIGHTS["equal"], bias, np.arange(N) if square else None, np.arange(N))
    p = replace(p, folds=Folds.only(out))
    spectrum = square_spectrum(K) if square else gram_spectrum(K)
    expected = SpectralHeldout(p, spectrum).at(0.01).F
    np.testing.assert_allclose(CholeskyHeldout(p, K, square).at(0.01).F[out], expected[out], atol=1e-9)


def test_cholesky_form_counts_its_factors():
    assert CholeskyHeldout.n_factors(Folds.from_labels(np.arange(1000)), 1000) == 1
    assert CholeskyHeldout.n_factors(Folds.from_labels(np.r_[np.arange(990), np.zeros(10)]), 1000) == 1
    assert CholeskyHeldout.n_factors(Folds.from_labels(np.arange(1000) % 5), 1000) == 5
    assert CholeskyHeldout.n_factors(Folds.from_labels(np.arange(1000) // 2), 1000) == 500
    assert CholeskyHeldout.n_factors(Folds.only(np.arange(250)), 1000) == 1


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("square", [False, True])
def test_one_of_several_equal_observations(setting, bias, square):
    """A row with a count is as many copies of it, each with its basis function, of which one is left out."""
    K, Z = setting
    count = 1 + np.arange(N) % 4
    every, own = np.repeat(np.arange(N), count), np.arange(N) if square else None
    each = np.arange(len(every))
    p, root = problem(Z, count, bias, own, FOLDS["loo"])
    copies, ones = problem(Z[every], np.ones(len(every)), bias, each if square else None, each)
    weighted, plain = (
        Design(A, None, w, w if square else None, True, not square)
        for A, w in ((K, root), (K[np.ix_(every, every)], ones))
    )
    expected = SpectralHeldout(copies, plain.function_spectrum()).at(0.1).F
    alpha = 0.1 / count.mean() if square else 0.1  # weights have a mean of 1, in the basis too
    F = SpectralHeldout(replace(p, count=count), weighted.function_spectrum()).at(alpha).F
    np.testing.assert_allclose(F[every], expected, atol=1e-9)


def test_small_ridge_keeps_its_digits(setting):
    """The singular values serve, not their squares: at alpha = 1e-12 leave-one-out still equals the refits."""
    K, Z = setting
    Phi = K[:, :6]
    p, _ = problem(Z, WEIGHTS["equal"], False, None, FOLDS["loo"])
    F = SpectralHeldout(p, design_spectrum(Phi)).at(1e-12).F
    expected = np.empty_like(Z)
    for i in range(N):
        rest = np.arange(N) != i
        expected[i] = Phi[i] @ np.linalg.lstsq(Phi[rest], Z[rest], rcond=None)[0]
    np.testing.assert_allclose(F, expected, atol=1e-6)


def test_folds_from_labels():
    folds = Folds.from_labels(np.array([3, 1, 3, 0, 2, 0]))
    np.testing.assert_array_equal(folds.singles, [1, 4])
    assert [b.tolist() for b in folds.blocks] == [[3, 5], [0, 2]]
