"""Log-loss, Brier score and calibration errors with bootstrap intervals: overall, by task and by label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.metrics.calibration import Binned, check_whole, coded
from leastwise.metrics.label_tables import as_truth
from leastwise.metrics.probabilities import log_losses
from leastwise.metrics.reliability import bin_count, centred_quantiles, resampled_groups
from leastwise.problem.tasks import encode_tasks
from leastwise.utils.optional import frames
from leastwise.utils.text_format import NAME, shortened

Array = np.ndarray

MEASURES = ("log_loss", "brier", "reliability", "resolution", "uncertainty", "ece", "classwise_ece")


@dataclass(frozen=True, eq=False)
class CalibrationReport:
    """Made by :func:`calibration_report`; ``print`` shows it as a table.

    Attributes
    ----------
    names : list
        "all", then the tasks or labels.
    rows : ndarray of int of shape (lines,)
        Number of rows of each line; for labels, of known entries.
    values, low, high : dict of str to ndarray of shape (lines,)
        ``log_loss``, ``brier`` with ``reliability``, ``resolution`` and ``uncertainty``, ``ece`` and
        ``classwise_ece``, both debiased; and the ends of their bootstrap intervals.
    level : float
        Level of the intervals.
    """

    names: list
    rows: Array
    values: dict[str, Array]
    low: dict[str, Array]
    high: dict[str, Array]
    level: float

    def to_frame(self) -> Any:
        """A pandas frame with one line for all rows and one for each task or label; ends are ``ece_low``, ..."""
        pandas = frames("pandas")
        columns: dict[str, Any] = {"rows": self.rows}
        for name in self.values:
            columns |= {name: self.values[name], f"{name}_low": self.low[name], f"{name}_high": self.high[name]}
        return pandas.DataFrame(columns, index=pandas.Index(self.names, name="part", dtype=object))

    def __str__(self) -> str:
        shown = ("log_loss", "brier", "ece", "classwise_ece")
        lines = [["", "rows", *(name.replace("_", "-") for name in shown), "reliability", "resolution"]]
        for i, name in enumerate([*map(str, self.names[:1]), *shortened(self.names[1:], NAME)]):
            cells = [f"{self.values[m][i]:.4f} [{self.low[m][i]:.4f}, {self.high[m][i]:.4f}]" for m in shown]
            parts = [f"{self.values[m][i]:.4f}" for m in ("reliability", "resolution")]
            lines.append([name, str(self.rows[i]), *cells, *parts])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = [
            "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))])
            for line in lines
        ]
        note = f"{self.level:.0%} bootstrap intervals; ece and classwise-ece are debiased"
        return "\n".join([*table, note])


def calibration_report(
    y: Any,
    P: Any,
    *,
    classes: Any = None,
    tasks: Any = None,
    labels: Any = None,
    groups: Any = None,
    n_bins: int = 15,
    n_boot: int = 200,
    level: float = 0.95,
    random_state: Any = 0,
) -> CalibrationReport:
    """Measure the quality of probabilities, with bootstrap intervals.

    Parameters
    ----------
    y : array-like of shape (n,), or (n, T) for labels that are 0 or 1
        True classes, or a table of labels with NaN for unknown ones.
    P : array-like of shape (n, c), or (n, T)
        Probabilities of every class; for labels, of 1.
    classes : array-like of shape (c,), optional
        Classes of the columns; by default the sorted values of y.
    tasks : array-like of shape (n,), optional
        The task of every row; each task gets a line.
    labels : sequence of T names, optional
        Names of the labels; by default the columns of a frame, or 0, 1, ...
    groups : array-like of shape (n,), optional
        Rows of one group, such as one person, are dependent and drawn together in the bootstrap.
    n_bins : int
        Number of bins of equal mass; fewer where a bin would have fewer than 10 rows.
    n_boot : int
        Number of bootstrap draws; with 0 the intervals are NaN.
    level : float
        Level of the intervals: from the quantile (1 - level) / 2 of the draws to the quantile (1 + level) / 2, after
        the draws are shifted such that their mean is the value. Draws of calibration errors lie to one side of it
        otherwise.
    random_state : int, Generator or None

    Returns
    -------
    CalibrationReport

    Notes
    -----
    The bins are the same in all draws. A row that is drawn k times has weight k, and weighted rows count as
    (sum w)^2 / sum w^2 rows in the debiasing. Reliability and resolution are not debiased: both are too large by
    chance, the more so the fewer rows there are.
    """
    check_whole("n_bins", n_bins, 1)
    check_whole("n_boot", n_boot, 0)
    if not 0 < level < 1:
        raise ValueError(f"level={level!r} must be between 0 and 1, such as 0.95.")
    parts, n = _parts(y, P, classes, tasks, labels)
    groups = np.arange(n) if groups is None else encode_tasks(groups, n)[0]
    binned = [Binned.of(code, p, np.ones(len(code)), bin_count(len(code), n_bins)) for _, _, code, p in parts]
    values = np.array([_measured(b, np.ones(len(b.p))) for b in binned])
    draws = _draws(binned, [rows for _, rows, _, _ in parts], groups, n_boot, np.random.default_rng(random_state))
    low, high = np.full_like(values, np.nan), np.full_like(values, np.nan)
    if n_boot:
        low, high = centred_quantiles(draws, values, level)
    value, start, end = ({name: A[:, j] for j, name in enumerate(MEASURES)} for A in (values, low, high))
    rows = np.array([len(b.p) for b in binned])
    return CalibrationReport([part[0] for part in parts], rows, value, start, end, level)


Part = tuple[Any, Array, Array, Array]


def _parts(y: Any, P: Any, classes: Any, tasks: Any, labels: Any) -> tuple[list[Part], int]:
    """Name, rows, codes and probabilities of every line, and the number of rows."""
    if np.ndim(y) == 2:
        if tasks is not None or classes is not None:
            raise ValueError(
                "y is a table of labels, for which tasks= and classes= are not allowed: pass one column at a time."
            )
        return _label_parts(y, P, labels)
    if labels is not None:
        raise ValueError("labels= names the columns of a table of labels, and y has one class per row: use classes=.")
    codes, P, _ = coded(y, P, classes)
    parts: list[Part] = [("all", np.arange(len(codes)), codes, P)]
    if tasks is not None:
        task, known = encode_tasks(list(tasks) if isinstance(tasks, tuple) else tasks, len(codes))
        for t, name in enumerate(known.ids):
            rows = np.flatnonzero(task == t)
            parts.append((name, rows, codes[rows], P[rows]))
    return parts, len(codes)


def _label_parts(y: Any, P: Any, labels: Any) -> tuple[list[Part], int]:
    names = labels if labels is not None else getattr(y, "columns", None)
    Y, P = as_truth(y, P)
    names = list(range(Y.shape[1])) if names is None else list(names)
    if len(names) != Y.shape[1]:
        raise ValueError(f"labels has {len(names)} names for {Y.shape[1]} columns: give one for each.")
    i, t = np.nonzero(~np.isnan(Y))
    code, two = Y[i, t].astype(int), np.column_stack([1 - P[i, t], P[i, t]])
    own = [(name, t == k) for k, name in enumerate(names) if (t == k).any()]
    return [("all", i, code, two), *((name, i[here], code[here], two[here]) for name, here in own)], len(Y)


def _measured(binned: Binned, w: Array) -> list[float]:
    if not w.sum() > 0:
        return [np.nan] * len(MEASURES)
    parts = binned.brier(w)
    errors = [binned.error(0, w, debiased=True), binned.classwise(w, debiased=True)]
    loss = float(w @ log_losses(binned.p[:, 1:][binned.hit[:, 1:]]) / w.sum())
    return [loss, parts.brier, parts.reliability, parts.resolution, parts.uncertainty, *errors]


def _draws(binned: list[Binned], rows: list[Array], group: Array, n_boot: int, rng: np.random.Generator) -> Array:
    """Measures of every bootstrap draw and line."""
    n_groups = int(group.max()) + 1
    draws = np.empty((n_boot, len(binned), len(MEASURES)))
    for k, times in enumerate(resampled_groups(n_groups, n_boot, rng)):
        w = times[group].astype(float)
        draws[k] = [_measured(b, w[r]) for b, r in zip(binned, rows, strict=True)]
    return draws
