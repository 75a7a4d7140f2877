"""Similarity of tasks: planted groups are found, and the closed forms are what loops give."""

from itertools import product
from math import factorial

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from leastwise.problem import similarity as module
from leastwise.problem.similarity import correlation_similarity, input_similarity, learned_similarity


def gaussian(X, Y, sigma=1.0):
    return np.exp(-np.sum((X[:, None] - Y[None]) ** 2, axis=-1) / (2 * sigma**2))


def tasks_of(sign, size=25, seed=0, noise=0.3):
    """Balanced labels by the sign of x1 x2, times the task's sign; a task of sign 0 has labels of pure chance."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(len(sign)), size)
    X = rng.normal(size=(len(task), 2))
    score = 2 * np.asarray(sign)[task] * X[:, 0] * X[:, 1] + noise * rng.normal(size=len(task))
    return X, (score > 0).astype(int), task


def learn(X, y, task, alpha=1e-2, sharing=0.5, root=None, classes=2):
    return learned_similarity(gaussian(X, X), np.eye(classes)[y], task, alpha * len(y), sharing, root)


def assert_similarity(S, T):
    assert S.shape == (T, T)
    np.testing.assert_array_equal(S, S.T)
    np.testing.assert_array_equal(np.diag(S), 1.0)
    assert S.min() >= 0
    assert S.max() <= 1
    assert np.linalg.eigvalsh(S)[0] > -1e-12


# --- learned: does it find what is there? ---


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sign", [[1, 1, 1, 1, 1, 1, -1, -1], [1, -1, 1, -1, 1, -1]])
def test_reversed_tasks_are_separated(sign, seed):
    """Inputs and class shares are the same in all tasks, so that only the relation of both can tell."""
    S = learn(*tasks_of(sign, seed=seed))
    np.testing.assert_allclose(S, np.equal.outer(sign, sign), atol=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_planted_groups_are_recovered(seed):
    rng = np.random.default_rng(seed)
    group = np.arange(9) % 3
    task = np.repeat(np.arange(9), 30)
    X = rng.normal(size=(270, 2))
    shapes = np.stack([X[:, 0] * X[:, 1], X[:, 0], np.sum(X**2, axis=1) - 1.5])
    y = (shapes[group[task], np.arange(270)] > 0).astype(int)
    S = learn(X, y, task)
    np.testing.assert_allclose(S, np.equal.outer(group, group), atol=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_related_tasks_stay_together(seed):
    S = learn(*tasks_of([1] * 8, size=12, seed=seed, noise=1.0), sharing=0.9)
    assert S.min() > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_unrelated_tasks_stay_apart(seed):
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(6), 50)
    X = rng.normal(size=(300, 4))
    direction = np.vstack([np.eye(4), -np.eye(4)[:2]])
    y = (np.sum(X * direction[task], axis=1) > 0).astype(int)
    S = learned_similarity(gaussian(X, X, 2.0), np.eye(2)[y], task, 3.0, 0.1)
    assert np.max(S - np.eye(6)) < 0.2


def test_a_foreign_task_does_not_join():
    S = learn(*tasks_of([1, 1, 1, 1, 1, 0], size=40))
    assert S[:5, :5].min() > 0.9
    assert S[5, :5].max() < 0.1


def test_reversed_rare_classes_are_separated():
    """As in Landmine: few positives, and two tasks with labels reversed."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(10), 30)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=300) > 1.5).astype(int)
    y = np.where(task >= 8, 1 - y, y)
    S = learn(X, y, task, sharing=0.9)
    np.testing.assert_allclose(S, np.equal.outer(np.arange(10) < 8, np.arange(10) < 8), atol=0.1)


def test_more_rows_give_a_sharper_answer():
    sign = [1, 1, -1, -1]
    truth = np.equal.outer(sign, sign)
    error = [np.abs(learn(*tasks_of(sign, size=size, noise=1.0)) - truth).mean() for size in (4, 12, 40)]
    assert error[0] > error[1] > error[2]


