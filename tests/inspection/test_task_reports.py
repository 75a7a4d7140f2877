"""Task reports agree with the held-out predictions of the models, and ``helps`` agrees with refits."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leastwise import LSPC, MultiTaskLSPC
from leastwise.datasets import make_related_tasks
from leastwise.inspection import task_report as module
from leastwise.inspection.task_report import TaskReport, task_report
from leastwise.inspection.task_text import shortened
from leastwise.metrics.calibration import expected_calibration_error

VERSIONS = ["independent", "pooled", "multi_task"]
#: Nothing to search: fast, and the same ridge in every version.
FIXED = {"sigma": 1.0, "alpha": 0.01, "sharing": 0.5, "random_state": 0}


def one_line(report):
    return " ".join(str(report).split())


def fixed(**changes):
    return MultiTaskLSPC(**{**FIXED, **changes})


@pytest.fixture(scope="module")
def data():
    return make_related_tasks(5, [30, 12, 25, 1, 40], n_groups=2, n_classes=2, random_state=4)


@pytest.fixture(scope="module")
def report(data):
    return task_report(data.X, data.y, data.task)


@pytest.fixture(scope="module")
def small():
    return make_related_tasks(3, [7, 5, 6], n_classes=3, random_state=2)


# ------------------------------------------------------------------- the table


@pytest.mark.parametrize("version", VERSIONS)
def test_metrics_by_hand(data, report, version):
    P = report.models[version].heldout_proba_
    table = report.table
    for i, rows in enumerate([*(data.task == t for t in range(5)), np.ones(len(data.y), dtype=bool)]):
        y, p, n = data.y[rows], P[rows], rows.sum()
        assert table["rows"][i] == n
        assert table["share_1"][i] == pytest.approx(np.mean(y == 1))
        assert table[f"log_loss_{version}"][i] == pytest.approx(log_loss(y, p, labels=[0, 1]))
        area = roc_auc_score(y, p[:, 1]) if len(set(y)) == 2 else np.nan
        assert table[f"auc_{version}"][i] == pytest.approx(area, nan_ok=True)
        bins = min(15, n // 10)
        error = expected_calibration_error(y, p, classes=[0, 1], n_bins=bins) if n >= 20 else np.nan
        assert table[f"calibration_{version}"][i] == pytest.approx(error, nan_ok=True)


def test_gains_are_differences_of_losses(data, report):
    t = report.table
    for other in ("independent", "pooled"):
        gain = t[f"log_loss_{other}"] - t["log_loss_multi_task"]
        np.testing.assert_allclose(t[f"gain_over_{other}"], gain, atol=1e-12)
        losses = [-np.log(report.models[v].heldout_proba_[np.arange(108), data.y]) for v in (other, "multi_task")]
        difference = losses[0] - losses[1]
        parts = [difference[data.task == k] for k in (0, 1, 2, 4)] + [difference]
        errors = [part.std(ddof=1) / np.sqrt(len(part)) for part in parts]
        np.testing.assert_allclose(t[f"gain_over_{other}_se"][[0, 1, 2, 4, 5]], errors)
        assert np.isnan(t[f"gain_over_{other}_se"][3])  # a single row


def test_noise_of_the_calibration_error(rng):
    """The error of a perfectly calibrated model, drawn many times."""
    p = rng.uniform(0.5, 0.95, 60)
    P = np.column_stack([p, 1 - p])
    draws = [module._calibration((rng.uniform(size=60) > p).astype(int), P) for _ in range(2000)]
    assert module._calibration_noise(np.zeros(60, dtype=int), P) == pytest.approx(np.mean(draws), rel=0.05)


def test_the_three_models(report):
    assert list(report.models) == VERSIONS
    assert [report.models[v].sharing_ for v in VERSIONS[:2]] == [0, 1]
    np.testing.assert_array_equal(report.tasks, np.arange(5))
    assert report.table["task"].tolist() == [0, 1, 2, 3, 4, "all tasks"]
    assert next(iter(report.table)) == "task"
    np.testing.assert_array_equal(report.similarity, report.models["multi_task"].similarity_)
    np.testing.assert_array_equal(report.order()[:1], [report.table["gain_over_independent"][:-1].argmax()])


def test_pooled_is_pooled_whatever_the_similarity(data):
    """A matrix that ties no tasks would leave them apart at sharing=1."""
    own = fixed(similarity=np.eye(5), sharing=1.0)
    report = task_report(data.X, data.y, data.task, model=own)
    plain = task_report(data.X, data.y, data.task, model=fixed())
    for version in ("independent", "pooled"):
        ours, theirs = (r.models[version].heldout_proba_ for r in (report, plain))
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(report.similarity, np.eye(5))


def test_settings_are_kept_and_the_model_is_not_touched(data):
    model = MultiTaskLSPC(sigma=[0.5, 1.0], alpha=[0.01, 0.1], cv=4, calibration="temperature")
    report = task_report(data.X, data.y, data.task, model=model)
    assert not hasattr(model, "tasks_")
    assert model.random_state is None
    again = task_report(data.X, data.y, data.task, model=model)  # no seed is a fixed one: the folds are the same
    for name, m in report.models.items():
        np.testing.assert_array_equal(m.heldout_proba_, again.models[name].heldout_proba_)
    for m in report.models.values():
        assert m.cv == 4
        assert m.calibration == "temperature"
        assert m.sigma_ in (0.5, 1.0)


def test_missing_classes_and_strings(small):
    y = np.array(["low", "mid", "top"])[small.y]
    y[small.task == 1] = "mid"
    tasks = np.array(["a", "b", "c"])[small.task]
    report = task_report(small.X, y, tasks, model=fixed())
    t = report.table
    assert t["task"].tolist() == ["a", "b", "c", "all tasks"]
    assert t["share_mid"][1] == 1
    assert t["share_low"][1] == 0
    assert np.isnan(t["auc_multi_task"][1])
    assert not np.isnan(t["auc_multi_task"][-1])
    P = report.models["multi_task"].heldout_proba_
    assert t["log_loss_multi_task"][1] == pytest.approx(-np.log(P[tasks == "b", 1]).mean())
    assert "most frequent class" in str(report)


def test_weights(data):
    """Twice the weight is the row twice; weight zero is no row, though of a class and a task of its own."""
    w = np.where(np.arange(108) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(108), w.astype(int))
    one = task_report(data.X, data.y, data.task, model=fixed(extrapolate=True), sample_weight=w)
    two = task_report(data.X[twice], data.y[twice], data.task[twice], model=fixed(extrapolate=True))
    same = ["share_1", *(f"{m}_{v}" for m in ("log_loss", "auc") for v in VERSIONS), "gain_over_pooled"]
    for name in same:
        np.testing.assert_allclose(one.table[name], two.table[name], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(one.helps, two.helps, rtol=1e-6, atol=1e-9)

    more = np.vstack([data.X, [[0.0, 0.0]]]), np.append(data.y, 7), np.append(data.task, 9)
    three = task_report(*more, model=fixed(extrapolate=True), sample_weight=np.append(w, 0))
    assert three.tasks.tolist() == [0, 1, 2, 3, 4]
    assert list(three.table) == list(one.table)
    for name in list(one.table)[1:]:
        np.testing.assert_allclose(three.table[name], one.table[name], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(three.helps, one.helps, rtol=1e-9, atol=1e-12)


def test_column_of_a_frame(data):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data.X, columns=["x1", "x2"])
    frame.insert(1, "ward", np.array(["b", "a", "c", "e", "d"])[data.task])
    report = task_report(frame, pandas.Series(data.y), model=fixed(task_column="ward"))
    plain = task_report(data.X, data.y, data.task, model=fixed())
    assert report.tasks.tolist() == list("abcde")
    order = [1, 0, 2, 4, 3]
    table = report.to_frame()
    assert list(table.columns) == list(report.table)
    assert table["task"].tolist() == [*"abcde", "all tasks"]
    np.testing.assert_allclose(table["log_loss_pooled"][:5], plain.table["log_loss_pooled"][:5][order])
    np.testing.assert_allclose(report.helps, plain.helps[np.ix_(order, order)], atol=1e-12)


def test_groups_are_held_out_together(data):
    groups = np.arange(108) // 2
    report = task_report(data.X, data.y, data.task, model=fixed(), groups=groups)
    model = fixed().fit(data.X, data.y, tasks=data.task, groups=groups)
    np.testing.assert_allclose(report.models["multi_task"].heldout_proba_, model.heldout_proba_)
    alone = task_report(data.X, data.y, data.task, model=fixed())
    assert not np.allclose(report.helps, alone.helps)


# ------------------------------------------------------- which tasks help which


def refit(data, w, model, t, u, groups):
    """Task t's mean squared held-out error without the rows of u, every group left out and the model fitted again."""
    total, Z = 0.0, np.eye(int(data.y.max()) + 1)[data.y]
    for g in np.unique(groups[data.task == t]):
        out = (data.task == t) if t == u else (groups == g)
        train = ~out & (data.task != u)
        # The same ridge on the sum of losses: alpha is on the mean.
        again = fixed(
            sigma=model.sigma_,
            alpha=model.alpha_ * w.sum() / w[train].sum(),
            sharing=model.sharing_,
            bias=model.bias,
            cv=None,
            calibration=None,
        ).fit(data.X[train], data.y[train], sample_weight=w[train], tasks=data.task[train])
        assert len(again.classes_) == Z.shape[1]
        mine = (groups == g) & (data.task == t)
        F = again.scores(data.X[mine], tasks=t)
        total += w[mine] @ np.sum((F - Z[mine]) ** 2, axis=1)
    return total / w[data.task == t].sum()


