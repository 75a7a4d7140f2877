"""A table of metrics for each label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.metrics.label_tables import indicators, probabilities, read
from leastwise.metrics.labels import average_precision_of, f1_of, mean_of
from leastwise.metrics.probabilities import label_log_losses
from leastwise.utils.optional import frames

Array = np.ndarray

#: Names of the last two rows.
ENTRIES, MEAN = "all entries", "mean of labels"
#: Printed titles of the columns.
TITLES = {
    "known": "known",
    "positives": "positives",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "average_precision": "AP",
    "log_loss": "log-loss",
    "predicted": "predicted",
}
#: Largest number of printed labels, and of letters of a name.
SHOWN, NAME = 40, 24


@dataclass(frozen=True, eq=False)
class LabelReport:
    """Metrics of each label. Made by :func:`label_report`; ``print(report)`` shows the table.

    Attributes
    ----------
    table : dict of str to ndarray of shape (T + 2,)
        One entry for every label, then all entries together, then the mean over labels. The columns:

        ``label``
            Its name, or its number.
        ``known``, ``positives``
            Number of rows in which the label is known, and of these in which it is 1.
        ``precision``, ``recall``, ``f1``
            Of the decisions; precision is NaN if the label is never predicted, recall if it is never 1.
        ``average_precision``, ``log_loss``
            Of the probabilities.
        ``predicted``
            Share of the known rows that are predicted as 1.

        Means leave out NaN.
    """

    table: dict[str, Array]

    def to_frame(self) -> Any:
        """The whole table as a pandas data frame."""
        return frames("pandas").DataFrame(self.table)

    def __str__(self) -> str:
        cells = [["label", *TITLES.values()], *self._lines(), *map(self._cells, (-2, -1))]
        widths = [max(len(line[j]) for line in cells) for j in range(len(cells[0]))]
        lines = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in cells]
        hidden = len(self.table["label"]) - 2 - SHOWN
        remark = [f"... {hidden} more labels: to_frame() has them all"] if hidden > 0 else []
        return "\n".join([*lines[:-2], *remark, "", *lines[-2:]])

    def __repr__(self) -> str:
        return str(self)

    def _lines(self) -> Iterator[list[str]]:
        return map(self._cells, range(min(SHOWN, len(self.table["label"]) - 2)))

    def _cells(self, i: int) -> list[str]:
        name = " ".join(str(self.table["label"][i]).split())
        return [name if len(name) <= NAME else f"{name[: NAME - 1]}…", *(_number(self.table[c][i]) for c in TITLES)]


def label_report(
    Y_true: Any, P: Any, threshold: Any = 0.5, names: Any = None, *, missing: Any = np.nan
) -> LabelReport:
    """Metrics of probabilities, and of decisions by thresholds, for each label.

    Parameters
    ----------
    Y_true : array, sparse matrix or data frame of shape (n, T)
        True labels, 0 or 1; NaN if unknown.
    P : array or data frame of shape (n, T)
        Probabilities of 1.
    threshold : float or array-like of shape (T,), default=0.5
        A label is predicted if its probability is above that; for example ``threshold_`` of a fitted model.
    names : sequence of length T, optional
        Names of the labels; by default those of the columns of a data frame.
    missing : number or str, default=nan
        Another value of ``Y_true`` for unknown labels, such as -1.

    Returns
    -------
    LabelReport

    See Also
    --------
    sklearn.metrics.classification_report : If all labels are known.

    Examples
    --------
    >>> from leastwise.metrics import label_report
    >>> Y = [[1, 0], [0, 1], [1, None], [0, 0]]
    >>> P = [[0.9, 0.2], [0.4, 0.8], [0.7, 0.5], [0.6, 0.1]]
    >>> print(label_report(Y, P, names=["urgent", "sales"]))
    label           known  positives  precision  recall     F1     AP  log-loss  predicted
    urgent              4          2      0.667   1.000  0.800  1.000     0.472      0.750
    sales               3          1      1.000   1.000  1.000  1.000     0.184      0.333
    <BLANKLINE>
    all entries         7          3      0.750   1.000  0.857  1.000     0.349      0.571
    mean of labels      7          3      0.833   1.000  0.900  1.000     0.328      0.542
    """
    truth, true, W = indicators(Y_true, None, missing)
    S = probabilities(P, truth)
    given = _checked_threshold(threshold, W.shape[1]) < S  # False where unknown: S is 0 there
    known, positives, decided, both = (A.sum(axis=0) for A in (truth.known, true, given, true & given))
    labels = np.empty(W.shape[1] + 2, dtype=object)
    labels[:] = [*_checked_names(names, truth.labels or read(P, "P").labels, W.shape[1]), ENTRIES, MEAN]
    losses = label_log_losses(S, true)
    return LabelReport(
        {
            "label": labels,
            "known": np.append(known, [known.sum()] * 2),
            "positives": np.append(positives, [positives.sum()] * 2),
            "precision": _shares(both, decided),
            "recall": _shares(both, positives),
            "f1": _ended(f1_of(true, given, W, None), f1_of(true, given, W, "micro")),
            "average_precision": _ended(*(average_precision_of(S, true, W, average) for average in (None, "micro"))),
            "log_loss": _ended(mean_of(losses, W, None), mean_of(losses, W)),
            "predicted": _shares(decided, known),
        }
    )


def _shares(part: Array, whole: Array) -> Array:
    """Ratios of each label, of all entries, and the mean; NaN if the denominator is 0."""
    part, whole = np.append(part, part.sum()), np.append(whole, whole.sum())
    shares = np.where(whole > 0, part / np.maximum(whole, 1), np.nan)
    return _ended(shares[:-1], shares[-1])


def _ended(values: Any, overall: Any) -> Array:
    return np.array([*values, overall, mean_of(values, np.ones(len(values)))])


def _number(value: Any) -> str:
    if isinstance(value, np.integer):
        return str(value)
    return "-" if np.isnan(value) else f"{value:.3f}"


def _checked_threshold(threshold: Any, T: int) -> Array:
    try:
        t = np.asarray(threshold, dtype=float)
    except (TypeError, ValueError):
        t = np.array(np.nan)
    if t.shape not in ((), (T,)) or not ((t >= 0) & (t <= 1)).all():
        raise ValueError(f"threshold={threshold!r:.80} must be a number from 0 to 1, or one for each of {T} labels.")
    return t


def _checked_names(names: Any, own: Any, T: int) -> list:
    if names is None:
        return list(own or range(T))
    if isinstance(names, str) or len(names) != T:
        raise ValueError(f"names={names!r:.80} must have one name for each of {T} labels.")
    return list(names)
