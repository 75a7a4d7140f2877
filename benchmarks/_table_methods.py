"""Methods for ``benchmarks.raw_tables``, set up as a user would run them on a raw table.

A method takes a table and the number of a draw, its seed, and returns an unfitted model with ``fit`` and
``predict_proba`` or ``predict``. Methods that need numeric inputs get one-hot encoded categories, and the median for
missing values with an indicator column; methods that depend on scales also get standardised columns.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks._tables import Table, categorical
from leastwise import LSPC, LSSVR

Array = np.ndarray
#: Around 1 / (number of columns), which is scikit-learn's gamma="scale" on standardised columns.
WIDTHS, COSTS = (1 / 3, 1, 3), (1, 10, 100)
TREES, ROUNDS, COMPONENTS = 500, 500, 300


@dataclass(frozen=True)
class TableMethod:
    """A model factory, and the largest numbers of training rows and classes that it is tried on."""

    make: Callable[[Table, int], Any]
    rows: int | None = None
    classes: int | None = None

    def suits(self, n_rows: int, n_classes: int | None) -> bool:
        """Whether the method is tried on a table of that size."""
        return n_rows <= (self.rows or n_rows) and (n_classes or 0) <= (self.classes or n_classes or 0)


# ------------------------------------------------------------------------- encoding


def encoder(X: Table, scale: bool) -> Any:
    """Numbers from a table: numeric columns first, then the one-hot columns."""
    numeric = [SimpleImputer(strategy="median", add_indicator=True)] + [StandardScaler()] * scale
    nominal = categorical(X)
    if not nominal:
        return make_pipeline(*numeric)
    others = [name for name in X.columns if name not in nominal]
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer((make_pipeline(*numeric), others), (one_hot, nominal))


def encoded(make: Callable[[int], Any], X: Table, seed: int, scale: bool = True) -> Pipeline:
    """The model behind the encoder."""
    return Pipeline([("encoder", encoder(X, scale)), ("model", make(seed))])


def standardised(make: Callable[[int], Any], **limits: int) -> TableMethod:
    """On standardised numbers and one-hot columns."""
    return TableMethod(partial(encoded, make), **limits)


def numbers(make: Callable[[int], Any]) -> TableMethod:
    """On unscaled numbers and one-hot columns, for trees."""
    return TableMethod(partial(encoded, make, scale=False))


def raw(make: Callable[[int], Any], **limits: int) -> TableMethod:
    """On the raw table."""
    return TableMethod(lambda X, seed: make(seed), **limits)


# ------------------------------------------------------------------- models with a search


class Searched(BaseEstimator):
    """Choose C and gamma by cross-validation on the given rows, then fit ``finish(best)``."""

    def __init__(self, model: Any, finish: Callable[[Any], Any], scoring: str | None, seed: int) -> None:
        self.model, self.finish, self.scoring, self.seed = model, finish, scoring, seed

    def fit(self, X: Array, y: Array) -> Searched:
        """Search on three folds; the grid of gamma follows the number of columns."""
        folds = KFold if np.issubdtype(np.asarray(y).dtype, np.floating) else StratifiedKFold
        names = sorted(self.model.get_params())
        grid = {
            next(n for n in names if n.endswith("gamma")): [w / X.shape[1] for w in WIDTHS],
            next(n for n in names if n == "C" or n.endswith("__C")): COSTS,
        }
        cv = folds(3, shuffle=True, random_state=self.seed)
        search = GridSearchCV(self.model, grid, scoring=self.scoring, cv=cv, refit=False).fit(X, y)
        self.model_ = self.finish(clone(self.model).set_params(**search.best_params_)).fit(X, y)
        return self

    def predict_proba(self, X: Array) -> Array:
        """Of the model found."""
        return self.model_.predict_proba(X)

    def predict(self, X: Array) -> Array:
        """Of the model found."""
        return self.model_.predict(X)


def svc(seed: int, method: str) -> Searched:
    return Searched(SVC(), partial(CalibratedClassifierCV, method=method, cv=5), None, seed)


def svr(seed: int) -> TransformedTargetRegressor:
    return TransformedTargetRegressor(Searched(SVR(), lambda model: model, None, seed), transformer=StandardScaler())


class Features(Nystroem):
    """Nystroem features, at most as many as rows."""

    def fit(self, X: Array, y: Array | None = None) -> Features:
        """Choose the rows."""
        self.n_components = min(COMPONENTS, len(X))
        return super().fit(X, y)


def nystroem(seed: int) -> Searched:
    model = Pipeline([("features", Features(random_state=seed)), ("model", LogisticRegression(max_iter=500))])
    return Searched(model, lambda best: best, "neg_log_loss", seed)


def forest(kind: Any, seed: int) -> CalibratedClassifierCV:
    return CalibratedClassifierCV(kind(TREES, random_state=seed), method="temperature", cv=5)


class GaussianProcess(GaussianProcessClassifier):
    """Starts from a width that suits standardised columns."""

    def fit(self, X: Array, y: Array) -> GaussianProcess:
        """Fit the amplitude and the width by the marginal likelihood."""
        self.kernel = 1.0 * RBF(np.sqrt(X.shape[1]))
        return super().fit(X, y)


# ------------------------------------------------------------------------- boosting


class CatBoost(BaseEstimator):
    """CatBoost's defaults with 500 rounds; categories are passed as text, and missing is a category."""

    def __init__(self, kind: str, seed: int) -> None:
        self.kind, self.seed = kind, seed

    def fit(self, X: Table, y: Array) -> CatBoost:
        """One thread, no files."""
        import catboost

        options = {"iterations": ROUNDS, "thread_count": 1, "verbose": False, "allow_writing_files": False}
        make = getattr(catboost, f"CatBoost{self.kind}")
        self.model_ = make(random_seed=self.seed, cat_features=categorical(X), **options).fit(self._text(X), y)
        return self

    def _text(self, X: Table) -> Table:
        names = categorical(X)
        return X.assign(**{n: X[n].astype(object).fillna("missing").astype(str) for n in names}) if names else X

    def predict_proba(self, X: Table) -> Array:
        """Of the classes 0, 1, ..."""
        return self.model_.predict_proba(self._text(X), thread_count=1)

    def predict(self, X: Table) -> Array:
        """Numbers."""
        return self.model_.predict(self._text(X), thread_count=1)


