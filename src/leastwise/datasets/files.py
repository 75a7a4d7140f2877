"""Data sets of the paper's experiments, read from files that you have.

Nothing is downloaded. Each data set is an entry of ``REGISTRY``: what it is, and the files, in any of several
public forms, that it can be read from. Whatever the form, the classes are numbered 0, 1, ... in one order.
Values are as in the files; the LIBSVM forms whose names end in ``.scale`` are scaled already.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from string import ascii_uppercase
from typing import IO, Any

import numpy as np
from sklearn.datasets import load_svmlight_file

Array = np.ndarray
Part = tuple[Array, Array]

#: Environment variable that names the folder.
VARIABLE = "LEASTWISE_DATA"
#: How to open a file, by its ending; "" is the file as it is.
OPENERS: dict[str, Callable[..., Any]] = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
#: What the readers raise on files that are cut off or are something else.
BROKEN = (ValueError, EOFError, OSError, KeyError, IndexError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


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
        Whether a row is in the training part of the published split.
    target_names : tuple of str, optional
        Names of the classes.
    """

    name: str
    X: Array
    y: Array
    is_train: Array
    target_names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Source:
    """Files that together hold a data set.

    Attributes
    ----------
    files : tuple of str
        Their names, without an ending for compression.
    read : callable
        From their paths to the training part and the test part, each (X, y).
    labels : sequence
        The labels that these files use, in the order of the classes.
    """

    files: tuple[str, ...]
    read: Callable[[Sequence[Path]], tuple[Part, Part]]
    labels: Sequence

    def paths(self, folder: Path) -> list[Path] | None:
        """Where the files are, or None if one is missing."""
        found = [_find(folder, name) for name in self.files]
        return [path for path in found if path] if all(found) else None


@dataclass(frozen=True)
class Entry:
    """What is known of a data set."""

    n_features: int
    target_names: tuple[str, ...]
    dtype: type
    sources: tuple[Source, ...]


# ------------------------------------------------------------------ public


def load(name: str, folder: str | os.PathLike | None = None) -> Dataset:
    """Read a data set from files.

    Parameters
    ----------
    name : {"mnist", "usps", "satimage", "letter"}
        Which one.
    folder : path, optional
        Where its files are; by default what the environment variable ``LEASTWISE_DATA`` says. The files are
        those of the LIBSVM page (plain or compressed), the original ones (MNIST's idx files, UCI's
        ``letter-recognition.data``, Statlog's ``sat.trn`` and ``sat.tst``), or one archive ``<name>.npz``.

    Returns
    -------
    Dataset

    Raises
    ------
    FileNotFoundError
        If the files are not there. The message says which would do.
    ValueError
        If a file cannot be read as what its name says.
    """
    entry = _entry(name)
    where = _folder(folder)
    if where is None:
        raise FileNotFoundError(f"No folder to look for {name!r} in. {_advice(name)}")
    if not where.is_dir():
        raise FileNotFoundError(f"There is no folder {str(where)!r} to look for {name!r} in. {_advice(name)}")
    for source in entry.sources:
        paths = source.paths(where)
        if paths:
            return _assemble(name, entry, source, paths)
    raise FileNotFoundError(f"No files of {name!r} in the folder {str(where)!r}. {_advice(name)}")


def available(folder: str | os.PathLike | None = None) -> list[str]:
    """Names of the data sets whose files are in the folder, as :func:`load` looks for them."""
    where = _folder(folder)
    if where is None or not where.is_dir():
        return []
    return [name for name, entry in REGISTRY.items() if any(source.paths(where) for source in entry.sources)]


# -------------------------------------------------------------- where to look


def _entry(name: str) -> Entry:
    if name not in REGISTRY:
        raise ValueError(f"There is no data set {name!r}: use one of {list(REGISTRY)}.")
    return REGISTRY[name]


def _folder(folder: str | os.PathLike | None) -> Path | None:
    given = folder if folder is not None else os.environ.get(VARIABLE)
    return Path(given).expanduser() if given else None


