"""Prediction intervals: against their definition by refits, and against what they promise."""

import itertools
import pickle

import numpy as np
import pytest
from conftest import PLAIN_SUM
from reference import grouped_quantile, jackknife_plus_by_definition, rbf
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

from leastwise import LSSVR, MultiTaskLSSVR
from leastwise.calibration.conformal import jackknife, jackknife_plus
from leastwise.datasets import make_related_tasks
from leastwise.model_selection.optimism import excess, inflation
from leastwise.model_selection.steps import FEW_ROWS
from leastwise.persistence.model_files import load, save

N, T = 32, 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
TASK = RNG.permutation(np.repeat(np.arange(T), [5, 9, 8, 10]))
Y = np.sin(1.5 * X[:, 0]) + np.array([2.0, 0, -3, 1])[TASK] + 0.3 * RNG.normal(size=N)
NEW = RNG.normal(size=(7, 2))
FOLDS = list(KFold(5, shuffle=True, random_state=0).split(X))
LOO = [(np.delete(np.arange(N), i), np.array([i])) for i in range(N)]


def svr(**changes):
    return LSSVR(**{"sigma": 1.0, "alpha": 0.02, "kernel": "rbf", "linear_weight": 1.0, "random_state": 0, **changes})


def tasks(**changes):
    given = {"sigma": 1.0, "alpha": 0.02, "sharing": 0.6, "kernel": "rbf", "linear_weight": 1.0, "bias": 0.3}
    return MultiTaskLSSVR(**{**given, "random_state": 0, **changes})


# ------------------------------------------------------------- the formulas alone


def ridge(K, z, rho):
    return np.linalg.solve(K + rho * np.eye(len(z)), z)


@pytest.mark.parametrize("splits", [LOO, FOLDS], ids=["loo", "folds"])
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
def test_jackknife_plus_of_a_ridge_is_its_definition(splits, coverage):
    """No estimator: a kernel ridge at one ridge on the sum of the losses, and all of its refits."""
    K, k, rho = rbf(X, X, 1.0), rbf(NEW, X, 1.0), 0.5
    left, said, fold = np.empty(N), np.empty((N, len(NEW))), np.empty(N, dtype=int)
    for f, (train, test) in enumerate(splits):
        a = ridge(K[np.ix_(train, train)], Y[train], rho)
        left[test], said[test], fold[test] = Y[test] - K[np.ix_(test, train)] @ a, k[:, train] @ a, f
    S = k @ np.linalg.inv(K + rho * np.eye(N))
    low, high = jackknife_plus((S @ Y)[:, None], S, left[:, None], fold, np.ones(N), coverage)
    expected = [jackknife_plus_by_definition(said[:, j], left, coverage) for j in range(len(NEW))]
    np.testing.assert_allclose(np.column_stack([low, high]), expected, atol=1e-10)


@pytest.mark.parametrize("n", [1, 4, 9, 10, 19, 20, 99])
@pytest.mark.parametrize("coverage", [0.1, 0.5, 0.8, 0.9, 0.95])
def test_the_half_width_is_the_right_one_of_the_residuals(n, coverage):
    left = np.random.default_rng(n).normal(size=n)
    low, high = jackknife(np.zeros((1, 1)), left[:, None], np.ones(n), coverage)
    rank = int(np.ceil(coverage * (n + 1) - 1e-9))
    half = np.sort(np.abs(left))[rank - 1] if rank <= n else np.inf
    assert (low[0, 0], high[0, 0]) == (-half, half)


def test_weights_are_copies_of_residuals():
    left, times = np.array([3.0, -1, 2, 0.5]), np.array([1.0, 4, 2, 3])
    copies = np.repeat(left, times.astype(int))
    for coverage in (0.3, 0.5, 0.7, 0.9):
        a = jackknife(np.zeros((1, 1)), left[:, None], times, coverage)
        b = jackknife(np.zeros((1, 1)), copies[:, None], np.ones(10), coverage)
        assert a == b


