"""The command line as a person and as a program use it."""

import contextlib
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")

from cli_cases import answered, cases, spoken

import leastwise
from leastwise import load, save
from leastwise.cli import main
from leastwise.cli.checkpoint import ProgressListener
from leastwise.cli.output import BUG, DATA, DONE, EXTRA, MODEL, SYSTEM, USAGE, Output, show_columns, with_option_names
from leastwise.tables import Table, TableModel, read_table, write_table


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a table, a new one, and a model of classes for three sites."""
    folder = tmp_path_factory.mktemp("made")
    table = cases()
    write_table(table.without(["weighs", "broken", "late"]), folder / "cases.csv")
    write_table(cases(30, 1).without(["weighs", "broken", "late"]), folder / "later.csv")
    write_table(cases(30, 1).without(["weighs", "broken", "late", "finding"]), folder / "new.csv")
    with contextlib.chdir(folder):
        options = ["--task", "site", "--ignore", "case", "--max-error", "0.2", "--report", "report.html"]
        code, out, err = spoken("fit", "cases.csv", "--target", "finding", *options)
    assert code == DONE, err
    (folder / "fit.out").write_text(out)
    (folder / "fit.err").write_text(err)
    return folder


# ------------------------------------------------------------------- the path


def test_fit_shows_columns_before_and_results_after(made):
    out, err = (made / "fit.out").read_text(), (made / "fit.err").read_text()
    lines = err.splitlines()
    assert lines[0] == "Columns"
    assert re.fullmatch(r"line +category +\d+ +3 +1", lines[5])
    assert lines[6:8] == [
        f"Target: finding (classes): fault ({_count(made, 'fault')}), fine ({_count(made, 'fine')})",
        "Training data: 120 rows of 3 tasks",
    ]
    assert re.search(r"MultiTaskLSPC: \w+ kernel, sigma", out)
    assert re.search(r"^tasks +3 \(site\)$", out, re.M)
    assert re.search(r"Written to cases.lw \(\d\.\d\d MB\) after \d+\.\d s\.\nReport: report.html\n$", out)
    assert (made / "report.html").read_text().startswith("<!")
    assert "\x1b" not in out + err  # no colours in pipes
    assert not any(line.endswith(" ") for line in (out + err).splitlines())


def _count(made, name):
    return (read_table(made / "cases.csv")["finding"] == name).sum()


def test_columns_are_shown_before_the_search(made, tmp_path, monkeypatch):
    """A person sees at once that a column was misread."""
    from leastwise.tables import TableModel

    def stop(self, table):
        raise KeyboardInterrupt

    monkeypatch.setattr(TableModel, "fit", stop)
    code, out, err = spoken("fit", made / "cases.csv", "--target", "finding", "-o", tmp_path / "m.lw")
    assert (code, out) == (130, "")
    assert "shade   number" in err
    assert re.search(r"\nTraining data: 120 rows\nPlan: all rows are .* of memory.*\nleastwise: interrupted\n$", err)


def test_predictions_as_text_have_few_digits(made, tmp_path):
    code, out, err = spoken("predict", made / "cases.lw", made / "new.csv", "--keep", "case,site")
    assert code == DONE
    said = read_table(io.StringIO(out))
    assert said.names[:4] == ["case", "site", "row", "prediction"]
    assert re.search(r"^30 rows, \d+\.\d% accepted, \d+\.\d% left for review\.$", err, re.M)
    model = load(made / "cases.lw")
    exact = model.predict_table(read_table(made / "new.csv"))
    for name in ("p_fault", "p_fine", "confidence", "in_domain"):
        assert all(re.fullmatch(r"[01]\.\d{1,6}", cell) for cell in said[name])
        np.testing.assert_allclose(said[name].astype(float), exact[name], atol=5.1e-7)
    assert [cell or None for cell in said["decision"]] == exact["decision"].tolist()
    assert said["set"].tolist() == exact["set"].tolist()

    path = tmp_path / "out.parquet"
    pytest.importorskip("pyarrow")
    assert spoken("predict", made / "cases.lw", made / "new.csv", "-o", path)[0] == DONE
    np.testing.assert_array_equal(read_table(path)["p_fault"], exact["p_fault"])  # not rounded


def test_numbers_have_seven_digits(tmp_path):
    table = cases(60).without(["case", "finding", "broken", "late"])
    table.columns["weighs"][:] *= 1e6
    write_table(table, tmp_path / "n.csv")
    answer = answered("fit", tmp_path / "n.csv", "-t", "weighs")
    assert answer["kind"] == "numbers"
    _, out, _ = spoken("predict", tmp_path / "n.lw", tmp_path / "n.csv", "-q")
    said, exact = read_table(io.StringIO(out)), load(tmp_path / "n.lw").predict_table(table)
    for name in ("prediction", "interval_lower", "interval_upper"):
        np.testing.assert_allclose(said[name].astype(float), exact[name], rtol=5.1e-7)
        assert all(len(re.sub(r"[^0-9]", "", cell.rstrip("0"))) <= 8 for cell in said[name])
    scores = answered("evaluate", tmp_path / "n.lw", tmp_path / "n.csv")
    assert scores["rmse"] < scores["baseline"]["rmse"]


def test_labels(tmp_path):
    table = cases(60)
    table.columns["late"][::7] = None
    write_table(table.without(["finding", "weighs", "case"]), tmp_path / "l.csv")
    code, out, err = spoken("fit", tmp_path / "l.csv", "--labels", "broken, late", "-o", tmp_path / "l.lw")
    assert code == DONE
    assert "Target: 2 labels: broken, late" in err
    assert "2 labels: broken, late" in out
    _, out, _ = spoken("predict", tmp_path / "l.lw", tmp_path / "l.csv")
    assert out.startswith("row,broken,p_broken,set_broken,late,p_late,set_late,in_domain,novelty\n")
    _, out, _ = spoken("evaluate", tmp_path / "l.lw", tmp_path / "l.csv")
    assert re.search(r"^broken +60", out, re.M)


def test_evaluate_and_inspect(made):
    code, out, _ = spoken("evaluate", made / "cases.lw", made / "later.csv")
    assert code == DONE
    assert re.search(r"^log-loss +0\.\d+ +0\.\d+$", out, re.M)
    assert re.search(r"^site 2 +10 ", out, re.M)
    scores = answered("evaluate", made / "cases.lw", made / "later.csv")
    assert scores["rows"] == 30
    assert set(scores["tasks"]) == {"site 0", "site 1", "site 2"}
    assert scores["warnings"] == []
    code, out, _ = spoken("inspect", made / "cases.lw")
    assert re.search(r"^target +finding \(classes\)$", out, re.M)
    assert re.search(r"^case +ignore .* as specified$", out, re.M)
    told = answered("inspect", made / "cases.lw")
    assert told["file"]["model"] == "TableModel"
    assert told["tasks"] == ["site 0", "site 1", "site 2"]


def test_inspect_and_report_have_the_feature_weights_by_name(tmp_path):
    from leastwise import LSPC, save
    from leastwise.tables import TableModel

    rng = np.random.default_rng(0)
    size, noise = rng.normal(size=(2, 120))
    table = {"noise": noise, "size": size, "finding": np.where(size > 0, "fault", "fine")}
    save(TableModel("finding", model=LSPC(metric="diagonal")).fit(table), tmp_path / "table.lw")
    save(LSPC(metric="diagonal").fit(np.c_[noise, size], size > 0), tmp_path / "array.lw")
    for file, name in (("table", "size"), ("array", "column 1")):
        told = answered("inspect", tmp_path / f"{file}.lw")["feature_weights"]
        assert next(iter(told)) == name
        assert told[name] > 2 * min(told.values())
        _, out, _ = spoken("inspect", tmp_path / f"{file}.lw")
        assert re.search(rf"Feature weights\n.*{name} +\d", out, re.S)
    assert answered("report", tmp_path / "table.lw", "-o", tmp_path / "r.html")["report"]
    assert re.search(r"Largest feature weights.{0,60}size \d", (tmp_path / "r.html").read_text(), re.S)


def test_report_and_export(made, tmp_path):
    answer = answered("report", made / "cases.lw", "-o", tmp_path / "r.html", "--title", "Faults & <more>")
    assert "Faults &amp; &lt;more&gt;" in (tmp_path / "r.html").read_text()
    assert answer["report"] == str(tmp_path / "r.html")
    code, _, err = spoken("report", made / "cases.lw", "-o", tmp_path / "no" / "r.html")
    assert code == USAGE
    assert "does not exist" in err
    pytest.importorskip("onnx")
    told = answered("export", made / "cases.lw", "-o", tmp_path / "m.onnx", "--coverage", "0.9")
    assert told["inputs"] == ["size", "shade", "line", "site"]
    assert {"label", "probabilities", "accepted"} <= set(told["outputs"])
    assert (tmp_path / "m.onnx").stat().st_size > 1000
    assert spoken("export", made / "cases.lw", "-o", tmp_path / "m.onnx", "--coverage", "9")[0] == USAGE


def test_demo(tmp_path, monkeypatch):
    """Every command runs; the table is made smaller here."""
    from leastwise.cli import demo

    def small(folder):
        table = cases(90).without(["weighs", "broken", "late"])
        write_table(table, folder / "cases.csv")
        write_table(table, folder / "later.csv")
        write_table(table.without(["finding"]), folder / "new.csv")

    monkeypatch.setattr(demo, "make_files", small)
    code, out, _ = spoken("demo", "--folder", tmp_path / "kept")
    assert code == DONE
    assert out.count("\n$ ") == len(demo.COMMANDS)
    assert {"cases.lw", "decisions.csv", "report.html"} <= set(os.listdir(tmp_path / "kept"))
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == sorted(demo.FILES)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "cases.csv").write_text("mine")
    code, _, err = spoken("demo", "--folder", tmp_path / "mine")
    assert code == USAGE
    assert "already contains cases.csv" in err
    assert (tmp_path / "mine" / "cases.csv").read_text() == "mine"
    assert answered("demo")["exit codes"] == [0] * len(demo.COMMANDS)


def test_reproduce(tmp_path):
    code, _, err = spoken("reproduce", "lspc", "--part", "nonsense")
    assert (code, err) == (
        USAGE,
        "leastwise: --part nonsense: must be one of the parts of lspc: three-classes, figures.\n",
    )
    assert spoken("reproduce", "nonsense")[0] == USAGE


def test_reproduce_finds_the_papers_from_any_directory(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(leastwise.__file__).parents[1])}
    command = [*LEASTWISE, "reproduce", "lspc", "--part", "nonsense"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert "must be one of the parts of lspc" in done.stderr


def test_reproduce_without_a_checkout_says_so(tmp_path):
    """The installed package has no papers beside it."""
    source = Path(leastwise.__file__).parent
    shutil.copytree(source, tmp_path / "leastwise", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [*LEASTWISE, "reproduce", "lspc"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == USAGE
    assert done.stderr.startswith("leastwise: leastwise reproduce runs from a checkout of the project")
    assert "pip install -e ." in done.stderr


def test_reproduce_without_data_says_which_files_to_get(tmp_path, monkeypatch):
    """And runs what stands in for them."""
    monkeypatch.delenv("LEASTWISE_DATA", raising=False)
    options = ["--data", tmp_path, "--output", tmp_path / "out", "--quick"]
    code, out, err = spoken("reproduce", "mtls-svm", *options)
    assert code == DONE, err
    assert "school" in out.lower()
    assert "MTLS-SVM" in out
    assert [file.suffix for file in (tmp_path / "out").iterdir() if "made" in file.name][:1] == [".json"]


# --------------------------------------------------------------------- formats


@pytest.mark.parametrize("ending", ["tsv", "parquet", "arrow", "csv.gz"])
def test_formats_give_the_same_model(ending, made, tmp_path):
    pytest.importorskip("pyarrow")
    table = cases(60).without(["weighs", "broken", "late", "case"])
    write_table(table, tmp_path / "a.csv")
    write_table(table, tmp_path / f"b.{ending}")
    first = answered("fit", tmp_path / "a.csv", "-t", "finding")
    second = answered("fit", tmp_path / f"b.{ending}", "-t", "finding")
    assert Path(second["model_file"]).name == "b.lw"
    for name, value in first["heldout"].items():
        assert second["heldout"][name] == pytest.approx(value), name
    out = tmp_path / f"out.{ending}"
    assert answered("predict", tmp_path / "b.lw", tmp_path / f"b.{ending}", "-o", out)["rows"] == 60
    assert len(read_table(out)) == 60


def test_arff_libsvm_and_options_of_reading(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60).round(3)
    rows = "".join(f"{v},{'u' if v > 0.5 else 'v'},{'p' if v > 0 else 'q'}\n" for v in x)
    (tmp_path / "a.arff").write_text(
        "@relation r\n@attribute 'a b' numeric\n@attribute c {u,v}\n@attribute y {p,q}\n@data\n" + rows
    )
    assert answered("fit", tmp_path / "a.arff", "-t", "y")["features"] == ["a b", "c"]
    (tmp_path / "b.libsvm").write_text("".join(f"{int(v > 0)} 1:{v} 3:1\n" for v in x))
    assert answered("fit", tmp_path / "b.libsvm", "-t", "y")["features"] == ["x1"]
    text = rows.replace(".", ";").replace(",", "|").replace(";", ",").replace("|", "#")
    (tmp_path / "c.dat").write_text(text.replace("p", "é"), "latin-1")
    options = ["--format", "csv", "--delimiter", "#", "--decimal", ",", "--encoding", "latin-1", "--no-header"]
    answer = answered("fit", tmp_path / "c.dat", "-t", "column_3", *options)
    assert answer["classes"] == ["q", "é"]
    assert answer["warnings"] == []


def test_wide_tables_and_strange_names(tmp_path):
    rng = np.random.default_rng(0)
    columns = {f"a long name with [bold]marks[/] and ünïcode ☃ {j}": rng.normal(size=40) for j in range(100)}
    y = np.where(next(iter(columns.values())) > 0, "[red]x", "日本")
    write_table(Table.of({**columns, "y": y}), tmp_path / "w.csv")
    code, out, err = spoken("fit", tmp_path / "w.csv", "-t", "y")
    assert code == DONE
    assert "a long name with [bold]marks[/] and ünïcode ☃ 0 " in err
    assert "... and 40 more columns: 40 number" in err
    assert "[red]x (" in err
    _, out, _ = spoken("predict", tmp_path / "w.lw", tmp_path / "w.csv")
    assert out.startswith("row,prediction,p_[red]x,p_日本,confidence,set,in_domain,novelty\n")


# ---------------------------------------------------------------- for programs


def test_warnings_of_the_library_are_notes(made, tmp_path, monkeypatch):
    import warnings

    from leastwise.tables import TableModel

    predict = TableModel.predict_table

    def warned(self, table, strict, class_prior):
        for _ in range(2):
            warnings.warn("something with encoding= is\n odd", UserWarning, stacklevel=2)
        warnings.warn("not for people", DeprecationWarning, stacklevel=2)
        return predict(self, table, strict, class_prior)

    monkeypatch.setattr(TableModel, "predict_table", warned)
    _, out, err = spoken("predict", made / "cases.lw", made / "new.csv", "-o", tmp_path / "o.csv", "--json")
    assert json.loads(out)["warnings"] == ["something with --encoding is odd"]
    assert err.splitlines()[0] == "warning: something with --encoding is odd"
    assert "people" not in err
    assert ".py" not in err


def test_latin_1_is_a_warning(tmp_path):
    (tmp_path / "l.csv").write_bytes("größe,y\n".encode("latin-1") + b"1,a\n2,b\n3,b\n4,a\n" * 5)
    answer = answered("fit", tmp_path / "l.csv", "-t", "y")
    assert answer["warnings"][0].endswith("Give --encoding if characters look wrong.")


def test_errors_for_programs(made):
    code, out, err = spoken("fit", made / "cases.csv", "-t", "findign", "--json")
    assert json.loads(out) == {"error": err.removeprefix("leastwise: ").strip(), "exit_code": code}
    code, out, _ = spoken("fit", made / "cases.csv", "--nonsense", "--json")
    assert json.loads(out)["exit_code"] == code == USAGE


def test_quiet_says_results_only(made, tmp_path):
    code, out, err = spoken("fit", made / "cases.csv", "-t", "finding", "-o", tmp_path / "m.lw", "--quiet")
    assert (code, err) == (DONE, "")
    assert out.startswith("Model\n")
    assert spoken("predict", tmp_path / "m.lw", made / "new.csv", "-o", tmp_path / "o.csv", "-q") == (DONE, "", "")


# ---------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            "fit cases.csv -t findign",
            DATA,
            "cases.csv: .*'findign', which the table does not have .did you mean 'finding'..; the columns",
        ),
        (
            "fit cases.csv -t finding --task Sites",
            DATA,
            "'Sites', which the table does not have .did you mean 'site'..; the columns are",
        ),
        ("fit cases.csv -t finding --ignore cse", DATA, "--column and --ignore name the column 'cse', .*'case'"),
        ("fit cases.csv", USAGE, "give either --target COLUMN"),
        ("fit cases.csv -t finding --labels a,b", USAGE, "give either --target COLUMN"),
        ("fit cases.csv --labels a,b --task site", USAGE, "--labels cannot be combined with --task or --kind"),
        ("fit absent.csv -t y", SYSTEM, "absent.csv: there is no such file"),
        ("fit . -t y", USAGE, r"\. is a directory; give the name of a file"),
        ("fit report.html -t y", DATA, "report.html: the extension '.html' is not one of .*: give --format, one of"),
        ("fit - -t y", USAGE, "a table from stdin has no file name: give the model file with -o"),
        ("fit cases.csv -t finding -o no/m.lw", USAGE, "no/m.lw: the directory .* does not exist"),
        ("fit cases.csv -t finding --coverage 2", USAGE, "--coverage 2: must be between 0 and 1"),
        ("fit cases.csv -t finding --max-error 0", USAGE, "--max-error 0: must be between 0 and 1"),
        ("fit cases.csv -t finding --centers 0", USAGE, "--centers 0: must be at least 1"),
        ("fit cases.csv -t finding --column size", USAGE, "--column size: expected NAME=KIND"),
        (
            "fit cases.csv -t finding --column size=big",
            USAGE,
            "the kind must be one of number, boolean, date, category",
        ),
        ("fit cases.csv -t finding --column line=number", DATA, 'line 2, column "line": ".*" is not a number'),
        ("fit cases.csv -t size --max-error 0.1", DATA, 'cases.csv: column "size" contains numbers'),
        ("fit cases.csv -t finding --kind nix", USAGE, "'nix' is not one of 'classes', 'numbers'. See leastwise fit"),
        ("fit", USAGE, "Missing argument 'DATA'. See leastwise fit --help"),
        ("fiit cases.csv", USAGE, "No such command 'fiit'"),
        ("predict cases.lw absent.csv", SYSTEM, "absent.csv: there is no such file"),
        ("predict absent.lw new.csv", SYSTEM, "absent.lw: No such file"),
        ("predict cases.csv new.csv", MODEL, "'cases.csv' cannot be read: it is not a leastwise model"),
        (
            "predict cases.lw new.csv -o o.xlsx",
            USAGE,
            "o.xlsx: the extension '.xlsx' .* give --output-format, one of",
        ),
        ("predict cases.lw new.csv -o no/o.csv", USAGE, "no/o.csv: the directory .* does not exist"),
        ("predict cases.lw new.csv --json", USAGE, "write the predictions to a file with -o"),
        ("predict cases.lw new.csv --keep cas", DATA, "new.csv: there is no column 'cas' .did you mean 'case'"),
        ("evaluate cases.lw new.csv", DATA, "new.csv: the evaluation needs the column 'finding'"),
    ],
)
def test_errors_are_one_line(arguments, code, message, made):
    before = sorted(os.listdir(made))
    with contextlib.chdir(made):
        found, out, err = spoken(*arguments.split())
    assert found == code, err
    line = err.splitlines()[-1]
    assert line.startswith("leastwise: ")
    assert re.search(message, line), line
    assert "Traceback" not in err
    assert out == "" or "--json" in arguments
    assert sorted(os.listdir(made)) == before


def test_a_place_that_cannot_be_written_is_told_before_the_search(made, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    code, _, err = spoken("fit", made / "cases.csv", "-t", "finding", "-o", made / "m.lw")
    assert (code, err) == (SYSTEM, f"leastwise: {made / 'm.lw'}: the directory is not writable\n")


def test_a_bug_is_told_as_one(made, monkeypatch):
    from leastwise.tables import TableModel

    monkeypatch.setattr(TableModel, "evaluate", lambda self, table: {}["nothing"])
    code, _, err = spoken("evaluate", made / "cases.lw", made / "later.csv")
    assert code == BUG
    assert err.startswith("Traceback")
    assert err.endswith("This is a bug in leastwise; please report it.\n")


def test_missing_libraries_name_the_extra(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (made / "x.parquet").write_bytes(b"PAR1")
    code, _, err = spoken("predict", made / "cases.lw", made / "x.parquet")
    (made / "x.parquet").unlink()
    assert code == EXTRA
    assert "pip install 'leastwise[" in err
    monkeypatch.setitem(sys.modules, "typer", None)
    code, _, err = spoken("--help")
    assert (code, err) == (EXTRA, "leastwise: the command line needs typer: pip install 'leastwise[cli]'\n")


def test_csv_needs_no_library_for_frames(made, tmp_path):
    """As in an environment with typer and rich, but without the rest."""
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pandas", "polars", "pyarrow", "matplotlib", "onnx"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from leastwise.cli import main
table, new = sys.argv[1:]
print(main(["fit", table, "-t", "finding", "-o", "m.lw", "--report", "r.html", "-q"]), file=sys.stderr)
print(main(["predict", "m.lw", new, "-q"]), main(["export", "m.lw", "-o", "m.onnx"]), file=sys.stderr)
"""
    command = [sys.executable, "-c", code, str(made / "cases.csv"), str(made / "new.csv")]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, cwd=tmp_path, check=True)
    first, second, third = done.stderr.splitlines()
    assert (first, third) == ("0", f"0 {EXTRA}")
    assert "pip install 'leastwise[onnx]'" in second
    assert (tmp_path / "r.html").exists()


