"""Displays of tasks have the right numbers and order, and legible names."""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
import pytest

from leastwise import MultiTaskLSPC
from leastwise.datasets import make_related_tasks
from leastwise.displays import SimilarityDisplay, TaskReportDisplay
from leastwise.displays._base import thinning_note
from leastwise.inspection.task_report import task_report

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

VERSIONS = ["independent", "pooled", "multi_task"]
FIXED = {"sigma": 1.0, "alpha": 0.01, "sharing": 0.5, "random_state": 0}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    data = make_related_tasks(5, [30, 12, 25, 3, 40], n_groups=2, random_state=4)
    data.y[data.task == 3] = 1  # no area
    return data


@pytest.fixture(scope="module")
def report(data):
    return task_report(data.X, data.y, np.array(list("abcde"))[data.task], model=MultiTaskLSPC(**FIXED))


def made_up(T, seed=0):
    """A display of T tasks with random values."""
    rng = np.random.default_rng(seed)
    values = {v: rng.uniform(0.2, 0.7, T) for v in VERSIONS}
    names = [f"St. Mary's General Hospital of the Sea, ward {k:03d}" for k in range(T)]
    return TaskReportDisplay(names, values, {v: values[v].mean() for v in VERSIONS})


def texts(labels):
    return [label.get_text() for label in labels]


def inside(figure, artist):
    """True if the artist is inside the figure."""
    box, page = artist.get_window_extent(), figure.bbox
    return box.x0 >= 0 and box.y0 >= 0 and box.x1 <= page.x1 + 1 and box.y1 <= page.y1 + 1


def apart(labels, axis):
    """True if no two labels overlap along an axis."""
    boxes = [label.get_window_extent() for label in labels]
    spans = sorted((box.y0, box.y1) if axis == "y" else (box.x0, box.x1) for box in boxes)
    return all(a[1] <= b[0] + 1 for a, b in pairwise(spans))


# ----------------------------------------------------------------- task by task


@pytest.mark.parametrize("metric", ["log_loss", "auc", "calibration"])
def test_dots_are_the_figures_of_the_report(report, metric):
    display = TaskReportDisplay.from_report(report, metric=metric)
    first, last = report.table[f"{metric}_independent"][:-1], report.table[f"{metric}_multi_task"][:-1]
    gain = last - first if metric == "auc" else first - last
    known = np.flatnonzero(~np.isnan(gain))
    np.testing.assert_array_equal(display.order_, known[np.argsort(-gain[known], kind="stable")])
    for version in VERSIONS:
        column = report.table[f"{metric}_{version}"]
        np.testing.assert_array_equal(display.dots_[version].get_xdata(), column[[*display.order_, -1]])
        np.testing.assert_array_equal(display.dots_[version].get_ydata(), np.arange(len(known) + 1))
        assert display.lines_[version].get_xdata()[0] == column[-1]
    names = [report.tasks[i] for i in display.order_]
    assert texts(display.ax_.get_yticklabels()) == [*names, "all tasks"]
    assert texts(display.ax_.get_legend().get_texts()) == ["independent", "pooled", "multi-task"]
    low, high = display.ax_.get_ylim()
    assert low > len(known) > 0 > high  # the largest gain at the top


def test_what_the_axis_says(report):
    label = TaskReportDisplay.from_report(report).ax_.get_xlabel()
    assert label == "Held-out log-loss\n(bars: ± one standard error of the gain over independent)"
    label = TaskReportDisplay.from_report(report, metric="auc").ax_.get_xlabel()
    assert label == "Held-out AUC\n(not shown: 1 without a value)"


@pytest.mark.parametrize("ref_line", [False, True])
def test_bars_are_standard_errors(report, ref_line):
    display = TaskReportDisplay.from_report(report, ref_line=ref_line)
    order = [*display.order_, -1][: 5 + ref_line]
    ends = np.array(display.bars_.get_segments())
    value, error = (report.table[k][order] for k in ("log_loss_multi_task", "gain_over_independent_se"))
    np.testing.assert_allclose(ends[:, 0, 0], value - error)
    np.testing.assert_allclose(ends[:, 1, 0], value + error)
    np.testing.assert_array_equal(ends[:, 0, 1], np.arange(5 + ref_line))
    assert TaskReportDisplay.from_report(report, metric="auc").bars_ is None


def test_bars_only_where_they_can_be_read():
    for T, drawn in ((40, True), (41, False)):
        display = made_up(T)
        display.errors = np.append(np.nan, np.full(T, 0.1))  # that of a single row is not known
        bars = display.plot().bars_
        assert len(bars.get_segments()) == T if drawn else bars is None


