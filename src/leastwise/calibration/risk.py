r"""How many errors are among decisions that are confident enough: bounds, and thresholds that keep below a limit.

For decisions on held-out rows with confidences c_i and errors e_i, the error rate at a threshold t is that of rows
with ``c_i >= t``. Given how many these are, the number of errors among n of them is binomial if rows are independent,
so that the exact tail of the binomial tests whether the rate is above a limit, and Clopper and Pearson's bound is its
inverse.

A threshold that is chosen by the same rows needs more than that. ``safe_threshold`` tests the thresholds of a grid,
which does not depend on the data, in a fixed sequence from high to low, and stops where one fails (Angelopoulos et
al. 2021, *Learn then test*). The sequence starts at the highest threshold at which a given number of rows, or more,
are accepted. Up to three such sequences start at different numbers, each with its part of the doubt. If the error
rate does not fall as the threshold falls, the rate at the lowest threshold that passed is above the limit with a
probability of at most ``doubt``. For let t be the highest threshold of the grid with a rate above the limit. If
enough rows are accepted at t, then to go wrong the sequence has to pass there, and given how many rows these are that
is an exact test. If not, it starts at a lower one, s. Then fewer rows than usual are above t, of those above s, and
more between the two, where errors are more frequent: it passes s even less often.

Where rows come in groups, or have weights, the test is a bet in the place of the binomial tail: with
``Z_g = sum_(i in g) w_i (e_i - limit) [c_i >= t]`` and M the largest weight of a group, the mean over some bets b of
``prod_g (1 - b Z_g / (M (1 - limit)))`` has an expectation of at most 1 if the rate is above the limit, so that it
exceeds 1 / doubt with a probability of at most ``doubt`` (Waudby-Smith and Ramdas 2024). A group is one witness. That
holds at every threshold of the grid alone; where a sequence starts depends on the rows, so that the whole is a little
less than exact there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import bdtr, betaincinv, logsumexp

Array = np.ndarray

#: Sequences of thresholds, at most.
STARTS = 3
#: Thresholds, from high to low: the chance of an error grows from 1e-8 to 1 in even ratios.
STEPS = 48  # to ten times as much
GRID = 1 - 10.0 ** (-np.arange(8 * STEPS, -1, -1) / STEPS)
#: Bets, as parts of what may be lost at once.
BETS = np.array([0.15, 0.35, 0.6, 0.85, 0.97])
#: Points of a curve, at most.
POINTS = 200


@dataclass(frozen=True)
class Decisions:
    """Decisions on held-out rows.

    Attributes
    ----------
    confidence : ndarray of shape (n,)
    wrong : ndarray of bool of shape (n,)
    w : ndarray of shape (n,)
        Weights above 0.
    group : ndarray of int of shape (n,), optional
        Rows of a group are one witness.
    count : ndarray of shape (n,), optional
        How many observations each row stands for, where there are no groups; one each by default.
    """

    confidence: Array
    wrong: Array
    w: Array
    group: Array | None = None
    count: Array | None = None

    def __len__(self) -> int:
        return len(self.wrong)

    @cached_property
    def plain(self) -> bool:
        """Whether every row is a witness like any other."""
        alone = self.group is None or len(np.unique(self.group)) == len(self)
        return bool(alone and (not len(self) or np.ptp(self.unit) <= 1e-9 * self.unit.max()))

    @cached_property
    def times(self) -> Array:
        """How many observations each group stands for; a group of the user's is one."""
        return np.ones(int(self.member.max()) + 1) if self.count is None or self.group is not None else self.count

    @cached_property
    def unit(self) -> Array:
        """The weight of one observation of each row."""
        return self.w if self.count is None or self.group is not None else self.w / self.count

    def number(self, some: Array) -> int:
        """How many observations the marked rows stand for."""
        return round(float(np.sum(self.times[self.member[some]]))) if self.count is not None else int(np.sum(some))

    @cached_property
    def member(self) -> Array:
        """Codes 0, 1, ... of the groups."""
        return np.arange(len(self)) if self.group is None else np.unique(self.group, return_inverse=True)[1]

    @cached_property
    def most(self) -> float:
        """The largest weight of a group, or of an observation where there are none."""
        return float(np.bincount(self.member, weights=self.unit).max())

    @property
    def size(self) -> float:
        """How many groups of the largest weight there might be."""
        return float(self.w.sum() / self.most) if len(self) else 0.0

    def part(self, rows: Array) -> Decisions:
        """Some of the rows."""
        group, count = (None if a is None else a[rows] for a in (self.group, self.count))
        return Decisions(self.confidence[rows], self.wrong[rows], self.w[rows], group, count)

    def against(self, level: Array) -> Decisions:
        """The same rows with a confidence of 0 where it reaches the level of the row, and -1 elsewhere."""
        return replace(self, confidence=np.where(self.confidence >= level, 0.0, -1.0))

    def accepted(self, threshold: float) -> Array:
        """Which rows are confident enough."""
        return self.confidence >= threshold

    def doubt(self, threshold: float, limit: float) -> float:
        """The p-value of an error rate above the limit among the rows that are confident enough."""
        inside = self.accepted(threshold)
        if not inside.any():
            return 1.0
        if self.plain:
            return float(bdtr(self.number(self.wrong & inside), self.number(inside), limit))
        lost = np.bincount(self.member, weights=self.unit * inside * (self.wrong - limit)) / (self.most * (1 - limit))
        won = logsumexp(np.log1p(-BETS[:, None] * lost) @ self.times) - np.log(len(BETS))
        return float(np.exp(-max(won, 0.0)))

    def bound(self, threshold: float, doubt: float) -> float:
        """The error rate that is exceeded with this probability at most, where the threshold was not chosen by it."""
        inside = self.accepted(threshold)
        n, k = self.number(inside), self.number(self.wrong & inside)
        if n == 0:
            return np.nan
        if self.plain:
            return 1.0 if k == n else float(betaincinv(k + 1, n - k, 1 - doubt))
        low, high = 0.0, 1.0
        for _ in range(25):
            middle = (low + high) / 2
            low, high = (low, middle) if self.doubt(threshold, middle) <= doubt else (middle, high)
        return high

    def error(self, threshold: float) -> float:
        """The weighted error rate of the rows that are confident enough; NaN if none is."""
        inside = self.accepted(threshold)
        return float(np.average(self.wrong[inside], weights=self.w[inside])) if inside.any() else np.nan

    def coverage(self, threshold: float) -> float:
        """The weighted share of the rows that are confident enough."""
        return float(np.average(self.accepted(threshold), weights=self.w)) if len(self) else 0.0


