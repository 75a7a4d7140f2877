"""Regression on thirty machines with twelve rows each: ridge regressions, and one multi-task model."""

import time

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from threadpoolctl import threadpool_limits

from leastwise import MultiTaskLSSVR
from leastwise.datasets import make_related_tasks

N_TASKS, N_TRAIN, N_TEST = 30, 12, 200
ALPHAS = 10.0 ** np.arange(-3, 3.1, 0.5)


def split():
    """Training and test rows of every task."""
    data = make_related_tasks(
        N_TASKS, N_TRAIN + N_TEST, n_features=3, kind="regression", relatedness=0.8, offset=1.0, random_state=1
    )
    place = np.concatenate([np.arange(np.sum(data.task == t)) for t in range(N_TASKS)])
    return data, place < N_TRAIN


def wide(X):
    """The columns with their squares and products."""
    i, j = np.triu_indices(X.shape[1])
    return np.hstack([X, X[:, i] * X[:, j]])


def one_hot(X, task):
    """With a column for every task."""
    return np.hstack([wide(X), task[:, None] == np.arange(N_TASKS)])


def ridge_per_task(X, y, task, X_new, task_new):
    """A ridge regression for every task."""
    values = np.empty(len(X_new))
    for t in range(N_TASKS):
        model = RidgeCV(ALPHAS).fit(wide(X[task == t]), y[task == t])
        values[task_new == t] = model.predict(wide(X_new[task_new == t]))
    return values


def ridge_one_hot(X, y, task, X_new, task_new):
    """One ridge regression with a column for every task."""
    return RidgeCV(ALPHAS).fit(one_hot(X, task), y).predict(one_hot(X_new, task_new))


def main():
    data, train = split()
    rows = data.X[train], data.y[train], data.task[train], data.X[~train], data.task[~train]
    print(f"\n{N_TASKS} machines with {N_TRAIN} rows each; explained variance on {np.sum(~train)} other rows")
    for name, method in {"ridge per machine": ridge_per_task, "ridge, machine one-hot": ridge_one_hot}.items():
        began = time.perf_counter()
        values = method(*rows)
        print(f"  {name:24s} {r2_score(data.y[~train], values):.3f}   {time.perf_counter() - began:.2f} s")
    began = time.perf_counter()
    model = MultiTaskLSSVR(random_state=0).fit(rows[0], rows[1], tasks=rows[2])
    values = model.predict(rows[3], tasks=rows[4])
    print(f"  {'MultiTaskLSSVR':24s} {r2_score(data.y[~train], values):.3f}   {time.perf_counter() - began:.2f} s")
    low, high = model.predict_interval(rows[3], coverage=0.9, tasks=rows[4]).T
    inside = np.mean((low <= data.y[~train]) & (data.y[~train] <= high))
    print(f"  sharing {model.sharing_}, spread of the intercepts {model.intercept_ratio_}")
    width = np.mean(high - low)
    print(f"  intervals for 90 %: {100 * inside:.1f} % of new values are inside, mean width {width:.2f}")
    best = r2_score(data.y[~train], data.mean(rows[3], rows[4]))
    print(f"  (the truth itself explains {best:.3f}; the rest is noise)")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
