"""Rows are observations: leave-one-out leaves out one of them, also where rows are equal or stand for several."""

import warnings

import numpy as np
import pytest
from conftest import blobs
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import LeaveOneOut

from leastwise import (
    LSPC,
    LSSVC,
    LSSVR,
    KernelLogisticRegression,
    MultiLabelLSPC,
    MultiTaskKernelLogisticRegression,
    MultiTaskLSPC,
    MultiTaskLSSVC,
    MultiTaskLSSVR,
)
from leastwise.estimators.abstaining import Abstaining
from leastwise.estimators.recalibrated import Recalibrated
from leastwise.model_selection.folds import DuplicateRowsWarning, observation_counts
from leastwise.problem.similarity import correlation_similarity, input_similarity, learned_similarity
from leastwise.tables import Table, TableModel

SEEDS = st.integers(0, 2**32 - 1)
FIXED = {"sigma": 1.0, "alpha": 0.02}


def cells(kind, n, seed):
    """Discrete rows with the probability of the second class of each."""
    rng = np.random.default_rng(seed)
    if kind == "binary":
        x = rng.integers(0, 2, n)
        return x[:, None].astype(float), np.where(x, 0.9, 0.1), rng
    if kind == "levels":
        x = rng.integers(0, 6, n)
        return np.eye(6)[x], np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])[x], rng
    X = rng.integers(0, 2, (n, 2))
    return X.astype(float), np.where(X[:, 0] ^ X[:, 1], 0.9, 0.1), rng


CLASSIFIERS = {
    "lspc": (LSPC(), {}),
    "lspc, coefficients": (LSPC(norm="coefficients"), {}),
    "lspc, class": (LSPC(basis="class"), {}),
    "lspc, bias": (LSPC(bias="shared"), {}),
    "lspc, five folds": (LSPC(cv=5, random_state=0), {}),
    "lspc, sums": (LSPC(n_centers=6, solver="moments"), {}),
    "lssvc": (LSSVC(), {}),
    "labels": (MultiLabelLSPC(), {}),
    "tasks": (MultiTaskLSPC(), {"tasks": 3}),
    "tasks, lssvc": (MultiTaskLSSVC(), {"tasks": 3}),
    "klr": (KernelLogisticRegression(), {}),
    "klr, leave-one-out": (KernelLogisticRegression(alpha=1e-3, cv="loo"), {}),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("kind", ["binary", "levels", "xor"])
def test_discrete_rows_are_learned(kind, name):
    model, more = CLASSIFIERS[name]
    n = 100 if "leave" in name else 400
    X, p, rng = cells(kind, n, 1)
    y = (rng.random(n) < p).astype(int)
    tasks = {"tasks": np.arange(n) % more["tasks"]} if more else {}
    P = clone(model).fit(X, y, **tasks).predict_proba(X, **tasks)
    P = P[:, 1] if np.ndim(P) == 2 else P
    mean = np.array([y[(x == X).all(axis=1)].mean() for x in X])
    loss, best = log_loss(y, P), log_loss(y, mean, labels=[0, 1])
    assert loss < best + 0.15 * (log_loss(y, np.full(n, y.mean())) - best)


@pytest.mark.parametrize("kind", ["zeros and ones", "rounded", "continuous"])
@pytest.mark.parametrize("model", [LSSVR(), MultiTaskLSSVR()], ids=lambda m: type(m).__name__)
def test_quantities_of_discrete_rows_are_learned(model, kind):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, 400)
    X, y = np.eye(5)[x], np.array([0.0, 1.0, 0.5, 2.0, 1.5])[x] + 0.8 * rng.standard_normal(400)
    if kind == "zeros and ones":
        y = (rng.random(400) < np.array([0.05, 0.3, 0.5, 0.7, 0.95])[x]).astype(float)
    elif kind == "rounded":
        y = np.round(y)
    tasks = {"tasks": np.arange(400) % 2} if isinstance(model, MultiTaskLSSVR) else {}
    cell_means = np.array([y[x == k].mean() for k in x])
    assert r2_score(y, model.fit(X, y, **tasks).predict(X, **tasks)) > r2_score(y, cell_means) - 0.02


