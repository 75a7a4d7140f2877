"""Models as ONNX graphs say what the models say."""

import importlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
from conftest import blobs
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator
from onnx_cases import CLOSE, FIXED, agrees, label_data, run, some_tasks, somewhere, task_data
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

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
from leastwise.baselines import (
    BMTLRegressor,
    InsDif,
    MLkNN,
    MTLFeatClassifier,
    MTLFeatRegressor,
    RMTLClassifier,
    RMTLRegressor,
)
from leastwise.estimators.abstaining import Abstaining
from leastwise.estimators.recalibrated import Recalibrated
from leastwise.onnx import check, feeds, to_onnx

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

KERNELS = ["rbf", "laplace", "linear", "poly", "sigmoid", "rbf+linear", "rbf+laplace"]
CALIBRATIONS = ["blend", "temperature", "isotonic", None]


# ------------------------------------------------------------------- one task


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("Estimator", [LSPC, LSSVC, KernelLogisticRegression])
def test_kernels(Estimator, kernel, dtype):
    X, y = blobs(60)
    model = Estimator(**FIXED, kernel=kernel).fit(X, y)
    rows = somewhere(X)
    agrees(model, rows[:40] if kernel in ("poly", "sigmoid") else rows, dtype=dtype)


@pytest.mark.parametrize("extrapolate", [False, True])
def test_logistic_regression_far_from_the_data(extrapolate):
    X, y = blobs(90, c=3)
    y = np.where(np.arange(90) % 4 == 0, 0, y)  # class shares that are not equal
    task = np.arange(90) % 2
    far = np.array([[1e3, 1e3], [-1e5, 3.0]]) + X[0]
    single = KernelLogisticRegression(**FIXED, extrapolate=extrapolate).fit(X, y)
    tasks = MultiTaskKernelLogisticRegression(**FIXED, sharing=0.4, extrapolate=extrapolate).fit(X, y, tasks=task)
    shares = np.bincount(y) / 90
    for model, ids in ((single, None), (tasks, np.array([0, 7]))):
        out = agrees(model, far, ids, dtype="float64")
        assert np.allclose(out["probabilities"], shares, atol=1e-6) != extrapolate
        between = X[:30] * np.linspace(1, 5, 30)[:, None]  # trust falls from 1 to 0
        ids = None if ids is None else np.arange(30) % 3
        assert extrapolate or ((single.in_domain(between) > 0.01) & (single.in_domain(between) < 0.99)).sum() > 5
        agrees(model, between, ids, dtype="float64")


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("c", [2, 4])
@pytest.mark.parametrize("Estimator", [LSPC, LSSVC])
def test_calibrations(Estimator, c, calibration):
    X, y = blobs(60, c=c)
    for extrapolate in (False, True):
        model = Estimator(**FIXED, calibration=calibration, extrapolate=extrapolate).fit(X, y)
        agrees(model, somewhere(X))
        agrees(model, somewhere(X), dtype="float64")


@pytest.mark.parametrize(
    "options",
    [
        {"basis": "class"},
        {"bias": "shared", "norm": "coefficients"},
        {"n_centers": 15},
        {"n_centers": 15, "centers": "kmeans", "kernel": "laplace"},
        {"n_centers": 15, "centers": "leverage"},
        {"centers": [[0.0, 0.0], [1.0, 1.0], [2.0, -1.0]]},
        {"cv": None, "calibration": None},
    ],
    ids=str,
)
def test_options_of_lspc(options):
    X, y = blobs(60)
    agrees(LSPC(**{**FIXED, **options}).fit(X, y), somewhere(X), dtype="float64")


def test_options_of_lssvms():
    X, y = blobs(60)
    for weight in (0.0, 0.5, np.inf):
        model = LSSVC(**FIXED, kernel="rbf+linear", linear_weight=weight).fit(X, y)
        agrees(model, somewhere(X), dtype="float64")
    agrees(LSSVC(**FIXED, prune=0.5).fit(X, y), somewhere(X), dtype="float64")
    agrees(LSSVC(**FIXED, solver="krylov").fit(X, y), somewhere(X), dtype="float64")
    X, y = blobs(1100)  # so many rows that the coefficients of the features are fitted
    model = LSSVR(alpha=0.01, kernel="linear", random_state=0).fit(X, y)
    assert len(model.centers_) == 2
    assert check(model, to_onnx(model, dtype="float64"), somewhere(X)) < 1e-12


@pytest.mark.parametrize(
    "classes",
    [["no", "maybe", "yes"], [10, 20, 30], [0.0, 1.0, 2.0], np.array(["x", "y", "z"], dtype=object), [-1, 0, 7]],
    ids=str,
)
def test_types_of_classes(classes):
    X, y = blobs(60)
    model = LSPC(**FIXED).fit(X, np.asarray(classes)[y])
    out = agrees(model, somewhere(X))
    assert set(out["label"].tolist()) <= set(np.asarray(classes).tolist())
    flags = LSPC(**FIXED).fit(X, y > 0)
    assert agrees(flags, somewhere(X))["label"].dtype == bool


