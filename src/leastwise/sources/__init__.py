"""Blocks of rows from arrays, tables, files and iterators, in memory that does not grow with the rows."""

from leastwise.sources.blocks import Block, Blocks, CodedRows, SpillError, StreamError
from leastwise.sources.opening import open_blocks
from leastwise.sources.predictions import predict_blocks, write_predictions
from leastwise.sources.row_source import gather
from leastwise.sources.spill import Parts, Spool

__all__ = [
    "Block",
    "Blocks",
    "CodedRows",
    "Parts",
    "SpillError",
    "Spool",
    "StreamError",
    "gather",
    "open_blocks",
    "predict_blocks",
    "write_predictions",
]