def test_outputs_have_widths_of_their_own():
    left = np.random.default_rng(0).normal(size=(50, 2)) * [1, 100]
    low, high = jackknife(np.zeros((3, 2)), left, np.ones(50), 0.8)
    assert ((high - low)[:, 1] > 20 * (high - low)[:, 0]).all()


# ------------------------------------------------------ the models: refits, one by one


def by_refits(make, target, splits, coverage, task=None, who=None):
    """jackknife+ by its definition: refits without each fold, at the same ridge on the sum of the losses."""
    left, said = np.empty(N), np.empty((N, len(NEW)))
    for train, test in splits:
        model = make(N / len(train))
        if task is None:
            model.fit(X[train], target[train])
            left[test], said[test] = target[test] - model.predict(X[test]), model.predict(NEW)
        else:
            model.fit(X[train], target[train], tasks=task[train])
            left[test] = target[test] - model.predict(X[test], task[test])
            said[test] = model.predict(NEW, who)
    return np.array([jackknife_plus_by_definition(said[:, j], left, coverage) for j in range(len(NEW))])


@pytest.mark.parametrize("splits", [LOO, FOLDS], ids=["loo", "folds"])
@pytest.mark.parametrize("bias", ["shared", None])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_jackknife_plus_is_its_definition(splits, bias, kernel):
    given = {"bias": bias, "kernel": kernel}
    model = svr(cv="loo" if splits is LOO else splits, **given).fit(X, Y)
    expected = by_refits(lambda more: svr(alpha=0.02 * more, cv=None, **given), Y, splits, 0.8)
    np.testing.assert_allclose(model.predict_interval(NEW, 0.8, "jackknife+", adaptive=False), expected, atol=1e-8)


@pytest.mark.parametrize("splits", [LOO, FOLDS], ids=["loo", "folds"])
@pytest.mark.parametrize("bias", ["task", "shared", 0.3, None])
@pytest.mark.parametrize("sharing", [0.0, 0.6, 1.0])
def test_jackknife_plus_of_tasks_is_its_definition(splits, bias, sharing):
    given = {"bias": bias, "sharing": sharing}
    model = tasks(cv="loo" if splits is LOO else splits, **given).fit(X, Y, tasks=TASK)
    expected = by_refits(lambda more: tasks(alpha=0.02 * more, cv=None, **given), Y, splits, 0.8, TASK, 1)
    # Free intercepts are drawn from a very wide distribution for the purpose.
    atol = 1e-3 if bias == "task" else 1e-8
    np.testing.assert_allclose(model.predict_interval(NEW, 0.8, tasks=1, adaptive=False), expected, atol=atol)


@pytest.mark.parametrize("splits", [LOO, FOLDS], ids=["loo", "folds"])
@pytest.mark.parametrize("bias", ["task", "shared", 0.3, None])
def test_jackknife_plus_is_near_its_definition(splits, bias):
    """To the extent that a ridge on what stays differs from one on all rows."""
    model = tasks(cv="loo" if splits is LOO else splits, bias=bias).fit(X, Y, tasks=TASK)
    expected = by_refits(lambda more: tasks(alpha=0.02 * more, cv=None, bias=bias), Y, splits, 0.8, TASK, 1)
    I = model.predict_interval(NEW, 0.8, tasks=1, adaptive=False)
    width = np.diff(expected, axis=1).mean()
    np.testing.assert_allclose(I, expected, atol=0.25 * width)


def test_weighted_rows_are_held_out_with_their_weights():
    """Of whole weights, those of copies of the rows: the same models, and almost the same ranks."""
    times = np.random.default_rng(2).integers(1, 4, N)
    one = svr().fit(X, Y, sample_weight=times)
    other = svr().fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
    a, b = one.predict_interval(NEW, 0.5), other.predict_interval(NEW, 0.5)
    assert np.abs(a - b).max() < 0.3 * np.diff(a, axis=1).mean()


def test_the_plain_jackknife_has_one_width():
    model = svr().fit(X, Y)
    I = model.predict_interval(NEW, coverage=0.8, method="jackknife", adaptive=False)
    half = np.sort(np.abs(Y - model.heldout_prediction_))[int(np.ceil(0.8 * (N + 1))) - 1]
    np.testing.assert_allclose(I, model.predict(NEW)[:, None] + [-half, half], atol=1e-10)


