"""What models that choose their own sigma and alpha have in common."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from leastwise.calibration.calibrators import Calibrator, ClipNormalise
from leastwise.calibration.heldout_rows import HeldRows
from leastwise.estimators._base import Answer, KernelClassifier
from leastwise.estimators._checks import check_count, check_memory, choose, parse_grid
from leastwise.estimators._model import KernelModel, Training
from leastwise.model_selection.grid import Grid, Levels
from leastwise.model_selection.objective import ClassJudge
from leastwise.model_selection.parallel import check_n_jobs
from leastwise.model_selection.scoring import resolve_scoring
from leastwise.model_selection.search import Search, natural_height, natural_length, table
from leastwise.problem.basis import Basis, make_basis
from leastwise.problem.centers import Recipe
from leastwise.problem.kernels import Kernel, Precomputed
from leastwise.solvers.evaluator import Judge, Outcome, Rows, Settings
from leastwise.solvers.search_rows import ARRAYS
from leastwise.utils.random import generator

Array = np.ndarray


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes
    ----------
    outcome : Outcome
        The best point.
    seen : list of dict
        All points.
    trial : Trial
        That of all rows; None where there is none, as all rows are too many.
    searched : Trial
        The one that the search was made on.
    coupling : Coupling, optional
        How the tasks are tied, where there is no trial to tell.
    """

    outcome: Outcome
    seen: list[dict]
    trial: Any
    searched: Any
    coupling: Any = None


