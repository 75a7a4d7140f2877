"""Data and methods of ``recalibration``: classes and tasks, labels of Enron, regression on School."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.model_selection import train_test_split

from benchmarks._common import in_proportion, peer_split
from benchmarks.task_peers import landmine, related
from leastwise import LSPC, LSSVC, MultiLabelLSPC, MultiTaskLSPC, MultiTaskLSSVR, Recalibrated
from leastwise.calibration.maps import FAMILIES
from leastwise.calibration.recalibration import choose_family
from leastwise.datasets import make_three_class
from leastwise.estimators._recalibrated_rows import read_heldout, read_truth
from leastwise.inspection.calibration_report import calibration_report
from papers._common import PLAIN as INPUTS
from papers._common.data import Split, load_set, scale_of, standardise
from papers._common.timing import timed, timed_median
from papers.ml_lspc.draws import calmly, enron

Array = np.ndarray
Figures = Iterator[tuple[str, Any, dict]]

PAPER = ("usps", "satimage", "letter", "digits")
SMALL = {"wine": load_wine, "breast_cancer": load_breast_cancer, "iris": load_iris}
TASKS = ("landmine", "related")
#: Data that were not used to develop the rules of "auto".
FRESH = ("mnist", "dermatology", "three-class", "imbalanced", "related")
MODELS = {
    "LSPC()": LSPC(**INPUTS),
    "LSPC(calibration=None)": LSPC(**INPUTS, calibration=None),
    "LSSVC()": LSSVC(**INPUTS),
}
TASK_MODELS = {"MultiTaskLSPC()": MultiTaskLSPC(**INPUTS, task_column=-1)}
PLAIN, AUTO, BY_TASK = "as it comes", "auto", "auto, by task"
FOLDED = ("sigmoid", "isotonic", "temperature")
#: Families that "auto" does not try, and that are compared with it.
ADDED = ("quadratic", "structured")
MEASURES = ("log_loss", "ece", "classwise_ece")
LABELS, REPEATS = 5, 3
COVERAGE = 0.9


def models(data: str) -> dict[str, Any]:
    """Models of a data set; on the larger ones only those with their own calibration."""
    calibrated = {name: model for name, model in MODELS.items() if data not in PAPER or model.calibration is not None}
    return TASK_MODELS if data in TASKS else calibrated


def draw(name: str, folder: str | None, seed: int, quick: bool) -> Split:
    """About 1,000 training rows, or half of a small set; with tasks, the task is the last column."""
    if name in TASKS:
        made = landmine(folder, seed, 5 if quick else 29, 35) if name == "landmine" else related(name, 0.6, seed, 10)
        parts = [(np.column_stack([rows.X, rows.task]), rows.y) for rows in (made.train, made.test)]
        return Split(name, *parts[0], *parts[1])
    if name == "three-class":
        X, y = make_three_class(4300, random_state=seed)
        return Split(name, X[:300], y[:300], X[300:], y[300:])
    if name == "imbalanced":
        shape = {"n_informative": 5, "n_classes": 3, "weights": [0.7, 0.2, 0.1], "flip_y": 0.05}
        X, y = make_classification(4500, 10, random_state=seed, **shape)
        return Split(name, X[:500], y[:500], X[500:], y[500:])
    if name in SMALL or name == "dermatology":
        X, y = SMALL[name](return_X_y=True) if name in SMALL else _dermatology(folder)
        A, B, a, b = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
        scale = scale_of(A)
        return Split(name, standardise(A, scale), a, standardise(B, scale), b)
    rows, test_rows = (150, 150) if quick else (1000, 4000)
    return peer_split(name, folder, seed, rows, test_rows)


def _dermatology(folder: str | None) -> tuple[Array, Array]:
    data = load_set("dermatology", folder)
    return np.asarray(data.X, dtype=float), np.asarray(data.y)


def measured(y: Array, P: Any, classes: Any = None, draws: int = 0) -> dict[str, float]:
    """Log-loss and calibration errors of test rows, with the ends of bootstrap intervals if there are draws."""
    report = calibration_report(y, np.asarray(P, dtype=float), classes=classes, n_boot=draws)
    tables = {"": report.values} | ({"_low": report.low, "_high": report.high} if draws else {})
    return {f"{name}{end}": float(table[name][0]) for end, table in tables.items() for name in MEASURES}


# ------------------------------------------------------------ classes and tasks


def fixed(model: Any, fitted: Any) -> Any:
    """The model with its chosen hyperparameters."""
    names = ("sigma", "alpha", "sharing")
    return clone(model).set_params(**{k: getattr(fitted, f"{k}_") for k in names if hasattr(fitted, f"{k}_")})


def of_classes(split: Split, model: Any, draws: int) -> Figures:
    """Method, family and figures."""
    for method, found, times in _fitted(split, model):
        ours = not method.startswith("by folds")
        figures = measured(split.y_test, found.predict_proba(split.X_test), found.classes_, draws if ours else 0)
        yield method, str(getattr(found, "method_", "")), times | figures


def _fitted(split: Split, model: Any) -> Figures:
    """Method, model, and CPU seconds in addition to a fit with the chosen hyperparameters."""
    plain = timed(lambda: clone(model).fit(split.X, split.y))
    same = fixed(model, plain.value)
    alone = timed_median(lambda: clone(same).fit(split.X, split.y), REPEATS).cpu

    def times(cpu: float) -> dict[str, float]:
        return {"seconds": cpu - alone, "fit": alone, "search": plain.cpu}

    yield PLAIN, plain.value, times(alone)
    for name, by_task in ((AUTO, False), (BY_TASK, True))[: 2 if split.name in TASKS else 1]:
        again = timed_median(lambda b=by_task: Recalibrated(same, by_task=b).fit(split.X, split.y), REPEATS)
        yield name, again.value, times(again.cpu)
    for method in FOLDED:
        peer = CalibratedClassifierCV(same, method=method, ensemble=False, cv=5)
        done = timed(lambda p=peer: p.fit(split.X, split.y))
        yield f"by folds, {method}", done.value, times(done.cpu)


def of_families(split: Split, model: Any) -> Figures:
    """Method, family and figures: every family by itself, and "auto" with each of those that it does not try.

    The model is fitted once. ``held_out`` is the cross-fitted log-loss by which families are chosen.
    """
    fitted = Recalibrated(clone(model), None).fit(split.X, split.y)
    layout, samples, _ = read_heldout(fitted._model, read_truth(fitted._model), by_task=False)
    answer = fitted._calibrated_scores(split.X_test)
    new = layout.predictions(answer.proba(), None, answer.in_domain)[0]
    tried = [name for name in choose_family(samples).scores if name is not None]
    wanted: dict[str, Any] = {str(name): name for name in FAMILIES} | {AUTO: AUTO}
    wanted |= {f"{AUTO} and {name}": (*tried, name) for name in ADDED}
    for title, method in wanted.items():
        done = timed(lambda m=method: choose_family(samples, m))
        family = done.value.setting.family
        figures = {"seconds": done.cpu, "held_out": done.value.scores[family]}
        yield title, str(family), figures | measured(split.y_test, done.value.maps[0].proba(new), fitted.classes_)


# ------------------------------------------------------------------------ labels


def of_labels(folder: str | None, seed: int, quick: bool, draws: int) -> Iterator[tuple[str, str, str, str, dict]]:
    """Data, model, method, family and figures: of all labels of Enron, and of the most frequent ones.

    CalibratedClassifierCV does not support many labels: it calibrates one LSPC for each of the frequent ones.
    """
    split = (enron(folder, 200, 100) if quick else enron(folder))(seed)
    some = np.argsort(-split.Y.sum(axis=0), kind="stable")[: 2 if quick else LABELS]
    frequent = f"enron, {len(some)} labels"
    plain = timed(lambda: calmly(lambda: MultiLabelLSPC(**INPUTS, random_state=seed).fit(split.X, split.Y))[0])
    same = fixed(MultiLabelLSPC(**INPUTS, random_state=seed), plain.value)
    alone = timed(lambda: calmly(lambda: clone(same).fit(split.X, split.Y))[0])
    again = timed(lambda: calmly(lambda: Recalibrated(same).fit(split.X, split.Y))[0])
    for method, found, seconds in ((PLAIN, plain, 0.0), (AUTO, again, again.cpu - alone.cpu)):
        P, family = found.value.predict_proba(split.X_test), str(getattr(found.value, "method_", ""))
        times = {"seconds": seconds, "fit": alone.cpu, "search": plain.cpu}
        yield "enron", "MultiLabelLSPC()", method, family, times | measured(split.Y_test, P, draws=draws)
        yield frequent, "MultiLabelLSPC()", method, family, times | measured(split.Y_test[:, some], P[:, some])
    yield from _label_by_label(split, some, frequent, seed)


def _label_by_label(split: Any, some: Array, data: str, seed: int) -> Iterator[tuple[str, str, str, str, dict]]:
    """An LSPC for each of some labels: seconds are sums, families those of all."""
    P: dict[str, list] = {}
    sums: dict[str, dict] = {}
    for t in some:
        one = Split("enron", split.X, split.Y[:, t].astype(int), split.X_test, split.Y_test[:, t].astype(int))
        for method, found, figures in _fitted(one, LSPC(**INPUTS, random_state=seed)):
            P.setdefault(method, []).append(found.predict_proba(one.X_test)[:, 1])
            total = sums.setdefault(method, {"seconds": 0.0, "fit": 0.0, "search": 0.0})
            for key, value in figures.items():
                total[key] += value
    for method, columns in P.items():
        figures = measured(split.Y_test[:, some], np.column_stack(columns))
        yield data, "LSPC() per label", method, "", sums[method] | figures


# ------------------------------------------------------------------------ values


def of_values(folder: str | None, seed: int, quick: bool) -> Iterator[tuple[str, dict]]:
    """Prediction intervals of School: nothing is recalibrated, levels come from held-out residuals."""
    data = load_set("school", folder)
    X, y, task = np.asarray(data.X, dtype=float), np.asarray(data.y, dtype=float), np.asarray(data.task)
    rng = np.random.default_rng([2013, seed])
    pool = np.flatnonzero(task < (10 if quick else np.inf))
    train = in_proportion(task, pool, 150 if quick else 1500, rng)
    test = np.setdiff1d(pool, train)
    X = standardise(X, scale_of(X[train]))
    model = MultiTaskLSSVR(**{**INPUTS, "kernel": "rbf+linear"}, random_state=seed)
    plain = timed(lambda: clone(model).fit(X[train], y[train], tasks=task[train]))
    for method in ("jackknife+", "jackknife"):
        made = timed(lambda m=method: plain.value.predict_interval(X[test], COVERAGE, m, tasks=task[test]))
        yield f"predict_interval, {method}", _of_intervals(made.value, y[test], task[test]) | {"seconds": made.cpu}
    split = timed(lambda: _split_conformal(fixed(model, plain.value), X, y, task, train, test))
    yield "split conformal", _of_intervals(split.value, y[test], task[test]) | {"seconds": split.cpu}


def _split_conformal(model: Any, X: Array, y: Array, task: Array, train: Array, test: Array) -> Array:
    """A refit on four fifths of the training rows, the width from the rest."""
    kept, rest = train[len(train) // 5 :], train[: len(train) // 5]
    model.fit(X[kept], y[kept], tasks=task[kept])
    residual = np.sort(np.abs(y[rest] - model.predict(X[rest], tasks=task[rest])))
    place = int(np.ceil((len(rest) + 1) * COVERAGE)) - 1
    half = residual[place] if place < len(rest) else np.inf
    return model.predict(X[test], tasks=task[test])[:, None] + np.array([-half, half])


def _of_intervals(ends: Array, y: Array, task: Array) -> dict[str, float]:
    """Coverage, mean width, interval score, and schools whose coverage differs significantly from the nominal one."""
    low, high = ends.T
    hit = (low <= y) & (y <= high)
    missed = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    schools = [hit[task == t] for t in np.unique(task) if np.sum(task == t) >= 20]
    wilson = [binomtest(int(h.sum()), len(h)).proportion_ci(0.95, method="wilson") for h in schools]
    return {
        "coverage": float(hit.mean()),
        "width": float(np.mean(high - low)),
        "interval_score": float(np.mean(high - low + 2 / (1 - COVERAGE) * missed)),
        "worst_school": float(min(h.mean() for h in schools)),
        "schools": len(schools),
        "schools_below": sum(ci.high < COVERAGE for ci in wilson),
        "schools_above": sum(ci.low > COVERAGE for ci in wilson),
    }
