"""Comparisons with other methods that are measured in pieces, and the seconds that they report.

A long comparison can be run set by set, or method by method: ``--sets`` and ``--methods`` choose a part, and
``--add`` keeps the figures that are in the output file already, except those that are measured again. The file names
the commands of all pieces.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks._common import capped, write_json
from papers._common.timing import Timed

#: Fields that tell records of one file apart.
IDENTITY = ("data", "run", "hidden", "way", "method", "rule")
#: Options that choose a piece; the command of the whole does not have them.
PIECES = ("--sets", "--methods", "--add", "--resume", "--output")


def add_options(p: argparse.ArgumentParser, sets: Sequence[str], methods: Sequence[str] = ()) -> None:
    """The options ``--sets``, ``--methods`` and ``--add``."""
    p.add_argument("--sets", nargs="+", choices=list(sets), default=list(sets))
    if methods:
        p.add_argument("--methods", nargs="+", choices=list(methods), default=list(methods))
    p.add_argument("--add", action="store_true", help="keep the other figures of the output file")


def seconds_of(done: Timed, args: argparse.Namespace) -> float:
    """Processor seconds on one thread; on several, which may be processes, those of the clock."""
    return done.cpu if args.threads == 1 else done.wall


def gathered(args: argparse.Namespace, records: Iterable[dict]) -> list[dict]:
    """All records, with limited threads; each is written to disk when it is measured."""
    found = earlier_figures(args)
    with capped(args):
        for record in records:
            found = [f for f in found if identity(f) != identity(record)] + [record]
            write_json(args, {"figures": found}, say=False)
    return found


def identity(record: dict) -> tuple:
    """What tells a record apart from the others of its file."""
    return tuple(record.get(key) for key in IDENTITY)


def earlier(args: argparse.Namespace) -> dict[str, Any]:
    """What the output file has, if it is kept."""
    return json.loads(args.output.read_text()) if getattr(args, "add", False) and args.output.is_file() else {}


def earlier_figures(args: argparse.Namespace) -> list[dict]:
    """Figures of the output file that are kept; the commands of the pieces are noted."""
    if not (known := earlier(args)):
        return []
    head = known["machine"]
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    before = head.get("pieces") or [{"command": head["command"], "date": head["date"]}]
    args.pieces = [*before, {"command": args.command, "date": now}]
    args.command = whole_command(args.command)
    return known["figures"]


def whole_command(command: str) -> str:
    """The command that measures everything at once.

    >>> whole_command("python -m benchmarks.x --sets a b --runs 3 --add")
    'python -m benchmarks.x --runs 3'
    """
    kept, skip = [], False
    for word in command.split(" "):
        if word.startswith("--"):
            skip = word in PIECES
        if not skip:
            kept.append(word)
    return " ".join(kept)
