"""Multi-task models from parts of the rows: the same answers as in memory, wherever the rows lie."""

import os
import signal
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hyp_settings
from hypothesis import strategies as st

from leastwise import MultiTaskLSPC, MultiTaskLSSVC, MultiTaskLSSVR
from leastwise.datasets import make_related_tasks

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")


@pytest.fixture(scope="module")
def rows():
    """Tasks of 1 to 40 rows with names of their own, three classes, of which some tasks have seen two."""
    rng = np.random.default_rng(0)
    sizes = np.r_[1, 1, 2, rng.integers(5, 40, size=30)]
    data = make_related_tasks(n_tasks=len(sizes), n_rows=40, random_state=0)
    keep = np.concatenate([np.flatnonzero(data.task == np.unique(data.task)[t])[:m] for t, m in enumerate(sizes)])
    X, task = data.X[keep], np.repeat([f"site {t:02d}" for t in range(len(sizes))], sizes)
    y = np.array(["a", "b"])[data.y[keep]]
    y[(X[:, 0] > 0.8) & (rng.uniform(size=len(y)) < 0.7)] = "c"
    return X, y, task, rng.uniform(0.5, 2, size=len(y))


def settings(X, **more):
    return {"sigma": 1.5, "alpha": 1e-3, "sharing": 0.5, "centers": X[::20], "random_state": 0, **more}


def chunked(X, y, task, w, size=90):
    """As Dask has them."""
    return (
        da.from_array(X, chunks=(size, -1)),
        da.from_array(y, chunks=size),
        {"tasks": da.from_array(task, chunks=size), "sample_weight": da.from_array(w, chunks=size)},
    )


def blocks_of(X, y, task, w, size=90):
    parts = [slice(a, a + size) for a in range(0, len(X), size)]
    return [{"X": X[p], "y": y[p], "tasks": task[p], "sample_weight": w[p]} for p in parts]


def in_memory(model, rows):
    X, y, task, w = rows
    return type(model)(**{**model.get_params(), "solver": "arrow", "search_rows": None}).fit(
        X, y, sample_weight=w, tasks=task
    )


def order_of(kind, n):
    return np.arange(n) if kind == "sorted" else np.random.default_rng(1).permutation(n)


MODELS = {
    "lspc": (MultiTaskLSPC, {}),
    "lspc, intercept, balanced": (MultiTaskLSPC, {"bias": "shared", "class_weight": "balanced"}),
    "lspc, coefficients, class weights": (MultiTaskLSPC, {"norm": "coefficients", "class_weight": {"a": 2.0}}),
    "lspc, nothing held out": (MultiTaskLSPC, {"cv": None, "calibration": None}),
    "svc, shrunk": (MultiTaskLSSVC, {"bias": 0.3, "linear_weight": 1.0}),
    "svc, shared": (MultiTaskLSSVC, {"bias": "shared", "kernel": "rbf", "class_weight": "balanced"}),
    "svr": (MultiTaskLSSVR, {"bias": "shared", "linear_weight": 1.0, "sigma": 0.5}),
    "svr, linear": (MultiTaskLSSVR, {"bias": 0.3, "kernel": "linear", "centers": "random"}),
}


def scores(model, X, task):
    return model.scores(X, task) if hasattr(model, "scores") else model.predict(X, task)


def targets(maker, y):
    return y if maker is not MultiTaskLSSVR else np.unique(y, return_inverse=True)[1] * 3.0


