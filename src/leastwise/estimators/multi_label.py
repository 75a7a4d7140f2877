"""The least-squares probabilistic classifier for many labels, of which some may not be known."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.estimators.explaining import label_influence
from leastwise.estimators.fitting import plan
from leastwise.estimators.labels import LabelClassifier
from leastwise.estimators.spec import Spec
from leastwise.estimators.streaming import fit_stream, forget, partial_fit, unfit, without_rows
from leastwise.problem.targets import LabelTargets


class MultiLabelLSPC(LabelClassifier):
    r"""Least-squares probabilistic classifier for many labels, tuned and calibrated in closed form.

    Every label t of a row has a class of its own. The scores of class y are fitted for all labels at once, and those
    of related labels lean on one another; in the paper (Nam et al. 2012) by a penalty on differences::

        F_yt(x) = theta_yt' phi(x)

        min  1/2 sum_t sum_i (F_yt(x_i) - [y_it = y])^2 + 1/2 sum_t lambda_t |theta_yt|^2
             + 1/4 sum_tt' gamma_tt' |theta_yt - theta_yt'|^2

    This is the Sylvester equation ``Phi'Phi Theta + Theta C = Phi' Pi_y``, eq. (1), solved by two
    eigendecompositions. Here ``alpha`` says how strong the ridge is and ``sharing`` how much labels have in common,
    from ``C ~ (1 - sharing) diag(label_penalty) + sharing Laplacian(similarity)``, or, with
    ``similarity="learned"``, from ``C^-1 ~ sharing S + (1 - sharing) diag(1 / label_penalty)``. Rotated by the
    eigenvectors of C the labels come apart, so that held-out scores have a closed form, and ``fit`` chooses sigma,
    alpha and sharing by them, calibrates each label on them, and keeps them.

    Labels may be unknown: a row then counts for the labels that it has. The solution is exact all the same, by
    conjugate gradients with the Sylvester solution as preconditioner.

    Parameters
    ----------
    sigma : "auto", float or sequence of float, default="auto"
        Width of the kernel, as in :class:`leastwise.LSPC`.
    alpha : "auto", float or sequence of float, default="auto"
        Ridge on the mean loss over the known labels of all rows.
    sharing : "auto", float or sequence of float, default="auto"
        From 0, every label alone as :class:`leastwise.LSPC` would have it, to 1, related labels pooled. "auto" tries
        0, 0.3, 0.7 and 0.99 with ``similarity="learned"``; 0, 0.05, 0.2, 0.5 and 0.9 with "shared"; else 0, 0.1, 0.5,
        0.9 and 0.97 (those on the way to the best for each sigma, all of them for the best sigma).
    similarity : {"learned", "correlation", "shared"}, matrix, frame, graph or callable, default="learned"
        How labels are tied. "learned": by the covariance of their functions that their correlations speak for, of
        either sign, see :mod:`leastwise.problem.label_similarity`. "correlation": labels that occur together are
        drawn to one another, by ``max(0, r)`` with Pearson's r, as in the paper. "shared": all alike. Or similarities
        that are known: a matrix of shape (T, T), dense or sparse, a frame with the names of the labels, a list of
        pairs ``(label, label)`` or ``(label, label, weight)``, or a callable ``f(X, Y)`` that returns one of these (Y
        an array, NaN or None where a label is not known): symmetric, 0 or more.
    label_penalty : mapping or array of shape (T,), optional
        The ridge of each label relative to the others', lambda_t; 1 for labels that a mapping does not name.
    kernel : {"rbf", "laplace", "linear", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        Or a sum such as "rbf+linear". As in :class:`leastwise.LSPC`.
    norm : {"function", "coefficients"}, default="function"
        What the ridge is on: the norm of the functions, or of the coefficients as in the paper.
    n_centers : int, optional
        A subset of kernels: so many centres instead of all rows.
    centers : {"random", "kmeans", "kmeans++", "leverage"} or array (b, n_features), default="random"
        How that subset is chosen: "random" rows; the middles of clusters, "kmeans"; rows far from each other by
        "kmeans++"; rows drawn by approximate ridge leverage scores, "leverage", at sigma or the middle of its grid,
        with "auto" at the median distance. An array is used as it is.
    bias : {"shared", None}, default=None
        An unpenalised intercept for each class of each label, or none, as in the paper.
    cv : "loo", int, splitter, iterable of splits or None, default="loo"
        How rows are held out, with all of their labels. A number makes folds in which every class of every label has
        its share, see :class:`leastwise.model_selection.StratifiedLabelKFold`. Where labels are unknown, or have
        weights of their own, five such folds stand in for "loo", since there is no closed form. None holds nothing
        out: sigma, alpha and sharing must be numbers, and ``calibration=None``.
    scoring : str or callable, default="log_loss"
        What the search maximises on held-out predictions of the known labels: "log_loss", "brier", "f1_micro",
        "f1_macro", "f1_samples", "hamming", "accuracy" (all labels of a row right), "average_precision",
        "average_precision_micro", "auc"; or, where all labels are known, a name of scikit-learn's, or a callable
        ``f(estimator, X, Y)``.
    calibration : {"blend", "temperature", "isotonic", None}, default="blend"
        How scores become probabilities, label by label, see :mod:`leastwise.calibration.label_calibrators`; labels
        with few rows of a class lean on the others. None clips and normalises, as in the paper.
    threshold : float, array of shape (T,), mapping or "auto", default=0.5
        Above which probability ``predict`` gives a label (of two classes). "auto" chooses what suits ``scoring`` on
        held-out predictions, micro F1 where that is not about decisions.
    missing : default=nan
        What stands for an unknown label in Y, -1 for instance; NaN, None, NA and masked entries always do.
    extrapolate : bool, default=False
        Believe the scores of rows wherever they are; see :class:`leastwise.LSPC`.
    class_weight : dict, "balanced", list or dict of these by label, optional
        Weights of the classes of every label.
    solver : {"auto", "sylvester", "moments", "cg"}, default="auto"
        "sylvester" is by two eigendecompositions, those of the rows (or centres) and of the labels. "cg" are
        conjugate gradients with products of kernel blocks, for many rows: sigma, alpha and sharing are then chosen on
        some rows, and five folds are held out in turn to calibrate on, or a tenth of very many rows. "auto" takes
        them beyond 4,000 rows (2,000 if not all labels are known) without ``n_centers``. "moments" sums over the
        rows, for few centres, where all labels are known; "auto" takes that beyond 20 million rows times centres, and
        where memory is short.
    search_rows : "auto", int or None, default="auto"
        On about how many rows sigma, alpha and sharing are searched; alpha and sharing are then settled on all rows.
        None takes all for both.
    tol, max_iter : float and int, default=1e-6 and 1000
        Stop of the conjugate gradients.
    degree, coef0 : default=3 and 1.0
        Shape of the kernels "poly" and "sigmoid".
    n_jobs : int, optional
        How many sigmas are tried side by side: None is 1 unless a joblib context says otherwise, -1 all processors.
        What is chosen does not depend on it. See the page "Jobs and threads".
    random_state : int, RandomState or None, default=None
        For centres that are drawn (``n_centers``) and for the shuffling of ``cv=`` a number of folds. None is a fixed
        seed. The rows that large data are searched on depend on the data alone; see :doc:`/selection`.
    verbose : int, default=0
        1 prints the plan, and a line for every sigma and sharing.

    Attributes
    ----------
    labels_ : ndarray of shape (T,)
        Names of the labels.
    classes_ : ndarray of shape (T, 2) or list of ndarray
        Classes of each label; a list where some have more or fewer than two.
    class_prior_ : ndarray of shape (T,) or list of ndarray
        Share of the second class of each label among its known values; of all classes where some labels have more.
    constant_labels_ : list
        Labels of which one class only was seen.
    sigma_, alpha_, sharing_ : float
        The chosen parameters.
    similarity_ : ndarray or sparse matrix of shape (T, T)
        Similarities of the labels; with "learned" the covariance S of their functions. None where it makes no
        difference: all labels alike, or each alone.
    threshold_ : float or ndarray of shape (T,)
        Above which probability a label is given.
    centers_ : array or sparse matrix of shape (b, n_features)
        Centres of the basis functions; ``center_indices_`` with a precomputed kernel.
    coef_ : ndarray of shape (b, outputs)
        Coefficients; the classes of the first label, then those of the second, and so on.
    intercept_ : ndarray of shape (outputs,)
    calibrator_ : object
        From scores to probabilities.
    reach_ : Reach or None
        How far from the data the model is trusted.
    heldout_scores_, heldout_decision_, heldout_proba_ : ndarray
        What ``scores``, ``decision_function`` and ``predict_proba`` say of the training rows when these are held out.
        Not there with ``cv=None``. With ``solver="cg"`` and very many rows only a tenth is held out; others are NaN.
    heldout_rows_ : HeldRows
        The true classes, weights, groups and tasks of the training rows. Not there with ``cv=None``.
    cv_results_ : dict of ndarray
        All points of the search: ``param_sigma``, ``param_alpha``, ``param_sharing``, ``mean_test_score``,
        ``rank_test_score`` and ``n_rows``.
    n_iter_, residual_ : int and float
        Iterations, and the largest relative residual, of conjugate gradients; 1 and not there where none were needed.
    jitter_ : float
        What was added to a diagonal to make it positive definite.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    H. Nam, H. Hachiya, M. Sugiyama, Computationally Efficient Multi-label Classification by Least-Squares
    Probabilistic Classifiers, 2012.

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
        kernel: Any = "rbf",
        norm: str = "function",
        n_centers: int | None = None,
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
        """Choose sigma, alpha and sharing, solve, calibrate.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows; with ``kernel="precomputed"`` the (n, n) kernel matrix.
        y : array, masked array, sparse matrix or frame of shape (n, T)
            Labels, most often 0 and 1; two or more classes each, numbers or strings. NaN is unknown. One class a row,
            of shape (n,), is one label.
        sample_weight : array-like of shape (n,) or (n, T), optional
            Weights of the rows, or of each label of each row. A weight of 2 is the same as the row twice.
        groups : array-like of shape (n,) or "duplicates", optional
            Rows of one group are held out together. "duplicates": rows with equal inputs are a group.
        """
        return self._fit(X, y, sample_weight, groups)

    def _spec(self) -> Spec:
        targets = LabelTargets(missing=self.missing, class_weight=self.class_weight)
        return Spec.of(self, targets, family="labels", device_rows=True)

    plan = plan
    influence = label_influence
    fit_stream = fit_stream
    partial_fit = partial_fit
    unfit = unfit
    forget = forget
    without_rows = without_rows
