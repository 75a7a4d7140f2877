"""How should sigma and alpha be chosen, and with which defaults?

plans      the search on all rows (an eigendecomposition of the full matrix for each sigma) and on some, with
           alpha refined on all rows
costs      time of an eigendecomposition compared with a Cholesky factorisation, with and without its inverse
defaults   one parameter at a time changed from its default
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks._common import capped, parse, parser, peer_split, print_table, quality, timed_fresh, write_json
from leastwise import LSPC
from leastwise.linalg.decompositions import cholesky
from papers._common.data import Split, available
from papers._common.output import spread
from papers._common.timing import timed

SETS = ("usps", "satimage", "letter", "digits")
PLANS = ({"search_rows": 500}, {"search_rows": "auto"}, {"search_rows": 2000}, {"search_rows": None})
DEFAULTS: tuple[dict, ...] = (
    {},
    {"norm": "coefficients"},
    {"bias": "shared"},
    {"calibration": "temperature"},
    {"calibration": "isotonic"},
    {"calibration": None},
    {"scoring": "brier"},
    {"scoring": "accuracy"},
)
COST_SIZES = (500, 1000, 2000, 4000)


def label(params: dict) -> str:
    return ", ".join(f"{k}={v}" for k, v in params.items()) or "default"


def one_fit(split: Split, params: dict, seed: int) -> dict:
    done = timed(lambda: LSPC(random_state=seed, **params).fit(split.X, split.y))
    model = done.value
    chosen = {"sigma": model.sigma_, "alpha": model.alpha_, "points": len(model.cv_results_["param_sigma"])}
    return {
        "data": split.name,
        "rows": len(split.y),
        "setting": label(params),
        "run": seed,
        "seconds": done.wall,
        **chosen,
        **quality(model, split.X_test, split.y_test),
    }


def fits(settings: Sequence[dict], args: argparse.Namespace) -> Iterator[dict]:
    """All settings on all data sets and draws."""
    rows = 300 if args.quick else None
    for seed in range(args.runs):
        for _, split in available(args.sets, lambda name, s=seed: peer_split(name, args.data, s, rows)):
            for params in settings:
                found = one_fit(split, params, seed)
                print(f"{split}, {found['setting']}, run {seed}: {found['seconds']:.1f} s", flush=True)
                yield found


def costs(args: argparse.Namespace) -> list[dict]:
    """Seconds of the decompositions of a Gaussian kernel matrix."""
    sizes, repeats = ((100, 200), 2) if args.quick else (COST_SIZES, 3)
    return [_cost(n, repeats) for n in sizes]


def _cost(n: int, repeats: int) -> dict:
    X = np.random.default_rng(0).standard_normal((n, 20))
    D = ((X**2).sum(1)[:, None] + (X**2).sum(1)) - 2 * X @ X.T
    K = np.exp(-D / 40) + 1e-3 * np.eye(n)

    def inverse(A: np.ndarray) -> np.ndarray:
        return cholesky(A, overwrite=True).inverse_factor(overwrite=True)

    factor = timed_fresh(K.copy, lambda A: cholesky(A, overwrite=True), repeats)
    both, eigh = timed_fresh(K.copy, inverse, repeats), timed_fresh(K.copy, np.linalg.eigh, repeats)
    return {"n": n, "eigh": eigh, "cholesky": factor, "cholesky_inverse": both}


def report(title: str, found: list[dict], names: Sequence[str]) -> None:
    """One line for each data set and setting, averaged over the runs."""
    lines = []
    for data, setting in dict.fromkeys((f["data"], f["setting"]) for f in found):
        runs = [f for f in found if (f["data"], f["setting"]) == (data, setting)]
        middle = [float(np.mean([f[k] for f in runs])) for k in ("seconds", "sigma", "alpha", "points")]
        lines.append([data, setting, *middle, *(spread([f[k] for f in runs]) for k in names)])
    header = ["data", "setting", "seconds", "sigma", "alpha", "points", *names]
    print_table(title, header, lines)


def report_costs(found: list[dict]) -> None:
    rows = [[*f.values(), f["eigh"] / f["cholesky"], f["eigh"] / f["cholesky_inverse"]] for f in found]
    header = ["n", "eigh", "cholesky", "chol+inverse", "eigh/chol", "eigh/chol+inv"]
    print_table("Seconds of decompositions", header, rows)


def run(args: argparse.Namespace) -> dict:
    figures: dict[str, list[dict]] = {}
    if args.part in (None, "costs"):
        figures["costs"] = costs(args)
        report_costs(figures["costs"])
    for part, settings in (("defaults", DEFAULTS), ("plans", PLANS)):
        if args.part in (None, part):
            figures[part] = []
            for found in fits(settings, args):
                figures[part].append(found)
                write_json(args, figures, say=False)
            report(part.capitalize(), figures[part], ("log_loss", "ece", "accuracy"))
    return figures


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.search_plans", __doc__, runs=1)
    p.add_argument("--part", choices=["plans", "costs", "defaults"], help="default: all three")
    p.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    args = parse(p, argv)
    with capped(args):
        figures = run(args)
    write_json(args, figures)


if __name__ == "__main__":
    main()
