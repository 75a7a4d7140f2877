"""How familiar rows are: against the definition by loops, and against what is promised of false alarms."""

import pickle

import numpy as np
import pytest
from conftest import blobs
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

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
from leastwise.calibration.extrapolation import fit_neighbourhood

X, Y = blobs(60, 3, seed=1)
NEW = X[:20] + np.random.default_rng(0).normal(size=(20, 2))
FAR = np.array([[1e3, 0.0], [0.0, -1e3]])
TASK = np.arange(60) % 3
FIXED = {"sigma": 1.0, "alpha": 0.02}
TABLE = (np.eye(3)[Y] == 1).astype(int)

ONE = {
    "LSPC": (LSPC(**FIXED), Y),
    "LSPC, few centres": (LSPC(**FIXED, n_centers=10, random_state=0), Y),
    "LSPC, kmeans": (LSPC(**FIXED, n_centers=10, centers="kmeans", random_state=0), Y),
    "LSPC, laplace": (LSPC(**FIXED, kernel="laplace"), Y),
    "LSPC, nothing held out": (LSPC(**FIXED, cv=None, calibration=None), Y),
    "LSSVC": (LSSVC(**FIXED), Y),
    "LSSVC, pruned": (LSSVC(**FIXED, prune=0.2), Y),
    "LSSVR": (LSSVR(**FIXED), X[:, 0]),
    "LSSVR, linear": (LSSVR(alpha=0.1, kernel="linear"), X[:, 0]),
    "KLR": (KernelLogisticRegression(**FIXED, cv=3), Y),
    "labels": (MultiLabelLSPC(**FIXED, sharing=0.5), TABLE),
    "labels, cg": (MultiLabelLSPC(**FIXED, sharing=0.5, solver="cg", random_state=0), TABLE),
}
TASKED = {
    "tasks": (MultiTaskLSPC(**FIXED, sharing=0.5), Y),
    "tasks, few centres": (MultiTaskLSPC(**FIXED, sharing=0.5, n_centers=20, random_state=0), Y),
    "tasks, lssvc": (MultiTaskLSSVC(**FIXED, sharing=0.5), Y),
    "tasks, lssvr, linear": (MultiTaskLSSVR(alpha=0.1, sharing=0.5, kernel="linear"), X[:, 0]),
    "tasks, klr": (MultiTaskKernelLogisticRegression(**FIXED, sharing=0.5, cv=3), Y),
}


def by_definition(rows, new, reference=None, order=2, group=None, w=None):
    """The share of witnesses that are at least as far, by loops."""
    n = len(rows)
    reference = np.arange(n) if reference is None else reference
    group, w = np.arange(n) if group is None else group, np.ones(n) if w is None else w

    d = [min([np.linalg.norm(rows[i] - rows[j], order) for j in reference if group[i] != group[j]]) for i in range(n)]
    weight = [w[i] / w[group == group[i]].sum() for i in range(n)] if len(set(group)) < n else w / np.mean(w)
    found = []
    for x in new:
        own = min(np.linalg.norm(x - rows[j], order) for j in reference)
        found.append((1 + sum(v for v, e in zip(weight, d, strict=True) if e >= own)) / (1 + sum(weight)))
    return np.array(found)


@pytest.mark.parametrize("name", ONE)
def test_every_model_has_it(name):
    model, y = ONE[name]
    model.fit(X, y)
    found = model.novelty_pvalue(NEW)
    reference = None
    if "few" in name or "pruned" in name:
        reference = np.array([np.flatnonzero((c == X).all(axis=1))[0] for c in model.centers_])
    expected = by_definition(model.inputs_(X), model.inputs_(NEW), reference, 1 if "laplace" in name else 2)
    np.testing.assert_allclose(found, expected)
    assert (model.novelty_pvalue(FAR) == 1 / 61).all()
    if reference is None:
        assert (model.novelty_pvalue(X) == 1).all()


