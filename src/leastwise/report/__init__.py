"""Reports on fitted models, as one HTML file or as plain data.

:func:`write_report` writes a self-contained HTML file: it needs no network and no other file. :func:`report_data`
returns its contents as dicts, lists, numbers and text.
"""

from leastwise.report.data import report_data
from leastwise.report.page import report_html, write_report

__all__ = ["report_data", "report_html", "write_report"]
