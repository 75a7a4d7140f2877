"""Arrays of other libraries, inside of scikit-learn's array API dispatch: the same answers, where the rows lie."""

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

import leastwise
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
from leastwise.calibration.extrapolation import MEASURED, REFERENCE
from leastwise.estimators.abstaining import Abstaining
from leastwise.estimators.recalibrated import Recalibrated
from leastwise.fitting import sums
from leastwise.linalg.moments import Moments
from leastwise.model_selection.folds import distinct_rows
from leastwise.utils import arrays
from leastwise.utils.hashing import row_hashes

torch = pytest.importorskip("torch", reason="torch is not there")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4))
Y = (X[:, 0] + 0.5 * RNG.normal(size=90) > 0).astype(int) + (X[:, 1] > 0.7)
TASK = RNG.integers(0, 4, size=90)
NEW = 2 * RNG.normal(size=(40, 4))
NEW_TASK = RNG.integers(0, 6, size=40)  # two of them are not known
FIXED = {"sigma": 1.5, "alpha": 1e-2, "random_state": 0}
METHODS = ("predict_proba", "decision_function", "scores", "in_domain", "predict_log_proba", "predict")


@pytest.fixture
def dispatch(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with config_context(array_api_dispatch=True):
        yield


def strict():
    return pytest.importorskip("array_api_strict", reason="array-api-strict is not there")


@pytest.fixture(params=["torch", "strict", "strict on another device"])
def to(request, dispatch):
    """From numpy to another library; the strict one has nothing that the standard does not name."""
    if request.param == "torch":
        return torch.from_numpy
    place = strict().Device("device1" if "another" in request.param else "CPU_DEVICE")
    return lambda A: strict().asarray(A, device=place)


def check_alike(model, to, rows=NEW, methods=METHODS, tol=1e-12, **params):
    for name in methods:
        if not hasattr(model, name):
            continue
        with np.errstate(divide="ignore"):
            one, other = getattr(model, name)(rows, **params), getattr(model, name)(to(rows), **params)
        for a, b in zip(*((one, other) if isinstance(one, list) else ([one], [other])), strict=True):
            assert isinstance(b, type(to(rows))), name
            assert b.device == to(rows).device, name
            b = arrays.to_numpy(b)
            assert a.dtype == b.dtype
            np.testing.assert_allclose(b, a, rtol=tol, atol=tol, err_msg=name)


# --------------------------------------------------------------------- predict


@pytest.mark.parametrize("kernel", ["rbf", "laplace", "linear", "poly", "rbf+linear", "rbf+laplace", "sigmoid"])
@pytest.mark.filterwarnings("ignore:The sigmoid kernel")
def test_every_kernel(kernel, to):
    norm = "coefficients" if kernel == "sigmoid" else "function"
    check_alike(LSPC(kernel=kernel, norm=norm, n_centers=20, **FIXED).fit(X, Y), to)


@pytest.mark.parametrize("calibration", ["blend", "temperature", "isotonic", None])
@pytest.mark.parametrize("bias", ["shared", None])
def test_every_calibration(calibration, bias, to):
    model = LSPC(calibration=calibration, bias=bias, **FIXED).fit(X, Y)
    check_alike(model, to)
    check_alike(model, to, methods=("predict_proba", "decision_function", "predict"), class_prior=[0.1, 0.2, 0.7])


def test_two_classes(to):
    check_alike(LSPC(**FIXED).fit(X, Y > 0), to)


def test_precomputed_and_functions(to):
    def kernel(A, B):
        return A @ B.T + 1.5

    check_alike(LSPC(kernel=kernel, alpha=1e-2).fit(X, Y), to)
    model = LSPC(kernel="precomputed", alpha=1e-2, n_centers=20, random_state=0).fit(kernel(X, X), Y)
    check_alike(model, to, rows=kernel(NEW, X))


def test_functions_of_the_users_are_checked(dispatch):
    model = LSPC(kernel=lambda A, B: A @ B.T, alpha=1e-2).fit(X, Y)
    model.kernel_ = type(model.kernel_)(function=lambda A, B: (A @ B.T)[1:])
    with pytest.raises(ValueError, match=r"shape \(39, 90\); for inputs of 40 and 90"):
        model.predict_proba(torch.from_numpy(NEW))
    model.kernel_ = type(model.kernel_)(function=lambda A, B: A @ B.T / 0)
    with pytest.raises(ValueError, match="not finite"):
        model.predict_proba(torch.from_numpy(NEW))


LABELS = np.column_stack([Y > 0, Y > 1, X[:, 2] > 0]).astype(int)
SHARED = {"sharing": 0.4, **FIXED}


@pytest.mark.parametrize("calibration", ["blend", "temperature", "isotonic", None])
@pytest.mark.parametrize("labels", [LABELS, np.column_stack([Y, LABELS]), Y], ids=["binary", "classes", "flat"])
def test_many_labels(calibration, labels, to):
    model = MultiLabelLSPC(calibration=calibration, **SHARED).fit(X, labels)
    check_alike(model, to)
    if labels is LABELS:
        check_alike(model, to, methods=("predict_proba", "predict"), class_prior={1: 0.9})


@pytest.mark.parametrize(
    "model",
    [
        MultiTaskLSPC(**SHARED),
        MultiTaskLSPC(similarity="learned", **SHARED),
        MultiTaskLSPC(n_centers=20, **SHARED),
        MultiTaskLSPC(calibration="isotonic", **SHARED),
        MultiTaskLSSVC(**SHARED),
        MultiTaskKernelLogisticRegression(**SHARED),
    ],
    ids=str,
)
def test_many_tasks(model, to):
    check_alike(model.fit(X, Y, tasks=TASK), to, tasks=NEW_TASK, tol=1e-11)


def test_machines_and_quantities(to):
    check_alike(LSSVC(**FIXED).fit(X, Y), to)
    check_alike(KernelLogisticRegression(**FIXED).fit(X, Y), to)
    check_alike(LSSVR(**FIXED).fit(X, X[:, 0] ** 2), to, tol=1e-11)
    check_alike(LSSVR(**FIXED).fit(X, X[:, :2] * 1e5), to, tol=1e-11)
    check_alike(MultiTaskLSSVR(**SHARED).fit(X, X[:, 0] ** 2, tasks=TASK), to, tasks=NEW_TASK, tol=1e-11)


def test_chunks(to, monkeypatch):
    model = LSPC(n_centers=20, **FIXED).fit(X, Y)
    monkeypatch.setattr("leastwise.problem.basis.CHUNK", 20 * 8 * 7)  # seven rows
    check_alike(model, to)


@pytest.mark.parametrize("fitted", [np.float64, np.float32])
def test_single_precision_stays(fitted, dispatch):
    model = LSPC(n_centers=20, **FIXED).fit(X.astype(fitted), Y)
    rows = torch.from_numpy(NEW).float()
    assert model.predict_proba(rows).dtype == torch.float32
    assert model.in_domain(rows).dtype == torch.float32
    np.testing.assert_allclose(model.predict_proba(rows).numpy(), model.predict_proba(NEW), atol=1e-5)
    whole = torch.from_numpy(NEW).round().int()
    assert model.predict_proba(whole).dtype == torch.float64
    np.testing.assert_allclose(model.predict_proba(whole).numpy(), model.predict_proba(whole.numpy()), atol=1e-5)


def test_a_device_without_double_precision(dispatch):
    single, values = torch.from_numpy(X).float(), Y + 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "float_dtypes", lambda A, dtype=None: [torch.float32])
        model = LSPC(solver="moments", **GIVEN).fit(single, values)
        assert model.predict(single).dtype == torch.float32  # though classes are numbers of double precision
    reference = LSPC(solver="moments", **GIVEN).fit(X, values)
    np.testing.assert_allclose(model.predict_proba(NEW), reference.predict_proba(NEW), atol=1e-4)


