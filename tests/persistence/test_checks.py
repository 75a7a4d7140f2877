"""Each check across fields refuses what it is for: one broken combination of fields for each of them."""

import datetime
import hashlib
import json

import numpy as np
import pytest
from mutated_fields import Fields
from mutated_files import read, write
from saved_models import FIXED, Y1, X, fitted
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import leastwise as lw
from leastwise.persistence import FileError

CODES = np.column_stack([X[:, 0], np.arange(len(X)) % 5, np.where(np.arange(len(X)) < 3, 9, np.arange(len(X)) % 2)])
NAMED = {name: X[:, k] for k, name in enumerate("abc")}


def encoded(encoder):
    columns = make_column_transformer((StandardScaler(), [0]), (encoder, [1, 2]))
    return make_pipeline(columns, lw.LSPC(**FIXED)).fit(CODES, Y1)


def masked():
    columns = make_column_transformer((StandardScaler(), [True, True, False]))
    return make_pipeline(columns, lw.LSPC(**FIXED)).fit(X, Y1)


def named():
    import pandas as pd

    columns = make_column_transformer((StandardScaler(), ["a", "b"]))
    return make_pipeline(columns, lw.LSPC(**FIXED)).fit(pd.DataFrame(NAMED), Y1)


def with_categories():
    missing = CODES.copy()
    missing[::7, 0] = np.nan
    return lw.LSPC(**FIXED, categories=[1, 2], scale="standard").fit(missing, Y1)


