"""Which rows are held out together."""

import numpy as np
import pytest
from conftest import blobs
from scipy import sparse
from sklearn.model_selection import KFold, ShuffleSplit

from leastwise.model_selection.folds import distinct_rows, fold_ids


def same_partition(a, b):
    return np.array_equal(a[:, None] == a[None], b[:, None] == b[None])


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_distinct_rows(container):
    X = np.array([[1.0, 0], [0, 2], [1, 0], [-0.0, 2], [1, 1e-300]])
    assert same_partition(distinct_rows(container(X)), np.array([0, 1, 0, 1, 2]))


def test_explicit_zeros_in_sparse_rows_do_not_matter():
    X = sparse.csr_array((np.array([1.0, 0.0, 1.0]), np.array([0, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    assert len(set(distinct_rows(X))) == 1


def labels(cv, n=12, groups=None):
    _, y = blobs(n)
    return fold_ids(cv, y, groups, seed=0)


def test_leave_one_out_and_groups():
    assert len(set(labels("loo"))) == 12
    groups = np.array(list("aabbccddeeff"))
    assert same_partition(labels("loo", groups=groups), np.unique(groups, return_inverse=True)[1])


def test_k_folds_are_stratified():
    _, y = blobs(30)
    found = labels(5, 30)
    for k in range(5):
        np.testing.assert_array_equal(np.bincount(y[found == k]), [2, 2, 2])
    grouped = labels(3, 30, groups=np.repeat(np.arange(10), 3))
    assert all(len(set(grouped[3 * g : 3 * g + 3])) == 1 for g in range(10))


def test_splitters_and_lists_of_splits():
    assert same_partition(labels(KFold(3)), np.repeat([0, 1, 2], 4))
    assert same_partition(labels(list(KFold(3).split(np.zeros(12)))), np.repeat([0, 1, 2], 4))


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ("kfold", "cv='kfold' is not known"),
        (1, "cv=1 folds"),
        (13, "cv=13 folds"),
        (3.5, "cv=3.5 is not known"),
        (ShuffleSplit(3, random_state=0), "exactly once"),
        ([(np.arange(0), np.arange(12))], "single fold"),
        ([(np.arange(5), np.arange(6, 12)), (np.arange(6, 12), np.arange(6))], "trains on 5 of the 6 rows"),
        ([1, 2], "not a list of"),
        ([([0], [70])], "not a list of"),
    ],
)
def test_what_does_not_hold_out_every_row_once_is_refused(cv, message):
    with pytest.raises(ValueError, match=message):
        labels(cv)


def test_labels_do_not_depend_on_the_hash_seed():
    X = np.array([[3.0], [1.0], [3.0], [2.0]])
    np.testing.assert_array_equal(distinct_rows(X), [0, 1, 0, 2])


@pytest.mark.parametrize(("y", "advice"), [([0, 0, 0, 1, 1, 1], "cv=3 or cv='loo'"), ([0, 1, 2, 3, 4], "cv='loo'")])
def test_classes_with_fewer_rows_than_folds(y, advice):
    with pytest.raises(ValueError, match=rf"cv=5 folds are stratified by class, and no class .*: use {advice}\."):
        fold_ids(5, np.array(y), None, 0)
