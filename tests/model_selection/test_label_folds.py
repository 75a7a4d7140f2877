"""Folds of rows with many labels."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.neighbors import KNeighborsClassifier

from leastwise.model_selection.splitters import StratifiedLabelKFold, label_fold_ids


def rare_labels(n, T, seed, unknown=0.0, classes=2):
    """Correlated labels, some of them rare."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    share = np.geomspace(3 / n, 0.6, T)
    score = X @ rng.normal(size=(3, T)) + rng.normal(size=(n, T))
    codes = (score > np.quantile(score, 1 - share, axis=0).diagonal()).astype(int)
    codes[:, T // 2 :] *= rng.integers(1, classes, size=(n, T - T // 2))
    codes[rng.random((n, T)) < unknown] = -1
    return codes


def textbook(codes, k, seed):
    """Iterative stratification as in Sechidis et al. (2011), algorithm 1, for labels that are 0 or 1."""
    rng = np.random.default_rng(seed)
    n = len(codes)
    wanted, wanted_label = np.full(k, n / k), np.repeat((codes == 1).sum(axis=0)[:, None] / k, k, axis=1)
    left, fold = np.ones(n, dtype=bool), np.empty(n, dtype=int)
    while left.any():
        count = (codes[left] == 1).sum(axis=0)
        label = np.where(count > 0, count, n + 1).argmin()
        for i in np.flatnonzero(left & ((codes[:, label] == 1) | (not count.any()))):
            need = wanted_label[label] if count.any() else wanted
            best = np.flatnonzero(need == need.max())
            fold[i] = f = rng.choice(best[wanted[best] == wanted[best].max()])
            wanted_label[codes[i] == 1, f] -= 1
            wanted[f] -= 1
            left[i] = False
    return fold


def counts(codes, fold, k, c=1):
    return np.array([(codes[fold == f] == c).sum(axis=0) for f in range(k)])


def unevenness(codes, fold, k):
    """Root mean square of what folds have too much, or too little, of a class, over all labels and classes."""
    tables = [counts(codes, fold, k, c) for c in range(codes.max() + 1)]
    return np.sqrt(np.mean([np.mean((C - C.mean(axis=0)) ** 2) for C in tables]))


@pytest.mark.parametrize("k", [2, 5, 10])
def test_more_even_than_plain_folds_and_iterative_stratification(k):
    codes = rare_labels(400, 25, seed=k)
    fold = label_fold_ids(k, codes, seed=0)
    splits = KFold(k, shuffle=True, random_state=0).split(codes)
    plain = np.empty(400, dtype=int)
    for f, (_, test) in enumerate(splits):
        plain[test] = f
    ours, theirs = unevenness(codes, fold, k), unevenness(codes, textbook(codes, k, 0), k)
    assert ours < theirs < unevenness(codes, plain, k)
    assert ours < 0.55
    assert np.ptp(counts(codes, fold, k), axis=0).max() <= 2


def test_rare_positives_are_apart():
    codes = rare_labels(300, 20, seed=1)
    C = counts(codes, label_fold_ids(5, codes, seed=3), 5)
    rare = (codes == 1).sum(axis=0) <= 10
    assert rare.sum() >= 3
    assert np.ptp(C[:, rare], axis=0).max() <= 1


@pytest.mark.parametrize(("unknown", "classes"), [(0.3, 2), (0.0, 4), (0.3, 4)])
def test_classes_and_unknown_entries(unknown, classes):
    codes = rare_labels(300, 12, seed=2, unknown=unknown, classes=classes)
    fold = label_fold_ids(5, codes, seed=0)
    random = np.random.default_rng(0).permutation(np.arange(300) % 5)
    assert unevenness(codes, fold, 5) < 0.35 * unevenness(codes, random, 5)


def test_one_label_is_dealt_out_as_evenly_as_possible():
    codes = np.repeat([0, 1, 2], [50, 13, 4])[:, None]
    fold = label_fold_ids(5, codes, seed=0)
    for c in range(3):
        assert np.ptp(counts(codes, fold, 5, c)) <= 1


tables = st.tuples(st.integers(4, 40), st.integers(1, 6), st.integers(2, 4), st.integers(0, 10**6))


@given(tables)
@settings(max_examples=60, deadline=None)
def test_properties(case):
    n, T, k, seed = case
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, rng.integers(1, 4), size=(n, T))
    fold = label_fold_ids(k, codes, seed)
    sizes = np.bincount(fold, minlength=k)
    assert np.ptp(sizes) <= 1
    assert len(sizes) == k
    np.testing.assert_array_equal(fold, label_fold_ids(k, codes, seed))
    np.testing.assert_array_equal(fold, label_fold_ids(k, codes[:, rng.permutation(T)], seed))
    renamed = np.where(codes >= 0, 7 * codes + 3, -1)
    np.testing.assert_array_equal(fold, label_fold_ids(k, renamed, seed))


