"""Rows from many tasks: our models compared with those that practitioners use for grouped rows.

MultiTaskLSPC(), MultiTaskLSSVR()   defaults
GPBoost                             trees with a random intercept for each task; up to 300 rounds with a learning rate
                                    of 0.05, their number by 4 folds and early stopping
mixed model (GPBoost)               a linear mixed model with a random intercept, by maximum likelihood
mixed model (statsmodels)           the same by MixedLM; for classes BinomialBayesMixedGLM, variational Bayes
MERF                                a forest of 100 trees with a random intercept, 10 iterations; regression only
hierarchical (scikit-lego)          HierarchicalClassifier or HierarchicalRegressor: logistic or ridge regression for
                                    each task, shrunk to that of all rows (min_n_obs: 10 rows of the task at least)
CatBoost + task                     500 rounds, the task as a category
pooled                              logistic or ridge regression of all rows without the task

related-R     make_related_tasks: 20 tasks of 40 rows, 2 features, relatedness R
landmine      29 minefields of 40 rows
others        regression, the sets of benchmarks.lssvm_peers

The rows of every fifth task are taken out of the training rows: these tasks are unseen, and their test rows are
scored separately. Log-loss and R^2 are those of all rows, AUC is the mean over tasks. Inputs are standardised for
all. One thread; seconds are processor seconds of the fit with its search. Packages that are not installed are left
out (extra "bench").
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import log_loss, r2_score

from benchmarks import lssvm_peers, task_peers
from benchmarks._common import parse, parser, print_markdown
from benchmarks._pieces import add_options, gathered
from leastwise import MultiTaskLSPC, MultiTaskLSSVR
from leastwise.metrics import task_auc
from papers._common.data import available

Array = np.ndarray

CLASSES = ("related-0.6", "related-0.2", "landmine")
VALUES = ("school", "friedman", "smooth-0.5", "slopes-0.3")
FIGURES = {True: ("log_loss", "auc"), False: ("r2",)}
#: Every fifth task is unseen.
STEP = 5
RIDGES = np.logspace(-3, 5, 17)

# ------------------------------------------------------------------------ data


@dataclass(frozen=True)
class Study:
    """Training rows, and test rows of tasks that have training rows and of tasks that have none."""

    name: str
    X: Array
    y: Array
    task: Array
    X_test: Array
    y_test: Array
    task_test: Array
    classes: bool

    @property
    def unseen(self) -> Array:
        """True for test rows of unseen tasks."""
        return ~np.isin(self.task_test, self.task)


def draw(name: str, folder: str | None, seed: int, quick: bool) -> Study:
    """A draw of another benchmark without the training rows of every fifth task."""
    classes = name in CLASSES
    found: Any
    if classes:
        found = task_peers.draw(name, folder, seed, quick)
    else:
        found = lssvm_peers.standardised(lssvm_peers.SETS[name](folder, seed))
    train, test = found.train, found.test
    kept = train.task % STEP != STEP - 1
    return Study(name, train.X[kept], train.y[kept], train.task[kept], test.X, test.y, test.task, classes)


# --------------------------------------------------------------------- methods

#: A method fits the training rows, and returns a function from rows and tasks to the probability of 1 or the value.
Predict = Callable[[Array, Array], Array]
Method = Callable[[Study, argparse.Namespace], "Predict | None"]


def ours(data: Study, args: argparse.Namespace) -> Predict:
    if data.classes:
        model = MultiTaskLSPC(random_state=0).fit(data.X, data.y, tasks=data.task)
        return lambda X, task: model.predict_proba(X, tasks=task)[:, 1]
    values = MultiTaskLSSVR(random_state=0).fit(data.X, data.y, tasks=data.task)
    return lambda X, task: values.predict(X, tasks=task)


def gpboost_trees(data: Study, args: argparse.Namespace) -> Predict:
    import gpboost

    def effects() -> Any:
        likelihood = "bernoulli_logit" if data.classes else "gaussian"
        return gpboost.GPModel(group_data=data.task, likelihood=likelihood, num_parallel_threads=args.threads)

    options = {"learning_rate": 0.05, "verbose": -1, "num_threads": args.threads, "seed": 0}
    rows = gpboost.Dataset(data.X, data.y)
    tried = gpboost.cv(
        options,
        rows,
        gp_model=effects(),
        num_boost_round=20 if args.quick else 300,
        early_stopping_rounds=10,
        nfold=4,
        stratified=False,
        verbose_eval=False,
        seed=0,
    )
    rounds = len(next(iter(tried.values())))
    model = gpboost.train(options, gpboost.Dataset(data.X, data.y), gp_model=effects(), num_boost_round=rounds)
    return lambda X, task: model.predict(X, group_data_pred=task, pred_latent=False)["response_mean"]


def gpboost_linear(data: Study, args: argparse.Namespace) -> Predict:
    import gpboost

    likelihood = "bernoulli_logit" if data.classes else "gaussian"
    model = gpboost.GPModel(group_data=data.task, likelihood=likelihood, num_parallel_threads=args.threads)
    model.fit(y=data.y.astype(float), X=with_intercept(data.X))
    return lambda X, task: model.predict(X_pred=with_intercept(X), group_data_pred=task, predict_response=True)["mu"]


def with_intercept(X: Array) -> Array:
    return np.column_stack([np.ones(len(X)), X])


def mixed(data: Study, args: argparse.Namespace) -> Predict:
    from scipy.special import expit
    from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM
    from statsmodels.regression.mixed_linear_model import MixedLM

    known = np.unique(data.task)
    A = with_intercept(data.X)
    if data.classes:
        one_hot = (data.task[:, None] == known).astype(float)
        model = BinomialBayesMixedGLM(data.y, A, one_hot, np.zeros(len(known), dtype=int)).fit_vb()
        slopes, levels = model.fe_mean, dict(zip(known, model.vc_mean, strict=True))
    else:
        fitted = MixedLM(data.y, A, data.task).fit(reml=True)
        slopes = np.asarray(fitted.fe_params)
        levels = {task: float(np.asarray(effect).ravel()[0]) for task, effect in fitted.random_effects.items()}
    link = expit if data.classes else np.asarray
    return lambda X, task: link(with_intercept(X) @ slopes + np.array([levels.get(t, 0.0) for t in task]))


def merf(data: Study, args: argparse.Namespace) -> Predict | None:
    import pandas as pd
    from merf import MERF

    if data.classes:
        return None
    forest = RandomForestRegressor(10 if args.quick else 100, n_jobs=args.threads, random_state=0)
    model = MERF(forest, max_iterations=2 if args.quick else 10)
    model.fit(data.X, np.ones((len(data.X), 1)), pd.Series(data.task), data.y)
    return lambda X, task: model.predict(X, np.ones((len(X), 1)), pd.Series(task))


def linear(data: Study) -> Any:
    return LogisticRegression(max_iter=1000) if data.classes else RidgeCV(RIDGES)


def hierarchical(data: Study, args: argparse.Namespace) -> Predict:
    import pandas as pd
    from sklego.meta import HierarchicalClassifier, HierarchicalRegressor

    def frame(X: Array, task: Array) -> Any:
        return pd.DataFrame({**{f"x{j}": X[:, j] for j in range(X.shape[1])}, "task": task})

    shrink = {"shrinkage": "min_n_obs", "shrinkage_kwargs": {"min_n_obs": 10}, "fallback_method": "parent"}
    kind = HierarchicalClassifier if data.classes else HierarchicalRegressor
    model = kind(linear(data), groups="task", **shrink).fit(frame(data.X, data.task), data.y)
    if data.classes:
        return lambda X, task: model.predict_proba(frame(X, task))[:, 1]
    return lambda X, task: model.predict(frame(X, task))


def catboost(data: Study, args: argparse.Namespace) -> Predict:
    import pandas as pd
    from catboost import CatBoostClassifier, CatBoostRegressor

    def frame(X: Array, task: Array) -> Any:
        return pd.DataFrame(X).assign(task=task.astype(str)).rename(columns=str)

    kind = CatBoostClassifier if data.classes else CatBoostRegressor
    options = {"random_seed": 0, "verbose": False, "allow_writing_files": False, "thread_count": args.threads}
    model = kind(iterations=20 if args.quick else 500, cat_features=["task"], **options)
    model.fit(frame(data.X, data.task), data.y)
    if data.classes:
        return lambda X, task: model.predict_proba(frame(X, task))[:, 1]
    return lambda X, task: model.predict(frame(X, task))


def pooled(data: Study, args: argparse.Namespace) -> Predict:
    model = linear(data).fit(data.X, data.y)
    return lambda X, task: model.predict_proba(X)[:, 1] if data.classes else model.predict(X)


OURS = {True: "MultiTaskLSPC()", False: "MultiTaskLSSVR()"}
METHODS: dict[str, Method] = {
    "ours": ours,
    "GPBoost": gpboost_trees,
    "mixed model (GPBoost)": gpboost_linear,
    "mixed model (statsmodels)": mixed,
    "MERF": merf,
    "hierarchical (scikit-lego)": hierarchical,
    "CatBoost + task": catboost,
    "pooled": pooled,
}

# --------------------------------------------------------------------- figures


def figures(data: Study, predicted: Array, rows: Array) -> dict[str, float]:
    y = data.y_test[rows]
    if not data.classes:
        return {"r2": float(r2_score(y, predicted[rows]))}
    P = np.clip(predicted[rows], 1e-12, 1 - 1e-12)
    return {
        "log_loss": float(log_loss(y, P, labels=[0, 1])),
        "auc": float(task_auc(y, P, data.task_test[rows])),
    }


def measured(name: str, data: Study, seed: int, args: argparse.Namespace) -> dict[str, Any] | None:
    """One record; None if the method does not apply, or its package is not installed."""
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predict = METHODS[name](data, args)
            seconds = time.process_time() - began
            if predict is None:
                return None
            predicted = np.asarray(predict(data.X_test, data.task_test), dtype=float)
    except (ImportError, ValueError) as error:  # scikit-lego fits no task with one class only
        print(f"{data.name}, {name}: skipped, {error}", flush=True)
        return None
    parts = {"known": ~data.unseen, "unseen": data.unseen}
    return {
        "data": data.name,
        "classes": data.classes,
        "tasks": len(np.unique(data.task)),
        "unseen_tasks": len(np.unique(data.task_test[data.unseen])),
        "rows": len(data.y),
        "method": OURS[data.classes] if name == "ours" else name,
        "run": seed,
        **{f"{key}_{part}": x for part, rows in parts.items() for key, x in figures(data, predicted, rows).items()},
        "seconds": seconds,
    }


def run(args: argparse.Namespace) -> Iterator[dict]:
    for seed in range(args.runs):
        for _, data in available(args.sets, partial(lambda s, name: draw(name, args.data, s, args.quick), seed)):
            for name in args.methods:
                record = measured(name, data, seed, args)
                if record is not None:
                    keys = [f"{key}_{part}" for part in ("known", "unseen") for key in FIGURES[data.classes]]
                    shown = ", ".join(f"{key} {record[key]:.3f}" for key in keys)
                    print(f"{data.name}, {record['method']}: {shown}, {record['seconds']:.1f} s", flush=True)
                    yield record


def tables(found: Sequence[dict]) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Title, header and lines of each set, with the means over the draws."""
    for name in dict.fromkeys(record["data"] for record in found):
        here = [record for record in found if record["data"] == name]
        first, words = here[0], {"log_loss": "log-loss", "auc": "AUC", "r2": "R²"}
        keys = [f"{key}_{part}" for part in ("known", "unseen") for key in FIGURES[first["classes"]]]
        lines, draws = [], len({record["run"] for record in here})
        for method in dict.fromkeys(record["method"] for record in here):
            runs = [record for record in here if record["method"] == method]
            means = {key: float(np.mean([record[key] for record in runs])) for key in (*keys, "seconds")}
            part = f" ({len(runs)} of {draws} draws)" if len(runs) < draws else ""
            lines.append([method + part, *(f"{means[key]:.3f}" for key in keys), f"{means['seconds']:.2f}"])
        kinds = {"known": "known tasks", "unseen": "unseen tasks"}
        header = [f"{words[key.rpartition('_')[0]]}, {kinds[key.rpartition('_')[2]]}" for key in keys]
        title = f"{name}: {first['tasks']} tasks with {first['rows']} rows, {first['unseen_tasks']} unseen tasks"
        yield title, ["method", *header, "seconds"], lines


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.task_study", __doc__, threads=1, runs=3)
    add_options(p, (*CLASSES, *VALUES), list(METHODS))
    args = parse(p, argv)
    args.runs = 1 if args.quick else args.runs
    for table in tables(gathered(args, run(args))):
        print_markdown(*table)


if __name__ == "__main__":
    main()