def test_a_table_with_one_category_is_learned():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, 300)
    y = (rng.random(300) < np.array([0.1, 0.5, 0.9])[x]).astype(int)
    table = Table.of({"colour": np.array(["red", "green", "blue"])[x], "y": np.array(["no", "yes"])[y]})
    model = TableModel(target="y").fit(table)
    told = model.predict_table(Table.of({"colour": np.array(["red", "green", "blue"])}))
    P = told.columns["p_yes"].astype(float)
    np.testing.assert_allclose(P, [y[x == k].mean() for k in range(3)], atol=0.06)


# ------------------------------------------------------------ weights are copies


def drawn(seed, n=26):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)
    y[:4] = [0, 1, 0, 1]
    task, times = np.arange(n) % 3, rng.integers(1, 4, n)
    z = X[:, 0] ** 2 + task + 0.1 * rng.normal(size=n)
    return X, y, z, task, times, rng.normal(size=(20, 2))


ONE = [
    LSPC(),
    LSPC(**FIXED),
    LSPC(**FIXED, norm="coefficients"),
    LSPC(**FIXED, norm="coefficients", bias="shared"),
    LSPC(**FIXED, basis="class"),
    LSPC(**FIXED, basis="class", norm="coefficients"),
    LSPC(**FIXED, n_centers=9, random_state=0),
    LSPC(**FIXED, n_centers=9, norm="coefficients", random_state=0),
    LSPC(**FIXED, centers=np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, 0.5]]), solver="moments"),
    LSPC(**FIXED, class_weight="balanced"),
    LSPC(**FIXED, class_weight={0: 2.5}),
    LSPC(**FIXED, calibration="isotonic"),
    LSSVC(),
    LSSVR(),
    LSSVR(**FIXED),
    KernelLogisticRegression(**FIXED, cv="loo"),
    MultiLabelLSPC(),
    MultiLabelLSPC(**FIXED, sharing=0.5, norm="coefficients"),
    MultiLabelLSPC(**FIXED, sharing=0.5, bias="shared", similarity="shared"),
]
MANY = [
    MultiTaskLSPC(),
    MultiTaskLSPC(**FIXED, sharing=0.5, norm="coefficients"),
    MultiTaskLSPC(**FIXED, similarity="learned"),
    MultiTaskLSPC(**FIXED, similarity="correlation"),
    MultiTaskLSPC(**FIXED, similarity="inputs"),
    MultiTaskLSPC(**FIXED, sharing=0.5, n_centers=9, solver="arrow", random_state=0),
    MultiTaskLSSVC(**FIXED, sharing=0.5),
    MultiTaskLSSVR(**FIXED, sharing=0.5, bias="task"),
    MultiTaskLSSVR(**FIXED, sharing=0.5, bias="shrunk"),
    MultiTaskKernelLogisticRegression(**FIXED, sharing=0.5, cv="loo"),
]


def answers(model, X, tasks=None):
    more = {} if tasks is None else {"tasks": tasks}
    P = model.predict_proba(X, **more) if hasattr(model, "predict_proba") else model.predict(X, **more)
    return np.asarray(P)


def held(model):
    return model.heldout_prediction_ if hasattr(model, "heldout_prediction_") else model.heldout_scores_


def targets(model, y, z):
    if isinstance(model, LSSVR | MultiTaskLSSVR):
        return z
    return np.stack([y, 1 - y, (z > 1).astype(int)], axis=1) if isinstance(model, MultiLabelLSPC) else y


