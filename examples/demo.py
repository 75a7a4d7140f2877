"""Compare a tuned LSPC with a tuned SVC with Platt scaling, on the digits of scikit-learn."""

import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from leastwise import LSPC
from leastwise.displays import ReliabilityDisplay
from leastwise.metrics import expected_calibration_error

CERTAIN = 0.99


class TunedSVC:
    """C and gamma by 3-fold cross-validation, then Platt scaling by 5-fold, with scikit-learn."""

    def fit(self, X, y):
        gamma = 1 / (X.shape[1] * X.var())  # scikit-learn's own choice, the middle of the grid
        grid = {"C": [1, 10, 100], "gamma": [gamma / 4, gamma, gamma * 4]}
        best = GridSearchCV(SVC(), grid, cv=3).fit(X, y).best_params_
        self.model = CalibratedClassifierCV(SVC(**best), method="sigmoid", ensemble=False, cv=5).fit(X, y)
        return self

    def predict_proba(self, X):
        return self.model.predict_proba(X)


def run(name, model, train, test):
    """Train, predict and score."""
    began = time.perf_counter()
    model.fit(*train)
    seconds = time.perf_counter() - began
    P = model.predict_proba(test[0])
    sure = P.max(axis=1) >= CERTAIN
    correct = P.argmax(axis=1) == test[1]
    return {
        "name": name,
        "proba": P,
        "accuracy": correct.mean(),
        "log_loss": log_loss(test[1], P),
        "ece": expected_calibration_error(test[1], P),
        "seconds": seconds,
        "sure": sure.mean(),
        "sure_right": correct[sure].mean() if sure.any() else np.nan,
    }


def report(results, n_train, n_test):
    """Print the scores, and the rows that can be decided automatically."""
    print(f"\nHandwritten digits: {n_train} training rows, {n_test} test rows, 64 pixels, 10 classes.")
    print("Seconds are for tuning, training and calibration, one method after the other, both on one")
    print("thread (SVC is single-threaded).\n")
    print(f"{'':<24}{'accuracy':>10}{'log-loss':>10}{'calib. error':>14}{'seconds':>10}")
    for r in results:
        print(f"{r['name']:<24}{r['accuracy']:>10.2%}{r['log_loss']:>10.4f}{r['ece']:>14.4f}{r['seconds']:>10.2f}")
    print(f"\nTest rows with a confidence of at least {CERTAIN:.0%}:")
    for r in results:
        print(f"{r['name']:<24}{r['sure']:>10.1%} of the rows, {r['sure_right']:.2%} of them correct")


def draw(results, X, y, path):
    """Draw the reliability of both, and the digits with the lowest confidence."""
    figure = plt.figure(figsize=(10, 7), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[5, 3])
    for ax, r in zip(above.subplots(1, 2, sharey=True), results, strict=True):
        ReliabilityDisplay.from_predictions(y, r["proba"], name=r["name"], ax=ax)
        ax.set(xlim=(0.6, 1.01), ylim=(0.6, 1.02))  # no bin of either lies below
        ax.set_title(f"{r['name']}: accuracy {r['accuracy']:.1%}, log-loss {r['log_loss']:.3f}")
        ax.legend(loc="center left", fontsize="small", framealpha=1)
        ax.label_outer()
    P = results[0]["proba"]
    below.suptitle(f"The test digits that {results[0]['name']} is least sure of")
    for ax, i in zip(below.subplots(1, 6), P.max(axis=1).argsort(), strict=False):
        first, second = P[i].argsort()[::-1][:2]
        ax.imshow(X[i].reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[], title=f"is a {y[i]}")
        ax.set_xlabel(f"{first}: {P[i, first]:.0%}\n{second}: {P[i, second]:.0%}")
    figure.savefig(path, dpi=110)


def main():
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)
    train, test = (X_train, y_train), (X_test, y_test)
    with threadpool_limits(limits=1):  # SVC knows one thread only; the same for both
        results = [
            run("LSPC", LSPC(random_state=0), train, test),
            run("SVC + Platt", TunedSVC(), train, test),
        ]
    report(results, len(y_train), len(y_test))
    path = Path("demo.png").resolve()
    draw(results, X_test, y_test, path)
    print(f"\nFigure: {path}")


if __name__ == "__main__":
    main()