def test_words_stay_words(to):
    model = LSPC(**FIXED).fit(X, np.array(["oak", "elm", "ash"])[Y])
    assert model.predict(to(NEW)).tolist() == model.predict(NEW).tolist()


def test_what_comes_as_numpy(to):
    """Sets, intervals, familiarity and influence; frames where they were asked for."""
    model = LSPC(**FIXED).fit(X, Y)
    for name in ("predict_set", "novelty_pvalue"):
        one, other = getattr(model, name)(NEW), getattr(model, name)(to(NEW))
        assert isinstance(other, np.ndarray)
        np.testing.assert_allclose(other, one, atol=1e-12)
    np.testing.assert_allclose(model.influence(to(NEW)).effect, model.influence(NEW).effect, atol=1e-9)
    machine = LSSVR(**FIXED).fit(X, X[:, 0])
    np.testing.assert_allclose(machine.predict_interval(to(NEW)), machine.predict_interval(NEW), atol=1e-9)
    pandas = pytest.importorskip("pandas")
    assert isinstance(model.set_output(transform="pandas").predict_proba(to(NEW)), pandas.DataFrame)


def test_scores_of_models(dispatch):
    rows, tensor = torch.from_numpy(X), torch.from_numpy
    for model, y, params in [
        (LSPC(**FIXED), Y, {}),
        (LSSVR(**FIXED), X[:, 0], {}),
        (MultiLabelLSPC(**SHARED), LABELS, {}),
        (MultiTaskLSPC(**SHARED), Y, {"tasks": TASK}),
    ]:
        model.fit(X, y, **params)
        assert model.score(rows, tensor(y), **params) == pytest.approx(model.score(X, y, **params))


