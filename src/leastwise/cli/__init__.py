"""The command line ``leastwise``: fit, predict, evaluate, inspect, report, export, demo, reproduce.

:mod:`leastwise.cli.app` declares the commands. The work of a command is in the module that its declaration names,
which is imported when the command runs: ``--help`` needs neither numpy nor scikit-learn.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; :mod:`leastwise.cli.output` lists the codes."""
    try:
        return _main(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt:  # before the command started
        print("leastwise: interrupted", file=sys.stderr)
        return 130


def _main(arguments: list[str]) -> int:
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        print(f"leastwise: the command line needs {error.name}: pip install 'leastwise[cli]'", file=sys.stderr)
        return 6
    from leastwise.cli.app import run

    return run(arguments)