@pytest.mark.parametrize("name", TASKED)
def test_models_of_many_tasks_have_it_whatever_the_task(name):
    model, y = TASKED[name]
    model.fit(X, y, tasks=TASK)
    if "few" not in name:
        np.testing.assert_allclose(model.novelty_pvalue(NEW), by_definition(model.inputs_(X), model.inputs_(NEW)))
    np.testing.assert_array_equal(model.novelty_pvalue(NEW), model.novelty_pvalue(NEW, tasks="another"))
    assert (model.novelty_pvalue(FAR) == 1 / 61).all()
    column = np.column_stack([X, TASK])
    other = type(model)(**{**model.get_params(), "task_column": 2}).fit(column, y)
    np.testing.assert_array_equal(other.novelty_pvalue(np.column_stack([NEW, TASK[:20]])), model.novelty_pvalue(NEW))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_groups_weights_and_copies(seed, city):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 4, size=(25, 2)).astype(float)
    new, w = 4 * rng.random((6, 2)), rng.uniform(0.5, 2, 25)
    for group in (None, rng.integers(0, 6, 25)):
        known = fit_neighbourhood(rows, w, group, None, None, city)
        expected = by_definition(rows, new, None, 1 if city else 2, group, w)
        np.testing.assert_allclose(known.novelty_pvalue(new, None), expected)
    count = rng.integers(1, 4, 25)
    weighted = fit_neighbourhood(rows, count.astype(float), None, count.astype(float), None, city)
    repeated = fit_neighbourhood(np.repeat(rows, count, axis=0), np.ones(count.sum()), None, None, None, city)
    np.testing.assert_allclose(weighted.novelty_pvalue(new, None), repeated.novelty_pvalue(new, None))


def test_groups_of_the_user():
    """Near copies of every row: new persons are as far from the data as persons are from one another."""
    rng, person = np.random.default_rng(0), np.repeat(np.arange(60), 5)
    many = rng.normal(size=(60, 2))[person] + 1e-3 * rng.normal(size=(300, 2))
    new, given = rng.normal(size=(400, 2)), {**FIXED, "cv": None, "calibration": None}
    rows = LSPC(**given).fit(many, np.repeat(Y, 5))
    persons = LSPC(**given).fit(many, np.repeat(Y, 5), groups=person)
    alarms = [float(np.mean(model.novelty_pvalue(new) <= 0.05)) for model in (rows, persons)]
    assert alarms[0] > 0.8
    assert alarms[1] < 0.12


def drawn(kind, rng, n):
    if kind == "normal":
        return rng.normal(size=(n, 3))
    if kind == "heavy tails":
        return rng.standard_t(2, size=(n, 2))
    if kind == "many columns":
        return rng.normal(size=(n, 30)) * np.linspace(0.1, 2, 30)
    return np.where(rng.random((n, 1)) < 0.1, rng.normal(size=(n, 2)), 8 + 0.1 * rng.normal(size=(n, 2)))


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "many columns", "a dense part and a thin one"])
@pytest.mark.parametrize("n", [60, 200])
def test_five_of_a_hundred_are_false_alarms(kind, n):
    """30 draws of 400 new rows each; the mean has a standard error of about 0.005 for 60 rows, 0.003 for 200."""
    rng, alarms = np.random.default_rng(0), []
    for _ in range(30):
        rows, new = drawn(kind, rng, n), drawn(kind, rng, 400)
        known = fit_neighbourhood(rows, np.ones(n), None, None, None, city=False)
        alarms.append([np.mean(known.novelty_pvalue(new, None) <= a) for a in (0.05, 0.2)])
    low, high = np.mean(alarms, axis=0)
    assert 0.025 < low < 0.065
    assert 0.15 < high < 0.22