@pytest.mark.parametrize("model", [*ONE, *MANY], ids=lambda m: str(m)[:60])
@settings(max_examples=5, deadline=None)
@given(SEEDS)
def test_weight_two_is_the_row_twice(model, seed):
    X, y, z, task, times, new = drawn(seed)
    y, rows = targets(model, y, z), np.repeat(np.arange(len(X)), times)
    tasks = [{"tasks": t} if hasattr(model, "task_column") else {} for t in (task, task[rows], np.arange(20) % 3)]
    weighted = clone(model).fit(X, y, sample_weight=times, **tasks[0])
    repeated = clone(model).fit(X[rows], y[rows], **tasks[1])
    assert (weighted.sigma_, weighted.alpha_) == pytest.approx((repeated.sigma_, repeated.alpha_))
    rounding = 100 * np.finfo(float).eps / weighted.alpha_  # of a system with the condition number 1 / alpha
    np.testing.assert_allclose(held(weighted)[rows], held(repeated), atol=max(1e-6, rounding))
    answer, expected = answers(weighted, new, **tasks[2]), answers(repeated, new, **tasks[2])
    np.testing.assert_allclose(answer, expected, atol=max(1e-5, rounding))


@pytest.mark.parametrize("model", [LSPC(), MultiTaskLSPC(), MultiLabelLSPC(), LSSVR()], ids=lambda m: str(m)[:60])
@settings(max_examples=5, deadline=None)
@given(SEEDS, st.floats(0.1, 9.7))
def test_neither_the_order_of_rows_nor_the_scale_of_weights_matters(model, seed, scale):
    X, y, z, task, _, new = drawn(seed)
    rng = np.random.default_rng(seed)
    y, w, order = targets(model, y, z), rng.uniform(0.5, 2, len(X)), rng.permutation(len(X))
    tasks = [{"tasks": t} if hasattr(model, "task_column") else {} for t in (task, task[order], np.arange(20) % 3)]
    one = clone(model).fit(X, y, sample_weight=w, **tasks[0])
    other = clone(model).fit(X[order], y[order], sample_weight=scale * w[order], **tasks[1])
    np.testing.assert_allclose(answers(one, new, **tasks[2]), answers(other, new, **tasks[2]), atol=1e-5)
    rounding = 100 * np.finfo(float).eps / one.alpha_  # of a system with the condition number 1 / alpha
    np.testing.assert_allclose(
        held(one)[order], held(other), atol=max(2e-5, rounding)
    )  # means of columns are rounded


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("options", [{}, {"norm": "coefficients"}, {"bias": "shared"}, {"basis": "class"}], ids=str)
def test_held_out_scores_are_those_of_refits_without_one_copy(options, times):
    X, y = blobs(18)
    X, y = np.repeat(X, times, axis=0), np.repeat(y, times)
    model = LSPC(**FIXED, **options).fit(X, y)
    same = LSPC(**FIXED, **options, cv=LeaveOneOut()).fit(X, y)
    np.testing.assert_array_equal(model.heldout_scores_, same.heldout_scores_)
    for i in range(0, len(X), 5):
        stay = np.arange(len(X)) != i
        refit = LSPC(**FIXED, **options, cv=None, calibration=None).fit(X[stay], y[stay])
        np.testing.assert_allclose(model.heldout_scores_[i], refit.scores(X[i : i + 1])[0], atol=1e-8)


@pytest.mark.parametrize("norm", ["function", "coefficients"])
def test_a_row_of_fractional_weight_is_left_out_whole(norm):
    X, y = blobs(20)
    w = np.random.default_rng(0).uniform(0.3, 3, 20)
    model = LSPC(**FIXED, norm=norm).fit(X, y, sample_weight=w)
    for i in range(0, 20, 4):
        stay = np.arange(20) != i
        refit = LSPC(**FIXED, norm=norm, cv=None, calibration=None).fit(X[stay], y[stay], sample_weight=w[stay])
        np.testing.assert_allclose(model.heldout_scores_[i], refit.scores(X[i : i + 1])[0], atol=1e-8)


