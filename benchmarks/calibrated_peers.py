"""From raw data to calibrated probabilities: quality and time compared with the usual methods, in one run.

LSPC()                    defaults: search, fit and calibration by held-out scores
SVC + CalibratedCV        C and gamma by GridSearchCV (3 folds), then CalibratedClassifierCV(method="sigmoid",
                          ensemble=False, cv=5)
SVC(probability=True)     the same search, then libsvm's own Platt scaling
Nystroem + LR             500 components, gamma and C by GridSearchCV (3 folds) on log-loss
HistGradientBoosting      defaults
GP (... rows)             GaussianProcessClassifier, one-vs-rest, on a subset; in the first run only

All seconds include the search. All methods get the same input and the same cores: BLAS and OpenMP are
capped at --threads, and scikit-learn's searches fit --threads candidates at a time on one thread each.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

from benchmarks._common import capped, in_proportion, parse, parser, peer_split, print_table, quality, write_json
from leastwise import LSPC
from papers._common.data import Split, available, median_distance
from papers._common.output import spread
from papers._common.timing import settled, timed, timed_median

SETS = ("usps", "satimage", "letter", "digits")
GAMMAS, COSTS = (1 / 3, 1, 3), (1, 10, 100)
OURS, PLATT, LIBSVM = "LSPC()", "SVC + CalibratedCV", "SVC(probability=True)"
MEASURES = ("accuracy", "log_loss", "ece", "brier")


@dataclass(frozen=True)
class Fitted:
    """A model from one method, the seconds to get it, and how many fits on the way did not converge."""

    label: str
    model: Any
    seconds: float
    unsettled: int = 0


def gammas(X: np.ndarray) -> list[float]:
    """Around scikit-learn's gamma="scale"."""
    return [g / (X.shape[1] * X.var()) for g in GAMMAS]


def folds(seed: int) -> StratifiedKFold:
    return StratifiedKFold(3, shuffle=True, random_state=seed)


def warm_up(jobs: int) -> None:
    """Start the worker processes, so that no method is charged for their start."""
    X = np.arange(12.0)[:, None]
    GridSearchCV(SVC(), {"C": [1, 2]}, cv=2, n_jobs=jobs).fit(X, X[:, 0] % 2)


