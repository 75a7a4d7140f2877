"""Optional dependencies, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def frames(name: str) -> Any:
    """Import pandas or polars; an error names the extra that installs it."""
    return needed(name, "frames")


def needed(name: str, extra: str) -> Any:
    """Import an optional dependency; an error names the extra that installs it."""
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f"This needs {name}: install it with  pip install 'leastwise[{extra}]'") from None
