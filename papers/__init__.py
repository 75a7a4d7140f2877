"""The experiments of the four papers: their tables and figures computed anew, beside the papers' own."""

from papers._common.data import DataAbsent
from papers._common.experiments import Experiment, Paper
from papers.running import PAPERS, reproduce

__all__ = ["PAPERS", "DataAbsent", "Experiment", "Paper", "reproduce"]
