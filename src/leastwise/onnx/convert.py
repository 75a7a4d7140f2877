"""Convert a fitted model to an ONNX graph."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from leastwise.estimators.abstaining import Abstaining
from leastwise.fitting.checks import choose
from leastwise.onnx import baselines, outputs  # noqa: F401 (they register the estimators)
from leastwise.onnx.encoders import encode_table
from leastwise.onnx.graph import Graph
from leastwise.onnx.registry import ExportOptions, estimators
from leastwise.onnx.transformers import Columns, TextNeeded, column_names, input_columns, unwrap
from leastwise.tables import TableModel
from leastwise.utils.unwrap import core

TYPES = {"float32": np.float32, "float64": np.float64}


def to_onnx(
    model: Any,
    *,
    dtype: Any = None,
    inside: Any = "float64",
    interval: float | None = None,
    class_prior: Any = None,
    coverage: float | None = None,
    name: str = "leastwise",
) -> Any:
    """Convert a fitted model to an ONNX graph with the results of ``predict_proba`` and ``predict``.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library, :class:`~leastwise.Recalibrated` or :class:`~leastwise.Abstaining` around
        one, a pipeline of preprocessing that ends in one, or a :class:`~leastwise.tables.TableModel`.
    dtype : {"float32", "float64"}, optional
        Of numeric inputs and outputs. By default float32; for a ``TableModel``, whose inputs are the unscaled numbers
        of a file, float64.
    inside : {"float64", "float32"}, default="float64"
        Of weights and all computations. "float32" takes half the memory, and suits accelerators; sums of kernels with
        large coefficients of both signs then lose digits, see :func:`leastwise.onnx.check`.
    interval : float, optional
        For regressors: adds outputs ``lower`` and ``upper``, an interval with about this coverage, as
        ``predict_interval(X, interval, method="jackknife")``.
    class_prior : mapping, array-like or "uniform", optional
        For classifiers: class prior where the graph is used, as in ``predict_proba``.
    coverage : float, optional
        For classifiers: adds the output ``set``, the classes of ``predict_set(X, coverage)``.
    name : str, default="leastwise"
        Name of the graph.

    Returns
    -------
    onnx.ModelProto
        Inputs are ``X``, of shape (n, n_features), and ``tasks``, of shape (n,), if the model was fitted with
        ``tasks=``. If a column is text there is an input of shape (n, 1) for every column instead, with its name; a
        ``TableModel`` always has these, and its task column is one of them. Outputs are ``label`` and
        ``probabilities`` of classifiers, ``accepted`` if they abstain, and ``variable`` of regressors.

    Raises
    ------
    TypeError, ValueError
        For objects without a converter (see :mod:`leastwise.onnx.registry`), such as kernels that are precomputed or
        functions, and for task ids or classes that are neither text nor numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from leastwise import LSPC
    >>> from leastwise.onnx import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> proto = to_onnx(LSPC(random_state=0).fit(X, y))
    >>> [output.name for output in proto.graph.output]
    ['label', 'probabilities']
    """
    import leastwise

    default = "float64" if isinstance(model, TableModel) else "float32"
    io_dtype, inner_dtype = _dtype("dtype", default if dtype is None else dtype), _dtype("inside", inside)
    check_is_fitted(model)
    options = ExportOptions(interval, class_prior, coverage)
    if isinstance(model, TableModel):
        g, model = _table_graph(model, inner_dtype, io_dtype, options), model.fitted_
    else:
        single = _single_input_graph(model, inner_dtype, io_dtype, options)
        g = single or _column_input_graph(model, inner_dtype, io_dtype, options)
    return g.to_proto(name, leastwise.__version__, _metadata(model, g))


def _dtype(name: str, value: Any) -> Any:
    return TYPES[choose(name, value if isinstance(value, str) else np.dtype(value).name, TYPES)]


def _single_input_graph(model: Any, dtype: Any, io_dtype: Any, options: ExportOptions) -> Graph | None:
    """The graph with one numeric input; None if a column is text, or is an unused column of a frame, which may be."""
    names = column_names(model)
    g = Graph(dtype, io_dtype)
    columns = input_columns(g, names, single_input=True)
    try:
        _convert(g, model, columns, options)
    except TextNeeded:
        return None
    all_used = len(columns.places[0][0].used) == len(names)  # type: ignore[union-attr]
    return g if all_used or not hasattr(model, "feature_names_in_") else None


def _column_input_graph(model: Any, dtype: Any, io_dtype: Any, options: ExportOptions) -> Graph:
    """The graph with an input for each column."""
    names = column_names(model)
    g = Graph(dtype, io_dtype, names)
    _convert(g, model, input_columns(g, names, single_input=False), options)
    return _sort_inputs(g, names)


def _table_graph(model: TableModel, dtype: Any, io_dtype: Any, options: ExportOptions) -> Graph:
    """The graph with an input for each column of a table that is used, and for the tasks.

    ``label`` is the predicted class also if it is not accepted: ``predict_table`` has both.
    """
    names = [column.name for column in model.columns_]
    g = Graph(dtype, io_dtype, [column.name for column in model.columns_ if column.used] + [model.task or ""])
    columns = encode_table(g, model.encoder_, input_columns(g, names, single_input=False))
    if model.task:
        g.task_ids, g.column_kinds[model.task] = g.input(model.task, object, [1]).squeeze(1), "task"
    _convert(g, model.fitted_, columns, replace(options, mark_rejected=False))
    return _sort_inputs(g, names)


def _sort_inputs(g: Graph, names: list[str]) -> Graph:
    """Put the inputs in the order of the columns."""
    g.inputs.sort(key=lambda i: names.index(i.name) if i.name in names else len(names))
    return g


def _convert(g: Graph, model: Any, columns: Columns, options: ExportOptions) -> None:
    """Add the nodes and outputs of a model, within pipelines and ``Abstaining``."""
    model, columns = unwrap(g, model, columns)
    if isinstance(model, Abstaining):
        options = replace(options, abstaining=model)
        model, columns = unwrap(g, model.estimator_, columns)
    entry = estimators.find(model)
    options.check(model, entry.options)
    entry.convert(g, model, columns, options)


def _metadata(model: Any, g: Graph) -> dict[str, str]:
    """Properties of the model for readers of the file."""
    inner = core(model)
    metadata = {"estimator": type(inner).__name__, "inside": g.dtype.name}
    for key in ("classes_", "tasks_", "labels_"):
        known = getattr(inner, key, None)
        if known is not None:
            metadata[key.rstrip("_")] = json.dumps([np.asarray(k).tolist() for k in known], default=str)
    return metadata | ({"columns": json.dumps(g.column_kinds)} if g.column_kinds else {})
