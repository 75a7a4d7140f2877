"""``python -m benchmarks``: what is complete is not repeated, and one failure does not stop the rest."""

import json
import re
from pathlib import Path

import pytest

from benchmarks import __main__ as runner
from papers import PAPERS


@pytest.fixture
def three(monkeypatch):
    """Three runs; the second fails the first time."""
    calls = []

    def measure(run, folder, args):
        calls.append(run.result)
        if run.result == "b" and calls.count("b") == 1:
            raise ValueError("broken")
        file = folder / runner.UNFINISHED / f"{run.result}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"number": len(calls)}))

    monkeypatch.setattr(runner, "RUNS", tuple(runner.Run(name, 1, f"{name} --runs 1") for name in "abc"))
    monkeypatch.setattr(runner, "measure", measure)
    return calls


def test_a_second_call_continues_the_first(three, tmp_path, capsys):
    assert runner.main(["all", "--output", str(tmp_path)]) == 1
    assert three == ["a", "b", "c"]
    assert "2 of 3 complete" in capsys.readouterr().out
    assert sorted(file.stem for file in tmp_path.glob("*.json")) == ["a", "c"]
    assert runner.main(["all", "--output", str(tmp_path)]) == 0
    assert three == ["a", "b", "c", "b"]
    assert json.loads((tmp_path / "a.json").read_text()) == {"number": 1}
    assert runner.main(["all", "--output", str(tmp_path)]) == 0  # complete: the next call starts anew
    assert three == ["a", "b", "c", "b", "a", "b", "c"]


def test_named_results_are_measured_again_unless_they_are_to_be_continued(three, tmp_path):
    for more in ([], [], ["--continue"]):
        assert runner.main(["a", "--output", str(tmp_path), *more]) == 0
    assert three == ["a", "a"]


def test_an_incomplete_run_leaves_the_published_result(three, tmp_path, monkeypatch):
    (tmp_path / "a.json").write_text("old")

    def measure(run, folder, args):
        (folder / runner.UNFINISHED).mkdir()
        (folder / runner.UNFINISHED / "a.json").write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "measure", measure)
    with pytest.raises(KeyboardInterrupt):
        runner.main(["a", "--output", str(tmp_path)])
    assert (tmp_path / "a.json").read_text() == "old"


@pytest.mark.parametrize("argv", [["all", "--quick"], [], ["calibrated"]])
def test_wrong_calls_say_what_is_allowed(argv, capsys):
    with pytest.raises(SystemExit):
        runner.main(argv)
    assert any(word in capsys.readouterr().err for word in ("--output", "--list", "calibrated_peers"))


def test_the_papers_results_have_the_names_of_their_experiments():
    """The name in the list is the file that the experiment writes."""
    from papers.__main__ import COMMON, parser

    assert len(runner.PAPERS) > 10
    for run in runner.PAPERS:
        args = vars(parser().parse_args(run.command.split()[1:]))
        about, (part,) = PAPERS[args["paper"]], args["parts"]
        experiment = next(e for e in about.experiments if e.name == part)
        given = {k: tuple(v) if isinstance(v, list) else v for k, v in args.items() if v is not None}
        settings = experiment.made(False, {k: v for k, v in given.items() if k not in COMMON})
        assert run.result == "_".join([experiment.record, *settings.ways()])


#: Scripts for work on the package, which compare two versions of it.
DEVELOPMENT = {"architecture", "fit_costs"}


def test_every_script_is_run_and_described():
    folder = Path(runner.__file__).parent
    scripts = {file.stem for file in folder.glob("*.py") if not file.stem.startswith("_")} - {"pages"}
    assert scripts - DEVELOPMENT == {run.script for run in runner.RUNS} - {"papers"}
    listed = re.findall(r"^\| `(\w+)` \|", (folder / "README.md").read_text(), flags=re.M)
    assert sorted(listed) == sorted(scripts)


def test_every_result_of_a_page_is_written_by_a_run():
    """Files that a table reads are results of the list."""
    # GPyTorch may not be installed; work on the package is measured by hand.
    kept = {"task_peers_gp", "architecture", "architecture_before", "fit_costs"}
    folder = Path(runner.__file__).parent
    text = "".join(file.read_text() for file in folder.glob("_page_*.py"))
    read = set(re.findall(r'(?:results|_figures)\("([\w-]+)"\)', text))
    assert len(read) > 30
    assert read - kept <= {run.result for run in runner.RUNS}