@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "sorted") for name in MODELS), ("lspc", "shuffled"), ("svc, shrunk", "shuffled")]
)
def test_a_stream_is_the_same_as_all_rows(rows, name, kind):
    maker, more = MODELS[name]
    order = order_of(kind, len(rows[0]))
    X, y, task, w = (a[order] for a in rows)
    y = targets(maker, y)
    model = maker(**settings(X, search_rows=200) | more)
    model.fit_stream(blocks_of(X, y, task, w))
    whole = in_memory(model, (X, y, task, w))
    np.testing.assert_allclose(scores(model, X, task), scores(whole, X, task), rtol=0, atol=1e-10)
    np.testing.assert_allclose(scores(model, X, "new"), scores(whole, X, "new"), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(model.tasks_, whole.tasks_)
    if hasattr(model, "class_prior_"):
        np.testing.assert_allclose(model.class_prior_, whole.class_prior_, atol=1e-12)


@pytest.mark.parametrize("bias", ["task", "shared"])
def test_free_intercepts_from_parts(rows, bias):
    keep = np.isin(rows[2], [name for name in np.unique(rows[2]) if np.sum(rows[2] == name) > 1])
    X, y, task, w = (a[keep] for a in rows)
    model = MultiTaskLSSVC(**settings(X, search_rows=200, bias=bias, linear_weight=1.0))
    model.fit_stream(blocks_of(X, y, task, w))
    whole = in_memory(model, (X, y, task, w))
    np.testing.assert_allclose(model.scores(X, task), whole.scores(X, task), rtol=0, atol=1e-10)
    if bias == "task":
        np.testing.assert_allclose(model.task_intercept_, whole.task_intercept_, rtol=0, atol=1e-10)


def test_a_task_of_one_row_has_no_free_intercept(rows):
    model = MultiTaskLSSVC(**settings(rows[0], search_rows=200, bias="task", linear_weight=1.0))
    with pytest.raises(ValueError, match="such as 'site 00' with 1 of"):
        model.fit_stream(blocks_of(*rows))


def test_where_products_lose_digits_parts_do_not(rows, monkeypatch):
    """A ridge so small that the sums would be of no use."""
    from leastwise.sources import task_workers as working

    asked, triangle = [], working.block_triangle
    monkeypatch.setattr(working, "block_triangle", lambda *told: asked.append(1) or triangle(*told))
    X, _, task, _ = rows
    more = {"cv": None, "calibration": None, "norm": "coefficients"}
    model = MultiTaskLSPC(**settings(X, search_rows=200) | {"alpha": 1e-16, "bias": "shared"} | more)
    whole = in_memory(model.fit_stream(blocks_of(*rows)), rows)
    F = whole.scores(X, task)
    assert len(asked) == len(blocks_of(*rows))
    np.testing.assert_allclose(model.scores(X, task), F, rtol=0, atol=1e-5 * np.abs(F).max())


def test_rows_of_no_weight_and_penalties_of_tasks(rows):
    """Also a task none of whose rows counts, and a block none of whose rows does."""
    X, y, task, w = rows
    w = np.where((np.arange(len(w)) % 3 == 0) | (task == "site 05") | (np.arange(len(w)) >= 630), 0, w)
    more = {"task_penalty": {"site 10": 3.0, "site 05": 2.0}, "class_weight": {"b": 0.0}}
    model = MultiTaskLSPC(**settings(X, search_rows=150, **more)).fit_stream(blocks_of(X, y, task, w))
    whole = in_memory(model, (X, y, task, w))
    np.testing.assert_array_equal(model.tasks_, whole.tasks_)
    np.testing.assert_array_equal(model.classes_, ["a", "c"])
    np.testing.assert_allclose(model.scores(X, task), whole.scores(X, task), rtol=0, atol=1e-10)


@given(st.lists(st.integers(1, 660), max_size=6), st.integers(0, 5))
@hyp_settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_cut_of_rows_in_any_order_is_the_same(rows, ends, seed):
    """One reduction, wherever the borders are: also empty blocks, and tasks in many of them."""
    order = np.arange(len(rows[0])) if seed == 0 else np.random.default_rng(seed).permutation(len(rows[0]))
    X, y, task, w = (a[order] for a in rows)
    bare = {"cv": None, "calibration": None, "search_rows": 100}
    borders = [0, *sorted(ends), len(X)]
    parts = [slice(a, b) for a, b in pairwise(borders)]
    cut = [{"X": X[p], "y": y[p], "tasks": task[p], "sample_weight": w[p]} for p in parts]
    model = MultiTaskLSPC(**settings(rows[0], **bare)).fit_stream(cut)
    whole = MultiTaskLSPC(**settings(rows[0], **bare)).fit_stream(
        [{"X": X, "y": y, "tasks": task, "sample_weight": w}]
    )
    # Coefficients of centres that almost depend on one another are known to fewer digits than what they add up to.
    np.testing.assert_allclose(model.scores(X, task), whole.scores(X, task), rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=0, atol=1e-7 * np.abs(whole.coef_).max())


def test_rows_that_come_once_or_would_wait_for_long_are_kept_on_disk(rows, tmp_path, monkeypatch):
    X, y, task, w = (a[order_of("shuffled", len(rows[0]))] for a in rows)
    fixed, blocks = settings(X, search_rows=200), blocks_of(X, y, task, w)
    expected = MultiTaskLSPC(**fixed).fit_stream(blocks).scores(X, task)
    once = MultiTaskLSPC(**fixed).fit_stream(iter(blocks), folder=tmp_path)
    np.testing.assert_allclose(once.scores(X, task), expected, rtol=0, atol=1e-10)
    monkeypatch.setattr(
        "leastwise.sources.task_statistics.TaskStatistics.waiting",
        lambda known, plan: 2**60 * any(m.home for m in plan),
    )
    for source in (blocks, lambda: iter(blocks)):
        kept = MultiTaskLSPC(**fixed).fit_stream(source, folder=tmp_path)
        np.testing.assert_allclose(kept.scores(X, task), expected, rtol=0, atol=1e-10)
    assert not list(tmp_path.iterdir())


def test_arrays_and_files_by_block(rows, tmp_path):
    pd = pytest.importorskip("pandas")
    X, y, task, w = rows
    fixed = settings(X, search_rows=200)
    expected = MultiTaskLSPC(**fixed).fit_stream(blocks_of(*rows)).scores(X, task)
    arrays = MultiTaskLSPC(**fixed).fit_stream(X, y, task=task, weight=w, block_rows=100)
    np.testing.assert_allclose(arrays.scores(X, task), expected, rtol=0, atol=1e-10)
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "y": y, "site": task, "w": w})
    frame.to_parquet(tmp_path / "rows.parquet")
    named = {"target": "y", "task": "site", "weight": "w", "block_rows": 100}
    files = MultiTaskLSPC(**fixed).fit_stream(tmp_path / "rows.parquet", **named)
    np.testing.assert_allclose(files.scores(frame[["x0", "x1"]], task), expected, rtol=0, atol=1e-10)


