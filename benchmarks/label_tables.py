"""Section 6 of the multi-label LSPC paper: rotated boundaries, and the Enron messages.

enron         section 6.2: 1,000 training rows drawn at random, the other 702 for testing, 53 labels; micro F1
toy           figure 1a: rotated boundaries in two of 300 features, 2,000 training rows; share of wrong labels
solve         figure 1b: seconds of one solve at given parameters, as the labels grow

LSPC          every label alone (sharing = 0); penalty on the coefficients, clipped and normalised
ML-LSPC       the same with similar labels tied, eq. (1), by the positive part of their correlation
... learned   the same with the relation of labels that MultiLabelLSPC learns
ML-kNN        the number of neighbours chosen from a few; also with 10, as in its own paper
InsDif        medoids for 20 % of the rows, as in its own paper; for no more labels than --insdif-labels
MultiLabel..  this library's MultiLabelLSPC as it comes, and with one thing changed; in the first --more-runs draws

What the paper leaves open (grids, scaling of features) is in PROTOCOLS. Parameters of the first three come from 5
folds, by micro F1 (enron) or by the share of wrong labels (toy). Seconds are those of the search and a last fit.

"solve" starts from the kernel matrix and the similarities, both classes at once, in the paper's form:

direct        the whole matrix H by Cholesky, as mldivide has it; where rows x labels are no more than --direct
eigen         two eigendecompositions, as MultiLabelLSPC does
CG            conjugate gradients without a preconditioner, as pcg has it, to a residual of 1e-6
CG + factor   this library's conjugate gradients with a partial Cholesky factor as preconditioner, to 1e-6

In brackets are iterations and the largest difference to the scores of "eigen" on the training rows, relative to the
largest score. Nothing is extrapolated: the direct solve is timed on fewer rows, the others there too.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg
from scipy.stats import ttest_rel
from sklearn.model_selection import KFold

from benchmarks._common import (
    capped,
    median_distance,
    parse,
    parser,
    scale_of,
    standardise,
    timed,
    timed_median,
    write_json,
)
from benchmarks._labels import LabelSplit, calmly, enron, mean_and_error, print_markdown, rotated
from leastwise import MultiLabelLSPC
from leastwise.baselines import InsDif, MLkNN
from leastwise.coupling import laplacian
from leastwise.kernels import RBF
from leastwise.krylov_fitting import RANK
from leastwise.label_metrics import hamming, label_f1
from leastwise.labels.relation import Differences
from leastwise.linalg.kronecker_free import solve_matrix_free
from leastwise.linalg.modes import Modes
from leastwise.linalg.pivoted import pivoted_cholesky
from leastwise.linalg.spectrum import square_spectrum
from leastwise.linalg.sylvester import solve_sylvester

Array = np.ndarray


@dataclass(frozen=True)
class Protocol:
    """What is tried, and by what the best is told. "auto" is the grid of MultiLabelLSPC."""

    scoring: str
    #: In medians of the distance between rows.
    sigmas: Sequence[float] | str = "auto"
    alphas: Sequence[float] | str = "auto"
    sharings: Sequence[float] | str = "auto"
    neighbors: Sequence[int] = (5, 10, 20, 40)
    #: Whether features are standardised, by the training rows.
    scaled: bool = False
    folds: int = 5

    def judge(self, Y: Array, decisions: Array) -> float:
        """What the search maximises."""
        return float(label_f1(Y, decisions) if self.scoring == "f1_micro" else -hamming(Y, decisions))

    def widths(self, X: Array) -> Any:
        """Sigmas for these rows."""
        return "auto" if isinstance(self.sigmas, str) else [s * median_distance(X) for s in self.sigmas]


PROTOCOLS = {"enron": Protocol("f1_micro"), "toy": Protocol("hamming", sigmas=(0.7, 1.0, 1.5, 2.25))}

#: Section 6.2, and seconds.
PAPER = {"LSPC": (0.556, 3.3), "ML-LSPC": (0.561, 5.5), "ML-kNN": (0.372, 9.6), "InsDif": (0.526, 470.7)}
OURS: dict[str, dict[str, Any]] = {
    "MultiLabelLSPC()": {},
    "MultiLabelLSPC(threshold='auto')": {"threshold": "auto"},
    "... and scoring='f1_micro'": {"threshold": "auto", "scoring": "f1_micro"},
    "MultiLabelLSPC(sharing=0)": {"sharing": 0.0},
    "MultiLabelLSPC(similarity='shared')": {"similarity": "shared"},
    "MultiLabelLSPC(similarity='correlation')": {"similarity": "correlation"},
}
TOY_LABELS, SOLVE_LABELS = (10, 20, 50, 100), (10, 20, 50, 100, 200, 500)
#: Near what was chosen on the toy data: sigma in medians of the distance.
SIGMA, ALPHA, SHARING = 1.0, 1.5e-4, 0.9
TOL, MAX_ITER = 1e-6, 2000
MEASURE = {"enron": "f1_micro", "toy": "wrong"}
MAIN = "ML-LSPC"

# --------------------------------------------------------------------- methods


@dataclass(frozen=True)
class Case:
    """A draw and how it is to be tuned."""

    data: LabelSplit
    protocol: Protocol
    seed: int


#: From a case to decisions on the test rows, and what was chosen.
Method = Callable[[Case], tuple[Callable[[], Array], dict]]


def chosen(model: MultiLabelLSPC) -> dict:
    return {"chosen": [model.sigma_, model.alpha_, model.sharing_]}


def paper_form(case: Case, sharings: Any = None, similarity: str = "correlation") -> tuple[Callable[[], Array], dict]:
    """LSPC and ML-LSPC as in the paper."""
    p, data = case.protocol, case.data
    model = MultiLabelLSPC(
        p.widths(data.X),
        p.alphas,
        p.sharings if sharings is None else sharings,
        similarity=similarity,
        norm="coefficients",
        calibration=None,
        cv=p.folds,
        scoring=p.scoring,
        search_rows=None,
        random_state=case.seed,
    ).fit(data.X, data.Y)
    return partial(model.predict, data.X_test), chosen(model)


def nearest(case: Case, ks: Sequence[int] | None = None) -> tuple[Callable[[], Array], dict]:
    """ML-kNN with the best number of neighbours."""
    p, data = case.protocol, case.data
    ks = p.neighbors if ks is None else ks
    best = max(ks, key=partial(nearest_score, case)) if len(ks) > 1 else ks[0]
    model = MLkNN(best).fit(data.X, data.Y)
    return partial(model.predict, data.X_test), {"chosen": best}


def nearest_score(case: Case, k: int) -> float:
    """Held-out score of k neighbours."""
    X, Y = case.data.X, case.data.Y
    decisions = np.empty_like(Y)
    for stay, out in KFold(case.protocol.folds, shuffle=True, random_state=case.seed).split(X):
        decisions[out] = MLkNN(k).fit(X[stay], Y[stay]).predict(X[out])
    return case.protocol.judge(Y, decisions)


def insdif(case: Case) -> tuple[Callable[[], Array], dict]:
    model = InsDif(random_state=case.seed).fit(case.data.X, case.data.Y)
    return partial(model.predict, case.data.X_test), {}


def ours(options: dict, case: Case) -> tuple[Callable[[], Array], dict]:
    model = MultiLabelLSPC(**options, random_state=case.seed).fit(case.data.X, case.data.Y)
    return partial(model.predict, case.data.X_test), chosen(model)


PAPERS: dict[str, Method] = {
    "LSPC": partial(paper_form, sharings=0.0),
    MAIN: paper_form,
    "ML-LSPC, learned": partial(paper_form, similarity="learned"),
    "ML-kNN": nearest,
    "ML-kNN, k = 10": partial(nearest, ks=(10,)),
    "InsDif": insdif,
}


def methods(part: str, n_labels: int, run: int, args: argparse.Namespace) -> dict[str, Method]:
    """Those that are due in a draw."""
    found = {k: m for k, m in PAPERS.items() if k != "InsDif" or n_labels <= args.insdif_labels}
    if run < args.more_runs:
        extra = OURS if part == "enron" else {k: OURS[k] for k in ("MultiLabelLSPC()", "MultiLabelLSPC(sharing=0)")}
        found |= {name: partial(ours, options) for name, options in extra.items()}
    return {k: m for k, m in found.items() if not args.only or any(word in k for word in args.only)}


def measured(name: str, method: Method, case: Case) -> dict:
    done = timed(lambda: calmly(lambda: method(case)))
    (predict, more), unsettled = done.value
    predicted = timed(predict)
    Y = case.data.Y_test
    found = {
        "labels": Y.shape[1],
        "rows": len(case.data.Y),
        "method": name,
        "run": case.seed,
        "f1_micro": float(label_f1(Y, predicted.value)),
        "wrong": float(hamming(Y, predicted.value)),
        "seconds": done.wall,
        "predict_seconds": predicted.wall,
        "unsettled": unsettled,
        **more,
    }
    print(
        f"run {case.seed}, {Y.shape[1]} labels, {name}: F1 {found['f1_micro']:.4f}, wrong {found['wrong']:.4f}, "
        f"{done.wall:.2f} s, chosen {more.get('chosen')}",
        flush=True,
    )
    return found


def scaled(data: LabelSplit) -> LabelSplit:
    scale = scale_of(data.X)
    return LabelSplit(data.name, standardise(data.X, scale), data.Y, standardise(data.X_test, scale), data.Y_test)


def draws(part: str, args: argparse.Namespace) -> Iterator[tuple[int, LabelSplit]]:
    """Numbers of draws with their rows, before these are scaled."""
    if part == "enron":
        draw = enron(args.data, args.quick)
        yield from ((run, draw(run)) for run in range(args.runs))
        return
    counts, features, test_rows = ((5, 8), 20, 200) if args.quick else (args.labels or TOY_LABELS, 300, 2000)
    for run in range(args.runs):
        for T in counts:
            yield run, rotated(T, args.rows, test_rows, run, n_features=features)


def compare(part: str, args: argparse.Namespace) -> Iterator[dict]:
    protocol = PROTOCOLS[part]
    for run, data in draws(part, args):
        case = Case(scaled(data) if protocol.scaled else data, protocol, run)
        for name, method in methods(part, data.Y.shape[1], run, args).items():
            yield measured(name, method, case)


# ----------------------------------------------------------------------- solve


@dataclass(frozen=True)
class System:
    """Eq. (1) of one size: the kernel matrix, targets of both classes, similarities and the ridge."""

    K: Array
    Z: Array
    S: Array
    rho: float

    @classmethod
    def of(cls, rows: int, n_labels: int, features: int) -> System:
        """On the toy data."""
        data = rotated(n_labels, rows, 1, 0, n_features=features)
        K = RBF()(data.X, data.X, SIGMA * median_distance(data.X))
        S = np.maximum(np.corrcoef(data.Y.T), 0)
        return cls(K, np.stack([1.0 - data.Y, data.Y]), S, ALPHA * rows)

    def modes(self) -> Modes:
        """Of B."""
        return Differences(np.ones(len(self.S)), self.S, np.ones(len(self.S))).modes(SHARING)

    def C(self) -> Array:
        """The paper's C, in which the ridge is."""
        C = (1 - SHARING) * np.eye(len(self.S)) + SHARING * laplacian(self.S)
        return self.rho * np.diagonal(np.linalg.inv(C)).mean() * C


