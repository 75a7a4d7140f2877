"""MultiLabelLSPC with the rest of the user's world: forms of labels, scikit-learn's tools, frames, files."""

import io
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from reference import rbf
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    get_scorer,
    hamming_loss,
    jaccard_score,
    make_scorer,
    precision_score,
    roc_auc_score,
)
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer, StandardScaler
from sklearn.utils import estimator_html_repr
from sklearn.utils.multiclass import type_of_target

from leastwise import LSPC, MultiLabelLSPC
from leastwise.datasets import make_rotated_labels
from leastwise.metrics.labels import label_f1, label_log_loss
from leastwise.model_selection.splitters import StratifiedLabelKFold

N, T = 60, 4
DATA = make_rotated_labels(T, N, n_features=3, noise=0.4, random_state=2)
X, Y = DATA.X, DATA.Y
NEW = np.random.default_rng(0).normal(size=(15, 3))
NAMES = ["ash", "bay", "elm", "fir"]
FRAME = pd.DataFrame(Y, columns=NAMES, index=np.arange(N) + 100)
ROWS = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(N) + 100)
UNKNOWN = np.random.default_rng(1).random((N, T)) < 0.25
UNKNOWN[:, 0] &= ~UNKNOWN[:, :2].all(axis=1)
GAPS = np.where(UNKNOWN, np.nan, Y)


def lspc(**changes):
    return MultiLabelLSPC(**{"sigma": 2.0, "alpha": 0.02, "sharing": 0.5, "random_state": 0, **changes})


def same(a, b, atol=1e-9):
    np.testing.assert_allclose(a, b, atol=atol)


# -------------------------------------------------------------------------- forms

ARRAYS = {
    "int": Y,
    "int8": Y.astype(np.int8),
    "uint8": Y.astype(np.uint8),
    "bool": Y.astype(bool),
    "signs": 2 * Y - 1,
    "strings": np.array(["no", "yes"])[Y],
    "csr": sparse.csr_matrix(Y),
    "csc": sparse.csc_matrix(Y),
    "csr array": sparse.csr_array(Y.astype(np.int8)),
    "coo": sparse.coo_matrix(Y),
}


@pytest.mark.parametrize("form", ARRAYS)
def test_predictions_have_the_form_of_the_labels(form):
    labels = ARRAYS[form]
    model, expected = lspc().fit(X, labels), lspc().fit(X, Y)
    said = model.predict(NEW)
    assert type(said) is type(labels)
    assert said.dtype == labels.dtype
    assert said.shape == (15, T)
    codes = expected.predict(NEW)
    if sparse.issparse(labels):
        np.testing.assert_array_equal(said.toarray(), codes)
    else:
        np.testing.assert_array_equal(said, np.unique(labels)[codes])
    np.testing.assert_array_equal(model.predict_proba(NEW), expected.predict_proba(NEW))
    assert model.score(X, labels) == expected.score(X, Y)


def test_floats_come_back_as_whole_numbers():
    said = lspc().fit(X, GAPS).predict(NEW)
    assert said.dtype == np.int64
    assert set(np.unique(said)) <= {0, 1}


@pytest.mark.parametrize("dtype", ["int64", "Int64", "boolean", "bool", "category", "float64", "string", "object"])
def test_pandas_labels(dtype):
    frame = FRAME.astype(dtype)
    said = lspc().fit(ROWS, frame).predict(ROWS.iloc[:7])
    assert said.columns.tolist() == NAMES
    assert said.index.tolist() == list(range(100, 107))
    if dtype != "float64":
        assert (said.dtypes == frame.dtypes).all() or dtype == "object"
    codes = lspc().fit(X, Y).predict(X[:7])
    kind = "int64" if dtype == "float64" else frame.dtypes.iloc[0]
    np.testing.assert_array_equal(said.astype(object), pd.DataFrame(codes).astype(kind).astype(object))
    model = lspc().fit(X, frame)
    assert model.labels_.tolist() == NAMES
    assert model.predict(NEW).index.tolist() == list(range(15))


def test_pandas_labels_of_several_types():
    frame = FRAME.assign(elm=FRAME["elm"].map({0: "no", 1: "yes"}), fir=FRAME["fir"].astype(bool))
    model = lspc(similarity="shared").fit(ROWS, frame)
    said = model.predict(ROWS)
    assert said["elm"].isin(["no", "yes"]).all()
    assert said["fir"].dtype == bool
    assert (said == frame).to_numpy().mean() > 0.8
    assert model.score(ROWS, frame[["fir", "ash", "elm", "bay"]]) == model.score(ROWS, frame)
    assert model.predict_proba(ROWS).shape == (N, T)