def test_which_weights_are_counts():
    assert observation_counts(None) is None
    assert observation_counts(np.ones(3)) is None
    assert observation_counts([0.0, 1.0, 1.0]) is None
    assert observation_counts([0.5, 2.0, 1.0]) is None
    assert observation_counts(np.ones((3, 2)) * 2) is None
    np.testing.assert_array_equal(observation_counts([0, 2, 1]), [1, 2, 1])
    np.testing.assert_array_equal(observation_counts(np.array([3.0, 2.0])), [3, 2])
    assert observation_counts([2, 2, 0, 2]) is None  # equal weights say nothing


@pytest.mark.parametrize("cv", ["loo", 5])
def test_observations_are_counted_whatever_the_folds(cv):
    X, p, rng = cells("binary", 300, 0)
    y = (rng.random(300) < p).astype(int)
    model = LSPC(cv=cv, random_state=0).fit(X, y)
    assert model.calibrator_.floor == pytest.approx(1 / 302)
    grouped = LSPC(cv=cv, random_state=0).fit(X, y, groups=np.arange(300) // 3)
    assert grouped.calibrator_.floor == pytest.approx(1 / 102)


# ------------------------------------------------- what is made of held-out rows


def test_guarantees_sets_and_recalibration_count_observations():
    X, y = blobs(60, intercept_ratio=1.8)
    times = np.random.default_rng(0).integers(1, 5, 60)
    rows = np.repeat(np.arange(60), times)
    for make in (
        lambda: Abstaining(LSPC(**FIXED), max_error=0.3),
        lambda: Abstaining(LSPC(**FIXED, class_weight={0: 2.5}), max_error=0.4),
        lambda: Recalibrated(LSPC(**FIXED), "vector"),
    ):
        one, two = make().fit(X, y, sample_weight=times), make().fit(X[rows], y[rows])
        np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-7)
        if isinstance(one, Abstaining):
            assert one.threshold_ == two.threshold_
            assert (one.coverage_, one.error_bound_) == pytest.approx((two.coverage_, two.error_bound_))
    one, two = LSPC(**FIXED).fit(X, y, sample_weight=times), LSPC(**FIXED).fit(X[rows], y[rows])
    for coverage in (0.8, 0.95):
        np.testing.assert_array_equal(one.predict_set(X, coverage=coverage), two.predict_set(X, coverage=coverage))
    np.testing.assert_allclose(one.novelty_pvalue(X + 0.3), two.novelty_pvalue(X + 0.3))


@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_similarities_of_tasks_know_counts(seed):
    rng = np.random.default_rng(seed)
    X, task = rng.normal(size=(20, 2)), np.arange(20) % 4
    Z, times = np.eye(2)[rng.integers(0, 2, 20)], rng.integers(1, 4, 20)
    rows = np.repeat(np.arange(20), times)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    root, big = np.sqrt(times), K[np.ix_(rows, rows)]
    pairs = [
        (
            learned_similarity(K, Z, task, 0.5, 0.4, root, times),
            learned_similarity(big, Z[rows], task[rows], 0.5, 0.4),
        ),
        (correlation_similarity(K, Z, task, 0.5, root, times), correlation_similarity(big, Z[rows], task[rows], 0.5)),
        (input_similarity(K, task, root), input_similarity(big, task[rows])),
    ]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, atol=1e-8)


# ------------------------------------------------------- copies of continuous rows


