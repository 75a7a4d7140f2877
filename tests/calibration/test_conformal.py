"""Sets of classes: against their definition by loops, and against what they promise."""

import pickle

import numpy as np
import pytest
from conftest import blobs
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from leastwise import (
    LSPC,
    LSSVC,
    KernelLogisticRegression,
    MultiLabelLSPC,
    MultiTaskKernelLogisticRegression,
    MultiTaskLSPC,
    MultiTaskLSSVC,
)
from leastwise.calibration.conformal import OUTSIDE, CalibrationSet, _by_fold, class_levels, nonconformity
from leastwise.datasets import make_related_tasks, make_rotated_labels

X, Y = blobs(n=120, c=3, seed=4)
NEW = blobs(n=60, c=3, seed=4)[0] + 0.1
RNG = np.random.default_rng


def lspc(**changes):
    return LSPC(**{"sigma": 1.0, "alpha": 0.01, "random_state": 0, **changes})


def multi(**changes):
    return MultiTaskLSPC(**{"sigma": 1.0, "alpha": 0.01, "sharing": 0.5, "random_state": 0, **changes})


def by_definition(held, codes, P, coverage, method, allow_empty=False):
    """Split conformal sets, row by row and class by class."""

    def score(p, k):
        return 1 - p[k] if method == "lac" else p[p > p[k]].sum()

    seen = sorted(score(p, k) for p, k in zip(held, codes, strict=True))
    rank = int(np.ceil(coverage * (len(seen) + 1) - 1e-9))
    level = seen[rank - 1] if rank <= len(seen) else np.inf
    rows = [[score(p, k) <= level + 1e-12 for k in range(len(p))] for p in P]
    for p, row in zip(P, rows, strict=True):
        if not any(row) and not allow_empty:
            row[int(np.argmax(p))] = True
    return np.array(rows)


@pytest.mark.parametrize("fold", [[2, 0, 1, 3], [0, 0, 1, 1, 1], [1, 0, 2, 0, 1, 2], [0, 0, 0]])
def test_sums_over_the_columns_of_folds(fold):
    fold = np.array(fold)
    A = RNG(0).normal(size=(3, len(fold)))
    expected = np.stack([A[:, fold == k].sum(axis=1) for k in range(fold.max() + 1)], axis=1)
    np.testing.assert_allclose(_by_fold(A, fold), expected)


# ------------------------------------------------------------------ against the definition


@pytest.mark.parametrize("method", ["lac", "aps"])
@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("allow_empty", [False, True])
@pytest.mark.parametrize("make", [lspc, LSSVC, KernelLogisticRegression], ids=["LSPC", "LSSVC", "KLR"])
def test_sets_are_their_definition(make, method, coverage, allow_empty):
    model = make() if make is lspc else make(1.0, 0.01)
    model.fit(X, Y)
    made = model.predict_set(NEW, coverage, method=method, allow_empty=allow_empty)
    expected = by_definition(model.heldout_proba_, Y, model.predict_proba(NEW), coverage, method, allow_empty)
    np.testing.assert_array_equal(made, expected)
    assert made.dtype == bool


@pytest.mark.parametrize("by_class", [False, True])
def test_chosen_hyperparameters_raise_the_rank(by_class):
    """Half an observation for each of sigma and alpha; of a class, its share of that."""
    model = lspc(sigma=[0.5, 1.0, 2.0], alpha=[1e-3, 1e-2, 1e-1]).fit(X[:90], Y[:90])
    made = model.predict_set(NEW, 0.8, by_class=by_class, allow_empty=True)
    P, new, y = model.heldout_proba_, model.predict_proba(NEW), Y[:90]
    for k in range(new.shape[1]):
        rows = y == k if by_class else np.full(90, True)
        scores = np.sort((1 - P[np.arange(90), y])[rows])
        level = scores[int(np.ceil(0.8 * (rows.sum() + 1) + rows.sum() / 90 - 1e-9)) - 1]
        np.testing.assert_array_equal(made[:, k], 1 - new[:, k] <= level + 1e-12)


