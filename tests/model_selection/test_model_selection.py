"""Folds that know the tasks: by cell, task, class and overall within one row of each other."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, cross_validate

from leastwise.datasets import make_related_tasks
from leastwise.model_selection.folds import task_fold_labels
from leastwise.model_selection.splitters import StratifiedTaskKFold


@st.composite
def tables(draw):
    """Number of folds, classes, tasks."""
    n = draw(st.integers(2, 80))
    codes = [st.lists(st.integers(0, draw(st.integers(0, 7))), min_size=n, max_size=n) for _ in range(2)]
    return draw(st.integers(2, min(n, 9))), np.array(draw(codes[0])), np.array(draw(codes[1]))


def intercept_ratio(labels, k):
    sizes = np.bincount(labels, minlength=k)
    return sizes.max() - sizes.min()


def parts_of(y, task):
    """All rows, and the rows of every class, task and cell, as masks."""
    yield np.ones(len(y), dtype=bool)
    for codes in (y, task, 100 * task + y):
        yield from (codes == code for code in np.unique(codes))


# --------------------------------------------------------------------- labels


@given(tables(), st.none() | st.integers(0, 2**31 - 2))
def test_folds_are_even_in_every_part(table, seed):
    k, y, task = table
    labels = task_fold_labels(k, y, task, seed)
    assert labels.min() == 0
    assert labels.max() == k - 1
    assert max(intercept_ratio(labels[rows], k) for rows in parts_of(y, task)) <= 1


@given(tables(), st.permutations(range(8)), st.permutations(range(8)), st.none() | st.integers(0, 99))
def test_names_do_not_matter(table, task_names, class_names, seed):
    k, y, task = table
    renamed = task_fold_labels(k, np.array(class_names)[y], 1000 * np.array(task_names)[task], seed)
    np.testing.assert_array_equal(renamed, task_fold_labels(k, y, task, seed))


def test_a_rare_class_is_spread_although_every_task_has_one_row_of_it():
    """Dealing out in turn would put all of them into the last fold."""
    task, y = np.repeat(np.arange(17), 20), np.tile(np.arange(20) == 19, 17).astype(int)
    for seed in (None, 0, 1):
        assert sorted(np.bincount(task_fold_labels(5, y, task, seed)[y == 1])) == [3, 3, 3, 4, 4]


def test_seeds():
    y, task = np.arange(60) % 3, np.arange(60) // 20
    first, again, other = (task_fold_labels(5, y, task, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    in_order = task_fold_labels(5, y, task, None)
    for cell in range(9):
        assert np.all(np.diff(in_order[(y == cell % 3) & (task == cell // 3)]) >= 0)


def test_every_row_has_a_chance_to_be_in_every_fold():
    y, task = np.repeat([0, 1], 6), np.tile([0, 1, 2], 4)
    seen = np.array([task_fold_labels(3, y, task, seed) for seed in range(300)])
    shares = np.mean(seen[:, :, None] == np.arange(3), axis=0)
    np.testing.assert_allclose(shares, 1 / 3, atol=0.12)


@pytest.mark.parametrize("k", [1, 5])
def test_number_of_folds_fits_the_rows(k):
    with pytest.raises(ValueError, match=f"{k} folds: with 4 rows use a number from 2 to 4"):
        task_fold_labels(k, np.zeros(4, dtype=int), np.zeros(4, dtype=int), 0)


# ------------------------------------------------------------------- splitter

NAMES = np.array(["north", "south", "west"])


def table(n=47, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.integers(0, 2, n), rng.integers(0, 3, n)


def containers(X, names):
    """X with its tasks in column 1, in every form, with the name or position of that column."""
    mixed = np.empty((len(X), 3), dtype=object)
    mixed[:, 0], mixed[:, 1], mixed[:, 2] = X[:, 0], names, X[:, 1]
    frame = pd.DataFrame({"a": X[:, 0], "field": names, "b": X[:, 1]})
    codes = np.unique(names, return_inverse=True)[1]
    numbers = np.column_stack([X[:, 0], codes, X[:, 1]])
    yield mixed, 1
    yield mixed, -2
    yield mixed.tolist(), 1
    yield numbers, 1
    yield sparse.csr_array(numbers), 1
    yield sparse.coo_matrix(numbers), 1
    yield frame, "field"
    yield frame, 1
    yield frame.astype({"field": "category"}), "field"
    yield pl.DataFrame({name: frame[name].tolist() for name in frame}), "field"


def splits(cv, *data, **more):
    return [(train.tolist(), test.tolist()) for train, test in cv.split(*data, **more)]


def test_the_form_of_x_does_not_matter():
    X, y, task = table()
    wanted = splits(StratifiedTaskKFold(4, random_state=0), X, y, groups=NAMES[task])
    for form, column in containers(X, NAMES[task]):
        assert splits(StratifiedTaskKFold(4, task_column=column, random_state=0), form, y) == wanted


@pytest.mark.parametrize(
    "groups",
    [
        lambda task: NAMES[task].tolist(),
        lambda task: tuple(NAMES[task]),
        lambda task: pd.Series(NAMES[task], index=np.arange(len(task))[::-1]),
        lambda task: pl.Series(NAMES[task].tolist()),
        lambda task: [("field", int(t)) for t in task],
        lambda task: [[0, "one", 2.5][t] for t in task],
        lambda task: task * 0.5,
    ],
)
def test_the_form_of_groups_does_not_matter(groups):
    X, y, task = table()
    cv = StratifiedTaskKFold(3, random_state=1)
    assert splits(cv, X, np.array(["no", "yes"])[y], groups=groups(task)) == splits(cv, X, y, groups=task)


@given(tables())
def test_splits_are_a_partition(table):
    k, y, task = table
    held = []
    for train, test in StratifiedTaskKFold(k, random_state=0).split(np.zeros((len(y), 1)), y, task):
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(y)))
        held.extend(test)
    np.testing.assert_array_equal(np.sort(held), np.arange(len(y)))


def test_randomness():
    X, y, task = table()
    fixed, free = StratifiedTaskKFold(random_state=0), StratifiedTaskKFold(random_state=np.random.RandomState(0))
    assert splits(fixed, X, y, groups=task) == splits(fixed, X, y, groups=task)
    assert splits(free, X, y, groups=task) != splits(free, X, y, groups=task)
    plain = StratifiedTaskKFold(shuffle=False)
    assert splits(plain, X, y, groups=task) == splits(plain, X, y, groups=task)
    assert "n_splits=5, random_state=0, shuffle=True" in repr(fixed)
    assert fixed.get_n_splits() == fixed.get_n_splits(X, y, task) == 5


def test_in_the_tools_of_scikit_learn():
    data = make_related_tasks(4, [30, 20, 25, 9], random_state=0)
    X, y = np.column_stack([data.X, data.task]), data.y
    model, cv = LogisticRegression(), StratifiedTaskKFold(3, task_column=2, random_state=0)
    scores = cross_val_score(model, X, y, cv=cv)
    assert scores.shape == (3,)
    assert cross_val_predict(model, X, y, cv=cv, method="predict_proba").shape == (84, 2)
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=cv).fit(X, y)
    assert search.n_splits_ == 3
    by_groups = cross_val_score(model, X, y, cv=StratifiedTaskKFold(3, random_state=0), groups=data.task)
    np.testing.assert_array_equal(by_groups, scores)
    with config_context(enable_metadata_routing=True):
        routed = cross_validate(model, X, y, cv=StratifiedTaskKFold(3, random_state=0), params={"groups": data.task})
    np.testing.assert_array_equal(routed["test_score"], scores)


# --------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("cv", "changes", "message"),
    [
        ({}, {"groups": None}, r"No tasks are given: .*task_column=.*groups="),
        ({"task_column": 0}, {}, "given twice, by task_column=0 and by groups="),
        ({"task_column": 9}, {"groups": None}, "task_column=9"),
        ({"task_column": "field"}, {"groups": None}, "task_column='field'"),
        ({}, {"groups": [0, 1, None, 1]}, "1 are missing"),
        ({}, {"groups": [0, 1, np.nan, 1]}, "1 are missing"),
        ({}, {"groups": pd.Series([0, 1, pd.NA, 1], dtype="Int64")}, "1 are missing"),
        ({}, {"groups": [0, 1, 1]}, "groups has 3 for 4 rows"),
        ({}, {"groups": "north"}, "groups has a single value for 4 rows"),
        ({}, {"groups": [[0], [1], [0], [1]]}, "hashable"),
        ({}, {"y": None}, "y=None"),
        ({}, {"y": [0, 1, 0]}, "y has 3 values for 4 rows"),
        ({"n_splits": 5}, {}, "n_splits=5: with 4 rows use a number from 2 to 4"),
        ({"n_splits": 1}, {}, "n_splits=1 must be a whole number, 2 or more"),
        ({"n_splits": 2.0}, {}, "n_splits=2.0 must be a whole number"),
        ({"n_splits": True}, {}, "n_splits=True must be a whole number"),
        ({"shuffle": False, "random_state": 0}, {}, "random_state=0 has no effect"),
    ],
)
def test_wrong_input_is_named(cv, changes, message):
    given = {"X": np.zeros((4, 2)), "y": [0, 1, 0, 1], "groups": [0, 0, 1, 1], **changes}
    with pytest.raises((ValueError, TypeError), match=message):
        StratifiedTaskKFold(**{"n_splits": 2, **cv}).split(**given)