class TunedModel(KernelModel):
    """Base of the models that choose sigma and alpha by held-out scores.

    A subclass has the parameters sigma, alpha, kernel, n_centers, centers, bias, cv, scoring, degree, coef0,
    n_jobs, random_state and verbose.
    """

    #: How centres may be chosen, where they are not given.
    CENTERS: ClassVar[tuple[str, ...]] = ("random", "kmeans", "kmeans++", "leverage")
    #: sigma="auto": these multiples of the kernel's natural length, growing by the ratio.
    SIGMA_MULTIPLES: ClassVar[tuple[float, ...]] = (0.2, 0.3, 0.45, 0.7, 1.0, 1.5)
    SIGMA_RATIO: ClassVar[float] = 1.5
    #: alpha="auto": these multiples of the kernel's natural height first, then steps of sqrt(10) around the best.
    ALPHA_VALUES: ClassVar[tuple[float, ...]] = tuple(10.0 ** np.arange(-7, 0.1))

    # ----------------------------------------------------------- parameters

    def _checked_kernel(self, calibrated: bool) -> Kernel:
        """The common parameters checked, before any data are looked at; the kernel."""
        self._check_bias()
        check_count("n_centers", self.n_centers)
        check_n_jobs(self.n_jobs)
        self._scorer()
        sigmas, alphas = self._grids(1.0, 1.0)
        kernel = self._resolve_kernel()
        fixed = alphas.single and (sigmas.single or not kernel.has_sigma)
        if self.cv is None and (calibrated or not fixed):
            raise ValueError(
                "cv=None holds nothing out, so there is nothing to choose or calibrate by: give sigma and alpha as "
                "numbers, and calibration=None where there is one; or set cv='loo' or a number of folds."
            )
        self._check_centers(kernel)
        return kernel

    def _check_centers(self, kernel: Kernel) -> None:
        """How centres are chosen fits the kernel and the number of them."""
        named = choose("centers", self.centers, self.CENTERS) if isinstance(self.centers, str) else "given"
        if isinstance(kernel, Precomputed) and named in ("kmeans", "kmeans++", "given"):
            raise ValueError(
                "kernel='precomputed' knows no rows to place centres at: use centers='random', or another way that "
                "needs no distances."
            )
        if named not in ("random", "given") and self.n_centers is None:
            raise ValueError(f"centers={named!r} needs to know how many: give n_centers.")
        if named == "given" and self.n_centers is not None:
            raise ValueError("n_centers counts centres to be chosen: leave it None where centers is an array.")

    def _check_bias(self) -> None:
        choose("bias", self.bias, ["shared", None])

    def _scorer(self) -> Any:
        """What the search maximises."""
        raise NotImplementedError

    def _grids(self, length: float, height: float) -> tuple[Grid, Grid]:
        return self._sigma_grid(length), parse_grid(
            "alpha", self.alpha, np.multiply(self.ALPHA_VALUES, height), 10**0.5
        )

    def _sigma_grid(self, length: float) -> Grid:
        return parse_grid("sigma", self.sigma, np.multiply(self.SIGMA_MULTIPLES, length), self.SIGMA_RATIO)

    def _data_grids(self, rows: Rows, settings: Settings) -> tuple[Grid, Grid]:
        """The grids in the units of the data."""
        kernel = settings.kernel
        length = natural_length(kernel, rows) if isinstance(self.sigma, str) else 1.0
        height = natural_height(kernel, rows, length, settings.norm) if isinstance(self.alpha, str) else 1.0
        sigmas, alphas = self._grids(length, height)
        return (sigmas if kernel.has_sigma else Grid((1.0,))), alphas

    def _settings(self, kernel: Kernel, judge: Judge, norm: str = "function") -> Settings:
        return Settings(kernel, norm, self.bias is not None, judge, self._report, self.n_jobs)

    def _run(self, search: Search, sigmas: Grid, alphas: Grid, sharings: Levels | None = None) -> Outcome:
        """A whole search; what else there is to choose is varied where it ended, and the rest settled again."""
        first = found = search.run(sigmas, alphas, sharings)
        for options, change, start in self._options(search):
            found = search.vary(found, options, change, alphas, start)
        return found if found is first or not alphas.ratio else search.settle(found, alphas, sharings)

    def _options(self, search: Search) -> Iterator[tuple[Sequence[float], Callable, float]]:
        """What else there is to choose: the values, how a trial gets one, and which it has."""
        weights = self._linear_weights(search.trial.settings.kernel)
        if len(weights) > 1:
            assert search.trial.weight is not None
            yield weights, lambda weight: search.trial.weighing(weight), search.trial.weight

    def _linear_weights(self, kernel: Kernel) -> tuple[float, ...]:
        """Weights of the linear part of a sum of kernels to try."""
        return ()

    def _report(self, line: str) -> None:
        if self.verbose:
            print(f"[{type(self).__name__}] {line}", flush=True)

    def _basis(self, rows: Rows, seed: int, settings: Settings, kind: str = "full") -> Basis:
        count, by_kernel = check_count("n_centers", self.n_centers), isinstance(self.centers, str)
        by_kernel = by_kernel and self.centers == "leverage" and count is not None and count < len(rows)
        sigma = self._middle_sigma(rows, settings.kernel) if by_kernel else 1.0
        recipe, rng = (
            Recipe(kind, count, self.centers, settings.norm, settings.kernel, sigma),
            generator("centers", seed),
        )
        return make_basis(recipe, rows.X, rows.y, rows.w, rows.fold, rows.copy, rng, settings.n_outputs, rows.task)

    def _middle_sigma(self, rows: Rows, kernel: Kernel) -> float:
        """A width to score rows by before one is chosen: the given one, the middle of a grid, or the natural one."""
        if isinstance(self.sigma, str):
            return natural_length(kernel, rows)
        return float(np.exp(np.mean(np.log(self._sigma_grid(1.0).values))))

    def _check_memory(self, rows: Rows, settings: Settings, itemsize: int, kind: str = "full") -> None:
        """Before any centre is chosen: so many rows with so many centres, will it fit?"""
        blocks = settings.n_outputs if kind == "class" else 1
        b = len(rows) if self.n_centers is None else min(len(rows), blocks * int(self.n_centers))
        b = b if isinstance(self.centers, str) else np.shape(self.centers)[0]
        check_memory(len(rows), b, itemsize, ARRAYS[settings.norm] + settings.kernel.layers - 1, blocks)

    def _fixed(self, data: Training, sigma: float, alpha: float, sharing: float | None = None) -> Outcome:
        """The point that was given, where nothing is held out."""
        return Outcome(sigma, alpha, np.nan, np.empty(0), self._uncalibrated(data), sharing)

    def _uncalibrated(self, data: Training) -> Any:
        """What makes predictions of scores where nothing is held out."""
        return None

    # ---------------------------------------------------------------- store

    def _store(self, data: Training, basis: Basis, settings: Settings, outcome: Outcome, solution: Any) -> None:
        self.kernel_ = settings.kernel
        self.sigma_, self.alpha_ = outcome.sigma, outcome.alpha
        self._store_coef(solution)
        self.intercept_, self.jitter_ = solution.intercept, solution.jitter
        if isinstance(settings.kernel, Precomputed):
            assert basis.rows is not None
            self.center_indices_ = data.used[basis.rows]
        else:
            self.centers_ = basis.centers
        self._meet_neighbours(data.rows, basis, settings.kernel)

    def _warn_lifted(self, kernel: Kernel, solution: Any) -> None:
        """Say so where a kernel of the user's has negative eigenvalues."""
        if solution.lifted and kernel.definite is None:
            instead = "; norm='coefficients' needs no such repair" if "norm" in self.get_params(deep=False) else ""
            warnings.warn(
                f"The kernel matrix is not positive semi-definite: {solution.jitter:.2g} was added to its diagonal "
                f"(jitter_). Held-out scores are approximate then{instead}.",
                UserWarning,
                stacklevel=6,
            )

    def _store_coef(self, solution: Any) -> None:
        self.coef_ = solution.coef

    def _everyone(self, data: Training, F: Array, trust: Array | None = None) -> tuple[Array, Array]:
        """Held-out scores and trust of all rows; those of weight zero, not trained on, get the model's own."""
        n = data.X.shape[0]
        everyone, believed = np.full((n, F.shape[1]), np.nan, dtype=F.dtype), np.ones(n, dtype=F.dtype)
        everyone[data.used] = F
        believed[data.used] = 1 if trust is None else trust
        unused = np.setdiff1d(np.arange(n), data.used)
        if len(unused):
            task = None if data.task is None else data.task[unused]
            everyone[unused], believed[unused] = self._scores(data.X[unused], task)
        return everyone, believed

    sigma: Any
    alpha: Any
    n_centers: int | None
    centers: Any
    bias: str | None
    cv: Any
    scoring: Any
    n_jobs: int | None
    verbose: int


