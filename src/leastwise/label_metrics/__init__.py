"""How good decisions and probabilities of many labels are, where some labels of some rows are not known.

Tables have one column for each label: arrays, lists of rows, sparse matrices, pandas or polars frames. NaN, None, NA
or a mask in the true one means that a label is not known, as does the value ``missing``, and such entries do not
count. Without any the values are scikit-learn's, but for labels and rows in which there is nothing to measure: they
are left out of means, and NaN in lists.

Columns of two frames are matched by their names; those of anything else, and rows always, by where they stand.
"""

from leastwise.label_metrics.decisions import hamming, label_f1, subset_accuracy
from leastwise.label_metrics.probabilities import label_auc, label_average_precision, label_brier, label_log_loss
from leastwise.label_metrics.report import LabelReport, label_report
from leastwise.label_metrics.scorer import label_scorer

__all__ = [
    "LabelReport",
    "hamming",
    "label_auc",
    "label_average_precision",
    "label_brier",
    "label_f1",
    "label_log_loss",
    "label_report",
    "label_scorer",
    "subset_accuracy",
]
