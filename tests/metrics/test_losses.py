"""The log-loss is one number, wherever it is computed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss as sklearn_log_loss

from leastwise import LSPC, MultiTaskLSPC
from leastwise.calibration.blend import Sample
from leastwise.calibration.calibrators import ClipNormalise
from leastwise.calibration.conformal import CalibrationSet
from leastwise.calibration.label_blend import LabelSample
from leastwise.calibration.recalibration import _try
from leastwise.estimators._html_repr import row_outcomes
from leastwise.inspection.calibration_report import calibration_report
from leastwise.inspection.task_report import _HeldOutRows
from leastwise.metrics.label_report import label_report
from leastwise.metrics.labels import label_log_loss
from leastwise.metrics.probabilities import FLOOR, class_log_losses, log_loss, task_log_loss
from leastwise.model_selection.label_objective import log_likelihood as label_likelihood
from leastwise.model_selection.objective import log_likelihood
from leastwise.report.evaluation import Predictions
from leastwise.tables.evaluation import class_scores

N, C = 40, 3
RNG = np.random.default_rng(0)
CODES = RNG.integers(0, C, size=N)
P = RNG.dirichlet(np.ones(C), size=N)
P[:4] = np.eye(C)[(CODES[:4] + 1) % C]  # sure, and wrong: exact zeros
P[4:8] = np.eye(C)[CODES[4:8]]
P[8, CODES[8]], P[8, CODES[8] - 1], P[8, CODES[8] - 2] = 1e-20, 0.5, 0.5  # below the floor
W = RNG.uniform(0.5, 2, size=N)
ONES = np.ones(N)


def by_search(P, codes, w):
    sample = Sample(P, codes, w, len(codes))
    return -log_likelihood(sample, ClipNormalise(np.full(P.shape[1], 1 / P.shape[1])), np.arange(P.shape[1]))


def by_label_search(P, codes, w):
    sample = LabelSample(P, codes[:, None], w[:, None], np.array([0, P.shape[1]]), len(codes))
    return -label_likelihood(sample, P, P)


class Folded:
    """A fold of the choice of a calibration that answers what it is told."""

    def __init__(self, P, codes, w):
        self.P = P
        self.sample = type("S", (), {"y": codes, "w": w, "unit": np.arange(len(codes))})

    def cross_fitted(self, setting, start):
        return None, self.P


def by_choice(P, codes, w):
    return _try([Folded(P, codes, w)], None, None).loss


def by_task_report(P, codes, w):
    rows = type("R", (), {"y": codes})
    held = _HeldOutRows.__new__(_HeldOutRows)
    for name, value in {"proba": {"a": P}, "data": type("D", (), {"rows": rows})}.items():
        object.__setattr__(held, name, value)
    return np.average(held.losses("a"), weights=w)


#: Places with weights, and places without.
WEIGHTED = {
    "metric": lambda P, codes, w: log_loss(codes, P, classes=np.arange(P.shape[1]), sample_weight=w),
    "metric of tasks": lambda P, codes, w: task_log_loss(
        codes, P, np.zeros(len(codes)), average="pooled", labels=np.arange(P.shape[1]), sample_weight=w
    ),
    "search": by_search,
    "search of labels": by_label_search,
    "choice of a calibration": by_choice,
    "report of tasks": by_task_report,
    "report": lambda P, codes, w: np.average(
        Predictions(CalibrationSet(P, codes, w), np.arange(len(codes)), None, 0.5).loss, weights=w
    ),
    "notebook": lambda P, codes, w: np.average(row_outcomes(P, codes, w)[3], weights=w),
}
PLAIN = {
    "table and command line": lambda P, codes: class_scores(codes, P)["log_loss"],
    "report of calibration": lambda P, codes: calibration_report(
        codes, P, classes=np.arange(P.shape[1]), n_boot=2
    ).values["log_loss"][0],
}


@pytest.mark.parametrize("place", WEIGHTED)
def test_every_place_has_the_same_number(place):
    expected = sklearn_log_loss(CODES, P, labels=np.arange(C), sample_weight=W)
    assert WEIGHTED[place](P, CODES, W) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("place", [*PLAIN, *WEIGHTED])
def test_every_place_has_the_same_number_without_weights(place):
    found = PLAIN[place](P, CODES) if place in PLAIN else WEIGHTED[place](P, CODES, ONES)
    assert found == pytest.approx(sklearn_log_loss(CODES, P, labels=np.arange(C)), rel=1e-12)


@pytest.mark.parametrize("place", [*PLAIN, *WEIGHTED])
def test_the_floor_does_not_depend_on_the_precision(place):
    """Zeros are as bad in single precision as in double."""
    single = P.astype(np.float32)
    found = PLAIN[place](single, CODES) if place in PLAIN else WEIGHTED[place](single, CODES, ONES.astype(np.float32))
    expected = np.mean(-np.log(np.maximum(single.astype(float)[np.arange(N), CODES], np.finfo(float).eps)))
    assert found == pytest.approx(expected, rel=1e-5)


def test_the_floor():
    assert class_log_losses(np.array([[1.0, 0.0]]), np.array([1]))[0] == -np.log(FLOOR)
    assert class_log_losses(np.array([[1.0, 0.0]], dtype=np.float32), np.array([1])).dtype == np.float32
    assert pytest.approx(36.0436, abs=1e-4) == -np.log(FLOOR)


def test_labels_are_counted_entry_by_entry():
    """The mean over known labels; of two classes the same as if each entry were a row."""
    Y = RNG.integers(0, 2, size=(N, 3)).astype(float)
    Q = RNG.uniform(size=(N, 3))
    Q[:3] = 1 - Y[:3]  # sure, and wrong
    Y[RNG.uniform(size=Y.shape) < 0.2] = np.nan
    known = ~np.isnan(Y)
    true, q = Y[known].astype(int), Q[known]
    expected = sklearn_log_loss(true, np.column_stack([1 - q, q]), labels=[0, 1])
    assert label_log_loss(Y, Q) == pytest.approx(expected, rel=1e-12)
    assert label_report(Y, Q, 0.5).table["log_loss"][-2] == pytest.approx(expected, rel=1e-12)
    codes, both = np.where(known, Y, -1).astype(int), np.stack([1 - Q, Q], axis=2).reshape(N, 6)
    sample = LabelSample(both, codes, known.astype(float), np.array([0, 2, 4, 6]), N)
    assert -label_likelihood(sample, both, both) == pytest.approx(expected, rel=1e-12)
    table = calibration_report(Y, Q, n_boot=2).values
    assert table["log_loss"][0] == pytest.approx(expected, rel=1e-12)


@given(st.integers(0, 2**31), st.integers(2, 5))
def test_the_metric_is_that_of_scikit_learn(seed, c):
    rng = np.random.default_rng(seed)
    codes, Q = rng.integers(0, c, size=9), rng.dirichlet(np.full(c, 0.05), size=9)
    w = rng.integers(0, 3, size=9) + np.eye(9)[0]
    expected = sklearn_log_loss(codes, Q, labels=np.arange(c), sample_weight=w)
    assert log_loss(codes, Q, classes=np.arange(c), sample_weight=w) == pytest.approx(expected, rel=1e-9)


def test_the_metric_refuses_what_is_no_probability():
    with pytest.raises(ValueError, match="not from 0 to 1"):
        log_loss([0, 1], [[1.5, -0.5], [0.5, 0.5]])
    with pytest.raises(ValueError, match="which is none of"):
        log_loss(["a", "c"], [[0.5, 0.5], [0.5, 0.5]], classes=["a", "b"])


@pytest.mark.parametrize("make", [LSPC, MultiTaskLSPC])
def test_the_score_of_a_search_is_the_loss_of_what_it_held_out(make):
    X = RNG.normal(size=(60, 2))
    y = (X[:, 0] + 0.3 * RNG.normal(size=60) > 0).astype(int)
    more = {} if make is LSPC else {"tasks": np.arange(60) % 3}
    model = make(sigma=1.0, alpha=0.1, **({} if make is LSPC else {"sharing": 0.5}), extrapolate=True).fit(
        X, y, **more
    )
    best = model.cv_results_["mean_test_score"].max()
    assert log_loss(y, model.calibrator_.proba(model.heldout_scores_)) == pytest.approx(-best, rel=1e-9)
