"""The Dermatology data of UCI: six skin diseases told apart by what a doctor and a microscope see.

The last of the 34 columns is the age, the only one with missing values: 8 of the 366 patients have none. The
paper's 33 attributes are the others.
"""

from __future__ import annotations

from typing import IO, Any

import numpy as np

from leastwise.datasets.files import Array, Entry, Part, archive, one_file

#: UCI's order and spelling: eleven seen on the patient, twenty-two under the microscope, and the age.
FEATURES = (
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
DISEASES = (
    "psoriasis",
    "seborrheic dermatitis",
    "lichen planus",
    "pityriasis rosea",
    "chronic dermatitis",
    "pityriasis rubra pilaris",
)
_CODES = range(1, 7)


def _read_archive(z: Any) -> Part:
    return Part(np.column_stack([z["X"], z["age"]]), z["y"])


def _text_table(stream: IO[bytes]) -> Array:
    table = np.loadtxt(stream, dtype=str, delimiter=",", ndmin=2)
    return np.where(np.char.strip(table) == "?", "nan", table).astype(np.float64)


def _read_table(table: Array) -> Part:
    return Part(table[:, :-1], table[:, -1])


DERMATOLOGY = Entry(
    n_features=len(FEATURES),
    target_names=DISEASES,
    dtype=np.float64,
    feature_names=FEATURES,
    missing=(FEATURES.index("age"),),
    sources=(
        archive("dermatology.npz", _CODES, _read_archive),
        one_file("dermatology.data", _CODES, _read_table, opening=_text_table),
    ),
)
