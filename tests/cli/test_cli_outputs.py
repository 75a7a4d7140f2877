"""Outputs that are inputs, streams that are closed or full, checkpoints without a place, searches that resume."""

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("typer")
if os.name != "posix":
    pytest.skip("links and streams of POSIX", allow_module_level=True)

from leastwise import (
    LSPC,
    LSSVC,
    LSSVR,
    KernelLogisticRegression,
    MultiLabelLSPC,
    MultiTaskKernelLogisticRegression,
    MultiTaskLSPC,
    MultiTaskLSSVC,
    MultiTaskLSSVR,
)
from leastwise.cli import checkpoint as checkpoints
from leastwise.cli import main
from leastwise.cli.checkpoint import SearchCheckpoint
from leastwise.model_selection.checkpoint import checkpointing

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2)).round(3)
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=60) > 0, "fault", "fine")
CELLS = "\n".join(["a,b,finding", *(f"{a},{b},{c}" for (a, b), c in zip(X, Y, strict=True))]) + "\n"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model file."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "cases.csv").write_text(CELLS)
    assert main(["fit", str(folder / "cases.csv"), "--target", "finding", "-o", str(folder / "m.lw"), "-q"]) == 0
    return (folder / "m.lw").read_bytes()


@pytest.fixture
def folder(trained, tmp_path, monkeypatch):
    (tmp_path / "cases.csv").write_text(CELLS)
    (tmp_path / "m.lw").write_bytes(trained)
    (tmp_path / "d").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -------------------------------------------------------------------- the same file


@pytest.mark.parametrize("report", ["m.lw", "d/../m.lw", "link.lw", "d/link.lw"])
@pytest.mark.parametrize("exists", [True, False])
def test_the_report_cannot_be_the_model_file(folder, capsys, report, exists):
    (folder / "link.lw").symlink_to("m.lw")
    (folder / "d" / "link.lw").symlink_to(folder / "m.lw")
    if not exists:
        (folder / "m.lw").unlink()
    assert main(["fit", "cases.csv", "--target", "finding", "-o", "m.lw", "--report", report]) == 2
    assert "both the model file and the report" in capsys.readouterr().err
    assert (folder / "m.lw").exists() == exists


@pytest.mark.parametrize("output", ["cases.csv", "d/../cases.csv", "link.csv"])
def test_predictions_cannot_replace_the_table(folder, capsys, output):
    (folder / "link.csv").symlink_to("cases.csv")
    assert main(["predict", "m.lw", "cases.csv", "-o", output]) == 2
    with open("cases.csv") as table:
        done = command("predict", "m.lw", "-", "-o", output, stdin=table)
    assert done.returncode == 2
    assert "is an input of this command" in done.stderr
    assert (folder / "cases.csv").read_text() == CELLS


# -------------------------------------------------------------------------- streams


