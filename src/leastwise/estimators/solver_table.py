"""The solvers of leastwise: which estimators each serves, what it needs, how it fits and what it costs.

The table is :data:`leastwise.solvers.choose.SOLVERS`; messages list solvers in the order of the entries below.
"""

from __future__ import annotations

from leastwise.estimators.iterating import fit_by_krylov, fit_by_sgd, fit_labels_by_cg
from leastwise.estimators.solving import fit_direct
from leastwise.estimators.spec import Spec
from leastwise.estimators.sums import fit_by_sums
from leastwise.problem.kernels import Kernel, Precomputed
from leastwise.solvers import costs
from leastwise.solvers.choose import SOLVERS, Solver, register_solver

__all__ = ["SOLVERS"]


def _rows(spec: Spec, kernel: Kernel) -> str | None:
    """The reason why not, where LSPC is given a kernel matrix, or classes have centres of their own."""
    if spec.family == "single" and (isinstance(kernel, Precomputed) or spec.basis == "class"):
        return f"solver={spec.solver!r} needs rows to compute kernels from, and basis='full'."
    return None


def _few_centers(spec: Spec, kernel: Kernel) -> str | None:
    if spec.every_row or isinstance(kernel, Precomputed):
        return (
            _rows(spec, kernel) or "solver='moments' goes with few centres: give n_centers, or an array of centers."
        )
    return _rows(spec, kernel)


def _tasks_alike(spec: Spec, kernel: Kernel) -> str | None:
    if spec.prune is not None:
        return "prune= needs a coefficient for every row: use solver='dual' with it."
    if spec.few_functions(kernel):
        return None
    with_norm = "" if spec.machine else " with norm='function'"
    return (
        "solver='arrow' needs few basis functions and tasks that all share alike: give n_centers or centers, "
        f"or kernel='linear'{with_norm}; and similarity='shared'. solver='dual' takes all else."
    )


def _every_row(spec: Spec, kernel: Kernel) -> str | None:
    if spec.may_iterate(kernel):
        return None
    return (
        "solver='cg' needs every row as a centre, and a positive definite kernel to compute from rows: leave "
        "n_centers and centers as they are, or use solver='sylvester'."
    )


def _kernel_times_vector(spec: Spec, kernel: Kernel) -> str | None:
    """Products with the positive definite kernel of all rows are all that conjugate gradients need."""
    if (reason := _rows(spec, kernel)) is not None:
        return reason
    if kernel.definite is False:
        return f"solver='krylov' needs a kernel that is positive definite, which {spec.kernel!r} is not."
    if isinstance(kernel, Precomputed):
        return "solver='krylov' computes the kernel anew, block by block: give it rows, not a kernel."
    if not spec.every_row:
        return "solver='krylov' is for all rows as centres: leave n_centers and centers as they are."
    if spec.prune is not None:
        return "prune refits repeatedly; solver='krylov' does not support it: use solver='auto'."
    if spec.norm != "function":
        return "solver='krylov' has the norm of the function in its ridge: use norm='function' with it."
    if spec.many_tasks and spec.computes_similarity:
        return (
            f"similarity={spec.similarity!r} compares tasks by the kernel of all rows: use solver='dual', "
            "or give similarities as a matrix."
        )
    return None


for _solver in (
    Solver("cholesky", ("machine",), fit_direct, costs.direct),  # of LSPC, too, where solver="auto" takes it
    Solver("sylvester", ("labels",), fit_direct, costs.sylvester),
    Solver("dual", ("tasks", "task machine"), fit_direct, costs.dual),
    Solver("arrow", ("tasks", "task machine"), fit_direct, costs.arrow, _tasks_alike, by_blocks=True),
    Solver(
        "moments",
        ("single", "machine", "labels"),
        fit_by_sums,
        costs.moments,
        _few_centers,
        by_blocks=True,
        device_rows=True,
    ),
    Solver(
        "krylov",
        ("single", "machine", "task machine"),
        fit_by_krylov,
        costs.iterations,
        _kernel_times_vector,
        by_blocks=True,
        iterative=True,
    ),
    Solver("sgd", ("single",), fit_by_sgd, costs.descent, _rows, by_blocks=True),
    Solver("cg", ("labels",), fit_labels_by_cg, costs.conjugate, _every_row, by_blocks=True, iterative=True),
):
    register_solver(_solver)
