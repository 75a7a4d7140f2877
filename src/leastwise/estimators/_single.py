"""What models of a single task have in common: the search on some rows, then on all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from leastwise.estimators._model import Training
from leastwise.estimators._tuned import Found, TunedModel
from leastwise.model_selection.search import Search
from leastwise.model_selection.subsample import search_sample
from leastwise.problem.kernels import Precomputed
from leastwise.solvers.evaluator import Outcome, Rows, Settings, Trial
from leastwise.solvers.search_rows import SEARCH_ROWS, rows_to_search


class SingleTaskModel(TunedModel):
    """Mixin for models of a single task. A subclass has the parameter search_rows."""

    #: Model (5) or (7); see ``leastwise.problem.basis``.
    basis: str = "full"
    search_rows: Any

    def _select(self, data: Training, settings: Settings) -> tuple[Outcome, list[dict], Trial]:
        """Search on some rows or all; the best point, all points, and the trial on all rows."""
        rows, basis = data.rows, self._basis(data.rows, data.seed, settings, self.basis)
        some = self._some(data, rows_to_search(basis, len(rows), self.search_rows), settings)
        sigmas, alphas = self._data_grids(rows, settings)
        if self.cv is None:
            return self._fixed(data, sigmas.values[0], alphas.values[0]), [], Trial(rows, basis, settings)
        if some is rows or (sigmas.single and alphas.single):
            whole = Search(Trial(rows, basis, settings))
            return self._run(whole, sigmas, alphas), whole.seen, whole.trial
        part = Search(Trial(some, self._basis(some, data.seed, settings, self.basis), settings))
        guess = self._run(part, sigmas, alphas)
        whole = Search(Trial(rows, basis, part.trial.settings))
        # More rows want a smaller ridge on the mean loss; about in proportion is a good guess.
        found = whole.refine(replace(guess, alpha=guess.alpha * len(some) / len(rows)), alphas)
        return found, part.seen + whole.seen, whole.trial

    def _first_look(self, data: Training, settings: Settings) -> Found:
        """The best point on some rows in closed form, with the alpha that suits all; and all points."""
        wish = SEARCH_ROWS if self.search_rows == "auto" else self.search_rows or len(data.rows)
        some = self._some(data, min(int(wish), len(data.rows)), settings)
        sigmas, alphas = self._data_grids(data.rows, settings)
        search = Search(Trial(some, self._basis(some, data.seed, settings), settings))
        if self.cv is None:
            return Found(self._fixed(data, sigmas.values[0], alphas.values[0]), [], None, search.trial)
        found = self._run(search, sigmas, alphas)
        # More rows want a smaller ridge on the mean loss; about in proportion is a good guess.
        ratio = len(some) / len(data.rows) if alphas.ratio else 1.0
        seen = [{**point, "alpha": point["alpha"] * ratio} for point in search.seen]  # a diary has the others
        return Found(replace(found, alpha=found.alpha * ratio), seen, None, search.trial)

    def _some(self, data: Training, count: int, settings: Settings) -> Rows:
        """About so many rows, the classes in proportion; all if there are no more, or no two folds among them."""
        if count >= len(data.rows):
            return data.rows.here()
        precomputed = isinstance(settings.kernel, Precomputed)
        index = search_sample(data.rows, count, precomputed)
        if len(np.unique(data.rows.fold[index])) < 2:
            return data.rows.here()
        return data.rows.take(index, precomputed)
