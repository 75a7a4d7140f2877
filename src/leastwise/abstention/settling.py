"""The thresholds that a rule leads to, of rows, tasks and labels, and what held-out rows make of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.abstention.evidence import Heard
from leastwise.abstention.rule import Rule
from leastwise.risk import risk_coverage

Array = np.ndarray


@dataclass(frozen=True)
class Settled:
    """What ``Abstaining`` keeps, by the names of its attributes; None where it has no such thing."""

    threshold: Any
    coverage: Any
    error_bound: Any
    risk_coverage: Any
    stranger_threshold: float | None = None
    task_thresholds: Array | None = None
    task_guarantees: Array | None = None


def settle_rows(rule: Rule, heard: Heard, tasks: list | None) -> Settled:
    """The thresholds of all rows, of tasks that are not known, and, by their ids, of those that are."""
    decisions, stranger, own, promised = heard.decisions[0], None, None, None
    threshold = rule.threshold(decisions)
    level = np.full(len(decisions), threshold)
    if heard.task is not None:
        stranger = rule.threshold(decisions if heard.stranger is None else heard.stranger)
        if rule.max_error is not None and heard.stranger is None:
            stranger = np.inf
        if tasks is not None:
            own, promised = rule.task_thresholds(decisions, heard.task, len(tasks), threshold)
            level = own[heard.task]
    coverage, bound = rule.outcome(decisions, level)
    if not coverage:
        rule.warn_empty(decisions)
    elif own is not None and np.isinf(own).any():
        assert tasks is not None
        rule.warn_tasks([tasks[t] for t in np.flatnonzero(np.isinf(own))])
    return Settled(threshold, coverage, bound, risk_coverage(decisions, rule.doubt), stranger, own, promised)


def settle_labels(rule: Rule, heard: Heard, names: tuple) -> Settled:
    """A threshold for every label."""
    thresholds = np.array([rule.threshold(d) for d in heard.decisions])
    levels = [np.full(len(d), t) for d, t in zip(heard.decisions, thresholds, strict=True)]
    outcomes = [rule.outcome(d, level) for d, level in zip(heard.decisions, levels, strict=True)]
    coverage, bound = map(np.array, zip(*outcomes, strict=True))
    empty = np.flatnonzero(coverage == 0)
    if len(empty):
        more = "" if len(empty) == 1 else f" (and of {len(empty) - 1} other{'s' if len(empty) > 2 else ''})"
        rule.warn_empty(heard.decisions[empty[0]], f" of label {names[empty[0]]!r}{more}")
    return Settled(thresholds, coverage, bound, [risk_coverage(d, rule.doubt) for d in heard.decisions])
