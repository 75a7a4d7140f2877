"""Class shares of new rows, from their predictions alone.

Where a class has become more or less frequent, the probabilities of new rows tell: their mean is no longer the class
shares of the training rows. The most likely new shares, given these probabilities, are found by expectation
maximisation: the probabilities are re-weighted by the shares, their mean is the next guess of the shares, and so on
(Saerens, Latinne and Decaestecker 2002). It supposes that rows of a class look as they did, and that the
probabilities were right before: with probabilities that are not calibrated it is as wrong as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.prior import read_prior
from leastwise.estimators.sets import label_tables
from leastwise.utils.unwrap import core, own_params

__all__ = ["estimate_class_prior"]

Array = np.ndarray


def estimate_class_prior(
    model: Any, X: Any, *, train_prior: Any = None, max_iter: int = 1000, tol: float = 1e-6, **params: Any
) -> Any:
    """Class shares of new rows whose classes are not known, for ``predict_proba(X, class_prior=...)``.

    Parameters
    ----------
    model : fitted classifier
        Of this library, or a pipeline that ends in one, within ``Abstaining`` and ``Recalibrated`` too; any other
        with ``train_prior``.
    X
        New rows, as the model takes them.
    train_prior : mapping, array-like or "uniform", optional
        Class shares that the model was trained on, where it does not know them (``class_prior_``).
    max_iter : int, default=1000
        Number of passes at most.
    tol : float, default=1e-6
        Passes end when no share changes by more.
    **params
        What else ``predict_proba`` takes: ``tasks``.

    Returns
    -------
    ndarray of shape (n_classes,)
        Shares in the order of ``classes_``. Of many labels: as ``predict_proba`` gives them, without the rows.

    Notes
    -----
    The training shares count as one more row, so that a few new rows, however sure, do not exclude a class.
    """
    check_is_fitted(model)
    P, inner = model.predict_proba(X, **own_params(model, params)), core(model)
    labels = getattr(inner, "label_index_", None)
    if labels is None:
        return most_likely_shares(np.asarray(P, dtype=float), _trained(inner, train_prior), max_iter, tol)
    if train_prior is not None:
        raise ValueError("train_prior is for classifiers of one label: this model knows the shares of its labels.")
    trained = label_tables(_as_rows(inner.class_prior_), labels.form)
    tables = label_tables(P, labels.form)
    found = [most_likely_shares(p, t[0], max_iter, tol) for p, t in zip(tables, trained, strict=True)]
    if labels.form == "flat":
        return found[0]
    return np.array([shares[1] for shares in found]) if labels.binary else found


def most_likely_shares(P: Array, trained: Array, max_iter: int = 1000, tol: float = 1e-6) -> Array:
    """The shares under which rows with probabilities P (n x c), made for the shares ``trained``, are most likely."""
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
    """Class shares that the model was trained on."""
    if train_prior is not None:
        return read_prior(train_prior, model.classes_, "train_prior")
    if not hasattr(model, "class_prior_"):
        raise ValueError(
            f"{type(model).__name__} does not know the class shares it was trained on: give them as train_prior=."
        )
    return model.class_prior_


def _as_rows(prior: Any) -> Any:
    return [p[None] for p in prior] if isinstance(prior, list) else prior[None]
