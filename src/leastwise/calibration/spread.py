r"""How large residuals are at a row: the scale of adaptive prediction intervals.

Residuals of one size everywhere give intervals of one width, too wide where the target is easy and too narrow where
it is hard. *Normalised* conformal prediction (Papadopoulos, Gammerman and Vovk 2008; Lei et al. 2018) divides the
absolute residual of each held-out row by a scale s(x), and multiplies the quantile of these ratios by the scale of
the new row. It covers as often as without a scale, for any scale that was estimated without the row; a better scale
makes coverage more even and intervals narrower.

The scale is a kernel average of absolute residuals, shrunk to their mean m by a few rows' weight::

    s(x) = (PRIOR m + sum_j k(x, c_j) a_j) / (PRIOR + sum_j k(x, c_j) b_j),

with ``a_j`` the sum of the absolute residuals of the rows that are nearest to knot ``c_j``, and ``b_j`` their number.
Leaving a row, or a group of rows, out of the scale subtracts it from ``a`` and ``b``, so held-out scales cost no more
than the scales themselves. Knots are predicted values (errors that grow with the level of the target) or centres of
the model (errors that differ between regions); the scale of held-out rows chooses between these, the bandwidth, and
no scale at all, by the gamma deviance ``log s + |r| / s``, which is least for the mean of ``|r|``.

Held-out predictions reveal their rows: leaving out a row with a large residual moves its prediction, in a direction
that the residual determines. (If the model is a mean, held-out predictions are a falling function of the targets.) So
the bandwidth of predictions is at least three times the distance that they move.

With tasks, the scale is multiplied by a factor of the task, its mean ratio of ``|r|`` to s, shrunk to 1 by kappa
rows' weight; kappa is chosen in the same way. No scale is used unless it improves the deviance by two standard
errors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.calibration.extrapolation import independent_weights
from leastwise.problem.basis import row_chunks
from leastwise.problem.kernels import RBF, Kernel, Laplace
from leastwise.utils.hashing import row_hashes

Array = np.ndarray

#: Weight of the mean in a local average, in rows.
PRIOR = 5.0
#: Largest numbers of knots among rows, of knots among predictions, and of rows that choose the scale.
KNOTS, LEVELS, SOME = 500, 100, 2000
#: With more rows in groups than this, scales of held-out rows include the row's own group.
GROUPED = 40_000
#: Bandwidths: the median over rows of the distance to the knot of these ranks, as shares of all knots.
RANKS = (0.02, 0.05, 0.1, 0.2, 0.4)
#: Weights of 1 in the factors of tasks, in rows.
KAPPAS = (2.0, 5.0, 10.0, 20.0, 50.0)
#: Least bandwidth of predictions, in units of how far leaving a row out moves its prediction.
MOVES = 3.0
#: Least number of independent rows, groups or tasks for a scale.
LEAST = 20
#: Standard errors by which a scale must improve the deviance.
ERRORS = 2.0


@dataclass(frozen=True, eq=False)
class ResidualRows:
    """Held-out rows from which a scale is estimated.

    Attributes
    ----------
    size : ndarray of shape (n, outputs)
        Absolute residuals.
    F : ndarray of shape (n, outputs)
        Held-out predictions.
    X : ndarray or sparse matrix of shape (n, d), or None
        Inputs; None if the kernel was precomputed.
    w : ndarray of shape (n,)
    group : ndarray of int of shape (n,) or None
        Rows that are left out together.
    count : ndarray of shape (n,) or None
        Number of observations of each row; one of them is left out.
    task : ndarray of int of shape (n,) or None
    moved : float
        Root mean square distance of F from the predictions of the model that was fitted to all rows.
    """

    size: Array
    F: Array
    X: Any
    w: Array
    group: Array | None = None
    count: Array | None = None
    task: Array | None = None
    moved: float = 0.0

    def __len__(self) -> int:
        return len(self.size)

    def part(self, rows: Array) -> ResidualRows:
        """Some of the rows."""
        names = ("size", "F", "X", "w", "group", "count", "task")
        some: dict[str, Any] = {
            name: None if (values := getattr(self, name)) is None else values[rows] for name in names
        }
        return replace(self, **some)

    @property
    def own(self) -> Array:
        """Weight that leaves with a row."""
        return self.w if self.count is None or self.group is not None else self.w / self.count

    def without_own(self, sums: Array) -> Array:
        """Sums over all rows (n, k), minus the part of the row's own group; ``sums`` are the parts of the rows."""
        if self.group is None:
            return sums.sum(axis=0) - sums * (self.own / self.w)[:, None]
        member = np.unique(self.group, return_inverse=True)[1]
        return sums.sum(axis=0) - _sums(sums, member, int(member.max()) + 1)[member]


