"""``influence``: contributions of training rows to predictions, and the effect of removing them.

The functions are used as methods of estimators that are linear in their targets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from leastwise.fitting.checks import check_count
from leastwise.fitting.new_rows import read_numpy_rows, read_task_rows
from leastwise.problem.basis import row_chunks
from leastwise.solvers.influence import Influence, Parts, Smoother, TrainingRecord, decompose_scores
from leastwise.solvers.label_influence import (
    EntrySmoother,
    LabelInfluence,
    LabelParts,
    LabelTrainingRecord,
    make_smoother,
)
from leastwise.solvers.solve_tasks import DualForm
from leastwise.utils.arrays import bring
from leastwise.utils.resources import available_memory, human

if TYPE_CHECKING:
    from leastwise.estimators.base import KernelEstimator
    from leastwise.estimators.classifiers import TaskClassifier
    from leastwise.estimators.multi_label import MultiLabelLSPC
    from leastwise.estimators.regressors import TaskRegressor

Array = np.ndarray


def influence(self: KernelEstimator, X: Any, top: int | None = 10) -> Influence:
    """Contribution of training rows to predictions, and the effect of removing them.

    Parameters
    ----------
    %(X.explained)s
    %(top)s

    Returns
    -------
    Influence
        ``contribution``: additive parts of the raw scores (of predictions, for regression), one for each training
        row. ``effect``: the score minus that of a model without the row, at the same ridge on the sum of the losses
        (sigma, sharing and similarities do not change, and exact copies of the row are kept). Both are exact.

    Notes
    -----
    The method explains raw scores, as returned by ``scores``, before calibration. Every training row must be a
    centre, with ``norm="function"``. An inverse of all n rows is computed at every call, so pass many rows at once.
    """
    check_is_fitted(self)
    known, k = _learned(self), check_count("top", top)
    return _influence(self, known, read_numpy_rows(self, X), None, k)


def task_influence(
    self: TaskClassifier | TaskRegressor, X: Any, top: int | None = 10, *, tasks: Any = None
) -> Influence:
    """Contribution of training rows and tasks to predictions; see :meth:`leastwise.LSPC.influence`.

    Parameters
    ----------
    %(X.explained_task)s
    %(top)s
    %(tasks.new)s

    Returns
    -------
    Influence
        It also has ``by_task``, ``own`` and ``others``: how much of each score comes from the rows of each task, of
        the same task, and of all other tasks.
    """
    check_is_fitted(self)
    X, tasks, known, k = bring(X), bring(tasks), _learned(self), check_count("top", top)
    rows, task = read_task_rows(self, X, tasks)
    return _influence(self, known, rows, task, k)


def _influence(
    model: KernelEstimator, known: TrainingRecord, X: Any, task: Array | None, top: int | None
) -> Influence:
    form, n = vars(model).get("form_"), len(known.w)
    own = form.task if isinstance(form, DualForm) else None
    smoother = Smoother(
        known, _kernel(model, model.centers_, own), own, 0 if form is None else len(form.coupling_matrix.own)
    )
    parts = _decompose_scores(model, smoother, X, task, n if top is None else min(top, n))
    place = parts.place
    outputs, target = _named(model, known.Z, place)
    result = Influence(known.index[place], target, parts.contribution, parts.effect, parts.score, outputs)
    if own is None:
        return result
    given = {"by_task": parts.by_task, "tasks": model.task_index_.ids, "row_task": own[place], "task": task}
    return Influence(**{**vars(result), **given})


def _learned(model: KernelEstimator) -> TrainingRecord:
    """Targets and weights of the training rows; an error if the model has no coefficient for each of them."""
    known = vars(model).get("training_record_")
    if known is None:
        raise ValueError(
            "influence() needs a model that was solved exactly with a coefficient for every training row. This "
            "excludes few centres (set n_centers=None), centers, basis='class', norm='coefficients', prune=, "
            "kernel='precomputed', "
            "solver='arrow', 'krylov' and 'sgd', and a linear kernel of many rows. Fit with all rows as "
            "centres and norm='function' (for a linear kernel of many tasks, solver='dual'). A model file "
            "saved with keep='predict' does not contain the training targets: use keep='all'."
        )
    _check_room(len(known.w), "rows")
    return known


def _check_room(size: int, what: str) -> None:
    need, have = 4 * 8 * size**2, available_memory()
    if need > have:
        raise MemoryError(
            f"influence() needs about {human(need)} for an inverse of {size} {what}; {human(have)} are available. "
            "(Set LEASTWISE_MEMORY to change the limit.)"
        )


def _kernel(model: KernelEstimator, X: Any, task: Array | None) -> Array:
    """Kernel between some rows and the training rows, in double precision."""
    K, form = model.kernel_(X, model.centers_, model.sigma_).astype(float), vars(model).get("form_")
    return K if task is None or form is None else form.coupling_matrix.couple(K, task, form.task)


def _decompose_scores(model: KernelEstimator, smoother: Smoother, X: Any, task: Array | None, top: int) -> Parts:
    n, c = smoother.record.Z.shape
    unit, offset = vars(model).get("unit_", np.ones(c)), vars(model).get("offset_", np.zeros(c))
    found = []
    for part in row_chunks(X.shape[0], 4 * n * c, 8):
        t = None if task is None else task[part]
        S = smoother.weights(_kernel(model, X[part], t), t)
        found.append(decompose_scores(smoother, S, unit, offset, top))
    if len(found) == 1:
        return found[0]
    columns = {name: [getattr(p, name) for p in found] for name in Parts.__dataclass_fields__}
    joined: dict[str, Any] = {k: None if a[0] is None else np.concatenate(a) for k, a in columns.items()}
    return Parts(**joined)


def _named(model: KernelEstimator, Z: Array, place: Array) -> tuple[Any, Array]:
    """Names of the outputs, and the original targets of some training rows."""
    classes = vars(model).get("classes_")
    if classes is not None:
        return classes.tolist(), np.asarray(classes)[Z.argmax(axis=1)][place]
    values = Z * model.unit_ + model.offset_
    return list(range(Z.shape[1])), values[place][:, :, 0] if model.flat_ else values[place]


# ------------------------------------------------------------------------- labels


def label_influence(self: MultiLabelLSPC, X: Any, top: int | None = 10, *, labels: Any = None) -> LabelInfluence:
    """Contribution of training rows and labels to predictions; see :meth:`leastwise.LSPC.influence`.

    Parameters
    ----------
    %(X.explained)s
    %(top)s
        Only the scores of ``labels`` count.
    labels : name or list of names, default=None
        Labels to explain, by their names in ``labels_``. All by default.

    Returns
    -------
    LabelInfluence
        It also has ``by_label``, ``own`` and ``others``: how much of each score comes from the known values of each
        label, of the label itself, and of all other labels; and ``own_contribution``, the same for each training row.

    Notes
    -----
    A row is removed with all of its labels, at the same ridge on the sum of the losses, sigma, sharing and
    similarities. Scores are those of the exact solution: if the model was solved by conjugate gradients, they differ
    from ``scores`` by its residual, see ``residual_``. If labels are unknown, an inverse over all known labels of all
    rows is computed (for each set of coupled labels), which is feasible for some thousands of them.
    """
    check_is_fitted(self)
    places, k, known = _label_places(self, labels), check_count("top", top), _label_learned(self)
    X = read_numpy_rows(self, X)
    starts = self.label_index_.starts
    K, Z = self.kernel_(self.centers_, self.centers_, self.sigma_).astype(float), known.targets(starts)
    smoothers = [make_smoother(known, coupled, K, Z) for coupled in known.coupled_labels]
    for smoother in smoothers:
        if isinstance(smoother, EntrySmoother):
            _check_room(max(len(part.row) for part in smoother.sets), "known labels of rows")
    columns = np.concatenate([np.arange(starts[t], starts[t + 1]) for t in places])
    found = []
    for part in row_chunks(X.shape[0], 6 * len(K) * Z.shape[1], 8):
        k_new = self.kernel_(X[part], self.centers_, self.sigma_).astype(float)
        whole = _joined(smoothers, k_new, places, columns, Z.shape[1])
        found.append(_largest(whole, len(K) if k is None else min(k, len(K))))
    place, contribution, own, effect, score, by_label = (
        np.concatenate(values) for values in zip(*found, strict=True)
    )
    index = self.label_index_
    output_label = np.repeat(places, np.diff(index.starts)[places])
    target = index.known(known.codes.astype(int))[place][:, :, output_label]
    outputs = [c for t in places for c in index.classes[t].tolist()]
    more: dict[str, Any] = {"by_label": by_label, "labels": list(index.names), "output_label": output_label}
    given = (known.index[place], target, contribution, effect, score, outputs)
    return LabelInfluence(*given, own_contribution=own, **more)


def _label_places(model: MultiLabelLSPC, labels: Any) -> Array:
    """Positions of the requested labels."""
    names = list(model.label_index_.names)
    if labels is None:
        return np.arange(len(names))
    alone = isinstance(labels, str) or not np.iterable(labels) or (isinstance(labels, tuple) and labels in names)
    requested = [labels] if alone else list(dict.fromkeys(labels))
    lost = [name for name in requested if name not in names]
    if lost or not requested:
        raise ValueError(f"labels={labels!r} must be names of labels: use one or several of {names[:20]}.")
    return np.array([names.index(name) for name in requested])


def _label_learned(model: MultiLabelLSPC) -> LabelTrainingRecord:
    known = vars(model).get("training_record_")
    if known is None:
        raise ValueError(
            "influence() needs a coefficient for every training row, which models with n_centers, centers, "
            "norm='coefficients' or kernel='precomputed' do not have. Fit with all rows as centres and "
            "norm='function'."
        )
    _check_room(len(known.w), "rows")
    return known


def _joined(smoothers: list, K: Array, places: Array, columns: Array, n_outputs: int) -> LabelParts:
    """Contributions to the scores of some labels: (m, n, outputs) by row, and (m, T, outputs) by label."""
    m, n = K.shape
    n_labels = max(int(s.coupled.family.labels.max()) for s in smoothers) + 1
    column = np.full(n_outputs, -1)
    column[columns] = np.arange(len(columns))
    C, own, E = (np.zeros((m, n, len(columns))) for _ in range(3))
    by_label = np.zeros((m, n_labels, len(columns)))
    for smoother in smoothers:
        family = smoother.coupled.family
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
    """The rows with the largest effects: contributions, those of the label itself, effects; and sums."""
    E = parts.effect
    size = np.where(np.isnan(E), np.inf, np.abs(E)).max(axis=2)
    place = np.argsort(-size, axis=1, kind="stable")[:, :top]
    C, own, E = (np.take_along_axis(A, place[:, :, None], axis=1) for A in (parts.contribution, parts.own, E))
    return place, C, own, E, parts.contribution.sum(axis=1), parts.by_label