MADE = {
    "one-hot": lambda: encoded(OneHotEncoder(min_frequency=4, drop="first")),
    "ordinal": lambda: encoded(OrdinalEncoder()),
    "masked": masked,
    "named": named,
    "categories": with_categories,
    "by-task": lambda: lw.Abstaining(lw.MultiTaskLSPC(**FIXED, sharing=0.5), min_confidence=0.6, by_task=True).fit(
        X, Y1, tasks=np.arange(len(X)) % 3
    ),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """``saved(name)`` is the file of a model, which is fitted once."""
    folder = tmp_path_factory.mktemp("models")

    def path(name):
        if not (folder / name).exists():
            lw.save(MADE[name]() if name in MADE else fitted(name)[0], folder / name)
        return folder / name

    return path


LEFT_OUT = ...


def more(a):
    """One entry more along the first axis."""
    return np.concatenate([a, a[-1:]])


def wider(a):
    """One column more."""
    return np.concatenate([a, a[:, -1:]], axis=1)


def far(a):
    """Indices that are too large."""
    return np.full_like(a, 99)


def thrice(a):
    """Three times as many entries along the first axis."""
    return np.concatenate([a, a, a])


def fall(a):
    """The other way round."""
    return a[::-1]


RARE = ("_infrequent_indices", "_default_to_infrequent_mappings")
NINTH = {"tuple": ["standardscaler", "passthrough", [9]]}
NESTED = "a"
for _ in range(10):
    NESTED = {"tuple": [NESTED]}
MASK = {"tuple": ["standardscaler", "passthrough", [True, False]]}
#: A model, a class in it, its fields, and what they become: a function of an array, another value, or left out.
CASES = [
    ("lspc", "inputs.Inputs", "columns", np.array([0, 1, 99]), "inputs_ takes columns beyond"),
    ("categories", "inputs.Inputs", "columns", LEFT_OUT, "inputs_ has a rule for 1 columns, and takes 3"),
    ("categories", "inputs.OneHot", "column", 0, "inputs_ has slots for more categories"),
    ("categories", "inputs.Inputs", "missing_factors", None, "missing_factors does not belong to missing"),
    ("lspc", "inputs.Inputs", "weights", np.ones(5), "inputs_ has 5 weights for 3 columns"),
    ("lspc", "LSPC", "centers_", wider, "inputs_ makes"),
    ("lspc", "heldout.Neighbourhood", "places", None, "neighbourhood_ has neither places nor rows"),
    ("lspc", "heldout.Neighbourhood", "places", far, "neighbourhood_ has places beyond the centers"),
    ("lspc", "influence.TrainingRecord", ("index", "Z", "w"), more, "training_record_ has .* rows for"),
    ("labels", "influence.LabelTrainingRecord", ("codes", "entries"), wider, "training_record_ has other labels"),
    ("lspc", "LSPC", "heldout_proba_", LEFT_OUT, "one of the other held-out attributes is missing"),
    ("labels", "heldout.HeldoutRows", "codes", far, "heldout_rows_ has codes of classes or labels"),
    ("tasks", "heldout.HeldoutRows", "task", far, "heldout_rows_ has tasks that are not there"),
    ("stream-lspc", "stream.RowSample", "y", far, "kept_ has codes of classes"),
    ("stream-lspc", "stream.RowSample", "X", wider, "kept_ has rows of another width"),
    ("stream-lspc", "LSPC", ("centers_", "coef_"), more, "moments_ has .* basis functions"),
    ("recalibrated-vector", "recalibration.Linear", ("W", "b"), thrice, "calibrators_ has a map with parameters for"),
    ("abstaining-tasks", "Abstaining", "unseen_task_threshold_", LEFT_OUT, "unseen_task_threshold_ is missing"),
    ("by-task", "Abstaining", ("task_thresholds_", "task_guarantees_"), more, "task_thresholds_ has"),
    ("table-labels", "TableModel", "labels", None, "labels are not those of fitted_"),
    ("lssvr-robust", "heldout.Spread", "kernel", None, "by is .*, and the attributes that are not None are"),
    ("lssvr-robust", "heldout.Spread", "knots", wider, "knots has 2 columns, and there are 1 outputs"),
    ("lssvr-outputs", "heldout.Spread", "knots", wider, "n_inputs"),
    ("pipeline-3-QuantileTransformer", "sklearn.QuantileTransformer", "quantiles_", fall, "quantiles_ has a column"),
    ("ordinal", "sklearn.OrdinalEncoder", "categories_", fall, r"categories_.* is not in rising order"),
    ("ordinal", "sklearn.OrdinalEncoder", "categories_", lambda a: a[:0], r"categories_.* is empty"),
    ("one-hot", "sklearn.OneHotEncoder", "_infrequent_indices", LEFT_OUT, "does not belong to"),
    ("one-hot", "sklearn.OneHotEncoder", RARE, LEFT_OUT, "_infrequent_indices is missing"),
    ("one-hot", "sklearn.OneHotEncoder", "_infrequent_indices", far, "has other codes than the categories"),
    ("one-hot", "sklearn.OneHotEncoder", "_drop_idx_after_grouping", {"objects": [[2], [99, 0]]}, "is 99 for"),
    ("one-hot", "sklearn.OneHotEncoder", "_n_features_outs", [1, 99], "_n_features_outs"),
    ("named", "sklearn.ColumnTransformer", "feature_names_in_", {"objects": [[3], ["x", "y", "z"]]}, "is not there"),
    ("masked", "sklearn.ColumnTransformer", "transformers_", [MASK], "has a mask of 2 columns of 3"),
    ("masked", "sklearn.ColumnTransformer", "transformers_", [NINTH], "takes column 9 of 3"),
    ("labels", "calibrator.LabelBlend", "starts", np.array([0, 1, 4, 6, 8]), "calibrator_ has other labels"),
    ("lspc", "LSPC", "classes_", np.arange(4), "n_classes"),
    ("stream-labels", "stream.RowSample", "y", wider, "kept_ has targets of the shape"),
    ("recalibrated-labels", "Recalibrated", "threshold_", LEFT_OUT, "threshold_ is missing"),
    ("abstaining", "Abstaining", "classes_", more, "classes_ are not those of estimator_"),
    ("lssvc-isotonic", "calibrator.Isotonic", "steps", more, r"steps\[.\] is not as long as knots"),
    ("lspc-sparse", "LSPC", "centers_", {"sparse": ["scipy.csr_matrix", [48, 4], 2, 3, 4]}, "inputs_ makes"),
    ("lspc-sparse", "LSPC", "centers_", {"sparse": ["scipy.csr_matrix", [49, 3], 2, 3, 4]}, "inconsistent indices"),
    ("lspc-sparse", "LSPC", "centers_", {"sparse": ["scipy.csc_matrix", [3, 48], 2, 3, 4]}, "has the shape"),
    ("lspc-sparse", "LSPC", "centers_", {"sparse": [1]}, "without type, shape and three arrays"),
    ("lspc", "LSPC", "scoring", {"date": 1}, "a text value that is not a string"),
    ("lspc", "LSPC", "class_weight", {"dict": [[1, 2], [1, 3]]}, "a dictionary with a duplicate key"),
    ("lspc", "LSPC", "categories_", [[NESTED], None, None], "a tuple nested more than 8 deep"),
    ("one-hot", "sklearn.OneHotEncoder", "dtype", {"type": "numpy.datetime64"}, "allowed are"),
    (
        "pipeline-4-FunctionTransformer",
        "sklearn.FunctionTransformer",
        "kw_args",
        {"dict": [["a", None]]},
        "has 1 items",
    ),
]


def other_node(node, change, arrays):
    """What becomes of a field: arrays are changed, the last one of a list of them."""
    if not callable(change):
        return {"array": change} if isinstance(change, np.ndarray) else change
    if isinstance(node, dict) and "tuple" in node:
        return {"tuple": other_node(node["tuple"], change, arrays)}
    if isinstance(node, list):
        return [*node[:-1], other_node(node[-1], change, arrays)]
    return {"array": np.ascontiguousarray(change(arrays[node["array"]]))} if node else node


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "cls", "names", "change", "match"), CASES)
def test_fields_that_do_not_go_together(saved, tmp_path, model, cls, names, change, match):
    path, file = tmp_path / "model.lw", Fields(saved(model))
    names = names if isinstance(names, tuple) else (names,)
    k = max(k for k, o in enumerate(file.header["objects"]) if o["class"] == cls and names[0] in o["state"])
    for name in names:
        node = file.header["objects"][k]["state"][name]
        file.write(path, k, name, other_node(node, change, file.arrays()))
        file = Fields(path)
    with pytest.raises(FileError, match=match):
        lw.load(path)


