"""Shared by the multi-label benchmarks: draws and metrics."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from leastwise.metrics import expected_calibration_error, label_average_precision, label_f1, label_log_loss
from papers.ml_lspc.draws import LabelSplit, enron

Array = np.ndarray

QUALITY = ("f1_micro", "f1_macro", "log_loss", "average_precision", "ece")


def quality(Y: Array, P: Array, decisions: Array) -> dict[str, float]:
    """Metrics of decisions and probabilities on test rows; log-loss and calibration error are over all entries."""
    both = np.column_stack([1 - P.ravel(), P.ravel()])
    return {
        "f1_micro": float(label_f1(Y, decisions)),
        "f1_macro": float(label_f1(Y, decisions, average="macro")),
        "log_loss": float(label_log_loss(Y, P)),
        "average_precision": float(label_average_precision(Y, P)),
        "ece": expected_calibration_error(Y.ravel(), both, classes=[0, 1], n_bins=15, strategy="mass"),
    }


def enron_draws(args: argparse.Namespace) -> Callable[[int], LabelSplit]:
    """Rows of Enron for a given draw: as many as in the paper, or a few."""
    return enron(args.data, 150, 100) if args.quick else enron(args.data)
