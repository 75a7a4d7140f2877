"""``leastwise export``: a model as ONNX."""

from __future__ import annotations

from pathlib import Path

from leastwise.cli.reading import check_place
from leastwise.cli.showing import Shown
from leastwise.files import FileError, load
from leastwise.files.atomic import write_atomically


def run(shown: Shown, *, model: Path, output: Path, double: bool) -> None:
    """Load, convert, write."""
    from leastwise.onnx import to_onnx

    check_place(output)
    try:
        proto = to_onnx(load(model), dtype="float64" if double else "float32")
    except TypeError as error:  # of this model there is no graph
        raise FileError(f"{model}: {error}") from None
    write_atomically(str(output), [proto.SerializeToString()])
    inputs, outputs = ([part.name for part in parts] for parts in (proto.graph.input, proto.graph.output))
    shown.answer |= {"onnx": str(output), "inputs": inputs, "outputs": outputs}
    shown.say(f"Written to {output}: {', '.join(inputs)} -> {', '.join(outputs)}")
