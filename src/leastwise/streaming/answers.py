"""Predictions for a stream, written to a file as they come."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from leastwise.atomic import write_atomically
from leastwise.extras import frames
from leastwise.streaming.blocks import Array
from leastwise.streaming.predicting import predict_blocks


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
