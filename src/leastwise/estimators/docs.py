"""Descriptions of parameters, attributes and arguments that several estimators share, and how docstrings use them.

A line that consists of ``%(key)s`` in the docstring of a class or of one of its methods is replaced by the entry of
that key in the tables below. Indented lines after it continue the entry: they hold what is particular to the
estimator, or a note that a few estimators share. A key is a name, or a name and a variant such as ``tol.krylov``, of
which the docstring shows the name. Defaults are not in the tables; they are read from the signature.
"""

from __future__ import annotations

import copy
import inspect
import re
import textwrap
from functools import update_wrapper
from types import FunctionType
from typing import Any


def _table(text: str) -> dict[str, str]:
    """Entries by their keys, from text in the form of a numpydoc section."""
    table: dict[str, str] = {}
    for entry in re.split(r"\n+(?=\S)", text.strip()):
        key = entry.partition(" : ")[0]
        if key in table:
            raise ValueError(f"{key!r} has two entries.")
        table[key] = entry
    return table


#: Parameters of ``__init__``.
PARAMETERS = _table("""
sigma : "auto", float or sequence of float
    Width of the kernel: "rbf" is ``exp(-d^2 / (2 sigma^2))`` and "laplace" ``exp(-d_1 / sigma)``; "poly" and
    "sigmoid" divide inner products by ``sigma^2``; "linear" has no width. A number is used as given and a sequence is
    a grid. "auto" is a grid of multiples of the median distance between rows, which is extended while the best value
    is at its border.

alpha : "auto", float or sequence of float
    Ridge on the mean loss, where weights have mean 1. A number is used as given and a sequence is a grid. "auto" is a
    logarithmic grid in units of the size of the kernel, which is refined and extended around the best value.

sharing : "auto", float or sequence of float
    How much the tasks have in common, from 0 (each task on its own) to 1 (all tasks pooled).

similarity : {"shared", "learned", "correlation", "inputs"}, matrix, frame or callable
    Which tasks share. "shared": all alike. "learned": groups of tasks that belong together, found by their evidence,
    and single tasks; a task that contradicts the others is kept apart (up to 300 tasks). "correlation": agreement of
    the models of single tasks. "inputs": similarity of their inputs. A matrix of shape (T, T) in the order of
    ``tasks_``, a frame with the task ids as names of rows and columns, or a callable ``f(X, y, tasks)`` that returns
    one of these: symmetric, with entries of 0 or more. All but the first two couple pairs of tasks (section 4 of Nam
    et al. 2012).

task_penalty : mapping or array of shape (T,)
    Ridge on the own part of each task relative to the others, omega_t in section 3 of Nam et al. (2012); 1 for tasks
    that a mapping does not name. A task with a large value stays close to the part that all tasks share.

task_column : str or int
    Column of X that holds the task ids: a name in frames, else a position, which may count from the end. Without it,
    pass ``tasks=`` to every method.

unknown_task : {"shared", "error"}
    Prediction for tasks that were not in the training data: "shared" uses the part that all tasks share, "error"
    raises an error.

kernel : {"auto", "rbf", "laplace", "linear", "poly", "sigmoid", "precomputed"}, sum of these or callable
    "auto" chooses between "rbf" and "laplace", each with its own width, on held-out rows; if sigma is not "auto", it
    is "rbf". "rbf", "laplace" and "linear" can be added, as in "rbf+linear". In a sum, the linear part is centred at
    the mean of the training rows and scaled such that its k(x, x) is 1 on average, like that of the others. With
    "precomputed", X is the kernel matrix. A callable ``f(X, Y)`` returns an array of shape (rows of X, rows of Y).

scale : {"auto", "standard", "robust", "quantile"} or None
    What is done to the columns of X first, learned from the training rows; columns that do not vary are dropped.
    "standard" subtracts the mean and divides by the standard deviation. "robust" is
    ``asinh((x - median) / MAD)``, standardised. "quantile" turns ranks into normal scores. None leaves X as it is.
    "auto" chooses between "standard" and "quantile" on held-out rows; if sigma is not "auto", it leaves X as it is.
    Sparse X is never centred: "auto" chooses between None and division by the root mean square.

metric : {"auto", "diagonal"} or None
    "diagonal" multiplies every scaled column by a weight, learned from the mean squared gradient of the fitted
    function along it; see :mod:`leastwise.fitting.feature_weights`. "auto" does so for Gaussian kernels if it
    helps on rows that the weights have not seen. None uses no weights. Weights need ``sigma="auto"``.

categories : "from_dtype", sequence of column names or positions, or None
    Columns that are categories. "from_dtype" are the columns of a frame that hold text, categories or booleans. Each
    value becomes a column of its own, which is not scaled any further; values that are not in the training data share
    one more, missing values another one. Of more than 50 values, the most frequent ones have columns of their own.
    With None, all columns must be numeric.

linear_weight : "auto", float or sequence of float
    Weight of the linear part in a sum of kernels; inf drops the other parts. "auto" tries 1 and inf.

norm : {"function", "coefficients"}
    Penalty: the norm of the function, ``theta' K theta``, or that of the coefficients, ``theta' theta``, as in the
    paper.

n_centers : int or "auto"
    Number of centres (basis functions). None makes every training row a centre. "auto" does so up to 3,000 rows.
    Beyond, it chooses 500 to 1,000 random rows if that is log(n) times the effective dimension at the chosen sigma
    and alpha or more, and every row otherwise; also if sigma or alpha are given.

bias : {"shared", None}
    An unpenalised intercept for each class or output, or none.

bias.task : {"auto", "task", "shared", "shrunk", None} or float
    Intercepts. "task", as in the paper: a free one for each task, which overfits small tasks. "shared": a free one
    for all tasks. "shrunk": a free one for all tasks and a penalised one for each task, whose variance in units of
    the noise variance is 0.03 or 0.3, chosen on held-out rows. A number is that ratio of variances. "auto" chooses
    among all of these.

cv : "loo", int, splitter, iterable of splits or None
    How rows are held out. "loo" leaves out each row, or each group if ``groups`` are given; an int is a number of
    folds. None holds nothing out: parameters that are otherwise searched must be numbers, and ``calibration``, if
    there is one, must be None.

scoring : str or callable
    What the search maximises on held-out predictions, weighted as the rows are: "log_loss", "brier", "accuracy",
    "auc", "f1" (of the second class in ``classes_`` if there are two, else the mean over classes), a scorer name of
    scikit-learn, or a callable ``f(estimator, X, y)``.

scoring.values : str or callable
    What the search maximises on held-out predictions: "r2" (explained variance, the mean over outputs), "mse", "mae",
    a scorer name of scikit-learn, or a callable ``f(estimator, X, y)``. "cautious" is "r2" with a penalty for degrees
    of freedom, and prefers a linear model unless the best model is clearly better.

calibration : {"blend", "temperature", "isotonic", None}
    How scores become probabilities, fitted to held-out scores; see :mod:`leastwise.calibration.calibrators`.

extrapolate : bool
    Whether scores are trusted far from the data. By default, probabilities approach the class shares as a row leaves
    the data, that is, where its distance to the nearest centre exceeds what is usual among held-out training rows;
    see :mod:`leastwise.calibration.extrapolation`. It has no effect for kernels that are not functions of a distance.

class_weight : dict or "balanced"
    Weights of the classes, finite and 0 or more. Classes that the dict does not name have weight 1; a name that is no
    class is an error. Probabilities, class shares and held-out scores then refer to the reweighted population: with
    "balanced", all classes are equally frequent in it.

solver.lssvm : {"auto", "cholesky", "moments", "krylov"}
    "cholesky" factorises the kernel matrix. "krylov" solves by preconditioned block conjugate gradients and never
    stores the kernel matrix of all rows (section 3.4 of Xu et al.); hyperparameters are chosen on a subsample, and a
    tenth of the rows is held out. "moments" sums over the rows, for few centres. "auto" takes the
    cheapest that fits in memory, and prefers exact leave-one-out scores, see ``plan``.

solver.task_lssvm : {"auto", "dual", "arrow", "krylov"}
    "dual" is one system with as many unknowns as rows, whatever the number of tasks. "arrow" goes through the tasks
    one by one, for a linear kernel or few centres; its cost is linear in the rows. "krylov" solves by preconditioned
    block conjugate gradients and never stores the kernel matrix of all rows (section 3.4 of the paper);
    hyperparameters are chosen on a subsample of tasks, and a tenth of the rows is held out. "auto" is "arrow" where
    that is possible, else the cheaper of "dual" and "krylov" that fits in memory, or "arrow" if the linear part alone
    was best.

solver.logistic : {"auto", "lbfgs", "newton"}
    See :func:`leastwise.linalg.logistic.solve_logistic`.

prune : float or int
    Sparsity by pruning (section 3.3 of Xu et al.): the share, or number, of rows to remove, those with the smallest
    coefficients first, with a refit after every fifth of them. ``pruning_`` reports the loss in accuracy.

search_rows : "auto", int or None
    Number of rows on which the hyperparameters are searched; alpha is then refined on all rows. None uses all rows
    for both.

tol.krylov : float
    Stopping rule of ``solver="krylov"``: norm of the residual relative to the right-hand side.

max_iter.krylov : int
    Maximum number of iterations of ``solver="krylov"``.

max_iter.logistic : int
    Maximum number of iterations of the solver.

tol.logistic : float
    Stopping rule: norm of the gradient in units of the root of the mean of k(x, x).

degree : int
    Degree of the kernel "poly".

coef0 : float
    Constant term of the kernels "poly" and "sigmoid".

n_jobs : int
    Number of sigmas that are evaluated in parallel: None is 1 unless in a joblib context, -1 is all processors. The
    result does not depend on it. See the page "Jobs and threads".

random_state : int, RandomState or None
    Seed for drawing centres (``n_centers``) and shuffling folds (an int as ``cv``). None is a fixed seed. The
    subsample on which hyperparameters of large data are searched depends on the data alone; see :doc:`/selection`.

random_state.logistic : int, RandomState or None
    Seed for shuffling folds and for drawing centres, if any. None is a fixed seed.

verbose : int
    1 prints the plan and a line for each step of the search.

verbose.logistic : int
    1 prints a line for each step of the search.
""")

