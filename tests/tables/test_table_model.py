"""From a table with a target to predictions, decisions, sets and scores."""

import io
import json
import pickle
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from leastwise import LSPC, LSSVR, MultiLabelLSPC, MultiTaskLSPC, MultiTaskLSSVR, load, save
from leastwise.calibration.risk import Decisions, safe_threshold
from leastwise.estimators.abstaining import Abstaining
from leastwise.estimators.recalibrated import Recalibrated
from leastwise.metrics.calibration import calibration_error, classwise_calibration_error
from leastwise.metrics.probabilities import brier_score
from leastwise.metrics.reliability import bin_count
from leastwise.tables import Table, TableError, TableModel, read_table, write_table
from leastwise.tables.columns import text_cells
from leastwise.tables.prepare import find_target_kind, group_numbers, known_classes, read_target, task_ids

N = 140


def cases(seed=0, n=N):
    """Text as a file has it: numbers with gaps, words, a site, a finding, an amount and two labels."""
    rng = np.random.default_rng(seed)
    size, shade, site = rng.normal(size=n), rng.normal(size=n), rng.integers(0, 3, n)
    score = size + 0.5 * site + 0.3 * rng.normal(size=n)
    columns = {
        "id": [f"case {seed}-{i}" for i in range(n)],
        "site": [f"site {s}" for s in site],
        "size": [f"{v:.3f}" for v in size],
        "shade": [f"{v:.3f}" if rng.random() > 0.05 else "" for v in shade],
        "line": rng.choice(["north", "south", "west", ""], n).tolist(),
        "person": [f"p{i // 4}" for i in range(n)],
        "weight": ["2" if i % 5 == 0 else "1" for i in range(n)],
        "finding": np.where(score > 0.5, "Fault", "fine").tolist(),
        "amount": [f"{v:.4f}" for v in 3 * score + 1],
        "hot": np.where(size > 0, "yes", "no").tolist(),
        "wet": np.where(shade + size > 0, "1", "0").tolist(),
    }
    return Table.of(columns)


TRAIN, NEW = cases(0), cases(1, 60)
OTHERS = ["finding", "amount", "hot", "wet", "person", "weight"]


def model_of(**options):
    """A model whose parameters are not searched, for speed."""
    targets = {options.get("target"), *(options.get("labels") or ())}
    parts = {options.get(name) for name in ("group", "weight")}
    ignore = [name for name in OTHERS if name not in targets | parts]
    return TableModel(id="id", ignore=ignore, **options)


@pytest.fixture(scope="module")
def finding():
    return model_of(target="finding", max_error=0.1, model=LSPC(sigma=[2.0, 4.0], random_state=0)).fit(TRAIN)


# --------------------------------------------------------------- what is chosen


@pytest.mark.parametrize(
    ("options", "kind", "estimator"),
    [
        ({"target": "finding"}, "classes", LSPC),
        ({"target": "amount"}, "numbers", LSSVR),
        ({"target": "finding", "task": "site"}, "classes", MultiTaskLSPC),
        ({"target": "amount", "task": "site"}, "numbers", MultiTaskLSSVR),
        ({"labels": ["hot", "wet"]}, "labels", MultiLabelLSPC),
    ],
)
def test_the_estimator_is_chosen_by_the_target(options, kind, estimator):
    small = TRAIN.take(np.arange(50))
    model = model_of(**options).fit(small)
    assert model.kind_ == kind
    assert type(model.model_) is estimator
    assert model.columns_ is model.encoder_.columns_
    out = model.predict_table(NEW)
    assert len(out) == len(NEW)
    assert out["id"].tolist() == NEW["id"].tolist()
    scores = model.evaluate(NEW)
    best = {"classes": "log_loss", "numbers": "rmse", "labels": "log_loss"}[kind]
    assert scores[best] < scores["baseline"][best]
    assert ("tasks" in scores) == ("task" in options)
    json.dumps(model.summary(), allow_nan=False)
    again = clone(model).fit(small).predict_table(NEW)
    for name in out.names:
        np.testing.assert_array_equal(out[name], again[name])


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["a", "b"] * 10, "classes"),
        (["yes", "no"] * 10, "classes"),
        (["0", "1"] * 10, "classes"),
        (["0", "1"] * 4, "numbers"),  # four rows of each
        (["1.5", "2.5"] * 10, "numbers"),
        ([str(i) for i in range(21)] * 10, "numbers"),
        ([str(i) for i in range(20)] * 10, "classes"),
        (np.array([True, False]), "classes"),
    ],
)
def test_kinds_of_targets(cells, kind):
    assert find_target_kind(Table.of({"y": cells}), "y") == kind


