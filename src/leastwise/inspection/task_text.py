"""Reports on tasks as text and as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from textwrap import wrap
from typing import Any

import numpy as np

from leastwise.utils.text_format import LINE, NAME, one_line, short, shortened

Array = np.ndarray

METRICS = {"log_loss": "log-loss", "auc": "AUC", "calibration": "calibration error"}
#: What the last line of the table is called.
ALL = "all tasks"
#: The three models, in the order of their columns, and the two that the third is compared to.
COLUMNS = {"independent": "indep.", "pooled": "pooled", "multi_task": "multi"}
OTHERS = {"independent": "alone", "pooled": "pooled"}

#: So many tasks are printed.
SHOWN = 30
#: A gain counts as clear beyond so many standard errors; a smaller gain than this is rounding.
CLEAR, ROUNDING = 2.0, 1e-9

HELDOUT = (
    "Sorted by gain over independent. Held-out figures; settings that were searched for were chosen by them, which "
    "flatters a little."
)
GAIN = {
    "gain": "log-loss of the other model less that of multi-task, ± its standard error: + is good",
    "*": "gain or loss beyond two standard errors (by chance in about one of 20 tasks)",
}
MISSING = {"-": "too few rows, or one class only", ALL: "over all rows (AUC pooled)"}
NOISE = "calibration error expected from so few rows alone (calibration_noise); up to twice that says nothing"
#: What the words and signs mean, in the text and in HTML.
LEGEND = {
    **GAIN,
    **MISSING,
    "calibration": "calibration error of multi-task; to_frame() has those of the others",
    "noise": NOISE,
}
HTML_LEGEND = {**GAIN, "▼": "worse than the other model", "bold": "best of the three", **MISSING, "noise": NOISE}


@dataclass(frozen=True, eq=False)
class ReportText:
    """What a report says: its table, its three fitted models, and the tasks in the order of the lines."""

    table: Mapping[str, Array]
    models: Mapping[str, Any]
    order: Array
    note: str | None

    # ------------------------------------------------------------------ text

    def text(self) -> str:
        """At most 118 letters wide."""
        lines = [self._subject]
        for name, *values in self._settings:
            words = (f"{key} {value:<9}" for key, value in zip(("sigma", "alpha", "sharing"), values, strict=True))
            lines.append(f"  {name:<12} {''.join(words)}".rstrip())
        names = [*shortened(self.table["task"][:-1], NAME), ALL]
        lines += ["", *_HEAD]
        lines += [self._remark if i is None else self._line(i, names[i]) for i in self._shown]
        lines.append(self._line(-1, ALL))
        lines.append("")
        for part in (HELDOUT, *(f"  {term:<13}{meaning}" for term, meaning in LEGEND.items()), *self._closing):
            lines += wrap(part, LINE, break_on_hyphens=False, subsequent_indent=" " * 15 if part[0] == " " else "")
        return "\n".join(lines)

    def _line(self, i: int, name: str) -> str:
        t = self.table
        numbers = [self._share[i], *(t[f"{metric}_{v}"][i] for metric in ("log_loss", "auc") for v in COLUMNS)]
        numbers += [t["calibration_multi_task"][i], t["calibration_noise"][i]]
        cells = [str(t["rows"][i]), *map(_number, numbers), *(self._gain(i, other) for other in OTHERS)]
        padded = (f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))
        return f"{name:<{NAME + 1}}{''.join(padded)}".replace(_BLANK, " ").rstrip()

    # ------------------------------------------------------------------ HTML

    def html(self) -> str:
        """With more columns, and full names."""
        settings = "".join(_row([_td(v, left=not j) for j, v in enumerate(line)]) for line in self._settings)
        titles = [_th(name, left=not j) for j, name in enumerate(("model", "sigma", "alpha", "sharing"))]
        small = f"{_TABLE}<thead>{_row(titles)}</thead><tbody>{settings}</tbody></table>"
        groups = [("", 3), ("gain over", 2), ("log-loss", 3), ("AUC", 3), ("calibration error", 4)]
        top = _row([f'<th colspan="{n}" style="text-align:center">{name}</th>' for name, n in groups])
        names = ["rows", "share", "indep.", "pooled", *3 * list(COLUMNS.values()), "noise"]
        head = _row([_th("task", left=True), *map(_th, names)])
        between = f'<td colspan="{len(names) + 1}" style="text-align:center">{escape(self._remark.strip())}</td>'
        body = "".join(_row([between]) if i is None else _row(self._html_cells(i)) for i in self._shown)
        last = _row(self._html_cells(-1, "border-top:1px solid;"))
        table = f"{_TABLE}<thead>{top}{head}</thead><tbody>{body}{last}</tbody></table>"
        legend = "".join(_row([_td(term, left=True), _told(meaning)]) for term, meaning in HTML_LEGEND.items())
        legend = f"<p>{escape(HELDOUT)}</p>{_TABLE}<tbody>{legend}</tbody></table>"
        *note, verdict = (escape(line) for line in self._closing)
        closing = "".join(f"<p>{line}</p>" for line in note) + f'<p style="{_BOLD}">{verdict}</p>'
        return f'<div style="overflow-x:auto"><p>{escape(self._subject)}</p>{small}{table}{legend}{closing}</div>'

    def _html_cells(self, i: int, style: str = "") -> list[str]:
        t = self.table
        cells = [_td(one_line(t["task"][i]), style, left=True), _td(str(t["rows"][i]), style)]
        cells.append(_td(_number(self._share[i]), style))
        for other in OTHERS:
            worse = _rounded(t[f"gain_over_{other}"][i]) < 0
            cells.append(_td("▼ " * worse + self._gain(i, other), style + _WORSE * worse))
        for metric in METRICS:
            values = [round(t[f"{metric}_{v}"][i], 3) for v in COLUMNS]
            best = max(values) if metric == "auc" else min(values)
            told = max(values) > min(values)  # where all look the same, none is the best
            cells += [_td(_number(v), style + _BOLD * bool(told and v == best)) for v in values]
        return [*cells, _td(_number(t["calibration_noise"][i]), style)]

    # ----------------------------------------------------------------- words

    @property
    def _subject(self) -> str:
        """What the numbers are of."""
        classes = self._classes
        share = f"of class {short(classes[1], NAME)}" if len(classes) == 2 else "of the task's most frequent class"
        n, T = self.table["rows"][-1], len(self.order)
        return f"Held-out predictions of {T} tasks, {n} rows, {len(classes)} classes; share is that {share}."

    @property
    def _settings(self) -> list[list[str]]:
        return [
            [name.replace("_", "-"), f"{m.sigma_:.4g}", f"{m.alpha_:.3g}", f"{m.sharing_:g}"]
            for name, m in self.models.items()
        ]

    @property
    def _closing(self) -> list[str]:
        note = [f"Which tasks help which is not known: {self.note}"] if self.note else []
        return [*note, self.verdict()]

    def verdict(self) -> str:
        """In how many tasks the multi-task model is better, and in how many clearly."""
        parts = ", ".join(self._compared(other, name) for other, name in OTHERS.items())
        T = len(self.order)
        parts = parts.replace(f" of {T} (", f" of {T} task{'s' * (T > 1)} (", 1)
        return f"multi-task (sharing {self.models['multi_task'].sharing_:g}): {parts}"

    def _compared(self, other: str, name: str) -> str:
        gain = self.table[f"gain_over_{other}"][:-1]
        if (np.abs(gain) <= ROUNDING).all():
            return f"the same as {name}"
        clear = np.array([self._clear(i, other) for i in range(len(gain))])
        better, clearly, worse = (
            np.count_nonzero(v) for v in (gain > ROUNDING, clear & (gain > 0), clear & (gain < 0))
        )
        harm = f"; {worse} clearly worse" if worse else ""
        return f"better than {name} in {better} of {len(gain)} ({clearly} clearly{harm})"

    def _clear(self, i: int, other: str) -> bool:
        size, error = abs(self.table[f"gain_over_{other}"][i]), self.table[f"gain_over_{other}_se"][i]
        return bool(size > max(CLEAR * error, ROUNDING)) if error == error else False

    def _gain(self, i: int, other: str) -> str:
        gain, error = self.table[f"gain_over_{other}"][i], self.table[f"gain_over_{other}_se"][i]
        return f"{_rounded(gain):+.3f} ± {_number(error):>5}{'*' if self._clear(i, other) else _BLANK}"

    # --------------------------------------------------------------- contents

    @property
    def _shown(self) -> list[int | None]:
        """The tasks of the lines, with None where some are left out."""
        if len(self.order) <= SHOWN:
            return self.order.tolist()
        # The tasks that gain least are as telling as those that gain most.
        return [*self.order[: SHOWN // 2].tolist(), None, *self.order[-(SHOWN // 2) :].tolist()]

    @property
    def _remark(self) -> str:
        return f"  ... {len(self.order) - SHOWN} more tasks in between; to_frame() has them all ..."

    @property
    def _classes(self) -> Array:
        return self.models["multi_task"].classes_

    @cached_property
    def _share(self) -> Array:
        columns = [self.table[f"share_{k}"] for k in self._classes]
        return columns[1] if len(columns) == 2 else np.max(columns, axis=0)


_WIDTHS = [6, 6, *2 * [7, 7, 6], 7, 6, 17, 17]
_HEAD = [
    f"{'':<{NAME + 13}}{'log-loss':^21}{'AUC':^19}{'calibration':>13}{'gain over':^34}".rstrip(),
    f"{'task':<{NAME + 1}}{'rows':>6}{'share':>6}"
    + f"{'indep.':>7}{'pooled':>7}{'multi':>6}" * 2
    + f"{'multi':>7}{'noise':>6}{'independent':>16}{'pooled':>17}",
]
_BLANK = "\N{NO-BREAK SPACE}"  # as wide as a star, in HTML too
_TABLE = '<table style="border-collapse:collapse;font-size:inherit;margin-bottom:1em">'
_CELL = "padding:1px 5px;white-space:nowrap;"
_BOLD = "font-weight:bold;"
_WORSE = "font-style:italic;color:#c0392b;"


def _row(cells: Sequence[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"


def _td(value: str, style: str = "", left: bool = False, tag: str = "td") -> str:
    return f'<{tag} style="{_CELL}text-align:{"left" if left else "right"};{style}">{escape(value)}</{tag}>'


def _th(value: str, left: bool = False) -> str:
    return _td(value, left=left, tag="th")


def _told(meaning: str) -> str:
    return f'<td style="text-align:left">{escape(meaning)}</td>'


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


def _rounded(value: float) -> float:
    return round(float(value), 3) + 0.0  # no -0.000
