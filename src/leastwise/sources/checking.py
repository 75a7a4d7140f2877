"""Every block is checked the same way, wherever it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.sources.blocks import BESIDE, Array, Block, Place, Source, StreamError, fault

_KINDS = {"sample_weight": "weight", "tasks": "task", "groups": "group", "y": "target"}


class CheckedBlocks:
    """The blocks of a source, each checked, and all of them alike."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._begun = False
        self._like: tuple | None = None
        self.repeatable = source.repeatable
        self.n_rows = source.n_rows
        self.names = source.names

    def __iter__(self) -> Iterator[Block]:
        if self._begun and not self.repeatable:
            raise StreamError(
                "These blocks come from an iterator and have been gone through: give a function that makes the "
                "iterator anew, or keep them on disk by leastwise.sources.Spool.keep."
            )
        self._begun = True
        return self._blocks()

    def _blocks(self) -> Iterator[Block]:
        rows = 0
        for place, raw in self._source.pieces():
            self.names = self._source.names  # an iterator of tables has them from its first one on
            block = checked(place, raw, self.names)
            if not len(block):
                continue
            self._check_alike(block)
            rows += len(block)
            yield block
        if not rows:
            raise StreamError("The stream has no rows.")
        if self.n_rows is not None and rows != self.n_rows:
            raise StreamError(
                f"The stream had {rows} rows this time, {self.n_rows} were expected: it must be the same every time."
            )
        self.n_rows = rows

    def _check_alike(self, block: Block) -> None:
        like = (block.X.shape[1], *(None if v is None else v.shape[1:] for v in _beside(block).values()))
        if self._like is None:
            self._like = like
        elif like[0] != self._like[0]:
            raise StreamError(
                f"{block.where}: X has {like[0]} columns; in blocks before it had {self._like[0]}.", where=block.where
            )
        elif like != self._like:
            name = next(n for n, a, b in zip(BESIDE, like[1:], self._like[1:], strict=True) if a != b)
            raise StreamError(
                f"{block.where}: {name} is not as in blocks before: there in one and not in another, or with another "
                "number of columns.",
                where=block.where,
            )


def _beside(block: Block) -> dict[str, Any]:
    return {name: getattr(block, name) for name in BESIDE}


def checked(place: Place, block: Block, names: list[str] | None) -> Block:
    """The block with numbers of float32 or float64, or an error that names the row and the column."""
    where = place.tell(int(np.shape(block.X)[0]) if np.ndim(block.X) or sparse.issparse(block.X) else 0)
    X = numbers(block.X, where)
    beside = {name: _aligned(value, name, X.shape[0], where) for name, value in _beside(block).items()}
    block = Block(X, **beside, where=where)
    _check_finite(place, X, names)
    for name in BESIDE:
        _check_present(place, getattr(block, name), name)
    if block.sample_weight is not None:
        block = replace(block, sample_weight=_weights(place, block.sample_weight))
    return block


def numbers(X: Any, where: str) -> Any:
    """Two-dimensional, of float32 if it was, else of float64: as ``fit`` does it."""
    if not sparse.issparse(X):
        X = np.asarray(X)
    if X.ndim != 2:
        raise StreamError(
            f"{where}: X has shape {X.shape}: give rows and columns, or target= the name of a column of a table.",
            where=where,
        )
    if X.dtype.kind not in "biuf":
        raise StreamError(
            f"{where}: X is of type {X.dtype}, not of numbers: encode it first (TableModel does that in memory).",
            where=where,
        )
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    return X.tocsr().astype(dtype, copy=False) if sparse.issparse(X) else np.asarray(X, dtype=dtype)


def _aligned(value: Any, name: str, n: int, where: str) -> Array | None:
    if value is None:
        return None
    value = _listed(value) if isinstance(value, list) else np.asarray(value)
    allowed = (1, 2) if name == "y" else (1,)
    if value.ndim not in allowed or len(value) != n:
        raise StreamError(f"{where}: {name} has shape {value.shape}; X has {n} rows.", where=where)
    return value


def _listed(values: list) -> Array:
    """Numbers and text as such; a mixture, which numpy would make text of, as objects."""
    array = np.asarray(values) if len({type(v) for v in values}) <= 1 else None
    if array is None or array.dtype.kind not in "biufUM":
        array = np.empty(len(values), dtype=object)
        array[:] = values
    return array


def _check_finite(place: Place, X: Any, names: list[str] | None) -> None:
    values = X.data if sparse.issparse(X) else X
    with np.errstate(all="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all():
            return
    if sparse.issparse(X):
        k = int(np.argmin(np.isfinite(X.data)))
        row, column = int(np.searchsorted(X.indptr, k, side="right")) - 1, int(X.indices[k])
        value = X.data[k]
    else:
        row, column = (int(i) for i in np.argwhere(~np.isfinite(X))[0])
        value = X[row, column]
    what = "a missing value (NaN)" if np.isnan(value) else f"{value}"
    raise at(
        place, row, f"here is {what}: fill or drop such rows before.", names[column] if names else f"X[:, {column}]"
    )


def _check_present(place: Place, value: Array | None, name: str) -> None:
    """One target, task, group or weight for every row; of several targets some may be unknown."""
    if value is None or value.ndim == 2 or value.dtype.kind not in "fOM":
        return
    gaps = (
        np.fromiter((v is None or v != v for v in value), dtype=bool, count=len(value))
        if value.dtype.kind == "O"
        else np.isnat(value)
        if value.dtype.kind == "M"
        else ~np.isfinite(value)
    )
    if gaps.any():
        row = int(np.argmax(gaps))
        raise at(place, row, f"the {_KINDS[name]} is {value[row]}: every row must have one.", None)


def _weights(place: Place, weights: Array) -> Array:
    if weights.dtype.kind not in "biuf":
        raise StreamError(f"{place.source}: weights are of type {weights.dtype}, not numbers.", where=place.source)
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise at(place, row, f"the weight is {weights[row]}: weights are 0 or more.", None)
    return weights.astype(np.float64, copy=False)


def at(place: Place, row: int, reason: str, column: Any) -> StreamError:
    """The error about one row of a block."""
    number = place.first + row
    line = place.line(number) if place.line else None
    return fault(reason, place.source, (number, number), column, line)
