"""What sharing between tasks brings, task by task, and which tasks help which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from leastwise.estimators._checks import check_weights
from leastwise.estimators._model import Training
from leastwise.estimators.multi_task import MultiTaskLSPC
from leastwise.inspection.task_text import ALL, ReportText
from leastwise.metrics.calibration import equal_count, expected_calibration_error
from leastwise.metrics.losses import class_log_losses
from leastwise.metrics.probabilities import task_auc, task_log_loss
from leastwise.solvers.solve_tasks import DualForm, rows_by_task
from leastwise.solvers.task_deletion import TaskDeletions, bordered_inverse
from leastwise.solvers.task_evaluators import CoupledTrial
from leastwise.utils.optional import frames

Array = np.ndarray

#: The three models of a report, with what each changes in the settings. Where tasks are alone or all one, how alike
#: they are makes no difference: it need not be computed.
VERSIONS: dict[str, dict[str, Any]] = {
    "independent": {"sharing": 0.0, "similarity": "shared"},
    "pooled": {"sharing": 1.0, "similarity": "shared"},
    "multi_task": {},
}

#: A calibration error is the mean over bins of about so many rows, up to so many bins, and needs two of them.
BIN_ROWS, MAX_BINS = 10, 15
#: Which tasks help which costs time and memory of all rows squared and cubed.
HELP_ROWS, HELP_TASKS = 3000, 200
#: It goes through an inverse, of which so small a share may be rounding.
DIGITS = 1e-4


@dataclass(frozen=True, eq=False)
class TaskReport:
    """What sharing brings, task by task. Made by :func:`task_report`.

    ``print(report)`` shows the most important columns, sorted by gain, with a legend and a verdict; notebooks show
    the same as a table.

    Attributes
    ----------
    table : dict of str to ndarray of shape (T + 1,)
        One entry for every task, in the order of ``tasks``, and a last one for all rows together. The columns:

        ``task``
            The id, "all tasks" in the last line.
        ``rows``
            Number of rows. Those of weight zero do not count, nor do tasks that have no others.
        ``share_<class>``
            Share of each class.
        ``log_loss_<version>``, ``auc_<version>``, ``calibration_<version>``
            Of held-out predictions, for the versions ``independent``, ``pooled`` and ``multi_task``. The AUC is NaN
            where all rows are of one class, the expected calibration error where there are fewer than 20.
        ``calibration_noise``
            The calibration error that a perfectly calibrated model with the confidences of the multi-task one would
            show on so few rows, on average. Errors up to about twice that say nothing.
        ``gain_over_independent``, ``gain_over_pooled``
            Log-loss of the other version minus that of the multi-task model: positive is better.
        ``gain_over_independent_se``, ``gain_over_pooled_se``
            Standard errors of the gains; NaN for a single row.
    helps : ndarray of shape (T, T) or None
        In row t and column u, by how much the mean squared error of task t's held-out scores would grow without the
        rows of task u: positive where u helps t. See the notes of :func:`task_report`.
    helps_note : str or None
        Why there is no ``helps``.
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
        """The classes."""
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
        # Two values that differ by rounding only are the same, and keep their order; NaN comes last.
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
        The task of every row, where X does not hold them.
    model : MultiTaskLSPC, optional
        The settings; it is not changed. By default ``MultiTaskLSPC(random_state=0)``.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows in training, log-loss, AUC and ``helps``. A calibration error counts every row of a weight
        above zero once.
    groups : array-like of shape (n,), optional
        Rows of one group are held out together.

    Returns
    -------
    TaskReport

    Notes
    -----
    Three models are fitted with the same settings but for the sharing: 0 (independent), 1 (pooled) and as given. Each
    chooses its own sigma and alpha, and its own calibration, on the held-out scores that it is judged by here. So all
    three look a little better than they are, the multi-task model, which has more to choose (sharing, and learned
    similarities), a little more so. Gains of one standard error are no news.

    ``helps`` takes the tasks out of training one by one, at sigma, ridge, sharing and similarities of the multi-task
    model, all in closed form. With ``M = (H + rho)^-1``, ``A = M Z`` and the rows u of a task deleted,::

        M' = M - M_:u (M_uu)^-1 M_u:,    A' = A - M_:u (M_uu)^-1 A_u,    z_i - F_i = A'_i / M'_ii

    are the errors of the raw scores F, observations left out one at a time (whole groups, if there are any).
    They are squared, summed over classes and averaged over the rows of each task. On the diagonal all rows of a task
    are held out at once: what its own rows are worth. This needs a coefficient for every row (``norm="function"``
    without ``n_centers``), 3,000 rows and 200 tasks at most.

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
    # Single observations, or whole groups, are held out for what is computed here, whatever the model's cv.
    blank = clone(best).set_params(cv="loo")
    data = blank._training(X, y, sample_weight, groups, best.kernel_, tasks)
    w = check_weights(sample_weight, None, np.empty(data.X.shape[0]))[data.used]
    proba = {name: m.heldout_proba_[data.used].astype(float).clip(0, 1) for name, m in models.items()}
    table = _table(_Judged(data, w, proba), best.tasks_)
    return TaskReport(table, *_helps(best, blank, data), models)


def _checked(model: Any) -> MultiTaskLSPC:
    """The settings, checked."""
    model = MultiTaskLSPC(random_state=0) if model is None else model
    if not isinstance(model, MultiTaskLSPC):
        message = f"model is of type {type(model).__name__} and must be a MultiTaskLSPC"
        if isinstance(model, Pipeline):
            message += (
                ": give that, and X as it comes out of the pipeline's earlier steps, e.g. pipe[:-1].transform(X)"
            )
        raise TypeError(f"{message}.")
    if model.cv is None:
        raise ValueError("model has cv=None, which holds nothing out to judge by: use cv='loo' or a number of folds.")
    return model


