"""How good probabilities are: log-loss, Brier score, errors, calibration, and reliability diagrams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.report.numbers import calibration_of, curve_of, mean_of, share_of
from leastwise.report.reading import Part, Seen

Array = np.ndarray

#: So many classes or labels have a diagram of their own.
PANELS = 12


@dataclass(frozen=True)
class Statements:
    """Things said with probability p, and whether they were true; ``unit`` are rows that vary together."""

    p: Array
    true: Array
    w: Array
    unit: Array | None


def statements(part: Part, labels: bool) -> Statements:
    """Of classes that the most probable one is true; of a label with two classes that it has the second one."""
    e = part.evidence
    unit = e.group if e.group is not None else (part.rows if labels else None)
    if labels and e.P.shape[1] == 2:
        return Statements(e.P[:, 1], e.codes == 1, e.w, unit)
    return Statements(e.P.max(axis=1), e.P.argmax(axis=1) == e.codes, e.w, unit)


def together(parts: list[Statements]) -> Statements:
    """All of them."""
    unit = None if parts[0].unit is None else np.concatenate([s.unit for s in parts])
    p, true, w = (np.concatenate([getattr(s, name) for s in parts]) for name in ("p", "true", "w"))
    return Statements(p, true, w, unit)


def measures(seen: Seen) -> dict[str, Any]:
    """Means over rows, or over known labels, with intervals."""
    labels = len(seen.parts) > 1
    parts = [part for part in seen.parts if len(part)]
    said = together([statements(part, labels) for part in parts])
    loss, square, wrong = (np.concatenate([getattr(p, name) for p in parts]) for name in ("loss", "square", "wrong"))
    return {
        "rows": len(np.unique(np.concatenate([part.rows for part in parts]))),
        "entries": len(loss),
        "error": share_of(wrong, said.w, said.unit),
        "log_loss": mean_of(loss, said.w, said.unit),
        "brier": mean_of(square, said.w, said.unit),
        "ece": calibration_of(said.p, said.true, said.w, said.unit),
    }


def reliability(seen: Seen) -> dict[str, Any]:
    """The diagram of all, and one for each class or label, the worst calibrated ones where there are many."""
    labels = len(seen.parts) > 1
    parts = [part for part in seen.parts if len(part)]
    said = together([statements(part, labels) for part in parts])
    every = {**curve_of(said.p, said.true, said.w), "name": ""}
    panels = [_label_panel(part) for part in parts] if labels else _class_panels(parts[0])
    kept = sorted(panels, key=lambda panel: -panel["ece"])[:PANELS] if len(panels) > PANELS else panels
    return {"all": every, "by": "label" if labels else "class", "panels": kept, "left_out": len(panels) - len(kept)}


def _label_panel(part: Part) -> dict[str, Any]:
    said = statements(part, True)
    return {**curve_of(said.p, said.true, said.w), "name": part.name}


def _class_panels(part: Part) -> list[dict[str, Any]]:
    """Each class against the rest; of two classes the second says it all."""
    e = part.evidence
    classes = [1] if e.P.shape[1] == 2 else range(e.P.shape[1])
    return [{**curve_of(e.P[:, k], e.codes == k, e.w), "name": part.classes[k]} for k in classes]
