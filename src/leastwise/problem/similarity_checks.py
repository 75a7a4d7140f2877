"""Similarities of tasks and labels that the user gives: matrices, frames with names, and edges of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.problem.label_coupling import LABEL_SIMILARITIES
from leastwise.problem.similarity import TASK_SIMILARITIES
from leastwise.problem.tasks import Tasks

Array = np.ndarray


def real_numbers(name: str, value: Any) -> Any:
    """Values in double precision, sparse ones in CSR format; the error names the parameter."""
    array = sparse.csr_array(value) if sparse.issparse(value) else np.asarray(value)
    if array.dtype.kind == "O" and all(isinstance(v, Real) for v in array.ravel()):
        array = array.astype(float)
    if array.dtype.kind not in "iufb":
        raise ValueError(f"{name} must hold real numbers; it holds values of type {array.dtype}: {value!r:.80}.")
    return array.astype(float)


def frame_values(frame: Any, names: list, what: str) -> Array:
    """Similarities from a frame, in the order of the names; rows without names are in the order of the columns.

    ``what`` says in errors what the names are: "tasks" or "labels".
    """
    columns = list(frame.columns)
    rows = list(frame.index) if hasattr(frame, "index") else columns
    for side, given in (("row", rows), ("column", columns)):
        lost = [name for name in names if given.count(name) != 1]
        if lost:
            raise ValueError(
                f"similarity has no {side}, or more than one, for the {what} {lost[:10]}; its {side}s are "
                f"{given[:10]}. Name rows and columns by the {what}, or give a matrix in the order of the {what}."
            )
    values = frame.to_numpy()
    if len(values) != len(rows):
        raise ValueError(
            f"similarity has {len(values)} rows and {len(columns)} columns: without names of the rows it must "
            "have one row for every column, in the same order."
        )
    return values[np.ix_([rows.index(name) for name in names], [columns.index(name) for name in names])]


def normalised_similarity(S: Any, names: list) -> Any:
    """Symmetric similarities in units of the largest, with unit diagonal; the errors name two of the names."""
    values = S.data if sparse.issparse(S) else S
    if not (np.isfinite(values) & (values >= 0)).all():
        C = sparse.coo_array(S)
        k = np.argmin(np.isfinite(C.data) & (C.data >= 0))
        raise ValueError(
            f"similarity is {C.data[k]:.6g} between {names[C.row[k]]!r} and {names[C.col[k]]!r}: every value must be "
            "a finite number of 0 or more. Use numpy.maximum(S, 0) to ignore negative ones."
        )
    gap = abs(S - S.T)
    if gap.max() > 1e-8 * S.max():
        C = sparse.coo_array(gap)
        i, j = C.row[C.data.argmax()], C.col[C.data.argmax()]
        raise ValueError(
            f"similarity is not symmetric: {S[i, j]:.6g} from {names[i]!r} to {names[j]!r}, {S[j, i]:.6g} back. Use "
            "(S + S.T) / 2 to make it symmetric."
        )
    S = S - _diagonal(S, S.diagonal())
    S = (S + S.T) / (2 * (S.max() or 1.0))
    return S + _diagonal(S, np.ones(len(names)))


def _diagonal(S: Any, values: np.ndarray) -> Any:
    """A diagonal matrix, sparse if S is. (``diags_array`` needs scipy 1.12.)"""
    return sparse.dia_array((values[None], [0]), shape=S.shape) if sparse.issparse(S) else np.diag(values)


def check_similarity(value: Any, tasks: Tasks) -> Array:
    """Similarities of all pairs of tasks, in units of the largest, from an array or a frame with the ids as names."""
    if hasattr(value, "columns"):
        value = frame_values(value, tasks.ids, "tasks")
    if sparse.issparse(value):
        raise ValueError("similarity is sparse: give similarity.toarray().")
    S = tasks.in_order(real_numbers("similarity", value))
    T = len(tasks)
    if S.shape != (T, T):
        given = f"={value!r}" if S.ndim == 0 else f" has shape {S.shape}"
        raise ValueError(
            f"similarity{given}; for {T} tasks it must be a matrix of shape ({T}, {T}), a frame with the ids as "
            f"names, a callable that returns one, or one of {str(['shared', *TASK_SIMILARITIES])[1:-1]}."
        )
    return normalised_similarity(S, tasks.ids)


def check_label_similarity(value: Any, names: Sequence[Any], T: int) -> Any:
    """Validated similarities of all pairs of labels, divided by the largest.

    Parameters
    ----------
    value : array-like or sparse matrix of shape (T, T), frame, or list of edges
        A frame has the names of the labels for its columns and, if it has an index, rows. Edges are tuples
        ``(label, label)`` or ``(label, label, weight)`` of names; all other pairs have similarity 0.
    names : sequence
        The names of the labels.
    T : int
        Number of labels.

    Returns
    -------
    ndarray, or sparse array for sparse matrices and edges, of shape (T, T)
        Symmetric, in [0, 1], with unit diagonal.
    """
    names = list(names)
    if hasattr(value, "columns"):
        value = frame_values(value, names, "labels")
    elif is_edges(value):
        value = _from_edges(value, names)
    elif hasattr(value, "edges"):
        raise ValueError(
            "similarity is a graph object: give its edges as a list of (label, label, weight) tuples, for example "
            "list(graph.edges(data='weight', default=1))."
        )
    S = real_numbers("similarity", value)
    if S.shape != (T, T):
        given = f"={value!r}" if S.ndim == 0 else f" has shape {S.shape}"
        raise ValueError(
            f"similarity{given}; for {T} labels it must be a matrix of shape ({T}, {T}), dense or sparse, a frame "
            "with the names of the labels, a list of (label, label, weight) tuples, a callable that returns one of "
            f"these, or one of {str(list(LABEL_SIMILARITIES))[1:-1]}."
        )
    S = normalised_similarity(S, names)
    return _with_short_indices(S.tocsr()) if sparse.issparse(S) else S


def _with_short_indices(S: sparse.csr_array) -> sparse.csr_array:
    """The same matrix with 32-bit indices, which ``connected_components`` needs before scipy 1.12."""
    return sparse.csr_array((S.data, S.indices.astype(np.int32), S.indptr.astype(np.int32)), shape=S.shape)


def is_edges(value: Any) -> bool:
    """True if similarities are given as pairs of labels."""
    return isinstance(value, list | tuple) and all(isinstance(edge, tuple) for edge in value)


def _from_edges(edges: list[tuple], names: list) -> sparse.csr_array:
    """The matrix of a graph; an edge counts in both directions."""
    place = {name: t for t, name in enumerate(names)}
    weights: dict[tuple[int, int], float] = {}
    for edge in edges:
        i, j, weight = _check_edge(edge, place)
        if weights.setdefault((i, j), weight) != weight:
            raise ValueError(
                f"similarity has two edges between {edge[0]!r} and {edge[1]!r}, of weights {weights[i, j]:.6g} and "
                f"{weight:.6g}: give one."
            )
        weights[j, i] = weight
    where = np.array(list(weights), dtype=int).reshape(-1, 2).T
    return sparse.csr_array(
        (list(weights.values()), (where[0], where[1])), shape=(len(names), len(names)), dtype=float
    )


def _check_edge(edge: tuple, place: dict) -> tuple[int, int, float]:
    if len(edge) not in (2, 3):
        raise ValueError(
            f"similarity has the edge {edge!r}: edges are (label, label) or (label, label, weight). Give a "
            "matrix as an array, not as a list of tuples."
        )
    unseen = [name for name in edge[:2] if name not in place]
    if unseen:
        raise ValueError(
            f"similarity has the edge {edge!r}, but {unseen[0]!r} is not a label; the labels are {list(place)[:10]}."
        )
    weight = edge[2] if len(edge) == 3 else 1.0
    if not isinstance(weight, Real) or not 0 <= float(weight) < np.inf:
        raise ValueError(f"similarity has the edge {edge!r}: its weight must be a finite number of 0 or more.")
    return place[edge[0]], place[edge[1]], float(weight)
