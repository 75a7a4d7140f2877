"""Relations of labels: correlations are what loops give, learned ones find what is there, given ones are checked."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from leastwise.datasets import make_rotated_labels
from leastwise.problem import label_coupling as similarity
from leastwise.problem.coupling import Pairwise, Shared
from leastwise.problem.label_coupling import FEW
from leastwise.problem.similarity_checks import check_label_similarity

BINARY = np.array([0, 1])


def correlation(codes, W, classes, size=None):
    return similarity.correlation(codes, W, classes, size or len(codes))


def learned_relation(codes, W, classes, size=None):
    return similarity.learned_relation(codes, W, classes, size or len(codes))


def binary(T):
    return (BINARY,) * T


def table(n, T, seed=0, classes=2, unknown=0.0):
    """Codes of related labels, weights, and their places unknown."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n, 1))
    codes = np.clip(np.floor(rng.normal(size=(n, T)) + common + classes / 2), 0, classes - 1).astype(int)
    codes[rng.random((n, T)) < unknown] = -1
    return codes, rng.uniform(0.5, 2, size=(n, T)) * (codes >= 0)


def by_loops(codes, W, classes):
    """Pair by pair, class by class, from the definition; no shrinkage."""
    T = codes.shape[1]
    R = np.eye(T)
    for s in range(T):
        for t in range(T):
            both = (codes[:, s] >= 0) & (codes[:, t] >= 0)
            if s == t or not both.any():
                continue
            w = np.sqrt(W[both, s] * W[both, t])
            a, b = np.asarray(classes[s])[codes[both, s]], np.asarray(classes[t])[codes[both, t]]
            cov = lambda p, q, w=w: np.average(p * q, weights=w) - np.average(p, weights=w) * np.average(q, weights=w)  # noqa: E731
            top = sum(cov(a == v, b == v) for v in classes[s] if v in list(classes[t]))
            below = sum(cov(a == v, a == v) for v in classes[s]) * sum(cov(b == v, b == v) for v in classes[t])
            R[s, t] = top / np.sqrt(below) if below > 1e-12 else 0
    return R


# --- correlation ---


@given(seed=st.integers(0, 1000), T=st.integers(1, 8))
def test_complete_binary_labels_have_pearsons_correlation(seed, T):
    codes, _ = table(60, T, seed)
    codes[:2] = [[0], [1]]  # none is constant
    R = correlation(codes, np.ones(codes.shape), binary(T))
    np.testing.assert_allclose(R, np.atleast_2d(np.corrcoef(codes, rowvar=False)), atol=1e-12)


@given(seed=st.integers(0, 1000), unknown=st.sampled_from([0.0, 0.2, 0.4]))
def test_unknown_entries_weights_and_several_classes_are_as_in_loops(seed, unknown):
    codes, W = table(150, 6, seed, classes=3, unknown=unknown)
    codes[:, :2] = np.minimum(codes[:, :2], 1)
    classes = (
        BINARY,
        BINARY,
        np.array([0, 1, 2]),
        np.array([2, 1, 5]),
        np.array(["a", "b", "c"]),
        np.array([1, 7, 9]),
    )
    np.testing.assert_allclose(correlation(codes, W, classes), by_loops(codes, W, classes), atol=1e-10)


def test_labels_without_a_class_in_common_are_not_correlated():
    codes, W = table(100, 2)
    R = correlation(codes, W, (BINARY, np.array(["no", "yes"])))
    np.testing.assert_array_equal(R, np.eye(2))
    assert correlation(codes, W, binary(2))[0, 1] > 0.1


def test_classes_are_matched_by_value_not_by_code():
    codes, W = table(100, 2)
    codes[:, 1] = codes[:, 0]
    same = correlation(codes, W, (np.array(["no", "yes"]), np.array(["no", "yes"])))
    turned = correlation(codes, W, (np.array(["no", "yes"]), np.array(["yes", "no"])))
    np.testing.assert_allclose([same[0, 1], turned[0, 1]], [1, -1])


def test_either_class_of_binary_labels_says_the_same():
    """One more label, with a third class, keeps the way of two classes from being taken."""
    codes, W = table(100, 4, unknown=0.2)
    short = correlation(codes, W, binary(4))
    long = correlation(codes, W, (*binary(3), np.array([0, 1, 2])))
    np.testing.assert_allclose(short, long, atol=1e-12)


