"""
Reliability: of all rows, of each class, of each task and of each label
=======================================================================

Predictions with a confidence of 90 % should be correct in 90 % of the cases. All models of this library store the
held-out predictions of their training rows, so the diagram needs no other rows and no refit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from leastwise import LSPC, MultiLabelLSPC, MultiTaskLSPC
from leastwise.datasets import make_related_tasks, make_rotated_labels
from leastwise.displays import GroupedReliabilityDisplay, ReliabilityDisplay

# %%
# All rows
# --------
# Digits with added noise. Bars are exact binomial intervals: with few rows in a bin a point may deviate from the
# diagonal by chance. Below is the distribution of the confidence.

X, y = load_digits(return_X_y=True)
X = X + np.random.default_rng(0).normal(scale=6, size=X.shape)
# In the order of the file later rows are of other writers; after shuffling, new rows have the same distribution.
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=600, random_state=0)
model = LSPC(random_state=0).fit(X_train, y_train)
raw = LSPC(calibration=None, random_state=0).fit(X_train, y_train)

display = ReliabilityDisplay.from_heldout(model, y_train, n_bins=10)
ReliabilityDisplay.from_heldout(raw, y_train, n_bins=10, name="not calibrated", ax=display.ax_)
plt.show()

# %%
# New rows, for comparison.

display = ReliabilityDisplay.from_estimator(model, X_test, y_test, n_bins=10)
plt.show()

# %%
# Each class
# ----------
# The probability of each class against its frequency. The grey curve is that of all classes together.

GroupedReliabilityDisplay.from_estimator(model, X_test, y_test)
plt.show()

# %%
# Each task
# ---------
# Thirty sites with 60 rows each. Single points are uncertain, as the bars show.

data = make_related_tasks(n_tasks=30, n_rows=60, n_groups=3, relatedness=0.95, noise=0.2, random_state=3)
site = np.array([f"St. Mary's General Hospital, ward {t:02d}" for t in range(30)])[data.task]
many = MultiTaskLSPC(n_centers=100, random_state=0).fit(data.X, data.y, tasks=site)
GroupedReliabilityDisplay.from_heldout(many, data.y, tasks=site, pos_label=1)
plt.show()

# %%
# All in one diagram: the tasks that deviate most from the diagonal, relative to their number of rows, are named.

GroupedReliabilityDisplay.from_heldout(many, data.y, tasks=site, pos_label=1, kind="overlay")
plt.show()

# %%
# Each label
# ----------
# A fifth of the labels is unknown: each diagram uses the rows where its label is known.

rotated = make_rotated_labels(n_labels=8, n_rows=300, n_features=10, noise=0.1, random_state=0)
Y = np.where(np.random.default_rng(0).random(rotated.Y.shape) < 0.2, np.nan, rotated.Y)
labels = MultiLabelLSPC(random_state=0).fit(rotated.X, Y)
GroupedReliabilityDisplay.from_heldout(labels, Y, names=[f"label {t}" for t in range(8)])
plt.show()