@pytest.mark.parametrize("more", [{"n_centers": 9}, {"prune": 0.3}, {"solver": "krylov"}], ids=str)
def test_models_without_a_coefficient_for_every_row_have_the_plain_jackknife(more):
    model = svr(**more).fit(X, Y)
    known = ~np.isnan(model.heldout_prediction_)
    left = np.abs(Y - model.heldout_prediction_)[known]
    half = np.sort(left)[int(np.ceil(0.6 * (len(left) + 1))) - 1]
    np.testing.assert_allclose(
        model.predict_interval(NEW, 0.6, adaptive=False), model.predict(NEW)[:, None] + [-half, half], atol=1e-8
    )
    with pytest.raises(ValueError, match=r"'jackknife\+' needs a coefficient for every training row.*'jackknife'"):
        model.predict_interval(NEW, method="jackknife+")


def test_the_arrow_has_the_plain_jackknife():
    model = tasks(kernel="linear").fit(X, Y, tasks=TASK)
    half = np.sort(np.abs(Y - model.heldout_prediction_))[int(np.ceil(0.8 * (N + 1))) - 1]
    I = model.predict_interval(NEW, 0.8, tasks=1, adaptive=False)
    np.testing.assert_allclose(I, model.predict(NEW, 1)[:, None] + [-half, half], atol=1e-8)


@pytest.mark.parametrize("make", [svr, tasks])
def test_several_outputs_are_each_alone(make):
    Z = np.column_stack([Y, 10 * X[:, 1] + Y])
    more = {} if make is svr else {"tasks": TASK}
    both, who = make().fit(X, Z, **more), {} if make is svr else {"tasks": 2}
    I = both.predict_interval(NEW, **who, adaptive=False)
    assert I.shape == (7, 2, 2)
    for k in (0, 1):
        np.testing.assert_allclose(
            I[:, k], make().fit(X, Z[:, k], **more).predict_interval(NEW, **who, adaptive=False), atol=1e-7
        )


def test_more_coverage_is_a_wider_interval():
    model = svr().fit(X, Y)
    widths = [np.diff(model.predict_interval(NEW, c), axis=1) for c in (0.2, 0.5, 0.8, 0.9)]
    assert all((a <= b).all() for a, b in itertools.pairwise(widths))


def test_intervals_are_wider_where_little_is_known():
    model = svr(sigma=0.6, alpha=1e-3).fit(X, Y)
    near, far = model.predict_interval(X, 0.8), model.predict_interval(X + 6.0, 0.8)
    assert np.diff(far, axis=1).mean() > 0.9 * np.diff(near, axis=1).mean()


def test_many_rows_are_answered_as_few(monkeypatch):
    model = tasks().fit(X, Y, tasks=TASK)
    rows = np.random.default_rng(0).normal(size=(500, 2))
    who = np.arange(500) % 5  # the last is not known
    whole = model.predict_interval(rows, tasks=who)
    parts = [model.predict_interval(rows[i : i + 50], tasks=who[i : i + 50]) for i in range(0, 500, 50)]
    np.testing.assert_allclose(whole, np.vstack(parts), atol=1e-10)
    from leastwise.estimators import intervals

    monkeypatch.setattr(intervals, "row_chunks", lambda n, *_: [slice(i, min(i + 7, n)) for i in range(0, n, 7)])
    np.testing.assert_allclose(model.predict_interval(rows, tasks=who), whole, atol=1e-10)


# ------------------------------------------------------------------- what they promise


def covered(model, rows, y, **more):
    I = model.predict_interval(rows, **more)
    return float(np.mean((I[:, 0] <= y) & (y <= I[:, 1])))


def draw(rng, n, d=2):
    rows = rng.normal(size=(n, d))
    return rows, np.sin(2 * rows[:, 0]) + rows[:, 1] ** 2 / 2 + 0.3 * rng.standard_t(4, size=n)


