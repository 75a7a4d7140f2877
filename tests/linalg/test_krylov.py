"""Conjugate gradients, preconditioners and products by blocks, against explicit matrices."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from conftest import blobs
from hypothesis import given
from hypothesis import strategies as st
from reference import rbf
from scipy import sparse

from leastwise.linalg.decompositions import inner_gram, pivoted_cholesky, ridge_inverse, single_suffices
from leastwise.linalg.krylov import block_cg, three_steps
from leastwise.problem.coupling import Pairwise, Shared
from leastwise.problem.kernels import RBF, Laplace, Linear, Precomputed, resolve_kernel
from leastwise.solvers.krylov import KernelTimes


def positive(n, rng, low=1e-2, dtype=float):
    """A matrix with eigenvalues from ``low`` to 1."""
    U = np.linalg.qr(rng.normal(size=(n, n)))[0]
    H = (U * np.geomspace(low, 1, n)) @ U.T
    return ((H + H.T) / 2).astype(dtype)


def relative(H, X, B):
    size = np.linalg.norm(B, axis=0)
    return np.linalg.norm(B - H @ X, axis=0) / np.where(size > 0, size, 1)


def gaussian(n, d, sigma, rng):
    X = rng.normal(size=(n, d))
    return X, RBF()(X, X, sigma)


# ------------------------------------------------------- block conjugate gradients


@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-10), (np.float32, 1e-5)])
@pytest.mark.parametrize("k", [1, 3, 30])
@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_equals_the_direct_solution(n, k, dtype, tol, rng):
    """More columns than rows included."""
    H, B = positive(n, rng, dtype=dtype), rng.normal(size=(n, k)).astype(dtype)
    found = block_cg(lambda V: H @ V, B, tol=tol)
    assert found.converged
    assert found.X.dtype == dtype
    assert found.X.shape == B.shape
    assert (found.residual <= tol).all()
    np.testing.assert_allclose(found.residual, relative(H, found.X, B), atol=10 * np.finfo(dtype).eps)
    want = np.linalg.solve(H.astype(float), B)
    assert np.linalg.norm(found.X - want) <= 100 * tol * np.linalg.norm(want)


def test_columns_share_their_directions(rng):
    """A block needs fewer iterations than a column, about n / k at most."""
    n, k = 120, 20
    H, B = positive(n, rng, 1e-4), rng.normal(size=(n, k))
    together = block_cg(lambda V: H @ V, B)
    alone = [block_cg(lambda V: H @ V, B[:, [j]]) for j in range(3)]
    assert together.converged
    assert together.n_iter <= n // k + 2
    assert together.n_iter < min(one.n_iter for one in alone) / 5
    assert together.n_products < k / 3 * sum(one.n_products for one in alone) / 5


@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e100])
def test_dependent_equal_and_zero_columns(scale, rng):
    H, B = positive(50, rng), scale * rng.normal(size=(50, 3))
    many = np.column_stack([B, B, np.zeros(50), B @ rng.normal(size=(3, 4)), 1e-6 * B[:, 0], np.zeros(50)])
    few, found = block_cg(lambda V: H @ V, B), block_cg(lambda V: H @ V, many)
    assert found.converged
    extra = found.n_iter - few.n_iter
    assert abs(extra) <= 1  # residuals differ by rounding, and one may pass the tolerance a step earlier
    # But for the last check, they cost nothing.
    assert found.n_products == few.n_products + 3 * extra - 3 + many.shape[1]
    np.testing.assert_array_equal(found.X[:, [6, -1]], 0)
    np.testing.assert_array_equal(found.residual[[6, -1]], 0)
    np.testing.assert_allclose(found.X, np.linalg.solve(H, many), atol=1e-6 * np.abs(found.X).max())
    assert (relative(H, found.X, many) <= 1e-8).all()


def test_nothing_to_do():
    found = block_cg(lambda V: V, np.zeros((5, 2)))
    assert found.converged
    assert found.n_iter == 0
    np.testing.assert_array_equal(found.X, 0)
    assert block_cg(lambda V: V, np.zeros((5, 0))).converged


def test_columns_that_become_dependent_on_the_way(rng):
    """Each right-hand side is a sum of two eigenvectors: after two steps nothing is left of any."""
    H = np.diag(np.arange(1.0, 41))
    B = np.zeros((40, 3))
    B[[0, 1], 0], B[[1, 2], 1], B[[20, 21], 2] = 1, 1, (1, 1e-7)
    found = block_cg(lambda V: H @ V, B, tol=1e-13)
    assert found.converged
    assert found.n_iter <= 4
    np.testing.assert_allclose(found.X, B / np.arange(1.0, 41)[:, None], atol=1e-13)


def test_a_start_nearby_saves_iterations(rng):
    H, B = positive(80, rng, 1e-4), rng.normal(size=(80, 2))
    B[:, 1] = 0
    cold = block_cg(lambda V: H @ V, B)
    near = cold.X + 1e-6 * rng.normal(size=B.shape)
    warm = block_cg(lambda V: H @ V, B, start=near)
    assert warm.converged
    assert warm.n_iter < cold.n_iter
    np.testing.assert_array_equal(warm.X[:, 1], 0)
    assert block_cg(lambda V: H @ V, B, start=warm.X).n_iter == 0


def test_too_few_iterations_are_admitted(rng):
    H, B = positive(100, rng, 1e-5), rng.normal(size=(100, 2))
    found = block_cg(lambda V: H @ V, B, max_iter=5)
    assert not found.converged
    assert found.n_iter == 5
    np.testing.assert_allclose(found.residual, relative(H, found.X, B), rtol=1e-10)
    assert (found.residual > 1e-8).any()


def test_single_precision_says_how_far_it_came(rng):
    H, B = positive(60, rng, 1e-6, np.float32), rng.normal(size=(60, 1)).astype(np.float32)
    found = block_cg(lambda V: H @ V, B, tol=1e-12)
    assert found.X.dtype == np.float32
    true = relative(H.astype(float), found.X.astype(float), B)
    assert found.converged == bool((found.residual <= 20 * np.finfo(np.float32).eps).all())
    np.testing.assert_allclose(found.residual, true, rtol=0.2, atol=1e-5)


def test_a_residual_that_drifted_is_found_and_repaired(rng):
    """A product that errs at first leaves a residual that only a check of X reveals."""
    H, B, calls = positive(40, rng), rng.normal(size=(40, 1)), []

    def times(V):
        calls.append(1)
        return H @ V * (1.01 if len(calls) == 2 else 1)

    found = block_cg(times, B)
    assert found.converged
    assert (relative(H, found.X, B) <= 1e-8).all()

    def always(V):
        return H @ V + 1e-3 * rng.normal(size=V.shape)

    assert not block_cg(always, B, max_iter=60).converged


def test_directions_that_lost_their_conjugacy_are_given_up():
    """Where directions come to span the whole space, rounding ruins them; a new start does what many steps do not."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        H, B = positive(69, rng, 1e-6), rng.normal(size=(69, 9)) @ rng.normal(size=(9, 23))
        L, _ = pivoted_cholesky(np.diagonal(H), lambda i, H=H: H[:, i], 19, rng)
        assert block_cg(lambda V, H=H: H @ V, B, ridge_inverse(L, 1e-6), max_iter=100).converged


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_not_a_solution(value, rng):
    B = rng.normal(size=(10, 2))
    broken = block_cg(lambda V: np.full_like(V, value), B)
    assert not broken.converged
    assert np.isinf(broken.residual).all()
    assert np.isfinite(broken.X).all()
    B[3, 1] = value
    found = block_cg(lambda V: 2 * V, B)
    assert not found.converged
    assert np.isinf(found.residual[1])
    assert not block_cg(lambda V: 2 * V, np.ones((10, 1)), lambda V: value * V).converged


