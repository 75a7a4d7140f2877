"""Tables from and to files: what is written comes back, and what is broken is named by file, line and column."""

import csv
import gzip
import io
import subprocess
import sys

import numpy as np
import pytest
from call_counts import counted_calls
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

from leastwise.sources.formats.cells import guess_decimal
from leastwise.sources.formats.csv import records, sniff
from leastwise.tables import Table, TableError, read_table, write_table

#: Anything but characters that no file of text has.
CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
#: Marks that have a meaning in such files more often than chance would have it.
MARKED = st.one_of(CELLS, st.text(st.sampled_from(list(',;|\t"\r\n. 1')), max_size=6))


@st.composite
def text_tables(draw):
    names = draw(st.lists(MARKED.map(str.strip).filter(bool), min_size=1, max_size=4, unique=True))
    n = draw(st.integers(1, 5))
    return {name: draw(st.lists(MARKED, min_size=n, max_size=n)) for name in names}


def file_of(tmp_path, content, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def through(table, format, **options):
    stream = io.BytesIO()
    write_table(table, stream, format, formulas=True)
    stream.seek(0)
    return read_table(stream, format=format, **options)


# ----------------------------------------------------------------- round trips


@pytest.mark.parametrize("format", ["csv", "tsv", "parquet", "arrow"])
@settings(deadline=None, max_examples=60)
@given(columns=text_tables())
def test_text_comes_back(format, columns):
    if format in ("parquet", "arrow"):
        pytest.importorskip("pyarrow")
    back = through(columns, format, decimal=".")
    assert back.names == list(columns)
    assert {name: back[name].tolist() for name in back.names} == columns


@settings(deadline=None, max_examples=40)
@given(columns=text_tables())
def test_what_pandas_writes(columns):
    pd = pytest.importorskip("pandas")
    text = pd.DataFrame(columns).to_csv(index=False, quoting=csv.QUOTE_ALL, lineterminator="\n")
    table = read_table(io.StringIO(text, newline=""), delimiter=",")
    assert {name: table[name].tolist() for name in table.names} == columns


@settings(deadline=None, max_examples=40)
@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_numbers_come_back_to_the_last_bit(values):
    back = through({"a": np.array(values), "b": ["x"] * len(values)}, "csv")
    assert [float(cell) for cell in back["a"]] == values


def test_types_come_back_from_parquet_and_arrow(tmp_path):
    pytest.importorskip("pyarrow")
    table = Table.of(
        {
            "size": np.array([1.5, np.nan]),
            "count": np.array([1, 2]),
            "ok": np.array([True, False]),
            "day": np.array(["2024-01-02", "NaT"], dtype="datetime64[us]"),
            "word": ["a", None],
        }
    )
    for name in ("a.parquet", "a.feather", "a.arrow"):
        write_table(table, tmp_path / name)
        back = read_table(tmp_path / name)
        assert [back[c].dtype.kind for c in back.names] == list("fibMO")
        for c in table.names:
            np.testing.assert_array_equal(back[c], table[c])


def test_missing_cells_are_empty_in_text():
    assert through({"a": [None, "x"], "b": [np.nan, 1.5], "c": [True, False]}, "csv")["a"].tolist() == ["", "x"]
    stream = io.StringIO()
    write_table({"a": [None, "x"], "b": [np.nan, 1.5], "c": [True, False]}, stream)
    assert stream.getvalue() == "a,b,c\n,,true\nx,1.5,false\n"


def test_packed_text(tmp_path):
    write_table({"a": ["1", "2"]}, tmp_path / "data.csv.gz")
    assert gzip.decompress((tmp_path / "data.csv.gz").read_bytes()) == b"a\n1\n2\n"
    assert read_table(tmp_path / "data.csv.gz")["a"].tolist() == ["1", "2"]


def test_standard_input_and_output(monkeypatch, capsysbinary):
    class Stdin:
        buffer = io.BytesIO(b"a\tb\n1\t2\n")

    monkeypatch.setattr("sys.stdin", Stdin)
    table = read_table("-", format="tsv")
    assert table.names == ["a", "b"]
    write_table(table, "-")
    assert capsysbinary.readouterr().out == b"a,b\n1,2\n"


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = file_of(tmp_path, "a\n1\n")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_table({"a": ["2"]}, path)
    assert path.read_bytes() == b"a\n1\n"
    assert [p.name for p in tmp_path.iterdir()] == ["data.csv"]


# -------------------------------------------------------------- what is guessed


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(delimiter):
    text = f'a{delimiter}b{delimiter}c\n1{delimiter}"x,;|\t"{delimiter}3\n'
    table = read_table(io.StringIO(text))
    assert table.names == ["a", "b", "c"]
    assert table["b"].tolist() == ["x,;|\t"]


def test_a_delimiter_in_the_rows_only_is_none():
    assert sniff("text\na;b\nc\n", "x") == ","
    assert sniff("a;b\n1,5;2\n2;3\n", "x") == ";"


def test_lines_ends_of_all_systems_and_blank_lines():
    for end in ("\n", "\r\n", "\r"):
        table = read_table(io.BytesIO(f"a,b{end}{end}1,2{end}3,4".encode()))
        assert table["b"].tolist() == ["2", "4"]
        assert table.lines.tolist() == [3, 4]


def test_lines_of_rows_with_line_breaks_in_quotes():
    table = read_table(io.StringIO('a,b\n"x\ny",1\nz,2\n'))
    assert table.lines.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("text", "values", "noted"),
    [
        ("a;b\n1,5;x\n-2,25;y\n", ["1.5", "-2.25"], True),
        ("a;b\n1.234,5;x\n1.234;y\n", ["1234.5", "1234"], True),
        ("a;b\n1.5;x,1\n2.5;y\n", ["1.5", "2.5"], False),
        ('a,b\n"1,5",x\n2,y\n', ["1,5", "2"], False),
    ],
)
def test_decimal_commas(text, values, noted):
    table = read_table(io.StringIO(text))
    assert table["a"].tolist() == values
    assert any("comma" in note for note in table.notes) == noted


