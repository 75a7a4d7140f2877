"""``leastwise inspect``: what a model file holds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from leastwise.cli.showing import Shown
from leastwise.cli.telling import tell_columns, tell_model
from leastwise.persistence import info
from leastwise.persistence.model_files import load
from leastwise.tables import TableModel
from leastwise.utils.memory import human


def run(shown: Shown, *, model: Path) -> None:
    """The header of the file, and for models of tables what they have learned."""
    found = info(model)
    loaded = load(model)
    arrays = {"count": len(found.arrays), "bytes": sum(size for _, _, size in found.arrays)}
    shown.answer |= {"file": {**asdict(found), "arrays": arrays}}
    rows = [
        ["file", f"{found.path}, {human(found.size)}, format {found.format}"],
        ["holds", found.model + (f" of {', '.join(found.steps)}" if found.steps else "")],
        ["made with", ", ".join(f"{name} {version}" for name, version in found.versions.items())],
        ["kept", found.keep + (f", numbers as {found.dtype}" if found.dtype else "")],
    ]
    if hasattr(loaded, "moments_"):
        kept = 0 if loaded.kept_ is None else len(loaded.kept_)
        sums = (
            f"of {loaded.moments_.n:,} rows on {len(loaded.moments_.A):,} centres; {kept:,} rows are kept as they are"
        )
        rows.append(["sums", sums])
    shown.table("", ["", ""], rows)
    if isinstance(loaded, TableModel):
        shown.answer |= loaded.summary()
        shown.say("")
        tell_columns(shown, shown.answer["columns"], side=False)
        shown.say("")
        tell_model(shown, loaded)
