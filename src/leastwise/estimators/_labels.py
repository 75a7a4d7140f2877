"""What models of many labels have in common: labels in and out, held-out rows, decisions."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from sklearn.base import MultiOutputMixin
from sklearn.model_selection import GroupKFold
from sklearn.utils.validation import check_is_fitted, validate_data

from leastwise.calibration.label_calibrators import fit_label_calibrator
from leastwise.calibration.label_thresholds import choose_thresholds, decide
from leastwise.calibration.prior import Shift, read_label_prior
from leastwise.estimators._base import container_of, logarithm
from leastwise.estimators._calibrated import CalibratedClassifier
from leastwise.estimators._label_checks import check_threshold
from leastwise.estimators._model import Targets, Training, check_folds_exist, row_index
from leastwise.estimators._sets import LabelSets
from leastwise.estimators._tuned import Found, TunedModel
from leastwise.metrics.labels import subset_of
from leastwise.model_selection.label_folds import label_fold_labels
from leastwise.model_selection.label_scoring import LabelScorer, resolve_label_scoring
from leastwise.model_selection.objective import LabelJudge
from leastwise.model_selection.search import table
from leastwise.model_selection.subsample import input_keys
from leastwise.problem.basis import Basis
from leastwise.problem.labels import Labels, encode_known, encode_labels
from leastwise.problem.weights import entry_weights, label_weights
from leastwise.solvers.evaluator import Rows, Settings
from leastwise.solvers.label_evaluators import LabelRows
from leastwise.sources.dask import by_partition
from leastwise.utils.arrays import at_home, back_like, bring, float_dtypes, here
from leastwise.utils.hashing import pair_keys, row_keys, sample_keys, unit_keys

Array = np.ndarray

#: Folds that stand in for leave-one-out where labels are known in part.
STAND_IN = 5


class LabelClassifier(MultiOutputMixin, LabelSets, CalibratedClassifier):
    """Base of models of many labels. A subclass has the parameters threshold and missing too."""

    CENTERS: ClassVar[tuple[str, ...]] = TunedModel.CENTERS  # a row has many classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    # ------------------------------------------------------------------ fit

    def _validated(self, X: Any, y: Any, tasks: Any) -> tuple[Any, Array, None]:
        X = validate_data(self, X, accept_sparse="csr", dtype=float_dtypes(X), accept_large_sparse=False)
        flat = is_flat(y)
        codes, labels = encode_labels(as_column(y) if flat else y, X.shape[0], self.missing)
        self.label_index_ = replace(labels, form="flat") if flat else labels
        self._say_what_is_missing(codes)
        return X, codes, None

    def _say_what_is_missing(self, codes: Array) -> None:
        """Rows without labels do not count, labels of one class tell nothing: both work, and are told."""
        empty = int(np.sum((codes < 0).all(axis=1)))
        if empty:
            warnings.warn(
                f"Rows without any known label are left out: {empty} of {len(codes)}.", UserWarning, stacklevel=6
            )
        constant = [self.label_index_.names[t] for t in self.label_index_.constant]
        if constant:
            more = f" and {len(constant) - 5} more" if len(constant) > 5 else ""
            warnings.warn(
                f"Labels with one class only among their known values: {', '.join(map(str, constant[:5]))}{more}. "
                "They are learned as such, and listed in constant_labels_.",
                UserWarning,
                stacklevel=6,
            )

    def _check_targets(self, y: Array) -> None:
        """Done with the encoding."""

    def _weights(self, sample_weight: Any, X: Any, y: Array) -> Array:
        return label_weights(sample_weight, self.class_weight, y, self.label_index_)

    def _targets(self, y: Array, dtype: Any) -> Targets:
        """One column for every class of every label: 1 for that of the row, zeros where a label is not known."""
        starts = self.label_index_.starts
        Z = np.zeros((len(y), int(starts[-1])), dtype=dtype)
        i, t = np.nonzero(y >= 0)
        Z[i, starts[t] + y[i, t]] = 1
        return Targets(y, values=Z, flat=False)

    def _coded(self, y: Array, dtype: Any, known: Any) -> Targets:
        self.label_index_ = known
        return self._targets(y, dtype)

    def _labelled(self, rows: Rows, W: Array, precomputed: bool) -> LabelRows:
        complete = bool((rows.y >= 0).all() and (np.ptp(W, axis=1) <= 1e-12 * W.max(axis=1)).all())
        labelled = LabelRows(**vars(rows), starts=self.label_index_.starts, entries=None if complete else W)
        if complete or not isinstance(self.cv, str):
            return labelled
        fold = grouped_folds(STAND_IN, rows.y, rows.group, input_keys(rows, precomputed))
        return replace(labelled, fold=fold, lone=rows.fold, by_observation=False)

    def _fold_labels(
        self, y: Array, task: Array | None, group: Array | None, copy: Array, used: Array, n: int, seed: int
    ) -> Array:
        whole = isinstance(self.cv, int | np.integer) and not isinstance(self.cv, bool)
        if not whole:
            return super()._fold_labels(y, task, group, copy, used, n, seed)
        check_folds_exist(y, group)
        k, most = int(self.cv), len(y) if group is None else len(np.unique(group))
        if k < 2 or k > most:
            what = "rows" if group is None else "groups"
            raise ValueError(f"cv={k} folds: with {most} {what} use a number from 2 to {most}, or 'loo'.")
        if group is None:
            return label_fold_labels(k, y, seed)
        labels = np.empty(len(y), dtype=int)
        for fold, (_, test) in enumerate(GroupKFold(k, shuffle=True, random_state=seed).split(y, None, group)):
            labels[test] = fold
        return labels

    def _scorer(self) -> LabelScorer:
        return resolve_label_scoring(self.scoring)

    def _label_judge(self) -> LabelJudge:
        threshold = check_threshold(self.threshold, self.label_index_)
        if self.cv is None and isinstance(threshold, str):
            raise ValueError(
                "cv=None holds nothing out, so there is nothing to choose threshold='auto' by: give a number."
            )
        return LabelJudge(self.label_index_.starts, self.calibration, self._scorer(), threshold)

    def _uncalibrated(self, data: Training) -> Any:
        rows = data.rows
        assert isinstance(rows, LabelRows)
        assert rows.values is not None
        sample = rows.label_sample(rows.values)
        return fit_label_calibrator(None, sample)

    # ---------------------------------------------------------------- store

    def _keep(
        self, data: Training, basis: Basis, settings: Settings, choice: Found, solution: Any, reach: Any, trust: Any
    ) -> Any:
        """Store the model, and what is known of held-out rows; ``trust`` is theirs."""
        outcome, rows = choice.outcome, data.rows
        assert isinstance(rows, LabelRows)
        if self.cv is not None:
            sample = rows.label_sample(outcome.F)
            outcome.calibrator = fit_label_calibrator(self.calibration, sample, outcome.calibrator)
        TunedModel._store(self, data, basis, settings, outcome, solution)
        labels = self.label_index_
        self.classes_ = labels.classes[0] if labels.form == "flat" else labels.stacked()
        self.calibrator_, self.reach_ = outcome.calibrator, reach
        self.labels_ = labels.named_array()
        priors = self._by_label(self.calibrator_.shares[None].astype(float))
        self.class_prior_ = [p[0] for p in priors] if isinstance(priors, list) else priors[0]
        self.constant_labels_ = [labels.names[t] for t in labels.constant]
        self.sharing_, self.similarity_ = outcome.sharing, choice.trial.relation.similarity
        self.threshold_ = 0.5 if isinstance(self.threshold, str) else check_threshold(self.threshold, labels)
        self._warn_lifted(settings.kernel, solution)
        if self.cv is not None:
            self._keep_heldout(data, rows, outcome.F, choice.seen, trust)
        return self

    def _keep_heldout(self, data: Training, rows: LabelRows, F: Array, seen: list[dict], trust: Array | None) -> None:
        """What is known of held-out rows, and the thresholds that suit them."""
        everyone, believed = self._everyone(data, F, trust)
        P, D = self.calibrator_.proba(everyone, believed), self.calibrator_.decision(everyone, believed)
        self.heldout_scores_ = everyone
        self.heldout_proba_, self.heldout_decision_ = self._by_label(P), self._by_label(D, difference=True)
        self.cv_results_ = table(seen)
        self.heldout_rows_ = self._truth(data, rows.y, rows.W, believed)
        if isinstance(self.threshold, str):
            scorer, known = self._scorer(), ~np.isnan(F[:, 0])
            metric = scorer.name if scorer.decides else "f1_micro"
            some = P[data.used][known]
            self.threshold_ = choose_thresholds(metric, some[:, 1::2], rows.y[known], rows.W[known])

    # -------------------------------------------------------------- predict

    @by_partition
    def scores(self, X: Any) -> Array:
        """Raw scores, before any calibration: one column for each class of the first label, then of the second, ...

        Returns
        -------
        ndarray of shape (n, classes of all labels)
        """
        return super().scores(X)

    def _shift(self, class_prior: Any) -> Shift | None:
        if class_prior is None:
            return None
        check_is_fitted(self)
        trained = self.calibrator_.shares.astype(float)
        return Shift(read_label_prior(class_prior, self.label_index_, trained), trained, self.label_index_.starts)

    @by_partition
    def predict_proba(self, X: Any, *, class_prior: Any = None) -> Any:
        """Probability of every label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
        class_prior : mapping, Series, array-like of shape (T,), sequence of length T or "uniform", optional
            Shares where the model is used, if they differ from those that it was trained on (``class_prior_``): of
            the second class of each label, in the order of the labels or by name; of all classes for a label that
            has more. Labels that a mapping leaves out stay as they are. See :meth:`leastwise.LSPC.predict_proba`.

        Returns
        -------
        ndarray or frame of shape (n, T)
            That of the second class, where every label has two; otherwise a list of T arrays, of shape (n, classes
            of the label) each.
        """
        return self._shown(self._by_label(self._asked(X, class_prior).proba()), X)

    @by_partition
    def predict_log_proba(self, X: Any, *, class_prior: Any = None) -> Any:
        """Logarithm of ``predict_proba``."""
        P = self._by_label(self._asked(X, class_prior).proba())
        with np.errstate(divide="ignore"):
            return self._shown([logarithm(p) for p in P] if isinstance(P, list) else logarithm(P), X)

    @by_partition
    def decision_function(self, X: Any, *, class_prior: Any = None) -> Any:
        """Values that order rows, and classes, as the probabilities do: log-odds, where the calibration is smooth.

        Returns
        -------
        ndarray or frame of shape (n, T)
            Second class minus first, where every label has two; otherwise a list of T arrays, of shape (n,) or (n,
            classes of the label) each.
        """
        return self._shown(self._by_label(self._asked(X, class_prior).table(), difference=True), X)

    @by_partition
    def predict(self, X: Any, *, class_prior: Any = None) -> Any:
        """The labels, in the form in which they were given to ``fit``: array, sparse matrix or frame.

        A label of two classes is given (its second class) where its probability is above ``threshold_``; of more
        classes the most probable one is. ``class_prior`` as in ``predict_proba``; thresholds stay as they are.
        """
        P = self._asked(X, class_prior).proba()
        codes = decide(here(P), self.label_index_.starts, self.threshold_)
        return back_like(self.label_index_.decode(codes, row_index(X)), P)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows all of whose known labels are right; rows without a known label do not count."""
        P, y, sample_weight = here(self._answer(X).proba()), bring(y), bring(sample_weight)
        y = as_column(y) if is_flat(y) else y
        codes = encode_known(y, self.label_index_, len(P), self.missing)
        W = entry_weights(sample_weight, codes, self.label_index_)
        if not W.any():
            raise ValueError("y has no known label (of a weight above 0): there is nothing to score.")
        right = (decide(P, self.label_index_.starts, self.threshold_) == codes) | (codes < 0)
        return subset_of(right, W)

    def _by_label(self, A: Array, difference: bool = False) -> Any:
        """One column for every label where all have two classes; otherwise a list of arrays."""
        starts = self.label_index_.starts
        if self.label_index_.form == "flat":
            return A[:, 1] - A[:, 0] if difference and A.shape[1] == 2 else A
        if self.label_index_.binary:
            if difference:
                return A[:, 1::2] - A[:, 0::2]
            return np.ascontiguousarray(A[:, 1::2]) if at_home(A) else A[:, 1::2]
        parts = [A[:, a:b] for a, b in pairwise(starts.tolist())]
        return [D[:, 1] - D[:, 0] if difference and D.shape[1] == 2 else D for D in parts]

    def _shown(self, values: Any, X: Any) -> Any:
        """In the container that ``set_output`` asked for."""
        container = container_of(self)
        if isinstance(values, list):
            return [v if v.ndim == 1 else self._framed(v, X, self.classes_[t]) for t, v in enumerate(values)]
        if values.ndim == 1:
            return values
        if self.label_index_.form == "flat":
            return self._framed(values, X)
        return self.label_index_.frame(values if container == "default" else here(values), container, row_index(X))

    threshold: Any
    missing: Any
    label_index_: Labels
    calibrator_: Any


