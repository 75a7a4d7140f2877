"""Calibrators for held-out rows: none has seen the rows that it is applied to.

A calibrator that is fitted to all held-out scores has seen those of every row: with few rows, or nearly separable
classes, its log-loss on these rows is too small. So the rows are divided into folds, and the scores of each fold are
calibrated as the other folds say. New rows are predicted with the calibrator of all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from leastwise.calibration.calibrators import fit_calibrator, fit_label_calibrator
from leastwise.estimators.spec import Spec
from leastwise.estimators.validation import Dataset
from leastwise.model_selection.folds import hashed_folds
from leastwise.problem.kernels import Precomputed
from leastwise.solvers.label_evaluators import LabelRows

Array = np.ndarray

#: Folds of the rows.
FOLDS = 8


def fold_calibrators(spec: Spec, data: Dataset, F: Array, calibrator: Any) -> Iterator[tuple[Array, Any]]:
    """Indices of the rows of each fold, and a calibrator that was fitted to the other folds.

    Parameters
    ----------
    F : ndarray of shape (n, outputs)
        Held-out scores of the rows with a weight above 0.
    calibrator : Calibrator or LabelCalibrator
        Fitted to all of these rows, where the other fits start.

    Yields nothing where there is nothing to fit, or too few rows for folds.
    """
    rows = data.rows
    fold = hashed_folds(rows, FOLDS, isinstance(data.kernel, Precomputed))
    if spec.calibration is None or spec.logistic or fold is None:
        return
    for k in range(FOLDS):
        others = np.flatnonzero((fold != k) & ~np.isnan(F[:, 0]))
        if len(others):
            yield np.flatnonzero(fold == k), _fitted(spec, data, rows.part(others), F[others], calibrator)


def _fitted(spec: Spec, data: Dataset, part: Any, F: Array, start: Any) -> Any:
    """The calibrator of a part of the rows; class shares are those of all rows."""
    rows = data.rows
    if isinstance(rows, LabelRows):
        counts = rows.class_counts() if rows.shares is None else rows.shares
        return fit_label_calibrator(spec.calibration, replace(part.label_sample(F), counts=counts), start)
    sample = replace(part.sample(F), prior=rows.class_shares(F.shape[1]).astype(F.dtype))
    return fit_calibrator(spec.calibration, sample, start, data.targets.signed)
