"""Models of one task and of many labels from rows that Dask has: the answers of the fit in memory."""

import os
import signal

import numpy as np
import pytest
from conftest import PLAIN
from sklearn.base import clone

from leastwise import LSPC, LSSVC, LSSVR, MultiLabelLSPC

dask = pytest.importorskip("dask", reason="needs the extra dask")
da = pytest.importorskip("dask.array", reason="needs the extra dask")

RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 4))
CODES = np.digitize(X[:, 0] + np.sin(2 * X[:, 1]) + 0.4 * RNG.normal(size=N), [-0.7, 0.7])
VALUES = 3 * X[:, 0] + np.sin(3 * X[:, 1]) + 0.2 * RNG.normal(size=N)
LABELS = (X @ RNG.normal(size=(4, 3)) + 0.5 * RNG.normal(size=(N, 3)) > 0).astype(int)
W = RNG.uniform(0.5, 2, size=N)
MODELS = {
    "lspc": (LSPC(n_centers=30, random_state=0), np.array(["low", "middle", "top"])[CODES]),
    "lssvc": (LSSVC(n_centers=30, random_state=0), CODES),
    "lssvr": (LSSVR(n_centers=30, random_state=0), VALUES),
    "labels": (MultiLabelLSPC(n_centers=30, random_state=0), LABELS),
}
models = pytest.mark.parametrize("name", list(MODELS))


def chunked(A, size=70):
    return da.from_array(A, chunks=(size, *A.shape[1:]))


def said(model, rows):
    return model.predict(rows) if isinstance(model, LSSVR) else model.predict_proba(rows)


@models
@pytest.mark.parametrize("weighted", [False, True])
def test_a_cluster_says_what_one_process_says(client, name, weighted):
    model, y = MODELS[name]
    more = {"sample_weight": W} if weighted else {}
    lazy = {"sample_weight": chunked(W)} if weighted else {}
    apart = clone(model).fit(chunked(X), chunked(y), **lazy)
    whole = clone(model).set_params(solver="moments").fit(X, y, **more)
    assert (apart.sigma_, apart.alpha_) == pytest.approx((whole.sigma_, whole.alpha_), rel=1e-12)
    answer = said(apart, chunked(X))
    assert isinstance(answer, da.Array)
    # Sums have rounding errors of about eps n, which a ridge of alpha n holds back.
    np.testing.assert_allclose(answer.compute(), said(whole, X), rtol=0, atol=1e-10 + 1e-11 / whole.alpha_)


@models
def test_equal_to_ten_digits(client, name):
    model, y = MODELS[name]
    model = clone(model).set_params(alpha=1e-2, sigma=1.0)
    apart, whole = clone(model).fit(chunked(X), chunked(y)), clone(model).set_params(solver="moments").fit(X, y)
    np.testing.assert_allclose(said(apart, chunked(X)).compute(), said(whole, X), rtol=0, atol=1e-10)
    design = clone(model).set_params(n_centers=None, centers=whole.centers_)
    if name == "lssvr":  # chosen with centres that go when their rows are held out, and with centres that stay
        design.set_params(linear_weight=whole.linear_weight_)
    design.fit(X, y)
    if name != "labels":  # which are related otherwise where a row in question is left out of the sample
        np.testing.assert_allclose(said(apart, X), said(design, X), rtol=0, atol=1e-10)


@models
def test_neither_partitions_nor_the_scheduler_make_a_difference(name):
    model, y = MODELS[name]
    with dask.config.set(scheduler="threads"):
        some = clone(model).fit(chunked(X, 41), chunked(y, 41))
        empty = (
            da.concatenate([chunked(X, 150)[:0], chunked(X, 150)]),
            da.concatenate([chunked(y)[:0], chunked(y, 150)]),
        )
        others = clone(model).fit(*empty)
    np.testing.assert_allclose(said(some, X), said(others, X), rtol=0, atol=1e-10 + 1e-11 / some.alpha_)


@pytest.mark.parametrize("inputs", [PLAIN, {}], ids=["plain", "chosen"])
def test_more_rows_than_are_kept(monkeypatch, inputs):
    """The same sample is drawn from partitions, from blocks, and in memory."""
    for part in ("fitting.sums", "estimators.streaming", "fitting.sources"):
        monkeypatch.setattr(f"leastwise.{part}.SAMPLE_ROWS", 100)
    model = LSPC(**inputs, n_centers=20, random_state=0)
    with dask.config.set(scheduler="synchronous"):
        apart = clone(model).fit(chunked(X), chunked(CODES))
    blocks = clone(model).fit_stream(X, CODES, block_rows=33, keep_rows=100)
    whole = clone(model).set_params(solver="moments").fit(X, CODES)
    others = (blocks, whole) if inputs else (blocks,)  # in memory there are more rows to choose inputs by
    for fitted in (apart, *others):  # alphas of a search on the sample are told as those of all rows
        table = fitted.cv_results_
        assert table["param_alpha"][table["n_rows"] == table["n_rows"].min()].min() <= 1.01e-7 * 100 / N
    assert len(apart.kept_) == len(blocks.kept_) == np.sum(~np.isnan(whole.heldout_scores_[:, 0])) == 100
    for other in others:
        np.testing.assert_allclose(said(apart, X), said(other, X), rtol=0, atol=1e-9)


