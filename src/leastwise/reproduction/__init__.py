"""The experiments of the four papers: their tables and figures computed anew, beside the papers' own."""

from leastwise.reproduction._common.data import DataAbsent
from leastwise.reproduction._common.experiments import Experiment, Paper
from leastwise.reproduction.registry import PAPERS
from leastwise.reproduction.running import reproduce

__all__ = ["PAPERS", "DataAbsent", "Experiment", "Paper", "reproduce"]
