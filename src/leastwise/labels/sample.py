"""Held-out scores of many labels, with what is known of their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class LabelSample:
    """Held-out scores of n rows and T labels with O classes in all.

    Attributes
    ----------
    F : ndarray of shape (n, O)
        Scores; label t has the columns ``starts[t] ... starts[t + 1] - 1``.
    codes : ndarray of int of shape (n, T)
        Codes of the classes; -1 where a label is not known.
    W : ndarray of shape (n, T)
        Weights; 0 where a label is not known.
    starts : ndarray of int of shape (T + 1,)
    size : int
        Number of independent witnesses among the rows.
    counts : ndarray of shape (O,), optional
        Weight of every class, where it is known of more rows than these.
    """

    F: Array
    codes: Array
    W: Array
    starts: Array
    size: int
    counts: Array | None = None

    @property
    def n_labels(self) -> int:
        """T."""
        return self.codes.shape[1]

    @property
    def binary(self) -> bool:
        """Whether every label has two classes."""
        return bool(np.all(np.diff(self.starts) == 2))

    def by_width(self) -> Iterator[tuple[Array, Array]]:
        """Labels with equally many classes, and their columns, of shape (labels, classes)."""
        yield from by_width(self.starts)


def by_width(starts: Array) -> Iterator[tuple[Array, Array]]:
    """Labels with equally many classes, and their columns, of shape (labels, classes)."""
    widths = np.diff(starts)
    for width in np.unique(widths):
        labels = np.flatnonzero(widths == width)
        yield labels, starts[labels][:, None] + np.arange(width)


def class_counts(codes: Array, W: Array, starts: Array) -> Array:
    """Weight of every class of every label, of shape (O,), over known entries."""
    known = W > 0
    where = np.broadcast_to(starts[:-1], known.shape)[known] + codes[known]
    return np.bincount(where, weights=W[known], minlength=int(starts[-1]))