def lspc(split: Split, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    done = timed(lambda: LSPC(random_state=seed).fit(split.X, split.y))
    yield Fitted(OURS, done.value, done.wall)


def svc(split: Split, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    warm_up(args.threads)
    grid = {"C": COSTS, "gamma": gammas(split.X)}
    search = GridSearchCV(SVC(), grid, cv=folds(seed), n_jobs=args.threads, refit=False)
    found = timed(lambda: search.fit(split.X, split.y))
    best = found.value.best_params_
    platt = CalibratedClassifierCV(SVC(**best), method="sigmoid", ensemble=False, cv=5, n_jobs=args.threads)
    done = timed(lambda: platt.fit(split.X, split.y))
    yield Fitted(PLATT, done.value, found.wall + done.wall)
    if "probability" in SVC().get_params():
        own = SVC(probability=True, random_state=seed, **best)
        done = timed(lambda: own.fit(split.X, split.y))
        yield Fitted(LIBSVM, done.value, found.wall + done.wall)


def judged(model: Pipeline, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Score of a candidate, and whether its solver ran out of iterations."""
    last = model[-1]
    unsettled = float(np.max(last.n_iter_) >= last.max_iter)
    return {"score": -log_loss(y, model.predict_proba(X), labels=model.classes_), "unsettled": unsettled}


def nystroem(split: Split, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    warm_up(args.threads)
    features = Nystroem(n_components=min(500, len(split.y) // 2), random_state=seed)
    pipeline = Pipeline([("features", features), ("model", LogisticRegression(max_iter=300))])
    grid = {"features__gamma": gammas(split.X), "model__C": COSTS}
    search = GridSearchCV(pipeline, grid, scoring=judged, refit="score", cv=folds(seed), n_jobs=args.threads)
    done = timed(lambda: search.fit(split.X, split.y))
    results = done.value.cv_results_
    count = sum(int(results[f"split{k}_test_unsettled"].sum()) for k in range(3))
    best = done.value.best_estimator_
    yield Fitted("Nystroem + LR", best, done.wall, count + int(judged(best, split.X, split.y)["unsettled"]))


def boosting(split: Split, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    done = timed(lambda: HistGradientBoostingClassifier(random_state=seed).fit(split.X, split.y))
    yield Fitted("HistGradientBoosting", done.value, done.wall)


def gaussian_process(split: Split, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    if seed or not args.gp_rows:
        return
    rows = np.arange(len(split.y))
    if len(rows) > 1.5 * args.gp_rows:
        rows = in_proportion(split.y, rows, args.gp_rows, np.random.default_rng(seed))
    X, y = split.X[rows], split.y[rows]
    kernel = 1.0 * RBF(median_distance(X))
    model = GaussianProcessClassifier(kernel, multi_class="one_vs_rest", random_state=seed)
    done, count = settled(lambda: timed(lambda: model.fit(X, y)))
    yield Fitted(f"GP ({len(y)} rows)", done.value, done.wall, count)


METHODS: tuple[Callable[..., Iterator[Fitted]], ...] = (lspc, svc, nystroem, boosting, gaussian_process)


def measured(split: Split, seed: int, fitted: Fitted) -> dict:
    predict = timed_median(lambda: fitted.model.predict_proba(split.X_test), repeats=3).wall
    return {
        "data": split.name,
        "rows": len(split.y),
        "test_rows": len(split.y_test),
        "method": fitted.label,
        "run": seed,
        **quality(fitted.model, split.X_test, split.y_test),
        "seconds": fitted.seconds,
        "predict_seconds": predict,
        "unsettled": fitted.unsettled,
    }


def run(args: argparse.Namespace) -> Iterator[dict]:
    rows = 300 if args.quick else None
    for seed in range(args.runs):
        for _, split in available(args.sets, lambda name, s=seed: peer_split(name, args.data, s, rows)):
            for method in METHODS:
                for fitted in method(split, seed, args):
                    found = measured(split, seed, fitted)
                    print(f"{split}, {fitted.label}, run {seed}: {fitted.seconds:.1f} s", flush=True)
                    yield found


def mean(found: list[dict], data: str, method: str, key: str) -> float:
    values = [f[key] for f in found if (f["data"], f["method"]) == (data, method)]
    return float(np.mean(values)) if values else float("nan")


def report(found: list[dict]) -> None:
    for data in dict.fromkeys(f["data"] for f in found):
        here = [f for f in found if f["data"] == data]
        lines = []
        for method in dict.fromkeys(f["method"] for f in here):
            runs = [f for f in here if f["method"] == method]
            times = [float(np.mean([f[k] for f in runs])) for k in ("seconds", "predict_seconds")]
            unsettled = sum(f["unsettled"] for f in runs)
            lines.append([method, *(spread([f[k] for f in runs]) for k in MEASURES), *times, unsettled])
        title = f"{data}: {here[0]['rows']} training rows, {here[0]['test_rows']} test rows"
        print_table(title, ["method", *MEASURES, "seconds", "predict s", "unsettled"], lines)


def summary(found: list[dict]) -> dict[str, Any]:
    """On how many data sets LSPC is at or below the SVC variants, and times in total (means over runs)."""
    sets = list(dict.fromkeys(f["data"] for f in found))
    variants = [m for m in (PLATT, LIBSVM) if any(f["method"] == m for f in found)]
    out: dict[str, Any] = {"sets": len(sets)}
    for key in ("log_loss", "ece"):
        wins = {m: [mean(found, s, OURS, key) <= mean(found, s, m, key) for s in sets] for m in variants}
        out[key] = {m: sum(w) for m, w in wins.items()}
        out[key]["the better of them"] = sum(map(all, zip(*wins.values(), strict=True)))
    total = {m: sum(mean(found, s, m, "seconds") for s in sets) for m in [OURS, *variants]}
    out["total_seconds"] = total
    out["ratio"] = {m: total[m] / total[OURS] for m in variants}
    return out


def report_summary(out: dict[str, Any]) -> None:
    names = [*out["ratio"], "the better of them"]
    total, ratio = out["total_seconds"], out["ratio"]
    wins = {m: [f"{out[k][m]} of {out['sets']}" for k in ("log_loss", "ece")] for m in names}
    rows = [[m, *wins[m], total.get(m), ratio.get(m)] for m in names]
    header = ["LSPC() at or below", "log_loss", "ece", "seconds in all", "times LSPC()"]
    print_table(f"Summary; LSPC() takes {out['total_seconds'][OURS]:.3g} s in all", header, rows)


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.calibrated_peers", __doc__, runs=3)
    p.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    p.add_argument("--gp-rows", type=int, default=1000, help="cap for the Gaussian process; 0 leaves it out")
    args = parse(p, argv)
    if args.quick:
        args.runs, args.gp_rows = 1, min(args.gp_rows, 60)
    found: list[dict] = []
    with capped(args), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message=".*probability.*", category=FutureWarning)
        for record in run(args):
            found.append(record)
            write_json(args, {"figures": found}, say=False)
    report(found)
    out = summary(found)
    report_summary(out)
    write_json(args, {"summary": out, "figures": found})


if __name__ == "__main__":
    main()