def test_an_indefinite_matrix_is_not_claimed_to_be_solved(rng):
    found = block_cg(lambda V: -V, rng.normal(size=(6, 2)))
    assert not found.converged
    np.testing.assert_allclose(found.residual, 1)


def test_report_tells_every_iteration(rng):
    lines = []
    found = block_cg(
        lambda V: positive(30, np.random.default_rng(0)) @ V, rng.normal(size=(30, 1)), report=lines.append
    )
    assert len(lines) >= found.n_iter
    assert all("krylov" in line for line in lines)


@given(st.integers(1, 25), st.integers(1, 8), st.integers(1, 8), st.floats(1e-4, 1), st.integers(0, 2**32 - 1))
def test_any_positive_definite_system(n, k, rank, low, seed):
    """Right-hand sides of any rank and size."""
    rng = np.random.default_rng(seed)
    H = positive(n, rng, low)
    B = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, k)) * 10.0 ** rng.integers(-8, 9, size=k)
    found = block_cg(lambda V: H @ V, B)
    assert found.converged
    assert (relative(H, found.X, B) <= 1.001e-8).all()
    want = np.linalg.solve(H, B)
    assert (np.linalg.norm(found.X - want, axis=0) <= 1.1e-8 / low * np.linalg.norm(B, axis=0)).all()


