"""Reports: numbers against their definitions, HTML that names cannot break, files that are replaced atomically."""

import json
import os
import re
import sys
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from html import unescape
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from report_cases import Page, check, classes_model, labels_model, tasks_model, values_model
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, precision_recall_fscore_support, r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leastwise import LSPC, LSSVC, LSSVR, KernelLogisticRegression, MultiTaskLSSVC, MultiTaskLSSVR
from leastwise.calibration.conformal import HeldRows
from leastwise.calibration.risk import Decisions
from leastwise.estimators.abstaining import Abstaining
from leastwise.estimators.recalibrated import Recalibrated
from leastwise.inspection.outcomes import error_bounds
from leastwise.inspection.similarity import block_means
from leastwise.metrics.calibration import calibration_error
from leastwise.metrics.probabilities import brier_score
from leastwise.metrics.reliability import merged_width_bins
from leastwise.problem.tasks import encode_tasks
from leastwise.report import report_data, report_html, write_report
from leastwise.report.evaluation import Events, mean_interval, reliability_curve, share_interval, subject_of
from leastwise.report.formatting import clean, figures, number, percent
from leastwise.report.page import environment, package_file
from leastwise.report.regression import coverage_of, heldout_values
from leastwise.report.tables import area_under_roc
from leastwise.tables import TableModel
from leastwise.utils.svg import element, join_markup

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def close(value, wanted):
    return value == pytest.approx(wanted, rel=1e-4, abs=1e-9)


# ------------------------------------------------------------------------------------ numbers


def test_measures_are_those_of_their_definitions():
    model, _, y = classes_model()
    P = model.estimator_.heldout_proba_
    m = report_data(model)["measures"]
    assert m["rows"] == m["entries"] == len(y)
    assert close(m["error"]["value"], np.mean(P.argmax(axis=1) != y))
    assert close(m["log_loss"]["value"], log_loss(y, P))
    assert close(m["brier"]["value"], brier_score(y, P))
    assert close(m["ece"]["value"], max(calibration_error(y, P), 0))
    for found in (m["error"], m["log_loss"], m["brier"], m["ece"]):
        assert 0 <= found["low"] <= found["value"] <= found["high"]


def test_intervals_of_means_are_the_usual_ones(rng):
    x, w = rng.normal(size=50), np.ones(50)
    half = 1.959964 * x.std(ddof=1) / np.sqrt(50)
    found = mean_interval(x + 5, w, None)
    assert close(found["high"] - found["value"], half) or abs(found["high"] - found["value"] - half) < 1e-3
    twice = mean_interval(np.repeat(x + 5, 2), np.ones(100), np.repeat(np.arange(50), 2))
    assert twice == found
    assert share_interval(np.zeros(20, dtype=bool), np.ones(20), None)["high"] > 0.1


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=80))
@example([(2.2250738585e-313, False)])
def test_a_diagram_has_bins_of_ten_rows_and_all_rows(rows):
    p, true = (np.array(column) for column in zip(*rows, strict=True))
    curve = reliability_curve(Events(p, true, np.ones(len(p)), None))
    place = merged_width_bins(p)
    assert sum(curve["rows"]) == len(p)
    assert min(curve["rows"]) >= min(10, len(p))
    for k, count in enumerate(curve["rows"]):
        here = [i for i in range(len(p)) if place[i] == k]
        assert len(here) == count
        assert close(curve["p"][k], p[here].mean())
        assert close(curve["share"][k], true[here].mean())
        assert curve["low"][k] <= curve["share"][k] * (1 + 1e-4)
        assert curve["high"][k] >= curve["share"][k] * (1 - 1e-4)
    assert curve["p"] == sorted(curve["p"])


@given(st.integers(0, 10_000), st.sampled_from(["plain", "weights", "groups", "counts", "equal counts"]))
def test_bounds_are_those_of_abstention(seed, kind):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    w = rng.choice([1.0, 2.5], size=n) if kind == "weights" else np.ones(n)
    group = rng.integers(0, 8, size=n) if kind == "groups" else None
    count = {"counts": rng.integers(1, 5, size=n), "equal counts": np.full(n, 3)}.get(kind)
    w = w if count is None else count.astype(float)
    decisions = Decisions(rng.random(n), rng.random(n) < 0.3, w, group, count)
    stops = np.array([0.0, 0.3, 0.7, 0.999])
    wanted = [decisions.bound(float(t), 0.05) for t in stops]
    np.testing.assert_allclose(error_bounds(decisions, stops, 0.05), wanted, atol=2e-5)


