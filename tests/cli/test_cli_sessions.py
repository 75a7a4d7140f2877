"""Sessions at the command line on the tables that people have: what a new user types, and what they are told."""

import io
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")

from cli_cases import answered, cases, spoken

from leastwise import LSPC, load, save
from leastwise.cli.output import DATA, DONE, SYSTEM
from leastwise.report.data import report_data
from leastwise.tables import Table, read_table, write_table


def small(n=60, seed=0):
    """Three columns and two classes, quick to fit."""
    return cases(n, seed).without(["weighs", "broken", "late", "line", "case", "site"])


def columns_shown(err):
    """Kind and note of every column in the table that ``fit`` prints first."""
    lines = err[err.index("Columns\n") :].splitlines()[2:]
    lines = lines[: next(i for i, line in enumerate(lines) if line.startswith("Target"))]
    found = [re.fullmatch(r"(.+?)  +(\w+) +\d+ +\d+ +\d+ *(.*)", line) for line in lines]
    return {match[1]: (match[2], match[3]) for match in found}


# ------------------------------------------------------------------ repeated options


def test_repeated_options_add_up(tmp_path):
    write_table(cases(60).without(["weighs", "broken", "late"]), tmp_path / "t.csv")
    again = ["--ignore", "case", "--ignore", "line,shade", "--ignore", "case"]
    code, _, err = spoken("fit", tmp_path / "t.csv", "-t", "finding", *again)
    assert code == DONE, err
    kinds = {name: kind for name, (kind, _) in columns_shown(err).items()}
    assert kinds == {"case": "ignore", "site": "category", "size": "number", "shade": "ignore", "line": "ignore"}
    _, out, _ = spoken("predict", tmp_path / "t.lw", tmp_path / "t.csv", "--keep", "case", "--keep", "site,line")
    assert out.startswith("case,site,line,row,prediction,")


def test_names_of_columns_may_contain_commas(tmp_path):
    table = small()
    renamed = {"size": "size, cm", "shade": "shade", "finding": "finding"}
    write_table(Table({new: table[old] for old, new in renamed.items()}), tmp_path / "t.csv")
    code, _, err = spoken("fit", tmp_path / "t.csv", "-t", "finding", "--ignore", "size, cm")
    assert code == DONE, err
    assert columns_shown(err) == {"size, cm": ("ignore", "as specified"), "shade": ("number", "")}
    kept = ["--keep", "size, cm", "--keep", "shade"]
    _, out, _ = spoken("predict", tmp_path / "t.lw", tmp_path / "t.csv", *kept)
    assert out.startswith('"size, cm",shade,row,prediction,')
    code, _, err = spoken("fit", tmp_path / "t.csv", "-t", "finding", "--ignore", "shade,hue")
    assert code == DATA
    assert "the column 'hue', which the table does not have" in err


def test_labels_can_be_repeated(tmp_path):
    write_table(cases(60).without(["finding", "weighs", "case"]), tmp_path / "l.csv")
    assert answered("fit", tmp_path / "l.csv", "--labels", "broken", "--labels", "late")["target"] == [
        "broken",
        "late",
    ]


# ------------------------------------------------------------------------------ ids


def with_ids(n=60):
    """A table with an index of pandas and ids of all sorts; n is not a multiple of 7."""
    rng, table = np.random.default_rng(1), small(n)
    shuffled = rng.permutation(n)
    return {
        "__index_level_0__": shuffled,
        "Unnamed: 0": shuffled * 3,
        "mrn": [f"{i:06d}" for i in shuffled * 37],
        "PatientID": shuffled * 11 + 500,
        "event": [str(2**53 + 1 + i) for i in shuffled],
        "area": [f"{i % 7:02d}" for i in range(n)],
        "dose": shuffled * 5,
        "id": np.arange(n) % 7,
        **table.columns,
    }


def test_ids_and_indices_are_ignored_and_said(tmp_path):
    write_table(with_ids(), tmp_path / "t.csv")
    code, _, err = spoken("fit", tmp_path / "t.csv", "-t", "finding")
    assert code == DONE, err
    assert columns_shown(err) == {
        "__index_level_0__": ("ignore", "the index of a pandas frame"),
        "Unnamed: 0": ("ignore", "the index of a pandas frame"),
        "mrn": ("ignore", "leading zeros, 60 distinct values in 60 rows: ids"),
        "PatientID": ("ignore", "a different integer in every row, and the name of an id"),
        "event": ("ignore", "integers of more than 15 digits, 60 distinct values in 60 rows: ids"),
        "area": ("category", "leading zeros: codes"),  # repeated codes are categories
        "dose": ("number", ""),  # distinct integers, but not by its name an id
        "id": ("number", ""),  # repeated
        "size": ("number", ""),
        "shade": ("number", ""),
    }


