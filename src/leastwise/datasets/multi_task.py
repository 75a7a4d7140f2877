"""Multi-task data sets of the papers' experiments, each with the public forms of its files.

Landmine and UMIST have no published split and come as one part. Pixels are row by row in every form. School, the
examination scores of pupils of 139 schools, which are the tasks, is regression with ten published splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat

from leastwise.datasets.files import Array, Entry, Part, Source, archive, matlab, opened, stacked, tasks_of_cells

#: Rows and columns of a face as cropped by its makers, and with every fourth pixel.
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

#: The makers' folders, one per person.
_PERSONS = tuple(f"1{letter}" for letter in "abcdefghijklmnopqrst")
_NUMBERS = range(1, 21)
#: Persons 1g, 1h, 1i and 1t, judged from the images; papers report four women without naming them.
_WOMEN = (6, 7, 8, 19)


def _faces_archive(z: Any) -> Part:
    return Part(z["X28"], z["subject"])


def _full_faces_archive(z: Any) -> Part:
    """The full-size images in the archive, which is incomplete."""
    return Part(z["X112"], z["subject"][z["X112_index"]])


def _faces_cells(mat: Any, step: int = 1) -> Part:
    """A row of MATLAB cells, one per person, of images (112, 92, k); every ``step``-th pixel is kept."""
    persons = [str(cell.item()) for cell in mat["dirnames"].ravel()]
    pictures = [_pictures(cell)[:, step // 2 :: step, step // 2 :: step] for cell in mat["facedat"].ravel()]
    if len(persons) != len(pictures):
        raise ValueError(f"{len(persons)} names of persons, but images of {len(pictures)}")
    return stacked([Part(Z, np.full(len(Z), who)) for Z, who in zip(pictures, persons, strict=True)])


def _pictures(cell: Array) -> Array:
    """As (k, 112, 92). MATLAB drops the last axis if there is one image."""
    if cell.ndim not in (2, 3) or cell.shape[:2] != FULL:
        raise ValueError(f"images of shape {cell.shape[:2]} instead of {FULL}")
    return np.moveaxis(cell.reshape(*FULL, -1), 2, 0)


def _faces_table(mat: Any) -> Part:
    """A table of 644 columns, or rows, one per pixel in MATLAB's order: down the columns of the image."""
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

# --------------------------------------------------------------------- school

#: The columns of the School data. Published lists exchange the genders and the bands; these agree with the values:
#: all pupils of girls' schools are girls, and the scores fall from band 1 to band 3. The files have a 28th column, 1
#: throughout, an intercept for methods that have none. It is left out here.
SCHOOL_FEATURES = (
    *("year_1985", "year_1986", "year_1987", "fsm_pct", "vr1_band_pct", "gender_female", "gender_male"),
    *("vr_band_3", "vr_band_1", "vr_band_2"),
    *("eth_eswi", "eth_african", "eth_arab", "eth_bangladeshi", "eth_caribbean", "eth_greek", "eth_indian"),
    *("eth_pakistani", "eth_se_asian", "eth_turkish", "eth_other"),
    *("school_mixed", "school_male", "school_female"),
    *("school_maintained", "school_church_of_england", "school_roman_catholic"),
)
N_SPLITS = 10


def _school_inputs(X: Array) -> Array:
    """The inputs without the constant column, which is checked."""
    width = len(SCHOOL_FEATURES) + 1
    if X.ndim != 2 or X.shape[1] != width:
        raise ValueError(f"inputs of shape {X.shape} instead of {width} columns")
    if not (X[:, -1] == 1).all():
        raise ValueError(f"column {width} of the inputs is not constant 1, as it is in the School data")
    return X[:, :-1]


def _school_archive(z: Any) -> Part:
    return Part(_school_inputs(z["X"]), z["y"], z["task"], z["split_is_train"].T)


def _school_cells(mat: Any) -> Part:
    """MALSAR's form, one cell per school; it has no splits."""
    part = tasks_of_cells(mat["X"], mat["Y"])
    return part._replace(X=_school_inputs(part.X))


def _read_split_files(paths: Sequence[Path]) -> list[Part]:
    """The form of Argyriou, Evgeniou and Pontil: one file of pupils, in columns, and one for each split."""
    with opened(paths[0]) as stream:
        mat = loadmat(stream)
        X, y = _school_inputs(mat["x"].T), mat["y"].ravel()
        task = _task_of_starts(mat["task_indexes"].ravel(), len(X))
    return [Part(X, y, task, np.column_stack([_read_split(path, len(X)) for path in paths[1:]]))]


def _task_of_starts(starts: Array, n: int) -> Array:
    """The task of each row, from the index, counted from 1, of the first row of each task."""
    edges = np.append(starts.astype(np.intp) - 1, n)
    lengths = np.diff(edges)
    if edges[0] != 0 or (lengths < 1).any():
        raise ValueError(f"task_indexes must increase from 1 to at most {n}, the number of rows")
    return np.repeat(np.arange(len(lengths)), lengths)


def _read_split(path: Path, n: int) -> Array:
    """True for rows of the training part; the file has the indices, from 1, of the rows of both parts."""
    with opened(path) as stream:
        mat = loadmat(stream)
        train, test = mat["tr"].ravel(), mat["tst"].ravel()
        if not np.array_equal(np.sort(np.concatenate([train, test])), np.arange(1, n + 1)):
            raise ValueError(f"tr and tst together must contain each of the {n} rows once")
        return np.isin(np.arange(1, n + 1), train)


_SPLIT_FILES = ("school_b.mat", *(f"school_{i}_indexes.mat" for i in range(1, N_SPLITS + 1)))

SCHOOL = Entry(
    n_features=len(SCHOOL_FEATURES),
    target_names=None,
    dtype=np.float64,
    feature_names=SCHOOL_FEATURES,
    sources=(
        archive("school.npz", None, _school_archive),
        Source(_SPLIT_FILES, _read_split_files, None),
        matlab("school.mat", None, _school_cells),
    ),
)

MULTI_TASK: dict[str, Entry] = {"landmine": LANDMINE, "umist": UMIST, "school": SCHOOL}
