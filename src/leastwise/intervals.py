r"""Prediction intervals from held-out residuals: the jackknife, jackknife+ and CV+.

A model that is linear in its targets, ``F(x) = sum_i s_i(x) z_i``, says without the fold k, at the same ridge,

    F_-k(x) = F(x) - sum_(i in k) s_i(x) r_i,      r_i = z_i - F_-k(x_i),

since leaving rows out is the same as giving them the targets that are predicted for them. So the models of all folds
cost no more than the weights s(x). With k(i) the fold of row i, and K = ceil((n + 1) coverage), the interval of
*jackknife+* (Barber, Candes, Ramdas and Tibshirani 2021; CV+ where folds are larger) is

    from the K-th largest  F_-k(i)(x) - |r_i|   to the K-th smallest  F_-k(i)(x) + |r_i|.

It covers a new value with a probability of at least 2 coverage - 1 whatever the data are, if rows are exchangeable,
and of about ``coverage`` in practice. The plain *jackknife*, ``F(x) -+ (the K-th smallest |r_i|)``, needs nothing but
the residuals. Both are for a model whose parameters are given: where residuals have chosen parameters they are
enlarged first, see ``leastwise.selection.optimism``.

With groups, a new row is one of a new group. Groups are exchangeable, their rows are not independent. Folds hold
whole groups, each row counts by one over the size of its group, and n is the number of groups (Lee, Barber and
Willett 2023).
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def jackknife(F: Array, residual: Array, w: Array, coverage: float) -> tuple[Array, Array]:
    """Intervals of equal width about F (m x c), from held-out residuals (n x c) of rows with these weights."""
    half = np.array([upper_quantile(np.abs(r)[None], w, coverage)[0] for r in residual.T])
    return F - half, F + half


def jackknife_plus(
    F: Array, S: Array, residual: Array, fold: Array, w: Array, coverage: float, size: Array | None = None
) -> tuple[Array, Array]:
    """Intervals from the models of all folds.

    Parameters
    ----------
    F : ndarray of shape (m, c)
        What the model says.
    S : ndarray of shape (m, n)
        Weights of the training targets in that.
    residual : ndarray of shape (n, c)
        Held-out residuals.
    fold : ndarray of int of shape (n,)
        Labels 0, 1, ... of the rows that were held out together.
    w : ndarray of shape (n,)
        Weights of mean 1, or weights that sum to 1 in every group.
    coverage : float
    size : ndarray of shape (n, c), optional
        How large the errors of the rows are to be taken; by default the absolute residuals.
    """
    size = np.abs(residual) if size is None else size
    low, high = np.empty_like(F), np.empty_like(F)
    for j, (r, s) in enumerate(zip(residual.T, size.T, strict=True)):
        without = F[:, j, None] - _by_fold(S * r, fold)[:, fold]
        low[:, j] = -upper_quantile(s - without, w, coverage)
        high[:, j] = upper_quantile(s + without, w, coverage)
    return low, high


def _by_fold(A: Array, fold: Array) -> Array:
    """Sums of the columns of each fold."""
    if len(fold) == int(fold.max()) + 1:  # every row alone
        sums = np.empty_like(A)
        sums[:, fold] = A
        return sums
    order = np.argsort(fold, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(fold[order]) != 0])
    return np.add.reduceat(A[:, order], starts, axis=1)


def upper_quantile(values: Array, w: Array, coverage: float) -> Array:
    """For every row of values (m x n), the smallest that has a share ``coverage`` of n + 1 at or below; inf if none.

    The row to come has weight 1, as the others have on average, or as every group has.
    """
    need = coverage * (w.sum() + 1)
    if need > w.sum() * (1 + 1e-12):
        return np.full(len(values), np.inf)
    if np.all(w == 1):
        k = int(np.ceil(need - 1e-9)) - 1
        return np.partition(values, k, axis=1)[:, k]
    order = np.argsort(values, axis=1)
    k = (np.cumsum(w[order], axis=1) >= need - 1e-9).argmax(axis=1)
    return np.take_along_axis(values, np.take_along_axis(order, k[:, None], axis=1), axis=1)[:, 0]
