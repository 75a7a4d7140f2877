"""Held-out scores of models with feature weights."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss, r2_score
from sklearn.preprocessing import StandardScaler

from leastwise import LSPC, LSSVC, LSSVR, KernelLogisticRegression, MultiLabelLSPC, MultiTaskLSPC, MultiTaskLSSVR
from leastwise.fitting import feature_weights
from leastwise.fitting.direct import make_problem
from leastwise.fitting.feature_weights import learn_weights
from leastwise.fitting.fit import prepare
from leastwise.fitting.input_search import choose_inputs
from leastwise.fitting.ridge_problem import choose
from leastwise.model_selection.search import natural_length

WEIGHTED = {"kernel": "rbf", "scale": "standard", "metric": "diagonal"}


def wide(n, seed, d=200):
    """Two classes, and many columns of noise beside six that matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (rng.random(n) < 1 / (1 + np.exp(-2 * X[:, :6].sum(axis=1)))).astype(int)


def problem_and_choice(model, X, y, tasks=None):
    """The problem of a fit with inputs that were chosen, and its point by held-out scores as they are."""
    spec = model._spec()
    data, settings = prepare(model, spec, X, y, tasks=tasks)
    problem = make_problem(*choose_inputs(spec, data, settings))
    return problem, choose(problem)


@pytest.mark.parametrize("kernel", ["rbf", "laplace"])
def test_held_out_rows_are_those_of_weights_that_were_learned_without_them(kernel):
    """The long way: weights from the rows of the other folds, and a model of its own for every row."""
    X, y = wide(64, 0, d=5)
    model = LSPC(kernel=kernel, scale="standard", metric="diagonal").fit(X, y)
    problem, choice = problem_and_choice(LSPC(kernel=kernel, scale="standard", metric="diagonal"), X, y)
    fold, plain = feature_weights._folds(problem), StandardScaler().fit_transform(X)
    units = [natural_length(problem.settings.kernel, replace(problem.rows, X=Z)) for Z in (plain, model.inputs_(X))]
    start = replace(choice.outcome, sigma=model.sigma_ * units[0] / units[1])
    for k in range(4):
        others = problem.with_rows(replace(problem.rows, X=plain).take(np.flatnonzero(fold != k), False))
        weights, ratio = learn_weights(others, start)
        fixed = LSPC(start.sigma * ratio, model.alpha_, kernel=kernel, scale=None, cv=None, calibration=None)
        for i in np.flatnonzero(fold == k)[:3]:
            stay, alone = np.arange(64) != i, plain * weights
            expected = fixed.fit(alone[stay], y[stay]).scores(alone[[i]])
            np.testing.assert_allclose(model.heldout_scores_[[i]], expected, atol=1e-8)


@pytest.mark.parametrize("estimator", [LSPC, LSSVC, KernelLogisticRegression, MultiTaskLSPC, MultiLabelLSPC])
def test_held_out_rows_do_not_flatter_models_with_weights(estimator):
    """With leave-one-out scores of weights that have seen the row, the log-loss was a third of that on new rows."""
    (X, y), (new, truth) = wide(160, 1), wide(2000, 2)
    tasks = {"tasks": np.arange(160) % 2} if estimator is MultiTaskLSPC else {}
    model = estimator(**WEIGHTED).fit(X, y[:, None] if estimator is MultiLabelLSPC else y, **tasks)

    P = model.predict_proba(new, **({"tasks": 0} if tasks else {}))
    held, fresh = log_loss(y, np.ravel(model.heldout_proba_[:, -1])), log_loss(truth, np.ravel(P[:, -1]))
    assert held > 0.75 * fresh
    assert fresh < log_loss(truth, np.full(2000, y.mean()))


def test_held_out_rows_do_not_flatter_labels_that_are_unknown():
    (X, y), (new, truth) = wide(160, 1), wide(2000, 2)
    Y = np.column_stack([y, y]).astype(float)
    Y[::7, 0] = np.nan
    model = MultiLabelLSPC(**WEIGHTED).fit(X, Y)

    held, fresh = log_loss(y, model.heldout_proba_[:, 1]), log_loss(truth, model.predict_proba(new)[:, 1])
    assert held > 0.75 * fresh


def test_intervals_of_models_with_weights_cover():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(100, 150)), rng.normal(size=(1000, 150))
    y, truth = X[:, 0] + X[:, 1] + rng.normal(size=100), new[:, 0] + new[:, 1] + rng.normal(size=1000)
    model = LSSVR(**WEIGHTED).fit(X, y)
    assert r2_score(y, model.heldout_prediction_) < r2_score(truth, model.predict(new)) + 0.1
    low, high = model.predict_interval(new, coverage=0.9).T
    assert np.mean((low <= truth) & (truth <= high)) > 0.86


@pytest.mark.parametrize("estimator", [LSPC, MultiTaskLSPC])
def test_folds_do_not_depend_on_names(estimator):
    X, y = wide(60, 0, d=4)
    task = np.random.default_rng(5).integers(0, 3, 60)
    tasks = [None, None] if estimator is LSPC else [task, 2 - task]
    one, other = (problem_and_choice(estimator(), X, z, t)[0] for z, t in zip((y, 1 - y), tasks, strict=True))
    np.testing.assert_array_equal(feature_weights._folds(one), feature_weights._folds(other))


@pytest.mark.parametrize(
    "options", [{"solver": "moments", "n_centers": 60}, {"solver": "krylov"}, {"stream": True, "n_centers": 60}]
)
def test_fits_that_cannot_cross_fit_need_rows_that_weights_have_not_seen(options, monkeypatch):
    """Their held-out scores would flatter: weights have seen the labels of most of their rows."""
    monkeypatch.setattr("leastwise.fitting.input_search.FIRST_ROWS", 60)
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 20))
    y = (rows[:, 0] * 2 + 0.3 * rng.normal(size=300) > 0).astype(int)
    options, stream = dict(options), options.get("stream", False)
    options.pop("stream", None)

    def fitted(search_rows):
        model = LSPC(kernel="rbf", random_state=0, search_rows=search_rows, **options)
        return model.fit_stream(rows, y) if stream else model.fit(rows, y)

    assert LSPC(kernel="rbf", random_state=0, search_rows=200).fit(rows, y).feature_weights_ is not None
    assert fitted(200).feature_weights_ is None
    assert fitted(60).feature_weights_ is not None  # with five times the rows that they are learned from


@pytest.mark.parametrize("sharing", [0.0, 0.3])
def test_a_given_sharing_is_kept(sharing):
    rng = np.random.default_rng(0)
    rows, task = rng.normal(size=(120, 6)), np.arange(120) % 3
    y = (rows[:, 0] + 0.5 * task * rows[:, 1] > 0).astype(int)
    model = MultiTaskLSPC(sharing=sharing, **WEIGHTED, random_state=0).fit(rows, y, tasks=task)
    assert model.feature_weights_ is not None
    assert model.sharing_ == sharing
    values = rows[:, 0] + task * rows[:, 1]
    regressor = MultiTaskLSSVR(sharing=sharing, bias="shrunk", **WEIGHTED, random_state=0).fit(
        rows, values, tasks=task
    )
    assert regressor.sharing_ == sharing
    shown = regressor.cv_results_["param_intercept_ratio"]
    assert regressor.intercept_ratio_ in set(shown)
