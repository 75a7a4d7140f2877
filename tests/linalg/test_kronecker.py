"""Tied labels, not all of them known: the iterations against direct solves over the known entries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import issparse

from leastwise.linalg import kronecker
from leastwise.linalg.batched_cg import iterate
from leastwise.linalg.decompositions import pivoted_cholesky
from leastwise.linalg.kronecker import solve_matrix_free, solve_spectral
from leastwise.linalg.sylvester import alike, modes, untied
from leastwise.problem.coupling import Pairwise
from leastwise.problem.kernels import RBF
from leastwise.solvers.krylov import KernelTimes

n, T = 18, 5
SOLVERS = ("spectral", "free")
PARTS = np.array([0, 1, 0, 1, 2])
rng = np.random.default_rng(7)
FULL = rng.normal(size=(T, T))
FULL = FULL @ FULL.T
THIN = rng.normal(size=(T, 2))
TIES = {
    "full": (FULL, modes(FULL)),
    "singular": (THIN @ THIN.T, modes(THIN @ THIN.T)),
    "alike": (0.7 + 0.3 * np.eye(T), alike(T, 0.7, 0.3)),
    "pooled": (np.ones((T, T)), alike(T, 1.0, 0.0)),
    "sparse": (FULL * (PARTS[:, None] == PARTS), modes(FULL * (PARTS[:, None] == PARTS), PARTS)),
    "untied": (np.diag([1.0, 2, 0, 3, 4]), untied(np.array([1.0, 2, 0, 3, 4]))),
}
WEIGHTS = {
    "equal": np.full((n, T), 0.5),
    "labels": np.outer(np.ones(n), [0.1, 1, 2, 3, 4]),
    "rows": np.outer(rng.uniform(0, 2, n), np.ones(T)),
    "both": np.outer(rng.uniform(0, 2, n), [0.1, 1, 2, 3, 4]),
    "some unknown": (rng.random((n, T)) < 0.6) * 1.0,
    "rare": (rng.random((n, T)) < [1, 1, 0.2, 0.2, 1]) * 1.0,
    "classes": rng.choice([0, 0.3, 5], size=(n, T)),
    "one label nowhere": np.outer(np.ones(n), [1, 1, 0, 1, 1]),
    "nothing known": np.zeros((n, T)),
}


def gram(seed=0, rank=None, rows=n):
    """A Gram matrix, of full rank unless told otherwise."""
    X = np.random.default_rng(seed).normal(size=(rows, 3 if rank is None else rank))
    return np.exp(-(((X[:, None] - X) ** 2).sum(axis=2)) / 4) if rank is None else X @ X.T


def targets(c=2, seed=1, rows=n):
    return np.random.default_rng(seed).normal(size=(c, rows, T))


def direct(G, B, Z, W, rho, bias=False):
    """Scores and intercepts by one dense solve over the known entries: (GB + rho / w) a + i = z, sums of a are 0."""
    known, K = np.flatnonzero(W), np.kron(G, B)
    label = np.eye(W.shape[1])[known % W.shape[1]][:, (W > 0).any(axis=0)]
    H = K[np.ix_(known, known)] + rho * np.diag(1 / W.ravel()[known])
    right = Z.reshape(len(Z), -1)[:, known].T
    intercept = np.zeros((len(Z), W.shape[1]))
    if bias:
        q = label.shape[1]
        H = np.block([[H, label], [label.T, np.zeros((q, q))]])
        right = np.vstack([right, np.zeros((q, len(Z)))])
    a = np.linalg.solve(H, right)
    if bias:
        intercept[:, (W > 0).any(axis=0)] = a[len(known) :].T
    return (K[:, known] @ a[: len(known)]).T.reshape(Z.shape) + intercept[:, None], intercept


def spectrum(G):
    """U and s with ``G = U diag(s^2) U'``, as few columns as G needs."""
    g, U = np.linalg.eigh(G)
    keep = g > 1e-10 * g[-1]
    return U[:, keep], np.sqrt(g[keep])


