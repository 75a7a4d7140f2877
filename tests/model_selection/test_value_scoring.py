"""What a search for quantities maximises: names of ours, of scikit-learn's, and functions."""

import numpy as np
import pytest
from sklearn.metrics import make_scorer, max_error, mean_absolute_error, mean_squared_error, r2_score

from leastwise import LSSVR, MultiTaskLSSVR
from leastwise.model_selection.objective import resolve_value_scoring

N = 36
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
TASK = np.arange(N) % 3
Y = np.sin(2 * X[:, 0]) + 3 * TASK + 0.2 * RNG.normal(size=N)
TWO = np.column_stack([Y, 100 * X[:, 1] + Y])
W = RNG.uniform(0.2, 3, N)
ALPHAS = [1e-4, 1e-2, 1.0]


def svr(**changes):
    return LSSVR(
        **{"sigma": 1.0, "alpha": ALPHAS, "kernel": "rbf", "linear_weight": 1.0, "random_state": 0, **changes}
    )


def tasks(**changes):
    given = {"sigma": 1.0, "alpha": ALPHAS, "sharing": 0.5, "kernel": "rbf", "linear_weight": 1.0, "bias": "shared"}
    return MultiTaskLSSVR(**{**given, "random_state": 0, **changes})


MEASURES = {
    "r2": lambda y, F, w: r2_score(y, F, sample_weight=w),
    "mse": lambda y, F, w: -mean_squared_error(y, F, sample_weight=w),
    "mae": lambda y, F, w: -mean_absolute_error(y, F, sample_weight=w),
    "neg_mean_squared_error": lambda y, F, w: -mean_squared_error(y, F, sample_weight=w),
    "neg_root_mean_squared_error": lambda y, F, w: -np.sqrt(mean_squared_error(y, F, sample_weight=w)),
    "neg_mean_absolute_error": lambda y, F, w: -mean_absolute_error(y, F, sample_weight=w),
}


@pytest.mark.parametrize("scoring", MEASURES)
@pytest.mark.parametrize("weights", [None, W], ids=["equal", "weights"])
def test_every_point_of_the_search_is_scored_as_the_name_says(scoring, weights):
    model = svr(scoring=scoring).fit(X, Y, sample_weight=weights)
    results = model.cv_results_
    for alpha in ALPHAS:
        one = svr(alpha=alpha).fit(X, Y, sample_weight=weights)
        expected = MEASURES[scoring](Y, one.heldout_prediction_, weights)
        shown = results["mean_test_score"][results["param_alpha"] == alpha]
        np.testing.assert_allclose(shown, expected, rtol=1e-6)
    best = results["mean_test_score"].argmax()
    assert model.alpha_ == results["param_alpha"][best]


@pytest.mark.parametrize("scoring", ["r2", "mse", "mae"])
def test_several_outputs_count_the_same(scoring):
    Z = np.random.default_rng(1).normal(size=(20, 2)) * [1, 50]
    F = Z + np.random.default_rng(2).normal(size=(20, 2))
    score = resolve_value_scoring(scoring)
    each = [score(Z[:, [k]], F[:, [k]], np.ones(20), None) for k in (0, 1)]
    assert score(Z, F, np.ones(20), None) == pytest.approx(np.mean(each))


def test_weights_are_copies():
    times = np.random.default_rng(0).integers(1, 4, 20)
    Z, F = (np.random.default_rng(s).normal(size=(20, 1)) for s in (1, 2))
    task = np.arange(20) % 3
    for name in ("r2", "mse", "mae", "task_r2"):
        score = resolve_value_scoring(name)
        copies = score(*(np.repeat(a, times, axis=0) for a in (Z, F, np.ones(20), task)))
        assert score(Z, F, times.astype(float), task) == pytest.approx(copies)


def test_a_column_that_does_not_vary_does_not_count():
    Z = np.column_stack([Y, np.full(N, 0.1)])
    F = np.column_stack([Y + 0.1, np.full(N, 0.1) + 1e-9])
    score = resolve_value_scoring("r2")
    alone = score(Z[:, :1], F[:, :1], np.ones(N), None)
    assert score(Z, F, np.ones(N), None) == pytest.approx(alone)


