"""MultiLabelLSPC: closed forms against Kronecker products and refits, unknown labels, limits, what must hold."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import PLAIN
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference import rbf
from scipy import sparse

from leastwise import LSPC, MultiLabelLSPC
from leastwise.fitting import dataset as validation
from leastwise.fitting import iterative as iterating
from leastwise.model_selection.splitters import StratifiedLabelKFold
from leastwise.problem.coupling import from_pairwise

N, T, SIGMA, ALPHA = 26, 4, 1.3, 0.02
PENALTY = np.array([1.0, 2.0, 0.5, 1.5])
SIMILAR = np.array([[1.0, 0.8, 0.0, 0.3], [0.8, 1.0, 0.4, 0.0], [0.0, 0.4, 1.0, 1.0], [0.3, 0.0, 1.0, 1.0]])
BOTH_NORMS = pytest.mark.parametrize("norm", ["function", "coefficients"])
BOTH_BIASES = pytest.mark.parametrize("bias", [None, "shared"])


def rows(n=N, seed=0, d=2):
    return np.random.default_rng(seed).normal(size=(n, d))


def labels(X, t=T, seed=0):
    """Boundaries at several angles, some noise, and both classes of every label."""
    rng = np.random.default_rng(seed + 100)
    angle = np.linspace(0, 2.5, t)
    Y = (X[:, :2] @ np.stack([np.cos(angle), np.sin(angle)]) + 0.5 * rng.normal(size=(len(X), t)) > 0).astype(int)
    Y[0], Y[1] = 0, 1
    return Y


def hidden(Y, share=0.3, seed=0):
    """Y with a share of its entries unknown; every row has a label, the first ones, with both classes, all."""
    unknown = np.random.default_rng(seed + 200).random(Y.shape) < share
    unknown[:3] = False
    unknown[:, 0] &= ~unknown.all(axis=1)
    return np.where(unknown, np.nan, Y)


X, NEW = rows(), rows(9, seed=5)
Y = labels(X)
GAPS = hidden(Y)
WEIGHTS = np.random.default_rng(3).uniform(0.3, 2, N)
ENTRIES = np.random.default_rng(4).uniform(0.3, 2, (N, T))


def model(**changes):
    given = {"sigma": SIGMA, "alpha": ALPHA, "sharing": 0.4, "similarity": SIMILAR, "random_state": 0, **changes}
    return MultiLabelLSPC(**given)


def plain(**changes):
    """Nothing held out, nothing calibrated, and iterations to the end."""
    return model(**{"cv": None, "calibration": None, "tol": 1e-12, **changes})


# ------------------------------------------------------------- the long way


def label_matrix(sharing, S=SIMILAR, penalty=None):
    """B of section 5, by an inverse."""
    penalty = np.ones(len(S)) if penalty is None else penalty
    off = S - np.diag(np.diagonal(S))
    off = off / (off.max() or 1)
    B = np.linalg.inv((1 - sharing) * np.diag(penalty) + sharing * (np.diag(off.sum(axis=1)) - off))
    return B / np.diagonal(B).mean()


def by_kronecker(X, Y, W, B, new, *, sigma=SIGMA, alpha=ALPHA, norm="function", bias=False):
    """Scores of new rows from one system of all known entries: ``(G (x) B + rho / W) a = z - intercept``.

    ``W`` of shape (n, T), as given, and 0 where a label is not known. The ridge is alpha times its sum by the number
    of labels. With the penalty on the coefficients rows count as basis functions with the weight of that of their
    labels which has most.
    """
    K, k = rbf(X, X, sigma), rbf(new, X, sigma)
    if norm == "coefficients":
        D = np.diag(W.max(axis=1))
        K, k = K @ D @ K, k @ D @ K
    T = Y.shape[1]
    known = (W > 0).ravel()
    H = np.kron(K, B)[np.ix_(known, known)] + alpha * W.sum() / T * np.diag(1 / W.ravel()[known])
    free = np.tile(np.eye(T), (len(X), 1))[known] if bias else np.zeros((known.sum(), 0))
    M = np.block([[H, free], [free.T, np.zeros((free.shape[1], free.shape[1]))]])
    F = np.empty((len(new), T, 2))
    for y in (0, 1):
        z = (y == Y).ravel()[known].astype(float)
        solution = np.linalg.solve(M, np.r_[z, np.zeros(free.shape[1])])
        f = np.kron(k, B)[:, known] @ solution[: len(z)]
        F[:, :, y] = f.reshape(len(new), T) + (solution[len(z) :] if bias else 0)
    return F.reshape(len(new), -1)


def by_refits(X, Y, W, B, folds, **form):
    """Held-out scores: each fold left out of ``by_kronecker``."""
    F = np.empty((len(X), 2 * Y.shape[1]))
    for fold in np.unique(folds):
        out = folds == fold
        F[out] = by_kronecker(X[~out], Y[~out], W[~out], B, X[out], **form)
    return F


def each(w, Y=Y):
    """Row weights for every label; 0 where it is not known."""
    return np.where(np.isnan(Y), 0.0, np.broadcast_to(np.reshape(w, (len(Y), -1)), Y.shape))


def same(a, b, atol=1e-8):
    np.testing.assert_allclose(a, b, atol=atol)


# --------------------------------------------- sharing = 0: one LSPC for each label

ALONE = {
    "function": {},
    "coefficients": {"norm": "coefficients"},
    "bias": {"bias": "shared"},
    "coefficients, bias": {"norm": "coefficients", "bias": "shared"},
    "centres": {"centers": NEW},
    "centres, coefficients": {"centers": NEW, "norm": "coefficients"},
    "laplace": {"kernel": "laplace"},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2},
    "sum": {"kernel": "rbf+linear"},
    "five folds": {
        "cv": [(np.flatnonzero(np.arange(N) % 5 != k), np.flatnonzero(np.arange(N) % 5 == k)) for k in range(5)]
    },
}


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("case", ALONE)
def test_without_sharing_every_label_is_an_lspc(case, weights):
    many = model(sharing=0, calibration=None, **ALONE[case]).fit(X, Y, sample_weight=weights)
    for t in range(T):
        one = LSPC(SIGMA, ALPHA, calibration=None, **ALONE[case]).fit(X, Y[:, t], sample_weight=weights)
        same(many.scores(NEW)[:, 2 * t : 2 * t + 2], one.scores(NEW))
        same(many.heldout_scores_[:, 2 * t : 2 * t + 2], one.heldout_scores_)
        some = (one.scores(NEW) > 0).any(axis=1)  # elsewhere class shares stand in, with half a row more per class
        same(many.predict_proba(NEW)[some, t], one.predict_proba(NEW)[some, 1])
        some = (one.heldout_scores_ > 0).any(axis=1)
        same(many.heldout_proba_[some, t], one.heldout_proba_[some, 1])


@pytest.mark.parametrize("groups", [None, "duplicates"])
@BOTH_NORMS
def test_without_sharing_copies_of_rows_are_held_out_as_by_lspc(norm, groups):
    copies = np.r_[np.arange(N), 3, 3, 7]
    A, B = X[copies], Y[copies].copy()
    B[-1] = 1 - B[-1]
    many = model(sharing=0, norm=norm).fit(A, B, groups=groups)
    for t in range(T):
        one = LSPC(SIGMA, ALPHA, norm=norm).fit(A, B[:, t], groups=groups)
        same(many.scores(NEW)[:, 2 * t : 2 * t + 2], one.scores(NEW), 1e-7)
        same(many.heldout_scores_[:, 2 * t : 2 * t + 2], one.heldout_scores_, 1e-7)


@BOTH_NORMS
def test_without_sharing_precomputed_kernels(norm):
    K, k = rbf(X, X, SIGMA), rbf(NEW, X, SIGMA)
    many = model(sharing=0, kernel="precomputed", norm=norm).fit(K, Y)
    by_rows = model(sharing=0, norm=norm, extrapolate=True).fit(X, Y)
    same(many.scores(k), by_rows.scores(NEW))
    same(many.heldout_scores_, by_rows.heldout_scores_)
    same(many.predict_proba(k), by_rows.predict_proba(NEW))
    for t in range(T):
        one = LSPC(SIGMA, ALPHA, kernel="precomputed", norm=norm).fit(K, Y[:, t])
        same(many.scores(k)[:, 2 * t : 2 * t + 2], one.scores(k))


def test_without_sharing_single_precision():
    many = model(sharing=0).fit(X.astype(np.float32), Y)
    assert many.coef_.dtype == np.float64
    assert many.heldout_scores_.dtype == many.predict_proba(NEW).dtype == np.float32
    for t in range(T):
        one = LSPC(SIGMA, ALPHA).fit(X, Y[:, t])
        same(many.scores(NEW)[:, 2 * t : 2 * t + 2], one.scores(NEW), 1e-4)
        same(many.heldout_scores_[:, 2 * t : 2 * t + 2], one.heldout_scores_, 1e-4)


@BOTH_BIASES
@pytest.mark.parametrize("similarity", ["shared", "correlation", SIMILAR], ids=["shared", "correlation", "given"])
def test_without_sharing_penalties_are_ridges(similarity, bias):
    many = model(sharing=0, label_penalty=PENALTY, similarity=similarity, bias=bias).fit(X, Y)
    unit = np.mean(1 / PENALTY)
    for t in range(T):
        one = LSPC(SIGMA, ALPHA * PENALTY[t] * unit, bias=bias).fit(X, Y[:, t])
        same(many.scores(NEW)[:, 2 * t : 2 * t + 2], one.scores(NEW))
        same(many.heldout_scores_[:, 2 * t : 2 * t + 2], one.heldout_scores_)


def test_without_sharing_classes_of_many_kinds():
    """Three classes, strings, and two classes side by side."""
    three = np.where(X[:, 0] > 0.8, 2, Y[:, 0])
    words = np.array(["no", "some", "yes"])[np.where(X[:, 1] > 0.5, 2, Y[:, 1])]
    mixed = np.empty((N, 3), dtype=object)
    mixed[:, 0], mixed[:, 1], mixed[:, 2] = three, words, Y[:, 2]
    many = model(sharing=0, similarity="shared", calibration=None).fit(X, mixed)
    place = 0
    for y, P in zip((three, words, Y[:, 2]), many.predict_proba(NEW), strict=True):
        one = LSPC(SIGMA, ALPHA, calibration=None).fit(X, y)
        c = len(one.classes_)
        same(many.scores(NEW)[:, place : place + c], one.scores(NEW))
        same(many.heldout_scores_[:, place : place + c], one.heldout_scores_)
        same(P, one.predict_proba(NEW))
        place += c
    assert place == many.coef_.shape[1]


def test_without_sharing_penalties_are_those_of_the_least_sharing():
    """No jump at 0, and no difference between a 0 that is given and one that is chosen."""
    for similarity in ("shared", "correlation", "learned", SIMILAR):
        given = {"label_penalty": PENALTY, "similarity": similarity}
        nothing, least = (plain(sharing=sharing, **given).fit(X, Y).scores(NEW) for sharing in (0, 1e-9))
        same(nothing, least, 1e-6)


@pytest.mark.parametrize("similarity", ["shared", "correlation", "learned"])
def test_without_sharing_penalties_are_for_all_classes_of_a_label(similarity):
    """Also for those that no other label has."""
    three = np.column_stack([np.where(X[:, 0] > 0.8, 2, Y[:, 0]), Y[:, 1:3]])
    penalty = np.array([3.0, 1.0, 0.5])
    many = plain(sharing=0, similarity=similarity, label_penalty=penalty).fit(X, three)
    unit = np.mean(1 / penalty)
    one = LSPC(SIGMA, ALPHA * 3 * unit, calibration=None, cv=None).fit(X, three[:, 0])
    same(many.scores(NEW)[:, :3], one.scores(NEW))


# ------------------------------------------------------- any sharing, all known


@BOTH_BIASES
@BOTH_NORMS
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_scores_are_those_of_the_kronecker_system(norm, bias, weights):
    w = np.ones(N) if weights is None else weights
    B = label_matrix(0.4, penalty=PENALTY)
    found = plain(norm=norm, bias=bias, label_penalty=PENALTY).fit(X, Y, sample_weight=weights)
    expected = by_kronecker(X, Y, each(w), B, NEW, norm=norm, bias=bias is not None)
    same(found.scores(NEW), expected)
    assert found.coef_.shape == (N, 2 * T)
    same(rbf(NEW, X, SIGMA) @ found.coef_ + found.intercept_, expected)


@BOTH_NORMS
def test_lambdas_and_gammas_of_the_paper(norm):
    """Eq. (1): ``Phi'Phi Theta + Theta C = Phi' Z`` with lambda_t on the diagonal of C, by a Kronecker product."""
    lambdas, gammas = np.array([0.5, 1.0, 2.0, 0.7]), 3 * SIMILAR
    C = np.diag(lambdas + gammas.sum(axis=1) - np.diagonal(gammas)) - gammas + np.diag(np.diagonal(gammas))
    K = rbf(X, X, SIGMA)
    Phi = K if norm == "coefficients" else np.linalg.cholesky(K + 1e-12 * np.eye(N))
    M = np.kron(Phi.T @ Phi, np.eye(T)) + np.kron(np.eye(N), C)
    F = np.empty((N, T, 2))
    for y in (0, 1):
        Theta = np.linalg.solve(M, (Phi.T @ (y == Y)).ravel()).reshape(N, T)
        F[:, :, y] = Phi @ Theta
        if norm == "coefficients":
            coef = Theta
    given = from_pairwise(lambdas, gammas, N)
    given["label_penalty"] = given.pop("task_penalty")
    found = plain(norm=norm, **given).fit(X, Y)
    same(found.scores(X), F.reshape(N, -1), 1e-6)
    if norm == "coefficients":
        same(found.coef_[:, 1::2], coef)


@pytest.mark.parametrize("sharing", [0.0, 0.4, 1.0])
def test_all_labels_alike(sharing):
    B = sharing + np.diag((1 - sharing) / PENALTY / np.mean(1 / PENALTY))
    found = plain(sharing=sharing, similarity="shared", label_penalty=PENALTY).fit(X, Y)
    same(found.scores(NEW), by_kronecker(X, Y, np.ones((N, T)), B, NEW))


def test_learned_and_correlated_labels_have_the_similarity_that_they_say():
    record = plain(similarity="learned").fit(X, Y)
    B = 0.4 * record.similarity_ + 0.6 * np.eye(T)
    same(record.scores(NEW), by_kronecker(X, Y, np.ones((N, T)), B, NEW))
    found = plain(similarity="correlation").fit(X, Y)
    R = np.corrcoef(Y.T)
    same(found.similarity_, np.maximum(R, 0))
    off = np.maximum(R, 0) - np.eye(T)
    C = 0.6 * np.eye(T) + 0.4 * (np.diag(off.sum(axis=1)) - off)
    B = np.linalg.inv(C)
    same(found.scores(NEW), by_kronecker(X, Y, np.ones((N, T)), B / np.diagonal(B).mean(), NEW))


def test_similarities_of_every_form_are_the_same():
    expected = plain().fit(X, Y)
    edges = [(i, j, SIMILAR[i, j]) for i in range(T) for j in range(i) if SIMILAR[i, j]]
    forms = [SIMILAR.tolist(), 5 * SIMILAR, sparse.csr_matrix(SIMILAR), sparse.coo_array(SIMILAR), edges]
    for S in (*forms, lambda X, Y: SIMILAR, lambda X, Y: edges):
        same(plain(similarity=S).fit(X, Y).scores(NEW), expected.scores(NEW))
    names = list("abcd")
    mixed = pd.DataFrame(SIMILAR, index=names, columns=names).loc[list("cadb"), list("dbca")]
    by_name = plain(similarity=mixed).fit(X, pd.DataFrame(Y, columns=names))
    same(by_name.scores(NEW), expected.scores(NEW))
    named = [(names[i], names[j], weight) for i, j, weight in edges]
    same(plain(similarity=named).fit(X, pd.DataFrame(Y, columns=names)).scores(NEW), expected.scores(NEW))


def test_a_callable_is_shown_the_rows_and_the_labels():
    seen = []
    plain(similarity=lambda *shown: seen.append(shown) or SIMILAR).fit(X, Y)
    ((A, B),) = seen
    np.testing.assert_array_equal(A, X)
    np.testing.assert_array_equal(B, Y)


def test_a_callable_is_shown_what_is_not_known_as_not_known():
    """A similarity of the user's own, made of the known pairs, needs to know which these are."""
    seen = []
    plain(similarity=lambda *shown: seen.append(shown) or SIMILAR).fit(X, GAPS)
    shown = pd.DataFrame(seen[0][1]).to_numpy(dtype=float, na_value=np.nan)
    np.testing.assert_array_equal(np.isnan(shown), np.isnan(GAPS))


