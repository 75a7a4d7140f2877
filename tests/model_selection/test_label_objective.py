"""Metrics of many labels, and what a search over them maximises."""

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    hamming_loss,
    jaccard_score,
    log_loss,
    make_scorer,
    roc_auc_score,
)

from leastwise.calibration.label_blend import LabelSample
from leastwise.metrics.labels import hamming, label_average_precision, label_f1, label_log_loss, subset_accuracy
from leastwise.model_selection.label_objective import LABEL_SCORINGS, resolve_label_scoring


def table(n=40, T=5, seed=0, unknown=0.0):
    """Labels, probabilities with ties, decisions, weights of rows."""
    rng = np.random.default_rng(seed)
    P = rng.integers(0, 11, size=(n, T)) / 10
    Y = (rng.random((n, T)) < P).astype(float)
    Y[rng.random((n, T)) < unknown] = np.nan
    return Y, P, (P > 0.4).astype(int), rng.integers(1, 4, n).astype(float)


def averages(metric, per_list):
    """The averages that a metric may have, from its values of lists, by loops."""

    def value(Y, A, w, average):
        W = np.broadcast_to(w[:, None] if w.ndim == 1 else w, Y.shape)
        parts = {
            "micro": [(Y.ravel(), A.ravel(), W.ravel())],
            "samples": list(zip(Y, A, W, strict=True)),
        }.get(average, list(zip(Y.T, A.T, W.T, strict=True)))
        values, weights = [], []
        for y, a, v in parts:
            known = ~np.isnan(y) & (v > 0)
            if known.any() and (metric != "ap" or (y[known] == 1).any()):
                values.append(per_list(y[known], a[known], v[known]))
                weights.append(v[known].mean() if average == "samples" else 1)
        return np.average(values, weights=weights)

    return value


slow_f1 = averages("f1", lambda y, d, w: f1_score(y, d, sample_weight=w, zero_division=0))
slow_ap = averages("ap", lambda y, p, w: average_precision_score(y, p, sample_weight=w))


