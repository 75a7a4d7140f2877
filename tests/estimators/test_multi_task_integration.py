"""Models of many tasks with the rest of the user's world: scikit-learn's tools, frames, files."""

import io
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from reference import rbf
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.metrics import log_loss, make_scorer, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    LeaveOneGroupOut,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

from leastwise import MultiTaskKernelLogisticRegression, MultiTaskLSPC
from leastwise.datasets import make_related_tasks
from leastwise.metrics.probabilities import task_auc
from leastwise.model_selection.splitters import StratifiedTaskKFold

DATA = make_related_tasks(5, 16, random_state=1)
X, T = DATA.X, DATA.task
Y = np.array(["no", "yes"])[DATA.y]
N = len(Y)
IDS = np.array(["ash", "bay", "elm", "fir", "oak"])
NAMES = IDS[T]
TABLE = np.column_stack([X[:, 0], T, X[:, 1]])
FRAME = pd.DataFrame({"a": X[:, 0], "farm": NAMES.tolist(), "b": X[:, 1]}, index=np.arange(N) + 100)
THREE = np.where(X[:, 0] > 0.8, 2, DATA.y)
NEW = np.random.default_rng(0).normal(size=(20, 2))


def lspc(**changes):
    return MultiTaskLSPC(**{"sigma": 1.0, "alpha": 0.05, "sharing": 0.5, "random_state": 0, **changes})


def klr(**changes):
    given = {"sigma": 1.0, "alpha": 0.05, "sharing": 0.5, "cv": 3, "random_state": 0, **changes}
    return MultiTaskKernelLogisticRegression(**given)


both = pytest.mark.parametrize("make", [lspc, klr])


def same_model(a, b, atol=1e-8, tasks=NAMES):
    """Two models say the same of new rows, in known tasks and others, and of the training rows held out."""
    for who in ("ash", "new"):
        np.testing.assert_allclose(a.predict_proba(NEW, who), b.predict_proba(NEW, who), atol=atol)
    np.testing.assert_allclose(a.heldout_proba_, b.heldout_proba_, atol=atol)


# ------------------------------------------------------------- scikit-learn's tools


def scaled(model, columns, verbatim=True):
    """Everything scaled but the task."""
    scaler = ColumnTransformer(
        [("scale", StandardScaler(), columns)], remainder="passthrough", verbose_feature_names_out=not verbatim
    )
    return make_pipeline(scaler, model)


@both
def test_pipeline_of_arrays(make):
    """ColumnTransformer puts what it passes through behind the rest."""
    pipe = scaled(make(task_column=-1), [0, 2]).fit(TABLE, Y)
    by_hand = make().fit(StandardScaler().fit_transform(X), Y, tasks=T)
    expected = by_hand.predict_proba(StandardScaler().fit(X).transform(NEW), T[:20])
    new = np.column_stack([NEW[:, 0], T[:20], NEW[:, 1]])
    np.testing.assert_allclose(pipe.predict_proba(new), expected, atol=1e-10)
    assert pipe[-1].tasks_.tolist() == [0, 1, 2, 3, 4]


@both
def test_pipeline_of_frames(make):
    pipe = scaled(make(task_column="farm"), ["a", "b"]).set_output(transform="pandas").fit(FRAME, Y)
    assert pipe[-1].feature_names_in_.tolist() == ["a", "b", "farm"]
    by_hand = make().fit(StandardScaler().fit_transform(X), Y, tasks=NAMES)
    P = pipe.predict_proba(FRAME)
    np.testing.assert_allclose(P, by_hand.predict_proba(StandardScaler().fit_transform(X), NAMES), atol=1e-10)
    mixed = FRAME[["b", "farm", "a"]]  # the transformer finds its columns by name
    np.testing.assert_allclose(pipe.predict_proba(mixed), P)


def test_pipeline_of_frames_without_pandas_output():
    """Text and numbers in one array of objects."""
    pipe = scaled(lspc(task_column=-1), ["a", "b"]).fit(FRAME, Y)
    assert pipe[-1].tasks_.tolist() == IDS.tolist()
    other = scaled(lspc(task_column="farm"), ["a", "b"]).set_output(transform="pandas").fit(FRAME, Y)
    np.testing.assert_allclose(pipe.predict_proba(FRAME), other.predict_proba(FRAME), atol=1e-10)


