"""Sets of classes that hold the true one with a given probability, from held-out probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.conformal import METHODS, levels, nonconformity, sets
from leastwise.calibration.heldout_rows import Evidence, HeldRows, gather
from leastwise.estimators.checks import choose
from leastwise.problem.labels import Labels

Array = np.ndarray


@dataclass(frozen=True)
class SetOptions:
    """What kind of sets are asked for."""

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

    def of(self, P: Array, evidence: Evidence, task: Array | None = None) -> Array:
        """The sets of new rows with probabilities P (m x c), of tasks that have levels of their own or not."""
        common, own = levels(evidence, self.coverage, self.method, self.by_class, self.by_task, self.rng)
        level = np.tile(common, (len(P), 1))
        for t, values in own.items():
            level[task == t] = values
        return sets(nonconformity(P, self.method, self.rng), level, self.allow_empty)

    def of_tasks(self, P: Array, task: Array, evidence: Evidence, unseen_task: Evidence | None) -> Array:
        """The same, where tasks that are not known (-1) have evidence of their own, if there is any."""
        inside, unseen = self.of(P, evidence, task), task < 0
        if unseen.any() and unseen_task is not None:
            inside[unseen] = self.of(P[unseen], unseen_task)
        return inside

    def of_labels(self, P: Array, known: list[Array], held: HeldRows, labels: Labels) -> Any:
        """The sets of every label, from probabilities side by side, and held-out tables of each label."""
        parts = [P[:, a:b] for a, b in pairwise(labels.starts.tolist())]
        made = [self.of(p, gather(known[t], held, t)) for t, p in enumerate(parts)]
        if labels.form == "flat":
            return made[0]
        return np.stack(made, axis=1) if labels.binary else made


def held_rows(model: Any) -> HeldRows:
    """What is known of the training rows that were held out."""
    check_is_fitted(model)
    held = vars(model).get("heldout_rows_")
    if held is None:
        raise ValueError(
            "cv=None held nothing out, so there is nothing to tell how sure the model may be: use cv='loo' or a "
            "number of folds. (A model from a file that was saved with keep='predict' has lost it: use "
            "keep='all'.)"
        )
    return held


def evidence_of(model: Any) -> Evidence:
    """Held-out probabilities and true classes of the rows that count."""
    held = held_rows(model)
    return gather(model.heldout_proba_, held)


def unseen_task_evidence(model: Any) -> Evidence | None:
    """The same, as if the model had not known the tasks of its rows; None where that is not known."""
    held, F = held_rows(model), vars(model).get("unseen_task_scores_")
    calibrator = vars(model).get("unseen_task_calibrator_")
    if F is None or calibrator is None:
        return None
    known = ~np.isnan(F[:, 0])
    P = np.full(F.shape, np.nan)
    P[known] = calibrator.proba(F[known], held.in_domain[known])
    return gather(P, held).of_unseen_tasks()


def label_tables(P: Any, form: str) -> list[Array]:
    """Probabilities of all classes of each label, (n, classes), from what ``predict_proba`` gave."""
    if form == "flat":
        return [np.asarray(P, dtype=float)]
    if isinstance(P, list):
        return [np.asarray(p, dtype=float) for p in P]
    return [np.column_stack([1 - p, p]) for p in np.asarray(P, dtype=float).T]
