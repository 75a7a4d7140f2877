"""Sums over rows against the rows themselves."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from leastwise import LSPC, LSSVC, LSSVR, MultiLabelLSPC
from leastwise.fitting import sums as sums_module
from leastwise.fitting.fit import prepare
from leastwise.linalg.moments import Moments, moment_spectrum, whitening
from leastwise.solvers.heldout import Folds, Problem
from leastwise.solvers.moments import MomentHeldout


def problem(n=40, b=7, c=2, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    X, centers = rng.normal(size=(n, 3)), rng.normal(size=(b, 3))
    kernel = lambda A, B: np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / 2)  # noqa: E731
    w = rng.uniform(0.5, 2, n) if weighted else np.ones(n)
    return kernel(X, centers), rng.normal(size=(n, c)), w, kernel(centers, centers)


def solved(Phi, Z, w, R, rho, bias):
    """The long way: the normal equations with the intercept as a column more."""
    b = Phi.shape[1]
    D = np.column_stack([Phi, np.ones(len(Phi))]) if bias else Phi
    P = np.zeros((D.shape[1], D.shape[1]))
    P[:b, :b] = rho * R
    theta = np.linalg.solve(D.T @ (w[:, None] * D) + P, D.T @ (w[:, None] * Z))
    return theta[:b], theta[b] if bias else np.zeros(Z.shape[1])


def sums(Phi, Z, w, R=None):
    """The sums of kernel values, or of whitened coordinates where R is the penalty."""
    known = None if R is None else whitening(R)
    return Moments.of(Phi if R is None else known.columns(Phi), Z, w, known)


def held_out(Phi, Z, w, bias, spectrum, rho):
    """Leave-one-out at the ridge rho."""
    root = np.sqrt(w)
    rows = Problem(Z * root[:, None], root, bias, None, Folds.from_labels(np.arange(len(Z))))
    known = spectrum.moments.whitening
    U = spectrum.coordinates(Phi if known is None else known.columns(Phi))
    found = MomentHeldout(rows, U * root[:, None], spectrum)
    return found.at(rho / (w.sum() - w.mean())).F


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("function", [False, True])
def test_coefficients_and_leave_one_out_are_those_of_the_rows(bias, function):
    Phi, Z, w, R = problem()
    penalty = R if function else np.eye(len(R))
    spectrum = moment_spectrum(sums(Phi, Z, w, R if function else None), bias)
    for rho in (1e-3, 0.1, 10.0):
        theta, beta = solved(Phi, Z, w, penalty, rho, bias)
        found = spectrum.coefficients(rho)
        np.testing.assert_allclose(found[0], theta, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(found[1], beta, rtol=1e-7, atol=1e-8)
        held = held_out(Phi, Z, w, bias, spectrum, rho)
        for i in (0, 11, 39):
            out = np.arange(len(Z)) != i
            theta, beta = solved(Phi[out], Z[out], w[out], penalty, rho, bias)
            np.testing.assert_allclose(held[i], Phi[i] @ theta + beta, rtol=1e-6, atol=1e-7)


@settings(max_examples=30, deadline=None)
@given(cuts=st.lists(st.integers(0, 40), max_size=6), seed=st.integers(0, 100))
def test_blocks_add_up_and_can_be_taken_away(cuts, seed):
    Phi, Z, w, _ = problem(seed=seed)
    edges = sorted({0, 40, *cuts})
    blocks = [Moments.of(Phi[a:b], Z[a:b], w[a:b]) for a, b in pairwise(edges)]
    whole, total = Moments.of(Phi, Z, w), sum(blocks, Moments.zero(7, 2))
    for name in ("A", "C", "p", "z", "mass", "n"):
        np.testing.assert_allclose(getattr(total, name), getattr(whole, name), rtol=1e-12, atol=1e-12)
        rest = getattr(whole - blocks[0], name)
        np.testing.assert_allclose(rest, getattr(sum(blocks[1:], Moments.zero(7, 2)), name), rtol=1e-12, atol=1e-12)


def test_weights_are_copies():
    Phi, Z, _, _ = problem(weighted=False)
    w = np.tile([1.0, 2.0, 3.0, 0.0], 10)
    copies = np.repeat(np.arange(40), w.astype(int))
    one, other = Moments.of(Phi, Z, w), Moments.of(Phi[copies], Z[copies])
    for name in ("A", "C", "p", "z", "mass"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
def test_a_fold_of_more_rows_than_functions(bias):
    """Against a refit without it."""
    Phi, Z, w, R = problem()
    root, fold = np.sqrt(w), np.r_[np.zeros(20, dtype=int), np.ones(20, dtype=int)]
    spectrum = moment_spectrum(sums(Phi, Z, w, R), bias)
    rows = Problem(Z * root[:, None], root, bias, None, Folds.from_labels(fold))
    U = spectrum.coordinates(spectrum.moments.whitening.columns(Phi))
    held = MomentHeldout(rows, U * root[:, None], spectrum).at(0.1 / (w.sum() / 2)).F
    for k in (0, 1):
        theta, beta = solved(Phi[fold != k], Z[fold != k], w[fold != k], R, 0.1, bias)
        np.testing.assert_allclose(held[fold == k], Phi[fold == k] @ theta + beta, rtol=1e-6, atol=1e-7)


def test_single_weights_are_summed_in_double_precision():
    Phi, Z, _, _ = problem()
    w = np.full(40, 0.1, dtype=np.float32)
    assert Moments.of(Phi, Z, w).mass == np.sum(w.astype(float))


# ------------------------------------------------------------ folds of a fit


ROWS = np.random.default_rng(1).normal(size=(120, 3))
CODES = np.digitize(ROWS[:, 0], [-0.5, 0.5])
LABELS = np.column_stack([ROWS[:, 0] > 0, ROWS[:, 1] > 0.2, ROWS[:, 0] + ROWS[:, 2] > 0]).astype(int)
FIXED = {"centers": ROWS[::10], "sigma": 1.0, "alpha": 1e-2, "random_state": 0}


@pytest.mark.parametrize("bias", [None, "shared"])
@pytest.mark.parametrize("kind", ["classes", "labels"])
def test_few_large_folds_of_which_some_rows_are_looked_at(kind, bias, monkeypatch):
    """All rows of a fold are held out, not only those that are in the sample."""
    model = LSPC(**FIXED, bias=bias, cv=4)
    if kind == "labels":
        model = MultiLabelLSPC(**FIXED, bias=bias, cv=4, similarity="shared", sharing=0.3)
    y = CODES if kind == "classes" else LABELS
    whole = clone(model).fit(ROWS, y)
    monkeypatch.setattr(sums_module, "LARGE_FOLD", 5)
    monkeypatch.setattr(sums_module, "SAMPLE_ROWS", 50)
    some = clone(model).set_params(solver="moments").fit(ROWS, y)
    seen = ~np.isnan(some.heldout_scores_[:, 0])
    assert seen.sum() == 50
    np.testing.assert_allclose(some.heldout_scores_[seen], whole.heldout_scores_[seen], atol=1e-9)


def test_a_row_that_is_there_very_often(monkeypatch):
    """There are as many folds as rows, and none has sums of its own: that would be b x b numbers for each."""
    often = np.r_[np.arange(120), np.zeros(30, dtype=int)]
    whole = LSPC(**FIXED).fit(ROWS[often], CODES[often])
    monkeypatch.setattr(sums_module, "LARGE_FOLD", 5)
    made = []
    zero = Moments.zero
    monkeypatch.setattr(Moments, "zero", staticmethod(lambda b, *c: made.append(b) or zero(b, *c)))
    some = LSPC(**FIXED, solver="moments").fit(ROWS[often], CODES[often])
    assert len(made) == 1
    one, other = some.heldout_scores_, whole.heldout_scores_
    np.testing.assert_allclose(one[1:120], other[1:120], atol=2e-3)  # sums have one ridge for all folds
    np.testing.assert_allclose(one[often == 0], other[often == 0], atol=0.05)


@pytest.mark.parametrize("kind", ["classes", "signed", "values", "labels"])
def test_many_copies_are_looked_at_once(kind, monkeypatch):
    rng = np.random.default_rng(5)
    often = rng.integers(40, size=400)
    X, w = ROWS[often], rng.choice([0.5, 1.5], size=40)[often]
    y = {"values": np.round(X[:, 0] + rng.normal(size=400), 0), "labels": rng.random((400, 2)) < 0.4}.get(
        kind, (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    )
    maker = {"classes": LSPC, "signed": LSSVC, "values": LSSVR, "labels": MultiLabelLSPC}[kind]
    more = {"values": {"kernel": "rbf"}, "labels": {"sharing": 0.3, "similarity": "shared"}}.get(kind, {})
    model = maker(**FIXED, **more, solver="moments")
    whole = clone(model).fit(X, y, w)
    monkeypatch.setattr(sums_module, "SAMPLE_ROWS", 50)
    seen = []
    real = sums_module.moment_evaluator
    monkeypatch.setattr(
        sums_module,
        "moment_evaluator",
        lambda problem, rows, *a: seen.append(len(rows)) or real(problem, rows, *a),
    )
    some = clone(model).fit(X, y, w)
    assert seen[-1] < 280
    name = "heldout_prediction_" if kind == "values" else "heldout_scores_"
    np.testing.assert_allclose(getattr(some, name), getattr(whole, name), atol=1e-8)
    if kind != "values":
        np.testing.assert_allclose(some.predict_proba(ROWS), whole.predict_proba(ROWS), atol=1e-6)


def test_groups_count_by_their_rows():
    groups = np.arange(120) // 8
    model = LSPC(**FIXED)
    rows = prepare(model, model._spec(), ROWS, CODES, None, groups)[0].rows
    some = sums_module.sampled_folds(rows, 40)
    assert len(some) == 40
    assert len(np.unique(groups[some])) == 5
    assert len(sums_module.sampled_folds(rows, 5)) == 16  # two of them at least
