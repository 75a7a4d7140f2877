"""Displays of models inside pipelines, wrappers and searches, and of frames."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leastwise import LSPC, MultiLabelLSPC, MultiTaskLSPC
from leastwise.datasets import make_related_tasks, make_rotated_labels, make_three_class
from leastwise.displays import (
    GroupedReliabilityDisplay,
    PosteriorDisplay,
    RegularisationPathDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    SelectionDisplay,
    SimilarityDisplay,
)
from leastwise.displays._base import fit_names
from leastwise.estimators.abstaining import Abstaining
from leastwise.estimators.recalibrated import Recalibrated

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

FIXED = {"sigma": 1.0, "alpha": [0.01, 0.1], "random_state": 0}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def rows():
    X, y = make_three_class(200, random_state=0)
    return X, np.array(["no finding", "benign", "malignant"])[y]


@pytest.fixture(scope="module")
def tasks():
    return make_related_tasks(4, 40, n_features=2, random_state=4)


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# -------------------------------------------------------------------- wrappers

WRAPPED = [
    lambda m: make_pipeline(StandardScaler(), m),
    lambda m: Abstaining(m, min_confidence=0.9),
    lambda m: Abstaining(make_pipeline(StandardScaler(), m), max_error=0.3),
    lambda m: make_pipeline(StandardScaler(), Abstaining(m, min_confidence=0.9)),
    lambda m: GridSearchCV(make_pipeline(StandardScaler(), m), {"lspc__norm": ["function"]}, cv=2),
]


@pytest.mark.parametrize("wrap", WRAPPED)
def test_heldout_predictions_of_what_is_inside(rows, wrap):
    X, y = rows
    model = wrap(LSPC(**FIXED)).fit(X, y)
    scaled = not isinstance(model, Abstaining) or not isinstance(model.estimator_, LSPC)
    inner = LSPC(**FIXED).fit(StandardScaler().fit_transform(X) if scaled else X, y)
    display = ReliabilityDisplay.from_heldout(model, y)
    np.testing.assert_allclose(display.top, inner.heldout_proba_.max(axis=1))
    assert texts(display.ax_)[1].startswith("LSPC, held out (ECE")
    assert len(GroupedReliabilityDisplay.from_heldout(model, y).groups) == 3
    assert texts(RiskCoverageDisplay.from_estimator(model, X, y).ax_)[0].startswith("LSPC (area")


def test_recalibrated_ones_are_drawn_as_such(rows):
    X, y = rows
    model = make_pipeline(StandardScaler(), Recalibrated(LSPC(**FIXED), method="temperature")).fit(X, y)
    display = ReliabilityDisplay.from_heldout(model, y)
    np.testing.assert_array_equal(display.top, model[-1].heldout_proba_.max(axis=1))
    assert display.name == "Recalibrated, held out"


def test_other_rows_are_not_taken_for_held_out_ones(rows):
    X, y = rows
    frozen = FrozenEstimator(LSPC(**FIXED).fit(X[:100], y[:100]))
    model = Abstaining(frozen, max_error=0.3).fit(X[100:], y[100:])  # as many rows, but others
    with pytest.raises(ValueError, match="The model is frozen"):
        ReliabilityDisplay.from_heldout(model, y[100:])
    ReliabilityDisplay.from_heldout(frozen, y[:100])
    with pytest.raises(ValueError, match="y has 50 rows, and the model was fitted to 100"):
        ReliabilityDisplay.from_heldout(frozen, y[:50])
    with pytest.raises(ValueError, match="Abstaining has no heldout_proba_: fit"):
        ReliabilityDisplay.from_heldout(Abstaining(LSPC(), max_error=0.3), y)
    with pytest.raises(ValueError, match="Pipeline has no heldout_proba_"):
        ReliabilityDisplay.from_heldout(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), y)


def test_searches_and_similarities_inside(tasks):
    data = tasks
    inner = MultiTaskLSPC(sigma=[0.5, 1.0], alpha=[0.01, 0.1], random_state=0)
    model = Abstaining(make_pipeline(StandardScaler(), inner), min_confidence=0.5)
    model.fit(data.X, data.y, multitasklspc__tasks=data.task)
    found = model.estimator_[-1]
    surface = SelectionDisplay.from_estimator(model)
    assert surface.searched.chosen["sigma"] == found.sigma_
    assert surface.ax_ is surface.axes_[0]
    path = RegularisationPathDisplay.from_estimator(model)
    assert path.searched.chosen["alpha"] == found.alpha_
    np.testing.assert_array_equal(SimilarityDisplay.from_estimator(model).matrix, found.similarity_)
    for display in (SelectionDisplay, RegularisationPathDisplay, SimilarityDisplay):
        with pytest.raises(ValueError, match="LogisticRegression has no "):
            display.from_estimator(LogisticRegression())


def test_tasks_go_through_a_pipeline(tasks):
    data = tasks
    model = make_pipeline(StandardScaler(), MultiTaskLSPC(sharing=0.5, **FIXED))
    model.fit(data.X, data.y, multitasklspc__tasks=data.task)
    P = model.predict_proba(data.X, tasks=data.task)
    display = ReliabilityDisplay.from_estimator(model, data.X, data.y, tasks=data.task)
    np.testing.assert_array_equal(display.top, P.max(axis=1))
    groups = GroupedReliabilityDisplay.from_estimator(model, data.X, data.y, tasks=data.task).groups
    np.testing.assert_array_equal(groups[2].top, P[data.task == 2].max(axis=1))
    plane = PosteriorDisplay.from_tasks(model, data.X, resolution=4)
    point = [[plane.x[1], plane.y[2]]]
    assert plane.proba[2, 1, 3] == pytest.approx(model.predict_proba(point, tasks=[3])[0, 1])


def test_labels_in_a_pipeline_have_their_names():
    pd = pytest.importorskip("pandas")
    data = make_rotated_labels(n_labels=3, n_rows=80, n_features=4, noise=0.1, random_state=0)
    Y = pd.DataFrame(np.where(data.Y == 1, "yes", "no"), columns=["urgent", "sales", "legal"])
    model = make_pipeline(StandardScaler(), MultiLabelLSPC(sharing=0.5, **FIXED)).fit(data.X, Y)
    some = Y.copy()
    some["legal"] = "yes"  # the model knows that there is another class, and which comes first
    P = np.asarray(model.predict_proba(data.X))
    display = GroupedReliabilityDisplay.from_estimator(model, data.X, some)
    assert [g.name for g in display.groups] == ["urgent", "sales", "legal"]
    np.testing.assert_array_equal(display.groups[2].top, P[:, 2])
    assert (display.groups[2].accuracy == 1).all()


# ------------------------------------------------------------------- abstention


def test_the_threshold_of_a_model_that_abstains(rows):
    X, y = rows
    model = Abstaining(LSPC(**FIXED), max_error=0.4).fit(X, y)
    display = RiskCoverageDisplay.from_heldout(model, y, bound=True, max_error=0.3)
    target, by_bound, mark = display.marks_
    top = model.estimator_.heldout_proba_.max(axis=1)
    wrong = model.classes_[model.estimator_.heldout_proba_.argmax(axis=1)] != y
    sure = top >= model.threshold_
    assert 0 < sure.mean() == model.coverage_
    np.testing.assert_allclose(mark.get_xydata(), [[sure.mean(), wrong[sure].mean()]])
    np.testing.assert_allclose(target.get_xydata(), [[display.coverage_at(0.3), 0.3]])
    np.testing.assert_allclose(by_bound.get_xydata(), [[display.coverage_at(0.3, bound=True), 0.3]])
    words = texts(display.ax_)
    assert f"threshold {model.threshold_:.4g}: {sure.mean():.0%} of rows accepted" in words
    assert f"{display.coverage_at(0.3, bound=True):.0%} of rows at 30% error by the bound" in words
    assert len(RiskCoverageDisplay.from_heldout(model.estimator_, y).marks_) == 0


def test_nothing_is_accepted(rows):
    X, y = rows
    with pytest.warns(UserWarning, match="everything is rejected"):
        model = Abstaining(LSPC(**FIXED), max_error=0.001).fit(X, y)
    display = RiskCoverageDisplay.from_heldout(model, y)
    np.testing.assert_array_equal(display.marks_[0].get_xydata(), [[0, 0]])
    assert "threshold inf: 0% of rows accepted" in texts(display.ax_)


def test_thresholds_of_tasks_have_no_mark(tasks):
    data = tasks
    model = Abstaining(MultiTaskLSPC(sharing=0.5, **FIXED), min_confidence=0.8, by_task=True)
    model.fit(data.X, data.y, tasks=data.task)
    assert len(RiskCoverageDisplay.from_heldout(model, data.y).marks_) == 0


# ----------------------------------------------------------------------- frames


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("given", ["task column", "features alone", "limits too"])
def test_the_plane_of_a_frame(tasks, library, given):
    frames, data = pytest.importorskip(library), tasks
    names = [f"ward {t}" for t in data.task]
    X = frames.DataFrame({"hospital": names, "size": data.X[:, 0], "shade": data.X[:, 1]})
    model = MultiTaskLSPC(task_column="hospital", sharing=0.5, **FIXED).fit(X, data.y)
    shown = X[["shade", "size"]] if given == "features alone" else X
    limits = {"limits": ((0, 1), (2, 3))} if given == "limits too" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display = PosteriorDisplay.from_tasks(model, shown, tasks=["ward 2", "new"], resolution=4, **limits)
    first, second = ("shade", "size") if given == "features alone" else ("size", "shade")
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == (first, second)
    one = {first: [display.x[1]], second: [display.y[2]]}
    for k, task in enumerate(["ward 2", "new"]):
        row = frames.DataFrame({"hospital": [task], "size": one["size"], "shade": one["shade"]})
        assert display.proba[2, 1, k] == pytest.approx(model.predict_proba(row)[0, 1])
    with pytest.raises(ValueError, match="tasks in the column 'hospital': give X as a frame"):
        PosteriorDisplay.from_tasks(model, limits=((0, 1), (0, 1)), resolution=3)


def test_the_plane_with_a_column_of_numbers(tasks):
    data = tasks
    X = np.column_stack([data.X[:, 0], data.task, data.X[:, 1]])
    for column in (1, -2):
        model = MultiTaskLSPC(task_column=column, sharing=0.5, **FIXED).fit(X, data.y)
        display = PosteriorDisplay.from_tasks(model, X, resolution=4)
        row = [[display.x[1], 3, display.y[2]]]
        assert display.proba[2, 1, 3] == pytest.approx(model.predict_proba(row)[0, 1])


def test_one_task_of_a_frame(rows):
    pd = pytest.importorskip("pandas")
    X, y = rows
    frame = pd.DataFrame(X, columns=["size", "shade"])
    model = make_pipeline(StandardScaler(), LSPC(**FIXED)).fit(frame, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display = PosteriorDisplay.from_estimator(model, frame, resolution=4)
        PosteriorDisplay.from_estimator(model, limits=((0, 1), (0, 1)), resolution=4)
    point = pd.DataFrame([[display.x[1], display.y[2]]], columns=["size", "shade"])
    np.testing.assert_allclose(display.proba[2, 1], model.predict_proba(point)[0])
    assert [ax.get_title() for ax in display.axes_] == ["benign", "malignant", "no finding"]
    assert display.ax_.get_xlabel() == "size"


@pytest.mark.parametrize("width", [0.5, 0.85, 1000.0])
def test_panels_and_titles_are_whole(width):
    """Whatever the units of the features: no title is cut, no panel is a strip."""
    display = PosteriorDisplay.from_function(
        lambda points: np.full((len(points), 3), 1 / 3), ((0, width), (0, 1)), resolution=3
    )
    display.figure_.canvas.draw()
    page = display.figure_.bbox
    for ax in display.axes_:
        box, title = ax.get_window_extent(), ax.title.get_window_extent()
        assert title.y1 <= page.y1
        assert box.height / box.width == pytest.approx(1 / width if width < 100 else 1, rel=0.01)


# ------------------------------------------------------------------------ names


@pytest.mark.parametrize(
    ("names", "width", "short"),
    [
        (["Legal and Related Affairs", "Sales and Related Affairs"], 12, ["Legal…", "Sales…"]),
        (
            ["Office of Legal and Related Affairs", "Office of Sales and Related Affairs"],
            12,
            ["…of Legal…", "…of Sales…"],
        ),
        (["Hospital, ward 1", "Hospital, ward 22"], 12, ["…ward 1", "…ward 22"]),
        (["north", "south"], 12, ["north", "south"]),
        (["of Related Affairs", "Legal, of Related Affairs"], 12, ["of…", "Legal, of…"]),
        (["only one, but long"], 11, ["only … long"]),
        (["the very same long name"] * 2, 12, ["…long name"] * 2),
    ],
)
def test_names_lose_what_all_have_in_common(names, width, short):
    assert fit_names(names, width) == short


def test_a_class_with_a_long_name_fits_the_axes(rows):
    X, y = rows
    long = np.where(y == "benign", "Malignant neoplasm of the upper lobe of the lung, unspecified side", y)
    display = ReliabilityDisplay.from_heldout(LSPC(**FIXED).fit(X, long), long, pos_label=long[y == "benign"][0])
    display.figure_.canvas.draw()
    page = display.figure_.bbox
    for text in (display.ax_.yaxis.label, display.histogram_.xaxis.label):
        box = text.get_window_extent()
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        assert page.y0 <= box.y0 < box.y1 <= page.y1
