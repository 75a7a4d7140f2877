"""The charts of a report, as SVG: reliability, risk and coverage, hyperparameter search, similarity, regression."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from unicodedata import east_asian_width

import numpy as np

from leastwise.displays._search_results import cell_edges, is_log
from leastwise.report.formatting import figures, percent
from leastwise.utils.svg import Frame, Markup, coordinate, element, join_markup, picture, text_at, tick_text

Array = np.ndarray

WIDTH, HEIGHT = 380.0, 300.0
#: Left, top, right and bottom of the plotting area; the second leaves room for long tick labels.
BOX, INNER_BOX = (46.0, 12.0, 368.0, 258.0), (56.0, 12.0, 368.0, 258.0)
#: Edges of the histogram of a reliability diagram.
EDGES = np.linspace(0, 1, 21)
#: Levels of the sequential and of the diverging colour scale; their CSS classes are h0, h1, ... and d0, d1, ...
SEQUENTIAL, DIVERGING = 10, 9
#: Room for the names of a similarity map, its side, and the smallest line height of the names.
NAME_ROOM, MAP_SIDE, LINE_HEIGHT = 140.0, 300.0, 9.0


def _percent_tick(value: float) -> str:
    return f"{100 * value:.3g}%"


# ---------------------------------------------------------------------------- probabilities


def reliability_chart(curve: dict[str, Any], key: str, x_label: str, y_label: str, title: str) -> Markup:
    """A reliability curve with intervals and the diagonal, and a histogram below."""
    frame = Frame.of((46, 12, 368, 252), (0, 1), (0, 1))
    body = frame.axes("", y_label) + frame.reliability(curve["p"], curve["share"], 3.2, curve["low"], curve["high"])
    below = Frame.of((46, 276, 368, 322), (0, 1), (0, max(curve["histogram"]) or 1.0))
    body += below.bars(EDGES, curve["histogram"], "bar")
    body += element("line", x1=46, x2=368, y1=322, y2=322, class_="base")
    body += text_at("rows", 40, 303, "end", "tick") + text_at(x_label, 207, 338, kind="axis")
    return picture(WIDTH, 346, body, title, _described(curve), key)


def small_reliability_chart(curve: dict[str, Any], key: str) -> Markup:
    """A small reliability curve with the histogram behind it."""
    frame = Frame.of((24, 6, 184, 166), (0, 1), (0, 1))
    body = element("rect", x=24, y=6, width=160, height=160, class_="box")
    heights = np.array(curve["histogram"], dtype=float)
    body += frame.bars(EDGES, 0.4 * heights / max(heights.max(), 1e-300), "bar")
    body += frame.reliability(curve["p"], curve["share"], 2.4, curve["low"], curve["high"])
    body += join_markup(*(text_at(t, frame.x(t), 179, kind="tick") for t in (0, 1)))
    body += join_markup(*(text_at(t, 19, float(frame.y(t)) + 4, "end", "tick") for t in (0, 1)))
    return picture(190, 184, body, f"Reliability of {curve['name']}", _described(curve), key)


def _described(curve: dict[str, Any]) -> str:
    bins = zip(curve["p"], curve["share"], curve["low"], curve["high"], curve["rows"], strict=True)
    return "; ".join(
        f"predicted {percent(p)}, observed {percent(s)} ({percent(a)} to {percent(b)}) in {n} rows"
        for p, s, a, b, n in bins
    )


def risk_chart(thresholds: dict[str, Any], key: str, stop: int) -> Markup:
    """Errors among accepted rows against coverage, with the upper bound and a mark that the slider moves."""
    group, unit = thresholds["groups"][0], thresholds["unit"]
    frame = Frame.of(BOX, (0, 1), (0, group["top"]))
    left, top, right, bottom = BOX
    clip = element("rect", x=left, y=top - 2, width=right - left + 4, height=bottom - top + 4)
    body = element("clipPath", clip, id=f"{key}-clip")
    body += frame.axes(f"Share of {unit} accepted", "Error among accepted", _percent_tick, _percent_tick)
    error = group["error"][stop]
    x, y = float(frame.x(group["coverage"][stop])), float(frame.y(0.0 if error is None else error))
    marks = [
        element("path", d=_curve_path(frame, group, "bound"), class_="bound", id=f"{key}-bound"),
        element("path", d=_curve_path(frame, group, "error"), class_="curve", id=f"{key}-error"),
        element("line", x1=x, x2=x, y1=top, y2=bottom, class_="mark", id=f"{key}-line"),
        element("circle", cx=x, cy=y, r=5.0, class_="spot", id=f"{key}-spot"),
    ]
    body += element("g", *marks, clip_path=f"url(#{key}-clip)")
    description = (
        f"The error among accepted {unit} is {percent(group['error'][0])} if all are accepted. The dashed line is "
        f"the upper bound, which holds with probability {percent(thresholds['confidence'], 0)} at each threshold. "
        "The table below has the numbers."
    )
    title = "Error among accepted rows against coverage"
    return picture(WIDTH, HEIGHT, body, title, description, key, data_box=" ".join(map(coordinate, BOX)))


def _curve_path(frame: Frame, group: dict[str, Any], name: str) -> str:
    pairs = [(c, v) for c, v in zip(group["coverage"], group[name], strict=True) if v is not None]
    points = frame.points(*np.array(pairs, dtype=float).T) if pairs else []
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) if points else ""


def in_domain_chart(known: dict[str, Any], key: str) -> Markup:
    """A histogram of the domain weight of the rows."""
    share = np.array(known["histogram"], dtype=float) / max(known["rows"], 1)
    frame = Frame.of((46, 12, 368, 158), (0, 1), (0, 1))
    x_label = "Domain weight: 0 far outside, 1 within the training data"
    body = frame.axes(x_label, "Share of rows", y_text=_percent_tick)
    body += frame.bars(np.linspace(0, 1, 11), share, "bar strong")
    within, half = percent(known["within"]), percent(known["half"])
    description = f"{within} of the rows lie within the training data; {half} have a domain weight below 0.5."
    return picture(WIDTH, 200, body, "Domain weight of the rows", description, key)


# ---------------------------------------------------------------- hyperparameter search


def colour_bar(low: str, high: str, kind: str, levels: int) -> Markup:
    """A colour scale with the text of its ends."""
    cells = (
        element("rect", x=70 + k * 200 / levels, y=3.0, width=200 / levels + 0.3, height=9.0, class_=f"{kind}{k}")
        for k in range(levels)
    )
    ends = text_at(low, 64, 11.5, "end", "tick") + text_at(high, 276, 11.5, "start", "tick")
    return element("svg", *cells, ends, viewBox="0 0 340 16", class_="scale", aria_hidden="true")


def search_chart(chosen: dict[str, Any], key: str) -> Markup:
    """Scores over two hyperparameters: a band for every value of y, in it a cell for every value of x."""
    s = chosen["surface"]
    X, Y, score = np.array(s["at"][0]), np.array(s["at"][1]), np.array(s["score"], dtype=float)
    logs = is_log(s["x"], X), is_log(s["y"], Y)
    best = float(score.min() if chosen["loss"] else score.max())
    # Scores fall off as squares near the best point: the square root of the loss has even steps there.
    lost = np.clip((score - best) / (s["worst"] - best if s["worst"] != best else 1.0), 0, 1)
    levels = np.round((1 - np.sqrt(lost)) * (SEQUENTIAL - 1)).astype(int)
    rows = np.unique(Y)
    heights = cell_edges(rows, logs[1])
    bands = [np.flatnonzero(row == Y) for row in rows]
    bands = [band[np.argsort(X[band])] for band in bands]
    widths = [cell_edges(X[band], logs[0]) for band in bands]
    span = min(edges[0] for edges in widths), max(edges[-1] for edges in widths)
    frame = Frame.of(INNER_BOX, span, (heights[0], heights[-1]), logs)
    cells = []
    for band, edges, (low, high) in zip(bands, widths, pairwise(heights), strict=True):
        for place, (a, b) in zip(band, pairwise(edges), strict=True):
            x, y = float(frame.x(a)), float(frame.y(high))
            size = {"width": float(frame.x(b)) - x + 0.3, "height": float(frame.y(low)) - y + 0.3}
            cells.append(element("rect", x=x, y=y, class_=f"h{levels[place]}", **size))
    body = join_markup(*cells) + frame.axes(s["x"], s["y"], grid=False)
    at = [chosen["chosen"].get(name) for name in (s["x"], s["y"])]
    if None not in at:
        body += frame.dots([at[0]], [at[1]], "halo", 6.0) + frame.dots([at[0]], [at[1]], "chosen", 6.0)
    description = f"{chosen['label']} at {len(score)} points; the best is {best:.4g}. The ring is the chosen point."
    return picture(WIDTH, HEIGHT, body, f"Hyperparameter search: {s['x']} (x) and {s['y']} (y)", description, key)


def path_chart(chosen: dict[str, Any], path: dict[str, Any], key: str) -> Markup:
    """The best score at every value of one hyperparameter."""
    at, score = np.array(path["at"], dtype=float), np.array(path["score"], dtype=float)
    room = 0.08 * (float(np.ptp(score)) or abs(float(score[0])) or 1.0)
    span = (0.0, 1.0) if path["x"] == "sharing" else (float(at.min()), float(at.max()))
    frame = Frame.of(INNER_BOX, span, (score.min() - room, score.max() + room), (is_log(path["x"], at), False))
    body = frame.axes(path["x"], chosen["label"]) + frame.line(at, score, "curve") + frame.dots(at, score, "dot", 3.2)
    value = chosen["chosen"].get(path["x"])
    if value is not None:
        close = int(np.argmin(np.abs(at - value)))
        body += frame.dots([at[close]], [score[close]], "chosen", 6.5)
    description = "; ".join(f"{path['x']} {a:.4g}: {b:.4g}" for a, b in zip(at, score, strict=True))
    return picture(WIDTH, HEIGHT, body, f"{chosen['label']} against {path['x']}", description, key)


# ----------------------------------------------------------------------- partial dependence


def effect_chart(line: dict[str, Any], key: str, probability: bool) -> Markup:
    """The mean prediction against the value of a column: a line, or a dot for each category."""
    value, nominal = np.array(line["value"], dtype=float), line["kind"] in ("category", "boolean")
    at = np.arange(len(value), dtype=float) if nominal else np.array(line["at"], dtype=float)
    at = 24 * at if line["kind"] == "clock" else at
    low, high = line["ends"]
    room = 0.08 * ((high - low) or abs(low) or 1.0)
    ends = (low - room, high + room)
    if probability:
        ends = (max(ends[0], 0.0), min(ends[1], 1.0))
    y_text = _percent_tick if probability else tick_text
    x_text = {"date": _month_tick, "clock": _clock_tick}.get(line["kind"], tick_text)
    if nominal:
        names = [cut(str(name), 22) for name in line["at"]]
        height = 22.0 * len(names)
        frame = Frame.of((150.0, 8.0, 368.0, 8.0 + height), ends, (len(names) - 0.5, -0.5))
        body = join_markup(
            *(
                element("line", x1=float(frame.x(v)), x2=float(frame.x(v)), y1=8.0, y2=8.0 + height, class_="grid")
                + text_at(y_text(v), float(frame.x(v)), height + 22, kind="tick")
                for v in frame.x.ticks(4)
            ),
            *(text_at(name, 144, float(frame.y(k)) + 4, "end", "tick") for k, name in enumerate(names)),
        )
        body += frame.dots(value, at, "dot", 4.2)
        size = height + 30
    else:
        frame = Frame.of((56.0, 12.0, 368.0, 170.0), (float(at[0]), float(at[-1])), ends)
        body = frame.axes("", "", x_text, y_text) + frame.line(at, value, "curve") + frame.dots(at, value, "dot", 2.6)
        size = 192.0
    names = line["at"] if nominal else [x_text(v) for v in at.tolist()]
    description = "; ".join(f"{name}: {v:.4g}" for name, v in zip(names, value, strict=True))
    return picture(WIDTH, size, body, f"Mean prediction against {line['column']}", description, key)


def _month_tick(days: float) -> str:
    """The year and month of days since 1970-01-01."""
    return str(np.datetime64("1970-01-01") + int(days))[:7]


def _clock_tick(hours: float) -> str:
    """Hours and minutes."""
    minutes = round(hours * 60)
    return f"{minutes // 60}:{minutes % 60:02d}"


# -------------------------------------------------------------------------- similarity map


def similarity_chart(known: dict[str, Any], key: str) -> Markup:
    """A heat map whose rows and columns have the same order, with the names of the rows."""
    cells = _cells(known)
    levels, kind = _colour_levels(cells, known["signed"])
    left, side = (NAME_ROOM if known["names"] else 10.0), MAP_SIDE / len(cells)
    body = _cell_paths(levels, kind, left, side)
    if known["names"]:
        step = max(1, int(np.ceil(LINE_HEIGHT / side)))
        size = min(11.0, max(0.85 * side * step, 7.5))
        for i in range(0, len(cells), step):
            text = cut(known["names"][i], int((NAME_ROOM - 8) / (0.56 * size)))
            y = 6 + (i + 0.5) * side + 0.35 * size
            body += text_at(text, left - 6, y, "end", "tick", font_size=f"{size:.3g}")
    body += element("rect", x=left, y=6.0, width=MAP_SIDE, height=MAP_SIDE, class_="box")
    title = f"Similarity of the {known['by']}s, in a clustered order"
    description = "The table beside the map lists the most similar pairs."
    return picture(left + MAP_SIDE + 10, MAP_SIDE + 14, body, title, description, key)


def similarity_colour_bar(known: dict[str, Any]) -> Markup:
    """The colour scale of the map."""
    low, high = (figures(v, 3) for v in _colour_range(_cells(known), known["signed"]))
    return colour_bar(low, high, *(("d", DIVERGING) if known["signed"] else ("h", SEQUENTIAL)))


def cut(text: str, most: int) -> str:
    """Text that is at most ``most`` columns wide; wide East Asian characters count twice."""
    width = 0
    for i, letter in enumerate(text):
        width += 2 if east_asian_width(letter) in "WF" else 1
        if width > most:
            return text[: max(i - 1, 1)] + "…"
    return text


def _cells(known: dict[str, Any]) -> Array:
    return np.array([[np.nan if v is None else v for v in line] for line in known["cells"]], dtype=float)


def _colour_range(cells: Array, signed: bool) -> tuple[float, float]:
    """Values of the first and last colour, without the diagonal: from zero unless all values are far above it."""
    off = cells[~np.eye(len(cells), dtype=bool)]
    low, high, far = float(np.nanmin(off)), float(np.nanmax(off)), float(np.nanmax(np.abs(off)))
    if signed:
        return -far, far or 1.0
    return (low if low > high / 2 else min(low, 0.0)), high or 1.0


def _colour_levels(cells: Array, signed: bool) -> tuple[Array, str]:
    """The colour of every cell, -1 for missing values, and the class of the colour scale."""
    low, high = _colour_range(cells, signed)
    if signed:
        parts = np.clip(cells / high, -1, 1) * (DIVERGING // 2) + DIVERGING // 2
    else:
        parts = np.clip((cells - low) / (high - low or 1.0), 0, 1) * (SEQUENTIAL - 1)
    return np.where(np.isnan(cells), -1, np.round(np.nan_to_num(parts))).astype(int), "d" if signed else "h"


def _cell_paths(levels: Array, kind: str, left: float, side: float) -> Markup:
    """One path for every colour, of runs of neighbours in a row."""
    runs: dict[int, list[str]] = {}
    for i, line in enumerate(levels):
        starts = np.flatnonzero(np.r_[True, np.diff(line) != 0])
        for a, b in zip(starts, [*starts[1:], len(line)], strict=True):
            x, y, width = coordinate(left + a * side), coordinate(6 + i * side), (b - a) * side
            run = f"M{x} {y}h{width:.2f}v{side + 0.2:.2f}h{-width:.2f}z"
            runs.setdefault(int(line[a]), []).append(run)
    paths = (
        element("path", d="".join(shapes), class_=f"{kind}{level}" if level >= 0 else "none")
        for level, shapes in sorted(runs.items())
    )
    return join_markup(*paths)


# ------------------------------------------------------------------------------ regression


def scatter_chart(output: dict[str, Any], key: str) -> Markup:
    """True values against predictions."""
    y, F = (np.array(v, dtype=float) for v in output["points"])
    low, high = float(min(y.min(), F.min())), float(max(y.max(), F.max()))
    room = 0.04 * (high - low or 1.0)
    span = (low - room, high + room)
    frame = Frame.of(INNER_BOX, span, span)
    body = frame.axes("Predicted", "True") + frame.line(span, span, "even") + frame.dots(F, y, "cloud", 2.4)
    description = f"{len(y)} rows. R²: {figures(output['r2']['value'], 3)}."
    return picture(WIDTH, HEIGHT, body, "True values against predictions", description, key)


def residual_chart(output: dict[str, Any], key: str) -> Markup:
    """A histogram of the residuals."""
    edges, share = (np.array(output["histogram"][name], dtype=float) for name in ("edges", "share"))
    top = 1.08 * float(share.max())
    frame = Frame.of(INNER_BOX, (float(edges[0]), float(edges[-1])), (0, top))
    body = frame.axes("True minus predicted", "Share of rows", y_text=_percent_tick)
    body += frame.bars(edges, share, "bar strong")
    if edges[0] < 0 < edges[-1]:
        body += frame.line([0, 0], [0, top], "even")
    half, most = (figures(output["coverage"][k][2], 3) for k in (0, 2))
    description = f"Half of the rows lie within an interval of width {half}, 90% within {most}."
    return picture(WIDTH, HEIGHT, body, "Distribution of the residuals", description, key)