def test_sparse_and_single_precision_and_one_feature():
    X, y = blobs(60)
    X = np.where(np.abs(X) < 0.5, 0, X)
    agrees(LSPC(**FIXED).fit(sparse.csr_array(X), y), somewhere(X), dtype="float64")
    agrees(LSSVC(**FIXED, kernel="rbf+linear").fit(sparse.csr_array(X), y), somewhere(X), dtype="float64")
    small = LSPC(**FIXED).fit(X.astype(np.float32), y)  # the model itself rounds then
    out = run(to_onnx(small), X)
    np.testing.assert_allclose(out["probabilities"], small.predict_proba(X), rtol=0, atol=1e-4)
    for kernel in ("rbf", "linear", "poly"):
        model = make_pipeline(StandardScaler(), LSPC(**FIXED, kernel=kernel)).fit(X[:, :1], y)
        agrees(model, somewhere(X)[:40, :1], dtype="float64")


def test_far_from_the_origin_no_digits_are_lost():
    X, y = blobs(60)
    X = X + 1e5
    agrees(LSPC(**FIXED).fit(X, y), X.astype(np.float32).astype(float))


def test_single_precision_within_is_worse_but_there():
    X, y = blobs(60)
    model = LSPC(**FIXED).fit(X, y)
    double, single = to_onnx(model), to_onnx(model, inside="float32")
    assert single.ByteSize() < 0.75 * double.ByteSize()
    assert check(model, double, X) <= check(model, single, X) < 1e-3


def test_no_rows_and_one_row():
    X, y = blobs(60)
    for kernel in ("rbf", "laplace"):
        model = LSPC(**FIXED, kernel=kernel).fit(X, y)
        out = run(to_onnx(model), np.empty((0, 2)))
        assert out["label"].shape == (0,)
        assert out["probabilities"].shape == (0, 3)
        agrees(model, somewhere(X)[:1])
    tasks = MultiTaskLSPC(**FIXED, sharing=0.4).fit(X, y, tasks=y % 2)
    assert run(to_onnx(tasks), np.empty((0, 2)), np.empty(0, dtype=int))["probabilities"].shape == (0, 3)
    agrees(tasks, X[:1], np.array([9]), dtype="float64")
    labels = Abstaining(MultiLabelLSPC(**FIXED, sharing=0.3), min_confidence=0.8).fit(X, np.eye(3, dtype=int)[y])
    assert run(to_onnx(labels), np.empty((0, 2)))["accepted"].shape == (0, 3)


@pytest.mark.parametrize("kernel", ["rbf", "laplace", "linear", "poly"])
def test_what_python_refuses_is_nan(kernel):
    X, y = blobs(60)
    rows = X[:6].copy()
    rows[0, 1], rows[1, 0], rows[2, 1] = np.nan, np.inf, -np.inf  # NaN is a missing value
    refused = [False, True, True, False, False, False]
    for calibration in CALIBRATIONS:
        model = LSPC(**FIXED, kernel=kernel, calibration=calibration).fit(X, y)
        for inside in ("float64", "float32"):
            P = run(to_onnx(model, inside=inside), rows)["probabilities"]
            assert np.isnan(P).all(axis=1).tolist() == np.isnan(P).any(axis=1).tolist() == refused
            np.testing.assert_allclose(P[0], model.predict_proba(rows[:1])[0], atol=1e-4)
    cautious = Abstaining(LSPC(**FIXED, kernel=kernel), min_confidence=0.0).fit(X, y)
    assert run(to_onnx(cautious), rows)["accepted"].tolist() == np.logical_not(refused).tolist()
    values = run(to_onnx(LSSVR(**FIXED, kernel=kernel).fit(X, y)), rows)["variable"]
    assert np.isnan(values).tolist() == refused
    labels = MultiLabelLSPC(**FIXED, sharing=0.0, kernel=kernel).fit(X, np.eye(3, dtype=int)[y])
    assert np.isnan(run(to_onnx(labels), rows)["probabilities"]).all(axis=1).tolist() == refused


@settings(max_examples=30)
@given(
    st.integers(0, 1000),
    st.sampled_from(KERNELS[:3]),
    st.sampled_from(CALIBRATIONS),
    st.floats(0.1, 10),
    st.floats(1e-5, 1.0),
    st.integers(1, 4),
    st.floats(0.01, 1000),
)
def test_any_model_agrees_everywhere(seed, kernel, calibration, sigma, alpha, d, extrapolation):
    X, y = blobs(30, d=d, seed=seed)
    rows = (
        np.vstack([X, extrapolation * np.random.default_rng(seed).normal(size=(20, d))])
        .astype(np.float32)
        .astype(float)
    )
    model = LSPC(sigma, alpha, kernel=kernel, calibration=calibration, cv=5, random_state=0).fit(X, y)
    # Steps may be steep, and linear scores are large far away: there rounding counts for more.
    rough = calibration == "isotonic" or kernel == "linear"
    assert check(model, to_onnx(model), rows) < (1e-4 if rough else 1e-6)
    assert check(model, to_onnx(model, dtype="float64"), rows) < (1e-4 if rough else 1e-9)


# ----------------------------------------------------------------- regression


@pytest.mark.parametrize("kernel", ["rbf", "laplace", "linear", "rbf+linear"])
@pytest.mark.parametrize("outputs", [0, 2])
def test_regressors(kernel, outputs):
    X, _ = blobs(60)
    y = 1e5 * np.sin(X) @ np.ones((2, max(outputs, 1))) + 3e6
    y = y[:, 0] if not outputs else y * [1, 1e-9]
    model = LSSVR(**FIXED, kernel=kernel).fit(X, y)
    rows = somewhere(X)
    for dtype, tol in (("float32", 1e-6), ("float64", 1e-10)):
        out = run(to_onnx(model, dtype=dtype, interval=0.8), rows)
        assert out["variable"].shape == model.predict(rows).shape
        np.testing.assert_allclose(out["variable"], model.predict(rows), rtol=tol, atol=tol * 3e6)
        ends = model.predict_interval(rows, 0.8, "jackknife")
        np.testing.assert_allclose(np.stack([out["lower"], out["upper"]], axis=-1), ends, rtol=tol, atol=tol * 3e6)