@both
def test_grid_search_over_the_models_own_parameters(make):
    grid = {"sharing": [0.0, 0.5, 1.0], "alpha": [0.01, 0.1]}
    cv = StratifiedTaskKFold(3, task_column="farm", random_state=0)
    search = GridSearchCV(make(task_column="farm"), grid, cv=cv, scoring="neg_log_loss").fit(FRAME, Y)
    assert search.best_params_["sharing"] in grid["sharing"]
    assert search.best_estimator_.sharing_ == search.best_params_["sharing"]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    pipe = scaled(make(task_column=-1), [0, 2])
    name = f"{pipe.steps[-1][0]}__sharing"
    search = GridSearchCV(pipe, {name: [0.0, 1.0]}, cv=3).fit(TABLE, Y)
    assert search.best_params_[name] in (0.0, 1.0)


@both
def test_cross_val_predict(make):
    model, cv = make(task_column="farm"), StratifiedTaskKFold(4, task_column="farm", random_state=0)
    P = cross_val_predict(model, FRAME, Y, cv=cv, method="predict_proba")
    assert P.shape == (N, 2)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    train, test = next(iter(cv.split(FRAME, Y)))
    expected = clone(model).fit(FRAME.iloc[train], Y[train]).predict_proba(FRAME.iloc[test])
    np.testing.assert_allclose(P[test], expected, atol=1e-10)
    assert set(cross_val_predict(model, FRAME, Y, cv=cv)) <= {"no", "yes"}
    assert cross_val_predict(model, FRAME, Y, cv=cv, method="decision_function").shape == (N,)


@both
@pytest.mark.parametrize("table", ["array", "pandas", "polars", "sparse"])
def test_cross_val_score_with_folds_that_know_the_tasks(make, table):
    kinds = {
        "array": (TABLE, 1),
        "pandas": (FRAME, "farm"),
        "polars": (pl.from_dict(FRAME.to_dict("list")), "farm"),
        "sparse": (sparse.csr_matrix(TABLE), 1),
    }
    given, column = kinds[table]
    cv = StratifiedTaskKFold(3, task_column=column, random_state=0)
    scores = cross_val_score(make(task_column=column), given, Y, cv=cv, scoring="neg_log_loss")
    expected = cross_val_score(
        make(task_column=1),
        TABLE,
        Y,
        cv=StratifiedTaskKFold(3, task_column=1, random_state=0),
        scoring="neg_log_loss",
    )
    np.testing.assert_allclose(scores, expected, atol=1e-6)


@both
def test_tasks_held_out_whole(make):
    """What is said of tasks that are not known, by scikit-learn's refits."""
    P = cross_val_predict(
        make(task_column="farm"), FRAME, Y, cv=LeaveOneGroupOut(), groups=NAMES, method="predict_proba"
    )
    assert log_loss(Y, P) < 1


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibrated_classifier_can_wrap_it(method):
    model = CalibratedClassifierCV(lspc(task_column="farm"), method=method, cv=3).fit(FRAME, Y)
    np.testing.assert_allclose(model.predict_proba(FRAME).sum(axis=1), 1)


@both
def test_clone_pickle_joblib_and_repr(make, tmp_path):
    model = make(task_column="farm", task_penalty=dict.fromkeys(IDS.tolist(), 2.0)).fit(FRAME, Y)
    P = model.predict_proba(FRAME)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(FRAME), P)
    joblib.dump(model, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(again.predict_proba(FRAME), P)
    assert again.tasks_.tolist() == IDS.tolist()
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    assert not [name for name in vars(fresh) if name.endswith("_")]
    assert "task_column='farm'" in repr(model)
    assert type(model).__name__ in estimator_html_repr(model)


@pytest.mark.parametrize(
    "parameters",
    [{"n_centers": 10}, {"similarity": np.full((5, 5), 0.3)}, {"similarity": "learned"}, {"norm": "coefficients"}],
    ids=["centres", "pairs", "learned", "coefficients"],
)
def test_every_form_can_be_pickled_and_cloned(parameters):
    model = lspc(**parameters).fit(X, Y, tasks=NAMES)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X, NAMES), model.predict_proba(X, NAMES))
    np.testing.assert_array_equal(again.coupling_, model.coupling_)
    twin = clone(model).fit(X, Y, tasks=NAMES)
    np.testing.assert_array_equal(twin.predict_proba(X, NAMES), model.predict_proba(X, NAMES))


@both
def test_fit_writes_no_parameter(make):
    penalty, S = dict.fromkeys(IDS.tolist(), 2.0), np.full((5, 5), 0.3)
    model = make(task_penalty=penalty, sharing=[0.5, 0.0], **({"similarity": S} if make is lspc else {}))
    before = dict(model.get_params())
    model.fit(X, Y, tasks=NAMES)
    after = model.get_params()
    assert all(after[name] is before[name] for name in before)
    assert penalty == dict.fromkeys(IDS.tolist(), 2.0)
    assert (S == 0.3).all()