@pytest.mark.parametrize("constant", [0.1, 1 / 3, 7.0, 0.0])
def test_a_constant_output_does_not_change_the_choice(constant):
    both = svr(scoring="r2").fit(X, np.column_stack([Y, np.full(N, constant)]))
    assert both.alpha_ == svr(scoring="r2").fit(X, Y).alpha_
    np.testing.assert_allclose(both.predict(X)[:, 1], constant, atol=1e-9)


def test_the_mean_over_tasks():
    model = tasks(scoring="task_r2").fit(X, Y, tasks=TASK)
    results = model.cv_results_
    for alpha in ALPHAS:
        F = tasks(alpha=alpha).fit(X, Y, tasks=TASK).heldout_prediction_
        each = [r2_score(Y[t == TASK], F[t == TASK]) for t in range(3)]
        shown = results["mean_test_score"][results["param_alpha"] == alpha]
        np.testing.assert_allclose(shown, np.mean(each), rtol=1e-6)


def test_tasks_of_one_value_do_not_count():
    y = np.where(TASK == 1, 5.0, Y)
    F = y + 0.1
    score = resolve_value_scoring("task_r2")
    each = [r2_score(y[t == TASK], F[t == TASK]) for t in (0, 2)]
    assert score(y[:, None], F[:, None], np.ones(N), TASK) == pytest.approx(np.mean(each))


def test_without_tasks_there_is_no_mean_over_them():
    with pytest.raises(ValueError, match=r"scoring='task_r2' needs tasks.*use 'r2'"):
        svr(scoring="task_r2").fit(X, Y)


@pytest.mark.parametrize("scoring", ["r2", "explained_variance", "neg_median_absolute_error"])
def test_names_of_scikit_learn(scoring):
    model = tasks(scoring=scoring).fit(X, Y, tasks=TASK)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("target", [Y, TWO], ids=["one", "two"])
def test_a_function_sees_targets_and_held_out_predictions_as_they_were_given(target):
    seen = []

    def scorer(estimator, rows, y):
        seen.append((len(rows), estimator.predict(rows), y))
        return -float(np.abs(estimator.predict(rows) - y).max())

    model = svr(scoring=scorer).fit(X, target)
    assert len(seen) >= 3
    for count, F, y in seen:
        assert count == N
        assert F.shape == y.shape == target.shape
        np.testing.assert_allclose(y, target, rtol=1e-12)
    assert model.alpha_ in ALPHAS


def test_scorers_that_were_made():
    model = svr(scoring=make_scorer(max_error, greater_is_better=False)).fit(X, Y)
    worst = {a: max_error(Y, svr(alpha=a).fit(X, Y).heldout_prediction_) for a in ALPHAS}
    assert model.alpha_ == min(worst, key=worst.get)


def test_a_score_that_is_not_a_number_is_refused():
    with pytest.raises(ValueError, match=r"scoring='lost' is NaN on held-out predictions; use another"):
        svr(scoring=_lost).fit(X, Y)


def lost(estimator, rows, y):
    return np.nan


_lost = lost


@pytest.mark.parametrize("scoring", ["rmse", "accuracy_", None, 3, ["r2"], ""], ids=str)
@pytest.mark.parametrize("make", [svr, tasks])
def test_unknown_scorings_are_refused(make, scoring):
    model = make(scoring=scoring)
    with pytest.raises(ValueError, match=r"scoring=.* is not known: use one of .*'mae', 'mse', 'r2', 'task_r2'"):
        model.fit(X, Y, **({} if make is svr else {"tasks": TASK}))
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc", "log_loss", "f1"])
def test_scorings_of_classes_are_refused_for_quantities(scoring):
    with pytest.raises(ValueError, match=r"(?i)scoring|classif|continuous"):
        svr(scoring=scoring).fit(X, Y)


def test_held_out_errors_prefer_what_predicts():
    """A ridge that is far too large, and one far too small, lose."""
    for scoring in ("r2", "mse", "mae"):
        assert svr(alpha=[1e-14, 1e-2, 1e6], scoring=scoring).fit(X, TASK + np.sin(X[:, 0])).alpha_ > 1e-14
        assert svr(alpha=[1e-14, 1e-2, 1e6], scoring=scoring).fit(X, np.sin(X[:, 0])).alpha_ < 1e6
