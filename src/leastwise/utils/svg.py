"""Charts as SVG text without a plotting library: scales, axes, curves, dots, bars and error bars.

Reports and notebook representations share this module. Text and attributes are escaped when an element is made:
:func:`element` inserts :class:`Markup` children as they are and escapes every other string. So do templates of
jinja2, because :class:`Markup` has ``__html__``.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

Array = np.ndarray


class Markup(str):
    """SVG or HTML that is already escaped."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)

    def __add__(self, other: str) -> Markup:
        return join_markup(self, other)


def join_markup(*parts: str) -> Markup:
    """Join parts; those that are not :class:`Markup` are escaped."""
    return Markup("".join(str(part) if isinstance(part, Markup) else escape(part) for part in parts))


def element(tag: str, *children: str, **attributes: Any) -> Markup:
    """Make an element.

    Attributes that are None are left out. In their names a trailing underscore is dropped and the others become
    hyphens: ``class_``, ``aria_label``.
    """
    written = "".join(
        f' {k.rstrip("_").replace("_", "-")}="{_attribute(v)}"' for k, v in attributes.items() if v is not None
    )
    return Markup(f"<{tag}{written}>{join_markup(*children)}</{tag}>" if children else f"<{tag}{written}/>")


def _attribute(value: Any) -> str:
    return coordinate(float(value)) if isinstance(value, float | np.floating) else escape(str(value))


def coordinate(value: float) -> str:
    """A coordinate with one decimal, which is finer than a pixel."""
    text = f"{value:.1f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def text_at(text: Any, x: float, y: float, anchor: str = "middle", kind: str | None = None, **more: Any) -> Markup:
    """Text at a position."""
    return element("text", str(text), x=float(x), y=float(y), text_anchor=anchor, class_=kind, **more)


def picture(
    width: float, height: float, body: Markup, title: str, description: str, key: str | None = None, **more: Any
) -> Markup:
    """A whole image with a title and a description for screen readers.

    With a ``key``, which must be unique on the page, these are referred to by id; without one ``aria-label`` repeats
    them.
    """
    ids: tuple[str | None, str | None] = (None, None) if key is None else (f"{key}-title", f"{key}-desc")
    named = {"aria_label": f"{title}. {description}"} if key is None else {"aria_labelledby": f"{ids[0]} {ids[1]}"}
    head = element("title", title, id=ids[0]) + element("desc", description, id=ids[1])
    box = f"0 0 {coordinate(width)} {coordinate(height)}"
    return element("svg", head, body, viewBox=box, role="img", **named, **more)


