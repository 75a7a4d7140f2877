"""Chunks of rows, and centres drawn from rows."""

import numpy as np
from conftest import blobs

from leastwise.problem.basis import make_basis, row_chunks
from leastwise.problem.centers import Recipe


def test_chunks_cover_all_rows_once():
    for n, width in ((0, 5), (1, 5), (1000, 10**6), (7, 10**9)):
        assert [i for part in row_chunks(n, width, 8) for i in range(n)[part]] == list(range(n))


def test_centres_are_drawn_from_distinct_rows(rng):
    X, y = blobs(30)
    X, y, copy = np.vstack([X, X]), np.r_[y, y], np.r_[np.arange(30), np.arange(30)]
    basis = make_basis(Recipe(n_centers=25), X, y, np.ones(60), copy, copy, rng)
    assert len(np.unique(copy[basis.rows])) == 25
    own = basis.blocks[0].own
    assert (own[:30] == own[30:]).all()
    assert sorted(own[own >= 0]) == sorted(2 * list(range(25)))


def test_more_centres_than_rows_is_all_rows(rng):
    X, y = blobs(30)
    basis = make_basis(Recipe(n_centers=99), X, y, np.ones(30), np.arange(30), np.arange(30), rng)
    assert basis.square
    np.testing.assert_array_equal(basis.rows, np.arange(30))


def test_k_means_makes_no_more_centres_than_distinct_rows(rng):
    X, y = np.repeat(np.arange(4.0), 10)[:, None], np.tile([0, 1], 20)
    copy = np.repeat(np.arange(4), 10)
    basis = make_basis(Recipe(n_centers=10, centers="kmeans"), X, y, np.ones(40), copy, copy, rng)
    np.testing.assert_allclose(np.sort(basis.centers.ravel()), np.arange(4.0))
