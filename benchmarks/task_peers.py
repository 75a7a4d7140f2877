"""Many small related tasks: quality and time of one multi-task model, compared with the usual methods.

MultiTaskLSPC()           defaults: search, fit and calibration by held-out scores; also with a centre for every
                          eighth row, and with similarities of the tasks learned
MultiTaskKLR()            MultiTaskKernelLogisticRegression with defaults
... per task              one scikit-learn model for each task: LogisticRegressionCV by log-loss; SVC by GridSearchCV
                          (3 folds), then CalibratedClassifierCV(method="sigmoid", ensemble=False, cv=3). A task with
                          fewer than 3 rows of a class gets its class shares, (rows + share in all tasks) / (all + 1)
... pooled                one model of all rows without the task: the same two, and
                          HistGradientBoosting with defaults
... + task                the same with the task: one-hot columns, or a category for HistGradientBoosting
GPyTorch multi-task GP    exact GP with RBF x IndexKernel (rank 2) on the targets of its
                          DirichletClassificationLikelihood, Adam on the marginal likelihood for --gp-steps steps,
                          probabilities from 500 draws of the latent scores; by Cholesky in double precision
                          throughout. With its default alpha_epsilon, 0.01, and with 0.1, which suits rare classes
                          better. Needs the extra "gp"

related-R     make_related_tasks: 20 tasks of 40 rows, 2 features, relatedness R; 200 test rows a task, truth known
landmine      29 minefields, 40 rows of each, stratified by class; the rest are for testing
digits        digits of scikit-learn; 24 tasks: a digit with a closed loop (0, 6, 8, 9) against one without
              (1, 2, 3, 4, 5, 7); 6 images of either; half of all images are for testing

Log-loss and AUC are means over tasks, the calibration error is that of all test rows. All seconds include the search.
All methods get the same input and the same cores: BLAS, OpenMP and PyTorch are capped at --threads; scikit-learn fits
--threads tasks or candidates at a time on one thread each.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from benchmarks._common import in_proportion, parse, parser, print_table, write_json
from benchmarks._pieces import add_options, gathered, seconds_of
from benchmarks.calibrated_peers import COSTS, gammas, warm_up
from leastwise import MultiTaskKernelLogisticRegression, MultiTaskLSPC
from leastwise.datasets import make_related_tasks
from leastwise.metrics import expected_calibration_error, task_auc, task_log_loss
from papers._common.data import available, load_set, scale_of, standardise
from papers._common.output import spread
from papers._common.timing import settled, timed

Array = np.ndarray

SETS = ("related-0.9", "related-0.6", "related-0.2", "landmine", "digits")
MEASURES = ("log_loss", "auc", "ece")
OURS = "MultiTaskLSPC()"
LOOP, NO_LOOP, PICTURES = (0, 6, 8, 9), (1, 2, 3, 4, 5, 7), 6
#: A task with fewer rows of a class than this gets its class shares.
FEWEST = 3
GP_RANK, GP_RATE, GP_DRAWS, GP_ROWS = 2, 0.1, 500, 1000
GP_EPSILONS = (0.01, 0.1)

# ------------------------------------------------------------------------ data


@dataclass(frozen=True)
class Rows:
    """Rows of tasks 0, 1, ... with classes 0 and 1."""

    X: Array
    y: Array
    task: Array


@dataclass(frozen=True)
class Draw:
    """Training and test rows, and the true probabilities of the test rows if they are known."""

    name: str
    train: Rows
    test: Rows
    truth: Array | None = None

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return int(self.train.task.max()) + 1


def draw(name: str, folder: str | None, seed: int, quick: bool) -> Draw:
    kind, _, relatedness = name.partition("-")
    if kind == "related":
        return related(name, float(relatedness), seed, 5 if quick else 20)
    return landmine(folder, seed, 5 if quick else 29) if kind == "landmine" else digits(seed, 4 if quick else 24)


def related(name: str, relatedness: float, seed: int, n_tasks: int, rows: int = 40, test_rows: int = 200) -> Draw:
    data = make_related_tasks(n_tasks, rows + test_rows, relatedness=relatedness, random_state=seed)
    is_test = np.arange(len(data.y)) % (rows + test_rows) >= rows
    train, test = (Rows(data.X[part], data.y[part], data.task[part]) for part in (~is_test, is_test))
    return Draw(name, train, test, data.posterior(test.X, test.task))


def landmine(folder: str | None, seed: int, n_tasks: int, rows: int = 40) -> Draw:
    data = load_set("landmine", folder)
    X, y, task = np.asarray(data.X, dtype=float), np.asarray(data.y), np.asarray(data.task)
    rng = np.random.default_rng([2011, seed])
    train = np.concatenate([in_proportion(y, np.flatnonzero(task == t), rows, rng) for t in range(n_tasks)])
    test = np.setdiff1d(np.flatnonzero(task < n_tasks), train)
    X = standardise(X, scale_of(X[train]))
    return Draw("landmine", *(Rows(X[part], y[part].astype(int), task[part]) for part in (train, test)))


def digits(seed: int, n_tasks: int) -> Draw:
    """An image may occur in several tasks, but never for training in one and for testing in another."""
    X, digit = load_digits(return_X_y=True)
    rng = np.random.default_rng([2011, seed])
    kept = in_proportion(digit, np.arange(len(digit)), len(digit) // 2, rng)
    rest = np.setdiff1d(np.arange(len(digit)), kept)
    pairs = list(itertools.product(NO_LOOP, LOOP))[:n_tasks]

    def rows(pool: Array, most: int | None) -> Rows:
        chosen = [[rng.permutation(pool[digit[pool] == d])[:most] for d in pair] for pair in pairs]
        y = np.concatenate([np.repeat((0, 1), [len(part) for part in pair]) for pair in chosen])
        task = np.repeat(np.arange(len(pairs)), [sum(map(len, pair)) for pair in chosen])
        return Rows(X[np.concatenate([part for pair in chosen for part in pair])] / 16, y, task)

    return Draw("digits", rows(kept, PICTURES), rows(rest, None))


# --------------------------------------------------------------------- methods


@dataclass(frozen=True)
class Fitted:
    """A fitted model: a function from rows and tasks to probabilities, and the seconds of the fit."""

    label: str
    proba: Callable[[Array, Array], Array]
    seconds: float


Method = Callable[[Draw, int, argparse.Namespace], Iterator[Fitted]]


def tied(data: Draw, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    """Models of this library."""
    train = data.train
    models = {
        OURS: MultiTaskLSPC(random_state=seed),
        "MultiTaskLSPC(n_centers=n/8)": MultiTaskLSPC(n_centers=len(train.y) // 8, random_state=seed),
        "MultiTaskLSPC(similarity='learned')": MultiTaskLSPC(similarity="learned", random_state=seed),
        "MultiTaskKLR()": MultiTaskKernelLogisticRegression(random_state=seed),
    }
    for label, model in models.items():
        done = timed(partial(model.fit, train.X, train.y, tasks=train.task))
        yield Fitted(label, lambda X, task, m=done.value: m.predict_proba(X, tasks=task), seconds_of(done, args))


def logistic(X: Array, y: Array, folds: StratifiedKFold, jobs: int | None = None) -> Any:
    options = {"use_legacy_attributes": False, "l1_ratios": (0,)}  # from scikit-learn 1.8
    known = LogisticRegressionCV().get_params()
    chosen = {k: v for k, v in options.items() if "use_legacy_attributes" in known}
    return LogisticRegressionCV(cv=folds, scoring="neg_log_loss", max_iter=1000, n_jobs=jobs, **chosen).fit(X, y)


def platt_svc(X: Array, y: Array, folds: StratifiedKFold, jobs: int | None = None) -> Any:
    search = GridSearchCV(SVC(), {"C": COSTS, "gamma": gammas(X)}, cv=folds, refit=False, n_jobs=jobs).fit(X, y)
    model = SVC(**search.best_params_)
    return CalibratedClassifierCV(model, method="sigmoid", ensemble=False, cv=folds, n_jobs=jobs).fit(X, y)


MODELS: dict[str, Callable[..., Any]] = {"LogisticRegression": logistic, "SVC + CalibratedCV": platt_svc}


def folds_of(seed: int, k: int = 3) -> StratifiedKFold:
    return StratifiedKFold(k, shuffle=True, random_state=seed)


def one_task(fit: Callable[..., Any], X: Array, y: Array, seed: int) -> Any:
    """A model of one task, or None if it has too few rows of a class."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit(X, y, folds_of(seed)) if np.bincount(y, minlength=2).min() >= FEWEST else None