@pytest.mark.parametrize(
    "model", [LSPC(**FIXED), LSSVC(**FIXED), MultiLabelLSPC(**FIXED, sharing=0.5), LSSVR(**FIXED)]
)
def test_copies_are_held_out_together_where_that_is_asked_for(model):
    X, y, z, *_ = drawn(0)
    X, y = np.vstack([X, X[:9], X[:4]]), targets(model, y, z)
    y = np.concatenate([y, y[:9], y[:4]])
    group = np.r_[np.arange(26), np.arange(9), np.arange(4)]
    asked = clone(model).fit(X, y, groups="duplicates")
    np.testing.assert_allclose(held(asked), held(clone(model).fit(X, y, groups=group)), atol=1e-9)
    np.testing.assert_allclose(held(asked)[:4], held(asked)[-4:], atol=1e-9)
    assert np.abs(held(asked) - held(clone(model).fit(X, y))).max() > 1e-4


def test_copies_in_other_tasks_are_other_rows():
    X, y, _, task, *_ = drawn(0)
    X, y, tasks = np.vstack([X, X]), np.r_[y, y], np.r_[task, task + 3]
    model = MultiTaskLSPC(**FIXED, sharing=0.5)
    asked, rows = model.fit(X, y, tasks=tasks, groups="duplicates"), clone(model).fit(X, y, tasks=tasks)
    np.testing.assert_allclose(asked.heldout_scores_, rows.heldout_scores_, atol=1e-9)


def test_other_words_for_groups_are_refused():
    X, y = blobs(20)
    with pytest.raises(ValueError, match="duplicates"):
        LSPC(**FIXED).fit(X, y, groups="copies")
    with pytest.raises(ValueError, match="only one group"):
        LSPC(**FIXED).fit(np.ones((20, 2)), y, groups="duplicates")


def upsampled(kind):
    X, y = blobs(60, intercept_ratio=1.5)
    rows = np.r_[np.arange(60), np.arange(15)]
    if kind == "sparse":
        return sparse.csr_matrix(X[rows]), y[rows], {}
    if kind == "weights":
        return X, y, {"sample_weight": np.where(np.arange(60) < 15, 2, 1)}
    if kind == "quantities":
        return X[rows], X[rows, 0], {}
    return X[rows], y[rows], {}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["dense", "sparse", "weights", "quantities"])
def test_copies_of_continuous_rows_are_warned_of(kind):
    X, y, more = upsampled(kind)
    model = LSSVR(**FIXED) if kind == "quantities" else LSPC(**FIXED)
    with pytest.warns(DuplicateRowsWarning, match=r"20% of the observations.*groups='duplicates'"):
        model.fit(X, y, **more)
    model.fit(X, y, groups="duplicates", **more)
    if kind != "quantities":
        LSPC(**FIXED, cv=None, calibration=None).fit(X, y, **more)


@pytest.mark.parametrize("kind", ["binary", "levels", "xor", "noise", "few", "whole numbers"])
def test_equal_rows_that_are_to_be_expected_are_not_warned_of(kind):
    rng = np.random.default_rng(0)
    if kind == "noise":  # other classes for equal rows: measurements, not copies
        X = np.repeat(rng.normal(size=(40, 2)), 3, axis=0)
        y = rng.integers(0, 2, 120)
    elif kind == "few":
        X, y = blobs(60)
        X, y = np.vstack([X, X[:3]]), np.r_[y, y[:3]]
    elif kind == "whole numbers":
        X = rng.integers(0, 100, (300, 1)).astype(float)
        y = (X[:, 0] > 50).astype(int)
    else:
        X, p, rng = cells(kind, 200, 0)
        y = (rng.random(200) < p).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DuplicateRowsWarning)
        LSPC(**FIXED).fit(X, y)


def test_tables_hold_copies_out_together_where_that_is_asked_for():
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    rows = np.r_[np.arange(40), np.arange(20)]
    table = Table.of({"x": x[rows], "y": np.where(x[rows] + rng.normal(size=40)[rows] > 0, "yes", "no")})
    model = TableModel(target="y", group="duplicates").fit(table)
    P = model.model_.heldout_proba_
    np.testing.assert_allclose(P[:20], P[40:], atol=1e-9)
    assert np.abs(P - TableModel(target="y").fit(table).model_.heldout_proba_).max() > 1e-3