def test_the_decimal_mark_may_be_said():
    assert read_table(io.StringIO('a,b\n"1,5",x\n'), decimal=",")["a"].tolist() == ["1.5"]
    assert read_table(io.StringIO("a;b\n1,5;x\n"), decimal=".")["a"].tolist() == ["1,5"]
    assert guess_decimal([cell for r in records("1,5\n", ";", "") for cell in r.cells], ";") == ","


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings_are_found(encoding, tmp_path):
    text = "größe,ort\n" + "1,Zürich in the south\n" * 20
    table = read_table(file_of(tmp_path, text.encode(encoding)))
    assert table.names == ["größe", "ort"]
    assert table["ort"][3] == "Zürich in the south"


def test_latin_1_comes_with_a_warning(tmp_path):
    path = file_of(tmp_path, "größe\n1\n".encode("latin-1"))
    with pytest.warns(UserWarning, match=r"data.csv, line 1: byte 0xf6 is not UTF-8; the file is read as latin-1"):
        assert read_table(path).names == ["größe"]
    assert read_table(path, encoding="latin-1").names == ["größe"]


def test_names_that_are_missing_or_numbers_are_noted():
    table = read_table(io.StringIO(",b\n1,2\n"))
    assert table.names == ["unnamed_1", "b"]
    assert "unnamed_1" in table.notes[0]
    assert "header=False" in read_table(io.StringIO("1,2\n3,4\n")).notes[0]
    table = read_table(io.StringIO("1,2\n3,4\n"), header=False)
    assert table.names == ["column_1", "column_2"]
    assert len(table) == 2


# ------------------------------------------------------------- titles and decimals


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize(
    "title", ["Quality report 2024\n", "Quality report 2024\n\nfor 2 sites\n", "Report{0}{0}\n{0}{0}\n"]
)
def test_names_below_a_title(title, delimiter):
    rows = "".join(
        delimiter.join(row) + "\n" for row in (("size", "line", "finding"), ("1.5", "n", "a"), ("2", "s", "b"))
    )
    table = read_table(io.StringIO(title.format(delimiter) + rows))
    assert table.names == ["size", "line", "finding"]
    assert table["size"].tolist() == ["1.5", "2"]
    line = title.count("\n") + 1
    assert table.notes == (f"Column names are taken from line {line}; the lines above are a title.",)
    assert table.line_numbers().tolist() == [line + 1, line + 2]


def test_one_name_above_numbers_is_no_title():
    assert read_table(io.StringIO("size\n1\n2\n")).names == ["size"]
    with pytest.raises(TableError, match="line 2: 2 cells, but the header has 1"):
        read_table(io.StringIO("size\n1,2\n3,4\n"))  # no row of names below