def test_sets_keep_their_coverage_if_all_hyperparameters_are_chosen_on_few_rows():
    """40 draws of 40 overlapping rows, default search. Without the correction, 0.885 are covered."""
    covered = []
    for seed in range(40):
        rng = RNG(seed)
        y = rng.integers(0, 2, 540)
        rows = rng.normal(size=(540, 2)) + 2.4 * np.outer(y, [1, 0])
        model = LSPC().fit(rows[:40], y[:40])
        covered.append(model.predict_set(rows[40:], 0.9)[np.arange(500), y[40:]].mean())
    assert np.mean(covered) >= 0.9


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_aps_is_the_mass_above_the_class(seed, c):
    P = RNG(seed).dirichlet(np.ones(c), 8)
    total = nonconformity(P, "aps", RNG(0))
    for p, row in zip(P, total, strict=True):
        np.testing.assert_allclose(row, [p[p > v].sum() for v in p], atol=1e-12)
    more = nonconformity(P, "random-aps", RNG(0))
    assert ((more >= total) & (more <= total + P)).all()
    assert (nonconformity(P, "lac", RNG(0)) == 1 - P).all()


def test_a_class_has_the_level_of_its_own_rows():
    model = lspc().fit(X, Y)
    made, held, P = model.predict_set(NEW, 0.8, by_class=True), model.heldout_proba_, model.predict_proba(NEW)
    for k in range(3):
        left = np.sort(1 - held[k == Y, k])
        level = left[int(np.ceil(0.8 * (len(left) + 1))) - 1]
        alone = made[:, k] & (1 - P[:, k] > level)  # put there as the set would be empty
        np.testing.assert_array_equal(made[:, k] & ~alone, 1 - P[:, k] <= level)


def test_a_class_of_few_rows_is_in_all_sets():
    few = np.r_[np.flatnonzero(Y != 2), np.flatnonzero(Y == 2)[:5]]
    made = lspc().fit(X[few], Y[few]).predict_set(NEW, 0.9, by_class=True)
    assert made[:, 2].all()
    assert not made[:, 0].all()


def test_more_coverage_is_a_larger_set():
    model = lspc().fit(X, Y)
    for method in ("lac", "aps"):
        a, b = (model.predict_set(NEW, c, method=method) for c in (0.6, 0.95))
        assert (a <= b).all()
        assert a.sum() < b.sum()


def test_empty_sets_are_for_those_who_ask():
    model = lspc().fit(X, Y)
    assert not model.predict_set(NEW, 0.3, allow_empty=True).any(axis=1).all()
    full = model.predict_set(NEW, 0.3)
    assert full.any(axis=1).all()
    np.testing.assert_array_equal(
        full.argmax(axis=1)[full.sum(axis=1) == 1], model.predict(NEW)[full.sum(axis=1) == 1]
    )


def test_chance_has_a_seed():
    model = lspc().fit(X, Y)
    sets = [model.predict_set(NEW, 0.8, method="random-aps", random_state=s) for s in (0, 0, 1)]
    np.testing.assert_array_equal(sets[0], sets[1])
    assert (sets[0] != sets[2]).any()


def test_weights_are_copies():
    P, codes, times = RNG(0).dirichlet(np.ones(3), 12), np.arange(12) % 3, np.arange(12) % 4 + 1
    scores = 1 - P[np.arange(12), codes]
    for coverage in (0.5, 0.7, 0.85):
        one = class_levels(scores, CalibrationSet(P, codes, times * 12 / times.sum()), coverage, False)
        share = np.repeat(scores, times)
        need = coverage * 13 * times.sum() / 12  # 12 rows and one to come, in units of the weights
        np.testing.assert_allclose(one, np.sort(share)[int(np.ceil(need - 1e-9)) - 1])


def test_rows_of_weight_zero_do_not_count():
    w = (np.arange(120) < 80).astype(float)
    one, other = lspc().fit(X, Y, sample_weight=w), lspc().fit(X[:80], Y[:80])
    np.testing.assert_array_equal(one.predict_set(NEW, 0.8), other.predict_set(NEW, 0.8))
    assert (one.heldout_rows_.codes[80:] == -1).all()
    np.testing.assert_array_equal(one.heldout_rows_.codes[:80], Y[:80])


def test_groups_are_one_witness_each():
    group = np.arange(120) // 8
    model = lspc().fit(X, Y, groups=group)
    P = model.predict_proba(NEW)
    left = 1 - model.heldout_proba_[np.arange(120), Y]
    order = np.argsort(left)
    level = left[order][np.argmax(np.cumsum(np.full(120, 1 / 8)) >= 0.8 * 16 - 1e-9)]
    np.testing.assert_array_equal(model.predict_set(NEW, 0.8, allow_empty=True), level >= 1 - P)
    assert model.predict_set(NEW, 0.95).all()  # 15 groups are too few


