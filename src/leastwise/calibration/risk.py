r"""Selective prediction: error rates of confident decisions, their bounds, and thresholds that keep them low.

For decisions on held-out rows with confidences c_i and errors e_i, the error rate at a threshold t is that of rows
with ``c_i >= t``. Given the number n of these rows, the number of errors among them is binomial if rows are
independent. So the exact binomial tail tests whether the rate is above a limit, and its inverse is the bound of
Clopper and Pearson.

A threshold that is chosen on the same rows needs more than that. ``safe_threshold`` tests the thresholds of a grid,
which does not depend on the data, in a fixed sequence from high to low, and stops at the first failure (Angelopoulos
et al. 2021, *Learn then test*). The sequence starts at the highest threshold that accepts a given number of rows or
more. Up to three sequences start at different numbers of rows, each with its part of delta. If the error rate does
not fall as the threshold falls, the rate at the lowest threshold that passed is above the limit with a probability of
at most ``delta``. Proof: let t be the highest threshold of the grid with a rate above the limit. If enough rows are
accepted at t, a false result needs the sequence to pass there, and given the number of these rows that is an exact
test. If not, the sequence starts at a lower threshold s. Then fewer of the rows above s than usual are above t, and
more between the two, where errors are more frequent: it passes s even less often.

With groups or weights the test is a bet instead of the binomial tail: with ``Z_g = sum_(i in g) w_i (e_i - limit)
[c_i >= t]`` and M the largest weight of a group, the mean over some bets b of ``prod_g (1 - b Z_g / (M (1 -
limit)))`` has an expectation of at most 1 if the rate is above the limit, so that it exceeds 1 / delta with a
probability of at most ``delta`` (Waudby-Smith and Ramdas 2024). A group is one observation. That holds at every
threshold of the grid alone; where a sequence starts depends on the rows, so the whole procedure is slightly less than
exact in this case.

Hyperparameters that were chosen on the same rows make errors disappear. Their number (``hidden``, see
``hidden_errors`` of ``leastwise.model_selection.objective``) is added to the errors at every threshold: the binomial
tail is continued to fractions by the incomplete beta function, and a bet loses that many times more.

``Rule`` is the criterion of :class:`leastwise.Abstaining`, and the thresholds that follow from it.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import bdtr, betainc, betaincinv, logsumexp

Array = np.ndarray

#: Largest number of sequences of thresholds.
STARTS = 3
#: Thresholds from high to low: one minus the threshold grows geometrically from 1e-8 to 1, in 48 steps per decade.
STEPS = 48
GRID = 1 - 10.0 ** (-np.arange(8 * STEPS, -1, -1) / STEPS)
#: Bets, as fractions of the largest possible loss.
BETS = np.array([0.15, 0.35, 0.6, 0.85, 0.97])
#: Limits of two digits, 0.0001, 0.00011, ..., 0.99: one of them is proposed where the given one cannot be kept.
LIMITS = tuple(float(f"{digits}e{power}") for power in range(-5, -1) for digits in range(10, 100))
#: Largest number of points of a curve.
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
        Rows of a group are one observation.
    count : ndarray of shape (n,), optional
        Number of observations of each row, without groups; one each by default.
    hidden : float, default=0.0
        Errors that the choice of hyperparameters on these rows may have removed, in observations.
    """

    confidence: Array
    wrong: Array
    w: Array
    group: Array | None = None
    count: Array | None = None
    hidden: float = 0.0

    def __len__(self) -> int:
        return len(self.wrong)

    @cached_property
    def plain(self) -> bool:
        """True if all rows are independent observations of equal weight."""
        alone = self.group is None or len(np.unique(self.group)) == len(self)
        return bool(alone and (not len(self) or np.ptp(self.unit) <= 1e-9 * self.unit.max()))

    @cached_property
    def times(self) -> Array:
        """Number of observations of each group; a group given by the user is one."""
        return np.ones(int(self.member.max()) + 1) if self.count is None or self.group is not None else self.count

    @cached_property
    def unit(self) -> Array:
        """The weight of one observation of each row."""
        return self.w if self.count is None or self.group is not None else self.w / self.count

    def number(self, some: Array) -> int:
        """Number of observations of the selected rows."""
        return round(float(np.sum(self.times[self.member[some]]))) if self.count is not None else int(np.sum(some))

    @cached_property
    def member(self) -> Array:
        """Codes 0, 1, ... of the groups."""
        return np.arange(len(self)) if self.group is None else np.unique(self.group, return_inverse=True)[1]

    @cached_property
    def most(self) -> float:
        """The largest weight of a group, or of an observation without groups."""
        return float(np.bincount(self.member, weights=self.unit).max())

    @property
    def size(self) -> float:
        """The total weight in units of the largest group."""
        return float(self.w.sum() / self.most) if len(self) else 0.0

    def part(self, rows: Array) -> Decisions:
        """Some of the rows, with their share of the hidden errors."""
        group, count = (None if a is None else a[rows] for a in (self.group, self.count))
        hidden = self.hidden and self.hidden * float(self.w[rows].sum() / self.w.sum())
        return Decisions(self.confidence[rows], self.wrong[rows], self.w[rows], group, count, hidden)

    def against(self, level: Array) -> Decisions:
        """The same rows with confidence 0 if it reaches the level of the row, and -1 otherwise."""
        return replace(self, confidence=np.where(self.confidence >= level, 0.0, -1.0))

    def accepted(self, threshold: float) -> Array:
        """True for rows at or above the threshold."""
        return self.confidence >= threshold

    def p_value(self, threshold: float, limit: float) -> float:
        """The p-value of the hypothesis that the error rate of accepted rows is above the limit."""
        accepted = self.accepted(threshold)
        if not accepted.any():
            return 1.0
        if self.plain:
            return binomial_tail(self.number(self.wrong & accepted) + self.hidden, self.number(accepted), limit)
        excess = self.unit * accepted * (self.wrong - limit)
        lost = np.bincount(self.member, weights=excess) / (self.most * (1 - limit))
        capital = np.log1p(-BETS[:, None] * lost) @ self.times + self.hidden * np.log1p(-BETS)
        won = logsumexp(capital) - np.log(len(BETS))
        return float(np.exp(-max(won, 0.0)))

    def bound(self, threshold: float, delta: float) -> float:
        """Upper bound of the error rate at a given threshold; it is exceeded with probability delta at most."""
        accepted = self.accepted(threshold)
        n, k = self.number(accepted), self.number(self.wrong & accepted)
        if n == 0:
            return np.nan
        if self.plain:
            errors = k + self.hidden
            return 1.0 if errors >= n else float(betaincinv(errors + 1, n - errors, 1 - delta))
        low, high = 0.0, 1.0
        for _ in range(25):
            middle = (low + high) / 2
            low, high = (low, middle) if self.p_value(threshold, middle) <= delta else (middle, high)
        return high

    def error(self, threshold: float) -> float:
        """Weighted error rate of accepted rows; NaN if there are none."""
        accepted = self.accepted(threshold)
        return float(np.average(self.wrong[accepted], weights=self.w[accepted])) if accepted.any() else np.nan

    def coverage(self, threshold: float) -> float:
        """Weighted share of accepted rows."""
        return float(np.average(self.accepted(threshold), weights=self.w)) if len(self) else 0.0


