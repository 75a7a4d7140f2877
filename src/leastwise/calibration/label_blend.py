r"""Held-out scores of many labels, with what is known of their rows.

Sharpness and power of many labels' blends, fitted to held-out scores by Newton's method, all labels at once.

See :mod:`leastwise.calibration.label_calibrators` for what they are. Label t has the pair theta_t that minimises

    -log likelihood_t(theta_t)  +  pull / 2 (theta_t - theta_pool)' H (theta_t - theta_pool)    over theta_t >= 0,

where theta_pool is the best pair for all labels together, and H the Hessian of one entry there, averaged over all of
them. So ``pull`` is a number of rows: a label with few known rows, or whose rows say little, keeps to what all labels
say together. How large it should be is a matter of how different the labels are, and is read from the held-out scores
too. The targets of the likelihood are smoothed as those of one blend are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from leastwise.utils.hashing import row_keys

Array = np.ndarray


@dataclass(frozen=True)
class LabelSample:
    """Held-out scores of n rows and T labels with O classes in all.

    Attributes
    ----------
    F : ndarray of shape (n, O)
        Scores; label t has the columns ``starts[t] ... starts[t + 1] - 1``.
    codes : ndarray of int of shape (n, T)
        Codes of the classes; -1 where a label is not known.
    W : ndarray of shape (n, T)
        Weights; 0 where a label is not known.
    starts : ndarray of int of shape (T + 1,)
    size : int
        Number of independent witnesses among the rows.
    counts : ndarray of shape (O,), optional
        Weight of every class, where it is known of more rows than these.
    """

    F: Array
    codes: Array
    W: Array
    starts: Array
    size: int
    counts: Array | None = None

    @property
    def n_labels(self) -> int:
        """T."""
        return self.codes.shape[1]

    @property
    def binary(self) -> bool:
        """Whether every label has two classes."""
        return bool(np.all(np.diff(self.starts) == 2))

    def by_width(self) -> Iterator[tuple[Array, Array]]:
        """Labels with equally many classes, and their columns, of shape (labels, classes)."""
        yield from by_width(self.starts)


def by_width(starts: Array) -> Iterator[tuple[Array, Array]]:
    """Labels with equally many classes, and their columns, of shape (labels, classes)."""
    widths = np.diff(starts)
    for width in np.unique(widths):
        labels = np.flatnonzero(widths == width)
        yield labels, starts[labels][:, None] + np.arange(width)


def class_counts(codes: Array, W: Array, starts: Array) -> Array:
    """Weight of every class of every label, of shape (O,), over known entries."""
    known = W > 0
    where = np.broadcast_to(starts[:-1], known.shape)[known] + codes[known]
    return np.bincount(where, weights=W[known], minlength=int(starts[-1]))


#: What ``pull`` is chosen from. In the order of the fits, which begin at the pooled parameters.
PULLS = (10_000.0, 1000.0, 100.0)

#: Pooled parameters are fitted to about so many entries: enough for two numbers.
ENTRIES = 100_000

#: Labels are fitted together as long as they have no more than so many entries.
BLOCK = 250_000


@dataclass(frozen=True)
class Entries:
    """Known entries of labels with c classes: logits against the first class are ``base + theta[group] . A``.

    Attributes
    ----------
    A : ndarray of shape (2, c - 1, E)
    base, target : ndarray of shape (c - 1, E)
    w : ndarray of shape (E,)
    group : ndarray of int of shape (E,)
        Whose parameters an entry has.
    """

    A: Array
    base: Array
    target: Array
    w: Array
    group: Array

    def at(self, theta: Array) -> tuple[Array, Array]:
        """The negative log-likelihood of each group, and the probabilities of all classes but the first."""
        sharpness, power = theta[0] if len(theta) == 1 else theta.T[:, self.group]
        L = self.base + sharpness * self.A[0] + power * self.A[1]
        top = np.maximum(L.max(axis=0), 0)
        P = np.exp(L - top)
        total = P.sum(axis=0) + np.exp(-top)
        loss = np.log(total) + top - (self.target * L).sum(axis=0)
        return self._sum(loss, len(theta)), P / total

    def slopes(self, P: Array, n_groups: int) -> tuple[Array, Array]:
        """Gradients, of shape (groups, 2), and Hessians, of shape (groups, 2, 2)."""
        a, b = self.A
        aP, bP = a * P, b * P
        a_mean, b_mean = aP.sum(axis=0), bP.sum(axis=0)
        aa, ab, bb = (aP * a).sum(axis=0), (aP * b).sum(axis=0), (bP * b).sum(axis=0)
        curves = (aa - a_mean**2, ab - a_mean * b_mean, bb - b_mean**2)
        gradient = [self._sum(x, n_groups) for x in self._gradients(P)]
        return np.stack(gradient, axis=1), self._matrices(curves, n_groups)

    def scatter(self, P: Array, n_groups: int) -> Array:
        """Sums of the outer squares of each entry's gradient, of shape (groups, 2, 2)."""
        a, b = self._gradients(P)
        return self._matrices((a * a, a * b, b * b), n_groups)

    def _gradients(self, P: Array) -> tuple[Array, Array]:
        residual = P - self.target
        return (residual * self.A[0]).sum(axis=0), (residual * self.A[1]).sum(axis=0)

    def _matrices(self, parts: Sequence[Array], n_groups: int) -> Array:
        aa, ab, bb = (self._sum(x, n_groups) for x in parts)
        return np.stack([aa, ab, ab, bb], axis=1).reshape(-1, 2, 2)

    def _sum(self, x: Array, n_groups: int) -> Array:
        if n_groups == 1:
            return np.sum(self.w * x, keepdims=True)
        return np.bincount(self.group, weights=self.w * x, minlength=n_groups)


