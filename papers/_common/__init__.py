"""Shared by the papers' experiments: data, settings, timing, tables and figures."""

from typing import Any

#: The inputs of the papers: a Gaussian kernel of the columns as they are.
PLAIN: dict[str, Any] = {"kernel": "rbf", "scale": None, "metric": None}
