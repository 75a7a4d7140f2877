"""Metrics of probabilities and decisions: of classes, of tasks, and of many labels of which some may be unknown.

Tables of labels have one column for each label: arrays, lists of rows, sparse matrices, pandas or polars frames. NaN,
None, NA or a mask in the true one means that a label is not known, as does the value ``missing``, and such entries do
not count. Without any the values are scikit-learn's, but for labels and rows in which there is nothing to measure:
they are left out of means, and NaN in lists. Columns of two frames are matched by their names; those of anything
else, and rows always, by position.
"""

from leastwise.metrics.calibration import (
    BrierParts,
    brier_decomposition,
    calibration_error,
    classwise_calibration_error,
)
from leastwise.metrics.label_report import LabelReport, label_report
from leastwise.metrics.label_scorer import label_scorer
from leastwise.metrics.labels import (
    hamming,
    label_auc,
    label_average_precision,
    label_brier,
    label_f1,
    label_log_loss,
    subset_accuracy,
)
from leastwise.metrics.probabilities import brier_score, expected_calibration_error, log_loss, task_auc, task_log_loss

__all__ = [
    "BrierParts",
    "LabelReport",
    "brier_decomposition",
    "brier_score",
    "calibration_error",
    "classwise_calibration_error",
    "expected_calibration_error",
    "hamming",
    "label_auc",
    "label_average_precision",
    "label_brier",
    "label_f1",
    "label_log_loss",
    "label_report",
    "label_scorer",
    "log_loss",
    "subset_accuracy",
    "task_auc",
    "task_log_loss",
]
