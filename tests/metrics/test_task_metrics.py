"""Scores by task, against scikit-learn on the rows of each."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss, roc_auc_score

from leastwise.metrics.probabilities import task_auc, task_log_loss


def sample(c=2, n=300, n_tasks=5, seed=0):
    """Labels, probabilities with ties, tasks, weights."""
    rng = np.random.default_rng(seed)
    P = np.round(rng.dirichlet(np.ones(c), n), 1) + 0.05
    return rng.integers(0, c, n), P / P.sum(axis=1, keepdims=True), rng.integers(0, n_tasks, n), rng.uniform(0, 2, n)


def by_task(tasks, function):
    return np.array([function(tasks == t) for t in np.unique(tasks)])


# ------------------------------------------------------------------------ auc


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("c", [2, 3, 4])
def test_auc_is_that_of_scikit_learn(c, weighted):
    y, P, tasks, w = sample(c)
    w = w if weighted else None
    score = P[:, 1] if c == 2 else P

    def area(rows):
        more = {} if c == 2 else {"multi_class": "ovr", "average": "weighted"}
        return roc_auc_score(y[rows], score[rows], sample_weight=None if w is None else w[rows], **more)

    ids, areas = task_auc(y, score, tasks, average=None, sample_weight=w)
    np.testing.assert_array_equal(ids, np.arange(5))
    np.testing.assert_allclose(areas, by_task(tasks, area), rtol=1e-12)
    assert task_auc(y, score, tasks, sample_weight=w) == pytest.approx(areas.mean())
    assert task_auc(y, score, tasks, average="pooled", sample_weight=w) == pytest.approx(area(np.arange(len(y))))


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1, max_size=30))
def test_auc_counts_pairs(rows):
    y, score = np.array([a for a, _ in rows]), np.array([b for _, b in rows])
    pairs = np.sign(score[y][:, None] - score[~y][None]) / 2 + 0.5
    found = task_auc(y, score, np.zeros(len(y)))
    np.testing.assert_allclose(found, pairs.mean() if pairs.size else np.nan)
    if pairs.size:
        assert task_auc(y, -score, np.zeros(len(y))) == pytest.approx(1 - found)


def test_two_columns_count_as_the_second():
    y, P, tasks, _ = sample()
    assert task_auc(y, P, tasks) == task_auc(y, P[:, 1], tasks) == task_auc(y, P[:, [1]], tasks)
    text = np.array(["no", "yes"])[y]
    assert task_auc(text, P, tasks) == task_auc(y, P, tasks)
    assert task_auc(text, P[:, ::-1], tasks, labels=["yes", "no"]) == pytest.approx(task_auc(y, P, tasks))


def test_tasks_of_one_class_are_left_out_silently():
    y, score, tasks = [0, 1, 0, 0, 1, 1], [0.1, 0.9, 0.5, 0.6, 0.2, 0.3], list("aabbcc")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ids, areas = task_auc(y, score, tasks, average=None)
        assert task_auc(y, score, tasks) == 1
        assert np.isnan(task_auc([0, 0], [0.1, 0.2], ["a", "b"]))
        assert np.isnan(task_auc([0, 0], [0.1, 0.2], ["a", "b"], average="pooled"))
    assert ids.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(areas, [1, np.nan, np.nan])


def test_rows_of_weight_zero_are_as_if_absent():
    y, P, tasks, w = sample(3)
    keep = w > 1
    np.testing.assert_allclose(
        task_auc(y, P, tasks, average=None, sample_weight=1.0 * keep)[1],
        task_auc(y[keep], P[keep], tasks[keep], average=None)[1],
    )
    assert np.isnan(task_auc([0, 1], [0.1, 0.2], [0, 0], sample_weight=[1, 0]))


def test_classes_that_a_task_lacks_have_no_weight_in_it():
    y, P, _, _ = sample(3, 60)
    two = y < 2
    hot = y[two][:, None] == np.arange(2)
    areas = [roc_auc_score(hot[:, k], P[two, k]) for k in range(2)]
    found = task_auc(y, P, np.where(two, "two", "other"), average=None)[1]
    np.testing.assert_allclose(found, [np.nan, np.average(areas, weights=hot.sum(axis=0))])
    assert task_auc(y[two], P[two], np.zeros(two.sum()), labels=[0, 1, 2]) == pytest.approx(found[1])


def test_tasks_are_any_ids_in_any_form():
    y, P, tasks, _ = sample()
    wanted = task_auc(y, P, tasks)
    names = [("field", int(t)) for t in tasks]
    for form in (names, tuple(tasks.tolist()), [f"t{t}" for t in tasks], tasks.astype(float)):
        assert task_auc(y, P, form) == wanted
    assert task_auc(y, P, names, average=None)[0].tolist() == [("field", t) for t in range(5)]


# ------------------------------------------------------------------- log-loss


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("c", [2, 4])
def test_log_loss_is_that_of_scikit_learn(c, weighted):
    y, P, tasks, w = sample(c)
    w = w if weighted else None

    def loss(rows):
        return log_loss(y[rows], P[rows], labels=np.arange(c), sample_weight=None if w is None else w[rows])

    ids, losses = task_log_loss(y, P, tasks, average=None, sample_weight=w)
    np.testing.assert_array_equal(ids, np.arange(5))
    np.testing.assert_allclose(losses, by_task(tasks, loss), rtol=1e-12)
    assert task_log_loss(y, P, tasks, sample_weight=w) == pytest.approx(losses.mean())
    assert task_log_loss(y, P, tasks, average="pooled", sample_weight=w) == pytest.approx(loss(np.arange(len(y))))


def test_log_loss_of_certainty_labels_and_weights():
    assert task_log_loss([0, 1], [[1, 0], [0, 1]], ["a", "b"]) == 0
    assert task_log_loss([0, 1], [[0, 1], [0, 1]], ["a", "b"]) == pytest.approx(-np.log(np.finfo(float).eps) / 2)
    half = task_log_loss(["b", "b"], [[0.5, 0.5, 0], [0.2, 0.5, 0.3]], [0, 1], labels=["a", "b", "c"])
    assert half == pytest.approx(np.log(2))
    losses = task_log_loss([0, 1], [[0.5, 0.5], [0, 1]], [0, 1], average=None, sample_weight=[1, 0])[1]
    np.testing.assert_allclose(losses, [np.log(2), np.nan])


# --------------------------------------------------------------------- errors


@pytest.mark.parametrize("metric", [task_auc, task_log_loss])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"average": "macro"}, "average='macro' is not known: use 'mean', 'pooled' or None"),
        ({"tasks": [0, 1]}, "one id for each of the 4 rows"),
        ({"tasks": [0, 1, None, 1]}, "1 are missing"),
        ({"labels": [0, 2]}, "y_true holds .*1.*none of labels"),
        ({"labels": [1, 1]}, "contains a class twice"),
        ({"labels": [0, 1, 2]}, "3 classes"),
        ({"sample_weight": [1, 1]}, "sample_weight of shape .* must be 4"),
        ({"sample_weight": [1, 1, -1, 1]}, "none of them negative"),
    ],
)
def test_wrong_input_is_named(metric, changes, message):
    given = {"tasks": [0, 0, 1, 1], **changes}
    with pytest.raises(ValueError, match=message):
        metric([0, 1, 0, 1], np.full((4, 2), 0.5), **given)


def test_wrong_scores_are_named():
    with pytest.raises(ValueError, match=r"score has shape \(3,\) but y_true has 4 rows"):
        task_auc([0, 1, 0, 1], [1, 2, 3], [0] * 4)
    with pytest.raises(ValueError, match="NaN"):
        task_auc([0, 1], [0.5, np.nan], [0, 0])
    with pytest.raises(ValueError, match="3 classes"):
        task_auc([0, 1, 2], [0.1, 0.2, 0.3], [0] * 3)
    with pytest.raises(ValueError, match="not from 0 to 1"):
        task_log_loss([0, 1], [[1.5, -0.5], [0, 1]], [0, 0])
