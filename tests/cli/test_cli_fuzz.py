"""Broken tables through the command line: an exit code that is listed and one line that names the file."""

import gzip
import os
import random
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("typer")

from leastwise.cli import main
from leastwise.cli.output import BUG, DATA, DONE, MEANING, SYSTEM
from leastwise.tables import read_table, write_table

#: So many mutated tables; more by the environment.
COUNT = int(os.environ.get("LEASTWISE_FUZZ_CLI", "200"))


def cases(n=40, seed=0):
    """A small table with words, gaps, dates and a task."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n).round(3)
    lines = ["size,line,when,site,finding"]
    for i, s in enumerate(size):
        word = ["north", "south", "", '"a, b"'][int(rng.integers(4))]
        shown = "" if i % 9 == 4 else s
        lines.append(f"{shown},{word},2024-0{1 + i % 9}-11,s{i % 2},{'fault' if s > 0 else 'fine'}")
    return "\n".join(lines) + "\n"


def said(capsys, arguments):
    """The exit code, and the lines on stderr that are errors; warnings are told in quiet too."""
    code = main([*map(str, arguments), "--quiet"])
    lines = capsys.readouterr().err.splitlines(keepends=True)
    return code, "".join(line for line in lines if not line.startswith("warning: "))


def judged(code, err, name):
    """An exit code of the list that is no bug; where it is not 0, one line that names the file."""
    assert code in MEANING, err
    assert code != BUG, err
    assert "Traceback" not in err, err
    if code == DONE:
        assert err == ""
    else:
        assert err.startswith("leastwise: "), err
        assert err.count("\n") == 1, err
        assert name in err, err
        assert len(err) < 2000, err


BROKEN = {
    "empty": b"",
    "spaces": b"  \n \n",
    "header only": b"a,b,finding\n",
    "no line end": b"a,b,finding",
    "one row": b"a,b,finding\n1,2,fault\n",
    "one class": b"a,finding\n" + b"1,fault\n2,fault\n" * 10,
    "one column": b"finding\n" + b"fault\nfine\n" * 10,
    "constant": b"a,finding\n" + b"1,fault\n1,fine\n" * 10,
    "only missing": b"a,b,finding\n" + b",NA,fault\n,?,fine\n" * 10,
    "no target": b"a,finding\n" + b"1,\n2,NA\n" * 10,
    "ragged": b"a,b,finding\n1,2,fault\n1,2\n",
    "ragged long": b"a,b,finding\n1,2,fault\n1,2,fine,4\n",
    "double header": b"a,a,finding\n1,2,fault\n",
    "double target": b"a,finding,finding\n1,2,fault\n",
    "NUL": b"a,finding\n1,fa\0ult\n",
    "quote": b'a,finding\n1,"fault\n2,fine\n',
    "after a quote": b'a,finding\n"1"2,fault\n',
    "huge cell": b"a,finding\n" + b"x" * 200_000 + b",fault\n1,fine\n",
    "huge quoted cell": b'a,finding\n"' + b"x,\n" * 100_000 + b'",fault\n1,fine\n',
    "latin-1": "größe,finding\n1,fäult\n2,fine\n".encode("latin-1"),
    "UTF-16": cases().encode("utf-16"),
    "UTF-16, odd": cases().encode("utf-16")[:-1],
    "UTF-8 mark": b"\xef\xbb\xbf" + cases().encode(),
    "mark only": b"\xef\xbb\xbf",
    "bytes": bytes(range(256)) * 20,
    "gzip": gzip.compress(cases().encode()),
    "gzip, cut": gzip.compress(cases().encode())[:-20],
    "parquet?": b"PAR1" + b"\0" * 100 + b"PAR1",
    "too large": b"a,finding\n" + b"1e400,fault\n2,fine\n" * 20,
    "infinite": b"a,finding\n" + b"inf,fault\n2,fine\n" * 20,
    "large": b"a,finding\n" + b"1e308,fault\n-1e308,fine\n" * 20,
    "small": b"a,finding\n" + b"1e-320,fault\n-1e-320,fine\n" * 20,
    "dates": b"a,finding\n" + b"2024-02-30,fault\n2024-02-28,fine\n" * 20,
    "CR": cases().replace("\n", "\r").encode(),
    "CRLF": cases().replace("\n", "\r\n").encode(),
    "mixed ends": b"a,finding\r\n" + b"1,fault\n2,fine\r\n3,fault\r" * 10,
    "a word among numbers": b"a,finding\n"
    + b"".join(b"%d,fault\n%d,fine\n" % (7 * i, i * i) for i in range(30))
    + b"x,fine\n",
    "two rows of each": b"a,finding\n1,fault\n2,fine\n1,fault\n3,fine\n",
    "as many classes as rows": b"a,finding\n" + b"".join(b"%d,c%d\n" % (i, i) for i in range(30)),
    "html": b"<html><body><p>404, not found</p></body></html>\n",
    "json": b'{"a": [1, 2], "finding": ["fault", "fine"]}\n',
    "spaces in names": b" a , finding \n" + b"1,fault\n2,fine\n3,fault\n" * 10,
    "same rows": b"a,finding\n" + b"1,fault\n" * 10 + b"1,fine\n" * 10,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_table_is_refused_in_one_line(name, tmp_path, capsys):
    path = tmp_path / "cases.csv"
    path.write_bytes(BROKEN[name])
    code, err = said(capsys, ["fit", path, "--target", "finding"])
    judged(code, err, "cases.csv")
    assert (tmp_path / "cases.lw").exists() == (code == DONE)
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".") or p.name.endswith(".checkpoint")]


def test_what_is_not_broken_is_learned_from(tmp_path, capsys):
    """Marks, line ends, encodings and gzip are no faults."""
    for name in ("UTF-16", "UTF-8 mark", "gzip", "CRLF", "CR", "mixed ends", "large"):
        path = tmp_path / "cases.csv"
        path.write_bytes(BROKEN[name])
        assert said(capsys, ["fit", path, "--target", "finding"]) == (DONE, ""), name


def test_a_hundred_thousand_columns(tmp_path, capsys):
    path = tmp_path / "wide.csv"
    row = ",".join(["1", "2", "x", "", "4.5"] * 20_000)
    names = ",".join(f"c{j}" for j in range(100_000))
    path.write_text(f"{names},finding\n" + "".join(f"{row},{'fault' if i % 2 else 'fine'}\n" for i in range(3)))
    code, err = said(capsys, ["fit", path, "--target", "finding"])
    judged(code, err, "wide.csv")
    assert code == DATA  # all are constant
    code, err = said(capsys, ["fit", path, "--target", "findings"])
    judged(code, err, "wide.csv")
    assert "did you mean 'finding'?" in err


# ------------------------------------------------------------------ mutations

WORDS = ["1e999", "-", "NA", "nan", "2024-01-01", "x" * 300, "é", "☃"]
PIECES = ["", ",", '"', "\n", "\r", "\0", ";", "\t", "'", "#", *WORDS]


def mutated(text, rng):
    """Some changes at random places: letters, lines, cells, bytes."""
    for _ in range(rng.randint(1, 4)):
        how, lines = rng.randrange(7), text.splitlines(keepends=True) or [""]
        at = rng.randrange(len(text) + 1)
        row = rng.randrange(len(lines))
        if how == 0:
            text = text[:at] + rng.choice(PIECES) + text[at + rng.randint(0, 3) :]
        elif how == 1:
            text = text[:at]
        elif how == 2:
            text = "".join(lines[:row] + lines[row + 1 :])
        elif how == 3:
            cells = lines[row].rstrip("\n").split(",")
            cells[rng.randrange(len(cells))] = rng.choice(PIECES)
            text = "".join([*lines[:row], ",".join(cells) + "\n", *lines[row + 1 :]])
        elif how == 4:
            column, piece = rng.randrange(5), rng.choice(PIECES)
            rows = [line.rstrip("\n").split(",") for line in lines]
            text = "\n".join(
                ",".join(piece if j == column and i else c for j, c in enumerate(r)) for i, r in enumerate(rows)
            )
        elif how == 5:
            text = "".join(lines[:1] + lines[1 : rng.randint(1, len(lines))])
        else:
            text = text[:at] + text[at:].replace(rng.choice(["\n", ",", "0", "fine"]), rng.choice(PIECES))
    data = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.2:
        at = rng.randrange(len(data) + 1)
        data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    return data


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    (folder / "cases.csv").write_text(cases(60))
    options = ["--target", "finding", "--task", "site", "--min-confidence", "0.9", "--quiet", "--json"]
    assert main(["fit", str(folder / "cases.csv"), *options]) == DONE
    return folder / "cases.lw"


@pytest.mark.parametrize("part", range(4))
def test_mutated_tables(part, model, tmp_path, capsys):
    """Predicted and evaluated; some are learned from too, which takes longer."""
    path, rng = tmp_path / "new.csv", random.Random(part)
    text, done = cases(20), 0
    for k in range(COUNT // 4):
        path.write_bytes(mutated(text, rng))
        commands = [["predict", model, path, "-o", tmp_path / "out.csv"], ["evaluate", model, path]]
        if k % 4 == 0:
            task = ["--task", "site"] if k % 8 == 0 else ["--kind", rng.choice(["numbers", "classes"])]
            commands.append(["fit", path, "--target", rng.choice(["finding", "size", "line"]), *task])
        for command in commands:
            code, err = said(capsys, command)
            judged(code, err, "new.csv")
            done += code == DONE
    assert 0 < done < 3 * COUNT  # some are whole still, some are not


@pytest.mark.parametrize("ending", ["arff", "libsvm"])
def test_mutated_tables_of_other_formats(ending, tmp_path, capsys):
    rng, path = random.Random(0), tmp_path / f"new.{ending}"
    values = np.random.default_rng(0).normal(size=(20, 2)).round(2)
    if ending == "arff":
        head = "@relation r\n@attribute a numeric\n@attribute b real\n@attribute y {p,q}\n@data\n"
        text = head + "".join(f"{a},{b},{'p' if a > 0 else 'q'}\n" for a, b in values)
    else:
        text = "".join(f"{int(a > 0)} 1:{a} 2:{b}\n" for a, b in values)
    path.write_text(text)
    assert said(capsys, ["fit", path, "--target", "y"]) == (DONE, "")
    for _ in range(COUNT // 5):
        path.write_bytes(mutated(text, rng))
        code, err = said(capsys, ["evaluate", tmp_path / "new.lw", path])
        judged(code, err, f"new.{ending}")


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_mutated_tables_of_bytes(ending, model, tmp_path):
    """In a process of its own: offsets that point outside of the data must not crash it."""
    pytest.importorskip("pyarrow")
    (tmp_path / "whole.csv").write_text(cases(20))
    write_table(read_table(tmp_path / "whole.csv"), tmp_path / f"whole.{ending}")
    code = """