@dataclass(frozen=True, eq=False)
class Spread:
    """A scale of residuals.

    Attributes
    ----------
    mean : ndarray of shape (outputs,)
        Mean absolute residual.
    by : {"mean", "prediction", "inputs"}
        What the scale depends on.
    kernel : Kernel or None
        Weights of the knots.
    bandwidth : float
    knots : array or None
        Of shape (k, outputs), predictions, or (k, d), inputs.
    total, mass : ndarray of shapes (k, outputs) and (k,), or None
        Weighted sums of absolute residuals and of rows at the knots.
    factor : ndarray of shape (T, outputs) or None
        Factors of the tasks.
    heldout : ndarray of shape (n, outputs)
        Scales of the held-out rows, estimated without them.
    """

    mean: Array
    by: str = "mean"
    kernel: Kernel | None = None
    bandwidth: float = 1.0
    knots: Any = None
    total: Array | None = None
    mass: Array | None = None
    factor: Array | None = None
    heldout: Any = None

    def __call__(self, X: Any, F: Array, task: Array | None = None) -> Array:
        """Scales of rows with these inputs, predictions and tasks (-1 for unseen tasks), of the shape of F."""
        scale = np.tile(self.mean, (len(F), 1))
        if self.kernel is not None and self.total is not None and self.mass is not None:
            at = F.astype(float) if self.by == "prediction" else X
            for part in row_chunks(len(F), len(self.mass), 8):
                K = self.kernel(at[part], self.knots, self.bandwidth).astype(float)
                scale[part] = (PRIOR * self.mean + K @ self.total) / (PRIOR + K @ self.mass)[:, None]
        if self.factor is not None and task is not None:
            scale *= np.where((task < 0)[:, None], 1.0, self.factor[task])
        return scale


# ------------------------------------------------------------------------- fitting


def fit_spread(
    rows: ResidualRows, kernel: Kernel | None = None, centers: Any = None, n_tasks: int = 0
) -> Spread | None:
    """The scale that describes held-out residuals best; None if none is clearly better than their mean.

    Parameters
    ----------
    rows : ResidualRows
    kernel : Kernel, optional
        Kernel of the model, which measures distances.
    centers : array or sparse matrix, optional
        Centres of the model; None leaves out scales by inputs.
    n_tasks : int
        Number of tasks with factors of their own.
    """
    rows = replace(rows, w=independent_weights(rows.w, rows.group, rows.count))
    mean = np.average(rows.size, axis=0, weights=rows.w) if len(rows) else np.zeros(1)
    if rows.w.sum() < LEAST or not (mean > 0).all():
        return None
    spread = _with_knots(Spread(mean, heldout=np.tile(mean, (len(rows), 1))), rows, kernel, centers)
    spread = _with_factors(spread, rows, n_tasks) if n_tasks else spread
    return None if spread.kernel is None and spread.factor is None else spread


def _heldout_means(rows: ResidualRows) -> Array:
    """The mean absolute residual of all other rows or groups, shrunk to that of all by ``PRIOR`` rows."""
    mean = np.average(rows.size, axis=0, weights=rows.w)
    mass = rows.without_own(rows.w[:, None])
    return (PRIOR * mean + rows.without_own(rows.w[:, None] * rows.size)) / (PRIOR + mass)


def _with_knots(spread: Spread, rows: ResidualRows, kernel: Kernel | None, centers: Any) -> Spread:
    """The best scale by prediction or by inputs, or the mean if none is clearly better."""
    some = rows if len(rows) <= SOME else rows.part(np.sort(np.argsort(_hashes(rows), kind="stable")[:SOME]))
    base = deviance(some.size, _heldout_means(some))
    best, gain = spread, 0.0
    for by, measure, knots in _knot_sets(rows, kernel, centers):
        at = some.F if by == "prediction" else some.X
        pairs = measure.pairs(at, knots)
        near = measure.distances(np.sort(np.asarray(pairs, dtype=float), axis=1))
        cell = np.asarray(pairs).argmin(axis=1)
        for rank in RANKS:
            width = float(np.median(near[:, int(np.ceil(rank * near.shape[1])) - 1]))
            if width <= (MOVES * rows.moved if by == "prediction" else 0):
                continue
            K = measure.values(pairs, width).astype(float)
            less = base - deviance(some.size, _heldout_averages(K, cell, some))
            if _clear(less, some) and (mean := float(np.average(less, weights=some.w))) > gain:
                best, gain = replace(spread, by=by, kernel=measure, bandwidth=width, knots=knots), mean
    return spread if best.kernel is None else _with_sums(best, rows)


def _knot_sets(rows: ResidualRows, kernel: Kernel | None, centers: Any) -> list[tuple[str, Kernel, Any]]:
    """Names, kernels and knots of the scales that are tried."""
    order = np.argsort(rows.F[:, 0], kind="stable")
    reached = np.cumsum(rows.w[order]) / rows.w.sum()
    at = order[np.minimum(np.searchsorted(reached, (np.arange(LEVELS) + 0.5) / LEVELS), len(order) - 1)]
    sets: list[tuple[str, Kernel, Any]] = [("prediction", RBF(), np.unique(rows.F[at].astype(float), axis=0))]
    if centers is not None and rows.X is not None:
        chosen = np.sort(np.unique(row_hashes(centers), return_index=True)[1][:KNOTS])
        measure = Laplace() if kernel is not None and isinstance(kernel.ruler, Laplace) else RBF()
        sets.append(("inputs", measure, centers[chosen]))
    return [(by, measure, knots) for by, measure, knots in sets if knots.shape[0] > 1]


