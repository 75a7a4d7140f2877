"""A fitted model as an ONNX graph."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from leastwise.estimators.abstaining import Abstaining
from leastwise.estimators.base import Classifier, Regressor
from leastwise.estimators.checks import choose
from leastwise.estimators.labels import LabelClassifier
from leastwise.estimators.recalibrated import Recalibrated
from leastwise.onnx._baselines import BASELINES
from leastwise.onnx._calibrators import shifted
from leastwise.onnx._columns import Columns, TextNeeded, column_names, open_columns
from leastwise.onnx._decisions import put_classes, put_labels
from leastwise.onnx._graph import Graph
from leastwise.onnx._models import Said, say
from leastwise.onnx._preprocessing import transformed
from leastwise.onnx._recalibration import recalibrate
from leastwise.onnx._regression import put_values
from leastwise.onnx._sets import put_sets
from leastwise.onnx._wishes import Wishes
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
    """A fitted model as an ONNX graph that says what ``predict_proba`` and ``predict`` say.

    Parameters
    ----------
    model : estimator
        Any estimator of this library, :class:`~leastwise.Recalibrated` or
        :class:`~leastwise.Abstaining`, a pipeline of pre-processing with one at its end, or a
        :class:`~leastwise.tables.TableModel`. Fitted.
    dtype : {"float32", "float64"}, optional
        Of numbers that come in and go out. By default float32; for a ``TableModel``, whose numbers come as they stand
        in a file and are not scaled yet, float64.
    inside : {"float64", "float32"}, default="float64"
        Of weights and all that is computed. "float32" takes half the room, and is what accelerators want; sums of
        kernels with large coefficients of both signs then lose digits, see :func:`leastwise.onnx.check`.
    interval : float, optional
        For regressors: outputs ``lower`` and ``upper`` hold the value with about this probability, as
        ``predict_interval(X, interval, method="jackknife")`` has them.
    class_prior : mapping, array-like or "uniform", optional
        For classifiers: class shares where the graph is used, as in ``predict_proba``.
    coverage : float, optional
        For classifiers: the output ``set`` says which classes cannot be excluded, as ``predict_set(X, coverage)``
        has them.
    name : str, default="leastwise"
        Name of the graph.

    Returns
    -------
    onnx.ModelProto
        Inputs are ``X``, of shape (n, n_features), and ``tasks``, of shape (n,), where the model was fitted with
        ``tasks=``. If a column holds text there is an input of shape (n, 1) for every column instead, with its name;
        a ``TableModel`` has these always, and its task column is one of them. Outputs are ``label`` and
        ``probabilities`` of classifiers, ``accepted`` where they abstain, and ``variable`` of regressors.

    Raises
    ------
    TypeError, ValueError
        For what has no form in ONNX: kernels that are precomputed or functions, ids or classes that are neither text
        nor numbers, other pre-processing.

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

    usual = "float64" if isinstance(model, TableModel) else "float32"
    outer, real = _type("dtype", usual if dtype is None else dtype), _type("inside", inside)
    check_is_fitted(model)
    wishes = Wishes(interval, class_prior, coverage)
    if isinstance(model, TableModel):
        g, model = _of_table(model, real, outer, wishes), model.fitted_
    else:
        names = column_names(model)
        g = _together(model, names, real, outer, wishes) or _apart(model, names, real, outer, wishes)
    return g.model(name, leastwise.__version__, _notes(model, g))


def _type(name: str, value: Any) -> Any:
    return TYPES[choose(name, value if isinstance(value, str) else np.dtype(value).name, TYPES)]


def _together(model: Any, names: list[str], real: Any, outer: Any, wishes: Wishes) -> Graph | None:
    """The graph with one input for all columns; None if one of them is text, or, in a frame, of no use: it may be."""
    g = Graph(real, outer)
    columns = open_columns(g, names, together=True)
    try:
        _write(g, model, columns, wishes)
    except TextNeeded:
        return None
    every = len(columns.places[0][0].used) == len(names)  # type: ignore[union-attr]
    return g if every or not hasattr(model, "feature_names_in_") else None


