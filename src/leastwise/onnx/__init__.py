"""Fitted models as ONNX graphs, for runtimes that know nothing of Python; needs the extra ``onnx``."""

from leastwise.onnx.checking import check, feeds
from leastwise.onnx.convert import to_onnx

__all__ = ["check", "feeds", "to_onnx"]
