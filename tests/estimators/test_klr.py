"""Kernel logistic regression: its solvers, its optimum, its cross-validation."""

import warnings

import numpy as np
import pytest
from conftest import blobs
from scipy import sparse
from scipy.optimize import check_grad
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold

import leastwise
from leastwise import KernelLogisticRegression, MultiTaskKernelLogisticRegression
from leastwise.linalg import logistic
from leastwise.linalg.logistic import Binary, Multiclass, Stop, Task, solve_logistic

TIGHT = Stop(max_iter=2000, tol=1e-10)


def fixed(sigma=2.0, alpha=1e-2, **options):
    """Scores are used everywhere; tests/calibration/test_extrapolation.py has those of extrapolation."""
    given = {"cv": None, "tol": 1e-10, "max_iter": 2000, "extrapolate": True}
    return KernelLogisticRegression(sigma, alpha, **{**given, **options})


def data(n=80, n_classes=3, seed=0):
    X, y = make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=n_classes, flip_y=0.1, random_state=seed
    )
    return X, y


def task(n_classes, bias=True, alpha=0.02, n=40, k=12):
    rng = np.random.default_rng(n_classes)
    y = np.r_[np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)]
    return Task(3 * rng.normal(size=(n, k)), y, rng.uniform(0.1, 2, n), alpha, n_classes, bias)


# ------------------------------------------------------------------ solvers


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("loss", "n_classes"), [(Binary, 2), (Multiclass, 2), (Multiclass, 4)])
def test_gradient_and_hessian_against_differences(loss, n_classes, bias):
    objective = loss(task(n_classes, bias))
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(2, objective.shape[0] * objective.shape[1])) / 5
    assert check_grad(lambda x: objective.at(x).value, lambda x: objective.at(x).gradient, x) < 1e-5
    change = (objective.at(x + 1e-5 * v).gradient - objective.at(x - 1e-5 * v).gradient) / 2e-5
    np.testing.assert_allclose(objective.hessian_times(objective.at(x).P, v), change, atol=1e-7)


def test_value_is_the_documented_objective():
    t = task(3)
    objective = Multiclass(t)
    x = np.random.default_rng(1).normal(size=objective.shape[0] * 3) / 5
    found = objective.solution(x, 0, 0.0, 1.0)
    F = found.scores(t.D)
    losses = np.log(np.exp(F).sum(axis=1)) - F[np.arange(len(F)), t.y]
    value = np.average(losses, weights=t.w) + t.alpha / 2 * np.sum(found.Theta**2)
    assert objective.at(x).value == pytest.approx(value)


@pytest.mark.parametrize("factor", [0, 1000])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_lbfgs_equals_newton(n_classes, bias, factor, monkeypatch):
    monkeypatch.setattr(logistic, "FACTOR", factor)
    t = task(n_classes, bias)
    a, b = (solve_logistic(t, solver, Stop(2000, 1e-8)) for solver in ("lbfgs", "newton"))
    assert a.converged
    assert b.converged
    np.testing.assert_allclose(a.Theta, b.Theta, atol=1e-6)
    np.testing.assert_allclose(a.intercept, b.intercept, atol=1e-6)


def test_one_column_is_enough_for_two_classes():
    t = task(2)
    one, two = (logistic._lbfgs(loss(t), np.zeros(13 * m), TIGHT) for loss, m in ((Binary, 1), (Multiclass, 2)))
    np.testing.assert_allclose(one.Theta, two.Theta, atol=1e-7)
    np.testing.assert_allclose(one.intercept, two.intercept, atol=1e-7)


def test_solvers_do_not_mind_the_scale_of_the_design():
    t = task(3)
    large = Task(1e4 * t.D, t.y, t.w, 1e8 * t.alpha, 3)
    for solver in ("lbfgs", "newton"):
        a, b = (solve_logistic(one, solver, Stop(2000, 1e-7)) for one in (t, large))
        assert b.converged
        np.testing.assert_allclose(a.scores(t.D), b.scores(large.D), atol=1e-4)


def test_a_solution_is_a_start_that_needs_no_step():
    for n_classes in (2, 4):
        for solver in ("lbfgs", "newton"):
            found = solve_logistic(task(n_classes), solver)
            assert solve_logistic(task(n_classes), solver, start=found.start).n_iter == 0


# ------------------------------------------------------------------ optimum


@pytest.mark.parametrize("n_classes", [2, 3])
def test_linear_kernel_is_logistic_regression(n_classes):
    X, y = data(n_classes=n_classes)
    alpha = 0.05
    ours = fixed(alpha=alpha, kernel="linear").fit(X, y)
    # C sum(losses) + ||Theta||^2 / 2; with two classes they penalise theta where we have ||theta||^2 / 2.
    C = 1 / (len(y) * alpha) * (2 if n_classes == 2 else 1)
    theirs = LogisticRegression(C=C, tol=1e-10, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    if n_classes == 2:
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_solvers_agree_in_the_estimator(n_classes):
    X, y = data(n_classes=n_classes)
    a, b = (fixed(solver=s, tol=1e-8).fit(X, y) for s in ("lbfgs", "newton"))
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-5)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-6)