@pytest.mark.parametrize("method", ["jackknife+", "jackknife"])
@pytest.mark.parametrize("cv", ["loo", 5], ids=str)
def test_nine_of_ten_values_are_covered(method, cv):
    """60 draws of 40 rows, 100 new rows each: the mean has a standard error of about 0.008."""
    rng, shares = np.random.default_rng(0), []
    for _ in range(60):
        model = svr(cv=cv).fit(*draw(rng, 40))
        shares.append(covered(model, *draw(rng, 100), coverage=0.9, method=method))
    assert 0.87 < np.mean(shares) < 0.95


@pytest.mark.parametrize("bias", ["task", "shared", 0.3])
def test_nine_of_ten_values_of_tasks_are_covered(bias):
    shares = []
    for seed in range(40):
        data = make_related_tasks(5, 30, kind="regression", offset=1.0, random_state=seed)
        old = np.arange(150) % 30 < 10
        model = tasks(bias=bias).fit(data.X[old], data.y[old], tasks=data.task[old])
        shares.append(covered(model, data.X[~old], data.y[~old], tasks=data.task[~old]))
    assert 0.87 < np.mean(shares) < 0.95


@pytest.mark.parametrize("alpha", [1e-12, 1e-6, 100.0])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_bad_models_cover_too(alpha, kernel):
    """At least 2 * 0.9 - 1, however much the model overfits: as many columns as rows."""
    rng, shares = np.random.default_rng(1), []
    for _ in range(40):
        model = svr(kernel=kernel, alpha=alpha).fit(*draw(rng, 20, 20))
        shares.append(covered(model, *draw(rng, 100, 20), coverage=0.9, method="jackknife+"))
    assert np.mean(shares) > 0.8


@pytest.mark.parametrize("bias", ["task", "shared", 0.3])
def test_unknown_tasks_get_wider_intervals_that_cover(bias):
    shares, widths = [], []
    for seed in range(30):
        data = make_related_tasks(12, 12, kind="regression", offset=2.0, random_state=seed)
        old = data.task < 11
        model = tasks(bias=bias).fit(data.X[old], data.y[old], tasks=data.task[old])
        shares.append(covered(model, data.X[~old], data.y[~old], tasks="new"))
        known, unseen = (np.diff(model.predict_interval(NEW, tasks=who), axis=1).mean() for who in (1, "new"))
        widths.append(unseen / known)
    assert np.median(widths) > 1.3
    assert 0.8 < np.mean(shares) <= 1


def test_unknown_tasks_get_what_tasks_that_were_held_out_got():
    """One width, from tasks that were held out whole, each told of all others."""
    model = tasks().fit(X, Y, tasks=TASK)
    left = np.empty(N)
    for t in range(T):
        out = t == TASK
        rest = tasks(cv=None, alpha=0.02 * N / (~out).sum()).fit(X[~out], Y[~out], tasks=TASK[~out])
        left[out] = Y[out] - rest.predict(X[out], "new")
    order = np.argsort(np.abs(left))  # a task is one witness, whatever its rows
    mass = np.cumsum((1 / np.bincount(TASK)[TASK])[order])
    half = np.abs(left)[order][np.argmax(mass >= 0.8 * (T + 1) - 1e-9)]
    I = model.predict_interval(NEW, 0.8, tasks="new")
    np.testing.assert_allclose(I, model.predict(NEW, "new")[:, None] + [-half, half], atol=1e-7)


def test_with_two_tasks_unknown_ones_are_as_the_known():
    few = TASK < 2
    model = tasks().fit(X[few], Y[few], tasks=TASK[few])
    assert np.isfinite(model.predict_interval(NEW, 0.5, tasks="new")).all()


@pytest.mark.parametrize("n", [2, 5, 8])
def test_too_few_rows_for_the_coverage_give_infinite_ends(n):
    for model, more in ((svr().fit(X[:n], Y[:n]), {}), (tasks().fit(X[:n], Y[:n], tasks=[0] * n), {"tasks": 0})):
        for method in ("jackknife+", "jackknife"):
            I = model.predict_interval(NEW, coverage=0.9, method=method, **more)
            assert ([-np.inf, np.inf] == I).all()
    assert np.isfinite(svr().fit(X[:9], Y[:9]).predict_interval(NEW, coverage=0.9)).all()


