"""Decisions on held-out rows for ``Abstaining``, the thresholds set on them, and results with rejected rows marked.

Held-out rows are those of the model's own fit or, for a frozen model, the rows given to ``fit``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from leastwise.calibration.conformal import CalibrationSet, HeldRows, gather
from leastwise.calibration.misses import blocked, least_probability, miss_bound, miss_level, smallest_miss_limit
from leastwise.calibration.risk import Decisions, Rule, risk_coverage
from leastwise.estimators._cross_fitting import cross_fit_calibration
from leastwise.estimators.classifiers import TaskClassifier
from leastwise.estimators.multi_label import MultiLabelLSPC
from leastwise.estimators.predicting import label_calibration_sets, label_tables
from leastwise.fitting import new_rows
from leastwise.fitting.checks import check_groups
from leastwise.model_selection.folds import observation_counts
from leastwise.problem.labels import Labels, encode_known
from leastwise.problem.targets.labels import as_column
from leastwise.utils.arrays import bring, text_objects
from leastwise.utils.optional import frames
from leastwise.utils.unwrap import arrive, core, inner_model, is_frozen

Array = np.ndarray

#: Parameters of ``fit`` with a frozen model.
ROW_PARAMS = ("sample_weight", "groups", "tasks")


@dataclass(frozen=True)
class HeldOutDecisions:
    """Held-out rows with their probabilities: one set of them, or one for every label.

    Attributes
    ----------
    parts : list of CalibrationSet
        One for all classes, or one for each label.
    limits : list of float
        The second of two classes is predicted where its probability is above this.
    labels : bool
        True for a multi-label model.
    unseen_task : CalibrationSet, optional
        Rows of tasks that were held out completely.
    """

    parts: list[CalibrationSet]
    limits: list[float]
    labels: bool = False
    unseen_task: CalibrationSet | None = None

    @property
    def decisions(self) -> list[Decisions]:
        """Decisions on the rows, without limits of classes."""
        return [_decisions(part, limit) for part, limit in zip(self.parts, self.limits, strict=True)]


def is_labels(model: Any) -> bool:
    """True for a multi-label model."""
    return isinstance(core(model), MultiLabelLSPC)


def is_flat(model: Any) -> bool:
    """True for a multi-label model that was fitted to a single label, given as one class per row."""
    return is_labels(model) and model.label_index_.form == "flat"


def heldout_decisions(
    model: Any, X: Any, y: Any, params: dict[str, Any], before: dict[str, Any] | None = None, promised: bool = True
) -> HeldOutDecisions:
    """Decisions of a fitted model on held-out rows.

    Parameters
    ----------
    model : estimator
    X, y
        As in ``fit``.
    params, before : dict
        Parameters of ``fit``, from ``split_params``.
    promised : bool
        True if the rows have to prove a limit of errors: few rows are then held out by fits of their own.
    """
    inner = inner_model(model)
    if is_frozen(model):
        return _frozen_decisions(model, inner, X, y, params)
    if not hasattr(inner, "_held_rows"):
        raise ValueError(
            f"{type(inner).__name__} keeps no held-out predictions to set a threshold on: use a classifier of "
            "leastwise, or fit it on other rows and give sklearn.frozen.FrozenEstimator(model)."
        )
    if is_labels(inner):
        return _label_decisions(inner, label_calibration_sets(inner))
    unseen = inner._unseen_task_calibration_set() if isinstance(core(inner), TaskClassifier) else None
    heldout = cross_fit_calibration(model, X, y, params, before or {}) if promised else inner._calibration_set()
    return HeldOutDecisions([heldout], [0.5], unseen_task=unseen)


def _frozen_decisions(model: Any, inner: Any, X: Any, y: Any, params: dict[str, Any]) -> HeldOutDecisions:
    """Decisions on the given rows, which the model has not seen; rows of unseen tasks do not count."""
    more = {"tasks": params["tasks"]} if params.get("tasks") is not None else {}
    P, y = brought(model.predict_proba(X, **more)), bring(y)
    n = P[0].shape[0] if isinstance(P, list) else P.shape[0]
    w, group = _weights_and_groups(n, params)
    count = observation_counts(params.get("sample_weight"))
    if is_labels(inner):
        codes = label_codes(inner, y, n)
        W = np.where(codes >= 0, w if w.ndim == 2 else w[:, None], 0)
        held = HeldRows(codes, W, np.ones(n), group, count=count)
        tables = label_tables(P, inner.label_index_.form)
        return _label_decisions(inner, [gather(table, held, t) for t, table in enumerate(tables)])
    task = task_codes(model, X, more)
    w = w if task is None else np.where(task < 0, 0, w)
    held = HeldRows(class_codes(inner.classes_, y), w, np.ones(n), group, task, count)
    return HeldOutDecisions([gather(np.asarray(P), held)], [0.5])


def check_frozen(own: dict[str, Any], before: dict[str, Any]) -> None:
    """Reject parameters without a meaning, since ``fit`` of a frozen model ignores everything."""
    unknown = [name for name in own if name not in ROW_PARAMS] + list(before)
    if unknown:
        raise TypeError(
            f"fit got {', '.join(unknown)}, but the estimator is frozen and not fitted again. Allowed parameters of "
            f"the rows that set the threshold: {', '.join(ROW_PARAMS)}."
        )


def _weights_and_groups(n: int, params: dict[str, Any]) -> tuple[Array, Array | None]:
    """Weights and groups of n rows."""
    given, groups = params.get("sample_weight"), params.get("groups")
    w = np.ones(n) if given is None else np.asarray(given, dtype=float)
    if not w.ndim or len(w) != n:
        raise ValueError(f"sample_weight has shape {w.shape}; it must hold one weight for each of the {n} rows.")
    return w, None if groups is None else check_groups(groups, n)


def label_codes(inner: Any, y: Any, n: int) -> Array:
    """Codes of the classes of all labels, (n, T); -1 for unknown labels."""
    Y = as_column(y) if is_flat(inner) else y
    return encode_known(Y, inner.label_index_, n, core(inner).missing)


def compared(inner: Any, codes: Array, y: Any) -> tuple[Array, Array]:
    """Correct decisions, and decisions whose true class is known; both of the shape of the codes."""
    if not is_labels(inner):
        return inner.classes_[codes] == np.asarray(text_objects(y)), np.ones(len(codes), dtype=bool)
    true = label_codes(inner, y, len(codes)).reshape(codes.shape)
    return codes == true, true >= 0


def class_codes(classes: Array, y: Any) -> Array:
    """Codes of the classes of rows."""
    place = {name: k for k, name in enumerate(classes.tolist())}
    try:
        return np.array([place[name] for name in np.asarray(text_objects(y)).tolist()])
    except KeyError as error:
        raise ValueError(
            f"y holds {error.args[0]!r}, which is not a class of the model: {list(place)[:10]}."
        ) from None


def _label_decisions(inner: Any, parts: list[CalibrationSet]) -> HeldOutDecisions:
    limits = np.broadcast_to(inner.threshold_, len(parts))
    return HeldOutDecisions(parts, [float(limit) for limit in limits], labels=True)


def _decisions(heldout: CalibrationSet, threshold: float = 0.5, levels: Array | None = None) -> Decisions:
    """Decisions on rows; those that ``levels`` (see ``blocked``) exclude have the confidence -1."""
    codes = decided(heldout.P, threshold)
    confidence, hidden = heldout.P[np.arange(len(codes)), codes], heldout.hidden
    if levels is not None:
        confidence = np.where(blocked(heldout.P, codes, levels), -1.0, confidence)
        hidden += np.isfinite(levels).sum() / 2  # levels were chosen on the same rows
    return Decisions(confidence, codes != heldout.codes, heldout.w, heldout.group, heldout.count, hidden)


def decided(P: Array, threshold: float) -> Array:
    """The second of two classes if its probability is above the threshold; the most probable of more classes."""
    return (P[:, 1] > threshold).astype(int) if P.shape[1] == 2 else P.argmax(axis=1)


def brought(P: Any) -> Any:
    """Probabilities of one or several tables as numpy arrays."""
    return [bring(table) for table in P] if isinstance(P, list) else bring(P)


def confident_decisions(model: Any, P: Any) -> tuple[Array, Array]:
    """Codes of the predicted classes, and their probabilities; of shape (n,), or (n, T) for many labels."""
    inner, P = inner_model(model), brought(P)
    if not is_labels(inner):
        P = np.asarray(P, dtype=float)
        codes = decided(P, 0.5)
        return codes, P[np.arange(len(P)), codes]
    tables = label_tables(P, inner.label_index_.form)
    limits = np.broadcast_to(inner.threshold_, len(tables))
    codes = np.column_stack([decided(table, limit) for table, limit in zip(tables, limits, strict=True)])
    confidence = [table[np.arange(len(table)), code] for table, code in zip(tables, codes.T, strict=True)]
    return codes, np.column_stack(confidence)


def over_levels(model: Any, P: Any, codes: Array, levels: Array) -> Array:
    """Decisions that miss levels exclude, of the shape of the codes; levels are those of classes, or of labels."""
    inner, P = inner_model(model), brought(P)
    if not is_labels(inner):
        return blocked(np.asarray(P, dtype=float), codes, levels)
    tables = label_tables(P, inner.label_index_.form)
    present = np.column_stack([table[:, -1] for table in tables])
    return (codes == 0) & (present >= levels)


def task_codes(model: Any, X: Any, params: dict[str, Any]) -> Array | None:
    """Codes of the tasks of rows, -1 for unseen tasks; None for a model without tasks."""
    if not isinstance(core(model), TaskClassifier):
        return None
    model, X = arrive(model, X, through=True)
    return new_rows.task_codes(model, X, params.get("tasks"))


# ------------------------------------------------------------------ thresholds


@dataclass(frozen=True)
class Thresholds:
    """Fitted attributes of ``Abstaining`` by name; None for those it does not have."""

    threshold: Any
    coverage: Any
    error_bound: Any
    risk_coverage: Any
    unseen_task_threshold: float | None = None
    task_thresholds: Array | None = None
    task_guarantees: Array | None = None
    miss_levels: Array | None = None
    miss_bounds: Array | None = None
    unseen_task_miss_levels: Array | None = None


def row_thresholds(rule: Rule, heldout: HeldOutDecisions, classes: Array, tasks: list | None) -> Thresholds:
    """Thresholds of all rows, of unseen tasks, and of the tasks with these ids."""
    part, unseen = heldout.parts[0], heldout.unseen_task
    limits = _class_limits(rule, classes)
    levels, bounds = _miss_levels(rule, part, limits, classes) if limits else (None, None)
    decisions = _decisions(part, levels=levels)
    threshold = rule.threshold(decisions)
    level = np.full(len(decisions), threshold)
    unseen_task, unseen_levels, own, promised = None, None, None, None
    if part.task is not None:
        unseen_task, unseen_levels = _unseen_task_thresholds(rule, part, unseen, limits, classes)
        if tasks is not None:
            own, promised = rule.task_thresholds(decisions, part.task, len(tasks), threshold)
            level = own[part.task]
    coverage, bound = rule.outcome(decisions, level)
    if not coverage:
        rule.warn_empty(decisions)
    elif own is not None and np.isinf(own).any():
        assert tasks is not None
        rule.warn_tasks([tasks[t] for t in np.flatnonzero(np.isinf(own))])
    curve = risk_coverage(decisions, rule.delta)
    own_tasks = {"task_thresholds": own, "task_guarantees": promised}
    misses = {"miss_levels": levels, "miss_bounds": bounds, "unseen_task_miss_levels": unseen_levels}
    return Thresholds(threshold, coverage, bound, curve, unseen_task, **own_tasks, **misses)


def _unseen_task_thresholds(
    rule: Rule, heldout: CalibrationSet, unseen: CalibrationSet | None, limits: dict[int, float], classes: Array
) -> tuple[float, Array | None]:
    """The threshold of unseen tasks, and their miss levels; without tasks to set them on, limits accept nothing."""
    levels = None
    if limits:
        levels = np.full(len(classes), np.inf)
        levels[list(limits)] = 0.0
        if unseen is not None:
            levels = _miss_levels(rule, unseen, limits)[0]
    threshold = rule.threshold(_decisions(heldout if unseen is None else unseen, levels=levels))
    return np.inf if unseen is None and rule.max_error is not None else threshold, levels


def label_thresholds(rule: Rule, heldout: HeldOutDecisions, names: tuple) -> Thresholds:
    """A threshold for every label."""
    n_labels = len(heldout.parts)
    limits = _class_limits(rule, np.array(names, dtype=object), "labels")
    levels, bounds = np.full(n_labels, np.inf), np.full(n_labels, np.nan)
    for t, limit in limits.items():
        part, place = heldout.parts[t], {1: limit}
        if part.P.shape[1] != 2:
            raise ValueError(f"max_miss[{names[t]!r}] is for a label of two classes; this one has {part.P.shape[1]}.")
        found = _miss_levels(rule, part, place, np.array([f"not {names[t]}", names[t]]), heldout.limits[t])
        levels[t], bounds[t] = found[0][1], found[1][1]
    decisions = [
        _decisions(part, limit, np.array([np.inf, level]) if np.isfinite(level) else None)
        for part, limit, level in zip(heldout.parts, heldout.limits, levels, strict=True)
    ]
    thresholds = np.array([rule.threshold(d) for d in decisions])
    outcomes = [rule.outcome(d, np.full(len(d), t)) for d, t in zip(decisions, thresholds, strict=True)]
    coverage, bound = map(np.array, zip(*outcomes, strict=True))
    empty = np.flatnonzero(coverage == 0)
    if len(empty):
        rule.warn_empty(decisions[empty[0]], names[empty[0]], len(empty) - 1)
    curves = [risk_coverage(d, rule.delta) for d in decisions]
    misses = (levels, bounds) if limits else (None, None)
    return Thresholds(thresholds, coverage, bound, curves, miss_levels=misses[0], miss_bounds=misses[1])


def _class_limits(rule: Rule, names: Array, what: str = "classes") -> dict[int, float]:
    """Limits of missed rows by the code of the class, or the place of the label."""
    place = {name: k for k, name in enumerate(names.tolist())}
    unknown = [name for name in rule.max_miss or {} if name not in place]
    if unknown:
        raise ValueError(f"max_miss names {unknown[0]!r}; the {what} are {list(place)[:20]}.")
    return {place[name]: float(limit) for name, limit in (rule.max_miss or {}).items()}


def _miss_levels(
    rule: Rule, heldout: CalibrationSet, limits: dict[int, float], warned: Array | None = None, threshold: float = 0.5
) -> tuple[Array, Array]:
    """Levels and bounds of all classes; a warning names classes, ``warned``, with a limit that is out of reach."""
    codes, count = decided(heldout.P, threshold), heldout.P.shape[1]
    levels, bounds = np.full(count, np.inf), np.full(count, np.nan)
    for k, limit in limits.items():
        levels[k] = miss_level(heldout, codes, k, limit, rule.delta)
        bounds[k] = miss_bound(heldout, codes, k, levels[k], rule.delta)
        if warned is not None and levels[k] <= least_probability(heldout, codes, k):
            possible = smallest_miss_limit(heldout, codes, k, rule.delta)
            rule.warn_misses(warned[k], limit, heldout.part(np.flatnonzero(heldout.codes == k)), possible)
    return levels, bounds


# --------------------------------------------------------------- rejected rows


def marked(values: Array, accepted: Array, reject: Any) -> Array:
    """Classes with rejected ones replaced by ``reject``."""
    number = values.dtype.kind in "biuf"
    value = (np.nan if number else None) if reject is None else reject
    alike = number and isinstance(value, Real)
    out = values.astype(np.result_type(values, np.asarray(value)) if alike else object)
    out[~accepted] = value
    return out


def marked_labels(labels: Labels, codes: Array, accepted: Array, reject: Any, index: Any) -> Any:
    """Labels in the form given to ``fit``, with rejected ones replaced."""
    if labels.form == "pandas":
        return _in_pandas(labels.decode(codes, index), accepted, reject)
    if labels.form == "polars":
        return _in_polars(labels.decode(codes), accepted, reject)
    if labels.form == "flat":
        return marked(labels.classes[0][codes], accepted, reject)
    return marked(replace(labels, form="array").decode(codes), accepted, reject)


def _in_pandas(table: Any, accepted: Array, reject: Any) -> Any:
    """NaN, or the missing value of the column's type; types do not depend on whether a label is rejected."""
    pandas = frames("pandas")
    columns = []
    for t in range(table.shape[1]):
        column = table.iloc[:, t]
        plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf"
        if plain or reject is not None:
            column = pandas.Series(marked(column.to_numpy(), accepted[:, t], reject), index=table.index)
        else:
            column = column.where(accepted[:, t])
        columns.append(column)
    marks = pandas.DataFrame(dict(enumerate(columns)), index=table.index)
    marks.columns = table.columns
    return marks


def _in_polars(table: Any, accepted: Array, reject: Any) -> Any:
    """Null, which every polars type has."""
    polars = frames("polars")
    columns = []
    for t, column in enumerate(table.iter_columns()):
        kept = zip(column.to_list(), accepted[:, t].tolist(), strict=True)
        values = [value if ok else reject for value, ok in kept]
        kind = column.dtype if reject is None else None
        columns.append(polars.Series(column.name, values, dtype=kind, strict=False))
    return polars.DataFrame(columns)