@pytest.mark.parametrize("people", [12, 6])
def test_intervals_of_groups_and_of_a_search(people):
    """As wide as ``predict_interval`` has them: groups count once, few of them give no ends."""
    X, _ = blobs(60)
    y = np.sin(X[:, 0]) + np.random.default_rng(0).normal(size=60)
    model = LSSVR(random_state=0).fit(X, y, groups=np.arange(60) % people)
    out, ends = run(to_onnx(model, interval=0.9, dtype="float64"), X), model.predict_interval(X, 0.9, "jackknife")
    assert np.isfinite(ends).all() == (people > 8)
    np.testing.assert_allclose(np.stack([out["lower"], out["upper"]], axis=1), ends, rtol=1e-9)


def test_regressors_of_tasks():
    X, y, task = task_data([f"t{k}" for k in range(10)])
    model = MultiTaskLSSVR(**FIXED, sharing=0.5).fit(X, y + 0.1, tasks=task)
    task = np.where(np.arange(len(task)) % 5 == 0, "new", task)
    out = run(to_onnx(model, interval=0.6), X, task)
    np.testing.assert_allclose(out["variable"], model.predict(X, tasks=task), atol=1e-6)
    ends = model.predict_interval(X, 0.6, "jackknife", tasks=task)
    np.testing.assert_allclose(np.stack([out["lower"], out["upper"]], axis=1), ends, atol=1e-6)
    with pytest.raises(ValueError, match=r"interval=1\.5"):
        to_onnx(model, interval=1.5)
    with pytest.raises(ValueError, match="regressors such as LSSVR"):
        to_onnx(LSPC(**FIXED).fit(*blobs(60)), interval=0.5)


# ---------------------------------------------------------------------- tasks


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", ["rbf", "laplace", "linear", "rbf+linear"])
@pytest.mark.parametrize("Estimator", [MultiTaskLSPC, MultiTaskLSSVC, MultiTaskKernelLogisticRegression])
def test_tasks(Estimator, kernel, dtype):
    X, y, task = task_data()
    if Estimator is MultiTaskKernelLogisticRegression and "+" in kernel:
        kernel = "poly"
    model = Estimator(**FIXED, sharing=0.4, kernel=kernel).fit(X, y, tasks=task)
    agrees(model, X.astype(np.float32).astype(float), some_tasks(task, "elsewhere"), dtype=dtype)


@pytest.mark.parametrize(
    "options",
    [
        {"similarity": "correlation"},
        {"similarity": "learned"},
        {"similarity": "correlation", "kernel": "linear"},
        {"task_penalty": {"a": 3.0}},
        {"n_centers": 10},
        {"n_centers": 10, "kernel": "linear"},
        {"sharing": 1.0},
        {"sharing": 0.0, "calibration": "isotonic"},
        {"calibration": None},
        {"calibration": "temperature", "bias": "shared"},
    ],
    ids=str,
)
def test_options_of_tasks(options):
    X, y, task = task_data()
    model = MultiTaskLSPC(**{**FIXED, "sharing": 0.4, **options}).fit(X, y, tasks=task)
    rows = somewhere(X)
    agrees(model, rows, some_tasks(np.resize(task, len(rows)), "elsewhere"), dtype="float64")


@pytest.mark.parametrize("bias", ["task", "shared", 0.3, None])
def test_intercepts_of_tasks(bias):
    X, y, task = task_data()
    model = MultiTaskLSSVC(**FIXED, sharing=0.4, bias=bias).fit(X, y, tasks=task)
    agrees(model, somewhere(X), some_tasks(np.resize(task, 46), "elsewhere"), dtype="float64")


@pytest.mark.parametrize(
    ("ids", "new"), [((3, 7, 2**40), 9), ((0.5, 1.5, 2.5), 0.1), (("a", "", "c c"), "A"), ((True, False), True)]
)
def test_types_of_tasks(ids, new):
    X, y, task = task_data(ids)
    model = MultiTaskLSPC(**FIXED, sharing=0.4).fit(X, y, tasks=task)
    agrees(model, X.astype(np.float32).astype(float), some_tasks(task, new))


def test_the_task_column_among_numbers():
    X, y, task = task_data((3, 7, 11))
    for column in (0, -1, 1):
        place = column % 3
        whole = np.insert(X, place, task, axis=1).astype(np.float32).astype(float)
        model = MultiTaskLSPC(**FIXED, sharing=0.4, task_column=column).fit(whole, y)
        proto = to_onnx(model)
        assert [i.name for i in proto.graph.input] == ["X"]
        whole[::3, place] = 99
        agrees(model, whole)
    wide = MultiTaskLSPC(**FIXED, sharing=0.4, task_column=2).fit(np.column_stack([X, 2**30 + task]), y)
    with pytest.raises(ValueError, match="not distinct as float32"):
        to_onnx(wide)
    agrees(wide, np.column_stack([X, 2**30 + task]), dtype="float64")