# ------------------------------------------------------------------------- frames


@both
@pytest.mark.parametrize("kind", ["pandas", "polars", "categorical", "lists", "objects"])
def test_tables_of_every_kind(make, kind):
    table = {
        "pandas": FRAME,
        "polars": pl.from_dict(FRAME.to_dict("list")),
        "categorical": FRAME.assign(farm=FRAME["farm"].astype("category")),
        "lists": FRAME.to_numpy().tolist(),
        "objects": FRAME.to_numpy(),
    }[kind]
    model = make(task_column=1).fit(table, Y)
    assert model.tasks_.tolist() == IDS.tolist()
    assert model.n_features_in_ == 3
    expected = make().fit(X, Y, tasks=NAMES)
    np.testing.assert_allclose(model.predict_proba(table), expected.predict_proba(X, NAMES), atol=1e-12)
    if kind in ("lists", "objects"):
        assert not hasattr(model, "feature_names_in_")
    else:
        assert model.feature_names_in_.tolist() == ["a", "farm", "b"]


def test_frames_with_the_tasks_beside_them():
    frame = FRAME[["a", "b"]]
    model = lspc().fit(frame, Y, tasks=FRAME["farm"])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    plain = lspc().fit(X, Y, tasks=NAMES)
    np.testing.assert_allclose(model.predict_proba(frame, FRAME["farm"]), plain.predict_proba(X, NAMES), atol=1e-8)


@both
def test_frames_out(make):
    model = make(task_column="farm").fit(FRAME, THREE).set_output(transform="pandas")
    P = model.predict_proba(FRAME)
    assert isinstance(P, pd.DataFrame)
    assert P.columns.tolist() == [0, 1, 2]
    assert P.index[0] == 100
    assert isinstance(model.decision_function(FRAME), pd.DataFrame)
    assert isinstance(model.predict_log_proba(FRAME), pd.DataFrame)
    assert isinstance(model.set_output(transform="polars").predict_proba(FRAME), pl.DataFrame)
    assert isinstance(model.set_output(transform="default").predict_proba(FRAME), np.ndarray)
    two = make().fit(X, Y, tasks=NAMES).set_output(transform="polars")
    assert two.predict_proba(X, NAMES).columns == ["no", "yes"]


# ---------------------------------------------------------------- metadata routing


@both
def test_metadata_routing_takes_tasks(make):
    """As far as scikit-learn hands them on: not to the predictions of a search, nor in cross_val_predict."""
    with sklearn.config_context(enable_metadata_routing=True):
        model = make().set_fit_request(tasks=True).set_predict_proba_request(tasks=True)
        model = model.set_predict_request(tasks=True).set_score_request(tasks=True)
        search = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=3).fit(X, Y, tasks=NAMES)
        assert search.best_estimator_.tasks_.tolist() == IDS.tolist()
        assert search.best_estimator_.predict(X[:2], tasks=NAMES[:2]).shape == (2,)
        found = cross_validate(model, X, Y, cv=3, params={"tasks": NAMES})
        column = cross_validate(make(task_column=1), TABLE, Y, cv=3)
        np.testing.assert_allclose(found["test_score"], column["test_score"])
        scorer = make_scorer(log_loss, response_method="predict_proba", greater_is_better=False)
        scorer = scorer.set_score_request(sample_weight=False)
        found = cross_validate(make(task_column=1), TABLE, Y, cv=3, scoring=scorer)
        assert np.isfinite(found["test_score"]).all()
        pipe = make_pipeline(StandardScaler(), model)
        pipe.fit(X, Y, tasks=NAMES)
        np.testing.assert_allclose(pipe.predict_proba(X, tasks=NAMES).sum(axis=1), 1)