#: How centres are chosen: common to all, and what depends on the estimator.
_CENTERS = """\
centers{variant} : {{"random", "kmeans", "kmeans++", "leverage"{rules}}} or array of shape (b, n_features)
    How ``n_centers`` centres are chosen. "random": random rows. "kmeans": means of clusters. "kmeans++": rows far
    from each other. "leverage": rows sampled by approximate ridge leverage scores, at sigma, at the middle of its
    grid, or at the median distance if it is "auto".{more} An array is used as given."""
_OF_CLASS = '"class": an equal number of random rows of each class.'
_OF_TASK = '"task": an equal number of random rows of each task.'
for _variant, _rules, _more in (
    ("", "", ""),
    (".class", ', "class"', f"\n    {_OF_CLASS}"),
    (".task", ', "task"', f"\n    {_OF_TASK}"),
    (".class_task", ', "class", "task"', f"\n    {_OF_CLASS} {_OF_TASK}"),
):
    PARAMETERS[f"centers{_variant}"] = _CENTERS.format(variant=_variant, rules=_rules, more=_more)

#: Attributes that a fit sets.
ATTRIBUTES = _table("""
classes_ : ndarray of shape (n_classes,)
    The classes, sorted.

class_prior_ : ndarray of shape (n_classes,)
    Weighted class shares of the training rows.

tasks_ : ndarray of shape (T,)
    Task ids, sorted if they can be.

task_index_ : Tasks
    Positions of the task ids.

sigma_ : float
    The chosen sigma; 1 for a kernel without width.

alpha_ : float
    The chosen alpha.

sharing_ : float
    The chosen sharing.

linear_weight_ : float or None
    The chosen weight of the linear part; None for a kernel that is not a sum with a linear part.

intercept_ratio_ : float
    Variance of the intercepts of the tasks in units of the noise variance; 0 for a shared intercept, inf for free
    ones.

kernel_ : Kernel
    The kernel, with what it has learned from the training rows.

scale_ : str or None
    The scale of the inputs.

feature_weights_ : ndarray of shape (n_features,) or None
    Weights of the columns of X: 0 for columns that are not used, with a mean square of 1 over the others. None if
    there are none.

inputs_ : Inputs
    What is done to rows before kernels are computed; ``inputs_(X)`` are the scaled rows.

categories_ : list
    For each column, the values of a category, sorted, or None for numbers. The task column is left out.

centers_ : array or sparse matrix of shape (b, n_features)
    Centres of the basis functions, as scaled by ``inputs_``. Not set with ``kernel="precomputed"``.

center_indices_ : ndarray of shape (b,)
    Training rows that are centres. Set with ``kernel="precomputed"`` only.

coef_ : ndarray of shape (b, n_outputs)
    Coefficients of the centres, one column for each class or output.

intercept_ : ndarray of shape (n_outputs,)
    Intercept of each class or output; zeros without ``bias``.

similarity_ : ndarray of shape (T, T)
    Similarities of the tasks; ones if all are alike.

coupling_ : ndarray of shape (T, T)
    The task matrix B: how much the tasks have in common at ``sharing_``.

relation_ : object
    The coupling of the tasks as a function of sharing.

coupling_matrix_ : CouplingMatrix
    The coupling at ``sharing_``.

form_ : DualForm or PrimalForm
    The coefficients, in the form in which they were solved for: either ``dual_coef_``, or ``coef_`` and
    ``shared_coef_``.

dual_coef_ : ndarray of shape (n, n_outputs)
    One coefficient for each row and each class or output, where the system was solved in the dual.

coef_.task : ndarray of shape (T, b, n_outputs)
    Coefficients of the centres for each task, where the system was not solved in the dual.

shared_coef_ : ndarray of shape (b, n_outputs)
    Coefficients of the centres for unseen tasks, where the system was not solved in the dual.

task_intercept_ : ndarray of shape (T, n_outputs)
    Intercepts of the tasks. Not set if all tasks have the same.

calibrator_ : object
    Maps scores to probabilities.

unseen_task_calibrator_ : object or None
    Maps scores of unseen tasks to probabilities; fitted to tasks that were held out whole.

unseen_task_scores_ : ndarray of shape (n, n_classes)
    Scores of the training rows from models without any row of their task. Set only if the search used all rows and
    ``unseen_task_calibrator_`` is not None.

extrapolation_ : Extrapolation or None
    How far from the data the scores are trusted; None for everywhere. See ``extrapolate``.

neighbourhood_ : Neighbourhood
    Distances among the training rows, for ``novelty_pvalue``. Not set with ``kernel="precomputed"``.

training_record_ : TrainingRecord or LabelTrainingRecord
    Targets and weights of the training rows, for ``influence``. Set only where ``influence`` is possible.

heldout_scores_ : ndarray
    ``scores`` of the training rows when they are held out. Not set with ``cv=None``.

heldout_decision_ : ndarray
    ``decision_function`` of the training rows when they are held out. Not set with ``cv=None``.

heldout_proba_ : ndarray
    ``predict_proba`` of the training rows when they are held out, by calibrators that were fitted without the row (in
    eight folds). Not set with ``cv=None``. The hyperparameters were chosen on these rows, so that they are slightly
    optimistic as an estimate of performance: report performance on rows that ``fit`` has not seen.

heldout_rows_ : HeldRows
    True classes, weights, groups and tasks of the training rows. Not set with ``cv=None``.

heldout_prediction_ : ndarray of the shape of y
    ``predict`` for the training rows when they are held out. Not set with ``cv=None``.

residuals_ : Residuals
    Held-out residuals, for ``predict_interval``. Not set with ``cv=None``.

unit_ : ndarray of shape (n_outputs,)
    Powers of two that y was divided by. Coefficients and intercepts are in these units.

offset_ : ndarray of shape (n_outputs,)
    Subtracted from y: the model is fitted to ``(y - offset_) / unit_``. Zero in double precision.

flat_ : bool
    Whether y was one-dimensional.

cv_results_ : dict of ndarray
    All points of the search: ``param_sigma``, ``param_alpha``, other searched parameters likewise,
    ``mean_test_score``, ``rank_test_score``, and ``n_rows``, the number of rows that the point was evaluated on. Not
    set with ``cv=None``.

jitter_ : float
    What was added to a diagonal to make it positive definite; 0 or tiny if the kernel is positive definite.

n_iter_.krylov : int
    Iterations with ``solver="krylov"``; 1 for other solvers.

n_iter_.logistic : int
    Iterations of the last fit, to all rows.

residual_ : float
    With ``solver="krylov"``: norm of the final residual relative to the right-hand side.

pruning_ : dict
    With ``prune``: ``n_rows``, ``n_kept``, the held-out ``score`` of the whole model, and ``pruned_score``.

moments_ : Moments
    After ``fit_stream`` or ``partial_fit``: sums over all rows. Other rows can be added to them or subtracted.

kept_ : Kept or None
    After ``fit_stream`` or ``partial_fit``: the sample of rows that is held out to choose alpha and to calibrate.

n_features_in_ : int
    Number of columns of X.

feature_names_in_ : ndarray of shape (n_features,)
    Names of the columns. Set if X has names that are all strings.
""")