FOLDS = {"loo": np.arange(N), "pairs": np.arange(N) // 2, "three": np.arange(N) % 3}


@BOTH_BIASES
@BOTH_NORMS
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("folds", FOLDS)
def test_held_out_scores_are_those_of_refits(norm, bias, weights, folds):
    groups, w = FOLDS[folds], np.ones(N) if weights is None else weights
    B = label_matrix(0.4, penalty=PENALTY)
    found = model(norm=norm, bias=bias, label_penalty=PENALTY)
    found.fit(X, Y, sample_weight=weights, groups=None if folds == "loo" else groups)
    same(found.heldout_scores_, by_refits(X, Y, each(w), B, groups, norm=norm, bias=bias is not None), 1e-7)
    splits = [(np.flatnonzero(groups != g), np.flatnonzero(groups == g)) for g in np.unique(groups)]
    by_list = model(norm=norm, bias=bias, label_penalty=PENALTY, cv=splits).fit(X, Y, sample_weight=weights)
    same(by_list.heldout_scores_, found.heldout_scores_, 1e-7)


@pytest.mark.parametrize("changes", [{}, {"norm": "coefficients"}, {"bias": "shared"}, {"similarity": "shared"}])
def test_held_out_scores_are_those_of_other_models(changes):
    """Refits of the estimator itself, with the parameters that it says it has."""
    cv = StratifiedLabelKFold(3, random_state=0)
    found = model(cv=cv, alpha=[0.01, 0.1], sharing=[0.1, 0.5], **changes).fit(X, Y)
    again = plain(sigma=found.sigma_, alpha=found.alpha_, sharing=found.sharing_, **changes)
    for train, test in cv.split(X, Y):
        again.fit(X[train], Y[train])
        same(found.heldout_scores_[test], again.scores(X[test]), 1e-7)
    again.fit(X, Y)
    same(found.scores(NEW), again.scores(NEW))


def folds_made(monkeypatch):
    """The folds that stand in for leave-one-out, as a fit makes them."""
    real, seen = validation.grouped_folds, []
    for module in (validation, iterating):
        monkeypatch.setattr(module, "grouped_folds", lambda *args: seen.append(real(*args)) or seen[-1])
    return seen


def test_a_number_of_folds_is_that_of_stratified_folds(monkeypatch):
    real, made = validation.label_fold_ids, []
    monkeypatch.setattr(validation, "label_fold_ids", lambda *args: made.append(real(*args)) or made[-1])
    found = model(cv=3).fit(X, Y)
    assert sorted(np.bincount(made[0]).tolist()) == [8, 9, 9]
    same(found.heldout_scores_, by_refits(X, Y, np.ones((N, T)), label_matrix(0.4), made[0]))


@pytest.mark.parametrize("Z", [Y, GAPS], ids=["complete", "gaps"])
def test_a_number_of_folds_keeps_groups_together(Z, monkeypatch):
    real, seen = validation._fold_ids, []
    monkeypatch.setattr(validation, "_fold_ids", lambda *args: seen.append(real(*args)) or seen[-1])
    found = model(cv=3, tol=1e-12).fit(X, Z, groups=FOLDS["pairs"])
    (folds,) = seen
    assert len(np.unique(folds)) == 3
    np.testing.assert_array_equal(folds[::2], folds[1::2])
    same(found.heldout_scores_, by_refits(X, Z, each(np.ones(N), Z), label_matrix(0.4), folds), 1e-6)


# ------------------------------------------------------------ labels not known


@BOTH_BIASES
@BOTH_NORMS
@pytest.mark.parametrize("weights", [1.0, WEIGHTS, ENTRIES], ids=["equal", "rows", "entries"])
def test_scores_where_labels_are_not_known(norm, bias, weights):
    B, W = (
        label_matrix(0.4, penalty=PENALTY),
        each(np.broadcast_to(weights, N) if np.ndim(weights) < 2 else weights, GAPS),
    )
    found = plain(norm=norm, bias=bias, label_penalty=PENALTY).fit(X, GAPS, sample_weight=W)
    expected = by_kronecker(X, GAPS, W, B, NEW, norm=norm, bias=bias is not None)
    same(found.scores(NEW), expected, 1e-6)
    if np.ndim(weights) == 1:
        by_row = plain(norm=norm, bias=bias, label_penalty=PENALTY).fit(X, GAPS, sample_weight=weights)
        same(by_row.scores(NEW), expected, 1e-6)


@BOTH_NORMS
def test_labels_with_weights_of_their_own_that_are_all_known(norm):
    found = plain(norm=norm).fit(X, Y, sample_weight=ENTRIES)
    same(found.scores(NEW), by_kronecker(X, Y, ENTRIES, label_matrix(0.4), NEW, norm=norm), 1e-6)


@pytest.mark.parametrize("Z", [Y, GAPS], ids=["complete", "gaps"])
def test_balanced_classes(Z):
    found = plain(class_weight="balanced").fit(X, Z)
    W = np.zeros((N, T))
    for t in range(T):
        known = ~np.isnan(Z[:, t])
        for y in (0, 1):
            there = Z[:, t] == y
            W[there, t] = known.sum() / (2 * there.sum())
    same(found.scores(NEW), by_kronecker(X, Z, W, label_matrix(0.4), NEW), 1e-6)


@BOTH_BIASES
@BOTH_NORMS
def test_held_out_scores_where_labels_are_not_known(norm, bias, monkeypatch):
    made = folds_made(monkeypatch)
    found = model(norm=norm, bias=bias, tol=1e-12).fit(X, GAPS)
    folds = made[-1]
    assert folds.max() == 4
    expected = by_refits(
        X, GAPS, each(1.0 * np.ones(N), GAPS), label_matrix(0.4), folds, norm=norm, bias=bias is not None
    )
    same(found.heldout_scores_, expected, 1e-6)


def test_held_out_groups_where_labels_are_not_known(monkeypatch):
    """Five folds stand in for leave-one-out, of whole groups."""
    made = folds_made(monkeypatch)
    found = model(tol=1e-12).fit(X, GAPS, groups=FOLDS["pairs"])
    folds = made[-1]
    np.testing.assert_array_equal(folds[::2], folds[1::2])
    assert len(np.unique(folds)) == 5
    same(found.heldout_scores_, by_refits(X, GAPS, each(np.ones(N), GAPS), label_matrix(0.4), folds), 1e-6)


@BOTH_NORMS
def test_splits_that_are_given_where_labels_are_not_known(norm):
    splits = [(np.flatnonzero(FOLDS["three"] != k), np.flatnonzero(FOLDS["three"] == k)) for k in range(3)]
    found = model(tol=1e-12, cv=splits, norm=norm).fit(X, GAPS, sample_weight=ENTRIES)
    W, B = each(ENTRIES, GAPS), label_matrix(0.4)
    same(found.heldout_scores_, by_refits(X, GAPS, W, B, FOLDS["three"], norm=norm), 1e-6)


def test_copies_of_rows_are_in_one_fold_where_labels_are_not_known(monkeypatch):
    made = folds_made(monkeypatch)
    model().fit(np.repeat(X, 2, axis=0), np.repeat(GAPS, 2, axis=0), groups="duplicates")
    np.testing.assert_array_equal(made[-1][::2], made[-1][1::2])
    model().fit(X, GAPS)
    once = made[-1]
    model().fit(X, GAPS, sample_weight=np.full(N, 2.0))
    np.testing.assert_array_equal(made[-1], once)


def in_every_form():
    masked = np.ma.masked_array(np.where(np.isnan(GAPS), 1, GAPS).astype(int), mask=np.isnan(GAPS))
    frame = pd.DataFrame(GAPS, columns=list("abcd"))
    nullable = frame.astype("Int64")
    polars = pl.DataFrame({name: [None if np.isnan(v) else int(v) for v in frame[name]] for name in frame})
    wide = sparse.csr_matrix(GAPS)
    return {
        "nan": (GAPS, np.nan),
        "masked": (masked, np.nan),
        "minus one": (np.where(np.isnan(GAPS), -1, GAPS).astype(int), -1),
        "objects": (np.where(np.isnan(GAPS), None, GAPS), np.nan),
        "pandas": (frame, np.nan),
        "pandas NA": (nullable, np.nan),
        "polars": (polars, np.nan),
        "sparse": (wide, np.nan),
        "sparse array": (sparse.csc_array(GAPS), np.nan),
        "lists": (GAPS.tolist(), np.nan),
    }


@pytest.mark.parametrize("form", in_every_form())
def test_unknown_in_every_form(form):
    Z, missing = in_every_form()[form]
    found, expected = model(missing=missing).fit(X, Z), model().fit(X, GAPS)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.heldout_proba_, expected.heldout_proba_)
    np.testing.assert_array_equal(found.predict_proba(NEW), expected.predict_proba(NEW))
    assert found.score(X, Z) == expected.score(X, GAPS)


