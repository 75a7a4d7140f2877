"""Hashes of rows: equal for equal rows, evenly distributed, and the same in every process."""

import os
import subprocess
import sys
from functools import cached_property

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from leastwise.utils.hashing import fingerprint, id_keys, row_hashes, sample_hashes, threshold


@given(arrays(float, (12, 3), elements=st.sampled_from([0.0, -0.0, 1.0, 2.5, -1e300, 5e-324])))
@settings(max_examples=50, deadline=None)
def test_rows_have_the_same_key_where_they_are_equal(X):
    keys = row_hashes(X)
    for i in range(12):
        for j in range(12):
            assert (keys[i] == keys[j]) == bool((X[i] == X[j]).all())


def test_sparse_rows_and_single_precision_have_the_keys_of_dense_doubles():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 6)) * (rng.random((50, 6)) < 0.3)
    assert np.array_equal(row_hashes(sparse.csr_matrix(X)), row_hashes(X))
    assert np.array_equal(row_hashes(sparse.coo_matrix(X)), row_hashes(X))
    single = X.astype(np.float32)
    assert np.array_equal(row_hashes(single), row_hashes(single.astype(float)))
    doubled = sparse.csr_matrix((np.array([1.0, 1.0]), np.array([2, 2]), np.array([0, 2])), shape=(1, 6))
    assert np.array_equal(row_hashes(doubled), row_hashes(doubled.toarray()))


def test_order_and_blocks_make_no_difference(monkeypatch):
    X = np.random.default_rng(1).normal(size=(40, 3))
    keys = row_hashes(X)
    assert np.array_equal(row_hashes(X[::-1]), keys[::-1])
    monkeypatch.setattr("leastwise.utils.hashing.ROOM", 7)
    assert np.array_equal(row_hashes(X), keys)
    assert not np.array_equal(row_hashes(X[:, [1, 0, 2]]), keys)  # columns are no set


def test_keys_are_spread_evenly():
    """Small whole numbers differ in few bits: their keys must not."""
    X = np.array([[i, j] for i in range(100) for j in range(100)], dtype=float)
    keys = row_hashes(X)
    assert len(np.unique(keys)) == 10_000
    parts = np.bincount((keys >> np.uint64(60)).astype(int), minlength=16)
    assert parts.min() > 500
    assert parts.max() < 750
    low = np.bincount((keys & np.uint64(15)).astype(int), minlength=16)
    assert low.min() > 500


def test_ids_of_any_kind():
    assert len(np.unique(id_keys(["a", "b", "a", "ab"]))) == 3
    assert np.array_equal(id_keys([1, 2, 3]), id_keys(np.array([1.0, 2.0, 3.0])))
    assert len(np.unique(id_keys(np.array([("x", 1), ("x", 2), None], dtype=object)[:1]))) == 1
    assert id_keys(np.array([None, "None", 3.5], dtype=object))[0] != id_keys([3.5])[0]


def test_other_processes_have_the_same_keys():
    call = "print(*row_hashes(__import__('numpy').eye(2)), *id_keys(['a', 'b']))"
    code = f"from leastwise.utils.hashing import *; {call}"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == [str(k) for k in [*row_hashes(np.eye(2)), *id_keys(["a", "b"])]]


@pytest.mark.parametrize("count", [1, 3, 10])
def test_the_lowest_of_the_lowest_are_the_lowest(count):
    keys = row_hashes(np.random.default_rng(2).integers(0, 3, size=(60, 2)).astype(float))
    whole = threshold(keys, count)
    low = np.concatenate([part[part <= threshold(part, count)] for part in np.split(keys, [10, 25])])
    assert set(low[low <= threshold(low, count)].tolist()) == set(keys[keys <= whole].tolist())


@pytest.mark.parametrize("count", [1, 20, 40, 100])
def test_as_many_rows_as_there_is_room_for(count):
    keys = row_hashes(np.random.default_rng(2).integers(0, 3, size=(60, 2)).astype(float))
    bound = threshold(keys, count, rows=True)
    kept, above = keys[keys <= bound], np.unique(keys[keys > bound])
    assert len(kept) <= count or len(np.unique(kept)) == 2
    if len(above) and len(np.unique(kept)) > 2:
        assert len(kept) + np.sum(keys == above[0]) > count


class Thing:
    """An object with a cached property."""

    def __init__(self, a):
        self.a = a

    @cached_property
    def twice(self):
        return 2 * self.a


def test_fingerprints_depend_on_content_and_not_on_caches_or_order():
    thing, same = Thing(3), Thing(3)
    assert thing.twice == 6
    assert fingerprint(thing) == fingerprint(same) != fingerprint(Thing(4))
    X = np.arange(6.0).reshape(2, 3)
    assert fingerprint(X) == fingerprint(np.asfortranarray(X)) == fingerprint(X.copy())
    values = [
        X,
        X.T,
        X.ravel(),
        X.astype(np.float32),
        sparse.csr_matrix(X),
        X.tolist(),
        None,
        "None",
        1,
        1.0,
        True,
        [[]],
        [],
    ]
    assert len({fingerprint(value) for value in values}) == len(values)
    assert fingerprint(1, (2, 3)) != fingerprint((1, 2), 3)
    code = "from leastwise.utils.hashing import fingerprint; print(fingerprint({'b', 'a', 'c'}, {'x': 1.5}, len))"
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout


def test_a_duplicate_changes_no_key_of_another_row():
    """Distinct rows take a shorter path; it must give the keys of the other."""
    x = row_hashes(np.random.default_rng(4).normal(size=(30, 2)))
    kind, weight = [np.arange(30) % 3], [np.arange(30.0)]
    keys = sample_hashes(x, kind, weight, "test")
    more = sample_hashes(np.append(x, x[7]), [np.append(kind[0], kind[0][7])], [np.append(weight[0], 99.0)], "test")
    assert np.array_equal(more[:30], keys)
    assert more[30] not in keys