def test_the_scores_of_other_tasks_get_better():
    """What it is for: with the learned similarity the model predicts new rows as with the true groups."""
    sign = np.array([1, 1, 1, -1, -1, -1])
    X, y, task = tasks_of(sign, size=30)
    new, truth, where = tasks_of(sign, size=200, seed=1)
    Z, n = np.eye(2)[y], len(y)

    def accuracy(S):
        B = 0.9 * S + 0.1 * np.eye(6)
        A = np.linalg.solve(gaussian(X, X) * B[np.ix_(task, task)] + 0.01 * n * np.eye(n), Z)
        return np.mean((gaussian(new, X) * B[np.ix_(where, task)] @ A).argmax(axis=1) == truth)

    record = accuracy(learn(X, y, task))
    assert record > accuracy(np.eye(6)) + 0.02
    assert record > accuracy(np.ones((6, 6))) + 0.2
    assert record > accuracy(np.equal.outer(sign, sign)) - 0.01


# --- learned: properties ---


def random_problem(seed, T=6, n=80, classes=3):
    rng = np.random.default_rng(seed)
    task = np.append(np.arange(T), rng.integers(T, size=n - T))
    return rng.normal(size=(n, 2)), rng.integers(classes, size=n), task


@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_learned_is_a_similarity(seed, sharing):
    X, y, task = random_problem(seed)
    root = np.sqrt(np.random.default_rng(seed).exponential(size=len(y)))
    assert_similarity(learn(X, y, task, sharing=sharing, root=root / np.sqrt(np.mean(root**2)), classes=3), 6)


def test_permuted_rows_change_nothing_and_permuted_tasks_permute():
    X, y, task = tasks_of([1, 1, -1, 0, 1], size=10, noise=1.0)
    S = learn(X, y, task)
    rng = np.random.default_rng(0)
    order, code = rng.permutation(len(y)), rng.permutation(5)
    np.testing.assert_allclose(learn(X[order], y[order], task[order]), S, atol=1e-9)
    np.testing.assert_allclose(learn(X, y, code[task])[np.ix_(code, code)], S, atol=1e-9)


def test_permuted_classes_change_nothing():
    X, y, task = random_problem(0)
    np.testing.assert_allclose(learn(X, 2 - y, task, classes=3), learn(X, y, task, classes=3), atol=1e-9)


def test_no_state_between_calls():
    X, y, task = random_problem(1)
    K, Z = gaussian(X, X), np.eye(3)[y]
    before = K.copy(), Z.copy()
    first = learned_similarity(K, Z, task, 1.0, 0.5)
    np.testing.assert_array_equal(first, learned_similarity(K, Z, task, 1.0, 0.5))
    np.testing.assert_array_equal(K, before[0])
    np.testing.assert_array_equal(Z, before[1])


def test_unit_weights_are_no_weights_and_zero_weights_no_rows():
    X, y, task = tasks_of([1, 1, -1, 1], size=10, noise=1.0)
    K, Z = gaussian(X, X), np.eye(2)[y]
    S = learned_similarity(K, Z, task, 0.4, 0.5)
    np.testing.assert_allclose(learned_similarity(K, Z, task, 0.4, 0.5, np.ones(40)), S, atol=1e-12)
    root = (np.random.default_rng(0).random(40) < 0.8).astype(float)
    kept = np.flatnonzero(root)
    part = learned_similarity(K[np.ix_(kept, kept)], Z[kept], task[kept], 0.4, 0.5)
    np.testing.assert_allclose(learned_similarity(K, Z, task, 0.4, 0.5, root), part, atol=1e-9)
    assert np.abs(part - S).max() > 1e-3