def test_targets_that_are_none_are_refused_unless_said():
    names = Table.of({"y": [f"n{i}" for i in range(30)]})
    with pytest.raises(TableError, match=r'column "y" cannot be the target as it is \(30 distinct texts in 30 rows'):
        find_target_kind(names, "y")
    with pytest.raises(TableError, match="it contains dates"):
        find_target_kind(Table.of({"y": ["2024-01-01", "2024-01-02"]}), "y")
    assert read_target(names, "y", "classes").y.tolist() == names["y"].tolist()
    assert read_target(Table.of({"y": ["1", "0", ""]}), "y", "numbers").y.tolist() == [1.0, 0.0]
    with pytest.raises(TableError, match="has no values"):
        read_target(Table.of({"y": ["", "NA"]}), "y", "numbers")


@pytest.mark.parametrize(
    ("given", "classes", "cells"),
    [
        (["b", "a", "b"], ["a", "b"], ["b", "a", "b"]),
        (["1", "0", "1"], [0, 1], [1.0, 0.0, 1.0]),
        (["1", "0", "1"], [0, 1], ["1.0", "0", " 1 "]),
        (["true", "false", "true"], ["false", "true"], [True, False, True]),
        ([True, False, True], [False, True], ["Yes", "0", "TRUE"]),
        (["Fault", "fine", "Fault"], ["Fault", "fine"], ["FAULT", "Fine", "fault"]),
    ],
)
def test_classes_are_as_they_were_and_are_known_again(given, classes, cells):
    y = read_target(Table.of({"y": given}), "y", "classes").y
    assert np.unique(y).tolist() == classes
    codes = known_classes(Table.of({"y": cells}), "y", np.unique(y)).y
    assert codes.tolist() == np.searchsorted(np.unique(y), y).tolist()


def test_a_class_that_is_not_known_is_named():
    with pytest.raises(
        TableError, match=r'row 2, column "y": "c" is not one of the classes of training, .* \[\'a\', \'b\'\]'
    ):
        known_classes(Table.of({"y": ["a", "c"]}), "y", np.array(["a", "b"]))


# ------------------------------------------------------------------ predictions


def test_columns_of_classes(finding):
    out = finding.predict_table(NEW.without(OTHERS))
    assert out.names[:5] == ["id", "prediction", "p_Fault", "p_fine", "confidence"]
    assert out.names[5:] == ["decision", "set", "in_domain", "novelty"]
    P = np.column_stack([out["p_Fault"], out["p_fine"]])
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert out["prediction"].tolist() == np.array(["Fault", "fine"])[P.argmax(axis=1)].tolist()
    np.testing.assert_array_equal(out["confidence"], P.max(axis=1))
    assert set(out["set"]) <= {"Fault", "fine", "Fault|fine"}
    assert ((out["in_domain"] > 0) & (out["in_domain"] <= 1)).all()


def test_the_same_by_hand(finding):
    """Codes by the encoder, an estimator on these, the threshold from its held-out predictions."""
    X, y = finding.encoder_.transform(TRAIN), TRAIN["finding"].astype(str)
    codes = LSPC(sigma=[2.0, 4.0], random_state=0, categories=finding.encoder_.nominal_)
    by_hand = Abstaining(codes, max_error=0.1).fit(X, y)
    out, new = finding.predict_table(NEW), finding.encoder_.transform(NEW)
    np.testing.assert_array_equal(out["p_fine"], by_hand.predict_proba(new)[:, 1])
    assert out["decision"].tolist() == by_hand.predict(new).tolist()
    assert None in out["decision"]
    sets = by_hand.estimator_.predict_set(new, coverage=0.9)
    assert out["set"].tolist() == ["|".join(by_hand.classes_[row]) for row in sets]


def test_whole_numbers_and_booleans_as_classes():
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    model = TableModel(target="y", model=LSPC(sigma=1.0)).fit({"x": x, "y": (x > 0).astype(int) + 3})
    out = model.predict_table({"x": [-2.0, 2.0]})
    assert out.names == ["row", "prediction", "p_3", "p_4", "confidence", "set", "in_domain", "novelty"]
    assert out["prediction"].tolist() == [3, 4]
    assert out["row"].tolist() == [1, 2]
    model = TableModel(target="y", model=LSPC(sigma=1.0)).fit({"x": x, "y": x > 0})
    assert model.predict_table({"x": [2.0]})["prediction"].tolist() == [True]
    assert model.evaluate({"x": [2.0, -2.0], "y": ["yes", "no"]})["accuracy"] == 1


