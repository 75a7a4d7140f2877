"""Are promises kept where rows are few and hyperparameters are chosen on them? Many draws of hard settings.

overlap       two classes of normal rows in two dimensions; the best possible error is 11.5 %
wide          the same difference of means along one of 30 dimensions, 5.5 %
three         three overlapping classes in two dimensions
near copies   rows within 0.001 of one of 12 points, each with its own probability of the second class

Every model is fitted with its default search. "broken" is the share of draws in which the error rate of accepted new
rows is above ``max_error``, which may happen with a probability of 0.05; "coverage" is that of prediction sets.
"plain" are the same figures if errors hidden by the choice of hyperparameters are not counted. A figure marked with
"!" is outside of what chance allows: a binomial test at 0.001, or three standard errors below the nominal coverage.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import binom

from benchmarks._common import capped, parse, parser, print_markdown, write_json
from leastwise import LSPC, Recalibrated
from leastwise.calibration.conformal import class_levels, nonconformity, sets
from leastwise.calibration.risk import safe_threshold
from leastwise.estimators._abstention_rows import heldout_decisions

Array = np.ndarray
DELTA = 0.05
LIMITS, COVERAGES = (0.1, 0.15, 0.2), (0.8, 0.9, 0.95)
ROWS = (30, 40, 60, 100, 200)
MODELS = {"LSPC": LSPC, "Recalibrated": lambda: Recalibrated(LSPC())}
#: Points of the near copies, and their probabilities of the second class.
POINTS = np.random.default_rng(7).normal(size=(12, 4))
CHANCES = np.array([0.04, 0.96, 0.06, 0.94, 0.1, 0.9, 0.08, 0.92, 0.2, 0.8, 0.5, 0.5])
SETTINGS = ("overlap", "wide", "three", "near copies")
NEW_ROWS = 4000
#: A promise with its figure, and what it costs.
KINDS = (("max_error", "broken", "accepted"), ("coverage", "coverage", "size"))


def draw(setting: str, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Independent rows of one population."""
    if setting == "near copies":
        which = rng.integers(0, 12, n)
        return POINTS[which] + 1e-3 * rng.normal(size=(n, 4)), (rng.random(n) < CHANCES[which]).astype(int)
    if setting == "three":
        y = rng.integers(0, 3, n)
        return 1.6 * np.array([[0, 0], [2, 0], [1, 2]])[y] + rng.normal(size=(n, 2)), y
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 30 if setting == "wide" else 2))
    X[:, 0] += (3.2 if setting == "wide" else 2.4) * y
    return X, y


def promises(
    model: Any, X: Array, y: Array, X_new: Array, y_new: Array
) -> Iterator[tuple[str, float, bool, float, float]]:
    """Kind, level, if hidden errors count; then error and share of accepted rows, or coverage and size of sets."""
    model.fit(X, y)
    P, evidence = model.predict_proba(X_new), model._evidence()
    decisions = heldout_decisions(model, X, y, {}).decisions[0]
    wrong, scores = P.argmax(axis=1) != y_new, nonconformity(P, "lac", np.random.default_rng(0))
    known = nonconformity(evidence.P, "lac", np.random.default_rng(0))[np.arange(len(evidence)), evidence.codes]
    for counted in (True, False):
        hidden = {} if counted else {"hidden": 0.0}
        for limit in LIMITS:
            ok = P.max(axis=1) >= safe_threshold(replace(decisions, **hidden), limit, DELTA)
            yield "max_error", limit, counted, float(wrong[ok].mean()) if ok.any() else 0.0, float(ok.mean())
        for coverage in COVERAGES:
            level = class_levels(known, replace(evidence, **hidden), coverage, False)
            made = sets(scores, level, allow_empty=False)
            yield (
                "coverage",
                coverage,
                counted,
                float(made[np.arange(len(y_new)), y_new].mean()),
                float(made.sum(1).mean()),
            )


def cell(setting: str, n: int, make: Any, runs: int) -> list[dict]:
    """All draws of a setting."""
    X_new, y_new = draw(setting, NEW_ROWS, np.random.default_rng(99))
    found: dict[tuple[str, float], dict[bool, list[tuple[float, float]]]] = {}
    for seed in range(runs):
        X, y = draw(setting, n, np.random.default_rng([seed, n]))
        for kind, level, counted, *values in promises(make(), X, y, X_new, y_new):
            found.setdefault((kind, level), {True: [], False: []})[counted].append((values[0], values[1]))
    return [
        {
            "kind": kind,
            "level": level,
            **summary(kind, level, both[True], ""),
            **summary(kind, level, both[False], "plain "),
        }
        for (kind, level), both in found.items()
    ]


def summary(kind: str, level: float, values: list[tuple[float, float]], name: str) -> dict:
    """The figure of a promise, whether chance allows it, and the share of accepted rows or the size of the sets."""
    first, second = np.array(values).T
    if kind == "max_error":
        broken = int(np.sum(first > level))
        kept = broken <= binom.ppf(0.999, len(first), DELTA)
        return {f"{name}broken": broken / len(first), f"{name}kept": bool(kept), f"{name}accepted": second.mean()}
    kept = first.mean() >= level - 3 * first.std() / np.sqrt(len(first))
    return {f"{name}coverage": first.mean(), f"{name}kept": bool(kept), f"{name}size": second.mean()}


def run(args: argparse.Namespace) -> Iterator[dict]:
    for setting in args.settings:
        for n in args.rows:
            for name in args.models:
                for figure in cell(setting, n, MODELS[name], args.runs):
                    yield {"model": name, "setting": setting, "rows": n, "draws": args.runs, **figure}
                    print(f"{name}, {setting}, {n} rows: {figure}", flush=True)


def report(found: list[dict]) -> None:
    for kind, first, second in KINDS:
        lines = [
            [
                f["model"],
                f["setting"],
                f["rows"],
                f["draws"],
                f["level"],
                *both(f, first, second),
            ]
            for f in found
            if f["kind"] == kind
        ]
        header = ["model", "setting", "rows", "draws", kind, f"{first} / {second}", "plain"]
        print_markdown(f"{kind}: {first} and {second}", header, lines)


def both(figure: dict, first: str, second: str) -> list[str]:
    """The figures with and without the correction for the choice of hyperparameters."""
    return [_shown(figure, name, first, second) for name in ("", "plain ")]


def _shown(figure: dict, name: str, first: str, second: str) -> str:
    mark = "" if figure[f"{name}kept"] else " !"
    return f"{figure[name + first]:.3f}{mark} / {figure[name + second]:.2f}"


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.few_rows", __doc__, runs=1000)
    p.add_argument("--rows", nargs="+", type=int, default=ROWS)
    p.add_argument("--settings", nargs="+", choices=SETTINGS, default=SETTINGS)
    p.add_argument("--models", nargs="+", choices=[*MODELS], default=[*MODELS])
    args = parse(p, argv)
    if args.quick:
        args.runs, args.rows = 3, (40,)
    found: list[dict] = []
    with capped(args), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for record in run(args):
            found.append(record)
            write_json(args, {"figures": found}, say=False)
    report(found)
    write_json(args, {"figures": found})


if __name__ == "__main__":
    main()