def test_seeds_differ_and_none_needs_no_luck():
    codes = rare_labels(60, 5, seed=0)
    assert (label_fold_ids(3, codes, 0) != label_fold_ids(3, codes, 1)).any()
    np.testing.assert_array_equal(label_fold_ids(3, codes, None), label_fold_ids(3, codes, None))


def test_nothing_known_and_nothing_that_varies():
    for codes in (np.full((7, 2), -1), np.zeros((7, 2), dtype=int)):
        assert sorted(np.bincount(label_fold_ids(3, codes, 0))) == [2, 2, 3]


@pytest.mark.parametrize("k", [1, 8])
def test_a_number_of_folds_that_cannot_be(k):
    with pytest.raises(ValueError, match="with 7 rows use a number from 2 to 7"):
        label_fold_ids(k, np.zeros((7, 2), dtype=int), 0)


# ------------------------------------------------------------------ the splitter


def test_works_as_cv_in_scikit_learn():
    Y = rare_labels(80, 4, seed=0)
    X = np.random.default_rng(0).normal(size=(80, 2))
    cv = StratifiedLabelKFold(4, random_state=0)
    scores = cross_validate(KNeighborsClassifier(), X, Y, cv=cv, scoring="f1_micro")["test_score"]
    assert len(scores) == 4
    GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 3]}, cv=cv).fit(X, Y)
    assert cv.get_n_splits() == 4


def held_out(cv, Y):
    splits = list(cv.split(np.zeros((len(Y) if not hasattr(Y, "shape") else Y.shape[0], 1)), Y))
    for train, test in splits:
        assert sorted([*train, *test]) == list(range(len(train) + len(test)))
    return [test.tolist() for _, test in splits]


def test_tables_of_all_kinds_make_the_same_folds():
    codes = rare_labels(50, 4, seed=0, unknown=0.2)
    Y = np.where(codes < 0, np.nan, codes)
    cv = StratifiedLabelKFold(3, random_state=1)
    expected = held_out(cv, Y)
    names = list("abcd")
    words = np.where(codes < 0, None, np.array(["no", "yes"], dtype=object)[codes])
    others = [
        Y.tolist(),
        words,
        pd.DataFrame(words),
        pd.DataFrame(Y, columns=names),
        pd.DataFrame(Y).astype("Int64"),
        pl.DataFrame(words.tolist(), schema=names, orient="row"),
        np.ma.masked_array(np.abs(codes), mask=codes < 0),
    ]
    for other in others:
        assert held_out(cv, other) == expected


def test_sparse_tables():
    codes = rare_labels(50, 4, seed=0)
    cv = StratifiedLabelKFold(3, random_state=1)
    assert held_out(cv, sparse.csr_array(codes)) == held_out(cv, codes)


def test_unknown_is_no_class():
    """An unknown entry is not a negative: those of the first label alone are held out evenly."""
    Y = np.array([[0.0]] * 4 + [[1.0]] * 4 + [[np.nan]] * 40)
    for test in held_out(StratifiedLabelKFold(4, random_state=0), Y):
        assert sorted(Y[test, 0][~np.isnan(Y[test, 0])]) == [0, 1]


@pytest.mark.parametrize(
    ("changes", "Y", "message"),
    [
        ({}, None, "y=None"),
        ({}, np.zeros(6), "StratifiedKFold"),
        ({}, np.zeros((5, 2)), r"shape \(5, 2\) for 6 rows"),
        ({}, np.zeros((6, 0)), r"shape \(6, 0\) for 6 rows"),
        ({}, np.full((6, 2), 0.5), "Column 0 of y holds 0.5"),
        ({"n_splits": 7}, np.zeros((6, 2)), "from 2 to 6"),
        ({"n_splits": 2.0}, np.zeros((6, 2)), "whole number"),
        ({"n_splits": True}, np.zeros((6, 2)), "whole number"),
        ({"shuffle": False, "random_state": 0}, np.zeros((6, 2)), "has no effect"),
    ],
)
def test_what_cannot_be_split(changes, Y, message):
    with pytest.raises(ValueError, match=message):
        StratifiedLabelKFold(**{"n_splits": 2, **changes}).split(np.zeros((6, 1)), Y)
