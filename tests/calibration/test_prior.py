"""Class shares that differ between training and use."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leastwise import LSPC, LSSVC, KernelLogisticRegression, MultiLabelLSPC, MultiTaskLSPC
from leastwise.calibration.prior import Shift, read_label_prior, read_prior
from leastwise.estimators.prior_shift import estimate_class_prior, most_likely_shares

CENTRES = np.array([[-1.5, 0.0], [1.5, 0.0], [0.0, 1.5]])


def mixture(shares, n, seed):
    """Rows of three normal classes with these shares."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=shares)
    return CENTRES[y] + rng.normal(size=(n, 2)), y


def posterior(X, shares):
    """Bayes' rule, by loops."""
    P = np.empty((len(X), 3))
    for i, x in enumerate(X):
        for k in range(3):
            P[i, k] = shares[k] * np.exp(-0.5 * np.sum((x - CENTRES[k]) ** 2))
    return P / P.sum(axis=1, keepdims=True)


TRAINED, NEW = np.array([0.5, 0.3, 0.2]), np.array([0.05, 0.25, 0.7])


@pytest.fixture(scope="module")
def model():
    return LSPC(random_state=0).fit(*mixture(TRAINED, 300, 0))


def long_way(P, new, trained):
    out = np.empty_like(P)
    for i, row in enumerate(P):
        weighted = [p * a / b for p, a, b in zip(row, new, trained, strict=True)]
        out[i] = np.array(weighted) / sum(weighted)
    return out


def test_it_is_bayes_rule(model):
    """The exact posterior under one set of shares becomes the exact one under another."""
    X, _ = mixture(NEW, 200, 1)
    shift = Shift(NEW, TRAINED, np.array([0, 3]))
    np.testing.assert_allclose(shift.proba(posterior(X, TRAINED)), posterior(X, NEW), rtol=1e-10)
    P = model.predict_proba(X, class_prior=NEW)
    np.testing.assert_allclose(P, long_way(model.predict_proba(X), NEW, model.class_prior_), rtol=1e-9)
    before, after = (np.abs(p - posterior(X, NEW)).mean() for p in (model.predict_proba(X), P))
    assert after < 0.5 * before


def test_all_methods_agree(model):
    X, _ = mixture(NEW, 100, 2)
    P = model.predict_proba(X, class_prior=NEW)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X, class_prior=NEW), P.argmax(axis=1))
    np.testing.assert_allclose(model.predict_log_proba(X, class_prior=NEW), np.log(P))
    np.testing.assert_allclose(model.decision_function(X, class_prior=NEW), np.log(P))
    np.testing.assert_allclose(model.predict_proba(X, class_prior=model.class_prior_), model.predict_proba(X))


def test_forms_of_the_shares(model):
    pd = pytest.importorskip("pandas")
    X, _ = mixture(NEW, 20, 3)
    P = model.predict_proba(X, class_prior=NEW)
    forms = [{2: 0.7, 0: 0.05, 1: 0.25}, pd.Series({1: 25, 2: 70, 0: 5}), (100 * NEW).tolist()]
    for form in forms:
        np.testing.assert_allclose(model.predict_proba(X, class_prior=form), P)
    even = model.predict_proba(X, class_prior=[1, 1, 1])
    np.testing.assert_allclose(model.predict_proba(X, class_prior="uniform"), even)


def test_log_loss_improves_under_a_shift(model):
    X, y = mixture(NEW, 1000, 4)
    plain, known = log_loss(y, model.predict_proba(X)), log_loss(y, model.predict_proba(X, class_prior=NEW))
    found = log_loss(y, model.predict_proba(X, class_prior=estimate_class_prior(model, X)))
    assert known < plain - 0.1
    assert found < plain - 0.1


def test_names_of_classes_do_not_matter(model):
    X, y = mixture(TRAINED, 300, 0)
    other = LSPC(random_state=0).fit(X, np.array(["c", "a", "b"])[y])
    prior = dict(zip("cab", NEW, strict=True))
    P = other.predict_proba(X[:50], class_prior=prior)[:, [2, 0, 1]]
    np.testing.assert_allclose(P, model.predict_proba(X[:50], class_prior=NEW), atol=1e-5)


@pytest.mark.parametrize("kind", [LSPC, LSSVC, KernelLogisticRegression])
def test_uniform_changes_nothing_on_balanced_data(kind):
    X, _ = mixture(TRAINED, 60, 5)
    y = np.arange(60) % 2
    params = {"sigma": 1.0, "alpha": 0.1, "cv": 5} if kind is KernelLogisticRegression else {}
    fitted = kind(random_state=0, **params).fit(X, y)
    np.testing.assert_allclose(fitted.class_prior_, [0.5, 0.5])
    np.testing.assert_allclose(fitted.predict_proba(X, class_prior="uniform"), fitted.predict_proba(X), rtol=1e-6)


