"""Tables of comparisons with other libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import calibrated_peers, label_study, lssvm_peers, task_peers, task_study
from benchmarks._page_format import best, by_set, flat, mean_of, names_of, origin, results, sized, spread, table

Found = list[dict[str, Any]]
SECONDS = {"seconds": (True, 1)}

# --------------------------------------------------------------------- one task

SVC_METHODS = [calibrated_peers.OURS, *calibrated_peers.CALIBRATIONS, calibrated_peers.LIBSVM]


def _figures(name: str) -> Found:
    return results(name)["figures"]


def _rows(f: Mapping[str, Any]) -> str:
    return f"{f['data']}, {f['rows']:,} rows"


def svc_ways() -> str:
    """Log-loss, calibration error and seconds of the ways from an SVC to probabilities, by set."""
    found = _figures("calibrated_peers")
    methods = {m: m for m in SVC_METHODS if m in names_of(found, "method")}
    measures = {"log_loss": (True, 3), "ece": (True, 3), **SECONDS}
    sets = sized(found, calibrated_peers.SETS, _rows)
    shown = by_set(found, measures, methods, sets, corner="log-loss / calibration error / seconds")
    return f"{origin('calibrated_peers')}\n\n{shown}"


def svc_threads() -> str:
    """Fits in several threads at the same time."""
    lines = [
        [f["method"], f"{f['different']} of {f['fits']}", "0" if f["largest"] <= 1e-9 else f"{f['largest']:.3f}"]
        for f in results("calibrated_peers")["threads"]
    ]
    return table(["method", "fits that differ from a fit alone", "largest difference of a probability"], lines)


def _seconds_in_all(found: Found, methods: Sequence[str]) -> str:
    sets = calibrated_peers.SETS
    total = {m: sum(mean_of(found, "seconds", data=s, method=m) for s in sets) for m in methods}
    return "Seconds for the four sets: " + ", ".join(f"{m} {s:.1f}" for m, s in total.items()) + "."


def calibrated() -> str:
    """All measures with their standard deviations, one table for each set."""
    found, parts = _figures("calibrated_peers"), [origin("calibrated_peers")]
    header = ["method", "accuracy", "log-loss", "calibration error", "Brier", "seconds", "prediction"]
    order = [calibrated_peers.OURS, calibrated_peers.GAUSSIAN, *SVC_METHODS[1:], "Nystroem + LR"]
    order += ["HistGradientBoosting"]
    for name in calibrated_peers.SETS:
        here = [f for f in found if f["data"] == name]
        lines = []
        known = names_of(here, "method")
        for method in [m for m in order if m in known] + [m for m in known if m not in order]:
            runs = [f for f in here if f["method"] == method]
            times = [f"{mean_of(runs, k):.2f}" for k in ("seconds", "predict_seconds")]
            lines.append([method, *(spread([f[k] for f in runs], 4) for k in calibrated_peers.MEASURES), *times])
        title = f"**{name}**, {here[0]['rows']:,} training rows, {here[0]['test_rows']:,} test rows"
        parts.append(f"{title}\n\n{table(header, lines)}")
    everywhere = [
        m
        for m in order
        if all(m in names_of([f for f in found if f["data"] == s], "method") for s in calibrated_peers.SETS)
    ]
    return "\n\n".join([*parts, _seconds_in_all(found, everywhere)])


# -------------------------------------------------------------------- many tasks


def _task_figures() -> Found:
    """Figures of all methods. Those of GPyTorch have a file of their own unless they were measured with the rest."""
    found = _figures("task_peers")
    process = [f for f in _figures("task_peers_gp") if f["method"] not in names_of(found, "method")]
    return found + process


def tasks() -> str:
    """All methods and sets, and ranks by log-loss."""
    found = _task_figures()
    known = names_of(found, "method")
    last = ["class shares", "truth"]
    methods = {m: m for m in [m for m in TASK_ORDER if m in known]}
    methods |= {m: m for m in known if m not in methods and m not in last} | {m: m for m in last}
    measures = {"log_loss": (True, 3), "auc": (False, 3), "ece": (True, 3), "seconds": (True, 2)}
    sets = sized(found, task_peers.SETS, lambda f: f["data"])
    corner = "log-loss / AUC / calibration error / seconds"
    shown = by_set(found, measures, methods, sets, unranked=last, corner=corner)
    return "\n\n".join([origin("task_peers", "task_peers_gp"), shown, _task_ranks(found)])


TASK_ORDER = [
    task_peers.OURS,
    "MultiTaskLSPC(n_centers=n/8)",
    "MultiTaskLSPC(similarity='learned')",
    "MultiTaskKLR()",
]


def _task_ranks(found: Found) -> str:
    """Mean over the sets of the rank by mean log-loss."""
    sets = task_peers.SETS
    methods = [m for m in names_of(found, "method") if m not in ("class shares", "truth")]
    losses = np.array([[mean_of(found, "log_loss", data=s, method=m) for s in sets] for m in methods])
    ranks = (np.argsort(np.argsort(losses, axis=0), axis=0) + 1).mean(axis=1)
    order = np.argsort(ranks, kind="stable")
    said = ", ".join(f"{methods[i]} {ranks[i]:.1f}" for i in order)
    return f"Mean rank by log-loss over the {len(sets)} sets: {said}."


def tasks_short() -> str:
    """The table of the README."""
    found = _task_figures()
    methods = {
        task_peers.OURS: "**MultiTaskLSPC()**",
        "MultiTaskLSPC(similarity='learned')": '**MultiTaskLSPC(similarity="learned")**',
        "SVC + CalibratedCV per task": "SVC calibrated, one per task",
        "SVC + CalibratedCV + task": "SVC calibrated, task one-hot",
        "HistGradientBoosting + task": "HistGradientBoosting, task as category",
        "GPyTorch multi-task GP, 0.1": "GPyTorch multi-task GP (epsilon 0.1)",
    }
    words = {"related-0.6": "related tasks", "landmine": "landmine"}
    sets = sized(found, list(words), lambda f: f"{words[f['data']]}, {f['tasks']} tasks, {f['rows']:,} rows")
    measures = {"log_loss": (True, 3), "auc": (False, 3), **SECONDS}
    return f"{origin('task_peers', 'task_peers_gp')}\n\n{flat(found, measures, methods, sets)}"


def task_mixed() -> str:
    """Every set of the study of tasks: known and unseen tasks."""
    found = task_study.tables(_figures("task_study"))
    parts = [f"**{title}**\n\n{table(header, lines)}" for title, header, lines in found]
    return "\n\n".join([origin("task_study"), *parts])


# ------------------------------------------------------------------- many labels

LABEL_METHODS = {
    "MultiLabelLSPC()": "**`MultiLabelLSPC()`**",
    "MultiLabelLSPC(threshold='auto')": '**`MultiLabelLSPC(threshold="auto")`**',
    "MultiLabelLSPC(sharing=0)": "`MultiLabelLSPC(sharing=0)`",
    "LogisticRegression": "`MultiOutputClassifier`, logistic regression",
    "chain of LogisticRegression": "`ClassifierChain`, logistic regression",
    "SVC + CalibratedCV": "`MultiOutputClassifier`, SVC and `CalibratedClassifierCV`",
    "RandomForest": "`RandomForestClassifier`",
    "label shares": "label shares",
}
LABEL_SETS = {"enron": "Enron", "digits": "digits", "made": "synthetic"}


def _label_sets(found: Found, sets: Sequence[str]) -> dict[str, str]:
    return sized(found, sets, lambda f: f"{LABEL_SETS[f['data']]}, {f['rows']:,} rows, {f['labels']} labels")


def labels() -> str:
    """Probabilities and decisions with labels that are all known."""
    found = _figures("label_peers")
    measures = {"log_loss": (True, 3), "f1_micro": (False, 3), "f1_macro": (False, 3), **SECONDS}
    corner = "log-loss / micro F1 / macro F1 / seconds"
    sets = _label_sets(found, tuple(LABEL_SETS))
    shown = by_set(found, measures, LABEL_METHODS, sets, unranked=["label shares"], corner=corner)
    return f"{origin('label_peers')}\n\n{shown}"


def labels_short() -> str:
    """The table of the README."""
    found = _figures("label_peers")
    left_out = ("MultiLabelLSPC()", "RandomForest", "label shares")
    methods = {m: words for m, words in LABEL_METHODS.items() if m not in left_out}
    measures = {"log_loss": (True, 3), "f1_micro": (False, 3), **SECONDS}
    shown = flat(found, measures, methods, _label_sets(found, ["enron", "digits"]))
    return f"{origin('label_peers')}\n\n{shown}"


WAYS = {
    "all known": "nothing hidden",
    "all known, alone": "nothing hidden, independent labels",
    "unknown": "unknown (NaN)",
    "unknown, alone": "unknown (NaN), independent labels",
    "as 0": "0 filled in",
    "complete rows": "complete rows only",
    "label shares": "label shares",
}


def hidden() -> str:
    """Log-loss and micro F1 with labels that are hidden from training."""
    found = _figures("missing_labels")
    sets = names_of(found, "data")
    titles = sized(found, sets, lambda f: f"{f['data']}, {f['labels']} labels, {f['rows']:,} rows")
    lines = []
    for share in (0.0, 0.3, 0.6, 0.9):
        here = [f for f in found if f["hidden"] == share]
        ways = [way for way in WAYS if way in names_of(here, "way")]
        columns = []
        for data in sets:
            values = [[mean_of(here, k, data=data, way=way) for way in ways] for k in ("log_loss", "f1_micro")]
            cells = [best(v, lower, 3) for v, lower in zip(values, (True, False), strict=True)]
            columns.append([" / ".join(c) if "–" not in c else "too few rows" for c in zip(*cells, strict=True)])
        for way, *cells in zip(ways, *columns, strict=True):
            lines.append([f"{share:.0%}", WAYS[way], *cells])
    shown = table(["hidden", "log-loss / micro F1 at 0.5", *titles.values()], lines)
    return f"{origin('missing_labels')}\n\n{shown}"


def label_figures() -> str:
    """Every set of the study, with the published values where they are known."""
    found, parts = _figures("label_study"), []
    words = ["log-loss", "micro F1", "macro F1", "Hamming loss", "ranking loss", "micro AUC"]
    for name in names_of(found, "data"):
        order = list(label_study.METHODS)
        here = sorted((f for f in found if f["data"] == name), key=lambda f: order.index(f["method"]))
        columns = [best([f[k] for f in here], k in label_study.LOWER, 3) for k in label_study.FIGURES]
        names = [f"`{f['method']}`" if f["method"] == label_study.OURS else f["method"] for f in here]
        names = [f"the same, `{f['rule']}`" if f["rule"] else words for f, words in zip(here, names, strict=True)]
        cells = zip(names, *columns, (f"{f['seconds']:.0f}" for f in here), strict=True)
        lines = [list(row) for row in cells]
        if name in label_study.PUBLISHED:
            known = label_study.PUBLISHED[name]
            published = [f"{known[k]:.3f}" for k in label_study.FIGURES[1:]]
            lines.append(["*best of the 26 methods of the study, each figure by another*", "", *published, ""])
        title = f"**{name}**, {here[0]['rows']:,} training rows, {here[0]['test_rows']:,} test rows"
        parts.append(f"{title}, {here[0]['labels']} labels\n\n{table(['method', *words, 'seconds'], lines)}")
    return "\n\n".join([origin("label_study"), *parts])


# --------------------------------------------------------------------- regression


def regression() -> str:
    """Explained variance with standard errors of the default, sets down and methods across."""
    found = _figures("lssvm_peers")
    methods = [m for m in lssvm_peers.METHODS if m in names_of(found, "method")]
    lines, seconds = [], []
    for name in lssvm_peers.SETS:
        here = [f for f in found if f["data"] == name]
        if not here:
            continue
        cells = best([mean_of(here, "r2", method=m) for m in methods], False, 3)
        error = lssvm_peers.standard_error(np.array([f["r2"] for f in here if f["method"] == methods[0]]))
        size = f"{here[0]['tasks']}, {here[0]['rows']:,}"
        lines.append([name, size, f"{cells[0]} ± {error:.3f}", *cells[1:]])
        seconds.append([name, size, *best([mean_of(here, "seconds", method=m) for m in methods], True, 2)])
    words = [m.replace("MultiTaskLSSVR(kernel='linear')", "linear").replace("HistGradientB", "b") for m in methods]
    tables = [table([title, "tasks, rows", *words], rows) for title, rows in (("R²", lines), ("seconds", seconds))]
    worst = max(results("lssvm_peers")["losses"], key=lambda f: f["loss"])
    said = (
        f"The largest loss of the default against ridge regression with one-hot tasks is {worst['loss']:.2f} ± "
        f"{worst['standard_error']:.2f} % of the variance, on {worst['data']}."
    )
    return "\n\n".join([origin("lssvm_peers"), *tables, said])


TABLES = {
    "svc": svc_ways,
    "svc-threads": svc_threads,
    "calibrated": calibrated,
    "tasks": tasks,
    "readme-tasks": tasks_short,
    "task-study": task_mixed,
    "labels": labels,
    "readme-labels": labels_short,
    "hidden-labels": hidden,
    "label-study": label_figures,
    "regression": regression,
}