def test_columns_of_numbers():
    fixed = LSSVR(sigma=2.0, alpha=0.01)
    model = model_of(target="amount", model=fixed, coverage=0.8).fit(TRAIN)
    out, new = model.predict_table(NEW), model.encoder_.transform(NEW)
    assert out.names == ["id", "prediction", "interval_lower", "interval_upper", "novelty"]
    by_hand = clone(fixed).set_params(categories=model.encoder_.nominal_)
    by_hand.fit(model.encoder_.transform(TRAIN), TRAIN["amount"].astype(float))
    np.testing.assert_allclose(out["prediction"], by_hand.predict(new))
    ends = np.column_stack([out["interval_lower"], out["interval_upper"]])
    np.testing.assert_allclose(ends, by_hand.predict_interval(new, 0.8))
    scores, y = model.evaluate(NEW), NEW["amount"].astype(float)
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean((y - out["prediction"]) ** 2)))
    assert scores["mae"] == pytest.approx(np.mean(np.abs(y - out["prediction"])))
    assert scores["interval_coverage"] == np.mean((out["interval_lower"] <= y) & (y <= out["interval_upper"]))
    assert scores["baseline"]["rmse"] == pytest.approx(
        np.sqrt(np.mean((y - TRAIN["amount"].astype(float).mean()) ** 2))
    )


def test_columns_of_labels():
    table = Table.of({**TRAIN.columns, "wet": np.where(np.arange(N) % 10, TRAIN["wet"], "")})
    fixed = MultiLabelLSPC(sigma=2.0, alpha=0.01, sharing=0.0)
    model = model_of(labels=["hot", "wet"], model=fixed, min_confidence=0.8).fit(table)
    out = model.predict_table(NEW)
    parts = [f"{prefix}{name}" for name in ("hot", "wet") for prefix in ("", "p_", "decision_", "set_")]
    assert out.names == ["id", *parts, "in_domain", "novelty"]
    assert model.model_.labels_.tolist() == ["hot", "wet"]
    sure = np.maximum(out["p_hot"], 1 - out["p_hot"]) >= 0.8
    assert [d is not None for d in out["decision_hot"]] == sure.tolist()
    scores = model.evaluate(NEW)
    Y = np.column_stack([NEW["hot"] == "yes", NEW["wet"] == "1"])
    P = np.column_stack([out["p_hot"], out["p_wet"]])
    assert scores["log_loss"] == pytest.approx(-np.mean(np.log(np.where(Y, P, 1 - P))))
    assert scores["labels"]["wet"]["positives"] == Y[:, 1].sum()
    assert scores["accuracy"] == np.mean(np.column_stack([out["hot"], out["wet"]]) == Y)
    decided = np.array([[d is not None for d in out[f"decision_{name}"]] for name in ("hot", "wet")]).T
    assert scores["decided"] == decided.mean() < 1
    assert scores["error_of_decided"] == np.mean((np.column_stack([out["hot"], out["wet"]]) != Y)[decided])
    assert model.left_out_ == {"no target": 0}


def test_tasks(tmp_path):
    fixed = MultiTaskLSPC(sigma=2.0, alpha=0.01, sharing=[0.5, 1.0])
    model = model_of(target="finding", task="site", model=fixed).fit(TRAIN)
    out = model.predict_table(NEW)
    P = model.model_.predict_proba(model.encoder_.transform(NEW), tasks=NEW["site"])
    np.testing.assert_array_equal(out["p_fine"], P[:, 1])
    assert "site" not in [c.name for c in model.columns_]
    tasks = model.evaluate(NEW)["tasks"]
    rows = NEW["site"] == "site 1"
    assert tasks["site 1"]["rows"] == rows.sum()
    assert tasks["site 1"]["log_loss"] == pytest.approx(log_loss(NEW["finding"][rows].astype(str), P[rows]))
    elsewhere = Table.of({**NEW.columns, "site": ["elsewhere", "", *NEW["site"][2:]]})
    note = '2 rows belong to tasks that did not occur in training: "elsewhere", "(missing)".'
    assert note in model.predict_table(elsewhere).notes
    with pytest.raises(TableError, match='row 1, column "site": the task "elsewhere" did not occur in training'):
        model.predict_table(elsewhere, strict=True)
    with pytest.raises(
        TableError, match="the model needs its task in the column 'site', which the table does not have"
    ):
        model.predict_table(NEW.without(["site"]))
    missing = Table.of({**TRAIN.columns, "site": ["", *TRAIN["site"][1:]]})
    assert clone(model).fit(missing).left_out_ == {"no target": 0, "no task": 1}


# ------------------------------------------------------------------------ rows


