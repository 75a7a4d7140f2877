"""
Similarities of tasks and of labels
===================================

Heat maps of learned similarities; rows and columns have the order of the leaves of a hierarchical clustering.
"""

import matplotlib.pyplot as plt
import numpy as np

from leastwise import MultiLabelLSPC, MultiTaskLSPC
from leastwise.datasets import make_related_tasks, make_rotated_labels
from leastwise.displays import SimilarityDisplay

# %%
# Thirty tasks in three groups, in random order. The similarities are learned from the data; long names are shortened
# to the part in which they differ.

data = make_related_tasks(n_tasks=30, n_rows=40, n_groups=3, relatedness=0.95, noise=0.2, random_state=3)
site = np.array([f"St. Mary's General Hospital of the Sea, ward {t:02d}" for t in range(30)])[data.task]
model = MultiTaskLSPC(sigma=1.0, similarity="learned", random_state=0).fit(data.X, data.y, tasks=site)
SimilarityDisplay.from_estimator(model)
plt.show()

# %%
# Labels can also be contrary: blue is similar, red is contrary. Here the boundaries of the labels are rotated step by
# step.

rotated = make_rotated_labels(n_labels=20, n_rows=200, n_features=10, noise=0.1, random_state=0)
order = np.random.default_rng(0).permutation(20)
labels = MultiLabelLSPC(random_state=0).fit(rotated.X, rotated.Y[:, order])
SimilarityDisplay.from_estimator(labels, names=[f"rotated by {18 * t}°" for t in order])
plt.show()
