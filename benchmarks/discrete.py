"""Discrete data: few distinct rows, each observed many times.

Leave-one-out holds out one observation. In discrete data most observations have duplicates, which stay in the
training set, so that held-out scores are close to the class shares of each combination of values. Each case has a
known truth or a large test set. ``--groups duplicates`` holds out equal rows together instead, which leaves no rows
to learn a combination from.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import log_loss, r2_score

from benchmarks._common import capped, parse, parser, print_markdown, write_json
from leastwise import LSPC, LSSVC, LSSVR, KernelLogisticRegression, MultiLabelLSPC, MultiTaskLSPC, MultiTaskLSSVR

Array = np.ndarray
TEST = 4000


# ------------------------------------------------------------------------ data


def binary(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """One binary feature; the probability is .1 or .9."""
    x = rng.integers(0, 2, n)
    return x[:, None].astype(float), (rng.random(n) < np.where(x, 0.9, 0.1)).astype(int)


def levels(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """One category of six levels, one-hot."""
    x = rng.integers(0, 6, n)
    return np.eye(6)[x], (rng.random(n) < np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])[x]).astype(int)


def xor(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Two binary features that are informative only together."""
    X = rng.integers(0, 2, (n, 2))
    return X.astype(float), (rng.random(n) < np.where(X[:, 0] ^ X[:, 1], 0.9, 0.1)).astype(int)


def passengers(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Passengers by class, sex and age group, with survival rates similar to those of the Titanic."""
    cell = rng.choice(8, n, p=[0.09, 0.16, 0.08, 0.13, 0.22, 0.27, 0.02, 0.03])
    survival = np.array([0.97, 0.33, 0.88, 0.10, 0.46, 0.16, 0.95, 0.45])
    X = np.array([[1, 1, 0], [1, 0, 0], [2, 1, 0], [2, 0, 0], [3, 1, 0], [3, 0, 0], [2, 1, 1], [3, 0, 1]], float)
    return X[cell], (rng.random(n) < survival[cell]).astype(int)


def survey(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Four answers from 1 to 5, three classes."""
    X = rng.integers(1, 6, (n, 4)).astype(float)
    scores = np.stack([0 * X[:, 0], X[:, 0] - 3, 0.8 * (X[:, 1] - X[:, 2])], axis=1)
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


CLASSES: dict[str, tuple[Callable, int]] = {
    "one binary feature": (binary, 400),
    "six levels, one-hot": (levels, 500),
    "XOR of two": (xor, 400),
    "passengers": (passengers, 800),
    "four answers, three classes": (survey, 500),
}


def steps(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A regression target that depends on a category of five levels."""
    x = rng.integers(0, 5, n)
    return np.eye(5)[x], np.array([0.0, 1.0, 0.5, 2.0, 1.5])[x] + 0.8 * rng.standard_normal(n)


def zeros_and_ones(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """A 0/1 regression target that depends on a category of five levels."""
    x = rng.integers(0, 5, n)
    return np.eye(5)[x], (rng.random(n) < np.array([0.05, 0.3, 0.5, 0.7, 0.95])[x]).astype(float)


def product(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """The product of two features with three values each."""
    X = rng.integers(-1, 2, (n, 2)).astype(float)
    return X, X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(n)


VALUES: dict[str, tuple[Callable, int]] = {
    "five levels, a quantity": (steps, 400),
    "five levels, 0 and 1": (zeros_and_ones, 400),
    "a product": (product, 400),
}


# --------------------------------------------------------------------- methods


class _Tasks:
    """A multi-task model with rows assigned to tasks in turn; all tasks follow the same function."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Array, y: Array, **given: Any) -> _Tasks:
        self.model.fit(X, y, tasks=np.arange(len(X)) % 4, **given)
        return self

    def predict(self, X: Array) -> Array:
        return self.model.predict(X, tasks=np.arange(len(X)) % 4)

    def predict_proba(self, X: Array) -> Array:
        return self.model.predict_proba(X, tasks=np.arange(len(X)) % 4)


class _Label:
    """A multi-label model, with each class as a label."""

    def fit(self, X: Array, y: Array, **given: Any) -> _Label:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            self.model = MultiLabelLSPC().fit(X, np.eye(int(y.max()) + 1, dtype=int)[y], **given)
        return self

    def predict_proba(self, X: Array) -> Array:
        P = np.asarray(self.model.predict_proba(X))
        return P / P.sum(axis=1, keepdims=True)


OURS = {
    "LSPC": LSPC,
    "MultiTaskLSPC": lambda: _Tasks(MultiTaskLSPC()),
    "MultiLabelLSPC": _Label,
    "LSSVC": LSSVC,
    "KLR": KernelLogisticRegression,
}
OUR_VALUES = {"LSSVR": LSSVR, "MultiTaskLSSVR": lambda: _Tasks(MultiTaskLSSVR())}


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.discrete", __doc__ or "", threads=1, runs=5)
    p.add_argument("--groups", choices=["duplicates"], help="hold out equal rows together")
    args = parse(p, argv)
    runs = 1 if args.quick else args.runs
    with capped(args):
        classes = {name: _classes(make, n, runs, args) for name, (make, n) in CLASSES.items()}
        values = {name: _values(make, n, runs, args) for name, (make, n) in VALUES.items()}
    for title, found in {"log-loss on new rows": classes, "explained variance on new rows": values}.items():
        names = list(next(iter(found.values())))
        rows = [[case, *(f"{row[name]:.3f}" for name in names)] for case, row in found.items()]
        print_markdown(title, ["case", *names], rows)
    write_json(args, {"log_loss": classes, "r2": values})


def _classes(make: Callable, n: int, runs: int, args: argparse.Namespace) -> dict[str, float]:
    given = {"groups": args.groups} if args.groups else {}
    found: dict[str, list[float]] = {}
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        (X, y), (A, b) = make(rng, n), make(rng, TEST)
        shares = np.bincount(y) / len(y)
        found.setdefault("class shares", []).append(log_loss(b, np.tile(shares, (TEST, 1))))
        for name, new in OURS.items():
            if given and name == "KLR":  # its five folds need five groups
                continue
            found.setdefault(name, []).append(log_loss(b, new().fit(X, y, **given).predict_proba(A)))
        peer = HistGradientBoostingClassifier(random_state=0).fit(X, y)
        found.setdefault("boosting", []).append(log_loss(b, peer.predict_proba(A)))
    return {name: float(np.mean(values)) for name, values in found.items()}


def _values(make: Callable, n: int, runs: int, args: argparse.Namespace) -> dict[str, float]:
    given = {"groups": args.groups} if args.groups else {}
    found: dict[str, list[float]] = {}
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        (X, y), (A, b) = make(rng, n), make(rng, TEST)
        for name, new in OUR_VALUES.items():
            found.setdefault(name, []).append(r2_score(b, new().fit(X, y, **given).predict(A)))
        for name, peer in {"ridge": RidgeCV(), "boosting": HistGradientBoostingRegressor(random_state=0)}.items():
            found.setdefault(name, []).append(r2_score(b, peer.fit(X, y).predict(A)))
    return {name: float(np.mean(values)) for name, values in found.items()}


if __name__ == "__main__":
    main()
