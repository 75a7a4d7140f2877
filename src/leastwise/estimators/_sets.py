"""Sets of classes that hold the true one with a given probability: ``predict_set`` of all classifiers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.conformal import METHODS, levels, nonconformity, sets
from leastwise.calibration.heldout_rows import Evidence, HeldRows, gather
from leastwise.estimators._checks import choose
from leastwise.problem.labels import Labels
from leastwise.sources.dask import by_partition
from leastwise.utils.arrays import here

Array = np.ndarray


@dataclass(frozen=True)
class Wanted:
    """What kind of sets are asked for."""

    coverage: float
    method: str
    by_class: bool
    by_task: bool
    allow_empty: bool
    rng: np.random.Generator

    @staticmethod
    def checked(coverage: Any, method: str, random_state: Any, **flags: bool) -> Wanted:
        """The arguments of ``predict_set``, checked."""
        choose("method", method, list(METHODS))
        number = isinstance(coverage, int | float | np.number) and not isinstance(coverage, bool)
        if not number or not 0 < coverage < 1:
            hint = " (Tasks are given by name: tasks=.)" if np.ndim(coverage) else ""
            raise ValueError(f"coverage={coverage!r} must be a number above 0 and below 1, such as 0.9.{hint}")
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        return Wanted(float(coverage), method, flags["by_class"], flags["by_task"], flags["allow_empty"], rng)

    def of(self, P: Array, evidence: Evidence, task: Array | None = None) -> Array:
        """The sets of new rows with probabilities P (m x c), of tasks that have levels of their own or not."""
        common, own = levels(evidence, self.coverage, self.method, self.by_class, self.by_task, self.rng)
        level = np.tile(common, (len(P), 1))
        for t, values in own.items():
            level[task == t] = values
        return sets(nonconformity(P, self.method, self.rng), level, self.allow_empty)

    def of_tasks(self, P: Array, task: Array, evidence: Evidence, stranger: Evidence | None) -> Array:
        """The same, where tasks that are not known (-1) have evidence of their own, if there is any."""
        inside, strange = self.of(P, evidence, task), task < 0
        if strange.any() and stranger is not None:
            inside[strange] = self.of(P[strange], stranger)
        return inside

    def of_labels(self, P: Array, known: list[Array], held: HeldRows, labels: Labels) -> Any:
        """The sets of every label, from probabilities side by side, and held-out tables of each label."""
        parts = [P[:, a:b] for a, b in pairwise(labels.starts.tolist())]
        made = [self.of(p, gather(known[t], held, t)) for t, p in enumerate(parts)]
        if labels.form == "flat":
            return made[0]
        return np.stack(made, axis=1) if labels.binary else made


class ClassSets:
    """Mixin for classifiers that keep held-out probabilities."""

    @by_partition
    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        method: str = "lac",
        by_class: bool = False,
        allow_empty: bool = False,
        random_state: Any = None,
    ) -> Array:
        """Sets of classes that hold the true one with about this probability, from held-out probabilities.

        See :mod:`leastwise.calibration.conformal` for what is guaranteed, and when.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
        coverage : float, default=0.9
            Above 0 and below 1.
        method : {"lac", "aps", "random-aps"}, default="lac"
            "lac" makes the smallest sets; "aps" makes sets that grow with how hard a row is; "random-aps" is the same
            with chance in it.
        by_class : bool, default=False
            Whether the coverage is to hold for the rows of each class. A class with too few rows for that is in all
            sets.
        allow_empty : bool, default=False
            Whether a set may be empty: the row is then unlike all classes. Otherwise it holds the most probable one.
        random_state : int, RandomState or None, default=None
            For "random-aps".

        Returns
        -------
        ndarray of bool of shape (n, n_classes)
            The columns follow ``classes_``. All classes where there are too few held-out rows for that coverage.
        """
        flags = {"by_class": by_class, "by_task": False, "allow_empty": allow_empty}
        wanted = Wanted.checked(coverage, method, random_state, **flags)
        evidence = self._evidence()
        return wanted.of(here(self._answer(X).proba()), evidence)  # type: ignore[attr-defined]

    def _evidence(self) -> Evidence:
        """The held-out rows that count."""
        held = self._held_rows()
        return gather(self.heldout_proba_, held)

    def _held_rows(self) -> HeldRows:
        check_is_fitted(self)
        held = vars(self).get("heldout_rows_")
        if held is None:
            raise ValueError(
                "cv=None held nothing out, so there is nothing to tell how sure the model may be: use cv='loo' or a "
                "number of folds. (A model from a file that was saved with keep='predict' has lost it: use "
                "keep='all'.)"
            )
        return held

    heldout_proba_: Any
    heldout_rows_: HeldRows


class TaskSets(ClassSets):
    """Mixin for classifiers of many tasks."""

    @by_partition
    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        tasks: Any = None,
        method: str = "lac",
        by_class: bool = False,
        by_task: bool = False,
        allow_empty: bool = False,
        random_state: Any = None,
    ) -> Array:
        """Sets of classes that hold the true one with about this probability; see :meth:`leastwise.LSPC.predict_set`.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
        coverage : float, default=0.9
        tasks : array-like of shape (n,) or a single id, optional
            The tasks of the rows, where X does not hold them.
        method, by_class, allow_empty, random_state
            As in :meth:`leastwise.LSPC.predict_set`.
        by_task : bool, default=False
            Whether the coverage is to hold for the rows of each task. A task has a level of its own where at least
            ``5 / (1 - coverage)`` of its rows were held out (50 for 0.9); smaller tasks have that of all rows.

        Returns
        -------
        ndarray of bool of shape (n, n_classes)
            Rows of tasks that are not known get sets by the scores of tasks that were held out whole, each of which
            is one witness: with few tasks these sets hold all classes. Where the model has no such scores they are
            as those of the known tasks.
        """
        flags = {"by_class": by_class, "by_task": by_task, "allow_empty": allow_empty}
        wanted = Wanted.checked(coverage, method, random_state, **flags)
        evidence, stranger = self._evidence(), self._stranger_evidence()
        answer = self._answer(X, tasks)  # type: ignore[attr-defined]
        return wanted.of_tasks(here(answer.proba()), answer.task, evidence, stranger)

    def _stranger_evidence(self) -> Evidence | None:
        """What the model would have said of its rows had it not known their tasks; None where that is not known."""
        held, F = self._held_rows(), vars(self).get("stranger_scores_")
        calibrator = vars(self).get("stranger_calibrator_")
        if F is None or calibrator is None:
            return None
        known = ~np.isnan(F[:, 0])
        P = np.full(F.shape, np.nan)
        P[known] = calibrator.proba(F[known], held.trust[known])
        return gather(P, held).of_strangers()


class LabelSets(ClassSets):
    """Mixin for classifiers of many labels."""

    @by_partition
    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        method: str = "lac",
        by_class: bool = False,
        allow_empty: bool = False,
        random_state: Any = None,
    ) -> Any:
        """Sets of classes for every label, each of which holds the true one with about this probability.

        A label whose set holds both classes is left open. Parameters as in :meth:`leastwise.LSPC.predict_set`; the
        coverage is that of each label, on the rows whose label was known.

        Returns
        -------
        ndarray of bool of shape (n, T, 2)
            Where every label has two classes; otherwise a list of T arrays, of shape (n, classes of the label) each.
            Of shape (n, n_classes) for one label that was given as one class a row.
        """
        flags = {"by_class": by_class, "by_task": False, "allow_empty": allow_empty}
        wanted = Wanted.checked(coverage, method, random_state, **flags)
        held = self._held_rows()
        P, labels = here(self._answer(X).proba()), self.label_index_  # type: ignore[attr-defined]
        return wanted.of_labels(P, label_tables(self.heldout_proba_, labels.form), held, labels)


def label_tables(P: Any, form: str) -> list[Array]:
    """Probabilities of all classes of each label, (n, classes), from what ``predict_proba`` gave."""
    if form == "flat":
        return [np.asarray(P, dtype=float)]
    if isinstance(P, list):
        return [np.asarray(p, dtype=float) for p in P]
    return [np.column_stack([1 - p, p]) for p in np.asarray(P, dtype=float).T]
