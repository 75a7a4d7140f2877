"""Coverage of 90 % prediction intervals for regression with few rows, with groups and with tasks.

LSSVR     rows drawn independently: d standard normal columns, and
            linear   the mean of the columns (times sqrt(d)), noise of 0.5
            smooth   sin(2 x1) + x2^2 / 2 (x1 where d = 1), noise of 0.3
            noise    zero, noise of 1
            hetero   x1, noise of 0.3 + 0.5 |x1|
groups    "linear" and "smooth" in groups of 2 to 8 rows, with a random intercept per group (standard deviation 0.7)
          and rows near the centre of the group; test rows come from new groups, one row of each
tasks     MultiTaskLSSVR, four tasks with their own slopes and intercepts; test rows of the same tasks and of new ones

"plain" intervals have no correction for the search and ignore groups. "corrected" are those of predict_interval.
"jackknife" are corrected too, but have a constant width. "to reach" is ceil(0.9 (n + 1)) / (n + 1), the nominal
coverage for the ranks of n rows or groups. Widths are relative to those of an oracle that knows the function and the
standard deviation of the noise (and of the intercepts); the median is shown if some intervals are infinite. Figures
are means over draws, with the standard error of the corrected coverage.
"""

from __future__ import annotations

import argparse
import copy
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks._common import capped, parse, parser, print_markdown, write_json
from leastwise import LSSVR, MultiTaskLSSVR

Array = np.ndarray
COVERAGE, NORMAL = 0.9, 1.6449
KINDS = ("linear", "smooth", "noise", "hetero")
ROWS, COLUMNS = (15, 20, 30, 60, 200), (1, 5, 20)
GROUPS, TASK_ROWS = (12, 20, 40), (20, 40, 80)
NEW, N_TASKS, LEVEL = 300, 4, 0.7


def function(kind: str, X: Array) -> tuple[Array, Array]:
    """The true mean of every row, and the standard deviation of its noise."""
    one, d = np.ones(len(X)), X.shape[1]
    if kind == "linear":
        return X.sum(axis=1) / np.sqrt(d), 0.5 * one
    if kind == "smooth":
        return np.sin(2 * X[:, 0]) + X[:, min(1, d - 1)] ** 2 / 2, 0.3 * one
    return (0 * one, one) if kind == "noise" else (X[:, 0], 0.3 + 0.5 * np.abs(X[:, 0]))


def drawn(rng: np.random.Generator, kind: str, n: int, d: int) -> tuple[Array, Array, Array]:
    """Rows, targets, and half the width of the oracle's interval."""
    X = rng.normal(size=(n, d))
    mean, spread = function(kind, X)
    return X, mean + spread * rng.normal(size=n), NORMAL * spread


def drawn_groups(
    rng: np.random.Generator, kind: str, groups: int, d: int, single: bool = False
) -> tuple[Array, Array, Array, Array]:
    """The same with groups; ``single`` gives one row per group."""
    group = np.repeat(np.arange(groups), 1 if single else rng.integers(2, 9, size=groups))
    X = rng.normal(size=(groups, d))[group] + 0.3 * rng.normal(size=(len(group), d))
    mean, spread = function(kind, X)
    y = mean + LEVEL * rng.normal(size=groups)[group] + spread * rng.normal(size=len(group))
    return X, y, NORMAL * np.sqrt(spread**2 + LEVEL**2), group


def drawn_tasks(rng: np.random.Generator, slopes: Array, n: int) -> tuple[Array, Array, Array, Array]:
    """Rows of tasks with these slopes; the first is the intercept."""
    task = np.arange(n) % len(slopes)
    X = rng.normal(size=(n, slopes.shape[1] - 1))
    y = slopes[task, 0] + np.sin(2 * X[:, 0]) + np.sum(X * slopes[task, 1:], axis=1) + 0.4 * rng.normal(size=n)
    return X, y, np.full(n, NORMAL * 0.4), task


def without_corrections(model: Any) -> Any:
    """The model with uncorrected residuals."""
    other = copy.copy(model)
    other.residuals_ = replace(model.residuals_, excess=None, inflation=1.0, group=None)
    return other


