"""Commands on a model file: ``evaluate``, ``inspect``, ``report`` and ``export``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from sklearn.base import is_regressor

from leastwise.cli.errors import UsageError
from leastwise.cli.options import check_fraction, check_output, open_model, open_table
from leastwise.cli.output import Output, label, show_columns, show_model
from leastwise.persistence import FileError, info, load
from leastwise.tables import TableModel
from leastwise.utils.atomic_files import write_atomically
from leastwise.utils.memory import human


def evaluate(output: Output, *, model: Path, data: str, **reader_options: Any) -> None:
    """Score a model on rows with known targets."""
    loaded, table = open_model(model), open_table(output, data, **reader_options)
    with output.spinner(f"predicting {len(table):,} rows"):
        scores = loaded.evaluate(table)
    output.result |= scores
    for note in scores["notes"]:
        output.note(note)
    baseline, single = scores.get("baseline", {}), int | float | None
    rows = [[label(name), value, baseline.get(name)] for name, value in scores.items() if isinstance(value, single)]
    constant = "mean" if loaded.kind_ == "numbers" else "class frequencies"
    output.table(f"{model} on {data}", ["", "model", constant], rows)
    for part in ("tasks", "labels"):
        by_name = scores.get(part)
        if by_name:
            names = list(next(iter(by_name.values())))
            rows = [[key, *(values.get(name) for name in names)] for key, values in by_name.items()]
            output.print("")
            output.table("", [part.removesuffix("s"), *map(label, names)], rows)


def inspect(output: Output, *, model: Path) -> None:
    """Show the header of a model file, and for a TableModel its columns and scores."""
    header, loaded = info(model), load(model)
    arrays = {"count": len(header.arrays), "bytes": sum(size for _, _, size in header.arrays)}
    output.result |= {"file": {**asdict(header), "arrays": arrays}}
    rows = [
        ["file", f"{header.path}, {human(header.size)}, format {header.format}"],
        ["model", header.model + (f" of {', '.join(header.steps)}" if header.steps else "")],
        ["written with", ", ".join(f"{name} {version}" for name, version in header.versions.items())],
        ["content", header.keep + (f", arrays as {header.dtype}" if header.dtype else "")],
    ]
    if hasattr(loaded, "moments_"):
        n_kept = 0 if loaded.kept_ is None else len(loaded.kept_)
        moments = f"{loaded.moments_.n:,} rows, {len(loaded.moments_.A):,} centers; {n_kept:,} rows stored"
        rows.append(["moments", moments])
    output.table("", ["", ""], rows)
    if isinstance(loaded, TableModel):
        output.result |= loaded.summary()
        output.print("")
        show_columns(output, output.result["columns"], stderr=False)
        output.print("")
        show_model(output, loaded)


def report(output: Output, *, model: Path, page: Path, title: str | None) -> None:
    """Write a report on a model."""
    from leastwise.report import write_report

    check_output(page, model)
    write_report(load(model), page, title=title or f"{model.name}")
    output.result |= {"report": str(page)}
    output.print(f"Report: {page}")


def export(output: Output, *, model: Path, onnx_file: Path, double: bool, coverage: float | None = None) -> None:
    """Convert a model to ONNX."""
    from leastwise.onnx import to_onnx

    check_output(onnx_file, model)
    check_fraction("--coverage", coverage)
    fitted = load(model)
    numbers = getattr(fitted, "kind_", "") == "numbers" or is_regressor(fitted)
    options: dict[str, Any] = {} if coverage is None else {"interval" if numbers else "coverage": coverage}
    try:
        proto = to_onnx(fitted, dtype="float64" if double else None, **options)
    except TypeError as error:
        raise FileError(f"{model}: {error}") from error
    except ValueError as error:
        raise UsageError(f"{model}: {error}") from error
    write_atomically(str(onnx_file), [proto.SerializeToString()])
    inputs, outputs = ([part.name for part in parts] for parts in (proto.graph.input, proto.graph.output))
    output.result |= {"onnx": str(onnx_file), "inputs": inputs, "outputs": outputs}
    output.print(f"Written to {onnx_file}: {', '.join(inputs)} -> {', '.join(outputs)}")