@dataclass(frozen=True)
class RiskCoverage:
    """The risk-coverage curve of held-out rows: arrays of one length, from the highest threshold down.

    Attributes
    ----------
    threshold : ndarray
        Rows with at least this confidence are accepted.
    coverage : ndarray
        Share of accepted rows.
    error : ndarray
        Error rate of accepted rows.
    bound : ndarray
        Upper bound of the error rate, with the given confidence at each threshold alone.
    """

    threshold: Array
    coverage: Array
    error: Array
    bound: Array


def risk_coverage(decisions: Decisions, delta: float) -> RiskCoverage:
    """The risk-coverage curve at 200 thresholds at most; rows with a negative confidence are never accepted."""
    tried = np.unique(decisions.confidence[decisions.confidence >= 0])[::-1]
    if len(tried) > POINTS:
        tried = tried[np.unique(np.linspace(0, len(tried) - 1, POINTS).astype(int))]
    coverage, error = (np.array([f(t) for t in tried]) for f in (decisions.coverage, decisions.error))
    return RiskCoverage(tried, coverage, error, np.array([decisions.bound(t, delta) for t in tried]))


def binomial_tail(k: float, n: int, rate: float) -> float:
    """Probability of at most k errors in n observations at this error rate, continued to fractions of errors."""
    return 1.0 if k >= n else float(bdtr(k, n, rate)) if k == int(k) else float(betainc(n - k, k + 1, 1 - rate))


