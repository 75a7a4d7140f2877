"""Blocks from iterators: of blocks, of tuples of arrays, of tables.

One way to open all sources.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.sources.arrays import ArraySource, DatasetSource, LazySource, PairSource, TableSource, names_of
from leastwise.sources.blocks import BESIDE, Block, Blocks, Place, Source, StreamError, rows_per_block
from leastwise.sources.checking import CheckedBlocks
from leastwise.sources.columns import columns_of
from leastwise.sources.files import FileSource, ending, paths_of
from leastwise.sources.roles import Layout, Roles, layout_of, roles_of

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


def open_blocks(
    source: Any,
    y: Any = None,
    *,
    target: Any = None,
    features: Any = None,
    weight: Any = None,
    task: Any = None,
    group: Any = None,
    block_rows: int | None = None,
) -> Blocks:
    """Blocks of rows from arrays, tables, files or iterators, in memory that does not grow with the rows.

    Parameters
    ----------
    source : array, table, path, or iterator
        * an array, a memory map, a sparse matrix (with ``y``);
        * a table of pandas, polars or pyarrow, or a mapping from names to columns (with ``target`` or ``y``);
        * the path of a file, a pattern such as ``"sales/*.parquet"``, a folder, or a list of paths: Parquet, Arrow
          (IPC, Feather), CSV and TSV with a header (also .gz), by pyarrow (extra ``frames``); .npy files, with
          ``y`` the path of another one, or as a list of pairs;
        * a dataset of pyarrow or a lazy frame of polars;
        * an iterator that yields :class:`Block`, ``(X, y)``, ``(X, y, sample_weight)``, mappings with "X", "y",
          "sample_weight", "tasks", "groups", or tables; or a function that returns such an iterator, so that the
          rows can be gone through again.
    y : array or path of a .npy file, optional
        Targets, where they are no columns.
    target : str or list of str, optional
        Name of the column with the targets; a list gives y several columns, in which unknown values are NaN.
    features : list of str, optional
        Names of the inputs, by default all other columns; they must hold numbers or booleans.
    weight, task, group : str or array, optional
        Names of columns, or arrays where the source is an array.
    block_rows : int, optional
        Rows of a block at most; by default so many that a block has about 32 MB of numbers.

    Returns
    -------
    Blocks
        Nothing is read yet but the header of the first file.

    Raises
    ------
    StreamError
        Here or while blocks are read; with the file, the rows and the column.

    Examples
    --------
    >>> import numpy as np
    >>> from leastwise.sources import open_blocks
    >>> X, y = np.arange(10.0).reshape(5, 2), np.array([0, 1, 0, 1, 1])
    >>> for block in open_blocks(X, y, block_rows=2):
    ...     print(block.where, block.y)
    X, rows 0 to 1 [0 1]
    X, rows 2 to 3 [0 1]
    X, row 4 [1]
    """
    rows_per_block(block_rows, 1)
    arrays, named = _arrays_and_names({"weight": weight, "task": task, "group": group})
    roles = roles_of(target, features, named["weight"], named["task"], named["group"])
    beside = {"y": y, "sample_weight": arrays["weight"], "tasks": arrays["task"], "groups": arrays["group"]}
    if y is not None and target is not None:
        raise StreamError("y and target= are both given: the targets are an array or a column, not both.")
    if isinstance(source, Blocks):
        _nothing_else(roles, beside, "blocks that are open already")
        return source
    return CheckedBlocks(_source(source, roles, beside, block_rows))


def has_names(source: Any) -> bool:
    """Whether a source has columns by name: files but .npy, tables, datasets, lazy frames."""
    paths = _paths(source)
    if paths is not None:
        pairs = isinstance(paths, list) and any(_is_pair(p) for p in paths)
        return not pairs and not any(ending(path) == ".npy" for path in paths_of(paths))
    lazy = hasattr(source, "get_fragments") or hasattr(source, "collect_schema")
    return lazy or columns_of(source) is not None


def _arrays_and_names(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Names of columns apart from arrays."""
    names = {key: v if isinstance(v, str) or np.ndim(v) == 0 else None for key, v in given.items()}
    return {key: v if names[key] is None else None for key, v in given.items()}, names


