r"""Blends of many labels: held-out scores, their credibility, and the fit of all labels at once.

A blend has the parameters theta = (sharpness, power), see :mod:`leastwise.calibration.blend`. Label t has the
pair theta_t that minimises

    -log likelihood_t(theta_t)  +  pull / 2 (theta_t - theta_pool)' H (theta_t - theta_pool)    over theta_t >= 0,

where theta_pool is the best pair for all labels together, and H the Hessian of one entry there, averaged over all
entries. So ``pull`` is a number of rows: a label with few known rows stays close to the pooled pair. It is chosen by
the held-out scores too. The targets of the likelihood are smoothed like those of a single blend.

Labels of one model share its hyperparameters, so they have one credibility. The gain is then that of all labels with
pooled parameters, divided by the number of labels that carry the same information: the variance of a row's gain over
that of independent labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from leastwise.calibration.blend import RTOL, BinaryLikelihood, minimise, nonnegative_step, regularised
from leastwise.utils.hashing import row_hashes

Array = np.ndarray

#: ``pull`` is chosen from these. In the order of the fits, which start at the pooled parameters.
PULLS = (10_000.0, 1000.0, 100.0)
#: Pooled parameters are fitted to about this many entries: enough for two numbers.
ENTRIES = 100_000
#: Labels are fitted together in blocks of at most this many entries.
BLOCK = 250_000


@dataclass(frozen=True)
class LabelSample:
    """Held-out scores of n rows and T labels with O classes in all.

    Attributes
    ----------
    F : ndarray of shape (n, O)
        Scores; label t has the columns ``starts[t] ... starts[t + 1] - 1``.
    codes : ndarray of int of shape (n, T)
        Codes of the classes; -1 where a label is unknown.
    W : ndarray of shape (n, T)
        Weights; 0 where a label is unknown.
    starts : ndarray of int of shape (T + 1,)
    size : int
        Number of independent observations among the rows.
    counts : ndarray of shape (O,), optional
        Weight of every class, if it is known from more rows than these.
    """

    F: Array
    codes: Array
    W: Array
    starts: Array
    size: int
    counts: Array | None = None

    @property
    def n_labels(self) -> int:
        """Number of labels T."""
        return self.codes.shape[1]

    @property
    def binary(self) -> bool:
        """True if every label has two classes."""
        return bool(np.all(np.diff(self.starts) == 2))

    def by_width(self) -> Iterator[tuple[Array, Array]]:
        """Labels grouped by number of classes, with their columns, of shape (labels, classes)."""
        yield from by_width(self.starts)


def by_width(starts: Array) -> Iterator[tuple[Array, Array]]:
    """Labels grouped by number of classes, with their columns, of shape (labels, classes)."""
    widths = np.diff(starts)
    for width in np.unique(widths):
        labels = np.flatnonzero(widths == width)
        yield labels, starts[labels][:, None] + np.arange(width)


def class_counts(codes: Array, W: Array, starts: Array) -> Array:
    """Total weight of every class of every label, of shape (O,), over known entries."""
    known = W > 0
    where = np.broadcast_to(starts[:-1], known.shape)[known] + codes[known]
    return np.bincount(where, weights=W[known], minlength=int(starts[-1]))


@dataclass(frozen=True)
class Entries:
    """Known entries of labels with c classes: logits against the first class are ``base + theta[group] . A``.

    Attributes
    ----------
    A : ndarray of shape (2, c - 1, E)
    base, target : ndarray of shape (c - 1, E)
    w : ndarray of shape (E,)
    group : ndarray of int of shape (E,)
        The row of theta that holds the parameters of an entry.
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

    def minimise(self, start: Array) -> tuple[Array, Sequence[Array]]:
        """One pair of parameters for all entries of labels of two classes, of shape (1, 2), and the probabilities.

        Numbers instead of arrays of one or two entries: the fits of a search are small.
        """
        hit = self.target[0] > 0.5
        sign = np.where(hit, 1.0, -1.0)
        rest = np.where(hit, 1 - self.target[0], self.target[0])
        y = hit.astype(int)
        fit = BinaryLikelihood(sign * self.A[:, 0], sign * self.base[0], self.w, y, rest)
        theta, P = fit.minimise(tuple(start[0].tolist()), 1e-13)
        return np.array([theta]), [P[1:]]

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
    """Held-out scores with the fixed parts of the blends, and the fit of their parameters.

    Attributes
    ----------
    sample : LabelSample
    shares : ndarray of shape (O,)
        Class shares, which are also the scores far from all data.
    delta, floor : ndarray of shape (T,)
    size : ndarray of shape (T,)
        Number of independent observations of each label.
    use_power : bool
        False keeps the power at 0.
    """

    sample: LabelSample
    shares: Array
    delta: Array
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
        if len(parts) == 1 and len(parts[0].base) == 1 and self.use_power:
            theta, P = parts[0].minimise(first)
        else:
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
        """The pull with the least expected loss on new rows, estimated on about ``BLOCK`` entries.

        Takeuchi's information criterion: the loss on the rows of the fit plus its optimism.
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
        """The parameters of every group, and the probabilities of the entries of each part."""

        def value_at(theta: Array) -> tuple[Array, Sequence[Array]]:
            values, P = zip(*(part.at(theta) for part in parts), strict=True)
            return _total(values) + np.einsum("gi,ij,gj->g", theta - pool, pull, theta - pool) / 2, P

        def step_at(theta: Array, P: Sequence[Array]) -> tuple[Array, Array]:
            gradients, H = zip(*(part.slopes(p, len(theta)) for part, p in zip(parts, P, strict=True)), strict=True)
            gradient = _total(gradients) + (theta - pool) @ pull
            return gradient, nonnegative_step(gradient, _total(H) + pull, theta, self.use_power)

        return minimise(value_at, step_at, theta, rtol=RTOL, max_steps=50)

    def _widths(self) -> list[tuple[Array, Array]]:
        """Labels with two or more classes; with one class there is nothing to fit."""
        return [(labels, columns) for labels, columns in self.sample.by_width() if columns.shape[1] > 1]

    def _own(self, labels: Array, columns: Array) -> Entries:
        """Entries with one group for each label, and weights that sum to its size."""
        total = self.sample.W[:, labels].sum(axis=0, dtype=float)
        part = self._entries(labels, columns)
        return replace(part, w=part.w * (self.size[labels] / np.where(total > 0, total, 1))[part.group])

    def _entries(self, labels: Array, columns: Array, step: int = 1) -> Entries:
        """Known entries of these labels, every ``step``-th row of each, in float64 for scores of any precision.

        Rows are taken in the order of their scores, so that the result does not depend on the order of the data.
        """
        sample, n = self.sample, len(self.sample.codes)
        order = np.arange(n)
        if step > 1:
            ties = sample.W.sum(axis=1), row_hashes(sample.codes)
            order = np.lexsort((*ties, np.round(sample.F[:, 0].astype(float), 9)))
        rows = np.arange(0, n, step)[:, None] + labels % step
        valid, rows = rows < n, order[np.minimum(rows, n - 1)]
        known = valid & (sample.W[rows, labels] > 0)
        i, j = rows[known], np.nonzero(known)[1]
        t, k = labels[j], np.take(columns.T, j, axis=1)
        F, shares = sample.F[i, k].astype(float), self.shares.astype(float)
        small = shares * np.repeat(self.delta.astype(float), np.diff(sample.starts))
        log_score = np.log(np.maximum(F, 0) + small[k]) - np.log(shares)[k]
        base, floor = np.log(shares)[k], self.floor[t].astype(float)
        A = np.stack([F[1:] - F[0], log_score[1:] - log_score[0]])
        target = floor * shares[k[1:]] + (1 - floor) * (sample.codes[i, t] == np.arange(1, len(k))[:, None])
        return Entries(A, base[1:] - base[0], target, sample.W[i, t].astype(float), j)


def _total(parts: Iterable[Array]) -> Array:
    return np.sum(list(parts), axis=0)


def _expected_loss(parts: Sequence[Entries], theta: Array, P: Sequence[Array], pull: Array) -> float:
    """Takeuchi's criterion summed over groups; parameters at the bound zero do not vary with the rows."""
    pairs = list(zip(parts, P, strict=True))
    free = theta > 0
    both = free[:, :, None] & free[:, None, :]
    H = np.where(both, _total(part.slopes(p, len(theta))[1] for part, p in pairs) + pull, np.eye(2))
    J = np.where(both, _total(part.scatter(p, len(theta)) for part, p in pairs), 0)
    optimism = np.einsum("gij,gji->", np.linalg.inv(regularised(H)), J)
    return float(_total(part.at(theta)[0] for part in parts).sum() + optimism)
