"""Figure 1b: seconds of one solve of eq. (1) at given hyperparameters, against the number of labels.

All solvers start from the kernel matrix and the similarities, both classes at once, in the paper's form:

direct        Cholesky factor of the whole matrix H, as by mldivide
eigen         two eigendecompositions, as in MultiLabelLSPC
CG            conjugate gradients without preconditioner, as by pcg, to a residual of 1e-6
CG + factor   this library's conjugate gradients, preconditioned by a partial Cholesky factor, to 1e-6

The table also has iterations and the largest difference to the scores of "eigen" on the training rows, relative to
the largest score. Nothing is extrapolated: the direct solve is timed on fewer rows, where the others are timed too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg

from leastwise import MultiLabelLSPC
from leastwise.baselines import InsDif, MLkNN
from leastwise.linalg.decompositions import pivoted_cholesky, square_spectrum
from leastwise.linalg.kronecker import solve_matrix_free
from leastwise.linalg.sylvester import Modes, solve_sylvester
from leastwise.problem.coupling import laplacian
from leastwise.problem.kernels import RBF
from leastwise.problem.label_coupling import Differences
from leastwise.solvers.work import RANK
from papers._common import PLAIN
from papers._common.data import Array, median_distance
from papers._common.experiments import Job, Settings, option
from papers._common.timing import timed_median
from papers.ml_lspc.draws import rotated
from papers.ml_lspc.tables import tell_solve

#: Close to the values chosen on the toy data; sigma in units of the median distance.
SIGMA, ALPHA, SHARING = 1.0, 1.5e-4, 0.9
TOL, MAX_ITER = 1e-6, 2000


@dataclass(frozen=True)
class System:
    """Eq. (1): the kernel matrix, targets of both classes, similarities and the ridge."""

    K: Array
    Z: Array
    S: Array
    rho: float

    @classmethod
    def of(cls, rows: int, n_labels: int, features: int) -> System:
        """Build the system from the toy data."""
        data = rotated(n_labels, rows, 1, 0, n_features=features)
        K = RBF()(data.X, data.X, SIGMA * median_distance(data.X))
        S = np.maximum(np.corrcoef(data.Y.T), 0)
        return cls(K, np.stack([1.0 - data.Y, data.Y]), S, ALPHA * rows)

    def modes(self) -> Modes:
        """Eigendecomposition of B."""
        return Differences(np.ones(len(self.S)), self.S, np.ones(len(self.S))).modes(SHARING)

    def C(self) -> Array:
        """The paper's C, including the ridge."""
        C = (1 - SHARING) * np.eye(len(self.S)) + SHARING * laplacian(self.S)
        return self.rho * np.diagonal(np.linalg.inv(C)).mean() * C


#: Function of a system that returns coefficients (classes, rows, labels) and iterations.
Solver = Callable[[System], tuple[Array, int | None]]


def by_kronecker(s: System) -> tuple[Array, None]:
    """Form ``H = I (x) Phi'Phi + C (x) I`` and factor it."""
    n, T = s.Z.shape[1:]
    H = np.kron(s.C(), np.eye(n))
    G = s.K.T @ s.K
    for t in range(T):
        H[t * n : (t + 1) * n, t * n : (t + 1) * n] += G
    h = (s.K.T @ s.Z).transpose(0, 2, 1).reshape(len(s.Z), -1).T
    theta = linalg.solve(H.T, h, assume_a="pos", overwrite_a=True, check_finite=False)
    return theta.T.reshape(len(s.Z), T, n).transpose(0, 2, 1), None


def by_eigen(s: System) -> tuple[Array, None]:
    """By eigendecompositions of the kernel matrix and of the label coupling."""
    Theta, _ = solve_sylvester(square_spectrum(s.K), s.modes(), np.ascontiguousarray(s.Z.transpose(1, 0, 2)), s.rho)
    return Theta.transpose(1, 0, 2), None


def by_gradients(s: System) -> tuple[Array, int]:
    """By CG with the product ``Phi'Phi Theta + Theta C``, one class after the other."""
    G, C = s.K.T @ s.K, s.C()
    found = [conjugate_gradients(lambda A: G @ A + A @ C, s.K.T @ Z) for Z in s.Z]
    return np.stack([A for A, _ in found]), max(steps for _, steps in found)


