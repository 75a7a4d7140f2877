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
# a smaller ridge the wider it is. The cross is the point that ``fit`` chose.

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for k, sigma in enumerate(sigmas):
    here = found["param_sigma"] == sigma
    order = found["param_alpha"][here].argsort()
    path = found["param_alpha"][here][order], -found["mean_test_score"][here][order]
    ax.plot(*path, ".-", color=plt.cm.viridis(k / len(sigmas)), label=f"{sigma:g}")
best = -found["mean_test_score"].max()
ax.plot(model.alpha_, best, "X", ms=11, color="crimson", mec="white", label="chosen", zorder=5)
ax.set(xscale="log", yscale="log", xlabel="alpha", ylabel="Log-loss of rows left out")
ticks = [0.03, 0.05, 0.1, 0.2, 0.4]
ax.set_yticks(ticks, labels=[f"{tick:g}" for tick in ticks])
ax.set_yticks([], minor=True)
ax.legend(title="sigma")
plt.show()

# %%
# The same with ``"auto"``: a coarse grid, finer around the best alpha, and beyond the border where the best
# lies on it.

began = time.perf_counter()
auto = LSPC(random_state=0).fit(X, y)
found = auto.cv_results_
print(f"{len(found['mean_test_score'])} points in {time.perf_counter() - began:.1f} s")
print(f"chosen: sigma {auto.sigma_:.3g}, alpha {auto.alpha_:.1e}")
print(f"log-loss {-found['mean_test_score'].max():.4f}, on the grids above {best:.4f}")