@pytest.mark.parametrize("dtype", [pl.Int64, pl.Int8, pl.Boolean, pl.String])
def test_polars_labels(dtype):
    frame = pl.DataFrame(Y, schema=NAMES).cast(dtype)
    model = lspc().fit(pl.DataFrame(X, schema=["a", "b", "c"]), frame)
    said = model.predict(pl.DataFrame(NEW, schema=["a", "b", "c"]))
    assert isinstance(said, pl.DataFrame)
    assert said.columns == NAMES
    assert said.dtypes == [dtype] * T
    np.testing.assert_array_equal(
        said.cast(pl.String).to_numpy(),
        pl.DataFrame(lspc().fit(X, Y).predict(NEW), schema=NAMES).cast(dtype).cast(pl.String).to_numpy(),
    )


@pytest.mark.parametrize(
    "rows", [NEW.tolist(), tuple(map(tuple, NEW)), sparse.csr_matrix(NEW)], ids=["list", "tuple", "sparse"]
)
def test_rows_of_other_kinds_with_labels_in_a_frame(rows):
    """Lists have something called index too, and it is no index."""
    model = lspc().fit(X, FRAME)
    said = model.predict(rows)
    np.testing.assert_array_equal(said, model.predict(NEW))
    assert said.columns.tolist() == NAMES
    model.set_output(transform="pandas")
    same(model.predict_proba(rows), model.predict_proba(NEW))


def test_names_that_are_tuples_or_of_several_types():
    tuples = FRAME.set_axis(pd.MultiIndex.from_product([["p", "q"], ["a", "b"]]), axis=1)
    model = lspc().fit(X, tuples)
    assert model.labels_.shape == (T,)
    assert model.predict(NEW).columns.tolist() == tuples.columns.tolist()
    mixed = lspc().fit(X, FRAME.set_axis([1, "b", 2, "c"], axis=1))
    assert mixed.labels_.tolist() == [1, "b", 2, "c"]
    assert mixed.predict(NEW).columns.tolist() == [1, "b", 2, "c"]


def test_lists_of_labels_by_a_binarizer():
    tags = [[name for name, there in zip(NAMES, row, strict=True) if there] for row in Y]
    binarizer = MultiLabelBinarizer(sparse_output=True)
    model = lspc().fit(X, binarizer.fit_transform(tags))
    found = binarizer.inverse_transform(model.predict(X))
    assert np.mean([set(a) == set(b) for a, b in zip(found, tags, strict=True)]) > 0.3


def test_set_output():
    model = lspc().fit(ROWS, FRAME)
    P, D = model.predict_proba(ROWS), model.decision_function(ROWS)
    assert P.shape == D.shape == (N, T)
    model.set_output(transform="pandas")
    for values, ask in ((P, model.predict_proba), (D, model.decision_function), (np.log(P), model.predict_log_proba)):
        frame = ask(ROWS)
        assert frame.columns.tolist() == NAMES
        assert frame.index.tolist() == ROWS.index.tolist()
        same(frame, values)
    model.set_output(transform="polars")
    assert model.predict_proba(ROWS).columns == NAMES
    bare = lspc().fit(X, Y).set_output(transform="pandas")
    assert bare.predict_proba(X).columns.tolist() == [0, 1, 2, 3]
    assert bare.set_output(transform="polars").predict_proba(X).columns == ["0", "1", "2", "3"]
    with pytest.raises(ValueError, match="transform='arrow' is not known"):
        bare.set_output(transform="arrow")


# -------------------------------------------------------------- more than two classes

THREE = np.where(X[:, 0] > 0.8, 2, Y[:, 0])
MORE = {
    "numbers": np.column_stack([THREE, np.where(X[:, 1] > 0.8, 2, Y[:, 1])]),
    "words": np.array(["high", "low", "mid"])[np.column_stack([THREE, THREE[::-1]])],
    "mixed widths": np.column_stack([THREE, Y[:, 1], np.where(X[:, 2] > 1, 3, Y[:, 2])]),
}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "coefficients"},
        {"bias": "shared"},
        {"similarity": "correlation"},
        {"similarity": "shared"},
        {"calibration": "isotonic"},
        {"calibration": None},
        {"solver": "cg"},
        {"n_centers": 20},
        {"cv": 4},
    ],
)
@pytest.mark.parametrize("kind", MORE)
def test_labels_of_more_classes(kind, changes):
    labels = MORE[kind]
    model = lspc(**changes).fit(X, labels)
    P, D = model.predict_proba(NEW), model.decision_function(NEW)
    assert isinstance(P, list)
    assert len(P) == len(D) == labels.shape[1]
    said = model.predict(NEW)
    assert said.dtype == labels.dtype
    assert said.shape == (15, labels.shape[1])
    for t, (p, classes) in enumerate(zip(P, model.classes_, strict=True)):
        assert classes.tolist() == np.unique(labels[:, t]).tolist()
        assert p.shape == (15, len(classes))
        same(p.sum(axis=1), 1)
        np.testing.assert_array_equal(said[:, t], classes[p.argmax(axis=1)])
        assert D[t].shape == ((15,) if len(classes) == 2 else (15, len(classes)))
    for p, q in zip(model.predict_log_proba(NEW), P, strict=True):
        with np.errstate(divide="ignore"):
            same(p, np.log(q))
    assert len(model.heldout_proba_) == labels.shape[1]
    assert np.mean(model.predict(X) == labels) > 0.6


