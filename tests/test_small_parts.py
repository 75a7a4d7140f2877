"""Memory, metrics, centres: the small parts."""

import numpy as np
import pytest
from conftest import blobs

from leastwise.metrics.calibration import expected_calibration_error
from leastwise.metrics.probabilities import brier_score
from leastwise.problem.basis import make_basis, row_chunks
from leastwise.problem.centers import Recipe
from leastwise.utils.memory import available_memory, human, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("1000", 1000), ("4GB", 4 * 2**30), ("512 MiB", 512 * 2**20), ("1.5k", 1536), ("2TB", 2 * 2**40)],
)
def test_parse_size(text, size):
    assert parse_size(text) == size


def test_parse_size_refuses_nonsense():
    with pytest.raises(ValueError, match="'lots' is not a memory size"):
        parse_size("lots")


def test_available_memory(monkeypatch):
    monkeypatch.delenv("LEASTWISE_MEMORY", raising=False)
    assert 2**20 < available_memory() < 2**62
    monkeypatch.setenv("LEASTWISE_MEMORY", "3MB")
    assert available_memory() == 3 * 2**20
    assert human(3 * 2**20) == "3 MB"
    assert human(1010 * 2**20) == "0.986 GB"
    assert human(5e18) == "4.55e+06 TB"


def test_calibration_error_against_a_loop(rng):
    P = rng.dirichlet(np.ones(3), 300)
    y = rng.integers(0, 3, 300)
    confidence, hit = P.max(axis=1), P.argmax(axis=1) == y
    width = 0.0
    for b in range(10):
        inside = (confidence >= b / 10) & ((confidence < (b + 1) / 10) | (b == 9))
        if inside.any():
            width += inside.mean() * abs(confidence[inside].mean() - hit[inside].mean())
    assert expected_calibration_error(y, P, n_bins=10, strategy="width") == pytest.approx(width)
    mass = 0.0
    for part in np.array_split(np.argsort(confidence), 10):
        mass += len(part) / 300 * abs(confidence[part].mean() - hit[part].mean())
    assert expected_calibration_error(y, P, n_bins=10) == pytest.approx(mass)


def test_calibration_error_of_honest_and_dishonest_probabilities(rng):
    p = rng.uniform(0.5, 1, 20_000)
    y = (rng.uniform(size=20_000) < p).astype(int)
    honest, sure = np.column_stack([1 - p, p]), np.column_stack([np.zeros(20_000), np.ones(20_000)])
    assert expected_calibration_error(y, honest) < 0.02
    assert expected_calibration_error(y, sure) == pytest.approx(0.25, abs=0.02)
    assert brier_score(y, honest) < brier_score(y, sure)
    assert brier_score([0, 1], [[1, 0], [0, 1]]) == 0
    assert brier_score([0, 0], [[1, 0], [1, 0]], classes=[0, 1]) == 0
    with pytest.raises(ValueError, match="1 classes"):
        brier_score([0, 0], [[1, 0], [1, 0]])


def test_metrics_check_their_input():
    with pytest.raises(ValueError, match=r"shape \(2, 3\).*2 classes"):
        expected_calibration_error([0, 1], np.ones((2, 3)) / 3)
    with pytest.raises(ValueError, match="strategy='even'"):
        expected_calibration_error([0, 1], np.ones((2, 2)) / 2, strategy="even")
    with pytest.raises(ValueError, match="inconsistent"):
        expected_calibration_error([0, 1, 1], np.ones((2, 2)) / 2)
    assert expected_calibration_error([0, 0], [[1, 0], [1, 0]], classes=[0, 1]) == 0


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