@dataclass(frozen=True)
class Scale:
    """A map from values ``low ... high`` to coordinates ``start ... end``, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: Any) -> Any:
        """Coordinates of values."""
        value, low, high = (np.log10(v) if self.log else np.asarray(v, float) for v in (value, self.low, self.high))
        part = (value - low) / (high - low) if high != low else np.full(np.shape(value), 0.5)
        return self.start + part * (self.end - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        """About ``count`` round values."""
        if self.log:
            return self._log_ticks(count)
        span = self.high - self.low
        if not span > 0:
            return [self.low]
        step = 10 ** np.floor(np.log10(span / count))
        step *= next((m for m in (1, 2, 5, 10) if span / (step * m) <= count), 10)
        first = np.ceil(self.low / step - 1e-9)
        return [float(k * step) + 0.0 for k in np.arange(first, np.floor(self.high / step + 1e-9) + 1)]  # no -0

    def _log_ticks(self, count: int) -> list[float]:
        low, high = np.log10(self.low), np.log10(self.high)
        powers = np.arange(np.ceil(low - 1e-9), np.floor(high + 1e-9) + 1)
        if len(powers) >= 2:
            return [float(10**k) for k in powers[:: max(1, int(np.ceil(len(powers) / count)))]]
        inside = [m * 10**k for k in np.arange(np.floor(low), high + 1) for m in (1, 2, 5)]
        inside = [float(v) for v in inside if self.low * (1 - 1e-9) <= v <= self.high * (1 + 1e-9)]
        return inside if len(inside) >= 2 else [float(f"{v:.2g}") for v in (self.low, self.high)]


def tick_text(value: float) -> str:
    """The label of a tick."""
    if value and (abs(value) >= 1e5 or abs(value) < 1e-3):
        mantissa, exponent = f"{value:.0e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{value:.4g}"


@dataclass(frozen=True)
class Frame:
    """The plotting area of a chart: two scales, and the marks that are drawn on them.

    ``kind`` is the CSS class of a mark.
    """

    x: Scale
    y: Scale

    @staticmethod
    def of(
        box: tuple[float, float, float, float],
        x: tuple[float, float],
        y: tuple[float, float],
        log: tuple[bool, bool] = (False, False),
    ) -> Frame:
        """From left, top, right and bottom, and the ranges of both axes."""
        left, top, right, bottom = box
        return Frame(Scale(*x, left, right, log[0]), Scale(*y, bottom, top, log[1]))

    def axes(
        self, x_label: str, y_label: str, x_text: Any = tick_text, y_text: Any = tick_text, grid: bool = True
    ) -> Markup:
        """Grid lines or tick marks, their labels, and the labels of the axes."""
        left, right, bottom, top = self.x.start, self.x.end, self.y.start, self.y.end
        parts = []
        for value in self.x.ticks():
            at = float(self.x(value))
            end = top if grid else bottom + 4
            parts.append(element("line", x1=at, x2=at, y1=float(end), y2=float(bottom), class_="grid"))
            parts.append(text_at(x_text(value), at, bottom + 14, kind="tick"))
        parts.append(element("g", self._y_ticks(y_text, grid), class_="levels"))
        if x_label:
            parts.append(text_at(x_label, (left + right) / 2, bottom + 30, kind="axis"))
        middle = (top + bottom) / 2
        parts.append(text_at(y_label, 12, middle, kind="axis", transform=f"rotate(-90 12 {coordinate(middle)})"))
        return join_markup(*parts)

    def _y_ticks(self, text: Any, grid: bool) -> Markup:
        left, end, parts = float(self.x.start), float(self.x.end if grid else self.x.start - 4), []
        for value in self.y.ticks():
            at = float(self.y(value))
            parts.append(element("line", x1=left, x2=end, y1=at, y2=at, class_="grid"))
            parts.append(text_at(text(value), left - 6, at + 3.5, "end", "tick"))
        return join_markup(*parts)

    def points(self, x: Any, y: Any) -> list[tuple[float, float]]:
        """Coordinates of points."""
        return list(zip(np.ravel(self.x(x)).tolist(), np.ravel(self.y(y)).tolist(), strict=True))

    def dots(self, x: Any, y: Any, kind: str, radius: float = 3.0) -> Markup:
        """A circle at each point."""
        return join_markup(*(element("circle", cx=a, cy=b, r=radius, class_=kind) for a, b in self.points(x, y)))

    def line(self, x: Any, y: Any, kind: str) -> Markup:
        """A line through points."""
        corners = "L".join(f"{coordinate(a)} {coordinate(b)}" for a, b in self.points(x, y))
        return element("path", d=f"M{corners}", class_=kind)

    def bars(self, edges: Any, heights: Any, kind: str) -> Markup:
        """The bars of a histogram, as one path."""
        foot, bars = float(self.y.start), []
        for a, b, h in zip(self.x(edges[:-1]), self.x(edges[1:]), self.y(heights), strict=True):
            if abs(foot - h) > 0.05:
                corners = [coordinate(v) for v in (a, foot, h, b)]
                bars.append("M{0} {1}V{2}H{3}V{1}z".format(*corners))
        return element("path", d="".join(bars), class_=kind) if bars else Markup()

    def error_bars(self, x: Any, low: Any, high: Any, kind: str) -> Markup:
        """Vertical lines from low to high."""
        ends = zip(self.x(x), self.y(low), self.y(high), strict=True)
        bars = "".join(f"M{coordinate(a)} {coordinate(b)}V{coordinate(c)}" for a, b, c in ends)
        return element("path", d=bars, class_=kind)

    def reliability(self, p: Any, share: Any, radius: float, low: Any = None, high: Any = None) -> Markup:
        """The diagonal and a reliability curve, with intervals where given."""
        bars = Markup() if low is None else self.error_bars(p, low, high, "whisker")
        diagonal = self.line([0, 1], [0, 1], "even")
        return diagonal + bars + self.line(p, share, "curve") + self.dots(p, share, "dot", radius)