@pytest.mark.parametrize("bias", [None, "shared"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_helps_against_refits(bias, weighted, grouped):
    data = make_related_tasks(3, [8, 6, 7], n_classes=2, random_state=1)
    w = np.random.default_rng(0).uniform(0.5, 2, 21) if weighted else np.ones(21)
    groups = np.arange(21) // 2 if grouped else np.arange(21)  # some have rows of two tasks
    model = fixed(bias=bias, calibration=None)
    given = {"sample_weight": w if weighted else None, "groups": groups if grouped else None}
    report = task_report(data.X, data.y, data.task, model=model, **given)
    fitted = report.models["multi_task"]
    for t in range(3):
        before = refit(data, w, fitted, t, -1, groups)
        after = [refit(data, w, fitted, t, u, groups) for u in range(3)]
        np.testing.assert_allclose(report.helps[t], np.array(after) - before, rtol=1e-6, atol=1e-9)


def slow_helps(K, B, Z, task, ridge):
    """Row by row from explicit systems."""
    H = K * B[np.ix_(task, task)]

    def error(t, u):
        squares = []
        for i in np.flatnonzero(task == t):
            keep = np.flatnonzero((np.arange(len(task)) != i) & (task != u))
            f = H[i, keep] @ np.linalg.solve(H[np.ix_(keep, keep)] + ridge * np.eye(len(keep)), Z[keep])
            squares.append(np.sum((Z[i] - f) ** 2))
        return np.mean(squares)

    T = len(B)
    return np.array([[error(t, u) - error(t, -1) for u in range(T)] for t in range(T)])


SIMILAR = np.array([[1, 0.7, 0.1], [0.7, 1, 0.3], [0.1, 0.3, 1]])


@pytest.mark.parametrize(
    "changes",
    [
        {"similarity": SIMILAR},
        {"similarity": "correlation"},
        {"task_penalty": [1.0, 3.0, 0.5]},
        {"sharing": 1.0},
        {"kernel": "laplace", "cv": 3},
        {"kernel": "precomputed"},
    ],
    ids=str,
)
def test_helps_against_explicit_systems(small, changes):
    model = fixed(**changes)
    K = np.exp(-((small.X[:, None] - small.X[None]) ** 2).sum(axis=2) / 2)
    if model.kernel == "laplace":
        K = np.exp(-np.abs(small.X[:, None] - small.X[None]).sum(axis=2))
    X = K if model.kernel == "precomputed" else small.X
    report = task_report(X, small.y, small.task, model=model)
    B = report.models["multi_task"].coupling_
    slow = slow_helps(K, B, np.eye(3)[small.y], small.task, 0.01 * len(K))
    np.testing.assert_allclose(report.helps, slow, rtol=1e-6, atol=1e-9)
    assert report.helps_note is None


def test_single_precision_counts_in_double(small):
    one, two = (task_report(small.X.astype(t), small.y, small.task, model=fixed()) for t in (np.float32, float))
    assert one.models["multi_task"].heldout_proba_.dtype == np.float32
    np.testing.assert_allclose(one.helps, two.helps, rtol=1e-3, atol=1e-5)


def test_independent_tasks_do_not_help(data):
    report = task_report(data.X, data.y, data.task, model=fixed(sharing=0.0))
    off = report.helps[~np.eye(5, dtype=bool)]
    np.testing.assert_allclose(off, 0, atol=1e-12)
    np.testing.assert_allclose(report.table["gain_over_independent"], 0, atol=1e-12)


def test_who_helps_whom_is_seen():
    """Groups that contradict each other: help within, harm between."""
    data = make_related_tasks(4, 40, relatedness=1.0, reversed_tasks=2, noise=0.1, random_state=0)
    helps = task_report(data.X, data.y, data.task, model=fixed()).helps
    same = np.equal.outer(data.is_reversed, data.is_reversed)
    assert (helps[same] > 0).all()
    assert (helps[~same] < 0).all()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"norm": "coefficients"}, "norm='function'"),
        ({"n_centers": 10}, "no coefficient for every row"),
        ({"n_centers": 10, "solver": "dual"}, "no coefficient for every row"),
        ({"kernel": "linear"}, "no coefficient for every row"),
    ],
    ids=str,
)
def test_no_helps_and_why(data, changes, reason):
    report = task_report(data.X, data.y, data.task, model=fixed(**changes))
    assert report.helps is None
    assert reason in report.helps_note
    assert report.helps_note in one_line(report)
    assert max(map(len, str(report).splitlines())) <= 118


