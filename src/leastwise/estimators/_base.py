"""What kernel classifiers have in common: validation at the edge, scores by chunks, output containers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from leastwise.basis import evaluate
from leastwise.estimators._checks import check_classes, check_groups, check_range, check_square, check_weights
from leastwise.folds import distinct_rows, fold_labels
from leastwise.kernels import Kernel, Precomputed, resolve_kernel
from leastwise.probability import Calibrator
from leastwise.selection.trial import Rows

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
class Training:
    """Validated training data: the rows that count, and where they stood; the tasks of all rows, if there are any."""

    rows: Rows
    classes: Array
    used: Array
    X: Any
    rng: np.random.Generator
    task: Array | None = None


@dataclass(frozen=True)
class Answer:
    """What a model says of some rows: scores, how far they are to be believed, and how they become probabilities.

    ``strange`` marks rows that have a calibrator of their own, ``stranger``: those of tasks that are not known.
    """

    F: Array
    trust: Array
    calibrator: Calibrator
    strange: Array | None = None
    stranger: Calibrator | None = None

    def proba(self) -> Array:
        """Probabilities, of shape (n, c)."""
        return self._calibrated(lambda c, rows: c.proba(self.F[rows], self.trust[rows]))

    def decision(self) -> Array:
        """Decision values, of shape (n,) with two classes (second minus first), else (n, c)."""
        D = self._calibrated(lambda c, rows: c.decision(self.F[rows], self.trust[rows]))
        return D[:, 1] - D[:, 0] if D.shape[1] == 2 else D

    def _calibrated(self, apply: Callable[[Calibrator, Any], Array]) -> Array:
        if self.strange is None or self.stranger is None or not self.strange.any():
            return apply(self.calibrator, slice(None))
        values = np.empty_like(self.F)
        values[~self.strange] = apply(self.calibrator, ~self.strange)
        values[self.strange] = apply(self.stranger, self.strange)
        return values


class KernelClassifier(ClassifierMixin, BaseEstimator):
    """Base of the kernel classifiers.

    A subclass stores, in ``fit``: ``classes_``, ``centers_`` (or ``center_indices_`` with a precomputed kernel),
    ``coef_``, ``intercept_``, ``sigma_`` and ``calibrator_``.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags

    # ------------------------------------------------------------------ fit

    def _training(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, kernel: Kernel, tasks: Any = None
    ) -> Training:
        """Validate, encode the classes, drop rows of weight zero, label the folds."""
        X, y, task = self._validated(X, y, tasks)
        check_classification_targets(y)
        check_range(X, kernel)
        if isinstance(kernel, Precomputed):
            check_square(X, type(self).__name__)
        w = check_weights(sample_weight, self.class_weight, X, y)
        used = np.flatnonzero((w / w.max()).astype(X.dtype) > 0)
        classes, codes = np.unique(y[used], return_inverse=True)
        check_classes(codes, classes)
        kept = X if len(used) == len(y) else X[used]
        if isinstance(kernel, Precomputed):
            kept = kept[:, used]
            kept = kept.toarray() if hasattr(kept, "toarray") else kept
        group = None if groups is None else check_groups(groups, len(y))[used]
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        copy = np.arange(len(used)) if isinstance(kernel, Precomputed) else distinct_rows(kept)
        task = None if task is None else self._used_tasks(task, used)
        own = None if task is None else task[used]
        if own is not None:  # a row of another task is another row
            copy = np.unique(copy * (int(own.max()) + 1) + own, return_inverse=True)[1]
        fold = self._fold_labels(codes, own, group, copy, used, len(y), int(rng.integers(2**31 - 1)))
        mass = float(w[used].mean())
        w = w[used] / mass
        w[np.abs(w - 1) < 1e-12] = 1
        group = copy if group is None else group
        rows = Rows(kept, codes, w.astype(X.dtype), fold, copy, group, mass, own)
        return Training(rows, classes, used, X, rng, task)

    def _validated(self, X: Any, y: Any, tasks: Any) -> tuple[Any, Array, Array | None]:
        """X and y as arrays, and the codes of the tasks, if there are any."""
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], accept_large_sparse=False
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
        if group is not None and len(np.unique(group)) < 2:
            raise ValueError("groups holds one group only: holding it out would leave nothing to train on.")
        if isinstance(cv, Iterable) and not isinstance(cv, str) and not hasattr(cv, "split"):
            labels = fold_labels(cv, np.zeros(n, dtype=int), None, copy, seed)[used]
        else:
            labels = fold_labels(cv, y, group, copy, seed, task)
        if len(np.unique(labels)) < 2:
            alike = len(np.unique(copy)) < 2
            raise ValueError(
                "All rows of X are equal: there is nothing to tell classes apart by, and no scale for sigma. (With "
                "cv=5 and a number for sigma every row gets the class shares.)"
                if alike
                else "cv holds out all rows that count at once, which leaves nothing to train on."
            )
        return labels

    def _resolve_kernel(self) -> Kernel:
        return resolve_kernel(self.kernel, self.degree, self.coef0)

    # -------------------------------------------------------------- predict

    def scores(self, X: Any) -> Array:
        """Raw scores, before any calibration.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows; with ``kernel="precomputed"`` the kernel between them and all training rows.

        Returns
        -------
        ndarray of shape (n, n_classes)
        """
        return self._answer(X).F

    def trust(self, X: Any) -> Array:
        """How far the scores of each row are to be believed, from 1 (among the training rows) to 0 (far from all).

        Returns
        -------
        ndarray of shape (n,)
            Ones where the model makes no difference: without calibration, with ``extrapolate=True``, and for kernels
            that are not functions of a distance.
        """
        return self._answer(X).trust

    def _answer(self, X: Any) -> Answer:
        """All that is to be said of rows that are not validated yet."""
        check_is_fitted(self)
        X = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=[self.coef_.dtype], accept_large_sparse=False
        )
        return Answer(*self._scores(X), self.calibrator_)

    def _scores(self, X: Any, task: Array | None = None) -> tuple[Array, Array]:
        """Scores and trust of validated rows."""
        check_range(X, self.kernel_)
        F, nearest = self._evaluate(X, task)
        F += self.intercept_
        if not np.isfinite(F).all():
            raise ValueError("Scores overflow on these rows: they are far larger than the training rows were.")
        reach = getattr(self, "reach_", None)
        return F, np.ones_like(nearest) if reach is None else reach.trust(nearest)

    def _evaluate(self, X: Any, task: Array | None) -> tuple[Array, Array]:
        """Scores without the intercept, and the distance to the nearest centre."""
        rows = getattr(self, "center_indices_", None)
        return evaluate(self.kernel_, self.sigma_, X, getattr(self, "centers_", None), rows, self.coef_)

    def decision_function(self, X: Any) -> Any:
        """Values that order the classes as the probabilities do.

        Log-probabilities up to a constant per row where the model is calibrated by a smooth family; the
        probabilities themselves with ``calibration="isotonic"`` and ``None``.

        Returns
        -------
        ndarray of shape (n,) with two classes (second minus first), else (n, n_classes)
        """
        D = self._answer(X).decision()
        return D if D.ndim == 1 else self._framed(D, X)

    def predict_proba(self, X: Any) -> Any:
        """Probability of every class, of shape (n, n_classes); the columns follow ``classes_``."""
        return self._framed(self._answer(X).proba(), X)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of ``predict_proba``."""
        with np.errstate(divide="ignore"):
            return self._framed(np.log(self._answer(X).proba()), X)

    def predict(self, X: Any) -> Array:
        """The most probable class."""
        best = self._answer(X).proba().argmax(axis=1)
        return self.classes_[best]

    # --------------------------------------------------------------- output

    def set_output(self, *, transform: str | None = None) -> KernelClassifier:
        """Choose what ``predict_proba`` and a multi-class ``decision_function`` return.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            Arrays, or a frame with one column per class (the word is scikit-learn's). None changes nothing.
        """
        if transform is not None:
            if transform not in ("default", "pandas", "polars"):
                raise ValueError(f"transform={transform!r} is not known: use 'default', 'pandas' or 'polars'.")
            self._sklearn_output_config = {"transform": transform}
        return self

    def _framed(self, values: Array, X: Any) -> Any:
        container = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        if container == "pandas":
            pandas = _extra("pandas")
            return pandas.DataFrame(values, columns=self.classes_, index=getattr(X, "index", None))
        if container == "polars":
            return _extra("polars").DataFrame(values, schema=[str(c) for c in self.classes_])
        return values

    calibrator_: Calibrator
    intercept_: Array
    sigma_: float
    kernel_: Kernel
    classes_: Array


def _extra(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f"This needs {name}: install it with  pip install 'leastwise[frames]'") from None
