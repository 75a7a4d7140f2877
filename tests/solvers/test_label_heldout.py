"""Labels tied to one another: closed forms against Kronecker products and refits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leastwise.linalg.moments import full_whitening
from leastwise.linalg.sylvester import alike, modes, solve_sylvester, untied
from leastwise.problem.basis import Design
from leastwise.problem.coupling import Pairwise, Shared
from leastwise.problem.label_coupling import Alike, Covariance, Differences, own_part
from leastwise.solvers.heldout import Folds, Problem
from leastwise.solvers.label_modes import (
    BATCHES,
    CoupledLabels,
    LabelGroup,
    LabelHeldout,
    LabelRefits,
    LabelSpectrum,
    ModewiseHeldout,
)

N, T, C, B = 14, 4, 2, 6


def tied_ridge(Phi, penalty, B, Z, v, rho):
    """Coefficients (b, T) and intercepts (T,) of ``|Phi Theta + v a' - Z|^2 + rho tr(Theta' P Theta B^-1)``."""
    G = Phi @ np.linalg.solve(penalty, Phi.T)
    H, z, a = np.kron(B, G) + rho * np.eye(len(G) * len(B)), Z.T.ravel(), np.zeros(len(B))
    if v is not None:
        columns = np.kron(np.eye(len(B)), v[:, None])
        M = np.linalg.inv(H)
        a = np.linalg.solve(columns.T @ M @ columns, columns.T @ M @ z)
        z = z - columns @ a
    A = np.linalg.solve(H, z).reshape(len(B), -1).T
    return np.linalg.solve(penalty, Phi.T) @ A @ B, a


def matrices():
    rng = np.random.default_rng(0)
    M = rng.normal(size=(T, T))
    dense, pair = M @ M.T / T, M[:2, :2] @ M[:2, :2].T
    return {
        "dense": (dense, modes(dense)),
        "alike": (0.3 + 0.7 * np.eye(T), alike(T, 0.3, 0.7)),
        "pooled": (np.ones((T, T)), alike(T, 1.0, 0.0)),
        "apart": (np.diag([1, 2.0, 1, 0.5]), untied(np.array([1, 2.0, 1, 0.5]))),
        "sets": (np.kron(np.eye(2), pair), modes(np.kron(np.eye(2), pair), np.array([0, 0, 1, 1]))),
        "singular": (np.outer(M[0], M[0]), modes(np.outer(M[0], M[0]))),
    }


def data(weighted):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, 3))
    K = np.exp(-((X[:, None] - X) ** 2).sum(-1) / 2)
    Z = (rng.random((N, C * T)) < 0.4).astype(float)
    w = rng.integers(1, 4, N).astype(float) if weighted else np.ones(N)
    return K, Z, w / w.mean()


def design(kind, K, root):
    """The design, the basis function that each row owns, and what the penalty is on (from weights)."""
    if kind == "centers":
        own = np.full(N, -1)
        own[:B] = np.arange(B)
        known = full_whitening(K[:B, :B])
        return Design(known.whiten(K[:, :B]), known, root, None, False, True), own
    square = kind == "coefficients"
    return Design(K, None, root, root if square else None, True, not square), np.arange(N) if square else None


def refit(kind, K, w, stay, out, Bmatrix, Z, alpha, bias):
    """Scores of the rows ``out`` from the rows ``stay`` alone, for the labels of one class."""
    root, rho = np.sqrt(w[stay]), alpha * w[stay].sum()
    keep = stay if kind != "centers" else stay[stay < B]
    penalty = np.diag(1 / w[keep]) if kind == "coefficients" else K[np.ix_(keep, keep)]
    Phi, v = root[:, None] * K[np.ix_(stay, keep)], root if bias else None
    Theta, a = tied_ridge(Phi, penalty, Bmatrix, root[:, None] * Z[stay], v, rho)
    return K[np.ix_(out, keep)] @ Theta + a


FOLDS = {
    "loo": np.arange(N),
    "pairs": np.arange(N) // 2,
    "mixed": np.r_[0, 0, 0, np.arange(N - 3)],
    "3": np.arange(N) % 3,
}


@pytest.mark.parametrize("name", list(matrices()))
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", ["function", "coefficients", "centers"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("folds", list(FOLDS))
def test_held_out_scores_are_those_of_refits(name, bias, kind, weighted, folds):
    Bmatrix, ties = matrices()[name]
    K, Z, w = data(weighted)
    labels, alpha, family = FOLDS[folds], 0.01, LabelGroup(np.arange(T), np.arange(C * T).reshape(T, C).T)
    D, own = design(kind, K, np.sqrt(w))
    problem = Problem(Z * np.sqrt(w)[:, None], np.sqrt(w), bias, own, Folds.from_labels(labels))
    want = np.empty_like(Z)
    for fold in np.unique(labels):
        out, stay = np.flatnonzero(labels == fold), np.flatnonzero(labels != fold)
        for columns in family.columns:
            want[np.ix_(out, columns)] = refit(kind, K, w, stay, out, Bmatrix, Z[:, columns], alpha, bias)
    tied = [CoupledLabels(family, ties)]
    assert np.abs(LabelRefits(problem, D).scores(alpha, tied).F - want).max() < 1e-9
    assert np.abs(ModewiseHeldout(problem, D.function_spectrum(), tied).at(alpha).F - want).max() < 1e-7
    if np.unique(w).size <= BATCHES:
        assert (
            np.abs(LabelHeldout(LabelSpectrum(problem, D.function_spectrum()), tied).at(alpha).F - want).max() < 1e-7
        )


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", ["function", "coefficients", "centers"])
@pytest.mark.parametrize("name", list(matrices()))
def test_two_eigendecompositions_solve_the_kronecker_system(name, kind, bias):
    Bmatrix, ties = matrices()[name]
    K, Z, _ = data(False)
    D, _ = design(kind, K, np.ones(N))
    v = np.ones(N) if bias else None
    Theta, a = solve_sylvester(D.function_spectrum(), ties, Z.reshape(N, C, T), 0.1, v)
    Phi, penalty = K[:, : D.n_functions], {"function": K, "coefficients": np.eye(N), "centers": K[:B, :B]}[kind]
    for y in range(C):
        want, intercept = tied_ridge(Phi, penalty, Bmatrix, Z.reshape(N, C, T)[:, y], v, 0.1)
        assert np.allclose(Phi @ Theta[:, y], Phi @ want, atol=1e-9)
        assert np.allclose(a[y], intercept, atol=1e-9)
    assert a.shape == (C, T)


def test_labels_without_a_relation_have_no_modes():
    for ties, own in ((alike(T, 0, 0.3), 0.3), (alike(1, 0.5, 0.3), 0.8)):
        assert ties.V is None
        np.testing.assert_allclose(ties.eigenvalues, own)


def test_equation_1_of_the_paper():
    """``Phi'Phi Theta + Theta C = Phi' Pi`` with C of section 4, lambda_t and gamma_tt' as given."""
    rng = np.random.default_rng(2)
    K, Z, _ = data(False)
    lambdas, gammas = rng.uniform(0.5, 2, T), rng.random((T, T))
    gammas = gammas + gammas.T
    off = gammas - np.diag(np.diagonal(gammas))
    matrix = np.diag(lambdas + off.sum(axis=1)) - off
    D, _ = design("coefficients", K, np.ones(N))
    Theta, _ = solve_sylvester(D.function_spectrum(), modes(np.linalg.inv(matrix)), Z.reshape(N, C, T), 1.0)
    for y in range(C):
        left = K.T @ K @ Theta[:, y] + Theta[:, y] @ matrix
        assert np.allclose(left, K.T @ Z.reshape(N, C, T)[:, y], atol=1e-8)


