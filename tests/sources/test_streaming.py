"""Fits from rows in blocks: the same model as from all rows at once, whatever the blocks."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from leastwise import LSPC, LSSVC, LSSVR, Moments, MultiLabelLSPC, load, merge, save
from leastwise.linalg.moments import moment_spectrum
from leastwise.sources.blocks import StreamError
from leastwise.utils.resources import memory_limit

RNG = np.random.default_rng(0)
N = 240
X = RNG.normal(size=(N, 4))
NEW = RNG.normal(size=(50, 4))
Y_CLASS = np.digitize(X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * RNG.normal(size=N), [-0.7, 0.7])
Y_VALUE = 50 + X[:, 0] * 3 + np.sin(3 * X[:, 1])
Y_LABEL = (X @ RNG.normal(size=(4, 5)) + 0.3 * RNG.normal(size=(N, 5)) > 0).astype(int)
KINDS = {
    "lspc": (LSPC, {"norm": "function"}, Y_CLASS),
    "lspc_bias": (LSPC, {"bias": "shared"}, Y_CLASS),
    "lspc_coefficients": (LSPC, {"norm": "coefficients"}, Y_CLASS),
    "lssvc": (LSSVC, {}, Y_CLASS),
    "lssvr": (LSSVR, {"kernel": "rbf"}, Y_VALUE),
    "lssvr_sum": (LSSVR, {"kernel": "rbf+linear", "linear_weight": 1.0}, Y_VALUE),
    "lssvr_two": (LSSVR, {"kernel": "rbf"}, np.column_stack([Y_VALUE, -2 * Y_VALUE + X[:, 2]])),
    "labels": (MultiLabelLSPC, {"similarity": "shared", "sharing": 0.2}, Y_LABEL),
    "labels_learned": (MultiLabelLSPC, {"bias": "shared"}, Y_LABEL),
}
kinds = pytest.mark.parametrize("kind", list(KINDS))


def make(kind, **more):
    maker, given_, y = KINDS[kind]
    return maker(**{"centers": X[::10], "sigma": 1.5, "random_state": 0, **given_, **more}), y


def said(model, rows=NEW):
    return model.predict(rows) if isinstance(model, LSSVR) else model.predict_proba(rows)


def same(one, other, tolerance=1e-8):
    np.testing.assert_allclose(said(one), said(other), rtol=tolerance, atol=tolerance)


# ------------------------------------------------------------------- blocks


@kinds
def test_a_stream_is_the_fit_in_memory(kind):
    model, y = make(kind)
    stream = clone(model).fit_stream(X, y, block_rows=37)
    whole = clone(model).set_params(solver="moments").fit(X, y)
    same(stream, whole)
    assert stream.alpha_ == pytest.approx(whole.alpha_)
    assert stream.moments_.n == N


@kinds
def test_sums_give_what_the_design_gives(kind):
    """The long way: all rows at once, by singular values of the design, with the same parameters."""
    model, y = make(kind)
    stream = clone(model).fit_stream(X, y, block_rows=50)
    chosen = {"alpha": stream.alpha_}
    if "labels" in kind:
        chosen["sharing"] = stream.sharing_
    direct = {"lspc": "auto", "lssv": "cholesky", "labe": "sylvester"}[kind[:4]]
    whole = clone(model).set_params(solver=direct, **chosen).fit(X, y)
    same(stream, whole, 1e-6)
    name = "heldout_prediction_" if "lssvr" in kind else "heldout_scores_"
    np.testing.assert_allclose(getattr(stream, name), getattr(whole, name), rtol=1e-6, atol=1e-6)


@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(0, N), max_size=5), seed=st.integers(0, 5))
def test_neither_blocks_nor_order_make_a_difference(cuts, seed):
    order = np.random.default_rng(seed).permutation(N)
    edges = sorted({0, N, *cuts})
    blocks = [(X[order[a:b]], Y_CLASS[order[a:b]]) for a, b in pairwise(edges)]
    model = LSPC(centers=X[::10], sigma=1.5, alpha=1e-3, random_state=0)
    one = clone(model).fit_stream(iter(blocks), classes=[0, 1, 2], keep_rows=100)
    other = clone(model).fit_stream(lambda: iter(blocks[::-1]), keep_rows=100)
    same(one, other)
    assert set(map(bytes, one.kept_.X)) == set(map(bytes, other.kept_.X))
    assert len(one.kept_) == 100


def test_centres_and_sigma_are_chosen_as_in_memory():
    stream = LSPC(n_centers=30, random_state=3).fit_stream(X, Y_CLASS, block_rows=70)
    whole = LSPC(n_centers=30, random_state=3, solver="moments").fit(X, Y_CLASS)
    assert np.array_equal(stream.centers_, whole.centers_)
    assert stream.sigma_ == whole.sigma_
    same(stream, whole)


@kinds
def test_rows_may_come_one_block_after_another(kind):
    model, y = make(kind, alpha=1e-3)
    if kind == "lssvr_sum":  # whose linear part is scaled by the first rows
        model.set_params(kernel="laplace", linear_weight="auto")
    parts = clone(model)
    for part in np.array_split(np.arange(N), [90, 91, 200]):
        parts.partial_fit(X[part], y[part])
    same(parts, clone(model).fit_stream(X, y))
    assert parts.moments_.n == N


def test_alpha_is_chosen_anew_as_rows_come():
    model = LSPC(centers=X[::10], sigma=1.5, random_state=0)
    parts = clone(model).partial_fit(X[:40], Y_CLASS[:40])
    first = parts.alpha_
    same(parts.partial_fit(X[40:], Y_CLASS[40:]), clone(model).fit_stream(X, Y_CLASS))
    assert parts.alpha_ < first


@kinds
def test_rows_can_be_taken_away(kind):
    model, y = make(kind, alpha=1e-3)
    less = clone(model).fit_stream(X, y)
    few = less.without_rows().partial_fit(X[:150], y[:150])
    less.unfit(X[150:], y[150:])
    assert less.moments_.n == 150
    assert len(less.kept_) == 150
    same(less, few, 1e-6)


@kinds
def test_models_merge(kind):
    model, y = make(kind)
    whole = clone(model).fit_stream(X, y)
    parts = [whole.without_rows().partial_fit(X[k::3], y[k::3]) for k in range(3)]
    assert all(part.moments_.n == N / 3 for part in parts)
    merged = merge(parts)
    same(merged, whole, 1e-7)
    assert merged.moments_.n == N
    assert [part.moments_.n for part in parts] == [N // 3] * 3  # as they were


def test_models_of_other_classes_merge():
    words = np.array(["low", "middle", "high"])[Y_CLASS]
    order = np.argsort(Y_CLASS, kind="stable")
    for maker in (LSPC, LSSVC):
        model = maker(centers=X[::10], sigma=1.5, random_state=0)
        parts = [clone(model).fit_stream(X[part], words[part]) for part in np.array_split(order, 2)]
        assert sorted(len(part.classes_) for part in parts) == [2, 2]
        same(merge(parts), clone(model).fit_stream(X, words), 1e-7)


def test_quantities_in_other_units_merge():
    model = LSSVR(centers=X[::10], sigma=1.5, kernel="rbf", random_state=0)
    big = Y_VALUE.copy()
    big[::2] *= 1000
    parts = [clone(model).fit_stream(X[k::2], big[k::2]) for k in range(2)]
    assert parts[0].unit_[0] != parts[1].unit_[0]
    whole = clone(model).fit_stream(X, big)
    np.testing.assert_allclose(said(merge(parts)), said(whole), rtol=1e-6)


def test_models_that_differ_do_not_merge():
    model = LSPC(centers=X[::10], sigma=1.5).fit_stream(X, Y_CLASS)
    for other, word in (
        (LSPC(centers=X[::10], sigma=1.6).fit_stream(X, Y_CLASS), "sigma_"),
        (LSPC(centers=X[::9], sigma=1.5).fit_stream(X, Y_CLASS), "centers_"),
        (LSPC(centers=X[::10], sigma=1.5, bias="shared").fit_stream(X, Y_CLASS), "bias"),
        (LSPC(centers=X[::10], sigma=1.5, kernel="laplace").fit_stream(X, Y_CLASS), "kernel_"),
    ):
        with pytest.raises(ValueError, match=word):
            merge([model, other])
    with pytest.raises(TypeError, match="LSSVC"):
        merge([model, LSSVC(centers=X[::10], sigma=1.5).fit_stream(X, Y_CLASS)])
    with pytest.raises(ValueError, match="empty"):
        merge([])
    for refused in (merge, lambda models: models[0].unfit(X, Y_CLASS), lambda models: models[0].without_rows()):
        with pytest.raises(ValueError, match="this one has no sums"):
            refused([LSPC().fit(X, Y_CLASS)])


# ------------------------------------------------------------------ weights


@kinds
def test_weights_are_copies(kind):
    model, y = make(kind)
    w = np.tile([1.0, 2.0, 3.0, 0.0], N // 4)
    copies = np.repeat(np.arange(N), w.astype(int))
    blocks = [(X[:100], y[:100], w[:100]), (X[100:], y[100:], w[100:])]
    if "labels_learned" in kind:
        model.set_params(sharing=0.3)
    same(clone(model).fit_stream(iter(blocks)), clone(model).fit_stream(X[copies], y[copies]), 1e-6)


def test_to_forget_is_to_weigh_less():
    model = LSPC(centers=X[::10], sigma=1.5, random_state=0)
    fading = clone(model).fit_stream(X[:100], Y_CLASS[:100])
    fading.forget(0.5).partial_fit(X[100:], Y_CLASS[100:])
    w = np.r_[np.full(100, 0.5), np.ones(N - 100)]
    weighted = clone(model).fit_stream(iter([(X, Y_CLASS, w)]))
    same(fading, weighted, 1e-7)
    for wrong in (0, -1, 1.5, "half", True):
        with pytest.raises(ValueError, match="above 0"):
            fading.forget(wrong)


@pytest.mark.parametrize("weight", ["balanced", {0: 1.0, 1: 5.0}])
def test_classes_have_weights(weight):
    model = LSPC(centers=X[::10], sigma=1.5, class_weight=weight, random_state=0)
    same(
        clone(model).fit_stream(X, Y_CLASS, block_rows=50), clone(model).set_params(solver="moments").fit(X, Y_CLASS)
    )
    if weight == "balanced":
        with pytest.raises(ValueError, match="read twice"):
            clone(model).fit_stream(iter([(X, Y_CLASS)]))


def test_copies_are_kept_as_one_row_with_a_count():
    few = X[:30]
    model = LSPC(centers=X[::10], sigma=1.5, alpha=1e-2, random_state=0)
    times = np.where(np.arange(30) < 20, 40, 30)
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(30), times))
    once = clone(model).fit_stream(few, Y_CLASS[:30], weight=times)
    often = clone(model).fit_stream(few[rows], Y_CLASS[rows], keep_rows=35, block_rows=111)
    assert len(often.kept_) <= 2 * 35
    assert often.kept_.w.sum() == often.kept_.count.sum() == 1100
    same(once, often, 1e-6)
    whole = clone(model).set_params(solver="moments").fit(few[rows], Y_CLASS[rows])
    np.testing.assert_allclose(often.predict_proba(X), whole.predict_proba(X), atol=1e-8)


def test_groups_are_held_out_together():
    group = np.repeat(np.arange(N // 6), 6)
    model = LSPC(centers=X[::10], sigma=1.5, random_state=0)
    whole = clone(model).set_params(solver="moments").fit(X, Y_CLASS, groups=group)
    parts = clone(model)
    for a in range(0, N, 60):
        parts.partial_fit(X[a : a + 60], Y_CLASS[a : a + 60], groups=group[a : a + 60])
    same(parts, whole)
    few = clone(model).fit_stream(iter([{"X": X, "y": Y_CLASS, "groups": group}]), keep_rows=50)
    assert len(few.kept_) == 48  # whole groups
    alone = clone(model).fit_stream(X, Y_CLASS)
    assert np.abs(alone.heldout_scores_ - parts.heldout_scores_).max() > 1e-3
    with pytest.raises(ValueError, match="groups"):
        parts.partial_fit(X[:5], Y_CLASS[:5])


# ---------------------------------------------------------- rows and types


def test_single_precision_and_sparse_rows():
    single = LSPC(centers=X[::10], sigma=1.5, random_state=0).fit_stream(X.astype(np.float32), Y_CLASS)
    assert single.intercept_.dtype == single.predict_proba(NEW.astype(np.float32)).dtype == np.float32
    double = LSPC(centers=X[::10], sigma=1.5, random_state=0).fit_stream(X, Y_CLASS)
    np.testing.assert_allclose(said(single, NEW.astype(np.float32)), said(double), atol=1e-3)
    thin = X * (np.abs(X) > 0.5)
    one = LSPC(n_centers=20, sigma=1.5, random_state=0).fit_stream(sparse.csr_matrix(thin), Y_CLASS, block_rows=50)
    other = LSPC(n_centers=20, sigma=1.5, random_state=0).fit_stream(thin, Y_CLASS, block_rows=50)
    same(one, other)


def test_a_class_that_is_rare_or_comes_late():
    y = Y_CLASS.copy()
    y[-1] = 7
    model = LSPC(centers=X[::10], sigma=1.5, random_state=0)
    late = clone(model).fit_stream(lambda: iter([(X[:100], y[:100]), (X[100:], y[100:])]), keep_rows=20)
    assert late.classes_.tolist() == [0, 1, 2, 7]
    assert late.class_prior_[3] == pytest.approx(1 / N)
    assert np.isfinite(said(late)).all()
    begun = clone(model).partial_fit(X[:50], y[:50], classes=[0, 1, 2, 7])
    assert (said(begun)[:, 3] > 0).all()
    begun.partial_fit(X[50:], y[50:])
    assert begun.class_prior_[3] == pytest.approx(1 / N)
    with pytest.raises(ValueError, match=r"\[7\]"):
        clone(model).partial_fit(X[:50], y[:50]).partial_fit(X[-10:], y[-10:])


def test_few_rows_are_kept_and_told_of():
    model = LSPC(centers=X[::10], sigma=1.5, random_state=0).fit_stream(X, Y_CLASS, keep_rows=60)
    assert model.heldout_proba_.shape == (60, 3)
    assert len(model.heldout_rows_.codes) == 60
    assert model.moments_.n == N
    bare = LSPC(sigma=1.5, alpha=1e-3, cv=None, calibration=None, centers=X[::10])
    none = clone(bare).fit_stream(X, Y_CLASS, keep_rows=0)
    assert none.kept_ is None
    assert not hasattr(none, "neighbourhood_")
    same(none, clone(bare).fit(X, Y_CLASS), 1e-6)
    none.partial_fit(NEW, np.zeros(50, dtype=int)).unfit(NEW, np.zeros(50, dtype=int))
    same(none, clone(bare).fit(X, Y_CLASS), 1e-6)
    with pytest.raises(ValueError, match="keep some"):
        LSPC(centers=X[::10]).fit_stream(X, Y_CLASS, keep_rows=0)


def test_models_are_kept_in_files(tmp_path):
    for kind in ("lspc", "lssvr", "labels"):
        model, y = make(kind)
        model.fit_stream(X[:200], y[:200])
        save(model, tmp_path / "model.lw")
        again = load(tmp_path / "model.lw")
        same(again.partial_fit(X[200:], y[200:]), model.partial_fit(X[200:], y[200:]), 1e-12)
        save(model, tmp_path / "small.lw", keep="predict")
        small = load(tmp_path / "small.lw")
        assert not hasattr(small, "kept_")
        with pytest.warns(UserWarning, match="starts again") as caught:
            small.partial_fit(X, y)
        assert caught[0].filename == __file__
        assert small.moments_.n == N


# ------------------------------------------------------------------- faults


def broken_after(count):
    for a in range(0, N, 40):
        if a >= count:
            raise StreamError("big.parquet, rows 120 to 159: the page is torn", where="big.parquet", rows=(120, 159))
        yield X[a : a + 40], Y_CLASS[a : a + 40]


@pytest.mark.parametrize("again", [True, False])
def test_a_broken_block_leaves_the_model_of_the_rows_before_it(again):
    model = LSPC(centers=X[::10], sigma=1.5, random_state=0)
    before = clone(model).fit_stream(X[:120], Y_CLASS[:120])
    source = (lambda: broken_after(120)) if again else broken_after(120)
    with pytest.raises(StreamError, match=r"big.parquet.*rows 120 to 159"):
        model.fit_stream(source)
    assert model.moments_.n == 120
    same(model, before)
    model.partial_fit(X[120:], Y_CLASS[120:])
    same(model, LSPC(centers=X[::10], sigma=1.5, random_state=0).fit_stream(X, Y_CLASS))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_torn_parquet_file_is_named_and_the_rows_before_it_are_kept(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for k, rows in enumerate(np.array_split(np.arange(N), 3)):
        table = pa.table({**{f"x{j}": X[rows, j] for j in range(4)}, "y": Y_CLASS[rows]})
        pq.write_table(table, tmp_path / f"part-{k}.parquet", row_group_size=20, compression="zstd")
    path = tmp_path / "part-1.parquet"
    group = pq.ParquetFile(path).metadata.row_group(2).column(1)
    with path.open("r+b") as file:  # a page of its third row group is overwritten
        file.seek(group.data_page_offset)
        file.write(b"\xff" * group.total_compressed_size)
    model = LSPC(centers=X[::10], sigma=1.5, random_state=0)
    with pytest.raises(StreamError, match=r"part-1.parquet, rows 40 to 59") as raised:
        model.fit_stream(tmp_path, target="y")
    assert raised.value.rows == (40, 59)
    assert model.moments_.n == 80 + 40
    same(model, LSPC(centers=X[::10], sigma=1.5, random_state=0).fit_stream(X[:120], Y_CLASS[:120]))
    model.partial_fit(X[120:], Y_CLASS[120:])
    assert model.moments_.n == N


def test_a_stream_that_is_broken_from_the_first_leaves_the_model_as_it_was():
    model = LSPC(centers=X[::10], sigma=1.5, random_state=0).fit_stream(X, Y_CLASS)
    answer = said(model)
    with pytest.raises(StreamError):
        model.fit_stream(lambda: broken_after(0))
    assert np.array_equal(said(model), answer)


def test_a_bad_row_is_named_and_changes_nothing():
    model = LSPC(centers=X[::10], sigma=1.5, random_state=0).fit_stream(X, Y_CLASS)
    answer, bad = said(model), X[:5].copy()
    bad[2, 1] = np.inf
    for call in (model.partial_fit, model.unfit):
        with pytest.raises(ValueError, match="infinity"):
            call(bad, Y_CLASS[:5])
        with pytest.raises(ValueError, match="features"):
            call(X[:5, :3], Y_CLASS[:5])
        with pytest.raises(ValueError, match="every row needs one target"):
            call(X[:5], Y_CLASS[:4])
        with pytest.raises(ValueError, match="negative"):
            call(X[:5], Y_CLASS[:5], sample_weight=-np.ones(5))
    with pytest.raises(ValueError, match="Nothing was changed"):
        model.unfit(NEW[:3], Y_CLASS[:3])
    with pytest.raises(ValueError, match="Nothing was changed"):
        model.unfit(X[:3], (Y_CLASS[:3] + 1) % 3)
    with pytest.raises(ValueError, match="too few"):
        model.unfit(X, Y_CLASS)
    assert np.array_equal(said(model), answer)
    assert model.moments_.n == N


def test_parameters_that_a_stream_has_no_use_for():
    for wrong, word in (
        ({"kernel": "precomputed"}, "precomputed"),
        ({"basis": "class"}, "basis"),
        ({"cv": 5}, "cv=5"),
        ({"solver": "sgd", "n_centers": 10}, "sgd"),
    ):
        model = LSPC(**wrong)
        with pytest.raises(ValueError, match=word):
            model.fit_stream(X, Y_CLASS)
        assert not hasattr(model, "partial_fit")
    with pytest.raises(ValueError, match="keep_rows"):
        LSPC().fit_stream(X, Y_CLASS, keep_rows=-1)
    with pytest.raises(ValueError, match="no rows"):
        LSPC().fit_stream(iter([]))
    with pytest.raises(ValueError, match="one class"):
        LSPC().fit_stream(X, np.zeros(N))
    with pytest.raises(ValueError, match="classes="):
        LSSVR().fit_stream(X, Y_VALUE, classes=[0, 1])
    unknown = Y_LABEL.astype(float)
    unknown[3, 2] = np.nan
    with pytest.raises(ValueError, match="1 of 240 rows"):
        MultiLabelLSPC().fit_stream(X, unknown)


# ------------------------------------------------------------------ moments


def test_moments_of_one_row_give_the_row_away():
    """What the documentation says of sums: those of few rows are no secret."""
    row = X[:1]
    model = LSPC(sigma=1.5, alpha=1e-3, cv=None, calibration=None, centers=X[::10])
    both = clone(model).fit_stream(X[:2], [0, 1], keep_rows=0)
    one = both.moments_ - clone(model).fit_stream(np.vstack([X[1:2], X[1:2]]), [1, 0], keep_rows=0).moments_ * 0.5
    known = one.whitening
    phi = np.linalg.solve(known.T, one.p)  # kernel values of the row that is left: distances to the pivots
    distance = np.sqrt(-2 * 1.5**2 * np.log(phi.clip(max=1)))
    C = X[::10][known.pivots]
    squares = (C[1:] ** 2).sum(1) - (C[0] ** 2).sum() - distance[1:] ** 2 + distance[0] ** 2
    found = np.linalg.lstsq(2 * (C[1:] - C[0]), squares, rcond=None)
    np.testing.assert_allclose(found[0], row[0], atol=1e-6)


def test_moments_are_what_a_ridge_needs():
    model = LSPC(sigma=1.5, alpha=1e-3, cv=None, calibration=None, centers=X[::10], norm="coefficients")
    model.fit_stream(X, Y_CLASS, keep_rows=0)
    assert isinstance(model.moments_, Moments)
    theta, _ = moment_spectrum(model.moments_, False).coefficients(1e-3 * N)
    np.testing.assert_allclose(theta, model.coef_, atol=1e-9)


def test_progress_is_told(capsys, monkeypatch):
    monkeypatch.setattr("leastwise.sources.row_source.PAUSE", 0.0)
    LSPC(centers=X[::10], sigma=1.5, verbose=1).fit_stream(X, Y_CLASS, block_rows=100)
    told = capsys.readouterr().out
    assert "24 centres" in told
    for n in (100, 200, 240):
        assert f"first look: {n} rows" in told
        assert f"sums: {n} of 240 rows" in told
    LSPC(centers=X[::10], sigma=1.5, verbose=1).fit_stream(iter([(X, Y_CLASS)]))
    assert "sums: 240 rows" in capsys.readouterr().out


# -------------------------------------------------------------- first meetings


def test_centres_are_as_many_as_were_asked_for_however_few_rows_are_kept():
    bare = LSPC(n_centers=40, sigma=1.5, alpha=1e-3, cv=None, calibration=None, random_state=0)
    none = clone(bare).fit_stream(X, Y_CLASS, keep_rows=0)
    assert (none.centers_.shape, none.kept_) == ((40, 4), None)
    same(none, clone(bare).set_params(n_centers=None, centers=none.centers_).fit(X, Y_CLASS), 1e-6)
    few = LSPC(n_centers=40, random_state=0).fit_stream(iter([(X, Y_CLASS)]), keep_rows=30)
    assert (few.centers_.shape, len(few.kept_), len(few.heldout_proba_)) == ((40, 4), 30, 30)
    assert len(few.partial_fit(NEW, np.zeros(50, dtype=int)).kept_) == 30


def test_the_first_rows_tell_the_names_of_the_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = LSPC(centers=X[::10], sigma=1.5, random_state=0).partial_fit(frame[:120], Y_CLASS[:120])
    assert model.feature_names_in_.tolist() == list("abcd")
    model.partial_fit(frame[120:], Y_CLASS[120:])  # warnings are errors here
    whole = LSPC(centers=X[::10], sigma=1.5, random_state=0).fit_stream(X, Y_CLASS)
    new = pd.DataFrame(NEW, columns=list("abcd"))
    np.testing.assert_allclose(said(model, new), said(whole), atol=1e-8)
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[["b", "a", "c", "d"]], Y_CLASS)


@pytest.mark.parametrize("kind", ["lspc", "lssvr", "labels"])
def test_streams_that_do_not_fit_are_refused_before_the_sums(kind):
    model, y = make(kind, centers="random", n_centers=200)
    with memory_limit("5MB"), pytest.raises(MemoryError, match=r"200 centres.*n_centers=") as refused:
        clone(model).fit_stream(X, y)
    assert not hasattr(model, "coef_")
    most = int(re.search(r"n_centers=(\d+)", str(refused.value))[1])
    with memory_limit("5MB"):
        clone(model).set_params(n_centers=most).fit_stream(X, y)
        with pytest.raises(MemoryError):
            clone(model).set_params(n_centers=most + 1).fit_stream(X, y)


def test_rows_that_were_forgotten_in_part_are_taken_away_with_what_they_still_count():
    model = LSPC(centers=X[::10], sigma=1.5, alpha=1e-3, random_state=0)
    other = clone(model).fit_stream(X[20:], Y_CLASS[20:]).forget(0.9).forget(0.9)
    forgetful = clone(model).fit_stream(X, Y_CLASS).forget(0.9).forget(0.9)
    with pytest.raises(ValueError, match=r"after forget\(\)"):
        forgetful.unfit(X[:20], Y_CLASS[:20])
    same(forgetful.unfit(X[:20], Y_CLASS[:20], sample_weight=np.full(20, 0.81)), other, 1e-7)
    with pytest.raises(ValueError, match="with a weight of"):
        forgetful.unfit(X, Y_CLASS)
    nothing = forgetful.without_rows()
    assert nothing.forget(0.5) is nothing


def test_messages_say_what_to_do():
    model = LSPC(centers=X[::10], sigma=1.5, random_state=0).fit_stream(X, Y_CLASS)
    with pytest.raises(ValueError, match="not been trained on any rows yet"):
        merge([model.without_rows(), model.without_rows()])
    with pytest.raises(TypeError, match=r"leastwise\.load"):
        merge(["a.lw", "b.lw"])
    with pytest.raises(StreamError, match=r"no targets: give y, or the name"):
        LSPC(n_centers=10).fit_stream(X)
    with pytest.raises(StreamError, match="as y"):
        LSPC(n_centers=10).fit_stream(X, target=Y_CLASS)
