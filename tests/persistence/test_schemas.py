"""Every file that loads is valid: classes declare their fields, and no other value of a field gets in."""

import ctypes.util
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from mutated_fields import Fields
from mutated_files import read, write
from saved_models import FIXED, LABELS, Y1, X, fitted, models
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import leastwise as lw
from leastwise import baselines
from leastwise.persistence import FileError, fields, registry

HERE = Path(__file__).parents[1]
#: Mutants in a test run; LEASTWISE_FUZZ=100000 tries more of them, LEASTWISE_FUZZ=0 all.
COUNT = int(os.environ.get("LEASTWISE_FUZZ", "2000"))
LINUX = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="uses /proc and the malloc of Linux")
CHECKED_MALLOC = {"PYTHONMALLOC": "malloc_debug", "MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165"}
DEBUG_LIBRARY = "libc_malloc_debug.so.0"


def run_checked(*arguments):
    """Run Python with guards around all blocks of memory, freed and new memory filled with a pattern."""
    environment = {**os.environ, **CHECKED_MALLOC, "OPENBLAS_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([*sys.path, str(HERE)])
    try:
        ctypes.CDLL(DEBUG_LIBRARY)
        environment["LD_PRELOAD"] = DEBUG_LIBRARY
    except OSError:  # an older glibc has it built in; another libc has none
        pass
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False)


# ------------------------------------------------------------------------ the fuzzer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All models of ``saved_models``, with rows beside them."""
    made = tmp_path_factory.mktemp("models")
    for name, *_ in models():
        model, rows, more = fitted(name)
        lw.save(model, made / f"{name}.lw")
        few = {"X": {n: v[:6] for n, v in rows.items()} if isinstance(rows, dict) else rows[:6]}
        few |= {key: value[:6] for key, value in more.items()}
        (made / f"{name}.rows").write_bytes(pickle.dumps(few))
    return made


@LINUX
def test_every_field_of_every_class_is_broken_in_turn(folder):
    done = run_checked(str(HERE / "mutated_fields.py"), str(folder), str(COUNT), "0")
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert not found["wrong"], json.dumps(found["wrong"], indent=1)
    assert found["seen"]["refused"] > found["seen"]["loads"] > 0
    assert "memory" not in found["seen"]
    assert found["megabytes"] < 800
    broken = {cls for cls, _ in found["fields"]}
    missing = {name for name in registry.ENTRIES if not name.startswith("toy.")} - broken
    assert missing <= FIELDLESS | NOT_IN_MODELS


#: Classes without fields, and those that stand in checkpoints of searches or need groups.
FIELDLESS = {name for name, entry in registry.ENTRIES.items() if not entry.declared}
NOT_IN_MODELS = {name for name in registry.ENTRIES if name.startswith("search.")} | {
    *("sklearn.GroupKFold", "sklearn.StratifiedGroupKFold", "sklearn.ShuffleSplit"),
    *("sklearn.StratifiedShuffleSplit", "sklearn.GroupShuffleSplit"),
}


@LINUX
def test_the_guards_of_memory_notice_a_write_past_an_array():
    code = "import ctypes, numpy as np; a = np.zeros(1000); ctypes.memset(a.ctypes.data + a.nbytes, {}, 32); del a"
    assert run_checked("-c", code.replace("{}, 32", "0, 0")).returncode == 0
    assert run_checked("-c", code.format(1)).returncode != 0


# ------------------------------------------------------ what got past the old checks


def change(path, edit):
    """Write the file again with another header."""
    header, blobs = read(path)
    edit(header, blobs)
    write(path, header, blobs)


def state_of(header, name):
    return next(o for o in header["objects"] if o["class"] == name)["state"]


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(PolynomialFeatures(2), lw.LSPC(**FIXED)).fit(X, Y1),
        make_pipeline(PCA(2), lw.LSPC(**FIXED)),
        baselines.RMTLRegressor(),
        baselines.MLkNN(5).fit(X, LABELS),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_estimators_are_left_to_skops(model, tmp_path):
    with pytest.raises(FileError, match=r"Save other estimators with skops \(skops.io.dump\)"):
        lw.save(model, tmp_path / "model.lw")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["sklearn.PolynomialFeatures", "sklearn.SVR", "sklearn.PCA", "RMTLRegressor"])
def test_files_that_name_other_estimators_are_refused(name, tmp_path):
    path = tmp_path / "model.lw"
    lw.save(lw.LSPC(), path)
    change(path, lambda header, _: header["objects"][0].update({"class": name, "state": {"interaction_only": 2}}))
    with pytest.raises(FileError, match=r"which is not registered.*skops"):
        lw.load(path)


