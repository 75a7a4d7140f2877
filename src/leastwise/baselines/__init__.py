"""Peer methods that multi-task learners are compared with, after the papers that introduced them."""

from leastwise.baselines.bmtl import BMTLRegressor
from leastwise.baselines.mtl_feat import MTLFeatClassifier, MTLFeatRegressor
from leastwise.baselines.rmtl import RMTLClassifier, RMTLRegressor

__all__ = ["BMTLRegressor", "MTLFeatClassifier", "MTLFeatRegressor", "RMTLClassifier", "RMTLRegressor"]
