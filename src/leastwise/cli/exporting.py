"""``leastwise export``: a model as ONNX."""

from __future__ import annotations

from pathlib import Path

from leastwise.atomic import write_atomically
from leastwise.cli.showing import Shown
from leastwise.files import load


def run(shown: Shown, *, model: Path, output: Path, double: bool) -> None:
    """Load, convert, write."""
    from leastwise.onnx import to_onnx

    proto = to_onnx(load(model), dtype="float64" if double else "float32")
    write_atomically(str(output), [proto.SerializeToString()])
    inputs, outputs = ([part.name for part in parts] for parts in (proto.graph.input, proto.graph.output))
    shown.answer |= {"onnx": str(output), "inputs": inputs, "outputs": outputs}
    shown.say(f"Written to {output}: {', '.join(inputs)} -> {', '.join(outputs)}")
