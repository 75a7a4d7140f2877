"""Libraries that the core does without, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def frames(name: str) -> Any:
    """Import pandas or polars, or raise an error that names the extra that brings it."""
    return needed(name, "frames")


def needed(name: str, extra: str) -> Any:
    """Import a library that an extra brings, or raise an error that names the extra."""
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f"This needs {name}: install it with  pip install 'leastwise[{extra}]'") from None
