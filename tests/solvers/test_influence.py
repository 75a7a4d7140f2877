"""Explanations by training rows: against the model's own scores, and against refits without each row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leastwise import LSPC, LSSVC, LSSVR, MultiTaskLSPC, MultiTaskLSSVC, MultiTaskLSSVR

N, T = 24, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
TASK = np.array(["a", "b", "c"])[RNG.permutation(np.repeat(np.arange(T), [6, 8, 10]))]
Y = np.sin(1.5 * X[:, 0]) + 0.3 * RNG.normal(size=N) + 2
CLASS = np.array(["low", "mid", "top"])[np.digitize(Y, [1.5, 2.4])]
W = RNG.uniform(0.5, 2, size=N)
NEW = RNG.normal(size=(4, 2))
NEW_TASK = np.array(["a", "b", "c", "a"])
FIXED = {"sigma": 1.0, "alpha": 0.02, "cv": None}
PLAIN = {**FIXED, "calibration": None}
SVM = {"kernel": "rbf+linear", "linear_weight": 1.0}
TIED = {"sharing": 0.6}

MODELS = {
    "lspc": (LSPC, PLAIN, CLASS),
    "lspc, intercept": (LSPC, {**PLAIN, "bias": "shared"}, CLASS),
    "lssvc": (LSSVC, {**PLAIN, **SVM}, CLASS),
    "lssvr": (LSSVR, {**FIXED, **SVM}, Y),
    "lssvr, two outputs": (LSSVR, {**FIXED, **SVM, "bias": None}, np.column_stack([Y, X[:, 1]])),
    "tasks": (MultiTaskLSPC, {**PLAIN, **TIED}, CLASS),
    "tasks in pairs": (MultiTaskLSPC, {**PLAIN, **TIED, "similarity": np.ones((T, T)), "bias": "shared"}, CLASS),
    "tasks, lssvc": (MultiTaskLSSVC, {**PLAIN, **TIED, **SVM, "bias": 0.3}, CLASS),
    "tasks, free intercepts": (MultiTaskLSSVR, {**FIXED, **TIED, **SVM, "bias": "task"}, Y),
    "tasks, shared intercept": (MultiTaskLSSVR, {**FIXED, **TIED, **SVM, "bias": "shared"}, Y),
}


def made(name, keep=slice(None), w=None, **changes):
    kind, params, y = MODELS[name]
    tasks = {"tasks": TASK[keep]} if "tasks" in name else {}
    model = kind(**{**params, "random_state": 0, **changes})
    return model.fit(X[keep], y[keep], sample_weight=None if w is None else w[keep], **tasks)


def asked(model, name, X=NEW, task=NEW_TASK, **options):
    return model.influence(X, **({"tasks": task} if "tasks" in name else {}), **options)


def said(model, name, X=NEW, task=NEW_TASK):
    tell = model.scores if hasattr(model, "scores") else model.predict
    return tell(X, **({"tasks": task} if "tasks" in name else {})).reshape(len(X), -1)


def in_order(values, rows):
    """Values of all training rows in their own order."""
    return np.take_along_axis(values, np.argsort(rows, axis=1)[:, :, None], axis=1)


@pytest.mark.parametrize("weights", [None, W], ids=["equal", "weighted"])
@pytest.mark.parametrize("name", MODELS)
def test_contributions_sum_to_scores(name, weights):
    model = made(name, w=weights)
    found = asked(model, name, top=None)
    assert found.contribution.shape == (4, N, found.score.shape[1])
    np.testing.assert_allclose(found.contribution.sum(axis=1), said(model, name), atol=1e-9)
    np.testing.assert_allclose(found.score, said(model, name), atol=1e-9)


@pytest.mark.parametrize("weights", [None, W], ids=["equal", "weighted"])
@pytest.mark.parametrize("name", MODELS)
def test_effects_are_those_of_refits(name, weights):
    model = made(name, w=weights)
    found = asked(model, name, top=None)
    effect, before = in_order(found.effect, found.rows), said(model, name)
    mass = np.ones(N) if weights is None else weights
    for i in range(0, N, 3):
        keep = np.delete(np.arange(N), i)
        ridge = 0.02 * mass.sum() / mass[keep].sum()  # the same on the sum of the losses
        after = said(made(name, keep, weights, alpha=ridge, **same_kernel(model)), name)
        np.testing.assert_allclose(effect[:, i], before - after, atol=1e-8)
    size = np.abs(found.effect).max(axis=2)
    assert np.all(np.diff(size, axis=1) <= 0)
    assert size[:, 0].min() > 1e-4


def same_kernel(model):
    """A sum of kernels is put in units of the training rows, which must be the same without one of them."""
    return {"kernel": lambda A, B: model.kernel_(A, B, model.sigma_)} if "linear_weight" in model.get_params() else {}


@pytest.mark.parametrize("name", [name for name in MODELS if "tasks" in name])
def test_tasks_sum_to_scores(name):
    found = asked(made(name, w=W), name, top=None)
    for t, task in enumerate("abc"):
        mine = (TASK[found.rows] == task)[:, :, None]
        np.testing.assert_allclose(found.by_task[:, t], (found.contribution * mine).sum(axis=1), atol=1e-9)
    assert [found.tasks[t] for t in found.task] == NEW_TASK.tolist()
    assert (np.array(found.tasks)[found.row_task] == TASK[found.rows]).all()
    np.testing.assert_allclose(found.by_task.sum(axis=1), found.score, atol=1e-9)
    np.testing.assert_allclose(found.own[0], found.by_task[0, 0])
    np.testing.assert_allclose(found.own + found.others, found.score)


@pytest.mark.parametrize("name", ["tasks", "tasks, lssvc", "tasks, free intercepts"])
def test_unknown_task(name):
    model = made(name)
    found = asked(model, name, task="new", top=None)
    np.testing.assert_allclose(found.score, said(model, name, task="new"), atol=1e-9)
    assert (found.task == -1).all()
    assert (found.own == 0).all()
    assert "unseen task" in str(found)


def test_independent_tasks_owe_nothing_to_others():
    found = asked(made("tasks", sharing=0.0), "tasks", top=None)
    np.testing.assert_allclose(found.others, 0, atol=1e-12)
    unseen = TASK[found.rows] != NEW_TASK[:, None]
    assert np.abs(found.effect[unseen]).max() < 1e-12


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(N)))
def test_order_of_rows_does_not_matter(order):
    first, order = made("tasks", w=W), np.array(order)
    second = made("tasks", order, W)
    one, other = (asked(model, "tasks", top=None) for model in (first, second))
    np.testing.assert_allclose(in_order(other.effect, order[other.rows]), in_order(one.effect, one.rows), atol=1e-9)


def test_a_weight_is_so_many_copies():
    """The contribution of a row of weight 2 is that of both copies."""
    w = np.ones(N)
    w[5] = 2
    whole = asked(made("lspc", w=w), "lspc", top=None)
    copies = asked(made("lspc", np.append(np.arange(N), 5)), "lspc", top=None)
    whole, copies = (in_order(found.contribution, found.rows) for found in (whole, copies))
    np.testing.assert_allclose(whole[:, 5], copies[:, 5] + copies[:, N], atol=1e-9)


def test_rows_of_weight_zero_keep_the_numbers():
    w = np.ones(N)
    w[[0, 7]] = 0
    found = asked(made("lspc", w=w), "lspc", top=None)
    assert found.rows.shape == (4, N - 2)
    assert not np.isin([0, 7], found.rows).any()
    assert (found.target == CLASS[found.rows]).all()


def test_one_row_is_one_of_several():
    model = made("tasks")
    many, one = asked(model, "tasks", top=3), model.influence(NEW[2:3], tasks="c", top=3)
    assert len(one) == 1
    assert (one.rows == many[2].rows).all()
    np.testing.assert_allclose(one.effect, many[2].effect, atol=1e-12)
    assert len(many[1:]) == 3


def test_chunks_change_nothing(monkeypatch):
    model = made("tasks")
    whole = asked(model, "tasks", top=4)
    monkeypatch.setattr("leastwise.problem.basis.CHUNK", 1)
    parts = asked(model, "tasks", top=4)
    assert (parts.rows == whole.rows).all()
    np.testing.assert_allclose(parts.by_task, whole.by_task, atol=1e-12)


def test_lone_row_of_a_task_with_a_free_intercept():
    """Without it the task is not known: there is nothing to compare with, for that task only."""
    tasks = np.where(np.arange(N) == 4, "z", TASK)
    given = {**FIXED, **TIED, "kernel": "rbf", "bias": "task"}
    found = MultiTaskLSSVR(**given).fit(X, Y, tasks=tasks).influence(NEW[:2], top=None, tasks=["z", "a"])
    effect = in_order(found.effect, found.rows)[:, 4, 0]
    assert np.isnan(effect[0])
    assert found.rows[0, 0] == 4
    assert np.isfinite(effect[1])


@pytest.mark.filterwarnings("ignore:The sigmoid kernel", "ignore:The kernel matrix is not")
def test_chosen_and_calibrated_models_and_lifted_kernels():
    for model in (
        LSPC(random_state=0),
        LSPC(1.0, 0.01, kernel="sigmoid"),
        LSPC(random_state=0, class_weight="balanced"),
    ):
        model.fit(X, CLASS)
        np.testing.assert_allclose(model.influence(NEW, None).contribution.sum(axis=1), model.scores(NEW), atol=1e-8)


def test_single_precision():
    model = LSSVR(**FIXED, **SVM).fit(X.astype(np.float32), Y + 100)
    np.testing.assert_allclose(model.influence(NEW).score[:, 0], model.predict(NEW), rtol=1e-4)


def test_text_and_frame():
    pytest.importorskip("pandas")
    found = asked(made("tasks"), "tasks", top=3)
    frame = found.to_frame()
    assert frame.columns.tolist() == ["prediction", "row", "task", "target", "output", "contribution", "effect"]
    assert len(frame) == 4 * 3 * 3
    line = frame.iloc[10]  # prediction 1, first row, second class
    assert (line["prediction"], line["output"]) == (1, "mid")
    assert line["effect"] == found.effect[1, 0, 1]
    assert line["task"] == TASK[line["row"]]
    text = str(found)
    assert "from its own task a" in text
    assert str(found.rows[0, 0]) in text
    assert "more predictions" in str(asked(made("lspc"), "lspc", X=X))
    assert "value" in str(asked(made("lssvr"), "lssvr"))
    assert len(asked(made("lssvr, two outputs"), "lssvr", top=2).to_frame()) == 16


@pytest.mark.parametrize(
    "changes", [{"n_centers": 5}, {"norm": "coefficients"}, {"basis": "class"}, {"n_centers": 20, "solver": "sgd"}]
)
def test_models_without_a_coefficient_for_every_row(changes):
    with pytest.raises(ValueError, match="every training row"):
        made("lspc", **changes).influence(NEW)


def test_bad_input(monkeypatch):
    model = made("lspc")
    with pytest.raises(ValueError, match="top"):
        model.influence(NEW, top=0)
    with pytest.raises(ValueError, match="has no tasks"):
        _ = model.influence(NEW).own
    for solver in ({"prune": 0.5}, {"solver": "krylov"}):
        with pytest.raises(ValueError, match="solved exactly"):
            LSSVR(**FIXED, kernel="rbf", **solver).fit(X, Y).influence(NEW)
    with pytest.raises(ValueError, match="precomputed"):
        LSPC(alpha=0.1, kernel="precomputed", cv=None, calibration=None).fit(X @ X.T, CLASS).influence(NEW @ X.T)
    monkeypatch.setenv("LEASTWISE_MEMORY", "1000")
    with pytest.raises(MemoryError, match="24 rows"):
        model.influence(NEW)
