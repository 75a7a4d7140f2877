"""Figures 7 and 8 of the LSPC paper: error and training time of LSPC, LSPC(full) and KLR.

Figure 7: n = 100 .. 2000 rows, all classes. Figure 8: n = 1000 rows of the first c classes. By section 3.2:
floor(n/c) random training rows and 100 random test rows of each class, columns of zero mean and unit variance
(over the training part of the data set; constant columns dropped), sigma and alpha chosen by 2-fold
cross-validation of the error rate. Time is that of one fit at the chosen sigma and alpha: processor time, as
in the paper, on one thread, and time by the clock.

LSPC          model (7), for each class the kernels at the rows of that class
LSPC(full)    model (5), all kernels for all classes
KLR           kernel logistic regression by L-BFGS on the kernel's coefficients, with the penalty lambda theta'K theta
              beside the sum of the losses, as the paper's software has it; at what the next one chose
KLR here      this library's KernelLogisticRegression: the same minimum, by Newton's method in better coordinates
LSPC()        this library's default: penalty on the function, sigma and alpha by leave-one-out log-loss on
              its own grid, calibrated (the time is again that of the bare fit)
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._common import (
    DataAbsent,
    Split,
    available,
    capped,
    load_set,
    median_distance,
    parse,
    parser,
    per_class,
    print_table,
    scale_of,
    settled,
    spread,
    standardise,
    timed,
    timed_median,
    write_json,
)
from benchmarks._textbook import TextbookKLR
from leastwise import LSPC, KernelLogisticRegression

SIZES = (100, 200, 500, 1000, 2000)
CLASSES = {
    "mnist": (2, 4, 6, 8, 10),
    "usps": (2, 4, 6, 8, 10),
    "satimage": (2, 3, 4, 5, 6),
    "letter": (2, 5, 10, 15, 20, 26),
}
SIGMAS = (1 / 10, 1 / 5, 1 / 2, 2 / 3, 1, 3 / 2, 2, 5, 10)
ALPHAS = tuple(10.0 ** np.array([-2, -1.5, -1, -0.5, 0]))
TEST_ROWS = 100


@dataclass(frozen=True)
class Method:
    """An estimator, how it is tuned, and how it is fitted at what the tuning chose."""

    make: Callable[..., Any]
    search: dict = field(default_factory=dict)
    bare: dict = field(default_factory=dict)
    paper_grid: bool = True

    def tuned(self, length: float, n: int, seed: int) -> Any:
        """To be fitted on a grid in units of ``length``, for n rows."""
        alphas = [2 * a / n for a in ALPHAS] if self.make is KernelLogisticRegression else list(ALPHAS)
        grid = {"sigma": [s * length for s in SIGMAS], "alpha": alphas} if self.paper_grid else {}
        return self.make(**grid, **self.search, random_state=seed)

    def at(self, model: Any, **more: Any) -> Any:
        """To be fitted at the sigma and alpha that ``model`` chose."""
        return self.make(sigma=model.sigma_, alpha=model.alpha_, cv=None, **{**self.bare, **more})


PAPER = {"norm": "coefficients", "calibration": None, "bias": None}
CROSS_VALIDATED = {"cv": 2, "scoring": "accuracy"}
METHODS = {
    "LSPC": Method(
        LSPC, {**PAPER, **CROSS_VALIDATED, "basis": "class", "search_rows": None}, {**PAPER, "basis": "class"}
    ),
    "LSPC(full)": Method(LSPC, {**PAPER, **CROSS_VALIDATED, "search_rows": None}, PAPER),
    "KLR here": Method(KernelLogisticRegression, {**CROSS_VALIDATED, "bias": None}, {"bias": None}),
    "LSPC()": Method(LSPC, bare={"calibration": None}, paper_grid=False),
}
TEXTBOOK = "KLR"
LABELS = ("LSPC", "LSPC(full)", TEXTBOOK, "KLR here", "LSPC()")


# ------------------------------------------------------------------------ draws


@dataclass(frozen=True)
class Source:
    """A data set with the scale of its training part."""

    name: str
    X: np.ndarray
    y: np.ndarray
    train: np.ndarray
    test: np.ndarray
    scale: tuple

    def draw(self, n: int, c: int, seed: int) -> Split:
        """floor(n/c) rows of each of the first c classes, and 100 of each for testing."""
        rng = np.random.default_rng([seed, n, c])
        classes = np.unique(self.y)[:c]
        train = per_class(self.y, self.train, classes, n // c, rng)
        test = per_class(self.y, self.test, classes, TEST_ROWS, rng)
        A, B = (standardise(self.X[rows], self.scale) for rows in (train, test))
        return Split(self.name, A, self.y[train], B, self.y[test])


def source(name: str, folder: str | None) -> Source:
    data = load_set(name, folder)
    is_train = np.asarray(data.is_train, dtype=bool)
    train, test = np.flatnonzero(is_train), np.flatnonzero(~is_train)
    X, y = np.asarray(data.X), np.asarray(data.y)
    return Source(name, X, y, train, test, scale_of(X[train]))


def settings(name: str, y: np.ndarray, args: argparse.Namespace) -> list[tuple[int, int, int]]:
    """Figure, n and c of every point."""
    everyone = len(np.unique(y))
    sizes, n, classes = ((100,), 100, CLASSES[name][:2]) if args.quick else (SIZES, 1000, CLASSES[name])
    points = [(7, n_, everyone) for n_ in sizes] + [(8, n, c) for c in classes]
    return [p for p in points if args.figure in (None, p[0])]


# ------------------------------------------------------------------ measurement


def point(split: Split, seed: int, repeats: int) -> Iterator[dict]:
    """All methods on one draw."""
    length = median_distance(split.X)
    for label, method in METHODS.items():
        tuned = method.tuned(length, len(split.y), seed)
        search, unsettled = settled(lambda t=tuned: timed(lambda: t.fit(split.X, split.y)))
        model = search.value
        found = {
            "method": label,
            "error": 100 * float(np.mean(model.predict(split.X_test) != split.y_test)),
            "sigma_in_medians": model.sigma_ / length,
            "alpha": model.alpha_,
            "search_wall": search.wall,
            "unsettled": unsettled,
        }
        yield {**found, **_fit_times(split, method.at(model), repeats)}
        if label == "KLR here":
            textbook = TextbookKLR(model.sigma_, model.alpha_)
            times = _fit_times(split, textbook, 1)
            error = 100 * float(np.mean(textbook.predict(split.X_test) != split.y_test))
            yield {**found, "method": TEXTBOOK, "error": error, "iterations": textbook.n_iter_, **times}


def _fit_times(split: Split, model: Any, repeats: int) -> dict[str, float]:
    model.fit(split.X[:50], split.y[:50])  # code and buffers that the first call has to fetch
    fit, _ = settled(lambda: timed_median(lambda: model.fit(split.X, split.y), repeats))
    return {"cpu": fit.cpu, "wall": fit.wall}


def run(args: argparse.Namespace) -> Iterator[dict]:
    done = False
    for name, data in available(args.sets, lambda name: source(name, args.data)):
        done = True
        for figure, n, c in settings(name, data.y, args):
            for seed in range(args.runs):
                split = data.draw(n, c, seed)
                where = {"figure": figure, "data": name, "n": n, "c": c, "rows": len(split.y), "run": seed}
                for found in point(split, seed, args.repeats):
                    yield {**where, **found}
                print(f"figure {figure}, {name}, n = {n}, c = {c}, run {seed}: done", flush=True)
    if not done:
        raise DataAbsent("none of the data sets is there")


# ----------------------------------------------------------------------- report


def summarised(found: list[dict]) -> list[dict]:
    """One record for each point: errors as mean and deviation, times as median over runs, ratios of times."""
    out = []
    for key in dict.fromkeys((f["figure"], f["data"], f["n"], f["c"]) for f in found):
        here = [f for f in found if (f["figure"], f["data"], f["n"], f["c"]) == key]
        record: dict[str, Any] = dict(zip(("figure", "data", "n", "c"), key, strict=True))
        for m in dict.fromkeys(f["method"] for f in here):
            runs = [f for f in here if f["method"] == m]
            record[m] = {
                "errors": [f["error"] for f in runs],
                "cpu": float(np.median([f["cpu"] for f in runs])),
                "wall": float(np.median([f["wall"] for f in runs])),
            }
        for clock in ("cpu", "wall"):
            lspc = record["LSPC"][clock]
            record[f"ratio_{clock}"] = record[TEXTBOOK][clock] / lspc
            record[f"ratio_here_{clock}"] = record["KLR here"][clock] / lspc
        out.append(record)
    return out


def report(summary: list[dict], clock: str) -> None:
    names = list(LABELS)
    for figure in dict.fromkeys(r["figure"] for r in summary):
        lines = [_line(r, names, clock) for r in summary if r["figure"] == figure]
        header = ["data", "n", "c", *(f"% {m}" for m in names), *(f"s {m}" for m in names)]
        header += ["KLR/LSPC", "here/LSPC"]
        kind = "processor seconds" if clock == "cpu" else "seconds by the clock"
        print_table(f"Figure {figure}: test error in percent and {kind} of one fit", header, lines)


def _line(r: dict, names: list[str], clock: str) -> list:
    errors = [spread(r[m]["errors"], 1) for m in names]
    times = [r[m][clock] for m in names]
    return [r["data"], r["n"], r["c"], *errors, *times, r[f"ratio_{clock}"], r[f"ratio_here_{clock}"]]


def draw_figure(summary: list[dict], figure: int, path: Path) -> None:
    """Error on the left, processor time on the right, one data set a row."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    here = [r for r in summary if r["figure"] == figure]
    sets, axis = list(dict.fromkeys(r["data"] for r in here)), "n" if figure == 7 else "c"
    fig, axes = plt.subplots(len(sets), 2, figsize=(9, 2.8 * len(sets)), squeeze=False, layout="constrained")
    for (left, right), name in zip(axes, sets, strict=True):
        records = [r for r in here if r["data"] == name]
        for m in LABELS:
            at = [r[axis] for r in records]
            errors = [r[m]["errors"] for r in records]
            left.errorbar(
                at, [np.mean(e) for e in errors], [np.std(e) for e in errors], marker="o", capsize=2, label=m
            )
            right.semilogy(at, [r[m]["cpu"] for r in records], marker="o", label=m)
        left.set(title=name, xlabel=axis, ylabel="test error (%)", ylim=(0, None))
        right.set(title=name, xlabel=axis, ylabel="processor time of a fit (s)")
        left.legend(fontsize="small")
    fig.savefig(path, dpi=120)
    plt.close(fig)


def draw_figures(summary: list[dict], output: Path) -> None:
    try:
        for figure in dict.fromkeys(r["figure"] for r in summary):
            draw_figure(summary, figure, output.with_name(f"{output.stem}_figure{figure}.png"))
    except ImportError:
        print("no picture: matplotlib is not installed")


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.lspc_figures", __doc__, threads=1, runs=3)
    p.add_argument("--sets", nargs="+", choices=list(CLASSES), default=list(CLASSES))
    p.add_argument("--figure", type=int, choices=[7, 8], help="default: both")
    p.add_argument("--repeats", type=int, default=5, help="timings of each fit (default 5)")
    args = parse(p, argv)
    args.runs = 1 if args.quick else args.runs
    found: list[dict] = []
    with capped(args):
        for record in run(args):
            found.append(record)
            write_json(args, {"figures": found}, say=False)
    summary = summarised(found)
    for clock in ("cpu", "wall"):
        report(summary, clock)
    draw_figures(summary, args.output)
    write_json(args, {"summary": summary, "figures": found})


if __name__ == "__main__":
    main()
