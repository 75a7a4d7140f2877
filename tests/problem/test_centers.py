"""How centres are chosen."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from conftest import PLAIN, blobs
from hypothesis import given
from hypothesis import strategies as st
from reference import heldout_by_refits, rbf
from scipy import sparse
from scipy.optimize import bisect

import leastwise
from leastwise import LSPC, LSSVC, LSSVR, KernelLogisticRegression, MultiLabelLSPC, MultiTaskLSPC, MultiTaskLSSVR
from leastwise.problem import centers as choices
from leastwise.problem import centers as scoring
from leastwise.problem.basis import make_basis
from leastwise.problem.centers import Recipe, drawn_rows, even_rows, leverage_scores, ridge_of_size, spread_rows
from leastwise.problem.kernels import RBF, Linear

ROW_WAYS = ["random", "kmeans++", "leverage", "class"]
FIXED = {"sigma": 1.3, "alpha": 0.02}


def uneven(n, seed=0):
    """Most rows in a tight cloud, the others wide apart."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, 1)) < 0.9, 0.3, 3.0) * rng.normal(size=(n, 2))


def exact(K, p, ridge):
    """The definition: the diagonal of A (A + ridge)^-1."""
    A = np.sqrt(p)[:, None] * K * np.sqrt(p)
    return np.diagonal(A @ np.linalg.inv(A + ridge * np.eye(len(p))))


def exact_of_size(K, w, size):
    p = w / w.sum()
    log = bisect(lambda log: exact(K, p, np.exp(log)).sum() - size, -25, 5, xtol=1e-13)
    return exact(K, p, np.exp(log))


def block_of(K):
    return lambda a, b: K[np.ix_(a, b)]


def basis_of(X, way, count, y=None, w=None, copy=None, task=None, seed=0, **recipe):
    n = X.shape[0]
    y, w = np.zeros(n, dtype=int) if y is None else y, np.ones(n) if w is None else w
    copy = np.arange(n) if copy is None else copy
    recipe = Recipe(n_centers=count, centers=way, **{"kernel": RBF(), **recipe})
    return make_basis(recipe, X, y, w, copy, copy, np.random.default_rng(seed), task=task)


# ---------------------------------------------------------------- leverage scores


@pytest.mark.parametrize("weighted", [False, True])
def test_with_all_rows_for_a_pilot_scores_are_the_exact_ones(weighted, rng):
    X = uneven(80)
    w = rng.uniform(0.1, 4, 80) if weighted else np.ones(80)
    K = rbf(X, X, 1.0)
    found = leverage_scores(block_of(K), np.ones(80), w, np.arange(80), 10)
    np.testing.assert_allclose(found, exact_of_size(K, w, 10), rtol=1e-6)
    np.testing.assert_allclose(found.sum(), 10)


def test_scores_by_a_pilot_are_near_the_exact_ones(rng):
    X, order = uneven(300), rng.permutation(300)
    K = rbf(X, X, 1.0)
    wanted, far = exact_of_size(K, np.ones(300), 15), []
    for m in (40, 120, 250):
        found = leverage_scores(block_of(K), np.ones(300), np.ones(300), np.sort(order[:m]), 15)
        far.append(np.abs(np.log(found / wanted)).mean())
    assert far[0] > far[1] > far[2]
    assert far[1] < 0.6
    assert far[2] < 0.06
    assert np.corrcoef(found, wanted)[0, 1] > 0.99


def test_rows_of_the_pilot_have_no_smaller_scores_for_it(rng):
    """Over random pilots, the scores of a row within the pilot and outside of it are about the same."""
    X, inside, outside = uneven(300), [], []
    K = rbf(X, X, 0.5)
    for _ in range(40):
        pilot = np.sort(rng.choice(300, 100, replace=False))
        found = leverage_scores(block_of(K), np.ones(300), np.ones(300), pilot, 50)
        inside.append(found[pilot].mean())
        outside.append(np.delete(found, pilot).mean())
    assert abs(np.mean(inside) / np.mean(outside) - 1) < 0.05


