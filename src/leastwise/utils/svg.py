"""Small pictures as text: frames with axes, dots, lines, bars and cells in SVG, without a drawing library."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

Array = np.ndarray


def element(tag: str, *inside: str, **attributes: Any) -> str:
    """An element; attributes that are None are left out, ``_`` in their names is ``-``, one at the end is nothing."""
    told = "".join(f' {_attribute(k)}="{_value(v)}"' for k, v in attributes.items() if v is not None)
    return f"<{tag}{told}>{''.join(inside)}</{tag}>" if inside else f"<{tag}{told}/>"


def _attribute(name: str) -> str:
    return name.rstrip("_").replace("_", "-") if name != "viewBox" else name


def _value(value: Any) -> str:
    return short(float(value)) if isinstance(value, float | np.floating) else escape(str(value))


def short(value: float) -> str:
    """A coordinate with one digit after the point, which is less than can be seen."""
    text = f"{value:.1f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def words(text: Any, x: float, y: float, anchor: str = "middle", kind: str | None = None, **more: Any) -> str:
    """Text at a place."""
    return element("text", escape(str(text)), x=float(x), y=float(y), text_anchor=anchor, class_=kind, **more)


def path(points: Iterable[Sequence[float]], kind: str) -> str:
    """A line through points."""
    return element("path", d="M" + "L".join(f"{short(x)} {short(y)}" for x, y in points), class_=kind)


def picture(width: float, height: float, body: str, name: str, title: str, description: str, **more: Any) -> str:
    """A whole picture, with a title and a description for those who cannot see it; ``name`` is for its ids."""
    head = element("title", escape(title), id=f"{name}-title") + element(
        "desc", escape(description), id=f"{name}-desc"
    )
    return element(
        "svg",
        head,
        body,
        viewBox=f"0 0 {short(width)} {short(height)}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        **more,
    )


@dataclass(frozen=True)
class Scale:
    """From values to places on the page; ``log`` where steps are ratios."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: Any) -> Any:
        """The places of values."""
        value, low, high = (np.log10(v) if self.log else np.asarray(v, float) for v in (value, self.low, self.high))
        part = (value - low) / (high - low) if high != low else np.full(np.shape(value), 0.5)
        return self.start + part * (self.end - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        """Round values, about so many."""
        if self.log:
            return self._powers(count)
        span = self.high - self.low
        if not span > 0:
            return [self.low]
        step = 10 ** np.floor(np.log10(span / count))
        step *= next((m for m in (1, 2, 5, 10) if span / (step * m) <= count), 10)
        first = np.ceil(self.low / step - 1e-9)
        return [float(k * step) + 0.0 for k in np.arange(first, np.floor(self.high / step + 1e-9) + 1)]  # no -0

    def _powers(self, count: int) -> list[float]:
        low, high = np.log10(self.low), np.log10(self.high)
        whole = np.arange(np.ceil(low - 1e-9), np.floor(high + 1e-9) + 1)
        if len(whole) >= 2:
            return [float(10**k) for k in whole[:: max(1, int(np.ceil(len(whole) / count)))]]
        inside = [m * 10**k for k in np.arange(np.floor(low), high + 1) for m in (1, 2, 5)]
        inside = [float(v) for v in inside if self.low * (1 - 1e-9) <= v <= self.high * (1 + 1e-9)]
        return inside if len(inside) >= 2 else [float(f"{v:.2g}") for v in (self.low, self.high)]


def tick_text(value: float) -> str:
    """A value beside an axis."""
    if value and (abs(value) >= 1e5 or abs(value) < 1e-3):
        number, power = f"{value:.0e}".split("e")
        return f"{number}e{int(power)}"
    return f"{value:.4g}"


@dataclass(frozen=True)
class Frame:
    """A rectangle with two scales."""

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
        self, x_name: str, y_name: str, x_text: Any = tick_text, y_text: Any = tick_text, grid: bool = True
    ) -> str:
        """Lines at round values, their numbers, and what the axes are."""
        left, right, bottom, top = self.x.start, self.x.end, self.y.start, self.y.end
        parts = []
        for value in self.x.ticks():
            at = float(self.x(value))
            end = top if grid else bottom + 4
            parts.append(element("line", x1=at, x2=at, y1=float(end), y2=float(bottom), class_="grid"))
            parts.append(words(x_text(value), at, bottom + 14, kind="tick"))
        parts.append(element("g", self.levels(y_text, grid), class_="levels"))
        if x_name:
            parts.append(words(x_name, (left + right) / 2, bottom + 30, kind="axis"))
        middle = (top + bottom) / 2
        parts.append(words(y_name, 12, middle, kind="axis", transform=f"rotate(-90 12 {short(middle)})"))
        return "".join(parts)

    def levels(self, text: Any = tick_text, grid: bool = True) -> str:
        """Lines at round values of the upright axis, with their numbers."""
        left, end, parts = float(self.x.start), float(self.x.end if grid else self.x.start - 4), []
        for value in self.y.ticks():
            at = float(self.y(value))
            parts.append(element("line", x1=left, x2=end, y1=at, y2=at, class_="grid"))
            parts.append(words(text(value), left - 6, at + 3.5, "end", "tick"))
        return "".join(parts)

    def points(self, x: Any, y: Any) -> list[tuple[float, float]]:
        """Places of points."""
        return list(zip(np.ravel(self.x(x)).tolist(), np.ravel(self.y(y)).tolist(), strict=True))

    def dots(self, x: Any, y: Any, kind: str, radius: float = 3.0) -> str:
        """Dots at points."""
        return "".join(element("circle", cx=a, cy=b, r=radius, class_=kind) for a, b in self.points(x, y))

    def line(self, x: Any, y: Any, kind: str) -> str:
        """A line through points."""
        return path(self.points(x, y), kind)

    def bars(self, edges: Any, heights: Any, kind: str) -> str:
        """Bars from the foot of the frame, as one shape."""
        foot, made = float(self.y.start), []
        for a, b, h in zip(self.x(edges[:-1]), self.x(edges[1:]), self.y(heights), strict=True):
            if abs(foot - h) > 0.05:
                made.append(f"M{short(a)} {short(foot)}V{short(h)}H{short(b)}V{short(foot)}z")
        return element("path", d="".join(made), class_=kind) if made else ""

    def whiskers(self, x: Any, low: Any, high: Any, kind: str) -> str:
        """Upright lines from low to high."""
        ends = zip(self.x(x), self.y(low), self.y(high), strict=True)
        return element("path", d="".join(f"M{short(a)} {short(b)}V{short(c)}" for a, b, c in ends), class_=kind)
