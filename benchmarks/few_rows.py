"""Are promises kept where rows are few and hyperparameters are chosen on them? Many draws of hard settings.

overlap       two classes of normal rows in two dimensions; the best possible error is 11.5 %
wide          the same difference of means along one of 30 dimensions, 5.5 %
three         three overlapping classes in two dimensions
near copies   rows within 0.001 of one of 12 points, each with its own probability of the second class

Every model is fitted with its default search; multi-task models have three tasks of the same population. "broken" is
the share of draws in which the error rate of accepted new rows is above ``max_error``, which may happen with a
probability of 0.05; "coverage" is that of prediction sets. Figures without a name are those of ``Abstaining``, whose
held-out rows are predicted by other fits, and of ``predict_set``, which counts the errors that are hidden by the
choice of hyperparameters on the held-out rows of the fit. "counted" is ``max_error`` on the held-out rows of the fit
with hidden errors counted, and "plain" are both promises on these rows without that. A figure marked with "!" is
outside of what chance allows: a binomial test at 0.001, or three standard errors below the nominal coverage.

Draws can be measured in pieces: ``--first 250 --add`` measures draws from number 250 on, and adds them to those in
the output file.
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
from benchmarks._pieces import earlier_figures
from leastwise import LSPC, LSSVC, KernelLogisticRegression, MultiTaskLSPC, Recalibrated
from leastwise.calibration.conformal import class_levels, nonconformity, sets
from leastwise.calibration.risk import safe_threshold
from leastwise.estimators._abstention_rows import heldout_decisions

Array = np.ndarray
DELTA = 0.05
LIMITS, COVERAGES = (0.1, 0.15, 0.2), (0.8, 0.9, 0.95)
ROWS = (30, 40, 60, 100, 200)
MODELS = {
    "LSPC": LSPC,
    "Recalibrated": lambda: Recalibrated(LSPC()),
    "LSSVC": LSSVC,
    "KernelLogisticRegression": KernelLogisticRegression,
    "MultiTaskLSPC": MultiTaskLSPC,
}
TASKS = 3
#: Points of the near copies, and their probabilities of the second class.
POINTS = np.random.default_rng(7).normal(size=(12, 4))
CHANCES = np.array([0.04, 0.96, 0.06, 0.94, 0.1, 0.9, 0.08, 0.92, 0.2, 0.8, 0.5, 0.5])
SETTINGS = ("overlap", "wide", "three", "near copies")
NEW_ROWS = 4000
#: A promise with its figure, what it costs, and the ways in which it is tested.
KINDS = (
    ("max_error", "broken", "accepted", ("", "counted ", "plain ")),
    ("coverage", "coverage", "size", ("", "plain ")),
)
#: How the ways are called in tables.
WAYS = {"": "as it is", "counted ": "hidden errors counted", "plain ": "no correction"}


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
    model: Any, train: tuple[Array, Array, dict], new: tuple[Array, Array, dict]
) -> Iterator[tuple[str, float, str, float, float]]:
    """Kind, level and way; then error and share of accepted rows, or coverage and size of sets."""
    (X, y, given), (X_new, y_new, given_new) = train, new
    P, heldout = model.predict_proba(X_new, **given_new), model._calibration_set()
    wrong, scores = P.argmax(axis=1) != y_new, nonconformity(P, "lac", np.random.default_rng(0))
    decisions = {
        "": heldout_decisions(model, X, y, given).decisions[0],
        "counted ": heldout_decisions(model, X, y, given, promised=False).decisions[0],
    }
    decisions["plain "] = replace(decisions["counted "], hidden=0.0)
    for way, used in decisions.items():
        for limit in LIMITS:
            ok = P.max(axis=1) >= safe_threshold(used, limit, DELTA)
            yield "max_error", limit, way, float(wrong[ok].mean()) if ok.any() else 0.0, float(ok.mean())
    known = nonconformity(heldout.P, "lac", np.random.default_rng(0))[np.arange(len(heldout)), heldout.codes]
    for way, shown in (("", heldout), ("plain ", replace(heldout, hidden=0.0))):
        for coverage in COVERAGES:
            made = sets(scores, class_levels(known, shown, coverage, False), allow_empty=False)
            covered = made[np.arange(len(y_new)), y_new]
            yield "coverage", coverage, way, float(covered.mean()), float(made.sum(1).mean())


def tasks_of(name: str, n: int) -> dict[str, Array]:
    """The tasks of n rows, for a multi-task model."""
    return {"tasks": np.arange(n) % TASKS} if "Task" in name else {}


def fitted(names: Sequence[str], X: Array, y: Array) -> Iterator[tuple[str, Any]]:
    """The models, fitted; the LSPC inside of ``Recalibrated`` is the same as one alone."""
    shared = Recalibrated(LSPC()).fit(X, y) if {"LSPC", "Recalibrated"} <= {*names} else None
    for name in names:
        if shared is not None and name in ("LSPC", "Recalibrated"):
            yield name, shared if name == "Recalibrated" else shared.estimator_
        else:
            yield name, MODELS[name]().fit(X, y, **tasks_of(name, len(y)))


def cell(setting: str, n: int, names: Sequence[str], seeds: range) -> Iterator[dict]:
    """Figures of all models in these draws of a setting."""
    X_new, y_new = draw(setting, NEW_ROWS, np.random.default_rng(99))
    found: dict[tuple[str, str, float], dict[str, list[tuple[float, float]]]] = {}
    for seed in seeds:
        X, y = draw(setting, n, np.random.default_rng([seed, n]))
        for name, model in fitted(names, X, y):
            given = (X, y, tasks_of(name, n)), (X_new, y_new, tasks_of(name, NEW_ROWS))
            for kind, level, way, first, second in promises(model, *given):
                found.setdefault((name, kind, level), {}).setdefault(way, []).append((first, second))
    for (name, kind, level), ways in found.items():
        about = {"model": name, "setting": setting, "rows": n, "kind": kind, "level": level}
        figures = {key: v for way, values in ways.items() for key, v in summary(kind, level, values, way).items()}
        yield judged({**about, "draws": len(seeds), "seeds": [[seeds.start, seeds.stop]], **figures})


def summary(kind: str, level: float, values: list[tuple[float, float]], name: str) -> dict:
    """The figure of a promise, and the share of accepted rows or the size of the sets; means over the draws."""
    first, second = np.array(values).T
    if kind == "max_error":
        return {f"{name}broken": float(np.mean(first > level)), f"{name}accepted": second.mean()}
    squares = float(np.mean((first - level) ** 2))
    return {f"{name}coverage": first.mean(), f"{name}squares": squares, f"{name}size": second.mean()}


IDENTITY = ("model", "setting", "rows", "kind", "level")


def added(figures: list[dict], new: dict) -> list[dict]:
    """The figures with further draws of one of them; all are means over draws."""
    same = [f for f in figures if all(f[key] == new[key] for key in IDENTITY)]
    if not same:
        return [*figures, new]
    (old,) = same
    if any(a < d and c < b for a, b in old["seeds"] for c, d in new["seeds"]):
        raise ValueError(f"Draws {new['seeds']} are among {old['seeds']} of the output file: give another --first.")
    n, m = old["draws"], new["draws"]
    means = {key: (n * old[key] + m * new[key]) / (n + m) for key in new if key not in (*IDENTITY, "draws", "seeds")}
    both = judged({**old, **means, "draws": n + m, "seeds": [*old["seeds"], *new["seeds"]]})
    return [both if f is old else f for f in figures]


def judged(figure: dict) -> dict:
    """The figure, with whether chance allows it."""
    ways = next(ways for kind, *_, ways in KINDS if kind == figure["kind"])
    return {**figure, **{f"{way}kept": _kept(figure, way) for way in ways}}


def _kept(figure: dict, name: str) -> bool:
    draws, level = figure["draws"], figure["level"]
    if figure["kind"] == "max_error":
        return bool(round(figure[f"{name}broken"] * draws) <= binom.ppf(0.999, draws, DELTA))
    short = level - figure[f"{name}coverage"]
    return bool(short <= 3 * np.sqrt(max(figure[f"{name}squares"] - short**2, 0) / draws))


def run(args: argparse.Namespace) -> Iterator[dict]:
    for setting in args.settings:
        for n in args.rows:
            for figure in cell(setting, n, args.models, range(args.first, args.first + args.runs)):
                yield figure
                print(figure, flush=True)


def report(found: list[dict]) -> None:
    for kind, first, second, _ in KINDS:
        header, lines = lines_of(found, kind)
        print_markdown(f"{kind}: {first} and {second}", header, lines)


def lines_of(found: list[dict], kind: str) -> tuple[list[str], list[list]]:
    """Header and lines of the table of a promise: figure and cost for each way."""
    first, second, ways = next(rest for name, *rest in KINDS if name == kind)
    known = [f for f in found if f["kind"] == kind]
    ways = [way for way in ways if all(f"{way}kept" in f for f in known)]  # those that have been measured
    header = ["model", "setting", "rows", "draws", kind, f"{first} / {second}", *(WAYS[way] for way in ways[1:])]
    known.sort(key=lambda f: (list(MODELS).index(f["model"]), SETTINGS.index(f["setting"]), f["rows"], f["level"]))
    about = ("model", "setting", "rows", "draws", "level")
    return header, [[*(f[key] for key in about), *(_shown(f, way, first, second) for way in ways)] for f in known]


def _shown(figure: dict, way: str, first: str, second: str) -> str:
    mark = "" if figure[f"{way}kept"] else " !"
    return f"{figure[way + first]:.3f}{mark} / {figure[way + second]:.2f}"


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.few_rows", __doc__, runs=1000)
    p.add_argument("--rows", nargs="+", type=int, default=ROWS)
    p.add_argument("--settings", nargs="+", choices=SETTINGS, default=SETTINGS)
    p.add_argument("--models", nargs="+", choices=[*MODELS], default=[*MODELS])
    p.add_argument("--first", type=int, default=0, help="number of the first draw")
    p.add_argument("--add", action="store_true", help="add the draws to those in the output file")
    args = parse(p, argv)
    if args.quick:
        args.runs, args.rows = 3, (40,)
    found = earlier_figures(args)
    if found:
        args.command = f"python -m benchmarks.few_rows --threads {args.threads}"
    with capped(args), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for record in run(args):
            found = added(found, record)
            write_json(args, {"figures": found}, say=False)
    report(found)
    write_json(args, {"figures": found})


if __name__ == "__main__":
    main()
