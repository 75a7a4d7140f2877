"""Draws from the papers' data sets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from leastwise.datasets import load
from leastwise.datasets.files import Source
from leastwise.datasets.loading import REGISTRY, VARIABLE

Array = np.ndarray
#: Mean and standard deviation of the columns that vary, and which these are.
Scale = tuple[Array, Array, Array]

#: Who publishes the files.
ORIGINS = {
    "mnist": "LeCun's files, or LIBSVM's data page",
    "usps": "LIBSVM's data page",
    "satimage": "UCI (Statlog, Landsat satellite), or LIBSVM's data page",
    "letter": "UCI (letter recognition), or LIBSVM's data page",
    "landmine": "Xue, Liao, Carin and Krishnapuram 2007",
    "umist": "Graham and Allinson 1998, cropped by Roweis",
    "school": "Argyriou, Evgeniou and Pontil 2008, with their ten splits",
    "dermatology": "UCI (dermatology)",
    "enron": "Mulan's multi-label sets",
}


class DataAbsent(FileNotFoundError):
    """The files of a data set are not there."""


@dataclass(frozen=True)
class Split:
    """Training and test rows of one draw."""

    name: str
    X: Array
    y: Array
    X_test: Array
    y_test: Array

    def __str__(self) -> str:
        return f"{self.name} {len(self.y)}/{len(self.y_test)}"


def load_set(name: str, folder: str | None) -> Any:
    """A data set of the papers, or ``DataAbsent``."""
    try:
        return load(name, folder)
    except FileNotFoundError as error:
        raise DataAbsent(str(error).partition(" Any of")[0]) from error


def is_there(name: str, folder: str | None) -> bool:
    """Whether the folder, or else that of the environment variable, has files that would do."""
    where = folder or os.environ.get(VARIABLE)
    return bool(where) and any(source.paths(Path(str(where)).expanduser()) for source in _sources(name))


def _sources(name: str) -> list[Source]:
    """MALSAR's School has no splits, without which there is no table."""
    return [source for source in REGISTRY[name].sources if source.files != ("school.mat",)]


def files_of(name: str) -> str:
    """In words, which files would do."""
    choices = [source.files for source in _sources(name)]
    archives = [files for files in choices if files[0].endswith(".npz")]
    originals = [files for files in choices if files not in archives]
    return f"{', or '.join(map(_joined, originals + archives))}; from {ORIGINS[name]}"


def _joined(files: tuple[str, ...]) -> str:
    return " + ".join(files) if len(files) < 5 else f"{files[0]} + {files[1]} to {files[-1]}"


def available(
    names: Sequence[str], make: Callable[[str], Any], report: Callable[[str], None] = print
) -> Iterator[tuple[str, Any]]:
    """Name and ``make(name)`` for the data sets that are there; a line for those that are not."""
    for name in names:
        try:
            made = make(name)
        except DataAbsent as error:
            report(f"skipped: {error}")
            continue
        yield name, made


def per_class(y: Array, pool: Array, classes: Sequence | Array, count: int, rng: np.random.Generator) -> Array:
    """So many random rows of each class out of the pool (all where a class has fewer), in random order."""
    rows = [rng.permutation(pool[y[pool] == k])[:count] for k in classes]
    return rng.permutation(np.concatenate(rows))


def scale_of(X: Array) -> Scale:
    """Mean and standard deviation of the columns that vary, and which these are."""
    mean, deviation = X.mean(axis=0, dtype=float), X.std(axis=0, dtype=float)
    keep = deviation > 0
    return mean[keep], deviation[keep], keep


def standardise(X: Array, scale: Scale) -> Array:
    """Columns of mean 0 and deviation 1 on the rows that the scale was taken from."""
    mean, deviation, keep = scale
    return (X[:, keep] - mean) / deviation


def median_distance(X: Array, rows: int = 2000) -> float:
    """Median Euclidean distance between rows, of the first ``rows`` of them."""
    return float(np.median(pdist(X[:rows])))