@BOTH_BIASES
def test_a_row_without_labels_is_no_row(bias):
    more, none = np.vstack([X, NEW]), np.vstack([GAPS, np.full((len(NEW), T), np.nan)])
    with pytest.warns(UserWarning, match="Rows without any known label are left out: 9 of 35"):
        found = model(bias=bias).fit(more, none)
    expected = model(bias=bias).fit(X, GAPS)
    same(found.scores(NEW), expected.scores(NEW), 1e-12)
    same(found.heldout_proba_[:N], expected.heldout_proba_, 1e-12)
    # they were not trained on: the model itself says what they are
    same(found.heldout_proba_[N:], expected.predict_proba(NEW), 1e-12)
    with pytest.warns(UserWarning, match="9 of 35"):
        complete = model(bias=bias).fit(more, np.vstack([Y, np.full((len(NEW), T), np.nan)]))
    same(complete.heldout_scores_[:N], model(bias=bias).fit(X, Y).heldout_scores_, 1e-12)


@BOTH_BIASES
@pytest.mark.parametrize("weights", [np.ones(N), WEIGHTS], ids=["equal", "weighted"])
def test_without_sharing_an_lspc_on_the_known_rows(bias, weights):
    found = plain(sharing=0, bias=bias).fit(X, GAPS, sample_weight=weights)
    W = each(weights, GAPS)
    for t in range(T):
        known = W[:, t] > 0
        alpha = ALPHA * W.sum() / T / W[:, t].sum()
        one = LSPC(SIGMA, alpha, bias=bias, cv=None, calibration=None)
        one.fit(X[known], GAPS[known, t].astype(int), sample_weight=weights[known])
        same(found.scores(NEW)[:, 2 * t : 2 * t + 2], one.scores(NEW), 1e-7)


