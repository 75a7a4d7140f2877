"""Targets: classes, regression targets, or many labels.

A ``Targets`` object is immutable. Before it has seen any rows it holds the parameters that concern y. ``learn``
returns one that also knows the names of the classes, or the units of the values. Those of two parts of the rows are
added, so that blocks of a stream, partitions and merged models are handled alike. ``encode`` turns y into codes (or
values), and ``arrange`` turns codes into Z, the columns that the ridge problem fits.
"""

from leastwise.problem.targets.classes import ClassTargets, Targets, check_classes
from leastwise.problem.targets.labels import LabelTargets, as_column, is_flat
from leastwise.problem.targets.values import ValueTargets, check_bounds, in_units

__all__ = [
    "ClassTargets",
    "LabelTargets",
    "Targets",
    "ValueTargets",
    "as_column",
    "check_bounds",
    "check_classes",
    "in_units",
    "is_flat",
]
