"""Twenty related tasks with forty rows each: independent, pooled, and coupled."""

import time

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from leastwise import MultiTaskLSPC
from leastwise.datasets import make_related_tasks
from leastwise.metrics import task_auc

N_TASKS, N_TRAIN, N_TEST = 20, 40, 400


def split():
    """Training and test rows of every task, and the posterior that made the test rows."""
    data = make_related_tasks(N_TASKS, N_TRAIN + N_TEST, n_features=3, relatedness=0.8, random_state=0)
    place = np.concatenate([np.arange(np.sum(data.task == t)) for t in range(N_TASKS)])
    return data, place < N_TRAIN


class OnePerTask:
    """A tuned logistic regression with squares and products for every task, by scikit-learn."""

    def fit(self, X, y, tasks):
        self.models = {t: self._one(_wide(X[tasks == t]), y[tasks == t]) for t in np.unique(tasks)}
        return self

    def _one(self, X, y):
        if np.bincount(y, minlength=2).min() < 3:  # too few of a class for three folds: smoothed class shares
            return DummyClassifier(strategy="prior").fit(np.zeros((len(y) + 2, 1)), np.r_[y, 0, 1])
        grid = {"logisticregression__C": 10.0 ** np.arange(-3, 3)}
        model = make_pipeline(StandardScaler(), LogisticRegression())
        return GridSearchCV(model, grid, cv=3, scoring="neg_log_loss").fit(X, y)

    def predict_proba(self, X, tasks):
        P = np.empty((len(X), 2))
        for t, model in self.models.items():
            P[tasks == t] = model.predict_proba(_wide(X[tasks == t]))
        return P


def _wide(X):
    i, j = np.triu_indices(X.shape[1])
    return np.hstack([X, X[:, i] * X[:, j]])


def main():
    data, train = split()
    methods = {
        "logistic per task": OnePerTask(),
        "independent": MultiTaskLSPC(sharing=0.0, random_state=0),
        "pooled": MultiTaskLSPC(sharing=1.0, random_state=0),
        "MultiTaskLSPC": MultiTaskLSPC(random_state=0),
    }
    print(f"\n{N_TASKS} synthetic related tasks: {N_TRAIN} training rows and {N_TEST} test rows each.")
    print("Seconds are for tuning, training and calibration, on one thread.\n")
    print(f"{'':<24}{'mean AUC':>10}{'log-loss':>10}{'seconds':>10}   sharing")
    X, y, task = data.X[~train], data.y[~train], data.task[~train]
    for name, model in methods.items():
        began = time.perf_counter()
        with threadpool_limits(limits=1):
            model.fit(data.X[train], data.y[train], tasks=data.task[train])
        seconds = time.perf_counter() - began
        P = model.predict_proba(X, tasks=task)
        shared = f"{model.sharing_:.2g}" if hasattr(model, "sharing_") else ""
        print(f"{name:<24}{task_auc(y, P[:, 1], task):>10.3f}{log_loss(y, P):>10.3f}{seconds:>10.2f}   {shared}")
    truth = data.posterior(X, task)
    print(f"{'the truth':<24}{task_auc(y, truth[:, 1], task):>10.3f}{log_loss(y, truth):>10.3f}")


if __name__ == "__main__":
    main()
