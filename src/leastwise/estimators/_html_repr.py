"""What a notebook shows of a fitted model in front of scikit-learn's picture of it: what was chosen, how reliable."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from sklearn.utils.validation import _is_fitted

from leastwise.metrics.calibration import Binned, equal_mass
from leastwise.metrics.losses import class_log_losses
from leastwise.utils.svg import Frame, element
from leastwise.utils.unwrap import core, within

Array = np.ndarray

#: Bins of the sketch, and its side.
BINS, SIDE = 10, 120.0
STYLE = (
    "<style>.leastwise-fitted{display:flex;flex-wrap:wrap;gap:.3em 1.6em;align-items:center;margin:.4em 0;"
    "font:13px/1.45 system-ui,sans-serif}.leastwise-fitted dl{display:grid;grid-template-columns:auto auto;"
    "gap:0 1.1em;margin:0}.leastwise-fitted dt{opacity:.75}.leastwise-fitted dd{margin:0;"
    "font-variant-numeric:tabular-nums}.leastwise-fitted svg{width:120px;height:120px;color:inherit}"
    ".leastwise-fitted .box,.leastwise-fitted .even{fill:none;stroke:currentColor;stroke-opacity:.45}"
    ".leastwise-fitted .even{stroke-dasharray:3 3}.leastwise-fitted .bar{fill:currentColor;fill-opacity:.14}"
    ".leastwise-fitted .curve{fill:none;stroke:#2b7bba;stroke-width:2}.leastwise-fitted .dot{fill:#2b7bba}</style>"
)


class FittedRepr:
    """Mixin: the HTML of a fitted estimator begins with what was chosen. ``set_config(display=...)`` is honoured."""

    def _repr_html_inner(self) -> str:
        return fitted_block(self) + super()._repr_html_inner()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = fitted_block(self) + bundle["text/html"]
        return bundle


def fitted_block(model: Any) -> str:
    """The block, or nothing for a model that is not fitted, or is of another library."""
    if not _is_fitted(model):
        return ""
    model = vars(model).get("fitted_", model)  # what a TableModel has fitted
    if not isinstance(model, FittedRepr):
        return ""
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts_of(model))
    statements = said(model)
    sketch = "" if statements is None else reliability_sketch(*statements[:3])
    return f'{STYLE}<div class="leastwise-fitted"><dl>{facts}</dl>{sketch}</div>'


def facts_of(model: Any) -> list[tuple[str, str]]:
    """Names and values of what the fit chose, and how good held-out predictions were."""
    inner = core(model)
    chosen = [(name, getattr(inner, f"{name}_", None)) for name in ("sigma", "alpha", "sharing")]
    facts = [(name, f"{value:.4g}") for name, value in chosen if isinstance(value, float | np.floating)]
    if isinstance(getattr(model, "method_", None), str):
        facts.append(("recalibrated by", model.method_))
    threshold: Any = getattr(model, "threshold_", None)
    if hasattr(model, "error_bound_") and np.ndim(threshold) == 0:
        facts.append(("decides from", f"{threshold:.4g}"))
    statements = said(model)
    if statements is None:
        residuals = vars(inner).get("residuals_")
        if residuals is None:
            return [*facts, ("held out", "nothing (cv=None)")]
        rmse = np.sqrt(np.average(residuals.residual**2, axis=0, weights=residuals.w)) * inner.unit_
        return [*facts, ("held-out RMSE", ", ".join(f"{v:.4g}" for v in np.atleast_1d(rmse)[:4]))]
    p, true, w, loss = statements
    facts.append(("held-out log-loss", f"{np.average(loss, weights=w):.4f}"))
    error = max(bins_of(p, true, w).error(0, w, debiased=True), 0.0)  # below zero is no more than chance
    return [*facts, ("held-out ECE", f"{error:.4f}")]


def said(model: Any) -> tuple[Array, Array, Array, Array] | None:
    """Of held-out rows: confidence in the most probable class, whether it is true, weight and log-loss.

    Of labels, all known entries. None where nothing was held out.
    """
    held, P = getattr(core(model), "heldout_rows_", None), _heldout_proba(model)
    if held is None or P is None:
        return None
    if held.codes.ndim == 1 or (not isinstance(P, list) and held.codes.shape[1] == 1 and P.shape[1] > 1):
        parts = [(np.asarray(P), held.codes.reshape(len(P), -1)[:, 0], held.weight.reshape(len(P), -1)[:, 0])]
    else:
        tables = P if isinstance(P, list) else [np.column_stack([1 - p, p]) for p in P.T]
        parts = [(p, held.codes[:, t], held.weight[:, t]) for t, p in enumerate(tables)]
    made = [_statements(np.asarray(p, dtype=float), codes, w) for p, codes, w in parts]
    return tuple(np.concatenate(column) for column in zip(*made, strict=True))  # type: ignore[return-value]


def _heldout_proba(model: Any) -> Any:
    """Those of the outermost model that has them."""
    while model is not None:
        if (P := vars(model).get("heldout_proba_")) is not None:
            return P
        model = within(model)
    return None


def _statements(P: Array, codes: Array, w: Array) -> tuple[Array, Array, Array, Array]:
    rows = np.flatnonzero((w > 0) & ~np.isnan(P[:, 0]))
    P, codes = P[rows], codes[rows]
    return P.max(axis=1), P.argmax(axis=1) == codes, w[rows], class_log_losses(P, codes)


def bins_of(p: Array, true: Array, w: Array, n_bins: int = 15) -> Binned:
    """Statements in bins of about equal mass, fewer where rows are few."""
    n_bins = max(1, min(n_bins, len(p) // 10))
    return Binned(p[:, None], true[:, None], equal_mass(p, w, n_bins)[:, None], n_bins)


def bin_means(bins: Binned, w: Array) -> tuple[Array, Array, Array]:
    """Of every bin: mean probability, share of what is true, and mass."""
    p, true, place = bins.p[:, 0], bins.hit[:, 0], bins.bins[:, 0]
    mass, p_sum, t_sum = (np.bincount(place, weights=v) for v in (w, w * p, w * true))
    there = mass > 0
    return p_sum[there] / mass[there], t_sum[there] / mass[there], mass[there]


def reliability_sketch(p: Array, true: Array, w: Array) -> str:
    """A small reliability diagram."""
    mean, share, _ = bin_means(bins_of(p, true, w, BINS), w)
    frame = Frame.of((4, 4, SIDE - 4, SIDE - 4), (0, 1), (0, 1))
    heights, edges = np.histogram(p, bins=20, range=(0, 1), weights=w)
    box = element("rect", x=4.0, y=4.0, width=SIDE - 8, height=SIDE - 8, class_="box")
    body = frame.bars(edges, 0.5 * heights / max(heights.max(), 1e-300), "bar") + box
    body += (
        frame.line([0, 1], [0, 1], "even") + frame.line(mean, share, "curve") + frame.dots(mean, share, "dot", 2.2)
    )
    told = ", ".join(f"{a:.2f}: {b:.2f}" for a, b in zip(mean, share, strict=True))
    title = "Held-out reliability: confidence across, accuracy up"
    head = element("title", title) + element("desc", f"Accuracy at mean confidences. {told}.")
    size = f"0 0 {SIDE:g} {SIDE:g}"
    return element("svg", head, body, viewBox=size, role="img", aria_label=f"{title}. {told}")
