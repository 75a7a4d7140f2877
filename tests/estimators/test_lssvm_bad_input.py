"""LS-SVMs: what is wrong is refused with words that say what to do; what is only odd is not."""

import warnings

import numpy as np
import pandas as pd
import pytest
from reference import rbf
from scipy import sparse

from leastwise import LSSVC, LSSVR, MultiTaskLSSVC, MultiTaskLSSVR

N = 36
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
TASK = np.arange(N) % 3
IDS = ["ash", "bay", "elm"]
NAMES = np.array(IDS)[TASK]
Y = np.sin(2 * X[:, 0]) + TASK + 0.2 * RNG.normal(size=N)
LABELS = (np.median(Y) < Y).astype(int)
FIXED = {"sigma": 1.0, "alpha": 0.05, "linear_weight": 1.0, "random_state": 0}


def svr(**changes):
    return LSSVR(**{**FIXED, **changes})


def svc(**changes):
    return LSSVC(**{**FIXED, **changes})


def task_svr(**changes):
    return MultiTaskLSSVR(**{**FIXED, "sharing": 0.5, "bias": "shared", **changes})


def task_svc(**changes):
    return MultiTaskLSSVC(**{**FIXED, "sharing": 0.5, "bias": "shared", **changes})


SINGLE, MULTI = [svr, svc], [task_svr, task_svc]
every = pytest.mark.parametrize("make", [*SINGLE, *MULTI])
regressors = pytest.mark.parametrize("make", [svr, task_svr])
classifiers = pytest.mark.parametrize("make", [svc, task_svc])
single = pytest.mark.parametrize("make", SINGLE)
multi = pytest.mark.parametrize("make", MULTI)


def target(make):
    return Y if make in (svr, task_svr) else LABELS


def fit(model, rows, y, tasks=NAMES, **more):
    """With tasks where the model has some."""
    if isinstance(model, MultiTaskLSSVR | MultiTaskLSSVC):
        more["tasks"] = tasks[: np.shape(rows)[0]] if np.ndim(tasks) else tasks
    return model.fit(rows, y, **more)


def predict(model, rows, tasks=NAMES):
    many = isinstance(model, MultiTaskLSSVR | MultiTaskLSSVC)
    return model.predict(rows, tasks[: np.shape(rows)[0]]) if many else model.predict(rows)


def fitted(model):
    return [name for name in vars(model) if name.endswith("_")]


def changed(A, value, row=3):
    """A copy with another value in one row."""
    A = np.array(A, dtype=float)
    A[row] = value
    return A


# --------------------------------------------------------------------- parameters