def test_groups_and_weights_reach_the_estimator():
    fixed = LSPC(sigma=2.0, alpha=0.01)
    model = model_of(target="finding", group="person", weight="weight", model=fixed).fit(TRAIN)
    X, w = model.encoder_.transform(TRAIN), TRAIN["weight"].astype(float)
    by_hand = clone(fixed).set_params(categories=model.encoder_.nominal_)
    by_hand.fit(X, TRAIN["finding"].astype(str), sample_weight=w, groups=np.arange(N) // 4)
    np.testing.assert_array_equal(model.model_.heldout_proba_, by_hand.heldout_proba_)
    assert {"person", "weight", "finding", "id"}.isdisjoint(c.name for c in model.columns_)


def test_a_missing_group_is_one_of_its_own():
    table = Table.of({"g": ["a", "", "b", "NA", "a"]})
    assert group_numbers(table, "g").tolist() == [0, 1, 2, 3, 0]


def test_rows_without_a_target_are_left_out_with_a_count(finding):
    gaps = Table.of({**TRAIN.columns, "finding": np.where(np.arange(N) < 7, "NA", TRAIN["finding"])})
    model = clone(finding).fit(gaps)
    assert (model.n_rows_, model.left_out_) == (N - 7, {"no target": 7})
    assert "7 rows left out: no target." in model.notes_
    assert model.evaluate(gaps)["left_out"] == 7
    direct = clone(finding).fit(TRAIN.take(np.arange(7, N)))
    np.testing.assert_array_equal(model.predict_table(NEW)["p_fine"], direct.predict_table(NEW)["p_fine"])


def test_weights_are_numbers_of_0_or_more(finding):
    for cell in ("-1", ""):
        table = Table.of({**TRAIN.columns, "weight": ["1", cell, *TRAIN["weight"][2:]]})
        with pytest.raises(TableError, match=rf'row 2, column "weight": \'{cell}\' is not a weight'):
            model_of(target="finding", weight="weight").fit(table)


# ---------------------------------------------------------------------- scores


def test_scores_by_their_definitions(finding):
    out, scores = finding.predict_table(NEW), finding.evaluate(NEW)
    y, P = NEW["finding"].astype(str), np.column_stack([out["p_Fault"], out["p_fine"]])
    assert scores["rows"] == len(NEW)
    assert scores["log_loss"] == pytest.approx(log_loss(y, P))
    assert scores["brier"] == pytest.approx(brier_score(y, P))
    assert scores["ece"] == pytest.approx(max(calibration_error(y, P, n_bins=bin_count(len(y))), 0))
    classwise = classwise_calibration_error(y, P, n_bins=bin_count(len(y)))
    assert scores["classwise_ece"] == pytest.approx(max(classwise, 0))
    for name in ("ece", "classwise_ece"):
        low, high = scores[f"{name}_interval"]
        assert 0 <= low <= scores[name] <= high
        assert high > 0
    assert scores["auc"] == pytest.approx(roc_auc_score(y, P[:, 1]))
    assert scores["accuracy"] == np.mean(out["prediction"] == y)
    decided = np.array([d is not None for d in out["decision"]])
    assert scores["decided"] == decided.mean()
    assert scores["error_of_decided"] == np.mean(out["decision"][decided] != y[decided])
    assert scores["set_coverage"] == np.mean([t in s.split("|") for t, s in zip(y, out["set"], strict=True)])
    shares = np.tile(finding.model_.class_prior_, (len(y), 1))
    assert scores["baseline"]["log_loss"] == pytest.approx(log_loss(y, shares))
    assert finding.heldout_["log_loss"] == pytest.approx(
        log_loss(TRAIN["finding"].astype(str), finding.model_.heldout_proba_)
    )


def test_evaluate_needs_the_target(finding):
    with pytest.raises(TableError, match="the evaluation needs the column 'finding', which the table does not have"):
        finding.evaluate(NEW.without(["finding"]))
    with pytest.raises(TableError, match="there is nothing to evaluate"):
        finding.evaluate({**NEW.columns, "finding": [""] * len(NEW)})


def test_the_summary_says_what_was_learned(finding):
    summary = json.loads(json.dumps(finding.summary(), allow_nan=False))
    assert summary["kind"] == "classes"
    assert summary["rows"] == N
    assert summary["classes"] == ["Fault", "fine"]
    assert summary["decisions"]["max_error"] == 0.1
    assert summary["chosen"]["sigma"] in (2.0, 4.0)
    assert [c["kind"] for c in summary["columns"] if c["column"] == "line"] == ["category"]
    assert summary["features"] == ["site", "size", "shade", "line"]


# ----------------------------------------------------------------------- files


def test_all_formats_give_the_same_predictions(finding, tmp_path):
    names = ["new.csv", "new.tsv", "new.csv.gz"]
    names += ["new.parquet", "new.arrow"] if find_spec("pyarrow") else []
    expected = finding.predict_table(NEW)
    for name in names:
        write_table(NEW, tmp_path / name)
        out = finding.predict_table(read_table(tmp_path / name))
        for c in expected.names:
            np.testing.assert_array_equal(out[c], expected[c])
        write_table(out, tmp_path / f"out-{name}")
        assert read_table(tmp_path / f"out-{name}")["prediction"].tolist() == expected["prediction"].tolist()


def test_a_wrong_cell_of_a_file_is_named(finding):
    stream = io.StringIO()
    write_table(NEW, stream)
    text = stream.getvalue().split("\n")
    cells = text[11].split(",")
    cells[2] = "abc"
    text[11] = ",".join(cells)
    with pytest.raises(TableError, match=r'^<stream>, line 12, column "size": "abc" is not a number\.$'):
        finding.predict_table(read_table(io.StringIO("\n".join(text))))


def test_frames(finding):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({name: NEW[name] for name in NEW.names}).astype({"size": float})
    np.testing.assert_array_equal(finding.predict_table(frame)["p_fine"], finding.predict_table(NEW)["p_fine"])
    assert list(finding.predict_table(frame).to_pandas().columns)[:2] == ["id", "prediction"]


# ---------------------------------------------------------------- wrong calls


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give either target=, the column to predict, or labels="),
        ({"target": "finding", "labels": ["hot", "wet"]}, "give either target=, the column to predict, or labels="),
        ({"labels": "hot"}, "labels='hot' must be a list of columns"),
        ({"labels": ["hot", "wet"], "task": "site"}, "labels= cannot be combined with task= or kind="),
        ({"target": "y"}, "target= names the column 'y', which the table does not have; the columns are"),
        ({"target": "finding", "task": "finding"}, 'column "finding" has two roles'),
        ({"target": "finding", "kind": "class"}, "kind='class' is unknown"),
        ({"target": "finding", "kind": "numbers"}, 'row 1, column "finding": "'),
        ({"target": "amount", "max_error": 0.1}, 'column "amount" contains numbers: max_error'),
        ({"labels": ["line", "wet"]}, 'column "line": "'),
        ({"target": "amount", "recalibrate": True}, 'column "amount" contains numbers: max_error'),
    ],
)
def test_wrong_calls_are_named(options, message):
    with pytest.raises(TableError) as caught:
        TableModel(**options).fit(TRAIN)
    assert message in str(caught.value)


