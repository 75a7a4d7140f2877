"""Samples of rows are functions of the data: not of random_state, of the order of the rows, or of where they lie."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from limit_cases import LEVELS, lower
from sklearn.base import clone, is_regressor

from leastwise import LSPC, LSSVC, LSSVR, MultiLabelLSPC, MultiTaskLSPC, MultiTaskLSSVC, MultiTaskLSSVR
from leastwise.datasets import make_related_tasks
from leastwise.fitting import task_problem
from leastwise.fitting import task_streams as task_streaming
from leastwise.model_selection.folds import content_hashes, search_sample
from leastwise.solvers.evaluator import Rows
from leastwise.utils.hashing import generator, row_hashes, sample_hashes, seed_of, unit_hashes


def data_of(make, n=300):
    rng = np.random.default_rng(1)
    if "MultiTask" in make.__name__:
        values = make is MultiTaskLSSVR
        data = make_related_tasks(
            10,
            n // 10,
            n_features=3,
            kind="regression" if values else "classification",
            offset=1.0 if values else 0.0,
            random_state=0,
        )
        return data.X, data.y, {"tasks": data.task}
    X = rng.normal(size=(n, 3))
    X[: n // 10] = X[n // 10 : 2 * (n // 10)]
    f = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
    if make is MultiLabelLSPC:
        return X, (np.column_stack([f, X[:, 0] - X[:, 1], X[:, 2]]) > 0).astype(float), {}
    return X, f if make is LSSVR else (f > 0).astype(int), {}


def said(model, X, beside):
    return model.predict(X, **beside) if is_regressor(model) else model.predict_proba(X, **beside)


ALL = [LSPC, LSSVC, LSSVR, MultiTaskLSPC, MultiTaskLSSVC, MultiTaskLSSVR, MultiLabelLSPC]


@pytest.mark.filterwarnings("ignore:solver='krylov' stopped", "ignore:Conjugate gradients stopped")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("make", "gaps"), [*((make, False) for make in ALL), (MultiLabelLSPC, True)])
def test_random_state_makes_no_difference(make, gaps, level, monkeypatch):
    lower(monkeypatch, *LEVELS[level])
    X, y, beside = data_of(make)
    if gaps:
        y[:, 1:][np.random.default_rng(0).random(y[:, 1:].shape) < 0.2] = np.nan
    first, second = (make(random_state=s).fit(X, y, **beside) for s in (7, None))
    assert first.cv_results_["n_rows"].min() < len(X)
    np.testing.assert_array_equal(said(first, X, beside), said(second, X, beside))


@pytest.mark.parametrize(
    ("make", "extra"),
    [*((make, extra) for make in ALL for extra in (None, "groups", "weights")), (MultiLabelLSPC, "gaps")],
)
def test_the_order_of_the_rows_makes_no_difference(make, extra, monkeypatch):
    lower(monkeypatch, *LEVELS["search"], "calibration.extrapolation.SOME", "calibration.label_blend.ENTRIES")
    X, y, beside = data_of(make)
    given = dict(beside)
    if extra == "groups":
        given["groups"] = np.arange(len(X)) // 5
    if extra == "weights":
        given["sample_weight"] = np.linspace(0.5, 2, len(X))
    if extra == "gaps":
        y[:, 1:][np.random.default_rng(0).random(y[:, 1:].shape) < 0.2] = np.nan
    order = np.random.default_rng(2).permutation(len(X))
    model = make(random_state=0, **({"tol": 1e-12} if make is MultiLabelLSPC else {}))
    one = clone(model).fit(X, y, **given)
    other = clone(model).fit(X[order], y[order], **{name: a[order] for name, a in given.items()})
    assert one.cv_results_["n_rows"].min() < len(X)
    atol = 1e-6 if extra == "groups" else 1e-8  # calibrators are found by iterations
    np.testing.assert_allclose(said(one, X, beside), said(other, X, beside), rtol=0, atol=atol)


def test_a_precomputed_kernel_may_be_permuted_too(monkeypatch):
    lower(monkeypatch, "solvers.work.SEARCH_ROWS")
    X, y, _ = data_of(LSPC)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 2)
    order = np.random.default_rng(2).permutation(len(X))
    one = LSPC(kernel="precomputed").fit(K, y)
    other = LSPC(kernel="precomputed").fit(K[np.ix_(order, order)], y[order])
    np.testing.assert_allclose(one.predict_proba(K), other.predict_proba(K[:, order]), rtol=0, atol=1e-8)


# --------------------------------------------------------------------- samples


def rows_of(X, y, w=None, group=None, copy=None):
    n = len(y)
    copy = np.unique(X, axis=0, return_inverse=True)[1].reshape(-1) if copy is None else copy
    w = np.ones(n) if w is None else w
    return Rows(X, y, w, np.arange(n), copy, copy if group is None else group)


@given(st.integers(0, 10**6), st.integers(1, 40))
def test_samples_do_not_depend_on_the_order(seed, count):
    rng = np.random.default_rng(seed)
    X, y, w = rng.integers(0, 3, (80, 2)).astype(float), rng.integers(0, 2, 80), rng.choice([0.5, 1, 2.0], 80)
    group = rng.integers(0, 40, 80) if seed % 2 else None
    order = rng.permutation(80)
    one = search_sample(rows_of(X, y, w, group), count)
    other = order[
        search_sample(rows_of(X[order], y[order], w[order], None if group is None else group[order]), count)
    ]

    def taken(index):  # rows that are equal in everything may stand for each other
        parts = [X[index], y[index], w[index]] + ([] if group is None else [group[index]])
        return sorted(map(tuple, np.column_stack(parts).tolist()))

    assert taken(one) == taken(other)


def test_rows_of_few_values_are_sampled_in_proportion():
    """A sample by the hash of X alone would have all copies of some cells, and none of others."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (5000, 2)).astype(float)
    y = (rng.random(5000) < 0.2 + 0.15 * (X @ [1, 2])).astype(int)
    index = search_sample(rows_of(X, y), 1000)
    cell = (X @ [1, 2]).astype(int) * 2 + y
    size, drawn = np.bincount(cell, minlength=8), np.bincount(cell[index], minlength=8)
    share = len(index) / 5000
    assert np.all(np.abs(drawn - share * size) < 4 * np.sqrt(share * (1 - share) * size))


