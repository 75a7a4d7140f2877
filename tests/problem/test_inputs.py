"""Scales of inputs: what they learn from weighted rows, and what they leave alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.stats import norm

from leastwise.problem.inputs import KNOTS, SCALES, Inputs, weighted_median

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(5, 2, 60), RNG.lognormal(0, 3, 60), np.full(60, 7.0), RNG.integers(0, 3, 60)])
ONES = np.ones(60)


def test_standard_has_mean_0_and_variance_1_and_drops_constant_columns():
    Z = Inputs.fit("standard", X, ONES)(X)
    assert Z.shape == (60, 3)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(Z.var(axis=0), 1)


def test_robust_is_the_standardised_asinh():
    x = X[:, 1]
    median = np.median(x)
    bent = np.arcsinh((x - median) / np.median(np.abs(x - median)))
    Z = Inputs.fit("robust", X, ONES)(X)
    np.testing.assert_allclose(Z[:, 1], (bent - bent.mean()) / bent.std())


def test_robust_uses_mean_deviations_where_most_values_are_equal():
    x = np.r_[np.zeros(50), RNG.normal(size=10)][:, None]
    Z = Inputs.fit("robust", x, ONES)(x)
    bent = np.arcsinh(x / np.abs(x).mean())
    np.testing.assert_allclose(Z, (bent - bent.mean()) / bent.std())


def test_quantiles_are_normal_scores_of_mid_ranks():
    Z = Inputs.fit("quantile", X, ONES)(X)
    rank = (np.argsort(np.argsort(X[:, 1])) + 0.5) / 60
    np.testing.assert_allclose(Z[:, 1], norm.ppf(rank))


def test_quantiles_go_on_beyond_the_training_values():
    inputs = Inputs.fit("quantile", X[:, :1], ONES)
    low, high = X[:, 0].min(), X[:, 0].max()
    Z = inputs(np.array([[low - 1], [low], [high], [high + 1], [high + 2]])).ravel()
    assert np.all(np.diff(Z) > 0)
    np.testing.assert_allclose(Z[4] - Z[3], Z[3] - Z[2])


def test_quantiles_of_many_values_use_some_of_them():
    x = RNG.normal(size=(5000, 1))
    inputs = Inputs.fit("quantile", x, np.ones(5000))
    assert inputs.rule.knots.shape[1] <= KNOTS
    rank = (np.argsort(np.argsort(x[:, 0])) + 0.5) / 5000
    np.testing.assert_allclose(inputs(x)[:, 0], norm.ppf(rank), atol=0.02)


@pytest.mark.parametrize("scale", list(SCALES))
def test_weights_are_repeated_rows(scale):
    w = RNG.integers(1, 4, 60)
    weighted, repeated = Inputs.fit(scale, X, w), Inputs.fit(scale, np.repeat(X, w, axis=0), np.ones(w.sum()))
    np.testing.assert_allclose(weighted(X), repeated(X))


@pytest.mark.parametrize("scale", list(SCALES))
def test_units_and_origins_make_no_difference(scale):
    other = X * [1e-5, 1e4, 1, 3] + [100, -5, 0, 2]
    np.testing.assert_allclose(
        Inputs.fit(scale, X, ONES)(X), Inputs.fit(scale, other, ONES)(other), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("scale", list(SCALES))
def test_the_order_of_rows_makes_no_difference(scale):
    order, w = RNG.permutation(60), RNG.uniform(0.5, 2, 60)
    np.testing.assert_allclose(Inputs.fit(scale, X, w)(X), Inputs.fit(scale, X[order], w[order])(X), atol=1e-12)


@pytest.mark.parametrize("scale", list(SCALES))
@given(column=arrays(float, 12, elements=st.floats(-1e300, 1e300)))
def test_any_finite_column_becomes_finite_and_monotone(scale, column):
    x = np.column_stack([column, np.arange(12.0)])
    Z = Inputs.fit(scale, x, np.ones(12))(x)
    assert np.isfinite(Z).all()
    if Z.shape[1] == 2:
        order = np.argsort(column)
        assert np.all(np.diff(Z[order, 0]) >= 0)


@pytest.mark.parametrize("scale", [name for name, rule in SCALES.items() if rule.for_sparse])
def test_sparse_rows_stay_sparse_and_are_not_centred(scale):
    S = sparse.random_array((40, 6), density=0.3, random_state=0, format="csr")
    Z = Inputs.fit(scale, S, np.ones(40))(S)
    assert sparse.issparse(Z)
    assert Z.nnz == S.nnz
    np.testing.assert_allclose(np.sqrt(Z.power(2).mean(axis=0)), 1)


def test_precision_is_kept():
    x = X.astype(np.float32)
    for scale in SCALES:
        assert Inputs.fit(scale, x, ONES)(x).dtype == np.float32


def test_feature_weights_multiply_scaled_columns():
    inputs = Inputs.fit("standard", X, ONES)
    np.testing.assert_allclose(inputs.with_weights(np.array([2.0, 0, 1]))(X), inputs(X) * [2, 0, 1])


def test_without_a_scale_rows_stay_as_they_are():
    inputs = Inputs.fit(None, X, ONES)
    assert inputs.identity
    assert inputs(X) is X


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 3)), min_size=1, max_size=9))
def test_weighted_medians_are_medians_of_repeated_values(pairs):
    x, w = np.array(pairs).T
    found = weighted_median(x[:, None].astype(float), w / w.sum())
    np.testing.assert_allclose(found, np.median(np.repeat(x, w)))
