"""What a data set is made of, and how its files are found and opened.

Nothing is downloaded. Each data set is an :class:`Entry`: what it is, and the :class:`Source` of files, in any of
several public forms, that it can be read from. The entries stand in ``single_task``, ``multi_task``, ``school``,
``dermatology`` and ``enron``; ``checking`` makes a :class:`Dataset` of what their readers give.
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
    y : ndarray of shape (n,) or (n, T)
        Classes 0, 1, ... as int; targets as float where the task is regression. With several labels, one column for
        each: 1 where a row has the label, and 0 elsewhere.
    is_train : ndarray of bool of shape (n,)
        Whether a row is in the training part of the published split; all True where none is published, or several
        are: those are in ``splits``.
    target_names : tuple of str, optional
        Names of the classes; None for regression and for several labels.
    task : ndarray of int of shape (n,), optional
        The task 0, 1, ... of every row; None where the files hold a single task.
    female : ndarray of bool of shape (n,), optional
        For faces: whether the person presents as a woman. A reading of the pictures, not a record of the makers of
        the data; None elsewhere.
    feature_names : tuple of str, optional
        Names of the columns of X; None where they have none, as pixels.
    splits : ndarray of bool of shape (k, n), optional
        Where several splits are published, one in each row: whether a row of X is in its training part, and in its
        test part otherwise. None where they are not, or the files that were read do not hold them.
    label_names : tuple of str, optional
        Names of the labels, the columns of y, of which a row may have any number; None elsewhere.
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
        """The labels, ``y`` of shape (n, T), of a set whose rows have any number of them."""
        if self.label_names is None:
            raise AttributeError(f"{self.name!r} has no labels beside each other: use y, its classes or targets.")
        return self.y


class Part(NamedTuple):
    """Rows of a file as they are read, with labels of that file's own, or targets.

    Every field but the last has one entry a row: ``y`` may have a column for each label, and ``in_training``, of
    shape (n, k), is the k splits with the rows first. ``feature_names`` are for sets whose entry does not have them.
    """

    X: Array
    y: Array
    task: Array | None = None
    in_training: Array | None = None
    feature_names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Source:
    """Files that together hold a data set.

    Attributes
    ----------
    files : tuple of str
        Their names, without an ending for compression.
    read : callable
        From their paths to the training part and the test part, or to one part where no split is published.
    labels : sequence or None
        The labels that these files use, in the order of the classes; None for targets of regression.
    """

    files: tuple[str, ...]
    read: Callable[[Sequence[Path]], list[Part]]
    labels: Sequence | None

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
    target_names : tuple of str or None
        None for regression and for several labels.
    dtype : type
        Of X.
    sources : tuple of Source
        The first one whose files are there is read.
    female : tuple of int, optional
        The classes that are persons who present as women.
    full_size : Entry, optional
        The same pictures in their original size.
    feature_names : tuple of str, optional
    missing : tuple of int, optional
        The columns in which values may be missing, as NaN.
    label_names : tuple of str, optional
        For sets whose rows have any number of labels, in the order of the columns of y.
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


def one_file(file: str, labels: Sequence | None, read: Callable[[Any], Part], opening: Callable[..., Any]) -> Source:
    """One file, opened to named arrays, of which ``read`` makes one part."""

    def read_all(paths: Sequence[Path]) -> list[Part]:
        # Opened here, for np.load leaves a file open that is no archive.
        with opened(paths[0]) as stream:
            return [read(opening(stream))]

    return Source((file,), read_all, labels)


archive = partial(one_file, opening=partial(np.load, allow_pickle=False))
matlab = partial(one_file, opening=loadmat)


# ------------------------------------------------------------------- joining


def stacked(parts: Sequence[Part]) -> Part:
    """Several parts as one."""
    names = parts[0].feature_names
    if any(part.feature_names != names for part in parts):
        raise ValueError("the parts do not have the same names of features in the same order")
    X, y, *others = zip(*(part[:-1] for part in parts), strict=True)
    task, in_training = (None if field[0] is None else np.concatenate(field) for field in others)
    return Part(np.concatenate(X), np.concatenate(y), task, in_training, names)


def tasks_of_cells(features: Array, labels: Array) -> Part:
    """Two arrays of MATLAB cells, one cell a task: (n_t, d) features and (n_t, 1) labels or targets."""
    features, labels = features.ravel(), labels.ravel()
    if len(features) != len(labels):
        raise ValueError(f"{len(features)} cells of features but {len(labels)} of labels")
    return stacked([_task(t, X, y.ravel()) for t, (X, y) in enumerate(zip(features, labels, strict=True))])


def _task(t: int, X: Array, y: Array) -> Part:
    if len(X) != len(y):  # found here, since two faults can cancel in the sum over the tasks
        raise ValueError(f"task {t} has {len(X)} rows but {len(y)} labels")
    return Part(X, y, np.full(len(y), t))