class TunedClassifier(TunedModel, KernelClassifier):
    """Base of the classifiers that choose sigma and alpha by held-out scores; class_weight is a parameter too."""

    CENTERS: ClassVar[tuple[str, ...]] = (*TunedModel.CENTERS, "class")

    def _scorer(self) -> Any:
        return resolve_scoring(self.scoring)

    def _uncalibrated(self, data: Training) -> Calibrator:
        return ClipNormalise(data.rows.class_shares(len(data.classes)).astype(data.rows.X.dtype))

    def _judge(self, classes: Array, calibration: str | None = None) -> ClassJudge:
        return ClassJudge(classes, calibration, self._scorer())

    def _store(self, data: Training, basis: Basis, settings: Settings, outcome: Outcome, solution: Any) -> None:
        super()._store(data, basis, settings, outcome, solution)
        self.classes_, self.calibrator_ = data.classes, outcome.calibrator
        self.class_prior_ = data.rows.class_shares(len(data.classes))

    def _store_heldout(self, data: Training, F: Array, seen: list[dict], trust: Array | None = None) -> None:
        """What is known of held-out rows."""
        everyone, believed = self._everyone(data, F, trust)
        heldout = self._heldout_answer(everyone, believed, data)
        self.heldout_scores_ = everyone
        self.heldout_decision_ = heldout.decision()
        self.heldout_proba_ = heldout.proba()
        self.cv_results_ = table(seen)
        self.heldout_rows_ = self._truth(data, data.rows.y, data.rows.w, believed)

    def _truth(self, data: Training, codes: Array, w: Array, trust: Array) -> HeldRows:
        """The truth about all rows, from that about the rows that count."""
        rows, n = data.rows, data.X.shape[0]
        every, weight = np.full((n, *codes.shape[1:]), -1), np.zeros((n, *codes.shape[1:]))
        every[data.used], weight[data.used] = codes, np.where(codes >= 0, w, 0)
        group = count = None
        if rows.group is not None:
            group = np.full(n, -1)
            group[data.used] = rows.group
        elif rows.count is not None:
            count = np.ones(n)
            count[data.used] = rows.count
        return HeldRows(every, weight, trust, group, data.task, count)

    def _heldout_answer(self, F: Array, trust: Array, data: Training) -> Answer:
        return Answer(F, trust, self.calibrator_)
