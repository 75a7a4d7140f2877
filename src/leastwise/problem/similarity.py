"""Similarity of tasks: three estimates of the matrix S in ``B = sharing S + (1 - sharing) I``.

S = 1 1' is the usual model: one part common to all tasks and one part for each task. It performs badly if some tasks
are unrelated to the others, or have reversed labels. S = I is one independent model for each task.

``input_similarity``
    Compares the input distributions of two tasks by their kernel mean embeddings. It uses no labels, so it cannot
    overfit, but it cannot distinguish tasks with equal inputs and opposite labels.

``correlation_similarity``
    Fits a model to each task and correlates the predictions of these models on all rows. It is simple, but unreliable
    for small tasks: noise pulls their correlations to zero even if the true functions are equal.

``learned_similarity``
    Estimates which groups of tasks are best described by one model. For given groups, S is 1 within a group and 0
    between groups. The groups are then separate ridge models, each the posterior mean of a Gaussian process whose
    covariance is its Gram matrix plus the ridge. The marginal likelihood of the targets, the *evidence*, compares
    groupings without held-out rows, which small tasks do not have. For a group with Gram matrix H,

        q = trace(Z' (H / rho + I)^-1 Z),   l = log det(H / rho + I)

    and the evidence of a grouping of n rows and c classes, at its best scale, is, up to a constant,

        -(c - 1) / 2 * (n log(sum of q) + sum of l).

    Groups are merged agglomeratively, starting from single tasks: each step joins the two groups that increase the
    evidence most. By the Schur complement, q and l of two joined groups follow from the factor of one of them, so
    that all joins of one group with the others cost one triangular solve.

    The result is not the best grouping but the average of all groupings on the path from single tasks to one group,
    weighted by evidence and prior: few rows give a soft S, many rows a sharp one, and an average of groupings is
    always positive semi-definite with entries in [0, 1]. Three measures prevent spurious groups:

    - The prior gives every *number* of groups the same weight, distributed over the groupings as by a Chinese
      restaurant process. There is one grouping into single tasks and one into a single group, but there are many
      in between, of which the search takes the best. Without this correction for multiple comparisons, tasks that are
      all related, or all unrelated, were often split or joined by chance.
    - Labels are not Gaussian, especially rare ones, so the evidence is overconfident. Its logarithm is halved.
    - Targets enter as contrasts, ``Z - 1/c``. Rows of Z sum to 1 for any labels; this constant would make unrelated
      tasks look similar.

    The ridge and the sharing were chosen for all tasks together, which is wrong if they are unrelated. So the average
    also runs over several ridges and levels of sharing. For the same reason sharing must be chosen again with the
    resulting S. The kernel width should be kept, and the ridge should not decrease: S was estimated from the labels,
    so held-out scores with it are optimistic, the more so the more flexible the model is.

``TASK_SIMILARITIES`` is the only list of the names that ``similarity=`` of many tasks takes besides "shared". A new
one is a registered function::

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

from leastwise.linalg.decompositions import Cholesky, cholesky

Array = np.ndarray

#: Levels of sharing within groups that are tried in addition to the given one.
LEVELS = (0.5, 0.9)

#: Ridges that are tried, as multiples of the given one.
RIDGES = (0.3, 1.0, 3.0)

#: Power of the evidence. With 1, the rare labels of Landmine split related tasks by chance; 1/3 missed groups.
POWER = 0.5


#: With more tasks than this, learning their similarities takes too long.
MANY_TASKS = 300


@dataclass(frozen=True)
class ComparedRows:
    """Input of the task similarities, at the hyperparameters that were chosen with all tasks equally similar.

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
        Number of observations that each row represents, by default 1.
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
        True if the result is positive semi-definite and used as S. Otherwise its entries are nonnegative weights of
        the differences between two tasks (``leastwise.problem.coupling.Pairwise``).
    max_tasks : int, optional
        Maximal number of tasks; the rule is too slow for more.
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
    """Decorator that registers a value of ``similarity=``; options are fields of :class:`TaskSimilarity`."""

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
    """Correlations between the predictions of the tasks' own models on all rows; negative ones become zero.

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
        Number of observations that each row represents, by default 1; leave-one-out deletes one of them.

    Returns
    -------
    ndarray of shape (T, T)
        Symmetric, with unit diagonal and entries in [0, 1]. If the matrix is not positive semi-definite after
        negative correlations were removed, its off-diagonal entries are shrunk just enough to make it so.

    Notes
    -----
    On the rows of its own task, a model predicts by leave-one-out: fitted scores would reproduce the noise of the
    labels.
    """
    root = np.ones(len(K)) if root is None else root
    Z, _ = _contrasts(Z)
    count = np.ones(len(K)) if count is None else count
    scores = [_own_scores(K, Z, task == t, rho, root, count) for t in range(task.max() + 1)]
    weight = (root**2 / np.sum(root**2))[:, None]
    centred = np.array([(np.sqrt(weight) * (F - np.sum(weight * F, axis=0))).ravel() for F in scores])
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
    """Probability that two tasks are in the same group, over groupings weighted by their evidence.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix.
    Z : ndarray of shape (n, c)
        One-hot targets, or real ones.
    task : ndarray of shape (n,)
        Codes 0, ..., T - 1 of the tasks, each at least once.
    rho : float
        Ridge on the sum of losses, chosen with all tasks in one group; others near it are tried, too.
    sharing : float
        Share of the common part, chosen in the same way; others are tried, too.
    root : ndarray of shape (n,), optional
        Square roots of the row weights, of mean weight 1. A row of weight 0 counts as absent.
    count : ndarray of shape (n,), optional
        Number of observations that each row represents, by default 1.

    Returns
    -------
    ndarray of shape (T, T)
        Symmetric and positive semi-definite, with unit diagonal and entries in [0, 1].

    Notes
    -----
    The method is in the docstring of this module. Time is of the order of n^3 for each of the 6 to 9 settings tried,
    plus some tens of microseconds for each of T^2 pairs of tasks; memory is a few times n^2. The result is
    deterministic; the order of the tasks matters only if two joins have exactly equal gains.
    """
    root = np.ones(len(K)) if root is None else root
    K = K * np.multiply.outer(root, root)
    Z, degrees = _contrasts(Z)
    Z = root[:, None] * Z
    rows = [np.flatnonzero(task == t) for t in range(task.max() + 1)]
    size = float(np.sum((root > 0) if count is None else count[root > 0]))
    found: list[tuple[float, Array]] = []
    for factor in RIDGES:
        scaled = K / (factor * rho)
        for level in sorted({*LEVELS, sharing} - {0}):
            found.extend(_groupings(_Setting(scaled, Z, rows, level, size, degrees)))
    weight = softmax([score for score, _ in found])
    S = sum(w * np.equal.outer(label, label) for w, (_, label) in zip(weight, found, strict=True))
    return np.minimum(_unit_diagonal(np.asarray(S)), 1.0)