def test_wrappers_answer_in_numpy(to):
    """Their own part is numpy's; probabilities that they only hand on stay where they are."""
    model = Abstaining(LSPC(**FIXED), max_error=0.4).fit(X, Y)
    np.testing.assert_array_equal(model.predict(to(NEW)), model.predict(NEW))
    assert isinstance(model.predict_proba(to(NEW)), type(to(NEW)))
    model = Recalibrated(LSPC(**FIXED)).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(to(NEW)), model.predict_proba(NEW), atol=1e-12)
    other = Recalibrated(LSPC(**FIXED)).fit(to(X), to(Y))
    np.testing.assert_allclose(other.predict_proba(NEW), model.predict_proba(NEW), atol=1e-10)
    frozen = Abstaining(FrozenEstimator(LSPC(**FIXED).fit(X, Y)), max_error=0.4).fit(to(X), to(Y))
    assert isinstance(frozen.predict(to(NEW)), np.ndarray)


# ------------------------------------------------------------------------- fit


def check_same_fit(one, other, tol=1e-10):
    assert isinstance(other.coef_, np.ndarray)
    assert isinstance(other.centers_, np.ndarray)
    assert other.sigma_ == pytest.approx(one.sigma_, rel=1e-12)
    assert other.alpha_ == pytest.approx(one.alpha_, rel=1e-12)
    np.testing.assert_array_equal(other.centers_, one.centers_)
    for name in ("coef_", "heldout_proba_", "class_prior_"):
        a, b = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(b, a, atol=tol * np.nanmax(np.abs(a)))
    np.testing.assert_allclose(other.predict_proba(NEW), one.predict_proba(NEW), atol=tol)


GIVEN = {"centers": X[:20], "sigma": 1.5, "alpha": 1e-2}
SEARCHED = {"n_centers": 20, "sigma": [0.7, 1.5], "alpha": [1e-2, 1e-1], "random_state": 3}


