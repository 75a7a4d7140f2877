"""Models come back from files as they were."""

import hashlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import (
    array_shapes,
    boolean_dtypes,
    floating_dtypes,
    integer_dtypes,
    unicode_string_dtypes,
)
from hypothesis.extra.numpy import arrays as from_arrays
from mutated_files import read, write
from saved_models import FIXED, VALUE, Y1, X, answers, assert_same, known, models
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted

import leastwise as lw
from leastwise.estimators.abstaining import Abstaining
from leastwise.estimators.recalibrated import Recalibrated
from leastwise.persistence import FileError, container, info, registry
from leastwise.utils import atomic_files as atomic

NAMES = [name for name, *_ in models()]
#: A few of different kinds, where all would take long.
SOME = ["lspc", "tasks-pairs", "labels-unknown", "lssvr", "scale-quantile", "abstaining-tasks", "frame-2"]


class Holder(BaseEstimator):
    """An estimator that holds anything."""

    def __init__(self, value=None):
        self.value = value


class Anything:
    """A field that takes every value."""

    def problem(self, value, scope):
        return None


@pytest.fixture(autouse=True)
def _register_holder(monkeypatch):
    monkeypatch.setattr(registry, "ENTRIES", dict(registry.ENTRIES))
    registry.register(Holder, "toy.Holder", "estimator", {"value": Anything()})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.lw"


def from_dtype_arrays(dtypes, shapes):
    """Arrays of all types that files hold, in both orders; text without the zeros that NumPy takes off."""
    given = dtypes.map(lambda dtype: dtype.newbyteorder("="))
    made = given.flatmap(lambda dtype: from_arrays(dtype, shapes))
    return st.builds(lambda array, order: np.asarray(array, order=order), made, st.sampled_from("CF"))


def through(model, path, **options):
    lw.save(model, path, **options)
    return lw.load(path)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_says_the_same_after_a_round_trip(name, path, monkeypatch):
    model, rows, more, said = known(name)
    lw.save(model, path)
    assert_same(said, answers(lw.load(path), rows, more))
    assert_same(said, answers(lw.load(path, mmap=False, verify=False), rows, more))
    monkeypatch.setattr(container, "MAPPED", 0)  # every array in the file, and read only
    again = lw.load(path)
    assert_same(said, answers(again, rows, more))
    assert_same(said, answers(through(again, path), rows, more))


@pytest.mark.parametrize("name", SOME)
def test_a_loaded_model_is_cloned_and_fitted_again(name, path):
    model, rows, more, said = known(name)
    _, _, (_, y), _ = next(case for case in models() if case[0] == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        back = clone(through(model, path)).fit(rows, y, **more)
    assert_same(said, answers(back, rows, more))
    unfitted = through(clone(model), path)
    assert unfitted.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    with pytest.raises(NotFittedError):
        check_is_fitted(unfitted)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_for_predictions_alone_predicts_the_same(name, path):
    model, rows, more, said = known(name)
    lw.save(model, path)
    whole = path.stat().st_size
    back = through(model, path, keep="predict")
    assert path.stat().st_size < whole or not hasattr(model, "heldout_rows_")
    for method in ("predict", "predict_proba", "decision_function", "accepts"):
        if method in said:
            assert_same(said[method], getattr(back, method)(rows, **more), method)
    assert not [key for key in vars(back) if key.startswith("heldout_") or key == "cv_results_"]


def test_what_predictions_do_without_is_missed_with_a_word(path):
    small = through(lw.LSPC(**FIXED).fit(X, Y1), path, keep="predict")
    with pytest.raises(ValueError, match="keep='predict'"):
        small.predict_set(X)
    with pytest.raises(ValueError, match="keep='predict'"):
        small.influence(X)
    with pytest.raises(ValueError, match="keep='predict'"):
        through(lw.LSSVR(**FIXED).fit(X, VALUE), path, keep="predict").predict_interval(X)


@pytest.mark.parametrize("name", NAMES)
def test_single_precision(name, path):
    """Half the bytes of arrays, probabilities that are near, and classes and pre-processing that are untouched."""
    model, rows, more, said = known(name)
    if name == "lspc":  # its ridge is so small that single precision shows
        return
    back = through(model, path, dtype="float32")
    for method in ("predict_proba", "predict"):
        if method not in said or isinstance(said[method], list):
            continue
        a, b = (np.asarray(v) for v in (said[method], getattr(back, method)(rows, **more)))
        if a.dtype.kind == "f" and not isinstance(model, Abstaining):
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)
        elif method == "predict" and a.ndim:
            assert_same(a, b)
    if hasattr(model, "classes_"):
        assert_same(model.classes_, back.classes_)
    if isinstance(model, lw.LSPC):
        assert back.coef_.dtype == np.asarray(back.predict_proba(rows)).dtype == np.float32


