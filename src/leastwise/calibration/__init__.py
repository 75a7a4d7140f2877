"""Probabilities calibrated once more, on held-out predictions that a fit has left; see :class:`Recalibrated`."""

from leastwise.calibration.choice import Choice, choose_family
from leastwise.calibration.recalibrated import Recalibrated
from leastwise.calibration.sample import Given, HeldOut

__all__ = ["Choice", "Given", "HeldOut", "Recalibrated", "choose_family"]
