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

Labels of one model share its hyperparameters, so they are believed together. The gain is then that of all labels with
pooled parameters, divided by how many labels say the same: the variance of a row's gain over that of independent
labels.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit


def credibility(gain: float, slope: float) -> float:
    """How far a calibrator is believed, between 0 and 1.

    Parameters
    ----------
    gain : float
        Log-likelihood of the held-out rows minus that of the class shares, in nats.
    slope : float
        Zero or above; 1 takes scores as posterior probabilities.
    """
    with np.errstate(divide="ignore"):
        return float(expit(gain / 2 - 1 - np.log(slope) ** 2))
