"""Predictions block by block, returned or written to a file."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from inspect import signature
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from leastwise.sources.blocks import Array, Block, Blocks, StreamError
from leastwise.sources.formats.csv import write_csv
from leastwise.sources.opening import has_names, open_blocks
from leastwise.utils.atomic_files import write_atomically
from leastwise.utils.optional import frames
from leastwise.utils.unwrap import core, layers


def predict_blocks(model: Any, source: Any, method: str = "predict_proba", **opening: Any) -> Iterator[Array]:
    """Predict block by block.

    Parameters
    ----------
    model : fitted estimator
        If model and blocks have column names, columns are matched by name; other columns of files and tables are
        not read.
    source : Blocks
        Or any source of :func:`open_blocks`.
    method : str, default="predict_proba"
    **opening
        Arguments of :func:`open_blocks`, such as ``task=``.

    Yields
    ------
    ndarray
        One row for each row of the block. Tasks of the blocks are passed on if the method takes them.

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
    places = _category_places(model)
    if places:
        names = places if known is None else [known[j] for j in places]
        there = opening.get("features")  # one that is absent is an error, which the first block raises
        opening.setdefault("categories", [name for name in names if there is None or name in there])
    return _predictions(getattr(model, method), known, open_blocks(source, **opening))


def _category_places(model: Any) -> list[int]:
    """Columns that the model takes as categories; those of a model inside a pipeline are not those of the source."""
    if any(isinstance(layer, Pipeline) for layer in layers(model)) or getattr(core(model), "task_column", None):
        return []
    return [j for j, values in enumerate(getattr(core(model), "categories_", [])) if values is not None]


def _predictions(call: Any, known: Array | None, blocks: Blocks) -> Iterator[Array]:
    tasks = "tasks" in signature(call).parameters
    names = getattr(blocks, "names", None)
    for block in blocks:
        X = block.X if known is None or names is None else block.X[:, _order(list(known), names, block)]
        more = {"tasks": block.tasks} if tasks and block.tasks is not None else {}
        with warnings.catch_warnings():
            if names is not None:  # the names have been compared here
                warnings.filterwarnings("ignore", message="X does not have valid feature names")
            predicted = call(X, **more)
        yield predicted


def _order(known: list, names: list[str], block: Block) -> Any:
    """The positions of the columns that the model was trained on."""
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
    """Write predictions to a file, in memory that does not grow with the rows.

    The file is complete or absent: it is written under a temporary name and renamed after the last block.

    Parameters
    ----------
    model : fitted estimator
    source : Blocks
        Or any source of :func:`open_blocks`.
    path : path
        The file to write, with the extension .csv or .parquet (extra ``frames``).
    method : str, default="predict_proba"
        Several columns are named by the classes, such as ``p_fault``; a single one is ``prediction``.
    **opening
        Arguments of :func:`open_blocks`.

    Returns
    -------
    int
        Number of rows written.
    """
    path = os.fspath(path)
    writers = {".csv": _csv_parts, ".parquet": _parquet_parts}
    extension = os.path.splitext(path)[1].lower()
    if extension not in writers:
        raise ValueError(f"{path}: the extension {extension!r} is not one of {list(writers)}.")
    predictions = _Counted(predict_blocks(model, source, method, **opening))
    write_atomically(path, writers[extension](predictions, getattr(model, "classes_", None)))
    return predictions.rows


class _Counted:
    """Predictions, with the number of rows so far."""

    def __init__(self, predictions: Iterator[Array]) -> None:
        self.predictions, self.rows = predictions, 0

    def __iter__(self) -> Iterator[Array]:
        for predicted in self.predictions:
            self.rows += len(predicted)
            yield np.asarray(predicted)


def _columns(predicted: Array, classes: Any) -> dict[str, Array]:
    """The columns of predictions, by name."""
    if predicted.ndim == 1:
        return {"prediction": predicted}
    named = isinstance(classes, np.ndarray) and len(classes) == predicted.shape[1]
    names = [f"p_{c}" for c in classes] if named else [f"prediction_{k}" for k in range(predicted.shape[1])]
    return {name: predicted[:, k] for k, name in enumerate(names)}


def _csv_parts(predictions: _Counted, classes: Any) -> Iterator[bytes]:
    for k, predicted in enumerate(predictions):
        yield write_csv(_columns(predicted, classes), ",", header=k == 0).encode()


class _Sink(io.RawIOBase):
    """Collects the bytes that pyarrow writes."""

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


def _parquet_parts(predictions: _Counted, classes: Any) -> Iterator[bytes]:
    pa, pq = frames("pyarrow"), frames("pyarrow.parquet")
    sink, writer = _Sink(), None
    for predicted in predictions:
        table = pa.table(_columns(predicted, classes))
        writer = writer or pq.ParquetWriter(sink, table.schema)
        writer.write_table(table.cast(writer.schema))
        yield sink.drain()
    if writer is not None:
        writer.close()
        yield sink.drain()