def test_the_task_column_of_text_in_a_frame():
    pandas = pytest.importorskip("pandas")
    X, y, task = task_data()
    frame = pandas.DataFrame({"site": task, "u": X[:, 0], "v": X[:, 1]})
    model = MultiTaskLSPC(**FIXED, sharing=0.4, task_column="site").fit(frame, y)
    proto = to_onnx(model, dtype="float64")
    assert [i.name for i in proto.graph.input] == ["site", "u", "v"]
    frame["site"] = some_tasks(task, "nowhere")
    agrees(model, frame, dtype="float64")


def test_an_unknown_task_is_an_error_where_it_was_to_be():
    X, y, task = task_data()
    model = MultiTaskLSPC(**FIXED, sharing=0.4, unknown_task="error").fit(X, y, tasks=task)
    agrees(model, X.astype(np.float32).astype(float), task)
    with pytest.raises(Exception, match="unknown_task_is_an_error"):
        run(to_onnx(model), X, some_tasks(task, "elsewhere"))


# --------------------------------------------------------------------- labels


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_labels(calibration, dtype):
    X, Y = label_data()
    model = MultiLabelLSPC(**FIXED, sharing=0.3, calibration=calibration).fit(X, Y)
    rows = somewhere(X)
    out = run(to_onnx(model, dtype=dtype), rows)
    P = model.predict_proba(rows)
    np.testing.assert_allclose(out["probabilities"], P, rtol=0, atol=CLOSE[dtype])
    clear = np.abs(P - model.threshold_) > 1e-5
    assert np.array_equal(out["label"][clear], model.predict(rows)[clear])


def test_labels_with_several_classes_names_and_thresholds():
    pandas = pytest.importorskip("pandas")
    X, Y = label_data(T=3)
    words = pandas.DataFrame(
        {"a": np.array(["no", "yes"])[Y[:, 0]], "b": np.array(["x", "y", "z"])[Y[:, 1] + Y[:, 2]]}
    )
    mixed = words.assign(c=5 * Y[:, 2], a=np.array(["n", "y"])[Y[:, 0]])
    for frame in (words, mixed):
        model = MultiLabelLSPC(**FIXED, sharing=0.3, threshold={"a": 0.3}).fit(X, frame)
        out, wanted, tables = run(to_onnx(model), X), model.predict(X), model.predict_proba(X)
        for t, name in enumerate(frame.columns):
            label = out["label"][:, t] if "label" in out else out[f"label_{t}"]
            assert label.tolist() == wanted[name].tolist()
            np.testing.assert_allclose(out[f"probabilities_{t}"], tables[t], rtol=0, atol=1e-6)
        assert check(model, to_onnx(model), X) < 1e-6
    table = MultiLabelLSPC(**FIXED, sharing=0.3, threshold=[0.2, 0.5, 0.8]).fit(X, Y.astype(bool))
    out = run(to_onnx(table), X)
    assert out["label"].dtype == bool
    assert np.array_equal(out["label"], table.predict(X))


def test_other_class_shares():
    X, y = blobs(60)
    rows, shares = somewhere(X), {0: 0.7, 1: 0.3, 2: 0.0}
    model = LSPC(**FIXED).fit(X, y)
    for class_prior in (shares, "uniform"):
        out = run(to_onnx(model, dtype="float64", class_prior=class_prior), rows)
        wanted = model.predict_proba(rows, class_prior=class_prior)
        np.testing.assert_allclose(out["probabilities"], wanted, rtol=0, atol=1e-9)
        second, first = np.sort(wanted, axis=1)[:, -2:].T
        clear = first - second > 1e-9  # rows far from all others have the shares, which "uniform" ties
        assert clear.mean() > 0.8
        assert np.array_equal(out["label"][clear], model.predict(rows, class_prior=class_prior)[clear])
    X, Y = label_data()
    labels = MultiLabelLSPC(**FIXED, sharing=0.3).fit(X, Y)
    out = run(to_onnx(labels, dtype="float64", class_prior=[0.1, 0.5, 0.9, 0.2]), X)
    wanted = labels.predict_proba(X, class_prior=[0.1, 0.5, 0.9, 0.2])
    np.testing.assert_allclose(out["probabilities"], wanted, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="RMTLClassifier does not"):
        to_onnx(RMTLClassifier().fit(*blobs(60), tasks=np.arange(60) % 3), class_prior="uniform")


def test_one_label_given_flat():
    X, y = blobs(60)
    model = MultiLabelLSPC(**FIXED, sharing=0.0).fit(X, np.array(["u", "v", "w"])[y])
    agrees(model, somewhere(X), dtype="float64")


# -------------------------------------------------- recalibration, abstention


METHODS = ["temperature", "vector", "beta", "quadratic", "isotonic", "structured", "dirichlet", None]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("c", [2, 3])
def test_recalibrated(method, c):
    X, y = blobs(60, c=c)
    model = Recalibrated(LSPC(**FIXED), method).fit(X, y)
    agrees(model, somewhere(X))
    agrees(model, somewhere(X), dtype="float64")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("by_task", [False, True])
def test_recalibrated_tasks(method, by_task):
    X, y, task = task_data(n=120)
    for calibration in ("blend", None):  # without one there is none for tasks that are not known, either
        inner = MultiTaskLSPC(**FIXED, sharing=0.4, calibration=calibration)
        model = Recalibrated(inner, method, by_task=by_task).fit(X, y, tasks=task)
        agrees(model, somewhere(X), some_tasks(np.resize(task, 46), "elsewhere"), dtype="float64")


