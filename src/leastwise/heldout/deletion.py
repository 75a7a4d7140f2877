"""Deleting rows and basis functions from the augmented system (H); see the package's text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass
class Inverse:
    """The blocks of the inverse of (H) without intercept, on the deleted indices (see the module's text).

    Singles: p, t, d have shape (m,) and PB, TB (m, c + 1). Blocks: p (m, m), t (m, o), d (o, o).
    vPB is v'P [z, v], of shape (c + 1,) or, where the ridge differs by row, (m, c + 1).
    """

    p: Array
    PB: Array
    vPB: Array
    t: Array
    d: Array
    TB: Array


def delete_one(B: Inverse, bias: bool, count: Array | None = None, penalty: float | Array = 1.0) -> Array:
    r"""(B_EE)^-1 (B z)_E, first part, for rows left out one at a time: a 2 x 2 system for each.

    A row may stand for m equal observations (``count``), of which one is left out. Split the row, and the basis
    function that it owns, into that one and the other m - 1: an orthogonal change of coordinates, in which what is
    added has no target and no design. There the inverse of (H) is 1 for residuals and -1 / rho for coefficients, so
    that the entries of the one observation are

        p' = p / m + (1 - 1/m),     t' = t / m,     d' = d / m - (1 - 1/m) / rho,

    (``penalty`` is rho, divided by the weight of the basis function where coefficients belong to the unweighted one),
    and the right hand side is divided by sqrt(m), as is the root of the weight. Without a basis function of its own
    the held-out residual is e / (1 - h / m), with e the residual and h = 1 - p the leverage of the row.
    """
    p, t, d = B.p, B.t, B.d
    Pz, Tz = B.PB[:, :-1], B.TB[:, :-1]
    if bias:
        Pv, Tv, vPv = B.PB[:, -1], B.TB[:, -1], B.vPB[:, -1]
        p, t, d = p - Pv**2 / vPv, t - Pv * Tv / vPv, d - Tv**2 / vPv
        Pz = Pz - Pv[:, None] * B.vPB[:, :-1] / vPv[:, None]
        Tz = Tz - Tv[:, None] * B.vPB[:, :-1] / vPv[:, None]
    if count is not None:
        p, t, d = split_counts(p, t, d, count, penalty)
    return (d[:, None] * Pz - t[:, None] * Tz) / (p * d - t**2)[:, None]


def split_counts(p: Array, t: Array, d: Array, count: Array, penalty: float | Array) -> tuple[Array, Array, Array]:
    """p', t', d' of one of the equal observations that each row stands for; see ``delete_one``."""
    rest = 1 - 1 / count
    return p / count + rest, t / count, d / count - rest / penalty


def delete_block(B: Inverse, bias: bool) -> Array:
    """(B_EE)^-1 (B z)_E, first part, for a set of rows left out together."""
    M = np.block([[B.p, B.t], [B.t.T, B.d]])
    right = np.vstack([B.PB, B.TB])
    R = right[:, :-1]
    if bias:
        v = right[:, -1]
        M = M - np.outer(v, v / B.vPB[-1])
        R = R - np.outer(v, B.vPB[:-1] / B.vPB[-1])
    return np.linalg.solve(M, R)[: len(B.p)]


def follows(B: Inverse, bias: bool) -> float:
    """The sum over the rows of how much their fitted scores follow their own targets: ``1 - P_ii``."""
    p = B.p if B.p.ndim == 1 else np.diagonal(B.p)
    if bias:
        p = p - B.PB[:, -1] ** 2 / B.vPB[..., -1]
    return float(np.sum(1 - p))