def test_scores_of_copies_add_up_to_that_of_their_weight(rng):
    X, w = uneven(60), np.ones(60)
    w[:10] = 3
    many = np.r_[np.arange(60), np.arange(10), np.arange(10)]
    K = rbf(X, X, 1.0)
    weighed = leverage_scores(block_of(K), np.ones(60), w, np.arange(60), 12)
    copied = leverage_scores(block_of(K[np.ix_(many, many)]), np.ones(80), np.ones(80), np.arange(80), 12)
    np.testing.assert_allclose(weighed[:10], 3 * copied[:10], rtol=1e-6)
    np.testing.assert_allclose(weighed[10:], copied[10:60], rtol=1e-6)


def test_chunks_do_not_matter(monkeypatch, rng):
    X = uneven(200)
    whole = basis_of(X, "leverage", 40).rows
    monkeypatch.setattr(scoring, "CHUNK", 20_000)
    np.testing.assert_array_equal(basis_of(X, "leverage", 40).rows, whole)


def test_the_ridge_has_the_size_that_is_asked_for():
    mu = 2.0 ** -np.arange(30)
    for size in (0.5, 3.0, 12.0):
        ridge = ridge_of_size(mu, size)
        np.testing.assert_allclose(np.sum(mu / (mu + ridge)), size)
    few = np.array([1.0, 1.0, 0.0, 0.0])  # a rank of 2 has no size of 3
    assert 0 < ridge_of_size(few, 3.0) < 1e-9
    assert ridge_of_size(np.zeros(4), 2.0) > 0


def test_kernels_of_low_rank_and_not_of_a_distance(rng):
    X = rng.normal(size=(500, 3)) * np.where(np.arange(500) < 5, 30, 1)[:, None]
    chosen = basis_of(X, "leverage", 30, kernel=Linear()).rows
    assert len(chosen) == 30
    assert np.isin(np.arange(5), chosen).sum() >= 3  # long rows, of which a random choice has 0.3
    assert len(basis_of(0 * X, "leverage", 30, kernel=Linear()).rows) == 30


def test_lonely_rows_become_centres_more_often():
    X = np.vstack([0.1 * np.random.default_rng(0).normal(size=(400, 2)), 5 * np.eye(2)])
    for way in ("kmeans++", "leverage"):
        isolated = [np.isin([400, 401], basis_of(X, way, 15, seed=seed).rows).mean() for seed in range(30)]
        assert np.mean(isolated) > 0.8, way  # 0.04 by a random choice


def test_values_that_overflow_are_refused():
    with pytest.raises(ValueError, match=r"not finite.*scale the features"):
        leverage_scores(lambda a, b: np.full((len(a), len(b)), np.inf), np.ones(5), np.ones(5), np.arange(3), 1)


# ----------------------------------------------------------------------- drawing


def test_rows_are_drawn_in_proportion_without_replacement(rng):
    """Against the probabilities of all orders of successive draws."""
    score, draws = np.array([4.0, 1.0, 2.0, 0.5]), 20_000
    expected = Counter()
    for first, second in permutations(range(4), 2):
        chance = score[first] / score.sum() * score[second] / (score.sum() - score[first])
        expected[frozenset((first, second))] += chance
    found = Counter(frozenset(drawn_rows(np.arange(4), score, 2, rng).tolist()) for _ in range(draws))
    for pair, chance in expected.items():
        assert abs(found[pair] / draws - chance) < 4 * np.sqrt(chance * (1 - chance) / draws)


def test_rows_of_score_zero_come_last(rng):
    score = np.array([0.0, 1.0, 0.0, 1e-300, 1.0])
    np.testing.assert_array_equal(drawn_rows(np.arange(5), score, 3, rng), [1, 3, 4])
    assert len(drawn_rows(np.arange(5), score, 4, rng)) == 4


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(1, 70), st.integers(0, 9))
def test_kinds_get_equal_numbers_as_far_as_they_have_rows(kinds, count, seed):
    kind = np.array(kinds)
    rows = even_rows(np.arange(len(kind)), kind, count, np.random.default_rng(seed))
    assert len(rows) == len(set(rows.tolist())) == min(count, len(kind))
    sizes, got = np.bincount(kind), np.bincount(kind[rows], minlength=int(kind.max()) + 1)
    most = got.max()
    assert all(g == s or g >= most - 1 for g, s in zip(got, sizes, strict=True))


