"""The regressors' default choice: a charge for degrees of freedom, and a linear model unless it is clearly beaten."""

import numpy as np
import pytest
from conftest import DATA, PLAIN_SUM
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import LeaveOneOut
from sklearn.preprocessing import StandardScaler

from leastwise import LSSVR, MultiTaskLSSVR
from leastwise.datasets import available, load, make_related_tasks
from leastwise.model_selection.objective import ValueObjective, caution, resolve_value_scoring
from leastwise.problem.coupling import from_gamma_lambda
from leastwise.problem.kernels import RBF
from leastwise.solvers.evaluator import Rows
from leastwise.solvers.heldout import HeldOut


def rows(values):
    n = len(values)
    everyone = np.arange(n)
    return Rows(np.zeros((n, 1)), np.zeros(n, int), np.ones(n), everyone, everyone, everyone, values=values)


def objective(values, scoring="cautious"):
    return ValueObjective.of(values, np.ones(len(values)), None, resolve_value_scoring(scoring), 1.0)


def test_the_charge_grows_with_the_degrees_of_freedom_and_fades_with_the_rows():
    rng = np.random.default_rng(0)
    costs = []
    for n in (30, 100, 1000, 10000):
        Z = rng.normal(size=(n, 1))
        F = 0.5 * Z
        plain = objective(Z, "r2")(rows(Z), HeldOut(F, np.zeros(1), dof=n / 2), None)[0]
        scores = [objective(Z)(rows(Z), HeldOut(F, np.zeros(1), dof=f * n), None)[0] for f in (0, 0.25, 0.5)]
        assert scores[0] == pytest.approx(plain)
        assert scores[0] > scores[1] > scores[2]
        costs.append(np.log((1 - scores[2]) / (1 - plain)))
    assert costs == pytest.approx([6 / 30**0.5 / 2, 6 / 10 / 2, 60 / 1000 / 2, 60 / 10000 / 2])
    assert caution(100) == 1
    assert caution(400) == 0.5


def test_a_model_has_to_be_clearly_better():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(80, 1))
    simple = Z + rng.normal(size=Z.shape)
    assert objective(Z).clearly_better(rows(Z), 0.5 * (Z + simple), simple)
    assert not objective(Z).clearly_better(rows(Z), simple, simple)
    assert not objective(Z).clearly_better(rows(Z), simple + 1e-3 * rng.normal(size=Z.shape), simple)


