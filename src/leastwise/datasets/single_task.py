"""Single-task data sets of the papers' experiments, each with the public forms of its files.

The classes are numbered 0, 1, ... in the same order for every form. Values are as in the files; LIBSVM files whose
names end in ``.scale`` are scaled already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from string import ascii_uppercase
from typing import IO, Any

import numpy as np

from leastwise.datasets.files import Array, Entry, Part, Source, archive, one_file, opened, stacked
from leastwise.sources.formats.libsvm import read_libsvm

# ------------------------------------------------------------------- formats


def _archive(name: str, labels: Sequence) -> Source:
    """One .npz with X_train, y_train, X_test, y_test, or X, y and is_train."""

    def read(paths: Sequence[Path]) -> list[Part]:
        # Opened here, as np.load does not close a file that is not an archive.
        with opened(paths[0]) as stream, np.load(stream, allow_pickle=False) as z:
            if "X_train" in z:
                return [Part(z["X_train"], z["y_train"]), Part(z["X_test"], z["y_test"])]
            X, y, train = z["X"], z["y"], z["is_train"].astype(bool)
            return [Part(X[train], y[train]), Part(X[~train], y[~train])]

    return Source((f"{name}.npz",), read, labels)


def _by_part(train: Sequence[str], test: Sequence[str], labels: Sequence, read: Callable[[Path], Part]) -> Source:
    """Files that ``read`` reads one by one: those of the training part, then those of the test part."""

    def read_all(paths: Sequence[Path]) -> list[Part]:
        parts = [read(path) for path in paths]
        return [stacked(parts[: len(train)]), stacked(parts[len(train) :])]

    return Source((*train, *test), read_all, labels)


def _read_libsvm(path: Path, n_features: int, dtype: type) -> Part:
    """Indices begin at 1; trailing features that are always zero may be left out."""
    with opened(path) as stream:
        rows = read_libsvm(stream, path.name)
        X = rows.values
        if X.shape[1] > n_features + 1 or (X.indices == 0).any():
            raise ValueError(f"indices must be from 1 to {n_features}")
        X.resize(X.shape[0], n_features + 1)
        return Part(X[:, 1:].astype(dtype).toarray(), np.array(rows.labels, dtype=float))


def _libsvm(stem: str, d: int, labels: Sequence, dtype: type, train: Sequence[str] = ("",)) -> Source:
    """The files of the LIBSVM page; ``train`` are the suffixes of the training files."""
    reader = partial(_read_libsvm, n_features=d, dtype=dtype)
    return _by_part([stem + ending for ending in train], [f"{stem}.t"], labels, reader)


def _read_idx(path: Path) -> Array:
    """An idx file of unsigned bytes: two zeros, the type 8, the number of axes, their lengths, the values."""
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
    """UCI's file, of which the first 16000 rows are usually the training part."""

    def read(paths: Sequence[Path]) -> list[Part]:
        with opened(paths[0]) as stream:
            table = np.loadtxt(stream, dtype=object, delimiter=",", ndmin=2)
            X, y = table[:, 1:].astype(float), table[:, 0]
            return [Part(X[:n_train], y[:n_train]), Part(X[n_train:], y[n_train:])]

    return Source(("letter-recognition.data",), read, labels)


# ---------------------------------------------------------------- dermatology

#: Dermatology, in UCI's order and spelling: eleven clinical and twenty-two histopathological attributes, and the age,
#: the only one with missing values (8 of 366 patients). The paper's 33 attributes are the others.
DERMATOLOGY_FEATURES = (
    *("erythema", "scaling", "definite_borders", "itching", "koebner_phenomenon", "polygonal_papules"),
    *("follicular_papules", "oral_mucosal_involvement", "knee_and_elbow_involvement", "scalp_involvement"),
    *("family_history", "melanin_incontinence", "eosinophils_in_the_infiltrate", "PNL_infiltrate"),
    *("fibrosis_of_the_papillary_dermis", "exocytosis", "acanthosis", "hyperkeratosis", "parakeratosis"),
    *("clubbing_of_the_rete_ridges", "elongation_of_the_rete_ridges", "thinning_of_the_suprapapillary_epidermis"),
    *("spongiform_pustule", "munro_microabcess", "focal_hypergranulosis", "disappearance_of_the_granular_layer"),
    *("vacuolisation_and_damage_of_basal_layer", "spongiosis", "saw_tooth_appearance_of_retes"),
    *("follicular_horn_plug", "perifollicular_parakeratosis", "inflammatory_monoluclear_inflitrate"),
    *("band_like_infiltrate", "age"),
)
_DISEASES = (
    "psoriasis",
    "seborrheic dermatitis",
    "lichen planus",
    "pityriasis rosea",
    "chronic dermatitis",
    "pityriasis rubra pilaris",
)
_DISEASE_CODES = range(1, 7)


def _dermatology_archive(z: Any) -> Part:
    return Part(np.column_stack([z["X"], z["age"]]), z["y"])


def _dermatology_text(stream: IO[bytes]) -> Array:
    table = np.loadtxt(stream, dtype=object, delimiter=",", ndmin=2)
    return np.array([[np.nan if cell.strip() == "?" else float(cell) for cell in row] for row in table])


def _dermatology_table(table: Array) -> Part:
    return Part(table[:, :-1], table[:, -1])


DERMATOLOGY = Entry(
    n_features=len(DERMATOLOGY_FEATURES),
    target_names=_DISEASES,
    dtype=np.float64,
    feature_names=DERMATOLOGY_FEATURES,
    missing=(DERMATOLOGY_FEATURES.index("age"),),
    sources=(
        archive("dermatology.npz", _DISEASE_CODES, _dermatology_archive),
        one_file("dermatology.data", _DISEASE_CODES, _dermatology_table, opening=_dermatology_text),
    ),
)


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
#: Statlog's codes; no row has 6, a class of mixtures. LIBSVM's files number the others 1 to 6.
_SOIL_CODES = (1, 2, 3, 4, 5, 7)

#: Pixels are float32, tables with few columns float64.
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
