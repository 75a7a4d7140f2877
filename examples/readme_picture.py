"""The figure of the README: calibration of the probabilities, and error of the accepted rows against their share."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import SVC

from leastwise import LSPC
from leastwise.displays import ReliabilityDisplay, RiskCoverageDisplay

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "readme.png"


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X / 16, y, train_size=400, random_state=0)
    search = GridSearchCV(SVC(), {"C": [1, 10, 100], "gamma": [0.01, 0.03, 0.1]}, cv=5).fit(X, y)
    models = {
        "LSPC()": LSPC(random_state=0).fit(X, y),
        "SVC, tuned and calibrated": CalibratedClassifierCV(search.best_estimator_, cv=5, ensemble=False).fit(X, y),
    }
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for name, model in models.items():
        P = model.predict_proba(X_new)
        ReliabilityDisplay.from_predictions(y_new, P, classes=model.classes_, name=name, n_bins=12, ax=axes[0])
        RiskCoverageDisplay.from_predictions(y_new, P, classes=model.classes_, name=name, ax=axes[1])
    axes[0].set_title("Is 90 % right nine times out of ten?", fontsize=11)
    axes[1].set_title("What share is decided at which error?", fontsize=11)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=110)
    print(f"written to {PICTURE}")


if __name__ == "__main__":
    main()