def test_a_model_without_columns_is_refused(tmp_path, made):
    from leastwise import LSPC, save

    save(LSPC(sigma=1.0, alpha=0.1).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]), tmp_path / "m.lw")
    code, _, err = spoken("predict", tmp_path / "m.lw", made / "new.csv")
    assert code == MODEL
    assert "holds a LSPC, which has no column names" in err
    assert answered("inspect", tmp_path / "m.lw")["file"]["model"] == "LSPC"


def test_parameters_are_options_but_cells_are_not():
    assert (
        with_option_names("give format='parquet', or kinds= and max_error=7")
        == "give --format parquet, or --column and --max-error 7"
    )
    assert with_option_names('"target=3" is no kind="classes"') == '"target=3" is no --kind classes'
    assert with_option_names("if it is data, say header=False.") == "if it is data, say --no-header."


# ------------------------------------------------------- terminals and processes

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
LEASTWISE = [sys.executable, "-m", "leastwise"]


def test_help_is_there_at_once():
    """Nothing heavy is loaded for it."""
    code = (
        "import sys; from leastwise.cli import main; codes = [main(['--help']), main(['fit', '--help']), main([])];"
        "heavy = {'numpy', 'scipy', 'sklearn', 'pandas', 'polars', 'pyarrow', 'matplotlib', 'onnx'};"
        "print(codes, sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=True)
    assert done.stderr == "[0, 0, 0] []\n"
    for command in ("fit", "predict", "evaluate", "inspect", "report", "export", "demo", "reproduce"):
        assert f" {command} " in done.stdout
    assert "130 interrupted" in done.stdout


def test_pipes(made, tmp_path):
    """In by stdin, out by stdout to one who reads two lines only."""
    command = f"{' '.join(LEASTWISE)} predict {made / 'cases.lw'} - --output-format tsv | head -n 2"
    with (made / "new.csv").open() as new:
        done = subprocess.run(command, shell=True, stdin=new, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.stdout.startswith("row\tprediction\tp_fault\t")
    assert done.stdout.count("\n") == 2
    assert re.fullmatch(r"30 rows, \S+ accepted, \S+ left for review\.\n", done.stderr)


def test_gzip_from_stdin(made, tmp_path, monkeypatch):
    data = gzip.compress((made / "cases.csv").read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    answer = answered("fit", "-", "-t", "finding", "-o", tmp_path / "m.lw")
    assert answer["rows"] == 120


def test_a_reader_that_has_enough_is_no_error(made):
    """As `| head` with more output than a pipe holds."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [*LEASTWISE, "predict", str(made / "cases.lw"), str(made / "new.csv"), "--quiet"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("columns", [40, 100])
def test_progress_on_a_terminal(columns, made, tmp_path, monkeypatch):
    """Spinner, time, step and the best so far; no line is wider than the terminal."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with Output().spinner("looking") as spinner:
        listener = ProgressListener(spinner)
        for number, score in enumerate([-0.5, -0.3, -0.4]):
            step, entry = _step(number, score)
            assert listener.load(step) is None
            listener.save(step, entry)
        spinner.progress.refresh()
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())
    assert "0:00:00 step 3, 1,000 rows" in text
    assert max(len(line) for line in re.split(r"[\r\n]+", text)) <= columns
    if columns == 100:
        assert "best so far: sigma 1: best alpha 0.1, log_loss 0.3" in text


def _step(number, score):
    from types import SimpleNamespace

    from leastwise.model_selection.checkpoint import CheckpointEntry, SearchStep

    step = SearchStep(f"{number:032x}", number, 1.0, None, 1000, "3 alphas")
    line = f"sigma 1: best alpha 0.1, log_loss {-score} (1000 rows, 0.01 s)"
    return step, CheckpointEntry(step, SimpleNamespace(score=score), [], line)


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals of POSIX")
def test_a_fit_on_a_real_terminal(made, tmp_path):
    """The line of progress is there while it runs; what goes to a pipe knows nothing of it."""
    import pty

    slow = (
        "import sys, time; from leastwise.model_selection.search import Search; quick = Search._at\n"
        "Search._at = lambda *a, **k: (time.sleep(0.15), quick(*a, **k))[1]\n"
        "from leastwise.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    fit = ["fit", str(made / "cases.csv"), "-t", "finding", "-o", str(tmp_path / "m.lw")]
    ours, theirs = pty.openpty()
    environment = {**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-c", slow, *fit], stdout=subprocess.PIPE, stderr=theirs, text=True, env=environment
    )
    os.close(theirs)
    screen = b""
    with contextlib.suppress(OSError):  # the terminal is gone when the process is
        while piece := os.read(ours, 65536):
            screen += piece
    os.close(ours)
    out = process.stdout.read()
    process.stdout.close()
    assert process.wait() == DONE
    text = screen.decode()
    assert re.search(r"\d:\d\d:\d\d.*step \d+, 120 rows; best so far: sigma [\d.]+[^:]*: best alpha", text)
    assert text.index("Columns") < text.index("step 1")
    assert "\x1b" not in out
    assert out.startswith("Model\n")


def test_long_names_on_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    names = ["size", "a name of many, many words that goes on and on 1"]
    show_columns(Output(), [{"column": n, "kind": "number", "missing": 0, "note": ""} for n in names], stderr=True)
    assert re.search(r"^size +number", screen.getvalue(), re.M)
    assert re.search(r"^a name of …on and on 1  number", screen.getvalue(), re.M)


def test_no_colour_where_it_is_not_wanted(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    Output().table("Title", ["name", "value"], [["[a]", 1.5], ["b", None]])
    assert "\x1b[3" not in screen.getvalue()  # bold is no colour
    assert "[a]" in screen.getvalue()


@pytest.mark.parametrize(
    "line",
    [
        "fit cases.csv --target finding -o cases.csv",
        "fit cases.csv --target finding --report cases.csv",
        "fit cases.csv --target finding -o m.lw --report m.lw",
        "fit cases.csv --target finding -o link.csv",
        "predict cases.lw new.csv -o new.csv",
        "predict cases.lw new.csv -o cases.lw --output-format csv",
        "report cases.lw -o cases.lw",
        "export cases.lw -o cases.lw",
    ],
)
def test_what_is_read_is_not_written_over(line, made, tmp_path):
    for name in ("cases.csv", "new.csv", "cases.lw"):
        (tmp_path / name).write_bytes((made / name).read_bytes())
    (tmp_path / "link.csv").symlink_to(tmp_path / "cases.csv")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with contextlib.chdir(tmp_path):
        code, _, err = spoken(*line.split())
    assert code == USAGE, err
    assert "another" in err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_own_row_numbers_and_ids_are_kept_as_they_are(tmp_path):
    pytest.importorskip("pyarrow")
    table = cases(60)
    own = {"row": np.arange(60) * 7, "place": np.arange(60) + 0.123456789}
    table = Table({**own, **table.without(["case", "weighs", "finding"]).columns})
    model = TableModel(labels=["broken", "late"], id="place", ignore=["row"]).fit(table)
    save(model, tmp_path / "m.lw")
    write_table(table, tmp_path / "t.parquet")
    code, out, err = spoken("predict", tmp_path / "m.lw", tmp_path / "t.parquet", "--keep", "place,row")
    assert code == DONE, err
    said = read_table(io.StringIO(out))
    assert said.names[:3] == ["place", "row", "broken"]
    assert said["row"].astype(int).tolist() == own["row"].tolist()
    assert said["place"].astype(float).tolist() == own["place"].tolist()
    save(TableModel("broken", ignore=["row", "place", "late"]).fit(table), tmp_path / "m.lw")
    code, out, err = spoken("predict", tmp_path / "m.lw", tmp_path / "t.parquet", "--keep", "row")
    assert (code, read_table(io.StringIO(out))["row"].astype(int).tolist()) == (DONE, own["row"].tolist()), err


def test_quiet_does_not_hide_that_everything_is_rejected(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = [f"{x:.3f},{'a' if rng.random() < 0.5 else 'b'}" for x in rng.normal(size=60)]
    (tmp_path / "coins.csv").write_text("\n".join(["x,y", *rows]))
    assert main(["fit", str(tmp_path / "coins.csv"), "-t", "y", "--max-error", "0.01", "--quiet"]) == 0
    assert "warning: " in capsys.readouterr().err


def test_keep_all_leaves_out_what_the_predictions_are_called(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    rows = [f"{a:.3f},{int(a > 0)},{int(a < 1)}" for a in x]
    file = tmp_path / "labels.csv"
    file.write_text("\n".join(["x,hot,wet", *rows]))
    assert main(["fit", str(file), "--labels", "hot,wet", "--quiet"]) == 0
    out = tmp_path / "out.csv"
    assert main(["predict", str(file.with_suffix(".lw")), str(file), "--keep", "all", "-o", str(out)]) == 0
    assert (
        "Columns not kept, because the predictions have columns of the same name: hot, wet."
        in capsys.readouterr().err
    )
    assert read_table(out).names[:3] == ["x", "row", "hot"]


def test_inspect_tells_what_a_stream_has_left_in_the_file(tmp_path):
    from leastwise import LSPC, save

    rows, given = [[0.0], [1.0], [2.0], [3.0]], {"centers": [[0.0], [2.0]], "sigma": 1.0, "alpha": 0.1}
    for keep, options in ((4, {}), (0, {"cv": None, "calibration": None})):
        save(LSPC(**given, **options).fit_stream(np.array(rows), [0, 1, 0, 1], keep_rows=keep), tmp_path / "m.lw")
        code, out, _ = spoken("inspect", tmp_path / "m.lw")
        assert code == 0
        assert f"4 rows, 2 centers; {keep} rows stored" in out