PARAMETERS = {
    "sigma 0": ({"sigma": 0}, "sigma contains 0: every value must be a finite number above 0"),
    "sigma text": ({"sigma": "wide"}, "sigma='wide' is not known: use 'auto', a positive number, or several"),
    "sigma none": ({"sigma": None}, "sigma contains None"),
    "alpha negative": ({"alpha": -1.0}, "alpha contains -1.0: every value must be a finite number above 0"),
    "alpha nan": ({"alpha": [0.1, np.nan]}, "alpha contains nan"),
    "alpha empty": ({"alpha": []}, "alpha is an empty sequence"),
    "alpha iterator": ({"alpha": iter([0.1])}, "alpha is an iterator.*give a list"),
    "kernel": ({"kernel": "cubic"}, r"Unknown kernel 'cubic': use one of \[.*'rbf'.*\], a sum such as 'rbf\+linear'"),
    "kernel number": ({"kernel": 3}, "Unknown kernel 3"),
    "linear_weight": ({"linear_weight": -1}, "linear_weight=-1: every value must be a number from 0 to inf"),
    "linear_weight text": (
        {"linear_weight": "some"},
        "linear_weight='some' is not known: use 'auto', a number from 0",
    ),
    "bias text": ({"bias": "own"}, "bias='own' is not known: use "),
    "bias true": ({"bias": True}, "bias=True is not known"),
    "solver": ({"solver": "lu"}, r"solver='lu' is not known: use one of \['auto', .*'krylov'\]"),
    "cv number": ({"cv": 1}, "cv=1 folds: with 36 rows use a number from 2 to 36"),
    "cv large": ({"cv": 37}, "cv=37 folds: with 36 rows use a number from 2 to 36"),
    "cv text": ({"cv": "kfold"}, "cv='kfold' is not known: use 'loo', a number of folds, or a splitter"),
    "prune 0": ({"prune": 0}, r"prune=0 must be None, a share of the rows.*above 0 and below 1.*or their number"),
    "prune 1.0": ({"prune": 1.0}, "prune=1.0 must be None, a share of the rows"),
    "prune negative": ({"prune": -3}, "prune=-3 must be None, a share"),
    "prune text": ({"prune": "x"}, "prune='x' must be None, a share"),
    "prune 1.5": ({"prune": 1.5}, "prune=1.5 must be None, a share"),
    "prune nan": ({"prune": np.nan}, "prune=nan must be None, a share"),
    "prune true": ({"prune": True}, "prune=True must be None, a share"),
    "prune and centres": ({"prune": 0.5, "n_centers": 5}, "prune= removes rows that are centres.*n_centers"),
    "prune and krylov": ({"prune": 0.5, "solver": "krylov"}, "prune refits repeatedly"),
    "krylov and centres": ({"n_centers": 5, "solver": "krylov"}, "solver='krylov' uses all rows as centres"),
    "krylov and kernel": ({"kernel": "precomputed", "solver": "krylov"}, "solver='krylov' .*give rows"),
    "tol 0": ({"tol": 0}, "tol.* 0.* finite number above 0"),
    "tol text": ({"tol": "small"}, "tol.*'small'.* finite number above 0"),
    "max_iter 0": ({"max_iter": 0}, "max_iter=0 must be .*a whole number of 1 or more"),
    "max_iter none": ({"max_iter": None}, "max_iter=None must be a whole number of 1 or more"),
    "max_iter 1.5": ({"max_iter": 1.5}, "max_iter=1.5 must be .*whole number"),
    "n_centers 0": ({"n_centers": 0}, "n_centers=0 must be None or a whole number of 1 or more"),
    "centers text": ({"centers": "grid"}, r"centers='grid' is not known: use one of \['random', 'kmeans'"),
    "kmeans": ({"centers": "kmeans"}, "centers='kmeans' needs the number of centres: give n_centers"),
    "search_rows": ({"search_rows": 0}, "search_rows=0 must be None or a whole number"),
    "scoring": ({"scoring": "best"}, "scoring='best' is not known: use one of"),
    "nothing held out": ({"cv": None, "alpha": "auto"}, "cv=None holds nothing out.*give sigma and alpha as numbers"),
    "no grid": ({"cv": None, "sigma": [1.0, 2.0]}, "cv=None holds nothing out.*give sigma and alpha as numbers"),
    "precomputed": ({"kernel": "precomputed"}, r"needs a square matrix.*\(36, 2\)"),
    "degree": ({"kernel": "poly", "degree": 0}, "degree=0 must be an integer of 1 or more"),
}


@every
@pytest.mark.parametrize("case", PARAMETERS)
def test_parameters(make, case):
    parameters, message = PARAMETERS[case]
    model = make(**parameters)
    with pytest.raises(ValueError, match=message):
        fit(model, X, target(make))
    assert not fitted(model)


@single
@pytest.mark.parametrize("bias", ["task", "auto", "shrunk", 0.3])
def test_a_single_task_has_no_intercepts_of_tasks(make, bias):
    with pytest.raises(ValueError, match=rf"bias={bias!r} is not known: use one of \['shared', None\]"):
        make(bias=bias).fit(X, target(make))


@multi
@pytest.mark.parametrize("bias", [-1, -0.1, np.nan])
def test_a_spread_is_not_negative(make, bias):
    """The message says that a number is possible, and which."""
    with pytest.raises(ValueError, match=rf"bias={bias!r}.*number.*0"):
        make(bias=bias).fit(X, target(make), tasks=NAMES)


