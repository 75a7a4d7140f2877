"""
Many tasks: the benefit of sharing, and which tasks help which
==============================================================

Ten small data sets, say of ten hospitals, that are similar but not the same. One model for each has too few rows; one
model for all is wrong for some. How much is shared, and between which tasks, is chosen by held-out predictions. This
example shows the benefit task by task.
"""

import matplotlib.pyplot as plt
import numpy as np

from leastwise import MultiTaskLSPC, task_report
from leastwise.datasets import make_related_tasks
from leastwise.displays import SimilarityDisplay, TaskReportDisplay

# %%
# The tasks
# ---------
# There are two groups of tasks: within a group the classes depend on the inputs in nearly the same way; the
# groups are unrelated. The last task has its classes swapped.

data = make_related_tasks(
    n_tasks=10, n_rows=40, n_groups=2, relatedness=0.95, reversed_tasks=1, noise=0.2, random_state=3
)
names = [f"{'south' if group else 'north'} {t}" for t, group in enumerate(data.group)]
names[-1] += ", reversed"
hospital = np.array(names)[data.task]

# %%
# The report
# ----------
# Three models are fitted, each with its own sigma and alpha: independent tasks, pooled tasks, and tasks that
# share. ``similarity="learned"`` finds groups of tasks that help each other. All numbers are from held-out
# predictions.

model = MultiTaskLSPC(similarity="learned", random_state=0)
report = task_report(data.X, data.y, hospital, model=model)
print(report)

# %%
# The same as a figure. Pooling ruins the reversed task and harms the others too, because the two groups
# contradict each other. Sharing within groups is better than both for nearly every task, and leaves the
# reversed one independent.

TaskReportDisplay.from_report(report)
plt.show()

# %%
# The gains are means over 40 rows each; the bars show their standard errors. The report has more columns:
# ``report.table`` is a dict of arrays, ``report.to_frame()`` a frame.

columns = ["task", *(f"calibration_{name}" for name in ("independent", "pooled", "multi_task", "noise"))]
print(report.to_frame()[columns].round(3).to_string(index=False))

# %%
# Which tasks go together
# -----------------------
# The learned similarities: the two groups, and a task that is better left independent.

SimilarityDisplay.from_estimator(report.models["multi_task"])
plt.show()

# %%
# Which tasks help which
# ----------------------
# By how much would the error of a task grow without the rows of another task? This is computed in closed form
# for all pairs at once. Blue: the task of the column helps that of the row; red: it harms. Here all tasks share
# equally, with sharing 0.5, and the groups are still visible.

alike = task_report(data.X, data.y, hospital, model=MultiTaskLSPC(sharing=0.5, random_state=0))
SimilarityDisplay.from_report(alike)
plt.show()

# %%
# With learned similarities there is no influence between the groups.

SimilarityDisplay.from_report(report)
plt.show()
