"""Labels that are wrong are refused with words that say what to do; labels that are only odd are not."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import PLAIN
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from leastwise import MultiLabelLSPC

N, T = 40, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = (X @ RNG.normal(size=(2, T)) + 0.5 * RNG.normal(size=(N, T)) > 0).astype(int)
NAMES = ["ash", "bay", "elm"]
FRAME = pd.DataFrame(Y, columns=NAMES)
GAPS = np.where(RNG.random((N, T)) < 0.2, np.nan, Y)
GAPS[:2] = [[0, 0, 0], [1, 1, 1]]
GAPS[:, 0] = Y[:, 0]
HALF = np.full((T, T), 0.5)


def lspc(**changes):
    return MultiLabelLSPC(**{"sigma": 1.0, "alpha": 0.05, "sharing": 0.5, "random_state": 0, **changes})


def fitted(model):
    return [name for name in vars(model) if name.endswith("_")]


def entry(A, value, i=0, j=1, both_ways=False):
    """A table with another entry, as floats or objects where it needs to be."""
    A = np.array(A, dtype=object if isinstance(value, str | list) else float)
    A[i, j] = value
    if both_ways:
        A[j, i] = value
    return A


def refused(model, X, Y, message, kind=ValueError, **fit):
    """The error comes, says so, and leaves nothing behind."""
    with pytest.raises(kind, match=message):
        model.fit(X, Y, **fit)
    assert not fitted(model)


# -------------------------------------------------------------------- parameters

PARAMETERS = {
    "sharing negative": ({"sharing": -0.1}, r"sharing=-0\.1 is not possible: .*0 \(labels independent\) to 1"),
    "sharing above 1": ({"sharing": 1.1}, r"sharing=1\.1 is not possible: use 'auto', a number from 0 .* to 1"),
    "sharing nan": ({"sharing": np.nan}, "sharing=nan is not possible: use 'auto'"),
    "sharing empty": ({"sharing": []}, r"sharing=\[\] is not possible: use 'auto'"),
    "sharing text": ({"sharing": "half"}, "sharing='half' is not known: use 'auto', a number"),
    "sharing in a grid": ({"sharing": [0.5, 2]}, r"sharing=\[0\.5, 2\] is not possible"),
    "sharing none": ({"sharing": None}, "sharing=None is not possible"),
    "sharing true": ({"sharing": True}, "sharing=True is not possible"),
    "sharing iterator": ({"sharing": iter([0.5])}, "sharing is an iterator.*give a list"),
    "sigma zero": ({"sigma": 0}, "sigma contains 0: every value must be a finite number above 0"),
    "sigma text": ({"sigma": "wide"}, "sigma='wide' is not known: use 'auto'"),
    "alpha negative": ({"alpha": [1, -1]}, "alpha contains -1: every value must be a finite number above 0"),
    "alpha nan": ({"alpha": np.nan}, "alpha contains nan"),
    "penalty size": ({"label_penalty": [1, 2]}, r"label_penalty has shape \(2,\).*each of the 3 labels"),
    "penalty table": ({"label_penalty": np.ones((3, 1))}, r"label_penalty has shape \(3, 1\).*mapping from names"),
    "penalty zero": ({"label_penalty": [1, 0, 1]}, r"label_penalty holds .*0\.0.*finite number above 0"),
    "penalty negative": ({"label_penalty": {"ash": -1}}, "label_penalty holds .*finite number above 0"),
    "penalty nan": ({"label_penalty": [1, 1, np.nan]}, "label_penalty holds .*nan.*finite number above 0"),
    "penalty inf": ({"label_penalty": [1, 1, np.inf]}, "label_penalty holds .*inf.*finite number above 0"),
    "penalty of no label": (
        {"label_penalty": {"ash": 1, "oak": 1}},
        r"label_penalty has values for \['oak'\], which are not labels; the labels are \['ash', 'bay', 'elm'\]",
    ),
    "penalty text": ({"label_penalty": ["a"] * 3}, "label_penalty=.* must be a number, or one for each label"),
    "threshold text": ({"threshold": "best"}, "threshold='best' is not known: use 'auto', a number from 0 to 1"),
    "threshold above 1": ({"threshold": 1.5}, r"threshold holds \[1\.5\]: every value must lie between 0 and 1"),
    "threshold negative": ({"threshold": [0.5, 0.5, -1]}, "threshold holds .* between 0 and 1"),
    "threshold nan": ({"threshold": np.nan}, "threshold holds .* between 0 and 1"),
    "threshold none": ({"threshold": None}, "threshold"),
    "threshold size": ({"threshold": [0.5, 0.5]}, r"threshold has shape \(2,\).*each of the 3 labels"),
    "threshold of no label": (
        {"threshold": {"oak": 0.2}},
        r"threshold has values for \['oak'\], which are not labels.*not listed have 0\.5",
    ),
    "solver": ({"solver": "svd"}, r"solver='svd' is not known: use one of \['auto', 'sylvester', 'moments', 'cg'\]"),
    "cg, centres": ({"solver": "cg", "n_centers": 5}, "solver='cg' needs every row as a centre.*'sylvester'"),
    "cg, given centres": ({"solver": "cg", "centers": X[:5]}, "solver='cg' needs every row as a centre.*'sylvester'"),
    "norm": ({"norm": "l2"}, r"norm='l2' is not known: use one of \['function', 'coefficients'\]"),
    "bias": ({"bias": "own"}, "bias='own' is not known: use one of"),
    "bias true": ({"bias": True}, "bias=True is not known"),
    "calibration": ({"calibration": "platt"}, "calibration='platt' is not known: use one of"),
    "kernel": ({"kernel": "gauss"}, "Unknown kernel 'gauss': use one of"),
    "centres": ({"n_centers": 0}, "n_centers=0 must be None or a whole number of 1 or more"),
    "kmeans": ({"centers": "kmeans"}, "centers='kmeans' needs the number of centres: give n_centers"),
    "both centres": ({"centers": X[:4], "n_centers": 4}, "leave it None if centers is an array"),
    "centres elsewhere": ({"centers": np.ones((4, 5))}, "centers"),
    "tol": ({"tol": 0}, "tol contains 0"),
    "max_iter": ({"max_iter": 0}, "max_iter=0 must be"),
    "max_iter none": ({"max_iter": None}, "max_iter=None must be a whole number"),
    "search_rows": ({"search_rows": 0}, "search_rows=0 must be"),
    "search_rows text": ({"search_rows": "all"}, "search_rows='all' is not known"),
    "scoring": ({"scoring": "f2"}, "scoring='f2' is not known: use one of .*'f1_macro'"),
    "scoring none": ({"scoring": None}, "scoring=None is not known"),
    "cv one": ({"cv": 1}, "cv=1 folds: with 40 rows use a number from 2 to 40, or 'loo'"),
    "cv many": ({"cv": 41}, "cv=41 folds: with 40 rows use a number from 2 to 40"),
    "cv text": ({"cv": "kfold"}, "cv='kfold' is not known: use 'loo', a number of folds, or a splitter"),
    "nothing held out": ({"cv": None, "sigma": "auto"}, "cv=None holds nothing out.*give sigma and alpha as numbers"),
    "nothing held out, calibration": ({"cv": None}, "cv=None holds nothing out.*calibration=None"),
    "nothing held out, sharing": (
        {"cv": None, "calibration": None, "sharing": "auto"},
        "cv=None holds nothing out.*a number for sharing",
    ),
    "nothing held out, sharings": (
        {"cv": None, "calibration": None, "sharing": [0, 1]},
        "cv=None holds nothing out.*a number for sharing",
    ),
    "nothing held out, threshold": (
        {"cv": None, "calibration": None, "threshold": "auto"},
        "cv=None holds nothing out.*threshold",
    ),
    "missing": ({"missing": [0, 1]}, r"missing=\[0, 1\] must be NaN, or a number or string"),
    "missing one": ({"missing": 1}, "missing=1 leaves 0 as the only class of all labels"),
    "similarity name": ({"similarity": "cosine"}, r"similarity='cosine' is not known: use one of \['learned', "),
    "class_weight text": ({"class_weight": "even"}, "class_weight='even' must be None, 'balanced', a dict"),
    "class_weight of no class": ({"class_weight": {0: 1, 2: 1}}, r"class_weight=.* names \[2\]"),
    "class_weight of no label": ({"class_weight": {"oak": {0: 1}}}, r"class_weight=.* names \['oak'\], which are no"),
    "class_weight negative": ({"class_weight": {0: -1}}, "class_weight=.* The weight of 0 is -1: give a finite"),
    "class_weight list": ({"class_weight": ["balanced"] * 2}, "class_weight=.* a list of 3 such dicts"),
    "precomputed": ({"kernel": "precomputed"}, r"needs a square matrix.*\(40, 2\)"),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_parameters(case):
    parameters, message = PARAMETERS[case]
    refused(lspc(**parameters), X, FRAME, message)


@pytest.mark.filterwarnings("ignore:The sigmoid kernel is not positive definite")
def test_iterations_need_a_definite_kernel():
    refused(lspc(solver="cg", kernel="sigmoid"), X, Y, "solver='cg' needs .* positive definite kernel")


def test_learned_similarities_need_nothing_held_out():
    """They are made of the labels alone."""
    model = lspc(cv=None, calibration=None, similarity="learned").fit(X, Y)
    assert model.predict_proba(X).shape == (N, T)


@pytest.mark.parametrize("name", ["threshold", "label_penalty"])
@pytest.mark.parametrize("value", [True, "0.5"])
def test_thresholds_and_penalties_that_are_no_numbers(name, value):
    refused(lspc(**{name: value}), X, Y, name)


NAMED = pd.DataFrame(HALF, index=NAMES, columns=NAMES)
SIMILARITIES = {
    "asymmetric": (entry(HALF, 0.9), r"not symmetric: 0\.9 from 'ash' to 'bay', 0\.5 back.*S\.T"),
    "negative": (entry(HALF, -1, both_ways=True), "similarity is -1 between 'ash' and 'bay': every value.*maximum"),
    "nan": (entry(HALF, np.nan, both_ways=True), "similarity is nan between 'ash' and 'bay'"),
    "inf": (np.full((T, T), np.inf), "similarity is inf between"),
    "size": (np.eye(2), r"similarity has shape \(2, 2\); for 3 labels it must be a matrix of shape \(3, 3\)"),
    "one dimension": (np.ones(T), r"similarity has shape \(3,\); for 3 labels"),
    "number": (0.5, r"similarity=0\.5; for 3 labels it must be a matrix"),
    "text": ([["a"] * T] * T, "similarity must hold real numbers"),
    "complex": (HALF * (1 + 1j), "similarity must hold real numbers"),
    "sparse, size": (sparse.csr_array(np.eye(4)), r"similarity has shape \(4, 4\); for 3 labels"),
    "sparse, negative": (sparse.csr_matrix(-HALF), "similarity is -0.5 between"),
    "sparse, asymmetric": (sparse.csr_matrix(np.triu(HALF)), "similarity is not symmetric"),
    "unknown row": (NAMED.rename(index={"ash": "oak"}), r"similarity has no row.* the labels \['ash'\]; its rows"),
    "unknown column": (NAMED.rename(columns={"elm": "oak"}), r"similarity has no column.*\['elm'\]; its columns"),
    "row twice": (pd.concat([NAMED, NAMED.iloc[:1]]), r"more than one, for the labels \['ash'\]"),
    "default names": (pd.DataFrame(HALF), r"similarity has no row.*\['ash', 'bay', 'elm'\].*\[0, 1, 2\]"),
    "edge of no label": (
        [("ash", "oak")],
        r"has the edge \('ash', 'oak'\), but 'oak' is not a label",
    ),
    "edge of four": ([("ash", "bay", 1, 1)], r"edges are \(label, label\) or \(label, label, weight\)"),
    "edge negative": ([("ash", "bay", -1)], "its weight must be a finite number of 0 or more"),
    "edges differ": ([("ash", "bay", 1), ("bay", "ash", 2)], "two edges between 'bay' and 'ash'.*give one"),
    "callable, none": (lambda X, Y: None, "similarity"),
    "callable, text": (lambda X, Y: "shared", "similarity"),
    "callable, size": (lambda X, Y: np.ones((2, 2)), r"similarity has shape \(2, 2\); for 3 labels"),
    "callable, asymmetric": (lambda X, Y: np.triu(HALF), "similarity is not symmetric"),
}


@pytest.mark.parametrize("case", SIMILARITIES)
def test_similarity(case):
    similarity, message = SIMILARITIES[case]
    refused(lspc(similarity=similarity), X, FRAME, message)


def test_errors_of_a_callable_are_its_own():
    def wrong(X, Y):
        raise RuntimeError("no such table")

    refused(lspc(similarity=wrong), X, Y, "no such table", RuntimeError)


# ------------------------------------------------------------------------ labels

LABELS = {
    "none": (None, "requires y to be passed, but the target y is None"),
    "three dimensions": (Y[None], r"Y has shape \(1, 40, 3\); it must be a table of shape \(rows, labels\)"),
    "other rows": (Y[:-1], "X has 40 rows and Y has 39: give the labels of every row of X"),
    "other rows, flat": (Y[:-1, 0], "X has 40 rows and Y has 39"),
    "no columns": (Y[:, :0], r"Y has shape \(40, 0\), no columns"),
    "ragged": ([[0, 1], [1]] * 20, "Y has rows of different lengths; .*MultiLabelBinarizer"),
    "fractions": (Y + 0.5, r"Column 0 of Y holds \d\.5, a continuous value; .*Y > 0\.5"),
    "probabilities": (entry(Y, 0.3, 5, 2), r"Column 2 of Y holds 0\.3, a continuous value"),
    "infinite": (entry(Y, np.inf), "Column 1 of Y holds inf"),
    "minus one": (entry(Y, -1), "Column 1 of Y holds -1, and Y holds 0 and 1 too: give missing=-1"),
    "text among numbers": (entry(Y, "yes"), "Column 1 of Y holds strings and numbers, 'yes' and"),
    "complex": (Y * (1 + 1j), "Complex data not supported"),
    "a column not known": (entry(Y, np.nan) * [np.nan, 1, 1], r"Y has no known value in the columns \[0\] \(of 3\)"),
    "nothing known": (np.full((N, T), np.nan), r"Y has no known value in the columns \[0, 1, 2\]"),
    "all masked": (np.ma.masked_all((N, T), dtype=int), r"Y has no known value in the columns \[0, 1, 2\]"),
    "a column of nulls": (pl.DataFrame({"a": Y[:, 0], "b": [None] * N}), r"no known value in the columns \['b'\]"),
    "names twice": (pd.DataFrame(Y, columns=list("aab")), "Y has several columns with the name 'a'"),
    "ids": (np.column_stack([Y[:, 0], np.arange(N)]), "40"),
    "dates": (pd.DataFrame({"a": pd.date_range("2020", periods=N)}), "Column 'a' of Y is of type datetime64"),
    "lazy": (pl.DataFrame(Y).lazy(), r"Y is a LazyFrame, which holds no rows yet: give Y\.collect\(\)"),
}


@pytest.mark.parametrize("case", LABELS)
def test_labels(case):
    labels, message = LABELS[case]
    refused(lspc(), X, labels, message)


def test_a_quantity_is_no_label():
    refused(lspc(), X, X[:, 0], "continuous")


def test_labels_that_are_only_odd():
    odd = {
        "one label": Y[:, :1],
        "booleans": Y.astype(bool),
        "bytes": Y.astype(np.uint8),
        "signs": 2 * Y - 1,
        "strings": np.array(["no", "yes"])[Y],
        "other numbers": 10 * Y + 3,
        "list": Y.tolist(),
        "fortran": np.asfortranarray(Y),
        "floats": Y.astype(float),
        "read only": _read_only(Y),
    }
    expected = lspc().fit(X, Y).predict_proba(X)
    for name, labels in odd.items():
        P = lspc().fit(X, labels).predict_proba(X)
        if name == "one label":
            assert P.shape == (N, 1)
        else:
            np.testing.assert_allclose(P, expected, atol=1e-9, err_msg=name)


def _read_only(A):
    A = A.copy()
    A.setflags(write=False)
    return A


# ------------------------------------------------- one label, one class a row

FLAT = np.where(np.arange(N) % 5 == 2, np.nan, Y[:, 0])
WORDS = [None if np.isnan(v) else ["no", "yes"][int(v)] for v in FLAT]


def one_label():
    masked = np.isnan(FLAT)
    return {
        "nan": FLAT,
        "masked": np.ma.masked_array(np.where(masked, 1, FLAT).astype(int), mask=masked),
        "pandas": pd.Series(FLAT),
        "pandas NA": pd.Series(FLAT).astype("Int64"),
        "polars": pl.Series([None if np.isnan(v) else int(v) for v in FLAT]),
        "words, none": WORDS,
        "words, nan": [np.nan if word is None else word for word in WORDS],
    }


@pytest.mark.filterwarnings("ignore:Rows without any known label")
@pytest.mark.parametrize("form", one_label())
def test_one_label_in_every_form(form):
    y = one_label()[form]
    model, expected = lspc().fit(X, y), lspc().fit(X, FLAT[:, None])
    assert len(model.classes_) == 2
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected.predict_proba(X)[:, 0], atol=1e-12)


# ------------------------------------------------------------------------- rows

ROWS = {
    "nan, sparse": (sparse.csr_matrix(entry(X, np.nan)), "Input X contains NaN, and is sparse"),
    "inf": (entry(X, np.inf), "Input X contains infinity"),
    "huge": (entry(X, 1e300), r"X holds values up to 1e\+300, whose squares overflow.*StandardScaler"),
    "empty": (X[:0], "Found array with 0 sample"),
    "no columns": (X[:, :0], "Found array with 0 feature"),
    "one dimension": (X[:, 0], "Expected 2D array, got 1D array"),
    "three dimensions": (X[None], "Found array with dim 3"),
    "text": (np.full((N, 2), "a"), "holds text, such as"),
    "complex": (X * (1 + 1j), "Complex data not supported"),
}


@pytest.mark.parametrize("case", ROWS)
def test_rows(case):
    rows, message = ROWS[case]
    refused(lspc(), rows, Y, message)
    model = lspc().fit(X, Y)
    for ask in (model.predict, model.predict_proba, model.decision_function, model.scores, model.in_domain):
        with pytest.raises(ValueError, match=message):
            ask(rows)


@pytest.mark.filterwarnings("ignore:.* one class only")
@pytest.mark.parametrize("labels", [Y, GAPS], ids=["complete", "gaps"])
def test_too_few_rows(labels):
    refused(lspc(), X[:1], labels[:1], "n_samples=1: holding out the only row leaves nothing")
    refused(lspc(cv=5), X[:3], labels[:3], "cv=5 folds: with 3 rows use a number from 2 to 3")


@pytest.mark.parametrize("labels", [Y, GAPS], ids=["complete", "gaps"])
def test_rows_that_are_all_equal(labels):
    refused(lspc(sigma="auto"), np.ones((N, 2)), labels, "All rows of X are equal, so the median distance is 0")
    for cv in ("loo", 5):
        model = lspc(cv=cv).fit(np.ones((N, 2)), labels)
        np.testing.assert_allclose(model.predict_proba(np.ones((2, 2)))[0], np.nanmean(labels, axis=0), atol=0.15)


@pytest.mark.filterwarnings("ignore:.* one class only")
def test_two_rows():
    model = MultiLabelLSPC(**PLAIN).fit(X[:2], [[0, 1], [1, 0]])
    assert model.predict_proba(X).shape == (N, 2)
    model = MultiLabelLSPC(**PLAIN).fit(X[:2], [[0, 1], [1, np.nan]])
    assert np.isfinite(model.predict_proba(X)).all()


def test_rows_that_differ_at_prediction():
    model = lspc().fit(X, Y)
    with pytest.raises(ValueError, match="X has 3 features, but MultiLabelLSPC is expecting 2 features"):
        model.predict(np.ones((4, 3)))
    named = lspc().fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    with pytest.raises(ValueError, match="same order"):
        named.predict(pd.DataFrame(X, columns=["b", "a"]))


def test_not_fitted():
    for ask in ("predict", "predict_proba", "predict_log_proba", "decision_function", "scores", "in_domain"):
        with pytest.raises(NotFittedError):
            getattr(lspc(), ask)(X)
    with pytest.raises(NotFittedError):
        lspc().score(X, Y)


# ---------------------------------------------------------------------- weights

WEIGHTS = {
    "rows": (np.ones(N - 1), r"sample_weight has shape \(39,\); .*each of the 40 rows, .*of shape \(40, 3\)"),
    "labels": (np.ones(T), r"sample_weight has shape \(3,\)"),
    "table": (np.ones((N, T + 1)), r"sample_weight has shape \(40, 4\)"),
    "column": (np.ones((N, 1)), r"sample_weight has shape \(40, 1\)"),
    "cube": (np.ones((N, T, 1)), r"sample_weight has shape \(40, 3, 1\)"),
    "negative": (-np.ones(N), "sample_weight has 40 negative values; weights must be 0 or more"),
    "infinite": (np.full(N, np.inf), "sample_weight has 40 infinite values"),
    "nan": (np.full((N, T), np.nan), "sample_weight is NaN for label 0 in rows in which it is known"),
    "zero": (np.zeros(N), "sample_weight sums to zero over all known labels"),
    "zero for a label": (np.ones((N, T)) * [1, 0, 1], r"All known values of the labels \[1\] have weight 0"),
    "text": (["a"] * N, "sample_weight must hold numbers"),
    "sparse": (sparse.csr_matrix(np.ones((N, T))), r"sample_weight is sparse: give sample_weight\.toarray\(\)"),
    "names": (pd.DataFrame(np.ones((N, T)), columns=list("xyz")), None),
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_weights(case):
    weights, message = WEIGHTS[case]
    if message is None:  # without names on both sides they are in the same order
        lspc().fit(X, Y, sample_weight=weights)
        refused(lspc(), X, FRAME, r"sample_weight has no column.*\['ash', 'bay', 'elm'\]", sample_weight=weights)
        return
    refused(lspc(), X, Y, message, sample_weight=weights)


def test_groups():
    refused(lspc(), X, Y, "groups has only one group", groups=np.zeros(N))
    refused(
        lspc(), X, Y, r"groups has shape \(39,\); it must hold one label for each of the 40 rows", groups=np.ones(39)
    )
    refused(lspc(), X, Y, "groups holds missing labels", groups=[None] * N)


def test_scores_that_cannot_be_had():
    for scoring in ("roc_auc", "f1_weighted", lambda estimator, X, Y: 0.0):
        refused(lspc(scoring=scoring), X, GAPS, "needs all labels, and .* are unknown: use one of")
    three = np.column_stack([Y, np.arange(N) % 3])
    refused(lspc(scoring="roc_auc"), X, three, "needs labels of two classes, and label 3 has 3")
    refused(lspc(threshold="auto"), X, three, "threshold='auto' needs labels with two classes each")
    weights = np.ones((N, T)) + np.eye(N, T)
    refused(lspc(scoring="roc_auc"), X, Y, "labels of a row have different weights", sample_weight=weights)


@pytest.mark.filterwarnings("ignore:.* one class only")
def test_nothing_to_measure():
    refused(lspc(scoring="auc", sharing=[0, 1]), X, np.zeros((N, 2)), "scoring='auc' is NaN on the held-out")


# ------------------------------------------------------------------------- score


def test_score_says_what_is_wrong():
    model = lspc().fit(X, FRAME)
    cases = {
        "Y has 2 labels; the model knows 3": Y[:, :2],
        "X has 40 rows and Y has 5": Y[:5],
        r"Y has no column, or more than one, for the labels \['elm'\]": FRAME.rename(columns={"elm": "oak"}),
        r"holds \[2\]; the classes that the model knows are \[0, 1\]": Y + 1,
        "missing=-1": np.where(Y == 0, -1, Y),
    }
    for message, labels in cases.items():
        with pytest.raises(ValueError, match=message):
            model.score(X, labels)


SCORE_WEIGHTS = {"few": np.ones(5), "wide": np.ones((N, T + 1)), "negative": -np.ones(N), "zero": np.zeros(N)}


@pytest.mark.parametrize("case", SCORE_WEIGHTS)
def test_weights_of_a_score(case):
    """In words that name them, whatever is wrong."""
    with pytest.raises(ValueError, match="weight"):
        lspc().fit(X, Y).score(X, Y, sample_weight=SCORE_WEIGHTS[case])


def test_a_score_of_nothing():
    with pytest.raises(ValueError, match="known"):
        lspc().fit(X, Y).score(X, np.full((N, T), np.nan))


# ------------------------------------------------------------------------ memory


@pytest.fixture
def little(monkeypatch):
    monkeypatch.setenv("LEASTWISE_MEMORY", "200MB")


WIDE = np.random.default_rng(1).integers(0, 2, (20, 10_000))
WIDE[0], WIDE[1] = 0, 1


@pytest.mark.parametrize("similarity", ["learned", "correlation"])
def test_ten_thousand_labels_are_refused_before_any_work(little, similarity):
    message = r"10000 labels of 20 rows need .* for all pairs of labels; 200 MB are available\. similarity='shared'"
    tracemalloc.start()
    refused(MultiLabelLSPC(similarity=similarity), X[:20], WIDE, message, MemoryError)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000**2 / 4  # a table of all pairs, even of bytes, was not begun


def test_the_ways_out_that_the_error_names_are_ways_out(little):
    """With 5,000 labels a table of all pairs would take more than there is; a list of edges is no such table."""
    labels, given = WIDE[:, :5000], {"sigma": 1.0, "alpha": 0.1, "cv": None, "calibration": None}
    ways = {
        "shared": {"similarity": "shared", "sharing": 0.5},
        "sharing=0": {"sharing": 0},
        "sparse": {"similarity": sparse.csr_array(sparse.identity(5000)), "sharing": 0.5},
        "edges": {"similarity": [(0, 1)], "sharing": 0.5},
    }
    failed = []
    for name, way in ways.items():
        try:
            MultiLabelLSPC(**given, **way).fit(X[:20], labels)
        except MemoryError:
            failed.append(name)
    assert not failed


def test_labels_that_are_all_alike_keep_no_table_of_pairs(little):
    tracemalloc.start()
    model = MultiLabelLSPC(1.0, 0.1, 0.5, similarity="shared", cv=None, calibration=None).fit(X[:20], WIDE[:, :3000])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.coef_.shape == (20, 6000)
    assert model.similarity_ is None
    assert peak < 3000**2 * 8


def test_many_rows_and_labels_without_pairs_are_refused(monkeypatch):
    monkeypatch.setenv("LEASTWISE_MEMORY", "2MB")
    message = "2000 labels of 40 rows need .*; 2 MB are available. Fit a part of the labels at a time, or fewer rows"
    refused(lspc(similarity="shared"), X, np.tile(WIDE[:, :2000], (2, 1)), message, MemoryError)


# -------------------------------------------------------------------- odd, and told


def caught(fit):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = fit()
    return model, [(str(w.message), w.filename) for w in seen]


def test_constant_labels():
    odd = np.column_stack([Y, np.zeros(N, int), np.ones(N, int)])
    frame = pd.DataFrame(odd, columns=[*NAMES, "never", "always"])
    model, seen = caught(lambda: lspc().fit(X, frame))
    ((message, where),) = seen
    assert "one class only among their known values: never, always" in message
    assert where == __file__
    assert model.constant_labels_ == ["never", "always"]
    P = model.predict_proba(X)
    assert P[:, 3].max() < 0.2
    assert P[:, 4].min() > 0.8
    assert (model.predict(X)["never"] == 0).all()
    assert (model.predict(X)["always"] == 1).all()
    assert lspc().fit(X, Y).constant_labels_ == []
    assert [c.tolist() for c in model.classes_] == [[0, 1]] * 5


@pytest.mark.filterwarnings("ignore:.* one class only")
@pytest.mark.parametrize("changes", [{}, {"similarity": "correlation"}, {"similarity": "shared"}, {"bias": "shared"}])
def test_nothing_but_constant_labels(changes):
    model = lspc(sharing=[0, 0.5], **changes).fit(X, np.zeros((N, 2), int))
    P = model.predict_proba(X)
    assert np.isfinite(P).all()
    assert P.max() < 0.2


CHOICES = {
    "given": {},
    "chosen": {"sigma": "auto", "alpha": "auto", "sharing": "auto"},
    "some rows": {"sigma": "auto", "alpha": "auto", "sharing": "auto", "search_rows": 12},
    "bias": {"bias": "shared"},
    "correlation": {"similarity": "correlation"},
    "coefficients": {"norm": "coefficients"},
    "cg": {"solver": "cg"},
    "cg, bias": {"solver": "cg", "bias": "shared"},
    "cg, some rows": {"solver": "cg", "sigma": "auto", "search_rows": 12},
    "isotonic": {"calibration": "isotonic"},
    "temperature": {"calibration": "temperature"},
    "auto thresholds": {"threshold": "auto", "scoring": "f1_macro"},
}


@pytest.mark.filterwarnings("ignore:.* one class only")
@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("case", CHOICES)
def test_a_label_with_a_single_known_value(case, value):
    """Whichever rows are searched or held out, most have nothing to say of it."""
    labels = Y.astype(float)
    labels[:, 2] = np.nan
    labels[7, 2] = value
    model = lspc(**CHOICES[case]).fit(X, labels)
    P = model.predict_proba(X)
    assert np.isfinite(P).all()
    assert model.constant_labels_ == [2]
    other = lspc(**CHOICES[case]).fit(X, Y)
    assert np.corrcoef(P[:, 0], other.predict_proba(X)[:, 0])[0, 1] > 0.9


def test_rows_without_labels_are_told():
    labels = Y.astype(float)
    labels[5:9] = np.nan
    model, seen = caught(lambda: lspc().fit(X, labels))
    assert seen == [("Rows without any known label are left out: 4 of 40.", __file__)]
    assert model.heldout_proba_.shape == (N, T)


def test_iterations_that_stop_early_are_told():
    model = lspc(solver="cg", max_iter=1, tol=1e-10, alpha=1e-5)
    with pytest.warns(
        ConvergenceWarning, match="stopped after 1 iterations with a residual of .* raise max_iter"
    ) as seen:
        model.fit(X, GAPS)
    assert seen[0].filename == __file__
    assert model.n_iter_ == 1
    assert model.residual_ > 1e-10


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = lspc().fit(X, Y)
    before = dict(vars(model))
    for rows, labels in ((X, Y[:-1]), (entry(X, np.inf), Y), (X, Y + 0.5)):
        with pytest.raises(ValueError, match=r"[XY]"):
            model.fit(rows, labels)
        assert vars(model) == before
    model.set_params(sharing=2)
    with pytest.raises(ValueError, match="sharing=2"):
        model.fit(X, Y)
    np.testing.assert_array_equal(model.coef_, before["coef_"])
