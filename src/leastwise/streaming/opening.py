"""One way to open all sources."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.streaming.arrays import ArraySource, PairSource
from leastwise.streaming.blocks import Blocks, Source, rows_per_block
from leastwise.streaming.checking import CheckedBlocks
from leastwise.streaming.columns import columns_of
from leastwise.streaming.errors import StreamError
from leastwise.streaming.files import FileSource, ending, paths_of
from leastwise.streaming.iterators import IteratorSource
from leastwise.streaming.roles import Roles, layout_of, roles_of
from leastwise.streaming.tables import DatasetSource, LazySource, TableSource


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
    >>> from leastwise.streaming import open_blocks
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
