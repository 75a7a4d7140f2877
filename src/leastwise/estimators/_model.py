"""What all kernel models have in common: validation at the edge, folds, scores by chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from leastwise.estimators._checks import check_groups, check_range, check_square, choose
from leastwise.estimators._familiar import Familiar
from leastwise.estimators._html_repr import FittedRepr
from leastwise.model_selection.folds import (
    distinct_rows,
    fold_labels,
    is_leave_one_out,
    observation_counts,
    warn_of_copies,
)
from leastwise.problem.basis import evaluate
from leastwise.problem.kernels import Kernel, Precomputed, resolve_kernel
from leastwise.solvers.evaluator import Rows
from leastwise.utils.arrays import Away, bring, float_dtypes, foreign, here, is_finite, library, like
from leastwise.utils.random import generator, seed_of

Array = np.ndarray


def all_or_nothing(fit: Callable) -> Callable:
    """A fit that fails leaves the model as it was; one that succeeds leaves nothing of the last one."""

    @wraps(fit)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        for name in [name for name in before if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return wrapped


@dataclass(frozen=True)
class Targets:
    """What is to be learned.

    Attributes
    ----------
    codes : ndarray of int of shape (n,)
        Codes of the classes; zeros for quantities.
    classes : ndarray or None
        All classes, in order; None for quantities.
    values : ndarray of shape (n, outputs) or None
        What is fitted, where that is not 1 for the row's class and 0 for others.
    unit, offset : ndarray of shape (outputs,)
        What was subtracted from quantities, and what they were divided by then.
    flat : bool
        Whether the targets came as one column without being a table.
    """

    codes: Array
    classes: Array | None = None
    values: Array | None = None
    unit: Any = 1.0
    offset: Any = 0.0
    flat: bool = True


@dataclass(frozen=True)
class Training:
    """Validated training data: the rows that count, and where they stood; the tasks of all rows, if there are any.

    ``targets`` are those of the rows that count; ``kernel`` knows what it needs to know of them. ``seed`` comes from
    ``random_state``.
    """

    rows: Rows
    targets: Targets
    kernel: Kernel
    used: Array
    X: Any
    seed: int
    task: Array | None = None

    @property
    def classes(self) -> Array:
        """All classes, in order."""
        assert self.targets.classes is not None
        return self.targets.classes

    def rng(self, name: str) -> np.random.Generator:
        """The random numbers for one use, such as "centers"; see :mod:`leastwise.utils.random`."""
        return generator(name, self.seed)

    def here(self) -> Training:
        """The same with all rows in numpy's arrays, for fits that hold kernels of all of them."""
        return replace(self, rows=self.rows.here(), X=here(self.X))


def row_index(X: Any) -> Any:
    """The index of a pandas frame; None for all else."""
    return X.index if hasattr(X, "iloc") else None


def check_folds_exist(y: Array, group: Array | None) -> None:
    """Something has to be left when rows are held out."""
    if len(y) == 1:
        raise ValueError("n_samples=1: to hold out the only row leaves nothing to train on. Give more rows.")
    if group is not None and len(np.unique(group)) < 2:
        raise ValueError("groups holds one group only: holding it out would leave nothing to train on.")