def test_metadata_routing_takes_weights_and_groups_too():
    with sklearn.config_context(enable_metadata_routing=True):
        model = lspc().set_fit_request(tasks=True, sample_weight=True, groups=True)
        model = model.set_score_request(tasks=True, sample_weight=False)
        search = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=3)
        search.fit(X, Y, tasks=NAMES, sample_weight=np.ones(N), groups=np.arange(N) // 2)
    assert search.best_params_["alpha"] in (0.1, 1.0)


def test_score():
    model = lspc().fit(X, Y, tasks=NAMES)
    right = model.predict(X, NAMES) == Y
    assert model.score(X, Y, tasks=NAMES) == pytest.approx(right.mean())
    weights = np.random.default_rng(0).uniform(size=N)
    assert model.score(X, Y, weights, NAMES) == pytest.approx(np.average(right, weights=weights))
    assert lspc(task_column=1).fit(TABLE, Y).score(TABLE, Y) == pytest.approx(right.mean())


# ------------------------------------------------------------------- kinds of input


@both
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array])
def test_sparse_rows(make, kind):
    some = np.where(np.abs(X) < 0.4, 0, X)
    dense, thin = make().fit(some, Y, tasks=NAMES), make().fit(kind(some), Y, tasks=NAMES)
    np.testing.assert_allclose(thin.predict_proba(kind(some), NAMES), dense.predict_proba(some, NAMES), atol=1e-8)
    np.testing.assert_allclose(thin.heldout_proba_, dense.heldout_proba_, atol=1e-8)
    table = np.column_stack([some, T])
    column = make(task_column=2).fit(kind(table), Y)
    np.testing.assert_allclose(column.predict_proba(kind(table)), dense.predict_proba(some, NAMES), atol=1e-8)


@pytest.mark.parametrize(
    "parameters", [{}, {"n_centers": 12}, {"norm": "coefficients"}, {"similarity": "learned"}, {"bias": "shared"}]
)
def test_float32_stays_float32(parameters):
    given = {"sigma": [0.7, 1.5], "alpha": [0.01, 0.1], "sharing": [0.2, 0.8], "random_state": 0, **parameters}
    single = MultiTaskLSPC(**given).fit(X.astype(np.float32), Y, tasks=NAMES)
    double = MultiTaskLSPC(**given).fit(X, Y, tasks=NAMES)
    for values in (
        single.scores(NEW, "ash"),
        single.predict_proba(NEW, "ash"),
        single.predict_proba(NEW, "new"),
        single.heldout_scores_,
        single.heldout_proba_,
        single.decision_function(NEW, "ash"),
        single.in_domain(NEW, "ash"),
    ):
        assert values.dtype == np.float32
    if (single.sigma_, single.alpha_, single.sharing_) == (double.sigma_, double.alpha_, double.sharing_):
        atol = 1e-2 if "n_centers" in parameters else 2e-3  # wide kernels on few centres are all but dependent
        np.testing.assert_allclose(single.predict_proba(NEW, "ash"), double.predict_proba(NEW, "ash"), atol=atol)


def test_float32_of_the_logistic_model_and_of_tables():
    model = klr().fit(X.astype(np.float32), Y, tasks=NAMES)
    assert model.predict_proba(NEW, "ash").dtype == np.float32
    assert model.heldout_scores_.dtype == np.float32
    model = lspc(task_column=1).fit(TABLE.astype(np.float32), Y)
    assert model.predict_proba(TABLE).dtype == np.float32


@both
def test_precomputed_kernel_is_the_kernel(make):
    plain = make(**({"extrapolate": True} if make is lspc else {})).fit(X, Y, tasks=NAMES)
    given = make(kernel="precomputed").fit(rbf(X, X, 1.0), Y, tasks=NAMES)
    new = rbf(NEW, X, 1.0)
    for who in ("ash", "new"):
        np.testing.assert_allclose(given.scores(new, who), plain.scores(NEW, who), atol=1e-5)
        np.testing.assert_allclose(given.predict_proba(new, who), plain.predict_proba(NEW, who), atol=1e-5)
    np.testing.assert_allclose(given.heldout_scores_, plain.heldout_scores_, atol=1e-5)
    assert given.center_indices_.tolist() == list(range(N))
    assert not hasattr(given, "centers_")


def test_precomputed_kernel_in_cross_validation():
    """scikit-learn takes columns out with the rows."""
    with sklearn.config_context(enable_metadata_routing=True):
        scores = [
            cross_val_score(
                model.set_fit_request(tasks=True).set_score_request(tasks=True), given, Y, params={"tasks": NAMES}
            )
            for model, given in [(lspc(kernel="precomputed"), rbf(X, X, 1.0)), (lspc(extrapolate=True), X)]
        ]
    np.testing.assert_allclose(scores[0], scores[1])


def test_one_id_at_prediction_stands_for_all_rows():
    model = lspc().fit(X, Y, tasks=NAMES)
    np.testing.assert_array_equal(model.predict_proba(NEW, "elm"), model.predict_proba(NEW, ["elm"] * 20))
    tuples = lspc().fit(X, Y, tasks=[("farm", int(t)) for t in T])
    np.testing.assert_array_equal(tuples.predict_proba(NEW, ("farm", 2)), model.predict_proba(NEW, "elm"))