def measured(model: Any, X: Array, y: Array, oracle: Array, **more: Any) -> dict[str, float]:
    """Coverages, and widths relative to those of the oracle."""
    found = {}
    for name, one, method in (
        ("plain", without_corrections(model), "auto"),
        ("corrected", model, "auto"),
        ("jackknife", model, "jackknife"),
    ):
        low, high = one.predict_interval(X, COVERAGE, method, **more).T
        wide = (high - low) / (2 * oracle)
        found[name] = float(np.mean((low <= y) & (y <= high)))
        found[f"width_{name}"] = float(np.mean(wide) if np.isfinite(wide).all() else np.median(wide))
    return found


def cells(quick: bool) -> Iterator[tuple[str, str, int, int]]:
    """The settings: family, kind, number of rows (or groups) and columns."""
    rows, columns = ((20,), (1,)) if quick else (ROWS, COLUMNS)
    yield from (("LSSVR", kind, n, d) for kind in KINDS for d in columns for n in rows)
    yield from (("groups", kind, g, 2) for kind in KINDS[:2] for g in (GROUPS[:1] if quick else GROUPS))
    yield from (
        ("tasks", kind, n, 2)
        for kind in ("known", "new")
        for n in (TASK_ROWS[:1] if quick or kind == "new" else TASK_ROWS)
    )


def one_draw(family: str, kind: str, n: int, d: int, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([2021, n, d, seed])
    if family == "LSSVR":
        X, y, _ = drawn(rng, kind, n, d)
        return measured(LSSVR(random_state=0).fit(X, y), *drawn(rng, kind, NEW, d))
    if family == "groups":
        X, y, _, group = drawn_groups(rng, kind, n, d)
        model = LSSVR(random_state=0).fit(X, y, groups=group)
        return measured(model, *drawn_groups(rng, kind, NEW, d, single=True)[:3])
    many = kind == "new"
    T = 12 if many else N_TASKS
    slopes = np.column_stack([rng.normal(size=2 * T), 0.5 * rng.normal(size=(2 * T, d))])
    X, y, _, task = drawn_tasks(rng, slopes[:T], n if not many else 3 * n)
    model = MultiTaskLSSVR(random_state=0).fit(X, y, tasks=task)
    A, b, oracle, new = drawn_tasks(rng, slopes[T:] if many else slopes[:T], NEW)
    return measured(model, A, b, oracle, tasks=[f"new {t}" for t in new] if many else new)


def to_reach(family: str, kind: str, n: int) -> float:
    units = 12 if (family, kind) == ("tasks", "new") else n
    return float(np.ceil(COVERAGE * (units + 1) - 1e-9) / (units + 1))


def run(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for family, kind, n, d in cells(args.quick):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            draws = [one_draw(family, kind, n, d, seed) for seed in range(args.runs)]
        figures: dict[str, Any] = {name: float(np.mean([f[name] for f in draws])) for name in draws[0]}
        error = float(np.std([f["corrected"] for f in draws]) / np.sqrt(len(draws)))
        head = {"family": family, "kind": kind, "n": n, "d": d, "to_reach": to_reach(family, kind, n)}
        yield {**head, "draws": args.runs, "error": error, **figures}


def report(found: list[dict[str, Any]]) -> None:
    keys = ("to_reach", "plain", "corrected", "error", "jackknife", "width_plain", "width_corrected")
    names = ("to reach", "plain", "corrected", "± s.e.", "jackknife", "width, plain", "width, corrected")
    for family, rows in (("LSSVR", "rows"), ("groups", "groups"), ("tasks", "rows")):
        lines = [
            [f["kind"], f["d"], f["n"] * (3 if f["kind"] == "new" else 1), *(f"{f[k]:.3f}" for k in keys)]
            for f in found
            if f["family"] == family
        ]
        print_markdown(f"{family}, nominal coverage {COVERAGE}", ["data", "columns", rows, *names], lines)


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.intervals", __doc__, threads=1, runs=100)
    args = parse(p, argv)
    if args.quick:
        args.runs = 2
    found: list[dict] = []
    with capped(args):
        for record in run(args):
            found.append(record)
            write_json(args, {"figures": found}, say=False)
    report(found)
    write_json(args, {"figures": found})


if __name__ == "__main__":
    main()
