"""Dates and clock times in text: the format of a column is guessed from all of its cells, or given by the user.

Formats are those of ``strptime``, with %q for the quarter. A month, a quarter or a week is the day that it begins
with; a clock time is a part of the day 1970-01-01.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime
from functools import lru_cache

from leastwise.sources.formats.cells import date, quoted

#: Formats that are tried, after ISO dates: day first, then month first, for the same separator. The time is optional.
FORMATS = (
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d.%m.%y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%d. %b %Y",
    "%b %d, %Y",
    "%b %d %Y",
    "%a, %d %b %Y",
    "%A, %d %B %Y",
    "%A, %B %d, %Y",
    "%Y%m%d",
    "%Y-%m",
    "%Y/%m",
    "%m/%Y",
    "%b %Y",
    "%b-%Y",
    "%b-%y",
    "%Y-Q%q",
    "%Y Q%q",
    "%YQ%q",
    "Q%q %Y",
    "Q%q/%Y",
    "%G-W%V-%u",
    "%G-W%V",
    "%GW%V",
    "%H:%M",
    "%H:%M:%S",
)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_REST = ("uary", "ruary", "ch", "il", "", "e", "y", "ust", "tember", "ober", "ember", "ember")
_LONG = [short + rest for short, rest in zip(MONTHS, _REST, strict=True)]
#: Parts of a format as regular expressions. Names of months are English whatever the locale.
_PARTS = {
    "%Y": r"(?P<Y>\d{4})",
    "%y": r"(?P<y>\d{2})",
    "%m": r"(?P<m>\d{1,2})",
    "%d": r"(?P<d>\d{1,2})",
    "%b": rf"(?P<b>{'|'.join([*_LONG, 'sept', *MONTHS])})\.?",
    "%H": r"(?P<H>\d{1,2})",
    "%M": r"(?P<M>\d{2})",
    "%S": r"(?P<S>\d{2}(?:\.\d{1,6})?)",
    "%p": r"(?P<p>[ap]\.?m\.?)",
    "%q": r"(?P<q>[1-4])",
    "%G": r"(?P<G>\d{4})",
    "%V": r"(?P<V>\d{2})",
    "%u": r"(?P<u>[1-7])",
    "%a": r"(?:(?:mon|tue|wed|thu|fri|sat|sun)\.?)",
    "%A": r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)",
    "%%": "%",
}
_PARTS["%B"] = _PARTS["%b"]
_NOON = r"(?: ?(?P<p>[ap]\.?m\.?))?"
_TIME = r"(?:[T ]+(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2}(?:\.\d{1,6})?))?(?: ?(?P<p>[ap]\.?m\.?))?)?"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Two digits are a year up to this one, or else of the last century, as in strptime.
PIVOT = 68
#: Eight digits, or a year with a month or a quarter, are a date only between these years, as they may be any code.
YEARS = range(1900, 2100)


def guess_format(texts: Collection[str]) -> tuple[str, str] | None:
    """The format of dates, "" for ISO dates, and a note on what is not certain; None if these are not dates."""
    if all(date(text) is not None for text in texts):
        return "", ""
    found = [format for format in FORMATS if all(read_date(text, format) is not None for text in texts)]
    if not found:
        return None
    if len(found) == 1:
        return found[0], ""
    return found[0], f"{found[1]} is possible, too"


def read_date(text: str, format: str) -> float | None:
    """Days since 1970-01-01 of a date in this format; None if it is not one."""
    if not format:
        return date(text)
    match = _pattern(format).fullmatch(text)
    if match is None:
        return None
    part = {name: value for name, value in match.groupdict().items() if value is not None}
    try:
        year = int(part["Y"]) if "Y" in part else _full_year(int(part["y"])) if "y" in part else 1970
        month = MONTHS.index(part["b"][:3].lower()) + 1 if "b" in part else int(part.get("m", 1))
        seconds = float(part.get("S", 0))
        if (format == "%Y%m%d" or "d" not in part) and year not in YEARS:
            return None
        if "q" in part:
            month = 3 * int(part["q"]) - 2
        if "G" in part:
            week = datetime.fromisocalendar(int(part["G"]), int(part["V"]), int(part.get("u", 1)))
            year, month, part["d"] = week.year, week.month, str(week.day)
        day = datetime(year, month, int(part.get("d", 1)), _hour(part), int(part.get("M", 0)), tzinfo=UTC)
    except ValueError:
        return None
    return (day - _EPOCH).total_seconds() / 86400 + seconds / 86400 if seconds < 60 else None


def has_day(format: str) -> bool:
    """True if the format has days and not only months, quarters or weeks; "" is that of ISO dates."""
    return not format or "%d" in format or "%u" in format


def is_clock(format: str) -> bool:
    """True if the format has times of the day without a date."""
    return bool(format) and not any(part in format for part in ("%Y", "%y", "%G"))


def check_format(format: str) -> str | None:
    """What is wrong with a format that the user gives; None if nothing is."""
    unknown = [part for part in re.findall("%.?", format) if part not in _PARTS]
    if unknown:
        return f"{quoted(unknown[0])} is unknown: use {', '.join(_PARTS)}"
    has = re.findall("%.", format)
    if not any(part in has for part in ("%Y", "%y", "%G", "%H")) or len(set(has)) < len(has):
        return "it needs a year (%Y or %y) or an hour (%H), and each part once"
    if ("%G" in has) != ("%V" in has) or ("%u" in has and "%G" not in has):
        return "a year %G and a week %V belong together; a weekday %u needs both"
    return None


@lru_cache(maxsize=64)
def _pattern(format: str) -> re.Pattern[str]:
    pieces = re.split(r"(%.)", format)
    body = "".join(_PARTS[piece] if piece in _PARTS else re.escape(piece) for piece in pieces)
    if format == "%Y%m%d":
        body = r"(?P<Y>\d{4})(?P<m>\d{2})(?P<d>\d{2})"
    elif has_day(format) and "%H" not in format:
        body += _TIME
    elif is_clock(format) and "%p" not in format:
        body += _NOON
    return re.compile(body, re.IGNORECASE | re.ASCII)


def _full_year(year: int) -> int:
    return year + (2000 if year <= PIVOT else 1900)


def _hour(part: dict[str, str]) -> int:
    hour = int(part.get("H", 0))
    if "p" not in part:
        return hour
    if not 1 <= hour <= 12:
        raise ValueError("an hour of the clock with am and pm")
    return hour % 12 + (12 if part["p"][0].lower() == "p" else 0)