@pytest.mark.parametrize("more", [{"solver": "sgd", "n_centers": 30}, {"cv": 4}], ids=str)
@pytest.mark.filterwarnings("ignore")
def test_rows_that_were_not_held_out_do_not_count(more):
    model = lspc(**more).fit(X, Y)
    known = ~np.isnan(model.heldout_proba_[:, 0])
    expected = by_definition(model.heldout_proba_[known], Y[known], model.predict_proba(NEW), 0.8, "lac")
    np.testing.assert_array_equal(model.predict_set(NEW, 0.8), expected)


# ------------------------------------------------------------------------------- tasks


def tasks_data(n_tasks=5, n_rows=60, seed=0):
    data = make_related_tasks(n_tasks, n_rows, random_state=seed)
    return data.X, data.y, data.task


@pytest.mark.parametrize("make", [MultiTaskLSPC, MultiTaskLSSVC, MultiTaskKernelLogisticRegression])
def test_tasks_have_levels_of_their_own_where_they_have_rows(make):
    X, y, task = tasks_data()
    keep = (task > 0) | (np.arange(len(y)) % 60 < 45)  # the first has 45 rows: 50 are needed
    X, y, task = X[keep], y[keep], task[keep]
    model = make(1.0, 0.01, 0.5, random_state=0).fit(X, y, tasks=task)
    made = model.predict_set(X, 0.9, tasks=task, by_task=True)
    held, P = model.heldout_proba_, model.predict_proba(X, tasks=task)
    for t in range(5):
        rows = np.full(len(y), True) if t == 0 else task == t
        expected = by_definition(held[rows], y[rows], P[task == t], 0.9, "lac")
        np.testing.assert_array_equal(made[task == t], expected)
    together = model.predict_set(X, 0.9, tasks=task)
    np.testing.assert_array_equal(together, by_definition(held, y, P, 0.9, "lac"))
    assert OUTSIDE == 5


def test_tasks_that_are_not_known_have_levels_by_tasks_held_out_whole():
    X, y, task = tasks_data(12, 20)
    model = multi().fit(X, y, tasks=task)
    P = model.unseen_task_calibrator_.proba(model.unseen_task_scores_, model.heldout_rows_.in_domain)
    left = np.sort(1 - P[np.arange(len(y)), y])
    level = left[np.argmax(np.cumsum(np.full(240, 1 / 20)) >= 0.8 * 13 - 1e-9)]
    made = model.predict_set(X[:30], 0.8, tasks="new", allow_empty=True)
    np.testing.assert_array_equal(made, 1 - model.predict_proba(X[:30], tasks="new") <= level)
    assert model.predict_set(X[:30], 0.95, tasks="new").all()  # 12 tasks are too few
    mixed = model.predict_set(X[:4], 0.8, tasks=[0, "new", 0, "new"])
    np.testing.assert_array_equal(mixed[1::2], model.predict_set(X[1:4:2], 0.8, tasks="new"))
    np.testing.assert_array_equal(mixed[::2], model.predict_set(X[:4:2], 0.8, tasks=0))


# ------------------------------------------------------------------------------ labels


def test_labels_have_sets_of_their_own():
    data = make_rotated_labels(n_labels=4, n_rows=150, n_features=4, random_state=0)
    table = data.Y.astype(float)
    table[::5, 2] = np.nan
    model = MultiLabelLSPC(2.0, 0.01, 0.2, random_state=0).fit(data.X, table)
    made, P, held = model.predict_set(data.X, 0.85), model.predict_proba(data.X), model.heldout_proba_
    assert made.shape == (150, 4, 2)
    for t in range(4):
        known = ~np.isnan(table[:, t])
        both = [np.column_stack([1 - p, p]) for p in (held[known, t], P[:, t])]
        expected = by_definition(both[0], table[known, t].astype(int), both[1], 0.85, "lac")
        np.testing.assert_array_equal(made[:, t], expected)


def test_labels_of_more_classes_come_as_a_list():
    table = np.column_stack([Y, Y == 0])
    model = MultiLabelLSPC(1.0, 0.01, random_state=0).fit(X, table)
    made = model.predict_set(NEW, 0.9)
    assert [m.shape for m in made] == [(60, 3), (60, 2)]
    flat = MultiLabelLSPC(1.0, 0.01, random_state=0).fit(X, Y)
    expected = by_definition(flat.heldout_proba_, Y, flat.predict_proba(NEW), 0.9, "lac")
    np.testing.assert_array_equal(flat.predict_set(NEW, 0.9), expected)