#: From a system to coefficients of shape (classes, rows, labels), and iterations.
Solver = Callable[[System], tuple[Array, int | None]]


def by_kronecker(s: System) -> tuple[Array, None]:
    """``H = I (x) Phi'Phi + C (x) I`` as it stands."""
    n, T = s.Z.shape[1:]
    H = np.kron(s.C(), np.eye(n))
    G = s.K.T @ s.K
    for t in range(T):
        H[t * n : (t + 1) * n, t * n : (t + 1) * n] += G
    h = (s.K.T @ s.Z).transpose(0, 2, 1).reshape(len(s.Z), -1).T
    theta = linalg.solve(H.T, h, assume_a="pos", overwrite_a=True, check_finite=False)
    return theta.T.reshape(len(s.Z), T, n).transpose(0, 2, 1), None


def by_eigen(s: System) -> tuple[Array, None]:
    Theta, _ = solve_sylvester(square_spectrum(s.K), s.modes(), np.ascontiguousarray(s.Z.transpose(1, 0, 2)), s.rho)
    return Theta.transpose(1, 0, 2), None


def by_gradients(s: System) -> tuple[Array, int]:
    """The paper's product, ``Phi'Phi Theta + Theta C``, one class after the other."""
    G, C = s.K.T @ s.K, s.C()
    found = [conjugate_gradients(lambda A: G @ A + A @ C, s.K.T @ Z) for Z in s.Z]
    return np.stack([A for A, _ in found]), max(steps for _, steps in found)