def test_no_helps_for_many_rows_or_one_task(data, monkeypatch):
    one = task_report(data.X, data.y, "all", model=fixed())
    assert "only one task" in one.helps_note
    assert one.table["task"].tolist() == ["all", "all tasks"]
    monkeypatch.setattr(module, "HELP_ROWS", 100)
    assert "108 rows" in task_report(data.X, data.y, data.task, model=fixed()).helps_note


def test_helps_as_long_as_there_are_digits(small):
    K = np.exp(-((small.X[:, None] - small.X[None]) ** 2).sum(axis=2) / 2)
    tight = task_report(small.X, small.y, small.task, model=fixed(alpha=1e-9, calibration=None))
    slow = slow_helps(K, tight.models["multi_task"].coupling_, np.eye(3)[small.y], small.task, 1e-9 * len(K))
    np.testing.assert_allclose(tight.helps, slow, rtol=1e-3, atol=1e-3)
    none = task_report(small.X, small.y, small.task, model=fixed(alpha=1e-14, calibration=None))
    assert none.helps is None
    assert "too small" in none.helps_note


# ------------------------------------------------------------------- as text


def test_text(report):
    lines = str(report).splitlines()
    assert max(map(len, lines)) <= 118
    assert lines[0].startswith("Held-out predictions of 5 tasks, 108 rows, 2 classes; share is that of class 1.")
    body = [line for line in lines if line[:1].isdigit()]
    assert [int(line.split()[0]) for line in body] == report.order().tolist()
    assert lines[lines.index("") + 3 + 5].startswith("all tasks")
    single = next(line for line in body if line.startswith("3 ")).split()
    assert single.count("-") == 3 + 2 + 2  # no area, no calibration error and its noise, no standard errors
    assert f"{report.table['log_loss_multi_task'][3]:.3f}" in single
    assert f"sigma {report.models['pooled'].sigma_:.4g}" in lines[2]
    assert repr(report) == str(report)


