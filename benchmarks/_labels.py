"""What the benchmarks of many labels share: draws, quality and tables."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks._common import capped, cell, load_set, settled, write_json
from leastwise.datasets import make_rotated_labels
from leastwise.label_metrics import label_average_precision, label_f1, label_log_loss
from leastwise.metrics import expected_calibration_error

Array = np.ndarray

#: Training rows of Enron in the paper; the other 702 are for testing.
ENRON_ROWS = 1000
QUALITY = ("f1_micro", "f1_macro", "log_loss", "average_precision", "ece")


@dataclass(frozen=True)
class LabelSplit:
    """Training and test rows of one draw, with labels of 0 and 1."""

    name: str
    X: Array
    Y: Array
    X_test: Array
    Y_test: Array

    def __str__(self) -> str:
        return f"{self.name}, {len(self.Y)} / {len(self.Y_test)} rows, {self.Y.shape[1]} labels"


def divided(name: str, X: Array, Y: Array, train: Array, test: Array) -> LabelSplit:
    return LabelSplit(name, X[train], Y[train], X[test], Y[test])


def enron(folder: str | None, quick: bool = False) -> Callable[[int], LabelSplit]:
    """A function from the number of a draw to random rows, 1,000 of them for training as in the paper."""
    data = load_set("enron", folder)
    X, Y = np.asarray(data.X, dtype=float), np.asarray(data.Y)
    train, test = (150, 100) if quick else (ENRON_ROWS, len(X) - ENRON_ROWS)

    def draw(seed: int) -> LabelSplit:
        order = np.random.default_rng([2012, seed]).permutation(len(X))
        return divided("enron", X, Y, order[:train], order[train : train + test])

    return draw


def rotated(n_labels: int, rows: int, test_rows: int, seed: int, **options: Any) -> LabelSplit:
    """The paper's toy data, with new rows for testing."""
    data = make_rotated_labels(n_labels, rows + test_rows, random_state=seed, **options)
    every = np.arange(rows + test_rows)
    return divided(f"rotated-{n_labels}", data.X, data.Y, every[:rows], every[rows:])


def quality(Y: Array, P: Array, decisions: Array) -> dict[str, float]:
    """Of decisions and probabilities on test rows; log-loss and calibration error are those of all entries."""
    both = np.column_stack([1 - P.ravel(), P.ravel()])
    return {
        "f1_micro": float(label_f1(Y, decisions)),
        "f1_macro": float(label_f1(Y, decisions, average="macro")),
        "log_loss": float(label_log_loss(Y, P)),
        "average_precision": float(label_average_precision(Y, P)),
        "ece": expected_calibration_error(Y.ravel(), both, classes=[0, 1], n_bins=15, strategy="mass"),
    }


def calmly(call: Callable[[], Any]) -> tuple[Any, int]:
    """What a call returns, and its convergence warnings; those about labels of one class are not shown."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Labels with one class only.*")
        warnings.filterwarnings("ignore", message="Rows without any known label.*")
        return settled(call)


def mean_and_error(values: Sequence[float], digits: int = 4) -> str:
    """Mean and standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{np.mean(values):.{digits}f} ± {error:.{digits}f}"


def print_markdown(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table as it goes into the documentation."""
    print(f"\n{title}\n")
    for line in [header, ["---"] * len(header), *rows]:
        print("| " + " | ".join(cell(value) for value in line) + " |", flush=True)


def gathered(args: argparse.Namespace, records: Iterable[dict]) -> list[dict]:
    """All records, with the threads capped; what is there is on disk at any time."""
    found: list[dict] = []
    with capped(args):
        for record in records:
            found.append(record)
            write_json(args, {"figures": found}, say=False)
    return found
