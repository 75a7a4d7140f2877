"""Model files: without pickle, checked, written as a whole or not at all, mapped into memory."""

from leastwise.persistence.container import FileError
from leastwise.persistence.info import FileInfo, info
from leastwise.persistence.model_files import load, save

__all__ = ["FileError", "FileInfo", "info", "load", "save"]