def test_complete_tables_as_in_scikit_learn():
    Y, P, D, w = table()
    for average in ("micro", "macro", "samples", None):
        theirs = f1_score(Y, D, average=average, sample_weight=w, zero_division=0)
        np.testing.assert_allclose(label_f1(Y, D, average=average, sample_weight=w), theirs)
    assert hamming(Y, D, sample_weight=w) == pytest.approx(hamming_loss(Y, D, sample_weight=w))
    assert subset_accuracy(Y, D, sample_weight=w) == pytest.approx(accuracy_score(Y, D, sample_weight=w))
    full = (Y == 1).any(axis=1)
    for average in ("micro", "macro", "samples", None):
        theirs = average_precision_score(Y[full], P[full], average=average, sample_weight=w[full])
        found = label_average_precision(Y[full], P[full], average=average, sample_weight=w[full])
        np.testing.assert_allclose(found, theirs)
    each = [log_loss(y, p, sample_weight=w, labels=[0, 1]) for y, p in zip(Y.T, P.T, strict=True)]
    np.testing.assert_allclose(label_log_loss(Y, P, average=None, sample_weight=w), each)
    assert label_log_loss(Y, P, sample_weight=w) == pytest.approx(np.mean(each))


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 5), st.sampled_from([0.0, 0.3, 0.7]))
@settings(max_examples=60, deadline=None)
def test_unknown_entries_do_not_count(seed, n, T, unknown):
    Y, P, D, w = table(n, T, seed, unknown)
    Y[0, 0] = 1  # something is known
    W = np.random.default_rng(seed).integers(0, 3, Y.shape).astype(float)
    W[0, 0] = 1
    for weights in (w, W):
        for average in ("micro", "macro", "samples"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # scikit-learn on labels of one class
                expected = slow_f1(Y, D, weights, average), slow_ap(Y, P, weights, average)
            assert label_f1(Y, D, average=average, sample_weight=weights) == pytest.approx(expected[0])
            found = label_average_precision(Y, P, average=average, sample_weight=weights)
            assert found == pytest.approx(expected[1])
        V = np.broadcast_to(weights.reshape(n, -1), Y.shape)
        known = ~np.isnan(Y) & (V > 0)
        assert hamming(Y, D, sample_weight=weights) == pytest.approx(np.average((Y != D)[known], weights=V[known]))
        losses = -np.log(np.maximum(np.where(Y == 1, P, 1 - P), np.finfo(float).eps))
        assert label_log_loss(Y, P, sample_weight=weights) == pytest.approx(
            np.average(losses[known], weights=V[known])
        )
        rows = [(np.all((y == d)[k]), v[k].mean()) for y, d, k, v in zip(Y, D, known, V, strict=True) if k.any()]
        assert subset_accuracy(Y, D, sample_weight=weights) == pytest.approx(
            np.average(*np.transpose(rows)[:1], weights=np.transpose(rows)[1])
        )


def test_labels_and_rows_in_which_there_is_nothing_to_measure():
    Y = np.array([[1, 0, np.nan], [0, 0, np.nan], [1, np.nan, np.nan]])
    D = np.array([[1, 0, 1], [0, 0, 1], [0, 0, 1]])
    np.testing.assert_allclose(label_f1(Y, D, average=None), [2 / 3, 0, np.nan])
    assert label_f1(Y, D, average="macro") == pytest.approx(1 / 3)
    np.testing.assert_allclose(label_average_precision(Y, D, average=None), [5 / 6, np.nan, np.nan])
    assert label_average_precision(Y, D) == pytest.approx(5 / 6)
    np.testing.assert_allclose(hamming(Y, D, average=None), [1 / 3, 0, np.nan])
    np.testing.assert_allclose(label_log_loss(Y, D * 0.5, average=None)[2], np.nan)
    assert np.isnan(label_average_precision(Y[1:2], D[1:2]))


def test_tables_of_all_kinds():
    Y, _, D, _ = table(unknown=0.2)
    hole = np.isnan(Y)
    expected = label_f1(Y, D)
    kinds = [
        Y.tolist(),
        np.where(hole, None, Y),
        pd.DataFrame(Y),
        pd.DataFrame(Y).astype("Int64"),
        pl.DataFrame(Y),
        pl.DataFrame(np.where(hole, None, Y).tolist(), orient="row"),
        np.ma.masked_array(np.where(hole, 1, Y), mask=hole),
    ]
    for kind in kinds:
        assert label_f1(kind, D) == expected
    assert label_f1(sparse.csr_array(D), sparse.csr_array(D)) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda Y, P, D: label_f1(Y, D, average="weighted"), "average='weighted' is not known"),
        (lambda Y, P, D: label_f1(Y, P), "Y_pred holds .*decisions must be 0 or 1"),
        (lambda Y, P, D: label_f1(2 * Y, D), "Y_true holds 2.0"),
        (lambda Y, P, D: label_f1(Y, D[:, :3]), r"Y_pred has shape \(40, 3\) but Y_true \(40, 5\)"),
        (lambda Y, P, D: label_f1(Y[:, 0], D), r"Y_true has shape \(40,\)"),
        (lambda Y, P, D: label_f1(Y, np.where(D, np.nan, 0)), "Y_pred has missing values"),
        (lambda Y, P, D: label_f1(np.full_like(Y, np.nan), D), "no known value"),
        (lambda Y, P, D: label_f1([["a", "b"]], D), "Y_true holds 'a': its values must be 0 or 1"),
        (lambda Y, P, D: label_f1([[0, 1], [1]], D), "rows of different lengths"),
        (lambda Y, P, D: label_f1(Y, D, sample_weight=np.ones(3)), r"sample_weight of shape \(3,\)"),
        (lambda Y, P, D: label_f1(Y, D, sample_weight=-np.ones(40)), "finite and not negative"),
        (lambda Y, P, D: label_f1(Y, D, sample_weight=np.zeros(40)), "nothing to measure"),
        (lambda Y, P, D: label_log_loss(Y, 2 * P), "not from 0 to 1"),
        (lambda Y, P, D: hamming(Y, D, average="micro"), "average='micro' is not known"),
    ],
)
def test_bad_input(call, message):
    Y, P, D, _ = table()
    with pytest.raises(ValueError, match=message):
        call(Y, P, D)


# ---------------------------------------------------------------------- scorers


