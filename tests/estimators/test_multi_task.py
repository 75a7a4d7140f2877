"""MultiTaskLSPC: closed forms against loops and refits, limits, the block-arrow system, strangers, the choice."""

import numpy as np
import pytest
from conftest import DATA, PLAIN
from reference import coupled_fit, coupled_heldout_by_refits
from task_cases import FOLDS, C, N, T, evaluator, kernel, tied_rows

from leastwise import LSPC, MultiTaskLSPC
from leastwise.datasets import available, load, make_related_tasks
from leastwise.metrics.probabilities import task_auc, task_log_loss
from leastwise.model_selection.folds import LEAST_TASKS, some_units
from leastwise.model_selection.splitters import StratifiedTaskKFold
from leastwise.solvers import arrow as arrow_module
from leastwise.solvers.arrow import ArrowEvaluator
from leastwise.solvers.solve_tasks import solve_tasks, stream_tasks, unseen_task_scores

# ----------------------------------------------------------------- held out


@pytest.mark.parametrize("norm", ["function", "coefficients"])
@pytest.mark.parametrize("kind", ["shared", "pairwise"])
@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize(("weighted", "bias"), [(False, False), (True, False), (True, True), (False, True)])
@pytest.mark.parametrize("sharing", [0.0, 0.4, 1.0])
def test_heldout_scores_are_those_of_refits(norm, kind, fold, weighted, bias, sharing):
    rows = tied_rows(weighted, fold)
    tied = evaluator(rows, kind, norm, bias).with_sharing(sharing)
    refits = coupled_heldout_by_refits(
        rows.X, rows.y, rows.task, rows.w, tied.coupling_matrix.matrix, kernel, 0.01, norm, bias, C, rows.fold
    )
    for count in (9, 1):  # many alphas: the spectrum; one: a Cholesky factor where that applies
        np.testing.assert_allclose(tied.heldout(1.0, count)(0.01).F, refits, atol=1e-9)


@pytest.mark.parametrize("norm", ["function", "coefficients"])
@pytest.mark.parametrize("kind", ["shared", "pairwise"])
@pytest.mark.parametrize(("weighted", "bias"), [(False, False), (True, True)])
@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
def test_the_solution_is_that_of_loops(norm, kind, weighted, bias, sharing):
    rows = tied_rows(weighted)
    tied = evaluator(rows, kind, norm, bias).with_sharing(sharing)
    solution = solve_tasks(tied, 1.0, 0.02)
    fit = coupled_fit(rows.X, rows.y, rows.task, rows.w, tied.coupling_matrix.matrix, kernel, 0.02, norm, bias, C)
    X, task = np.random.default_rng(5).normal(size=(30, 2)), np.arange(30) % T
    F = solution.form.weigh(kernel(X, rows.X), task) + solution.intercept
    np.testing.assert_allclose(F, fit(X, task), atol=1e-9)


@pytest.mark.parametrize("norm", ["function", "coefficients"])
@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize(("weighted", "bias"), [(False, False), (True, True)])
@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
def test_arrow_is_the_dual(norm, fold, weighted, bias, sharing):
    rows = tied_rows(weighted, fold)
    recipe = {"norm": norm, "bias": bias, "n_centers": 7}
    dual = evaluator(rows, **recipe).with_sharing(sharing)
    arrow = evaluator(rows, cls=ArrowEvaluator, **recipe).with_sharing(sharing)
    X, task = np.random.default_rng(5).normal(size=(30, 2)), np.arange(30) % (T + 1) - 1  # -1 is not known
    one, other = solve_tasks(dual, 1.0, 0.02), solve_tasks(arrow, 1.0, 0.02)
    K = kernel(X, dual.basis.centers)
    np.testing.assert_allclose(other.form.weigh(K, task), one.form.weigh(K, task), atol=1e-8)
    np.testing.assert_allclose(other.intercept, one.intercept, atol=1e-9)
    if not (weighted or fold == "copies"):  # the ridge of a fold is the average one in the arrow
        np.testing.assert_allclose(arrow.heldout(1.0, 9)(0.02).F, dual.heldout(1.0, 9)(0.02).F, atol=1e-8)
    np.testing.assert_allclose(unseen_task_scores(arrow, 1.0, 0.02), unseen_task_scores(dual, 1.0, 0.02), atol=1e-8)


