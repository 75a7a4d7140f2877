"""Rows that lie apart: in parts read one after another, or in the partitions of Dask on many machines.

A fit asks three things of its parts, whatever they are: to ``map`` a function over them, to ``total`` what a function
makes of each (anything with ``+``), and to be ``regrouped`` where rows that belong together lie apart. ``LocalParts``
does it in this process, a part at a time; ``DaskParts`` where Dask has the rows.
"""

from leastwise.distributed.dask_parts import DaskParts, is_dask
from leastwise.distributed.lazy import by_partition
from leastwise.distributed.parts import LocalParts, Parts, local_parts
from leastwise.distributed.pieces import Piece, joined, read_piece
from leastwise.distributed.regrouping import Move, moves

__all__ = [
    "DaskParts",
    "LocalParts",
    "Move",
    "Parts",
    "Piece",
    "by_partition",
    "is_dask",
    "joined",
    "local_parts",
    "moves",
    "read_piece",
]
