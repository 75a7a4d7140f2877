"""Two models on the same rows: their scores, and paired differences with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.metrics.probabilities import class_log_losses, label_log_losses, placed_auc
from leastwise.metrics.reliability import centred_quantiles, resampled_groups
from leastwise.sources.blocks import TableError
from leastwise.tables.evaluation import Predictions, true_target
from leastwise.tables.prepare import Target, group_numbers
from leastwise.tables.table import Array, Table, text_of

#: Bootstrap draws, and the level of the intervals.
DRAWS, LEVEL = 500, 0.95
#: Scores of which a higher value is better.
HIGHER = ("auc", "decided")


@dataclass(frozen=True)
class Score:
    """A score of both models as a function of row weights: ``values[k](w)`` is that of model k."""

    name: str
    values: tuple[Callable[[Array], float], Callable[[Array], float]]


def compare_models(first: Any, second: Any, table: Table, strict: bool = False) -> dict[str, Any]:
    """What :meth:`leastwise.TableModel.compare` returns."""
    _check_comparable(first, second)
    target = true_target(first, table)
    rows = np.flatnonzero(target.known)
    answers = [model.answer(table, strict) for model in (first, second)]
    scores = {"classes": _class_scores, "numbers": _number_scores, "labels": _label_scores}[first.kind_](
        first, second, target, answers, rows
    )
    group, clusters = _groups(first, second, table.take(rows))
    found = _intervals(scores, group)
    notes = list(dict.fromkeys(note for answer in answers for note in answer.notes))
    return {"rows": len(rows), "left_out": len(table) - len(rows), "group": clusters, "scores": found, "notes": notes}


def _check_comparable(first: Any, second: Any) -> None:
    """Both models predict the same columns, with the same classes."""
    pairs = {
        "kind of target": [model.kind_ for model in (first, second)],
        "target": [model.target or list(model.labels) for model in (first, second)],
    }
    if first.kind_ == "classes" and second.kind_ == "classes":
        pairs["classes"] = [sorted(text_of(c) for c in model.classes_) for model in (first, second)]
    for what, (a, b) in pairs.items():
        if a != b:
            raise TableError(f"the models cannot be compared: the {what} of the first is {a}, of the second {b}.")


def _groups(first: Any, second: Any, table: Table) -> tuple[Array, str | None]:
    """The groups that are drawn in the bootstrap: those of the models if the table has the column, else rows."""
    names = [model.group for model in (first, second) if model.group in table.columns]
    return (group_numbers(table, names[0]), names[0]) if names else (np.arange(len(table)), None)


def _intervals(scores: list[Score], group: Array) -> dict[str, dict[str, Any]]:
    """Both values of every score, and the difference, second minus first, with its interval."""
    resamples = resampled_groups(int(group.max()) + 1, DRAWS, np.random.default_rng(0))
    draws = np.array([_differences(scores, times[group].astype(float)) for times in resamples])
    found = {}
    for k, score in enumerate(scores):
        a, b = (value(np.ones(len(group))) for value in score.values)
        known = draws[~np.isnan(draws[:, k]), k]
        low, high = centred_quantiles(known, b - a, LEVEL) if len(known) else (np.nan, np.nan)
        better = None if not (low > 0 or high < 0) else "second" if (low > 0) == (score.name in HIGHER) else "first"
        found[score.name] = {
            "first": a,
            "second": b,
            "difference": b - a,
            "interval": [float(low), float(high)],
            "better": better,
        }
    return found


def _differences(scores: list[Score], w: Array) -> list[float]:
    return [score.values[1](w) - score.values[0](w) for score in scores]


def _mean_of(values: Array, part: Array | None = None) -> Callable[[Array], float]:
    """The weighted mean of the values of the rows, or of those in ``part``; NaN if there are none."""
    inside = np.ones(len(values)) if part is None else part.astype(float)

    def mean(w: Array) -> float:
        mass = w @ inside
        return float((w * inside) @ values / mass) if mass > 0 else np.nan

    return mean


# --------------------------------------------------------------------------- scores


def _class_scores(first: Any, second: Any, target: Target, answers: list[Predictions], rows: Array) -> list[Score]:
    y, names = target.y, [text_of(c) for c in first.classes_]
    order = [[text_of(c) for c in second.classes_].index(name) for name in names]
    P = [answers[0].proba[rows], answers[1].proba[rows][:, order]]  # type: ignore[index]
    wrong = [p.argmax(axis=1) != y for p in P]
    hot = np.eye(len(names))[y]
    scores = [
        Score("log_loss", _both(_mean_of(class_log_losses(p, y)) for p in P)),
        Score("brier", _both(_mean_of(np.sum((p - hot) ** 2, axis=1)) for p in P)),
        Score("error", _both(_mean_of(bad.astype(float)) for bad in wrong)),
    ]
    if len(names) == 2:
        scores.append(Score("auc", _both(_auc_of(y == 1, p[:, 1]) for p in P)))
    return scores + _decision_scores([(bad, answer, rows) for bad, answer in zip(wrong, answers, strict=True)])


def _both(values: Any) -> Any:
    return tuple(values)


def _auc_of(positive: Array, score: Array) -> Callable[[Array], float]:
    place = np.unique(score, return_inverse=True)[1]
    return lambda w: placed_auc(positive, place, w)


def _decision_scores(parts: list[tuple[Array, Predictions, Array]]) -> list[Score]:
    """The share of accepted rows, and their error rate, if both models decide."""
    if any(answer.decided is None for _, answer, _ in parts):
        return []
    decided = [answer.decided[rows] for _, answer, rows in parts]  # type: ignore[index]
    wrong = [bad.astype(float) for bad, _, _ in parts]
    return [
        Score("decided", _both(_mean_of(some.astype(float)) for some in decided)),
        Score("error_of_decided", _both(_mean_of(bad, some) for bad, some in zip(wrong, decided, strict=True))),
    ]


def _number_scores(first: Any, second: Any, target: Target, answers: list[Predictions], rows: Array) -> list[Score]:
    errors = [answer.prediction[rows] - target.y for answer in answers]
    squares = [_mean_of(error**2) for error in errors]
    scores = [
        Score("rmse", _both((lambda w, mean=mean: float(np.sqrt(mean(w)))) for mean in squares)),
        Score("mae", _both(_mean_of(np.abs(error)) for error in errors)),
    ]
    if all(answer.intervals is not None for answer in answers):
        widths = [np.diff(answer.intervals[rows], axis=1)[:, 0] for answer in answers]  # type: ignore[index]
        scores.append(Score("interval_width", _both(map(_mean_of, widths))))
    return scores


def _label_scores(first: Any, second: Any, target: Target, answers: list[Predictions], rows: Array) -> list[Score]:
    """Means over known labels of rows; a row is drawn with all of its labels."""
    known = ~np.isnan(target.y)
    true = np.where(known, target.y, 0) == 1
    losses = [label_log_losses(answer.proba[rows], true) for answer in answers]  # type: ignore[index]
    wrong = [(answer.prediction[rows] != true).astype(float) for answer in answers]
    return [
        Score(name, _both(_ratio_of((V * known).sum(axis=1), known.sum(axis=1)) for V in values))
        for name, values in (("log_loss", losses), ("error", wrong))
    ]


def _ratio_of(sums: Array, counts: Array) -> Callable[[Array], float]:
    return lambda w: float(w @ sums / (w @ counts))
