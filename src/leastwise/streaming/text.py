"""Delimited text, by pyarrow; where that stops, the line and the column are looked for."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from leastwise.extras import frames
from leastwise.streaming.errors import fault, reason_of
from leastwise.streaming.records import NULLS, first_fault, header_of, kinds_of, line_of
from leastwise.streaming.roles import Layout, Schema

#: Bytes of text that are parsed at a time.
PARSED = 2**22


class TextReader:
    """One file of CSV or TSV with a header, also packed by gzip."""

    n_rows = None

    def __init__(self, path: str) -> None:
        self.path = path
        self.cells, self.names = header_of(path)
        self._kinds = kinds_of(self.cells, self.names)
        self.kinds: Schema = {name: kind for name, (kind, _) in self._kinds.items()}

    def types(self, layout: Layout) -> dict[str, str]:
        """What columns are read as: inputs and weights as floats, the rest as its first cells are."""
        types = {name: "bool" if self.kinds[name].name == "boolean" else "double" for name in layout.features}
        beside = {name: self._kinds[name][1] for name in layout.roles.beside}
        weight = {} if layout.roles.weight is None else {layout.roles.weight: "double"}
        return types | beside | weight

    def batches(self, types: dict[str, str]) -> Iterator[Any]:
        """Record batches; before a broken line all rows above it."""
        pa, done = frames("pyarrow"), 0
        try:
            for batch in self._open(types):
                yield batch
                done += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            cause = error
        else:
            return
        found = first_fault(self.cells, self.names, types, done)
        if found is None:
            reason = f"the lines from here on cannot be read ({reason_of(cause)})."
            raise fault(reason, self.path, (done, done), line=self.line(done)) from cause
        if found.above:
            yield from self._parsed(found.above, types)
        raise fault(found.reason, self.path, (found.row, found.row), found.column, found.line) from cause

    def line(self, row: int) -> int | None:
        """The line of a row, counted from 1."""
        return line_of(self.cells, row)

    def _open(self, types: dict[str, str]) -> Any:
        csv = frames("pyarrow.csv")
        read = csv.ReadOptions(use_threads=False, block_size=PARSED)
        return csv.open_csv(
            self.path, read_options=read, parse_options=self._parse(), convert_options=self._convert(types)
        )

    def _parsed(self, text: str, types: dict[str, str]) -> list[Any]:
        """Rows that had been read together with a broken one, without it."""
        csv = frames("pyarrow.csv")
        read = csv.ReadOptions(use_threads=False, column_names=self.names)
        source, parse, convert = (
            io.BytesIO(text.encode(errors="surrogateescape")),
            self._parse(),
            self._convert(types),
        )
        return csv.read_csv(source, read_options=read, parse_options=parse, convert_options=convert).to_batches()

    def _parse(self) -> Any:
        return frames("pyarrow.csv").ParseOptions(delimiter=self.cells.delimiter, newlines_in_values=True)

    def _convert(self, types: dict[str, str]) -> Any:
        pa = frames("pyarrow")
        named = {"double": pa.float64(), "int64": pa.int64(), "bool": pa.bool_(), "string": pa.string()}
        return frames("pyarrow.csv").ConvertOptions(
            include_columns=list(types),
            column_types={name: named[type] for name, type in types.items()},
            null_values=list(NULLS),
            strings_can_be_null=True,
        )
