"""Rows that belong together and lie apart: which part is at home where, and what moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from leastwise.distributed.pieces import Piece
from leastwise.tasks import factor_tasks, split_tasks

Array = np.ndarray


@dataclass(frozen=True)
class Move:
    """What becomes of the rows of one part.

    Attributes
    ----------
    place : int
        Its number.
    first : int
        The number of its first row among all rows.
    home : dict
        For ids of tasks that are at home elsewhere, the number of that part.
    column : str, int or None
        The column of X that holds the task.
    """

    place: int
    first: int
    home: dict
    column: Any = None

    @cached_property
    def targets(self) -> set[int]:
        """Parts that get rows from this one."""
        return set(self.home.values())

    def sent(self, piece: Piece, target: int) -> Piece:
        """The rows of the part that are at home in another one, or stay."""
        piece = piece.numbered(self.first)
        if not self.home or not len(piece):
            return piece if target == self.place else piece.take(np.arange(0))
        ids = piece.tasks if self.column is None else split_tasks(piece.X, self.column)[1]
        names, index = factor_tasks(ids, len(piece))
        where = np.array([self.home.get(name, self.place) for name in names])
        return piece.take(np.flatnonzero(where[index] == target))


def moves(
    ids: Sequence[list], sizes: Sequence[Array], rows: Sequence[int], column: Any = None, home: str = "most"
) -> list[Move]:
    """What has to move so that every task lies in one part.

    Parameters
    ----------
    ids, sizes : for every part, the ids of its tasks and how many rows each has there
    rows : number of rows of every part
    column : str, int or None
        The column of X that holds the task.
    home : {"most", "last"}
        Where: the part that has most of its rows, the first of several; or the last that has some.
    """
    best: dict[Any, tuple[int, int]] = {}
    apart: set[Any] = set()
    for p, (names, counts) in enumerate(zip(ids, sizes, strict=True)):
        for name, count in zip(names, counts.tolist(), strict=True):
            known = best.get(name)
            if known is not None:
                apart.add(name)
            if known is None or home == "last" or count > known[0]:
                best[name] = count, p
    first = np.cumsum([0, *rows])
    found = []
    for p, names in enumerate(ids):
        away = {name: best[name][1] for name in names if name in apart and best[name][1] != p}
        found.append(Move(p, int(first[p]), away, column))
    return found
