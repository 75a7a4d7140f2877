"""
The search: sigma, alpha and sharing
====================================

``fit`` chooses its parameters by held-out scores, and ``cv_results_`` keeps every point that it looked at. Every
point has a cell; the search goes into detail where it is worth it, so cells differ in size. Bright is good, the star
is what was chosen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from leastwise import LSPC, KernelLogisticRegression, MultiTaskLSPC
from leastwise.datasets import make_related_tasks
from leastwise.displays import SelectionDisplay

X, y = load_digits(return_X_y=True)
X = X[:500] + np.random.default_rng(0).normal(scale=4, size=(500, 64))
model = LSPC(random_state=0).fit(X, y[:500])
SelectionDisplay.from_estimator(model)
plt.show()

# %%
# Kernel logistic regression, whose points cost more and are fewer. Contours are drawn over a triangulation of them.

slow = KernelLogisticRegression(cv=3, random_state=0).fit(X[:300], y[:300])
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
SelectionDisplay.from_estimator(slow, ax=axes[0], colorbar=False)
SelectionDisplay.from_estimator(slow, ax=axes[1], kind="contours")
plt.show()

# %%
# Many tasks
# ----------
# With three parameters: the best over the third, or a panel for each of its values. Where a panel is empty nothing
# was looked at, since others were better already.

data = make_related_tasks(n_tasks=12, n_rows=40, relatedness=0.9, noise=0.2, random_state=3)
many = MultiTaskLSPC(random_state=0).fit(data.X, data.y, tasks=data.task)
SelectionDisplay.from_estimator(many, by="sharing")
plt.show()

# %%
# How much is shared against the ridge, the best over sigma.

SelectionDisplay.from_estimator(many, y="sharing")
plt.show()
