"""Where ``Abstaining`` has its evidence from: a model's held-out rows, or rows that a frozen model has not seen.

The thresholds that a rule leads to, of rows, tasks and labels, and what held-out rows make of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.calibration.abstention import Rule
from leastwise.calibration.heldout_rows import Evidence, HeldRows, gather
from leastwise.calibration.risk import Decisions, risk_coverage
from leastwise.estimators import validation
from leastwise.estimators.base import TaskClassifier
from leastwise.estimators.checks import check_groups
from leastwise.estimators.labels import LabelClassifier
from leastwise.estimators.sets import label_tables
from leastwise.model_selection.folds import observation_counts
from leastwise.problem.labels import encode_known
from leastwise.utils.arrays import bring
from leastwise.utils.unwrap import arrive, core, inner_model, is_frozen

Array = np.ndarray

#: What a frozen model's rows may come with.
BESIDE = ("sample_weight", "groups", "tasks")


@dataclass(frozen=True)
class Heard:
    """Decisions on held-out rows: one set of them, or one for every label.

    Attributes
    ----------
    decisions : list of Decisions
    labels : bool
        Whether there are many labels.
    task : ndarray of int, optional
        Tasks of the rows.
    stranger : Decisions, optional
        Decisions on tasks that were held out whole.
    """

    decisions: list[Decisions]
    labels: bool = False
    task: Array | None = None
    stranger: Decisions | None = None


def is_labels(model: Any) -> bool:
    """Whether this is a model of many labels."""
    return isinstance(core(model), LabelClassifier)


def is_flat(model: Any) -> bool:
    """Whether it is one of one label, given as one class a row."""
    return is_labels(model) and model.label_index_.form == "flat"


def hear(model: Any, X: Any, y: Any, params: dict[str, Any]) -> Heard:
    """The decisions of a fitted model on rows that were held out."""
    inner = inner_model(model)
    if is_frozen(model):
        return _heard_frozen(model, inner, X, y, params)
    if not hasattr(inner, "_held_rows"):
        raise ValueError(
            f"{type(inner).__name__} keeps no held-out predictions to set a threshold on: use a classifier of this "
            "library, or fit it on other rows and give sklearn.frozen.FrozenEstimator(model)."
        )
    held = inner._held_rows()
    if is_labels(inner):
        return _heard_labels(inner, inner.heldout_proba_, held)
    evidence = inner._evidence()
    if not isinstance(core(inner), TaskClassifier):
        return Heard([_decisions(evidence)])
    stranger = inner._stranger_evidence()
    return Heard(
        [_decisions(evidence)], task=evidence.task, stranger=None if stranger is None else _decisions(stranger)
    )


def _heard_frozen(model: Any, inner: Any, X: Any, y: Any, params: dict[str, Any]) -> Heard:
    """Those on the rows given, which the model has not seen; rows of tasks that it does not know do not count."""
    more = {"tasks": params["tasks"]} if params.get("tasks") is not None else {}
    P, y = brought(model.predict_proba(X, **more)), bring(y)
    n = P[0].shape[0] if isinstance(P, list) else P.shape[0]
    w, group = _beside(n, params)
    count = observation_counts(params.get("sample_weight"))
    if is_labels(inner):
        codes = label_codes(inner, y, n)
        W = np.where(codes >= 0, w if w.ndim == 2 else w[:, None], 0)
        return _heard_labels(inner, P, HeldRows(codes, W, np.ones(n), group, count=count))
    task = task_codes(model, X, more)
    w = w if task is None else np.where(task < 0, 0, w)
    held = HeldRows(class_codes(inner.classes_, y), w, np.ones(n), group, task, count)
    evidence = gather(np.asarray(P), held)
    return Heard([_decisions(evidence)], task=evidence.task)


def check_frozen(own: dict[str, Any], before: dict[str, Any]) -> None:
    """A frozen model's ``fit`` takes anything and does nothing: what has no meaning is refused here."""
    unknown = [name for name in own if name not in BESIDE] + list(before)
    if unknown:
        raise TypeError(
            f"fit got {', '.join(unknown)}, and the estimator is frozen: nothing is fitted again. Rows that set the "
            f"threshold may come with {', '.join(BESIDE)}."
        )


def _beside(n: int, params: dict[str, Any]) -> tuple[Array, Array | None]:
    """Weights and groups of n rows."""
    given, groups = params.get("sample_weight"), params.get("groups")
    w = np.ones(n) if given is None else np.asarray(given, dtype=float)
    if not w.ndim or len(w) != n:
        raise ValueError(f"sample_weight has shape {w.shape}; it must hold one weight for each of the {n} rows.")
    return w, None if groups is None else check_groups(groups, n)


def label_codes(inner: Any, y: Any, n: int) -> Array:
    """Places of the classes of all labels of rows, (n, T); -1 where one is not known."""
    Y = np.asarray(y).reshape(-1, 1) if is_flat(inner) else y
    return encode_known(Y, inner.label_index_, n, core(inner).missing)