#: Arguments of methods.
ARGUMENTS = _table("""
X : array-like, frame or sparse matrix of shape (n, n_features)
    Rows. NaN is a missing value, unless X is sparse; for text and categories see ``categories``. With
    ``kernel="precomputed"``, the (n, n) kernel matrix.

X.task : array-like, frame or sparse matrix of shape (n, n_features)
    Rows, with the task column if there is one. NaN is a missing value, unless X is sparse; for text and categories
    see ``categories``. With ``kernel="precomputed"``, the (n, n) kernel matrix.

X.new : array-like, frame or sparse matrix of shape (n, n_features)
    Rows; with ``kernel="precomputed"``, the kernel between them and all training rows.

X.new_task : array-like, frame or sparse matrix of shape (n, n_features)
    Rows, with the task column if there is one; with ``kernel="precomputed"``, the kernel between them and all
    training rows.

X.explained : array-like or sparse matrix of shape (n, n_features)
    Rows whose predictions are explained.

X.explained_task : array-like, frame or sparse matrix of shape (n, n_features)
    Rows whose predictions are explained, with the task column if there is one.

y.classes : array-like of shape (n,)
    Classes.

y.values : array-like of shape (n,) or (n, n_outputs)
    Regression targets. All outputs have the same hyperparameters and are solved for together.

sample_weight : array-like of shape (n,)
    Weights of the rows. A row of weight 2 counts like two equal rows, one of weight 0 like none. Integers are counts
    of observations; other weights are relative importances.

groups : array-like of shape (n,) or "duplicates"
    Rows of a group are held out together. "duplicates": rows with equal inputs form a group.

tasks : array-like of shape (n,)
    Task id of each row, any hashable value. Required unless X has a task column.

tasks.new : array-like of shape (n,) or a single id
    Task ids of the rows. Required unless X has a task column.

y.stream : array
    Targets, if ``source`` is an array.

target : str or list of str
    Target columns of files and frames.

features : list of str
    Feature columns of files and frames. All other columns by default.

weight : str or array
    Column of files and frames that holds the weights, or the weights if ``source`` is an array.

self : object
    The fitted estimator.

y.any : array-like of shape (n,) or (n, n_outputs)
    Classes, labels or regression targets, as in ``fit``.

classes : array-like
    All classes of a classifier, if some of them may come late.

top : int or None
    Number of training rows for each row of X, those with the largest effect on any score; None for all.

n_outputs : int
    If X is a shape: the number of outputs. It is the number of classes (by default 2), of regression targets (1), or
    of labels times their classes: 100 for 50 labels of two classes.

block_rows : int
    Number of rows of a block, if the source does not determine it.

class_prior : mapping, Series, array-like of shape (n_classes,) or "uniform"
    Class shares where the model is used, if they differ from those of the training rows (``class_prior_``): a mapping
    of classes to shares, or an array in the order of ``classes_``. See :mod:`leastwise.calibration.prior`, and
    :func:`leastwise.estimate_class_prior` for unknown shares.

class_prior.labels : mapping, Series, array-like of shape (T,), sequence of length T or "uniform"
    Class shares where the model is used, if they differ from those of the training rows (``class_prior_``): of the
    second class of each label, in the order of the labels or by name; of all classes for a label that has more than
    two. Labels that a mapping does not name keep theirs. See :mod:`leastwise.calibration.prior`.

coverage : float
    Probability that the true value is covered; above 0 and below 1.

method.set : {"lac", "aps", "random-aps"}
    "lac" gives the smallest sets. "aps" gives sets that grow with the difficulty of a row. "random-aps" is "aps" with
    randomised borders.

by_class : bool
    Whether the coverage is to hold within each class. A class with too few rows for that is in all sets.

allow_empty : bool
    Whether sets may be empty, for rows that are unlike all classes. Otherwise a set holds at least the most probable
    class.

random_state.set : int, RandomState or None
    Seed of "random-aps".

method.interval : {"auto", "jackknife+", "jackknife"}
    "jackknife+" uses the models without each fold (CV+ if folds hold several rows): intervals are wider where these
    differ. With ``adaptive=False`` and given hyperparameters they cover with a probability of at least
    ``2 coverage - 1`` for any distribution. It needs every training row as a centre, and an inverse of all rows,
    computed at the first call. "jackknife" uses the residuals alone. "auto" is "jackknife+" up to 4,000 training
    rows.

bounds : pair of float, optional
    The smallest and the largest possible target, such as ``(0, 10)``; either may be None. Predictions and ends of
    intervals are clipped to them, and a target outside is an error.

adaptive : bool
    Whether intervals are wider where held-out residuals are larger: by the predicted value, by region and by task, if
    the held-out rows show a clear difference. In simulations this leaves the coverage of all rows as it is; there is
    no proof of it. False gives one width for all rows ("jackknife").
""")

