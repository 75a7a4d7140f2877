"""LSPC by conjugate gradients: against the direct solve, in bounded memory, and honest about how far it came."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from conftest import blobs
from sklearn.exceptions import ConvergenceWarning

from leastwise import LSPC, LSSVC
from leastwise.fitting import iterative as iterating
from leastwise.fitting.fit import prepare
from leastwise.fitting.iterative import smoothest
from leastwise.linalg.krylov import block_cg
from leastwise.model_selection.grids import Grid
from leastwise.problem.kernels import RBF, Laplace, Linear, Poly, resolve_kernel
from leastwise.solvers.choose import draft
from leastwise.solvers.costs import Facts
from leastwise.solvers.krylov import KernelTimes, KrylovProblem, half_fits, in_single
from leastwise.solvers.work import preconditioner_rank

N = 700


def classes(n=N, d=4, seed=0):
    """Five classes of many shapes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.array(list("abcde"))[np.cos(1.5 * X @ rng.normal(size=(d, 5))).argmax(axis=1)]


X, Y = classes()
NEW = np.random.default_rng(9).normal(size=(50, 4))
WEIGHTS = np.random.default_rng(1).uniform(0.1, 3, N)


def fixed(solver="krylov", **options):
    given = {"sigma": 1.5, "alpha": 1e-4, "cv": None, "calibration": None, "tol": 1e-9, "random_state": 0} | options
    return LSPC(solver=solver, **given)


@pytest.fixture
def narrow(monkeypatch):
    """So little room for kernel values that iterations are in single precision."""
    monkeypatch.setattr("leastwise.solvers.krylov.kernel_budget", lambda: 2**19)


# ------------------------------------------------------------------------- the direct solve


@pytest.mark.parametrize("bias", ["shared", None])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weights"])
@pytest.mark.parametrize("kernel", ["rbf", "laplace", "rbf+linear", "poly"])
def test_equals_the_direct_solve(bias, weights, kernel):
    a, b = (fixed(s, bias=bias, kernel=kernel).fit(X, Y, sample_weight=weights) for s in ("auto", "krylov"))
    np.testing.assert_allclose(b.scores(NEW), a.scores(NEW), atol=1e-6)
    np.testing.assert_allclose(b.predict_proba(NEW), a.predict_proba(NEW), atol=1e-5)
    assert b.residual_ <= 1e-9
    assert not hasattr(a, "residual_")


