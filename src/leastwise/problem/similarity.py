"""How alike tasks are: three ways to a similarity matrix S for the task matrix ``B = sharing S + (1 - sharing) I``.

All ones for S is the usual model: one part common to all tasks, one part for each. It is hurt by tasks that have
nothing to do with the others, or the reverse of them. The identity is one model for each task.

``input_similarity``
    Compares where the inputs of two tasks lie, by their kernel mean embeddings. It needs no labels, so it cannot
    overfit, and cannot see tasks with equal inputs and opposite labels.

``correlation_similarity``
    Fits every task alone and correlates what these models say on all rows. Simple, but small tasks say little that
    is reliable: noise pulls their correlations to zero even where the truth is the same.

``learned_similarity``
    Asks which groups of tasks are best told by one model. With the tasks in groups, S is 1 within a group and 0
    between groups, so the groups are separate ridge models, and each is the mean of a Gaussian process whose
    covariance is its Gram matrix plus the ridge. The density of the targets under it, the *evidence*, compares
    groupings without held-out rows, which small tasks do not have. For a group with Gram matrix H,

        q = trace(Z' (H / rho + I)^-1 Z),   l = log det(H / rho + I)

    and the evidence of a grouping of n rows and c classes, at its best scale, is, up to a constant,

        -(c - 1) / 2 * (n log(sum of q) + sum of l).

    Groups grow from single tasks by joining, again and again, the two that gain most. By the Schur complement the
    q and l of two joined groups follow from the factor of one of them, so that all joins of a group with all others
    cost one triangular solve.

    The answer is not the best grouping but the mean of all groupings met on the way, from all alone to all
    together, weighted by evidence and prior: few rows give a soft S, many a sharp one, and a mean of groupings is
    always positive semi-definite with entries in [0, 1]. Three things keep it from seeing groups in noise:

    - The prior gives every *number* of groups the same weight, and shares that out over the groupings as a Chinese
      restaurant process does. There is one way to be all alone and one to be all together, but there are many
      ways in between, of which the search takes the best: without this prior, a correction for many comparisons,
      tasks that are all related, or all unrelated, were often split or joined by chance.
    - Labels are not Gaussian, least of all rare ones, so the evidence claims too much. Its logarithm is halved.
    - Targets enter as contrasts, ``Z - 1/c``. Rows of Z sum to 1 whatever the labels are; this constant would
      make unrelated tasks look alike.

    The ridge and the level of sharing were chosen for all tasks together, which is wrong when they do not belong
    together. So the mean runs over some ridges and levels as well. For the same reason sharing has to be chosen anew
    with the S found. The kernel's width should stay, and the ridge should not become smaller: S has seen the labels,
    so held-out scores with it flatter, and more so where the model can bend more.

``TASK_SIMILARITIES`` is the only list of the names that ``similarity=`` of many tasks takes beside "shared". A new
one is a function under a name::

    @register_task_similarity("sizes")
    def sizes(rows):
        n = np.bincount(rows.task)
        return np.minimum.outer(n, n) / np.maximum.outer(n, n)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, softmax

from leastwise.linalg.cholesky import Cholesky, cholesky

Array = np.ndarray

#: Levels of sharing within groups that are tried beside the given one.
LEVELS = (0.5, 0.9)

#: Ridges that are tried, as multiples of the given one.
RIDGES = (0.3, 1.0, 3.0)

#: Power of the evidence. At 1, Landmine's rare labels split related tasks by chance; at 1/3, groups were missed.
POWER = 0.5


#: With more tasks than this, learning their similarities takes too long.
MANY_TASKS = 300


@dataclass(frozen=True)
class ComparedRows:
    """What similarities of tasks are computed from, where a search with all tasks alike ended.

    Attributes
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix.
    Z : ndarray of shape (n, c)
        One-hot targets, or real ones.
    task : ndarray of int of shape (n,)
        Codes 0, ..., T - 1 of the tasks, each at least once.
    rho : float
        Ridge on the sum of losses.
    sharing : float
        The chosen sharing.
    root : ndarray of shape (n,), optional
        Square roots of the row weights, of mean weight 1.
    count : ndarray of shape (n,), optional
        How many observations each row stands for, one by default.
    """

    K: Array
    Z: Array
    task: Array
    rho: float
    sharing: float = 0.0
    root: Array | None = None
    count: Array | None = None


@dataclass(frozen=True)
class TaskSimilarity:
    """A rule that computes similarities of tasks.

    Attributes
    ----------
    name : str
    function : callable
        From :class:`ComparedRows` to a symmetric array of shape (T, T), in the order of the codes.
    covariance : bool
        The result is positive semi-definite and is taken for S as it is. Otherwise its entries are weights, 0 or
        more, of the differences of two tasks (``leastwise.problem.coupling.Pairwise``).
    max_tasks : int, optional
        The rule takes too long for more.
    """

    name: str
    function: Callable[[ComparedRows], Array]
    covariance: bool = False
    max_tasks: int | None = None


#: Rules that compute similarities of tasks, by name.
TASK_SIMILARITIES: dict[str, TaskSimilarity] = {}


def register_task_similarity(
    name: str, covariance: bool = False, max_tasks: int | None = None
) -> Callable[[Callable[[ComparedRows], Array]], Callable[[ComparedRows], Array]]:
    """Decorator that makes a function a value of ``similarity=``; options are fields of :class:`TaskSimilarity`."""

    def add(function: Callable[[ComparedRows], Array]) -> Callable[[ComparedRows], Array]:
        TASK_SIMILARITIES[name] = TaskSimilarity(name, function, covariance, max_tasks)
        return function

    return add


@register_task_similarity("learned", covariance=True, max_tasks=MANY_TASKS)
def _learned(rows: ComparedRows) -> Array:
    return learned_similarity(rows.K, rows.Z, rows.task, rows.rho, rows.sharing, rows.root, rows.count)


@register_task_similarity("correlation")
def _correlated(rows: ComparedRows) -> Array:
    return correlation_similarity(rows.K, rows.Z, rows.task, rows.rho, rows.root, rows.count)


@register_task_similarity("inputs")
def _alike_inputs(rows: ComparedRows) -> Array:
    return np.maximum(input_similarity(rows.K, rows.task, rows.root), 0)  # a kernel may be negative


def input_similarity(K: Array, task: Array, root: Array | None = None) -> Array:
    """Cosines between the kernel mean embeddings of the tasks' inputs.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix.
    task : ndarray of shape (n,)
        Codes 0, ..., T - 1 of the tasks, each at least once.
    root : ndarray of shape (n,), optional
        Square roots of the row weights.

    Returns
    -------
    ndarray of shape (T, T)
        Positive semi-definite, with unit diagonal; in [0, 1] where K is not negative.
    """
    member = np.equal.outer(np.arange(task.max() + 1), task).astype(K.dtype)
    if root is not None:
        member = member * root**2
    mean = member / member.sum(axis=1, keepdims=True)
    return _unit_diagonal(mean @ K @ mean.T)


def correlation_similarity(
    K: Array, Z: Array, task: Array, rho: float, root: Array | None = None, count: Array | None = None
) -> Array:
    """Correlations between what the tasks' own models say on all rows; negative ones count as zero.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix.
    Z : ndarray of shape (n, c)
        One-hot targets, or real ones.
    task : ndarray of shape (n,)
        Codes 0, ..., T - 1 of the tasks, each at least once.
    rho : float
        Ridge on the sum of losses, the same for every task's model.
    root : ndarray of shape (n,), optional
        Square roots of the row weights, of mean weight 1.
    count : ndarray of shape (n,), optional
        How many observations each row stands for, one by default; leave-one-out leaves out one of them.

    Returns
    -------
    ndarray of shape (T, T)
        Symmetric, with unit diagonal and entries in [0, 1]. Cutting off negative correlations may leave a matrix
        that is not positive semi-definite; then all entries off the diagonal shrink just as much as makes it so.

    Notes
    -----
    On its own rows a task's model speaks by its leave-one-out scores: fitted ones repeat the labels, noise included.
    """
    root = np.ones(len(K)) if root is None else root
    Z, _ = _contrasts(Z)
    count = np.ones(len(K)) if count is None else count
    said = [_own_scores(K, Z, task == t, rho, root, count) for t in range(task.max() + 1)]
    weight = (root**2 / np.sum(root**2))[:, None]
    centred = np.array([(np.sqrt(weight) * (F - np.sum(weight * F, axis=0))).ravel() for F in said])
    S = np.maximum(_unit_diagonal(centred @ centred.T), 0.0)
    excess = max(0.0, -float(np.linalg.eigvalsh(S)[0]))
    return (S + excess * np.eye(len(S))) / (1.0 + excess)


def learned_similarity(
    K: Array,
    Z: Array,
    task: Array,
    rho: float,
    sharing: float,
    root: Array | None = None,
    count: Array | None = None,
) -> Array:
    """How often two tasks share a group, over groupings weighted by their evidence.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix.
    Z : ndarray of shape (n, c)
        One-hot targets, or real ones.
    task : ndarray of shape (n,)
        Codes 0, ..., T - 1 of the tasks, each at least once.
    rho : float
        Ridge on the sum of losses, as chosen with all tasks in one group; others near it are tried too.
    sharing : float
        Share of the common part, chosen likewise; others are tried too.
    root : ndarray of shape (n,), optional
        Square roots of the row weights, of mean weight 1. A row of weight 0 counts as absent.
    count : ndarray of shape (n,), optional
        How many observations each row stands for; one by default.

    Returns
    -------
    ndarray of shape (T, T)
        Symmetric and positive semi-definite, with unit diagonal and entries in [0, 1].

    Notes
    -----
    The method is in the docstring of this module. Time is of the order of n^3 for each of the 6 to 9 settings tried,
    plus some tens of microseconds for each of T^2 pairs of tasks; memory a few times n^2. No random numbers are used;
    the order of the tasks matters only where two joins gain exactly the same.
    """
    root = np.ones(len(K)) if root is None else root
    K = K * np.multiply.outer(root, root)
    Z, degrees = _contrasts(Z)
    Z = root[:, None] * Z
    rows = [np.flatnonzero(task == t) for t in range(task.max() + 1)]
    size = float(np.sum((root > 0) if count is None else count[root > 0]))
    met: list[tuple[float, Array]] = []
    for factor in RIDGES:
        scaled = K / (factor * rho)
        for level in sorted({*LEVELS, sharing} - {0}):
            met.extend(_groupings(_Setting(scaled, Z, rows, level, size, degrees)))
    weight = softmax([score for score, _ in met])
    S = sum(w * np.equal.outer(label, label) for w, (_, label) in zip(weight, met, strict=True))
    return np.minimum(_unit_diagonal(np.asarray(S)), 1.0)


@dataclass(frozen=True)
class _Setting:
    """The data, at one ridge and one level of sharing.

    Attributes
    ----------
    K : ndarray of shape (n, n)
        Weighted kernel matrix divided by the ridge, so that the ridge is 1: then rows of weight 0 add nothing, and
        repeated rows are weights.
    Z : ndarray of shape (n, c)
        Weighted contrasts.
    rows : list of ndarray
        Rows of each task.
    level : float
        Sharing between tasks of one group.
    size : float
        Number of observations.
    degrees : int
        Number of independent columns of Z.
    """

    K: Array
    Z: Array
    rows: list[Array]
    level: float
    size: float
    degrees: int

    def evidence(self, misfit: Array, logdet: Array) -> Array:
        """Log-evidence at the best scale, up to a constant and tempered, from the sums of q and l over groups."""
        fit = self.size * np.log(np.maximum(misfit, np.finfo(float).tiny))
        return -0.5 * POWER * self.degrees * (fit + logdet)


@dataclass(frozen=True)
class _Group:
    """Tasks that share, with the factor of their Gram matrix plus ridge, and what their evidence is made of.

    Attributes
    ----------
    rows : list of ndarray
        Rows of each task in the group.
    gram : ndarray of shape (m, m)
        Kernel matrix of the group's rows times B.
    white : ndarray of shape (c, m)
        The targets in coordinates where the covariance is the identity.
    misfit, logdet : float
        The q and l of the module's docstring.
    """

    rows: list[Array]
    gram: Array
    factor: Cholesky
    white: Array
    misfit: float
    logdet: float

    @property
    def index(self) -> Array:
        """All rows of the group, task by task."""
        return np.concatenate(self.rows)


def _group(setting: _Setting, rows: list[Array]) -> _Group:
    """One group of the tasks that have these rows."""
    index = np.concatenate(rows)
    gram = setting.level * setting.K[np.ix_(index, index)]
    start = 0
    for own in rows:
        block = slice(start, start + len(own))
        gram[block, block] = setting.K[np.ix_(own, own)]  # within a task B is 1
        start += len(own)
    factor = cholesky(gram, ridge=1.0)
    white = factor.whiten(setting.Z[index].T)
    return _Group(rows, gram, factor, white, float(np.sum(white**2)), _logdet(factor))


def _joins(setting: _Setting, group: _Group, others: list[_Group]) -> Array:
    """What joining a group with each of the others adds to the sums of q and l: an array of shape (2, others).

    With the group known, the others' targets have as covariance the Schur complement, and as mean the group's
    prediction. So q of the joined rows is q of the group plus that of the others' residuals; likewise l.
    """
    index = np.concatenate([other.index for other in others])
    cross = group.factor.whiten(setting.level * setting.K[np.ix_(index, group.index)])
    residual = setting.Z[index] - cross @ group.white.T
    change, start = np.empty((2, len(others))), 0
    for j, other in enumerate(others):
        block = slice(start, start + len(other.gram))
        start = block.stop
        factor = cholesky(other.gram - cross[block] @ cross[block].T, ridge=1.0)
        misfit = np.sum(factor.whiten(residual[block].T) ** 2)
        change[:, j] = misfit - other.misfit, _logdet(factor) - other.logdet
    return change


def _groupings(setting: _Setting) -> Iterator[tuple[float, Array]]:
    """Groupings from all tasks alone to all together: log of evidence times prior, and a label for every task."""
    label = np.arange(len(setting.rows))
    groups = {t: _group(setting, [rows]) for t, rows in enumerate(setting.rows)}
    change = np.zeros((2, len(label), len(label)))
    for t in groups:
        _update(setting, change, groups, t, [u for u in groups if u > t])
    total = np.array([sum(g.misfit for g in groups.values()), sum(g.logdet for g in groups.values())])
    cycles = _log_cycle_numbers(len(label))
    while True:
        prior = sum(gammaln(len(g.rows)) for g in groups.values()) - cycles[len(groups)]
        yield float(setting.evidence(*total) + prior), label
        if len(groups) == 1:
            return
        first, second = _best_join(setting, groups, total, change)
        total = total + change[:, first, second]
        joined = groups[first].rows + groups.pop(second).rows
        groups[first] = _group(setting, joined)
        label = np.where(label == second, first, label)
        _update(setting, change, groups, first, [u for u in groups if u != first])


def _update(setting: _Setting, change: Array, groups: dict[int, _Group], t: int, others: list[int]) -> None:
    """Write what joins of group t with the others change, in both triangles."""
    if others:
        change[:, t, others] = _joins(setting, groups[t], [groups[u] for u in others])
        change[:, others, t] = change[:, t, others]


def _best_join(setting: _Setting, groups: dict[int, _Group], total: Array, change: Array) -> tuple[int, int]:
    """The two groups whose join has most evidence times prior."""
    alive = np.array(list(groups))
    one, two = np.triu_indices(len(alive), k=1)
    first, second = alive[one], alive[two]
    size = np.array([len(group.rows) for group in groups.values()])
    prior = gammaln(size[one] + size[two]) - gammaln(size[one]) - gammaln(size[two])
    gain = setting.evidence(*(total[:, None] + change[:, first, second])) + prior
    best = int(np.argmax(gain))
    return int(first[best]), int(second[best])


def _log_cycle_numbers(T: int) -> Array:
    """Logs of how many permutations of T things have 0, 1, ..., T cycles: Stirling numbers of the first kind.

    A Chinese restaurant process gives a grouping into k groups the weight of the product of (size - 1)!; these
    numbers are what that sums to over all groupings into k.
    """
    number = np.full(T + 1, -np.inf)
    number[0] = 0.0
    for m in range(T):
        with np.errstate(divide="ignore"):
            stay = np.log(m) + number
        number = np.logaddexp(np.append(-np.inf, number[:-1]), stay)
    return number


def _own_scores(K: Array, Z: Array, own: Array, rho: float, root: Array, count: Array) -> Array:
    """Scores on all rows of a model of the own rows only; on these, with one observation of each left out."""
    r = root[own]
    half = cholesky(K[np.ix_(own, own)] * np.multiply.outer(r, r), ridge=rho).inverse_factor()
    dual = half.T @ (half @ (r[:, None] * Z[own]))
    F = K[:, own] @ (r[:, None] * dual)
    seen = r > 0  # a row of weight 0 is left out as it is
    m = count[own][seen]
    pull = r[seen, None] * (np.sum(half**2, axis=0)[seen] / m + (1 - 1 / m) / rho)[:, None]
    F[np.flatnonzero(own)[seen]] = Z[own][seen] - dual[seen] / pull
    return F


def _contrasts(Z: Array) -> tuple[Array, int]:
    """Targets, and how many columns are independent.

    Class indicators less their mean over classes, which is the same in every row; quantities stay as they are.
    """
    c = Z.shape[1]
    return (Z - 1.0 / c, c - 1) if c > 1 and np.all(Z.sum(axis=1) == 1) else (Z, c)


def _logdet(factor: Cholesky) -> float:
    return 2.0 * float(np.sum(np.log(np.diagonal(factor.L))))


def _unit_diagonal(S: Array) -> Array:
    """Scale rows and columns to a diagonal of exactly 1; what is zero keeps zeros beside it."""
    size = np.sqrt(np.diagonal(S))
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    S = (S + S.T) / 2 * np.multiply.outer(scale, scale)
    np.fill_diagonal(S, 1.0)
    return S
