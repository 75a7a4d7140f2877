"""Rows in single precision against the same rows in double precision."""

import tracemalloc

import numpy as np
import pytest

from leastwise import (
    LSPC,
    LSSVC,
    LSSVR,
    KernelLogisticRegression,
    MultiLabelLSPC,
    MultiTaskKernelLogisticRegression,
    MultiTaskLSPC,
    MultiTaskLSSVC,
    MultiTaskLSSVR,
)
from leastwise.linalg.decompositions import solve_design
from leastwise.problem.basis import make_basis
from leastwise.problem.centers import Recipe
from leastwise.solvers import evaluator as evaluator_module
from leastwise.solvers.evaluator import Evaluator, Settings

RNG = np.random.default_rng(0)
N = 300
ROWS = {d: RNG.normal(size=(N, d)).astype(np.float32) for d in (2, 6)}
NEW = {d: RNG.normal(size=(100, d)).astype(np.float32) for d in (2, 6)}
TASK, NEW_TASK = RNG.integers(4, size=N), RNG.integers(4, size=100)
NOISE = 0.3 * RNG.normal(size=N)
ALPHAS = [1e-7, 1e-5, 1e-3, 1.0]
#: In the plane 40 centres of this width are dependent to more digits than single precision has.
WIDTH = {2: 1.5, 6: 2.5}


def targets(d):
    X = ROWS[d]
    y = (X[:, 0] + np.sin(2 * X[:, 1]) + NOISE > 0).astype(int)
    return y, np.column_stack([y, X[:, 1] > 0.3, X[:, 0] + X[:, 1] > 0.5]).astype(int), X[:, 0] + NOISE


def gap(model, d, y, more=None, new_more=None, method="predict_proba"):
    """The largest difference between what is said by models of the same rows in single and in double precision."""
    said = []
    for dtype in (np.float32, float):
        fitted = model().fit(ROWS[d].astype(dtype), y, **(more or {}))
        said.append(getattr(fitted, method)(NEW[d].astype(dtype), **(new_more or {})))
        assert said[-1].dtype == fitted.intercept_.dtype == dtype
    return float(np.abs(said[0] - said[1]).max())


def plan(d, alpha):
    return {"sigma": WIDTH[d], "alpha": alpha, "n_centers": 40, "random_state": 0}


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("norm", ["function", "coefficients"])
@pytest.mark.parametrize("d", [2, 6])
@pytest.mark.parametrize(
    "more",
    [{}, {"bias": "shared"}, {"basis": "class"}, {"cv": 5}, {"solver": "moments"}],
    ids=["plain", "bias", "class", "folds", "moments"],
)
def test_one_task(d, norm, alpha, more):
    y, _, _ = targets(d)
    assert gap(lambda: LSPC(**plan(d, alpha), norm=norm, **more), d, y) < 1e-3


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("d", [2, 6])
def test_support_vector_machines(d, alpha):
    y, _, values = targets(d)
    assert gap(lambda: LSSVC(**plan(d, alpha)), d, y) < 2e-3
    assert gap(lambda: LSSVR(**plan(d, alpha), kernel="rbf"), d, values, method="predict") < 1e-4


@pytest.mark.parametrize("norm", ["function", "coefficients"])
@pytest.mark.parametrize(
    ("solver", "alpha"),
    [(solver, alpha) for solver in ("auto", "dual") for alpha in ALPHAS],
)
def test_many_tasks(solver, norm, alpha):
    y, _, _ = targets(2)
    model = lambda: MultiTaskLSPC(**plan(2, alpha), norm=norm, sharing=0.5, solver=solver)  # noqa: E731
    assert gap(model, 2, y, {"tasks": TASK}, {"tasks": NEW_TASK}) < 1e-3


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("norm", ["function", "coefficients"])
@pytest.mark.parametrize("bias", [None, "shared"])
def test_many_labels(bias, norm, alpha):
    _, labels, _ = targets(2)
    model = lambda: MultiLabelLSPC(**plan(2, alpha), norm=norm, sharing=0.5, similarity="shared", bias=bias)  # noqa: E731
    assert gap(model, 2, labels) < 5e-3


def test_logistic_regression():
    y, _, _ = targets(2)
    assert gap(lambda: KernelLogisticRegression(**plan(2, 1e-5), cv=3), 2, y) < 1e-4