def test_rows_one_by_one_are_rows_together():
    model = lspc().fit(X, Y, tasks=NAMES)
    alone = np.vstack([model.predict_proba(X[i : i + 1], NAMES[i]) for i in range(0, N, 7)])
    np.testing.assert_allclose(alone, model.predict_proba(X, NAMES)[::7], atol=1e-12)


# -------------------------------------------------------------------------- weights

WEIGHED = {
    "function": {},
    "coefficients": {"norm": "coefficients"},
    "bias": {"bias": "shared"},
    "pairs": {"similarity": np.full((5, 5), 0.4) + 0.6 * np.eye(5)},
    "penalty": {"task_penalty": [1, 2, 3, 4, 5]},
    "centres": {"centers": NEW},
    "centres, dual": {"centers": NEW, "solver": "dual"},
    "linear": {"kernel": "linear"},
}


@pytest.mark.parametrize("case", WEIGHED)
def test_weights_are_copies_and_zero_is_no_row(case):
    times = np.random.default_rng(0).integers(0, 4, size=N)
    index = np.repeat(np.arange(N), times)
    weighted = lspc(**WEIGHED[case]).fit(X, Y, sample_weight=times, tasks=NAMES)
    copied = lspc(**WEIGHED[case]).fit(X[index], Y[index], tasks=NAMES[index])
    for who in ("ash", "oak", "new"):
        np.testing.assert_allclose(weighted.scores(NEW, who), copied.scores(NEW, who), atol=1e-8)
    held = weighted.heldout_scores_[index]
    np.testing.assert_allclose(held, copied.heldout_scores_, atol=1e-8)
    np.testing.assert_allclose(weighted.predict_proba(NEW, "ash"), copied.predict_proba(NEW, "ash"), atol=1e-6)
    np.testing.assert_allclose(weighted.heldout_proba_[index], copied.heldout_proba_, atol=1e-6)
    np.testing.assert_allclose(weighted.predict_proba(NEW, "new"), copied.predict_proba(NEW, "new"), atol=1e-6)
    # rows of weight zero were never trained on: the model itself says what they are
    zero = times == 0
    np.testing.assert_allclose(
        weighted.heldout_proba_[zero], weighted.predict_proba(X[zero], NAMES[zero]), atol=1e-12
    )


@pytest.mark.parametrize("case", WEIGHED)
def test_rows_of_weight_zero_are_no_rows(case):
    """Whatever stands there, and everything chosen."""
    keep = np.arange(N) % 4 != 0
    rows = np.where(keep[:, None], X, 50.0)
    parameters = {"sigma": [0.7, 1.5], "alpha": [0.01, 0.1], "sharing": [0.2, 0.8], **WEIGHED[case]}
    weighted = lspc(**parameters).fit(rows, Y, sample_weight=3.0 * keep, tasks=NAMES)
    fewer = lspc(**parameters).fit(X[keep], Y[keep], tasks=NAMES[keep], sample_weight=np.full(keep.sum(), 3.0))
    assert (weighted.sigma_, weighted.alpha_, weighted.sharing_) == (fewer.sigma_, fewer.alpha_, fewer.sharing_)
    np.testing.assert_allclose(weighted.predict_proba(NEW, "ash"), fewer.predict_proba(NEW, "ash"), atol=1e-8)
    np.testing.assert_allclose(weighted.heldout_proba_[keep], fewer.heldout_proba_, atol=1e-8)


@pytest.mark.parametrize("case", WEIGHED)
def test_a_task_of_weight_zero_is_held_out_as_one_that_is_not_known(case):
    """What predict_proba says of its rows, since nothing was trained on them."""
    counts = T > 0
    parameters = {**WEIGHED[case], "task_penalty": None} if case == "penalty" else WEIGHED[case]
    if case == "pairs":
        parameters = {"similarity": np.full((4, 4), 0.4)}
    model = lspc(**parameters).fit(X, Y, sample_weight=counts.astype(float), tasks=NAMES)
    assert model.tasks_.tolist() == IDS[1:].tolist()
    there = model.predict_proba(X[~counts], NAMES[~counts])
    np.testing.assert_allclose(model.heldout_scores_[~counts], model.scores(X[~counts], "ash"), atol=1e-12)
    np.testing.assert_allclose(model.heldout_proba_[~counts], there, atol=1e-12)


def test_weights_are_copies_for_the_logistic_model():
    times = np.random.default_rng(0).integers(0, 4, size=N)
    index = np.repeat(np.arange(N), times)
    weighted = klr(cv=None, tol=1e-8).fit(X, Y, sample_weight=times, tasks=NAMES)
    copied = klr(cv=None, tol=1e-8).fit(X[index], Y[index], tasks=NAMES[index])
    np.testing.assert_allclose(weighted.predict_proba(NEW, "ash"), copied.predict_proba(NEW, "ash"), atol=1e-4)


