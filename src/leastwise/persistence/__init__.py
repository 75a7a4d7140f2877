"""Model files: no pickle, verified by checksums, written atomically, memory-mapped.

``leastwise.persistence.registry`` has the classes that a file may contain, with their fields; ``registry.register``
adds one.
"""

from leastwise.persistence import estimator_schemas, schemas, sklearn_schemas  # noqa: F401
from leastwise.persistence.container import FileError
from leastwise.persistence.model_files import FileInfo, info, load, save

__all__ = ["FileError", "FileInfo", "info", "load", "save"]