def with_gains(report, over_independent, over_pooled, errors):
    table = {name: column.copy() for name, column in report.table.items()}
    table["gain_over_independent"], table["gain_over_pooled"] = np.array(over_independent), np.array(over_pooled)
    table["gain_over_independent_se"] = table["gain_over_pooled_se"] = np.array(errors)
    return TaskReport(table, report.helps, report.helps_note, report.models)


@pytest.fixture(scope="module")
def told(report):
    """Gains of every kind: clear, not clear, clearly negative, none, of a single row."""
    gains = [0.3, 0.1, -0.3, 0.5, -1e-5, 0.1]
    return with_gains(report, gains, [-0.3, 0.1, 0.3, 0.5, 0.3, 0.1], [0.1, 0.1, 0.1, np.nan, 0.1, 0.01])


def test_gains_have_errors_and_stars(told):
    lines = {line.split()[0]: line for line in str(told).splitlines() if line[:1].isdigit() or line[:3] == "all"}
    assert "+0.300 ± 0.100*  -0.300 ± 0.100*" in lines["0"]
    assert lines["1"].endswith("+0.100 ± 0.100   +0.100 ± 0.100")
    assert "-0.300 ± 0.100*  +0.300" in lines["2"]
    assert lines["3"].endswith("+0.500 ±     -   +0.500 ±     -")
    assert "+0.000 ± 0.100   +0.300" in lines["4"]  # not -0.000
    assert lines["all"].endswith("+0.100 ± 0.010*  +0.100 ± 0.010*")
    # All stand below one another.
    assert len({line.index("±") for line in lines.values()}) == 1