def is_flat(y: Any) -> bool:
    """Whether Y is one class a row, not a table."""
    if hasattr(y, "ndim"):
        return y.ndim == 1
    try:
        return np.asarray(y).ndim == 1
    except ValueError:  # rows of different lengths
        return False


def as_column(y: Any) -> Any:
    """One class a row as a table of one column, with all that is not known."""
    if hasattr(y, "to_frame"):
        return y.to_frame()
    if isinstance(y, np.ma.MaskedArray):
        return y.reshape(-1, 1)
    table = np.asarray(y)
    if table.dtype.kind in "US" and isinstance(y, list | tuple):  # NaN among words would become a word
        table = np.asarray(y, dtype=object)
    return table.reshape(-1, 1)


def grouped_folds(k: int, codes: Array, group: Array | None, x: Array) -> Array:
    """Folds that spread the classes of all labels evenly and keep groups of rows, if there are any, together.

    A group has a label if one of its rows has it. Groups are dealt out in an order that depends on the keys ``x`` of
    their rows alone, so that the order of the rows makes no difference.
    """
    if group is None:
        member, most = np.arange(len(codes)), codes
        keys = sample_keys(pair_keys(x, row_keys(codes)), [], [], "folds")
    else:
        member = np.unique(group, return_inverse=True)[1]
        order = np.argsort(member, kind="stable")
        starts = np.searchsorted(member[order], np.arange(member.max() + 1))
        most, keys = np.maximum.reduceat(codes[order], starts, axis=0), unit_keys(x, member, "folds")
    dealt = np.argsort(keys, kind="stable")
    fold = np.empty(len(most), dtype=int)
    fold[dealt] = label_fold_labels(min(k, len(most)), most[dealt], None)
    return fold[member]