def test_repeated_rows_are_weights_but_for_their_number():
    """q and l of repeated rows are those of weighted ones: only the count of rows differs."""
    X, y, task = random_problem(2, T=3, n=20, classes=2)
    times = np.random.default_rng(0).integers(1, 4, size=20)
    again = np.repeat(np.arange(20), times)
    K, Z = gaussian(X, X), np.eye(2)[y] - 0.5
    single = one_group(K * np.sqrt(np.outer(times, times)), np.sqrt(times)[:, None] * Z, task)
    repeated = one_group(K[np.ix_(again, again)], Z[again], task[again])
    assert repeated.misfit == pytest.approx(single.misfit)
    assert repeated.logdet == pytest.approx(single.logdet)


# --- learned: corners ---


@pytest.mark.parametrize("T", [1, 2])
def test_one_task_and_two(T):
    assert_similarity(learn(*tasks_of([1] * T)), T)


def test_two_tasks_alike_and_reversed():
    assert learn(*tasks_of([1, 1], size=40))[0, 1] > 0.9
    assert learn(*tasks_of([1, -1], size=40))[0, 1] < 0.1


def test_tasks_of_one_row():
    X, y, task = tasks_of([1, 1, -1])
    X, y, task = np.vstack([X, X[:2] + 0.1]), np.append(y, y[:2]), np.append(task, [3, 4])
    assert_similarity(learn(X, y, task), 5)
    assert_similarity(learn(X[:6], y[:6], np.arange(6)), 6)
    assert_similarity(learn(X[:1], y[:1], np.zeros(1, int)), 1)


def test_tasks_of_one_class():
    X, y, task = tasks_of([1, 1, -1])
    assert_similarity(learn(X, np.where(task == 1, 0, y), task), 3)
    assert_similarity(learn(X, np.zeros_like(y), task), 3)
    assert_similarity(learn(X, np.zeros_like(y), task, classes=1), 3)


def test_a_task_of_weight_zero():
    X, y, task = tasks_of([1, 1, -1])
    assert_similarity(learn(X, y, task, root=np.where(task == 0, 0.0, np.sqrt(1.5))), 3)


def test_real_targets():
    X, _, task = tasks_of([1, 1, -1, -1])
    z = np.where(task < 2, 1.0, -1.0) * np.sin(2 * X[:, 0])
    S = learned_similarity(gaussian(X, X), z[:, None], task, 0.1, 0.5)
    np.testing.assert_allclose(S, np.equal.outer([1, 1, 0, 0], [1, 1, 0, 0]), atol=0.05)
    assert_similarity(learned_similarity(gaussian(X, X), np.zeros((100, 1)), task, 0.1, 0.5), 4)


def test_equal_rows_and_almost_no_ridge():
    X, y, task = tasks_of([1, 1, -1])
    assert_similarity(learn(np.round(X), y, task, alpha=1e-14), 3)
    assert_similarity(learn(np.zeros_like(X), y, task, alpha=1e-14), 3)


# --- learned: the closed forms ---


def rows_of(task):
    return [np.flatnonzero(task == t) for t in range(task.max() + 1)]


def setting_of(K, Z, task, level=0.6, ridge=0.3):
    return module._Setting(K / ridge, Z, rows_of(task), level, len(Z), max(Z.shape[1] - 1, 1))


def one_group(K, Z, task):
    setting = setting_of(K, Z, task)
    return module._group(setting, setting.rows)


def evidence_parts(K, Z, task, label, level=0.6, ridge=0.3):
    """Sums of q and l over groups, from the whole covariance at once."""
    B = np.where(np.equal.outer(task, task), 1.0, level) * np.equal.outer(label[task], label[task])
    C = K * B / ridge + np.eye(len(K))
    return np.trace(Z.T @ np.linalg.solve(C, Z)), np.linalg.slogdet(C)[1]


def small_problem():
    X, y, task = random_problem(3, T=5, n=30)
    return gaussian(X, X), np.eye(3)[y] - 1 / 3, task


