"""Tables and figures next to the published numbers, and paired tests."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.stats import ttest_rel

from papers._common.experiments import Job, Report
from papers._common.output import Panel, draw_panels, markdown, mean_and_error, pictured
from papers.ml_lspc.methods import MAIN

#: Section 6.2: F-measure and seconds, mean over 150 runs.
SECTION_6_2 = {"LSPC": (0.556, 3.3), "ML-LSPC": (0.561, 5.5), "ML-kNN": (0.372, 9.6), "InsDif": (0.526, 470.7)}
#: Section 6.1. Figure 1 shows curves; the text has no numbers.
FIGURE_1A = "ML-LSPC and InsDif perform well, plain LSPC and ML-kNN poorly"
FIGURE_1B = "conjugate gradients much more efficient than the direct solve; InsDif slow"


def of_method(found: list[dict], name: str, T: int | None = None) -> list[dict]:
    """Records of a method, optionally with T labels only."""
    return [f for f in found if f["method"] == name and T in (None, f["labels"])]


def names(found: list[dict]) -> list[str]:
    """Names of the methods that were run."""
    return list(dict.fromkeys(f["method"] for f in found))


def tell_enron(found: list[dict], report: Report) -> None:
    """Section 6.2."""
    rows = []
    for name in names(found):
        runs = of_method(found, name)
        seconds = float(np.mean([f["seconds"] for f in runs]))
        said = SECTION_6_2.get(name.partition(",")[0], (None, None))
        rows.append([name, len(runs), mean_and_error([f["f1_micro"] for f in runs]), said[0], seconds, said[1]])
    title = f"Enron, {found[0]['rows']} rows: micro F1, mean ± standard error"
    report(markdown(title, ["method", "draws", "micro F1", "paper", "seconds", "paper"], rows))


def tell_toy(found: list[dict], job: Job) -> None:
    """Figure 1a."""
    counts = list(dict.fromkeys(f["labels"] for f in found))
    rows: list[list] = []
    for name in names(found):
        runs = [of_method(found, name, T) for T in counts]
        rows.append([name, *(mean_and_error([f["wrong"] for f in r]) if r else None for r in runs)])
        rows.append(["... seconds", *(float(np.mean([f["seconds"] for f in r])) if r else None for r in runs)])
    title = f"Figure 1a: rotated labels, {found[0]['rows']} rows: share of wrong labels, mean ± standard error"
    job.report(markdown(title, ["method", *(f"{T} labels" for T in counts)], rows))
    job.report(f"paper: {FIGURE_1A}.")
    curves = {name: _curve(of_method(found, name), "wrong") for name in names(found)}
    panel = Panel("figure 1a", "labels", "share of wrong labels", curves, log=("x",), from_zero=True)
    pictured(job.picture("figure1a"), job.report, partial(draw_panels, rows=[[panel]]))


def tell_solve(found: list[dict], job: Job) -> None:
    """Figure 1b."""
    sizes = list(dict.fromkeys(f["rows"] for f in found))
    for n in sizes:
        here = [f for f in found if f["rows"] == n]
        counts = list(dict.fromkeys(f["labels"] for f in here))
        rows = []
        for name in names(here):
            runs = {f["labels"]: f for f in of_method(here, name)}
            rows.append([name, *(solve_cell(runs.get(T)) for T in counts)])
        title = f"Figure 1b: seconds of one solve, {n} rows (iterations; largest difference)"
        job.report(markdown(title, ["method", *(f"{T} labels" for T in counts)], rows))
    job.report(f"paper: {FIGURE_1B}.")
    parts = [[f for f in found if f["rows"] == n] for n in sizes]
    curves = [{name: _curve(of_method(part, name), "seconds") for name in names(part)} for part in parts]
    panels = [Panel(f"{n} rows", "labels", "seconds", c, log=("x", "y")) for n, c in zip(sizes, curves, strict=True)]
    pictured(job.picture("figure1b"), job.report, partial(draw_panels, rows=[panels]))


def _curve(found: list[dict], key: str) -> tuple[list[float], list[float], None]:
    """Means over draws by the number of labels."""
    counts = list(dict.fromkeys(f["labels"] for f in found))
    return counts, [float(np.mean([f[key] for f in found if f["labels"] == T])) for T in counts], None


def solve_cell(found: dict | None) -> str:
    """Seconds, and in parentheses iterations and difference."""
    if found is None:
        return "-"
    steps, gap = found.get("iterations"), found.get("difference")
    more = ([str(steps)] if steps else []) + ([f"{gap:.0e}"] if gap else [])
    return f"{found['seconds']:.3g}" + (f" ({'; '.join(more)})" if more else "")


def differences(found: list[dict], measure: str, report: Report) -> list[dict]:
    """Paired tests of ML-LSPC against all others on the same draws."""
    pairs = [(T, name) for T in dict.fromkeys(f["labels"] for f in found) for name in names(found) if name != MAIN]
    tests = [t for t in (paired(found, measure, T, name) for T, name in pairs) if t is not None]
    if tests:
        header = ["labels", f"{MAIN} minus ...", "draws", measure, "standard error", "p"]
        report(markdown("Paired t-tests", header, [list(t.values()) for t in tests]))
    return tests


def paired(found: list[dict], measure: str, T: int, name: str) -> dict | None:
    """One test; None with fewer than two different draws."""
    main, mine = ({f["run"]: f[measure] for f in of_method(found, m, T)} for m in (MAIN, name))
    both = sorted(set(mine) & set(main))
    gap = np.array([main[k] - mine[k] for k in both])
    if len(gap) < 2 or np.ptp(gap) < 1e-12:
        return None
    p = float(ttest_rel([main[k] for k in both], [mine[k] for k in both]).pvalue)
    error = float(gap.std(ddof=1) / np.sqrt(len(gap)))
    found_here = {"labels": T, "method": name, "draws": len(gap), "mean": float(gap.mean())}
    return {**found_here, "standard_error": error, "p": p}
