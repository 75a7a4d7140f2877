"""Records of fits: what is kept of a fitted model, how it is written, and how two records are compared.

A record has what the public attributes and methods of a model say. Where one of these is renamed, change its
right-hand side in the tables below; the names in the records stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

FOLDER = Path(__file__).resolve().parent / "fixtures" / "frozen"

#: Chosen parameters: name in the record, attribute. Compared to nine digits.
PARAMETERS = {
    "sigma": "sigma_",
    "alpha": "alpha_",
    "sharing": "sharing_",
    "linear_weight": "linear_weight_",
    "intercept_variance_ratio": "intercept_ratio_",
    "unit": "unit_",
    "method": "method_",
}
#: Other fitted arrays and numbers: name in the record, attribute.
ATTRIBUTES = {
    "classes": "classes_",
    "class_prior": "class_prior_",
    "tasks": "tasks_",
    "labels": "labels_",
    "similarity": "similarity_",
    "coupling": "coupling_",
    "threshold": "threshold_",
    "task_thresholds": "task_thresholds_",
    "unseen_task_threshold": "unseen_task_threshold_",
    "coverage": "coverage_",
    "error_bound": "error_bound_",
    "task_intercept": "task_intercept_",
    "pruning": "pruning_",
    "calibration_scores": "scores_",
    "scale": "scale_",
    "feature_weights": "feature_weights_",
}
#: Predictions of rows that are held out: name in the record, attribute.
HELD_OUT = {
    "heldout_scores": "heldout_scores_",
    "heldout_decision": "heldout_decision_",
    "heldout_proba": "heldout_proba_",
    "heldout_prediction": "heldout_prediction_",
}
#: Predictions of new rows: name in the record, method, options.
PREDICTIONS = {
    "scores": ("scores", {}),
    "decision_function": ("decision_function", {}),
    "predict_proba": ("predict_proba", {}),
    "predict": ("predict", {}),
    "accepts": ("accepts", {}),
    "predict_set, lac": ("predict_set", {"coverage": 0.8}),
    "predict_set, aps": ("predict_set", {"coverage": 0.8, "method": "aps"}),
    "predict_interval, 0.8": ("predict_interval", {"coverage": 0.8, "adaptive": False}),
    "predict_interval, jackknife": ("predict_interval", {"coverage": 0.8, "method": "jackknife", "adaptive": False}),
    "predict_interval, adaptive": ("predict_interval", {"coverage": 0.8, "method": "jackknife"}),
    "novelty": ("novelty_pvalue", {}),
    "in_domain": ("in_domain", {}),
}
#: Columns of cv_results_: name in the record, column.
COLUMNS = {
    "cv sigma": "param_sigma",
    "cv alpha": "param_alpha",
    "cv sharing": "param_sharing",
    "cv linear_weight": "param_linear_weight",
    "cv intercept_variance_ratio": "param_intercept_ratio",
    "cv scale": "param_scale",
    "cv kernel": "param_kernel",
    "cv n_rows": "n_rows",
    "cv score": "mean_test_score",
    "cv rank": "rank_test_score",
}
#: Of held-out rows so many are recorded, spread evenly, beside the mean of all.
HELD_OUT_ROWS = 24


@dataclass(frozen=True)
class Case:
    """A fit and what it says: ``run`` returns the record; ``rtol`` is relative to the largest entry of a quantity."""

    name: str
    run: Callable[[], dict[str, Any]]
    rtol: float = 1e-6
    draws: str = ""
    needs: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.json"


# --- What is recorded ---------------------------------------------------------------------------------------------


def record(model: Any, new: Any, without: tuple[str, ...] = (), **params: Any) -> dict[str, Any]:
    """All that the public attributes and methods of a fitted model say, by name, ``without`` some of them."""
    out: dict[str, Any] = {}
    for name, attribute in PARAMETERS.items():
        if hasattr(model, attribute):
            out[f"parameter {name}"] = getattr(model, attribute)
    out |= {name: getattr(model, a) for name, a in ATTRIBUTES.items() if hasattr(model, a)}
    for name, attribute in HELD_OUT.items():
        if hasattr(model, attribute):
            out |= held_out(name, getattr(model, attribute))
    results = getattr(model, "cv_results_", {})
    missing = set(results) - set(COLUMNS.values())
    assert not missing, f"columns of cv_results_ that are not recorded: {missing}"
    out |= {name: results[column] for name, column in COLUMNS.items() if column in results}
    for name, (method, options) in PREDICTIONS.items():
        if name not in without and allowed(model, method):
            out[name] = getattr(model, method)(new, **params, **options)
    return {name: plain(value) for name, value in out.items() if value is not None}


def allowed(model: Any, method: str) -> bool:
    """True if the model has the method, and held rows out where it needs them."""
    if not hasattr(model, method):
        return False
    if method in {"predict_set", "predict_interval"}:
        return any(hasattr(model, attribute) for attribute in HELD_OUT.values())
    return True


def held_out(name: str, value: Any) -> dict[str, Any]:
    """Some rows of a held-out prediction, and the mean of all; NaN rows were not held out."""
    if isinstance(value, list):
        return {k: v for i, part in enumerate(value) for k, v in held_out(f"{name}, {i}", part).items()}
    value = np.asarray(value, dtype=float)
    rows = np.unique(np.linspace(0, len(value) - 1, HELD_OUT_ROWS).astype(int))
    return {name: value[rows], f"{name}, mean": np.nanmean(value, axis=0)}


def plain(value: Any) -> Any:
    """Numbers and text in lists, as JSON has them."""
    if hasattr(value, "compute"):
        value = value.compute()
    if sparse.issparse(value):
        value = value.toarray()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple) and any(np.ndim(v) for v in value):
        return [plain(v) for v in value]
    if value is None or isinstance(value, str):
        return value
    value = np.asarray(value)
    if value.dtype.kind == "b":
        value = value.astype(int)
    if value.dtype.kind in "OUS":
        return value.astype(str).tolist()
    return value.tolist()


# --- How records are written and compared -------------------------------------------------------------------------


def rounded(value: Any, digits: int) -> Any:
    if isinstance(value, dict):
        return {k: rounded(v, digits) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v, digits) for v in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def write(one: Case) -> None:
    """Write the record of a case, a line for every quantity."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, value in one.run().items():
        digits = 17 if name.startswith("parameter") else 9
        text = json.dumps(rounded(value, digits), separators=(",", ":"))
        lines.append(f"{json.dumps(name)}: {text}")
    one.path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def differences(one: Case, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """One line for every quantity of a case that is not what it was: case, quantity and largest difference."""
    found = [f"{one.name}: {name!r} is no longer there" for name in old if name not in new]
    found += [f"{one.name}: {name!r} is not in the record" for name in new if name not in old]
    for name in (name for name in old if name in new):
        rtol = 1e-9 if name.startswith("parameter") else one.rtol
        said = compare_ranks(old, new, one.rtol) if name == "cv rank" else compare(old[name], new[name], rtol)
        if said:
            found.append(f"{one.name}: {name!r}: {said}")
    return found


def compare(old: Any, new: Any, rtol: float) -> str:
    """What differs, or "". Numbers may differ by ``rtol`` times the largest finite one of the quantity."""
    if isinstance(old, dict):
        if not isinstance(new, dict) or set(old) != set(new):
            return f"was {old}, is {new}"
        return "; ".join(f"{k}: {said}" for k in old if (said := compare(old[k], new[k], rtol)))
    try:
        a, b = np.asarray(old), np.asarray(new)
    except ValueError:  # a list of arrays of different shapes
        return "; ".join(
            f"{i}: {s}" for i, (o, n) in enumerate(zip(old, new, strict=True)) if (s := compare(o, n, rtol))
        )
    if a.shape != b.shape:
        return f"the shape was {a.shape}, is {b.shape}"
    if a.dtype.kind not in "if" or b.dtype.kind not in "if":
        return "" if (a == b).all() else f"{(a != b).sum()} of {a.size} entries differ: was {old}, is {new}"
    finite = np.isfinite(a)
    if not ((finite & np.isfinite(b)) | (a == b) | (np.isnan(a) & np.isnan(b))).all():
        return f"entries that were finite are not, or the reverse: {(finite != np.isfinite(b)).sum()} of {a.size}"
    gap = np.abs(np.where(finite, b, 0.0) - np.where(finite, a, 0.0))
    limit = rtol * np.abs(np.where(finite, a, 0.0)).max(initial=0.0)
    worst = np.unravel_index(gap.argmax(), gap.shape) if gap.size else ()
    if gap.size == 0 or gap[worst] <= limit + 1e-14:
        return ""
    place = f" at {[int(i) for i in worst]}" if worst else ""
    return f"largest difference {gap[worst]:.3g}{place} (was {a[worst]!s}, is {b[worst]!s}; allowed {limit:.3g})"


def compare_ranks(old: dict[str, Any], new: dict[str, Any], rtol: float) -> str:
    """What differs, or "". Points whose scores are equal within the tolerance may change places."""
    score, was, now = (np.asarray(v, dtype=float) for v in (old["cv score"], old["cv rank"], new["cv rank"]))
    if was.shape != now.shape:
        return f"the shape was {was.shape}, is {now.shape}"
    score = np.where(np.isfinite(score), score, -1e300)
    near = rtol * np.abs(score[score > -1e300]).max(initial=0.0) + 1e-14
    ties = (np.abs(score[None, :] - score[:, None]) <= near).sum(axis=1) - 1
    gap = np.abs(now - was) - ties
    worst = int(gap.argmax())
    return f"the rank of point {worst} was {was[worst]:.0f}, is {now[worst]:.0f}" if gap[worst] > 0 else ""