@pytest.mark.parametrize("shift", [0.0, 1e6], ids=["near", "far from the origin"])
@pytest.mark.parametrize("kernel", ["rbf", "laplace", "rbf+linear"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weights"])
def test_single_precision_on_the_way_and_double_in_the_end(narrow, kernel, shift, weights):
    """Kernel values in single precision alone would leave 1e-4 or so here."""
    given = {"kernel": kernel, "bias": "shared", "tol": 1e-8}
    a, b = (fixed(s, **given).fit(X + shift, Y, sample_weight=weights) for s in ("auto", "krylov"))
    assert b.residual_ <= 1e-8
    np.testing.assert_allclose(b.scores(NEW + shift), a.scores(NEW + shift), atol=2e-6)


def test_default_tolerance_is_that_of_the_scores(narrow):
    """In the mean over training rows scores are as near as the residual, relative to the targets' size."""
    a, b = (fixed(s, tol=1e-3).fit(X, Y) for s in ("auto", "krylov"))
    off = np.linalg.norm(a.scores(X) - b.scores(X), axis=0) / np.sqrt(np.unique(Y, return_counts=True)[1])
    assert (off <= 1e-3).all()


def test_float32_stays(narrow):
    model = LSPC(1.5, 1e-3, solver="krylov", random_state=0).fit(X.astype(np.float32), Y)
    assert model.coef_.dtype == np.float64
    assert model.heldout_scores_.dtype == np.float32
    assert model.predict_proba(NEW.astype(np.float32)).dtype == np.float32
    double = LSPC(1.5, 1e-3, solver="krylov", random_state=0).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(NEW.astype(np.float32)), double.predict_proba(NEW), atol=1e-2)


# ------------------------------------------------------------------------- held-out rows


def test_a_tenth_is_held_out_and_calibrates():
    model = LSPC(1.5, 1e-3, solver="krylov", tol=1e-9, random_state=0).fit(X, Y)
    held = np.flatnonzero(~np.isnan(model.heldout_scores_[:, 0]))
    assert 60 <= len(held) <= 80
    rest = np.setdiff1d(np.arange(N), held)
    refit = fixed("auto", alpha=1e-3).fit(X[rest], Y[rest])
    np.testing.assert_allclose(model.heldout_scores_[held], refit.scores(X[held]), atol=1e-6)
    np.testing.assert_allclose(model.heldout_proba_[held].sum(axis=1), 1)
    codes = np.searchsorted(model.classes_, Y)
    said = -np.mean(np.log(model.heldout_proba_[held, codes[held]]))
    assert said < 0.9 * np.log(5)
    with pytest.raises(ValueError, match="krylov"):
        model.influence(NEW)


def test_alpha_is_settled_on_more_rows(monkeypatch):
    """The chosen alpha is the best of those that were looked at on the larger part, or alike and larger."""
    monkeypatch.setattr(iterating, "SETTLE_ROWS", 500)
    rows, y = classes(1200, seed=3)
    model = LSPC(1.5, solver="krylov", search_rows=150, random_state=0).fit(rows, y)
    table = model.cv_results_
    late = table["n_rows"] > 200
    assert late.sum() >= 2
    assert 450 <= table["n_rows"].max() <= 510
    best = table["mean_test_score"][late].max()
    chosen = table["mean_test_score"][late][np.isclose(table["param_alpha"][late], model.alpha_)]
    assert chosen.max() >= best - 0.01 * abs(best)
    given = LSPC(1.5, [1e-3, 1e-2], solver="krylov", search_rows=150, random_state=0).fit(rows, y)
    assert given.alpha_ in (1e-3, 1e-2)
    assert given.cv_results_["n_rows"].max() <= 160


@pytest.mark.parametrize(
    ("best", "want"), [(1.0, 1.0), (100.0, 100.0), (0.01, 0.01)], ids=["here", "further up", "further down"]
)
def test_smoothest(best, want):
    seen = []

    def score(alpha):
        seen.append(alpha)
        return -1 - np.log10(alpha / best) ** 2

    assert np.isclose(smoothest(Grid((0.1, 1.0), 10.0), 1.0, score), want)
    assert len(seen) <= 5
    assert np.isclose(smoothest(Grid((0.1, 1.0), 10.0), 1.0, lambda alpha: -1.0), 1e8)  # on a plateau, the cheapest


def test_scores_that_fall_slowly_do_not_take_alpha_anywhere():
    """Each is alike to the best one, and so are a thousand decades of them."""
    found = smoothest(Grid((0.1, 1.0), 10.0), 1.0, lambda alpha: -1 - 1e-5 * np.log10(alpha / 10) ** 2)
    assert np.isclose(found, 1e3)  # two steps beyond the best, which is at 10


def test_reproducible_and_verbose(capsys):
    a, b = (LSPC(1.5, solver="krylov", search_rows=150, random_state=3, verbose=1).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(a.coef_, b.coef_)
    np.testing.assert_array_equal(a.heldout_proba_, b.heldout_proba_)
    said = capsys.readouterr().out
    for line in ("[LSPC] alpha on 630 rows", "held out:", "[LSPC] krylov 0:", "[LSPC] all rows:"):
        assert line in said


# ------------------------------------------------------------------------- when


def test_auto_takes_it_beyond_memory_and_rows(monkeypatch):
    for n, solver in ((2000, "cholesky"), (20_000, "krylov")):
        assert draft(Facts("single", "auto", n, 5, 2, n, iterates=True), 2**40).solver == solver
    monkeypatch.setenv("LEASTWISE_MEMORY", "8MB")
    assert hasattr(LSPC(1.5, 1e-3, search_rows=100, random_state=0).fit(X, Y), "residual_")
    for options in ({"norm": "coefficients"}, {"basis": "class"}):
        with pytest.raises(MemoryError, match="n_centers"):
            LSPC(1.5, 1e-3, **options).fit(X, Y)
    monkeypatch.delenv("LEASTWISE_MEMORY")
    monkeypatch.setattr("leastwise.solvers.choose.COMPLETE", 1e-9)
    monkeypatch.setattr("leastwise.solvers.choose.PATIENCE", 1e-9)
    assert hasattr(LSPC(1.5, 1e-3, search_rows=100, random_state=0).fit(X, Y), "residual_")
    assert not hasattr(LSPC(1.5, 1e-3, n_centers=20, random_state=0).fit(X, Y), "residual_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "coefficients"}, "norm='function'"),
        ({"basis": "class"}, "basis='full'"),
        ({"kernel": "precomputed"}, "rows to compute kernels from"),
        ({"n_centers": 5}, "all rows as centres"),
        ({"centers": X[:5]}, "all rows as centres"),
        ({"solver": "cg"}, r"\['auto', 'cholesky', 'moments', 'krylov', 'sgd'\]"),
    ],
    ids=str,
)
def test_what_it_cannot_do_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        LSPC(**{"solver": "krylov"} | options).fit(X, Y)


def test_too_few_passes_are_admitted(monkeypatch):
    monkeypatch.setattr("leastwise.solvers.work.RANK", 5)
    with pytest.warns(ConvergenceWarning, match=r"after 2 iterations .*raise max_passes, tol or alpha") as caught:
        model = fixed(alpha=1e-8, max_passes=2).fit(X, Y)
    assert caught[0].filename == __file__
    assert model.residual_ > 1e-9


# ------------------------------------------------------------------------- memory


def test_never_more_than_the_budget(monkeypatch):
    """3,000 rows: the kernel matrix would take 72 MB, a half of it in single precision 18."""
    monkeypatch.setattr("leastwise.solvers.krylov.kernel_budget", lambda: 2**21)
    monkeypatch.setattr("leastwise.solvers.krylov.preconditioner_rank", lambda n, itemsize: 100)
    monkeypatch.setattr("leastwise.solvers.krylov.SMALL", 2**21)
    rows, y = classes(3000, seed=5)
    model = fixed(alpha=1e-3, tol=1e-3, search_rows=50)
    problem, peaks = KrylovProblem.solve, []

    def watched(*args):
        found = problem(*args)
        peaks.append(tracemalloc.get_traced_memory()[1])
        return found

    monkeypatch.setattr(KrylovProblem, "solve", watched)
    tracemalloc.start()
    model.fit(rows, y)
    tracemalloc.stop()
    vectors, columns = 12 * 3000 * 5 * 8, 3 * 3000 * 100 * 4
    assert len(peaks) == 1
    assert peaks[0] < 2 * 2**21 + vectors + columns < 0.15 * 3000**2 * 8


def test_what_fits_is_kept_and_no_more(rng):
    rows, V = rng.normal(size=(1500, 3)).astype(np.float32), rng.normal(size=(1500, 2))
    everything = KernelTimes(RBF(), 1.0, rows, budget=2**26)
    want = everything(V)
    assert half_fits(1500, 4, 2**26)
    assert not half_fits(1500, 4, 1500**2 * 2)
    for share in (0.2, 0.6):
        budget = int(share * 1500**2 * 2) + 2**20
        part = KernelTimes(RBF(), 1.0, rows, budget=budget)
        for _ in range(2):
            np.testing.assert_allclose(part(V), want, atol=1e-9)
        kept = sum(K.nbytes for K in part._cached.values())
        assert 0.5 * share * 1500**2 * 2 < kept <= budget
        assert len(part._cached) < len(everything._cached)


def test_the_preconditioner_grows_with_the_rows_within_memory(monkeypatch):
    monkeypatch.setenv("LEASTWISE_MEMORY", "3GB")
    ranks = [preconditioner_rank(n, 4) for n in (1, 100, 2500, 10_000, 40_000)]
    assert ranks == [1, 100, 500, 1000, 2000]
    assert preconditioner_rank(10**6, 4) * 10**6 * 4 <= 3 * 2**30 / 8


# ------------------------------------------------------------------------- precision


@pytest.mark.parametrize("kernel", ["rbf", "laplace", "rbf+linear", "laplace+rbf"])
@pytest.mark.parametrize(("shift", "unit"), [(0, 1), (1e7, 1), (-3, 1e-20), (5, 1e20)])
def test_in_single_is_the_same_kernel(kernel, shift, unit, rng):
    rows = (shift + rng.normal(size=(60, 5))) * unit
    full = resolve_kernel(kernel).fitted(rows, np.ones(60))
    single = in_single(full, 1.7 * unit, rows)
    assert single is not None
    other, sigma, few = single
    K = other(few, few, sigma)
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, full(rows, rows, 1.7 * unit), atol=3e-6)


