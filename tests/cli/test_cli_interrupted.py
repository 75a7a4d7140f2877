"""Ctrl-C and kill -9 in the middle of a fit: the old file or the new one, and a search that goes on."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("typer")
if os.name != "posix":
    pytest.skip("signals of POSIX", allow_module_level=True)

from leastwise import load
from leastwise.cli import main

#: A search of which every step takes a while, and is kept from the first on.
SLOW = """
import sys, time
import leastwise.cli.checkpoint as checkpoint
from leastwise.model_selection.search import Search
checkpoint.MIN_SECONDS = 0.0
quick = Search._at
def slow(self, *args, **kwargs):
    found = quick(self, *args, **kwargs)
    time.sleep(PAUSE)
    return found
Search._at = slow
"""
#: Killed on the spot at a moment of the writing of the model file.
KILLED = """
import os, signal
import leastwise.utils.atomic_files as atomic
def die():
    os.kill(os.getpid(), signal.SIGKILL)
write, replace, settle = atomic._write, os.replace, atomic._settle
def half(new, parts, mode):
    if "m.lw" in new:
        whole = b"".join(bytes(part) for part in parts)
        write(new, [whole[: len(whole) // 2]], mode)
        die()
    write(new, parts, mode)
def unmoved(old, new, **more):
    if new.endswith("m.lw"):
        die()
    replace(old, new, **more)
def moved(folder):
    die()
MOMENT
"""
MOMENTS = {"half": "atomic._write = half", "before": "atomic.os.replace = unmoved", "after": "atomic._settle = moved"}
END = "\nfrom leastwise.cli import main\nsys.exit(main(sys.argv[1:]))\n"
FIT = ["fit", "cases.csv", "--target", "finding", "-o", "m.lw"]


def started(folder, code, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTEST_CURRENT_TEST", None)
    command = [sys.executable, "-c", "import sys\n" + code + END, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **pipes)


def steps(folder):
    return sorted((folder / "m.lw.checkpoint").glob("*.step"))


def interrupted(folder, how, enough=3, pause=0.2, more=()):
    """A fit that is stopped once some steps are on disk; what it said, and its exit code."""
    process = started(folder, SLOW.replace("PAUSE", str(pause)), *FIT, *more)
    end = time.monotonic() + 60
    while len(steps(folder)) < enough and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    assert process.poll() is None, process.communicate()
    process.send_signal(how)
    out, err = process.communicate(timeout=60)
    assert out == ""
    return process.returncode, err


def resumed(folder, capsys, *more):
    """The rest, in this process: what was answered, and what was said."""
    with contextlib.chdir(folder):
        assert main([*FIT, "--resume", "--json", *more]) == 0
    said = capsys.readouterr()
    return json.loads(said.out), said.err


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The table, and the predictions of a model whose fit nobody stopped."""
    folder = tmp_path_factory.mktemp("whole")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2)).round(3)
    y = np.where(X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=150) > 0, "fault", "fine")
    rows = [f"{a},{b},{c}" for (a, b), c in zip(X, y, strict=True)]
    (folder / "cases.csv").write_text("\n".join(["a,b,finding", *rows]) + "\n")
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        assert main([*FIT, "--quiet"]) == 0
    return folder


@pytest.fixture
def folder(whole, tmp_path):
    (tmp_path / "cases.csv").write_bytes((whole / "cases.csv").read_bytes())
    (tmp_path / "m.lw").write_bytes(b"the old model")
    return tmp_path


def predictions(folder):
    with contextlib.chdir(folder):
        assert main(["predict", "m.lw", "cases.csv", "-o", "out.csv", "--quiet"]) == 0
    return (folder / "out.csv").read_text()


