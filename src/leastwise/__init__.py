"""Fast, calibrated, non-linear class probabilities in closed form."""

from leastwise.estimators.klr import KernelLogisticRegression
from leastwise.estimators.lspc import LSPC

__version__ = "0.1.0"
__all__ = ["LSPC", "KernelLogisticRegression", "__version__"]
