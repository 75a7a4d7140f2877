"""A search that is told step by step, broken off, and taken up again."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

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
from leastwise.datasets import make_related_tasks, make_rotated_labels
from leastwise.model_selection.checkpoint import checkpointing


class Memory:
    """Keeps what it is told; may stop a search, as Ctrl-C does."""

    def __init__(self, stop_after=None):
        self.entries, self.steps, self.recalled, self.stop_after = {}, [], [], stop_after

    def load(self, step):
        self.recalled += [step] if step in self.entries else []
        return self.entries.get(step)

    def save(self, step, entry):
        self.steps.append(step)
        self.entries[step] = entry
        if self.stop_after == len(self.steps):
            raise KeyboardInterrupt


def iris():
    X, y = load_iris(return_X_y=True)
    return LSPC(), (X, y), {}


def logistic():
    X, y = load_iris(return_X_y=True)
    return KernelLogisticRegression(sigma=[0.5, 1.0, 2.0], cv=3, random_state=0), (X[::2], y[::2]), {}


def machine():
    X, y = load_iris(return_X_y=True)
    return LSSVC(), (X[::2], y[::2]), {}


def quantities():
    X, _ = load_iris(return_X_y=True)
    return LSSVR(), (X[:, :3], X[:, 3]), {}


def related(kind, **params):
    data = make_related_tasks(n_tasks=4, n_rows=12, random_state=0)
    return kind(**params), (data.X, data.y), {"tasks": data.task}


def labels():
    data = make_rotated_labels(n_labels=4, n_rows=60, random_state=0)
    return MultiLabelLSPC(), (data.X, data.Y), {}


def unknown_labels():
    model, (X, Y), more = labels()
    Y = np.where(np.random.default_rng(0).random(Y.shape) < 0.2, np.nan, Y)
    return model, (X, Y), more


EVERY = {
    "LSPC": iris,
    "KernelLogisticRegression": logistic,
    "LSSVC": machine,
    "LSSVR": quantities,
    "MultiTaskLSPC": lambda: related(MultiTaskLSPC),
    "MultiTaskLSSVC": lambda: related(MultiTaskLSSVC),
    "MultiTaskLSSVR": lambda: related(MultiTaskLSSVR),
    "MultiTaskKernelLogisticRegression": lambda: related(
        MultiTaskKernelLogisticRegression, sigma=[1.0, 2.0], sharing=[0.0, 0.5, 1.0], cv=3, random_state=0
    ),
    "MultiLabelLSPC": labels,
    "MultiLabelLSPC, unknown labels": unknown_labels,
}


def heldout(model):
    return model.heldout_decision_ if hasattr(model, "heldout_decision_") else model.heldout_prediction_


@pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)
def test_a_resumed_search_equals_an_unbroken_one(make):
    """Interrupted at the first, a middle and the last step: every number of the search and the model is the same."""
    model, data, more = make()
    model.fit(*data, **more)
    whole = Memory()
    with checkpointing(whole):
        make()[0].fit(*data, **more)
    for stop_after in sorted({1, len(whole.steps) // 2, len(whole.steps)}):
        memory = Memory(stop_after)
        broken = make()[0]
        with pytest.raises(KeyboardInterrupt), checkpointing(memory):
            broken.fit(*data, **more)
        assert not hasattr(broken, "sigma_")
        memory.stop_after, done = None, list(memory.steps)
        again = make()[0]
        with checkpointing(memory):
            again.fit(*data, **more)
        assert set(done) <= set(memory.recalled)
        assert memory.steps == whole.steps
        assert (again.sigma_, again.alpha_) == (model.sigma_, model.alpha_)
        for name, column in model.cv_results_.items():
            np.testing.assert_array_equal(again.cv_results_[name], column)
        np.testing.assert_array_equal(heldout(again), heldout(model))
        np.testing.assert_array_equal(again.predict(data[0], **more), model.predict(data[0], **more))


def test_a_step_is_recognised_by_its_problem_not_by_its_number():
    """Steps of other rows, weights, folds, kernels or scorings are other steps, with equal numbers and sigmas."""
    X, y = load_iris(return_X_y=True)
    fixed = {"sigma": [0.5, 1.0], "alpha": [0.1], "scale": None, "metric": None, "kernel": "rbf"}
    memory = Memory()
    with checkpointing(memory):
        LSPC(**fixed).fit(X, y)
    assert len(memory.steps) == 2
    assert not memory.recalled
    moved, weights = X.copy(), np.ones(150)
    moved[0, 0] += 1e-9
    weights[0] = 1.5
    for change, rows, more in [
        ({}, moved, {}),
        ({}, X, {"sample_weight": weights}),
        ({"cv": 5}, X, {}),
        ({"kernel": "laplace"}, X, {}),
        ({"scoring": "brier"}, X, {}),
        ({"norm": "coefficients"}, X, {}),
        ({"alpha": [0.2]}, X, {}),
    ]:
        with checkpointing(memory):
            LSPC(**{**fixed, **change}).fit(rows, y, **more)
        assert not memory.recalled, change
    with checkpointing(memory):  # the order of the steps makes no difference
        LSPC(**{**fixed, "sigma": [1.0]}).fit(X, y)
    assert [step.sigma for step in memory.recalled] == [1.0]


def few_rows():
    X, y = load_iris(return_X_y=True)
    return LSPC(solver="krylov", search_rows=60, random_state=0), (X, y), {}


def few_tasks():
    data = make_related_tasks(n_tasks=12, n_rows=10, random_state=0)
    return MultiTaskLSPC(search_rows=40, random_state=0), (data.X, data.y), {"tasks": data.task}


def few_rows_of_labels():
    model, data, more = labels()
    return model.set_params(solver="cg", search_rows=30, random_state=0), data, more


@pytest.mark.parametrize("make", [few_rows, few_tasks, few_rows_of_labels])
def test_a_diary_keeps_what_it_was_told(make):
    """Alphas of a search on some rows are converted to all rows afterwards: for the model, not in the diary."""
    memory = Memory()
    with checkpointing(memory):
        model = make()[0].fit(*make()[1], **make()[2])
    with checkpointing(memory):
        again = make()[0].fit(*make()[1], **make()[2])
    assert set(memory.recalled) == set(memory.steps)
    np.testing.assert_array_equal(again.cv_results_["param_alpha"], model.cv_results_["param_alpha"])
    np.testing.assert_array_equal(again.cv_results_["rank_test_score"], model.cv_results_["rank_test_score"])


def test_steps_are_told_in_order_with_what_they_look_at():
    model, data, _ = iris()
    memory = Memory()
    with checkpointing(memory):
        model.fit(*data)
    assert [step.number for step in memory.steps] == list(range(len(memory.steps)))
    assert all(step.n_rows == 150 and step.sharing is None for step in memory.steps)
    assert {step.sigma for step in memory.steps} == set(model.cv_results_["param_sigma"])
    assert sum(len(entry.seen) for entry in memory.entries.values()) == len(model.cv_results_["param_sigma"])


def test_nobody_is_told_outside():
    memory = Memory()
    with checkpointing(memory):
        pass
    iris()[0].fit(*iris()[1])
    assert not memory.steps
