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


def delete_one(B: Inverse, bias: bool) -> Array:
    """(B_EE)^-1 (B z)_E, first part, for rows left out one at a time: a 2 x 2 system for each."""
    p, t, d = B.p, B.t, B.d
    Pz, Tz = B.PB[:, :-1], B.TB[:, :-1]
    if bias:
        Pv, Tv, vPv = B.PB[:, -1], B.TB[:, -1], B.vPB[:, -1]
        p, t, d = p - Pv**2 / vPv, t - Pv * Tv / vPv, d - Tv**2 / vPv
        Pz = Pz - Pv[:, None] * B.vPB[:, :-1] / vPv[:, None]
        Tz = Tz - Tv[:, None] * B.vPB[:, :-1] / vPv[:, None]
    return (d[:, None] * Pz - t[:, None] * Tz) / (p * d - t**2)[:, None]


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


def intercept(vPB: Array, bias: bool) -> Array:
    """The intercepts: b = v'PZ / v'Pv."""
    return vPB[:-1] / vPB[-1] if bias else np.zeros_like(vPB[:-1])