# ----------------------------------------------------------------------- at the edge


@pytest.mark.parametrize("make", [svr, tasks])
def test_a_model_from_a_file_gives_equal_intervals(make):
    model = make().fit(X, Y, **({} if make is svr else {"tasks": TASK}))
    who = {} if make is svr else {"tasks": [0, 1, 2, 3, "new", 1, 1]}
    fresh = pickle.loads(pickle.dumps(model))
    before = model.predict_interval(NEW, **who)
    used = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(fresh.predict_interval(NEW, **who), before)
    np.testing.assert_array_equal(used.predict_interval(NEW, **who), before)


@pytest.mark.parametrize("coverage", [0, 1, 1.5, -0.1, "a", None, True, np.nan, [0.9]], ids=str)
@pytest.mark.parametrize("make", [svr, tasks])
def test_a_coverage_is_between_0_and_1(make, coverage):
    more = {} if make is svr else {"tasks": TASK}
    model = make().fit(X, Y, **more)
    with pytest.raises(ValueError, match=r"coverage=.* must be a number above 0 and below 1, such as 0\.9"):
        model.predict_interval(X, coverage=coverage, **more)


@pytest.mark.parametrize("coverage", [np.float32(0.5), np.float64(0.5)])
def test_a_coverage_may_be_of_numpy(coverage):
    model = svr().fit(X, Y)
    np.testing.assert_allclose(model.predict_interval(NEW, coverage), model.predict_interval(NEW, 0.5), atol=1e-12)


def test_methods_are_named():
    model = svr().fit(X, Y)
    with pytest.raises(ValueError, match=r"method='bootstrap' is not known: use one of \['auto', 'jackknife\+', 'ja"):
        model.predict_interval(NEW, method="bootstrap")
    np.testing.assert_array_equal(model.predict_interval(NEW), model.predict_interval(NEW, method="jackknife+"))


def test_nothing_held_out_no_intervals():
    with pytest.raises(ValueError, match=r"cv=None holds nothing out.*use cv='loo'"):
        svr(cv=None).fit(X, Y).predict_interval(NEW)


@pytest.mark.parametrize("make", [svr, tasks])
def test_not_fitted(make):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        make().predict_interval(NEW)


def test_rows_are_checked():
    model = svr().fit(X, Y)
    with pytest.raises(ValueError, match="3 features"):
        model.predict_interval(np.ones((2, 3)))
    with pytest.raises(ValueError, match="infinity"):
        model.predict_interval(np.full((2, 2), np.inf))
    strict = tasks(unknown_task="error").fit(X, Y, tasks=TASK)
    with pytest.raises(ValueError, match="not in the training data"):
        strict.predict_interval(NEW, tasks="new")


def test_a_kernel_with_negative_eigenvalues_has_the_intervals_of_what_was_solved():
    """Negative eigenvalues are lifted in the model; jackknife+ has to lift them in the same way."""
    K = rbf(X, X, 1.0) - 0.3 * np.eye(N)
    k = rbf(NEW, X, 1.0)
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        model = svr(kernel="precomputed", alpha=0.001).fit(K, Y)
    assert model.jitter_ > 0
    lifted = svr(kernel="precomputed", alpha=0.001).fit(K + model.jitter_ * np.eye(N), Y)
    np.testing.assert_allclose(model.predict(k), lifted.predict(k), atol=1e-6)
    np.testing.assert_allclose(model.predict_interval(k, 0.8), lifted.predict_interval(k, 0.8), atol=1e-6)


