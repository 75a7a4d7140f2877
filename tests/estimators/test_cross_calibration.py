"""Held-out probabilities come from calibrators that have not seen the row."""

from dataclasses import replace

import numpy as np
import pytest

from leastwise import LSPC, LSSVC, KernelLogisticRegression, MultiLabelLSPC
from leastwise.calibration.blend import Sample, class_shares
from leastwise.calibration.calibrators import fit_calibrator, fit_label_calibrator
from leastwise.calibration.label_blend import LabelSample
from leastwise.fitting.fit import prepare
from leastwise.fitting.store import CALIBRATION_FOLDS as FOLDS
from leastwise.model_selection.folds import hashed_folds

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = ((X @ RNG.normal(size=(3, 4)) + RNG.normal(size=(90, 4))) > 0).astype(int)
CLASSES = Y[:, 0] + Y[:, 1]
GIVEN = {"sigma": 2.0, "alpha": 0.01, "extrapolate": True}


def folds_of(model, y, groups=None):
    spec = model._spec()
    return hashed_folds(prepare(model, spec, X, y, groups=groups)[0].rows, FOLDS)


@pytest.mark.parametrize("calibration", ["blend", "temperature", "isotonic"])
def test_each_fold_is_calibrated_by_the_others(calibration):
    model = LSPC(**GIVEN, calibration=calibration).fit(X, CLASSES)
    F, fold, shares = model.heldout_scores_, folds_of(model, CLASSES), class_shares(CLASSES, np.ones(90), 3)
    assert np.bincount(fold).min() >= 90 // FOLDS
    for k in range(FOLDS):
        some = fold != k
        sample = Sample(F[some], CLASSES[some], np.ones(some.sum()), int(some.sum()), shares)
        expected = fit_calibrator(calibration, sample).proba(F[~some])
        np.testing.assert_allclose(model.heldout_proba_[~some], expected, atol=1e-4)
    P = model.calibrator_.proba(F)
    assert np.abs(P - model.heldout_proba_).max() > 1e-3


def test_labels_too():
    model = MultiLabelLSPC(**GIVEN, sharing=0.5).fit(X, Y)
    F, fold = model.heldout_scores_, folds_of(model, Y)
    out = fold == 3
    sample = LabelSample(F[~out], Y[~out], np.ones((int((~out).sum()), 4)), np.arange(0, 9, 2), int((~out).sum()))
    counts = np.column_stack([90 - Y.sum(axis=0), Y.sum(axis=0)]).ravel().astype(float)
    expected = fit_label_calibrator("blend", replace(sample, counts=counts)).proba(F[out])
    np.testing.assert_allclose(model.heldout_proba_[out], expected[:, 1::2], atol=1e-4)


def test_groups_stay_together_and_the_order_of_rows_makes_no_difference():
    groups, order = np.arange(90) % 30, RNG.permutation(90)
    fold = folds_of(LSPC(**GIVEN), CLASSES, groups)
    assert all(len(set(fold[groups == g])) == 1 for g in range(30))
    one = LSPC(**GIVEN).fit(X, CLASSES)
    other = LSPC(**GIVEN).fit(X[order], CLASSES[order])
    np.testing.assert_allclose(other.heldout_proba_, one.heldout_proba_[order], atol=1e-6)


def test_what_is_not_fitted_is_not_divided():
    for model in (LSPC(**GIVEN, calibration=None), KernelLogisticRegression(sigma=2.0, alpha=0.01, extrapolate=True)):
        model.fit(X, CLASSES)
        expected = model.calibrator_.proba(model.heldout_scores_)
        np.testing.assert_allclose(model.heldout_proba_, expected, atol=1e-12)
    few = LSSVC(sigma=2.0, alpha=0.01, extrapolate=True).fit(X[:12], Y[:12, 0])
    np.testing.assert_allclose(few.heldout_proba_, few.calibrator_.proba(few.heldout_scores_), atol=1e-12)