def conjugate_gradients(times: Callable[[Array], Array], right: Array) -> tuple[Array, int]:
    """CG without preconditioner, starting at zero; return the solution and the number of iterations."""
    A, R = np.zeros_like(right), right.copy()
    P, size, first = R.copy(), float(np.sum(R * R)), float(np.sum(right * right))
    for step in range(MAX_ITER):
        if size <= TOL**2 * first:
            return A, step
        HP = times(P)
        length = size / float(np.sum(P * HP))
        A += length * P
        R -= length * HP
        size, last = float(np.sum(R * R)), size
        P = R + size / last * P
    return A, MAX_ITER


def by_factor(s: System) -> tuple[Array, int]:
    """By the library's preconditioned CG."""
    modes, rng, n = s.modes(), np.random.default_rng(0), len(s.K)
    factor = pivoted_cholesky(np.sum(s.K**2, axis=1), lambda index: s.K @ s.K[:, index], min(RANK, n), rng)
    W = np.ones(s.Z.shape[1:])
    result = solve_matrix_free(lambda V: s.K @ (s.K @ V), factor, modes, s.Z, W, s.rho, tol=TOL, max_iter=MAX_ITER)
    return s.K @ modes.back(modes.eigenvalues * modes.rotate(result.Q)), result.n_iter


@dataclass(frozen=True)
class SolveSettings(Settings):
    """Settings."""

    rows: int = option(2000, "training rows", least=1)
    labels: tuple[int, ...] = option((10, 20, 50, 100, 200, 500), "numbers of labels", least=1)
    features: int = option(300, "features, of which two are relevant", least=1)
    direct: int = option(10_000, "rows x labels up to which the direct solve runs")
    direct_rows: int = option(200, "rows for the direct solve", least=1)
    direct_labels: tuple[int, ...] = option((10, 20, 50), "numbers of labels for it", least=1)
    insdif_labels: int = option(100, "labels up to which InsDif runs")


def run(settings: SolveSettings, job: Job) -> dict[str, Any]:
    """Run the experiment."""
    found = job.gathered(_records(settings, job))
    tell_solve(found, job)
    return {"paper": None, "point": {"sigma": SIGMA, "alpha": ALPHA, "sharing": SHARING}, "figures": found}


def _records(settings: SolveSettings, job: Job) -> Iterator[dict]:
    sizes = [(settings.direct_rows, settings.direct_labels), (settings.rows, settings.labels)]
    for rows, counts in sizes:
        for T in counts:
            for found in (*_solves(rows, T, settings), *_fits(rows, T, settings)):
                job.report(f"{rows} rows, {T} labels, {found['method']}: {found['seconds']:.3g} s")
                yield {"rows": rows, "labels": T, **found}


def _solves(rows: int, T: int, settings: SolveSettings) -> Iterator[dict]:
    """Time all solvers at one size."""
    system = System.of(rows, T, settings.features)
    ways: dict[str, Solver] = {
        "eigen": by_eigen,
        "CG": by_gradients,
        "CG + factor": by_factor,
    }
    if rows * T <= settings.direct:
        ways["direct"] = by_kronecker
    exact = by_eigen(system)[0]
    for name, solver in ways.items():
        done = timed_median(partial(solver, system), 3, budget=10)
        A, steps = done.value
        gap = float(np.abs(system.K @ (A - exact)).max() / np.abs(system.K @ exact).max())
        yield {"method": name, "seconds": done.wall, "iterations": steps, "difference": gap}


def _fits(rows: int, T: int, settings: SolveSettings) -> Iterator[dict]:
    """Time whole fits."""
    data = rotated(T, rows, 1, 0, n_features=settings.features)
    options: dict[str, Any] = {**PLAIN, "similarity": "correlation", "norm": "coefficients", "solver": "sylvester"}
    model = MultiLabelLSPC(SIGMA * median_distance(data.X), ALPHA, SHARING, **options, cv=None, calibration=None)
    fits: dict[str, Any] = {"MultiLabelLSPC, given parameters": model, "ML-kNN": MLkNN()}
    if settings.insdif_labels >= T:
        fits["InsDif"] = InsDif(random_state=0)
    for name, fit in fits.items():
        yield {"method": name, "seconds": timed_median(partial(fit.fit, data.X, data.Y), 3, budget=5).wall}