@pytest.mark.parametrize("value", [2, 1, None, "True", {"scalar": ["|b1", True]}])
def test_a_boolean_is_a_boolean(value, tmp_path):
    path = tmp_path / "model.lw"
    lw.save(make_pipeline(fitted("pipeline-0-StandardScaler")[0][0], lw.LSPC()), path)
    change(path, lambda header, _: state_of(header, "sklearn.StandardScaler").update(with_mean=value))
    with pytest.raises(FileError, match=r"sklearn.StandardScaler.with_mean is .*; expected True or False"):
        lw.load(path)


def test_messages_name_the_field_and_the_sizes(tmp_path):
    path = tmp_path / "model.lw"
    lw.save(lw.LSPC(**FIXED).fit(X, Y1), path)

    def swap(header, _):
        state = state_of(header, "LSPC")
        state["coef_"], state["intercept_"] = state["intercept_"], state["coef_"]

    change(path, swap)
    with pytest.raises(FileError, match=r"LSPC.intercept_ has the shape \(48, 3\); expected \(n_outputs\)"):
        lw.load(path)


def left_out(name):
    return lambda state, _: state.pop(name)


@pytest.mark.parametrize(
    ("model", "cls", "edit", "match"),
    [
        ("table-classes", "TableModel", left_out("classes_"), "classes_ is missing"),
        (
            "labels",
            "influence.LabelTrainingRecord",
            lambda state, _: state.update(coupled_labels={"tuple": []}),
            "no coupled_labels",
        ),
    ],
)
def test_fields_that_go_together(model, cls, edit, match, tmp_path):
    path = tmp_path / "model.lw"
    lw.save(fitted(model)[0], path)
    change(path, lambda header, _: edit(state_of(header, cls), header))
    with pytest.raises(FileError, match=match):
        lw.load(path)


def test_intervals_need_the_targets(tmp_path):
    path = tmp_path / "model.lw"
    lw.save(lw.LSSVR(**FIXED).fit(X, X[:, 0]), path)
    change(path, lambda header, _: state_of(header, "heldout.Residuals").update(values=None))
    with pytest.raises(FileError, match="values is missing"):
        lw.load(path)


@pytest.mark.parametrize(
    ("model", "cls", "name", "array", "match"),
    [
        ("labels", "influence.LabelTrainingRecord", "codes", lambda a: np.full_like(a, 127), "codes of classes"),
        ("labels-unknown", "labels.Modes", "which", lambda a: a[:-1].copy(), "which has|modes has"),
        ("labels-more", "labels.Modes", "which", lambda a: a[:-1].copy(), "which has|modes has"),
        ("labels", "MultiLabelLSPC", "heldout_proba_", lambda a: a[:, :1].copy(), "heldout_proba_ has other"),
        (
            "recalibrated-auto",
            "Recalibrated",
            "heldout_proba_",
            lambda a: a[:, :2].copy(),
            "heldout_proba_ has other",
        ),
    ],
)
def test_arrays_that_go_together(model, cls, name, array, match, tmp_path):
    path = tmp_path / "model.lw"
    lw.save(fitted(model)[0], path)
    file = Fields(path)
    k = next(k for k, obj in enumerate(file.header["objects"]) if obj["class"] == cls)
    other = array(file.arrays()[file.header["objects"][k]["state"][name]["array"]])
    file.write(path, k, name, {"array": other})
    with pytest.raises(FileError, match=match):
        lw.load(path)


# ------------------------------------------------------------------------ parameters


