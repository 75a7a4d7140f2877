"""Inputs of a graph from rows, and the difference between a graph and its model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from leastwise.sources.frames import is_missing
from leastwise.tables import Table, TableModel
from leastwise.tables.columns import texts_of, values_of
from leastwise.utils.optional import needed

Array = np.ndarray


def feeds(proto: Any, X: Any, tasks: Any = None) -> dict[str, Array]:
    """Convert rows to the inputs of a graph, for ``onnxruntime.InferenceSession.run``.

    Parameters
    ----------
    proto : onnx.ModelProto
        From :func:`to_onnx`.
    X : array-like, frame or sparse matrix of shape (n, n_features), or table
        Rows, as the model takes them. Missing text becomes "".
    tasks : array-like of shape (n,) or a single id, optional
        Tasks of the rows, for models that take ``tasks=``.
    """
    kinds = _column_kinds(proto)
    table = _table(X) if kinds else None
    X = X.toarray() if hasattr(X, "toarray") else X if _has_names(X) else np.asarray(X)
    inputs = {}
    for info in proto.graph.input:
        name, element, shape = info.name, info.type.tensor_type.elem_type, info.type.tensor_type.shape.dim
        if table is not None and name in kinds:
            inputs[name] = _typed(_cells(table, name, kinds[name]), element)[:, None]
        elif len(shape) == 1:
            inputs[name] = _typed(_task_ids(tasks, len(X if table is None else table)), element)
        elif name == "X" and shape[1].dim_value == X.shape[1]:
            inputs[name] = _typed(X, element)
        else:
            inputs[name] = _typed(_column(X, name), element)[:, None]
    return inputs


def _column_kinds(proto: Any) -> dict[str, str]:
    """Kinds of the columns of a table, from the metadata of its graph."""
    return next((json.loads(p.value) for p in proto.metadata_props if p.key == "columns"), {})


def _has_names(X: Any) -> bool:
    return isinstance(X, Mapping) or hasattr(X, "columns") or hasattr(X, "column_names")


def _table(X: Any) -> Table:
    return Table.of(X if _has_names(X) else {f"column_{j}": column for j, column in enumerate(np.asarray(X).T)})


def _cells(table: Table, name: str, kind: str) -> Array:
    """A column of a table as numbers, or as text with "" where it is missing."""
    if name not in table.columns and table.absent is not None:
        return np.full(len(table), table.absent)
    if kind in ("number", "date"):
        return values_of(table, name, kind)
    if kind == "boolean":
        cells = ["" if v != v else "true" if v else "false" for v in values_of(table, name, kind).tolist()]
    else:
        cells = ["" if text is None else text for text in texts_of(table, name)]
    return np.array(cells, dtype=object)


def _task_ids(tasks: Any, n: int) -> Array:
    if tasks is None:
        raise ValueError("This graph has the input 'tasks': give tasks= with one id for each row, or a single id.")
    return np.broadcast_to(np.asarray(tasks, dtype=object), n)


def _column(X: Any, name: str) -> Array:
    if hasattr(X, "columns"):
        return np.asarray(X[name])
    if not name.startswith("column_"):
        raise ValueError(
            f"This graph has an input for each column, such as {name!r}: give a frame with these columns."
        )
    return X[:, int(name.removeprefix("column_"))]


def _typed(values: Any, element: int) -> Array:
    onnx = needed("onnx", "onnx")
    values = np.asarray(values)
    if element == onnx.TensorProto.STRING:
        return np.frompyfunc(lambda v: "" if is_missing(v) else str(v), 1, 1)(values.astype(object))
    if values.dtype.kind == "O":
        values = np.frompyfunc(lambda v: np.nan if is_missing(v) else v, 1, 1)(values)
    return np.ascontiguousarray(values.astype(onnx.helper.tensor_dtype_to_np_dtype(element)))


def check(model: Any, proto: Any, X: Any, tasks: Any = None) -> float:
    """Compute the largest difference between a graph, run by onnxruntime, and its model.

    Parameters
    ----------
    model : estimator
        The model that was given to :func:`to_onnx`.
    proto : onnx.ModelProto
    X, tasks
        Rows, as the model takes them; for a ``TableModel`` a table.

    Returns
    -------
    float
        Of probabilities; for regressors of predicted values, relative to the largest. Rows of arrays and pandas
        frames are rounded to the precision of the graph's inputs for the model too.
    """
    runtime = needed("onnxruntime", "onnx")
    session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs = feeds(proto, X, tasks)
    out = dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs), strict=True))
    more = {} if tasks is None else {"tasks": tasks}
    if isinstance(model, TableModel):
        return _table_difference(model, out, Table.of(X), inputs)
    rows = _rounded(X, inputs, _column_kinds(proto))
    if "variable" in out:
        return _relative_difference(out["variable"], model.predict(rows, **more))
    if not any(name.startswith("probabilities") for name in out):
        return _relative_difference(out["decision"], model.decision_function(rows, **more))
    P = model.predict_proba(rows, **more)
    if isinstance(P, list):
        return max(_largest(out[f"probabilities_{t}"] - np.asarray(p)) for t, p in enumerate(P))
    return _largest(out["probabilities"] - np.asarray(P))


def _table_difference(model: TableModel, out: dict[str, Array], table: Table, inputs: dict[str, Array]) -> float:
    """The largest difference from ``predict_table``, with numbers rounded as the inputs round them."""
    numbers = {name: values[:, 0] for name, values in inputs.items() if values.dtype == np.float32}
    answer = model.answer(replace(table, columns={**table.columns, **numbers}))
    if answer.proba is None:
        return _relative_difference(out["variable"], answer.prediction)
    return _largest(out["probabilities"] - answer.proba)


def _rounded(X: Any, inputs: dict[str, Array], kinds: dict[str, str]) -> Any:
    """Rows with the rounding of the inputs."""
    if not _has_names(X):
        return inputs["X"].astype(float) if "X" in inputs else X
    if not hasattr(X, "assign"):
        return X
    table = inputs.get("X")
    fed = dict(zip(X.columns, table.T, strict=True)) if table is not None and table.shape[1] > 1 else {}
    some = [name for name, v in inputs.items() if v.ndim == 2 and name in X.columns and kinds.get(name) != "date"]
    fed |= {name: inputs[name][:, 0] for name in some}
    return X.assign(**{name: values.astype(float) for name, values in fed.items() if values.dtype.kind == "f"})


def _relative_difference(values: Array, expected: Any) -> float:
    expected = np.asarray(expected, dtype=float)
    return _largest(values - expected) / max(_largest(expected), np.finfo(float).tiny)


def _largest(values: Array) -> float:
    return float(np.abs(values).max(initial=0))
