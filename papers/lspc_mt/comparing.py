"""Quality and time of LSPC and KLR with tasks tied, alone and pooled, section 4.

sigma, lambda and gamma come from the paper's grid (252 points) by 5-fold cross-validation, the same folds for all: by
the area of all tasks pooled (landmine) or the accuracy (umist). The time is that of the search and a last fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from papers._common.data import median_distance
from papers._common.experiments import Job, Settings, option
from papers._common.timing import settled, timed
from papers.lspc_mt import tables
from papers.lspc_mt.draws import WAYS, Draw, Source, landmine, made, umist
from papers.lspc_mt.methods import DEFAULTS, Fitted, default, klr, lspc
from papers.lspc_mt.printed import TABLE_1, TABLE_2, TABLE_3, TABLE_4
from papers.lspc_mt.textbook import other_loops, textbook_seconds

AREA = "mean area under the curve"


@dataclass(frozen=True)
class TaskSettings(Settings):
    """What can be set."""

    runs: int = option(10, "random draws", least=1)
    sizes: tuple[int, ...] = option((20, 25, 30, 35), "rows of a task, or pictures of a person", least=1)
    klr_runs: int = option(10, "draws with KLR")
    klr_scale: str = option("mean", "of the losses beside KLR's lambda", kind=str, choices=("mean", "sum"))
    klr_points: int = option(42, "timed points of the paper's KLR")
    default_runs: int = option(20, "draws with the library's defaults, at most")
    slow_runs: int = option(5, "draws with norm='coefficients'")

    def ways(self) -> list[str]:
        """The scale, where it is not the usual one."""
        return [] if self.klr_scale == "mean" else [self.klr_scale]


@dataclass(frozen=True)
class MineSettings(TaskSettings):
    """What can be set for minefields."""

    draw: str = option("up", "how rows of the rare class are counted", kind=str, choices=WAYS)

    def ways(self) -> list[str]:
        """The way of drawing, and the scale, where they are not the usual ones."""
        return ([] if self.draw == "up" else [self.draw]) + super().ways()


def run_landmine(settings: MineSettings, job: Job) -> dict[str, Any]:
    """Tables 3 and 4: 15 minefields and 2 more with their labels reversed; the rest of the rows are for testing."""
    results = compared(landmine(job.data), settings, job, settings.draw)
    return told(results, "Landmine", AREA, (TABLE_3, TABLE_4), job)


def run_umist(settings: TaskSettings, job: Job) -> dict[str, Any]:
    """Tables 1 and 2: 4 tasks, each a woman against a man drawn at random; as many of both are left for testing."""
    return told(compared(umist(job.data), settings, job), "UMIST", "accuracy", (TABLE_1, TABLE_2), job)


def run_made(settings: TaskSettings, job: Job) -> dict[str, Any]:
    """Tasks that are made, as many as there are minefields, and as many reversed."""
    return told(compared(made(17, 2), settings, job), "made tasks", AREA, ({}, {}), job)


def told(results: dict[str, Any], name: str, quality: str, printed: Any, job: Job) -> dict[str, Any]:
    """Tables and pictures; the figures as they go into the record."""
    tables.tell(results, name, quality, printed, job.report)
    tables.draw(results, quality, job)
    return {**results, "runs": tables.columns(results["runs"])}


def compared(source: Source, settings: TaskSettings, job: Job, way: str = "up") -> dict[str, Any]:
    """All draws, tests and ratios."""
    results: dict[str, Any] = {"runs": [], "textbook": [], "loops": []}
    for kind, record in _records(source, settings, job, way):
        results[kind].append(record)
        job.save(results)
    results["tests"] = tables.comparisons(results["runs"], settings.sizes)
    results["ratios"] = tables.ratios(results, settings.sizes)
    return results


def _records(source: Source, settings: TaskSettings, job: Job, way: str) -> Iterator[tuple[str, dict]]:
    for n in settings.sizes:
        for seed in range(settings.runs):
            draw = source(n, seed, way)
            for found in on_one_draw(draw, seed, settings):
                yield "runs", {"n": n, "run": seed, **found}
            if seed == 0 and settings.klr_points:
                yield "textbook", {"n": n, **textbook_seconds(draw, settings.klr_points, seed, settings.klr_scale)}
                yield "loops", {"n": n, **other_loops(draw, 8)}
        job.report(f"n = {n}: done")


def on_one_draw(draw: Draw, seed: int, settings: TaskSettings) -> Iterator[dict]:
    """All methods that are wanted on this run."""
    for kind in ("MT", "STI", "STC"):
        yield {"method": f"LSPC-{kind}", **measured(draw, partial(lspc, draw, kind))}
        if seed < settings.klr_runs:
            yield {"method": f"KLR-{kind}", **measured(draw, partial(klr, draw, kind, settings.klr_scale))}
    for label, options in DEFAULTS.items():
        if seed < (settings.slow_runs if "norm" in options else settings.default_runs):
            yield {"method": label, **measured(draw, partial(default, draw, options))}


def measured(draw: Draw, call: Callable[[], Fitted]) -> dict[str, Any]:
    """Quality on test rows, time, and what was chosen."""
    run, unsettled = settled(lambda: timed(call))
    point, scores = run.value
    return {
        "score": draw.test(scores()),
        "cpu": run.cpu,
        "wall": run.wall,
        "cv_score": point.score,
        "sigma_in_medians": point.sigma * np.sqrt(2) / median_distance(draw.X),
        "alpha": point.alpha,
        "sharing": point.sharing,
        "unsettled": unsettled,
    }