@pytest.mark.parametrize(
    "params",
    [
        GIVEN,
        {**GIVEN, "kernel": "laplace", "bias": "shared"},
        {**GIVEN, "kernel": "rbf+linear"},
        SEARCHED,
        {**SEARCHED, "search_rows": 40, "calibration": "isotonic"},
        {**SEARCHED, "norm": "coefficients", "cv": 5},
        {**SEARCHED, "centers": "kmeans"},
    ],
    ids=["given", "laplace", "sum", "searched", "some rows", "coefficients", "kmeans"],
)
def test_the_same_fit(params, to):
    one = LSPC(solver="moments", **params).fit(X, Y)
    other = LSPC(solver="moments", **params).fit(to(X), to(Y))
    check_same_fit(one, other)
    check_alike(other, to)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (LSSVC(**GIVEN), Y),
        (LSSVC(n_centers=20, alpha=[1e-2, 1e-1], sigma=1.5, random_state=0), Y),
        (LSSVR(**GIVEN), X[:, 0] ** 2),
        (LSSVR(**GIVEN), X[:, :2] * 1e5),
        (MultiLabelLSPC(sharing=0.4, **GIVEN), LABELS),
        (MultiLabelLSPC(sharing=[0.0, 0.4], **GIVEN), np.column_stack([Y, LABELS])),
    ],
    ids=["classes", "searched", "quantity", "quantities", "labels", "labels of classes"],
)
def test_the_same_fit_of_others(model, y, to):
    model.set_params(solver="moments")
    one, other = clone(model).fit(X, y), clone(model).fit(to(X), to(y))
    assert isinstance(other.coef_, np.ndarray)
    np.testing.assert_allclose(other.alpha_, one.alpha_)
    for name in ("predict", "scores"):  # more centres than features leave coefficients of a linear kernel open
        if hasattr(one, name):
            a, b = getattr(one, name)(NEW), getattr(other, name)(NEW)
            np.testing.assert_allclose(b, a, atol=1e-10 * np.abs(a).max())
    check_alike(other, to, methods=("predict", "scores"), tol=1e-10)


def test_the_same_fit_of_large_folds(to, monkeypatch):
    monkeypatch.setattr(sums, "LARGE_FOLD", 5)
    params = {**SEARCHED, "cv": 4}
    one = LSPC(solver="moments", **params).fit(X, Y)
    check_same_fit(one, LSPC(solver="moments", **params).fit(to(X), to(Y)))


def test_weights_copies_and_groups(to):
    rows, y = np.vstack([X, X[:30]]), np.concatenate([Y, Y[:30]])
    w, groups = RNG.integers(0, 3, size=120).astype(float), np.arange(120) // 2
    one = LSPC(solver="moments", **GIVEN).fit(rows, y, w, groups)
    check_same_fit(one, LSPC(solver="moments", **GIVEN).fit(to(rows), to(y), to(w), to(groups)))
    check_same_fit(one, LSPC(solver="moments", **GIVEN).fit(to(rows), y, w, groups))
    one = LSPC(solver="moments", class_weight="balanced", **GIVEN).fit(rows, y)
    check_same_fit(one, LSPC(solver="moments", class_weight="balanced", **GIVEN).fit(to(rows), to(y)))


def test_fits_that_hold_the_design_move_the_rows(to):
    """They are numpy's from then on, and their predictions follow the rows all the same."""
    for model, y, params in [
        (LSPC(n_centers=20, **FIXED), Y, {}),
        (LSPC(n_centers=20, solver="sgd", **FIXED), Y, {}),
        (LSPC(basis="class", **FIXED), Y, {}),
        (LSSVC(**FIXED), Y, {}),
        (LSSVR(**FIXED), X[:, 0], {}),
        (MultiLabelLSPC(**SHARED), LABELS, {}),
        (MultiTaskLSPC(**SHARED), Y, {"tasks": TASK}),
    ]:
        one = type(model)(**model.get_params()).fit(X, y, **params)
        other = model.fit(to(X), to(y), **{name: to(value) for name, value in params.items()})
        np.testing.assert_allclose(other.predict(X, **params), one.predict(X, **params), atol=1e-9)


def test_single_precision_fits(dispatch):
    one = LSPC(solver="moments", **GIVEN).fit(X, Y)
    other = LSPC(solver="moments", **GIVEN).fit(torch.from_numpy(X).float(), Y)
    assert other.coef_.dtype == np.float64  # systems of the centres are solved in double precision
    np.testing.assert_allclose(other.predict_proba(NEW), one.predict_proba(NEW), atol=1e-4)


@pytest.fixture
def moved(monkeypatch):
    """Numbers of rows of all tables that torch hands to numpy, with the number of their columns."""
    seen = []

    def watched(way):
        def numpy(tensor, *args, **kwargs):
            seen.extend([tuple(tensor.shape)] if tensor.ndim > 1 else [])
            return way(tensor, *args, **kwargs)

        return numpy

    for name in ("numpy", "__array__"):
        monkeypatch.setattr(torch.Tensor, name, watched(getattr(torch.Tensor, name)))
    return seen


