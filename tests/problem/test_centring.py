"""Intercepts of the tasks' own: centring against bordered systems and refits."""

import numpy as np
import pytest
from reference import intercept_fit, intercept_heldout_by_refits
from task_cases import FOLDS, C, N, T, evaluator, kernel, tied_rows

from leastwise.problem.coupling import Centring, centred_share, shrunk_means
from leastwise.solvers import arrow as arrow_module
from leastwise.solvers.arrow import ArrowEvaluator
from leastwise.solvers.solve_tasks import solve_tasks, stream_tasks, unseen_task_scores

SPREADS = [0.0, 0.3, 20.0, np.inf]
SEED = 3  # every task has rows in several folds


def rows_with(weighted=False, fold="loo"):
    rows = tied_rows(weighted, fold, SEED)
    assert all(len(np.unique(rows.fold[rows.task == t])) > 1 for t in range(T))
    return rows


def coupled_gram(tied, rows):
    return tied.coupling_matrix.couple(kernel(rows.X, rows.X), rows.task, rows.task)


@pytest.mark.parametrize("intercept_ratio", SPREADS)
def test_the_centring_is_the_root_of_the_covariance(intercept_ratio):
    rng = np.random.default_rng(0)
    task, root = rng.integers(0, 3, 12), rng.uniform(0.5, 2, 12)
    W = Centring.of(task, root, intercept_ratio, 4).rows(np.eye(12))
    V = root[:, None] * (task[:, None] == np.arange(4))
    if np.isfinite(intercept_ratio):
        np.testing.assert_allclose(W @ (np.eye(12) + intercept_ratio * V @ V.T) @ W, np.eye(12), atol=1e-12)
    else:
        np.testing.assert_allclose(W @ V, 0, atol=1e-14)
        np.testing.assert_allclose(W @ W, W, atol=1e-14)
    G = rng.normal(size=(12, 12))
    G = G @ G.T
    centring = Centring.of(task, root, intercept_ratio, 4)
    np.testing.assert_allclose(centring.gram(G), W @ G @ W, atol=1e-12)
    np.testing.assert_allclose(
        centring.square(np.array([2, 5, 7])), (W @ W)[np.ix_([2, 5, 7], [2, 5, 7])], atol=1e-12
    )


def test_a_task_without_rows_is_left_alone():
    assert centred_share(np.inf, np.array([0.0, 2.0])).tolist() == [0, 1]
    assert centred_share(0.0, np.array([0.0, 2.0])).tolist() == [0, 0]
    means = shrunk_means(np.ones((2, 1)), np.ones(2), np.array([1, 1]), np.inf, 2)
    assert means.tolist() == [[0], [1]]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["shared", "pairwise"])
