"""``leastwise demo``: the commands on a synthetic table, as one would type them."""

from __future__ import annotations

import os
import shlex
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path

import numpy as np

from leastwise.cli.output import Output, UsageError
from leastwise.datasets import make_related_tasks
from leastwise.tables import Table, write_table

COMMANDS = (
    "leastwise fit cases.csv --target finding --task site --ignore case --max-error 0.02 --report report.html",
    "leastwise predict cases.lw new.csv --keep case,site -o decisions.csv",
    "head -4 decisions.csv",
    "leastwise evaluate cases.lw later.csv",
    "leastwise inspect cases.lw",
)
#: Files that the demonstration writes.
FILES = ("cases.csv", "new.csv", "later.csv", "cases.lw", "report.html", "decisions.csv")


def run(output: Output, *, folder: Path | None) -> None:
    """Make the files and run the commands on them."""
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            _run_all(output, Path(temporary))
        return
    existing = [name for name in FILES if (folder / name).exists()]
    if existing:
        raise UsageError(f"{folder} already contains {', '.join(existing)}: choose another directory or remove them.")
    folder.mkdir(parents=True, exist_ok=True)
    _run_all(output, folder)
    output.print(f"\nThe files are in {folder}.")


def _run_all(output: Output, folder: Path) -> None:
    make_files(folder)
    output.print(
        "Eight sites, each with its own equipment, send cases; cases.csv has 960 of them with known findings. New\n"
        "cases are decided automatically as long as at most 2 % of these decisions are wrong; a person reviews the\n"
        "others.\n"
    )
    with chdir(folder):
        output.result["exit codes"] = [_run_command(output, command) for command in COMMANDS]


def _run_command(output: Output, command: str) -> int:
    """Show a command and run it."""
    from leastwise.cli.app import run as run_leastwise

    output.print(f"\n$ {command}")
    name, *arguments = shlex.split(command)
    if name == "head":
        lines = Path(arguments[-1]).read_text().splitlines()[: -int(arguments[0])]
        output.print("\n".join(lines))
        return 0
    if output.json:  # stdout holds one JSON object: hide what the commands print
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
            return run_leastwise([*arguments, "--quiet"])
    code = run_leastwise([*arguments, "--quiet"] if output.quiet else arguments)
    if code:
        raise RuntimeError(f"{command!r} failed with exit code {code}.")
    return code


def make_files(folder: Path) -> None:
    """Write cases with their findings, new cases without, and the new cases with the findings known later."""
    # Draw cases from eight sites with related rules; with a categorical column and missing values.
    data = make_related_tasks(n_tasks=8, n_rows=270, relatedness=0.9, noise=0.05, random_state=3)
    rng, n = np.random.default_rng(3), len(data.y)
    shade = np.where(rng.random(n) < 0.02, np.nan, np.round(data.X[:, 1], 4))
    line = rng.choice(["north", "south", "west"], n).astype(object)
    line[rng.random(n) < 0.05] = None
    cases = Table.of(
        {
            "case": [f"C{k:05d}" for k in range(n)],
            "site": [f"site {t}" for t in data.task],
            "size": np.round(data.X[:, 0], 4),
            "shade": shade,
            "line": line,
            "finding": np.where(data.y == 1, "fault", "fine").astype(object),
        }
    )
    order = np.argsort(np.tile(np.arange(270), 8), kind="stable")  # the sites take turns
    cases = cases.take(order)
    known, later = cases.take(np.arange(960)), cases.take(np.arange(960, len(cases)))
    write_table(known, folder / "cases.csv")
    write_table(later.without(["finding"]), folder / "new.csv")
    write_table(later, folder / "later.csv")