#: Sentences that continue an entry, and references. They are inserted as they are.
NOTES = {
    "fixed_size": 'A smaller number of centres is called a "fixed-size LS-SVM".',
    "no_bias": "The paper has no intercept.",
    "clip_signed": "None clips (F + 1) / 2 to [0, 1] and normalises it.",
    "softmax": "It is the softmax.",
    "close_tasks": """\
"auto" tries 0, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.998 and 1: functions of a linear kernel can be almost the same.""",
    "unseen_calibration": "Unseen tasks have a calibration of their own, fitted to tasks that are held out whole.",
    "task_folds": """\
Folds are stratified by task and class together. A splitter that needs groups is given the tasks if there are no other
groups. A fold may hold all rows of a task, which are then predicted from the other tasks.""",
    "task_auc": '"auc" is that of all rows pooled, and "task_auc" the mean over tasks.',
    "all_tasks": "The rows of all tasks count.",
    "with_task_column": "The task column is one of them.",
    "few_classes": "A task need not have all of them.",
    "shape_instead": "Or a shape such as ``(1_000_000, 20)``; the other data are then not needed.",
    "in_domain_ones": """\
Ones without calibration, with ``extrapolate=True``, and for kernels that are not functions of a distance.""",
    "decision": """\
Log-probabilities up to a constant for each row if the calibration is smooth; the probabilities themselves with
``calibration="isotonic"`` and ``None``. Log-probabilities with ``class_prior``.""",
    "decision_shape": "With two classes, second minus first; else a column for each class.",
    "prior_of_tasks": "They replace the class shares of all training rows, whatever the task.",
    "dask": """\
Arrays and frames of Dask, with y, sample_weight and tasks of Dask too, are fitted without being collected
(:doc:`/distributed`).""",
    "sugiyama_2010": """\
M. Sugiyama, Superfast-Trainable Multi-Class Probabilistic Classifier by Least-Squares Posterior Fitting, IEICE
Transactions on Information and Systems E93-D (10), 2690-2701, 2010.""",
    "simm_2011": """\
J. Simm, M. Sugiyama, T. Kato, Computationally Efficient Multi-task Learning with Least-squares Probabilistic
Classifiers, IPSJ Transactions on Computer Vision and Applications 3, 1-8, 2011.""",
    "nam_2012": """\
H. Nam, H. Hachiya, M. Sugiyama, Computationally Efficient Multi-label Classification by Least-Squares
Probabilistic Classifiers, 2012.""",
    "xu_2014": """\
S. Xu, X. An, X. Qiao, L. Zhu, Multi-task least-squares support vector machines, Multimedia Tools and Applications
71, 699-715, 2014.""",
}