@dataclass(frozen=True)
class RiskCoverage:
    """What every threshold would do to held-out rows: arrays of one length, from the highest threshold down.

    Attributes
    ----------
    threshold : ndarray
        Rows with at least this confidence are accepted.
    coverage : ndarray
        Share of rows that are accepted.
    error : ndarray
        Share of errors among them.
    bound : ndarray
        Upper bound of that, true with the given probability at each threshold alone.
    """

    threshold: Array
    coverage: Array
    error: Array
    bound: Array


def risk_coverage(decisions: Decisions, doubt: float) -> RiskCoverage:
    """The curve of errors against coverage, at 200 thresholds at most."""
    tried = np.unique(decisions.confidence)[::-1]
    if len(tried) > POINTS:
        tried = tried[np.unique(np.linspace(0, len(tried) - 1, POINTS).astype(int))]
    coverage, error = (np.array([f(t) for t in tried]) for f in (decisions.coverage, decisions.error))
    return RiskCoverage(tried, coverage, error, np.array([decisions.bound(t, doubt) for t in tried]))


def fewest(limit: float, doubt: float, plain: bool = True) -> int:
    """How many witnesses, all of them right, show that the error rate is below the limit."""
    if plain:
        return int(np.ceil(np.log(doubt) / np.log1p(-limit) - 1e-9))
    gain, n = np.log1p(BETS * limit / (1 - limit)), 1
    while logsumexp(n * gain) - np.log(len(BETS)) < -np.log(doubt):
        n = n + max(1, n // 50)
    return n


def starts(decisions: Decisions, limit: float, doubt: float) -> tuple[Array, float]:
    """Parts of the rows at which sequences start, and the doubt that each has; they depend on how many there are."""
    count = 1
    for more in range(2, STARTS + 1):  # as many as leave each a start of its own
        if decisions.size >= fewest(limit, doubt / more, decisions.plain) * 2 ** (more - 1):
            count = more
    first = fewest(limit, doubt / count, decisions.plain) / max(decisions.size, 1)
    return first ** (1 - np.arange(count) / count) if first <= 1 else np.empty(0), doubt / count


def safe_threshold(decisions: Decisions, limit: float, doubt: float) -> float:
    """The lowest threshold at which the error rate is below the limit but for this doubt; inf where there is none."""
    parts, each = starts(decisions, limit, doubt)
    if not len(parts):
        return np.inf
    order = np.argsort(decisions.confidence)
    below = np.searchsorted(decisions.confidence[order], GRID)  # so many rows are not accepted
    mass = np.append(np.cumsum(decisions.w[order][::-1])[::-1], 0)[below] / decisions.w.sum()
    first = [int(np.argmax(mass >= part - 1e-12)) for part in parts]
    return min(_descend(decisions, GRID[k:], below[k:], limit, each) for k in first)


def _descend(decisions: Decisions, thresholds: Array, below: Array, limit: float, doubt: float) -> float:
    """The last threshold that passes, of some from high to low; inf if the first one fails."""
    passed = np.inf
    for k, threshold in enumerate(thresholds.tolist()):
        other = k == 0 or below[k] < below[k - 1]  # rows than at the last one
        if other and decisions.doubt(threshold, limit) > doubt:
            break
        passed = threshold
    return float(passed)
