"""LSPC against the long way: the paper's pseudo code, refits through the public surface, explicit systems."""

import numpy as np
import pytest
from conftest import PLAIN, blobs
from reference import gram_fit, lspc_pseudo_code, rbf, ridge_fit
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, LeaveOneGroupOut

from leastwise import LSPC

PAPER = {"norm": "coefficients", "calibration": None, "cv": None}
NORMS = pytest.mark.parametrize("norm", ["function", "coefficients"])
BASES = pytest.mark.parametrize("basis", ["full", "class"])
BIASES = pytest.mark.parametrize("bias", [None, "shared"])


def test_class_wise_model_is_the_papers_pseudo_code(data):
    X, y = data
    new = X[:20] + 0.1
    model = LSPC(1.3, 0.05, basis="class", **PAPER).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(new), lspc_pseudo_code(X, y, new, 1.3, 0.05), atol=1e-10)


@BIASES
def test_full_model_solves_the_papers_system(data, bias):
    X, y = data
    K = rbf(X, X, 0.8)
    theta, b = ridge_fit(K, np.eye(3)[y], np.ones(len(y)), 0.02, bias=bias is not None)
    model = LSPC(0.8, 0.02, bias=bias, **PAPER).fit(X, y)
    np.testing.assert_allclose(model.coef_, theta, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-9)
    np.testing.assert_allclose(model.scores(X), K @ theta + b, atol=1e-9)


@BIASES
def test_penalty_on_the_function_is_kernel_ridge(data, bias):
    X, y = data
    A, b = gram_fit(rbf(X, X, 0.8), np.eye(3)[y], np.ones(len(y)), 0.02, bias is not None)
    model = LSPC(0.8, 0.02, bias=bias, calibration=None, cv=None).fit(X, y)
    np.testing.assert_allclose(model.coef_, A, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-9)


@NORMS
@BIASES
@pytest.mark.parametrize("basis", ["full", "class"])
def test_subset_of_kernels(data, norm, basis, bias):
    X, y = data
    model = LSPC(0.8, 0.02, n_centers=7, norm=norm, basis=basis, bias=bias, calibration=None, cv=None, random_state=3)
    model.fit(X, y)
    C = model.centers_
    assert len(C) == (7 if basis == "full" else 21)
    assert all((c == X).all(axis=1).any() for c in C)
    Z, blocks = np.eye(3)[y], [(slice(0, 7), slice(0, 3))]
    if basis == "class":
        blocks = [(slice(7 * k, 7 * k + 7), slice(k, k + 1)) for k in range(3)]
    expected = np.zeros((len(C), 3))
    for columns, classes in blocks:
        Phi = rbf(X, C[columns], 0.8)
        jitter = 1e3 * np.finfo(float).eps
        penalty = rbf(C[columns], C[columns], 0.8) + jitter * np.eye(7) if norm == "function" else None
        theta, b = ridge_fit(Phi, Z[:, classes], np.ones(len(y)), 0.02, penalty, bias is not None)
        expected[columns, classes] = theta
        np.testing.assert_allclose(model.intercept_[classes], b, atol=1e-7)
    np.testing.assert_allclose(model.coef_, expected, atol=1e-6)


def test_given_centres_and_k_means(data):
    X, y = data
    given = LSPC(centers=X[:9] + 0.01, scale=None, metric=None, random_state=0).fit(X, y)
    np.testing.assert_array_equal(given.centers_, X[:9] + 0.01)
    scaled = LSPC(centers=X[:9] + 0.01, random_state=0).fit(X, y)
    np.testing.assert_array_equal(scaled.centers_, scaled.inputs_(X[:9] + 0.01))
    clustered = LSPC(n_centers=9, centers="kmeans", random_state=0).fit(X, y)
    assert clustered.centers_.shape == (9, 2)
    per_class = LSPC(n_centers=4, centers="kmeans", basis="class", random_state=0).fit(X, y)
    assert per_class.centers_.shape == (12, 2)
    assert given.score(X, y) > 0.6
    assert clustered.score(X, y) > 0.6
    assert per_class.score(X, y) > 0.6


@NORMS
@BASES
@BIASES
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_equals_refits_through_the_public_surface(norm, basis, bias, weighted, rng):
    X, y = blobs(30)
    w = rng.uniform(0.3, 3, 30) if weighted else None
    fixed = {"sigma": 1.1, "alpha": 0.01, "norm": norm, "basis": basis, "bias": bias}
    model = LSPC(calibration=None, cv="loo", **fixed).fit(X, y, sample_weight=w)
    for i in range(30):
        rest = np.arange(30) != i
        part = None if w is None else w[rest]
        refit = LSPC(calibration=None, cv=None, **fixed).fit(X[rest], y[rest], sample_weight=part)
        np.testing.assert_allclose(model.heldout_scores_[i], refit.scores(X[i : i + 1])[0], atol=1e-8)


