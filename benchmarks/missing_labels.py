"""Unknown labels: how much accuracy is lost, compared with other ways of treating them?

A share of the labels of the training rows is hidden, each entry independently at random. All models are
MultiLabelLSPC:

unknown           NaN for hidden labels: a row is used for its known labels
unknown, alone    the same with sharing=0: independent labels, each on the rows where it is known
as 0              0 for hidden labels, as if the row did not have them
complete rows     rows with a hidden label dropped; "-" if fewer than 10 are left
label shares      no model: (known rows with the label + share of all labels) / (known rows + 1)
all known         nothing is hidden: the upper bound; also with sharing=0, and with five folds, which replace
                  leave-one-out if labels are unknown

enron             1,000 training rows, 702 for testing, 53 labels
rotated-20        the multi-label paper's toy data with noise: 500 training rows, 2,000 for testing, 20 labels, 30
                  features
rotated-4         the same with 4 labels, so that some rows are complete

Test rows are complete. Log-loss is that of all entries, average precision the mean over labels; decisions are at 0.5.
Seconds are processor seconds of the search, fit and calibration.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks._common import parse, parser, print_markdown, write_json
from benchmarks._labels import enron_draws, quality
from benchmarks._pieces import add_options, gathered
from leastwise import MultiLabelLSPC
from papers._common.data import available
from papers._common.output import mean_and_error
from papers._common.timing import timed
from papers.ml_lspc.draws import LabelSplit, calmly, rotated

Array = np.ndarray

SETS = ("enron", "rotated-20", "rotated-4")
HIDDEN = (0.3, 0.6, 0.9)
NOISE, FEATURES = 0.3, 30
#: Smallest number of complete rows that is fitted.
FEWEST = 10
SHARES = "label shares"
MEASURES = {"log_loss": "log-loss", "f1_micro": "micro F1", "average_precision": "average precision"}


def draws(name: str, args: argparse.Namespace) -> Callable[[int], LabelSplit]:
    """A function that maps the number of a draw to its rows."""
    if name == "enron":
        return enron_draws(args)
    rows, new = (80, 100) if args.quick else (500, 2000)
    T = int(name.partition("-")[2])
    return lambda seed: rotated(T, rows, new, seed, n_features=FEATURES, noise=NOISE)


def hide(Y: Array, share: float, seed: int) -> Array:
    """Labels with this share of the entries replaced by NaN."""
    rng = np.random.default_rng([2012, seed, round(100 * share)])
    return np.where(rng.uniform(size=Y.shape) < share, np.nan, Y)


def ways(data: LabelSplit, shares: Sequence[float], seed: int) -> Iterator[tuple[float, str, Array, Array, dict]]:
    """Hidden share, name, rows, labels and options of every fit."""
    yield 0.0, "all known", data.X, data.Y, {}
    yield 0.0, "all known, alone", data.X, data.Y, {"sharing": 0.0}
    yield 0.0, "all known, five folds", data.X, data.Y, {"cv": 5}
    for share in shares:
        Y = hide(data.Y, share, seed)
        known = ~np.isnan(Y).any(axis=1)
        yield share, "unknown", data.X, Y, {}
        yield share, "unknown, alone", data.X, Y, {"sharing": 0.0}
        yield share, "as 0", data.X, np.nan_to_num(Y).astype(int), {}
        yield share, "complete rows", data.X[known], Y[known].astype(int), {}
        yield share, SHARES, data.X, Y, {}


def fitted(data: LabelSplit, way: str, X: Array, Y: Array, options: dict, seed: int) -> tuple[Array, dict]:
    """Probabilities of the labels of the test rows, and details of the fit."""
    if way == SHARES:
        P = (np.nansum(Y, axis=0) + np.nanmean(Y)) / (np.sum(~np.isnan(Y), axis=0) + 1)
        return np.tile(P, (len(data.X_test), 1)), {}
    model = MultiLabelLSPC(**options, random_state=seed)
    done = timed(lambda: calmly(partial(model.fit, X, Y)))
    more = {"chosen": [model.sigma_, model.alpha_, model.sharing_], "constant": len(model.constant_labels_)}
    more |= {"seconds": done.cpu, "unsettled": done.value[1], "iterations": model.n_iter_}
    return model.predict_proba(data.X_test), more


def measured(data: LabelSplit, seed: int, share: float, way: str, X: Array, Y: Array, options: dict) -> dict:
    found: dict[str, Any] = {"data": data.name, "labels": data.Y.shape[1], "hidden": share, "way": way, "run": seed}
    found |= {"rows": len(X), "known": int(np.sum(~np.isnan(Y)))}
    case = f"{data.name}, {share:.0%} hidden, run {seed}, {way}"
    if len(X) < FEWEST:
        print(f"{case}: {len(X)} rows are left", flush=True)
        return found
    P, more = fitted(data, way, X, Y, options, seed)
    found |= quality(data.Y_test, P, (P >= 0.5).astype(int)) | more
    marks = f"log-loss {found['log_loss']:.4f}, F1 {found['f1_micro']:.4f}"
    print(f"{case}: {marks}, {found.get('seconds', 0):.2f} s, chosen {found.get('chosen')}", flush=True)
    return found


def run(args: argparse.Namespace) -> Iterator[dict]:
    for _, draw in available(args.sets, lambda name: draws(name, args)):
        for seed in range(args.runs):
            data = draw(seed)
            for case in ways(data, args.hidden, seed):
                yield measured(data, seed, *case)


def report(found: list[dict]) -> None:
    for name in dict.fromkeys(f["data"] for f in found):
        here = [f for f in found if f["data"] == name]
        lines = []
        for share, way in dict.fromkeys((f["hidden"], f["way"]) for f in here):
            runs = [f for f in here if (f["hidden"], f["way"]) == (share, way)]
            done = [f for f in runs if "log_loss" in f]
            marks = [mean_and_error([f[k] for f in done]) if done else None for k in MEASURES]
            seconds = float(np.mean([f["seconds"] for f in done])) if done and way != SHARES else None
            rows = round(float(np.mean([f["rows"] for f in runs])))
            lines.append([f"{share:.0%}", way, rows, *marks, seconds])
        header = ["hidden", "way", "rows", *MEASURES.values(), "seconds"]
        print_markdown(f"{name}, {here[0]['labels']} labels: mean ± standard error", header, lines)


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.missing_labels", __doc__, threads=1, runs=2)
    add_options(p, SETS)
    p.add_argument("--hidden", nargs="+", type=float, default=HIDDEN, help=f"shares hidden (default {HIDDEN})")
    args = parse(p, argv)
    if args.quick:
        args.runs = 1
    found = gathered(args, run(args))
    report(found)
    write_json(args, {"settings": {"noise": NOISE, "features": FEATURES}, "figures": found})


if __name__ == "__main__":
    main()
