"""What to feed a graph with, and how far it is from the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from leastwise.onnx._categories import is_missing
from leastwise.onnx._tables import cells
from leastwise.tables import Table, TableModel
from leastwise.utils.optional import needed

Array = np.ndarray


def feeds(proto: Any, X: Any, tasks: Any = None) -> dict[str, Array]:
    """Rows as the inputs of a graph, for ``onnxruntime.InferenceSession.run``.

    Parameters
    ----------
    proto : onnx.ModelProto
        From :func:`to_onnx`.
    X : array-like, frame or sparse matrix of shape (n, n_features), or table
        Rows, as the model takes them. Text that is missing becomes "".
    tasks : array-like of shape (n,) or a single id, optional
        Tasks of the rows, for models that take ``tasks=``.
    """
    kinds = _kinds(proto)
    table = _table(X) if kinds else None
    X = X.toarray() if hasattr(X, "toarray") else X if _has_names(X) else np.asarray(X)
    fed = {}
    for given in proto.graph.input:
        kind, shape = given.type.tensor_type.elem_type, given.type.tensor_type.shape.dim
        if table is not None and given.name in kinds:
            fed[given.name] = _typed(cells(table, given.name, kinds[given.name]), kind)[:, None]
        elif len(shape) == 1:
            fed[given.name] = _typed(_ids(tasks, len(X if table is None else table)), kind)
        elif given.name == "X" and shape[1].dim_value == X.shape[1]:
            fed[given.name] = _typed(X, kind)
        else:
            fed[given.name] = _typed(_column(X, given.name), kind)[:, None]
    return fed


def _kinds(proto: Any) -> dict[str, str]:
    """What the inputs of a table hold."""
    return next((json.loads(p.value) for p in proto.metadata_props if p.key == "columns"), {})


def _has_names(X: Any) -> bool:
    return isinstance(X, Mapping) or hasattr(X, "columns") or hasattr(X, "column_names")


def _table(X: Any) -> Table:
    return Table.of(X if _has_names(X) else {f"column_{j}": column for j, column in enumerate(np.asarray(X).T)})


def _ids(tasks: Any, n: int) -> Array:
    if tasks is None:
        raise ValueError("This graph has the input 'tasks': give tasks= with an id for every row, or a single one.")
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
    return np.ascontiguousarray(values.astype(onnx.helper.tensor_dtype_to_np_dtype(element)))


def check(model: Any, proto: Any, X: Any, tasks: Any = None) -> float:
    """The largest difference between a graph, run by onnxruntime, and its model, on these rows.

    Parameters
    ----------
    model : estimator
        That was given to :func:`to_onnx`.
    proto : onnx.ModelProto
    X, tasks
        Rows, as the model takes them; for a ``TableModel`` a table.

    Returns
    -------
    float
        Of probabilities; for regressors of predicted values, in units of the largest. The model is given the rows of
        arrays and pandas frames in the precision of the graph's inputs, so that rounding them does not count.
    """
    runtime = needed("onnxruntime", "onnx")
    session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs = feeds(proto, X, tasks)
    out = dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs), strict=True))
    more = {} if tasks is None else {"tasks": tasks}
    if isinstance(model, TableModel):
        return _check_table(model, out, Table.of(X), inputs)
    rows = _rounded(X, inputs, _kinds(proto))
    if "variable" in out:
        wanted = np.asarray(model.predict(rows, **more), dtype=float)
        return _largest(out["variable"] - wanted) / max(_largest(wanted), np.finfo(float).tiny)
    if not any(name.startswith("probabilities") for name in out):
        wanted = np.asarray(model.decision_function(rows, **more))
        return _largest(out["decision"] - wanted) / max(_largest(wanted), np.finfo(float).tiny)
    P = model.predict_proba(rows, **more)
    if isinstance(P, list):
        return max(_largest(out[f"probabilities_{t}"] - np.asarray(p)) for t, p in enumerate(P))
    return _largest(out["probabilities"] - np.asarray(P))


def _check_table(model: TableModel, out: dict[str, Array], table: Table, inputs: dict[str, Array]) -> float:
    """The largest difference from what ``predict_table`` says."""
    numbers = {name: values[:, 0] for name, values in inputs.items() if values.dtype == np.float32}
    answer = model.answer(replace(table, columns={**table.columns, **numbers}))
    if answer.proba is None:
        return _largest(out["variable"] - answer.prediction) / max(_largest(answer.prediction), np.finfo(float).tiny)
    return _largest(out["probabilities"] - answer.proba)


def _rounded(X: Any, inputs: dict[str, Array], kinds: dict[str, str]) -> Any:
    """Rows as they were fed."""
    if not _has_names(X):
        return inputs["X"].astype(float) if "X" in inputs else X
    if not hasattr(X, "assign"):
        return X
    table = inputs.get("X")
    fed = dict(zip(X.columns, table.T, strict=True)) if table is not None and table.shape[1] > 1 else {}
    some = [name for name, v in inputs.items() if v.ndim == 2 and name in X.columns and kinds.get(name) != "date"]
    fed |= {name: inputs[name][:, 0] for name in some}
    real = {name: values.astype(float) for name, values in fed.items() if values.dtype.kind == "f"}
    return X.assign(**real)


def _largest(values: Array) -> float:
    return float(np.abs(values).max(initial=0))