def test_hidden_labels_that_are_given_again_change_little():
    """A row with nothing hidden, and all rows but the unknown ones: the limits of one another."""
    W = np.where(np.isnan(GAPS), 1e-9, 1.0)
    light = plain().fit(X, Y, sample_weight=W)
    same(light.scores(NEW), plain().fit(X, GAPS).scores(NEW), 1e-6)


# -------------------------------------------------------------- the two solvers


@BOTH_BIASES
@BOTH_NORMS
@pytest.mark.parametrize("weights", [None, WEIGHTS, ENTRIES], ids=["equal", "rows", "entries"])
@pytest.mark.parametrize("Z", [Y, GAPS], ids=["complete", "gaps"])
def test_conjugate_gradients_solve_the_same_system(norm, bias, weights, Z):
    direct = plain(norm=norm, bias=bias, label_penalty=PENALTY, solver="sylvester").fit(X, Z, sample_weight=weights)
    iterated = plain(norm=norm, bias=bias, label_penalty=PENALTY, solver="cg").fit(X, Z, sample_weight=weights)
    same(iterated.scores(NEW), direct.scores(NEW), 1e-5)
    same(iterated.coef_, direct.coef_, 1e-5 * np.abs(direct.coef_).max())
    same(iterated.intercept_, direct.intercept_, 1e-5)
    assert iterated.n_iter_ >= 1
    assert iterated.residual_ < 1e-8


