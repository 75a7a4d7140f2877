"""Sums over rows against arithmetic with fifty digits, where the kernel between the centres is almost singular."""

from functools import cache

import mpmath as mp
import numpy as np
import pytest
from sklearn.base import clone

from leastwise import LSPC, LSSVR, MultiLabelLSPC, load, merge, save
from leastwise.linalg.moments import Moments, Whitening, whitening

EPS = float(np.finfo(float).eps)
RNG = np.random.default_rng(3)
X = RNG.normal(size=(150, 2))
NEW = RNG.normal(size=(20, 2))
CENTERS = X[:30]
CODES = (X[:, 0] + 0.3 * RNG.normal(size=len(X)) > 0).astype(int)
VALUES = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=len(X))
LABELS = np.column_stack([CODES, X[:, 1] > 0.3, X[:, 0] + X[:, 1] > 0.5]).astype(int)
SIGMA = 2.0
PLAN = {"centers": CENTERS, "sigma": SIGMA, "cv": None, "calibration": None, "random_state": 0}


def kernel(A, B):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / (2 * SIGMA**2))


@cache
def long_kernel(first, last, new=False):
    """The kernel between some rows and the centres."""
    with mp.workdps(50):
        rows = [[mp.mpf(float(v)) for v in x] for x in (NEW if new else X)[first:last]]
        centers = [[mp.mpf(float(v)) for v in c] for c in CENTERS]
        scale = 2 * mp.mpf(SIGMA) ** 2
        return mp.matrix(
            [[mp.exp(-sum((a - b) ** 2 for a, b in zip(x, c, strict=True)) / scale) for c in centers] for x in rows]
        )


def long_solve(A, B):
    """``A^-1 B``: mpmath takes one column at a time."""
    X = mp.matrix(B.rows, B.cols)
    for j in range(B.cols):
        X[:, j] = mp.lu_solve(A, B[:, j])
    return X


def long_scores(Z, alpha, *, rows=(0, 150), w=None, bias=False, norm="function"):
    """Scores of the new rows by the model of some rows with weights w, with fifty digits."""
    first, last = rows
    w = np.ones(last - first) if w is None else w
    with mp.workdps(50):
        Phi, R = long_kernel(first, last), long_kernel(0, len(CENTERS))
        n, b = Phi.rows, Phi.cols
        weights = [mp.mpf(float(v)) for v in w]
        rho = mp.mpf(alpha) * sum(weights)
        D = mp.matrix(n, b + bias)
        for i in range(n):
            for j in range(b):
                D[i, j] = Phi[i, j]
            if bias:
                D[i, b] = 1
        left = D.T * mp.diag(weights)
        A = left * D
        for i in range(b):
            for j in range(b):
                A[i, j] += rho * (R[i, j] if norm == "function" else int(i == j))
        theta = long_solve(A, left * mp.matrix(np.asarray(Z, dtype=float).reshape(n, -1).tolist()))
        K = long_kernel(0, len(NEW), True)
        found = K * theta[:b, :]
        extra = [theta[b, j] if bias else 0 for j in range(found.cols)]
        return np.array([[float(found[i, j] + extra[j]) for j in range(found.cols)] for i in range(found.rows)])


def scores(model):
    """Scores of the new rows, without units and offsets of quantities."""
    return kernel(NEW, CENTERS) @ model.coef_ + model.intercept_


def allowed(alpha, more=1.0):
    """Rounding beside the ridge, and what kernel values in double precision are good for with these centres."""
    return 100 * more * EPS / alpha + 1e-6


def one_hot(codes):
    return np.eye(2)[codes]