ENTRIES = PARAMETERS | ATTRIBUTES | ARGUMENTS | NOTES
_PLACEHOLDER = re.compile(r"^( *)%\(([\w.]+)\)s$", re.MULTILINE)


def documented(cls: Any) -> Any:
    """Class decorator: fill the placeholders in the docstrings of a class and of its methods.

    Functions that the class body takes from other modules become methods with a name of their own, such as
    ``LSPC.plan``. A method with tasks that has no docstring takes that of the method without tasks that it overrides.
    """
    cls.__doc__ = filled(cls.__doc__, cls)
    for name, method in list(vars(cls).items()):
        function = getattr(method, "fn", method)  # available_if of scikit-learn keeps the function as fn
        if isinstance(function, FunctionType) and not name.startswith("_"):
            function = _as_method(function, cls, name)
            function.template = function.__doc__ or _inherited(cls, name)  # type: ignore[attr-defined]
            function.__doc__ = filled(function.template, function)  # type: ignore[attr-defined]
            setattr(cls, name, function if isinstance(method, FunctionType) else _guarded(method, function))
    return cls


def filled(doc: str | None, described: Any) -> str | None:
    """A docstring with entries in place of placeholders; None (``python -OO``) stays None."""
    if doc is None or "%(" not in doc:
        return doc
    parameters = inspect.signature(described).parameters

    def entry(match: re.Match) -> str:
        indent, key = match.groups()
        if key not in ENTRIES:
            raise ValueError(f"The docstring of {described.__qualname__} has an unknown placeholder %({key})s.")
        if key in NOTES:
            return textwrap.indent(NOTES[key], indent)
        name = key.partition(".")[0]
        head, _, body = ENTRIES[key].partition("\n")
        head = f"{name}{head.removeprefix(key)}{_default(parameters.get(name))}"
        return textwrap.indent(f"{head}\n{body}", indent)

    doc = _PLACEHOLDER.sub(entry, doc)
    if "%(" in doc:
        raise ValueError(f"In the docstring of {described.__qualname__}, a placeholder is not alone in its line.")
    return doc


