"""
From scores to probabilities: four calibrations
===============================================

The scores of LSPC estimate class probabilities, but by least squares: some come out negative, and their sum
is not one. ``calibration`` says how they become probabilities. All but ``None`` are fitted to the same
held-out scores that sigma and alpha are chosen by, so none costs a refit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from leastwise import LSPC
from leastwise.displays import ReliabilityDisplay
from leastwise.metrics import brier_score, expected_calibration_error

# %%
# The digits are nearly all easy, which leaves little to calibrate. Noise makes them hard: pixels go from 0
# to 16, and what is added has a standard deviation of 6.

X, y = load_digits(return_X_y=True)
X = X + np.random.default_rng(0).normal(scale=6, size=X.shape)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=600, stratify=y, random_state=0)

# %%
# One model for each; sigma and alpha are chosen for each by its own held-out log-loss.

models = {
    calibration: LSPC(calibration=calibration, random_state=0).fit(X_train, y_train)
    for calibration in (None, "temperature", "isotonic", "blend")
}
print(f"{'calibration':<14}{'accuracy':>10}{'log-loss':>10}{'Brier':>10}{'ECE':>10}")
for name, model in models.items():
    P = model.predict_proba(X_test)
    figures = log_loss(y_test, P), brier_score(y_test, P), expected_calibration_error(y_test, P)
    print(f"{name!s:<14}{model.score(X_test, y_test):>10.2%}" + "".join(f"{v:>10.4f}" for v in figures))

# %%
# On the diagonal, what is said with 90 % turns out true in 90 % of the cases; above it, the model is too
# modest; below, too sure. Bins hold the same number of rows each. The grey bars show how the rows spread
# over the confidences.

figure, axes = plt.subplots(2, 2, figsize=(9, 8), layout="constrained", sharex=True, sharey=True)
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    ReliabilityDisplay.from_estimator(model, X_test, y_test, name="LSPC", ax=ax)
    ax.set_title(f"calibration={name!r}")
    ax.legend(loc="best", fontsize="small")
    ax.label_outer()
plt.show()
