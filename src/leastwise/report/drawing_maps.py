"""The pictures of similarities, and of quantities."""

from __future__ import annotations

from typing import Any
from unicodedata import east_asian_width

import numpy as np

from leastwise.report.drawing import HIGH, LEVELS, WIDE
from leastwise.report.markup import figures
from leastwise.svg import Frame, element, picture, short, words

Array = np.ndarray

#: Room for names, the side of the map, and the smallest height of a line of names.
ROOM, MAP, LINE = 140.0, 300.0, 9.0
#: Colours on both sides of zero.
SIGNED = 9


def cut(text: str, most: int) -> str:
    """Text that is no wider than so many letters."""
    width = 0
    for i, letter in enumerate(text):
        width += 2 if east_asian_width(letter) in "WF" else 1
        if width > most:
            return text[: max(i - 1, 1)] + "…"
    return text


def similarity_picture(known: dict[str, Any], key: str) -> str:
    """A map whose rows and columns have the same order, with the names of the rows."""
    cells = np.array([[np.nan if v is None else v for v in line] for line in known["cells"]], dtype=float)
    levels, kind = _levels(cells, known["signed"])
    named = bool(known["names"])
    left, side = (ROOM if named else 10.0), MAP / len(cells)
    body = _shapes(levels, kind, left, side)
    if named:
        step = max(1, int(np.ceil(LINE / side)))
        size = min(11.0, max(0.85 * side * step, 7.5))
        for i in range(0, len(cells), step):
            text = cut(known["names"][i], int((ROOM - 8) / (0.56 * size)))
            y = 6 + (i + 0.5) * side + 0.35 * size
            body += words(text, left - 6, y, "end", "tick", font_size=f"{size:.3g}")
    body += element("rect", x=left, y=6.0, width=MAP, height=MAP, class_="box")
    told = "The closest pairs are in the table beside the map."
    title = f"How similar the {known['by']}s are, in an order in which those alike stand together"
    return picture(left + MAP + 10, MAP + 14, body, key, title, told)


def _levels(cells: Array, signed: bool) -> tuple[Array, str]:
    """Levels of colour, -1 where there is no value; the diagonal does not count where it is far above the rest."""
    if signed:
        far = ends_of(cells, True)[1]
        parts = np.clip(cells / far, -1, 1) * (SIGNED // 2) + SIGNED // 2
        return np.where(np.isnan(cells), -1, np.round(np.nan_to_num(parts))).astype(int), "d"
    low, high = ends_of(cells, False)
    parts = np.clip((cells - low) / (high - low or 1.0), 0, 1) * (LEVELS - 1)
    return np.where(np.isnan(cells), -1, np.round(np.nan_to_num(parts))).astype(int), "h"


def _shapes(levels: Array, kind: str, left: float, side: float) -> str:
    """One shape for every colour, of bars of neighbours."""
    made: dict[int, list[str]] = {}
    for i, line in enumerate(levels):
        starts = np.flatnonzero(np.r_[True, np.diff(line) != 0])
        for a, b in zip(starts, [*starts[1:], len(line)], strict=True):
            x, y = left + a * side, 6 + i * side
            bar = f"M{short(x)} {short(y)}h{(b - a) * side:.2f}v{side + 0.2:.2f}h{-(b - a) * side:.2f}z"
            made.setdefault(int(line[a]), []).append(bar)
    return "".join(
        element("path", d="".join(bars), class_=f"{kind}{level}" if level >= 0 else "none")
        for level, bars in sorted(made.items())
    )


def ends_of(cells: Array, signed: bool) -> tuple[float, float]:
    """The values of the first and the last colour: from zero, unless all values are far above it."""
    off = cells[~np.eye(len(cells), dtype=bool)]
    low, high, far = float(np.nanmin(off)), float(np.nanmax(off)), float(np.nanmax(np.abs(off)))
    if signed:
        return -far, far or 1.0
    return (low if low > high / 2 else min(low, 0.0)), high or 1.0


def range_of(known: dict[str, Any]) -> tuple[str, str]:
    """The values of the ends of the colours, as text."""
    cells = np.array([[np.nan if v is None else v for v in line] for line in known["cells"]], dtype=float)
    low, high = ends_of(cells, known["signed"])
    return figures(low, 3), figures(high, 3)


# -------------------------------------------------------------------------------- quantities


def scatter_picture(output: dict[str, Any], key: str) -> str:
    """True values against predicted ones."""
    y, F = (np.array(v, dtype=float) for v in output["points"])
    low, high = float(min(y.min(), F.min())), float(max(y.max(), F.max()))
    room = 0.04 * (high - low or 1.0)
    span = (low - room, high + room)
    frame = Frame.of((56, 12, 368, 258), span, span)
    body = frame.axes("Predicted", "True") + frame.line(span, span, "even") + frame.dots(F, y, "cloud", 2.4)
    told = f"{len(y)} rows. Share of the variance that is explained: {figures(output['r2']['value'], 3)}."
    return picture(WIDE, HIGH, body, key, "True values against predicted ones", told)


def residual_picture(output: dict[str, Any], key: str) -> str:
    """A histogram of the differences."""
    edges, share = (np.array(output["histogram"][name], dtype=float) for name in ("edges", "share"))
    frame = Frame.of((56, 12, 368, 258), (float(edges[0]), float(edges[-1])), (0, 1.08 * float(share.max())))
    body = frame.axes("True less predicted", "Share of rows", y_text=lambda v: f"{100 * v:.3g}%")
    body += frame.bars(edges, share, "bar strong")
    if edges[0] < 0 < edges[-1]:
        body += frame.line([0, 0], [0, 1.08 * float(share.max())], "even")
    half, most = (figures(output["coverage"][k][2], 3) for k in (0, 2))
    told = f"Half of the rows lie within an interval of width {half}, 90% within {most}."
    return picture(WIDE, HIGH, body, key, "How far off predictions are", told)