def test_balanced_weights_are_undone():
    X, y = mixture(TRAINED, 200, 6)
    fitted = LSPC(class_weight="balanced", random_state=0).fit(X, y)
    np.testing.assert_allclose(fitted.class_prior_, 1 / 3, rtol=1e-6)
    Xn, yn = mixture(TRAINED, 500, 7)
    shares = np.bincount(y) / len(y)
    assert log_loss(yn, fitted.predict_proba(Xn, class_prior=shares)) < log_loss(yn, fitted.predict_proba(Xn))


@pytest.mark.parametrize("calibration", ["blend", "temperature", "isotonic"])
def test_far_from_the_data_the_answer_is_the_new_shares(calibration):
    fitted = LSPC(calibration=calibration, random_state=0).fit(*mixture(TRAINED, 80, 8))
    np.testing.assert_allclose(fitted.predict_proba([[1e3, 1e3]], class_prior=NEW)[0], NEW, atol=1e-6)


def test_a_class_that_no_longer_occurs():
    fitted = LSPC(calibration=None, random_state=0).fit(*mixture(TRAINED, 80, 9))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        P = fitted.predict_proba(CENTRES * 4, class_prior=[0, 1, 1])
        D = fitted.decision_function(CENTRES * 4, class_prior=[0, 1, 1])
    assert not P[:, 0].any()
    assert np.isneginf(D[:, 0]).all()
    np.testing.assert_allclose(P.sum(axis=1), 1)
    sure = Shift(np.array([0, 0.4, 0.6]), TRAINED, np.array([0, 3])).proba(np.array([[1.0, 0, 0]]))
    np.testing.assert_allclose(sure, [[0, 0.4, 0.6]])  # nothing that is still possible had a probability


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ([0.5, 0.5], "there are 3 classes"),
        (0.5, "there are 3 classes"),
        ([0.5, 0.7, -0.2], "finite and not negative"),
        ([0.5, np.nan, 0.2], "finite"),
        ([0, 0, 0], "sums to 0"),
        ({0: 0.5, 1: 0.3, 7: 0.2}, "unknown classes: \\[7\\]"),
        ({0: 0.5, 1: 0.5}, "lacks the classes \\[2\\]"),
        ("even", "'uniform'"),
        (["a", "b", "c"], "is not numeric"),
    ],
)
def test_wrong_shares(model, prior, words):
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        with pytest.raises(ValueError, match=words):
            getattr(model, method)(CENTRES, class_prior=prior)


shares = st.lists(st.floats(0.01, 1), min_size=4, max_size=4).map(lambda v: np.array(v) / sum(v))


@given(a=shares, b=shares, c=shares, p=shares)
@settings(max_examples=50, deadline=None)
def test_there_and_back(a, b, c, p):
    """By way of other shares is the same as at once; and back again is where it began."""
    starts, P = np.array([0, 4]), p[None]
    twice = Shift(c, b, starts).proba(Shift(b, a, starts).proba(P))
    np.testing.assert_allclose(twice, Shift(c, a, starts).proba(P), rtol=1e-9)
    np.testing.assert_allclose(Shift(a, b, starts).proba(Shift(b, a, starts).proba(P)), P, rtol=1e-9)


# ------------------------------------------------------------------- tasks


def test_tasks():
    X, y = mixture(TRAINED, 120, 10)
    task = np.arange(120) % 4
    fitted = MultiTaskLSPC(random_state=0).fit(X, y, tasks=task)
    for tasks in (task, "new"):
        P = fitted.predict_proba(X, tasks, class_prior=NEW)
        np.testing.assert_allclose(P, long_way(fitted.predict_proba(X, tasks), NEW, fitted.class_prior_), rtol=1e-9)
        np.testing.assert_array_equal(fitted.predict(X, tasks, class_prior=NEW), P.argmax(axis=1))
        np.testing.assert_allclose(fitted.decision_function(X, tasks, class_prior=NEW), np.log(P))
    np.testing.assert_allclose(fitted.class_prior_, np.bincount(y) / 120)
    assert estimate_class_prior(fitted, X, tasks=task).shape == (3,)


# ------------------------------------------------------------------ labels


@pytest.fixture(scope="module")
def labelled():
    rng = np.random.default_rng(11)
    Y = (rng.random((120, 3)) < [0.2, 0.5, 0.7]).astype(int)
    return MultiLabelLSPC(random_state=0).fit(Y + 0.5 * rng.normal(size=Y.shape), Y)


def test_labels(labelled):
    X, new = np.random.default_rng(12).normal(size=(30, 3)), np.array([0.6, 0.1, 0.7])
    P, trained = labelled.predict_proba(X), labelled.class_prior_
    odds = P / (1 - P) * (new / (1 - new)) / (trained / (1 - trained))
    got = labelled.predict_proba(X, class_prior=new)
    np.testing.assert_allclose(got, odds / (1 + odds), rtol=1e-9)
    np.testing.assert_allclose(labelled.decision_function(X, class_prior=new), np.log(odds), atol=1e-9)
    np.testing.assert_array_equal(labelled.predict(X, class_prior=new), got > 0.5)
    np.testing.assert_allclose(labelled.predict_proba(X, class_prior=trained), P)
    some = labelled.predict_proba(X, class_prior={1: 0.1})
    np.testing.assert_allclose(some, np.column_stack([P[:, 0], got[:, 1], P[:, 2]]))
    np.testing.assert_allclose(labelled.predict_proba([[1e3] * 3], class_prior=new)[0], new, atol=1e-6)


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ([0.5, 0.5], "there are 3 labels"),
        ([0.5, 2, 0], "from 0 to 1"),
        ({9: 0.5}, "unknown labels"),
    ],
)
def test_wrong_shares_of_labels(labelled, prior, words):
    with pytest.raises(ValueError, match=words):
        labelled.predict_proba(np.zeros((1, 3)), class_prior=prior)


