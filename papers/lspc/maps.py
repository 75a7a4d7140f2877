"""Pictures of the plane: densities, decisions and posteriors of three classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from leastwise.datasets import three_class_density
from leastwise.displays import PosteriorDisplay
from papers._common.pictures import new_figure

Array = np.ndarray
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
    """Figure 5: the training rows, and behind them the most probable class."""
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
    """Coordinates along one side of a square, and all points of its grid."""
    line = np.linspace(low, high, SIDE)
    return line, np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