@NORMS
@BASES
def test_k_folds_and_groups_equal_refits_through_the_public_surface(norm, basis, data):
    X, y = data
    fixed = {"sigma": 1.1, "alpha": 0.01, "norm": norm, "basis": basis, "bias": "shared"}
    groups = np.repeat(np.arange(12), 5)
    by_folds = LSPC(calibration=None, cv=KFold(4), **fixed).fit(X, y)
    by_groups = LSPC(calibration=None, **fixed).fit(X, y, groups=groups)
    for model, splits in (
        (by_folds, KFold(4).split(X)),
        (by_groups, LeaveOneGroupOut().split(X, y, groups)),
    ):
        for train, test in splits:
            refit = LSPC(calibration=None, cv=None, **fixed).fit(X[train], y[train])
            np.testing.assert_allclose(model.heldout_scores_[test], refit.scores(X[test]), atol=1e-8)


def test_copies_are_left_out_together_where_that_is_asked_for(data):
    X, y = data
    twice, labels = np.vstack([X, X]), np.r_[y, y]
    once = LSPC(1.0, 0.01).fit(X, y)
    double = LSPC(1.0, 0.01).fit(twice, labels, groups="duplicates")
    np.testing.assert_allclose(double.heldout_scores_, np.vstack([once.heldout_scores_] * 2), atol=1e-8)
    np.testing.assert_allclose(double.predict_proba(X), once.predict_proba(X), atol=1e-7)


@pytest.mark.parametrize("norm", ["function", "coefficients"])
@pytest.mark.parametrize("basis", ["full", "class"])
def test_copies_split_over_folds_keep_their_basis_function(norm, basis):
    """A copy in the training part of a fold still brings the kernel at that place."""
    X, y = blobs(20)
    X, y = np.vstack([X, X[:6]]), np.r_[y, y[:6]]
    fixed = {"sigma": 1.1, "alpha": 0.05, "norm": norm, "basis": basis}
    model = LSPC(calibration=None, cv=KFold(2), **fixed).fit(X, y)
    for train, test in KFold(2).split(X):
        refit = LSPC(calibration=None, cv=None, **fixed).fit(X[train], y[train])
        np.testing.assert_allclose(model.heldout_scores_[test], refit.scores(X[test]), atol=1e-6)


def nearest_others(X):
    return np.array([min(np.linalg.norm(x - z) for j, z in enumerate(X) if j != i) for i, x in enumerate(X)])


def test_heldout_predictions_belong_together(data):
    X, y = data
    model = LSPC(random_state=0).fit(X, y)
    F = model.heldout_scores_
    assert F.shape == (60, 3)
    in_domain = model.extrapolation_.in_domain(nearest_others(model.inputs_(X)))
    # Rows are calibrated by the calibrators of other folds (tests/estimators/test_cross_calibration.py).
    assert (model.heldout_proba_.argmax(axis=1) == model.heldout_decision_.argmax(axis=1)).all()
    np.testing.assert_allclose(model.heldout_proba_, model.calibrator_.proba(F, in_domain), atol=0.1)
    plain = LSPC(calibration=None, random_state=0).fit(X, y)
    np.testing.assert_allclose(plain.heldout_proba_, plain.calibrator_.proba(plain.heldout_scores_))
    np.testing.assert_allclose(plain.heldout_decision_, plain.calibrator_.decision(plain.heldout_scores_))
    binary = LSPC(random_state=0).fit(X, y == 1)
    assert binary.heldout_decision_.shape == (60,)
    best = model.cv_results_["mean_test_score"].max()
    assert best == pytest.approx(-log_loss(y, model.calibrator_.proba(F)), rel=1e-5)


def test_rows_of_weight_zero_get_the_models_own_scores(data):
    X, y = data
    w = np.ones(60)
    w[::5] = 0
    model = LSPC(random_state=0).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(model.heldout_scores_[::5], model.scores(X[::5]), atol=1e-12)
    assert not np.allclose(model.heldout_scores_[1::5], model.scores(X[1::5]), atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "laplace", "poly", "linear"])
def test_every_kernel_learns(kernel, data):
    X, y = data
    model = LSPC(kernel=kernel, bias="shared", random_state=0).fit(X, y)
    assert model.score(X, y) > 0.6
    assert model.heldout_proba_.shape == (60, 3)


def test_sigmoid_warns_and_works(data):
    X, y = data
    with pytest.warns(UserWarning, match="not positive definite"):
        model = LSPC(kernel="sigmoid", norm="coefficients", random_state=0).fit(X, y)
    assert model.score(X, y) > 0.5
    with pytest.warns(UserWarning, match="not positive definite"):
        lifted = LSPC(1.0, 0.1, kernel="sigmoid", coef0=-1.0).fit(X, y)
    assert lifted.jitter_ > 0
    assert np.isfinite(lifted.predict_proba(X)).all()


