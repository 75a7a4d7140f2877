"""Metrics of probabilities and decisions: for classes, tasks, and many labels of which some may be unknown.

Tables of labels have one column per label: arrays, lists of rows, sparse matrices, pandas or polars data frames. NaN,
None, NA, a mask or the value ``missing`` in the true table mean that a label is unknown; such entries do not count.
Without unknown labels the values are those of scikit-learn, except for labels and rows with nothing to measure, which
are NaN in lists and left out of means. Columns of two data frames are matched by name; other columns, and all rows,
by position.
"""

from leastwise.metrics.calibration import (
    BrierParts,
    brier_decomposition,
    calibration_error,
    classwise_calibration_error,
    expected_calibration_error,
)
from leastwise.metrics.label_report import LabelReport, label_report
from leastwise.metrics.labels import (
    hamming,
    label_auc,
    label_average_precision,
    label_brier,
    label_f1,
    label_log_loss,
    label_scorer,
    subset_accuracy,
)
from leastwise.metrics.probabilities import brier_score, log_loss, task_auc, task_log_loss

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
