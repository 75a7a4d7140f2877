"""Sessions with messy cells: dates in common formats, words for missing values and for yes and no."""

import io
import os
import re
import subprocess
import sys
import zipfile
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("typer")

from cli_cases import answered, spoken

from leastwise import load
from leastwise.cli.output import DATA, DONE, DRIFT, USAGE
from leastwise.sources.formats.dates import FORMATS, check_format, guess_format, has_day, read_date
from leastwise.tables import TableEncoder, TableError, TableModel, read_table, write_table

RNG = np.random.default_rng(0)
DAYS = np.datetime64("2021-01-01") + RNG.integers(0, 700, 80)
SIZE = RNG.normal(size=80).round(3)
LATE = (np.datetime64("2021-12-20") < DAYS) ^ (SIZE > 1)


def dated(text_of, days=DAYS):
    cells = [text_of(day.astype(object)) for day in days]
    rows = [f'"{a}",{b},{"late" if c else "early"}' for a, b, c in zip(cells, SIZE, LATE, strict=True)]
    return "\n".join(["when,size,finding", *rows]) + "\n"


# ------------------------------------------------------------------------------ dates


#: Formats of single days.
WITH_DAYS = [format for format in FORMATS if has_day(format) and "%G" not in format]


@pytest.mark.parametrize("format", ["%Y-%m-%d", *WITH_DAYS])
def test_a_format_is_guessed_from_the_column(tmp_path, format):
    (tmp_path / "d.csv").write_text(dated(lambda day: day.strftime(format)))
    said = answered("fit", tmp_path / "d.csv", "-t", "finding", "--kernel", "rbf")
    line = next(column for column in said["columns"] if column["column"] == "when")
    assert line["kind"] == "date"
    assert (f"format {format}" in line["note"]) == (format != "%Y-%m-%d")
    assert said["heldout"]["accuracy"] > 0.8  # what happens depends on the date
    model = load(tmp_path / "d.lw")
    encoded = TableModel("finding", kernel="rbf").fit(read_table(io.StringIO(dated(str))))
    new = "when,size\n{},0.5\n"
    day = np.datetime64("2022-03-04").astype(object)
    P = model.answer(read_table(io.StringIO(f'when,size\n"{day.strftime(format)}",0.5\n'))).proba
    np.testing.assert_allclose(P, encoded.answer(read_table(io.StringIO(new.format("2022-03-04")))).proba, atol=1e-9)
    code, _, err = spoken("check", tmp_path / "d.lw", tmp_path / "d.csv")
    assert code == DONE, err


def test_a_day_that_could_be_a_month_is_named_and_can_be_set(tmp_path):
    few = np.datetime64("2021-01-01") + 31 * (np.arange(80) % 12)  # days up to 12
    few = np.array([day.astype("datetime64[M]") + np.timedelta64(k % 12, "D") for k, day in enumerate(few)])
    (tmp_path / "d.csv").write_text(dated(lambda day: day.strftime("%m/%d/%Y"), few))
    given = ["fit", tmp_path / "d.csv", "-t", "finding", "--kernel", "rbf"]
    assert "format %d/%m/%Y (%m/%d/%Y is possible, too)" in spoken(*given)[2]
    said = answered(*given, "--column", "when=date:%m/%d/%Y")
    assert said["columns"][0]["note"] == "as specified, %m/%d/%Y"
    assert load(tmp_path / "d.lw").columns_[0].format == "%m/%d/%Y"


@pytest.mark.parametrize("kind", ["date:%d/%Q", "date:%d/%m", "date:%Y%Y", "number:%d", "dates"])
def test_formats_that_make_no_sense(tmp_path, kind):
    (tmp_path / "d.csv").write_text(dated(str))
    code, _, err = spoken("fit", tmp_path / "d.csv", "-t", "finding", "--column", f"when={kind}")
    assert code == USAGE
    assert "or date:%d/%m/%Y" in err
    with pytest.raises(TableError, match="kinds= has"):
        TableEncoder(kinds={"when": kind}).fit(read_table(tmp_path / "d.csv").without(["finding"]))