def test_unknown_tasks_of_a_pruned_model_get_residuals_of_that_model_or_the_whole_one():
    """Not those of a model that nobody has: all rows at the ridge of the few that were kept."""
    pruned, whole = tasks(prune=0.5).fit(X, Y, tasks=TASK), tasks().fit(X, Y, tasks=TASK)
    kept = np.array([int(np.flatnonzero((c == X).all(axis=1))[0]) for c in pruned.centers_])
    alone = tasks(alpha=0.02 * N / len(kept)).fit(X[kept], Y[kept], tasks=TASK[kept])
    width = [np.diff(model.predict_interval(NEW, 0.5, tasks="new"), axis=1)[0, 0] for model in (pruned, whole, alone)]
    assert np.isclose(width[0], width[1:], rtol=1e-6).any()


# ------------------------------------------------------------------------ groups

GROUP = np.repeat(np.arange(11), [1, 5, 2, 3, 4, 1, 6, 3, 2, 4, 1])
NAMED = np.array([f"person {g}" for g in GROUP])


def groups_by_refits(make, coverage, task=None, who=None):
    """CV+ without whole groups, each of which counts as one: refits, and quantiles by loops."""
    low, high = [], []
    for g in np.unique(GROUP):
        train, test = np.flatnonzero(g != GROUP), np.flatnonzero(g == GROUP)
        more = [{}, {}] if task is None else [{"tasks": task[train]}, {"tasks": task[test]}]
        model = make(N / len(train)).fit(X[train], Y[train], **more[0])
        left = np.abs(Y[test] - model.predict(X[test], **more[1]))
        said = model.predict(NEW, **({} if task is None else {"tasks": who}))
        low.append(left[:, None] - said)
        high.append(left[:, None] + said)
    lower, upper = (np.concatenate(A).T for A in (low, high))  # rows in the order of GROUP
    ends = [
        [-grouped_quantile(a, GROUP, coverage), grouped_quantile(b, GROUP, coverage)]
        for a, b in zip(lower, upper, strict=True)
    ]
    return np.array(ends)


@pytest.mark.parametrize("coverage", [0.5, 0.8])
def test_groups_are_left_out_whole_and_count_once(coverage):
    model = svr().fit(X, Y, groups=NAMED)
    expected = groups_by_refits(lambda more: svr(alpha=0.02 * more, cv=None), coverage)
    np.testing.assert_allclose(model.predict_interval(NEW, coverage), expected, atol=1e-8)


def test_groups_of_rows_of_tasks():
    model = tasks().fit(X, Y, tasks=TASK, groups=NAMED)
    expected = groups_by_refits(lambda more: tasks(alpha=0.02 * more, cv=None), 0.8, TASK, 1)
    np.testing.assert_allclose(model.predict_interval(NEW, 0.8, tasks=1), expected, atol=1e-8)


@pytest.mark.parametrize("cv", ["loo", 4], ids=str)
def test_the_plain_jackknife_counts_groups(cv):
    model = svr(cv=cv).fit(X, Y, groups=NAMED)
    half = grouped_quantile(np.abs(Y - model.heldout_prediction_), GROUP, 0.7)
    I = model.predict_interval(NEW, 0.7, "jackknife")
    np.testing.assert_allclose(I, model.predict(NEW)[:, None] + [-half, half], atol=1e-10)


def test_a_group_for_every_row_is_no_group():
    alone, plain = svr().fit(X, Y, groups=np.arange(N)), svr().fit(X, Y)
    np.testing.assert_allclose(alone.predict_interval(NEW), plain.predict_interval(NEW), atol=1e-10)


def test_too_few_groups_give_infinite_ends():
    """Eight groups tell nothing of one in ten, however many rows they have."""
    rng = np.random.default_rng(0)
    rows, person = rng.normal(size=(80, 2)), np.repeat(np.arange(8), 10)
    model = svr().fit(rows, rows[:, 0], groups=person)
    for method in ("jackknife+", "jackknife"):
        assert ([-np.inf, np.inf] == model.predict_interval(NEW, 0.9, method)).all()
        assert np.isfinite(model.predict_interval(NEW, 0.85, method)).all()


def people(rng, count, rows):
    """Rows of a person are alike, and have the person's own level."""
    person = np.repeat(np.arange(count), rows)
    A = rng.normal(size=(count, 2))[person] + 0.3 * rng.normal(size=(len(person), 2))
    return A, A[:, 0] + 0.7 * rng.normal(size=count)[person] + 0.5 * rng.normal(size=len(person)), person


