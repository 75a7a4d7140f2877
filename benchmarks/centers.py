"""Choice of few centres: random rows, k-means, k-means++, leverage scores, or equally many for each class or task?

The error on test rows against the number of centres, and the cost of the choice. All models search sigma and alpha
with defaults; only ``n_centers`` and ``centers`` are set.

usps, letter, satimage, mnist, digits    LSPC; log-loss and accuracy
cover         LSPC on rows like those of a forest inventory: seven classes, the largest half of all and the smallest
              one in a hundred, skewed measurements and groups of 0/1 columns
rare          LSPC on two classes, one of 2 rows in 100 in five small clusters
friedman      LSSVR on Friedman's first function with noise; 1 - R^2
skewed        LSSVR on log-normal inputs, with most rows at one end; 1 - R^2
school        MultiTaskLSSVR(kernel="rbf") on every sixth school; 1 - R^2
landmine      MultiTaskLSPC on the 29 fields; log-loss

"seconds" is the CPU time, on one thread, of choosing the centres among all training rows.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.metrics import log_loss

from benchmarks._common import capped, in_proportion, parse, parser, peer_split, print_markdown, write_json
from leastwise import LSPC, LSSVR, MultiTaskLSPC, MultiTaskLSSVR
from leastwise.problem.basis import make_basis
from leastwise.problem.centers import Recipe
from leastwise.problem.kernels import RBF
from papers._common.data import available, load_set, median_distance, scale_of, standardise
from papers._common.timing import timed

Array = np.ndarray

COUNTS = (30, 100, 300)
WAYS = ("random", "kmeans", "kmeans++", "leverage", "class", "task")
#: Rows, features and centres of the choices that are timed alone.
LARGE = ((10_000, 50, 1000), (100_000, 50, 1000))


@dataclass(frozen=True)
class Case:
    """A model with training and test rows; the options are passed to ``fit`` and to ``predict``."""

    model: Callable[..., Any]
    X: Array
    y: Array
    X_test: Array
    y_test: Array
    fit: dict[str, Any] = field(default_factory=dict)
    predict: dict[str, Any] = field(default_factory=dict)

    @property
    def ways(self) -> list[str]:
        """Values of ``centers=`` that apply to this model."""
        return [way for way in WAYS if way in self.model()._spec().center_rules]


# ------------------------------------------------------------------------ data


def peer(name: str, folder: str | None, seed: int, rows: int) -> Case:
    split = peer_split(name, folder, seed, rows, 2000)
    return Case(LSPC, split.X, split.y, split.X_test, split.y_test)


def digits(folder: str | None, seed: int, rows: int) -> Case:
    split = peer_split("digits", folder, seed, min(rows, 1198))
    return Case(LSPC, split.X, split.y, split.X_test, split.y_test)


def mnist(folder: str | None, seed: int, rows: int) -> Case:
    rng, data = np.random.default_rng(seed), load_set("mnist", folder)
    is_train = np.asarray(data.is_train, dtype=bool)
    train = in_proportion(data.y, np.flatnonzero(is_train), rows, rng)
    test = in_proportion(data.y, np.flatnonzero(~is_train), 2000, rng)
    return Case(LSPC, data.X[train] / 255.0, data.y[train], data.X[test] / 255.0, data.y[test])


def cover(folder: str | None, seed: int, rows: int) -> Case:
    rng, n = np.random.default_rng(seed), rows + 2000
    shares = np.array([0.49, 0.36, 0.06, 0.035, 0.03, 0.015, 0.01])
    y = rng.choice(7, size=n, p=shares)
    middle = np.random.default_rng(7).normal(size=(7, 10))
    measures = np.exp(0.5 * (middle[y] + 1.2 * rng.normal(size=(n, 10))))
    soil = (np.abs(2 * y + rng.normal(scale=3, size=n)).astype(int) % 20)[:, None] == np.arange(20)
    X = np.hstack([measures, soil])
    Z = standardise(X, scale_of(X[:rows]))
    return Case(LSPC, Z[:rows], y[:rows], Z[rows:], y[rows:])


def rare(folder: str | None, seed: int, rows: int) -> Case:
    rng, n = np.random.default_rng(seed), rows + 8000
    y = (rng.random(n) < 0.02).astype(int)
    middle = 2 * np.random.default_rng(5).normal(size=(5, 6))
    X = np.where(y[:, None] == 1, middle[rng.integers(5, size=n)] + 0.5 * rng.normal(size=(n, 6)), 0)
    X += np.where(y[:, None] == 0, 2 * rng.normal(size=(n, 6)), 0)
    return Case(LSPC, X[:rows], y[:rows], X[rows:], y[rows:])


def friedman(folder: str | None, seed: int, rows: int) -> Case:
    X, y = make_friedman1(rows + 2000, n_features=10, noise=1.0, random_state=seed)
    return Case(LSSVR, X[:rows], y[:rows], X[rows:], y[rows:])


def skewed(folder: str | None, seed: int, rows: int) -> Case:
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(size=(rows + 2000, 3)))
    y = np.sin(2 * X).sum(axis=1) + 0.3 * rng.normal(size=len(X))
    return Case(LSSVR, X[:rows], y[:rows], X[rows:], y[rows:])


def school(folder: str | None, seed: int, rows: int) -> Case:
    data = load_set("school", folder)
    some = np.isin(data.task, np.unique(data.task)[::6])
    X, y, task = data.X[some].astype(float), data.y[some].astype(float), data.task[some]
    train = data.splits[seed % len(data.splits)][some]
    Z, tasks = standardise(X, scale_of(X[train])), ({"tasks": task[train]}, {"tasks": task[~train]})
    return Case(partial(MultiTaskLSSVR, kernel="rbf"), Z[train], y[train], Z[~train], y[~train], *tasks)


def landmine(folder: str | None, seed: int, rows: int) -> Case:
    data, rng = load_set("landmine", folder), np.random.default_rng(seed)
    X, cell = data.X.astype(float), 2 * data.task + (data.y == data.y.max())
    train = np.zeros(len(X), dtype=bool)
    train[in_proportion(cell, np.arange(len(X)), rows, rng)] = True
    Z, tasks = standardise(X, scale_of(X[train])), ({"tasks": data.task[train]}, {"tasks": data.task[~train]})
    return Case(MultiTaskLSPC, Z[train], data.y[train], Z[~train], data.y[~train], *tasks)


SETS: dict[str, Callable[[str | None, int, int], Case]] = {
    **{name: partial(peer, name) for name in ("usps", "letter", "satimage")},
    "mnist": mnist,
    "digits": digits,
    "cover": cover,
    "rare": rare,
    "friedman": friedman,
    "skewed": skewed,
    "school": school,
    "landmine": landmine,
}


# --------------------------------------------------------------------- figures


def measured(case: Case, way: str, count: int, seed: int) -> dict:
    """The loss on test rows (log-loss, or 1 - R^2), the score, and the seconds of the choice."""
    model = case.model(n_centers=count, centers=way, random_state=seed).fit(case.X, case.y, **case.fit)
    score = float(model.score(case.X_test, case.y_test, **case.predict))
    loss = 1 - score
    if hasattr(model, "predict_proba"):
        loss = float(log_loss(case.y_test, model.predict_proba(case.X_test, **case.predict), labels=model.classes_))
    return {"loss": loss, "score": score, "seconds": choosing(case, way, count, seed)}


def choosing(case: Case, way: str, count: int, seed: int) -> float:
    """CPU seconds of the choice."""
    recipe, each = (
        Recipe("full", count, way, kernel=RBF(), sigma=median_distance(case.X, 1000)),
        np.arange(len(case.X)),
    )
    kind = np.unique(case.y, return_inverse=True)[1] if "class" in case.ways else np.zeros(len(each), dtype=int)
    task = np.unique(case.fit["tasks"], return_inverse=True)[1] if case.fit else None
    rng, w = np.random.default_rng(seed), np.ones(len(each))
    return timed(lambda: make_basis(recipe, case.X, kind, w, each, each, rng, task=task)).cpu


def run(args: argparse.Namespace) -> Iterator[dict]:
    rows, counts = (300, (20, 50)) if args.quick else (args.rows, args.counts)
    for seed in range(args.runs):
        for name, case in available(args.sets, lambda name, s=seed: SETS[name](args.data, s, rows)):
            for count in (c for c in counts if c < len(case.X)):
                for way in case.ways:
                    yield {"data": name, "run": seed, "b": count, "way": way, **measured(case, way, count, seed)}
            print(f"{name}, run {seed}: done", flush=True)


def large(quick: bool) -> list[dict]:
    """Seconds of the choice from many rows."""
    found = []
    for n, d, count in ((500, 5, 50),) if quick else LARGE:
        X = np.random.default_rng(0).normal(size=(n, d))
        case = Case(LSPC, X, (X[:, 0] > 0).astype(int), X[:0], X[:0])
        found += [{"n": n, "d": d, "b": count, "way": w, "seconds": choosing(case, w, count, 0)} for w in case.ways]
    return found


# ---------------------------------------------------------------------- tables


def mean(found: list[dict], what: str, **where: Any) -> float:
    values = [f[what] for f in found if all(f[k] == v for k, v in where.items())]
    return float(np.mean(values)) if values else float("nan")


def report(found: list[dict], timings: list[dict]) -> list[dict]:
    for what, title in (("loss", "Log-loss, or 1 - R^2"), ("score", "Accuracy, or R^2"), ("seconds", "Seconds")):
        rows = [
            [name, b, *(_cell(mean(found, what, data=name, b=b, way=way)) for way in WAYS)]
            for name, b in dict.fromkeys((f["data"], f["b"]) for f in found)
        ]
        print_markdown(f"{title}, means over draws", ["data", "b", *WAYS], rows)
    ratios = against_random(found)
    rows = [[r["b"], r["way"], f"{r['ratio']:.3f}", f"{r['better']} of {r['sets']}", r["worst"]] for r in ratios]
    print_markdown("Loss relative to random rows", ["b", "way", "geometric mean", "sets better", "worst"], rows)
    rows = [[t["n"], t["d"], t["b"], t["way"], f"{t['seconds']:.2f}"] for t in timings]
    print_markdown("Seconds of the choice", ["rows", "features", "b", "way", "seconds"], rows)
    return ratios


def _cell(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


def against_random(found: list[dict]) -> list[dict]:
    """For every number and choice of centres: the loss relative to that of random rows, over the data sets."""
    summaries = []
    for b, way in dict.fromkeys((f["b"], f["way"]) for f in found if f["way"] != "random"):
        names = list(dict.fromkeys(f["data"] for f in found if (f["b"], f["way"]) == (b, way)))
        pairs = [[mean(found, "loss", data=name, b=b, way=kind) for kind in (way, "random")] for name in names]
        ratio = np.array([own / other for own, other in pairs])
        worst = f"{names[int(ratio.argmax())]} {ratio.max():.2f}"
        together = {"ratio": float(np.exp(np.log(ratio).mean())), "better": int((ratio < 1).sum())}
        summaries.append({"b": b, "way": way, **together, "sets": len(names), "worst": worst})
    return summaries


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.centers", __doc__, threads=1, runs=3)
    p.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    p.add_argument("--rows", type=int, default=2000, help="training rows at most (default 2000)")
    p.add_argument("--counts", nargs="+", type=int, default=list(COUNTS), metavar="B")
    args = parse(p, argv)
    if args.quick:
        args.runs = 1
    found: list[dict] = []
    with capped(args), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        timings = large(args.quick)
        for record in run(args):
            found.append(record)
            write_json(args, {"choices": timings, "figures": found}, say=False)
    ratios = report(found, timings)
    write_json(args, {"choices": timings, "ratios": ratios, "figures": found})


if __name__ == "__main__":
    main()