def test_what_is_said_of_columns():
    options = {"kinds": {"size": "ignore", "site": "category"}, "ignore": ["id", "amount", "finding"], "id": "id"}
    model = TableModel(
        target="finding", task="site", model=MultiTaskLSPC(sigma=2.0, alpha=0.01, sharing=0.5), **options
    )
    assert "size" not in model.fit(TRAIN).encoder_.get_feature_names_out()
    with pytest.raises(TableError, match="kinds= and ignore= name the column 'sise', which the table does not have"):
        TableModel(target="finding", ignore=["sise"]).fit(TRAIN)


def test_nothing_to_learn_from_is_an_error():
    with pytest.raises(TableError, match=r'there is no usable input column \("x": constant\)'):
        TableModel(target="y").fit({"x": ["a"] * 20, "y": ["0", "1"] * 10})
    with pytest.raises(TableError, match="there is no input column: all columns are the target"):
        TableModel(target="y").fit({"y": ["0", "1"] * 10})


def test_a_failed_fit_leaves_the_model_as_it_was(finding):
    model = clone(finding)
    with pytest.raises(TableError):
        model.fit(NEW.without(["finding"]))
    assert not [name for name in vars(model) if name.endswith("_")]


def test_names_in_both_tables_are_an_error():
    x = np.linspace(-1, 1, 40)
    model = TableModel(target="y", id="prediction", model=LSPC(sigma=1.0))
    model.fit({"x": x, "y": x > 0, "prediction": ["a"] * 40})
    with pytest.raises(TableError, match=r"the columns \['prediction'\] are in the table and in the predictions"):
        model.predict_table({"x": [0.0], "prediction": ["a"]})


def test_many_rows_stand_on_some_centres(monkeypatch):
    monkeypatch.setattr("leastwise.tables.planning.MANY_ROWS", 100)
    monkeypatch.setattr("leastwise.tables.planning.CENTERS", (20,))
    model = model_of(target="finding").fit(TRAIN)
    assert model.model_.centers_.shape[0] == 20
    assert f"20 of {N} rows are kernel centres (n_centers); all rows are used for training." in model.notes_
    assert model_of(target="finding", n_centers=None).fit(TRAIN).model_.centers_.shape[0] == N


def test_estimators_of_another_library():
    model = model_of(target="finding", weight="weight", model=LogisticRegression()).fit(TRAIN)
    assert model.predict_table(NEW).names == ["id", "prediction", "p_Fault", "p_fine", "confidence"]
    w = TRAIN["weight"].astype(float)
    np.testing.assert_allclose(model.baseline_[0], w[TRAIN["finding"] == "Fault"].sum() / w.sum())
    assert model.evaluate(NEW)["accuracy"] > 0.8
    model = model_of(target="amount", model=Ridge()).fit(TRAIN)
    assert model.predict_table(NEW).names == ["id", "prediction"]
    assert model.evaluate(NEW)["r2"] > 0.8