@both
def test_class_weights_are_weights(make):
    by_class = make(class_weight={"no": 1, "yes": 2.5}).fit(X, Y, tasks=NAMES)
    by_row = make().fit(X, Y, sample_weight=np.where(Y == "yes", 2.5, 1.0), tasks=NAMES)
    same_model(by_class, by_row)
    counts = {c: np.sum(c == Y) for c in ("no", "yes")}
    balanced = make(class_weight="balanced").fit(X, Y, tasks=NAMES)
    by_row = make().fit(X, Y, sample_weight=[N / counts[c] for c in Y], tasks=NAMES)
    same_model(balanced, by_row)


# ---------------------------------------------------------------------------- folds


def test_groups_are_held_out_together():
    groups = np.arange(N) // 4
    model = lspc(calibration=None).fit(X, Y, groups=groups, tasks=NAMES)
    for g in (0, 7, 19):
        out = groups == g
        rest = lspc(calibration=None, cv=None).fit(X[~out], Y[~out], tasks=NAMES[~out])
        np.testing.assert_allclose(model.heldout_scores_[out], rest.scores(X[out], NAMES[out]), atol=1e-8)
    by_splitter = lspc(calibration=None, cv=LeaveOneGroupOut()).fit(X, Y, groups=groups, tasks=NAMES)
    np.testing.assert_allclose(by_splitter.heldout_scores_, model.heldout_scores_, atol=1e-10)


@both
def test_a_splitter_by_groups_without_groups_is_one_by_tasks(make):
    model = make(cv=LeaveOneGroupOut()).fit(X, Y, tasks=NAMES)
    by_group = make(cv=LeaveOneGroupOut()).fit(X, Y, groups=T, tasks=NAMES)
    by_list = make(cv=[(np.flatnonzero(t != T), np.flatnonzero(t == T)) for t in range(5)]).fit(X, Y, tasks=NAMES)
    np.testing.assert_allclose(model.heldout_scores_, by_group.heldout_scores_, atol=1e-8)
    np.testing.assert_allclose(model.heldout_scores_, by_list.heldout_scores_, atol=1e-8)
    fewer = make(cv=GroupKFold(2)).fit(X, Y, tasks=NAMES)
    assert np.isfinite(fewer.heldout_proba_).all()


def test_tasks_held_out_whole_are_refits_of_others():
    model = lspc(cv=LeaveOneGroupOut()).fit(X, Y, tasks=NAMES)
    P = cross_val_predict(
        lspc(task_column="farm", calibration=None, cv=None),
        FRAME,
        Y,
        cv=LeaveOneGroupOut(),
        groups=NAMES,
        method="predict_proba",
    )
    F = np.maximum(model.heldout_scores_, 0)
    some = F.sum(axis=1) > 1e-6
    np.testing.assert_allclose((F / np.where(some, F.sum(axis=1), 1)[:, None])[some], P[some], atol=1e-6)


@both
def test_number_of_folds_is_stratified_by_task(make):
    a, b = (make(cv=3, random_state=seed).fit(X, Y, tasks=NAMES) for seed in (0, 1))
    assert not np.allclose(a.heldout_scores_, b.heldout_scores_)
    splitter = StratifiedTaskKFold(3, random_state=0)
    by_splitter = make(cv=splitter).fit(X, Y, tasks=NAMES)
    by_list = make(cv=list(splitter.split(X, Y, NAMES))).fit(X, Y, tasks=NAMES)
    np.testing.assert_allclose(by_splitter.heldout_scores_, by_list.heldout_scores_, atol=1e-8)


# -------------------------------------------------------------------------- scoring


def heldout_margin(model):
    """Held-out decision values by the calibrator of all rows, as in the search."""
    D = model.calibrator_.decision(model.heldout_scores_)
    return D[:, 1] - D[:, 0]


def test_scoring_by_the_mean_over_tasks():
    grid = {"sigma": [0.5, 2.0], "alpha": [0.01, 1.0], "sharing": [0.0, 0.5, 1.0]}
    model = lspc(scoring="task_auc", **grid).fit(X, Y, tasks=NAMES)
    found = task_auc(Y, heldout_margin(model), NAMES)
    assert found == pytest.approx(model.cv_results_["mean_test_score"].max(), abs=0.02)
    assert len(model.cv_results_["param_sharing"]) == 12
    assert model.cv_results_["rank_test_score"].min() == 1


