"""LS-SVMs of many tasks against the long way: the paper's systems, refits through the public surface, limits."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import intercept_fit, rbf, tasks_decision, tasks_solution, tasks_system
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneGroupOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leastwise import LSSVC, LSSVR, MultiTaskLSSVC, MultiTaskLSSVR
from leastwise.datasets import make_related_tasks
from leastwise.linalg.krylov import Krylov, three_steps
from leastwise.problem.coupling import from_gamma_lambda, to_gamma_lambda

T, N = 4, 40
RNG = np.random.default_rng(3)
TASK = RNG.permutation(np.repeat(np.arange(T), [6, 13, 9, 12]))
X = RNG.normal(size=(N, 2))
Y = np.sin(1.5 * X[:, 0]) + 0.3 * TASK * X[:, 1] + np.array([3.0, -1, 0, 5])[TASK] + 0.2 * RNG.normal(size=N)
TWO = np.column_stack([Y, X[:, 1] - 2 * Y])
LABELS = np.where(Y - np.array([3.0, -1, 0, 5])[TASK] > 0, 1, -1)
THREE = np.digitize(Y, np.quantile(Y, [1 / 3, 2 / 3]))
WEIGHTS = RNG.uniform(0.3, 3, N)
NAMES = np.array(["ash", "bay", "elm", "fir"])[TASK]
NEW = np.random.default_rng(1).normal(size=(8, 2))
KINDS = ["task", "shared", 0.3, None]
BIASES = pytest.mark.parametrize("bias", KINDS)


def svr(**changes):
    given = {"sigma": 1.2, "alpha": 0.01, "sharing": 0.6, "kernel": "rbf", "linear_weight": 1.0, "bias": "task"}
    return MultiTaskLSSVR(**{**given, "random_state": 0, **changes})


def svc(**changes):
    given = {"sigma": 1.2, "alpha": 0.01, "sharing": 0.6, "kernel": "rbf", "linear_weight": 1.0, "bias": "task"}
    return MultiTaskLSSVC(**{**given, "calibration": None, "random_state": 0, **changes})


def fixed_svr(**changes):
    return svr(cv=None, **changes)


def fixed_svc(**changes):
    return svc(cv=None, **changes)


def everywhere(model, rows=NEW, tasks=range(T), method="predict"):
    """What a model says of new rows in every task."""
    return np.array([getattr(model, method)(rows, tasks=t) for t in tasks])


def same(a, b, atol=1e-8, tasks=(*range(T), "new")):
    np.testing.assert_allclose(everywhere(a, tasks=tasks), everywhere(b, tasks=tasks), atol=atol)


# --------------------------------------------------------------- the paper's systems

POINTS = pytest.mark.parametrize(("gamma", "lambda_"), [(0.5, 0.1), (3.0, 4.0), (40.0, 60.0)])


@POINTS
def test_regression_is_the_system_24_and_the_decision_25(gamma, lambda_):
    b, alpha = tasks_solution(rbf(X, X, 1.2), TASK, Y, gamma, lambda_, classify=False)
    model = fixed_svr(**from_gamma_lambda(gamma, lambda_, N, T)).fit(X, Y, tasks=TASK)
    np.testing.assert_allclose(model.task_intercept_[:, 0] * model.unit_, b, atol=1e-8)
    for t in range(T):
        expected = tasks_decision(rbf(NEW, X, 1.2), t, TASK, alpha, b, lambda_)
        np.testing.assert_allclose(model.predict(NEW, tasks=t), expected, atol=1e-8)


@POINTS
def test_classification_is_the_system_18_and_the_decision_19(gamma, lambda_):
    b, alpha = tasks_solution(rbf(X, X, 1.2), TASK, LABELS, gamma, lambda_, classify=True)
    model = fixed_svc(**from_gamma_lambda(gamma, lambda_, N, T)).fit(X, LABELS, tasks=TASK)
    np.testing.assert_allclose(model.task_intercept_[:, 1], b, atol=1e-8)
    for t in range(T):
        expected = tasks_decision(rbf(NEW, X, 1.2), t, TASK, alpha * LABELS, b, lambda_)
        np.testing.assert_allclose(model.scores(NEW, tasks=t)[:, 1], expected, atol=1e-8)
        np.testing.assert_array_equal(model.predict(NEW, tasks=t), np.sign(expected))


@POINTS
def test_coefficients_are_the_papers_in_units_of_the_coupling(gamma, lambda_):
    """B = sharing (1 + m/lambda [t = t']): the paper's alpha is sharing times ours."""
    _, alpha = tasks_solution(rbf(X, X, 1.2), TASK, Y, gamma, lambda_, classify=False)
    point = from_gamma_lambda(gamma, lambda_, N, T)
    model = fixed_svr(**point).fit(X, Y, tasks=TASK)
    np.testing.assert_allclose(model.dual_coef_[:, 0] * model.unit_ * point["sharing"], alpha, atol=1e-8)


@pytest.mark.parametrize("classify", [False, True])
def test_the_three_steps_of_section_3_4_are_the_model(classify):
    gamma, lambda_, y = 3.0, 4.0, LABELS if classify else Y
    H, A, right = tasks_system(rbf(X, X, 1.2), TASK, y, gamma, lambda_, classify)

    def solve(B):
        return Krylov(np.linalg.solve(H, B), 1, True, np.zeros(B.shape[1]), 1)

    alpha, b, _ = three_steps(solve, A, right[:, None])
    make = fixed_svc if classify else fixed_svr
    model = make(**from_gamma_lambda(gamma, lambda_, N, T)).fit(X, y, tasks=TASK)
    weights = alpha[:, 0] * (LABELS if classify else 1)
    F = everywhere(model, method="scores")[:, :, 1] if classify else everywhere(model)
    for t in range(T):
        np.testing.assert_allclose(
            F[t], tasks_decision(rbf(NEW, X, 1.2), t, TASK, weights, b[:, 0], lambda_), atol=1e-8
        )


def test_the_papers_parameters_and_back():
    for gamma, lambda_ in [(0.5, 0.1), (3.0, 4.0), (40.0, np.inf)]:
        back = to_gamma_lambda(**from_gamma_lambda(gamma, lambda_, N, T), n=N, n_tasks=T)
        np.testing.assert_allclose(back, (gamma, lambda_))


@POINTS
def test_what_is_shared_is_the_sum_of_the_tasks_own_parts_26(gamma, lambda_):
    """w_0 = lambda/m sum_t v_t, with w_t = w_0 + v_t."""
    model = fixed_svr(**from_gamma_lambda(gamma, lambda_, N, T), kernel="linear", solver="arrow")
    model.fit(X, Y, tasks=TASK)
    own = model.coef_ - model.shared_coef_
    assert model.coef_.shape == (T, 2, 1)
    np.testing.assert_allclose(model.shared_coef_, lambda_ / T * own.sum(axis=0), atol=1e-9)


@POINTS
def test_what_is_shared_through_predictions_26(gamma, lambda_):
    """The same for the functions of a Gaussian kernel, less the intercepts."""
    model = fixed_svr(**from_gamma_lambda(gamma, lambda_, N, T)).fit(X, Y, tasks=TASK)
    shared = model.predict(NEW, tasks="new") - model.intercept_ * model.unit_
    functions = everywhere(model) - model.task_intercept_ * model.unit_
    np.testing.assert_allclose(shared, lambda_ / T * (functions - shared).sum(axis=0), atol=1e-8)


def test_coefficients_of_every_task_sum_to_zero():
    """The third line of (17) and (23)."""
    model = fixed_svr().fit(X, Y, tasks=TASK)
    sums = np.bincount(TASK, weights=model.dual_coef_[:, 0])
    np.testing.assert_allclose(sums, 0, atol=1e-10)


@BIASES
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weights"])
@pytest.mark.parametrize("sharing", [0.0, 0.6, 1.0])
def test_intercepts_are_those_of_the_bordered_system(bias, weights, sharing):
    w = np.ones(N) if weights is None else WEIGHTS / WEIGHTS.mean()
    G = rbf(X, X, 1.2) * (sharing + (1 - sharing) * (TASK[:, None] == TASK))
    intercept_ratio = {"task": np.inf, "shared": 0.0, None: 0.0}.get(bias, bias)
    intercept_ratio *= 1 if weights is None else WEIGHTS.mean()  # it is in units of the noise of a row of weight 1
    A, b, own = intercept_fit(G, Y[:, None], TASK, w, 0.01 * N, intercept_ratio, bias is not None)
    model = fixed_svr(bias=bias, sharing=sharing).fit(X, Y, tasks=TASK, sample_weight=weights)
    for t in range(T):
        k = rbf(NEW, X, 1.2) * (sharing + (1 - sharing) * (t == TASK))
        np.testing.assert_allclose(model.predict(NEW, tasks=t), k @ A[:, 0] + b[0] + own[t, 0], atol=1e-8)


@pytest.mark.parametrize("bias", ["task", 0.3])
def test_unknown_tasks_have_the_shared_part_and_the_common_intercept(bias):
    model = fixed_svr(bias=bias).fit(X, Y, tasks=TASK)
    function = 0.6 * rbf(NEW, X, 1.2) @ model.dual_coef_[:, 0] + model.intercept_[0]
    np.testing.assert_allclose(model.predict(NEW, tasks="new"), function * model.unit_, atol=1e-10)
    if bias == "task":
        np.testing.assert_allclose(model.intercept_, model.task_intercept_.mean(axis=0))


@BIASES
def test_two_scores_are_one_with_both_signs(bias):
    F = everywhere(fixed_svc(bias=bias).fit(X, LABELS, tasks=TASK), method="scores")
    np.testing.assert_allclose(F[..., 0], -F[..., 1], atol=1e-10)


@BIASES
def test_the_classifier_is_the_regressor_of_signs(bias):
    scores = everywhere(fixed_svc(bias=bias).fit(X, THREE, tasks=TASK), method="scores")
    values = everywhere(fixed_svr(bias=bias).fit(X, 2.0 * np.eye(3)[THREE] - 1, tasks=TASK))
    np.testing.assert_allclose(scores, values, atol=1e-10)


# ------------------------------------------------------------------- held-out rows

HOLD = {
    "loo": ("loo", None),
    "folds": (list(KFold(5, shuffle=True, random_state=0).split(X)), None),
    "groups": ("loo", np.arange(N) // 3),
}


def splits(cv, groups):
    if groups is not None:
        return list(LeaveOneGroupOut().split(X, Y, groups))
    return [(np.delete(np.arange(N), i), np.array([i])) for i in range(N)] if cv == "loo" else cv


hold = pytest.mark.parametrize("held", HOLD)
weighted = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weights"])
DIFFERENT = pytest.mark.parametrize(
    "changes",
    [
        {},
        {"sharing": 0.0},
        {"sharing": 1.0},
        {"task_penalty": [1, 2, 0.5, 4]},
        {"similarity": 0.2 + np.diag(np.arange(4.0))},
    ],
    ids=["plain", "alone", "pooled", "penalties", "similarity"],
)


@hold
@BIASES
@weighted
@pytest.mark.parametrize("target", [Y, TWO], ids=["one", "two"])
def test_heldout_predictions_are_those_of_refits(held, bias, weights, target):
    cv, groups = HOLD[held]
    model = svr(bias=bias, cv=cv).fit(X, target, tasks=TASK, sample_weight=weights, groups=groups)
    for train, test in splits(cv, groups)[::2]:
        part = None if weights is None else weights[train]
        refit = fixed_svr(bias=bias).fit(X[train], target[train], tasks=TASK[train], sample_weight=part)
        np.testing.assert_allclose(model.heldout_prediction_[test], refit.predict(X[test], TASK[test]), atol=1e-7)


@hold
def test_heldout_predictions_of_shrunk_intercepts_with_weights_are_those_of_refits(held):
    """The spread is in units of the noise of a row of weight 1, whatever the weights of the others are."""
    cv, groups = HOLD[held]
    model = svr(bias=0.3, cv=cv).fit(X, Y, tasks=TASK, sample_weight=WEIGHTS, groups=groups)
    for train, test in splits(cv, groups)[::2]:
        refit = fixed_svr(bias=0.3).fit(X[train], Y[train], tasks=TASK[train], sample_weight=WEIGHTS[train])
        np.testing.assert_allclose(model.heldout_prediction_[test], refit.predict(X[test], TASK[test]), atol=1e-7)


def test_a_plain_splitter_is_no_cause_for_warnings():
    """KFold knows no groups, and says so when it is given some: nobody gave any."""
    model = svr(cv=KFold(5)).fit(X, Y, tasks=TASK)
    by_list = svr(cv=list(KFold(5).split(X))).fit(X, Y, tasks=TASK)
    np.testing.assert_array_equal(model.heldout_prediction_, by_list.heldout_prediction_)


@DIFFERENT
@BIASES
def test_heldout_predictions_of_tasks_tied_in_any_way(changes, bias):
    model = svr(bias=bias, **changes).fit(X, Y, tasks=TASK)
    for i in range(0, N, 4):
        rest = np.arange(N) != i
        refit = fixed_svr(bias=bias, **changes).fit(X[rest], Y[rest], tasks=TASK[rest])
        np.testing.assert_allclose(model.heldout_prediction_[i], refit.predict(X[i : i + 1], TASK[i])[0], atol=1e-7)


@hold
@BIASES
@pytest.mark.parametrize("target", [LABELS, THREE], ids=["two", "three"])
def test_heldout_scores_are_those_of_refits(held, bias, target):
    cv, groups = HOLD[held]
    model = svc(bias=bias, cv=cv).fit(X, target, tasks=TASK, groups=groups)
    for train, test in splits(cv, groups)[::3]:
        refit = fixed_svc(bias=bias).fit(X[train], target[train], tasks=TASK[train])
        np.testing.assert_allclose(model.heldout_scores_[test], refit.scores(X[test], TASK[test]), atol=1e-7)


@pytest.mark.parametrize("solver", ["arrow", "dual"])
@pytest.mark.parametrize("held", ["loo", "folds"])
@BIASES
@weighted
def test_centres_stay_where_rows_are_held_out(solver, held, bias, weights):
    cv, groups = HOLD[held]
    fixed = {"bias": bias, "centers": NEW, "solver": solver}
    model = svr(cv=cv, **fixed).fit(X, Y, tasks=TASK, sample_weight=weights)
    for train, test in splits(cv, groups)[::3]:
        part = None if weights is None else weights[train]
        refit = fixed_svr(**fixed).fit(X[train], Y[train], tasks=TASK[train], sample_weight=part)
        # With weights all folds have one ridge in the arrow, whatever weight they take along.
        atol = 1e-6 if weights is None or (solver == "dual" and bias != 0.3) else 0.05
        np.testing.assert_allclose(model.heldout_prediction_[test], refit.predict(X[test], TASK[test]), atol=atol)


@pytest.mark.parametrize("solver", ["arrow", "dual"])
@BIASES
def test_chosen_centres_stay_too(solver, bias):
    model = svr(bias=bias, n_centers=9, solver=solver).fit(X, Y, tasks=TASK)
    assert model.centers_.shape == (9, 2)
    for i in range(0, N, 7):
        rest = np.arange(N) != i
        refit = fixed_svr(bias=bias, centers=model.centers_, solver=solver).fit(X[rest], Y[rest], tasks=TASK[rest])
        np.testing.assert_allclose(model.heldout_prediction_[i], refit.predict(X[i : i + 1], TASK[i])[0], atol=1e-6)


@BIASES
def test_the_linear_kernel_held_out(bias):
    model = svr(bias=bias, kernel="linear").fit(X, Y, tasks=TASK)
    for i in range(0, N, 5):
        rest = np.arange(N) != i
        refit = fixed_svr(bias=bias, kernel="linear").fit(X[rest], Y[rest], tasks=TASK[rest])
        np.testing.assert_allclose(model.heldout_prediction_[i], refit.predict(X[i : i + 1], TASK[i])[0], atol=1e-7)


@pytest.mark.parametrize("bias", ["shared", 0.3, None])
def test_a_task_that_is_held_out_whole_is_an_unknown_one(bias):
    model = svr(bias=bias, cv=LeaveOneGroupOut()).fit(X, Y, tasks=TASK)
    for t in range(T):
        out = t == TASK
        refit = fixed_svr(bias=bias).fit(X[~out], Y[~out], tasks=TASK[~out])
        np.testing.assert_allclose(model.heldout_prediction_[out], refit.predict(X[out], "new"), atol=1e-7)


def test_a_number_of_folds_holds_every_row_out_once():
    model = svr(cv=5).fit(X, Y, tasks=TASK)
    assert r2_score(Y, model.heldout_prediction_) > 0.5


# ------------------------------------------------------------------ limits


def test_tasks_that_share_nothing_are_models_of_their_own():
    """The ridge is on the sum of the losses: alpha times the rows of all tasks."""
    model = svr(sharing=0.0).fit(X, Y, tasks=TASK)
    for t in range(T):
        own = t == TASK
        alone = LSSVR(1.2, 0.01 * N / own.sum(), kernel="rbf", cv=None).fit(X[own], Y[own])
        np.testing.assert_allclose(model.predict(NEW, tasks=t), alone.predict(NEW), atol=1e-8)


def test_classes_of_tasks_that_share_nothing():
    model = fixed_svc(sharing=0.0).fit(X, LABELS, tasks=TASK)
    for t in range(T):
        own = t == TASK
        alone = LSSVC(1.2, 0.01 * N / own.sum(), calibration=None, cv=None).fit(X[own], LABELS[own])
        np.testing.assert_allclose(model.scores(NEW, tasks=t), alone.scores(NEW), atol=1e-8)


def test_tasks_that_share_all_are_one():
    model = svr(sharing=1.0, bias="shared").fit(X, Y, tasks=TASK)
    pooled = LSSVR(1.2, 0.01, kernel="rbf").fit(X, Y)
    same(model, _Blind(pooled))
    np.testing.assert_allclose(model.heldout_prediction_, pooled.heldout_prediction_, atol=1e-8)


class _Blind:
    """A model that is told of tasks and does not care."""

    def __init__(self, model):
        self.model = model

    def predict(self, rows, tasks):
        return self.model.predict(rows)


def test_one_task_is_no_task():
    model = svr(bias="task").fit(X, Y, tasks="all")
    single = LSSVR(1.2, 0.01, kernel="rbf").fit(X, Y)
    np.testing.assert_allclose(model.predict(NEW, "all"), single.predict(NEW), atol=1e-8)
    np.testing.assert_allclose(model.heldout_prediction_, single.heldout_prediction_, atol=1e-8)
    np.testing.assert_allclose(model.predict_interval(NEW, tasks="all"), single.predict_interval(NEW), atol=1e-4)


def test_intercepts_without_a_spread_are_one():
    a, b = svr(bias=0.0).fit(X, Y, tasks=TASK), svr(bias="shared").fit(X, Y, tasks=TASK)
    same(a, b, atol=1e-12)
    assert a.intercept_ratio_ == b.intercept_ratio_ == 0
    np.testing.assert_allclose(a.heldout_prediction_, b.heldout_prediction_, atol=1e-12)


def test_intercepts_of_a_huge_spread_are_free():
    wide, free = svr(bias=1e7).fit(X, Y, tasks=TASK), svr(bias="task").fit(X, Y, tasks=TASK)
    same(wide, free, atol=1e-4, tasks=range(T))
    np.testing.assert_allclose(wide.heldout_prediction_, free.heldout_prediction_, atol=1e-4)
    assert free.intercept_ratio_ == np.inf
    same(svr(bias=np.inf).fit(X, Y, tasks=TASK), free, atol=1e-12)


@pytest.mark.parametrize("intercept_ratio", [1e-3, 0.03, 0.3, 3.0, 100.0])
def test_intercepts_shrink_with_their_spread(intercept_ratio):
    less, more = (fixed_svr(bias=s).fit(X, Y, tasks=TASK) for s in (intercept_ratio, 3 * intercept_ratio))
    own = [np.abs(m.task_intercept_ - m.intercept_).sum() for m in (less, more)]
    assert own[0] < own[1]


# --------------------------------------------------------------- properties

FORMS = st.fixed_dictionaries(
    {
        "bias": st.sampled_from(KINDS),
        "sharing": st.sampled_from([0.0, 0.3, 0.95, 1.0]),
        "sigma": st.floats(0.5, 3),
        "alpha": st.floats(1e-3, 1),
    }
)
SEEDS = st.integers(0, 10_000)


@given(FORMS, SEEDS)
@settings(max_examples=12)
def test_order_of_rows_and_names_of_tasks_do_not_matter(form, seed):
    order = np.random.default_rng(seed).permutation(N)
    names = np.random.default_rng(seed).permutation(T)
    one = svr(**form).fit(X, Y, tasks=TASK)
    other = svr(**form).fit(X[order], Y[order], tasks=names[TASK][order])
    np.testing.assert_allclose(everywhere(other, tasks=names), everywhere(one), atol=1e-7)
    np.testing.assert_allclose(one.heldout_prediction_[order], other.heldout_prediction_, atol=1e-7)
    np.testing.assert_allclose(one.predict(NEW, "new"), other.predict(NEW, "new"), atol=1e-7)


def repeated(bias, **changes):
    """The same model from weights and from rows that are repeated."""
    times = np.random.default_rng(2).integers(1, 4, N)
    one = svr(bias=bias, **changes).fit(X, Y, tasks=TASK, sample_weight=times)
    rows = np.repeat(np.arange(N), times)
    return one, svr(bias=bias, **changes).fit(X[rows], Y[rows], tasks=TASK[rows]), rows


@BIASES
@pytest.mark.parametrize("sharing", [0.0, 0.6, 1.0])
def test_weights_are_repeated_rows(bias, sharing):
    one, other, rows = repeated(bias, sharing=sharing)
    same(one, other, atol=1e-7)
    np.testing.assert_allclose(one.heldout_prediction_[rows], other.heldout_prediction_, atol=1e-6)


@pytest.mark.parametrize("bias", ["task", "shared", None])
def test_all_rows_twice_is_the_same_model(bias):
    """alpha is on the mean of the losses."""
    once = svr(bias=bias).fit(X, Y, tasks=TASK)
    twice = svr(bias=bias).fit(np.tile(X, (2, 1)), np.tile(Y, 2), tasks=np.tile(TASK, 2))
    same(once, twice, atol=1e-7)


@pytest.mark.parametrize("bias", ["task", "shared", None])
def test_the_scale_of_weights_does_not_matter(bias):
    one, other = (svr(bias=bias).fit(X, Y, tasks=TASK, sample_weight=s * WEIGHTS) for s in (1.0, 100.0))
    same(one, other, atol=1e-9)


def test_a_spread_is_in_units_of_the_noise_of_one_row():
    """So more copies of all rows know the intercepts of the tasks better, and counts say the same."""
    count = np.arange(N) % 2 + 2
    repeated = np.repeat(np.arange(N), count)
    copies = svr(bias=0.3).fit(X[repeated], Y[repeated], tasks=TASK[repeated])
    heavy = svr(bias=0.3).fit(X, Y, tasks=TASK, sample_weight=count)
    wider = svr(bias=0.3 * count.mean()).fit(X, Y, tasks=TASK, sample_weight=count / count.mean())
    same(copies, heavy, atol=1e-7)
    same(wider, heavy, atol=1e-9)


@given(FORMS, st.floats(-1e3, 1e3).filter(lambda v: abs(v) > 1e-3))
@settings(max_examples=10)
def test_another_unit_of_y_is_another_unit_of_the_predictions(form, unit):
    one, other = svr(**form).fit(X, Y, tasks=TASK), svr(**form).fit(X, unit * Y, tasks=TASK)
    np.testing.assert_allclose(everywhere(other), unit * everywhere(one), rtol=1e-7, atol=1e-8 * abs(unit))


@pytest.mark.parametrize("bias", ["task", "shared", 0.3])
def test_another_zero_of_y_is_another_zero_of_the_predictions(bias):
    one, other = svr(bias=bias).fit(X, Y, tasks=TASK), svr(bias=bias).fit(X, Y + 100, tasks=TASK)
    np.testing.assert_allclose(everywhere(other), everywhere(one) + 100, atol=1e-7)
    np.testing.assert_allclose(other.predict(NEW, "new"), one.predict(NEW, "new") + 100, atol=1e-7)


def test_free_intercepts_take_any_zero_of_each_task():
    shift = np.array([100.0, -50, 0, 3])
    one, other = svr().fit(X, Y, tasks=TASK), svr().fit(X, Y + shift[TASK], tasks=TASK)
    np.testing.assert_allclose(everywhere(other), everywhere(one) + shift[:, None], atol=1e-7)


@pytest.mark.parametrize("unit", [1e300, 1e-300], ids=str)
def test_extreme_units_of_y(unit):
    given = {"alpha": [1e-3, 1e-1, 1e3], "scoring": "r2"}
    plain, model = svr(**given).fit(X, Y, tasks=TASK), svr(**given).fit(X, unit * Y, tasks=TASK)
    assert model.alpha_ == plain.alpha_
    np.testing.assert_allclose(everywhere(model) / unit, everywhere(plain), atol=1e-8)
    assert np.frexp(model.unit_)[0] == 0.5


@BIASES
def test_several_outputs_are_each_alone(bias):
    both = svr(bias=bias).fit(X, TWO, tasks=TASK)
    for k in (0, 1):
        alone = svr(bias=bias).fit(X, TWO[:, k], tasks=TASK)
        np.testing.assert_allclose(everywhere(both)[..., k], everywhere(alone), atol=1e-8)
        np.testing.assert_allclose(both.heldout_prediction_[:, k], alone.heldout_prediction_, atol=1e-8)


def test_rows_and_tasks_of_weight_zero_are_none():
    w = (TASK != 2).astype(float)
    w[::6] = 0
    model, rest = svr().fit(X, Y, tasks=TASK, sample_weight=w), svr().fit(X[w > 0], Y[w > 0], tasks=TASK[w > 0])
    assert model.tasks_.tolist() == [0, 1, 3]
    same(model, rest, tasks=[0, 1, 3, "new"])
    np.testing.assert_allclose(model.heldout_prediction_[w > 0], rest.heldout_prediction_, atol=1e-8)
    np.testing.assert_allclose(model.heldout_prediction_[TASK == 2], rest.predict(X[TASK == 2], "new"), atol=1e-8)


# ------------------------------------------------------------------------ solvers


@BIASES
@pytest.mark.parametrize("sharing", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("changes", [{"kernel": "linear"}, {"centers": NEW}], ids=["linear", "centres"])
def test_arrow_is_dual(bias, sharing, changes):
    given = {"bias": bias, "sharing": sharing, **changes}
    a, b = (svr(solver=s, **given).fit(X, Y, tasks=TASK) for s in ("arrow", "dual"))
    same(a, b, atol=1e-7)
    np.testing.assert_allclose(a.heldout_prediction_, b.heldout_prediction_, atol=1e-7)


@BIASES
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weights"])
@pytest.mark.parametrize("changes", [{}, {"kernel": "linear"}, {"sharing": 0.0}, {"kernel": "rbf+linear"}], ids=str)
def test_krylov_is_the_exact_solver_to_tolerance(bias, weights, changes):
    given = {"bias": bias, "tol": 1e-11, **changes}
    a, b = (fixed_svr(solver=s, **given).fit(X, Y, tasks=TASK, sample_weight=weights) for s in ("krylov", "dual"))
    same(a, b, atol=1e-6)
    assert a.residual_ <= 1e-11
    assert a.n_iter_ >= 1


@BIASES
def test_krylov_with_penalties_similarities_and_classes(bias):
    for changes in ({"task_penalty": [1, 2, 0.5, 4]}, {"similarity": 0.2 + np.diag(np.arange(4.0))}):
        given = {"bias": bias, "tol": 1e-11, **changes}
        a, b = (fixed_svc(solver=s, **given).fit(X, THREE, tasks=TASK) for s in ("krylov", "dual"))
        np.testing.assert_allclose(everywhere(a, method="scores"), everywhere(b, method="scores"), atol=1e-6)


both_kinds = pytest.mark.parametrize("make", [svr, svc])
DATA = make_related_tasks(6, 25, kind="regression", offset=1.0, random_state=0)


@pytest.mark.parametrize("bias", [*KINDS, "auto"])
def test_krylov_with_rows_held_out(bias):
    model = svr(solver="krylov", bias=bias).fit(DATA.X, DATA.y, tasks=DATA.task)
    held = np.flatnonzero(~np.isnan(model.heldout_prediction_))
    assert 10 <= len(held) <= 20
    rest = np.setdiff1d(np.arange(150), held)
    given = np.inf if bias == "task" else model.intercept_ratio_ if bias == "auto" else bias
    refit = fixed_svr(bias=given, tol=1e-10).fit(DATA.X[rest], DATA.y[rest], tasks=DATA.task[rest])
    expected = refit.predict(DATA.X[held], DATA.task[held])
    np.testing.assert_allclose(model.heldout_prediction_[held], expected, atol=1e-3)
    assert np.isfinite(model.predict_interval(DATA.X, tasks=DATA.task, coverage=0.5)).all()


@both_kinds
@pytest.mark.parametrize("cv", [2, 5, 10])
def test_krylov_with_few_large_folds(make, cv):
    y = DATA.y if make is svr else (DATA.y > 0).astype(int)
    model = make(solver="krylov", cv=cv, bias=0.3).fit(DATA.X, y, tasks=DATA.task)
    assert np.isfinite(model.predict(DATA.X, DATA.task)).all()


def test_krylov_that_stops_early_says_how_far_it_got(monkeypatch):
    monkeypatch.setattr("leastwise.solvers.work.RANK", 5)
    with pytest.warns(ConvergenceWarning, match=r"after 1 iterations with a residual of"):
        model = fixed_svr(sigma=0.5, alpha=1e-8, solver="krylov", max_iter=1).fit(X, Y, tasks=TASK)
    assert model.n_iter_ == 1
    assert model.residual_ > 1e-6


@pytest.mark.parametrize("bias", ["task", 0.3, "shared"])
def test_short_of_memory_the_solver_is_krylov(monkeypatch, bias):
    given = {"bias": bias, "tol": 1e-10, "search_rows": 50}
    exact = svr(solver="dual", **given).fit(DATA.X, DATA.y, tasks=DATA.task)
    monkeypatch.setenv("LEASTWISE_MEMORY", "300KB")
    model = svr(**given).fit(DATA.X, DATA.y, tasks=DATA.task)
    assert model.n_iter_ >= 1
    assert exact.n_iter_ == 1
    assert not hasattr(exact, "residual_")
    same(model, exact, atol=1e-6, tasks=[*range(6), "new"])
    with pytest.raises(MemoryError, match=r"150 rows with 150 basis .* need about .*n_centers=.*LEASTWISE_MEMORY"):
        svr(solver="dual", **given).fit(DATA.X, DATA.y, tasks=DATA.task)


def test_short_of_memory_nothing_else_need_be_said(monkeypatch):
    """All parameters as they are, but for the memory."""
    monkeypatch.setenv("LEASTWISE_MEMORY", "300KB")
    model = svr(cv=None).fit(DATA.X, DATA.y, tasks=DATA.task)
    assert model.n_iter_ >= 1


def test_auto_takes_the_arrow_for_a_linear_kernel():
    model = fixed_svr(kernel="linear").fit(X, Y, tasks=TASK)
    assert model.coef_.shape == (T, 2, 1)
    with pytest.raises(AttributeError, match="no coefficients of that kind"):
        _ = model.dual_coef_
    assert fixed_svr().fit(X, Y, tasks=TASK).dual_coef_.shape == (N, 1)


# ------------------------------------------------------------------------ pruning


def numbers(kept, rows):
    """Which of the rows were kept."""
    return np.array([int(np.flatnonzero((rows == c).all(axis=1))[0]) for c in kept])


@BIASES
@pytest.mark.parametrize(("prune", "left"), [(0.5, 20), (10, 30), (0.1, 36)])
def test_a_pruned_model_is_that_of_the_rows_that_are_left(bias, prune, left):
    model = svr(bias=bias, prune=prune, scoring="r2").fit(X, Y, tasks=TASK)
    kept = numbers(model.centers_, X)
    assert len(np.unique(kept)) == left == model.pruning_["n_kept"]
    alone = svr(bias=bias, alpha=0.01 * N / left).fit(X[kept], Y[kept], tasks=TASK[kept])
    same(model, alone, atol=1e-8)
    np.testing.assert_allclose(model.heldout_prediction_[kept], alone.heldout_prediction_, atol=1e-7)
    gone = np.setdiff1d(np.arange(N), kept)
    np.testing.assert_allclose(model.heldout_prediction_[gone], alone.predict(X[gone], TASK[gone]), atol=1e-8)
    assert model.pruning_["pruned_score"] == pytest.approx(r2_score(Y, model.heldout_prediction_))
    whole = svr(bias=bias, scoring="r2").fit(X, Y, tasks=TASK)
    assert model.pruning_["score"] == pytest.approx(r2_score(Y, whole.heldout_prediction_))
    assert model.pruning_["n_rows"] == N


@pytest.mark.filterwarnings("ignore:prune=")
@BIASES
@pytest.mark.parametrize("prune", [0.9, 39, 1000])
def test_every_task_keeps_rows(bias, prune):
    model = svr(bias=bias, prune=prune).fit(X, Y, tasks=TASK)
    assert np.bincount(TASK[numbers(model.centers_, X)]).tolist() == [2, 2, 2, 2]
    assert np.isfinite(everywhere(model)).all()


def test_a_pruned_classifier():
    model = svc(calibration="blend", prune=0.5).fit(X, THREE, tasks=TASK)
    kept = numbers(model.centers_, X)
    alone = fixed_svc(alpha=0.02).fit(X[kept], THREE[kept], tasks=TASK[kept])
    np.testing.assert_allclose(everywhere(model, method="scores"), everywhere(alone, method="scores"), atol=1e-8)
    np.testing.assert_allclose(model.predict_proba(NEW, "new").sum(axis=1), 1)


def test_pruning_a_precomputed_kernel():
    named = svr(prune=0.5).fit(X, Y, tasks=TASK)
    ready = svr(prune=0.5, kernel="precomputed").fit(rbf(X, X, 1.2), Y, tasks=TASK)
    np.testing.assert_array_equal(ready.center_indices_, numbers(named.centers_, X))
    np.testing.assert_allclose(everywhere(ready, rbf(NEW, X, 1.2)), everywhere(named), atol=1e-8)


def test_pruning_with_weights():
    model = svr(prune=0.4).fit(X, Y, tasks=TASK, sample_weight=WEIGHTS)
    kept = numbers(model.centers_, X)
    alpha = 0.01 * WEIGHTS.sum() / WEIGHTS[kept].sum()
    alone = fixed_svr(alpha=alpha).fit(X[kept], Y[kept], tasks=TASK[kept], sample_weight=WEIGHTS[kept])
    same(model, alone, atol=1e-8)


def test_pruning_needs_a_coefficient_for_every_row():
    with pytest.raises(ValueError, match=r"prune= needs a coefficient for every row: use solver='dual'"):
        svr(kernel="linear", prune=0.5, solver="arrow").fit(X, Y, tasks=TASK)
    model = svr(kernel="linear", prune=0.5, solver="dual").fit(X, Y, tasks=TASK)
    assert model.pruning_["n_kept"] == 20


def test_pruning_with_a_linear_kernel_finds_its_solver():
    """solver="auto" takes what serves: nobody asked for the arrow."""
    assert svr(kernel="linear", prune=0.5).fit(X, Y, tasks=TASK).pruning_["n_kept"] == 20


# --------------------------------------------------------------- what is chosen


@pytest.mark.parametrize("bias", ["auto", "shrunk"])
def test_the_spread_of_intercepts_is_chosen(bias):
    model = svr(bias=bias).fit(X, Y, tasks=TASK)
    again = svr(bias=model.intercept_ratio_).fit(X, Y, tasks=TASK)
    same(model, again)
    np.testing.assert_allclose(model.heldout_prediction_, again.heldout_prediction_, atol=1e-8)
    if bias == "shrunk":
        assert 0 < model.intercept_ratio_ < np.inf


def test_tasks_of_other_levels_get_intercepts():
    data = make_related_tasks(10, 15, kind="regression", offset=5.0, noise=0.1, random_state=0)
    model = svr(bias="auto", scoring="r2").fit(data.X, data.y, tasks=data.task)
    shared = svr(bias="shared", scoring="r2").fit(data.X, data.y, tasks=data.task)
    assert model.intercept_ratio_ > 0
    assert r2_score(data.y, model.heldout_prediction_) > r2_score(data.y, shared.heldout_prediction_)


@pytest.mark.parametrize("similarity", ["learned", "correlation", "inputs"])
@pytest.mark.parametrize("bias", ["task", "auto"])
def test_similarities_from_the_data(similarity, bias):
    model = svr(similarity=similarity, bias=bias, sharing="auto").fit(X, Y, tasks=TASK)
    assert model.similarity_.shape == model.coupling_.shape == (T, T)
    assert np.isfinite(everywhere(model)).all()


def test_everything_is_chosen_by_default():
    new = make_related_tasks(6, 25, kind="regression", offset=1.0, random_state=0)
    model = MultiTaskLSSVR(random_state=0).fit(DATA.X, DATA.y, tasks=DATA.task)
    assert model.score(new.X, new.y, tasks=new.task) > 0.5
    classes = MultiTaskLSSVC(random_state=0).fit(X, THREE, tasks=TASK)
    assert classes.score(X, THREE, tasks=TASK) > 0.6


def test_points_of_the_search_say_all_that_was_chosen():
    model = svr(bias="auto", kernel="rbf+linear", linear_weight=[0.1, 1.0], sharing=[0.2, 0.8]).fit(X, Y, tasks=TASK)
    results = model.cv_results_
    chosen = {"sigma": model.sigma_, "alpha": model.alpha_, "sharing": model.sharing_}
    assert all(value in results[f"param_{name}"] for name, value in chosen.items())
    assert model.intercept_ratio_ in results["param_intercept_ratio"]
    assert model.linear_weight_ in results["param_linear_weight"]


def test_search_on_some_tasks_goes_on_to_all():
    model = MultiTaskLSSVR(kernel="rbf", search_rows=60, random_state=0).fit(DATA.X, DATA.y, tasks=DATA.task)
    rows = model.cv_results_["n_rows"]
    assert rows.min() < 150
    assert model.heldout_prediction_.shape == (150,)
    assert np.isfinite(model.heldout_prediction_).all()


# ------------------------------------------------------------ the rest of the world

FRAME = pd.DataFrame({"a": X[:, 0], "farm": NAMES.tolist(), "b": X[:, 1]}, index=np.arange(N) + 100)


def target(make):
    return Y if make is svr else THREE


@both_kinds
@pytest.mark.parametrize("kind", ["pandas", "polars", "array", "sparse"])
def test_the_task_is_a_column(make, kind):
    tables = {
        "pandas": (FRAME, "farm"),
        "polars": (pl.from_dict(FRAME.to_dict("list")), "farm"),
        "array": (np.column_stack([X, TASK]), -1),
        "sparse": (sparse.csr_matrix(np.column_stack([X, TASK])), 2),
    }
    table, column = tables[kind]
    model = make(task_column=column).fit(table, target(make))
    plain = make().fit(X, target(make), tasks=TASK)
    method = "predict" if make is svr else "scores"
    np.testing.assert_allclose(getattr(model, method)(table), getattr(plain, method)(X, TASK), atol=1e-8)
    if make is svr:
        np.testing.assert_allclose(model.predict_interval(table), plain.predict_interval(X, tasks=TASK), atol=1e-6)
        assert model.score(table, Y) == pytest.approx(r2_score(Y, model.predict(table)))


@both_kinds
def test_clone_parameters_and_files(make, tmp_path):
    model = make(prune=0.3)
    assert clone(model).get_params() == model.get_params()
    model.set_params(prune=None, task_column="farm", bias=0.3)
    model.fit(FRAME, target(make))
    joblib.dump(model, tmp_path / "model")
    again = [joblib.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    for other in again:
        np.testing.assert_array_equal(other.predict(FRAME), model.predict(FRAME))
    if make is svr:
        before = model.predict_interval(FRAME)
        for other in again:
            np.testing.assert_array_equal(other.predict_interval(FRAME), before)


@both_kinds
def test_grid_search_and_cross_val_predict(make):
    cv = KFold(3, shuffle=True, random_state=0)
    grid = {"sharing": [0.0, 0.5], "bias": ["shared", 0.3]}
    search = GridSearchCV(make(task_column="farm"), grid, cv=cv).fit(FRAME, target(make))
    assert search.best_estimator_.sharing_ == search.best_params_["sharing"]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    P = cross_val_predict(make(task_column="farm", bias=0.3), FRAME, target(make), cv=cv)
    train, test = next(iter(cv.split(FRAME)))
    expected = make(task_column="farm", bias=0.3).fit(FRAME.iloc[train], target(make)[train])
    np.testing.assert_array_equal(P[test], expected.predict(FRAME.iloc[test]))


@both_kinds
def test_pipeline(make):
    scaler = ColumnTransformer(
        [("s", StandardScaler(), ["a", "b"])], remainder="passthrough", verbose_feature_names_out=False
    )
    pipe = make_pipeline(scaler, make(task_column="farm")).set_output(transform="pandas")
    pipe.fit(FRAME, target(make))
    by_hand = make().fit(StandardScaler().fit_transform(X), target(make), tasks=NAMES)
    expected = by_hand.predict(StandardScaler().fit_transform(X), NAMES)
    np.testing.assert_allclose(pipe.predict(FRAME), expected, atol=1e-9)


def test_float32_is_returned_as_float32():
    model = svr().fit(X.astype(np.float32), Y.astype(np.float32), tasks=TASK)
    assert model.dual_coef_.dtype == np.float64
    assert model.task_intercept_.dtype == np.float32
    double = svr().fit(X, Y, tasks=TASK)
    np.testing.assert_allclose(everywhere(model), everywhere(double), atol=2e-3)
    a, b = (m.predict_interval(NEW, tasks=1) for m in (model, double))
    np.testing.assert_allclose(a, b, atol=2e-2)


def test_float32_with_far_away_targets():
    """Values that differ in the fourth digit: the intercepts hold the rest."""
    model = svr().fit(X.astype(np.float32), 1000 + Y, tasks=TASK)
    double = svr().fit(X, 1000 + Y, tasks=TASK)
    np.testing.assert_allclose(everywhere(model), everywhere(double), atol=2e-2)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplace"])
def test_sparse_equals_dense(kernel):
    S = sparse.csr_matrix(np.where(np.abs(X) < 0.4, 0, X))
    dense, thin = (svr(kernel=kernel).fit(rows, Y, tasks=TASK) for rows in (S.toarray(), S))
    np.testing.assert_allclose(thin.predict(S, TASK), dense.predict(S.toarray(), TASK), atol=1e-7)
    np.testing.assert_allclose(thin.heldout_prediction_, dense.heldout_prediction_, atol=1e-7)


def test_callable_and_precomputed_equal_the_named_kernel():
    named = svr().fit(X, Y, tasks=TASK)
    given = svr(kernel=lambda A, B: rbf(A, B, 1.2)).fit(X, Y, tasks=TASK)
    ready = svr(kernel="precomputed").fit(rbf(X, X, 1.2), Y, tasks=TASK)
    same(given, named)
    K = rbf(NEW, X, 1.2)
    np.testing.assert_allclose(everywhere(ready, K), everywhere(named), atol=1e-8)
    np.testing.assert_allclose(ready.predict_interval(K, tasks=1), named.predict_interval(NEW, tasks=1), atol=1e-7)


def test_fits_are_reproducible():
    for changes in ({"n_centers": 8}, {"cv": 4}, {"prune": 0.5}, {"solver": "krylov"}):
        a, b = (svr(**changes).fit(X, Y, tasks=TASK) for _ in range(2))
        np.testing.assert_array_equal(everywhere(a), everywhere(b))


def test_what_is_given_is_not_changed():
    rows, y, w = X.copy(), Y.copy(), WEIGHTS.copy()
    svr().fit(rows, y, tasks=TASK, sample_weight=w).predict_interval(rows, tasks=TASK)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(y, Y)
    np.testing.assert_array_equal(w, WEIGHTS)


def test_verbose_prints_the_search(capsys):
    svr(sigma=[0.5, 1.0], verbose=1).fit(X, Y, tasks=TASK)
    assert "[MultiTaskLSSVR]" in capsys.readouterr().out


@pytest.mark.parametrize("options", [{"kernel": "rbf"}, {"kernel": "rbf", "n_centers": 20}, {"solver": "krylov"}])
def test_a_search_on_some_tasks_keeps_to_what_all_of_them_allow(options):
    """Most tasks have ten rows, and the search is made on such; a task of one row has no free intercept."""
    rng = np.random.default_rng(0)
    task = np.r_[np.repeat(np.arange(40), 10), 40]
    rows = rng.normal(size=(401, 2))
    y = 5.0 * rng.normal(size=41)[task] + rows[:, 0] + 0.1 * rng.normal(size=401)
    for seed in range(3):
        model = MultiTaskLSSVR(1.0, [1e-3, 1e-2], 0.5, bias="auto", search_rows=60, random_state=seed, **options)
        model.fit(rows, y, tasks=task)
        assert np.isfinite(model.intercept_ratio_)
        assert np.isfinite(model.predict(rows, task)).all()
        assert model.score(rows, y, tasks=task) > 0.9