@given(st.integers(0, 10_000))
def test_areas_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    true = np.array([True, False, *(rng.random(20) < 0.5)])
    p, w = rng.integers(0, 6, size=22) / 5, rng.random(22) + 0.1
    assert area_under_roc(true, p, w) == pytest.approx(roc_auc_score(true, p, sample_weight=w))


# --------------------------------------------------------------------------------- thresholds


def test_every_stop_of_the_slider_counts_rows():
    model, _, y = classes_model()
    known = report_data(model)["thresholds"]
    P = model.estimator_.heldout_proba_
    sure, said = P.max(axis=1), P.argmax(axis=1)
    group = known["groups"][0]
    assert known["stops"] == sorted(known["stops"])
    assert known["stops"][group["start"]] == pytest.approx(model.threshold_)
    for k, stop in enumerate(known["stops"]):
        rows = [i for i in range(len(y)) if sure[i] >= stop]
        wrong = sum(said[i] != y[i] for i in rows)
        assert (group["accepted"][k], group["wrong"][k]) == (len(rows), wrong)
        assert close(group["coverage"][k], len(rows) / len(y))
        assert close(group["error"][k], wrong / len(rows)) if rows else group["error"][k] is None
        table = np.zeros((3, 3), dtype=int)
        for i in rows:
            table[y[i], said[i]] += 1
        assert known["confusions"]["counts"][k] == table.ravel().tolist()
    assert group["accepted"][0] == len(y)


def test_the_errors_of_many_classes_are_listed():
    model, _, y = classes_model(14, 210)
    known = report_data(model.estimator_)["thresholds"]
    P = model.estimator_.heldout_proba_
    sure, said, found = P.max(axis=1), P.argmax(axis=1), known["confusions"]
    for k, stop in enumerate(known["stops"]):
        wanted = [int(np.sum((y == i) & (said == j) & (sure >= stop))) for i, j in found["pairs"]]
        assert found["counts"][k] == wanted
    assert found["counts"][0] == sorted(found["counts"][0], reverse=True)
    assert all(i != j for i, j in found["pairs"])
    assert sum(found["counts"][0]) <= np.sum(said != y)


def test_tasks_and_labels_have_curves_of_their_own():
    model, data = tasks_model()
    known = report_data(model)["thresholds"]
    sure = model.estimator_.heldout_proba_.max(axis=1)
    assert [g["name"] for g in known["groups"]] == ["", *map(str, model.estimator_.tasks_)]
    for t, group in enumerate(known["groups"][1:]):
        mine = sure[data.task == model.estimator_.tasks_[t]]
        assert group["accepted"] == [int((mine >= stop).sum()) for stop in known["stops"]]
        assert known["stops"][group["start"]] == pytest.approx(0.8)
    model, _, Y = labels_model()
    known = report_data(model)["thresholds"]
    assert known["unit"] == "labels"
    assert known["groups"][0]["rows"] == np.sum(~np.isnan(Y))
    assert known["groups"][3]["rows"] == np.sum(~np.isnan(Y[:, 2]))


# ------------------------------------------------------------------------------------- tables


def test_the_table_of_tasks():
    model, data = tasks_model()
    P, table = model.estimator_.heldout_proba_, report_data(model)["tables"][0]
    names = [c["name"] for c in table["columns"]]
    errors = [line[3] for line in table["lines"]]
    assert errors == sorted(errors, reverse=True)
    for line in table["lines"]:
        rows = np.flatnonzero(data.task == int(line[0]))
        y, p = data.y[rows] == model.classes_[1], P[rows, 1]
        found = dict(zip(names, line, strict=True))
        assert found["Rows"] == len(rows)
        assert close(found["Errors"], np.mean((p > 0.5) != y))
        assert found["Errors, low"] <= found["Errors"] <= found["Errors, high"]
        assert close(found["Log-loss"], log_loss(y, p, labels=[False, True]))
        assert close(found["Mean confidence"], P[rows].max(axis=1).mean())
        assert found["ECE"] is None  # 15 rows
        if 0 < y.sum() < len(y):
            assert close(found["AUC"], roc_auc_score(y, p))


