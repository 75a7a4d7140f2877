"""Regression with tasks: quality and time of MultiTaskLSSVR with defaults, compared with the usual methods.

MultiTaskLSSVR()          defaults: search and fit by held-out predictions; also with kernel="linear"
RidgeCV + task            ridge regression on inputs and one-hot tasks, by leave-one-out: the reference
SVR, KernelRidge + task   RBF on the same columns, 3 x 3 values by GridSearchCV with 3 folds
.. per task               RidgeCV, or KernelRidge by GridSearchCV with 3 folds, for each task; a task with fewer than
                          6 rows gets its mean, (sum + mean of all) / (rows + 1)
HistGradientBoosting      defaults, the task as a category
truth                     the true function, if it is known

school        every fifth school, about 2,300 rows; test rows of the published splits
school-all    all 139 schools, 11,472 rows; without the methods whose cost grows with the cube of the rows
diabetes      scikit-learn's, tasks are sex and third of the age; half of the rows
friedman      Friedman's first function, 10 tasks of 25 rows that differ in the intercept and the linear part
smooth-R      make_related_tasks: 15 tasks of 20 rows, 3 features, relatedness R; "level" adds intercepts
small         20 tasks of 3 to 8 rows, smooth, relatedness 0.8, with intercepts
two-groups    smooth, two groups of tasks that are unrelated to each other
equal-slopes  12 tasks of 15 rows, 8 features, the same linear function with an intercept for each task
slopes-R      linear functions of relatedness R, and intercepts; slopes-0 has larger tasks, of 60 rows
no-tasks      one linear function; the task has no effect
noise         targets independent of the inputs

R^2 of all test rows, mean over draws; seconds with all searches. Inputs are standardised for all; with --raw, our
models get the columns as they are. BLAS and OpenMP are
capped at --threads; scikit-learn tries --threads candidates at a time on one thread each.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import SVR

from benchmarks._common import parse, parser, print_table, write_json
from benchmarks._pieces import add_options, gathered, seconds_of
from benchmarks.calibrated_peers import warm_up
from leastwise import MultiTaskLSSVR
from leastwise.datasets import make_related_tasks
from papers._common.data import available, load_set, median_distance, scale_of, standardise
from papers._common.timing import timed

Array = np.ndarray

OURS, LINEAR_ONE, RIDGE = "MultiTaskLSSVR()", "MultiTaskLSSVR(kernel='linear')", "RidgeCV + task"
#: Methods that choose the scale of the columns themselves.
OWN = (OURS, LINEAR_ONE)
RIDGES = np.logspace(-3, 5, 17)
#: Largest number of rows for methods whose cost grows with the cube of the rows.
CUBIC = 5000
#: A task with fewer rows than this is predicted by its mean.
FEWEST = 6
TEST_ROWS = 100

# ------------------------------------------------------------------------ data


@dataclass(frozen=True)
class Rows:
    """Rows of tasks 0, 1, ..."""

    X: Array
    y: Array
    task: Array


@dataclass(frozen=True)
class Draw:
    """Training and test rows, and the true means of the test rows if they are known."""

    name: str
    train: Rows
    test: Rows
    truth: Array | None = None

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return int(self.train.task.max()) + 1


def divided(name: str, X: Array, y: Array, task: Array, is_train: Array, truth: Array | None = None) -> Draw:
    """Rows as they are; tasks are renumbered."""
    task = np.unique(task, return_inverse=True)[1]
    train, test = (Rows(X[part], y[part], task[part]) for part in (is_train, ~is_train))
    return Draw(name, train, test, None if truth is None else truth[~is_train])


def standardised(data: Draw) -> Draw:
    """The same rows with inputs of zero mean and unit variance in the training rows."""
    scale = scale_of(data.train.X)
    train, test = (replace(rows, X=standardise(rows.X, scale)) for rows in (data.train, data.test))
    return replace(data, train=train, test=test)


def school(step: int, folder: str | None, seed: int) -> Draw:
    data = load_set("school", folder)
    some = np.isin(data.task, np.unique(data.task)[::step])
    X, y = data.X[some].astype(float), data.y[some].astype(float)
    return divided("", X, y, data.task[some], data.splits[seed % len(data.splits)][some])


def diabetes(folder: str | None, seed: int) -> Draw:
    X, y = load_diabetes(return_X_y=True)
    third = np.searchsorted(np.quantile(X[:, 0], (1 / 3, 2 / 3)), X[:, 0])
    rng = np.random.default_rng([2013, seed])
    return divided("", X, y, 3 * (X[:, 1] > 0) + third, rng.permutation(len(y)) % 2 == 0)


def friedman(folder: str | None, seed: int) -> Draw:
    """Tasks add an intercept and a linear function of the first two features."""
    n_tasks, rows = 10, 25
    n = n_tasks * (rows + TEST_ROWS)
    X, mean = make_friedman1(n, n_features=8, noise=0.0, random_state=seed)
    rng, task = np.random.default_rng([2013, seed]), np.arange(n) % n_tasks
    level, slope = 3 * rng.standard_normal(n_tasks), 3 * rng.standard_normal((n_tasks, 2))
    truth = mean + level[task] + np.sum(slope[task] * X[:, :2], axis=1)
    return divided("", X, truth + rng.standard_normal(n), task, np.arange(n) < n_tasks * rows, truth)


def related(rows: int | tuple[int, int], folder: str | None, seed: int, n_tasks: int = 15, **options: Any) -> Draw:
    """Tasks of ``rows`` rows, or of numbers between two, by ``make_related_tasks``."""
    rng = np.random.default_rng([2013, seed])
    counts = np.full(n_tasks, rows) if isinstance(rows, int) else rng.integers(rows[0], rows[1] + 1, n_tasks)
    data = make_related_tasks(n_tasks, counts + TEST_ROWS, kind="regression", random_state=seed, **options)
    place = np.concatenate([np.arange(c + TEST_ROWS) for c in counts])
    return divided("", data.X, data.y, data.task, place < counts[data.task], data.mean(data.X, data.task))


def noise(folder: str | None, seed: int) -> Draw:
    rng = np.random.default_rng([2013, seed])
    n = 12 * (15 + TEST_ROWS)
    X, y, task = rng.standard_normal((n, 5)), rng.standard_normal(n), np.arange(n) % 12
    return divided("", X, y, task, np.arange(n) < 12 * 15, np.zeros(n))


LINEAR = {"function": "linear", "n_features": 8, "noise": 0.5, "n_tasks": 12}
SMOOTH = {"n_features": 3, "noise": 0.3}
SETS: dict[str, Callable[[str | None, int], Draw]] = {
    "school": partial(school, 5),
    "school-all": partial(school, 1),
    "diabetes": diabetes,
    "friedman": friedman,
    "smooth-0.9": partial(related, 20, relatedness=0.9, **SMOOTH),
    "smooth-0.5": partial(related, 20, relatedness=0.5, **SMOOTH),
    "smooth-0.8-level": partial(related, 20, relatedness=0.8, offset=1.0, **SMOOTH),
    "smooth-0": partial(related, 40, relatedness=0.0, **SMOOTH),
    "small": partial(related, (3, 8), relatedness=0.8, offset=1.0, **{**SMOOTH, "n_tasks": 20}),
    "two-groups": partial(related, 20, relatedness=0.9, n_groups=2, **SMOOTH),
    "equal-slopes": partial(related, 15, relatedness=1.0, offset=1.0, **LINEAR),
    "slopes-0.8": partial(related, 15, relatedness=0.8, offset=1.0, **LINEAR),
    "slopes-0.3": partial(related, 15, relatedness=0.3, offset=1.0, **LINEAR),
    "slopes-0": partial(related, 60, relatedness=0.0, offset=1.0, **LINEAR),
    "no-tasks": partial(related, 15, relatedness=1.0, **LINEAR),
    "noise": noise,
}

# --------------------------------------------------------------------- methods

Predict = Callable[[Array, Array], Array]
Method = Callable[[Draw, int, int], Predict]


def tied(data: Draw, seed: int, jobs: int, **options: Any) -> Predict:
    train = data.train
    model = MultiTaskLSSVR(random_state=seed, **options).fit(train.X, train.y, tasks=train.task)
    return lambda X, task: model.predict(X, tasks=task)


def with_tasks(fit: Callable[[Array, Array, int, int], Any], data: Draw, seed: int, jobs: int) -> Predict:
    """A model of inputs and one-hot tasks."""
    one, train = np.eye(data.n_tasks), data.train
    model = fit(np.hstack([train.X, one[train.task]]), train.y, seed, jobs)
    return lambda X, task: model.predict(np.hstack([X, one[task]]))


def each_task(fit: Callable[[Array, Array, int, int], Any], data: Draw, seed: int, jobs: int) -> Predict:
    """A model for every task that has enough rows."""
    train, models = data.train, {}
    mean = float(train.y.mean())
    for t in range(data.n_tasks):
        X, y = train.X[train.task == t], train.y[train.task == t]
        models[t] = fit(X, y, seed, jobs) if len(y) >= FEWEST else (y.sum() + mean) / (len(y) + 1)

    def predict(X: Array, task: Array) -> Array:
        f = np.empty(len(X))
        for t, model in models.items():
            part = task == t
            if part.any():
                f[part] = model.predict(X[part]) if hasattr(model, "predict") else model
        return f

    return predict


def ridge(X: Array, y: Array, seed: int, jobs: int) -> Any:
    return RidgeCV(RIDGES).fit(X, y)


def searched(model: Any, grid: dict, X: Array, y: Array, seed: int, jobs: int) -> Any:
    """By cross-validation on centred targets of unit variance."""
    folds = KFold(3, shuffle=True, random_state=seed)
    mean, scale = float(y.mean()), float(y.std()) or 1.0
    return Scaled(GridSearchCV(model, grid, cv=folds, n_jobs=jobs).fit(X, (y - mean) / scale), mean, scale)


@dataclass(frozen=True)
class Scaled:
    """A model of standardised targets."""

    model: Any
    mean: float
    scale: float

    def predict(self, X: Array) -> Array:
        """In the units of the targets."""
        return self.mean + self.scale * self.model.predict(X)


def widths(X: Array) -> list[float]:
    """1 / (2 sigma^2) for half, one and two medians of the distance."""
    length = median_distance(X) or 1.0
    return [0.5 / (c * length) ** 2 for c in (0.5, 1.0, 2.0)]


def svr(X: Array, y: Array, seed: int, jobs: int) -> Any:
    return searched(SVR(), {"C": (0.1, 1.0, 10.0), "gamma": widths(X)}, X, y, seed, jobs)


def kernel_ridge(X: Array, y: Array, seed: int, jobs: int) -> Any:
    grid = {"alpha": (0.01, 0.1, 1.0), "gamma": widths(X)}
    return searched(KernelRidge(kernel="rbf"), grid, X, y, seed, jobs)


def boosting(data: Draw, seed: int, jobs: int) -> Predict:
    train = data.train
    category = [train.X.shape[1]] if data.n_tasks <= 255 else None
    model = HistGradientBoostingRegressor(random_state=seed, categorical_features=category)
    model.fit(np.column_stack([train.X, train.task]), train.y)
    return lambda X, task: model.predict(np.column_stack([X, task]))


#: Methods, and whether their cost grows with the cube of the rows.
METHODS: dict[str, tuple[Method, bool]] = {
    OURS: (tied, False),  # with many rows: iterations, or the linear part alone
    LINEAR_ONE: (partial(tied, kernel="linear"), False),
    RIDGE: (partial(with_tasks, ridge), False),
    "SVR + task": (partial(with_tasks, svr), True),
    "KernelRidge + task": (partial(with_tasks, kernel_ridge), True),
    "RidgeCV per task": (partial(each_task, ridge), False),
    "KernelRidge per task": (partial(each_task, kernel_ridge), False),
    "HistGradientBoosting + task": (boosting, False),
}

# ---------------------------------------------------------------------- figures


def measured(data: Draw, name: str, method: Method, seed: int, args: argparse.Namespace) -> dict:
    done = timed(partial(method, data, seed, args.threads))
    test = data.test
    predicted = timed(partial(done.value, test.X, test.task))
    score = float(r2_score(test.y, predicted.value))
    times = {"seconds": seconds_of(done, args), "predict_seconds": seconds_of(predicted, args)}
    return {"method": name, "r2": score, **times}


def run(args: argparse.Namespace) -> Iterator[dict]:
    for seed in range(args.runs):
        for name, data in available(args.sets, lambda name, s=seed: SETS[name](args.data, s)):
            about = {"data": name, "tasks": data.n_tasks, "rows": len(data.train.y), "run": seed}
            scaled = standardised(data)
            for label in args.methods:
                method, cubic = METHODS[label]
                given = data if args.raw and label in OWN else scaled
                if cubic and about["rows"] > CUBIC:
                    continue
                warm_up(args.threads)
                found = measured(given, label, method, seed, args)
                print(f"{name}, run {seed}, {label}: {found['r2']:.4f}, {found['seconds']:.2f} s", flush=True)
                yield {**about, **found}
            if data.truth is not None:
                yield {**about, "method": "truth", "r2": float(r2_score(data.test.y, data.truth)), "seconds": 0.0}


def by_set(found: list[dict], key: str) -> dict[tuple[str, str], Array]:
    """Values of all draws by set and method."""
    groups: dict[tuple[str, str], list[float]] = {}
    for f in found:
        groups.setdefault((f["data"], f["method"]), []).append(f[key])
    return {k: np.array(v) for k, v in groups.items()}


def standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def report(found: list[dict]) -> list[dict]:
    sets = list(dict.fromkeys(f["data"] for f in found))
    methods = [*METHODS, "truth"]
    scores, seconds = by_set(found, "r2"), by_set(found, "seconds")
    for title, table, digits in (("R^2", scores, 3), ("Seconds", seconds, 2)):
        rows = []
        for name in sets:
            first = next(f for f in found if f["data"] == name)
            cells = [table.get((name, m)) for m in methods if not (m == "truth" and table is seconds)]
            shown = ["-" if c is None else figure(c, digits, table is scores) for c in cells]
            rows.append([name, first["tasks"], first["rows"], *shown])
        names = [m.replace("MultiTaskLSSVR(kernel='linear')", "linear") for m in methods]
        print_table(title, ["data", "tasks", "rows", *names[: len(rows[0]) - 3]], rows)
    return losses(sets, scores)


def figure(values: Array, digits: int, error: bool) -> str:
    mean = f"{values.mean():.{digits}f}"
    return f"{mean}±{standard_error(values):.{digits}f}" if error and len(values) > 1 else mean


def losses(sets: Sequence[str], scores: dict[tuple[str, str], Array]) -> list[dict]:
    """R^2 of ridge + task minus that of the default, in percent of the variance; below 0 is a gain."""
    found = []
    for name in sets:
        if (name, OURS) in scores:
            gap = 100 * (scores[name, RIDGE] - scores[name, OURS])
            others = [scores[k] for k in scores if k[0] == name and k[1] not in (OURS, "truth")]
            best = 100 * (max(float(s.mean()) for s in others) - float(scores[name, OURS].mean()))
            found.append(
                {"data": name, "loss": float(gap.mean()), "standard_error": standard_error(gap), "best": best}
            )
    header = ["data", f"{RIDGE} minus {OURS}", "standard error", f"best of the others minus {OURS}"]
    rows = [[f["data"], *(f"{f[k]:.2f}" for k in ("loss", "standard_error", "best"))] for f in found]
    print_table("Loss of the default, % of the variance", header, rows)
    if found:
        worst = max(found, key=lambda f: f["loss"])
        said = f"{worst['loss']:.2f} ± {worst['standard_error']:.2f} % of the variance, on {worst['data']}"
        print(f"largest loss of {OURS} against {RIDGE}: {said}", flush=True)
    return found


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.lssvm_peers", __doc__, threads=1, runs=5)
    p.add_argument("--raw", action="store_true", help="our models get the columns as they are")
    add_options(p, list(SETS), list(METHODS))
    args = parse(p, argv)
    if args.quick:
        args.runs, args.sets = 1, [name for name in args.sets if not name.startswith("school")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = gathered(args, run(args))
    worst = report(found)
    write_json(args, {"losses": worst, "figures": found})


if __name__ == "__main__":
    main()
