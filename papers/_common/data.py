"""The papers' data sets: loading, sampling and scaling."""

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
#: Mean, standard deviation and mask of the non-constant columns.
Scale = tuple[Array, Array, Array]

#: Where the files are published.
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
    """The files of a data set are missing."""


@dataclass(frozen=True)
class Split:
    """Training and test rows."""

    name: str
    X: Array
    y: Array
    X_test: Array
    y_test: Array

    def __str__(self) -> str:
        return f"{self.name} {len(self.y)}/{len(self.y_test)}"


def load_set(name: str, folder: str | None) -> Any:
    """Load a data set of the papers; raise ``DataAbsent`` if its files are missing."""
    try:
        return load(name, folder)
    except FileNotFoundError as error:
        raise DataAbsent(str(error).partition(" Any of")[0]) from error


def is_there(name: str, folder: str | None) -> bool:
    """True if the folder, by default that of the environment variable, has the files of a data set."""
    where = folder or os.environ.get(VARIABLE)
    return bool(where) and any(source.paths(Path(str(where)).expanduser()) for source in _sources(name))


def _sources(name: str) -> list[Source]:
    """Files that a data set can be read from; MALSAR's School lacks the splits that the table needs."""
    return [source for source in REGISTRY[name].sources if source.files != ("school.mat",)]


def files_of(name: str) -> str:
    """Describe the files that a data set can be read from."""
    choices = [source.files for source in _sources(name)]
    archives = [files for files in choices if files[0].endswith(".npz")]
    originals = [files for files in choices if files not in archives]
    return f"{', or '.join(map(_joined, originals + archives))}; from {ORIGINS[name]}"


def _joined(files: tuple[str, ...]) -> str:
    return " + ".join(files) if len(files) < 5 else f"{files[0]} + {files[1]} to {files[-1]}"


def available(
    names: Sequence[str], make: Callable[[str], Any], report: Callable[[str], None] = print
) -> Iterator[tuple[str, Any]]:
    """Yield name and ``make(name)`` of the available data sets; report the missing ones."""
    for name in names:
        try:
            made = make(name)
        except DataAbsent as error:
            report(f"skipped: {error}")
            continue
        yield name, made


def per_class(y: Array, pool: Array, classes: Sequence | Array, count: int, rng: np.random.Generator) -> Array:
    """Draw ``count`` random rows of each class from the pool (all rows of smaller classes), in random order."""
    rows = [rng.permutation(pool[y[pool] == k])[:count] for k in classes]
    return rng.permutation(np.concatenate(rows))


def scale_of(X: Array) -> Scale:
    """Mean, standard deviation and mask of the non-constant columns."""
    mean, deviation = X.mean(axis=0, dtype=float), X.std(axis=0, dtype=float)
    keep = deviation > 0
    return mean[keep], deviation[keep], keep


def standardise(X: Array, scale: Scale) -> Array:
    """Standardise the non-constant columns."""
    mean, deviation, keep = scale
    return (X[:, keep] - mean) / deviation


def median_distance(X: Array, rows: int = 2000) -> float:
    """Median Euclidean distance between the first ``rows`` rows."""
    return float(np.median(pdist(X[:rows])))
