"""Names that fit, and tell apart what they name.

Models within pipelines, searches and wrappers: where they keep what is drawn.

Bins of a reliability diagram, with intervals.

Errors among accepted rows, at every threshold.

What was said with which probability, and whether it was so: for rows, tasks, classes and labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from re import finditer
from typing import Any

import numpy as np
from scipy.stats import beta
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from leastwise.estimators.abstaining import Abstaining
from leastwise.metrics.probabilities import checked_probabilities
from leastwise.problem.labels import Labels, encode_known, encode_labels
from leastwise.problem.tasks import encode_tasks
from leastwise.utils.text_format import shortened

#: A class is named at the axes with so many letters.
NAME = 26


def words_for(pos_label: Any) -> tuple[str, str]:
    """What the axes of reliability are called where one class is looked at, or the most probable one."""
    if pos_label is None:
        return "Confidence", "Accuracy"
    (name,) = fitting([pos_label], NAME)
    return f"Probability of {name}", f"Share of {name}"


def class_name(label: Any) -> str:
    """A word speaks for itself, a number does not."""
    return label if isinstance(label, str) else f"class {label}"


def fitting(names: Sequence[Any], width: int) -> list[str]:
    """Names of at most so many letters: without words that all have at the front and, if need be, at the end."""
    short = shortened(names, width)
    if not any("…" in name[1:] for name in short):
        return short
    texts = [" ".join(str(name).split()) for name in names]
    end = _common_end(texts)
    return shortened([text[: len(text) - end] + "…" for text in texts] if end else names, width)


def _common_end(texts: list[str]) -> int:
    """How many letters all have in common at the end, in whole words, with something before them."""
    first, *others = texts
    words = (match.start() for match in finditer(r"\b\W+\b", first))
    ends = (first[start:] for start in words if 0 < start <= len(first) - 4)
    shared = (e for e in ends if others and all(t.endswith(e) and len(t) > len(e) for t in others))
    return len(next(shared, ""))


def layers(model: Any) -> Iterator[Any]:
    """The model, then what is inside, as far as it goes."""
    while model is not None:
        yield model
        if isinstance(model, Pipeline):
            model = model.steps[-1][1]
        elif isinstance(model, FrozenEstimator):
            model = model.estimator
        else:
            inside = (getattr(model, name, None) for name in ("estimator_", "best_estimator_"))
            model = next((found for found in inside if found is not None), None)


def holder(model: Any, attribute: str) -> Any:
    """The outermost layer that has an attribute; the model itself where there is none."""
    return next((layer for layer in layers(model) if hasattr(layer, attribute)), model)


def having(model: Any, attribute: str, instead: str) -> Any:
    """The outermost layer that has an attribute, or an error that says what to do."""
    found = holder(model, attribute)
    if not hasattr(found, attribute):
        raise ValueError(f"{type(model).__name__} has no {attribute}: {instead}.")
    return found


def rule_of(model: Any) -> Abstaining | None:
    """The layer that decides or leaves to a person, where there is one."""
    return next((layer for layer in layers(model) if isinstance(layer, Abstaining)), None)


def called(model: Any) -> str:
    """The name in a legend: that of the first layer which makes probabilities, and does not only hand them on."""
    hands_on = (Pipeline, FrozenEstimator, Abstaining)
    own = (x for x in layers(model) if not isinstance(x, hands_on) and not hasattr(x, "best_estimator_"))
    return type(next(own, model)).__name__


def predicted(estimator: Any, X: Any, tasks: Any) -> Any:
    """Probabilities of rows; the tasks go along where the model asks for them and has no column for them."""
    *_, inner = layers(estimator)
    asks = "tasks" in signature(inner.predict_proba).parameters and getattr(inner, "task_column", None) is None
    return estimator.predict_proba(X, tasks=tasks) if asks and tasks is not None else estimator.predict_proba(X)


def heldout(model: Any, y: Any) -> Any:
    """Probabilities of the training rows when these were held out."""
    rule = rule_of(model)
    if rule is not None and isinstance(getattr(rule, "estimator_", None), FrozenEstimator):
        raise ValueError(
            "The model is frozen: its held-out rows are not those that the threshold was set on. Use from_estimator "
            "with the latter."
        )
    instead = (
        "fit a classifier of leastwise with cv= other than None, or use from_estimator with rows that it was not "
        "trained on"
    )
    P = having(model, "heldout_proba_", instead).heldout_proba_
    given, known = (_rows(table) for table in (y, P[0] if isinstance(P, list) else P))
    if given != known:
        raise ValueError(
            f"y has {given} rows, and the model was fitted to {known}: give the latter, or use from_estimator."
        )
    return P


def _rows(table: Any) -> int:
    return int(table.shape[0]) if hasattr(table, "shape") else len(table)


Array = np.ndarray


def choose(name: str, value: Any, allowed: Sequence[Any]) -> None:
    """An error where a value is none of those that there are."""
    if value not in allowed:
        words = ", ".join(repr(item) for item in allowed[:-1])
        raise ValueError(f"{name}={value!r} is not known: use {words} or {allowed[-1]!r}.")


INTERVALS = ("exact", "bootstrap", None)


@dataclass(frozen=True)
class Bins:
    """Rows in bins of the same size, in rising order of p: means of both, counts, and which bin each row is in."""

    p: Array
    share: Array
    counts: Array
    member: Array

    @property
    def error(self) -> float:
        """Expected calibration error."""
        return float(np.abs(self.p - self.share) @ self.counts / self.counts.sum())


def binned(what: Said, n_bins: int) -> Bins:
    """At most ``n_bins`` bins, none of them empty."""
    n = len(what.p)
    if int(n_bins) < 1:
        raise ValueError(f"n_bins={n_bins!r} must be 1 or more.")
    member = np.empty(n, dtype=int)
    member[np.argsort(what.p, kind="stable")] = np.arange(n) * min(int(n_bins), n) // n
    counts = np.bincount(member)
    p, share = (np.bincount(member, weights=v) / counts for v in (what.p, what.true))
    return Bins(p, share, counts, member)


def interval_of(
    bins: Bins, true: Array, kind: str | None, level: float, groups: Any = None, draws: int = 1000, seed: int = 0
) -> tuple[Array, Array] | tuple[None, None]:
    """Lower and upper ends of an interval for the share of every bin."""
    choose("interval", kind, INTERVALS)
    if not 0 < level < 1:
        raise ValueError(f"level={level!r} must be between 0 and 1, 0.95 for instance.")
    if groups is not None and kind != "bootstrap":
        raise ValueError("groups= are drawn anew as wholes, which needs interval='bootstrap'.")
    if kind is None:
        return None, None
    if kind == "exact":
        return exact_interval(bins.share * bins.counts, bins.counts, level)
    return _drawn_anew(bins, true, level, groups, draws, seed)


def exact_interval(successes: Any, trials: Any, level: float = 0.95) -> tuple[Array, Array]:
    """Clopper and Pearson's interval for a binomial share: covers it with a probability of at least ``level``."""
    k, n, tail = np.asarray(successes, dtype=float).round(), np.asarray(trials), (1 - level) / 2
    # At the borders there is nothing beyond; beta.ppf has no value there.
    low = np.where(k > 0, beta.ppf(tail, np.maximum(k, 1), n - k + 1), 0.0)
    high = np.where(k < n, beta.ppf(1 - tail, k + 1, np.maximum(n - k, 1)), 1.0)
    return low, high


