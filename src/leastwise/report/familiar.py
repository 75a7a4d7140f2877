"""How familiar rows are: how far they lie from the training rows, and whether that shows in the errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.report.numbers import plain, plain_list, share_of
from leastwise.report.reading import Seen, Subject

#: Rows with at least this trust lie among the training rows.
AMONG = 0.999


def familiarity(subject: Subject, seen: Seen) -> dict[str, Any] | None:
    """Trust of the rows, and errors where it is full and where it is not; None where the model has no reach."""
    reach = getattr(subject.model, "reach_", None)
    if reach is None:
        return None
    counted = np.unique(np.concatenate([part.rows for part in seen.parts]))
    trust = np.asarray(seen.held.trust, dtype=float)[counted]
    trust = trust[~np.isnan(trust)]
    return {
        "radius": plain(reach.radius),
        "rows": len(trust),
        "among": plain(np.mean(trust >= AMONG)),
        "half": plain(np.mean(trust < 0.5)),
        "histogram": plain_list(np.histogram(trust, bins=10, range=(0, 1))[0]),
        "errors": [_errors(seen, True), _errors(seen, False)],
    }


def _errors(seen: Seen, among: bool) -> dict[str, Any] | None:
    """The error rate of rows among the training rows, or of those beyond; None where there are none."""
    wrong, w, rows = [], [], []
    for part in seen.parts:
        here = (np.asarray(seen.held.trust)[part.rows] >= AMONG) == among
        wrong.append(part.wrong[here])
        w.append(part.evidence.w[here])
        rows.append(part.rows[here])
    flat, weight, unit = np.concatenate(wrong), np.concatenate(w), np.concatenate(rows)
    if not len(flat):
        return None
    return {**share_of(flat, weight, unit if len(seen.parts) > 1 else None), "rows": len(np.unique(unit))}
