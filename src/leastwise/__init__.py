"""Fast, calibrated, non-linear class probabilities in closed form, for one task, many tasks or many labels."""

from leastwise.estimators.klr import KernelLogisticRegression
from leastwise.estimators.lspc import LSPC
from leastwise.estimators.lssvm import LSSVC, LSSVR
from leastwise.estimators.multi_label import MultiLabelLSPC
from leastwise.estimators.multi_task import MultiTaskLSPC
from leastwise.estimators.multi_task_klr import MultiTaskKernelLogisticRegression
from leastwise.estimators.multi_task_lssvm import MultiTaskLSSVC, MultiTaskLSSVR
from leastwise.files import load, save
from leastwise.task_reports import task_report

__version__ = "0.1.0"
__all__ = [
    "LSPC",
    "LSSVC",
    "LSSVR",
    "KernelLogisticRegression",
    "MultiLabelLSPC",
    "MultiTaskKernelLogisticRegression",
    "MultiTaskLSPC",
    "MultiTaskLSSVC",
    "MultiTaskLSSVR",
    "__version__",
    "load",
    "save",
    "task_report",
]