# ------------------------------------------------------------------ the sample


def test_few_rows_are_fitted_as_in_memory(rows):
    """Searches included, where the sample would be all rows."""
    X, y, task, w = rows
    model = MultiTaskLSPC(n_centers=30, sigma=(1.0, 2.0), random_state=0).fit_stream(blocks_of(*rows))
    whole = MultiTaskLSPC(n_centers=30, sigma=(1.0, 2.0), random_state=0).fit(X, y, sample_weight=w, tasks=task)
    np.testing.assert_array_equal(model.predict_proba(X, task), whole.predict_proba(X, task))


def test_the_sample_is_the_same_however_rows_are_cut(rows):
    models = [
        MultiTaskLSPC(n_centers=25, sigma=(1.0, 2.0), sharing=(0.2, 0.5), search_rows=150, random_state=0).fit_stream(
            blocks_of(*rows, size=size)
        )
        for size in (70, 233)
    ]
    P = [model.predict_proba(rows[0], rows[2]) for model in models]
    np.testing.assert_allclose(P[0], P[1], atol=1e-9)
    assert len(models[0].heldout_scores_) < 400 < len(rows[0])
    assert set(models[0].heldout_rows_.codes) == {0, 1, 2}


def test_heldout_scores_of_the_sample_are_those_of_refits(rows):
    """Each is that of a model without the row, at the ridge of all rows."""
    X, y, task, w = rows
    model = MultiTaskLSPC(**settings(X, search_rows=150)).fit_stream(blocks_of(*rows))
    known, bare = model.heldout_rows_, {"cv": None, "calibration": None, "solver": "arrow"}
    names, some = model.tasks_[known.task], [0, 57, len(known.task) - 1]
    places = [np.flatnonzero((task == names[i]) & (np.abs(w / w.mean() - known.weight[i]) < 1e-9)) for i in some]
    for i, place in zip(some, places, strict=True):
        rest = np.setdiff1d(np.arange(len(X)), place)
        alpha = 1e-3 * len(X) / len(rest)
        scale = w[rest] / w.mean()  # weights are of mean 1 in a fit, which the ridge has to follow
        refit = MultiTaskLSPC(**settings(X) | {"alpha": alpha / scale.mean()} | bare)
        refit.fit(X[rest], y[rest], sample_weight=w[rest], tasks=task[rest])
        expected = refit.scores(X[place], task[place])
        np.testing.assert_allclose(model.heldout_scores_[i], expected[0], atol=1e-8)