def test_frames_with_names(client):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=MODELS["lspc"][1])
    lazy = dd.from_pandas(frame, npartitions=4)
    model = LSPC(n_centers=30, random_state=0).fit(lazy[list("abcd")], lazy["y"])
    assert model.feature_names_in_.tolist() == list("abcd")
    whole = LSPC(n_centers=30, random_state=0, solver="moments").fit(frame[list("abcd")], frame["y"])
    np.testing.assert_allclose(
        said(model, lazy[list("abcd")]).compute(), said(whole, frame[list("abcd")]), atol=1e-10
    )
    shown = model.set_output(transform="pandas").predict_proba(lazy[list("abcd")]).compute()
    assert shown.columns.tolist() == model.classes_.tolist()
    assert model.predict_set(lazy[list("abcd")], 0.9).compute().shape == (N, 3)
    pytest.importorskip("polars")
    with pytest.raises(ValueError, match="frames of polars"):
        model.set_output(transform="polars").predict_proba(lazy[list("abcd")])


def test_a_model_of_a_cluster_goes_on():
    with dask.config.set(scheduler="threads"):
        model = LSPC(centers=X[::10], sigma=1.5, random_state=0).fit(chunked(X[:200]), chunked(CODES[:200]))
    model.partial_fit(X[200:], CODES[200:])
    whole = LSPC(centers=X[::10], sigma=1.5, random_state=0).fit_stream(X, CODES)
    np.testing.assert_allclose(said(model, X), said(whole, X), atol=1e-8)


def test_balanced_classes():
    model = LSPC(centers=X[::10], sigma=1.5, class_weight="balanced", random_state=0)
    with dask.config.set(scheduler="threads"):
        apart = clone(model).fit(chunked(X), chunked(CODES))
    np.testing.assert_allclose(
        said(apart, X), said(clone(model).set_params(solver="moments").fit(X, CODES), X), atol=1e-9
    )


def test_a_worker_is_killed_and_the_answer_is_the_same(client, tmp_path):
    """In the middle of the sums: its partitions are summed again elsewhere."""
    flag, here = tmp_path / "killed", os.getpid()

    def kernel(A, B):
        if os.getpid() != here and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return np.exp(-np.square(A[:, None] - B[None]).sum(axis=2) / 4)

    model = LSPC(centers=X[::10], alpha=1e-3, kernel=kernel, random_state=0)
    apart = clone(model).fit(chunked(X, 30), chunked(CODES, 30))
    assert flag.exists()
    whole = clone(model).set_params(solver="moments").fit(X, CODES)
    np.testing.assert_allclose(said(apart, X), said(whole, X), rtol=0, atol=1e-10)


def test_errors_name_the_partition():
    bad = X.copy()
    bad[100, 2] = np.inf
    with dask.config.set(scheduler="synchronous"):
        with pytest.raises(ValueError, match=r"In partition 1: .*infinity"):
            LSPC(n_centers=10).fit(chunked(bad), chunked(CODES))
        with pytest.raises(ValueError, match="one class"):
            LSPC(n_centers=10).fit(chunked(X), chunked(np.zeros(N)))
        with pytest.raises(ValueError, match="groups"):
            LSPC(n_centers=10).fit(chunked(X), chunked(CODES), groups=CODES)
        with pytest.raises(ValueError, match="precomputed"):
            LSPC(kernel="precomputed").fit(chunked(X), chunked(CODES))
        with pytest.raises(ValueError, match="no rows"):
            LSPC(n_centers=10).fit(chunked(X)[:0], chunked(CODES)[:0])
        model = LSPC(centers=X[::10], sigma=1.5).fit(chunked(X), chunked(CODES))
        with pytest.raises(ValueError, match=r"In partition 1: .*infinity"):
            model.predict_proba(chunked(bad)).compute()


def parquet(folder):
    """A frame from five files with more columns than are wanted: Dask would join its partitions for each of them."""
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=MODELS["lspc"][1], name=[f"row {i}" for i in range(N)])
    for k in range(5):
        frame.iloc[60 * k : 60 * (k + 1)].to_parquet(folder / f"part-{k}.parquet")
    return frame, dd.read_parquet(folder)


def test_columns_of_parquet_files_are_cut_alike(tmp_path):
    frame, lazy = parquet(tmp_path)
    names = list("abcd")
    with dask.config.set(scheduler="synchronous"):
        apart = LSPC(n_centers=30, random_state=0).fit(lazy[names], lazy["y"])
        answer = apart.predict_proba(lazy[names])
        assert answer.numblocks[0] == lazy.npartitions == 5
        whole = LSPC(n_centers=30, random_state=0, solver="moments").fit(frame[names], frame["y"])
        np.testing.assert_allclose(answer.compute(), whole.predict_proba(frame[names]), atol=1e-10)


def test_what_was_forgotten_is_said_before_anything_is_read():
    with dask.config.set(scheduler="synchronous"):
        for y in (None, "finding"):
            with pytest.raises(ValueError, match="give a column of the frame"):
                LSPC(n_centers=10).fit(chunked(X), y)
        with pytest.raises(ValueError, match="Give a shape"):
            LSPC(n_centers=10).plan(chunked(X), chunked(CODES))
        model = LSPC(centers=X[::10], sigma=1.5).fit_stream(X, CODES)
        for change in (model.partial_fit, model.unfit):
            with pytest.raises(ValueError, match="need rows in memory"):
                change(chunked(X), chunked(CODES))