def test_a_weight_of_two_leaves_other_rows_where_they_were():
    """Merging two copies into one row of weight 2 changes no other key."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.integers(0, 2, 100)
    twice = np.r_[np.arange(100), np.arange(20)]
    doubled = content_hashes(rows_of(X[twice], y[twice]), "sample")
    w = np.where(np.arange(100) < 20, 2.0, 1.0)
    once = content_hashes(rows_of(X, y, w), "sample")
    assert set(once) < set(doubled)
    np.testing.assert_array_equal(once[20:], doubled[20:100])


def test_single_and_double_precision_have_the_same_sample():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    double, single = (search_sample(rows_of(X.astype(dtype), y), 100) for dtype in (float, np.float32))
    np.testing.assert_array_equal(double, single)
    near = np.column_stack([X[:, 0] + 1e9, X[:, 1]])  # times in seconds, which single precision cannot tell apart
    order, each = rng.permutation(300), np.arange(300)  # copies are numbered as they come
    one = search_sample(rows_of(near, y, copy=each), 100)
    other = search_sample(rows_of(near[order], y[order], copy=each), 100)
    np.testing.assert_array_equal(one, np.sort(order[other]))


def test_purposes_have_samples_of_their_own():
    x = row_hashes(np.arange(1000.0)[:, None])
    one, other = (np.argsort(sample_hashes(x, [], [], name))[:100] for name in ("sample", "scale"))
    assert len(np.intersect1d(one, other)) < 30


def test_keys_of_groups_do_not_depend_on_their_sizes_or_their_order():
    rng = np.random.default_rng(0)
    x, unit = row_hashes(rng.normal(size=(4000, 2))), rng.integers(0, 200, 4000)
    unit[unit < 20] = unit[unit < 20] % 2  # two large ones
    _, unit = np.unique(unit, return_inverse=True)
    order = rng.permutation(4000)
    keys = unit_hashes(x, unit, "sample")
    np.testing.assert_array_equal(keys, unit_hashes(x[order], unit[order], "sample"))
    np.testing.assert_array_equal(keys, unit_hashes(np.r_[x, x[:50]], np.r_[unit, unit[:50]], "sample"))
    assert 0.4 < keys.astype(float).mean() / 2.0**64 < 0.6


def test_groups_stay_whole_where_there_are_many():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 2)), rng.integers(0, 2, 3000)
    many, few = np.arange(3000) // 20, np.arange(3000) % 8
    index = search_sample(rows_of(X, y, group=many), 1000)
    assert set(np.bincount(many[index])) <= {0, 20}
    assert 1000 <= len(index) <= 1020
    index = search_sample(rows_of(X, y, group=few), 1000)  # each of a few large groups gives some rows
    assert np.ptp(np.bincount(few[index])) <= 4
    assert 950 <= len(index) <= 1050


def test_tasks_in_memory_and_in_parts_have_the_same_sample(monkeypatch):
    """Also where tasks are so large that rows are drawn from them, and rows of few values."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(6), 100)
    X = np.round(rng.normal(size=(600, 2)))
    y = (rng.random(600) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    found = {}
    some, gathered = task_problem.some_units, task_streaming.gathered
    monkeypatch.setattr(task_problem, "some_units", lambda *a: found.setdefault("memory", some(*a)))
    monkeypatch.setattr(task_streaming, "gathered", lambda *a: found.setdefault("parts", gathered(*a)))
    model = MultiTaskLSPC(sigma=1.0, n_centers=20, search_rows=120, random_state=0)
    clone(model).fit(X, y, tasks=task)
    clone(model).fit_stream(X, y, task=task, block_rows=70)
    rows, index = found["parts"].rows, found["memory"]
    assert len(index) < 200

    def cells(X, y, task):
        return sorted(map(tuple, np.column_stack([X, y, task]).tolist()))

    assert cells(rows.X, rows.y, rows.index) == cells(X[index], y[index], task[index])


def test_a_stream_of_few_values_keeps_all_of_them():
    """Cells of equal rows are merged, not left out: a small sample says what all rows say."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (5000, 2)).astype(float)
    y = (rng.random(5000) < np.array([0.1, 0.4, 0.6, 0.95])[(X @ [2, 1]).astype(int)]).astype(int)
    cells = np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]])
    small = LSPC().fit_stream(X, y, keep_rows=50, block_rows=700)
    whole = LSPC().fit_stream(X, y, block_rows=700)
    assert small.kept_.w.sum() == 5000
    np.testing.assert_allclose(small.predict_proba(cells), whole.predict_proba(cells), atol=0.02)


# --------------------------------------------------------------------- seeds


def test_generators_go_by_their_names():
    assert generator("centers", 3).random() == generator("centers", 3).random()
    assert generator("centers", 3).random() != generator("folds", 3).random()
    assert generator("centers", 3).random() != generator("centers", 4).random()


def test_no_seed_is_a_fixed_one_and_a_generator_goes_on():
    before = np.random.get_state()[1].copy()
    assert seed_of(None) == seed_of(None)
    np.testing.assert_array_equal(np.random.get_state()[1], before)
    source = np.random.RandomState(0)
    assert seed_of(source) != seed_of(source)
    X, y, _ = data_of(LSPC)
    one, other = (LSPC(sigma=1.0, n_centers=20).fit(X, y).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert (LSPC(sigma=1.0, n_centers=20, random_state=5).fit(X, y).predict_proba(X) != one).any()
