"""The ridge of many labels: how labels are coupled, which rows and labels are sampled, and the evaluators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from leastwise.fitting.checks import label_penalties
from leastwise.fitting.dataset import Dataset
from leastwise.fitting.ridge_problem import RidgeProblem
from leastwise.fitting.spec import Spec
from leastwise.model_selection.folds import LEAST_GROUPS, content_hashes, input_hashes
from leastwise.model_selection.grids import Grid, SharingGrid
from leastwise.model_selection.label_objective import LabelObjective
from leastwise.model_selection.search import Search
from leastwise.model_selection.splitters import grouped_folds, label_fold_ids
from leastwise.problem.label_coupling import LABEL_SIMILARITIES, Alike, Covariance, Differences, Relation, own_part
from leastwise.problem.similarity_checks import check_label_similarity
from leastwise.solvers.evaluator import Candidate
from leastwise.solvers.label_evaluators import IncompleteLabelEvaluator, LabelEvaluator, LabelRows
from leastwise.solvers.label_modes import LabelGroup
from leastwise.solvers.work import SEARCH_ROWS, rows_to_search

Array = np.ndarray

#: With more labels than this, the first search uses this many of them.
SEARCH_LABELS = 200
#: Largest number of folds that are refitted, each with its own decomposition.
MANY_FOLDS = 50
#: Rows are divided into this many stratified parts, of which some are taken.
PARTS = 20


@dataclass(frozen=True)
class LabelProblem(RidgeProblem):
    """Rows with many labels, and coupled columns of coefficients.

    Attributes
    ----------
    classes : tuple of ndarray or None
        Classes of each label, if this is a subset of the labels.
    """

    classes: tuple[Array, ...] | None = None

    @property
    def label_rows(self) -> LabelRows:
        """Training rows."""
        rows = self.data.rows
        assert isinstance(rows, LabelRows)
        return rows

    @property
    def sharings(self) -> SharingGrid | None:
        """Values of sharing to try; a single one if labels are not related."""
        sharings = self.spec.label_sharings
        return sharings if sharings.every or self.coupling.related else SharingGrid((0.0,))

    def rows_to_search(self, on_all_rows: bool) -> int:
        """Number of rows to search on."""
        wanted = self.spec.search_rows
        if on_all_rows:
            return len(self) if self.spec.cv is None else rows_to_search(self.basis, len(self), wanted)
        return min(len(self), SEARCH_ROWS if wanted in ("auto", None) else int(wanted))

    def take(self, count: int) -> Self:
        """About ``count`` rows, stratified by the classes of all labels; all rows if there are no more."""
        rows = self.label_rows
        if count >= len(rows):
            return self
        index = _even_sample(rows, count, self.precomputed)
        return self if len(np.unique(rows.fold[index])) < 2 else self.with_rows(rows.take(index, self.precomputed))

    def simplified(self) -> RidgeProblem:
        """A simplified problem with a closed form: unknown labels are filled in, and very many labels are sampled."""
        rows, labels = self.label_rows, self._some_labels
        if rows.complete and labels is None:
            return self
        classes, relation, settings = self.label_classes, self.coupling, self.settings
        if labels is not None:
            assert isinstance(settings.objective, LabelObjective)
            rows, relation, classes = rows.take_labels(labels), relation.take(labels), [classes[t] for t in labels]
            settings = replace(settings, objective=settings.objective.take(labels))
        part = replace(self, coupling=relation, settings=settings, classes=tuple(classes))
        return part.with_rows(rows.filled())

    @property
    def _some_labels(self) -> Array | None:
        """A sample of very many labels, both rare and frequent ones; None if all are needed."""
        rows = self.label_rows
        T = rows.y.shape[1]
        if T <= SEARCH_LABELS or not self.spec.scorer.by_label:
            return None
        order = np.argsort(np.sum(rows.W * (rows.y > 0), axis=0), kind="stable")
        return np.sort(order[np.linspace(0, T - 1, SEARCH_LABELS).astype(int)])

    @property
    def label_classes(self) -> Sequence[Array]:
        """Classes of each label."""
        return self.data.targets.labels.classes if self.classes is None else self.classes

    @cached_property
    def families(self) -> list[LabelGroup]:
        """Labels by the classes that they have in common."""
        return label_families(self.label_classes)

    # -------------------------------------------------------------- evaluators

    @property
    def refits(self) -> bool:
        """True if held-out scores have no closed form."""
        return self.classes is None and not self.label_rows.complete

    def evaluator(self) -> Any:
        """Held-out scores in closed form, or by refits if some labels are unknown."""
        rows, settings, relation = self.label_rows, self.settings, self.coupling
        if not self.refits:
            found = LabelEvaluator(rows, self.basis, settings, relation, self.families)
            found.note = "" if self.classes is None else ", first look"
            return found
        folds = len(np.unique(rows.fold))
        if self.spec.cv is not None and folds > MANY_FOLDS:
            raise ValueError(
                f"cv makes {folds} folds, and if labels are unknown or have weights of their own, each fold is "
                f"refitted: use {MANY_FOLDS} or fewer, or cv='loo', which is replaced by five folds in this case."
            )
        limits = self.spec.tol, int(self.spec.max_iter)
        return IncompleteLabelEvaluator(rows, self.basis, settings, relation, self.families, *limits)

    def exact(self, evaluator: Any, found: Candidate) -> Candidate:
        """The candidate at the tolerance and the ridges of the final model."""
        rows = self.label_rows
        if rows.complete and rows.equal_weights:
            return found
        return Search(evaluator.with_exact_ridges()).at(found.sigma, found.sharing, Grid((found.alpha,)))


def _even_sample(rows: LabelRows, count: int, precomputed: bool) -> Array:
    """About ``count`` row numbers, in order, from some of many stratified parts; whole groups if there are many."""
    if rows.group is not None and len(np.unique(rows.group)) >= LEAST_GROUPS:
        fold = grouped_folds(PARTS, rows.y, rows.group, input_hashes(rows, precomputed))
        return np.flatnonzero(fold < max(1, round(PARTS * count / len(rows))))
    # Stratifying very many rows takes long: ten times the requested number is enough.
    index = np.argsort(content_hashes(rows, "sample", precomputed), kind="stable")[: 10 * count]
    fold = label_fold_ids(PARTS, rows.y[index], None)
    return np.sort(index[fold < max(1, round(PARTS * count / len(index)))])


def relation_of(spec: Spec, data: Dataset) -> Relation:
    """How labels are coupled."""
    rows, labels = data.rows, data.targets.labels
    assert isinstance(rows, LabelRows)
    penalty = label_penalties(spec.label_penalty, labels)
    own, S = own_part(penalty), spec.similarity
    if not spec.relates_labels:
        return Alike(own)
    if isinstance(S, str):
        rule = LABEL_SIMILARITIES[S]
        assert rule.function is not None  # only "shared" has none
        S = rule.function(rows.y, rows.W, labels.classes, rows.size)
        return Covariance(own, S) if rule.covariance else Differences(own, S, penalty)
    if callable(S):
        S = S(data.rows.X, labels.known(rows.y))
    return Differences(own, check_label_similarity(S, labels.names, labels.n_labels), penalty)


def label_families(classes: Sequence[Array]) -> list[LabelGroup]:
    """Labels grouped by common classes: class y of one label is coupled to class y of the others.

    Classes that occur in exactly the same labels form one group.
    """
    starts = np.cumsum([0, *map(len, classes)])
    columns: dict[Any, dict[int, int]] = {}
    for t, values in enumerate(classes):
        for k, value in enumerate(values.tolist()):
            columns.setdefault(value, {})[t] = int(starts[t]) + k
    families: dict[tuple[int, ...], list[list[int]]] = {}
    for owners in columns.values():
        families.setdefault(tuple(owners), []).append(list(owners.values()))
    return [LabelGroup(np.array(labels), np.array(places)) for labels, places in families.items()]
