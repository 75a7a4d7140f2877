"""How often is the guaranteed error rate exceeded, and how many rows are accepted? Many draws.

threshold     thresholds alone: confidences and errors drawn from a known truth, so that the error rate at a threshold
              is known exactly. "calibrated": the chance of an error is 1 - confidence; "too sure": 1.9 times that;
              "flat", the worst case: it is slightly above max_error at any confidence, so that accepting
              anything exceeds the limit; "groups": groups of three rows with common errors
model         a model on rows of three overlapping classes, evaluated on 20,000 new rows. "leave-one-out": LSPC with
              the threshold set on its own held-out predictions; "searched": the same, with sigma and alpha chosen by
              them, too; "split": a model of other rows, frozen, the threshold set on these
digits        digits of scikit-learn: LSPC with defaults on two thirds, the error on accepted rows of the rest

"missed" is the share of draws in which the error rate on accepted new rows is above max_error: it should be at most
1 - confidence = 0.05. "naive" is the threshold at which the held-out error is just max_error, without any test.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from benchmarks._common import capped, parse, parser, peer_split, print_markdown, write_json
from leastwise import LSPC, Abstaining
from leastwise.calibration.risk import Decisions, safe_threshold

Array = np.ndarray
LEVEL = 0.05
#: Name: limit, rows, power, slope, rows of a group.
TRUTHS = {
    "calibrated": [(0.05, 300, 3, 1.0, 1), (0.05, 1000, 3, 1.0, 1), (0.01, 1000, 4, 1.0, 1), (0.01, 5000, 4, 1.0, 1)],
    "too sure": [(0.05, 1000, 3, 1.9, 1)],
    "flat": [(0.2, 60, 1, 0, 1), (0.05, 1000, 1, 0, 1), (0.01, 5000, 1, 0, 1), (0.05, 3000, 1, 0, 3)],
    "groups": [(0.05, 3000, 3, 1.0, 3)],
}


def naive_threshold(sure: Array, wrong: Array, limit: float) -> float:
    """The lowest threshold at which the observed error rate is at most the limit."""
    order = np.argsort(-sure)
    fine = np.flatnonzero(np.cumsum(wrong[order]) <= limit * np.arange(1, len(sure) + 1))
    return float(sure[order][fine[-1]]) if len(fine) else np.inf


def known_truth(limit: float, n: int, power: float, slope: float, size: int, rng: np.random.Generator) -> dict:
    """One draw: the chance of an error is slope u for a confidence of 1 - u, u = v^power / 2, v uniform.

    A slope of 0 means an error probability just above the limit everywhere.
    """
    v, luck = (np.repeat(rng.random(n // size), size) for _ in range(2))
    u = 0.5 * v**power
    wrong = luck < (slope * u if slope else 1.0001 * limit)
    group = None if size == 1 else np.repeat(np.arange(n // size), size)
    found = {}
    tested = safe_threshold(Decisions(1 - u, wrong, np.ones(len(u)), group), limit, LEVEL)
    for name, t in (("tested", tested), ("naive", naive_threshold(1 - u, wrong, limit))):
        part = float(np.clip(2 * (1 - t), 0, 1) ** (1 / power)) if t <= 1 else 0.0
        rate = slope * 0.5 * part**power / (power + 1) if slope else 1.0001 * limit * (part > 0)
        found[name] = {"coverage": part, "error": rate}
    return found


def three_classes(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    y = rng.integers(0, 3, n)
    return 1.5 * np.array([[0, 0], [2, 0], [1, 2]])[y] + rng.normal(size=(n, 2)), y


def rates_on(model: Abstaining, limit: float, X: Array, y: Array) -> dict:
    """Coverage and error on new rows, by the rule and by the naive one."""
    P, curve, inner = model.predict_proba(X), model.risk_coverage_, model.estimator_
    wrong, found = inner.classes_[P.argmax(axis=1)] != y, {}
    fine = np.flatnonzero(curve.error <= limit)
    naive = curve.threshold[fine[-1]] if len(fine) else np.inf
    for name, t in (("tested", model.threshold_), ("naive", naive)):
        ok = P.max(axis=1) >= t
        found[name] = {"coverage": float(ok.mean()), "error": float(wrong[ok].mean()) if ok.any() else 0.0}
    return found


def on_three_classes(kind: str, limit: float, n: int, rng: np.random.Generator, new: tuple) -> dict:
    inner: Any = LSPC(1.0, 0.01) if kind != "searched" else LSPC()
    if kind == "split":
        inner = FrozenEstimator(inner.fit(*three_classes(n, rng)))
    return rates_on(Abstaining(inner, max_error=limit, confidence=1 - LEVEL).fit(*three_classes(n, rng)), limit, *new)


def on_digits(limit: float, seed: int) -> dict:
    split = peer_split("digits", None, seed)
    model = Abstaining(LSPC(random_state=seed), max_error=limit, confidence=1 - LEVEL).fit(split.X, split.y)
    return rates_on(model, limit, split.X_test, split.y_test)


def cases(args: argparse.Namespace) -> Iterator[tuple[str, str, float, int, int, Callable[[int], dict]]]:
    """Part, kind, limit, rows, number of draws, and a draw by its seed."""
    rng = np.random.default_rng
    for kind, settings in TRUTHS.items():
        for one in settings:
            draws = args.runs // (10 if one[-1] > 1 else 1)  # groups take longer
            yield "threshold", kind, one[0], one[1], draws, lambda s, one=one: known_truth(*one, rng(s))
    new = three_classes(20_000, rng(12345))
    for kind, n in (("split", 300), ("leave-one-out", 300), ("searched", 300), ("searched", 100)):
        draws = args.runs // (20 if kind == "searched" else 5)
        limit = 0.05 if n > 100 else 0.1
        one = (kind, limit, n)
        yield "model", kind, limit, n, draws, lambda s, one=one: on_three_classes(*one, rng(s), new)
    yield "digits", "searched", 0.01, 1198, max(args.runs // 100, 1), lambda s: on_digits(0.01, s)


def summary(found: list[dict], limit: float) -> dict:
    out = {}
    for name in ("tested", "naive"):
        error, coverage = (np.array([f[name][k] for f in found]) for k in ("error", "coverage"))
        out[name] = {
            "missed": float(np.mean(error > limit)),
            "coverage": float(coverage.mean()),
            "error": float(error[coverage > 0].mean()) if (coverage > 0).any() else None,
            "nothing": float(np.mean(coverage == 0)),
        }
    return out


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.abstention", __doc__, runs=1000)
    args = parse(p, argv)
    if args.quick:
        args.runs = 20
    figures, lines = [], []
    with capped(args), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="max_error")
        for part, kind, limit, n, draws, draw in cases(args):
            got = summary([draw(seed) for seed in range(draws)], limit)
            figures.append({"part": part, "kind": kind, "max_error": limit, "rows": n, "draws": draws, **got})
            a, b = got["tested"], got["naive"]
            shown = [a["missed"], a["coverage"], a["error"], a["nothing"], b["missed"], b["coverage"]]
            lines.append([f"{part}, {kind}", limit, n, draws, *shown])
            print(f"{part}, {kind}, {n} rows: missed {a['missed']:.3f}, coverage {a['coverage']:.3f}", flush=True)
            write_json(args, {"figures": figures}, say=False)
    header = [
        "",
        "max_error",
        "rows",
        "draws",
        "missed",
        "decided",
        "error",
        "nothing accepted",
        "naive: missed",
        "decided",
    ]
    print_markdown("Share of draws with an error rate above max_error: at most 0.05 is guaranteed", header, lines)
    write_json(args, {"figures": figures})


if __name__ == "__main__":
    main()