def test_linear_models_of_more_features_than_the_sample_has_rows():
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((400, 60)), np.repeat(np.arange(80), 5)
    y = (X[:, 0] + 0.3 * rng.standard_normal(400) > 0).astype(int)
    fixed = {"kernel": "linear", "scale": None, "alpha": 0.1, "sharing": 0.5, "random_state": 0}
    model = MultiTaskLSPC(**fixed, search_rows=30).fit_stream(blocks_of(X, y, task, np.ones(400)))
    whole = MultiTaskLSPC(**fixed).fit(X, y, tasks=task)
    assert len(model.heldout_scores_) < X.shape[1]
    np.testing.assert_allclose(model.scores(X, task), whole.scores(X, task), rtol=0, atol=1e-10)


def test_some_rows_of_large_tasks_are_the_sample():
    data = make_related_tasks(n_tasks=4, n_rows=300, random_state=0)
    order = np.random.default_rng(0).permutation(len(data.y))
    X, y, task = data.X[order], data.y[order], data.task[order]
    blocks = blocks_of(X, y, task, np.ones(len(y)), size=400)
    model = MultiTaskLSPC(**settings(X, search_rows=120) | {"centers": X[:20]}).fit_stream(blocks)
    assert 100 <= len(model.heldout_scores_) <= 160
    whole = MultiTaskLSPC(**settings(X, search_rows=None, solver="arrow") | {"centers": X[:20]}).fit(X, y, tasks=task)
    np.testing.assert_allclose(model.scores(X, task), whole.scores(X, task), rtol=0, atol=1e-10)
    held = {tuple(row) for row in np.round(whole.heldout_scores_, 4)}  # the ridge differs by one row in 1,200
    assert np.mean([tuple(row) in held for row in np.round(model.heldout_scores_, 4)]) > 0.5


# ------------------------------------------------------------------------ dask


@pytest.mark.parametrize("kind", ["sorted", "shuffled"])
def test_a_cluster_says_the_same(client, rows, kind):
    order = order_of(kind, len(rows[0]))
    X, y, task, w = (a[order] for a in rows)
    dX, dy, more = chunked(X, y, task, w)
    model = MultiTaskLSPC(**settings(X, search_rows=200)).fit(dX, dy, **more)
    whole = in_memory(model, (X, y, task, w))
    F = model.scores(dX, tasks=more["tasks"])
    assert isinstance(F, da.Array)
    assert F.shape == (len(X), 3)
    np.testing.assert_allclose(F.compute(), whole.scores(X, task), rtol=0, atol=1e-10)
    stream = MultiTaskLSPC(**settings(X, search_rows=200)).fit_stream(blocks_of(X, y, task, w))
    P = stream.predict_proba(X, task)
    np.testing.assert_allclose(model.predict_proba(dX, tasks=more["tasks"]).compute(), P, atol=1e-10)
    np.testing.assert_array_equal(model.predict(dX, tasks=more["tasks"]).compute(), stream.predict(X, task))