def test_labels_of_more_classes_that_are_not_known():
    labels = np.where(UNKNOWN[:, :2], None, MORE["words"])
    model = lspc(bias="shared").fit(X, labels)
    assert [len(c) for c in model.classes_] == [3, 3]
    same(model.predict_proba(NEW)[1].sum(axis=1), 1)
    known = ~UNKNOWN[:, :2]
    assert np.mean(model.predict(X)[known] == MORE["words"][known]) > 0.6


@pytest.mark.parametrize(
    "y", [Y[:, 0], np.array(["no", "yes"])[Y[:, 0]], THREE, pd.Series(THREE), Y[:, 0].astype(bool)]
)
def test_one_class_a_row_is_one_label(y):
    """With the shapes of scikit-learn's classifiers, and the numbers of LSPC."""
    model, one = lspc(calibration=None).fit(X, y), LSPC(2.0, 0.02, calibration=None).fit(X, y)
    np.testing.assert_array_equal(model.classes_, one.classes_)
    assert isinstance(model.predict(NEW), np.ndarray)
    assert model.predict(NEW).dtype == one.predict(NEW).dtype
    np.testing.assert_array_equal(model.predict(NEW), one.predict(NEW))
    same(model.scores(NEW), one.scores(NEW))
    same(model.predict_proba(NEW), one.predict_proba(NEW))
    assert model.decision_function(NEW).shape == one.decision_function(NEW).shape
    same(model.heldout_scores_, one.heldout_scores_)
    assert model.heldout_proba_.shape == one.heldout_proba_.shape
    assert model.score(X, y) == one.score(X, y)


def test_one_column_is_a_table_of_one_label():
    model = lspc().fit(X, Y[:, :1])
    assert model.predict(NEW).shape == model.predict_proba(NEW).shape == (15, 1)
    same(model.predict_proba(NEW)[:, 0], lspc().fit(X, Y[:, 0]).predict_proba(NEW)[:, 1])


# ----------------------------------------------------------------------- thresholds


def test_thresholds_that_are_given():
    P = lspc().fit(X, Y).predict_proba(NEW)
    for threshold, numbers in {0.3: [0.3] * T, (0.1, 0.5, 0.7, 0.9): [0.1, 0.5, 0.7, 0.9]}.items():
        for form in (threshold, np.array(threshold)):
            model = lspc(threshold=form).fit(X, Y)
            np.testing.assert_array_equal(model.predict(NEW), (numbers < P).astype(int))
            same(model.threshold_, numbers if isinstance(threshold, tuple) else 0.3)
    for form in ({"elm": 0.8, "ash": 0.2}, pd.Series({"elm": 0.8, "bay": 0.5, "ash": 0.2, "fir": 0.5})):
        for scoring in ("log_loss", "f1_micro"):
            named = lspc(threshold=form, scoring=scoring, sharing=[0.2, 0.5]).fit(X, FRAME)
            same(named.threshold_, [0.2, 0.5, 0.8, 0.5])
            np.testing.assert_array_equal(named.predict(NEW), named.predict_proba(NEW) > named.threshold_)


def test_thresholds_at_the_ends():
    assert lspc(threshold=0).fit(X, Y).predict(NEW).all()
    assert not lspc(threshold=1).fit(X, Y).predict(NEW).any()


MEASURES = {
    "f1_micro": lambda Y, D: f1_score(Y, D, average="micro"),
    "f1_macro": lambda Y, D: f1_score(Y, D, average="macro"),
    "f1_samples": lambda Y, D: label_f1(Y, D, average="samples"),
    "hamming": lambda Y, D: -hamming_loss(Y, D),
    "accuracy": accuracy_score,
}
RARE = (X @ np.array([[1, 0, 1], [0, 1, 0], [1, -1, 0]]) > [1.0, 1.2, 1.5]).astype(int)