def test_a_column_with_decimal_commas_beside_others_with_points():
    rows = "".join(f"{k},5;{k}.25;{k}.125;x\n" for k in range(1, 9))
    table = read_table(io.StringIO("age;size;weight;line\n" + rows))
    assert table["age"].tolist()[:2] == ["1.5", "2.5"]
    assert table["size"].tolist()[:2] == ["1.25", "2.25"]
    assert table["weight"].tolist()[:2] == ["1.125", "2.125"]
    assert table.notes == ('Column "age" has decimal commas: 1,5 is read as 1.5.',)
    thousands = read_table(io.StringIO("a;b;c\n" + "".join(f"1,{k}00;{k}.5;{k}.5\n" for k in range(1, 9))))
    assert thousands["a"].tolist()[0] == "1,100"  # a number as it is
    assert not thousands.notes
    kept = read_table(io.StringIO("age;size;weight\n1,5;2.5;3.5\n"), decimal=".")
    assert kept["age"].tolist() == ["1,5"]


# --------------------------------------------------------------- broken files

WIDE = ",".join("abcdef") + "\n" + "1,2,3,4,5,6\n" * 15 + "1,2,3,4,5\n"
BROKEN = {
    "ragged": (WIDE, ", line 17: 5 cells, but the header has 6."),
    "too many cells": ("a,b\n1,2\n1,2,3\n", ", line 3: 3 cells, but the header has 2."),
    "duplicate": ("a,b,a\n1,2,3\n", ', line 1: columns 1 and 3 are both named "a": rename one.'),
    "empty": ("", ": the file is empty: a line of column names and rows are needed."),
    "blank": ("\n\n\n", ": the file is empty: a line of column names and rows are needed."),
    "header only": ("a,b\n", ": there is a line of column names, but there are no rows."),
    "quote": ('a,b\n1,2\n3,"4\n5,6\n', ', line 3: a quote " is not closed before the end of the file.'),
    "NUL": (
        "a,b\n1,2\n3,\0\n",
        ", line 3: NUL character: this is not a text file, or not in this encoding.",
    ),
    "packed": (gzip.compress(b"a,b\n1,2\n" * 50)[:-20], ": the gzip file is broken"),
    "another format": (b"PAR1....", ": this is a file in parquet format, not text: give format='parquet'."),
    "after a quote": ('a,b\n"1"2,3\n', ", line 2: there are characters after a closing quote"),
    "half UTF-16": ("a,b\n1,2\n".encode("utf-16")[:-1], ", line 2: byte 0x0a is not utf-16-le: give the encoding"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_text_is_named(name, tmp_path):
    content, message = BROKEN[name]
    path = file_of(tmp_path, content)
    with pytest.raises(TableError) as caught:
        read_table(path)
    assert str(caught.value).startswith(f"{path}{message}")


def test_a_huge_cell_is_refused():
    with pytest.raises(TableError, match='line 2: a cell has more than 131,072 characters: is a quote " not closed'):
        read_table(io.StringIO('a,b\n1,"' + "x\n" * 100_000))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: read_table(p / "no.csv"), "no.csv: there is no such file"),
        (lambda p: read_table(p), "the extension '' is not one of"),
        (lambda p: read_table(p / "a.xls"), "the extension '.xls' is not one of"),
        (lambda p: read_table(p / "a.xlsx"), "a.xlsx: there is no such file"),
        (lambda p: read_table(p / "a.csv", format="excel"), "format='excel' is not supported here: use one of"),
        (lambda p: read_table(io.StringIO("a\n1\n"), delimiter="ab"), "delimiter='ab' must be one character"),
        (lambda p: read_table(io.StringIO("a\n1\n"), decimal="'"), 'decimal="\'" is unknown'),
        (lambda p: read_table(io.BytesIO(b"a\n1\n"), encoding="utf-9"), "encoding='utf-9' is unknown"),
        (lambda p: read_table(io.BytesIO(b"a\xff\n1\n"), encoding="ascii"), "line 1: byte 0xff is not ascii"),
        (lambda p: read_table(7), "int is not a file: give a path"),
        (lambda p: write_table({"a": ["1"]}, p / "a.arff"), "the extension '.arff' is not one of"),
        (lambda p: write_table({"a": ["1"]}, p / "no" / "a.csv"), "the file cannot be written"),
        (lambda p: write_table({"a": ["1"], "b": []}, p / "a.csv"), "columns must have equal lengths"),
        (lambda p: write_table(3, p / "a.csv"), "int is not a table"),
    ],
)
def test_wrong_calls_are_named(call, message, tmp_path):
    with pytest.raises(TableError) as caught:
        call(tmp_path)
    assert message in str(caught.value)


@settings(deadline=None, max_examples=200)
@given(data=st.binary(max_size=60))
@pytest.mark.filterwarnings("ignore:.*is not UTF-8")
def test_any_bytes_give_a_table_or_a_clear_error(data):
    refused, table = "", None
    try:
        table = read_table(io.BytesIO(data))
    except TableError as error:
        refused = str(error)
    assert refused.startswith(("<stream>: ", "<stream>, line ")) if table is None else len(table) > 0


