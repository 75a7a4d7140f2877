"""Rows with many labels: a subset of the labels, targets in place of unknown ones, and scores without any centre."""

from types import SimpleNamespace

import numpy as np
import pytest

from leastwise.linalg.sylvester import untied
from leastwise.solvers.label_evaluators import IncompleteLabelEvaluator, LabelEvaluator, LabelRows
from leastwise.solvers.label_modes import CoupledLabels, LabelGroup

#: Three labels of two, three and two classes; -1 is unknown, and nothing is known of the last one.
CODES = np.array([[0, 2, -1], [1, -1, -1], [0, 0, -1], [-1, 2, -1]])
STARTS = np.array([0, 2, 5, 7])


def label_rows():
    values = np.zeros((4, 7))
    for t, start in enumerate(STARTS[:-1]):
        known = CODES[:, t] >= 0
        values[np.flatnonzero(known), start + CODES[known, t]] = 1
    entries = (CODES >= 0) * np.array([[2.0], [1.0], [1.0], [1.0]])
    each = np.arange(4)
    return LabelRows(np.zeros((4, 1)), CODES, np.ones(4), each, each, values=values, starts=STARTS, entries=entries)


def test_a_subset_of_the_labels_has_their_columns():
    rows = label_rows()
    some = rows.take_labels(np.array([1, 2]))
    np.testing.assert_array_equal(some.values, rows.values[:, 2:])
    np.testing.assert_array_equal(some.starts, [0, 3, 5])
    np.testing.assert_array_equal(some.y, CODES[:, 1:])
    np.testing.assert_array_equal(some.entries, rows.entries[:, 1:])


def test_unknown_labels_get_the_shares_of_the_known_ones():
    rows = label_rows()
    filled = rows.filled()
    known = np.repeat(CODES >= 0, np.diff(STARTS), axis=1)
    np.testing.assert_array_equal(filled.values[known], rows.values[known])
    np.testing.assert_allclose(filled.values[3, :2], [3 / 4, 1 / 4])  # the first row counts twice
    np.testing.assert_allclose(filled.values[1, 2:5], [1 / 4, 0, 3 / 4])
    np.testing.assert_allclose(filled.values[:, 5:], 1 / 2)  # nothing known: equal shares


@pytest.mark.parametrize(("dtype", "alpha", "least"), [("float32", 1e-50, 1e-30), ("float64", 1e-50, 1e-50)])
def test_alpha_is_not_zero_in_single_precision(dtype, alpha, least):
    holder = SimpleNamespace(Z=np.zeros(1, dtype=dtype))
    assert LabelEvaluator.least(holder, alpha) == least
    assert np.dtype(dtype).type(least) > 0


@pytest.mark.parametrize("bias", [True, False])
def test_without_any_basis_function_the_scores_are_weighted_means(bias):
    rows = label_rows()
    group = LabelGroup(np.array([0]), np.array([[0], [1]]))
    holder = SimpleNamespace(Z=rows.values, rows=rows, settings=SimpleNamespace(bias=bias))
    coupled = CoupledLabels(group, untied(np.ones(1)))
    Theta, intercept, last = IncompleteLabelEvaluator.solve(holder, None, coupled, np.arange(4), 1.0)
    assert Theta.shape == (0, 2, 1)
    assert last is None
    np.testing.assert_allclose(intercept.ravel(), [3 / 4, 1 / 4] if bias else [0, 0])
