"""What a model file holds, without loading it."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import Any

from leastwise.persistence.arrays import read_entries
from leastwise.persistence.container import FileError, Path, opened
from leastwise.persistence.registry import is_estimator


@dataclass(frozen=True)
class FileInfo:
    """What the header of a model file says.

    Attributes
    ----------
    path : str
    size : int
        Bytes of the file.
    format : int
        Version of the format.
    model : str
        Class of the model.
    steps : tuple of str
        Classes of estimators within it, in the order of the file: steps of a pipeline, models in wrappers.
    fitted : bool
        Whether any of these is fitted.
    keep, dtype : str or None
        As in :func:`leastwise.save`.
    versions : dict of str to str
        Of leastwise, Python, NumPy, SciPy and scikit-learn that wrote it.
    parameters : dict
        Parameters of the model that are plain values.
    classes : dict of str to int
        All classes in the file, with how many objects there are of each.
    arrays : tuple of (str, tuple, int)
        Type, shape and bytes of all arrays, the largest first.
    """

    path: str
    size: int
    format: int
    model: str
    steps: tuple[str, ...]
    fitted: bool
    keep: str
    dtype: str | None
    versions: dict[str, str]
    parameters: dict[str, Any]
    classes: dict[str, int]
    arrays: tuple[tuple[str, tuple[int, ...], int], ...]


def info(path: Path) -> FileInfo:
    """What the header of a model file says; no array is read, and no model is built.

    Parameters
    ----------
    path : str or path-like
    """
    with opened(path) as (_, head):
        header = head.header
        arrays = read_entries(header.get("arrays"), head.start, head.size)
        objects = _described(header.get("objects"))
        root = header.get("root")
        if type(root) is not int or not 0 <= root < len(objects):
            raise FileError("it has no model")
        name, state = objects[root]
        inner = [(n, s) for k, (n, s) in enumerate(objects) if k != root and is_estimator(n)]
        return FileInfo(
            path=os.fspath(path),
            size=head.size,
            format=head.version,
            model=name,
            steps=tuple(n for n, _ in inner),
            fitted=any(key.endswith("_") for _, s in [*inner, (name, state)] for key in s),
            keep=str(header.get("keep")),
            dtype=header.get("dtype"),
            versions=_texts(header.get("versions")),
            parameters={k: v for k, v in state.items() if not k.endswith("_") and not isinstance(v, dict | list)},
            classes=dict(Counter(n for n, _ in objects)),
            arrays=tuple(sorted(((a.dtype.str, a.shape, a.size) for a in arrays), key=lambda a: -a[2])),
        )


def _described(objects: Any) -> list[tuple[str, dict]]:
    if not isinstance(objects, list):
        raise FileError("its header has no list of objects")
    made = []
    for entry in objects:
        name, state = (entry.get("class"), entry.get("state")) if isinstance(entry, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(state, dict):
            raise FileError("it has an object without a class or attributes")
        made.append((name, state))
    return made


def _texts(versions: Any) -> dict[str, str]:
    return {k: str(v)[:80] for k, v in versions.items()} if isinstance(versions, dict) else {}