def rows_needed(limit: float, delta: float, plain: bool = True, hidden: float = 0.0) -> int:
    """Number of observations, all of them correct, that show an error rate below the limit."""
    if plain:
        n = int(np.ceil(np.log(delta) / np.log1p(-limit) - 1e-9))
        if not hidden:
            return n
        low, high = n, 2 * n
        while binomial_tail(hidden, high, limit) > delta:
            low, high = high, 2 * high
        return bisect_left(range(high), True, low, high, key=lambda n: binomial_tail(hidden, n, limit) <= delta)
    gain, loss, n = np.log1p(BETS * limit / (1 - limit)), hidden * np.log1p(-BETS), 1
    while logsumexp(n * gain + loss) - np.log(len(BETS)) < -np.log(delta):
        n = n + max(1, n // 50)
    return n


def starts(decisions: Decisions, limit: float, delta: float) -> tuple[Array, float]:
    """Shares of accepted rows at which the sequences start, and the delta of each; from the sample size alone."""
    count = 1
    for more in range(2, STARTS + 1):  # as many as have distinct starts
        if decisions.size >= rows_needed(limit, delta / more, decisions.plain, decisions.hidden) * 2 ** (more - 1):
            count = more
    first = rows_needed(limit, delta / count, decisions.plain, decisions.hidden) / max(decisions.size, 1)
    return first ** (1 - np.arange(count) / count) if first <= 1 else np.empty(0), delta / count


def safe_threshold(decisions: Decisions, limit: float, delta: float) -> float:
    """The lowest threshold with an error rate below the limit, with probability 1 - delta; inf if there is none."""
    parts, each = starts(decisions, limit, delta)
    if not len(parts):
        return np.inf
    order = np.argsort(decisions.confidence)
    below = np.searchsorted(decisions.confidence[order], GRID)  # number of rejected rows
    mass = np.append(np.cumsum(decisions.w[order][::-1])[::-1], 0)[below] / decisions.w.sum()
    first = [int(np.argmax(mass >= part - 1e-12)) for part in parts]
    return min(_descend(decisions, GRID[k:], below[k:], limit, each) for k in first)


def _descend(decisions: Decisions, thresholds: Array, below: Array, limit: float, delta: float) -> float:
    """The last threshold that passes, from high to low; inf if the first one fails."""
    passed = np.inf
    for k, threshold in enumerate(thresholds.tolist()):
        changed = k == 0 or below[k] < below[k - 1]  # the accepted rows
        if changed and decisions.p_value(threshold, limit) > delta:
            break
        passed = threshold
    return float(passed)


def smallest_limit(decisions: Decisions, delta: float) -> float | None:
    """The smallest of ``LIMITS`` that some threshold keeps; None if there is none."""
    kept = (limit for limit in LIMITS if np.isfinite(safe_threshold(decisions, limit, delta)))
    return next(kept, None)


# -------------------------------------------------------------------- the rule


@dataclass(frozen=True)
class Rule:
    """The criterion for accepting decisions: a largest error rate, a least confidence, or the cost of a rejection.

    ``max_miss`` limits the share of missed rows of classes, or of positive rows of labels, see
    :mod:`leastwise.calibration.misses`; it can stand alone.
    """

    max_error: float | None
    min_confidence: float | None
    cost: float | None
    confidence: float
    max_miss: Mapping[Any, float] | None = None

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in ("max_error", "min_confidence", "cost")}
        named = {name: value for name, value in given.items() if value is not None}
        if len(named) > 1 or not (named or self.max_miss):
            raise ValueError(
                f"Give one of max_error, min_confidence and cost, or max_miss, or both; got {named or 'none'}. For "
                "one error in a hundred accepted rows use max_error=0.01."
            )
        if self.max_miss is not None and not isinstance(self.max_miss, Mapping):
            raise ValueError(f"max_miss={self.max_miss!r} must map classes to limits, such as {{'fault': 0.01}}.")
        named |= {f"max_miss[{name!r}]": value for name, value in (self.max_miss or {}).items()}
        for name, value in {**named, "confidence": self.confidence}.items():
            open_ends = name.startswith(("max_", "confidence"))
            number = isinstance(value, Real) and not isinstance(value, bool)
            if not number or not (0 < value < 1 if open_ends else 0 <= value <= 1):
                ends = "above 0 and below 1" if open_ends else "from 0 to 1"
                raise ValueError(f"{name}={value!r} must be a number {ends}.")

    @property
    def delta(self) -> float:
        """The probability with which the limit may be exceeded."""
        return 1 - self.confidence

    def threshold(self, decisions: Decisions) -> float:
        """The confidence at or above which decisions are accepted; inf if none is."""
        if self.min_confidence is not None:
            return float(self.min_confidence)
        if self.cost is not None:  # strictly above 1 - cost
            return float(np.nextafter(1 - self.cost, np.inf))
        if self.max_error is None:  # max_miss alone
            return 0.0
        return safe_threshold(decisions, float(self.max_error), self.delta)

    def task_thresholds(self, decisions: Decisions, task: Array, count: int, common: float) -> tuple[Array, Array]:
        """Thresholds of the tasks and their guarantees; small tasks are pooled, or have the common threshold.

        Which tasks are pooled depends on numbers of rows only, so the guarantee holds for all of them together.
        """
        thresholds, promised = np.full(count, common), np.full(count, "none", dtype="<U8")
        if self.max_error is None:
            return thresholds, promised
        own = {t: decisions.part(np.flatnonzero(task == t)) for t in range(count)}
        large = [t for t, part in own.items() if self._enough(part)]
        small = np.setdiff1d(np.arange(count), large)
        together = decisions.part(np.flatnonzero(np.isin(task, small)))
        if self._enough(together):
            thresholds[small], promised[small] = self.threshold(together), "together"
        thresholds[large], promised[large] = [self.threshold(own[t]) for t in large], "own"
        return thresholds, promised

    def _enough(self, decisions: Decisions) -> bool:
        """True if these rows would prove the limit with all of them correct."""
        assert self.max_error is not None
        need = rows_needed(float(self.max_error), self.delta, decisions.plain, decisions.hidden)
        return len(decisions) > 0 and decisions.size >= need

    def outcome(self, decisions: Decisions, level: Array) -> tuple[float, float]:
        """Coverage of held-out rows with a threshold for each row, and the bound of their error rate."""
        shifted = decisions.against(level)
        return shifted.coverage(0.0), shifted.bound(0.0, self.delta)

    def warn_empty(self, decisions: Decisions, label: Any = None, others: int = 0) -> None:
        """Warn that nothing is accepted, of a label and some others, with the smallest limit that is possible."""
        of, nothing = "", "everything is rejected"
        if label is not None:
            of, nothing = f" of label {label!r}", "nothing is accepted for this label"
            nothing += f", nor for {others} other{'s' if others > 1 else ''}" if others else ""
        why = "is accepted" if self.max_miss else "reaches the required confidence"
        text = f"No held-out row{of} {why}: {nothing}."
        if self.max_error is not None:
            seen = f"{len(decisions)} held-out rows"
            seen += "" if decisions.plain else f" (about {decisions.size:.0f} independent observations)"
            need = rows_needed(float(self.max_error), self.delta, decisions.plain, decisions.hidden)
            text = (
                f"max_error={self.max_error:g} cannot be guaranteed with {seen}{of}: {nothing}. "
                f"{self._possible(decisions)} At least {need} held-out rows without an error are needed."
            )
        warnings.warn(text, UserWarning, stacklevel=4)

    def warn_misses(self, name: Any, limit: float, rows: Any, possible: float | None) -> None:
        """Warn that rows are accepted as one class only, with the smallest limit that would accept others.

        ``rows`` is the ``CalibrationSet`` of the held-out rows of the class.
        """
        name = name.item() if isinstance(name, np.generic) else name
        need = rows_needed(limit, self.delta, rows.group is None, rows.hidden)
        least = "" if possible is None else f" The smallest limit that they can guarantee is {possible:g}."
        text = (
            f"max_miss[{name!r}]={limit:g} cannot be guaranteed with {len(rows)} held-out rows of {name!r}: rows are "
            f"accepted as {name!r} only.{least} At least {need} held-out rows of {name!r} without a miss are needed."
        )
        warnings.warn(text, UserWarning, stacklevel=5)

    def warn_tasks(self, names: list) -> None:
        """Warn of tasks with all rows rejected."""
        shown = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        text = (
            f"max_error={self.max_error:g} cannot be guaranteed with the held-out rows of the tasks {shown}: all of "
            "their rows are rejected. A larger max_error, or by_task=False, which has one guarantee for all tasks "
            "together, would accept some."
        )
        warnings.warn(text, UserWarning, stacklevel=4)

    def _possible(self, decisions: Decisions) -> str:
        """Text that names the smallest limit that these rows can guarantee."""
        limit = smallest_limit(decisions, self.delta)
        if limit is None:
            return "There are too few rows for any limit."
        share = decisions.coverage(safe_threshold(decisions, limit, self.delta))
        possible = f"max_error={limit:g}, which would accept {share:.1%} of them"
        return f"The smallest limit that they can guarantee is {possible}."