def factor(G, rank):
    return pivoted_cholesky(np.diagonal(G).copy(), lambda i: G[:, i], rank, np.random.default_rng(0))


def solved(solver, G, name, Z, W, rho, rank=6, dtype=float, **options):
    """Scores, and the story."""
    B, modes = TIES[name] if isinstance(name, str) else name
    Z, W = Z.astype(dtype), W.astype(dtype)
    if solver == "spectral":
        U, s = (a.astype(dtype) for a in spectrum(G))
        summary = solve_spectral(U, s, modes, Z, W, rho, **options)
        return U @ (s[:, None] * summary.Q) + summary.intercept[:, None], summary
    L, pivots = factor(G, rank)
    summary = solve_matrix_free(lambda V: G.astype(dtype) @ V, (L.astype(dtype), pivots), modes, Z, W, rho, **options)
    return G @ summary.Q @ B + summary.intercept[:, None], summary


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", TIES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_direct_solve(solver, name, weights, bias):
    G, Z, W = gram(), targets(), WEIGHTS[weights]
    F, summary = solved(solver, G, name, Z, W, 0.2, bias=bias, tol=1e-11)
    expected, intercept = direct(G, TIES[name][0], Z, W, 0.2, bias)
    assert summary.converged
    assert summary.residual.shape == (2,)
    np.testing.assert_allclose(F, expected, atol=1e-7)
    np.testing.assert_allclose(summary.intercept, intercept, atol=1e-7)


@pytest.mark.parametrize("c", [1, 2, 3])
@pytest.mark.parametrize("rank", [1, 4])
@pytest.mark.parametrize("solver", SOLVERS)
def test_fewer_functions_than_rows(solver, rank, c):
    G, Z, W = gram(rank=rank), targets(c), WEIGHTS["some unknown"]
    F, summary = solved(solver, G, "full", Z, W, 0.1, rank=rank, tol=1e-11)
    assert summary.converged
    np.testing.assert_allclose(F, direct(G, FULL, Z, W, 0.1)[0], atol=1e-7)


