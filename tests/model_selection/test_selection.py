"""Grids, the ways through them, and the plan."""

from dataclasses import dataclass

import numpy as np
import pytest
from conftest import blobs

from leastwise.model_selection.folds import held_out_tenth, stratified_rows
from leastwise.model_selection.grids import GROWTH, Grid, explore, walk
from leastwise.model_selection.search import natural_height, natural_length
from leastwise.problem.basis import make_basis
from leastwise.problem.centers import Recipe
from leastwise.solvers.evaluator import Candidate, Rows
from leastwise.solvers.heldout import Folds
from leastwise.solvers.work import SEARCH_ROWS, cheaper_to_refit, rows_to_search


@dataclass
class Point:
    value: float
    score: float

    def clearly_better(self, other):
        return self.score > other.score

    def better_than(self, other):
        return other is None or self.score > other.score


def hill(top):
    visited = []

    def visit(value, last):
        assert last is None or isinstance(last, Point)
        visited.append(value)
        return Point(value, -abs(np.log(value / top)))

    return visit, visited


@pytest.mark.parametrize(("top", "expected"), [(3.0, 4.0), (100.0, 128.0), (0.01, 0.0078125)])
def test_explore_grows_until_the_best_is_inside(top, expected):
    visit, visited = hill(top)
    best = explore(Grid((1.0, 2.0, 4.0, 8.0), 2.0), visit)
    assert best.value == expected
    assert len(set(visited)) == len(visited)


def test_explore_without_growth_stays_inside():
    visit, visited = hill(100.0)
    assert explore(Grid((1.0, 2.0, 4.0), 2.0), visit, grow=False).value == 4.0
    visit, visited = hill(100.0)
    assert explore(Grid((1.0, 2.0, 4.0)), visit).value == 4.0
    assert visited == [1.0, 2.0, 4.0]


def test_walk_goes_up_where_down_is_no_better():
    for top, expected in ((0.011, 0.01), (90.0, 100.0), (1.0, 1.0)):
        visit, visited = hill(top)
        assert walk(Grid((0.001, 1.0, 1000.0), 10.0), 1.0, visit).value == pytest.approx(expected)
        assert len(set(visited)) == len(visited)


def test_walk_does_not_visit_what_is_known():
    visit, visited = hill(5.0)
    assert walk(Grid((0.001, 1.0, 1000.0), 10.0), 1.0, visit, Point(1.0, -np.log(5.0))).value == pytest.approx(10.0)
    assert 1.0 not in visited


def test_a_start_outside_of_the_grid_is_moved_to_its_border():
    visit, _ = hill(1.0)
    assert walk(Grid((1.0, 10.0), 10.0), 1e-30, visit).value == pytest.approx(10**0.5, rel=0.9)


def test_growth_ends():
    visit, visited = hill(1e30)
    explore(Grid((1.0, 2.0), 2.0), visit)
    assert len(visited) == 2 + GROWTH


def test_walk_finds_the_top_and_visits_nothing_twice():
    for grid in (Grid((1.0, 10.0, 100.0, 1000.0)), Grid((1.0, 10.0), 10.0)):
        visit, visited = hill(800.0)
        assert walk(grid, 1.3, visit).value == pytest.approx(1000.0 if not grid.ratio else 1300.0)
        assert len(set(visited)) == len(visited)
    visit, visited = hill(7.0)
    assert walk(Grid((7.0,)), 1.0, visit).value == 7.0
    assert visited == [7.0]


def rows(n=60, **kw):
    X, y = blobs(n)
    labels = {name: np.arange(n) for name in ("fold", "copy", "group")}
    return Rows(**({"X": X, "y": y, "w": np.ones(n)} | labels | kw))


def test_natural_length_ignores_copies():
    from leastwise.problem.kernels import RBF, Linear

    one = rows()
    double = rows(X=np.vstack([one.X[:30], one.X[:30]]), copy=np.r_[np.arange(30), np.arange(30)])
    half = rows(30, X=one.X[:30])
    assert natural_length(RBF(), double) == pytest.approx(natural_length(RBF(), half))
    assert natural_length(Linear(), one) == 1.0
    with pytest.raises(ValueError, match="All rows of X are equal"):
        natural_length(RBF(), rows(X=np.ones((60, 2)), copy=np.zeros(60, int)))


