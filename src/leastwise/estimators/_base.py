"""What kernel classifiers have in common: classes, probabilities, output containers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from leastwise.calibration.calibrators import Calibrator
from leastwise.calibration.prior import Shift, read_prior
from leastwise.estimators._checks import check_classes, check_weights
from leastwise.estimators._model import KernelModel, Targets, row_index
from leastwise.estimators._sets import ClassSets
from leastwise.sources.dask import by_partition
from leastwise.utils.arrays import at_home, back_like, float_dtypes, here, library, numbers_like
from leastwise.utils.optional import frames

Array = np.ndarray


@dataclass(frozen=True)
class Answer:
    """What a model says of some rows: scores, how far they are to be believed, and how they become probabilities.

    ``strange`` marks rows that have a calibrator of their own, ``stranger``: those of tasks that are not known.
    ``task`` holds the codes of the tasks, ``shift`` leads to other class shares.
    """

    F: Array
    trust: Array
    calibrator: Calibrator
    strange: Array | None = None
    stranger: Calibrator | None = None
    task: Array | None = None
    shift: Shift | None = None

    def proba(self) -> Array:
        """Probabilities, of shape (n, c)."""
        P = self._calibrated(lambda c, rows: c.proba(self.F[rows], self.trust[rows]))
        return P if self.shift is None else self.shift.proba(P)

    def table(self) -> Array:
        """Values that order the classes as the probabilities do, of shape (n, c)."""
        if self.shift is not None:
            return self.shift.decision(replace(self, shift=None).proba())
        return self._calibrated(lambda c, rows: c.decision(self.F[rows], self.trust[rows]))

    def decision(self) -> Array:
        """Decision values, of shape (n,) with two classes (second minus first), else (n, c)."""
        D = self.table()
        return D[:, 1] - D[:, 0] if D.shape[1] == 2 else D

    def here(self) -> Answer:
        """The same in numpy's arrays."""
        return replace(self, F=here(self.F), trust=here(self.trust))

    def best(self) -> Array:
        """The number of the most probable class."""
        P = self.proba()
        return library(P).argmax(P, axis=1)

    def _calibrated(self, apply: Callable[[Calibrator, Any], Array]) -> Array:
        if self.strange is None or self.stranger is None or not self.strange.any():
            return apply(self.calibrator, ...)
        if not at_home(self.F):  # all rows in both ways: there is no writing to some of them by number
            strange = library(self.F).astype(numbers_like(self.strange.astype(int), self.F), library(self.F).bool)
            known, other = apply(self.calibrator, ...), apply(self.stranger, ...)
            return library(self.F).where(strange[:, None], other, known)
        values = np.empty_like(self.F)
        values[~self.strange] = apply(self.calibrator, ~self.strange)
        values[self.strange] = apply(self.stranger, self.strange)
        return values


def container_of(model: Any) -> str:
    """What ``set_output`` asked for."""
    return getattr(model, "_sklearn_output_config", {}).get("transform", "default")


def logarithm(P: Any) -> Any:
    """Of probabilities, in whatever library."""
    return library(P).log(P)


class KernelClassifier(ClassifierMixin, ClassSets, KernelModel):
    """Base of the kernel classifiers. A subclass stores ``classes_`` and ``calibrator_`` too."""

    def _check_targets(self, y: Array) -> None:
        check_classification_targets(y)

    def _weights(self, sample_weight: Any, X: Any, y: Array) -> Array:
        return check_weights(sample_weight, self.class_weight, y)

    def _targets(self, y: Array, dtype: Any) -> Targets:
        classes, codes = np.unique(y, return_inverse=True)
        check_classes(codes, classes)
        return self._coded(codes, dtype, classes)

    def _coded(self, y: Array, dtype: Any, known: Any) -> Targets:
        return Targets(y, known)

    @by_partition
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

    @by_partition
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
        checks = {"accept_sparse": "csr", "accept_large_sparse": False}
        X = validate_data(self, X, reset=False, dtype=float_dtypes(X, self.intercept_.dtype), **checks)
        return Answer(*self._scores(X), self.calibrator_)

    def _shift(self, class_prior: Any) -> Shift | None:
        """From the class shares of the training rows to those that were asked for; None where none were."""
        if class_prior is None:
            return None
        check_is_fitted(self)
        new = read_prior(class_prior, self.classes_)
        return Shift(new, self.class_prior_, np.array([0, len(new)]))

    def _asked(self, X: Any, class_prior: Any) -> Answer:
        """The answer under these class shares, which are looked at first."""
        shift = self._shift(class_prior)
        return replace(self._answer(X), shift=shift)

    @by_partition
    def decision_function(self, X: Any, *, class_prior: Any = None) -> Any:
        """Values that order the classes as the probabilities do.

        Log-probabilities up to a constant per row where the model is calibrated by a smooth family; the
        probabilities themselves with ``calibration="isotonic"`` and ``None``. Log-probabilities with ``class_prior``.

        Returns
        -------
        ndarray of shape (n,) with two classes (second minus first), else (n, n_classes)
        """
        D = self._asked(X, class_prior).decision()
        return D if D.ndim == 1 else self._framed(D, X)

    @by_partition
    def predict_proba(self, X: Any, *, class_prior: Any = None) -> Any:
        """Probability of every class, of shape (n, n_classes); the columns follow ``classes_``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
        class_prior : mapping, Series, array-like of shape (n_classes,) or "uniform", optional
            Class shares where the model is used, if they differ from those that it was trained on
            (``class_prior_``): a mapping of classes to shares, or an array in the order of ``classes_``. See
            :mod:`leastwise.calibration.prior`, and :func:`leastwise.estimate_class_prior` for shares that are not
            known.
        """
        return self._framed(self._asked(X, class_prior).proba(), X)

    @by_partition
    def predict_log_proba(self, X: Any, *, class_prior: Any = None) -> Any:
        """Logarithm of ``predict_proba``."""
        with np.errstate(divide="ignore"):
            return self._framed(logarithm(self._asked(X, class_prior).proba()), X)

    @by_partition
    def predict(self, X: Any, *, class_prior: Any = None) -> Array:
        """The most probable class; ``class_prior`` as in ``predict_proba``."""
        return self._decided(self._asked(X, class_prior))

    def _decided(self, answer: Answer) -> Array:
        """The most probable classes; numbers in the library of the rows, words in numpy's."""
        best = answer.best()
        return back_like(self.classes_[here(best)], best)

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

    def _framed(self, values: Array, X: Any, classes: Any = None) -> Any:
        classes = self.classes_ if classes is None else classes
        values = values if container_of(self) == "default" else here(values)
        container = container_of(self)
        if container == "pandas":
            pandas = frames("pandas")
            return pandas.DataFrame(values, columns=classes, index=row_index(X))
        if container == "polars":
            return frames("polars").DataFrame(values, schema=[str(c) for c in classes])
        return values

    calibrator_: Calibrator
    classes_: Any
    class_prior_: Any
    class_weight: Any
