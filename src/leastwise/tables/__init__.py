"""Tables: from files with words and gaps to decisions, by rules that are stated and kept."""

from leastwise.tables.encoder import Encoded, TableEncoder
from leastwise.tables.formats import read_table, write_table
from leastwise.tables.kinds import Column
from leastwise.tables.model import TableModel
from leastwise.tables.table import Table, TableError

__all__ = ["Column", "Encoded", "Table", "TableEncoder", "TableError", "TableModel", "read_table", "write_table"]