def exact_upper(errors: Array, trials: Array, level: float) -> Array:
    """The one-sided bound: the share is above it with a probability of at most ``1 - level``."""
    return np.where(errors < trials, beta.ppf(level, errors + 1, np.maximum(trials - errors, 1)), 1.0)


def _drawn_anew(bins: Bins, true: Array, level: float, groups: Any, draws: int, seed: int) -> tuple[Array, Array]:
    """Quantiles over draws of rows, or of whole groups of rows, with replacement; the bins stay as they are."""
    member, rng = bins.member, np.random.default_rng(seed)
    place = np.arange(len(member)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    m, b = int(place.max()) + 1, len(bins.counts)
    rows, hits = np.zeros((m, b)), np.zeros((m, b))
    np.add.at(rows, (place, member), 1)
    np.add.at(hits, (place, member), true)
    shares = np.empty((draws, b))
    for i in range(draws):
        times = np.bincount(rng.integers(m, size=m), minlength=m)
        n = times @ rows
        shares[i] = np.where(n > 0, times @ hits / np.maximum(n, 1), np.nan)  # a bin may be missing from a draw
    tail = (1 - level) / 2
    low, high = np.nanquantile(shares, [tail, 1 - tail], axis=0)
    return low, high


def accepted(confidence: Array, wrong: Array) -> tuple[Array, Array, Array]:
    """For every threshold, from the highest: the threshold, and how many rows and errors are at or above it."""
    levels, place = np.unique(-confidence, return_inverse=True)
    return -levels, np.cumsum(np.bincount(place)), np.cumsum(np.bincount(place, weights=wrong))


def area_under(confidence: Array, wrong: Array) -> float:
    """Mean over k of the error among the k most confident rows, ties in random order."""
    _, place, count = np.unique(-confidence, return_inverse=True, return_counts=True)
    expected = (np.bincount(place, weights=wrong) / count)[np.sort(place)]
    return float(np.mean(np.cumsum(expected) / np.arange(1, len(place) + 1)))


def given(confidence: Any, proba: Any) -> Array:
    """Confidences that were given, of the rows that have probabilities."""
    values, P = np.asarray(confidence, dtype=float), np.asarray(proba, dtype=float)
    if values.shape != (len(P),) or np.isnan(values).any():
        raise ValueError(
            f"confidence of shape {values.shape} must hold one number, not NaN, for each of {len(P)} rows."
        )
    return values[~np.isnan(P.reshape(len(P), -1)).any(axis=1)]


@dataclass(frozen=True)
class Said:
    """Things that were said with probability p (n,), and whether they were true (n,)."""

    p: Array
    true: Array
    name: str | None = None

    def some(self, rows: Array, name: Any) -> Said:
        """Those of some rows."""
        return Said(self.p[rows], self.true[rows], str(name))


def together(parts: list[Said]) -> Said:
    """All that was said."""
    return Said(np.concatenate([s.p for s in parts]), np.concatenate([s.true for s in parts]))


def is_table(y: Any) -> bool:
    """Whether every row has several labels."""
    return len(getattr(y, "shape", None) or np.shape(y)) == 2


# ------------------------------------------------------------------- classes


def said(y: Any, proba: Any, classes: Any = None, pos_label: Any = None) -> Said:
    """Of every row that its most probable class is the true one; with ``pos_label``, that this class is."""
    y, P, classes = known_rows(y, proba, classes)
    if pos_label is None:
        return Said(P.max(axis=1), classes[P.argmax(axis=1)] == y)
    place = np.flatnonzero(classes == pos_label)
    if not len(place):
        raise ValueError(f"pos_label={pos_label!r} is none of the classes {classes.tolist()}.")
    return Said(P[:, place[0]], y == pos_label)


def known_rows(y: Any, proba: Any, classes: Any) -> tuple[Array, Array, Array]:
    """Labels, probabilities and classes, without rows that have no probability (those that were never held out)."""
    P = np.asarray(proba, dtype=float)
    if P.ndim == 1:  # that of the second class
        P = np.stack([1 - P, P], axis=1)
    y, P, classes = checked_probabilities(y, P, classes)
    there = ~np.isnan(P).any(axis=1)
    if not there.any():
        raise ValueError(f"None of the {len(y)} rows has probabilities: all are NaN, or there are no rows.")
    return y[there], P[there], classes


def by_class(y: Any, proba: Any, classes: Any = None) -> list[Said]:
    """Each class against the rest."""
    y, P, classes = known_rows(y, proba, classes)
    return [Said(P[:, k], y == name, class_name(name)) for k, name in enumerate(classes)]


def by_task(y: Any, proba: Any, tasks: Any, classes: Any = None, pos_label: Any = None) -> list[Said]:
    """The rows of each task."""
    codes, known = encode_tasks(tasks, len(y))
    P = np.asarray(proba, dtype=float)
    codes = codes[~np.isnan(P.reshape(len(P), -1)).any(axis=1)]
    everything = said(y, proba, classes, pos_label)
    parts = [everything.some(codes == t, name) for t, name in enumerate(known.ids)]
    return [part for part in parts if len(part.p)]


# -------------------------------------------------------------------- labels


def by_label(Y: Any, proba: Any, *, top: bool, names: Any = None, model: Any = None) -> list[Said]:
    """What was said of each label, where it is known.

    With ``top`` that the most probable class is the true one; otherwise that the second class is, of labels of two.
    """
    codes, labels = _codes(Y, model)
    names = labels.names if names is None else list(names)
    columns = proba if isinstance(proba, list) else list(np.asarray(proba, dtype=float).T)
    if len(columns) != codes.shape[1] or len(names) != codes.shape[1]:
        raise ValueError(
            f"y has {codes.shape[1]} labels, proba {len(columns)}, and there are {len(names)} names: give one of "
            "each for every label."
        )
    parts = [_of_label(p, codes[:, t], top, names[t]) for t, p in enumerate(columns)]
    return [part for part in parts if len(part.p)]


def _codes(Y: Any, model: Any) -> tuple[Array, Labels]:
    n = Y.shape[0] if hasattr(Y, "shape") else len(Y)
    if model is None:
        return encode_labels(Y, n)
    return encode_known(Y, model.label_index_, n, model.missing), model.label_index_


def _of_label(p: Array, code: Array, top: bool, name: Any) -> Said:
    P = np.stack([1 - p, p], axis=1) if p.ndim == 1 else p
    there = (code >= 0) & ~np.isnan(P).any(axis=1)
    P, code = P[there], code[there]
    if top or P.shape[1] > 2:
        return Said(P.max(axis=1), P.argmax(axis=1) == code, str(name))
    return Said(P[:, 1], code == 1, str(name))