def test_a_stream_of_few_tasks_at_a_time_is_the_whole(monkeypatch):
    rows = tied_rows(weighted=True, fold="loo")
    arrow = evaluator(rows, cls=ArrowEvaluator, n_centers=7).with_sharing(0.4)
    # A stream has the ridge of all rows, leave-one-out that of all but one.
    at_once, solution = arrow.heldout(1.0, 1)(0.01 * N / (N - 1)).F, solve_tasks(arrow, 1.0, 0.01)
    monkeypatch.setattr(arrow_module, "CHUNK", 8 * 7 * 12)  # a dozen rows
    assert sum(1 for _ in arrow.stream.chunks(1.0, arrow.coupling_matrix, None)) > 2
    streamed, held = stream_tasks(arrow, 1.0, 0.01, hold=True)
    np.testing.assert_allclose(held.F, at_once, atol=1e-10)
    np.testing.assert_allclose(streamed.form.coef, solution.form.coef, atol=1e-8)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", ["shared", "pairwise"])
def test_scores_of_strangers_are_those_of_a_fit_without_the_task(kind, bias):
    rows, alpha = tied_rows(weighted=True), 0.03
    tied = evaluator(rows, kind, bias=bias).with_sharing(0.5)
    F, B = unseen_task_scores(tied, 1.0, alpha), tied.coupling_matrix.matrix
    for code in range(T):
        out = rows.task == code
        others = np.delete(np.arange(T), code)
        rest = B[np.ix_(others, others)]
        unseen_task = (rest.sum(axis=0) - np.diagonal(rest)) / (T - 2)
        wide = np.block([[rest, unseen_task[:, None]], [unseen_task[None], np.ones((1, 1))]])
        place = np.searchsorted(others, rows.task[~out])
        w = rows.w[~out]
        fit = coupled_fit(
            rows.X[~out], rows.y[~out], place, w, wide, kernel, alpha * N / w.sum(), "function", bias, C
        )
        np.testing.assert_allclose(F[out], fit(rows.X[out], np.full(out.sum(), T - 1)), atol=1e-9)


# ------------------------------------------------------- the public surface


@pytest.fixture(scope="module")
def related():
    return make_related_tasks(n_tasks=6, n_rows=[1, 8, 15, 20, 25, 40], random_state=0)


def fixed(sharing, **options):
    return MultiTaskLSPC(0.8, 0.01, sharing, **{"calibration": None, "extrapolate": True, **options})


def new_rows(data, n=60):
    rng = np.random.default_rng(3)
    return rng.uniform(data.X.min(axis=0), data.X.max(axis=0), size=(n, 2)), rng.integers(0, 6, n)


@pytest.mark.parametrize("norm", ["function", "coefficients"])
@pytest.mark.parametrize("similarity", ["shared", "matrix"])
def test_public_heldout_scores_are_those_of_public_refits(related, norm, similarity):
    S = "shared" if similarity == "shared" else np.abs(np.subtract.outer(np.arange(6), np.arange(6))) + 1.0
    model = fixed(0.4, norm=norm, similarity=S).fit(related.X, related.y, tasks=related.task)
    n = len(related.y)
    for i in [1, 9, 30, 70, n - 1]:
        rest = np.delete(np.arange(n), i)
        refit = fixed(0.4, norm=norm, similarity=S, cv=None).fit(
            related.X[rest], related.y[rest], tasks=related.task[rest]
        )
        one = refit.scores(related.X[[i]], tasks=related.task[[i]])
        np.testing.assert_allclose(model.heldout_scores_[[i]], one, atol=1e-9)


def test_public_folds_are_those_of_public_refits(related):
    fold = np.arange(len(related.y)) % 4
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(4)]
    model = fixed(0.4, cv=splits).fit(related.X, related.y, tasks=related.task)
    for train, test in splits:
        refit = fixed(0.4, cv=None).fit(related.X[train], related.y[train], tasks=related.task[train])
        expected = refit.scores(related.X[test], tasks=related.task[test])
        np.testing.assert_allclose(model.heldout_scores_[test], expected, atol=1e-9)


