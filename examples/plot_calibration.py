"""
From scores to probabilities: four calibrations
===============================================

The scores of LSPC estimate class probabilities by least squares: some are negative, and their sum is not one.
``calibration`` selects how they are converted to probabilities. All methods but ``None`` are fitted to the
held-out scores that sigma and alpha are chosen by, so that none needs a refit.
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
# The digits are easy, which leaves little to calibrate. Noise makes them harder: pixels range from 0 to 16,
# and the noise has a standard deviation of 6.

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
# On the diagonal, predictions with 90 % confidence are correct in 90 % of the cases; above it, the model is
# underconfident; below it, overconfident. All bins have the same number of rows. The grey bars show the
# distribution of the confidence.

figure, axes = plt.subplots(2, 2, figsize=(9, 8), layout="constrained", sharex=True, sharey=True)
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    ReliabilityDisplay.from_estimator(model, X_test, y_test, name="LSPC", ax=ax)
    ax.set_title(f"calibration={name!r}")
    ax.legend(loc="best", fontsize="small")
    ax.label_outer()
plt.show()