def test_the_tables_of_labels_and_classes():
    model, _, Y = labels_model()
    for line in report_data(model)["tables"][0]["lines"]:
        t = int(line[0])
        rows = ~np.isnan(Y[:, t])
        y, p = Y[rows, t] == 1, model.heldout_proba_[rows, t]
        assert line[1] == rows.sum()
        wanted = precision_recall_fscore_support(y, p > 0.5, average="binary")[:3]
        assert close(line[4:7], wanted)
        assert close(line[8], log_loss(y, p))
    model, _, y = classes_model()
    said = model.estimator_.heldout_proba_.argmax(axis=1)
    wanted = np.column_stack(precision_recall_fscore_support(y, said)[:3])
    lines = report_data(model)["tables"][0]["lines"]
    np.testing.assert_allclose([line[4:7] for line in lines], wanted, rtol=1e-4)
    assert [line[1] for line in lines] == np.bincount(y).tolist()


def test_uncertain_rows_and_confident_errors():
    model, X, y = classes_model()
    P = model.estimator_.heldout_proba_
    sure, wrong = P.max(axis=1), P.argmax(axis=1) != y
    least, mistakes = report_data(model, rows={"x": X[:, 0], "who": [f"p{i}" for i in range(len(y))]})[
        "uncertain_rows"
    ]
    assert [line[0] for line in least["lines"]] == np.argsort(sure, kind="stable")[:30].tolist()
    assert [line[-1] for line in least["lines"]] == [f"p{line[0]}" for line in least["lines"]]
    assert len(mistakes["lines"]) == min(30, wrong.sum())
    assert all(wrong[line[0]] for line in mistakes["lines"])
    assert [line[2] for line in mistakes["lines"]] == sorted((line[2] for line in mistakes["lines"]), reverse=True)
    assert [c["name"] for c in least["columns"]][-2:] == ["x", "who"]


def test_rows_within_the_training_data_have_full_domain_weight():
    model, _, y = classes_model()
    inner = model.estimator_
    in_domain, wrong = inner.heldout_rows_.in_domain, inner.heldout_proba_.argmax(axis=1) != y
    known = report_data(model)["novelty"]
    assert sum(known["histogram"]) == len(y)
    assert close(known["within"], np.mean(in_domain >= 0.999))
    for found, here in zip(known["errors"], (in_domain >= 0.999, in_domain < 0.999), strict=True):
        assert found["rows"] == here.sum()
        assert close(found["value"], wrong[here].mean())


def test_the_search_shows_the_best_of_every_pair():
    model, _ = tasks_model()
    known, results = report_data(model)["selection"], model.estimator_.cv_results_
    loss = -results["mean_test_score"]
    at, way = known["surface"], known["paths"][0]
    assert (at["x"], at["y"], way["x"]) == ("alpha", "sigma", "sharing")
    assert close(min(at["score"]), loss.min())
    for sharing, score in zip(way["at"], way["score"], strict=True):
        assert close(score, loss[np.isclose(results["param_sharing"], sharing)].min())
    assert close(known["chosen"]["sharing"], model.estimator_.sharing_)


def test_maps_of_many_are_means_of_blocks(rng):
    S = rng.random((130, 130))
    cells, size = block_means(S, 60)
    assert size == 3
    assert cells.shape == (44, 44)
    assert cells[0, 1] == pytest.approx(S[:3, 3:6].mean())
    off = ~np.eye(3, dtype=bool)
    assert cells[2, 2] == pytest.approx(S[6:9, 6:9][off].mean())
    known = report_data(labels_model()[0])["similarity"]
    best = known["pairs"]["lines"][0]
    i, j = int(best[0]), int(best[1])
    off = labels_model()[0].similarity_[~np.eye(5, dtype=bool)]
    assert close(labels_model()[0].similarity_[i, j], off.max())


# --------------------------------------------------------------------------------- regression


def test_numbers_of_a_regressor():
    model, _, y, task = values_model()
    F, known = model.heldout_prediction_, report_data(model)["values"]
    out = known["outputs"][0]
    assert close(out["rmse"]["value"], np.sqrt(np.mean((y - F) ** 2)))
    assert close(out["mae"]["value"], np.mean(np.abs(y - F)))
    assert close(out["r2"]["value"], r2_score(y, F))
    assert out["r2"]["low"] < out["r2"]["value"] < out["r2"]["high"]
    for line in known["tasks"]["lines"]:
        rows = task == int(line[0])
        assert line[1] == rows.sum()
        assert close(line[3], np.sqrt(np.mean((y - F)[rows] ** 2)))
        assert close(line[5], np.mean((y - F)[rows]))
    worst = [line[0] for line in known["largest_errors"]["lines"]]
    assert worst == np.argsort(-np.abs(y - F), kind="stable")[:30].tolist()