@pytest.mark.parametrize("Z", [Y, GAPS], ids=["complete", "gaps"])
@pytest.mark.parametrize("similarity", ["shared", "correlation", "learned"])
def test_conjugate_gradients_of_other_relations(Z, similarity):
    given = {"similarity": similarity, "sharing": 0.6}
    direct, iterated = (plain(solver=solver, **given).fit(X, Z) for solver in ("sylvester", "cg"))
    same(iterated.coef_, direct.coef_, 1e-6)
    same(iterated.predict_proba(NEW), direct.predict_proba(NEW), 1e-6)


@pytest.mark.parametrize("Z", [Y, GAPS], ids=["complete", "gaps"])
def test_conjugate_gradients_hold_out_rows(Z, monkeypatch):
    """And calibrate on them: all in turn, or, of very many, a tenth."""
    made, W = folds_made(monkeypatch), each(np.ones(N), Z)
    found = model(solver="cg", tol=1e-12).fit(X, Z)
    assert len(np.unique(made[-1])) == 5
    expected = by_refits(X, Z, W, label_matrix(0.4), made[-1])
    same(found.heldout_scores_, expected, 1e-6)
    monkeypatch.setattr("leastwise.solvers.work.IN_TURN", 0)
    tenth = model(solver="cg", tol=1e-12).fit(X, Z)
    held = ~np.isnan(tenth.heldout_scores_[:, 0])
    np.testing.assert_array_equal(held, made[-1] == 0)
    assert len(np.unique(made[-1])) == 10
    same(tenth.heldout_scores_[held], by_refits(X, Z, W, label_matrix(0.4), made[-1])[held], 1e-6)
    assert np.isnan(tenth.heldout_proba_[~held]).all()
    assert np.isfinite(tenth.heldout_proba_[held]).all()


