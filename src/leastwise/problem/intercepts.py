r"""Task intercepts, represented by centring.

Let task t have, in addition to its function, an intercept with a prior variance of ``ratio`` times the noise
variance. With the ridge rho, the matrix of all rows is ``H = G + rho (I + ratio V V')``, where column t of V holds
the square roots of the weights in the rows of task t, and zeros elsewhere. With ``u_t`` that column normalised to
length 1 and ``m_t`` its squared length, the weight of the task,

    (I + ratio V V')^-1/2 = W = I - sum_t kappa_t u_t u_t',     (1 - kappa_t)^2 = 1 / (1 + ratio m_t),

    H^-1 = W (W G W + rho I)^-1 W.

So task intercepts are equivalent to a partial centring of rows and targets within each task: none at ratio 0, full
centring at ratio infinity (kappa = 1), where the intercepts are unpenalised, as in the multi-task LS-SVM, eq. (24)
of Xu et al. W depends neither on rho nor on G. One decomposition of W G W serves all ridges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

Array = np.ndarray


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
        n = len(self.task)
        U = sparse.csr_matrix((self.u.astype(A.dtype), (self.task, np.arange(n))), shape=(len(self.kappa), n))
        return U @ A


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
