"""Predictions for rows that come by blocks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from inspect import signature
from typing import Any

import numpy as np

from leastwise.streaming.blocks import Array, Block, Blocks
from leastwise.streaming.errors import StreamError
from leastwise.streaming.opening import has_names, open_blocks


def predict_blocks(model: Any, source: Any, method: str = "predict_proba", **opening: Any) -> Iterator[Array]:
    """What a model says of every block, one after the other.

    Parameters
    ----------
    model : fitted estimator
        Where it knows the names of its inputs and the blocks have names, columns are matched by them; of files and
        tables no other columns are read.
    source : Blocks
        Or what :func:`open_blocks` makes blocks of.
    method : str, default="predict_proba"
    **opening
        For :func:`open_blocks`: ``task=`` and others.

    Yields
    ------
    ndarray
        One row for every row of the block. Tasks of the blocks are passed on where the method takes them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from leastwise import LSPC
    >>> from leastwise.streaming import predict_blocks
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LSPC(random_state=0).fit(X, y)
    >>> [P.shape for P in predict_blocks(model, X, block_rows=100)]
    [(100, 3), (50, 3)]
    """
    if not hasattr(model, method):
        raise ValueError(f"{type(model).__name__} has no method {method!r}.")
    known = getattr(model, "feature_names_in_", None)
    if known is not None and getattr(model, "task_column", None) is None and has_names(source):
        opening.setdefault("features", list(known))  # there may be more columns: the target, ids
    return _answers(getattr(model, method), known, open_blocks(source, **opening))


def _answers(call: Any, known: Array | None, blocks: Blocks) -> Iterator[Array]:
    tasks = "tasks" in signature(call).parameters
    names = getattr(blocks, "names", None)
    for block in blocks:
        X = block.X if known is None or names is None else block.X[:, _order(list(known), names, block)]
        more = {"tasks": block.tasks} if tasks and block.tasks is not None else {}
        with warnings.catch_warnings():
            if names is not None:  # the names have been compared here
                warnings.filterwarnings("ignore", message="X does not have valid feature names")
            answer = call(X, **more)
        yield answer


def _order(known: list, names: list[str], block: Block) -> Any:
    """Where the columns stand that the model was trained on."""
    if known == names:
        return slice(None)
    lacking = [name for name in known if name not in names]
    if lacking:
        raise StreamError(
            f"{block.where}: there is no column {lacking[0]!r}, which the model was trained on.",
            where=block.where,
            column=lacking[0],
        )
    return np.array([names.index(name) for name in known])
