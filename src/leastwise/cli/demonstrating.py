"""``leastwise demo``: every command on a made-up table, as one would type it."""

from __future__ import annotations

import os
import shlex
import tempfile
from contextlib import chdir
from pathlib import Path

import numpy as np

from leastwise.cli.failing import UsageError
from leastwise.cli.showing import Shown
from leastwise.datasets import make_related_tasks
from leastwise.tables import Table, write_table

#: What the demonstration types.
COMMANDS = (
    "leastwise fit cases.csv --target finding --task site --ignore case --max-error 0.02 --report report.html",
    "leastwise predict cases.lw new.csv --keep case,site -o decisions.csv",
    "head -4 decisions.csv",
    "leastwise evaluate cases.lw later.csv",
    "leastwise inspect cases.lw",
)
#: What it writes.
FILES = ("cases.csv", "new.csv", "later.csv", "cases.lw", "report.html", "decisions.csv")


def run(shown: Shown, *, folder: Path | None) -> None:
    """Make the files and run the commands on them."""
    if folder is not None:
        taken = [name for name in FILES if (folder / name).exists()]
        if taken:
            raise UsageError(f"{folder} has {', '.join(taken)} already: give a folder without, or take these away.")
        folder.mkdir(parents=True, exist_ok=True)
        _play(shown, folder)
        shown.say(f"\nThe files are in {folder}.")
        return
    with tempfile.TemporaryDirectory() as place:
        _play(shown, Path(place))


def _play(shown: Shown, folder: Path) -> None:
    make_files(folder)
    shown.say(
        "Eight sites, each with equipment of its own, send cases; cases.csv has 960 with their findings. New ones\n"
        "are to be decided automatically where at most 2 % of the decisions are wrong, the rest by a person.\n"
    )
    with chdir(folder):
        shown.answer["exit codes"] = [_typed(shown, command) for command in COMMANDS]


def _typed(shown: Shown, command: str) -> int:
    """Show a command, and run it."""
    from leastwise.cli.app import run as run_command

    shown.say(f"\n$ {command}")
    name, *arguments = shlex.split(command)
    if name == "head":
        lines = Path(arguments[-1]).read_text().splitlines()[: -int(arguments[0])]
        shown.say("\n".join(lines))
        return 0
    if shown.json:  # one object only: what the commands say themselves is left out
        with open(os.devnull, "w") as nowhere:
            from contextlib import redirect_stdout

            with redirect_stdout(nowhere):
                return run_command([*arguments, "--quiet"])
    code = run_command([*arguments, "--quiet"] if shown.quiet else arguments)
    if code:
        raise RuntimeError(f"{command!r} ended with the exit code {code}.")
    return code


def make_files(folder: Path) -> None:
    """Cases of today with their findings, new ones without, and what these turned out to be later."""
    cases = make_cases(n_rows=270, seed=3)
    order = np.argsort(np.tile(np.arange(270), 8), kind="stable")  # cases come in from all sites in turn
    cases = cases.take(order)
    known, later = cases.take(np.arange(960)), cases.take(np.arange(960, len(cases)))
    write_table(known, folder / "cases.csv")
    write_table(later.without(["finding"]), folder / "new.csv")
    write_table(later, folder / "later.csv")


def make_cases(n_rows: int, seed: int) -> Table:
    """Sites with rules much like one another's; a column of words, one of dates, and cells that are missing."""
    data = make_related_tasks(n_tasks=8, n_rows=n_rows, relatedness=0.9, noise=0.05, random_state=seed)
    rng, n = np.random.default_rng(seed), len(data.y)
    shade = np.where(rng.random(n) < 0.02, np.nan, np.round(data.X[:, 1], 4))
    line = rng.choice(["north", "south", "west"], n).astype(object)
    line[rng.random(n) < 0.05] = None
    return Table.of(
        {
            "case": [f"C{k:05d}" for k in range(n)],
            "site": [f"site {t}" for t in data.task],
            "size": np.round(data.X[:, 0], 4),
            "shade": shade,
            "line": line,
            "finding": np.where(data.y == 1, "fault", "fine").astype(object),
        }
    )
