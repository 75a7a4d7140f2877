"""scikit-learn's own checks, for every estimator.

They know no tasks. The multi-task estimators are shown to them twice: with the tasks made from the rows (no expected
failures), and with a column for the task. The second has one expected failure, the check that asks for 83 percent of
right answers: of its two columns one is the task then, with a task for every row, and the other one tells less.
Regressors are held to less by their checks. With a task column, all fail the check that puts NaN into any column, as
missing values are possible in all columns but that one.

The multi-label estimators are shown one class a row by most checks. The one expected failure is of many labels: that
check takes ``classes_`` for an array of classes that all labels have, where scikit-learn's own estimators of several
outputs have a list with the classes of each. (These have no ``decision_function``, and so are not asked.)
"""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

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


class TasksFromRows:
    """The task of a row is told by how large its entries are on the whole."""

    def _calibrated_scores(self, X, tasks=None):
        return super()._calibrated_scores(X, _size(X))

    def fit(self, X, y, sample_weight=None, groups=None):
        return super().fit(X, y, sample_weight, groups, tasks=_size(X))


class LSPCOfSizes(TasksFromRows, MultiTaskLSPC):
    """MultiTaskLSPC as any classifier."""


class KLROfSizes(TasksFromRows, MultiTaskKernelLogisticRegression):
    """MultiTaskKernelLogisticRegression as any classifier."""


class SVCOfSizes(TasksFromRows, MultiTaskLSSVC):
    """MultiTaskLSSVC as any classifier."""


class SVROfSizes(TasksFromRows, MultiTaskLSSVR):
    """MultiTaskLSSVR as any regressor."""

    def _values(self, X, tasks=None):
        return super()._values(X, _size(X))


def _size(X):
    """0 or 1; any value where X is no table of numbers, which the estimator itself has to find out."""
    try:
        rows = X if hasattr(X, "sum") else np.asarray(X)
        total = np.asarray(rows.sum(axis=1), dtype=float).ravel()
        return [int(value > 1) for value in total]
    except (TypeError, ValueError):
        return 0


ESTIMATORS = [
    LSPC(),
    KernelLogisticRegression(scale="standard", kernel="rbf", metric=None),  # LSPC() has the choice of all three
    KernelLogisticRegression(0.5, 0.01, n_centers=20, kernel="rbf", scale="standard", cv=3, random_state=0),
    LSPC(norm="coefficients", bias="shared"),
    LSPC(0.5, 0.01, bias="shared", solver="krylov", tol=1e-10, random_state=0),
    LSPC(basis="class", n_centers=20, random_state=0),
    LSPC(norm="coefficients", basis="class", calibration=None, cv=2, scoring="accuracy"),  # the paper
    LSPCOfSizes(),
    LSPCOfSizes(similarity="learned", random_state=0),
    LSPCOfSizes(n_centers=20, random_state=0),
    KLROfSizes(0.5, 0.01, 0.5, cv=2),
    LSSVR(),
    LSSVR(0.5, 0.01, n_centers=20, cv=3, random_state=0),
    LSSVR(0.5, 0.01, kernel="rbf", solver="krylov", tol=1e-10, random_state=0),
    LSSVC(),
    LSSVC(0.5, 0.01, kernel="rbf+linear", calibration="temperature"),
    LSSVC(0.5, 0.01, solver="krylov", random_state=0),
    SVROfSizes(0.5, 0.01, 0.5, bias="auto"),
    SVROfSizes(kernel="linear", bias="shared"),
    SVROfSizes(0.5, 0.01, 0.5, n_centers=20, bias=0.3, random_state=0),
    SVCOfSizes(0.5, 0.01, 0.5, bias="auto"),
    SVCOfSizes(0.5, 0.01, 0.5, kernel="linear", bias="shared"),
]


COLUMN = [
    MultiTaskLSPC(task_column=1),
    MultiTaskLSPC(task_column=-1, n_centers=20, norm="coefficients", bias="shared", random_state=0),
    MultiTaskKernelLogisticRegression(0.5, 0.01, 0.5, task_column=1, cv=2),
]
COLUMN_OF_LSSVM = [
    MultiTaskLSSVC(0.5, 0.001, 0.5, task_column=1),
    MultiTaskLSSVR(0.5, 0.01, 0.5, task_column=1),
    MultiTaskLSSVR(0.5, 0.01, 0.5, task_column=-1, n_centers=20, bias=0.3, random_state=0),
]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def needs_tasks(estimator):
    return {"check_estimators_pickle": "it makes tasks missing"}


def weak(estimator):
    return {"check_classifiers_train": "one of the two columns is the task", **needs_tasks(estimator)}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(COLUMN_OF_LSSVM, expected_failed_checks=needs_tasks)
def test_scikit_learn_checks_of_machines_with_a_task_column(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(COLUMN, expected_failed_checks=weak)
def test_scikit_learn_checks_with_a_task_column(estimator, check):
    check(estimator)


#: Weights of 2 and rows that are there twice are two things for it.
COUNTING = [LSSVR(0.5, 0.01, kernel="rbf", prune=0.3)]


def counts_rows(estimator):
    reason = "copies are pruned one by one"
    return dict.fromkeys([f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")], reason)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(COUNTING, expected_failed_checks=counts_rows)
def test_scikit_learn_checks_of_models_that_count_rows(estimator, check):
    check(estimator)


LABELS = [
    MultiLabelLSPC(),
    MultiLabelLSPC(0.5, 0.01, 0.3, similarity="correlation", norm="coefficients", bias="shared"),
    MultiLabelLSPC(0.5, 0.01, [0, 0.5], similarity="shared", n_centers=20, random_state=0),
    MultiLabelLSPC(0.5, 0.01, 0.3, cv=5, scoring="f1_macro", calibration="isotonic", random_state=0),
]


def lists_classes(estimator):
    return {"check_classifier_multioutput": "classes_ is a list with the classes of each label"}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(LABELS, expected_failed_checks=lists_classes)
def test_scikit_learn_checks_of_many_labels(estimator, check):
    check(estimator)