@multi
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sharing": -0.1}, r"sharing=-0\.1 is not possible: use 'auto', a number from 0 .* to 1"),
        ({"sharing": "half"}, "sharing='half' is not known"),
        ({"unknown_task": "nearest"}, "unknown_task='nearest' is not known"),
        ({"similarity": "cosine"}, "similarity='cosine' is not known"),
        ({"solver": "arrow", "kernel": "rbf"}, "solver='arrow' needs few basis functions.*give n_centers or centers"),
        ({"solver": "cholesky"}, r"solver='cholesky' is not known: use one of \['auto', 'dual', 'arrow', 'krylov'\]"),
        ({"cv": None, "sharing": "auto"}, "cv=None holds nothing out.*give a number for sharing"),
        ({"task_penalty": [1, 2]}, r"task_penalty has shape \(2,\).*each of the 3 tasks"),
    ],
    ids=str,
)
def test_parameters_of_tasks(make, parameters, message):
    more = {} if make is task_svr else {"calibration": None}
    with pytest.raises(ValueError, match=message):
        make(**more, **parameters).fit(X, target(make), tasks=NAMES)


@pytest.mark.parametrize("parameters", [{"solver": "arrow", "kernel": "rbf"}], ids=str)
@multi
def test_messages_name_parameters_that_exist(make, parameters):
    with pytest.raises(ValueError) as caught:
        make(**parameters).fit(X, target(make), tasks=NAMES)
    assert "norm=" not in str(caught.value)
    assert "norm" not in make().get_params()


@multi
@pytest.mark.parametrize("bias", ["auto", "shrunk"])
def test_nothing_held_out_no_spread_to_choose(make, bias):
    model = make(bias=bias, cv=None, **({} if make is task_svr else {"calibration": None}))
    with pytest.raises(
        ValueError, match=r"cv=None holds nothing out.*bias must be 'task', 'shared', None or a number"
    ):
        model.fit(X, target(make), tasks=NAMES)


@every
def test_nothing_held_out_no_weight_to_choose(make):
    model = make(cv=None, kernel="rbf+linear", linear_weight="auto")
    model = model if make in (svr, task_svr) else model.set_params(calibration=None)
    with pytest.raises(ValueError, match=r"cv=None holds nothing out.*give one linear_weight"):
        fit(model, X, target(make))


@classifiers
def test_parameters_of_classes(make):
    with pytest.raises(ValueError, match=r"calibration='platt' is not known"):
        fit(make(calibration="platt"), X, LABELS)
    with pytest.raises(ValueError, match=r"cv=None holds nothing out.*calibration=None"):
        fit(make(cv=None), X, LABELS)
    with pytest.raises(ValueError, match=r"class_weight=.*must be None, 'balanced' or a dict"):
        fit(make(class_weight={"x": 1}), X, LABELS)


# --------------------------------------------------------------------------- data

DATA = {
    "nan in sparse X": ((sparse.csr_matrix(changed(X, np.nan)), None), "X contains NaN, and is sparse"),
    "inf in X": ((changed(X, np.inf), None), "X contains infinity"),
    "huge X": ((changed(X, 1e300), None), r"values up to 1e\+300, whose squares overflow.*StandardScaler"),
    "text in X": ((np.full((N, 2), "a"), None), "holds text, such as"),
    "one dimension": ((X[:, 0], None), "Expected 2D array"),
    "no rows": ((X[:0], slice(0, 0)), r"0 sample\(s\)"),
    "no columns": ((X[:, :0], None), r"0 feature\(s\)"),
    "lengths": ((X, slice(0, -1)), "inconsistent numbers of samples"),
}


@every
@pytest.mark.parametrize("case", DATA)
def test_data(make, case):
    (rows, part), message = DATA[case]
    model, y = make(), target(make)
    with pytest.raises(ValueError, match=message):
        fit(model, rows, y if part is None else y[part])
    assert not fitted(model)


