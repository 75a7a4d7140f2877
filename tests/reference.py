"""Slow, obvious forms: loops, refits, explicit inverses. The tests compare the library with these."""

from __future__ import annotations

import numpy as np


def ridge_fit(Phi, Z, weights, alpha, penalty=None, bias=False):
    """argmin  sum_i w_i |z_i - Phi_i theta - b|^2 / sum(w) + alpha theta' penalty theta, by the normal equations."""
    n, b = Phi.shape
    penalty = np.eye(b) if penalty is None else penalty
    A = Phi.T @ (weights[:, None] * Phi) + alpha * weights.sum() * penalty
    if not bias:
        return np.linalg.solve(A, Phi.T @ (weights[:, None] * Z)), np.zeros(Z.shape[1])
    column = Phi.T @ weights
    M = np.block([[A, column[:, None]], [column[None], np.array([[weights.sum()]])]])
    right = np.vstack([Phi.T @ (weights[:, None] * Z), weights @ Z])
    solution = np.linalg.solve(M, right)
    return solution[:-1], solution[-1]


def heldout_by_refits(Phi, Z, weights, alpha, folds, *, own=None, penalty=None, bias=False, weigh_basis=False):
    """Leave each fold out, with the basis functions that its rows own, fit the rest, score the fold.

    ``weigh_basis``: every row is a basis function, and counts there with its weight too.
    """
    F = np.full(Z.shape, np.nan)
    for fold in np.unique(folds):
        out = folds == fold
        keep = np.ones(Phi.shape[1], bool)
        if own is not None:
            keep[own[out & (own >= 0)]] = False
        scale = np.sqrt(weights)[keep] if weigh_basis else np.ones(keep.sum())
        part = penalty[np.ix_(keep, keep)] if penalty is not None else None
        theta, b = ridge_fit(Phi[~out][:, keep] * scale, Z[~out], weights[~out], alpha, part, bias)
        F[out] = (Phi[out][:, keep] * scale) @ theta + b
    return F
