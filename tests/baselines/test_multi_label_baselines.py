"""The multi-label peer methods: each against loops, a case by hand, and labels that can be learnt."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import get_scorer, hamming_loss, label_ranking_loss
from sklearn.model_selection import cross_val_score
from sklearn.utils import get_tags

from leastwise.baselines import InsDif, MLkNN
from leastwise.baselines.insdif import hausdorff, medoids

MODELS = [MLkNN(n_neighbors=5), InsDif(random_state=0)]
both = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def made(rng, n=60, d=3, T=4):
    """Labels that depend on the inputs, not linearly, and overlap."""
    X = rng.normal(size=(n, d))
    W = rng.normal(size=(d, T))
    return X, (np.sin(1.5 * X @ W) + 0.2 * rng.normal(size=(n, T)) > 0.3).astype(int)


def slow_ml_knn(X, Y, new, k, s):
    """The formulas of the paper, one label, row and neighbour after the other."""
    n, T = Y.shape

    def near(x, label, skip=None):
        order = sorted((np.linalg.norm(x - X[i]), i) for i in range(n) if i != skip)
        return sum(int(Y[i, label]) for _, i in order[:k])

    out = np.empty((len(new), T))
    for label in range(T):
        prior = (s + sum(Y[:, label])) / (2 * s + n)
        with_label, without = [0] * (k + 1), [0] * (k + 1)
        for i in range(n):
            counts = with_label if Y[i, label] else without
            counts[near(X[i], label, skip=i)] += 1
        for i, x in enumerate(new):
            j = near(x, label)
            yes = prior * (s + with_label[j]) / (s * (k + 1) + sum(with_label))
            no = (1 - prior) * (s + without[j]) / (s * (k + 1) + sum(without))
            out[i, label] = yes / (yes + no)
    return out


def slow_hausdorff(x, z, V):
    A, B = [x - v for v in V], [z - v for v in V]
    there = max(min(np.linalg.norm(a - b) for b in B) for a in A)
    back = max(min(np.linalg.norm(a - b) for a in A) for b in B)
    return max(there, back)


# ML-kNN


@pytest.mark.parametrize(("k", "s"), [(1, 1.0), (4, 1.0), (7, 0.3), (39, 2.0)])
def test_ml_knn_equals_the_loops(rng, k, s):
    X, Y = made(rng, n=40)
    Y[:, 3] = 0
    new = np.concatenate([rng.normal(size=(15, 3)), X[:5]])
    proba = MLkNN(k, smoothing=s).fit(X, Y).predict_proba(new)
    assert_allclose(proba, slow_ml_knn(X, Y, new, k, s), rtol=1e-12)


def test_ml_knn_by_hand():
    """The neighbours of 0, 1, 3, 6 are 1, 0, 1, 3, so that 1, 1, 1, 0 of them have the label."""
    model = MLkNN(1).fit([[0], [1], [3], [6]], [[1], [1], [0], [0]])
    assert_allclose(model.prior_, [1 / 2])
    assert_allclose(model.counts_given_label_[:, 0], [1 / 4, 3 / 4])
    assert_allclose(model.counts_given_none_[:, 0], [1 / 2, 1 / 2])
    assert_allclose(model.predict_proba([[-1], [7]]), [[0.6], [1 / 3]])
    assert_array_equal(model.predict([[-1], [7]]), [[1], [0]])


def test_ml_knn_gives_no_label_at_a_tie():
    """Pairs of neighbours whose labels are independent: all probabilities are 1/2."""
    X = np.array([0, 1, 10, 11, 20, 21, 30, 31.0])[:, None]
    y = np.array([1, 1, 1, 0, 1, 0, 0, 0])[:, None]
    model = MLkNN(1).fit(X, y)
    assert_array_equal(model.predict_proba(X), 0.5)
    assert_array_equal(model.predict(X), 0)


def test_ml_knn_a_row_with_a_twin_is_still_not_its_own_neighbour():
    X = np.array([[0.0], [0.0], [5.0], [5.0]])
    model = MLkNN(1).fit(X, [[1], [0], [1], [0]])
    assert_allclose(model.counts_given_label_[:, 0], [3 / 4, 1 / 4])  # the twin never has the same label


def test_ml_knn_probabilities_sum_over_counts(rng):
    model = MLkNN(6).fit(*made(rng))
    assert_allclose(model.counts_given_label_.sum(axis=0), 1)
    assert_allclose(model.counts_given_none_.sum(axis=0), 1)


def test_ml_knn_takes_sparse_rows(rng):
    X, Y = made(rng)
    dense, thin = MLkNN(5).fit(X, Y), MLkNN(5).fit(sparse.csr_array(X), Y)
    assert_allclose(thin.predict_proba(sparse.csr_array(X[:9])), dense.predict_proba(X[:9]))


@pytest.mark.parametrize(("n", "k"), [(5, 5), (5, 10), (1, 1)])
def test_ml_knn_too_many_neighbours(n, k):
    with pytest.raises(ValueError, match=f"n_neighbors={k} .*n_samples={n} .*at most {n - 1}"):
        MLkNN(k).fit(np.arange(n)[:, None], np.ones((n, 2)))


@pytest.mark.parametrize(
    "setting", [{"n_neighbors": 0}, {"n_neighbors": 2.5}, {"smoothing": 0}, {"smoothing": np.nan}]
)
def test_ml_knn_bad_parameters(rng, setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        MLkNN(**setting).fit(*made(rng))


# InsDif


@pytest.mark.parametrize("T", [1, 2, 5])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_hausdorff_equals_the_loops(rng, T, offset):
    X, Z, V = (rng.normal(size=(n, 3)) + offset for n in (7, 6, T))
    expected = [[slow_hausdorff(x, z, V) for z in Z] for x in X]
    assert_allclose(hausdorff(X, Z, V), expected, rtol=1e-7)


def test_hausdorff_by_chunks_is_the_same(rng, monkeypatch):
    X, V = rng.normal(size=(30, 4)), rng.normal(size=(3, 4))
    whole = hausdorff(X, X, V)
    monkeypatch.setattr("leastwise.baselines.insdif.CHUNK", 200)
    assert_allclose(hausdorff(X, X, V), whole, atol=1e-12)


def test_hausdorff_is_a_metric_of_bags(rng):
    X, V = rng.normal(size=(20, 4)), 3 * rng.normal(size=(3, 4))
    D = hausdorff(X, X, V)
    assert_array_equal(np.diag(D), 0)
    assert_allclose(D, D.T)
    assert (D[:, :, None] <= D[:, None, :] + D.T[None, :, :] + 1e-12).all()
    apart = np.linalg.norm(X[:, None] - X, axis=2)
    assert (apart - D >= -1e-12).all()  # all bags are shifts of one another


def test_medoids_are_in_the_middle_and_rows_join_the_nearest(rng):
    X = rng.normal(size=(80, 2))
    D = np.linalg.norm(X[:, None] - X, axis=2)
    middle, group, _ = medoids(D, 7, 100, np.random.RandomState(0))
    assert_array_equal(group, D[:, middle].argmin(axis=1))
    for j, row in enumerate(middle):
        own = np.flatnonzero(group == j)
        assert D[row, own].sum() <= D[np.ix_(own, own)].sum(axis=1).min() + 1e-12


def test_medoids_find_separate_clusters(rng):
    X = np.repeat([[0.0, 0], [50, 0], [0, 50]], 20, axis=0) + rng.normal(size=(60, 2))
    D = np.linalg.norm(X[:, None] - X, axis=2)
    costs = [D[:, medoids(D, 3, 100, np.random.RandomState(seed))[0]].min(axis=1).sum() for seed in range(10)]
    assert min(costs) < 60 * 2


def test_medoids_of_equal_rows_leave_no_group_empty():
    middle, group, _ = medoids(np.zeros((6, 6)), 4, 100, np.random.RandomState(0))
    assert len(set(middle)) == 4
    assert set(group) == {0, 1, 2, 3}


def test_medoids_say_when_they_were_stopped(rng):
    X, Y = made(rng, n=200)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        InsDif(max_iter=1, random_state=0).fit(X, Y)


def test_insdif_pieces(rng):
    X, Y = made(rng, n=50)
    model = InsDif(ratio=0.3, random_state=1).fit(X, Y)
    for v, label in zip(model.prototypes_, model.prototype_labels_, strict=True):
        assert_allclose(v, X[Y[:, label] == 1].mean(axis=0))
    assert model.coef_.shape == (15, 4)
    assert 1 <= model.n_iter_ <= 100
    assert_array_equal(model.medoid_rows_, X[model.medoids_])
    new = rng.normal(size=(8, 3))
    Phi = np.array([[slow_hausdorff(x, c, model.prototypes_) for c in model.medoid_rows_] for x in new])
    assert_allclose(model.decision_function(new), Phi @ model.coef_, rtol=1e-8, atol=1e-8)


def test_insdif_weights_are_the_least_squares(rng):
    """The gradient is zero, and any other weights have a larger error."""
    X, Y = made(rng, n=50)
    model = InsDif(random_state=0).fit(X, Y)
    Phi, T = hausdorff(X, model.medoid_rows_, model.prototypes_), 2.0 * Y - 1
    assert_allclose(Phi.T @ (Phi @ model.coef_ - T), 0, atol=1e-7)
    least = np.sum((Phi @ model.coef_ - T) ** 2)
    for _ in range(20):
        other = model.coef_ + 0.01 * rng.normal(size=model.coef_.shape)
        assert np.sum((Phi @ other - T) ** 2) > least


def test_insdif_of_least_norm_where_medoids_are_equal(rng):
    X, Y = made(rng, n=15)
    X, Y = np.repeat(X, 2, axis=0), np.repeat(Y, 2, axis=0)
    model = InsDif(ratio=1.0, random_state=0).fit(X, Y)
    assert_allclose(model.coef_[::2], model.coef_[1::2], atol=1e-8)
    assert_allclose(model.decision_function(X), 2 * Y - 1, atol=1e-5)


def test_insdif_every_row_gets_a_label(rng):
    X, Y = made(rng, n=80)
    model = InsDif(random_state=0).fit(X, Y * (rng.random(Y.shape) < 0.5))
    scores, labels = model.decision_function(X), model.predict(X)
    none = (scores <= 0).all(axis=1)
    assert none.any()
    assert not none.all()
    assert_array_equal(labels[~none], scores[~none] > 0)
    assert_array_equal(labels[none].sum(axis=1), 1)
    assert_array_equal(labels[none].argmax(axis=1), scores[none].argmax(axis=1))


def test_insdif_same_seed_same_model(rng):
    X, Y = made(rng)
    first, second, other = (InsDif(random_state=seed).fit(X, Y) for seed in (3, 3, 4))
    assert_array_equal(first.coef_, second.coef_)
    assert not np.array_equal(first.medoids_, other.medoids_)


def test_insdif_moves_with_the_data(rng):
    X, Y = made(rng)
    here, there = (InsDif(random_state=0).fit(X + shift, Y) for shift in (0.0, 100.0))
    assert_allclose(there.decision_function(X[:9] + 100.0), here.decision_function(X[:9]), atol=1e-6)


def test_insdif_without_any_label():
    with pytest.raises(ValueError, match="no positive label"):
        InsDif().fit(np.eye(4), np.zeros((4, 2)))


@pytest.mark.parametrize("setting", [{"ratio": 0}, {"ratio": 1.1}, {"ratio": "half"}, {"max_iter": 0}])
def test_insdif_bad_parameters(rng, setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        InsDif(**setting).fit(*made(rng))


def test_insdif_says_when_memory_is_short(rng, monkeypatch):
    monkeypatch.setenv("LEASTWISE_MEMORY", "10KB")
    with pytest.raises(MemoryError, match=r"60 rows need .* for their distances"):
        InsDif().fit(*made(rng))


# both


@both
def test_better_than_the_shares_of_labels(model, rng):
    X, Y = made(rng, n=800, d=2)
    model = clone(model).fit(X[::2], Y[::2])
    truth, shares = Y[1::2], np.tile(Y[::2].mean(axis=0), (400, 1))
    assert hamming_loss(truth, model.predict(X[1::2])) < 0.75 * hamming_loss(truth, (shares > 0.5).astype(int))
    scores = getattr(model, "predict_proba", getattr(model, "decision_function", None))(X[1::2])
    assert label_ranking_loss(truth, scores) < 0.75 * label_ranking_loss(truth, shares)


def test_ml_knn_log_loss_beats_the_shares(rng):
    X, Y = made(rng, n=800, d=2)
    proba = MLkNN().fit(X[::2], Y[::2]).predict_proba(X[1::2])
    assert ((proba > 0) & (proba < 1)).all()

    def loss(p):
        return -np.log(np.where(Y[1::2] == 1, p, 1 - p)).mean()

    assert loss(proba) < 0.9 * loss(Y[::2].mean(axis=0))


@both
def test_all_kinds_of_tables_are_one(model, rng):
    X, Y = made(rng)
    expected = clone(model).fit(X, Y).predict(X)
    names = [f"l{i}" for i in range(Y.shape[1])]
    frames = [pd.DataFrame(Y, columns=names), pd.DataFrame(Y == 1, columns=names), pl.DataFrame(Y, schema=names)]
    for y in [
        Y.tolist(),
        Y == 1,
        Y.astype(float),
        Y.astype(object),
        sparse.csr_matrix(Y),
        sparse.coo_array(Y),
        *frames,
    ]:
        assert_array_equal(clone(model).fit(X, y).predict(X), expected)


@both
def test_features_have_names(model, rng):
    X, Y = made(rng)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    fitted = clone(model).fit(frame, Y)
    assert_array_equal(fitted.feature_names_in_, ["a", "b", "c"])
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame[["b", "a", "c"]])


@both
def test_labels_that_no_row_or_every_row_has(model, rng):
    X, Y = made(rng)
    Y[:, 1], Y[:, 2] = 0, 1
    fitted = clone(model).fit(X, Y)
    labels = fitted.predict(X)
    assert_array_equal(labels[:, 2], 1)
    assert_array_equal(labels[:, 1], 0)
    assert labels.shape == Y.shape
    assert fitted.n_labels_ == 4


@both
def test_one_label(model, rng):
    X, Y = made(rng)
    assert clone(model).fit(X, Y[:, :1]).predict(X).shape == (60, 1)


@both
def test_clone_pickle_and_refit(model, rng):
    X, Y = made(rng)
    fitted = clone(model).fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.predict(X), fitted.predict(X))
    assert clone(fitted).get_params() == model.get_params()
    assert fitted.fit(X[:, :2], Y[:, :2]).predict(X[:, :2]).shape == (60, 2)


@both
def test_score_and_scorers(model, rng):
    X, Y = made(rng, n=120)
    fitted = clone(model).fit(X, Y)
    right = (fitted.predict(X) == Y).all(axis=1)
    assert fitted.score(X, Y) == pytest.approx(right.mean())
    assert fitted.score(X, Y, sample_weight=np.arange(120)) == pytest.approx(
        np.average(right, weights=np.arange(120))
    )
    assert get_scorer("roc_auc")(fitted, X, Y) > 0.6
    pair = clone(model).fit(X, Y[:, :2])
    assert get_scorer("roc_auc")(pair, X, Y[:, :2]) > 0.6
    assert np.isfinite(cross_val_score(model, X, Y, scoring="f1_micro", cv=3)).all()


@both
def test_what_scikit_learn_is_told(model):
    tags = get_tags(model)
    assert is_classifier(model)
    assert tags.classifier_tags.multi_label
    assert tags.target_tags.multi_output


@both
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda Y: Y * 2, r"y contains \[2.0\]; its values must be 0 or 1"),
        (lambda Y: Y * 2 - 1, r"y contains \[-1.0\].*give y > 0"),
        (lambda Y: np.where(Y, np.nan, 0.0), "NaN values: remove these rows"),
        (lambda Y: np.where(Y, "yes", "no"), "y contains '(yes|no)'; its values must be 0 or 1"),
        (lambda Y: Y[:, 0], r"shape \(60,\).*reshape\(-1, 1\)"),
        (lambda Y: Y[:, :0], r"shape \(60, 0\)"),
        (lambda Y: Y[None], r"shape \(1, 60, 4\)"),
        (lambda Y: Y[:50], "X has 60 rows and y has 50"),
        (lambda Y: [[1]] + [[1, 2]] * 59, "different lengths"),
        (lambda Y: None, "y is None"),
    ],
)
def test_bad_labels(model, rng, change, words):
    X, Y = made(rng)
    with pytest.raises(ValueError, match=words):
        clone(model).fit(X, change(Y))


@both
def test_bad_rows(model, rng):
    X, Y = made(rng)
    hole = X.copy()
    hole[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        clone(model).fit(hole, Y)
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    fitted = clone(model).fit(X, Y)
    with pytest.raises(ValueError, match="NaN"):
        fitted.predict(hole)
    with pytest.raises(ValueError, match="features"):
        fitted.predict(X[:, :2])
    with pytest.raises(ValueError, match="y has 2 labels"):
        fitted.score(X, Y[:, :2])


@both
def test_a_fit_that_fails_leaves_the_model(model, rng):
    X, Y = made(rng)
    fitted = clone(model).fit(X, Y)
    before = fitted.predict(X)
    with pytest.raises(ValueError, match="must be 0 or 1"):
        fitted.fit(X[:, :2], Y + 5)
    assert_array_equal(fitted.predict(X), before)
