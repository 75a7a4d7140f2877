"""A search that is told step by step, broken off, and taken up again."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from leastwise import LSPC, LSSVR, KernelLogisticRegression, MultiLabelLSPC, MultiTaskLSPC
from leastwise.datasets import make_related_tasks, make_rotated_labels
from leastwise.model_selection.search import checkpointing


class Memory:
    """Keeps what it is told; may stop a search, as Ctrl-C does."""

    def __init__(self, stop_after=None):
        self.entries, self.steps, self.recalled, self.stop_after = {}, [], 0, stop_after

    def load(self, step):
        self.recalled += step in self.entries
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
    return KernelLogisticRegression(sigma=[0.5, 1.0, 2.0], cv=3, random_state=0), (X, y), {}


def quantities():
    X, _ = load_iris(return_X_y=True)
    return LSSVR(), (X[:, :3], X[:, 3]), {}


def tasks():
    data = make_related_tasks(n_tasks=4, n_rows=20, random_state=0)
    return MultiTaskLSPC(), (data.X, data.y), {"tasks": data.task}


def labels():
    data = make_rotated_labels(n_labels=4, n_rows=60, random_state=0)
    return MultiLabelLSPC(), (data.X, data.Y), {}


@pytest.mark.parametrize("make", [iris, logistic, quantities, tasks, labels])
def test_a_search_taken_up_again_ends_where_it_would_have(make):
    model, data, more = make()
    model.fit(*data, **more)
    memory = Memory(stop_after=4)
    broken = make()[0]
    with pytest.raises(KeyboardInterrupt), checkpointing(memory):
        broken.fit(*data, **more)
    assert not hasattr(broken, "sigma_")
    memory.stop_after = None
    again = make()[0]
    with checkpointing(memory):
        again.fit(*data, **more)
    assert memory.recalled == 4
    assert (again.sigma_, again.alpha_) == (model.sigma_, model.alpha_)
    for name in ("param_sigma", "param_alpha", "mean_test_score"):
        np.testing.assert_array_equal(again.cv_results_[name], model.cv_results_[name])
    np.testing.assert_array_equal(again.predict(*data[:1], **more), model.predict(*data[:1], **more))


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
    assert memory.recalled == len(memory.steps)
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
