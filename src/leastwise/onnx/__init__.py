"""Fitted models as ONNX graphs, for runtimes without Python; needs the extra ``onnx``.

``leastwise.onnx.registry`` lists the converters; a converter for a class of another package can be added to it.
"""

from leastwise.onnx.checking import check, feeds
from leastwise.onnx.convert import to_onnx

__all__ = ["check", "feeds", "to_onnx"]