ROWS = [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
FORMS = [
    lw.LSPC(sigma=1, alpha=(0.1, 1), centers=ROWS, categories=("a", 2), cv=[(np.arange(2), np.arange(2, 4))]),
    lw.LSPC(
        sigma=np.float64(1.0), alpha=np.geomspace(0.1, 1, 3), centers=np.ones((2, 3), int), n_centers=np.int64(2)
    ),
    lw.LSPC(categories=np.array([0, 1]), class_weight={"a": 1, 3: 2.0}, verbose=True, cv=3, search_rows=None),
    lw.LSSVC(prune=3, linear_weight=[0.1, 1], bias=None, random_state=np.random.RandomState(0)),
    lw.LSSVR(random_state=np.random.default_rng(3)),
    lw.MultiTaskLSSVC(bias=0.5, similarity=[[1, 0.5], [0.5, 1]], task_penalty={("a", 1): 1.0}, task_column=-1),
    lw.MultiTaskLSPC(similarity=np.eye(2, dtype=int), task_penalty=[1, 2.0], sharing=(0, 0.5, 1)),
    lw.MultiLabelLSPC(threshold={"a": 0.5}, similarity=[("a", "b"), ("b", "c", 0.5)], label_penalty={"a": 2}),
    lw.MultiLabelLSPC(threshold=[0.5, 1], class_weight={"a": "balanced", "b": {0: 1.0}}, missing=-1),
    lw.MultiLabelLSPC(threshold=np.array([0, 1]), class_weight=["balanced", None, {0: 1}], missing=None),
    lw.Recalibrated(lw.LSPC(), method=None),
    lw.Recalibrated(lw.LSPC(), method=("beta", None)),
    lw.Abstaining(lw.LSPC(), cost=1, reject=np.nan),
    lw.TableModel("y", id=("a", "b"), kinds={"a": "category"}, ignore=["c"], model=lw.LSPC()),
]


@pytest.mark.parametrize("model", FORMS, ids=range(len(FORMS)))
def test_all_documented_forms_of_parameters_are_stored(model, tmp_path):
    lw.save(model, tmp_path / "model.lw")
    back = lw.load(tmp_path / "model.lw")
    for name, value in model.get_params(deep=False).items():
        assert repr(getattr(back, name)).split(" at ")[0] == repr(value).split(" at ")[0], name


def test_every_parameter_and_field_is_declared(tmp_path):
    for name, entry in registry.ENTRIES.items():
        if entry.estimator:
            undeclared = set(registry.parameter_defaults(entry.cls)) - set(entry.declared) - set(entry.skip)
            assert not undeclared, f"{name}: {undeclared}"


# ---------------------------------------------------------------------------- memory


def with_uses(path, n_numbers, n_uses):
    """A file with one array that is used many times."""
    splits = [(np.arange(n_numbers), np.arange(n_numbers))]
    lw.save(lw.LSPC(cv=splits), path)

    def repeat(header, _):
        state = state_of(header, "LSPC")
        state["cv"] = [{"tuple": [{"array": 0}, {"array": 0}]}] * (n_uses // 2)

    change(path, repeat)
    return path.stat().st_size


def test_an_array_that_is_used_often_is_loaded_once(tmp_path):
    path = tmp_path / "model.lw"
    size = with_uses(path, 250_000, 100)
    for mmap in (True, False):
        tracemalloc.start()
        try:
            model = lw.load(path, mmap=mmap)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert most < 2 * size + 2**20
        assert len({id(part) for split in model.cv for part in split}) == 1


def test_uses_of_arrays_are_limited(tmp_path):
    """Each use is checked, which takes time."""
    with_uses(tmp_path / "model.lw", 250_000, 400)
    with pytest.raises(FileError, match="uses its arrays more than"):
        lw.load(tmp_path / "model.lw")


def test_objects_that_refer_to_others_twice_are_limited(tmp_path):
    """A chain of sums of two equal kernels would have 2 ** n parts."""
    path = tmp_path / "model.lw"
    lw.save(lw.LSPC(**FIXED, kernel="rbf+linear").fit(X, Y1), path)

    def double(header, _):
        first = next(k for k, o in enumerate(header["objects"]) if o["class"].startswith("kernel."))
        chain = [
            {
                "class": "kernel.Sum",
                "version": 1,
                "state": {"parts": {"tuple": [{"object": k}] * 2}, "weights": {"tuple": [0.5, 0.5]}},
            }
            for k in (first, *range(len(header["objects"]), len(header["objects"]) + 29))
        ]
        header["objects"] += chain

    change(path, double)
    with pytest.raises(FileError, match="objects nested"):
        lw.load(path)


def many_indices(header, _):
    """Indices that are compared with a size when it is known."""
    chosen = state_of(header, "sklearn.ColumnTransformer")["_transformer_to_input_indices"]["dict"]
    chosen[0][1] = [0] * 200_000


def long_name(header, _):
    """Names of features begin with the name of their column."""
    column = state_of(header, "table.Column")
    column.update(kind="category", name="a" * 100_000, categories={"tuple": [str(k) for k in range(5_000)]})
    state_of(header, "TableEncoder")["output"] = "features"


def repeated_column(header, _):
    """A column that stands in the table many times, with many features each time."""
    at = next(k for k, o in enumerate(header["objects"]) if o["class"] == "table.Column")
    header["objects"][at]["state"].update(kind="category", categories={"tuple": [str(k) for k in range(20_000)]})
    state_of(header, "TableEncoder").update(output="features", columns_=[{"object": at}] * 5_000)


def many_objects(header, _):
    header["objects"] += [{"class": "kernel.RBF", "version": 1, "state": {}}] * 10_000


def many_lists(header, _):
    state_of(header, "LSPC")["cv"] = [[]] * 100_000


def many_names(header, _):
    state_of(header, "LSPC")["categories"] = [f"{k:x}" for k in range(100_000)]


#: Bytes in memory for a byte of the header: short numbers and names take the most.
PARSED = 50


@pytest.mark.parametrize(
    ("model", "edit"),
    [
        ("columns", many_indices),
        ("table-classes", long_name),
        ("table-classes", repeated_column),
        ("lspc", many_objects),
        ("lspc", many_lists),
        ("lspc", many_names),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_the_memory_of_a_load_is_bounded_by_the_file(model, edit, tmp_path):
    path = tmp_path / "model.lw"
    columns = make_column_transformer((StandardScaler(), [0, 1]))
    made = {"lspc": lw.LSPC(), "columns": make_pipeline(columns, lw.LSPC(**FIXED)).fit(X, Y1)}
    lw.save(made[model] if model in made else fitted(model)[0], path)
    lw.load(path)
    change(path, edit)
    tracemalloc.start()
    try:
        with suppress(FileError):
            lw.load(path)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < PARSED * path.stat().st_size + 2**20


def test_control_characters_of_a_file_are_shown_escaped(tmp_path):
    path = tmp_path / "model.lw"
    lw.save(make_pipeline(StandardScaler(), lw.LSPC()), path)
    change(path, lambda header, _: header["versions"].update({"scikit-learn": "\x1b[2J" + "9" * 1000}))
    with pytest.warns(InconsistentVersionWarning) as caught:
        lw.load(path)
    assert all("\x1b" not in str(one.message) and len(str(one.message)) < 500 for one in caught)
    change(path, lambda header, _: state_of(header, "LSPC").update({"\x1b[2J": 1}))
    with pytest.raises(FileError, match=r"attribute '\\x1b\[2J', which is not declared"):
        lw.load(path)


# ------------------------------------------------------------------- types of fields


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        (fields.Bool(), [True, False], [1, 0, None, np.True_, "True"]),
        (fields.Int(0, 5), [0, 5, np.int8(3)], [-1, 6, 1.0, True, "1", None]),
        (fields.Real(0, 1), [0, 1, 0.5, np.float32(0.5)], [-0.1, 1.1, np.nan, True, "0", 1j]),
        (fields.Real(), [2**63 - 1], [2**63, -(2**63) - 1]),
        (fields.Real(finite=False), [np.nan, np.inf, -np.inf, 3], [True, None, "nan"]),
        (fields.Text(), ["", "a", np.str_("a")], [b"a", 1, None]),
        (fields.Text("a", "b"), ["a", "b"], ["c", "", None]),
        (fields.Maybe(fields.Int(1)), [None, 1], [0, "a"]),
        (
            fields.Floats(2),
            [np.zeros(2), np.zeros(2, "f4")],
            [np.zeros(3), np.zeros((2, 1)), np.zeros(2, int), [0, 0]],
        ),
        (
            fields.Floats(2),
            [],
            [np.array([0, np.nan]), np.array([0, np.inf]), np.zeros(2, "f2"), np.zeros(2, object)],
        ),
        (fields.Floats(2, finite=False, low=0), [np.array([np.nan, np.inf])], [np.array([np.nan, -1.0])]),
        (fields.Floats(None, order="rising"), [np.array([0.0, 0, 1]), np.zeros(0)], [np.array([1.0, 0])]),
        (fields.Ints(None, low=0), [np.array([0, 3])], [np.array([-1]), np.array([0.0]), np.array([True])]),
        (fields.Ints(None, order="strict"), [np.array([0, 3])], [np.array([0, 0])]),
        (fields.ListOf(fields.Int(), 2), [[1, 2]], [[1], (1, 2), [1, "a"], np.zeros(2)]),
        (fields.Record(fields.Int(), fields.Text()), [(1, "a")], [(1,), ("a", 1), [1, "a"]]),
        (fields.DictOf(fields.Text(), fields.Int()), [{}, {"a": 1}], [{1: 1}, {"a": "b"}, []]),
        (fields.Slice(), [slice(0, 3), slice(0, 3, 1)], [slice(0, 3, 2), slice(3, 0), slice(-1, 3), 3]),
        (fields.RandomSource(), [None, 0, np.random.RandomState(0), np.random.default_rng(0)], [-1, 2**32, "a"]),
        (fields.Function(), [np.log1p], [np.save, eval, "numpy.log1p", None]),
        (fields.Name(), ["a", 1, ("a", 1), None], [[1], {}, ("a", [1])]),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "problem") else "",
)
def test_types_of_fields(field, good, bad):
    for value in good:
        assert field.problem(value, fields.Scope({})) is None, value
    for value in bad:
        assert field.problem(value, fields.Scope({})) is not None, value


def test_sizes_with_the_same_name_are_equal():
    scope = fields.Scope({})
    assert fields.Floats("n", "k").problem(np.zeros((3, 2)), scope) is None
    assert fields.Floats("k").problem(np.zeros(2), scope) is None
    assert fields.Floats("n+1").problem(np.zeros(4), scope) is None
    assert fields.Floats("k").problem(np.zeros(3), scope) == " has the shape (3,); expected (k = 2)"
    assert fields.Floats("n+1").problem(np.zeros(3), scope) == " has the shape (3,); expected (n+1 = 4)"