def test_a_wrapper_needs_a_fitted_model(saved, tmp_path):
    file = Fields(saved("recalibrated-temperature"))
    k = next(k for k, o in enumerate(file.header["objects"]) if o["class"] == "Recalibrated")
    file.write(tmp_path / "model.lw", k, "estimator_", file.header["objects"][k]["state"]["estimator"])
    with pytest.raises(FileError, match="estimator_ is not fitted"):
        lw.load(tmp_path / "model.lw")


def header_text(path, edit):
    """Write the file again with the header as other text."""
    header, blobs = read(path)
    write(path, header, blobs, edit(json.dumps(header)).encode())


@pytest.mark.parametrize(
    ("edit", "match"),
    [
        (lambda text: "[1]", "the header is not a JSON object"),
        (lambda text: text.replace('"objects": [', '"objects": 1, "other": ['), "no list of objects"),
        (lambda text: text.replace('"root": ', '"root": 0, "other": '), "does not contain an estimator"),
    ],
)
def test_headers(saved, tmp_path, edit, match):
    path = tmp_path / "model.lw"
    path.write_bytes(saved("lspc").read_bytes())
    header_text(path, edit)
    with pytest.raises(FileError, match=match):
        lw.load(path)


@pytest.mark.parametrize("mmap", [True, False])
def test_a_damaged_byte_of_a_large_array(tmp_path, mmap):
    path = tmp_path / "model.lw"
    lw.save(lw.LSPC(centers=np.ones((5000, 3))), path)
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"the checksum of the array at byte .* is wrong"):
        lw.load(path, mmap=mmap)


def test_a_boolean_array_has_bytes_of_0_and_1(saved, tmp_path):
    file = Fields(saved("lspc"))
    k = next(k for k, o in enumerate(file.header["objects"]) if o["class"] == "LSPC")
    file.write(tmp_path / "model.lw", k, "categories", {"array": np.array([True, False, True])})
    header, blobs = read(tmp_path / "model.lw")
    blobs[-1][0] = 2
    header["arrays"][-1]["sha256"] = hashlib.sha256(blobs[-1]).hexdigest()
    write(tmp_path / "model.lw", header, blobs)
    with pytest.raises(FileError, match="a boolean array with values other than 0 and 1"):
        lw.load(tmp_path / "model.lw")


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("reject", 2**128, "is an integer of 129 bits"),
        ("reject", np.datetime64("2024-01-01"), "is a datetime64"),
        ("max_error", 2.0, "max_error is 2.0; expected"),
        ("something_", 1, "is not declared: .*If you have set the attribute yourself"),
    ],
)
def test_what_cannot_be_read_is_not_written(tmp_path, name, value, match):
    model = lw.Abstaining(lw.LSPC(), max_error=0.1)
    setattr(model, name, value)
    with pytest.raises(FileError, match=match):
        lw.save(model, tmp_path / "model.lw")
    assert not list(tmp_path.iterdir())


def test_times_and_empty_text_come_back(tmp_path):
    for value in (datetime.timedelta(3, 2, 1), np.str_(""), ""):
        lw.save(lw.Abstaining(lw.LSPC(), max_error=0.1, reject=value), tmp_path / "model.lw")
        assert lw.load(tmp_path / "model.lw").reject == value
    lw.save(lw.LSPC(categories=np.array([""])), tmp_path / "model.lw")
    assert lw.load(tmp_path / "model.lw").categories.tolist() == [""]
