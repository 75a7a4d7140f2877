"""
Many tasks: what sharing brings, and which tasks help which
===========================================================

Ten small sets of rows, say of ten hospitals, that are alike but not the same. One model for each has too few rows to
learn from; one model for all is wrong for some. How much is to be shared, and between which, is chosen by held-out
predictions. This page shows how to see what that brought, task by task.
"""

import matplotlib.pyplot as plt
import numpy as np

from leastwise import MultiTaskLSPC, task_report
from leastwise.datasets import make_related_tasks
from leastwise.displays import SimilarityDisplay, TaskReportDisplay

# %%
# The tasks
# ---------
# There are two groups of tasks: within a group classes depend on the inputs in nearly the same way, and the
# groups have nothing in common. The last task has its classes the wrong way round.

data = make_related_tasks(
    n_tasks=10, n_rows=40, n_groups=2, relatedness=0.95, reversed_tasks=1, noise=0.2, random_state=3
)
names = [f"{'south' if group else 'north'} {t}" for t, group in enumerate(data.group)]
names[-1] += ", reversed"
hospital = np.array(names)[data.task]

# %%
# The report
# ----------
# Three models are fitted, each with its own sigma and alpha: tasks alone, tasks pooled, and tasks that share.
# ``similarity="learned"`` looks for groups of tasks that help one another. All figures are of held-out
# predictions.

model = MultiTaskLSPC(similarity="learned", random_state=0)
report = task_report(data.X, data.y, hospital, model=model)
print(report)

# %%
# The same as a picture. Pooling ruins the task that is reversed, and does harm to the others too: the two
# groups are in each other's way. Sharing within groups is better than both for nearly every task, and leaves
# the reversed one alone.

TaskReportDisplay.from_report(report)
plt.show()

# %%
# The gains are means over 40 rows each, so they come with an error: the bars in the picture. What did not fit on the
# page is in the table: ``report.table`` is a dict of arrays, ``report.to_frame()`` a frame.

columns = ["task", *(f"calibration_{name}" for name in ("independent", "pooled", "multi_task", "noise"))]
print(report.to_frame()[columns].round(3).to_string(index=False))

# %%
# Which tasks go together
# -----------------------
# The similarities that were learned: the two groups, and a task that is better left alone.

SimilarityDisplay.from_estimator(report.models["multi_task"])
plt.show()

# %%
# Which tasks help which
# ----------------------
# By how much would the error of a task grow if the rows of another were not there? That is known in closed
# form, for all pairs at once. Blue: the task of the column helps that of the row; red: it does harm. Here all
# tasks share alike, a half of the model, and the groups can still be seen.

alike = task_report(data.X, data.y, hospital, model=MultiTaskLSPC(sharing=0.5, random_state=0))
SimilarityDisplay.from_report(alike)
plt.show()

# %%
# With learned similarities nothing is left between the groups.

SimilarityDisplay.from_report(report)
plt.show()