def test_sorted_as_the_report_is(report):
    np.testing.assert_array_equal(TaskReportDisplay.from_report(report).order_, report.order())


def test_without_reference(report):
    ax = plt.subplots()[1]
    display = TaskReportDisplay.from_report(report, ref_line=False, ax=ax)
    assert display.ax_ is ax
    assert display.lines_ == {}
    assert len(display.dots_["pooled"].get_xdata()) == 5
    assert "all tasks" not in texts(ax.get_yticklabels())


def test_from_estimator(data, report):
    model = MultiTaskLSPC(**FIXED)
    display = TaskReportDisplay.from_estimator(model, data.X, data.y, data.task)
    np.testing.assert_array_equal(display.values["pooled"], report.table["log_loss_pooled"][:-1])
    assert not hasattr(model, "tasks_")


@pytest.mark.parametrize("T", [1, 30, 70, 200])
def test_names_can_be_read(T):
    display = made_up(T).plot()
    display.figure_.canvas.draw()
    labels = display.ax_.get_yticklabels()
    assert len(labels) == (T + 1 if T <= 70 else 68)
    assert len(set(texts(labels))) == len(labels)  # the part that tells them apart is kept
    assert max(map(len, texts(labels))) <= 28
    assert T == 1 or all(text[0] == "…" for text in texts(labels)[:-1])
    remark = "(every 3rd task is named)"
    assert (remark in display.ax_.get_xlabel()) == (T == 200)
    assert inside(display.figure_, display.ax_.xaxis.label)
    assert apart(labels, "y")
    assert all(inside(display.figure_, label) for label in labels)
    assert inside(display.figure_, display.ax_.get_legend())
    assert display.ax_.get_window_extent().width > 0.5 * display.figure_.bbox.width


# ------------------------------------------------------------------ similarities


def blocks(T, k=3):
    """k groups of tasks, mixed."""
    return np.equal.outer(np.arange(T) % k, np.arange(T) % k).astype(float)


def test_groups_stand_together():
    display = SimilarityDisplay.from_matrix(blocks(12))
    group = display.order_ % 3
    assert np.count_nonzero(np.diff(group)) == 2
    shown = display.image_.get_array()
    np.testing.assert_array_equal(shown, np.equal.outer(group, group))
    assert texts(display.ax_.get_yticklabels()) == [str(k) for k in display.order_]
    assert texts(display.ax_.get_xticklabels()) == texts(display.ax_.get_yticklabels())
    assert display.colorbar_.ax.get_ylabel() == "similarity"
    assert display.image_.get_clim() == (0, 1)


def test_alike_tasks_keep_their_order():
    np.testing.assert_array_equal(SimilarityDisplay.from_matrix(np.ones((6, 6))).order_, np.arange(6))
    np.testing.assert_array_equal(SimilarityDisplay.from_matrix([[1.0]], ["only"]).order_, [0])


def test_title_where_all_tasks_share_alike(data, report):
    display = SimilarityDisplay.from_estimator(report.models["multi_task"])
    assert display.ax_.get_title() == "all tasks share equally (sharing 0.5)"
    display.figure_.canvas.draw()
    assert inside(display.figure_, display.ax_.title)
    for S in (0.1 + 0.9 * blocks(5, 2), np.eye(5)):
        model = MultiTaskLSPC(**FIXED, similarity=S).fit(data.X, data.y, tasks=data.task)
        assert SimilarityDisplay.from_estimator(model).ax_.get_title() == ""
    assert SimilarityDisplay.from_matrix(np.ones((2, 2)), title="mine").ax_.get_title() == "mine"


