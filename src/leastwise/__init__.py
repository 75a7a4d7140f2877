"""Fast, calibrated, non-linear class probabilities in closed form, for one task, many tasks or many labels."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leastwise.estimators.klr import KernelLogisticRegression
    from leastwise.estimators.lspc import LSPC
    from leastwise.estimators.lssvm import LSSVC, LSSVR
    from leastwise.estimators.multi_label import MultiLabelLSPC
    from leastwise.estimators.multi_task import MultiTaskLSPC
    from leastwise.estimators.multi_task_klr import MultiTaskKernelLogisticRegression
    from leastwise.estimators.multi_task_lssvm import MultiTaskLSSVC, MultiTaskLSSVR
    from leastwise.files import load, save
    from leastwise.folds import DuplicateRowsWarning
    from leastwise.linalg.moments import Moments
    from leastwise.memory import memory_limit, set_memory_limit
    from leastwise.merging import merge
    from leastwise.planning import Plan
    from leastwise.task_reports import task_report

__version__ = "0.1.0"
__all__ = [
    "LSPC",
    "LSSVC",
    "LSSVR",
    "DuplicateRowsWarning",
    "KernelLogisticRegression",
    "Moments",
    "MultiLabelLSPC",
    "MultiTaskKernelLogisticRegression",
    "MultiTaskLSPC",
    "MultiTaskLSSVC",
    "MultiTaskLSSVR",
    "Plan",
    "__version__",
    "load",
    "memory_limit",
    "merge",
    "save",
    "set_memory_limit",
    "task_report",
]

#: Where names live. They are looked up when first used, so that the command line starts at once.
_HOMES = {
    "LSPC": "estimators.lspc",
    "LSSVC": "estimators.lssvm",
    "LSSVR": "estimators.lssvm",
    "KernelLogisticRegression": "estimators.klr",
    "MultiLabelLSPC": "estimators.multi_label",
    "MultiTaskKernelLogisticRegression": "estimators.multi_task_klr",
    "MultiTaskLSPC": "estimators.multi_task",
    "MultiTaskLSSVC": "estimators.multi_task_lssvm",
    "MultiTaskLSSVR": "estimators.multi_task_lssvm",
    "DuplicateRowsWarning": "folds",
    "Moments": "linalg.moments",
    "Plan": "planning",
    "load": "files",
    "memory_limit": "memory",
    "merge": "merging",
    "save": "files",
    "set_memory_limit": "memory",
    "task_report": "task_reports",
}
#: Parts that can be used as attributes without being imported by name.
_PARTS = {
    "abstention",
    "baselines",
    "calibration",
    "datasets",
    "displays",
    "files",
    "label_metrics",
    "metrics",
    "model_selection",
    "onnx",
    "planning",
    "report",
    "shift",
    "streaming",
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
