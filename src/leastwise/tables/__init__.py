"""Tables: from files with text, dates and missing values to predictions and decisions, by documented rules."""

from leastwise.sources.blocks import TableError
from leastwise.tables.columns import Column
from leastwise.tables.encoder import Encoded, TableEncoder
from leastwise.tables.files import read_table, write_table
from leastwise.tables.model import TableModel
from leastwise.tables.table import Table

__all__ = ["Column", "Encoded", "Table", "TableEncoder", "TableError", "TableModel", "read_table", "write_table"]