@pytest.mark.parametrize("method", METHODS)
def test_recalibrated_labels(method):
    X, Y = label_data(T=4)
    Y[:, 3] = Y[:, 2] + Y[:, 3]
    model = Recalibrated(MultiLabelLSPC(**FIXED, sharing=0.3), method).fit(X, Y)
    assert check(model, to_onnx(model, dtype="float64"), somewhere(X)) < 1e-9
    binary = Recalibrated(MultiLabelLSPC(**FIXED, sharing=0.3, threshold="auto"), method).fit(X, Y[:, :3])
    out = run(to_onnx(binary, dtype="float64"), X)
    np.testing.assert_allclose(out["probabilities"], binary.predict_proba(X), rtol=0, atol=1e-9)
    assert np.array_equal(out["label"], binary.predict(X))


@pytest.mark.parametrize("method", METHODS)
def test_recalibrated_under_other_class_shares(method):
    X, y, task = task_data(n=120)
    rows, ids = somewhere(X), some_tasks(np.resize(task, 46), "elsewhere")
    tasks = Recalibrated(MultiTaskLSPC(**FIXED, sharing=0.4), method, by_task=True).fit(X, y, tasks=task)
    single = Recalibrated(KernelLogisticRegression(**FIXED), method).fit(X, y)
    for model, more in ((tasks, {"tasks": ids}), (single, {})):
        out = run(to_onnx(model, dtype="float64", class_prior=[0.6, 0.1, 0.3]), rows, more.get("tasks"))
        wanted = model.predict_proba(rows, **more, class_prior=[0.6, 0.1, 0.3])
        np.testing.assert_allclose(out["probabilities"], wanted, rtol=0, atol=1e-9)
    X, Y = label_data(T=3)
    labels = Recalibrated(MultiLabelLSPC(**FIXED, sharing=0.3), method).fit(X, Y)
    out = run(to_onnx(labels, dtype="float64", class_prior=[0.1, 0.5, 0.9]), somewhere(X))
    wanted = labels.predict_proba(somewhere(X), class_prior=[0.1, 0.5, 0.9])
    np.testing.assert_allclose(out["probabilities"], wanted, rtol=0, atol=1e-9)


def same_answers(one, other):
    one, other = np.asarray(one, dtype=object).ravel(), np.asarray(other, dtype=object).ravel()
    return all(a == b or (a != a and b != b) or (a == "" and b is None) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    ("classes", "reject"), [(["a", "b", "c"], None), (["a", "b", "c"], "?"), ([1, 2, 3], None), ([1, 2, 3], -1)]
)
@pytest.mark.parametrize("c", [2, 3])
def test_abstaining(classes, reject, c):
    X, y = blobs(90, c=c, intercept_ratio=2.0)
    model = Abstaining(LSPC(**FIXED), min_confidence=0.7, reject=reject).fit(X, np.array(classes)[y])
    rows = somewhere(X)
    out = run(to_onnx(model, dtype="float64"), rows)
    assert np.array_equal(out["accepted"], model.accepts(rows))
    assert 0 < out["accepted"].sum() < len(rows)
    assert same_answers(out["label"], model.predict(rows))
    np.testing.assert_allclose(out["probabilities"], model.predict_proba(rows), rtol=0, atol=1e-9)


def test_abstaining_by_task_in_a_pipeline_and_of_labels():
    X, y, task = task_data(n=160, c=2)
    y = np.where((task == "a") & (np.arange(160) % 3 == 0), 1 - y, y)  # one task is hard
    model = MultiTaskLSPC(**FIXED, sharing=0.4).fit(X, y, tasks=task)
    model = Abstaining(FrozenEstimator(model), max_error=0.2, by_task=True).fit(X, y, tasks=task)
    ids = some_tasks(task, "elsewhere")
    out = run(to_onnx(model, dtype="float64"), X, ids)
    assert np.array_equal(out["accepted"], model.accepts(X, tasks=ids))
    assert len(set(model.task_thresholds_)) > 1

    X, Y = label_data()
    model = Abstaining(MultiLabelLSPC(**FIXED, sharing=0.3), min_confidence=0.8).fit(X, Y)
    out = run(to_onnx(model, dtype="float64"), X)
    assert np.array_equal(out["accepted"], model.accepts(X))
    assert same_answers(out["label"], model.predict(X))

    single = Abstaining(make_pipeline(StandardScaler(), LSPC(**FIXED)), min_confidence=0.9).fit(*blobs(60))
    assert np.array_equal(run(to_onnx(single), X[:, :2])["accepted"], single.accepts(X[:, :2]))
    outer = make_pipeline(StandardScaler(), Abstaining(LSPC(**FIXED), min_confidence=0.9)).fit(*blobs(60))
    assert np.array_equal(run(to_onnx(outer), X[:, :2])["accepted"], outer[-1].accepts(outer[0].transform(X[:, :2])))


def test_marks_of_another_kind_than_the_classes_are_refused():
    X, y = blobs(60)
    model = Abstaining(LSPC(**FIXED), min_confidence=0.7, reject="?").fit(X, y)
    with pytest.raises(TypeError, match="one type: give a number"):
        to_onnx(model)


