"""Predictions for rows that come by blocks.

Predictions for a stream, written to a file as they come.
"""

from __future__ import annotations

import csv
import io
import os
import warnings
from collections.abc import Iterator
from inspect import signature
from typing import Any

import numpy as np

from leastwise.sources.blocks import Array, Block, Blocks, StreamError
from leastwise.sources.opening import has_names, open_blocks
from leastwise.utils.atomic_files import write_atomically
from leastwise.utils.optional import frames


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
    >>> from leastwise.sources import predict_blocks
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


def write_predictions(model: Any, source: Any, path: Any, method: str = "predict_proba", **opening: Any) -> int:
    """Write what a model says of every row, in memory that does not grow with the rows.

    The file is there as a whole or not at all: it is written beside its place and moved there after the last block.

    Parameters
    ----------
    model : fitted estimator
    source : Blocks
        Or what :func:`open_blocks` makes blocks of.
    path : path
        Of the file to write, ending in .csv or .parquet (extra ``frames``).
    method : str, default="predict_proba"
        With several columns these are named by the classes, as ``p_fault``; a single one is ``prediction``.
    **opening
        For :func:`open_blocks`.

    Returns
    -------
    int
        Rows that were written.
    """
    path = os.fspath(path)
    forms = {".csv": _text, ".parquet": _parquet}
    ending = os.path.splitext(path)[1].lower()
    if ending not in forms:
        raise ValueError(f"{path}: the ending {ending!r} is not one of {list(forms)}.")
    answers = _Counted(predict_blocks(model, source, method, **opening))
    write_atomically(path, forms[ending](answers, getattr(model, "classes_", None)))
    return answers.rows


class _Counted:
    def __init__(self, answers: Iterator[Array]) -> None:
        self.answers, self.rows = answers, 0

    def __iter__(self) -> Iterator[Array]:
        for answer in self.answers:
            self.rows += len(answer)
            yield np.asarray(answer)


def _columns(answer: Array, classes: Any) -> dict[str, Array]:
    """The columns of an answer, by name."""
    if answer.ndim == 1:
        return {"prediction": answer}
    named = isinstance(classes, np.ndarray) and len(classes) == answer.shape[1]
    names = [f"p_{c}" for c in classes] if named else [f"prediction_{k}" for k in range(answer.shape[1])]
    return {name: answer[:, k] for k, name in enumerate(names)}


def _text(answers: _Counted, classes: Any) -> Iterator[bytes]:
    for k, answer in enumerate(answers):
        columns, text = _columns(answer, classes), io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if k == 0:
            writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
        yield text.getvalue().encode()


class _Sink(io.RawIOBase):
    """Bytes on their way from the writer of pyarrow to the file."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.parts.append(bytes(data))
        return len(data)

    def drain(self) -> bytes:
        whole = b"".join(self.parts)
        self.parts.clear()
        return whole


def _parquet(answers: _Counted, classes: Any) -> Iterator[bytes]:
    pa, pq = frames("pyarrow"), frames("pyarrow.parquet")
    sink, writer = _Sink(), None
    for answer in answers:
        table = pa.table(_columns(answer, classes))
        writer = writer or pq.ParquetWriter(sink, table.schema)
        writer.write_table(table.cast(writer.schema))
        yield sink.drain()
    if writer is not None:
        writer.close()
        yield sink.drain()
