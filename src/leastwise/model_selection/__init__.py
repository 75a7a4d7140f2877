"""The choice of hyperparameters by held-out scores, and splitters that know tasks and labels.

A hyperparameter is a number (used as it is), a sequence (a grid) or "auto" (a grid made for the data, which grows
while the best value lies on its border).
"""

from leastwise.model_selection.splitters import StratifiedLabelKFold, StratifiedTaskKFold

__all__ = ["StratifiedLabelKFold", "StratifiedTaskKFold"]
