"""Save and load models, and look into model files."""

from __future__ import annotations

import os
import platform
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.exceptions import InconsistentVersionWarning

from leastwise.persistence import registry
from leastwise.persistence.container import (
    FileError,
    Path,
    file_parts,
    format_header,
    open_file,
    read_array,
    read_array_entries,
    set_offsets,
)
from leastwise.persistence.encoding import Decoder, Encoder
from leastwise.utils.atomic_files import write_atomically

KEEP = ("all", "predict")
DTYPES = (None, "float32")


def save(model: Any, path: Path, *, keep: str = "all", dtype: str | None = None) -> None:
    """Save a model to a file, without pickle.

    The write is atomic: an existing file is replaced when the last byte of the new one is on the disk.

    Parameters
    ----------
    model : estimator
        An estimator of leastwise, or a scikit-learn pipeline that ends in one, fitted or not.
    path : str or path-like
        By convention it ends in ``.lw``.
    keep : {"all", "predict"}, default="all"
        "predict" leaves out what predictions do not need: held-out predictions, search results, targets of the
        training rows. ``predict``, ``predict_proba`` and ``decision_function`` do not change; ``predict_set``,
        ``predict_interval``, ``influence`` and reports need "all".
    dtype : {"float32"}, optional
        Store the numbers of leastwise models in single precision, which halves the file. The loaded model also
        computes in single precision. Preprocessing keeps its precision.

    Raises
    ------
    FileError
        If the model has an attribute that cannot be stored, such as a function; the message names it.
    OSError
        If the file cannot be written. An existing file is left unchanged.

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
        raise ValueError(f"keep={keep!r}, dtype={dtype!r}: keep must be one of {KEEP}, and dtype one of {DTYPES}.")
    if registry.find(type(model)) is None or not hasattr(model, "get_params"):
        if hasattr(model, "best_estimator_"):
            raise FileError(f"A {type(model).__name__} cannot be saved: save its best_estimator_.")
        raise FileError(
            f"A {type(model).__name__} cannot be saved. Supported are {registry.registered_names(estimators=True)}. "
            f"{registry.OTHERS}."
        )
    write_object(model, path, keep, dtype)


def load(path: Path, *, mmap: bool = True, verify: bool = True) -> Any:
    """Load a model from a file. No code in the file is executed.

    Parameters
    ----------
    path : str or path-like
    mmap : bool, default=True
        Memory-map arrays of 64 KiB or more, so that they are read from the file when they are used. (They are
        read-only in either case. The file must not be overwritten in place while the model is in use; ``save`` does
        not do that.)
    verify : bool, default=True
        Verify the checksums of all arrays, which reads the whole file once. The checksum of the header is always
        verified.

    Returns
    -------
    estimator
        As it was saved.

    Raises
    ------
    FileError
        If the file is not a model file, is damaged, has a class that is not registered, or has a newer format.
    """
    model, header = read_object(path, mmap, verify)
    if not hasattr(model, "get_params"):
        raise FileError(f"{os.fspath(path)!r} cannot be read: it does not contain an estimator.")
    _warn_about_sklearn_version(header)
    return model


def _warn_about_sklearn_version(header: dict[str, Any]) -> None:
    """Give the warning that scikit-learn gives for its own pickled estimators."""
    versions = header.get("versions")
    original = versions.get("scikit-learn") if isinstance(versions, dict) else None
    if original == sklearn.__version__:
        return
    names = {obj["class"] for obj in header["objects"] if obj["class"].startswith("sklearn.")}
    for name in sorted(names):
        warnings.warn(
            InconsistentVersionWarning(
                estimator_name=name.removeprefix("sklearn."),
                current_sklearn_version=sklearn.__version__,
                original_sklearn_version=ascii(str(original)[:40])[1:-1],  # control characters as escapes
            ),
            stacklevel=3,
        )


def write_object(obj: Any, path: Path, keep: str = "all", dtype: str | None = None) -> None:
    """Write an object of a registered class, atomically; see :func:`save` for the options."""
    import leastwise

    encoder = Encoder(single=dtype == "float32", report=keep == "all")
    root = encoder.node(obj, "model")["object"]
    set_offsets(encoder.entries)
    header = {
        "keep": keep,
        "dtype": dtype,
        "versions": {
            "leastwise": leastwise.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "root": root,
        "objects": encoder.objects,
        "arrays": encoder.entries,
    }
    write_atomically(os.fspath(path), file_parts(format_header(header), encoder.arrays))


def read_object(path: Path, mmap: bool = True, verify: bool = True) -> tuple[Any, dict[str, Any]]:
    """Read an object of any registered class, and the header of its file."""
    with open_file(path) as (file, head):
        stored = read_array_entries(head.header.get("arrays"), head.start, head.size)
        mapped = np.memmap(file, dtype=np.uint8, mode="r") if mmap and stored else None
        sizes = [array.size for array in stored]
        decoder = Decoder(lambda k: read_array(file, stored[k], mapped, verify), sizes, entries=verify)
        return decoder.build_all(head.header.get("objects"), head.header.get("root")), head.header


# ---------------------------------------------------------- the header of a file


@dataclass(frozen=True)
class FileInfo:
    """The contents of the header of a model file.

    Attributes
    ----------
    path : str
    size : int
        Size of the file in bytes.
    format : int
        Format version.
    model : str
        Class of the model.
    steps : tuple of str
        Classes of the estimators within it, in the order of the file: steps of a pipeline, models in wrappers.
    fitted : bool
        True if any of these is fitted.
    keep, dtype : str or None
        As in :func:`leastwise.save`.
    versions : dict of str to str
        Versions of leastwise, Python, NumPy, SciPy and scikit-learn that wrote the file.
    parameters : dict
        Parameters of the model that are plain values.
    classes : dict of str to int
        Number of objects of each class in the file.
    arrays : tuple of (str, tuple, int)
        Dtype, shape and bytes of all arrays, the largest first.
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
    """Read the header of a model file. No array is read, and no model is built.

    Parameters
    ----------
    path : str or path-like
    """
    with open_file(path) as (_, head):
        header = head.header
        arrays = read_array_entries(header.get("arrays"), head.start, head.size)
        objects = _class_and_state(header.get("objects"))
        root = header.get("root")
        if type(root) is not int or not 0 <= root < len(objects):
            raise FileError("it has no model")
        name, state = objects[root]
        entries = registry.ENTRIES
        inner = [(n, s) for k, (n, s) in enumerate(objects) if k != root and n in entries and entries[n].estimator]
        versions = header.get("versions")
        return FileInfo(
            path=os.fspath(path),
            size=head.size,
            format=head.version,
            model=name,
            steps=tuple(n for n, _ in inner),
            fitted=any(key.endswith("_") for _, s in [*inner, (name, state)] for key in s),
            keep=str(header.get("keep")),
            dtype=header.get("dtype"),
            versions={k: str(v)[:80] for k, v in versions.items()} if isinstance(versions, dict) else {},
            parameters={k: v for k, v in state.items() if not k.endswith("_") and not isinstance(v, dict | list)},
            classes=dict(Counter(n for n, _ in objects)),
            arrays=tuple(sorted(((a.dtype.str, a.shape, a.size) for a in arrays), key=lambda a: -a[2])),
        )


def _class_and_state(objects: Any) -> list[tuple[str, dict]]:
    if not isinstance(objects, list):
        raise FileError("its header has no list of objects")
    pairs = []
    for obj in objects:
        name, state = (obj.get("class"), obj.get("state")) if isinstance(obj, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(state, dict):
            raise FileError("it has an object without a class or attributes")
        pairs.append((name, state))
    return pairs