def test_float_classes_keep_their_digits(path):
    y = np.array([0.1, 0.2, 1 / 3])[Y1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = lw.LSSVC(**FIXED).fit(X, y.astype(str))
    assert set(through(model, path, dtype="float32").predict(X)) <= set(y.astype(str))
    step = make_pipeline(StandardScaler(), lw.LSPC(**FIXED)).fit(X, Y1)
    assert_same(step[0].mean_, through(step, path, dtype="float32")[0].mean_)


def test_single_precision_refuses_what_would_be_infinite(path):
    model = lw.LSPC(**FIXED).fit(X, Y1)
    model.coef_ = model.coef_ * 1e300
    with pytest.raises(FileError, match=r"model\.coef_ has values too large"):
        lw.save(model, path, dtype="float32")
    assert not list(path.parent.iterdir())


# ------------------------------------------------------------------ the file


def test_large_arrays_stay_in_the_file_and_are_stored_once(path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 20))
    model = lw.LSPC(sigma=4.0, alpha=0.1, centers=rows, scale=None, metric=None, kernel="rbf")
    model.fit(rows, rng.integers(2, size=600))
    model.centers = model.centers.copy()
    back = through(model, path)
    assert type(back.centers_) is np.ndarray
    assert isinstance(back.centers_.base, np.memmap)
    assert not back.centers_.flags.writeable
    assert back.centers is back.centers_
    assert info(path).arrays[0] == ("<f8", (600, 20), 96000)
    assert [a[1] for a in info(path).arrays].count((600, 20)) == 1
    plain = lw.load(path, mmap=False).centers_
    assert plain.base is None
    assert not plain.flags.writeable


def test_a_model_with_centres_holds_no_other_rows(path):
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(3000, 20)), rng.integers(2, size=3000)
    lw.save(lw.LSPC(sigma=4.0, alpha=0.1, n_centers=30).fit(rows, y), path, keep="predict")
    assert path.stat().st_size < 20000  # of 480,000 bytes of rows


def test_things_that_are_the_same_stay_the_same(path):
    model = lw.LSPC(**FIXED).fit(X, Y1)
    inner = StandardScaler()
    back = through(make_pipeline(inner, inner, model), path)
    assert back[0] is back[1]


def test_equal_models_make_equal_files(path):
    lw.save(lw.LSPC(**FIXED).fit(X, Y1), path)
    first = path.read_bytes()
    lw.save(lw.LSPC(**FIXED).fit(X, Y1), path)
    assert path.read_bytes() == first
    lw.save(lw.load(path), path)  # over the file that it is mapped from
    assert path.read_bytes() == first