# ------------------------------------------------------------------ baselines


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("intercept", ["shared", "task"])
def test_rmtl(kernel, intercept):
    X, y, task = task_data()
    rows, ids = somewhere(X), some_tasks(np.resize(task, 46), "elsewhere")
    options = {"kernel": kernel, "intercept": intercept, "mu": 0.5}
    model = RMTLRegressor(**options).fit(X, y, tasks=task)
    assert check(model, to_onnx(model, dtype="float64"), rows, ids) < 1e-9
    for classes in (np.array(["a", "b", "c"])[y], y > 0):
        model = RMTLClassifier(**options).fit(X, classes, tasks=task)
        out = run(to_onnx(model, dtype="float64"), rows, ids)
        np.testing.assert_allclose(out["decision"], model.decision_function(rows, tasks=ids), rtol=1e-9, atol=1e-9)
        assert np.array_equal(out["label"], model.predict(rows, tasks=ids))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_mtl_feat_and_bmtl(kernel):
    X, y, task = task_data()
    rows, ids = somewhere(X), np.resize(task, 46)
    model = MTLFeatRegressor(kernel=kernel).fit(X, y, tasks=task)
    assert check(model, to_onnx(model, dtype="float64"), rows, ids) < 1e-9
    with pytest.raises(Exception, match="unknown_task_is_an_error"):
        run(to_onnx(model), rows, some_tasks(ids, "elsewhere"))
    for classes in (y, y > 0):
        for more, here in (({"tasks": task}, ids), ({}, None)):
            model = MTLFeatClassifier(kernel=kernel).fit(X, classes, **more)
            out = run(to_onnx(model, dtype="float64"), rows, here)
            assert np.array_equal(out["label"], model.predict(rows, tasks=here))
            np.testing.assert_allclose(
                out["decision"], model.decision_function(rows, tasks=here), rtol=1e-9, atol=1e-9
            )
    hidden = {"linear": "linear", "rbf": "tanh"}[kernel]
    network = BMTLRegressor(hidden=hidden, random_state=0, max_iter=50, tol=1e-3).fit(X, y, tasks=task)
    assert check(network, to_onnx(network, dtype="float64"), rows, some_tasks(ids, "elsewhere")) < 1e-9


def test_label_baselines():
    X, Y = label_data()
    rows = somewhere(X)
    model = MLkNN(5).fit(X, Y)
    out = run(to_onnx(model, dtype="float64"), rows)
    np.testing.assert_allclose(out["probabilities"], model.predict_proba(rows), atol=1e-12)
    assert np.array_equal(out["label"], model.predict(rows))
    model = InsDif(random_state=0).fit(X, Y)
    out = run(to_onnx(model, dtype="float64"), rows)
    # The distance of a row to itself is the root of what rounding leaves.
    np.testing.assert_allclose(out["decision"], model.decision_function(rows), rtol=1e-9, atol=1e-7)
    assert np.array_equal(out["label"], model.predict(rows))


# -------------------------------------------------------------- preprocessing


STEPS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler(),
    MinMaxScaler((-1, 2), clip=True),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(with_centering=False),
    Normalizer(),
    Normalizer("l1"),
    Normalizer("max"),
    Binarizer(threshold=0.2),
    PCA(2, whiten=True),
    PCA(1),
    TruncatedSVD(2),
    VarianceThreshold(0.1),
    FunctionTransformer(),
    SimpleImputer(),
    SimpleImputer(strategy="constant", fill_value=-1.0),
    SimpleImputer(add_indicator=True),
    make_pipeline(SimpleImputer(add_indicator=True, keep_empty_features=True), StandardScaler()),
    FeatureUnion([("a", StandardScaler()), ("b", PCA(1))]),
    make_pipeline(StandardScaler(), MinMaxScaler()),
    ColumnTransformer([("a", StandardScaler(), [2, 0]), ("b", "drop", [1])], remainder="passthrough"),
    ColumnTransformer([("a", StandardScaler(), slice(0, 2)), ("b", PCA(1), [-1, 0])]),
    ColumnTransformer([("a", OneHotEncoder(handle_unknown="ignore"), [3]), ("b", RobustScaler(), [0, 1])]),
    ColumnTransformer([("a", OrdinalEncoder(), [3]), ("b", RobustScaler(), [True, False, True, False])]),
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: str(step).replace("\n", "")[:60])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_in_front(step, dtype):
    X, y = blobs(60, d=3)
    X = np.column_stack([X, np.arange(60) % 3]).astype(np.float32).astype(float)
    if "SimpleImputer" in str(step):
        X[::7, 1], X[::9, 3], X[:, 0] = np.nan, np.nan, np.nan if "empty" in str(step) else X[:, 0]
    model = make_pipeline(step, LSPC(**FIXED)).fit(X, y)
    agrees(model, X + 0.0, dtype=dtype)


def clinic(n=80):
    pandas = pytest.importorskip("pandas")
    X, y, task = task_data(n=n)
    frame = pandas.DataFrame({"age": X[:, 0], "city": np.array(["Ulm", "Bonn", "Köln"])[np.arange(n) % 3]})
    frame = frame.assign(dose=X[:, 1], grade=np.arange(n) % 4, note="x", site=task)
    frame["city"] = frame["city"].astype(object)
    frame.loc[::9, "age"], frame.loc[::11, "city"] = np.nan, np.nan
    return frame, y


def prepared(*rest):
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(drop="first"))
    return ColumnTransformer(
        [("n", numbers, ["dose", "age"]), ("c", words, ["city"]), ("g", OneHotEncoder(), ["grade"]), *rest]
    )


