"""Related tasks: the truth that comes with them is the truth of the rows."""

import numpy as np
import pytest
from scipy.special import softmax

from leastwise.datasets import make_related_tasks


@pytest.fixture
def points():
    return np.random.default_rng(5).normal(size=(200, 2))


def logits(data, X, t):
    """Log-probabilities from their mean over classes, which is all that they say of the scores."""
    L = np.log(data.posterior(X, t))
    return L - L.mean(axis=1, keepdims=True)


def measured(X, relatedness, n_classes, draws=60, **more):
    """Correlation of all pairs of tasks, over many draws of functions."""
    scores = []
    for seed in range(draws):
        data = make_related_tasks(4, 1, n_classes=n_classes, relatedness=relatedness, random_state=seed, **more)
        if data.kind == "regression":
            scores.append([data.mean(X, t) for t in range(4)])
        else:
            scores.append([logits(data, X, t).ravel() for t in range(4)])
    F = np.concatenate(scores, axis=1)
    C = F @ F.T  # the functions have mean zero over draws
    scale = np.sqrt(np.diag(C))
    return C / np.outer(scale, scale), data.correlation


# ---------------------------------------------------------------------- shape


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_sizes_and_types(kind):
    data = make_related_tasks(3, [5, 2, 9], n_features=4, kind=kind, n_groups=2, reversed_tasks=1, random_state=0)
    assert data.X.shape == (16, 4)
    assert data.y.shape == (16,)
    assert data.y.dtype.kind == ("i" if kind == "classification" else "f")
    np.testing.assert_array_equal(np.bincount(data.task), [5, 2, 9])
    np.testing.assert_array_equal(data.group, [0, 1, 0])
    np.testing.assert_array_equal(data.is_reversed, [False, False, True])
    assert data.correlation.shape == (3, 3)
    assert make_related_tasks().X.shape == (500, 2)


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_same_seed_same_data(kind, points):
    first, again, other = (make_related_tasks(4, 10, kind=kind, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)
    truth = "mean" if kind == "regression" else "posterior"
    np.testing.assert_array_equal(getattr(first, truth)(points, 2), getattr(again, truth)(points, 2))


# ---------------------------------------------------------------------- truth


@pytest.mark.parametrize("n_classes", [2, 3])
def test_frequencies_agree_with_the_posterior(n_classes):
    data = make_related_tasks(2, 20_000, n_classes=n_classes, noise=1.0, reversed_tasks=1, random_state=0)
    P = data.posterior(data.X, data.task)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    for t in range(2):
        for k in range(n_classes):
            rows = np.flatnonzero(data.task == t)
            for part in np.array_split(rows[np.argsort(P[rows, k])], 10):
                frequency = np.mean(data.y[part] == k)
                assert frequency == pytest.approx(P[part, k].mean(), abs=5 * np.sqrt(0.25 / len(part)))


def test_noise_around_the_mean():
    data = make_related_tasks(2, 20_000, kind="regression", noise=0.5, random_state=0)
    residual = data.y - data.mean(data.X, data.task)
    assert residual.mean() == pytest.approx(0, abs=0.02)
    assert residual.std() == pytest.approx(0.5, rel=0.02)


def test_no_noise_is_certainty():
    data = make_related_tasks(noise=0, random_state=0)
    np.testing.assert_array_equal(data.posterior(data.X, data.task), np.eye(2)[data.y])
    data = make_related_tasks(noise=0, kind="regression", random_state=0)
    np.testing.assert_array_equal(data.mean(data.X, data.task), data.y)


@pytest.mark.parametrize("n_features", [1, 3, 30])
def test_functions_have_variance_one_and_are_smooth(n_features):
    X = np.random.default_rng(0).normal(size=(100, n_features))
    near = X + 0.01 * np.random.default_rng(1).normal(size=X.shape)
    values, steps = [], []
    for seed in range(60):
        data = make_related_tasks(2, 1, n_features=n_features, kind="regression", random_state=seed)
        values.append(data.mean(X, 0))
        steps.append(data.mean(near, 0) - values[-1])
    assert np.mean(np.square(values)) == pytest.approx(1, abs=0.2)
    assert np.sqrt(np.mean(np.square(steps))) == pytest.approx(0.01, rel=0.3)


def test_one_task_for_all_rows_or_one_each(points):
    data = make_related_tasks(3, random_state=0)
    task = np.arange(200) % 3
    each = data.posterior(points, task)
    for t in range(3):
        np.testing.assert_allclose(each[task == t], data.posterior(points[task == t], t))


# ---------------------------------------------------------------- relatedness


@pytest.mark.parametrize("n_classes", [2, 4])
def test_full_relatedness_is_the_same_function_within_groups(points, n_classes):
    data = make_related_tasks(5, n_classes=n_classes, relatedness=1, n_groups=2, random_state=0)
    for t in range(2, 5):
        np.testing.assert_allclose(data.posterior(points, t), data.posterior(points, t % 2))
    assert np.abs(data.posterior(points, 0) - data.posterior(points, 1)).max() > 0.1
    np.testing.assert_array_equal(data.correlation, np.equal.outer(np.arange(5) % 2, np.arange(5) % 2))


@pytest.mark.parametrize("relatedness", [0.0, 0.5, 0.9])
@pytest.mark.parametrize(
    ("n_classes", "more"),
    [
        (2, {}),
        (2, {"reversed_tasks": 2}),
        (3, {"reversed_tasks": 2, "noise": 1.0}),
        (2, {"n_groups": 2, "reversed_tasks": 1}),
        (2, {"kind": "regression", "reversed_tasks": 1}),
    ],
)
def test_correlation_is_what_is_measured(points, relatedness, n_classes, more):
    found, claimed = measured(points, relatedness, n_classes, **more)
    np.testing.assert_allclose(found, claimed, atol=0.15)


def test_reversed_tasks(points):
    data = make_related_tasks(3, relatedness=1, reversed_tasks=1, random_state=0)
    np.testing.assert_allclose(data.posterior(points, 2), data.posterior(points, 0)[:, ::-1])
    many = make_related_tasks(3, n_classes=4, relatedness=1, reversed_tasks=1, random_state=0)
    np.testing.assert_allclose(many.posterior(points, 2), np.roll(many.posterior(points, 0), 1, axis=1))
    numbers = make_related_tasks(3, kind="regression", relatedness=1, reversed_tasks=1, random_state=0)
    np.testing.assert_allclose(numbers.mean(points, 2), -numbers.mean(points, 0))


def test_reversing_the_scores_is_exchanging_two_classes(points):
    data = make_related_tasks(2, relatedness=1, reversed_tasks=1, random_state=0)
    np.testing.assert_allclose(data.posterior(points, 1), softmax(-logits(data, points, 0), axis=1))


# --------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_tasks": 0}, "n_tasks=0 must be an integer, 1 or more"),
        ({"n_tasks": 2.5}, "n_tasks=2.5 must be an integer"),
        ({"n_rows": 0}, "n_rows=0 must be a positive integer"),
        ({"n_rows": [5, 5]}, r"n_rows=\[5, 5\] must be .* or 3 of them"),
        ({"n_rows": 2.5}, "n_rows=2.5"),
        ({"n_features": 0}, "n_features=0"),
        ({"n_classes": 1}, "n_classes=1 must be an integer, 2 or more"),
        ({"n_groups": 4}, "n_groups=4 must be an integer, from 1 to the number of tasks, 3"),
        ({"reversed_tasks": 4}, "reversed_tasks=4 must be an integer, from 0 to"),
        ({"relatedness": 1.5}, "relatedness=1.5 must be from 0"),
        ({"relatedness": np.nan}, "relatedness=nan"),
        ({"noise": -1}, "noise=-1 must be 0 or more"),
        ({"kind": "ranking"}, "kind='ranking' is unknown"),
    ],
)
def test_wrong_arguments_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        make_related_tasks(**{"n_tasks": 3, **changes})


def test_wrong_questions_are_named(points):
    data, numbers = make_related_tasks(3, random_state=0), make_related_tasks(3, kind="regression", random_state=0)
    with pytest.raises(ValueError, match=r"use mean\(X, task\)"):
        numbers.posterior(points, 0)
    with pytest.raises(ValueError, match=r"use posterior\(X, task\)"):
        data.mean(points, 0)
    with pytest.raises(ValueError, match="3 columns; these tasks have 2 features"):
        data.posterior(np.zeros((2, 3)), 0)
    with pytest.raises(ValueError, match=r"must be from 0 to 2; it contains \[3\]"):
        data.posterior(points, 3)
    with pytest.raises(ValueError, match="one for each of the 200"):
        data.posterior(points, [0, 1])