def test_who_gets_the_odd_row_is_random():
    kind = np.repeat([0, 1], [90, 10])
    odd = [np.sum(even_rows(np.arange(100), kind, 5, np.random.default_rng(s)) >= 90) == 3 for s in range(400)]
    assert 0.4 < np.mean(odd) < 0.6


def test_spread_rows_cover_all_clusters_and_look_at_some_rows_only(monkeypatch, rng):
    middle = 100 * np.arange(8)
    X = (middle[rng.integers(8, size=400)] + rng.normal(size=400))[:, None]
    found = spread_rows(X, np.ones(400), np.arange(400), 8, rng)
    assert len(np.unique(np.round(X[found] / 100))) == 8
    monkeypatch.setattr(choices, "SEED_ROWS", 50)
    some = spread_rows(X, np.ones(400), np.arange(400), 30, rng)
    assert len(np.unique(some)) == 30


def test_heavy_rows_are_seeds_more_often(rng):
    X, w = rng.normal(size=(200, 2)), np.ones(200)
    w[:20] = 50
    heavy = [np.sum(spread_rows(X, w, np.arange(200), 10, np.random.default_rng(s)) < 20) for s in range(20)]
    assert np.mean(heavy) > 3  # 1 where weights do not count


def test_rows_too_close_to_be_told_apart_are_chosen_once(rng):
    X = 1e6 + 1e-9 * np.arange(40.0)[:, None]
    assert len(np.unique(spread_rows(X, np.ones(40), np.arange(40), 25, rng))) == 25


# ------------------------------------------------------------------------- bases


@given(st.sampled_from([*ROW_WAYS, "task"]), st.integers(1, 45), st.integers(0, 5))
def test_copies_are_chosen_once_and_there_are_never_too_few(way, count, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, size=(40, 2)).astype(float)
    copy, y = np.unique(X, axis=0, return_inverse=True)[1].ravel(), np.arange(40) % 3
    rows = basis_of(X, way, count, y, rng.uniform(0.5, 2, 40), copy, y, seed).rows
    if count >= 40:
        np.testing.assert_array_equal(rows, np.arange(40))
    else:
        assert len(rows) == len(np.unique(copy[rows])) == min(count, copy.max() + 1)


@pytest.mark.parametrize("way", [*ROW_WAYS, "kmeans"])
def test_the_random_state_decides(way):
    X, y = blobs(80)

    def chosen(seed):
        return LSPC(**FIXED, n_centers=12, centers=way, random_state=seed).fit(X, y).centers_

    np.testing.assert_array_equal(chosen(3), chosen(3))
    assert not np.array_equal(chosen(3), chosen(4))