def conjugate_gradients(times: Callable[[Array], Array], right: Array) -> tuple[Array, int]:
    """From zero, without a preconditioner; the solution and the number of steps."""
    A, R = np.zeros_like(right), right.copy()
    P, size, first = R.copy(), float(np.sum(R * R)), float(np.sum(right * right))
    for step in range(MAX_ITER):
        if size <= TOL**2 * first:
            return A, step
        HP = times(P)
        length = size / float(np.sum(P * HP))
        A += length * P
        R -= length * HP
        size, last = float(np.sum(R * R)), size
        P = R + size / last * P
    return A, MAX_ITER


def by_factor(s: System) -> tuple[Array, int]:
    """The library's, with products by the kernel matrix."""
    modes, rng, n = s.modes(), np.random.default_rng(0), len(s.K)
    factor = pivoted_cholesky(np.sum(s.K**2, axis=1), lambda index: s.K @ s.K[:, index], min(RANK, n), rng)
    W = np.ones(s.Z.shape[1:])
    story = solve_matrix_free(lambda V: s.K @ (s.K @ V), factor, modes, s.Z, W, s.rho, tol=TOL, max_iter=MAX_ITER)
    return s.K @ modes.back(modes.eigenvalues * modes.rotate(story.Q)), story.n_iter