def test_coefficients_are_the_residuals():
    X, y = data()
    model = fixed().fit(X, y)
    residual = np.eye(3)[y] - model.predict_proba(X)
    np.testing.assert_allclose(model.coef_, residual / (len(y) * model.alpha), atol=1e-5)
    assert np.abs(residual.sum(axis=0)).max() < 1e-7  # the intercept's equation


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_repeated_rows(n_classes):
    X, y = data(n_classes=n_classes)
    w = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = fixed().fit(X, y, sample_weight=w)
    repeated = fixed().fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-7)
    removed = fixed().fit(X[w > 0], y[w > 0], sample_weight=w[w > 0])
    np.testing.assert_allclose(weighted.coef_, removed.coef_, atol=1e-10)


def test_order_of_the_rows_does_not_matter():
    X, y = data()
    order = np.random.default_rng(0).permutation(len(y))
    a, b = fixed().fit(X, y), fixed().fit(X[order], y[order])
    np.testing.assert_allclose(a.coef_[order], b.coef_, atol=1e-6)


def test_a_huge_ridge_leaves_the_class_shares():
    X, y = data()
    w = np.random.default_rng(0).uniform(size=len(y))
    P = fixed(alpha=1e9).fit(X, y, sample_weight=w).predict_proba(X)
    shares = np.bincount(y, weights=w) / w.sum()
    np.testing.assert_allclose(P, np.tile(shares, (len(y), 1)), atol=1e-6)
    P = fixed(alpha=1e9, bias=None).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(P, 1 / 3, atol=1e-6)


# ------------------------------------------------------------------- inputs


def test_single_precision_stays_single():
    X, y = data()
    single = KernelLogisticRegression(2.0, 1e-2, random_state=0).fit(X.astype(np.float32), y)
    double = KernelLogisticRegression(2.0, 1e-2, random_state=0).fit(X, y)
    assert (
        single.coef_.dtype == single.centers_.dtype == np.float64
    )  # small problems have the digits of a small ridge
    for name in ("intercept_", "heldout_scores_", "heldout_proba_"):
        assert getattr(single, name).dtype == np.float32
    assert single.predict_proba(X).dtype == np.float32
    np.testing.assert_allclose(single.predict_proba(X), double.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("n_centers", [None, 20])
def test_sparse_is_dense(n_centers):
    X, y = data()
    X[np.abs(X) < 0.7] = 0
    a, b = (fixed(n_centers=n_centers, random_state=0).fit(form(X), y) for form in (np.asarray, sparse.csr_array))
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(sparse.csr_array(X)), atol=1e-8)


@pytest.mark.parametrize("n_centers", [None, 20])
def test_precomputed_is_rbf(n_centers):
    X, y = data()
    K = rbf_kernel(X, gamma=1 / 8)
    options = {"n_centers": n_centers, "cv": 4, "random_state": 0}
    a = fixed(**options).fit(X, y)
    b = fixed(kernel="precomputed", **options).fit(K, y)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(K), atol=1e-7)
    np.testing.assert_allclose(a.heldout_proba_, b.heldout_proba_, atol=1e-7)


def test_all_rows_as_centres_are_the_full_basis():
    X, y = data()
    a, b = fixed().fit(X, y), fixed(centers=X[::-1]).fit(X, y)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-5)
    c = fixed(n_centers=1000).fit(X, y)
    np.testing.assert_allclose(a.coef_, c.coef_, atol=1e-8)


def test_names_of_classes_and_two_class_decision():
    X, y = data(n_classes=2)
    model = fixed().fit(X, np.array(["no", "yes"])[y])
    P = model.predict_proba(X)
    np.testing.assert_allclose(model.decision_function(X), np.log(P[:, 1] / P[:, 0]), atol=1e-10)
    assert set(model.predict(X)) == {"no", "yes"}


# --------------------------------------------------------- cross-validation


