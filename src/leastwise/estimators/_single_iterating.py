"""The Krylov solver for models of a single task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from leastwise.basis import evaluate
from leastwise.estimators._iterating import Iterating
from leastwise.estimators._model import Training
from leastwise.estimators._single import SingleTaskModel
from leastwise.estimators._tuned import Found
from leastwise.fitting import Solution
from leastwise.krylov_fitting import Iterated
from leastwise.selection.plan import SEARCH_ROWS
from leastwise.selection.search import Search
from leastwise.selection.trial import Rows, Settings, Trial

Array = np.ndarray


class SingleIterating(Iterating, SingleTaskModel):
    """Mixin for models of a single task that may be solved by iterations."""

    def _guess(self, data: Training, settings: Settings) -> Found:
        rows = data.rows
        sigmas, alphas = self._data_grids(rows, settings)
        wish = SEARCH_ROWS if self.search_rows == "auto" else self.search_rows or len(rows)
        some = self._some(data, min(int(wish), len(rows)), settings)
        search = Search(Trial(some, self._basis(some, data.rng, settings), settings))
        if self.cv is None:
            return Found(self._fixed(data, sigmas.values[0], alphas.values[0]), [], None, search.trial)
        guess = self._run(search, sigmas, alphas)
        # More rows want a smaller ridge on the mean loss; about in proportion is a good guess.
        ratio = len(some) / len(rows) if alphas.ratio else 1.0
        for point in search.seen:
            point["alpha"] *= ratio
        return Found(replace(guess, alpha=guess.alpha * ratio), search.seen, None, search.trial)

    def _iterated_scores(
        self, settings: Settings, sigma: float, rows: Rows, held: Array, rest: Array, bonds: Any, model: Iterated
    ) -> Array:
        F, _ = evaluate(settings.kernel, sigma, rows.X[held], rows.X[rest], None, model.A)
        return F + model.intercept

    def _iterated_solution(self, model: Iterated, bonds: Any) -> Solution:
        return Solution(model.A, model.intercept)
