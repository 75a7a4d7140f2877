"""The choice of inputs and kernel, by held-out scores on few rows first.

Candidates are all scales with all kernels. Each is searched on about 300 rows, where a decomposition takes
milliseconds; the best two are compared again on about 1,000 rows. The search for alpha on all rows, in
:mod:`leastwise.estimators.choosing`, starts where this one ended. Rows are drawn by hashes of their content, the same
for all candidates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.estimators.choosing import for_all_rows, make_problem, run_search
from leastwise.estimators.ridge_problem import RidgeProblem
from leastwise.estimators.spec import Spec
from leastwise.estimators.validation import Dataset
from leastwise.model_selection.grid import Grid
from leastwise.model_selection.search import Search
from leastwise.problem.inputs import Inputs
from leastwise.problem.kernels import CallableKernel, Kernel, Precomputed, resolve_kernel
from leastwise.solvers.evaluator import Candidate, Settings

#: Rows of the first comparison,
FIRST_ROWS = 300
#: of the second one,
SECOND_ROWS = 1000
#: and candidates that take part in it.
FINALISTS = 2
#: Sums of absolute differences cost no matrix product: not tried where a fit would take more of them than this.
MOST_DIFFERENCES = 2e10


@dataclass(frozen=True)
class InputCandidate:
    """A scale with a kernel."""

    scale: str | None
    kernel: str
    inputs: Inputs
    function: Kernel

    @property
    def name(self) -> str:
        """For progress reports."""
        return f"{self.kernel}, {'not scaled' if self.scale is None else self.scale}"

    @property
    def names(self) -> dict[str, str]:
        """Scale and kernel for ``cv_results_``."""
        return {"scale": str(self.scale).lower(), "kernel": self.kernel}

    def apply(self, problem: RidgeProblem) -> RidgeProblem:
        """The problem with these inputs and this kernel."""
        data = problem.data.with_inputs(self.inputs, self.function)
        settings = replace(problem.settings, kernel=data.kernel, inputs=self.inputs, note=f", {self.name}")
        return replace(problem, data=data, settings=settings)


def configure(spec: Spec, data: Dataset, settings: Settings) -> tuple[Spec, Dataset, Settings]:
    """Scale the inputs and choose the kernel: the spec, data and settings that the fit goes on with."""
    if isinstance(data.kernel, Precomputed | CallableKernel):
        return spec, data, settings
    candidates = candidates_of(spec, data)
    best, start, seen = candidates[0], None, list[dict]()
    searches = spec.cv is not None and spec.searches_sigma and bool(spec.grids(1.0, 1.0)[1].ratio)
    if searches and (len(candidates) > 1 or len(data.rows) > FIRST_ROWS) and data.kernel.has_sigma:
        best, start, seen = _compare(make_problem(spec, data, settings), candidates)
    elif len(candidates) > 1 and spec.cv is not None:
        best, _, seen = _compare(make_problem(spec, data, settings), candidates)
    elif best.inputs.identity and best.function == data.kernel:
        return spec, data, replace(settings, inputs=best.inputs)
    if not isinstance(spec.centers, str) and not best.inputs.identity:
        spec = replace(spec, centers=best.inputs(data.encoded(spec.centers)))
    data = data.with_inputs(best.inputs, best.function)
    settings = replace(settings, kernel=data.kernel, inputs=best.inputs, start=start)
    return spec, data, replace(settings, seen=tuple(seen), chosen=best.names)


def candidates_of(spec: Spec, data: Dataset) -> list[InputCandidate]:
    """All scales with all kernels; the first one is what is used where nothing is held out."""
    rows = data.rows
    n, d = rows.X.shape
    b = n if spec.every_row else min(n, int(spec.n_centers or np.shape(spec.centers)[0]))
    few = sparse.issparse(rows.X) or float(n) * b * d > MOST_DIFFERENCES
    kernels = spec.kernel_names[:1] if few else spec.kernel_names
    found = []
    for scale in spec.scale_names(sparse.issparse(rows.X)):
        inputs = Inputs.fit(scale, rows.X, rows.w, data.category_columns)
        for name in kernels:
            function = data.kernel if len(kernels) == 1 else resolve_kernel(name, spec.degree, spec.coef0)
            found.append(InputCandidate(scale, name, inputs, spec.with_linear_part(function)))
    return found


def _compare(problem: RidgeProblem, candidates: list[InputCandidate]) -> tuple[InputCandidate, Candidate, list[dict]]:
    """The best candidate, where its search ended with the alpha for all rows, and all points."""
    spec, n, part = problem.spec, len(problem), problem.take(FIRST_ROWS)
    results, seen = [], list[dict]()
    for candidate in candidates:
        first = candidate.apply(part).simplified()
        search = Search(first.evaluator())
        grids = first.grids.for_share(len(first) / n)
        found = run_search(spec, search, _coarse(grids.sigmas), grids.alphas, grids.sharings)
        results.append((candidate, found))
        seen += _named(candidate, search.seen, len(first) / n)
    results.sort(key=lambda result: -result[1].score)  # stable: the first candidate wins ties
    share, second = len(part) / n, problem.take(SECOND_ROWS)
    if len(second) > 1.2 * len(part) and len(candidates) > 1:
        finals = []
        for candidate, found in results[:FINALISTS]:
            last = candidate.apply(second).simplified()
            search = Search(last.evaluator())
            start = replace(found, alpha=found.alpha * len(part) / len(second))
            grids = last.grids.for_share(len(last) / n)
            finals.append((candidate, search.settle(start, grids.alphas, grids.sharings)))
            seen += _named(candidate, search.seen, len(last) / n)
        results, share = sorted(finals, key=lambda result: -result[1].score), len(second) / n
    best, found = results[0]
    spec.report(f"chosen: kernel {best.name}")
    return best, for_all_rows(found, [], spec.grids(1.0, 1.0)[1], share)[0], seen


def _coarse(sigmas: Grid) -> Grid:
    """Every other value of an automatic grid, which is extended in larger steps."""
    if not sigmas.ratio or len(sigmas.values) < 4:
        return sigmas
    return Grid(sigmas.values[1::2], sigmas.ratio**2)


def _named(candidate: InputCandidate, seen: list[dict], share: float) -> list[dict[str, Any]]:
    """Points with the names of scale and kernel, and alphas for all rows."""
    return [{**point, **candidate.names, "alpha": point["alpha"] * share} for point in seen]
