"""Tasks that are wrong are refused with words that say what to do; tasks that are only odd are not."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import LeaveOneGroupOut

from leastwise import LSPC, KernelLogisticRegression, MultiTaskKernelLogisticRegression, MultiTaskLSPC
from leastwise.datasets import make_related_tasks

DATA = make_related_tasks(4, 15, random_state=0)
X, Y, T = DATA.X, DATA.y, DATA.task
IDS = ["ash", "bay", "elm", "fir"]
NAMES = np.array(IDS)[T]
TABLE = np.column_stack([X, T])
FRAME = pd.DataFrame({"a": X[:, 0], "farm": NAMES.tolist(), "b": X[:, 1]})
HALF = np.full((4, 4), 0.5)


def lspc(**changes):
    return MultiTaskLSPC(**{"sigma": 1.0, "alpha": 0.05, "sharing": 0.5, "random_state": 0, **changes})


def klr(**changes):
    return MultiTaskKernelLogisticRegression(
        **{"sigma": 1.0, "alpha": 0.05, "sharing": 0.5, "random_state": 0, **changes}
    )


both = pytest.mark.parametrize("make", [lspc, klr])


def fitted(model):
    return [name for name in vars(model) if name.endswith("_")]


def changed(values, row, value):
    """A copy with another value in one row."""
    values = list(values)
    values[row] = value
    return values


def entry(S, value, i=0, j=1, both_ways=True):
    """A matrix with another entry."""
    S = S.copy()
    S[i, j] = value
    if both_ways:
        S[j, i] = value
    return S


# ------------------------------------------------------------------ parameters

PARAMETERS = {
    "sharing negative": ({"sharing": -0.1}, r"sharing=-0\.1 is not possible: use 'auto', a number from 0 .* to 1"),
    "sharing above 1": ({"sharing": 1.1}, r"sharing=1\.1 is not possible: use 'auto', a number from 0 .* to 1"),
    "sharing nan": ({"sharing": np.nan}, "sharing=nan is not possible: use 'auto'"),
    "sharing empty": ({"sharing": []}, r"sharing=\[\] is not possible: use 'auto'"),
    "sharing text": ({"sharing": "half"}, "sharing='half' is not known: use 'auto', a number"),
    "sharing number as text": ({"sharing": "0.5"}, "sharing='0.5' is not known: use 'auto', a number"),
    "sharing texts": ({"sharing": ["a"]}, r"sharing=\['a'\] is not possible"),
    "sharing in a grid": ({"sharing": [0.5, 2]}, r"sharing=\[0\.5, 2\] is not possible"),
    "sharing none": ({"sharing": None}, "sharing=None is not possible"),
    "sharing true": ({"sharing": True}, "sharing=True is not possible"),
    "sharing table": ({"sharing": np.array([[0.1, 0.2]])}, "sharing=.* is not possible"),
    "sharing iterator": ({"sharing": iter([0.5])}, "sharing is an iterator.*give a list"),
    "penalty size": ({"task_penalty": [1, 2, 3]}, r"task_penalty has shape \(3,\).*each of the 4 tasks.*tasks_"),
    "penalty table": ({"task_penalty": np.ones((4, 1))}, r"task_penalty has shape \(4, 1\).*mapping from task ids"),
    "penalty number": ({"task_penalty": 2.0}, r"task_penalty has shape \(\).*mapping from task ids"),
    "penalty zero": ({"task_penalty": [1, 1, 0, 1]}, r"task_penalty holds .*0\.0.* must be a finite number above 0"),
    "penalty negative": ({"task_penalty": dict.fromkeys(IDS, -1)}, "task_penalty holds .*finite number above 0"),
    "penalty nan": ({"task_penalty": [1, 1, 1, np.nan]}, "task_penalty holds .*nan.*finite number above 0"),
    "penalty inf": ({"task_penalty": [1, 1, 1, np.inf]}, "task_penalty holds .*inf.*finite number above 0"),
    "penalty of no task": (
        {"task_penalty": {"ash": 1, "oak": 1}},
        r"task_penalty has values for \['oak'\], which are not tasks; the tasks are \['ash', 'bay', 'elm', 'fir'\]",
    ),
    "penalty text": ({"task_penalty": ["a"] * 4}, "task_penalty"),
    "unknown_task": ({"unknown_task": "nearest"}, r"unknown_task='nearest' is not known: use one of \['shared', 'er"),
    "column and kernel": (
        {"task_column": 0, "kernel": "precomputed"},
        "kernel='precomputed' has no column to hold the task: give tasks= instead",
    ),
    "cv": ({"cv": 1000}, "cv=1000 folds: with 60 rows use a number from 2 to 60"),
    "precomputed shape": ({"kernel": "precomputed"}, r"needs a square matrix.*\(60, 2\)"),
    "scoring": ({"scoring": "task_f1"}, "scoring='task_f1' is not known: use one of .*'task_auc'"),
}


@both
@pytest.mark.parametrize("case", PARAMETERS)
def test_parameters(make, case):
    parameters, message = PARAMETERS[case]
    model = make(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y, tasks=NAMES)
    assert not fitted(model)


NAMED = pd.DataFrame(HALF, index=IDS, columns=IDS)
SIMILARITIES = {
    "asymmetric": (entry(HALF, 0.9, both_ways=False), r"not symmetric: 0\.9 from 'ash' to 'bay', 0\.5 back.*S\.T"),
    "negative": (
        entry(HALF, -1),
        "similarity is -1 between 'ash' and 'bay': every value must be a finite number",
    ),
    "negative diagonal": (entry(HALF, -1, 2, 2), "similarity is -1 between 'elm' and 'elm'"),
    "nan": (entry(HALF, np.nan), "similarity is nan between 'ash' and 'bay'"),
    "inf": (np.full((4, 4), np.inf), "similarity is inf between"),
    "size": (np.eye(3), r"similarity has shape \(3, 3\); for 4 tasks it must be a matrix of shape \(4, 4\)"),
    "one dimension": (np.ones(4), r"similarity has shape \(4,\); for 4 tasks it must be a matrix of shape \(4, 4\)"),
    "number": (0.5, r"similarity=0\.5; for 4 tasks it must be a matrix of shape \(4, 4\)"),
    "name": ("cosine", r"similarity='cosine' is not known: use one of \['shared', 'learned', 'correlation', 'inputs"),
    "text": ([["a"] * 4] * 4, "similarity must hold real numbers; it holds values of type"),
    "sparse": (sparse.csr_matrix(HALF), r"similarity is sparse: give similarity\.toarray"),
    "unknown row": (NAMED.rename(index={"ash": "oak"}), r"similarity has no row.* the tasks \['ash'\]; its rows are"),
    "unknown column": (NAMED.rename(columns={"fir": "oak"}), r"similarity has no column.*\['fir'\]; its columns are"),
    "row twice": (pd.concat([NAMED, NAMED.iloc[:1]]), r"more than one, for the tasks \['ash'\]"),
    "default names": (pd.DataFrame(HALF), r"similarity has no row.*\['ash', 'bay', 'elm', 'fir'\].*\[0, 1, 2, 3\]"),
    "callable, none": (lambda X, y, t: None, "similarity"),
    "callable, text": (lambda X, y, t: "shared", "similarity must hold real numbers"),
    "callable, size": (lambda X, y, t: np.ones((2, 2)), r"similarity has shape \(2, 2\); for 4 tasks"),
    "callable, asymmetric": (lambda X, y, t: np.triu(HALF), "similarity is not symmetric"),
    "callable, nan": (lambda X, y, t: HALF * np.nan, "similarity is nan between"),
}


@pytest.mark.parametrize("case", SIMILARITIES)
def test_similarity(case):
    similarity, message = SIMILARITIES[case]
    model = lspc(similarity=similarity)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y, tasks=NAMES)
    assert not fitted(model)


def test_similarity_that_is_complex_is_refused():
    with pytest.raises(ValueError, match="similarity"):
        lspc(similarity=HALF * (1 + 1j)).fit(X, Y, tasks=NAMES)


def test_errors_of_a_callable_are_its_own():
    def wrong(X, y, tasks):
        raise RuntimeError("no such table")

    model = lspc(similarity=wrong)
    with pytest.raises(RuntimeError, match="no such table"):
        model.fit(X, Y, tasks=NAMES)
    assert not fitted(model)


def test_a_callable_is_shown_rows_classes_and_ids():
    seen = []
    S = entry(HALF, 0.1)
    model = lspc(similarity=lambda *given: seen.append(given) or S, task_column="farm")
    model.fit(FRAME, np.array(["no", "yes"])[Y])
    rows, classes, ids = seen[0]
    np.testing.assert_array_equal(rows, X)
    assert classes.tolist() == np.array(["no", "yes"])[Y].tolist()
    assert ids.tolist() == NAMES.tolist()
    by_matrix = lspc(similarity=S).fit(X, Y, tasks=NAMES)
    np.testing.assert_allclose(model.predict_proba(FRAME), by_matrix.predict_proba(X, NAMES))


def test_frames_of_similarities_are_taken_by_name():
    S = entry(entry(HALF, 0.1), 0.9, 2, 3)
    frame = pd.DataFrame(S, index=IDS, columns=IDS)
    mixed = frame.loc[["fir", "ash", "elm", "bay"], ["bay", "fir", "elm", "ash"]]
    more = pd.DataFrame(np.ones((5, 5)), index=[*IDS, "oak"], columns=[*IDS, "oak"])
    more.loc[IDS, IDS] = S
    expected = lspc(similarity=S).fit(X, Y, tasks=NAMES).scores(X, NAMES)
    for given in (frame, mixed, more, S.tolist(), 7 * S, S + np.diag(np.arange(4))):
        found = lspc(similarity=given).fit(X, Y, tasks=NAMES)
        np.testing.assert_allclose(found.scores(X, NAMES), expected, atol=1e-12)
        np.testing.assert_allclose(found.similarity_, np.where(np.eye(4), 1, S / 0.9))


def test_a_polars_frame_of_similarities_is_not_taken_in_another_order():
    """It has names of columns, and these are tasks in another order: by name, or not at all."""
    S = entry(HALF, 0.1)
    mixed = pl.DataFrame(S, schema=["fir", "elm", "bay", "ash"])
    try:
        found = lspc(similarity=mixed).fit(X, Y, tasks=NAMES).similarity_
    except ValueError:
        return
    assert found[2, 3] == pytest.approx(0.2)


@both
@pytest.mark.parametrize("penalty", [None, [1, 2, 3, 4], {"ash": 1, "bay": 2, "elm": 3, "fir": 4}, {"elm": 2}])
def test_penalties_that_are_fine(make, penalty):
    model = make(task_penalty=penalty).fit(X, Y, tasks=NAMES)
    np.testing.assert_allclose(model.predict_proba(X, NAMES).sum(axis=1), 1)


def test_penalties_by_name_are_those_in_order():
    by_name = lspc(task_penalty={"fir": 4, "bay": 2, "elm": 3, "ash": 1}).fit(X, Y, tasks=NAMES)
    in_order = lspc(task_penalty=[1, 2, 3, 4]).fit(X, Y, tasks=NAMES)
    np.testing.assert_array_equal(by_name.scores(X, NAMES), in_order.scores(X, NAMES))


def test_a_series_of_penalties_is_taken_by_name():
    """By its index, or not at all."""
    series = pd.Series([4.0, 2.0, 3.0, 1.0], index=["fir", "bay", "elm", "ash"])
    try:
        found = lspc(task_penalty=series).fit(X, Y, tasks=NAMES).scores(X, NAMES)
    except ValueError:
        return
    expected = lspc(task_penalty=[1, 2, 3, 4]).fit(X, Y, tasks=NAMES).scores(X, NAMES)
    np.testing.assert_allclose(found, expected)


SOLVERS = {
    "arrow, all centres": ({"solver": "arrow"}, "solver='arrow' needs few basis functions.*give n_centers.*'dual'"),
    "arrow, similarity": (
        {"solver": "arrow", "n_centers": 5, "similarity": HALF},
        "solver='arrow' needs .* similarity='shared'",
    ),
    "solver": ({"solver": "svd"}, "solver='svd' is not known: use one of"),
    "nothing held out, sharing": (
        {"cv": None, "calibration": None, "sharing": "auto"},
        "cv=None holds nothing out.*a number for sharing",
    ),
    "nothing held out, similarity": (
        {"cv": None, "calibration": None, "similarity": "learned"},
        "cv=None holds nothing out.*similarity='shared' or a matrix",
    ),
    "nothing held out, calibration": ({"cv": None}, "cv=None holds nothing out.*calibration=None"),
    "search_rows": ({"search_rows": 0}, "search_rows=0 must be"),
    "search_rows text": ({"search_rows": "all"}, "search_rows='all' is not known: use one of"),
    "norm": ({"norm": "l2"}, "norm='l2' is not known"),
    "calibration": ({"calibration": "platt"}, "calibration='platt' is not known"),
}


@pytest.mark.parametrize("case", SOLVERS)
def test_parameters_of_the_least_squares_model(case):
    parameters, message = SOLVERS[case]
    with pytest.raises(ValueError, match=message):
        lspc(**parameters).fit(X, Y, tasks=NAMES)


def test_nothing_held_out_by_the_logistic_model():
    with pytest.raises(ValueError, match=r"cv=None holds nothing out.*a number for sharing"):
        klr(cv=None, sharing=[0, 1]).fit(X, Y, tasks=NAMES)


def test_folds_across_tasks_are_refused_before_the_search(capsys):
    """Where rows are so many that only some are searched, and few centres: not after a minute of work."""
    model = lspc(n_centers=8, cv=3, search_rows=20, sharing="auto", verbose=1)
    try:
        model.fit(X, Y, tasks=NAMES)
    except ValueError:
        assert "sigma" not in capsys.readouterr().out


# ------------------------------------------------------------------------ tasks

TASKS = {
    "too few": (NAMES[:-1], ValueError, r"tasks has shape \(59,\); it must hold one id for each of the 60 rows"),
    "too many": ([*NAMES, "ash"], ValueError, r"tasks has shape \(61,\); .*60 rows"),
    "a column": (NAMES[:, None], ValueError, r"tasks has shape \(60, 1\); .*60 rows"),
    "a frame": (FRAME[["farm"]], ValueError, r"tasks has shape \(60, 1\); .*60 rows"),
    "none": (changed(NAMES, 3, None), ValueError, r"Of 60 task ids 1 are missing.*give every row a task"),
    "nan": (np.where(T == 1, np.nan, T), ValueError, "Of 60 task ids 15 are missing.*give every row a task"),
    "NA": (changed(NAMES, 3, pd.NA), ValueError, "Of 60 task ids 1 are missing"),
    "lists": ([["ash"]] * 60, TypeError, "must be hashable, such as a string, a tuple or a number"),
}


@both
@pytest.mark.parametrize("case", TASKS)
def test_tasks(make, case):
    tasks, kind, message = TASKS[case]
    model = make()
    with pytest.raises(kind, match=message):
        model.fit(X, Y, tasks=tasks)
    assert not fitted(model)
    model.fit(X, Y, tasks=NAMES)
    for ask in (model.predict, model.predict_proba, model.scores, model.decision_function, model.in_domain):
        with pytest.raises(kind, match=message):
            ask(X, tasks=tasks)


def test_a_tuple_with_an_id_for_every_row_is_no_single_id():
    """A single id stands for all rows, and a tuple may be one; but not if there is one for each row."""
    ids = tuple(NAMES.tolist())
    try:
        found = lspc().fit(X, Y, tasks=ids).tasks_.tolist()
    except ValueError:
        return
    assert found == IDS


@both
def test_tasks_given_in_no_way(make):
    message = r"needs the task of each row: give tasks= .*task_column=.*Without tasks, use"
    with pytest.raises(ValueError, match=message):
        make().fit(X, Y)
    model = make().fit(X, Y, tasks=NAMES)
    for ask in (model.predict, model.predict_proba, model.scores, model.decision_function):
        with pytest.raises(ValueError, match=message):
            ask(X)
    with pytest.raises(ValueError, match=message):
        model.score(X, Y)


@both
def test_tasks_given_both_ways(make):
    plain = make(task_column="farm").fit(FRAME, Y)
    double = make(task_column="farm").fit(FRAME, Y, tasks=NAMES)
    np.testing.assert_array_equal(double.predict_proba(FRAME, tasks=NAMES), plain.predict_proba(FRAME))
    message = r"differ, first in row 7: 'oak' and 'ash'.*Give one of the two"
    with pytest.raises(ValueError, match=message):
        make(task_column="farm").fit(FRAME, Y, tasks=changed(NAMES.tolist(), 7, "oak"))
    with pytest.raises(ValueError, match=message):
        plain.predict(FRAME, tasks=changed(NAMES.tolist(), 7, "oak"))
    with pytest.raises(ValueError, match=r"tasks has shape \(59,\)"):
        plain.predict(FRAME, tasks=NAMES[:-1])
    # numbers in a float table are those of the argument
    make(task_column=2).fit(TABLE, Y, tasks=T)
    with pytest.raises(ValueError, match=r"task_column=-1 .*first in row 59: 0 and 3\.0"):
        make(task_column=-1).fit(TABLE, Y, tasks=changed(T.tolist(), 59, 0))


COLUMNS = {
    "beyond": (3, TABLE, "task_column=3: X has n_features=3 columns.*from 0 to 2"),
    "before": (-4, TABLE, "task_column=-4: X has n_features=3 columns"),
    "unknown name": ("field", FRAME, r"task_column='field'.*\['a', 'farm', 'b'\]"),
    "unknown name, polars": (
        "field",
        pl.DataFrame(FRAME.to_dict("list")),
        r"task_column='field'.*\['a', 'farm', 'b'",
    ),
    "name, array": (
        "farm",
        TABLE,
        "task_column='farm' is a name, but ndarray has no column names: give its position",
    ),
    "one column": (0, TABLE[:, 2:], r"1 feature\(s\).*minimum of 2.*one column is the task"),
    "one dimension": (0, T, "Expected 2D array, got 1D array instead"),
    "nan": (2, np.where(TABLE == 3, np.nan, TABLE), "Of 60 task ids 15 are missing.*give every row a task"),
    "text elsewhere": (1, FRAME.assign(c="q").to_numpy(), "holds text, such as"),
    "inf elsewhere": ("farm", FRAME.assign(c=np.inf), "X contains infinity"),
}


@both
@pytest.mark.parametrize("case", COLUMNS)
def test_columns(make, case):
    column, table, message = COLUMNS[case]
    model = make(task_column=column)
    with pytest.raises(ValueError, match=message):
        model.fit(table, Y)
    assert not fitted(model)


@both
def test_text_where_the_task_is_not(make):
    """The column is at another place than was said: text among the features, numbers of no task."""
    with pytest.raises(ValueError, match="holds text, such as"):
        make(task_column=0, categories=None).fit(FRAME, Y)


@both
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_that_differ_at_prediction(make, frame):
    table = {name: FRAME[name].tolist() for name in FRAME}
    model = make(task_column="farm").fit(frame(table), Y)
    assert model.feature_names_in_.tolist() == ["a", "farm", "b"]
    assert model.n_features_in_ == 3
    cases = {
        "yet now missing:\n- farm": ["a", "b"],
        "yet now missing:\n- b": ["a", "farm"],
        "same order": ["a", "b", "farm"],
    }
    for message, names in cases.items():
        with pytest.raises(ValueError, match=message):
            model.predict(frame({name: table[name] for name in names}))
    with pytest.raises(ValueError, match="unseen at fit time:\n- c"):
        model.predict(frame({**table, "c": [0.0] * 60}))
    with pytest.raises(ValueError, match="now missing:\n- farm"):
        model.predict(frame({name: table[name] for name in "ab"}), tasks=NAMES)


@both
def test_arrays_that_differ_at_prediction(make):
    model = make(task_column=-1).fit(TABLE, Y)
    for other in (X, np.column_stack([TABLE, TABLE]), TABLE[:, 2:]):
        with pytest.raises(ValueError, match=rf"X has {other.shape[1]} features, but .* expecting 3 features"):
            model.predict(other)
    with pytest.raises(ValueError, match="Expected 2D array"):
        model.predict(TABLE[0])
    plain = make().fit(X, Y, tasks=T)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* expecting 2 features"):
        plain.predict(TABLE, tasks=T)


@both
def test_tasks_that_are_not_known(make):
    strict = make(unknown_task="error").fit(X, Y, tasks=NAMES)
    strict.predict(X, NAMES)
    message = r"2 rows belong to tasks that were not in the training data.*\['ash', 'bay', 'elm', 'fir'\].*'shared'"
    with pytest.raises(ValueError, match=message):
        strict.predict(X[:4], ["ash", "oak", "bay", "yew"])
    lenient = make().fit(X, Y, tasks=NAMES)
    P = lenient.predict_proba(X[:4], ["ash", "oak", "bay", "yew"])
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_allclose(P[[0, 2]], lenient.predict_proba(X[[0, 2]], ["ash", "bay"]), rtol=1e-12)
    np.testing.assert_allclose(P[1:2], lenient.predict_proba(X[1:2], "anything"), rtol=1e-12)


def test_a_task_that_is_not_known_gets_what_all_share():
    model = lspc(sharing=0.3).fit(X, Y, tasks=T)
    K = np.exp(-((X[:9, None] - X) ** 2).sum(axis=2) / 2)
    np.testing.assert_allclose(model.scores(X[:9], "new"), 0.3 * K @ model.dual_coef_, atol=1e-12)


# ------------------------------------------------------------------------- data

WRONG = {
    "huge": ((np.where(X > 1.5, 1e300, X), Y), r"values up to 1e\+300, whose squares overflow.*StandardScaler"),
    "inf": ((np.where(X > 1.5, np.inf, X), Y), "contains infinity"),
    "one class": ((X, np.ones(60)), "one class only.*two classes or more"),
    "a quantity": ((X, X[:, 0]), "Unknown label type"),
    "lengths": ((X, Y[:-1]), "inconsistent numbers of samples"),
    "no rows": ((X[:0], Y[:0]), r"0 sample\(s\)"),
}


@both
@pytest.mark.parametrize("case", WRONG)
def test_data(make, case):
    (rows, classes), message = WRONG[case]
    model = make()
    with pytest.raises(ValueError, match=message):
        model.fit(rows, classes, tasks=NAMES[: len(rows)])
    assert not fitted(model)
    table = np.column_stack([rows, T[: len(rows)]])
    with pytest.raises(ValueError, match=message):
        make(task_column=2).fit(table, classes)


@both
def test_wrong_rows_at_prediction(make):
    model = make().fit(X, Y, tasks=NAMES)
    with pytest.raises(ValueError, match="squares overflow"):
        model.predict(X * 1e300, NAMES)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        model.predict(X[:0], [])


@both
def test_not_fitted(make):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        make().predict(X, NAMES)


def test_what_is_computed_from_a_fit_needs_one():
    for name in ("similarity_", "coupling_"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(lspc(), name)


@both
def test_a_failed_fit_keeps_the_old_model(make):
    model = make(task_column="farm").fit(FRAME, Y)
    before, tasks, P = dict(vars(model)), model.tasks_.tolist(), model.predict_proba(FRAME)
    other = FRAME.assign(farm=[f"{name} wood" for name in FRAME["farm"]], c=1.0)
    wrong = [
        (FRAME.assign(a=np.inf), Y, {}),
        (FRAME.assign(farm=None), Y, {}),
        (other, np.ones(60), {}),
        (other, Y, {"sample_weight": np.zeros(60)}),
        (other, Y, {"tasks": NAMES}),
        (other, Y, {"groups": np.ones(60)}),
    ]
    for table, classes, more in wrong:
        with pytest.raises(ValueError):
            model.fit(table, classes, **more)
    model.set_params(sharing=3.0)
    with pytest.raises(ValueError, match="sharing"):
        model.fit(other, Y)
    model.set_params(sharing=0.5)
    assert set(vars(model)) == set(before)
    assert model.tasks_.tolist() == tasks
    np.testing.assert_array_equal(model.predict_proba(FRAME), P)


def test_a_new_fit_leaves_nothing_of_the_old_one():
    model = lspc(n_centers=5).fit(X, Y, tasks=NAMES)
    assert hasattr(model, "coef_")
    model.set_params(n_centers=None).fit(X, Y, tasks=np.repeat(["b", "a"], 30))
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "unseen_task_scores_")  # two tasks are too few to learn about others
    assert model.tasks_.tolist() == ["a", "b"]


# ---------------------------------------------------------------- odd, but fine


@pytest.mark.parametrize(
    "parameters",
    [
        {"sigma": 1.0, "alpha": 0.05},
        {"sigma": [0.5, 1.0], "alpha": [0.01, 0.1]},
        {},
        {"bias": "shared"},
        {"norm": "coefficients"},
        {"cv": [(np.arange(60)[np.arange(60) % 3 != k], np.arange(60)[np.arange(60) % 3 == k]) for k in range(3)]},
        {"calibration": "isotonic"},
        {"calibration": None, "kernel": "linear", "solver": "dual"},
    ],
    ids=["given", "grid", "auto", "bias", "coefficients", "splits", "isotonic", "linear"],
)
@pytest.mark.parametrize("sharing", ["auto", 0.3])
def test_one_task_is_no_task(parameters, sharing):
    multi = MultiTaskLSPC(sharing=sharing, random_state=0, **parameters).fit(X, Y, tasks="ash")
    single = LSPC(random_state=0, **{k: v for k, v in parameters.items() if k != "solver"}).fit(X, Y)
    assert (multi.sigma_, multi.alpha_) == pytest.approx((single.sigma_, single.alpha_))
    new = np.random.default_rng(1).normal(size=(20, 2))
    np.testing.assert_allclose(multi.scores(new, "ash"), single.scores(new), atol=1e-8)
    np.testing.assert_allclose(multi.heldout_scores_, single.heldout_scores_, atol=1e-7)
    np.testing.assert_allclose(multi.predict_proba(new, "ash"), single.predict_proba(new), atol=1e-7)
    np.testing.assert_allclose(multi.heldout_proba_, single.heldout_proba_, atol=1e-7)
    np.testing.assert_allclose(multi.decision_function(new, "ash"), single.decision_function(new), atol=1e-6)
    np.testing.assert_allclose(multi.in_domain(new, "ash"), single.in_domain(new), atol=1e-12)


def test_one_task_is_no_task_for_the_logistic_model():
    splits = [(np.arange(60)[np.arange(60) % 3 != k], np.arange(60)[np.arange(60) % 3 == k]) for k in range(3)]
    multi = klr(cv=splits, alpha=[0.01, 0.1], sharing=[0.0, 0.5, 1.0]).fit(X, Y, tasks="ash")
    single = KernelLogisticRegression(1.0, [0.01, 0.1], cv=splits).fit(X, Y)
    assert multi.alpha_ == single.alpha_
    np.testing.assert_allclose(multi.predict_proba(X, "ash"), single.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(multi.heldout_proba_, single.heldout_proba_, atol=1e-5)


@pytest.mark.parametrize("norm", ["function", "coefficients"])
@pytest.mark.parametrize("bias", [None, "shared"])
@pytest.mark.parametrize("sharing", [0.0, 0.4, 1.0])
def test_a_fold_that_empties_a_task_is_a_refit_without_it(norm, bias, sharing):
    model = lspc(norm=norm, bias=bias, sharing=sharing, cv=LeaveOneGroupOut(), calibration=None)
    model.fit(X, Y, tasks=NAMES)
    for name in IDS:
        out = name == NAMES
        rest = lspc(norm=norm, bias=bias, sharing=sharing, cv=None, calibration=None)
        rest.fit(X[~out], Y[~out], tasks=NAMES[~out])
        np.testing.assert_allclose(model.heldout_scores_[out], rest.scores(X[out], name), atol=1e-8)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"norm": "coefficients"},
        {"kernel": "linear"},
        {"kernel": "linear", "bias": "shared", "solver": "arrow"},
        {"kernel": "linear", "solver": "dual"},
        {"centers": X[:5] + 0.01},
        {"centers": X[:5] + 0.01, "norm": "coefficients", "bias": "shared"},
        {"centers": X[:5] + 0.01, "solver": "dual"},
    ],
)
def test_a_fold_that_empties_one_task_and_cuts_others(parameters):
    out = (NAMES == "elm") | (np.arange(60) % 3 == 0) & (NAMES != "elm")
    assert out.sum() == 30  # all folds have the same ridge with solver="arrow": they are of one size here
    splits = [(np.flatnonzero(~out), np.flatnonzero(out)), (np.flatnonzero(out), np.flatnonzero(~out))]
    model = lspc(cv=splits, calibration=None, **parameters).fit(X, Y, tasks=NAMES)
    rest = lspc(cv=None, calibration=None, **parameters).fit(X[~out], Y[~out], tasks=NAMES[~out])
    np.testing.assert_allclose(model.heldout_scores_[out], rest.scores(X[out], NAMES[out]), atol=1e-8)


def test_a_fold_that_empties_a_task_of_the_logistic_model():
    model = klr(cv=LeaveOneGroupOut(), tol=1e-8).fit(X, Y, tasks=NAMES)
    for name in IDS:
        out = name == NAMES
        rest = klr(cv=None, tol=1e-8).fit(X[~out], Y[~out], tasks=NAMES[~out])
        np.testing.assert_allclose(model.heldout_proba_[out], rest.predict_proba(X[out], name), atol=1e-5)


def test_tasks_alone_held_out_whole_get_the_class_shares():
    model = lspc(sharing=0.0, cv=LeaveOneGroupOut()).fit(X, Y, tasks=NAMES)
    np.testing.assert_allclose(model.heldout_proba_, np.tile(np.bincount(Y) / 60, (60, 1)))


@both
def test_a_class_that_a_task_never_saw(make):
    classes = np.where(T == 0, 0, np.where(X[:, 0] > 1, 2, Y))
    model = make(cv=3).fit(X, classes, tasks=NAMES)
    P = model.predict_proba(X, NAMES)
    assert P.shape == (60, 3)
    assert P.min() > 0
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert P[T == 0, 0].mean() > P[T != 0, 0].mean()


@both
def test_a_task_of_one_class_alone(make):
    model = make(sharing=0.0, cv=3).fit(X, np.where(T == 0, 0, Y), tasks=NAMES)
    assert np.isfinite(model.predict_proba(X, NAMES)).all()


@both
def test_one_row_in_some_tasks(make):
    tasks = changed(changed(NAMES.tolist(), 0, "oak"), 20, "yew")
    model = make(cv=5).fit(X, Y, tasks=tasks)
    assert model.tasks_.tolist() == [*IDS, "oak", "yew"]
    np.testing.assert_allclose(model.predict_proba(X, tasks).sum(axis=1), 1)


@both
@pytest.mark.parametrize("sharing", [0.0, 0.5, 1.0])
def test_every_row_its_own_task(make, sharing):
    model = make(sharing=sharing).fit(X, Y, tasks=np.arange(60))
    assert np.isfinite(model.predict_proba(X, np.arange(60))).all()
    if sharing == 0:  # nothing is known of a row without itself
        np.testing.assert_allclose(model.heldout_proba_, np.tile(np.bincount(Y) / 60, (60, 1)), atol=0.03)


def test_every_row_its_own_task_and_everything_chosen():
    model = MultiTaskLSPC(random_state=0).fit(X, Y, tasks=np.arange(60))
    np.testing.assert_allclose(model.predict_proba(X, "new").sum(axis=1), 1)
    # leaving out a row is leaving out its task
    np.testing.assert_allclose(model.unseen_task_scores_, model.heldout_scores_, atol=0.05)


@both
def test_a_constant_column_changes_nothing(make):
    plain = make().fit(X, Y, tasks=NAMES)
    wider = make().fit(np.column_stack([X, np.full(60, 3.0)]), Y, tasks=NAMES)
    there = np.column_stack([X, np.full(60, 3.0)])
    np.testing.assert_allclose(wider.predict_proba(there, NAMES), plain.predict_proba(X, NAMES), atol=1e-6)


@both
def test_all_rows_equal(make):
    model = make(cv=3).fit(np.ones((60, 2)), Y, tasks=NAMES)
    P = model.predict_proba(np.ones((4, 2)), IDS)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    with pytest.raises(ValueError, match=r"sigma='auto' has no scale|All rows of X are equal"):
        make(sigma="auto").fit(np.ones((60, 2)), Y, tasks=NAMES)


def test_the_same_row_in_other_tasks_is_another_row():
    """Its copies within a task are held out with it; those of other tasks are what it is learned from."""
    some = np.tile(X[::5], (4, 1))
    y, tasks = np.tile(Y[::5], 4), np.repeat(IDS, 12)
    model = lspc(sharing=0.5, calibration=None).fit(some, y, tasks=tasks)
    for i in (0, 17, 47):
        rest = lspc(sharing=0.5, calibration=None, cv=None)
        rest.fit(np.delete(some, i, axis=0), np.delete(y, i), tasks=np.delete(tasks, i))
        np.testing.assert_allclose(
            model.heldout_scores_[i : i + 1], rest.scores(some[i : i + 1], tasks[i]), atol=1e-8
        )


def test_repeated_rows_are_the_rows_where_copies_are_held_out_together():
    """All rows twice: alpha is on the mean loss, so the model is the same, and so are its held-out scores."""
    once = lspc().fit(X, Y, tasks=NAMES)
    twice = lspc().fit(np.tile(X, (2, 1)), np.tile(Y, 2), tasks=np.tile(NAMES, 2), groups="duplicates")
    np.testing.assert_allclose(twice.scores(X, NAMES), once.scores(X, NAMES), atol=1e-8)
    np.testing.assert_allclose(twice.heldout_scores_[:60], once.heldout_scores_, atol=1e-8)
    np.testing.assert_allclose(twice.predict_proba(X, NAMES), once.predict_proba(X, NAMES), atol=1e-7)


def test_a_task_of_weight_zero_is_not_known():
    weights = (NAMES != "elm").astype(float)
    model = lspc(unknown_task="error").fit(X, Y, sample_weight=weights, tasks=NAMES)
    assert model.tasks_.tolist() == ["ash", "bay", "fir"]
    with pytest.raises(ValueError, match="15 rows belong to tasks that were not in the training data"):
        model.predict(X, NAMES)
    assert np.isfinite(model.heldout_proba_).all()


def test_penalties_and_similarities_are_asked_of_the_tasks_that_count():
    weights = (NAMES != "elm").astype(float)
    model = lspc(task_penalty={"ash": 1, "bay": 1, "fir": 2}, similarity=NAMED)
    model.fit(X, Y, sample_weight=weights, tasks=NAMES)
    assert model.coupling_.shape == (3, 3)


@both
def test_one_class_after_the_weights(make):
    with pytest.raises(ValueError, match="one class only"):
        make().fit(X, Y, sample_weight=(Y == 1).astype(float), tasks=NAMES)


def test_no_task_with_two_classes_has_no_mean_auc():
    with pytest.raises(ValueError, match=r"scoring='task_auc': no task has two classes.*Use 'auc' or 'log_loss'"):
        lspc(scoring="task_auc").fit(X, T % 2, tasks=NAMES)


def test_an_extreme_name_is_a_name():
    table = np.column_stack([X, np.where(T == 0, 1e300, -1e-300)])
    model = lspc(task_column=2).fit(table, Y)
    assert model.tasks_.tolist() == [-1e-300, 1e300]
