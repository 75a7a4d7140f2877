"""Comparison of methods on many data sets: ranks, ratios, and the tests of Friedman, Nemenyi and Wilcoxon.

Losses are tables of shape (blocks, methods), smaller is better: NaN is "not tried", infinity "tried, without result".
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from benchmarks._common import print_table

Array = np.ndarray
#: A function that prints a title, a header and rows.
Show = Callable[[str, Sequence[str], Sequence[Sequence[Any]]], None]
#: In ratios, a log-loss or an RMSE (in units of the standard deviation) below this counts as this.
FLOOR = 0.005


@dataclass(frozen=True)
class Ranking:
    """Mean ranks of the methods that were tried on (nearly) all blocks; NaN for the others.

    Attributes
    ----------
    mean_rank : ndarray of shape (methods,)
    wins : ndarray of shape (methods,)
        Blocks in which a method is the best of those ranked; a tie counts for each.
    n_blocks : int
        Blocks on which all ranked methods were tried.
    statistic, p_value : float
        Friedman's test that all ranked methods are equal; NaN with fewer than three methods.
    critical_difference : float
        Nemenyi: mean ranks that differ by more differ at the level 0.05.
    """

    mean_rank: Array
    wins: Array
    n_blocks: int
    statistic: float
    p_value: float
    critical_difference: float


def ranking(losses: Array, share: float = 0.8) -> Ranking:
    """Rank the methods that were tried on at least this share of the blocks."""
    tried = ~np.isnan(losses)
    ranked = np.flatnonzero(tried.mean(axis=0) >= share) if len(losses) else np.arange(0)
    blocks = tried[:, ranked].all(axis=1)
    part = losses[np.ix_(blocks, ranked)]
    n, k = part.shape
    mean_rank, wins = np.full(losses.shape[1], np.nan), np.zeros(losses.shape[1], dtype=int)
    statistic = p_value = difference = float("nan")
    if n and k:
        mean_rank[ranked] = stats.rankdata(part, axis=1).mean(axis=0)
        wins[ranked] = np.sum(part == part.min(axis=1, keepdims=True), axis=0)
    if n > 1 and k > 2:
        statistic, p_value = (float(v) for v in stats.friedmanchisquare(*part.T))
    if n and k > 1:
        difference = nemenyi(k, n)
    return Ranking(mean_rank, wins, n, statistic, p_value, difference)


def nemenyi(n_methods: int, n_blocks: int, level: float = 0.05) -> float:
    """Critical difference of mean ranks."""
    q = stats.studentized_range.ppf(1 - level, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_blocks)))


@dataclass(frozen=True)
class Duel:
    """A method compared with the reference: ratio of losses, and number of blocks won and lost by the reference."""

    ratio: float
    better: int
    worse: int
    p_value: float


def duel(method: Array, reference: Array, floor: float) -> Duel:
    """Geometric mean of method / reference where both have a result; Wilcoxon's signed-rank test of the logarithm.

    Losses below ``floor`` count as ``floor``, so that a set without errors does not dominate. A method without result
    is worse than the reference.
    """
    tried = ~np.isnan(method) & ~np.isnan(reference)
    a, b = np.maximum(method[tried], floor), np.maximum(reference[tried], floor)
    both = np.isfinite(a) & np.isfinite(b)
    logs = np.log(a[both] / b[both])
    ratio = float(np.exp(logs.mean())) if len(logs) else float("nan")
    return Duel(ratio, int(np.sum(b < a)), int(np.sum(b > a)), signed_rank(logs))


def signed_rank(differences: Array) -> float:
    """p-value of Wilcoxon's test; NaN if there is no difference at all."""
    if not np.any(differences):
        return float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few sets: the normal approximation is inaccurate
        return float(stats.wilcoxon(differences).pvalue)


def blocks_by_set(losses: Array, sets: Sequence[str]) -> Array:
    """One block per set: geometric means over its blocks; NaN for a method that was not tried on all of them."""
    names = np.array(sets)
    with np.errstate(divide="ignore"):
        return np.array([np.exp(np.log(losses[names == name]).mean(axis=0)) for name in dict.fromkeys(sets)])


# ------------------------------------------------------------------ summary of records


def summary(
    records: Sequence[dict[str, Any]], methods: Sequence[str], reference: str, order: Sequence[str]
) -> list[dict[str, Any]]:
    """One entry for each size, and one over all sizes: the tests, and a row for each method."""
    records = [r for r in records if r["method"] in methods and r["status"] != "error"]
    names = [m for m in methods if any(r["method"] == m for r in records)]
    sizes = [s for s in order if any(r["size"] == s for r in records)]
    blocks = list(dict.fromkeys((r["size"], r["set"]) for r in sorted(records, key=lambda r: (r["size"], r["set"]))))
    losses = np.maximum(loss_table(records, blocks, names), FLOOR)
    out = []
    for size in sizes:
        here = [i for i, block in enumerate(blocks) if block[0] == size]
        out.append(compared(size, losses[here], names, reference, [r for r in records if r["size"] == size]))
    if len(sizes) > 1:
        whole = blocks_by_set(losses, [name for _, name in blocks])
        out.append(compared("each set once", whole, names, reference, records))
    return out


def loss_table(records: Sequence[dict[str, Any]], blocks: Sequence[Any], methods: Sequence[str]) -> Array:
    """Mean over the draws that all methods in a block have; infinite after a timeout, NaN if not tried."""
    by_cell: dict[Any, dict[int, float]] = {}
    for r in records:
        value = r.get("log_loss", r.get("relative_rmse", float("inf")))
        by_cell.setdefault((r["size"], r["set"], r["method"]), {})[r["draw"]] = value
    table = np.full((len(blocks), len(methods)), np.nan)
    for i, block in enumerate(blocks):
        cells = [by_cell.get((*block, m)) for m in methods]
        common = set.intersection(*(set(c) for c in cells if c))
        for j, cell in enumerate(cells):
            if cell and common:
                table[i, j] = np.mean([cell[d] for d in common])
    return table