def test_rows_do_not_come_over(dispatch, moved, monkeypatch):
    """Sums, and as many rows as are looked at, however many there are: y and ranks of rows are columns, no tables."""
    most = 400
    monkeypatch.setattr(sums, "SAMPLE_ROWS", most)
    monkeypatch.setattr("leastwise.problem.basis.CHUNK", 8 * 20 * 256)
    params = {"solver": "moments", "n_centers": 20, "sigma": [1, 2], "search_rows": most, "random_state": 0}
    total = []
    for n in (6000, 12000):
        rows = torch.from_numpy(RNG.normal(size=(n, 5)))
        moved.clear()
        model = LSPC(**params).fit(rows, (rows[:, 0] > 0).int())
        assert max(moved)[0] <= max(most, REFERENCE + MEASURED)
        total.append(sum(shape[0] for shape in moved if shape[1] == 5))
        moved.clear()
        model.predict_proba(rows)
        model.predict(rows)
        assert not moved
    assert 0 < total[1] < 1.05 * total[0]


def test_sums_of_tensors(to):
    Phi, Z, w = RNG.normal(size=(30, 5)), RNG.normal(size=(30, 2)), RNG.random(30)
    for weights in (None, w):
        one = Moments.of(Phi, Z, weights)
        for targets in (Z, to(Z)):
            other = Moments.of(to(Phi), targets, weights)
            for a, b in zip(one._parts, other._parts, strict=True):
                assert not isinstance(a, np.ndarray) or isinstance(b, np.ndarray)
                np.testing.assert_allclose(b, a, rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.floats(allow_nan=False, width=32), min_size=3, max_size=3), min_size=1, max_size=9))
def test_keys_are_those_of_numpy(rows):
    with config_context(array_api_dispatch=True), pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCIPY_ARRAY_API", "1")
        for dtype in (np.float64, np.float32):
            A = np.array(rows, dtype=dtype)
            np.testing.assert_array_equal(row_hashes(arrays.DeviceRows(torch.from_numpy(A))), row_hashes(A))


def test_rows_that_are_away(to):
    rows = arrays.DeviceRows(to(X))
    some, mask = np.array([3, 1, 80]), X[:, 0] > 0
    assert rows.shape == X.shape
    assert rows.dtype == X.dtype
    for index in (some, mask, slice(5, 9), slice(80, 200), slice(None)):
        assert isinstance(rows[index], np.ndarray)
        np.testing.assert_array_equal(rows[index], X[index])
    np.testing.assert_array_equal(arrays.to_numpy(rows.only(some)), X[some])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from([-1.0, -0.0, 0.0, 0.5]), min_size=3, max_size=3), min_size=1, max_size=25))
def test_copies_are_found_where_they_are(rows):
    A = np.array(rows)
    with config_context(array_api_dispatch=True), pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCIPY_ARRAY_API", "1")
        found = distinct_rows(arrays.DeviceRows(torch.from_numpy(A)))
    np.testing.assert_array_equal(found, distinct_rows(A))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.sampled_from(["sum", "max"]))
def test_parts_of_columns(widths, name):
    starts = np.concatenate([[0], np.cumsum(widths)])
    A = np.random.default_rng(1).normal(size=(3, starts[-1]))
    with config_context(array_api_dispatch=True), pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCIPY_ARRAY_API", "1")
        found = arrays.spread_over(name, torch.from_numpy(A), starts).numpy()
    for a, b in pairwise(starts):
        each = getattr(A[:, a:b], name)(axis=1)
        np.testing.assert_allclose(found[:, a:b], np.tile(each[:, None], b - a))


# -------------------------------------------------------------- files and limits


def test_a_model_of_tensors_is_saved_like_any_other(tmp_path, dispatch):
    model = LSPC(solver="moments", **GIVEN).fit(torch.from_numpy(X), torch.from_numpy(Y))
    leastwise.save(model, tmp_path / "model.lw")
    loaded = leastwise.load(tmp_path / "model.lw")
    np.testing.assert_array_equal(loaded.predict_proba(NEW), model.predict_proba(NEW))
    check_alike(loaded, torch.from_numpy)  # what was mapped into memory may not be written to