# ------------------------------------------------------------------ relations


def label_matrix(modes):
    """B itself."""
    T = len(modes.which) if modes.V is None else modes.V.shape[0]
    return modes.back(modes.eigenvalues * modes.rotate(np.eye(T)))


@st.composite
def relations(draw):
    n = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    S = rng.random((n, n)) * (rng.random((n, n)) < draw(st.sampled_from([0.2, 0.6, 1.0])))
    S = np.maximum(S, S.T)
    np.fill_diagonal(S, 1)
    penalty = np.ones(n) if draw(st.booleans()) else rng.uniform(0.3, 3, n)
    return S, penalty, draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))


@settings(max_examples=60, deadline=None)
@given(relations(), st.booleans())
def test_modes_of_differences_are_those_of_the_pairwise_coupling(relation, sparse):
    from scipy.sparse import csr_array

    S, penalty, sharing = relation
    B = label_matrix(Differences(own_part(penalty), csr_array(S) if sparse else S, penalty).modes(sharing))
    assert np.allclose(B, Pairwise(penalty, S).at(sharing).matrix, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(relations())
def test_modes_of_what_all_share_and_of_covariances(relation):
    S, penalty, sharing = relation
    S = S @ S.T
    B = label_matrix(Alike(own_part(penalty)).modes(sharing))
    penalty = penalty * np.mean(1 / penalty)  # the same on average as without any
    assert np.allclose(B, Shared(penalty).at(sharing).matrix, atol=1e-9)
    B = label_matrix(Covariance(own_part(penalty), S).modes(sharing))
    assert np.allclose(B, Shared(penalty, S).at(sharing).matrix, atol=1e-9 * S.max())


def test_some_labels_of_a_relation():
    """What a label has to itself does not depend on which others are looked at."""
    S, penalty, some = np.array([[1, 0.5, 0], [0.5, 1, 0.2], [0, 0.2, 1]]), np.array([1, 2, 3.0]), np.array([2, 0])
    own = own_part(penalty)
    for relation in (Differences(own, S, penalty), Covariance(own, S), Alike(own)):
        assert np.allclose(label_matrix(relation.take(some).modes(0)), np.diag(own[some]))
    assert np.allclose(Differences(own, S, penalty).take(some).similarity, S[np.ix_(some, some)])
    assert np.allclose(Covariance(own, S).take(some).similarity, S[np.ix_(some, some)])


def test_labels_that_are_all_alike_need_no_matrix_of_pairs():
    ties = Alike(np.ones(100_000)).modes(0.3)
    Z = np.random.default_rng(0).random((2, 100_000))
    assert ties.V.shape == (100_000, 1)
    assert np.allclose(ties.back(ties.eigenvalues * ties.rotate(Z)), 0.7 * Z + 0.3 * Z.sum(axis=1, keepdims=True))


def test_sets_of_labels_without_anything_in_common_are_rotated_apart():
    from scipy.sparse import block_diag, issparse

    ties = Differences(np.ones(3000), block_diag([np.ones((3, 3))] * 1000, format="csr"), np.ones(3000)).modes(0.5)
    assert issparse(ties.V)
    assert ties.V.nnz == 9000
    assert len(ties.values) == 2
