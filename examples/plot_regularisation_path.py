"""
Regularisation paths: held-out log-loss over alpha and sigma
============================================================

For one sigma, leave-one-out scores for a whole path of alphas come out of one decomposition, so looking at
all of them costs little. ``cv_results_`` keeps every point that was looked at.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from leastwise import LSPC
from leastwise.displays import RegularisationPathDisplay

X, y = load_digits(return_X_y=True)
X, y = X[:800], y[:800]

# %%
# Grids given as sequences are searched as they are: five widths, 33 ridges, 165 models, each judged on
# predictions for 800 rows that were left out.

sigmas = [6, 12, 20, 35, 60]
alphas = np.logspace(-10, 0, 33)
began = time.perf_counter()
model = LSPC(sigmas, alphas, random_state=0).fit(X, y)
found = model.cv_results_
print(f"{len(found['mean_test_score'])} points in {time.perf_counter() - began:.1f} s")
print(f"chosen: sigma {model.sigma_:g}, alpha {model.alpha_:.1e}")

# %%
# Too much ridge forgets the data. Towards the left the curves turn flat: there the scores go through all
# training rows, and a ridge smaller still changes nothing. Between the two, a wide kernel has a valley, at
# a smaller ridge the wider it is. The star is the point that ``fit`` chose.

display = RegularisationPathDisplay.from_estimator(model)
plt.show()

# %%
# The same with ``"auto"``: a coarse grid, finer around the best alpha, and beyond the border where the best
# lies on it.

began = time.perf_counter()
auto = LSPC(random_state=0).fit(X, y)
found = auto.cv_results_
best = -model.cv_results_["mean_test_score"].max()
print(f"{len(found['mean_test_score'])} points in {time.perf_counter() - began:.1f} s")
print(f"chosen: sigma {auto.sigma_:.3g}, alpha {auto.alpha_:.1e}")
print(f"log-loss {-found['mean_test_score'].max():.4f}, on the grids above {best:.4f}")
RegularisationPathDisplay.from_estimator(auto)
plt.show()
