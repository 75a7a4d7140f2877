"""Sets of classes in graphs are those of predict_set."""

import numpy as np
import pytest
from conftest import blobs
from onnx_cases import FIXED, label_data, run, some_tasks, somewhere, task_data

from leastwise import LSPC, LSSVC, LSSVR, KernelLogisticRegression, MultiLabelLSPC, MultiTaskLSPC, MultiTaskLSSVC
from leastwise.estimators.abstaining import Abstaining
from leastwise.estimators.recalibrated import Recalibrated
from leastwise.onnx import to_onnx

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize("coverage", [0.3, 0.9, 0.99])
@pytest.mark.parametrize(
    "model",
    [
        LSPC(**FIXED),
        LSSVC(**FIXED, calibration="isotonic"),
        Recalibrated(KernelLogisticRegression(**FIXED), "vector"),
    ],
    ids=["lspc", "isotonic", "recalibrated"],
)
def test_one_task(model, coverage):
    X, y = blobs(120, intercept_ratio=2.0)
    model.fit(X, np.array(["u", "v", "w"])[y])
    rows = np.vstack([somewhere(X), X])
    out = run(to_onnx(model, dtype="float64", coverage=coverage), rows)
    wanted = model.predict_set(rows, coverage)
    assert out["set"].dtype == bool
    assert np.array_equal(out["set"], wanted)
    assert list(out) == ["label", "probabilities", "set"]
    assert wanted.sum(axis=1).min() >= 1


def test_too_few_rows_and_rows_that_python_refuses():
    X, y = blobs(30)
    proto = to_onnx(LSPC(**FIXED).fit(X, y), coverage=0.99)
    assert run(proto, X)["set"].all()
    few = run(to_onnx(LSPC(**FIXED).fit(X, y), coverage=0.5), np.full((1, 2), np.inf))
    assert few["set"].all()  # nothing is known, so nothing is excluded


@pytest.mark.parametrize("Estimator", [MultiTaskLSPC, MultiTaskLSSVC])
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("ids", [("a", "b", "c", "d"), tuple(f"t{k}" for k in range(12))])
def test_tasks(Estimator, again, ids):
    X, y, task = task_data(ids, n=240)
    model = Estimator(**FIXED, sharing=0.4)
    model = (Recalibrated(model, "temperature") if again else model).fit(X, y, tasks=task)
    some = some_tasks(task, "elsewhere")
    for coverage in (0.5, 0.8):
        out = run(to_onnx(model, dtype="float64", coverage=coverage), X, some)
        assert np.array_equal(out["set"], model.predict_set(X, coverage, tasks=some))


def test_labels():
    X, Y = label_data(n=80)
    binary = MultiLabelLSPC(**FIXED, sharing=0.3).fit(X, Y)
    several = MultiLabelLSPC(**FIXED, sharing=0.3).fit(X, np.column_stack([Y[:, 0], Y[:, 1] + Y[:, 2], Y[:, 3]]))
    flat = MultiLabelLSPC(**FIXED, sharing=0.0).fit(X, Y[:, 0] + Y[:, 1])
    for model in (binary, Recalibrated(binary, "beta").fit(X, Y), several, flat):
        out, wanted = run(to_onnx(model, dtype="float64", coverage=0.8), X), model.predict_set(X, 0.8)
        found = out["set"] if "set" in out else [out[f"set_{t}"] for t in range(3)]
        for one, other in zip(found, wanted, strict=True):
            assert np.array_equal(one, other)


def test_abstaining_too():
    X, y = blobs(120, intercept_ratio=2.0)
    model = Abstaining(LSPC(**FIXED), min_confidence=0.8).fit(X, y)
    out = run(to_onnx(model, dtype="float64", coverage=0.9), X)
    assert list(out) == ["label", "probabilities", "accepted", "set"]
    assert np.array_equal(out["set"], model.estimator_.predict_set(X, 0.9))


def test_what_has_no_sets_is_refused():
    X, y = blobs(60)
    model = LSPC(**FIXED).fit(X, y)
    with pytest.raises(ValueError, match="have interval="):
        to_onnx(LSSVR(**FIXED).fit(X, X[:, 0]), coverage=0.9)
    with pytest.raises(ValueError, match="cannot be combined"):
        to_onnx(model, coverage=0.9, class_prior="uniform")
    with pytest.raises(ValueError, match="above 0 and below 1"):
        to_onnx(model, coverage=90)
    with pytest.raises(ValueError, match="holds nothing out"):
        to_onnx(LSPC(sigma=1.0, alpha=0.1, cv=None, calibration=None).fit(X, y), coverage=0.9)
