"""Small files that would unpack to large tables, and workbooks that Excel would not write: an error."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from leastwise.tables import TableError, read_table
from leastwise.utils.resources import memory_limit

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
WORKBOOK = (
    f'<workbook {MAIN} xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>'
    '<sheet name="a" r:id="r1"/></sheets></workbook>'
)
RELATIONS = '<Relationships><Relationship Id="r1" Target="worksheets/sheet1.xml"/></Relationships>'
SHEET = "xl/worksheets/sheet1.xml"
HEAD = '<row r="1"><c r="A1" t="str"><v>a</v></c><c r="B1" t="str"><v>b</v></c></row>'
STYLES = f'<styleSheet {MAIN}><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>'
TEXTS = f"<sst {MAIN}><si><t>one</t></si></sst>"


def workbook(rows, before="", compression=zipfile.ZIP_DEFLATED, size=None, flag=0):
    """A workbook with one sheet; ``size`` is what its directory claims for the sheet."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as book:
        book.writestr("xl/workbook.xml", WORKBOOK)
        book.writestr("xl/_rels/workbook.xml.rels", RELATIONS)
        book.writestr("xl/styles.xml", STYLES)
        book.writestr("xl/sharedStrings.xml", TEXTS)
        book.writestr(SHEET, f"{before}<worksheet {MAIN}><sheetData>{rows}</sheetData></worksheet>")
    data = bytearray(file.getvalue())
    entry = data.rfind(SHEET.encode()) - 46
    data[entry + 8] |= flag
    if size is not None:
        data[entry + 24 : entry + 28] = size.to_bytes(4, "little")
    return bytes(data)


def row(cells, number=2):
    return f'{HEAD}<row r="{number}">{cells}</row>'


ATTRIBUTES = " ".join(f"a{k}='1'" for k in range(200_000))
WORKBOOKS = {
    "a sheet that unpacks to more than its directory says": (lambda: workbook(" " * 10**8, size=5000), "CRC"),
    "a method that unpacks without a limit": (
        lambda: workbook(" " * 10**6, compression=zipfile.ZIP_BZIP2),
        "compressed in a way that Excel does not use",
    ),
    "an encrypted part": (lambda: workbook(row('<c r="A2"><v>1</v></c>'), flag=1), "the workbook is encrypted"),
    "many cells": (lambda: workbook(row("<c/>" * 10**6)), "too many cells for the free memory"),
    "many attributes": (
        lambda: workbook(row(f"<c {ATTRIBUTES}/>")),
        "too many cells for the free memory",
    ),
    "a wide sheet of few cells": (
        lambda: workbook('<row r="1"><c r="XFD1"><v>1</v></c></row>' + '<row><c r="A2"><v>1</v></c></row>' * 2000),
        "2000 rows and 16384 columns take 250 MB",
    ),
    "a column beyond the last one": (lambda: workbook(row('<c r="XFE2"><v>1</v></c>')), "beyond the last column"),
    "a column far beyond the last one": (
        lambda: workbook(row('<c r="ZZZZZZZZ2"><v>1</v></c>')),
        "beyond the last column",
    ),
    "entities": (lambda: workbook(row("<c/>"), before='<!DOCTYPE x [<!ENTITY a "b">]>'), "declares a document type"),
    "a text that is not there": (lambda: workbook(row('<c r="A2" t="s"><v>-1</v></c>')), "no text -1"),
    "a text beyond the last one": (
        lambda: workbook(row('<c r="A2" t="s"><v>7</v></c>')),
        "not a readable Excel workbook",
    ),
    "a row without a number": (lambda: workbook(row("<c/>", number="x")), "not a readable Excel workbook"),
    "no XML": (lambda: workbook("<"), "not a readable Excel workbook"),
}


@pytest.mark.parametrize("name", WORKBOOKS)
def test_workbooks_that_excel_would_not_write(name):
    make, match = WORKBOOKS[name]
    data = make()
    tracemalloc.start()
    try:
        with memory_limit(2**27), pytest.raises(TableError, match=rf"<stream>.*{match}"):
            read_table(io.BytesIO(data), format="xlsx")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 2**26


def test_damaged_workbooks_give_a_table_or_an_error():
    """One byte of each stretch of the file is replaced."""
    whole = workbook(row('<c r="A2"><v>1</v></c><c r="B2" t="s"><v>0</v></c>'))
    assert read_table(io.BytesIO(whole), format="xlsx").rows() == [{"a": "1", "b": "one"}]
    seen = set()
    for at in range(0, len(whole), 3):
        data = bytearray(whole)
        data[at] ^= 0x55
        try:
            seen.add(len(read_table(io.BytesIO(bytes(data)), format="xlsx")))
        except TableError:
            seen.add("refused")
    assert seen == {1, "refused"}


