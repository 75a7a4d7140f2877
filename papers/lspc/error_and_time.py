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
from typing import Any

import numpy as np

from papers._common.data import Split, available, median_distance
from papers._common.experiments import Job, Settings, option
from papers._common.timing import settled, timed, timed_median
from papers.lspc.draws import Source, source
from papers.lspc.methods import METHODS, TEXTBOOK
from papers.lspc.tables import draw_figures, error_tables, summarised
from papers.lspc.textbook import TextbookKLR

CLASSES = {
    "mnist": (2, 4, 6, 8, 10),
    "usps": (2, 4, 6, 8, 10),
    "satimage": (2, 3, 4, 5, 6),
    "letter": (2, 5, 10, 15, 20, 26),
}


@dataclass(frozen=True)
class FigureSettings(Settings):
    """What can be set."""

    runs: int = option(3, "random draws", least=1)
    sets: tuple[str, ...] = option(tuple(CLASSES), "data sets", kind=str, choices=tuple(CLASSES))
    figure: int | None = option(None, "one figure alone", choices=(7, 8))
    repeats: int = option(5, "timings of each fit", least=1)
    sizes: tuple[int, ...] = option((100, 200, 500, 1000, 2000), "training rows in figure 7", least=1)
    rows: int = option(1000, "training rows in figure 8", least=1)
    class_counts: int = option(6, "how many of the numbers of classes in figure 8, from the least on")


def run(settings: FigureSettings, job: Job) -> dict[str, Any]:
    """Measure, tell, draw."""
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
    """Figure, n and c of every point."""
    seven = [(7, n, data.n_classes) for n in settings.sizes]
    eight = [(8, settings.rows, c) for c in CLASSES[data.name][: settings.class_counts]]
    return [p for p in seven + eight if settings.figure in (None, p[0])]


def on_one_draw(split: Split, seed: int, repeats: int) -> Iterator[dict]:
    """All methods on one draw."""
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
    """On the test rows, in percent."""
    return 100 * float(np.mean(model.predict(split.X_test) != split.y_test))


def _fit_times(split: Split, model: Any, repeats: int) -> dict[str, float]:
    model.fit(split.X[:50], split.y[:50])  # code and buffers that the first call has to fetch
    fit, _ = settled(lambda: timed_median(lambda: model.fit(split.X, split.y), repeats))
    return {"cpu": fit.cpu, "wall": fit.wall}
