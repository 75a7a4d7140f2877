"""
Risk and coverage: which rows to decide, and which to leave to a person
=======================================================================

Rows with low confidence can be left to a person. The curve shows the error rate of the accepted rows against their
fraction, in order of decreasing confidence.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from leastwise import LSPC, LSSVC, Abstaining
from leastwise.displays import RiskCoverageDisplay

X, y = load_digits(return_X_y=True)
X = X + np.random.default_rng(0).normal(scale=5, size=X.shape)
# In the order of the file later rows are of other writers; after shuffling, new rows have the same distribution.
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=900, random_state=0)
model = LSPC(random_state=0).fit(X_train, y_train)

# %%
# From the held-out predictions of the training rows; no other rows are needed. The band extends to the exact binomial
# bound: for a threshold fixed in advance the error is below it with a probability of 95 %. The bound does not hold
# for all thresholds simultaneously, so it is no guarantee for a threshold that is chosen from the curve.

display = RiskCoverageDisplay.from_heldout(model, y_train, bound=True, max_error=0.02)
plt.show()
print(f"rows accepted with 2 % of errors among them: {display.coverage_at(0.02):.0%}")
print(f"by the bound: {display.coverage_at(0.02, bound=True):.0%}")

# %%
# A threshold with a guarantee (the star): with a confidence of 95 % the error among accepted new rows is below 5 %.
# At the dot the held-out error itself is 5 %, which guarantees nothing.

careful = Abstaining(LSPC(random_state=0), max_error=0.05).fit(X_train, y_train)
RiskCoverageDisplay.from_heldout(careful, y_train, max_error=0.05)
plt.show()
sure = careful.accepts(X_test)
print(f"new rows accepted: {sure.mean():.0%}, errors among them: {1 - careful.score(X_test, y_test):.1%}")

# %%
# Several models on new rows. A smaller area means a better ranking of the rows.

other = LSSVC(random_state=0).fit(X_train, y_train)
display = RiskCoverageDisplay.from_estimator(model, X_test, y_test)
RiskCoverageDisplay.from_estimator(other, X_test, y_test, ax=display.ax_)
plt.show()
