"""``n_centers="auto"``: fewer centres than rows where the effective dimension is small."""

import numpy as np
import pytest

from leastwise import LSPC, LSSVR, MultiLabelLSPC, MultiTaskLSPC
from leastwise.fitting import input_search
from leastwise.fitting.direct import make_problem
from leastwise.fitting.fit import prepare
from leastwise.fitting.input_search import effective_dimension
from leastwise.solvers.evaluator import Candidate

N = 700


@pytest.fixture
def small(monkeypatch):
    """The rule for tables of a few hundred rows."""
    for name, value in {"FEW_ROWS": 400, "PILOT_ROWS": 300, "LEAST_CENTERS": 100}.items():
        monkeypatch.setattr(input_search, name, value)


def smooth(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] - 0.5 * X[:, 1] + 0.5 * rng.normal(size=n)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_the_effective_dimension_is_that_of_all_rows(share, monkeypatch):
    monkeypatch.setattr(input_search, "PILOT_ROWS", int(share * N))
    X, v = smooth()
    model = LSPC(kernel="rbf", scale=None)
    spec = model._spec()
    problem = make_problem(spec, *prepare(model, spec, X, (v > 0).astype(int)))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / (2 * 1.5**2))
    for alpha in (1e-2, 1e-4):
        point = Candidate(1.5, alpha, 0.0, np.empty(0), None)
        long_way = np.trace(np.linalg.solve(K + N * alpha * np.eye(N), K))
        assert effective_dimension(problem, point) == pytest.approx(long_way, rel=1e-6 if share == 1 else 0.1)


def test_few_centers_for_a_smooth_function(small):
    X, v = smooth()
    y, new = (v > 0).astype(int), smooth(300, 1)[0]
    auto, every = (LSPC(kernel="rbf", extrapolate=True, n_centers=count).fit(X, y) for count in ("auto", None))
    assert len(auto.centers_) < 300
    assert len(every.centers_) == N
    np.testing.assert_allclose(auto.predict_proba(new), every.predict_proba(new), atol=0.01)
    assert np.isfinite(auto.heldout_proba_).all()


def test_every_row_for_a_local_function_few_rows_and_given_parameters(small):
    X, v = smooth()
    y = ((np.floor(6 * X[:, 0]) + np.floor(6 * X[:, 1])) % 2).astype(int)
    assert len(LSPC(kernel="laplace").fit(X, y).centers_) == N
    y = (v > 0).astype(int)
    assert len(LSPC(kernel="rbf").fit(X[:400], y[:400]).centers_) == 400
    assert len(LSPC(sigma=1.0, alpha=0.1).fit(X, y).centers_) == N
    assert len(LSPC(kernel="rbf", solver="cholesky").fit(X, y).centers_) == N


@pytest.mark.parametrize("make", [LSSVR, MultiTaskLSPC, MultiLabelLSPC])
def test_the_rule_is_the_same_for_other_targets(make, small):
    X, v = smooth()
    Y = np.column_stack([v > 0, X[:, 0] > 0]).astype(int)
    y = {LSSVR: v, MultiTaskLSPC: Y[:, 0], MultiLabelLSPC: Y}[make]
    more = {"tasks": np.arange(N) % 3} if make is MultiTaskLSPC else {}
    model = make(kernel="rbf", metric=None).fit(X, y, **more)
    assert len(model.centers_) < N
    every = make(kernel="rbf", metric=None, n_centers=None).fit(X, y, **more)
    name, more = "predict" if make is LSSVR else "predict_proba", {k: v[:100] for k, v in more.items()}
    ours, theirs = (getattr(m, name)(X[:100], **more) for m in (model, every))
    np.testing.assert_allclose(ours, theirs, atol=0.05)


def test_other_names_are_refused():
    with pytest.raises(ValueError, match="n_centers='many' is not known"):
        LSPC(n_centers="many").fit(np.eye(4), [0, 1, 0, 1])
