"""How models of many labels choose: how the labels are tied, on which rows, and by which trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from leastwise.estimators._checks import check_levels, check_search_rows, choose
from leastwise.estimators._label_checks import check_label_memory, label_penalties
from leastwise.estimators._labels import LabelClassifier, grouped_folds
from leastwise.estimators._model import Training
from leastwise.estimators._task_search import for_all_rows
from leastwise.estimators._tuned import Found
from leastwise.model_selection.grid import Grid, Levels
from leastwise.model_selection.label_folds import label_fold_labels
from leastwise.model_selection.objective import LabelJudge
from leastwise.model_selection.search import Search
from leastwise.model_selection.subsample import LEAST_GROUPS, content_keys, input_keys
from leastwise.problem.basis import Basis
from leastwise.problem.kernels import Precomputed
from leastwise.problem.label_coupling import Alike, Covariance, Differences, Relation, own_part
from leastwise.problem.label_similarity import check_label_similarity, correlation, is_edges, learned_relation
from leastwise.solvers.evaluator import Outcome, Settings
from leastwise.solvers.label_evaluators import IncompleteTrial, LabelRows, LabelTrial
from leastwise.solvers.label_modes import Family
from leastwise.solvers.search_rows import SEARCH_ROWS, rows_to_search

Array = np.ndarray

#: A first look at more labels than this is a look at so many of them.
SEARCH_LABELS = 200
#: Folds that may be refitted, each with a decomposition of its own.
MANY_FOLDS = 50
#: Conjugate gradients are stopped at this residual while parameters are compared.
ROUGH = 1e-3
#: Rows are dealt out in so many even parts, of which some are taken.
PARTS = 20


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
        """All of the choice; with ``iterated`` all rows are too many to look at, and some have to do."""
        rows = data.rows
        assert isinstance(rows, LabelRows)
        relation, (sigmas, alphas) = self._relation(data, sharings), self._data_grids(rows, settings)
        if not sharings.every and not relation.related:
            sharings = Levels((0.0,))  # nothing to choose
        basis = None if iterated else self._basis(rows, data.seed, settings)
        wanted = len(rows) if self.cv is None and not iterated else self._how_many(basis, len(rows))
        some = self._some_rows(data, wanted, settings)
        part = basis if some is rows and basis is not None else self._basis(some, data.seed, settings)
        last = rows if basis is not None else some
        whole = self._label_trial(last, basis or part, settings, relation)
        if self.cv is None:
            outcome = self._fixed(data, sigmas.values[0], alphas.values[0], sharings.values[0])
            return Found(outcome, [], whole, whole)
        search = Search(whole.roughly(ROUGH) if isinstance(whole, IncompleteTrial) else whole)
        if sigmas.single and alphas.single and len(sharings.values) == 1:
            found = search.at(sigmas.values[0], sharings.values[0], alphas)
        elif some is last and some.complete and self._few_labels(some) is None:
            found = search.run(sigmas, alphas, sharings)
        else:
            guess, first = self._look(some, part, settings, relation, sigmas, alphas, sharings)
            ratio = len(some) / len(last) if alphas.ratio else 1.0
            found = search.settle(replace(guess, alpha=guess.alpha * ratio), alphas, sharings)
            # Judged as the last word: what the first look saw was another problem.
            search.seen = first + [{**point, "stage": 1} for point in search.seen]
        if not rows.complete or not rows.equal_weights:  # to the digit, where it ended
            found = Search(whole.exactly()).at(found.sigma, found.sharing, Grid((found.alpha,)))
        self._report(f"chosen: sigma {found.sigma:.4g}, alpha {found.alpha:.2g}, sharing {found.sharing:.3g}")
        if last is not rows and alphas.ratio:
            found, search.seen = for_all_rows(found, search.seen, alphas, len(last) / len(rows))
        return Found(found, search.seen, whole, whole)

    def _how_many(self, basis: Basis | None, n: int) -> int:
        """Rows that serve the search."""
        if basis is not None:
            return rows_to_search(basis, n, self.search_rows)
        return min(n, SEARCH_ROWS if self.search_rows in ("auto", None) else int(self.search_rows))

    def _look(
        self,
        rows: LabelRows,
        basis: Basis,
        settings: Settings,
        relation: Relation,
        sigmas: Grid,
        alphas: Grid,
        sharings: Levels,
    ) -> tuple[Outcome, list[dict]]:
        """A first choice, in closed form: labels that are not known are filled in, and some of many have to do."""
        labels, judge, classes = self._few_labels(rows), settings.judge, self.label_index_.classes
        assert isinstance(judge, LabelJudge)
        if labels is not None:
            rows, relation, judge = rows.narrowed(labels), relation.take(labels), judge.take(labels)
            classes = tuple(classes[t] for t in labels)
        trial = LabelTrial(rows.filled(), basis, replace(settings, judge=judge), relation, label_families(classes))
        trial.note = ", first look"
        search = Search(trial)
        return search.run(sigmas, alphas, sharings), search.seen

    def _few_labels(self, rows: LabelRows) -> Array | None:
        """Some of very many labels, rare ones and frequent ones alike; None where all have to be looked at."""
        T = rows.y.shape[1]
        if T <= SEARCH_LABELS or not self._scorer().by_label:
            return None
        order = np.argsort(np.sum(rows.W * (rows.y > 0), axis=0), kind="stable")
        return np.sort(order[np.linspace(0, T - 1, SEARCH_LABELS).astype(int)])

    def _check_room(self, data: Training) -> None:
        """Before any work: so many labels, will what is kept of them fit?"""
        rows, labels = data.rows, self.label_index_
        pairs = self._table_of_pairs(self._checked_search())
        check_label_memory(len(rows), labels.n_outputs, labels.n_labels, rows.X.dtype.itemsize, pairs)

    def _table_of_pairs(self, sharings: Levels) -> bool:
        """Whether there is a table of all pairs of labels."""
        return self._pairs(sharings) and not sparse.issparse(self.similarity) and not is_edges(self.similarity)

    def _pairs(self, sharings: Levels) -> bool:
        """Whether it matters which labels are related."""
        alike = isinstance(self.similarity, str) and self.similarity == "shared"
        return not alike and sharings.values != (0.0,)

    def _label_trial(self, rows: LabelRows, basis: Basis, settings: Settings, relation: Relation) -> LabelTrial:
        """Held-out scores in closed form, or by refits where labels are known in part."""
        families = label_families(self.label_index_.classes)
        folds = len(np.unique(rows.fold))
        if not rows.complete and self.cv is not None and folds > MANY_FOLDS:
            raise ValueError(
                f"cv makes {folds} folds, and where labels are not known, or have weights of their own, each is "
                f"refitted: use {MANY_FOLDS} or fewer, or cv='loo', for which five folds stand in then."
            )
        if rows.complete:
            return LabelTrial(rows, basis, settings, relation, families)
        return IncompleteTrial(rows, basis, settings, relation, families, self.tol, int(self.max_iter))

    def _some_rows(self, data: Training, count: int, settings: Settings) -> LabelRows:
        """About so many rows, the classes of all labels in proportion; all if there are no more."""
        rows = data.rows
        assert isinstance(rows, LabelRows)
        if count >= len(rows):
            return rows
        precomputed = isinstance(settings.kernel, Precomputed)
        index = _dealt_sample(rows, count, precomputed)
        if len(np.unique(rows.fold[index])) < 2:
            return rows
        return rows.take(index, precomputed)

    # --------------------------------------------------------------- relation

    def _relation(self, data: Training, sharings: Levels) -> Relation:
        """How labels are tied."""
        rows, labels = data.rows, self.label_index_
        assert isinstance(rows, LabelRows)
        penalty = label_penalties(self.label_penalty, labels)
        own, S = own_part(penalty), self.similarity
        if not self._pairs(sharings):
            return Alike(own)
        if isinstance(S, str) and S == "learned":
            return Covariance(own, learned_relation(rows.y, rows.W, labels.classes, rows.size))
        if isinstance(S, str):
            S = np.maximum(correlation(rows.y, rows.W, labels.classes, rows.size), 0)
            return Differences(own, S, penalty)
        if callable(S):
            S = S(data.rows.X, labels.known(rows.y))
        return Differences(own, check_label_similarity(S, labels.names, labels.n_labels), penalty)

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


def _dealt_sample(rows: LabelRows, count: int, precomputed: bool) -> Array:
    """About ``count`` row numbers, in order: some of many even parts; of whole groups, if there are many."""
    if rows.group is not None and len(np.unique(rows.group)) >= LEAST_GROUPS:
        fold = grouped_folds(PARTS, rows.y, rows.group, input_keys(rows, precomputed))
        return np.flatnonzero(fold < max(1, round(PARTS * count / len(rows))))
    # Dealing out very many rows evenly takes long: ten times as many as are wanted will do.
    index = np.argsort(content_keys(rows, "sample", precomputed), kind="stable")[: 10 * count]
    fold = label_fold_labels(PARTS, rows.y[index], None)
    return np.sort(index[fold < max(1, round(PARTS * count / len(index)))])


def label_families(classes: Sequence[Array]) -> list[Family]:
    """Labels by the classes that they have in common: class y of one label is tied to class y of others.

    Classes that exactly the same labels have make one family.
    """
    starts = np.cumsum([0, *map(len, classes)])
    columns: dict[Any, dict[int, int]] = {}
    for t, values in enumerate(classes):
        for k, value in enumerate(values.tolist()):
            columns.setdefault(value, {})[t] = int(starts[t]) + k
    families: dict[tuple[int, ...], list[list[int]]] = {}
    for owners in columns.values():
        families.setdefault(tuple(owners), []).append(list(owners.values()))
    return [Family(np.array(labels), np.array(places)) for labels, places in families.items()]
