"""The one error of files that cannot be written or read."""

from __future__ import annotations


class FileError(ValueError):
    """A model that no file can hold, or a file that holds no model: broken, foreign, hostile or too new."""