def test_joins_against_the_whole_covariance():
    K, Z, task = small_problem()
    setting = setting_of(K, Z, task)
    groups = [module._group(setting, [setting.rows[t] for t in m]) for m in ([0, 2], [1], [3, 4])]
    change = module._joins(setting, groups[0], groups[1:])
    apart = evidence_parts(K, Z, task, np.array([0, 1, 0, 2, 2]))
    for j, label in enumerate([[0, 0, 0, 2, 2], [0, 1, 0, 0, 0]]):
        joined = evidence_parts(K, Z, task, np.array(label))
        np.testing.assert_allclose(change[:, j], np.subtract(joined, apart), atol=1e-10)


def slow_score(K, Z, task, label):
    T, sizes = len(label), np.bincount(label)
    weights = [weight_of(other) for other in all_groupings(T) if len(set(other)) == len(set(label))]
    q, l = evidence_parts(K, Z, task, label)
    evidence = -(Z.shape[1] - 1) / 2 * (len(Z) * np.log(q) + l)
    return module.POWER * evidence + np.log(np.prod([factorial(s - 1) for s in sizes if s]) / sum(weights))


def all_groupings(T):
    """Every grouping once: a task opens the next group or joins one that is open."""
    return [g for g in product(range(T), repeat=T) if all(g[t] <= max(g[:t], default=-1) + 1 for t in range(T))]


def weight_of(label):
    return np.prod([factorial(label.count(k) - 1) for k in set(label)])


def test_the_path_against_slow_scores_of_every_join():
    K, Z, task = small_problem()
    found = list(module._groupings(setting_of(K, Z, task)))
    assert [len(set(label)) for _, label in found] == [5, 4, 3, 2, 1]
    for (score, label), (following, after) in zip(found, [*found[1:], (None, None)], strict=True):
        assert score == pytest.approx(slow_score(K, Z, task, label))
        joins = [np.where(label == b, a, label) for a in set(label) for b in set(label) if a < b]
        if joins:
            scores = [slow_score(K, Z, task, join) for join in joins]
            assert following == pytest.approx(max(scores))
            np.testing.assert_array_equal(after, joins[int(np.argmax(scores))])


def test_learned_is_the_mean_over_the_paths():
    K, Z, task = small_problem()
    met = []
    for level, factor in product((0.2, *module.LEVELS), module.RIDGES):
        met += module._groupings(setting_of(K, Z, task, level, 0.3 * factor))
    weight = np.exp([score - met[0][0] for score, _ in met])
    mean = sum(w * np.equal.outer(label, label) for w, (_, label) in zip(weight, met, strict=True)) / weight.sum()
    np.testing.assert_allclose(learned_similarity(K, Z + 1 / 3, task, 0.3, 0.2), mean, atol=1e-9)


def test_evidence_is_a_gaussian_density_at_its_best_scale(monkeypatch):
    monkeypatch.setattr(module, "POWER", 1.0)
    K, Z, task = small_problem()
    z, n = Z[:, :1], len(Z)
    values = []
    for label in (np.zeros(5, int), np.arange(5)):
        q, l = evidence_parts(K, z, task, label)
        B = np.where(np.equal.outer(task, task), 1.0, 0.6) * np.equal.outer(label[task], label[task])
        C = (q / n) * (K * B / 0.3 + np.eye(n))
        density = multivariate_normal(np.zeros(n), C).logpdf(z[:, 0])
        values.append(setting_of(K, z, task).evidence(q, l) - density)
    assert values[0] == pytest.approx(values[1])


def test_cycle_numbers():
    np.testing.assert_allclose(np.exp(module._log_cycle_numbers(5)), [0, 24, 50, 35, 10, 1], rtol=1e-12)
    for k in range(1, 5):
        total = sum(weight_of(g) for g in all_groupings(4) if len(set(g)) == k)
        assert np.exp(module._log_cycle_numbers(4)[k]) == pytest.approx(total)


# --- from the inputs ---


