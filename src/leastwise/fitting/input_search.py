r"""The choice of inputs and kernel, by held-out scores on few rows first, and of the number of centres.

Candidates are all scales with all kernels. Each is searched on about 300 rows, where a decomposition takes
milliseconds, unless its first point is clearly worse than another candidate; the best ones of each kernel are
compared again on about 1,000 rows. The search for alpha on all rows, in
:mod:`leastwise.fitting.ridge_problem`, starts where this one ended. Rows are drawn by hashes of their content, the
same for all candidates.

With every row a centre, the cost of a fit grows with the cube of the rows. How many centres a fit needs depends on
its effective dimension, the degrees of freedom of the ridge,

.. math:: \operatorname{tr} K (K + n \alpha I)^{-1} = \sum_i \frac{\mu_i}{\mu_i + \alpha},

with the eigenvalues :math:`n \mu_i` of the kernel matrix. Random centres that outnumber it by a logarithmic factor
give the error of all rows as centres (Rudi, Camoriano and Rosasco 2015). ``n_centers="auto"`` estimates it on a
subsample, at the sigma and alpha that were chosen with the kernel. For a local function, such as that of many classes
with a Laplace kernel, it is nearly the number of rows, and every row remains a centre.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.fitting.dataset import Dataset
from leastwise.fitting.direct import make_problem
from leastwise.fitting.feature_weights import WeightedInputs, can_learn, compare_weights, learn_weights
from leastwise.fitting.planning import MOST_DIFFERENCES, draft_plan
from leastwise.fitting.ridge_problem import LOGISTIC_ALPHA, RidgeProblem, for_all_rows, run_search
from leastwise.fitting.spec import Spec
from leastwise.model_selection.grids import Grid
from leastwise.model_selection.objective import ClassObjective, clearly_less
from leastwise.model_selection.search import Search, natural_length
from leastwise.problem.inputs import Inputs, have_one_unit
from leastwise.problem.kernels import CallableKernel, Kernel, Precomputed, Sum, resolve_kernel
from leastwise.solvers.evaluator import Candidate, Settings
from leastwise.solvers.heldout import HeldOut
from leastwise.utils.arrays import to_numpy
from leastwise.utils.resources import threads_for

#: Rows of the first comparison,
FIRST_ROWS = 300
#: and of the second one.
SECOND_ROWS = 1000
#: The second comparison is made if it has so many times the rows of the first.
MORE_ROWS = 1.2
#: With no more rows than this, every row is a centre.
FEW_ROWS = 3000
#: Rows on which the effective dimension is estimated.
PILOT_ROWS = 1000
#: Centres are log(n) times the effective dimension, and at least this many.
LEAST_CENTERS = 500
#: Fewer centres are used if they take less than this share of the operations.
CHEAPER = 0.5


@dataclass(frozen=True)
class InputCandidate:
    """A scale with a kernel."""

    scale: str | None
    kernel: str
    inputs: Inputs
    function: Kernel
    weighted: bool = False

    @property
    def name(self) -> str:
        """For progress reports."""
        weighted = ", feature weights" if self.weighted else ""
        return f"{self.kernel}, {'not scaled' if self.scale is None else self.scale}{weighted}"

    @property
    def names(self) -> dict[str, str]:
        """Scale and kernel for ``cv_results_``."""
        return {"scale": str(self.scale).lower(), "kernel": self.kernel}

    def apply(self, problem: RidgeProblem, scaled: dict[int, Dataset] | None = None) -> RidgeProblem:
        """The problem with these inputs and this kernel; ``scaled`` keeps scaled data for other kernels."""
        known = {} if scaled is None else scaled
        if id(self.inputs) in known:
            data = known[id(self.inputs)].with_inputs(Inputs(), self.function)
        else:
            data = known[id(self.inputs)] = problem.data.with_inputs(self.inputs, self.function)
        settings = replace(problem.settings, kernel=data.kernel, inputs=self.inputs, note=f", {self.name}")
        return replace(problem, data=data, settings=settings)


Result = tuple[InputCandidate, Candidate]


def choose_inputs(spec: Spec, data: Dataset, settings: Settings) -> tuple[Spec, Dataset, Settings]:
    """Scale the inputs and choose the kernel: the spec, data and settings that the fit goes on with."""
    if isinstance(data.kernel, Precomputed | CallableKernel):
        return spec, data, settings
    candidates = candidates_of(spec, data)
    best, start, seen, names = candidates[0], None, list[dict](), dict[str, str]()
    # Feature weights, and a start for the search on all rows, need automatic grids of sigma and alpha.
    automatic = data.kernel.has_sigma and spec.searches_sigma and bool(spec.grids(1.0, 1.0)[1].ratio)
    if spec.cv is not None and (len(candidates) > 1 or automatic):
        best, found, seen = _compare(make_problem(spec, data, settings), candidates)
        start, names = found if automatic else None, best.names
    elif best.inputs.identity and best.function == data.kernel:
        return spec, data, replace(settings, inputs=best.inputs)
    if not isinstance(spec.centers, str) and not best.inputs.identity:
        spec = replace(spec, centers=best.inputs(data.encoded(spec.centers)))
    data = data.with_inputs(best.inputs, best.function)
    # Weights have seen the labels: leave-one-out would choose too small a sigma.
    settings = replace(settings, kernel=data.kernel, inputs=best.inputs, start=start, keeps_sigma=best.weighted)
    of_all = best.weighted and len(data.rows) <= rungs(spec.search_rows, len(data.rows))[1]
    settings = replace(settings, seen=tuple(seen), chosen=names, weights_of_all=of_all)
    spec = spec if start is None else with_fewer_centers(make_problem(spec, data, settings), start)
    return spec, data, settings


def rungs(search_rows: Any, n: int) -> tuple[int, int]:
    """Rows of the first and the second comparison, of n; ``search_rows`` is the parameter of the estimators."""
    if search_rows is None:
        return n, n
    second = SECOND_ROWS if search_rows == "auto" else int(search_rows)
    return min(n, FIRST_ROWS, second), min(n, second)


def candidates_of(spec: Spec, data: Dataset) -> list[InputCandidate]:
    """All scales with all kernels; the first one is what is used where nothing is held out."""
    rows = data.rows
    n, d = rows.X.shape
    b = n if spec.every_row else min(n, int(spec.n_centers or np.shape(spec.centers)[0]))
    is_sparse = sparse.issparse(rows.X)
    few = is_sparse or float(n) * b * d > MOST_DIFFERENCES
    one_unit = spec.scale == "auto" and not is_sparse and have_one_unit(to_numpy(rows.X), data.category_columns)
    kernels = spec.kernel_names[:1] if few else spec.kernel_names
    found = []
    for scale in spec.scale_names(is_sparse, one_unit):
        inputs = Inputs.fit(scale, rows.X, rows.w, data.category_columns)
        for name in kernels:
            function = data.kernel if len(kernels) == 1 else resolve_kernel(name, spec.degree, spec.coef0)
            found.append(InputCandidate(scale, name, inputs, spec.with_linear_part(function)))
    return found


def _compare(problem: RidgeProblem, candidates: list[InputCandidate]) -> tuple[InputCandidate, Candidate, list[dict]]:
    """The best candidate, where its search ended with the alpha for all rows, and all points."""
    spec, n, problem = problem.spec, len(problem), _squared(problem)
    first_rows, second_rows = rungs(spec.search_rows, n)
    part = problem.take(first_rows)
    results, seen, ends = list[Result](), list[dict](), dict[str, Candidate]()
    linear: dict[str | None, dict] = {}  # a linear function is the same with all kernels
    scaled: dict[int, Dataset] = {}
    for candidate in candidates:
        first = candidate.apply(part, scaled).simplified()
        grids = first.grids.for_share(len(first) / n)
        unit = grids.sigmas.values[0]
        if grids.sigmas.ratio and candidate.kernel in ends:  # what suits a kernel hardly depends on the scale
            end = ends[candidate.kernel]
            first = replace(first, settings=replace(first.settings, start=replace(end, sigma=end.sigma * unit)))
        search = Search(first.evaluator(), linear=linear.setdefault(candidate.scale, {}), walks=True)
        start, alphas = first.settings.start, _every_other(grids.alphas)
        found = None if start is None else search.refine(start, alphas)
        if found is None or not _hopeless(first, found, _best(results)[1]):
            found = run_search(spec, search, _coarse(grids.sigmas), alphas, grids.sharings, found)
        ends.setdefault(candidate.kernel, replace(found, sigma=found.sigma / unit, F=np.empty(0)))
        results.append((candidate, found))
        seen += _named(candidate, search.seen, len(first) / n)
    with threads_for(len(part)):
        results += _weighted(part, results, scaled)
    share, second = len(part) / n, problem.take(second_rows)
    if len(results) > 1 and len(second) > MORE_ROWS * len(part):
        finals = []
        for candidate, found in _finalists(results):
            last = candidate.apply(second).simplified()
            search = Search(last.evaluator())
            start = replace(found, alpha=found.alpha * len(part) / len(second))
            grids = last.grids.for_share(len(last) / n)
            finals.append((candidate, search.settle(start, grids.alphas, grids.sharings)))
            seen += _named(candidate, search.seen, len(last) / n)
        share = len(second) / n
        best, found = _relearned(second, *_best(finals))
    else:  # alpha is not refined yet
        best, found = _relearned(part, *_best(results))
        found = replace(found, F=np.empty(0))
    spec.report(f"chosen: kernel {best.name}")
    if spec.logistic:  # scores of another model
        alpha = max(found.alpha * LOGISTIC_ALPHA, spec.grids(1.0, 1.0)[1].values[0])
        found, seen = replace(found, alpha=alpha, F=np.empty(0), calibrator=None), []
    return best, for_all_rows(found, [], spec.grids(1.0, 1.0)[1], share)[0], seen


def _best(results: list[Result]) -> Result:
    """The result with the best score; the first of those that are equal up to rounding."""
    best = results[0]
    for result in results[1:]:
        best = result if result[1].clearly_better(best[1]) else best
    return best


def _finalists(results: list[Result]) -> list[Result]:
    """The best candidate of each kernel: which kernel is best changes with the number of rows more than the scale."""
    best = _best(results)
    if best[1].score == np.inf:
        return [best]
    kernels = dict.fromkeys(candidate.kernel for candidate, _ in results)
    return [_best([result for result in results if result[0].kernel == kernel]) for kernel in kernels]


def _hopeless(problem: RidgeProblem, found: Candidate, best: Candidate) -> bool:
    """True if the losses of the rows are worse than those of another candidate by more than a standard error."""
    rows, objective = problem.rows, problem.settings.objective
    losses, others = (objective.row_losses(rows, HeldOut(each.F), each.calibrator) for each in (best, found))
    return clearly_less(losses, others, rows.w, rows.size)


def _squared(problem: RidgeProblem) -> RidgeProblem:
    """The same problem with squares instead of logistic losses: held-out scores have a closed form then.

    What suits inputs and kernel hardly depends on the loss.
    """
    spec, objective = problem.spec, problem.settings.objective
    if not spec.logistic:
        return problem
    assert isinstance(objective, ClassObjective)
    family = "tasks" if spec.many_tasks else "single"
    spec = replace(spec, family=family, solver="auto", alpha="auto", alpha_values=Spec.alpha_values)
    settings = replace(problem.settings, objective=replace(objective, calibration="blend"))
    return replace(problem, spec=spec, settings=settings)


def _weighted(part: RidgeProblem, results: list[Result], scaled: dict[int, Dataset]) -> list[Result]:
    """The best candidate of a Gaussian kernel with feature weights, if these help on rows they have not seen.

    Its score is that without weights plus what they gain in cross-fitting.
    """
    spec = part.spec
    if spec.metric is None or spec.cv is None:
        return []
    for candidate, found in sorted(results, key=lambda result: -result[1].score):
        problem = candidate.apply(part, scaled).simplified()
        if (spec.metric == "auto" and not candidate.kernel.startswith("rbf")) or found.weight == np.inf:
            continue
        if not can_learn(problem):
            continue
        if spec.metric == "auto":
            learned = compare_weights(problem, found)
            if learned is None:
                return []
        else:
            weights, ratio = learn_weights(problem, found)
            learned = WeightedInputs(weights, np.inf, ratio, found.alpha)  # preferred to all others
        other = replace(candidate, inputs=candidate.inputs.with_weights(learned.weights), weighted=True)
        start = replace(found, sigma=found.sigma * learned.ratio, alpha=learned.alpha, F=np.empty(0))
        return [(other, replace(start, score=found.score + learned.gain))]
    return []


def _relearned(problem: RidgeProblem, candidate: InputCandidate, found: Candidate) -> Result:
    """Feature weights from these rows, at the sigma and alpha that were found."""
    if not candidate.weighted:
        return candidate, found
    plain = replace(candidate, inputs=candidate.inputs.with_weights(None))
    lengths = [natural_length(candidate.function, c.apply(problem).rows) for c in (plain, candidate)]
    start = replace(found, sigma=found.sigma * lengths[0] / lengths[1])
    weights, ratio = learn_weights(plain.apply(problem).simplified(), start)
    relearned = replace(candidate, inputs=candidate.inputs.with_weights(weights))
    return relearned, replace(start, sigma=start.sigma * ratio, F=np.empty(0))


def _every_other(alphas: Grid) -> Grid:
    """Every other value of an automatic grid, which is not refined."""
    return Grid(alphas.values[::2]) if alphas.ratio else alphas


def _coarse(sigmas: Grid) -> Grid:
    """Every other value of an automatic grid, which is extended in larger steps."""
    if not sigmas.ratio or len(sigmas.values) < 4:
        return sigmas
    return Grid(sigmas.values[1::2], sigmas.ratio**2)


def _named(candidate: InputCandidate, seen: list[dict], share: float) -> list[dict[str, Any]]:
    """Points with the names of scale and kernel, and alphas for all rows."""
    return [{**point, **candidate.names, "alpha": point["alpha"] * share} for point in seen]


# ----------------------------------------------------------- the number of centres


def with_fewer_centers(problem: RidgeProblem, found: Candidate) -> Spec:
    """The parameters with the number of centres that the chosen point needs, if that is much cheaper.

    Parameters
    ----------
    problem : RidgeProblem
        All rows, with the chosen inputs and kernel.
    found : Candidate
        Where the search on few rows ended, with alpha for all rows.
    """
    spec, n = problem.spec, len(problem)
    plain = spec.solver == "auto" and spec.basis == "full" and spec.norm == "function" and spec.prune is None
    if not (spec.auto_centers and spec.every_row and plain) or spec.logistic or n <= FEW_ROWS:
        return spec
    needed = np.log(n) * effective_dimension(problem, found)
    count = max(LEAST_CENTERS, 100 * int(np.ceil(needed / 100)))
    if count > PILOT_ROWS:  # beyond this the pilot says too little
        return spec
    fewer = replace(spec, n_centers=count)
    works = [draft_plan(each, problem.data, problem.settings).work.flops for each in (fewer, spec)]
    if works[0] > CHEAPER * works[1]:
        return spec
    spec.report(f"{count} of {n} rows are centres")
    return fewer


def effective_dimension(problem: RidgeProblem, found: Candidate) -> float:
    """Degrees of freedom of all rows at a point, from a sample of them."""
    X, kernel = problem.take(PILOT_ROWS).rows.X, problem.settings.kernel
    if isinstance(kernel, Sum) and found.weight is not None:
        kernel = kernel.with_linear_weight(found.weight)
    K = np.asarray(kernel(X, X, found.sigma), dtype=float)
    mu = np.maximum(np.linalg.eigvalsh(K), 0) / len(K)
    return float(np.sum(mu / (mu + found.alpha)))