def test_a_hundred_thousand_columns_take_a_few_calls_per_cell():
    text = ",".join(f"c{j}" for j in range(100_000)) + "\n" + ("1," * 99_999 + "2\n") * 3
    table, calls = counted_calls(lambda: read_table(io.StringIO(text)))
    assert (len(table.names), len(table), table["c99999"].tolist()) == (100_000, 3, ["2"] * 3)
    assert calls < 20 * 300_000


def test_broken_binary_files_are_named(tmp_path):
    pytest.importorskip("pyarrow")
    for name in ("a.parquet", "a.arrow"):
        path = file_of(tmp_path, b"something else", name)
        with pytest.raises(TableError, match=rf"{name}: not a readable (Parquet|Arrow) file"):
            read_table(path)
        write_table({"a": np.arange(50.0)}, path)
        path.write_bytes(path.read_bytes()[:-30])
        with pytest.raises(TableError, match=name):
            read_table(path)


def test_one_column(tmp_path):
    assert read_table(file_of(tmp_path, "a\n1\n\n2\n"))["a"].tolist() == ["1", "2"]
    with pytest.raises(TableError, match="line 2: 2 cells, but the header has 1"):
        read_table(file_of(tmp_path, "a\n1,5\n2\n"))


@pytest.mark.parametrize("cell", [[1], (1,), {"a": 1}, b"a", 1j, np.ones(2)])
def test_cells_without_a_meaning_are_refused(cell):
    with pytest.raises(TableError, match=f'column "b" contains values of type {type(cell).__name__}'):
        Table.of({"a": ["x", "y"], "b": [None, cell]})


def test_columns_of_lists_are_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(TableError, match='column "b" contains values of type list'):
        Table.of(pa.table({"a": [1], "b": [[1, 2]]}))


# ------------------------------------------------------------- ARFF and libsvm

ARFF = """@relation r
@attribute size numeric
@attribute 'the line' {north, 'far south', 3}
@attribute code {1,2}
@attribute name string
% a comment
@data
1.5, north, 1, 'x y'
?, 'far south', 2, z
{1 3, 3 w}
"""


def test_arff():
    table = read_table(io.StringIO(ARFF), format="arff")
    assert table.names == ["size", "the line", "code", "name"]
    assert table["size"].tolist() == ["1.5", "?", "0"]
    assert table["the line"].tolist() == ["north", "far south", "3"]
    assert table["code"].tolist() == ["1", "2", "1"]
    assert table["name"].tolist() == ["x y", "z", "w"]
    assert table.declared == {"the line": "category", "code": "category"}
    assert table.lines.tolist() == [8, 9, 10]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("?, 'far south', 2, z", "?, 2, z", "line 9: 3 values, but there are 4 attributes."),
        ("{1 3, 3 w}", "{1 3, 9 w}", "line 10: attribute number '9' is not in the range 0 to 3."),
        ("@data\n", "@dada\n", "line 7: found '@dada'; expected @relation, @attribute or @data."),
        ("name string", "size string", "line 5: a second attribute is named 'size'."),
        ("name string", "name relational", "line 5: attribute 'name' has type 'relational'"),
        ("'x y'", "'x y", "line 8: a quote ' is not closed."),
    ],
)
def test_broken_arff_is_named(old, new, message):
    with pytest.raises(TableError) as caught:
        read_table(io.StringIO(ARFF.replace(old, new)), format="arff")
    assert str(caught.value).startswith(f"<stream>, {message}")


def test_libsvm():
    table = read_table(io.StringIO("1 1:0.5 3:2 # note\n\n-1 2:1e-3\n"), format="libsvm")
    assert table.names == ["y", "x1", "x2", "x3"]
    assert table["y"].tolist() == ["1", "-1"]
    np.testing.assert_array_equal(np.column_stack([table[f"x{j}"] for j in (1, 2, 3)]), [[0.5, 0, 2], [0, 1e-3, 0]])
    assert table.lines.tolist() == [1, 3]
    assert table.absent == 0


