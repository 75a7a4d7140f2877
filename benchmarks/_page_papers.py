"""Tables of the page that compares with the four papers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks._page_format import NONE, best, mean_of, names_of, origin, results, short, spread, table
from papers.lspc_mt.comparison import SIX, TABLE_1, TABLE_2, TABLE_3, TABLE_4, Table
from papers.ml_lspc.tables import SECTION_6_2
from papers.mtls_svm.tables import TABLE_2 as SCHOOL
from papers.mtls_svm.tables import TABLE_3 as SKIN

Found = list[dict[str, Any]]

# ------------------------------------------------------------------------ LSPC

LSPC_METHODS = ("LSPC", "LSPC(full)", "KLR", "KLR here", "LSPC()")


def figure(number: int, key: str) -> str:
    """Errors of all methods, the seconds of LSPC, and ratios of times."""
    lines = []
    for f in (f for f in results("lspc_figures")["summary"] if f["figure"] == number):
        lines.append([f["data"], f"{f[key]:,}", *(spread(f[m]["errors"], 1) for m in LSPC_METHODS)])
        lines[-1] += [short(f["LSPC"]["cpu"], 2), short(f["LSPC()"]["cpu"], 2)]
        lines[-1] += [short(f[k], 2) for k in ("ratio_cpu", "ratio_here_cpu")]
    header = ["data", key, *(f"% {m}" for m in LSPC_METHODS), "s LSPC", "s LSPC()", "KLR / LSPC", "KLR here / LSPC"]
    return table(header, lines)


# --------------------------------------------------------------------- LSPC-MT

LANDMINE, UMIST = "multi_task_tables_landmine", "multi_task_tables_umist"
DEFAULTS = ("LSPC-MT", "default", "default auc", "default learned", "default coefficients")
DRAWS = {
    LANDMINE: "up: the rare class's share rounded up",
    f"{LANDMINE}_nearest": "nearest: rounded, at least one row",
    f"{LANDMINE}_come": "as they come",
    f"{LANDMINE}_equal": "equal numbers of both classes",
}


def scores(name: str, n: int, method: str, draws: int | None = None) -> str:
    """Mean, minimum and maximum over draws."""
    found = next(r for r in results(name)["runs"] if (r["n"], r["method"]) == (n, method))["score"][:draws]
    return f"{np.mean(found):.3f} ({min(found):.3f}-{max(found):.3f})"


def six(name: str, printed: Table) -> str:
    """The six methods, and the ranges of the paper."""
    lines = []
    for n, limits in printed.items():
        lines.append([str(n), *(scores(name, n, m) for m in SIX)])
        lines.append(["paper", *(f"{low:.3f}-{high:.3f}" for low, high in limits)])
    return f"{origin(name)}\n\n{table(['n', *SIX], lines)}"


def defaults(name: str, printed: Table, draws: int | None = None) -> str:
    """The defaults of the library on the same draws."""
    lines = [[str(n), *(scores(name, n, m, draws) for m in DEFAULTS)] for n in printed]
    return table(["n", *DEFAULTS], lines)


def gains() -> str:
    """LSPC-MT minus other methods on Landmine, with p-values."""
    others = {"LSPC-STI": "STI", "LSPC-STC": "STC", "KLR-MT": "KLR-MT", "default": "`MultiTaskLSPC()`"}
    found = {(f["n"], f["other"]): f for f in results(LANDMINE)["tests"] if f["one"] == "LSPC-MT"}
    lines = [[str(n), *(_difference(found[n, other]) for other in others)] for n in TABLE_3]
    return table(["n", *others.values()], lines)


def _difference(f: Mapping[str, Any]) -> str:
    return f"{f['difference']:+.3f} ({f['p']:.1g})"


def draws() -> str:
    """Four ways to draw the rows of Landmine."""
    methods = ("LSPC-MT", "LSPC-STI", "LSPC-STC")
    lines = [[way, str(n), *(scores(f, n, m) for m in methods)] for f, way in DRAWS.items() for n in (20, 35)]
    return f"{origin(*list(DRAWS)[1:])}\n\n{table(['rows drawn', 'n', *methods], lines)}"


def sums() -> str:
    """Landmine with KLR's penalty added to the sum of the losses."""
    name, methods = f"{LANDMINE}_sum", ("KLR-MT", "KLR-STI", "KLR-STC")
    found = {f["n"]: f for f in results(name)["tests"] if (f["one"], f["other"]) == ("LSPC-MT", "KLR-MT")}
    lines = [[str(n), *(scores(name, n, m) for m in methods), _difference(found[n])] for n in TABLE_3]
    return f"{origin(name)}\n\n{table(['n', *methods, 'LSPC-MT minus KLR-MT (p)'], lines)}"


