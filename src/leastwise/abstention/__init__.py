"""Decide where the model is sure enough, and leave the rest to a person."""

from leastwise.abstention.estimator import Abstaining
from leastwise.risk import RiskCoverage

__all__ = ["Abstaining", "RiskCoverage"]
