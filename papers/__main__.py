"""Reproduce the tables and figures of a paper, next to the published numbers: python -m papers PAPER."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from papers import PAPERS, DataAbsent, Paper, reproduce
from papers._common.experiments import shown

#: Options common to all papers.
COMMON = ("paper", "data", "output", "quick", "parts", "threads")


def parser() -> argparse.ArgumentParser:
    """Build the parser: one subcommand for each paper, with the options of its experiments."""
    p = argparse.ArgumentParser(prog="python -m papers", description=__doc__.partition(":")[0])
    papers = p.add_subparsers(dest="paper", required=True, metavar="PAPER")
    for name, about in PAPERS.items():
        _add_options(papers.add_parser(name, help=about.title, description=_described(about), **_RAW), about)
    return p


_RAW: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter}


def _described(about: Paper) -> str:
    lines = [f"  {e.name:<15}{e.place}: {e.title}" for e in about.experiments]
    return "\n".join([f"{about.title}.", "", "parts:", *lines, "", about.remark]).rstrip()


def _add_options(p: argparse.ArgumentParser, about: Paper) -> None:
    p.add_argument("--data", metavar="DIR", help="folder of the data sets; default: the variable LEASTWISE_DATA")
    p.add_argument(
        "--output", metavar="DIR", help="folder for results (JSON) and figures (PNG); default: nothing is written"
    )
    p.add_argument("--quick", action="store_true", help="fewer repetitions and sizes, about a minute")
    p.add_argument(
        "--parts", nargs="+", choices=about.names, metavar="PART", help="parts to run; default: those of the paper"
    )
    p.add_argument("--threads", type=int, default=1, help="number of threads for every method (default 1)")
    for name in dict.fromkeys(name for e in about.experiments for name in e.options):
        p.add_argument(f"--{name.replace('_', '-')}", **_argument(about, name))


def _argument(about: Paper, name: str) -> dict[str, Any]:
    """Arguments of add_argument for an option, with the defaults of all experiments that have it."""
    having = [e for e in about.experiments if name in e.options]
    field = having[0].options[name]
    defaults = {e.name: shown(getattr(e.made(False, {}), name)) for e in having}
    told = "; ".join(f"{e}: {value}" for e, value in defaults.items())
    common: dict[str, Any] = {"default": None, "help": f"{field.metadata['says']} ({told})"}
    if field.metadata["kind"] is bool:
        return {**common, "action": "store_true"}
    many = {"nargs": "+"} if isinstance(field.default, tuple) else {}
    choices = {c: None for e in having for c in e.options[name].metadata["choices"] or ()}
    limited = {"choices": list(choices)} if choices else {}
    return {**common, "type": field.metadata["kind"], **many, **limited}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 2 if requested data are missing or an option is invalid."""
    args = vars(parser().parse_args(argv))
    common = {name: args.pop(name) for name in COMMON}
    options: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in args.items() if v is not None
    }
    try:
        reproduce(**common, **options, report=partial(print, flush=True))
    except (DataAbsent, ValueError) as error:
        print(f"{common['paper']}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