@pytest.mark.parametrize("norm", ["function", "coefficients"])
def test_pooled_is_one_lspc(related, norm):
    X, task = new_rows(related)
    pooled = fixed(1.0, norm=norm).fit(related.X, related.y, tasks=related.task)
    single = LSPC(0.8, 0.01, norm=norm, calibration=None).fit(related.X, related.y)
    np.testing.assert_allclose(pooled.scores(X, tasks=task), single.scores(X), atol=1e-10)
    np.testing.assert_allclose(pooled.heldout_scores_, single.heldout_scores_, atol=1e-9)


def test_independent_is_one_lspc_for_each_task(related):
    X, task = new_rows(related)
    model = fixed(0.0).fit(related.X, related.y, tasks=related.task)
    F = model.scores(X, tasks=task)
    for code in range(2, 6):
        mine = related.task == code
        alpha = 0.01 * len(mine) / mine.sum()  # the same ridge on the sum of the losses
        single = LSPC(0.8, alpha, calibration=None, cv=None).fit(related.X[mine], related.y[mine])
        np.testing.assert_allclose(F[task == code], single.scores(X[task == code]), atol=1e-10)


def test_small_steps_away_from_the_limits_are_small(related):
    X, task = new_rows(related)
    for sharing, near in ((0.0, 1e-9), (1.0, 1 - 1e-9)):
        F = fixed(sharing).fit(related.X, related.y, tasks=related.task).scores(X, tasks=task)
        G = fixed(near).fit(related.X, related.y, tasks=related.task).scores(X, tasks=task)
        np.testing.assert_allclose(F, G, atol=1e-5)


def test_a_large_task_penalty_keeps_a_task_to_what_is_shared(related):
    X, _ = new_rows(related)
    penalty = dict.fromkeys(range(6), 1.0) | {5: 1e12}
    model = fixed(0.5, task_penalty=penalty).fit(related.X, related.y, tasks=related.task)
    np.testing.assert_allclose(model.scores(X, tasks=5), model.scores(X, tasks="nobody"), atol=1e-9)
    assert np.abs(model.scores(X, tasks=4) - model.scores(X, tasks="nobody")).max() > 0.01


def test_a_linear_kernel_has_the_inputs_for_basis_functions(related):
    X, task = new_rows(related)
    options = {"kernel": "linear", "bias": "shared"}
    arrow = MultiTaskLSPC(random_state=0, **options).fit(related.X, related.y, tasks=related.task)
    dual = MultiTaskLSPC(random_state=0, solver="dual", **options).fit(related.X, related.y, tasks=related.task)
    assert arrow.coef_.shape == (6, 2, 2)
    np.testing.assert_allclose(arrow.scores(X, tasks=task), dual.scores(X, tasks=task), atol=1e-8)


# ---------------------------------------------------------------- the choice


def test_sharing_is_chosen_by_the_data():
    rng = np.random.default_rng(0)
    for relatedness, low, high in ((0.98, 0.5, 1.0), (0.0, 0.0, 0.2)):
        data = make_related_tasks(8, 50, relatedness=relatedness, noise=0.1, random_state=4)
        model = MultiTaskLSPC(**PLAIN, random_state=0).fit(data.X, data.y, tasks=data.task)
        assert low <= model.sharing_ <= high
        X, task = rng.uniform(data.X.min(0), data.X.max(0), size=(2000, 2)), rng.integers(0, 8, 2000)
        y = (rng.uniform(size=2000) < data.posterior(X, task)[:, 1]).astype(int)
        loss = {
            sharing: task_log_loss(
                y,
                MultiTaskLSPC(**PLAIN, sharing=sharing, random_state=0)
                .fit(data.X, data.y, tasks=data.task)
                .predict_proba(X, tasks=task),
                task,
            )
            for sharing in (0.0, 1.0)
        }
        chosen = task_log_loss(y, model.predict_proba(X, tasks=task), task)
        assert chosen <= min(loss.values()) + 0.02


def test_a_grid_is_visited_whole(related):
    model = MultiTaskLSPC([0.5, 1.0], [0.01, 0.1], [0.0, 0.5, 1.0]).fit(related.X, related.y, tasks=related.task)
    seen = model.cv_results_
    points = set(zip(seen["param_sigma"], seen["param_alpha"], seen["param_sharing"], strict=True))
    assert len(points) == 12
    best = seen["rank_test_score"].argmin()
    assert (model.sigma_, model.alpha_, model.sharing_) == tuple(
        seen[f"param_{name}"][best] for name in ("sigma", "alpha", "sharing")
    )