def sample_of(widths, n=30, seed=0, unknown=0.3):
    rng = np.random.default_rng(seed)
    starts = np.cumsum([0, *widths])
    codes = np.column_stack([rng.integers(0, c, n) for c in widths])
    codes[rng.random(codes.shape) < unknown] = -1
    P = np.hstack([rng.dirichlet(np.ones(c), n) for c in widths]).round(2)
    W = np.where(codes >= 0, rng.uniform(0.5, 2, codes.shape), 0)
    D = np.column_stack([P[:, a:b].argmax(axis=1) for a, b in pairwise(starts)])
    return LabelSample(P, codes, W, starts, n), P, D


def things(sample, P, D):
    """Truth, probability, decision and weight of the second of two classes, and of each of more, one column each."""
    columns = []
    for t, (a, b) in enumerate(pairwise(sample.starts)):
        for c in range(b - a) if b - a != 2 else [1]:
            y = np.where(sample.codes[:, t] < 0, np.nan, sample.codes[:, t] == c)
            columns.append((y, P[:, a + c], D[:, t] == c, sample.W[:, t]))
    return [np.column_stack(part) for part in zip(*columns, strict=True)]


def slow_scores(sample, P, D):
    """Every score by loops over the known entries."""
    Y, p, d, W = things(sample, P, D)
    logs, squares, wrong, weights = [], [], [], []
    for i, t in np.argwhere(sample.codes >= 0):
        q = P[i, sample.starts[t] : sample.starts[t + 1]]
        logs.append(np.log(max(q[sample.codes[i, t]], np.finfo(float).eps)))
        squares.append(np.sum((q - np.eye(len(q))[sample.codes[i, t]]) ** 2))
        wrong.append(sample.codes[i, t] != D[i, t])
        weights.append(sample.W[i, t])
    known = [~np.isnan(y) for y in Y.T]
    mixed = [t for t, k in enumerate(known) if len(set(Y[k, t])) == 2]
    rows = [np.flatnonzero(c >= 0) for c in sample.codes]
    right = [(np.all(sample.codes[i, r] == D[i, r]), sample.W[i, r].mean()) for i, r in enumerate(rows) if len(r)]
    areas = [roc_auc_score(Y[known[t], t], p[known[t], t], sample_weight=W[known[t], t]) for t in mixed]
    return {
        "log_loss": np.average(logs, weights=weights),
        "neg_log_loss": np.average(logs, weights=weights),
        "brier": -np.average(squares, weights=weights),
        "hamming": -np.average(wrong, weights=weights),
        "accuracy": np.average([r for r, _ in right], weights=[w for _, w in right]),
        "f1_micro": slow_f1(Y, d, W, "micro"),
        "f1_macro": slow_f1(Y, d, W, "macro"),
        "f1_samples": slow_f1(Y, d, W, "samples"),
        "average_precision": slow_ap(Y[:, mixed], p[:, mixed], W[:, mixed], "macro"),
        "average_precision_micro": slow_ap(Y, p, W, "micro"),
        "auc": np.mean(areas),
    }


