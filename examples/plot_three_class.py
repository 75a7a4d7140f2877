"""
Three classes in the plane: figures 4 to 6 of the LSPC paper
============================================================

Section 3.1 of Sugiyama (2010) draws 200 points from three classes whose posterior is known, and compares the
estimates inside and outside of the region of the points. This example draws the same figures, and adds the
default of this library.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.distance import pdist

from leastwise import LSPC, KernelLogisticRegression
from leastwise.datasets import make_three_class, three_class_density, three_class_posterior
from leastwise.displays import PosteriorDisplay

NAMES = ["y = 1", "y = 2", "y = 3"]
REGION = ((-5, 5), (-5, 5))
BEYOND = ((-8, 8), (-8, 8))
X, y = make_three_class(200, random_state=0)

# %%
# The classes
# -----------
# Class-conditional densities (figure 4). The third class is two Gaussians, above and below the other two.

side = np.linspace(-6, 6, 150)
points = np.stack(np.meshgrid(side, side), axis=-1)
density = three_class_density(points.reshape(-1, 2)).reshape(150, 150, 3)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained", sharey=True)
for k, ax in enumerate(axes):
    surface = ax.contourf(side, side, density[..., k], levels=np.linspace(0, 0.16, 17), cmap="viridis")
    ax.set(title=f"p(x | {NAMES[k]})", xlabel="$x_1$", aspect="equal")
axes[0].set_ylabel("$x_2$")
figure.colorbar(surface, ax=axes, label="density")
plt.show()

# %%
# The methods
# -----------
# LSPC and LSPC(full) are set as in the paper: the ridge on the coefficients, the paper's grids of sigma
# (multiples of the median distance m) and lambda, two folds, negative scores clipped and the rest
# normalised. The paper does not name its criterion; accuracy is used here. Kernel logistic regression gets
# the same grids and folds and, as in the paper, no intercept. The last one is LSPC with its
# defaults: sigma and alpha chosen, and the scores calibrated, by exact leave-one-out.


def fitted(X, y):
    """Train every method."""
    m = np.median(pdist(X))
    grids = {
        "sigma": m * np.array([1 / 10, 1 / 5, 1 / 2, 2 / 3, 1, 3 / 2, 2, 5, 10]),
        "alpha": 10.0 ** np.array([-2, -1.5, -1, -0.5, 0]),
        "random_state": 0,
        "cv": 2,
    }
    paper = {**grids, "norm": "coefficients", "calibration": None, "scoring": "accuracy"}
    models = {
        "LSPC, paper": LSPC(**paper, basis="class"),
        "LSPC(full), paper": LSPC(**paper, basis="full"),
        "Kernel logistic": KernelLogisticRegression(**grids, bias=None),
        "LSPC, default": LSPC(random_state=0),
    }
    return {name: model.fit(X, y) for name, model in models.items()}


models = fitted(X, y)
posteriors = {"Truth": three_class_posterior, **{name: m.predict_proba for name, m in models.items()}}
for name, model in models.items():
    print(f"{name:<20} sigma {model.sigma_:6.3f}   alpha {model.alpha_:.2g}")

# %%
# The sample and the decisions
# ----------------------------
# The training points, and the most probable class in the background (figure 5).

colors = ["#0072B2", "#E69F00", "#009E73"]  # can be told apart by people who see no red or no green
line = np.linspace(*REGION[0], 200)
grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(2, 3, figsize=(10, 7), layout="constrained", sharex=True, sharey=True)
for ax, (name, posterior) in zip(axes.flat, posteriors.items(), strict=False):
    winner = posterior(grid).argmax(axis=1).reshape(200, 200)
    ax.contourf(line, line, winner, levels=[-0.5, 0.5, 1.5, 2.5], colors=colors, alpha=0.25)
    for k, marker in enumerate("osD"):
        ax.scatter(*X[y == k].T, s=10, marker=marker, color=colors[k], label=NAMES[k])
    ax.set(title=name, xlim=REGION[0], ylim=REGION[1], aspect="equal")
axes[1, 2].axis("off")
axes[1, 2].legend(*axes[0, 0].get_legend_handles_labels(), loc="center", markerscale=2)
plt.show()

# %%
# The probabilities
# -----------------
# Figure 6, on a larger square; the white frame is the paper's training region, [-5, 5]². Where there are
# points the posteriors are similar. Elsewhere they differ: the paper's LSPC extrapolates with high confidence; the
# default becomes less confident away from the data, and ends at the class frequencies.

figure, axes = plt.subplots(5, 3, figsize=(8, 12), layout="constrained", sharex=True, sharey=True)
for i, (name, posterior) in enumerate(posteriors.items()):
    display = PosteriorDisplay.from_function(posterior, BEYOND, names=NAMES, ax=axes[i], colorbar=False)
    axes[i, 0].set_ylabel(f"{name}\n$x_2$")
    for ax in axes[i]:
        ax.add_patch(plt.Rectangle((-5, -5), 10, 10, fill=False, ec="white", ls="--", lw=1))
        ax.set(xticks=[-5, 0, 5], yticks=[-5, 0, 5])
        ax.label_outer()
        if i:
            ax.set_title("")
figure.colorbar(display.surfaces_[-1], ax=axes, label="probability", shrink=0.4, ticks=np.linspace(0, 1, 6))
plt.show()

# %%
# Far away
# --------
# The mean of the largest class probability against the distance from the origin. The paper's LSPC ends one-hot: all
# scores go to zero, and normalisation makes the slowest one equal to one. (If all scores underflow, the class
# frequencies are used.) The default returns the class frequencies of the training points, whose largest is the dotted
# line, as soon as a point is farther from all training points than these are from each other. Kernel logistic
# regression, without an intercept, goes to one third for each class.

radius = np.linspace(0, 40, 161)
angle = np.linspace(0, 2 * np.pi, 72, endpoint=False)
ray = radius[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
figure, ax = plt.subplots(figsize=(8.5, 4), layout="constrained")
styles = [("#0072B2", "-"), ("#E69F00", "--"), ("#009E73", "-."), ("#D55E00", (0, (5, 1, 1, 1, 1, 1)))]
for (name, posterior), (color, dashes) in zip(list(posteriors.items())[1:], styles, strict=True):
    confidence = posterior(ray.reshape(-1, 2)).max(axis=1).reshape(len(radius), -1).mean(axis=1)
    ax.plot(radius, confidence, color=color, ls=dashes, lw=1.8, label=name)
ax.axhline(np.bincount(y).max() / len(y), color="0.3", ls=":", label="largest class share")
ax.set(xlabel="Distance from the origin", ylabel="Largest class probability", ylim=(0.3, 1.03))
figure.legend(loc="outside right upper")
plt.show()

# %%
# How far from the truth
# ----------------------
# Squared distance to the true posterior, averaged over five samples of 200: over the whole training region,
# including its corners without points, and over new points drawn like the training points. Kernel
# logistic regression is limited by the paper's grid, of which it chooses the smallest lambda.

new, _, truth = make_three_class(2000, random_state=1000, return_posterior=True)
coarse, coarse_truth = grid[::23], three_class_posterior(grid[::23])
distances = {name: [] for name in models}
for seed in range(5):
    for name, model in fitted(*make_three_class(200, random_state=seed)).items():
        region = np.sum((model.predict_proba(coarse) - coarse_truth) ** 2, axis=1).mean()
        drawn = np.sum((model.predict_proba(new) - truth) ** 2, axis=1).mean()
        distances[name].append((region, drawn))
print(f"{'':<20}{'[-5, 5]²':>10}{'new points':>12}")
for name, pairs in distances.items():
    region, drawn = np.mean(pairs, axis=0)
    print(f"{name:<20}{region:>10.4f}{drawn:>12.4f}")
