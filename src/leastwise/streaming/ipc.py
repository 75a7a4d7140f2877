"""Arrow files (IPC, Feather), record batch by record batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from leastwise.extras import frames
from leastwise.streaming.columns import ArrowColumns
from leastwise.streaming.errors import fault, reason_of

_MAGIC = b"ARROW1"


class ArrowReader:
    """One file, of the file format or of the stream format.

    The file format is the stream format between two marks. It is read as a stream, from the first mark on, so that a
    file that was cut off gives what it has.
    """

    n_rows = None

    def __init__(self, path: str) -> None:
        self.path = path
        with self._mapped() as file:
            schema = self._stream(file).schema
        self.kinds = ArrowColumns().schema(schema)

    def batches(self, columns: list[str]) -> Iterator[Any]:
        """Record batches as they were written, of the columns that are wanted."""
        with self._mapped() as file:
            stream, done = self._stream(file, columns), 0
            while (batch := self._next(stream, done)) is not None:
                done += batch.num_rows
                yield batch
            if self._cut(file):
                raise fault(f"the file was cut off after row {done - 1}.", self.path, (done, done))

    def _mapped(self) -> Any:
        pa = frames("pyarrow")
        try:
            return pa.memory_map(self.path)
        except (pa.ArrowException, OSError) as error:
            raise fault(f"it cannot be read ({reason_of(error)}).", self.path) from error

    def _stream(self, file: Any, columns: list[str] | None = None) -> Any:
        pa, ipc = frames("pyarrow"), frames("pyarrow.ipc")
        order = [] if columns is None else list(self.kinds)
        fields = None if columns is None else sorted(order.index(name) for name in columns)
        options = ipc.IpcReadOptions(use_threads=False, included_fields=fields)
        try:
            file.seek(8 if file.read_at(6, 0) == _MAGIC else 0)
            return ipc.open_stream(file, options=options)
        except (pa.ArrowException, OSError) as error:
            raise fault(f"this is no Arrow file that can be read ({reason_of(error)}).", self.path) from error

    def _next(self, stream: Any, done: int) -> Any:
        pa = frames("pyarrow")
        try:
            batch = stream.read_next_batch()
            batch.validate(full=True)  # a broken file may point to places outside of its data
        except StopIteration:
            return None
        except (pa.ArrowException, OSError) as error:
            reason = f"the record batch that begins here is broken or cut off ({reason_of(error)})."
            raise fault(reason, self.path, (done, done)) from error
        return batch

    def _cut(self, file: Any) -> bool:
        """The file format ends with its mark; a stream may end after any batch."""
        return file.read_at(6, 0) == _MAGIC and file.read_at(6, file.size() - 6) != _MAGIC
