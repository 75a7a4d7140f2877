"""Measure the cost of fits, predictions and start-up, and compare it with another version of the package.

Times are processor seconds on one thread, the minimum over several processes; each process also repeats short
calls. "import" is a new Python process that runs ``from leastwise import LSPC``; "help" runs ``leastwise --help``.
Both count the user and system seconds of the whole process. Memory is reported for the large fits: the peak of the
process up to the end of the fit, libraries and data included.

``--compare`` also measures the package in a second source folder. Runs of the two versions alternate, so that changes
in machine load affect both equally. The ratio is this version / other version: below 1, this version is cheaper.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks._common import print_table, write_json
from benchmarks._costs import COSTS

HERE = Path(__file__).resolve().parent.parent
STARTS = {
    "import": ["-c", "import leastwise; from leastwise import LSPC"],
    "help": ["-m", "leastwise", "--help"],
}


def installed() -> Path:
    """The folder that holds the package as it is imported here."""
    spec = importlib.util.find_spec("leastwise")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent.parent


def environment(source: Path) -> dict[str, str]:
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **one, "PYTHONPATH": os.pathsep.join([str(source), str(HERE)])}


def measure_fit(source: Path, name: str, scale: float) -> dict[str, float]:
    """One process of ``benchmarks._costs``."""
    command = [sys.executable, "-m", "benchmarks._costs", name, str(scale)]
    done = subprocess.run(command, env=environment(source), cwd=HERE, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    found = json.loads(done.stdout)
    if Path(found["root"]).parent != source:
        raise SystemExit(f"measured {found['root']} instead of {source}")
    return found["record"]


def measure_start(source: Path, name: str) -> dict[str, float]:
    """User and system seconds of a process, with those that it started."""
    command = [sys.executable, *STARTS[name]]
    process = subprocess.Popen(command, env=environment(source), cwd=HERE, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{name}: {' '.join(command)} failed")
    return {"start": usage.ru_utime + usage.ru_stime}


def run(args: argparse.Namespace, sources: dict[str, Path]) -> list[dict[str, Any]]:
    """The least of the repeats of each measure, the versions in turns."""
    found: dict[tuple[str, str, str], float] = {}
    names = [*COSTS, *STARTS]
    for name in [n for n in names if not args.only or args.only in n]:
        for _ in range(args.repeats):
            for version, source in sources.items():
                new = measure_start(source, name) if name in STARTS else measure_fit(source, name, args.scale)
                for measure, value in new.items():
                    key = (name, measure, version)
                    found[key] = min(value, found.get(key, value))
        print(name, flush=True)
    return [_record(name, measure, sources, found) for name, measure in dict.fromkeys(k[:2] for k in found)]


def _record(
    name: str, measure: str, sources: dict[str, Path], found: dict[tuple[str, str, str], float]
) -> dict[str, Any]:
    values = {version: found[name, measure, version] for version in sources}
    ratio = {"ratio": values["this"] / values["other"]} if len(values) > 1 else {}
    return {"case": name, "measure": measure, **values, **ratio}


def report(found: list[dict[str, Any]]) -> None:
    units = {"peak_mb": "peak MB"}
    header = [key for key in found[0] if key not in ("case", "measure")]
    for title, wanted in (("Processor seconds", {"fit", "predict", "start"}), ("Memory", {"peak_mb"})):
        chosen = [f for f in found if f["measure"] in wanted]
        rows = [[f["case"], units.get(f["measure"], f["measure"]), *(f[key] for key in header)] for f in chosen]
        if rows:
            print_table(title, ["case", "measure", *header], rows)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    p = argparse.ArgumentParser(
        prog="python -m benchmarks.fit_costs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--json", metavar="FILE", type=Path, dest="output", help="write the figures to this file")
    p.add_argument("--compare", metavar="SRC_DIR", type=Path, help="source folder that holds another leastwise")
    p.add_argument("--only", metavar="TEXT", help="cases whose name has this text")
    p.add_argument("--repeats", type=int, default=3, help="processes for each case (default 3)")
    p.add_argument("--quick", action="store_true", help="a tenth of the rows, to see that it runs")
    args = p.parse_args(argv)
    args.scale, args.threads = 0.1 if args.quick else 1.0, 1
    sources = {"this": installed()}
    if args.compare:
        if not (args.compare / "leastwise" / "__init__.py").is_file():
            raise SystemExit(f"--compare: {args.compare} has no folder leastwise; give the folder that holds it")
        sources["other"] = args.compare.resolve()
    found = run(args, sources)
    report(found)
    if args.output:
        others = " --compare DIR" if args.compare else ""
        args.command = f"{p.prog} --json {args.output.name}{others}"
        write_json(args, {"figures": found})


if __name__ == "__main__":
    main()