@pytest.mark.parametrize("options", [{}, {"n_centers": 40}])
def test_a_search_on_some_tasks_comes_close_to_that_on_all(options):
    data = make_related_tasks(40, 20, random_state=1)
    some = MultiTaskLSPC(search_rows=300, random_state=0, **options).fit(data.X, data.y, tasks=data.task)
    every = MultiTaskLSPC(search_rows=None, random_state=0, **options).fit(data.X, data.y, tasks=data.task)
    assert set(some.cv_results_["n_rows"]) - {800}
    loss = [task_log_loss(data.y, m.heldout_proba_, data.task) for m in (some, every)]
    assert loss[0] < loss[1] + 0.01


@pytest.mark.parametrize("options", [{"groups": True}, {}])
def test_no_label_is_read_from_rounding(options):
    """At sharing = 0 nothing is known of a row whose whole task is held out, whichever way the scores come."""
    rng = np.random.default_rng(0)
    n = 1200
    X = rng.normal(size=(n, 3))
    y, task = (X[:, 0] + rng.normal(size=n) > 0).astype(int), np.arange(n) // (5 if options else 1)
    groups = task if options else None
    for search_rows in (300, None):
        model = MultiTaskLSPC(1.0, 1e-3, 0.0, n_centers=20, random_state=0, search_rows=search_rows)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("leastwise.fitting.task_problem.SETTLE_NUMBERS", 0)
            model.fit(X, y, tasks=task, groups=groups)
        assert not model.heldout_scores_.any()
        assert model.calibrator_.power <= 1


def test_coin_flips_are_not_learned_in_single_precision():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 100)).astype(np.float32), rng.integers(0, 2, 600)
    model = MultiTaskLSPC(**PLAIN, n_centers=100, random_state=0).fit(X, y, tasks=np.arange(600) % 60)
    assert model.heldout_scores_.dtype == np.float32
    assert task_log_loss(y, model.heldout_proba_, np.zeros(600)) > 0.66


def test_as_many_centres_as_rows_are_places_all_the_same():
    data = make_related_tasks(4, 15, random_state=0)
    w = np.random.default_rng(0).uniform(0.5, 2, 60)
    options = {"norm": "coefficients", "n_centers": 60, "solver": "arrow", "calibration": None, "cv": None}
    model = MultiTaskLSPC(0.8, 0.01, 0.5, **options).fit(data.X, data.y, sample_weight=w, tasks=data.task)
    given = MultiTaskLSPC(0.8, 0.01, 0.5, **{**options, "n_centers": None, "centers": data.X})
    given.fit(data.X, data.y, sample_weight=w, tasks=data.task)
    np.testing.assert_allclose(model.scores(data.X, data.task), given.scores(data.X, data.task), atol=1e-9)


def test_a_rare_class_does_not_widen_the_search():
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(2000), 10)
    y = rng.integers(0, 2, 20000)
    y[7] = 2
    names, key = (rng.integers(2**63, size=size, dtype=np.uint64) * 2 for size in (2000, 20000))
    index = some_units(task, names, y, np.ones(20000), 1000, key, LEAST_TASKS)
    assert len(index) <= 1100
    assert 7 in index
    assert set(np.bincount(task[index])) == {0, 10}  # whole tasks
    heavy = np.where(task < 3, 1e6, 1.0)
    assert set(range(3)) <= set(task[some_units(task, names, y, heavy, 500, key, LEAST_TASKS)])


