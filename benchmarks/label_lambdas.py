"""Section 6.2 of the multi-label LSPC paper in its own parameters: does ML-LSPC beat LSPC, and why?

The paper states neither the lambdas (ridges, the same for all labels) nor the gammas (factors of the similarities) of
its grid. A large gamma also acts as a ridge, on the parts that labels do not share. With few lambdas, the gammas
therefore fill the gaps.

LSPC          gamma = 0
ML-LSPC       eq. (1), C = lambda I + gamma Laplacian(max(0, correlation))

for a fine grid of lambdas and for two of its values. Enron, 1,000 training rows at random, the other 702 for testing;
micro F1 at 0.5 of clipped and normalised scores; sigma, lambda and gamma by 5 folds of the training rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.stats import ttest_rel

from benchmarks._common import capped, parse, parser, print_markdown, write_json
from benchmarks._labels import enron_draws
from leastwise.linalg.decompositions import square_spectrum
from leastwise.linalg.sylvester import Modes, distinct, solve_sylvester
from leastwise.metrics import label_f1
from leastwise.model_selection.splitters import label_fold_ids
from leastwise.problem.coupling import laplacian
from leastwise.problem.kernels import RBF
from papers._common.data import median_distance
from papers._common.output import mean_and_error
from papers.ml_lspc.draws import LabelSplit

Array = np.ndarray

#: In medians of the distance.
SIGMAS = (0.7, 1.0, 1.4)
#: Times the squared number of rows.
LAMBDAS = 10.0 ** np.arange(-9, -5.9, 0.5)
GAMMAS = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
GRIDS = {"seven lambdas, 1e-9 to 1e-6": range(len(LAMBDAS)), "two lambdas, 1e-9 and 1e-6": (0, len(LAMBDAS) - 1)}


def scores(K: Array, k: Array, Y: Array, truth: Array) -> Array:
    """Micro F1 for all lambdas and gammas."""
    spectrum, n = square_spectrum(K), len(K)
    with np.errstate(invalid="ignore"):
        S = np.maximum(np.nan_to_num(np.corrcoef(Y.T)), 0)  # NaN for a label with one class
    L, V = np.linalg.eigh(laplacian(S))
    Z, found = np.stack([1.0 - Y, Y], axis=1), np.empty((len(LAMBDAS), len(GAMMAS)))
    for i, ridge in enumerate(LAMBDAS * n**2):
        for j, tie in enumerate(GAMMAS):
            modes = Modes(*distinct(ridge / (ridge + tie * np.maximum(L, 0))), V)
            Theta, _ = solve_sylvester(spectrum, modes, Z, ridge)
            F = np.maximum(np.tensordot(k, Theta, 1), 0)
            found[i, j] = float(label_f1(truth, F[:, 1] > F[:, 0]))
    return found


def draw(data: LabelSplit, seed: int) -> dict:
    """Held-out and test scores of all points of all sigmas."""
    fold, held, test = label_fold_ids(5, data.Y, seed), [], []
    for sigma in np.multiply(SIGMAS, median_distance(data.X)):
        K, k = RBF()(data.X, data.X, sigma), RBF()(data.X_test, data.X, sigma)
        parts = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(5)]
        each = [scores(K[np.ix_(a, a)], K[np.ix_(b, a)], data.Y[a], data.Y[b]) for a, b in parts]
        held.append(np.mean(each, axis=0))
        test.append(scores(K, k, data.Y, data.Y_test))
    return {"run": seed, "held": np.array(held).tolist(), "test": np.array(test).tolist()}


def chosen(found: dict, lambdas: list[int], gammas: slice) -> float:
    """The test score of the point with the best held-out score."""
    held, test = (np.array(found[name])[:, lambdas][:, :, gammas] for name in ("held", "test"))
    return float(test.ravel()[held.argmax()])


def lines(results: list[dict]) -> Iterator[list[str]]:
    for name, lambdas in GRIDS.items():
        one, tied = ([chosen(r, list(lambdas), g) for r in results] for g in (slice(0, 1), slice(None)))
        gain = np.subtract(tied, one)
        p = ttest_rel(tied, one).pvalue if len(gain) > 1 else float("nan")
        yield [name, *(mean_and_error(np.array(v)) for v in (one, tied, gain)), f"{p:.2g}"]


def main(argv: Sequence[str] | None = None) -> None:
    args = parse(parser("benchmarks.label_lambdas", __doc__, threads=1, runs=20), argv)
    split, results = enron_draws(args), []
    with capped(args):
        for run in range(2 if args.quick else args.runs):
            results.append(draw(split(run), run))
            print(f"run {run}: {[line[1:3] for line in lines(results[-1:])]}", flush=True)
            write_json(args, {"figures": results}, say=False)
    header = ["lambdas", "LSPC", "ML-LSPC", "difference", "p, paired"]
    print_markdown(f"micro F1 on Enron, {len(results)} draws; mean ± standard error", header, list(lines(results)))
    write_json(args, {"sigmas": SIGMAS, "lambdas": LAMBDAS, "gammas": GAMMAS, "figures": results})


if __name__ == "__main__":
    main()