def test_verdict(told):
    sharing = f"{told.models['multi_task'].sharing_:g}"
    counts = "better than alone in 3 of 5 tasks (1 clearly; 1 clearly worse)"
    counts += ", better than pooled in 4 of 5 (2 clearly; 1 clearly worse)"
    assert one_line(told).endswith(f" multi-task (sharing {sharing}): {counts}")
    assert counts in told._repr_html_()


def test_verdict_where_nothing_differs(told):
    same = with_gains(told, np.full(6, 1e-14), [0.3, 0.1, 0.3, 0.5, 0.3, 0.1], np.full(6, 1e-16))
    assert "the same as alone, better than pooled in 5 of 5 tasks (5 clearly)" in str(same)
    assert "+0.000 ± 0.000*" not in str(same)


def test_legend(told):
    words = ["Sorted by gain over independent", "Held-out", "log-loss of the other model minus that of multi-task"]
    words += ["+ is better", "beyond two standard errors", "too few rows, or only one class", "calibration_noise"]
    for shown in (str(told), told._repr_html_()):
        assert all(word in shown for word in words)
        assert "over all rows (AUC pooled)" in shown


def test_one_task_is_no_plural(data):
    report = task_report(data.X, data.y, "all", model=fixed())
    assert "the same as alone, the same as pooled" in str(report).splitlines()[-1]


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["alpha", "beta"], ["alpha", "beta"]),
        (["General Hospital, ward 1", "General Hospital, ward 23"], ["…ward 1", "…ward 23"]),
        (["General Hospital, east", "General Hospital, east wing"], ["…east", "…east wing"]),
        (["one_two_three_001", "one_two_three_002"], ["…three_001", "…three_002"]),
        (["a very long name of", "quite another name"], ["a ver…me of", "quite… name"]),
        (["hospitalnumber1", "hospitalnumber2"], ["hospi…mber1", "hospi…mber2"]),
        (["only one, but long"], ["only … long"]),
        (["the same long name"] * 2, ["…long name"] * 2),
        ([], []),
    ],
    ids=str,
)
def test_short_names(names, short):
    assert shortened(names, 11) == short


def with_tasks(report, names):
    """The report with other tasks: as many as there are names, all with the figures of the first."""
    table = {name: np.append(np.repeat(column[0], len(names)), column[-1]) for name, column in report.table.items()}
    table["task"] = np.array([*names, "all tasks"], dtype=object)
    table["gain_over_independent"] = -np.arange(len(names) + 1.0)
    models = {name: fixed() for name in VERSIONS}
    for name, model in models.items():
        vars(model).update(vars(report.models[name]))
        model.tasks_ = np.array(names, dtype=object)
    return TaskReport(table, report.helps, report.helps_note, models)


