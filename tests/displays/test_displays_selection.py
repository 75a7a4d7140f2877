"""Displays of searches: a cell for every point, the best over other hyperparameters, the chosen point marked."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from conftest import PLAIN, PLAIN_SUM

from leastwise import LSPC, LSSVR, KernelLogisticRegression, MultiTaskLSPC
from leastwise.datasets import make_related_tasks, make_three_class
from leastwise.displays import RegularisationPathDisplay, SelectionDisplay
from leastwise.displays._search_results import is_log

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def rows():
    return make_three_class(120, random_state=0)


@pytest.fixture(scope="module")
def model(rows):
    return LSPC(**PLAIN, random_state=0).fit(*rows)


@pytest.fixture(scope="module")
def shared():
    data = make_related_tasks(4, 30, random_state=0)
    return MultiTaskLSPC(**PLAIN, random_state=0).fit(data.X, data.y, tasks=data.task)


def cells_of(surface):
    """Middle, on a logarithmic scale, and value of every cell."""
    boxes = np.array([path.vertices[:4] for path in surface.get_paths()])
    return np.sqrt(boxes.min(axis=1) * boxes.max(axis=1)), np.asarray(surface.get_array()), boxes


def column(table, **fixed):
    keep = np.ones(len(table["mean_test_score"]), dtype=bool)
    for name, value in fixed.items():
        keep &= table[f"param_{name}"] == value
    return {name: values[keep] for name, values in table.items()}


# ---------------------------------------------------------------------- surface


def test_every_point_has_its_cell(model):
    display = SelectionDisplay.from_estimator(model)
    found = model.cv_results_
    _, values, boxes = cells_of(display.surfaces_[0])
    points = set(zip(found["param_sigma"], found["param_alpha"], strict=True))
    assert len(values) == len(points)  # one may have been met twice
    for sigma, alpha, score in zip(found["param_sigma"], found["param_alpha"], found["mean_test_score"], strict=True):
        low, high = boxes.min(axis=1), boxes.max(axis=1)
        here = (low[:, 0] < alpha) & (alpha < high[:, 0]) & (low[:, 1] < sigma) & (sigma < high[:, 1])
        assert values[here].tolist() == [pytest.approx(-score)]  # in one cell and no other
    assert display.axes_[0].get_xscale() == display.axes_[0].get_yscale() == "log"
    assert (display.axes_[0].get_xlabel(), display.axes_[0].get_ylabel()) == ("alpha", "sigma")
    assert display.colorbar_.ax.get_ylabel() == "Held-out log-loss"
    np.testing.assert_allclose(display.marks_[0].get_xydata(), [[model.alpha_, model.sigma_]])


def test_the_best_has_the_brightest_colour(model):
    for scoring in ("log_loss", "accuracy"):
        display = SelectionDisplay.from_results(model.cv_results_, scoring=scoring)
        cells = display.surfaces_[0]
        score = np.asarray(cells.get_array())
        best = score.argmin() if scoring == "log_loss" else score.argmax()
        colors = cells.to_rgba(score)[:, :3]
        assert colors.sum(axis=1).argmax() == best or np.allclose(colors[best], colors[colors.sum(axis=1).argmax()])
        ticks = display.colorbar_.get_ticks()
        assert min(ticks) >= score.min() - 1e-9
        assert max(ticks) <= score.max() + 1e-9


def test_best_over_sharing_or_a_panel_each(shared):
    found = shared.cv_results_
    display = SelectionDisplay.from_estimator(shared)
    points = set(zip(found["param_sigma"], found["param_alpha"], strict=True))
    best = [-column(found, sigma=s, alpha=a)["mean_test_score"].max() for s, a in points]
    np.testing.assert_allclose(np.sort(display.surfaces_[0].get_array()), np.sort(best))
    panels = SelectionDisplay.from_estimator(shared, by="sharing")
    levels = np.unique(found["param_sharing"])
    assert [ax.get_title() for ax in panels.axes_] == [f"sharing {v:g}" for v in levels]
    for level, surface in zip(levels, panels.surfaces_, strict=True):
        here = column(found, sharing=level)["mean_test_score"]
        np.testing.assert_allclose(np.sort(surface.get_array()), np.sort(-here))
    assert len(panels.marks_) == 1
    assert panels.marks_[0].axes.get_title() == f"sharing {shared.sharing_:g}"
    other = SelectionDisplay.from_estimator(shared, y="sharing")
    assert other.axes_[0].get_yscale() == "linear"  # 0 has no logarithm


@pytest.mark.parametrize("kind", ["cells", "contours"])
def test_other_models_and_contours(rows, kind):
    X, y = rows
    for other in (
        KernelLogisticRegression(**PLAIN, cv=3, random_state=0).fit(X, y),
        LSSVR(**PLAIN_SUM, random_state=0).fit(X, y),
    ):
        display = SelectionDisplay.from_estimator(other, kind=kind)
        display.figure_.canvas.draw()
        np.testing.assert_allclose(display.marks_[0].get_xydata(), [[other.alpha_, other.sigma_]])


def test_one_stage_only(rows):
    model = LSPC(**PLAIN, search_rows=60, random_state=0).fit(*rows)
    found = model.cv_results_
    assert len(np.unique(found["n_rows"])) == 2
    display = SelectionDisplay.from_estimator(model)
    first = found["mean_test_score"][found["n_rows"] == found["n_rows"].min()]
    shown = np.unique(np.round(display.surfaces_[0].get_array(), 5))  # a point may have been looked at twice
    np.testing.assert_allclose(shown, np.unique(np.round(-first, 5)))
    assert "of 120 rows)" in display.colorbar_.ax.get_ylabel()
    path = RegularisationPathDisplay.from_estimator(model)
    last = found["n_rows"] == 120
    np.testing.assert_allclose(np.sort(path.settled_.get_xdata()), np.sort(found["param_alpha"][last]))
    assert path.mark_.get_ydata() == pytest.approx(-found["mean_test_score"][last].max())


def test_without_a_second_parameter(rows):
    model = LSPC(kernel="linear", random_state=0).fit(*rows)
    with pytest.raises(ValueError, match="needs two hyperparameters"):
        SelectionDisplay.from_estimator(model)
    path = RegularisationPathDisplay.from_estimator(model)
    assert list(path.lines_) == [0.0]
    with pytest.raises(ValueError, match="'alpha' was not searched, or has one value only"):
        RegularisationPathDisplay.from_estimator(LSPC(1.0, 0.1).fit(*rows))


def test_bands_that_were_refined_reach_the_border_too():
    alphas = {1.0: [0.01, 0.1, 1.0], 2.0: [0.01, 0.1, 0.5, 1.0], 4.0: [0.01, 0.1]}
    points = [(s, a) for s, some in alphas.items() for a in some]
    table = {"param_sigma": [s for s, _ in points], "param_alpha": [a for _, a in points]}
    table["mean_test_score"] = np.linspace(0, 1, len(points))
    _, _, boxes = cells_of(SelectionDisplay.from_results(table).surfaces_[0])
    right = {s: max(b[:, 0].max() for b, (t, _) in zip(boxes, points, strict=True) if t == s) for s in alphas}
    assert right[1.0] == right[2.0] == pytest.approx(10**0.5)
    assert right[4.0] == pytest.approx(10**-0.5)  # this one was not looked at beyond 0.1


def test_a_point_that_is_met_again_counts_once():
    table = {"param_alpha": [0.1, 1.0, 0.1, 1.0], "n_rows": [50, 50, 50, 90], "mean_test_score": [0.3, 0.1, 0.2, 0.5]}
    display = RegularisationPathDisplay.from_results(table)
    np.testing.assert_allclose(display.lines_[0.0].get_xydata(), [[0.1, 0.2], [1.0, 0.1]])
    np.testing.assert_allclose(display.settled_.get_xydata(), [[1.0, 0.5]])
    np.testing.assert_allclose(display.mark_.get_xydata(), [[1.0, 0.5]])


# ------------------------------------------------------------------------- path


def test_paths_against_the_table(model):
    display = RegularisationPathDisplay.from_estimator(model)
    found = model.cv_results_
    assert sorted(display.lines_) == np.unique(found["param_sigma"]).tolist()
    for sigma, line in display.lines_.items():
        here = column(found, sigma=sigma)
        last = {f"{a:.9g}": (a, -s) for a, s in zip(here["param_alpha"], here["mean_test_score"], strict=True)}
        np.testing.assert_array_equal(line.get_xydata(), sorted(last.values()))  # a point met twice counts once
    widths = {sigma: line.get_linewidth() for sigma, line in display.lines_.items()}
    assert max(widths, key=widths.get) == model.sigma_
    np.testing.assert_allclose(display.mark_.get_xydata(), [[model.alpha_, -found["mean_test_score"].max()]])
    assert display.settled_ is None
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"{model.sigma_:.3g} (chosen)" in names
    display.figure_.canvas.draw()
    box = display.ax_.get_legend().get_window_extent()
    assert box.x0 > display.ax_.get_window_extent().x1  # beside the curves
    assert box.x1 <= display.figure_.bbox.x1


def test_path_at_the_chosen_sharing(shared):
    found = shared.cv_results_
    display = RegularisationPathDisplay.from_estimator(shared)
    for sigma, line in display.lines_.items():
        here = column(found, sigma=sigma, sharing=shared.sharing_)
        np.testing.assert_allclose(np.sort(line.get_ydata()), np.sort(-here["mean_test_score"]))
    by = RegularisationPathDisplay.from_estimator(shared, by="sharing", ax=plt.subplots()[1])
    for sharing, line in by.lines_.items():
        here = column(found, sigma=shared.sigma_, sharing=sharing)
        np.testing.assert_allclose(np.sort(line.get_xdata()), np.sort(here["param_alpha"]))
    assert by.ax_.get_legend().get_title().get_text() == "sharing"
    assert len(RegularisationPathDisplay.from_estimator(shared, by=None).lines_) == 1


def test_which_axes_are_logarithmic():
    assert is_log("alpha", np.array([1e-3, 1.0]))
    assert not is_log("sharing", np.array([0.1, 0.9]))
    assert not is_log("linear_weight", np.array([0.0, 1.0]))


# ------------------------------------------------------------------------ errors


def test_wrong_arguments_are_named(model, rows):
    with pytest.raises(ValueError, match="kind='dots' is not known: use 'cells' or 'contours'"):
        SelectionDisplay.from_estimator(model, kind="dots")
    with pytest.raises(ValueError, match="'sharing' was not searched, or has one value only"):
        SelectionDisplay.from_estimator(model, by="sharing")
    with pytest.raises(ValueError, match="LSPC has no cv_results_"):
        SelectionDisplay.from_estimator(LSPC(1.0, 0.1, cv=None, calibration=None).fit(*rows))
    with pytest.raises(ValueError, match="1 panels but 2 axes"):
        SelectionDisplay.from_estimator(model, ax=plt.subplots(1, 2)[1])
    line = {"param_sigma": [1, 2], "param_alpha": [1, 2], "mean_test_score": [0.1, 0.2]}
    with pytest.raises(ValueError, match="three points that are not on one line"):
        SelectionDisplay.from_results(line, kind="contours")
    with pytest.raises(ValueError, match="no point with a score"):
        SelectionDisplay.from_results({**line, "mean_test_score": [np.nan, np.nan]})


def test_without_matplotlib(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for display in (SelectionDisplay, RegularisationPathDisplay):
        with pytest.raises(ImportError, match=r"leastwise\[plot\]"):
            display.from_estimator(model)
        with pytest.raises(ImportError, match=r"leastwise\[plot\]"):
            display.from_results(model.cv_results_)
