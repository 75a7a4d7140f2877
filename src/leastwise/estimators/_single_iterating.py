"""The Krylov solver for models of a single task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from leastwise.estimators._iterating import Iterating
from leastwise.estimators._model import Training
from leastwise.estimators._single import SingleTaskModel
from leastwise.estimators._tuned import Found
from leastwise.model_selection.grid import Grid
from leastwise.model_selection.subsample import held_out_tenth
from leastwise.problem.basis import evaluate
from leastwise.solvers.evaluator import Rows, Settings
from leastwise.solvers.heldout import Held
from leastwise.solvers.krylov import Effort, Iterated, KrylovProblem
from leastwise.solvers.solve import Solution

Array = np.ndarray


#: Alpha is settled on so many rows, or on a quarter of them if these are more.
SETTLE_ROWS = 8000
#: Differences of scores, relative to their size, that are not worth the iterations of a smaller alpha.
ALIKE = 5e-3
#: Steps that alpha may go beyond the best score for that: a flat score is no licence for any ridge.
FURTHER = 2


class SingleIterating(Iterating, SingleTaskModel):
    """Mixin for models of a single task that may be solved by iterations."""

    def _guess(self, data: Training, settings: Settings) -> Found:
        return self._first_look(data, settings)

    def _settle(self, data: Training, choice: Found, effort: Effort) -> Found:
        """With a better alpha for classes: what a tenth of some rows says, in proportion for all."""
        rows, settings, best = data.rows, choice.searched.settings, choice.outcome
        alphas = self._data_grids(rows, settings)[1]
        if not alphas.ratio or not settings.judge.of_classes:
            return choice
        some = self._some(data, max(SETTLE_ROWS, len(rows) // 4), settings)
        held = held_out_tenth(some, "krylov")
        rest, ratio, seen = np.setdiff1d(np.arange(len(some)), held), len(some) / len(rows), list(choice.seen)
        self._report(f"alpha on {len(rest)} rows, without {len(held)} that are held out:")
        problem = KrylovProblem(some.take(rest, precomputed=False), settings, best.sigma, None, effort)
        F, start = np.full((len(some), settings.n_outputs), np.nan, dtype=some.X.dtype), None

        def score(alpha: float) -> float:
            nonlocal start
            model = problem.solve(alpha, start)
            start = model.story.X
            F[held] = self._iterated_scores(settings, best.sigma, some, held, rest, None, model)
            found = settings.judge(some, Held(F), None)[0]
            point = {"sigma": best.sigma, "sharing": None, "spread": best.spread, "weight": best.weight}
            seen.append({**point, "alpha": alpha * ratio, "score": found, "rows": len(some)})
            self._report(f"alpha {alpha * ratio:.2g}: score {found:.5g}, {model.story.n_iter} iterations")
            return found

        # Few rows may like ridges that are next to nothing, and cost hundreds of iterations with more.
        alpha = smoothest(alphas, max(best.alpha / ratio, 10 * alphas.values[0]), score) * ratio
        return replace(choice, outcome=replace(best, alpha=alpha), seen=seen)

    def _iterated_scores(
        self, settings: Settings, sigma: float, rows: Rows, held: Array, rest: Array, bonds: Any, model: Iterated
    ) -> Array:
        F, _ = evaluate(settings.kernel, sigma, rows.X[held], rows.X[rest], None, model.A)
        return F + model.intercept

    def _iterated_solution(self, model: Iterated, bonds: Any) -> Solution:
        return Solution(model.A, model.intercept)


def smoothest(alphas: Grid, start: float, score: Callable[[float], float]) -> float:
    """From ``start`` up while scores stay alike, larger alphas being cheaper, a bit beyond the best; else down."""
    value = alphas.around(start)
    here = value(0)
    assert here is not None
    best, top = score(here), 0
    for way in (1, -1):
        steps = way
        while abs(steps - top) <= FURTHER and (there := value(steps)) is not None:
            found = score(there)
            if not found > best - way * ALIKE * abs(best):
                break
            top = steps if found >= best else top
            here, best, steps = there, max(best, found), steps + way
        if steps != way:
            break
    return here
