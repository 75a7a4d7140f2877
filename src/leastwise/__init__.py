"""Fast, calibrated, non-linear class probabilities in closed form, for one task, many tasks or many labels."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leastwise.estimators.abstaining import Abstaining
    from leastwise.estimators.klr import KernelLogisticRegression
    from leastwise.estimators.lspc import LSPC
    from leastwise.estimators.lssvm import LSSVC, LSSVR
    from leastwise.estimators.merging import merge
    from leastwise.estimators.multi_label import MultiLabelLSPC
    from leastwise.estimators.multi_task import MultiTaskLSPC
    from leastwise.estimators.multi_task_klr import MultiTaskKernelLogisticRegression
    from leastwise.estimators.multi_task_lssvm import MultiTaskLSSVC, MultiTaskLSSVR
    from leastwise.estimators.prior_shift import estimate_class_prior
    from leastwise.estimators.recalibrated import Recalibrated
    from leastwise.inspection.calibration_report import calibration_report
    from leastwise.inspection.task_report import task_report
    from leastwise.linalg.moments import Moments
    from leastwise.model_selection.folds import DuplicateRowsWarning
    from leastwise.persistence.model_files import load, save
    from leastwise.solvers.plan import Plan
    from leastwise.tables.model import TableModel
    from leastwise.utils.resources import memory_limit, set_memory_limit

__version__ = "0.1.0"
__all__ = [
    "LSPC",
    "LSSVC",
    "LSSVR",
    "Abstaining",
    "DuplicateRowsWarning",
    "KernelLogisticRegression",
    "Moments",
    "MultiLabelLSPC",
    "MultiTaskKernelLogisticRegression",
    "MultiTaskLSPC",
    "MultiTaskLSSVC",
    "MultiTaskLSSVR",
    "Plan",
    "Recalibrated",
    "TableModel",
    "__version__",
    "calibration_report",
    "estimate_class_prior",
    "load",
    "memory_limit",
    "merge",
    "save",
    "set_memory_limit",
    "task_report",
]

#: Modules of the public names. They are imported on first use, so that the command line starts quickly.
_HOMES = {
    "Abstaining": "estimators.abstaining",
    "LSPC": "estimators.lspc",
    "LSSVC": "estimators.lssvm",
    "LSSVR": "estimators.lssvm",
    "KernelLogisticRegression": "estimators.klr",
    "MultiLabelLSPC": "estimators.multi_label",
    "MultiTaskKernelLogisticRegression": "estimators.multi_task_klr",
    "MultiTaskLSPC": "estimators.multi_task",
    "MultiTaskLSSVC": "estimators.multi_task_lssvm",
    "MultiTaskLSSVR": "estimators.multi_task_lssvm",
    "DuplicateRowsWarning": "model_selection.folds",
    "Moments": "linalg.moments",
    "Plan": "solvers.plan",
    "Recalibrated": "estimators.recalibrated",
    "TableModel": "tables.model",
    "calibration_report": "inspection.calibration_report",
    "estimate_class_prior": "estimators.prior_shift",
    "load": "persistence.model_files",
    "memory_limit": "utils.resources",
    "merge": "estimators.merging",
    "save": "persistence.model_files",
    "set_memory_limit": "utils.resources",
    "task_report": "inspection.task_report",
}
#: Subpackages that can be used as attributes without being imported by name.
_PARTS = {
    "baselines",
    "datasets",
    "displays",
    "metrics",
    "model_selection",
    "onnx",
    "persistence",
    "report",
    "sources",
    "tables",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"leastwise.{_HOMES[name]}"), name)
    if name in _PARTS:
        return import_module(f"leastwise.{name}")
    raise AttributeError(f"module 'leastwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PARTS})
