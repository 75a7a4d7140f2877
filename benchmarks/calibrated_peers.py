"""From raw data to calibrated probabilities: quality and time compared with the usual methods, in one run.

LSPC()                    defaults: search, fit and calibration by held-out scores
LSPC, Gaussian kernel     LSPC(kernel="rbf", scale=None, metric=None): the input as it is, no choice of kernels
SVC + METHOD              C and gamma by GridSearchCV (3 folds), then CalibratedClassifierCV(method=METHOD,
                          ensemble=False, cv=5) for the methods sigmoid, isotonic and temperature
SVC + METHOD, 5 models    the same with ensemble=True: the mean of the models of the five folds
SVC(probability=True)     the same search, then libsvm's own Platt scaling
Nystroem + LR             500 components, gamma and C by GridSearchCV (3 folds) on log-loss
HistGradientBoosting      defaults
GP (... rows)             GaussianProcessClassifier, one-vs-rest, on a subset; in the first run only

All seconds include the search; with --threads 1 they are processor seconds. All methods get the same input and the
same cores: BLAS and OpenMP are capped at --threads, and scikit-learn's searches fit --threads candidates at a time on
one thread each.

Models that one process fits at the same time in several threads, all with random_state=0, should be equal. "threads"
in the results counts those whose probabilities differ from the ones of a fit alone (digits, 8 fits in 4 threads).
A piece measures this if it has the set digits and the method svc.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
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

from benchmarks._common import in_proportion, parse, parser, peer_split, print_table, quality, write_json
from benchmarks._pieces import add_options, earlier, gathered, seconds_of
from leastwise import LSPC
from papers._common import PLAIN
from papers._common.data import Split, available, median_distance
from papers._common.output import spread
from papers._common.timing import settled, timed, timed_median

SETS = ("usps", "satimage", "letter", "digits")
GAMMAS, COSTS = (1 / 3, 1, 3), (1, 10, 100)
OURS, GAUSSIAN, LIBSVM = "LSPC()", "LSPC, Gaussian kernel", "SVC(probability=True)"
#: Options of CalibratedClassifierCV; temperature scaling is in scikit-learn from 1.8 on.
CALIBRATIONS = {
    f"SVC + {method}{', 5 models' if ensemble else ''}": {"method": method, "ensemble": ensemble}
    for method in ("sigmoid", "isotonic", "temperature")
    for ensemble in (False, True)
}
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
    models = {OURS: LSPC(random_state=seed), GAUSSIAN: LSPC(**PLAIN, random_state=seed)}
    for name, model in models.items():
        done = timed(partial(model.fit, split.X, split.y))
        yield Fitted(name, done.value, seconds_of(done, args))


def calibrated(name: str, best: dict[str, Any], jobs: int) -> CalibratedClassifierCV:
    return CalibratedClassifierCV(SVC(**best), **CALIBRATIONS[name], cv=5, n_jobs=jobs)


def known_calibrations() -> list[str]:
    """Those that the installed scikit-learn has."""
    methods = CalibratedClassifierCV._parameter_constraints["method"][0].options
    return [name for name, options in CALIBRATIONS.items() if options["method"] in methods]


def svc(split: Split, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    warm_up(args.threads)
    grid = {"C": COSTS, "gamma": gammas(split.X)}
    search = GridSearchCV(SVC(), grid, cv=folds(seed), n_jobs=args.threads, refit=False)
    found = timed(lambda: search.fit(split.X, split.y))
    best = found.value.best_params_
    searched = seconds_of(found, args)
    for name in known_calibrations():
        model = calibrated(name, best, args.threads)
        done = timed(lambda model=model: model.fit(split.X, split.y))
        yield Fitted(name, done.value, searched + seconds_of(done, args))
    if "probability" in SVC().get_params():
        own = SVC(probability=True, random_state=seed, **best)
        done = timed(lambda: own.fit(split.X, split.y))
        yield Fitted(LIBSVM, done.value, searched + seconds_of(done, args))


def score_of(model: Pipeline, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Score of a candidate, and whether its solver ran out of iterations."""
    last = model[-1]
    unsettled = float(np.max(last.n_iter_) >= last.max_iter)
    return {"score": -log_loss(y, model.predict_proba(X), labels=model.classes_), "unsettled": unsettled}


