"""Predictions from raw tables: accuracy and time on many tables, compared with the usual methods.

Every method gets the same rows of the same tables, unscaled, with categories and missing values (``_tables``), and is
set up as a user would do it (``_table_methods``): 300, 1,500 and all rows up to 10,000 for training, the rest, up to
5,000, for testing. One thread; CPU seconds.

    python -m benchmarks.raw_tables --sizes 300 1500 all --draws 5 --output FILE.jsonl
    python -m benchmarks.raw_tables --regression --methods "LSSVR()" CatBoost --sets concrete ames --output FILE.jsonl
    python -m benchmarks.raw_tables --methods "LSPC()" "LSPC, one scale" "LSPC, one kernel" --output FILE.jsonl
    python -m benchmarks.raw_tables --summary --output FILE.jsonl
    python -m benchmarks.raw_tables --list

Results are appended to a JSON lines file, one line for each fit. An interrupted run continues where it stopped;
failed fits are tried again. The summary gives mean ranks by log-loss (regression: RMSE), the geometric mean of its
ratio to the reference, wins, the tests of Friedman, Nemenyi and Wilcoxon, and seconds; by size, and over all sizes
with each set counted once. A second table compares the model's own held-out loss with that of the test rows.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from sklearn.metrics import r2_score, root_mean_squared_error

from benchmarks._common import capped, parse, parser, print_markdown, print_table
from benchmarks._ranks import report, report_heldout, summary
from benchmarks._table_methods import ABLATIONS, CLASSIFIERS, REGRESSORS, TableMethod
from benchmarks._tables import TableDraw, TableSet, classification_sets, regression_sets
from leastwise.metrics import brier_score, expected_calibration_error, log_loss
from leastwise.utils.atomic_files import write_atomically
from papers._common import timing

Array = np.ndarray
SIZES = ("300", "1500", "all")
#: Probabilities below this are raised to it, to keep the log-loss finite.
SMALLEST = 1e-12
QUICK = {"methods": 2, "sets": ("breast_cancer", "iris", "diabetes"), "sizes": ("300",), "draws": 1}

# ---------------------------------------------------------------------- measuring


class TimeLimit(Exception):
    """A fit took too long."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise ``TimeLimit`` after this many CPU seconds, as soon as the interpreter regains control."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeLimit

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def processor_seconds() -> float:
    """CPU seconds of this process and of its finished children."""
    children = os.times()
    return time.process_time() + children.children_user + children.children_system


def class_measures(P: Array, y: Array) -> dict[str, float]:
    """Log-loss, Brier score, calibration error (15 bins of equal mass) and accuracy."""
    P = np.clip(np.asarray(P, dtype=float), SMALLEST, None)
    P /= P.sum(axis=1, keepdims=True)
    classes = np.arange(P.shape[1])
    return {
        "log_loss": log_loss(y, P, classes=classes),
        "brier": brier_score(y, P, classes=classes),
        "ece": expected_calibration_error(y, P, classes=classes, n_bins=15, strategy="mass"),
        "accuracy": float(np.mean(P.argmax(axis=1) == y)),
    }


def standard_error(P: Array, y: Array) -> float:
    """Standard error of the log-loss, from the losses of the rows."""
    losses = -np.log(np.clip(np.asarray(P, dtype=float)[np.arange(len(y)), y], SMALLEST, None))
    return float(losses.std(ddof=1) / np.sqrt(len(y)))


def number_measures(f: Array, y: Array, scale: float) -> dict[str, float]:
    """R^2, RMSE, and RMSE in units of ``scale``, the standard deviation of the training targets."""
    f = np.asarray(f, dtype=float).ravel()
    error = float(root_mean_squared_error(y, f))
    return {"r2": float(r2_score(y, f)), "rmse": error, "relative_rmse": error / scale}


