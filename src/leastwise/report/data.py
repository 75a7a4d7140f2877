"""The contents of a report as plain data: measures, tables, facts about the fit and its hyperparameter search."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from inspect import signature
from typing import Any

import numpy as np
import sklearn

from leastwise.displays._search_results import SearchResults, read_model
from leastwise.inspection.feature_weights import named_feature_weights
from leastwise.report.evaluation import (
    Evaluation,
    Subject,
    given_evaluation,
    heldout_evaluation,
    measures,
    reliability,
    subject_of,
)
from leastwise.report.formatting import clean, plain, plain_list
from leastwise.report.regression import given_values, heldout_values, value_data
from leastwise.report.tables import (
    ShownColumns,
    baselines_table,
    class_table,
    effects,
    label_table,
    novelty,
    similarity,
    task_table,
    uncertain_rows,
)
from leastwise.report.thresholds import threshold_data
from leastwise.tables import TableModel
from leastwise.tables.evaluation import kernel_name

#: Colours of the search reach from the best score to the score that this share of the points reaches.
COLOUR_REACH = 0.75
#: At most this many cells of the search are shown; of more, every second, third, ... value of alpha.
MAX_CELLS = 900
#: Number of feature weights among the facts.
MAX_WEIGHTS = 8
#: How to go on, with an estimator in Python.
CALLS = {
    "report": "write_report(model, path, X=X_test, y=y_test)",
    "limit": "Abstaining(max_error=...)",
    "shift": "leastwise.estimate_class_prior estimates new class shares; in_domain() and novelty_pvalue() measure "
    "the distance of a row from the training rows.",
}
#: How to go on, with a model of a table.
COMMANDS = {
    "report": "leastwise report MODEL TEST.csv",
    "limit": "leastwise fit --max-error",
    "shift": "leastwise check MODEL NEW.csv compares new rows with those of training. leastwise predict estimates "
    "new class shares with --class-prior estimate; its columns in_domain and novelty measure the distance of a row "
    "from the training rows.",
}
HYPERPARAMETERS = (("sigma", "kernel width"), ("alpha", "ridge"), ("sharing", "0 independent, 1 pooled"))


def report_data(
    model: Any,
    *,
    title: str | None = None,
    names: Any = None,
    rows: Any = None,
    X: Any = None,
    y: Any = None,
    tasks: Any = None,
    now: datetime | None = None,
) -> dict[str, Any]:
    """Return the contents of a report as dicts, lists, numbers and text, ready for JSON.

    Parameters
    ----------
    model, title, names, rows, X, y, tasks
        As in :func:`write_report`.
    now : datetime, optional
        The time of the report, by default the current time.

    Returns
    -------
    dict
        ``kind`` ("classes", "labels" or "values"), ``facts``, ``selection`` and ``similarity``; of a table model
        ``baselines`` and ``effects``. Where rows were held
        out or given: ``measures``, ``reliability``, ``thresholds``, ``tables``, ``uncertain_rows`` and
        ``novelty``, or ``values`` for a regressor. Numbers have five significant digits; None is a missing value.
    """
    if (X is None) != (y is None):
        raise ValueError("X and y go together: give both the rows and their true values, or neither.")
    subject = subject_of(model, names)
    values = subject.kind == "values"
    trained: Any = heldout_values(subject, tasks if X is None else None) if values else heldout_evaluation(subject)
    known: Any = trained
    if X is not None:
        known = given_values(subject, X, y, tasks) if values else given_evaluation(subject, X, y, tasks)
    if title is None:
        target, estimator = getattr(model, "target", None), type(subject.model).__name__
        title = f"{target}: report on {estimator}" if isinstance(target, str) else f"{estimator}: report"
    data: dict[str, Any] = {
        "title": clean(title),
        "kind": subject.kind,
        "by": subject.part_word if subject.parts else None,
        "source": None if known is None else "heldout" if known.heldout else "given",
        "facts": _facts(subject, trained, now),
        "selection": _selection(subject),
        "similarity": similarity(subject),
        "commands": COMMANDS if isinstance(model, TableModel) else CALLS,
        "baselines": baselines_table(model),
        "effects": effects(model),
    }
    if known is None:
        return data
    shown = ShownColumns(rows, known.n)
    if values:
        return {**data, "values": value_data(subject, known, shown)}
    return data | _classifier_data(subject, known, trained, shown)


def _classifier_data(
    subject: Subject, known: Evaluation, trained: Evaluation | None, shown: ShownColumns
) -> dict[str, Any]:
    tables = [label_table(known)] if subject.kind == "labels" else [class_table(known)]
    if subject.tasks:
        tables.insert(0, task_table(subject, known))
    return {
        "measures": measures(known),
        "heldout_measures": measures(trained) if trained is not None and not known.heldout else None,
        "reliability": reliability(known),
        "thresholds": threshold_data(subject, known),
        "tables": tables,
        "uncertain_rows": uncertain_rows(subject, known, shown),
        "novelty": novelty(subject, known),
    }


# ----------------------------------------------------------------------- facts about the fit


def _facts(subject: Subject, trained: Any, now: datetime | None) -> list[list[str]]:
    """Names and values of the details of the fit; the last two are the date and the version of the report."""
    from leastwise import __version__

    model = subject.model
    facts = [["Estimator", " of ".join([*subject.wrappers, type(model).__name__])]]
    held = trained is not None and trained.heldout
    moments = getattr(model, "moments_", None)
    if moments is not None:  # fitted from moments: only some of the rows were kept
        facts.append(["Training rows", f"{moments.n:,}"])
        facts += [["Rows that were held out", f"{trained.n:,}"]] if held else []
    elif held:
        facts.append(["Training rows", f"{trained.n:,}"])
    facts.append(["Features", f"{model.n_features_in_:,}"])
    facts += [["Tasks", f"{len(subject.tasks):,}"]] if subject.tasks else []
    facts += [["Labels", f"{len(subject.labels):,}"]] if subject.labels else []
    facts += [["Classes", f"{len(subject.class_names()):,}"]] if subject.kind == "classes" else []
    for name, meaning in HYPERPARAMETERS:
        value = getattr(model, f"{name}_", None)
        if isinstance(value, float | np.floating):
            facts.append([f"{name} ({meaning})", f"{value:.4g}"])
    facts += _input_facts(model, subject.inputs)
    facts += _calibration_facts(subject)
    facts.append(["Held out", _held_out(model.cv)])
    facts += _abstention_facts(subject)
    facts += _settings(model)
    facts.append(["Written", f"{datetime.now(UTC) if now is None else now:%Y-%m-%d %H:%M} UTC"])
    libraries = f"scikit-learn {sklearn.__version__}, Python {platform.python_version()}"
    return [*facts, ["Software", f"leastwise {__version__}, {libraries}"]]


def _input_facts(model: Any, names: Sequence[str] | None) -> list[list[str]]:
    """Kernel, scale, and the columns with the largest feature weights."""
    facts = [["Kernel", clean(kernel_name(model))]]
    if model.scale_ is not None:
        facts.append(["Scale of the columns", model.scale_])
    weights = named_feature_weights(model, names)
    if weights is None:
        return facts
    largest = list(weights.items())[:MAX_WEIGHTS]
    return [*facts, ["Largest feature weights", "; ".join(f"{clean(name)} {weight:.2f}" for name, weight in largest)]]


def _held_out(cv: Any) -> str:
    if cv is None:
        return "nothing (cv=None)"
    if isinstance(cv, str):
        return "leave-one-out, duplicates together" if cv == "loo" else clean(cv)
    return f"{cv} folds" if isinstance(cv, int) else clean(cv, 80)


def _calibration_facts(subject: Subject) -> list[list[str]]:
    if subject.kind == "values":
        return []
    facts = [["Calibration", clean(getattr(subject.model, "calibration", None) or "none")]]
    if subject.recalibrated is not None:
        facts.append(["Recalibration", clean(subject.recalibrated.method_ or "none: probabilities are unchanged")])
    return facts


def _abstention_facts(subject: Subject) -> list[list[str]]:
    model = subject.abstaining
    if model is None:
        return []
    options = [(name, getattr(model, name)) for name in ("max_error", "min_confidence", "cost")]
    options += [(f"max_miss of {clean(name)}", limit) for name, limit in (model.max_miss or {}).items()]
    facts = [["Abstention", ", ".join(f"{name}={value:g}" for name, value in options if value is not None)]]
    if np.ndim(model.threshold_) == 0:
        none = "none: every row is rejected"
        facts.append(["Threshold", f"{model.threshold_:.4g}" if np.isfinite(model.threshold_) else none])
    return facts


def _settings(model: Any) -> list[list[str]]:
    """Parameters that differ from their defaults."""
    defaults = {name: p.default for name, p in signature(type(model).__init__).parameters.items()}
    other = [
        f"{name}={clean(repr(value), 60)}"
        for name, value in model.get_params(deep=False).items()
        if name != "categories"
        and (type(value) is not type(defaults.get(name)) or repr(value) != repr(defaults.get(name)))
    ]
    return [["Settings", ", ".join(other)]] if other else []


# -------------------------------------------------------------------- hyperparameter search


def _selection(subject: Subject) -> dict[str, Any] | None:
    """Scores over two hyperparameters, and against sharing; None where nothing was searched."""
    if not hasattr(subject.model, "cv_results_"):
        return None
    searched = read_model(subject.model)
    stage = searched.largest_stage()
    names = [name for name in ("alpha", "sigma", *sorted(searched.values)) if name in searched.values]
    names = list(dict.fromkeys(names))
    return {
        "label": "Held-out cautious score" if stage.label == "Held-out cautious" else stage.label,
        "loss": stage.loss,
        "points": len(stage.score),
        "rows": int(stage.rows[0]),
        "all_rows": int(searched.rows.max()),
        "searched": names,
        "chosen": {name: plain(value) for name, value in searched.chosen.items() if name in names},
        "surface": _surface(stage, names[0], names[1]) if len(names) > 1 else None,
        "paths": [_path(stage, name) for name in (["sharing"] if len(names) > 1 else names) if name in names],
    }


def _surface(stage: SearchResults, x: str, y: str) -> dict[str, Any]:
    """The best score over all other hyperparameters, at every pair of these two."""
    best = stage.best(x, y)
    if len(best.score) > MAX_CELLS:
        values = np.unique(best.values[x])
        best = best.take(np.isin(best.values[x], values[:: int(np.ceil(len(best.score) / MAX_CELLS))]))
    return {
        "x": x,
        "y": y,
        "at": [plain_list(best.values[x]), plain_list(best.values[y])],
        "score": plain_list(best.score),
        "worst": plain(np.quantile(best.score, COLOUR_REACH if best.loss else 1 - COLOUR_REACH)),
    }


def _path(stage: SearchResults, name: str) -> dict[str, Any]:
    """The best score over all other hyperparameters, at every value of this one."""
    best = stage.best(name)
    order = np.argsort(best.values[name])
    return {"x": name, "at": plain_list(best.values[name][order]), "score": plain_list(best.score[order])}