# ---------------------------------------------------------------- what must hold

FORMS = st.fixed_dictionaries(
    {
        "norm": st.sampled_from(["function", "coefficients"]),
        "bias": st.sampled_from([None, "shared"]),
        "sigma": st.floats(0.5, 3),
        "alpha": st.floats(1e-3, 1),
        "sharing": st.floats(0, 1),
        "similarity": st.sampled_from(["correlation", "shared", "learned"]),
        "random_state": st.just(0),
        "tol": st.just(1e-12),
    }
)
SEEDS = st.integers(0, 10_000)
GAPPED = st.booleans()


def drawn(seed, gapped, n=18, t=3):
    A = rows(n, seed)
    Q = labels(A, t, seed)
    return A, hidden(Q, 0.3, seed) if gapped else Q


def splits_of(n, k=3):
    return [(np.flatnonzero(np.arange(n) % k != f), np.flatnonzero(np.arange(n) % k == f)) for f in range(k)]


@given(FORMS, SEEDS, GAPPED)
@settings(max_examples=20)
def test_the_order_of_the_labels_makes_no_difference(form, seed, gapped):
    A, Q = drawn(seed, gapped)
    order = np.random.default_rng(seed).permutation(3)
    one = MultiLabelLSPC(**form, cv=splits_of(18)).fit(A, Q)
    other = MultiLabelLSPC(**form, cv=splits_of(18)).fit(A, Q[:, order])
    same(other.predict_proba(NEW), one.predict_proba(NEW)[:, order], 1e-5)
    same(other.heldout_proba_, one.heldout_proba_[:, order], 1e-5)
    columns = np.column_stack([2 * order, 2 * order + 1]).ravel()
    same(other.scores(NEW), one.scores(NEW)[:, columns], 1e-6)
    if one.similarity_ is not None:  # where it makes a difference which labels are related
        same(other.similarity_, one.similarity_[np.ix_(order, order)])


