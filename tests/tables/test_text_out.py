"""Text that goes out: spreadsheets, sets of classes, terminals, names in pictures; and Parquet that expands."""

import io

import numpy as np
import pytest

from leastwise import LSPC, TableModel
from leastwise.cli.output import Output, visible
from leastwise.displays._base import fit_names
from leastwise.tables import TableError, read_table, write_table
from leastwise.utils.resources import memory_limit

EVIL = ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1"]
HARMLESS = ["a=b", "-3.5", "+1", "1e-3", "x-y", "", "'=1"]


@pytest.mark.parametrize("delimiter", ["csv", "tsv"])
def test_text_that_a_spreadsheet_would_run_has_an_apostrophe(delimiter):
    cells = np.array([*EVIL, *HARMLESS], dtype=object)
    table = {"=name": cells, "number": -np.arange(len(cells), dtype=float)}
    for formulas in (False, True):
        file = io.BytesIO()
        write_table(table, file, delimiter, formulas=formulas)
        lines = file.getvalue().decode().replace('"', "").replace("\r", "CR").split("\n")
        assert lines[0].startswith("=name" if formulas else "'=name")
        for line, cell in zip(lines[1:], cells, strict=False):
            wanted = cell if formulas or cell not in EVIL else f"'{cell}"
            assert line.startswith(wanted.replace("\r", "CR"))
        assert lines[4].endswith("-3.0")  # numbers stay numbers


def test_a_bar_in_the_name_of_a_class_does_not_divide_it():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "a|b", "c\\"], dtype=object)[np.arange(80) % 4]
    table = {"x": rng.normal(size=80), "z": rng.normal(size=80), "kind": y}
    model = TableModel(target="kind", model=LSPC(sigma=1.0, alpha=0.1), coverage=0.9).fit(table)
    inside = model.model_.predict_set(model.encoder_.transform(table), 0.9)
    names = [name.replace("\\", "\\\\").replace("|", "\\|") for name in model.classes_]
    texts = model.predict_table(table)["set"].tolist()
    assert texts == ["|".join(name for name, here in zip(names, row, strict=True) if here) for row in inside]
    by_set = {}
    for row, text in zip(inside.tolist(), texts, strict=True):
        assert by_set.setdefault(text, row) == row


def test_control_characters_are_shown_and_not_obeyed(capsys):
    name = "\x1b[31mred\x07\x9b2J\u202eabc"
    assert visible(name) == "\\x1b[31mred\\x07\\x9b2J\\u202eabc"
    assert visible("two\nlines\tand ünicode") == "two\nlines\tand ünicode"
    output = Output()
    output.note(name)
    output.warn(name)
    output.print(name)
    output.table(name, [name], [[name]])
    out, err = capsys.readouterr()
    assert "\x1b[31m" not in out + err
    assert "\x9b" not in out + err
    assert (out + err).count("\\x1b[31mred") == 6


def test_dollars_in_names_are_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    (name,) = fit_names(["$x$ and 5$"], 40)
    figure, ax = pyplot.subplots()
    text = ax.set_title(name)
    figure.canvas.draw()
    assert text._preprocess_math(text.get_text()) == ("$x$ and 5$", False)
    pyplot.close(figure)


def test_parquet_that_expands_is_bounded(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"x": np.zeros(4_000_000), "kind": pa.array(["a"] * 4_000_000)}), path)
    assert path.stat().st_size < 100_000
    with memory_limit(64 * 2**20), pytest.raises(TableError, match=r"the decompressed table exceeds 8.* MB"):
        read_table(path)
