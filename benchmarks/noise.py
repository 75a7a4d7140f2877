"""Do default fits overfit noise, and does the protection against it cost accuracy if there is a signal?

noise     labels independent of the features: how much the log-loss exceeds that of the training rows' class
          shares, in expectation over new labels. Shares of 1:1, 6:1, 1:1:1 and 5:3:1:1; 1, 5, 30 and 50 features.
weak      labels drawn from a known posterior close to the class shares: the mean Kullback-Leibler divergence of the
          probabilities from it, and that of the class shares. Linear, sine and XOR-like log-odds; 2 and 3 classes.
signal    small samples of real and synthetic data sets: log-loss on test rows.

For noise and weak signals, MultiTaskLSPC has five tasks, assigned at random, and MultiLabelLSPC five labels, each
drawn like the single label of the others. For signals, MultiTaskLSPC is fitted to landmine, with rows from 10
minefields, and MultiLabelLSPC to enron. Features are standardised on the training rows. Seconds are CPU time.
``--compare FILE.json`` compares the figures with those of another run on the same draws.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn import datasets

from benchmarks._common import capped, parse, parser, print_table, write_json
from leastwise import LSPC, LSSVC, KernelLogisticRegression, MultiLabelLSPC, MultiTaskLSPC
from papers._common.data import DataAbsent, load_set, scale_of, standardise
from papers._common.timing import timed

Array = np.ndarray

SINGLE = {"LSPC": LSPC, "LSSVC": LSSVC, "KernelLogisticRegression": KernelLogisticRegression}
MODELS = (*SINGLE, "MultiTaskLSPC", "MultiLabelLSPC")
PARTS = ("noise", "weak", "signal")
SHARES = ((1, 1), (6, 1), (1, 1, 1), (5, 3, 1, 1))
FEATURES = (1, 5, 30, 50)
#: Tasks and labels of noise and weak signals.
SEVERAL = 5
#: Log-odds against the first class of weak signals, and the number of features.
WEAK: dict[str, tuple[int, Callable[[Array], Array]]] = {
    "linear, 1 feature": (1, lambda X: 0.7 * X[:, :1]),
    "linear, 5 features": (5, lambda X: 0.7 * X[:, :1]),
    "linear, 20 features": (20, lambda X: 0.7 * X[:, :1]),
    "linear, unbalanced": (5, lambda X: X[:, :1] - 2),
    "linear, 3 classes": (5, lambda X: X[:, :2]),
    "sine, 2 features": (2, lambda X: 1.5 * np.sin(2 * X[:, :1])),
    "XOR, 4 features": (4, lambda X: 1.5 * np.sign(X[:, :1] * X[:, 1:2])),
}
MADE: dict[str, Callable[[], tuple[Array, Array]]] = {
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "breast_cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "moons": lambda: datasets.make_moons(4000, noise=0.25, random_state=0),
    "circles": lambda: datasets.make_circles(4000, noise=0.15, factor=0.5, random_state=0),
    "informative": lambda: _made(n_features=20, n_informative=5, n_redundant=5),
    "three classes": lambda: _made(n_features=20, n_informative=4, n_classes=3, class_sep=0.7),
    "unbalanced": lambda: _made(n_features=10, n_informative=3, weights=[0.9], flip_y=0.05),
    "two of thirty": lambda: _made(
        n_features=30, n_informative=2, n_redundant=0, class_sep=0.5, n_clusters_per_class=1
    ),
}
PAPERS = ("satimage", "letter", "usps", "mnist", "dermatology")
SETS = (*MADE, *PAPERS, "landmine", "enron")
TEST_ROWS = 1500


def _made(**options: Any) -> tuple[Array, Array]:
    return datasets.make_classification(4000, random_state=0, **options)


# ------------------------------------------------------------------ no signal, and weak ones


def posteriors(part: str) -> Iterator[tuple[str, int, Callable[[Array], Array]]]:
    """Name, number of features, and true probabilities as a function of the features."""
    if part == "noise":
        for d in FEATURES:
            for counts in SHARES:
                p = np.array(counts) / sum(counts)
                yield f"{':'.join(map(str, counts))}, {d}", d, lambda X, p=p: np.tile(p, (len(X), 1))
    else:
        for name, (d, log_odds) in WEAK.items():
            yield name, d, lambda X, f=log_odds: softmax(np.column_stack([np.zeros(len(X)), f(X)]), axis=1)


def drawn(P: Array, rng: np.random.Generator) -> Array:
    """Classes with these probabilities, each at least twice."""
    n, c = P.shape
    y = np.minimum((rng.random((n, 1)) > P.cumsum(axis=1)).sum(axis=1), c - 1)
    for k in np.flatnonzero(np.bincount(y, minlength=c) < 2):
        y[2 * k : 2 * k + 2] = k
    return y


def known(args: argparse.Namespace, part: str, seed: int) -> Iterator[dict]:
    """Runs with known true probabilities."""
    for n in args.sizes:
        for place, (name, d, posterior) in enumerate(posteriors(part)):
            rng = np.random.default_rng([seed, n, place])
            X, X_test = rng.standard_normal((n, d)), rng.standard_normal((500, d))
            Y = np.column_stack([drawn(posterior(X), rng) for _ in range(SEVERAL)])
            task, task_test = rng.integers(SEVERAL, size=n), rng.integers(SEVERAL, size=500)
            truth = posterior(X_test)
            for model in args.models:
                fit = timed(lambda m=model: fit_predict(m, X, Y, X_test, task, task_test))  # noqa: B023
                shares = [np.bincount(y) / n for y in Y.T]
                own = float(np.mean([_excess(truth, P) for P in fit.value]))
                bare = float(np.mean([_excess(truth, p) for p in shares[: len(fit.value)]]))
                score = own - bare if part == "noise" else own
                yield line(part, name, model, n, seed, score, bare, fit.cpu)


def _excess(truth: Array, P: Array) -> float:
    """Mean Kullback-Leibler divergence of P from the true probabilities."""
    return float(np.mean(np.sum(truth * np.log(truth / P), axis=1)))


def fit_predict(model: str, X: Array, Y: Array, X_test: Array, task: Array, task_test: Array) -> list[Array]:
    """Probabilities of the test rows: of the first label, or of all labels for a multi-label model."""
    if model in SINGLE:
        return [SINGLE[model]().fit(X, Y[:, 0]).predict_proba(X_test)]
    if model == "MultiTaskLSPC":
        return [MultiTaskLSPC().fit(X, Y[:, 0], tasks=task).predict_proba(X_test, tasks=task_test)]
    P = MultiLabelLSPC().fit(X, Y).predict_proba(X_test)
    return _by_label(P)


def _by_label(P: Any) -> list[Array]:
    """One table for each label; a two-class label has only the probability of the second class."""
    if isinstance(P, list):
        return [np.asarray(p) for p in P]
    return [np.column_stack([1 - p, p]) for p in np.asarray(P).T]


# -------------------------------------------------------------------- signals


def signals(args: argparse.Namespace, seed: int) -> Iterator[dict]:
    """Runs on data sets."""
    for n in args.sizes:
        for name in args.sets:
            try:
                yield from _signal(args, name, n, seed)
            except DataAbsent as error:
                print(f"skipped: {error}", flush=True)


def _signal(args: argparse.Namespace, name: str, n: int, seed: int) -> Iterator[dict]:
    rng = np.random.default_rng([seed, n, SETS.index(name)])
    if name == "landmine":
        if "MultiTaskLSPC" in args.models:
            yield from _landmine(args, n, seed, rng)
        return
    if name == "enron":
        if "MultiLabelLSPC" in args.models:
            yield _enron(args, n, seed, rng)
        return
    X, y = _whole(name, args.data)
    order = rng.permutation(len(y))
    if n > 0.7 * len(y):
        return
    kept = np.flatnonzero(np.bincount(y[order[:n]], minlength=y.max() + 1) > 1)  # drop classes with a single row
    train, test = (rows[np.isin(y[rows], kept)] for rows in (order[:n], order[n : n + TEST_ROWS]))
    scale = scale_of(X[train])
    A, B = standardise(X[train], scale), standardise(X[test], scale)
    for model in (m for m in args.models if m in SINGLE):
        few = np.bincount(y[train]).max() < 5  # its five folds need a class with five rows
        if model == "KernelLogisticRegression" and (few or n > args.most_for_klr):
            continue
        fit = timed(lambda m=model: SINGLE[m]().fit(A, y[train]).predict_proba(B))
        loss = -np.mean(np.log(fit.value[np.arange(len(test)), np.searchsorted(kept, y[test])]))
        share = np.bincount(np.searchsorted(kept, y[train])) / len(train)
        bare = -np.mean(np.log(share[np.searchsorted(kept, y[test])]))
        yield line("signal", name, model, n, seed, float(loss), float(bare), fit.cpu)


@cache
def _whole(name: str, folder: str | None) -> tuple[Array, Array]:
    """All rows, with codes for the classes."""
    if name in MADE:
        X, y = MADE[name]()
    else:
        data = load_set(name, folder)
        X, y = data.X, data.y
    X = np.asarray(X, dtype=float).reshape(len(y), -1)
    X = X[:, ~np.isnan(X).any(axis=0)]  # the age in dermatology
    return X, np.unique(y, return_inverse=True)[1]


def _landmine(args: argparse.Namespace, n: int, seed: int, rng: np.random.Generator) -> Iterator[dict]:
    """Mines are rare: a draw with fewer than two is skipped."""
    data = load_set("landmine", args.data)
    train, test = [], []
    for t in np.unique(data.task)[:10]:
        rows = rng.permutation(np.flatnonzero(data.task == t))
        train.append(rows[: n // 10])
        test.append(rows[n // 10 :])
    i, j = np.concatenate(train), np.concatenate(test)
    scale = scale_of(data.X[i])
    A, B, y = standardise(data.X[i], scale), standardise(data.X[j], scale), np.asarray(data.y, dtype=int)
    if y[i].sum() < 2:
        return
    fit = timed(lambda: MultiTaskLSPC().fit(A, y[i], tasks=data.task[i]).predict_proba(B, tasks=data.task[j]))
    p, share = fit.value[:, 1], y[i].mean()
    loss, bare = (-np.mean(np.log(np.where(y[j] == 1, q, 1 - q))) for q in (p, share))
    yield line("signal", "landmine", "MultiTaskLSPC", n, seed, float(loss), float(bare), fit.cpu)


def _enron(args: argparse.Namespace, n: int, seed: int, rng: np.random.Generator) -> dict:
    """Labels with both classes in every draw; the mean log-loss of an entry."""
    data = load_set("enron", args.data)
    Y = np.asarray(data.Y if hasattr(data, "Y") else data.y, dtype=int)
    order = rng.permutation(len(Y))
    i, j = order[:n], order[n:]
    kept = np.flatnonzero((Y[i].sum(axis=0) > 1) & (Y[i].sum(axis=0) < n - 1))
    X = np.asarray(data.X, dtype=float)
    scale = scale_of(X[i])
    A, B = standardise(X[i], scale), standardise(X[j], scale)
    fit = timed(lambda: MultiLabelLSPC().fit(A, Y[np.ix_(i, kept)]).predict_proba(B))
    P, share = np.asarray(fit.value), Y[np.ix_(i, kept)].mean(axis=0)
    loss, bare = (-np.mean(np.log(np.where(Y[np.ix_(j, kept)] == 1, q, 1 - q))) for q in (P, share))
    return line("signal", "enron", "MultiLabelLSPC", n, seed, float(loss), float(bare), fit.cpu)


# ---------------------------------------------------------------------- report


def line(part: str, data: str, model: str, n: int, run: int, score: float, shares: float, seconds: float) -> dict:
    return {
        "part": part,
        "data": data,
        "model": model,
        "rows": n,
        "run": run,
        "score": score,
        "shares": shares,
        "seconds": seconds,
    }


def grouped(found: list[dict], *keys: str) -> dict[tuple, list[dict]]:
    groups: dict[tuple, list[dict]] = {}
    for f in found:
        groups.setdefault(tuple(f[key] for key in keys), []).append(f)
    return groups


def report(found: list[dict]) -> None:
    noise = [f for f in found if f["part"] == "noise"]
    if noise:
        lines = []
        for (n, model), runs in sorted(grouped(noise, "rows", "model").items(), key=lambda g: g[0][0]):
            score = [f["score"] for f in runs]
            lines.append([n, model, len(runs), np.mean(score), np.max(score), np.mean([f["seconds"] for f in runs])])
        header = ["rows", "model", "draws", "mean", "worst", "seconds"]
        print_table("noise: log-loss above that of the class shares", header, lines)
    for part, title in (("weak", "weak signals: divergence from the posterior"), ("signal", "signals: log-loss")):
        here = [f for f in found if f["part"] == part]
        lines = []
        for (data, n, model), runs in sorted(grouped(here, "data", "rows", "model").items()):
            columns = [np.mean([f[key] for f in runs]) for key in ("score", "shares", "seconds")]
            lines.append([data, n, model, len(runs), *columns])
        if lines:
            print_table(title, ["data", "rows", "model", "draws", "mean", "class shares", "seconds"], lines)


def compare(found: list[dict], other: list[dict]) -> None:
    """Means compared with those of another run, over the draws that both have."""
    key = ("part", "data", "model", "rows", "run")
    theirs = {tuple(f[k] for k in key): f["score"] for f in other}
    shared = [{**f, "other": theirs[k]} for f in found if (k := tuple(f[x] for x in key)) in theirs]
    lines = []
    for (part, data, model, n), runs in sorted(grouped(shared, "part", "data", "model", "rows").items()):
        if part != "noise":
            mine, before = (float(np.mean([f[k] for f in runs])) for k in ("score", "other"))
            lines.append([part, data, n, model, len(runs), before, mine, mine / before])
    print_table(
        "compared with another run", ["part", "data", "rows", "model", "draws", "other", "this", "ratio"], lines
    )
    for (part, model, n), runs in sorted(grouped(shared, "part", "model", "rows").items()):
        if part == "noise":
            print(part, model, n, *(f"{np.mean([f[k] for f in runs]):.4f}" for k in ("other", "score")))
        else:
            ratios = [
                np.mean([f["score"] for f in g]) / np.mean([f["other"] for f in g])
                for g in grouped(runs, "data").values()
            ]
            mean = np.exp(np.mean(np.log(ratios)))
            print(f"{part}, {model}, {n} rows: geometric mean of the ratios {mean:.4f}, largest {max(ratios):.4f}")


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.noise", __doc__, threads=1, runs=5)
    p.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    p.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    p.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    p.add_argument("--sizes", nargs="+", type=int, default=[30, 100, 300], help="training rows (default 30 100 300)")
    p.add_argument(
        "--most-for-klr", type=int, default=100, help="largest number of rows for KernelLogisticRegression"
    )
    p.add_argument("--first", type=int, default=0, help="seed of the first draw")
    p.add_argument("--compare", metavar="FILE.json", type=Path, help="results of a run with another version")
    args = parse(p, argv)
    if args.quick:
        args.runs, args.sizes = 1, args.sizes[:1]
    warnings.filterwarnings("ignore", category=UserWarning)  # of labels with one class only
    found = []
    with capped(args):
        for seed in range(args.first, args.first + args.runs):
            for part in args.parts:
                for record in signals(args, seed) if part == "signal" else known(args, part, seed):
                    found.append(record)
            print(f"draw {seed}", flush=True)
            write_json(args, {"runs": found}, say=False)
    report(found)
    if args.compare:
        compare(found, json.loads(args.compare.read_text())["runs"])
    write_json(args, {"runs": found})


if __name__ == "__main__":
    main()