def compared(inner: Any, codes: Array, y: Any) -> tuple[Array, Array]:
    """Which decisions are right, and of which that is known; both of the shape of the codes."""
    if not is_labels(inner):
        return inner.classes_[codes] == np.asarray(y), np.ones(len(codes), dtype=bool)
    true = label_codes(inner, y, len(codes)).reshape(codes.shape)
    return codes == true, true >= 0


def class_codes(classes: Array, y: Any) -> Array:
    """Places of the classes of rows."""
    place = {name: k for k, name in enumerate(classes.tolist())}
    try:
        return np.array([place[name] for name in np.asarray(y).tolist()])
    except KeyError as error:
        raise ValueError(
            f"y holds {error.args[0]!r}; the classes that the model knows are {list(place)[:10]}."
        ) from None


def _heard_labels(inner: Any, P: Any, held: HeldRows) -> Heard:
    tables = label_tables(P, inner.label_index_.form)
    limits = np.broadcast_to(inner.threshold_, len(tables))
    parts = [gather(table, held, t) for t, table in enumerate(tables)]
    return Heard([_decisions(part, limit) for part, limit in zip(parts, limits, strict=True)], labels=True)


def _decisions(evidence: Evidence, threshold: float = 0.5) -> Decisions:
    codes = decided(evidence.P, threshold)
    sure = evidence.P[np.arange(len(codes)), codes]
    return Decisions(sure, codes != evidence.codes, evidence.w, evidence.group, evidence.count)


def decided(P: Array, threshold: float) -> Array:
    """The second of two classes where it has a probability above the threshold; the most probable of more."""
    return (P[:, 1] > threshold).astype(int) if P.shape[1] == 2 else P.argmax(axis=1)


def brought(P: Any) -> Any:
    """Probabilities of one or several tables as numpy's, where they are of another library."""
    return [bring(table) for table in P] if isinstance(P, list) else bring(P)


def judged(model: Any, P: Any) -> tuple[Array, Array]:
    """Codes of the classes decided for, and their probabilities; of shape (n,), or (n, T) for many labels."""
    inner, P = inner_model(model), brought(P)
    if not is_labels(inner):
        P = np.asarray(P, dtype=float)
        codes = decided(P, 0.5)
        return codes, P[np.arange(len(P)), codes]
    tables = label_tables(P, inner.label_index_.form)
    limits = np.broadcast_to(inner.threshold_, len(tables))
    codes = np.column_stack([decided(table, limit) for table, limit in zip(tables, limits, strict=True)])
    sure = [table[np.arange(len(table)), code] for table, code in zip(tables, codes.T, strict=True)]
    return codes, np.column_stack(sure)


def task_codes(model: Any, X: Any, params: dict[str, Any]) -> Array | None:
    """Places of the tasks of rows among those that are known, -1 where not; None for a model without tasks."""
    if not isinstance(core(model), TaskClassifier):
        return None
    model, X = arrive(model, X, through=True)
    return validation.task_codes(model, X, params.get("tasks"))


@dataclass(frozen=True)
class Settled:
    """What ``Abstaining`` keeps, by the names of its attributes; None where it has no such thing."""

    threshold: Any
    coverage: Any
    error_bound: Any
    risk_coverage: Any
    stranger_threshold: float | None = None
    task_thresholds: Array | None = None
    task_guarantees: Array | None = None


def settle_rows(rule: Rule, heard: Heard, tasks: list | None) -> Settled:
    """The thresholds of all rows, of tasks that are not known, and, by their ids, of those that are."""
    decisions, stranger, own, promised = heard.decisions[0], None, None, None
    threshold = rule.threshold(decisions)
    level = np.full(len(decisions), threshold)
    if heard.task is not None:
        stranger = rule.threshold(decisions if heard.stranger is None else heard.stranger)
        if rule.max_error is not None and heard.stranger is None:
            stranger = np.inf
        if tasks is not None:
            own, promised = rule.task_thresholds(decisions, heard.task, len(tasks), threshold)
            level = own[heard.task]
    coverage, bound = rule.outcome(decisions, level)
    if not coverage:
        rule.warn_empty(decisions)
    elif own is not None and np.isinf(own).any():
        assert tasks is not None
        rule.warn_tasks([tasks[t] for t in np.flatnonzero(np.isinf(own))])
    return Settled(threshold, coverage, bound, risk_coverage(decisions, rule.doubt), stranger, own, promised)


def settle_labels(rule: Rule, heard: Heard, names: tuple) -> Settled:
    """A threshold for every label."""
    thresholds = np.array([rule.threshold(d) for d in heard.decisions])
    levels = [np.full(len(d), t) for d, t in zip(heard.decisions, thresholds, strict=True)]
    outcomes = [rule.outcome(d, level) for d, level in zip(heard.decisions, levels, strict=True)]
    coverage, bound = map(np.array, zip(*outcomes, strict=True))
    empty = np.flatnonzero(coverage == 0)
    if len(empty):
        more = "" if len(empty) == 1 else f" (and of {len(empty) - 1} other{'s' if len(empty) > 2 else ''})"
        rule.warn_empty(heard.decisions[empty[0]], f" of label {names[empty[0]]!r}{more}")
    return Settled(thresholds, coverage, bound, [risk_coverage(d, rule.doubt) for d in heard.decisions])
