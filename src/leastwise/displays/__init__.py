"""Displays in scikit-learn's form: ``from_...`` computes and draws, ``plot`` draws again. They need matplotlib."""

from leastwise.displays.feature_weights import FeatureWeightsDisplay
from leastwise.displays.grouped_reliability import GroupedReliabilityDisplay
from leastwise.displays.posterior import PosteriorDisplay
from leastwise.displays.reliability import ReliabilityDisplay
from leastwise.displays.risk_coverage import RiskCoverageDisplay
from leastwise.displays.selection import RegularisationPathDisplay, SelectionDisplay
from leastwise.displays.similarity import SimilarityDisplay
from leastwise.displays.task_report import TaskReportDisplay

__all__ = [
    "FeatureWeightsDisplay",
    "GroupedReliabilityDisplay",
    "PosteriorDisplay",
    "RegularisationPathDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "SelectionDisplay",
    "SimilarityDisplay",
    "TaskReportDisplay",
]
