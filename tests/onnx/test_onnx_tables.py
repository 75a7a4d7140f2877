"""Models of tables as graphs: what goes in is what stands in a file."""

import json

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator
from onnx_cases import FIXED as SIGMA
from onnx_cases import run
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leastwise import LSPC, LSSVR, MultiLabelLSPC, MultiTaskLSPC, MultiTaskLSSVR, load
from leastwise.onnx import check, feeds, to_onnx
from leastwise.onnx.encoders import spellings
from leastwise.tables import Table, TableEncoder, TableModel, read_table, write_table

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

FIXED = {**SIGMA, "scale": "standard"}
TASKS = {**FIXED, "sharing": 0.4}


def cases(n=200, seed=0, gaps=0.06):
    """Cells as a text file has them: numbers, rare categories, booleans, dates, and gaps in all of them."""
    rng = np.random.default_rng(seed)
    size = rng.normal(5, 2, n)
    colour = rng.choice(["red", "blue", "green"], n).astype(object)
    colour[rng.permutation(n)[:3]] = ["teal", "pink", "plum"]
    wet = rng.random(n) < 0.4
    table = {
        "case": [f"C-{i}" for i in range(n)],
        "size": [f"{v:.3f}" for v in size],
        "colour": colour,
        "wet": np.where(wet, "yes", "No"),
        "seen": [f"2024-{k % 12 + 1:02d}-{k % 28 + 1:02d}" for k in rng.integers(400, size=n)],
        "same": ["1" if rng.random() < 0.8 else "" for _ in range(n)],  # all that it says is where it is missing
        "site": rng.choice(["Ulm", "Bonn", "Kiel"], n),
    }
    table = {name: np.array(cells, dtype=object) for name, cells in table.items()}
    for name in ("size", "colour", "wet", "seen"):
        table[name][rng.random(n) < gaps] = rng.choice(["", "NA", "?"])
    z = size - 5 + 2 * (colour == "red") - wet + (table["site"] == "Ulm") + rng.normal(size=n)
    table["finding"] = np.array(["fine", "fault", "odd"], dtype=object)[(z > 1).astype(int) + (z > 3)]
    table["amount"] = np.array([f"{v:.4f}" for v in z], dtype=object)
    for k, name in enumerate(("hot", "dear")):
        table[name] = np.array(["0", "1"], dtype=object)[(z + rng.normal(size=n) > k).astype(int)]
    return table


def unseen(table):
    """Rows with what training has not seen: categories, tasks, gaps, and numbers far away."""
    new = {name: cells.copy() for name, cells in table.items()}
    new["colour"][::4], new["site"][::5], new["site"][1::5], new["size"][::7] = "mauve", "Rom", "", "1e30"
    new["wet"][::3], new["wet"][1::3], new["same"][::2], new["seen"][::9] = "TRUE", "0", "5", "n/a"
    return new


NOT_INPUTS = ["finding", "amount", "hot", "dear", "case"]


def fitted(target, **options):
    kept = [target] if isinstance(target, str) else target
    ignore = [name for name in NOT_INPUTS if name not in kept]
    labels = {} if isinstance(target, str) else {"labels": target}
    first = [target] if isinstance(target, str) else []
    return TableModel(*first, **labels, ignore=ignore, **options).fit(cases())


