"""Atomic writes: a file is written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable
from typing import Any


def write_atomically(path: str, parts: Iterable[Any]) -> None:
    """Write to a temporary file beside ``path``, then rename it.

    On any error the old file is unchanged and the temporary file is removed; only a killed process can leave it
    behind, under a name such as ``.model.lw.0a1b2c3d.tmp``. Pipes and devices, such as ``/dev/null``, are written
    directly.
    """
    if os.path.exists(path) and not os.path.isdir(path) and not os.path.isfile(path):
        try:
            with open(path, "wb") as file:
                for part in parts:
                    file.write(part)
        except OSError as error:  # errors of writing do not name the file
            raise type(error)(error.errno, error.strerror or str(error), path) from error
        return
    path = os.path.realpath(path)  # keep symbolic links
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path!r} is a directory: give the name of a file.")
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"The directory {folder!r} of {name!r} does not exist: create it first.")
    new = os.path.join(folder, f".{_start(name)}.{secrets.token_hex(4)}.tmp")
    try:
        _write(new, parts, _mode(path))
        os.replace(new, path)
    except OSError as error:
        _remove(new)
        why = os.strerror(error.errno) if error.errno else str(error)
        raise type(error)(
            error.errno, f"The file could not be written ({why}); the old file is unchanged", path
        ) from error
    except BaseException:  # Ctrl-C too
        _remove(new)
        raise
    _settle(folder)


def _start(name: str) -> str:
    """The start of a name, so that the temporary name is not too long in bytes."""
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
    """Permissions of the file to replace."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return None


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _settle(folder: str) -> None:
    """Flush the directory, so that the new name survives a power failure."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
