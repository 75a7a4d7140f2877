"""From what the readers give to a data set: everything is checked, and classes are numbered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from leastwise.datasets.files import Array, Dataset, Entry, Part, Source, blaming, stacked


def read_dataset(name: str, entry: Entry, source: Source, paths: Sequence[Path]) -> Dataset:
    """Read, check, number the classes, put the parts into one."""
    parts = source.read(paths)
    with blaming(" + ".join(str(path) for path in paths)):
        parts = [_checked(part, entry, source.labels) for part in parts]
        X, y, task, in_training, names = stacked(parts)
    return Dataset(
        name=name,
        X=X,
        y=y,
        is_train=np.arange(len(y)) < len(parts[0].y),
        target_names=entry.target_names,
        task=task,
        female=None if entry.female is None else np.isin(y, entry.female),
        feature_names=entry.feature_names or names,
        splits=None if in_training is None else np.ascontiguousarray(in_training.T),
        label_names=entry.label_names,
    )


def _checked(part: Part, entry: Entry, labels: Sequence | None) -> Part:
    raw = np.asarray(part.y)
    if not len(part.X):
        raise ValueError("a part without rows")
    X: Array = np.asarray(part.X).reshape(len(part.X), -1).astype(entry.dtype)
    if len(X) != len(raw):
        raise ValueError(f"{len(X)} rows but {len(raw)} labels")
    if X.shape[1] != entry.n_features:
        raise ValueError(f"{X.shape[1]} features instead of {entry.n_features}")
    if not _known(X, entry.missing).all():
        raise ValueError("some values are not finite")
    return Part(
        X,
        _checked_y(raw, entry, labels),
        _checked_task(part.task, len(X)),
        _checked_splits(part.in_training, len(X)),
        _checked_names(part.feature_names, entry.n_features),
    )


def _known(X: Array, missing: Sequence[int]) -> Array:
    """Which values are finite, or are missing where that may be."""
    known: Array = np.isfinite(X)
    for j in missing:
        known[:, j] |= np.isnan(X[:, j])
    return known


def _checked_y(raw: Array, entry: Entry, labels: Sequence | None) -> Array:
    """Of classes, of targets, or of labels beside each other."""
    if entry.label_names is not None:
        return _checked_indicator(raw, len(entry.label_names))
    return _checked_targets(raw) if labels is None else _numbered(raw, labels)


def _checked_indicator(raw: Array, n_labels: int) -> Array:
    if raw.ndim != 2 or raw.shape[1] != n_labels:
        raise ValueError(f"labels of shape {raw.shape} instead of {n_labels} columns")
    if not np.isin(raw, (0, 1)).all():
        raise ValueError("labels that do not say 0 or 1 of every row")
    return raw.astype(np.intp)


def _checked_names(names: tuple[str, ...] | None, n_features: int) -> tuple[str, ...] | None:
    if names is not None and len(names) != n_features:
        raise ValueError(f"{len(names)} names of features instead of {n_features}")
    return names


def _checked_targets(raw: Array) -> Array:
    y: Array = raw.astype(np.float64)
    if y.ndim != 1 or not np.isfinite(y).all():
        raise ValueError("targets that are not one finite number a row")
    return y


def _numbered(raw: Array, labels: Sequence) -> Array:
    matches = raw[:, None] == np.asarray(labels)
    if not matches.any(axis=1).all():
        raise ValueError(f"label {raw[~matches.any(axis=1)][0]} is none of {list(labels)}")
    return matches.argmax(axis=1)


def _checked_task(task: Array | None, n: int) -> Array | None:
    if task is None:
        return None
    codes: Array = np.asarray(task).astype(np.intp)
    if codes.shape != (n,):
        raise ValueError(f"{n} rows but tasks of shape {codes.shape}")
    if not np.array_equal(codes, task) or codes.min() < 0:
        raise ValueError("tasks that are not numbered 0, 1, ...")
    return codes


def _checked_splits(in_training: Array | None, n: int) -> Array | None:
    if in_training is None:
        return None
    given = np.asarray(in_training)
    if given.ndim != 2 or len(given) != n:
        raise ValueError(f"{n} rows but splits of shape {given.shape[::-1]}")
    if not np.isin(given, (0, 1)).all():
        raise ValueError("splits that do not say 0 or 1 of every row")
    return given.astype(bool)
