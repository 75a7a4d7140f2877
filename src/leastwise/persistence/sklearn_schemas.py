"""The fields of the classes of scikit-learn that may stand in a model file: the usual preprocessing, and splitters.

The list is short on purpose. The compiled code of scikit-learn trusts the attributes of its estimators, so each of
these declares everything that its code relies on, across fields too. For all other estimators there is skops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.persistence.estimator_schemas import COLUMN, COLUMNS, OUTPUT_CONFIG
from leastwise.persistence.fields import (
    Array,
    Bool,
    DictOf,
    DType,
    Field,
    Floats,
    Function,
    Int,
    Ints,
    ListOf,
    Maybe,
    Names,
    Null,
    Objects,
    OneOf,
    Optional,
    Part,
    RandomSource,
    Real,
    Record,
    Scalar,
    Sequence,
    Slice,
    Text,
)
from leastwise.persistence.registry import State, register

Fields = dict[str, Field]
Sizes = dict[str, int]

COUNT = Int(0)
FEATURES: Fields = {
    "_sklearn_output_config": OUTPUT_CONFIG,
    "n_features_in_": Int(0, 2**31 - 1, size="n_features"),
    "feature_names_in_": Optional(Objects(Text(), "n_features")),
}
BY_FEATURE = Floats("n_features", finite=False)
SEEN = OneOf(COUNT, Real(low=0), Array("if", "n_features", low=0))


def _sklearn(name: str, module: str, fields: Fields, role: str = "transformer", **options: Any) -> None:
    register(f"sklearn.{module}:{name}", f"sklearn.{name}", role, fields, **options)


# ------------------------------------------------------------------------ scalers

_sklearn(
    "StandardScaler",
    "preprocessing",
    {
        **FEATURES,
        "with_mean": Bool(),
        "with_std": Bool(),
        "copy": Bool(),
        "n_samples_seen_": SEEN,
        "mean_": Maybe(BY_FEATURE),
        "var_": Maybe(BY_FEATURE),
        "scale_": Maybe(BY_FEATURE),
    },
)
_sklearn(
    "MinMaxScaler",
    "preprocessing",
    {
        **FEATURES,
        "feature_range": Record(Real(), Real()),
        "copy": Bool(),
        "clip": Bool(),
        "n_samples_seen_": SEEN,
        "scale_": BY_FEATURE,
        "min_": BY_FEATURE,
        "data_min_": BY_FEATURE,
        "data_max_": BY_FEATURE,
        "data_range_": BY_FEATURE,
    },
)
_sklearn(
    "RobustScaler",
    "preprocessing",
    {
        **FEATURES,
        "with_centering": Bool(),
        "with_scaling": Bool(),
        "quantile_range": Record(Real(0, 100), Real(0, 100)),
        "unit_variance": Bool(),
        "copy": Bool(),
        "center_": Maybe(BY_FEATURE),
        "scale_": Maybe(BY_FEATURE),
    },
)


def _check_quantiles(state: State, sizes: Sizes) -> str | None:
    """Values are interpolated between quantiles, found by bisection."""
    quantiles = state.get("quantiles_")
    if quantiles is not None and (np.diff(quantiles, axis=0) < 0).any():
        return "quantiles_ has a column that is not in rising order"
    return None


_sklearn(
    "QuantileTransformer",
    "preprocessing",
    {
        **FEATURES,
        "n_quantiles": Int(1),
        "output_distribution": Text("uniform", "normal"),
        "ignore_implicit_zeros": Bool(),
        "subsample": Maybe(Int(1)),
        "random_state": RandomSource(),
        "copy": Bool(),
        "n_quantiles_": Int(1, size="n_quantiles"),
        "references_": Floats("n_quantiles", low=0, high=1, order="rising"),
        "quantiles_": Floats("n_quantiles", "n_features", finite=False),
    },
    check=_check_quantiles,
)
_sklearn(
    "FunctionTransformer",
    "preprocessing",
    {
        "_sklearn_output_config": OUTPUT_CONFIG,
        "func": Maybe(Function()),
        "inverse_func": Maybe(Function()),
        "validate": Bool(),
        "accept_sparse": Bool(),
        "check_inverse": Bool(),
        "feature_names_out": Maybe(Text("one-to-one")),
        "kw_args": Maybe(DictOf(Text(), Null(), 0)),
        "inv_kw_args": Maybe(DictOf(Text(), Null(), 0)),
        "n_features_in_": Optional(Int(0, 2**31 - 1, size="n_features")),
        "feature_names_in_": Optional(Objects(Text(), "n_features")),
    },
)

# ----------------------------------------------------------------- missing values


def _check_indicator(state: State, sizes: Sizes) -> str | None:
    wrong = "_n_features" in state and "n_features_in_" in state and state["_n_features"] != state["n_features_in_"]
    return "_n_features is not n_features_in_" if wrong else None


_sklearn(
    "MissingIndicator",
    "impute",
    {
        **FEATURES,
        "missing_values": Scalar(),
        "features": Text("missing-only", "all"),
        "sparse": OneOf(Bool(), Text("auto")),
        "error_on_new": Bool(),
        "_precomputed": Bool(),
        "_n_features": Int(0, 2**31 - 1, size="n_features"),
        "features_": Ints(None, low=0, below="n_features", order="strict"),
    },
    check=_check_indicator,
)
_sklearn(
    "SimpleImputer",
    "impute",
    {
        **FEATURES,
        "missing_values": Scalar(),
        "add_indicator": Bool(),
        "keep_empty_features": Bool(),
        "strategy": Text("mean", "median", "most_frequent", "constant"),
        "fill_value": Scalar(),
        "copy": Bool(),
        "_fit_dtype": Optional(DType()),
        "_fill_dtype": Optional(DType()),
        "indicator_": Maybe(Part("sklearn.MissingIndicator", sizes=("n_features",))),
        "statistics_": OneOf(Array("biuf", "n_features", finite=False), Objects(Scalar(), "n_features")),
    },
)

# ----------------------------------------------------------------------- encoders

CATEGORIES = OneOf(Text("auto"), Sequence(OneOf(Names(), ListOf(Scalar()))))
INDICES = Maybe(Ints(None, low=0))
ENCODER: Fields = {
    **FEATURES,
    "categories": CATEGORIES,
    "dtype": DType(),
    "min_frequency": Maybe(Real(low=0)),
    "max_categories": Maybe(Int(1)),
    "categories_": ListOf(Names(), "n_features"),
    "_infrequent_enabled": Optional(Bool()),
    "_infrequent_indices": Optional(ListOf(INDICES, "n_features")),
    "_default_to_infrequent_mappings": Optional(ListOf(INDICES, "n_features")),
}


def _check_encoder(state: State, sizes: Sizes) -> str | None:
    """Every category has a code, codes of rare ones included: one code for all rare ones, the last."""
    for k, values in enumerate(state.get("categories_", ())):
        if not len(values):
            return f"categories_[{k}] is empty"
        known = values[:-1] if values.dtype.kind == "f" and np.isnan(values[-1]) else values
        if values.dtype.kind not in "OUS" and not (known[:-1] < known[1:]).all():  # numbers are found by bisection
            return f"categories_[{k}] is not in rising order"
        rare, codes = _rare(state, k)
        if (rare is None) != (codes is None):
            return f"_infrequent_indices[{k}] does not belong to _default_to_infrequent_mappings"
        grouped = None if rare is None else _grouped(len(values), rare)
        if rare is not None and (grouped is None or not np.array_equal(codes, grouped)):
            return f"_default_to_infrequent_mappings[{k}] has other codes than the categories"
    enabled = state.get("_infrequent_enabled", False)
    if enabled and "categories_" in state and "_infrequent_indices" not in state:
        return "_infrequent_indices is missing"
    return None


def _rare(state: State, k: int) -> tuple[Any, Any]:
    """Rare categories of a feature, and the codes of all; None if none is rare."""
    if not state.get("_infrequent_enabled", False):
        return None, None
    names = ("_infrequent_indices", "_default_to_infrequent_mappings")
    rare, codes = (state[name][k] if name in state else None for name in names)
    return rare, codes


def _grouped(n: int, rare: np.ndarray) -> np.ndarray | None:
    """Codes of n categories: frequent ones in order, then one for all rare ones. None if an index is wrong."""
    if not len(rare) or rare.max() >= n or len(np.unique(rare)) < len(rare):
        return None
    frequent = np.setdiff1d(np.arange(n), rare)
    codes = np.full(n, len(frequent))
    codes[frequent] = np.arange(len(frequent))
    return codes


def _check_one_hot(state: State, sizes: Sizes) -> str | None:
    """Every code has a column, except the one that is dropped, and no column is beyond the last."""
    found = _check_encoder(state, sizes)
    if found is not None or "categories_" not in state:
        return found
    dropped = state["_drop_idx_after_grouping"]
    for k, values in enumerate(state["categories_"]):
        _, codes = _rare(state, k)
        n = len(values) if codes is None else int(codes.max()) + 1
        drop = None if dropped is None else dropped[k]
        if drop is not None and not 0 <= drop < n:
            return f"_drop_idx_after_grouping[{k}] is {drop} for {n} categories"
        if state["_n_features_outs"][k] != n - (drop is not None):
            return f"_n_features_outs[{k}] is {state['_n_features_outs'][k]} for {n} categories"
    return None


DROPPED = Maybe(Objects(Maybe(COUNT), "n_features"))
_sklearn(
    "OneHotEncoder",
    "preprocessing",
    {
        **ENCODER,
        "sparse_output": Bool(),
        "handle_unknown": Text("error", "ignore", "infrequent_if_exist", "warn"),
        "drop": Maybe(Text("first", "if_binary"), Names("n_features")),
        "feature_name_combiner": Text("concat"),
        "drop_idx_": Maybe(Objects(Maybe(COUNT), None)),
        "_drop_idx_after_grouping": DROPPED,
        "_n_features_outs": ListOf(COUNT, "n_features"),
    },
    check=_check_one_hot,
)
_sklearn(
    "OrdinalEncoder",
    "preprocessing",
    {
        **ENCODER,
        "handle_unknown": Text("error", "use_encoded_value"),
        "unknown_value": Maybe(Real(finite=False)),
        "encoded_missing_value": Real(finite=False),
        "_missing_indices": DictOf(Int(0, below="n_features"), COUNT),
    },
    check=_check_encoder,
)

# ---------------------------------------------------------- pipelines and columns

STEP = OneOf(Part("transformer"), Text("passthrough", "drop"), Null())


def _check_pipeline(state: State, sizes: Sizes) -> str | None:
    names = [name for name, _ in state["steps"]]
    return "steps has a name twice" if len(set(names)) < len(names) else None


_sklearn(
    "Pipeline",
    "pipeline",
    {
        "_sklearn_output_config": OUTPUT_CONFIG,
        "steps": Sequence(Record(Text(), OneOf(STEP, Part("estimator", "wrapper")))),
        "transform_input": Maybe(Sequence(Text())),
        "verbose": Bool(),
    },
    role="wrapper",
    check=_check_pipeline,
    skip=("memory",),
)

SOME_COLUMNS = OneOf(
    COLUMN, COLUMNS, Slice(by_name=True), Array("b", None), ListOf(Bool()), Part("sklearn.make_column_selector")
)
TRIPLE = Record(Text(), OneOf(STEP, Part("wrapper")), SOME_COLUMNS)
INPUTS = Sequence(Int(0, below="n_features"))


def _check_columns(state: State, sizes: Sizes) -> str | None:
    """Columns of all transformers, by position or by name."""
    n = sizes.get("n_features")
    if n is None:
        return None
    names = state.get("feature_names_in_")
    known = set() if names is None else set(names.tolist())
    for name, _, columns in state["transformers_"]:
        for one in columns if isinstance(columns, list | tuple | np.ndarray) else [columns]:
            if isinstance(one, str) and known and one not in known:
                return f"transformers_ takes a column {one!r} for {name!r}, which is not there"
            if isinstance(one, int | np.integer) and not isinstance(one, bool) and not -n <= one < n:
                return f"transformers_ takes column {one} of {n} for {name!r}"
        mask = isinstance(columns, np.ndarray | list) and len(columns) and isinstance(columns[0], bool | np.bool_)
        if mask and len(columns) != n:
            return f"transformers_ has a mask of {len(columns)} columns of {n} for {name!r}"
    return None


_sklearn(
    "make_column_selector",
    "compose",
    {
        "pattern": Maybe(Text()),
        "dtype_include": Maybe(Text(), DType(), Sequence(OneOf(Text(), DType()))),
        "dtype_exclude": Maybe(Text(), DType(), Sequence(OneOf(Text(), DType()))),
    },
    role="part",
)
_sklearn(
    "ColumnTransformer",
    "compose",
    {
        **FEATURES,
        "transformers": Sequence(TRIPLE),
        "remainder": OneOf(STEP, Part("wrapper")),
        "sparse_threshold": Real(0, 1),
        "transformer_weights": Maybe(DictOf(Text(), Real())),
        "verbose": Bool(),
        "verbose_feature_names_out": OneOf(Bool(), Text()),
        "force_int_remainder_cols": Optional(OneOf(Bool(), Text("deprecated"))),
        "_columns": ListOf(SOME_COLUMNS),
        "_transformer_to_input_indices": DictOf(Text(), INPUTS),
        "_remainder": Record(Text(), OneOf(STEP, Part("wrapper")), SOME_COLUMNS),
        "sparse_output_": Bool(),
        "transformers_": ListOf(TRIPLE),
        "output_indices_": DictOf(Text(), Slice()),
        "_n_features": Optional(COUNT),
        "_name_to_fitted_passthrough": Optional(DictOf(Text(), Part("transformer"))),
        "_transformers_feature_names_out": Optional(Objects(Text(), None)),
    },
    check=_check_columns,
    skip=("n_jobs",),
)

# ---------------------------------------------------------------------- splitters

FOLDS: Fields = {"n_splits": Int(2, 10**6), "shuffle": Bool(), "random_state": RandomSource()}
SIZE = Maybe(Real(low=0))
SHUFFLED: Fields = {
    "n_splits": Int(1, 10**6),
    "test_size": SIZE,
    "train_size": SIZE,
    "random_state": RandomSource(),
    "_default_test_size": Optional(Real(0, 1)),
}
for _name in ("KFold", "StratifiedKFold", "GroupKFold", "StratifiedGroupKFold"):
    _sklearn(_name, "model_selection", FOLDS, role="splitter")
for _name in ("ShuffleSplit", "StratifiedShuffleSplit", "GroupShuffleSplit"):
    _sklearn(_name, "model_selection", SHUFFLED, role="splitter")
for _name in ("LeaveOneOut", "LeaveOneGroupOut"):
    _sklearn(_name, "model_selection", {}, role="splitter")
