"""Predictions of many labels explained by the training rows, and the labels, that they come from."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from leastwise.estimators._checks import check_count
from leastwise.estimators._labels import LabelClassifier
from leastwise.estimators._model import Training
from leastwise.estimators._tuned import Found
from leastwise.problem.basis import Basis, row_chunks
from leastwise.problem.kernels import Precomputed
from leastwise.solvers.evaluator import Settings
from leastwise.solvers.label_evaluators import LabelRows
from leastwise.solvers.label_influence import EntrySmoother, LabelInfluence, LabelLearned, LabelParts, make_smoother
from leastwise.utils.arrays import bring
from leastwise.utils.memory import available_memory, human

Array = np.ndarray


class LabelExplained(LabelClassifier):
    """Mixin for models of many labels."""

    def _keep(
        self, data: Training, basis: Basis, settings: Settings, choice: Found, solution: Any, reach: Any, trust: Any
    ) -> Any:
        super()._keep(data, basis, settings, choice, solution, reach, trust)
        rows, n = data.rows, len(data.rows)
        assert isinstance(rows, LabelRows)
        whole = basis.square and settings.norm == "function" and basis.rows is not None and len(basis.rows) == n
        if whole and not isinstance(settings.kernel, Precomputed):
            codes = rows.y.astype(np.min_scalar_type(-max(2, int(rows.y.max()))))
            ridge, ties = choice.outcome.alpha * n, tuple(choice.searched.tied(choice.outcome.sharing).ties)
            known = (data.used, codes, rows.w, rows.entries, ridge, float(solution.jitter), settings.bias, ties)
            self.learned_ = LabelLearned(*known)
        return self

    def influence(self, X: Any, top: int | None = 10, *, labels: Any = None) -> LabelInfluence:
        """The training rows, and labels, that predictions come from; see :meth:`leastwise.LSPC.influence`.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (m, n_features)
            Rows to be predicted.
        top : int or None, default=10
            So many training rows for each, those with the largest effect on any score of these labels; None for all.
        labels : name or list of names, optional
            The labels that are to be explained, by their names in ``labels_``. All by default.

        Returns
        -------
        LabelInfluence
            Also ``by_label``, ``own`` and ``others``: how much of each score comes from what was known of each label,
            of the label itself, and of all others; and ``own_contribution``, the same for each training row.

        Notes
        -----
        A row is left out with all of its labels, at the same ridge on the sum of the losses, sigma, sharing and
        similarities. Scores are those of an exact solution: where the model was solved by conjugate gradients they
        differ from ``scores`` by what these left, see ``residual_``. Where labels are not known, an inverse of all
        known labels of all rows is computed (set by set of labels that are tied), which is for some thousands of
        them.
        """
        check_is_fitted(self)
        places, k = self._label_places(labels), check_count("top", top)
        known = self._learned_labels()
        checks = {"accept_sparse": "csr", "accept_large_sparse": False}
        X = validate_data(self, bring(X), reset=False, dtype=[self.intercept_.dtype], **checks)
        starts = self.label_index_.starts
        K, Z = self.kernel_(self.centers_, self.centers_, self.sigma_).astype(float), known.targets(starts)
        smoothers = [make_smoother(known, tie, K, Z) for tie in known.ties]
        for smoother in smoothers:
            self._check_entries(smoother)
        columns = np.concatenate([np.arange(starts[t], starts[t + 1]) for t in places])
        found = []
        for part in row_chunks(X.shape[0], 6 * len(K) * Z.shape[1], 8):
            k_new = self.kernel_(X[part], self.centers_, self.sigma_).astype(float)
            whole = _joined(smoothers, k_new, places, columns, Z.shape[1])
            found.append(_largest(whole, len(K) if k is None else min(k, len(K))))
        return self._told(known, places, [np.concatenate(values) for values in zip(*found, strict=True)])

    def _told(self, known: LabelLearned, places: Array, values: list[Array]) -> LabelInfluence:
        place, contribution, own, effect, score, by_label = values
        index = self.label_index_
        output_label = np.repeat(places, np.diff(index.starts)[places])
        target = index.known(known.codes.astype(int))[place][:, :, output_label]
        outputs = [c for t in places for c in index.classes[t].tolist()]
        more: dict[str, Any] = {"by_label": by_label, "labels": list(index.names), "output_label": output_label}
        given = (known.index[place], target, contribution, effect, score, outputs)
        return LabelInfluence(*given, own_contribution=own, **more)

    def _label_places(self, labels: Any) -> Array:
        """Places of the labels that were asked for."""
        names = list(self.label_index_.names)
        if labels is None:
            return np.arange(len(names))
        alone = isinstance(labels, str) or not np.iterable(labels) or (isinstance(labels, tuple) and labels in names)
        asked = [labels] if alone else list(dict.fromkeys(labels))
        lost = [name for name in asked if name not in names]
        if lost or not asked:
            raise ValueError(f"labels={labels!r}: give names of labels. Known are {names[:20]}.")
        return np.array([names.index(name) for name in asked])

    def _learned_labels(self) -> LabelLearned:
        known = vars(self).get("learned_")
        if known is None:
            raise ValueError(
                "influence() needs a coefficient for every training row, which a model with n_centers, centers, "
                "norm='coefficients' or kernel='precomputed' has not. Fit with all rows as centres and "
                "norm='function'."
            )
        _check_room(len(known.w), "rows")
        return known

    def _check_entries(self, smoother: Any) -> None:
        if isinstance(smoother, EntrySmoother):
            _check_room(max(len(part.row) for part in smoother.sets), "known labels of rows")

    centers_: Any
    learned_: LabelLearned


def _check_room(size: int, what: str) -> None:
    need, have = 4 * 8 * size**2, available_memory()
    if need > have:
        raise MemoryError(
            f"influence() needs about {human(need)} for an inverse of {size} {what}; {human(have)} are available. "
            "(Set LEASTWISE_MEMORY to change the limit.)"
        )


def _joined(smoothers: list, K: Array, places: Array, columns: Array, n_outputs: int) -> LabelParts:
    """Scores of some labels taken apart, families together: (m, n, outputs), and (m, T, outputs) by label."""
    m, n = K.shape
    n_labels = max(int(s.tie.family.labels.max()) for s in smoothers) + 1
    column = np.full(n_outputs, -1)
    column[columns] = np.arange(len(columns))
    C, own, E = (np.zeros((m, n, len(columns))) for _ in range(3))
    by_label = np.zeros((m, n_labels, len(columns)))
    for smoother in smoothers:
        family = smoother.tie.family
        mine = np.flatnonzero(np.isin(family.labels, places))
        if not len(mine):
            continue
        parts = smoother.parts(K, mine)
        where = column[family.columns[:, mine]].ravel()
        for whole, part in ((C, parts.contribution), (own, parts.own), (E, parts.effect)):
            whole[:, :, where] = part.reshape(m, n, -1)
        by_label[:, family.labels[:, None], where] = parts.by_label.reshape(m, len(family.labels), -1)
    return LabelParts(C, own, E, by_label)


def _largest(parts: LabelParts, top: int) -> tuple[Array, ...]:
    """The rows of the largest effects, what they contribute, and of that by the label itself; effects; sums."""
    E = parts.effect
    size = np.where(np.isnan(E), np.inf, np.abs(E)).max(axis=2)
    place = np.argsort(-size, axis=1, kind="stable")[:, :top]
    C, own, E = (np.take_along_axis(A, place[:, :, None], axis=1) for A in (parts.contribution, parts.own, E))
    return place, C, own, E, parts.contribution.sum(axis=1), parts.by_label