@pytest.mark.parametrize("method", ["jackknife+", "jackknife"])
def test_values_of_new_groups_are_covered(method):
    """60 draws of 19 persons with 1 to 12 rows each, 200 new persons: standard errors of about 0.01."""
    rng, shares = np.random.default_rng(0), []
    for _ in range(60):
        A, b, person = people(rng, 19, rng.integers(1, 13, size=19))
        C, d, _ = people(rng, 200, 1)
        shares.append(covered(LSSVR(**PLAIN_SUM, random_state=0).fit(A, b, groups=person), C, d, method=method))
    assert 0.89 < np.mean(shares) < 0.97


# ------------------------------------------------------- what a search has seen already


@pytest.mark.parametrize("method", ["jackknife+", "jackknife"])
@pytest.mark.parametrize(("kind", "n", "d"), [("smooth", 20, 1), ("smooth", 30, 5), ("linear", 20, 5)])
def test_few_rows_that_have_chosen_the_model_cover_as_promised(kind, n, d, method):
    """60 draws, 300 new rows each: standard errors of about 0.01. Without corrections 0.86 to 0.89 are covered."""
    rng, shares, plain = np.random.default_rng(1), [], []

    def some(count):
        A = rng.normal(size=(count, d))
        if kind == "linear":
            return A, A.sum(axis=1) / np.sqrt(d) + 0.5 * rng.normal(size=count)
        return A, np.sin(2 * A[:, 0]) + A[:, min(1, d - 1)] ** 2 / 2 + 0.3 * rng.normal(size=count)

    for _ in range(60):
        model, new = LSSVR(**PLAIN_SUM, random_state=0).fit(*some(n)), some(300)
        shares.append(covered(model, *new, method=method))
        model.residuals_.excess, model.residuals_.inflation = None, 1.0
        plain.append(covered(model, *new, method=method))
    assert np.mean(shares) > np.mean(plain) + 0.01
    assert 0.885 < np.mean(shares) < 0.95


def test_many_rows_are_hardly_widened():
    rng = np.random.default_rng(0)
    model = LSSVR(**PLAIN_SUM, random_state=0).fit(*draw(rng, 400))
    before = model.predict_interval(NEW)
    model.residuals_.excess, model.residuals_.inflation = None, 1.0
    after = model.predict_interval(NEW)
    assert 1 <= np.diff(before, axis=1).mean() / np.diff(after, axis=1).mean() < 1.03


def test_nothing_is_added_where_nothing_was_chosen():
    for model in (svr().fit(X, Y), tasks().fit(X, Y, tasks=TASK)):
        assert model.residuals_.inflation == 1
        assert model.residuals_.excess is None


@pytest.mark.parametrize(
    ("given", "searched"),
    [({"alpha": [0.01, 0.1]}, 1), ({"alpha": "auto", "sigma": [1.0, 2.0]}, 2), ({"alpha": [0.01]}, 0)],
)
def test_a_parameter_that_was_chosen_costs_a_degree_of_freedom(given, searched):
    model = svr(**given).fit(X, Y)
    assert model.residuals_.inflation == pytest.approx(np.sqrt(N / (N - searched)))
    grouped = svr(**given).fit(X, Y, groups=NAMED)
    assert grouped.residuals_.inflation == pytest.approx(np.sqrt(11 / (11 - searched)))


def test_no_more_rows_than_parameters_tell_nothing():
    points = [{"sigma": 1.0, "alpha": 1.0}, {"sigma": 2.0, "alpha": 2.0}]
    assert inflation(points, 2) == np.inf
    assert inflation(points, 4) == pytest.approx(np.sqrt(2))


def recorded(monkeypatch, make, **more):
    """A fitted model with all that its correction was computed from."""
    seen = []
    monkeypatch.setattr("leastwise.fitting.residuals.excess", lambda *args: seen.append(args) or excess(*args))
    return make().fit(X, Y, **more), *seen[0]


