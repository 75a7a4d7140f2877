"""Tables next to the published numbers (mean and standard deviation over ten splits), and paired tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import ttest_rel

from papers._common.experiments import Report
from papers._common.output import spread, table

#: School, explained variance in percent.
TABLE_2 = {"LS-SVM": (9.8, 0.6), "MTLS-SVM": (38.16, 0.3), "RMTL": (34.32, 0.4), "BMTL": (34.37, 0.4)}
#: Dermatology, error in percent.
TABLE_3 = {
    "LS-SVM": (7.9, 3.2),
    "MTLS-SVM": (8.2, 2.7),
    "MTL-FEAT": (9.5, 3.0),
    "independent, RBF, of another paper": (9.8, 3.1),
}

MAIN = "MTLS-SVM"
Printed = Mapping[str, tuple[float, float]]


def cases(found: list[dict]) -> list[tuple[str, str]]:
    """Combinations of method and inputs that were run."""
    return list(dict.fromkeys((f["method"], f["inputs"]) for f in found))


def tell(title: str, found: list[dict], measures: Sequence[str], printed: Printed, report: Report) -> None:
    """Report all measures by method and inputs, next to the published numbers."""
    rows: list[list] = []
    for name, inputs in cases(found):
        runs = [f for f in found if (f["method"], f["inputs"]) == (name, inputs)]
        figures = [spread([f[k] for f in runs], 2) for k in measures]
        said = _said(printed.get(name.partition(",")[0]))
        rows.append([name, inputs, len(runs), *figures, said, float(np.mean([f["seconds"] for f in runs]))])
    ours = {name.partition(",")[0] for name, _ in cases(found)}
    rows += [
        [name, "-", 0, *["-"] * len(measures), _said(printed[name]), None] for name in printed if name not in ours
    ]
    report(table(title, ["method", "inputs", "splits", *measures, "paper", "seconds"], rows))


def _said(paper: tuple[float, float] | None) -> str:
    return "-" if paper is None else f"{paper[0]}±{paper[1]}"


def differences(found: list[dict], measure: str, report: Report) -> list[dict]:
    """Paired tests of one measure against MTLS-SVM on the same inputs and splits."""
    tests = [t for t in (paired(found, measure, *case) for case in cases(found)) if t is not None]
    header = ["method", "inputs", "difference", "standard error", "p", "above", "splits"]
    if tests:
        report(table(f"{measure}: minus {MAIN} on the same splits", header, [list(t.values()) for t in tests]))
    return tests


def paired(found: list[dict], measure: str, name: str, inputs: str) -> dict | None:
    """One test; None with fewer than two splits."""
    mine, main = (
        {f["run"]: f[measure] for f in found if (f["method"], f["inputs"]) == (wanted, inputs)}
        for wanted in (name, MAIN)
    )
    both = sorted(set(mine) & set(main))
    gap = np.array([mine[k] - main[k] for k in both])
    if name == MAIN or len(gap) < 2:
        return None
    p = float(ttest_rel([mine[k] for k in both], [main[k] for k in both]).pvalue) if np.ptp(gap) > 1e-12 else np.nan
    error = float(gap.std(ddof=1) / np.sqrt(len(gap)))
    record = {"method": name, "inputs": inputs, "mean": float(gap.mean()), "standard_error": error, "p": p}
    return record | {"above": int(np.sum(gap > 0)), "splits": len(gap)}
