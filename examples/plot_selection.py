"""
The search: sigma, alpha and sharing
====================================

``fit`` chooses its hyperparameters by held-out scores, and ``cv_results_`` contains every point that was evaluated.
Every point has a cell; the search refines promising regions, so cells differ in size. Bright is good, the star is the
chosen point.
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
# Kernel logistic regression evaluates fewer points, which cost more. Contours are drawn over a triangulation.

slow = KernelLogisticRegression(cv=3, random_state=0).fit(X[:300], y[:300])
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
SelectionDisplay.from_estimator(slow, ax=axes[0], colorbar=False)
SelectionDisplay.from_estimator(slow, ax=axes[1], kind="contours")
plt.show()

# %%
# Many tasks
# ----------
# With three hyperparameters: the best over the third, or a panel for each of its values. In empty panels nothing was
# evaluated, since other values were better.

data = make_related_tasks(n_tasks=12, n_rows=40, relatedness=0.9, noise=0.2, random_state=3)
many = MultiTaskLSPC(random_state=0).fit(data.X, data.y, tasks=data.task)
SelectionDisplay.from_estimator(many, by="sharing")
plt.show()

# %%
# Sharing against the ridge, the best over sigma.

SelectionDisplay.from_estimator(many, y="sharing")
plt.show()
