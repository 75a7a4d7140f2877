"""Rows that the user gives, with their truth, in place of those that the fit held out."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np

from leastwise.abstention.evidence import class_codes
from leastwise.evidence import HeldRows
from leastwise.inside import arrive
from leastwise.labels.encoding import encode_known
from leastwise.report.reading import Seen, Subject, seen_of

Array = np.ndarray


def with_tasks(function: Any, X: Any, tasks: Any, **more: Any) -> Any:
    """A method of the model within, told the tasks where there are any to tell."""
    told = {} if tasks is None or "tasks" not in signature(function).parameters else {"tasks": tasks}
    return function(X, **told, **more)


def given_rows(subject: Subject, X: Any, y: Any, tasks: Any) -> Seen:
    """What a classifier says of rows that are given."""
    P = subject.whole.predict_proba(X, **({} if tasks is None else {"tasks": tasks}))
    model, within = subject.model, arrive(subject.whole, X, through=True)[1]
    n = P[0].shape[0] if isinstance(P, list) else P.shape[0]
    if len(y) != n:
        raise ValueError(f"y has {len(y)} entries and X has {n} rows: give one for each.")
    trust = np.asarray(with_tasks(model.trust, within, tasks))
    task = model._validated_rows(within, tasks)[1] if hasattr(model, "task_index_") else None
    codes = _codes(model, y, n)
    weight = (codes >= 0).astype(float)
    return seen_of(subject, P, HeldRows(codes, weight, trust, None, task), False)


def _codes(model: Any, y: Any, n: int) -> Array:
    index = getattr(model, "label_index_", None)
    if index is None:
        return class_codes(model.classes_, y)
    flat = index.form == "flat"
    return encode_known(np.asarray(y).reshape(-1, 1) if flat else y, index, n, model.missing)
