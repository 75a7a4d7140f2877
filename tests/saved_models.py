"""Fitted models of all kinds, and all that they can be asked: for tests of files."""

import warnings
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.util import find_spec

import numpy as np
from scipy import sparse
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold, LeaveOneOut, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import leastwise as lw
from leastwise.estimators.abstaining import Abstaining
from leastwise.estimators.recalibrated import Recalibrated
from leastwise.model_selection import StratifiedLabelKFold, StratifiedTaskKFold
from leastwise.tables import TableModel

N, D = 48, 3
#: All splitters of scikit-learn that files may contain, except those that need groups.
SPLITTERS = (StratifiedKFold(3), KFold(3, shuffle=True, random_state=0), LeaveOneOut())


def rows(seed=0, n=N):
    """Rows, three classes, three tasks, four labels, a quantity."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 3)
    X = rng.normal(size=(n, D)) + 1.5 * np.eye(3)[y]
    task = rng.permutation(np.arange(n) % 3)
    Y = np.column_stack([y == 0, X[:, 0] > 0, X[:, 1] > 0.3, X.sum(axis=1) > 1]).astype(float)
    return X, y, task, Y, X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=n)


X, Y1, TASK, LABELS, VALUE = rows()
WORDS = np.array(["low", "middle", "high"])[Y1]
SITES = np.array(["north", "south", "west"])[TASK]
PAIRS = [("site", int(t)) for t in TASK]
FIXED = {"sigma": 1.0, "alpha": 0.01, "random_state": 0}
GRID = {"sigma": [0.7, 1.5], "alpha": [0.01, 0.1], "random_state": 0}


def frame():
    """A table with text and missing cells."""
    pandas = __import__("pandas")
    table = pandas.DataFrame(X.copy(), columns=["a", "b", "c"])
    table.loc[3, "a"] = np.nan
    table["kind"] = pandas.Series(SITES, dtype=object)
    table.loc[5, "kind"] = None
    return table


def unknown():
    """Labels of which some are not known."""
    Y = LABELS.copy()
    Y[np.random.default_rng(1).random(Y.shape) < 0.15] = np.nan
    return Y


def _single():
    S = sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    yield "lspc", lw.LSPC(random_state=0), (X, Y1), {}
    yield "lspc-words", lw.LSPC(**GRID, cv=KFold(4)), (X, WORDS), {}
    yield "lspc-coefficients", lw.LSPC(**FIXED, norm="coefficients", bias="shared"), (X, Y1), {}
    yield "lspc-class", lw.LSPC(**FIXED, basis="class", calibration="isotonic"), (X, Y1), {}
    yield "lspc-centers", lw.LSPC(**GRID, n_centers=9, calibration=None), (X, Y1 > 0), {}
    yield "lspc-kmeans", lw.LSPC(**GRID, n_centers=9, centers="kmeans", calibration="temperature"), (X, Y1), {}
    yield "lspc-given", lw.LSPC(**GRID, centers=X[:7], class_weight="balanced"), (X, Y1), {}
    yield "lspc-weights", lw.LSPC(**GRID, class_weight={0: 2.0, 1: 1.0, 2: 1.0}), (X, Y1), {}
    yield "lspc-sparse", lw.LSPC(**GRID), (S, Y1), {}
    yield "lspc-float32", lw.LSPC(**GRID), (X.astype(np.float32), Y1), {}
    yield "lspc-precomputed", lw.LSPC(alpha=0.1, kernel="precomputed"), (X @ X.T, Y1), {}
    yield "lspc-no-cv", lw.LSPC(sigma=1.0, alpha=0.1, cv=None, calibration=None), (X, Y1), {}
    yield "lspc-state", lw.LSPC(**{**FIXED, "random_state": np.random.RandomState(3)}), (X, Y1), {}
    for kernel in ("laplace", "linear", "poly", "rbf+linear"):
        yield f"lspc-{kernel}", lw.LSPC(**GRID, kernel=kernel), (X, Y1), {}
    yield "klr", lw.KernelLogisticRegression(**FIXED), (X, Y1), {}
    yield "lssvc", lw.LSSVC(**GRID), (X, WORDS), {}
    yield "lssvc-isotonic", lw.LSSVC(**FIXED, calibration="isotonic"), (X, Y1), {}
    yield "lssvr", lw.LSSVR(**GRID), (X, VALUE), {}
    yield "lssvr-outputs", lw.LSSVR(**GRID, cv=4), (X, np.column_stack([VALUE, -(VALUE**2)])), {}
    yield "lssvr-pruned", lw.LSSVR(**FIXED, prune=0.5), (X, VALUE), {}
    yield "lssvr-krylov", lw.LSSVR(**FIXED, solver="krylov"), (X, VALUE), {}


def _tasks():
    by = {"tasks": SITES}
    yield "tasks", lw.MultiTaskLSPC(**GRID, sharing=[0.3, 0.8]), (X, Y1), {"tasks": TASK}
    yield "tasks-words", lw.MultiTaskLSPC(**FIXED, sharing=0.5), (X, WORDS), by
    yield "tasks-pairs", lw.MultiTaskLSPC(**FIXED, sharing=0.5), (X, Y1), {"tasks": PAIRS}
    yield (
        "tasks-mixed",
        lw.MultiTaskLSPC(**FIXED, sharing=0.5),
        (X, Y1),
        {"tasks": [("a", 1.5, (True,)), 7, "x"] * 16},
    )
    S = np.array([[1, 0.5, 0.1], [0.5, 1, 0.2], [0.1, 0.2, 1]])
    yield "tasks-similar", lw.MultiTaskLSPC(**FIXED, sharing=0.5, similarity=S), (X, Y1), by
    column = np.column_stack([X, TASK])
    yield "tasks-column", lw.MultiTaskLSPC(**FIXED, sharing=0.5, task_column=-1), (column, Y1), {}
    yield "tasks-arrow", lw.MultiTaskLSPC(**FIXED, sharing=0.5, n_centers=8, solver="arrow"), (X, Y1), by
    yield "tasks-klr", lw.MultiTaskKernelLogisticRegression(**FIXED, sharing=0.5), (X, Y1), by
    yield "tasks-lssvc", lw.MultiTaskLSSVC(**FIXED, sharing=0.5, bias="task"), (X, Y1), by
    yield "tasks-lssvr", lw.MultiTaskLSSVR(**FIXED, sharing=0.5), (X, VALUE), by
    yield "tasks-lssvr-shrunk", lw.MultiTaskLSSVR(**FIXED, sharing=0.5, bias="shrunk"), (X, VALUE), by
    yield (
        "abstaining-tasks",
        Abstaining(lw.MultiTaskLSPC(**FIXED, sharing=0.5), max_error=0.4, by_task=True),
        (X, Y1),
        by,
    )
    yield "recalibrated-tasks", Recalibrated(lw.MultiTaskLSPC(**FIXED, sharing=0.5), "vector", True), (X, Y1), by


def _labels():
    S = sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    Y3 = np.column_stack([LABELS[:, 0], Y1])
    yield "labels", lw.MultiLabelLSPC(**GRID, sharing=[0.2, 0.6]), (X, LABELS), {}
    yield "labels-unknown", lw.MultiLabelLSPC(**FIXED, sharing=0.3), (X, unknown()), {}
    yield "labels-isotonic", lw.MultiLabelLSPC(**FIXED, sharing=0.3, calibration="isotonic"), (X, LABELS), {}
    yield "labels-clip", lw.MultiLabelLSPC(**FIXED, sharing=0.3, calibration=None), (X, LABELS), {}
    yield "labels-more", lw.MultiLabelLSPC(**FIXED, sharing=0.3), (X, Y3), {}
    yield "labels-flat", lw.MultiLabelLSPC(**FIXED, sharing=0.3), (X, WORDS), {}
    yield "labels-sparse", lw.MultiLabelLSPC(**FIXED, sharing=0.3), (S, sparse.csc_matrix(LABELS)), {}
    yield "abstaining-labels", Abstaining(lw.MultiLabelLSPC(**FIXED, sharing=0.3), cost=0.2), (X, LABELS), {}
    yield "recalibrated-labels", Recalibrated(lw.MultiLabelLSPC(**FIXED, sharing=0.3)), (X, LABELS), {}


def _streamed():
    S = sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    yield "stream-lspc", lw.LSPC(**GRID, n_centers=9), (X, WORDS), {}
    yield "stream-lssvr", lw.LSSVR(**FIXED, kernel="rbf+linear", centers=X[:7]), (X, VALUE), {}
    yield "stream-labels", lw.MultiLabelLSPC(**FIXED, sharing=0.3, centers=X[:7]), (S, LABELS), {}


def _wrapped():
    yield "abstaining", Abstaining(lw.LSPC(**GRID), max_error=0.4), (X, WORDS), {}
    for method in ("auto", "temperature", "vector", "beta", "quadratic", "isotonic", "structured", "dirichlet"):
        yield f"recalibrated-{method}", Recalibrated(lw.LSPC(**FIXED), method), (X, Y1), {}
    plain = [StandardScaler(), RobustScaler(), MinMaxScaler(clip=True), QuantileTransformer(n_quantiles=20)]
    plain += [FunctionTransformer(), FunctionTransformer(np.square), StandardScaler(with_mean=False)]
    plain += [QuantileTransformer(n_quantiles=20, output_distribution="normal", random_state=0), SimpleImputer()]
    for k, step in enumerate(plain):
        yield f"pipeline-{k}-{type(step).__name__}", make_pipeline(step, lw.LSPC(**FIXED)), (X, Y1), {}


def _chosen():
    """Scales, kernels, categories and splitters."""
    mixed = np.column_stack([1000 + 50 * X[:, :1], np.exp(X[:, 1:]), TASK])
    missing = mixed.copy()
    missing[3:9, 1] = np.nan
    for scale in ("standard", "robust", "quantile"):
        yield f"scale-{scale}", lw.LSPC(**FIXED, scale=scale, categories=[3]), (missing, Y1), {}
    yield "lssvr-robust", lw.LSSVR(**FIXED, kernel="rbf+linear", scale="robust"), (mixed, VALUE), {}
    yield "lspc-metric", lw.LSPC(**FIXED, scale="standard", metric="diagonal"), (mixed, Y1), {}
    with_sigmoid = lw.LSPC(**FIXED, kernel="sigmoid", coef0=-1.0, norm="coefficients")
    yield "lspc-sigmoid", with_sigmoid, (X / 3, Y1), {}
    for splitter in SPLITTERS:
        yield f"cv-{type(splitter).__name__}", lw.LSPC(**FIXED, cv=splitter), (X, Y1), {}
    by_task = lw.MultiTaskLSPC(**FIXED, sharing=0.5, cv=StratifiedTaskKFold(3))
    yield "cv-StratifiedTaskKFold", by_task, (X, Y1), {"tasks": TASK}
    yield "cv-StratifiedLabelKFold", lw.MultiLabelLSPC(**FIXED, cv=StratifiedLabelKFold(3)), (X, LABELS), {}


def columns():
    """A table with numbers, text, missing cells and targets of all kinds."""
    a = X[:, 0].copy()
    a[3] = np.nan
    kind = SITES.astype(object)
    kind[5] = None
    targets = {"word": WORDS, "value": VALUE, "p": LABELS[:, 0].astype(int), "q": LABELS[:, 1].astype(int)}
    return {"a": a, "b": X[:, 1], "kind": kind, "flag": X[:, 2] > 0, "site": SITES, **targets}


def _tables():
    unused = ["word", "value", "p", "q"]
    for name, model, given in (
        ("classes", lw.LSPC(**FIXED), {"target": "word", "max_error": 0.4}),
        ("numbers", lw.LSSVR(**FIXED), {"target": "value"}),
        ("labels", lw.MultiLabelLSPC(**FIXED), {"labels": ["p", "q"], "recalibrate": True}),
        ("tasks", lw.MultiTaskLSPC(**FIXED, sharing=0.5), {"target": "word", "task": "site"}),
    ):
        used = [given.get("target"), *given.get("labels", ())]
        table = TableModel(model=model, ignore=[n for n in unused if n not in used], **given)
        yield f"table-{name}", table, (columns(), None), {}


def _frames():
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    rare = OneHotEncoder(min_frequency=20, handle_unknown="infrequent_if_exist")
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
    for k, words in enumerate((OneHotEncoder(handle_unknown="ignore"), OneHotEncoder(drop="first"), rare, ordinal)):
        columns = make_column_transformer((numbers, ["a", "b"]), (words, ["kind"]), remainder="passthrough")
        yield f"frame-{k}", make_pipeline(columns, lw.LSPC(**FIXED)), (frame(), WORDS), {}
    chosen = make_column_selector(dtype_include=np.number), make_column_selector(dtype_include=object)
    columns = make_column_transformer((SimpleImputer(), chosen[0]), (OneHotEncoder(), chosen[1]))
    yield "frame-selected", make_pipeline(columns, lw.LSPC(**FIXED)), (frame(), WORDS), {}
    columns = make_column_transformer((StandardScaler(), ["a", "b"])).set_output(transform="pandas")
    yield "frame-output", make_pipeline(columns, lw.LSPC(**FIXED)), (frame().drop(index=[3]), WORDS[N - 47 :]), {}
    numbers = frame()[["a", "b", "c"]].fillna(0.0)
    yield "frame-names", lw.LSPC(**FIXED).set_output(transform="pandas"), (numbers, WORDS), {}
    pandas, polars = __import__("pandas"), __import__("polars")
    Y = pandas.DataFrame(LABELS.astype(int), columns=["p", "q", "r", "s"])
    Y["q"] = pandas.array(np.where(LABELS[:, 1] > 0, "yes", "no"), dtype="category")
    Y["r"] = Y["r"].astype("Int64")
    yield "labels-pandas", lw.MultiLabelLSPC(**FIXED, sharing=0.3), (numbers, Y), {}
    Y = polars.DataFrame({"p": LABELS[:, 0].astype(int), "q": np.where(LABELS[:, 1] > 0, "yes", "no")})
    yield (
        "labels-polars",
        lw.MultiLabelLSPC(**FIXED, sharing=0.3),
        (polars.DataFrame(X, schema=["a", "b", "c"]), Y),
        {},
    )
    dated = pandas.date_range("2024-01-01", periods=3)[TASK]
    yield "tasks-dates", lw.MultiTaskLSPC(**FIXED, sharing=0.5), (X, Y1), {"tasks": dated}


def models():
    """Name, model, arguments of fit; nothing is fitted yet. Those of frames where there are such."""
    frames = find_spec("pandas") and find_spec("polars")
    for group in (_single, _tasks, _labels, _streamed, _wrapped, _chosen, _tables, *([_frames] if frames else [])):
        yield from group()


def fitted(name):
    """A fitted model by name, its rows, and what else its methods take."""
    _, model, (rows, y), more = next(case for case in models() if case[0] == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        (model.fit_stream if name.startswith("stream-") else model.fit)(rows, y, **more)
    return model, rows, more


@cache
def known(name):
    """A model that is fitted once, and what it says."""
    model, rows, more = fitted(name)
    return model, rows, more, answers(model, rows, more)


def answers(model, rows, more):
    """All that a model says of some rows, and all that it keeps of held-out ones."""
    said = {}
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function", "scores", "accepts"):
        if hasattr(model, method):
            said[method] = getattr(model, method)(rows, **more)
    for method in ("predict_set", "predict_interval", "influence"):
        if hasattr(model, method):
            try:
                said[method] = getattr(model, method)(rows, **more)
            except ValueError as error:  # not all models can
                said[method] = str(error)
    if hasattr(model, "predict_set") and not isinstance(said["predict_set"], str):
        said["aps"] = model.predict_set(rows, method="random-aps", random_state=0, **more)
    if hasattr(model, "predict_table"):
        said["predict_table"] = dict(model.predict_table(rows).columns)
    kept = ("heldout_scores_", "heldout_proba_", "heldout_decision_", "heldout_prediction_", "heldout_rows_")
    for name in (*kept, "cv_results_", "classes_", "tasks_", "labels_", "feature_names_in_", "similarity_"):
        if hasattr(model, name):
            said[name] = getattr(model, name)
    return said


def assert_same(a, b, where="model"):
    """Equal to the last digit, of the same type and the same order in memory."""
    assert type(a) is type(b), where
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, where
        np.testing.assert_array_equal(a, b, err_msg=where)
    elif isinstance(a, dict):
        assert list(a) == list(b), where
        for key in a:
            assert_same(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), where
        for k, pair in enumerate(zip(a, b, strict=True)):
            assert_same(*pair, f"{where}[{k}]")
    elif is_dataclass(a):
        for f in fields(a):
            assert_same(getattr(a, f.name), getattr(b, f.name), f"{where}.{f.name}")
    elif sparse.issparse(a):
        assert a.dtype == b.dtype and (a != b).nnz == 0, where  # noqa: PT018
    elif hasattr(a, "equals"):
        assert a.equals(b), where
        assert list(a.dtypes) == list(b.dtypes), where
    else:
        assert a is b or a == b or a != a, where