# ------------------------------------------------------------ every row a centre

#: The smallest alpha of a default search, and a default search.
SMALLEST, DEFAULT = {"sigma": 2.0, "alpha": 3e-8}, {}
FAMILIES = {
    "LSPC": (LSPC, "classes"),
    "coefficients": (lambda **given: LSPC(norm="coefficients", **given), "classes"),
    "weights": (LSPC, "weighted"),
    "LSSVC": (LSSVC, "classes"),
    "LSSVR": (LSSVR, "values"),
    "KLR": (KernelLogisticRegression, "classes"),
    "labels": (MultiLabelLSPC, "labels"),
    "unknown labels": (MultiLabelLSPC, "unknown"),
    "MultiTaskLSPC": (MultiTaskLSPC, "tasks"),
    "MultiTaskLSSVC": (MultiTaskLSSVC, "tasks"),
    "MultiTaskKLR": (MultiTaskKernelLogisticRegression, "tasks"),
    "MultiTaskLSSVR": (MultiTaskLSSVR, "task values"),
}


@pytest.mark.parametrize("given", [SMALLEST, DEFAULT], ids=["smallest", "default"])
@pytest.mark.parametrize("family", FAMILIES)
def test_few_rows_are_fitted_in_double_precision(family, given):
    model, kind = FAMILIES[family]
    X = ROWS[2][:60]
    y, labels, values = (part[:60] for part in targets(2))
    gaps = np.where(np.arange(180).reshape(60, 3) % 7 == 0, np.nan, labels)
    Y = {"labels": labels, "unknown": gaps, "values": values, "task values": values}.get(kind, y)
    more = {"tasks": TASK[:60]} if "task" in kind else {}
    new = {"tasks": NEW_TASK} if "task" in kind else {}
    more |= {"sample_weight": 0.1 + np.arange(60) % 5} if kind == "weighted" else {}
    single, double = (model(**given).fit(X.astype(dtype), Y, **more) for dtype in (np.float32, float))
    method = "predict" if "values" in kind else "predict_proba"
    said, wanted = (getattr(m, method)(NEW[2].astype(m.intercept_.dtype), **new) for m in (single, double))
    assert single.alpha_ == pytest.approx(double.alpha_)
    assert said.dtype == single.intercept_.dtype == np.float32
    np.testing.assert_allclose(said, wanted, atol=1e-4)
    for name in ("heldout_scores_", "heldout_proba_", "heldout_prediction_"):
        if hasattr(double, name):
            assert getattr(single, name).dtype == np.float32
            np.testing.assert_allclose(getattr(single, name), getattr(double, name), atol=1e-4)


# ------------------------------------------------------------------------ memory


def made_trial(n=4000, b=100, dtype=np.float32):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3)).astype(dtype)
    label = np.arange(n)
    rows = evaluator_module.Rows(X, rng.integers(2, size=n), np.ones(n, dtype), label, label, label)
    model = LSPC(n_centers=b, sigma=1.0)
    kernel = model._spec().check()

    class Two:
        n_outputs = 2

    recipe = Recipe(n_centers=b)
    basis = make_basis(recipe, X, rows.y, rows.w, label, label, rng)
    return Evaluator(rows, basis, Settings(kernel, "function", False, Two()))


def test_large_arrays_stay_single():
    evaluator = made_trial()
    (design,) = evaluator.designs(1.0)
    spectrum = design.function_spectrum()
    assert evaluator.pairs.dtype == design.K.dtype == spectrum.U.dtype == spectrum.V.dtype == np.float32
    assert design.whitening.T.dtype == np.float64


def test_no_design_in_double_precision():
    """Rows are whitened, and summed, a part at a time."""
    peaks = {}
    for dtype in (np.float32, np.float64):
        evaluator = made_trial(n=120_000, dtype=dtype)
        tracemalloc.start()
        (design,) = evaluator.designs(1.0, deletes=False)
        solve_design(design.scaled, evaluator.Z, 1.0, None)
        peaks[dtype] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    whole = 120_000 * 100 * 4
    assert peaks[np.float32] < 1.7 * whole
    assert peaks[np.float32] < 0.75 * peaks[np.float64]