def test_more_rows_than_are_measured(monkeypatch):
    """Evenly spaced rows stand for all; alarms stay what they were."""
    monkeypatch.setattr("leastwise.calibration.extrapolation.REFERENCE", 150)
    monkeypatch.setattr("leastwise.calibration.extrapolation.MEASURED", 100)
    rng, alarms = np.random.default_rng(0), []
    for _ in range(10):
        rows, new = drawn("normal", rng, 300), drawn("normal", rng, 400)
        model = LSSVR(**FIXED, kernel="rbf", cv=None).fit(rows, rows[:, 0])
        assert len(model.neighbourhood_.places) == 150
        assert len(model.neighbourhood_.distance) == 100
        alarms.append(np.mean(model.novelty_pvalue(new) <= 0.05))
    assert 0.02 < np.mean(alarms) < 0.09


def test_far_rows_are_unfamiliar_and_have_class_shares():
    """Trust, which shrinks probabilities, begins to fall where familiarity is about 0.01."""
    rng = np.random.default_rng(0)
    rows, new = rng.normal(size=(400, 2)), rng.normal(size=(4000, 2))
    y = (rows[:, 0] + rng.normal(size=400) > 0.3).astype(int)
    for make in (LSPC, LSSVC, KernelLogisticRegression):
        model = make(1.0, 0.01, random_state=0).fit(rows, y)
        P, low = model.predict_proba(100 + new), model.novelty_pvalue(100 + new)
        np.testing.assert_allclose(P, np.tile(model.class_prior_, (4000, 1)), atol=1e-6)
        assert (low == 1 / 401).all()
        assert (model.in_domain(100 + new) < 1e-6).all()
        away = model.in_domain(new) < 1
        assert 0 < away.mean() < 0.03
        assert model.novelty_pvalue(new[away]).max() < 0.03


def test_logistic_regression_goes_to_class_shares_unless_told_otherwise():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(150, 2))
    y = (rows[:, 0] > 0.5).astype(int)
    task = np.arange(150) % 2
    for make, more in ((KernelLogisticRegression, {}), (MultiTaskKernelLogisticRegression, {"tasks": task})):
        given = {"sigma": 4.0, "alpha": 1e-4, "cv": 3, "random_state": 0}
        given |= {"sharing": 0.5} if more else {}
        asked = {"tasks": 0} if more else {}
        model, bold = (make(**given, extrapolate=e).fit(rows, y, **more) for e in (False, True))
        way = np.column_stack([np.linspace(0, 200, 100), np.zeros(100)])
        P, Q = model.predict_proba(way, **asked), bold.predict_proba(way, **asked)
        near = model.in_domain(way, **asked) == 1
        np.testing.assert_array_equal(P[near], Q[near])
        np.testing.assert_allclose(P[-1], model.class_prior_, atol=1e-9)
        assert np.abs(Q[-1] - model.class_prior_).max() > 0.1
        assert (bold.in_domain(way, **asked) == 1).all()
        assert np.isclose(model.decision_function(way[-1:], **asked)[0], np.log(P[-1, 1] / P[-1, 0]))
        assert model.heldout_proba_.shape == (150, 2)


def test_sparse_rows_and_files():
    model = LSPC(**FIXED).fit(sparse.csr_matrix(X), Y)
    np.testing.assert_allclose(model.novelty_pvalue(sparse.csr_matrix(NEW)), by_definition(X, NEW))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.novelty_pvalue(NEW), model.novelty_pvalue(NEW))


def test_at_the_edge():
    with pytest.raises(ValueError, match="precomputed"):
        LSPC(alpha=0.1, kernel="precomputed").fit(X @ X.T, Y).novelty_pvalue(NEW @ X.T)
    alone = fit_neighbourhood(np.zeros((3, 1)), np.ones(3), None, None, None, city=False)
    assert alone.novelty_pvalue(np.array([[5.0]]), None) == 0.25  # three observations at distance 0 from each other
    single = fit_neighbourhood(np.zeros((1, 1)), np.ones(1), None, None, None, city=False)
    assert single.novelty_pvalue(np.array([[5.0]]), None) == 1  # nothing to compare with
