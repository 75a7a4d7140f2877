"""Data sets in files: their description, how files are found and opened, and the checks of what is read.

Nothing is downloaded. Each data set is an :class:`Entry` with one :class:`Source` for each public form of its files.
The entries are in ``single_task``, ``multi_task`` and ``multi_label``; :func:`read_dataset` makes a :class:`Dataset`.
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
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

Array = np.ndarray

#: How to open a file, by extension; "" is an uncompressed file.
OPENERS: dict[str, Callable[..., Any]] = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
#: Errors of readers on files that are truncated or of another format.
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
        Values as in the files, training rows first.
    y : ndarray of shape (n,) or (n, T)
        Classes 0, 1, ... as int; regression targets as float. With several labels, one column for each: 1 if a row
        has the label, else 0.
    is_train : ndarray of bool of shape (n,)
        True for rows in the training part of the published split; all True if none or several are published. Several
        are in ``splits``.
    target_names : tuple of str, optional
        Names of the classes; None for regression and for several labels.
    task : ndarray of int of shape (n,), optional
        The task 0, 1, ... of each row; None for a single task.
    female : ndarray of bool of shape (n,), optional
        For faces: True if the person presents as a woman. Judged from the images, not recorded by the makers of
        the data; None elsewhere.
    feature_names : tuple of str, optional
        Names of the columns of X; None if they have none, such as pixels.
    splits : ndarray of bool of shape (k, n), optional
        If several splits are published, one in each row: True if a row of X is in its training part, False if it is
        in its test part. None if there are none, or if the files do not contain them.
    label_names : tuple of str, optional
        Names of the labels, the columns of y, for multi-label data; None elsewhere.
    """

    name: str
    X: Array
    y: Array
    is_train: Array
    target_names: tuple[str, ...] | None = None
    task: Array | None = None
    female: Array | None = None
    feature_names: tuple[str, ...] | None = None
    splits: Array | None = None
    label_names: tuple[str, ...] | None = None

    @property
    def Y(self) -> Array:
        """The labels of multi-label data: ``y``, of shape (n, T)."""
        if self.label_names is None:
            raise AttributeError(f"{self.name!r} is not a multi-label data set: use y, its classes or targets.")
        return self.y


class Part(NamedTuple):
    """Rows of a file, with the file's own class labels, or targets.

    Every field but the last has one entry per row: ``y`` may have a column for each label, and ``in_training``, of
    shape (n, k), has a column for each of k splits. ``feature_names`` are for entries that do not have them.
    """

    X: Array
    y: Array
    task: Array | None = None
    in_training: Array | None = None
    feature_names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Source:
    """Files that together contain a data set.

    Attributes
    ----------
    files : tuple of str
        Their names, without an extension for compression.
    read : callable
        From their paths to the training part and the test part, or to one part if no split is published.
    labels : sequence or None
        The class labels of these files, in the order of the classes; None for regression.
    """

    files: tuple[str, ...]
    read: Callable[[Sequence[Path]], list[Part]]
    labels: Sequence | None

    def paths(self, folder: Path) -> list[Path] | None:
        """The paths of the files, or None if one is missing."""
        found = [_find(folder, name) for name in self.files]
        return [path for path in found if path] if all(found) else None


@dataclass(frozen=True)
class Entry:
    """The description of a data set.

    Attributes
    ----------
    n_features : int
    target_names : tuple of str or None
        None for regression and multi-label data.
    dtype : type
        The dtype of X.
    sources : tuple of Source
        The first one whose files exist is read.
    female : tuple of int, optional
        Classes that are persons who present as women.
    full_size : Entry, optional
        The same images in their original size.
    feature_names : tuple of str, optional
    missing : tuple of int, optional
        Columns in which values may be missing (NaN).
    label_names : tuple of str, optional
        For multi-label data, in the order of the columns of y.
    """

    n_features: int
    target_names: tuple[str, ...] | None
    dtype: type
    sources: tuple[Source, ...]
    female: tuple[int, ...] | None = None
    full_size: Entry | None = None
    feature_names: tuple[str, ...] | None = None
    missing: tuple[int, ...] = ()
    label_names: tuple[str, ...] | None = None


# ------------------------------------------------------------------- opening


def _find(folder: Path, name: str) -> Path | None:
    candidates = (folder / (name + ending) for ending in OPENERS)
    return next((path for path in candidates if path.is_file()), None)


@contextlib.contextmanager
def file_errors(path: Path | str) -> Iterator[None]:
    """Turn all errors of a reader into a ValueError that names the file."""
    try:
        yield
    except PermissionError:
        raise
    except BROKEN as error:
        raise ValueError(f"{path} cannot be read; it may be truncated or another file: {error}") from error


