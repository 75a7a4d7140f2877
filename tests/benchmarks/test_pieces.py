"""Comparisons that are measured in several pieces."""

import json

import pytest

from benchmarks import _pieces, calibrated_peers
from benchmarks._common import parse, parser


def arguments(folder, *words):
    p = parser("benchmarks.calibrated_peers", "", threads=1, runs=1)
    _pieces.add_options(p, ["one", "two"], ["ours", "theirs"])
    return parse(p, ["--output", str(folder / "figures.json"), *words])


def record(data, method, loss):
    return {"data": data, "run": 0, "method": method, "log_loss": loss}


def test_a_piece_replaces_what_it_measures_and_keeps_the_rest(tmp_path):
    first = [record("one", "ours", 1.0), record("one", "theirs", 2.0)]
    _pieces.gathered(arguments(tmp_path), first)
    args = arguments(tmp_path, "--sets", "one", "two", "--methods", "ours", "--add")
    found = _pieces.gathered(args, [record("one", "ours", 0.5), record("two", "ours", 3.0)])
    assert found == [record("one", "theirs", 2.0), record("one", "ours", 0.5), record("two", "ours", 3.0)]
    written = json.loads((tmp_path / "figures.json").read_text())
    assert written["figures"] == found
    assert written["machine"]["command"] == "python -m benchmarks.calibrated_peers"
    commands = [piece["command"] for piece in written["machine"]["pieces"]]
    assert len(commands) == 2
    assert commands[1].endswith("--sets one two --methods ours --add")


def test_without_add_a_run_starts_anew(tmp_path):
    _pieces.gathered(arguments(tmp_path), [record("one", "ours", 1.0)])
    found = _pieces.gathered(arguments(tmp_path), [record("two", "ours", 2.0)])
    assert [f["data"] for f in found] == ["two"]
    assert "pieces" not in json.loads((tmp_path / "figures.json").read_text())["machine"]


@pytest.mark.parametrize("option", ["--sets a", "--methods a b", "--add", "--output x.json", ""])
def test_the_command_of_the_whole_has_no_options_of_pieces(option):
    command = f"python -m benchmarks.x {option} --runs 3".replace("  ", " ")
    assert _pieces.whole_command(command) == "python -m benchmarks.x --runs 3"


def test_two_pieces_of_a_comparison_give_one_table(tmp_path, capsys):
    command = ["--quick", "--sets", "digits", "--output", str(tmp_path / "peers.json")]
    calibrated_peers.main([*command, "--methods", "boosting"])
    calibrated_peers.main([*command, "--methods", "ours", "--add"])
    figures = json.loads((tmp_path / "peers.json").read_text())["figures"]
    ours = [calibrated_peers.OURS, calibrated_peers.GAUSSIAN]
    assert [f["method"] for f in figures] == ["HistGradientBoosting", *ours]
    assert all(0 < f["log_loss"] < 1 and f["seconds"] > 0 for f in figures)
    assert "HistGradientBoosting" in capsys.readouterr().out.split("Summary")[-2]
