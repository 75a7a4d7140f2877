"""The choice of hyperparameters of many labels: how the labels are coupled, and on which rows and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from leastwise.estimators.checks import label_penalties
from leastwise.estimators.choosing import SearchResult, fixed_point, for_all_rows
from leastwise.estimators.spec import Spec
from leastwise.estimators.validation import Dataset
from leastwise.model_selection.grid import Grid, SharingGrid
from leastwise.model_selection.label_folds import grouped_folds, label_fold_ids
from leastwise.model_selection.objective import LabelObjective
from leastwise.model_selection.search import Search
from leastwise.model_selection.subsample import LEAST_GROUPS, content_hashes, input_hashes
from leastwise.problem.basis import Basis
from leastwise.problem.kernels import Precomputed
from leastwise.problem.label_coupling import Alike, Covariance, Differences, Relation, own_part
from leastwise.problem.label_similarity import LABEL_SIMILARITIES, check_label_similarity
from leastwise.solvers.evaluator import Candidate, Settings
from leastwise.solvers.label_evaluators import IncompleteLabelEvaluator, LabelEvaluator, LabelRows
from leastwise.solvers.label_modes import LabelGroup
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


def choose_labels(spec: Spec, data: Dataset, settings: Settings, iterated: bool) -> SearchResult:
    """Search on some rows and labels, then settle on all; if ``iterated``, all rows are too many to settle on."""
    rows = data.rows
    assert isinstance(rows, LabelRows)
    relation, (sigmas, alphas) = relation_of(spec, data), spec.data_grids(rows, settings)
    sharings = sharings_of(spec, relation)
    basis = None if iterated else spec.basis_of(rows, data.seed, settings)
    wanted = len(rows) if spec.cv is None and not iterated else _rows_to_search(spec, basis, len(rows))
    some = some_label_rows(data, wanted, settings)
    part = basis if some is rows and basis is not None else spec.basis_of(some, data.seed, settings)
    last = rows if basis is not None else some
    whole = _evaluator(spec, data, last, basis or part, settings, relation)
    if spec.cv is None:
        return SearchResult(fixed_point(data, sigmas, alphas, sharings), [], whole, whole)
    search = Search(whole.with_tolerance(ROUGH) if isinstance(whole, IncompleteLabelEvaluator) else whole)
    if sigmas.single and alphas.single and len(sharings.values) == 1:
        found = search.at(sigmas.values[0], sharings.values[0], alphas)
    elif some is last and some.complete and _few_labels(spec, some) is None:
        found = search.run(sigmas, alphas, sharings)
    else:
        guess, first = look_at_labels(spec, data, some, part, settings, relation, sharings)
        ratio = len(some) / len(last) if alphas.ratio else 1.0
        found = search.settle(replace(guess, alpha=guess.alpha * ratio), alphas, sharings)
        # Ranked above the first look, which was another problem.
        search.seen = first + [{**point, "stage": 1} for point in search.seen]
    if not rows.complete or not rows.equal_weights:  # to the digit, where it ended
        found = Search(whole.with_exact_ridges()).at(found.sigma, found.sharing, Grid((found.alpha,)))
    spec.report(f"chosen: sigma {found.sigma:.4g}, alpha {found.alpha:.2g}, sharing {found.sharing:.3g}")
    if last is not rows and alphas.ratio:
        found, search.seen = for_all_rows(found, search.seen, alphas, len(last) / len(rows))
    return SearchResult(found, search.seen, whole, whole)


def sharings_of(spec: Spec, relation: Relation) -> SharingGrid:
    """Sharings to try; one where there is nothing to choose."""
    sharings = spec.label_sharings
    return sharings if sharings.every or relation.related else SharingGrid((0.0,))


def _rows_to_search(spec: Spec, basis: Basis | None, n: int) -> int:
    if basis is not None:
        return rows_to_search(basis, n, spec.search_rows)
    return min(n, SEARCH_ROWS if spec.search_rows in ("auto", None) else int(spec.search_rows))


def look_at_labels(
    spec: Spec,
    data: Dataset,
    rows: LabelRows,
    basis: Basis,
    settings: Settings,
    relation: Relation,
    sharings: SharingGrid,
) -> tuple[Candidate, list[dict]]:
    """A first choice in closed form: unknown labels are filled in, and of very many labels some are used."""
    labels, objective, classes = _few_labels(spec, rows), settings.objective, data.targets.labels.classes
    sigmas, alphas = spec.data_grids(data.rows, settings)
    assert isinstance(objective, LabelObjective)
    if labels is not None:
        rows, relation, objective = rows.take_labels(labels), relation.take(labels), objective.take(labels)
        classes = tuple(classes[t] for t in labels)
    evaluator = LabelEvaluator(
        rows.filled(), basis, replace(settings, objective=objective), relation, label_families(classes)
    )
    evaluator.note = ", first look"
    search = Search(evaluator)
    return search.run(sigmas, alphas, sharings), search.seen


def _few_labels(spec: Spec, rows: LabelRows) -> Array | None:
    """Some of very many labels, rare and frequent ones alike; None where all have to be looked at."""
    T = rows.y.shape[1]
    if T <= SEARCH_LABELS or not spec.scorer.by_label:
        return None
    order = np.argsort(np.sum(rows.W * (rows.y > 0), axis=0), kind="stable")
    return np.sort(order[np.linspace(0, T - 1, SEARCH_LABELS).astype(int)])


def _evaluator(
    spec: Spec, data: Dataset, rows: LabelRows, basis: Basis, settings: Settings, relation: Relation
) -> LabelEvaluator:
    """Held-out scores in closed form, or by refits where labels are known in part."""
    families = label_families(data.targets.labels.classes)
    folds = len(np.unique(rows.fold))
    if not rows.complete and spec.cv is not None and folds > MANY_FOLDS:
        raise ValueError(
            f"cv makes {folds} folds, and where labels are not known, or have weights of their own, each is "
            f"refitted: use {MANY_FOLDS} or fewer, or cv='loo', for which five folds stand in then."
        )
    if rows.complete:
        return LabelEvaluator(rows, basis, settings, relation, families)
    return IncompleteLabelEvaluator(rows, basis, settings, relation, families, spec.tol, int(spec.max_iter))


def some_label_rows(data: Dataset, count: int, settings: Settings) -> LabelRows:
    """About ``count`` rows, the classes of all labels in proportion; all if there are no more."""
    rows = data.rows
    assert isinstance(rows, LabelRows)
    if count >= len(rows):
        return rows
    precomputed = isinstance(settings.kernel, Precomputed)
    index = _even_sample(rows, count, precomputed)
    return rows if len(np.unique(rows.fold[index])) < 2 else rows.take(index, precomputed)


def _even_sample(rows: LabelRows, count: int, precomputed: bool) -> Array:
    """About ``count`` row numbers, in order: some of many even parts; of whole groups, if there are many."""
    if rows.group is not None and len(np.unique(rows.group)) >= LEAST_GROUPS:
        fold = grouped_folds(PARTS, rows.y, rows.group, input_hashes(rows, precomputed))
        return np.flatnonzero(fold < max(1, round(PARTS * count / len(rows))))
    # Dealing out very many rows evenly takes long: ten times as many as are wanted will do.
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
        assert rule.function is not None  # of "shared" alone, where labels are not compared
        S = rule.function(rows.y, rows.W, labels.classes, rows.size)
        return Covariance(own, S) if rule.covariance else Differences(own, S, penalty)
    if callable(S):
        S = S(data.rows.X, labels.known(rows.y))
    return Differences(own, check_label_similarity(S, labels.names, labels.n_labels), penalty)


def label_families(classes: Sequence[Array]) -> list[LabelGroup]:
    """Labels by the classes that they have in common: class y of one label is coupled to class y of others.

    Classes that exactly the same labels have make one group.
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
