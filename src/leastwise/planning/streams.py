"""What a fit to a stream takes: rows are not held, but sums, and the design of the rows that are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from leastwise.memory import available_memory, human
from leastwise.planning.choice import SMALL
from leastwise.planning.facts import Facts
from leastwise.planning.single import moments
from leastwise.selection.moments import SAMPLE_ROWS

#: To keep fewer rows than this is no advice.
FEW = 1000


def stream_bytes(f: Facts, centers: int, kept: int) -> int:
    """Memory of a stream with so many centres that keeps so many rows."""
    many = replace(f, n=max(kept, centers), cuttable=True, blocks=1, folds=0, largest=1).with_centers(centers)
    beyond = 24 * centers * max(kept - SAMPLE_ROWS, 0) * f.chooses  # of which plans in memory have none
    return int(max(stage.peak_bytes for stage in moments(many)) + beyond)


def refuse_stream(f: Facts, centers: int, kept: int) -> None:
    """Say what would be needed, what there is, and what to do, before any of it is taken.

    Parameters
    ----------
    f : Facts
        Of the rows that were kept; where these are fewer than the centres, so are the centres.
    centers, kept : int
        Centres as they were asked for, and rows that the model is to keep.
    """
    b = min(centers, f.n) if f.cuttable else f.b
    need, have = stream_bytes(f, b, kept), available_memory()
    room = max(have, SMALL)
    if need <= room:
        return
    ways = []
    if f.cuttable:
        most = largest(lambda count: stream_bytes(f, count, kept) <= room, b)
        ways += [f"n_centers={most} would fit."] if most else []
    fewer = largest(lambda rows: stream_bytes(f, b, rows) <= room, kept) if f.chooses else 0
    ways += [f"keep_rows={fewer} would fit."] if fewer >= FEW else []
    raise MemoryError(
        f"A stream with {b} centres that keeps {kept} rows needs about {human(need)}; {human(have)} are available. "
        + " ".join([*ways, "(leastwise.set_memory_limit or LEASTWISE_MEMORY change the limit.)"])
    )


def largest(fits: Callable[[int], bool], top: int) -> int:
    """The largest number below ``top`` that fits; 0 for none."""
    low, high = 0, top
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