@NORMS
@BASES
@pytest.mark.parametrize("n_centers", [None, 8])
def test_callable_and_precomputed_equal_the_named_kernel(norm, basis, n_centers, data):
    X, y = data
    fixed = {"norm": norm, "basis": basis, "n_centers": n_centers, "alpha": [0.01, 0.1], "random_state": 0}
    named = LSPC(1.2, extrapolate=True, **fixed).fit(X, y)  # the others know no distances
    given = LSPC(kernel=lambda A, B: rbf(A, B, 1.2), **fixed).fit(X, y)
    ready = LSPC(kernel="precomputed", **fixed).fit(rbf(X, X, 1.2), y)
    new = X[:10] + 0.2
    np.testing.assert_allclose(given.predict_proba(new), named.predict_proba(new), atol=1e-7)
    np.testing.assert_allclose(ready.predict_proba(rbf(new, X, 1.2)), named.predict_proba(new), atol=1e-7)


def test_a_kernel_function_keeps_its_matrix(data):
    X, y = data
    K = rbf(X, X, 1.0)
    before = K.copy()
    LSPC(alpha=0.1, kernel=lambda A, B: K, calibration=None, cv=None).fit(X, y)
    np.testing.assert_array_equal(K, before)
    LSPC(alpha=0.1, kernel="precomputed").fit(K, y)
    np.testing.assert_array_equal(K, before)


def test_sgd_agrees_with_the_direct_solution():
    X, y = blobs(600, intercept_ratio=1.5)
    exact = LSPC(1.5, 1e-3, centers=X[:40], bias="shared", calibration=None, cv=None).fit(X, y)
    approx = LSPC(1.5, 1e-3, centers=X[:40], bias="shared", solver="sgd", tol=1e-6, random_state=0).fit(X, y)
    held = ~np.isnan(approx.heldout_scores_[:, 0])
    assert held.sum() == 60
    # A tenth of the rows is missing from the descent, so the two agree as models of nine tenths do.
    part = LSPC(1.5, 1e-3, centers=X[:40], bias="shared", calibration=None, cv=None).fit(X[~held], y[~held])
    np.testing.assert_allclose(approx.scores(X), part.scores(X), atol=1e-5)
    assert np.abs(approx.scores(X) - exact.scores(X)).mean() < 0.05
    assert approx.n_passes_ >= 1


def test_sgd_chooses_and_calibrates():
    X, y = blobs(500, intercept_ratio=1.5)
    model = LSPC(n_centers=50, solver="sgd", random_state=0).fit(X, y)
    plain = LSPC(n_centers=50, random_state=0).fit(X, y)
    assert log_loss(y, model.predict_proba(X)) < log_loss(y, plain.predict_proba(X)) + 0.05


def test_sgd_that_does_not_settle_says_so(data):
    from sklearn.exceptions import ConvergenceWarning

    X, y = data
    with pytest.warns(ConvergenceWarning, match="max_passes=1 "):
        LSPC(1.0, 1e-6, n_centers=20, solver="sgd", max_passes=1, tol=1e-12, random_state=0).fit(X, y)


def test_search_on_some_rows_refines_on_all(rng):
    X, y = blobs(300, intercept_ratio=1.5)
    some = LSPC(**PLAIN, search_rows=100, random_state=0).fit(X, y)
    every = LSPC(**PLAIN, search_rows=None, random_state=0).fit(X, y)
    rows = some.cv_results_["n_rows"]
    assert 99 <= rows.min() <= 101
    assert rows.max() == 300
    assert some.sigma_ in some.cv_results_["param_sigma"][rows < 300]
    assert set(every.cv_results_["n_rows"]) == {300}
    assert some.heldout_scores_.shape == (300, 3)
    new, labels = blobs(2000, intercept_ratio=1.5)
    assert log_loss(labels, some.predict_proba(new)) < log_loss(labels, every.predict_proba(new)) + 0.03


def test_grid_given_by_the_user_is_kept_to(data):
    X, y = data
    sigmas, alphas = [0.5, 1.0, 2.0], [1e-3, 1e-1]
    model = LSPC(sigmas, alphas).fit(X, y)
    assert set(model.cv_results_["param_sigma"]) == set(sigmas)
    assert set(model.cv_results_["param_alpha"]) == set(alphas)
    assert len(model.cv_results_["mean_test_score"]) == 6
    best = model.cv_results_["rank_test_score"] == 1
    assert model.sigma_ in model.cv_results_["param_sigma"][best]
    assert model.alpha_ in model.cv_results_["param_alpha"][best]