@given(FORMS, SEEDS, GAPPED)
@settings(max_examples=20)
def test_the_order_of_the_rows_makes_no_difference(form, seed, gapped):
    A, Q = drawn(seed, gapped)
    order = np.random.default_rng(seed).permutation(18)
    place = np.argsort(order)
    one = MultiLabelLSPC(**form, cv=splits_of(18)).fit(A, Q)
    moved = [(place[train], place[test]) for train, test in splits_of(18)]
    other = MultiLabelLSPC(**form, cv=moved).fit(A[order], Q[order])
    same(other.predict_proba(NEW), one.predict_proba(NEW), 1e-5)
    same(other.heldout_scores_, one.heldout_scores_[order], 1e-6)
    same(other.heldout_proba_, one.heldout_proba_[order], 1e-5)


@given(FORMS, SEEDS, GAPPED)
@settings(max_examples=20)
def test_weights_are_copies(form, seed, gapped):
    """Of a row and of its basis function."""
    A, Q = drawn(seed, gapped)
    times = np.random.default_rng(seed).integers(1, 4, 18)
    index = np.repeat(np.arange(18), times)
    fold = np.arange(18) % 3
    cv = [(np.flatnonzero(fold[index] != k), np.flatnonzero(fold[index] == k)) for k in range(3)]
    weighted = MultiLabelLSPC(**form, cv=splits_of(18)).fit(A, Q, sample_weight=times)
    copied = MultiLabelLSPC(**form, cv=cv).fit(A[index], Q[index])
    same(weighted.scores(NEW), copied.scores(NEW), 1e-6)
    same(weighted.heldout_scores_[index], copied.heldout_scores_, 1e-6)
    same(weighted.predict_proba(NEW), copied.predict_proba(NEW), 1e-4)