@pytest.mark.parametrize("alpha", [1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("bias", [None, "shared"])
@pytest.mark.parametrize("way", ["moments", "stream", "direct"])
def test_scores_have_the_digits_that_the_ridge_leaves(way, bias, alpha):
    model = LSPC(**PLAN, alpha=alpha, bias=bias)
    if way == "stream":
        model.fit_stream(X, CODES, keep_rows=0, block_rows=37)
    else:
        model.set_params(solver="moments" if way == "moments" else "auto").fit(X, CODES)
    expected = long_scores(one_hot(CODES), alpha, bias=bias is not None)
    np.testing.assert_allclose(scores(model), expected, atol=allowed(alpha), rtol=0)


@pytest.mark.parametrize("alpha", [1e-6, 1e-8, 1e-10])
def test_penalty_on_the_coefficients(alpha):
    """Kernel values are the coordinates of this penalty, with squares of up to the number of centres."""
    model = LSPC(**PLAN, alpha=alpha, norm="coefficients").fit_stream(X, CODES, keep_rows=0)
    expected = long_scores(one_hot(CODES), alpha, norm="coefficients")
    np.testing.assert_allclose(scores(model), expected, atol=allowed(alpha, len(CENTERS)), rtol=0)


@pytest.mark.parametrize("alpha", [1e-5, 1e-7])
def test_rows_that_are_taken_away(alpha):
    """Of 150 rows 12 are left: rounding of the sums of all meets the ridge of the few."""
    model = LSPC(**PLAN, alpha=alpha).fit_stream(X, CODES, keep_rows=0)
    model.unfit(X[12:], CODES[12:])
    expected = long_scores(one_hot(CODES[:12]), alpha, rows=(0, 12))
    np.testing.assert_allclose(scores(model), expected, atol=allowed(alpha, 150 / 12), rtol=0)


def test_forgetting_then_adding():
    model = LSPC(**PLAN, alpha=1e-7).fit_stream(X[:100], CODES[:100], keep_rows=0)
    model.forget(0.25).partial_fit(X[100:], CODES[100:])
    w = np.r_[np.full(100, 0.25), np.ones(50)]
    np.testing.assert_allclose(scores(model), long_scores(one_hot(CODES), 1e-7, w=w), atol=allowed(1e-7), rtol=0)


def test_quantities():
    model = LSSVR(**{k: v for k, v in PLAN.items() if k != "calibration"}, kernel="rbf", alpha=1e-7)
    model.fit_stream(X, VALUES, keep_rows=0)
    Z = (VALUES - model.offset_) / model.unit_
    expected = long_scores(Z, 1e-7, bias=True)
    np.testing.assert_allclose(scores(model), expected, atol=10 * allowed(1e-7), rtol=0)


@pytest.mark.parametrize("solver", ["moments", "auto"])
def test_many_labels(solver):
    """Along the modes of the label matrix each problem has a ridge of its own."""
    model = MultiLabelLSPC(**PLAN, alpha=1e-7, sharing=0.5, similarity="shared", solver=solver).fit(X, LABELS)
    Z = np.column_stack([one_hot(LABELS[:, t]) for t in range(3)])
    B = 0.5 * np.eye(3) + 0.5  # sharing everywhere, and what is each label's own
    b, Q = np.linalg.eigh(B)
    expected = np.zeros((len(NEW), 6))
    for k in range(3):
        for c in (0, 1):
            F = long_scores(Z[:, c::2] @ Q[:, k], 1e-7 / b[k])
            expected[:, c::2] += F * Q[:, k]
    np.testing.assert_allclose(scores(model), expected, atol=allowed(1e-7), rtol=0)


def test_leave_one_out():
    alpha = 1e-7
    model = LSPC(**{**PLAN, "cv": "loo"}, alpha=alpha, solver="moments").fit(X, CODES)
    n = len(X)
    with mp.workdps(50):
        Phi, R = long_kernel(0, n), long_kernel(0, len(CENTERS))
        rho, Z = mp.mpf(alpha) * (n - 1), mp.matrix(one_hot(CODES).tolist())
        A, C = Phi.T * Phi + rho * R, Phi.T * Z
        for i in (0, 40, 149):
            own = Phi[i, :]
            theta = long_solve(A - own.T * own, C - own.T * Z[i, :])
            expected = np.array([float(v) for v in own * theta])
            np.testing.assert_allclose(model.heldout_scores_[i], expected, atol=1e-4, rtol=0)


# ------------------------------------------------------------------- coordinates


def test_coordinates_make_the_penalty_the_identity():
    R = kernel(CENTERS[:8], CENTERS[:8])
    known = whitening(R)
    P = known.pivots
    assert known.rank == 8
    np.testing.assert_allclose(known.T @ R[np.ix_(P, P)] @ known.T.T, np.eye(8), atol=1e-7)
    theta = known.unwhiten(np.eye(8)[:, :3])
    np.testing.assert_allclose(theta.T @ R @ theta, np.eye(3), atol=1e-7)
    Phi = kernel(X, CENTERS[:8])
    np.testing.assert_allclose(known.whiten(known.columns(Phi)) @ np.eye(8)[:, :3], Phi @ theta, atol=1e-9)


def test_centres_that_are_there_twice_are_left_out():
    twice = np.r_[CENTERS[:5], CENTERS[:5]]
    known = whitening(kernel(twice, twice))
    assert (known.rank, known.size, known.jitter) == (5, 10, 0.0)
    assert sorted(known.pivots % 5) == list(range(5))
    assert np.count_nonzero(known.unwhiten(np.ones((5, 1)))) == 5


def test_negative_eigenvalues_are_lifted():
    R = np.array([[1.0, 2.0], [2.0, 1.0]])
    known = whitening(R)
    assert known.jitter > 1
    theta = known.unwhiten(np.eye(2))
    np.testing.assert_allclose(theta.T @ (R + known.jitter * np.eye(2)) @ theta, np.eye(2), atol=1e-12)


def test_a_kernel_of_zeros():
    assert whitening(np.zeros((3, 3))).rank == 3


def test_sums_of_other_coordinates_are_refused():
    one = LSPC(**PLAN, alpha=1e-4).fit_stream(X, CODES, keep_rows=0).moments_
    other = LSPC(**{**PLAN, "sigma": 1.0}, alpha=1e-4).fit_stream(X, CODES, keep_rows=0).moments_
    plain = LSPC(**PLAN, alpha=1e-4, norm="coefficients").fit_stream(X, CODES, keep_rows=0).moments_
    for a, b in ((one, other), (one, plain), (plain, one)):
        with pytest.raises(ValueError, match="different coordinates"):
            _ = a + b
        with pytest.raises(ValueError, match="different coordinates"):
            _ = a - b
    with pytest.raises(ValueError, match="cannot be transformed"):
        plain.moved(np.eye(30), one.whitening)


def test_models_merge_whatever_the_order_of_their_pivots(monkeypatch):
    """Another machine may have chosen other pivots."""
    alpha = 1e-6
    model = LSPC(**PLAN, alpha=alpha)
    one = clone(model).fit_stream(X[:70], CODES[:70], keep_rows=0)

    def otherwise(R):
        order = np.arange(len(R))[::-1]
        known = whitening(R[np.ix_(order, order)])
        return Whitening(known.T, order[known.pivots], known.size)

    monkeypatch.setattr("leastwise.solvers.moments.whitening", otherwise)
    other = clone(model).fit_stream(X[70:], CODES[70:], keep_rows=0)
    assert not np.array_equal(one.moments_.whitening.pivots, other.moments_.whitening.pivots)
    expected = long_scores(one_hot(CODES), alpha)
    for parts in ([one, other], [other, one]):
        np.testing.assert_allclose(scores(merge(parts)), expected, atol=allowed(alpha), rtol=0)


def test_a_loaded_model_goes_on_in_its_own_coordinates(tmp_path, monkeypatch):
    model = LSPC(**PLAN, alpha=1e-6).fit_stream(X[:100], CODES[:100], keep_rows=0)
    save(model, tmp_path / "model.lw")
    monkeypatch.setattr("leastwise.solvers.moments.whitening", None)  # nothing is computed anew
    back = load(tmp_path / "model.lw")
    back.partial_fit(X[100:], CODES[100:])
    np.testing.assert_array_equal(back.moments_.whitening.T, model.moments_.whitening.T)
    np.testing.assert_allclose(scores(back), long_scores(one_hot(CODES), 1e-6), atol=allowed(1e-6), rtol=0)


def test_sums_of_dask(tmp_path):
    da = pytest.importorskip("dask.array")
    model = LSPC(**PLAN, alpha=1e-7).fit(da.from_array(X, chunks=(40, 2)), da.from_array(CODES, chunks=40))
    np.testing.assert_allclose(scores(model), long_scores(one_hot(CODES), 1e-7), atol=allowed(1e-7), rtol=0)


def test_sums_of_no_rows():
    known = whitening(kernel(CENTERS, CENTERS))
    assert Moments.zero(30, 2, known).A.shape == (known.rank, known.rank)
    assert Moments.zero(30, 2).A.shape == (30, 30)
