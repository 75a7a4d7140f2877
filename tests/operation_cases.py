"""Fits and predictions whose operations are counted: every estimator, and every way that rows come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import _fits
from benchmarks._fits import DEFAULTS

Call = Callable[[], Any]

ROWS, FEW_ROWS = 200, 120
#: Dask computes in threads, which are not counted.
FITS = [name for name in DEFAULTS if "Dask" not in name]
#: Given hyperparameters: what a prediction computes does not depend on them.
GIVEN: dict[str, Any] = {"sigma": 2.0, "alpha": 1e-3, "kernel": "rbf"}
#: Small grids for kernel logistic regression, which iterates.
GRID: dict[str, Any] = {"sigma": [2.0, 4.0], "alpha": [1e-3, 1e-2], "kernel": "rbf"}


def fit(name: str) -> Callable[[], Call]:
    if "Logistic" in name:
        return lambda: (_fits.of_tasks if "Task" in name else _fits.plain)(name, FEW_ROWS, **GRID)[1]
    return lambda: DEFAULTS[name](ROWS)[1]


def predict(name: str, rows: int) -> Callable[[], Call]:
    """Predictions of a model with given hyperparameters."""

    def make() -> Call:
        by_task = name.startswith("MultiTask")
        data = _fits.values if name.endswith("SVR") else _fits.labels if "Label" in name else _fits.classes
        model, fitted = (_fits.of_tasks if by_task else _fits.plain)(name, FEW_ROWS, data, **GIVEN)
        fitted()
        X, _ = _fits.inputs(rows, seed=9)
        method = getattr(model, "predict_proba", None) or model.predict
        return (lambda: method(X, tasks=_fits.tasks(rows))) if by_task else (lambda: method(X))

    return make


def abstain() -> Call:
    from leastwise import LSPC, Abstaining

    X, y = _fits.classes(FEW_ROWS)
    model = Abstaining(LSPC(**GIVEN), max_error=0.2).fit(X, y)
    return lambda: (model.predict(X[:1]), model.accepts(X[:1]))


def table() -> Call:
    from leastwise import LSPC, TableModel

    X, y = _fits.classes(FEW_ROWS)

    def columns(m: int) -> dict[str, Any]:
        words = np.array(["low", "high"])[(X[:m, 0] > 0).astype(int)]
        return {"word": words, **{f"x{j}": X[:m, j] for j in range(1, X.shape[1])}}

    model = TableModel("y", model=LSPC(**GIVEN), max_error=0.2)
    model.fit({**columns(FEW_ROWS), "y": np.array(["a", "b", "c"])[y]})
    one = columns(1)
    return lambda: model.predict_table(one)


#: Makes a call for every name; only the call is counted.
CASES: dict[str, Callable[[], Call]] = {
    **{f"fit {name}": fit(name) for name in FITS},
    "fit KernelLogisticRegression, defaults": lambda: _fits.plain("KernelLogisticRegression", FEW_ROWS // 2)[1],
    "fit LSPC, centres": lambda: _fits.plain("LSPC", 1000, n_centers=50)[1],
    "fit LSPC, krylov": lambda: _fits.plain("LSPC", 600, solver="krylov", **GIVEN)[1],
    "fit LSPC, sums": lambda: _fits.plain("LSPC", 3000, n_centers=50, solver="moments", **GIVEN)[1],
    "fit MultiTaskLSPC, many tasks": lambda: _fits.of_tasks(
        "MultiTaskLSPC", 1500, count=100, n_centers=30, sharing=0.5, **GIVEN
    )[1],
    "fit MultiLabelLSPC, coefficients": lambda: _fits.plain(
        "MultiLabelLSPC", FEW_ROWS, _fits.labels, norm="coefficients"
    )[1],
    **{f"predict one row, {name}": predict(name, 1) for name in FITS if "." not in name and "," not in name},
    "predict 2,000 rows, LSPC": predict("LSPC", 2000),
    "predict one row, Abstaining": abstain,
    "predict one row, TableModel": table,
}
