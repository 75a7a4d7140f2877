"""The expected calibration error and the Brier score."""

import numpy as np
import pytest

from leastwise.metrics.calibration import expected_calibration_error
from leastwise.metrics.probabilities import brier_score


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
