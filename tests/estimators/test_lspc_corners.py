"""LSPC in the corners: rows of weight zero, classes that a fold takes whole, indefinite kernels, sgd."""

import numpy as np
import pytest
from conftest import PLAIN, blobs
from reference import rbf
from scipy import sparse
from sklearn.model_selection import GroupKFold, KFold

from leastwise import LSPC, KernelLogisticRegression

NORMS = pytest.mark.parametrize("norm", ["function", "coefficients"])
BASES = pytest.mark.parametrize("basis", ["full", "class"])


@pytest.mark.parametrize("estimator", ["lspc", "klr"])
def test_precomputed_kernel_with_rows_of_weight_zero(estimator, data):
    X, y = data
    w = np.ones(60)
    w[:20] = 0
    K = rbf(X, X, 1.0)
    make = {
        "lspc": lambda **kw: LSPC(alpha=0.1, cv=None, calibration=None, **kw),
        "klr": lambda **kw: KernelLogisticRegression(alpha=0.1, cv=None, **kw),
    }[estimator]
    named, ready = make(sigma=1.0).fit(X, y, w), make(kernel="precomputed").fit(K, y, w)
    np.testing.assert_allclose(ready.predict_proba(K), named.predict_proba(X), atol=1e-6)


def test_splitter_groups_and_weights_of_zero(data):
    X, y = data
    w, groups = np.ones(60), np.repeat(np.arange(12), 5)
    w[::3] = 0
    kept = w > 0
    model = LSPC(1.0, 0.1, cv=GroupKFold(3)).fit(X, y, w, groups=groups)
    same = LSPC(1.0, 0.1, cv=GroupKFold(3)).fit(X[kept], y[kept], groups=groups[kept])
    np.testing.assert_allclose(model.heldout_scores_[kept], same.heldout_scores_, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X), same.predict_proba(X), atol=1e-7)
    with pytest.raises(ValueError, match="holds out all rows at once"):
        LSPC(1.0, 0.1, cv=list(KFold(3).split(X))).fit(X, y, np.r_[np.ones(20), np.zeros(40)])


def test_more_centres_than_rows_with_weights_equals_all_rows(data, rng):
    X, y = data
    w = rng.uniform(0.2, 3, 60)
    for norm in ("function", "coefficients"):
        a = LSPC(1.0, 0.05, norm=norm, calibration=None).fit(X, y, w)
        b = LSPC(1.0, 0.05, norm=norm, calibration=None, n_centers=60).fit(X, y, w)
        np.testing.assert_allclose(a.heldout_scores_, b.heldout_scores_, atol=1e-9)


@BASES
@NORMS
def test_a_class_that_a_fold_takes_whole(basis, norm, data):
    X, y = data
    model = LSPC(1.0, 0.1, basis=basis, norm=norm).fit(X, y, groups=y)
    assert np.isfinite(model.heldout_proba_).all()
    rare = np.r_[y[:-1], 7]
    with pytest.warns(UserWarning, match="least populated class"):
        model = LSPC(1.0, 0.1, basis=basis, norm=norm, cv=2).fit(X, rare)
    assert np.isfinite(model.heldout_proba_).all()


def test_an_indefinite_kernel_is_repaired_in_one_way_and_said(data):
    X, y = data
    K = np.tanh(X @ X.T - 1)
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        model = LSPC(alpha=0.1, kernel="precomputed").fit(K, y)
    assert model.jitter_ == pytest.approx(-np.linalg.eigvalsh(K)[0])
    lifted = LSPC(alpha=0.1, kernel="precomputed").fit(K + (1 + 1e-9) * model.jitter_ * np.eye(60), y)
    np.testing.assert_allclose(model.heldout_scores_, lifted.heldout_scores_, atol=1e-6)


def test_balanced_classes_count_weights(data):
    X, y = data
    times = np.where(y == 0, 3, 1)
    a = LSPC(1.0, 0.1, class_weight="balanced").fit(X, y, sample_weight=times)
    b = LSPC(1.0, 0.1, class_weight="balanced").fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-6)


def test_sgd_holds_out_groups_and_trusts_its_held_out_rows():
    X, y = blobs(600, intercept_ratio=1.5)
    groups = np.arange(600) // 4
    model = LSPC(n_centers=40, solver="sgd", random_state=0).fit(X, y, groups=groups)
    held = ~np.isnan(model.heldout_scores_[:, 0])
    assert 50 <= held.sum() <= 60
    assert not np.intersect1d(groups[held], groups[~held]).size
    np.testing.assert_allclose(model.calibrator_.shares, np.bincount(y) / 600)
    assert np.ptp(model.heldout_proba_[held], axis=0).max() > 0.5
    fixed = {"sigma": 1.0, "alpha": 0.1, "n_centers": 40, "random_state": 0}
    bare = LSPC(solver="sgd", cv=None, calibration=None, **fixed).fit(X, y)
    assert not hasattr(bare, "heldout_scores_")


def test_sgd_takes_float32_sparse_and_weights(rng):
    X, y = blobs(300)
    w = rng.uniform(0.2, 2, 300)
    for data in (X.astype(np.float32), sparse.csr_array(X)):
        model = LSPC(1.0, 0.01, n_centers=30, solver="sgd", random_state=0).fit(data, y, w)
        assert model.score(data, y) > 0.6


def test_few_centres_need_no_kernel_matrix_of_all_rows():
    import tracemalloc

    X, y = blobs(4000)
    tracemalloc.start()
    LSPC(**PLAIN, n_centers=10, random_state=0).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4000**2 * 8 / 4


def test_numbers_in_any_form(data):
    X, y = data
    model = LSPC(np.array(1.0), np.float32(0.1), n_centers=10.0, max_passes=100.0, search_rows=50.0, random_state=0)
    assert model.fit(X, y).sigma_ == 1.0
