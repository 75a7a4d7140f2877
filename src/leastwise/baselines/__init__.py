"""Baselines that multi-task and multi-label learners are compared with, each after the paper that introduced it."""

from leastwise.baselines.bmtl import BMTLRegressor
from leastwise.baselines.insdif import InsDif
from leastwise.baselines.ml_knn import MLkNN
from leastwise.baselines.mtl_feat import MTLFeatClassifier, MTLFeatRegressor
from leastwise.baselines.rmtl import RMTLClassifier, RMTLRegressor

__all__ = [
    "BMTLRegressor",
    "InsDif",
    "MLkNN",
    "MTLFeatClassifier",
    "MTLFeatRegressor",
    "RMTLClassifier",
    "RMTLRegressor",
]