def held_out(model: Any, y: Array) -> dict[str, float]:
    """The model's own estimate from held-out training rows, if it has one."""
    model = model[-1] if hasattr(model, "steps") else model
    if (P := getattr(model, "heldout_proba_", None)) is not None:
        counted = (model.heldout_rows_.weight > 0) & np.isfinite(P[:, 0])  # iterative solvers hold out some rows
        P, y = P[counted], y[counted]
        return {"heldout_log_loss": class_measures(P, y)["log_loss"], "heldout_error": standard_error(P, y)}
    if (f := getattr(model, "heldout_prediction_", None)) is not None:
        counted = np.isfinite(f)
        return {"heldout_rmse": float(root_mean_squared_error(y[counted], f[counted]))}
    return {}


def fitted(method: TableMethod, data: TableDraw, seed: int, limit: float) -> dict[str, Any]:
    """Measures and seconds of one fit, or the reason why it failed."""
    try:
        with time_limit(limit):
            model = method.make(data.X, seed)  # imports are not timed
            start = processor_seconds()
            model.fit(data.X, data.y)
            middle = processor_seconds()
            classes = data.y.dtype.kind == "i"
            found = model.predict_proba(data.X_test) if classes else model.predict(data.X_test)
            end = processor_seconds()
    except TimeLimit:
        return {"status": "timeout", "limit": limit}
    except Exception as error:  # a method that fails on one table must not end the run
        return {"status": "error", "error": f"{type(error).__name__}: {error}"[:500]}
    values = class_measures(found, data.y_test) if classes else number_measures(found, data.y_test, data.y.std())
    values |= {"log_loss_error": standard_error(found, data.y_test)} if classes else {}
    seconds = {"fit_seconds": middle - start, "predict_seconds": end - middle}
    return {"status": "ok", **values, **held_out(model, data.y), **seconds}


# ------------------------------------------------------------------------- records


def read_records(path: Path) -> list[dict[str, Any]]:
    """Last record of every fit; incomplete lines are skipped."""
    records = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        if "method" in record:
            records[key(record)] = record
    return list(records.values())


def key(record: dict[str, Any]) -> tuple[Any, ...]:
    """The key of a record."""
    return tuple(record[k] for k in ("method", "set", "size", "draw"))


