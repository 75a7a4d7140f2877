"""A command from its options to its exit code: errors become one line on stderr, warnings become notes."""

from __future__ import annotations

import json as json_text
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from leastwise.cli.failing import BUG, DONE, INTERRUPTED, USAGE, explained
from leastwise.cli.showing import Shown


class Ended(Exception):
    """A command has ended, and said why."""


def worked(module: str, quiet: bool, json: bool, options: dict[str, Any]) -> int:
    """Do the work of a command, in the module of its name, and return its exit code."""
    source = str(options.get("data") or "").replace("-", "<stdin>", options.get("data") == "-")
    try:
        shown = Shown(quiet, json)
        with _stoppable(), _warnings_told(shown):
            import_module(f"leastwise.cli.{module}").run(shown, **options)
            shown.end()
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (KeyboardInterrupt, Exception) as error:
        code, line = explained(error, source)
        _complain(line if code == BUG else f"leastwise: {line}", code, json)
        return code
    return DONE


def ended(call: Callable[[], Any], arguments: list[str]) -> int:
    """The exit code of a call of the command line; what it says of wrong options is one line."""
    try:
        code = call()
    except SystemExit as end:
        code = end.code
    except Ended as end:
        return int(end.args[0])
    except Exception as error:
        if type(error).__name__ == "Abort":  # as older versions of typer say so
            raise KeyboardInterrupt from None
        if not hasattr(error, "format_message"):
            return _broken(error)
        command = next((word for word in arguments[:1] if not word.startswith("-")), "")
        see = f"leastwise {command} --help".replace("  ", " ")
        said = " ".join(error.format_message().replace("Value error, ", "").split()).removesuffix(".")
        _complain(f"leastwise: {said}. See {see}", USAGE, "--json" in arguments)
        return USAGE
    if code == INTERRUPTED:  # while options were read
        raise KeyboardInterrupt
    return code if isinstance(code, int) else DONE


def _broken(error: Exception) -> int:
    _complain(explained(error)[1], BUG, False)
    return BUG


def _complain(line: str, code: int, json: bool) -> None:
    """Say what is wrong on stderr, and to programs on stdout too."""
    print(line, file=sys.stderr)
    if json:
        said = line.removeprefix("leastwise: ")
        print(json_text.dumps({"error": said, "exit_code": code}, indent=2, ensure_ascii=False))


@contextmanager
def _stoppable() -> Iterator[None]:
    """SIGTERM ends a command as Ctrl-C does: what is half done is taken away."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupted(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


@contextmanager
def _warnings_told(shown: Shown) -> Iterator[None]:
    """Warnings of the library are notes, without the lines of code that they come from."""
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: shown.warn(str(message))
        yield