@pytest.mark.parametrize("scoring", MEASURES)
def test_thresholds_that_suit_a_measure(scoring):
    model = lspc(threshold="auto", scoring=scoring).fit(X, RARE)
    assert np.shape(model.threshold_) == ((3,) if scoring == "f1_macro" else ())
    measure, P = MEASURES[scoring], model.heldout_proba_
    chosen = measure(RARE, model.threshold_ < P)
    assert chosen >= measure(RARE, P > 0.5) - (0.05 if scoring == "f1_macro" else 1e-12)
    if scoring in ("f1_micro", "accuracy"):
        assert chosen == pytest.approx(max(measure(RARE, t < P) for t in np.r_[0, P.ravel()]))
    np.testing.assert_array_equal(model.predict(NEW), (model.predict_proba(NEW) > model.threshold_).astype(int))


def test_thresholds_where_the_scoring_decides_nothing_suit_micro_f1():
    model = lspc(threshold="auto").fit(X, RARE)
    assert model.threshold_ == lspc(threshold="auto", scoring="f1_micro").fit(X, RARE).threshold_
    with_gaps = lspc(threshold="auto").fit(X, np.where(UNKNOWN[:, :3], np.nan, RARE))
    assert 0 < with_gaps.threshold_ < 1


@pytest.mark.parametrize("metric", MEASURES)
def test_thresholds_for_a_named_measure_leave_the_model_as_it_is(metric):
    grid = {"alpha": [0.001, 0.1]}
    plain, named = lspc(**grid).fit(X, RARE), lspc(**grid, threshold=metric).fit(X, RARE)
    assert named.alpha_ == plain.alpha_
    np.testing.assert_array_equal(named.predict_proba(NEW), plain.predict_proba(NEW))
    expected = lspc(alpha=plain.alpha_, scoring=metric, threshold="auto").fit(X, RARE).threshold_
    np.testing.assert_allclose(named.threshold_, expected)
    np.testing.assert_array_equal(named.predict(NEW), (named.predict_proba(NEW) > named.threshold_).astype(int))


def test_a_named_threshold_is_the_one_that_the_search_scores():
    """The score of a search for one measure is that of decisions with thresholds for another."""
    model = lspc(scoring="hamming", threshold="f1_micro").fit(X, RARE)
    assert model.threshold_ == lspc(threshold="f1_micro").fit(X, RARE).threshold_
    wrong = hamming_loss(RARE, model.threshold_ < model.heldout_proba_)
    assert abs(model.cv_results_["mean_test_score"].max()) == pytest.approx(wrong)


def test_score_is_about_known_labels():
    model = lspc().fit(X, Y)
    right = model.predict(X) == Y
    assert model.score(X, Y) == right.all(axis=1).mean()
    assert model.score(X, GAPS) == (right | UNKNOWN).all(axis=1).mean()
    some = np.where(np.arange(N)[:, None] < 10, np.nan, Y)
    assert model.score(X, some) == right[10:].all(axis=1).mean()
    w = np.arange(N) + 1.0
    assert model.score(X, Y, sample_weight=w) == pytest.approx(np.average(right.all(axis=1), weights=w))
    assert lspc(missing=-1).fit(X, Y).score(X, np.where(UNKNOWN, -1, Y)) == model.score(X, GAPS)


# -------------------------------------------------------------- scikit-learn's tools


def test_pipeline():
    pipe = make_pipeline(StandardScaler(), lspc()).fit(ROWS, FRAME)
    scaled = StandardScaler().fit_transform(X)
    same(pipe.predict_proba(ROWS), lspc().fit(scaled, Y).predict_proba(scaled))
    assert pipe.predict(ROWS).columns.tolist() == NAMES
    assert 0 < pipe.score(ROWS, FRAME) <= 1
    weighted = make_pipeline(StandardScaler(), lspc()).fit(X, GAPS, multilabellspc__sample_weight=np.ones((N, T)))
    same(weighted[-1].coef_, lspc().fit(scaled, GAPS).coef_)


@pytest.mark.parametrize("cv", [3, KFold(3), StratifiedLabelKFold(3, random_state=0)])
def test_grid_search(cv):
    search = GridSearchCV(lspc(cv=3), {"sharing": [0.0, 0.5], "norm": ["function", "coefficients"]}, cv=cv)
    search.fit(X, Y)
    assert search.best_score_ > 0.2
    assert search.predict_proba(NEW).shape == (15, T)
    loss = make_scorer(label_log_loss, greater_is_better=False, response_method="predict_proba")
    by_loss = GridSearchCV(lspc(), {"sharing": [0.0, 0.5]}, scoring=loss, cv=cv).fit(X, Y)
    assert np.isfinite(by_loss.cv_results_["mean_test_score"]).all()


