"""Many labels per row: quality and time of one coupled model, compared with the usual methods.

MultiLabelLSPC()         defaults: search, fit and calibration by held-out scores; also with thresholds chosen for
                         micro F1, and with sharing=0 (independent labels)
LogisticRegression       MultiOutputClassifier of GridSearchCV (C, 3 folds, log-loss)
SVC + CalibratedCV       MultiOutputClassifier of GridSearchCV (C and gamma, 3 folds, accuracy), then
                         CalibratedClassifierCV(method="sigmoid", ensemble=False, cv=3)
chain ...                ClassifierChain of the same logistic regressions, in the order of the labels
RandomForest             RandomForestClassifier(300), all labels in one forest
label shares             the share of each label, without a model

scikit-learn's searches need at least 3 rows of each class of a label. Other labels get a constant probability,
(positive rows + share of all labels) / (all rows + 1).

enron       1,000 rows of 1,001 words for training, 702 for testing, 53 labels of which many are rare
digits      scikit-learn's images, 300 for training, the rest for testing; 16 labels: which digit it is, and whether
            it is even, prime, a square, above 4, has a closed loop, or has a straight line
made        scikit-learn's make_multilabel_classification: 500 rows for training, 1,500 for testing, 40 features,
            20 labels

Log-loss and calibration error are those of all entries of the label table, average precision is the mean over labels.
Decisions are at 0.5 except for "threshold='auto'". All times include the search; with --threads 1 they are processor
seconds. SVC and chains run in the first --slow-runs draws only. All methods get the same input and the same cores:
BLAS and OpenMP are capped at --threads, and scikit-learn fits --threads labels, or candidates, at a time.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.svm import SVC

from benchmarks._common import parse, parser, print_markdown, write_json
from benchmarks._labels import QUALITY, enron_draws, quality
from benchmarks._pieces import add_options, gathered, seconds_of
from benchmarks.calibrated_peers import gammas, warm_up
from leastwise import MultiLabelLSPC
from papers._common.data import available
from papers._common.output import mean_and_error
from papers._common.timing import timed
from papers.ml_lspc.draws import LabelSplit, calmly, divided

Array = np.ndarray

SETS = ("enron", "digits", "made")
OURS = "MultiLabelLSPC()"
COSTS, SVC_COSTS = (0.01, 0.1, 1, 10), (1, 10)
#: A label with fewer rows of a class than this gets a constant probability.
FEWEST = 3
PROPERTIES = {
    "even": (0, 2, 4, 6, 8),
    "prime": (2, 3, 5, 7),
    "square": (0, 1, 4, 9),
    "large": (5, 6, 7, 8, 9),
    "loop": (0, 6, 8, 9),
    "straight": (1, 4, 5, 7),
}

# ------------------------------------------------------------------------ data


def draws(name: str, args: argparse.Namespace) -> Callable[[int], LabelSplit]:
    """A function that maps the number of a draw to its rows."""
    if name == "enron":
        return enron_draws(args)
    return partial({"digits": digits, "made": made}[name], quick=args.quick)


def digits(seed: int, quick: bool) -> LabelSplit:
    X, digit = load_digits(return_X_y=True)
    is_digit = digit[:, None] == np.arange(10)
    Y = np.column_stack([is_digit, *(np.isin(digit, which) for which in PROPERTIES.values())]).astype(int)
    order = np.random.default_rng([2012, seed]).permutation(len(X))
    rows = 100 if quick else 300
    return divided("digits", X / 16, Y, order[:rows], order[rows : 250 if quick else None])


def made(seed: int, quick: bool) -> LabelSplit:
    rows, new = (100, 150) if quick else (500, 1500)
    X, Y = make_multilabel_classification(
        rows + new, n_features=40, n_classes=8 if quick else 20, n_labels=4, random_state=seed
    )
    every = np.arange(rows + new)
    mean, deviation = X[:rows].mean(axis=0), X[:rows].std(axis=0)
    X = (X - mean) / np.where(deviation > 0, deviation, 1)
    return divided("made", X, Y, every[:rows], every[rows:])


# --------------------------------------------------------------------- methods


@dataclass(frozen=True)
class Fitted:
    """A fitted model: functions for the probabilities of 1 and for decisions, and the seconds of the fit."""

    label: str
    proba: Callable[[Array], Array]
    seconds: float
    decide: Callable[[Array], Array] | None = None
    more: Any = None


Method = Callable[[LabelSplit, int, argparse.Namespace], Iterator[Fitted]]


class OrShare(ClassifierMixin, BaseEstimator):
    """An estimator of one label; a constant if the label has too few rows of a class."""

    def __init__(self, estimator: Any, share: float) -> None:
        self.estimator = estimator
        self.share = share

    def fit(self, X: Array, y: Array) -> OrShare:
        """Fit if each class has enough rows."""
        self.classes_ = np.array([0, 1])
        ones = int(np.sum(y))
        self.constant_ = min(ones, len(y) - ones) < FEWEST
        self.mean_ = (ones + self.share) / (len(y) + 1)
        self.model_ = None if self.constant_ else clone(self.estimator).fit(X, y)
        return self

    def predict_proba(self, X: Array) -> Array:
        """Probabilities of 0 and 1."""
        if self.model_ is not None:
            return self.model_.predict_proba(X)
        return np.tile([1 - self.mean_, self.mean_], (len(X), 1))

    def predict(self, X: Array) -> Array:
        """1 if the probability is at least 0.5."""
        return (self.predict_proba(X)[:, 1] >= 0.5).astype(int)


def tied(data: LabelSplit, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    for label, options in (
        (OURS, {}),
        ("MultiLabelLSPC(threshold='auto')", {"threshold": "auto"}),
        ("MultiLabelLSPC(sharing=0)", {"sharing": 0.0}),
    ):
        model = MultiLabelLSPC(**options, random_state=seed)
        done = timed(partial(model.fit, data.X, data.Y))
        chosen = [model.sigma_, model.alpha_, model.sharing_]
        yield Fitted(label, model.predict_proba, seconds_of(done, args), model.predict, chosen)


def second_columns(model: Any, X: Array) -> Array:
    """Probabilities of 1 from a list with one table for each label, which may have only class 0 or only class 1."""
    tables = zip(model.predict_proba(X), model.classes_, strict=True)
    return np.column_stack([P[:, list(c).index(1)] if 1 in c else np.zeros(len(P)) for P, c in tables])


def searched_logistic(seed: int, jobs: int | None = None) -> GridSearchCV:
    model = LogisticRegression(solver="liblinear", max_iter=1000)
    return GridSearchCV(model, {"C": COSTS}, scoring="neg_log_loss", cv=folds(seed), n_jobs=jobs)


def folds(seed: int) -> StratifiedKFold:
    return StratifiedKFold(FEWEST, shuffle=True, random_state=seed)


def logistic(data: LabelSplit, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    warm_up(args.threads)
    each = MultiOutputClassifier(OrShare(searched_logistic(seed), data.Y.mean()), n_jobs=args.threads)
    done = timed(partial(each.fit, data.X, data.Y))
    yield Fitted("LogisticRegression", partial(second_columns, each), seconds_of(done, args))


class PlattSVC(ClassifierMixin, BaseEstimator):
    """C and gamma from a grid, then sigmoid calibration."""

    def __init__(self, gammas: Sequence[float], seed: int) -> None:
        self.gammas = gammas
        self.seed = seed

    def fit(self, X: Array, y: Array) -> PlattSVC:
        """Search, then calibrate."""
        grid = {"C": SVC_COSTS, "gamma": self.gammas}
        best = GridSearchCV(SVC(), grid, cv=folds(self.seed), refit=False).fit(X, y).best_params_
        platt = CalibratedClassifierCV(SVC(**best), method="sigmoid", ensemble=False, cv=folds(self.seed))
        self.model_ = platt.fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Array) -> Array:
        """Probabilities of 0 and 1."""
        return self.model_.predict_proba(X)


def svc(data: LabelSplit, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    if seed >= args.slow_runs:
        return
    warm_up(args.threads)
    each = MultiOutputClassifier(OrShare(PlattSVC(gammas(data.X), seed), data.Y.mean()), n_jobs=args.threads)
    done = timed(partial(each.fit, data.X, data.Y))
    yield Fitted("SVC + CalibratedCV", partial(second_columns, each), seconds_of(done, args))


def chain(data: LabelSplit, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    if seed >= args.slow_runs:
        return
    warm_up(args.threads)
    model = ClassifierChain(OrShare(searched_logistic(seed, args.threads), data.Y.mean()))
    done = timed(partial(model.fit, data.X, data.Y))
    yield Fitted("chain of LogisticRegression", model.predict_proba, seconds_of(done, args))


def forest(data: LabelSplit, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    model = RandomForestClassifier(20 if args.quick else 300, random_state=seed, n_jobs=args.threads)
    done = timed(partial(model.fit, data.X, data.Y))
    yield Fitted("RandomForest", partial(second_columns, model), seconds_of(done, args))


def shares(data: LabelSplit, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    P = (data.Y.sum(axis=0) + data.Y.mean()) / (len(data.Y) + 1)
    yield Fitted("label shares", lambda X: np.tile(P, (len(X), 1)), 0.0)


METHODS: dict[str, Method] = {
    "ours": tied,
    "logistic": logistic,
    "chain": chain,
    "svc": svc,
    "forest": forest,
    "shares": shares,
}

# ---------------------------------------------------------------------- figures


def measured(data: LabelSplit, seed: int, fitted: Fitted, unsettled: int, args: argparse.Namespace) -> dict:
    predicted = timed(partial(fitted.proba, data.X_test))
    P = np.clip(np.asarray(predicted.value, dtype=float), 0, 1)
    decisions = P >= 0.5 if fitted.decide is None else fitted.decide(data.X_test)
    return {
        "data": data.name,
        "rows": len(data.Y),
        "test_rows": len(data.Y_test),
        "labels": data.Y.shape[1],
        "method": fitted.label,
        "run": seed,
        **quality(data.Y_test, P, np.asarray(decisions).astype(int)),
        "seconds": fitted.seconds,
        "predict_seconds": seconds_of(predicted, args),
        "unsettled": unsettled,
        "chosen": fitted.more,
    }


def with_warnings(method: Method, *case: Any) -> Iterator[tuple[Fitted, int]]:
    """Fitted models of a method, each with the number of its convergence warnings in this process."""
    steps = method(*case)
    while True:
        fitted, count = calmly(lambda: next(steps, None))
        if fitted is None:
            return
        yield fitted, count


def run(args: argparse.Namespace) -> Iterator[dict]:
    for name, draw in available(args.sets, lambda name: draws(name, args)):
        for seed, method in itertools.product(range(args.runs), args.methods):
            data = draw(seed)
            for fitted, count in with_warnings(METHODS[method], data, seed, args):
                found = measured(data, seed, fitted, count, args)
                marks = f"F1 {found['f1_micro']:.4f}, log-loss {found['log_loss']:.4f}"
                print(f"{name}, run {seed}, {fitted.label}: {marks}, {fitted.seconds:.2f} s", flush=True)
                yield found


def report(found: list[dict]) -> None:
    for name in dict.fromkeys(f["data"] for f in found):
        here = [f for f in found if f["data"] == name]
        lines = []
        for method in dict.fromkeys(f["method"] for f in here):
            runs = [f for f in here if f["method"] == method]
            times = [float(np.mean([f[k] for f in runs])) or None for k in ("seconds", "predict_seconds")]
            lines.append([method, len(runs), *(mean_and_error([f[k] for f in runs]) for k in QUALITY), *times])
        first = here[0]
        title = f"{name}: {first['rows']} training rows, {first['test_rows']} test rows, {first['labels']} labels"
        header = ["method", "draws", "micro F1", "macro F1", "log-loss", "average precision", "calibration error"]
        print_markdown(f"{title}; mean ± standard error", [*header, "seconds", "prediction"], lines)


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.label_peers", __doc__, threads=1, runs=3)
    add_options(p, SETS, list(METHODS))
    p.add_argument("--slow-runs", type=int, default=1, help="draws with SVC and chains (default 1)")
    args = parse(p, argv)
    if args.quick:
        args.runs = 1
    found = gathered(args, run(args))
    report(found)
    write_json(args, {"settings": {"costs": COSTS, "svc_costs": SVC_COSTS}, "figures": found})


if __name__ == "__main__":
    main()