def test_without_dispatch_all_is_numpy():
    model = LSPC(solver="moments", **GIVEN).fit(torch.from_numpy(X), torch.from_numpy(Y))
    np.testing.assert_array_equal(model.coef_, LSPC(solver="moments", **GIVEN).fit(X, Y).coef_)
    for name in METHODS:
        answer = getattr(model, name)(torch.from_numpy(NEW))
        assert isinstance(answer, np.ndarray)
        np.testing.assert_array_equal(answer, getattr(model, name)(NEW))
    assert not arrays.foreign(torch.from_numpy(X))


def test_numpy_frames_lists_and_sparse_matrices_are_as_ever(dispatch):
    pandas = pytest.importorskip("pandas")
    model = LSPC(n_centers=20, **FIXED).fit(X, Y)
    for rows in (NEW, NEW.tolist(), pandas.DataFrame(NEW), sparse.csr_array(NEW)):
        answer = model.predict_proba(rows)
        assert isinstance(answer, np.ndarray)
        np.testing.assert_allclose(answer, model.predict_proba(NEW), atol=1e-12)
    scattered = LSPC(n_centers=20, **FIXED).fit(sparse.csr_array(X), Y)
    check_alike(scattered, torch.from_numpy, tol=1e-11)


def test_the_setting_of_scipy_is_asked_for(monkeypatch):
    monkeypatch.delenv("SCIPY_ARRAY_API", raising=False)
    model = LSPC(**FIXED).fit(X, Y)
    with (
        pytest.raises(RuntimeError, match="SCIPY_ARRAY_API=1"),
        config_context(array_api_dispatch=True),
    ):
        model.predict_proba(torch.from_numpy(NEW))


def test_sparse_tensors_are_refused(dispatch):
    model = LSPC(n_centers=20, **FIXED).fit(X, Y)
    thin = torch.from_numpy(NEW).to_sparse()
    with pytest.raises(TypeError, match=r"sparse tensor \(torch.sparse_coo\).*to_dense"):
        model.predict_proba(thin)
    with pytest.raises(TypeError, match="to_dense"):
        LSPC(solver="moments", **GIVEN).fit(torch.from_numpy(X).to_sparse(), Y)
    with pytest.raises(TypeError, match="to_dense"):
        LSSVC().fit(torch.from_numpy(X).to_sparse(), Y)


def test_values_are_checked_as_ever(dispatch):
    model = LSPC(n_centers=20, **FIXED).fit(X, Y)
    rows = torch.from_numpy(NEW)
    with pytest.raises(ValueError, match="infinity"):
        model.predict_proba(rows * float("inf"))
    with pytest.raises(ValueError, match="overflow float32"):
        model.predict_proba(rows.float() * 1e20)
    with pytest.raises(ValueError, match="expecting 4 features"):
        model.predict_proba(rows[:, :2])


def test_models_move_to_the_rows(dispatch):
    """Neither the library nor the device of the fit has to be that of the rows; y may be elsewhere than X."""
    xp = strict()
    there = [xp.Device("CPU_DEVICE"), xp.Device("device1")]
    rows = xp.asarray(X, device=there[1])
    model = LSPC(solver="moments", **GIVEN).fit(rows, xp.asarray(Y, device=there[0]))
    for device in there:
        assert model.predict_proba(xp.asarray(NEW, device=device)).device == device
    check_alike(model, torch.from_numpy)


def test_with_the_setting_of_scipy_from_the_start():
    """SciPy reads it when it is imported."""
    code = (
        "import numpy as np, torch; from sklearn import config_context; from leastwise import LSPC\n"
        "X = np.random.default_rng(0).normal(size=(60, 3)); y = (X[:, 0] > 0) + 0\n"
        "model = LSPC(n_centers=10, sigma=[1, 2], alpha=[0.01, 0.1], random_state=0).fit(X, y)\n"
        "with config_context(array_api_dispatch=True):\n"
        "    other = LSPC(**model.get_params()).fit(torch.from_numpy(X), torch.from_numpy(y))\n"
        "    P = other.predict_proba(torch.from_numpy(X))\n"
        "print(type(P).__name__, np.abs(P.numpy() - model.predict_proba(X)).max() < 1e-10)"
    )
    env = {**os.environ, "SCIPY_ARRAY_API": "1"}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert out.stdout == "Tensor True\n", out.stderr