def test_all_that_a_file_can_hold(path):
    """Values that no estimator has today come back as they were, with their types."""
    rng = np.random.default_rng(5)
    rng.normal(size=3)
    state = np.random.RandomState(np.random.PCG64(1))
    values = {
        "numbers": [1, -1, 2**64, -(2**127), 1.5, -0.0, float("inf"), 1e-310],
        "group": (slice(1, None, 2), (), [], {}),
        "pairs": {None: 1, (1, "a"): 2, 3: [4], "é\ud800": True},
        "scalars": [np.float32(0.1), np.int8(-3), np.bool_(True), np.str_("né"), np.float64(2.0)],
        "arrays": [
            np.array(3.0),
            np.zeros((0, 3)),
            np.arange(6).reshape(2, 3).T,
            np.array(["a", "né"]),
            X[::2, ::-1],
        ],
        "more": [np.array([True, False]), np.array(["2020-01-01"], dtype="M8[D]"), np.array([1, 2], dtype=">i4")],
        "objects": np.array([["a", None], [1.5, ("b", 2)]], dtype=object),
        "sparse": [sparse.csr_matrix(np.eye(3)), sparse.csc_array(X)],
        "types": [float, np.float32, np.dtype("f4"), np.dtype(object), sparse.csr_array],
        "functions": [np.log1p],
    }
    if find_spec("pandas"):
        pandas = __import__("pandas")
        values["constants"] = [pandas.NA, pandas.NaT]
        values["columns"] = [pandas.Int8Dtype(), pandas.CategoricalDtype(["a", "b"], ordered=True)]
    if find_spec("polars"):
        polars = __import__("polars")
        values["schema"] = [polars.Int64(), polars.Enum(["a", "b"]), polars.String()]
    random = [rng, state, np.random.Generator(np.random.Philox(3)), np.random.RandomState(1)]
    back = through(Holder([values, random]), path).value
    values["more"][2] = values["more"][2].astype("<i4")
    assert_same(values, back[0])
    assert str(back[0]["numbers"][5]) == "-0.0"
    for a, b in zip(random, back[1], strict=True):
        assert_same(a.normal(size=5), b.normal(size=5))