def catboost(kind: str, seed: int) -> CatBoost:
    importlib.import_module("catboost")
    return CatBoost(kind, seed)


def lightgbm(kind: str, seed: int) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    make = LGBMClassifier if kind == "Classifier" else LGBMRegressor
    return make(n_jobs=1, random_state=seed, verbose=-1)


# ---------------------------------------------------------------------------- xRFM


class XRFM(BaseEstimator):
    """xRFM's defaults, encoded as in its documentation; a fifth of the rows is its validation set."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: Table, y: Array) -> XRFM:
        """On one thread; standardised targets for regression."""
        import torch
        from xrfm import xRFM

        torch.set_num_threads(1)
        classes = not np.issubdtype(y.dtype, np.floating)
        self.center_, self.scale_ = (0, 1) if classes else (y.mean(), y.std())
        self.encoder_ = encoder(X, scale=True).fit(X)
        Z = self.encoder_.transform(X).astype(np.float32)
        target = y if classes else ((y - self.center_) / self.scale_).astype(np.float32)[:, None]
        parts = train_test_split(Z, target, test_size=0.2, random_state=self.seed, stratify=y if classes else None)
        info = self._columns(X, Z.shape[1]) if categorical(X) else None
        self.model_ = xRFM(device="cpu", n_threads=1, random_state=self.seed, verbose=False, categorical_info=info)
        self.model_.fit(parts[0], parts[2], parts[1], parts[3])
        return self

    def _columns(self, X: Table, width: int) -> dict[str, Any]:
        """Which columns of the encoding belong to which category."""
        import torch

        sizes = [len(c) for c in self.encoder_.named_transformers_["onehotencoder"].categories_]
        ends = width - sum(sizes) + np.concatenate([[0], np.cumsum(sizes)])
        blocks = [torch.arange(a, b) for a, b in pairwise(ends)]
        vectors = [torch.eye(size) for size in sizes]
        return {
            "numerical_indices": torch.arange(int(ends[0])),
            "categorical_indices": blocks,
            "categorical_vectors": vectors,
        }

    def predict_proba(self, X: Table) -> Array:
        """Of the classes 0, 1, ..."""
        return np.asarray(self.model_.predict_proba(self.encoder_.transform(X).astype(np.float32)), dtype=float)

    def predict(self, X: Table) -> Array:
        """Numbers."""
        found = self.model_.predict(self.encoder_.transform(X).astype(np.float32))
        return self.center_ + self.scale_ * np.asarray(found, dtype=float).ravel()


def xrfm(seed: int) -> XRFM:
    importlib.import_module("xrfm")
    return XRFM(seed)


# ------------------------------------------------------------------------- registry

#: In the order in which they are run: cheap ones and ours first.
CLASSIFIERS: dict[str, TableMethod] = {
    "LSPC()": raw(lambda seed: LSPC(random_state=seed)),
    "logistic": standardised(lambda seed: LogisticRegression(max_iter=1000)),
    "HistGB": raw(lambda seed: HistGradientBoostingClassifier(random_state=seed)),
    "LightGBM": raw(partial(lightgbm, "Classifier")),
    "CatBoost": raw(partial(catboost, "Classifier")),
    "Nystroem + LR": standardised(nystroem),
    "SVC + sigmoid": standardised(partial(svc, method="sigmoid")),
    "SVC + temperature": standardised(partial(svc, method="temperature")),
    "extra trees + temperature": numbers(partial(forest, ExtraTreesClassifier)),
    "random forest + temperature": numbers(partial(forest, RandomForestClassifier)),
    "Gaussian process": standardised(lambda seed: GaussianProcess(random_state=seed), rows=300, classes=5),
    "xRFM": raw(xrfm),
}
REGRESSORS: dict[str, TableMethod] = {
    "LSSVR()": raw(lambda seed: LSSVR(random_state=seed)),
    "ridge": standardised(lambda seed: RidgeCV(np.logspace(-3, 5, 17))),
    "HistGB": raw(lambda seed: HistGradientBoostingRegressor(random_state=seed)),
    "LightGBM": raw(partial(lightgbm, "Regressor")),
    "CatBoost": raw(partial(catboost, "Regressor")),
    "SVR": standardised(svr),
    "random forest": numbers(lambda seed: RandomForestRegressor(TREES, random_state=seed)),
    "xRFM": raw(xrfm),
}

#: Ours without one of the choices, and without any; run by name.
WITHOUT: dict[str, dict[str, Any]] = {
    "one scale": {"scale": "standard"},
    "one kernel": {"kernel": "rbf"},
    "no feature weights": {"metric": None},
    "none of these": {"scale": "standard", "kernel": "rbf", "metric": None},
    "no subsamples": {"search_rows": None},
}


#: Other numbers of centres.
CENTERS: dict[str, dict[str, Any]] = {
    "all rows as centres": {"n_centers": None},
    "500 centres": {"n_centers": 500},
    "1,000 centres": {"n_centers": 1000},
    "2,000 centres": {"n_centers": 2000},
    "1,000 centres by k-means": {"n_centers": 1000, "centers": "kmeans"},
}


def ablation(make: Any, options: dict[str, Any]) -> TableMethod:
    return raw(lambda seed: make(random_state=seed, **options))


ABLATIONS = {f"LSPC, {name}": ablation(LSPC, options) for name, options in (WITHOUT | CENTERS).items()}