@pytest.mark.parametrize("widths", [(2, 2, 2), (2, 3, 2, 4), (3, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_scores_by_loops(widths, seed):
    sample, P, D = sample_of(widths, seed=seed)
    sample.codes[sample.codes[:, 0] > 0, 0] = 0  # a label of one class
    expected = slow_scores(sample, P, D)
    assert set(expected) == set(LABEL_SCORINGS)
    for name, value in expected.items():
        assert resolve_label_scoring(name)(sample, P, D) == pytest.approx(value), name


def test_losses_are_shown_with_their_own_sign():
    for name in LABEL_SCORINGS:
        sign = -1 if name in ("log_loss", "neg_log_loss", "brier", "hamming") else 1
        assert resolve_label_scoring(name).shown(0.25) == sign * 0.25


@pytest.mark.parametrize("name", sorted(LABEL_SCORINGS))
def test_what_decisions_make_a_difference_to(name):
    sample, P, D = sample_of((2, 2, 2))
    scorer = resolve_label_scoring(name)
    assert (scorer(sample, P, D) != scorer(sample, P, np.zeros_like(D))) == scorer.decides


@pytest.mark.parametrize("name", sorted(LABEL_SCORINGS))
def test_weights_are_copies(name):
    sample, P, D = sample_of((2, 3, 2))
    times = np.random.default_rng(0).integers(1, 4, len(D))
    plain = LabelSample(P, sample.codes, (sample.codes >= 0).astype(float), sample.starts, len(D))
    every = np.repeat(np.arange(len(D)), times)
    copies = replace(plain, F=plain.F[every], codes=plain.codes[every], W=plain.W[every])
    weighted = LabelSample(P, sample.codes, plain.W * times[:, None], sample.starts, len(D))
    scorer = resolve_label_scoring(name)
    found = scorer(weighted, P, D), scorer(copies, *(np.repeat(A, times, axis=0) for A in (P, D)))
    assert found[0] == pytest.approx(found[1])


def complete(seed=0, T=3):
    sample, P, D = sample_of((2,) * T, seed=seed, unknown=0)
    w = np.random.default_rng(seed).integers(1, 4, len(D)).astype(float)
    return LabelSample(P, sample.codes, np.repeat(w[:, None], T, axis=1), sample.starts, len(D)), P, D, w


def test_scorers_of_scikit_learn():
    sample, P, D, w = complete()
    Y, p = sample.codes, P[:, 1::2]
    expected = {
        "f1_weighted": (f1_score(Y, D, average="weighted", sample_weight=w), True),
        "jaccard_samples": (jaccard_score(Y, D, average="samples", sample_weight=w, zero_division=0), True),
        "roc_auc": (roc_auc_score(Y, p, sample_weight=w), False),
        "roc_auc_ovr": (roc_auc_score(Y, p, sample_weight=w), False),
    }
    for name, (value, decides) in expected.items():
        scorer = resolve_label_scoring(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rows without a label
            assert scorer(sample, P, D) == pytest.approx(value), name
        assert scorer.decides == decides
        assert scorer.name == name


def test_one_label_may_be_scored_by_scikit_learn():
    sample, P, D, w = complete(T=1)
    assert resolve_label_scoring("roc_auc")(sample, P, D) == pytest.approx(
        roc_auc_score(sample.codes[:, 0], P[:, 1], sample_weight=w)
    )


def test_functions_are_shown_a_classifier():
    sample, P, D, _ = complete()

    def mine(model, X, Y):
        assert X.shape == (len(Y), 1)
        np.testing.assert_array_equal(model.predict(X), D)
        np.testing.assert_array_equal(model.predict_proba(X) > 0.5, model.decision_function(X) > 0)
        return np.mean(model.predict_proba(X)[Y == 1])

    scorer = resolve_label_scoring(mine)
    assert (scorer.name, scorer.decides) == ("mine", True)
    assert scorer(sample, P, D) == np.mean(P[:, 1::2][sample.codes == 1])
    made = resolve_label_scoring(make_scorer(hamming_loss, greater_is_better=False))
    assert made(sample, P, D) == pytest.approx(resolve_label_scoring("hamming")(sample, P, D))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unknown": 0.3}, "needs all labels, and .* are unknown.*'f1_macro'"),
        ({"widths": (2, 3), "unknown": 0}, "label 1 has 3.*'log_loss'"),
        ({"unknown": 0}, "supports one weight per row only.*'auc'"),
    ],
)
def test_scorers_of_scikit_learn_need_complete_labels_of_two_classes(change, message):
    sample, P, D = sample_of(**{"widths": (2, 2), **change})
    with pytest.raises(ValueError, match=message):
        resolve_label_scoring("jaccard_micro")(sample, P, D)


def test_what_is_no_scoring():
    for scoring in ("f2", None, 3):
        with pytest.raises(ValueError, match=r"is not known: use one of \['accuracy'"):
            resolve_label_scoring(scoring)
    sample, P, D, _ = complete()
    with pytest.raises(ValueError, match=r"scoring='f1' does not support predictions of many labels"):
        resolve_label_scoring("f1")(sample, P, D)
    with pytest.raises(ValueError, match="scoring='nothing' is NaN"):
        resolve_label_scoring(type("nothing", (), {"__call__": lambda *_: np.nan})())(sample, P, D)
    constant = LabelSample(P, np.zeros_like(D), sample.W, sample.starts, len(D))
    for name in ("auc", "average_precision"):
        with pytest.raises(ValueError, match=f"scoring='{name}' is NaN"):
            resolve_label_scoring(name)(constant, P, D)
