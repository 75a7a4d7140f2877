"""Every estimator just above every limit beyond which it works in another way.

The limits are constants of modules. Here they are lowered, so that small data pass them: what only large data reach
is run too.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import PLAIN, PLAIN_SUM
from limit_cases import LEVELS, LIMITS, lower
from scipy import sparse
from sklearn.base import is_regressor

from leastwise import (
    LSPC,
    LSSVC,
    LSSVR,
    KernelLogisticRegression,
    MultiLabelLSPC,
    MultiTaskKernelLogisticRegression,
    MultiTaskLSPC,
    MultiTaskLSSVC,
    MultiTaskLSSVR,
)
from leastwise.datasets import make_related_tasks
from leastwise.solvers.task_evaluators import TaskEvaluator
from leastwise.solvers.work import rows_to_refine
from leastwise.tables import TableModel
from leastwise.utils.unwrap import core


def rows(n=240, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[: n // 10] = X[n // 10 : 2 * (n // 10)]  # some rows twice
    f = np.sin(2 * X[:, 0]) + X[:, 1]
    return X, f + 0.3 * rng.normal(size=n), rng


def single(kind):
    X, f, _ = rows()
    return X, f if kind == "values" else np.digitize(f, [-0.5, 0.7])


def tasks(kind, sizes):
    offset = 1.0 if kind == "regression" else 0.0
    data = make_related_tasks(12, 20, n_features=4, kind=kind, offset=offset, random_state=0)
    keep = np.arange(240) if sizes != "unequal" else np.flatnonzero(np.arange(240) % 20 <= data.task + 4)
    return data.X[keep], data.y[keep], data.task[keep]


def labels(gaps):
    X, f, rng = rows()
    Y = (np.column_stack([f, X[:, 0], X[:, 1] - X[:, 2], X[:, 3]]) + 0.3 * rng.normal(size=(240, 4)) > 0).astype(
        float
    )
    if gaps:
        Y[rng.random(Y.shape) < 0.2] = np.nan
    return X, Y


def check(model, X, y, **given):
    """A fit that ends in a model whose answers are numbers, with held-out scores of some rows at least."""
    beside = {"tasks": given["tasks"]} if "tasks" in given else {}
    with warnings.catch_warnings():  # iterations may stop early here; that is another matter
        warnings.filterwarnings("ignore", "solver='krylov' stopped|Conjugate gradients stopped|A refit|The fit")
        warnings.filterwarnings("ignore", "The kernel matrix is not positive")
        model.fit(X, y, **given)
    answers = model.predict(X, **beside) if is_regressor(model) else model.predict_proba(X, **beside)
    assert np.isfinite(answers).all()
    if not is_regressor(model):
        assert (answers >= 0).all()
        assert (answers <= 1).all()
    name = "heldout_prediction_" if is_regressor(model) else "heldout_proba_"
    assert np.isfinite(np.asarray(getattr(model, name))).any()
    return answers


def made(make, options):
    """A model with a kernel of the columns as they are: its solvers are the subject."""
    inputs = PLAIN_SUM if "SVR" in make.__name__ else PLAIN
    return make(**{**inputs, **options}, random_state=0)


#: How the rows are given.
FORMS = {
    "dense": lambda X, n: (X, {}),
    "float32": lambda X, n: (X.astype(np.float32), {}),
    "sparse": lambda X, n: (sparse.csr_matrix(np.where(np.abs(X) < 0.3, 0, X)), {}),
    "weights": lambda X, n: (X, {"sample_weight": np.linspace(0.2, 3, n)}),
    "groups": lambda X, n: (X, {"groups": np.arange(n) // 4}),
    "large groups": lambda X, n: (X, {"groups": np.arange(n) % 6}),
}
SINGLE = [
    (LSPC, {}),
    (LSPC, {"norm": "coefficients"}),
    (LSPC, {"bias": None}),
    (LSPC, {"basis": "class"}),
    (LSPC, {"kernel": "linear"}),
    (LSPC, {"n_centers": 30}),
    (LSPC, {"n_centers": 30, "cv": 3}),
    (LSPC, {"n_centers": 30, "centers": "kmeans"}),
    (LSPC, {"n_centers": 30, "centers": "kmeans++"}),
    (LSPC, {"n_centers": 30, "centers": "leverage"}),
    (LSPC, {"n_centers": 30, "solver": "sgd", "alpha": 1e-2, "max_passes": 1000}),
    (LSSVC, {}),
    (LSSVC, {"kernel": "rbf+linear"}),
    (LSSVC, {"kernel": "linear"}),
    (LSSVC, {"prune": 0.5}),
    (LSSVR, {}),
    (LSSVR, {"kernel": "rbf+linear"}),
    (LSSVR, {"kernel": "rbf+linear", "linear_weight": [0.1, 1]}),
    (LSSVR, {"kernel": "linear"}),
    (LSSVR, {"bias": None, "scoring": "r2"}),
    (LSSVR, {"n_centers": 30}),
    (KernelLogisticRegression, {"sigma": 2.0, "alpha": [1e-3, 1e-2]}),
]
TASKS = [
    (MultiTaskLSPC, {}),
    (MultiTaskLSPC, {"norm": "coefficients"}),
    (MultiTaskLSPC, {"bias": None}),
    (MultiTaskLSPC, {"n_centers": 30}),
    (MultiTaskLSPC, {"n_centers": 30, "centers": "task"}),
    (MultiTaskLSPC, {"kernel": "linear"}),
    (MultiTaskLSPC, {"similarity": "learned"}),
    (MultiTaskLSPC, {"similarity": "correlation", "sharing": 0.5}),
    (MultiTaskLSPC, {"similarity": "inputs", "sharing": 0.5}),
    (MultiTaskLSSVC, {}),
    (MultiTaskLSSVC, {"kernel": "rbf+linear"}),
    (MultiTaskLSSVC, {"bias": "shared"}),
    (MultiTaskLSSVC, {"bias": "task", "n_centers": 30}),
    (MultiTaskLSSVC, {"kernel": "linear"}),
    (MultiTaskLSSVR, {}),
    (MultiTaskLSSVR, {"kernel": "rbf"}),
    (MultiTaskLSSVR, {"kernel": "linear"}),
    (MultiTaskLSSVR, {"kernel": "linear", "solver": "dual"}),
    (MultiTaskLSSVR, {"bias": "task"}),
    (MultiTaskLSSVR, {"bias": None, "n_centers": 30}),
    (MultiTaskLSSVR, {"scoring": "r2", "linear_weight": [1, np.inf]}),
    (MultiTaskLSSVR, {"similarity": "learned", "kernel": "rbf"}),
    (MultiTaskKernelLogisticRegression, {"sigma": 2.0, "alpha": 1e-2, "sharing": 0.5}),
]
LABELS = [
    (options, gaps)
    for gaps in (False, True)
    for options in (
        {},
        {"norm": "coefficients"},
        {"bias": None},
        {"n_centers": 30},
        {"similarity": "shared"},
        {"similarity": "correlation", "threshold": "auto"},
        {"kernel": "linear", "alpha": 1e-2},
    )
]


def crossed(cases, forms):
    """Every case with dense rows and all limits lowered; that with the default options with all forms, and levels."""
    found = []
    for case in cases:
        name = " ".join([getattr(part, "__name__", str(part)) for part in case if part != {}])
        wide = [("dense", "search"), *((form, "all") for form in forms)] if {} in case else [("dense", "all")]
        found += [pytest.param(*case, *way, id=" ".join([name, *way])) for way in wide]
    return found


@pytest.mark.parametrize(("make", "options", "form", "level"), crossed(SINGLE, FORMS))
def test_one_task(make, options, form, level, monkeypatch):
    lower(monkeypatch, *LEVELS[level])
    X, y = single("values" if make is LSSVR else "classes")
    X, given = FORMS[form](X, len(y))
    check(made(make, options), X, y, **given)


@pytest.mark.parametrize(("make", "options", "form", "level"), crossed(TASKS, [*FORMS, "unequal"]))
def test_many_tasks(make, options, form, level, monkeypatch):
    lower(monkeypatch, *LEVELS[level])
    X, y, task = tasks("regression" if make is MultiTaskLSSVR else "classification", form)
    X, given = FORMS.get(form, FORMS["dense"])(X, len(y))
    if "groups" in given:
        given["groups"] = 100 * task + given["groups"]  # those of several tasks are refused where a sample is solved
    check(made(make, options), X, y, tasks=task, **given)


@pytest.mark.parametrize(("options", "gaps", "form", "level"), crossed(LABELS, FORMS))
def test_many_labels(options, gaps, form, level, monkeypatch):
    lower(monkeypatch, *LEVELS[level])
    X, Y = labels(gaps)
    X, given = FORMS[form](X, len(Y))
    check(made(MultiLabelLSPC, options), X, Y, **given)


@pytest.mark.parametrize("kind", ["classes", "numbers", "labels"])
def test_tables(kind, monkeypatch):
    lower(monkeypatch)
    X, f = single("values")
    table = pd.DataFrame(X, columns=list("abcd")).assign(line=np.where(X[:, 3] > 0, "north", "south"))
    if kind == "labels":
        table = table.assign(one=(f > 0).astype(int), two=(X[:, 0] > 0).astype(int))
        model = TableModel(labels=["one", "two"]).fit(table)
    else:
        table["target"] = f if kind == "numbers" else np.where(f > 0, "yes", "no")
        model = TableModel(target="target").fit(table)
    if kind != "numbers":
        assert core(model.model_).centers_.shape[0] == LIMITS["tables.planning.CENTERS"][0]
    assert len(model.predict_table(table)) == len(table)


@pytest.mark.parametrize("make", [LSPC, LSSVC, LSSVR, MultiLabelLSPC], ids=lambda make: make.__name__)
def test_streams(make, monkeypatch):
    lower(monkeypatch)
    X, y = labels(False) if make is MultiLabelLSPC else single("values" if make is LSSVR else "classes")
    model = make(random_state=0).fit_stream(X, y, keep_rows=80, block_rows=50)
    assert model.centers_.shape[0] == LIMITS["fitting.sums.STREAM_CENTERS"]
    assert np.isfinite(model.scores(X) if make is not LSSVR else model.predict(X)).all()


@pytest.mark.parametrize("make", [MultiTaskLSPC, MultiTaskLSSVC, MultiTaskLSSVR], ids=lambda make: make.__name__)
def test_streams_of_many_tasks(make, monkeypatch):
    lower(monkeypatch)
    X, y, task = tasks("regression" if make is MultiTaskLSSVR else "classification", "unequal")
    model = make(n_centers=20, kernel="rbf", random_state=0).fit_stream(X, y, task=task, block_rows=50)
    assert np.isfinite(model.predict(X, tasks=task) if make is MultiTaskLSSVR else model.scores(X, tasks=task)).all()


def test_the_limits_are_passed(monkeypatch):
    """Otherwise nothing here would be a test."""
    lower(monkeypatch)
    X, y = single("classes")
    assert LSPC().plan(X, y).solver == "krylov"
    assert LSPC(n_centers=30).plan(X, y).solver == "moments"
    assert LSSVR().plan(X, X[:, 0]).solver == "krylov"
    for gaps in (False, True):
        assert MultiLabelLSPC().plan(*labels(gaps)).solver == "cg"
    X, y, task = tasks("regression", "equal")
    assert MultiTaskLSSVR().plan(X, y, tasks=task).solver == "krylov"
    assert MultiTaskLSPC(n_centers=30).plan(X, (y > 0).astype(int), tasks=task).solver == "arrow"


def test_a_linear_rival_that_is_searched_on_some_tasks(monkeypatch):
    """By iterations the sum of kernels competes with its linear part, which has a weight of infinity alone."""
    lower(monkeypatch)
    X, y, task = tasks("regression", "equal")
    seen, real = [], TaskEvaluator.with_options_of
    monkeypatch.setattr(
        TaskEvaluator, "with_options_of", lambda whole, other: seen.append(whole.weight) or real(whole, other)
    )
    check(MultiTaskLSSVR(random_state=0), X, y, tasks=task)
    assert np.inf in seen


@pytest.mark.parametrize(
    ("searched", "n", "square", "expected"),
    [
        (1000, 1000, True, 1000),
        (1000, 2000, True, 1000),  # half of the rows: not refined
        (1000, 3000, True, 2000),
        (1000, 9000, True, 2000),
        (3000, 9000, True, 9000),  # a user asked for a search on more rows
        (1000, 9000, False, 9000),
    ],
)
def test_rows_on_which_alpha_is_refined(searched, n, square, expected):
    assert rows_to_refine(searched, n, square) == expected