def test_three_classes_and_one_label():
    three = np.where(np.arange(N) % 9, TRAIN["finding"], "odd")
    fixed = LSPC(sigma=2.0, alpha=0.01)
    model = model_of(target="finding", model=fixed).fit({**TRAIN.columns, "finding": three})
    out, scores = model.predict_table(NEW), model.evaluate(NEW)
    P = np.column_stack([out[f"p_{c}"] for c in ("Fault", "fine", "odd")])
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert scores["log_loss"] == pytest.approx(
        log_loss(NEW["finding"].astype(str), P, labels=["Fault", "fine", "odd"])
    )
    one = model_of(labels=["hot"], model=MultiLabelLSPC(sigma=2.0, alpha=0.01)).fit(TRAIN)
    assert one.predict_table(NEW).names == ["id", "hot", "p_hot", "set_hot", "in_domain", "novelty"]
    assert one.evaluate(NEW)["accuracy"] > 0.8


def test_a_label_that_nobody_has():
    table = {**TRAIN.columns, "wet": ["0"] * N}
    with pytest.warns(UserWarning, match="one class only"):
        model = model_of(labels=["hot", "wet"], model=MultiLabelLSPC(sigma=2.0, alpha=0.01)).fit(table)
    assert set(model.predict_table(NEW)["wet"]) == {0}
    assert model.evaluate(NEW)["labels"]["wet"]["positives"] == np.sum(NEW["wet"] == "1")


def test_no_rows_to_predict(finding):
    with pytest.raises(TableError, match="there are no rows to predict"):
        finding.predict_table(NEW.take(np.arange(0)))


def test_recalibrated():
    model = model_of(target="finding", recalibrate=True, model=LSPC(sigma=2.0, alpha=0.01)).fit(TRAIN)
    out = model.predict_table(NEW)
    assert out.names == ["id", "prediction", "p_Fault", "p_fine", "confidence", "set", "in_domain", "novelty"]
    P = model.model_.predict_proba(model.encoder_.transform(NEW))
    np.testing.assert_array_equal(out["p_fine"], P[:, 1])
    assert model.evaluate(NEW)["log_loss"] == pytest.approx(log_loss(NEW["finding"].astype(str), P))


@pytest.mark.parametrize(
    ("options", "fixed"),
    [
        ({"target": "finding"}, LSPC(sigma=2.0, alpha=0.01)),
        ({"target": "finding", "task": "site"}, MultiTaskLSPC(sigma=2.0, alpha=0.01, sharing=0.5)),
        ({"labels": ["hot", "wet"]}, MultiLabelLSPC(sigma=2.0, alpha=0.01, sharing=0.0)),
    ],
)
def test_decisions_after_a_second_calibration(options, fixed):
    """They stand on the probabilities that are shown, not on those before."""
    model = model_of(recalibrate=True, max_error=0.1, model=fixed, **options).fit(TRAIN)
    assert isinstance(model.decider_.estimator_, Recalibrated)
    X, labels = model.encoder_.transform(TRAIN), model.kind_ == "labels"
    y = (
        np.column_stack([TRAIN["hot"] == "yes", TRAIN["wet"] == "1"]) * 1.0
        if labels
        else TRAIN["finding"].astype(str)
    )
    params = {"tasks": TRAIN["site"]} if "task" in options else {}
    decider = Abstaining(Recalibrated(fixed, method="temperature"), max_error=0.1).fit(X, y, **params)
    P = decider.estimator_.heldout_proba_
    assert not np.array_equal(P, decider.estimator_.estimator_.heldout_proba_)
    if labels:
        said, true, sure = P[:, 1] > np.ravel(decider.estimator_.threshold_)[-1], y[:, 1] == 1, P[:, 1]
        sure = np.where(said, sure, 1 - sure)
    else:
        said, true, sure = P[:, 1] > 0.5, y == "fine", P.max(axis=1)
    threshold = safe_threshold(Decisions(sure, said != true, np.ones(N), None), 0.1, 0.05)
    assert np.ravel(decider.threshold_)[-1] == threshold
    out = model.predict_table(NEW)
    if not labels:
        assert [d is not None for d in out["decision"]] == (out["confidence"] >= model.decider_.threshold_).tolist()
    assert model.evaluate(NEW)["set_coverage"] > 0.75


def test_sets_after_a_second_calibration_by_their_definition():
    model = model_of(target="finding", recalibrate=True, model=LSPC(sigma=2.0, alpha=0.01), coverage=0.97).fit(TRAIN)
    P, true = model.model_.heldout_proba_, TRAIN["finding"] == "fine"
    left = np.sort(1 - P[np.arange(N), true.astype(int)])
    hidden = 0.5 * np.sqrt(100 / N)  # the family was chosen on these rows
    level = left[int(np.ceil(0.97 * (N + 1) + hidden)) - 1]
    new = model.model_.predict_proba(model.encoder_.transform(NEW))
    expected = (1 - new <= level) | (new == new.max(axis=1, keepdims=True))
    assert model.predict_table(NEW)["set"].tolist() == [
        "|".join(np.array(["Fault", "fine"])[row]) for row in expected
    ]


def test_pickled():
    model = model_of(target="finding", max_error=0.1, model=LSPC(sigma=2.0, alpha=0.01)).fit(TRAIN)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_table(NEW)["p_fine"], model.predict_table(NEW)["p_fine"])
    assert again.model_ is again.decider_.estimator_


