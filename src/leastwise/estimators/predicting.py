"""From a fitted model and rows to scores, probabilities and decisions, in the containers that were asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leastwise.calibration.calibrators import Calibrator
from leastwise.calibration.prior import Shift
from leastwise.estimators.checks import check_range
from leastwise.estimators.validation import row_index
from leastwise.problem.basis import evaluate
from leastwise.solvers.solve_tasks import evaluate_tasks
from leastwise.utils.arrays import get_namespace, is_finite, is_numpy, numbers_like, to_namespace, to_numpy
from leastwise.utils.optional import frames

Array = np.ndarray


@dataclass(frozen=True)
class Answer:
    """Scores of some rows, how far they are trusted, and how they become probabilities.

    ``strange`` marks rows of tasks that are not known, which have a calibrator of their own, ``stranger``. ``task``
    holds the codes of the tasks, ``shift`` leads to other class shares.
    """

    F: Array
    in_domain: Array
    calibrator: Calibrator
    unseen: Array | None = None
    unseen_task: Calibrator | None = None
    task: Array | None = None
    shift: Shift | None = None

    def proba(self) -> Array:
        """Probabilities, of shape (n, c)."""
        P = self._calibrated(lambda c, rows: c.proba(self.F[rows], self.in_domain[rows]))
        return P if self.shift is None else self.shift.proba(P)

    def table(self) -> Array:
        """Values that order the classes as the probabilities do, of shape (n, c)."""
        if self.shift is not None:
            return self.shift.decision(replace(self, shift=None).proba())
        return self._calibrated(lambda c, rows: c.decision(self.F[rows], self.in_domain[rows]))

    def decision(self) -> Array:
        """Decision values, of shape (n,) with two classes (second minus first), else (n, c)."""
        D = self.table()
        return D[:, 1] - D[:, 0] if D.shape[1] == 2 else D

    def to_numpy(self) -> Answer:
        """The same in numpy arrays."""
        return replace(self, F=to_numpy(self.F), in_domain=to_numpy(self.in_domain))

    def best(self) -> Array:
        """Code of the most probable class."""
        P = self.proba()
        return get_namespace(P).argmax(P, axis=1)

    def _calibrated(self, apply: Callable[[Calibrator, Any], Array]) -> Array:
        if self.unseen is None or self.unseen_task is None or not self.unseen.any():
            return apply(self.calibrator, ...)
        if not is_numpy(self.F):  # all rows both ways: other libraries cannot write to some rows by number
            unseen = get_namespace(self.F).astype(
                numbers_like(self.unseen.astype(int), self.F), get_namespace(self.F).bool
            )
            known, other = apply(self.calibrator, ...), apply(self.unseen_task, ...)
            return get_namespace(self.F).where(unseen[:, None], other, known)
        values = np.empty_like(self.F)
        values[~self.unseen] = apply(self.calibrator, ~self.unseen)
        values[self.unseen] = apply(self.unseen_task, self.unseen)
        return values


def raw_scores(model: Any, X: Any, task: Array | None = None) -> tuple[Array, Array]:
    """Scores and domain weights of validated rows; ``task`` holds task codes, -1 for a task that is not known."""
    check_range(X, model.kernel_)
    centers, index = getattr(model, "centers_", None), getattr(model, "center_indices_", None)
    if task is None:
        F, nearest = evaluate(model.kernel_, model.sigma_, X, centers, index, model.coef_)
        intercept = model.intercept_
    else:
        F, nearest = evaluate_tasks(model.kernel_, model.sigma_, X, task, centers, index, model.form_)
        own = getattr(model, "task_intercept_", None)
        intercept = model.intercept_ if own is None else np.vstack([own, model.intercept_])[task]
    F += to_namespace(intercept, F)
    if not is_finite(F):
        raise ValueError("Scores overflow on these rows: they are far larger than the training rows were.")
    extrapolation = getattr(model, "extrapolation_", None)
    return F, get_namespace(F).ones_like(nearest) if extrapolation is None else extrapolation.in_domain(nearest)


def container_of(model: Any) -> str:
    """What ``set_output`` asked for."""
    return getattr(model, "_sklearn_output_config", {}).get("transform", "default")


def framed(model: Any, values: Array, X: Any, classes: Any = None) -> Any:
    """A table of values with one column per class, in the container that ``set_output`` asked for."""
    classes, container = model.classes_ if classes is None else classes, container_of(model)
    if container == "default":
        return values
    if container == "pandas":
        return frames("pandas").DataFrame(to_numpy(values), columns=classes, index=row_index(X))
    return frames("polars").DataFrame(to_numpy(values), schema=[str(c) for c in classes])


def set_output(model: Any, transform: str | None) -> Any:
    """Choose the container of predictions; see ``Classifier.set_output``."""
    if transform is not None:
        if transform not in ("default", "pandas", "polars"):
            raise ValueError(f"transform={transform!r} is not known: use 'default', 'pandas' or 'polars'.")
        model._sklearn_output_config = {"transform": transform}
    return model
