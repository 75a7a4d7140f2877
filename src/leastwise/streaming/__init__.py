"""Rows by blocks: from arrays, tables, files and iterators, in memory that does not grow with them."""

from leastwise.streaming.answers import write_predictions
from leastwise.streaming.blocks import Block, Blocks, gather
from leastwise.streaming.errors import SpillError, StreamError
from leastwise.streaming.opening import open_blocks
from leastwise.streaming.predicting import predict_blocks
from leastwise.streaming.spill import Parts, Spool

__all__ = [
    "Block",
    "Blocks",
    "Parts",
    "SpillError",
    "Spool",
    "StreamError",
    "gather",
    "open_blocks",
    "predict_blocks",
    "write_predictions",
]
