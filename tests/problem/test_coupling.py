"""The task matrix against loops over its definition, and the papers' parameters against the papers' systems."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import rbf

from leastwise import MultiTaskLSPC
from leastwise.problem.coupling import (
    STEP,
    CouplingMatrix,
    Pairwise,
    Shared,
    from_lambda_gamma,
    from_omegas,
    from_pairwise,
    laplacian,
    to_lambda_gamma,
)

SHARINGS = (0.0, 0.05, 0.3, 0.5, 0.9, 0.999, 1.0)


def similarities(T, seed=0, empty=0.0):
    """Symmetric, ones on the diagonal; some pairs have nothing in common."""
    rng = np.random.default_rng(seed)
    S = rng.uniform(0.1, 1, size=(T, T)) * (rng.uniform(size=(T, T)) >= empty)
    S = np.triu(S, 1)
    return S + S.T + np.eye(T)


def penalties(T, seed=0):
    return np.random.default_rng(seed).uniform(0.3, 3, size=T)


def laplacian_by_loops(S):
    L = np.zeros_like(S)
    for t, u in itertools.permutations(range(len(S)), 2):
        L[t, t] += S[t, u]
        L[t, u] -= S[t, u]
    return L


def shared_by_loops(penalty, sharing, S=None):
    T = len(penalty)
    B = np.zeros((T, T))
    for t in range(T):
        for u in range(T):
            B[t, u] = sharing * (1 if S is None else S[t, u])
            if t == u:
                B[t, u] += (1 - sharing) / penalty[t]
    return B


def pairwise_by_loops(penalty, sharing, S):
    """C as in section 4 of the multi-label paper, with lambda_t and gamma_tu; its inverse, of mean diagonal 1."""
    T = len(S)
    lambdas, gammas = (1 - sharing) * penalty, sharing * S
    C = np.zeros((T, T))
    for t in range(T):
        for u in range(T):
            C[t, u] = -gammas[t, u]
            if t == u:
                C[t, u] += lambdas[t] + sum(gammas[t, v] for v in range(T))
    B = np.linalg.inv(C)
    return B / np.mean([B[t, t] for t in range(T)])


# ----------------------------------------------------------------- definitions


@pytest.mark.parametrize("T", [1, 2, 5])
@pytest.mark.parametrize("sharing", SHARINGS)
def test_shared_is_its_definition(T, sharing):
    penalty, S = penalties(T), similarities(T)
    np.testing.assert_allclose(Shared(penalty).at(sharing).matrix, shared_by_loops(penalty, sharing), rtol=1e-14)
    coupling_matrix = Shared(penalty, S).at(sharing)
    np.testing.assert_allclose(coupling_matrix.matrix, shared_by_loops(penalty, sharing, S), rtol=1e-14)


@pytest.mark.parametrize("T", [1, 2, 5, 9])
@pytest.mark.parametrize("sharing", SHARINGS[:-1])
@pytest.mark.parametrize("empty", [0.0, 0.6])
def test_pairwise_is_its_definition(T, sharing, empty):
    penalty, S = penalties(T), similarities(T, seed=T, empty=empty)
    B = Pairwise(penalty, S).at(sharing).matrix
    np.testing.assert_allclose(B, pairwise_by_loops(penalty, sharing, S), rtol=1e-10, atol=1e-12)
    assert np.mean(np.diagonal(B)) == pytest.approx(1, abs=1e-14)


def test_laplacian_whatever_the_diagonal():
    S = similarities(6, empty=0.3)
    other = S + np.diag(np.arange(6.0))
    np.testing.assert_allclose(laplacian(S), laplacian_by_loops(S), rtol=1e-14)
    np.testing.assert_array_equal(laplacian(other), laplacian(S))
    np.testing.assert_allclose(laplacian(S).sum(axis=1), 0, atol=1e-14)
    np.testing.assert_array_equal(Pairwise(np.ones(6), other).at(0.4).matrix, Pairwise(np.ones(6), S).at(0.4).matrix)


# ---------------------------------------------------------------------- limits


def test_nothing_shared_is_exact():
    penalty, S = penalties(5), similarities(5)
    for coupling_matrix in (Shared(penalty).at(0), Shared(penalty, S).at(0)):
        np.testing.assert_array_equal(coupling_matrix.matrix, np.diag(1 / penalty))
    B = Pairwise(np.ones(5), S).at(0).matrix
    np.testing.assert_allclose(B, np.eye(5), atol=1e-15)
    B = Pairwise(penalty, S).at(0).matrix
    np.testing.assert_allclose(B, np.diag(1 / penalty) / np.mean(1 / penalty), rtol=1e-14, atol=1e-15)


def test_all_shared_is_exact():
    penalty, S = penalties(5), similarities(5)
    np.testing.assert_array_equal(Shared(penalty).at(1).matrix, np.ones((5, 5)))
    np.testing.assert_array_equal(Shared(penalty, S).at(1).matrix, S)
    np.testing.assert_allclose(Pairwise(penalty, S).at(1).matrix, np.ones((5, 5)), rtol=1e-13)


def test_all_shared_pools_what_is_connected():
    """The limit of sharing towards 1, for tasks in two sets and one alone; a path is connected too."""
    S = np.eye(6)
    for t, u in [(0, 1), (1, 2), (3, 4)]:
        S[t, u] = S[u, t] = 0.1 + 0.3 * t
    penalty = penalties(6)
    coupling_matrix = Pairwise(penalty, S).at(1)
    B = np.zeros((6, 6))
    for members in [(0, 1, 2), (3, 4), (5,)]:
        for t, u in itertools.product(members, members):
            B[t, u] = 1 / sum(penalty[v] for v in members)
    np.testing.assert_allclose(coupling_matrix.matrix, B / np.mean(np.diagonal(B)), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(coupling_matrix.matrix, pairwise_by_loops(penalty, 1 - 1e-7, S), atol=1e-5)


@pytest.mark.parametrize("sharing", SHARINGS)
def test_a_complete_graph_is_the_shared_form(sharing):
    """C^-1 of (1 - s) I + s (T I - 1 1') is that of a common part and parts of each task's own."""
    T = 6
    B = Pairwise(np.ones(T), np.ones((T, T))).at(sharing).matrix
    np.testing.assert_allclose(B, Shared(np.ones(T)).at(sharing).matrix, atol=1e-13)


def test_ones_as_similarities_are_none():
    penalty = penalties(4)
    for sharing in SHARINGS:
        one, other = Shared(penalty).at(sharing), Shared(penalty, np.ones((4, 4))).at(sharing)
        np.testing.assert_array_equal(one.matrix, other.matrix)
        np.testing.assert_allclose(one.unseen_task, other.unseen_task, rtol=1e-14)


# ------------------------------------------------------------------ properties


def couplings(T, seed, empty):
    penalty, S = penalties(T, seed), similarities(T, seed, empty)
    return Shared(penalty), Pairwise(penalty, S)


@given(st.integers(1, 9), st.integers(0, 10**6), st.floats(0, 1), st.floats(0, 1))
def test_positive_semidefinite_symmetric_and_not_negative(T, seed, empty, sharing):
    for coupling in couplings(T, seed, empty):
        B = coupling.at(sharing).matrix
        np.testing.assert_allclose(B, B.T, atol=1e-13)
        assert np.linalg.eigvalsh((B + B.T) / 2).min() > -1e-12 * np.abs(B).max()
        assert B.min() > -1e-12
    with_similarity = Shared(penalties(T, seed), np.ones((T, T))).at(sharing).matrix
    assert np.linalg.eigvalsh(with_similarity).min() > -1e-12


@given(st.integers(1, 8), st.integers(0, 10**6), st.floats(0, 1), st.data())
def test_permuted_tasks_permute_the_matrix(T, seed, sharing, data):
    order = np.array(data.draw(st.permutations(range(T))))
    for coupling in (*couplings(T, seed, 0.4), Shared(penalties(T, seed), similarities(T, seed))):
        permuted, coupling_matrix = coupling.take(order).at(sharing), coupling.at(sharing)
        np.testing.assert_allclose(permuted.matrix, coupling_matrix.matrix[np.ix_(order, order)], atol=1e-9)
        np.testing.assert_allclose(permuted.unseen_task, coupling_matrix.unseen_task[order], atol=1e-9)


@given(st.integers(2, 8), st.integers(0, 10**6), st.floats(0.01, 100))
def test_units_of_the_penalties_of_pairs_do_not_matter_at_the_ends(T, seed, unit):
    penalty, S = penalties(T, seed), similarities(T, seed)
    for sharing in (0, 1):
        one, other = Pairwise(penalty, S).at(sharing), Pairwise(unit * penalty, S).at(sharing)
        np.testing.assert_allclose(one.matrix, other.matrix, atol=1e-9)


def test_take_leaves_tasks_out():
    penalty, S = penalties(5), similarities(5)
    kept = np.array([4, 1])
    some = Pairwise(penalty, S).take(kept)
    np.testing.assert_array_equal(some.penalty, penalty[[4, 1]])
    np.testing.assert_array_equal(some.similarity, [[1, S[4, 1]], [S[4, 1], 1]])
    assert Shared(penalty).take(kept).similarity is None
    B = pairwise_by_loops(penalty[kept], 0.3, S[np.ix_(kept, kept)])
    np.testing.assert_allclose(some.at(0.3).matrix, B, rtol=1e-10)


def test_more_sharing_is_more_in_common():
    coupling = Pairwise(penalties(6), similarities(6))
    off = [B.sum() - np.trace(B) for B in (coupling.at(s).matrix for s in SHARINGS)]
    assert np.all(np.diff(off) > 0)


# ------------------------------------------------------------------------ ties


def ties(T=5, sharing=0.3, seed=0):
    penalty, S = penalties(T, seed), similarities(T, seed, 0.5)
    groups = np.equal.outer(np.arange(T) % 2, np.arange(T) % 2).astype(float)
    return {
        "shared": Shared(penalty).at(sharing),
        "groups": Shared(penalty, groups).at(sharing),
        "pairs": Pairwise(penalty, S).at(sharing),
        "alone": Shared(penalty).at(0.0),
        "pooled": Shared(penalty).at(1.0),
    }


@pytest.mark.parametrize("kind", ties())
@pytest.mark.parametrize("n", [7, STEP + 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_couple_and_between_against_loops(kind, n, dtype, rng):
    coupling_matrix = ties()[kind]
    t, u = rng.integers(-1, 5, size=n), rng.integers(0, 5, size=11)
    G = rng.normal(size=(n, 11)).astype(dtype)
    B, unseen_task = coupling_matrix.matrix, coupling_matrix.unseen_task
    expected = np.empty((n, 11))
    for i in range(n):
        for j in range(11):
            expected[i, j] = unseen_task[u[j]] if t[i] < 0 else B[t[i], u[j]]
    np.testing.assert_allclose(coupling_matrix.between(t, u), expected, rtol=1e-14)
    before, coupled = G.copy(), coupling_matrix.couple(G, t, u)
    assert coupled is G
    assert coupled.dtype == dtype
    np.testing.assert_allclose(coupled, before * expected, rtol=1e-6 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("kind", ties())
def test_strangers_have_what_others_have_on_average(kind):
    coupling_matrix = ties()[kind]
    B = coupling_matrix.matrix
    expected = [np.mean([B[t, u] for t in range(5) if t != u]) for u in range(5)]
    np.testing.assert_allclose(coupling_matrix.unseen_task, expected, rtol=1e-13, atol=1e-16)
    np.testing.assert_array_equal(coupling_matrix.extended, np.vstack([B, coupling_matrix.unseen_task]))


@pytest.mark.parametrize(
    "coupling", [Shared(np.ones(1)), Shared(np.ones(1), np.eye(1)), Pairwise(np.ones(1), np.eye(1))]
)
@pytest.mark.parametrize("sharing", [0.0, 0.4, 1.0])
def test_one_task(coupling, sharing):
    coupling_matrix = coupling.at(sharing)
    np.testing.assert_allclose(coupling_matrix.matrix, [[1]])
    np.testing.assert_allclose(coupling_matrix.unseen_task, [sharing])
    np.testing.assert_array_equal(coupling_matrix.components, [0])


def test_only_the_pooled_tie_makes_no_difference(rng):
    assert [kind for kind, coupling_matrix in ties().items() if coupling_matrix.pooled] == ["pooled"]
    G = rng.normal(size=(4, 3))
    before = G.copy()
    np.testing.assert_array_equal(ties()["pooled"].couple(G, np.array([0, -1, 2, 3]), np.array([0, 1, 4])), before)


def components_by_loops(B):
    label = list(range(len(B)))
    for _ in range(len(B)):
        for t, u in itertools.product(range(len(B)), range(len(B))):
            if B[t, u] != 0:
                label[t] = label[u] = min(label[t], label[u])
    return label


def same_partition(a, b):
    return np.array_equal(np.equal.outer(a, a), np.equal.outer(b, b))


@pytest.mark.parametrize("kind", ties())
def test_components_against_loops(kind):
    coupling_matrix = ties()[kind]
    assert same_partition(
        np.asarray(coupling_matrix.components), np.array(components_by_loops(coupling_matrix.matrix))
    )


@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
def test_components_of_pairs_are_those_of_the_similarities(sharing):
    """C^-1 of tasks in blocks has exact zeros between the blocks, or the tie would think them connected."""
    S = np.zeros((6, 6))
    for t, u in [(0, 3), (3, 5), (1, 4)]:
        S[t, u] = S[u, t] = 0.7
    np.fill_diagonal(S, 1)
    coupling_matrix = Pairwise(penalties(6), S).at(sharing)
    linked = S if sharing else np.eye(6)
    assert same_partition(np.asarray(coupling_matrix.components), np.array(components_by_loops(linked)))


def test_tasks_alone_tell_strangers_the_class_shares():
    """Whatever form says that tasks have nothing in common, there is nothing to go by for a new one."""
    X, t, y, Z, X_new, _ = rows()
    for similarity in ("shared", np.eye(3), np.full((3, 3), 0.6)):
        alone = MultiTaskLSPC(1.0, 0.1, 0.0, similarity=similarity, calibration=None, cv=None)
        P = alone.fit(X, y, tasks=t).predict_proba(X_new, "new")
        np.testing.assert_allclose(P, np.tile(Z.mean(axis=0), (len(X_new), 1)), err_msg=str(similarity))


@given(st.integers(0, 10**6), st.sampled_from(list(ties())), st.integers(1, 4))
def test_lonely_against_loops(seed, kind, n_folds):
    coupling_matrix, rng = ties()[kind], np.random.default_rng(seed)
    task, fold = rng.integers(0, 5, size=20), rng.integers(0, n_folds, size=20)
    B = coupling_matrix.matrix
    label = components_by_loops(B)
    expected = [
        not any(label[task[j]] == label[task[i]] and fold[j] != fold[i] for j in range(20)) for i in range(20)
    ]
    np.testing.assert_array_equal(coupling_matrix.isolated(task, fold), expected)


def test_a_tie_without_a_matrix_is_of_two_numbers():
    coupling_matrix = CouplingMatrix(0.25, np.array([0.75, 1.5]))
    np.testing.assert_allclose(coupling_matrix.matrix, [[1, 0.25], [0.25, 1.75]])


# ------------------------------------------------------------- the paper's (4)


def rows(n=18, T=3, c=2, seed=0):
    """Training rows with their tasks and one-hot classes, and new rows with theirs."""
    rng = np.random.default_rng(seed)
    X, t, y = rng.normal(size=(n, 2)), np.arange(n) % T, rng.integers(0, c, size=n)
    y[:c] = np.arange(c)
    return X, t, y, np.eye(c)[y], rng.normal(size=(9, 2)), rng.integers(0, T, size=9)


def papers_kernel(X, Y, sigma):
    """Eq. (1) of the multi-task paper: no 2 below sigma^2, which is ours with sigma / sqrt(2)."""
    return np.array([[np.exp(-np.sum((x - y) ** 2) / sigma**2) for y in Y] for x in X])


def model(**changes):
    given = {"norm": "coefficients", "calibration": None, "cv": None, **changes}
    return MultiTaskLSPC(given.pop("sigma") / np.sqrt(2), **given)


def psi(phi, t, T, lambda_, gamma_):
    """(sqrt(gamma / (T lambda)) phi, 0 ... 0, phi, 0 ... 0)."""
    N = len(phi)
    parts = [np.sqrt(gamma_ / (T * lambda_)) * phi] + [phi if u == t else np.zeros(N) for u in range(T)]
    return np.concatenate(parts)


def designs(X, t, X_new, t_new, T, sigma, lambda_, gamma_):
    Psi = np.array([psi(phi, u, T, lambda_, gamma_) for phi, u in zip(papers_kernel(X, X, sigma), t, strict=True)])
    new = papers_kernel(X_new, X, sigma)
    return Psi, np.array([psi(phi, u, T, lambda_, gamma_) for phi, u in zip(new, t_new, strict=True)])


LAMBDA_GAMMA = [(0.02, 0.1), (0.3, 0.02), (5.0, 0.05), (0.01, 30.0)]


@pytest.mark.parametrize(("lambda_", "gamma_"), LAMBDA_GAMMA)
@pytest.mark.parametrize("c", [2, 3])
def test_equation_5_and_lemma_1(lambda_, gamma_, c):
    X, t, _, Z, X_new, t_new = rows(c=c)
    N, T, sigma = len(X), 3, 1.3
    Psi, new = designs(X, t, X_new, t_new, T, sigma, lambda_, gamma_)
    assert Psi.shape == (N, N * (T + 1))
    omega = np.linalg.solve(Psi.T @ Psi + gamma_ * N / T * np.eye(N * (T + 1)), Psi.T @ Z)
    dual = Psi.T @ np.linalg.solve(Psi @ Psi.T + gamma_ * N / T * np.eye(N), Z)
    np.testing.assert_allclose(omega, dual, atol=1e-10)
    y = Z.argmax(axis=1)
    ours = model(sigma=sigma, **from_lambda_gamma(lambda_, gamma_, T)).fit(X, y, tasks=t)
    np.testing.assert_allclose(ours.scores(X_new, t_new), new @ omega, rtol=1e-8, atol=1e-10)
    P = np.maximum(new @ omega, 0)  # eq. (7)
    some = P.sum(axis=1) > 0
    np.testing.assert_allclose(
        ours.predict_proba(X_new, t_new)[some],
        (P / np.maximum(P.sum(axis=1, keepdims=True), 1e-300))[some],
        atol=1e-8,
    )


def test_equation_4_is_at_its_minimum():
    """The criterion itself, with a common and an own part for each task, has no slope where the model is."""
    X, t, y, Z, X_new, t_new = rows()
    N, T, sigma, lambda_, gamma_ = len(X), 3, 1.1, 0.05, 0.2
    K = papers_kernel(X, X, sigma)
    big = np.hstack([K, *(K * (t == u)[:, None] for u in range(T))])
    ridge = np.kron(np.diag([lambda_] + [gamma_ / T] * T), np.eye(N))
    beta = np.linalg.solve(big.T @ big / N + ridge, big.T @ Z / N)
    slope = big.T @ (big @ beta - Z) / N + ridge @ beta
    np.testing.assert_allclose(slope, 0, atol=1e-12)
    parts = beta.reshape(T + 1, N, 2)
    theta = np.array([parts[0] + parts[1 + u] for u in range(T)])
    scores = np.array([k @ theta[u] for k, u in zip(papers_kernel(X_new, X, sigma), t_new, strict=True)])
    ours = model(sigma=sigma, **from_lambda_gamma(lambda_, gamma_, T)).fit(X, y, tasks=t)
    np.testing.assert_allclose(ours.scores(X_new, t_new), scores, atol=1e-10)
    np.testing.assert_allclose(ours.coef_, theta, atol=1e-8)
    # a task that is not known gets the common part
    np.testing.assert_allclose(ours.scores(X_new, "new"), papers_kernel(X_new, X, sigma) @ parts[0], atol=1e-10)
    np.testing.assert_allclose(ours.shared_coef_, parts[0], atol=1e-8)


def test_infinite_lambda_is_independent_and_infinite_gamma_pooled():
    X, t, y, Z, X_new, t_new = rows()
    N, T, sigma = len(X), 3, 1.1
    K, new = papers_kernel(X, X, sigma), papers_kernel(X_new, X, sigma)
    alone = model(sigma=sigma, **from_lambda_gamma(np.inf, 0.3, T)).fit(X, y, tasks=t)
    assert alone.sharing_ == 0
    for u in range(T):
        Phi = K[t == u]
        theta = np.linalg.solve(Phi.T @ Phi + 0.3 * N / T * np.eye(N), Phi.T @ Z[t == u])
        np.testing.assert_allclose(alone.scores(X_new, u), new @ theta, atol=1e-10)
    pooled = model(sigma=sigma, **from_lambda_gamma(0.3, np.inf, T)).fit(X, y, tasks=t)
    assert pooled.sharing_ == 1
    theta = np.linalg.solve(K.T @ K + 0.3 * N * np.eye(N), K.T @ Z)
    np.testing.assert_allclose(pooled.scores(X_new, t_new), new @ theta, atol=1e-10)


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.integers(1, 50))
def test_lambda_and_gamma_there_and_back(lambda_, gamma_, T):
    found = from_lambda_gamma(lambda_, gamma_, T)
    assert 0 <= found["sharing"] <= 1
    assert found["alpha"] > 0
    back = to_lambda_gamma(**found, n_tasks=T)
    assert back[0] == pytest.approx(lambda_, rel=1e-6)
    if found["sharing"] < 1 - 1e-6:  # 1 - sharing has digits enough
        assert back[1] == pytest.approx(gamma_, rel=1e-6)


def test_lambda_and_gamma_at_the_ends():
    assert from_lambda_gamma(np.inf, 2.0, 4) == {"alpha": 0.5, "sharing": 0.0}
    assert from_lambda_gamma(0.5, np.inf, 4) == {"alpha": 0.5, "sharing": 1.0}
    assert to_lambda_gamma(0.5, 0.0, 4) == (np.inf, 2.0)
    assert to_lambda_gamma(0.5, 1.0, 4) == (0.5, np.inf)


@pytest.mark.parametrize(
    ("lambda_", "gamma_", "message"),
    [
        (0, 1, r"lambda=0 must be above 0 \(inf is allowed\)"),
        (-1.0, 1, r"lambda=-1\.0 must be above 0"),
        (np.nan, 1, "lambda=nan must be above 0"),
        (1, 0.0, r"gamma=0\.0 must be above 0"),
        (np.inf, np.inf, "cannot both be infinite"),
    ],
)
def test_impossible_lambda_and_gamma(lambda_, gamma_, message):
    with pytest.raises(ValueError, match=message):
        from_lambda_gamma(lambda_, gamma_, 3)


# --------------------------------------------- sections 3 and 4, multi-label paper


@pytest.mark.parametrize("omega_0", [0.2, 3.0])
@pytest.mark.parametrize("omegas", [[1.0, 1.0, 1.0], [0.3, 2.0, 7.0]])
def test_section_3(omega_0, omegas):
    """(Xi' Xi + Omega kron I)^-1 Xi' pi, and the N x N form with A and b_t."""
    X, t, y, Z, X_new, t_new = rows(seed=1)
    N, T, sigma = len(X), 3, 0.9
    K, new = rbf(X, X, sigma), rbf(X_new, X, sigma)

    def xi(phi, u):
        return np.concatenate([phi, *(phi if u == v else np.zeros(N) for v in range(T))])

    Xi = np.array([xi(phi, u) for phi, u in zip(K, t, strict=True)])
    Omega = np.diag([omega_0, *omegas])
    beta = np.linalg.solve(Xi.T @ Xi + np.kron(Omega, np.eye(N)), Xi.T @ Z)
    scores = np.array([xi(phi, u) @ beta for phi, u in zip(new, t_new, strict=True)])
    A, G = np.eye(N), K @ K.T
    for n, m in itertools.product(range(N), range(N)):
        A[n, m] += (1 / omega_0 + (t[n] == t[m]) / omegas[t[n]]) * G[n, m]
    b = np.array(
        [
            [(1 / omega_0 + (u == t[n]) / omegas[u]) * K[n] @ phi for n in range(N)]
            for phi, u in zip(new, t_new, strict=True)
        ]
    )
    np.testing.assert_allclose(b @ np.linalg.solve(A, Z), scores, atol=1e-10)
    found = from_omegas(omega_0, omegas, N)
    ours = MultiTaskLSPC(sigma, norm="coefficients", calibration=None, cv=None, **found).fit(X, y, tasks=t)
    np.testing.assert_allclose(ours.scores(X_new, t_new), scores, atol=1e-10)
    assert np.mean(1 / np.asarray(found["task_penalty"])) == pytest.approx(1)


def test_equal_omegas_are_lambda_and_gamma():
    """Section 3 generalises eq. (4): omega_0 = N lambda, omega_t = N gamma / T."""
    N, T, lambda_, gamma_ = 40, 5, 0.1, 0.7
    found = from_omegas(N * lambda_, np.full(T, N * gamma_ / T), N)
    np.testing.assert_allclose(found.pop("task_penalty"), 1)
    assert found == pytest.approx(from_lambda_gamma(lambda_, gamma_, T))


@pytest.mark.parametrize(("omega_0", "omegas"), [(0, [1.0]), (1.0, [1.0, 0.0]), (-1.0, [1.0]), (1.0, [np.nan])])
def test_omegas_must_be_above_zero(omega_0, omegas):
    with pytest.raises(ValueError, match="above 0"):
        from_omegas(omega_0, omegas, 10)


GAMMAS = {
    "dense": np.array([[0.0, 2.0, 0.5], [2.0, 0.0, 0.1], [0.5, 0.1, 0.0]]),
    "with a diagonal": np.array([[9.0, 2.0, 0.5], [2.0, 4.0, 0.1], [0.5, 0.1, 1.0]]),
    "one pair": np.array([[0.0, 3.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
    "none": np.zeros((3, 3)),
    "strong": 1e4 * (1 - np.eye(3)),
}


@pytest.mark.parametrize("kind", GAMMAS)
@pytest.mark.parametrize("lambdas", [[0.5, 0.5, 0.5], [0.2, 1.0, 3.0]])
def test_section_4(kind, lambdas):
    """(Psi' Psi + C kron I)^-1 Psi' pi with C = diag(lambda_t + sum gamma) - gamma, and the N x N form."""
    gammas = GAMMAS[kind]
    X, t, y, Z, X_new, t_new = rows(seed=2)
    N, T, sigma = len(X), 3, 0.9
    K, new = rbf(X, X, sigma), rbf(X_new, X, sigma)

    def psi_t(phi, u):
        return np.concatenate([phi if u == v else np.zeros(N) for v in range(T)])

    C = np.zeros((T, T))
    for u, v in itertools.product(range(T), range(T)):
        C[u, v] = (u == v) * (lambdas[u] + sum(gammas[u])) - gammas[u, v]
    Psi = np.array([psi_t(phi, u) for phi, u in zip(K, t, strict=True)])
    theta = np.linalg.solve(Psi.T @ Psi + np.kron(C, np.eye(N)), Psi.T @ Z)
    scores = np.array([psi_t(phi, u) @ theta for phi, u in zip(new, t_new, strict=True)])
    inverse = np.linalg.inv(C)
    A = inverse[t[:, None], t] * (K @ K.T) + np.eye(N)
    b = inverse[t_new[:, None], t] * (new @ K.T)
    np.testing.assert_allclose(b @ np.linalg.solve(A, Z), scores, atol=1e-8)
    found = from_pairwise(lambdas, gammas, N)
    ours = MultiTaskLSPC(sigma, norm="coefficients", calibration=None, cv=None, **found).fit(X, y, tasks=t)
    np.testing.assert_allclose(ours.scores(X_new, t_new), scores, atol=1e-8)
    np.testing.assert_allclose(ours.coupling_, inverse / np.mean(np.diagonal(inverse)), atol=1e-8)


def test_pairs_are_in_units_of_their_own():
    """A factor on all lambdas and gammas is one on alpha."""
    lambdas, gammas = np.array([0.2, 1.0, 3.0]), GAMMAS["dense"]
    one, other = from_pairwise(lambdas, gammas, 10), from_pairwise(7 * lambdas, 7 * gammas, 10)
    assert other["alpha"] == pytest.approx(7 * one["alpha"])
    for name in ("sharing", "similarity", "task_penalty"):
        np.testing.assert_allclose(other[name], one[name], rtol=1e-13)