def test_grid_grows_beyond_its_border():
    """One smooth split along a line wants a far wider kernel than the first grid offers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 10))
    y = X.sum(axis=1) + rng.normal(size=150) > 0
    model = LSPC(bias="shared", random_state=0).fit(X, y)
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))[np.triu_indices(150, 1)]
    assert max(model.cv_results_["param_sigma"]) > 1.5 * np.median(distances) * 1.01
    assert model.sigma_ > 1.5 * np.median(distances) * 1.01


@pytest.mark.parametrize(
    "scoring",
    ["log_loss", "brier", "accuracy", "auc", "f1", "balanced_accuracy", "neg_log_loss", "roc_auc_ovo"],
)
def test_every_scoring_selects(scoring, data):
    X, y = data
    model = LSPC([0.3, 1.0], [1e-3, 1e-1], scoring=scoring).fit(X, y)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()
    assert model.score(X, y) > 0.5


def test_scoring_by_decision_scores_and_by_a_function(data):
    X, y = data
    LSPC([0.3, 1.0], 0.1, scoring="roc_auc").fit(X, y == 0)
    seen = []

    def scorer(estimator, X, y):
        seen.append((estimator.predict(X), estimator.predict_proba(X), estimator.decision_function(X)))
        return float(np.mean(estimator.predict(X) == y))

    model = LSPC([0.3, 1.0], 0.1, scoring=scorer).fit(X, y)
    assert len(seen) == 2
    expected = [np.mean(predicted == y) for predicted, _, _ in seen]
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], expected)
    assert all(proba.shape == decision.shape == (60, 3) for _, proba, decision in seen)


def test_predict_is_the_argmax_of_the_probabilities_with_any_labels():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    for calibration in ("blend", "temperature", "isotonic", None):
        model = LSPC(1.0, 0.01, calibration=calibration).fit(X, names)
        P = model.predict_proba(X)
        np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
        np.testing.assert_array_equal(model.predict(X), model.classes_[P.argmax(axis=1)])
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), P, atol=1e-12)


def test_probabilities_fall_to_the_class_shares_far_from_the_data():
    X, y = blobs(90)
    keep = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:10], np.flatnonzero(y == 2)[:15]]
    X, y = X[keep], y[keep]
    shares = np.bincount(y) / len(y)
    far = np.array([[1e4, -1e4]])
    for bias in (None, "shared"):
        for calibration in ("blend", "temperature"):
            model = LSPC(bias=bias, calibration=calibration, random_state=0).fit(X, y)
            np.testing.assert_allclose(model.predict_proba(far)[0], shares, atol=1e-9)
    paper = LSPC(1.0, 0.1, **PAPER).fit(X, y)
    np.testing.assert_allclose(paper.predict_proba(far)[0], shares, atol=1e-12)  # every score is clipped to zero


def test_float32_stays_float32(data):
    X, y = data
    model = LSPC(alpha=1e-4, kernel="rbf", random_state=0).fit(X.astype(np.float32), y)
    assert model.coef_.dtype == np.float64
    assert model.predict_proba(X.astype(np.float32)).dtype == np.float32
    assert model.heldout_proba_.dtype == np.float32
    scaled = model.inputs_(X)
    double = LSPC(model.sigma_, model.alpha_, kernel="rbf").fit(scaled, y)
    np.testing.assert_allclose(model.predict_proba(X.astype(np.float32)), double.predict_proba(scaled), atol=1e-5)


@BASES
def test_sparse_equals_dense(basis, data):
    X, y = data
    X = np.where(np.abs(X) < 0.7, 0, X)
    fixed = {"sigma": [0.7, 1.5], "alpha": [0.01, 0.1], "basis": basis}
    dense, thin = LSPC(**fixed).fit(X, y), LSPC(**fixed).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(thin.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), atol=1e-8)


def test_prediction_in_chunks_is_the_same(data, monkeypatch):
    X, y = data
    model = LSPC(1.0, 0.1).fit(X, y)
    whole = model.predict_proba(X)
    monkeypatch.setattr("leastwise.problem.basis.CHUNK", 60 * 8 * 7)  # seven rows at a time
    np.testing.assert_allclose(model.predict_proba(X), whole, atol=1e-13)


def test_verbose_prints_a_line_for_every_sigma(data, capsys):
    X, y = data
    LSPC([0.5, 1.0], [0.1, 0.01], verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("[LSPC] plan: solver cholesky")
    assert all(line.startswith("[LSPC] sigma") for line in lines[1:3])
    assert lines[3].startswith("[LSPC] chosen: sigma")


def test_digits_are_read_and_probabilities_are_honest():
    from leastwise.metrics.calibration import expected_calibration_error

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:600], order[600:]
    model = LSPC(random_state=0).fit(X[train] / 16, y[train])
    P = model.predict_proba(X[test] / 16)
    assert model.score(X[test] / 16, y[test]) > 0.97
    assert log_loss(y[test], P) < 0.12
    assert expected_calibration_error(y[test], P) < 0.03
