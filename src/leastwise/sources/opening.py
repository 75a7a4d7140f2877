"""One function that opens every source of rows, and the table of the kinds of sources.

``SOURCES`` is the only list. A new kind of source is a test of whether an object is one, and a function that opens it
as a :class:`~leastwise.sources.blocks.Source`::

    @register_source("a database query", lambda source: isinstance(source, Query), named=True)
    def open_query(source, roles, beside, block_rows):
        return IteratorSource(source.batches, roles, block_rows, repeatable=True)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.sources.blocks import Blocks, CheckedBlocks, Source, StreamError, rows_per_block
from leastwise.sources.files import FileSource, PairSource, extension, paths_of
from leastwise.sources.frames import check_categories, columns_of, schema_of
from leastwise.sources.layout import Roles, layout_of, roles_of
from leastwise.sources.memory import ArraySource, DatasetSource, IteratorSource, LazySource, TableSource

Opener = Callable[[Any, Roles, dict[str, Any], int | None], Source]


@dataclass(frozen=True)
class SourceKind:
    """A kind of source.

    Attributes
    ----------
    what : str
        For messages, such as "an array".
    matches : callable
        True for objects of this kind.
    open : callable
        ``open(source, roles, beside, block_rows)``: the source, the requested columns, arrays for y,
        sample_weight, tasks and groups or None, and the largest number of rows of a block.
    named : callable
        ``named(source)`` is True if its columns have names.
    """

    what: str
    matches: Callable[[Any], bool]
    open: Opener
    named: Callable[[Any], bool]


#: Kinds of sources that ``open_blocks`` opens; the first one that matches is used.
SOURCES: list[SourceKind] = []


def register_source(what: str, matches: Callable[[Any], bool], named: bool = False) -> Callable[[Opener], Opener]:
    """Decorator that registers a function to open a kind of source, before all kinds registered so far."""

    def add(function: Opener) -> Opener:
        SOURCES.insert(0, SourceKind(what, matches, function, lambda source: named))
        return function

    return add


def open_blocks(
    source: Any,
    y: Any = None,
    *,
    target: Any = None,
    features: Any = None,
    weight: Any = None,
    task: Any = None,
    group: Any = None,
    categories: Any = None,
    block_rows: int | None = None,
) -> Blocks:
    """Open arrays, tables, files or iterators as blocks of rows, in memory independent of the number of rows.

    Parameters
    ----------
    source : array, table, path, or iterator
        * an array, a memory map, a sparse matrix (with ``y``);
        * a table of pandas, polars or pyarrow, or a mapping from names to columns (with ``target`` or ``y``);
        * the path of a file, a pattern such as ``"sales/*.parquet"``, a folder, or a list of paths: Parquet, Arrow
          (IPC, Feather), CSV and TSV with a header (also .gz), through pyarrow (extra ``frames``); .npy files, with
          ``y`` the path of another one, or as a list of pairs;
        * a dataset of pyarrow or a lazy frame of polars;
        * an iterator that yields :class:`Block`, ``(X, y)``, ``(X, y, sample_weight)``, mappings with "X", "y",
          "sample_weight", "tasks", "groups", or tables; or a function that returns such an iterator, so that
          several passes are possible.
    y : array or path of a .npy file, optional
        Targets, if they are not columns.
    target : str or list of str, optional
        The target column; with a list, y has several columns, in which unknown values are NaN.
    features : list of str, optional
        The input columns, by default all other columns; they must be numeric or boolean, or categories.
    weight, task, group : str or array, optional
        Column names, or arrays if the source is an array.
    categories : "from_dtype" or list of names or positions, optional
        Inputs of files and tables that are categories, as for the estimators: X is then
        :class:`leastwise.sources.CodedRows`. None: there are none, and booleans are numbers.
    block_rows : int, optional
        Maximum number of rows of a block; by default about 32 MB of numbers.

    Returns
    -------
    Blocks
        Only the header of the first file has been read yet.

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
    given = {"weight": weight, "task": task, "group": group}
    names = {key: v if isinstance(v, str) or np.ndim(v) == 0 else None for key, v in given.items()}
    arrays = {key: v if names[key] is None else None for key, v in given.items()}
    check_categories(categories)
    roles = roles_of(target, features, names["weight"], names["task"], names["group"], categories)
    beside = {"y": y, "sample_weight": arrays["weight"], "tasks": arrays["task"], "groups": arrays["group"]}
    if y is not None and target is not None:
        raise StreamError("y and target= are both given: the targets are an array or a column, not both.")
    if isinstance(source, Blocks):
        _reject(roles, beside, "blocks that are already open")
        return source
    return CheckedBlocks(_kind_of(source).open(source, roles, beside, block_rows))


def has_names(source: Any) -> bool:
    """True if a source has named columns, such as files other than .npy, tables, datasets, lazy frames."""
    kind = next((kind for kind in SOURCES if kind.matches(source)), None)
    return kind is not None and kind.named(source)


def _kind_of(source: Any) -> SourceKind:
    """The kind of a source; an error if there is none."""
    if hasattr(source, "__dask_graph__"):
        raise StreamError("This is a Dask collection: pass its partitions with an iterator, or fit it directly.")
    for kind in SOURCES:
        if kind.matches(source):
            return kind
    *others, last = (kind.what for kind in SOURCES)
    raise StreamError(f"{type(source).__name__} is not a source of rows: give {', '.join(others)}, or {last}.")


