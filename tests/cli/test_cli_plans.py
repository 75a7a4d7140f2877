"""Sessions with plans and limits: what a fit will take is said before, and time and memory can be limited."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("typer")

from cli_cases import answered, cases, spoken

from leastwise import LSPC, LSSVR, MultiLabelLSPC, MultiTaskLSPC, load, memory_limit
from leastwise.cli.output import DATA, DONE, USAGE, time_left
from leastwise.model_selection.checkpoint import search_time
from leastwise.model_selection.search import Search
from leastwise.tables import TableError, TableModel, planning, write_table

LEFT_OUT = ["weighs", "broken", "late", "case"]


@pytest.fixture
def table(tmp_path):
    write_table(cases(240), tmp_path / "t.csv")
    return tmp_path / "t.csv"


TARGETS = {
    "classes": ["-t", "finding", "--ignore", "broken,weighs"],
    "numbers": ["-t", "weighs", "--ignore", "finding,broken"],
    "tasks": ["-t", "weighs", "--task", "site", "--ignore", "finding,broken"],
    "labels": ["--labels", "broken,late", "--ignore", "finding,weighs"],
}


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_the_plan_is_said_before_the_work(table, tmp_path, target, monkeypatch):
    monkeypatch.setattr(planning, "MANY_ROWS", 100)
    monkeypatch.setattr(planning, "CENTERS", (30, 10))
    code, _, err = spoken("fit", table, *target, "--kernel", "rbf", "-o", tmp_path / "m.lw")
    assert code == DONE, err
    assert re.search(
        r"Training data: 240 rows.*\nPlan: 30 kernel centres, about [\d.]+ s and [\d.]+ [KM]B of memory", err
    )
    assert load(tmp_path / "m.lw")._inner.centers_.shape[0] == 30  # the same rule for all


def test_all_rows_are_centres_of_a_small_table(table, tmp_path):
    given = ["fit", table, *TARGETS["classes"], "--kernel", "rbf", "-o", tmp_path / "m.lw"]
    assert "Plan: all rows are kernel centres, about " in spoken(*given)[2]
    plan = answered(*given)["plan"]
    assert (plan["n_rows"], plan["n_centers"], plan["fits"]) == (240, 240, True)
    assert answered(*given, "--centers", "20")["plan"]["n_centers"] == 20


def test_memory_decides_on_the_centres(table, tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "CENTERS", (100, 20, 10))
    given = ["fit", table, *TARGETS["classes"], "--task", "site", "--kernel", "rbf", "-o", tmp_path / "m.lw"]
    sizes = [answered(*given, "--memory-limit", size)["plan"]["n_centers"] for size in ("2GB", "1.5MB", "500KB")]
    assert sizes[0] == 240
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] <= 100


def test_too_little_memory_is_an_error_with_options(table, tmp_path):
    given = ["fit", table, "-t", "weighs", "--task", "site", "--ignore", "finding", "-o", tmp_path / "m.lw"]
    code, _, err = spoken(*given, "--centers", "200", "--memory-limit", "100KB")
    assert code == DATA
    last = err.splitlines()[-1]
    assert re.search(
        r"240 rows with 200 basis functions need about .* 100 KB are available\. --centers \d+ would fit\.", last
    )
    assert last.endswith("--memory-limit allows more, --ignore leaves columns out.")
    assert "fit_stream" not in last
    assert "LEASTWISE_MEMORY" not in last
    assert not (tmp_path / "m.lw").exists()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--time-limit", "soon", "--time-limit soon: expected a time, such as 90 (seconds), 10m or 2h."),
        ("--time-limit", "0", "--time-limit 0: expected a time"),
        ("--time-limit", "inf", "--time-limit inf: expected a time"),
        ("--memory-limit", "much", "--memory-limit much: expected a size, such as 500MB or 4GB."),
        ("--memory-limit", "0GB", "--memory-limit 0GB: expected a size"),
    ],
)
def test_limits_that_make_no_sense(table, option, value, message):
    code, _, err = spoken("fit", table, "-t", "finding", option, value)
    assert code == USAGE
    assert message in err


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("1.5h", 5400), ("10M", 600), ("1d", 86400)])
def test_times_have_units(table, tmp_path, text, seconds, monkeypatch):
    seen = []
    monkeypatch.setattr(TableModel, "look", lambda model, table: seen.append(model.time_limit) or {}["stop"])
    spoken("fit", table, "-t", "finding", "--time-limit", text, "-o", tmp_path / "m.lw")
    assert seen == [seconds]


def test_a_search_stops_at_the_limit_with_a_model(table, tmp_path):
    given = ["fit", table, *TARGETS["tasks"], "-o", tmp_path / "m.lw"]
    code, out, err = spoken(*given, "--time-limit", "0.001")
    assert code == DONE, err
    assert "warning: The fit is planned to take about " in err
    assert "more than the time limit of 0.001 s" in err
    assert "The search stopped at the time limit of 0.001 s, with the best point so far." in err
    assert "held-out R2" in out
    assert load(tmp_path / "m.lw").stopped_
    assert not load(tmp_path / "m.lw").set_params(time_limit=600).fit(cases(60)).stopped_


# ------------------------------------------------------------------------ the search


@pytest.mark.parametrize("model", [LSPC(), LSSVR(), MultiLabelLSPC(), LSPC(kernel="rbf", n_centers=20)], ids=repr)
def test_a_stopped_search_ends_on_a_point_that_it_made(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=120)
    y = {"LSSVR": y, "MultiLabelLSPC": np.column_stack([y > 0, y > 1])}.get(type(model).__name__, y > 0)
    made = []
    original = Search._skipped

    def skipped(search, sigma, sharing):
        made.append(search.made)
        return original(search, sigma, sharing)

    Search._skipped = skipped
    try:
        with search_time(0.0) as limit:
            model.fit(X, y)
    finally:
        Search._skipped = original
    assert limit.n_skipped == len(made) > 0
    assert any(np.isclose(model.sigma_, sigma) for search in made for sigma, _ in search) or not model.sigma_
    assert np.mean(model.predict(X) == y) > 0.7 if type(model) is LSPC else True
    n_points = len(model.cv_results_["rank_test_score"])
    assert n_points < len(model.fit(X, y).cv_results_["rank_test_score"])


def test_a_limit_that_is_not_reached_changes_nothing():
    rng = np.random.default_rng(0)
    X, tasks = rng.normal(size=(90, 2)), np.arange(90) % 3
    y = X[:, 0] > 0.3 * tasks
    free = MultiTaskLSPC().fit(X, y, tasks=tasks)
    with search_time(600) as limit:
        limited = MultiTaskLSPC().fit(X, y, tasks=tasks)
    assert limit.n_skipped == 0
    np.testing.assert_array_equal(free.predict_proba(X, tasks=tasks), limited.predict_proba(X, tasks=tasks))


def test_plans_of_table_models():
    table = cases(60).without(LEFT_OUT)
    plan = TableModel(target="finding").plan(table)
    assert plan.n_rows == 60
    with memory_limit("10KB"):
        assert TableModel(target="finding", task="site", n_centers=None).plan(table).fits is False
    from sklearn.linear_model import LogisticRegression

    other = TableModel(target="finding", model=LogisticRegression())
    assert other.plan(table) is None
    assert other.look(table)["plan"] is None
    for limit in (0, -1, "1h", True):
        with pytest.raises(TableError, match="must be a number of seconds above 0"):
            TableModel(target="finding", time_limit=limit).fit(table)


# ---------------------------------------------------------------------- time that is left


@pytest.mark.parametrize(
    ("expected", "elapsed", "text"),
    [
        (60, 0, "about 60 s left"),
        (60, 59.5, "almost done"),
        (60, 80, "almost done"),
        (60, 100, "longer than planned"),
        (600, 100, "about 8 min left"),
        (3 * 3600, 0, "about 3.0 h left"),
    ],
)
def test_time_left(expected, elapsed, text):
    assert time_left(expected, elapsed) == text


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
def test_a_terminal_shows_a_bar_and_the_time_left(table, tmp_path):
    import pty
    import select

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "leastwise", "fit", str(table), *TARGETS["tasks"], "-o", str(tmp_path / "m.lw")]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        said = b""
        while select.select([ours], [], [], 60)[0]:
            try:
                said += os.read(ours, 2**16)
            except OSError:  # the other end is closed
                break
    os.close(ours)
    assert process.returncode == 0
    assert re.search(r"about \d+ s left|almost done|longer than planned", said.decode())
    assert "━" in said.decode()
