"""Model files: no pickle, verified by checksums, written atomically, memory-mapped.

``leastwise.persistence.registry`` lists the classes that a file may contain; ``registry.register`` adds one.
"""

from leastwise.persistence.container import FileError
from leastwise.persistence.model_files import FileInfo, info, load, save

__all__ = ["FileError", "FileInfo", "info", "load", "save"]
