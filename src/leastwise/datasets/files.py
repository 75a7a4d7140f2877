"""What a data set is made of, and how its files are found, opened and checked.

Nothing is downloaded. Each data set is an :class:`Entry`: what it is, and the :class:`Source` of files, in any of
several public forms, that it can be read from. The entries stand in ``single_task`` and ``multi_task``.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from scipy.io.matlab import MatReadError

Array = np.ndarray

#: How to open a file, by its ending; "" is the file as it is.
OPENERS: dict[str, Callable[..., Any]] = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
#: What the readers raise on files that are cut off or are something else.
BROKEN = (
    ValueError,
    TypeError,
    EOFError,
    OSError,
    KeyError,
    IndexError,
    NotImplementedError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    MatReadError,
)


@dataclass(frozen=True)
class Dataset:
    """A data set in memory.

    Attributes
    ----------
    name : str
    X : ndarray of float of shape (n, d)
        Rows as they are in the files, training rows first.
    y : ndarray of int of shape (n,)
        Classes 0, 1, ...
    is_train : ndarray of bool of shape (n,)
        Whether a row is in the training part of the published split; all True where none is published.
    target_names : tuple of str, optional
        Names of the classes.
    task : ndarray of int of shape (n,), optional
        The task 0, 1, ... of every row; None where the files hold a single task.
    female : ndarray of bool of shape (n,), optional
        For faces: whether the person presents as a woman. A reading of the pictures, not a record of the makers of
        the data; None elsewhere.
    """

    name: str
    X: Array
    y: Array
    is_train: Array
    target_names: tuple[str, ...] | None = None
    task: Array | None = None
    female: Array | None = None


class Part(NamedTuple):
    """Rows of a file as they are read, with labels of that file's own."""

    X: Array
    y: Array
    task: Array | None = None


@dataclass(frozen=True)
class Source:
    """Files that together hold a data set.

    Attributes
    ----------
    files : tuple of str
        Their names, without an ending for compression.
    read : callable
        From their paths to the training part and the test part, or to one part where no split is published.
    labels : sequence
        The labels that these files use, in the order of the classes.
    """

    files: tuple[str, ...]
    read: Callable[[Sequence[Path]], list[Part]]
    labels: Sequence

    def paths(self, folder: Path) -> list[Path] | None:
        """Where the files are, or None if one is missing."""
        found = [_find(folder, name) for name in self.files]
        return [path for path in found if path] if all(found) else None


@dataclass(frozen=True)
class Entry:
    """What is known of a data set.

    Attributes
    ----------
    n_features : int
    target_names : tuple of str
    dtype : type
        Of X.
    sources : tuple of Source
        The first one whose files are there is read.
    female : tuple of int, optional
        The classes that are persons who present as women.
    full_size : Entry, optional
        The same pictures in their original size.
    """

    n_features: int
    target_names: tuple[str, ...]
    dtype: type
    sources: tuple[Source, ...]
    female: tuple[int, ...] | None = None
    full_size: Entry | None = None


# ------------------------------------------------------------------- opening


def _find(folder: Path, name: str) -> Path | None:
    candidates = (folder / (name + ending) for ending in OPENERS)
    return next((path for path in candidates if path.is_file()), None)


@contextlib.contextmanager
def blaming(path: Path | str) -> Iterator[None]:
    """Errors of a reader, whatever their kind, as a ValueError that names the file."""
    try:
        yield
    except PermissionError:
        raise
    except BROKEN as error:
        raise ValueError(f"{path} cannot be read; it may be cut off or another file: {error}") from error


@contextlib.contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, decompressed; whatever goes wrong while they are read names the file."""
    opener = OPENERS.get(path.suffix, open)
    with blaming(path), opener(path, "rb") as stream:
        yield stream


def stacked(parts: Sequence[Part]) -> Part:
    """Several parts as one."""
    X, y, task = zip(*parts, strict=True)
    return Part(np.concatenate(X), np.concatenate(y), None if task[0] is None else np.concatenate(task))


# ------------------------------------------------------------------ checking


def read_dataset(name: str, entry: Entry, source: Source, paths: Sequence[Path]) -> Dataset:
    """Read, check, number the classes, put the parts into one."""
    parts = source.read(paths)
    with blaming(" + ".join(str(path) for path in paths)):
        parts = [_checked(part, entry, source.labels) for part in parts]
    X, y, task = stacked(parts)
    return Dataset(
        name=name,
        X=X,
        y=y,
        is_train=np.arange(len(y)) < len(parts[0].y),
        target_names=entry.target_names,
        task=task,
        female=None if entry.female is None else np.isin(y, entry.female),
    )


def _checked(part: Part, entry: Entry, labels: Sequence) -> Part:
    raw = np.asarray(part.y)
    if not len(part.X):
        raise ValueError("a part without rows")
    X: Array = np.asarray(part.X).reshape(len(part.X), -1).astype(entry.dtype)
    if len(X) != len(raw):
        raise ValueError(f"{len(X)} rows but {len(raw)} labels")
    if X.shape[1] != entry.n_features:
        raise ValueError(f"{X.shape[1]} features instead of {entry.n_features}")
    if not np.isfinite(X).all():
        raise ValueError("some values are not finite")
    matches = raw[:, None] == np.asarray(labels)
    if not matches.any(axis=1).all():
        raise ValueError(f"label {raw[~matches.any(axis=1)][0]} is none of {list(labels)}")
    return Part(X, matches.argmax(axis=1), _checked_task(part.task, len(X)))


def _checked_task(task: Array | None, n: int) -> Array | None:
    if task is None:
        return None
    codes: Array = np.asarray(task).astype(np.intp)
    if codes.shape != (n,):
        raise ValueError(f"{n} rows but tasks of shape {codes.shape}")
    if not np.array_equal(codes, task) or codes.min() < 0:
        raise ValueError("tasks that are not numbered 0, 1, ...")
    return codes
