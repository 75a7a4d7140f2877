"""The displays of tasks, under the name that they had at first; see :mod:`leastwise.displays`."""

from leastwise.displays import SimilarityDisplay, TaskReportDisplay

__all__ = ["SimilarityDisplay", "TaskReportDisplay"]