def test_a_date_of_another_format_is_an_error_with_its_line(tmp_path):
    (tmp_path / "d.csv").write_text(dated(lambda day: day.strftime("%d.%m.%Y")))
    assert spoken("fit", tmp_path / "d.csv", "-t", "finding", "--kernel", "rbf")[0] == DONE
    (tmp_path / "n.csv").write_text("when,size\n24.12.2021,1\n12/24/2021,1\n")
    code, _, err = spoken("predict", tmp_path / "d.lw", tmp_path / "n.csv")
    assert code == DATA
    assert 'n.csv, line 3, column "when": "12/24/2021" is not a date of the format %d.%m.%Y.' in err
    assert spoken("check", tmp_path / "d.lw", tmp_path / "n.csv")[0] == DRIFT


@given(st.datetimes(min_value=datetime(1970, 1, 1)), st.sampled_from(WITH_DAYS))
def test_dates_are_those_of_strptime(moment, format):
    moment = moment.replace(second=0, microsecond=0)
    if "%y" in format:
        moment = moment.replace(year=1970 + moment.year % 90, day=min(moment.day, 28))
    day = moment.replace(hour=0, minute=0)
    text = f"{day.year:04d}".join(moment.strftime(format.replace("%Y", "{}")).split("{}"))
    expected = np.datetime64(day, "D").astype(int)
    if format == "%Y%m%d":
        assert read_date(text, format) in (expected, None)  # eight digits may be any number
        return
    assert read_date(text, format) == expected
    with_time = read_date(f"{text} {moment:%H:%M}", format)
    assert with_time == pytest.approx(expected + (60 * moment.hour + moment.minute) / 1440, abs=1e-9)


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2068, 12, 31)))
def test_months_quarters_weeks_and_clock_times(moment):
    month, day = np.datetime64(moment, "M").astype("datetime64[D]"), np.datetime64(moment, "D")
    quarter = np.datetime64(f"{moment.year}-{3 * ((moment.month - 1) // 3) + 1:02d}-01")
    week = day - moment.weekday()
    q = (moment.month - 1) // 3 + 1
    texts = {
        format: (moment.strftime(format), month) for format in ("%Y-%m", "%Y/%m", "%m/%Y", "%b %Y", "%b-%Y", "%b-%y")
    }
    texts |= {f: (f.replace("%Y", str(moment.year)).replace("%q", str(q)), quarter) for f in FORMATS if "%q" in f}
    texts |= {format: (moment.strftime(format), week) for format in ("%G-W%V", "%GW%V")}
    texts["%G-W%V-%u"] = moment.strftime("%G-W%V-%u"), day
    covered = set(texts) | set(WITH_DAYS) | {"%H:%M", "%H:%M:%S"}
    assert covered == set(FORMATS)
    for format, (text, expected) in texts.items():
        assert read_date(text, format) == expected.astype(int), format
        found = guess_format([text, text.upper()])
        assert found == (format, "")
    seconds = 3600 * moment.hour + 60 * moment.minute
    assert read_date(f"{moment:%H:%M}", "%H:%M") == pytest.approx(seconds / 86400)
    assert read_date(f"{moment:%I:%M %p}", "%H:%M") == pytest.approx(seconds / 86400)
    assert read_date(f"{moment:%H:%M:%S}", "%H:%M:%S") == pytest.approx((seconds + moment.second) / 86400)


def test_dates_as_pandas_writes_them():
    pd = pytest.importorskip("pandas")
    stamps = pd.date_range("2024-01-31", periods=40, freq="36h", tz="Europe/Berlin")
    days = stamps.asi8 / {"ns": 86_400e9, "us": 86_400e6}[stamps.unit]
    for texts in (
        stamps.astype(str),
        stamps.strftime("%Y-%m-%dT%H:%M:%S%z"),
        stamps.tz_convert("UTC").strftime("%F %T UTC"),
    ):
        assert guess_format(list(texts)) == ("", "")
        np.testing.assert_allclose([read_date(text, "") for text in texts], days)
    assert read_date("2024-05-31 12:00:00.123456789", "") == pytest.approx(19874.5 + 0.123456 / 86400, abs=1e-9)
    for freq, format in (("M", "%Y-%m"), ("Q", "%YQ%q")):
        assert guess_format(list(pd.period_range("2019-03", periods=30, freq=freq).astype(str))) == (format, "")


