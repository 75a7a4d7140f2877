"""The School data: examination scores of pupils of 139 schools, which are the tasks, by regression.

Every public form has 28 columns, of which the last is 1 throughout: an intercept for methods that have none. It is
left out here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat

from leastwise.datasets.files import Array, Entry, Part, Source, archive, matlab, opened, tasks_of_cells

#: In the order of the files. Lists in circulation exchange the genders and the bands; these agree with the values:
#: all pupils of girls' schools are girls, and the scores fall from band 1 to band 3.
FEATURES = (
    *("year_1985", "year_1986", "year_1987", "fsm_pct", "vr1_band_pct", "gender_female", "gender_male"),
    *("vr_band_3", "vr_band_1", "vr_band_2"),
    *("eth_eswi", "eth_african", "eth_arab", "eth_bangladeshi", "eth_caribbean", "eth_greek", "eth_indian"),
    *("eth_pakistani", "eth_se_asian", "eth_turkish", "eth_other"),
    *("school_mixed", "school_male", "school_female"),
    *("school_maintained", "school_church_of_england", "school_roman_catholic"),
)
N_SPLITS = 10


def _inputs(X: Array) -> Array:
    """Without the constant, of which it is made sure that it is one."""
    width = len(FEATURES) + 1
    if X.ndim != 2 or X.shape[1] != width:
        raise ValueError(f"inputs of shape {X.shape} instead of {width} columns")
    if not (X[:, -1] == 1).all():
        raise ValueError(f"column {width} of the inputs is not 1 throughout, as it is in the School data")
    return X[:, :-1]


def _read_archive(z: Any) -> Part:
    return Part(_inputs(z["X"]), z["y"], z["task"], z["split_is_train"].T)


def _read_cells(mat: Any) -> Part:
    """The form of MALSAR, one cell a school; it holds no splits."""
    part = tasks_of_cells(mat["X"], mat["Y"])
    return part._replace(X=_inputs(part.X))


# -------------------------------------------------- the form that has the splits


def _read_split_files(paths: Sequence[Path]) -> list[Part]:
    """The form of Argyriou, Evgeniou and Pontil: one file of pupils, in columns, and one for every split."""
    with opened(paths[0]) as stream:
        mat = loadmat(stream)
        X, y = _inputs(mat["x"].T), mat["y"].ravel()
        task = _task_of_starts(mat["task_indexes"].ravel(), len(X))
    return [Part(X, y, task, np.column_stack([_read_split(path, len(X)) for path in paths[1:]]))]


def _task_of_starts(starts: Array, n: int) -> Array:
    """The task of every row, from the number, counted from 1, of the first row of each task."""
    edges = np.append(starts.astype(np.intp) - 1, n)
    lengths = np.diff(edges)
    if edges[0] != 0 or (lengths < 1).any():
        raise ValueError(f"task_indexes that do not grow from 1 to at most {n}, the number of rows")
    return np.repeat(np.arange(len(lengths)), lengths)


def _read_split(path: Path, n: int) -> Array:
    """Whether each of n rows is in the training part; the file has the numbers, from 1, of the rows of both parts."""
    with opened(path) as stream:
        mat = loadmat(stream)
        train, test = mat["tr"].ravel(), mat["tst"].ravel()
        if not np.array_equal(np.sort(np.concatenate([train, test])), np.arange(1, n + 1)):
            raise ValueError(f"tr and tst together do not have each of the {n} rows once")
        return np.isin(np.arange(1, n + 1), train)


_SPLIT_FILES = ("school_b.mat", *(f"school_{i}_indexes.mat" for i in range(1, N_SPLITS + 1)))

SCHOOL = Entry(
    n_features=len(FEATURES),
    target_names=None,
    dtype=np.float64,
    feature_names=FEATURES,
    sources=(
        archive("school.npz", None, _read_archive),
        Source(_SPLIT_FILES, _read_split_files, None),
        matlab("school.mat", None, _read_cells),
    ),
)
