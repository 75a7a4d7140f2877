"""The one path of ``fit``: check, read, plan, choose, solve, store.

Every estimator passes its ``Spec``. Dask collections are fitted like streams, with Dask as the source.
"""

from __future__ import annotations

from typing import Any

from leastwise.fitting.dataset import Dataset, read_dataset
from leastwise.fitting.direct import fit_direct, fit_logistic
from leastwise.fitting.input_search import choose_inputs
from leastwise.fitting.iterative import fit_by_krylov, fit_by_sgd, fit_labels_by_cg
from leastwise.fitting.planning import check_size, choose_solver
from leastwise.fitting.sources import fit_dask
from leastwise.fitting.spec import Spec
from leastwise.fitting.store import store
from leastwise.fitting.sums import fit_by_sums
from leastwise.problem.kernels import Kernel, Precomputed
from leastwise.solvers import costs
from leastwise.solvers.choose import SOLVERS, Solver, register_solver
from leastwise.solvers.evaluator import Settings
from leastwise.solvers.moments import SAMPLE_ROWS
from leastwise.solvers.work import STAND_IN, folds_to_hold_out
from leastwise.utils.arrays import is_dask
from leastwise.utils.resources import threads_for


def fit(model: Any, spec: Spec, X: Any, y: Any, sample_weight: Any, groups: Any, tasks: Any = None) -> Any:
    """Fit a model to rows."""
    if is_dask(X) and not spec.logistic:  # least squares need only sums over the rows, which stay where they are
        return fit_dask(model, spec, X, y, sample_weight, groups, tasks)
    data, settings = prepare(model, spec, X, y, sample_weight, groups, tasks)
    check_size(spec, data, settings)
    # Tasks with few basis functions are eliminated one by one.
    with threads_for(0 if spec.many_tasks and spec.few_functions(data.kernel) else len(data.rows)):
        spec, data, settings = choose_inputs(spec, data, settings)
        solver = SOLVERS[choose_solver(spec, data, settings)]
        data = data if solver.device_rows else data.to_numpy()
        return store(model, spec, data, solver.fit(spec, data, settings))


def prepare(
    model: Any, spec: Spec, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, tasks: Any = None
) -> tuple[Dataset, Settings]:
    """Checked parameters, validated rows, and the settings that do not change during a search."""
    data = read_dataset(spec, model, X, y, sample_weight, groups, spec.check(), tasks)
    return data, spec.settings(data.kernel, data.targets, data.rows)


# -------------------------------------------------------- the built-in solvers
# The estimators that each serves, its requirements, its fitting function and its costs. The table is
# ``leastwise.solvers.choose.SOLVERS``; messages list solvers in the order of the entries below.


def _rows(spec: Spec, kernel: Kernel) -> str | None:
    """The reason against the solver, if the kernel is precomputed or classes have their own centres."""
    if spec.family == "single" and (isinstance(kernel, Precomputed) or spec.basis == "class"):
        return f"solver={spec.solver!r} needs rows to compute kernels from, and basis='full'."
    return None


def _few_centers(spec: Spec, kernel: Kernel) -> str | None:
    if spec.every_row or isinstance(kernel, Precomputed):
        return _rows(spec, kernel) or "solver='moments' needs few centres: give n_centers, or an array of centers."
    return _rows(spec, kernel)


def _tasks_alike(spec: Spec, kernel: Kernel) -> str | None:
    if spec.prune is not None:
        return "prune= needs a coefficient for every row: use solver='dual' with it."
    if spec.few_functions(kernel):
        return None
    with_norm = "" if spec.machine else " with norm='function'"
    return (
        "solver='arrow' needs few basis functions and equal sharing between tasks: give n_centers or centers, "
        f"or kernel='linear'{with_norm}; and similarity='shared'. Otherwise use solver='dual'."
    )


def _every_row(spec: Spec, kernel: Kernel) -> str | None:
    if spec.may_iterate(kernel):
        return None
    return (
        "solver='cg' needs every row as a centre, and a positive definite kernel that is computed from rows: do not "
        "set n_centers and centers, or use solver='sylvester'."
    )


def _kernel_times_vector(spec: Spec, kernel: Kernel) -> str | None:
    """The reason against conjugate gradients, which need products with a positive definite kernel of all rows."""
    if (reason := _rows(spec, kernel)) is not None:
        return reason
    if kernel.definite is False:
        return f"solver='krylov' needs a positive definite kernel, and kernel={spec.kernel!r} is not."
    if isinstance(kernel, Precomputed):
        return "solver='krylov' computes the kernel block by block: give rows instead of a precomputed kernel."
    if not spec.every_row:
        return "solver='krylov' uses all rows as centres: do not set n_centers and centers."
    if spec.prune is not None:
        return "prune refits repeatedly; solver='krylov' does not support it: use solver='auto'."
    if spec.norm != "function":
        return "solver='krylov' penalises the norm of the function: use norm='function' with it."
    if spec.many_tasks and spec.computes_similarity:
        return (
            f"similarity={spec.similarity!r} needs the kernel matrix of all rows to compare tasks: use "
            "solver='dual', or give the similarities as a matrix."
        )
    return None


def _own_functions(f: costs.Facts) -> str:
    some = f"held-out scores of all but about {SAMPLE_ROWS:,} rows, and " if f.n > SAMPLE_ROWS else ""
    return f"{some}the removal of the basis function of a row that is held out"


def _each_label_row_in_turn(f: costs.Facts) -> str:
    count = folds_to_hold_out(f.n, f.c)
    some = "a tenth of the rows is" if count == 1 else f"{count} of {STAND_IN} folds are"
    return f"leave-one-out scores ({some} held out instead)"


for _solver in (
    Solver("cholesky", ("single", "machine"), fit_direct, costs.direct, cross_fits=True),
    Solver("sylvester", ("labels",), fit_direct, costs.sylvester, cross_fits=True),
    Solver("dual", ("tasks", "task machine"), fit_direct, costs.dual, cross_fits=True),
    Solver(
        "arrow", ("tasks", "task machine"), fit_direct, costs.arrow, _tasks_alike, by_blocks=True, cross_fits=True
    ),
    Solver(
        "moments",
        ("single", "machine", "labels"),
        fit_by_sums,
        costs.moments,
        _few_centers,
        by_blocks=True,
        device_rows=True,
        gives_up=_own_functions,
        inexact=lambda f: f.b / f.n,
    ),
    Solver(
        "krylov",
        ("single", "machine", "task machine"),
        fit_by_krylov,
        costs.iterations,
        _kernel_times_vector,
        by_blocks=True,
        iterative=True,
        gives_up=lambda f: "leave-one-out scores (a tenth of the rows is held out instead), and influence()",
        inexact=lambda f: 1.0,
    ),
    Solver(
        "sgd",
        ("single",),
        fit_by_sgd,
        costs.descent,
        _rows,
        by_blocks=True,
        gives_up=lambda f: "the exact solution, and leave-one-out scores (a tenth of the rows is held out instead)",
        inexact=lambda f: 1.0,
    ),
    Solver(
        "cg",
        ("labels",),
        fit_labels_by_cg,
        costs.conjugate,
        _every_row,
        by_blocks=True,
        iterative=True,
        gives_up=_each_label_row_in_turn,
        inexact=lambda f: 1.0,
    ),
    Solver("newton", ("logistic", "task logistic"), fit_logistic, costs.logistic, cross_fits=True),
    Solver("lbfgs", ("logistic", "task logistic"), fit_logistic, costs.logistic, cross_fits=True),
):
    register_solver(_solver)