def test_libsvm_from_scikit_learn(tmp_path, rng):
    """Which counts columns from 0 unless it is told otherwise."""
    X, y = rng.normal(size=(4, 3)).round(3), np.array([0, 1, 1, 0])
    for first in (0, 1):
        dump_svmlight_file(X, y, str(tmp_path / "a.svm"), zero_based=first == 0)
        table = read_table(tmp_path / "a.svm")
        assert table.names == ["y", *(f"x{j + first}" for j in range(3))]
        np.testing.assert_array_equal(np.column_stack([table[name] for name in table.names[1:]]), X)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:2\n1 a:3\n", ", line 2: found 'a:3'; expected an index of 0 or more"),
        ("1 1:x\n", ", line 1: found '1:x'"),
        ("1 1:2 1:3\n", ", line 1: index 1 is given twice."),
        ("1:2\n", ", line 1: the line begins with '1:2' instead of a label."),
        ("", ": the file is empty"),
        ("1 999999999:1\n", ": 1 rows with indices up to 999999999 take"),
        (f"1 {'9' * 5000}:1\n", ", line 1: found"),
    ],
)
def test_broken_libsvm_is_named(text, message):
    with pytest.raises(TableError) as caught:
        read_table(io.StringIO(text), format="libsvm")
    assert str(caught.value).startswith(f"<stream>{message}")


# --------------------------------------------------------------------- frames


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frames = pytest.importorskip(library)
    columns = {"a": [1, 2, None], "b": ["x", None, "y"], "c": [True, None, False], "d": [1, 2, 3]}
    table = Table.of(frames.DataFrame(columns))
    np.testing.assert_array_equal(table["a"], [1, 2, np.nan])
    assert table["b"].tolist() == ["x", None, "y"]
    assert table["c"].tolist() == ["true", None, "false"]
    assert table["d"].tolist() == [1, 2, 3]
    assert Table.of(frames.DataFrame({"a": ["1", "2"]})).declared == {}


def test_categories_of_frames_are_declared():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    assert Table.of(pd.DataFrame({"a": pd.Categorical(["1", "2"])})).declared == {"a": "category"}
    assert Table.of(pl.DataFrame({"a": pl.Series(["1", "2"], dtype=pl.Categorical)})).declared == {"a": "category"}
    assert Table.of(pl.DataFrame({"a": pl.Series(["1"], dtype=pl.Enum(["1"]))})).declared == {"a": "category"}


def test_lists_of_mixed_values():
    table = Table.of({"a": ["x", np.nan, None, 1, True], "b": [1, None, 2.5, np.nan, np.int64(3)]})
    assert table["a"].tolist() == ["x", None, None, "1", "true"]
    np.testing.assert_array_equal(table["b"], [1, np.nan, 2.5, np.nan, 3])


def test_columns_that_are_not_there_are_named():
    table = Table.of({"a": [1], "b": [2]})
    with pytest.raises(TableError, match=r"there is no column 'c'; the columns are \['a', 'b'\]"):
        table["c"]
    assert table.without(["a"]).names == ["b"]
    assert table.take([0]).lines.tolist() == [1]
    assert str(table.take([0]).error(0, "a", "no")) == 'row 1, column "a": no'


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = file_of(tmp_path, b"PAR1", "a.parquet")
    with pytest.raises(ImportError, match=r"This needs pyarrow: install it with  pip install 'leastwise\[frames\]'"):
        read_table(path)


def test_text_needs_the_core_only():
    code = """
import io, sys
class NotThere:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pandas", "polars", "pyarrow"):
            raise ImportError(name)
sys.meta_path.insert(0, NotThere())
from leastwise import LSPC
from leastwise.tables import TableModel, read_table, write_table
table = read_table(io.StringIO("x,y\\n" + "".join(f"{i % 7}.5,{'ab'[i % 7 > 3]}\\n" for i in range(30))))
model = TableModel(target="y", model=LSPC(sigma=1.0, alpha=0.01)).fit(table)
write_table(model.predict_table(table), "-")
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.startswith("row,prediction,p_a,p_b,confidence,set,in_domain,novelty\n1,a,")


def test_a_table_shows_its_first_rows_on_short_lines():
    table = Table.of({f"column {i}": [f"{i}\n{'x' * 50}", None, *map(str, range(98))] for i in range(30)})
    head, names, first, *others, more = repr(table).splitlines()
    assert head == "100 rows, 30 columns"
    assert names.split()[:2] == ["column", "0"]
    assert first.startswith(f"0 {'x' * 27}...  1 x")
    assert max(map(len, [head, names, first, *others, more])) <= 100
    assert len(others) == 4
    assert more == "... 95 more rows and 27 more columns"


def test_small_tables_are_shown_whole():
    lines = repr(Table.of({"size": [1.5, float("nan")], "known": [True, False]})).splitlines()
    assert lines == ["2 rows, 2 columns", "size  known", "1.5   True", "      False"]
    assert repr(Table.of({})) == "0 rows, 0 columns\n"
    assert repr(Table.of({"a": []})) == "0 rows, 1 column\na"


def test_the_name_of_a_file_is_no_table():
    with pytest.raises(TableError, match=r"read_table\('cases\.csv'\)"):
        Table.of("cases.csv")
