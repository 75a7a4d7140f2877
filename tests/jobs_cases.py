"""Models and data of the tests of jobs, and what they are compared by."""

import os
import signal
import threading
import time
from dataclasses import fields, is_dataclass

import numpy as np
from conftest import PLAIN, blobs
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate

import leastwise as lw
from leastwise.datasets import make_related_tasks, make_rotated_labels

TASKS = make_related_tasks(n_tasks=4, n_rows=12, random_state=0)
LABELS = make_rotated_labels(n_labels=3, n_rows=40, random_state=0)
X, Y = blobs(60)
ROWS, OF_TASKS, OF_LABELS = (X, Y), (TASKS.X, TASKS.y), (LABELS.X, LABELS.Y)
CASES = {
    "lspc": (lw.LSPC(**PLAIN, random_state=0), ROWS),
    "lspc-chosen": (lw.LSPC(random_state=0), ROWS),
    "lspc-weights": (lw.LSPC(norm="coefficients", basis="class", n_centers=9, cv=3, random_state=0), ROWS),
    "lspc-some": (lw.LSPC(search_rows=40, random_state=0), ROWS),
    "lssvc": (lw.LSSVC(random_state=0), ROWS),
    "lssvr": (lw.LSSVR(sigma=[0.5, 1.0, 2.0]), (X, X[:, 0] ** 2)),
    "klr": (lw.KernelLogisticRegression(cv=3, random_state=0), ROWS),
    "tasks": (lw.MultiTaskLSPC(random_state=0), OF_TASKS),
    "tasks-every": (lw.MultiTaskLSPC(sharing=[0.0, 0.3, 1.0], random_state=0), OF_TASKS),
    "tasks-learned": (lw.MultiTaskLSPC(similarity="learned", random_state=0), OF_TASKS),
    "tasks-arrow": (lw.MultiTaskLSPC(n_centers=8, random_state=0), OF_TASKS),
    "tasks-lssvc": (lw.MultiTaskLSSVC(random_state=0), OF_TASKS),
    "tasks-lssvr": (lw.MultiTaskLSSVR(sigma=[0.5, 2.0]), (TASKS.X, TASKS.X[:, 0])),
    "tasks-klr": (lw.MultiTaskKernelLogisticRegression(cv=3, alpha=[0.01, 0.1], random_state=0), OF_TASKS),
    "labels": (lw.MultiLabelLSPC(random_state=0), OF_LABELS),
    "labels-part": (lw.MultiLabelLSPC(cv=3, random_state=0), (X, np.where((X > 2) & [True, False], np.nan, X > 0))),
}


def fitted(model, data, n_jobs=None):
    more = {"tasks": TASKS.task} if "task_column" in model.get_params() else {}
    return clone(model).set_params(n_jobs=n_jobs).fit(*data, **more)


def assert_same(one, other, where="model"):
    """Every number that was learned is the same, to the last bit."""
    assert type(one) is type(other), where
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other, err_msg=where)
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for name in one:
            assert_same(one[name], other[name], f"{where}[{name}]")
    elif is_dataclass(one):
        for part in fields(one):
            assert_same(getattr(one, part.name), getattr(other, part.name), f"{where}.{part.name}")
    elif isinstance(one, float):
        assert one == other or (one != one and other != other), where


def assert_same_model(one, other):
    names = [name for name in vars(one) if name.endswith("_")]
    assert names == [name for name in vars(other) if name.endswith("_")]
    for name in names:
        assert_same(getattr(one, name), getattr(other, name), name)


def spying(path):
    """A scorer that writes where it runs, and how many threads linear algebra has there."""

    def scorer(model, X, y):
        from leastwise.utils.resources import blas_threads

        with open(path, "a") as file:
            file.write(f"{os.getpid()} {threading.get_ident()} {blas_threads()}\n")
        time.sleep(0.01)  # so that no job does all
        return float(np.mean(model.predict(X) == y))

    return scorer


def seen_by(path):
    lines = [tuple(map(int, line.split())) for line in path.read_text().splitlines()]
    path.unlink()
    return lines


def deadly(path):
    """A scorer whose process is killed, once."""

    def scorer(model, X, y):
        if not path.exists():
            path.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return float(np.mean(model.predict(X) == y))

    return scorer


def with_column():
    """Rows whose last column names the task."""
    return lw.MultiTaskLSPC([0.5, 1.0], [0.01, 0.1], [0.0, 0.5], task_column=-1), np.column_stack(
        [TASKS.X, TASKS.task]
    )


def loops():
    """Results of scikit-learn's loops over four estimators."""
    grid = {"alpha": [0.01, 0.1]}
    search = GridSearchCV(lw.LSPC([0.5, 1.0]), grid, cv=2).fit(X, Y)
    yield from (search.cv_results_["mean_test_score"], search.best_estimator_.heldout_proba_)
    tasks, rows = with_column()
    yield from (cross_val_predict(tasks, rows, TASKS.y, cv=2, method="predict_proba"),)
    labels = cross_validate(lw.MultiLabelLSPC([0.5, 1.0], [0.01, 0.1], 0.3), LABELS.X, LABELS.Y, cv=2)
    values = cross_validate(lw.LSSVR([0.5, 1.0], n_jobs=2), X, X[:, 0] ** 2, cv=2)
    yield from (labels["test_score"], values["test_score"])
