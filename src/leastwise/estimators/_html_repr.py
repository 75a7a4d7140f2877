"""HTML representation of fitted models in notebooks: what the fit chose, held-out measures, a reliability diagram.

It precedes scikit-learn's diagram of the estimator.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from leastwise.metrics.calibration import equal_mass_bins
from leastwise.metrics.probabilities import class_log_losses
from leastwise.metrics.reliability import bin_count, event_calibration_error, reliability_bins
from leastwise.utils.svg import Frame, Markup, element, join_markup, picture
from leastwise.utils.unwrap import core, within

Array = np.ndarray
T = TypeVar("T", bound=type)

#: Bins of the diagram, and its side in pixels.
BINS, SIDE = 10, 120.0
STYLE = Markup(
    "<style>.leastwise-fitted{display:flex;flex-wrap:wrap;gap:.3em 1.6em;align-items:center;margin:.4em 0;"
    "font:13px/1.45 system-ui,sans-serif}.leastwise-fitted dl{display:grid;grid-template-columns:auto auto;"
    "gap:0 1.1em;margin:0}.leastwise-fitted dt{opacity:.75}.leastwise-fitted dd{margin:0;"
    "font-variant-numeric:tabular-nums}.leastwise-fitted svg{width:120px;height:120px;color:inherit}"
    ".leastwise-fitted .box,.leastwise-fitted .even{fill:none;stroke:currentColor;stroke-opacity:.45}"
    ".leastwise-fitted .even{stroke-dasharray:3 3}.leastwise-fitted .bar{fill:currentColor;fill-opacity:.14}"
    ".leastwise-fitted .curve{fill:none;stroke:#2b7bba;stroke-width:2}.leastwise-fitted .dot{fill:#2b7bba}</style>"
)


def shows_fit(cls: T) -> T:
    """Decorate an estimator: its HTML begins with :func:`fitted_block`, unless ``set_config`` disables HTML."""
    inner, mimebundle = cls._repr_html_inner, cls._repr_mimebundle_  # type: ignore[attr-defined]

    def _repr_html_inner(self: BaseEstimator) -> str:
        return fitted_block(self) + inner(self)

    def _repr_mimebundle_(self: BaseEstimator, **kwargs: Any) -> dict[str, str]:
        bundle = mimebundle(self, **kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = fitted_block(self) + bundle["text/html"]
        return bundle

    cls._repr_html_inner, cls._repr_mimebundle_ = _repr_html_inner, _repr_mimebundle_  # type: ignore[attr-defined]
    return cls


def fitted_block(model: Any) -> str:
    """The block, or an empty string for a model that is not fitted or not of this library."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return ""
    model = vars(model).get("fitted_", model)  # the fitted model of a TableModel
    if not type(model).__module__.startswith("leastwise."):
        return ""
    facts = join_markup(*(element("dt", name) + element("dd", value) for name, value in facts_of(model)))
    outcomes = heldout_outcomes(model)
    diagram = Markup() if outcomes is None else reliability_diagram(*outcomes[:3])
    return str(STYLE + element("div", element("dl", facts), diagram, class_="leastwise-fitted"))


def facts_of(model: Any) -> list[tuple[str, str]]:
    """Names and values of the chosen hyperparameters and of held-out measures."""
    inner = core(model)
    chosen = [(name, getattr(inner, f"{name}_", None)) for name in ("sigma", "alpha", "sharing")]
    facts = [(name, f"{value:.4g}") for name, value in chosen if isinstance(value, float | np.floating)]
    if getattr(inner, "scale_", None) is not None:
        facts.append(("scale", inner.scale_))
    if isinstance(getattr(model, "method_", None), str):
        facts.append(("recalibrated by", model.method_))
    threshold: Any = getattr(model, "threshold_", None)
    if hasattr(model, "error_bound_") and np.ndim(threshold) == 0:
        facts.append(("threshold", f"{threshold:.4g}"))
    outcomes = heldout_outcomes(model)
    if outcomes is None:
        residuals = vars(inner).get("residuals_")
        if residuals is None:
            return [*facts, ("held out", "nothing (cv=None)")]
        rmse = np.sqrt(np.average(residuals.residual**2, axis=0, weights=residuals.w)) * inner.unit_
        return [*facts, ("held-out RMSE", ", ".join(f"{v:.4g}" for v in np.atleast_1d(rmse)[:4]))]
    p, true, w, loss = outcomes
    facts.append(("held-out log-loss", f"{np.average(loss, weights=w):.4f}"))
    ece = event_calibration_error(p, true, w)
    return [*facts, ("held-out ECE", f"{ece.value:.4f} ({ece.low:.4f} to {ece.high:.4f})")]


def heldout_outcomes(model: Any) -> tuple[Array, Array, Array, Array] | None:
    """Confidence in the most probable class, whether it is correct, weight and log-loss of every held-out row.

    With several labels, of every known entry. None if nothing was held out.
    """
    held, P = getattr(core(model), "heldout_rows_", None), _heldout_proba(model)
    if held is None or P is None:
        return None
    if held.codes.ndim == 1 or (not isinstance(P, list) and held.codes.shape[1] == 1 and P.shape[1] > 1):
        parts = [(np.asarray(P), held.codes.reshape(len(P), -1)[:, 0], held.weight.reshape(len(P), -1)[:, 0])]
    else:
        tables = P if isinstance(P, list) else [np.column_stack([1 - p, p]) for p in P.T]
        parts = [(p, held.codes[:, t], held.weight[:, t]) for t, p in enumerate(tables)]
    outcomes = [row_outcomes(np.asarray(p, dtype=float), codes, w) for p, codes, w in parts]
    return tuple(np.concatenate(column) for column in zip(*outcomes, strict=True))  # type: ignore[return-value]


def _heldout_proba(model: Any) -> Any:
    """Those of the outermost model that has them."""
    while model is not None:
        if (P := vars(model).get("heldout_proba_")) is not None:
            return P
        model = within(model)
    return None


def row_outcomes(P: Array, codes: Array, w: Array) -> tuple[Array, Array, Array, Array]:
    """Confidence, correctness, weight and log-loss of the rows that have a weight and a probability."""
    rows = np.flatnonzero((w > 0) & ~np.isnan(P[:, 0]))
    P, codes = P[rows], codes[rows]
    return P.max(axis=1), P.argmax(axis=1) == codes, w[rows], class_log_losses(P, codes)


def reliability_diagram(p: Array, true: Array, w: Array) -> Markup:
    """A small reliability diagram with bins of equal mass, and a histogram behind it."""
    bins = reliability_bins(p, true, equal_mass_bins(p, bin_count(len(p), BINS), w), w)
    frame = Frame.of((4, 4, SIDE - 4, SIDE - 4), (0, 1), (0, 1))
    heights, edges = np.histogram(p, bins=20, range=(0, 1), weights=w)
    box = element("rect", x=4.0, y=4.0, width=SIDE - 8, height=SIDE - 8, class_="box")
    body = frame.bars(edges, 0.5 * heights / max(heights.max(), 1e-300), "bar") + box
    body += frame.reliability(bins.p, bins.share, 2.2)
    described = ", ".join(f"{a:.2f}: {b:.2f}" for a, b in zip(bins.p, bins.share, strict=True))
    return picture(SIDE, SIDE, body, "Held-out reliability: confidence (x) and accuracy (y)", described)
