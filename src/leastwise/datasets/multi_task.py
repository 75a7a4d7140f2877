"""The multi-task sets of classes in the paper's experiments, each in the public forms that can be read.

Neither has a published split: both come as one part. Pixels are in the order of reading, row by row, in every form.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from leastwise.datasets.files import Array, Entry, Part, archive, matlab, stacked, tasks_of_cells

#: Rows and columns of a face as cropped by its makers, and after every fourth pixel is kept.
FULL, REDUCED = (112, 92), (28, 23)


# ------------------------------------------------------------------ landmine


def _landmine_archive(z: Any) -> Part:
    return Part(z["X"], z["y"], z["task"])


def _landmine_cells(mat: Any) -> Part:
    return tasks_of_cells(mat["feature"], mat["label"])


LANDMINE = Entry(
    n_features=9,
    target_names=("clutter", "mine"),
    dtype=np.float64,
    sources=(
        archive("landmine.npz", (0, 1), _landmine_archive),
        matlab("LandmineData.mat", (0, 1), _landmine_cells),
    ),
)

# --------------------------------------------------------------------- umist

#: The makers' folders, one a person.
_PERSONS = tuple(f"1{letter}" for letter in "abcdefghijklmnopqrst")
_NUMBERS = range(1, 21)
#: Persons 1g, 1h, 1i and 1t, by our reading of the pictures; papers report four women without naming them.
_WOMEN = (6, 7, 8, 19)


def _faces_archive(z: Any) -> Part:
    return Part(z["X28"], z["subject"])


def _full_faces_archive(z: Any) -> Part:
    """The pictures that the archive holds in full; others have been lost to it."""
    return Part(z["X112"], z["subject"][z["X112_index"]])


def _faces_cells(mat: Any, step: int = 1) -> Part:
    """A row of MATLAB cells, one a person, of pictures (112, 92, k); every ``step``-th pixel is kept."""
    persons = [str(cell.item()) for cell in mat["dirnames"].ravel()]
    pictures = [_pictures(cell)[:, step // 2 :: step, step // 2 :: step] for cell in mat["facedat"].ravel()]
    if len(persons) != len(pictures):
        raise ValueError(f"{len(persons)} names of persons but pictures of {len(pictures)}")
    return stacked([Part(Z, np.full(len(Z), who)) for Z, who in zip(pictures, persons, strict=True)])


def _pictures(cell: Array) -> Array:
    """As (k, 112, 92). MATLAB drops the last axis where there is one picture."""
    if cell.ndim not in (2, 3) or cell.shape[:2] != FULL:
        raise ValueError(f"pictures of shape {cell.shape[:2]} instead of {FULL}")
    return np.moveaxis(cell.reshape(*FULL, -1), 2, 0)


def _faces_table(mat: Any) -> Part:
    """A table of 644 columns, or rows, one a pixel of MATLAB's order: down the columns of the picture."""
    X = mat["X"] if "X" in mat else mat["fea"]
    y = mat["Y"] if "Y" in mat else mat["gnd"]
    d = REDUCED[0] * REDUCED[1]
    if X.shape[1] != d and X.shape[0] == d:
        X = X.T
    if X.shape[1] != d:
        raise ValueError(f"a table of shape {X.shape}: neither side has {d} pixels")
    return Part(X.reshape(-1, *REDUCED[::-1]).transpose(0, 2, 1), y.ravel())


_FULL_UMIST = Entry(
    n_features=FULL[0] * FULL[1],
    target_names=_PERSONS,
    dtype=np.float32,
    female=_WOMEN,
    sources=(
        matlab("umist_cropped.mat", _PERSONS, _faces_cells),
        archive("umist.npz", _NUMBERS, _full_faces_archive),
    ),
)
UMIST = replace(
    _FULL_UMIST,
    n_features=REDUCED[0] * REDUCED[1],
    sources=(
        archive("umist.npz", _NUMBERS, _faces_archive),
        matlab("umist_cropped.mat", _PERSONS, partial(_faces_cells, step=4)),
        matlab("umist.mat", _NUMBERS, _faces_table),
    ),
    full_size=_FULL_UMIST,
)

MULTI_TASK: dict[str, Entry] = {"landmine": LANDMINE, "umist": UMIST}
