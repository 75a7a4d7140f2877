"""
Multi-task regression: shared curves and intervals
==================================================

Twelve machines with a few measurements each of a similar curve, which differs a little from machine to machine. One
model for each machine has too few rows; one model for all is wrong for each. ``MultiTaskLSSVR`` chooses how much of
the curve and of the level is shared, and gives prediction intervals.
"""

import matplotlib.pyplot as plt
import numpy as np

from leastwise import LSSVR, MultiTaskLSSVR
from leastwise.datasets import make_related_tasks

# %%
# The machines
# ------------
# The curves have a correlation of 0.9, and each machine has its own level. There are eight rows for each machine.

data = make_related_tasks(
    12, 208, n_features=1, kind="regression", relatedness=0.9, offset=0.7, noise=0.25, random_state=2
)
known = np.concatenate([np.arange(208) < 8] * 12)
X, y, machine = data.X[known], data.y[known], data.task[known]

model = MultiTaskLSSVR(random_state=0).fit(X, y, tasks=machine)
print(f"sharing {model.sharing_}, spread of the levels {model.intercept_ratio_}, sigma {model.sigma_:.2f}")

# %%
# Curves and intervals
# --------------------
# The bands should contain nine of ten new measurements. The last panel shows a machine without training data: the
# shared part, with a band computed by holding out whole machines.

grid = np.linspace(-2.5, 2.5, 120)[:, None]
figure, axes = plt.subplots(2, 3, figsize=(10, 5.5), sharex=True, sharey=True, layout="constrained")
for t, ax in zip([0, 1, 2, 3, 4, "new"], axes.flat, strict=True):
    low, high = model.predict_interval(grid, coverage=0.9, tasks=t).T
    ax.fill_between(grid[:, 0], low, high, color="tab:blue", alpha=0.2, label="90 % interval")
    ax.plot(grid, model.predict(grid, tasks=t), color="tab:blue", label="MultiTaskLSSVR")
    if t != "new":
        alone = LSSVR(random_state=0).fit(X[machine == t], y[machine == t])
        ax.plot(grid, alone.predict(grid), "--", color="tab:orange", label="LSSVR, this machine alone")
        ax.plot(grid, data.mean(grid, task=t), color="black", lw=1, label="truth")
        ax.plot(X[machine == t], y[machine == t], "k.", label="known rows")
    ax.set_title(f"machine {t}" if t != "new" else "a machine never seen")
figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
plt.show()

# %%
# New rows
# --------

X_new, y_new, machine_new = data.X[~known], data.y[~known], data.task[~known]
low, high = model.predict_interval(X_new, coverage=0.9, tasks=machine_new).T
print(f"explained variance {model.score(X_new, y_new, tasks=machine_new):.3f}")
print(f"fraction of new values inside the intervals {np.mean((low <= y_new) & (y_new <= high)):.3f}")
pooled = LSSVR(random_state=0).fit(X, y)
print(f"one model for all: {pooled.score(X_new, y_new):.3f}")
single = [LSSVR(random_state=0).fit(X[machine == t], y[machine == t]) for t in range(12)]
values = np.concatenate([m.predict(X_new[machine_new == t]) for t, m in enumerate(single)])
order = np.argsort(machine_new, kind="stable")
print(f"one model for each: {1 - np.mean((y_new[order] - values) ** 2) / np.var(y_new):.3f}")
