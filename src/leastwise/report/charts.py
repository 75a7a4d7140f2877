"""The pictures of probabilities: reliability, errors against what is decided, histograms.

The pictures of similarities, and of quantities.
"""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import Any
from unicodedata import east_asian_width

import numpy as np

from leastwise.report.markup import figures, percent
from leastwise.utils.svg import Frame, element, picture, short, words

Array = np.ndarray

WIDE, HIGH = 380.0, 300.0
BOX = (46.0, 12.0, 368.0, 258.0)


def _percent_tick(value: float) -> str:
    return f"{100 * value:.3g}%"


def reliability_picture(curve: dict[str, Any], key: str, x_name: str, y_name: str, title: str) -> str:
    """A curve with intervals, the diagonal, and a histogram below."""
    frame = Frame.of((46, 12, 368, 252), (0, 1), (0, 1))
    body = frame.axes("", y_name) + frame.line([0, 1], [0, 1], "even")
    body += frame.whiskers(curve["p"], curve["low"], curve["high"], "whisker")
    body += frame.line(curve["p"], curve["share"], "curve") + frame.dots(curve["p"], curve["share"], "dot", 3.2)
    top = max(curve["histogram"]) or 1.0
    below = Frame.of((46, 276, 368, 322), (0, 1), (0, top))
    body += below.bars(np.linspace(0, 1, 21), curve["histogram"], "bar")
    body += element("line", x1=46, x2=368, y1=322, y2=322, class_="base")
    body += words("rows", 40, 303, "end", "tick") + words(x_name, 207, 338, kind="axis")
    return picture(WIDE, 346, body, key, title, _told(curve))


def _told(curve: dict[str, Any]) -> str:
    pairs = zip(curve["p"], curve["share"], curve["low"], curve["high"], curve["rows"], strict=True)
    return "; ".join(
        f"said {percent(p)}, true {percent(s)} ({percent(a)} to {percent(b)}) of {n} rows" for p, s, a, b, n in pairs
    )


def panel(curve: dict[str, Any], key: str) -> str:
    """A small reliability diagram."""
    frame = Frame.of((24, 6, 184, 166), (0, 1), (0, 1))
    body = element("rect", x=24, y=6, width=160, height=160, class_="box")
    heights = np.array(curve["histogram"], dtype=float)
    body += frame.bars(np.linspace(0, 1, 21), 0.4 * heights / max(heights.max(), 1e-300), "bar")
    body += frame.line([0, 1], [0, 1], "even") + frame.whiskers(curve["p"], curve["low"], curve["high"], "whisker")
    body += frame.line(curve["p"], curve["share"], "curve") + frame.dots(curve["p"], curve["share"], "dot", 2.4)
    body += "".join(words(t, frame.x(t), 179, kind="tick") for t in (0, 1))
    body += "".join(words(t, 19, float(frame.y(t)) + 4, "end", "tick") for t in (0, 1))
    return picture(190, 184, body, key, f"Reliability of {curve['name']}", _told(curve))


def risk_frame(group: dict[str, Any]) -> Frame:
    """Errors among decided rows against the share that is decided."""
    return Frame.of(BOX, (0, 1), (0, group["top"]))


def risk_picture(thresholds: dict[str, Any], key: str, place: int) -> str:
    """The curve with its bound, and a mark where the slider stands."""
    group = thresholds["groups"][0]
    frame = risk_frame(group)
    left, above, right, bottom = BOX
    clip = element("rect", x=left, y=above - 2, width=right - left + 4, height=bottom - above + 4)
    body = f'<clipPath id="{key}-clip">{clip}</clipPath>'
    unit = thresholds["unit"]
    body += frame.axes(f"Share of {unit} that are decided", "Errors among these", _percent_tick, _percent_tick)
    lines = [
        element("path", d=_line(frame, group, "bound"), class_="bound", id=f"{key}-bound"),
        element("path", d=_line(frame, group, "error"), class_="curve", id=f"{key}-error"),
    ]
    x, y = _mark(frame, group, place)
    lines.append(element("line", x1=x, x2=x, y1=above, y2=bottom, class_="mark", id=f"{key}-line"))
    lines.append(element("circle", cx=x, cy=y, r=5.0, class_="spot", id=f"{key}-spot"))
    body += element("g", *lines, clip_path=f"url(#{key}-clip)")
    title = "Errors against the share that is decided"
    description = (
        f"Errors among decided {unit} rise to {percent(group['error'][0])} where all are decided. The dashed line "
        f"is the upper bound, true with {percent(thresholds['confidence'], 0)} at each threshold. The table below "
        "has the numbers."
    )
    return picture(WIDE, HIGH, body, key, title, description, data_box=" ".join(map(short, BOX)))


def _line(frame: Frame, group: dict[str, Any], name: str) -> str:
    pairs = [(c, v) for c, v in zip(group["coverage"], group[name], strict=True) if v is not None]
    points = frame.points(*np.array(pairs, dtype=float).T) if pairs else []
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) if points else ""


def _mark(frame: Frame, group: dict[str, Any], place: int) -> tuple[float, float]:
    error = group["error"][place]
    return float(frame.x(group["coverage"][place])), float(frame.y(0.0 if error is None else error))


