"""Figures 4 to 6: three classes in the plane whose posterior is known, section 3.1.

LSPC and LSPC(full) are set as in the paper: the ridge on the coefficients, the paper's grids of sigma and lambda, two
folds, negative scores clipped and the rest normalised. The paper does not name its selection criterion; accuracy is
used here. Kernel logistic regression has the same grids and folds, lambda relative to the mean of the losses and, as
in the paper, no intercept.

The paper draws the posteriors and prints no numbers. This experiment also reports the mean squared distance to the
true posterior: over the region [-5, 5]^2 and over new rows; and the confidence far away from the data, the mean of
the largest class probability at a distance of 10 from the origin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from leastwise import LSPC, KernelLogisticRegression
from leastwise.datasets import make_three_class, three_class_density, three_class_posterior
from leastwise.displays import PosteriorDisplay
from papers._common import PLAIN
from papers._common.data import Array, median_distance
from papers._common.experiments import Job, Settings, option
from papers._common.output import new_figure, pictured, spread, table
from papers.lspc.methods import ALPHAS, SIGMAS

#: Section 3.1. The paper shows surfaces, and prints no numbers.
SAYS = "all methods approximate the posterior well in [-5, 5]^2; outside of it they differ"
NEW_ROWS, GRID_SIDE = 2000, 40
#: Measures: key in the results, and header in the table.
MEASURES = {"region": "[-5, 5]^2", "new_rows": "new rows", "far": "largest, far away"}


@dataclass(frozen=True)
class PlaneSettings(Settings):
    """Settings."""

    runs: int = option(5, "random draws", least=1)
    rows: int = option(200, "training rows", least=1)


def models(X: Array, y: Array) -> dict[str, Any]:
    """Train every method."""
    m = median_distance(X)
    grid: dict[str, Any] = {
        "sigma": [m * s for s in SIGMAS],
        "alpha": list(ALPHAS),
        "random_state": 0,
        "cv": 2,
        **PLAIN,
    }
    paper = {**grid, "norm": "coefficients", "calibration": None, "scoring": "accuracy"}
    made = {
        "LSPC": LSPC(**paper, basis="class"),
        "LSPC(full)": LSPC(**paper, basis="full"),
        "KLR": KernelLogisticRegression(**grid, bias=None),
        "LSPC()": LSPC(**PLAIN, random_state=0),
    }
    return {name: model.fit(X, y) for name, model in made.items()}


def run(settings: PlaneSettings, job: Job) -> dict[str, Any]:
    """Run the experiment; the figures show the first draw."""
    found = job.gathered(_records(settings, job))
    names = list(dict.fromkeys(f["method"] for f in found))
    lines = [[name, *(spread([f[k] for f in found if f["method"] == name]) for k in MEASURES)] for name in names]
    title = f"Figure 6: mean squared distance to the true posterior, {settings.rows} rows, {settings.runs} draws"
    job.report(table(title, ["method", *MEASURES.values()], lines))
    job.report(f"paper: {SAYS}.")
    _draw(settings, job)
    return {"figures": found}


def _records(settings: PlaneSettings, job: Job) -> Iterator[dict]:
    side = np.linspace(-5, 5, GRID_SIDE)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    angle = np.linspace(0, 2 * np.pi, 72, endpoint=False)
    far = 10 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    new = make_three_class(NEW_ROWS, random_state=1000)[0]
    for seed in range(settings.runs):
        for name, model in models(*make_three_class(settings.rows, random_state=seed)).items():
            posterior: Callable[[Array], Array] = model.predict_proba
            yield {
                "method": name,
                "run": seed,
                "region": distance(posterior, grid),
                "new_rows": distance(posterior, new),
                "far": float(posterior(far).max(axis=1).mean()),
                "sigma": model.sigma_,
                "alpha": model.alpha_,
            }
        job.report(f"three classes, run {seed}: done")


def distance(posterior: Callable[[Array], Array], X: Array) -> float:
    """Mean squared distance to the true posterior."""
    return float(np.sum((posterior(X) - three_class_posterior(X)) ** 2, axis=1).mean())


def _draw(settings: PlaneSettings, job: Job) -> None:
    X, y = make_three_class(settings.rows, random_state=0)
    if job.picture("figure6") is None:
        return
    posteriors = {"truth": three_class_posterior, **{n: m.predict_proba for n, m in models(X, y).items()}}
    pictured(job.picture("figure4"), job.report, draw_densities)
    pictured(job.picture("figure5"), job.report, partial(draw_decisions, posteriors=posteriors, X=X, y=y))
    pictured(job.picture("figure6"), job.report, partial(draw_posteriors, posteriors=posteriors))


Posteriors = Mapping[str, Callable[[Array], Array]]

NAMES = ["y = 1", "y = 2", "y = 3"]
COLORS = ["tab:blue", "tab:orange", "tab:green"]
#: The paper's training region, and a square around it.
REGION, BEYOND = (-5.0, 5.0), ((-8.0, 8.0), (-8.0, 8.0))
SIDE = 120


def draw_densities(path: Path) -> None:
    """Figure 4: p(x | y)."""
    figure, (line, points) = new_figure(10, 3.4), _grid(-6, 6)
    axes = figure.subplots(1, 3, sharey=True)
    density = three_class_density(points).reshape(SIDE, SIDE, 3)
    for k, ax in enumerate(axes):
        surface = ax.contourf(line, line, density[..., k], levels=np.linspace(0, 0.16, 17))
        ax.set(title=f"p(x | {NAMES[k]})", xlabel="$x_1$", aspect="equal")
    figure.colorbar(surface, ax=list(axes), label="density")
    figure.savefig(path, dpi=120)


def draw_decisions(path: Path, posteriors: Posteriors, X: Array, y: Array) -> None:
    """Figure 5: the training rows, and the most probable class in the background."""
    figure, (line, points) = new_figure(10, 7), _grid(*REGION)
    axes = figure.subplots(2, 3, sharex=True, sharey=True).ravel()
    for ax, (name, posterior) in zip(axes, posteriors.items(), strict=False):
        winner = posterior(points).argmax(axis=1).reshape(SIDE, SIDE)
        ax.contourf(line, line, winner, levels=[-0.5, 0.5, 1.5, 2.5], colors=COLORS, alpha=0.25)
        for k, marker in enumerate("osD"):
            ax.scatter(*X[y == k].T, s=10, marker=marker, color=COLORS[k], label=NAMES[k])
        ax.set(title=name, xlim=REGION, ylim=REGION, aspect="equal")
    axes[-1].axis("off")
    axes[-1].legend(*axes[0].get_legend_handles_labels(), loc="center", markerscale=2)
    figure.savefig(path, dpi=120)


def draw_posteriors(path: Path, posteriors: Posteriors) -> None:
    """Figure 6: p(y | x) of the truth and of every method; the frame is the paper's training region."""
    figure = new_figure(8, 2.4 * len(posteriors))
    axes = figure.subplots(len(posteriors), 3, sharex=True, sharey=True)
    for line, (name, posterior) in zip(axes, posteriors.items(), strict=True):
        display = PosteriorDisplay.from_function(posterior, BEYOND, names=NAMES, ax=line, colorbar=False)
        line[0].set_ylabel(f"{name}\n$x_2$")
        for ax in line:
            _frame(ax)
    figure.colorbar(display.surfaces_[-1], ax=list(axes.flat), label="probability", shrink=0.4)
    figure.savefig(path, dpi=120)


def _frame(ax: Any) -> None:
    low, high = REGION
    ax.plot([low, high, high, low, low], [low, low, high, high, low], "w--", lw=1)
    ax.label_outer()


def _grid(low: float, high: float) -> tuple[Array, Array]:
    """Coordinates along one side of a square, and the points of its grid."""
    line = np.linspace(low, high, SIDE)
    return line, np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
