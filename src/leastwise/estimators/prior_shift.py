"""Class shares of new rows, estimated from their predicted probabilities.

If a class has become more or less frequent, the mean of the predicted probabilities of new rows differs from the
class shares of the training rows. The maximum likelihood shares given these probabilities are found by expectation
maximisation: the probabilities are re-weighted by the shares, their mean is the next estimate of the shares, and so
on (Saerens, Latinne and Decaestecker 2002). This assumes that the distribution of rows within each class is unchanged
and that the probabilities were calibrated: with miscalibrated probabilities the estimate is biased.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.prior import read_prior
from leastwise.estimators.predicting import label_tables
from leastwise.utils.unwrap import core, own_params

__all__ = ["estimate_class_prior"]

Array = np.ndarray


def estimate_class_prior(
    model: Any, X: Any, *, train_prior: Any = None, max_iter: int = 1000, tol: float = 1e-6, **params: Any
) -> Any:
    """Class shares of new rows of unknown classes, for ``predict_proba(X, class_prior=...)``.

    Parameters
    ----------
    model : fitted classifier
        A classifier of leastwise, or a pipeline that ends in one, also inside ``Abstaining`` and ``Recalibrated``;
        any other classifier with ``train_prior``.
    X
        New rows, as in ``predict_proba`` of the model.
    train_prior : mapping, array-like or "uniform", optional
        Class shares of the training rows, if the model has no ``class_prior_``.
    max_iter : int, default=1000
        Largest number of iterations.
    tol : float, default=1e-6
        Stop when no share changes by more than this.
    **params
        Further parameters of ``predict_proba``: ``tasks``.

    Returns
    -------
    ndarray of shape (n_classes,)
        Shares in the order of ``classes_``. For many labels in the form of one row of ``predict_proba``.

    Notes
    -----
    The training shares count as one additional row, so that a few confident rows do not exclude a class.
    """
    check_is_fitted(model)
    P, inner = model.predict_proba(X, **own_params(model, params)), core(model)
    labels = getattr(inner, "label_index_", None)
    if labels is None:
        return most_likely_shares(np.asarray(P, dtype=float), _trained(inner, train_prior), max_iter, tol)
    if train_prior is not None:
        raise ValueError(
            "train_prior is for classifiers of one label: this model stores the class shares of its labels."
        )
    trained = label_tables(_as_rows(inner.class_prior_), labels.form)
    tables = label_tables(P, labels.form)
    found = [most_likely_shares(p, t[0], max_iter, tol) for p, t in zip(tables, trained, strict=True)]
    if labels.form == "flat":
        return found[0]
    return np.array([shares[1] for shares in found]) if labels.binary else found


def most_likely_shares(P: Array, trained: Array, max_iter: int = 1000, tol: float = 1e-6) -> Array:
    """Maximum likelihood shares of rows with probabilities P (n x c) under the shares ``trained``."""
    ratio, shares = P / trained, trained
    for _ in range(max_iter):
        joint = ratio * shares
        joint /= joint.sum(axis=1, keepdims=True)
        new = (joint.sum(axis=0) + trained) / (len(P) + 1)
        moved, shares = np.abs(new - shares).max(), new
        if moved <= tol:
            break
    return shares


def _trained(model: Any, train_prior: Any) -> Array:
    """Class shares of the training rows."""
    if train_prior is not None:
        return read_prior(train_prior, model.classes_, "train_prior")
    if not hasattr(model, "class_prior_"):
        raise ValueError(
            f"{type(model).__name__} does not store the class shares of its training rows: give them as train_prior=."
        )
    return model.class_prior_


def _as_rows(prior: Any) -> Any:
    return [p[None] for p in prior] if isinstance(prior, list) else prior[None]