def test_in_single_knows_what_it_cannot_do(rng):
    rows = rng.normal(size=(10, 2))
    assert in_single(Linear(), 1.0, rows) is None
    assert in_single(Poly(), 1.0, rows) is None
    assert in_single(RBF(), 1.0, rows.astype(np.float32)) is None
    assert in_single(Laplace(), 1e-30, rows) is None
    assert in_single(resolve_kernel(lambda A, B: A @ B.T), 1.0, rows) is None


def test_rough_products_and_exact_residuals(rng):
    """Rough products alone end at their own solution; with exact residuals at that of the exact matrix."""
    H = np.diag(np.geomspace(1e-2, 1, 60)) + 1e-3
    rough = H + 2e-5 * np.diag(rng.normal(size=60))
    B = rng.normal(size=(60, 3))
    found = block_cg(lambda V: rough @ V, B, tol=1e-10, exact=lambda V: H @ V)
    assert found.converged
    assert np.linalg.norm(H @ found.X - B) <= 1e-10 * 2 * np.linalg.norm(B)
    alone = block_cg(lambda V: rough @ V, B, tol=1e-10)
    assert np.linalg.norm(H @ alone.X - B) > 1e-6 * np.linalg.norm(B)
    useless = block_cg(lambda V: -V, B, tol=1e-10, exact=lambda V: H @ V)  # the exact product takes over
    assert useless.converged