def test_many_tasks_and_long_names(report):
    many = with_tasks(report, [f"a long name of a hospital\nin town number {k}" for k in range(100)])
    lines = str(many).splitlines()
    start = lines.index("") + 3
    assert lines[start + 31].startswith("all tasks")
    assert max(map(len, lines)) <= 118
    assert "70 more tasks" in str(many)
    assert lines[start].startswith("…in town number 0 ")
    assert lines[start + 30].startswith("…in town number 99 ")
    assert "a long name of a hospital in town number 99" in many._repr_html_()


def test_html(report):
    odd = with_tasks(report, ["<b>bold</b>", "a & b"])
    html = odd._repr_html_()
    assert "&lt;b&gt;bold&lt;/b&gt;" in html
    assert "a &amp; b" in html
    assert "<b>" not in html
    assert html.split("</table>")[1].count("<tr>") == 2 + 2 + 1
    for tag in ("table", "tr", "td", "th", "div", "thead", "tbody", "p"):
        assert html.count(f"<{tag}>") + html.count(f"<{tag} ") == html.count(f"</{tag}>")
    many = with_tasks(report, [str(k) for k in range(31)])
    assert "1 more tasks" in many._repr_html_()


def test_html_shows_the_best_and_the_worse(told):
    parts = told._repr_html_().split("</table>")
    for name, model in told.models.items():
        assert f">{name.replace('_', '-')}</td>" in parts[0]
        assert f">{model.sigma_:.4g}</td>" in parts[0]
    rows = [row.split("<td ")[1:] for row in parts[1].split("<tbody>")[1].split("</tr>")[:-1]]
    assert "text-align:left" in parts[1][: parts[1].index(">task<")].rsplit("<th", 1)[1]
    for i, cells in zip([*told.order(), -1], rows, strict=True):
        assert len(cells) == 15
        assert all("nowrap" in cell for cell in cells)
        for start, metric in ((5, "log_loss"), (8, "auc"), (11, "calibration")):
            values = np.array([told.table[f"{metric}_{v}"][i] for v in VERSIONS]).round(3)
            best = values == (values.max() if metric == "auc" else values.min())
            best &= np.ptp(values) > 0
            assert ["bold" in cell for cell in cells[start : start + 3]] == best.tolist()
        gains = [told.table[f"gain_over_{v}"][i] for v in VERSIONS[:2]]
        assert ["▼" in cell for cell in cells[3:5]] == [gain < -0.0005 for gain in gains]


def test_odd_ids(small):
    tasks = [("ward", int(t)) if t else 5 for t in small.task]
    report = task_report(small.X, small.y, tasks, model=fixed())
    assert report.table["task"].tolist() == [*report.tasks.tolist(), "all tasks"]
    assert ("ward", 1) in report.tasks.tolist()
    assert "('ward', 1)" in str(report)
    assert "(&#x27;ward&#x27;, 1)" in report._repr_html_()


# -------------------------------------------------------------------- errors


def test_wrong_arguments_are_named(data):
    with pytest.raises(TypeError, match="must be a MultiTaskLSPC"):
        task_report(data.X, data.y, data.task, model=LSPC())
    with pytest.raises(ValueError, match="cv=None"):
        task_report(data.X, data.y, data.task, model=fixed(cv=None, calibration=None))
    with pytest.raises(ValueError, match="tasks="):
        task_report(data.X, data.y)
    with pytest.raises(ValueError, match="one id for each"):
        task_report(data.X, data.y, data.task[:-1])


def test_pipelines_are_told_what_to_do(data):
    pipe = make_pipeline(StandardScaler(), fixed())
    with pytest.raises(
        TypeError, match=r"^model is of type Pipeline and must be a MultiTaskLSPC.*pipe\[:-1\]"
    ) as error:
        task_report(data.X, data.y, data.task, model=pipe)
    assert len(str(error.value)) < 200


def test_name_of_a_column_as_tasks(data):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data.X, columns=["x1", "x2"]).assign(ward=data.task)
    with pytest.raises(ValueError, match="task_column"):
        task_report(frame, data.y, "ward", model=fixed())


def test_without_pandas(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"leastwise\[frames\]"):
        report.to_frame()
