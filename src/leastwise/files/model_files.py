"""Save, load and look at models."""

from __future__ import annotations

import os
import platform
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import scipy
import sklearn
from sklearn.exceptions import InconsistentVersionWarning

from leastwise.files.arrays import place, read_array, read_entries
from leastwise.files.atomic import write_atomically
from leastwise.files.container import Head, read_head, write_parts
from leastwise.files.decode import Decoder
from leastwise.files.encode import Encoder
from leastwise.files.errors import FileError
from leastwise.files.registry import entry_of, is_estimator, table
from leastwise.files.text import compose

Path = str | os.PathLike[str]

KEEP = ("all", "predict")
DTYPES = (None, "float32")


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
        As in :func:`save`.
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


def save(model: Any, path: Path, *, keep: str = "all", dtype: str | None = None) -> None:
    """Write a model to a file, without pickle.

    The file appears as a whole: until the last byte is on the disk, what was there before stays.

    Parameters
    ----------
    model : estimator
        One of leastwise, or a scikit-learn pipeline that ends in one, fitted or not.
    path : str or path-like
        By custom it ends in ``.lw``.
    keep : {"all", "predict"}, default="all"
        "predict" leaves out what predictions do without: held-out predictions, search results, targets of the
        training rows. ``predict``, ``predict_proba`` and ``decision_function`` stay as they are; ``predict_set``,
        ``predict_interval``, ``influence`` and reports need "all".
    dtype : {"float32"}, optional
        Store numbers of leastwise's models in single precision, which halves the file. The loaded model computes in
        it, too. Pre-processing keeps its precision.

    Raises
    ------
    FileError
        Where the model holds something that files do not, such as a function; it says which attribute that is.
    OSError
        Where the file cannot be written. What was there before is as it was.

    Examples
    --------
    >>> import tempfile, os
    >>> import leastwise
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = leastwise.LSPC(random_state=0).fit(X, y)
    >>> path = os.path.join(tempfile.mkdtemp(), "iris.lw")
    >>> leastwise.save(model, path)
    >>> bool((leastwise.load(path).predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    if keep not in KEEP or dtype not in DTYPES:
        raise ValueError(f"keep={keep!r}, dtype={dtype!r}: keep is one of {KEEP}, and dtype one of {DTYPES}.")
    if entry_of(type(model)) is None or not hasattr(model, "get_params"):
        if hasattr(model, "best_estimator_"):
            raise FileError(f"A {type(model).__name__} cannot be saved: save its best_estimator_.")
        raise FileError(
            f"A {type(model).__name__} cannot be saved: give an estimator of leastwise, or a scikit-learn pipeline "
            "of plain pre-processing that ends in one. For others use skops or joblib (see the page Model files)."
        )
    encoder = Encoder(single=dtype == "float32", report=keep == "all")
    root = encoder.node(model, "model")["object"]
    place(encoder.entries)
    header = {
        "keep": keep,
        "dtype": dtype,
        "versions": _versions(),
        "root": root,
        "objects": encoder.objects,
        "arrays": encoder.entries,
    }
    write_atomically(os.fspath(path), write_parts(compose(header), encoder.arrays))


def load(path: Path, *, mmap: bool = True, verify: bool = True) -> Any:
    """Read a model from a file; nothing in the file is run.

    Parameters
    ----------
    path : str or path-like
    mmap : bool, default=True
        Whether arrays of 64 KiB or more stay in the file and come into memory where they are used. (They are read
        only either way. The file must not be overwritten in place while the model is in use; ``save`` does not do
        that.)
    verify : bool, default=True
        Whether the checksums of all arrays are checked, for which the file is read once. That of the header always
        is.

    Returns
    -------
    estimator
        As it was saved.

    Raises
    ------
    FileError
        Where the file is no model, is damaged, holds what files may not hold, or is of a newer format.
    """
    with _opened(path) as (file, head):
        entries = read_entries(head.header.get("arrays"), head.start, head.size)
        whole = np.memmap(file, dtype=np.uint8, mode="r") if mmap and entries else None
        decoder = Decoder(lambda k: read_array(file, entries[k], whole, verify), len(entries))
        model = decoder.build_all(head.header.get("objects"), head.header.get("root"))
        if not hasattr(model, "get_params"):
            raise FileError("what it holds is no estimator")
    _warn_of_versions(head.header)
    return model


def info(path: Path) -> FileInfo:
    """What the header of a model file says; no array is read, and no model is built.

    Parameters
    ----------
    path : str or path-like
    """
    with _opened(path) as (_, head):
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


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, Head]]:
    """The file with its header; errors then say which file it is."""
    name = os.fspath(path)
    if os.path.isdir(name):
        raise IsADirectoryError(f"{name!r} is a folder: give the name of a model file in it.")
    if os.path.exists(name) and not os.path.isfile(name):  # to open a pipe would wait for ever
        raise FileError(f"{name!r} cannot be read: it is no regular file.")
    with open(name, "rb") as file:
        try:
            yield file, read_head(file)
        except FileError as error:
            raise FileError(f"{name!r} cannot be read: {error}.") from error.__cause__


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


def _versions() -> dict[str, str]:
    import leastwise

    return {
        "leastwise": leastwise.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def _warn_of_versions(header: dict[str, Any]) -> None:
    """As scikit-learn does of pickled estimators of its own."""
    versions = header.get("versions")
    then = versions.get("scikit-learn") if isinstance(versions, dict) else None
    if then == sklearn.__version__:
        return
    for name in sorted({entry["class"] for entry in header["objects"] if table()[entry["class"]].foreign}):
        warnings.warn(
            InconsistentVersionWarning(
                estimator_name=name.removeprefix("sklearn."),
                current_sklearn_version=sklearn.__version__,
                original_sklearn_version=str(then),
            ),
            stacklevel=3,
        )