@given(seed=st.integers(0, 1000))
def test_weights_are_copies_and_their_unit_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    codes, _ = table(80, 5, seed, unknown=0.2)
    times = rng.integers(0, 4, size=80)
    W = times[:, None] * (codes >= 0.0)
    copies = np.repeat(codes, times, axis=0)
    keep = times > 0
    one, size = (copies >= 0).astype(float), int(keep.sum())
    for function in (correlation, learned_relation):
        S = function(codes, W, binary(5), size)
        np.testing.assert_allclose(S, function(copies, one, binary(5), size), atol=1e-10)
        np.testing.assert_allclose(S, function(codes, 1e-4 * W, binary(5), size), atol=1e-10)
        np.testing.assert_allclose(S, function(codes[keep], W[keep], binary(5), size), atol=1e-10)


@pytest.mark.parametrize("function", [correlation, learned_relation])
@given(seed=st.integers(0, 1000))
def test_other_orders_of_labels_and_rows(function, seed):
    rng = np.random.default_rng(seed)
    codes, W = table(60, 6, seed, unknown=0.3)
    order, rows = rng.permutation(6), rng.permutation(60)
    R = function(codes, W, binary(6))
    there = function(codes[np.ix_(rows, order)], W[np.ix_(rows, order)], binary(6))
    np.testing.assert_allclose(there, R[np.ix_(order, order)], atol=1e-9)
    np.testing.assert_array_equal(R, function(codes, W, binary(6)))


@pytest.mark.parametrize("common", [0, 1, 5, FEW - 1, FEW])
def test_few_rows_in_common_count_less(common):
    codes = np.full((60, 2), -1)
    codes[:30, 0] = np.arange(30) % 2
    codes[30 - common : 60 - common, 1] = np.arange(30 - common, 60 - common) % 2
    R = correlation(codes, (codes >= 0).astype(float), binary(2), 60 - common)
    varied = common > 1
    np.testing.assert_allclose(R[0, 1], min(1, common / FEW) * varied, atol=1e-12)


def test_constant_labels_are_not_correlated():
    codes, W = table(500, 4, unknown=0.2)
    codes[:, 1] = np.minimum(codes[:, 1], 0)
    codes[:, 3] = np.where(codes[:, 3] >= 0, 1, -1)
    W[:, 2] = 0  # not known at all
    for classes in (binary(4), (BINARY, np.array([0]), BINARY, BINARY)):
        R, S = correlation(codes, W, classes), learned_relation(codes, W, classes)
        np.testing.assert_array_equal(R, np.eye(4))
        np.testing.assert_array_equal(S, np.eye(4))


def test_it_is_the_papers_similarity_of_the_rotated_labels():
    data = make_rotated_labels(8, 5000, n_features=2, random_state=0)
    R = correlation(data.Y, np.ones(data.Y.shape), binary(8))
    np.testing.assert_allclose(R, data.correlation, atol=0.05)
    B = Pairwise(np.ones(8), np.maximum(R, 0)).at(0.5).matrix
    assert np.linalg.eigvalsh(B)[0] > 0


# --- learned ---


def planted(n, seed=0, noise=0.1):
    """Labels 0-2 are alike but for label 2, the contrary; 3 and 4 are alike; 5 and 6 are chance."""
    rng = np.random.default_rng(seed)
    first, second = rng.random((2, n)) < 0.4
    Y = np.column_stack([first, first, ~first, second, second, *(rng.random((2, n)) < 0.5)])
    Y[:, :5] ^= rng.random((n, 5)) < noise
    return Y.astype(int)


@pytest.mark.parametrize("seed", range(5))
def test_groups_and_contraries_are_found(seed):
    Y = planted(300, seed)
    S = learned_relation(Y, np.ones(Y.shape), binary(7))
    sign = np.zeros((7, 7))
    sign[:3, :3] = np.outer([1, 1, -1], [1, 1, -1])
    sign[3:5, 3:5] = 1
    np.fill_diagonal(sign, 1)
    unit = S / np.sqrt(np.outer(np.diag(S), np.diag(S)))
    assert (unit * sign)[sign != 0].min() > 0.6
    assert np.abs(unit[sign == 0]).max() < 0.15
    assert (unit[sign == 0] == 0).sum() > 20  # of 32