def times() -> str:
    """Seconds of complete searches, and ratios beside those of the paper."""
    lines = []
    for name, words, printed in ((LANDMINE, "landmine", TABLE_4), (UMIST, "umist", TABLE_2)):
        total = {r["n"]: r for r in results(f"{LANDMINE}_sum")["ratios"]} if name == LANDMINE else {}
        for f in results(name)["ratios"]:
            both = [f, *([total[f["n"]]] if total else [])]
            searches = [f"{short(r['KLR-MT paper'], 2)} ± {short(r['+-'], 1)}" for r in both]
            lines.append([f"{words}, {f['n']}", short(f["LSPC-MT"]), short(f["KLR-MT here"])])
            lines[-1] += [*searches, *[NONE] * (2 - len(both)), short(f["here / LSPC"], 2)]
            lines[-1] += [*(f"{r['paper / LSPC']:.0f}" for r in both), *[NONE] * (2 - len(both))]
            ours, theirs = (np.sqrt(np.prod(printed[f["n"]][k])) for k in (0, 1))
            lines[-1].append(f"{theirs / ours:.0f}")
    header = ["n", "LSPC-MT", "KLR-MT here", "KLR-MT paper's form, mean", "the same, sum", "here / LSPC"]
    return table([*header, "mean / LSPC", "sum / LSPC", "paper's tables, KLR / LSPC"], lines)


# -------------------------------------------------------------------- MTLS-SVM

SCHOOL_METHODS = {
    "LS-SVM, own gamma and p": "LS-SVM per school, own gamma and p",
    "LS-SVM, same gamma and p": "LS-SVM per school, same gamma and p",
    "MTLS-SVM": "**MTLS-SVM**, linear, an intercept per school",
    "RMTL": "RMTL",
    "BMTL": "BMTL, two hidden units",
    "MTL-FEAT": "MTL-FEAT, linear",
    "ridge per school": "ridge regression per school",
    "ridge + schools": "ridge regression, schools one-hot",
    "mean of the school": "the mean of the school",
    "MultiTaskLSSVR linear, rows": '`MultiTaskLSSVR(kernel="linear")`',
    "MultiTaskLSSVR, rows": "`MultiTaskLSSVR()`",
    "MultiTaskLSSVR 200 centres, rows": "`MultiTaskLSSVR(n_centers=200)`",
}
SCHOOL_FILES = ("lssvm_tables_school", "lssvm_tables_school_default", "lssvm_tables_school_centres")
INPUTS = {"raw": "33 attributes without age", "with age": "age instead of family history"}


def school() -> str:
    """Explained variance on the ten splits."""
    files = [results(name)["figures"] for name in SCHOOL_FILES]
    lines = []
    for method, words in SCHOOL_METHODS.items():
        found: Found = next(figures for figures in files if method in names_of(figures, "method"))
        here = {i: [f for f in found if (f["method"], f["inputs"]) == (method, i)] for i in ("raw", "standardised")}
        lines.append([words, *(spread([f["total"] for f in part], 2) if part else NONE for part in here.values())])
        lines[-1] += [f"{mean_of(here['standardised'], key):.1f}" for key in ("within", "plain")]
        printed = next((v for k, v in SCHOOL.items() if k == method.partition(",")[0]), None)
        lines[-1] += [NONE if printed is None else f"{printed[0]} ± {printed[1]}"]
        lines[-1] += [short(mean_of(here["standardised"], "seconds"), 2)]
    header = ["", "total, raw inputs", "total, standardised", "within", "plain", "paper", "seconds"]
    return f"{origin(*SCHOOL_FILES)}\n\n{table(header, lines)}"


def school_similarities() -> str:
    """Similarities of the schools, on every fifth school."""
    words = {
        "MTLS-SVM": "MTLS-SVM",
        "ridge + schools": "ridge regression, schools one-hot",
        "MultiTaskLSSVR linear, rows": "linear, equal similarities",
        "MultiTaskLSSVR linear correlation, rows": "linear, similarities by correlation",
        "MultiTaskLSSVR linear learned, rows": "linear, learned similarities",
        "MultiTaskLSSVR, rows": "`MultiTaskLSSVR()`",
    }
    found = results("lssvm_tables_similar")["figures"]
    lines = [[w, spread([f["total"] for f in found if f["method"] == m], 2)] for m, w in words.items()]
    return f"{origin('lssvm_tables_similar')}\n\n{table(['', 'total, three splits'], lines)}"


def skin() -> str:
    """Four definitions of the error on dermatology."""
    found = results("lssvm_tables_dermatology")["figures"]
    methods = [m for m in names_of(found, "method") if m != "MTLS-SVM, single"]
    lines = []
    for inputs, words in INPUTS.items():
        for method in methods:
            here = [f for f in found if (f["method"], f["inputs"]) == (method, inputs)]
            printed = SKIN.get(method.partition(",")[0])
            shown = [spread([f[k] for f in here], 2) for k in ("binary", "class", "any", "sum")]
            lines.append([words, f"`{method}`" if "()" in method else method, *shown])
            lines[-1].append(f"{printed[0]} ± {printed[1]}" if printed else NONE)
    header = ["inputs", "method", "binary", "class", "any", "sum", "paper"]
    return f"{origin('lssvm_tables_dermatology')}\n\n{table(header, lines)}"


