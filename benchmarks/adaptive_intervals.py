"""Coverage of 90 % prediction intervals by task where the errors of tasks differ, with adaptive and constant widths.

30 tasks of 20 rows have one linear function and normal noise with a standard deviation of 0.1, 0.2 or 0.4, by turns.
"lowest" and "highest" are the coverages of the tasks with the lowest and the highest coverage, on 300 new rows each;
"width" is relative to that of constant widths. Figures are means over draws, with their standard errors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks._common import capped, parse, parser, print_markdown, write_json
from leastwise import MultiTaskLSSVR

TASKS, ROWS, NEW = 30, 20, 300
NOISE = np.array([0.1, 0.2, 0.4])


def draw(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, targets and tasks."""
    task = np.repeat(np.arange(TASKS), rows)
    X = rng.normal(size=(len(task), 2))
    return X, X[:, 0] + NOISE[task % len(NOISE)] * rng.normal(size=len(task)), task


def one_draw(seed: int) -> dict[bool, list[float]]:
    """Coverage of all rows, the lowest and the highest of a task, and the mean width; by ``adaptive``."""
    rng = np.random.default_rng([7, seed])
    X, y, task = draw(rng, ROWS)
    model = MultiTaskLSSVR(random_state=0).fit(X, y, tasks=task)
    X, y, task = draw(rng, NEW)
    found = {}
    for adaptive in (True, False):
        low, high = model.predict_interval(X, tasks=task, adaptive=adaptive).T
        inside = (low <= y) & (y <= high)
        shares = np.bincount(task, weights=inside) / NEW
        found[adaptive] = [float(v) for v in (inside.mean(), shares.min(), shares.max(), (high - low).mean())]
    for values in found.values():
        values[-1] /= found[False][-1]
    return found


def main(argv: Sequence[str] | None = None) -> None:
    args = parse(parser("benchmarks.adaptive_intervals", __doc__, threads=1, runs=20), argv)
    with capped(args):
        draws = [one_draw(seed) for seed in range(2 if args.quick else args.runs)]
    lines, figures = [], {}
    for adaptive, name in ((True, "adaptive"), (False, "constant")):
        found = np.array([draw[adaptive] for draw in draws])
        mean, error = found.mean(axis=0), found.std(axis=0) / np.sqrt(len(draws))
        figures[name] = {"mean": mean.tolist(), "error": error.tolist(), "draws": len(draws)}
        lines.append([name, *[f"{m:.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True)]])
    print_markdown(f"{TASKS} tasks of {ROWS} rows", ["widths", "coverage", "lowest", "highest", "width"], lines)
    write_json(args, figures)


if __name__ == "__main__":
    main()