@given(FORMS, SEEDS, GAPPED, st.floats(1e-3, 1e3))
@settings(max_examples=20)
def test_the_unit_of_the_weights_makes_no_difference(form, seed, gapped, unit):
    """With the penalty on the coefficients a weight is a number of copies, as it is for LSPC."""
    assume(form["norm"] == "function")
    A, Q = drawn(seed, gapped)
    w = np.random.default_rng(seed).uniform(0.5, 2, 18)
    one, other = (MultiLabelLSPC(**form, cv=splits_of(18)).fit(A, Q, sample_weight=s * w) for s in (1, unit))
    same(other.predict_proba(NEW), one.predict_proba(NEW), 1e-5)
    same(other.heldout_scores_, one.heldout_scores_, 1e-6)


@given(FORMS, SEEDS, GAPPED)
@settings(max_examples=15)
def test_a_label_given_twice_is_treated_alike(form, seed, gapped):
    A, Q = drawn(seed, gapped)
    P = MultiLabelLSPC(**form).fit(A, Q[:, [0, 1, 2, 0]])
    same(P.predict_proba(NEW)[:, 3], P.predict_proba(NEW)[:, 0], 1e-5)
    same(P.heldout_scores_[:, 6:], P.heldout_scores_[:, :2], 1e-6)
    if P.similarity_ is not None:
        same(P.similarity_[3, 1:3], P.similarity_[0, 1:3])


@given(FORMS, SEEDS, GAPPED, st.integers(0, 1))
@settings(max_examples=15)
def test_what_hides_behind_the_unknown_makes_no_difference(form, seed, gapped, value):
    A, Q = drawn(seed, True)
    mask = np.isnan(Q)
    one = MultiLabelLSPC(**form).fit(A, np.ma.masked_array(np.where(mask, value, Q).astype(int), mask=mask))
    W = np.where(mask, 0.0, 1.0)
    weighted = MultiLabelLSPC(**form, class_weight="balanced" if gapped else None)
    weighted.fit(A, np.where(mask, value, Q).astype(int), sample_weight=W)
    named = MultiLabelLSPC(**form, class_weight="balanced" if gapped else None).fit(A, Q)
    np.testing.assert_array_equal(one.coef_, MultiLabelLSPC(**form).fit(A, Q).coef_)
    same(weighted.scores(NEW), named.scores(NEW), 1e-6)


@given(SEEDS, GAPPED, st.sampled_from([None, "shared"]))
@settings(max_examples=10)
def test_at_full_sharing_labels_are_pooled(seed, gapped, bias):
    """One function for all labels; with intercepts, up to these."""
    A, Q = drawn(seed, gapped)
    pooled = plain(sharing=1, similarity=np.ones((3, 3)), bias=None).fit(A, Q).scores(NEW).reshape(-1, 3, 2)
    same(pooled, np.repeat(pooled[:, :1], 3, axis=1))
    alike = plain(sharing=1, similarity="shared", bias=None).fit(A, Q).scores(NEW).reshape(-1, 3, 2)
    same(alike, pooled, 1e-7)
    if bias:
        own = plain(sharing=1, similarity="shared", bias=bias).fit(A, Q)
        F = own.scores(NEW).reshape(-1, 3, 2) - own.intercept_.reshape(3, 2)
        same(F, np.repeat(F[:, :1], 3, axis=1), 1e-7)


@given(FORMS, SEEDS, GAPPED)
@settings(max_examples=15)
def test_probabilities_are_probabilities(form, seed, gapped):
    A, Q = drawn(seed, gapped)
    found = MultiLabelLSPC(**form).fit(A, Q)
    for P in (found.predict_proba(100 * NEW), found.heldout_proba_):
        assert ((P >= 0) & (P <= 1)).all()
    D, P = found.decision_function(NEW), found.predict_proba(NEW)
    for d, p in zip(D.T, P.T, strict=True):
        assert (np.diff(p[np.argsort(d)]) >= -1e-9).all()
    np.testing.assert_array_equal(found.predict(NEW), (P > 0.5).astype(int))


@pytest.mark.parametrize("form", [{}, PLAIN])
@given(SEEDS, st.floats(1e-2, 1e2))
@settings(max_examples=3)
def test_the_choice_does_not_depend_on_units(form, seed, unit):
    A, Q = drawn(seed, False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, other = (MultiLabelLSPC(**form, random_state=0).fit(B, Q) for B in (A, unit * A + 3))
    assert other.sigma_ == pytest.approx(one.sigma_ * (1 if form == {} else unit), rel=1e-6)
    assert (other.alpha_, other.sharing_) == (pytest.approx(one.alpha_), one.sharing_)
    same(other.predict_proba(unit * NEW + 3), one.predict_proba(NEW), 1e-5)
