"""Blocks from iterators: of blocks, of tuples of arrays, of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.streaming.arrays import ArraySource
from leastwise.streaming.blocks import BESIDE, Block, Place, Source
from leastwise.streaming.columns import columns_of
from leastwise.streaming.errors import StreamError
from leastwise.streaming.roles import Layout, Roles, layout_of
from leastwise.streaming.tables import TableSource, names_of

_ORDER = ("y", "sample_weight")


class IteratorSource:
    """What an iterator yields, or one that a function makes anew for every pass."""

    n_rows: int | None = None

    def __init__(self, make: Callable[[], Iterable], roles: Roles, block_rows: int | None, repeatable: bool) -> None:
        self.make, self.roles, self.block_rows = make, roles, block_rows
        self.repeatable = repeatable
        self.names: list[str] | None = None
        self._layout: Layout | None = None
        self._targets: list | None = None

    def pieces(self) -> Iterator[tuple[Place, Block]]:
        """Every item, cut where it is too large for one block."""
        made = self.make()
        if not isinstance(made, Iterable):
            raise StreamError(f"The function returned {type(made).__name__}: it must return an iterator of blocks.")
        items, number = iter(made), 0
        while True:
            try:
                item = next(items)
            except StopIteration:
                return
            except Exception as error:
                error.add_note(f"It was raised while block {number} of the stream was made.")
                raise
            yield from self._source(item, f"block {number}").pieces()
            number += 1

    def _source(self, item: Any, name: str) -> Source:
        if isinstance(item, Block):
            beside = {key: getattr(item, key) for key in BESIDE}
            return self._arrays(item.X, beside, item.where or name)
        if isinstance(item, Mapping) and "X" in item:
            return self._named(item, name)
        columns = columns_of(item)
        if columns is not None:
            return self._table(item, columns, name)
        if isinstance(item, tuple) or (isinstance(item, list) and item and np.ndim(item[0]) == 2):
            return self._tuple(tuple(item), name)
        return self._arrays(item, {}, name)

    def _arrays(self, X: Any, beside: dict, name: str) -> Source:
        if self.roles != Roles():
            asked = [*self.roles.beside, *(self.roles.features or ())]
            raise StreamError(f"{name}: it is an array, and has no columns with the names {asked}.", where=name)
        return ArraySource(_matrix(X, name), beside, self.block_rows, name, whole=True)

    def _table(self, table: Any, columns: Any, name: str, beside: dict | None = None) -> Source:
        schema = columns.schema(table)
        if self._layout is None:
            self._layout = layout_of(schema, self.roles, name)
            self.names = names_of(self._layout)
        else:
            self._layout.check(schema, name)
        return TableSource(table, columns, self._layout, beside or {}, self.block_rows, name, whole=True)

    def _named(self, item: Mapping, name: str) -> Source:
        strange = [key for key in item if key not in ("X", *BESIDE)]
        if strange:
            raise StreamError(f"{name}: {strange[0]!r} is not one of {['X', *BESIDE]}.", where=name)
        return self._paired(item["X"], {key: item.get(key) for key in BESIDE}, name)

    def _tuple(self, item: tuple, name: str) -> Source:
        if not 1 <= len(item) <= 3:
            raise StreamError(
                f"{name}: a tuple of {len(item)} parts: give (X, y), (X, y, sample_weight), or a Block.", where=name
            )
        return self._paired(item[0], dict(zip(_ORDER, item[1:], strict=False)), name)

    def _ordered(self, y: Any, name: str) -> Any:
        """Targets with names, in the order of the first ones."""
        if not hasattr(y, "columns") or not hasattr(y, "to_numpy"):
            return y
        names = list(y.columns)
        self._targets = names if self._targets is None else self._targets
        if set(names) != set(self._targets):
            raise StreamError(f"{name}: y has the columns {names}; the first one had {self._targets}.", where=name)
        return y if names == self._targets else y[self._targets]

    def _paired(self, X: Any, beside: dict[str, Any], name: str) -> Source:
        beside = {**beside, "y": self._ordered(beside.get("y"), name)}
        columns = None if isinstance(X, Mapping) else columns_of(X)
        if columns is not None:
            return self._table(X, columns, name, beside)
        return self._arrays(X, beside, name)


def _matrix(X: Any, name: str) -> Any:
    if sparse.issparse(X) or isinstance(X, np.ndarray):
        return X
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise StreamError(f"{name}: X is no array ({error}).", where=name) from error
    if array.dtype.kind not in "biuf" or array.ndim != 2:
        raise StreamError(
            f"{name}: {type(X).__name__} is no block: give a Block, (X, y), (X, y, sample_weight), a mapping or a "
            "table with target=.",
            where=name,
        )
    return array