def test_ids_become_numbers_on_request(tmp_path):
    write_table(with_ids(), tmp_path / "t.csv")
    given = [text for name in ("mrn", "PatientID", "event", "area") for text in ("--column", f"{name}=number")]
    code, _, err = spoken("fit", tmp_path / "t.csv", "-t", "finding", *given)
    assert code == DONE, err
    shown = columns_shown(err)
    assert all(shown[name] == ("number", "as specified") for name in ("mrn", "PatientID", "event", "area"))
    features = load(tmp_path / "t.lw").summary()["features"]
    assert features[:6] == ["mrn", "PatientID", "event", "area", "dose", "id"]


def test_integers_of_64_bits_are_ids_in_frames_too(tmp_path):
    pytest.importorskip("pyarrow")
    table = {"event": 2**60 + np.arange(60)[::-1] * 8, **small().columns}
    write_table(table, tmp_path / "t.parquet")
    answer = answered("fit", tmp_path / "t.parquet", "-t", "finding")
    assert answer["columns"][0]["note"] == "integers of more than 15 digits, 60 distinct values in 60 rows: ids"
    assert 'Column "event" is not used' in " ".join(answer["notes"])


def test_the_index_that_pandas_writes_has_no_name(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(small().columns)
    frame.sample(frac=1, random_state=0).to_csv(tmp_path / "t.csv")
    code, _, err = spoken("fit", tmp_path / "t.csv", "-t", "finding")
    assert code == DONE, err
    assert columns_shown(err)["unnamed_1"] == ("ignore", "a different integer in every row, and the name of an id")


def test_classes_with_leading_zeros_stay_as_written(tmp_path):
    table = small()
    codes = np.where(table["finding"] == "fault", "007", "12").astype(object)
    write_table(Table({**table.columns, "finding": codes}), tmp_path / "t.csv")
    assert answered("fit", tmp_path / "t.csv", "-t", "finding")["classes"] == ["007", "12"]
    _, out, _ = spoken("predict", tmp_path / "t.lw", tmp_path / "t.csv")
    assert set(read_table(io.StringIO(out))["prediction"]) == {"007", "12"}


# ------------------------------------------------------------------ nothing decided


def test_a_limit_that_cannot_be_kept_is_said_everywhere(tmp_path):
    write_table(small(), tmp_path / "t.csv")
    code, out, err = spoken("fit", tmp_path / "t.csv", "-t", "finding", "--max-error", "0.01")
    assert code == DONE
    assert re.search(r"^accepts +nothing: the limit cannot be guaranteed", out, re.M)
    assert "label" not in out
    assert "nan" not in out
    limit = re.search(r"The smallest limit that they can guarantee is --max-error ([\d.]+), which", err)[1]
    _, _, err = spoken("predict", tmp_path / "t.lw", tmp_path / "t.csv")
    assert "60 rows, none of them accepted: all are left for review." in err
    _, out, _ = spoken("evaluate", tmp_path / "t.lw", tmp_path / "t.csv")
    assert re.search(r"^error among accepted +-$", out, re.M)
    assert re.search(r"^accepts +nothing", spoken("inspect", tmp_path / "t.lw")[1], re.M)

    code, out, err = spoken("fit", tmp_path / "t.csv", "-t", "finding", "--max-error", limit)
    assert "cannot be guaranteed" not in err
    assert re.search(r"^held-out accepted +[\d.]+% of the rows", out, re.M)
    again = str(round(float(limit) - 0.01, 2))  # one step less cannot be kept, and has the same proposal
    _, _, err = spoken("fit", tmp_path / "t.csv", "-t", "finding", "--max-error", again)
    assert f"is --max-error {limit}, which" in err


def test_labels_without_a_decision_are_counted(tmp_path):
    table = cases(60).without(["finding", "weighs", "case"])
    write_table(table, tmp_path / "l.csv")
    given = ["fit", tmp_path / "l.csv", "--labels", "broken,late", "--max-error"]
    _, out, _ = spoken(*given, "0.01")
    assert re.search(r"^accepts +nothing: the limit", out, re.M)
    table.columns["broken"][:] = np.random.default_rng(0).permutation(table["broken"])
    write_table(table, tmp_path / "l.csv")
    _, out, _ = spoken(*given, "0.2")
    assert re.search(r"^accepts +by a threshold for each label; nothing for 1 of 2 labels$", out, re.M)


# --------------------------------------------------------------- one calibration error


def test_all_places_have_one_calibration_error(tmp_path):
    """What fit prints, what is stored, what the report shows; always with an interval."""
    write_table(cases(200).without(["weighs", "broken", "late", "case"]), tmp_path / "t.csv")
    code, out, err = spoken("fit", tmp_path / "t.csv", "-t", "finding", "--task", "site", "--group", "shade")
    assert code == DONE, err
    model = load(tmp_path / "t.lw")
    m = report_data(model)["measures"]
    for name, title in (("ece", "calibration error (ECE)"), ("classwise_ece", "classwise ECE")):
        heldout = model.heldout_
        assert m[name]["value"] == pytest.approx(heldout[name], rel=1e-4, abs=1e-9)
        assert [m[name]["low"], m[name]["high"]] == pytest.approx(heldout[f"{name}_interval"], rel=1e-4, abs=1e-9)
        shown = re.search(rf"^held-out {re.escape(title)} +(\S+) \(95 % interval (\S+) to (\S+)\)$", out, re.M)
        ends = heldout[f"{name}_interval"]
        assert [float(text) for text in shown.groups()] == pytest.approx([heldout[name], *ends], rel=1e-3, abs=1e-9)
        assert float(shown[3]) > 0
        _, evaluated, _ = spoken("evaluate", tmp_path / "t.lw", tmp_path / "t.csv")
        assert re.search(rf"^{re.escape(title)} +\S+ \(95 % interval \S+ to \S+\)$", evaluated, re.M)


# ------------------------------------------------------------------------ unseen sites


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """A model of sites with leading zeros, and new rows of known, misspelt and unseen sites."""
    folder = tmp_path_factory.mktemp("sites")
    for name, ids in (("known", ["000", "001", "Ward A"]), ("new", ["000", "0", " ward a ", "17", "", "001"])):
        table = cases(60, len(ids)).without(["weighs", "broken", "late", "case", "line"])
        site = np.array([ids[i % len(ids)] for i in range(60)], dtype=object)
        write_table(Table({**table.columns, "site": site}), folder / f"{name}.csv")
    code, _, err = spoken("fit", folder / "known.csv", "-t", "finding", "--task", "site", "-o", folder / "m.lw")
    assert code == DONE, err
    return folder


def test_rows_of_unseen_sites_are_marked(sites):
    code, out, err = spoken("predict", sites / "m.lw", sites / "new.csv", "--keep", "site")
    assert code == DONE
    said = read_table(io.StringIO(out))
    assert said.names[-3:] == ["in_domain", "novelty", "known_task"]
    expected = ["true" if site in ("000", "001") else "false" for site in said["site"]]
    assert said["known_task"].tolist() == expected
    novelty = said["novelty"].astype(float)
    assert ((novelty > 0) & (novelty <= 1)).all()
    assert '"0" (training has "000"), "ward a" (training has "Ward A").' in err
    assert err.count("warning:") == 1
    assert '40 rows belong to tasks that did not occur in training: "0", "ward a", "17", "(missing)".' in err


def test_strict_refuses_unseen_sites(sites, tmp_path):
    for command, more in (("predict", ["-o", tmp_path / "o.csv"]), ("evaluate", [])):
        code, out, err = spoken(command, sites / "m.lw", sites / "new.csv", "--strict", *more)
        assert (code, out) == (DATA, "")
        assert 'line 3, column "site": the task "0" did not occur in training (did you mean "000"?).' in err
    assert not (tmp_path / "o.csv").exists()
    assert spoken("predict", sites / "m.lw", sites / "known.csv", "--strict")[0] == DONE


def test_novelty_is_small_for_rows_unlike_those_of_training(tmp_path):
    table = small()
    write_table(table, tmp_path / "t.csv")
    assert spoken("fit", tmp_path / "t.csv", "-t", "shade", "--ignore", "finding")[0] == DONE
    write_table({"size": [0.1, 90.0]}, tmp_path / "new.csv")
    _, out, _ = spoken("predict", tmp_path / "t.lw", tmp_path / "new.csv")
    said = read_table(io.StringIO(out))
    assert said.names == ["row", "prediction", "interval_lower", "interval_upper", "novelty"]
    near, far = said["novelty"].astype(float)
    assert near > 0.1
    assert far == pytest.approx(1 / 61, abs=1e-6)


# ------------------------------------------------------------- training rows in files


def test_reports_show_no_training_row_unless_asked(tmp_path):
    table = small()
    secret = np.array([f"person{i:03d}x" for i in range(60)], dtype=object)
    marked = np.array([f"kind{'abc'[i % 3]}z" for i in range(60)], dtype=object)
    marked[:4] = "kinddz"  # too rare to be named
    dose = np.random.default_rng(5).uniform(100, 200, 60).round(5)
    columns = {"name": secret, "comment": secret, "sort": marked, "dose": dose, **table.columns}
    write_table(Table(columns), tmp_path / "t.csv")
    given = ["fit", tmp_path / "t.csv", "-t", "finding", "--ignore", "name", "--report", tmp_path / "r.html"]
    assert spoken(*given)[0] == DONE
    page = (tmp_path / "r.html").read_text()
    assert "line of t.csv" in page
    columns = re.search(r'<section id="columns".*?</section>', page, re.S)[0]
    assert set(re.findall(r"kind[abcd]z", columns)) == {"kindaz", "kindbz", "kindcz"}
    page = page.replace(columns, "")  # which names categories of many rows, but no row
    assert not re.search(r"person\d{3}x|kind[abcd]z", page)
    assert not any(f"{value:.5g}" in page for value in dose)
    assert spoken(*given, "--show-rows")[0] == DONE
    page = (tmp_path / "r.html").read_text()
    assert re.search(r"kind[abc]z", page.replace(columns, ""))
    assert not re.search(r"person\d{3}x", page)  # neither the column to ignore nor the one that was found to be text


def test_inspect_counts_the_training_rows_of_a_file(tmp_path):
    write_table(small(), tmp_path / "t.csv")
    assert spoken("fit", tmp_path / "t.csv", "-t", "finding")[0] == DONE
    assert answered("inspect", tmp_path / "t.lw")["file"]["training_rows"] == 60
    assert re.search(r"^training rows in the file +60$", spoken("inspect", tmp_path / "t.lw")[1], re.M)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    model = LSPC(n_centers=10, centers="kmeans", random_state=0).fit(X, X[:, 0] > 0)
    for keep, expected in (("all", 80), ("predict", 0)):
        save(model, tmp_path / "k.lw", keep=keep)
        told = answered("inspect", tmp_path / "k.lw")["file"]
        assert (told["training_rows"], told["means_of_rows"]) == (expected, 10)
    assert "0, and 10 means of rows (the mean of a single row is that row)" in spoken("inspect", tmp_path / "k.lw")[1]


# --------------------------------------------------------------------------- messages


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_device_is_named(tmp_path):
    write_table(small(), tmp_path / "t.csv")
    assert spoken("fit", tmp_path / "t.csv", "-t", "finding")[0] == DONE
    given = ["predict", tmp_path / "t.lw", tmp_path / "t.csv", "-o", "/dev/full", "--output-format", "csv"]
    code, _, err = spoken(*given)
    assert code == SYSTEM
    assert "/dev/full" in err.splitlines()[-1]
    code, _, err = spoken("report", tmp_path / "t.lw", "-o", "/dev/full")
    assert code == SYSTEM
    assert err.splitlines()[-1] == "leastwise: /dev/full: No space left on device"


def test_a_class_with_one_row_is_warned_about(tmp_path):
    table = small()
    table.columns["finding"][0] = "odd"
    write_table(table, tmp_path / "t.csv")
    code, _, err = spoken("fit", tmp_path / "t.csv", "-t", "finding")
    assert code == DONE
    assert 'warning: Column "finding": class "odd" has a single row.' in err
    assert err.count("a single row") == 1


def test_files_of_windows_are_read(tmp_path):
    table = small()
    priced = Table({"cost in €": table["size"], **table.columns})
    write_table(priced, tmp_path / "u.csv")
    (tmp_path / "t.csv").write_bytes((tmp_path / "u.csv").read_text(encoding="utf-8").encode("cp1252"))
    code, _, err = spoken("fit", tmp_path / "t.csv", "-t", "finding")
    assert code == DONE
    assert "byte 0x80 is not UTF-8; the file is read as cp1252." in err
    assert "cost in €" in columns_shown(err)