PLAIN = st.none() | st.booleans() | st.integers(-(2**100), 2**100) | st.floats(allow_nan=False) | st.text(max_size=5)
SHAPES = array_shapes(min_dims=0, min_side=0, max_dims=3, max_side=4)
DTYPES = boolean_dtypes() | integer_dtypes() | floating_dtypes(sizes=(16, 32, 64)) | unicode_string_dtypes(max_len=3)
VALUES = st.recursive(
    PLAIN | from_dtype_arrays(DTYPES, SHAPES),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(PLAIN, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_any_value_comes_back(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "any.lw"
    assert_same(value, through(Holder(value), path).value)


def test_nesting_that_can_be_saved_can_be_loaded(path):
    for make in (lambda v: [v], lambda v: (v,), lambda v: {"a": v}, lambda v: {(1,): v}):
        value = 1
        for _ in range(60):
            value = make(value)
        assert_same(value, through(Holder(value), path).value)
    value = [np.empty((0, 3), dtype=object), np.array(None, dtype=object), np.zeros((2,) * 8)]
    assert_same(value, through(Holder(value), path).value)
    for large in (range(10), {1}, b"a", np.zeros((1,) * 9), np.zeros((0, 10**7)), np.array(["a" * 10**5])):
        with pytest.raises(FileError, match=r"model\.value is"):
            lw.save(Holder(large), path)


def test_a_reader_that_knows_the_page_alone(path):
    """Scores from the bytes of the file, as another language would get them."""
    model = lw.LSPC(**FIXED).fit(X, Y1)
    lw.save(model, path)
    header, blobs = read(path)
    made = header["objects"][header["root"]]
    assert made["class"] == "LSPC"

    def array(name):
        number = made["state"][name]["array"]
        entry = header["arrays"][number]
        assert hashlib.sha256(blobs[number]).hexdigest() == entry["sha256"]
        return np.frombuffer(blobs[number], entry["dtype"]).reshape(entry["shape"], order=entry["order"])

    distance = ((X[:, None] - array("centers_")) ** 2).sum(axis=2)
    K = np.exp(-distance / (2 * made["state"]["sigma_"] ** 2))
    np.testing.assert_allclose(K @ array("coef_") + array("intercept_"), model.scores(X), atol=1e-9)


def test_info_reads_the_header_alone(path, monkeypatch):
    lw.save(make_pipeline(StandardScaler(), Abstaining(lw.LSPC(**FIXED), max_error=0.4)).fit(X, Y1), path)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1  # damage of an array is not seen
    path.write_bytes(data)
    found = info(path)
    assert found.model == "sklearn.Pipeline"
    assert set(found.steps) == {"sklearn.StandardScaler", "LSPC", "Abstaining"}
    assert found.fitted
    assert (found.format, found.keep, found.dtype, found.size) == (1, "all", None, len(data))
    assert found.versions["leastwise"] == lw.__version__
    assert found.classes["LSPC"] == 2
    lw.save(lw.LSPC(sigma=2.0), path, keep="predict", dtype="float32")
    found = info(path)
    assert (found.model, found.keep, found.dtype, found.fitted) == ("LSPC", "predict", "float32", False)
    assert found.parameters["sigma"] == 2.0
    assert found.arrays == ()


# -------------------------------------------------------------- what is refused


def test_what_no_file_can_hold_is_named(path):
    def product(A, B):
        return A @ B.T

    ours = lw.LSPC(alpha=0.1, kernel=product).fit(X, Y1)
    cases = {
        r"model\.kernel is the function or class .*product": ours,
        r"model\.scoring is": lw.LSPC(scoring=lambda *_: 0),
        r"model\.steps\[0\]\[1\]\.func is": make_pipeline(FunctionTransformer(lambda A: A), lw.LSPC()),
        r"model\.steps\[0\]\[1\] is a sklearn\.linear_model.*LogisticRegression.*skops": make_pipeline(
            LogisticRegression(), lw.LSPC()
        ),
        r"model\.centers is an array of type complex128": lw.LSPC(centers=X + 1j),
        r"model\.centers is a MaskedArray": lw.LSPC(centers=np.ma.array(X)),
        r"model\.centers is a sparse matrix of format 'coo'": lw.LSPC(centers=sparse.coo_array(X)),
        r"model\.cv is": lw.LSPC(cv=iter([])),
    }
    for message, model in cases.items():
        with pytest.raises(FileError, match=message):
            lw.save(model, path)
        assert not list(path.parent.iterdir())
    with pytest.raises(FileError, match="skops or joblib"):
        lw.save(ours, path)


def test_what_contains_itself(path):
    loop = Holder()
    loop.value = [loop]
    with pytest.raises(FileError, match=r"model\.value\[0\] contains itself"):
        lw.save(loop, path)
    loop.value = []
    loop.value.append(loop.value)
    with pytest.raises(FileError, match="or contain themselves"):
        lw.save(loop, path)


@pytest.mark.parametrize("thing", [None, 3, "model", X, {"a": 1}, LogisticRegression(), LSPC := lw.LSPC])
def test_only_estimators_are_saved(thing, path):
    with pytest.raises(FileError, match="cannot be saved"):
        lw.save(thing, path)


def test_a_search_says_what_to_save(path):
    search = GridSearchCV(lw.LSPC(**FIXED), {"alpha": [0.01, 0.1]}, cv=2).fit(X, Y1)
    with pytest.raises(FileError, match="save its best_estimator_"):
        lw.save(search, path)
    assert_same(search.predict(X), through(search.best_estimator_, path).predict(X))


def test_too_many_names(path, monkeypatch):
    monkeypatch.setattr(container, "MAX_GROUPS", 1000)
    monkeypatch.setattr(container, "MAX_BYTES", 100_000)
    for value in ([[]] * 1000, ["a" * 1000] * 100):
        with pytest.raises(FileError, match="too many values that are not arrays"):
            lw.save(Holder(value), path)


def test_options_are_checked(path):
    for options in ({"keep": "some"}, {"dtype": "float16"}, {"dtype": np.float32}):
        with pytest.raises(ValueError, match="keep must be one of"):
            lw.save(lw.LSPC(), path, **options)


def test_a_cache_is_not_stored(path):
    """What a cache holds is unpickled."""
    columns = ColumnTransformer([], n_jobs=2)
    model = make_pipeline(columns, lw.LSPC(**FIXED), memory=str(path.parent / "cache"))
    back = through(model, path)
    assert back.memory is None
    assert back[0].n_jobs is None  # nor how many processes are started


# ------------------------------------------------------------------- versions


def rewritten(path, change):
    """The file with another header, and right checksums."""
    header, blobs = read(path)
    change(header)
    write(path, header, blobs)


def test_a_newer_format_is_refused(path):
    lw.save(lw.LSPC(), path)
    data = bytearray(path.read_bytes())
    data[8] = 2
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"format 2, and this version of leastwise reads formats up to 1.*Upgrade"):
        lw.load(path)
    with pytest.raises(FileError, match="Upgrade"):
        info(path)


def test_a_newer_version_of_a_class_is_refused(path):
    lw.save(lw.LSPC(), path)
    rewritten(path, lambda header: header["objects"][0].update(version=2))
    with pytest.raises(FileError, match=r"LSPC has version 2.*Upgrade"):
        lw.load(path)


def test_attributes_of_older_versions_are_brought_up_to_date(path, monkeypatch):
    lw.save(lw.LSPC(**FIXED).fit(X, Y1), path)
    rewritten(path, lambda header: _rename(header["objects"][-1]["state"], "alpha_", "ridge_"))
    old = registry.ENTRIES["LSPC"]
    steps = {
        1: lambda state: _rename(state, "ridge_", "lambda_"),
        2: lambda state: _rename(state, "lambda_", "alpha_"),
    }
    new = replace(old, version=3, migrations=steps)
    monkeypatch.setitem(registry.ENTRIES, "LSPC", new)
    back = lw.load(path)
    assert back.alpha_ == FIXED["alpha"]
    assert not hasattr(back, "ridge_")


def _rename(state, old, new):
    state[new] = state.pop(old)
    return state


def test_parameters_that_are_new_have_their_defaults(path):
    lw.save(lw.LSPC(**FIXED).fit(X, Y1), path)
    rewritten(path, lambda header: header["objects"][-1]["state"].pop("extrapolate"))
    assert lw.load(path).extrapolate is False


def test_another_scikit_learn_is_told(path):
    model = make_pipeline(StandardScaler(), lw.LSPC(**FIXED)).fit(X, Y1)
    lw.save(model, path)
    rewritten(path, lambda header: header["versions"].update({"scikit-learn": "1.5.0"}))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        lw.load(path)
    assert [type(w.message) for w in seen] == [InconsistentVersionWarning] * 2
    assert [w.message.estimator_name for w in seen] == ["Pipeline", "StandardScaler"]  # and not LSPC
    assert all(w.message.original_sklearn_version == "1.5.0" for w in seen)
    lw.save(lw.LSPC(), path)
    rewritten(path, lambda header: header["versions"].update({"scikit-learn": "1.5.0"}))
    lw.load(path)


def test_all_classes_are_where_the_list_says():
    for name, entry in registry.ENTRIES.items():
        assert entry.name == name
        assert entry.cls.__name__ == entry.class_name
        assert registry.find(entry.cls) is entry
        assert entry.estimator == hasattr(entry.cls, "get_params")
        assert all(v in entry.migrations for v in range(1, entry.version))
    public = [getattr(lw, name) for name in lw.__all__]
    missing = [
        cls
        for cls in [*public, Abstaining, Recalibrated]
        if isinstance(cls, type)
        and not issubclass(cls, lw.Plan | Warning)  # neither is kept
        and not registry.find(cls)
    ]
    assert not missing


# ---------------------------------------------------------------- old formats

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.mark.parametrize("file", sorted(FIXTURES.glob("*/*.lw")), ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_old_files_stay_readable(file):
    """Predictions are stored beside each file."""
    stored = np.load(file.with_suffix(".npz"), allow_pickle=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        model = lw.load(file)
    more = {"tasks": stored["tasks"]} if "tasks" in stored else {}
    for method in set(stored) - {"X", "tasks"}:
        said = getattr(model, method)(stored["X"], **more)
        if said.dtype.kind == "f":  # another library of linear algebra rounds differently
            np.testing.assert_allclose(said, stored[method], rtol=1e-6, atol=1e-8)
        else:
            np.testing.assert_array_equal(said, stored[method])


def test_there_are_old_files():
    assert sorted(folder.name for folder in FIXTURES.glob("format-*")) == ["format-1"]


# ------------------------------------------------------------ whole or not at all


def test_a_failing_disk_leaves_the_old_file(path, monkeypatch):
    lw.save(lw.LSPC(sigma=2.0), path)
    before = path.read_bytes()
    for call, error in (("fsync", OSError(28, "No space left on device")), ("replace", KeyboardInterrupt())):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, lambda *_, error=error: (_ for _ in ()).throw(error))
            with pytest.raises(type(error)) as caught:
                lw.save(lw.LSPC(**FIXED).fit(X, Y1), path)
        if isinstance(error, OSError):
            assert "No space left on device); the old file is unchanged" in str(caught.value)
            assert caught.value.errno == 28
        assert path.read_bytes() == before
        assert list(path.parent.iterdir()) == [path]


FULL = """
import sys, resource
import numpy as np
import leastwise as lw
model = lw.LSPC(sigma=1.0, alpha=0.1, centers=np.zeros((100_000, 1)))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    lw.save(model, sys.argv[1])
except OSError as error:
    print(error)
"""
#: Writes a file over and over again, in small parts, by the function that save calls.
BUSY = """
import sys
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("atomic", sys.argv[1])
atomic = module_from_spec(spec)
spec.loader.exec_module(atomic)
data = open(sys.argv[2], "rb").read()
print("ready", flush=True)
while True:
    atomic.write_atomically(sys.argv[3], (data[k : k + 999] for k in range(0, len(data), 999)))
"""


def child(code, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are those of Unix")
def test_a_full_disk_leaves_the_old_file(path):
    lw.save(lw.LSPC(sigma=2.0), path)
    before = path.read_bytes()
    out, _ = child(FULL, path).communicate(timeout=60)
    assert "File too large); the old file is unchanged" in out
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="kill is that of Unix")
def test_a_killed_process_leaves_an_old_or_a_new_file(tmp_path, path):
    """Whenever it comes: the process does nothing but write."""
    model = lw.LSPC(sigma=1.0, centers=np.ones((300_000, 1)))
    other = tmp_path / "other"
    other.mkdir()
    lw.save(model, other / "new.lw")
    lw.save(lw.LSPC(sigma=2.0), other / "old.lw")
    old, new = ((other / f"{name}.lw").read_bytes() for name in ("old", "new"))
    cut = 0
    for wait in np.linspace(0, 0.05, 12):
        path.write_bytes(old)
        process = child(BUSY, atomic.__file__, other / "new.lw", path)
        assert process.stdout.readline() == "ready\n"
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert path.read_bytes() in (old, new)
        left = [p for p in tmp_path.iterdir() if p not in (path, other)]
        assert all(re.fullmatch(r"\.model\.lw\.\w{8}\.tmp", p.name) for p in left)
        cut += len(left)
        for p in left:
            p.unlink()
    assert cut  # else nothing was interrupted, and this shows nothing


def test_paths(tmp_path, path):
    with pytest.raises(IsADirectoryError, match="is a directory"):
        lw.save(lw.LSPC(), tmp_path)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        lw.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        lw.save(lw.LSPC(), tmp_path / "none" / "model.lw")
    with pytest.raises(FileNotFoundError):
        lw.load(path)
    lw.save(lw.LSPC(), str(path))
    (tmp_path / "link.lw").symlink_to(path)
    lw.save(lw.LSPC(sigma=3.0), tmp_path / "link.lw")
    assert (tmp_path / "link.lw").is_symlink()
    assert lw.load(path).sigma == 3.0
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="not a regular file"):
        lw.load(tmp_path / "pipe")


def test_who_may_read_it(path):
    mask = os.umask(0o027)
    try:
        lw.save(lw.LSPC(), path)
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o604)
    lw.save(lw.LSPC(), path)
    assert path.stat().st_mode & 0o777 == 0o604


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_is_read_only(tmp_path, path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match="the old file is unchanged"):
            lw.save(lw.LSPC(), path)
    finally:
        tmp_path.chmod(0o700)


def test_a_folder_that_takes_no_file(path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError, match=r"Permission denied.; the old file is unchanged"):
        lw.save(lw.LSPC(), path)


def test_pipes_and_devices_stay_what_they_are(tmp_path):
    """Nothing is put in the place of /dev/null, and a pipe gets the file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    lw.save(lw.LSPC(sigma=3.0), pipe)
    reader.join(timeout=20)
    assert pipe.is_fifo()
    (tmp_path / "copy.lw").write_bytes(got[0])
    assert lw.load(tmp_path / "copy.lw").sigma == 3.0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy.lw", "pipe"]


def test_names_are_as_long_as_the_system_has_them(tmp_path):
    """Bytes count, not letters."""
    path = tmp_path / ("ä" * 125 + ".lw")
    lw.save(lw.LSPC(sigma=3.0), path)
    assert lw.load(path).sigma == 3.0