def test_exact_products_are_left_out_where_rough_ones_are_accurate_enough(rng):
    H, B = np.diag(np.geomspace(1e-2, 1, 60)), rng.normal(size=(60, 3))
    rough, calls = H + 1e-8 * np.diag(rng.normal(size=60)), []

    def exact(V):
        calls.append(V)
        return H @ V

    found = block_cg(lambda V: rough @ V, B, tol=1e-3, exact=exact, accurate=lambda X: True)
    assert found.converged
    assert not calls
    found = block_cg(lambda V: rough @ V, B, tol=1e-3, exact=exact, accurate=lambda X: False)
    assert found.converged
    assert len(calls) == 1


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weights"])
def test_the_effect_of_single_precision_is_estimated_from_some_rows(narrow, weights, monkeypatch):
    monkeypatch.setattr("leastwise.solvers.krylov.SAMPLED", 200)
    model = fixed()
    data, settings = prepare(model, model._spec(), X, Y, weights)
    problem = KrylovProblem(data.rows, settings, 1.5, None, iterating.SolverOptions(1e-9, 200))
    A = problem.solve(1e-3).summary.X
    change = np.linalg.norm(problem.rough(A) - problem.H(A), axis=0)
    assert np.all(change > 0)
    right = np.full(A.shape, 1.0)
    share = 10 * change / np.linalg.norm(right, axis=0)
    assert not problem._accurate(0.7 * share.max(), right, A)
    assert problem._accurate(1.4 * share.max(), right, A)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weights"])
