"""Hyperparameter search by held-out scores, and splitters stratified by tasks and labels.

A hyperparameter is a number (fixed), a sequence (a grid) or "auto" (a grid scaled to the data, which is extended
while the best value lies on its border).
"""

from leastwise.model_selection.splitters import StratifiedLabelKFold, StratifiedTaskKFold

__all__ = ["StratifiedLabelKFold", "StratifiedTaskKFold"]
