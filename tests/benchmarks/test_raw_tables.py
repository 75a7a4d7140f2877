"""The comparison on raw tables: which rows, what is recorded, what a stopped run does, and the statistics."""

import importlib
import json
import time
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

raw_tables = pytest.importorskip("benchmarks.raw_tables", reason="the benchmarks are not beside the tests")
methods = importlib.import_module("benchmarks._table_methods")
ranks = importlib.import_module("benchmarks._ranks")
tables = importlib.import_module("benchmarks._tables")

LOGISTIC, OURS = "logistic", "LSPC()"


def run(path, *more):
    argv = ["--sets", "breast_cancer", "iris", "wine", "--draws", "2", "--methods", LOGISTIC, OURS]
    raw_tables.main([*argv, "--output", str(path), *more])
    return raw_tables.read_records(path)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("raw") / "results.jsonl"
    return SimpleNamespace(path=path, records=run(path))


def test_every_fit_is_recorded(recorded):
    expected = {("breast_cancer", "300"), ("breast_cancer", "all"), ("iris", "all"), ("wine", "all")}
    expected = {(m, *cell, draw) for m in (LOGISTIC, OURS) for cell in expected for draw in (0, 1)}
    assert {raw_tables.key(r) for r in recorded.records} == expected
    assert {r["status"] for r in recorded.records} == {"ok"}
    for r in recorded.records:
        assert {"log_loss", "brier", "ece", "accuracy", "fit_seconds", "predict_seconds"} <= set(r)
        assert ("heldout_log_loss" in r) == (r["method"] == OURS)
        assert 0.85 < r["accuracy"] <= 1
        assert 0 < r["log_loss"] < 0.4
    sizes = {(r["set"], r["size"]): (r["rows"], r["test_rows"], r["classes"]) for r in recorded.records}
    assert sizes["breast_cancer", "300"] == (300, 269, 2)
    assert sizes["iris", "all"] == (105, 45, 3)


def test_the_log_loss_is_that_of_the_draw(recorded):
    table = next(t for t in tables.classification_sets() if t.name == "breast_cancer")
    data = table.draw("300", 1)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(data.X, data.y)
    found = next(r for r in recorded.records if raw_tables.key(r) == (LOGISTIC, "breast_cancer", "300", 1))
    assert found["log_loss"] == pytest.approx(log_loss(data.y_test, model.predict_proba(data.X_test)))


def test_forgotten_fits_are_measured_again(recorded, tmp_path, capsys):
    path = tmp_path / "some.jsonl"
    path.write_text(recorded.path.read_text())
    raw_tables.main(["--forget", "--methods", LOGISTIC, "--sizes", "300", "--output", str(path)])
    left = raw_tables.read_records(path)
    gone = {raw_tables.key(r) for r in recorded.records} - {raw_tables.key(r) for r in left}
    assert gone == {(LOGISTIC, "breast_cancer", "300", draw) for draw in (0, 1)}
    assert len(run(path)) == len(recorded.records)
    with pytest.raises(SystemExit, match="--methods"):
        raw_tables.main(["--forget", "--output", str(path)])


def test_a_stopped_run_continues(recorded, tmp_path, capsys):
    path = tmp_path / "again.jsonl"
    *lines, last = recorded.path.read_text().splitlines()
    failed = {**json.loads(lines.pop()), "status": "error", "error": "by chance"}
    path.write_text("\n".join([*lines, json.dumps(failed), last[:40]]))  # the last line was cut off
    again = run(path)
    assert sum(line[:3] in ("300", "all") for line in capsys.readouterr().out.splitlines() if ": 0." in line) == 2
    assert sorted(map(raw_tables.key, again)) == sorted(map(raw_tables.key, recorded.records))
    assert {r["status"] for r in again} == {"ok"}


def test_the_summary_compares_with_the_reference(recorded, capsys):
    run(recorded.path, "--summary")
    out = capsys.readouterr().out
    assert "300: 1 sets" in out
    assert "all: 3 sets" in out
    assert "each set once: 3 sets" in out
    found = ranks.summary(recorded.records, [LOGISTIC, OURS], OURS, raw_tables.SIZES)
    rows = {row["method"]: row for row in next(p for p in found if p["title"] == "all")["methods"]}
    mean = {
        (m, s): np.mean([r["log_loss"] for r in recorded.records if raw_tables.key(r)[:3] == (m, s, "all")])
        for m in rows
        for s in ("breast_cancer", "iris", "wine")
    }
    logs = [np.log(mean[LOGISTIC, s] / mean[OURS, s]) for s in ("breast_cancer", "iris", "wine")]
    assert rows[LOGISTIC]["ratio"] == pytest.approx(np.exp(np.mean(logs)))
    assert rows[LOGISTIC]["better"] == sum(x > 0 for x in logs)
    assert rows[OURS]["mean_rank"] == pytest.approx(1 + np.mean([x < 0 for x in logs]))
    assert sum(row["wins"] for row in rows.values()) == 3


