"""Libraries that the core does without, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def frames(name: str) -> Any:
    """Import pandas or polars, or raise an error that names the extra that brings it."""
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f"This needs {name}: install it with  pip install 'leastwise[frames]'") from None
