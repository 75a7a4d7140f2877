"""What was trained: names and values, for a table.

How the parameters were chosen: the points of the search.
"""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from inspect import signature
from typing import Any

import numpy as np
import sklearn

from leastwise.displays._searched import Searched, read_model
from leastwise.report.markup import clean
from leastwise.report.numbers import plain, plain_list
from leastwise.report.reading import Subject

HELD = {"loo": "each row alone, with its copies (leave-one-out)"}


def facts(subject: Subject, seen: Any, version: str, now: datetime | None = None) -> list[list[str]]:
    """Names and values of what there is to know of the fit."""
    model = subject.model
    made = [["Estimator", " of ".join([*subject.wrappers, type(model).__name__])]]
    made += _rows(model, seen)
    made.append(["Columns", f"{model.n_features_in_:,}"])
    made += [["Tasks", f"{len(subject.tasks):,}"]] if subject.tasks else []
    made += [["Labels", f"{len(subject.labels):,}"]] if subject.labels else []
    made += [["Classes", f"{len(subject.class_names()):,}"]] if subject.kind == "classes" else []
    for name, words in (("sigma", "width of the kernel"), ("alpha", "ridge"), ("sharing", "0 alone, 1 pooled")):
        value = getattr(model, f"{name}_", None)
        if isinstance(value, float | np.floating):
            made.append([f"{name} ({words})", f"{value:.4g}"])
    made.append(["Kernel", clean(model.kernel)])
    made += _calibration(subject)
    made.append(["Held out", _held(model)])
    made += _abstention(subject)
    made += _settings(model)
    when = datetime.now(UTC) if now is None else now
    made.append(["Written", f"{when:%Y-%m-%d %H:%M} UTC"])
    made.append(
        ["Made by", f"leastwise {version}, scikit-learn {sklearn.__version__}, Python {platform.python_version()}"]
    )
    return made


def _rows(model: Any, seen: Any) -> list[list[str]]:
    """How many there were; models that were fitted from sums have kept some of them only."""
    sums, held = getattr(model, "moments_", None), seen is not None and seen.heldout
    if sums is None:
        return [["Training rows", f"{seen.n:,}"]] if held else []
    return [["Training rows", f"{sums.n:,}"], *([["Rows that were held out", f"{seen.n:,}"]] if held else [])]


def _held(model: Any) -> str:
    if model.cv is None:
        return "nothing (cv=None)"
    if isinstance(model.cv, str):
        return HELD.get(model.cv, clean(model.cv))
    return f"{model.cv} folds" if isinstance(model.cv, int) else clean(model.cv, 80)


def _calibration(subject: Subject) -> list[list[str]]:
    if subject.kind == "values":
        return []
    made = [["Calibration", clean(getattr(subject.model, "calibration", None) or "none")]]
    if subject.recalibrated is not None:
        made.append(
            ["Recalibrated by", clean(subject.recalibrated.method_ or "nothing: the probabilities as they are")]
        )
    return made


def _abstention(subject: Subject) -> list[list[str]]:
    model = subject.abstaining
    if model is None:
        return []
    asked = [(name, getattr(model, name)) for name in ("max_error", "min_confidence", "cost")]
    made = [["Decides", ", ".join(f"{name}={value:g}" for name, value in asked if value is not None)]]
    if np.ndim(model.threshold_) == 0:
        none = "none: no row is sure enough"
        made.append(["Threshold", f"{model.threshold_:.4g}" if np.isfinite(model.threshold_) else none])
    return made


def _settings(model: Any) -> list[list[str]]:
    """Parameters that are not as they are by default."""
    usual = {name: p.default for name, p in signature(type(model).__init__).parameters.items()}
    given = model.get_params(deep=False)
    other = [f"{name}={clean(repr(value), 60)}" for name, value in given.items() if _differs(value, usual.get(name))]
    return [["Settings", ", ".join(other)]] if other else []


def _differs(value: Any, usual: Any) -> bool:
    return type(value) is not type(usual) or repr(value) != repr(usual)


#: Colours from the best score to one that three quarters of the points reach.
REACH = 0.75
#: So many points of a surface at most; of more every second, third, ... value of alpha.
POINTS = 900
#: Scores that are no words of everyday.
LABELS = {"Held-out cautious": "Held-out cautious score"}


def selection(subject: Subject) -> dict[str, Any] | None:
    """The surface over two parameters and the score against sharing; None where nothing was searched."""
    if not hasattr(subject.model, "cv_results_"):
        return None
    searched = read_model(subject.model)
    stage = searched.largest_stage()
    names = [name for name in ("alpha", "sigma", *sorted(searched.values)) if name in searched.values]
    names = list(dict.fromkeys(names))
    return {
        "label": LABELS.get(stage.label, stage.label),
        "loss": stage.loss,
        "points": len(stage.score),
        "rows": int(stage.rows[0]),
        "all_rows": int(searched.rows.max()),
        "searched": names,
        "chosen": {name: plain(value) for name, value in searched.chosen.items() if name in names},
        "surface": _surface(stage, names[0], names[1]) if len(names) > 1 else None,
        "paths": [_path(stage, name) for name in (["sharing"] if len(names) > 1 else names) if name in names],
    }


def _surface(stage: Searched, x: str, y: str) -> dict[str, Any]:
    """The best score over all other parameters, at every pair of these two."""
    best = stage.best(x, y)
    if len(best.score) > POINTS:
        values = np.unique(best.values[x])
        best = best.only(np.isin(best.values[x], values[:: int(np.ceil(len(best.score) / POINTS))]))
    return {
        "x": x,
        "y": y,
        "at": [plain_list(best.values[x]), plain_list(best.values[y])],
        "score": plain_list(best.score),
        "worst": plain(np.quantile(best.score, REACH if best.loss else 1 - REACH)),
    }


def _path(stage: Searched, name: str) -> dict[str, Any]:
    """The best score over all others, at every value of one parameter."""
    best = stage.best(name)
    order = np.argsort(best.values[name])
    return {"x": name, "at": plain_list(best.values[name][order]), "score": plain_list(best.score[order])}
