"""Mean squared gradients against finite differences; held-out scores of models with weights."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss, r2_score
from sklearn.preprocessing import StandardScaler

from leastwise import LSPC, LSSVC, LSSVR, KernelLogisticRegression, MultiLabelLSPC, MultiTaskLSPC
from leastwise.fitting import feature_weights
from leastwise.fitting.direct import make_problem
from leastwise.fitting.feature_weights import POWER, gradient_parts, learn_weights, mean_squared_gradient, weights_of
from leastwise.fitting.fit import prepare
from leastwise.fitting.input_search import choose_inputs
from leastwise.fitting.ridge_problem import choose
from leastwise.model_selection.search import natural_length
from leastwise.problem.coupling import Shared
from leastwise.problem.kernels import RBF, Laplace, Linear, Poly, Sum, resolve_kernel

RNG = np.random.default_rng(0)
N, D = 30, 4
X = RNG.normal(size=(N, D))
Z = np.column_stack([np.sin(X[:, 0]) + X[:, 1], X[:, 1] ** 2])
W = RNG.uniform(0.5, 2, N)
W /= W.mean()
ALPHA, SIGMA = 1e-2, 1.7


def by_differences(kernel, couple=lambda K: K, between=lambda K: K, step=1e-6):
    """Solve the weighted ridge, and differentiate its function at every row numerically."""
    K = couple(kernel(X, X, SIGMA))
    target = Z - np.average(Z, axis=0, weights=W)
    A = np.linalg.solve(K + N * ALPHA * np.diag(1 / W), target)

    def f(rows):
        return between(kernel(rows, X, SIGMA)) @ A

    total = np.zeros(D)
    for j in range(D):
        e = np.zeros(D)
        e[j] = step
        G = (f(X + e) - f(X - e)) / (2 * step)
        total[j] = W @ np.sum(G**2, axis=1) / W.sum()
    return total


def kernels():
    mixed = resolve_kernel("rbf+linear", 3, 1.0).fitted(X, W)
    return {"rbf": RBF(), "rbf+linear": mixed, "weighted sum": mixed.with_linear_weight(0.3)}


@pytest.mark.parametrize("name", list(kernels()))
def test_gradients_are_those_of_the_fitted_function(name):
    kernel = kernels()[name]
    found = mean_squared_gradient(kernel, SIGMA, X, Z, W, ALPHA, lambda K: K)
    np.testing.assert_allclose(found, by_differences(kernel), rtol=1e-6)


def test_laplace_has_a_kink_at_every_row_that_does_not_count():
    """The derivative of |x - x| is 0 at a row itself; central differences agree."""
    found = mean_squared_gradient(Laplace(), SIGMA, X, Z, W, ALPHA, lambda K: K)
    np.testing.assert_allclose(found, by_differences(Laplace(), step=1e-7), rtol=1e-5)


@pytest.mark.parametrize("sharing", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("name", list(kernels()))
def test_coupled_tasks(name, sharing):
    kernel, task = kernels()[name], np.arange(N) % 3
    matrix = Shared(np.ones(3)).at(sharing)

    def couple(K):
        return matrix.couple(K, task, task)

    found = mean_squared_gradient(kernel, SIGMA, X, Z, W, ALPHA, couple)
    np.testing.assert_allclose(found, by_differences(kernel, couple, couple), rtol=1e-6)


def test_weights_are_repeated_rows():
    count = np.arange(N) % 3 + 1
    w = count / count.mean()
    repeated = np.repeat(np.arange(N), count)
    one = mean_squared_gradient(RBF(), SIGMA, X, Z, w, ALPHA, lambda K: K)
    other = mean_squared_gradient(RBF(), SIGMA, X[repeated], Z[repeated], np.ones(len(repeated)), ALPHA, lambda K: K)
    np.testing.assert_allclose(one, other, rtol=1e-8)


def test_weights_have_a_mean_square_of_1_and_keep_the_order():
    weights = weights_of(np.array([4.0, 0.25, 0.0, 1.0]))
    assert np.mean(weights**2) == pytest.approx(1)
    assert weights[2] == 0
    assert weights[0] / weights[3] == pytest.approx(4**POWER)
    np.testing.assert_array_equal(weights_of(np.zeros(3)), 1)


def test_kernels_without_distances_have_no_metric():
    assert gradient_parts(Linear()) is None
    assert gradient_parts(Poly()) is None
    assert gradient_parts(Sum((RBF(), Poly()), (1.0, 1.0))) is None
    assert len(gradient_parts(resolve_kernel("laplace+linear", 3, 1.0))) == 2


def test_many_outputs_are_replaced_by_their_main_components():
    """Outputs that are combinations of two have the gradients of these two."""
    mixing = RNG.normal(size=(2, 20))
    many = mean_squared_gradient(RBF(), SIGMA, X, Z @ mixing, W, ALPHA, lambda K: K)
    each = [mean_squared_gradient(RBF(), SIGMA, X, (Z @ mixing)[:, [c]], W, ALPHA, lambda K: K) for c in range(20)]
    np.testing.assert_allclose(many, np.sum(each, axis=0), rtol=0.1)
    assert np.all(np.sum(each, axis=0) >= many * (1 - 1e-9))  # what is left out only adds


def test_all_components_give_the_same_as_all_outputs(monkeypatch):
    mixing = RNG.normal(size=(2, 20))
    each = [mean_squared_gradient(RBF(), SIGMA, X, (Z @ mixing)[:, [c]], W, ALPHA, lambda K: K) for c in range(20)]
    monkeypatch.setattr(feature_weights, "ENERGY", 1 - 1e-14)
    many = mean_squared_gradient(RBF(), SIGMA, X, Z @ mixing, W, ALPHA, lambda K: K)
    np.testing.assert_allclose(many, np.sum(each, axis=0), rtol=1e-8)


# ----------------------------------------------- held-out scores of models with weights

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
