"""The parameters of an estimator, checked before any data are read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from leastwise.calibration.calibrators import CALIBRATIONS
from leastwise.fitting.checks import (
    check_centers,
    check_count,
    check_levels,
    check_positive,
    check_search_rows,
    check_threshold,
    choose,
    parse_grid,
)
from leastwise.model_selection.grids import Grid, SharingGrid
from leastwise.model_selection.label_objective import LabelObjective, resolve_label_scoring
from leastwise.model_selection.objective import ClassObjective, ValueObjective, resolve_scoring, resolve_value_scoring
from leastwise.model_selection.search import natural_height, natural_length
from leastwise.model_selection.steps import check_n_jobs
from leastwise.problem.basis import Basis, given_basis, make_basis
from leastwise.problem.centers import Recipe
from leastwise.problem.inputs import SCALES
from leastwise.problem.kernels import CallableKernel, Kernel, Linear, Precomputed, Sum, resolve_kernel
from leastwise.problem.label_coupling import LABEL_SIMILARITIES, LEVELS
from leastwise.problem.similarity import TASK_SIMILARITIES
from leastwise.problem.similarity_checks import is_edges
from leastwise.problem.targets import Targets
from leastwise.solvers.choose import SOLVERS, solver_names
from leastwise.solvers.evaluator import Objective, Rows, Settings
from leastwise.sources.frames import check_categories
from leastwise.utils.hashing import generator

Array = np.ndarray

#: A linear kernel of more rows than this is fitted by its coefficients.
MANY_ROWS = 1000


@dataclass(frozen=True)
class Spec:
    """Parameters of an estimator in one form for all of them; a parameter that an estimator lacks has its default.

    Attributes
    ----------
    name : str
        Name of the estimator, for messages.
    targets : Targets
        Classes, values or labels, before any rows were seen.
    family : {"single", "machine", "tasks", "task machine", "labels", "logistic", "task logistic"}
        Which solvers there are, see ``leastwise.solvers.choose.SOLVERS``.
    iteration_limit : str
        The parameter that limits iterations.
    center_rules : tuple of str
        Allowed names of ``centers``.
    sigma_multiples, sigma_ratio, alpha_values, sharings, auto_intercept_ratios
        Grids of "auto": sigma in units of the kernel's natural length, alpha in units of its natural height.
    device_rows : bool
        Training rows of another array library may stay on their device.
    auto_kernels : tuple of str
        Kernels that ``kernel="auto"`` chooses from.
    auto_centers : bool
        True for ``n_centers="auto"``: all rows, until :mod:`leastwise.fitting.input_search` finds that fewer do.

    All others are parameters of the estimators.
    """

    name: str
    targets: Targets
    family: str
    iteration_limit: str = "max_iter"
    center_rules: tuple[str, ...] = ("random", "kmeans", "kmeans++", "leverage")
    sigma_multiples: tuple[float, ...] = (0.2, 0.3, 0.45, 0.7, 1.0, 1.5)
    sigma_ratio: float = 1.5
    alpha_values: tuple[float, ...] = tuple(10.0 ** np.arange(-7, 0.1))
    sharings: tuple[float, ...] = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0)
    auto_intercept_ratios: tuple[float, ...] = ()
    device_rows: bool = False
    auto_kernels: tuple[str, ...] = ("rbf", "laplace")

    sigma: Any = "auto"
    alpha: Any = "auto"
    sharing: Any = None
    kernel: Any = "auto"
    scale: Any = "auto"
    metric: Any = "auto"
    categories: Any = "from_dtype"
    degree: int = 3
    coef0: float = 1.0
    linear_weight: Any = None
    norm: str = "function"
    basis: str = "full"
    n_centers: Any = None
    auto_centers: bool = False
    centers: Any = "random"
    bias: Any = None
    similarity: Any = "shared"
    task_penalty: Any = None
    label_penalty: Any = None
    task_column: Any = None
    unknown_task: str = "shared"
    cv: Any = "loo"
    scoring: Any = "log_loss"
    calibration: Any = None
    threshold: Any = 0.5
    extrapolate: bool = False
    solver: str = "auto"
    prune: Any = None
    search_rows: Any = "auto"
    max_passes: Any = 100
    max_iter: Any = 1000
    tol: Any = 1e-6
    n_jobs: Any = None
    random_state: Any = None
    verbose: int = 0

    @classmethod
    def of(cls, estimator: Any, targets: Targets, family: str, **constants: Any) -> Spec:
        """The parameters of an estimator."""
        names = {field.name for field in fields(cls)}
        given = {k: v for k, v in estimator.get_params(deep=False).items() if k in names}
        if isinstance(given.get("n_centers"), str) and given["n_centers"] == "auto":
            given |= {"n_centers": None, "auto_centers": True}
        return cls(type(estimator).__name__, targets, family, **constants, **given)

    # ------------------------------------------------------------ properties

    @property
    def machine(self) -> bool:
        """True for LS-SVMs, which may prune rows and add a linear kernel."""
        return "machine" in self.family

    @property
    def logistic(self) -> bool:
        """True for kernel logistic regression."""
        return "logistic" in self.family

    @property
    def many_tasks(self) -> bool:
        """True for estimators of many tasks."""
        return "task" in self.family

    @property
    def many_labels(self) -> bool:
        """True for estimators of many labels."""
        return self.family == "labels"

    @property
    def every_row(self) -> bool:
        """True if every row is a centre, as far as parameters say."""
        return self.n_centers is None and isinstance(self.centers, str)

    @property
    def max_iterations(self) -> int:
        """Limit of the iterations."""
        return int(getattr(self, self.iteration_limit))

    @property
    def computes_similarity(self) -> bool:
        """True if similarities of tasks come from the data."""
        return isinstance(self.similarity, str) and self.similarity in TASK_SIMILARITIES

    @property
    def shares_alike(self) -> bool:
        """True if sharing is equal between all tasks."""
        return isinstance(self.similarity, str) and self.similarity == "shared"

    # ------------------------------------------------------ inputs and kernel

    @property
    def searches_sigma(self) -> bool:
        """True if sigma is chosen on an automatic grid."""
        return isinstance(self.sigma, str)

    @property
    def kernel_names(self) -> tuple[Any, ...]:
        """Kernels to choose from. A number for sigma has the unit of one kernel, which is the first one."""
        if not isinstance(self.kernel, str) or self.kernel != "auto":
            return (self.kernel,)
        return self.auto_kernels if self.searches_sigma and self.cv is not None else self.auto_kernels[:1]

    def scale_names(self, sparse: bool, one_unit: bool = False) -> tuple[str | None, ...]:
        """Scales to choose from; ``one_unit`` is True if the columns look like measurements in the same unit.

        A number for sigma is in the units of X as it is given: nothing is scaled then.
        """
        if self.scale != "auto":
            if sparse and self.scale is not None and not SCALES[self.scale].for_sparse:
                raise ValueError(
                    f"scale={self.scale!r} would make sparse X dense: use 'standard' or 'robust', which keep zeros, "
                    "or None."
                )
            return (self.scale,)
        if not self.searches_sigma or self.cv is None:
            return (None,)
        return (None, "standard") if sparse else ("standard", None if one_unit else "quantile")

    def scales_inputs(self, kernel: Kernel) -> bool:
        """True if X is scaled before kernels are computed."""
        computed = not isinstance(kernel, Precomputed | CallableKernel)
        return computed and self.scale_names(sparse=False) != (None,)

    def with_linear_part(self, kernel: Kernel) -> Kernel:
        """A sum of kernels with the weight of its linear part that the search starts from."""
        weights = self.linear_weights(kernel)
        if not weights:
            return kernel
        assert isinstance(kernel, Sum)
        return kernel.with_linear_weight(1.0 if 1.0 in weights else weights[len(weights) // 2])

    def few_functions(self, kernel: Kernel) -> bool:
        """True if the block-arrow system applies: equal sharing between tasks, and few basis functions."""
        linear = isinstance(kernel, Linear) and self.norm == "function"
        few = not self.every_row or linear
        return self.shares_alike and few and not isinstance(kernel, Precomputed) and self.prune is None

    def linear_directions(self, n: int, d: int, kernel: Kernel) -> bool:
        """True if a linear function of many rows is solved for its few coefficients."""
        few = n > max(2 * d, MANY_ROWS)
        return (
            self.family == "machine" and isinstance(kernel, Linear) and self.every_row and self.prune is None and few
        )

    def may_iterate(self, kernel: Kernel) -> bool:
        """True if conjugate gradients support these parameters: every row a centre, and a kernel to compute."""
        possible = not isinstance(kernel, Precomputed) and kernel.definite is not False and self.every_row
        if self.family == "single":  # for a callable kernel only if the solver is named
            return possible and kernel.definite is True and self.norm == "function" and self.basis == "full"
        return possible and self.prune is None

    def has_options(self, kernel: Kernel) -> bool:
        """True if the weight of a linear part, or the variance of intercepts, is to be chosen."""
        return len(self.linear_weights(kernel)) > 1 or len(self.intercept_ratios) > 1

    def report(self, line: str) -> None:
        """Print a line of progress, if ``verbose``."""
        if self.verbose:
            print(f"[{self.name}] {line}", flush=True)

    # ---------------------------------------------------------------- checks

    def check(self) -> Kernel:
        """All parameters checked, before any data are seen; the kernel."""
        self._check_names()
        if self.many_tasks:
            self._check_tasks()
        elif self.many_labels:
            self.label_sharings  # noqa: B018 - raises an error for bad parameters
        kernel = self._checked_kernel()
        if self.machine:
            kernel = self._checked_machine(kernel)
        reason = SOLVERS[self.solver].needs(self, kernel) if self.solver in SOLVERS else None
        if reason is not None:
            raise ValueError(reason)
        return kernel

    def _check_names(self) -> None:
        choose("norm", self.norm, ["function", "coefficients"])
        choose("basis", self.basis, ["full", "class"])
        choose("calibration", self.calibration, CALIBRATIONS)
        choose("solver", self.solver, solver_names(self.family))
        if check_count(self.iteration_limit, getattr(self, self.iteration_limit)) is None:
            raise ValueError(f"{self.iteration_limit}=None must be a whole number of 1 or more.")
        check_positive("tol", self.tol)
        check_search_rows(self.search_rows)

    def _check_tasks(self) -> None:
        if isinstance(self.similarity, str):
            choose("similarity", self.similarity, ["shared", *TASK_SIMILARITIES])
        choose("unknown_task", self.unknown_task, ["shared", "error"])
        if isinstance(self.kernel, str) and self.kernel == "precomputed" and self.task_column is not None:
            raise ValueError("kernel='precomputed' has no column to hold the task: give tasks= instead.")
        if self.cv is None and (len(self.task_sharings.values) > 1 or self.computes_similarity):
            more = (
                "" if self.logistic else ", and similarity='shared' or a matrix; or set cv='loo' or a number of folds"
            )
            raise ValueError(f"cv=None holds nothing out, so nothing can be chosen: give a number for sharing{more}.")

    @cached_property
    def task_sharings(self) -> SharingGrid:
        """Sharings of tasks to try."""
        return check_levels("sharing", self.sharing, self.sharings)

    @cached_property
    def label_sharings(self) -> SharingGrid:
        """Sharings of labels to try."""
        levels = LEVELS
        if isinstance(self.similarity, str):
            levels = LABEL_SIMILARITIES[choose("similarity", self.similarity, LABEL_SIMILARITIES)].sharings
        sharings = check_levels("sharing", self.sharing, levels, "labels")
        if self.cv is None and len(sharings.values) > 1:
            raise ValueError(
                "cv=None holds nothing out, so nothing can be chosen: give a number for sharing; or set "
                "cv='loo' or a number of folds."
            )
        return sharings

    @property
    def relates_labels(self) -> bool:
        """True if it matters which labels are related."""
        return not self.shares_alike and self.label_sharings.values != (0.0,)

    @property
    def pair_table(self) -> bool:
        """True if there is a table of all pairs of labels."""
        S = self.similarity
        return self.relates_labels and not is_edges(S) and not hasattr(S, "nnz")

    def _checked_kernel(self) -> Kernel:
        self.intercept_ratios  # noqa: B018 - raises an error for a bad bias
        check_centers(self.n_centers)
        check_n_jobs(self.n_jobs)
        self.scorer  # noqa: B018 - raises an error for a bad scoring
        sigmas, alphas = self.grids(1.0, 1.0)
        if self.scale is not None:
            choose("scale", self.scale, ["auto", *SCALES])
        if self.metric is not None:
            choose("metric", self.metric, ["auto", "diagonal"])
        check_categories(self.categories)
        kernel = resolve_kernel(self.kernel_names[0], self.degree, self.coef0)
        fixed = alphas.single and (sigmas.single or not kernel.has_sigma)
        if self.cv is None and (self.calibration is not None or not fixed):
            raise ValueError(
                "cv=None holds nothing out, so nothing can be chosen or calibrated: give sigma and alpha as "
                "numbers, and calibration=None where there is one; or set cv='loo' or a number of folds."
            )
        self._check_centers(kernel)
        return kernel

    def _check_centers(self, kernel: Kernel) -> None:
        rule = choose("centers", self.centers, self.center_rules) if isinstance(self.centers, str) else "given"
        if isinstance(kernel, Precomputed) and rule in ("kmeans", "kmeans++", "given"):
            raise ValueError(
                "kernel='precomputed' has no rows to place centres at: use centers='random', or another choice that "
                "needs no distances."
            )
        if rule not in ("random", "given") and self.n_centers is None:
            raise ValueError(f"centers={rule!r} needs the number of centres: give n_centers.")
        if rule == "given" and self.n_centers is not None:
            raise ValueError("n_centers is the number of centres to choose: leave it None if centers is an array.")
        if self.basis == "class" and rule == "given":
            raise ValueError("An array of centers is shared by all classes: use basis='full' with it.")

    def _checked_machine(self, kernel: Kernel) -> Kernel:
        """The parameters of LS-SVMs; the kernel with the weight of its linear part that the search starts from."""
        weights, kernel = self.linear_weights(kernel), self.with_linear_part(kernel)
        if self.cv is None and len(weights) > 1:
            raise ValueError("cv=None holds nothing out, so nothing can be chosen: give one linear_weight.")
        self.rows_after_pruning(100)
        if self.prune is not None and not self.every_row:
            raise ValueError("prune= removes rows that are centres: do not set n_centers and centers with it.")
        if self.cv is None and len(self.intercept_ratios) > 1:
            raise ValueError(
                "cv=None holds nothing out, so nothing can be chosen: bias must be 'task', 'shared', None or "
                "a number."
            )
        return kernel

    def check_stream(self, keep_rows: int) -> Kernel:
        """Parameters of a fit to rows in blocks, checked before any row is read; the kernel."""
        if self.basis != "full":
            raise ValueError("basis='class' is not supported for streams: use basis='full'.")
        if self.prune is not None:
            raise ValueError(
                "prune= is not supported for streams, whose centres are limited by n_centers: leave it None."
            )
        kernel = self.check()
        if isinstance(kernel, Precomputed):
            raise ValueError("kernel='precomputed' is not supported for streams, which compute the kernel from rows.")
        if self.solver not in ("auto", "moments"):
            raise ValueError(f"solver={self.solver!r} does not work on streams: use 'auto' or 'moments'.")
        if self.cv is not None and not (isinstance(self.cv, str) and self.cv == "loo"):
            raise ValueError(
                f"cv={self.cv!r}: rows of a stream are held out one by one, or in groups: use cv='loo' (and groups), "
                "or None."
            )
        if isinstance(keep_rows, bool) or not isinstance(keep_rows, int | np.integer) or keep_rows < 0:
            raise ValueError(f"keep_rows={keep_rows!r} must be a whole number of rows, 0 or more.")
        if keep_rows < 2 and self.cv is not None:
            raise ValueError(
                f"keep_rows={keep_rows} leaves no rows to choose alpha and to calibrate on: keep some, or set "
                "cv=None, calibration=None, and numbers for sigma and alpha."
            )
        return kernel

    # ------------------------------------------------- intercepts and pruning

    @property
    def intercept_ratios(self) -> tuple[float, ...]:
        """Variances of the tasks' own intercepts to try; (0,) where tasks have none."""
        if not self.auto_intercept_ratios:
            choose("bias", self.bias, ["shared", None])
            return (0.0,)
        bias = self.bias
        if isinstance(bias, Real) and not isinstance(bias, bool) and float(bias) >= 0:
            return (float(bias),)
        if bias not in ("auto", "task", "shared", "shrunk", None):
            raise ValueError(
                f"bias={bias!r} is not known: use 'auto', 'task', 'shared', 'shrunk', None, or the ratio of the "
                "variance of the intercepts to that of the noise, a number from 0 to inf."
            )
        choices = {"task": (np.inf,), "shrunk": self.auto_intercept_ratios}
        choices["auto"] = (0.0, *self.auto_intercept_ratios, np.inf)
        return choices.get(str(bias), (0.0,))

    def rows_after_pruning(self, n: int) -> int:
        """Number of n rows that pruning leaves."""
        value = self.prune
        if value is None:
            return n
        if isinstance(value, Real) and not isinstance(value, bool):
            if isinstance(value, int | np.integer) and value >= 1:
                return max(n - int(value), 1)
            if 0 < float(value) < 1:
                return max(round(n * (1 - float(value))), 1)
        raise ValueError(
            f"prune={value!r} must be None, a share of the rows to remove (above 0 and below 1), or their number."
        )

    # ----------------------------------------------------------------- grids

    def grids(self, length: float, height: float) -> tuple[Grid, Grid]:
        """Grids of sigma and alpha, in these units."""
        alphas = parse_grid("alpha", self.alpha, np.multiply(self.alpha_values, height), 10**0.5)
        return self._sigma_grid(length), alphas

    def _sigma_grid(self, length: float) -> Grid:
        multiples, ratio = self.sigma_multiples, self.sigma_ratio
        if self.machine and "+" in str(self.kernel_names[0]):
            multiples, ratio = (0.5, 1.0, 2.0), 2.0  # a linear part leaves less for sigma to do
        return parse_grid("sigma", self.sigma, np.multiply(multiples, length), ratio)

    def data_grids(self, rows: Rows, settings: Settings) -> tuple[Grid, Grid]:
        """Grids of sigma and alpha in the units of the data."""
        kernel = settings.kernel
        length = natural_length(kernel, rows) if isinstance(self.sigma, str) else 1.0
        height = natural_height(kernel, rows, length, settings.norm) if isinstance(self.alpha, str) else 1.0
        sigmas, alphas = self.grids(length, height)
        return (sigmas if kernel.has_sigma else Grid((1.0,))), alphas

    def linear_weights(self, kernel: Kernel) -> tuple[float, ...]:
        """Weights of the linear part of a sum of kernels to try."""
        value = self.linear_weight
        if value is None and not self.machine:
            return ()
        value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
        if isinstance(value, str):
            if value != "auto":
                raise ValueError(
                    f"linear_weight={value!r} is not known: use 'auto', a number from 0 to inf, or several."
                )
            weights: tuple[float, ...] = (1.0, np.inf)
        else:
            given = list(value) if isinstance(value, Iterable) and np.ndim(value) else [value]  # type: ignore[arg-type]
            if not given or not all(isinstance(v, Real) and not isinstance(v, bool) and float(v) >= 0 for v in given):
                raise ValueError(f"linear_weight={value!r}: every value must be a number from 0 to inf.")
            weights = tuple(sorted({float(v) for v in given}))
        return weights if isinstance(kernel, Sum) and kernel.weight is not None else ()

    # ------------------------------------------------- objective and settings

    @cached_property
    def scorer(self) -> Any:
        """What the search maximises."""
        resolve = {"labels": resolve_label_scoring, "values": resolve_value_scoring}
        return resolve.get(self.targets.kind, resolve_scoring)(self.scoring)

    def objective(self, targets: Targets, rows: Rows) -> Objective:
        """What held-out scores of these rows are worth."""
        if targets.kind == "values":
            assert rows.values is not None
            return ValueObjective.of(rows.values, rows.w, rows.task, self.scorer, targets.unit)
        if targets.kind == "classes":
            return ClassObjective(targets.classes, self.calibration, self.scorer, targets.signed)
        threshold = check_threshold(self.threshold, targets.labels)
        if self.cv is None and isinstance(threshold, str):
            raise ValueError(
                f"cv=None holds nothing out, so threshold={threshold!r} cannot be chosen: give a number."
            )
        return LabelObjective(targets.labels.starts, self.calibration, self.scorer, threshold)

    def settings(self, kernel: Kernel, targets: Targets, rows: Rows) -> Settings:
        """What does not change during a search."""
        objective = self.objective(targets, rows)
        return Settings(kernel, self.norm, self.bias is not None, objective, self.report, self.n_jobs)

    # --------------------------------------------------------------- centres

    def basis_of(self, rows: Rows, seed: int, settings: Settings, kind: str = "full") -> Basis:
        """Basis functions for these rows."""
        kernel = settings.kernel
        if self.linear_directions(rows.X.shape[0], rows.X.shape[1], kernel):
            assert isinstance(kernel, Linear)
            return given_basis(kernel.directions(rows.X.shape[1], rows.X.dtype), settings.n_outputs)
        count = check_count("n_centers", self.n_centers)
        scored = (
            isinstance(self.centers, str) and self.centers == "leverage" and count is not None and count < len(rows)
        )
        sigma = self._middle_sigma(rows, kernel) if scored else 1.0
        recipe = Recipe(kind, count, self.centers, settings.norm, kernel, sigma)
        rng = generator("centers", seed)
        return make_basis(recipe, rows.X, rows.y, rows.w, rows.fold, rows.copy, rng, settings.n_outputs, rows.task)

    def _middle_sigma(self, rows: Rows, kernel: Kernel) -> float:
        """Sigma for leverage scores, before one is chosen: given, the middle of a grid, or the natural length."""
        if isinstance(self.sigma, str):
            return natural_length(kernel, rows)
        return float(np.exp(np.mean(np.log(self._sigma_grid(1.0).values))))

    def with_centers(self, count: int) -> Spec:
        """The same with ``count`` centres, unless their number or places were given."""
        return replace(self, n_centers=count) if self.every_row else self
