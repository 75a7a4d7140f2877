"""The parameters and fitted attributes of the estimators of leastwise in model files.

The estimators share their parameters, and ``fitting/store.py`` writes the fitted attributes of all of them: so
there is one table of parameters, and one of fitted attributes for each kind of target. An attribute that is not
``Optional`` is in every fitted model, except those that ``keep="predict"`` leaves out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.persistence.fields import (
    Array,
    Bool,
    DictOf,
    Field,
    Floats,
    Int,
    Ints,
    ListOf,
    Maybe,
    Name,
    Names,
    Objects,
    OneOf,
    Optional,
    Part,
    Plain,
    RandomSource,
    Real,
    Record,
    Rows,
    Scalar,
    Sequence,
    Text,
    TupleOf,
)
from leastwise.persistence.registry import State, register

Sizes = dict[str, int]
Fields = dict[str, Field]

# --------------------------------------------------------------------- parameters

SHARE = Real(0, 1)
POSITIVE = Real(low=0)
ANY_WEIGHT = Real(low=0, finite=False)
COUNT = Int(0)
COLUMN = OneOf(Text(), Int())
COLUMNS = OneOf(Sequence(COLUMN), Array("biU", None), Objects(COLUMN, None))


def _grid(value: Field) -> OneOf:
    """A number, a grid of numbers, or "auto"."""
    return OneOf(Text("auto"), value, Sequence(value), Array("iuf", None, finite=False))


PENALTY = Maybe(DictOf(Name(), POSITIVE), Sequence(POSITIVE), Array("iuf", None, low=0))
SPLITS = Sequence(OneOf(Record(Ints(None), Ints(None)), ListOf(Ints(None), 2)))
CLASS_WEIGHT = OneOf(Text(), DictOf(Name(), POSITIVE))
MATRIX = OneOf(Rows(None, None), Array("biu", None, None), Sequence(Sequence(Real())))
PARAMETERS: Fields = {
    "sigma": _grid(POSITIVE),
    "alpha": _grid(POSITIVE),
    "sharing": _grid(SHARE),
    "linear_weight": _grid(ANY_WEIGHT),
    "kernel": Text(),
    "scale": Maybe(Text()),
    "metric": Maybe(Text()),
    "categories": Maybe(Text(), COLUMNS),
    "norm": Text(),
    "basis": Text(),
    "n_centers": Maybe(Text("auto"), Int(1)),
    "centers": OneOf(Text(), MATRIX),
    "bias": Maybe(Text(), POSITIVE),
    "cv": Maybe(Text(), Int(), Part("splitter"), SPLITS),
    "scoring": Maybe(Text()),
    "calibration": Maybe(Text()),
    "extrapolate": Bool(),
    "class_weight": Maybe(CLASS_WEIGHT, Sequence(Maybe(CLASS_WEIGHT)), DictOf(Name(), Maybe(CLASS_WEIGHT))),
    "solver": Text(),
    "bounds": Maybe(Sequence(Maybe(Real(finite=False)), 2), Array("iuf", 2, finite=False)),
    "prune": Maybe(POSITIVE),
    "search_rows": Maybe(Text(), Int(1)),
    "max_passes": COUNT,
    "max_iter": COUNT,
    "tol": POSITIVE,
    "degree": Int(1, 1000),
    "coef0": Real(),
    "random_state": RandomSource(),
    "verbose": OneOf(Bool(), COUNT),
    "similarity": OneOf(Text(), MATRIX, Sequence(Sequence(Name()))),
    "task_penalty": PENALTY,
    "label_penalty": PENALTY,
    "task_column": Maybe(COLUMN),
    "unknown_task": Text("shared", "error"),
    "threshold": OneOf(Text(), SHARE, Sequence(SHARE), Array("iuf", None, low=0, high=1), DictOf(Name(), SHARE)),
    "missing": Scalar(),
}

# -------------------------------------------------------------- fitted attributes

OUTPUT_CONFIG = Optional(DictOf(Text("transform"), Text("default", "pandas", "polars")))
NAMES_IN = Optional(Objects(Text(), "n_features"))
#: Held-out rows that were not scored are NaN.
HELD = Floats("n_rows", "n_outputs", finite=False)
HELD_BINARY = OneOf(HELD, Floats("n_rows", finite=False), Floats("n_rows", None, finite=False))
MODEL: Fields = {
    "_sklearn_output_config": OUTPUT_CONFIG,
    "n_features_in_": Int(0, 2**31 - 1, size="n_features"),
    "feature_names_in_": NAMES_IN,
    "categories_": ListOf(Maybe(ListOf(Name())), "n_columns"),
    "inputs_": Part("inputs.Inputs", sizes=("n_numbers",)),
    "scale_": Maybe(Text()),
    "feature_weights_": Maybe(Floats("n_columns", low=0)),
    "kernel_": Part("kernel", sizes=("n_inputs",)),
    "sigma_": Real(1e-150, 1e150),
    "alpha_": POSITIVE,
    "centers_": Optional(Rows("n_centers", "n_inputs")),
    "center_indices_": Optional(Ints("n_centers", low=0, below="n_features")),
    "intercept_": Floats("n_outputs"),
    "jitter_": POSITIVE,
    "neighbourhood_": Optional(Part("heldout.Neighbourhood", sizes=("n_inputs",))),
    "training_record_": Optional(Part("influence.TrainingRecord", "influence.LabelTrainingRecord")),
    "n_iter_": Optional(COUNT),
    "n_passes_": Optional(COUNT),
    "residual_": Optional(POSITIVE),
    "pruning_": Optional(DictOf(Text(), Real(finite=False))),
    "cv_results_": Optional(
        DictOf(Text(), OneOf(Array("biufU", "n_points", finite=False), Objects(Name(), "n_points")))
    ),
}
COEFFICIENTS: Fields = {"coef_": Floats("n_centers", "n_outputs")}
STREAM: Fields = {
    "moments_": Optional(Part("stream.Moments", sizes=("n_outputs",))),
    "kept_": Optional(Maybe(Part("stream.RowSample"))),
}
HELDOUT: Fields = {
    "heldout_scores_": Optional(HELD),
    "heldout_decision_": Optional(HELD_BINARY),
    "heldout_proba_": Optional(HELD),
    "heldout_rows_": Optional(Part("heldout.HeldoutRows", sizes=("n_rows",))),
}
CLASSES: Fields = {
    "classes_": Names("n_classes"),
    "calibrator_": Part("calibrator", sizes=("n_classes",)),
    "class_prior_": Floats("n_classes", low=0, high=1),
    "extrapolation_": Maybe(Part("calibrator.Extrapolation")),
    **HELDOUT,
}
VALUES: Fields = {
    "unit_": Floats("n_outputs", low=0),
    "offset_": Floats("n_outputs"),
    "flat_": Bool(),
    "heldout_prediction_": Optional(HELD_BINARY),
    "residuals_": Optional(Part("heldout.Residuals", sizes=("n_outputs", "n_inputs", "n_tasks"))),
}
MACHINE: Fields = {"linear_weight_": Maybe(ANY_WEIGHT)}
TASKS: Fields = {
    "task_index_": Part("tasks.Tasks", sizes=("n_tasks",)),
    "tasks_": Names("n_tasks"),
    "sharing_": SHARE,
    "form_": Part("tasks.DualForm", "tasks.PrimalForm", sizes=("n_tasks", "n_centers", "n_outputs")),
    "task_intercept_": Optional(Floats("n_tasks", "n_outputs")),
    "relation_": Optional(Part("tasks.SharedCoupling", "tasks.PairwiseCoupling", sizes=("n_tasks",))),
    "coupling_matrix_": Optional(Part("tasks.CouplingMatrix", sizes=("n_tasks",))),
    "intercept_ratio_": Optional(ANY_WEIGHT),
}
UNSEEN: Fields = {
    "unseen_task_calibrator_": Maybe(Part("calibrator", sizes=("n_classes",))),
    "unseen_task_scores_": Optional(HELD),
}
BY_LABEL = Floats("n_rows", None, finite=False)
STACKED = OneOf(Array("biufUM", None, None, finite=False), Objects(Name(), None, None))
LABELS: Fields = {
    "label_index_": Part("labels.Labels", sizes=("n_labels",)),
    "labels_": Names("n_labels"),
    "classes_": OneOf(Names(), STACKED, ListOf(Names(), "n_labels")),
    "calibrator_": Part("label_calibrator", sizes=("n_labels", "n_outputs=n_columns")),
    "extrapolation_": Maybe(Part("calibrator.Extrapolation")),
    "class_prior_": OneOf(Floats(None, low=0, high=1), ListOf(Floats(None, low=0, high=1), "n_labels")),
    "constant_labels_": ListOf(Name()),
    "sharing_": SHARE,
    "similarity_": Maybe(Rows("n_labels", "n_labels")),
    "threshold_": OneOf(SHARE, Floats("n_labels", low=0, high=1)),
    "heldout_scores_": Optional(HELD),
    "heldout_decision_": Optional(OneOf(HELD_BINARY, ListOf(OneOf(Floats("n_rows", finite=False), BY_LABEL)))),
    "heldout_proba_": Optional(OneOf(HELD_BINARY, ListOf(BY_LABEL))),
    "heldout_rows_": Optional(Part("heldout.HeldoutRows", sizes=("n_rows",))),
}

#: Attributes that keep their precision,
EXACT = (
    *("classes_", "tasks_", "labels_", "class_prior_", "unit_", "offset_", "threshold_", "cv_results_"),
    *("moments_", "kept_"),
)
#: and those that are not needed for predictions: search results, and what sets, intervals and influence need.
REPORT = (
    *("heldout_scores_", "heldout_decision_", "heldout_proba_", "heldout_prediction_", "heldout_rows_"),
    *("unseen_task_scores_", "cv_results_", "training_record_", "residuals_", "risk_coverage_", "relation_"),
    *("coupling_matrix_", "neighbourhood_", "moments_", "kept_"),
)

# ------------------------------------------------------------ checks across fields


def _check_model(state: State, sizes: Sizes) -> str | None:
    """Indices of columns, rows, tasks and classes are within what they index."""
    if "inputs_" not in state:
        return None
    checks = (_inputs_problem, _centers_problem, _outputs_problem, _record_problem, _heldout_problem, _stream_problem)
    return next((found for check in checks if (found := check(state, sizes)) is not None), None)


def _inputs_problem(state: State, sizes: Sizes) -> str | None:
    """The columns that the inputs take from X are there, and the kernel sees as many as they make."""
    d, inputs = sizes["n_columns"], state["inputs_"]
    if d != sizes["n_features"] - (state.get("task_column") is not None):
        return f"categories_ has {d} columns, and X has {sizes['n_features']}"
    used = [a for a in (inputs.columns, inputs.missing) if a is not None and len(a)]
    if any(a.max() >= d for a in used) or any(one.column >= d for one in inputs.categories):
        return f"inputs_ takes columns beyond the {d} of X"
    n_numbers = d if inputs.columns is None else len(inputs.columns)
    if sizes.get("n_numbers", n_numbers) != n_numbers:
        return f"inputs_ has a rule for {sizes['n_numbers']} columns, and takes {n_numbers}"
    for one in inputs.categories:
        known = state["categories_"][one.column]
        if known is None or len(one.slots) > len(known) + 1:
            return f"inputs_ has slots for more categories than column {one.column} has"
    n_missing = 0 if inputs.missing is None else len(inputs.missing)
    made = n_numbers + n_missing + sum(one.width for one in inputs.categories)
    if inputs.weights is not None and len(inputs.weights) != made:
        return f"inputs_ has {len(inputs.weights)} weights for {made} columns"
    if "center_indices_" not in state and sizes.get("n_inputs", made) != made:
        return f"inputs_ makes {made} columns, and the kernel takes {sizes['n_inputs']}"
    return None


def _centers_problem(state: State, sizes: Sizes) -> str | None:
    if ("centers_" in state) == ("center_indices_" in state):
        return "centers_ is missing, or there is center_indices_ too"
    around: Any = state.get("neighbourhood_")
    places = None if around is None else around.places
    if around is not None and (places is None) == (around.rows is None):
        return "neighbourhood_ has neither places nor rows, or both"
    if places is not None and len(places) and places.max() >= sizes["n_centers"]:
        return "neighbourhood_ has places beyond the centers"
    return None


def _outputs_problem(state: State, sizes: Sizes) -> str | None:
    """One column of scores for every class, of every label."""
    c, outputs, labels = sizes.get("n_classes"), sizes["n_outputs"], state.get("label_index_")
    if labels is not None:
        c = int(labels.starts[-1])
        starts = getattr(state["calibrator_"], "starts", labels.starts)
        if not np.array_equal(starts, labels.starts):
            return "calibrator_ has other labels than label_index_"
    return f"intercept_ has {outputs} outputs for {c} classes" if c not in (None, outputs) else None


def _record_problem(state: State, sizes: Sizes) -> str | None:
    """Influence solves with one row of targets for each center."""
    record: Any = state.get("training_record_")
    if record is None:
        return None
    if len(record.w) != sizes["n_centers"]:
        return f"training_record_ has {len(record.w)} rows for {sizes['n_centers']} centers"
    if hasattr(record, "Z"):
        return "training_record_ has other outputs" if record.Z.shape[1] != sizes["n_outputs"] else None
    if record.codes.shape[1] != sizes["n_labels"]:
        return "training_record_ has other labels"
    if (record.codes >= [len(c) for c in state["label_index_"].classes]).any():
        return "training_record_ has codes of classes that are not there"
    if not record.coupled_labels:
        return "training_record_ has no coupled_labels"
    groups = [coupled.family for coupled in record.coupled_labels]
    beyond = any(g.labels.size and g.labels.max() >= sizes["n_labels"] for g in groups)
    beyond = beyond or any(g.columns.size and g.columns.max() >= sizes["n_outputs"] for g in groups)
    return "training_record_ couples labels that are not there" if beyond else None


def _heldout_problem(state: State, sizes: Sizes) -> str | None:
    """Codes of classes, labels and tasks of held-out rows."""
    rows: Any = state.get("heldout_rows_")
    kept = [n in state for n in ("heldout_scores_", "heldout_proba_", "heldout_decision_", "heldout_rows_")]
    if any(kept) and not all(kept):
        return "heldout_rows_ or one of the other held-out attributes is missing"
    if rows is None:
        return None
    if (found := _probabilities_problem(state)) is not None:
        return found
    codes = rows.codes
    if "label_index_" in state:
        n_classes = np.array([len(c) for c in state["label_index_"].classes])
        known = codes[:, None] if codes.ndim == 1 else codes
        if known.shape[1] != len(n_classes) or (known >= n_classes).any():
            return "heldout_rows_ has codes of classes or labels that are not there"
    elif codes.ndim != 1 or (codes.size and codes.max() >= sizes["n_classes"]):
        return "heldout_rows_ has codes of classes that are not there"
    task = rows.task
    if task is not None and task.size and task.max() >= sizes.get("n_tasks", 0):
        return "heldout_rows_ has tasks that are not there"
    return None


def _probabilities_problem(state: State) -> str | None:
    """Held-out probabilities have a column for every class; one for every label if all have two classes."""
    P, labels = state.get("heldout_proba_"), state.get("label_index_")
    if P is None:
        return None
    counts = [len(state["classes_"])] if labels is None else [len(c) for c in labels.classes]
    whole = labels is None or labels.form == "flat"
    binary = all(count == 2 for count in counts)
    wanted = counts[0] if whole else len(counts) if binary else counts
    found = [part.shape[-1] for part in P] if isinstance(P, list) else P.shape[1] if P.ndim == 2 else None
    return None if found == wanted else "heldout_proba_ has other classes or labels"


def _stream_problem(state: State, sizes: Sizes) -> str | None:
    """The class codes of stored rows are columns of the moments: they are used as indices."""
    moments, sample = state.get("moments_"), state.get("kept_")
    if moments is not None and (moments.whitening is not None or len(moments.p)):
        n = len(moments.p) if moments.whitening is None else moments.whitening.size
        if n != sizes["n_centers"]:
            return f"moments_ has {n} basis functions for {sizes['n_centers']} centers"
    if sample is None:
        return None
    # With categories, the rows are kept as they came.
    if sizes.keys() & {"n_inputs", "n_features"} and sample.X.shape[1] not in (
        sizes.get("n_inputs"),
        sizes.get("n_features"),
    ):
        return "kept_ has rows of another width"
    y, labels = sample.y, state.get("label_index_")
    if labels is not None and (y.ndim != 2 or y.shape[1] != len(labels.classes)):
        return f"kept_ has targets of the shape {y.shape} for {len(labels.classes)} labels"
    if y.dtype.kind == "i":
        limit = sizes["n_outputs"] if labels is None else np.array([len(c) for c in labels.classes])
        if y.size and (y >= limit).any():
            return "kept_ has codes of classes that are not there"
    return None


# --------------------------------------------------------------------- estimators


def _kernel_estimator(name: str, module: str, *fitted: Fields) -> None:
    location = f"leastwise.estimators.{module}:{name}"
    fields = {**PARAMETERS, **MODEL, **{n: f for part in fitted for n, f in part.items()}}
    options = {"skip": ("n_jobs",), "report": REPORT, "exact": EXACT, "check": _check_model}
    register(location, name, "estimator", fields, **options)


_kernel_estimator("LSPC", "lspc", COEFFICIENTS, CLASSES, STREAM)
_kernel_estimator("LSSVC", "lssvm", COEFFICIENTS, CLASSES, MACHINE, STREAM)
_kernel_estimator("LSSVR", "lssvm", COEFFICIENTS, VALUES, MACHINE, STREAM)
_kernel_estimator("KernelLogisticRegression", "klr", COEFFICIENTS, CLASSES)
_kernel_estimator("MultiLabelLSPC", "multi_label", COEFFICIENTS, LABELS, STREAM)
_kernel_estimator("MultiTaskLSPC", "multi_task", CLASSES, TASKS, UNSEEN)
_kernel_estimator("MultiTaskLSSVC", "multi_task_lssvm", CLASSES, TASKS, UNSEEN, MACHINE)
_kernel_estimator("MultiTaskLSSVR", "multi_task_lssvm", VALUES, TASKS, MACHINE)
_kernel_estimator("MultiTaskKernelLogisticRegression", "multi_task_klr", CLASSES, TASKS, UNSEEN)

# ------------------------------------------------------------ wrappers and tables

PREDICTOR = Part("estimator", "wrapper")
BOUND = OneOf(Real(0, finite=False), Floats(None, low=0, finite=False))


def _check_recalibrated(state: State, sizes: Sizes) -> str | None:
    """One map for each number of classes, with parameters for all labels or tasks, or for none."""
    if (found := _wrapped_problem(state, "estimator_")) is not None:
        return found
    if "label_index_" in state and "threshold_" not in state:
        return "threshold_ is missing"
    if (found := _probabilities_problem(state)) is not None:
        return found
    for columns, one in zip(getattr(state.get("layout_"), "columns", ()), state.get("calibrators_", ()), strict=True):
        own = _map_sizes(one)
        n_groups = max(len(columns), state["layout_"].n_tasks, 1)
        if own is not None and (own[1] != columns.shape[1] or own[0] not in (1, n_groups + 1)):
            return f"calibrators_ has a map with parameters for {own[0] - 1} groups and {own[1]} classes"
    return None


def _map_sizes(one: Any) -> tuple[int, int] | None:
    """Numbers of parameter sets and of classes of a recalibration map of leastwise; None for others."""
    if hasattr(one, "parts"):
        inner = _map_sizes(one.parts[0]) if one.parts else None
        return None if inner is None else (inner[0], len(one.parts))
    if hasattr(one, "corners"):
        return len(one.corners), len(one.corners[0]) if one.corners else 0
    return one.b.shape if hasattr(one, "b") else None


def _innermost(model: Any) -> Any:
    """The estimator inside pipelines and wrappers."""
    while hasattr(model, "steps") or hasattr(model, "estimator_"):
        model = (model.steps[-1][1] if len(model.steps) else None) if hasattr(model, "steps") else model.estimator_
    return model


def _wrapped_problem(state: State, name: str) -> str | None:
    """The model inside a wrapper is fitted, and has the same classes."""
    if name not in state:
        return None
    inner = _innermost(state[name])
    if not hasattr(inner, "n_features_in_"):
        return f"{name} is not fitted"
    classes, known = state.get("classes_"), getattr(inner, "classes_", None)
    if classes is not None and np.shape(classes if known is None else known) != np.shape(classes):
        return f"classes_ are not those of {name}"
    return None


def _check_abstaining(state: State, sizes: Sizes) -> str | None:
    """A model of tasks has a threshold for unseen tasks, and with ``by_task`` one for each task."""
    if (found := _wrapped_problem(state, "estimator_")) is not None or "estimator_" not in state:
        return found
    inner = _innermost(state["estimator_"])
    tasks, labels = getattr(inner, "tasks_", None), getattr(inner, "labels_", None)
    if tasks is not None and "unseen_task_threshold_" not in state:
        return "unseen_task_threshold_ is missing"
    count = len(inner.classes_ if labels is None else labels)
    levels = ("miss_levels_", "miss_bounds_", *(() if tasks is None else ("unseen_task_miss_levels_",)))
    for name in levels if state.get("max_miss") else ():
        if name not in state or len(state[name]) != count:
            return f"{name} is missing, or has not {count} entries"
    if tasks is not None and sizes.get("n_tasks", len(tasks)) != len(tasks):
        return f"task_thresholds_ has {sizes['n_tasks']} entries for {len(tasks)} tasks"
    return None


def _check_table(state: State, sizes: Sizes) -> str | None:
    """The encoder makes as many features as the model takes."""
    if (found := _wrapped_problem(state, "fitted_")) is not None or "fitted_" not in state:
        return found
    inner = _innermost(state["fitted_"])
    made, taken = state["encoder_"]._n_features_out, inner.n_features_in_
    if made != taken and not hasattr(state["fitted_"], "steps"):
        return f"encoder_ makes {made} features for a model of {taken}"
    if (state["kind_"] == "classes") != ("classes_" in state):
        return "classes_ is missing, or the target has no classes"
    labels = getattr(inner, "labels_", None)
    if (state["kind_"] == "labels") != (labels is not None) or len(state.get("labels") or ()) != (
        0 if labels is None else len(labels)
    ):
        return "labels are not those of fitted_"
    return None


register(
    "leastwise.estimators.abstaining:Abstaining",
    "Abstaining",
    "wrapper",
    {
        "_sklearn_output_config": OUTPUT_CONFIG,
        "estimator": PREDICTOR,
        "max_error": Maybe(SHARE),
        "min_confidence": Maybe(SHARE),
        "cost": Maybe(POSITIVE),
        "max_miss": Maybe(DictOf(Scalar(), SHARE)),
        "confidence": SHARE,
        "by_task": Bool(),
        "reject": Scalar(),
        "estimator_": PREDICTOR,
        "classes_": OneOf(Names(), STACKED, ListOf(Names())),
        "threshold_": OneOf(ANY_WEIGHT, Floats("n_labels", low=0, finite=False)),
        "coverage_": OneOf(SHARE, Floats("n_labels", low=0, high=1)),
        "error_bound_": BOUND,
        "risk_coverage_": Optional(
            OneOf(Part("heldout.RiskCoverage"), ListOf(Part("heldout.RiskCoverage"), "n_labels"))
        ),
        "unseen_task_threshold_": Optional(ANY_WEIGHT),
        "task_thresholds_": Optional(Floats("n_tasks", low=0, finite=False)),
        "task_guarantees_": Optional(Array("U", "n_tasks")),
        "miss_levels_": Optional(Floats(None, low=0, finite=False)),
        "miss_bounds_": Optional(Floats(None, low=0, high=1, finite=False)),
        "unseen_task_miss_levels_": Optional(Floats(None, low=0, finite=False)),
    },
    exact=True,
    report=REPORT,
    check=_check_abstaining,
)
register(
    "leastwise.estimators.recalibrated:Recalibrated",
    "Recalibrated",
    "wrapper",
    {
        "_sklearn_output_config": OUTPUT_CONFIG,
        "estimator": PREDICTOR,
        "method": OneOf(Maybe(Text()), Sequence(Maybe(Text()))),
        "by_task": Bool(),
        "estimator_": PREDICTOR,
        "n_features_in_": Optional(Int(0, 2**31 - 1, size="n_features")),
        "feature_names_in_": NAMES_IN,
        "classes_": OneOf(Names(), STACKED, ListOf(Names())),
        "class_prior_": OneOf(Floats(None, low=0, high=1), ListOf(Floats(None, low=0, high=1))),
        "tasks_": Optional(Names("n_tasks")),
        "task_index_": Optional(Part("tasks.Tasks", sizes=("n_tasks",))),
        "labels_": Optional(Names("n_labels")),
        "label_index_": Optional(Part("labels.Labels", sizes=("n_labels",))),
        "threshold_": Optional(OneOf(SHARE, Floats("n_labels", low=0, high=1))),
        "layout_": Part("recalibration.Layout", sizes=("n_maps",)),
        "setting_": Part("recalibration.Setting"),
        "method_": Maybe(Text()),
        "scores_": DictOf(Maybe(Text()), Real(finite=False)),
        "calibrators_": TupleOf(Part("recalibration"), "n_maps"),
        "heldout_proba_": LABELS["heldout_proba_"],
        "heldout_decision_": LABELS["heldout_decision_"],
        "heldout_rows_": LABELS["heldout_rows_"],
    },
    exact=EXACT,
    report=REPORT,
    check=_check_recalibrated,
)
KINDS = DictOf(Text(), Text())
TEXTS = Sequence(Text())
register(
    "leastwise.tables.model:TableModel",
    "TableModel",
    "estimator",
    {
        "target": Maybe(Text()),
        "labels": Maybe(TEXTS),
        "task": Maybe(Text()),
        "group": Maybe(Text()),
        "weight": Maybe(Text()),
        "id": Maybe(Text(), TEXTS),
        "kind": Maybe(Text()),
        "model": Maybe(PREDICTOR),
        "kinds": Maybe(KINDS),
        "ignore": TEXTS,
        "missing": OneOf(Text(), TEXTS),
        "max_error": Maybe(SHARE),
        "min_confidence": Maybe(SHARE),
        "cost": Maybe(SHARE),
        "max_miss": Maybe(DictOf(Text(), SHARE)),
        "confidence": SHARE,
        "by_task": Bool(),
        "threshold": Maybe(Text("auto"), SHARE, DictOf(Text(), SHARE)),
        "similarity": Maybe(Text()),
        "kernel": Maybe(Text()),
        "bounds": PARAMETERS["bounds"],
        "coverage": SHARE,
        "recalibrate": Bool(),
        "n_centers": Maybe(Text("auto"), Int(1)),
        "time_limit": Maybe(Real()),
        "random_state": RandomSource(),
        "kind_": Text("classes", "numbers", "labels"),
        "encoder_": Part("TableEncoder"),
        "fitted_": PREDICTOR,
        "classes_": Optional(Names()),
        "baseline_": OneOf(Real(), Floats(None, low=0, high=1)),
        "n_rows_": COUNT,
        "left_out_": DictOf(Text(), COUNT),
        "rows_used_": Ints(None, low=0),
        "stopped_": Bool(),
        "reference_": Optional(DictOf(Text(), Plain())),
        "heldout_": Optional(DictOf(Text(), Plain())),
        "baselines_": Optional(Maybe(DictOf(Text(), Plain()))),
        "effects_": Optional(DictOf(Text(), Plain())),
        "notes_": ListOf(Text()),
    },
    exact=True,
    skip=("seconds_",),
    report=("heldout_", "reference_", "baselines_", "effects_"),
    check=_check_table,
)
register(
    "leastwise.tables.encoder:TableEncoder",
    "TableEncoder",
    "transformer",
    {
        "_sklearn_output_config": OUTPUT_CONFIG,
        "kinds": Maybe(KINDS),
        "ignore": TEXTS,
        "max_categories": Int(1),
        "min_share": SHARE,
        "output": Text("features", "codes"),
        "columns_": ListOf(Part("table.Column")),
        "n_features_in_": Int(0, 2**31 - 1, size="n_features"),
        "feature_names_in_": NAMES_IN,
    },
    exact=True,
)
