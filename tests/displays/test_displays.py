"""Displays of probabilities have the right numbers, compared with loops over rows, bins, tasks and labels."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

from leastwise import LSPC, MultiLabelLSPC, MultiTaskLSPC
from leastwise.datasets import make_related_tasks, make_rotated_labels, make_three_class, three_class_posterior
from leastwise.displays import (
    GroupedReliabilityDisplay,
    PosteriorDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    SimilarityDisplay,
)
from leastwise.inspection.outcomes import accepted_rows, risk_coverage_area
from leastwise.metrics.reliability import exact_interval, exact_upper

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

LONG = [f"St. Mary's General Hospital of the Sea, ward {k:03d}" for k in range(30)]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def predictions():
    X, y = make_three_class(157, random_state=0)
    return np.array(["a", "b", "c"])[y], three_class_posterior(X)


@pytest.fixture(scope="module")
def tasks():
    data = make_related_tasks(4, 40, n_features=2, random_state=4)
    model = MultiTaskLSPC(sigma=1.0, alpha=0.01, sharing=0.5, random_state=0)
    return data, model.fit(data.X, data.y, tasks=data.task)


@pytest.fixture(scope="module")
def labels():
    data = make_rotated_labels(n_labels=4, n_rows=120, n_features=5, noise=0.1, random_state=0)
    Y = np.where(np.random.default_rng(0).random(data.Y.shape) < 0.2, np.nan, data.Y)
    return Y, data.X, MultiLabelLSPC(sigma=2.0, alpha=0.01, sharing=0.5, random_state=0).fit(data.X, Y)


def texts(artists):
    return [artist.get_text() for artist in artists]


def apart(artists):
    """True if no two artists overlap."""
    boxes = [artist.get_window_extent() for artist in artists]
    return not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def inside(figure, artists):
    page = figure.bbox
    boxes = [artist.get_window_extent() for artist in artists]
    return all(b.x0 >= -1 and b.y0 >= -1 and b.x1 <= page.x1 + 1 and b.y1 <= page.y1 + 1 for b in boxes)


def bins_of(p, true, n_bins):
    """Means and counts of bins of equal mass, row by row: a row goes where the middle of the rows with its p lies."""
    bins = [[] for _ in range(n_bins)]
    for i, value in enumerate(p):
        bins[int((np.sum(p < value) + np.sum(p == value) / 2) * n_bins / len(p))].append(i)
    return [(np.mean(p[b]), np.mean(true[b]), len(b)) for b in bins]


def matches(display, p, true, n_bins):
    expected = np.array(bins_of(np.asarray(p), np.asarray(true), n_bins)).T
    np.testing.assert_allclose([display.confidence, display.accuracy, display.counts], expected)
    assert display.error == pytest.approx(np.abs(expected[0] - expected[1]) @ expected[2] / len(p))


# ------------------------------------------------------------------- intervals


@given(st.integers(1, 60), st.data(), st.sampled_from([0.5, 0.9, 0.95]))
def test_exact_intervals_by_their_definition(n, data, level):
    k = data.draw(st.integers(0, n))
    low, high = exact_interval(k, n, level)
    tail = (1 - level) / 2
    assert binom.sf(k - 1, n, low) == pytest.approx(tail) if k else low == 0
    assert binom.cdf(k, n, high) == pytest.approx(tail) if k < n else high == 1
    upper = float(exact_upper(np.array(k), np.array(n), level))
    assert binom.cdf(k, n, upper) == pytest.approx(1 - level) if k < n else upper == 1


def test_intervals_are_drawn(predictions):
    display = ReliabilityDisplay.from_predictions(*predictions, n_bins=6, level=0.9)
    low, high = exact_interval(display.accuracy * display.counts, display.counts, 0.9)
    ends = np.array(display.bars_.get_segments())
    np.testing.assert_allclose(ends[:, 0], np.stack([display.confidence, low], axis=1))
    np.testing.assert_allclose(ends[:, 1], np.stack([display.confidence, high], axis=1))
    assert ReliabilityDisplay.from_predictions(*predictions, interval=None).bars_ is None


def test_bootstrap_is_near_the_binomial_and_knows_groups(predictions):
    y, P = (np.concatenate([part] * 20) for part in predictions)
    plain = ReliabilityDisplay.from_predictions(y, P, n_bins=4, interval="bootstrap")
    shares, counts = plain.accuracy, plain.counts
    np.testing.assert_allclose(plain.low, binom.ppf(0.025, counts, shares) / counts, atol=0.02)
    np.testing.assert_allclose(plain.high, binom.ppf(0.975, counts, shares) / counts, atol=0.02)
    groups = np.tile(np.arange(len(y) // 20), 20)  # every row 20 times, always together
    wide = ReliabilityDisplay.from_predictions(y, P, n_bins=4, interval="bootstrap", groups=groups)
    assert ((wide.high - wide.low) > 2 * (plain.high - plain.low)).all()


# ----------------------------------------------------------------- reliability


def test_one_class(predictions):
    y, P = predictions
    display = ReliabilityDisplay.from_predictions(y, P, pos_label="b", n_bins=5)
    matches(display, P[:, 1], y == "b", 5)
    assert display.histogram_.get_xlabel() == "Probability of b"
    assert display.ax_.get_ylabel() == "Share of b"


def test_probabilities_of_the_second_class(predictions):
    y, P = predictions
    display = ReliabilityDisplay.from_predictions(y == "c", P[:, 2], n_bins=5)
    matches(display, np.maximum(P[:, 2], 1 - P[:, 2]), (P[:, 2] > 0.5) == (y == "c"), 5)


def test_from_heldout(tasks, labels):
    data, model = tasks
    P = model.heldout_proba_
    display = ReliabilityDisplay.from_heldout(model, data.y, n_bins=6)
    matches(display, P.max(axis=1), model.classes_[P.argmax(axis=1)] == data.y, 6)
    assert display.name == "MultiTaskLSPC, held out"
    Y, _, model = labels
    known = ~np.isnan(Y)
    display = ReliabilityDisplay.from_heldout(model, Y, n_bins=6)
    flat = model.heldout_proba_.T[known.T], Y.T[known.T]
    matches(display, *flat, 6)


def test_rows_that_were_never_held_out_do_not_count(predictions):
    y, P = predictions
    holes = P.copy()
    holes[::3] = np.nan
    some = np.arange(len(y)) % 3 > 0
    display = ReliabilityDisplay.from_predictions(y, holes, n_bins=5)
    matches(display, P[some].max(axis=1), np.array(["a", "b", "c"])[P[some].argmax(axis=1)] == y[some], 5)
    risk = RiskCoverageDisplay.from_predictions(y, holes, confidence=np.arange(len(y)))
    assert len(risk.coverage) == some.sum()
    with pytest.raises(ValueError, match="None of the 157 rows"):
        ReliabilityDisplay.from_predictions(y, np.full_like(P, np.nan))


def test_histograms(predictions):
    first = ReliabilityDisplay.from_predictions(*predictions)
    second = ReliabilityDisplay.from_predictions(*predictions, ax=first.ax_)
    assert second.histogram_ is first.histogram_  # one below the diagram for both
    assert len(first.histogram_.patches) == 4
    values = first.histogram_.patches[0].get_data().values
    assert values.sum() == pytest.approx(1)
    assert first.line_.get_color() != second.line_.get_color()
    given = ReliabilityDisplay.from_predictions(*predictions, ax=plt.subplots()[1])
    assert given.histogram_ is None
    assert sum(bar.get_height() for bar in given.ax_.patches) == pytest.approx(1)


# --------------------------------------------------------------------- grouped


def test_task_by_task(tasks):
    data, model = tasks
    P = model.heldout_proba_[:, 1]
    display = GroupedReliabilityDisplay.from_heldout(model, data.y, tasks=data.task, pos_label=1, n_bins=10)
    for t, group in enumerate(display.groups):
        rows = data.task == t
        matches(group, P[rows], data.y[rows] == 1, 5)  # 8 rows a bin, not 4
        assert group.name == str(t)
        np.testing.assert_array_equal(group.line_.get_ydata(), group.accuracy)
        assert display.axes_[t].get_title() == f"{t}\n40 rows, ECE {group.error:.3f}"
    matches(display.overall, np.concatenate([P[data.task == t] for t in range(4)]), data.y == 1, 10)
    again = GroupedReliabilityDisplay.from_estimator(model, data.X, data.y, tasks=data.task, pos_label=1)
    rows = data.task == 2
    matches(again.groups[2], model.predict_proba(data.X, tasks=data.task)[rows, 1], data.y[rows], 5)


def test_label_by_label_and_class_by_class(labels, predictions):
    Y, X, model = labels
    display = GroupedReliabilityDisplay.from_estimator(model, X, Y, n_bins=3)
    P = model.predict_proba(X)
    for t, group in enumerate(display.groups):
        known = ~np.isnan(Y[:, t])
        matches(group, P[known, t], Y[known, t] == 1, 3)
    y, P = predictions
    display = GroupedReliabilityDisplay.from_predictions(y, P, n_bins=4)
    for k, name in enumerate("abc"):
        matches(display.groups[k], P[:, k], y == name, 4)
    assert [g.name for g in display.groups] == ["a", "b", "c"]
    numbers = GroupedReliabilityDisplay.from_predictions(np.searchsorted(["a", "b", "c"], y), P)
    assert [g.name for g in numbers.groups] == ["class 0", "class 1", "class 2"]
    assert display.figure_.get_supylabel() == "Share that was true"


def thirty(rng, n=600, **kwargs):
    y, p = rng.integers(2, size=n), rng.uniform(size=n)
    return GroupedReliabilityDisplay.from_predictions(y, p, tasks=np.array(LONG)[np.arange(n) % 30], **kwargs)


def test_thirty_long_names_can_be_read(rng):
    display = thirty(rng)
    display.figure_.canvas.draw()
    titles = [ax.title for ax in display.axes_]
    assert len(set(texts(titles))) == 30
    assert apart(titles)
    everything = [*titles, *display.figure_.texts]
    assert inside(display.figure_, everything)
    ticks = [t for ax in display.axes_ for t in ax.get_xticklabels() if t.get_visible() and t.get_text()]
    assert apart([t for t in ticks if t.get_window_extent().width])


def test_overlay_names_the_farthest(rng):
    y, task = rng.integers(2, size=900), np.array(LONG)[np.arange(900) % 30]
    p = np.where(task == LONG[7], 0.02 + 0 * y, 0.5 + 0.1 * rng.normal(size=900)).clip(0, 1)
    display = GroupedReliabilityDisplay.from_predictions(
        y, p, tasks=task, classes=[0, 1], pos_label=1, kind="overlay", most=2
    )
    assert display.shown_[0] == 7
    names = texts(display.axes_[0].get_legend().get_texts())
    assert any("007" in name for name in names)
    assert "the other tasks" in names
    assert len(names) == 5
    display.figure_.canvas.draw()
    assert inside(display.figure_, [display.axes_[0].get_legend()])


def test_the_largest_groups_have_a_panel(rng):
    sizes = [30, 10, 20, 40]
    task = np.repeat(np.arange(4), sizes)
    display = GroupedReliabilityDisplay.from_predictions(
        rng.integers(2, size=100), rng.uniform(size=100), tasks=task, most=2
    )
    np.testing.assert_array_equal(display.shown_, [0, 3])
    assert "(2 of 4 tasks, those with the most rows)" in display.figure_.get_supxlabel()


# --------------------------------------------------------------- risk-coverage


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=40))
def test_accepted_rows_and_area_against_loops(rows):
    c, wrong = np.array([r[0] for r in rows], dtype=float), np.array([r[1] for r in rows])
    found = accepted_rows(c, wrong)
    assert found.threshold.tolist() == sorted(set(c.tolist()), reverse=True)
    for t, n, e in zip(found.threshold, found.rows, found.errors, strict=True):
        assert n == sum(c >= t)
        assert e == sum(wrong[c >= t])
    # Ties in random order: the mean over many orders is that over first-come with expected errors.
    shares = []
    for k in range(1, len(c) + 1):
        least = np.sort(c)[-k]
        above, tied = c > least, c == least
        shares.append((wrong[above].sum() + (k - above.sum()) * wrong[tied].mean()) / k)
    assert risk_coverage_area(c, wrong) == pytest.approx(np.mean(shares))


def test_risk_coverage_of_a_model(tasks):
    data, model = tasks
    P = model.heldout_proba_
    top, wrong = P.max(axis=1), model.classes_[P.argmax(axis=1)] != data.y
    display = RiskCoverageDisplay.from_heldout(model, data.y, bound=True, level=0.9)
    np.testing.assert_allclose(display.risk, [wrong[top >= t].mean() for t in display.threshold])
    np.testing.assert_allclose(display.coverage, [(top >= t).mean() for t in display.threshold])
    np.testing.assert_array_equal(display.line_.get_xdata(), display.coverage)
    for risk, coverage, upper in zip(display.risk[::9], display.coverage[::9], display.upper[::9], strict=True):
        n = round(coverage * len(top))
        assert upper == pytest.approx(1.0 if risk == 1 else exact_upper(np.array(risk * n), np.array(n), 0.9))
    best = max(c for c, r in zip(display.coverage, display.risk, strict=True) if r <= 0.1)
    assert display.coverage_at(0.1) == best
    assert display.coverage_at(0.1, bound=True) <= best
    assert display.coverage_at(-1.0) == 0
    names = texts(display.ax_.get_legend().get_texts())
    assert names == [f"MultiTaskLSPC, held out (area {display.area:.4f})", "upper bound (90%)"]
    assert display.ax_.get_ylim()[1] >= display.risk.max()


def test_several_curves_and_labels(labels, predictions):
    Y, X, model = labels
    first = RiskCoverageDisplay.from_estimator(model, X, Y, max_error=0.05)
    assert first.ax_.get_xlabel() == "Share of labels accepted"
    P, known = model.predict_proba(X), ~np.isnan(Y)
    wrong = ((P > 0.5) != Y)[known]
    assert first.risk[-1] == pytest.approx(wrong.mean())
    assert first.band_ is None
    second = RiskCoverageDisplay.from_predictions(*predictions, ax=first.ax_, name="other")
    assert second.line_.get_color() != first.line_.get_color()
    share = first.coverage_at(0.05)
    names = texts(first.ax_.get_legend().get_texts())
    assert names[1] == f"{share:.0%} of labels at 5% error"
    assert names[2] == f"other (area {second.area:.4f})"
    np.testing.assert_allclose(first.marks_[0].get_xydata(), [[share, 0.05]])
    assert first.ax_.get_ylim()[1] > max(first.risk.max(), second.risk.max())


# ----------------------------------------------------- similarities, posteriors


@pytest.mark.parametrize("size", [(6.4, 4.8), (9.6, 7.2)])
def test_names_fit_axes_that_were_given(rng, size):
    figure, ax = plt.subplots(figsize=size, layout="constrained")
    display = SimilarityDisplay.from_matrix(rng.normal(size=(30, 30)), LONG, ax=ax)
    figure.canvas.draw()
    for names in (display.ax_.get_xticklabels(), display.ax_.get_yticklabels()):
        shown = [name for name in names if name.get_visible()]
        assert len(shown) >= 10
        assert apart(shown)
        assert inside(figure, shown)


def test_similarities_of_labels(labels):
    from scipy import sparse

    _, _, model = labels
    display = SimilarityDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.matrix, model.similarity_)
    assert display.signed
    assert sorted(texts(display.ax_.get_yticklabels())) == list("0123")
    with pytest.raises(ValueError, match="has no coupling_"):
        SimilarityDisplay.from_estimator(model, coupling=True)
    thin = SimilarityDisplay.from_matrix(sparse.csr_array(np.eye(50)), what="label")
    np.testing.assert_array_equal(thin.matrix, np.eye(50))
    assert thin.ax_.get_xlabel() == "(every 2nd label is named)"


def test_posterior_of_tasks(tasks):
    data, model = tasks
    display = PosteriorDisplay.from_tasks(model, data.X, resolution=5, tasks=[2, 0, "new"], pos_label=0)
    point = [[display.x[1], display.y[3]]]
    for k, t in enumerate([2, 0, "new"]):
        assert display.proba[3, 1, k] == pytest.approx(model.predict_proba(point, tasks=[t])[0, 0])
    assert [ax.get_title() for ax in display.axes_] == ["task 2", "task 0", "new"]
    assert display.colorbar_.ax.get_ylabel() == "probability of 0"
    assert len(PosteriorDisplay.from_tasks(model, data.X, resolution=3).axes_) == 4


def test_thirty_panels_of_the_plane():
    def flat(points):
        return np.full((len(points), 30), 0.5)

    display = PosteriorDisplay.from_function(flat, ((0, 1), (0, 1)), resolution=3, names=LONG, kind="pcolormesh")
    display.figure_.canvas.draw()
    titles = [ax.title for ax in display.axes_]
    assert apart(titles)
    assert inside(display.figure_, titles)
    assert len(set(texts(titles))) == 30
    assert sum(bool(ax.get_xlabel()) for ax in display.axes_) == 5
    assert sum(bool(ax.get_ylabel()) for ax in display.axes_) == 6


# ------------------------------------------------------------------------ errors


def test_wrong_arguments_are_named(predictions, labels, tasks):
    y, P = predictions
    for wrong, words in [
        ({"pos_label": "z"}, "pos_label='z' is not one of the classes"),
        ({"n_bins": 0}, "n_bins=0 must be 1 or more"),
        ({"interval": "normal"}, "interval='normal' is not known: use 'exact', 'bootstrap' or None"),
        ({"level": 95}, "level=95 must be between 0 and 1"),
        ({"groups": y}, "needs interval='bootstrap'"),
        ({"groups": y[:5], "interval": "bootstrap"}, "groups has 5 entries but there are 157 rows"),
        ({"histogram": "above"}, "histogram='above' is not known"),
    ]:
        with pytest.raises(ValueError, match=words):
            ReliabilityDisplay.from_predictions(y, P, **wrong)
    with pytest.raises(ValueError, match="kind='lines' is not known"):
        GroupedReliabilityDisplay.from_predictions(y, P, kind="lines")
    with pytest.raises(ValueError, match="There is no bound"):
        RiskCoverageDisplay.from_predictions(y, P).coverage_at(0.1, bound=True)
    with pytest.raises(ValueError, match="confidence of shape"):
        RiskCoverageDisplay.from_predictions(y, P, confidence=[1.0])
    with pytest.raises(ValueError, match="leave it out"):
        RiskCoverageDisplay.from_predictions(labels[0], labels[2].heldout_proba_, confidence=[1.0])
    with pytest.raises(ValueError, match="y has 4 labels, proba 3"):
        RiskCoverageDisplay.from_predictions(labels[0], labels[2].heldout_proba_[:, :3])
    with pytest.raises(ValueError, match="LogisticRegression has no heldout_proba_"):
        ReliabilityDisplay.from_heldout(LogisticRegression().fit(P, y), y)
    with pytest.raises(ValueError, match="pos_label=7"):
        PosteriorDisplay.from_tasks(tasks[1], tasks[0].X, pos_label=7)
    with pytest.raises(ValueError, match="3 panels but 2 names"):
        PosteriorDisplay.from_function(three_class_posterior, ((0, 1), (0, 1)), resolution=3, names=["a", "b"])


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_light_and_dark_pages(style, predictions):
    with plt.style.context(style):
        display = ReliabilityDisplay.from_predictions(*predictions)
        page = matplotlib.colors.to_rgb(display.ax_.get_facecolor())
        ink = matplotlib.colors.to_rgb(display.line_.get_color())
        assert abs(sum(page) - sum(ink)) > 1


def test_without_matplotlib(predictions, labels, tasks, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    data, model = tasks
    for draw in (
        lambda: GroupedReliabilityDisplay.from_predictions(*predictions),
        lambda: RiskCoverageDisplay.from_heldout(model, data.y),
        lambda: PosteriorDisplay.from_tasks(model, data.X),
        lambda: SimilarityDisplay.from_estimator(labels[2]),
        lambda: ReliabilityDisplay.from_estimator(LSPC(), data.X, data.y),
    ):
        with pytest.raises(ImportError, match=r"leastwise\[plot\]"):
            draw()