def test_the_summary_compares_held_out_losses_with_those_of_new_rows(recorded, capsys):
    run(recorded.path, "--summary")
    assert "Held-out loss / loss of new rows" in capsys.readouterr().out
    found = ranks.heldout_losses(recorded.records, OURS, "all")
    assert set(found) == {"breast_cancer", "iris", "wine"}
    iris = [r for r in recorded.records if raw_tables.key(r)[:3] == (OURS, "iris", "all")]
    held, new = (np.mean([r[name] for r in iris]) for name in ("heldout_log_loss", "log_loss"))
    assert found["iris"].ratio == pytest.approx(held / new)
    errors = [np.hypot(r["heldout_error"], r["log_loss_error"]) for r in iris]
    assert found["iris"].errors == pytest.approx((held - new) / np.linalg.norm(errors) * len(iris))
    assert ranks.heldout_losses(recorded.records, LOGISTIC, "all") == {}


def test_differences_of_held_out_losses_are_in_standard_errors():
    """With held-out rows that are like new ones, four in five differences are within 1.3 standard errors."""
    rng, found = np.random.default_rng(0), []
    for _ in range(200):
        losses = rng.exponential(size=(3, 2, 400))
        errors = np.hypot(*(losses.std(axis=2, ddof=1) / 20).T)
        found.append(ranks.compared_heldout(np.column_stack([losses.mean(axis=2), errors])).errors)
    assert np.mean(np.abs(found) < 1.2816) == pytest.approx(0.8, abs=0.08)


def test_ablations_are_run_by_name(tmp_path):
    path = tmp_path / "part.jsonl"
    name = "LSPC, no feature weights"
    raw_tables.main(["--methods", name, "--sets", "iris", "--draws", "1", "--output", str(path)])
    assert [(r["method"], r["status"]) for r in raw_tables.read_records(path)] == [(name, "ok")]


def test_regression_records_errors_in_units_of_the_targets(tmp_path):
    path = tmp_path / "numbers.jsonl"
    raw_tables.main(["--regression", "--quick", "--output", str(path)])
    found = {r["method"]: r for r in raw_tables.read_records(path)}
    assert set(found) == {"LSSVR()", "ridge"}
    data = next(t for t in tables.regression_sets() if t.name == "diabetes").draw("300", 0)
    for r in found.values():
        assert r["rmse"] == pytest.approx(r["relative_rmse"] * data.y.std())
        assert r["r2"] == pytest.approx(1 - r["rmse"] ** 2 / data.y_test.var())
        assert 0.3 < r["r2"] < 0.6
    assert found["LSSVR()"]["heldout_rmse"] == pytest.approx(found["LSSVR()"]["rmse"], rel=0.15)


# ------------------------------------------------------------------------ tables