def test_groups_have_to_stay_together():
    data = make_related_tasks(5, 20, random_state=0)
    model = MultiTaskLSPC(0.8, 0.01, 0.5, cv=StratifiedTaskKFold(5))
    with pytest.raises(ValueError, match="spreads rows of one group over several folds"):
        model.fit(data.X, data.y, tasks=data.task, groups=np.arange(100) // 2)
    model.fit(data.X, data.y, tasks=data.task)
    column = MultiTaskLSPC(0.8, 0.01, 0.5, task_column=0, cv=StratifiedTaskKFold(5, task_column=0))
    column.fit(np.column_stack([data.task, data.X]), data.y)


def test_rows_that_cannot_be_searched_on_are_streamed(monkeypatch):
    """Where all rows would not fit in memory, alpha and sharing stay as found on some of them."""
    data = make_related_tasks(40, 20, random_state=1)
    model = MultiTaskLSPC(**PLAIN, n_centers=30, search_rows=300, random_state=0)
    settled = set(model.fit(data.X, data.y, tasks=data.task).cv_results_["n_rows"])
    monkeypatch.setattr("leastwise.fitting.task_problem.available_memory", lambda: 1)
    model.fit(data.X, data.y, tasks=data.task)
    assert settled == {300, 800}
    assert set(model.cv_results_["n_rows"]) == {300}
    assert np.isfinite(model.heldout_scores_).all()


def test_strangers_have_probabilities_that_hold():
    """Calibrated on tasks held out whole, they must not be surer than the class shares allow."""
    data = make_related_tasks(30, 25, relatedness=0.7, noise=0.2, random_state=2)
    known = data.task < 20
    model = MultiTaskLSPC(**PLAIN, random_state=0).fit(data.X[known], data.y[known], tasks=data.task[known])
    P = model.predict_proba(data.X[~known], tasks=data.task[~known])
    y = data.y[~known]
    shares = np.bincount(data.y[known]) / known.sum()
    loss = -np.mean(np.log(P[np.arange(len(y)), y]))
    assert loss < -np.mean(np.log(shares[y])) - 0.05
    naive = model.calibrator_.proba(model.scores(data.X[~known], tasks=data.task[~known]))
    assert loss < -np.mean(np.log(naive[np.arange(len(y)), y])) + 0.01


# -------------------------------------------------------- learned similarity


def test_learned_similarity_keeps_reversed_tasks_apart():
    data = make_related_tasks(12, 30, relatedness=0.9, reversed_tasks=6, noise=0.15, random_state=3)
    rng = np.random.default_rng(0)
    X, task = rng.uniform(data.X.min(0), data.X.max(0), size=(3000, 2)), rng.integers(0, 12, 3000)
    y = (rng.uniform(size=3000) < data.posterior(X, task)[:, 1]).astype(int)
    area = {}
    for similarity in ("shared", "learned"):
        model = MultiTaskLSPC(**PLAIN, similarity=similarity, random_state=0).fit(data.X, data.y, tasks=data.task)
        area[similarity] = task_auc(y, model.predict_proba(X, tasks=task)[:, 1], task)
    S, turned = model.similarity_, data.is_reversed
    across, within = S[np.ix_(turned, ~turned)].mean(), S[np.ix_(~turned, ~turned)].mean()
    assert across < 0.2 < 0.5 < within
    assert area["learned"] > area["shared"] + 0.01


@pytest.mark.parametrize("similarity", ["correlation", "inputs"])
def test_similarities_from_data(related, similarity):
    model = MultiTaskLSPC(**PLAIN, similarity=similarity, random_state=0).fit(
        related.X, related.y, tasks=related.task
    )
    S = model.similarity_
    np.testing.assert_allclose(S, S.T)
    assert (S >= 0).all()
    assert np.diagonal(model.coupling_).mean() == pytest.approx(1)


@pytest.mark.skipif("landmine" not in available(DATA), reason="needs the Landmine data: set LEASTWISE_DATA")
def test_reversed_minefields_do_no_harm():
    data = load("landmine", DATA)
    rng = np.random.default_rng(0)
    y = np.where(data.task >= 15, 1 - data.y, data.y)
    train = []
    for code in range(17):
        mine = np.flatnonzero(data.task == code)
        rare = rng.permutation(mine[data.y[mine] == 1])[:3]
        train += [rare, rng.permutation(mine[data.y[mine] == 0])[:27]]
    train = np.concatenate(train)
    test = np.setdiff1d(np.flatnonzero(data.task < 17), train)
    area = {}
    for name, options in {"shared": {}, "learned": {"similarity": "learned"}, "pooled": {"sharing": 1.0}}.items():
        model = MultiTaskLSPC(random_state=0, **options).fit(data.X[train], y[train], tasks=data.task[train])
        P = model.predict_proba(data.X[test], tasks=data.task[test])
        area[name] = task_auc(y[test], P[:, 1], data.task[test])
        if name == "learned":
            assert model.similarity_[15, 16] > 0.6
            assert model.similarity_[15:, :15].max() < 0.2
    assert area["learned"] > area["shared"] - 0.02
    assert area["learned"] > area["pooled"] + 0.05
