"""How long is it from ``pip install`` to the first report?

A new virtual environment, ``pip install`` of this directory with the extra "cli", and ``leastwise fit`` with a report
on the table of ``leastwise demo`` (960 rows, 8 sites). Seconds are those of a clock, and of the processor; pip's time
includes downloads, which depend on the network.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._common import parse, parser, print_table, write_json

HERE = Path(__file__).resolve().parents[1]


def timed(command: list[str], folder: Path) -> tuple[float, float]:
    """Seconds of the clock and of the processor of a command."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - started, used


def main(argv: list[str] | None = None) -> None:
    """Run the steps and print their times."""
    options = parse(parser("benchmarks.first_report", __doc__ or "", threads=1), argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = str(folder / "venv" / "bin" / "leastwise")
        pip = str(folder / "venv" / "bin" / "pip")
        fit = "fit demo/cases.csv --target finding --task site --ignore case --max-error 0.02 --report report.html"
        figures = []
        for step, command in (
            ("virtual environment", [sys.executable, "-m", "venv", "venv"]),
            ("pip install .[cli]", [pip, "install", "-q", f"{HERE}[cli]"]),
            ("leastwise demo, which makes the table", [program, "demo", "--folder", "demo"]),
            ("leastwise fit with a report", [program, *fit.split()]),
        ):
            clock, processor = timed(command, folder)
            figures.append({"step": step, "clock": clock, "processor": processor})
            print(f"{step}: {clock:.1f} s, {processor:.1f} s of the processor", flush=True)
        assert (folder / "report.html").stat().st_size > 10_000
    rows = [[figure["step"], f"{figure['clock']:.1f}", f"{figure['processor']:.1f}"] for figure in figures]
    print_table("From pip install to the first report", ["", "clock, s", "processor, s"], rows)
    write_json(options, {"steps": figures})


if __name__ == "__main__":
    main()