def test_grid_search_where_labels_are_not_known():
    cv = StratifiedLabelKFold(3, random_state=0)
    search = GridSearchCV(lspc(), {"sharing": [0.0, 0.5]}, cv=cv).fit(X, GAPS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    random = RandomizedSearchCV(lspc(), {"alpha": [0.01, 0.1]}, n_iter=2, cv=KFold(3), random_state=0).fit(
        ROWS, FRAME
    )
    assert random.predict(ROWS).columns.tolist() == NAMES


SCORERS = {
    "roc_auc": lambda Y, P, D: roc_auc_score(Y, P),
    "roc_auc_ovr": lambda Y, P, D: roc_auc_score(Y, P),
    "average_precision": lambda Y, P, D: average_precision_score(Y, P),
    "f1_micro": lambda Y, P, D: f1_score(Y, D, average="micro"),
    "f1_macro": lambda Y, P, D: f1_score(Y, D, average="macro"),
    "f1_samples": lambda Y, P, D: f1_score(Y, D, average="samples", zero_division=0.0),
    "jaccard_micro": lambda Y, P, D: jaccard_score(Y, D, average="micro"),
    "precision_micro": lambda Y, P, D: precision_score(Y, D, average="micro"),
    "accuracy": lambda Y, P, D: accuracy_score(Y, D),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("name", SCORERS)
def test_scorers_of_scikit_learn(name):
    model = lspc().fit(X, Y)
    truth = (DATA.posterior(NEW) > 0.5).astype(int)
    expected = SCORERS[name](truth, model.predict_proba(NEW), model.predict(NEW))
    assert get_scorer(name)(model, NEW, truth) == pytest.approx(expected)
    scores = cross_val_score(lspc(), X, Y, scoring=name, cv=StratifiedLabelKFold(3, random_state=0))
    assert scores.shape == (3,)
    assert (scores > 0.2).all()
    frames = cross_val_score(lspc(), ROWS, FRAME, scoring=name, cv=StratifiedLabelKFold(3, random_state=0))
    np.testing.assert_allclose(frames, scores)


@pytest.mark.parametrize(
    "name", ["neg_log_loss", "neg_brier_score", "roc_auc", "average_precision", "f1", "accuracy"]
)
def test_scorers_of_scikit_learn_for_one_label(name):
    """The log loss of scikit-learn is one of classes: of a table it would take every row for a single class."""
    found = cross_val_score(lspc(calibration=None), X, Y[:, 0], scoring=name, cv=3)
    np.testing.assert_allclose(
        found, cross_val_score(LSPC(2.0, 0.02, calibration=None), X, Y[:, 0], scoring=name, cv=3)
    )


def test_the_log_loss_of_many_labels_as_a_scorer():
    loss = make_scorer(label_log_loss, greater_is_better=False, response_method="predict_proba")
    for labels in (Y, GAPS):
        scores = cross_val_score(lspc(), X, labels, scoring=loss, cv=StratifiedLabelKFold(3, random_state=0))
        assert (scores > -np.log(2)).all()
        assert (scores < 0).all()


def test_cross_validate_with_labels_that_are_not_known():
    result = cross_validate(
        lspc(), X, GAPS, cv=StratifiedLabelKFold(4, random_state=0), return_estimator=True, return_train_score=True
    )
    assert (result["test_score"] > 0.2).all()
    assert len(result["estimator"]) == 4
    weighted = cross_validate(
        lspc(), X, GAPS, cv=KFold(3), params={"sample_weight": np.random.default_rng(0).uniform(0.5, 2, (N, T))}
    )
    assert np.isfinite(weighted["test_score"]).all()


@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba", "decision_function"])
def test_cross_val_predict_of_probabilities(method):
    cv = StratifiedLabelKFold(4, random_state=0)
    P = cross_val_predict(lspc(similarity="shared"), X, Y, cv=cv, method=method)
    assert P.shape == (N, T)
    train, test = next(iter(cv.split(X, Y)))
    same(P[test], getattr(lspc(similarity="shared").fit(X[train], Y[train]), method)(X[test]))


def test_cross_val_predict():
    cv = StratifiedLabelKFold(4, random_state=0)
    said = cross_val_predict(lspc(), X, Y, cv=cv)
    assert said.shape == (N, T)
    assert said.dtype == Y.dtype
    assert np.mean(said == Y) > 0.7
    assert set(np.unique(cross_val_predict(lspc(), X, GAPS, cv=cv))) <= {0, 1}
    lists = cross_val_predict(lspc(), X, MORE["numbers"], cv=KFold(3), method="predict_proba")
    assert len(lists) == 2
    assert lists[0].shape == (N, 3)


def test_cross_val_predict_of_frames_and_sparse_labels():
    cv = StratifiedLabelKFold(3, random_state=0)
    expected = cross_val_predict(lspc(), X, Y, cv=cv)
    np.testing.assert_array_equal(cross_val_predict(lspc(), ROWS, FRAME, cv=cv), expected)
    found = cross_val_predict(lspc(), sparse.csr_matrix(X), sparse.csr_matrix(Y), cv=cv)
    np.testing.assert_array_equal(found.toarray(), expected)


def test_metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        model = lspc().set_fit_request(sample_weight=True, groups=True).set_score_request(sample_weight=True)
        groups = np.arange(N) // 2
        result = cross_validate(model, X, Y, cv=GroupKFold(3), params={"sample_weight": np.ones(N), "groups": groups})
    assert np.isfinite(result["test_score"]).all()


def test_meta_estimators():
    for outer in (MultiOutputClassifier(lspc()), ClassifierChain(lspc(), random_state=0)):
        outer.fit(X, Y)
        assert outer.predict(NEW).shape == (15, T)


def test_labels_are_predicted_as_labels():
    model = lspc().fit(X, Y)
    assert type_of_target(model.predict(X)) == "multilabel-indicator"
    tags = model.__sklearn_tags__()
    assert tags.classifier_tags.multi_label
    assert tags.target_tags.multi_output
    assert tags.input_tags.sparse


def test_clone_parameters_and_text():
    model = lspc(missing=-1, threshold=[0.5] * T, label_penalty={0: 2.0}, similarity=np.ones((T, T)))
    again = clone(model)
    assert again.get_params().keys() == model.get_params().keys()
    assert again.missing == -1
    assert again is not model
    model.set_params(sharing=0.1, bias="shared")
    assert model.get_params()["sharing"] == 0.1
    assert repr(MultiLabelLSPC()) == "MultiLabelLSPC()"
    assert repr(clone(MultiLabelLSPC(sharing=0.5))) == "MultiLabelLSPC(sharing=0.5)"
    assert "MultiLabelLSPC" in estimator_html_repr(lspc().fit(X, Y))


SAVED = {
    "plain": ({}, X, Y),
    "gaps": ({}, X, GAPS),
    "frame": ({"threshold": {"ash": 0.2}}, ROWS, FRAME),
    "polars": ({}, X, pl.DataFrame(Y, schema=NAMES)),
    "sparse": ({"similarity": sparse.csr_array(np.eye(T))}, sparse.csr_matrix(X), sparse.csr_matrix(Y)),
    "words": ({"calibration": "isotonic", "similarity": "shared"}, X, MORE["words"]),
    "iterated": ({"solver": "cg"}, X, Y),
}


@pytest.mark.parametrize("case", SAVED)
def test_models_can_be_written_to_any_file(case):
    changes, rows, labels = SAVED[case]
    model = lspc(**changes).fit(rows, labels)
    stream = io.BytesIO()
    joblib.dump(model, stream)
    stream.seek(0)
    for again in (joblib.load(stream), pickle.loads(pickle.dumps(model))):
        for a, b in zip(again.predict_proba(rows), model.predict_proba(rows), strict=True):
            np.testing.assert_array_equal(a, b)
        assert type(again.predict(rows)) is type(model.predict(rows))
        again.fit(rows, labels)
        np.testing.assert_array_equal(again.coef_, model.coef_)


def test_fitting_twice_leaves_nothing_of_the_first():
    model = lspc(solver="cg").fit(ROWS, FRAME.assign(extra=Y[:, 0]))
    model.set_params(solver="auto", cv=None, calibration=None).fit(X, MORE["mixed widths"])
    fresh = lspc(cv=None, calibration=None).fit(X, MORE["mixed widths"])
    assert {name for name in vars(model) if name.endswith("_")} == {
        name for name in vars(fresh) if name.endswith("_")
    }
    for name in ("feature_names_in_", "heldout_proba_", "cv_results_", "residual_"):
        assert not hasattr(model, name)
    np.testing.assert_array_equal(model.coef_, fresh.coef_)
    assert model.labels_.tolist() == [0, 1, 2]


# ------------------------------------------------------------------------ the rest


def test_what_is_kept():
    model = lspc(alpha=[0.01, 0.1], sharing=[0, 0.5]).fit(X, Y)
    assert model.labels_.tolist() == [0, 1, 2, 3]
    assert model.constant_labels_ == []
    assert [c.tolist() for c in model.classes_] == [[0, 1]] * T
    assert model.sigma_ == 2.0
    assert model.alpha_ in (0.01, 0.1)
    assert model.sharing_ in (0, 0.5)
    assert model.similarity_.shape == (T, T)
    assert model.threshold_ == 0.5
    assert model.coef_.shape == (N, 2 * T)
    assert model.intercept_.shape == (2 * T,)
    assert model.n_iter_ == 1
    assert model.jitter_ >= 0
    assert model.n_features_in_ == 3
    assert model.heldout_scores_.shape == (N, 2 * T)
    assert model.heldout_proba_.shape == model.heldout_decision_.shape == (N, T)
    results = model.cv_results_
    points = set(zip(results["param_alpha"], results["param_sharing"], strict=True))
    assert len(points) == 4
    best = results["rank_test_score"].argmin()
    assert (results["param_alpha"][best], results["param_sharing"][best]) == (model.alpha_, model.sharing_)
    assert results["mean_test_score"][best] == results["mean_test_score"].max()
    assert (results["n_rows"] == N).all()


def test_the_search_judges_what_it_says():
    """Micro F1, Hamming loss and so on of held-out decisions, as scikit-learn has them."""
    for scoring, measure in MEASURES.items():
        model = lspc(scoring=scoring, extrapolate=True, calibration=None).fit(X, Y)
        said = model.heldout_proba_ > 0.5
        assert model.cv_results_["mean_test_score"][0] == pytest.approx(measure(Y, said), abs=1e-9), scoring
    for scoring in ("roc_auc", "average_precision", make_scorer(roc_auc_score, response_method="predict_proba")):
        model = lspc(scoring=scoring, extrapolate=True, calibration=None).fit(X, Y)
        measure = average_precision_score if scoring == "average_precision" else roc_auc_score
        assert model.cv_results_["mean_test_score"][0] == pytest.approx(measure(Y, model.heldout_proba_), abs=1e-6)


def test_given_names_for_scores():
    for scoring in ("log_loss", "brier", "average_precision_micro", "auc"):
        for labels in (Y, GAPS):
            model = lspc(scoring=scoring, sharing=[0, 0.5]).fit(X, labels)
            assert np.isfinite(model.cv_results_["mean_test_score"]).all()


def test_random_state_repeats_and_global_state_is_left_alone():
    np.random.seed(7)
    before = np.random.get_state()[1].copy()
    for changes in ({"cv": 4, "n_centers": 15}, {"solver": "cg"}, {"search_rows": 20, "sharing": "auto"}):
        for labels in (Y, GAPS):
            a, b = (lspc(**changes).fit(X, labels) for _ in range(2))
            np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
            np.testing.assert_array_equal(a.heldout_proba_, b.heldout_proba_)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


@pytest.mark.parametrize("labels", [Y, GAPS], ids=["complete", "gaps"])
def test_verbose(labels, capsys):
    lspc(sigma=[1.0, 2.0], sharing=[0.0, 0.5], verbose=1).fit(X, labels)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 4
    assert all(line.startswith("[MultiLabelLSPC] ") for line in lines)
    lines = [line for line in lines if "chosen:" not in line and "plan:" not in line]
    assert all("best alpha" in line and "log_loss" in line and f"{N} rows" in line for line in lines)
    for sharing in ("0", "0.5"):
        assert any(f"sharing {sharing}:" in line for line in lines)
    lspc(solver="cg", verbose=1).fit(X, labels)
    out = capsys.readouterr().out
    assert "rows that are held out:" in out
    assert "all rows:" in out
    lspc().fit(X, labels)
    assert capsys.readouterr().out == ""


def test_sparse_rows_and_single_precision():
    for labels in (Y, GAPS):
        dense = lspc().fit(X, labels)
        same(lspc().fit(sparse.csr_matrix(X), labels).predict_proba(sparse.csr_matrix(NEW)), dense.predict_proba(NEW))
        for solver in ("sylvester", "cg"):
            single = lspc(solver=solver).fit(X.astype(np.float32), labels)
            assert single.predict_proba(NEW.astype(np.float32)).dtype == np.float32
            assert single.coef_.dtype == np.float64
        same(lspc().fit(X.astype(np.float32), labels).predict_proba(NEW), dense.predict_proba(NEW), 1e-3)


@pytest.mark.parametrize("labels", [Y, GAPS], ids=["complete", "gaps"])
def test_centres(labels):
    model = lspc(n_centers=12).fit(X, labels)
    given = lspc(centers=model.centers_).fit(X, labels)
    same(model.scores(NEW), given.scores(NEW), 1e-5)
    clustered = lspc(n_centers=12, centers="kmeans").fit(X, labels)
    assert clustered.coef_.shape == (12, 2 * T)
    assert np.mean((clustered.predict(X) == Y)[~UNKNOWN]) > 0.75


@pytest.mark.parametrize("labels", [Y, GAPS], ids=["complete", "gaps"])
def test_kernels(labels):
    K, k = rbf(X, X, 2.0), rbf(NEW, X, 2.0)
    # Folds that stand in for leave-one-out go by the inputs, which a kernel matrix does not have.
    cv = "loo" if labels is Y else StratifiedLabelKFold(5, random_state=0)
    given = lspc(kernel="precomputed", cv=cv).fit(K, labels)
    by_rows = lspc(extrapolate=True, cv=cv).fit(X, labels)
    same(given.predict_proba(k), by_rows.predict_proba(NEW), 1e-7)
    # Calibrators of held-out rows have folds that go by the inputs, too.
    same(given.heldout_scores_, by_rows.heldout_scores_, 1e-7)
    cv = cross_val_score(lspc(kernel="precomputed"), K, labels, cv=StratifiedLabelKFold(3, random_state=0))
    assert np.isfinite(cv).all()
    for kernel in ("linear", "laplace", "poly", "rbf+linear", lambda A, B: rbf(A, B, 2.0)):
        P = lspc(kernel=kernel, alpha=0.1).fit(X, labels).predict_proba(NEW)
        assert np.isfinite(P).all()


@pytest.mark.parametrize("calibration", ["blend", "temperature", "isotonic", None])
@pytest.mark.parametrize("labels", [Y, GAPS], ids=["complete", "gaps"])
def test_calibrations(labels, calibration):
    model = lspc(calibration=calibration).fit(X, labels)
    truth = DATA.posterior(NEW)
    assert np.abs(model.predict_proba(NEW) - truth).mean() < 0.3
    far = model.predict_proba(NEW + 1000)
    assert np.isfinite(far).all()
    if calibration is not None:
        same(far, np.broadcast_to(np.nanmean(labels, axis=0), far.shape), 0.05)


def test_the_whole_choice_finds_what_is_there():
    data = make_rotated_labels(6, 150, n_features=4, noise=0.3, random_state=0)
    test = make_rotated_labels(6, 400, n_features=4, noise=0.3, random_state=1)
    hidden = np.where(np.random.default_rng(0).random(data.Y.shape) < 0.3, np.nan, data.Y)
    for labels in (data.Y, hidden):
        model = MultiLabelLSPC(random_state=0).fit(data.X, labels)
        P = model.predict_proba(test.X)
        assert -np.mean(np.log(np.where(test.Y == 1, P, 1 - P))) < 0.6 * np.log(2)
        alone = (
            MultiLabelLSPC(model.sigma_, model.alpha_, 0, random_state=0).fit(data.X, labels).predict_proba(test.X)
        )
        assert model.sharing_ == 0 or not np.allclose(alone, P)


@pytest.mark.parametrize("labels", [Y, GAPS], ids=["complete", "gaps"])
def test_a_search_on_some_rows(labels):
    model = MultiLabelLSPC(search_rows=20, random_state=0).fit(X, labels)
    few, every = np.unique(model.cv_results_["n_rows"])
    assert 15 <= few <= 30
    assert every == N
    assert np.mean((model.predict(X) == Y)[~UNKNOWN]) > 0.7
    every = MultiLabelLSPC(search_rows=None, random_state=0).fit(X, labels)
    assert (every.cv_results_["n_rows"] == N).all()


def test_labels_of_weight_zero_are_labels_that_are_not_known():
    """Also for the choice: what stands there makes no difference."""
    W = np.where(UNKNOWN, 0.0, 1.0)
    expected = MultiLabelLSPC(random_state=0, cv=KFold(4)).fit(X, GAPS)
    for labels in (Y, np.where(UNKNOWN, 1 - Y, Y)):
        found = MultiLabelLSPC(random_state=0, cv=KFold(4)).fit(X, labels, sample_weight=W)
        assert found.sigma_ == expected.sigma_
        assert (found.alpha_, found.sharing_) == (expected.alpha_, expected.sharing_)
        same(found.predict_proba(NEW), expected.predict_proba(NEW), 1e-6)