def test_a_frame_with_text_and_gaps():
    frame, y = clinic()
    model = make_pipeline(prepared(), LSPC(**FIXED)).fit(frame, y)
    proto = to_onnx(model, dtype="float64")
    assert [i.name for i in proto.graph.input] == ["age", "city", "dose", "grade"]
    agrees(model, frame, dtype="float64")
    unseen = frame.assign(city="Rom")
    with pytest.raises(Exception, match="unknown_category_is_an_error"):
        run(proto, unseen)


def test_a_frame_with_tasks_beside_it_and_within_it():
    frame, y = clinic()
    model = make_pipeline(prepared(), MultiTaskLSPC(**FIXED, sharing=0.4))
    model.fit(frame, y, multitasklspc__tasks=frame["site"])
    ids = some_tasks(frame["site"], "elsewhere")
    out = run(to_onnx(model, dtype="float64"), frame, ids)
    np.testing.assert_allclose(out["probabilities"], model.predict_proba(frame, tasks=ids), rtol=0, atol=1e-9)
    within = prepared(("t", "passthrough", ["site"])).set_output(transform="pandas")
    within.set_params(c__onehotencoder__sparse_output=False, g__sparse_output=False)
    model = make_pipeline(within, MultiTaskLSPC(**FIXED, sharing=0.4, task_column="t__site")).fit(frame, y)
    agrees(model, frame.assign(site=ids), dtype="float64")


def test_text_that_is_missing_may_be_a_category():
    pandas = pytest.importorskip("pandas")
    frame, y = clinic()
    for encoder in (
        OneHotEncoder(handle_unknown="ignore"),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
    ):
        coded = ColumnTransformer([("c", encoder, ["city"]), ("n", "passthrough", ["dose"])])
        model = make_pipeline(coded, LSPC(**FIXED)).fit(frame, y)
        more = pandas.concat([frame, frame.assign(city="Rom")])
        agrees(model, more, dtype="float64")


def test_columns_that_were_empty_are_told_too():
    X, y = blobs(60, d=3)
    X[:, 1] = np.nan
    model = make_pipeline(SimpleImputer(add_indicator=True), LSPC(**FIXED)).fit(X, y)
    X[::2, 1] = 5.0
    agrees(model, X, dtype="float64")


@pytest.mark.parametrize("unknown", ["ignore", "infrequent_if_exist", "error"])
@pytest.mark.parametrize("drop", [None, "first", "if_binary"])
@pytest.mark.parametrize("rare", [{"min_frequency": 6}, {"max_categories": 3}, {"min_frequency": 2}])
def test_rare_categories(unknown, drop, rare):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    city = rng.choice(["Ulm", "Bonn", "Kiel", "Rom", "Graz"], 80, p=[0.5, 0.3, 0.1, 0.05, 0.05]).astype(object)
    city[:4] = np.nan
    frame = pandas.DataFrame({"city": city, "grade": np.minimum(rng.poisson(1.5, 80), 5), "two": np.arange(80) % 2})
    step = OneHotEncoder(handle_unknown=unknown, drop=drop, **rare)
    model = make_pipeline(step, LSPC(**FIXED)).fit(frame, rng.integers(3, size=80))
    agrees(model, frame, dtype="float64")
    if unknown != "error":
        unseen = frame.assign(city=np.where(np.arange(80) % 2, "Oslo", frame["city"]), grade=99)
        agrees(model, unseen, dtype="float64")


def test_the_pipeline_of_the_tutorial():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X, y, site = task_data(n=160, c=2)
    table = pandas.DataFrame({"site": site, "size": X[:, 0], "shade": X[:, 1]})
    table["line"] = rng.choice(["north", "south", "west"], size=160).astype(object)
    table.loc[rng.random(160) < 0.05, "shade"] = np.nan
    table.loc[rng.random(160) < 0.05, "line"] = np.nan
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    fill = SimpleImputer(strategy="constant", fill_value="?")
    words = make_pipeline(fill, OneHotEncoder(sparse_output=False, handle_unknown="ignore"))
    columns = ColumnTransformer(
        [("numbers", numbers, ["size", "shade"]), ("words", words, ["line"]), ("site", "passthrough", ["site"])],
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    pipeline = make_pipeline(columns, MultiTaskLSPC(**FIXED, sharing=0.4, task_column="site"))
    model = Abstaining(pipeline, min_confidence=0.9).fit(table, np.where(y == 1, "fault", "fine"))
    new = table.assign(site=some_tasks(site, "new"), line=np.where(np.arange(160) % 5, table["line"], "east"))
    new.loc[::3, "size"] = np.nan  # no gaps in training
    proto = to_onnx(model, dtype="float64")
    assert [i.name for i in proto.graph.input] == ["site", "size", "shade", "line"]
    assert check(model, proto, new) < 1e-9
    out = run(proto, new)
    assert np.array_equal(out["accepted"], model.accepts(new))
    assert same_answers(out["label"], model.predict(new))


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (PolynomialFeatures(), "The transformer PolynomialFeatures has no ONNX converter"),
        (FunctionTransformer(np.abs), "cannot be exported"),
        (OrdinalEncoder(max_categories=3), "infrequent categories"),
    ],
)
def test_other_steps_are_refused(step, words):
    X, y = blobs(60)
    model = make_pipeline(step, LSPC(**FIXED)).fit(np.round(X), y)
    with pytest.raises(TypeError, match=words):
        to_onnx(model)


# ----------------------------------------------------------------- the file