def solve(args: argparse.Namespace) -> Iterator[dict]:
    sizes = (
        [(30, (5, 8)), (150, (5, 8))] if args.quick else [(args.direct_rows, (10, 20, 50)), (args.rows, SOLVE_LABELS)]
    )
    for rows, counts in sizes:
        for T in counts:
            yield from solve_times(rows, T, 20 if args.quick else 300, args)


def solve_times(rows: int, T: int, features: int, args: argparse.Namespace) -> Iterator[dict]:
    """All solvers, and the other methods, at one size."""
    system = System.of(rows, T, features)
    solvers: dict[str, Solver] = {"eigen": by_eigen, "CG": by_gradients, "CG + factor": by_factor}
    if rows * T <= args.direct:
        solvers["direct"] = by_kronecker
    exact = by_eigen(system)[0]
    for name, solver in solvers.items():
        done = timed_median(partial(solver, system), 3, budget=10)
        A, steps = done.value
        gap = float(np.abs(system.K @ (A - exact)).max() / np.abs(system.K @ exact).max())
        yield solved(rows, T, name, done.wall, iterations=steps, difference=gap)
    data = rotated(T, rows, 1, 0, n_features=features)
    length = SIGMA * median_distance(data.X)
    options = {"similarity": "correlation", "norm": "coefficients", "solver": "sylvester"}
    model = MultiLabelLSPC(length, ALPHA, SHARING, **options, cv=None, calibration=None)  # type: ignore[arg-type]
    fits: dict[str, Any] = {"MultiLabelLSPC, given parameters": model, "ML-kNN": MLkNN()}
    if args.insdif_labels >= T:
        fits["InsDif"] = InsDif(random_state=0)
    for name, fit in fits.items():
        yield solved(rows, T, name, timed_median(partial(fit.fit, data.X, data.Y), 3, budget=5).wall)


def solved(rows: int, T: int, name: str, seconds: float, **more: Any) -> dict:
    print(f"{rows} rows, {T} labels, {name}: {seconds:.3g} s", flush=True)
    return {"rows": rows, "labels": T, "method": name, "seconds": seconds, **more}


# --------------------------------------------------------------------- figures


def report(part: str, found: list[dict]) -> None:
    {"enron": report_enron, "toy": report_toy, "solve": report_solve}[part](found)


def of_method(found: list[dict], name: str, T: int | None = None) -> list[dict]:
    return [f for f in found if f["method"] == name and T in (None, f["labels"])]


def names(found: list[dict]) -> list[str]:
    return list(dict.fromkeys(f["method"] for f in found))


def report_enron(found: list[dict]) -> None:
    rows = []
    for name in names(found):
        runs = of_method(found, name)
        seconds = float(np.mean([f["seconds"] for f in runs]))
        said = PAPER.get(name.partition(",")[0], (None, None))
        rows.append([name, len(runs), mean_and_error([f["f1_micro"] for f in runs]), said[0], seconds, said[1]])
    print_markdown(
        "Enron: micro F1, mean ± standard error",
        ["method", "draws", "micro F1", "paper", "seconds", "paper"],
        rows,
    )


def report_toy(found: list[dict]) -> None:
    counts = list(dict.fromkeys(f["labels"] for f in found))
    rows: list[list] = []
    for name in names(found):
        runs = [of_method(found, name, T) for T in counts]
        rows.append([name, *(mean_and_error([f["wrong"] for f in r]) if r else None for r in runs)])
        rows.append(["... seconds", *(float(np.mean([f["seconds"] for f in r])) if r else None for r in runs)])
    title = f"Rotated labels, {found[0]['rows']} rows: share of wrong labels, mean ± standard error"
    print_markdown(title, ["method", *(f"{T} labels" for T in counts)], rows)


