"""The peer methods: each against the long way, and on data made to its own assumptions."""

import pickle
from functools import partial

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.svm import SVC, SVR

from leastwise.baselines import BMTLRegressor, MTLFeatClassifier, MTLFeatRegressor, RMTLClassifier, RMTLRegressor
from leastwise.baselines.bmtl import Network, Rows, evidence, output_weights, posterior
from leastwise.baselines.mtl_feat import Design, learn_features, span
from leastwise.datasets import make_related_tasks

REGRESSORS = [RMTLRegressor(), MTLFeatRegressor(), BMTLRegressor(random_state=0)]
CLASSIFIERS = [RMTLClassifier(), MTLFeatClassifier()]


def linear_tasks(rng, n_tasks=12, n_rows=15, noise=0.3, own=0.3, d=5):
    """w_t = w_0 + v_t, with rows to train on and as many again to test on."""
    W = rng.normal(size=d) + own * rng.normal(size=(n_tasks, d))
    return rows_of(rng, W, 2 * n_rows, noise)


def subspace_tasks(rng, n_tasks=30, n_rows=12, rank=2, d=15, noise=0.3):
    """Tasks whose coefficients lie in a subspace, and that subspace."""
    basis = np.linalg.qr(rng.normal(size=(d, rank)))[0]
    W = rng.normal(size=(n_tasks, rank)) @ basis.T
    return *rows_of(rng, W, 2 * n_rows, noise), basis


def network_tasks(rng, n_tasks=40, n_rows=12, d=3, noise=0.2):
    """Drawn from the model of BMTL: two tanh units, weights around a mean."""
    V, v = rng.normal(size=(d, 2)), rng.normal(size=2)
    mean, intercept_ratio = np.array([1.0, -2.0, 3.0]), np.array([0.6, 0.3, 1.0])
    A = mean + intercept_ratio * rng.normal(size=(n_tasks, 3))
    task = np.repeat(np.arange(n_tasks), 2 * n_rows)
    X = rng.normal(size=(len(task), d))
    H = np.column_stack([np.tanh(X @ V + v), np.ones(len(X))])
    y = np.sum(H * A[task], axis=1) + noise * rng.normal(size=len(X))
    return X, y, task, H @ mean


def rows_of(rng, W, n_rows, noise):
    task = np.repeat(np.arange(len(W)), n_rows)
    X = rng.normal(size=(len(task), W.shape[1]))
    return X, np.sum(X * W[task], axis=1) + noise * rng.normal(size=len(X)), task


def halves(n):
    """Every other row to train on, the rest to test on."""
    return np.arange(0, n, 2), np.arange(1, n, 2)


def error(model, X, y, task, train, test):
    model.fit(X[train], y[train], tasks=task[train])
    return mean_squared_error(y[test], model.predict(X[test], tasks=task[test]))


def error_alone(make, X, y, task, train, test):
    parts = []
    for t in np.unique(task):
        a, b = train[task[train] == t], test[task[test] == t]
        parts.append((y[b] - make().fit(X[a], y[a]).predict(X[b])) ** 2)
    return np.concatenate(parts).mean()


# ----------------------------------------------------------------------- RMTL


def stacked(X, task, mu, ones):
    """Features whose inner products are the kernel of rows and tasks: [x / sqrt(mu), 0 .. x .. 0]."""
    X = np.column_stack([X, np.ones(len(X))]) if ones else X
    own = np.eye(task.max() + 1)[task]
    return np.hstack([X / np.sqrt(mu), (own[:, :, None] * X[:, None, :]).reshape(len(X), -1)])


