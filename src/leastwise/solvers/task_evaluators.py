r"""Evaluators of coupled tasks in the dual: the kernel between rows is multiplied by that between their tasks.

``CoupledEvaluator`` uses the formulas of one task with the Gram matrix ``G_ij B[t_i, t_j]``. ``OwnBasisHeldout`` is
for the penalty on the coefficients, if deleting a row also deletes its basis function. Every task then has a
coefficient for every basis function, coupled to those of the other tasks. The design that belongs to the Gram matrix
``(K K') o B`` is, for the basis function of row i, the block

    Psi_i = diag(k_i) S L,        B = L L',   S = the tasks of the rows, one-hot,

with rank(B) columns. Leaving out row i deletes its residual and all coefficients of that block from the augmented
system (H) of ``leastwise.solvers``. The blocks of the inverse, with M = (Psi Psi' + rho)^-1, are

    P = rho M,     T = M Psi,     D = -(I - Psi' M Psi) / rho.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from leastwise.linalg.decompositions import Spectrum, gram_spectrum
from leastwise.linalg.moments import Whitening, whitening
from leastwise.problem.basis import Basis, Design
from leastwise.problem.coupling import Centring, Coupling, CouplingMatrix
from leastwise.solvers.evaluator import Candidate, Evaluator, Rows, Settings
from leastwise.solvers.heldout import HeldOut, Inverse, Problem, delete_block
from leastwise.solvers.newton import RefitEvaluator, RefitOptions
from leastwise.solvers.work import ARRAYS

Array = np.ndarray

#: Array entries held at a time for the blocks of a batch of rows.
ROOM = 2**23


@dataclass
class OwnBasisHeldout:
    """Held-out scores for any alpha, from one spectrum of the coupled Gram matrix, and one per large fold.

    Parameters
    ----------
    problem : Problem
    K : ndarray of shape (n, n)
        Kernel matrix of the rows, with columns multiplied by the square roots of the basis functions' weights.
    coupling_matrix : CouplingMatrix
    task : ndarray of int of shape (n,)
    """

    problem: Problem
    K: Array
    coupling_matrix: CouplingMatrix
    task: Array
    _cache: dict = field(default_factory=dict, repr=False)

    def at(self, alpha: float) -> HeldOut:
        """Held-out scores at this alpha."""
        problem, folds = self.problem, self.problem.folds
        F = np.zeros_like(problem.Z)
        for rows in self._batches():
            rho = alpha * (len(F) - problem.single_weights(rows))
            for r in np.unique(rho):
                some = rows[rho == r]
                F[some] = problem.Z[some] - self._delete_rows(some, r)
        for rows in folds.blocks:
            if self._large(len(rows)):
                F[rows] = self._refit(rows, alpha)
            else:
                F[rows] = problem.Z[rows] - delete_block(self._block(rows, problem.ridge(alpha, rows)), problem.bias)
        return HeldOut(F / problem.root[:, None])

    # ---------------------------------------------------------------- pieces

    @property
    def _spectrum(self) -> Spectrum:
        if "spectrum" not in self._cache:
            root = self.problem.root
            H = self.coupling_matrix.couple(self.K @ self.K.T, self.task, self.task)
            self._cache["spectrum"] = gram_spectrum(H * root[:, None] * root)
        return self._cache["spectrum"]

    @property
    def _projected(self) -> Array:
        """U'[Z, v]."""
        if "UB" not in self._cache:
            self._cache["UB"] = self._spectrum.U.T @ self.problem.targets
        return self._cache["UB"]

    @property
    def _factor(self) -> Array:
        """L with B = L L', without zero columns."""
        if "L" not in self._cache:
            b, V = np.linalg.eigh(self.coupling_matrix.matrix)
            kept = b > len(b) * np.finfo(b.dtype).eps * b[-1]
            self._cache["L"] = (V[:, kept] * np.sqrt(b[kept])).astype(self.K.dtype)
        return self._cache["L"]

    def _batches(self) -> list[Array]:
        singles = self.problem.folds.singles
        step = max(1, ROOM // (len(self.K) * max(len(self.coupling_matrix.own), 1)))
        return [singles[a : a + step] for a in range(0, len(singles), step)]

    def _projections(self, rows: Array) -> Array:
        """``Psi_i' U`` for the basis functions of some rows, of shape (rows, rank of B, n)."""
        U, root, L = self._spectrum.U, self.problem.root, self._factor
        Y = np.zeros((len(rows), len(L), U.shape[1]), dtype=self.K.dtype)
        for t in np.unique(self.task):
            mine = np.flatnonzero(self.task == t)
            Y[:, t] = (self.K[np.ix_(mine, rows)] * root[mine, None]).T @ U[mine]
        return np.matmul(L.T, Y)

    # --------------------------------------------------------------- deletion

    def _delete_rows(self, rows: Array, rho: float) -> Array:
        """The row part of (B_EE)^-1 (B z)_E for rows left out one at a time, all with the same ridge."""
        Y, U, UB = self._projections(rows), self._spectrum.U[rows], self._projected
        e = (1 / (self._spectrum.g + rho)).astype(Y.dtype)
        eY = Y * e
        d = (np.matmul(eY, Y.transpose(0, 2, 1)) - np.eye(Y.shape[1], dtype=Y.dtype)) / rho
        t = np.matmul(eY, U[:, :, None])  # (rows, rank, 1)
        TB, PB = np.matmul(eY, UB), rho * (U * e) @ UB
        p = rho * np.einsum("ik,ik,k->i", U, U, e)
        if self.problem.bias:
            v = self._projected[:, -1]
            vMB = (v * e) @ UB
            Pv, Tv = PB[:, -1:], TB[:, :, -1:]
            p = p - Pv[:, 0] ** 2 / (rho * vMB[-1])
            t = t - Tv * Pv[:, None] / (rho * vMB[-1])
            d = d - np.matmul(Tv, Tv.transpose(0, 2, 1)) / (rho * vMB[-1])
            TB = TB - Tv * vMB / vMB[-1]
            PB = PB - Pv * vMB / vMB[-1]
        count = self.problem.counts(rows)
        if count is not None:  # one of several equal observations: see ``heldout.delete_one``
            m = count[:, None, None]
            p, t = p / count + (1 - 1 / count), t / m
            d = d / m - (1 - 1 / m) / rho * np.eye(d.shape[1], dtype=d.dtype)
        solved = np.linalg.solve(d, np.concatenate([t, TB[:, :, :-1]], axis=2))
        across = np.matmul(t.transpose(0, 2, 1), solved)[:, 0]  # t'd^-1 [t, Tz]
        return (PB[:, :-1] - across[:, 1:]) / (p - across[:, 0])[:, None]

    def _block(self, rows: Array, rho: float) -> Inverse:
        """Inverse blocks for rows left out together."""
        Y = self._projections(rows)
        Y, U, UB = Y.reshape(-1, Y.shape[2]), self._spectrum.U[rows], self._projected
        e = (1 / (self._spectrum.g + rho)).astype(Y.dtype)
        eY = Y * e
        d = (eY @ Y.T - np.eye(len(Y), dtype=Y.dtype)) / rho
        vPB = rho * (UB[:, -1] * e) @ UB
        return Inverse(rho * (U * e) @ U.T, rho * (U * e) @ UB, vPB, (eY @ U.T).T, d, eY @ UB)

    # ----------------------------------------------------------------- refits

    def _large(self, m: int) -> bool:
        """True if decomposing the other rows is cheaper than the block system of m rows."""
        n, size = len(self.K), m * self._factor.shape[1]
        return 12 * (n - m) ** 3 < 2 * size**2 * n + size**3

    def _refit(self, rows: Array, alpha: float) -> Array:
        """Scores of some rows from a refit to the others, multiplied by the square roots of their weights."""
        stay = np.setdiff1d(np.arange(len(self.K)), rows)
        root, key = self.problem.root, int(rows[0])
        Phi = self.K[np.ix_(stay, stay)]
        if key not in self._cache:
            H = self.coupling_matrix.couple(Phi @ Phi.T, self.task[stay], self.task[stay])
            self._cache[key] = gram_spectrum(H * root[stay][:, None] * root[stay])
        bias = root[stay] if self.problem.bias else None
        A, b = self._cache[key].coefficients(self.problem.ridge(alpha, rows), self.problem.Z[stay], bias)
        across = self.coupling_matrix.couple(self.K[np.ix_(rows, stay)] @ Phi.T, self.task[rows], self.task[stay])
        return root[rows, None] * (across @ (root[stay, None] * A) + b)


class TaskEvaluator(Evaluator):
    """Evaluator of coupled tasks at one sharing and one prior variance of task intercepts (``intercept_ratio``)."""

    coupling: Coupling
    coupling_matrix: CouplingMatrix
    intercept_ratio: float = 0.0
    #: Candidate intercept variances; empty if tasks have no intercepts of their own.
    intercept_ratios: tuple[float, ...] = ()

    @property
    def bias(self) -> bool:
        """True if there is a shared intercept; it is redundant if every task has an unpenalised one."""
        return self.settings.bias and np.isfinite(self.intercept_ratio)

    def centring(self) -> Centring | None:
        """Centring that represents task intercepts; None if there are none."""
        if self.intercept_ratio == 0:
            return None
        assert self.rows.task is not None
        root = np.sqrt(self.rows.w).astype(self.rows.X.dtype)
        return Centring.of(self.rows.task, root, self.unit_intercept_ratio, len(self.coupling_matrix.own))

    @property
    def unit_intercept_ratio(self) -> float:
        """The ratio for a row of mean weight; ``intercept_ratio`` itself is for a row of weight 1."""
        return self.intercept_ratio * self.rows.mass

    def description(self) -> str:
        """Hyperparameters other than sigma and alpha, for progress reports."""
        intercept_ratio = f", intercept ratio {self.intercept_ratio:.3g}" if self.intercept_ratios else ""
        return f", sharing {self.coupling_matrix.sharing:.3g}{intercept_ratio}{super().description()}"

    def identity(self, sigma: float) -> tuple:
        """Everything that held-out scores at this sigma depend on, except sigma and alpha."""
        return *super().identity(sigma), self.coupling_matrix, self.intercept_ratio

    def with_intercept_ratio(self, intercept_ratio: float) -> Self:
        """Copy with this prior variance of task intercepts."""
        other = copy.copy(self)
        other.intercept_ratio = intercept_ratio
        return other

    def with_options_of(self, other: Any) -> Any:
        """Copy with the options that a search ended on with another evaluator."""
        return super().with_options_of(other).with_intercept_ratio(other.intercept_ratio)

    def with_sharing(self, sharing: float | None) -> Self:
        """Copy with this sharing; the cache of the last sigma is used by all sharings."""
        if sharing is None:
            return self
        other = copy.copy(self)
        other.coupling_matrix = self.coupling.at(sharing)
        return other

    @property
    def isolated(self) -> Array | None:
        """Mask of rows whose task is coupled to no training row when they are held out."""
        assert self.rows.task is not None
        if self.intercept_ratio != 0:
            return None
        isolated = self.coupling_matrix.isolated(self.rows.task, self.rows.fold)
        split = self.rows.split_count  # the other observations of the row remain
        return isolated if split is None else isolated & (split <= 1)

    def objective(self, sigma: float, alpha: float, held: HeldOut, last: Candidate | None) -> Candidate:
        """Calibrate held-out scores and score the result."""
        outcome = super().objective(sigma, alpha, held, last)
        outcome.sharing, outcome.intercept_ratio = self.coupling_matrix.sharing, self.intercept_ratio
        return outcome


#: Up to this number of rows times tasks, holding out a row also deletes its basis function in every task.
OWN_LIMIT = 100_000


class CoupledEvaluator(TaskEvaluator):
    """Held-out scores of many tasks in the dual: ``H_ij = G_ij B[t_i, t_j]``, n x n whatever the number of tasks.

    G is the kernel matrix if the penalty is on the function and every row is a centre, otherwise the Gram matrix of
    the features. If there are fewer centres than rows, the centres are fixed: they stay when a row is held out.
    """

    sharing_costs = True

    def __init__(self, rows: Rows, basis: Basis, settings: Settings, coupling: Coupling) -> None:
        super().__init__(rows, basis, settings)
        assert rows.task is not None
        self.task, self.coupling = rows.task, coupling
        self.coupling_matrix: CouplingMatrix = coupling.at(1.0)
        self._cached: dict[float, Array] = {}

    def for_worker(self) -> Self:
        """Copy for a parallel worker, with an empty cache."""
        other = super().for_worker()
        other._cached = {}
        return other

    @property
    def room(self) -> int:
        """Peak memory of a search step in bytes: the Gram matrix is n x n however few the centres."""
        return ARRAYS[self.settings.norm] * len(self.rows) ** 2 * self.rows.X.dtype.itemsize

    def with_linear_weight(self, weight: float) -> Self:
        """Copy with this weight of the linear part of a sum of kernels."""
        other = super().with_linear_weight(weight)
        other._cached = {}
        return other

    def with_coupling(self, coupling: Coupling) -> CoupledEvaluator:
        """Copy with another coupling of the tasks."""
        other = copy.copy(self)
        other.coupling, other.coupling_matrix = coupling, coupling.at(1.0)
        return other

    # ------------------------------------------------------------------ gram

    @property
    def plain(self) -> bool:
        """True if the kernel matrix is the Gram matrix."""
        return self.basis.square and self.settings.norm == "function"

    def features(self, sigma: float) -> Array:
        """Features Phi with ``G = Phi Phi'``."""
        if self.settings.norm == "coefficients":
            K = Evaluator.kernel(self, sigma)
            return K * self.root if self.basis.weighted else K
        return self.whitened(sigma, self.coordinates(sigma))

    def coordinates(self, sigma: float) -> Whitening:
        """Whitening of the centres, for the penalty on the function."""
        return whitening(self.center_kernel(sigma))

    def gram(self, sigma: float) -> Array:
        """G before coupling; do not modify it."""
        if sigma not in self._cached:
            self._cached.clear()
            if self.plain:
                G = Evaluator.kernel(self, sigma)
            else:
                Phi = self.features(sigma)
                G = Phi @ Phi.T
            self._cached[sigma] = G
        return self._cached[sigma]

    def kernel(self, sigma: float) -> Array:
        """Coupled kernel ``G_ij B[t_i, t_j]``."""
        return self.coupling_matrix.couple(self.gram(sigma).copy(), self.task, self.task)

    def designs(self, sigma: float, deletes: bool = True) -> list[Design]:
        """One design for all outputs, centred if tasks have intercepts."""
        K, centring = self.kernel(sigma), self.centring()
        if centring is None:
            return [Design(K, None, self.root, None, square=True, function=True)]
        G = centring.gram(K if self.rows.equal_weights else K * self.root * self.root[:, None])
        return [Design(G, None, np.ones_like(self.root), None, square=True, function=True)]

    # --------------------------------------------------------------- held out

    def heldout(self, sigma: float, count: int) -> Callable[[float], HeldOut]:
        """A function from alpha to held-out scores at this sigma; about ``count`` alphas will be evaluated."""
        split = self.rows.split_count
        problem = Problem(self.Z, self.root, self.bias, None, self.folds, self.centring(), split)
        if self.basis.square and not self.plain and len(self.rows) * len(self.coupling_matrix.own) <= OWN_LIMIT:
            part = OwnBasisHeldout(problem, self.features(sigma), self.coupling_matrix, self.task)
            return lambda alpha: part.at(alpha / self.unit)
        gram = self._part(problem, self.designs(sigma)[0], count)
        return lambda alpha: gram.at(alpha / self.unit)


class CoupledRefitEvaluator(CoupledEvaluator, RefitEvaluator):
    """Kernel logistic regression of coupled tasks: refits with the coupled kernel."""

    def __init__(
        self, rows: Rows, basis: Basis, settings: Settings, coupling: Coupling, solver_options: RefitOptions
    ) -> None:
        RefitEvaluator.__init__(self, rows, basis, settings, solver_options)
        assert rows.task is not None
        self.task, self.coupling, self.coupling_matrix = rows.task, coupling, coupling.at(1.0)
        self._cached = {}
        self._pasts: dict[float, tuple[dict, set]] = {}

    def for_worker(self) -> Self:
        """Copy for a parallel worker, with an empty cache."""
        other = super().for_worker()
        other._pasts = {}
        return other

    def with_sharing(self, sharing: float | None) -> Self:
        """Copy with this sharing and its own past solutions for warm starts."""
        other = super().with_sharing(sharing)
        if sharing is not None:
            other.past, other.unconverged = self._pasts.setdefault(sharing, ({}, set()))
        return other

    heldout = RefitEvaluator.heldout

    @property
    def penalised(self) -> bool:
        """Always False: every row is a centre."""
        return False

    def objective(self, sigma: float, alpha: float, held: HeldOut, last: Candidate | None) -> Candidate:
        """Score held-out predictions."""
        outcome = RefitEvaluator.objective(self, sigma, alpha, held, last)
        outcome.sharing = self.coupling_matrix.sharing
        return outcome

    def _removed_centers(self, out: Array) -> Array | None:
        return None
