"""Model files: without pickle, checked, written as a whole or not at all, mapped into memory."""

from leastwise.files.errors import FileError
from leastwise.files.looking import FileInfo, info
from leastwise.files.model_files import load, save

__all__ = ["FileError", "FileInfo", "info", "load", "save"]
