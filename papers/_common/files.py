"""Records on disk: whole at any time, the old one or the new one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from leastwise.utils.atomic_files import write_atomically


def write_json(path: Path, record: Any) -> None:
    """Write beside the place and move there, so that nobody ever reads half a record."""
    text = json.dumps(record, indent=1, default=_plain) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(str(path), [text.encode()])


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} does not go into JSON")