def toy(n=600):
    """Classes of 70, 28 and 2 % of the rows, and one with too few."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c", "few"], [int(0.7 * n), int(0.28 * n), int(0.02 * n), 5])
    return tables.TableSet("toy", lambda: (rng.standard_normal((len(y), 2)) + (y == "b")[:, None], y))


def test_draws_depend_on_name_size_and_number_only():
    first, again, other = toy().draw(300, 0), toy().draw(300, 0), toy().draw(300, 1)
    assert np.array_equal(first.X, again.X)
    assert not np.array_equal(first.X, other.X)
    assert np.bincount(first.y).tolist() == [210, 84, 6]
    assert np.bincount(first.y_test).tolist() == [210, 84, 6]
    assert not set(first.X[:, 0]) & set(first.X_test[:, 0])


def test_sizes_that_leave_too_few_test_rows_are_skipped():
    table = toy()
    assert (table.n_rows, table.n_classes) == (600, 3)
    assert [table.training_rows(s) for s in raw_tables.SIZES] == [300, None, 420]
    assert table.draw(1500, 0) is None
    assert toy(430).training_rows("all") is None  # 301 rows are no other size than 300
    assert toy(40_000).training_rows("all") == 10_000
    assert len(toy(40_000).draw("all", 0).y_test) == 5000


def test_rare_classes_get_enough_rows_for_five_folds():
    codes = np.repeat([0, 1, 2], [980, 8, 12])
    rows = tables.stratified(codes, 100, np.random.default_rng(0))
    assert np.bincount(codes[rows]).tolist() == [90, 5, 5]
    assert len(set(rows)) == 100


@pytest.mark.parametrize("name", [LOGISTIC, OURS, "HistGB", "SVC + sigmoid", "Nystroem + LR"])
def test_methods_take_categories_and_missing_values(name):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 160)
    frame = pd.DataFrame({"number": y + rng.standard_normal(160), "word": np.where(rng.random(160) < 0.8, y, 1 - y)})
    frame["word"] = frame["word"].map({0: " no", 1: "yes "})
    frame.loc[:5, "number"] = np.nan
    frame.loc[3:9, "word"] = None
    frame.loc[159, "word"] = "unseen"
    X = tables.mixed(frame)
    assert tables.categorical(X) == ["word"]
    assert list(X["word"].cat.categories) == ["no", "unseen", "yes"]
    data = tables.TableDraw(X[:100], y[:100], X[100:], y[100:])
    found = raw_tables.fitted(methods.CLASSIFIERS[name], data, 0, 60)
    assert found["status"] == "ok", found
    assert found["log_loss"] < 0.65


# ----------------------------------------------------------------- time and failure


class Busy:
    """Takes long, or fails."""

    def __init__(self, error=None):
        self.error = error

    def fit(self, X, y):
        if self.error:
            raise self.error
        end = time.process_time() + 20
        while time.process_time() < end:
            pass
        raise AssertionError("was not stopped")


def test_a_fit_is_stopped_and_the_other_draws_are_not_tried(capsys):
    args = SimpleNamespace(draws=3, limit=0.2)
    found = list(raw_tables.draws(args, methods.raw(lambda seed: Busy()), "busy", toy(), "300", {}))
    assert [r["status"] for r in found] == ["timeout"] * 3
    assert capsys.readouterr().out.count("timeout") == 3


def test_a_failure_is_recorded(capsys):
    args = SimpleNamespace(draws=1, limit=60)
    broken = methods.raw(lambda seed: Busy(ValueError("no good")))
    [found] = raw_tables.draws(args, broken, "broken", toy(), "300", {})
    assert (found["status"], found["error"]) == ("error", "ValueError: no good")


# ------------------------------------------------------------------------ statistics


def test_critical_difference_of_the_literature():
    assert ranks.nemenyi(4, 14) == pytest.approx(1.25, abs=0.005)  # Demsar 2006, section 3.2.2
    assert ranks.nemenyi(5, 30) == pytest.approx(2.728 * np.sqrt(5 * 6 / (6 * 30)), abs=1e-3)


def test_ranks_leave_out_methods_and_blocks_that_were_not_tried():
    nan, inf = np.nan, np.inf
    losses = np.array(
        [[1, 2, 3, nan], [1, inf, 2, nan], [2, 2, 1, nan], [1, 3, 2, 0], [3, nan, 1, nan], [1, 2, 3, nan]]
    )
    found = ranks.ranking(losses)
    assert found.n_blocks == 5
    assert found.mean_rank[:3] == pytest.approx(
        np.array([1 + 1 + 2.5 + 1 + 1, 2 + 3 + 2.5 + 3 + 2, 3 + 2 + 1 + 2 + 3]) / 5
    )
    assert np.isnan(found.mean_rank[3])
    assert found.wins.tolist() == [4, 0, 1, 0]


def test_a_duel_counts_failures_but_not_in_the_ratio():
    found = ranks.duel(np.array([0.2, 0.1, np.inf, np.nan, 1e-9]), np.array([0.1, 0.2, 0.1, 0.1, 0.005]), 0.005)
    assert found.ratio == pytest.approx(1)
    assert (found.better, found.worse) == (2, 1)


def test_a_set_counts_once_over_all_sizes():
    losses = np.array([[1.0, 2.0], [4.0, np.nan], [3.0, 5.0]])
    assert ranks.blocks_by_set(losses, ["a", "a", "b"]) == pytest.approx(np.array([[2, np.nan], [3, 5]]), nan_ok=True)
