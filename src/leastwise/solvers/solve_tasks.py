"""The final multi-task solution at the selected hyperparameters, and leave-one-task-out scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from leastwise.linalg.arrow import (
    Arrow,
    Sums,
    System,
    TaskFactors,
    arrow_qr,
    decompose,
    empty_sums,
    factor_chunk,
)
from leastwise.linalg.arrow_batches import Chunk
from leastwise.linalg.decompositions import gram_spectrum, solve_gram
from leastwise.linalg.moments import Whitening
from leastwise.problem.basis import evaluate
from leastwise.problem.coupling import Centring, CouplingMatrix, shrunk_means
from leastwise.problem.kernels import Kernel
from leastwise.solvers.arrow import ArrowEvaluator, ArrowHeldout, factored_pieces, held_out
from leastwise.solvers.evaluator import Rows
from leastwise.solvers.heldout import Folds, HeldOut, Problem
from leastwise.solvers.influence import bordered_inverse
from leastwise.solvers.task_evaluators import CoupledEvaluator
from leastwise.solvers.work import kernel_budget
from leastwise.utils.arrays import get_namespace, is_numpy, rows_at, to_namespace
from leastwise.utils.resources import map_on_threads

Array = np.ndarray

#: Variance of practically unpenalised intercepts, relative to the noise variance.
WIDE = 1e6


@dataclass(frozen=True)
class DualForm:
    """``F(x, t) = sum_j B[t, t_j] k(x, x_j) A_j``: one coefficient per row and output, for any number of tasks."""

    A: Array
    task: Array
    coupling_matrix: CouplingMatrix

    @property
    def coef(self) -> Array:
        """Array whose shape gives the numbers of centres and outputs."""
        return self.A

    def weigh(self, K: Array, t: Array) -> Array:
        """Scores of rows with task codes t from their kernel values."""
        return self.coupling_matrix.couple(K, t, self.task) @ to_namespace(self.A, K)


@dataclass(frozen=True)
class PrimalForm:
    """``F(x, t) = sum_l k(x, c_l) coef[t, l]``: coefficients of every task; the last entry is for unseen tasks."""

    coef: Array

    def weigh(self, K: Array, t: Array) -> Array:
        """Scores of rows with task codes t from their kernel values."""
        if not is_numpy(K):
            return self._weigh_there(K, t)
        F = np.empty((len(K), self.coef.shape[2]), dtype=K.dtype)
        for code, rows in rows_by_task(t):
            F[rows] = K[rows] @ self.coef[code]
        return F

    def _weigh_there(self, K: Any, t: Array) -> Any:
        """The same in another array library; only coefficients of the tasks that occur are transferred."""
        found = list(rows_by_task(t))
        parts = [rows_at(K, rows) @ to_namespace(self.coef[code], K) for code, rows in found]
        return rows_at(
            get_namespace(K).concat(parts, axis=0), np.argsort(np.concatenate([rows for _, rows in found]))
        )


Form = DualForm | PrimalForm


def rows_by_task(task: Array) -> Iterator[tuple[int, Array]]:
    """Code and rows of every task that occurs."""
    order = np.argsort(task, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(task[order]) != 0])
    for rows in np.split(order, starts[1:]):
        if len(rows):
            yield int(task[rows[0]]), rows


def evaluate_tasks(
    kernel: Kernel, sigma: float, X: Any, task: Array, centers: Any, rows: Array | None, form: Form
) -> tuple[Array, Array]:
    """Scores of rows with task codes (-1 for an unseen task), and distances to the nearest centre."""
    return evaluate(kernel, sigma, X, centers, rows, form.coef, lambda K, part: form.weigh(K, task[part]))


@dataclass(frozen=True)
class TaskSolution:
    """Coefficients of many tasks, intercepts (c), and diagnostics (see ``solve.Solution``).

    ``own`` (T x c) is the offset of each task from the intercept.
    """

    form: Form
    intercept: Array
    jitter: float = 0.0
    lifted: bool = False
    own: Array | None = None


AnyTaskEvaluator = CoupledEvaluator | ArrowEvaluator


def solve_tasks(evaluator: AnyTaskEvaluator, sigma: float, alpha: float) -> TaskSolution:
    """The exact solution, in the dual or by the block-arrow system."""
    return (
        stream_tasks(evaluator, sigma, alpha)[0]
        if isinstance(evaluator, ArrowEvaluator)
        else solve_dual(evaluator, sigma, alpha)
    )


def stream_tasks(
    evaluator: ArrowEvaluator, sigma: float, alpha: float, hold: bool = False
) -> tuple[TaskSolution, HeldOut | None]:
    """The solution in two passes over the tasks: one for the shared part, one for the task-specific parts.

    With ``hold``, held-out scores of all rows are returned too; every fold must lie within a task. They use the ridge
    of all rows, not of the training rows, which saves another pass and makes no practical difference.
    """
    stream, coupling_matrix, centring = evaluator.stream, evaluator.coupling_matrix, evaluator.centring()
    penalty, rho, bias = stream.penalty(sigma), float(alpha * len(evaluator.rows)), evaluator.bias
    cuts = list(stream.cuts())
    read = partial(stream.chunk, sigma=sigma, coupling_matrix=coupling_matrix, penalty=penalty, centring=centring)
    system, factors = _shared_system(lambda tasks: read(tasks)[1], cuts, coupling_matrix.sharing, rho, bias)
    arrow = Arrow.of(system, rho)

    def finish(task: tuple[slice, list[TaskFactors] | None]) -> tuple[Array, Array, Array | None, HeldOut | None]:
        tasks, packed = task
        mine, chunk = read(tasks)
        kept = factor_chunk(chunk, rho) if packed is None and system.regular else [f.unpacked() for f in packed or ()]
        coef, own = chunk_coef(chunk, arrow, penalty, evaluator.unit_intercept_ratio, kept)
        part = None if centring is None else centring.part(mine, tasks)
        held = chunk_heldout(evaluator.rows.part(mine), chunk, part, system, rho, kept) if hold else None
        return mine, coef, own, held

    coef = empty_coef(len(coupling_matrix.own) + 1, arrow, penalty)
    F = np.empty((len(evaluator.rows), arrow.shared.shape[1]), dtype=arrow.shared.dtype)
    noise = np.empty(len(F))
    own = None if centring is None else np.zeros((len(coupling_matrix.own), F.shape[1]), dtype=F.dtype)
    done = map_on_threads(finish, zip(cuts, factors, strict=True))
    for tasks, (mine, part, intercepts, held) in zip(cuts, done, strict=True):
        coef[tasks] = part
        if own is not None:
            own[tasks] = intercepts
        if held is not None:
            F[mine], noise[mine] = held.F, held.noise
    coef[-1:] = unwhitened(arrow.shared[None], penalty)
    jitter = max(arrow.jitter, 0.0 if penalty is None else penalty.jitter)
    intercept, own = common_intercept(arrow.intercept, own, bias)
    solution = TaskSolution(PrimalForm(coef), intercept, jitter, own=own)
    return solution, HeldOut(F, noise) if hold else None


def _shared_system(
    read: Callable[[slice], Chunk], cuts: list[slice], sharing: float, rho: float, bias: bool
) -> tuple[System, list[list[TaskFactors] | None]]:
    """The shared system, and the factors of the tasks of each chunk; None for chunks that do not fit into memory."""

    def reduce(tasks: slice) -> tuple[Sums, list[TaskFactors]]:
        chunk = read(tasks)
        sums = empty_sums(chunk)
        return sums, [f.packed() for f in factor_chunk(chunk, rho, sums) or ()]

    kept: list[list[TaskFactors] | None] = []
    total, room = None, kernel_budget()
    for sums, factors in map_on_threads(reduce, cuts):
        total = sums if total is None else total + sums
        if not total.regular:
            break
        room -= sum(f.inverse.nbytes for f in factors)
        kept.append(factors if room > 0 else None)
    assert total is not None
    if total.keep_digits(sharing):
        return total.system(sharing, bias), kept
    return arrow_qr(lambda: map(read, cuts), sharing, rho, bias), [None] * len(cuts)


def chunk_coef(
    chunk: Chunk,
    arrow: Arrow,
    penalty: Whitening | None,
    intercept_ratio: float,
    factors: list[TaskFactors] | None = None,
) -> tuple[Array, Array | None]:
    """Kernel coefficients of the tasks of a chunk (k x b x c), and their intercept offsets (k x c)."""
    parts = arrow.parts(chunk, factors) + arrow.shared
    coef = unwhitened(parts, penalty)
    if chunk.means is None:
        return coef, None
    used = coef if penalty is None else coef[:, penalty.pivots]
    return coef, _own_intercepts(chunk, used, arrow.intercept, intercept_ratio).astype(parts.dtype)


def chunk_heldout(
    rows: Rows,
    chunk: Chunk,
    centring: Centring | None,
    system: System,
    rho: float,
    factors: list[TaskFactors] | None = None,
) -> HeldOut:
    """Held-out scores of the rows of a chunk, from a shared system that may include more tasks."""
    root = np.sqrt(rows.w).astype(chunk.Z.dtype)
    Z = rows.targets(chunk.Z.shape[1]) * root[:, None]
    problem = Problem(Z, root, system.bias, None, Folds.from_labels(rows.fold), centring, rows.split_count)
    factors = factors or (factor_chunk(chunk, rho) if system.regular else None)
    if factors is None:
        return ArrowHeldout(problem, decompose([chunk]), system.sharing, chunk.own).from_system(system, rho)
    return held_out(problem, factored_pieces(problem, chunk, factors, system, rho), rho)


def _own_intercepts(chunk: Chunk, parts: Array, intercept: Array, intercept_ratio: float) -> Array:
    """Intercept offsets of the tasks of a chunk: shrunken means of their residuals (k x c)."""
    assert chunk.means is not None
    b = chunk.design.shape[1]
    Phi, Z, v = chunk.means[:, :b], chunk.means[:, b:-1], chunk.means[:, -1:]  # v^2 is the weight of the task
    left = Z - np.einsum("tb,tbc->tc", Phi, parts) - v * intercept
    return np.where(v > 0, v * left / np.maximum(v**2 + 1 / intercept_ratio, np.finfo(float).tiny), 0)


def common_intercept(intercept: Array, own: Array | None, shared: bool) -> tuple[Array, Array | None]:
    """Intercept of an unseen task, and the offset of each task from it.

    If all tasks have unpenalised intercepts, an unseen task gets their mean.
    """
    if own is None or shared:
        return intercept, own
    middle = own.mean(axis=0)
    return middle, own - middle


def check_folds_within_tasks(rows: Rows, searched: int) -> None:
    """Raise an error if a fold contains rows of several tasks: the final pass processes one task at a time."""
    assert rows.task is not None
    order = np.lexsort((rows.task, rows.fold))
    fold, task = rows.fold[order], rows.task[order]
    if np.any((fold[1:] == fold[:-1]) & (task[1:] != task[:-1])):
        raise ValueError(
            "cv holds out rows of several tasks together, which is possible only if the search uses all rows: there "
            f"are {len(rows)}, and the search uses {searched}. Use cv='loo', groups within tasks, or "
            "search_rows=None."
        )


def unseen_task_scores(evaluator: AnyTaskEvaluator, sigma: float, alpha: float, jitter: float = 0.0) -> Array:
    """Leave-one-task-out scores: of every row from a model that has not seen its task (n x c).

    Unpenalised task intercepts get a prior so wide that nothing else changes; its mean is the intercept of an unseen
    task.
    """
    if not np.isfinite(evaluator.intercept_ratio):
        evaluator = evaluator.with_intercept_ratio(WIDE)
        evaluator.settings = replace(evaluator.settings, bias=True)
    if isinstance(evaluator, CoupledEvaluator):
        return dual_unseen_task_scores(evaluator, sigma, alpha, jitter)
    F = evaluator.back(evaluator.arrow(sigma).unseen_task_scores(alpha))
    alone = evaluator.coupling_matrix.sharing == 0 and not evaluator.bias  # only rounding error
    return np.zeros_like(F) if alone else F


def empty_coef(n_tasks: int, arrow: Arrow, penalty: Whitening | None) -> Array:
    """Uninitialised kernel coefficients of ``n_tasks`` tasks; in double precision if they may cancel."""
    r, c = arrow.shared.shape
    return np.empty((n_tasks, r, c), arrow.shared.dtype) if penalty is None else np.empty((n_tasks, penalty.size, c))


def unwhitened(coef: Array, penalty: Whitening | None) -> Array:
    """Kernel coefficients (tasks x b x c) from those of whitened features."""
    if penalty is None:
        return coef
    k, b, c = coef.shape
    flat = penalty.unwhiten(coef.transpose(1, 0, 2).reshape(b, -1))
    return np.ascontiguousarray(flat.reshape(-1, k, c).transpose(1, 0, 2))


def solve_dual(evaluator: CoupledEvaluator, sigma: float, alpha: float) -> TaskSolution:
    """The exact solution in the dual, n unknowns: ``A = (H + rho)^-1 Z``."""
    H, root, centring = evaluator.kernel(sigma), evaluator.root, evaluator.centring()
    if not evaluator.rows.equal_weights:
        H *= root
        H *= root[:, None]
    if centring is not None:
        return _solve_centred(evaluator, sigma, alpha, H, centring)
    rho, bias = alpha / evaluator.unit * len(H), root if evaluator.bias else None
    lifted = not evaluator.definite
    A, b, jitter = _solve_gram(H, evaluator.Z, rho, bias, lifted)
    return TaskSolution(_form(evaluator, sigma, root[:, None] * A), b, jitter, lifted)


def _solve_gram(H: Array, Z: Array, rho: float, bias: Array | None, lifted: bool) -> tuple[Array, Array, float]:
    """Solve by a Cholesky factor, or from the spectrum if negative eigenvalues have to be lifted. Overwrites H."""
    if not lifted:
        return solve_gram(H, Z, rho, bias)
    spectrum = gram_spectrum(H)
    return *spectrum.coefficients(rho, Z, bias), spectrum.jitter


def _solve_centred(
    evaluator: CoupledEvaluator, sigma: float, alpha: float, H: Array, centring: Centring
) -> TaskSolution:
    """The solution with task intercepts: ``A = W (W H W + rho)^-1 W (Z - v b)``."""
    root, rho, lifted = evaluator.root, alpha / evaluator.unit * len(H), not evaluator.definite
    bias = centring.rows(root[:, None])[:, 0] if evaluator.bias else None
    A, b, jitter = _solve_gram(centring.gram(H), centring.rows(evaluator.Z), rho, bias, lifted)
    A = centring.rows(A)
    left = evaluator.Z - H @ A - np.outer(root, b)
    ratio, n_tasks = evaluator.unit_intercept_ratio, len(evaluator.coupling_matrix.own)
    own = shrunk_means(left, root, evaluator.task, ratio, n_tasks).astype(A.dtype)
    form = _form(evaluator, sigma, root[:, None] * A)
    intercept, added = common_intercept(b, own, evaluator.bias)
    return TaskSolution(form, intercept, jitter, lifted, added)


def _form(evaluator: CoupledEvaluator, sigma: float, A: Array) -> Form:
    """Coefficients of the rows if the kernel matrix is the Gram matrix, otherwise of the centres."""
    if evaluator.plain:
        return DualForm(A, evaluator.task, evaluator.coupling_matrix)
    # theta_t = Phi' (B[t, t_j] A_j), then from whitened features back to the kernel
    Phi, coupling_matrix = evaluator.features(sigma), evaluator.coupling_matrix
    parts = np.zeros((len(coupling_matrix.own) + 1, Phi.shape[1], A.shape[1]), dtype=A.dtype)
    for code, rows in rows_by_task(evaluator.task):
        parts[code] = Phi[rows].T @ A[rows]
    if coupling_matrix.B is not None:
        coef = np.tensordot(coupling_matrix.extended.astype(A.dtype), parts[:-1], 1)
    else:  # sharing + own_t [t = t'], without the matrix of all tasks
        own = np.append(coupling_matrix.own, 0).astype(A.dtype)
        coef = own[:, None, None] * parts + A.dtype.type(coupling_matrix.sharing) * parts.sum(axis=0)
    return PrimalForm(_unscaled(evaluator, sigma, coef))


def _unscaled(evaluator: CoupledEvaluator, sigma: float, coef: Array) -> Array:
    """Kernel coefficients from those of the features."""
    if evaluator.settings.norm == "coefficients":
        return coef * evaluator.root[:, None] if evaluator.basis.weighted else coef
    return unwhitened(coef, evaluator.coordinates(sigma))


def dual_unseen_task_scores(evaluator: CoupledEvaluator, sigma: float, alpha: float, jitter: float = 0.0) -> Array:
    """Leave-one-task-out scores (n x c) from one inverse.

    Deleting the rows f of a task from ``A = M Z`` leaves ``A - M[:, f] (M_ff)^-1 A_f`` on the others. The ridge is
    that of all rows, and basis functions are not deleted. ``jitter`` is the one that was added to the model's Gram
    matrix.
    """
    root, task, coupling_matrix, G = evaluator.root, evaluator.task, evaluator.coupling_matrix, evaluator.gram(sigma)
    H = coupling_matrix.couple(G.copy(), task, task) * root[:, None] * root
    inverse = bordered_inverse(
        H, alpha / evaluator.unit * len(H) + jitter, root, evaluator.bias, evaluator.centring()
    )
    A, b, F = inverse.M @ evaluator.Z, inverse.m @ evaluator.Z, np.empty_like(evaluator.Z)
    for code, f in rows_by_task(task):
        step = np.linalg.solve(inverse.M[np.ix_(f, f)], A[f])
        rest = A - inverse.M[:, f] @ step
        rest[f] = 0
        common = _unseen_task(coupling_matrix, code)[task].astype(G.dtype)
        F[f] = (G[f] * common) @ (root[:, None] * rest) + b - inverse.m[f] @ step
    return F


def _unseen_task(coupling_matrix: CouplingMatrix, code: int) -> Array:
    """Mean coupling of the tasks other than this one to each task, as for an unseen task; 0 for the task itself."""
    T = len(coupling_matrix.own)
    if coupling_matrix.B is None or T <= 2:
        return coupling_matrix.unseen_task
    unseen_task = (coupling_matrix.B.sum(axis=0) - np.diagonal(coupling_matrix.B) - coupling_matrix.B[code]) / (T - 2)
    unseen_task[code] = 0
    return unseen_task
