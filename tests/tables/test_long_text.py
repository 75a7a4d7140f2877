"""One very long text takes its own length, and not the length for every row."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest

from leastwise import LSPC, LSSVC, Abstaining, KernelLogisticRegression, MultiLabelLSPC, MultiTaskLSPC, Recalibrated
from leastwise.metrics import expected_calibration_error
from leastwise.tables import TableModel, read_table

LONG = "z" * 130_000
N = 1000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
SHORT = np.where(X[:, 0] + 0.5 * RNG.normal(size=N) > 0, "yes", "no").astype(object)
TEXTS = SHORT.copy()
TEXTS[:2] = LONG  # a fixed width would take 520 MB
OTHER = RNG.choice(["a", "b", "c"], N).astype(object)
OTHER[5] = LONG
#: Far below the width of the longest text for every row, and above what the fits and the copies of one text take.
LIMIT = 60 * 2**20
FEW = {"sigma": 1.0, "alpha": 0.01, "n_centers": 20, "random_state": 0, "scale": "standard", "kernel": "rbf"}
FIXED = {"sigma": 1.0, "alpha": 0.01, "random_state": 0, "scale": "standard", "kernel": "rbf"}
ROWS = slice(0, 200)  # of models with a basis function for every row


def peak(function):
    """Bytes allocated at the same time at most, and the result."""
    tracemalloc.start()
    try:
        result = function()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def used(model, X, y, **more):
    model.fit(X, y, **more)
    model.predict(X, **{"tasks": more["tasks"]} if "tasks" in more else {})
    return model


FITS = {
    "classes": lambda kind: used(LSPC(**FEW), X, kind(TEXTS)),
    "classes of LSSVC": lambda kind: used(LSSVC(**FEW), X, kind(TEXTS)),
    "classes of KLR": lambda kind: used(KernelLogisticRegression(**FIXED), X[ROWS], kind(TEXTS[ROWS])),
    "classes, recalibrated": lambda kind: used(Recalibrated(LSPC(**FEW)), X, kind(TEXTS)),
    "classes, abstaining": lambda kind: used(Abstaining(LSPC(**FEW), max_error=0.3), X, kind(TEXTS)),
    "groups": lambda kind: used(LSPC(**FEW), X, SHORT, groups=kind(OTHER)),
    "tasks": lambda kind: used(MultiTaskLSPC(**FEW), X, SHORT, tasks=kind(OTHER)),
    "one label": lambda kind: used(MultiLabelLSPC(**FEW), X, kind(TEXTS)),
    "blocks": lambda kind: LSPC(**FEW).fit_stream([(X[:500], kind(TEXTS[:500])), (X[500:], kind(TEXTS[500:]))]),
    "blocks of tasks": lambda kind: MultiTaskLSPC(**FEW).fit_stream([{"X": X, "y": SHORT, "tasks": kind(OTHER)}]),
    "a part": lambda kind: LSPC(**FEW).partial_fit(X, kind(TEXTS), classes=[LONG, "no", "yes"]),
}


@pytest.mark.parametrize("kind", [np.asarray, list, tuple, pd.Series])
@pytest.mark.parametrize("what", FITS)
def test_fits(what, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        taken, _ = peak(lambda: FITS[what](kind))
    assert taken < LIMIT


def test_accuracy_of_tasks():
    model = MultiTaskLSPC(**FEW).fit(X, TEXTS, tasks=OTHER)
    assert peak(lambda: model.score(X, list(TEXTS), tasks=list(OTHER)))[0] < LIMIT


def test_rejected_value():
    model = Abstaining(LSPC(**FEW), min_confidence=0.9, reject=LONG).fit(X, SHORT.astype(str))
    taken, predicted = peak(lambda: model.predict(X))
    assert taken < LIMIT
    assert set(predicted) == {"no", "yes", LONG}


def test_labels_in_lists_of_rows():
    Y = [[a, b] for a, b in zip(SHORT, OTHER, strict=True)]
    taken, model = peak(lambda: MultiLabelLSPC(**FEW).fit(X, Y))
    assert taken < LIMIT
    assert model.predict(X).shape == (N, 2)


def test_metrics_of_lists():
    proba = np.full((N, 3), 1 / 3)
    assert peak(lambda: expected_calibration_error(list(TEXTS), proba))[0] < LIMIT


@pytest.mark.parametrize("role", ["target", "task", "group", "category", "id"])
def test_tables(role, tmp_path):
    table = pd.DataFrame(X, columns=["u", "v", "w"]).assign(
        found=TEXTS if role == "target" else SHORT, other=OTHER, key=np.arange(N)
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    roles = {role: "other"} if role in ("task", "group", "id") else {}

    def learned():
        model = TableModel(target="found", n_centers=20, kernel="rbf", ignore=["key"], **roles)
        rows = read_table(tmp_path / "t.csv")
        model.fit(rows)
        return model.evaluate(rows), model.predict_table(rows)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        taken, (figures, predicted) = peak(learned)
    assert taken < LIMIT
    assert figures
    assert len(predicted) == N
