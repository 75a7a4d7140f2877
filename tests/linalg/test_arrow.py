"""The block-arrow solver and its held-out scores, against forms that are slow and obvious."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import leastwise.linalg.arrow_batches as batches_module
from leastwise.linalg.arrow import arrow_system, decompose, factor_chunk, solve_arrow
from leastwise.linalg.arrow_batches import Chunk, triangular_product
from leastwise.linalg.moments import whitening
from leastwise.solvers.arrow import ArrowHeldout, factored_pieces, held_out
from leastwise.solvers.heldout import Folds, Problem

MIXED = (1, 3, 1, 4, 30, 12, 2, 7, 25, 0, 3)
ENDS = [0.0, 0.3, 1.0]


@dataclass
class Data:
    """Rows of some tasks, in their order; ``root`` multiplied in."""

    Phi: np.ndarray
    Z: np.ndarray
    root: np.ndarray
    task: np.ndarray
    own: np.ndarray
    sharing: float
    bias: bool = True

    def without(self, rows):
        stay = np.setdiff1d(np.arange(len(self.Z)), rows)
        return replace(self, Phi=self.Phi[stay], Z=self.Z[stay], root=self.root[stay], task=self.task[stay])

    def chunks(self, cuts=()):
        """Chunks that end before these tasks."""
        edges = [0, *cuts, len(self.own)]
        for a, b in pairwise(edges):
            i = (self.task >= a) & (self.task < b)
            starts = np.searchsorted(self.task[i], np.arange(a, b + 1))
            yield Chunk(self.Phi[i], self.Z[i], self.root[i], starts, self.own[a:b])

    def heldout(self, labels):
        problem = Problem(self.Z, self.root, self.bias, None, Folds.from_labels(labels))
        return ArrowHeldout(problem, decompose(self.chunks()), self.sharing, self.own)


def make(sizes=MIXED, b=10, c=2, sharing=0.3, bias=True, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    n, task = sum(sizes), np.repeat(np.arange(len(sizes)), sizes)
    w = rng.uniform(0.5, 2, size=n)
    root = np.sqrt(w / w.mean())
    Phi, Z = rng.normal(size=(n, b)), rng.normal(size=(n, c)) + 1
    own = (1 - sharing) / rng.uniform(0.5, 2, size=len(sizes))
    parts = [a.astype(dtype) for a in (root[:, None] * Phi, root[:, None] * Z, root)]
    return Data(*parts, task, own, sharing, bias)


def dense(d, rho):
    """Shared and own parts and intercept from the Gram matrix of all rows."""
    same = d.task[:, None] == d.task
    own = d.own[d.task]
    H = (d.sharing + same * own) * (d.Phi @ d.Phi.T) + rho * np.eye(len(d.Z))
    M = np.linalg.inv(H)
    b = d.root @ M @ d.Z / (d.root @ M @ d.root) if d.bias else np.zeros(d.Z.shape[1])
    A = M @ (d.Z - np.outer(d.root, b))
    parts = [d.own[t] * d.Phi[d.task == t].T @ A[d.task == t] for t in range(len(d.own))]
    return d.sharing * d.Phi.T @ A, np.array(parts), b


def primal(d, rho):
    """The same from the normal equations of all b (T + 1) unknowns, for 0 < sharing < 1."""
    n, b = d.Phi.shape
    X = np.zeros((n, b * (len(d.own) + 1) + 1))
    X[:, :b] = d.Phi
    for i, t in enumerate(d.task):
        X[i, b * (t + 1) : b * (t + 2)] = d.Phi[i]
    X[:, -1] = d.root
    penalty = rho * np.r_[np.repeat(1 / np.r_[d.sharing, d.own], b), 0]
    theta = np.linalg.solve(X.T @ X + np.diag(penalty), X.T @ d.Z)
    return theta[:b], theta[b:-1].reshape(len(d.own), b, -1), theta[-1]


def fit(d, rho, cuts=()):
    solution = solve_arrow(lambda: d.chunks(cuts), d.sharing, rho, d.bias)
    return solution.shared, np.concatenate([solution.parts(chunk) for chunk in d.chunks(cuts)]), solution.intercept


def assert_same(found, expected, rtol=1e-9):
    for a, b in zip(found, expected, strict=True):
        assert_allclose(a, b, rtol=rtol, atol=rtol * (np.abs(b).max() + 1e-3))


def refits(d, labels, rho):
    """Held-out scores by a fit without each fold."""
    F = np.empty_like(d.Z)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        shared, parts, b = dense(d.without(rows), rho)
        for i in rows:
            F[i] = d.Phi[i] / d.root[i] @ (shared + parts[d.task[i]]) + b
    return F


def refits_without_task(d, rho):
    F = np.empty_like(d.Z)
    for t in np.unique(d.task):
        rows = d.task == t
        shared, _, b = dense(d.without(np.flatnonzero(rows)), rho)
        F[rows] = d.Phi[rows] / d.root[rows, None] @ shared + b
    return F


def labels_of(kind, d):
    """Which rows are held out together."""
    n, rng = len(d.Z), np.random.default_rng(1)
    return {
        "singles": np.arange(n),
        "copies": np.where(np.arange(n) % 3 == 0, np.arange(n), np.arange(n) // 2 - n),
        "groups": rng.integers(25, size=n),
        "five": rng.integers(5, size=n),
        "two": rng.integers(2, size=n),
        "tasks": d.task,
        "pairs of tasks": d.task // 2,
        "halves of tasks": 2 * d.task + rng.integers(2, size=n),
    }[kind]


KINDS = ["singles", "copies", "groups", "five", "two", "tasks", "pairs of tasks", "halves of tasks"]


@pytest.mark.parametrize("sharing", ENDS)
@pytest.mark.parametrize("bias", [True, False])
def test_solution_is_that_of_the_dense_dual(sharing, bias):
    d = make(sharing=sharing, bias=bias)
    assert_same(fit(d, 0.7), dense(d, 0.7))


def test_solution_is_that_of_the_normal_equations():
    d = make()
    assert_same(fit(d, 0.7), primal(d, 0.7))


def test_larger_tasks_than_usual():
    """Large enough for the inverse by halves."""
    d = make((15, 16, 31, 40, 33), b=40)
    assert_same(fit(d, 0.7), dense(d, 0.7))


def test_pooled_has_no_parts_and_independent_nothing_shared():
    assert not fit(make(sharing=1.0), 1.0)[1].any()
    assert not fit(make(sharing=0.0), 1.0)[0].any()


@given(st.lists(st.integers(0, 25), min_size=1, max_size=12).filter(any), st.sampled_from(ENDS), st.integers(1, 12))
def test_any_sizes(sizes, sharing, b):
    d = make(sizes, b=b, sharing=sharing)
    assert_same(fit(d, 0.5), dense(d, 0.5), rtol=1e-8)


@given(st.lists(st.integers(1, 12), min_size=2, max_size=8), st.sampled_from(ENDS), st.integers(1, 8), st.data())
def test_any_folds(sizes, sharing, b, data):
    d = make(sizes, b=b, sharing=sharing)
    n = len(d.Z)
    labels = np.array(data.draw(st.lists(st.integers(0, 6), min_size=n, max_size=n)))
    labels[:2] = 0, 1
    rho = 0.02 * n * (1 - 1 / len(np.unique(labels)))
    assert_same([d.heldout(labels).at(0.02).F], [refits(d, labels, rho)], rtol=1e-7)


@pytest.mark.parametrize("rho", [1e-9, 0.7])
def test_many_chunks_are_one_chunk(rho):
    d = make()
    assert_same(fit(d, rho, cuts=(1, 2, 6, 9)), fit(d, rho), rtol=1e-8)


def test_small_batches_are_large_batches(monkeypatch):
    d = make()
    expected, F = fit(d, 0.7), d.heldout(labels_of("groups", d)).at(0.01).F
    monkeypatch.setattr(batches_module, "BLOCK", 40)
    assert_same(fit(d, 0.7), expected)
    assert_same([d.heldout(labels_of("groups", d)).at(0.01).F], [F])


def test_order_of_tasks_changes_nothing():
    d = make()
    turn = np.random.default_rng(3).permutation(len(d.own))
    i = np.concatenate([np.flatnonzero(d.task == t) for t in turn])
    moved = Data(d.Phi[i], d.Z[i], d.root[i], np.argsort(turn)[d.task[i]], d.own[turn], d.sharing)
    shared, parts, b = fit(d, 0.7)
    assert_same(fit(moved, 0.7), (shared, parts[turn], b))


def stacked(d, rho):
    """The least squares form of all unknowns, which squares nothing."""
    (n, b), T = d.Phi.shape, len(d.own)
    X = np.zeros((n + b * (T + 1), b * (T + 1) + 1))
    X[:n, :b] = np.sqrt(d.sharing) * d.Phi
    for i, t in enumerate(d.task):
        X[i, b * (t + 1) : b * (t + 2)] = np.sqrt(d.own[t]) * d.Phi[i]
    X[:n, -1] = d.root
    X[n:, :-1] = np.sqrt(rho) * np.eye(b * (T + 1))
    theta = np.linalg.lstsq(X, np.vstack([d.Z, np.zeros((b * (T + 1), d.Z.shape[1]))]), rcond=None)[0]
    parts = np.sqrt(d.own)[:, None, None] * theta[b:-1].reshape(T, b, -1)
    return np.sqrt(d.sharing) * theta[:b], parts, theta[-1]


@pytest.mark.parametrize("sharing", ENDS)
@pytest.mark.parametrize("b", [6, 30])
def test_small_ridge_keeps_its_digits(sharing, b):
    d = make(sharing=sharing, b=b)
    d.Phi *= np.logspace(0, -6, b)
    rho = 1e-13
    assert not solve_arrow(lambda: d.chunks(), sharing, rho).regular
    assert_same(fit(d, rho), stacked(d, rho), rtol=1e-6)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sharing", ENDS)
def test_decomposition_gives_the_same_shared_part(sharing, bias):
    d = make(sharing=sharing, bias=bias)
    for rho in (1e-9, 0.7):
        system = decompose(d.chunks(cuts=(4, 7))).system(sharing, d.own, rho, bias)
        shared, _, b = fit(d, rho)
        assert_same([system.shared, system.intercept], [shared, b])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sharing", ENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_held_out_scores_are_refits(kind, sharing, bias):
    d = make(sharing=sharing, bias=bias)
    labels, n = labels_of(kind, d), len(d.Z)
    for alpha in (1e-3, 0.1):
        rho = alpha * n * (1 - 1 / len(np.unique(labels)))
        held = d.heldout(labels).at(alpha)
        assert_same([held.F], [refits(d, labels, rho)])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sharing", ENDS)
def test_task_out_is_a_refit(sharing, bias):
    d = make(sharing=sharing, bias=bias)
    expected = refits_without_task(d, 0.01 * len(d.Z))
    heldout = d.heldout(np.arange(len(d.Z)))
    assert_same([heldout.unseen_task_scores(0.01)], [expected])


def test_fold_of_parts_on_both_sides_of_b():
    """All ten rows of a task, and eleven of twelve, with ten basis functions."""
    d = make((10, 12, 12, 12))
    labels = np.where(np.arange(len(d.Z)) < 21, 0, np.arange(len(d.Z)))
    rho = 0.01 * len(d.Z) * (1 - 1 / len(np.unique(labels)))
    assert_same([d.heldout(labels).at(0.01).F], [refits(d, labels, rho)])


@pytest.mark.parametrize("rho", [1e-9, 0.7])
def test_chunks_give_the_held_out_scores_of_all(rho):
    """Folds within tasks; one chunk has no rows at all."""
    d = make()
    labels, cuts = labels_of("halves of tasks", d), (4, 9, 10)
    alpha = rho / len(d.Z) / (1 - 1 / len(np.unique(labels)))
    system, found = arrow_system(lambda: d.chunks(cuts), d.sharing, rho), []
    for chunk in d.chunks(cuts):
        mine = labels[sum(map(len, found)) :][: len(chunk.Z)]
        problem = Problem(chunk.Z, chunk.root, True, None, Folds.from_labels(mine))
        found.append(ArrowHeldout(problem, decompose([chunk]), d.sharing, chunk.own).from_system(system, rho).F)
    assert_same([np.concatenate(found)], [d.heldout(labels).at(alpha).F], rtol=1e-5 if rho < 1e-8 else 1e-9)


@pytest.mark.parametrize("kind", ["singles", "halves of tasks", "tasks"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sharing", ENDS)
def test_held_out_scores_by_cholesky_are_those_by_singular_values(kind, bias, sharing):
    d = make(sharing=sharing, bias=bias)
    (chunk,), labels, rho = d.chunks(), labels_of(kind, d), 0.7
    problem = Problem(d.Z, d.root, bias, None, Folds.from_labels(labels))
    system = arrow_system(lambda: d.chunks(), sharing, rho, bias)
    pieces = factored_pieces(problem, chunk, [f.packed().unpacked() for f in factor_chunk(chunk, rho)], system, rho)
    found = held_out(problem, pieces, rho)
    expected = ArrowHeldout(problem, decompose([chunk]), sharing, d.own).from_system(system, rho)
    assert_same([found.F, found.dof], [expected.F, expected.dof])
    assert_same([found.F], [refits(d, labels, rho)], rtol=1e-8)


def test_factors_are_inverse_cholesky_factors():
    d, rho = make((3, 30, 5, 12, 4, 31)), 0.7
    (chunk,) = d.chunks()
    seen = []
    for f in factor_chunk(chunk, rho):
        for t, rows, inverse in zip(f.tasks, f.rows, f.packed().unpacked().inverse, strict=True):
            P = np.where(rows[:, None] >= 0, d.Phi[rows], 0)
            gram = P @ P.T if f.wide else P.T @ P
            Q = rho * np.eye(len(gram)) + d.own[t] * gram
            assert_allclose(inverse @ Q @ inverse.T, np.eye(len(Q)), atol=1e-10)
            assert f.wide == (len(rows) <= 10)
            seen.append(t)
    assert sorted(seen) == list(range(6))


@pytest.mark.parametrize("bias", [True, False])
def test_a_whitening_is_a_whitened_design(bias):
    """The penalty is a matrix: parts and held-out scores do without whitened rows."""
    d, rho = make(bias=bias), 0.7
    C = np.random.default_rng(1).normal(size=(10, 25))
    penalty = whitening(C @ C.T)
    white = replace(d, Phi=penalty.whiten(d.Phi[:, penalty.pivots]))
    (chunk,), (plain,) = d.chunks(), white.chunks()
    chunk = replace(chunk, design=d.Phi[:, penalty.pivots], whitening=penalty)
    solution = solve_arrow(lambda: [chunk], d.sharing, rho, bias)
    assert_same([solution.shared, solution.parts(chunk), solution.intercept], fit(white, rho))
    system, labels = arrow_system(lambda: [chunk], d.sharing, rho, bias), np.arange(len(d.Z))
    problem = Problem(d.Z, d.root, bias, None, Folds.from_labels(labels))
    found = [
        held_out(problem, factored_pieces(problem, given, factor_chunk(given, rho), system, rho), rho).F
        for given in (chunk, plain)
    ]
    assert_same([found[0], found[0]], [found[1], refits(white, labels, rho)], rtol=1e-8)


@pytest.mark.parametrize(("n", "b"), [(1, 1), (7, 5), (30, 63), (100, 64), (50, 200)])
def test_triangular_product(n, b, monkeypatch):
    monkeypatch.setattr(batches_module, "PANEL", 8 * b * 13)
    rng = np.random.default_rng(n)
    A, T = rng.normal(size=(n, b)), np.tril(rng.normal(size=(b, b)))
    assert_allclose(triangular_product(A, T), A @ T.T, atol=1e-12)
    tall = np.vstack([T, rng.normal(size=(3, b))])[: b + 1]  # more rows than columns: the last ones are full
    assert_allclose(triangular_product(A, tall), A @ tall.T, atol=1e-12)


def test_one_task_cannot_do_without_itself():
    d = make((5, 0))
    with pytest.raises(ValueError, match="only one"):
        d.heldout(np.arange(5)).unseen_task_scores(0.1)


def test_sharings_share_the_decomposition():
    d = make(sharing=0.3)
    first = d.heldout(labels_of("five", d))
    e = make(sharing=0.8)
    second = replace(first, sharing=0.8, own=e.own)
    assert_same([second.at(0.01).F], [e.heldout(labels_of("five", e)).at(0.01).F])


@pytest.mark.parametrize("sharing", ENDS)
def test_float32_stays_float32(sharing):
    single, double = make(sharing=sharing, dtype=np.float32), make(sharing=sharing)
    for rho in np.array([1e-3, 5.0]):  # not plain floats
        found = fit(single, rho)
        assert all(a.dtype == np.float32 for a in found)
        assert_same(found, fit(double, rho), rtol=2e-2 if rho < 1 else 1e-4)
    labels = labels_of("five", single)
    for alpha in np.array([1e-5, 0.05]):
        held = single.heldout(labels).at(alpha)
        assert held.F.dtype == np.float32
        assert_same([held.F], [double.heldout(labels).at(alpha).F], rtol=2e-2 if alpha < 0.01 else 1e-4)
