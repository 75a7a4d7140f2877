r"""Ridge leverage scores: how much of each row's own direction the other rows leave to it.

With weights p that sum to 1, a kernel matrix K and a ridge :math:`\lambda`, they are the diagonal of
:math:`A (A + \lambda I)^{-1}`, :math:`A = P^{1/2} K P^{1/2}`; their sum is the effective dimension. That costs n^3.
Here a pilot of some random rows stands for all others (Rudi, Calandriello, Carratino and Rosasco 2018 take several,
one after the other): what the pilot leaves of row i is

.. math:: r_i = k_{ii} - k_{iS} (K_{SS} + \lambda Q^{-1})^{-1} k_{Si},

with the weights q of the pilot's rows, scaled to sum 1, and the score is :math:`p_i r_i / (\lambda + p_i r_i)`. A row
of the pilot is compared with the others of the pilot, so that it has no smaller score for being one of them. Where
the pilot is all rows, these are the exact scores. The cost is n m^2 for m rows in the pilot, and memory is bounded.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

Array = np.ndarray
#: ``block(rows, columns)`` is the kernel between rows of these numbers.
Block = Callable[[Array, Array], Array]

#: Rows of a pilot: as many as there are centres, within these bounds.
PILOT = (300, 1000)
#: Bytes of kernel values that are held at a time.
CHUNK = 2**25
#: The ridge is no smaller than this share of the mean of k(x, x).
LEAST = 1e-10


def draw_leverage(block: Block, diagonal: Array, w: Array, count: int, rng: np.random.Generator) -> Array:
    """Approximate scores of rows, at the ridge whose effective dimension is half of ``count``.

    Parameters
    ----------
    block : callable
        The kernel between rows of given numbers.
    diagonal : ndarray of shape (n,)
        ``k(x, x)`` of all rows.
    w : ndarray of shape (n,)
        Weights of the rows; the scores of copies of a row add up to that of a row of their weights.
    count : int
        How many centres are to be drawn.

    Returns
    -------
    scores : ndarray of shape (n,), between 0 and 1
    """
    n = len(w)
    m = min(n, int(np.clip(count, *PILOT)))
    pilot = np.sort(rng.choice(n, size=m, replace=False))
    return leverage_scores(block, diagonal, w, pilot, min(count, m) / 2)


def leverage_scores(block: Block, diagonal: Array, w: Array, pilot: Array, size: float) -> Array:
    """Scores by a pilot of rows, at the ridge whose effective dimension is ``size`` on the pilot."""
    p, q = w.astype(float) / w.sum(dtype=float), w[pilot].astype(float) / w[pilot].sum(dtype=float)
    S = _finite(block(pilot, pilot))
    root = np.sqrt(q)
    mu, U = eigh(root[:, None] * S * root)
    mu = np.maximum(mu, 0)
    ridge = ridge_of_size(mu, size)
    left, V = np.empty(len(p)), root[:, None] * U / np.sqrt(mu + ridge)
    step = max(1, CHUNK // (8 * len(pilot)))
    for start in range(0, len(p), step):
        part = np.arange(start, min(start + step, len(p)))
        left[part] = diagonal[part] - np.sum((_finite(block(part, pilot)) @ V) ** 2, axis=1)
    own = np.minimum((U**2) @ (mu / (mu + ridge)), 1 - 1e-12)
    left[pilot] = ridge / q * own / (1 - own)  # what the others of the pilot leave
    gain = p * np.maximum(left, 0)
    return gain / (ridge + gain)


def ridge_of_size(mu: Array, size: float) -> float:
    """The ridge with ``sum(mu / (mu + ridge)) = size``; the least there may be where so much is out of reach."""
    total = float(mu.sum())
    if not total > 0:
        return 1.0

    def excess(log_ridge: float) -> float:
        return float(np.sum(mu / (mu + np.exp(log_ridge)))) - size

    low, high = np.log(total * LEAST), np.log(total / size) + 1
    return float(np.exp(low if excess(low) <= 0 else brentq(excess, low, high)))


def _finite(K: Array) -> Array:
    if not np.isfinite(K).all():
        raise ValueError("The kernel has values that are not finite on these rows: scale the features.")
    return K.astype(float)