def _find(folder: Path, name: str) -> Path | None:
    candidates = (folder / (name + ending) for ending in OPENERS)
    return next((path for path in candidates if path.is_file()), None)


def _advice(name: str) -> str:
    choices = "; or ".join(" + ".join(source.files) for source in REGISTRY[name].sources)
    return (
        f"Any of these would do: {choices} (text and idx files also with .gz, .bz2 or .xz). Name their "
        f"folder by load({name!r}, folder=...) or by the environment variable {VARIABLE}."
    )


# ------------------------------------------------------------------ checking


def _assemble(name: str, entry: Entry, source: Source, paths: Sequence[Path]) -> Dataset:
    """Read, check, number the classes, put both parts into one."""
    parts = source.read(paths)
    where = " + ".join(str(path) for path in paths)
    with _blaming(where):
        parts = tuple(_checked(part, entry, source.labels) for part in parts)  # type: ignore[assignment]
    (X_train, y_train), (X_test, y_test) = parts
    return Dataset(
        name=name,
        X=np.concatenate([X_train, X_test]),
        y=np.concatenate([y_train, y_test]),
        is_train=np.arange(len(y_train) + len(y_test)) < len(y_train),
        target_names=entry.target_names,
    )


def _checked(part: Part, entry: Entry, labels: Sequence) -> Part:
    raw = np.asarray(part[1])
    if not len(part[0]):
        raise ValueError("a part without rows")
    X: Array = np.asarray(part[0]).reshape(len(part[0]), -1).astype(entry.dtype)
    if len(X) != len(raw):
        raise ValueError(f"{len(X)} rows but {len(raw)} labels")
    if X.shape[1] != entry.n_features:
        raise ValueError(f"{X.shape[1]} features instead of {entry.n_features}")
    if not np.isfinite(X).all():
        raise ValueError("some values are not finite")
    matches = raw[:, None] == np.asarray(labels)
    if not matches.any(axis=1).all():
        raise ValueError(f"label {raw[~matches.any(axis=1)][0]} is none of {list(labels)}")
    return X, matches.argmax(axis=1)


@contextlib.contextmanager
def _blaming(path: Path | str) -> Iterator[None]:
    """Errors of a reader, whatever their kind, as a ValueError that names the file."""
    try:
        yield
    except PermissionError:
        raise
    except BROKEN as error:
        raise ValueError(f"{path} cannot be read; it may be cut off or another file: {error}") from error


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    opener = OPENERS.get(path.suffix, open)
    with _blaming(path), opener(path, "rb") as stream:
        yield stream


# ------------------------------------------------------------------- formats


def _archive(name: str, labels: Sequence) -> Source:
    """One .npz with X_train, y_train, X_test, y_test, or X, y and is_train."""

    def read(paths: Sequence[Path]) -> tuple[Part, Part]:
        # Opened here, for np.load leaves a file open that is no archive.
        with _opened(paths[0]) as stream, np.load(stream, allow_pickle=False) as z:
            if "X_train" in z:
                return (z["X_train"], z["y_train"]), (z["X_test"], z["y_test"])
            X, y, train = z["X"], z["y"], z["is_train"].astype(bool)
            return (X[train], y[train]), (X[~train], y[~train])

    return Source((f"{name}.npz",), read, labels)


def _by_part(train: Sequence[str], test: Sequence[str], labels: Sequence, read: Callable[[Path], Part]) -> Source:
    """Files that ``read`` takes one by one: those of the training part, then those of the test part."""

    def read_all(paths: Sequence[Path]) -> tuple[Part, Part]:
        parts = [read(path) for path in paths]
        return _stacked(parts[: len(train)]), _stacked(parts[len(train) :])

    return Source((*train, *test), read_all, labels)


def _stacked(parts: Sequence[Part]) -> Part:
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def _read_libsvm(path: Path, n_features: int, dtype: type) -> Part:
    with _opened(path) as stream:
        X, y = load_svmlight_file(stream, n_features=n_features, dtype=dtype, zero_based=False)
        return X.toarray(), y