# ------------------------------------------------------- preconditioner


def preconditioner(operator, rank, rng):
    """About H^-1, from some columns of G; None where there are none."""
    L, _ = pivoted_cholesky(operator.diagonal(), operator.columns, rank, rng)
    return ridge_inverse(L, operator.rho) if L.shape[1] and operator.rho > 0 else None


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pivoted_cholesky_equals_its_columns(dtype, rng):
    """The pivots' own columns are exact, what is left is positive, and it becomes less."""
    K = gaussian(150, 3, 2.0, rng)[1].astype(dtype)
    left = [np.inf]
    for rank in (1, 10, 40, 100):
        L, pivots = pivoted_cholesky(np.diagonal(K), lambda i: K[:, i], rank, np.random.default_rng(0), block=16)
        assert L.dtype == dtype
        assert L.shape == (150, len(pivots))
        assert len(set(pivots)) == len(pivots) <= rank
        slack = 1e3 * np.finfo(dtype).eps
        np.testing.assert_allclose((L @ L.T)[:, pivots], K[:, pivots], atol=slack)
        rest = K - L @ L.T
        assert np.linalg.eigvalsh(rest)[0] > -slack
        left.append(np.trace(rest))
        assert left[-1] < left[-2]


def test_pivoted_cholesky_stops_in_time(rng):
    Phi = rng.normal(size=(60, 5))
    K = Phi @ Phi.T
    L, _ = pivoted_cholesky(np.diagonal(K), lambda i: K[:, i], 50, rng)
    assert L.shape[1] == 5
    np.testing.assert_allclose(L @ L.T, K, atol=1e-10)
    K = gaussian(100, 2, 1.0, rng)[1]
    L, _ = pivoted_cholesky(np.diagonal(K), lambda i: K[:, i], 100, rng, tol=0.05, block=4)
    assert 1 <= L.shape[1] < 60
    assert np.trace(K - L @ L.T) <= 0.05 * 100
    assert pivoted_cholesky(np.zeros(4), lambda i: np.zeros((4, len(i))), 3, rng)[0].shape == (4, 0)
    assert pivoted_cholesky(np.ones(4), lambda i: np.ones((4, len(i))), 9, rng)[0].shape == (4, 1)


def test_ridge_inverse(rng):
    L, V = rng.normal(size=(30, 6)), rng.normal(size=(30, 2))
    np.testing.assert_allclose(ridge_inverse(L, 0.1)(V), np.linalg.solve(L @ L.T + 0.1 * np.eye(30), V), atol=1e-10)


