"""Figures 7 and 8: error and training time of LSPC, LSPC(full) and KLR.

Figure 7: n = 100 .. 2000 rows, all classes. Figure 8: n = 1000 rows of the first c classes. By section 3.2:
floor(n/c) random training rows and 100 random test rows of each class, columns of zero mean and unit variance
(over the training part of the data set; constant columns dropped), sigma and alpha chosen by 2-fold
cross-validation of the error rate. Time is that of one fit at the chosen sigma and alpha: processor time, as
in the paper, and time by the clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from papers._common.data import (
    Array,
    Scale,
    Split,
    available,
    load_set,
    median_distance,
    per_class,
    scale_of,
    standardise,
)
from papers._common.experiments import Job, Report, Settings, option
from papers._common.output import Panel, draw_panels, pictured, spread, table
from papers._common.timing import settled, timed, timed_median
from papers.lspc.methods import LABELS, METHODS, TEXTBOOK, TextbookKLR

TEST_ROWS = 100


@dataclass(frozen=True)
class Source:
    """A data set and the scale of its training part."""

    name: str
    X: Array
    y: Array
    train: Array
    test: Array
    scale: Scale

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(np.unique(self.y))

    def draw(self, n: int, c: int, seed: int) -> Split:
        """Draw floor(n/c) training rows and 100 test rows of each of the first c classes."""
        rng = np.random.default_rng([seed, n, c])
        classes = np.unique(self.y)[:c]
        train = per_class(self.y, self.train, classes, n // c, rng)
        test = per_class(self.y, self.test, classes, TEST_ROWS, rng)
        A, B = (standardise(self.X[rows], self.scale) for rows in (train, test))
        return Split(self.name, A, self.y[train], B, self.y[test])


def source(name: str, folder: str | None) -> Source:
    """Load a data set; columns that are constant in the training part are dropped."""
    data = load_set(name, folder)
    is_train = np.asarray(data.is_train, dtype=bool)
    train, test = np.flatnonzero(is_train), np.flatnonzero(~is_train)
    X, y = np.asarray(data.X), np.asarray(data.y)
    return Source(name, X, y, train, test, scale_of(X[train]))


CLASSES = {
    "mnist": (2, 4, 6, 8, 10),
    "usps": (2, 4, 6, 8, 10),
    "satimage": (2, 3, 4, 5, 6),
    "letter": (2, 5, 10, 15, 20, 26),
}


@dataclass(frozen=True)
class FigureSettings(Settings):
    """Settings."""

    runs: int = option(3, "random draws", least=1)
    sets: tuple[str, ...] = option(tuple(CLASSES), "data sets", kind=str, choices=tuple(CLASSES))
    figure: int | None = option(None, "one figure alone", choices=(7, 8))
    repeats: int = option(5, "timings of each fit", least=1)
    sizes: tuple[int, ...] = option((100, 200, 500, 1000, 2000), "training rows in figure 7", least=1)
    rows: int = option(1000, "training rows in figure 8", least=1)
    class_counts: int = option(6, "how many of the class counts of figure 8, the smallest first")


def run(settings: FigureSettings, job: Job) -> dict[str, Any]:
    """Run the experiment."""
    found = job.gathered(_records(settings, job))
    summary = summarised(found)
    for clock in ("cpu", "wall"):
        error_tables(summary, clock, job.report)
    draw_figures(summary, job)
    return {"summary": summary, "figures": found}


def _records(settings: FigureSettings, job: Job) -> Iterator[dict]:
    for name, data in available(settings.sets, lambda name: source(name, job.data), job.report):
        for figure, n, c in points(data, settings):
            for seed in range(settings.runs):
                split = data.draw(n, c, seed)
                where = {"figure": figure, "data": name, "n": n, "c": c, "rows": len(split.y), "run": seed}
                for found in on_one_draw(split, seed, settings.repeats):
                    yield {**where, **found}
                job.report(f"figure {figure}, {name}, n = {n}, c = {c}, run {seed}: done")


def points(data: Source, settings: FigureSettings) -> list[tuple[int, int, int]]:
    """Figure, n and c of every point of the curves."""
    seven = [(7, n, data.n_classes) for n in settings.sizes]
    eight = [(8, settings.rows, c) for c in CLASSES[data.name][: settings.class_counts]]
    return [p for p in seven + eight if settings.figure in (None, p[0])]


def on_one_draw(split: Split, seed: int, repeats: int) -> Iterator[dict]:
    """Run all methods on one draw."""
    length = median_distance(split.X)
    for label, method in METHODS.items():
        model, found = _searched(split, label, method.tuned(length, len(split.y), seed), length)
        yield {**found, **_fit_times(split, method.at(model), repeats)}
        if label == "KLR here":
            textbook = TextbookKLR(model.sigma_, model.alpha_)
            times = _fit_times(split, textbook, 1)
            more = {"error": error_of(textbook, split), "iterations": textbook.n_iter_}
            yield {**found, "method": TEXTBOOK, **more, **times}


def _searched(split: Split, label: str, tuned: Any, length: float) -> tuple[Any, dict]:
    search, unsettled = settled(lambda: timed(lambda: tuned.fit(split.X, split.y)))
    model = search.value
    return model, {
        "method": label,
        "error": error_of(model, split),
        "sigma_in_medians": model.sigma_ / length,
        "alpha": model.alpha_,
        "search_wall": search.wall,
        "unsettled": unsettled,
    }


def error_of(model: Any, split: Split) -> float:
    """Error on the test rows in percent."""
    return 100 * float(np.mean(model.predict(split.X_test) != split.y_test))


def _fit_times(split: Split, model: Any, repeats: int) -> dict[str, float]:
    model.fit(split.X[:50], split.y[:50])  # warm up
    fit, _ = settled(lambda: timed_median(lambda: model.fit(split.X, split.y), repeats))
    return {"cpu": fit.cpu, "wall": fit.wall}


#: Section 3.2. The paper shows curves, and prints no numbers.
SAYS = "the three methods have similar errors; LSPC trains faster than KLR by two orders of magnitude"
KEYS = ("figure", "data", "n", "c")


def summarised(found: list[dict]) -> list[dict]:
    """One record for each point: errors of all runs, median times, ratios of times."""
    out = []
    for key in dict.fromkeys(tuple(f[k] for k in KEYS) for f in found):
        here = [f for f in found if tuple(f[k] for k in KEYS) == key]
        record: dict[str, Any] = dict(zip(KEYS, key, strict=True))
        for m in dict.fromkeys(f["method"] for f in here):
            runs = [f for f in here if f["method"] == m]
            times = {clock: float(np.median([f[clock] for f in runs])) for clock in ("cpu", "wall")}
            record[m] = {"errors": [f["error"] for f in runs], **times}
        for clock in ("cpu", "wall"):
            lspc = record["LSPC"][clock]
            record[f"ratio_{clock}"] = record[TEXTBOOK][clock] / lspc
            record[f"ratio_here_{clock}"] = record["KLR here"][clock] / lspc
        out.append(record)
    return out


def error_tables(summary: list[dict], clock: str, report: Report) -> None:
    """Report errors and times (processor or wall time), and the paper's statement."""
    kind = "processor seconds" if clock == "cpu" else "seconds by the clock"
    for figure in dict.fromkeys(r["figure"] for r in summary):
        here = [r for r in summary if r["figure"] == figure]
        header = ["data", "n", "c", *(f"% {m}" for m in LABELS), *(f"s {m}" for m in LABELS), "KLR/LSPC", "here/LSPC"]
        title = f"Figure {figure}: test error in percent and {kind} of one fit"
        report(table(title, header, [_line(r, clock) for r in here]))
        ratios = [r[f"ratio_{clock}"] for r in here]
        report(f"paper: {SAYS}. Here KLR / LSPC is {min(ratios):.3g} to {max(ratios):.3g}.")


