"""Which tasks or labels go together: a map in the order of a clustering, and the closest pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from leastwise.displays._clustering import clustered, dense, off_diagonal
from leastwise.report.numbers import plain
from leastwise.report.reading import Subject
from leastwise.report.tables import column, table

Array = np.ndarray

#: Cells of a side; of more tasks neighbours share one. Leaves are put into the best order up to so many; beyond
#: the last number there is no map.
SIDE, ORDERED, MOST = 60, 200, 3000
#: Pairs that are listed, and how much similarities have to differ, in parts of the largest.
PAIRS, ALIKE = 12, 1e-3


def similarity(subject: Subject) -> dict[str, Any] | None:
    """The map; None for a model without tasks or labels."""
    names = subject.parts
    if len(names) < 2:
        return None
    known = {
        "by": subject.part_word,
        "count": len(names),
        "sharing": plain(getattr(subject.model, "sharing_", np.nan)),
    }
    given = getattr(subject.model, "similarity_", None) if len(names) <= MOST else None
    if given is None:
        return {**known, "note": "many" if len(names) > MOST else "alike"}
    S = dense(given)
    if _alike(S):
        return {**known, "note": "alike"}
    signed = bool((off_diagonal(S) < 0).any())
    order = _order(S, signed)
    cells, members = _blocks(S[np.ix_(order, order)])
    return {
        **known,
        "note": None,
        "signed": signed,
        "names": [names[i] for i in order] if len(names) <= SIDE else [],
        "members": members,
        "cells": [[plain(v) for v in line] for line in cells],
        "pairs": _pairs(S, names, subject.part_word),
    }


def _alike(S: Array) -> bool:
    """Whether there is no difference that could be seen."""
    off = off_diagonal(S)
    return bool(np.ptp(off) <= ALIKE * np.abs(off).max())


def _order(S: Array, signed: bool) -> Array:
    if len(S) <= ORDERED:
        return clustered(S, signed)
    distance = off_diagonal(S).max() - (S + S.T) / 2
    np.fill_diagonal(distance, 0)
    return leaves_list(linkage(squareform(distance, checks=False), "average")).astype(int)


def _blocks(S: Array) -> tuple[Array, int]:
    """Means over blocks of neighbours, without the diagonal, where there are more than fit; and their size."""
    size = int(np.ceil(len(S) / SIDE))
    if size == 1:
        return S, 1
    S, edges = S.copy(), np.arange(0, len(S), size)
    np.fill_diagonal(S, 0)
    there = 1.0 - np.eye(len(S))
    total, count = (np.add.reduceat(np.add.reduceat(A, edges, axis=0), edges, axis=1) for A in (S, there))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan), size


def _pairs(S: Array, names: list[str], by: str) -> dict[str, Any]:
    """The closest pairs, and the most opposed ones where there are any."""
    i, j = np.triu_indices(len(S), 1)
    values = (S[i, j] + S[j, i]) / 2
    top = np.argsort(-values, kind="stable")[:PAIRS]
    low = np.argsort(values, kind="stable")[: PAIRS // 3]
    low = low[(values[low] < 0) & ~np.isin(low, top)][::-1]
    lines = [[names[i[k]], names[j[k]], plain(values[k])] for k in [*top.tolist(), *low.tolist()]]
    word = by.capitalize()
    columns = [column(word, "text"), column(f"and {by}", "text"), column("Similarity")]
    return table("The closest pairs" + (" and the most opposed" if len(low) else ""), columns, lines, "pairs")
