"""Anything that the registry knows, in a file."""

from __future__ import annotations

import os
import platform
from typing import Any

import numpy as np
import scipy
import sklearn

from leastwise.persistence.arrays import place, read_array, read_entries
from leastwise.persistence.container import Path, compose, opened, write_parts
from leastwise.persistence.decode import Decoder
from leastwise.persistence.encode import Encoder
from leastwise.utils.atomic_files import write_atomically


def write_thing(thing: Any, path: Path, keep: str = "all", dtype: str | None = None) -> None:
    """Write a registered object, as a whole or not at all; see :func:`leastwise.save` for the options."""
    encoder = Encoder(single=dtype == "float32", report=keep == "all")
    root = encoder.node(thing, "model")["object"]
    place(encoder.entries)
    header = {
        "keep": keep,
        "dtype": dtype,
        "versions": _versions(),
        "root": root,
        "objects": encoder.objects,
        "arrays": encoder.entries,
    }
    write_atomically(os.fspath(path), write_parts(compose(header), encoder.arrays))


def read_thing(path: Path, mmap: bool = True, verify: bool = True) -> tuple[Any, dict[str, Any]]:
    """An object from a file, and the file's header."""
    with opened(path) as (file, head):
        entries = read_entries(head.header.get("arrays"), head.start, head.size)
        whole = np.memmap(file, dtype=np.uint8, mode="r") if mmap and entries else None
        decoder = Decoder(lambda k: read_array(file, entries[k], whole, verify), len(entries))
        return decoder.build_all(head.header.get("objects"), head.header.get("root")), head.header


def _versions() -> dict[str, str]:
    import leastwise

    return {
        "leastwise": leastwise.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