#: What the docstring of a method with tasks has instead, if it is that of a method without tasks.
WITH_TASKS = {
    "%(X.new)s": "%(X.new_task)s\n        %(tasks.new)s",
    "%(class_prior)s": "%(class_prior)s\n            %(prior_of_tasks)s",
}


def _inherited(cls: Any, name: str) -> str | None:
    """The docstring of the method that this one overrides, with its placeholders, and with tasks."""
    overridden = next((vars(base)[name] for base in cls.__mro__[1:] if name in vars(base)), None)
    template = getattr(overridden, "template", None)
    for placeholder, with_tasks in WITH_TASKS.items():
        template = template and template.replace(placeholder, with_tasks)
    return template


def _default(parameter: inspect.Parameter | None) -> str:
    """The end of the line that describes a parameter."""
    if parameter is None or parameter.default is parameter.empty:
        return ""
    value = parameter.default
    return f', default="{value}"' if isinstance(value, str) else f", default={value!r}"


def _as_method(function: FunctionType, cls: Any, name: str) -> FunctionType:
    """The function itself if it was defined in the class body, else a copy that is named as a method of the class."""
    qualname = f"{cls.__qualname__}.{name}"
    if function.__qualname__ == qualname:
        return function
    own = FunctionType(function.__code__, function.__globals__, name, function.__defaults__, function.__closure__)
    own.__kwdefaults__, own.__annotations__ = function.__kwdefaults__, function.__annotations__
    own.__dict__.update(vars(function))
    own.__doc__, own.__module__, own.__qualname__ = function.__doc__, cls.__module__, qualname
    return own


def _guarded(guard: Any, function: FunctionType) -> Any:
    """A copy of the descriptor of ``available_if`` for another function."""
    guard = copy.copy(guard)
    guard.fn = function
    return update_wrapper(guard, function)