@pytest.mark.parametrize("intercept", ["shared", "task"])
def test_rmtl_regressor_is_svr_on_stacked_features(rng, intercept):
    X, y, task = linear_tasks(rng, 4)
    model = RMTLRegressor(2.0, 0.2, mu=0.3, intercept=intercept, tol=1e-5).fit(X, y, tasks=task)
    Z = stacked(X, task, 0.3, intercept == "task")
    long_way = SVR(kernel="linear", C=2.0, epsilon=0.2, tol=1e-5).fit(Z, y)
    assert np.allclose(model.predict(X, tasks=task), long_way.predict(Z), atol=1e-3)
    w_0 = long_way.coef_[0, : Z.shape[1] // 5] / np.sqrt(0.3)
    inputs = np.column_stack([X, np.ones(len(X))])[:, : len(w_0)]
    shared = model.predict(X, tasks="unseen_task")
    assert np.allclose(shared, inputs @ w_0 + long_way.intercept_, atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rmtl_classifier_is_svc_on_stacked_features(n_classes):
    data = make_related_tasks(4, 25, n_classes=n_classes, random_state=1)
    names = np.array(["no", "perhaps", "yes"])[data.y]
    model = RMTLClassifier(1.5, mu=2.0, tol=1e-5).fit(data.X, names, tasks=data.task)
    Z = stacked(data.X, data.task, 2.0, False)
    long_way = SVC(kernel="linear", C=1.5, tol=1e-5).fit(Z, names)
    assert np.allclose(model.decision_function(data.X, data.task), long_way.decision_function(Z), atol=1e-3)
    assert (model.predict(data.X, data.task) == long_way.predict(Z)).all()
    assert model.score(data.X, names, tasks=data.task) == long_way.score(Z, names)


def test_rmtl_limits_are_pooled_and_alone(rng):
    X, y, task = linear_tasks(rng, 3)
    pooled = SVR(kernel="linear", C=1.0, epsilon=0.5).fit(X, y)
    model = RMTLRegressor(1e-5, 0.5, mu=1e-5).fit(X, y, tasks=task)  # C / mu is what the common part has
    assert np.allclose(model.predict(X, tasks=task), pooled.predict(X), atol=1e-2)
    alone = RMTLRegressor(1.0, mu=1e9, kernel="rbf", sigma=2.0).fit(X, y, tasks=task)
    K = np.exp(-((X[:, None] - X) ** 2).sum(-1) / 8) * (task[:, None] == task)
    assert np.allclose(alone.predict(X, tasks=task), SVR(kernel="precomputed").fit(K, y).predict(K), atol=1e-3)


def test_rmtl_beats_pooled_and_alone_on_its_own_data(rng):
    X, y, task = linear_tasks(rng, 20, 8, own=0.2, d=8)
    parts = halves(len(y))

    def best(mu, task):
        return min(error(RMTLRegressor(C, mu=mu), X, y, task, *parts) for C in (0.01, 0.1, 1.0))

    both = best(0.1, task)
    assert both < 0.6 * best(1e6, task)
    assert both < 0.8 * best(1e6, 0 * task)


def test_rmtl_refuses_what_does_not_fit(rng, monkeypatch):
    monkeypatch.setenv("LEASTWISE_MEMORY", "10kB")
    X, y, task = linear_tasks(rng, 3)
    with pytest.raises(MemoryError, match=r"90 rows need about 127 KB .* Give at most about 25 rows"):
        RMTLRegressor().fit(X, y, tasks=task)


# ------------------------------------------------------------------- MTL-FEAT


def trace_norm_objective(W, X, y, task, alpha):
    loss = np.sum((y - np.sum(X * W[task], axis=1)) ** 2)
    return loss + alpha * np.linalg.svd(W, compute_uv=False).sum() ** 2


def test_mtl_feat_minimises_the_squared_trace_norm(rng):
    X, y, task, _ = subspace_tasks(rng, 5, 5, d=4)
    model = MTLFeatRegressor(0.5, fit_intercept=False, epsilon=1e-12, tol=1e-8)
    model.fit(X, y, tasks=task)
    reached = trace_norm_objective(model.coef_, X, y, task, 0.5)
    assert model.objective_[-1] == pytest.approx(reached, rel=1e-4)

    def objective(w):
        return trace_norm_objective(w.reshape(5, 4), X, y, task, 0.5)

    for start in (model.coef_, rng.normal(size=(5, 4))):
        direct = minimize(objective, start.ravel(), method="BFGS")
        assert direct.fun > reached * (1 - 1e-5)


def test_mtl_feat_objective_never_grows(rng):
    X, y, task, _ = subspace_tasks(rng)
    model = MTLFeatRegressor(0.1).fit(X, y, tasks=task)
    assert model.n_iter_ == len(model.objective_) > 3
    assert (np.diff(model.objective_) <= 1e-12 * model.objective_[0]).all()
    assert np.trace(model.metric_) == pytest.approx(1)
    assert np.linalg.eigvalsh(model.metric_).min() > 0


def test_mtl_feat_metric_is_the_root_of_the_coefficients(rng):
    X, y, task, _ = subspace_tasks(rng)
    model = MTLFeatRegressor(0.1).fit(X, y, tasks=task)
    values, U = np.linalg.eigh(model.coef_.T @ model.coef_)
    root = (U * np.sqrt(np.maximum(values, 0))) @ U.T
    assert np.allclose(model.metric_, root / np.trace(root), atol=1e-3)


def test_mtl_feat_finds_the_subspace_and_beats_ridges(rng):
    X, y, task, basis = subspace_tasks(rng)
    parts = halves(len(y))
    model = MTLFeatRegressor(0.5)
    together = error(model, X, y, task, *parts)
    alone = min(error_alone(lambda a=a: Ridge(a), X, y, task, *parts) for a in 10.0 ** np.arange(-3, 3))
    assert together < 0.5 * alone
    directions = np.linalg.eigh(model.metric_)[1][:, -2:]
    assert np.linalg.svd(directions.T @ basis, compute_uv=False).min() > 0.97
    assert np.trace(basis.T @ model.metric_ @ basis) > 0.9


def test_mtl_feat_of_one_task_is_ridge(rng):
    X, y, _ = linear_tasks(rng, 1)
    model = MTLFeatRegressor(3.0, tol=1e-9).fit(X, y, tasks="only")
    ridge = Ridge(3.0).fit(X, y)
    assert np.allclose(model.coef_[0], ridge.coef_, atol=1e-3)
    assert np.allclose(model.predict(X, tasks="only"), ridge.predict(X), atol=3e-3)


def test_mtl_feat_in_the_span_is_mtl_feat(rng):
    X, y, task, _ = subspace_tasks(rng, 6, 8, d=5)
    Z, basis = span(X @ X.T)
    assert Z.shape == (len(X), 5)
    assert np.allclose(X @ X.T @ basis, Z)
    found = [
        learn_features([Design.of(A[task == t], y[task == t, None]) for t in range(6)], 0.5, 1e-8, 500, 1e-9)
        for A in (X, Z)
    ]
    assert np.allclose(found[0].objective, found[1].objective)
    assert np.allclose(X @ found[0].W, Z @ found[1].W, atol=1e-3)


def test_mtl_feat_with_a_wide_rbf_is_nearly_linear(rng):
    """exp(-d^2 / (2 s^2)) centred is about x'z / s^2 for a large s."""
    X, y, task, _ = subspace_tasks(rng, 6, 8, d=3)
    linear = MTLFeatRegressor(0.5).fit(X, y, tasks=task)
    rbf = MTLFeatRegressor(0.5 / 1e4, kernel="rbf", sigma=100.0).fit(X, y, tasks=task)
    assert rbf.dual_coef_.shape == (6, len(X))
    assert not hasattr(rbf, "coef_")
    assert np.allclose(rbf.predict(X, tasks=task), linear.predict(X, tasks=task), atol=0.02)


def test_mtl_feat_rows_more_or_fewer_than_dimensions(rng):
    """The triangular factor stands for the rows, loss included."""
    X, Y = rng.normal(size=(30, 4)), rng.normal(size=(30, 2))
    short = Design.of(X, Y)
    assert short.X.shape == (4, 4)
    found = learn_features([short], 0.7, 1e-8, 500, 1e-9)
    loss = np.sum((Y - X @ found.W) ** 2)
    assert found.objective[-1] == pytest.approx(loss + 0.7 * found.metric.trace**2)


def test_mtl_feat_large_alpha_leaves_the_means_of_the_tasks(rng):
    X, y, task = linear_tasks(rng, 3)
    model = MTLFeatRegressor(1e9).fit(X, y, tasks=task)
    assert np.abs(model.coef_).max() < 1e-4
    assert np.allclose(model.intercept_, [y[task == t].mean() for t in range(3)], atol=1e-3)


def test_mtl_feat_classes_are_tasks_over_the_same_rows(rng):
    data = make_related_tasks(1, 90, n_classes=3, n_features=4, random_state=0)
    model = MTLFeatClassifier(0.5).fit(data.X, data.y)
    rows, codes = np.tile(np.arange(90), 3), np.repeat(np.arange(3), 90)
    by_hand = MTLFeatRegressor(0.5).fit(data.X[rows], np.where(data.y[rows] == codes, 1.0, -1.0), tasks=codes)
    assert model.coef_.shape == (3, 4)
    assert model.tasks_ is None
    assert np.allclose(model.coef_, by_hand.coef_, atol=1e-3)
    assert np.allclose(model.decision_function(data.X)[:, 1], by_hand.predict(data.X, tasks=1))
    assert (model.predict(data.X) == model.decision_function(data.X).argmax(axis=1)).all()
    with pytest.raises(ValueError, match="fitted without tasks"):
        model.predict(data.X, tasks=data.task)


def test_mtl_feat_classifier_of_tasks(rng):
    X, y, task, _ = subspace_tasks(rng, noise=0.0)
    label = np.where(y > 0, "up", "down")
    train, test = halves(len(y))
    model = MTLFeatClassifier(1.0).fit(X[train], label[train], tasks=task[train])
    alone = [MTLFeatClassifier(1.0).fit(X[a], label[a]) for a in (train[task[train] == t] for t in range(30))]
    right = [alone[t].predict(X[[i]])[0] == label[i] for i, t in zip(test, task[test], strict=True)]
    assert model.coef_.shape == (30, 15)
    assert model.score(X[test], label[test], tasks=task[test]) > np.mean(right) + 0.05
    three = MTLFeatClassifier(kernel="rbf", sigma=4.0).fit(X, np.digitize(y, [-0.5, 0.5]), tasks=task)
    assert three.decision_function(X[:7], tasks=task[:7]).shape == (7, 3)
    assert three.dual_coef_.shape == (30, 3, len(X))


def test_mtl_feat_warns_where_it_has_not_come_to_rest(rng):
    X, y, task, _ = subspace_tasks(rng)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = MTLFeatRegressor(max_iter=2).fit(X, y, tasks=task)
    assert model.n_iter_ == 2


# ----------------------------------------------------------------------- BMTL


@pytest.fixture
def network(rng):
    """A network and rows of tasks of 1 to 6 rows, in mixed order."""
    task = rng.permutation(np.repeat(np.arange(4), [1, 3, 6, 2]))
    rows = Rows.of(rng.normal(size=(12, 3)), rng.normal(size=12), task)

    def make(kind):
        L = np.tril(rng.normal(size=(3, 3)))
        return Network(rng.normal(size=(4, 2)), rng.normal(size=3), L, -0.4, kind)

    return make, rows


@pytest.mark.parametrize("kind", ["tanh", "linear"])
def test_bmtl_evidence_is_a_normal_density(network, kind):
    make, rows = network
    net = make(kind)
    H, total = net.hidden(rows.X), 0.0
    for t in range(4):
        own = rows.task == t
        covariance = H[own] @ net.L @ net.L.T @ H[own].T + np.exp(-0.8) * np.eye(own.sum())
        total += multivariate_normal.logpdf(rows.y[own], H[own] @ net.mean, covariance)
    assert evidence(net, rows)[0] == pytest.approx(total, rel=1e-10)


@pytest.mark.parametrize("kind", ["tanh", "linear"])
def test_bmtl_gradient_is_the_slope(network, kind):
    make, rows = network
    net = make(kind)
    theta = net.pack()
    assert np.array_equal(net.unpack(theta).pack(), theta)
    slope = approx_fprime(theta, lambda x: evidence(net.unpack(x), rows)[0], 1e-6)
    assert np.allclose(evidence(net, rows)[1], slope, rtol=1e-4, atol=1e-4)


def test_bmtl_posterior_is_the_long_way(network):
    make, rows = network
    net = make("tanh")
    H = net.hidden(rows.X)
    A, C = output_weights(net, posterior(net, rows, H))
    S_inv, s2 = np.linalg.inv(net.L @ net.L.T), np.exp(-0.8)
    for t in range(4):
        own = rows.task == t
        covariance = np.linalg.inv(S_inv + H[own].T @ H[own] / s2)
        assert np.allclose(C[t], covariance)
        assert np.allclose(A[t], covariance @ (S_inv @ net.mean + H[own].T @ rows.y[own] / s2))


def test_bmtl_finds_the_model_that_made_the_data(rng):
    X, y, task, common = network_tasks(rng)
    train, test = halves(len(y))
    model = BMTLRegressor(2, n_init=3, random_state=0)
    mse = error(model, X, y, task, train, test)
    assert (np.diff(model.evidence_) >= 0).all()
    assert model.evidence_[-1] > model.evidence_[0] + 100
    assert model.noise_ == pytest.approx(0.2, rel=0.15)
    assert mse < 0.5 * error_alone(lambda: Ridge(1.0), X, y, task, train, test)
    assert mse < 0.5 * error_alone(LinearRegression, X, y, task, train, test)
    prior = model.predict(X, tasks="unseen_task")  # the mean over tasks is known up to the scatter of 40 of them
    assert np.corrcoef(prior, common)[0, 1] > 0.98
    assert np.abs(np.mean(prior - common)) < 3 * 1.2 / np.sqrt(40)


def test_bmtl_says_how_sure_it_is(rng):
    X, y, task, _ = network_tasks(rng)
    train, test = halves(len(y))
    model = BMTLRegressor(2, n_init=3, random_state=0).fit(X[train], y[train], tasks=task[train])
    mean, std = model.predict(X[test], tasks=task[test], return_std=True)
    inside = np.abs(y[test] - mean) < 1.96 * std
    assert 0.9 < inside.mean() < 0.99
    unsure = model.predict(X[test], tasks="unseen_task", return_std=True)[1]
    assert (unsure > std).all()


def test_bmtl_does_not_depend_on_units(rng):
    X, y, task, _ = network_tasks(rng, 8)
    model = BMTLRegressor(2, random_state=0).fit(X, y, tasks=task)
    other = BMTLRegressor(2, random_state=0).fit(1e3 * X - 7, 1e-2 * y + 5, tasks=task)
    assert np.allclose(other.predict(1e3 * X - 7, tasks=task), 1e-2 * model.predict(X, tasks=task) + 5, atol=1e-4)
    assert other.evidence_[-1] == pytest.approx(model.evidence_[-1] - len(y) * np.log(1e-2), rel=1e-4)
    rows = Rows.of(X, y, task)
    V = np.vstack([model.hidden_coef_, model.hidden_intercept_])
    L = np.linalg.cholesky(model.prior_covariance_ + 1e-10 * np.eye(3))
    fitted = Network(V, model.prior_mean_, L, np.log(model.noise_), "tanh")
    assert evidence(fitted, rows)[0] == pytest.approx(model.evidence_[-1], rel=1e-4)


def test_bmtl_linear_units_and_exact_targets(rng):
    X, y, task = linear_tasks(rng, 6, noise=0.0)
    model = BMTLRegressor(5, "linear", max_iter=3000, random_state=0).fit(X, y, tasks=task)
    assert model.score(X, y, tasks=task) > 0.9999


def test_bmtl_warns_where_it_has_not_come_to_rest(rng):
    X, y, task, _ = network_tasks(rng, 5)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = BMTLRegressor(max_iter=3, random_state=0).fit(X, y, tasks=task)
    assert model.n_iter_ == 3


# -------------------------------------------------------------- all of them


def related(kind, n_rows=20):
    data = make_related_tasks(4, n_rows, kind=kind, random_state=0)
    return data.X, data.y, np.array(["a", "b", "c", "d"])[data.task]


def everyone():
    return [(m, "regression") for m in REGRESSORS] + [(m, "classification") for m in CLASSIFIERS]


each = pytest.mark.parametrize(("model", "kind"), everyone(), ids=lambda v: type(v).__name__)


@each
def test_tasks_as_a_column(model, kind):
    X, y, task = related(kind)
    table = np.column_stack([X, task.astype(object)])
    by_column = clone(model).set_params(task_column=-1).fit(table, y)
    by_argument = clone(model).fit(X, y, tasks=task)
    same = np.array_equal if kind == "classification" else partial(np.allclose, atol=1e-4)
    assert same(by_column.predict(table), by_argument.predict(X, tasks=task))
    assert by_column.n_features_in_ == 3
    assert by_column.score(table, y) == pytest.approx(by_argument.score(X, y, tasks=task), abs=1e-4)
    assert len(cross_val_predict(clone(by_column), table, y, cv=KFold(3, shuffle=True, random_state=0))) == len(y)
    with pytest.raises(ValueError, match="differ: give one of the two"):
        by_column.predict(table, tasks=task[::-1])
    frame = pytest.importorskip("pandas").DataFrame({"u": X[:, 0], "v": X[:, 1], "site": task})
    named = clone(model).set_params(task_column="site").fit(frame, y)
    assert same(named.predict(frame), by_argument.predict(X, tasks=task))
    with pytest.raises(ValueError, match="one task for all rows"):
        clone(model).fit(frame, y, tasks="site")


@each
def test_copies_and_order(model, kind, rng):
    X, y, task = related(kind)
    fitted = clone(model).fit(X, y, tasks=task)
    copy = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copy.predict(X, tasks=task), fitted.predict(X, tasks=task))
    assert clone(fitted).get_params() == model.get_params()
    p = rng.permutation(len(y))
    shuffled = clone(model).set_params(tol=1e-5).fit(X[p], y[p], tasks=task[p])
    ordered = clone(model).set_params(tol=1e-5).fit(X, y, tasks=task)
    if kind == "regression":
        assert np.allclose(shuffled.predict(X, tasks=task), ordered.predict(X, tasks=task), atol=1e-2)
    else:
        assert (shuffled.predict(X, tasks=task) == ordered.predict(X, tasks=task)).mean() > 0.95


@each
def test_a_task_with_one_row(model, kind):
    X, y, task = related(kind)
    task = task.astype(object)
    task[0] = "lonely"
    answer = clone(model).fit(X, y, tasks=task).predict(X[:2], tasks="lonely")
    assert answer.shape == (2,)
    assert answer.dtype == y.dtype


@each
def test_tasks_that_are_not_known(model, kind):
    X, y, task = related(kind)
    model = clone(model)
    if "unknown_task" in model.get_params():
        assert model.fit(X, y, tasks=task).predict(X, tasks="new").shape == y.shape
        model.set_params(unknown_task="error")
    model.fit(X, y, tasks=task)
    with pytest.raises(ValueError, match=r"tasks \['new'\] are not in the training data, which has \['a', 'b'"):
        model.predict(X, tasks="new")


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda v: type(v).__name__)
def test_constant_targets(model):
    X, y, task = related("regression")
    assert np.allclose(clone(model).fit(X, 0 * y + 7, tasks=task).predict(X, tasks=task), 7, atol=1e-3)