def test_natural_height_is_the_mean_diagonal():
    from leastwise.problem.kernels import RBF, Linear

    r = rows()
    height = (r.X**2).sum(axis=1).mean()
    assert natural_height(RBF(), r, 1.0, "function") == 1.0
    assert natural_height(Linear(), r, 1.0, "function") == pytest.approx(height)
    assert natural_height(Linear(), r, 1.0, "coefficients") == pytest.approx(height**2)


def test_natural_height_of_a_large_kernel_matrix_is_that_of_its_diagonal():
    from leastwise.problem.kernels import Precomputed

    X = np.random.default_rng(0).normal(size=(300, 2))
    K = 3 * np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    assert natural_height(Precomputed(), rows(300, X=K), 1.0, "function") == pytest.approx(3)


def test_stratified_rows_keep_the_proportions(rng):
    y = np.repeat([0, 1, 2], [600, 300, 3])
    picked = stratified_rows(y, 100, rng.integers(2**63, size=len(y), dtype=np.uint64))
    counts = np.bincount(y[picked])
    assert counts.tolist() == [66, 33, 2]
    assert (np.diff(picked) > 0).all()


def test_taking_rows_keeps_weights_at_mean_one():
    w = np.random.default_rng(0).uniform(0.5, 2, 60)
    part = rows(w=w / w.mean(), mass=3.0).take(np.arange(20), precomputed=False)
    assert part.w.mean() == pytest.approx(1)
    assert part.mass == pytest.approx(3 * (w / w.mean())[:20].mean())
    K = np.arange(3600.0).reshape(60, 60)
    np.testing.assert_array_equal(rows(X=K).take(np.array([1, 5]), precomputed=True).X, K[np.ix_([1, 5], [1, 5])])


def test_plan_searches_all_rows_where_that_is_cheap(rng):
    def basis(n, **kw):
        return make_basis(
            Recipe(**kw), np.zeros((n, 1)), np.arange(n) % 4, np.ones(n), np.arange(n), np.arange(n), rng
        )

    assert rows_to_search(basis(800), 800, "auto") == 800
    assert rows_to_search(basis(5000), 5000, "auto") == SEARCH_ROWS
    assert rows_to_search(basis(5000, n_centers=100), 5000, "auto") == 5000
    few = rows_to_search(basis(50_000, n_centers=1000), 50_000, "auto")
    assert SEARCH_ROWS <= few < 50_000
    assert SEARCH_ROWS < rows_to_search(basis(5000, kind="class"), 5000, "auto") <= 5000
    assert rows_to_search(basis(5000), 5000, 300) == 300
    assert rows_to_search(basis(5000), 5000, None) == 5000


def test_plan_refits_where_folds_are_few_and_large():
    def cheaper(k, n=1000, alphas=8):
        return cheaper_to_refit(n, n, Folds.from_labels(np.arange(n) % k), True, True, alphas)

    assert cheaper(2)
    assert not cheaper(100)
    assert not cheaper(1000)  # leave-one-out


def test_held_out_tenth_takes_whole_groups_and_leaves_every_class():
    group = np.arange(60) // 3
    held = held_out_tenth(rows(group=group), "sgd")
    assert 3 <= len(held) <= 6
    assert set(np.flatnonzero(np.isin(group, group[held]))) == set(held)
    y = np.repeat([0, 1], [58, 2])
    for seed in range(20):
        assert np.sum(y[held_out_tenth(rows(y=y, X=blobs(60, seed=seed)[0]), "sgd")] == 1) <= 1
    few = np.repeat([0, 1], [40, 20])
    np.testing.assert_array_equal(held_out_tenth(rows(group=few, y=np.zeros(60, int)), "sgd"), np.arange(40, 60))
    with pytest.raises(ValueError, match=r"solver='sgd' .* use another solver"):
        held_out_tenth(rows(group=np.zeros(60, int)), "sgd")


def test_points_judged_on_all_rows_rank_first():
    from leastwise.model_selection.search import table

    seen = [{"sigma": 1, "alpha": 1, "score": s, "rows": r} for s, r in ((-0.1, 100), (-0.3, 500), (-0.2, 500))]
    assert table(seen)["rank_test_score"].tolist() == [3, 2, 1]


def test_a_plateau_is_not_followed():
    """All points alike: the smoothest of the grid, and not one beyond it."""
    visited = []

    def visit(value, last):
        visited.append(value)
        return Candidate(1.0, value, -0.5, np.empty(0), None)

    assert explore(Grid((1.0, 2.0, 4.0), 2.0), visit).alpha == 4
    assert visited == [1, 2, 4]
    assert walk(Grid((1.0, 2.0, 4.0), 2.0), 2.0, visit).alpha == 2