def nystroem(split: Split, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    warm_up(args.threads)
    features = Nystroem(n_components=min(500, len(split.y) // 2), random_state=seed)
    pipeline = Pipeline([("features", features), ("model", LogisticRegression(max_iter=300))])
    grid = {"features__gamma": gammas(split.X), "model__C": COSTS}
    search = GridSearchCV(pipeline, grid, scoring=score_of, refit="score", cv=folds(seed), n_jobs=args.threads)
    done = timed(lambda: search.fit(split.X, split.y))
    results = done.value.cv_results_
    count = sum(int(results[f"split{k}_test_unsettled"].sum()) for k in range(3))
    best = done.value.best_estimator_
    yield Fitted(
        "Nystroem + LR", best, seconds_of(done, args), count + int(score_of(best, split.X, split.y)["unsettled"])
    )


def boosting(split: Split, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    done = timed(lambda: HistGradientBoostingClassifier(random_state=seed).fit(split.X, split.y))
    yield Fitted("HistGradientBoosting", done.value, seconds_of(done, args))


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
    yield Fitted(f"GP ({len(y)} rows)", done.value, seconds_of(done, args), count)


METHODS: dict[str, Callable[..., Iterator[Fitted]]] = {
    "ours": lspc,
    "svc": svc,
    "nystroem": nystroem,
    "boosting": boosting,
    "gp": gaussian_process,
}


def measured(split: Split, seed: int, fitted: Fitted, args: argparse.Namespace) -> dict:
    predict = timed_median(lambda: fitted.model.predict_proba(split.X_test), repeats=3)
    return {
        "data": split.name,
        "rows": len(split.y),
        "test_rows": len(split.y_test),
        "method": fitted.label,
        "run": seed,
        **quality(fitted.model, split.X_test, split.y_test),
        "seconds": fitted.seconds,
        "predict_seconds": seconds_of(predict, args),
        "unsettled": fitted.unsettled,
    }


def run(args: argparse.Namespace) -> Iterator[dict]:
    rows = 300 if args.quick else None
    for seed in range(args.runs):
        for _, split in available(args.sets, lambda name, s=seed: peer_split(name, args.data, s, rows)):
            for method in args.methods:
                for fitted in METHODS[method](split, seed, args):
                    found = measured(split, seed, fitted, args)
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
    variants = [m for m in (*CALIBRATIONS, LIBSVM) if any(f["method"] == m for f in found)]
    out: dict[str, Any] = {"sets": len(sets)}
    for key in ("log_loss", "ece"):
        wins = {m: [mean(found, s, OURS, key) <= mean(found, s, m, key) for s in sets] for m in variants}
        out[key] = {m: sum(w) for m, w in wins.items()}
        out[key]["all of them"] = sum(map(all, zip(*wins.values(), strict=True)))
    total = {m: sum(mean(found, s, m, "seconds") for s in sets) for m in [OURS, *variants]}
    out["total_seconds"] = total
    out["ratio"] = {m: total[m] / total[OURS] for m in variants}
    return out


def thread_safety(fits: int = 8, threads: int = 4) -> list[dict]:
    """How many of several fits at the same time differ from a fit alone."""
    split = peer_split("digits", None, 0)
    makers: dict[str, Callable[[], Any]] = {OURS: lambda: LSPC(random_state=0)}
    if "probability" in SVC().get_params():
        makers[LIBSVM] = lambda: SVC(probability=True, random_state=0)
    makers |= {name: partial(calibrated, name, {}, None) for name in known_calibrations()}
    found = []
    for name, make in makers.items():
        alone = make().fit(split.X, split.y).predict_proba(split.X_test)
        with ThreadPoolExecutor(threads) as pool:
            jobs = [pool.submit(lambda: make().fit(split.X, split.y)) for _ in range(fits)]  # noqa: B023
            together = [job.result().predict_proba(split.X_test) for job in jobs]
        far = [float(np.abs(P - alone).max()) for P in together]
        found.append({"method": name, "fits": fits, "different": sum(d > 1e-9 for d in far), "largest": max(far)})
    return found


def report_summary(out: dict[str, Any]) -> None:
    names = [*out["ratio"], "all of them"]
    total, ratio = out["total_seconds"], out["ratio"]
    wins = {m: [f"{out[k][m]} of {out['sets']}" for k in ("log_loss", "ece")] for m in names}
    rows = [[m, *wins[m], total.get(m), ratio.get(m)] for m in names]
    header = ["LSPC() at or below", "log_loss", "ece", "seconds in all", "times LSPC()"]
    print_table(f"Summary; LSPC() takes {out['total_seconds'][OURS]:.3g} s in all", header, rows)


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.calibrated_peers", __doc__, threads=1, runs=3)
    add_options(p, SETS, list(METHODS))
    p.add_argument("--gp-rows", type=int, default=400, help="cap for the Gaussian process; 0 leaves it out")
    args = parse(p, argv)
    if args.quick:
        args.runs, args.gp_rows = 1, min(args.gp_rows, 60)
    threads = earlier(args).get("threads", [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message=".*probability.*", category=FutureWarning)
        found = gathered(args, run(args))
    report(found)
    out = summary(found)
    report_summary(out)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*probability.*", category=FutureWarning)
        wanted = not args.quick and {"digits", "svc"} <= {*args.sets, *args.methods}
        threads = thread_safety() if wanted else threads
    print_table(
        "Fits in four threads", ["method", "fits", "different", "largest"], [list(t.values()) for t in threads]
    )
    write_json(args, {"summary": out, "threads": threads, "figures": found})


if __name__ == "__main__":
    main()