# ----------------------------------------------------------------------- what they promise


def three(rng, n):
    y = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    return np.array([[0, 0], [1.5, 0], [0.7, 1.5]])[y] + rng.normal(size=(n, 2)), y


def inside(made, y):
    return made[np.arange(len(y)), y]


@pytest.mark.parametrize("method", ["lac", "aps", "random-aps"])
@pytest.mark.parametrize("make", [lspc, lambda: LSSVC(1.0, 0.01)], ids=["LSPC", "LSSVC"])
def test_nine_of_ten_are_covered(make, method):
    """60 draws of 60 rows: the mean has a standard error of about 0.006."""
    rng, shares = RNG(0), []
    for _ in range(60):
        model, (rows, y) = make().fit(*three(rng, 60)), three(rng, 300)
        shares.append(inside(model.predict_set(rows, 0.9, method=method, allow_empty=True, random_state=0), y).mean())
    assert 0.87 < np.mean(shares) < (0.98 if method == "aps" else 0.94)


def test_every_class_is_covered_if_that_is_asked_for():
    rng, plain, by_class = RNG(0), [], []
    for _ in range(40):
        model, (rows, y) = lspc().fit(*three(rng, 150)), three(rng, 1000)
        for shares, flag in ((plain, False), (by_class, True)):
            hit = inside(model.predict_set(rows, 0.8, by_class=flag), y)
            shares.append([hit[y == k].mean() for k in range(3)])
    assert np.mean(plain, axis=0).min() < 0.7
    assert np.mean(by_class, axis=0).min() > 0.76


def test_every_task_is_covered_if_that_is_asked_for():
    """Tasks of which some are noise: their sets have to be larger than those of the others."""
    plain, by_task = [], []
    for seed in range(15):
        X, y, task = tasks_data(4, 200, seed)
        noisy = np.flatnonzero((task == 0) & (RNG(seed).random(len(y)) < 0.4))
        y = y.copy()
        y[noisy] = 1 - y[noisy]
        old = np.arange(len(y)) % 200 < 80
        model = multi().fit(X[old], y[old], tasks=task[old])
        for shares, flag in ((plain, False), (by_task, True)):
            hit = inside(model.predict_set(X[~old], 0.9, tasks=task[~old], by_task=flag), y[~old])
            shares.append([hit[task[~old] == t].mean() for t in range(4)])
    assert np.mean(plain, axis=0)[0] < 0.84
    assert np.mean(by_task, axis=0).min() > 0.87


def test_labels_are_covered():
    shares = []
    for seed in range(15):
        data = make_rotated_labels(n_labels=3, n_rows=260, n_features=4, noise=0.15, random_state=seed)
        model = MultiLabelLSPC(2.0, 0.01, 0.2, random_state=0).fit(data.X[:60], data.Y[:60])
        made = model.predict_set(data.X[60:], 0.9)
        shares.append([inside(made[:, t], data.Y[60:, t].astype(int)).mean() for t in range(3)])
    assert 0.86 < np.mean(shares) < 0.97


# ------------------------------------------------------------------------------ at the edge


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 2, True, "0.9", np.array([0.5, 0.9])], ids=str)
def test_bad_coverage_is_named(coverage):
    with pytest.raises(ValueError, match=r"coverage=.* above 0 and below 1"):
        lspc().fit(X, Y).predict_set(NEW, coverage)


def test_bad_calls_say_what_to_do():
    with pytest.raises(NotFittedError):
        lspc().predict_set(NEW)
    with pytest.raises(ValueError, match="method='raps'"):
        lspc().fit(X, Y).predict_set(NEW, method="raps")
    with pytest.raises(ValueError, match="cv=None holds nothing out"):
        lspc(cv=None, calibration=None).fit(X, Y).predict_set(NEW)


@pytest.mark.parametrize("n", [3, 8])
def test_too_few_rows_give_all_classes(n):
    some = np.r_[np.flatnonzero(Y == 0)[: n - n // 2], np.flatnonzero(Y == 1)[: n // 2]]
    assert lspc().fit(X[some], Y[some]).predict_set(NEW, 0.9).all()


def test_a_model_from_a_file_gives_equal_sets():
    model = lspc().fit(X.astype(np.float32), Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_set(NEW), model.predict_set(NEW))