import random, sys
from pathlib import Path
from leastwise.cli import main
model, ending, count = sys.argv[1:]
whole, rng = Path(f"whole.{ending}").read_bytes(), random.Random(0)
for _ in range(int(count)):
    data = bytearray(whole)
    for _ in range(rng.randint(1, 5)):
        data[rng.choice([rng.randrange(len(data)), -rng.randint(1, 300)])] = rng.randrange(256)
    Path(f"new.{ending}").write_bytes(data if rng.random() < 0.9 else data[: rng.randrange(len(data))])
    print(main(["predict", model, f"new.{ending}", "-o", "out.csv", "-q"]), file=sys.stderr)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code, str(model), ending, str(COUNT // 2)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True)
    codes = [int(line) for line in done.stderr.splitlines() if line.isdecimal()]
    lines = [line for line in done.stderr.splitlines() if not line.isdecimal()]
    assert len(codes) == COUNT // 2
    assert set(codes) == {DONE, DATA}
    assert len(lines) == codes.count(DATA)
    assert all(line.startswith((f"leastwise: new.{ending}: ", f"leastwise: new.{ending}, row")) for line in lines)


# ------------------------------------------------------------ other new tables


def edited(change):
    """The table with its rows changed as dicts of text."""
    head, *rows = [line.split(",") for line in cases(20).replace('"a, b"', "east").splitlines()]
    return change([dict(zip(head, row, strict=True)) for row in rows])


def written(path, rows):
    path.write_text("\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]) + "\n")


@pytest.mark.parametrize(
    ("change", "expected", "message"),
    [
        (lambda rows: [{k: v for k, v in r.items() if k != "size"} for r in rows], DATA, "'size'"),
        (lambda rows: [{k: v for k, v in r.items() if k != "site"} for r in rows], DATA, "'site'"),
        (lambda rows: [{**r, "size": "big"} for r in rows], DATA, 'line 2, column "size": "big" is not a number'),
        (lambda rows: [{**r, "when": "May"} for r in rows], DATA, 'column "when": "May" is not an ISO date'),
        (lambda rows: [{**r, "line": "4"} for r in rows], DONE, ""),
        (lambda rows: [{**r, "site": "new"} for r in rows], DONE, ""),
        (lambda rows: [{**r, "size": "", "line": "", "when": "", "site": ""} for r in rows], DONE, ""),
        (lambda rows: [dict(reversed(r.items())) | {"more": "1"} for r in rows], DONE, ""),
        (lambda rows: [{**r, "size": "1e200"} for r in rows], DONE, ""),
    ],
)
def test_new_tables_of_another_shape(change, expected, message, model, tmp_path, capsys):
    written(tmp_path / "new.csv", edited(change))
    code, err = said(capsys, ["predict", model, tmp_path / "new.csv", "-o", tmp_path / "out.csv"])
    judged(code, err, "new.csv")
    assert code == expected
    assert message in err
    if code == DONE:
        lines = (tmp_path / "out.csv").read_text().splitlines()
        assert len(lines) == 21
        shares = np.array([[float(cell) for cell in line.split(",")[2:5]] for line in lines[1:]])
        assert np.isfinite(shares).all()


def test_broken_model_files(model, tmp_path, capsys):
    (tmp_path / "new.csv").write_text(cases(20))
    data = model.read_bytes()
    for k, broken in enumerate([b"", data[:100], data[:-10], data.replace(b"LSPC", b"XXXX"), cases(20).encode()]):
        (tmp_path / "m.lw").write_bytes(broken)
        for command in (["predict", tmp_path / "m.lw", tmp_path / "new.csv"], ["inspect", tmp_path / "m.lw"]):
            code, err = said(capsys, command)
            judged(code, err, "m.lw")
            assert code == 4, (k, err)
    code, err = said(capsys, ["inspect", tmp_path / "absent.lw"])
    judged(code, err, "absent.lw")
    assert code == SYSTEM