def task_shares(y: Array, overall: float) -> Array:
    share = (np.sum(y == 1) + overall) / (len(y) + 1)
    return np.array([1 - share, share])


def alone(data: Draw, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    """One model for each task."""
    train, parts = data.train, [data.train.task == t for t in range(data.n_tasks)]
    shares = [task_shares(train.y[part], float(train.y.mean())) for part in parts]
    for name, fit in MODELS.items():
        warm_up(args.threads)
        jobs = [delayed(one_task)(fit, train.X[part], train.y[part], seed) for part in parts]
        done = timed(lambda jobs=jobs: Parallel(n_jobs=args.threads)(jobs))
        yield Fitted(f"{name} per task", partial(proba_by_task, done.value, shares), seconds_of(done, args))


def proba_by_task(models: list[Any], shares: list[Array], X: Array, task: Array) -> Array:
    P = np.empty((len(X), 2))
    for t, model in enumerate(models):
        part = task == t
        P[part] = shares[t] if model is None or not part.any() else model.predict_proba(X[part])
    return P


def with_one_hot(n_tasks: int, X: Array, task: Array) -> Array:
    return np.hstack([X, np.eye(n_tasks)[task]])


def with_code(X: Array, task: Array) -> Array:
    return np.column_stack([X, task])


def without(X: Array, task: Array) -> Array:
    return X


def pooled(data: Draw, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    """One model of all rows, without and with the task."""
    train = data.train
    one_hot = partial(with_one_hot, data.n_tasks)
    for name, fit in MODELS.items():
        for suffix, see in (("pooled", without), ("+ task", one_hot)):
            warm_up(args.threads)
            A = see(train.X, train.task)
            done = timed(partial(fit, A, train.y, folds_of(seed), args.threads))
            yield Fitted(f"{name} {suffix}", partial(seen_proba, done.value, see), seconds_of(done, args))
    boosting = HistGradientBoostingClassifier(random_state=seed)
    for suffix, see, last in (("pooled", without, None), ("+ task", with_code, [train.X.shape[1]])):
        model = clone(boosting).set_params(categorical_features=last)
        done = timed(partial(model.fit, see(train.X, train.task), train.y))
        yield Fitted(f"HistGradientBoosting {suffix}", partial(seen_proba, done.value, see), seconds_of(done, args))


def seen_proba(model: Any, see: Callable[[Array, Array], Array], X: Array, task: Array) -> Array:
    return model.predict_proba(see(X, task))


def reference(data: Draw, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    """Reference predictions: the class shares and the truth."""
    model = DummyClassifier().fit(data.train.X, data.train.y)
    yield Fitted("class shares", lambda X, task: model.predict_proba(X), 0.0)
    if data.truth is not None:
        yield Fitted("truth", lambda X, task: data.truth, 0.0)


# ------------------------------------------------------------------- GPyTorch


def gaussian_process(data: Draw, seed: int, args: argparse.Namespace) -> Iterator[Fitted]:
    if not args.gp_steps:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import gpytorch  # noqa: F401
    except ImportError:
        if seed == 0:
            print("skipped: the multi-task GP needs GPyTorch: pip install 'leastwise[gp]'", flush=True)
        return
    fit_gp(related("", 0.5, 0, 2, 5, 1), seed, args.threads, 1)  # warm-up, so that compilation is not timed
    for epsilon in GP_EPSILONS:
        done = timed(partial(fit_gp, data, seed, args.threads, args.gp_steps, epsilon))
        yield Fitted(f"GPyTorch multi-task GP, {epsilon}", done.value, seconds_of(done, args))


def gp_model(x: Any, task: Any, likelihood: Any, n_tasks: int) -> Any:
    """Two latent functions, one for each class, as a batch; tasks coupled by a matrix of low rank plus a diagonal."""
    import gpytorch
    import torch
    from gpytorch import kernels

    batch = torch.Size((2,))

    class HadamardGP(gpytorch.models.ExactGP):
        """``k((x, t), (x', t')) = RBF(x, x') B[t, t']``."""

        def __init__(self) -> None:
            super().__init__((x, task), likelihood.transformed_targets, likelihood)
            self.mean = gpytorch.means.ConstantMean(batch_shape=batch)
            self.inputs = kernels.RBFKernel(batch_shape=batch)
            self.tasks = kernels.IndexKernel(num_tasks=n_tasks, rank=min(GP_RANK, n_tasks), batch_shape=batch)

        def forward(self, x: Any, task: Any) -> Any:
            """Prior of rows of some tasks."""
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.inputs(x).mul(self.tasks(task)))

    return HadamardGP().double()


def fit_gp(data: Draw, seed: int, threads: int, steps: int, epsilon: float = 0.01) -> Callable[..., Array]:
    import gpytorch
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    train = data.train
    x, task, y = torch.from_numpy(train.X), torch.from_numpy(train.task)[:, None], torch.from_numpy(train.y)
    likelihood = gpytorch.likelihoods.DirichletClassificationLikelihood(
        y, alpha_epsilon=epsilon, learn_additional_noise=True, dtype=torch.float64
    ).double()
    model = gp_model(x, task, likelihood, data.n_tasks)
    model.inputs.lengthscale = float(np.sqrt(x.shape[1]))
    climb(model, likelihood, steps)
    return partial(gp_proba, model.eval(), likelihood.eval(), seed)


def climb(model: Any, likelihood: Any, steps: int) -> None:
    """Adam on the marginal likelihood, by Cholesky for any number of rows."""
    import gpytorch
    import torch

    model.train()
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimiser = torch.optim.Adam(model.parameters(), lr=GP_RATE)
    with gpytorch.settings.max_cholesky_size(10**6):
        for _ in range(steps):
            optimiser.zero_grad()
            loss = -objective(model(*model.train_inputs), likelihood.transformed_targets, *model.train_inputs).sum()
            loss.backward()
            optimiser.step()


def gp_proba(model: Any, likelihood: Any, seed: int, X: Array, task: Array) -> Array:
    """Mean of the softmax over draws of the latent scores, independently for each row."""
    import gpytorch
    import torch

    rng, P = np.random.default_rng(seed), np.empty((len(X), 2))
    with torch.no_grad(), gpytorch.settings.max_cholesky_size(10**6):
        for first in range(0, len(X), GP_ROWS):
            part = slice(first, first + GP_ROWS)
            latent = model(torch.from_numpy(X[part]), torch.from_numpy(task[part])[:, None])
            mean, deviation = latent.mean.numpy(), np.sqrt(latent.variance.numpy())
            F = mean + deviation * rng.standard_normal((GP_DRAWS, *mean.shape))
            P[part, 1] = np.mean(1 / (1 + np.exp(F[:, 0] - F[:, 1])), axis=0)
    P[:, 0] = 1 - P[:, 1]
    return P


# ---------------------------------------------------------------------- figures

METHODS: dict[str, Method] = {
    "ours": tied,
    "per-task": alone,
    "pooled": pooled,
    "gp": gaussian_process,
    "reference": reference,
}


def measured(data: Draw, seed: int, fitted: Fitted, unsettled: int, args: argparse.Namespace) -> dict:
    test = data.test
    predicted = timed(partial(fitted.proba, test.X, test.task))
    P = np.asarray(predicted.value, dtype=float)
    return {
        "data": data.name,
        "tasks": data.n_tasks,
        "rows": len(data.train.y),
        "test_rows": len(test.y),
        "method": fitted.label,
        "run": seed,
        "log_loss": task_log_loss(test.y, P, test.task),
        "auc": task_auc(test.y, P[:, 1], test.task),
        "ece": expected_calibration_error(test.y, P, n_bins=15, strategy="mass"),
        "seconds": fitted.seconds,
        "predict_seconds": seconds_of(predicted, args),
        "unsettled": unsettled,
    }


def with_warnings(method: Method, *case: Any) -> Iterator[tuple[Fitted, int]]:
    """Fitted models of a method, each with the number of its convergence warnings in this process."""
    steps = method(*case)
    while True:
        fitted, count = settled(lambda: next(steps, None))
        if fitted is None:
            return
        yield fitted, count


def run(args: argparse.Namespace) -> Iterator[dict]:
    for seed in range(args.runs):
        for _, data in available(args.sets, lambda name, s=seed: draw(name, args.data, s, args.quick)):
            for method in args.methods:
                for fitted, count in with_warnings(METHODS[method], data, seed, args):
                    found = measured(data, seed, fitted, count, args)
                    loss = f"log-loss {found['log_loss']:.4f}"
                    print(f"{data.name}, run {seed}, {fitted.label}: {loss}, {fitted.seconds:.2f} s", flush=True)
                    yield found


def report(found: list[dict]) -> None:
    for name in dict.fromkeys(f["data"] for f in found):
        here = [f for f in found if f["data"] == name]
        ours = np.mean([f["seconds"] for f in here if f["method"] == OURS])
        lines = []
        for method in dict.fromkeys(f["method"] for f in here):
            runs = [f for f in here if f["method"] == method]
            fit, predict = (float(np.mean([f[k] for f in runs])) for k in ("seconds", "predict_seconds"))
            ratio = fit / ours if fit else None
            quality = (spread([f[k] for f in runs]) for k in MEASURES)
            lines.append([method, *quality, fit or None, ratio, predict, sum(f["unsettled"] for f in runs)])
        first = here[0]
        title = f"{name}: {first['tasks']} tasks, {first['rows']} training rows, {first['test_rows']} test rows"
        header = ["method", *MEASURES, "seconds", f"times {OURS}", "predict s", "unsettled"]
        print_table(title, header, lines)


def ranks(found: list[dict]) -> list[list]:
    """Mean over data sets of the rank by log-loss, of the methods that were tried on all."""
    sets = list(dict.fromkeys(f["data"] for f in found))
    losses: dict[str, dict[str, list[float]]] = {}
    for f in found:
        if f["method"] not in ("truth", "class shares"):
            losses.setdefault(f["method"], {}).setdefault(f["data"], []).append(f["log_loss"])
    table = {name: [np.mean(v[s]) for s in sets] for name, v in losses.items() if set(v) == set(sets)}
    order = np.argsort(np.argsort(np.array(list(table.values())), axis=0), axis=0) + 1
    rows = [[name, *place, float(np.mean(place))] for name, place in zip(table, order.tolist(), strict=True)]
    print_table("Rank by log-loss", ["method", *sets, "mean"], sorted(rows, key=lambda row: row[-1]))
    return rows


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.task_peers", __doc__, threads=1, runs=3)
    add_options(p, SETS, list(METHODS))
    p.add_argument("--gp-steps", type=int, default=100, help="steps of Adam; 0 leaves GPyTorch out (default 100)")
    args = parse(p, argv)
    if args.quick:
        args.runs, args.gp_steps = 1, min(args.gp_steps, 5)
    found = gathered(args, run(args))
    report(found)
    places = ranks(found)
    settings = {"gp_steps": args.gp_steps, "gp_rank": GP_RANK, "gp_rate": GP_RATE, "gp_epsilons": GP_EPSILONS}
    write_json(args, {"settings": settings, "ranks": places, "figures": found})


if __name__ == "__main__":
    main()
