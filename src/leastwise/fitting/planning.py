"""The plan of a fit: the solver and its costs, from the parameters and the size of the data."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.fitting.checks import check_label_memory
from leastwise.fitting.dataset import Dataset
from leastwise.fitting.spec import Spec
from leastwise.problem.kernels import CallableKernel, Kernel, Linear, Precomputed
from leastwise.solvers.choose import Draft, draft, refuse_stream, timed
from leastwise.solvers.costs import Facts, ProblemSize
from leastwise.solvers.evaluator import Settings
from leastwise.solvers.krylov import COARSE
from leastwise.solvers.plan import Plan
from leastwise.utils.arrays import is_dask

Array = np.ndarray

#: Sums of absolute differences cost no matrix product: not tried where a fit would take more of them than this.
MOST_DIFFERENCES = 2e10


def draft_plan(spec: Spec, data: Dataset, settings: Settings) -> Draft:
    """Solver, steps and memory of a fit to these data."""
    return draft(facts(spec, settings.kernel, size_of(data, settings)))


def check_size(spec: Spec, data: Dataset, settings: Settings) -> None:
    """Raise an error, before any work, where a fit would not fit in memory."""
    rows, itemsize = data.rows, data.rows.X.dtype.itemsize
    if spec.many_labels:
        labels = data.targets.labels
        check_label_memory(len(rows), labels.n_outputs, labels.n_labels, itemsize, spec.pair_table)
    draft_plan(spec, data, settings).refuse()


def choose_solver(spec: Spec, data: Dataset, settings: Settings) -> str:
    """The solver of the plan; an error where that would not fit in memory."""
    plan = draft_plan(spec, data, settings)
    plan.refuse()
    if spec.verbose:
        spec.report(f"plan: {timed(plan).summary}")
    return plan.solver


def refuse_large_stream(spec: Spec, data: Dataset, settings: Settings, centers: int, kept: int) -> None:
    """Raise an error if a stream with these numbers of centres and kept rows would not fit in memory."""
    refuse_stream(facts(spec, settings.kernel, size_of(data, settings)), centers, kept)


def plan_of_shape(spec: Spec, shape: tuple[int, int], n_outputs: int | None, n_tasks: int, given: dict) -> Plan:
    """The plan for data of this shape, with equal weights and distinct rows."""
    extra = [name for name, value in given.items() if value is not None]
    if extra:
        more = ", n_tasks=" if "tasks" in given else ""
        raise ValueError(f"{extra[0]} cannot be given with a shape; give the sizes with n_outputs={more} instead.")
    c = (1 if spec.targets.kind == "values" else 2) if n_outputs is None else int(n_outputs)
    n, d = (int(size) for size in shape)
    folds = int(spec.cv) if isinstance(spec.cv, Integral) and not isinstance(spec.cv, bool) else n
    labels = max(1, c // 2) if spec.many_labels else 1
    size = ProblemSize(n, d, c, 8, n, folds, -(-n // max(folds, 1)), True, n_tasks, labels)
    return timed(draft(facts(spec, spec.check(), size)))


def check_plannable(spec: Spec, X: Any) -> None:
    """Raise an error for data that a plan cannot inspect without changing them."""
    if is_dask(X):
        raise ValueError(
            "X is a Dask collection, but plan() is for rows in memory. Give a shape, such as plan((1_000_000, 20)), "
            "to see the costs of a fit in memory."
        )
    if isinstance(spec.cv, Iterator):
        raise ValueError("cv is an iterator, which can be read only once. Pass a list of splits instead.")


def is_shape(X: Any) -> bool:
    """True if X is a shape rather than rows: two whole numbers."""
    whole = isinstance(X, tuple) and len(X) == 2 and all(isinstance(v, Integral) for v in X)
    if whole and not all(v > 0 for v in X):
        raise ValueError(f"X={X!r} is a shape without rows or features; both numbers must be 1 or more.")
    return whole


def size_of(data: Dataset, settings: Settings) -> ProblemSize:
    """The size of a problem."""
    rows: Any = data.rows
    sizes = np.bincount(rows.fold)
    return ProblemSize(
        len(rows),
        0 if isinstance(settings.kernel, Precomputed) else rows.X.shape[1],
        settings.n_outputs,
        rows.X.dtype.itemsize,
        int(rows.copy.max()) + 1,
        len(sizes),
        int(sizes.max()),
        rows.complete if hasattr(rows, "complete") else rows.equal_weights,
        1 if rows.task is None else int(rows.task.max()) + 1,
        rows.y.shape[1] if rows.y.ndim == 2 else 1,
        2 * rows.X.nnz // len(rows) + 1 if sparse.issparse(rows.X) else 0,
    )


def facts(spec: Spec, kernel: Kernel, size: ProblemSize) -> Facts:
    """All quantities that the costs of the solvers depend on."""
    b, square = _basis_functions(spec, size)
    sigmas, alphas = spec.grids(1.0, 1.0)
    known: dict[str, Any] = {
        "b": b,
        "square": square,
        "cuttable": isinstance(spec.centers, str) and not isinstance(kernel, Precomputed),
        "sums": not isinstance(kernel, Precomputed) and not spec.every_row,
        "blocks": size.c if spec.basis == "class" else 1,
        "norm": spec.norm,
        "layers": kernel.layers,
        "search_rows": spec.search_rows,
        "max_passes": int(spec.max_passes),
        "sigmas": len(sigmas.values) if kernel.has_sigma else 1,
        "alphas": len(alphas.values),
        "grows": alphas.ratio is not None,
        "chooses": spec.cv is not None,
        "classes": spec.targets.kind != "values",
        "coarse": not spec.many_labels and spec.tol >= COARSE,
        "candidates": _candidates(spec, kernel, size, b),
        **{name: getattr(size, name) for name in ("tasks", "labels", "folds", "largest", "exact", "stored")},
    }
    if spec.many_labels:
        known |= {"iterates": spec.may_iterate(kernel), "sharings": len(spec.label_sharings.values)}
        known |= {"pairs": spec.pair_table}
    if spec.family == "single":
        known |= {"iterates": square and spec.may_iterate(kernel)}
    if spec.many_tasks:
        known |= _task_facts(spec, kernel, size)
    if spec.machine:
        known |= _machine_facts(spec, kernel, size, square, bool(known.get("few")))
    return Facts(spec.family, spec.solver, size.n, size.d, size.c, itemsize=size.itemsize, **known)


def _basis_functions(spec: Spec, size: ProblemSize) -> tuple[int, bool]:
    """Number of basis functions, and whether they are exactly the rows in order."""
    if not isinstance(spec.centers, str):
        return int(np.shape(spec.centers)[0]), False
    whole = spec.basis == "full"
    if spec.n_centers is None:
        return size.n, whole
    count = int(spec.n_centers) * (1 if whole else size.c)
    if count >= size.n and spec.centers == "random":
        return size.n, whole
    return min(count, size.distinct or size.n), False


def _candidates(spec: Spec, kernel: Kernel, size: ProblemSize, b: int) -> int:
    """Number of scales times kernels that are compared; 0 if the inputs are given."""
    if spec.cv is None or isinstance(kernel, Precomputed | CallableKernel) or spec.logistic:
        return 0
    few = size.stored > 0 or float(size.n) * b * size.d > MOST_DIFFERENCES
    kernels = 1 if few else len(spec.kernel_names)
    count = len(spec.scale_names(False)) * kernels
    automatic = kernel.has_sigma and spec.searches_sigma and bool(spec.grids(1.0, 1.0)[1].ratio)
    return count if count > 1 or (automatic and spec.metric is not None) else 0


def _task_facts(spec: Spec, kernel: Kernel, size: ProblemSize) -> dict[str, Any]:
    few = spec.few_functions(kernel)
    known: dict[str, Any] = {"few": few, "alike": spec.shares_alike, "sharings": len(spec.task_sharings.values)}
    # A linear kernel uses the features as basis functions if there are fewer features than rows.
    if few and spec.every_row and spec.solver != "dual" and (size.d < size.n or spec.solver == "arrow"):
        known |= {"b": size.d, "square": False, "cuttable": False}
    return known


def _machine_facts(spec: Spec, kernel: Kernel, size: ProblemSize, square: bool, few: bool) -> dict[str, Any]:
    weights, parts = spec.linear_weights(kernel), getattr(kernel, "parts", ())
    rival = any(isinstance(part, Linear) and np.inf in weights for part in parts) and spec.solver != "krylov"
    iterates = square and spec.may_iterate(kernel)
    known: dict[str, Any] = {
        "options": max(1, len(weights)),
        "cautious": bool(getattr(spec.scorer, "cautious", False)),
        "rival": size.d if rival else 0,
    }
    if spec.many_tasks:
        known["options"] += len(spec.intercept_ratios) - 1
        return {**known, "iterates": iterates and not few and not spec.computes_similarity}
    if spec.linear_directions(size.n, size.d, kernel):
        known |= {"b": size.d, "square": False, "cuttable": False}
        iterates = False
    return {**known, "iterates": iterates}