def test_input_similarity_against_loops():
    X, _, task = random_problem(0)
    K = gaussian(X, X)
    mean = np.array([[K[np.ix_(task == t, task == u)].mean() for u in range(6)] for t in range(6)])
    S = input_similarity(K, task)
    np.testing.assert_allclose(S, mean / np.sqrt(np.outer(np.diag(mean), np.diag(mean))), atol=1e-12)
    assert_similarity(S, 6)


def test_input_similarity_sees_where_inputs_lie():
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(3), 40)
    X = rng.normal(size=(120, 2)) + np.array([0.0, 0.0, 6.0])[task][:, None]
    S = input_similarity(gaussian(X, X), task)
    assert S[0, 1] > 0.9
    assert S[0, 2] < 0.01
    assert input_similarity(np.ones((1, 1)), np.zeros(1, int)) == np.ones((1, 1))


# --- from correlations ---


def slow_correlation(K, Z, task, rho, weight):
    """Own models by refits without the row in hand, then weighted correlations of the first class's scores."""
    T, n = task.max() + 1, len(Z)
    said = np.zeros((T, n))
    for t, i in product(range(T), range(n)):
        own = np.flatnonzero((task == t) & (np.arange(n) != i))
        A = np.linalg.solve(K[np.ix_(own, own)] * weight[own] + rho * np.eye(len(own)), Z[own, 0] - 0.5)
        said[t, i] = K[i, own] @ (weight[own] * A)
    return np.atleast_2d(np.cov(said, aweights=weight))


@pytest.mark.parametrize("weighted", [False, True])
def test_correlation_against_refits(weighted):
    X, y, task = tasks_of([1, 1, -1, -1], size=12)
    K, Z = gaussian(X, X), np.eye(2)[y]
    weight = np.random.default_rng(0).exponential(size=48) if weighted else np.ones(48)
    weight[3] = 0.0 if weighted else 1.0
    weight /= weight.mean()
    cov = slow_correlation(K, Z, task, 0.3, weight)
    expected = np.maximum(cov / np.sqrt(np.outer(np.diag(cov), np.diag(cov))), 0)
    assert np.linalg.eigvalsh(expected)[0] >= 0
    S = correlation_similarity(K, Z, task, 0.3, np.sqrt(weight) if weighted else None)
    np.testing.assert_allclose(S, expected, atol=1e-10)
    assert min(S[0, 1], S[2, 3]) > 0.2
    assert S[:2, 2:].max() < 0.05


@pytest.mark.parametrize("seed", range(5))
def test_correlation_is_a_similarity(seed):
    X, y, task = random_problem(seed, T=12, n=60)
    assert_similarity(correlation_similarity(gaussian(X, X), np.eye(3)[y], task, 0.1), 12)


def test_correlation_permutes_with_tasks_and_rows():
    X, y, task = random_problem(0)
    K, Z = gaussian(X, X), np.eye(3)[y]
    S = correlation_similarity(K, Z, task, 0.3)
    rng = np.random.default_rng(0)
    order, code = rng.permutation(len(y)), rng.permutation(6)
    shuffled = correlation_similarity(K[np.ix_(order, order)], Z[order], code[task[order]], 0.3)
    np.testing.assert_allclose(shuffled[np.ix_(code, code)], S, atol=1e-10)


def test_correlation_corners():
    X, y, task = tasks_of([1, 1, -1])
    K, Z = gaussian(X, X), np.eye(2)[y]
    np.testing.assert_array_equal(correlation_similarity(K, Z, np.zeros_like(task), 0.3), [[1.0]])
    assert_similarity(correlation_similarity(K[:6, :6], Z[:6], np.arange(6), 0.3), 6)
    np.testing.assert_array_equal(correlation_similarity(K[:1, :1], Z[:1], np.zeros(1, int), 0.3), [[1.0]])
    assert_similarity(correlation_similarity(K, np.ones((75, 1)), task, 0.3), 3)
    nothing = correlation_similarity(K, np.zeros((75, 1)), task, 0.3)
    np.testing.assert_array_equal(nothing, np.eye(3))