def test_a_clock_time_repeats_every_day_and_a_month_has_no_weekday(tmp_path):
    rng = np.random.default_rng(0)
    minutes, months = rng.integers(0, 1440, 600), rng.integers(0, 60, 600)
    night = (minutes < 360) | (minutes > 1260)
    winter = np.isin(months % 12, [0, 1, 11])
    table = {
        "clock": np.array([f"{m // 60:02d}:{m % 60:02d}" for m in minutes], dtype=object),
        "month": np.array([f"{2015 + m // 12}-{m % 12 + 1:02d}" for m in months], dtype=object),
        "finding": np.where(night ^ (rng.random(600) < 0.05), "late", np.where(winter, "cold", "fine")),
    }
    write_table(table, tmp_path / "t.csv")
    given = ["fit", tmp_path / "t.csv", "-t", "finding", "--kernel", "rbf", "-o", tmp_path / "m.lw"]
    code, _, err = spoken(*given, "--report", tmp_path / "r.html")
    assert code == DONE, err
    assert re.search(r"clock +date .*format %H:%M, read as a part of the day; time of day too", err)
    assert re.search(r"month +date .*format %Y-%m, read as days since 1970-01-01; time of year too", err)
    model = load(tmp_path / "m.lw")
    assert [column.parts for column in model.columns_] == [("time of day",), ("time of year",)]
    (clock,) = [line for line in model.effects_["lines"] if line["column"] == "clock"]
    assert clock["kind"] == "clock"
    assert len(clock["at"]) == 9
    assert max(clock["at"]) < 1
    page = (tmp_path / "r.html").read_text()
    assert re.search(r">\d{1,2}:00<", page)
    new = {"clock": ["03:10", "12:00"], "month": ["2018-07", "2018-07"]}
    assert model.predict_table(new)["prediction"].tolist() == ["late", "fine"]


def test_formats_of_clock_times_and_weeks_can_be_given():
    assert check_format("%H:%M") is None
    assert check_format("%G-W%V-%u") is None
    assert "belong together" in check_format("%Y-W%V")
    assert "an hour" in check_format("%M:%S")


def test_what_is_not_a_date():
    assert guess_format(["2024-13"]) is None
    assert guess_format(["1234-12"]) is None  # a code: the year is not one of our time
    assert guess_format(["25:10"]) is None
    assert guess_format(["2024-Q5"]) is None
    assert guess_format(["2023-W53"]) is None
    assert guess_format(["40/1/2020"]) is None
    assert guess_format(["12/24/2021", "24/12/2021"]) is None
    assert guess_format(["2020-01-05", "5 Jan 2020"]) is None
    assert read_date("1/2/2020 13:00 pm", "%d/%m/%Y") is None
    assert guess_format(["99999999"]) is None


# ------------------------------------------------------------------------ missing words


def test_words_for_missing_values(tmp_path):
    size = [str(v) if k % 9 else "unknown" for k, v in enumerate(SIZE)]
    shade = [str(k) if k % 7 else "-999" for k in range(80)]
    rows = [f"{a},{b},{'x' if c > 0 else 'z'}" for a, b, c in zip(size, shade, SIZE, strict=True)]
    (tmp_path / "m.csv").write_text("\n".join(["size,shade,finding", *rows]) + "\n")
    code, _, err = spoken("fit", tmp_path / "m.csv", "-t", "finding")
    assert code in (DONE, DATA)
    assert code == DONE or '"unknown" is not a number' in err
    given = ["--missing", "Unknown", "--missing", "-999", "--kernel", "rbf"]
    said = answered("fit", tmp_path / "m.csv", "-t", "finding", *given)
    assert [(c["kind"], c["missing"]) for c in said["columns"]] == [("number", 9), ("number", 12)]
    (tmp_path / "n.csv").write_text("size,shade\nunknown,3\n,3\n1,-999.0\n1,\n")
    code, out, err = spoken("predict", tmp_path / "m.lw", tmp_path / "n.csv")
    assert code == DONE, err
    first, second, third, fourth = (line.split(",")[1:] for line in out.splitlines()[1:])
    assert first == second
    assert third == fourth


