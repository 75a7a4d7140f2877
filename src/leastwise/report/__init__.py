"""A page about a fitted model: what was trained, how it was chosen, how far its probabilities can be trusted.

:func:`write_report` writes one HTML file that needs nothing else: no network, no other files. :func:`report_data` is
what the page is made of, as plain numbers and words.
"""

from leastwise.report.data import report_data
from leastwise.report.page import report_html, write_report

__all__ = ["report_data", "report_html", "write_report"]
