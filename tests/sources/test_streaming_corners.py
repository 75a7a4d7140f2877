"""Corners of fits from blocks: names, groups, weights of nothing, classes that come late, samples that are gone."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from leastwise import LSPC, LSSVC, LSSVR, MultiLabelLSPC, merge
from leastwise.report import report_data
from leastwise.sources import bottom_k as kept
from leastwise.sources.blocks import StreamError
from leastwise.sources.bottom_k import Kept, joined_kept
from leastwise.utils.hashing import EVERY, threshold

RNG = np.random.default_rng(3)
N = 160
X = RNG.normal(size=(N, 3))
Y = np.digitize(X[:, 0] + 0.4 * RNG.normal(size=N), [-0.6, 0.6])
LABELS = np.column_stack([X[:, 0] > 0, X[:, 1] + X[:, 0] > 0.2]).astype(int)
NEW = RNG.normal(size=(30, 3))
GIVEN = {"centers": X[::10], "sigma": 1.5, "random_state": 0}
BARE = {"sigma": 1.5, "alpha": 1e-3, "cv": None, "calibration": None, "random_state": 0}


def same(one, other, tolerance=1e-8):
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=0, atol=tolerance)


# ------------------------------------------------------------------ centres


def test_centres_are_chosen_from_more_rows_than_are_kept():
    none = LSPC(n_centers=40, **BARE).fit_stream(X, Y, keep_rows=0, block_rows=30)
    assert none.centers_.shape == (40, 3)
    assert none.kept_ is None
    same(none, LSPC(n_centers=40, solver="moments", **BARE).fit(X, Y), 1e-8)
    few = LSPC(n_centers=40, random_state=0).fit_stream(iter([(X, Y)]), keep_rows=25)
    assert few.centers_.shape == (40, 3)
    assert len(few.kept_) == 25
    assert LSPC(n_centers=40, **BARE).fit_stream(X, Y, keep_rows=1).kept_.limit == 1


# -------------------------------------------------------------------- names


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_frames_keep_the_names_of_their_columns():
    pd = pytest.importorskip("pandas")
    frame, y = pd.DataFrame(X, columns=list("abc")), pd.Series(Y, index=np.arange(N) + 7)
    model = LSPC(**GIVEN).partial_fit(frame[:80], y[:80])
    assert model.feature_names_in_.tolist() == list("abc")
    with pytest.raises(ValueError, match="same order"):
        model.partial_fit(frame[["b", "a", "c"]][80:], y[80:])
    same(model.partial_fit(frame[80:], y[80:]), LSPC(**GIVEN).fit_stream(X, Y))
    table = frame.assign(y=Y)
    swapped = table.rename(columns={"a": "b", "b": "a"})
    parts = [LSPC(**GIVEN).fit_stream(part, target="y") for part in (table, swapped)]
    with pytest.raises(ValueError, match="feature_names_in_"):
        merge(parts)
    assert merge([parts[0], LSPC(**GIVEN).fit_stream(X, Y)]).moments_.n == 2 * N  # arrays have none to differ in


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_labels_are_found_by_their_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(LABELS, columns=["p", "q"])
    whole = MultiLabelLSPC(**GIVEN).fit_stream(X, LABELS)
    parts = MultiLabelLSPC(**GIVEN).partial_fit(X[:80], frame[:80]).partial_fit(X[80:], frame[["q", "p"]][80:])
    same(parts, whole)
    assert parts.predict(X[:3]).columns.tolist() == ["p", "q"]
    blocks = [(X[:80], frame[:80]), (X[80:], frame[["q", "p"]][80:])]
    same(MultiLabelLSPC(**GIVEN).fit_stream(iter(blocks)), whole)
    with pytest.raises(StreamError, match=r"block 1: y has the columns \['q', 'r'\]"):
        MultiLabelLSPC(**GIVEN).fit_stream(iter([blocks[0], (X, frame.rename(columns={"p": "r"})[["q", "r"]])]))
    table = pd.DataFrame(X, columns=list("abc")).assign(p=LABELS[:, 0], q=LABELS[:, 1])
    for begun in (
        MultiLabelLSPC(**GIVEN).fit_stream(X[:80], frame[:80]),
        MultiLabelLSPC(**GIVEN).fit_stream(table[:80], target=["p", "q"], features=list("abc")),
    ):
        assert begun.labels_.tolist() == ["p", "q"]
        begun.partial_fit(X[80:], frame[["q", "p"]][80:])
        same(begun, whole)
    other = MultiLabelLSPC(**GIVEN).fit_stream(X, frame.rename(columns={"p": "r"}))
    with pytest.raises(ValueError, match="Labels are"):
        merge([begun, other])


# ------------------------------------------------------------------- groups


@pytest.mark.parametrize("kind", [list, tuple, np.array, "series"])
def test_groups_of_any_kind(kind):
    if kind == "series":
        pd = pytest.importorskip("pandas")
        kind = lambda values: pd.Series(values, index=np.arange(len(values)) + 1000)  # noqa: E731
    group, w = np.arange(N) // 4, np.tile([1.0, 1.0, 0.0, 2.0], N // 4)
    model = LSPC(**GIVEN)
    parts = clone(model)
    for a in (0, 80):
        rows = slice(a, a + 80)
        parts.partial_fit(X[rows], Y[rows], sample_weight=kind(w[rows].tolist()), groups=kind(group[rows].tolist()))
    whole = clone(model).set_params(solver="moments").fit(X, Y, w, group)
    same(parts, whole)
    half = clone(model).set_params(solver="moments").fit(X[:80], Y[:80], w[:80], group[:80])
    same(parts.unfit(X[80:], Y[80:], kind(w[80:].tolist()), kind(group[80:].tolist())), half, 1e-6)


def test_groups_for_all_rows_or_for_none():
    group = np.arange(N) // 4
    begun = LSPC(**GIVEN).fit_stream(X, Y)
    site = begun.without_rows().partial_fit(X, Y, groups=group)  # which has no rows without a group
    same(site, LSPC(**GIVEN).partial_fit(X, Y, groups=group))
    same(site.without_rows().partial_fit(X, Y), begun)
    with pytest.raises(ValueError, match="give both or neither"):
        site.unfit(X[:4], Y[:4])
    with pytest.raises(ValueError, match="groups for all rows"):
        merge([site, begun])


def test_large_groups_are_not_kept_without_end(monkeypatch):
    """The limit is one of rows: a few groups may be all rows that there are."""
    group = np.repeat(np.arange(16), 10)
    blocks = [{"X": X[a : a + 40], "y": Y[a : a + 40], "groups": group[a : a + 40]} for a in range(0, N, 40)]
    model = LSPC(**GIVEN).fit_stream(lambda: iter(blocks), keep_rows=55)
    assert len(model.kept_) == 50
    assert sorted(np.bincount(model.kept_.group)[np.unique(model.kept_.group)]) == [10] * 5
    other = LSPC(**GIVEN).fit_stream(lambda: iter(blocks[::-1]), keep_rows=55)
    assert set(model.kept_.group) == set(other.kept_.group)
    assert len(LSPC(**GIVEN).fit_stream(lambda: iter(blocks), keep_rows=5).kept_) == 20  # two groups at least
    monkeypatch.setattr(kept, "LARGE", 15)
    with pytest.raises(ValueError, match="Two groups have 20 rows"):
        LSPC(**GIVEN).fit_stream(lambda: iter(blocks), keep_rows=5)


def test_groups_larger_than_the_number_of_centres():
    group = np.arange(N) % 4
    for bias in (None, "shared"):
        model = LSPC(**GIVEN, alpha=1e-2, bias=bias)
        stream = clone(model).partial_fit(X, Y, groups=group)
        np.testing.assert_allclose(
            stream.heldout_scores_, clone(model).fit(X, Y, groups=group).heldout_scores_, atol=1e-10
        )


def test_the_lowest_keys_of_so_many_rows():
    keys = np.array([5, 1, 1, 9, 3, 3, 3, 5], dtype=np.uint64)
    assert [int(threshold(keys, n, rows=True)) for n in (1, 5, 6, 7)] == [3, 3, 3, 5]
    assert threshold(keys, 8, rows=True) == threshold(keys[:2], 1, rows=True) == EVERY
    parts = [Kept.of(X[k::3], Y[k::3], np.ones(len(X[k::3])), np.arange(N)[k::3] // 7, 30) for k in range(3)]
    whole = Kept.of(X, Y, np.ones(N), np.arange(N) // 7, 30)
    assert joined_kept(parts).bound == whole.bound
    assert sorted(joined_kept(parts).X[:, 0]) == sorted(whole.X[:, 0])


# ------------------------------------------------------------------ weights


def test_blocks_without_any_weight():
    w = np.ones(N)
    w[:60] = 0
    blocks = [(X[:50], Y[:50], w[:50]), (X[50:100], Y[50:100], w[50:100]), (X[100:], Y[100:], w[100:])]
    model = LSPC(**GIVEN, alpha=1e-2)
    whole = clone(model).fit_stream(X[60:], Y[60:])
    for source in (iter(blocks), lambda: iter(blocks)):
        same(clone(model).fit_stream(source), whole)
    same(clone(whole).fit_stream(X[60:], Y[60:]).partial_fit(X[:60], Y[:60], sample_weight=w[:60]), whole)
    with pytest.raises(ValueError, match="no rows"):
        LSPC(**GIVEN).fit_stream(iter([blocks[0]]))
    for wrong, word in ((w[:5], "one weight for each"), (np.r_[np.nan, w[1:]], "finite"), (-w, "negative")):
        with pytest.raises(ValueError, match=word):
            whole.partial_fit(X, Y, sample_weight=wrong)


def test_partitions_without_any_weight():
    da = pytest.importorskip("dask.array")
    dask = pytest.importorskip("dask")
    w = np.ones(N)
    w[:80] = 0
    lazy = [da.from_array(a, chunks=(40, *a.shape[1:])) for a in (X, Y, w)]
    with dask.config.set(scheduler="synchronous"):
        same(LSPC(**GIVEN).fit(*lazy), LSPC(**GIVEN).fit_stream(X[80:], Y[80:]))
        with pytest.raises(ValueError, match="no rows"):
            LSPC(**GIVEN).fit(lazy[0], lazy[1], 0 * lazy[2])


def test_weights_of_classes_that_sums_cannot_have():
    for wrong in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="finite number of 0 or more"):
            LSPC(**GIVEN, class_weight={0: wrong}).fit_stream(X, Y)
    balanced = LSPC(**GIVEN, class_weight="balanced")
    parts = [clone(balanced).fit_stream(X[k::2], Y[k::2]) for k in range(2)]
    for call in (parts[0].partial_fit, parts[0].unfit):
        with pytest.raises(ValueError, match="dict of weights"):
            call(X[::2], Y[::2])
    with pytest.raises(ValueError, match="cannot be added"):
        merge(parts)


def test_small_weights_are_not_nothing():
    """Rows that were never added are refused, whatever the scale of the weights."""
    w = np.full(N, 1e-12)
    model = LSPC(**GIVEN).fit_stream(iter([(X, Y, w)]))
    with pytest.raises(ValueError, match="at least one of these rows was not"):
        model.unfit(X[:5] + 1, Y[:5], sample_weight=w[:5])
    assert len(model.unfit(X[:5], Y[:5], sample_weight=w[:5]).kept_) == N - 5


def test_to_take_away_what_counts_less_by_now():
    model = LSPC(**GIVEN, alpha=1e-2).fit_stream(X[:100], Y[:100]).forget(0.5).partial_fit(X[100:], Y[100:])
    with pytest.raises(ValueError, match="Nothing was changed"):
        model.unfit(X[:20], Y[:20])
    model.unfit(X[:20], Y[:20], sample_weight=np.full(20, 0.5))
    w = np.r_[np.full(80, 0.5), np.ones(N - 100)]
    same(model, LSPC(**GIVEN, alpha=1e-2).fit_stream(iter([(X[20:], Y[20:], w)])), 1e-7)


# ------------------------------------------------------------ nothing is left


def test_models_without_rows():
    begun = LSPC(**GIVEN).fit_stream(X, Y)
    site = begun.without_rows().forget(0.5)
    assert site.moments_.n == 0
    with pytest.raises(ValueError, match="no rows"):
        site.partial_fit(X[:0], Y[:0])
    with pytest.raises(ValueError, match="not been trained on any rows yet"):
        merge([site, begun.without_rows()])
    same(site.partial_fit(X, Y), begun)
    same(merge([begun.without_rows(), begun]), begun)


def test_to_take_away_all_rows_that_are_kept():
    model = LSPC(**GIVEN).fit_stream(X, Y, keep_rows=12)
    before, sample = model.predict_proba(X), model.kept_
    with pytest.raises(ValueError, match=r"all but 0 .* Nothing was changed"):
        model.unfit(sample.X, sample.y)
    assert np.array_equal(model.predict_proba(X), before)
    bare = LSPC(centers=X[::10], **BARE).fit_stream(X, Y, keep_rows=12)
    rest = ~np.isin(X[:, 0], bare.kept_.X[:, 0])
    bare.unfit(bare.kept_.X, bare.kept_.y)
    same(bare, LSPC(centers=X[::10], **BARE).fit_stream(X[rest], Y[rest]), 1e-6)
    assert not hasattr(bare, "neighbourhood_")


def test_to_take_away_a_class():
    """What rounding leaves of it is no share."""
    last = Y == 2
    for model, y in ((LSPC(**GIVEN), Y), (LSSVC(**GIVEN), Y), (MultiLabelLSPC(**GIVEN), Y)):
        model.fit_stream(X, y).partial_fit(NEW, np.full(30, 2)).unfit(NEW, np.full(30, 2)).unfit(X[last], y[last])
        prior = model.class_prior_ if isinstance(model, LSPC | LSSVC) else model.class_prior_[0]
        again = type(model)(**GIVEN).partial_fit(X[~last], y[~last], classes=[0, 1, 2])
        known = again.class_prior_ if isinstance(model, LSPC | LSSVC) else again.class_prior_[0]
        np.testing.assert_allclose(prior, known, rtol=1e-6)
        assert np.min(prior) > 1e-4


# ------------------------------------------------------------------ classes


def test_classes_are_numbers_or_text():
    words = np.array(["low", "middle", "top"])[Y]
    with pytest.raises(ValueError, match="numbers everywhere, or text"):
        merge([LSPC(**GIVEN).fit_stream(X, y) for y in (Y, words)])
    with pytest.raises(StreamError, match=r"block 1: Classes are \[0, 1, 2\] in some rows"):
        LSPC(**GIVEN).fit_stream(lambda: iter([(X, Y), (X, words)]))
    mixed = np.where(Y == 0, Y.astype(object), words.astype(object))
    with pytest.raises(StreamError, match=r"block 1: y holds classes of different types"):
        LSPC(**GIVEN).fit_stream(lambda: iter([(X, words), (X, mixed)]))
    for y in (Y.astype(str), Y.astype(str).astype(object), Y.astype("datetime64[D]")):
        with pytest.raises(ValueError, match="must be numeric"):
            LSSVR(**GIVEN).partial_fit(X, y)
    with pytest.raises(ValueError, match="no targets"):
        LSPC(**GIVEN).fit_stream(X)
    with pytest.raises(ValueError, match=r"\(n, 1\): give y in the same form"):
        LSSVR(**GIVEN).partial_fit(X, X[:, :1]).partial_fit(X, X[:, 0])


@pytest.mark.parametrize("classes", [[0, 1], [-1, 1], [1, 2], [False, True], ["no", "yes"]])
def test_labels_have_the_classes_of_all_blocks(classes):
    """A block of which all labels are the same says little of what they are."""
    named = np.array(classes)[LABELS]
    order = np.argsort(LABELS.sum(axis=1), kind="stable")
    whole = MultiLabelLSPC(**GIVEN, solver="moments").fit(X, named)
    for some in (order, order[::-1]):
        parts = np.array_split(some, 7)
        model = MultiLabelLSPC(**GIVEN).fit_stream(lambda parts=parts: iter([(X[p], named[p]) for p in parts]))
        assert [c.tolist() for c in model.label_index_.classes] == [classes, classes]
        same(model, whole)
        assert model.constant_labels_ == []


def test_a_short_block_of_labels_is_no_list_of_ids():
    three = np.column_stack([Y, LABELS[:, 0]])
    last = [int(np.flatnonzero(k == Y)[0]) for k in range(3)]
    rest = np.setdiff1d(np.arange(N), last)
    blocks = [(X[rest], three[rest]), (X[last], three[last])]
    model = MultiLabelLSPC(**GIVEN).fit_stream(lambda: iter(blocks))
    np.testing.assert_array_equal(model.predict(X), MultiLabelLSPC(**GIVEN).fit_stream(X, three).predict(X))
    with pytest.raises(ValueError, match="like a number or an id"):
        MultiLabelLSPC(**GIVEN).fit_stream(X, np.column_stack([LABELS, np.arange(N)]), block_rows=20)
    with pytest.raises(ValueError, match="missing=-1"):
        MultiLabelLSPC(**GIVEN).fit_stream(lambda: iter([(X, LABELS), (X, 2 * LABELS - 1)]))


def test_labels_of_other_classes_merge():
    three = np.column_stack([Y, LABELS])
    order = np.argsort(Y, kind="stable")
    parts = [MultiLabelLSPC(**GIVEN).fit_stream(X[p], three[p]) for p in np.array_split(order, 2)]
    known = [part.label_index_ for part in parts]
    assert [len(index.classes[0]) for index in known] == [2, 2]
    merged, whole = merge(parts), MultiLabelLSPC(**GIVEN).fit_stream(X, three)
    for one, other in zip(merged.predict_proba(X), whole.predict_proba(X), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-7)
    assert [part.label_index_ for part in parts] == known  # as they were
    assert len(parts[0].predict(X)) == N


def test_labels_that_are_constant_in_a_part():
    some = LABELS.copy()
    some[:80, 0], some[80:, 0] = 0, 1
    parts = [MultiLabelLSPC(**GIVEN).fit_stream(X[p], some[p]) for p in (slice(80), slice(80, None))]
    assert [part.constant_labels_ for part in parts] == [[0], [0]]
    assert merge(parts).constant_labels_ == []
    assert parts[0].partial_fit(X[80:], some[80:]).unfit(X[80:], some[80:]).constant_labels_ == [0]


def test_first_rows_of_one_value_are_no_warning():
    y = np.where(np.arange(N) < 40, 3.0, X[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LSSVR(**GIVEN, kernel="rbf").fit_stream(X, y, block_rows=40)
    assert model.predict(X).std() > 0.1


def test_values_that_are_the_inputs_are_a_sample_too():
    """Keys of rows and of values that are equal must not make one key of all pairs."""
    x = RNG.normal(size=(N, 1))
    model = LSSVR(centers=x[::10], sigma=1.0, kernel="rbf").fit_stream(x, x[:, 0], keep_rows=30)
    assert len(model.kept_) == len(np.unique(model.kept_.key)) == 30


def test_values_of_another_form_do_not_merge():
    one, two, flat = (LSSVR(**GIVEN).fit_stream(X, y) for y in (X[:, :1], X[:, :2], X[:, 0]))
    for other in (two, flat):
        with pytest.raises(ValueError, match="give one form"):
            merge([one, other])


def test_signed_targets_of_single_precision_merge():
    words, order = np.array(["low", "middle", "top"])[Y], np.argsort(Y, kind="stable")
    given = {**GIVEN, "centers": X[::10].astype(np.float32)}
    parts = [LSSVC(**given).fit_stream(X[p].astype(np.float32), words[p]) for p in np.array_split(order, 2)]
    merged, whole = merge(parts), LSSVC(**given).fit_stream(X.astype(np.float32), words)
    assert merged.intercept_.dtype == np.float32
    same(merged, whole, 1e-3)


@pytest.mark.parametrize("kind", ["classes", "values"])
def test_an_iterator_may_fill_the_same_arrays_again(kind):
    y, model = (Y, LSPC(**GIVEN)) if kind == "classes" else (X[:, 0] + X[:, 1] ** 2, LSSVR(**GIVEN, kernel="rbf"))
    model.set_params(alpha=1e-2)
    w = np.linspace(0.5, 2, N)

    def filled():
        block = np.empty((40, 3)), np.empty(40, dtype=y.dtype), np.empty(40)
        for a in range(0, N, 40):
            for array, values in zip(block, (X, y, w), strict=True):
                array[:] = values[a : a + 40]
            yield block

    whole = clone(model).fit_stream(iter([(X, y, w)]), keep_rows=100)
    for source in (filled, filled()):
        some = clone(model).fit_stream(source, keep_rows=100)
        assert some.moments_.mass == pytest.approx(w.sum())
        said = "predict" if kind == "values" else "predict_proba"
        np.testing.assert_allclose(getattr(some, said)(X), getattr(whole, said)(X), atol=1e-8)
        np.testing.assert_array_equal(np.sort(some.kept_.X[:, 0]), np.sort(whole.kept_.X[:, 0]))
        np.testing.assert_array_equal(np.sort(some.kept_.w), np.sort(whole.kept_.w))


def test_reports_tell_how_many_rows_there_were():
    facts = dict(report_data(LSPC(**GIVEN).fit_stream(X, Y, keep_rows=70))["facts"])
    assert (facts["Training rows"], facts["Rows that were held out"]) == (str(N), "70")
    none = dict(report_data(LSPC(centers=X[::10], **BARE).fit_stream(X, Y, keep_rows=0))["facts"])
    assert none["Training rows"] == str(N)
    assert "Rows that were held out" not in none


# ------------------------------------------------------- rows that were never added


SUMS_ONLY = {
    "LSPC": (LSPC(centers=X[::10], **BARE), Y),
    "LSSVC": (LSSVC(centers=X[::10], sigma=1.5, alpha=1e-3, cv=None, calibration=None), Y),
    "LSSVR": (LSSVR(centers=X[::10], sigma=1.5, alpha=1e-3, linear_weight=0, cv=None), X[:, 0]),
    "MultiLabelLSPC": (
        MultiLabelLSPC(centers=X[::10], sharing=0.5, **{k: v for k, v in BARE.items() if k != "random_state"}),
        LABELS,
    ),
    "coefficients": (LSPC(centers=X[::10], norm="coefficients", **BARE), Y),
    "linear": (LSSVC(kernel="linear", n_centers=20, alpha=1e-3, cv=None, calibration=None), Y),
}
sums_only = pytest.mark.parametrize(("model", "y"), SUMS_ONLY.values(), ids=SUMS_ONLY)


@sums_only
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_unfit_refuses_sums_that_no_rows_can_have(model, y, dtype):
    """The model keeps no rows, and can only tell from the sums."""
    rows = X.astype(dtype)
    model = clone(model).fit_stream(rows, y, keep_rows=0)
    before, A = dict(vars(model)), model.moments_.A.copy()
    for gone in (np.repeat(rows[:3], 40, axis=0), 3 * rows[:100]):
        with pytest.raises(ValueError, match=r"sums that no rows can have .* Nothing was changed"):
            model.unfit(gone, np.repeat(y[:3], 40, axis=0) if len(gone) == 120 else y[:100])
    assert vars(model) == before
    np.testing.assert_array_equal(model.moments_.A, A)


@pytest.mark.parametrize("name", ["LSPC", "LSSVC"])
def test_unfit_refuses_a_class_with_a_negative_weight(name):
    model, y = SUMS_ONLY[name]
    model = clone(model).fit_stream(X, y, keep_rows=0)
    rare = np.flatnonzero(y == 0)
    other = np.flatnonzero(y == 1)[: len(rare) + 2]
    with pytest.raises(ValueError, match="a weight of -2"):
        model.unfit(X[other], np.zeros(len(other), dtype=int))


@sums_only
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_unfit_accepts_all_rows_that_were_added(model, y, dtype):
    """In other blocks and in another order, down to very few rows."""
    rows = X.astype(dtype)
    model = clone(model).fit_stream(rows, y, keep_rows=0, block_rows=33)
    first = np.unique(LABELS if y is LABELS else Y, axis=0, return_index=True)[1]  # every class stays
    order = np.array([*first, *np.setdiff1d(np.arange(N), first)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in np.array_split(order[8:][::-1], 7):
            model.unfit(rows[part], y[part])
    assert model.moments_.n == 8


@pytest.mark.parametrize("keep", [1e-300, 5e-324])
def test_forgetting_everything_is_an_error(keep):
    model = LSPC(**GIVEN).fit_stream(X, Y)
    P, mass = model.predict_proba(NEW), model.moments_.mass
    with pytest.raises(ValueError, match=r"which is too small: .* Nothing was changed"):
        model.forget(keep)
    assert model.moments_.mass == mass
    np.testing.assert_array_equal(model.predict_proba(NEW), P)
