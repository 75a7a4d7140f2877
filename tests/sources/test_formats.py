"""One reader per format: streams, tables and data sets give a file the same meaning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leastwise.datasets.single_task import _read_libsvm
from leastwise.sources import StreamError, gather, open_blocks
from leastwise.sources.formats import csv
from leastwise.sources.formats.cells import MISSING, integer, number, quoted, spellings
from leastwise.sources.formats.libsvm import read_libsvm
from leastwise.tables import TableError, read_table
from leastwise.tables.columns import values_of

pytest.importorskip("pyarrow")

#: Cells that both readers take for numbers, in ways that pyarrow knows and does not know.
NUMBERS = st.sampled_from(
    ["1", "-2.5", "+3", ".5", "4.", "1e-3", "1E5", " 7 ", "\t8", '"1,234.5"', '"1,234"', "00012"]
)
WORDS = st.sampled_from(["abc", "1_000", "0x1F", "1 2", "١", "1,5", "--1", "1e", "."])


def write(path, *lines, header="x;y"):
    path.write_text("\n".join([header, *lines, ""]))
    return path


@given(cells=st.lists(NUMBERS, min_size=1, max_size=20))
def test_numbers_are_the_same_in_streams_and_tables(tmp_path_factory, cells):
    path = write(tmp_path_factory.mktemp("cells") / "a.csv", *(f"{cell};a" for cell in cells))
    expected = values_of(read_table(path), "x", "number")
    np.testing.assert_array_equal(gather(open_blocks(path, target="y")).X[:, 0], expected)


@given(word=WORDS, before=st.integers(25, 40))
def test_wrong_cells_are_the_same_in_streams_and_tables(tmp_path_factory, word, before):
    lines = [f"{k}.5;a" for k in range(before)] + [f"{word};a", "1.5;a"]
    path = write(tmp_path_factory.mktemp("cells") / "a.csv", *lines)
    expected = rf'a\.csv, line {before + 2}, column "x": .* is not a number'
    with pytest.raises(TableError, match=expected):
        values_of(read_table(path, decimal="."), "x", "number")
    seen = []
    with pytest.raises(StreamError, match=expected) as caught:
        seen.extend(open_blocks(path, target="y"))
    assert sum(map(len, seen)) == before
    assert caught.value.rows == (before, before)


@pytest.mark.parametrize("cell", ["", " ", "NA", "n/a", " NaN ", "NULL", "None", "?", "-"])
def test_missing_values_are_the_same_in_streams_and_tables(tmp_path, cell):
    path = write(tmp_path / "a.csv", "1;0;u", f"2;{cell};{cell}", "3;1;v", header="x;y;z")
    np.testing.assert_array_equal(values_of(read_table(path), "y", "number"), [0, np.nan, 1])
    y = gather(open_blocks(path, target=["y"], features=["x"])).y
    np.testing.assert_array_equal(y, [[0], [np.nan], [1]])
    with pytest.raises(StreamError, match=r"line 3: the target is None, but every row needs one"):
        list(open_blocks(path, target="z", features=["x"]))
    np.testing.assert_array_equal(gather(open_blocks(path, target="x", features=["y"])).X, [[0], [np.nan], [1]])


def test_decimal_commas_in_streams(tmp_path):
    path = write(tmp_path / "a.csv", "1,5;u", "-2,25;v", "1.234,5;u", "1.234;w")
    np.testing.assert_array_equal(gather(open_blocks(path, target="y")).X[:, 0], [1.5, -2.25, 1234.5, 1234])


def test_booleans_and_classes_in_streams(tmp_path):
    path = write(tmp_path / "a.csv", "yes;Yes;true", "NO;no;false", "yes; Yes ;true", header=" x ;y;z")
    found = gather(open_blocks(path, target="y", features=["x", "z"]))
    np.testing.assert_array_equal(found.X, [[1, 1], [0, 0], [1, 1]])
    assert found.y.tolist() == ["Yes", "no", "Yes"], "classes are as written, without spaces"
    assert gather(open_blocks(path, target="z", features=["x"])).y.tolist() == [True, False, True]


def test_rows_that_pyarrow_does_not_read_come_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(csv, "BATCH_ROWS", 7)
    path = write(tmp_path / "a.csv", *(f"+{k};{k}" for k in range(50)))
    found = list(open_blocks(path, target="y", block_rows=20))
    assert [len(block) for block in found] == [20, 20, 10]
    np.testing.assert_array_equal(gather(found).X[:, 0], np.arange(50))
    assert gather(found).y.tolist() == list(range(50))


def test_a_row_of_another_width_than_the_header_everywhere(tmp_path):
    path = write(tmp_path / "a.csv", "1;2;3", "4;5;6")
    with pytest.raises(StreamError, match=r"line 2: 3 cells, but the header has 2"):
        list(open_blocks(path, features=["x"]))


def test_integers_of_64_bits_are_exact():
    assert integer("9223372036854775807") == 2**63 - 1
    assert integer("-1,234") == -1234
    assert [integer(text) for text in ("9223372036854775808", "1.0", "1_0", "", "9" * 5000)] == [None] * 5
    assert number("9" * 400) == np.inf


def test_spellings_and_quotes():
    assert {word.lower() for word in spellings(MISSING)} == MISSING
    assert {"NaN", "nAn", "N/a"} <= set(spellings(MISSING))
    assert quoted("a\udcff" + "b" * 100) == '"a\\udcff' + "b" * 58 + '"'


def test_libsvm_of_tables_and_data_sets(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:0.5 3:2 # note\n\n-1 2:1e-3\n")
    table, part = read_table(tmp_path / "a.svm"), _read_libsvm(tmp_path / "a.svm", 4, np.float64)
    np.testing.assert_array_equal(part.X[:, :3], np.column_stack([table[f"x{j}"] for j in (1, 2, 3)]))
    np.testing.assert_array_equal(part.X[:, 3], 0)
    assert part.y.tolist() == [1, -1]
    for text in ("1 0:2\n", "1 5:2\n", "1 1:x\n"):
        (tmp_path / "a.svm").write_text(text)
        with pytest.raises(ValueError, match=r"a\.svm"):
            _read_libsvm(tmp_path / "a.svm", 4, np.float64)
    assert read_libsvm(["1 1:inf 2:1,234"], "a").values.toarray().tolist() == [[0, np.inf, 1234]]