# --------------------------------------------------------------------- ML-LSPC

ENRON_METHODS = {
    "LSPC": "LSPC, independent labels",
    "ML-LSPC": "**ML-LSPC**",
    "ML-LSPC, learned": "ML-LSPC with the learned covariance",
    "ML-kNN": "[ML-kNN](baselines.md), k chosen",
    "ML-kNN, k = 10": "ML-kNN, k = 10",
    "InsDif": "InsDif",
    "MultiLabelLSPC()": "`MultiLabelLSPC()`",
    "MultiLabelLSPC(sharing=0)": "`MultiLabelLSPC(sharing=0)`",
    "MultiLabelLSPC(threshold='auto')": '**`MultiLabelLSPC(threshold="auto")`**',
    "... and scoring='f1_micro'": '`MultiLabelLSPC(threshold="auto", scoring="f1_micro")`',
}
SOLVERS = {
    "direct": "direct, the whole Kronecker matrix",
    "eigen": "**two eigendecompositions**",
    "CG": "conjugate gradients as in the paper, to 1e-6",
    "CG + factor": "conjugate gradients with a partial Cholesky factor",
    "MultiLabelLSPC, given parameters": "`MultiLabelLSPC`, given parameters, from the rows on",
    "ML-kNN": "ML-kNN",
    "InsDif": "InsDif",
}


def enron() -> str:
    """Micro F1 with standard errors."""
    found = results("label_tables_enron")["figures"]
    lines = []
    for method, words in ENRON_METHODS.items():
        values = np.array([f["f1_micro"] for f in found if f["method"] == method])
        printed = SECTION_6_2.get(method)
        error = values.std(ddof=1) / np.sqrt(len(values))
        lines.append([words, str(len(values)), f"{values.mean():.3f} ± {error:.3f}"])
        lines[-1] += [f"{printed[0]:.3f}" if printed else NONE, short(mean_of(found, "seconds", method=method), 2)]
    return f"{origin('label_tables_enron')}\n\n{table(['', 'draws', 'micro F1', 'paper', 'seconds'], lines)}"


def rotated() -> str:
    """Share of wrong labels by the number of labels."""
    found = results("label_tables_toy")["figures"]
    counts = names_of(found, "labels")
    methods = names_of(found, "method")
    values = [[mean_of(found, "wrong", method=m, labels=T) for m in methods] for T in counts]
    columns = [best(column, True, 3) for column in values]
    rows = zip(methods, zip(*columns, strict=True), strict=True)
    lines = [[ENRON_METHODS[m].replace("**", ""), *cells] for m, cells in rows]
    return f"{origin('label_tables_toy')}\n\n{table(['', *(f'{T} labels' for T in counts)], lines)}"


def solves() -> str:
    """Seconds of one solve by rows and labels."""
    found = results("label_tables_solve")["figures"]
    parts = [origin("label_tables_solve")]
    for n in sorted(names_of(found, "rows"), reverse=True):
        here = [f for f in found if f["rows"] == n]
        counts = names_of(here, "labels")
        known = {(f["method"], f["labels"]): f for f in here}
        lines = [
            [words, *(_solve(known.get((m, T))) for T in counts)]
            for m, words in SOLVERS.items()
            if any((m, T) in known for T in counts)
        ]
        parts.append(table([f"{n:,} rows", *(f"{T} labels" for T in counts)], lines))
    return "\n\n".join(parts)


def _solve(f: Mapping[str, Any] | None) -> str:
    if f is None:
        return NONE
    seconds = short(f["seconds"], 2)
    return f"{seconds} ({f['iterations']}; {f['difference']:.0e})" if f.get("iterations") else seconds


TABLES = {
    "lspc-figure-7": lambda: f"{origin('lspc_figures')}\n\n{figure(7, 'n')}",
    "lspc-figure-8": lambda: figure(8, "c"),
    "landmine": lambda: six(LANDMINE, TABLE_3),
    "landmine-gains": gains,
    "landmine-defaults": lambda: defaults(LANDMINE, TABLE_3),
    "landmine-draws": draws,
    "landmine-sums": sums,
    "umist": lambda: six(UMIST, TABLE_1),
    "umist-defaults": lambda: defaults(UMIST, TABLE_1, 20),
    "multi-task-times": times,
    "school": school,
    "school-similarities": school_similarities,
    "dermatology": skin,
    "enron": enron,
    "rotated-labels": rotated,
    "label-solves": solves,
}