@pytest.mark.parametrize("sigma", [1.3, [0.5, 1.0, 2.0], "auto"], ids=str)
@pytest.mark.parametrize("way", ROW_WAYS)
def test_a_weight_is_so_many_copies_and_weight_0_is_no_row(way, sigma):
    X, y = blobs(60)
    w = np.ones(60)
    w[:7], w[50:] = 3, 0
    options = {"alpha": 0.02, "sigma": sigma, "n_centers": 10, "centers": way, "random_state": 1}
    weighed = LSPC(**options).fit(X, y, sample_weight=w)
    many = np.r_[np.arange(50), np.arange(7), np.arange(7)]
    copied = LSPC(**options).fit(X[many], y[many])
    np.testing.assert_allclose(weighed.centers_, copied.centers_, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(weighed.predict_proba(X), copied.predict_proba(X), atol=1e-6)
    absent = weighed.inputs_(X[50:])
    assert not any(np.isclose(absent, c).all(axis=1).any() for c in weighed.centers_)


@pytest.mark.parametrize("norm", ["function", "coefficients"])
@pytest.mark.parametrize("way", ROW_WAYS)
def test_leave_one_out_takes_the_basis_function_of_the_row_along(way, norm):
    X, y = blobs(40)
    model = LSPC(**FIXED, n_centers=9, centers=way, norm=norm, calibration=None, random_state=0).fit(X, y)
    own = np.full(40, -1)
    for j, c in enumerate(model.centers_):
        own[np.flatnonzero((c == X).all(axis=1))] = j
    assert (own >= 0).sum() == 9
    Phi, C = rbf(X, model.centers_, 1.3), model.centers_
    penalty = rbf(C, C, 1.3) + 1e3 * np.finfo(float).eps * np.eye(9) if norm == "function" else np.eye(9)
    Z = np.eye(3)[y]
    expected = heldout_by_refits(Phi, Z, np.ones(40), 0.02, np.arange(40), own=own, penalty=penalty)
    np.testing.assert_allclose(model.heldout_scores_, expected, atol=1e-6)


def test_as_many_centres_for_each_class():
    X, y = blobs(90)
    y = np.where(np.arange(90) < 6, 2, y % 2)
    model = LSPC(**FIXED, n_centers=24, centers="class", random_state=0).fit(X, y)
    found = [y[np.flatnonzero((c == X).all(axis=1))[0]] for c in model.centers_]
    np.testing.assert_array_equal(np.bincount(found), [9, 9, 6])
    each = LSSVC(**FIXED, n_centers=3, centers="class", random_state=0).fit(X, y)
    found = [y[np.flatnonzero((c == X).all(axis=1))[0]] for c in each.centers_]
    np.testing.assert_array_equal(np.bincount(found), [1, 1, 1])
    one = KernelLogisticRegression(**FIXED, n_centers=1, centers="class", random_state=0, cv=None).fit(X, y)
    assert len(one.centers_) == 1


def test_a_class_of_one_row_has_its_centre():
    X, y = blobs(50, c=2)
    y[17] = 2
    model = LSPC(**FIXED, n_centers=3, centers="class", random_state=0).fit(X, y)
    assert (model.centers_ == X[17]).all(axis=1).any()


@pytest.mark.parametrize("way", ["kmeans++", "leverage", "class"])
def test_centres_of_each_class_alone(way):
    X, y = blobs(60)
    model = LSPC(**FIXED, basis="class", n_centers=4, centers=way, random_state=0).fit(X, y)
    found = [y[np.flatnonzero((c == X).all(axis=1))[0]] for c in model.centers_]
    np.testing.assert_array_equal(found, np.repeat([0, 1, 2], 4))


def test_as_many_centres_for_each_task():
    X, y = blobs(100, c=2)
    task = np.repeat(["a", "b", "c"], [80, 15, 5])
    for model in (MultiTaskLSPC(), MultiTaskLSSVR(kernel="rbf")):
        model.set_params(**FIXED, sharing=0.5, n_centers=18, centers="task", random_state=0).fit(X, y, tasks=task)
        rows = [np.flatnonzero((c == X).all(axis=1))[0] for c in model.centers_]
        found = Counter(task[rows].tolist())
        assert found["c"] == 5
        assert {found["a"], found["b"]} <= {6, 7}
    few = MultiTaskLSPC(**FIXED, sharing=0.5, n_centers=2, centers="task", random_state=0).fit(X, y, tasks=task)
    rows = [np.flatnonzero((c == X).all(axis=1))[0] for c in few.centers_]
    assert len(set(task[rows])) == 2


@pytest.mark.parametrize("way", ["kmeans++", "leverage"])
def test_models_of_labels_and_of_values(way):
    X, y = blobs(60)
    labels = np.eye(3, dtype=int)[y]
    assert MultiLabelLSPC(n_centers=9, centers=way, random_state=0).fit(X, labels).centers_.shape == (9, 2)
    assert LSSVR(n_centers=9, centers=way, random_state=0).fit(X, X.sum(axis=1)).score(X, X.sum(axis=1)) > 0.8


@pytest.mark.parametrize("way", ROW_WAYS)
def test_sparse_rows_are_chosen_as_dense_ones(way, rng):
    X = rng.normal(size=(70, 6)) * (rng.random((70, 6)) < 0.4)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    options = {**FIXED, "n_centers": 11, "centers": way, "random_state": 0}
    dense, thin = LSPC(**options).fit(X, y), LSPC(**options).fit(sparse.csr_matrix(X), y)
    np.testing.assert_array_equal(thin.centers_.toarray(), dense.centers_)
    np.testing.assert_allclose(thin.predict_proba(X), dense.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("way", ["random", "leverage", "class"])
def test_a_precomputed_kernel_is_chosen_from_by_rows(way):
    X, y = blobs(60)
    options = {**FIXED, "n_centers": 11, "centers": way, "random_state": 0}
    known = LSPC(**options, kernel="precomputed").fit(rbf(X, X, 1.3), y)
    np.testing.assert_array_equal(X[known.center_indices_], LSPC(**options).fit(X, y).centers_)


@pytest.mark.parametrize("way", [*ROW_WAYS, "kmeans"])
def test_columns_that_do_not_vary_and_single_precision(way):
    X, y = blobs(60)
    wide = np.hstack([X, np.full((60, 2), 7.0)])
    model = LSPC(n_centers=10, centers=way, random_state=0).fit(wide.astype(np.float32), y)
    assert model.centers_.dtype == np.float64
    assert model.predict_proba(wide).dtype == np.float32
    assert model.score(wide, y) > 0.6


def affine(A, B):
    return A @ B.T + 1


@pytest.mark.parametrize("kernel", ["laplace", "linear", "poly", "rbf+linear", pytest.param(affine, id="affine")])
def test_leverage_by_any_kernel(kernel):
    X, y = blobs(60)
    options = {"kernel": kernel, "n_centers": 10, "centers": "leverage", "random_state": 0}
    assert LSPC(**options).fit(X, y).score(X, y) > 0.6


@pytest.mark.parametrize("way", ROW_WAYS)
def test_huge_values_work_or_are_refused(way):
    X, y = blobs(60)
    options = {**PLAIN, "n_centers": 10, "centers": way, "random_state": 0}
    usual = LSPC(**options).fit(X, y)
    large = LSPC(**options).fit(X * 2.0**400, y)
    np.testing.assert_array_equal(large.centers_, usual.centers_ * 2.0**400)
    with pytest.raises(ValueError, match="squares overflow"):
        LSPC(**options).fit(X * 1e300, y)


@pytest.mark.parametrize("way", ROW_WAYS)
def test_huge_values_are_scaled_by_default(way):
    X, y = blobs(60)
    usual = LSPC(n_centers=10, centers=way, random_state=0).fit(X, y)
    for unit in (2.0**400, 1e300):
        large = LSPC(n_centers=10, centers=way, random_state=0).fit(X * unit, y)
        np.testing.assert_allclose(large.predict_proba(X * unit), usual.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("way", ["kmeans++", "leverage", "class"])
def test_files_keep_the_centres(way, tmp_path):
    X, y = blobs(60)
    model = LSPC(**FIXED, n_centers=10, centers=way, random_state=0).fit(X, y)
    leastwise.save(model, tmp_path / "model.lw")
    back = leastwise.load(tmp_path / "model.lw")
    assert back.centers == way
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LSPC(centers="task", n_centers=5), "centers='task' is not known: use one of .*'class'"),
        (LSSVR(centers="class", n_centers=5), "centers='class' is not known: use one of"),
        (MultiLabelLSPC(centers="class", n_centers=5), "centers='class' is not known: use one of"),
        (LSPC(centers="leverage"), "centers='leverage' needs the number of centres: give n_centers"),
        (LSPC(centers="kmeans++"), r"centers='kmeans\+\+' needs the number of centres: give n_centers"),
        (LSPC(centers="class"), "centers='class' needs the number of centres: give n_centers"),
        (LSPC(centers="kmeans++", n_centers=5, kernel="precomputed"), "has no rows to place centres at.*'random'"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(model, message):
    X, y = blobs(30)
    with pytest.raises(ValueError, match=message):
        model.fit(X, np.eye(3, dtype=int)[y] if isinstance(model, MultiLabelLSPC) else y)


def test_equal_rows_have_no_scale_for_leverage():
    with pytest.raises(ValueError, match="All rows of X are equal"):
        LSPC(n_centers=3, centers="leverage", cv=5, alpha=0.1).fit(np.ones((20, 2)), np.arange(20) % 2)
