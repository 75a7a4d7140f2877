"""Figure 1b: seconds of one solve at given parameters, as the labels grow.

In brackets are iterations and the largest difference to the scores of "eigen" on the training rows, relative to the
largest score. Nothing is extrapolated: the direct solve is timed on fewer rows, the others there too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from leastwise import MultiLabelLSPC
from leastwise.baselines import InsDif, MLkNN
from papers._common.data import median_distance
from papers._common.experiments import Job, Settings, option
from papers._common.timing import timed_median
from papers.ml_lspc import solvers
from papers.ml_lspc.draws import rotated
from papers.ml_lspc.solvers import ALPHA, SHARING, SIGMA, Solver, System
from papers.ml_lspc.tables import tell_solve


@dataclass(frozen=True)
class SolveSettings(Settings):
    """What can be set."""

    rows: int = option(2000, "training rows", least=1)
    labels: tuple[int, ...] = option((10, 20, 50, 100, 200, 500), "numbers of labels", least=1)
    features: int = option(300, "features, of which two matter", least=1)
    direct: int = option(10_000, "rows x labels up to which the direct solve runs")
    direct_rows: int = option(200, "rows for the direct solve", least=1)
    direct_labels: tuple[int, ...] = option((10, 20, 50), "numbers of labels for it", least=1)
    insdif_labels: int = option(100, "labels up to which InsDif runs")


def run(settings: SolveSettings, job: Job) -> dict[str, Any]:
    """Time, tell, draw."""
    found = job.gathered(_records(settings, job))
    tell_solve(found, job)
    return {"paper": None, "point": {"sigma": SIGMA, "alpha": ALPHA, "sharing": SHARING}, "figures": found}


def _records(settings: SolveSettings, job: Job) -> Iterator[dict]:
    sizes = [(settings.direct_rows, settings.direct_labels), (settings.rows, settings.labels)]
    for rows, counts in sizes:
        for T in counts:
            for found in (*_solves(rows, T, settings), *_fits(rows, T, settings)):
                job.report(f"{rows} rows, {T} labels, {found['method']}: {found['seconds']:.3g} s")
                yield {"rows": rows, "labels": T, **found}


def _solves(rows: int, T: int, settings: SolveSettings) -> Iterator[dict]:
    """All solvers at one size."""
    system = System.of(rows, T, settings.features)
    ways: dict[str, Solver] = {
        "eigen": solvers.by_eigen,
        "CG": solvers.by_gradients,
        "CG + factor": solvers.by_factor,
    }
    if rows * T <= settings.direct:
        ways["direct"] = solvers.by_kronecker
    exact = solvers.by_eigen(system)[0]
    for name, solver in ways.items():
        done = timed_median(partial(solver, system), 3, budget=10)
        A, steps = done.value
        gap = float(np.abs(system.K @ (A - exact)).max() / np.abs(system.K @ exact).max())
        yield {"method": name, "seconds": done.wall, "iterations": steps, "difference": gap}


def _fits(rows: int, T: int, settings: SolveSettings) -> Iterator[dict]:
    """Whole fits, from the rows on."""
    data = rotated(T, rows, 1, 0, n_features=settings.features)
    options: dict[str, Any] = {"similarity": "correlation", "norm": "coefficients", "solver": "sylvester"}
    model = MultiLabelLSPC(SIGMA * median_distance(data.X), ALPHA, SHARING, **options, cv=None, calibration=None)
    fits: dict[str, Any] = {"MultiLabelLSPC, given parameters": model, "ML-kNN": MLkNN()}
    if settings.insdif_labels >= T:
        fits["InsDif"] = InsDif(random_state=0)
    for name, fit in fits.items():
        yield {"method": name, "seconds": timed_median(partial(fit.fit, data.X, data.Y), 3, budget=5).wall}
