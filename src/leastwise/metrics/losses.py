"""The log-loss: one definition and one floor, for searches, metrics, reports and calibration.

The loss of a row is the negative log-probability of its true class. Probabilities below ``FLOOR``, the resolution of
double precision, are raised to it, so that a confident mistake costs 36.04 and not infinity. The floor does not
depend on the precision of the probabilities. Rows are not normalised. For probabilities in double precision that sum
to 1 this is ``sklearn.metrics.log_loss``.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray

#: Smallest probability. A Python float, which does not promote arrays of single precision.
FLOOR = float(np.finfo(np.float64).eps)


def log_losses(p: Array) -> Array:
    """The loss of every entry, from the probability of its true class."""
    return -np.log(np.maximum(p, FLOOR))


def class_log_losses(P: Array, codes: Array) -> Array:
    """The loss of every row, from probabilities of all classes (n x c) and codes of the true ones (n,)."""
    return log_losses(P[np.arange(len(codes)), codes])


def label_log_losses(P: Array, true: Array) -> Array:
    """The loss of every entry, from the probability of 1 and whether it is 1; of the same shape."""
    return log_losses(np.where(true, P, 1 - P))