@pytest.mark.parametrize(("alpha", "bias"), [(1e-3, "shared"), (0.1, None)])
def test_degrees_of_freedom_are_the_trace_of_the_smoother(alpha, bias, monkeypatch):
    """By every way to held-out scores: a row's own weight in its fitted value, summed."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(25, 2)), rng.normal(size=25)
    seen = []

    real = ValueObjective.__call__
    monkeypatch.setattr(
        ValueObjective,
        "__call__",
        lambda self, rows, held, last: seen.append(held.dof) or real(self, rows, held, last),
    )
    LSSVR(1.0, alpha, kernel="rbf", bias=bias).fit(X, y)
    # leave-one-out has the ridge of 24 rows
    K, rho = RBF()(X, X, 1.0), alpha * 24
    M = np.linalg.inv(K + rho * np.eye(25))
    if bias:
        M -= np.outer(M.sum(0), M.sum(0)) / M.sum()
    assert seen[0] == pytest.approx(25 - rho * np.trace(M), rel=1e-9)


def with_tasks(X, task):
    return np.hstack([X, task[:, None] == np.unique(task)])


@pytest.mark.parametrize("kind", ["linear", "noise", "intercepts"])
def test_where_the_truth_is_simple_little_is_lost(kind):
    """Against a ridge regression that has the right form; the mean of six draws."""
    losses = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        task = np.repeat(np.arange(10), 60)
        X = rng.normal(size=(600, 6))
        level = rng.normal(size=10) if kind == "intercepts" else np.zeros(10)
        y = (kind != "noise") * X @ rng.normal(size=6) + 2 * level[task] + 2 * rng.normal(size=600)
        train = np.arange(600) % 60 < 12
        model = MultiTaskLSSVR(**PLAIN_SUM, random_state=0).fit(X[train], y[train], tasks=task[train])
        ridge = RidgeCV(10.0 ** np.arange(-3, 4)).fit(with_tasks(X, task)[train], y[train])
        best = r2_score(y[~train], ridge.predict(with_tasks(X, task)[~train]))
        losses.append(best - model.score(X[~train], y[~train], tasks=task[~train]))
    assert np.mean(losses) < 0.015


@pytest.mark.parametrize("function", ["smooth", "linear"])
def test_where_tasks_differ_much_is_won(function):
    data = make_related_tasks(8, 130, kind="regression", function=function, relatedness=0.5, random_state=1)
    train = np.arange(len(data.y)) % 130 < 30
    model = MultiTaskLSSVR(**PLAIN_SUM, random_state=0).fit(data.X[train], data.y[train], tasks=data.task[train])
    ridge = RidgeCV(10.0 ** np.arange(-3, 4)).fit(with_tasks(data.X, data.task)[train], data.y[train])
    best = r2_score(data.y[~train], ridge.predict(with_tasks(data.X, data.task)[~train]))
    assert model.score(data.X[~train], data.y[~train], tasks=data.task[~train]) > best + 0.1
    assert model.sharing_ < 1


def test_a_linear_model_is_solved_by_its_coefficients_where_rows_are_many(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=3000)
    monkeypatch.setattr("leastwise.solvers.choose.COMPLETE", 1e-9)
    monkeypatch.setattr("leastwise.solvers.choose.PATIENCE", 1e-9)
    model = LSSVR(**PLAIN_SUM, random_state=0).fit(X, y)
    assert model.linear_weight_ == np.inf
    assert len(model.coef_) == 3
    assert model.score(X, y) > 0.92


@pytest.mark.parametrize("bend", [0.0, 3.0])
def test_iterations_have_to_beat_the_linear_model_of_all_rows(monkeypatch, bend):
    """Parameters for iterations come from some rows; these are led astray here, if the truth is linear."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 2))
    y = X @ [1.0, 2.0] + bend * np.sin(2 * X[:, 0]) + rng.normal(size=700)
    monkeypatch.setattr("leastwise.solvers.choose.COMPLETE", 1e-9)
    monkeypatch.setattr("leastwise.solvers.choose.PATIENCE", 1e-9)
    monkeypatch.setattr("leastwise.fitting.spec.MANY_ROWS", 500)
    monkeypatch.setattr(ValueObjective, "clearly_better", clearly_better := Watched(ValueObjective.clearly_better))
    model = LSSVR(**PLAIN_SUM, random_state=0, search_rows=60, linear_weight=[1.0, np.inf]).fit(X, y)
    linear = LSSVR(random_state=0, kernel="linear").fit(X, y)
    if bend:
        assert model.linear_weight_ == 1
        assert model.n_iter_ > 0
        assert model.residual_ < 1e-5
        assert model.score(X, y) > linear.score(X, y) + 0.1
    else:
        assert model.linear_weight_ == np.inf
        assert not hasattr(model, "residual_")
        assert model.score(X, y) == pytest.approx(linear.score(X, y), abs=0.01)
    assert clearly_better.calls


class Watched:
    """A method that counts."""

    def __init__(self, method):
        self.method, self.calls = method, 0

    def __get__(self, owner, kind):
        def call(*args):
            self.calls += 1
            return self.method(owner, *args)

        return call


needs_school = pytest.mark.skipif("school" not in available(DATA), reason="the School data are not here")


@needs_school
def test_school_is_explained_as_in_the_paper():
    """Table 2: linear kernel, a free intercept per school, leave-one-out; 38.16 is the mean of their ten splits."""
    data, found = load("school", DATA), []
    for split in data.splits[:3]:
        n = int(split.sum())
        pairs = [from_gamma_lambda(2.0**g, 2.0**h, n, 139) for g in (-5, -3, -1) for h in (8, 10, 12)]
        grid = {"alpha": sorted({p["alpha"] for p in pairs}), "sharing": sorted({p["sharing"] for p in pairs})}
        model = MultiTaskLSSVR(kernel="linear", bias="task", scoring="r2", cv=LeaveOneOut(), **grid)
        model.fit(data.X[split], data.y[split], tasks=data.task[split])
        error = data.y[~split] - model.predict(data.X[~split], tasks=data.task[~split])
        found.append(100 * (1 - np.mean(error**2) / np.var(data.y[~split])))
    assert 38 < np.mean(found) < 40


@needs_school
def test_school_by_default():
    data = load("school", DATA)
    X, split = StandardScaler().fit_transform(data.X), data.splits[1]
    model = MultiTaskLSSVR(random_state=0, kernel="linear").fit(X[split], data.y[split], tasks=data.task[split])
    error = data.y[~split] - model.predict(X[~split], tasks=data.task[~split])
    assert 100 * (1 - np.mean(error**2) / np.var(data.y[~split])) > 39
    assert 0 < model.sharing_ < 1