def test_rows_of_weight_zero_do_not_count():
    _, X, y, task = values_model()
    w = np.random.default_rng(0).random(len(y)) + 0.1
    w[[0, 1, 50, 119]] = 0
    for settings_of in ({}, {"n_centers": 20}, {"prune": 0.3}):
        model = MultiTaskLSSVR(sigma=2.0, alpha=0.01, random_state=0, **settings_of)
        model.fit(X, y, tasks=task, sample_weight=w)
        data, left = report_data(model, tasks=task)["values"], y - model.heldout_prediction_
        assert close(data["outputs"][0]["rmse"]["value"], np.sqrt(np.average(left**2, weights=w)))
        counted = np.flatnonzero(w)
        order = counted[np.argsort(-np.abs(left[counted]), kind="stable")][:30]
        assert [line[0] for line in data["largest_errors"]["lines"]] == order.tolist()
        assert sum(line[1] for line in data["tasks"]["lines"]) == len(counted)
        assert all(str(task[line[0]]) == line[1] for line in data["largest_errors"]["lines"])


def test_held_out_values_are_within_bounds():
    """Many predictions are clipped to the same value; rows of weight zero still do not count."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y, w = np.clip(5 + 6 * X[:, 0] + rng.normal(size=80), 0, 10), np.ones(80)
    for zero in (None, rng.choice(80, 20, replace=False)):
        if zero is not None:
            w[zero] = 0
        model = LSSVR(kernel="linear", alpha=0.01, bounds=(0, 10)).fit(X, y, sample_weight=w)
        known = heldout_values(subject_of(model))
        np.testing.assert_array_equal(known.rows, np.flatnonzero(w))
        np.testing.assert_allclose(known.F[:, 0], model.heldout_prediction_[w > 0])
        np.testing.assert_allclose(known.y[:, 0], y[w > 0])
        assert np.isin(known.F, (0, 10)).sum() > 5
        left = y - model.heldout_prediction_
        rmse = report_data(model)["values"]["outputs"][0]["rmse"]["value"]
        assert close(rmse, np.sqrt(np.average(left**2, weights=w)))


def test_coverage_of_one_half_uses_the_residuals_of_the_other():
    model, _, _, _ = values_model()
    known = heldout_values(subject_of(model))
    inside, width = coverage_of(known, 0.8)
    half = np.random.default_rng(0).permutation(int(known.unit.max()) + 1)[known.unit] % 2
    size = np.abs(known.residual[:, 0])
    for side in (0, 1):
        other = np.sort(size[half != side])
        wanted = other[int(np.ceil(0.8 * (len(other) + 1))) - 1]
        assert (inside[half == side, 0] == (size[half == side] <= wanted)).all()
    assert width.shape == (1,)


def test_rows_of_a_fold_are_independent():
    _, X, y, _ = values_model()
    fits = [LSSVR(sigma=2.0, alpha=0.01, cv=cv, random_state=0).fit(X, y) for cv in ("loo", 2)]
    loo, folds = (report_data(model)["values"]["outputs"][0]["rmse"] for model in fits)
    assert folds["high"] - folds["low"] == pytest.approx(loo["high"] - loo["low"], rel=0.3)


def test_intervals_of_given_rows_are_those_of_the_model():
    model, X, y, _ = values_model(tasks=False)
    known = report_data(model, X=X + 0.01, y=y)["values"]
    ends = model.predict_interval(X + 0.01, coverage=0.9)
    inside = (ends[..., 0] <= y) & (y <= ends[..., 1])
    assert [out["coverage"][2][1] for out in known["outputs"]] == pytest.approx(
        inside.mean(axis=0).tolist(), rel=1e-4
    )


# --------------------------------------------------------------------------------------- HTML


def pages():
    model, X, y = classes_model()
    multi, data = tasks_model()
    labels, XL, YL = labels_model()
    yield "given", report_data(model, X=X, y=y, names={0: "zero"})
    yield "tasks", report_data(multi)
    yield "tasks given", report_data(multi, X=data.X, y=data.y, tasks=data.task)
    yield "labels", report_data(labels)
    yield "labels given", report_data(labels, X=XL, y=YL)
    yield "labels with thresholds", report_data(Abstaining(FrozenEstimator(labels), cost=0.2).fit(XL, YL))
    for tasks in (True, False):
        yield "values", report_data(values_model(tasks)[0])
    two = y > 0
    yield "pipeline", report_data(make_pipeline(StandardScaler(), LSPC(random_state=0)).fit(X, two))
    yield "recalibrated", report_data(Recalibrated(LSSVC(random_state=0), method="temperature").fit(X, two))
    yield "logistic", report_data(KernelLogisticRegression(cv=3, random_state=0).fit(X, two))
    yield "tasks of an LS-SVM", report_data(MultiTaskLSSVC(random_state=0).fit(data.X, data.y, tasks=data.task))
    yield "words", report_data(LSPC(random_state=0).fit(X, np.array(["a", "b", "c"])[y]))
    fixed = LSPC(sigma=1.0, alpha=0.1, cv=None, calibration=None).fit(X, y)
    yield "nothing held out", report_data(fixed)
    yield "nothing held out, given", report_data(fixed, X=X, y=y)
    yield "fixed", report_data(LSPC(sigma=1.0, alpha=0.1).fit(X, y))
    yield "one parameter", report_data(LSSVR(kernel="linear").fit(X, X[:, 0] + y))
    yield "far", report_data(LSPC(random_state=0, extrapolate=True).fit(X, y))


def test_every_kind_of_model_has_a_valid_report():
    for name, data in pages():
        json.dumps(data, allow_nan=False)
        html = report_html(data)
        page = check(html)
        assert len(html.encode()) < 300_000, name
        assert "nan" not in re.findall(r"\b\w+\b", page.text.lower()), name
        assert ("No rows were held out" in page.text) == (name == "nothing held out"), name
        assert ("threshold" in page.ids) == (data["kind"] != "values" and data["source"] is not None), name


def test_the_policy_allows_only_the_style_and_the_script():
    html = report_html(report_data(classes_model()[0]))
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]+)"', html)[1])
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag, kind in (("style", "style-src"), ("script", "script-src")):
        text = re.search(rf"<{tag}>(.*?)</{tag}>", html, re.S)[1]
        assert f"{kind} 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy
    assert "http" not in re.sub(r"http-equiv", "", html)


NASTY = [
    "</script><b>",
    "<!--",
    "]]>",
    "{{data}}",
    "\"'`&amp;",
    "🙂🏳️‍🌈",
    "שלום",
    "\u202eabc",
    "\x00\x1b[31m",
    "\ud800",
]
NASTY += ["", "a\nb", "${x}", "<svg onload=x>", "\u2028"]


@cache
def shape_of_harmless_names():
    model, _ = tasks_model()
    ids = model.estimator_.tasks_.tolist()
    names = {"tasks": {ids[5]: "x", ids[6]: "y"}}
    return Page(report_html(report_data(model, title="t", names=names, rows={"u": ["v"] * 180}))).shape


@settings(max_examples=12)
@example(["</script ><b>", "<!--<script >", "</title>", "\ud800", "שלום"])
@given(st.lists(st.text() | st.sampled_from(NASTY), min_size=5, max_size=5))
def test_names_cannot_break_the_html(names):
    model, _ = tasks_model()
    ids = model.estimator_.tasks_.tolist()
    called = {"tasks": {ids[5]: names[0], ids[6]: names[1]}, "classes": {0: names[2]}}
    rows = {names[3]: [names[4]] * 180}
    data = report_data(model, title=names[0], names=called, rows=rows)
    html = report_html(data)
    html.encode()
    page = check(html)
    assert page.shape == shape_of_harmless_names()  # no element more, none less, no other attributes
    assert page.names[0] == data["title"]
    live = json.loads(re.search(r'<script type="application/json" id="data">([^<>&]*)</script>', html)[1])
    assert live["thresholds"] == json.loads(json.dumps(data["thresholds"]))
    shown = [g["name"] for g in data["thresholds"]["groups"]]
    assert len(set(shown)) == len(shown)


@given(st.text())
def test_clean_text_is_one_line_that_can_be_written(text):
    made = clean(text)
    made.encode("utf-8")
    assert made
    assert made == " ".join(made.split())
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e]", made)
    script = environment().from_string("{{ data | tojson }}").render(data={made: text})
    assert json.loads(script)[made] == text
    assert not set("<>&") & set(script)


def test_formatted_numbers():
    assert [percent(0.12345), percent(None), number(0.5), figures(3.0), figures(0.00012341)] == [
        "12.3%",
        "–",
        "0.500",
        "3",
        "0.0001234",
    ]
    assert [percent(0.00125, 2), number(0.0625), figures(0.125, 2), number(-0.5, 0)] == [
        "0.13%",
        "0.063",
        "0.13",
        "-1",
    ]


def contrast(a, b):
    def light(color):
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    bright, dark = sorted((light(a), light(b)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_colours_can_be_told_apart():
    found = re.findall(r"--page: (#\w+); --raised: (#\w+); --ink: (#\w+); --soft: (#\w+);", package_file("style.css"))
    more = re.findall(r"--accent: (#\w+); --accent-soft: (#\w+); --warm: (#\w+);", package_file("style.css"))
    assert len(found) == len(more) == 4
    for (paper, raised, ink, soft), (accent, tint, warm) in zip(found, more, strict=True):
        wide = lambda c: c if len(c) == 7 else "#" + "".join(2 * x for x in c[1:])  # noqa: E731
        for text in (ink, soft, accent, warm):
            assert contrast(wide(text), wide(paper)) >= 4.5
        assert contrast(wide(ink), wide(tint)) >= 4.5
        assert contrast(wide(soft), wide(raised)) >= 4.5


# -------------------------------------------------------------------------------------- files


def test_a_file_is_replaced_atomically(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    model = classes_model()[0]
    assert write_report(model, path, title="First") == path
    first = path.read_text(encoding="utf-8")
    assert "<title>First</title>" in first

    def broken(*_):
        raise OSError("no room")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="no room"):
        write_report(model, path, title="Second")
    assert path.read_text(encoding="utf-8") == first
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing"):
        write_report(classes_model()[0], tmp_path / "missing" / "a.html")


def test_without_jinja2_the_extra_is_named(tmp_path, monkeypatch):
    """Before any work; the data need no template."""
    monkeypatch.setitem(sys.modules, "jinja2", None)
    environment.cache_clear()
    try:
        with pytest.raises(ImportError, match=r"needs jinja2: .*leastwise\[report\]"):
            write_report("not even a model", tmp_path / "a.html")
        assert report_data(classes_model()[0])["kind"] == "classes"
    finally:
        environment.cache_clear()
    assert not (tmp_path / "a.html").exists()


def test_templates_escape_all_but_what_the_package_has_escaped():
    """Strings are escaped everywhere, in charts too; only charts, style and script are inserted as they are."""
    shown = environment().from_string("{{ text }}{{ chart }}")
    made = shown.render(text="<b>", chart=element("text", "<i>", element("g"), class_='"x"'))
    assert made == '&lt;b&gt;<text class="&quot;x&quot;">&lt;i&gt;<g/></text>'
    sources = [path.read_text() for path in files("leastwise.report").joinpath("templates").iterdir()]
    assert len(sources) == 5
    assert not [text for text in sources if re.search(r"\|\s*safe\b|autoescape|Markup", text)]
    assert join_markup("a<", element("g")) + "<" == "a&lt;<g/>&lt;"


def test_files_have_the_usual_rights(tmp_path):
    other = tmp_path / "other"
    other.write_text("")
    made = write_report(classes_model()[0], tmp_path / "a.html", title="é")
    assert "é" in made.read_text(encoding="utf-8")
    assert made.stat().st_mode == other.stat().st_mode


def test_a_report_on_large_data_is_small():
    model, _ = tasks_model()
    inner = model.estimator_
    rng, n, T = np.random.default_rng(0), 20_000, 1000
    task, index = encode_tasks(np.array([f"site number {t} of a chain" for t in range(T)])[np.arange(n) % T], n)
    p = rng.random(n)
    S = np.exp(-np.abs(np.subtract.outer(np.arange(T), np.arange(T))) / 100)
    big = type("MultiTaskLSPC", (type(inner),), {"similarity_": S})(**inner.get_params())
    vars(big).update(vars(inner))
    big.heldout_proba_ = np.column_stack([1 - p, p])
    big.heldout_rows_ = HeldRows((rng.random(n) < p).astype(int), np.ones(n), np.ones(n), None, task)
    big.task_index_ = index
    data = report_data(big)
    assert len(data["tables"][0]["lines"]) == T
    html = report_html(data)
    assert len(html.encode()) < 1_000_000
    assert html.count("<tr>") < 200
    assert len(data["similarity"]["cells"]) == 59
    assert "The first 50 of 1,000 tasks" in check(html).text


def test_a_table_model_is_unwrapped():
    rng = np.random.default_rng(0)
    size = rng.normal(size=60)
    table = {"size": size, "finding": np.where(size + 0.3 * rng.normal(size=60) > 0, "fault", None)}
    table["finding"][size < -0.5] = "fine"
    model = TableModel("finding", max_error=0.3).fit(table)
    assert 0 < len(model.rows_used_) < 60
    given = {"title": "x", "now": NOW, "rows": {"size": size[model.rows_used_]}}
    whole = report_data(model, **given)
    assert whole["baselines"]["note"] is None
    assert [line["column"] for line in whole["effects"]["lines"]] == ["size"]
    alone = report_data(model.fitted_, **given)
    assert "leastwise check MODEL NEW.csv" in whole["commands"]["shift"]
    assert "estimate_class_prior" in alone["commands"]["shift"]
    assert {**whole, "baselines": None, "effects": None, "commands": alone["commands"]} == alone
    with pytest.raises(NotFittedError):
        report_data(TableModel("finding"))


def test_the_title_has_the_target_and_the_facts_say_if_all_is_rejected():
    rng = np.random.default_rng(0)
    table = {"size": rng.normal(size=40), "finding": rng.choice(["fault", "fine"], 40)}
    with pytest.warns(UserWarning, match="everything is rejected"):
        model = TableModel("finding", max_error=0.01).fit(table)
    known = report_data(model)
    assert known["title"] == "finding: report on LSPC"
    assert report_data(model.model_)["title"] == "LSPC: report"
    assert dict(known["facts"])["Threshold"] == "none: every row is rejected"


def test_equal_ids_of_classes_and_tasks_have_separate_names():
    model, _ = tasks_model()
    data = report_data(model, names={0: "ill"})
    assert "ill" in data["thresholds"]["confusions"]["classes"]
    assert "ill" not in [line[0] for line in data["tables"][0]["lines"]]
    data = report_data(model, names={"tasks": {0: "Bergen"}})
    assert "Bergen" in [line[0] for line in data["tables"][0]["lines"]]
    assert "Bergen" not in data["thresholds"]["confusions"]["classes"]
    data = report_data(values_model()[0], names={0: "Bergen"})
    assert "Bergen" in [line[0] for line in data["values"]["tasks"]["lines"]]


def test_wrong_arguments_are_named():
    model, X, y = classes_model()
    for call, message in [
        (lambda: report_data(LogisticRegression().fit(X, y)), "LogisticRegression: a report needs"),
        (lambda: report_data(model, X=X), "X and y go together"),
        (lambda: report_data(model, names=["a", "b"]), "names is of type list"),
        (lambda: report_data(model, rows={"a": [1, 2]}), "rows has 2 entries in column 'a' and 150 rows"),
        (lambda: report_data(model, rows=[1, 2]), "give a frame, a mapping"),
        (lambda: report_data(model, X=X, y=y[1:]), "149 entries and X has 150 rows"),
        (lambda: report_data(LSPC()), "not fitted"),
        (lambda: report_data(Abstaining(LSPC(), cost=0.1)), "not fitted"),
        (lambda: report_data(values_model()[0], tasks=[1]), "tasks has 1 entries and there are 120"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            call()


def test_coverage_by_task_is_that_of_adaptive_intervals():
    """Tasks with errors of 0.1 and 1: constant widths cover all rows of the one and few of the other."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(8), 40)
    X = rng.normal(size=(len(task), 2))
    y = X[:, 0] + np.where(task % 4 == 0, 1.0, 0.1) * rng.normal(size=len(task))
    model = MultiTaskLSSVR(kernel="linear", sharing=1.0, alpha=0.01, random_state=0).fit(X, y, tasks=task)
    known = heldout_values(subject_of(model), task)
    shares = {}
    for name, rows in (("adaptive", known), ("constant", replace(known, scale=None))):
        inside, width = coverage_of(rows, 0.9)
        shares[name] = min(inside[task == t].mean() for t in range(8)), width[0]
    assert shares["adaptive"][0] > shares["constant"][0] + 0.1
    assert shares["adaptive"][1] < shares["constant"][1]
    lines = report_data(model, tasks=task)["values"]["tasks"]["lines"]
    assert min(line[-1] for line in lines) == pytest.approx(shares["adaptive"][0], abs=1e-4)
