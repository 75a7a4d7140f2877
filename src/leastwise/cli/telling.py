"""Models in words and small tables."""

from __future__ import annotations

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


def tell_columns(shown: Shown, model: TableModel, side: bool = True) -> None:
    """What was found in the columns."""
    table = model.encoder_.describe()
    lines = [*zip(*(table[name].tolist() for name in table.names), strict=True)]
    some = lines[:60]
    shown.table("Columns", [name.replace("_", " ") for name in table.names], some, side=side)
    if len(lines) > len(some):
        shown.note(f"... and {len(lines) - len(some)} more columns")


def tell_model(shown: Shown, model: TableModel) -> None:
    """What was learned, and how good it is on rows that were held out."""
    story = model.summary()
    target = story["target"] if isinstance(story["target"], str) else f"{len(story['target'])} labels"
    chosen = ", ".join(f"{name} {text(value)}" for name, value in story["chosen"].items())
    rows = [
        ["predicts", f"{target} ({story['kind']})"],
        ["from", f"{story['rows']:,} rows, {len(story['features'])} features"],
        ["by", f"{story['model']}: {chosen}"],
    ]
    if story.get("tasks"):
        rows.append(["tasks", f"{len(story['tasks'])} of {story['task']}"])
    rows += [[f"held out: {words(name)}", text(value)] for name, value in story["heldout"].items() if _number(value)]
    rows += _decisions(story.get("decisions"))
    shown.table("Model", ["", ""], rows)
    for note in story["notes"]:
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