def _heldout_averages(K: Array, cell: Array, rows: ResidualRows) -> Array:
    """Local averages without the row's own group; K (n, k) are the weights of the knots, ``cell`` the rows' knots."""
    parts = rows.w[:, None] * np.column_stack([np.ones(len(rows)), rows.size])
    sums = K @ _sums(parts, cell, K.shape[1])
    if rows.group is None:
        sums -= (K[np.arange(len(rows)), cell] * rows.own / rows.w)[:, None] * parts
    else:
        order = np.argsort(rows.group, kind="stable")
        for members in np.split(order, np.flatnonzero(np.diff(rows.group[order])) + 1):
            sums[members] -= K[np.ix_(members, cell[members])] @ parts[members]
    sums = np.maximum(sums, 0)
    return (PRIOR * _heldout_means(rows) + sums[:, 1:]) / (PRIOR + sums[:, :1])


def _with_sums(spread: Spread, rows: ResidualRows) -> Spread:
    """The sums at the knots, and the held-out scales, of all rows."""
    kernel = spread.kernel
    assert kernel is not None
    at = rows.F.astype(float) if spread.by == "prediction" else rows.X
    k = spread.knots.shape[0]
    cell, near = np.empty(len(rows), dtype=int), row_chunks(len(rows), k, 8)
    for part in near:
        cell[part] = np.asarray(kernel.pairs(at[part], spread.knots)).argmin(axis=1)
    parts = rows.w[:, None] * np.column_stack([np.ones(len(rows)), rows.size])
    sums = _sums(parts, cell, k)
    spread = replace(spread, total=sums[:, 1:], mass=sums[:, 0])
    if len(rows) <= (SOME if rows.group is None else GROUPED):
        K = kernel(at, spread.knots, spread.bandwidth).astype(float)
        return replace(spread, heldout=_heldout_averages(K, cell, rows))
    scale = spread(rows.X, rows.F)  # with many rows, one row or group hardly changes it
    return replace(spread, heldout=scale)


def _with_factors(spread: Spread, rows: ResidualRows, n_tasks: int) -> Spread:
    """The scale with factors of the tasks, if these are clearly better."""
    assert rows.task is not None
    known = np.flatnonzero(rows.task >= 0)
    some, ratio = rows.part(known), rows.size[known] / spread.heldout[known]
    assert some.task is not None
    parts = some.w[:, None] * np.column_stack([np.ones(len(known)), ratio])
    sums = _sums(parts, some.task, n_tasks)
    pair = some.task if some.group is None else some.task + n_tasks * some.group
    member = np.unique(pair, return_inverse=True)[1]
    own = parts * (some.own / some.w)[:, None] if some.group is None else _sums(parts, member, len(parts))[member]
    left = np.maximum(sums[some.task] - own, 0)
    base, best, gain = deviance(ratio, np.ones_like(ratio)), spread, 0.0
    for kappa in KAPPAS:
        factor = (kappa + left[:, 1:]) / (kappa + left[:, :1])
        less = base - deviance(ratio, factor)
        if _clear(less, some) and (mean := float(np.average(less, weights=some.w))) > gain:
            heldout = spread.heldout.copy()
            heldout[known] *= factor
            best = replace(spread, heldout=heldout, factor=(kappa + sums[:, 1:]) / (kappa + sums[:, :1]))
            gain = mean
    return best


def deviance(size: Array, scale: Array) -> Array:
    """Gamma deviance of every row, up to terms without the scale: ``log s + |r| / s``, the mean over outputs."""
    return np.mean(np.log(scale) + size / scale, axis=1)


def _clear(less: Array, rows: ResidualRows) -> bool:
    """True if the mean improvement exceeds two standard errors; a group is one observation."""
    mean = float(np.average(less, weights=rows.w))
    excess: Any = rows.w * (less - mean)
    if rows.group is not None:
        excess = np.bincount(np.unique(rows.group, return_inverse=True)[1], weights=excess)
    elif rows.count is not None:
        excess = excess / np.sqrt(rows.count)
    return mean > ERRORS * float(np.sqrt(np.sum(excess**2))) / float(rows.w.sum())


def _sums(parts: Array, code: Array, count: int) -> Array:
    """Sums of rows with the same code, of shape (count, k)."""
    return np.column_stack([np.bincount(code, weights=column, minlength=count) for column in parts.T])


def _hashes(rows: ResidualRows) -> Array:
    """Numbers that order rows by their contents."""
    return row_hashes(np.column_stack([rows.F, rows.size]) if rows.X is None or sparse.issparse(rows.X) else rows.X)