def _libsvm(stem: str, d: int, labels: Sequence, dtype: type, train: Sequence[str] = ("",)) -> Source:
    """The files of the LIBSVM page; ``train`` are the endings of the training part's."""
    reader = partial(_read_libsvm, n_features=d, dtype=dtype)
    return _by_part([stem + ending for ending in train], [f"{stem}.t"], labels, reader)


def _read_idx(path: Path) -> Array:
    """Array of unsigned bytes: two zeros, the type 8, the number of axes, their lengths, the values."""
    with _opened(path) as stream:
        content = stream.read()
        if len(content) < 4 or content[:3] != b"\0\0\x08":
            raise ValueError("not an idx file of unsigned bytes")
        axes = content[3]
        shape = tuple(int(n) for n in np.frombuffer(content, dtype=">u4", count=axes, offset=4))
        values = np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * axes)
        return values.reshape(shape)


def _idx(labels: Sequence) -> Source:
    files = [f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]

    def read(paths: Sequence[Path]) -> tuple[Part, Part]:
        a, b, c, d = [_read_idx(path) for path in paths]
        return (a, b), (c, d)

    return Source(tuple(files), read, labels)


def _read_statlog(path: Path) -> Part:
    with _opened(path) as stream:
        table = np.loadtxt(stream, ndmin=2)
        return table[:, :-1], table[:, -1]


def _letter_text(labels: Sequence, n_train: int = 16000) -> Source:
    """UCI's one file, of which the first 16000 rows are customarily the training part."""

    def read(paths: Sequence[Path]) -> tuple[Part, Part]:
        with _opened(paths[0]) as stream:
            table = np.loadtxt(stream, dtype=str, delimiter=",", ndmin=2)
            X, y = table[:, 1:].astype(float), table[:, 0]
            return (X[:n_train], y[:n_train]), (X[n_train:], y[n_train:])

    return Source(("letter-recognition.data",), read, labels)


# ------------------------------------------------------------------ registry

_DIGITS = tuple("0123456789")
_SOILS = (
    "red soil",
    "cotton crop",
    "grey soil",
    "damp grey soil",
    "vegetation stubble",
    "very damp grey soil",
)
#: Statlog's codes; 6 was a class of mixtures that no row has. LIBSVM's files number the rest 1 to 6.
_SOIL_CODES = (1, 2, 3, 4, 5, 7)

#: Pixels are float32, tables of few columns float64. LIBSVM leaves out MNIST's last pixels, always zero.
REGISTRY: dict[str, Entry] = {
    "mnist": Entry(
        784,
        _DIGITS,
        np.float32,
        (
            _archive("mnist", range(10)),
            _idx(range(10)),
            _libsvm("mnist", 784, range(10), np.float32),
            _libsvm("mnist.scale", 784, range(10), np.float32),
        ),
    ),
    "usps": Entry(
        256,
        _DIGITS,
        np.float32,
        (_archive("usps", range(10)), _libsvm("usps", 256, range(1, 11), np.float32)),
    ),
    "satimage": Entry(
        36,
        _SOILS,
        np.float64,
        (
            _archive("satimage", _SOIL_CODES),
            _by_part(["sat.trn"], ["sat.tst"], _SOIL_CODES, _read_statlog),
            _libsvm("satimage.scale", 36, range(1, 7), np.float64),
            _libsvm("satimage.scale", 36, range(1, 7), np.float64, train=(".tr", ".val")),
        ),
    ),
    "letter": Entry(
        16,
        tuple(ascii_uppercase),
        np.float64,
        (
            _archive("letter", range(26)),
            _letter_text(tuple(ascii_uppercase)),
            _libsvm("letter.scale", 16, range(1, 27), np.float64),
            _libsvm("letter.scale", 16, range(1, 27), np.float64, train=(".tr", ".val")),
        ),
    ),
}
