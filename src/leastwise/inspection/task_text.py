"""Task reports as text and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from textwrap import wrap
from typing import Any

import numpy as np

from leastwise.utils.svg import Markup, element, join_markup
from leastwise.utils.text_format import LINE, NAME, one_line, short, shortened

Array = np.ndarray

METRICS = {"log_loss": "log-loss", "auc": "AUC", "calibration": "calibration error"}
#: Name of the last line of the table.
ALL = "all tasks"
#: The three models, in the order of their columns, and the two that the third is compared to.
COLUMNS = {"independent": "indep.", "pooled": "pooled", "multi_task": "multi"}
OTHERS = {"independent": "alone", "pooled": "pooled"}

#: At most this many tasks are printed.
SHOWN = 30
#: A gain is clear beyond this many standard errors; gains below ``ROUNDING`` are rounding errors.
CLEAR, ROUNDING = 2.0, 1e-9

HELDOUT = (
    "Sorted by gain over independent. Held-out figures; hyperparameters were chosen on them, which makes them "
    "slightly optimistic."
)
GAIN = {
    "gain": "log-loss of the other model minus that of multi-task, ± its standard error: + is better",
    "*": "beyond two standard errors (by chance in about one of 20 tasks)",
}
MISSING = {"-": "too few rows, or only one class", ALL: "over all rows (AUC pooled)"}
NOISE = "calibration error expected by chance (calibration_noise); up to twice that is not significant"
#: Legends of the text and of the HTML table.
LEGEND = {
    **GAIN,
    **MISSING,
    "calibration": "calibration error of multi-task; to_frame() has the others",
    "noise": NOISE,
}
HTML_LEGEND = {**GAIN, "▼": "worse than the other model", "bold": "best of the three", **MISSING, "noise": NOISE}


@dataclass(frozen=True, eq=False)
class ReportText:
    """The table of a report, its three fitted models, the order of the tasks, and why ``helps`` is missing."""

    table: Mapping[str, Array]
    models: Mapping[str, Any]
    order: Array
    note: str | None

    # ------------------------------------------------------------------ text

    def text(self) -> str:
        """Lines of at most 118 characters."""
        lines = [self._subject]
        for name, *values in self._settings:
            words = (f"{key} {value:<9}" for key, value in zip(("sigma", "alpha", "sharing"), values, strict=True))
            lines.append(f"  {name:<12} {''.join(words)}".rstrip())
        names = [*shortened(self.table["task"][:-1], NAME), ALL]
        lines += ["", *_HEAD]
        lines += [self._gap_line if i is None else self._line(i, names[i]) for i in self._shown]
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
        """A table with more columns, and full names."""
        titles = [_cell(name, left=not j, tag="th") for j, name in enumerate(("model", "sigma", "alpha", "sharing"))]
        lines = [[_cell(v, left=not j) for j, v in enumerate(line)] for line in self._settings]
        settings = _html_table([titles], lines)
        groups = [("", 3), ("gain over", 2), ("log-loss", 3), ("AUC", 3), ("calibration error", 4)]
        top = [element("th", name, colspan=n, style="text-align:center") for name, n in groups]
        names = ["rows", "share", "indep.", "pooled", *3 * list(COLUMNS.values()), "noise"]
        head = [_cell("task", left=True, tag="th"), *(_cell(name, tag="th") for name in names)]
        gap = [element("td", self._gap_line.strip(), colspan=len(names) + 1, style="text-align:center")]
        body = [gap if i is None else self._html_cells(i) for i in self._shown]
        table = _html_table([top, head], [*body, self._html_cells(-1, "border-top:1px solid;")])
        legend = [
            [_cell(term, left=True), element("td", meaning, style="text-align:left")]
            for term, meaning in HTML_LEGEND.items()
        ]
        *note, verdict = self._closing
        parts = [element("p", self._subject), settings, table, element("p", HELDOUT), _html_table([], legend)]
        parts += [*(element("p", line) for line in note), element("p", verdict, style=_BOLD)]
        return str(element("div", *parts, style="overflow-x:auto"))

    def _html_cells(self, i: int, style: str = "") -> list[Markup]:
        t = self.table
        cells = [_cell(one_line(t["task"][i]), style, left=True), _cell(str(t["rows"][i]), style)]
        cells.append(_cell(_number(self._share[i]), style))
        for other in OTHERS:
            worse = _rounded(t[f"gain_over_{other}"][i]) < 0
            cells.append(_cell("▼ " * worse + self._gain(i, other), style + _WORSE * worse))
        for metric in METRICS:
            values = [round(t[f"{metric}_{v}"][i], 3) for v in COLUMNS]
            best = max(values) if metric == "auc" else min(values)
            differ = max(values) > min(values)  # no best value among equal ones
            cells += [_cell(_number(v), style + _BOLD * bool(differ and v == best)) for v in values]
        return [*cells, _cell(_number(t["calibration_noise"][i]), style)]

    # ----------------------------------------------------------------- words

    @property
    def _subject(self) -> str:
        """The first line."""
        classes = self._classes
        share = f"that of class {short(classes[1], NAME)}" if len(classes) == 2 else "that of the most frequent class"
        n, T = self.table["rows"][-1], len(self.order)
        return f"Held-out predictions of {T} tasks, {n} rows, {len(classes)} classes; share is {share}."

    @property
    def _settings(self) -> list[list[str]]:
        return [
            [name.replace("_", "-"), f"{m.sigma_:.4g}", f"{m.alpha_:.3g}", f"{m.sharing_:g}"]
            for name, m in self.models.items()
        ]

    @property
    def _closing(self) -> list[str]:
        note = [f"Which tasks help which was not computed: {self.note}"] if self.note else []
        return [*note, self.verdict()]

    def verdict(self) -> str:
        """In how many tasks the multi-task model is better, and in how many beyond two standard errors."""
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
        """The tasks of the lines, with None in place of those that are left out."""
        if len(self.order) <= SHOWN:
            return self.order.tolist()
        # Those with the largest gains and those with the smallest.
        return [*self.order[: SHOWN // 2].tolist(), None, *self.order[-(SHOWN // 2) :].tolist()]

    @property
    def _gap_line(self) -> str:
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
_BLANK = "\N{NO-BREAK SPACE}"  # as wide as the star, in HTML too
_BOLD = "font-weight:bold;"
_WORSE = "font-style:italic;color:#c0392b;"


def _html_table(head: Sequence[Sequence[Markup]], body: Sequence[Sequence[Markup]]) -> Markup:
    parts = [join_markup(*(element("tr", *cells) for cells in lines)) for lines in (head, body)]
    thead = [element("thead", parts[0])] if head else []
    style = "border-collapse:collapse;font-size:inherit;margin-bottom:1em"
    return element("table", *thead, element("tbody", parts[1]), style=style)


def _cell(value: str, style: str = "", left: bool = False, tag: str = "td") -> Markup:
    align = "left" if left else "right"
    return element(tag, value, style=f"padding:1px 5px;white-space:nowrap;text-align:{align};{style}")


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


def _rounded(value: float) -> float:
    return round(float(value), 3) + 0.0  # no -0.000