@pytest.mark.parametrize(
    ("step", "word"), [(2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (13, "13th"), (21, "21st")]
)
def test_which_are_named(step, word):
    assert thinning_note(step * 10, 10) == [f"(every {word} task is named)"]


def test_signed_values_have_zero_in_the_middle(rng):
    A = 2 * blocks(8, 2) - 1 + 0.1 * rng.normal(size=(8, 8))
    np.fill_diagonal(A, 50)
    display = SimilarityDisplay.from_matrix(A)
    assert display.signed
    assert np.count_nonzero(np.diff(display.order_ % 2)) == 1
    low, high = display.image_.get_clim()
    assert -low == high
    assert 1 < high < 2  # the diagonal does not count
    shown = np.ma.filled(display.image_.get_array(), np.nan)
    assert np.isnan(np.diagonal(shown)).all()
    np.testing.assert_array_equal(shown[0, 1:], A[display.order_[0], display.order_[1:]])
    assert display.image_.get_cmap().name == "RdBu"
    assert not SimilarityDisplay.from_matrix(A, signed=False).signed


def test_nothing_shared_can_be_drawn():
    display = SimilarityDisplay.from_matrix(np.diag([1.0, 2.0, 3.0]), signed=True)
    assert display.image_.get_clim() == (-1, 1)
    display.figure_.canvas.draw()


def test_from_a_report(report):
    display = SimilarityDisplay.from_report(report)
    np.testing.assert_array_equal(display.matrix, report.helps)
    assert display.signed
    assert display.ax_.get_xlabel() == "task that helps"
    assert display.ax_.get_ylabel() == "task that is helped"
    assert sorted(texts(display.ax_.get_yticklabels())) == list("abcde")


def test_pictures_of_one_model_have_one_order(data):
    S = 0.1 + 0.9 * blocks(5, 2)
    report = task_report(data.X, data.y, data.task, model=MultiTaskLSPC(**FIXED, similarity=S))
    similar = SimilarityDisplay.from_estimator(report.models["multi_task"])
    np.testing.assert_array_equal(SimilarityDisplay.from_report(report).order_, similar.order_)
    np.testing.assert_array_equal(similar.matrix, S)
    coupled = SimilarityDisplay.from_estimator(report.models["multi_task"], coupling=True, colorbar=False)
    np.testing.assert_array_equal(coupled.matrix, report.models["multi_task"].coupling_)
    assert coupled.label == "coupling"
    assert coupled.colorbar_ is None


def test_given_order_and_axes():
    ax = plt.subplots()[1]
    display = SimilarityDisplay.from_matrix(blocks(4), list("wxyz"), order=[3, 1, 0, 2], ax=ax, cmap="magma")
    assert display.ax_ is ax
    assert texts(ax.get_xticklabels()) == ["z", "x", "w", "y"]
    assert display.image_.get_cmap().name == "magma"


@pytest.mark.parametrize("T", [2, 12, 30, 40, 100])
@pytest.mark.parametrize("long", [False, True])
def test_names_of_the_map_can_be_read(rng, T, long):
    names = [f"St. Mary's General Hospital, ward {k:03d}" if long else k for k in range(T)]
    display = SimilarityDisplay.from_matrix(rng.normal(size=(T, T)), names, axis_labels=("helps", "helped"))
    display.figure_.canvas.draw()
    x, y = display.ax_.get_xticklabels(), display.ax_.get_yticklabels()
    assert len(x) == len(y) == (T if T <= 40 else 34)
    assert display.ax_.get_xlabel() == "helps" + "\n(every 3rd task is named)" * (T > 40)
    assert apart(x, "x")
    assert apart(y, "y")
    everything = [*x, *y, display.ax_.xaxis.label, display.ax_.yaxis.label, display.colorbar_.ax.yaxis.label]
    assert all(inside(display.figure_, artist) for artist in everything)


# ------------------------------------------------------------------------ errors


def test_wrong_arguments_are_named(data, report):
    with pytest.raises(ValueError, match="metric='loss' is not known"):
        TaskReportDisplay.from_report(report, metric="loss")
    with pytest.raises(ValueError, match="metric='loss' is not known"):
        TaskReportDisplay.from_estimator(MultiTaskLSPC(**FIXED), data.X, data.y, data.task, metric="loss")
    for matrix, names in [
        (np.ones((2, 3)), None),
        (np.ones((2, 2)), ["a"]),
        (np.ones(3), None),
        (np.ones((0, 0)), []),
    ]:
        with pytest.raises(ValueError, match="one row, one column and one name"):
            SimilarityDisplay.from_matrix(matrix, names)
    with pytest.raises(ValueError, match="every number from 0 to 1 once"):
        SimilarityDisplay.from_matrix(np.eye(2), order=[0, 0])
    none = task_report(data.X, data.y, data.task, model=MultiTaskLSPC(**FIXED, n_centers=5))
    with pytest.raises(ValueError, match="no coefficient for every row"):
        SimilarityDisplay.from_report(none)


def test_without_matplotlib(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"leastwise\[plot\]"):
        TaskReportDisplay.from_report(report)
    with pytest.raises(ImportError, match=r"leastwise\[plot\]"):
        SimilarityDisplay.from_matrix(np.eye(2))
