"""Fits whose results are frozen: data, models and options of every case.

``tests/test_frozen.py`` fits every case again and compares it with its record in ``tests/fixtures/frozen``. The cases
use the public API only, so that they outlive every change of the internals. Where a public attribute, method or
column is renamed, change its right-hand side in the tables of ``frozen_records.py``; the names in the records stay.

Write records anew, all of them or those of some cases, only where results are meant to change::

    python tests/frozen_cases.py --write [name ...]
    python tests/frozen_cases.py --list

Cases with ``draws`` also depend on how rows are drawn: centres, folds and batches by ``random_state``; samples and
folds of labels by a hash of the rows. They change where that changes.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from frozen_records import Case, plain, record, write
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from leastwise import (
    LSPC,
    LSSVC,
    LSSVR,
    Abstaining,
    DuplicateRowsWarning,
    KernelLogisticRegression,
    MultiLabelLSPC,
    MultiTaskKernelLogisticRegression,
    MultiTaskLSPC,
    MultiTaskLSSVC,
    MultiTaskLSSVR,
    Recalibrated,
    estimate_class_prior,
    load,
    merge,
    save,
)
from leastwise.model_selection import StratifiedTaskKFold
from leastwise.tables import TableModel

# --- Data ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """Training rows and new rows, of which the last two lie far away."""

    X: Any
    y: Any
    new: Any
    tasks: Any = None
    new_tasks: Any = None


def inputs(rng: np.random.Generator, n: int, d: int, n_new: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, d))
    new = rng.normal(size=(n_new, d))
    new[-2:] *= 8
    return X, new


@cache
def three_classes(n: int = 90, d: int = 3, n_new: int = 30) -> Data:
    rng = np.random.default_rng(1)
    X, new = inputs(rng, n, d, n_new)
    level = X[:, 0] + np.sin(2 * X[:, 1]) + 0.6 * rng.normal(size=n)
    return Data(X, np.array(["a", "b", "c"])[np.digitize(level, [-0.6, 0.7])], new)


@cache
def two_classes(n: int = 90, d: int = 3, n_new: int = 30) -> Data:
    rng = np.random.default_rng(2)
    X, new = inputs(rng, n, d, n_new)
    return Data(X, (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.5 * rng.normal(size=n) > 0.1).astype(int), new)


@cache
def values(n: int = 90, d: int = 3, n_new: int = 30) -> Data:
    rng = np.random.default_rng(3)
    X, new = inputs(rng, n, d, n_new)
    return Data(X, 20 + 5 * X[:, 0] + 4 * np.sin(2 * X[:, 1]) + rng.normal(size=n), new)


@cache
def two_outputs(n: int = 80) -> Data:
    data = values(n)
    rng = np.random.default_rng(4)
    return Data(data.X, np.c_[data.y, 0.01 * data.X[:, 2] ** 2 + 0.003 * rng.normal(size=n)], data.new)


@cache
def task_rows(n: int, n_tasks: int, seed: int) -> tuple[Any, ...]:
    """Tasks of unequal sizes in mixed order; every third leans the other way. New rows have some of unseen tasks."""
    rng = np.random.default_rng(seed)
    X, new = inputs(rng, n, 2, 40)
    share = np.arange(1, n_tasks + 1) ** 0.5
    tasks = rng.choice(n_tasks, size=n, p=share / share.sum())
    tasks[: 2 * n_tasks] = np.arange(2 * n_tasks) % n_tasks
    lean = 0.6 * rng.normal(size=n_tasks) + np.where(np.arange(n_tasks) % 3 == 2, -1.0, 1.0)
    level = np.sin(2 * X[:, 0]) + lean[tasks] * X[:, 1] + 0.4 * rng.normal(size=n)
    names = np.array([f"site {t:03d}" for t in range(n_tasks)] + ["unseen"])
    return X, level, names[tasks], new, names[np.r_[np.arange(36) % n_tasks, [n_tasks] * 4]]


@cache
def task_classes(n: int = 90, n_tasks: int = 5) -> Data:
    X, level, tasks, new, new_tasks = task_rows(n, n_tasks, 5)
    return Data(X, (level > 0).astype(int), new, tasks, new_tasks)


@cache
def task_three_classes(n: int = 100, n_tasks: int = 5) -> Data:
    X, level, tasks, new, new_tasks = task_rows(n, n_tasks, 6)
    return Data(X, np.array(["low", "mid", "top"])[np.digitize(level, [-0.7, 0.6])], new, tasks, new_tasks)


@cache
def task_values(n: int = 90, n_tasks: int = 5) -> Data:
    X, level, tasks, new, new_tasks = task_rows(n, n_tasks, 7)
    shift = np.unique(tasks, return_inverse=True)[1]
    return Data(X, 3 * level + 2.0 * (shift % 4), new, tasks, new_tasks)


@cache
def labels(n: int = 80, n_labels: int = 4) -> Data:
    rng = np.random.default_rng(8)
    X, new = inputs(rng, n, 3, 30)
    common = np.sin(2 * X[:, 0]) + X[:, 1]
    level = common[:, None] * np.linspace(1, -0.5, n_labels) + 0.6 * X[:, 2:] + 0.6 * rng.normal(size=(n, n_labels))
    return Data(X, (level > 0.2).astype(int), new)


@cache
def labels_with_gaps() -> Data:
    data = labels()
    Y = data.y.astype(float)
    Y[np.random.default_rng(9).uniform(size=Y.shape) < 0.2] = np.nan
    return Data(data.X, Y, data.new)


def counts(n: int) -> np.ndarray:
    return np.random.default_rng(10).integers(0, 4, size=n).astype(float)


def fractions(n: int) -> np.ndarray:
    return np.random.default_rng(11).uniform(0.2, 2.0, size=n)


def triples(n: int) -> np.ndarray:
    return np.arange(n) // 3


def some_pairs(n: int) -> np.ndarray:
    """Groups of one row, but for every twentieth, which has the next row with it."""
    return np.where(np.arange(n) % 20 == 1, np.arange(n) - 1, np.arange(n))


def blocks(data: Data, size: int = 70, **columns: np.ndarray) -> list[dict[str, Any]]:
    """Rows as a list of blocks; further columns by the names that blocks have."""
    named = {"X": data.X, "y": data.y, **columns}
    return [{name: v[a : a + size] for name, v in named.items()} for a in range(0, len(data.X), size)]


CASES: dict[str, Case] = {}


def case(name: str, **options: Any) -> Callable[[Callable[[], dict[str, Any]]], None]:
    """Register a function without arguments that fits and records."""

    def register(run: Callable[[], dict[str, Any]]) -> None:
        assert name not in CASES, name
        CASES[name] = Case(name, run, **options)

    return register


def fitted(
    name: str, model: Any, data: Callable[[], Data], fit: Any = None, predict: Any = None, **options: Any
) -> None:
    """Register an ordinary fit: ``fit`` and ``predict`` are further arguments, or functions of the data for these."""

    def run() -> dict[str, Any]:
        rows = data()
        given = fit(rows) if callable(fit) else dict(fit or {})
        asked = predict(rows) if callable(predict) else dict(predict or {})
        X, new = given.pop("X", rows.X), asked.pop("X", rows.new)
        if rows.tasks is not None and "task_column" not in asked:
            given.setdefault("tasks", rows.tasks)
            asked.setdefault("tasks", rows.new_tasks)
        asked.pop("task_column", None)
        y = given.pop("y", rows.y)
        return record(clone(model).fit(X, y, **given), new, **asked)

    case(name, **options)(run)


# --- One task: solvers and centres --------------------------------------------------------------------------------

#: A Gaussian kernel of the columns as they are.
PLAIN: dict[str, Any] = {"kernel": "rbf", "scale": None, "metric": None}
#: A linear kernel of these,
LINEAR: dict[str, Any] = {**PLAIN, "kernel": "linear"}
#: and both.
BOTH: dict[str, Any] = {**PLAIN, "kernel": "rbf+linear"}
#: Small grids, so that a case takes a fraction of a second.
GRID: dict[str, Any] = {"sigma": [0.8, 1.6, 3.0], "alpha": [1e-4, 1e-3, 1e-2, 1e-1], "random_state": 0}
POINT: dict[str, Any] = {"sigma": 1.5, "alpha": 3e-3, "random_state": 0}

fitted("lspc", LSPC(**PLAIN, random_state=0), three_classes)
fitted("lspc-two-classes", LSPC(**PLAIN, random_state=0), two_classes)
fitted("lspc-coefficients", LSPC(**GRID, norm="coefficients"), three_classes)
fitted("lspc-class-basis", LSPC(**GRID, basis="class"), three_classes)
fitted(
    "lspc-class-basis-centres",
    LSPC(**GRID, basis="class", norm="coefficients", n_centers=12),
    three_classes,
    draws="centres",
)
fitted("lspc-random-centres", LSPC(**GRID, n_centers=25), three_classes, draws="centres")
fitted("lspc-kmeans", LSPC(**GRID, n_centers=20, centers="kmeans"), three_classes, draws="centres")
fitted("lspc-kmeans-plus-plus", LSPC(**GRID, n_centers=20, centers="kmeans++"), two_classes, draws="centres")
fitted("lspc-leverage", LSPC(**GRID, n_centers=20, centers="leverage"), three_classes, draws="centres")
fitted(
    "lspc-centres-by-class",
    LSPC(**GRID, n_centers=21, centers="class", bias="shared"),
    three_classes,
    draws="centres",
)
fitted("lspc-given-centres", LSPC(**GRID, centers=three_classes().X[::5] + 0.1), three_classes)
fitted("lspc-moments", LSPC(**GRID, n_centers=25, solver="moments"), three_classes, draws="centres")
fitted(
    "lspc-moments-given-centres",
    LSPC(**GRID, centers=three_classes().X[::4], solver="moments", norm="coefficients", bias="shared"),
    three_classes,
    lambda d: {"sample_weight": fractions(len(d.X))},
)
fitted(
    "lspc-krylov",
    LSPC(**GRID, solver="krylov", search_rows=120, tol=1e-8),
    lambda: three_classes(400),
    rtol=1e-5,
    draws="sample, preconditioner",
)
fitted(
    "lspc-krylov-weights",
    LSPC(**POINT, solver="krylov", bias="shared", tol=1e-9, max_passes=300),
    lambda: three_classes(300),
    lambda d: {"sample_weight": fractions(len(d.X))},
    rtol=1e-5,
    draws="held-out rows, preconditioner",
)
fitted(
    "lspc-sgd",
    LSPC(1.5, 1e-2, solver="sgd", n_centers=30, tol=1e-6, max_passes=200, random_state=0),
    lambda: three_classes(300),
    rtol=1e-4,
    draws="centres, batches",
)
fitted("lspc-search-rows", LSPC(**GRID, search_rows=100), lambda: three_classes(240), draws="sample")

# --- One task: options --------------------------------------------------------------------------------------------

fitted("lspc-temperature", LSPC(**GRID, calibration="temperature", bias="shared"), three_classes)
fitted("lspc-isotonic", LSPC(**GRID, calibration="isotonic"), three_classes)
fitted("lspc-no-calibration", LSPC(**GRID, calibration=None, extrapolate=True), three_classes)
fitted("lspc-nothing-held-out", LSPC(**POINT, calibration=None, cv=None), three_classes)
fitted("lspc-five-folds", LSPC(**GRID, cv=5), three_classes, draws="folds")
fitted("lspc-splitter", LSPC(**GRID, cv=StratifiedKFold(4)), three_classes)
fitted("lspc-groups", LSPC(**GRID), three_classes, lambda d: {"groups": triples(len(d.X))})
fitted(
    "lspc-group-splitter",
    LSPC(**GRID, cv=GroupKFold(4), norm="coefficients"),
    three_classes,
    lambda d: {"groups": triples(len(d.X))},
)


fitted("lspc-few-groups", LSPC(**POINT), three_classes, lambda d: {"groups": some_pairs(len(d.X))})
fitted(
    "lspc-few-groups-coefficients",
    LSPC(**POINT, norm="coefficients", bias="shared"),
    three_classes,
    lambda d: {"groups": some_pairs(len(d.X))},
)


def rounded_rows(data: Data) -> dict[str, Any]:
    return {"X": np.round(data.X), "groups": "duplicates"}


fitted("lspc-duplicates", LSPC(**GRID), three_classes, rounded_rows)
fitted("lspc-counts", LSPC(**GRID), three_classes, lambda d: {"sample_weight": counts(len(d.X))})
fitted(
    "lspc-counts-coefficients",
    LSPC(**GRID, norm="coefficients"),
    three_classes,
    lambda d: {"sample_weight": counts(len(d.X))},
)
fitted("lspc-weights", LSPC(**GRID), three_classes, lambda d: {"sample_weight": fractions(len(d.X))})
fitted("lspc-balanced", LSPC(**GRID, class_weight="balanced"), three_classes)
fitted("lspc-class-weight", LSPC(**GRID, class_weight={"a": 3.0, "b": 0.5}, basis="class"), three_classes)
fitted("lspc-laplace", LSPC(**GRID, kernel="laplace"), three_classes)
fitted("lspc-linear", LSPC(alpha=[1e-3, 1e-1], **LINEAR, bias="shared"), three_classes)
fitted("lspc-poly", LSPC(2.0, [1e-3, 1e-1], kernel="poly", degree=2, coef0=0.5), three_classes)
fitted("lspc-rbf-linear", LSPC(**GRID, kernel="rbf+linear"), three_classes)
fitted("lspc-callable-kernel", LSPC(alpha=[1e-3, 1e-1], kernel=rbf_kernel), three_classes)
fitted(
    "lspc-precomputed",
    LSPC(alpha=[1e-3, 1e-1], kernel="precomputed"),
    three_classes,
    lambda d: {"X": rbf_kernel(d.X, gamma=0.2)},
    lambda d: {"X": rbf_kernel(d.new, d.X, gamma=0.2), "without": ("novelty",)},
)
fitted("lspc-brier", LSPC(**GRID, scoring="brier"), three_classes)
fitted("lspc-auc", LSPC(**GRID, scoring="auc", calibration="isotonic"), two_classes)
fitted("lspc-accuracy", LSPC(**GRID, scoring="accuracy"), three_classes)


def accuracy_of(model: Any, X: Any, y: Any) -> float:
    return float(accuracy_score(y, model.predict(X)))


fitted("lspc-callable-scoring", LSPC(**GRID, scoring=accuracy_of, cv=KFold(4)), two_classes)
fitted("lspc-f1", LSPC(**GRID, scoring="f1"), two_classes)
fitted("lspc-borrowed-scoring", LSPC(**GRID, scoring="neg_log_loss"), three_classes)
fitted(
    "lspc-moments-folds", LSPC(**GRID, n_centers=25, solver="moments", cv=4), three_classes, draws="centres, folds"
)
fitted("lssvc-no-calibration", LSSVC(**GRID, calibration=None), three_classes)
fitted(
    "lspc-moments-large-folds",
    LSPC(1.5, [1e-3, 1e-2], centers=three_classes().X[::4], solver="moments", cv=KFold(2), calibration="temperature"),
    lambda: three_classes(4400),
)
fitted("lspc-two-jobs", LSPC(**GRID, n_jobs=2), three_classes)
fitted(
    "lspc-float32",
    LSPC(**GRID),
    three_classes,
    lambda d: {"X": d.X.astype(np.float32)},
    lambda d: {"X": d.new.astype(np.float32)},
    rtol=1e-3,
)
fitted(
    "lspc-sparse",
    LSPC(**GRID),
    three_classes,
    lambda d: {"X": sparse.csr_matrix(np.where(np.abs(d.X) > 0.5, d.X, 0))},
    lambda d: {"X": sparse.csr_matrix(np.where(np.abs(d.new) > 0.5, d.new, 0))},
)

fitted("lssvc", LSSVC(**PLAIN, random_state=0), three_classes)
fitted("lssvc-two-classes-sum", LSSVC(**GRID, kernel="rbf+linear"), two_classes)
fitted(
    "lssvc-cholesky-groups", LSSVC(**GRID, solver="cholesky"), two_classes, lambda d: {"groups": triples(len(d.X))}
)
fitted("lssvc-no-intercept", LSSVC(**GRID, bias=None, calibration="temperature"), three_classes)
fitted("lssvc-centres", LSSVC(**GRID, n_centers=20, centers="kmeans", cv=4), three_classes, draws="centres, folds")
fitted("lssvc-moments", LSSVC(**GRID, n_centers=25, solver="moments"), two_classes, draws="centres")
fitted(
    "lssvc-krylov",
    LSSVC(**GRID, solver="krylov", search_rows=120, tol=1e-9),
    lambda: two_classes(400),
    rtol=1e-5,
    draws="sample, preconditioner",
)
fitted("lssvc-prune", LSSVC(**GRID, prune=0.15), three_classes)
fitted(
    "lssvc-weights-balanced",
    LSSVC(**GRID, class_weight="balanced", calibration="isotonic"),
    three_classes,
    lambda d: {"sample_weight": fractions(len(d.X))},
)

fitted("lssvr", LSSVR(**BOTH, random_state=0), values)
fitted("lssvr-r2-rbf", LSSVR(**GRID, kernel="rbf", scoring="r2"), values)
fitted("lssvr-two-outputs", LSSVR(**GRID, linear_weight=[0.5, 2.0]), two_outputs)
fitted(
    "lssvr-cholesky-counts", LSSVR(**GRID, solver="cholesky"), values, lambda d: {"sample_weight": counts(len(d.X))}
)
fitted(
    "lssvr-groups-mae",
    LSSVR(**GRID, scoring="mae", kernel="laplace"),
    values,
    lambda d: {"groups": triples(len(d.X))},
)
fitted("lssvr-centres-folds", LSSVR(**GRID, n_centers=20, cv=4, scoring="mse"), values, draws="centres, folds")
fitted("lssvr-moments", LSSVR(**GRID, n_centers=25, solver="moments"), values, draws="centres")
fitted(
    "lssvr-krylov",
    LSSVR(**GRID, solver="krylov", search_rows=120, tol=1e-9),
    lambda: values(400),
    rtol=1e-5,
    draws="sample, preconditioner",
)
fitted(
    "lssvr-float32",
    LSSVR(**GRID),
    values,
    lambda d: {"X": d.X.astype(np.float32)},
    lambda d: {"X": d.new.astype(np.float32)},
    rtol=1e-3,
)
fitted("lssvr-prune-no-intercept", LSSVR(**GRID, prune=0.3, bias=None, kernel="rbf"), values)

fitted("klr", KernelLogisticRegression(**GRID), three_classes, rtol=1e-4, draws="folds")
fitted(
    "klr-newton-splitter",
    KernelLogisticRegression(**GRID, solver="newton", cv=StratifiedKFold(3)),
    three_classes,
    lambda d: {"sample_weight": fractions(len(d.X))},
    rtol=1e-4,
)
fitted(
    "klr-lbfgs-centres",
    KernelLogisticRegression(
        1.5,
        [1e-3, 1e-2],
        solver="lbfgs",
        centers=two_classes().X[::5],
        cv=KFold(3),
        bias=None,
        class_weight="balanced",
    ),
    two_classes,
    rtol=1e-4,
)

# --- Streams ------------------------------------------------------------------------------------------------------

STREAM: dict[str, Any] = {"sigma": [0.8, 1.6], "n_centers": 30, "random_state": 0}


@case("stream-lspc-blocks", draws="centres")
def _() -> dict[str, Any]:
    data = three_classes(240)
    return record(LSPC(**STREAM).fit_stream(data.X, data.y, block_rows=50), data.new)


@case("stream-lspc-iterator-sample", draws="centres, sample")
def _() -> dict[str, Any]:
    data = three_classes(240)
    model = LSPC(**STREAM).fit_stream(iter(blocks(data, 40)), classes=["a", "b", "c"], keep_rows=100)
    return record(model, data.new)


@case("stream-lspc-groups-weights", draws="centres")
def _() -> dict[str, Any]:
    data = three_classes(240)
    n = len(data.X)
    model = LSPC(**STREAM, class_weight="balanced")
    model.fit_stream(data.X, data.y, weight=fractions(n), group=triples(n), block_rows=64)
    return record(model, data.new)


@case("stream-lssvc-files", draws="centres", needs=("pyarrow", "pandas"))
def _() -> dict[str, Any]:
    data = two_classes(240)
    new = import_module("pandas").DataFrame(data.new, columns=["u", "v", "w"])
    with tempfile.TemporaryDirectory() as folder:
        for k in range(3):
            rows = np.c_[data.X, data.y][80 * k : 80 * (k + 1)]
            text = "\n".join(",".join(repr(float(v)) for v in row[:3]) + f",c{int(row[3])}" for row in rows)
            (Path(folder) / f"part-{k}.csv").write_text("u,v,w,finding\n" + text + "\n")
        return record(LSSVC(**STREAM).fit_stream(folder, target="finding", block_rows=50), new)


@case("stream-lssvr", draws="centres")
def _() -> dict[str, Any]:
    data = values(240)
    return record(LSSVR(**STREAM).fit_stream(blocks(data)), data.new)


@case("stream-labels", draws="centres")
def _() -> dict[str, Any]:
    data = labels(200)
    return record(MultiLabelLSPC(**STREAM).fit_stream(data.X, data.y, block_rows=60), data.new)


@case("stream-no-rows-kept")
def _() -> dict[str, Any]:
    data = three_classes(240)
    model = LSPC(1.5, 1e-2, centers=data.X[::8], cv=None, calibration=None)
    return record(model.fit_stream(data.X, data.y, keep_rows=0, block_rows=50), data.new, without=("novelty",))


@case("partial-fit-unfit-forget", draws="centres")
def _() -> dict[str, Any]:
    data = three_classes(240)
    X, y = data.X, data.y
    model = LSPC(**STREAM).partial_fit(X[:100], y[:100], classes=["a", "b", "c"])
    model.partial_fit(X[100:200], y[100:200]).unfit(X[50:80], y[50:80])
    return record(model.forget(0.8).partial_fit(X[200:], y[200:], sample_weight=fractions(40)), data.new)


@case("partial-fit-labels", draws="centres")
def _() -> dict[str, Any]:
    data = labels(200)
    X, y = data.X, data.y
    model = MultiLabelLSPC(**STREAM).partial_fit(X[:120], y[:120]).partial_fit(X[120:], y[120:])
    return record(model.unfit(X[130:150], y[130:150]), data.new)


@case("partial-fit-lssvr", draws="centres")
def _() -> dict[str, Any]:
    data = values(240)
    model = LSSVR(**STREAM).partial_fit(data.X[:120], data.y[:120]).forget(0.9)
    return record(model.partial_fit(data.X[120:], data.y[120:]), data.new)


@case("merge-lspc")
def _() -> dict[str, Any]:
    data = three_classes(240)
    model = LSPC(1.5, centers=data.X[::10], random_state=0)
    return record(merge([clone(model).fit_stream(data.X[k::3], data.y[k::3]) for k in range(3)]), data.new)


@case("merge-labels")
def _() -> dict[str, Any]:
    data = labels(200)
    model = MultiLabelLSPC(1.5, centers=data.X[::10], random_state=0)
    return record(merge([clone(model).fit_stream(data.X[k::2], data.y[k::2]) for k in range(2)]), data.new)


@case("merge-lssvc-from-one-start", draws="centres")
def _() -> dict[str, Any]:
    data = two_classes(240)
    start = LSSVC(**STREAM).fit_stream(data.X[:100], data.y[:100])
    return record(merge([start.without_rows().partial_fit(data.X[k::2], data.y[k::2]) for k in range(2)]), data.new)


# --- Dask ---------------------------------------------------------------------------------------------------------


def chunked(array: np.ndarray, size: int = 70) -> Any:
    return import_module("dask.array").from_array(array, chunks=(size, *array.shape[1:]))


def fit_dask(model: Any, data: Data, **columns: np.ndarray) -> dict[str, Any]:
    with import_module("dask").config.set(scheduler="threads"):
        lazy = {name: chunked(column) for name, column in columns.items()}
        model.fit(chunked(data.X), chunked(data.y), **lazy)
    return record(model, data.new, **({} if data.tasks is None else {"tasks": data.new_tasks}))


@case("dask-lspc", draws="centres", needs=("dask",))
def _() -> dict[str, Any]:
    data = three_classes(240)
    return fit_dask(LSPC(**STREAM), data, sample_weight=fractions(240))


@case("dask-lssvr", draws="centres", needs=("dask",))
def _() -> dict[str, Any]:
    return fit_dask(LSSVR(**STREAM), values(240))


@case("dask-labels", draws="centres", needs=("dask",))
def _() -> dict[str, Any]:
    return fit_dask(MultiLabelLSPC(**STREAM), labels(200))


@case("dask-tasks", draws="centres, sample", needs=("dask",))
def _() -> dict[str, Any]:
    data = task_three_classes(400, 20)
    model = MultiTaskLSPC([0.7, 1.4], [1e-3, 1e-2], [0.2, 0.8], n_centers=20, search_rows=150, random_state=0)
    return fit_dask(model, data, tasks=data.tasks)


# --- Many tasks ---------------------------------------------------------------------------------------------------

TASKS: dict[str, Any] = {"sigma": [0.6, 1.2], "alpha": [1e-3, 1e-2], "sharing": [0.0, 0.4, 0.8], "random_state": 0}


def with_task_column(data: Data) -> dict[str, Any]:
    codes = np.unique(data.tasks, return_inverse=True)[1]
    return {"X": np.c_[data.X, codes], "tasks": None}


def new_with_task_column(data: Data) -> dict[str, Any]:
    return {"X": np.c_[data.new, np.arange(len(data.new)) % 6], "tasks": None}


fitted("tasks-lspc", MultiTaskLSPC(**PLAIN, random_state=0), task_classes)
fitted("tasks-lspc-three-classes-dual", MultiTaskLSPC(**TASKS, solver="dual", bias="shared"), task_three_classes)
fitted("tasks-lspc-coefficients", MultiTaskLSPC(**TASKS, norm="coefficients"), task_classes)
fitted(
    "tasks-lspc-coefficients-counts",
    MultiTaskLSPC(**TASKS, norm="coefficients", bias="shared"),
    task_classes,
    lambda d: {"sample_weight": counts(len(d.X))},
)
fitted(
    "tasks-lspc-coefficients-groups",
    MultiTaskLSPC(**TASKS, norm="coefficients"),
    task_classes,
    lambda d: {"groups": some_pairs(len(d.X))},
)
fitted("tasks-lspc-arrow", MultiTaskLSPC(**TASKS, n_centers=15, solver="arrow"), task_three_classes, draws="centres")
fitted(
    "tasks-lspc-arrow-coefficients",
    MultiTaskLSPC(
        **TASKS, centers=task_classes().X[::8], norm="coefficients", bias="shared", class_weight="balanced"
    ),
    task_classes,
    lambda d: {"sample_weight": fractions(len(d.X))},
)
fitted(
    "tasks-lspc-arrow-linear",
    MultiTaskLSPC(alpha=[1e-3, 1e-1], sharing=[0.2, 0.8], **LINEAR, solver="arrow", bias="shared"),
    task_classes,
)
fitted(
    "tasks-lspc-many-tasks",
    MultiTaskLSPC(**TASKS, n_centers=15, search_rows=150),
    lambda: task_classes(500, 30),
    draws="centres, sample",
)
fitted(
    "tasks-lspc-arrow-small-alpha",
    MultiTaskLSPC(1.5, 1e-11, 0.5, centers=task_classes().X[::8], solver="arrow"),
    task_classes,
    rtol=1e-4,
)
fitted(
    "tasks-lspc-arrow-groups",
    MultiTaskLSPC(**TASKS, centers=task_classes().X[::8], search_rows=None),
    task_classes,
    lambda d: {"groups": triples(len(d.X))},
)
fitted(
    "tasks-lspc-stratified",
    MultiTaskLSPC(**TASKS, cv=StratifiedTaskKFold(4, task_column=2, random_state=0), task_column=2),
    task_classes,
    with_task_column,
    new_with_task_column,
    draws="folds",
)
fitted(
    "tasks-lspc-centres-by-task", MultiTaskLSPC(**TASKS, n_centers=15, centers="task"), task_classes, draws="centres"
)
fitted(
    "tasks-lspc-centres-dual",
    MultiTaskLSPC(**TASKS, centers=task_classes().X[::8], similarity="correlation"),
    task_classes,
)
fitted("tasks-lspc-correlation", MultiTaskLSPC(**TASKS, similarity="correlation"), task_classes)
fitted("tasks-lspc-inputs", MultiTaskLSPC(**TASKS, similarity="inputs"), task_classes)
fitted("tasks-lspc-learned", MultiTaskLSPC(**TASKS, similarity="learned"), lambda: task_classes(120, 6))
fitted(
    "tasks-lspc-matrix",
    MultiTaskLSPC(**TASKS, similarity=np.exp(-np.abs(np.subtract.outer(np.arange(5), np.arange(5))))),
    task_classes,
)


def chain(X: Any, y: Any, tasks: Any) -> np.ndarray:
    n = len(np.unique(tasks))
    return np.eye(n) + 0.5 * np.eye(n, k=1) + 0.5 * np.eye(n, k=-1)


fitted("tasks-lspc-callable-similarity", MultiTaskLSPC(**TASKS, similarity=chain), task_classes)
fitted("tasks-lspc-penalty", MultiTaskLSPC(**TASKS, task_penalty={"site 001": 5.0}), task_classes)


fitted(
    "tasks-lspc-task-column",
    MultiTaskLSPC(**TASKS, task_column=-1),
    task_classes,
    with_task_column,
    new_with_task_column,
)
fitted("tasks-lspc-folds", MultiTaskLSPC(**TASKS, cv=4, calibration="temperature"), task_classes, draws="folds")
fitted(
    "tasks-lspc-whole-tasks-held-out",
    MultiTaskLSPC(**TASKS, cv=GroupKFold(5), calibration="isotonic"),
    task_classes,
)
fitted(
    "tasks-lspc-groups-task-auc",
    MultiTaskLSPC(**TASKS, scoring="task_auc"),
    task_classes,
    lambda d: {"groups": triples(len(d.X))},
)
fitted(
    "tasks-lspc-float32",
    MultiTaskLSPC(**TASKS),
    task_classes,
    lambda d: {"X": d.X.astype(np.float32)},
    lambda d: {"X": d.new.astype(np.float32)},
    rtol=1e-3,
)
fitted("tasks-lspc-two-jobs", MultiTaskLSPC(**TASKS, n_jobs=2), task_classes)

fitted("tasks-lssvc", MultiTaskLSSVC(**PLAIN, random_state=0), task_classes)
fitted("tasks-lssvc-dual-task-intercepts", MultiTaskLSSVC(**TASKS, solver="dual", bias="task"), task_three_classes)
fitted(
    "tasks-lssvc-arrow-shrunk", MultiTaskLSSVC(**TASKS, n_centers=15, bias="shrunk"), task_classes, draws="centres"
)
fitted(
    "tasks-lssvc-krylov",
    MultiTaskLSSVC(**TASKS, solver="krylov", bias="shared", search_rows=150, tol=1e-9),
    lambda: task_classes(400, 12),
    rtol=1e-5,
    draws="sample, preconditioner",
)
fitted("tasks-lssvc-prune", MultiTaskLSSVC(**TASKS, prune=0.3, bias=0.3), task_classes)
fitted(
    "tasks-lssvc-sum-learned",
    MultiTaskLSSVC(**TASKS, kernel="rbf+linear", bias=None, similarity="learned"),
    task_classes,
)

fitted("tasks-lssvr", MultiTaskLSSVR(**BOTH, random_state=0), task_values)
fitted("tasks-lssvr-dual-shared-intercept", MultiTaskLSSVR(**TASKS, solver="dual", bias="shared"), task_values)
fitted(
    "tasks-lssvr-arrow-linear",
    MultiTaskLSSVR(alpha=[1e-3, 1e-1], sharing=[0.2, 0.8], **LINEAR, solver="arrow", bias="task"),
    task_values,
)
fitted(
    "tasks-lssvr-arrow-two-outputs",
    MultiTaskLSSVR(**TASKS, n_centers=15, bias="shrunk", scoring="task_r2"),
    task_values,
    lambda d: {"y": np.c_[d.y, 0.1 * d.X[:, 0] * d.y], "sample_weight": counts(len(d.X))},
    draws="centres",
)
fitted(
    "tasks-lssvr-krylov",
    MultiTaskLSSVR(**TASKS, solver="krylov", bias=0.3, linear_weight=1.0, search_rows=150, tol=1e-9),
    lambda: task_values(400, 12),
    rtol=1e-5,
    draws="sample, preconditioner",
)
fitted(
    "tasks-lssvr-sparse",
    MultiTaskLSSVR(**TASKS, bias="shared"),
    task_values,
    lambda d: {"X": sparse.csr_matrix(d.X)},
    lambda d: {"X": sparse.csr_matrix(d.new)},
)
fitted(
    "tasks-lssvr-correlation-groups",
    MultiTaskLSSVR(**TASKS, similarity="correlation", kernel="rbf", scoring="r2"),
    task_values,
    lambda d: {"groups": triples(len(d.X))},
)

TASKS_KLR: dict[str, Any] = {"sigma": 1.2, "alpha": [1e-3, 1e-2], "sharing": [0.2, 0.8]}
fitted(
    "tasks-klr",
    MultiTaskKernelLogisticRegression(**TASKS_KLR, random_state=0),
    task_classes,
    rtol=1e-4,
    draws="folds",
)
fitted(
    "tasks-klr-newton",
    MultiTaskKernelLogisticRegression(**TASKS_KLR, solver="newton", cv=KFold(3), bias=None),
    task_three_classes,
    lambda d: {"sample_weight": fractions(len(d.X))},
    rtol=1e-4,
)


@case("tasks-stream-lspc", draws="centres, sample")
def _() -> dict[str, Any]:
    data = task_three_classes(400, 20)
    model = MultiTaskLSPC(**TASKS, n_centers=20, search_rows=150)
    model.fit_stream(blocks(data, tasks=data.tasks, sample_weight=fractions(400)))
    return record(model, data.new, tasks=data.new_tasks)


@case("tasks-stream-lspc-given-centres", draws="sample")
def _() -> dict[str, Any]:
    data = task_classes(400, 20)
    model = MultiTaskLSPC(1.2, 1e-3, 0.5, centers=data.X[::20], norm="coefficients", search_rows=150)
    model.fit_stream(iter(blocks(data, tasks=data.tasks)))
    return record(model, data.new, tasks=data.new_tasks)


@case("tasks-stream-lssvr", draws="centres, sample")
def _() -> dict[str, Any]:
    data = task_values(400, 20)
    model = MultiTaskLSSVR(**TASKS, n_centers=20, search_rows=150, bias="shared")
    model.fit_stream(data.X, data.y, task=data.tasks, block_rows=90)
    return record(model, data.new, tasks=data.new_tasks)


@case("tasks-stream-lssvc-linear", draws="sample")
def _() -> dict[str, Any]:
    data = task_classes(400, 20)
    model = MultiTaskLSSVC(alpha=[1e-3, 1e-1], sharing=[0.2, 0.8], **LINEAR, bias=0.3, search_rows=150)
    model.fit_stream(blocks(data, tasks=data.tasks))
    return record(model, data.new, tasks=data.new_tasks)


# --- Many labels --------------------------------------------------------------------------------------------------

LABELS: dict[str, Any] = {"sigma": [0.8, 1.6], "alpha": [1e-3, 1e-2], "sharing": [0.0, 0.3, 0.7], "random_state": 0}

fitted("labels", MultiLabelLSPC(**PLAIN, random_state=0), labels)
fitted("labels-sylvester-correlation", MultiLabelLSPC(**LABELS, solver="sylvester", similarity="correlation"), labels)
fitted("labels-shared-coefficients", MultiLabelLSPC(**LABELS, similarity="shared", norm="coefficients"), labels)
fitted(
    "labels-matrix-penalty",
    MultiLabelLSPC(**LABELS, similarity=np.ones((4, 4)) - 0.5 * np.eye(4)[::-1], label_penalty=[1, 2, 1, 0.5]),
    labels,
    lambda d: {"sample_weight": fractions(len(d.X))},
)
fitted("labels-pairs", MultiLabelLSPC(**LABELS, similarity=[(0, 1), (1, 2, 0.5)], bias="shared"), labels)


def products(X: Any, Y: Any) -> np.ndarray:
    return np.abs(np.corrcoef(np.asarray(Y, dtype=float).T))


fitted("labels-callable-similarity", MultiLabelLSPC(**LABELS, similarity=products, cv=4), labels, draws="folds")
fitted("labels-moments", MultiLabelLSPC(**LABELS, solver="moments", n_centers=25), labels, draws="centres")
fitted("labels-centres", MultiLabelLSPC(**LABELS, centers=labels().X[::4], calibration="temperature"), labels)
fitted(
    "labels-cg",
    MultiLabelLSPC(**LABELS, solver="cg", search_rows=100, tol=1e-9),
    lambda: labels(300),
    rtol=1e-5,
    draws="sample, folds",
)
fitted("labels-missing", MultiLabelLSPC(**LABELS, tol=1e-9), labels_with_gaps, rtol=1e-5, draws="folds")
fitted(
    "labels-missing-cg",
    MultiLabelLSPC(1.2, 1e-2, 0.5, solver="cg", tol=1e-9, random_state=0),
    labels_with_gaps,
    rtol=1e-5,
    draws="folds",
)
fitted(
    "labels-thresholds",
    MultiLabelLSPC(**LABELS, threshold="auto", scoring="f1_macro", calibration="isotonic"),
    labels,
)
fitted("labels-groups", MultiLabelLSPC(**LABELS, scoring="brier"), labels, lambda d: {"groups": triples(len(d.X))})
fitted(
    "labels-counts-coefficients",
    MultiLabelLSPC(**LABELS, norm="coefficients", bias="shared"),
    labels,
    lambda d: {"sample_weight": counts(len(d.X))},
)
fitted("labels-average-precision", MultiLabelLSPC(**LABELS, scoring="average_precision"), labels)
fitted("labels-hamming", MultiLabelLSPC(**LABELS, scoring="hamming", threshold="auto"), labels)
fitted("labels-f1-micro", MultiLabelLSPC(**LABELS, scoring="f1_micro", threshold="auto"), labels)
fitted(
    "labels-moments-folds",
    MultiLabelLSPC(**LABELS, solver="moments", n_centers=25, cv=4),
    labels,
    draws="centres, folds",
)
fitted(
    "labels-moments-large-folds",
    MultiLabelLSPC(1.5, [1e-3, 1e-2], [0.0, 0.5], centers=labels().X[::4], solver="moments", cv=KFold(2)),
    lambda: labels(4400),
)
fitted("labels-balanced", MultiLabelLSPC(**LABELS, class_weight="balanced", calibration=None), labels)
fitted(
    "labels-three-classes",
    MultiLabelLSPC(**LABELS),
    labels,
    lambda d: {"y": np.c_[d.y[:, :3], np.digitize(d.X[:, 0], [-0.5, 0.5])]},
)
fitted("labels-kernel-sum", MultiLabelLSPC(**LABELS, kernel="rbf+linear", threshold=[0.3, 0.5, 0.5, 0.7]), labels)

# --- Wrappers, tables and files -----------------------------------------------------------------------------------

fitted("abstaining", Abstaining(LSPC(**GRID), max_error=0.5), lambda: three_classes(160))
fitted(
    "abstaining-by-task",
    Abstaining(MultiTaskLSPC(**TASKS), max_error=0.25, by_task=True),
    lambda: task_classes(200, 3),
)
fitted("abstaining-labels", Abstaining(MultiLabelLSPC(**LABELS), cost=0.2), labels)
fitted("recalibrated", Recalibrated(LSPC(**GRID)), three_classes)
fitted("recalibrated-beta-by-task", Recalibrated(MultiTaskLSPC(**TASKS), "beta", by_task=True), task_classes)
fitted("recalibrated-isotonic", Recalibrated(LSPC(**GRID), "isotonic"), three_classes)
fitted("recalibrated-dirichlet", Recalibrated(LSPC(**GRID), "dirichlet"), three_classes)
fitted("recalibrated-labels", Recalibrated(MultiLabelLSPC(**LABELS), "temperature"), labels)
fitted("recalibrated-vector-lssvc", Recalibrated(LSSVC(**GRID), "vector"), three_classes)


@case("abstaining-frozen")
def _() -> dict[str, Any]:
    data = three_classes(240)
    model = LSPC(**GRID).fit(data.X[:90], data.y[:90])
    return record(Abstaining(FrozenEstimator(model), max_error=0.4).fit(data.X[90:], data.y[90:]), data.new)


@case("class-prior-estimated")
def _() -> dict[str, Any]:
    data = three_classes(240)
    return {
        "prior": plain(
            estimate_class_prior(LSPC(**GRID).fit(data.X[:120], data.y[:120]), data.X[120:][data.y[120:] != "a"])
        )
    }


@case("saved-and-loaded")
def _() -> dict[str, Any]:
    data = three_classes()
    with tempfile.TemporaryDirectory() as folder:
        save(LSPC(**GRID).fit(data.X, data.y), Path(folder) / "model.lw")
        return record(load(Path(folder) / "model.lw"), data.new)


@case("class-prior-and-sets", draws="sets")
def _() -> dict[str, Any]:
    data = three_classes()
    model = LSPC(**GRID).fit(data.X, data.y)
    return {
        "predict_proba": plain(model.predict_proba(data.new, class_prior=[0.2, 0.2, 0.6])),
        "by class": plain(model.predict_set(data.new, 0.8, by_class=True)),
        "empty": plain(model.predict_set(data.new, 0.5, allow_empty=True)),
        "random": plain(model.predict_set(data.new, 0.8, method="random-aps", random_state=0)),
    }


@case("class-prior-and-sets-of-tasks")
def _() -> dict[str, Any]:
    data = task_classes(200, 3)
    model = MultiTaskLSPC(**TASKS).fit(data.X, data.y, tasks=data.tasks)
    asked = {"tasks": data.new_tasks}
    return {
        "predict_proba": plain(model.predict_proba(data.new, class_prior=[0.7, 0.3], **asked)),
        "by task": plain(model.predict_set(data.new, 0.8, by_task=True, **asked)),
        "by task and class": plain(model.predict_set(data.new, 0.8, by_task=True, by_class=True, **asked)),
    }


def influence_record(model: Any, data: Data, **params: Any) -> dict[str, Any]:
    """Rows, contributions and effects behind eight predictions."""
    found = model.influence(data.new[:8], top=5, **params)
    names = ("rows", "target", "contribution", "effect", "score", "by_task", "own_contribution", "by_label")
    return {name: plain(getattr(found, name)) for name in names if getattr(found, name, None) is not None}


@case("influence-lspc")
def _() -> dict[str, Any]:
    data = three_classes()
    return influence_record(LSPC(**GRID).fit(data.X, data.y), data)


@case("influence-lssvr")
def _() -> dict[str, Any]:
    data = values()
    return influence_record(LSSVR(**GRID).fit(data.X, data.y), data)


@case("influence-tasks")
def _() -> dict[str, Any]:
    data = task_classes()
    model = MultiTaskLSPC(**TASKS).fit(data.X, data.y, tasks=data.tasks)
    return influence_record(model, data, tasks=data.new_tasks[:8])


@case("influence-labels-missing", rtol=1e-5, draws="folds")
def _() -> dict[str, Any]:
    data = labels_with_gaps()
    return influence_record(MultiLabelLSPC(1.2, 1e-2, 0.5, tol=1e-9).fit(data.X, data.y), data)


@case("influence-labels")
def _() -> dict[str, Any]:
    data = labels()
    return influence_record(MultiLabelLSPC(**LABELS).fit(data.X, data.y), data)


def table(n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    size, shade = rng.normal(size=n), rng.normal(size=n)
    line, site = rng.choice(["north", "south", "west"], n), rng.choice(["s1", "s2", "s3"], n)
    level = size + (line == "north") - 0.5 * (site == "s2") + 0.4 * rng.normal(size=n)
    shade[::11] = np.nan
    return {
        "size": size,
        "shade": shade,
        "line": line,
        "site": site,
        "finding": np.where(level > 0.3, "fault", "fine"),
        "amount": 3 * level + 1,
        "hot": (level + size > 0).astype(int),
        "wet": (shade > level).astype(int),
    }


def table_record(ignore: list[str], **options: Any) -> dict[str, Any]:
    model = TableModel(ignore=ignore, **options).fit(table(100, 12))
    answers = model.predict_table(table(30, 13))
    out = {f"column {name}": np.asarray(answers[name]).tolist() for name in answers.columns if name != "row"}
    heldout = {f"heldout {k}": float(v) for k, v in model.heldout_.items() if np.isscalar(v) and np.isreal(v)}
    return {**out, **heldout}


@case("table-classes")
def _() -> dict[str, Any]:
    model = LSPC(**PLAIN, random_state=0)
    return table_record(["amount", "hot", "wet"], target="finding", max_error=0.2, model=model)


@case("table-numbers-by-task")
def _() -> dict[str, Any]:
    model = MultiTaskLSSVR(**BOTH, random_state=0)
    return table_record(["finding", "hot", "wet"], target="amount", task="site", model=model)


@case("table-labels")
def _() -> dict[str, Any]:
    return table_record(["finding", "amount"], labels=["hot", "wet"], model=MultiLabelLSPC(**PLAIN, random_state=0))


# --- Defaults: scale, kernel and feature weights are chosen -------------------------------------------------------


def raw(data: Data) -> dict[str, Any]:
    """Columns of other units and with a long tail."""
    return {"X": raw_columns(data.X)}


def raw_new(data: Data) -> dict[str, Any]:
    return {"X": raw_columns(data.new)}


def raw_columns(X: np.ndarray) -> np.ndarray:
    return np.c_[1000 + 50 * X[:, :1], np.exp(X[:, 1:2]), X[:, 2:]]


CHOICE: dict[str, Any] = {"draws": "sample", "rtol": 1e-4}
REFITS: dict[str, Any] = {"draws": "folds, sample", "rtol": 1e-3}
fitted("default-lspc", LSPC(), three_classes, raw, raw_new, **CHOICE)
fitted("default-lspc-centres", LSPC(n_centers=30), lambda: three_classes(400), raw, raw_new, **CHOICE)
fitted("default-lssvc", LSSVC(), two_classes, raw, raw_new, **CHOICE)
fitted("default-lssvr", LSSVR(), values, raw, raw_new, **CHOICE)
fitted("default-klr", KernelLogisticRegression(), three_classes, raw, raw_new, **REFITS)
fitted("default-tasks-lspc", MultiTaskLSPC(), task_classes, raw, raw_new, **CHOICE)
fitted("default-tasks-lssvc", MultiTaskLSSVC(), task_classes, raw, raw_new, **CHOICE)
fitted("default-tasks-lssvr", MultiTaskLSSVR(), task_values, raw, raw_new, **CHOICE)
fitted(
    "default-tasks-klr",
    MultiTaskKernelLogisticRegression(),
    task_classes,
    raw,
    raw_new,
    rtol=1e-3,
    draws="folds, sample",
)
fitted("default-labels", MultiLabelLSPC(), labels, raw, raw_new, **CHOICE)


def frame(n: int, seed: int) -> Any:
    """Numbers, missing ones among them, and categories."""
    columns = table(n, seed)
    return import_module("pandas").DataFrame({name: columns[name] for name in ("size", "shade", "line", "site")})


@case("default-lspc-frame", needs=("pandas",), **CHOICE)
def _() -> dict[str, Any]:
    return record(LSPC().fit(frame(100, 12), table(100, 12)["finding"]), frame(30, 13))


@case("default-stream-lspc", **CHOICE)
def _() -> dict[str, Any]:
    data = three_classes(400)
    return record(LSPC(n_centers=30).fit_stream(raw_columns(data.X), data.y, block_rows=90), raw_columns(data.new))


@case("default-table-classes", **CHOICE)
def _() -> dict[str, Any]:
    return table_record(["amount", "hot", "wet"], target="finding", max_error=0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="name the cases, and what random numbers they depend on")
    parser.add_argument("--write", nargs="*", metavar="NAME", help="write the records of these cases, or of all")
    given = parser.parse_args()
    if given.list:
        print(*(f"{one.name}  {one.draws and f'({one.draws})'}".rstrip() for one in CASES.values()), sep="\n")
    if given.write is not None:
        warnings.simplefilter("ignore", DuplicateRowsWarning)
        for name in given.write or CASES:
            write(CASES[name])


if __name__ == "__main__":
    main()
