"""Run the commands of the page cli.md in a new folder, and write what they say into the page.

python docs/make_transcript.py
"""

import os
import re
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).resolve().parent / "cli.md"
#: The block that is written anew.
BLOCK = re.compile(r"(<!-- transcript -->\n```text\n)(.*?)(```\n<!-- end -->)", re.S)

COMMANDS = (
    "head -4 cases.csv",
    "leastwise fit cases.csv --target finding --task site --ignore case --max-error 0.02 --report report.html",
    "leastwise predict cases.lw new.csv --keep case,site -o decisions.csv",
    "head -4 decisions.csv",
    "leastwise evaluate cases.lw later.csv",
    "cat new.csv | leastwise predict cases.lw - --quiet | head -2",
    "sed 3s/0.2185/big/ cases.csv | leastwise fit - --target finding -o other.lw",
)


def transcript() -> str:
    """The commands and what they say, stdout and stderr as they come."""
    from leastwise.cli.demo import make_files

    with tempfile.TemporaryDirectory() as place:
        folder, programs = Path(place) / "work", Path(place) / "bin"
        folder.mkdir()
        make_files(folder)
        environment = _environment(programs)
        said = [f"$ {command}\n{_output(command, folder, environment)}" for command in COMMANDS]
    return "\n".join(said)


def _environment(programs: Path) -> dict[str, str]:
    """Where `leastwise` is this very one, installed or not."""
    programs.mkdir()
    program = programs / "leastwise"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m leastwise "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    paths = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}
    return {**os.environ, **paths, "OPENBLAS_NUM_THREADS": "1"}


def _output(command: str, folder: Path, environment: dict[str, str]) -> str:
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(command, shell=True, cwd=folder, env=environment, text=True, check=False, **both).stdout


def written() -> str:
    """What the page has now."""
    found = BLOCK.search(PAGE.read_text())
    if found is None:
        raise ValueError(f"{PAGE.name} has no block for the transcript.")
    return found.group(2)


def main() -> None:
    """Write it into the page."""
    new = transcript()
    PAGE.write_text(BLOCK.sub(lambda match: match.group(1) + new + match.group(3), PAGE.read_text()))


if __name__ == "__main__":
    main()
