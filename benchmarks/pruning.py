"""A sparse model by pruning, or by few centres from the start: which is better at the same cost of prediction?

prune removes the rows with the smallest weights step by step and refits; removed rows are no longer used. n_centers
uses all rows in the fit, with as many random or k-means centres as pruning keeps rows.

digits        LSSVC(); two thirds of the digits of scikit-learn for training; accuracy and log-loss
school        MultiTaskLSSVR(solver="dual") on every tenth school of the first published splits; R^2. It is
              kernel="rbf" here: a linear kernel needs no rows to predict
friedman      LSSVR() on 1,500 rows of Friedman's first function with noise; R^2

"held out" is the score of the search before pruning, "pruned" the same after it: remaining rows are held out one
at a time, the others are predicted. "time" is that of predictions relative to the full model. All models use default
searches.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from benchmarks._common import capped, parse, parser, peer_split, print_table, write_json
from leastwise import LSSVC, LSSVR, MultiTaskLSSVR
from papers._common.data import available, load_set, scale_of, standardise
from papers._common.output import spread
from papers._common.timing import timed, timed_median

Array = np.ndarray

SHARES = (0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class Case:
    """A model with training and test rows; the options are passed to ``fit`` and to ``predict``."""

    model: Callable[..., Any]
    X: Array
    y: Array
    X_test: Array
    y_test: Array
    fit: dict[str, Any]
    predict: dict[str, Any]


def digits(folder: str | None, seed: int, quick: bool) -> Case:
    split = peer_split("digits", folder, seed, 300 if quick else None)
    return Case(LSSVC, split.X, split.y, split.X_test, split.y_test, {}, {})


def school(folder: str | None, seed: int, quick: bool) -> Case:
    data = load_set("school", folder)
    some = np.isin(data.task, np.unique(data.task)[:: 30 if quick else 10])
    X, y, task = data.X[some].astype(float), data.y[some].astype(float), data.task[some]
    train = data.splits[seed % len(data.splits)][some]
    Z = standardise(X, scale_of(X[train]))
    model = partial(MultiTaskLSSVR, kernel="rbf")
    parts = Z[train], y[train], Z[~train], y[~train]
    return Case(model, *parts, {"tasks": task[train], "groups": np.arange(train.sum())}, {"tasks": task[~train]})


def friedman(folder: str | None, seed: int, quick: bool) -> Case:
    n = 300 if quick else 1500
    X, y = make_friedman1(n + 1000, n_features=10, noise=1.0, random_state=seed)
    return Case(LSSVR, X[:n], y[:n], X[n:], y[n:], {}, {})


SETS: dict[str, Callable[[str | None, int, bool], Case]] = {"digits": digits, "school": school, "friedman": friedman}


def measured(case: Case, seed: int, **options: Any) -> tuple[Any, dict]:
    """The model with some options, and its figures."""
    if case.predict and "n_centers" not in options:
        options["solver"] = "dual"
    done = timed(lambda: case.model(random_state=seed, **options).fit(case.X, case.y, **case.fit))
    model = done.value
    many = np.tile(case.X_test, (10, 1))
    tasks = {name: np.tile(value, 10) for name, value in case.predict.items()}
    predicted = timed_median(lambda: model.predict(many, **tasks), 5, 3)
    loss = None
    if hasattr(model, "predict_proba"):
        loss = float(log_loss(case.y_test, model.predict_proba(case.X_test), labels=model.classes_))
    score = float(model.score(case.X_test, case.y_test, **case.predict))
    return model, {"test": score, "log_loss": loss, "fit_seconds": done.wall, "predict_seconds": predicted.wall}


def run(args: argparse.Namespace) -> Iterator[dict]:
    for seed in range(args.runs):
        for name, case in available(args.sets, lambda name, s=seed: SETS[name](args.data, s, args.quick)):
            for record in compared(case, seed):
                print(
                    f"{name}, run {seed}, {record['model']}, {record['kept']} rows: {record['test']:.4f}", flush=True
                )
                yield {"data": name, "run": seed, **record}


def compared(case: Case, seed: int) -> Iterator[dict]:
    """The full model, and both kinds of sparse models for every share."""
    n = len(case.y)
    _, whole = measured(case, seed)
    yield {"model": "whole", "share": 0.0, "kept": n, "ratio": 1.0, **whole}
    for share in SHARES:
        model, found = measured(case, seed, prune=share)
        known = model.pruning_
        ratio = found["predict_seconds"] / whole["predict_seconds"]
        scores = {"heldout": known["score"], "pruned": known["pruned_score"]}
        yield {"model": "prune", "share": share, "kept": known["n_kept"], "ratio": ratio, **scores, **found}
        for way in ("random", "kmeans"):
            _, found = measured(case, seed, n_centers=known["n_kept"], centers=way)
            ratio = found["predict_seconds"] / whole["predict_seconds"]
            yield {"model": f"{way} centres", "share": share, "kept": known["n_kept"], "ratio": ratio, **found}


def report(found: list[dict]) -> None:
    for name in dict.fromkeys(f["data"] for f in found):
        here, rows = [f for f in found if f["data"] == name], []
        for share, kind in dict.fromkeys((f["share"], f["model"]) for f in here):
            runs = [f for f in here if (f["share"], f["model"]) == (share, kind)]
            scores = [spread([f[k] for f in runs]) if k in runs[0] else "-" for k in ("heldout", "pruned", "test")]
            loss = spread([f["log_loss"] for f in runs]) if runs[0]["log_loss"] is not None else "-"
            means = [float(np.mean([f[k] for f in runs])) for k in ("kept", "ratio", "fit_seconds")]
            rows.append([f"{share:g}", kind, round(means[0]), *scores, loss, *means[1:]])
        header = ["removed", "model", "kept", "held out", "pruned", "test", "log-loss", "time", "fit s"]
        print_table(name, header, rows)


def verdict(found: list[dict]) -> list[dict]:
    """Test score of pruning minus that of the same number of random or k-means centres."""
    gaps = []
    for name, share in dict.fromkeys((f["data"], f["share"]) for f in found if f["share"]):
        mean = {
            kind: np.mean([f["test"] for f in found if (f["data"], f["share"], f["model"]) == (name, share, kind)])
            for kind in ("prune", "random centres", "kmeans centres")
        }
        better = {kind: float(mean["prune"] - mean[kind]) for kind in list(mean)[1:]}
        gaps.append({"data": name, "share": share, **better})
    rows = [[g["data"], f"{g['share']:g}", *(f"{g[k]:+.4f}" for k in list(g)[2:])] for g in gaps]
    print_table("Test score of pruning minus that of centres", ["data", "removed", "random", "k-means"], rows)
    return gaps


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.pruning", __doc__, threads=1, runs=3)
    p.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    args = parse(p, argv)
    if args.quick:
        args.runs = 1
    found: list[dict] = []
    with capped(args), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for record in run(args):
            found.append(record)
            write_json(args, {"figures": found}, say=False)
    report(found)
    gaps = verdict(found)
    write_json(args, {"gaps": gaps, "figures": found})


if __name__ == "__main__":
    main()
