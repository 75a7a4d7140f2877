"""
Missing labels
==============

Every row has twelve labels, whose boundaries are rotated step by step: neighbouring labels are similar, opposite ones
are contrary. More and more of the labels are hidden from training. ``MultiLabelLSPC`` uses every row for the labels
that are known. Coupled labels compensate for much of what is hidden; independent labels have only their own known
entries. Treating unknown as 0 trains on wrong labels.
"""

import matplotlib.pyplot as plt
import numpy as np

from leastwise import MultiLabelLSPC
from leastwise.datasets import make_rotated_labels
from leastwise.displays import SimilarityDisplay
from leastwise.metrics import label_log_loss

data = make_rotated_labels(n_labels=12, n_rows=1200, n_features=20, noise=0.1, random_state=0)
X, Y, X_test, Y_test = data.X[:200], data.Y[:200].astype(float), data.X[200:], data.Y[200:]
luck = np.random.default_rng(0).random(Y.shape)

shares = [0.0, 0.2, 0.4, 0.6]
methods = {
    "tied": lambda Z: MultiLabelLSPC(random_state=0).fit(X, Z),
    "each label alone": lambda Z: MultiLabelLSPC(sharing=0.0, random_state=0).fit(X, Z),
    "unknown taken for 0": lambda Z: MultiLabelLSPC(random_state=0).fit(X, np.nan_to_num(Z)),
}
losses = {name: [] for name in methods}
for share in shares:
    hidden = np.where(luck < share, np.nan, Y)
    for name, fit in methods.items():
        losses[name].append(label_log_loss(Y_test, fit(hidden).predict_proba(X_test)))

# %%
# The loss on new rows with all labels known.

fig, ax = plt.subplots(figsize=(6.4, 4))
styles = [("#0072B2", "o-"), ("#D55E00", "s--"), ("#009E73", "D-.")]  # told apart without red or green, too
for (name, values), (color, style) in zip(losses.items(), styles, strict=True):
    ax.plot(shares, values, style, color=color, label=name)
ax.axhline(label_log_loss(Y_test, data.posterior(X_test)), color="0.5", linestyle=":", label="the truth")
ax.set(xlabel="share of labels hidden", ylabel="log-loss on new rows", xticks=shares, ylim=(0, None))
ax.legend(frameon=False)
fig.tight_layout()

# %%
# The similarities learned from the known labels: neighbours are similar, opposite labels are contrary.

model = MultiLabelLSPC(random_state=0).fit(X, np.where(luck < 0.4, np.nan, Y))
SimilarityDisplay.from_estimator(model, order=range(12), title=f"learned relation (sharing {model.sharing_:g})")
plt.show()