def test_searches_on_a_cluster(client, rows):
    dX, dy, more = chunked(*rows)
    given = {"n_centers": 25, "sigma": (1.0, 2.0), "sharing": (0.2, 0.5), "search_rows": 150, "random_state": 0}
    model, stream = (MultiTaskLSSVC(**given, bias="shared", kernel="rbf") for _ in range(2))
    model.fit(dX, dy, **more)
    stream.fit_stream(blocks_of(*rows))
    np.testing.assert_allclose(
        model.predict_proba(rows[0], rows[2]), stream.predict_proba(rows[0], rows[2]), atol=1e-9
    )


def test_a_worker_that_dies_changes_nothing(client, rows, tmp_path):
    X, _, task, _ = rows
    flag, here = tmp_path / "dead", os.getpid()

    def kernel(A, B):
        if os.getpid() != here and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return np.exp(-np.square(A[:, None] - B[None]).sum(axis=2) / 4)

    given = settings(X, search_rows=200) | {"kernel": kernel}
    dX, dy, more = chunked(*rows)
    model = MultiTaskLSPC(**given).fit(dX, dy, **more)
    assert flag.exists()
    np.testing.assert_allclose(model.scores(X, task), in_memory(model, rows).scores(X, task), rtol=0, atol=1e-10)


def test_an_error_names_the_partition(client, rows):
    X = rows[0].copy()
    X[200] = np.inf
    dX, dy, more = chunked(X, *rows[1:])
    with pytest.raises(ValueError, match=r"In partition 2: Input X contains infinity"):
        MultiTaskLSPC(**settings(rows[0])).fit(dX, dy, **more)
    with pytest.raises(ValueError, match=r"In block 2: Input X contains infinity"):
        MultiTaskLSPC(**settings(rows[0])).fit_stream(blocks_of(X, *rows[1:]))
    model = MultiTaskLSPC(**settings(rows[0], search_rows=200)).fit_stream(blocks_of(*rows))
    with pytest.raises(ValueError, match=r"In partition 2: Input X contains infinity"):
        model.predict(dX, tasks=more["tasks"]).compute()


@pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler")  # of Dask until 2025.5
def test_products_have_one_thread_in_a_task(client):
    from leastwise.sources.dask import DaskSource

    def threads(block, own, shared):
        from threadpoolctl import threadpool_info

        return max((found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"), default=1)

    X = da.zeros((4, 2), chunks=(1, 2))
    with dask.config.set(scheduler="threads", num_workers=4):
        assert list(DaskSource.of(X).map(threads, None)) == [1] * 4
    assert list(DaskSource.of(X).map(threads, None)) == [1] * 4


def test_sums_are_added_a_few_at_a_time(monkeypatch):
    """In an order that depends on the number of parts alone."""
    from leastwise.sources import dask as dask_parts
    from leastwise.sources.dask import DaskSource

    seen, added = [], dask_parts.added
    monkeypatch.setattr(dask_parts, "added", lambda parts: seen.append(len(parts)) or added(parts))
    X = da.arange(100, chunks=1)[:, None]
    with dask.config.set(scheduler="threads", num_workers=2):
        found = DaskSource.of(X).total(lambda block, own, shared: [int(block.X[0, 0]) * shared], 3)
    assert found == [3 * k for k in range(100)]
    assert sorted(seen) == [2, 4, 5, *[8] * 13]


def test_frames_unknown_sizes_and_empty_partitions(rows):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, y, task, w = rows
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])]).assign(site=task, y=y, w=w)
    names = [*frame.columns[: X.shape[1]], "site"]
    parts = dd.from_pandas(frame, npartitions=5)
    parts = dd.concat([parts, parts[parts.w < 0]])  # empty ones
    with dask.config.set(scheduler="threads", num_workers=2):
        model = MultiTaskLSPC(**settings(X, search_rows=200), task_column="site")
        model.fit(parts[names], parts["y"], sample_weight=parts["w"])
        P = model.predict_proba(parts[names])
        whole = in_memory(model, (frame[names], y, None, w))
        np.testing.assert_array_equal(model.feature_names_in_, names)
        np.testing.assert_allclose(model.scores(frame[names]), whole.scores(frame[names]), rtol=0, atol=1e-10)
        np.testing.assert_allclose(P.compute(), model.predict_proba(frame[names]), atol=1e-12)
        framed = model.set_output(transform="pandas").predict_proba(parts[names]).compute()
        assert list(framed.columns) == ["a", "b", "c"]
        array = parts[names[:-1]].to_dask_array()  # of unknown sizes
        other = MultiTaskLSPC(**settings(X, search_rows=200))
        other.fit(array, parts["y"], sample_weight=parts["w"].to_dask_array(), tasks=parts["site"])
        np.testing.assert_allclose(other.scores(X, task), whole.scores(frame[names]), rtol=0, atol=1e-10)