@pytest.mark.parametrize("weights", ["equal", "some unknown", "classes", "rare"])
@pytest.mark.parametrize("name", TIES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_single_precision(solver, name, weights):
    G, Z, W = gram(), targets(), WEIGHTS[weights]
    F, summary = solved(solver, G, name, Z, W, 1.0, rank=4, dtype=np.float32, tol=1e-5)
    assert summary.converged
    assert summary.Q.dtype == summary.intercept.dtype == np.float32
    np.testing.assert_allclose(F, direct(G, TIES[name][0], Z, W, 1.0)[0], atol=2e-3)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rank", [0, 3, n])
@pytest.mark.parametrize("weights", ["equal", "both", "some unknown"])
def test_any_factor_will_do(weights, rank, bias):
    G, Z, W = gram(), targets(), WEIGHTS[weights]
    F, summary = solved("free", G, "full", Z, W, 0.2, rank=rank, bias=bias, tol=1e-11)
    assert summary.converged
    np.testing.assert_allclose(F, direct(G, FULL, Z, W, 0.2, bias)[0], atol=1e-7)
    if rank == n and weights != "some unknown":  # the preconditioner is the inverse
        assert summary.n_iter == 1


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weights", ["equal", "labels"])
@pytest.mark.parametrize("name", TIES)
def test_closed_form_takes_one_step(name, weights, bias):
    _, summary = solved("spectral", gram(), name, targets(), WEIGHTS[weights], 0.2, bias=bias, tol=1e-9)
    assert summary.n_iter == 1
    # The step and the residual, computed anew, of two classes.
    assert summary.n_products == 4 * T


def test_row_weights_can_go_into_the_design():
    G, Z, w = gram(), targets(), WEIGHTS["rows"][:, :1]
    W = WEIGHTS["some unknown"]
    root = np.sqrt(w)
    F, summary = solved("spectral", root * G * root.T, "full", root * Z, W, 0.2, tol=1e-11)
    assert summary.converged
    np.testing.assert_allclose(F / root, direct(G, FULL, Z, w * W, 0.2)[0], atol=1e-6)


# ------------------------------------------------------- the paper's systems


@pytest.mark.parametrize("solver", SOLVERS)
def test_eq_1_of_the_paper(solver):
    """Phi'Phi Theta + Theta C = Phi'Pi, and H theta = h, with the norm on the coefficients."""
    Phi, Pi = np.random.default_rng(3).normal(size=(n, 7)), targets(1)
    S = np.abs(np.corrcoef(np.random.default_rng(4).normal(size=(T, 9))))
    C = np.diag([1.0, 2, 1, 3, 1]) + np.diag((S - np.eye(T)).sum(axis=1)) - (S - np.eye(T))
    H = np.kron(np.eye(T), Phi.T @ Phi) + np.kron(C, np.eye(7))
    Theta = np.linalg.solve(H, (Phi.T @ Pi[0]).T.ravel()).reshape(T, 7).T
    np.testing.assert_allclose(Phi.T @ Phi @ Theta + Theta @ C, Phi.T @ Pi[0], atol=1e-10)
    B, G = np.linalg.inv(C), Phi @ Phi.T
    F, summary = solved(solver, G, (B, modes(B)), Pi, np.ones((n, T)), 1.0, tol=1e-12)
    np.testing.assert_allclose(F[0], Phi @ Theta, atol=1e-9)
    if solver == "free":
        np.testing.assert_allclose(Phi.T @ summary.Q[0] @ B, Theta, atol=1e-9)
    else:
        U, s = spectrum(G)
        np.testing.assert_allclose((Phi.T @ U / s) @ summary.Q[0], Theta, atol=1e-9)


def test_products_with_a_kernel_that_is_never_held():
    rows, labels = 300, 6
    X = np.random.default_rng(0).normal(size=(rows, 4))
    Y = (X @ np.random.default_rng(1).normal(size=(4, labels)) > 0) * 1.0
    B = Pairwise(np.ones(labels), np.maximum(np.corrcoef(Y.T), 0)).at(0.5).matrix
    W = (np.random.default_rng(2).random(Y.shape) < 0.7) * 1.0
    G = KernelTimes(RBF(), 2.0, X, budget=2**16)
    part = pivoted_cholesky(G.diagonal(), G.columns, 60, np.random.default_rng(0))
    Z = np.stack([1 - Y, Y])
    summary = solve_matrix_free(G, part, modes(B), Z, W, 0.3, tol=1e-9)
    U, s = spectrum(G.times(np.eye(rows)))
    other = solve_spectral(U, s, modes(B), Z, W, 0.3, tol=1e-9)
    assert summary.converged
    F = np.stack([G.times(Q) for Q in summary.Q]) @ B
    np.testing.assert_allclose(F, U @ (s[:, None] * other.Q), atol=1e-7)


# ------------------------------------------------------- steps


@pytest.mark.parametrize("weights", ["equal", "some unknown"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_classes_do_not_disturb_one_another(solver, weights):
    G, W, Z = gram(), WEIGHTS[weights], targets(3) * np.array([1e-6, 1.0, 1e6])[:, None, None]
    F, summary = solved(solver, G, "full", Z, W, 0.2, tol=1e-9)
    alone = [solved(solver, G, "full", z[None], W, 0.2, tol=1e-9) for z in Z]
    for f, (one, _), z in zip(F, alone, Z, strict=True):
        np.testing.assert_allclose(f, one[0], atol=1e-9 * np.abs(z).max())
    assert summary.n_iter == max(s.n_iter for _, s in alone)


def test_modes_that_have_converged_are_left_alone():
    B = np.diag([1e-6, 1e-6, 1e-6, 1e-6, 1.0])
    _, summary = solved("free", gram(), (B, modes(B)), targets(1), WEIGHTS["rows"], 0.1, rank=0)
    assert summary.converged
    assert summary.n_products < 2 * summary.n_iter + 40 < T * summary.n_iter


@pytest.mark.parametrize("weights", ["equal", "some unknown", "rare"])
@pytest.mark.parametrize("name", TIES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_start(solver, name, weights):
    G, Z, W = gram(), targets(), WEIGHTS[weights]
    _, cold = solved(solver, G, name, Z, W, 0.2, rank=3, tol=1e-6)
    _, exact = solved(solver, G, name, Z, W, 0.2, rank=3, tol=1e-9)
    F, warm = solved(solver, G, name, Z, W, 0.2, rank=3, tol=1e-6, start=exact.Q)
    assert warm.n_iter == 0 < cold.n_iter
    assert warm.converged
    F, other = solved(solver, G, name, Z, W, 0.1, rank=3, tol=1e-10, start=exact.Q)
    assert other.converged
    np.testing.assert_allclose(F, direct(G, TIES[name][0], Z, W, 0.1)[0], atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_too_few_iterations_are_told(solver):
    G, Z, W = gram(), targets(), WEIGHTS["classes"]
    found = [solved(solver, G, "full", Z, W, 0.01, tol=1e-8, max_iter=k)[1] for k in (0, 5, 400)]
    assert [s.converged for s in found] == [False, False, True]
    assert [s.n_iter for s in found[:2]] == [0, 5]
    np.testing.assert_allclose(found[0].residual, 1)
    assert found[1].residual.max() > 1e-8 >= found[2].residual.max()


def test_residual_is_that_of_the_solution():
    """In coordinates in which the preconditioner is the identity."""
    G, Z = gram(), targets()
    W = np.random.default_rng(5).permuted(np.outer(np.arange(n) < 11, np.ones(T)), axis=0)
    U, s = spectrum(G)
    B, modes = TIES["full"]
    summary = solve_spectral(U, s, modes, Z, W, 0.2, max_iter=4)
    b, V = np.linalg.eigh(W.mean() * B)
    K = np.kron(U * s, V * np.sqrt(b / W.mean()))
    M = np.outer(s**2, b).ravel() + 0.2
    for Q, z, residual in zip(summary.Q, Z, summary.residual, strict=True):
        x = (Q @ V / np.sqrt(b / W.mean())).ravel()
        right = K.T @ (W * z).ravel() / np.sqrt(M)
        left = right - (K.T @ (W.ravel() * (K @ x)) + 0.2 * x) / np.sqrt(M)
        assert residual > 1e-4
        np.testing.assert_allclose(np.linalg.norm(left) / np.linalg.norm(right), residual, rtol=1e-6)


@pytest.mark.parametrize("weights", ["equal", "some unknown"])
@pytest.mark.parametrize("G", [-np.eye(n), np.full((n, n), np.nan)], ids=["indefinite", "not a number"])
def test_what_cannot_be_solved_is_told(G, weights):
    part = np.zeros((n, 0)), np.zeros(0, dtype=int)
    summary = solve_matrix_free(lambda V: G @ V, part, modes(FULL), targets(), WEIGHTS[weights], 1e-3, max_iter=50)
    assert not summary.converged
    assert summary.n_iter < 10


def test_systems_that_are_parts_of_one():
    """A part that is nothing beside the whole is done with at once."""

    class Plain:
        def image(self, X, on):
            return X

        def times(self, X, image, on):
            return np.arange(1.0, 7)[:, None] * X

        def precondition(self, R, on):
            return R

    right = np.ones((2, 6, 1)) * np.array([1.0, 1e-9])[:, None, None]
    whole = iterate(Plain(), right, 1e-6, 100, together=2)
    assert whole.converged
    assert whole.residual.shape == (1,)
    np.testing.assert_array_equal(whole.X[1], 0)
    each = iterate(Plain(), right, 1e-6, 100)
    np.testing.assert_allclose(each.X[:, :, 0], right[:, :, 0] / np.arange(1.0, 7), rtol=1e-5)


def test_what_the_factor_misses_is_allowed_for(monkeypatch):
    rows = 120
    G, Z = gram(rows=rows) + 0.5 * np.eye(rows), targets(rows=rows)
    W = (np.random.default_rng(2).random((rows, T)) < 0.7) * 1.0
    _, summary = solved("free", G, "full", Z, W, 0.01, rank=20)
    monkeypatch.setattr(kronecker, "_tail", lambda G, L: 0.0)
    _, other = solved("free", G, "full", Z, W, 0.01, rank=20)
    assert summary.n_iter < 0.7 * other.n_iter


def test_rare_labels_cost_few_iterations(monkeypatch):
    """Half of the labels on a tenth of the rows: their weights are in the preconditioner."""
    rows = 200
    W = (np.random.default_rng(2).random((rows, T)) < [1, 0.1, 1, 0.1, 1]) * 1.0
    _, summary = solved("spectral", gram(rows=rows), "full", targets(rows=rows), W, 2.0)
    monkeypatch.setattr(kronecker, "EVEN", np.inf)
    _, other = solved("spectral", gram(rows=rows), "full", targets(rows=rows), W, 2.0)
    assert summary.n_iter < 0.7 * other.n_iter


@pytest.mark.parametrize("weights", ["equal", "labels", "rare"])
def test_labels_with_nothing_in_common_stay_apart(weights):
    p = kronecker.scaled(TIES["sparse"][1], targets(), WEIGHTS[weights])
    assert issparse(p.modes.V)
    assert p.modes.V.nnz == np.sum(PARTS[:, None] == PARTS)
    assert p.flat == (weights != "rare")


# ------------------------------------------------------- properties

seeds = st.integers(0, 2**32 - 1)


def drawn(seed):
    """Targets, and weights with zeros."""
    r = np.random.default_rng(seed)
    return r.normal(size=(2, n, T)), r.choice([0, 1, 1, 2.5], size=(n, T)), r


@pytest.mark.parametrize("solver", SOLVERS)
@given(seed=seeds, scale=st.floats(1e-6, 1e6), name=st.sampled_from(list(TIES)), bias=st.booleans())
@settings(max_examples=25, deadline=None)
def test_weights_and_ridge_scale_together(solver, seed, scale, name, bias):
    Z, W, _ = drawn(seed)
    F, _ = solved(solver, gram(), name, Z, W, 0.3, tol=1e-10, bias=bias)
    other, _ = solved(solver, gram(), name, Z, scale * W, scale * 0.3, tol=1e-10, bias=bias)
    np.testing.assert_allclose(other, F, atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@given(seed=seeds, name=st.sampled_from(list(TIES)), bias=st.booleans())
@settings(max_examples=25, deadline=None)
def test_a_row_twice_is_a_weight_doubled(solver, seed, name, bias):
    Z, W, r = drawn(seed)
    times = r.integers(1, 3, size=n)
    index, G = np.repeat(np.arange(n), times), gram()
    F, _ = solved(solver, G, name, Z, W * times[:, None], 0.3, tol=1e-10, bias=bias)
    other, _ = solved(solver, G[np.ix_(index, index)], name, Z[:, index], W[index], 0.3, tol=1e-10, bias=bias)
    np.testing.assert_allclose(other, F[:, index], atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@given(seed=seeds, bias=st.booleans())
@settings(max_examples=25, deadline=None)
def test_order_does_not_matter(solver, seed, bias):
    Z, W, r = drawn(seed)
    i, t, G = r.permutation(n), r.permutation(T), gram()
    F, _ = solved(solver, G, "full", Z, W, 0.3, tol=1e-10, bias=bias)
    B = FULL[np.ix_(t, t)]
    other, _ = solved(solver, G[np.ix_(i, i)], (B, modes(B)), Z[:, i][:, :, t], W[i][:, t], 0.3, tol=1e-10, bias=bias)
    np.testing.assert_allclose(other, F[:, i][:, :, t], atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@given(seed=seeds, name=st.sampled_from(list(TIES)))
@settings(max_examples=25, deadline=None)
def test_unknown_targets_do_not_matter(solver, seed, name):
    Z, W, r = drawn(seed)
    other = np.where(W > 0, Z, r.normal(size=Z.shape) * 100)
    F, _ = solved(solver, gram(), name, Z, W, 0.3, bias=True)
    np.testing.assert_array_equal(solved(solver, gram(), name, other, W, 0.3, bias=True)[0], F)