@dataclass(frozen=True)
class _Setting:
    """The data, at one ridge and one level of sharing.

    Attributes
    ----------
    K : ndarray of shape (n, n)
        Weighted kernel matrix divided by the ridge, so that the ridge is 1: rows of weight 0 then have no effect, and
        weights are equivalent to repeated rows.
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
    """Tasks of one group, with the factor of their Gram matrix plus ridge and the terms of their evidence.

    Attributes
    ----------
    rows : list of ndarray
        Rows of each task in the group.
    gram : ndarray of shape (m, m)
        Kernel matrix of the group's rows times B.
    white : ndarray of shape (c, m)
        Whitened targets: their covariance is the identity.
    misfit, logdet : float
        q and l of the module docstring.
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
    """Changes of the sums of q and l if a group is joined with each of the others: an array of shape (2, others).

    Given the group, the targets of another one have the group's prediction as mean and the Schur complement as
    covariance. So q of the joined rows is q of the group plus that of the other's residuals, and likewise l.
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
    """Groupings from single tasks to one group: log of evidence times prior, and the group of every task."""
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
    """Store the changes from joining group t with the others, in both triangles."""
    if others:
        change[:, t, others] = _joins(setting, groups[t], [groups[u] for u in others])
        change[:, others, t] = change[:, t, others]


def _best_join(setting: _Setting, groups: dict[int, _Group], total: Array, change: Array) -> tuple[int, int]:
    """The two groups whose join has the largest evidence times prior."""
    alive = np.array(list(groups))
    one, two = np.triu_indices(len(alive), k=1)
    first, second = alive[one], alive[two]
    size = np.array([len(group.rows) for group in groups.values()])
    prior = gammaln(size[one] + size[two]) - gammaln(size[one]) - gammaln(size[two])
    gain = setting.evidence(*(total[:, None] + change[:, first, second])) + prior
    best = int(np.argmax(gain))
    return int(first[best]), int(second[best])


def _log_cycle_numbers(T: int) -> Array:
    """Logarithms of the numbers of permutations of T items with 0, 1, ..., T cycles (Stirling numbers, first kind).

    A Chinese restaurant process gives a grouping the weight of the product of (size - 1)! over its groups; these
    numbers are the sums of these weights over all groupings into k groups.
    """
    number = np.full(T + 1, -np.inf)
    number[0] = 0.0
    for m in range(T):
        with np.errstate(divide="ignore"):
            stay = np.log(m) + number
        number = np.logaddexp(np.append(-np.inf, number[:-1]), stay)
    return number


def _own_scores(K: Array, Z: Array, own: Array, rho: float, root: Array, count: Array) -> Array:
    """Scores on all rows of a model of the own rows; on the own rows by leave-one-out."""
    r = root[own]
    half = cholesky(K[np.ix_(own, own)] * np.multiply.outer(r, r), ridge=rho).inverse_factor()
    dual = half.T @ (half @ (r[:, None] * Z[own]))
    F = K[:, own] @ (r[:, None] * dual)
    seen = r > 0  # a row of weight 0 is never in training
    m = count[own][seen]
    pull = r[seen, None] * (np.sum(half**2, axis=0)[seen] / m + (1 - 1 / m) / rho)[:, None]
    F[np.flatnonzero(own)[seen]] = Z[own][seen] - dual[seen] / pull
    return F


def _contrasts(Z: Array) -> tuple[Array, int]:
    """Targets, and the number of independent columns.

    The mean over classes, equal in every row, is subtracted from class indicators; other targets are unchanged.
    """
    c = Z.shape[1]
    return (Z - 1.0 / c, c - 1) if c > 1 and np.all(Z.sum(axis=1) == 1) else (Z, c)


def _logdet(factor: Cholesky) -> float:
    return 2.0 * float(np.sum(np.log(np.diagonal(factor.L))))


def _unit_diagonal(S: Array) -> Array:
    """Scale rows and columns to a unit diagonal; rows with a zero on the diagonal become zero elsewhere."""
    size = np.sqrt(np.diagonal(S))
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    S = (S + S.T) / 2 * np.multiply.outer(scale, scale)
    np.fill_diagonal(S, 1.0)
    return S
