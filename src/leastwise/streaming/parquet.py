"""Parquet files, row group by row group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from leastwise.extras import frames
from leastwise.streaming.columns import ArrowColumns
from leastwise.streaming.errors import StreamError, fault, reason_of

#: Bytes that are read ahead of each column, instead of a whole row group of it.
BUFFER = 2**20


class ParquetReader:
    """One file. Batches never reach over the end of a row group, so that a broken one spoils no other."""

    def __init__(self, path: str) -> None:
        self.path = path
        with self._opened() as file:
            self.kinds = ArrowColumns().schema(file.schema_arrow)
            self.n_rows = file.metadata.num_rows

    def batches(self, columns: list[str], rows: int) -> Iterator[Any]:
        """Record batches of at most so many rows."""
        with self._opened() as file:
            first = 0
            for group in range(file.num_row_groups):
                last = first + file.metadata.row_group(group).num_rows
                yield from self._group(file, group, columns, rows, (first, last))
                first = last

    def _opened(self) -> Any:
        pa, pq = frames("pyarrow"), frames("pyarrow.parquet")
        try:
            return pq.ParquetFile(self.path, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True)
        except (pa.ArrowException, OSError) as error:
            raise fault(f"this is no Parquet file that can be read ({reason_of(error)}).", self.path) from error

    def _group(self, file: Any, group: int, columns: list[str], rows: int, span: tuple[int, int]) -> Iterator[Any]:
        pa, done = frames("pyarrow"), span[0]
        try:
            for batch in file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False):
                batch.validate(full=True)  # a broken file may point to places outside of its data
                yield batch
                done += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise self._broken(group, columns, (done, span[1] - 1), error) from error

    def _broken(self, group: int, columns: list[str], rows: tuple[int, int], error: Exception) -> StreamError:
        """Which columns of the row group cannot be read, each tried alone."""
        bad = [name for name in columns if not self._readable(group, name)]
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        reason = f"row group {group} is broken{more and ' here' + more} ({reason_of(error)})."
        return fault(reason, self.path, rows, bad[0] if bad else None)

    def _readable(self, group: int, name: str) -> bool:
        try:
            with self._opened() as file:
                for batch in file.iter_batches(2**16, row_groups=[group], columns=[name], use_threads=False):
                    batch.validate(full=True)
        except (frames("pyarrow").ArrowException, OSError, StreamError):
            return False
        return True
