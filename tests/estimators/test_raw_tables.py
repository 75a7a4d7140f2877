"""Tables as they come: missing values, text, categories and booleans in X, for all estimators and ways of fitting."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from leastwise import (
    LSPC,
    LSSVC,
    LSSVR,
    Abstaining,
    KernelLogisticRegression,
    MultiLabelLSPC,
    MultiTaskKernelLogisticRegression,
    MultiTaskLSPC,
    MultiTaskLSSVC,
    MultiTaskLSSVR,
    Recalibrated,
    load,
    merge,
    save,
)
from leastwise.onnx import check, to_onnx
from leastwise.sources import Spool, StreamError, open_blocks, predict_blocks
from leastwise.sources.frames import code_matrix

N = 60
RNG = np.random.default_rng(3)
NUMBERS = RNG.normal([5, 0, 100], [1, 3, 20], (N, 3))
GAPS = np.where(RNG.random((N, 3)) < 0.15, np.nan, NUMBERS)
COLOUR = RNG.choice(["red", "green", "blue"], N)
FLAG = RNG.random(N) < 0.4
TASK = RNG.choice(["north", "south"], N)
Y = (NUMBERS[:, 0] - 5 + (COLOUR == "red") + FLAG + RNG.normal(0, 0.3, N) > 0.8).astype(int)
FRAME = pd.DataFrame({"age": GAPS[:, 0], "colour": COLOUR, "height": GAPS[:, 1], "flag": FLAG, "dose": GAPS[:, 2]})
NEW = FRAME.head(12).assign(colour=["violet", *COLOUR[1:12]], age=[np.nan, np.nan, *GAPS[2:12, 0]])
FIXED = {"sigma": 2.0, "alpha": 0.01, "scale": "standard", "kernel": "rbf"}

SINGLE = [LSPC, LSSVC, LSSVR, KernelLogisticRegression, MultiLabelLSPC]
MULTI = [MultiTaskLSPC, MultiTaskLSSVC, MultiTaskLSSVR, MultiTaskKernelLogisticRegression]
every = pytest.mark.parametrize("estimator", [*SINGLE, *MULTI])


def made(estimator, **options):
    """An estimator with a fixed model, so that fits are quick."""
    sharing = {"sharing": 0.3} if estimator in MULTI or estimator is MultiLabelLSPC else {}
    return estimator(**FIXED | sharing | options)


def target(estimator):
    return np.column_stack([Y, FLAG.astype(int)]) if estimator is MultiLabelLSPC else Y


def fitted(model, X, y=None, **more):
    tasks = {"tasks": TASK} if type(model) in MULTI and model.task_column is None else {}
    return model.fit(X, target(type(model)) if y is None else y, **tasks, **more)


def answer(model, X):
    """What the model says about rows, all of the task "north"."""
    tasks = {"tasks": "north"} if type(model) in MULTI and model.task_column is None else {}
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X, **tasks))
    return model.predict(X, **tasks)


# ------------------------------------------------------------------ as users see it


@pytest.mark.parametrize("estimator", SINGLE)
def test_a_raw_frame_just_works(estimator):
    model = estimator().fit(FRAME, target(estimator))
    assert np.isfinite(answer(model, NEW)).all()
    assert model.n_features_in_ == 5
    assert list(model.feature_names_in_) == list(FRAME)
    assert model.categories_ == [None, ["blue", "green", "red"], None, [False, True], None]


@pytest.mark.parametrize("estimator", MULTI)
def test_a_raw_frame_with_a_task_column_just_works(estimator):
    table = FRAME.copy()
    table.insert(2, "site", TASK)
    model = made(estimator, task_column="site").fit(table, Y)
    assert model.n_features_in_ == 6
    assert model.categories_ == [None, ["blue", "green", "red"], None, [False, True], None]
    new = NEW.copy()
    new.insert(2, "site", "north")
    np.testing.assert_allclose(answer(model, new), answer(fitted(made(estimator), FRAME), NEW), atol=1e-12)
    by_position = made(estimator, task_column=2, categories=[1, 4]).fit(table, Y)
    np.testing.assert_array_equal(answer(by_position, new), answer(model, new))


def test_colours_and_gaps_are_learned_from():
    y = (COLOUR == "red").astype(int)
    assert LSPC().fit(FRAME, y).score(FRAME, y) == 1
    y = np.isnan(GAPS[:, 0]).astype(int)
    assert LSPC().fit(GAPS, y).score(GAPS, y) == 1


@every
def test_all_ask_for_missing_values_and_say_so(estimator):
    assert get_tags(estimator()).input_tags.allow_nan
    assert not get_tags(estimator(kernel="precomputed")).input_tags.allow_nan
    assert not get_tags(estimator(kernel=lambda A, B: A @ B.T)).input_tags.allow_nan


# ---------------------------------------------------------------------- by hand


def by_hand(table):
    """The columns of a model without a scale, in the order of the inputs."""
    numbers = table[["age", "height", "dose"]]
    known = FRAME[["age", "height", "dose"]]
    absent = known.isna().mean().to_numpy()
    parts = [numbers.fillna(known.median()), numbers.isna() / np.sqrt(absent * (1 - absent))]
    for name in ("colour", "flag"):
        share = FRAME[name].value_counts(normalize=True).sort_index()
        one_hot = pd.concat([table[name] == value for value in share.index], axis=1)
        one_hot["unseen"] = ~one_hot.any(axis=1)
        parts.append(one_hot / np.sqrt(1 - (share**2).sum()))
    return np.column_stack(parts).astype(float)


@every
def test_the_columns_are_those_made_by_hand(estimator):
    raw = fitted(made(estimator, scale=None, sigma=20.0), FRAME)
    plain = fitted(made(estimator, scale=None, sigma=20.0), by_hand(FRAME))
    np.testing.assert_allclose(answer(raw, NEW), answer(plain, by_hand(NEW)), atol=1e-10)


def test_a_number_for_sigma_scales_no_column_but_fills_gaps():
    raw = LSPC(20.0, 0.01).fit(FRAME, Y)
    assert raw.scale_ is None
    np.testing.assert_allclose(
        raw.predict_proba(NEW), LSPC(20.0, 0.01).fit(by_hand(FRAME), Y).predict_proba(by_hand(NEW))
    )


# ------------------------------------------------------------------- missing values


@every
def test_missing_values_of_any_kind(estimator):
    model = fitted(made(estimator), GAPS)
    assert np.isfinite(answer(model, GAPS)).all()
    assert np.isfinite(answer(model, np.full((2, 3), np.nan))).all()


@every
def test_a_column_without_values_is_as_none(estimator):
    with_it = np.insert(GAPS, 1, np.nan, axis=1)
    model, without = fitted(made(estimator), with_it), fitted(made(estimator), GAPS)
    np.testing.assert_allclose(answer(model, with_it), answer(without, GAPS), atol=1e-12)


@every
def test_missing_only_at_prediction_is_the_median(estimator):
    model, new = fitted(made(estimator), NUMBERS), NUMBERS[:5].copy()
    filled = new.copy()
    new[:, 1], filled[:, 1] = np.nan, np.median(NUMBERS[:, 1])
    np.testing.assert_allclose(answer(model, new), answer(model, filled), atol=1e-12)


def test_rows_of_nothing_but_missing_values_are_all_equal():
    with pytest.raises(ValueError, match="All rows of X are equal"):
        LSPC().fit(np.full((N, 2), np.nan), Y)


def test_rows_with_the_same_gaps_are_equal():
    twice = np.r_[GAPS, GAPS]
    twice[N:][np.isnan(GAPS)] = -np.nan  # another NaN
    model = LSPC(**FIXED).fit(twice, np.r_[Y, Y], groups="duplicates")
    assert len(np.unique(model.heldout_rows_.group)) == N


def test_pandas_and_polars_mark_missing_numbers_in_their_own_ways():
    expected = LSPC(**FIXED).fit(FRAME, Y).predict_proba(NEW)
    nullable = FRAME.astype({"age": "Float64", "height": "Float64"})
    np.testing.assert_array_equal(LSPC(**FIXED).fit(nullable, Y).predict_proba(NEW), expected)
    nulls = pl.DataFrame({name: FRAME[name].to_numpy() for name in FRAME}).with_columns(pl.col("age").fill_nan(None))
    np.testing.assert_array_equal(LSPC(**FIXED).fit(nulls, Y).predict_proba(NEW), expected)
    numbers = FRAME.astype({"age": object})  # objects that are numbers
    model = LSPC(**FIXED).fit(numbers, Y)
    np.testing.assert_array_equal(model.predict_proba(NEW), expected)
    assert model.categories_[0] is None


# ----------------------------------------------------------------------- categories

DTYPES = {
    "text": FRAME,
    "objects": FRAME.astype({"colour": object, "flag": object}),
    "category": FRAME.astype({"colour": "category", "flag": "category"}),
    "another order": FRAME.assign(colour=pd.Categorical(COLOUR, ["red", "unused", "blue", "green"])),
    "string": FRAME.astype({"colour": "string", "flag": "boolean"}),
    "polars": pl.DataFrame({name: FRAME[name].to_numpy() for name in FRAME}),
    "polars categories": pl.DataFrame({name: FRAME[name].to_numpy() for name in FRAME}).with_columns(
        pl.col("colour").cast(pl.Categorical)
    ),
    "polars enum": pl.DataFrame({name: FRAME[name].to_numpy() for name in FRAME}).with_columns(
        pl.col("colour").cast(pl.Enum(["red", "blue", "green"]))
    ),
}


@pytest.mark.parametrize("kind", DTYPES)
def test_all_dtypes_give_the_same_model(kind):
    expected, model = LSPC(**FIXED).fit(FRAME, Y), LSPC(**FIXED).fit(DTYPES[kind], Y)
    assert model.categories_ == expected.categories_
    np.testing.assert_array_equal(model.predict_proba(NEW), expected.predict_proba(NEW))
    np.testing.assert_array_equal(expected.predict_proba(DTYPES[kind]), expected.predict_proba(FRAME))


@every
def test_names_of_categories_make_no_difference(estimator):
    names = {"red": "z", "green": "y", "blue": "x", "violet": "w"}
    model, renamed = fitted(made(estimator), FRAME), fitted(made(estimator), FRAME.replace({"colour": names}))
    np.testing.assert_allclose(answer(renamed, NEW.replace({"colour": names})), answer(model, NEW), atol=1e-10)


@every
def test_the_order_of_columns_makes_no_difference(estimator):
    order = ["flag", "dose", "colour", "age", "height"]
    model, other = fitted(made(estimator), FRAME), fitted(made(estimator), FRAME[order])
    np.testing.assert_allclose(answer(other, NEW[order]), answer(model, NEW), atol=1e-10)


@every
def test_all_unseen_values_are_alike(estimator):
    model = fitted(made(estimator), FRAME)
    said = [answer(model, NEW.assign(colour=value)) for value in ("violet", "pink", None, 3)]
    for other in said[1:]:
        np.testing.assert_array_equal(other, said[0])
    assert not np.allclose(said[0], answer(model, NEW.assign(colour="red")), atol=1e-3)


def test_missing_categories_are_a_value_where_training_has_them():
    table = FRAME.assign(colour=np.where(FLAG, None, COLOUR))
    model = LSPC(**FIXED).fit(table, Y)
    assert model.categories_[1] == ["blue", "green", "red"]
    absent, unseen = (model.predict_proba(NEW.assign(colour=value)) for value in (None, "violet"))
    assert not np.allclose(absent, unseen, atol=1e-3)


@pytest.mark.parametrize("estimator", [LSPC, LSSVC, LSSVR, MultiTaskLSPC])
def test_weights_are_repeated_rows(estimator):
    w = RNG.integers(1, 4, N)
    weighted = fitted(made(estimator), FRAME, sample_weight=w)
    repeated, tasks = made(estimator), {"tasks": np.repeat(TASK, w)} if estimator in MULTI else {}
    repeated.fit(FRAME.iloc[np.repeat(np.arange(N), w)], np.repeat(Y, w), **tasks)
    np.testing.assert_allclose(answer(weighted, NEW), answer(repeated, NEW), atol=1e-8)


def test_rows_without_weight_teach_nothing():
    more = pd.concat([FRAME, NEW.assign(colour="grey")])
    w = np.r_[np.ones(N), np.zeros(12)]
    model, expected = LSPC(**FIXED).fit(more, np.r_[Y, Y[:12]], w), LSPC(**FIXED).fit(FRAME, Y)
    np.testing.assert_allclose(model.predict_proba(NEW), expected.predict_proba(NEW), atol=1e-12)
    grey, unseen = NEW.assign(colour="grey"), NEW.assign(colour="violet")
    np.testing.assert_array_equal(model.predict_proba(grey), model.predict_proba(unseen))


def test_columns_named_or_counted():
    codes = np.column_stack([GAPS, np.searchsorted(["blue", "green", "red"], COLOUR)])
    by_position = LSPC(**FIXED, categories=[-1]).fit(codes, Y)
    assert by_position.categories_ == [None, None, None, [0.0, 1.0, 2.0]]
    by_name = LSPC(**FIXED, categories=["c"]).fit(pd.DataFrame(codes, columns=list("xyzc")), Y)
    text = LSPC(**FIXED).fit(pd.DataFrame(GAPS, columns=list("xyz")).assign(c=COLOUR), Y)
    expected = text.predict_proba(pd.DataFrame(GAPS, columns=list("xyz")).assign(c=COLOUR))
    np.testing.assert_allclose(by_position.predict_proba(codes), expected, atol=1e-12)
    np.testing.assert_allclose(by_name.predict_proba(pd.DataFrame(codes, columns=list("xyzc"))), expected, atol=1e-12)
    numbers = LSPC(**FIXED, categories=None).fit(codes, Y)
    assert numbers.categories_ == [None] * 4
    mixed = LSPC(**FIXED, categories=[1]).fit([[1.5, "a"], [2, "b"], [3, "a"], [4, "b"]] * 3, [0, 1, 1, 0] * 3)
    assert mixed.predict([[1.5, "a"]]) == [0]


def test_values_of_several_types_in_one_column():
    table = pd.DataFrame({"x": GAPS[:, 0], "c": np.where(FLAG, 1, COLOUR.astype(object))})
    model = LSPC(**FIXED).fit(table, Y)
    assert model.categories_[1] == [1, "blue", "green", "red"]
    assert np.isfinite(model.predict_proba(table)).all()


def test_given_centres_have_categories_too():
    model = LSPC(**FIXED, centers=FRAME.head(20)).fit(FRAME, Y)
    assert model.centers_.shape[0] == 20
    np.testing.assert_array_equal(model.centers_, model.inputs_(_codes(model, FRAME.head(20))))


def _codes(model, table):
    codes = table.copy()
    for name, values in zip(table, model.categories_, strict=True):
        if values is not None:
            codes[name] = [values.index(value) for value in table[name]]
    return codes.to_numpy(dtype=float)


# ------------------------------------------------------------------ other precisions


@every
def test_single_precision(estimator):
    single = fitted(made(estimator), GAPS.astype(np.float32))
    assert single.intercept_.dtype == np.float32
    np.testing.assert_allclose(answer(single, GAPS), answer(fitted(made(estimator), GAPS), GAPS), atol=1e-3)


def test_one_row_per_task():
    names = np.arange(N)
    model = MultiTaskLSPC(**FIXED, sharing=0.5).fit(FRAME, Y, tasks=names)
    assert np.isfinite(model.predict_proba(NEW, tasks=names[:12])).all()


def test_many_rows_are_searched_on_some():
    big = pd.concat([FRAME] * 12, ignore_index=True)
    big["age"] += RNG.normal(0, 0.1, len(big))
    y = np.tile(Y, 12)
    model = LSPC().fit(big, y)
    again = LSPC().fit(big.iloc[::-1], y[::-1])
    np.testing.assert_allclose(model.predict_proba(NEW), again.predict_proba(NEW), atol=1e-5)
    assert model.score(big, y) > 0.9


# -------------------------------------------------------------------------- streams


def test_streams_have_missing_values(tmp_path):
    few = {"n_centers": 15, "random_state": 0, **FIXED}
    expected = LSPC(**few, solver="moments").fit(GAPS, Y).predict_proba(GAPS)
    numbers = pd.DataFrame(GAPS, columns=list("abc")).assign(label=Y)
    numbers.to_csv(tmp_path / "a.csv", index=False)
    numbers.to_parquet(tmp_path / "a.parquet")
    models = [
        LSPC(**few).fit_stream(GAPS, Y, block_rows=17),
        LSPC(**few).fit_stream(numbers, target="label"),
        LSPC(**few).fit_stream(tmp_path / "a.csv", target="label"),
        LSPC(**few).fit_stream(tmp_path / "a.parquet", target="label"),
        LSPC(**few).partial_fit(GAPS, Y),
    ]
    for model in models:
        X = GAPS if not hasattr(model, "feature_names_in_") else numbers[list("abc")]
        np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-6)
        assert model.categories_ == [None] * 3


def test_rows_with_missing_values_come_and_go():
    few = {"centers": NUMBERS[:15], **FIXED, "scale": None, "sigma": 20.0}
    model = LSPC(**few).partial_fit(GAPS, Y)
    before = model.predict_proba(GAPS)
    more = model.partial_fit(GAPS[:9], Y[:9]).predict_proba(GAPS)
    assert not np.allclose(more, before, atol=1e-6)
    np.testing.assert_allclose(model.unfit(GAPS[:9], Y[:9]).predict_proba(GAPS), before, atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("scale", ["standard", None])
def test_streams_of_tasks_have_missing_values(kernel, scale):
    rows = np.tile(GAPS, (10, 1)) + RNG.normal(0, 0.1, (10 * N, 3))
    y, task = np.tile(Y, 10), RNG.choice(list("abcdefgh"), 10 * N)
    few = FIXED | {"kernel": kernel, "scale": scale, "sharing": 0.5, "centers": NUMBERS[:15]}
    few |= {"sigma": 2.0 if scale else 20.0}
    stream = MultiTaskLSPC(**few, search_rows=100).fit_stream(rows, y, task=task, block_rows=200)
    assert stream.categories_ == [None] * 3
    assert stream.inputs_.missing.tolist() == [0, 1, 2]
    plain = MultiTaskLSPC(**few | {"scale": None, "centers": stream.centers_}).fit(
        stream.inputs_(rows), y, tasks=task
    )
    for ids in (task, "new"):
        expected = plain.scores(stream.inputs_(rows), tasks=ids)
        np.testing.assert_allclose(stream.scores(rows, tasks=ids), expected, atol=1e-6)


def test_dask_has_missing_values_and_predicts_for_categories():
    dd = pytest.importorskip("dask.dataframe")
    few = {"n_centers": 15, "random_state": 0, **FIXED}
    numbers = pd.DataFrame(GAPS, columns=list("abc"))
    parts = dd.from_pandas(numbers.assign(label=Y), npartitions=3)
    model = LSPC(**few).fit(parts[list("abc")], parts["label"])
    expected = LSPC(**few).fit_stream(numbers.assign(label=Y), target="label")
    np.testing.assert_allclose(model.predict_proba(numbers), expected.predict_proba(numbers), atol=1e-8)
    raw = LSPC(**FIXED).fit(FRAME, Y)
    lazy = raw.predict_proba(dd.from_pandas(FRAME, npartitions=2))
    np.testing.assert_allclose(lazy.compute(), raw.predict_proba(FRAME), atol=1e-12)


# --------------------------------------------------------------- categories in blocks

FEW = {"n_centers": 15, "random_state": 0, **FIXED}
LABELLED = FRAME.assign(label=Y)
PARTS = [FRAME.iloc[k : k + 20] for k in range(0, N, 20)]


def _frames():
    return ((part, Y[20 * k : 20 * k + len(part)]) for k, part in enumerate(PARTS))


def _dask():
    parts = pytest.importorskip("dask.dataframe").from_pandas(LABELLED, npartitions=3)
    return LSPC(**FEW).fit(parts[list(FRAME)], parts["label"])


STREAMS = {
    "table": lambda folder: LSPC(**FEW).fit_stream(LABELLED, target="label", block_rows=23),
    "iterator": lambda folder: LSPC(**FEW).fit_stream(_frames()),
    "callable": lambda folder: LSPC(**FEW).fit_stream(_frames),
    "polars": lambda folder: LSPC(**FEW).fit_stream(
        pytest.importorskip("polars").from_pandas(LABELLED), target="label", block_rows=23
    ),
    "parquet": lambda folder: (
        LABELLED.to_parquet(folder / "rows.parquet", index=False),
        LSPC(**FEW).fit_stream(folder / "rows.parquet", target="label", block_rows=23),
    )[1],
    "csv": lambda folder: (
        LABELLED.to_csv(folder / "rows.csv", index=False),
        LSPC(**FEW).fit_stream(folder / "rows.csv", target="label", block_rows=23),
    )[1],
    "spool": lambda folder: LSPC(**FEW).fit_stream(
        Spool(folder).keep(open_blocks(_frames(), categories="from_dtype"))
    ),
    "one call": lambda folder: LSPC(**FEW).partial_fit(FRAME, Y),
    "dask": lambda folder: _dask(),
}


@pytest.mark.parametrize("source", STREAMS)
def test_categories_in_blocks_give_the_model_of_a_fit_in_memory(source, tmp_path):
    model = STREAMS[source](tmp_path)
    expected = LSPC(**FEW, solver="moments").fit(FRAME, Y)
    assert model.categories_ == expected.categories_
    assert model.n_features_in_ == FRAME.shape[1]
    np.testing.assert_allclose(model.predict_proba(NEW), expected.predict_proba(NEW), atol=1e-8)
    found = np.concatenate(list(predict_blocks(model, NEW, block_rows=7)))
    np.testing.assert_allclose(found, expected.predict_proba(NEW), atol=1e-8)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(NEW), model.predict_proba(NEW))


@pytest.mark.parametrize("estimator", [LSSVC, LSSVR, MultiLabelLSPC])
def test_every_estimator_of_streams_takes_categories(estimator):
    target = Y.astype(float) if estimator is LSSVR else Y
    target = np.column_stack([Y, 1 - Y]) if estimator is MultiLabelLSPC else target
    model = estimator(**FEW).fit_stream((part, target[part.index]) for part in PARTS)
    expected = estimator(**FEW, solver="moments").fit(FRAME, target)
    assert model.categories_ == expected.categories_
    np.testing.assert_allclose(answer(model, NEW), answer(expected, NEW), atol=1e-7)


def test_rows_with_categories_are_added_and_removed():
    model = LSPC(**FEW).partial_fit(FRAME, Y)
    before = model.predict_proba(NEW)
    more = FRAME.iloc[:20].assign(colour="violet")  # not there at the first call
    model.partial_fit(more, Y[:20])
    assert model.categories_ == LSPC(**FEW).fit(FRAME, Y).categories_
    assert np.abs(model.predict_proba(NEW) - before).max() > 1e-4
    model.unfit(more, Y[:20])
    np.testing.assert_allclose(model.predict_proba(NEW), before, atol=1e-6)
    other = LSPC(**FEW).partial_fit(FRAME.replace({"colour": {"red": "violet"}}), Y)
    other.__dict__ |= {name: vars(model)[name] for name in ("centers_", "inputs_", "sigma_")}
    with pytest.raises(ValueError, match="Model 1 differs from the first in categories_"):
        merge([model, other])


def test_values_that_come_after_the_first_look_are_unseen():
    """The first rows of an iterator tell which values there are."""
    late = np.where(np.arange(len(PARTS)) == len(PARTS) - 1, "violet", "red")
    blocks = [(part.assign(colour=colour), Y[part.index]) for part, colour in zip(PARTS, late, strict=True)]
    few = {**FEW, "n_centers": 5, "centers": "random"}
    once = LSPC(**few).fit_stream(iter(blocks), keep_rows=30)
    again = LSPC(**few).fit_stream(lambda: iter(blocks), keep_rows=30)
    colour = list(FRAME).index("colour")
    assert once.categories_[colour] == ["red"]
    assert again.categories_[colour] == ["red", "violet"]


@pytest.mark.parametrize("rows", ["all", "some"])
@pytest.mark.parametrize("spooled", [False, True])
def test_streams_of_tasks_have_categories(rows, spooled):
    frame = pd.concat([FRAME] * 10, ignore_index=True)
    frame.iloc[:, 0] += RNG.normal(0, 0.1, 10 * N)
    y, task = np.tile(Y, 10), RNG.choice(list("abcdefgh"), 10 * N)
    few = FIXED | {"sharing": 0.5, "centers": FRAME.head(15), "search_rows": None if rows == "all" else 100}
    pieces = [slice(k, k + 200) for k in range(0, 10 * N, 200)]
    blocks = [{"X": frame.iloc[piece], "y": y[piece], "tasks": task[piece]} for piece in pieces]
    stream = MultiTaskLSPC(**few).fit_stream(iter(blocks) if spooled else blocks)
    assert stream.categories_ == LSPC(**FIXED).fit(FRAME, Y).categories_
    seen = stream.inputs_(_coded(stream, frame))
    plain = {**few, "scale": None, "categories": None, "centers": stream.centers_}
    expected = MultiTaskLSPC(**plain).fit(seen, y, tasks=task)
    for ids in (task, "new"):
        found = stream.scores(frame, tasks=ids)
        np.testing.assert_allclose(found, expected.scores(seen, tasks=ids), atol=1e-6)
    table = frame.assign(label=y, site=task)
    named = MultiTaskLSPC(**few).fit_stream(table, target="label", task="site", block_rows=150)
    np.testing.assert_allclose(named.scores(frame, tasks=task), stream.scores(frame, tasks=task), atol=1e-6)


def _coded(model, frame):
    return code_matrix(frame, model.categories_, [np.float64])


def test_dask_with_tasks_in_a_column_has_categories():
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.concat([FRAME.assign(site=TASK)] * 10, ignore_index=True)
    y = np.tile(Y, 10)
    few = FIXED | {"sharing": 0.5, "centers": FRAME.head(15), "search_rows": 100, "task_column": "site"}
    parts = dd.from_pandas(frame.assign(label=y), npartitions=4)
    found = MultiTaskLSPC(**few).fit(parts[list(frame)], parts["label"])
    stream = MultiTaskLSPC(**few).fit_stream([(frame.iloc[k::3], y[k::3]) for k in range(3)])
    assert found.categories_ == stream.categories_ == LSPC(**FIXED).fit(FRAME, Y).categories_
    np.testing.assert_allclose(found.scores(frame), stream.scores(frame), atol=1e-6)


def test_positions_name_the_categories_of_arrays_in_blocks():
    codes = np.c_[NUMBERS[:, 0], RNG.integers(0, 4, N)]
    found = LSPC(**FEW, categories=[1]).fit_stream(codes, Y, block_rows=17)
    expected = LSPC(**FEW, solver="moments", categories=[1]).fit(codes, Y)
    assert found.categories_ == [None, [0.0, 1.0, 2.0, 3.0]]
    np.testing.assert_allclose(found.predict_proba(codes), expected.predict_proba(codes), atol=1e-8)


def test_blocks_with_categories_that_cannot_be_used_are_named():
    with pytest.raises(StreamError, match=r'column "colour" holds text, not numbers: encode it first, name it in'):
        LSPC(**FEW, categories=None).fit_stream(LABELLED, target="label")
    parts = FRAME[["colour"]], pd.DataFrame({"colour": np.arange(float(N))})
    mixed = [{"X": X, "y": Y, "tasks": TASK} for X in parts]
    with pytest.raises(ValueError, match="Column 0 holds numbers in some blocks and categories in others"):
        MultiTaskLSPC(**FEW, sharing=0.5).fit_stream(mixed)
    flags = FRAME.drop(columns="colour")
    assert LSPC(**FEW).partial_fit(flags, Y).score(flags, Y) > 0.7


# --------------------------------------------------------------------- other methods


@every
def test_files_keep_the_model(estimator, tmp_path):
    model = fitted(made(estimator), FRAME)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.categories_ == model.categories_
    np.testing.assert_array_equal(answer(loaded, NEW), answer(model, NEW))
    assert loaded.inputs_.same_as(model.inputs_)


@every
def test_graphs_take_missing_values_and_text(estimator):
    tasks = "north" if estimator in MULTI else None
    for X, new in ((GAPS, GAPS), (NUMBERS, GAPS), (FRAME, NEW), (FRAME[["colour"]], NEW[["colour"]])):
        model = fitted(made(estimator), X)
        assert check(model, to_onnx(model, dtype="float64"), new, tasks) < 1e-9
    flags = fitted(made(estimator), FRAME[["age", "flag"]])
    graph = to_onnx(flags)
    assert graph.graph.input[0].name == "X", "booleans are numbers"
    assert check(flags, graph, NEW[["age", "flag"]], tasks) < 1e-5


@pytest.mark.parametrize("scale", ["standard", "robust", "quantile", None])
def test_graphs_of_all_scales(scale):
    model = LSPC(**FIXED | {"scale": scale, "sigma": 2.0 if scale else 20.0}).fit(FRAME, Y)
    assert check(model, to_onnx(model, dtype="float64"), NEW) < 1e-9


def test_influence_and_novelty():
    model = LSPC(**FIXED).fit(FRAME, Y)
    found = model.influence(NEW, top=None)
    np.testing.assert_allclose(found.contribution.sum(axis=1), model.scores(NEW), atol=1e-8)
    tasks = MultiTaskLSPC(**FIXED, sharing=0.3).fit(FRAME, Y, tasks=TASK)
    assert np.isfinite(tasks.influence(NEW, tasks="north").effect).all()
    labels = MultiLabelLSPC(**FIXED, sharing=0.3).fit(FRAME, target(MultiLabelLSPC))
    assert np.isfinite(labels.influence(NEW).effect).all()
    p = model.novelty_pvalue(pd.concat([FRAME, NEW.assign(colour="violet", flag=None)]))
    assert (p[:N] == 1).all()
    assert p[N:].max() < 1


def test_wrappers_pipelines_and_searches():
    for model in (Abstaining(LSPC(**FIXED), min_confidence=0.6), Recalibrated(LSPC(**FIXED))):
        assert np.isfinite(model.fit(FRAME, Y).predict_proba(NEW)).all()
    steps = make_pipeline(SimpleImputer(), StandardScaler(), LSPC(**FIXED)).fit(GAPS, Y)
    assert np.isfinite(steps.predict_proba(GAPS)).all()
    framed = LSPC(**FIXED).set_output(transform="pandas").fit(FRAME, Y).predict_proba(NEW)
    assert list(framed.columns) == [0, 1]
    assert cross_val_score(LSPC(**FIXED), FRAME, Y, cv=3, error_score="raise").mean() > 0.5
    assert np.isfinite(LSSVR(**FIXED).fit(FRAME, Y).predict_interval(NEW, 0.8)).all()
    assert LSPC(**FIXED).fit(FRAME, Y).predict_set(NEW, 0.9).shape == (12, 2)


def test_plans_count_the_columns_of_categories():
    model = LSPC(**FIXED)
    assert model.plan(FRAME, Y).flops == model.plan(by_hand(FRAME), Y).flops > model.plan(GAPS[:, :1], Y).flops
    assert not hasattr(model, "categories_")


# -------------------------------------------------------------------------- bad input

REFUSED = {
    "inf": ({}, np.where(NUMBERS > 110, np.inf, NUMBERS), "infinity"),
    "inf beside text": ({}, FRAME.assign(age=np.inf), "infinity"),
    "sparse": ({}, sparse.csr_matrix(GAPS), "NaN, and is sparse: missing values are possible in dense X only"),
    "a kernel of the user's": ({"kernel": lambda A, B: A @ B.T}, GAPS, "NaN"),
    "text, no frame": ({}, FRAME[["colour"]].to_numpy(), "holds text, such as"),
    "text, no categories": ({"categories": None}, FRAME, "holds text, such as"),
    "text and a kernel of the user's": ({"kernel": lambda A, B: A @ B.T}, FRAME, "holds text, such as"),
    "a word": ({"categories": "all"}, FRAME, r"categories='all' is not known: use 'from_dtype', a list"),
    "a number": ({"categories": 3}, FRAME, r"categories=3 is not known"),
    "no such name": ({"categories": ["size"]}, FRAME, r"the column 'size', which X does not have.*'age', 'colour'"),
    "no such place": ({"categories": [3]}, GAPS, r"the column 3, which X does not have: X has 3 columns"),
    "sparse categories": ({"categories": [0]}, sparse.csr_matrix(NUMBERS), "sparse X has no categories"),
    "lists": ({}, FRAME.assign(colour=[[1]] * N), r"Column 'colour' holds objects of type list, which cannot"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("estimator", [LSPC, MultiTaskLSSVC, MultiLabelLSPC])
def test_bad_input_is_named(estimator, case):
    options, X, message = REFUSED[case]
    model = made(estimator, **options)
    with pytest.raises(ValueError, match=message):
        fitted(model, X)
    assert not hasattr(model, "categories_")


def test_a_kernel_matrix_has_no_missing_values():
    K = np.eye(N)
    K[3, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        LSPC(alpha=0.01, kernel="precomputed").fit(K, Y)


def test_prediction_checks_its_columns():
    model = LSPC(**FIXED).fit(FRAME, Y)
    with pytest.raises(ValueError, match="holds text, such as"):
        model.predict(NEW.assign(age="old"))
    with pytest.raises(ValueError, match="infinity"):
        model.predict(NEW.assign(age=np.inf))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(NEW.drop(columns="flag"))
    with pytest.raises(ValueError, match="NaN, and is sparse"):
        LSPC(**FIXED).fit(NUMBERS, Y).predict(sparse.csr_matrix(GAPS))
    refit = clone(model).fit(NUMBERS, Y)
    assert refit.categories_ == [None] * 3


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_column_of_dates_is_refused_with_advice(kind):
    days = np.arange("2026-01-01", "2026-01-31", dtype="datetime64[D]").astype("datetime64[us]")
    columns = {"a": np.arange(30.0), "day": days}
    table = {"pandas": pd, "polars": pl}[kind].DataFrame(columns)
    with pytest.raises(ValueError, match="Column 'day' holds dates: turn them into numbers"):
        LSPC().fit(table, np.arange(30) % 2)


# ---------------------------------------------------- dense and sparse rows of one model


@every
@pytest.mark.parametrize("scale", [None, "standard", "robust", "quantile"])
def test_a_model_of_dense_rows_predicts_sparse_rows_alike(estimator, scale):
    """Whatever was learned from dense rows, such as the mean of a column, holds for sparse ones too."""
    X = np.where(NUMBERS > [5, 1, 90], NUMBERS, 0)
    model = fitted(made(estimator, scale=scale), X)
    np.testing.assert_allclose(answer(model, sparse.csr_array(X)), answer(model, X), rtol=1e-9, atol=1e-12)


def test_a_model_with_missing_values_predicts_sparse_rows():
    X = np.where(NUMBERS > [5, 1, 90], GAPS, 0)
    rows = np.nan_to_num(X)
    model = fitted(made(LSPC), X)
    np.testing.assert_allclose(answer(model, sparse.csr_array(rows)), answer(model, rows))


@every
def test_missing_values_for_a_model_of_sparse_rows_are_named(estimator):
    model = fitted(made(estimator), sparse.csr_array(NUMBERS))
    with pytest.raises(ValueError, match=r"contains NaN, and this .* was fitted to sparse X.*SimpleImputer"):
        answer(model, GAPS)


def test_blocks_may_be_dense_or_sparse():
    X = np.where(NUMBERS > [5, 1, 90], NUMBERS, 0)
    parts = [LSPC(n_centers=20, scale="quantile").partial_fit(X[:30], Y[:30], classes=[0, 1]) for _ in range(2)]
    dense, mixed = parts[0].partial_fit(X[30:], Y[30:]), parts[1].partial_fit(sparse.csr_array(X[30:]), Y[30:])
    np.testing.assert_allclose(mixed.predict_proba(X), dense.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("categories", [None, ["flag"]])
def test_text_that_is_no_category_is_named(categories):
    with pytest.raises(
        ValueError, match=r"Column 'colour' holds text, such as '\w+': turn it into numbers, name it in"
    ):
        made(LSPC, categories=categories).fit(FRAME, Y)
    with pytest.raises(ValueError, match=r"Column 1 holds text, such as '\w+': turn it into numbers, name it in"):
        made(LSPC).fit(FRAME.to_numpy(dtype=object), Y)


@pytest.mark.parametrize("table", [FRAME, pl.from_pandas(FRAME), FRAME[["age", "dose"]]])
def test_text_where_numbers_were_is_named(table):
    model = made(LSPC).fit(table, Y)
    new = pd.DataFrame({name: table[name] for name in table.columns}).assign(age="old")
    with pytest.raises(ValueError, match="Column 'age' holds text, such as 'old': it held numbers in the training"):
        model.predict(new)