def test_labels_of_more_classes():
    rng = np.random.default_rng(13)
    Y = np.column_stack([rng.integers(0, 3, 60), rng.integers(0, 2, 60)])
    X = Y + 0.5 * rng.normal(size=Y.shape)
    fitted = MultiLabelLSPC(random_state=0).fit(X, Y)
    P, got = fitted.predict_proba(X), fitted.predict_proba(X, class_prior=[NEW, 0.5])
    np.testing.assert_allclose(got[0], long_way(P[0], NEW, fitted.class_prior_[0]), rtol=1e-9)
    with pytest.raises(ValueError, match="shares of its 3 classes"):
        fitted.predict_proba(X, class_prior=[0.5, 0.5])
    assert [len(found) for found in estimate_class_prior(fitted, X)] == [3, 2]
    even = read_label_prior("uniform", fitted.label_index_, np.ones(5))
    np.testing.assert_allclose(even, [1 / 3, 1 / 3, 1 / 3, 0.5, 0.5])


# -------------------------------------------------------------- estimation


@pytest.mark.parametrize("new", [NEW, TRAINED, np.array([0.8, 0.15, 0.05])])
def test_shares_are_recovered(model, new):
    X, y = mixture(new, 1500, 14)
    exact = most_likely_shares(posterior(X, TRAINED), TRAINED)
    np.testing.assert_allclose(exact, np.bincount(y) / len(y), atol=0.03)
    np.testing.assert_allclose(estimate_class_prior(model, X), np.bincount(y) / len(y), atol=0.06)


def test_they_are_most_likely():
    """No other shares make the rows more likely, with the training shares as one more row."""
    P = posterior(mixture(NEW, 40, 15)[0], TRAINED)

    def likelihood(q):
        return np.log((P / TRAINED * q).sum(axis=1)).sum() + TRAINED @ np.log(q)

    best = likelihood(most_likely_shares(P, TRAINED, 100_000, 1e-12))
    rng = np.random.default_rng(0)
    assert all(likelihood(rng.dirichlet([1, 1, 1])) <= best for _ in range(500))


@pytest.mark.parametrize("count", [1, 2, 5])
def test_few_rows(model, count):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = estimate_class_prior(model, mixture(NEW, count, 16)[0])
    assert (found > 0).all()
    assert found.sum() == pytest.approx(1)


def test_pipelines_and_other_classifiers(labelled):
    X, y = mixture(TRAINED, 150, 17)
    pipeline = make_pipeline(StandardScaler(), LSPC(random_state=0)).fit(X, y)
    assert estimate_class_prior(pipeline, X).shape == (3,)
    assert pipeline.predict_proba(X, class_prior="uniform").shape == (150, 3)
    other = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="train_prior="):
        estimate_class_prior(other, X)
    np.testing.assert_allclose(estimate_class_prior(other, X, train_prior=TRAINED).sum(), 1)
    with pytest.raises(ValueError, match="one label"):
        estimate_class_prior(labelled, np.zeros((2, 3)), train_prior=[1, 1])
    assert estimate_class_prior(labelled, np.zeros((2, 3))).shape == (3,)


def test_one_label_given_as_classes():
    X, y = mixture(TRAINED, 80, 18)
    fitted = MultiLabelLSPC(random_state=0).fit(X, y)
    P = fitted.predict_proba(X, class_prior=dict(enumerate(NEW)))
    np.testing.assert_allclose(P, long_way(fitted.predict_proba(X), NEW, fitted.class_prior_), rtol=1e-9)
    assert estimate_class_prior(fitted, X).shape == (3,)
    np.testing.assert_allclose(read_prior(NEW, fitted.classes_), NEW)


def test_probabilities_of_other_libraries_are_those_of_numpy(monkeypatch):
    """The sums of each label are 1, also where all classes with a share had no probability."""
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not there")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    P = np.random.default_rng(0).dirichlet([1.0, 1.0, 1.0], size=20)
    P[0] = [0.0, 0.0, 1.0]
    shift = Shift(np.array([0.4, 0.6, 0.0]), TRAINED, np.array([0, 3]))
    expected = shift.proba(P)
    np.testing.assert_allclose(expected.sum(axis=1), 1)
    np.testing.assert_allclose(expected[0], [0.4, 0.6, 0.0])
    with config_context(array_api_dispatch=True):
        found = shift.proba(xp.asarray(P))
    np.testing.assert_allclose(np.asarray(found), expected)