@pytest.mark.parametrize("budget", [2**16, 2**21, 2**26])
def test_the_first_rows_have_the_same_problem(weights, budget, monkeypatch):
    """It is solved as if it were alone, and all rows after it as without it, from the same kernel values."""
    monkeypatch.setattr("leastwise.solvers.krylov.kernel_budget", lambda: budget)
    model, first = fixed(), 600
    data, settings = prepare(model, model._spec(), X, Y, weights)
    how = settings, 1.5, None, iterating.SolverOptions(1e-9, 300)
    problem = KrylovProblem(data.rows, *how, first)
    part = problem.of_first_rows().solve(1e-3)
    stored = (problem.rough or problem.H)._cached
    alone = KrylovProblem(data.rows.take(np.arange(first), precomputed=False), *how).solve(1e-3)
    np.testing.assert_allclose(part.A, alone.A, atol=1e-6 * np.abs(alone.A).max())
    np.testing.assert_allclose(part.intercept, alone.intercept, atol=1e-7)
    before = {number: id(values) for number, values in stored.items()}
    whole, again = problem.solve(1e-3), KrylovProblem(data.rows, *how).solve(1e-3)
    np.testing.assert_allclose(whole.A, again.A, atol=1e-6 * np.abs(again.A).max())
    assert before.items() <= {number: id(values) for number, values in stored.items()}.items()
    assert bool(before) == (budget > 2**16)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("tol", "coarse"), [(1e-3, True), (1e-9, False)])
def test_a_large_tolerance_is_reached_in_single_precision(dtype, tol, coarse):
    """Whatever the memory; rows in single precision share the kernel values with the exact products."""
    model = fixed()
    data, settings = prepare(model, model._spec(), X, Y)
    rows = replace(data.rows, X=X.astype(dtype))  # a fit converts so few rows to double precision
    problem = KrylovProblem(rows, settings, 1.5, None, iterating.SolverOptions(tol, 200))
    assert (problem.rough is not None) == coarse
    found = problem.solve(1e-3)
    K = RBF()(X, X, 1.5) + 1e-3 * len(X) * np.eye(len(X))
    Z = data.rows.targets(5) - found.intercept
    left = np.linalg.norm(Z - K @ found.A, axis=0) / np.linalg.norm(Z, axis=0)
    assert np.all(left < max(3 * tol, 1e-5 if dtype == np.float32 else 0))
    if coarse:
        V = np.ones((len(X), 2))
        change = np.abs(problem.rough.times(V) - problem.H.times(V)).max()
        assert 0 < change < 1e-5 * np.abs(problem.H.times(V)).max()
        assert (problem.rough._cached is problem.H._cached) == (dtype == np.float32)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weights"])
@pytest.mark.parametrize("alpha", [1e-3, 1e-9])
def test_the_preconditioner_of_the_first_rows_is_a_part_of_that_of_all(weights, alpha):
    model, first = fixed(), 600
    data, settings = prepare(model, model._spec(), X, Y, weights)
    problem = KrylovProblem(data.rows, settings, 1.5, None, iterating.SolverOptions(1e-3, 200), first)
    part, V = problem.of_first_rows(), np.random.default_rng(0).normal(size=(first, 2))
    L = problem.L[:first].astype(float) * (part.root / problem.root[:first])[:, None]
    want = np.linalg.solve(L @ L.T + alpha * np.eye(first), V)
    found = part._preconditioner(alpha / part.scale)(V) / part.scale
    # Rounding of single precision remains, relative to the ridge, where it is tiny compared with L L'.
    np.testing.assert_allclose(found, want, atol=1e-3 * np.abs(want).max())
    problem._preconditioner(alpha)
    assert len(problem._grams) == 2  # that of the first rows was used again


def test_one_problem_serves_many_alphas(narrow):
    rows, y = blobs(400)
    a = LSSVC(1.0, 1e-2, solver="krylov", tol=1e-10, cv=None, calibration=None, random_state=0).fit(rows, y)
    b = LSSVC(1.0, 1e-2, solver="cholesky", cv=None, calibration=None).fit(rows, y)
    np.testing.assert_allclose(a.scores(rows), b.scores(rows), atol=1e-7)
    model = fixed()
    data, settings = prepare(model, model._spec(), X, Y, WEIGHTS)
    solver_options = iterating.SolverOptions(1e-9, 200)
    problem = KrylovProblem(data.rows, settings, 1.5, None, solver_options)
    assert problem.rough is not None
    start = None
    for alpha in (1e-1, 1e-3, 1e-5):
        found = problem.solve(alpha, start)
        start = found.summary.X
        want = fixed("auto", alpha=alpha).fit(X, Y, sample_weight=WEIGHTS)
        np.testing.assert_allclose(found.A, want.coef_, atol=1e-5 * np.abs(want.coef_).max())
