r"""The number of centres of ``n_centers="auto"``: fewer than rows where that makes next to no difference.

With every row a centre, the cost of a fit grows with the cube of the rows. How many centres a fit needs depends on
its effective dimension, the degrees of freedom of the ridge,

.. math:: \operatorname{tr} K (K + n \alpha I)^{-1} = \sum_i \frac{\mu_i}{\mu_i + \alpha},

with the eigenvalues :math:`n \mu_i` of the kernel matrix. Random centres that outnumber it by a logarithmic factor
give the error of all rows as centres (Rudi, Camoriano and Rosasco 2015). It is estimated on a sample of the rows, at
the sigma and alpha that were chosen with the kernel. For a local function, such as that of many classes with a
Laplace kernel, it is nearly the number of rows, and every row remains a centre.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from leastwise.estimators.planning import draft_plan
from leastwise.estimators.ridge_problem import RidgeProblem
from leastwise.estimators.spec import Spec
from leastwise.problem.kernels import Sum
from leastwise.solvers.evaluator import Candidate

#: With no more rows than this, every row is a centre.
FEW_ROWS = 3000
#: Rows on which the effective dimension is estimated.
PILOT_ROWS = 1000
#: Centres are log(n) times the effective dimension, and at least this many.
LEAST_CENTERS = 500
#: Fewer centres are used if they take less than this share of the operations.
CHEAPER = 0.5


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