@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("sharing", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("intercept_ratio", SPREADS)
def test_heldout_scores_are_those_of_refits(bias, kind, fold, weighted, sharing, intercept_ratio):
    rows = rows_with(weighted, fold)
    tied = evaluator(rows, kind, bias=bias).with_sharing(sharing).with_intercept_ratio(intercept_ratio)
    refits = intercept_heldout_by_refits(
        coupled_gram(tied, rows), np.eye(C)[rows.y], rows.task, rows.w, 0.01, intercept_ratio, bias, rows.fold
    )
    for count in (9, 1):  # many alphas: the spectrum; one: a Cholesky factor where that applies
        np.testing.assert_allclose(tied.heldout(1.0, count)(0.01).F, refits, atol=1e-9)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("sharing", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("intercept_ratio", SPREADS)
def test_the_solution_is_that_of_the_bordered_system(bias, weighted, sharing, intercept_ratio):
    rows = rows_with(weighted)
    tied = evaluator(rows, bias=bias).with_sharing(sharing).with_intercept_ratio(intercept_ratio)
    solution = solve_tasks(tied, 1.0, 0.02)
    A, b, own = intercept_fit(
        coupled_gram(tied, rows), np.eye(C)[rows.y], rows.task, rows.w, 0.02 * N, intercept_ratio, bias
    )
    np.testing.assert_allclose(solution.form.A, A, atol=1e-9)
    added = np.zeros((T, C)) if solution.own is None else solution.own
    np.testing.assert_allclose(solution.intercept + added, b + own, atol=1e-9)
    if np.isinf(intercept_ratio):
        np.testing.assert_allclose(added.mean(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n_centers", [3, 7, 15])  # tasks have about ten rows
@pytest.mark.parametrize("intercept_ratio", SPREADS)
def test_arrow_is_the_dual(bias, fold, weighted, sharing, n_centers, intercept_ratio):
    rows = rows_with(weighted, fold)
    recipe = {"bias": bias, "n_centers": n_centers}
    dual = evaluator(rows, **recipe).with_sharing(sharing).with_intercept_ratio(intercept_ratio)
    arrow = evaluator(rows, cls=ArrowEvaluator, **recipe).with_sharing(sharing).with_intercept_ratio(intercept_ratio)
    X, task = np.random.default_rng(5).normal(size=(30, 2)), np.arange(30) % (T + 1) - 1  # -1 is not known
    one, other = solve_tasks(dual, 1.0, 0.02), solve_tasks(arrow, 1.0, 0.02)
    K = kernel(X, dual.basis.centers)
    np.testing.assert_allclose(other.form.weigh(K, task), one.form.weigh(K, task), atol=1e-8)
    np.testing.assert_allclose(other.intercept, one.intercept, atol=1e-9)
    if one.own is not None:
        np.testing.assert_allclose(other.own, one.own, atol=1e-9)
    if not (weighted or fold == "copies"):  # the ridge of a fold is the average one in the arrow
        np.testing.assert_allclose(arrow.heldout(1.0, 9)(0.02).F, dual.heldout(1.0, 9)(0.02).F, atol=1e-8)
    tolerance = 1e-5 if np.isinf(intercept_ratio) else 1e-8  # there the spread is wide only
    np.testing.assert_allclose(
        unseen_task_scores(arrow, 1.0, 0.02), unseen_task_scores(dual, 1.0, 0.02), atol=tolerance
    )


@pytest.mark.parametrize("intercept_ratio", SPREADS)
def test_a_stream_of_few_tasks_at_a_time_is_the_whole(monkeypatch, intercept_ratio):
    rows = rows_with(weighted=True)
    arrow = (
        evaluator(rows, cls=ArrowEvaluator, bias=True, n_centers=7)
        .with_sharing(0.4)
        .with_intercept_ratio(intercept_ratio)
    )
    # A stream has the ridge of all rows, leave-one-out that of all but one.
    at_once, solution = arrow.heldout(1.0, 1)(0.01 * N / (N - 1)).F, solve_tasks(arrow, 1.0, 0.01)
    monkeypatch.setattr(arrow_module, "CHUNK", 8 * 7 * 12)  # a dozen rows
    streamed, held = stream_tasks(arrow, 1.0, 0.01, hold=True)
    np.testing.assert_allclose(held.F, at_once, atol=1e-9)
    np.testing.assert_allclose(streamed.form.coef, solution.form.coef, atol=1e-8)
    if intercept_ratio:
        np.testing.assert_allclose(streamed.own, solution.own, atol=1e-9)


@pytest.mark.parametrize("intercept_ratio", [0.3, 20.0, np.inf])
def test_scores_of_strangers_are_those_of_a_fit_without_the_task(intercept_ratio):
    rows, alpha = rows_with(weighted=True), 0.03
    tied = evaluator(rows, bias=True).with_sharing(0.5).with_intercept_ratio(intercept_ratio)
    F, G = unseen_task_scores(tied, 1.0, alpha), coupled_gram(tied, rows)
    K = kernel(rows.X, rows.X)
    for code in range(T):
        out = rows.task == code
        A, b, own = intercept_fit(
            G[np.ix_(~out, ~out)],
            np.eye(C)[rows.y[~out]],
            rows.task[~out],
            rows.w[~out],
            alpha * N,
            intercept_ratio,
            True,
        )
        mean = own.mean(axis=0) if np.isinf(intercept_ratio) else 0
        tolerance = 1e-5 if np.isinf(intercept_ratio) else 1e-9
        np.testing.assert_allclose(F[out], 0.5 * K[np.ix_(out, ~out)] @ A + b + mean, atol=tolerance)