# ------------------------------------------------------------------------- files


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike)


def _is_pair(value: Any) -> bool:
    paths = isinstance(value, tuple) and len(value) == 2 and all(_is_path(p) for p in value)
    return paths and all(os.fspath(p).endswith(".npy") for p in value)


def _paths(source: Any) -> Any:
    """A path, a list of paths, or a list of pairs of paths; None for anything else."""
    if _is_path(source):
        return source
    listed = isinstance(source, list | tuple) and len(source) > 0
    if listed and all(_is_path(p) or _is_pair(p) for p in source):
        return list(source) if isinstance(source, list) or not _is_pair(source) else [source]
    return None


def _has_column_names(source: Any) -> bool:
    paths = _paths(source)
    pairs = isinstance(paths, list) and any(_is_pair(p) for p in paths)
    return not pairs and not any(extension(path) == ".npy" for path in paths_of(paths))


def _open_files(source: Any, roles: Roles, beside: dict[str, Any], block_rows: int | None) -> Source:
    paths = _paths(source)
    pairs = [p for p in paths if _is_pair(p)] if isinstance(paths, list) else []
    if pairs:
        _reject(roles, beside, "pairs of .npy files")
        if len(pairs) < len(paths):
            raise StreamError("Pairs of .npy files and other files cannot be in one list.")
        return PairSource([(os.fspath(x), os.fspath(y)) for x, y in pairs], block_rows)
    found = paths_of(paths)
    if all(extension(path) == ".npy" for path in found):
        return _numpy_source(found, roles, beside, block_rows)
    _reject(Roles(), beside, "files: name the columns with target=, weight=, task=, group=")
    if any(extension(path) == ".npy" for path in found):
        raise StreamError(".npy files and files with column names cannot be in one list.")
    return FileSource(found, roles, block_rows)


def _numpy_source(found: list[str], roles: Roles, beside: dict[str, Any], block_rows: int | None) -> Source:
    _reject(roles, beside | {"y": None}, ".npy files, which have no column names")
    y = beside["y"]
    if len(found) == 1 and (y is None or _is_path(y)):
        return PairSource([(found[0], None if y is None else os.fspath(y))], block_rows)
    if y is None:
        return PairSource([(path, None) for path in found], block_rows)
    raise StreamError("Give .npy files as pairs, [(X, y), ...], or one as source and another one as y.")


# --------------------------------------------------------- datasets, tables, arrays


def _open_dataset(source: Any, roles: Roles, beside: dict[str, Any], block_rows: int | None) -> Source:
    _reject(Roles(), beside, "a dataset")
    return DatasetSource(source, roles, block_rows)


def _open_lazy(source: Any, roles: Roles, beside: dict[str, Any], block_rows: int | None) -> Source:
    _reject(Roles(), beside, "a lazy frame")
    return LazySource(source, roles, block_rows)


def _open_table(source: Any, roles: Roles, beside: dict[str, Any], block_rows: int | None) -> Source:
    columns = columns_of(source)
    assert columns is not None
    layout = layout_of(schema_of(columns, source), roles, "the table")
    return TableSource(source, columns, layout, beside, block_rows)


def _is_array(source: Any) -> bool:
    return sparse.issparse(source) or hasattr(source, "__array__")


def _open_array(source: Any, roles: Roles, beside: dict[str, Any], block_rows: int | None) -> Source:
    _reject(roles, {}, "an array, which has no column names")
    X = source if sparse.issparse(source) or isinstance(source, np.ndarray) else np.asarray(source)
    return ArraySource(X, beside, block_rows)


# --------------------------------------------------------------------- iterators


def _is_iterator(source: Any) -> bool:
    return callable(source) or isinstance(source, Iterable)


def _open_iterator(source: Any, roles: Roles, beside: dict[str, Any], block_rows: int | None) -> Source:
    _reject(Roles(), beside, "an iterator, which must yield them")
    if not isinstance(source, Iterable):
        return IteratorSource(source, roles, block_rows, repeatable=True)
    if isinstance(source, tuple):  # one block
        return IteratorSource(lambda: [source], roles, block_rows, repeatable=True)
    return IteratorSource(lambda: source, roles, block_rows, repeatable=iter(source) is not source)


def _reject(roles: Roles, beside: dict[str, Any], what: str) -> None:
    """An error if columns or arrays are given that this source cannot use."""
    given = [key for key, value in beside.items() if value is not None]
    if given or roles.requested:
        words = f"arrays for {', '.join(given)}" if given else f"the columns {roles.requested}"
        raise StreamError(f"{words} cannot be given with {what}.")


def _always(source: Any) -> bool:
    return True


def _never(source: Any) -> bool:
    return False


SOURCES += [
    SourceKind("the path of a file", lambda source: _paths(source) is not None, _open_files, _has_column_names),
    SourceKind("a dataset of pyarrow", lambda source: hasattr(source, "get_fragments"), _open_dataset, _always),
    SourceKind(
        "a lazy frame of polars",
        lambda source: hasattr(source, "collect_schema") and not hasattr(source, "get_column"),
        _open_lazy,
        _always,
    ),
    SourceKind("a table", lambda source: columns_of(source) is not None, _open_table, _always),
    SourceKind("an array", _is_array, _open_array, _never),
    SourceKind("an iterator of blocks", _is_iterator, _open_iterator, _never),
]