@pytest.mark.parametrize("value", ["1e300", "inf", "9e9"])
def test_a_date_that_does_not_exist_stays_a_number(value):
    cells = f'<c r="A2" s="1"><v>{value}</v></c><c r="B2" s="1"><v>45000</v></c>'
    found = read_table(io.BytesIO(workbook(row(cells))), format="xlsx").rows()
    assert found == [{"a": value, "b": "2023-03-15"}]


def test_sparse_rows_of_an_arff_file_stand_for_many_cells():
    attributes = "".join(f"@attribute a{j} numeric\n" for j in range(2000))
    text = f"@relation r\n{attributes}@data\n" + "{0 1}\n" * 3000
    with memory_limit(2**26), pytest.raises(TableError, match=r"line 3\d\d\d: .* of 2000 attributes exceed 16.*MB"):
        read_table(io.StringIO(text), format="arff")
    with memory_limit(2**30):
        assert len(read_table(io.StringIO(text), format="arff")) == 3000


def arrow_file(table, format):
    file = io.BytesIO()
    if format == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, file)
    else:
        pa = pytest.importorskip("pyarrow")
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(file, table.schema, options=options) as writer:
            for batch in table.to_batches(max_chunksize=20_000):
                writer.write_batch(batch)
    return file.getvalue()


@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.parametrize("kind", ["zeros", "nothing", "long text"])
def test_arrow_tables_that_expand(kind, format):
    pa = pytest.importorskip("pyarrow")
    n = 1_000_000
    column = {
        "zeros": lambda: pa.array(np.zeros(n)),
        "nothing": lambda: pa.nulls(n),
        "long text": lambda: pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, "i4")), pa.array(["x" * 1000])),
    }[kind]()
    data = arrow_file(pa.table({"a": column}), format)
    assert len(data) < 200_000
    with memory_limit(2**25), pytest.raises(TableError, match=r"the decompressed table exceeds 4.* MB"):
        read_table(io.BytesIO(data), format=format)


# ------------------------------------------------------------ nesting, paths, and long text in messages

DEEP = "<a>" * 100_000 + "</a>" * 100_000


def with_part(name, text):
    """The workbook with one of its parts replaced."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(workbook(row('<c r="A2"><v>1</v></c>')))) as book,
        zipfile.ZipFile(file, "w") as new,
    ):
        for part in book.namelist():
            new.writestr(part, text if part == name else book.read(part))
    return file.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        lambda: workbook(row(f'<c r="A2">{DEEP}<v>1</v></c>')),
        lambda: with_part("xl/sharedStrings.xml", f"<sst {MAIN}>{DEEP}</sst>"),
        lambda: with_part("xl/styles.xml", f"<styleSheet {MAIN}>{DEEP}</styleSheet>"),
    ],
    ids=["cell", "texts", "styles"],
)
def test_elements_nested_100_000_times_are_passed_over(data, tmp_path):
    path = tmp_path / "deep.xlsx"
    path.write_bytes(data())
    table = read_table(path)
    assert (len(table), table["a"][0]) == (1, "1") or table["a"][0] == 1


def test_a_workbook_names_no_file_outside_of_itself(tmp_path):
    (tmp_path / "secret.xml").write_text(f"<worksheet {MAIN}><sheetData>{row('<c/>')}</sheetData></worksheet>")
    for target in ("../../../secret.xml", str(tmp_path / "secret.xml"), "file:///etc/passwd"):
        path = tmp_path / "t.xlsx"
        path.write_bytes(with_part("xl/_rels/workbook.xml.rels", RELATIONS.replace("worksheets/sheet1.xml", target)))
        with pytest.raises(TableError, match="not a readable Excel workbook"):
            read_table(path)


LONG_TEXTS = {
    "type.arff": b"@relation x\n@attribute a {" + b"'" * 500_000 + b"\n@data\n",
    "name.arff": b"@relation x\n@attribute " + b"n" * 500_000 + b" kind\n@data\n",
    "twice.arff": b"@relation x\n" + 2 * (b"@attribute " + b"n" * 100_000 + b" real\n") + b"@data\n1,2\n",
    "word.arff": b"@relation x\n" + b"w" * 500_000 + b"\n",
    "index.arff": b"@relation x\n@attribute a real\n@data\n{" + b"9" * 1000 + b" 1}\n",
    "label.libsvm": b"x" * 500_000 + b":1\n",
    "index.libsvm": b"1 " + b"9" * 500_000 + b":1\n",
}


@pytest.mark.parametrize("name", LONG_TEXTS)
def test_messages_do_not_repeat_long_text(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(LONG_TEXTS[name])
    with pytest.raises(ValueError) as caught:
        read_table(path)
    assert len(str(caught.value).replace(str(path), "")) < 500
