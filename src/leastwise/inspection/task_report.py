"""Comparison of independent, pooled and multi-task models by task, and which tasks help which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from leastwise.estimators.multi_task import MultiTaskLSPC
from leastwise.fitting.dataset import Dataset, read_dataset
from leastwise.inspection.task_text import ALL, ReportText
from leastwise.metrics.calibration import equal_mass_bins, expected_calibration_error
from leastwise.metrics.probabilities import class_log_losses, task_auc, task_log_loss
from leastwise.metrics.reliability import bin_count
from leastwise.problem.targets.classes import check_weights
from leastwise.solvers.influence import TaskDeletions, bordered_inverse
from leastwise.solvers.solve_tasks import DualForm, rows_by_task
from leastwise.solvers.task_evaluators import CoupledEvaluator
from leastwise.utils.optional import frames

Array = np.ndarray

#: The three models of a report, with their changes to the settings. Independent and pooled models do not depend on
#: the similarities, which need not be computed for them.
VERSIONS: dict[str, dict[str, Any]] = {
    "independent": {"sharing": 0.0, "similarity": "shared"},
    "pooled": {"sharing": 1.0, "similarity": "shared"},
    "multi_task": {},
}

#: ``helps`` takes memory quadratic and time cubic in the number of rows.
HELP_ROWS, HELP_TASKS = 3000, 200
#: Largest relative rounding error of the inverse in ``helps``.
DIGITS = 1e-4


@dataclass(frozen=True, eq=False)
class TaskReport:
    """Comparison of independent, pooled and multi-task models by task. Made by :func:`task_report`.

    ``print(report)`` shows the main columns, sorted by gain, with a legend and a conclusion; notebooks show the same
    as a table.

    Attributes
    ----------
    table : dict of str to ndarray of shape (T + 1,)
        One entry for every task, in the order of ``tasks``, and a last one for all rows together. The columns:

        ``task``
            The id, "all tasks" in the last line.
        ``rows``
            Number of rows. Rows of weight zero are left out, and tasks that have no others.
        ``share_<class>``
            Share of each class.
        ``log_loss_<version>``, ``auc_<version>``, ``calibration_<version>``
            Of held-out predictions, for the versions ``independent``, ``pooled`` and ``multi_task``. The AUC is NaN
            where all rows are of one class, the expected calibration error where there are fewer than 20.
        ``calibration_noise``
            The mean calibration error of a perfectly calibrated model with the confidences of the multi-task model,
            on the same number of rows. Errors up to about twice this value are not significant.
        ``gain_over_independent``, ``gain_over_pooled``
            Log-loss of the other version minus that of the multi-task model: positive is better.
        ``gain_over_independent_se``, ``gain_over_pooled_se``
            Standard errors of the gains; NaN for a single row.
    helps : ndarray of shape (T, T) or None
        In row t and column u, by how much the mean squared error of task t's held-out scores would grow without the
        rows of task u: positive where u helps t. See the notes of :func:`task_report`.
    helps_note : str or None
        Why ``helps`` is None.
    models : dict of str to MultiTaskLSPC
        The three fitted models.
    """

    table: dict[str, Array]
    helps: Array | None
    helps_note: str | None
    models: dict[str, MultiTaskLSPC]

    @property
    def tasks(self) -> Array:
        """The ids of the tasks, of shape (T,)."""
        return self.models["multi_task"].tasks_

    @property
    def classes(self) -> Array:
        """The classes, of shape (c,)."""
        return self.models["multi_task"].classes_

    @property
    def similarity(self) -> Array:
        """Similarities of the tasks in the multi-task model, of shape (T, T)."""
        return self.models["multi_task"].similarity_

    def to_frame(self) -> Any:
        """The whole table as a pandas frame."""
        return frames("pandas").DataFrame(self.table)

    def order(self) -> Array:
        """Positions of the tasks from the largest gain over independent models to the smallest."""
        # Values that differ only by rounding keep their order; NaN comes last.
        return np.argsort(-self.table["gain_over_independent"][:-1].round(12), kind="stable")

    def __str__(self) -> str:
        return self._text().text()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self._text().html()

    def _text(self) -> ReportText:
        return ReportText(self.table, self.models, self.order(), self.helps_note)


# ------------------------------------------------------------------- report


def task_report(
    X: Any,
    y: Any,
    tasks: Any = None,
    *,
    model: MultiTaskLSPC | None = None,
    sample_weight: Any = None,
    groups: Any = None,
) -> TaskReport:
    """Compare independent, pooled and multi-task models by held-out predictions, task by task.

    Parameters
    ----------
    X : array-like, frame or sparse matrix of shape (n, n_features)
        Rows, with the task column if ``model`` has one.
    y : array-like of shape (n,)
        Classes.
    tasks : array-like of shape (n,), optional
        The task of every row, if X has no column of tasks.
    model : MultiTaskLSPC, optional
        The settings; it is not changed. By default ``MultiTaskLSPC(random_state=0)``.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows in training, log-loss, AUC and ``helps``. The calibration error is not weighted; rows of
        weight zero are left out.
    groups : array-like of shape (n,), optional
        Rows of one group are held out together.

    Returns
    -------
    TaskReport

    Notes
    -----
    Three models are fitted with the same settings except for the sharing: 0 (independent), 1 (pooled) and as given.
    Each chooses its sigma, alpha and calibration on the held-out scores that are reported here, so all figures are
    slightly optimistic, a little more so for the multi-task model, which chooses more (sharing, and learned
    similarities). Gains of one standard error are not significant.

    ``helps`` deletes the tasks from training one at a time, at the sigma, ridge, sharing and similarities of the
    multi-task model, in closed form. With ``M = (H + rho)^-1``, ``A = M Z`` and the rows u of a task deleted,::

        M' = M - M_:u (M_uu)^-1 M_u:,    A' = A - M_:u (M_uu)^-1 A_u,    z_i - F_i = A'_i / M'_ii

    are the leave-one-out errors of the raw scores F (whole groups are left out, if there are any). They are squared,
    summed over classes and averaged over the rows of each task. On the diagonal all rows of a task are held out at
    once: the value of its own rows. This needs a coefficient for every row (``norm="function"`` without
    ``n_centers``), and at most 3,000 rows and 200 tasks.

    Examples
    --------
    >>> from leastwise.datasets import make_related_tasks
    >>> from leastwise import task_report
    >>> data = make_related_tasks(4, 20, random_state=0)
    >>> report = task_report(data.X, data.y, data.task)
    >>> report.table["task"].tolist()
    [0, 1, 2, 3, 'all tasks']
    >>> report.helps.shape
    (4, 4)
    """
    model = _checked(model)
    models = {
        name: clone(model).set_params(**changes).fit(X, y, sample_weight=sample_weight, groups=groups, tasks=tasks)
        for name, changes in VERSIONS.items()
    }
    best = models["multi_task"]
    # helps holds out single observations or groups and ignores the cv of the model.
    blank = clone(best).set_params(cv="loo")
    data = read_dataset(blank._spec(), blank, X, y, sample_weight, groups, best.kernel_, tasks)
    w = check_weights(sample_weight, None, np.empty(data.X.shape[0]))[data.used]
    proba = {name: m.heldout_proba_[data.used].astype(float).clip(0, 1) for name, m in models.items()}
    table = _table(_HeldOutRows(data, w, proba), best.tasks_)
    return TaskReport(table, *_helps(best, blank, data), models)


def _checked(model: Any) -> MultiTaskLSPC:
    """The settings; an error if they cannot be compared."""
    model = MultiTaskLSPC(random_state=0) if model is None else model
    if not isinstance(model, MultiTaskLSPC):
        message = f"model is of type {type(model).__name__} and must be a MultiTaskLSPC"
        if isinstance(model, Pipeline):
            message += ": give that, and X after the earlier steps of the pipeline, e.g. pipe[:-1].transform(X)"
        raise TypeError(f"{message}.")
    if model.cv is None:
        raise ValueError(
            "model has cv=None and so no held-out predictions to compare: use cv='loo' or a number of folds."
        )
    return model


@dataclass(frozen=True, eq=False)
class _HeldOutRows:
    """Rows with their weights w and their held-out probabilities in each version; every task has rows."""

    data: Dataset
    w: Array
    proba: dict[str, Array]

    @property
    def y(self) -> Array:
        return self.data.rows.y

    @property
    def task(self) -> Array:
        assert self.data.rows.task is not None
        return self.data.rows.task

    def metric(self, function: Callable, P: Array) -> Array:
        """A task metric for every task and, last, for all rows."""
        options = {"labels": np.arange(P.shape[1]), "sample_weight": self.w}
        _, values = function(self.y, P, self.task, average=None, **options)
        return np.append(values, function(self.y, P, self.task, average="pooled", **options))

    def by_rows(self, function: Callable[[Array, Array], float], P: Array) -> Array:
        """A function of classes and probabilities, for every task and, last, for all rows."""
        values = [function(self.y[rows], P[rows]) for _, rows in rows_by_task(self.task)]
        return np.array([*values, function(self.y, P)])

    def sums(self, values: Array) -> Array:
        """Sums of values over the rows of every task and, last, over all rows."""
        return np.append(np.bincount(self.task, values), values.sum())

    def losses(self, version: str) -> Array:
        return class_log_losses(self.proba[version], self.y)


def _table(held: _HeldOutRows, ids: Array) -> dict[str, Array]:
    table: dict[str, Array] = {"task": np.empty(len(ids) + 1, dtype=object)}
    table["task"][:] = [*ids.tolist(), ALL]
    table["rows"] = held.sums(np.ones(len(held.y))).astype(int)
    mass = held.sums(held.w)
    for code, name in enumerate(held.data.classes):
        table[f"share_{name}"] = held.sums(held.w * (held.y == code)) / mass
    for metric, function in (("log_loss", task_log_loss), ("auc", task_auc)):
        for version, P in held.proba.items():
            table[f"{metric}_{version}"] = held.metric(function, P)
    for version, P in held.proba.items():
        table[f"calibration_{version}"] = held.by_rows(_calibration, P)
    table["calibration_noise"] = held.by_rows(_calibration_noise, held.proba["multi_task"])
    for version in ("independent", "pooled"):
        gain, error = _gain(held, version)
        table[f"gain_over_{version}"], table[f"gain_over_{version}_se"] = gain, error
    return table


def _gain(held: _HeldOutRows, version: str) -> tuple[Array, Array]:
    """Mean loss of a version minus that of the multi-task model, and the standard error of the difference."""
    w, mass = held.w, held.sums(held.w)
    difference = held.losses(version) - held.losses("multi_task")
    gain = held.sums(w * difference) / mass
    within = held.sums((w * (difference - gain[held.task])) ** 2)
    within[-1] = np.sum((w * (difference - gain[-1])) ** 2)  # around the mean of all rows, not of each task
    n = held.sums(np.ones(len(w)))
    bessel = np.where(n > 1, n / np.maximum(n - 1, 1), np.nan)  # undefined for a single row
    return gain, np.sqrt(bessel * within) / mass


def _calibration(y: Array, P: Array) -> float:
    """The expected calibration error; NaN where there are fewer than 20 rows."""
    if bin_count(len(y)) < 2:
        return float("nan")
    return expected_calibration_error(y, P, classes=np.arange(P.shape[1]), n_bins=bin_count(len(y)))


def _calibration_noise(y: Array, P: Array) -> float:
    """The mean of that error if every row is correct with probability equal to its confidence.

    The sum over a bin of (confidence - right) then has mean zero and variance sum p (1 - p), and its absolute value
    approximately the mean sqrt(2 / pi) times the square root of that.
    """
    n, p = len(P), P.max(axis=1)
    if bin_count(n) < 2:
        return float("nan")
    bins = equal_mass_bins(p, bin_count(n))
    return float(np.sqrt(2 / np.pi * np.bincount(bins, p * (1 - p))).sum() / n)


# ------------------------------------------------------- which tasks help which


def _helps(model: MultiTaskLSPC, blank: MultiTaskLSPC, data: Dataset) -> tuple[Array | None, str | None]:
    """The matrix, or None and the reason."""
    n, T = len(data.rows), len(model.tasks_)
    if T < 2:
        return None, "there is only one task."
    if not isinstance(model.form_, DualForm):
        return None, "the model has no coefficient for every row: use norm='function', solver='dual', no n_centers."
    if n > HELP_ROWS:
        return None, f"it is limited to {HELP_ROWS} rows, and there are {n} rows."
    if T > HELP_TASKS:
        return None, f"it is limited to {HELP_TASKS} tasks, and there are {T} tasks."
    spec = blank._spec()
    settings = spec.settings(model.kernel_, data.targets, data.rows)
    evaluator = CoupledEvaluator(data.rows, spec.basis_of(data.rows, data.seed, settings), settings, model.relation_)
    evaluator = evaluator.with_sharing(model.sharing_)
    root, ridge = evaluator.root.astype(float), model.alpha_ / evaluator.unit * n + model.jitter_
    H = evaluator.kernel(model.sigma_).astype(float) * root * root[:, None]  # always in double precision
    if np.finfo(float).eps * np.trace(H) > DIGITS * ridge:
        return None, f"the ridge, alpha_={model.alpha_:.3g}, is too small for double precision."
    return _deletions(evaluator, H, root, ridge).matrix(), None


def _deletions(evaluator: CoupledEvaluator, H: Array, root: Array, ridge: float) -> TaskDeletions:
    """The coupled system with tasks deleted; H is overwritten."""
    M = bordered_inverse(H, ridge, root, evaluator.settings.bias).M
    A, mass, count = M @ evaluator.Z.astype(float), np.bincount(evaluator.task, root**2), evaluator.rows.split_count
    return TaskDeletions(M, A, evaluator.task, mass, evaluator.folds, ridge, count)
