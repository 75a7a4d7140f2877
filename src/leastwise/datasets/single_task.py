"""The single-task sets of the paper's experiments, each in the public forms that can be read.

Whatever the form, the classes are numbered 0, 1, ... in one order. Values are as in the files; the LIBSVM forms whose
names end in ``.scale`` are scaled already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from string import ascii_uppercase

import numpy as np
from sklearn.datasets import load_svmlight_file

from leastwise.datasets.files import Array, Entry, Part, Source, opened, stacked

# ------------------------------------------------------------------- formats


def _archive(name: str, labels: Sequence) -> Source:
    """One .npz with X_train, y_train, X_test, y_test, or X, y and is_train."""

    def read(paths: Sequence[Path]) -> list[Part]:
        # Opened here, for np.load leaves a file open that is no archive.
        with opened(paths[0]) as stream, np.load(stream, allow_pickle=False) as z:
            if "X_train" in z:
                return [Part(z["X_train"], z["y_train"]), Part(z["X_test"], z["y_test"])]
            X, y, train = z["X"], z["y"], z["is_train"].astype(bool)
            return [Part(X[train], y[train]), Part(X[~train], y[~train])]

    return Source((f"{name}.npz",), read, labels)


def _by_part(train: Sequence[str], test: Sequence[str], labels: Sequence, read: Callable[[Path], Part]) -> Source:
    """Files that ``read`` takes one by one: those of the training part, then those of the test part."""

    def read_all(paths: Sequence[Path]) -> list[Part]:
        parts = [read(path) for path in paths]
        return [stacked(parts[: len(train)]), stacked(parts[len(train) :])]

    return Source((*train, *test), read_all, labels)


def _read_libsvm(path: Path, n_features: int, dtype: type) -> Part:
    with opened(path) as stream:
        X, y = load_svmlight_file(stream, n_features=n_features, dtype=dtype, zero_based=False)
        return Part(X.toarray(), y)


def _libsvm(stem: str, d: int, labels: Sequence, dtype: type, train: Sequence[str] = ("",)) -> Source:
    """The files of the LIBSVM page; ``train`` are the endings of the training part's."""
    reader = partial(_read_libsvm, n_features=d, dtype=dtype)
    return _by_part([stem + ending for ending in train], [f"{stem}.t"], labels, reader)


def _read_idx(path: Path) -> Array:
    """Array of unsigned bytes: two zeros, the type 8, the number of axes, their lengths, the values."""
    with opened(path) as stream:
        content = stream.read()
        if len(content) < 4 or content[:3] != b"\0\0\x08":
            raise ValueError("not an idx file of unsigned bytes")
        axes = content[3]
        shape = tuple(int(n) for n in np.frombuffer(content, dtype=">u4", count=axes, offset=4))
        values = np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * axes)
        return values.reshape(shape)


def _idx(labels: Sequence) -> Source:
    files = [f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]

    def read(paths: Sequence[Path]) -> list[Part]:
        a, b, c, d = [_read_idx(path) for path in paths]
        return [Part(a, b), Part(c, d)]

    return Source(tuple(files), read, labels)


def _read_statlog(path: Path) -> Part:
    with opened(path) as stream:
        table = np.loadtxt(stream, ndmin=2)
        return Part(table[:, :-1], table[:, -1])


def _letter_text(labels: Sequence, n_train: int = 16000) -> Source:
    """UCI's one file, of which the first 16000 rows are customarily the training part."""

    def read(paths: Sequence[Path]) -> list[Part]:
        with opened(paths[0]) as stream:
            table = np.loadtxt(stream, dtype=str, delimiter=",", ndmin=2)
            X, y = table[:, 1:].astype(float), table[:, 0]
            return [Part(X[:n_train], y[:n_train]), Part(X[n_train:], y[n_train:])]

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
SINGLE_TASK: dict[str, Entry] = {
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
