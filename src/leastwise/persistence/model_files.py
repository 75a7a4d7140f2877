"""Save and load models."""

from __future__ import annotations

import os
import warnings
from typing import Any

import sklearn
from sklearn.exceptions import InconsistentVersionWarning

from leastwise.persistence.container import FileError, Path
from leastwise.persistence.objects import read_thing, write_thing
from leastwise.persistence.registry import entry_of, table

KEEP = ("all", "predict")
DTYPES = (None, "float32")


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
    write_thing(model, path, keep, dtype)


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
    model, header = read_thing(path, mmap, verify)
    if not hasattr(model, "get_params"):
        raise FileError(f"{os.fspath(path)!r} cannot be read: what it holds is no estimator.")
    _warn_of_versions(header)
    return model


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