@given(seed=st.integers(0, 10_000), T=st.integers(1, 12), n=st.integers(1, 80), unknown=st.sampled_from([0.0, 0.5]))
def test_learned_is_a_covariance_of_mean_variance_one(seed, T, n, unknown):
    codes, W = table(n, T, seed, unknown=unknown)
    S = learned_relation(codes, W, binary(T))
    np.testing.assert_array_equal(S, S.T)
    np.testing.assert_allclose(np.trace(S), T)
    assert np.isfinite(S).all()
    assert np.linalg.eigvalsh(S)[0] > -1e-10


def test_learned_follows_its_formula_where_nothing_has_to_be_made_semidefinite():
    Y = planted(300)
    T = Y.shape[1]
    J = np.corrcoef(Y, rowvar=False)
    for s in range(T):
        for t in range(T):
            J[s, t] *= 1 if s == t else max(0, 1 - 2 * np.log(T) / (300 * J[s, t] ** 2))
    assert np.linalg.eigvalsh(J)[0] > 0
    S = J + J @ J
    np.testing.assert_allclose(learned_relation(Y, np.ones(Y.shape), binary(T)), S * T / np.trace(S), atol=1e-12)


def test_labels_that_are_not_connected_stay_so_where_eigenvalues_are_cut():
    """Of labels known in different rows, correlations need not fit together: 0 ~ 1 ~ 2, but 0 is not 2."""
    rng = np.random.default_rng(0)
    codes = np.full((300, 5), -1)
    y = rng.integers(0, 2, 100)
    codes[:100, 0], codes[:100, 1] = y, y
    codes[100:200, 1], codes[100:200, 2] = y, y
    codes[200:, 0], codes[200:, 2] = y, 1 - y
    z = rng.integers(0, 2, 300)
    codes[:, 3], codes[:, 4] = z, z
    W = (codes >= 0).astype(float)
    assert np.linalg.eigvalsh(correlation(codes, W, binary(5)))[0] < -0.5
    S = learned_relation(codes, W, binary(5))
    assert np.linalg.eigvalsh(S)[0] > -1e-12
    np.testing.assert_array_equal(S[:3, 3:], 0)
    np.testing.assert_array_equal(np.sign(S[:3, :3]), [[1, 1, -1], [1, 1, 1], [-1, 1, 1]])


def test_chance_is_no_relation():
    """The 435 correlations of 30 unrelated labels: a few of the largest are left, and small."""
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, size=(200, 30))
    S = learned_relation(Y, np.ones(Y.shape), binary(30))
    R = np.corrcoef(Y, rowvar=False) - np.eye(30)
    assert np.linalg.norm(S - np.diag(np.diag(S))) < 0.3 * np.linalg.norm(R)


@pytest.mark.parametrize("seed", range(3))
def test_learned_relation_tells_the_truth_better_than_pairwise_similarities(seed):
    """Ridge fits of the rotated labels, each at its best ridge on test rows."""
    data = make_rotated_labels(12, 500, n_features=30, noise=0.2, random_state=seed)
    X, Y, truth = data.X, 2.0 * data.Y - 1, 2 * data.posterior(data.X) - 1
    g, U = np.linalg.eigh(X[:150] @ X[:150].T)
    across = X[150:] @ X[:150].T @ U

    def error(B):
        b, V = np.linalg.eigh(B)
        b = np.maximum(b, 0)
        fits = [across @ (U.T @ Y[:150] @ V * b / (np.outer(g, b) + rho)) @ V.T for rho in np.geomspace(1, 1e4, 13)]
        return min(np.mean((F - truth[150:]) ** 2) for F in fits)

    W, one = np.ones((150, 12)), np.ones(12)
    codes = data.Y[:150]
    R = correlation(codes, W, binary(12))
    paper = min(error(Pairwise(one, np.maximum(R, 0)).at(s).matrix) for s in (0.1, 0.5, 0.9, 0.99))
    record = error(Shared(one, learned_relation(codes, W, binary(12))).at(0.99).matrix)
    assert record < paper - 0.01
    assert paper < error(np.eye(12)) - 0.01


# --- given ---

NAMES = ("sun", "rain", "wind")
MATRIX = np.array([[9.0, 2, 0], [2, 0, 1], [0, 1, 0]])
EXPECTED = np.array([[1, 1, 0], [1, 1, 0.5], [0, 0.5, 1]])
FRAME = pd.DataFrame(MATRIX, NAMES, NAMES)
EDGES = [("sun", "rain", 2), ("wind", "rain")]


def dense(S):
    return S.toarray() if sparse.issparse(S) else S


