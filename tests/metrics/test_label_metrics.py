"""Metrics of many labels: tables of every kind, what they mean, a report, and scorers for scikit-learn's tools."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import brier_score_loss, precision_recall_fscore_support, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate

import leastwise.metrics as metrics
from leastwise import MultiLabelLSPC
from leastwise.calibration.label_blend import LabelSample
from leastwise.metrics.label_report import label_report
from leastwise.metrics.labels import (
    SCORES,
    hamming,
    label_auc,
    label_average_precision,
    label_brier,
    label_f1,
    label_log_loss,
    label_scorer,
    subset_accuracy,
)
from leastwise.metrics.probabilities import brier_score
from leastwise.model_selection.label_objective import LABEL_SCORINGS, resolve_label_scoring
from leastwise.model_selection.splitters import StratifiedLabelKFold

OF_DECISIONS = [label_f1, hamming, subset_accuracy]
OF_PROBABILITIES = [label_log_loss, label_brier, label_average_precision, label_auc]
NAMES = ["urgent", "sales", "travel", "legal"]


def table(n=30, T=4, seed=0, unknown=0.2):
    rng = np.random.default_rng(seed)
    P = rng.integers(0, 11, size=(n, T)) / 10
    Y = (rng.random((n, T)) < P).astype(float)
    Y[rng.random((n, T)) < unknown] = np.nan
    return Y, P, (P > 0.4).astype(int)


def calls():
    """Every metric, with what it judges."""
    _, P, D = table()
    return [(f, D) for f in OF_DECISIONS] + [(f, P) for f in OF_PROBABILITIES]


def test_all_is_there():
    assert all(callable(getattr(metrics, name)) for name in metrics.__all__)
    assert {f.__name__ for f in OF_DECISIONS + OF_PROBABILITIES} <= set(metrics.__all__)


# ------------------------------------------------------------ brier and area


@given(st.integers(0, 10**6), st.integers(2, 25), st.integers(1, 4), st.sampled_from([0.0, 0.4]))
@settings(max_examples=40, deadline=None)
def test_brier_and_area_by_loops(seed, n, T, unknown):
    Y, P, _ = table(n, T, seed, unknown)
    Y[0, 0] = 1
    w = np.random.default_rng(seed).integers(0, 3, Y.shape).astype(float)
    w[0, 0] = 1
    squares, areas = [], []
    for y, p, v in zip(Y.T, P.T, w.T, strict=True):
        known = ~np.isnan(y) & (v > 0)
        y, p, v = y[known], p[known], v[known]
        mixed = len(set(y)) == 2
        areas.append(roc_auc_score(y, p, sample_weight=v) if mixed else np.nan)
        squares.append(2 * brier_score_loss(y, p, sample_weight=v, pos_label=1) if len(y) else np.nan)
    np.testing.assert_allclose(label_auc(Y, P, average=None, sample_weight=w), areas)
    np.testing.assert_allclose(label_brier(Y, P, average=None, sample_weight=w), squares, atol=1e-12)
    there = np.isfinite(areas)
    assert label_auc(Y, P, sample_weight=w) == pytest.approx(
        np.mean(np.array(areas)[there]) if there.any() else np.nan, nan_ok=True
    )
    known = ~np.isnan(Y) & (w > 0)
    if len(set(Y[known])) == 2:
        expected = roc_auc_score(Y[known], P[known], sample_weight=w[known])
        assert label_auc(Y, P, average="micro", sample_weight=w) == pytest.approx(expected)
    assert label_brier(Y, P, sample_weight=w) == pytest.approx(np.average(2 * (P - Y)[known] ** 2, weights=w[known]))


def test_brier_is_that_of_one_label():
    Y, P, _ = table(T=1, unknown=0)
    assert label_brier(Y, P) == pytest.approx(brier_score(Y[:, 0], np.hstack([1 - P, P])))


# ------------------------------------------------------------------- unknown


@pytest.mark.parametrize(("metric", "judged"), calls())
def test_a_value_that_stands_for_unknown(metric, judged):
    Y, _, _ = table()
    marked = np.where(np.isnan(Y), -1, Y)
    for kind in (marked, marked.astype(int), pd.DataFrame(marked), marked.astype(object), marked.tolist()):
        assert metric(kind, judged, missing=-1) == metric(Y, judged)
        with pytest.raises(ValueError, match=r"holds -1.* missing=-1"):
            metric(kind, judged)
    both = np.where(np.arange(len(Y))[:, None] % 2, Y, marked)  # NaN and None stay unknown beside it
    assert metric(np.where(np.isnan(both), None, both), judged, missing=-1) == metric(Y, judged)
    with pytest.raises(ValueError, match=r"missing=\[1\] must be NaN"):
        metric(Y, judged, missing=[1])


def test_unknown_marks_that_would_look_like_mistakes():
    D = np.array([[1, 0], [0, 1]])
    for Y in ([[1, -1], [0, 1]], [[1, -1], [-1, 1]], [[1, -1], [0, 2]], [[0, -1], [0, -1]]):
        with pytest.raises(ValueError, match="holds -1 beside 0 and 1: give missing=-1"):
            hamming(Y, D)
    for Y, decisions in (
        ([[2, -1], [1, -1]], [[2, 0], [1, 0]]),
        ([[-1, 5], [0, 5], [1, 5]], [[-1, 5], [0, 5], [1, 5]]),
    ):
        with pytest.raises(ValueError, match="holds -1 beside 0 and 1: give missing=-1"):
            hamming(Y, decisions)
    assert hamming([[1, -1], [-1, 1]], [[1, -1], [1, 1]]) == 0.25  # -1 and 1 are two classes
    assert hamming([[1, -1], [-1, 1]], [[1, 1], [1, 1]]) == 0.5
    assert subset_accuracy([[3, -1], [2, 1]], [[3, -1], [2, -1]]) == 0.5


def test_predictions_may_be_missing_only_where_nothing_is_known():
    Y, _, D = table()
    hole = np.isnan(Y)
    for metric, judged in calls():
        assert metric(Y, np.where(hole, np.nan, judged)) == metric(Y, judged)
        broken = judged.astype(float)
        broken[tuple(np.argwhere(~hole)[0])] = np.nan
        with pytest.raises(ValueError, match="has missing values in 1 rows"):
            metric(Y, broken)
    with pytest.raises(ValueError, match="Y_pred has missing values"):
        hamming(Y, np.where(D == 0, -1, D), missing=-1)


# ------------------------------------------------------------------- classes


def words(seed=0):
    rng = np.random.default_rng(seed)
    Y = rng.choice(np.array(["low", "mid", "high"]), size=(20, 3))
    D = np.where(rng.random(Y.shape) < 0.6, Y, rng.choice(np.array(["low", "mid", "high"]), size=Y.shape))
    return Y, D, rng.random(Y.shape) < 0.3


def test_classes_may_be_strings():
    Y, D, hole = words()
    holed = Y.astype(object)
    holed[hole] = None
    wrong = (Y != D) & ~hole
    rows = ~hole.all(axis=1)
    columns = [f"c{t}" for t in range(3)]
    kinds = [
        holed,
        holed.tolist(),
        np.where(hole, np.nan, holed),
        np.where(hole, np.nan, holed).tolist(),
        pd.DataFrame(holed, columns=columns),
        pd.DataFrame(holed, columns=columns).astype("category"),
        pl.DataFrame(holed.tolist(), schema=columns, orient="row"),
        np.ma.masked_array(Y, mask=hole),
    ]
    for kind in kinds:
        for decisions in (D, D.tolist(), pd.DataFrame(D, columns=columns), pl.DataFrame(D, schema=columns)):
            assert hamming(kind, decisions) == pytest.approx(wrong.sum() / (~hole).sum())
            assert subset_accuracy(kind, decisions) == pytest.approx(np.mean(~wrong[rows].any(axis=1)))
    np.testing.assert_allclose(
        hamming(np.where(hole, "?", Y), D, average=None, missing="?"), wrong.sum(0) / (~hole).sum(0)
    )
    assert hamming(Y, D) == pytest.approx(np.mean(Y != D))


def test_columns_may_differ_in_their_kind():
    columns = {"size": ["s", None, "l"], "urgent": [1, 0, None], "sent": [True, False, True]}
    Y = pd.DataFrame(columns)
    D = pd.DataFrame({"size": ["s", "s", "s"], "urgent": [1, 1, 1], "sent": [True, False, False]})
    np.testing.assert_allclose(hamming(Y, D, average=None), [1 / 2, 1 / 2, 1 / 3])
    assert hamming(pl.DataFrame(columns), D[["sent", "size", "urgent"]]) == hamming(Y, D)


@pytest.mark.parametrize("metric", [hamming, subset_accuracy])
def test_what_no_class_is(metric):
    Y, P, D = table()
    with pytest.raises(ValueError, match=r"Y_pred holds 0\.\d+: decisions must be classes; for probabilities give P"):
        metric(Y, P)
    with pytest.raises(ValueError, match=r"Y_true holds 0\.\d+: classes must be whole numbers"):
        metric(P, D)
    with pytest.raises(ValueError, match="Y_pred holds inf"):
        metric(Y, np.where(D, np.inf, 0))
    with pytest.raises(ValueError, match="strings are never equal to numbers"):
        metric(Y, D.astype(str))
    with pytest.raises(ValueError, match=r"Column 'b' of Y_true holds 1.*'x'"):
        metric(pd.DataFrame({"a": ["x"], "b": [1]}), pd.DataFrame({"a": ["x"], "b": ["x"]}))
    with pytest.raises(ValueError, match="of type set"):
        metric([[{1}, 0]], [[1, 0]])
    with pytest.raises(ValueError, match="datetime64"):
        metric(np.array([["2020"]], dtype="datetime64[s]"), [[1]])


# -------------------------------------------------------------------- frames

FRAMES = [
    lambda A, names, index=None: pd.DataFrame(A, columns=names, index=index),
    lambda A, names, index=None: pl.DataFrame(A, schema=names),
]


@pytest.mark.parametrize(("metric", "judged"), calls())
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("other", FRAMES)
def test_columns_are_found_by_name(metric, judged, frame, other):
    Y, _, _ = table()
    order = [2, 0, 3, 1]
    named = [NAMES[t] for t in order]
    assert metric(frame(Y, NAMES), other(judged[:, order], named)) == metric(Y, judged)
    gaps = np.where(np.isnan(Y), np.nan, judged)
    assert metric(frame(Y, NAMES), other(gaps[:, order], named)) == metric(Y, judged)
    assert metric(frame(Y, NAMES), judged) == metric(Y, judged) == metric(Y, other(judged, NAMES))
    with pytest.raises(ValueError, match=r"Y_true alone has \['legal'\], (Y_pred|P) alone \['law'\]"):
        metric(frame(Y, NAMES), other(judged, [*NAMES[:3], "law"]))
    with pytest.raises(ValueError, match=r"alone has \['legal'\], (Y_pred|P) alone \[\]"):
        metric(frame(Y, NAMES), other(judged[:, :3], NAMES[:3]))


def test_weights_are_found_by_name():
    Y, P, _ = table()
    W = np.random.default_rng(1).uniform(size=Y.shape)
    weights = pd.DataFrame(W, columns=NAMES)[NAMES[::-1]]
    assert label_log_loss(pd.DataFrame(Y, columns=NAMES), P, sample_weight=weights) == label_log_loss(
        Y, P, sample_weight=W
    )


def test_columns_without_names_stand_where_they_stand():
    Y, _, D = table()
    expected = hamming(Y, D)
    assert hamming(pd.DataFrame(Y), pd.DataFrame(D, columns=NAMES)) == expected
    assert hamming(pd.DataFrame(Y), pl.DataFrame(D, schema=list("0123"))) == expected
    assert hamming(pd.DataFrame(Y, columns=[5, 6, 7, 8]), pl.DataFrame(D[:, ::-1], schema=list("8765"))) == expected
    with pytest.raises(ValueError, match="Y_pred has several columns with the name 'a'"):
        hamming(pd.DataFrame(Y, columns=NAMES), pd.DataFrame(D, columns=list("abca")))


@pytest.mark.parametrize(("metric", "judged"), calls())
def test_rows_are_never_put_in_order(metric, judged):
    Y, _, _ = table()
    n = len(Y)
    truth = pd.DataFrame(Y, columns=NAMES, index=np.arange(n) + 7)
    ours = pd.DataFrame(judged, columns=NAMES, index=truth.index)
    assert metric(truth, ours) == metric(Y, judged)
    assert metric(truth, ours.reset_index(drop=True)) == metric(Y, judged)  # by where they stand
    with pytest.raises(ValueError, match=r"in another order.*\.loc\[Y_true.index\]"):
        metric(truth, ours.iloc[::-1])


def test_what_no_table_is():
    Y, P, D = table()
    with pytest.raises(ValueError, match=r"Y_true is a LazyFrame.*Y_true\.collect"):
        label_f1(pl.DataFrame(Y).lazy(), D)
    with pytest.raises(ValueError, match="P holds strings"):
        label_auc(Y, P.astype(str))
    with pytest.raises(ValueError, match="Y_pred holds '1'"):
        label_f1(Y, D.astype(str)[:, :])
    with pytest.raises(ValueError, match="average='samples' is not known"):
        label_auc(Y, P, average="samples")
    with pytest.raises(ValueError, match="P has values that are not from 0 to 1"):
        label_brier(Y, P - 1)


# -------------------------------------------------------------------- report


def test_report_by_loops():
    Y, P, _ = table(n=60)
    Y[:, 2] = np.where(Y[:, 2] == 1, 0, Y[:, 2])  # a label that no row has
    P[:, 3] = 0.1  # one that is never judged
    threshold = np.array([0.3, 0.5, 0.7, 0.4])
    report = label_report(pd.DataFrame(Y, columns=NAMES), pd.DataFrame(P, columns=NAMES), threshold)
    t = report.table
    assert t["label"].tolist() == [*NAMES, "all entries", "mean of labels"]
    D = threshold < P
    for k in range(4):
        known = ~np.isnan(Y[:, k])
        y, d = Y[known, k], D[known, k]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            precision, recall, f1, _ = precision_recall_fscore_support(y, d, average="binary", zero_division=np.nan)
        assert (t["known"][k], t["positives"][k], t["predicted"][k]) == (known.sum(), y.sum(), d.mean())
        np.testing.assert_allclose([t["precision"][k], t["recall"][k]], [precision, recall])
        assert t["f1"][k] == pytest.approx(np.nan_to_num(f1))
    known = ~np.isnan(Y)
    overall = precision_recall_fscore_support(Y[known], D[known], average="binary")[:3]
    np.testing.assert_allclose([t[c][-2] for c in ("precision", "recall", "f1")], overall)
    np.testing.assert_allclose(t["f1"][-2:], [label_f1(Y, D), label_f1(Y, D, average="macro")])
    for column, metric, micro in (
        ("average_precision", label_average_precision, "micro"),
        ("log_loss", label_log_loss, "mean"),
    ):
        np.testing.assert_allclose(t[column][:4], metric(Y, P, average=None))
        assert t[column][-2] == pytest.approx(metric(Y, P, average=micro))
    for column in set(t) - {"label", "known", "positives"}:
        assert t[column][-1] == pytest.approx(np.nanmean(t[column][:4]))
    assert t["known"][-2] == t["known"][-1] == known.sum()
    assert t["positives"][-2] == np.nansum(Y)


def test_report_in_print():
    Y, P, _ = table()
    Y[:, 0] = np.nan
    report = label_report(Y, P, names=["x" * 40, *NAMES[1:]])
    lines = str(report).splitlines()
    assert len({len(line) for line in lines if line}) == 1  # aligned
    assert lines[0].split() == [
        "label",
        "known",
        "positives",
        "precision",
        "recall",
        "F1",
        "AP",
        "log-loss",
        "predicted",
    ]
    assert lines[1].split() == ["x" * 23 + "…", "0", "0", *"------"]
    assert [line.split()[0] for line in lines[2:5]] == NAMES[1:]
    assert repr(report) == str(report)
    frame = report.to_frame()
    assert list(frame) == list(report.table)
    assert frame["known"].dtype.kind == "i"
    assert len(frame) == 6
    many = str(label_report(np.ones((2, 100)), np.ones((2, 100))))
    assert "... 60 more labels: to_frame() has them all" in many
    assert len(many.splitlines()) == 1 + 40 + 1 + 1 + 2


def test_names_in_a_report():
    Y, P, _ = table()
    assert label_report(Y, P).table["label"][:4].tolist() == [0, 1, 2, 3]
    assert label_report(Y, pl.DataFrame(P, schema=NAMES)).table["label"][:4].tolist() == NAMES
    marked = label_report(np.where(np.isnan(Y), -1, Y), P, missing=-1)
    assert str(marked) == str(label_report(Y, P))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"threshold": 2}, "threshold=2 must be a number from 0 to 1, or one for each of 4 labels"),
        ({"threshold": "auto"}, "threshold='auto' must be"),
        ({"threshold": [0.5, 0.5]}, r"threshold=\[0.5, 0.5\] must be"),
        ({"names": ["a"]}, r"names=\['a'\] must have one name for each of 4 labels"),
        ({"names": "abcd"}, "names='abcd' must have one name"),
        ({"P": np.full((30, 4), 3.0)}, "not from 0 to 1"),
    ],
)
def test_bad_reports(change, message):
    Y, P, _ = table()
    with pytest.raises(ValueError, match=message):
        label_report(Y, **{"P": P, **change})


# ------------------------------------------------------------------- scorers


def problem(n=90, T=3, seed=0, unknown=0.25):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = (X @ rng.normal(size=(3, T)) + rng.normal(size=(n, T)) > 0).astype(float)
    Y[:, 1:][rng.random((n, T - 1)) < unknown] = np.nan  # of every row something is known
    return X, Y


def quick(**options):
    return MultiLabelLSPC(1.5, 0.1, 0.3, random_state=0, **options)


def test_scorers_are_what_scoring_is():
    X, Y = problem()
    model = quick().fit(X, Y)
    P, D = model.predict_proba(X), model.predict(X)
    codes = np.where(np.isnan(Y), -1, Y).astype(int)
    both = np.stack([1 - P, P], axis=2).reshape(len(Y), -1)
    W = np.random.default_rng(1).integers(1, 3, len(Y)).astype(float)
    sample = LabelSample(both, codes, np.where(codes >= 0, W[:, None], 0), np.arange(0, 7, 2), len(Y))
    assert set(SCORES) == set(LABEL_SCORINGS)
    for name in LABEL_SCORINGS:
        found = label_scorer(name)(model, X, Y, sample_weight=W)
        assert isinstance(found, float)
        assert found == pytest.approx(resolve_label_scoring(name)(sample, both, D)), name


@pytest.mark.parametrize("cv", [KFold(3), StratifiedLabelKFold(3, random_state=0)])
def test_in_cross_validation_with_unknown_labels(cv):
    X, Y = problem()
    scoring = {name: label_scorer(name) for name in SCORES}
    found = cross_validate(quick(), X, Y, cv=cv, scoring=scoring, error_score="raise")
    for k, (train, test) in enumerate(cv.split(X, Y)):
        model = quick().fit(X[train], Y[train])
        P, D = model.predict_proba(X[test]), model.predict(X[test])
        expected = {
            "log_loss": -label_log_loss(Y[test], P),
            "brier": -label_brier(Y[test], P),
            "auc": label_auc(Y[test], P),
            "average_precision": label_average_precision(Y[test], P),
            "f1_micro": label_f1(Y[test], D),
            "f1_macro": label_f1(Y[test], D, average="macro"),
            "f1_samples": label_f1(Y[test], D, average="samples"),
            "hamming": -hamming(Y[test], D),
            "accuracy": subset_accuracy(Y[test], D),
        }
        for name, value in expected.items():
            assert found[f"test_{name}"][k] == pytest.approx(value), name


def test_in_a_search():
    X, Y = problem()
    names = NAMES[:3]
    frame = pd.DataFrame(Y, columns=names, index=np.random.default_rng(0).permutation(len(Y)))
    search = GridSearchCV(
        quick(), {"alpha": [1e-3, 0.1, 10.0]}, cv=KFold(3), scoring=label_scorer("log_loss"), error_score="raise"
    )
    found = clone(search).fit(pd.DataFrame(X, columns=list("abc")), frame)
    plain = search.fit(X, Y)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])
    assert plain.best_score_ < 0
    assert plain.score(X, Y) == pytest.approx(-label_log_loss(Y, plain.predict_proba(X)))


def test_a_scorer_travels():
    X, Y = problem()
    model = quick().fit(X, Y)
    scorer = label_scorer("f1_macro", missing=-1)
    for other in (pickle.loads(pickle.dumps(scorer)), copy.deepcopy(scorer), clone(scorer, safe=False)):
        assert other == scorer
        assert other(model, X, np.where(np.isnan(Y), -1, Y)) == label_f1(Y, model.predict(X), average="macro")
    assert repr(scorer).endswith("(name='f1_macro', missing=-1)")


def test_columns_of_predictions_are_found_by_name():
    X, Y = problem()
    frame = pd.DataFrame(Y, columns=NAMES[:3])
    model = quick().fit(X, frame).set_output(transform="pandas")
    for name in SCORES:
        assert label_scorer(name)(model, X, frame[NAMES[2::-1]]) == pytest.approx(label_scorer(name)(model, X, frame))


def test_rows_of_predictions_stand_as_those_of_x():
    X, Y = problem()
    frame, labels = pd.DataFrame(X, columns=list("abc")), pd.DataFrame(Y, columns=NAMES[:3])
    model = quick().fit(frame, labels).set_output(transform="pandas")
    for name in SCORES:
        expected = label_scorer(name)(model, frame, labels)
        assert label_scorer(name)(model, frame, labels.set_axis(labels.index[::-1])) == expected


def test_estimators_with_a_table_for_each_label():
    X, Y = problem(unknown=0)
    Y[:, 1], Y[:, 2] = 1, 0  # of which forests see one class
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, Y)
    P = np.column_stack([forest.predict_proba(X)[0][:, 1], np.ones(len(X)), np.zeros(len(X))])
    holed = np.where(np.random.default_rng(0).random(Y.shape) < 0.3, np.nan, Y)
    assert label_scorer("log_loss")(forest, X, holed) == pytest.approx(-label_log_loss(holed, P))
    assert np.isfinite(cross_val_score(forest, X, Y, cv=KFold(3), scoring=label_scorer("brier"))).all()
    three = RandomForestClassifier(2).fit(X, np.column_stack([Y[:, 0], np.arange(len(X)) % 3]))
    with pytest.raises(ValueError, match="label 1 has 3 classes: use 'hamming'"):
        label_scorer("auc")(three, X, Y[:, :2])


def test_other_classes_are_scored_by_decisions():
    X, Y = problem()
    text = np.where(np.isnan(Y), None, np.where(Y == 1, "yes", "no"))
    model = quick().fit(X, text)
    numbers = quick().fit(X, Y)
    for name in ("hamming", "accuracy"):
        assert label_scorer(name)(model, X, text) == label_scorer(name)(numbers, X, Y)


def test_what_no_scorer_is():
    for name in ("f2", None, 3):
        with pytest.raises(ValueError, match=r"is not known: use one of \['accuracy'"):
            label_scorer(name)
