"""How the parameters were chosen: the points of the search."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.displays._searched import Searched, read_model
from leastwise.report.numbers import plain, plain_list
from leastwise.report.reading import Subject

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