MODELS = {
    "classes": lambda: fitted("finding", model=LSPC(**FIXED)),
    "decided": lambda: fitted("finding", model=LSPC(**FIXED), min_confidence=0.7),
    "again": lambda: fitted("finding", model=LSPC(**FIXED), recalibrate=True, min_confidence=0.6),
    "tasks": lambda: fitted("finding", task="site", model=MultiTaskLSPC(**TASKS), min_confidence=0.7),
    "tasks again": lambda: fitted("finding", task="site", model=MultiTaskLSPC(**TASKS), recalibrate=True),
    "chosen": lambda: fitted("finding", n_centers=40),
    "quantiles": lambda: fitted("finding", model=LSPC(**{**FIXED, "scale": "quantile"})),
    "pipeline": lambda: fitted("finding", model=make_pipeline(PCA(3), LSPC(**FIXED))),
    "labels": lambda: fitted(["hot", "dear"], model=MultiLabelLSPC(**FIXED, sharing=0.3), min_confidence=0.7),
    "numbers": lambda: fitted("amount", model=LSSVR(**FIXED)),
    "numbers of tasks": lambda: fitted("amount", task="site", model=MultiTaskLSSVR(**TASKS)),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_of_all_kinds(name):
    model = MODELS[name]()
    for table in (cases(seed=1), unseen(cases(seed=2))):
        answer = model.answer(table)
        out = run(to_onnx(model), table)
        if model.kind_ == "numbers":
            np.testing.assert_allclose(out["variable"], answer.prediction, rtol=1e-9)
        else:
            np.testing.assert_allclose(out["probabilities"], answer.proba, rtol=0, atol=1e-9)
            label = model.classes_[answer.prediction] if model.kind_ == "classes" else answer.prediction
            assert np.array_equal(out["label"], label)
        assert ("accepted" in out) == (answer.decided is not None)
        if answer.decided is not None:
            assert np.array_equal(out["accepted"], answer.decided)
            assert 0 < out["accepted"].sum() < out["accepted"].size
        assert check(model, to_onnx(model), table) < 1e-9
        near = {**table, "size": np.where(table["size"] == "1e30", "1e9", table["size"])}
        assert check(model, to_onnx(model, dtype="float32"), near) < 1e-6


def test_inputs_are_the_columns_that_are_used():
    model = MODELS["tasks"]()
    proto = to_onnx(model)
    onnx.checker.check_model(proto, full_check=True)
    kinds = {"size": "number", "colour": "category", "wet": "boolean", "seen": "date", "same": "number"}
    notes = {p.key: p.value for p in proto.metadata_props}
    assert json.loads(notes["columns"]) == {**kinds, "site": "task"}
    assert [i.name for i in proto.graph.input] == [*kinds, "site"]
    kind = {i.name: i.type.tensor_type.elem_type for i in proto.graph.input}
    T = onnx.TensorProto
    assert (kind["size"], kind["seen"]) == (T.DOUBLE, T.DOUBLE)
    single = {i.name: i.type.tensor_type.elem_type for i in to_onnx(model, dtype="float32").graph.input}
    assert (single["size"], single["seen"]) == (T.FLOAT, T.DOUBLE)
    assert {kind[name] for name in ("colour", "wet", "site")} == {T.STRING}
    assert [o.name for o in proto.graph.output] == ["label", "probabilities", "accepted"]
    assert notes["estimator"] == "MultiTaskLSPC"


def test_cells_as_another_language_reads_them():
    """Numbers parsed, everything else as it stands there."""
    model, table = MODELS["tasks"](), unseen(cases(seed=3))
    table["colour"][2], table["wet"][4], table["site"][3] = "NULL", "Na", "None"
    proto = to_onnx(model)
    fed = {i.name: table[i.name][:, None] for i in proto.graph.input}
    for name in ("size", "same"):
        fed[name] = np.array([[float(v) if v not in ("", "NA", "?") else np.nan] for v in table[name]])
    fed["seen"] = np.where(
        np.isin(table["seen"], ["", "NA", "?", "n/a"]),
        np.nan,
        [np.datetime64(v if v[:2] == "20" else "2000-01-01").astype(int) for v in table["seen"]],
    )[:, None]
    ours = ReferenceEvaluator(proto).run(["probabilities"], fed)[0]
    np.testing.assert_allclose(ours, model.answer(table).proba, rtol=0, atol=1e-9)
    np.testing.assert_allclose(run(proto, table)["probabilities"], ours, rtol=0, atol=1e-9)


@pytest.mark.parametrize("cell", [("wet", "perhaps"), ("size", "inf"), ("same", "-inf")])
def test_cells_that_python_refuses_are_nan(cell):
    model, table = MODELS["decided"](), cases(n=6)
    name, value = cell
    proto = to_onnx(model)
    fed = feeds(proto, table)
    fed[name][2, 0] = value if name == "wet" else float(value)
    session = ReferenceEvaluator(proto)
    P, accepted = session.run(["probabilities", "accepted"], fed)
    assert np.isnan(P[2]).all()
    assert not np.isnan(np.delete(P, 2, axis=0)).any()
    assert not accepted[2]
    table[name][2] = value
    with pytest.raises(ValueError, match=f'column "{name}"'):
        feeds(proto, table)


def test_sets_and_intervals():
    table = cases(seed=4)
    for name in ("classes", "tasks again", "labels"):
        model = MODELS[name]()
        out = run(to_onnx(model, coverage=0.8), unseen(table))
        model.coverage = 0.8
        assert np.array_equal(out["set"], model.answer(unseen(table)).inside)
    model = MODELS["numbers"]()
    out = run(to_onnx(model, interval=0.8), table)
    ends = model.model_.predict_interval(model.encoder_.transform(table), 0.8, method="jackknife")
    np.testing.assert_allclose(np.column_stack([out["lower"], out["upper"]]), ends, rtol=1e-9)


@pytest.mark.parametrize("kind", ["pandas", "polars", "typed"])
def test_frames(kind):
    rng = np.random.default_rng(0)
    n = 120
    columns = {
        "size": rng.normal(size=n).astype(np.float32).astype(float),
        "count": rng.integers(9, size=n),
        "wet": rng.random(n) < 0.5,
        "seen": np.datetime64("2024-01-01T06:30:00.000") + rng.integers(10**6, size=n).astype("timedelta64[s]"),
        "zone": np.array(["3", "4", "5"], dtype=object)[rng.integers(3, size=n)],
    }
    columns["y"] = columns["size"] + columns["wet"] > 0.3
    if kind == "typed":
        columns |= {"zone": columns["zone"].astype(float)}
        frame = columns
    else:
        frame = pytest.importorskip(kind).DataFrame(columns)
    model = TableModel("y", kinds={"zone": "category"}, model=LSPC(**FIXED)).fit(frame)
    proto = to_onnx(model)
    assert check(model, proto, frame) < 1e-6
    out = run(proto, frame)
    assert out["label"].dtype == bool
    np.testing.assert_allclose(out["probabilities"], model.answer(frame).proba, rtol=0, atol=1e-6)


def test_the_encoder_in_pipelines():
    pandas = pytest.importorskip("pandas")
    table = cases()
    frame = pandas.DataFrame({name: cells for name, cells in table.items() if name not in NOT_INPUTS})
    y = table["finding"]
    model = make_pipeline(TableEncoder(ignore=["site"]), LSPC(**FIXED)).fit(frame, y)
    proto = to_onnx(model, dtype="float64")
    assert [i.name for i in proto.graph.input] == ["size", "colour", "wet", "seen", "same"]
    new = pandas.DataFrame(unseen(table))
    np.testing.assert_allclose(run(proto, new)["probabilities"], model.predict_proba(new), rtol=0, atol=1e-9)
    assert check(model, to_onnx(model), frame) < 1e-6
    tasks = make_pipeline(TableEncoder(ignore=["site"]), MultiTaskLSPC(**TASKS))
    tasks.fit(frame, y, multitasklspc__tasks=table["site"].astype(str))
    assert check(tasks, to_onnx(tasks, dtype="float64"), frame, table["site"].astype(str)) < 1e-9
    part = ColumnTransformer([("t", TableEncoder(), ["wet", "colour"]), ("n", StandardScaler(), ["n"])])
    part = make_pipeline(part, LSPC(**FIXED)).fit(frame.assign(n=np.arange(200.0) % 7), y)
    assert check(part, to_onnx(part, dtype="float64"), frame.assign(n=2.0)) < 1e-9


def test_the_encoder_on_arrays():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 3
    X[::7, 1], X[:, 2] = np.nan, np.round(X[:, 2])
    model = make_pipeline(TableEncoder(), LSPC(**FIXED)).fit(X, y)
    assert [i.name for i in to_onnx(model).graph.input] == ["X"]
    assert check(model, to_onnx(model, dtype="float64"), X) < 1e-9
    model = make_pipeline(TableEncoder(kinds={"x2": "category"}), LSPC(**FIXED)).fit(X, y)
    proto = to_onnx(model, dtype="float64")
    assert [i.name for i in proto.graph.input] == ["column_0", "column_1", "column_2"]
    X[0, 2] = 77
    assert check(model, proto, X) < 1e-9
    words = np.array([["red", "x"], ["blue", "y"], ["red", "y"], ["blue", "x"]] * 10, dtype=object)
    model = make_pipeline(TableEncoder(), LSPC(**FIXED)).fit(words, np.arange(40) % 3)
    assert check(model, to_onnx(model), words) < 1e-6


def test_columns_that_are_zero_where_they_are_not_there(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{k % 2} 1:{k % 2 + rng.normal():.4f} 3:{rng.normal():.4f}" for k in range(80)]
    (tmp_path / "known.svm").write_text("\n".join(lines))
    (tmp_path / "new.svm").write_text("0 1:0.25\n1 1:2\n")
    model = TableModel("y", model=LSPC(**FIXED)).fit(read_table(tmp_path / "known.svm"))
    proto = to_onnx(model)
    assert len(proto.graph.input) == 2
    assert check(model, proto, read_table(tmp_path / "new.svm")) < 1e-6


@pytest.mark.parametrize("name", ["tasks", "labels"])
def test_another_runtime_and_no_rows(name):
    proto, table = to_onnx(MODELS[name](), coverage=0.8), unseen(cases(seed=5))
    wanted = run(proto, table)
    places = [output.name for output in proto.graph.output]
    found = dict(zip(places, ReferenceEvaluator(proto).run(None, feeds(proto, table)), strict=True))
    np.testing.assert_allclose(found.pop("probabilities"), wanted["probabilities"], rtol=0, atol=1e-12)
    assert all(np.array_equal(found[key], wanted[key]) for key in found)
    none = run(proto, Table.of(table).take([]))
    assert {key: values.shape[1:] for key, values in none.items()} == {k: v.shape[1:] for k, v in wanted.items()}
    assert {len(values) for values in none.values()} == {0}


def test_single_precision_within():
    model = MODELS["tasks"]()
    assert check(model, to_onnx(model, inside="float32"), cases(seed=1)) < 1e-3


def test_what_is_refused():
    table = cases()
    other = TableModel("finding", ignore=NOT_INPUTS[1:], model=LogisticRegression()).fit(table)
    with pytest.raises(TypeError, match="The estimator LogisticRegression has no ONNX converter"):
        to_onnx(other)
    named = {**table, "label": table["size"]}
    model = TableModel("finding", ignore=NOT_INPUTS[1:], model=LSPC(**FIXED)).fit(named)
    with pytest.raises(ValueError, match="name of an output, 'label'"):
        to_onnx(model)
    target = {name: table[name] for name in ("size", "colour")} | {"label": table["finding"]}
    assert len(to_onnx(TableModel("label", model=LSPC(**FIXED)).fit(target)).graph.input) == 2
    with pytest.raises(ValueError, match="there is no column 'colour'"):
        feeds(to_onnx(MODELS["classes"]()), {"size": ["1"]})


def numbers():
    """Gaps and numbers; not the smallest, since onnxruntime leaves out what is added and would be 0 as float32."""
    return st.one_of(st.none(), st.floats(-1e300, 1e300).map(lambda v: v if abs(v) > 1e-30 else 0.0))


@given(st.lists(numbers(), min_size=3, max_size=12))
def test_any_numbers(values):
    """Numbers of any size and gaps become the features that the encoder makes."""
    table = {"a": np.array(values, dtype=object), "b": np.array(["u", "v", "?"] * 4, dtype=object)[: len(values)]}
    encoder = TableEncoder(kinds={"a": "number", "b": "category"}).fit(table)
    if not encoder.columns_[0].features:
        return
    wanted = encoder.transform(table)
    out = _features(encoder, table)
    np.testing.assert_allclose(out, wanted, rtol=1e-9, atol=1e-9)


WORDS = ["red", "Red", "b", "yes", "tRUE", "false", "No", "0", "1", "1.0", "", "na", "N/A", "NONE", "nul", "?", "-"]


@given(st.lists(st.one_of(st.sampled_from(WORDS), st.text("anoRed-/?1", max_size=4)), min_size=1, max_size=30))
def test_any_text(cells):
    """Text as it stands in a file becomes the features that the encoder makes; what it refuses is infinite."""
    known = {"a": ["red", "red", "b", "b", "x", ""], "b": ["yes", "no", "yes", "", "no", "no"]}
    encoder = TableEncoder(kinds={"a": "category", "b": "boolean"}).fit(known)
    texts = np.array(cells, dtype=object)
    out = _features(encoder, {"a": texts, "b": texts}, raw=True)
    width = len(encoder.columns_[0].features)
    for i, cell in enumerate(cells):
        wanted = encoder.transform({"a": [cell], "b": ["yes"]})[0, :width]
        assert np.array_equal(out[i, :width], wanted)
        try:
            wanted = encoder.transform({"a": ["red"], "b": [cell]})[0, width:]
        except ValueError:
            wanted = np.full(2, np.inf)
        np.testing.assert_array_equal(out[i, width:], wanted)


def _features(encoder, table, raw=False):
    from leastwise.onnx.encoders import encode_table
    from leastwise.onnx.graph import Graph
    from leastwise.onnx.transformers import input_columns

    g = Graph(np.float64, np.float64)
    names = [c.name for c in encoder.columns_]
    columns = encode_table(g, encoder, input_columns(g, names, single_input=False))
    g.output("X", columns.numbers(), np.float64, [len(columns)])
    proto = g.to_proto("features", "0", {"columns": json.dumps(g.column_kinds)})
    if not raw:
        return run(proto, table)["X"]
    return ReferenceEvaluator(proto).run(None, {name: cells[:, None] for name, cells in table.items()})[0]


def test_all_spellings():
    assert spellings(["no", "-"]) == ["-", "NO", "No", "nO", "no"]


# -------------------------------------------------------------- command line


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_the_command_line_exports_what_it_fits(tmp_path, kind):
    pytest.importorskip("typer")
    from leastwise.cli.app import run as command

    target = {"classes": "finding", "numbers": "amount"}[kind]
    table = {name: cells for name, cells in cases().items() if name not in NOT_INPUTS or name == target}
    write_table(Table.of(table), tmp_path / "known.csv")
    model, graph = str(tmp_path / "model.lw"), str(tmp_path / "model.onnx")
    fit = ["fit", str(tmp_path / "known.csv"), "--target", target, "--task", "site", "-o", model]
    assert command(fit) == 0
    assert command(["export", model, "-o", graph, "--coverage", "0.8", "--json"]) == 0
    proto = onnx.load(graph)
    outputs = [o.name for o in proto.graph.output]
    assert outputs == (["label", "probabilities", "set"] if kind == "classes" else ["variable", "lower", "upper"])
    assert check(load(model), proto, read_table(tmp_path / "known.csv")) < 1e-6
    assert command(["export", model, "-o", graph, "--coverage", "8"]) == 2