def test_look_finds_what_fit_finds():
    """Without learning: nothing is kept in the model."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=60)
    table = {
        "size": np.where(rng.random(60) < 0.1, np.nan, size),
        "line": rng.choice(["north", "south"], 60),
        "site": rng.choice(["a", "b"], 60),
        "finding": [None if i == 7 else "fault" if s > 0 else "fine" for i, s in enumerate(size)],
    }
    model = TableModel(target="finding", task="site")
    found = model.look(table)
    assert not hasattr(model, "encoder_")
    summary = model.fit(table).summary()
    assert {name: found[name] for name in ("kind", "target", "rows", "left_out", "columns")} == {
        name: summary[name] for name in ("kind", "target", "rows", "left_out", "columns")
    }
    assert list(found["classes"]) == summary["classes"]
    assert sum(found["classes"].values()) == found["rows"] == 59
    assert found["tasks"] == len(summary["tasks"])


# ------------------------------------------------------------------ inputs of the estimator


@pytest.mark.parametrize("wrap", [lambda model: model, Recalibrated])
def test_estimators_of_this_library_get_the_columns_as_a_frame_has_them(wrap):
    """Scales, categories and missing values are those of a fit to the frame."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "size": np.exp(2 * rng.normal(size=150)),
            "shade": np.where(rng.random(150) < 0.1, np.nan, rng.normal(size=150)),
            "line": rng.choice(["north", "south", "west", None], 150),
            "ok": rng.random(150) < 0.5,
        }
    )
    y = np.where(np.log(frame["size"]) + (frame["line"] == "west") + frame["ok"] > 0.8, "fault", "fine")
    model = TableModel("y", model=wrap(LSPC(random_state=0))).fit(frame.assign(y=y))
    by_hand = wrap(LSPC(random_state=0)).fit(frame, y)
    new = frame.assign(line=rng.choice(["north", "east", None], 150))
    out = model.predict_table(new)
    np.testing.assert_allclose(out["p_fine"], by_hand.predict_proba(new)[:, 1], rtol=0, atol=1e-12)
    assert model.encoder_.nominal_ == [2, 3]
    assert any("cells with values that did not occur" in note for note in out.notes)
    table_core, frame_core = model._inner, getattr(by_hand, "estimator_", by_hand)
    assert (table_core.scale_, table_core.sigma_) == (frame_core.scale_, frame_core.sigma_)


# ---------------------------------------------------------- pipelines, weights, names


@pytest.mark.parametrize("options", [{}, {"recalibrate": True}, {"recalibrate": True, "max_error": 0.3}])
def test_a_pipeline_is_as_good_as_a_model(options):
    """A step before it that changes nothing: weights, tasks, groups, sets and trust find their way.

    Pipelines get features, and so do estimators that take no categories.
    """
    fixed = {"sigma": 2.0, "alpha": 0.1, "categories": None}
    parts = {
        "target": ("finding", MultiTaskLSPC(**fixed, sharing=0.5), {"task": "site", "weight": "weight"}),
        "labels": (["hot", "wet"], MultiLabelLSPC(**fixed), {"group": "person"}),
    }
    for name, (what, model, more) in parts.items():
        given = {name: what, **more, **options}
        bare = model_of(model=model, **given).fit(TRAIN)
        piped = model_of(model=make_pipeline(FunctionTransformer(), model), **given).fit(TRAIN)
        said, wanted = piped.predict_table(NEW), bare.predict_table(NEW)
        assert said.names == wanted.names
        for column in said.names:
            np.testing.assert_array_equal(said[column], wanted[column])
        assert piped.evaluate(NEW) == bare.evaluate(NEW)
        assert piped.summary() == bare.summary()
        if name == "labels":
            assert piped._predictor.labels_.tolist() == bare._predictor.labels_.tolist() == ["hot", "wet"]


def test_a_pipeline_has_intervals():
    model = LSSVR(sigma=2.0, alpha=0.1, categories=None)
    piped = model_of(target="amount", model=make_pipeline(FunctionTransformer(), model)).fit(TRAIN)
    wanted = model_of(target="amount", model=model).fit(TRAIN).predict_table(NEW)
    np.testing.assert_array_equal(piped.predict_table(NEW)["interval_lower"], wanted["interval_lower"])
    assert piped.heldout_["rmse"] > 0


def test_rows_of_no_weight_are_left_out():
    """Also a class that no other row has."""
    none = np.arange(N) < 6
    columns = {**TRAIN.columns, "weight": np.where(none, "0", "1").astype(object)}
    columns["finding"] = np.where(none, "between", TRAIN["finding"]).astype(object)
    fixed = {"target": "finding", "weight": "weight", "model": LSPC(sigma=2.0, alpha=0.1)}
    model = model_of(**fixed).fit(columns)
    assert model.classes_.tolist() == ["Fault", "fine"]
    assert model.left_out_ == {"no target": 0, "weight 0": 6}
    assert model.rows_used_.tolist() == list(range(6, N))
    wanted = model_of(**fixed).fit(Table.of(columns).take(~none))
    assert (model.heldout_, model.baseline_.tolist()) == (wanted.heldout_, wanted.baseline_.tolist())
    with pytest.raises(TableError, match='"weight": all weights are 0'):
        model_of(**fixed).fit({**columns, "weight": np.zeros(N)})