def _source(source: Any, roles: Roles, beside: dict[str, Any], block_rows: int | None) -> Source:
    paths = _paths(source)
    if paths is not None:
        return _files(paths, roles, beside, block_rows)
    if hasattr(source, "get_fragments"):
        _nothing_else(Roles(), beside, "a dataset")
        return DatasetSource(source, roles, block_rows)
    if hasattr(source, "collect_schema") and not hasattr(source, "get_column"):
        _nothing_else(Roles(), beside, "a lazy frame")
        return LazySource(source, roles, block_rows)
    if hasattr(source, "__dask_graph__"):
        raise StreamError("This is a collection of dask: give its partitions by an iterator, or fit it as it is.")
    columns = columns_of(source)
    if columns is not None:
        return TableSource(source, columns, layout_of(columns.schema(source), roles, "the table"), beside, block_rows)
    if sparse.issparse(source) or hasattr(source, "__array__"):
        _nothing_else(roles, {}, "an array, which has no names of columns")
        X = source if sparse.issparse(source) or isinstance(source, np.ndarray) else np.asarray(source)
        return ArraySource(X, beside, block_rows)
    _nothing_else(Roles(), beside, "an iterator, which has to yield them")
    return _iterator(source, roles, block_rows)


def _iterator(source: Any, roles: Roles, block_rows: int | None) -> Source:
    if callable(source) and not isinstance(source, Iterable):
        return IteratorSource(source, roles, block_rows, repeatable=True)
    if isinstance(source, tuple):  # one block
        return IteratorSource(lambda: [source], roles, block_rows, repeatable=True)
    if isinstance(source, Iterable):
        again = iter(source) is not source
        return IteratorSource(lambda: source, roles, block_rows, repeatable=again)
    raise StreamError(
        f"{type(source).__name__} is no source of rows: give an array, a table, the path of a file, or an iterator "
        "of blocks."
    )


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike)


def _paths(source: Any) -> Any:
    """A path, a list of paths, or pairs of them; None for anything else."""
    if _is_path(source):
        return source
    listed = isinstance(source, list | tuple) and len(source) > 0
    if listed and all(_is_path(p) or _is_pair(p) for p in source):
        return list(source) if isinstance(source, list) or not _is_pair(source) else [source]
    return None


def _is_pair(value: Any) -> bool:
    paths = isinstance(value, tuple) and len(value) == 2 and all(_is_path(p) for p in value)
    return paths and all(os.fspath(p).endswith(".npy") for p in value)


def _files(paths: Any, roles: Roles, beside: dict[str, Any], block_rows: int | None) -> Source:
    pairs = [p for p in paths if _is_pair(p)] if isinstance(paths, list) else []
    if pairs:
        _nothing_else(roles, beside, "pairs of .npy files")
        if len(pairs) < len(paths):
            raise StreamError("Pairs of .npy files and other files do not go together in one list.")
        return PairSource([(os.fspath(x), os.fspath(y)) for x, y in pairs], block_rows)
    found = paths_of(paths)
    if all(ending(path) == ".npy" for path in found):
        return _numpy_file(found, roles, beside, block_rows)
    _nothing_else(Roles(), beside, "files: name the columns by target=, weight=, task=, group=")
    if any(ending(path) == ".npy" for path in found):
        raise StreamError(".npy files and files with names of columns do not go together in one list.")
    return FileSource(found, roles, block_rows)


def _numpy_file(found: list[str], roles: Roles, beside: dict[str, Any], block_rows: int | None) -> Source:
    _nothing_else(roles, beside | {"y": None}, ".npy files, which have no names of columns")
    y = beside["y"]
    if len(found) == 1 and (y is None or _is_path(y)):
        return PairSource([(found[0], None if y is None else os.fspath(y))], block_rows)
    if y is None:
        return PairSource([(path, None) for path in found], block_rows)
    raise StreamError("Give .npy files as pairs, [(X, y), ...], or one as source and another one as y.")


def _nothing_else(roles: Roles, beside: dict[str, Any], what: str) -> None:
    given = [key for key, value in beside.items() if value is not None]
    asked = [*roles.beside, *(roles.features or ())]
    if given or asked:
        words = f"arrays for {', '.join(given)}" if given else f"the columns {asked}"
        raise StreamError(f"{words} cannot be given with {what}.")