class KernelModel(FittedRepr, Familiar, BaseEstimator):
    """Base of all kernel models.

    A subclass stores, in ``fit``: ``centers_`` (or ``center_indices_`` with a precomputed kernel), ``coef_``,
    ``intercept_``, ``sigma_`` and ``kernel_``.
    """

    #: What scikit-learn's validation is told of y.
    TARGET_CHECKS: ClassVar[dict[str, Any]] = {}
    #: Whether training rows of another library may stay where they are.
    STAYS: ClassVar[bool] = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags

    # ------------------------------------------------------------------ fit

    def _targets(self, y: Array, dtype: Any) -> Targets:
        """The targets of the rows that count."""
        raise NotImplementedError

    def _coded(self, y: Array, dtype: Any, known: Any) -> Targets:
        """The targets of rows of which it is known what there is: the classes, or the unit."""
        raise NotImplementedError

    def _check_targets(self, y: Array) -> None:
        """Refuse targets of another kind, before anything else is looked at."""

    def _weights(self, sample_weight: Any, X: Any, y: Array) -> Array:
        """Weights of the rows, or of all labels of the rows, not negative and not all zero."""
        raise NotImplementedError

    def _labelled(self, rows: Rows, W: Array, precomputed: bool) -> Rows:
        """Rows of many labels that have weights of their own."""
        raise NotImplementedError

    def _training(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, kernel: Kernel, tasks: Any = None
    ) -> Training:
        """Validate, encode the targets, drop rows of weight zero, label the folds."""
        y, sample_weight, groups, tasks = (bring(a) for a in (y, sample_weight, groups, tasks))
        stays = self.STAYS and foreign(X) and not isinstance(kernel, Precomputed)
        X, y, task = self._validated(X if stays else bring(X), y, tasks)
        X = Away(X) if stays else X
        self._check_targets(y)
        check_range(X, kernel)
        if isinstance(kernel, Precomputed):
            check_square(X, type(self).__name__)
        W = self._weights(sample_weight, X, y)
        return self._arranged(X, y, W, groups, kernel, task, count=observation_counts(sample_weight))

    def _arranged(
        self,
        X: Any,
        y: Array,
        W: Array,
        groups: Any,
        kernel: Kernel,
        task: Array | None = None,
        known: Any = None,
        count: Array | None = None,
    ) -> Training:
        """Validated rows with their weights: drop those of weight zero, label the folds.

        ``known`` is what is known of the targets beforehand, where the rows are some of many. ``count`` is the number
        of observations that each row stands for, None for one each.
        """
        w = W if W.ndim == 1 else W.mean(axis=1)
        if W.ndim == 2:  # a label of weight 0 is as good as unknown
            y = np.where(W > 0, y, -1)
        used = np.flatnonzero((w / w.max()).astype(X.dtype) > 0)
        targets = self._targets(y[used], X.dtype) if known is None else self._coded(y[used], X.dtype, known)
        kept = X if len(used) == len(y) else X.only(used) if isinstance(X, Away) else X[used]
        if isinstance(kernel, Precomputed):
            kept = kept[:, used]
            kept = kept.toarray() if hasattr(kept, "toarray") else kept
        seed = seed_of(self.random_state)
        whole = isinstance(kernel, Precomputed) and not isinstance(groups, str)  # there are no rows to compare
        copy = np.arange(len(used)) if whole else distinct_rows(kept)
        task = None if task is None else self._used_tasks(task, used)
        own = None if task is None else task[used]
        if own is not None:  # a row of another task is another row
            copy = np.unique(copy * (int(own.max()) + 1) + own, return_inverse=True)[1]
        count = None if count is None else count[used]
        if groups is None:
            group = None
            if self.cv is not None:
                warn_of_copies(kept, copy, targets.codes if targets.values is None else targets.values, count)
        elif isinstance(groups, str):
            group = choose("groups", groups, ["duplicates"]) and copy
        else:
            group = check_groups(groups, len(y))[used]
        draw = int(generator("folds", seed).integers(2**31 - 1))
        fold = self._fold_labels(targets.codes, own, group, copy, used, len(y), draw)
        mass = float(w[used].mean())
        w = w[used] / mass
        w[np.abs(w - 1) < 1e-12] = 1
        rows = Rows(kept, targets.codes, w.astype(X.dtype), fold, copy, group, mass, own, targets.values)
        rows = replace(rows, count=count, by_observation=group is None and is_leave_one_out(self.cv))
        if W.ndim == 2:
            rows = self._labelled(rows, (W[used] / mass).astype(X.dtype), isinstance(kernel, Precomputed))
        return Training(rows, targets, kernel.fitted(kept, rows.w), used, X, seed, task)

    def _validated(self, X: Any, y: Any, tasks: Any) -> tuple[Any, Array, Array | None]:
        """X and y as arrays, and the codes of the tasks, if there are any."""
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=float_dtypes(X),
            accept_large_sparse=False,
            **self.TARGET_CHECKS,
        )
        return X, y, None

    def _used_tasks(self, task: Array, used: Array) -> Array:
        """Codes of the tasks of the rows that count."""
        return task

    def _fold_labels(
        self, y: Array, task: Array | None, group: Array | None, copy: Array, used: Array, n: int, seed: int
    ) -> Array:
        """Labels of the rows that count. A list of splits speaks of all rows, a splitter is shown these alone."""
        cv = self.cv
        if cv is None:
            return np.arange(len(y))
        check_folds_exist(y, group)
        if isinstance(cv, Iterable) and not isinstance(cv, str) and not hasattr(cv, "split"):
            labels = fold_labels(cv, np.zeros(n, dtype=int), None, seed)[used]
        else:
            labels = fold_labels(cv, y, group, seed, task)
        if len(np.unique(labels)) < 2:
            raise ValueError("cv holds out all rows that count at once, which leaves nothing to train on.")
        return labels

    def _resolve_kernel(self) -> Kernel:
        return resolve_kernel(self.kernel, self.degree, self.coef0)

    # -------------------------------------------------------------- predict

    def _scores(self, X: Any, task: Array | None = None) -> tuple[Array, Array]:
        """Scores and trust of validated rows."""
        check_range(X, self.kernel_)
        F, nearest = self._evaluate(X, task)
        F += like(self._intercepts(task), F)
        if not is_finite(F):
            raise ValueError("Scores overflow on these rows: they are far larger than the training rows were.")
        reach = getattr(self, "reach_", None)
        return F, library(F).ones_like(nearest) if reach is None else reach.trust(nearest)

    def _intercepts(self, task: Array | None) -> Array:
        """The intercepts of all rows, or of each."""
        return self.intercept_

    def _evaluate(self, X: Any, task: Array | None) -> tuple[Array, Array]:
        """Scores without the intercept, and the distance to the nearest centre."""
        rows = getattr(self, "center_indices_", None)
        return evaluate(self.kernel_, self.sigma_, X, getattr(self, "centers_", None), rows, self.coef_)

    cv: Any
    kernel: Any
    degree: int
    coef0: float
    random_state: Any
    intercept_: Array
    sigma_: float
    kernel_: Kernel
