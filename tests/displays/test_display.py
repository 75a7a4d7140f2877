"""Displays hold the right numbers and label what they draw."""

from __future__ import annotations

import operator
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from leastwise.datasets import make_three_class, three_class_posterior
from leastwise.displays import PosteriorDisplay, ReliabilityDisplay
from leastwise.metrics.calibration import expected_calibration_error

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

LIMITS = ((-4.0, 4.0), (-3.0, 3.0))


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def predictions():
    X, y = make_three_class(157, random_state=0)
    return np.array(["a", "b", "c"])[y], three_class_posterior(X)


@pytest.fixture
def model():
    X, y = make_three_class(100, random_state=1)
    return LogisticRegression().fit(X, y), X, y


def _slow_bins(y, P, classes, n_bins):
    """Bins of equal mass, row by row: a row goes where the middle of the rows of its confidence lies."""
    bins = [[] for _ in range(n_bins)]
    for i in range(len(y)):
        less, equal = (sum(how(max(p), max(P[i])) for p in P) for how in (operator.lt, operator.eq))
        bins[int((less + equal / 2) * n_bins / len(y))].append(i)
    confidence = [np.mean([max(P[i]) for i in rows]) for rows in bins]
    accuracy = [np.mean([classes[np.argmax(P[i])] == y[i] for i in rows]) for rows in bins]
    return confidence, accuracy, [len(rows) for rows in bins]


# ----------------------------------------------------------------- reliability


@pytest.mark.parametrize("n_bins", [1, 7, 15])
def test_bins_against_a_loop(predictions, n_bins):
    y, P = predictions
    display = ReliabilityDisplay.from_predictions(y, P, n_bins=n_bins)
    confidence, accuracy, counts = _slow_bins(y, P, ["a", "b", "c"], n_bins)
    np.testing.assert_allclose(display.confidence, confidence)
    np.testing.assert_allclose(display.accuracy, accuracy)
    np.testing.assert_array_equal(display.counts, counts)
    gap = np.abs(display.confidence - display.accuracy) @ display.counts / len(y)
    assert display.error == pytest.approx(gap)
    assert display.error == pytest.approx(expected_calibration_error(y, P, n_bins=n_bins))


def test_what_is_drawn(predictions):
    display = ReliabilityDisplay.from_predictions(*predictions, name="truth", color="C3")
    assert display.histogram_.get_xlabel() == "Confidence"
    assert display.ax_.get_ylabel() == "Accuracy"
    np.testing.assert_array_equal(display.line_.get_xdata(), display.confidence)
    np.testing.assert_array_equal(display.line_.get_ydata(), display.accuracy)
    assert display.line_.get_color() == "C3"
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"truth (ECE {display.error:.4f})" in texts
    assert display.histogram_.patches[0].get_data().values.sum() == pytest.approx(1)
    display.figure_.canvas.draw()


def test_two_diagrams_on_the_same_axes(predictions):
    first = ReliabilityDisplay.from_predictions(*predictions, name="one")
    ReliabilityDisplay.from_predictions(*predictions, name="two", ax=first.ax_)
    texts = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    assert len(texts) == 3
    assert texts.count("perfect calibration") == 1


def test_plain_curve(predictions):
    display = ReliabilityDisplay.from_predictions(*predictions, histogram=False, ref_line=False)
    assert len(display.ax_.lines) == 1
    assert not display.ax_.patches
    assert [t.get_text() for t in display.ax_.get_legend().get_texts()] == [f"ECE {display.error:.4f}"]


def test_from_estimator(model):
    classifier, X, y = model
    display = ReliabilityDisplay.from_estimator(classifier, X, y, n_bins=5)
    other = ReliabilityDisplay.from_predictions(y, classifier.predict_proba(X), n_bins=5)
    np.testing.assert_array_equal(display.accuracy, other.accuracy)
    assert display.name == "LogisticRegression"


def test_a_class_may_be_missing_and_rows_few(predictions):
    _, P = predictions
    display = ReliabilityDisplay.from_predictions(["a", "b"], P[:2], classes=["a", "b", "c"])
    assert len(display.counts) == 2
    with pytest.raises(ValueError, match="classes="):
        ReliabilityDisplay.from_predictions(["a", "b"], P[:2])


# ------------------------------------------------------------------- posterior


@pytest.mark.parametrize("kind", ["contourf", "pcolormesh"])
def test_posterior_of_a_function(kind):
    display = PosteriorDisplay.from_function(three_class_posterior, LIMITS, resolution=9, kind=kind)
    assert display.proba.shape == (9, 9, 3)
    point = [[display.x[2], display.y[6]]]
    np.testing.assert_allclose(display.proba[6, 2], three_class_posterior(point)[0])
    assert [ax.get_title() for ax in display.axes_] == ["class 0", "class 1", "class 2"]
    assert all(ax.get_xlabel() for ax in display.axes_)
    assert display.axes_[0].get_ylabel()
    assert display.colorbar_.vmin == 0
    assert display.colorbar_.vmax == 1
    display.figure_.canvas.draw()


def test_posterior_of_an_estimator(model):
    classifier, X, _ = model
    display = PosteriorDisplay.from_estimator(classifier, X, resolution=5, names=["x", "y", "z"], colorbar=False)
    assert display.x[0] < X[:, 0].min() < X[:, 0].max() < display.x[-1]
    assert display.y[0] < X[:, 1].min() < X[:, 1].max() < display.y[-1]
    corner = classifier.predict_proba([[display.x[0], display.y[-1]]])[0]
    np.testing.assert_allclose(display.proba[-1, 0], corner)
    assert display.axes_[2].get_title() == "z"
    assert display.colorbar_ is None


def test_posterior_on_given_axes(model):
    axes = plt.subplots(1, 3)[1]
    display = PosteriorDisplay.from_estimator(model[0], limits=LIMITS, resolution=5, ax=axes)
    assert list(display.axes_) == list(axes)
    with pytest.raises(ValueError, match="3 classes but 2 axes"):
        display.plot(axes[:2])


def test_wrong_arguments_are_named(model):
    with pytest.raises(ValueError, match="X or limits"):
        PosteriorDisplay.from_estimator(model[0])
    with pytest.raises(ValueError, match="two features"):
        PosteriorDisplay.from_estimator(model[0], np.zeros((4, 3)))
    with pytest.raises(ValueError, match="kind='dots'"):
        PosteriorDisplay.from_estimator(model[0], limits=LIMITS, resolution=5, kind="dots")


# ---------------------------------------------------------- without matplotlib


def test_without_matplotlib(predictions, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"leastwise\[plot\]"):
        ReliabilityDisplay.from_predictions(*predictions)
    with pytest.raises(ImportError, match=r"leastwise\[plot\]"):
        PosteriorDisplay.from_function(three_class_posterior, LIMITS)
