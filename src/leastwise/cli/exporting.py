"""``leastwise export``: a model as ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn.base import is_regressor

from leastwise.cli.failing import UsageError
from leastwise.cli.reading import check_place, share
from leastwise.cli.showing import Shown
from leastwise.persistence.container import FileError
from leastwise.persistence.model_files import load
from leastwise.utils.atomic_files import write_atomically


def run(shown: Shown, *, model: Path, output: Path, double: bool, coverage: float | None = None) -> None:
    """Load, convert, write."""
    from leastwise.onnx import to_onnx

    check_place(output, model)
    share("--coverage", coverage)
    fitted = load(model)
    numbers = getattr(fitted, "kind_", "") == "numbers" or is_regressor(fitted)
    more: dict[str, Any] = {} if coverage is None else {"interval" if numbers else "coverage": coverage}
    try:
        proto = to_onnx(fitted, dtype="float64" if double else None, **more)
    except TypeError as error:
        raise FileError(f"{model}: {error}") from error
    except ValueError as error:
        raise UsageError(f"{model}: {error}") from error
    write_atomically(str(output), [proto.SerializeToString()])
    inputs, outputs = ([part.name for part in parts] for parts in (proto.graph.input, proto.graph.output))
    shown.answer |= {"onnx": str(output), "inputs": inputs, "outputs": outputs}
    shown.say(f"Written to {output}: {', '.join(inputs)} -> {', '.join(outputs)}")