def report_solve(found: list[dict]) -> None:
    for n in dict.fromkeys(f["rows"] for f in found):
        here = [f for f in found if f["rows"] == n]
        counts = list(dict.fromkeys(f["labels"] for f in here))
        rows = []
        for name in names(here):
            runs = {f["labels"]: f for f in of_method(here, name)}
            rows.append([name, *(solve_cell(runs.get(T)) for T in counts)])
        title = f"Seconds of one solve, {n} rows (iterations; largest difference)"
        print_markdown(title, ["method", *(f"{T} labels" for T in counts)], rows)


def solve_cell(found: dict | None) -> str:
    if found is None:
        return "-"
    steps, gap = found.get("iterations"), found.get("difference")
    more = ([str(steps)] if steps else []) + ([f"{gap:.0e}"] if gap else [])
    return f"{found['seconds']:.3g}" + (f" ({'; '.join(more)})" if more else "")


def differences(part: str, found: list[dict]) -> list[dict]:
    """Paired tests of ML-LSPC and all others on the same draws."""
    tests = []
    measure = MEASURE[part]
    for T in dict.fromkeys(f["labels"] for f in found):
        main = {f["run"]: f[measure] for f in of_method(found, MAIN, T)}
        for name in names(found):
            mine = {f["run"]: f[measure] for f in of_method(found, name, T)}
            both = sorted(set(mine) & set(main))
            gap = np.array([main[k] - mine[k] for k in both])
            if name == MAIN or len(gap) < 2 or np.ptp(gap) == 0:
                continue
            p = float(ttest_rel([main[k] for k in both], [mine[k] for k in both]).pvalue)
            tests.append(
                {"labels": T, "method": name, "draws": len(gap), "mean": float(gap.mean())}
                | {"standard_error": float(gap.std(ddof=1) / np.sqrt(len(gap))), "p": p}
            )
    if tests:
        header = ["labels", f"{MAIN} less ...", "draws", measure, "standard error", "p"]
        print_markdown("Paired t-tests", header, [list(t.values()) for t in tests])
    return tests


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.label_tables", __doc__)
    p.add_argument("set", nargs="?", choices=("enron", "toy", "solve"), default="enron")
    p.add_argument("--runs", type=int, help="random draws (default 20 of enron, 2 of toy)")
    p.add_argument("--more-runs", type=int, default=5, help="draws with this library's own ways (default 5)")
    p.add_argument("--rows", type=int, default=2000, help="training rows of toy and solve (default 2000)")
    p.add_argument("--labels", type=int, nargs="+", help=f"numbers of labels of toy (default {TOY_LABELS})")
    p.add_argument("--direct", type=int, default=10_000, help="rows x labels of a direct solve (default 10,000)")
    p.add_argument("--direct-rows", type=int, default=200, help="rows for the direct solve (default 200)")
    p.add_argument("--insdif-labels", type=int, help="labels up to which InsDif runs (default 100, of toy 50)")
    p.add_argument("--only", nargs="+", metavar="WORD", help="methods with one of these words in their names")
    args = parse(p, argv)
    args.runs = args.runs or (2 if args.quick or args.set == "toy" else 20)
    args.insdif_labels = args.insdif_labels or (50 if args.set == "toy" else 100)
    if args.quick:
        args.rows, args.direct, args.more_runs = min(args.rows, 150), min(args.direct, 300), 1
    if args.output.stem.removesuffix("-quick") == "label_tables":
        args.output = args.output.with_name(args.output.name.replace("tables", f"tables_{args.set}"))
    found: list[dict] = []
    with capped(args):
        for record in solve(args) if args.set == "solve" else compare(args.set, args):
            found.append(record)
            write_json(args, {"figures": found}, say=False)
    report(args.set, found)
    more: dict[str, Any] = {"point": {"sigma": SIGMA, "alpha": ALPHA, "sharing": SHARING}}
    if args.set != "solve":
        more = {"protocol": vars(PROTOCOLS[args.set]), "tests": differences(args.set, found)}
    write_json(args, {"paper": PAPER if args.set == "enron" else None, **more, "figures": found})


if __name__ == "__main__":
    main()
