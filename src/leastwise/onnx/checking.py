"""What to feed a graph with, and how far it is from the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.extras import needed
from leastwise.onnx._categories import is_missing

Array = np.ndarray


def feeds(proto: Any, X: Any, tasks: Any = None) -> dict[str, Array]:
    """Rows as the inputs of a graph, for ``onnxruntime.InferenceSession.run``.

    Parameters
    ----------
    proto : onnx.ModelProto
        From :func:`to_onnx`.
    X : array-like, frame or sparse matrix of shape (n, n_features)
        Rows, as the model takes them. Text that is missing becomes "".
    tasks : array-like of shape (n,) or a single id, optional
        Tasks of the rows, for models that take ``tasks=``.
    """
    X = X.toarray() if hasattr(X, "toarray") else X if hasattr(X, "columns") else np.asarray(X)
    fed = {}
    for given in proto.graph.input:
        kind, shape = given.type.tensor_type.elem_type, given.type.tensor_type.shape.dim
        if len(shape) == 1:
            fed[given.name] = _typed(_ids(tasks, X.shape[0]), kind)
        elif given.name == "X" and shape[1].dim_value == X.shape[1]:
            fed[given.name] = _typed(X, kind)
        else:
            fed[given.name] = _typed(_column(X, given.name), kind)[:, None]
    return fed


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
        Rows, as the model takes them.

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
    rows = _rounded(X, inputs)
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


def _rounded(X: Any, inputs: dict[str, Array]) -> Any:
    """Rows as they were fed."""
    if not hasattr(X, "columns"):
        return inputs["X"].astype(float) if "X" in inputs else X
    table = inputs.get("X")
    fed = dict(zip(X.columns, table.T, strict=True)) if table is not None and table.shape[1] > 1 else {}
    fed |= {name: values[:, 0] for name, values in inputs.items() if values.ndim == 2 and name in X.columns}
    real = {name: values.astype(float) for name, values in fed.items() if values.dtype.kind == "f"}
    return X.assign(**real) if hasattr(X, "assign") else X


def _largest(values: Array) -> float:
    return float(np.abs(values).max(initial=0))