def test_numbers_that_are_missing_in_typed_columns():
    table = {"size": np.where(np.arange(60) % 5, np.arange(60) % 13, -999), "finding": np.arange(60) % 13 > 6}
    model = TableModel("finding", missing=["-999"], kernel="rbf").fit(table)
    assert model.columns_[0].n_missing == 12


# -------------------------------------------------------------------------- yes and no


@pytest.mark.parametrize(
    "words", [("yes", "no"), ("Y", "N"), ("positive", "Negative"), ("TRUE", "false"), ("1", "0"), ("1.0", "0")]
)
def test_words_of_labels(tmp_path, words):
    hot, wet = ([words[int(v <= least)] for v in SIZE] for least in (0, 0.5))
    rows = [f"{v},{hot[k]},{wet[k] if k % 8 else ''}" for k, v in enumerate(SIZE)]
    (tmp_path / "l.csv").write_text("\n".join(["size,hot,wet", *rows]) + "\n")
    code, _, err = spoken("fit", tmp_path / "l.csv", "--labels", "hot,wet", "--kernel", "rbf")
    assert code == DONE, err
    scores = answered("evaluate", tmp_path / "l.lw", tmp_path / "l.csv")
    assert scores["accuracy"] > 0.9


# ------------------------------------------------------------------------------ Excel

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def workbook(path, rows, sheet=None):
    """A workbook as Excel writes it: shared texts, a style for dates (1), and numbers."""
    texts = sorted({cell for row in rows for cell in row if isinstance(cell, str)})

    def cell(i, j, value):
        place = f'r="{chr(65 + j)}{i}"'
        if isinstance(value, str):
            return f'<c {place} t="s"><v>{texts.index(value)}</v></c>'
        if isinstance(value, bool):
            return f'<c {place} t="b"><v>{int(value)}</v></c>'
        if isinstance(value, datetime):
            return f'<c {place} s="1"><v>{(value - datetime(1899, 12, 30)).total_seconds() / 86400}</v></c>'
        return "" if value is None else f"<c {place}><v>{value}</v></c>"

    lines = [
        f'<row r="{i}">{"".join(cell(i, j, v) for j, v in enumerate(row))}</row>' for i, row in enumerate(rows, 1)
    ]
    parts = {
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}">'
        '<sheets><sheet name="a" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Id="r1" '
        'Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}">{"".join(f"<si><t>{t}</t></si>" for t in texts)}</sst>',
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}">'
        '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
        "xl/worksheets/sheet1.xml": sheet
        or f'<worksheet xmlns="{MAIN}"><sheetData>{"".join(lines)}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w") as book:
        for name, text in parts.items():
            book.writestr(name, text)


