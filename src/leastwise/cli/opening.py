"""Model files that the commands can work with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leastwise.files import FileError, load
from leastwise.tables import TableModel


def opened(path: Path) -> TableModel:
    """The model of a table in a file."""
    model: Any = load(path)
    if not isinstance(model, TableModel):
        raise FileError(
            f"{path} holds a {type(model).__name__}, which knows no columns: this command needs a model made by "
            "`leastwise fit`, or a leastwise.tables.TableModel. In Python, leastwise.load opens it."
        )
    return model