def test_only_rows_of_tasks_that_lie_apart_move(rows):
    from leastwise.sources.task_reading import moves

    plan = moves([["a", "b"], ["b", "c"], []], [np.array([5, 2]), np.array([3, 1]), np.array([])], [7, 4, 0])
    assert [move.home for move in plan] == [{"b": 1}, {}, {}]
    last = moves([["a", "b"], ["b", "c"]], [np.array([5, 9]), np.array([3, 1])], [14, 4], home="last")
    assert [move.home for move in last] == [{"b": 1}, {}]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"centers": "random"}, "give n_centers or centers"),
        ({"solver": "dual"}, "solver='arrow'"),
        ({"cv": 5}, "held out one at a time"),
    ],
)
def test_what_is_not_possible_is_said(rows, given, message):
    with pytest.raises(ValueError, match=message):
        MultiTaskLSPC(**settings(rows[0]) | given).fit_stream(blocks_of(*rows))


def test_blocks_that_will_not_do(rows):
    model = MultiTaskLSPC(**settings(rows[0]))
    with pytest.raises(ValueError, match="A block of rows is"):
        model.fit_stream([rows[:3]])
    with pytest.raises(ValueError, match="which task each row belongs to"):
        model.fit_stream([rows[:2]])
    with pytest.raises(ValueError, match="none with a weight above 0"):
        model.fit_stream([(*rows[:2], np.zeros(len(rows[0])), rows[2])])
    with pytest.raises(ValueError, match=r"with \['groups'\]"):
        model.fit_stream([{"X": rows[0], "y": rows[1], "groups": rows[2]}])
    unknown = da.from_delayed(dask.delayed(rows[0]), (np.nan, 2), float)
    with pytest.raises(ValueError, match="X has 1 partitions, but y has 3"):
        model.fit(unknown, da.zeros(300, chunks=100), tasks="a")


def test_files_tell_names_and_what_is_missing_is_asked_for(rows, tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, y, task, _ = rows
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    frame.assign(y=y, site=task).to_parquet(tmp_path / "rows.parquet")
    model = MultiTaskLSPC(n_centers=10, sigma=1.0, alpha=0.1, sharing=0.5, search_rows=100, random_state=0)
    model.fit_stream(tmp_path, target="y", task="site")
    assert model.feature_names_in_.tolist() == list(frame)
    model.predict_proba(frame, tasks=task)  # warnings are errors here
    for source, more in ((tmp_path, {"task": "site"}), (X, {"task": task})):
        with pytest.raises(ValueError, match="target="):
            model.fit_stream(source, **more)
    for source, more in ((tmp_path, {"target": "y"}), (X, {"y": y})):
        with pytest.raises(ValueError, match="task="):
            model.fit_stream(source, **more)
