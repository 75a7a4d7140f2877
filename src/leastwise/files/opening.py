"""A model file, opened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from leastwise.files.container import Head, read_head
from leastwise.files.errors import FileError

Path = str | os.PathLike[str]


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, Head]]:
    """The file with its header; errors then say which file it is."""
    name = os.fspath(path)
    if os.path.isdir(name):
        raise IsADirectoryError(f"{name!r} is a folder: give the name of a model file in it.")
    if os.path.exists(name) and not os.path.isfile(name):  # to open a pipe would wait for ever
        raise FileError(f"{name!r} cannot be read: it is no regular file.")
    with open(name, "rb") as file:
        try:
            yield file, read_head(file)
        except FileError as error:
            raise FileError(f"{name!r} cannot be read: {error}.") from error.__cause__