def _apart(model: Any, names: list[str], real: Any, outer: Any, wishes: Wishes) -> Graph:
    """The graph with an input for each column."""
    g = Graph(real, outer, names)
    _write(g, model, open_columns(g, names, together=False), wishes)
    return _sorted(g, names)


def _sorted(g: Graph, names: list[str]) -> Graph:
    """Inputs in the order of the columns."""
    g.inputs.sort(key=lambda i: names.index(i.name) if i.name in names else len(names))
    return g


def _of_table(model: TableModel, real: Any, outer: Any, wishes: Wishes) -> Graph:
    """The graph with an input for each column that is used, and for the tasks.

    Labels are the predictions, whatever is accepted: ``predict_table`` has both.
    """
    names = [column.name for column in model.columns_]
    g = Graph(real, outer, [column.name for column in model.columns_ if column.features] + [model.task or ""])
    columns = transformed(g, model.encoder_, open_columns(g, names, together=False))
    if model.task:
        g.ids, g.kinds[model.task] = g.input(model.task, object, [1]).squeezed(1), "task"
    _write(g, model.fitted_, columns, replace(wishes, marks=False))
    return _sorted(g, names)


def _write(g: Graph, model: Any, columns: Columns, wishes: Wishes) -> None:
    """Inputs, nodes and outputs of a model."""
    if isinstance(model, Abstaining):
        inner, columns = _unpacked(g, model.estimator_, columns)
        return _put(g, inner, columns, wishes, model)
    inner, columns = _unpacked(g, model, columns)
    if isinstance(inner, Abstaining):
        return _write(g, inner, columns, wishes)
    return _put(g, inner, columns, wishes)


def _unpacked(g: Graph, model: Any, columns: Columns) -> tuple[Any, Columns]:
    """The estimator at the end of pipelines, and the columns that come to it."""
    while isinstance(model, Pipeline | FrozenEstimator):
        if isinstance(model, Pipeline):
            for _, step in model.steps[:-1]:
                columns = transformed(g, step, columns)
        model = model.estimator if isinstance(model, FrozenEstimator) else model.steps[-1][1]
    return model, columns


def _put(g: Graph, model: Any, columns: Columns, wishes: Wishes, abstaining: Any = None) -> None:
    """The outputs of an estimator."""
    wishes.check(model)
    if isinstance(model, Regressor):
        return put_values(g, model, columns, wishes.interval)
    if isinstance(model, Classifier | Recalibrated):
        labels = isinstance(core(model), LabelClassifier)
        said = _said(g, model, columns, wishes.class_prior)
        (put_labels if labels else put_classes)(g, model, said, abstaining, wishes.marks)
        return None if wishes.coverage is None else put_sets(g, model, said, wishes.coverage)
    for kind, put in BASELINES.items():
        if isinstance(model, kind) and abstaining is None:
            return put(g, model, columns)
    raise TypeError(
        f"{type(model).__name__} is no estimator that to_onnx knows: it takes those of leastwise, and pipelines that "
        "end in one. (skl2onnx converts those of scikit-learn.)"
    )


def _said(g: Graph, model: Any, columns: Columns, class_prior: Any) -> Said:
    inner = core(model)
    said = say(g, *_unpacked(g, model.estimator_, columns)) if inner is not model else say(g, model, columns)
    shift = inner._shift(class_prior)
    if isinstance(model, Recalibrated):
        said = recalibrate(g, model, said)
    return said if shift is None else replace(said, P=shifted(g, shift, said.P))


def _notes(model: Any, g: Graph) -> dict[str, str]:
    """What a reader of the file may want to know."""
    inner = core(model)
    notes = {"estimator": type(inner).__name__, "inside": g.real.name}
    for key in ("classes_", "tasks_", "labels_"):
        known = getattr(inner, key, None)
        if known is not None:
            notes[key.rstrip("_")] = json.dumps([np.asarray(k).tolist() for k in known], default=str)
    return notes | ({"columns": json.dumps(g.kinds)} if g.kinds else {})
