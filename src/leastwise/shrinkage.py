r"""How far calibrated probabilities are moved away from the class shares, given what noise alone could have gained.

A search tries many hyperparameters and fits a calibrator at each. The best held-out log-likelihood is therefore too
good: on labels that are pure noise it still exceeds that of the class shares. So the evidence of a calibrator (its
``sharpness`` and ``power``) is multiplied by a credibility s between 0 and 1:

    logit s  =  gain / 2  -  1  -  log(slope)^2

gain
    the log-likelihood of the held-out rows (in nats, over all independent observations) minus that of the class
    shares. On noise the best point of a search exceeds a gain of G with a probability of about exp(-G / 2), whatever
    the number of rows, features and classes: hence gain / 2.
slope
    how many times larger or smaller the calibrator makes the differences between scores, where 1 takes them as
    posterior probabilities, which is what least squares estimates. A search on noise ends at points where the slope
    is far from 1: with models that interpolate, whose scores are then scaled down, or with scores of next to nothing,
    scaled up. The last term is a normal prior on the logarithm of the slope.
1
    the prior log-odds of noise.

The credibility is smooth in all of its arguments and tends to 1 exponentially in the gain: with a gain of 20 nats
1 - s is 1e-4, so data with a clear signal are left alone.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

Array = np.ndarray

#: Of the fixed-point iteration for many labels.
STEPS, TOLERANCE = 200, 1e-10


def credibility(gain: Array, slope: Array) -> Array:
    """The credibility of each of T calibrators that were chosen together, between 0 and 1.

    The prior odds of a label are those of the others: ``(1/2 + sum s_u) / (1/2 + sum (1 - s_u))`` over all other
    labels u. Where most labels have a signal, a label with little evidence of its own is believed too. The odds of a
    single label are 1. The equations are solved by iteration from odds of 1.

    Parameters
    ----------
    gain : ndarray of shape (T,)
        Log-likelihood of the held-out rows minus that of the class shares, in nats.
    slope : ndarray of shape (T,)
        Zero or above; 1 takes scores as posterior probabilities.
    """
    with np.errstate(divide="ignore"):
        own = gain / 2 - 1 - np.log(slope) ** 2
    s = expit(own)
    if len(s) < 2:
        return s
    for _ in range(STEPS):
        others = (0.5 + s.sum() - s) / len(s)
        new = expit(own + logit(others))
        if np.abs(new - s).max() <= TOLERANCE:
            return new
        s = new
    return s