def _line(r: dict, clock: str) -> list:
    errors = [spread(r[m]["errors"], 1) for m in LABELS]
    times = [r[m][clock] for m in LABELS]
    return [r["data"], r["n"], r["c"], *errors, *times, r[f"ratio_{clock}"], r[f"ratio_here_{clock}"]]


def draw_figures(summary: list[dict], job: Job) -> None:
    """Draw errors (left) and processor times (right), one row for each data set."""
    for figure in dict.fromkeys(r["figure"] for r in summary):
        here = [r for r in summary if r["figure"] == figure]
        rows = [_panels([r for r in here if r["data"] == name]) for name in dict.fromkeys(r["data"] for r in here)]
        pictured(job.picture(f"figure{figure}"), job.report, partial(draw_panels, rows=rows))


def _panels(records: list[dict]) -> list[Panel]:
    name, axis = records[0]["data"], "n" if records[0]["figure"] == 7 else "c"
    at = [r[axis] for r in records]
    errors = {m: [r[m]["errors"] for r in records] for m in LABELS}
    left = {m: (at, [np.mean(e) for e in v], [np.std(e) for e in v]) for m, v in errors.items()}
    right = {m: (at, [r[m]["cpu"] for r in records], None) for m in LABELS}
    return [
        Panel(name, axis, "test error (%)", left, from_zero=True),
        Panel(name, axis, "processor time of a fit (s)", right, log=("y",)),
    ]
