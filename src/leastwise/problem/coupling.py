"""Coupling of tasks: the task matrix B, and conversions from the papers' parameters.

All multi-task models are one ridge problem with the Gram matrix ``G_ij B[t_i, t_j]``. ``sharing``, between 0 and 1,
is the share of the model that is common to all tasks: at 0 the tasks are independent, at 1 they are pooled.

``Shared``
    The multi-task LSPC, with a shared and a task-specific part::

        B = sharing S + (1 - sharing) diag(1 / penalty),

    S = 1 in the paper. ``penalty`` is the relative ridge of each task-specific part (omega_t in section 3 of the
    multi-label paper); S, if it is not 1, is the similarity of the tasks.
``Pairwise``
    Section 4 of the multi-label paper: differences between the models of similar tasks are penalised::

        C = (1 - sharing) diag(penalty) + sharing (diag(S 1) - S),     B = C^-1 / mean(diag(C^-1)).

    If all tasks are equally similar, this is equivalent to ``Shared``. At sharing = 1 the limit is taken: tasks
    connected by similarities are pooled.

**Task intercepts** are represented by centring. Let task t have, in addition to its function, an intercept with a
prior variance of ``ratio`` times the noise variance. With the ridge rho, the matrix of all rows is ``H = G + rho (I +
ratio V V')``, where column t of V holds the square roots of the weights in the rows of task t, and zeros elsewhere.
With ``u_t`` that column normalised to length 1 and ``m_t`` its squared length, the weight of the task,

    (I + ratio V V')^-1/2 = W = I - sum_t kappa_t u_t u_t',     (1 - kappa_t)^2 = 1 / (1 + ratio m_t),

    H^-1 = W (W G W + rho I)^-1 W.

So task intercepts are equivalent to a partial centring of rows and targets within each task: none at ratio 0, full
centring at ratio infinity (kappa = 1), where the intercepts are unpenalised, as in the multi-task LS-SVM, eq. (24)
of Xu et al. W depends neither on rho nor on G. One decomposition of W G W serves all ridges.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from leastwise.utils.arrays import get_namespace, is_numpy, numbers_like, to_namespace

Array = np.ndarray

#: Rows coupled at a time.
STEP = 256


@dataclass(frozen=True)
class CouplingMatrix:
    """B at one sharing: ``sharing + own_t [t = t']``, or a general matrix.

    Attributes
    ----------
    sharing : float
    own : ndarray of shape (T,)
        Task-specific part of the diagonal.
    B : ndarray of shape (T, T), optional
        The matrix, if it is not of that form.
    """

    sharing: float
    own: Array
    B: Array | None = None

    @property
    def matrix(self) -> Array:
        """B, of shape (T, T)."""
        return self.sharing + np.diag(self.own) if self.B is None else self.B

    @cached_property
    def extended(self) -> Array:
        """B with an additional last row for an unseen task."""
        return np.vstack([self.matrix, self.unseen_task])

    @cached_property
    def unseen_task(self) -> Array:
        """Coupling of an unseen task to each task: the mean coupling of the other tasks."""
        if self.B is None or len(self.B) == 1:
            return np.full(len(self.own), self.sharing)
        return (self.B.sum(axis=0) - np.diagonal(self.B)) / (len(self.B) - 1)

    @cached_property
    def components(self) -> Array:
        """Connected components of the tasks: tasks with different labels are not coupled."""
        T = len(self.own)
        if self.B is None:
            return np.arange(T) if self.sharing == 0 else np.zeros(T, dtype=int)
        return connected_components(self.B != 0, directed=False)[1]

    def isolated(self, task: Array, fold: Array) -> Array:
        """Mask of rows that are held out together with all rows coupled to them."""
        part = self.components[task]
        cells = np.unique(part * (int(fold.max()) + 1) + fold, return_inverse=True)[1]
        return np.bincount(cells)[cells] == np.bincount(part)[part]

    @property
    def pooled(self) -> bool:
        """True if all tasks share one model."""
        return self.B is None and self.sharing == 1 and not self.own.any()

    def couple(self, G: Array, t: Array, u: Array) -> Array:
        """``G_ij B[t_i, u_j]``, in place for numpy; -1 in t is an unseen task."""
        if self.pooled:
            return G
        if not is_numpy(G):
            return G * self._between_there(t, u, G)
        for a in range(0, len(t), STEP):
            G[a : a + STEP] *= self.between(t[a : a + STEP], u).astype(G.dtype, copy=False)
        return G

    def _between_there(self, t: Array, u: Array, G: Any) -> Any:
        """``B[t_i, u_j]`` in the array library of G."""
        xp, rows, columns = get_namespace(G), numbers_like(t % (len(self.own) + 1), G), numbers_like(u, G)
        if self.B is not None:
            return xp.take(xp.take(to_namespace(self.extended, G), rows, axis=0), columns, axis=1)
        alone, together = to_namespace(np.full(len(u), self.sharing), G), to_namespace(self.sharing + self.own[u], G)
        return xp.where(rows[:, None] == columns[None, :], together[None, :], alone[None, :])

    def between(self, t: Array, u: Array) -> Array:
        """``B[t_i, u_j]``."""
        if self.B is not None:
            return self.extended[t[:, None], u]
        return np.where(t[:, None] == u, self.sharing + self.own[u], self.sharing)


@dataclass(frozen=True)
class Shared:
    """``B = sharing S + (1 - sharing) diag(1 / penalty)``; S = 1 if ``similarity`` is None."""

    penalty: Array
    similarity: Array | None = None

    def at(self, sharing: float) -> CouplingMatrix:
        """B at one sharing."""
        own = (1 - sharing) / self.penalty
        B = None if self.similarity is None else sharing * self.similarity + np.diag(own)
        return CouplingMatrix(sharing, own, B)

    def take(self, tasks: Array) -> Shared:
        """The coupling of a subset of the tasks."""
        S = self.similarity
        return Shared(self.penalty[tasks], None if S is None else S[np.ix_(tasks, tasks)])


@dataclass(frozen=True)
class Pairwise:
    """``B = C^-1 / mean(diag(C^-1))`` with ``C = (1 - sharing) diag(penalty) + sharing laplacian(similarity)``."""

    penalty: Array
    similarity: Array

    @cached_property
    def _modes(self) -> tuple[Array, Array]:
        """Eigenvalues of the scaled Laplacian, and its eigenvectors divided by the square roots of the penalties."""
        root = 1 / np.sqrt(self.penalty)
        m, V = np.linalg.eigh(root[:, None] * laplacian(self.similarity) * root)
        m[m < 1e-10 * max(float(m[-1]), 1.0)] = 0  # one for every connected component
        return m, root[:, None] * V

    @cached_property
    def _disconnected(self) -> Array:
        """Mask of pairs of tasks in different connected components."""
        part = connected_components(self.similarity > 0, directed=False)[1]
        return part[:, None] != part

    def at(self, sharing: float) -> CouplingMatrix:
        """B at one sharing."""
        if sharing == 0:
            B = np.diag(1 / self.penalty)
            return CouplingMatrix(sharing, np.ones(len(B)), B / np.diagonal(B).mean())
        m, V = self._modes
        shrink = np.where(m == 0, 1.0, (1 - sharing) / np.where(m == 0, 1.0, 1 - sharing + sharing * m))
        B = (V * shrink) @ V.T
        B[self._disconnected] = 0  # exactly zero, without rounding error
        return CouplingMatrix(sharing, np.full(len(B), 1 - sharing), B / np.diagonal(B).mean())

    def take(self, tasks: Array) -> Pairwise:
        """The coupling of a subset of the tasks."""
        return Pairwise(self.penalty[tasks], self.similarity[np.ix_(tasks, tasks)])


Coupling = Shared | Pairwise


def laplacian(S: Array) -> Array:
    """``diag(S 1) - S``, independent of the diagonal of S."""
    off = S - np.diag(np.diagonal(S))
    return np.diag(off.sum(axis=1)) - off


# ------------------------------------------------------- the papers' parameters


def from_lambda_gamma(lambda_: float, gamma_: float, n_tasks: int) -> dict[str, float]:
    """``alpha`` and ``sharing`` from lambda and gamma of the multi-task LSPC, eq. (4).

    lambda = inf is the independent model, gamma = inf the pooled one.

    Examples
    --------
    >>> from leastwise.problem.coupling import from_lambda_gamma
    >>> from_lambda_gamma(0.1, 1.0, 10)
    {'alpha': 0.05, 'sharing': 0.5}
    """
    for name, value in (("lambda", lambda_), ("gamma", gamma_)):
        if not value > 0:
            raise ValueError(f"{name}={value!r} must be above 0 (inf is allowed); at 0 there is no ridge at all.")
    common, own = 1 / lambda_, n_tasks / gamma_
    if common + own == 0:
        raise ValueError("lambda and gamma cannot both be infinite: that model is zero everywhere.")
    return {"alpha": 1 / (common + own), "sharing": common / (common + own)}


def to_lambda_gamma(alpha: float, sharing: float, n_tasks: int) -> tuple[float, float]:
    """Lambda and gamma of the multi-task LSPC, eq. (4), from ``alpha`` and ``sharing``."""
    lambda_ = alpha / sharing if sharing > 0 else np.inf
    gamma_ = n_tasks * alpha / (1 - sharing) if sharing < 1 else np.inf
    return lambda_, gamma_


def from_gamma_lambda(gamma_: float, lambda_: float, n: int, n_tasks: int) -> dict[str, float]:
    """``alpha`` and ``sharing`` from gamma and lambda of the multi-task LS-SVM, eq. (14) and (20); n rows.

    lambda = inf is the pooled model. ``sharing=0`` is the limit of lambda = 0 with gamma lambda fixed.

    Examples
    --------
    >>> from leastwise.problem.coupling import from_gamma_lambda
    >>> from_gamma_lambda(1.0, 10.0, 100, 10)
    {'alpha': 0.005, 'sharing': 0.5}
    """
    for name, value in (("gamma", gamma_), ("lambda", lambda_)):
        if not value > 0 or (name == "gamma" and np.isinf(value)):
            raise ValueError(f"{name}={value!r} must be above 0 (lambda may be inf).")
    scale = 1 + n_tasks / lambda_
    return {"alpha": 1 / (n * gamma_ * scale), "sharing": 1 / scale}


def to_gamma_lambda(alpha: float, sharing: float, n: int, n_tasks: int) -> tuple[float, float]:
    """Gamma and lambda of the multi-task LS-SVM from ``alpha`` and ``sharing`` above 0."""
    if not 0 < sharing <= 1:
        raise ValueError(f"sharing={sharing!r}: independent tasks have no lambda; it must be above 0.")
    lambda_ = n_tasks * sharing / (1 - sharing) if sharing < 1 else np.inf
    return sharing / (n * alpha), lambda_


def from_omegas(omega_0: float, omegas: Array, n: int) -> dict:
    """``alpha``, ``sharing`` and ``task_penalty`` from the omegas of section 3 of the multi-label paper; n rows."""
    omegas = np.asarray(omegas, dtype=float)
    if not (omega_0 > 0 and (omegas > 0).all()):
        raise ValueError("omega_0 and all omegas must be above 0.")
    middle = 1 / np.mean(1 / omegas)
    total = 1 / omega_0 + 1 / middle
    return {"alpha": 1 / (n * total), "sharing": 1 / omega_0 / total, "task_penalty": omegas / middle}


def from_pairwise(lambdas: Array, gammas: Array, n: int) -> dict:
    """``alpha``, ``sharing``, ``similarity`` and ``task_penalty`` from section 4 of the multi-label paper; n rows.

    Parameters
    ----------
    lambdas : array of shape (T,)
        Ridges of the tasks, lambda_t.
    gammas : array of shape (T, T)
        Similarities, gamma_tt'.
    """
    lambdas, gammas = np.asarray(lambdas, dtype=float), np.asarray(gammas, dtype=float)
    off = gammas - np.diag(np.diagonal(gammas))
    top, middle = float(off.max(initial=0)), float(lambdas.mean())
    scale = top + middle
    S = off / (top or 1.0) + np.eye(len(off))
    sharing, penalty = top / scale, lambdas / middle
    C = (1 - sharing) * np.diag(penalty) + sharing * laplacian(S)
    height = float(np.diagonal(np.linalg.inv(C)).mean())
    return {"alpha": scale / (n * height), "sharing": sharing, "similarity": S, "task_penalty": penalty}


# -------------------------------------------------------------- task intercepts


@dataclass(frozen=True, eq=False)
class Centring:
    """W for rows of some tasks.

    Attributes
    ----------
    task : ndarray of int of shape (n,)
    u : ndarray of shape (n,)
        Square roots of the weights, normalised to length 1 in every task.
    kappa : ndarray of shape (T,)
        Degree of centring of each task, from 0 (none) to 1 (full).
    """

    task: Array
    u: Array
    kappa: Array

    @classmethod
    def of(cls, task: Array, root: Array, intercept_ratio: float, n_tasks: int | None = None) -> Centring:
        """Centring for this prior variance; ``root`` are the square roots of the weights."""
        mass = np.bincount(task, weights=root.astype(float) ** 2, minlength=n_tasks or 0)
        length = np.sqrt(np.where(mass > 0, mass, 1))
        return cls(
            task, (root / length[task]).astype(root.dtype), centred_share(intercept_ratio, mass).astype(root.dtype)
        )

    def part(self, rows: Array, tasks: slice) -> Centring:
        """Centring of all rows of consecutive tasks."""
        return Centring(self.task[rows] - (tasks.start or 0), self.u[rows], self.kappa[tasks])

    def rows(self, A: Array) -> Array:
        """``W A``."""
        step = self.u * self.kappa[self.task]
        return A - (step[:, None] * self.sums(A)[self.task]).astype(A.dtype, copy=False)

    def gram(self, G: Array) -> Array:
        """``W G W`` for a symmetric G."""
        half = self.rows(G)
        return self.rows(np.ascontiguousarray(half.T))

    def square(self, i: Array) -> Array:
        """``W^2`` restricted to the rows i."""
        u, task, kappa = self.u[i], self.task[i], self.kappa[self.task[i]]
        same = task[:, None] == task
        return np.eye(len(i), dtype=u.dtype) - same * np.outer(u * kappa * (2 - kappa), u)

    def sums(self, A: Array) -> Array:
        """``u_t' A`` for all tasks, (T x columns)."""
        return (self._columns if A.dtype == self.u.dtype else self._columns.astype(A.dtype)) @ A

    @cached_property
    def _columns(self) -> Any:
        """The vectors u of all tasks, (T x n), sparse."""
        n = len(self.task)
        return sparse.csr_matrix((self.u, (self.task, np.arange(n))), shape=(len(self.kappa), n))


def centred_share(intercept_ratio: float, mass: Array) -> Array:
    """``kappa_t`` for tasks of total weight ``mass``."""
    with np.errstate(divide="ignore"):
        left = 1 / (1 + intercept_ratio * mass) if np.isfinite(intercept_ratio) else (mass == 0).astype(float)
    return 1 - np.sqrt(left)


def shrunk_means(R: Array, root: Array, task: Array, intercept_ratio: float, n_tasks: int) -> Array:
    """Task intercepts from residuals R of weighted rows: ``v'R / (m_t + 1/intercept_ratio)``, (T x outputs)."""
    mass = np.bincount(task, weights=root.astype(float) ** 2, minlength=n_tasks)
    sums = np.column_stack([np.bincount(task, weights=root * r, minlength=n_tasks) for r in R.T])
    with np.errstate(divide="ignore"):
        more = np.inf if intercept_ratio == 0 else 1 / intercept_ratio
    return sums / np.where(mass + more > 0, mass + more, 1)[:, None]