TARGETS = {
    "nan": (changed(Y, np.nan), "y contains NaN"),
    "inf": (changed(Y, np.inf), "y contains infinity"),
    "three dimensions": (np.ones((N, 2, 2)), "dim 3"),
    "no columns": (np.ones((N, 0)), "0 feature"),
    "none": (None, "requires y to be passed, but the target y is None"),
    "complex": (Y + 1j, "Complex data not supported"),
    "nan in a table": (np.column_stack([Y, changed(Y, np.nan)]), "NaN"),
    "objects": (np.array(["a", 1.0] * (N // 2), dtype=object), "y holds text, such as 'a'"),
}


@regressors
@pytest.mark.parametrize("case", TARGETS)
def test_quantities(make, case):
    y, message = TARGETS[case]
    model = make()
    with pytest.raises(ValueError, match=message):
        fit(model, X, y)
    assert not fitted(model)


@regressors
def test_text_is_no_quantity(make):
    """The message speaks of y, and of the classifier."""
    with pytest.raises(ValueError, match=r"y .*(LSSVC|classif|numbers)"):
        fit(make(), X, np.where(Y > 0, "high", "low"))


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@classifiers
def test_classes(make):
    with pytest.raises(ValueError, match=r"one class only.*two classes or more"):
        fit(make(), X, np.ones(N))
    with pytest.raises(ValueError, match="Unknown label type"):
        fit(make(), X, Y)
    with pytest.raises(ValueError, match="a class for every row"):
        fit(make(), X, np.arange(N))


@every
def test_weights(make):
    for weights, message in (
        (np.zeros(N), "sums to 0|at least one non-zero"),
        (changed(np.ones(N), -1), "1 negative values"),
        (np.ones(N - 1), "shape"),
        (changed(np.ones(N), np.nan), "NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(make(), X, target(make), sample_weight=weights)


@every
def test_groups(make):
    with pytest.raises(ValueError, match="only one group"):
        fit(make(), X, target(make), groups=np.zeros(N))
    with pytest.raises(ValueError, match=r"groups has shape \(3,\)"):
        fit(make(), X, target(make), groups=[1, 2, 3])
    with pytest.raises(ValueError, match="missing labels"):
        fit(make(), X, target(make), groups=[None, *range(N - 1)])


@every
def test_wrong_rows_at_prediction(make):
    model = fit(make(), X, target(make))
    for rows, message in (
        (X[:, :1], "1 features"),
        (X[:0], r"0 sample\(s\)"),
        (changed(X, np.inf), "infinity"),
        (X * 1e300, "squares overflow"),
        (X[0], "Expected 2D array"),
    ):
        with pytest.raises(ValueError, match=message):
            predict(model, rows)


# -------------------------------------------------------------------------- tasks


@multi
def test_tasks_are_missing(make):
    name = make().__class__.__name__
    with pytest.raises(ValueError, match=rf"{name} needs the task of each row.*Without tasks, use {name[9:]}"):
        make().fit(X, target(make))
    model = make().fit(X, target(make), tasks=NAMES)
    with pytest.raises(ValueError, match="needs the task of each row"):
        model.predict(X)
    with pytest.raises(ValueError, match="1 are missing"):
        make().fit(X, target(make), tasks=[None, *NAMES[1:]])
    with pytest.raises(ValueError, match=r"tasks has shape \(35,\)"):
        make().fit(X, target(make), tasks=NAMES[1:])
    with pytest.raises(ValueError, match="'farm' is not among"):
        make(task_column="farm").fit(pd.DataFrame(X, columns=["a", "b"]), target(make))


def one_row_alone():
    return np.array(["lone", *NAMES[1:]])


@multi
def test_a_task_of_one_row_has_no_free_intercept_when_it_is_held_out(make):
    model = make(bias="task")
    message = (
        r"bias='task' gives every task an unpenalised intercept.*1 of 4.*, such as 'lone' with 1 of 36 rows.*'shrunk'"
    )
    with pytest.raises(ValueError, match=message):
        model.fit(X, target(make), tasks=one_row_alone())
    assert not fitted(model)


@multi
def test_the_task_is_named_as_it_was_given(make):
    """Not np.int64(9) or np.str_('lone')."""
    for tasks, name in ((np.array([9, *TASK[1:]]), "such as 9 with"), (one_row_alone(), "such as 'lone' with")):
        with pytest.raises(ValueError, match=name):
            make(bias="task").fit(X, target(make), tasks=tasks)


@multi
@pytest.mark.parametrize("bias", ["auto", "shrunk", "shared", 0.3, None])
def test_a_task_of_one_row_has_other_intercepts(make, bias):
    tasks = one_row_alone()
    model = make(bias=bias).fit(X, target(make), tasks=tasks)
    assert np.isfinite(model.intercept_ratio_)
    assert len(model.predict(X, tasks)) == N


@multi
def test_a_task_of_one_row_has_a_free_intercept_when_nothing_is_held_out(make):
    more = {} if make is task_svr else {"calibration": None}
    model = make(bias="task", cv=None, **more).fit(X, target(make), tasks=one_row_alone())
    if make is task_svr:
        assert model.predict(X[:1], "lone")[0] == pytest.approx(Y[0])


@multi
def test_copies_of_one_row_are_one_row_where_they_are_held_out_together(make):
    rows, tasks = np.vstack([X, X[:1]]), np.array(["lone", *NAMES[1:], "lone"])
    with pytest.raises(ValueError, match=r"lone.* with 2 of 37 rows"):
        make(bias="task").fit(rows, np.append(target(make), target(make)[0]), tasks=tasks, groups="duplicates")
    make(bias="task").fit(rows, np.append(target(make), target(make)[0]), tasks=tasks)


@multi
def test_a_fold_that_takes_a_task_whole(make):
    splits = [(np.flatnonzero(t != TASK), np.flatnonzero(t == TASK)) for t in range(3)]
    with pytest.raises(
        ValueError, match=r"contain all rows of a task \(3 of 3\), such as 'ash'.* a cv that keeps a row of each task"
    ):
        make(bias="task", cv=splits).fit(X, target(make), tasks=np.array(IDS)[TASK])
    model = make(bias="auto", cv=splits).fit(X, target(make), tasks=NAMES)
    assert np.isfinite(model.intercept_ratio_)


@multi
@pytest.mark.parametrize("bias", ["auto", "shared", 0.3, None])
@pytest.mark.parametrize("sharing", [0.0, 0.5, 1.0])
def test_every_row_its_own_task(make, bias, sharing):
    model = make(bias=bias, sharing=sharing).fit(X, target(make), tasks=np.arange(N))
    assert np.isfinite(np.asarray(model.predict(X, np.arange(N)), dtype=float)).all()


@multi
def test_unknown_tasks(make):
    strict = make(unknown_task="error").fit(X, target(make), tasks=NAMES)
    with pytest.raises(ValueError, match=r"1 rows belong to tasks that were not in the training data"):
        strict.predict(X[:1], "oak")
    with pytest.warns(UserWarning, match="a known task of another type looks the same"):
        make().fit(X, target(make), tasks=TASK).predict(X, TASK.astype(str))


# ------------------------------------------------------------------ odd, but fine


@regressors
@pytest.mark.parametrize("value", [0.0, 7.0, -1e9, 0.1])
def test_one_value_is_predicted_and_wondered_at(make, value):
    with pytest.warns(UserWarning, match="y is constant.*nothing else to learn"):
        model = fit(make(kernel="rbf"), X, np.full(N, value))
    np.testing.assert_allclose(predict(model, X), value, rtol=1e-9, atol=1e-12)


@regressors
def test_one_value_with_everything_to_choose(make):
    auto = {"sigma": "auto", "alpha": "auto", "linear_weight": "auto"}
    with pytest.warns(UserWarning, match="y is constant"):
        model = fit(make(**auto), X, np.full(N, 3.3))
    np.testing.assert_allclose(predict(model, X), 3.3, rtol=1e-6)


@regressors
def test_one_of_two_outputs_with_one_value(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit(make(), X, np.column_stack([Y, np.full(N, 5.0)]))
    np.testing.assert_allclose(predict(model, X)[:, 1], 5, rtol=1e-6)


@every
def test_two_rows(make):
    y = target(make)
    pair = [int(np.argmin(y)), int(np.argmax(y))]
    model = fit(make(kernel="rbf"), X[pair], y[pair], tasks=["ash", "ash"])
    assert np.isfinite(np.asarray(predict(model, X[pair], ["ash", "ash"]), dtype=float)).all()


@regressors
def test_two_rows_and_everything_to_choose(make):
    auto = {"sigma": "auto", "alpha": "auto", "linear_weight": "auto"}
    model = fit(make(**auto), X[:2], Y[:2], tasks=["ash", "ash"])
    assert np.isfinite(predict(model, X, NAMES)).all()


@regressors
def test_one_row(make):
    """Nothing can be held out; without that the row is all there is to say."""
    with pytest.raises(ValueError) as caught:
        fit(make(), X[:1], Y[:1])
    assert "class" not in str(caught.value)  # there are none
    model = fit(make(cv=None), X[:1], Y[:1])
    np.testing.assert_allclose(predict(model, X[:1]), Y[:1])


def test_all_rows_equal():
    with pytest.raises(ValueError, match="All rows of X are equal") as caught:
        svr(sigma="auto").fit(np.ones((N, 2)), Y)
    assert "class" not in str(caught.value)  # there are none
    model = svr(kernel="rbf", alpha=1e-9).fit(np.ones((N, 2)), Y)
    np.testing.assert_allclose(model.predict(np.ones((1, 2))), Y.mean(), rtol=1e-6)


def test_all_rows_equal_in_several_tasks():
    """There are the means of the tasks to learn."""
    model = task_svr(cv=3, bias="task").fit(np.ones((N, 2)), Y, tasks=NAMES)
    means = [Y[t == TASK].mean() for t in range(3)]
    np.testing.assert_allclose(model.predict(np.ones((3, 2)), IDS), means, rtol=1e-6)


@every
def test_a_constant_column_changes_nothing(make):
    wide = np.column_stack([X, np.full(N, 3.0)])
    kernel = {"kernel": "rbf"}
    a, b = fit(make(**kernel), X, target(make)), fit(make(**kernel), wide, target(make))
    np.testing.assert_allclose(predict(a, X), predict(b, wide), atol=1e-8)


@every
def test_duplicated_rows(make):
    y = target(make)
    model = fit(make(), np.vstack([X, X]), np.r_[y, y], tasks=np.r_[NAMES, NAMES], groups="duplicates")
    np.testing.assert_allclose(predict(model, X), predict(fit(make(), X, y), X), atol=1e-7)


@regressors
def test_duplicated_rows_of_other_values(make):
    """The ridge decides; the same place cannot have two values."""
    model = fit(make(), np.vstack([X, X]), np.r_[Y, -Y], tasks=np.r_[NAMES, NAMES])
    np.testing.assert_allclose(predict(model, X), 0, atol=1e-8)


@every
def test_more_columns_than_rows(make):
    wide = np.random.default_rng(0).normal(size=(N, 200))
    for kernel in ("rbf", "linear", "rbf+linear"):
        model = fit(make(kernel=kernel, sigma=15.0), wide, target(make))
        assert np.isfinite(np.asarray(predict(model, wide), dtype=float)).all()


@every
@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.parametrize("scale", [None, "auto"])
def test_units_of_features(make, unit, scale):
    auto = {"sigma": "auto", "alpha": "auto", "scale": scale}
    y = target(make)
    plain, model = fit(make(**auto), X, y), fit(make(**auto), unit * X, y)
    assert model.sigma_ == pytest.approx(plain.sigma_ * (unit if scale is None else 1), rel=1e-6)


@every
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.csr_array])
def test_sparse_rows(make, form):
    model = fit(make(), form(X), target(make))
    assert len(predict(model, form(X))) == N


@every
def test_lists(make):
    model = fit(make(), X.tolist(), target(make).tolist())
    np.testing.assert_allclose(predict(model, X.tolist()), predict(fit(make(), X, target(make)), X), atol=1e-8)


@every
def test_float32(make):
    model = fit(make(), X.astype(np.float32), target(make))
    assert model.intercept_.dtype == np.float32
    assert len(predict(model, X.astype(np.float32))) == N
    assert len(predict(model, X)) == N


@every
def test_whole_numbers_in_X(make):
    rows = np.round(3 * X).astype(int)
    assert len(predict(fit(make(), rows, target(make)), rows)) == N


@every
def test_a_kernel_with_negative_eigenvalues_says_so(make):
    K = rbf(X, X, 1.0) - 0.3 * np.eye(N)
    with pytest.warns(UserWarning, match="not positive semi-definite") as caught:
        model = fit(make(kernel="precomputed", alpha=0.01), K, target(make))
    assert model.jitter_ > 0
    assert "norm=" not in str(caught[0].message)  # there is no such parameter


# -------------------------------------------------------------------- failed fits


@every
def test_a_failed_fit_keeps_the_old_model(make):
    model = fit(make(), X, target(make))
    before, P = dict(vars(model)), predict(model, X)
    other = target(make)[::-1]
    wrong = [
        (changed(X, np.inf), other, {}),
        (X[:, :1], changed(Y, np.nan), {}),
        (X[:, :1], other, {"sample_weight": np.zeros(N)}),
        (X[:, :1], other, {"groups": np.ones(N)}),
        (X * 1e300, other, {}),
    ]
    for rows, y, more in wrong:
        with pytest.raises(ValueError):
            fit(model, rows, y, **more)
    for parameters in ({"alpha": -1.0}, {"prune": "x"}, {"scoring": "best"}, {"n_centers": 5, "prune": 0.5}):
        old = {name: getattr(model, name) for name in parameters}
        with pytest.raises(ValueError):
            fit(model.set_params(**parameters), X[:, :1], other)
        model.set_params(**old)
    assert set(vars(model)) == set(before)
    np.testing.assert_array_equal(predict(model, X), P)


@multi
def test_a_fit_that_fails_late_keeps_the_old_model(make):
    model = make().fit(X, target(make), tasks=NAMES)
    P = model.predict(X, NAMES)
    with pytest.raises(ValueError, match="unpenalised intercept"):
        model.set_params(bias="task").fit(X[:, :1], target(make), tasks=one_row_alone())
    assert model.tasks_.tolist() == IDS
    np.testing.assert_array_equal(model.predict(X, NAMES), P)


def test_a_scorer_that_fails_keeps_the_old_model():
    model = svr().fit(X, Y)
    P = model.predict(X)

    def broken(estimator, rows, y):
        raise KeyError("column")

    with pytest.raises(KeyError, match="column"):
        model.set_params(scoring=broken).fit(X[:, :1], Y)
    np.testing.assert_array_equal(model.predict(X), P)


@pytest.mark.filterwarnings("ignore:prune=")
@every
def test_a_new_fit_leaves_nothing_of_the_old_one(make):
    model = fit(make(prune=0.5), X, target(make))
    assert hasattr(model, "pruning_")
    fit(model.set_params(prune=None, solver="krylov", kernel="rbf"), X, target(make))
    assert not hasattr(model, "pruning_")
    assert hasattr(model, "residual_")
    fit(model.set_params(solver="auto"), X, target(make))
    assert not hasattr(model, "residual_")
    if make in (svr, task_svr):
        fit(model.set_params(cv=None), X, target(make))
        assert not hasattr(model, "heldout_prediction_")
        assert not hasattr(model, "residuals_")
