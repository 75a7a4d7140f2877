"""``fit_stream`` of the multi-task estimators: rows of many tasks that come in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from leastwise.fitting.task_streams import fit_by_blocks, fit_task_source
from leastwise.sources.blocks import StreamError
from leastwise.sources.opening import has_names, open_blocks
from leastwise.utils.atomic_fit import all_or_nothing

if TYPE_CHECKING:
    from leastwise.estimators.classifiers import TaskClassifier
    from leastwise.estimators.regressors import TaskRegressor

Model = TypeVar("Model", "TaskClassifier", "TaskRegressor")


@all_or_nothing
def fit_stream(
    self: Model,
    source: Any,
    y: Any = None,
    *,
    target: Any = None,
    features: Any = None,
    weight: Any = None,
    task: Any = None,
    block_rows: int | None = None,
    folder: Any = None,
) -> Model:
    """Fit to rows that come in blocks and need not fit into memory together.

    Parameters
    ----------
    source : path, list of paths, array, memmap, frame, iterator, callable, or list of blocks
        Where rows come from, see :func:`leastwise.sources.open_blocks`. Blocks in a list are mappings with the keys
        X, y, tasks and sample_weight, objects with such attributes, tuples ``(X, y, sample_weight, tasks)``,
        callables that return one of these, or parts of :meth:`leastwise.sources.Spool.by_task`. They are read four
        times or more.
    %(y.stream)s
    %(target)s
    %(features)s
    %(weight)s
    task : str or array, default=None
        Column of files and frames that holds the task ids, or the ids if ``source`` is an array.
    %(block_rows)s
    folder : path, default=None
        Where rows are stored, sorted by task, if they can be read only once, or if too many of them would have to be
        held in memory: rows of a task are held until its last block. By default, the folder of temporary files.

    Returns
    -------
    %(self)s
        Held-out attributes (``heldout_scores_``, ``heldout_rows_``) are those of the sample on which the
        hyperparameters were chosen; see :doc:`/distributed`.
    """
    names = {"target": target, "features": features, "weight": weight, "task": task}
    _check_named(source, y, names, self.task_column)
    spec = self._spec()
    blocks = _as_blocks(source, y, {**names, "categories": spec.categories}, block_rows)
    fit_by_blocks(lambda source: fit_task_source(self, spec, source), blocks, folder)
    known = getattr(blocks, "names", None)
    if known is not None and self.task_column is None:
        self.feature_names_in_ = np.array(known, dtype=object)
    return self


def _as_blocks(source: Any, y: Any, names: dict[str, Any], block_rows: int | None) -> Any:
    """Blocks of rows: a list of blocks is used directly, everything else is opened by ``open_blocks``."""
    listed = isinstance(source, Sequence) and not isinstance(source, str | bytes) and len(source)
    if listed and not isinstance(source[0], str | PathLike) and not _pair_of_paths(source[0]):
        return source
    return open_blocks(source, y, **names, block_rows=block_rows)


def _check_named(source: Any, y: Any, names: dict[str, Any], task_column: Any) -> None:
    """Check that targets and tasks are given for files, tables and arrays."""
    if not has_names(source) and not hasattr(source, "__array__"):
        return
    if y is None and names["target"] is None:
        raise StreamError("There are no targets: name their column with target=, or give them as y.")
    if names["task"] is None and task_column is None:
        raise StreamError(
            "The tasks of the rows are missing: name their column with task=, or give an array of ids. (Without "
            "tasks, use LSPC, LSSVC or LSSVR.)"
        )


def _pair_of_paths(item: Any) -> bool:
    return isinstance(item, tuple) and all(isinstance(part, str | PathLike) for part in item)