def test_a_gram_matrix_is_in_single_precision_where_the_ridge_hides_the_rounding(rng):
    L = rng.normal(size=(5000, 8)).astype(np.float32)
    want = L.astype(float).T @ L.astype(float)
    np.testing.assert_allclose(inner_gram(L), want, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(inner_gram(L.astype(float), single=False), want, rtol=1e-12, atol=1e-9)
    rounding = np.abs(inner_gram(L, single=True) - want).max()
    assert 0 < rounding < 8 * np.finfo(np.float32).eps * np.trace(want)
    assert single_suffices(L, 1e-5 * np.trace(want))
    assert not single_suffices(L, 1e-7 * np.trace(want))
    assert not single_suffices(L.astype(float), np.inf)


@pytest.mark.parametrize("k", [1, 5])
def test_preconditioner_saves_iterations(k, rng):
    n = 400
    X, K = gaussian(n, 4, 2.0, rng)
    H, B = K + 1e-5 * n * np.eye(n), rng.normal(size=(n, k))
    want = np.linalg.solve(H, B)
    counts = []
    for rank in (0, 40, 150):
        operator = KernelTimes(RBF(), 2.0, X, rho=1e-5 * n)
        found = block_cg(operator, B, preconditioner(operator, rank, np.random.default_rng(0)))
        assert found.converged
        assert np.linalg.norm(found.X - want) <= 1e-5 * np.linalg.norm(want)
        counts.append(found.n_iter)
    assert counts[0] > 1.5 * counts[1] > 2 * counts[2]


def test_a_bad_preconditioner_only_costs_time(rng):
    H, B = positive(40, rng), rng.normal(size=(40, 2))
    M = positive(40, np.random.default_rng(5), 1e-5)
    assert block_cg(lambda V: H @ V, B, lambda V: M @ V).converged


# ------------------------------------------------------- bordered systems of the paper


def bordered(H, A, Z):
    """Eqs. (5), (11), (18), (24): solved as they stand."""
    m = A.shape[1]
    M = np.block([[np.zeros((m, m)), A.T], [A, H]])
    solved = np.linalg.solve(M, np.vstack([np.zeros((m, Z.shape[1])), Z]))
    return solved[m:], solved[:m]


def paper_problem(form, tasks, rng, n=90, gamma=5.0, lambda_=0.7, sigma=1.3):
    """H, A and the right-hand sides of section 2 (one task) or 3, entry by entry, and H by its parts."""
    X = rng.normal(size=(n, 3))
    task = np.sort(np.arange(n) % tasks)
    y = np.sin(X[:, 0]) + 0.3 * task + 0.1 * rng.normal(size=n)
    own = np.eye(tasks)[task]
    K = rbf(X, X, sigma)
    if tasks > 1:
        K = K + tasks / lambda_ * K * (own @ own.T)
    if form == "classification":
        y = np.where(y > np.median(y), 1.0, -1.0)
        K, A, Z, root = np.outer(y, y) * K, own * y[:, None], np.ones((n, 1)), y
    else:
        A, Z, root = own, y[:, None], np.ones(n)
    # sharing + own_t with sharing : own = 1 : m / lambda, up to the scale of K
    scale = 1 + tasks / lambda_ if tasks > 1 else 1.0
    coupling_matrix = Shared(np.ones(tasks)).at(1 / scale)
    H = KernelTimes(RBF(), sigma, X, root, coupling_matrix, task, rho=1 / gamma / scale)
    return K + np.eye(n) / gamma, A, Z, H, scale


@pytest.mark.parametrize("form", ["classification", "regression"])
@pytest.mark.parametrize("tasks", [1, 4, 9])
def test_three_steps_equal_the_bordered_system(form, tasks, rng):
    H, A, Z, free, scale = paper_problem(form, tasks, rng)
    alpha, b = bordered(H, A, Z)
    times = lambda V: H @ V  # noqa: E731
    matrix_free = lambda V: scale * free(V)  # noqa: E731
    np.testing.assert_allclose(matrix_free(np.eye(len(H))), H, atol=1e-12)
    M = preconditioner(free, 30, rng)
    answers = [
        three_steps(partial(block_cg, times, tol=1e-12), A, Z),
        three_steps(partial(block_cg, matrix_free, precondition=M, tol=1e-12), A, Z),
    ]
    for got_alpha, got_b, summary in answers:
        assert summary.converged
        np.testing.assert_allclose(got_alpha, alpha, atol=1e-8)
        np.testing.assert_allclose(got_b, b, atol=1e-8)
        np.testing.assert_allclose(A.T @ got_alpha, 0, atol=1e-9)
    plain, with_M = answers[0][2], answers[1][2]
    assert with_M.n_iter < plain.n_iter


def test_many_right_hand_sides_and_a_task_without_rows(rng):
    H, A, _, _, _ = paper_problem("regression", 3, rng)
    Z = rng.normal(size=(len(H), 5))
    alpha, b = bordered(H, A, Z)
    empty = np.column_stack([A, np.zeros(len(A))])
    solved = three_steps(partial(block_cg, lambda V: H @ V), empty, Z)
    np.testing.assert_allclose(solved[0], alpha, atol=1e-5)
    np.testing.assert_allclose(solved[1][:3], b, atol=1e-5)
    np.testing.assert_allclose(solved[1][3], 0, atol=1e-5)


def test_single_precision_border(rng):
    H, A, Z, _, _ = paper_problem("regression", 4, rng)
    alpha, b = bordered(H, A, Z)
    single = [M.astype(np.float32) for M in (H, A, Z)]
    got = three_steps(partial(block_cg, lambda V: single[0] @ V), *single[1:])
    assert got[0].dtype == got[1].dtype == np.float32
    np.testing.assert_allclose(got[0], alpha, atol=1e-3 * np.abs(alpha).max())
    np.testing.assert_allclose(got[1], b, atol=1e-3 * np.abs(b).max())


# ------------------------------------------------------- products by blocks

TIES = {
    "none": None,
    "shared": Shared(np.array([1.0, 2.0, 0.5])).at(0.4),
    "alone": Shared(np.ones(3)).at(0.0),
    "matrix": Pairwise(np.ones(3), np.array([[1, 0.5, 0], [0.5, 1, 0.2], [0, 0.2, 1]])).at(0.6),
}
KERNELS = {"rbf": RBF(), "laplace": Laplace(), "linear": Linear(), "given": resolve_kernel(lambda X, Y: X @ Y.T + 1)}


def explicit(K, root, coupling_matrix, task, rho):
    B = 1 if coupling_matrix is None else coupling_matrix.matrix[np.ix_(task, task)]
    return np.outer(root, root) * K * B + rho * np.eye(len(K))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("budget", [400, 4000, 2**26])
@pytest.mark.parametrize("coupling_matrix", TIES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_products_equal_those_of_the_matrix(kernel, coupling_matrix, budget, dtype, rng):
    n = 57
    X = rng.normal(size=(n, 3)).astype(dtype)
    task, root = rng.integers(0, 3, n), rng.uniform(0.5, 2, n) * rng.choice([-1, 1], n)
    H = explicit(KERNELS[kernel](X, X, 1.5), root, TIES[coupling_matrix], task, 0.3)
    operator = KernelTimes(KERNELS[kernel], 1.5, X, root, TIES[coupling_matrix], task, 0.3, budget=budget)
    V, slack = rng.normal(size=(n, 4)).astype(dtype), 1e3 * np.finfo(dtype).eps
    for _ in range(2):  # the second time from what was kept
        HV = operator.times(V)
        assert HV.dtype == dtype
        np.testing.assert_allclose(HV, H @ V, atol=slack * np.abs(H).max())
    G = H - 0.3 * np.eye(n)
    index = np.array([5, 0, 56])
    np.testing.assert_allclose(operator.columns(index), G[:, index], atol=slack * np.abs(G).max())
    np.testing.assert_allclose(operator.diagonal(), np.diagonal(G), atol=slack * np.abs(G).max())


@pytest.mark.parametrize("form", ["csr_matrix", "csc_array"])
def test_sparse_rows(form, rng):
    X = rng.normal(size=(40, 6)) * (rng.random((40, 6)) < 0.3)
    V = rng.normal(size=(40, 2))
    dense, thin = (KernelTimes(RBF(), 1.0, A, rho=0.1, budget=5000) for A in (X, getattr(sparse, form)(X)))
    np.testing.assert_allclose(thin(V), dense(V), atol=1e-12)
    np.testing.assert_allclose(thin.columns(np.array([3])), dense.columns(np.array([3])), atol=1e-12)
    np.testing.assert_allclose(thin.diagonal(), 1, atol=1e-12)


@pytest.mark.parametrize("coupling_matrix", ["none", "matrix"])
def test_precomputed_kernel_is_left_as_it_was(coupling_matrix, rng):
    _, K = gaussian(30, 2, 1.0, rng)
    task, before, V = np.arange(30) % 3, K.copy(), rng.normal(size=(30, 2))
    operator = KernelTimes(Precomputed(), 1.0, K, coupling_matrix=TIES[coupling_matrix], task=task, budget=1000)
    np.testing.assert_allclose(operator(V), explicit(K, np.ones(30), TIES[coupling_matrix], task, 0) @ V, atol=1e-12)
    np.testing.assert_array_equal(K, before)


def test_single_values_double_products(rng):
    """Values in single precision make another matrix, but one that is multiplied, and solved, to all digits."""
    X = rng.normal(size=(50, 3)).astype(np.float32)
    operator = KernelTimes(RBF(), 1.0, X, rho=0.01)
    B = rng.normal(size=(50, 2))
    found = block_cg(operator, B, tol=1e-12)
    assert found.converged
    assert operator.columns(np.arange(3)).dtype == np.float32
    np.testing.assert_allclose(found.X, np.linalg.solve(operator(np.eye(50)), B), atol=1e-8)


@pytest.mark.parametrize("tied", [False, True])
def test_memory_stays_within_the_budget(tied, rng):
    n, budget = 3000, 2**20
    X, task = rng.normal(size=(n, 5)), rng.integers(0, 3, n)
    V = rng.normal(size=(n, 2))
    operator = KernelTimes(
        RBF(), 2.0, X, coupling_matrix=TIES["matrix"] if tied else None, task=task, rho=3.0, budget=budget
    )
    tracemalloc.start()
    operator(V)
    M = preconditioner(operator, 20, rng)
    found = block_cg(operator, V, M, max_iter=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.n_iter == 2
    assert peak < n * n * 8 / 15
    assert peak < 2 * budget + 3 * n * 64 * 8


def test_kept_values_are_half_of_the_matrix(rng):
    X, V = blobs(2000, d=4)[0], rng.normal(size=(2000, 1))
    operator = KernelTimes(RBF(), 1.0, X, rho=1.0)
    first = operator(V)
    kept = sum(K.nbytes for K in operator._cached.values())
    assert 0.5 < kept / (2000**2 * 8) < 0.6
    np.testing.assert_array_equal(operator(V), first)
    narrow = KernelTimes(RBF(), 1.0, X, rho=1.0, budget=2**20)
    np.testing.assert_allclose(narrow(V), first, atol=1e-10)
    assert sum(K.nbytes for K in narrow._cached.values()) < 2**20  # what does not fit is computed anew


def test_a_tie_needs_tasks(rng):
    with pytest.raises(ValueError, match="task codes of the rows"):
        KernelTimes(RBF(), 1.0, rng.normal(size=(5, 2)), coupling_matrix=TIES["shared"])


def test_the_ridge_may_change(rng):
    operator = KernelTimes(RBF(), 1.0, rng.normal(size=(20, 2)), rho=1.0)
    first = operator(np.eye(20))
    operator.rho = 3.0
    np.testing.assert_allclose(operator(np.eye(20)), first + 2 * np.eye(20), atol=1e-12)


@pytest.mark.parametrize("budget", [2**14, 2**17, 2**24])
def test_products_do_not_depend_on_threads_or_on_what_is_stored(rng, monkeypatch, budget):
    X, V = rng.normal(size=(700, 5)), rng.normal(size=(700, 3))
    products = []
    for count in (1, 2):
        monkeypatch.setattr("leastwise.utils.resources.idle_processors", lambda count=count: count)
        monkeypatch.setattr("leastwise.utils.resources.BLAS_LIMIT.usable", lambda count=count: count)
        operator = KernelTimes(RBF(), 1.5, X, rho=0.2, budget=budget)
        products += [operator.times(V), operator.times(V)]  # the second one reads what is stored
    assert all(np.array_equal(product, products[0]) for product in products)


def test_products_in_single_precision_are_those_in_double_to_six_digits(rng):
    X, V = rng.normal(size=(600, 5)), rng.normal(size=(600, 3))
    exact = KernelTimes(RBF(), 1.5, X, rho=0.2).times(V)
    rough = KernelTimes(RBF(), 1.5, X.astype(np.float32), rho=0.2, product_dtype=np.float32).times(V)
    assert rough.dtype == V.dtype
    assert 0 < np.abs(rough - exact).max() < 1e-5 * np.abs(exact).max()


@pytest.mark.parametrize("coupling_matrix", TIES)
def test_leading_rows_and_some_rows_of_a_product(rng, coupling_matrix):
    X, V, root, task = (
        rng.normal(size=(600, 4)),
        rng.normal(size=(600, 3)),
        rng.uniform(1, 2, 600),
        np.arange(600) % 3,
    )
    H = KernelTimes(RBF(), 1.5, X, root, TIES[coupling_matrix], task, rho=0.2, boundary=410)
    whole, index = H.times(V), rng.permutation(600)[:300]
    np.testing.assert_allclose(H.rows_of_product(index, V), whole[index], rtol=1e-10)
    part = H.leading(410, 2 * root[:410])
    alone = KernelTimes(RBF(), 1.5, X[:410], 2 * root[:410], TIES[coupling_matrix], task[:410], rho=0.2)
    np.testing.assert_allclose(part.times(V[:410]), alone.times(V[:410]), rtol=1e-10)
    np.testing.assert_allclose(H.times(V), whole, rtol=1e-12)
