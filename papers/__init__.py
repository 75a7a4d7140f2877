"""The experiments of the four papers: their tables and figures recomputed, next to the published numbers.

This package is part of the checkout, not of the installed library.
"""

from papers._common.data import DataAbsent
from papers._common.experiments import Experiment, Paper
from papers.running import PAPERS, reproduce

__all__ = ["PAPERS", "DataAbsent", "Experiment", "Paper", "reproduce"]
