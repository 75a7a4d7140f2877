"""Tables of calibration, sets, abstention, pruning and centres."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks import centers, few_rows, recalibration
from benchmarks._page_format import NONE, best, mean_of, names_of, origin, results, short, table


def recalibrated() -> str:
    """Calibration on held-out scores compared with refits, and intervals of schools."""
    found = results("recalibration")["runs"]
    text = io.StringIO()
    with redirect_stdout(text):
        for key in recalibration.MEASURES[:2]:
            recalibration.markdown(found, key)
        recalibration.markdown_times(found)
    return f"{origin('recalibration')}\n\n{text.getvalue().strip()}"


def school_intervals() -> str:
    """Prediction intervals of the School data."""
    text = io.StringIO()
    with redirect_stdout(text):
        recalibration.markdown_values(results("recalibration")["runs"])
    return text.getvalue().strip()


def noise() -> str:
    """Log-loss above that of the class shares where labels are noise."""
    files = ("noise", "noise_klr")
    found = [f for name in files for f in results(name)["runs"] if f["part"] == "noise"]
    lines = []
    for model in names_of(found, "model"):
        here = [f for f in found if f["model"] == model]
        for n in sorted(names_of(here, "rows")):
            scores = [f["score"] for f in here if f["rows"] == n]
            lines.append(
                [f"`{model}()`", str(n), str(len(scores)), f"{np.mean(scores):.4f}", f"{np.max(scores):.2f}"]
            )
    return f"{origin(*files)}\n\n{table(['model', 'rows', 'fits', 'mean', 'worst'], lines)}"


def abstention() -> str:
    """Broken promises of abstention, with tested and with naive thresholds."""
    lines = []
    for f in results("abstention")["figures"]:
        lines.append([f"{f['part']}, {f['kind']}", f"{f['max_error']:g}", f"{f['rows']:,}", f"{f['draws']:,}"])
        tested, naive = f["tested"], f["naive"]
        lines[-1] += [f"{tested[k]:.3g}" for k in ("missed", "coverage", "error", "nothing")]
        lines[-1] += [f"{naive[k]:.3g}" for k in ("missed", "coverage")]
    header = ["", "max_error", "rows", "draws", "missed", "accepted", "error", "nothing accepted"]
    return f"{origin('abstention')}\n\n{table([*header, 'naive: missed', 'naive: accepted'], lines)}"


def sets() -> str:
    """Coverage and size of sets, at two levels."""
    found = [f for f in results("conformal")["figures"] if f["data"] != "landmine"]
    data = names_of(found, "data")
    levels = (0.95, 0.99)
    lines = []
    for method in names_of(found, "method"):
        here = [f for f in found if f["method"] == method and f["asked"] in levels]
        cells = []
        for name in data:
            cover = " / ".join(f"{mean_of(here, 'coverage', data=name, asked=a):.3f}" for a in levels)
            size = " / ".join(short(mean_of(here, "size", data=name, asked=a), 3) for a in levels)
            cells.append(f"{cover}, {size}")
        times = [mean_of(here, "seconds", data=name) for name in data]
        lines.append([method, *cells, f"{min(times):.1f} to {max(times):.1f}"])
    return f"{origin('conformal')}\n\n{table(['', *data, 'seconds'], lines)}"


def task_sets() -> str:
    """Sets of classes of the landmine tasks."""
    found = [f for f in results("conformal")["figures"] if f["data"] == "landmine"]
    lines = []
    for asked in sorted(names_of(found, "asked")):
        for method in names_of([f for f in found if f["asked"] == asked], "method"):
            means = [mean_of(found, k, asked=asked, method=method) for k in ("coverage", "worst", "size")]
            lines.append([f"{asked:g}", method, *(f"{m:.3f}" for m in means[:2]), f"{means[2]:.2f}"])
    return table(["nominal coverage", "landmine, 29 tasks", "coverage", "worst task", "mean size"], lines)


def pruned() -> str:
    """Test scores of pruned models and of models with as many centres."""
    found = results("pruning")["figures"]
    data, kinds = names_of(found, "data"), ("prune", "random centres", "kmeans centres")
    lines = []
    for share in sorted(names_of(found, "share")):
        here = [f for f in found if f["share"] == share]
        cells = []
        for name in data:
            values = [mean_of(here, "test", data=name, model=m) for m in (kinds if share else ("whole",))]
            cells.append(" / ".join(best(values, False, 3)) if share else f"{values[0]:.3f}")
        ratios = [mean_of(here, "ratio", data=name, model="prune" if share else "whole") for name in data]
        lines.append([f"{share:g}", *cells, " / ".join(f"{r:.2f}" for r in ratios)])
    header = ["removed", *(f"{name}: pruned / random / k-means" for name in data)]
    return f"{origin('pruning')}\n\n{table([*header, 'prediction time, ' + ' / '.join(data)], lines)}"


def few_centers() -> str:
    """Losses of models with few centres, by the way in which they are chosen."""
    found = _center_figures()
    lines = []
    for name in names_of(found, "data"):
        counts = sorted(names_of([f for f in found if f["data"] == name], "b"))
        columns = []
        for b in counts:
            values = [mean_of(found, "loss", data=name, b=b, way=way) for way in centers.WAYS]
            columns.append(best(values, True, 3))
        cells = [" / ".join(c) if NONE not in c else "" for c in zip(*columns, strict=True)]
        lines.append([name, " / ".join(map(str, counts)), *cells])
    return f"{origin('centers', 'centers_made')}\n\n{table(['data', 'b', *centers.WAYS], lines)}"


def center_ratios() -> str:
    """Losses relative to random rows, over the sets."""
    lines = [
        [r["way"], str(r["b"]), f"{r['ratio']:.2f}", f"{r['better']} of {r['sets']}", r["worst"]]
        for r in sorted(
            centers.against_random(_center_figures()), key=lambda r: (centers.WAYS.index(r["way"]), r["b"])
        )
    ]
    return table(["choice", "b", "loss / random rows, geometric mean", "sets better", "worst set"], lines)


def center_seconds() -> str:
    """Processor seconds of the choice of centres."""
    found = [t for name in ("centers", "centers_made") for t in results(name)["choices"]]
    lines = []
    for case in dict.fromkeys((t["n"], t["d"], t["b"]) for t in found):
        here = {t["way"]: t["seconds"] for t in found if (t["n"], t["d"], t["b"]) == case}
        size = f"{case[2]:,} of {case[0]:,} rows of {case[1]} features"
        lines.append([size, *(f"{here[w]:.2f}" if w in here else "" for w in centers.WAYS)])
    return table(["seconds", *centers.WAYS], lines)


def _center_figures() -> list[dict[str, Any]]:
    """Records of both files; only draws that every choice of centres has."""
    found = [f for name in ("centers", "centers_made") for f in results(name)["figures"]]
    whole = {
        (name, run)
        for name in names_of(found, "data")
        for run in {f["run"] for f in found if f["data"] == name}
        if len([f for f in found if (f["data"], f["run"]) == (name, run)])
        == len([f for f in found if (f["data"], f["run"]) == (name, 0)])
    }
    return [f for f in found if (f["data"], f["run"]) in whole]


def few_row_figures() -> str:
    """Broken promises of abstention and coverage of sets with few rows."""
    parts = [origin("few_rows")]
    for kind, *_ in few_rows.KINDS:
        header, lines = few_rows.lines_of(results("few_rows")["figures"], kind)
        parts.append(table(header, [[str(cell) for cell in line] for line in lines]))
    return "\n\n".join(parts)


def discrete() -> str:
    """Log-loss and explained variance on data with few distinct rows."""
    found, parts = results("discrete"), [origin("discrete")]
    for key, words, lower in (("log_loss", "log-loss", True), ("r2", "R²", False)):
        methods = list(next(iter(found[key].values())))
        rows = [[case, *best([row[m] for m in methods], lower, 3)] for case, row in found[key].items()]
        parts.append(table([words, *(DISCRETE.get(m, m) for m in methods)], rows))
    return "\n\n".join(parts)


def intervals() -> str:
    """Coverage and width with few rows, by rows and columns."""
    found = [f for f in results("intervals")["figures"] if f["family"] == "LSSVR"]
    counts = sorted(names_of(found, "n"))
    lines = []
    for kind, d in dict.fromkeys((f["kind"], f["d"]) for f in found):
        here = {f["n"]: f for f in found if (f["kind"], f["d"]) == (kind, d)}
        lines.append([kind, str(d), *(_interval(here[n]) if n in here else NONE for n in counts)])
    said = f"{found[0]['draws']} draws; standard errors of coverages at most {max(f['error'] for f in found):.3f}."
    shown = table(["data", "columns", *(f"{n} rows" for n in counts)], lines)
    return f"{origin('intervals')}\n\n{said}\n\n{shown}"


def _interval(f: Mapping[str, Any]) -> str:
    return f"{f['plain']:.3f}, **{f['corrected']:.3f}**, {f['width_plain']:.2f}, {f['width_corrected']:.2f}"


def group_intervals() -> str:
    """Coverage and width with rows in groups, and with tasks."""
    words = {"groups": "{kind}, {n} groups", "tasks": "{n} rows of four tasks"}
    lines = []
    for f in (f for f in results("intervals")["figures"] if f["family"] in words):
        what = "rows of 12 tasks, new rows of new tasks" if f["kind"] == "new" else words[f["family"]].format(**f)
        lines.append([what, f"{f['to_reach']:.3f}", *(f"{f[k]:.3f}" for k in ("plain", "corrected"))])
        lines[-1] += [f"{f[k]:.2f}" for k in ("width_plain", "width_corrected")]
    return table(["data", "nominal", "coverage without", "with", "width without", "with"], lines)


DISCRETE = {m: f"`{m}()`" for m in ("LSPC", "MultiTaskLSPC", "MultiLabelLSPC", "LSSVC", "LSSVR", "MultiTaskLSSVR")}
DISCRETE |= {"KLR": "`KernelLogisticRegression()`"}


def digits() -> str:
    """Errors of scores from sums over rows, by alpha."""
    columns = {"raw sums": "raw sums", "sums": "`fit_stream`", "direct": "`fit`"}
    columns |= {"unfit": "`unfit` of 9 in 10 rows", "single": "float32"}
    lines = [
        [f["set"], f"{f['alpha']:g}", *(f"{f[k]:.0e}" for k in ("eps/alpha", *columns))]
        for f in results("moment_digits")["errors"]
    ]
    header = ["rows", "alpha", r"$\varepsilon / \alpha$", *columns.values()]
    return f"{origin('moment_digits')}\n\n{table(header, lines)}"


RECALIBRATED = ("LSPC()", "LSPC(calibration=None)", "LSSVC()")


def gains() -> str:
    """Log-loss after a second calibration minus that before, over groups of sets."""
    return _recalibration(
        "recalibration", {f"`{m}`": (m, recalibration.AUTO, recalibration.PLAIN) for m in RECALIBRATED}
    )


def families() -> str:
    """Each family minus a temperature, and the choice of auto with a further family minus auto."""
    methods = [
        m for m in names_of(results("recalibration-families")["runs"], "method") if m not in ("None", "temperature")
    ]
    pairs = {
        m: (None, m, recalibration.AUTO if m.startswith("auto and") else "temperature")
        for m in methods
        if m != "auto"
    }
    return _recalibration("recalibration-families", pairs)


def _recalibration(name: str, pairs: Mapping[str, tuple[str | None, str, str]]) -> str:
    """Differences of log-loss with 95 % intervals and the worst run; a pair is model (None: all), method, other."""
    found = results(name)["runs"]
    loss = {(f["data"], f["model"], f["run"], f["method"]): f["log_loss"] for f in found if "log_loss" in f}
    lines = []
    for words, (model, method, other) in pairs.items():
        lines.append([words])
        for data in recalibration.GROUPS.values():
            keys = [k for k in loss if k[0] in data and model in (None, k[1]) and k[3] == method]
            gaps = [loss[key] - loss[*key[:3], other] for key in keys]
            lines[-1].append(_gap(gaps) if gaps else NONE)
    return f"{origin(name)}\n\n{table(['log-loss on new rows', *recalibration.GROUPS], lines)}"


def _gap(gaps: list[float]) -> str:
    half = student.ppf(0.975, len(gaps) - 1) * np.std(gaps, ddof=1) / np.sqrt(len(gaps))
    return f"{np.mean(gaps):+.4f} ± {half:.4f}, worst {max(gaps):+.3f} ({len(gaps)} runs)"


TABLES = {
    "intervals": intervals,
    "group-intervals": group_intervals,
    "discrete": discrete,
    "moment-digits": digits,
    "recalibration-gains": gains,
    "recalibration-families": families,
    "recalibration": recalibrated,
    "school-intervals": school_intervals,
    "noise": noise,
    "abstention": abstention,
    "sets": sets,
    "task-sets": task_sets,
    "pruning": pruned,
    "few-centers": few_centers,
    "center-ratios": center_ratios,
    "center-seconds": center_seconds,
    "few-rows": few_row_figures,
}