def hidden(folder):
    """Files that were to be moved to their place."""
    return [path.name for path in folder.rglob("*") if path.name.startswith(".") or path.suffix == ".tmp"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_stopped_and_taken_up_again(how, folder, whole, capsys):
    code, err = interrupted(folder, how)
    assert code == 130
    assert err.splitlines()[-1] == "leastwise: interrupted"
    assert "Traceback" not in err
    kept = len(steps(folder))
    assert kept >= 3
    assert f"{kept} steps of the search are saved in m.lw.checkpoint; continue with --resume." in err
    assert (folder / "m.lw").read_bytes() == b"the old model"
    assert not hidden(folder)

    answer, err = resumed(folder, capsys)
    assert answer["steps_resumed"] == kept
    assert f"Resuming the search after {kept} steps." in err
    assert not (folder / "m.lw.checkpoint").exists()
    assert predictions(folder) == predictions(whole)
    first, second = load(whole / "m.lw").model_, load(folder / "m.lw").model_
    assert (first.sigma_, first.alpha_) == (second.sigma_, second.alpha_)
    np.testing.assert_array_equal(first.heldout_proba_, second.heldout_proba_)


def test_killed_in_the_search(folder, whole, capsys):
    code, _ = interrupted(folder, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert (folder / "m.lw").read_bytes() == b"the old model"
    # what a power failure may leave: a step that is cut off, one of rubbish, one that was being written
    first, second = steps(folder)[:2]
    first.write_bytes(first.read_bytes()[:-20])
    second.write_bytes(b"rubbish")
    (folder / "m.lw.checkpoint" / f".{9:032x}.step.0a1b.tmp").write_bytes(b"half")
    kept = len(steps(folder))
    answer, _ = resumed(folder, capsys)
    assert answer["steps_resumed"] == kept - 2
    assert not (folder / "m.lw.checkpoint").exists()
    assert predictions(folder) == predictions(whole)


def test_other_data_or_options_begin_anew(folder, whole, capsys):
    interrupted(folder, signal.SIGINT, enough=2)
    saved = {path.name: path.read_bytes() for path in (folder / "m.lw.checkpoint").iterdir()}

    def back():
        (folder / "m.lw.checkpoint").mkdir()
        for name, data in saved.items():
            (folder / "m.lw.checkpoint" / name).write_bytes(data)

    answer, err = resumed(folder, capsys, "--coverage", "0.8")
    assert answer["steps_resumed"] == 0
    assert "other data or options; starting a new search" in err

    back()
    with contextlib.chdir(folder):  # nobody asked to take it up
        assert main([*FIT, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps_resumed"] == 0
    assert not (folder / "m.lw.checkpoint").exists()

    back()
    with (folder / "cases.csv").open("a") as file:
        file.write("0.1,0.2,fault\n")
    assert resumed(folder, capsys)[0]["steps_resumed"] == 0

    answer, err = resumed(folder, capsys)
    assert "No checkpoint found in m.lw.checkpoint" in err


def test_a_short_search_leaves_nothing(folder):
    """Stopped before steps are kept: no folder, and no word of --resume."""
    code = SLOW.replace("PAUSE", "0.2").replace("MIN_SECONDS = 0.0", "MIN_SECONDS = 1000.0")
    code += "\nold = slow\ndef told(self, *a, **k):\n    print('step', flush=True)\n    return old(self, *a, **k)\n"
    process = started(folder, code + "Search._at = told\n", *FIT)
    for _ in range(3):
        assert process.stdout.readline() == "step\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--resume" not in err
    assert sorted(path.name for path in folder.iterdir()) == ["cases.csv", "m.lw"]
    assert (folder / "m.lw").read_bytes() == b"the old model"


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_while_the_model_is_written(moment, folder, whole):
    process = started(folder, KILLED.replace("MOMENT", MOMENTS[moment]), *FIT, "--quiet")
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    if moment == "after":
        assert predictions(folder) == predictions(whole)
    else:
        assert (folder / "m.lw").read_bytes() == b"the old model"


@pytest.mark.parametrize("file", ["m.lw", "out.csv", "report.html"])
def test_stopped_while_a_file_is_written(file, folder, monkeypatch, capsys):
    """Ctrl-C between writing and moving: the old file is there, and nothing beside it."""
    (folder / file).write_bytes(b"the old one")
    replace = os.replace

    def stop(old, new, **more):
        if os.fspath(new).endswith(file):
            raise KeyboardInterrupt
        replace(old, new, **more)

    monkeypatch.setattr(os, "replace", stop)
    with contextlib.chdir(folder):
        code = main([*FIT, "--report", "report.html", "--quiet"])
        if file == "out.csv":
            assert code == 0
            code = main(["predict", "m.lw", "cases.csv", "-o", "out.csv", "--quiet"])
    assert code == 130
    assert (folder / file).read_bytes() == b"the old one"
    assert not hidden(folder)
    assert capsys.readouterr().err == "leastwise: interrupted\n"


@pytest.mark.parametrize("more", [[], ["--resume"]])
def test_a_folder_of_that_name_keeps_what_is_not_of_a_search(more, folder):
    mine = folder / "m.lw.checkpoint"
    (mine / "sub").mkdir(parents=True)
    for name in ("thesis.txt", "fingerprint", f"{1:032x}.step", f".{9:032x}.step.0a1b.tmp", "sub/00001.step"):
        (mine / name).write_text("mine")
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        assert main([*FIT, "--quiet", *more]) == 0
    assert sorted(str(p.relative_to(mine)) for p in mine.rglob("*")) == ["sub", "sub/00001.step", "thesis.txt"]
