"""Sessions with options for decisions, and with new tables: evaluation by site, comparison, drift, reports."""

import io
import re

import numpy as np
import pytest

pytest.importorskip("typer")

from cli_cases import answered, cases, spoken

from leastwise import load
from leastwise.cli.output import DATA, DONE, DRIFT, USAGE
from leastwise.tables import Table, TableError, TableModel, read_table, write_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Training and test rows of three sites, and a model with decisions by site."""
    folder = tmp_path_factory.mktemp("new")
    for name, seed in (("old", 0), ("new", 1)):
        write_table(cases(240, seed).without(["weighs", "broken", "late"]), folder / f"{name}.csv")
    given = ["--ignore", "case", "--kernel", "rbf", "--seed", "3"]
    rule = ["--task", "site", "--max-error", "0.3", "--by-task", "--confidence", "0.9"]
    for name, more in (("sites", rule), ("plain", ["--ignore", "site"]), ("poor", ["--ignore", "site,size"])):
        path = folder / f"{name}.lw"
        code, _, err = spoken("fit", folder / "old.csv", "-t", "finding", *given, *more, "-o", path)
        assert code == DONE, err
    return folder


# --------------------------------------------------------------- options of the fit


def test_options_reach_the_model(folder):
    model = load(folder / "sites.lw")
    decider = model.decider_
    assert (decider.max_error, decider.confidence, decider.by_task) == (0.3, 0.9, True)
    assert decider.task_thresholds_.shape == (3,)
    assert (model._inner.kernel, model._inner.random_state) == ("rbf", 3)


def test_cost_and_similarity(tmp_path, folder):
    given = ["fit", folder / "old.csv", "-t", "finding", "--task", "site", "--ignore", "case", "--kernel", "linear"]
    code, _, err = spoken(*given, "--cost", "0.2", "--similarity", "inputs", "-o", tmp_path / "m.lw")
    assert code == DONE, err
    model = load(tmp_path / "m.lw")
    assert (model.decider_.cost, model._inner.similarity) == (0.2, "inputs")
    assert model.decider_.threshold_ == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("value", "expected"), [("0.3", [0.3, 0.3]), ("late=0.2", [0.5, 0.2]), ("broken=0.7,late=0.2", [0.7, 0.2])]
)
def test_thresholds_of_labels(tmp_path, value, expected):
    write_table(cases(60).without(["finding", "weighs", "case", "site"]), tmp_path / "l.csv")
    given = ["fit", tmp_path / "l.csv", "--labels", "broken,late", "--kernel", "linear"]
    code, _, err = spoken(*given, "--threshold", value)
    assert code == DONE, err
    model = load(tmp_path / "l.lw")
    assert np.broadcast_to(model._inner.threshold_, 2) == pytest.approx(expected)
    _, out, _ = spoken("predict", tmp_path / "l.lw", tmp_path / "l.csv")
    said = read_table(io.StringIO(out))
    for name, threshold in zip(("broken", "late"), expected, strict=True):
        over = said[f"p_{name}"].astype(float) > threshold
        assert (said[name].astype(int) == over).mean() > 0.98  # probabilities are rounded


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--kernel", "rbx"], USAGE, "--kernel rbx: use one of laplace, linear"),
        (["--task", "site", "--similarity", "near"], USAGE, "--similarity near is not known: use one of ['shared', "),
        (["--similarity", "inputs"], USAGE, "--similarity relates tasks or labels: it needs --task or --labels."),
        (["--max-error", "0.1", "--cost", "0.1"], USAGE, "--max-error and --cost exclude each other"),
        (["--by-task", "--max-error", "0.1"], USAGE, "it needs --task"),
        (["--threshold", "0.3"], USAGE, "--threshold is for --labels alone"),
        (["--threshold", "high"], USAGE, "--threshold high: expected auto or NAME=NUMBER"),
        (["--confidence", "2"], USAGE, "--confidence 2: must be between 0 and 1"),
    ],
)
def test_options_that_do_not_fit_together(folder, options, code, message):
    found, _, err = spoken("fit", folder / "old.csv", "-t", "finding", *options, "-o", folder / "never.lw")
    assert found == code, err
    assert message in err
    assert not (folder / "never.lw").exists()


# ------------------------------------------------------------- class shares of new rows


def test_class_shares_of_new_rows(folder):
    def share(*more):
        code, out, err = spoken("predict", folder / "plain.lw", folder / "new.csv", *more)
        assert code == DONE, err
        said = read_table(io.StringIO(out))
        return said["p_fault"].astype(float).mean(), said.names, err

    trained, names, _ = share()
    assert "set" in names
    rare, names, err = share("--class-prior", "fault=0.05,fine=0.95")
    assert rare < trained - 0.1
    assert "set" not in names
    assert "Limits of errors and prediction sets are for the class shares of training" in err
    assert share("--class-prior", "fault=1", "--class-prior", "fine=19")[0] == rare
    model, new = load(folder / "plain.lw"), read_table(folder / "new.csv")
    X = model.encoder_.transform(new.without(["finding"]))
    expected = model.model_.predict_proba(X, class_prior=[0.05, 0.95])[:, 0].mean()
    assert rare == pytest.approx(expected, abs=1e-6)
    assert share("--class-prior", "uniform")[0] == pytest.approx(
        model.model_.predict_proba(X, class_prior="uniform")[:, 0].mean(), abs=1e-6
    )
    assert abs(share("--class-prior", "estimate")[0] - (new["finding"] == "fault").mean()) < 0.1


def test_class_shares_in_an_evaluation_and_bad_ones(folder):
    given = ["evaluate", folder / "plain.lw", folder / "new.csv", "--class-prior"]
    assert answered(*given, "fault=0.05,fine=0.95")["log_loss"] > answered(*given, "estimate")["log_loss"]
    code, _, err = spoken(*given, "broken=0.1,fine=0.9")
    assert code == DATA
    assert "--class-prior names ['broken']; the classes of the model are ['fault', 'fine']." in err
    code, _, err = spoken(*given, "rare")
    assert code == USAGE
    assert "--class-prior rare: expected uniform, estimate or NAME=NUMBER" in err


# ------------------------------------------------------------------ evaluation by site


def test_evaluation_by_site_has_decisions(folder):
    scores = answered("evaluate", folder / "sites.lw", folder / "new.csv")
    new = read_table(folder / "new.csv")
    said = load(folder / "sites.lw").predict_table(new)
    for site, found in scores["tasks"].items():
        here = new["site"] == site
        decided = np.array([cell is not None for cell in said["decision"]]) & here
        assert found["decided"] == pytest.approx(decided.sum() / here.sum())
        wrong = (said["decision"] != new["finding"])[decided].mean() if decided.any() else None
        assert found["error_of_decided"] == (None if wrong is None else pytest.approx(wrong))
    _, out, _ = spoken("evaluate", folder / "sites.lw", folder / "new.csv")
    assert re.search(r"^task +rows +log-loss +accuracy +accepted +error among accepted$", out, re.M)


# -------------------------------------------------------------------------- comparison


def test_two_models_are_compared_row_by_row(folder):
    found = answered("compare", folder / "poor.lw", folder / "plain.lw", folder / "new.csv")
    alone = {name: answered("evaluate", folder / f"{name}.lw", folder / "new.csv") for name in ("poor", "plain")}
    for name in ("log_loss", "brier", "auc"):
        score = found["scores"][name]
        assert (score["first"], score["second"]) == pytest.approx((alone["poor"][name], alone["plain"][name]))
        low, high = score["interval"]
        assert low < score["difference"] < high
        assert score["better"] == "second"
    code, out, _ = spoken("compare", folder / "plain.lw", folder / "plain.lw", folder / "new.csv")
    assert code == DONE
    assert out.count("no clear difference") == 4
    assert "95 % bootstrap intervals over rows" in out


def test_intervals_of_differences_agree_with_the_theory(folder):
    """The bootstrap interval of a mean difference is about that of the normal distribution."""
    first, second = load(folder / "poor.lw"), load(folder / "plain.lw")
    new = read_table(folder / "new.csv")
    score = first.compare(second, new)["scores"]["error"]
    wrong = [(m.predict_table(new)["prediction"] != new["finding"]).astype(float) for m in (first, second)]
    d = wrong[1] - wrong[0]
    half = 1.96 * d.std() / np.sqrt(len(d))
    assert score["difference"] == pytest.approx(d.mean())
    assert score["interval"] == pytest.approx([d.mean() - half, d.mean() + half], abs=0.25 * half)


def test_numbers_and_labels_are_compared(tmp_path):
    table = cases(60)
    write_table(table, tmp_path / "t.csv")
    for name, ignore in (("a", "case,line"), ("b", "case,line,size")):
        for target in (["-t", "weighs"], ["--labels", "broken,late"]):
            path = tmp_path / f"{name}{target[-1][:3]}.lw"
            given = ["--ignore", f"{ignore},finding,site", "--kernel", "linear", "-o", path]
            assert spoken("fit", tmp_path / "t.csv", *target, *given)[0] == DONE
    assert answered("compare", tmp_path / "awei.lw", tmp_path / "bwei.lw", tmp_path / "t.csv")["scores"]["rmse"][
        "better"
    ] == ("first")
    found = answered("compare", tmp_path / "abro.lw", tmp_path / "bbro.lw", tmp_path / "t.csv")["scores"]
    evaluated = answered("evaluate", tmp_path / "abro.lw", tmp_path / "t.csv")
    assert found["log_loss"]["first"] == pytest.approx(evaluated["log_loss"])
    assert found["error"]["first"] == pytest.approx(1 - evaluated["accuracy"])
    code, _, err = spoken("compare", tmp_path / "abro.lw", tmp_path / "awei.lw", tmp_path / "t.csv")
    assert code == DATA
    assert "the kind of target of the first is labels, of the second numbers" in err


def test_groups_are_drawn_together():
    table = cases(120).without(["weighs", "broken", "late", "line", "site", "case"])
    person = np.repeat(np.arange(12), 10)
    table = Table({**table.columns, "person": person})
    models = [TableModel("finding", group="person", kernel=kernel).fit(table) for kernel in ("linear", "rbf")]
    twice = table.take(np.repeat(np.arange(120), 4))
    found = models[0].compare(models[1], twice)
    assert found["group"] == "person"
    by_row, other = (model.set_params(group=None) for model in models)
    alone = by_row.compare(other, twice)
    assert alone["group"] is None
    widths = [np.diff(one["scores"]["log_loss"]["interval"])[0] for one in (found, alone)]
    assert widths[0] > 1.3 * widths[1]  # rows of a person, repeated or not, are not independent


# ------------------------------------------------------------------------------- drift


def test_no_drift_in_rows_of_the_same_kind(folder):
    code, out, err = spoken("check", folder / "sites.lw", folder / "new.csv")
    assert code == DONE, out + err
    assert "No drift in 6 checks." in out
    assert answered("check", folder / "sites.lw", folder / "old.csv")["drift"] == []


def test_drift_is_found_and_has_an_exit_code(folder, tmp_path):
    table = cases(240, 2).without(["weighs", "broken", "late", "finding"])
    size = table["size"].copy()
    size[:60] += 50
    line = table["line"].copy()
    line[60:120] = "east"
    site = np.where(np.arange(240) < 100, "site 9", table["site"]).astype(object)
    write_table(Table({**table.columns, "size": size, "line": line, "site": site, "extra": size}), tmp_path / "n.csv")
    code, out, err = spoken("check", folder / "sites.lw", tmp_path / "n.csv")
    assert code == DRIFT
    assert "Columns that the model does not use: extra." in err
    shown = {line.split()[1]: line for line in out.splitlines()[2:-2]}
    assert "24.6% of the rows are outside the range of training" in shown["size"]
    assert "25.0% of the rows have values that did not occur in training (east)" in shown["line"]
    assert "41.7% of the rows belong to tasks that did not occur in training (site 9)" in shown["site"]
    assert "have a novelty p-value of at most 0.05; 5% are expected" in shown["novelty"]
    assert re.search(r"fault [\d.]+% predicted, [\d.]+% in training", shown["finding"])
    assert [name for name, text in shown.items() if " drift " in text] == ["size", "line", "site", "novelty"]
    code, out, _ = spoken("check", folder / "sites.lw", tmp_path / "n.csv", "--json", "--tolerance", "0.9")
    assert code == DONE, out
    code, out, _ = spoken("check", folder / "sites.lw", tmp_path / "n.csv", "--json")
    assert code == DRIFT
    assert '"error"' not in out


def test_missing_and_unreadable_columns_are_drift(folder, tmp_path):
    table = cases(60, 2).without(["line", "finding"])
    shade = table["shade"].astype(str).astype(object)
    shade[7] = "dark"
    write_table(Table({**table.columns, "shade": shade}), tmp_path / "n.csv")
    code, out, err = spoken("check", folder / "plain.lw", tmp_path / "n.csv")
    assert code == DRIFT
    assert re.search(r"^column +line +- +drift +the column is missing$", out, re.M)
    assert 'line 9, column "shade": "dark" is not a number.' in out
    assert "The table cannot be predicted" in err


def test_predicted_numbers_and_labels_are_checked(tmp_path):
    table = cases(120)
    write_table(table, tmp_path / "t.csv")
    shifted = Table({**table.columns, "shade": table["shade"] + 1.5})
    write_table(shifted, tmp_path / "n.csv")
    given = ["--ignore", "case,finding,site,line", "--kernel", "linear"]
    for target, name in ((["-t", "weighs"], "weighs"), (["--labels", "broken,late"], "late")):
        assert spoken("fit", tmp_path / "t.csv", *target, *given)[0] == DONE
        assert spoken("check", tmp_path / "t.lw", tmp_path / "t.csv")[0] == DONE
        code, out, _ = spoken("check", tmp_path / "t.lw", tmp_path / "n.csv")
        assert code == DRIFT
        assert re.search(rf"^Drift in .*\b{name}\.$", out, re.M)


def test_false_alarms_are_rare():
    """Tables from one distribution: at a level of 1 %, hardly any alarm."""
    model = TableModel("finding", ignore=["case"], kernel="linear").fit(
        cases(240).without(["weighs", "broken", "late"])
    )
    alarms = [bool(model.check_drift(cases(80, seed), tolerance=0.0)["drift"]) for seed in range(1, 41)]
    assert np.mean(alarms) <= 0.05
    with pytest.raises(TableError, match="no rows to check"):
        model.check_drift(cases(10).take(np.arange(0)))


# ------------------------------------------------------------------- reports on new rows


@pytest.mark.parametrize("name", ["sites", "plain"])
def test_a_report_on_new_rows(folder, tmp_path, name):
    pytest.importorskip("jinja2")
    given = ["report", folder / f"{name}.lw", folder / "new.csv", "-o", tmp_path / "r.html"]
    assert answered(*given)["rows"] == 240
    page = (tmp_path / "r.html").read_text()
    assert "line of new.csv" in page
    assert "Compared with the held-out training rows" in page
    assert ">north<" not in re.sub(r'<section id="columns".*?</section>', "", page, flags=re.S)
    assert spoken(*given, "--show-rows")[0] == DONE
    assert '"north"' in (tmp_path / "r.html").read_text()


def test_a_report_on_numbers_and_labels(tmp_path):
    pytest.importorskip("jinja2")
    write_table(cases(60), tmp_path / "t.csv")
    write_table(cases(40, 1), tmp_path / "n.csv")
    for target in (["-t", "weighs"], ["--labels", "broken,late"]):
        given = ["--ignore", "case,finding,site,line", "--kernel", "linear"]
        assert spoken("fit", tmp_path / "t.csv", *target, *given)[0] == DONE
        report = ["report", tmp_path / "t.lw", tmp_path / "n.csv", "-o", tmp_path / "r.html"]
        assert answered(*report)["rows"] == 40
    code, _, err = spoken("report", tmp_path / "t.lw", tmp_path / "n.csv", "-o", tmp_path / "n.csv")
    assert code == USAGE
    assert "n.csv is an input of this command" in err
