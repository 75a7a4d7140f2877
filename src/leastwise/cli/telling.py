"""Models in words and small tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from leastwise.cli.showing import Shown
from leastwise.cli.showing import shown as text
from leastwise.tables import TableModel

#: What scores are called.
WORDS = {
    "log_loss": "log-loss",
    "brier": "Brier score",
    "ece": "calibration error (ECE)",
    "auc": "AUC",
    "f1": "F1",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R2",
    "set_coverage": "true class in the set",
    "set_size": "classes in a set",
    "decided": "share decided",
    "error_of_decided": "error among decided",
    "interval_coverage": "true value in the interval",
    "interval_width": "width of the interval",
    "left_out": "rows left out",
}


def words(name: str) -> str:
    """A score as people call it."""
    return WORDS.get(name, name.replace("_", " "))


#: Of a wide table so many columns are shown.
MANY = 60
#: Room for what stands beside the name of a column.
BESIDE = 48


def tell_found(shown: Shown, found: dict[str, Any]) -> None:
    """What will be learned from, before it is."""
    tell_columns(shown, found["columns"], side=True)
    classes = [f"{name} ({count:,})" for name, count in found.get("classes", {}).items()]
    shown.note(f"To predict: {_target(found)}" + (f": {_some(classes)}" if classes else ""))
    tasks = f", {found['tasks']:,} tasks" if "tasks" in found else ""
    left = "".join(f", {count:,} left out with {why}" for why, count in found["left_out"].items() if count)
    shown.note(f"From: {found['rows']:,} rows{tasks}{left}")


def _short(name: str, room: int) -> str:
    """A name that fits in a line: its middle is left out."""
    half = max(room, 16) // 2
    return name if len(name) <= 2 * half else f"{name[: half - 1]}…{name[-half:]}"


def _target(story: dict[str, Any]) -> str:
    target = story["target"]
    return f"{target} ({story['kind']})" if isinstance(target, str) else f"{len(target)} labels: {_some(target)}"


def _some(names: list[str], most: int = 10) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def tell_columns(shown: Shown, columns: list[dict[str, Any]], side: bool) -> None:
    """What was found in the columns; of many the first, and how many of each kind the others are."""
    room = (shown.side if side else shown.front).width - BESIDE
    rows = [[_short(name, room), *rest] for name, *rest in (column.values() for column in columns[:MANY])]
    shown.table("Columns", list(columns[0]), rows, side=side)
    rest = Counter(column["kind"] for column in columns[MANY:])
    if rest:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in rest.items())
        (shown.note if side else shown.say)(f"... and {sum(rest.values()):,} more columns: {kinds}")


def tell_model(shown: Shown, model: TableModel, notes: Callable[[str], bool] = lambda note: True) -> None:
    """What was learned, how good it is on rows that were held out, and the notes that are asked for."""
    story = model.summary()
    chosen = ", ".join(f"{name} {text(value)}" for name, value in story["chosen"].items() if value is not None)
    rows = [
        ["predicts", _target(story)],
        ["from", f"{story['rows']:,} rows, {len(story['features'])} features"],
        ["by", f"{story['model']}: {chosen}"],
    ]
    if story.get("tasks"):
        rows.append(["tasks", f"{len(story['tasks'])} of {story['task']}"])
    rows += [[f"held out: {words(name)}", text(value)] for name, value in story["heldout"].items() if _number(value)]
    rows += _decisions(story.get("decisions"))
    shown.table("Model", ["", ""], rows)
    for note in filter(notes, story["notes"]):
        shown.note(note)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _decisions(rule: dict[str, Any] | None) -> list[list[str]]:
    """The threshold, and what is decided from there."""
    if rule is None:
        return []
    if not _number(rule["threshold"]):  # one for every label
        return [["decides", "label by label"]]
    bound = f", at most {rule['error_bound']:.2%} of them wrongly" if _number(rule["error_bound"]) else ""
    return [
        ["decides from", f"a confidence of {rule['threshold']:.3f} on"],
        ["held out: decides", f"{rule['coverage']:.1%} of the rows{bound}"],
    ]
