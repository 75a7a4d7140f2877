"""Accuracy, size and speed of ONNX graphs compared with their models.

Models use default searches, on (standardised) data of scikit-learn and on synthetic data. Predicted are training
rows, rows with noise of one standard deviation, and rows three and a thousand times as far out; in single precision.
"difference" is the largest difference of probabilities (of predicted values, relative to the largest), for three
graphs: the default (numbers in and out in single precision, double within), all in double, all in single precision.
"rows/s" are those of the default graph, of the graph in single precision and of the model itself, in batches of
1,000, one thread each, by CPU time.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnxruntime
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._common import capped, parse, parser, print_table, write_json
from leastwise import (
    LSPC,
    LSSVC,
    LSSVR,
    KernelLogisticRegression,
    MultiLabelLSPC,
    MultiTaskKernelLogisticRegression,
    MultiTaskLSPC,
    MultiTaskLSSVC,
    MultiTaskLSSVR,
)
from leastwise.datasets import make_related_tasks, make_rotated_labels
from leastwise.onnx import check, feeds, to_onnx
from papers._common.timing import timed_median

Array = np.ndarray

GRAPHS = {
    "default": {},
    "double": {"dtype": "float64"},
    "single": {"inside": "float32"},
}
CLASSIFIERS = (LSPC, LSSVC, KernelLogisticRegression)


def cases(quick: bool) -> Iterator[tuple[str, str, Any, Array, Any]]:
    """Data, model, the fitted model, its training rows and their tasks."""
    sets = [load_iris] if quick else [load_iris, load_wine, load_breast_cancer, load_digits]
    for load in sets:
        X, y = load(return_X_y=True)
        for Estimator in CLASSIFIERS[: 2 if load is load_digits else 3]:  # the last takes minutes for these
            for kernel in ("rbf", "laplace") if Estimator is LSPC else ("rbf",):
                model = make_pipeline(StandardScaler(), Estimator(kernel=kernel, random_state=0)).fit(X, y)
                yield load.__name__[5:], f"{Estimator.__name__} {kernel}", model, X, None
    X, y = load_diabetes(return_X_y=True)
    yield "diabetes", "LSSVR", make_pipeline(StandardScaler(), LSSVR(random_state=0)).fit(X, y), X, None
    n = 20 if quick else 60
    data = make_related_tasks(10, n, random_state=0)
    for Estimator in (MultiTaskLSPC, MultiTaskLSSVC, MultiTaskKernelLogisticRegression):
        model = Estimator(random_state=0).fit(data.X, data.y, tasks=data.task)
        yield "related tasks", Estimator.__name__, model, data.X, data.task
    data = make_related_tasks(10, n, kind="regression", random_state=0)
    model = MultiTaskLSSVR(random_state=0).fit(data.X, data.y, tasks=data.task)
    yield "related tasks", "MultiTaskLSSVR", model, data.X, data.task
    data = make_rotated_labels(n_labels=20, n_rows=10 * n, n_features=10, random_state=0)
    yield "rotated labels", "MultiLabelLSPC", MultiLabelLSPC(random_state=0).fit(data.X, data.Y), data.X, None


def asked(X: Array) -> Array:
    """Rows near and far."""
    rng, middle, size = np.random.default_rng(0), X.mean(axis=0), X.std(axis=0)
    near = X + size * rng.normal(size=X.shape)
    parts = [X, near, middle + 3 * (near - middle), middle + 1000 * (near[:50] - middle)]
    return np.vstack(parts).astype(np.float32).astype(float)


def speeds(model: Any, X: Array, tasks: Any) -> dict[str, float]:
    """Rows per second of two graphs and of the model."""
    rows = np.resize(X, (1000, X.shape[1]))
    ids = None if tasks is None else np.resize(tasks, 1000)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    found = {}
    for name in ("default", "single"):
        proto = to_onnx(model, **GRAPHS[name])
        session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
        fed = feeds(proto, rows, ids)
        found[name] = 1000 / timed_median(lambda run=session.run, fed=fed: run(None, fed), 15).cpu
    more = {} if ids is None else {"tasks": ids}
    ask = getattr(model, "predict_proba", model.predict)
    return {**found, "model": 1000 / timed_median(lambda: ask(rows, **more), 15).cpu}


def run(args: argparse.Namespace) -> Iterator[dict]:
    for data, name, model, X, tasks in cases(args.quick):
        rows = asked(X)
        ids = None if tasks is None else np.resize(tasks, len(rows))
        graphs = {graph: to_onnx(model, **options) for graph, options in GRAPHS.items()}
        yield {
            "data": data,
            "model": name,
            "difference": {graph: check(model, proto, rows, ids) for graph, proto in graphs.items()},
            "kilobytes": {graph: proto.ByteSize() / 1000 for graph, proto in graphs.items()},
            "rows_per_second": speeds(model, X, tasks),
        }


def report(found: list[dict]) -> None:
    header = ["data", "model", "default", "double", "single", "kB", "kB single", "rows/s", "single", "model itself"]
    rows = [
        [
            f["data"],
            f["model"],
            *(f"{f['difference'][k]:.0e}" for k in ("default", "double", "single")),
            *(f["kilobytes"][k] for k in ("default", "single")),
            *(f["rows_per_second"][k] for k in ("default", "single", "model")),
        ]
        for f in found
    ]
    print_table("Largest difference of three graphs, sizes and speeds", header, rows)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse(parser("benchmarks.onnx_graphs", __doc__, threads=1), argv)
    found: list[dict] = []
    with capped(args), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for record in run(args):
            found.append(record)
            write_json(args, {"figures": found}, say=False)
    report(found)
    write_json(args, {"figures": found})


if __name__ == "__main__":
    main()