@contextlib.contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The decompressed bytes of a file; errors while they are read name the file."""
    opener = OPENERS.get(path.suffix, open)
    with file_errors(path), opener(path, "rb") as stream:
        yield stream


def one_file(file: str, labels: Sequence | None, read: Callable[[Any], Part], opening: Callable[..., Any]) -> Source:
    """One file; ``opening`` gives named arrays, of which ``read`` makes one part."""

    def read_all(paths: Sequence[Path]) -> list[Part]:
        # Opened here, as np.load does not close a file that is not an archive.
        with opened(paths[0]) as stream:
            return [read(opening(stream))]

    return Source((file,), read_all, labels)


archive = partial(one_file, opening=partial(np.load, allow_pickle=False))
matlab = partial(one_file, opening=loadmat)


# ------------------------------------------------------------------ joining


def stacked(parts: Sequence[Part]) -> Part:
    """Concatenate parts."""
    names = parts[0].feature_names
    if any(part.feature_names != names for part in parts):
        raise ValueError("the parts differ in their feature names or in the order of these")
    X, y, *others = zip(*(part[:-1] for part in parts), strict=True)
    task, in_training = (None if field[0] is None else np.concatenate(field) for field in others)
    return Part(np.concatenate(X), np.concatenate(y), task, in_training, names)


def tasks_of_cells(features: Array, labels: Array) -> Part:
    """One part from two arrays of MATLAB cells, one cell per task: (n_t, d) features, (n_t, 1) labels or targets."""
    features, labels = features.ravel(), labels.ravel()
    if len(features) != len(labels):
        raise ValueError(f"{len(features)} cells of features but {len(labels)} of labels")
    return stacked([_task(t, X, y.ravel()) for t, (X, y) in enumerate(zip(features, labels, strict=True))])


def _task(t: int, X: Array, y: Array) -> Part:
    if len(X) != len(y):  # two such errors can cancel in the total
        raise ValueError(f"task {t} has {len(X)} rows but {len(y)} labels")
    return Part(X, y, np.full(len(y), t))


# ------------------------------------------------------------------- checking


def read_dataset(name: str, entry: Entry, source: Source, paths: Sequence[Path]) -> Dataset:
    """Read the files, check all values, encode the classes, and join the parts."""
    parts = source.read(paths)
    with file_errors(" + ".join(str(path) for path in paths)):
        parts = [_checked(part, entry, source.labels) for part in parts]
        X, y, task, in_training, names = stacked(parts)
    return Dataset(
        name=name,
        X=X,
        y=y,
        is_train=np.arange(len(y)) < len(parts[0].y),
        target_names=entry.target_names,
        task=task,
        female=None if entry.female is None else np.isin(y, entry.female),
        feature_names=entry.feature_names or names,
        splits=None if in_training is None else np.ascontiguousarray(in_training.T),
        label_names=entry.label_names,
    )


def _checked(part: Part, entry: Entry, labels: Sequence | None) -> Part:
    raw = np.asarray(part.y)
    if not len(part.X):
        raise ValueError("a part has no rows")
    X: Array = np.asarray(part.X).reshape(len(part.X), -1).astype(entry.dtype)
    if len(X) != len(raw):
        raise ValueError(f"{len(X)} rows but {len(raw)} labels")
    if X.shape[1] != entry.n_features:
        raise ValueError(f"{X.shape[1]} features instead of {entry.n_features}")
    finite = np.isfinite(X)
    for j in entry.missing:
        finite[:, j] |= np.isnan(X[:, j])
    if not finite.all():
        raise ValueError("some values are not finite")
    return Part(
        X,
        _checked_y(raw, entry, labels),
        _checked_task(part.task, len(X)),
        _checked_splits(part.in_training, len(X)),
        _checked_names(part.feature_names, entry.n_features),
    )


def _checked_y(raw: Array, entry: Entry, labels: Sequence | None) -> Array:
    """A label indicator matrix, regression targets, or class codes."""
    if entry.label_names is not None:
        if raw.ndim != 2 or raw.shape[1] != len(entry.label_names):
            raise ValueError(f"labels of shape {raw.shape} instead of {len(entry.label_names)} columns")
        if not np.isin(raw, (0, 1)).all():
            raise ValueError("labels must be 0 or 1 in every row")
        return raw.astype(np.intp)
    if labels is None:
        y: Array = raw.astype(np.float64)
        if y.ndim != 1 or not np.isfinite(y).all():
            raise ValueError("targets must be one finite number per row")
        return y
    matches = raw[:, None] == np.asarray(labels)
    if not matches.any(axis=1).all():
        raise ValueError(f"label {raw[~matches.any(axis=1)][0]} is not one of {list(labels)}")
    return matches.argmax(axis=1)


def _checked_names(names: tuple[str, ...] | None, n_features: int) -> tuple[str, ...] | None:
    if names is not None and len(names) != n_features:
        raise ValueError(f"{len(names)} feature names instead of {n_features}")
    return names


def _checked_task(task: Array | None, n: int) -> Array | None:
    if task is None:
        return None
    codes: Array = np.asarray(task).astype(np.intp)
    if codes.shape != (n,):
        raise ValueError(f"{n} rows but tasks of shape {codes.shape}")
    if not np.array_equal(codes, task) or codes.min() < 0:
        raise ValueError("tasks must be numbered 0, 1, ...")
    return codes


def _checked_splits(in_training: Array | None, n: int) -> Array | None:
    if in_training is None:
        return None
    given = np.asarray(in_training)
    if given.ndim != 2 or len(given) != n:
        raise ValueError(f"{n} rows but splits of shape {given.shape[::-1]}")
    if not np.isin(given, (0, 1)).all():
        raise ValueError("splits must be 0 or 1 in every row")
    return given.astype(bool)
