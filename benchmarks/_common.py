"""Functions shared by the benchmarks; those shared with the papers are in ``papers._common``."""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from leastwise.metrics import brier_score, expected_calibration_error
from papers._common import output, timing
from papers._common.data import Split, load_set, scale_of, standardise
from papers._common.output import markdown, table
from papers._common.timing import timed, timed_median

Array = np.ndarray
RESULTS = Path(__file__).parent / "results"
#: Rows drawn from the training part; None takes all of it.
PEER_ROWS = {"usps": 3000, "satimage": None, "letter": 4000, "digits": None}
STANDARDISED = ("satimage", "letter")


# ------------------------------------------------------------------------ data


def in_proportion(y: Array, pool: Array, count: int, rng: np.random.Generator) -> Array:
    """About this many random rows of the pool, stratified by class, in random order."""
    pool = rng.permutation(pool)
    parts = [pool[y[pool] == k] for k in np.unique(y[pool])]
    return rng.permutation(np.concatenate([p[: max(2, round(count * len(p) / len(pool)))] for p in parts]))


def peer_split(
    name: str, folder: str | None, seed: int, rows: int | None = None, test_rows: int | None = None
) -> Split:
    """The split on which classifiers are compared; ``rows`` limits the training and the test rows."""
    rng = np.random.default_rng(seed)
    X, y, train, test = _digits(rng) if name == "digits" else _paper_set(name, folder)
    wanted = PEER_ROWS[name] if rows is None else rows
    train = in_proportion(y, train, wanted, rng) if wanted else rng.permutation(train)
    test = test if rows is None else in_proportion(y, test, test_rows or rows, rng)
    A, B = X[train].astype(float), X[test].astype(float)
    if name in STANDARDISED:
        scale = scale_of(A)
        A, B = standardise(A, scale), standardise(B, scale)
    return Split(name, A, y[train], B, y[test])


def _paper_set(name: str, folder: str | None) -> tuple[Array, Array, Array, Array]:
    data = load_set(name, folder)
    is_train = np.asarray(data.is_train, dtype=bool)
    return data.X, data.y, np.flatnonzero(is_train), np.flatnonzero(~is_train)


def _digits(rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """A third of each class for testing; pixels from 0 to 1."""
    X, y = load_digits(return_X_y=True)
    train = in_proportion(y, np.arange(len(y)), round(2 * len(y) / 3), rng)
    return X / 16, y, train, np.setdiff1d(np.arange(len(y)), train)


def quality(model: Any, X: Array, y: Array) -> dict[str, float]:
    """Accuracy, log-loss, calibration error (15 bins of equal mass) and Brier score on test rows."""
    P, classes = np.asarray(model.predict_proba(X), dtype=float), model.classes_
    return {
        "accuracy": float(np.mean(classes[P.argmax(axis=1)] == y)),
        "log_loss": float(log_loss(y, P, labels=classes)),
        "ece": expected_calibration_error(y, P, classes=classes, n_bins=15, strategy="mass"),
        "brier": brier_score(y, P, classes=classes),
    }


# ---------------------------------------------------------------------- timing


def timed_fresh(make: Callable[[], Any], call: Callable[[Any], Any], repeats: int = 5) -> float:
    """Median seconds of ``call(make())`` without ``make()``, for calls that destroy their input."""
    seconds = []
    for _ in range(repeats):
        fresh = make()
        seconds.append(timed(partial(call, fresh)).wall)
    return statistics.median(seconds)


def gemm_speed(n: int, repeats: int = 5) -> float:
    """Operations per second of an n x n matrix product in float64."""
    rng = np.random.default_rng(0)
    A, B, out = rng.standard_normal((n, n)), rng.standard_normal((n, n)), np.empty((n, n))
    np.matmul(A, B, out=out)
    return 2.0 * n**3 / timed_median(lambda: np.matmul(A, B, out=out), repeats, budget=20).wall


# -------------------------------------------------------------- input and output


def parser(module: str, doc: str, threads: int = 2, runs: int | None = None) -> argparse.ArgumentParser:
    """The options that all scripts have."""
    p = argparse.ArgumentParser(
        prog=f"python -m {module}", description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    p.add_argument("--data", metavar="DIR", help="folder of the data sets; else the variable LEASTWISE_DATA")
    p.add_argument("--output", metavar="FILE.json", type=Path, help="default: benchmarks/results/NAME.json")
    p.add_argument("--threads", type=int, default=threads, help=f"cap for every method (default {threads})")
    if runs is not None:
        p.add_argument("--runs", type=int, default=runs, help=f"random draws (default {runs})")
    return p


def parse(p: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the options; add the output file and the command without folders, as it is published."""
    argv = sys.argv[1:] if argv is None else list(argv)
    args = p.parse_args(argv)
    name = p.prog.rpartition(".")[2]
    args.command = f"{p.prog} {shlex.join(_without_folders(argv))}".strip()
    args.output = args.output or RESULTS / f"{name}{'-quick' if args.quick else ''}.json"
    return args


def _without_folders(argv: Sequence[str]) -> list[str]:
    shown, previous = [], ""
    for word in argv:
        option, equals, value = word.partition("=")
        folder = "DIR" if "--data" in (previous, option if equals else "") else None
        last = f"{option}={folder or Path(value).name}" if equals else folder or Path(word).name
        shown.append(last)
        previous = word
    return shown


def capped(args: argparse.Namespace) -> Any:
    """Context in which BLAS and OpenMP use at most ``--threads`` threads, for every method."""
    return timing.capped(args.threads)


def write_json(args: argparse.Namespace, figures: dict[str, Any], say: bool = True) -> None:
    """The figures with the machine they were measured on."""
    head = timing.machine(args.command, args.threads, args.quick)
    if pieces := getattr(args, "pieces", None):
        head["pieces"] = pieces
    output.write_json(args.output, {"machine": head, **figures})
    if say:
        print(f"written: {args.output.name}", flush=True)


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Columns aligned."""
    print(table(title, header, rows), flush=True)


def print_markdown(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table in Markdown."""
    print(markdown(title, header, rows), flush=True)
