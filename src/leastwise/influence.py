r"""Which training rows a prediction comes from.

Scores are linear in the targets, ``F(x) = sum_i s_i(x) z_i``, with the weights of the intercepts in s. So row i
*contributes* ``s_i(x) z_i``, and all contributions sum to the score. Without the row, at the same ridge on the sum of
the losses, the model says::

    F_-i(x) = F(x) - s_i(x) r_i,      r_i = z_i - F_-i(x_i),

so the *effect* of the row is ``s_i(x) r_i``: what it taught beyond what the others say of it anyway. A row that all
others agree with may contribute much, and have next to no effect. Both are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leastwise.centring import Centring, shrunk_means
from leastwise.heldout.task_deletion import Bordered, bordered_inverse

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Learned:
    """What the training rows had to say, as far as coefficients do not tell it.

    Attributes
    ----------
    index : ndarray of int of shape (n,)
        Where the rows that count stood among all.
    Z : ndarray of shape (n, c)
        Their targets.
    w : ndarray of shape (n,)
        Their weights, of mean 1.
    ridge : float
        On the sum of the losses.
    bias : bool
        Whether there is an intercept that all rows share.
    spread : float
        Prior variance of intercepts of the tasks' own, in units of the noise; 0 where there are none.
    """

    index: Array
    Z: Array
    w: Array
    ridge: float
    bias: bool
    spread: float = 0.0


@dataclass(frozen=True, eq=False)
class Smoother:
    """The weights of the targets in all predictions, from the inverse of the system of all rows.

    ``K`` is the kernel of the training rows, of rows and tasks together where there are tasks.
    """

    learned: Learned
    K: Array
    task: Array | None = None
    n_tasks: int = 0

    @cached_property
    def root(self) -> Array:
        """Roots of the weights."""
        return np.sqrt(self.learned.w.astype(float))

    @cached_property
    def inverse(self) -> Bordered:
        """That of the system."""
        known, centring = self.learned, None
        if self.task is not None and known.spread > 0:
            centring = Centring.of(self.task, self.root, known.spread, self.n_tasks)
        H = self.K * self.root[:, None] * self.root
        return bordered_inverse(H, known.ridge, self.root, known.bias, centring)

    @cached_property
    def own(self) -> Array | None:
        """Weights of the targets in what each task adds to the intercept, (T + 1, n); last for one not known."""
        known, M = self.learned, self.inverse.M
        if self.task is None or known.spread == 0:
            return None
        H = self.K * self.root[:, None] * self.root
        left = np.eye(len(M)) - H @ M - np.outer(self.root, self.inverse.m)
        own = shrunk_means(left, self.root, self.task, known.spread, self.n_tasks)
        # Where all intercepts are free, their mean is that of a task that is not known.
        return np.vstack([own, np.zeros(len(M)) if known.bias else own.mean(axis=0)])

    @cached_property
    def left(self) -> Array:
        """What is left of the target of each row by the model without it, (n, c); NaN where that says nothing."""
        M, root = self.inverse.M, self.root[:, None]
        diagonal = np.diagonal(M)[:, None]
        alone = diagonal * self.learned.ridge < 1e-12  # the only row of a task with a free intercept
        R = M @ (root * self.learned.Z)
        return np.where(alone, np.nan, R / np.where(alone, 1, diagonal)) / root

    def weights(self, K: Array, task: Array | None) -> Array:
        """``s(x)`` (m x n) for rows of these tasks, from their kernel with the training rows (m x n)."""
        S = (K * self.root) @ self.inverse.M + self.inverse.m
        if self.own is not None:
            S += self.own[task]
        return S * self.root


@dataclass(frozen=True)
class Parts:
    """Scores taken apart, for m rows.

    Attributes
    ----------
    place : ndarray of int of shape (m, k)
        The training rows of the largest effects, among those that count.
    contribution, effect : ndarray of shape (m, k, c)
    score : ndarray of shape (m, c)
    by_task : ndarray of shape (m, T, c) or None
        Contributions of all rows of each task.
    """

    place: Array
    contribution: Array
    effect: Array
    score: Array
    by_task: Array | None


def take_apart(smoother: Smoother, S: Array, unit: Array, offset: Array, top: int) -> Parts:
    """Contributions and effects of ``top`` training rows for each row of S (m x n), in the unit of the targets."""
    C = S[:, :, None] * (smoother.learned.Z * unit + offset)
    with np.errstate(invalid="ignore"):
        E = S[:, :, None] * (smoother.left * unit)
    nowhere = np.abs(S) <= 1e-12 * np.abs(S).max(axis=1, keepdims=True)
    E = np.where(np.isnan(E) & nowhere[:, :, None], 0, E)  # a lone row of a task that has no say here
    size = np.where(np.isnan(E), np.inf, np.abs(E)).max(axis=2)
    place = np.argsort(-size, axis=1, kind="stable")[:, :top]
    pick = place[:, :, None]
    by_task = None
    if smoother.task is not None:
        member = smoother.task == np.arange(smoother.n_tasks)[:, None]
        by_task = np.einsum("tn,mnc->mtc", member.astype(float), C, optimize=True)
    return Parts(
        place, np.take_along_axis(C, pick, axis=1), np.take_along_axis(E, pick, axis=1), C.sum(axis=1), by_task
    )