def test_scoring_by_the_pooled_auc_and_by_functions():
    grid = {"sigma": [0.5, 2.0], "alpha": [0.01, 1.0], "sharing": [0.0, 0.5, 1.0], "extrapolate": True}
    by_name = lspc(scoring="auc", **grid).fit(X, Y, tasks=NAMES)
    best = by_name.cv_results_["mean_test_score"].max()
    assert roc_auc_score(Y, heldout_margin(by_name)) == pytest.approx(best, abs=1e-6)
    by_scorer = lspc(scoring=make_scorer(roc_auc_score, response_method="decision_function"), **grid)
    by_scorer.fit(X, Y, tasks=NAMES)
    np.testing.assert_allclose(by_scorer.cv_results_["mean_test_score"], by_name.cv_results_["mean_test_score"])

    def negative_error(estimator, X, y):
        return -np.mean(estimator.predict(X) != y)

    by_function = lspc(scoring=negative_error, **grid).fit(X, Y, tasks=NAMES)
    accuracy = lspc(scoring="accuracy", **grid).fit(X, Y, tasks=NAMES)
    np.testing.assert_allclose(
        by_function.cv_results_["mean_test_score"] + 1, accuracy.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize("scoring", ["task_auc", "auc", "brier", "accuracy", "f1"])
def test_scorings_of_the_logistic_model(scoring):
    model = klr(scoring=scoring, sharing=[0.0, 0.5], alpha=[0.01, 0.1]).fit(X, Y, tasks=NAMES)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()


def test_scoring_by_tasks_with_three_classes_and_weights():
    weights = np.random.default_rng(0).uniform(0.5, 2, size=N)
    model = lspc(scoring="task_auc", sharing=[0.0, 0.5]).fit(X, THREE, sample_weight=weights, tasks=NAMES)
    assert 0.5 < model.cv_results_["mean_test_score"].max() <= 1


# ------------------------------------------------------------------------ invariance


@both
def test_random_state_repeats_and_global_state_is_left_alone(make):
    np.random.seed(7)
    before = np.random.get_state()[1].copy()
    parameters = {"cv": 4, **({"n_centers": 15} if make is lspc else {})}
    a, b = (make(**parameters).fit(X, Y, tasks=NAMES) for _ in range(2))
    np.testing.assert_array_equal(a.predict_proba(X, NAMES), b.predict_proba(X, NAMES))
    np.testing.assert_array_equal(a.heldout_proba_, b.heldout_proba_)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


INVARIANT = {
    "auto": {"sigma": "auto", "alpha": "auto", "sharing": "auto"},
    "coefficients": {"norm": "coefficients"},
    "bias": {"bias": "shared"},
    "centres": {"centers": NEW},
    "learned": {"similarity": "learned", "sharing": "auto"},
    "correlation": {"similarity": "correlation"},
    "inputs": {"similarity": "inputs"},
    "isotonic": {"calibration": "isotonic"},
}


@pytest.mark.parametrize("case", INVARIANT)
def test_the_order_of_the_rows_makes_no_difference(case):
    order = np.random.default_rng(3).permutation(N)
    one = lspc(**INVARIANT[case]).fit(X, Y, tasks=NAMES)
    other = lspc(**INVARIANT[case]).fit(X[order], Y[order], tasks=NAMES[order])
    for who in ("ash", "oak", "new"):
        np.testing.assert_allclose(other.predict_proba(NEW, who), one.predict_proba(NEW, who), atol=1e-8)
    np.testing.assert_allclose(other.heldout_proba_, one.heldout_proba_[order], atol=1e-8)


@pytest.mark.parametrize("case", INVARIANT)
def test_the_names_of_the_tasks_make_no_difference(case):
    """Other names, and in another order."""
    other_names = np.array(["zoo", "y", "x", "wood", "a"])[T]
    one = lspc(**INVARIANT[case]).fit(X, Y, tasks=NAMES)
    other = lspc(**INVARIANT[case]).fit(X, Y, tasks=other_names)
    np.testing.assert_allclose(other.predict_proba(X, other_names), one.predict_proba(X, NAMES), atol=1e-8)
    np.testing.assert_allclose(other.heldout_proba_, one.heldout_proba_, atol=1e-8)
    np.testing.assert_allclose(other.predict_proba(NEW, "new"), one.predict_proba(NEW, "new"), atol=1e-8)
    np.testing.assert_allclose(other.coupling_, one.coupling_[::-1, ::-1], atol=1e-8)


def test_names_and_rows_make_no_difference_to_the_logistic_model():
    splits = [(np.flatnonzero(np.arange(N) % 3 != k), np.flatnonzero(np.arange(N) % 3 == k)) for k in range(3)]
    one = klr(cv=splits, tol=1e-9).fit(X, Y, tasks=NAMES)
    other = klr(cv=splits, tol=1e-9).fit(X, Y, tasks=np.array(["e", "d", "c", "b", "a"])[T])
    np.testing.assert_allclose(other.heldout_proba_, one.heldout_proba_, atol=1e-6)
    order = np.random.default_rng(3).permutation(N)
    other = klr(cv=None, tol=1e-9).fit(X[order], Y[order], tasks=NAMES[order])
    np.testing.assert_allclose(other.predict_proba(NEW, "ash"), one.predict_proba(NEW, "ash"), atol=1e-6)


@both
def test_the_names_of_the_classes_make_no_difference(make):
    one = make().fit(X, Y, tasks=NAMES)
    other = make().fit(X, np.where(Y == "no", 1, 0), tasks=NAMES)
    np.testing.assert_allclose(other.predict_proba(NEW, "ash")[:, ::-1], one.predict_proba(NEW, "ash"), atol=1e-5)
    assert one.predict(NEW, "ash").dtype.kind == "U"


@pytest.mark.parametrize("similarity", ["inputs", "correlation", "learned"])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_similarities_are_not_negative_whatever_the_kernel(similarity, kernel):
    """As those that are given have to be: a Laplacian with negative weights is no penalty."""
    far = X + np.where(T % 2, 3.0, -3.0)[:, None]
    model = lspc(similarity=similarity, kernel=kernel, sigma=3.0).fit(far, Y, tasks=NAMES)
    S = model.similarity_
    np.testing.assert_allclose(S, S.T, atol=1e-12)
    np.testing.assert_allclose(np.diagonal(S), 1)
    assert S.min() >= 0
    assert np.linalg.eigvalsh(model.coupling_).min() > -1e-10


@pytest.mark.parametrize(("scale", "unit"), [(None, 100), ("auto", 1)])
def test_shifted_and_scaled_rows(scale, unit):
    one = lspc(sigma="auto", scale=scale).fit(X, Y, tasks=NAMES)
    other = lspc(sigma="auto", scale=scale).fit(100 * X + 7, Y, tasks=NAMES)
    assert other.sigma_ == pytest.approx(unit * one.sigma_)
    np.testing.assert_allclose(other.predict_proba(100 * NEW + 7, "ash"), one.predict_proba(NEW, "ash"), atol=1e-6)


@both
def test_predictions_agree_with_one_another(make):
    model = make(cv=3).fit(X, THREE, tasks=NAMES)
    for tasks in (NAMES[:20], "new"):
        P = model.predict_proba(NEW, tasks)
        np.testing.assert_allclose(model.predict_log_proba(NEW, tasks), np.log(P))
        np.testing.assert_array_equal(model.predict(NEW, tasks), model.classes_[P.argmax(axis=1)])
        np.testing.assert_array_equal(model.decision_function(NEW, tasks).argmax(axis=1), P.argmax(axis=1))
    assert model.heldout_proba_.shape == model.heldout_decision_.shape == model.heldout_scores_.shape == (N, 3)


# -------------------------------------------------------------------------- verbose


@both
def test_verbose(make, capsys):
    model = make(sigma=[0.5, 1.0], sharing=[0.0, 0.5], verbose=1).fit(X, Y, tasks=NAMES)
    lines = [line for line in capsys.readouterr().out.splitlines() if "plan:" not in line]
    assert lines.pop().startswith(f"[{type(model).__name__}] chosen: sigma")
    assert len(lines) >= 4
    assert all(line.startswith(f"[{type(model).__name__}] sigma ") for line in lines)
    assert all(f"{N} rows" in line and "best alpha" in line and "log_loss" in line for line in lines)
    for sharing in ("0", "0.5"):
        assert any(f"sharing {sharing}:" in line for line in lines)
    make().fit(X, Y, tasks=NAMES)
    assert capsys.readouterr().out == ""


def test_models_can_be_written_to_any_file():
    model = lspc(n_centers=10).fit(sparse.csr_matrix(X), Y, tasks=[(name, 1) for name in NAMES.tolist()])
    stream = io.BytesIO()
    joblib.dump(model, stream)
    stream.seek(0)
    again = joblib.load(stream)
    np.testing.assert_array_equal(again.predict_proba(NEW, ("ash", 1)), model.predict_proba(NEW, ("ash", 1)))