def slow_choice(points, rows, cautious, stay):
    """The point that these rows choose: the least error with its charge, a linear one unless it is clearly worse."""
    z, w, n = rows.values[:, 0].astype(float), rows.w, rows.size
    squares = [(z - point["F"][:, 0]) ** 2 for point in points]
    costs = []
    for point, square in zip(points, squares, strict=True):
        charge = np.exp(6 / np.sqrt(n) * min(point["dof"] / n, 1)) if cautious else 1
        costs.append(np.average(square[stay], weights=w[stay]) * charge)
    best = int(np.argmin(costs))
    linear = [k for k, point in enumerate(points) if point["weight"] == np.inf]
    if not cautious or best in linear:
        return best
    rival = min(linear, key=lambda k: costs[k])
    less = (squares[rival] - squares[best])[stay]
    mean = np.average(less, weights=w[stay])
    error = np.sqrt(np.average((less - mean) ** 2, weights=w[stay]) / n)
    return best if mean > 2 * error else rival


@pytest.mark.parametrize("grouped", [False, True], ids=["rows", "groups"])
@pytest.mark.parametrize("scoring", ["cautious", "r2"])
def test_the_others_choose_as_they_would_by_loops(monkeypatch, scoring, grouped):
    more = {"groups": NAMED} if grouped else {}
    model, seen, rows, _ = recorded(monkeypatch, lambda: LSSVR(**PLAIN_SUM, scoring=scoring, random_state=0), **more)
    points = [point for point in seen if "F" in point]
    found, everyone = model.residuals_.excess, np.ones(N, dtype=bool)
    z = rows.values[:, 0]
    whole = slow_choice(points, rows, scoring == "cautious", everyone)
    # The choice by all rows is what the search has chosen, or as good as that.
    np.testing.assert_allclose(points[whole]["F"][:, 0], z - model.residuals_.residual[:, 0], atol=1e-3)
    for i in range(N):
        k = slow_choice(points, rows, scoring == "cautious", rows.fold != rows.fold[i])
        expected = abs(z[i] - points[k]["F"][i, 0]) - abs(z[i] - points[whole]["F"][i, 0])
        assert found[i, 0] == pytest.approx(expected, abs=1e-12)
    assert grouped or np.abs(found).max() > 0


def test_points_of_many_rows_are_not_kept(monkeypatch):
    monkeypatch.setattr("leastwise.model_selection.steps.FEW_ROWS", N - 1)
    assert FEW_ROWS >= 1000
    model = LSSVR(**PLAIN_SUM, random_state=0).fit(X, Y)
    assert model.residuals_.excess is None
    assert model.residuals_.inflation > 1


def test_a_file_keeps_groups_and_corrections(tmp_path):
    model = LSSVR(**PLAIN_SUM, random_state=0).fit(X, Y, groups=NAMED)
    save(model, tmp_path / "m.lw")
    np.testing.assert_array_equal(load(tmp_path / "m.lw").predict_interval(NEW), model.predict_interval(NEW))


def test_few_rows_of_tasks_that_have_chosen_the_model_cover_as_promised():
    """24 draws of four tasks with five rows each, 200 new rows: a standard error of about 0.018."""
    rng, shares, plain = np.random.default_rng(0), [], []
    for _ in range(24):
        slopes = rng.normal(size=(4, 3)) * [1, 0.5, 0.5]

        def some(count, slopes=slopes):
            A, task = rng.normal(size=(count, 2)), np.arange(count) % 4
            mean = np.sin(2 * A[:, 0]) + slopes[task, 0] + np.sum(A * slopes[task, 1:], axis=1)
            return A, mean + 0.4 * rng.normal(size=count), task

        (A, b, task), (C, d, new) = some(20), some(200)
        model = MultiTaskLSSVR(**PLAIN_SUM, random_state=0).fit(A, b, tasks=task)
        shares.append(covered(model, C, d, tasks=new))
        model.residuals_.excess, model.residuals_.inflation = None, 1.0
        plain.append(covered(model, C, d, tasks=new))
    assert np.mean(shares) > np.mean(plain) + 0.02
    assert 0.87 < np.mean(shares) < 0.97