def compared(
    title: str, losses: Array, names: Sequence[str], reference: str, records: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Ranks, ratios and tests of one table of losses."""
    ranks = ranking(losses)
    rows = []
    for j, name in enumerate(names):
        own = [r for r in records if r["method"] == name and r["status"] == "ok"]
        other = duel(losses[:, j], losses[:, names.index(reference)], FLOOR) if reference in names else None
        rows.append(
            {
                "method": name,
                "sets": int(np.sum(~np.isnan(losses[:, j]))),
                "mean_rank": float(ranks.mean_rank[j]),
                "wins": int(ranks.wins[j]),
                **({} if other is None or name == reference else vars(other)),
                **means(own),
                "timeouts": sum(r["method"] == name and r["status"] == "timeout" for r in records),
            }
        )
    tests = {"statistic": ranks.statistic, "p_value": ranks.p_value, "critical_difference": ranks.critical_difference}
    return {"title": title, "blocks": ranks.n_blocks, **tests, "methods": sorted(rows, key=place)}


def place(row: dict[str, Any]) -> float:
    return np.inf if np.isnan(row["mean_rank"]) else row["mean_rank"]


def means(records: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Means of the other measures, and seconds in total, over all sizes and sets; of each the mean of its draws."""
    draws: dict[Any, list[dict[str, Any]]] = {}
    for r in records:
        draws.setdefault((r["size"], r["set"]), []).append(r)

    def by_set(key: str) -> list[float]:
        return [float(np.mean([r[key] for r in found])) for found in draws.values()]

    keys = [k for k in ("brier", "ece", "accuracy", "r2") if records and k in records[0]]
    out = {k: float(np.mean(by_set(k))) for k in keys}
    return out | {k: sum(by_set(k)) for k in ("fit_seconds", "predict_seconds")}


def report(found: Sequence[dict[str, Any]], reference: str, show: Show = print_table) -> None:
    """Print the summary: a table for each size, and one over all sizes."""
    for part in found:
        title = (
            f"{part['title']}: {part['blocks']} sets with all ranked methods; Friedman p = {part['p_value']:.2g}, "
            f"critical difference of mean ranks {part['critical_difference']:.2f}"
        )
        measures = [k for k in ("brier", "ece", "accuracy", "r2") if k in part["methods"][0]]
        header = ["method", "sets", "mean rank", "wins", f"loss / {reference}", f"{reference} better", "worse", "p"]
        header += [*measures, "fit s", "predict s", "timeouts"]
        columns = ["method", "sets", "mean_rank", "wins", "ratio", "better", "worse", "p_value", *measures]
        columns += ["fit_seconds", "predict_seconds", "timeouts"]
        show(title, header, [[row.get(c) for c in columns] for row in part["methods"]])


# ----------------------------------------------- held-out losses and those of new rows


@dataclass(frozen=True)
class HeldOutLoss:
    """A held-out loss compared with that of new rows, both averaged over draws.

    Attributes
    ----------
    ratio : float
        Held-out loss divided by the loss of new rows.
    errors : float
        Their difference in units of its standard error, from the losses of the rows; NaN if these were not recorded.
    """

    ratio: float
    errors: float

    @property
    def far(self) -> bool:
        """True if the two differ by more than a quarter."""
        return abs(self.ratio - 1) > 0.25


def heldout_losses(records: Sequence[dict[str, Any]], method: str, size: str) -> dict[str, HeldOutLoss]:
    """The comparison for each set."""
    pairs: dict[str, list[tuple[float, float, float]]] = {}
    for r in records:
        if r["method"] == method and r["size"] == size and r["status"] == "ok":
            if "heldout_log_loss" in r:
                error = float(np.hypot(r.get("heldout_error", np.nan), r.get("log_loss_error", np.nan)))
                pairs.setdefault(r["set"], []).append((r["heldout_log_loss"], r["log_loss"], error))
            elif "heldout_rmse" in r:
                pairs.setdefault(r["set"], []).append((r["heldout_rmse"], r["rmse"], np.nan))
    return {name: compared_heldout(np.array(found)) for name, found in pairs.items()}


def compared_heldout(found: Array) -> HeldOutLoss:
    """From held-out losses, losses of new rows and standard errors of their differences, one row for each draw."""
    held, new = found[:, :2].mean(axis=0)
    error = float(np.sqrt(np.sum(found[:, 2] ** 2))) / len(found)
    ratio = float(max(held, FLOOR) / max(new, FLOOR))
    return HeldOutLoss(ratio, float((held - new) / error) if error > 0 else float("nan"))


def report_heldout(
    records: Sequence[dict[str, Any]], methods: Sequence[str], sizes: Sequence[str], show: Show = print_table
) -> None:
    """Print how far held-out losses are from those of new rows."""
    rows = []
    for method in methods:
        for size in sizes:
            found = heldout_losses(records, method, size)
            if found:
                values = np.array([f.ratio for f in found.values()])
                far = [f"{name} {f.ratio:.2f} ({f.errors:+.1f} errors)" for name, f in found.items() if f.far]
                rows.append([method, size, len(values), values.mean(), np.median(values), ", ".join(far)])
    if rows:
        header = ["method", "size", "sets", "mean ratio", "median", "sets off by more than 25 %"]
        show("Held-out loss / loss of new rows", header, rows)