def append(path: Path, record: dict[str, Any]) -> None:
    """Append a line; start a new line if the last one is incomplete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record) + "\n"
    if path.exists() and path.stat().st_size:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            text = text if file.read(1) == b"\n" else "\n" + text
    with path.open("a") as file:
        file.write(text)


def forget(args: argparse.Namespace) -> None:
    """Remove the records of some methods and sizes, so that the next run measures them again."""
    task = "regression" if args.regression else "classification"
    kept, removed = [], 0
    for line in args.output.read_text().splitlines():
        record = json.loads(line)
        chosen = record.get("method") in args.methods and record["size"] in args.sizes and record["task"] == task
        removed += chosen
        kept += [] if chosen else [line]
    write_atomically(str(args.output), ["".join(f"{line}\n" for line in kept).encode()])
    print(f"removed {removed} of {removed + len(kept)} lines from {args.output.name}")


def run(args: argparse.Namespace, sets: Sequence[TableSet]) -> None:
    """Run the fits that are not in the file yet: by size, then method, set and draw."""
    methods = registry(args)
    append(args.output, {"run": timing.machine(args.command, args.threads, args.quick)})
    done = {key(r): r["status"] for r in read_records(args.output)}
    for size in args.sizes:
        for label in args.methods:
            for table in sets:
                n = table.training_rows(size)
                if n is None or not methods[label].suits(n, table.n_classes):
                    continue
                for record in draws(args, methods[label], label, table, size, done):
                    append(args.output, record)


def draws(
    args: argparse.Namespace, method: TableMethod, label: str, table: TableSet, size: str, done: dict[Any, str]
) -> Iterator[dict[str, Any]]:
    """Records of the draws that are missing; after a timeout the others are not tried."""
    late = False
    for draw in range(args.draws):
        about = {"method": label, "set": table.name, "size": size, "draw": draw}
        status = done.get(key(about), "error")
        if status == "error":
            data = table.draw(size, draw)
            found = {"status": "timeout", "limit": args.limit} if late else fitted(method, data, draw, args.limit)
            status = found["status"]
            shape = {"rows": len(data.y), "test_rows": len(data.y_test), "classes": table.n_classes}
            print(f"{size} {label}, {table.name}, {draw}: {shown(found)}", flush=True)
            yield {**about, "task": table.task, **shape, "features": table.n_features, **found}
        late = late or status == "timeout"


def shown(found: dict[str, Any]) -> str:
    if found["status"] != "ok":
        return found.get("error", found["status"])
    value = found.get("log_loss", found.get("relative_rmse"))
    return f"{value:.4f}, {found['fit_seconds']:.1f} + {found['predict_seconds']:.1f} s"


# -------------------------------------------------------------------- command line


def registry(args: argparse.Namespace) -> dict[str, TableMethod]:
    return REGRESSORS if args.regression else CLASSIFIERS | ABLATIONS


def chosen_sets(args: argparse.Namespace) -> list[TableSet]:
    """The sets named, or all that are available."""
    available = {t.name: t for t in (regression_sets if args.regression else classification_sets)(args.data)}
    if unknown := [name for name in args.sets or () if name not in available]:
        raise SystemExit(f"unknown or unavailable sets: {', '.join(unknown)}; available: {', '.join(available)}")
    return [available[name] for name in args.sets or available]


def print_sets(sets: Sequence[TableSet]) -> None:
    shapes = [[t.name, t.n_rows, t.n_features, t.n_categorical, t.n_classes] for t in sets]
    rows = [[*shape, *(t.training_rows(s) for s in SIZES)] for shape, t in zip(shapes, sets, strict=True)]
    header = ["set", "rows", "features", "nominal", "classes", *(f"training rows, {s}" for s in SIZES)]
    print_table(f"{len(sets)} sets", header, rows)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    p = parser("benchmarks.raw_tables", __doc__, threads=1)
    p.add_argument("--regression", action="store_true", help="predict numbers instead of probabilities")
    p.add_argument("--methods", nargs="+", metavar="NAME", help="default: all")
    p.add_argument("--sets", nargs="+", metavar="NAME", help="default: all that are available")
    p.add_argument("--sizes", nargs="+", choices=SIZES, default=SIZES, help="training rows")
    p.add_argument("--draws", type=int, default=5, help="random draws (default 5)")
    p.add_argument("--limit", type=float, default=1800, help="CPU seconds of a fit (default 1800)")
    p.add_argument("--reference", metavar="NAME", help="method that the summary compares with; default: ours")
    p.add_argument("--summary", action="store_true", help="print the summary of the file, without fits")
    p.add_argument("--markdown", action="store_true", help="print the summary as Markdown, for the documentation")
    p.add_argument("--list", action="store_true", help="print the sets")
    p.add_argument("--forget", action="store_true", help="remove the fits of --methods and --sizes from the file")
    args = parse(p, argv)
    if args.output.suffix == ".json":  # the default name, whose files hold one object
        args.output = args.output.with_suffix(".jsonl")
    if args.quick:
        args.sizes, args.draws = QUICK["sizes"], QUICK["draws"]
        args.sets = args.sets or [t.name for t in chosen_sets(args) if t.name in QUICK["sets"]]
        args.methods = args.methods or list(registry(args))[: QUICK["methods"]]
    if args.forget and not args.methods:
        raise SystemExit("--forget removes fits: name them with --methods")
    args.methods = args.methods or [name for name in registry(args) if name not in ABLATIONS]
    if unknown := [m for m in args.methods if m not in registry(args)]:
        raise SystemExit(f"unknown methods: {', '.join(unknown)}; known: {', '.join(registry(args))}")
    args.reference = args.reference or next(iter(registry(args)))
    return args


def main(argv: Sequence[str] | None = None) -> None:
    args = arguments(argv)
    if args.list:
        return print_sets(chosen_sets(args))
    if args.forget:
        return forget(args)
    if not args.summary:
        with capped(args), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run(args, chosen_sets(args))
    task = "regression" if args.regression else "classification"
    records = [r for r in read_records(args.output) if r["task"] == task and (not args.sets or r["set"] in args.sets)]
    show = print_markdown if args.markdown else print_table
    report(summary(records, args.methods, args.reference, SIZES), args.reference, show)
    report_heldout(records, args.methods, SIZES, show)


if __name__ == "__main__":
    main()