@dataclass(frozen=True)
class BlendFit:
    """Held-out scores, with all that a blend has before its parameters are known.

    Attributes
    ----------
    sample : LabelSample
    shares : ndarray of shape (O,)
        Class shares, and the scores far from all data.
    doubt, floor : ndarray of shape (T,)
    size : ndarray of shape (T,)
        Number of independent witnesses of each label.
    use_power : bool
        Whether there is a power; it is 0 otherwise.
    """

    sample: LabelSample
    shares: Array
    doubt: Array
    floor: Array
    size: Array
    use_power: bool

    def pooled(self, first: Array) -> tuple[Array, Array]:
        """Parameters for all labels, of shape (1, 2), and the mean Hessian of an entry there, of shape (2, 2)."""
        step = max(1, round(np.count_nonzero(self.sample.W) / ENTRIES))
        parts = [self._entries(labels, columns, step) for labels, columns in self._widths()]
        weight = sum(part.w.sum() for part in parts)
        if not weight:
            return first, np.zeros((2, 2))
        theta, P = self._minimise(parts, first, first, np.zeros((2, 2)))
        return theta, _total(part.slopes(p, 1)[1][0] for part, p in zip(parts, P, strict=True)) / weight

    def each(self, pool: Array, H: Array, pull: float | None) -> Array:
        """Parameters of every label, of shape (T, 2)."""
        theta = np.repeat(pool, self.sample.n_labels, axis=0)
        if pull is None:
            pull = self._best_pull(pool, H)
        for labels, columns in self._widths():
            n_blocks = -(-len(labels) * len(self.sample.codes) // BLOCK)
            for block in np.array_split(np.arange(len(labels)), n_blocks):
                here = labels[block]
                theta[here] = self._minimise([self._own(here, columns[block])], theta[here], pool, pull * H)[0]
        return theta

    def _best_pull(self, pool: Array, H: Array) -> float:
        """Of ``PULLS``, the one with the least loss to be expected on new rows, from about ``BLOCK`` entries.

        Takeuchi's criterion: the loss of the rows that made the fit, and what it gained by having seen them.
        """
        step = max(1, round(np.count_nonzero(self.sample.W) / BLOCK))
        parts: list[Entries] = []
        n_groups = 0
        for labels, columns in self._widths():
            part = self._own(labels[::step], columns[::step])
            parts.append(replace(part, group=part.group + n_groups))
            n_groups += len(labels[::step])
        theta = np.repeat(pool, n_groups, axis=0)
        losses = []
        for pull in PULLS if parts else ():
            theta, P = self._minimise(parts, theta, pool, pull * H)
            losses.append(_expected_loss(parts, theta, P, pull * H))
        return PULLS[int(np.argmin(losses))] if losses else PULLS[0]

    def _minimise(
        self, parts: Sequence[Entries], theta: Array, pool: Array, pull: Array
    ) -> tuple[Array, Sequence[Array]]:
        """Newton's method for every group at once, each with its own line search; the problem is convex."""

        def at(theta: Array) -> tuple[Array, Sequence[Array]]:
            values, P = zip(*(part.at(theta) for part in parts), strict=True)
            return _total(values) + np.einsum("gi,ij,gj->g", theta - pool, pull, theta - pool) / 2, P

        value, P = at(theta)
        for _ in range(50):
            gradients, H = zip(*(part.slopes(p, len(theta)) for part, p in zip(parts, P, strict=True)), strict=True)
            gradient = _total(gradients) + (theta - pool) @ pull
            step = _quadratic_step(gradient, _total(H) + pull, theta, self.use_power)
            gain = -np.sum(gradient * step, axis=1)
            shrink = np.ones(len(theta))
            for _ in range(40):
                trial = theta + shrink[:, None] * step
                new, P = at(trial)
                worse = ~(new <= value - 1e-4 * shrink * gain + 1e-13 * np.abs(value))
                if not worse.any():
                    break
                shrink[worse] /= 2
            theta, value = trial, new
            if np.all(gain <= 1e-11 * np.abs(value)):
                break
        return theta, P

    def _widths(self) -> list[tuple[Array, Array]]:
        """Labels with two or more classes; where there is one, there is nothing to fit."""
        return [(labels, columns) for labels, columns in self.sample.by_width() if columns.shape[1] > 1]

    def _own(self, labels: Array, columns: Array) -> Entries:
        """Entries in which each label is a group, with weights that sum to its size."""
        total = self.sample.W[:, labels].sum(axis=0, dtype=float)
        part = self._entries(labels, columns)
        return replace(part, w=part.w * (self.size[labels] / np.where(total > 0, total, 1))[part.group])

    def _entries(self, labels: Array, columns: Array, step: int = 1) -> Entries:
        """Known entries of these labels, every ``step``-th row of each; in float64, whatever the scores are.

        Rows are counted in the order of their scores: in that of the data, another order would give other rows.
        """
        sample, n = self.sample, len(self.sample.codes)
        order = np.arange(n)
        if step > 1:
            ties = sample.W.sum(axis=1), row_keys(sample.codes)
            order = np.lexsort((*ties, np.round(sample.F[:, 0].astype(float), 9)))
        rows = np.arange(0, n, step)[:, None] + labels % step
        inside, rows = rows < n, order[np.minimum(rows, n - 1)]
        known = inside & (sample.W[rows, labels] > 0)
        i, j = rows[known], np.nonzero(known)[1]
        t, k = labels[j], np.take(columns.T, j, axis=1)
        F, shares = sample.F[i, k].astype(float), self.shares.astype(float)
        small = shares * np.repeat(self.doubt.astype(float), np.diff(sample.starts))
        log_score = np.log(np.maximum(F, 0) + small[k]) - np.log(shares)[k]
        base, floor = np.log(shares)[k], self.floor[t].astype(float)
        A = np.stack([F[1:] - F[0], log_score[1:] - log_score[0]])
        target = floor * shares[k[1:]] + (1 - floor) * (sample.codes[i, t] == np.arange(1, len(k))[:, None])
        return Entries(A, base[1:] - base[0], target, sample.W[i, t].astype(float), j)


def _total(parts: Iterable[Array]) -> Array:
    return np.sum(list(parts), axis=0)


def _ridge(H: Array) -> Array:
    """Next to nothing on the diagonals, so that every matrix has an inverse."""
    return H + (1e-12 * np.trace(H, axis1=1, axis2=2) + 1e-100)[:, None, None] * np.eye(2)


def _quadratic_step(gradient: Array, H: Array, theta: Array, use_power: bool) -> Array:
    """Steps to the minima of the quadratic models over theta >= 0: the best of inside, two sides and corner."""
    H = _ridge(H)
    (a, b), (x, y) = gradient.T, -theta.T
    aa, ab, bb = H[:, 0, 0], H[:, 0, 1], H[:, 1, 1]
    steps = [(x, y), (-(a + ab * y) / aa, y)]
    if use_power:
        det = aa * bb - ab**2
        det = np.where(det > 0, det, np.inf)
        steps += [(x, -(b + ab * x) / bb), ((ab * b - bb * a) / det, (ab * a - aa * b) / det)]
    S = np.array(steps)
    u, v = S[:, 0], S[:, 1]
    value = a * u + b * v + (aa * u**2 + bb * v**2) / 2 + ab * u * v
    value[(u < x) | (v < y)] = np.inf
    return S[value.argmin(axis=0), :, np.arange(len(theta))]


def _expected_loss(parts: Sequence[Entries], theta: Array, P: Sequence[Array], pull: Array) -> float:
    """Takeuchi's criterion summed over groups; parameters at zero do not move with the rows."""
    pairs = list(zip(parts, P, strict=True))
    free = theta > 0
    both = free[:, :, None] & free[:, None, :]
    H = np.where(both, _total(part.slopes(p, len(theta))[1] for part, p in pairs) + pull, np.eye(2))
    J = np.where(both, _total(part.scatter(p, len(theta)) for part, p in pairs), 0)
    seen = np.einsum("gij,gji->", np.linalg.inv(_ridge(H)), J)
    return float(_total(part.at(theta)[0] for part in parts).sum() + seen)
