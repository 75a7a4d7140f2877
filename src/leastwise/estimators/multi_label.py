"""The least-squares probabilistic classifier for many labels, some of which may be unknown."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.label_thresholds import decide
from leastwise.calibration.prior import Shift, read_label_prior
from leastwise.estimators.classifiers import Classifier, logarithm
from leastwise.estimators.docs import documented
from leastwise.estimators.explaining import label_influence
from leastwise.estimators.plans import plan
from leastwise.estimators.predicting import SetOptions, container_of, label_calibration_sets
from leastwise.estimators.streaming import fit_stream, forget, partial_fit, unfit, without_rows
from leastwise.fitting.new_rows import row_index
from leastwise.fitting.spec import Spec
from leastwise.metrics.labels import subset_of
from leastwise.problem.labels import Labels, encode_known
from leastwise.problem.targets import LabelTargets, as_column, is_flat
from leastwise.problem.targets.labels import entry_weights
from leastwise.sources.dask import by_partition
from leastwise.utils.arrays import back_like, bring, is_numpy, to_numpy

Array = np.ndarray


@documented
class MultiLabelLSPC(MultiOutputMixin, Classifier):
    r"""Least-squares probabilistic classifier for many labels, tuned and calibrated in closed form.

    Each label t of a row has its own class. The scores of class y are fitted for all labels together, and
    related labels are coupled; in the paper (Nam et al. 2012) by a penalty on differences::

        F_yt(x) = theta_yt' phi(x)

        min  1/2 sum_t sum_i (F_yt(x_i) - [y_it = y])^2 + 1/2 sum_t lambda_t |theta_yt|^2
             + 1/4 sum_tt' gamma_tt' |theta_yt - theta_yt'|^2

    This is the Sylvester equation ``Phi'Phi Theta + Theta C = Phi' Pi_y``, eq. (1), solved by two
    eigendecompositions. Here ``alpha`` is the ridge and ``sharing`` the strength of the coupling, with
    ``C ~ (1 - sharing) diag(label_penalty) + sharing Laplacian(similarity)``, or, with
    ``similarity="learned"``, ``C^-1 ~ sharing S + (1 - sharing) diag(1 / label_penalty)``. In the basis of the
    eigenvectors of C the labels are independent, so that held-out scores have a closed form. ``fit`` uses them to
    choose sigma, alpha and sharing and to calibrate each label, and stores them.

    Labels may be unknown: a row is then used for its known labels. The solution is still exact, by conjugate
    gradients with the Sylvester solution as preconditioner.

    Parameters
    ----------
    %(sigma)s
    %(alpha)s
        The mean is over the known labels of all rows.
    sharing : "auto", float or sequence of float, default="auto"
        Coupling of related labels, from 0 (independent labels, as in :class:`leastwise.LSPC`) to 1
        (related labels pooled). "auto" tries 0, 0.3, 0.7 and 0.99 with ``similarity="learned"``; 0, 0.05, 0.2, 0.5
        and 0.9 with "shared"; else 0, 0.1, 0.5, 0.9 and 0.97 (for each sigma those on the way to the best value, for
        the best sigma all of them).
    similarity : {"learned", "correlation", "shared"}, matrix, frame, graph or callable, default="learned"
        How labels are coupled. "learned": by the covariance of their functions, of either sign, as estimated from
        their correlations; see :mod:`leastwise.problem.label_coupling`. "correlation": labels that occur together
        are similar, by ``max(0, r)`` with Pearson's r, as in the paper. "shared": all equally similar. Or known
        similarities: a matrix of shape (T, T), dense or sparse, a frame with the names of the labels, a list of pairs
        ``(label, label)`` or ``(label, label, weight)``, or a callable ``f(X, Y)`` that returns one of these (Y is an
        array, with NaN or None for unknown labels): symmetric, with entries of 0 or more.
    label_penalty : mapping or array of shape (T,), default=None
        Ridge of each label relative to the others, lambda_t; 1 for labels that a mapping does not name.
    %(kernel)s
    %(scale)s
    %(metric)s
    %(categories)s
    %(norm)s
    %(n_centers)s
    %(centers)s
    %(bias)s
        %(no_bias)s
    %(cv)s
        Rows are held out with all of their labels. An int makes folds that are stratified by every class of every
        label, see :class:`leastwise.model_selection.StratifiedLabelKFold`. If labels are unknown or have weights of
        their own, there is no closed form, and "loo" is replaced by five such folds.
    scoring : str or callable, default="log_loss"
        Score that the search maximises on held-out predictions of the known labels: "log_loss", "brier", "f1_micro",
        "f1_macro", "f1_samples", "hamming", "accuracy" (all labels of a row right), "average_precision",
        "average_precision_micro", "auc"; or, if all labels are known, a scorer name of scikit-learn or a callable
        ``f(estimator, X, Y)``.
    %(calibration)s
        Each label is calibrated separately, and labels with few rows of a class are shrunk to the others; see
        :mod:`leastwise.calibration.label_calibrators`. None clips and normalises, as in the paper.
    threshold : float, array of shape (T,), mapping or str, default=0.5
        Probability above which ``predict`` assigns a label (of two classes). "auto" optimises ``scoring`` on held-out
        predictions, or micro F1 if ``scoring`` does not depend on decisions. The name of a scoring optimises that one
        and leaves the choice of the model to ``scoring``: "f1_micro", "f1_samples", "hamming" and "accuracy" choose
        one threshold for all labels, "f1_macro" one for each label. "balanced" also chooses one for each label, for
        micro F1, macro F1 and the Hamming loss together.
    missing : scalar, default=nan
        Value that marks an unknown label in Y, such as -1. NaN, None, NA and masked entries always do.
    %(extrapolate)s
    class_weight : dict, "balanced", list or dict of these by label, default=None
        Weights of the classes of every label.
    solver : {"auto", "sylvester", "moments", "cg"}, default="auto"
        "sylvester" uses two eigendecompositions, of the rows (or centres) and of the labels. "cg" is conjugate
        gradients with products of kernel blocks, for many rows: sigma, alpha and sharing are chosen on a subsample,
        and five folds are held out in turn for calibration, or some of them, or a tenth, of very many rows.
        "moments" sums over the rows, for few centres and if all labels are known. "auto" takes the cheapest that fits
        in memory, and prefers exact leave-one-out scores, see :meth:`plan`.
    search_rows : "auto", int or None, default="auto"
        Approximate number of rows on which sigma, alpha and sharing are searched; alpha and sharing are then refined
        on all rows. None uses all rows for both.
    tol : float, default=1e-06
        Stopping rule of the conjugate gradients: norm of the residual relative to the right-hand side.
    max_iter : int, default=1000
        Maximum number of iterations of the conjugate gradients.
    %(degree)s
    %(coef0)s
    %(n_jobs)s
    %(random_state)s
    %(verbose)s

    Attributes
    ----------
    labels_ : ndarray of shape (T,)
        Names of the labels.
    label_index_ : Labels
        Names and classes of the labels, and the form in which they were given.
    classes_ : ndarray of shape (T, 2) or list of ndarray
        Classes of each label; a list if some have more or fewer than two.
    class_prior_ : ndarray of shape (T,) or list of ndarray
        Share of the second class of each label among its known values; of all classes if some labels have more than
        two.
    constant_labels_ : list
        Labels with a single class in the training data.
    %(sigma_)s
    %(alpha_)s
    %(sharing_)s
    similarity_ : ndarray or sparse matrix of shape (T, T), or None
        Similarities of the labels; with "learned", the covariance S of their functions. None if they have no
        effect: all labels are equally similar, or independent.
    threshold_ : float or ndarray of shape (T,)
        Probability above which a label is assigned.
    %(kernel_)s
    %(scale_)s
    %(inputs_)s
    %(feature_weights_)s
    %(categories_)s
    %(centers_)s
    %(center_indices_)s
    %(coef_)s
        The classes of the first label come first, then those of the second, and so on.
    %(intercept_)s
    %(calibrator_)s
    %(extrapolation_)s
    %(neighbourhood_)s
    %(heldout_scores_)s
    %(heldout_decision_)s
    %(heldout_proba_)s
        With ``solver="cg"`` and very many rows, only some are held out; the other rows are NaN.
    %(heldout_rows_)s
    %(training_record_)s
    %(cv_results_)s
    %(jitter_)s
    n_iter_ : int
        Iterations of the conjugate gradients; 1 if none were needed.
    residual_ : float
        Largest relative residual of the conjugate gradients. Not set if none were needed.
    %(moments_)s
    %(kept_)s
    %(n_features_in_)s
    %(feature_names_in_)s

    References
    ----------
    %(nam_2012)s

    Examples
    --------
    >>> from leastwise import MultiLabelLSPC
    >>> from leastwise.datasets import make_rotated_labels
    >>> data = make_rotated_labels(n_labels=5, n_rows=100, n_features=5, random_state=0)
    >>> model = MultiLabelLSPC(random_state=0).fit(data.X, data.Y)
    >>> model.predict_proba(data.X[:2]).shape
    (2, 5)
    """

    def __init__(
        self,
        sigma: Any = "auto",
        alpha: Any = "auto",
        sharing: Any = "auto",
        *,
        similarity: Any = "learned",
        label_penalty: Any = None,
        kernel: Any = "auto",
        scale: Any = "auto",
        metric: Any = "auto",
        categories: Any = "from_dtype",
        norm: str = "function",
        n_centers: Any = "auto",
        centers: Any = "random",
        bias: str | None = None,
        cv: Any = "loo",
        scoring: Any = "log_loss",
        calibration: str | None = "blend",
        threshold: Any = 0.5,
        missing: Any = np.nan,
        extrapolate: bool = False,
        class_weight: Any = None,
        solver: str = "auto",
        search_rows: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        degree: int = 3,
        coef0: float = 1.0,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.sigma = sigma
        self.alpha = alpha
        self.sharing = sharing
        self.similarity = similarity
        self.label_penalty = label_penalty
        self.kernel = kernel
        self.scale = scale
        self.metric = metric
        self.categories = categories
        self.norm = norm
        self.n_centers = n_centers
        self.centers = centers
        self.bias = bias
        self.cv = cv
        self.scoring = scoring
        self.calibration = calibration
        self.threshold = threshold
        self.missing = missing
        self.extrapolate = extrapolate
        self.class_weight = class_weight
        self.solver = solver
        self.search_rows = search_rows
        self.tol = tol
        self.max_iter = max_iter
        self.degree = degree
        self.coef0 = coef0
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> MultiLabelLSPC:
        """Choose sigma, alpha and sharing, solve, and calibrate.

        Parameters
        ----------
        %(X)s
        y : array, masked array, sparse matrix or frame of shape (n, T)
            Labels, usually 0 and 1; two or more classes each, numbers or strings. NaN is unknown. An array of shape
            (n,) with a class for each row is a single label.
        sample_weight : array-like of shape (n,) or (n, T), default=None
            Weights of the rows, or of each label of each row. A row of weight 2 counts like two equal rows.
        %(groups)s

        Returns
        -------
        %(self)s
        """
        return self._fit(X, y, sample_weight, groups)

    def _spec(self) -> Spec:
        targets = LabelTargets(missing=self.missing, class_weight=self.class_weight)
        return Spec.of(self, targets, family="labels", device_rows=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    @by_partition
    def scores(self, X: Any) -> Array:
        """Raw scores, before any calibration.

        Parameters
        ----------
        %(X.new)s

        Returns
        -------
        ndarray of shape (n, n_outputs)
            One column for each class of the first label, then of the second, and so on.
        """
        return self._calibrated_scores(X).F

    def _shift(self, class_prior: Any) -> Shift | None:
        if class_prior is None:
            return None
        check_is_fitted(self)
        trained = self.calibrator_.shares.astype(float)
        return Shift(read_label_prior(class_prior, self.label_index_, trained), trained, self.label_index_.starts)

    @by_partition
    def predict_proba(self, X: Any, *, class_prior: Any = None) -> Any:
        """Probability of each label.

        Parameters
        ----------
        %(X.new)s
        %(class_prior.labels)s

        Returns
        -------
        ndarray or frame of shape (n, T), or list of T arrays
            Probability of the second class if every label has two classes; otherwise a list of arrays of shape (n,
            classes of the label).
        """
        return self._shown(self._by_label(self._at_prior(X, class_prior).proba()), X)

    @by_partition
    def predict_log_proba(self, X: Any, *, class_prior: Any = None) -> Any:
        """Logarithm of ``predict_proba``, with the same arguments."""
        P = self._by_label(self._at_prior(X, class_prior).proba())
        return self._shown([logarithm(p) for p in P] if isinstance(P, list) else logarithm(P), X)

    @by_partition
    def decision_function(self, X: Any, *, class_prior: Any = None) -> Any:
        """Values that order rows and classes as the probabilities do: log-odds if the calibration is smooth.

        Parameters
        ----------
        %(X.new)s
        %(class_prior.labels)s

        Returns
        -------
        ndarray or frame of shape (n, T), or list of T arrays
            Second class minus first if every label has two classes; otherwise a list of arrays of shape (n,) or (n,
            classes of the label).
        """
        return self._shown(self._by_label(self._at_prior(X, class_prior).table(), difference=True), X)

    @by_partition
    def predict(self, X: Any, *, class_prior: Any = None) -> Any:
        """Labels, in the form in which they were given to ``fit``: array, sparse matrix or frame.

        A label of two classes is assigned its second class if the probability of that is above ``threshold_``, a
        label of more classes the most probable one.

        Parameters
        ----------
        %(X.new)s
        %(class_prior.labels)s
            Thresholds do not change with it.

        Returns
        -------
        array, sparse matrix or frame of shape (n, T)
        """
        P = self._at_prior(X, class_prior).proba()
        codes = decide(to_numpy(P), self.label_index_.starts, self.threshold_)
        return back_like(self.label_index_.decode(codes, row_index(X)), P)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows with all known labels right (subset accuracy); rows without known labels do not count."""
        P, y, sample_weight = to_numpy(self._calibrated_scores(X).proba()), bring(y), bring(sample_weight)
        y = as_column(y) if is_flat(y) else y
        codes = encode_known(y, self.label_index_, len(P), self.missing)
        W = entry_weights(sample_weight, codes, self.label_index_)
        if not W.any():
            raise ValueError("y has no known label with a weight above 0: there is nothing to score.")
        right = (decide(P, self.label_index_.starts, self.threshold_) == codes) | (codes < 0)
        return subset_of(right, W)

    def _by_label(self, A: Array, difference: bool = False) -> Any:
        """One column for each label if all have two classes; otherwise a list of arrays."""
        starts = self.label_index_.starts
        if self.label_index_.form == "flat":
            return A[:, 1] - A[:, 0] if difference and A.shape[1] == 2 else A
        if self.label_index_.binary:
            if difference:
                return A[:, 1::2] - A[:, 0::2]
            return np.ascontiguousarray(A[:, 1::2]) if is_numpy(A) else A[:, 1::2]
        parts = [A[:, a:b] for a, b in pairwise(starts.tolist())]
        return [D[:, 1] - D[:, 0] if difference and D.shape[1] == 2 else D for D in parts]

    def _shown(self, values: Any, X: Any) -> Any:
        """Values in the container set by ``set_output``."""
        container = container_of(self)
        if isinstance(values, list):
            return [v if v.ndim == 1 else self._framed(v, X, self.classes_[t]) for t, v in enumerate(values)]
        if values.ndim == 1:
            return values
        if self.label_index_.form == "flat":
            return self._framed(values, X)
        return self.label_index_.frame(
            values if container == "default" else to_numpy(values), container, row_index(X)
        )

    @by_partition
    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        method: str = "lac",
        by_class: bool = False,
        allow_empty: bool = False,
        random_state: Any = None,
    ) -> Any:
        """Prediction sets for each label that contain the true class with about this probability.

        A set with both classes leaves the label undecided. See :mod:`leastwise.calibration.conformal`.

        Parameters
        ----------
        %(X.new)s
        %(coverage)s
            It holds for each label separately, on the rows whose label is known.
        %(method.set)s
        %(by_class)s
        %(allow_empty)s
        %(random_state.set)s

        Returns
        -------
        ndarray of bool of shape (n, T, 2), or list of T arrays
            If every label has two classes; otherwise a list of arrays of shape (n, classes of the label). Of shape
            (n, n_classes) if a single label was given as an array of shape (n,).
        """
        flags = {"by_class": by_class, "by_task": False, "allow_empty": allow_empty}
        wanted = SetOptions.checked(coverage, method, random_state, **flags)
        heldout = label_calibration_sets(self)
        return wanted.of_labels(to_numpy(self._calibrated_scores(X).proba()), heldout, self.label_index_)

    threshold_: Any
    label_index_: Labels

    plan = plan
    influence = label_influence
    fit_stream = fit_stream
    partial_fit = partial_fit
    unfit = unfit
    forget = forget
    without_rows = without_rows