def test_a_workbook_of_excel(tmp_path):
    days = [day.astype("datetime64[s]").astype(object) for day in DAYS]
    rows = [
        [d, s if k % 9 else None, bool(s > 0), "late" if c else "early"]
        for k, (d, s, c) in enumerate(zip(days, SIZE, LATE, strict=True))
    ]
    workbook(tmp_path / "b.xlsx", [["when", "size", "up", "finding"], *rows])
    table = read_table(tmp_path / "b.xlsx")
    assert table["when"].tolist() == [str(day) for day in DAYS]
    said = answered("fit", tmp_path / "b.xlsx", "-t", "finding", "--kernel", "rbf")
    assert [c["kind"] for c in said["columns"]] == ["date", "number", "boolean"]
    assert said["columns"][1]["missing"] == 9
    code, out, err = spoken("predict", tmp_path / "b.lw", tmp_path / "b.xlsx")
    assert code == DONE, err
    assert len(out.splitlines()) == 81
    workbook(tmp_path / "n.xlsx", [["when", "size", "up"], [days[0], 1, True], [days[0], "big", False]])
    code, _, err = spoken("predict", tmp_path / "b.lw", tmp_path / "n.xlsx")
    assert code == DATA
    assert 'n.xlsx, row 3, column "size": "big" is not a number.' in err


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["a", "b"]], "has no rows below its names"),
        ([["a", "a"], [1, 2]], 'two columns are called "a"'),
        ([["a"], [1, 2]], "row 2: a cell stands to the right of the 1 named columns"),
    ],
)
def test_workbooks_that_are_no_tables(tmp_path, rows, message):
    workbook(tmp_path / "b.xlsx", rows)
    code, _, err = spoken("fit", tmp_path / "b.xlsx", "-t", "a")
    assert code == DATA
    assert message in err


def test_a_workbook_with_a_title_and_clock_times(tmp_path):
    noon = datetime(1899, 12, 30, 12, 30)
    rows = [["Report 2024"], [None], ["when", "size", "finding"], *([noon, k, "ab"[k % 2]] for k in range(20))]
    workbook(tmp_path / "b.xlsx", rows)
    table = read_table(tmp_path / "b.xlsx")
    assert table.names == ["when", "size", "finding"]
    assert table["when"].tolist() == ["12:30:00"] * 20
    assert table.line_numbers()[0] == 4
    assert table.notes == ("Column names are taken from row 3; the rows above are a title.",)
    assert "Column names are taken from row 3" in spoken("fit", tmp_path / "b.xlsx", "-t", "finding")[2]


def test_classes_and_tasks_in_several_spellings_are_named(tmp_path):
    sites, findings = ["Basel", "basel ", "Bern"], ["Krank ", "krank", "gesund"]
    rows = "".join(f"{k % 7}.5,{sites[k % 3]},{findings[k % 3]}\n" for k in range(60))
    (tmp_path / "t.csv").write_text("size,site,finding\n" + rows)
    code, _, err = spoken("fit", tmp_path / "t.csv", "-t", "finding", "--task", "site", "--kernel", "rbf")
    assert code == DONE, err
    assert 'warning: Column "site" has tasks that differ only in case or spaces: "Basel" and "basel".' in err
    assert 'Column "finding" has classes that differ only in case or spaces: "Krank" and "krank".' in err
    letters = {"size": np.arange(40.0) % 7, "letter": np.array(["a", "A"] * 20, dtype=object)}
    TableModel("letter", kernel="rbf").fit(letters)  # single letters are what they are: no warning


def test_files_that_are_no_workbooks(tmp_path):
    (tmp_path / "b.xlsx").write_text("a,b\n1,2\n")
    assert "not a readable Excel workbook" in spoken("fit", tmp_path / "b.xlsx", "-t", "a")[2]
    workbook(tmp_path / "c.xlsx", [["a"], [1]], sheet="<worksheet>")
    assert "not a readable Excel workbook" in spoken("fit", tmp_path / "c.xlsx", "-t", "a")[2]
    (tmp_path / "c.csv").write_bytes((tmp_path / "c.xlsx").read_bytes())
    assert "in xlsx format, not text: give --format xlsx" in spoken("fit", tmp_path / "c.csv", "-t", "a")[2]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_a_full_disk_is_named(tmp_path):
    (tmp_path / "d.csv").write_text(dated(str))
    given = ["fit", tmp_path / "d.csv", "-t", "finding", "--kernel", "rbf"]
    assert "leastwise: /dev/full: No space left on device" in spoken(*given, "-o", "/dev/full")[2]
    assert spoken(*given)[0] == DONE
    command = [sys.executable, "-m", "leastwise", "predict", tmp_path / "d.lw", tmp_path / "d.csv"]
    with open("/dev/full", "w") as full:
        said = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (said.returncode, said.stderr.splitlines()[-1]) == (5, "leastwise: <stdout>: No space left on device")
