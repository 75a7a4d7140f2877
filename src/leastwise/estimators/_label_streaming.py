"""Models of many labels from sums over rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.estimators._by_moments import Begun, as_places
from leastwise.estimators._label_search import label_families
from leastwise.estimators._label_stream_targets import LabelStream
from leastwise.estimators._model import Training
from leastwise.estimators._streaming import Streaming
from leastwise.estimators._tuned import Found
from leastwise.model_selection.grid import Levels
from leastwise.model_selection.search import Search
from leastwise.problem.basis import Basis
from leastwise.problem.kernels import Kernel
from leastwise.solvers.evaluator import Outcome, Rows, Settings
from leastwise.solvers.label_evaluators import LabelRows
from leastwise.solvers.moment_evaluators import LabelMomentTrial, Sums
from leastwise.solvers.search_rows import SEARCH_ROWS
from leastwise.solvers.solve_labels import LabelSolution

Array = np.ndarray


def check_complete(rows: Rows) -> None:
    """Refuse labels that are known in part."""
    if not isinstance(rows, LabelRows) or not rows.complete:
        raise ValueError(
            "solver='moments' needs all labels of all rows, with one weight a row: use solver='auto' where some are "
            "not known."
        )


class LabelStreaming(LabelStream, Streaming):
    """Mixin for models of many labels; which of them are related is learned from the rows that are kept."""

    def _stream_kernel(self: Any) -> Kernel:
        self._checked_search()
        return self._checked()

    def _stream_sharings(self: Any, relation: Any) -> Levels:
        """Sharings to try; one where there is nothing to choose."""
        sharings = self._checked_search()
        return sharings if sharings.every or relation.related else Levels((0.0,))

    def _begin(self: Any, data: Training, settings: Settings) -> Begun:
        relation = self._relation(data, self._checked_search())
        sharings, (sigmas, alphas) = self._stream_sharings(relation), self._data_grids(data.rows, settings)
        basis = as_places(self._few_centers(data, settings))
        if self.cv is None:
            guess = self._fixed(data, sigmas.values[0], alphas.values[0], sharings.values[0])
            return Begun(settings.kernel, basis, guess, len(data.rows), [])
        wish = SEARCH_ROWS if self.search_rows in ("auto", None) else int(self.search_rows)
        some = self._some_rows(data, wish, settings)
        part = self._basis(some, data.seed, settings)
        guess, seen = self._look(some, part, settings, relation, sigmas, alphas, sharings)
        return Begun(settings.kernel, basis, guess, len(some), seen)

    def _moment_trial(self: Any, data: Training, rows: Rows, basis: Basis, settings: Settings, sums: Sums) -> Any:
        relation = self._relation(data, self._checked_search())
        assert isinstance(rows, LabelRows)
        return LabelMomentTrial(rows, basis, settings, relation, label_families(self.label_index_.classes), sums)

    def _settled(self: Any, data: Training, settings: Settings, begun: Begun, trial: Any, n: int) -> Any:
        alphas = self._data_grids(data.rows, settings)[1]
        guess = begun.for_rows(n, alphas.ratio)
        if self.cv is None:
            return guess, []
        search = Search(trial)
        found = search.settle(guess, alphas, self._stream_sharings(trial.relation))
        # The last word: what the first look saw was another problem.
        return found, begun.seen_for_rows(n, alphas.ratio) + [{**point, "stage": 1} for point in search.seen]

    def _moment_solution(self: Any, trial: LabelMomentTrial, outcome: Outcome) -> LabelSolution:
        dtype = trial.rows.X.dtype
        spectrum = trial.plain.decomposed(outcome.sigma)[1]
        coef, intercept = trial.tied(outcome.sharing).coefficients(outcome.sigma, outcome.alpha)
        coef = coef if spectrum.moments.whitening else coef.astype(dtype)
        return LabelSolution(coef, intercept.astype(dtype), spectrum.jitter)

    def _keep_moment_fit(
        self: Any,
        data: Training,
        basis: Basis,
        settings: Settings,
        outcome: Outcome,
        seen: list[dict],
        trial: Any,
        held: Array,
    ) -> Any:
        reach, trust = self._chunked_reach(data.rows, basis, settings, held)
        solution = self._moment_solution(trial, outcome)
        self._keep_story(solution)
        choice = Found(outcome, seen, trial, trial)
        return self._keep(data, basis, settings, choice, solution, reach, trust)
