"""How long does the prediction of one row take, and how many rows per second are predicted, for every estimator?

Each model has a Gaussian kernel on 1,000 training rows of 20 features, all of them centres unless the name says
otherwise. The multi-task models have 20 tasks, the multi-label model has 5 labels. ``TableModel`` has 18 columns of
numbers and 2 of text, and gives sets, decisions and p-values of novelty besides probabilities. All times are
processor times of one thread.

one row     milliseconds of ``predict_proba`` (``predict`` for values) for one row, lower quartile of many calls
checks      those of scikit-learn's ``check_array`` for the same row (a table: for the encoded row)
beyond      the difference: the aim is less than 1 ms
rows/s      of a batch of 10,000 rows
of GEMM     the speed of that batch relative to a matrix product in the same process, by the operations of distances
            and scores alone, 2 b (d + c) for a row with b centres, d features and c outputs. Exponentials, distances
            of the nearest centre, calibration and checks take time and are not counted.
ONNX        the same of the graph by onnxruntime (extra ``onnx``): numbers in single precision outside, double inside
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from benchmarks._common import capped, parse, parser, print_table, write_json
from leastwise import (
    LSPC,
    LSSVC,
    LSSVR,
    Abstaining,
    KernelLogisticRegression,
    MultiLabelLSPC,
    MultiTaskKernelLogisticRegression,
    MultiTaskLSPC,
    MultiTaskLSSVC,
    MultiTaskLSSVR,
    Recalibrated,
    TableModel,
)

Array = np.ndarray

ROWS, D, TASKS, LABELS, MANY_CENTERS = 1000, 20, 20, 5, 10_000
CALLS, BATCH = 200, 10_000
#: Given hyperparameters: their choice does not change the time of a prediction.
GIVEN = {"sigma": 5.0, "alpha": 1e-3, "kernel": "rbf"}


@dataclass(frozen=True)
class Case:
    """A fitted model, the call that predicts, and the size of its kernel."""

    name: str
    model: Any
    ask: Callable[[Any], Any]
    take: Callable[[int], Any]
    checked: Callable[[int], Array]
    centers: int
    outputs: int
    tasks: Array | None = None


def rows_of(n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, D))
    return X, X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.standard_normal(n)


def cases(quick: bool) -> Iterator[Case]:
    n = 100 if quick else ROWS
    X, z = rows_of(n)
    y, t = (z > 0).astype(int), np.arange(n) % TASKS
    new, _ = rows_of(200 if quick else BATCH)
    tasks = np.arange(len(new)) % TASKS
    models: list[tuple[Any, Any, bool]] = [
        (LSPC(**GIVEN), y, False),
        (LSSVC(**GIVEN), y, False),
        (LSSVR(**GIVEN), z, False),
        (KernelLogisticRegression(**GIVEN), y, False),
        (MultiLabelLSPC(**GIVEN), (X[:, :LABELS] > 0).astype(int), False),
        (MultiTaskLSPC(**GIVEN, sharing=0.5), y, True),
        (MultiTaskLSPC(**GIVEN, sharing=0.5, n_centers=n // 4), y, True),
        (MultiTaskLSSVC(**GIVEN, sharing=0.5), y, True),
        (MultiTaskLSSVR(**GIVEN, sharing=0.5), z, True),
        (MultiTaskKernelLogisticRegression(**GIVEN, sharing=0.5), y, True),
        (Abstaining(LSPC(**GIVEN), max_error=0.2), y, False),
        (Recalibrated(LSPC(**GIVEN)), y, False),
    ]
    for model, target, tasked in models:
        model.fit(X, target, **({"tasks": t} if tasked else {}))
        asked = getattr(model, "n_centers", None)
        b = asked if isinstance(asked, int) else n  # "auto" takes every row: there are few
        name = type(model).__name__ + (f", {b} centres" if b != n else "")
        outputs = 1 if target is z else 2 if target is y else LABELS
        yield _array_case(name, model, new, tasks if tasked else None, b, outputs)
    yield many_centers(new, 500 if quick else MANY_CENTERS)
    yield table_case(X, y, new)


def _array_case(name: str, model: Any, new: Array, tasks: Array | None, b: int, outputs: int) -> Case:
    method = getattr(model, "predict_proba", None) or model.predict

    def ask(rows: tuple[Array, Array | None]) -> Any:
        return method(rows[0]) if rows[1] is None else method(rows[0], tasks=rows[1])

    def take(m: int) -> tuple[Array, Array | None]:
        return new[:m], None if tasks is None else tasks[:m]

    return Case(name, model, ask, take, lambda m: new[:m], b, outputs, tasks)


def many_centers(new: Array, b: int) -> Case:
    """A model of many centres, without a search."""
    X, z = rows_of(b)
    model = LSSVR(**GIVEN, cv=None, solver="krylov", tol=1e-2).fit(X, z)
    return _array_case(f"LSSVR, {b:,} centres", model, new[:2000], None, b, 1)


def table_case(X: Array, y: Array, new: Array) -> Case:
    """Tables as mappings from names to columns, as they come from JSON."""
    words = np.array(["low", "medium", "high"])

    def table(A: Array, m: int) -> dict[str, Any]:
        numbers = {f"x{j}": A[:m, j] for j in range(D - 2)}
        return {**numbers, **{f"x{j}": words[(A[:m, j] > 0).astype(int) * 2] for j in (D - 2, D - 1)}}

    model = TableModel("y", model=LSPC(**GIVEN, scale=None), max_error=0.2)
    model.fit({**table(X, len(X)), "y": np.where(y > 0, "yes", "no")})
    return Case("TableModel", model, model.predict_table, lambda m: table(new, m), lambda m: new[:m], len(X), 2)


# ------------------------------------------------------------------- measuring


def processor_seconds(call: Callable[[], Any], calls: int) -> float:
    """Lower quartile of the processor time of a call."""
    call()
    seconds = []
    for _ in range(calls):
        began = time.process_time()
        call()
        seconds.append(time.process_time() - began)
    return float(np.quantile(seconds, 0.25))


def product_speed(n: int) -> float:
    """Operations per second of processor time of an n x n matrix product."""
    A, out = np.random.default_rng(0).standard_normal((n, n)), np.empty((n, n))
    B = A.copy()  # a product of A with itself would be computed as a symmetric one
    return 2.0 * n**3 / processor_seconds(lambda: np.matmul(A, B, out=out), 5)


def measure(case: Case, speed: float, quick: bool) -> dict[str, Any]:
    calls, batch = (5, 200) if quick else (CALLS, BATCH)
    one, many = case.take(1), case.take(batch)
    row = case.checked(1)
    checks = processor_seconds(lambda: check_array(row, dtype=float), calls)
    latency = processor_seconds(lambda: case.ask(one), calls)
    whole = processor_seconds(lambda: case.ask(many), 3)
    n = len(case.checked(batch))
    operations = 2.0 * case.centers * (D + case.outputs) * n
    return {
        "model": case.name,
        "one_row_ms": 1e3 * latency,
        "checks_ms": 1e3 * checks,
        "beyond_ms": 1e3 * (latency - checks),
        "rows_per_second": n / whole,
        "fraction": operations / whole / speed,
    } | graph_times(case, calls, batch)


def graph_times(case: Case, calls: int, batch: int) -> dict[str, Any]:
    """Of the ONNX graph; empty without onnxruntime, and for tables, whose columns are encoded first."""
    if isinstance(case.model, TableModel):
        return {}
    try:
        import onnxruntime
    except ImportError:
        return {}
    from leastwise.onnx import feeds, to_onnx

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    proto = to_onnx(case.model)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    one, many = (feeds(proto, *case_rows(case, m)) for m in (1, batch))
    whole = processor_seconds(lambda: session.run(None, many), 3)
    return {
        "onnx_one_row_ms": 1e3 * processor_seconds(lambda: session.run(None, one), calls),
        "onnx_rows_per_second": len(case.checked(batch)) / whole,
    }


def case_rows(case: Case, m: int) -> tuple[Array, Array | None]:
    return case.checked(m), None if case.tasks is None else case.tasks[:m]


def run(args: argparse.Namespace) -> Iterator[dict]:
    speed = product_speed(200 if args.quick else 1500)
    for case in cases(args.quick):
        yield {**measure(case, speed, args.quick), "gemm_gflops": speed / 1e9}


def report(found: list[dict]) -> None:
    header = ["model", "one row, ms", "checks", "beyond", "rows/s", "of GEMM", "ONNX one row, ms", "ONNX rows/s"]
    rows = []
    for f in found:
        times = [f"{f[k]:.2f}" for k in ("one_row_ms", "checks_ms", "beyond_ms")]
        graph = f.get("onnx_one_row_ms"), f.get("onnx_rows_per_second")
        shown = [f"{graph[0]:.3f}", f"{graph[1]:,.0f}"] if graph[0] is not None else ["-", "-"]
        rows.append([f["model"], *times, f"{f['rows_per_second']:,.0f}", f"{f['fraction']:.2f}", *shown])
    print_table(f"Predictions, {found[0]['gemm_gflops']:.0f} GFlop/s in a matrix product", header, rows)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse(parser("benchmarks.prediction", __doc__, threads=1), argv)
    found: list[dict] = []
    with capped(args), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for record in run(args):
            found.append(record)
            print(
                f"{record['model']}: {record['one_row_ms']:.3g} ms, {record['rows_per_second']:,.0f} rows/s",
                flush=True,
            )
            write_json(args, {"figures": found}, say=False)
    report(found)
    write_json(args, {"figures": found})


if __name__ == "__main__":
    main()
