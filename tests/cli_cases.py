"""Commands of the command line as tests run them, and a table for them."""

import contextlib
import io
import json

import numpy as np

from leastwise.cli import main
from leastwise.cli.output import DONE
from leastwise.tables import Table


def cases(n=120, seed=0):
    """Words, gaps, a task, and something to learn."""
    rng = np.random.default_rng(seed)
    size, shade = rng.normal(size=(2, n)).round(3)
    line = rng.choice(["north", "south", "west"], n).astype(object)
    fault = size + (line == "north") + 0.3 * rng.normal(size=n) > 0.3
    line[rng.random(n) < 0.1] = None
    return Table.of(
        {
            "case": [f"C{i:04d}" for i in range(n)],
            "site": [f"site {i % 3}" for i in range(n)],
            "size": np.where(rng.random(n) < 0.05, np.nan, size),
            "shade": shade,
            "line": line,
            "weighs": (2 * size + shade).round(4),
            "broken": np.where(fault, "yes", "no"),
            "late": np.where(shade > 0, "1", "0"),
            "finding": np.where(fault, "fault", "fine"),
        }
    )


def spoken(*arguments):
    """The exit code, stdout and stderr of a command."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(map(str, arguments)))
    out.flush()
    return code, out.buffer.getvalue().decode(), err.getvalue()


def answered(*arguments):
    """What a command says to programs."""
    code, out, err = spoken(*arguments, "--json")
    assert code == DONE, err
    return json.loads(out)