def trust_picture(known: dict[str, Any], key: str) -> str:
    """How the rows spread over trust."""
    share = np.array(known["histogram"], dtype=float) / max(known["rows"], 1)
    frame = Frame.of((46, 12, 368, 158), (0, 1), (0, 1))
    body = frame.axes(
        "Trust, from 0 (far from all) to 1 (among the training rows)", "Share of rows", y_text=_percent_tick
    )
    body += frame.bars(np.linspace(0, 1, 11), share, "bar strong")
    among, half = percent(known["among"]), percent(known["half"])
    told = f"{among} of the rows lie among the training rows; {half} have a trust below one half."
    return picture(WIDE, 200, body, key, "How familiar the rows are", told)


# ---------------------------------------------------------------------------------- heat maps

LEVELS = 10


def scale_picture(low: str, high: str, kind: str, levels: int) -> str:
    """A bar of colours with its ends."""
    cells = "".join(
        element("rect", x=70 + k * 200 / levels, y=3.0, width=200 / levels + 0.3, height=9.0, class_=f"{kind}{k}")
        for k in range(levels)
    )
    ends = words(low, 64, 11.5, "end", "tick") + words(high, 276, 11.5, "start", "tick")
    return element("svg", cells, ends, viewBox="0 0 340 16", class_="scale", aria_hidden="true")


def edges(values: Array, log: bool) -> Array:
    """Borders half-way between sorted values; the outer ones as far outside as their neighbours are inside."""
    v = np.log10(values) if log else np.asarray(values, dtype=float)
    half = np.diff(v) / 2 if len(v) > 1 else np.array([0.5])
    made = np.concatenate([v[:1] - half[:1], v[:-1] + half, v[-1:] + half[-1:]]) if len(v) > 1 else v[0] + [-0.5, 0.5]
    return 10.0**made if log else made


def shade(score: Array, best: float, worst: float) -> Array:
    """Levels from 0 (worst, or worse) to 9 (best); even steps of the root of what is lost."""
    lost = np.sqrt(np.clip((score - best) / (worst - best if worst != best else 1.0), 0, 1))
    return np.round((1 - lost) * (LEVELS - 1)).astype(int)


def surface_picture(chosen: dict[str, Any], key: str) -> str:
    """Held-out score over two parameters: a band for every value of one, a cell for every value of the other."""
    s = chosen["surface"]
    X, Y, score = np.array(s["at"][0]), np.array(s["at"][1]), np.array(s["score"], dtype=float)
    logs = s["x"] != "sharing" and bool((X > 0).all()), s["y"] != "sharing" and bool((Y > 0).all())
    best = float(score.min() if chosen["loss"] else score.max())
    levels, rows = shade(score, best, s["worst"]), np.unique(Y)
    up = edges(rows, logs[1])
    bands = [np.flatnonzero(row == Y) for row in rows]
    bands = [band[np.argsort(X[band])] for band in bands]
    across = [edges(X[band], logs[0]) for band in bands]
    span = min(a[0] for a in across), max(a[-1] for a in across)
    frame = Frame.of((56, 12, 368, 258), span, (up[0], up[-1]), logs)
    cells = []
    for band, cut, (low, high) in zip(bands, across, pairwise(up), strict=True):
        for place, (a, b) in zip(band, pairwise(cut), strict=True):
            x, y = float(frame.x(a)), float(frame.y(high))
            size = {"width": float(frame.x(b)) - x + 0.3, "height": float(frame.y(low)) - y + 0.3}
            cells.append(element("rect", x=x, y=y, class_=f"h{levels[place]}", **size))
    body = "".join(cells) + frame.axes(s["x"], s["y"], grid=False)
    at = [chosen["chosen"].get(name) for name in (s["x"], s["y"])]
    if None not in at:
        body += frame.dots([at[0]], [at[1]], "halo", 6.0) + frame.dots([at[0]], [at[1]], "chosen", 6.0)
    told = f"{escape(chosen['label'])} at {len(score)} points; the best is {best:.4g}. The ring is what was chosen."
    return picture(WIDE, HIGH, body, key, f"The search: {s['x']} across, {s['y']} up", told)


def path_picture(chosen: dict[str, Any], way: dict[str, Any], key: str) -> str:
    """The best score at every value of one parameter."""
    at, score = np.array(way["at"], dtype=float), np.array(way["score"], dtype=float)
    spread = float(np.ptp(score)) or abs(float(score[0])) or 1.0
    log = way["x"] != "sharing" and bool((at > 0).all())
    span = (0.0, 1.0) if way["x"] == "sharing" else (float(at.min()), float(at.max()))
    frame = Frame.of(
        (56, 12, 368, 258), span, (score.min() - 0.08 * spread, score.max() + 0.08 * spread), (log, False)
    )
    body = frame.axes(way["x"], chosen["label"]) + frame.line(at, score, "curve") + frame.dots(at, score, "dot", 3.2)
    here = chosen["chosen"].get(way["x"])
    if here is not None:
        close = int(np.argmin(np.abs(at - here)))
        body += frame.dots([at[close]], [score[close]], "chosen", 6.5)
    told = "; ".join(f"{way['x']} {a:.4g}: {b:.4g}" for a, b in zip(at, score, strict=True))
    return picture(WIDE, HIGH, body, key, f"{chosen['label']} against {way['x']}", told)


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
