"""Predictions explained by the training rows that they come from."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from leastwise.estimators._checks import check_count
from leastwise.estimators._model import Training
from leastwise.estimators._tuned import TunedModel
from leastwise.problem.basis import Basis, row_chunks
from leastwise.problem.kernels import Precomputed
from leastwise.solvers.evaluator import Outcome, Settings
from leastwise.solvers.influence import Influence, Learned, Parts, Smoother, take_apart
from leastwise.solvers.solve_tasks import DualForm
from leastwise.utils.arrays import bring
from leastwise.utils.memory import available_memory, human

Array = np.ndarray


class Explained(TunedModel):
    """Mixin for models with a coefficient for every training row, which are linear in the targets."""

    def _store(self, data: Training, basis: Basis, settings: Settings, outcome: Outcome, solution: Any) -> None:
        super()._store(data, basis, settings, outcome, solution)
        n, spread = len(data.rows), float(vars(self).get("spread_", 0.0))
        whole = basis.square and settings.norm == "function" and basis.rows is not None and len(basis.rows) == n
        iterated = getattr(solution, "descent", None) is not None or "residual_" in vars(self)
        if whole and not iterated and not isinstance(settings.kernel, Precomputed):
            ridge, bias = outcome.alpha * n + solution.jitter, settings.bias and bool(np.isfinite(spread))
            Z = data.rows.targets(settings.n_outputs)
            self.learned_ = Learned(data.used, Z, data.rows.w, ridge, bias, spread * data.rows.mass)

    def influence(self, X: Any, top: int | None = 10) -> Influence:
        """The training rows that predictions come from: what each contributes, and what would be without it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n_features)
            Rows to be predicted.
        top : int or None, default=10
            So many training rows for each, those with the largest effect on any score; None for all.

        Returns
        -------
        Influence
            ``contribution``: parts of the raw scores (of predictions, for quantities), which sum to them over all
            training rows. ``effect``: the score less that of a model without the row, at the same ridge on the sum
            of the losses (sigma, sharing and similarities stay, and exact copies of the row stay in). Both are exact.

        Notes
        -----
        Raw scores are explained, what ``scores`` gives; the calibration comes after. Every training row must be a
        centre, with ``norm="function"``. An inverse of all n rows is computed at every call: ask for many rows at
        once.
        """
        return self._influence(X, None, top)

    def _influence(self, X: Any, tasks: Any, top: int | None) -> Influence:
        check_is_fitted(self)
        X, tasks = bring(X), bring(tasks)
        known = self._learned()
        k = check_count("top", top)
        X, task = self._explained_rows(X, tasks)
        form = vars(self).get("form_")
        own = form.task if isinstance(form, DualForm) else None
        n_tasks = 0 if form is None else len(form.tie.own)
        smoother = Smoother(known, self._between(self.centers_, own), own, n_tasks)
        parts = self._take_apart(smoother, X, task, len(known.w) if k is None else min(k, len(known.w)))
        place = parts.place
        outputs, target = self._named(known.Z, place)
        result = Influence(known.index[place], target, parts.contribution, parts.effect, parts.score, outputs)
        if own is None:
            return result
        given = {"by_task": parts.by_task, "tasks": self.task_index_.ids, "row_task": own[place], "task": task}
        return Influence(**{**vars(result), **given})

    def _learned(self) -> Learned:
        """What is known of the training rows; an error where the model has no coefficient for each of them."""
        known = vars(self).get("learned_")
        if known is None:
            raise ValueError(
                "influence() needs a model that was solved exactly with a coefficient for every training row, which "
                "one with n_centers, centers, basis='class', norm='coefficients', prune=, kernel='precomputed', "
                "solver='arrow', 'krylov' or 'sgd', or a linear kernel of many rows has not. Fit with all rows as "
                "centres and norm='function' (for a linear kernel of many tasks, solver='dual'). A file that was "
                "saved with keep='predict' does not hold what it needs either: use keep='all'."
            )
        need, have = 4 * 8 * len(known.w) ** 2, available_memory()
        if need > have:
            raise MemoryError(
                f"influence() needs about {human(need)} for an inverse of {len(known.w)} rows; {human(have)} are "
                "available. (Set LEASTWISE_MEMORY to change the limit.)"
            )
        return known

    def _explained_rows(self, X: Any, tasks: Any) -> tuple[Any, Array | None]:
        """Rows as an array, and the codes of their tasks, if there are any."""
        checks = {"accept_sparse": "csr", "accept_large_sparse": False}
        return validate_data(self, X, reset=False, dtype=[self.intercept_.dtype], **checks), None

    def _between(self, X: Any, task: Array | None) -> Array:
        """Kernel between some rows and the training rows, in double precision."""
        K, form = self.kernel_(X, self.centers_, self.sigma_).astype(float), vars(self).get("form_")
        return K if task is None or form is None else form.tie.couple(K, task, form.task)

    def _take_apart(self, smoother: Smoother, X: Any, task: Array | None, top: int) -> Parts:
        n, c = smoother.learned.Z.shape
        unit, offset = vars(self).get("unit_", np.ones(c)), vars(self).get("offset_", np.zeros(c))
        found = []
        for part in row_chunks(X.shape[0], 4 * n * c, 8):
            t = None if task is None else task[part]
            S = smoother.weights(self._between(X[part], t), t)
            found.append(take_apart(smoother, S, unit, offset, top))
        if len(found) == 1:
            return found[0]
        columns = {name: [getattr(p, name) for p in found] for name in Parts.__dataclass_fields__}
        joined: dict[str, Any] = {k: None if a[0] is None else np.concatenate(a) for k, a in columns.items()}
        return Parts(**joined)

    def _named(self, Z: Array, place: Array) -> tuple[Any, Array]:
        """Names of the outputs, and the targets of some training rows as they were given."""
        classes = vars(self).get("classes_")
        if classes is not None:
            return classes.tolist(), np.asarray(classes)[Z.argmax(axis=1)][place]
        values = Z * vars(self)["unit_"] + vars(self)["offset_"]
        return list(range(Z.shape[1])), values[place][:, :, 0] if vars(self)["flat_"] else values[place]

    centers_: Any
    learned_: Learned
    task_index_: Any


class TaskExplained(Explained):
    """Mixin for models of many tasks."""

    def influence(self, X: Any, top: int | None = 10, *, tasks: Any = None) -> Influence:
        """The training rows, and tasks, that predictions come from; see :meth:`leastwise.LSPC.influence`.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (m, n_features)
            Rows to be predicted, with the task column if there is one.
        top : int or None, default=10
            So many training rows for each, those with the largest effect on any score; None for all.
        tasks : array-like of shape (m,) or a single id, optional
            The tasks of the rows, where X does not hold them.

        Returns
        -------
        Influence
            Also ``by_task``, ``own`` and ``others``: how much of each score comes from the rows of each task, of the
            row's own, and of all others.
        """
        return self._influence(X, tasks, top)

    def _explained_rows(self, X: Any, tasks: Any) -> tuple[Any, Array | None]:
        rows, task, _ = self._met_rows(X, tasks)
        return rows, task
