"""Inputs: scales, missing values and categories; what is learned from weighted rows, and what is left alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.stats import norm, rankdata

from leastwise.problem.inputs import (
    MOST_KNOTS,
    OWN_COLUMNS,
    SCALES,
    VALUES_PER_KNOT,
    Inputs,
    OneHot,
    have_one_unit,
    weighted_median,
)

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
    x = np.repeat(np.arange(7.0) ** 3, [1, 5, 9, 20, 15, 8, 2])[:, None]
    Z = Inputs.fit("quantile", x, ONES)(x)
    np.testing.assert_allclose(Z[:, 0], norm.ppf((rankdata(x) - 0.5) / 60))


def test_quantiles_of_few_rows_are_a_smooth_curve_through_some_scores():
    """Between the scores of ten values it is straight: the ranks of 60 rows do not bend it from row to row."""
    rule = Inputs.fit("quantile", X, ONES).rule
    assert rule.knots.shape[1] == 10
    ranks = (rankdata(X[:, 1]) - 0.5) / 60
    np.testing.assert_allclose(
        rule.scores[1], norm.ppf(ranks[np.argsort(X[:, 1])][np.searchsorted(np.sort(X[:, 1]), rule.knots[1])])
    )
    np.testing.assert_allclose(np.diff(rule.scores[1]), np.ptp(rule.scores[1]) / 9, atol=0.25)
    assert rule.knots[1, [0, -1]].tolist() == [X[:, 1].min(), X[:, 1].max()]


def test_quantiles_go_on_beyond_the_training_values():
    inputs = Inputs.fit("quantile", X[:, :1], ONES)
    low, high = X[:, 0].min(), X[:, 0].max()
    Z = inputs(np.array([[low - 1], [low], [high], [high + 1], [high + 2]])).ravel()
    assert np.all(np.diff(Z) > 0)
    np.testing.assert_allclose(Z[4] - Z[3], Z[3] - Z[2])


def test_quantiles_of_many_values_use_some_of_them():
    x = RNG.normal(size=(5000, 1))
    inputs = Inputs.fit("quantile", x, np.ones(5000))
    assert inputs.rule.knots.shape[1] <= 5000 // VALUES_PER_KNOT <= MOST_KNOTS
    rank = (np.argsort(np.argsort(x[:, 0])) + 0.5) / 5000
    np.testing.assert_allclose(inputs(x)[:, 0], norm.ppf(rank), atol=0.03)


@pytest.mark.parametrize("scale", list(SCALES))
def test_weights_are_repeated_rows(scale):
    w = RNG.integers(1, 4, 60)
    weighted, repeated = Inputs.fit(scale, X, w), Inputs.fit(scale, np.repeat(X, w, axis=0), np.ones(w.sum()))
    np.testing.assert_allclose(weighted(X), repeated(X), atol=1e-12)


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
    S = sparse.csr_array(sparse.random(40, 6, density=0.3, random_state=0))
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


# ------------------------------------------------------------------ missing values

GAPS = np.where(RNG.random((60, 2)) < 0.2, np.nan, X[:, :2])
RULES = [*SCALES, None]


def scaled_by_hand(scale, x):
    """One column: the rule of the numbers that are there, applied to these and to their median for the others."""
    known = x[~np.isnan(x)][:, None]
    inputs = Inputs.fit(scale, known, np.ones(len(known)))
    return inputs(np.where(np.isnan(x), np.median(known), x)[:, None])[:, 0]


def standardised(x):
    return (x - x.mean()) / x.std()


@pytest.mark.parametrize("scale", RULES)
def test_a_missing_number_is_the_median_and_has_a_column(scale):
    inputs = Inputs.fit(scale, GAPS, ONES)
    Z = inputs(GAPS)
    assert Z.shape == (60, 4)
    for j in range(2):
        np.testing.assert_allclose(Z[:, j], scaled_by_hand(scale, GAPS[:, j]))
        absent = np.isnan(GAPS[:, j]).astype(float)
        # As far apart as the standardised column has it; where it is zero does not matter.
        np.testing.assert_allclose(Z[:, 2 + j] - Z[:, 2 + j].mean(), standardised(absent), atol=1e-12)


@pytest.mark.parametrize("scale", RULES)
def test_a_number_that_is_missing_only_later_is_the_median(scale):
    inputs, later = Inputs.fit(scale, X, ONES), X.copy()
    later[3, 1] = np.nan
    filled = X.copy()
    filled[3, 1] = np.median(X[:, 1])
    np.testing.assert_allclose(inputs(later), inputs(filled))
    assert inputs.missing is None


@pytest.mark.parametrize("scale", RULES)
def test_columns_without_any_number_drop_out(scale):
    rows = np.column_stack([X[:, 0], np.full(60, np.nan), GAPS[:, 1]])
    Z = Inputs.fit(scale, rows, ONES)(rows)
    np.testing.assert_array_equal(Z, Inputs.fit(scale, rows[:, [0, 2]], ONES)(rows[:, [0, 2]]))
    later = rows.copy()
    later[:, 1] = 5
    np.testing.assert_array_equal(Inputs.fit(scale, rows, ONES)(later), Z)


def test_a_constant_with_missing_values_keeps_the_column_that_says_so():
    rows = np.array([[1.0, 3], [np.nan, 4], [1, 5], [np.nan, 6]])
    Z = Inputs.fit("standard", rows, np.ones(4))(rows)
    np.testing.assert_allclose(Z[:, 1], [0, 2, 0, 2])
    assert Z.shape == (4, 2)


@pytest.mark.parametrize("scale", RULES)
def test_weights_are_repeated_rows_with_missing_values_and_categories(scale):
    w = RNG.integers(1, 4, 60)
    rows = np.column_stack([GAPS, np.where(RNG.random(60) < 0.1, np.nan, RNG.integers(0, 4, 60))])
    weighted = Inputs.fit(scale, rows, w, [2])
    repeated = Inputs.fit(scale, np.repeat(rows, w, axis=0), np.ones(w.sum()), [2])
    np.testing.assert_allclose(weighted(rows), repeated(rows), atol=1e-12)


def test_precision_is_kept_with_missing_values():
    rows = GAPS.astype(np.float32)
    for scale in RULES:
        Z = Inputs.fit(scale, rows, ONES)(rows)
        assert Z.dtype == np.float32
        np.testing.assert_allclose(Z, Inputs.fit(scale, GAPS, ONES)(GAPS), rtol=1e-5, atol=1e-5)


@given(arrays(float, (8, 2), elements=st.one_of(st.floats(-1e300, 1e300), st.just(np.nan))))
def test_any_column_with_missing_values_becomes_finite(rows):
    for scale in RULES:
        assert np.isfinite(Inputs.fit(scale, rows, np.ones(8))(rows)).all()


# ---------------------------------------------------------------------- categories

CODES = np.array([0, 0, 1, 2, 2, 2, np.nan, 0])


def test_a_category_is_as_wide_as_a_standardised_column():
    Z = Inputs.fit("standard", CODES[:, None], np.ones(8), [0])(CODES[:, None])
    assert Z.shape == (8, 5), "three values, missing ones, and values that are not known"
    distances = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(distances.mean(), 2)
    assert len(np.unique(distances.round(12))) == 2


def test_unknown_values_are_as_far_from_the_known_ones_as_these_from_each_other():
    inputs = Inputs.fit(None, CODES[:, None], np.ones(8), [0])
    Z, new = inputs(CODES[:, None]), inputs(np.array([[-1.0], [7.0]]))
    between = ((Z[0] - Z[2]) ** 2).sum()
    np.testing.assert_allclose(((Z - new[0]) ** 2).sum(axis=1), between)
    np.testing.assert_array_equal(new[0], new[1])


def test_a_value_that_is_missing_only_later_is_an_unknown_one():
    inputs = Inputs.fit(None, CODES[:6, None], np.ones(6), [0])
    np.testing.assert_array_equal(inputs(np.array([[np.nan]])), inputs(np.array([[-1.0]])))


def test_a_value_with_no_weight_left_is_an_unknown_one():
    one = OneHot.fit(0, np.array([0, 2.0, 0]), np.ones(3))
    np.testing.assert_array_equal(one.transform(np.array([1.0])), one.transform(np.array([-1.0])))


@pytest.mark.parametrize("codes", [np.zeros(8), np.full(8, np.nan)])
def test_constant_categories_drop_out(codes):
    rows = np.column_stack([codes, X[:8, 0]])
    assert Inputs.fit("standard", rows, np.ones(8), [0])(rows).shape == (8, 1)


def test_rare_values_of_many_share_a_column():
    codes = np.r_[np.repeat(np.arange(OWN_COLUMNS), 3), np.arange(OWN_COLUMNS, 70)].astype(float)
    one = OneHot.fit(0, codes, np.ones(len(codes)))
    assert one.width == OWN_COLUMNS + 2
    Z = one.transform(codes)
    assert len(np.unique(Z, axis=0)) == OWN_COLUMNS + 1
    np.testing.assert_allclose(((Z[:, None] - Z[None]) ** 2).sum(axis=2).mean(), 2)


def test_no_rule_touches_the_columns_of_categories():
    rows = np.column_stack([X[:8, 1], CODES])
    plain = Inputs.fit(None, rows, np.ones(8), [1])(rows)[:, 1:]
    for scale in SCALES:
        np.testing.assert_array_equal(Inputs.fit(scale, rows, np.ones(8), [1])(rows)[:, 1:], plain)


def test_feature_weights_multiply_all_columns():
    rows = np.column_stack([GAPS[:8], CODES])
    inputs = Inputs.fit("standard", rows, np.ones(8), [2])
    Z = inputs(rows)
    weights = np.arange(1.0, Z.shape[1] + 1)
    np.testing.assert_allclose(inputs.with_weights(weights)(rows), Z * weights)


def test_inputs_are_compared_with_all_that_they_learned():
    rows = np.column_stack([GAPS[:8], CODES])
    inputs = Inputs.fit("standard", rows, np.ones(8), [2])
    assert inputs.same_as(Inputs.fit("standard", rows, np.ones(8), [2]))
    assert not inputs.same_as(Inputs.fit("standard", rows, np.r_[2, np.ones(7)], [2]))
    assert Inputs.fit(None, X, ONES).same_as(Inputs.fit(None, X[:30], ONES[:30])), "medians alone are no difference"
    assert not Inputs.fit(None, rows, np.ones(8), [2]).same_as(Inputs.fit(None, rows[:7], np.ones(7), [2]))


# ------------------------------------------------------------------- a common unit


def test_pixels_and_words_have_one_unit_and_a_table_has_many():
    pixels = RNG.integers(0, 17, (50, 12)).astype(float)
    pixels[:, 3] = 4.0  # a constant column tells nothing
    pixels[:, 5] = pixels[:, 5] > 15  # at the border of a picture
    words = (RNG.random((80, 40)) < np.linspace(0.05, 0.9, 40)).astype(float)
    table = RNG.normal(size=(50, 12)) * 10.0 ** RNG.integers(-3, 4, 12)
    assert have_one_unit(pixels)
    assert have_one_unit(words)
    assert not have_one_unit(table)
    assert not have_one_unit(pixels[:, :5])  # four columns that vary


def test_the_unit_of_all_columns_makes_no_difference():
    pixels = RNG.integers(0, 17, (50, 8)).astype(float)
    for factor in (1e-300, 1e300):
        assert have_one_unit(pixels * factor)


def test_categories_and_missing_values_have_no_unit():
    pixels = RNG.integers(0, 17, (50, 8)).astype(float)
    pixels[::7, 2] = np.nan
    codes = RNG.integers(0, 500, (50, 8)).astype(float)
    assert have_one_unit(np.hstack([pixels, codes]), categories=range(8, 16))
    assert not have_one_unit(np.hstack([pixels, codes]))
    empty = np.full((50, 1), np.nan)
    assert have_one_unit(np.hstack([pixels, empty]))


@pytest.mark.parametrize("scale", [None, *SCALES])
def test_subnormal_numbers_become_finite(scale):
    rows = np.zeros((8, 2))
    rows[0, 0] = 2.2e-313
    rows[1, 1] = np.nan
    assert np.isfinite(Inputs.fit(scale, rows, np.ones(8))(rows)).all()