@dataclass(frozen=True, eq=False)
class _Judged:
    """Rows with their held-out probabilities under each version, and their weights w; every task has some."""

    data: Training
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
        """Of every task and, last, of all rows."""
        options = {"labels": np.arange(P.shape[1]), "sample_weight": self.w}
        _, values = function(self.y, P, self.task, average=None, **options)
        return np.append(values, function(self.y, P, self.task, average="pooled", **options))

    def by_rows(self, function: Callable[[Array, Array], float], P: Array) -> Array:
        """A function of classes and probabilities, for every task and, last, for all rows."""
        values = [function(self.y[rows], P[rows]) for _, rows in rows_by_task(self.task)]
        return np.array([*values, function(self.y, P)])

    def sums(self, values: Array) -> Array:
        """Of values of the rows, for every task and, last, for all."""
        return np.append(np.bincount(self.task, values), values.sum())

    def losses(self, version: str) -> Array:
        return class_log_losses(self.proba[version], self.y)


def _table(judged: _Judged, ids: Array) -> dict[str, Array]:
    table: dict[str, Array] = {"task": np.empty(len(ids) + 1, dtype=object)}
    table["task"][:] = [*ids.tolist(), ALL]
    table["rows"] = judged.sums(np.ones(len(judged.y))).astype(int)
    mass = judged.sums(judged.w)
    for code, name in enumerate(judged.data.classes):
        table[f"share_{name}"] = judged.sums(judged.w * (judged.y == code)) / mass
    for metric, function in (("log_loss", task_log_loss), ("auc", task_auc)):
        for version, P in judged.proba.items():
            table[f"{metric}_{version}"] = judged.metric(function, P)
    for version, P in judged.proba.items():
        table[f"calibration_{version}"] = judged.by_rows(_calibration, P)
    table["calibration_noise"] = judged.by_rows(_calibration_noise, judged.proba["multi_task"])
    for version in ("independent", "pooled"):
        gain, error = _gain(judged, version)
        table[f"gain_over_{version}"], table[f"gain_over_{version}_se"] = gain, error
    return table


def _gain(judged: _Judged, version: str) -> tuple[Array, Array]:
    """Mean loss of a version less that of the multi-task model, and the standard error of the difference."""
    w, mass = judged.w, judged.sums(judged.w)
    difference = judged.losses(version) - judged.losses("multi_task")
    gain = judged.sums(w * difference) / mass
    within = judged.sums((w * (difference - gain[judged.task])) ** 2)
    within[-1] = np.sum((w * (difference - gain[-1])) ** 2)  # around the mean of all, not of their tasks
    n = judged.sums(np.ones(len(w)))
    bessel = np.where(n > 1, n / np.maximum(n - 1, 1), np.nan)  # one row does not say how much rows differ
    return gain, np.sqrt(bessel * within) / mass


def _bins(n: int) -> int:
    return min(MAX_BINS, n // BIN_ROWS)


def _calibration(y: Array, P: Array) -> float:
    """The expected calibration error; NaN where there are too few rows to say."""
    if _bins(len(y)) < 2:
        return float("nan")
    return expected_calibration_error(y, P, classes=np.arange(P.shape[1]), n_bins=_bins(len(y)))


def _calibration_noise(y: Array, P: Array) -> float:
    """The mean of that error where every row is right with the probability that is said.

    The sum over a bin of (confidence - right) then has mean zero and variance sum p (1 - p), and its absolute value
    the mean sqrt(2 / pi) times the root of that, were it normal.
    """
    n, p = len(P), P.max(axis=1)
    if _bins(n) < 2:
        return float("nan")
    bins = equal_count(p, _bins(n))
    return float(np.sqrt(2 / np.pi * np.bincount(bins, p * (1 - p))).sum() / n)


# ------------------------------------------------------- which tasks help which


def _helps(model: MultiTaskLSPC, blank: MultiTaskLSPC, data: Training) -> tuple[Array | None, str | None]:
    """The matrix, or why there is none."""
    n, T = len(data.rows), len(model.tasks_)
    if T < 2:
        return None, "there is one task only."
    if not isinstance(model.form_, DualForm):
        return None, "the model has no coefficient for every row: use norm='function', solver='dual', no n_centers."
    if n > HELP_ROWS:
        return None, f"{n} rows are more than {HELP_ROWS}."
    if T > HELP_TASKS:
        return None, f"{T} tasks are more than {HELP_TASKS}."
    settings = blank._settings(model.kernel_, blank._judge(data.classes), model.norm)
    trial = CoupledTrial(data.rows, blank._basis(data.rows, data.seed, settings), settings, model.relation_)
    trial = trial.tied(model.sharing_)
    root, ridge = trial.root.astype(float), model.alpha_ / trial.unit * n + model.jitter_
    H = trial.kernel(model.sigma_).astype(float) * root * root[:, None]  # double precision whatever the data's
    if np.finfo(float).eps * np.trace(H) > DIGITS * ridge:
        return None, f"the ridge, alpha_={model.alpha_:.3g}, is too small for the digits of the computation."
    return _deletions(trial, H, root, ridge).matrix(), None


def _deletions(trial: CoupledTrial, H: Array, root: Array, ridge: float) -> TaskDeletions:
    """What is left of the coupled system without some tasks; H is destroyed."""
    M = bordered_inverse(H, ridge, root, trial.settings.bias).M
    A, mass, count = M @ trial.Z.astype(float), np.bincount(trial.task, root**2), trial.rows.split_count
    return TaskDeletions(M, A, trial.task, mass, trial.folds, ridge, count)
