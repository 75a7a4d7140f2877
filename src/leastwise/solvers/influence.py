r"""Influence of training rows on predictions, and of tasks on each other's held-out errors, from one inverse.

*Tasks.* Removing the rows u of a task from training leaves ``M' = M - M[:, u] (M_uu)^-1 M[u, :]`` on the others,
whose held-out scores are ``Z_f - (M'_ff)^-1 (M'Z)_f`` as before.

*Rows.* Scores are linear in the targets, ``F(x) = sum_i s_i(x) z_i``, where s includes the intercepts. So row i
*contributes* ``s_i(x) z_i``, and all contributions sum to the score. The model without the row, at the same ridge on
the sum of the losses, predicts::

    F_-i(x) = F(x) - s_i(x) r_i,      r_i = z_i - F_-i(x_i),

so the *effect* of the row is ``s_i(x) r_i``, the change of the score by adding the row. A row whose target the other
rows predict well may have a large contribution and almost no effect. Both are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from textwrap import wrap
from typing import Any, ClassVar

import numpy as np

from leastwise.linalg.decompositions import cholesky
from leastwise.problem.coupling import Centring, shrunk_means
from leastwise.solvers.heldout import Folds
from leastwise.utils.text_format import LINE, NAME, shortened

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class BorderedInverse:
    """Inverse of ``[H + rho, v; v', 0]``: M (n x n) for the rows, m (n) for the intercept (zeros without one)."""

    M: Array
    m: Array


def bordered_inverse(
    H: Array, ridge: float, root: Array, bias: bool, centring: Centring | None = None
) -> BorderedInverse:
    """Compute it from one Cholesky factor, with ``centring`` for task intercepts. May overwrite H."""
    H, v = (H, root) if centring is None else (centring.gram(H), centring.rows(root[:, None])[:, 0])
    L = cholesky(H, ridge=ridge, overwrite=True).inverse_factor(overwrite=True)
    M, m = L.T @ L, np.zeros_like(root)
    if bias:
        Mv = M @ v
        m = Mv / (v @ Mv)
        M -= np.outer(Mv, m)
    return (
        BorderedInverse(M, m)
        if centring is None
        else BorderedInverse(centring.gram(M), centring.rows(m[:, None])[:, 0])
    )


@dataclass(frozen=True, eq=False)
class TaskDeletions:
    """Held-out errors of models trained without some tasks; ``M = (H + rho)^-1`` and ``A = M Z``.

    Attributes
    ----------
    M : ndarray of shape (n, n)
    A : ndarray of shape (n, c)
    task : ndarray of int of shape (n,)
    mass : ndarray of shape (T,)
        Total weight of each task.
    folds : Folds
    ridge : float
        rho.
    count : ndarray of shape (n,) or None
        Number of observations per row, of which one is held out at a time; None for one each.
    """

    M: Array
    A: Array
    task: Array
    mass: Array
    folds: Folds
    ridge: float = 1.0
    count: Array | None = None

    def matrix(self) -> Array:
        """Increase of the error of each task (rows of the matrix) when another task (columns) is removed."""
        tasks = range(len(self.mass))
        before = self.errors(np.empty(0, dtype=int))
        return np.column_stack([self.errors(np.flatnonzero(self.task == u)) for u in tasks]) - before[:, None]

    def errors(self, removed: Array) -> Array:
        """Weighted mean squared held-out errors of the tasks without the rows ``removed`` in training."""
        M, A = self.M, self.A
        L = np.linalg.cholesky(M[np.ix_(removed, removed)])
        C, a = np.linalg.solve(L, M[removed]), np.linalg.solve(L, A[removed])  # M' = M - C'C, A' = A - C'a
        R = A - C.T @ a
        one = np.setdiff1d(self.folds.singles, removed)
        left = M[one, one] - np.einsum("ij,ij->j", C, C)[one]
        if self.count is not None:  # see ``heldout.delete_one``
            left = left / self.count[one] + (1 - 1 / self.count[one]) / self.ridge
        R[one] /= left[:, None]
        for f in self._blocks(removed):
            left = M[f[:, :, None], f[:, None, :]] - np.einsum("ikl,ikm->klm", C[:, f], C[:, f])
            R[f] = np.linalg.solve(left, R[f])
        R[removed] = np.linalg.solve(L.T, a)  # held out together: (M_uu)^-1 A_u
        return np.bincount(self.task, np.einsum("ij,ij->i", R, R)) / self.mass

    def _blocks(self, removed: Array) -> list[Array]:
        """Folds without the rows ``removed``, stacked by size into arrays (blocks x rows)."""
        stays = np.ones(len(self.task), dtype=bool)
        stays[removed] = False
        by_size: dict[int, list[Array]] = {}
        for block in self.folds.blocks:
            rest = block[stays[block]]
            by_size.setdefault(len(rest), []).append(rest)
        return [np.array(blocks) for size, blocks in by_size.items() if size]


@dataclass(frozen=True, eq=False)
class TrainingRecord:
    """Training data that influences need besides the coefficients.

    Attributes
    ----------
    index : ndarray of int of shape (n,)
        Positions of the rows with positive weight among all rows.
    Z : ndarray of shape (n, c)
        Targets.
    w : ndarray of shape (n,)
        Weights, of mean 1.
    ridge : float
        Ridge on the sum of the losses.
    bias : bool
        True if there is a shared intercept.
    intercept_ratio : float
        Prior variance of task intercepts relative to the noise; 0 if there are none.
    """

    index: Array
    Z: Array
    w: Array
    ridge: float
    bias: bool
    intercept_ratio: float = 0.0


@dataclass(frozen=True, eq=False)
class Smoother:
    """Smoother matrix: weights of the targets in predictions, from the inverse of the system of all rows.

    ``K`` is the kernel matrix of the training rows, coupled if there are tasks.
    """

    record: TrainingRecord
    K: Array
    task: Array | None = None
    n_tasks: int = 0

    @cached_property
    def root(self) -> Array:
        """Square roots of the weights."""
        return np.sqrt(self.record.w.astype(float))

    @cached_property
    def inverse(self) -> BorderedInverse:
        """Inverse of the system."""
        known, centring = self.record, None
        if self.task is not None and known.intercept_ratio > 0:
            centring = Centring.of(self.task, self.root, known.intercept_ratio, self.n_tasks)
        H = self.K * self.root[:, None] * self.root
        return bordered_inverse(H, known.ridge, self.root, known.bias, centring)

    @cached_property
    def own(self) -> Array | None:
        """Weights of the targets in the intercept offset of each task, (T + 1, n); the last is for an unseen task."""
        known, M = self.record, self.inverse.M
        if self.task is None or known.intercept_ratio == 0:
            return None
        H = self.K * self.root[:, None] * self.root
        left = np.eye(len(M)) - H @ M - np.outer(self.root, self.inverse.m)
        own = shrunk_means(left, self.root, self.task, known.intercept_ratio, self.n_tasks)
        # If all task intercepts are unpenalised, an unseen task gets their mean.
        return np.vstack([own, np.zeros(len(M)) if known.bias else own.mean(axis=0)])

    @cached_property
    def left(self) -> Array:
        """Leave-one-out residuals (n, c); NaN where the model without the row is undefined."""
        M, root = self.inverse.M, self.root[:, None]
        diagonal = np.diagonal(M)[:, None]
        alone = diagonal * self.record.ridge < 1e-12  # the only row of a task with an unpenalised intercept
        R = M @ (root * self.record.Z)
        return np.where(alone, np.nan, R / np.where(alone, 1, diagonal)) / root

    def weights(self, K: Array, task: Array | None) -> Array:
        """``s(x)`` (m x n) for rows with these task codes, from their kernel with the training rows (m x n)."""
        S = (K * self.root) @ self.inverse.M + self.inverse.m
        if self.own is not None:
            S += self.own[task]
        return S * self.root


@dataclass(frozen=True)
class Parts:
    """Contributions and effects behind the scores of m rows.

    Attributes
    ----------
    place : ndarray of int of shape (m, k)
        Training rows with the largest effects, as indices into ``TrainingRecord``.
    contribution, effect : ndarray of shape (m, k, c)
    score : ndarray of shape (m, c)
    by_task : ndarray of shape (m, T, c) or None
        Total contributions of each task.
    """

    place: Array
    contribution: Array
    effect: Array
    score: Array
    by_task: Array | None


def decompose_scores(smoother: Smoother, S: Array, unit: Array, offset: Array, top: int) -> Parts:
    """Contributions and effects of ``top`` training rows for each row of S (m x n), in the unit of the targets."""
    C = S[:, :, None] * (smoother.record.Z * unit + offset)
    with np.errstate(invalid="ignore"):
        E = S[:, :, None] * (smoother.left * unit)
    no_weight = np.abs(S) <= 1e-12 * np.abs(S).max(axis=1, keepdims=True)
    E = np.where(np.isnan(E) & no_weight[:, :, None], 0, E)  # an undefined effect of a row with zero weight here
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


#: Numbers of predictions, and of other tasks per prediction, that are printed.
SHOWN, TASKS = 5, 3
#: Header of the printed text.
HEAD = "row: position of the training row in the data given to fit, from 0 (not the index of a frame)"


@dataclass(frozen=True, eq=False)
class Influence:
    """The training rows behind m predictions, in order of decreasing effect.

    Attributes
    ----------
    rows : ndarray of int of shape (m, k)
        Positions of the training rows in the data given to ``fit``, from 0, regardless of the index of a frame.
    target : ndarray of shape (m, k), or (m, k, n_outputs)
        Their classes, or values.
    contribution : ndarray of shape (m, k, n_outputs)
        Their parts of the scores (of the predictions, for regression). Those of all training rows sum to ``score``.
    effect : ndarray of shape (m, k, n_outputs)
        Score minus that of the model without the row: positive if the row raises it. NaN if the model without the row
        would not know the task.
    score : ndarray of shape (m, n_outputs)
        The explained scores: raw scores of the classes, or predictions.
    outputs : sequence
        The classes, or 0, 1, ... for regression targets.
    by_task : ndarray of shape (m, T, n_outputs) or None
        Total contributions of each task; they sum to ``score``. None if there are no tasks.
    tasks : sequence or None
        Task ids.
    row_task : ndarray of int of shape (m, k) or None
        Tasks of the training rows, as positions in ``tasks``.
    task : ndarray of int of shape (m,) or None
        Tasks of the predictions, as positions in ``tasks``; -1 for unseen tasks.
    """

    rows: Array
    target: Array
    contribution: Array
    effect: Array
    score: Array
    outputs: Sequence[Any]
    by_task: Array | None = None
    tasks: Sequence[Any] | None = None
    row_task: Array | None = None
    task: Array | None = None

    #: Attributes that are the same for all predictions.
    COMMON: ClassVar[tuple[str, ...]] = ("outputs", "tasks")

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Influence:
        """A subset of the predictions."""
        index = np.atleast_1d(np.arange(len(self))[index])
        parts = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in self.COMMON}
        return replace(self, **{name: a[index] for name, a in parts.items() if a is not None})

    @property
    def own(self) -> Array:
        """Contributions of the prediction's own task, (m, n_outputs); zeros for unseen tasks."""
        if self.by_task is None or self.task is None:
            raise ValueError("This model has no tasks, so the score has no task-specific part.")
        own = self.by_task[np.arange(len(self)), self.task]
        return np.where(self.task[:, None] >= 0, own, 0)

    @property
    def others(self) -> Array:
        """Contributions of the other tasks, (m, n_outputs)."""
        return self.score - self.own

    # ------------------------------------------------------------------ shown

    def to_frame(self) -> Any:
        """A pandas data frame with one row per prediction, training row and output."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame() needs pandas: install it with  pip install 'leastwise[frames]'") from None
        m, k, c = self.effect.shape
        target = self.target if self.target.ndim == 3 else np.repeat(self.target[:, :, None], c, axis=2)
        columns: dict[str, Any] = {"prediction": np.repeat(np.arange(m), k * c), "row": np.repeat(self.rows, c)}
        if self.row_task is not None and self.tasks is not None:
            columns["task"] = [self.tasks[t] for t in np.repeat(self.row_task, c)]
        columns |= {"target": target.ravel(), "output": [o for _ in range(m * k) for o in self.outputs]}
        return pd.DataFrame({**columns, "contribution": self.contribution.ravel(), "effect": self.effect.ravel()})

    def __str__(self) -> str:
        lines = [HEAD, *(line for i in range(min(len(self), SHOWN)) for line in self._lines(i))]
        hidden = len(self) - SHOWN
        return "\n".join(lines + ([f"... {hidden} more predictions: see to_frame()"] if hidden > 0 else []))

    def _lines(self, i: int) -> list[str]:
        """Text of one prediction: the output with the largest score, its rows and tasks."""
        j = int(self.score[i].argmax())
        of = f"score of {self.outputs[j]!s}" if len(self.outputs) > 1 else "value"
        lines = wrapped(f"prediction {i}: {of} {self.score[i, j]:.4g}{self._tasks(i, j)}")
        lines += [f"{'row':>8}  {'target':>10}  {'contribution':>12}  {'effect':>10}" + ("  task" * self._tasked)]
        for r, row in enumerate(self.rows[i]):
            target = np.atleast_1d(self.target[i, r])[j if self.target.ndim == 3 else 0]
            shown = f"{target:.4g}" if isinstance(target, float) else str(target)
            line = f"{row:>8}  {shown:>10}  {self.contribution[i, r, j]:>12.4g}  {self.effect[i, r, j]:>+10.4g}"
            lines.append(line + (f"  {self._task_names[self.row_task[i, r]]}" if self._tasked else ""))  # type: ignore[index]
        return lines

    @cached_property
    def _task_names(self) -> list[str]:
        return shortened(self.tasks or [], NAME)

    @property
    def _tasked(self) -> bool:
        return self.tasks is not None

    def _tasks(self, i: int, j: int) -> str:
        """Contributions to the score by task."""
        if self.tasks is None or self.by_task is None or self.task is None:
            return ""
        t, part, names = int(self.task[i]), self.by_task[i, :, j], self._task_names
        order = [u for u in np.argsort(-np.abs(part), kind="stable") if u != t]
        own = "an unseen task" if t < 0 else f"{part[t]:.4g} from its own task {names[t]}"
        return f" ({'; '.join([own, *sources(part, order, names, TASKS)])})"


def wrapped(text: str) -> list[str]:
    """Wrap text at the line length."""
    return wrap(text, LINE, subsequent_indent="    ", break_on_hyphens=False)


def sources(part: Array, order: list[int], names: Sequence[str], shown: int) -> list[str]:
    """Text of the largest contributions by name, and of the sum of the others; empty if there are none."""
    items = [f"{part[u]:.4g} from {names[u]}" for u in order[:shown]]
    rest = order[shown:]
    items += [f"{part[rest].sum():.4g} from {len(rest)} others"] if rest else []
    return [", ".join(items)] if items else []