def test_another_runtime_says_the_same():
    """ONNX's own, in NumPy, which knows what the standard says and nothing else."""
    X, y, task = task_data(n=60)
    ids = some_tasks(task, "elsewhere")
    laplace = LSPC(**FIXED, kernel="laplace", calibration="isotonic").fit(X, y)
    steps = Recalibrated(MultiTaskLSPC(**FIXED, sharing=0.4), "isotonic", by_task=True).fit(X, y, tasks=task)
    labels = MultiLabelLSPC(**FIXED, sharing=0.3).fit(X, np.eye(3, dtype=int)[y])
    sure = Abstaining(LSPC(**FIXED), min_confidence=0.8).fit(X, np.array(["u", "v", "w"])[y])
    for model, tasks in ((laplace, None), (steps, ids), (labels, None), (sure, None)):
        proto = to_onnx(model, dtype="float64")
        places = [output.name for output in proto.graph.output]
        out = dict(zip(places, ReferenceEvaluator(proto).run(None, feeds(proto, X, tasks)), strict=True))
        more = {} if tasks is None else {"tasks": tasks}
        np.testing.assert_allclose(out["probabilities"], model.predict_proba(X, **more), rtol=0, atol=1e-12)
        assert same_answers(out["label"], model.predict(X, **more))


def test_what_to_feed_is_asked_for():
    frame, y = clinic()
    model = make_pipeline(prepared(), MultiTaskLSPC(**FIXED, sharing=0.4))
    proto = to_onnx(model.fit(frame, y, multitasklspc__tasks=frame["site"]))
    with pytest.raises(ValueError, match="give tasks="):
        feeds(proto, frame)
    with pytest.raises(ValueError, match="give a frame"):
        feeds(proto, frame.to_numpy(), "a")
    assert set(feeds(proto, frame, "a")["tasks"]) == {"a"}
    assert check(model, proto, frame, frame["site"]) < 1e-6
    words = np.array([["red", 1.0], ["blue", 2.0], ["red", 0.5], ["blue", 0.0]] * 10, dtype=object)
    coded = ColumnTransformer([("c", OneHotEncoder(), [0])], remainder="passthrough")
    agrees(make_pipeline(coded, LSPC(**FIXED)).fit(words, np.arange(40) % 3), words)


def test_what_a_file_says_of_itself():
    X, y, task = task_data()
    proto = to_onnx(MultiTaskLSPC(**FIXED, sharing=0.4).fit(X, y, tasks=task), name="mine")
    onnx.checker.check_model(proto, full_check=True)
    assert (proto.producer_name, proto.producer_version) == ("leastwise", leastwise.__version__)
    notes = {p.key: p.value for p in proto.metadata_props}
    assert notes == {
        "estimator": "MultiTaskLSPC",
        "inside": "float64",
        "classes": "[0, 1, 2]",
        "tasks": '["a", "b", "c", "d"]',
    }
    assert proto.graph.name == "mine"
    assert {o.domain: o.version for o in proto.opset_import} == {"": 17, "ai.onnx.ml": 3}
    assert [d.dim_param for d in proto.graph.output[0].type.tensor_type.shape.dim] == ["n"]


def test_what_has_no_form_is_refused():
    X, y = blobs(60)
    for kernel, rows in ((lambda A, B: A @ B.T, X), ("precomputed", X @ X.T)):
        with pytest.raises(ValueError, match="has no ONNX converter; there are converters for Laplace, Linear"):
            to_onnx(LSPC(**FIXED, kernel=kernel).fit(rows, y))
    tasks = np.empty(60, dtype=object)
    tasks[:] = [(k % 3,) for k in range(60)]
    pairs = MultiTaskLSPC(**FIXED, sharing=0.4).fit(X, y, tasks=tasks)
    with pytest.raises(TypeError, match="no type in ONNX"):
        to_onnx(pairs)
    with pytest.raises(TypeError, match=r"The estimator StandardScaler has no ONNX converter; .* for .*LSPC"):
        to_onnx(make_pipeline(PCA(1), StandardScaler()).fit(X))
    with pytest.raises(ValueError, match="dtype='float16' is not known"):
        to_onnx(LSPC(**FIXED).fit(X, y), dtype="float16")
    with pytest.raises(Exception, match="not fitted"):
        to_onnx(LSPC())
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"label": ["a", "b"] * 30, "u": X[:, 0]})
    named = make_pipeline(
        ColumnTransformer([("c", OneHotEncoder(), ["label"])], remainder="passthrough"), LSPC(**FIXED)
    )
    with pytest.raises(ValueError, match="name of an output, 'label'"):
        to_onnx(named.fit(frame, y))
    frame = frame.rename(columns={"label": "tasks"})
    coded = ColumnTransformer([("c", OneHotEncoder(), ["tasks"])], remainder="passthrough")
    twice = make_pipeline(coded, MultiTaskLSPC(**FIXED, sharing=0.4)).fit(frame, y, multitasklspc__tasks=y % 2)
    with pytest.raises(ValueError, match="the name 'tasks'"):
        to_onnx(twice)


def test_without_the_library_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"leastwise\[onnx\]"):
        to_onnx(LSPC(**FIXED).fit(*blobs(60)))


def test_the_two_packages_of_that_name_do_not_shadow_each_other():
    assert importlib.import_module("leastwise.onnx").__name__ != onnx.__name__
    assert hasattr(onnx, "ModelProto")
    code = "import leastwise.onnx, sys; assert 'onnx' not in sys.modules; import onnx; onnx.ModelProto"
    subprocess.run([sys.executable, "-c", code], check=True)
