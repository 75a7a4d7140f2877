"""How models of many labels choose: how the labels are tied, on which rows, and by which trial."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from leastwise.basis import Basis
from leastwise.estimators._checks import check_levels, check_search_rows, choose
from leastwise.estimators._label_checks import check_label_memory, label_penalties
from leastwise.estimators._labels import LabelClassifier
from leastwise.estimators._model import Training
from leastwise.estimators._task_search import for_all_rows
from leastwise.estimators._tuned import Found
from leastwise.heldout.labels import Family
from leastwise.kernels import Precomputed
from leastwise.label_folds import label_fold_labels
from leastwise.labels.encoding import Labels
from leastwise.labels.given import check_label_similarity
from leastwise.labels.relation import Alike, Covariance, Differences, Relation
from leastwise.labels.similarity import correlation, learned_relation
from leastwise.selection.grid import Levels
from leastwise.selection.incomplete import IncompleteTrial
from leastwise.selection.labels import LabelRows, LabelTrial
from leastwise.selection.plan import SEARCH_ROWS, rows_to_search
from leastwise.selection.search import Search
from leastwise.selection.trial import Settings

Array = np.ndarray


class LabelSearch(LabelClassifier):
    """Base of models of many labels that choose sigma, alpha and sharing by held-out scores.

    A subclass has the parameters sharing, similarity, label_penalty, norm, search_rows, tol and max_iter.
    """

    #: sharing="auto", by similarity; those that are given have what "correlation" has.
    SHARINGS: ClassVar[dict[str, tuple[float, ...]]] = {
        "learned": (0.0, 0.3, 0.7, 0.99),
        "shared": (0.0, 0.05, 0.2, 0.5, 0.9),
        "correlation": (0.0, 0.1, 0.5, 0.9, 0.97),
    }

    def _search_labels(self, data: Training, settings: Settings, sharings: Levels, iterated: bool) -> Found:
        """All of the choice; with ``iterated`` all rows are too many to look at."""
        rows = data.rows
        assert isinstance(rows, LabelRows)
        if iterated:
            return self._search_some(data, settings, sharings)
        basis, relation = self._basis(rows, data.rng, settings), self._relation(data)
        families = label_families(self.label_index_)
        sigmas, alphas = self._data_grids(rows, settings)
        whole = self._label_trial(rows, basis, settings, relation, families)
        if self.cv is None:
            outcome = self._fixed(data, sigmas.values[0], alphas.values[0], sharings.values[0])
            return Found(outcome, [], whole, whole)
        some = self._some_rows(data, rows_to_search(basis, len(rows), self.search_rows), settings)
        known = sigmas.single and alphas.single and len(sharings.values) == 1
        if rows.complete and (some is rows or known):
            search = Search(whole)
            return Found(search.run(sigmas, alphas, sharings), search.seen, whole, whole)
        if known:
            search = Search(whole)
            return Found(search.at(sigmas.values[0], sharings.values[0], alphas), search.seen, whole, whole)
        part = self._basis(some, data.rng, settings) if some is not rows else basis
        search = Search(LabelTrial(some.filled(), part, settings, relation, families))
        guess = search.run(sigmas, alphas, sharings)
        ratio = len(some) / len(rows) if alphas.ratio else 1.0
        last = Search(whole, search.seen)
        found = last.settle(replace(guess, alpha=guess.alpha * ratio), alphas, sharings)
        return Found(found, last.seen, whole, search.trial)

    def _search_some(self, data: Training, settings: Settings, sharings: Levels) -> Found:
        """Parameters found on some rows, with an alpha that suits all."""
        relation, families = self._relation(data), label_families(self.label_index_)
        sigmas, alphas = self._data_grids(data.rows, settings)
        some = self._some_rows(data, SEARCH_ROWS if self.search_rows == "auto" else int(self.search_rows), settings)
        trial = self._label_trial(some, self._basis(some, data.rng, settings), settings, relation, families)
        if self.cv is None:
            return Found(self._fixed(data, sigmas.values[0], alphas.values[0], sharings.values[0]), [], trial, trial)
        search = Search(LabelTrial(some.filled(), trial.basis, settings, relation, families))
        found = search.run(sigmas, alphas, sharings)
        if not some.complete:
            last = Search(trial, search.seen)
            found = last.settle(found, alphas, sharings)
        if alphas.ratio:
            found, _ = for_all_rows(found, search.seen, alphas, len(some) / len(data.rows))
        return Found(found, search.seen, trial, trial)

    def _check_room(self, data: Training, settings: Settings, iterated: bool) -> None:
        """Before any work: so many rows, centres and labels, will it fit?"""
        rows, labels = data.rows, self.label_index_
        itemsize = rows.X.dtype.itemsize
        if not iterated:
            self._check_memory(rows, settings, itemsize)
        pairs = not (isinstance(self.similarity, str) and self.similarity == "shared")
        pairs = pairs and not sparse.issparse(self.similarity)
        check_label_memory(len(rows), labels.n_outputs, labels.n_labels, itemsize, pairs)

    def _label_trial(
        self, rows: LabelRows, basis: Basis, settings: Settings, relation: Relation, families: list[Family]
    ) -> LabelTrial:
        """Held-out scores in closed form, or by refits where labels are known in part."""
        if rows.complete:
            return LabelTrial(rows, basis, settings, relation, families)
        return IncompleteTrial(rows, basis, settings, relation, families, self.tol, int(self.max_iter))

    def _some_rows(self, data: Training, count: int, settings: Settings) -> LabelRows:
        """About so many rows, the classes of all labels in proportion; all if there are no more."""
        rows = data.rows
        assert isinstance(rows, LabelRows)
        parts = len(rows) // max(count, 1)
        if parts < 2:
            return rows
        fold = label_fold_labels(parts, rows.y, int(data.rng.integers(2**31 - 1)))
        index = np.flatnonzero(fold == 0)
        if len(np.unique(rows.fold[index])) < 2:
            return rows
        return rows.take(index, isinstance(settings.kernel, Precomputed))

    # --------------------------------------------------------------- relation

    def _relation(self, data: Training) -> Relation:
        """How labels are tied."""
        rows, labels = data.rows, self.label_index_
        assert isinstance(rows, LabelRows)
        penalty = label_penalties(self.label_penalty, labels)
        S = self.similarity
        if isinstance(S, str) and S == "shared":
            return Alike(penalty)
        if isinstance(S, str) and S == "learned":
            return Covariance(penalty, learned_relation(rows.y, rows.W, labels.classes, rows.size))
        if isinstance(S, str):
            return Differences(penalty, np.maximum(correlation(rows.y, rows.W, labels.classes, rows.size), 0))
        if callable(S):
            S = S(data.rows.X, labels.decode(np.maximum(rows.y, 0)))
        return Differences(penalty, check_label_similarity(S, labels.names, labels.n_labels))

    def _checked_search(self) -> Levels:
        """The parameters of the search checked, before any data are seen; the sharings to try."""
        named = "correlation"
        if isinstance(self.similarity, str):
            named = choose("similarity", self.similarity, list(self.SHARINGS))
        check_search_rows(self.search_rows)
        sharings = check_levels("sharing", self.sharing, self.SHARINGS[named], "labels")
        if self.cv is None and len(sharings.values) > 1:
            raise ValueError(
                "cv=None holds nothing out, so there is nothing to choose by: give a number for sharing; or set "
                "cv='loo' or a number of folds."
            )
        return sharings

    sharing: Any
    similarity: Any
    label_penalty: Any
    norm: str
    search_rows: Any
    tol: float
    max_iter: int


def label_families(labels: Labels) -> list[Family]:
    """Labels by the classes that they have in common: class y of one label is tied to class y of others.

    Classes that exactly the same labels have make one family.
    """
    owners: dict[Any, list[int]] = {}
    for t, classes in enumerate(labels.classes):
        for value in classes.tolist():
            owners.setdefault(value, []).append(t)
    families: dict[tuple[int, ...], list] = {}
    for value, members in owners.items():
        families.setdefault(tuple(members), []).append(value)
    place = [{value: k for k, value in enumerate(classes.tolist())} for classes in labels.classes]
    return [
        Family(
            np.array(members),
            np.array([[labels.starts[t] + place[t][value] for t in members] for value in values]),
        )
        for members, values in families.items()
    ]
