"""Stores the results of a fit on the estimator: the only module that writes fitted attributes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from leastwise.calibration.calibrators import (
    CalibratedScores,
    fit_calibrator,
    fit_label_calibrator,
    sample_credibility,
    search_calibration,
)
from leastwise.calibration.conformal import HeldRows
from leastwise.calibration.extrapolation import (
    SOME,
    Extrapolation,
    fit_extrapolation,
    fit_neighbourhood,
    further_distances,
    heldout_distances,
)
from leastwise.calibration.label_thresholds import choose_thresholds
from leastwise.fitting.checks import check_threshold
from leastwise.fitting.dataset import Dataset
from leastwise.fitting.direct import Fitted
from leastwise.fitting.new_rows import raw_scores
from leastwise.fitting.residuals import FEW_TASKS, heldout_residuals
from leastwise.fitting.spec import Spec
from leastwise.model_selection.folds import distinct_sample, hashed_folds
from leastwise.model_selection.label_objective import threshold_metric
from leastwise.model_selection.search import table
from leastwise.problem.basis import Basis
from leastwise.problem.kernels import Laplace, Precomputed, Scaled
from leastwise.solvers.evaluator import Candidate, Settings
from leastwise.solvers.influence import TrainingRecord
from leastwise.solvers.label_evaluators import LabelRows
from leastwise.solvers.label_influence import LabelTrainingRecord
from leastwise.solvers.newton import Softmax
from leastwise.solvers.solve_tasks import TaskSolution, unseen_task_scores
from leastwise.utils.arrays import in_precision
from leastwise.utils.warn import warn_user

Array = np.ndarray

#: Folds of the calibrators of held-out rows.
CALIBRATION_FOLDS = 8


def store(model: Any, spec: Spec, data: Dataset, fitted: Fitted) -> Any:
    """Store the model, its calibration, and the held-out rows."""
    vars(model).update(fitted.attributes)
    widened = data.precision not in (None, data.rows.X.dtype)
    fitted = _with_all_points(fitted.in_precision(data.precision) if widened else fitted)
    outcome = fitted.outcome
    inputs = fitted.settings.inputs
    model.inputs_, model.scale_ = inputs, inputs.scale
    model.feature_weights_ = inputs.feature_weights(data.n_features)
    if spec.many_tasks:
        _store_tasks(model, spec, data, fitted)
    if data.targets.kind == "values":
        _store_coefficients(model, spec, data, fitted, outcome)
        _store_values(model, spec, data, fitted)
        return model
    extrapolation, in_domain = heldout_extrapolation(spec, data, fitted.basis, fitted.settings, outcome.F)
    if spec.many_labels:
        _store_labels(model, spec, data, fitted, extrapolation, in_domain)
        return model
    if search_calibration(spec.calibration) != spec.calibration:  # the search used another one
        calibrator = fit_calibrator(spec.calibration, data.rows.sample(outcome.F), signed=data.targets.signed)
        outcome = replace(outcome, calibrator=in_precision(calibrator, outcome.F.dtype))
    elif spec.logistic:
        outcome = replace(
            outcome, calibrator=Softmax(data.rows.class_shares(len(data.classes)).astype(outcome.F.dtype))
        )
    _store_coefficients(model, spec, data, fitted, outcome)
    model.classes_, model.calibrator_ = data.classes, outcome.calibrator
    model.class_prior_ = data.rows.class_shares(len(data.classes))
    model.extrapolation_ = extrapolation
    if spec.cv is not None:
        _store_heldout_classes(model, spec, data, outcome.F, fitted.choice.seen, in_domain)
    return model


def _with_all_points(fitted: Fitted) -> Fitted:
    """The result with the points that chose inputs and kernel before those of the search."""
    before, names = fitted.settings.seen, fitted.settings.chosen
    if not names:
        return fitted
    seen = [*before, *({**point, **names} for point in fitted.choice.seen)]
    return replace(fitted, choice=replace(fitted.choice, seen=seen))


# ------------------------------------------------------------------------- model


def _store_coefficients(model: Any, spec: Spec, data: Dataset, fitted: Fitted, outcome: Candidate) -> None:
    """Kernel, centres and coefficients, and the data for ``influence`` and ``novelty_pvalue``."""
    settings, basis, solution = fitted.settings, fitted.basis, fitted.solution
    kernel = settings.kernel
    model.kernel_, model.sigma_, model.alpha_ = kernel, outcome.sigma, outcome.alpha
    if isinstance(solution, TaskSolution):
        model.form_ = solution.form
        if solution.own is not None:
            model.task_intercept_ = solution.intercept + solution.own
    else:
        model.coef_ = solution.coef
    model.intercept_, model.jitter_ = solution.intercept, solution.jitter
    if isinstance(kernel, Precomputed):
        assert basis.rows is not None
        model.center_indices_ = data.used[basis.rows]
    else:
        rows, city = data.rows, isinstance(kernel.ruler, Laplace)
        model.centers_ = basis.centers
        model.neighbourhood_ = fit_neighbourhood(rows.X, rows.w, rows.group, rows.count, basis.rows, city)
    if spec.machine:
        model.linear_weight_ = np.inf if isinstance(kernel, Scaled) else getattr(kernel, "weight", None)
    if not spec.many_labels and not spec.logistic:
        _store_learned(model, data, fitted, outcome)
    _warn_lifted(spec, settings, solution)


def _store_learned(model: Any, data: Dataset, fitted: Fitted, outcome: Candidate) -> None:
    """Targets, weights and ridge of a model that was solved exactly with a coefficient for every row."""
    settings, basis, n = fitted.settings, fitted.basis, len(data.rows)
    whole = basis.square and settings.norm == "function" and basis.rows is not None and len(basis.rows) == n
    iterated = getattr(fitted.solution, "descent", None) is not None or "residual_" in fitted.attributes
    if not whole or iterated or isinstance(settings.kernel, Precomputed):
        return
    intercept_ratio = float(vars(model).get("intercept_ratio_", 0.0))
    ridge, bias = outcome.alpha * n + fitted.solution.jitter, settings.bias and bool(np.isfinite(intercept_ratio))
    Z = data.rows.targets(settings.n_outputs)
    model.training_record_ = TrainingRecord(data.used, Z, data.rows.w, ridge, bias, intercept_ratio * data.rows.mass)


def _warn_lifted(spec: Spec, settings: Settings, solution: Any) -> None:
    """Warn if the kernel matrix has negative eigenvalues."""
    if solution.lifted and settings.kernel.definite is None:
        instead = "" if spec.machine or spec.logistic else "; with norm='coefficients' this is not needed"
        warn_user(
            f"The kernel matrix is not positive semi-definite: {solution.jitter:.2g} was added to its diagonal "
            f"(jitter_). Held-out scores are therefore approximate{instead}."
        )


def heldout_extrapolation(
    spec: Spec, data: Dataset, basis: Basis, settings: Settings, F: Array
) -> tuple[Extrapolation | None, Array | None]:
    """The extrapolation radius, and the domain weights of held-out rows; None if scores are used everywhere.

    Distances between rows and centres are computed in chunks, from the rows that have held-out scores F.
    """
    kernel, rows = settings.kernel, data.rows
    held = np.flatnonzero(~np.isnan(F[:, 0])) if len(F) else np.arange(len(rows) if spec.logistic else 0)
    trusted = spec.extrapolate or not kernel.distance or (spec.calibration is None and not spec.logistic)
    if trusted or not len(held):
        return None, None
    nearest = heldout_distances(kernel, rows.X, basis, rows.place, held)
    cell = np.unique(np.stack([rows.copy, rows.place]), axis=1, return_inverse=True)[1].reshape(-1)
    some = held[distinct_sample(replace(rows, copy=cell).part(held), SOME, "extrapolation")]
    further = further_distances(kernel, rows.X, basis, rows.place, cell, some)
    extrapolation = fit_extrapolation(nearest, further, rows.copy)
    return extrapolation, None if extrapolation is None else extrapolation.in_domain(nearest)


# ------------------------------------------------------------------ held-out rows


def scores_of_all(model: Any, data: Dataset, F: Array, in_domain: Array | None = None) -> tuple[Array, Array]:
    """Held-out scores and domain weights of all rows; rows of weight zero, not trained on, are predicted."""
    n = data.X.shape[0]
    scores, trusted = np.full((n, F.shape[1]), np.nan, dtype=F.dtype), np.ones(n, dtype=F.dtype)
    scores[data.used] = F
    trusted[data.used] = 1 if in_domain is None else in_domain
    unused = np.setdiff1d(np.arange(n), data.used)
    if len(unused):
        task = None if data.task is None else data.task[unused]
        scores[unused], trusted[unused] = raw_scores(model, data.X[unused], task)
    return scores, trusted


def _calibrate_by_other_folds(
    spec: Spec, data: Dataset, start: Any, F: Array, in_domain: Array, P: Array, D: Array
) -> None:
    """Replace P and D of held-out rows by those of calibrators that have not seen the rows.

    A calibrator that is fitted to all held-out scores F has seen those of every row: with few rows, or nearly
    separable classes, its log-loss on these rows is too small. So the rows are divided into folds, and the scores of
    each fold are calibrated by the other folds. The fits start from ``start``, the calibrator of all rows, which
    predicts new rows. Nothing is replaced if there is nothing to fit, or if there are too few rows for folds.
    """
    rows, held = data.rows, F[data.used]
    fold = hashed_folds(rows, CALIBRATION_FOLDS, isinstance(data.kernel, Precomputed))
    if spec.calibration is None or spec.logistic or fold is None:
        return
    for k in range(CALIBRATION_FOLDS):
        others, place = np.flatnonzero((fold != k) & ~np.isnan(held[:, 0])), data.used[fold == k]
        if len(others):
            calibrator = _calibrator_of_part(spec, data, rows.part(others), held[others], start)
            P[place], D[place] = (f(F[place], in_domain[place]) for f in (calibrator.proba, calibrator.decision))


def _calibrator_of_part(spec: Spec, data: Dataset, part: Any, F: Array, start: Any) -> Any:
    """The calibrator of some of the rows; class shares are those of all rows."""
    rows = data.rows
    if isinstance(rows, LabelRows):
        counts = rows.class_counts() if rows.shares is None else rows.shares
        return fit_label_calibrator(spec.calibration, replace(part.label_sample(F), counts=counts), start)
    sample = replace(part.sample(F), prior=rows.class_shares(F.shape[1]).astype(F.dtype))
    return fit_calibrator(spec.calibration, sample, start, data.targets.signed)


def heldout_rows(data: Dataset, codes: Array, w: Array, in_domain: Array) -> HeldRows:
    """True classes, weights, groups and tasks of all rows, from those of the rows with a weight above 0."""
    rows, n = data.rows, data.X.shape[0]
    every, weight = np.full((n, *codes.shape[1:]), -1), np.zeros((n, *codes.shape[1:]))
    every[data.used], weight[data.used] = codes, np.where(codes >= 0, w, 0)
    group = count = None
    if rows.group is not None:
        group = np.full(n, -1)
        group[data.used] = rows.group
    elif rows.count is not None:
        count = np.ones(n)
        count[data.used] = rows.count
    return HeldRows(every, weight, in_domain, group, data.task, count)


def _store_heldout_classes(
    model: Any, spec: Spec, data: Dataset, F: Array, seen: list[dict], in_domain: Array | None
) -> None:
    F, in_domain = scores_of_all(model, data, F, in_domain)
    if data.task is None:
        scored = CalibratedScores(F, in_domain, model.calibrator_)
    else:
        scored = CalibratedScores(F, in_domain, model.calibrator_, data.task < 0, model.unseen_task_calibrator_)
    P, D = scored.proba(), scored.table()
    _calibrate_by_other_folds(spec, data, model.calibrator_, F, in_domain, P, D)
    model.heldout_scores_ = F
    model.heldout_decision_, model.heldout_proba_ = D[:, 1] - D[:, 0] if D.shape[1] == 2 else D, P
    model.cv_results_ = table(seen)
    model.heldout_rows_ = heldout_rows(data, data.rows.y, data.rows.w, in_domain)


# -------------------------------------------------------------------------- tasks


def _store_tasks(model: Any, spec: Spec, data: Dataset, fitted: Fitted) -> None:
    """Ids of the tasks, their coupling, and the calibration of unseen tasks."""
    choice, best = fitted.choice, fitted.outcome
    assert data.tasks is not None
    model.task_index_, model.tasks_ = data.tasks, data.tasks.as_array()
    if spec.logistic:
        model.sharing_, model.unseen_task_calibrator_ = choice.evaluator.coupling_matrix.sharing, None
        return
    coupling = choice.coupling
    sharing = choice.evaluator.coupling_matrix.sharing if best.sharing is None else best.sharing
    model.sharing_, model.relation_, model.coupling_matrix_ = sharing, coupling, coupling.at(sharing)
    if spec.machine:
        model.intercept_ratio_ = choice.searched.intercept_ratio
    if data.targets.kind == "classes":
        whole = replace(best, alpha=fitted.chosen)
        model.unseen_task_calibrator_ = _unseen_calibrator(model, spec, data, choice.searched, whole, fitted.solution)


def _unseen_calibrator(model: Any, spec: Spec, data: Dataset, evaluator: Any, best: Candidate, solution: Any) -> Any:
    """The calibrator of unseen tasks, from tasks that were held out completely."""
    assert data.tasks is not None
    asked = spec.unknown_task == "shared" or np.any(data.task < 0)  # type: ignore[operator]
    if not asked or spec.cv is None or spec.calibration is None or len(data.tasks) < FEW_TASKS:
        return None
    alpha, signed = best.alpha * len(data.rows) / len(evaluator.rows), data.targets.signed
    F = unseen_task_scores(evaluator, best.sigma, alpha, solution.jitter if solution.lifted else 0.0)
    F = F.astype(best.F.dtype)
    if len(evaluator.rows) == len(data.rows):
        model.unseen_task_scores_ = np.full((data.X.shape[0], F.shape[1]), np.nan, dtype=F.dtype)
        model.unseen_task_scores_[data.used] = F
    # Each task counts once in the calibration of unseen tasks.
    sample = replace(evaluator.rows.sample(F), size=len(np.unique(evaluator.rows.task)))
    # The search used rows, not whole tasks held out: the tasks determine the sharpness, the rows the credibility.
    credibility = sample_credibility(spec.calibration, data.rows.sample(best.F), signed=signed)
    calibrator = fit_calibrator(spec.calibration, sample, signed=signed, credibility=credibility)
    return in_precision(calibrator, F.dtype)


# ------------------------------------------------------------------------- values


def _store_values(model: Any, spec: Spec, data: Dataset, fitted: Fitted) -> None:
    targets = data.targets
    model.unit_, model.offset_, model.flat_ = targets.unit, targets.offset, targets.flat
    if spec.cv is not None:
        model.heldout_prediction_ = model._shown(scores_of_all(model, data, fitted.outcome.F)[0])
        model.cv_results_ = table(fitted.choice.seen)
        model.residuals_ = heldout_residuals(model, spec, data, fitted)


# ------------------------------------------------------------------------- labels


def _store_labels(
    model: Any,
    spec: Spec,
    data: Dataset,
    fitted: Fitted,
    extrapolation: Extrapolation | None,
    in_domain: Array | None,
) -> None:
    choice, outcome, rows = fitted.choice, fitted.outcome, data.rows
    labels = data.targets.labels
    assert isinstance(rows, LabelRows)
    if spec.cv is not None:
        sample = rows.label_sample(outcome.F)
        calibrator = fit_label_calibrator(spec.calibration, sample, outcome.calibrator)
        calibrator = in_precision(calibrator, outcome.F.dtype)
        outcome = replace(outcome, calibrator=calibrator)
    _store_coefficients(model, spec, data, fitted, outcome)
    model.label_index_, model.labels_ = labels, labels.named_array()
    model.classes_ = labels.classes[0] if labels.form == "flat" else labels.stacked()
    model.calibrator_, model.extrapolation_ = outcome.calibrator, extrapolation
    priors = model._by_label(model.calibrator_.shares[None].astype(float))
    model.class_prior_ = [p[0] for p in priors] if isinstance(priors, list) else priors[0]
    model.constant_labels_ = [labels.names[t] for t in labels.constant]
    model.sharing_, model.similarity_ = outcome.sharing, choice.coupling.similarity
    model.threshold_ = 0.5 if isinstance(spec.threshold, str) else check_threshold(spec.threshold, labels)
    if spec.cv is not None:
        _store_heldout_labels(model, spec, data, rows, outcome.F, choice.seen, in_domain)
    _store_learned_labels(model, data, fitted, rows)


def _store_heldout_labels(
    model: Any, spec: Spec, data: Dataset, rows: LabelRows, F: Array, seen: list[dict], in_domain: Array | None
) -> None:
    """The record of held-out rows, and the thresholds chosen on them."""
    known = ~np.isnan(F[:, 0])
    F, in_domain = scores_of_all(model, data, F, in_domain)
    P, D = model.calibrator_.proba(F, in_domain), model.calibrator_.decision(F, in_domain)
    _calibrate_by_other_folds(spec, data, model.calibrator_, F, in_domain, P, D)
    model.heldout_scores_ = F
    model.heldout_proba_, model.heldout_decision_ = model._by_label(P), model._by_label(D, difference=True)
    model.cv_results_ = table(seen)
    model.heldout_rows_ = heldout_rows(data, rows.y, rows.W, in_domain)
    if isinstance(spec.threshold, str):
        metric = threshold_metric(spec.threshold, spec.scorer)
        some = P[data.used][known]
        model.threshold_ = choose_thresholds(metric, some[:, 1::2], rows.y[known], rows.W[known])


def _store_learned_labels(model: Any, data: Dataset, fitted: Fitted, rows: LabelRows) -> None:
    settings, basis, choice, n = fitted.settings, fitted.basis, fitted.choice, len(rows)
    whole = basis.square and settings.norm == "function" and basis.rows is not None and len(basis.rows) == n
    if whole and not isinstance(settings.kernel, Precomputed):
        codes = rows.y.astype(np.min_scalar_type(-max(2, int(rows.y.max()))))
        coupled = tuple(choice.searched.with_sharing(choice.outcome.sharing).coupled_labels)
        ridge = choice.outcome.alpha * n
        jitter = float(fitted.solution.jitter)
        model.training_record_ = LabelTrainingRecord(
            data.used, codes, rows.w, rows.entries, ridge, jitter, settings.bias, coupled
        )