@each
def test_bad_rows(model, kind):
    X, y, task = related(kind)
    hole = X.copy()
    hole[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        clone(model).fit(hole, y, tasks=task)
    with pytest.raises(ValueError, match="one id for each of the 80 rows"):
        clone(model).fit(X, y, tasks=task[:5])
    if kind == "regression":
        with pytest.raises(ValueError, match=r"y must be numeric for \w+; it contains 'a'"):
            clone(model).fit(X, task, tasks=task)
    else:
        with pytest.raises(ValueError, match="one class only"):
            clone(model).fit(X, 0 * y, tasks=task)
    if not isinstance(model, MTLFeatClassifier):
        with pytest.raises(ValueError, match="give tasks= with one id"):
            clone(model).fit(X, y)
    with pytest.raises(ValueError, match="give tasks= with one id"):
        clone(model).fit(X, y, tasks=task).predict(X)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (RMTLRegressor(C=0), "C=0 must be finite and positive"),
        (RMTLRegressor(epsilon=-1), "epsilon=-1 must be finite and non-negative"),
        (RMTLRegressor(mu=np.inf), "mu=inf must be"),
        (RMTLClassifier(kernel="poly"), r"kernel='poly' is not known: use one of \['linear', 'rbf'\]"),
        (RMTLClassifier(intercept=None), r"intercept=None is not known"),
        (MTLFeatRegressor(alpha="auto"), "alpha='auto' must be finite and positive"),
        (MTLFeatRegressor(max_iter=0.5), "max_iter=0.5 must be an integer of at least 1"),
        (MTLFeatClassifier(fit_intercept="yes"), "fit_intercept='yes' is not known"),
        (BMTLRegressor(n_hidden=0), "n_hidden=0 must be an integer"),
        (BMTLRegressor(hidden="relu"), r"hidden='relu' is not known: use one of \['tanh', 'linear'\]"),
        (BMTLRegressor(unknown_task="mean"), "unknown_task='mean' is not known"),
    ],
)
def test_bad_parameters(model, words):
    X, y, task = related("classification")
    with pytest.raises(ValueError, match=words):
        model.fit(X, y, tasks=task)
