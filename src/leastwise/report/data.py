"""All that the page says, as plain numbers and words."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from leastwise.report.decisions import threshold_data
from leastwise.report.facts import facts, selection
from leastwise.report.markup import clean
from leastwise.report.quality import measures, reliability
from leastwise.report.reading import Seen, Subject, given_rows, held_out, subject_of
from leastwise.report.tables import class_table, label_table, similarity, task_table
from leastwise.report.uncertain_rows import Shown, familiarity, unsure_tables
from leastwise.report.values import given_values, held_out_values, value_data


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
    """What a report says of a model, as dicts, lists, numbers and words, ready for JSON.

    Parameters
    ----------
    model, title, names, rows, X, y, tasks
        As in :func:`write_report`.
    now : datetime, optional
        When the report is written, by default now.

    Returns
    -------
    dict
        ``kind`` ("classes", "labels" or "values"), ``facts``, ``selection``, ``similarity``, and, where rows were
        held out or given: ``measures``, ``reliability``, ``thresholds``, ``tables``, ``unsure`` and ``familiarity``,
        or, for quantities, ``values``. Numbers have five digits that count; None stands for what is not known.
    """
    from leastwise import __version__

    if (X is None) != (y is None):
        raise ValueError("X and y go together: give the rows and the truth of each, or neither.")
    subject = subject_of(model, names)
    known, trained = _rows(subject, X, y, tasks)
    made: dict[str, Any] = {
        "title": clean(title if title is not None else _title(model, subject)),
        "kind": subject.kind,
        "by": subject.part_word if subject.parts else None,
        "source": None if known is None else "heldout" if known.heldout else "given",
        "facts": facts(subject, trained, __version__, now),
        "selection": selection(subject),
        "similarity": similarity(subject),
    }
    if known is None:
        return made
    shown = Shown(rows, known.n)
    if subject.kind == "values":
        return {**made, "values": value_data(subject, known, shown)}
    return made | _of_classes(subject, known, trained, shown)


def _title(model: Any, subject: Subject) -> str:
    """The model, and the column that it predicts where it is one of a table."""
    name, target = type(subject.model).__name__, getattr(model, "target", None)
    return f"{target}: report on {name}" if isinstance(target, str) else f"{name}: report"


def _rows(subject: Subject, X: Any, y: Any, tasks: Any) -> tuple[Any, Any]:
    """What the report is about, and what the fit held out; both None where there is nothing."""
    values = subject.kind == "values"
    told = tasks if X is None else None
    trained: Any = held_out_values(subject, told) if values else held_out(subject)
    if X is None:
        return trained, trained
    return (given_values if values else given_rows)(subject, X, y, tasks), trained


def _of_classes(subject: Subject, seen: Seen, trained: Seen | None, shown: Shown) -> dict[str, Any]:
    tables = [label_table(seen)] if subject.kind == "labels" else [class_table(seen)]
    if subject.tasks:
        tables.insert(0, task_table(subject, seen))
    return {
        "measures": measures(seen),
        "heldout_measures": measures(trained) if trained is not None and not seen.heldout else None,
        "reliability": reliability(seen),
        "thresholds": threshold_data(subject, seen),
        "tables": tables,
        "unsure": unsure_tables(subject, seen, shown),
        "familiarity": familiarity(subject, seen),
    }