@pytest.mark.parametrize(
    "value",
    [
        MATRIX,
        MATRIX.tolist(),
        MATRIX.astype(object),
        MATRIX.astype(int),
        FRAME,
        FRAME.loc[["wind", "sun", "rain"], ["rain", "wind", "sun"]],
        pd.DataFrame(np.eye(4), [*NAMES, "hail"], [*NAMES, "hail"]).add(FRAME, fill_value=0),
        sparse.csr_matrix(MATRIX),
        sparse.coo_array(MATRIX),
        EDGES,
        [*EDGES, ("rain", "sun", 2.0), ("sun", "sun", 3)],
    ],
)
def test_every_form_gives_the_same_similarities(value):
    S = check_label_similarity(value, NAMES, 3)
    np.testing.assert_allclose(dense(S), EXPECTED)
    assert sparse.issparse(S) == (sparse.issparse(value) or (isinstance(value, list) and isinstance(value[0], tuple)))


def test_the_given_matrix_is_left_as_it_is():
    given_matrix = MATRIX.copy()
    check_label_similarity(given_matrix, NAMES, 3)
    np.testing.assert_array_equal(given_matrix, MATRIX)


def test_a_frame_without_an_index_has_its_rows_in_the_order_of_its_columns():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"rain": [0.0, 2, 1], "sun": [2.0, 0, 0], "wind": [1.0, 0, 0]})
    np.testing.assert_allclose(check_label_similarity(frame, NAMES, 3), EXPECTED)
    with pytest.raises(ValueError, match=r"has 2 rows and 3 columns.*one row for every column"):
        check_label_similarity(frame[:2], NAMES, 3)


@pytest.mark.parametrize("value", [[], np.zeros((3, 3)), sparse.csr_array((3, 3)), np.eye(3), [("sun", "rain", 0)]])
def test_no_similarity_at_all_is_possible(value):
    np.testing.assert_array_equal(dense(check_label_similarity(value, NAMES, 3)), np.eye(3))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.eye(2), r"has shape \(2, 2\); for 3 labels it must be a matrix of shape \(3, 3\)"),
        (sparse.csr_array(np.eye(2)), r"has shape \(2, 2\)"),
        (0.5, r"similarity=0.5; for 3 labels"),
        (-MATRIX, r"is -9 between 'sun' and 'sun': every value.*numpy.maximum"),
        (sparse.csr_array(-MATRIX), r"is -9 between 'sun' and 'sun'"),
        (np.where(MATRIX == 1, np.nan, MATRIX), r"is nan between 'rain' and 'wind'"),
        (sparse.csr_array(np.where(MATRIX == 1, np.inf, MATRIX)), r"is inf between 'rain' and 'wind'"),
        (np.triu(MATRIX), r"not symmetric: 2 from 'sun' to 'rain', 0 back. Use \(S \+ S.T\) / 2"),
        (sparse.csr_array(np.triu(MATRIX)), r"not symmetric: 2 from 'sun' to 'rain', 0 back"),
        (MATRIX * 1j, "must hold real numbers; it holds values of type complex128"),
        (MATRIX.astype(str), "must hold real numbers"),
        ([["a", "b"], ["c", "d"]], "must hold real numbers"),
        (FRAME.drop(columns="rain"), r"no column, or more than one, for the labels \['rain'\]; its columns are"),
        (FRAME.drop(index="sun"), r"no row, or more than one, for the labels \['sun'\]"),
        (FRAME.iloc[[0, 0, 1, 2]], r"no row, or more than one, for the labels \['sun'\]"),
        ([("sun", "hail")], r"edge \('sun', 'hail'\), but 'hail' is not a label; the labels are \['sun', 'rain'"),
        ([("sun", "rain", -1)], "weight must be a finite number of 0 or more"),
        ([("sun", "rain", np.nan)], "weight must be a finite number"),
        ([("sun", "rain", "2")], "weight must be a finite number"),
        ([("sun", "rain", 1, 2)], r"edges are \(label, label\) or \(label, label, weight\)"),
        ([("sun", "rain"), ("rain", "sun", 3)], "two edges between 'rain' and 'sun', of weights 1 and 3: give one"),
    ],
)
def test_what_is_wrong_is_named(value, message):
    with pytest.raises(ValueError, match=message):
        check_label_similarity(value, NAMES, 3)


def test_a_graph_object_is_told_how_to_become_a_list():
    class Graph:
        edges = ()

    with pytest.raises(ValueError, match=r"graph\.edges\(data='weight', default=1\)"):
        check_label_similarity(Graph(), NAMES, 3)
