"""From a fitted model and rows to scores, probabilities, decisions and prediction sets."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.conformal import METHODS, CalibrationSet, HeldRows, gather, levels, nonconformity, sets
from leastwise.fitting.checks import choose
from leastwise.fitting.new_rows import row_index
from leastwise.model_selection.optimism import hidden_errors
from leastwise.problem.labels import Labels
from leastwise.utils.arrays import to_numpy
from leastwise.utils.optional import frames
from leastwise.utils.unwrap import core

Array = np.ndarray


def container_of(model: Any) -> str:
    """The container set by ``set_output``."""
    return getattr(model, "_sklearn_output_config", {}).get("transform", "default")


def framed(model: Any, values: Array, X: Any, classes: Any = None) -> Any:
    """A table of values with one column per class, in the container set by ``set_output``."""
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


# -------------------------------------------------------------- sets of classes


@dataclass(frozen=True)
class SetOptions:
    """The requested kind of sets."""

    coverage: float
    method: str
    by_class: bool
    by_task: bool
    allow_empty: bool
    rng: np.random.Generator

    @staticmethod
    def checked(coverage: Any, method: str, random_state: Any, **flags: bool) -> SetOptions:
        """The arguments of ``predict_set``, checked."""
        choose("method", method, list(METHODS))
        number = isinstance(coverage, int | float | np.number) and not isinstance(coverage, bool)
        if not number or not 0 < coverage < 1:
            hint = " (Tasks are given by name: tasks=.)" if np.ndim(coverage) else ""
            raise ValueError(f"coverage={coverage!r} must be a number above 0 and below 1, such as 0.9.{hint}")
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        return SetOptions(float(coverage), method, flags["by_class"], flags["by_task"], flags["allow_empty"], rng)

    def of(self, P: Array, heldout: CalibrationSet, task: Array | None = None) -> Array:
        """The sets of new rows with probabilities P (m x c), with or without levels by task."""
        common, own = levels(heldout, self.coverage, self.method, self.by_class, self.by_task, self.rng)
        level = np.tile(common, (len(P), 1))
        for t, values in own.items():
            level[task == t] = values
        return sets(nonconformity(P, self.method, self.rng), level, self.allow_empty)

    def of_tasks(self, P: Array, task: Array, heldout: CalibrationSet, unseen_task: CalibrationSet | None) -> Array:
        """The same; unseen tasks (-1) use their own held-out probabilities if there are any."""
        inside, unseen = self.of(P, heldout, task), task < 0
        if unseen.any() and unseen_task is not None:
            inside[unseen] = self.of(P[unseen], unseen_task)
        return inside

    def of_labels(self, P: Array, heldout: list[CalibrationSet], labels: Labels) -> Any:
        """The sets of every label, from concatenated probabilities and the held-out rows of each label."""
        parts = [P[:, a:b] for a, b in pairwise(labels.starts.tolist())]
        made = [self.of(p, known) for p, known in zip(parts, heldout, strict=True)]
        if labels.form == "flat":
            return made[0]
        return np.stack(made, axis=1) if labels.binary else made


def held_rows(model: Any) -> HeldRows:
    """The held-out record of the training rows."""
    check_is_fitted(model)
    held = vars(model).get("heldout_rows_")
    if held is None:
        raise ValueError(
            "Prediction sets need held-out probabilities, and cv=None holds nothing out: use cv='loo' or a "
            "number of folds. (A model file saved with keep='predict' does not contain them: use "
            "keep='all'.)"
        )
    return held


def calibration_set_of(model: Any) -> CalibrationSet:
    """Held-out probabilities and true classes of the rows with a weight above 0."""
    held = held_rows(model)
    return gather(model.heldout_proba_, held, hidden=hidden_by_selection(model, held))


def label_calibration_sets(model: Any) -> list[CalibrationSet]:
    """The same for every label of a multi-label model; hyperparameters are chosen once for all labels."""
    held = held_rows(model)
    tables = label_tables(model.heldout_proba_, core(model).label_index_.form)
    hidden = hidden_by_selection(model, held) / len(tables)
    return [gather(table, held, t, hidden) for t, table in enumerate(tables)]


def hidden_by_selection(model: Any, held: HeldRows) -> float:
    """Errors that the choice of hyperparameters and of a recalibration may hide; all labels of a row count as one."""
    families = sum(name is not None for name in vars(model).get("scores_", ())) > 1
    return hidden_errors(vars(core(model)).get("cv_results_"), observations(held), int(families))


def observations(held: HeldRows) -> float:
    """Number of independent observations that were held out: groups, or rows with their counts."""
    known = held.weight > 0 if held.weight.ndim == 1 else (held.weight > 0).any(axis=1)
    if held.group is not None:
        return float(len(np.unique(held.group[known])))
    return float(known.sum() if held.count is None else held.count[known].sum())


def unseen_task_calibration_set(model: Any) -> CalibrationSet | None:
    """The same for whole tasks held out; None if not available."""
    held, F = held_rows(model), vars(model).get("unseen_task_scores_")
    calibrator = vars(model).get("unseen_task_calibrator_")
    if F is None or calibrator is None:
        return None
    known = ~np.isnan(F[:, 0])
    P = np.full(F.shape, np.nan)
    P[known] = calibrator.proba(F[known], held.in_domain[known])
    return gather(P, held).of_unseen_tasks()


def label_tables(P: Any, form: str) -> list[Array]:
    """Probabilities of all classes of each label, (n, classes), from the result of ``predict_proba``."""
    if form == "flat":
        return [np.asarray(P, dtype=float)]
    if isinstance(P, list):
        return [np.asarray(p, dtype=float) for p in P]
    return [np.column_stack([1 - p, p]) for p in np.asarray(P, dtype=float).T]