@pytest.mark.parametrize("name", ["p_hot", "decision_hot", "set_hot", "in_domain", "novelty"])
def test_labels_whose_columns_would_be_lost_are_refused(name):
    table = Table.of({"size": TRAIN["size"], "hot": TRAIN["hot"], name: TRAIN["wet"]})
    with pytest.raises(TableError, match=f'label "{name}": predictions have another column of that name'):
        TableModel(labels=["hot", name]).fit(table)


def test_a_coverage_that_cannot_be_is_refused_before_the_fit():
    with pytest.raises(TableError, match=r"coverage=1\.5 must be a number above 0 and below 1"):
        model_of(target="finding", coverage=1.5).look(TRAIN)


def test_a_small_file_says_what_it_knows(finding, tmp_path):
    """Without what predictions do without, there is a summary still."""
    save(finding, tmp_path / "m.lw", keep="predict")
    small = load(tmp_path / "m.lw")
    assert small.summary() == {**finding.summary(), "heldout": {}, "baselines": None, "effects": None}


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("form", ["mapping", "array", "arrow", "pandas", "polars"])
def test_ids_of_many_digits_stay_apart(form, gap):
    """Floats of 2**60 and 2**60 + 1 are the same: tasks, groups and ids would be."""
    ids = [2**60 + i // 2 for i in range(40)]
    ids[7] = None if gap else ids[7]
    if form == "array" and gap:
        pytest.skip("an array of whole numbers has no gaps")
    made = {
        "mapping": lambda: {"id": ids},
        "array": lambda: {"id": np.array(ids)},
        "arrow": lambda: pytest.importorskip("pyarrow").table({"id": ids}),
        "pandas": lambda: (p := pytest.importorskip("pandas")).DataFrame({"id": p.array(ids, dtype="Int64")}),
        "polars": lambda: pytest.importorskip("polars").DataFrame({"id": ids}),
    }
    table = Table.of(made[form]())
    assert text_cells(table["id"]) == [None if v is None else str(v) for v in ids]
    assert [None if v is None else int(v) for v in table["id"].tolist()] == ids
    assert len(set(task_ids(table, "id").tolist())) == 20 + gap
    assert len(set(group_numbers(table, "id").tolist())) == 20 + gap


def test_searches_of_scikit_learn_score_a_table():
    pd = pytest.importorskip("pandas")
    from sklearn.model_selection import GridSearchCV, cross_val_score

    rng = np.random.default_rng(0)
    size = rng.normal(size=120)
    frame = pd.DataFrame({"size": size, "finding": np.where(size + 0.3 * rng.normal(size=120) > 0, "fault", "fine")})
    model = TableModel("finding", kernel="rbf").fit(frame)
    assert model.score(frame) == model.evaluate(frame)["accuracy"]
    search = GridSearchCV(TableModel("finding"), {"kernel": ["rbf", "linear"]}, cv=3).fit(frame)
    assert search.best_score_ > 0.8
    numbers = frame.assign(finding=2 * size + rng.normal(size=120))
    scores = cross_val_score(TableModel("finding", kernel="rbf"), numbers, cv=3)
    assert 0.5 < scores.mean() < 1


def test_the_plan_has_the_steps_of_the_table():
    rng = np.random.default_rng(0)
    table = {"size": rng.normal(size=300), "site": rng.choice(list("abc"), 300), "y": rng.choice(["u", "v"], 300)}
    plan = TableModel("y").plan(table)
    names = [step.what for step in plan.steps]
    assert names[:3] == ["encode columns", "read", "choose inputs"]
    assert names[-4:-1] == ["baselines", "column effects", "distributions of columns"]
    assert plan.seconds == pytest.approx(sum(step.seconds for step in plan.steps[:-1]))
    assert plan.peak_bytes >= max(step.peak_bytes for step in plan.steps[:-1])
    tasks = TableModel("y", task="site").plan(table)
    assert "calibration" in [step.what for step in tasks.steps]  # of tasks that training does not have
    assert "choose inputs" in [step.what for step in TableModel("y", kernel="rbf").plan(table).steps]
    many = {name: np.tile(column, 20) for name, column in table.items()}
    small, large = (TableModel("y", n_centers=100).plan(data) for data in (table, many))
    for what in ("encode columns", "read", "baselines", "distributions of columns"):
        few, more = (next(step for step in plan.steps if step.what == what).flops for plan in (small, large))
        assert more > 10 * few
