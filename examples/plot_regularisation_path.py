"""
Regularisation paths: held-out log-loss over alpha and sigma
============================================================

For one sigma, leave-one-out scores for a whole path of alphas come from one decomposition and cost little.
``cv_results_`` contains every point that was evaluated.
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
# Grids given as sequences are searched exhaustively: five widths and 33 ridges, 165 models, each evaluated on
# leave-one-out predictions of 800 rows.

sigmas = [6, 12, 20, 35, 60]
alphas = np.logspace(-10, 0, 33)
began = time.perf_counter()
model = LSPC(sigmas, alphas, random_state=0).fit(X, y)
found = model.cv_results_
print(f"{len(found['mean_test_score'])} points in {time.perf_counter() - began:.1f} s")
print(f"chosen: sigma {model.sigma_:g}, alpha {model.alpha_:.1e}")

# %%
# A large ridge underfits. Towards the left the curves become flat: the scores interpolate all training rows,
# and a smaller ridge changes nothing. In between, wide kernels have a minimum, at a smaller ridge for a wider
# kernel. The star is the point that ``fit`` chose.

display = RegularisationPathDisplay.from_estimator(model)
plt.show()

# %%
# The same with ``"auto"``: a coarse grid, refined around the best alpha, and extended if the best point is on
# the border.

began = time.perf_counter()
auto = LSPC(random_state=0).fit(X, y)
found = auto.cv_results_
best = -model.cv_results_["mean_test_score"].max()
print(f"{len(found['mean_test_score'])} points in {time.perf_counter() - began:.1f} s")
print(f"chosen: sigma {auto.sigma_:.3g}, alpha {auto.alpha_:.1e}")
print(f"log-loss {-found['mean_test_score'].max():.4f}, on the grids above {best:.4f}")
RegularisationPathDisplay.from_estimator(auto)
plt.show()
