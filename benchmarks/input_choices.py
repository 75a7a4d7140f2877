"""Tasks, labels and groups: the choice of scale, kernel and feature weights, against a Gaussian kernel alone.

Each estimator is fitted with its defaults, and with a Gaussian kernel (for regression with a linear part), no scaling
and no feature weights, on the same standardised rows.

landmine-R, related-R, digits   MultiTaskLSPC, draws of ``task_peers``, landmine with R rows a task; mean log-loss and
                                AUC over tasks
school, friedman, ...           MultiTaskLSSVR, draws of ``lssvm_peers``; RMSE in units of the standard deviation
enron                           MultiLabelLSPC, 1,000 rows for training; log-loss of all entries
groups                          LSPC, repeated measurements of 60 units; units are held out, test rows are of others

Processor seconds of the fit, one thread.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks import lssvm_peers, task_peers
from benchmarks._common import parse, parser, print_table, write_json
from benchmarks._pieces import add_options, gathered, seconds_of
from leastwise import LSPC, MultiLabelLSPC, MultiTaskLSPC, MultiTaskLSSVR
from leastwise.metrics import label_log_loss, log_loss, task_auc, task_log_loss
from papers._common.timing import timed
from papers.ml_lspc.draws import enron

Array = np.ndarray

CLASSES = ("landmine-20", "landmine-40", "related-0.9", "related-0.6", "related-0.2", "digits")
VALUES = ("school", "diabetes", "friedman", "smooth-0.9", "smooth-0.5", "small", "slopes-0.8", "slopes-0.3")
SETS = (*CLASSES, *VALUES, "enron", "groups")
OURS, PLAIN = "defaults", "Gaussian kernel"
UNITS, MEASUREMENTS = 60, 5

#: A fit: the estimator, the arguments of ``fit``, and a function from the fitted model to measures.
Case = tuple[Callable[..., Any], dict[str, Any], Callable[[Any], dict[str, float]]]


def classes(data: task_peers.Draw) -> Case:
    train, test = data.train, data.test

    def measures(model: Any) -> dict[str, float]:
        P = model.predict_proba(test.X, tasks=test.task)
        return {"loss": task_log_loss(test.y, P, test.task), "auc": task_auc(test.y, P, test.task)}

    return MultiTaskLSPC, {"X": train.X, "y": train.y, "tasks": train.task}, measures


def values(data: lssvm_peers.Draw) -> Case:
    train, test = data.train, data.test

    def measures(model: Any) -> dict[str, float]:
        error = test.y - model.predict(test.X, tasks=test.task)
        return {"loss": float(np.sqrt(np.mean(error**2)) / test.y.std())}

    return MultiTaskLSSVR, {"X": train.X, "y": train.y, "tasks": train.task}, measures


def labels(folder: str | None, seed: int, quick: bool) -> Case:
    data = (enron(folder, 150, 100) if quick else enron(folder))(seed).scaled()

    def measures(model: Any) -> dict[str, float]:
        return {"loss": float(label_log_loss(data.Y_test, model.predict_proba(data.X_test)))}

    return MultiLabelLSPC, {"X": data.X, "y": data.Y}, measures


def groups(seed: int) -> Case:
    """Units with a nuisance of their own in every column; the class of a unit depends on two of eight columns."""
    rng = np.random.default_rng([2026, seed])
    truth = rng.standard_normal((UNITS + 400, 8))
    y = (truth[:, 0] * truth[:, 1] + truth[:, 0] + 0.5 * rng.standard_normal(len(truth)) > 0).astype(int)
    unit = np.repeat(np.arange(UNITS), MEASUREMENTS)
    X = truth[unit] + 0.2 * rng.standard_normal((len(unit), 8))
    new = truth[UNITS:] + 0.2 * rng.standard_normal((400, 8))

    def measures(model: Any) -> dict[str, float]:
        return {"loss": log_loss(y[UNITS:], model.predict_proba(new))}

    return LSPC, {"X": X, "y": y[unit], "groups": unit}, measures


def case(name: str, folder: str | None, seed: int, quick: bool) -> Case:
    if name == "enron":
        return labels(folder, seed, quick)
    if name == "groups":
        return groups(seed)
    if name in VALUES:
        return values(lssvm_peers.standardised(lssvm_peers.SETS[name](folder, seed)))
    kind, _, rows = name.partition("-")
    if kind == "landmine":
        return classes(task_peers.landmine(folder, seed, 5 if quick else 29, int(rows)))
    return classes(task_peers.draw(name, folder, seed, quick))


def plain(make: Callable[..., Any]) -> dict[str, Any]:
    kernel = "rbf+linear" if make is MultiTaskLSSVR else "rbf"
    return {"kernel": kernel, "scale": None, "metric": None}


def run(args: argparse.Namespace) -> Iterator[dict]:
    for name in args.sets:
        for seed in range(args.runs):
            make, given, measures = case(name, args.data, seed, args.quick)
            for label, options in ((OURS, {}), (PLAIN, plain(make))):
                done = timed(partial(make(random_state=seed, **options).fit, **given))
                found = {"data": name, "run": seed, "method": label, "seconds": seconds_of(done, args)}
                model = done.value
                chosen = {"kernel": str(model.kernel_), "scale": model.scale_, "weights": None}
                chosen["weights"] = getattr(model, "feature_weights_", None) is not None
                print(f"{name}, {seed}, {label}: {measures(model)}", flush=True)
                yield {**found, **measures(model), **chosen}


def compared(found: list[dict]) -> list[list[Any]]:
    """For each set: losses of both, their ratio, draws in which the defaults are better or worse, seconds."""
    rows = []
    for name in SETS:
        pairs = {
            label: {f["run"]: f for f in found if f["data"] == name and f["method"] == label}
            for label in (OURS, PLAIN)
        }
        runs = sorted(set(pairs[OURS]) & set(pairs[PLAIN]))
        if not runs:
            continue
        ours, other = (np.array([pairs[label][r]["loss"] for r in runs]) for label in (OURS, PLAIN))
        ratio = float(np.exp(np.mean(np.log(ours / other))))
        times = [float(np.mean([pairs[label][r]["seconds"] for r in runs])) for label in (OURS, PLAIN)]
        better, worse = int((ours < other).sum()), int((ours > other).sum())
        rows.append([name, len(runs), ours.mean(), other.mean(), ratio, f"{better} : {worse}", *times])
    return rows


HEADER = ["set", "draws", "loss", "loss, Gaussian", "ratio", "better : worse", "fit, s", "fit, s, Gaussian"]


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.input_choices", __doc__, threads=1, runs=5)
    add_options(p, SETS)
    args = parse(p, argv)
    if args.quick:
        args.runs, args.sets = 1, [name for name in args.sets if name in ("related-0.6", "small", "groups")]
    found = gathered(args, run(args))
    print_table("Defaults and a Gaussian kernel", HEADER, compared(found))
    write_json(args, {"figures": found})


if __name__ == "__main__":
    main()
