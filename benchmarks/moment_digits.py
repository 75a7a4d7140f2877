"""Accuracy of fits from sums over rows, and of single precision.

Scores of a model with few centres, compared with the same model in fifty-digit arithmetic (mpmath), for every alpha.
In the first set the kernel matrix between the centres is almost singular.

    raw sums          sums of kernel values, whitened afterwards
    sums              ``fit_stream``
    direct            ``fit``, from the rows
    unfit             ``fit_stream``, then ``unfit`` of nine rows in ten; compared with the model of the other rows
    coefficients      ``fit_stream`` with the penalty on the coefficients
    single            ``fit`` to the same rows in single precision, compared with ``direct``
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath as mp
import numpy as np

from benchmarks._common import capped, parse, parser, print_markdown, write_json
from leastwise import LSPC
from leastwise.linalg.decompositions import cholesky

Array = np.ndarray

#: Features, width, and centres of every set.
SETS = {"plane, wide": (2, 2.0, 30), "plane, narrow": (2, 0.5, 30), "5 features": (5, 2.0, 30)}
ALPHAS = (1e-2, 1e-4, 1e-6, 1e-8)
ROWS, NEW = 200, 30
EPS = float(np.finfo(float).eps)


def sample(d: int) -> tuple[Array, Array, Array]:
    """Rows that single precision represents exactly, so that all fits have the same data."""
    rng = np.random.default_rng(0)
    X, new = (rng.normal(size=(n, d)).astype(np.float32).astype(float) for n in (ROWS, NEW))
    return X, (X[:, 0] + 0.3 * rng.normal(size=ROWS) > 0).astype(int), new


def kernel(A: Array, B: Array, sigma: float) -> Array:
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / (2 * sigma**2))


def long_kernel(A: Array, B: Array, sigma: float) -> Any:
    scale = 2 * mp.mpf(sigma) ** 2
    rows = [[mp.mpf(float(v)) for v in row] for row in A]
    columns = [[mp.mpf(float(v)) for v in row] for row in B]
    return mp.matrix(
        [[mp.exp(-sum((a - b) ** 2 for a, b in zip(x, c, strict=True)) / scale) for c in columns] for x in rows]
    )


def long_scores(Phi: Any, R: Any, K: Any, y: Array, alpha: float) -> Array:
    """Scores of class 1 for the rows of K."""
    A = Phi.T * Phi + mp.mpf(alpha) * Phi.rows * R
    theta = mp.lu_solve(A, Phi.T * mp.matrix(y.astype(float).tolist()))
    return np.array([float(v) for v in K * theta])


def raw_sums(Phi: Array, R: Array, K: Array, y: Array, alpha: float) -> Array:
    """The solution from sums of kernel values, with the jitter that a Cholesky factor of R needs."""
    factor = cholesky(R, jitter=1e3 * EPS)
    A = factor.whiten(factor.whiten(Phi.T @ Phi).T)
    g, V = np.linalg.eigh((A + A.T) / 2)
    V = factor.unwhiten(V)
    return K @ (V @ ((V.T @ (Phi.T @ y)) / (np.maximum(g, 0) + alpha * len(Phi))))


def errors(name: str, alphas: Sequence[float]) -> list[dict]:
    d, sigma, b = SETS[name]
    X, y, new = sample(d)
    C, tenth = X[:b], ROWS // 10
    Phi, R, K = (kernel(A, C, sigma) for A in (X, C, new))
    with mp.workdps(50):
        long_Phi, long_R, long_K = (long_kernel(A, C, sigma) for A in (X, C, new))
        eye = mp.eye(b)
        found = []
        for alpha in alphas:
            exact = long_scores(long_Phi, long_R, long_K, y, alpha)
            few = long_scores(long_Phi[:tenth, :], long_R, long_K, y[:tenth], alpha)
            other = long_scores(long_Phi, eye, long_K, y, alpha)
            plan = {"sigma": sigma, "alpha": alpha, "centers": C, "cv": None, "calibration": None}
            stream = LSPC(**plan).fit_stream(X, y, keep_rows=0)
            sums = K @ stream.coef_[:, 1]
            direct = LSPC(**plan).fit(X, y)
            single = LSPC(**plan).fit(X.astype(np.float32), y)
            plain = LSPC(**plan, norm="coefficients").fit_stream(X, y, keep_rows=0)
            stream.unfit(X[tenth:], y[tenth:])
            found.append(
                {
                    "set": name,
                    "alpha": alpha,
                    "eps/alpha": EPS / alpha,
                    "raw sums": _gap(raw_sums(Phi, R, K, y.astype(float), alpha), exact),
                    "sums": _gap(sums, exact),
                    "direct": _gap(K @ direct.coef_[:, 1], exact),
                    "unfit": _gap(K @ stream.coef_[:, 1], few),
                    "coefficients": _gap(K @ plain.coef_[:, 1], other),
                    "single": _gap(K @ single.coef_[:, 1], exact),
                    "jitter": direct.jitter_,
                }
            )
    return found


def _gap(one: Array, other: Array) -> float:
    return float(np.abs(one - other).max())


def main(argv: Sequence[str] | None = None) -> None:
    args = parse(parser("benchmarks.moment_digits", __doc__), argv)
    sets = list(SETS)[:1] if args.quick else list(SETS)
    with capped(args):
        found = [row for name in sets for row in errors(name, ALPHAS[-1:] if args.quick else ALPHAS)]
    columns = [key for key in found[0] if key != "jitter"]
    rows = [[row[key] if key in ("set", "alpha") else f"{row[key]:.0e}" for key in columns] for row in found]
    print_markdown("Largest error of a score", columns, rows)
    write_json(args, {"errors": found})


if __name__ == "__main__":
    main()
