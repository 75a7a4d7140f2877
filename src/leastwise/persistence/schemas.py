"""The fields of the classes of leastwise that may stand in a model file.

One line for a field: its type, dtype, shape and range. Sizes with the same name in one class are equal; ``sizes=`` of
a part ties its sizes to those of the object that holds it. To add a field, add its line here, or for a plain scalar
only its annotation; ``tests/persistence/test_schemas.py`` names fields of saved models that lack one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.persistence.fields import (
    Array,
    Bool,
    DictOf,
    DType,
    Field,
    Floats,
    Int,
    Ints,
    ListOf,
    Maybe,
    Name,
    Names,
    OneOf,
    Part,
    RandomSource,
    Real,
    Record,
    Rows,
    Scalar,
    Text,
    TupleOf,
)
from leastwise.persistence.registry import State, register

Sizes = dict[str, int]
SHARE = Real(0, 1)
POSITIVE = Real(low=0)


def _part(name: str, location: str, role: str = "part", fields: Any = None, **options: Any) -> None:
    register(f"leastwise.{location}", name, role, fields, **options)


# ------------------------------------------------------------------------ kernels

_part("kernel.RBF", "problem.kernels:RBF", "kernel")
_part("kernel.Laplace", "problem.kernels:Laplace", "kernel")
_part("kernel.Linear", "problem.kernels:Linear", "kernel")
_part("kernel.Poly", "problem.kernels:Poly", "kernel", {"degree": Int(1, 1000)})
_part("kernel.Sigmoid", "problem.kernels:Sigmoid", "kernel")
_part("kernel.Precomputed", "problem.kernels:Precomputed", "kernel")
_part(
    "kernel.ScaledLinear",
    "problem.kernels:Scaled",
    "kernel",
    {"origin": Maybe(Floats("n_inputs")), "height": POSITIVE},
)
_part(
    "kernel.Sum",
    "problem.kernels:Sum",
    "kernel",
    {"parts": TupleOf(Part("kernel", sizes=("n_inputs",)), "n_parts"), "weights": TupleOf(POSITIVE, "n_parts")},
)

# ------------------------------------------------------------------------- inputs


def _check_one_hot(state: State, sizes: Sizes) -> str | None:
    wide = sizes["width"] > len(state["slots"]) + 1
    return f"width is {sizes['width']}, with {len(state['slots'])} slots" if wide else None


def _check_quantile(state: State, sizes: Sizes) -> str | None:
    falls = [name for name in ("knots", "scores") if (np.diff(state[name], axis=1) < 0).any()]
    return f"{falls[0]} has a row that is not in rising order" if falls else None


def _check_inputs(state: State, sizes: Sizes) -> str | None:
    if (state.get("missing") is None) != (state.get("missing_factors") is None):
        return "missing_factors does not belong to missing"
    return None


_part(
    "inputs.OneHot",
    "problem.inputs:OneHot",
    "part",
    {
        "column": Int(0),
        "slots": Ints("n_slots", low=0, below="width"),
        "width": Int(1, size="width"),
        "factor": POSITIVE,
    },
    check=_check_one_hot,
)
_part(
    "inputs.Standard",
    "problem.inputs:Standard",
    "scale",
    {"shift": Floats("n_numbers"), "unit": Floats("n_numbers", low=0)},
)
_part(
    "inputs.Robust",
    "problem.inputs:Robust",
    "scale",
    {
        "center": Floats("n_numbers"),
        "spread": Floats("n_numbers", low=0),
        "standard": Part("inputs.Standard", sizes=("n_numbers",)),
    },
)
_part(
    "inputs.Quantile",
    "problem.inputs:Quantile",
    "scale",
    {"knots": Floats("n_numbers", "n_knots"), "scores": Floats("n_numbers", "n_knots")},
    check=_check_quantile,
)
_part(
    "inputs.Inputs",
    "problem.inputs:Inputs",
    "part",
    {
        "rule": Maybe(Part("scale", sizes=("n_numbers",))),
        "columns": Maybe(Ints("n_numbers", low=0)),
        "weights": Maybe(Floats("n_weights", low=0)),
        "fill": Maybe(Floats("n_numbers")),
        "missing": Maybe(Ints("n_missing", low=0)),
        "missing_factors": Maybe(Floats("n_missing", low=0)),
        "categories": TupleOf(Part("inputs.OneHot")),
    },
    check=_check_inputs,
)

# -------------------------------------------------------------------- calibration

SHARES = Floats("n_classes", low=0, high=1)


def _check_corners(state: State, sizes: Sizes) -> str | None:
    pairs = zip(state["knots"], state["steps"], strict=True)
    uneven = [k for k, (knots, steps) in enumerate(pairs) if len(knots) != len(steps)]
    return f"steps[{uneven[0]}] is not as long as knots[{uneven[0]}]" if uneven else None


def _check_starts(state: State, sizes: Sizes) -> str | None:
    """The labels (and the knots of isotonic calibrators) fill their arrays one after the other."""
    for name, filled in (("starts", "shares"), ("corners", "knots")):
        if name in state and (state[name][0] != 0 or state[name][-1] != len(state[filled])):
            return f"{name} does not go from 0 to {len(state[filled])}"
    return None


_part("calibrator.ClipNormalise", "calibration.calibrators:ClipNormalise", "calibrator", {"shares": SHARES})
_part("calibrator.Softmax", "solvers.newton:Softmax", "calibrator", {"shares": Maybe(SHARES)})
_part(
    "calibrator.Blend",
    "calibration.blend:Blend",
    "calibrator",
    {"shares": SHARES, "delta": POSITIVE, "floor": SHARE, "sharpness": POSITIVE, "power": POSITIVE},
)
CORNERS = Floats(None, order="rising")
_part(
    "calibrator.Isotonic",
    "calibration.calibrators:Isotonic",
    "calibrator",
    {
        "shares": SHARES,
        "floor": SHARE,
        "knots": TupleOf(CORNERS, "n_classes"),
        "steps": TupleOf(Floats(None, low=0, high=1), "n_classes"),
    },
    check=_check_corners,
)
_part(
    "calibrator.Signed",
    "calibration.calibrators:Signed",
    "calibrator",
    {"inner": Part("calibrator", sizes=("n_classes",))},
)
STARTS: dict[str, Field] = {
    "starts": Ints("n_labels+1", low=0, order="strict"),
    "shares": Floats("n_columns", low=0, high=1),
}
BY_LABEL = Floats("n_labels", low=0)
_part(
    "calibrator.LabelClip",
    "calibration.label_calibrators:LabelClip",
    "label_calibrator",
    STARTS,
    check=_check_starts,
)
_part(
    "calibrator.LabelBlend",
    "calibration.label_calibrators:LabelBlend",
    "label_calibrator",
    {**STARTS, "delta": BY_LABEL, "floor": BY_LABEL, "sharpness": BY_LABEL, "power": BY_LABEL},
    check=_check_starts,
)
_part(
    "calibrator.LabelIsotonic",
    "calibration.label_calibrators:LabelIsotonic",
    "label_calibrator",
    {
        **STARTS,
        "floor": BY_LABEL,
        "corners": Ints("n_columns+1", low=0, order="rising"),
        "knots": Floats("n_corners"),
        "steps": Floats("n_corners", low=0, high=1),
    },
    check=_check_starts,
)
_part("calibrator.Extrapolation", "calibration.extrapolation:Extrapolation", "part", {"radius": POSITIVE})

# ------------------------------------------------------------------ recalibration


def _check_steps(state: State, sizes: Sizes) -> str | None:
    pairs = [pair for one in state["corners"] for pair in one]
    return "corners has knots and values of different lengths" if any(len(x) != len(y) for x, y in pairs) else None


ANY_WEIGHT = Real(low=0, finite=False)
_part(
    "recalibration.Setting",
    "calibration.maps:Setting",
    "part",
    {"pull": ANY_WEIGHT, "group_pull": ANY_WEIGHT},
    exact=True,
)
_part("recalibration.Identity", "calibration.maps:Unchanged", "recalibration", exact=True)
_part(
    "recalibration.Linear",
    "calibration.maps:Linear",
    "recalibration",
    {"W": Floats("n_sets", "n_classes", "n_classes"), "b": Floats("n_sets", "n_classes"), "floor": SHARE},
    exact=True,
)
_part(
    "recalibration.Quadratic",
    "calibration.maps:Quadratic",
    "recalibration",
    {
        "tau": Floats("n_sets", 1),
        "D": Floats("n_sets", "n_classes"),
        "u": Floats("n_sets", "n_classes"),
        "b": Floats("n_sets", "n_classes"),
        "max_logit": ANY_WEIGHT,
        "floor": SHARE,
    },
    exact=True,
)
_part(
    "recalibration.OneVersusRest",
    "calibration.maps:OneVersusRest",
    "recalibration",
    {"parts": TupleOf(Part("recalibration", sizes=("n_sets", "two=n_classes")), "n_classes")},
    check=lambda state, sizes: "parts are not maps of two classes" if sizes.get("two", 2) != 2 else None,
    exact=True,
)
_part(
    "recalibration.Isotonic",
    "calibration.maps:Steps",
    "recalibration",
    {
        "corners": TupleOf(TupleOf(Record(CORNERS, Floats(None)), "n_classes"), "n_sets"),
        "own": Floats("n_sets", low=0, high=1),
        "floor": SHARE,
    },
    check=_check_steps,
    exact=True,
)
_part(
    "recalibration.Layout",
    "estimators._recalibrated_rows:Layout",
    "part",
    {
        "columns": TupleOf(Ints(None, None, low=0, below="n_columns"), "n_maps"),
        "shares": Floats("n_columns", low=0, high=1),
        "n_tasks": Int(0),
    },
    exact=True,
)

# --------------------------------------------------------------- tasks and labels


def _check_tasks(state: State, sizes: Sizes) -> str | None:
    return "ids has an id twice" if len(set(state["ids"])) < len(state["ids"]) else None


PENALTY = Floats("n_tasks", low=0)
SQUARE = Floats("n_tasks", "n_tasks")
_part(
    "tasks.Tasks",
    "problem.tasks:Tasks",
    "part",
    {"ids": ListOf(Name(), "n_tasks"), "given": Maybe(ListOf(Name()))},
    skip=("_place",),
    check=_check_tasks,
)
_part(
    "tasks.CouplingMatrix",
    "problem.coupling:CouplingMatrix",
    "part",
    {"sharing": SHARE, "own": Floats("n_tasks"), "B": Maybe(SQUARE)},
)
_part("tasks.SharedCoupling", "problem.coupling:Shared", "part", {"penalty": PENALTY, "similarity": Maybe(SQUARE)})
_part("tasks.PairwiseCoupling", "problem.coupling:Pairwise", "part", {"penalty": PENALTY, "similarity": SQUARE})
_part(
    "tasks.DualForm",
    "solvers.solve_tasks:DualForm",
    "part",
    {
        "A": Floats("n_centers", "n_outputs"),
        "task": Ints("n_centers", low=0, below="n_tasks"),
        "coupling_matrix": Part("tasks.CouplingMatrix", sizes=("n_tasks",)),
    },
)
_part(
    "tasks.PrimalForm",
    "solvers.solve_tasks:PrimalForm",
    "part",
    {"coef": Floats("n_tasks+1", "n_centers", "n_outputs")},
)
_part(
    "labels.Labels",
    "problem.labels:Labels",
    "part",
    {
        "names": TupleOf(Name(), "n_labels"),
        "classes": TupleOf(Names(), "n_labels"),
        "form": Text("array", "sparse", "pandas", "polars", "flat"),
        "constant": TupleOf(Int(0, below="n_labels")),
        "dtypes": TupleOf(DType()),
        "container": Maybe(DType()),
    },
    exact=True,
)
_part(
    "labels.LabelGroup",
    "solvers.label_modes:LabelGroup",
    "part",
    {"labels": Ints("n_group", low=0), "columns": Ints(None, "n_group", low=0)},
)


def _check_modes(state: State, sizes: Sizes) -> str | None:
    V, n = state.get("V"), len(state["which"])
    made = n if V is None else V.shape[1] + (V.shape[0] if state.get("complement") else 0)
    return f"which has {n} entries for {made} rotated columns" if n != made else None


_part(
    "labels.Modes",
    "linalg.sylvester:Modes",
    "part",
    {
        "values": Floats("n_values", low=0),
        "which": Ints(None, low=0, below="n_values"),
        "V": Maybe(Rows("n_group", None)),
    },
    check=_check_modes,
)


def _check_coupled(state: State, sizes: Sizes) -> str | None:
    """Without a rotation, there is one mode for each label; ``_check_modes`` has the other cases."""
    modes, n = state["modes"], len(state["family"].labels)
    wrong = modes.V is None and len(modes.which) != n
    return f"modes has {len(modes.which)} entries for {n} labels" if wrong else None


_part(
    "labels.CoupledLabels",
    "solvers.label_modes:CoupledLabels",
    "part",
    {
        "family": Part("labels.LabelGroup", sizes=("n_group",)),
        "modes": Part("labels.Modes", sizes=("n_group",)),
    },
    check=_check_coupled,
)

# ------------------------------------------------------------------ held-out rows

WEIGHTS = Floats("n_rows", low=0)
GROUPS = Maybe(Ints("n_rows"))
CODES = OneOf(Ints("n_rows", low=-1), Ints("n_rows", "n_labels", low=-1))


def _check_heldout_rows(state: State, sizes: Sizes) -> str | None:
    return "weight has another shape than codes" if state["weight"].shape != state["codes"].shape else None


_part(
    "heldout.HeldoutRows",
    "calibration.conformal:HeldRows",
    "part",
    {
        "codes": CODES,
        "weight": OneOf(WEIGHTS, Floats("n_rows", "n_labels", low=0)),
        "in_domain": Floats("n_rows", low=0, high=1),
        "group": GROUPS,
        "task": Maybe(Ints("n_rows", low=-1)),
        "count": Maybe(WEIGHTS),
    },
    check=_check_heldout_rows,
)
_part(
    "heldout.Centring",
    "problem.coupling:Centring",
    "part",
    {
        "task": Ints("n_rows", low=0, below="n_tasks"),
        "u": Floats("n_rows"),
        "kappa": Floats("n_tasks", low=0, high=1),
    },
    exact=True,
)
OUTPUTS = Floats("n_rows", "n_outputs")


def _check_residuals(state: State, sizes: Sizes) -> str | None:
    present = np.unique(state["fold"])
    if state["values"] is None and state["rows"]:
        return "values is missing"
    return None if np.array_equal(present, np.arange(len(present))) else "fold has gaps in the numbers of its folds"


def _check_spread(state: State, sizes: Sizes) -> str | None:
    """A local average has a kernel, knots and sums; knots are as wide as what they are compared with."""
    parts = [name for name in ("kernel", "knots", "total", "mass") if state[name] is not None]
    if len(parts) != (0 if state["by"] == "mean" else 4):
        return f"by is {state['by']!r}, and the attributes that are not None are {parts}"
    if state["by"] == "inputs":
        sizes["n_inputs"] = state["knots"].shape[1]  # the model compares it with its centres
    if state["by"] == "prediction" and state["knots"].shape[1] != sizes["n_outputs"]:
        return f"knots has {state['knots'].shape[1]} columns, and there are {sizes['n_outputs']} outputs"
    return None


_part(
    "heldout.Spread",
    "calibration.spread:Spread",
    "part",
    {
        "mean": Floats("n_outputs", low=0),
        "by": Text("mean", "prediction", "inputs"),
        "kernel": Maybe(Part("kernel.RBF", "kernel.Laplace")),
        "bandwidth": Real(1e-150, 1e150),
        "knots": Maybe(Rows("n_knots", None)),
        "total": Maybe(Floats("n_knots", "n_outputs", low=0)),
        "mass": Maybe(Floats("n_knots", low=0)),
        "factor": Maybe(Floats("n_tasks", "n_outputs", low=0)),
        "heldout": Floats("n_rows", "n_outputs", low=0),
    },
    exact=True,
    check=_check_spread,
)
_part(
    "heldout.Residuals",
    "estimators.intervals:Residuals",
    "part",
    {
        "residual": Floats("n_rows", "n_outputs", finite=False),
        "fold": Ints("n_rows", low=0),
        "w": WEIGHTS,
        "rho": POSITIVE,
        "centring": Maybe(Part("heldout.Centring", sizes=("n_rows",))),
        "unseen_task": Maybe(Floats("n_unseen", "n_outputs", finite=False)),
        "unseen_task_w": Maybe(Floats("n_unseen", low=0)),
        "level": POSITIVE,
        "kernel": Maybe(Floats("n_rows", "n_rows")),
        "values": Maybe(OUTPUTS),
        "group": GROUPS,
        "count": Maybe(WEIGHTS),
        "excess": Maybe(OUTPUTS),
        "inflation": ANY_WEIGHT,
        "spread": Maybe(Part("heldout.Spread", sizes=("n_rows", "n_outputs", "n_inputs", "n_tasks"))),
        "position": Maybe(Ints("n_rows", low=0)),
        "unseen_spread": Maybe(Part("heldout.Spread", sizes=("n_unseen=n_rows", "n_outputs", "n_inputs", "n_tasks"))),
    },
    exact=True,
    skip=("inverse", "same"),
    check=_check_residuals,
)
_part(
    "heldout.Neighbourhood",
    "calibration.extrapolation:Neighbourhood",
    "part",
    {
        "distance": Floats("n_distances", low=0, order="rising"),
        "weight": Floats("n_distances+1", low=0),
        "places": Maybe(Ints(None, low=0)),
        "rows": Maybe(Rows(None, "n_inputs")),
    },
)
CURVE = Floats("n_points", low=0, high=1)
_part(
    "heldout.RiskCoverage",
    "calibration.risk:RiskCoverage",
    "part",
    {"threshold": CURVE, "coverage": CURVE, "error": CURVE, "bound": CURVE},
    exact=True,
)
_part(
    "influence.TrainingRecord",
    "solvers.influence:TrainingRecord",
    "part",
    {
        "index": Ints("n_rows", low=0),
        "Z": OUTPUTS,
        "w": WEIGHTS,
        "ridge": POSITIVE,
        "intercept_ratio": ANY_WEIGHT,
    },
)
_part(
    "influence.LabelTrainingRecord",
    "solvers.label_influence:LabelTrainingRecord",
    "part",
    {
        "index": Ints("n_rows", low=0),
        "codes": Ints("n_rows", "n_labels", low=-1),
        "w": WEIGHTS,
        "entries": Maybe(Floats("n_rows", "n_labels", low=0)),
        "ridge": POSITIVE,
        "jitter": POSITIVE,
        "coupled_labels": TupleOf(Part("labels.CoupledLabels")),
    },
)

# ------------------------------------------------------- streams, tables, searches


def _check_row_sample(state: State, sizes: Sizes) -> str | None:
    y = state["y"]
    negative = y.dtype.kind == "i" and y.size and y.ndim == 1 and y.min() < 0
    return "y has codes below 0" if negative else None


_part(
    "stream.Whitening",
    "linalg.moments:Whitening",
    "part",
    {
        "T": Floats("n_pivots", "n_pivots"),
        "pivots": Ints("n_pivots", low=0, below="n_centers"),
        "size": Int(0, 2**31 - 1, size="n_centers"),
        "jitter": POSITIVE,
    },
    exact=True,
)
_part(
    "stream.Moments",
    "linalg.moments:Moments",
    "part",
    {
        "A": Floats("n_pivots", "n_pivots"),
        "C": Floats("n_pivots", "n_outputs"),
        "p": Floats("n_pivots"),
        "z": Floats("n_outputs"),
        "mass": POSITIVE,
        "n": Int(0),
        "whitening": Maybe(Part("stream.Whitening", sizes=("n_pivots", "n_centers"))),
    },
    exact=True,
)
_part(
    "stream.RowSample",
    "sources.bottom_k:Kept",
    "part",
    {
        "key": Array("u", "n_rows"),
        "X": Rows("n_rows", "n_features", finite=False),  # before missing values are filled
        "y": OneOf(Array("if", "n_rows"), Array("if", "n_rows", None)),
        "w": WEIGHTS,
        "group": Maybe(Names("n_rows")),
        "limit": Int(0),
        "bound": Int(0, 2**64 - 1),
        "count": WEIGHTS,
    },
    check=_check_row_sample,
    exact=True,
)
COUNT = Int(0)
_part(
    "table.Column",
    "tables.columns:Column",
    "part",
    {
        "kind": Text("number", "boolean", "date", "category", "ignore"),
        "n_missing": COUNT,
        "n_values": COUNT,
        "scale": POSITIVE,
        "categories": TupleOf(Text()),
        "pooled": TupleOf(Text()),
        "parts": TupleOf(Text("time of year", "weekday", "time of day")),
    },
    exact=True,
)
SPLITTER: dict[str, Field] = {"n_splits": Int(2, 10**6), "shuffle": Bool(), "random_state": RandomSource()}
COLUMN = Maybe(Text(), Int())
_part(
    "splitter.StratifiedTaskKFold",
    "model_selection:StratifiedTaskKFold",
    "splitter",
    {**SPLITTER, "task_column": COLUMN},
)
_part("splitter.StratifiedLabelKFold", "model_selection:StratifiedLabelKFold", "splitter", SPLITTER)
ANY_FLOATS = tuple(Floats(*(None,) * axes, finite=False) for axes in (1, 2, 3))
_part(
    "search.Candidate",
    "solvers.evaluator:Candidate",
    "part",
    {
        "score": Real(finite=False),
        "F": Floats(None, None, finite=False),
        "calibrator": Maybe(Part("calibrator", "label_calibrator")),
        "intercept_ratio": Maybe(ANY_WEIGHT),
        "weight": Maybe(ANY_WEIGHT),
    },
    exact=True,
)
_part(
    "search.CheckpointStep",
    "model_selection.checkpoint:SearchStep",
    "part",
    {"number": COUNT, "sigma": Maybe(ANY_WEIGHT), "n_rows": COUNT},
    exact=True,
)
_part(
    "search.CheckpointEntry",
    "model_selection.checkpoint:CheckpointEntry",
    "part",
    {
        "step": Part("search.CheckpointStep"),
        "outcome": Part("search.Candidate"),
        "seen": ListOf(DictOf(Text(), OneOf(Scalar(), *ANY_FLOATS))),
        "warm_start": Maybe(ListOf(ListOf(OneOf(Name(), *ANY_FLOATS)), 5)),
    },
    exact=True,
)
