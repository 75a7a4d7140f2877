"""
Many tasks in the plane
=======================

The posterior of every task of a model, over two features: a shared part and a part of each task. A task without
training data is predicted by the shared part.
"""

import matplotlib.pyplot as plt

from leastwise import MultiTaskLSPC
from leastwise.datasets import make_related_tasks
from leastwise.displays import PosteriorDisplay

data = make_related_tasks(n_tasks=9, n_rows=60, n_features=2, n_groups=1, relatedness=0.8, noise=0.1, random_state=5)
model = MultiTaskLSPC(random_state=0).fit(data.X, data.y, tasks=data.task)
tasks = [*range(9), "never seen"]
display = PosteriorDisplay.from_tasks(model, data.X, tasks=tasks, resolution=80)
for ax, t in zip(display.axes_[:9], range(9), strict=True):
    here = data.task == t
    for k, style in enumerate(["wo", "k^"]):
        ax.plot(*data.X[here & (data.y == k)].T, style, ms=2.5, mew=0.3, mec="0.5")
plt.show()

# %%
# At sharing 0 tasks are independent, at 1 they are pooled.

for sharing in (0.0, 1.0):
    extreme = MultiTaskLSPC(sharing=sharing, random_state=0).fit(data.X, data.y, tasks=data.task)
    display = PosteriorDisplay.from_tasks(extreme, data.X, tasks=[0, 1, 2], resolution=80)
    display.figure_.suptitle(f"sharing {sharing:g}")
    plt.show()