def command(*arguments, shell="", **streams):
    """Run a command in a process of its own; ``shell`` holds redirections."""
    words = [sys.executable, "-m", "leastwise", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if shell:
        words = ["sh", "-c", f'exec "$@" {shell}', "sh", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run(words, text=True, env=environment, timeout=600, **pipes)


@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.parametrize(
    ("words", "shell"),
    [
        (("inspect", "m.lw"), ">&-"),
        (("inspect", "m.lw"), ">/dev/full"),
        (("evaluate", "m.lw", "-"), "<&-"),
        (("inspect", "absent.lw"), ">/dev/full"),
    ],
)
def test_streams_that_are_closed_or_full_give_exit_code_5(folder, words, shell, more):
    if "full" in shell and not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    done = command(*words, *more, shell=shell)
    assert done.returncode == 5
    assert done.stderr.startswith("leastwise: ")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_without_stderr_results_are_the_same(folder):
    plain, silent = (command("inspect", "m.lw", "--json", shell=shell) for shell in ("", "2>&-"))
    assert silent.returncode == 0
    assert silent.stdout == plain.stdout


# ---------------------------------------------------------------------- checkpoints


def test_a_checkpoint_that_cannot_be_written_does_not_end_a_fit(folder, capsys, monkeypatch):
    monkeypatch.setattr(checkpoints, "MIN_SECONDS", 0.0)
    (folder / "m.lw").unlink()
    (folder / "m.lw.checkpoint").write_text("a file where the directory would be")
    assert main(["fit", "cases.csv", "--target", "finding", "-o", "m.lw"]) == 0
    said = capsys.readouterr().err
    assert said.count("steps cannot be saved") == 1
    assert "cannot be resumed" in said
    assert (folder / "m.lw").exists()


class Stop(Exception):
    """Ends a search."""


def interrupt_after(count, directory, fit):
    """Steps of a search that ends after some of them."""
    checkpoint = SearchCheckpoint(directory, "this search")
    save, saved = checkpoint.save, []

    def saving(step, entry):
        save(step, entry)
        saved.append(step)
        if len(saved) == count:
            raise Stop

    checkpoint.save = saving
    with pytest.raises(Stop), checkpointing(checkpoint):
        fit()


TASKS = {"tasks": np.arange(60) % 3}
CASES = {
    "LSPC": (LSPC(random_state=0), {}),
    "LSSVR": (LSSVR(random_state=0), {}),
    "LSSVC": (LSSVC(random_state=0), {}),
    "MultiLabelLSPC": (MultiLabelLSPC(sigma=[0.7, 1.5], random_state=0), {}),
    "MultiTaskLSPC": (MultiTaskLSPC(sigma=[0.7, 1.5], random_state=0), TASKS),
    "MultiTaskLSSVC": (MultiTaskLSSVC(sigma=[0.7, 1.5], random_state=0), TASKS),
    "MultiTaskLSSVR": (MultiTaskLSSVR(sigma=[0.7, 1.5], random_state=0), TASKS),
    "KernelLogisticRegression": (KernelLogisticRegression(cv=3, sigma=[0.7, 1.5], random_state=0), {}),
    "MultiTaskKernelLogisticRegression": (
        MultiTaskKernelLogisticRegression(cv=3, sigma=1.0, sharing=[0.3, 0.7], random_state=0),
        TASKS,
    ),
}


@pytest.mark.parametrize(("model", "more"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_resumed_search_equals_an_unbroken_one(tmp_path, monkeypatch, model, more, count):
    """Also where later steps start from the solutions of earlier ones."""
    monkeypatch.setattr(checkpoints, "MIN_SECONDS", 0.0)
    values = isinstance(model, LSSVR | MultiTaskLSSVR)
    y = X[:, 0] if values else (Y == "fault").astype(int)
    whole = dict(vars(model.fit(X, y, **more)))
    interrupt_after(count, tmp_path / "steps", lambda: model.fit(X, y, **more))
    checkpoint = SearchCheckpoint(tmp_path / "steps", "this search")
    checkpoint.open(resume=True)
    with checkpointing(checkpoint):
        model.fit(X, y, **more)
    assert checkpoint.n_read >= count  # more if a step occurs twice in the search
    assert model.alpha_ == whole["alpha_"]
    name = "heldout_prediction_" if values else "heldout_scores_"
    np.testing.assert_array_equal(getattr(model, name), whole[name])
    for column, values in whole["cv_results_"].items():
        np.testing.assert_array_equal(model.cv_results_[column], values, err_msg=column)


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_a_resumed_search_knows_points_that_did_not_converge(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "MIN_SECONDS", 0.0)
    model, y = KernelLogisticRegression(cv=3, sigma=1.0, max_iter=1, random_state=0), (Y == "fault").astype(int)
    seen = {}
    for resume in (False, True):
        checkpoint = SearchCheckpoint(tmp_path / "steps", "this search")
        checkpoint.open(resume)
        with checkpointing(checkpoint), pytest.warns(UserWarning, match="converge") as caught:
            model.fit(X, y)
        seen[resume] = [str(w.message) for w in caught]
    assert checkpoint.n_read > 0
    assert seen[True] == seen[False]
