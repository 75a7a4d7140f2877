"""The log-loss: one definition and one floor, for searches, metrics, reports and calibration.

The loss of a row is minus the logarithm of the probability that was given to its true class. Probabilities below
``FLOOR``, the resolution of double precision, count as that, so that a certain mistake costs 36.04 and not infinity.
The floor is the same whatever precision the probabilities have. Rows of probabilities are not normalised. For
probabilities in double precision that sum to 1 this is ``sklearn.metrics.log_loss``.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray

#: Probabilities below count as that. A float of Python's, which leaves arrays of single precision as they are.
FLOOR = float(np.finfo(np.float64).eps)


def log_losses(p: Array) -> Array:
    """The loss of every entry, from the probabilities of what is true."""
    return -np.log(np.maximum(p, FLOOR))


def class_log_losses(P: Array, codes: Array) -> Array:
    """The loss of every row, from probabilities of all classes (n x c) and places of the true ones (n,)."""
    return log_losses(P[np.arange(len(codes)), codes])


def label_log_losses(P: Array, true: Array) -> Array:
    """The loss of every entry of probabilities of 1, from whether it is 1; of the same shape."""
    return log_losses(np.where(true, P, 1 - P))
