"""Models, rows and runs of ONNX graphs that several tests use."""

import numpy as np
import onnxruntime
from conftest import blobs

from leastwise.onnx import feeds, to_onnx

#: Largest differences of probabilities: numbers in and out in single precision, and in double.
CLOSE = {"float32": 2e-7, "float64": 1e-9}


FIXED = {"sigma": 1.5, "alpha": 0.01, "cv": 5, "random_state": 0}


def run(proto, X, tasks=None):
    """All outputs, by name."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds(proto, X, tasks)), strict=True))


def somewhere(X, seed=0):
    """Rows among those of X, equal to them, between them and far from them, in single precision."""
    rng = np.random.default_rng(seed)
    near = X[:20] + rng.normal(size=X[:20].shape)
    return np.vstack([X[:20], near, 30 * X[:3], 1e4 * near[:3]]).astype(np.float32).astype(float)


def agrees(model, X, tasks=None, dtype="float32", **options):
    """Probabilities are close, labels equal where they are not a matter of rounding; the outputs."""
    out = run(to_onnx(model, dtype=dtype, **options), X, tasks)
    more = {} if tasks is None else {"tasks": tasks}
    P = np.asarray(model.predict_proba(X, **more))
    assert out["probabilities"].dtype == dtype
    np.testing.assert_allclose(out["probabilities"], P, rtol=0, atol=CLOSE[dtype])
    clear = np.diff(np.sort(P, axis=1)[:, -2:], axis=1)[:, 0] > 1e-5
    label = model.predict(X, **more)
    assert out["label"].shape == label.shape
    assert np.array_equal(out["label"][clear], label[clear])
    return out


def task_data(ids=("a", "b", "c", "d"), n=80, c=3, seed=0):
    X, y = blobs(n, c=c, seed=seed)
    task = np.arange(n) % len(ids)
    X = X + 0.3 * task[:, None]
    return X, y, np.array(ids)[task]


def label_data(n=60, T=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X @ rng.normal(size=(3, T)) + 0.5 * rng.normal(size=(n, T)) > 0).astype(int)


def some_tasks(task, new):
    return np.where(np.arange(len(task)) % 4 == 3, new, task)
