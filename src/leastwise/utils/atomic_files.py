"""Files that are there as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable
from typing import Any


def write_atomically(path: str, parts: Iterable[Any]) -> None:
    """Write to a new file beside ``path``, then put it in its place in one step.

    Whatever goes wrong, the file that was there before is as it was, and the new one is taken away; only a process
    that is killed on the spot can leave it, under a name such as ``.model.lw.0a1b2c3d.tmp``. A pipe or a device, such
    as ``/dev/null``, stays in its place and is written to.
    """
    if os.path.exists(path) and not os.path.isdir(path) and not os.path.isfile(path):
        _pass_on(path, parts)
        return
    path = os.path.realpath(path)  # a link stays a link
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path!r} is a folder: give the name of a file in it.")
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"There is no folder {folder!r} to write {name!r} to: make it first.")
    new = os.path.join(folder, f".{_start(name)}.{secrets.token_hex(4)}.tmp")
    try:
        _write(new, parts, _mode(path))
        os.replace(new, path)
    except OSError as error:
        _remove(new)
        why = os.strerror(error.errno) if error.errno else str(error)
        raise type(error)(
            error.errno, f"The file could not be written ({why}); what was there before is as it was", path
        ) from error
    except BaseException:  # Ctrl-C too
        _remove(new)
        raise
    _settle(folder)


def _pass_on(path: str, parts: Iterable[Any]) -> None:
    with open(path, "wb") as file:
        for part in parts:
            file.write(part)


def _start(name: str) -> str:
    """So much of a name that there is room for more; systems count bytes."""
    return os.fsencode(name)[:200].decode(errors="ignore")


def _write(new: str, parts: Iterable[Any], mode: int | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(new, flags, 0o666), "wb") as file:
        if mode is not None and hasattr(os, "fchmod"):
            with contextlib.suppress(OSError):
                os.fchmod(file.fileno(), mode)
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def _mode(path: str) -> int | None:
    """Who may read the file that is replaced."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return None


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _settle(folder: str) -> None:
    """The new name outlives a loss of power, where folders can be told so."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
