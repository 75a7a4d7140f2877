"""Limits on the share of missed rows of a class: the level, its guarantee, and where it is applied."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from leastwise import LSPC, Abstaining, MultiLabelLSPC, MultiTaskLSPC, load, save
from leastwise.calibration.conformal import CalibrationSet
from leastwise.calibration.misses import LEVELS, blocked, miss_bound, miss_level, smallest_miss_limit
from leastwise.estimators._abstention_rows import decided


def drawn(n, rng, power=3.0):
    """Two classes, the second one rare; probabilities are calibrated."""
    p = rng.random(n) ** power
    return CalibrationSet(np.column_stack([1 - p, p]), (rng.random(n) < p).astype(int), np.ones(n))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("limit", [0.02, 0.1])
def test_the_level_is_the_largest_up_to_which_all_levels_pass(seed, limit):
    e = drawn(800, np.random.default_rng(seed))
    codes = decided(e.P, 0.5)
    rows = e.codes == 1
    best = 0.0
    for level in LEVELS:
        missed = int(np.sum(rows & (codes == 0) & (e.P[:, 1] < level)))
        if binom.cdf(missed, rows.sum(), limit) > 0.05:
            break
        best = level
    assert miss_level(e, codes, 1, limit, 0.05) == best
    if best:
        bound = miss_bound(e, codes, 1, best, 0.05)
        missed = int(np.sum(rows & (codes == 0) & (e.P[:, 1] < best)))
        assert bound <= limit
        assert binom.cdf(missed, rows.sum(), bound) == pytest.approx(0.05)


@pytest.mark.parametrize(("limit", "n"), [(0.05, 300), (0.1, 150), (0.03, 600)])
def test_the_share_of_missed_rows_is_above_the_limit_no_more_often_than_promised(limit, n):
    rng, fresh = np.random.default_rng(0), drawn(200_000, np.random.default_rng(1))
    of_class = fresh.P[fresh.codes == 1, 1]
    broken, naive = 0, 0
    for _ in range(400):
        e = drawn(n, rng)
        codes = decided(e.P, 0.5)
        level = miss_level(e, codes, 1, limit, 0.1)
        broken += np.mean((of_class <= 0.5) & (of_class < level)) > limit
        seen = np.sort(e.P[(e.codes == 1), 1])
        naive += np.mean((of_class <= 0.5) & (of_class < np.quantile(seen, limit))) > limit
    assert broken <= binom.ppf(0.999, 400, 0.1)
    assert naive > 100  # the level at which the held-out share is just the limit breaks it


def test_groups_and_weights_know_less_than_single_rows():
    e = drawn(1000, np.random.default_rng(3))
    codes = decided(e.P, 0.5)
    one = miss_level(e, codes, 1, 0.1, 0.05)
    grouped = CalibrationSet(e.P, e.codes, e.w, group=np.arange(1000) // 5)
    weighted = CalibrationSet(e.P, e.codes, np.random.default_rng(0).uniform(0.5, 2, 1000))
    assert miss_level(grouped, codes, 1, 0.1, 0.05) < one
    assert 0 < miss_level(weighted, codes, 1, 0.1, 0.05) <= one
    assert miss_level(CalibrationSet(e.P, e.codes, e.w, hidden=6.0), codes, 1, 0.1, 0.05) < one


def test_rows_are_blocked_by_the_probability_of_a_class_that_is_not_predicted():
    P = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.85, 0.05, 0.1]])
    levels = np.array([np.inf, 0.1, np.inf])
    assert blocked(P, P.argmax(axis=1), levels).tolist() == [True, True, False]
    assert blocked(P, np.array([1, 1, 1]), levels).tolist() == [False] * 3


def rare(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.6 * rng.normal(size=n) > 1.3, "fault", "fine")
    return X, y


@pytest.fixture(scope="module")
def both():
    X, y = rare(900)
    plain = Abstaining(LSPC(sigma=2.0, alpha=1e-3, random_state=0), max_error=0.05).fit(X, y)
    careful = Abstaining(LSPC(sigma=2.0, alpha=1e-3, random_state=0), max_error=0.05, max_miss={"fault": 0.1})
    return plain, careful.fit(X, y)


def missed(model, X, y, name="fault"):
    """Share of the rows of a class that are accepted as another one."""
    predicted = model.predict(X)
    return np.mean((predicted[y == name] != name) & model.accepts(X[y == name]))


def test_an_overall_limit_misses_the_rare_class_and_a_limit_for_it_does_not(both):
    plain, careful = both
    X, y = rare(20_000, 1)
    assert missed(plain, X, y) > 0.15
    assert missed(careful, X, y) < 0.1
    assert careful.accepts(X).mean() > 0.5
    assert np.mean(careful.predict(X)[careful.accepts(X)] != y[careful.accepts(X)]) < 0.05
    assert np.isinf(careful.miss_levels_[1])
    assert np.isnan(careful.miss_bounds_[1])
    assert 0 < careful.miss_levels_[0] < 0.5
    assert 0 < careful.miss_bounds_[0] <= 0.1


def test_accepted_rows_are_those_that_keep_the_level(both):
    model, X = both[1], rare(500, 2)[0]
    P, predicted = model.predict_proba(X), model.estimator_.predict(X)
    expected = (P.max(axis=1) >= model.threshold_) & ((predicted == "fault") | (P[:, 0] < model.miss_levels_[0]))
    np.testing.assert_array_equal(model.accepts(X), expected)
    assert not expected.all()


def test_a_limit_of_a_class_can_stand_alone(both):
    X, y = rare(900)
    alone = Abstaining(LSPC(sigma=2.0, alpha=1e-3, random_state=0), max_miss={"fault": 0.1}).fit(X, y)
    assert alone.threshold_ == 0
    assert alone.miss_levels_[0] == both[1].miss_levels_[0]
    assert alone.accepts(X[alone.estimator_.predict(X) == "fault"]).all()
    assert alone.coverage_ == pytest.approx(alone.accepts(X).mean(), abs=0.02)


def test_too_few_rows_of_a_class_accept_that_class_only_and_say_what_is_possible():
    X, y = rare(200)
    with pytest.warns(UserWarning, match=r"max_miss\['fault'\]=0.01 cannot be guaranteed with .* held-out rows"):
        model = Abstaining(LSPC(sigma=2.0, alpha=1e-3), max_miss={"fault": 0.01}).fit(X, y)
    assert model.miss_levels_[0] == 0
    assert model.miss_bounds_[0] == 0
    assert set(model.predict(X)[model.accepts(X)]) == {"fault"}
    e = model.estimator_._calibration_set()
    codes, possible = (
        decided(e.P, 0.5),
        smallest_miss_limit(model.estimator_._calibration_set(), decided(e.P, 0.5), 0, 0.05),
    )
    level = miss_level(e, codes, 0, possible, 0.05)
    assert np.any((codes != 0) & (e.P[:, 0] < level))
    assert possible > 0.05


def test_labels_have_limits_on_rows_that_have_them():
    X, y = rare(900)
    Y = np.column_stack([y == "fault", X[:, 1] > 0]).astype(int)
    make = MultiLabelLSPC(sigma=2.0, alpha=1e-3, random_state=0)
    model = Abstaining(make, max_error=0.05, max_miss={0: 0.1}).fit(X, Y)
    new, name = rare(5000, 1)
    positive = (name == "fault") & model.accepts(new)[:, 0]
    assert np.sum(model.predict(new)[positive, 0] == 0) / np.sum(name == "fault") < 0.1
    assert 0 < model.miss_levels_[0] < 1
    assert np.isinf(model.miss_levels_[1])
    np.testing.assert_array_equal(
        model.accepts(new)[:, 1], Abstaining(make, max_error=0.05).fit(X, Y).accepts(new)[:, 1]
    )


def tasks_model():
    X, y = rare(900)
    tasks = np.arange(900) % 30
    model = Abstaining(MultiTaskLSPC(sigma=2.0, alpha=1e-3, sharing=0.8), max_error=0.1, max_miss={"fault": 0.3})
    return model.fit(X, y, tasks=tasks), X, tasks


def test_unseen_tasks_have_levels_of_their_own():
    model, X, _ = tasks_model()
    new = np.full(len(X), 99)
    assert model.unseen_task_miss_levels_.shape == (2,)
    assert model.unseen_task_miss_levels_[0] <= model.miss_levels_[0]
    P, predicted = model.predict_proba(X, tasks=new), model.estimator_.predict(X, tasks=new)
    keeps = (predicted == "fault") | (P[:, 0] < model.unseen_task_miss_levels_[0])
    np.testing.assert_array_equal(
        model.accepts(X, tasks=new), keeps & (P.max(axis=1) >= model.unseen_task_threshold_)
    )


def test_any_classifier_can_be_frozen():
    X, y = rare(3000)
    inner = FrozenEstimator(LogisticRegression().fit(X[:1000], y[:1000]))
    model = Abstaining(inner, max_miss={"fault": 0.05}).fit(X[1000:], y[1000:])
    assert missed(model, *rare(20_000, 5)) < 0.05


def test_files_and_onnx_accept_the_same_rows(both, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    from leastwise.onnx import to_onnx

    X = rare(300, 7)[0]
    save(both[1], tmp_path / "m.lw")
    np.testing.assert_array_equal(load(tmp_path / "m.lw").accepts(X), both[1].accepts(X))
    graph = to_onnx(both[1], dtype="float64").SerializeToString()
    label, _, accepted = runtime.InferenceSession(graph).run(None, {"X": X})
    np.testing.assert_array_equal(accepted, both[1].accepts(X))
    assert set(label[~accepted]) == {""}
    model, X, tasks = tasks_model()
    save(model, tmp_path / "t.lw")
    graph = runtime.InferenceSession(to_onnx(load(tmp_path / "t.lw"), dtype="float64").SerializeToString())
    names = [part.name for part in graph.get_inputs()]
    for task in (tasks, np.full(len(X), 99)):
        got = graph.run(["accepted"], dict(zip(names, (X, task), strict=True)))[0]
        np.testing.assert_array_equal(got, model.accepts(X, tasks=task))


def test_labels_in_onnx():
    runtime = pytest.importorskip("onnxruntime")
    from leastwise.onnx import to_onnx

    X, y = rare(600)
    Y = np.column_stack([y == "fault", X[:, 1] > 0]).astype(int)
    model = Abstaining(MultiLabelLSPC(sigma=2.0, alpha=1e-3), max_miss={0: 0.2}).fit(X, Y)
    graph = runtime.InferenceSession(to_onnx(model, dtype="float64").SerializeToString())
    np.testing.assert_array_equal(graph.run(["accepted"], {"X": X})[0], model.accepts(X))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"fault": 2}, r"max_miss\['fault'\]=2 must be a number above 0 and below 1"),
        ({"faulty": 0.1}, "max_miss names 'faulty'; the classes are"),
        (0.1, "max_miss=0.1 must map classes to limits"),
        ({}, "Give one of max_error"),
    ],
)
def test_bad_limits_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        Abstaining(LSPC(sigma=2.0, alpha=1e-3), max_miss=given).fit(*rare(100))
