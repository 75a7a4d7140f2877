"""Adaptive widths: the scale of residuals against its definition, what it promises, and bounds of the target."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from conftest import PLAIN_SUM
from sklearn.base import clone

from leastwise import LSSVR, MultiTaskLSSVR
from leastwise.calibration.spread import PRIOR, ResidualRows, _heldout_averages, _with_sums, fit_spread
from leastwise.calibration.spread import Spread as Scale
from leastwise.persistence import FileError
from leastwise.persistence.model_files import load, save
from leastwise.problem.kernels import RBF


def noisy(rng, n):
    """Errors that grow with the first column: from 0.1 to 1."""
    X = rng.uniform(-1, 1, size=(n, 2))
    sd = 0.1 + 0.45 * (1 + X[:, 0])
    return X, np.sin(2 * X[:, 1]) + sd * rng.normal(size=n), sd


def uneven_tasks(rng, n_tasks, rows):
    """Tasks whose errors are 0.1, 0.2, 0.4 or 0.8 of one."""
    task = np.repeat(np.arange(n_tasks), rows)
    X = rng.normal(size=(len(task), 2))
    return X, X[:, 0] + np.array([0.1, 0.2, 0.4, 0.8])[task % 4] * rng.normal(size=len(task)), task


@pytest.fixture(scope="module")
def adaptive():
    X, y, _ = noisy(np.random.default_rng(0), 200)
    return LSSVR(**PLAIN_SUM, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def by_task():
    X, y, task = uneven_tasks(np.random.default_rng(0), 12, 15)
    return MultiTaskLSSVR(**PLAIN_SUM, random_state=0).fit(X, y, tasks=task)


# ---------------------------------------------------------------------- the definition


@pytest.mark.parametrize("kind", ["rows", "groups"])
def test_held_out_scales_are_those_without_the_row_or_group(kind):
    rng = np.random.default_rng(1)
    n = 40
    X, size, w = rng.normal(size=(n, 2)), rng.exponential(size=(n, 2)), rng.uniform(0.5, 2, n)
    group = np.arange(n) if kind == "rows" else rng.integers(0, 9, n)
    knots = X[:7]
    K = RBF()(X, knots, 0.8)
    cell = ((X[:, None] - knots) ** 2).sum(axis=2).argmin(axis=1)
    rows = ResidualRows(size, size, X, w, None if kind == "rows" else group)
    expected = np.empty_like(size)
    mean = np.average(size, axis=0, weights=w)
    for i in range(n):
        out = group != group[i]
        all_rest = (PRIOR * mean + w[out] @ size[out]) / (PRIOR + w[out].sum())
        k = K[i, cell[out]] * w[out]
        expected[i] = (PRIOR * all_rest + k @ size[out]) / (PRIOR + k.sum())
    np.testing.assert_allclose(_heldout_averages(K, cell, rows), expected, rtol=1e-10)


def test_the_scale_of_a_new_row_is_a_shrunk_local_average():
    rng = np.random.default_rng(2)
    X, size = rng.normal(size=(30, 2)), rng.exponential(size=(30, 1))
    scale = Scale(size.mean(axis=0), "inputs", RBF(), 0.7, X[:5])
    made = _with_sums(scale, ResidualRows(size, size, X, np.ones(30)))
    cell = ((X[:, None] - X[:5]) ** 2).sum(axis=2).argmin(axis=1)
    new = rng.normal(size=(6, 2))
    K = RBF()(new, X[:5], 0.7)[:, cell]
    expected = (PRIOR * size.mean() + K @ size[:, 0]) / (PRIOR + K.sum(axis=1))
    np.testing.assert_allclose(made(new, np.zeros((6, 1)))[:, 0], expected, rtol=1e-10)


def test_equal_errors_need_no_scale():
    """Of ten draws with errors of one size, at most two have a scale."""
    used = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(150, 2))
        size = np.abs(rng.normal(size=(150, 1)))
        used += fit_spread(ResidualRows(size, X[:, :1], X, np.ones(150)), RBF(), X) is not None
    assert used <= 2
    few = ResidualRows(size[:10], X[:10, :1], X[:10], np.ones(10))
    assert fit_spread(few, RBF(), X[:10]) is None


# ------------------------------------------------------------------- what they promise


def test_coverage_is_even_where_errors_are_not(adaptive):
    """Adaptive widths cover more of the hard rows and fewer of the easy ones, with narrower intervals.

    Over 20 draws of the training rows, constant widths cover 0.77 of the hard rows and 0.996 of the easy ones, and
    adaptive ones 0.84 and 0.96.
    """
    X, y, sd = noisy(np.random.default_rng(5), 4000)
    hard, easy = sd > 0.7, sd < 0.4
    shares, widths = {}, {}
    for even in (False, True):
        low, high = adaptive.predict_interval(X, adaptive=even).T
        inside = (low <= y) & (y <= high)
        shares[even] = inside[hard].mean(), inside[easy].mean(), inside.mean()
        widths[even] = (high - low).mean()
    assert 0.87 < shares[True][2] < 0.95
    assert shares[True][0] > shares[False][0] + 0.04
    assert shares[True][1] < shares[False][1]
    assert widths[True] < widths[False]


def test_coverage_is_even_over_tasks(by_task):
    X, y, task = uneven_tasks(np.random.default_rng(7), 12, 300)
    worst = {}
    for even in (False, True):
        low, high = by_task.predict_interval(X, tasks=task, adaptive=even).T
        inside = (low <= y) & (y <= high)
        worst[even] = min(inside[task == t].mean() for t in range(12))
        assert 0.86 < inside.mean() < 0.95
    assert worst[True] > worst[False] + 0.1
    widths = np.diff(by_task.predict_interval(X, tasks=task), axis=1)[:, 0]
    assert widths[task % 4 == 3].mean() > 3 * widths[task % 4 == 0].mean()


# ---------------------------------------------------------------------- files and ONNX


def test_files_have_the_scale(adaptive, by_task, tmp_path):
    X = np.random.default_rng(3).normal(size=(20, 2))
    for model, more in ((adaptive, {}), (by_task, {"tasks": [*range(12), *["new"] * 8]})):
        assert model.residuals_.spread is not None
        save(model, tmp_path / "model.lw")
        back = load(tmp_path / "model.lw")
        for method in ("jackknife", "jackknife+"):
            ends = model.predict_interval(X, 0.8, method, **more)
            np.testing.assert_array_equal(back.predict_interval(X, 0.8, method, **more), ends)


def test_onnx_has_the_scale(adaptive, by_task):
    onnx_cases = pytest.importorskip("onnx_cases")
    from leastwise.onnx import to_onnx

    X = np.random.default_rng(3).normal(size=(20, 2))
    out = onnx_cases.run(to_onnx(adaptive, interval=0.8, dtype="float64"), X)
    ends = adaptive.predict_interval(X, 0.8, "jackknife")
    assert np.ptp(np.diff(ends, axis=1)) > 0
    np.testing.assert_allclose(np.column_stack([out["lower"], out["upper"]]), ends, atol=1e-6)
    task = np.arange(20) % 14  # the last two are unseen
    out = onnx_cases.run(to_onnx(by_task, interval=0.8, dtype="float64"), X, task)
    ends = by_task.predict_interval(X, 0.8, "jackknife", tasks=task)
    np.testing.assert_allclose(np.column_stack([out["lower"], out["upper"]]), ends, atol=1e-6)


@pytest.mark.parametrize("name", ["adaptive", "by_task"])
def test_files_with_a_broken_scale_are_refused(name, request, tmp_path):
    model = copy.deepcopy(request.getfixturevalue(name))
    good = model.residuals_.spread
    broken = [{"factor": np.ones((50, 1))}] if good.factor is not None else []
    if good.knots is not None:
        wide = np.column_stack([good.knots, good.knots])
        broken += [{"knots": wide}, {"knots": None}, {"kernel": None}, {"by": "mean"}]
    assert broken
    for change in broken:
        model.residuals_.spread = replace(good, **change)
        with pytest.raises(FileError, match=r"knots|n_inputs|attributes|n_tasks"):
            save(model, tmp_path / "model.lw")


def test_tasks_without_held_out_rows_have_a_factor_of_one():
    """The Krylov solver holds out a tenth of the rows, and not the only row of the last task."""
    X, y, task = uneven_tasks(np.random.default_rng(0), 12, 60)
    X, y, task = np.vstack([X, X[:1]]), np.append(y, y[0]), np.append(task, 12)
    model = MultiTaskLSSVR(sigma=2.0, sharing=0.9, alpha=0.01, solver="krylov", random_state=0).fit(X, y, tasks=task)
    assert np.isnan(model.heldout_prediction_[-1])
    assert model.residuals_.spread.factor.shape == (13, 1)
    assert model.residuals_.spread.factor[12] == 1
    assert np.isfinite(model.predict_interval(X[:2], tasks=[12, 0])).all()


# ------------------------------------------------------------------------------ bounds


def bounded(rng, n):
    X = rng.normal(size=(n, 2))
    return X, np.clip(5 + 4 * X[:, 0] + rng.normal(size=n), 0, 10)


def test_predictions_and_intervals_stay_within_bounds(tmp_path):
    X, y = bounded(np.random.default_rng(0), 80)
    far = np.array([[5.0, 0], [-5, 0], [0, 0]])
    free = LSSVR(**PLAIN_SUM, random_state=0).fit(X, y)
    kept = clone(free).set_params(bounds=(0, 10)).fit(X, y)
    assert (free.predict_interval(X) > 10).any()
    ends = kept.predict_interval(np.vstack([X, far]))
    assert ends.min() >= 0
    assert ends.max() <= 10
    np.testing.assert_allclose(kept.predict(far), np.clip(free.predict(far), 0, 10))
    np.testing.assert_allclose(ends, np.clip(free.predict_interval(np.vstack([X, far])), 0, 10))
    assert kept.heldout_prediction_.max() <= 10
    save(kept, tmp_path / "model.lw")
    np.testing.assert_array_equal(load(tmp_path / "model.lw").predict_interval(far), kept.predict_interval(far))
    half = clone(free).set_params(bounds=(0, None)).fit(X, y)
    assert half.predict_interval(X).min() >= 0
    assert half.predict_interval(X).max() > 10


def test_onnx_stays_within_bounds():
    onnx_cases = pytest.importorskip("onnx_cases")
    from leastwise.onnx import to_onnx

    X, y = bounded(np.random.default_rng(0), 60)
    for bounds in ((0, 10), (None, 10)):
        model = LSSVR(sigma=1.0, alpha=0.02, bounds=bounds).fit(X, y)
        new = np.vstack([X, 4 * X])
        out = onnx_cases.run(to_onnx(model, interval=0.8, dtype="float64"), new)
        np.testing.assert_allclose(np.ravel(out["variable"]), model.predict(new), atol=1e-6)
        ends = model.predict_interval(new, 0.8, "jackknife")
        np.testing.assert_allclose(np.column_stack([out["lower"], out["upper"]]), ends, atol=1e-6)


def test_bounds_are_checked():
    X, y = bounded(np.random.default_rng(0), 30)
    with pytest.raises(ValueError, match=r"y has values from .* bounds=\(0, 5\).*give bounds that contain them"):
        LSSVR(bounds=(0, 5)).fit(X, y)
    with pytest.raises(ValueError, match=r"bounds=\(0, 5\)"):
        LSSVR(bounds=(0, 5), n_centers=5).fit_stream([(X, y)])
    for bad in ((5, 0), 3, (0, 1, 2), ("a", "b"), (1, 1)):
        with pytest.raises(ValueError, match="must be two increasing numbers"):
            MultiTaskLSSVR(bounds=bad).fit(X, y, tasks=np.arange(30) % 3)
