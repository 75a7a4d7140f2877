"""Sessions of a new user with messy tables, one for each thing that they expect; see also ``test_cli_sessions``."""

from __future__ import annotations

import re

import numpy as np
import pytest
from cli_cases import answered, spoken

from leastwise.tables import Table, read_table, write_table

DATA, USAGE = 3, 2


def rare(n, seed=0):
    """One row in ten is a fault; two columns, three sites, and a score from 0 to 10."""
    rng = np.random.default_rng(seed)
    size, shade = rng.normal(size=n), rng.normal(size=n)
    fault = size + 0.5 * rng.normal(size=n) > 1.4
    pain = np.clip(5 + 3 * size + rng.normal(size=n) * (1 + shade**2) / 2, 0, 10)
    return Table.of(
        {
            "size": np.round(size, 4),
            "shade": np.round(shade, 4),
            "site": np.array([f"site {k}" for k in rng.integers(3, size=n)], dtype=object),
            "pain": np.round(pain, 2),
            "late": np.where(shade > 0, "yes", "no").astype(object),
            "broken": np.where(fault, "Y", "N").astype(object),
            "finding": np.where(fault, "fault", "fine").astype(object),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("first")
    write_table(rare(600), where / "known.csv")
    write_table(rare(900, 1), where / "later.csv")
    return where


# ----------------------------------------------------------- a limit that cannot be kept


def test_the_suggested_limit_is_the_smallest_whatever_was_asked_for(folder, tmp_path):
    table = rare(120, 3)
    table.columns["finding"][:6] = "fine"
    write_table(table, tmp_path / "few.csv")
    given = [
        "fit",
        tmp_path / "few.csv",
        "--target",
        "finding",
        "--kernel",
        "rbf",
        "--ignore",
        "broken,late,pain,site",
    ]
    named = []
    for limit in ("0.005", "0.01", "0.02"):
        warned = answered(*given, "--max-error", limit)["warnings"]
        named += [re.search(r"smallest limit that they can guarantee is --max-error ([\d.]+)", " ".join(warned))[1]]
    assert len(set(named)) == 1
    assert answered(*given, "--max-error", named[0])["decisions"]["coverage"] > 0
    below = f"{float(named[0]) - 0.001:.3f}"
    assert not answered(*given, "--max-error", below)["decisions"]["coverage"]


# ---------------------------------------------------------------------- bounded numbers


def test_intervals_stay_on_the_scale(folder, tmp_path):
    given = ["fit", folder / "known.csv", "--target", "pain", "--ignore", "finding,broken,late", "--kernel", "rbf"]
    model, out = tmp_path / "pain.lw", tmp_path / "pain.csv"
    assert answered(*given, "--bounds", "0", "10", "-o", model)["kind"] == "numbers"
    answered("predict", model, folder / "later.csv", "-o", out)
    made = read_table(str(out))
    lower, upper = (np.array(made[name], dtype=float) for name in ("interval_lower", "interval_upper"))
    assert lower.min() == 0
    assert upper.max() == 10
    assert np.ptp((upper - lower)[(lower > 0) & (upper < 10)]) > 0.5  # widths differ
    code, _, err = spoken(*given, "--bounds", "10", "0", "-o", model)
    assert code == USAGE
    assert "--bounds 10 0: the first must be below the second" in err
    code, _, err = spoken(*given, "--bounds", "3", "10", "-o", model)
    assert code == DATA
    assert "is outside of the bounds, 3 and 10" in err
    code, _, err = spoken("fit", folder / "known.csv", "--target", "finding", "--bounds", "0", "1")
    assert code == DATA
    assert "--bounds is for numbers" in err


def test_coverage_of_intervals_is_shown_by_site(folder, tmp_path):
    model = tmp_path / "pain.lw"
    answered("fit", folder / "known.csv", "--target", "pain", "--task", "site", "--kernel", "rbf", "-o", model)
    _, out, _ = spoken("evaluate", model, folder / "later.csv")
    assert re.search(r"^task +rows +RMSE +R2 +coverage of the intervals$", out, re.M)
    assert len(re.findall(r"^site \d +\d+ ", out, re.M)) == 3


# ------------------------------------------------------------------ limits of rare classes


def test_a_limit_for_a_rare_class(folder, tmp_path):
    given = ["fit", folder / "known.csv", "--target", "finding", "--ignore", "broken,late,pain,site"]
    given += ["--kernel", "rbf", "--max-error", "0.06"]
    plain, careful = tmp_path / "plain.lw", tmp_path / "careful.lw"
    answered(*given, "-o", plain)
    _, out, _ = spoken(*given, "--max-miss", "fault=0.15", "-o", careful, "--report", tmp_path / "r.html")
    assert re.search(
        r"^misses of fault +at most \d+\.\d\d% of its rows: another class is accepted only where the probability of "
        r"fault is below",
        out,
        re.M,
    )
    misses = answered("evaluate", careful, folder / "later.csv")["misses"]
    assert list(misses) == ["fault"]
    assert misses["fault"]["missed"] <= 0.15 == misses["fault"]["limit"]
    _, out, _ = spoken("evaluate", careful, folder / "later.csv")
    assert re.search(r"^class +rows +missed +limit\nfault ", out, re.M)
    page = (tmp_path / "r.html").read_text()
    assert "Missed rows: accepted as another class" in page
    assert "max_miss of fault=0.15" in page
    missed = []
    for model in (plain, careful):
        answered("predict", model, folder / "later.csv", "--keep", "finding", "-o", tmp_path / "p.csv")
        made = read_table(str(tmp_path / "p.csv"))
        true, decided = made["finding"] == "fault", made["decision"]
        missed.append(np.mean(decided[true] == "fine"))
    assert missed[1] == pytest.approx(misses["fault"]["missed"])
    assert missed[1] < missed[0]


def test_limits_of_classes_that_are_numbers_and_of_labels(folder, tmp_path):
    table = rare(500)
    table.columns["code"] = np.where(table["finding"] == "fault", 1, 0)
    write_table(table.without(["broken", "late", "pain", "finding", "site"]), tmp_path / "codes.csv")
    found = answered("fit", tmp_path / "codes.csv", "--target", "code", "--kernel", "rbf", "--max-miss", "1=0.2")
    assert found["decisions"]["misses"]["1"]["limit"] == 0.2
    found = answered(
        "fit",
        folder / "known.csv",
        "--labels",
        "broken,late",
        "--ignore",
        "finding,pain,site",
        "--max-miss",
        "broken=0.2",
    )
    assert list(found["decisions"]["misses"]) == ["broken"]


def test_a_limit_of_a_class_that_cannot_be_kept(folder):
    given = [
        "fit",
        folder / "known.csv",
        "--target",
        "finding",
        "--ignore",
        "broken,late,pain,site",
        "--kernel",
        "rbf",
    ]
    _, out, err = spoken(*given, "--max-miss", "fault=0.001")
    assert re.search(r"warning: --max-miss fault=0\.001 cannot be guaranteed with \d+ held-out rows of 'fault'", err)
    assert re.search(
        r"^misses of fault +none: rows are accepted as fault only, since a limit of 0.001 cannot", out, re.M
    )
    code, _, err = spoken(*given, "--max-miss", "faulty=0.1")
    assert code == DATA
    assert "--max-miss names 'faulty'; the classes are ['fault', 'fine']." in err
    for bad, message in (("fault", "expected NAME=NUMBER"), ("fault=2", "must be between 0 and 1")):
        code, _, err = spoken(*given, "--max-miss", bad)
        assert code == USAGE
        assert message in err


# -------------------------------------------------------------------------- random numbers


def test_the_seed_decides_on_the_centres(folder, tmp_path):
    given = ["fit", folder / "known.csv", "--target", "finding", "--ignore", "broken,late,pain,site"]
    given += ["--centers", "20", "--kernel", "rbf"]
    scores = [answered(*given, "--seed", seed, "-o", tmp_path / "s.lw")["heldout"]["log_loss"] for seed in "001"]
    assert scores[0] == scores[1] != scores[2]


# ----------------------------------------------------------------------- names of labels


def test_warnings_name_labels(tmp_path):
    table = rare(100)
    table.columns["always"] = np.ones(100, dtype=int)
    write_table(table, tmp_path / "l.csv")
    _, _, err = spoken(
        "fit",
        tmp_path / "l.csv",
        "--labels",
        "broken,always",
        "--ignore",
        "finding,late,pain,site",
        "--max-error",
        "0.001",
    )
    assert "one class only among their known values: always" in err
    assert "held-out rows of label 'broken'" in err


# -------------------------------------------------------------- baselines and columns


def test_a_baseline_stands_beside_every_fit(folder, tmp_path):
    ignored = ["--ignore", "broken,late,pain,site", "--kernel", "rbf", "-o", tmp_path / "b.lw"]
    found = answered("fit", folder / "known.csv", "--target", "finding", *ignored, "--report", tmp_path / "b.html")
    assert found["baselines"]["linear"]["loss"] < found["baselines"]["constant"]["loss"]
    _, out, err = spoken("fit", folder / "known.csv", "--target", "finding", *ignored)
    assert re.search(
        r"^held-out log-loss, class shares +0\.\d+\nheld-out log-loss, logistic regression +0\.", out, re.M
    )
    said = r"On held-out rows the model is (no better|worse) than logistic regression: log-loss"
    assert re.search(said, err)
    assert re.search(r"It takes [\d.]+ m?s; this fit took [\d.]+ s\.", err)
    page = (tmp_path / "b.html").read_text()
    assert "Compared with simple models, on 600 held-out rows" in page
    assert re.search(said, page)
    ignored[1] = "broken,late,finding,site"
    _, out, _ = spoken("fit", folder / "known.csv", "--target", "pain", *ignored)
    assert re.search(r"^held-out RMSE, mean +\d\.\d+\nheld-out RMSE, ridge regression +\d", out, re.M)


def test_the_report_has_the_effects_of_columns(folder, tmp_path):
    given = ["fit", folder / "known.csv", "--target", "finding", "--ignore", "broken,late,pain", "--kernel", "rbf"]
    found = answered(*given, "-o", tmp_path / "e.lw", "--report", tmp_path / "e.html")
    assert next(iter(found["effects"]["importance"])) == "size"
    page = (tmp_path / "e.html").read_text()
    assert page.count('id="effect') == 2 * 3  # title and description of a chart for each column
    assert "Mean prediction against size" in page
    assert re.search(r"<bdi>size</bdi>: mean probability of <bdi>f", page)
    cells = {f"{v:g}" for v in np.array(rare(600)["size"], dtype=float)}
    shown = {f"{v:g}" for line in found["effects"]["lines"] if line["kind"] == "number" for v in line["at"]}
    assert len(shown & cells) <= 2  # evenly spaced values, which a cell may equal by chance


def test_dates_have_the_parts_that_matter(tmp_path):
    rng = np.random.default_rng(0)
    when = np.datetime64("2021-03-01") + rng.integers(0, 900, 400)
    weekend = (when.astype("datetime64[D]").astype(int) + 3) % 7 >= 5
    late = weekend ^ (rng.random(400) < 0.05)
    table = {"when": when.astype(str), "size": rng.normal(size=400), "late": np.where(late, "yes", "no")}
    write_table(Table.of(table), tmp_path / "d.csv")
    found = answered("fit", tmp_path / "d.csv", "--target", "late", "--kernel", "rbf", "-o", tmp_path / "d.lw")
    assert found["columns"][0]["note"] == "read as days since 1970-01-01; weekday too"
    assert found["heldout"]["accuracy"] > 0.9
    new = Table.of({"when": ["2023-06-03", "2023-06-05"], "size": [0.0, 0.0]})  # a Saturday and a Monday
    write_table(new, tmp_path / "new.csv")
    answered("predict", tmp_path / "d.lw", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    p = np.array(read_table(str(tmp_path / "out.csv"))["p_yes"], dtype=float)
    assert p[0] > 0.8 > 0.2 > p[1]


# ------------------------------------------------------------------ hints and refusals


def test_numbers_that_mark_missing_values_are_named(folder, tmp_path):
    table = rare(200)
    table.columns["dose"] = np.where(np.arange(200) % 20 == 0, -999.0, np.abs(table["size"]))
    table.columns["phone"] = np.random.default_rng(0).permutation(200) + 5_550_000
    write_table(table.without(["broken", "late", "pain", "site"]), tmp_path / "m.csv")
    given = ["fit", tmp_path / "m.csv", "--target", "finding", "--kernel", "rbf"]
    _, _, err = spoken(*given)
    assert re.search(
        r"^dose +number +0 .*-999 in 10 rows: if it marks missing values, add --missing -999$", err, re.M
    )
    assert re.search(r"^phone +ignore .* a different integer in every row, and the name of an id$", err, re.M)
    _, _, err = spoken(*given, "--missing", "-999")
    assert re.search(r"^dose +number +10 +\d+ +1$", err, re.M)


def test_a_task_needs_several_rows(folder, tmp_path):
    table = rare(120)
    table.columns["case"] = np.array([f"c{k}" for k in range(120)], dtype=object)
    write_table(table, tmp_path / "c.csv")
    given = ["fit", tmp_path / "c.csv", "-t", "finding", "--ignore", "broken,late,pain,site", "--kernel", "rbf"]
    _, _, err = spoken(*given, "--task", "case")
    assert 'warning: Column "case" has 120 tasks in 120 rows. A task needs several rows' in err
    _, _, err = spoken(
        "fit", folder / "known.csv", "-t", "pain", "--task", "site", "--kernel", "rbf", "--centers", "9"
    )
    assert "A task needs several rows" not in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kernel", "precomputed"], "--kernel precomputed: use one of laplace, linear, poly, rbf, sigmoid, a sum"),
        (["--kernel", "rbf+cubic"], "rbf+cubic"),
        (["--show-rows"], "--show-rows shows columns in the report: add --report FILE."),
        (["--threshold", "0.3"], "--threshold is for --labels alone"),
        (["--by-task"], "--by-task gives every task its own threshold or calibration: it needs --task"),
        (["--max-error", "0.1", "--cost", "0.1"], "--max-error and --cost exclude each other"),
        (["--similarity", "learned"], "--similarity relates tasks or labels: it needs --task or --labels."),
    ],
)
def test_options_that_make_no_sense_are_refused_before_the_table_is_read(options, message):
    code, _, err = spoken("fit", "no such table.csv", "--target", "finding", *options)
    assert code == USAGE
    assert message in err


def test_text_among_numbers_says_what_to_type(tmp_path):
    table = rare(100)
    size = table["size"].astype(str).astype(object)
    size[7] = "large"
    table.columns["size, cm"] = size
    write_table(table, tmp_path / "t.csv")
    _, _, err = spoken("fit", tmp_path / "t.csv", "--target", "finding")
    assert 'add --missing large; or, if these are codes, add --column "size, cm=category".' in err


def test_class_shares_of_new_rows(folder, tmp_path):
    model, out = tmp_path / "s.lw", tmp_path / "s.csv"
    given = ["fit", folder / "known.csv", "--target", "finding", "--ignore", "broken,late,pain,site"]
    answered(*given, "--kernel", "rbf", "-o", model)
    _, _, err = spoken("predict", model, folder / "later.csv", "--class-prior", "estimate", "-o", out)
    assert re.search(r"^Estimated class shares: fault \d+\.\d%, fine \d+\.\d%\.$", err, re.M)
    code, _, err = spoken("predict", model, folder / "later.csv", "--class-prior", "fault=0.2", "-o", out)
    assert code == DATA
    assert "--class-prior has no share of 'fine': give the share of every class, 0 for a class that" in err


def test_effects_of_two_classes_are_those_of_the_rarer_one(folder, tmp_path):
    given = ["fit", folder / "known.csv", "--target", "finding", "--ignore", "broken,late", "--kernel", "rbf"]
    lines = answered(*given, "-o", tmp_path / "e.lw", "--report", tmp_path / "e.html")["effects"]["lines"]
    assert len(lines) > 1
    assert {line["of"] for line in lines} == {"fault"}
    page = (tmp_path / "e.html").read_text()
    assert "leastwise report MODEL TEST.csv" in page
    assert "write_report(" not in page
