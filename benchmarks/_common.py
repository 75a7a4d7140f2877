"""What the benchmarks share: data, timing, the machine, tables and files."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shlex
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from leastwise.datasets import load
from leastwise.metrics import brier_score, expected_calibration_error

Array = np.ndarray
RESULTS = Path(__file__).parent / "results"
#: Rows drawn from the training part; None takes all of it.
PEER_ROWS = {"usps": 3000, "satimage": None, "letter": 4000, "digits": None}
STANDARDISED = ("satimage", "letter")


class DataAbsent(Exception):
    """The files of a data set are not there."""


# ------------------------------------------------------------------------ data


@dataclass(frozen=True)
class Split:
    """Training and test rows of one draw."""

    name: str
    X: Array
    y: Array
    X_test: Array
    y_test: Array

    def __str__(self) -> str:
        return f"{self.name} {len(self.y)}/{len(self.y_test)}"


def load_set(name: str, folder: str | None) -> Any:
    """A data set of the papers, or ``DataAbsent``."""
    try:
        return load(name, folder)
    except FileNotFoundError as error:
        raise DataAbsent(str(error).partition(" Any of")[0]) from error


def per_class(y: Array, pool: Array, classes: Sequence, count: int, rng: np.random.Generator) -> Array:
    """So many random rows of each class out of the pool (all where a class has fewer), in random order."""
    rows = [rng.permutation(pool[y[pool] == k])[:count] for k in classes]
    return rng.permutation(np.concatenate(rows))


def in_proportion(y: Array, pool: Array, count: int, rng: np.random.Generator) -> Array:
    """About so many random rows out of the pool, the classes in proportion, in random order."""
    pool = rng.permutation(pool)
    parts = [pool[y[pool] == k] for k in np.unique(y[pool])]
    return rng.permutation(np.concatenate([p[: max(2, round(count * len(p) / len(pool)))] for p in parts]))


def scale_of(X: Array) -> tuple[Array, Array, Array]:
    """Mean and standard deviation of the columns that vary, and which these are."""
    mean, deviation = X.mean(axis=0, dtype=float), X.std(axis=0, dtype=float)
    keep = deviation > 0
    return mean[keep], deviation[keep], keep


def standardise(X: Array, scale: tuple[Array, Array, Array]) -> Array:
    mean, deviation, keep = scale
    return (X[:, keep] - mean) / deviation


def peer_split(
    name: str, folder: str | None, seed: int, rows: int | None = None, test_rows: int | None = None
) -> Split:
    """The draw on which whole classifiers are compared; ``rows`` caps the training rows, and the test rows too."""
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


def available(names: Sequence[str], make: Callable[[str], Any]) -> Iterator[tuple[str, Any]]:
    """Name and ``make(name)`` for the data sets that are there; a line for those that are not."""
    for name in names:
        try:
            made = make(name)
        except DataAbsent as error:
            print(f"skipped: {error}", flush=True)
            continue
        yield name, made


def median_distance(X: Array, rows: int = 2000) -> float:
    """Median Euclidean distance between rows, of the first ``rows`` of them."""
    return float(np.median(pdist(X[:rows])))


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


@dataclass(frozen=True)
class Timed:
    """What a call returned, and its seconds by the clock and of the processor (all threads together)."""

    value: Any
    wall: float
    cpu: float


def timed(call: Callable[[], Any]) -> Timed:
    wall, cpu = time.perf_counter(), time.process_time()
    value = call()
    return Timed(value, time.perf_counter() - wall, time.process_time() - cpu)


def settled(call: Callable[[], Any]) -> tuple[Any, int]:
    """What a call returns, and how many convergence warnings it gave; these are not shown."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ConvergenceWarning)
        value = call()
    return value, sum(issubclass(w.category, ConvergenceWarning) for w in seen)


def timed_median(call: Callable[[], Any], repeats: int = 5, budget: float = 10.0) -> Timed:
    """Medians over repeats, as many as fit into about ``budget`` seconds and one at least."""
    runs: list[Timed] = []
    while len(runs) < repeats and (not runs or sum(r.wall for r in runs) + runs[-1].wall < budget):
        runs.append(timed(call))
    wall, cpu = (statistics.median(getattr(r, k) for r in runs) for k in ("wall", "cpu"))
    return Timed(runs[-1].value, wall, cpu)


def timed_fresh(make: Callable[[], Any], call: Callable[[Any], Any], repeats: int = 5) -> float:
    """Median seconds of ``call(make())`` without ``make()``, for calls that destroy their input."""
    seconds = []
    for _ in range(repeats):
        fresh = make()
        seconds.append(timed(partial(call, fresh)).wall)
    return statistics.median(seconds)


def gemm_speed(n: int, repeats: int = 5) -> float:
    """Operations a second of a float64 matrix product of n x n."""
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
    """Parse; fill in the output file and the command as it may be published, without folders."""
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
    """Context in which BLAS and OpenMP use no more than ``--threads`` threads, whatever the method."""
    return threadpool_limits(limits=args.threads)


def machine(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "command": args.command,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "threads": args.threads,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "quick": args.quick,
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def write_json(args: argparse.Namespace, figures: dict[str, Any], say: bool = True) -> None:
    """The figures with the machine they were measured on."""
    args.output.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"machine": machine(args), **figures}, indent=1, default=_plain)
    args.output.write_text(text + "\n")
    if say:
        print(f"written: {args.output.name}", flush=True)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} does not go into JSON")


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Columns aligned: words to the left, figures to the right."""
    cells = [[cell(value) for value in row] for row in rows]
    widths = [max(len(line[j]) for line in [list(header), *cells]) for j in range(len(header))]
    left = [all(isinstance(row[j], str) and not row[j][:1].isdigit() for row in rows) for j in range(len(header))]
    print(f"\n{title}")
    for line in [list(header), *cells]:
        padded = [t.ljust(w) if l else t.rjust(w) for t, w, l in zip(line, widths, left, strict=True)]
        print("  ".join(padded).rstrip())
    sys.stdout.flush()


def cell(value: Any) -> str:
    """Three digits for numbers."""
    if value is None:
        return "-"
    if isinstance(value, str | int | np.integer):
        return str(value)
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def spread(values: Sequence[float], digits: int = 4) -> str:
    """Mean and standard deviation."""
    mean, deviation = np.mean(values), np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{mean:.{digits}f}±{deviation:.{digits}f}"