@pytest.mark.parametrize("options", [{}, {"bias": None}, {"n_centers": 25}, {"centers": "kmeans", "n_centers": 9}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_heldout_scores_are_refits(n_classes, options):
    X, y = data(n_classes=n_classes)
    w = np.random.default_rng(1).uniform(0.2, 2, len(y))
    folds = list(KFold(4, shuffle=True, random_state=0).split(X))
    model = fixed(cv=folds, random_state=0, **options).fit(X, y, sample_weight=w)
    for train, test in folds:
        how = options
        if "n_centers" in options:  # the centres that are rows in test are not there
            gone = (model.centers_[:, None] == X[test][None]).all(axis=2).any(axis=1)
            how = {**options, "centers": model.centers_[~gone], "n_centers": None}
        by_hand = fixed(**how).fit(X[train], y[train], sample_weight=w[train])
        np.testing.assert_allclose(model.heldout_proba_[test], by_hand.predict_proba(X[test]), atol=1e-6)


def test_default_search():
    X, y = load_iris(return_X_y=True)
    model = KernelLogisticRegression(metric=None, extrapolate=True, random_state=0).fit(X, y)  # scored without trust
    table = model.cv_results_
    best = np.argmax(table["mean_test_score"])
    assert table["mean_test_score"][best] == pytest.approx(
        np.log(model.heldout_proba_[np.arange(150), y]).mean(), abs=1e-5
    )
    chosen = {f"param_{name}" for name in ("sigma", "alpha", "scale", "kernel")}
    assert set(table) == {*chosen, "n_rows", "mean_test_score", "rank_test_score"}
    assert model.score(X, y) > 0.95
    assert (model.heldout_proba_.argmax(axis=1) == y).mean() > 0.93
    given = {"kernel": table["param_kernel"][best], "scale": model.scale_, "cv": None}
    again = KernelLogisticRegression(model.sigma_, model.alpha_, **given).fit(X, y)
    np.testing.assert_allclose(model.coef_, again.coef_)


def test_grids_are_used_as_given():
    X, y = data()
    model = KernelLogisticRegression([1.0, 3.0], [1e-3, 1e-1], scoring="accuracy", random_state=0).fit(X, y)
    assert set(model.cv_results_["param_sigma"]) == {1.0, 3.0}
    assert set(model.cv_results_["param_alpha"]) == {1e-3, 1e-1}


def test_groups_are_held_out_together():
    X, y = data()
    groups = np.arange(len(y)) // 4
    model = fixed(cv="loo").fit(X, y, groups=groups)
    for label in (0, 7):
        out = groups == label
        by_hand = fixed().fit(X[~out], y[~out])
        np.testing.assert_allclose(model.heldout_proba_[out], by_hand.predict_proba(X[out]), atol=1e-6)


def test_a_class_that_is_held_out_whole_has_a_small_probability():
    X, y = data()
    y[:] = y % 2
    y[5] = 2
    model = fixed(cv="loo").fit(X, y)
    assert model.heldout_proba_[5, 2] == pytest.approx(1 / (len(y) + 2), rel=0.05)
    assert np.isfinite(model.heldout_scores_).all()


def test_rows_of_weight_zero_have_scores_too():
    X, y = data()
    w = np.ones(len(y))
    w[:5] = 0
    model = fixed(cv=4, random_state=0).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(model.heldout_proba_[:5], model.predict_proba(X[:5]))


# ------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 0}, "alpha"),
        ({"alpha": [-1.0, 1.0]}, "alpha"),
        ({"sigma": "wide"}, "sigma"),
        ({"solver": "sgd"}, "solver"),
        ({"bias": "class"}, "bias"),
        ({"cv": None}, "cv=None"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_iter": None}, "max_iter"),
        ({"tol": 0.0}, "tol"),
        ({"centers": "grid"}, "centers"),
        ({"kernel": "precomputed", "centers": "kmeans"}, "centers='random'"),
        ({"scoring": "beauty"}, "scoring"),
    ],
)
def test_bad_parameters_are_named(options, words):
    X, y = data()
    with pytest.raises(ValueError, match=words):
        KernelLogisticRegression(**options).fit(X, y)


def test_bad_data_are_named():
    X, y = data()
    with pytest.raises(ValueError, match="one class"):
        fixed().fit(X, np.zeros(len(y)))
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        fixed().fit(X, y)


@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_a_stop_too_early_is_told(solver):
    X, y = data()
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        model = fixed(alpha=1e-4, max_iter=1, solver=solver).fit(X, y)
    assert model.n_iter_ == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fixed(alpha=1e-4, tol=1e-6, solver=solver).fit(X, y)


def test_parameters_survive_a_clone():
    model = KernelLogisticRegression(2.0, [1e-3, 1.0], solver="lbfgs", cv=3)
    assert clone(model).get_params() == model.get_params()


def test_verbose_prints_a_line_for_every_sigma(capsys):
    X, y = data()
    KernelLogisticRegression([1.0, 2.0], 0.1, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert sum("best alpha" in line for line in lines) == 2
    assert lines[-1].startswith("[KernelLogisticRegression] chosen: sigma")


def test_plans_name_the_solver_and_refuse_what_does_not_fit():
    X, y = blobs(120)
    plan = KernelLogisticRegression(random_state=0).plan(X, y)
    assert (plan.solver, plan.fits) == ("newton", True)
    assert plan.seconds > 0
    assert KernelLogisticRegression(solver="lbfgs").plan((500, 5)).solver == "lbfgs"
    assert MultiTaskKernelLogisticRegression().plan((500, 5), n_tasks=4).solver == "newton"
    few = KernelLogisticRegression(n_centers=50).plan((5000, 5))
    assert few.seconds < KernelLogisticRegression().plan((5000, 5)).seconds / 10
    with leastwise.memory_limit("500KB"):
        assert not KernelLogisticRegression().plan(X, y).fits
        with pytest.raises(
            MemoryError, match=r"120 rows with 120 basis functions need about .* n_centers=\d+ would fit"
        ):
            KernelLogisticRegression().fit(X, y)
