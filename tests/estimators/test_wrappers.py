"""``Abstaining`` and ``Recalibrated``, around each other and pipelines: the same as by hand, step by step."""

import warnings

import numpy as np
import pytest
from conftest import blobs
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from leastwise import LSPC, KernelLogisticRegression, MultiLabelLSPC, MultiTaskLSPC
from leastwise.calibration.conformal import gather
from leastwise.calibration.risk import Decisions, safe_threshold
from leastwise.datasets import make_related_tasks, make_rotated_labels
from leastwise.estimators.abstaining import Abstaining
from leastwise.estimators.predicting import SetOptions
from leastwise.estimators.prior_shift import estimate_class_prior
from leastwise.estimators.recalibrated import Recalibrated
from leastwise.inspection.calibration_report import calibration_report
from leastwise.utils.unwrap import split_params

X, Y = blobs(n=240, c=3, seed=4)
PERSON, WEIGHT = np.arange(240) // 4, np.where(Y == 0, 2.0, 1.0)
NEW = X + 0.05
SCALED = StandardScaler().fit(X)
TASKS = make_related_tasks(6, 80, random_state=0)
LABELS = make_rotated_labels(n_labels=3, n_rows=160, n_features=4, random_state=0)


def lspc(**changes):
    return LSPC(**{"sigma": 1.0, "alpha": 0.01, "random_state": 0, **changes})


def multi(**changes):
    return MultiTaskLSPC(**{"sigma": 1.0, "alpha": 0.01, "sharing": 0.5, "random_state": 0, **changes})


def labelled(**changes):
    return MultiLabelLSPC(**{"sigma": 1.5, "alpha": 0.01, "sharing": 0.3, "random_state": 0, **changes})


def piped(model):
    return make_pipeline(StandardScaler(), model)


def warmed(model, **more):
    return Recalibrated(model, "temperature", **more)


# ----------------------------------------------------------------- names of parameters


@pytest.mark.parametrize("form", ["groups", "lspc__groups"])
@pytest.mark.parametrize("frozen", [False, True])
def test_groups_reach_the_last_step_by_either_name(form, frozen):
    pipe = piped(lspc())
    inner = FrozenEstimator(clone(pipe).fit(X + 0.1, Y)) if frozen else pipe
    model = Abstaining(inner, max_error=0.35).fit(X, Y, **{form: PERSON})
    P = inner.predict_proba(X) if frozen else clone(pipe).fit(X, Y, lspc__groups=PERSON)[-1].heldout_proba_
    d = Decisions(P.max(axis=1), P.argmax(axis=1) != Y, np.ones(240), PERSON)
    assert model.threshold_ == safe_threshold(d, 0.35, 1 - 0.95)
    assert model.threshold_ > Abstaining(inner, max_error=0.35).fit(X, Y).threshold_


@pytest.mark.parametrize("outer", [lambda m: Abstaining(m, cost=0.2), warmed], ids=["abstaining", "recalibrated"])
@pytest.mark.parametrize("names", [("sample_weight", "groups"), ("lspc__sample_weight", "lspc__groups")])
def test_plain_names_are_those_of_the_last_step(outer, names):
    given = dict(zip(names, (WEIGHT, PERSON), strict=True))
    model = outer(piped(lspc())).fit(X, Y, **given)
    by_hand = outer(lspc()).fit(SCALED.transform(X), Y, sample_weight=WEIGHT, groups=PERSON)
    np.testing.assert_allclose(model.predict_proba(NEW), by_hand.predict_proba(SCALED.transform(NEW)), atol=1e-10)
    np.testing.assert_allclose(model.heldout_proba_, by_hand.heldout_proba_, atol=1e-10)


def test_steps_before_get_their_own():
    before = {"standardscaler__sample_weight": WEIGHT}
    pipe = piped(lspc()).fit(X, Y, **before)
    for model in (Abstaining(piped(lspc()), cost=0.2), Recalibrated(piped(lspc()), None)):
        model.fit(X, Y, **before)
        np.testing.assert_allclose(model.predict_proba(NEW), pipe.predict_proba(NEW), atol=1e-9)
    nested = Pipeline([("outer", StandardScaler()), ("inner", piped(lspc()))])
    given = {"inner__standardscaler__sample_weight": 1, "outer__sample_weight": 2, "inner__groups": 3, "tasks": 4}
    own, rest = split_params(nested, given)
    assert own == {"groups": 3, "tasks": 4}
    assert rest == {"inner__standardscaler__sample_weight": 1, "outer__sample_weight": 2}
    model = Abstaining(nested, cost=0.2).fit(X, Y, groups=PERSON, outer__sample_weight=WEIGHT)
    assert model.estimator_[-1][-1].heldout_rows_.group is not None


@pytest.mark.parametrize(
    ("frozen", "given", "match"),
    [
        (True, {"nonsense": 1}, "fit got nonsense.*frozen"),
        (True, {"lspc__nonsense": 1}, "fit got nonsense"),
        (True, {"standardscaler__sample_weight": WEIGHT}, "standardscaler__sample_weight.*frozen"),
        (False, {"nonsense": 1}, "unexpected keyword argument 'nonsense'"),
        (False, {"tree__groups": PERSON}, "does not match a step of the pipeline"),
        (False, {"groups": PERSON, "lspc__groups": PERSON}, "groups= and lspc__groups= are the same"),
        (True, {"groups": PERSON[:9]}, r"groups has shape \(9,\)"),
        (True, {"sample_weight": WEIGHT[:9]}, r"sample_weight has shape \(9,\)"),
    ],
)
def test_what_has_no_meaning_is_refused(frozen, given, match):
    pipe = piped(lspc())
    inner = FrozenEstimator(pipe.fit(X, Y)) if frozen else pipe
    with pytest.raises((TypeError, ValueError), match=match):
        Abstaining(inner, cost=0.2).fit(X, Y, **given)


def test_predictions_take_the_same_names():
    model = Abstaining(piped(multi()), max_error=0.3).fit(TASKS.X, TASKS.y, tasks=TASKS.task)
    rows, task = TASKS.X[:20], TASKS.task[:20]
    for name in ("accepts", "predict", "predict_proba", "decision_function", "predict_set", "in_domain"):
        plain, long = (getattr(model, name)(rows, **{n: task}) for n in ("tasks", "multitasklspc__tasks"))
        np.testing.assert_array_equal(plain, long)
    assert model.score(rows, TASKS.y[:20], tasks=task) > 0.5
    with pytest.raises(TypeError, match="accept rows only"):
        model.predict(rows, tasks=task, standardscaler__copy=True)


def test_a_frozen_last_step_is_frozen():
    """Its own held-out rows are not the rows given to fit."""
    inner = lspc().fit(X[:100], Y[:100])
    whole = Abstaining(FrozenEstimator(inner), max_error=0.3).fit(X[100:], Y[100:])
    last = Abstaining(Pipeline([("lspc", FrozenEstimator(inner))]), max_error=0.3).fit(X[100:], Y[100:])
    assert last.threshold_ == whole.threshold_
    assert last.coverage_ == whole.coverage_


# ------------------------------------------------------------------- one around the other


@pytest.mark.parametrize(
    "build",
    [lambda m: warmed(m), lambda m: piped(warmed(m)), lambda m: warmed(piped(m))],
    ids=["plain", "last step", "around"],
)
def test_thresholds_are_set_on_the_recalibrated_probabilities(build):
    model = Abstaining(build(lspc()), max_error=0.2).fit(X, Y)
    P = model.heldout_proba_
    assert model.threshold_ == safe_threshold(
        Decisions(P.max(axis=1), P.argmax(axis=1) != Y, np.ones(240)), 0.2, 1 - 0.95
    )
    inner = build(lspc()).fit(X, Y)
    np.testing.assert_allclose(P, (inner[-1] if isinstance(inner, Pipeline) else inner).heldout_proba_)
    np.testing.assert_allclose(model.predict_proba(NEW), inner.predict_proba(NEW))
    np.testing.assert_array_equal(model.accepts(NEW), model.predict_proba(NEW).max(axis=1) >= model.threshold_)


def test_tasks_recalibrated_and_rejected():
    model = Abstaining(warmed(piped(multi())), max_error=0.3, by_task=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(TASKS.X, TASKS.y, tasks=TASKS.task)
    P = model.heldout_proba_
    for t in range(6):
        own = TASKS.task == t
        d = Decisions(P.max(axis=1)[own], (P.argmax(axis=1) != TASKS.y)[own], np.ones(own.sum()))
        assert model.task_thresholds_[t] == safe_threshold(d, 0.3, 1 - 0.95)
    unseen_task = Abstaining(piped(multi()), max_error=0.3).fit(TASKS.X, TASKS.y, tasks=TASKS.task)
    assert model.unseen_task_threshold_ == unseen_task.unseen_task_threshold_
    sure = model.predict_proba(TASKS.X, tasks=TASKS.task).max(axis=1)
    np.testing.assert_array_equal(
        model.accepts(TASKS.X, tasks=TASKS.task), sure >= model.task_thresholds_[TASKS.task]
    )


def test_labels_recalibrated_and_rejected():
    model = Abstaining(warmed(piped(labelled())), max_error=0.3).fit(LABELS.X, LABELS.Y)
    P = model.heldout_proba_
    for t in range(3):
        d = Decisions(np.maximum(P[:, t], 1 - P[:, t]), (P[:, t] > 0.5) != LABELS.Y[:, t], np.ones(160))
        assert model.threshold_[t] == pytest.approx(safe_threshold(d, 0.3, 1 - 0.95))
    assert model.score(LABELS.X, LABELS.Y) > 0.8


def test_a_recalibrated_pipeline_is_the_model_on_the_scaled_rows():
    model, by_hand = Recalibrated(piped(lspc())).fit(X, Y), Recalibrated(lspc()).fit(SCALED.transform(X), Y)
    assert model.method_ == by_hand.method_
    for name in ("predict_proba", "predict_log_proba", "decision_function"):
        expected = getattr(by_hand, name)(SCALED.transform(NEW))
        np.testing.assert_allclose(getattr(model, name)(NEW), expected, atol=1e-9)
    assert model.score(NEW, Y) == by_hand.score(SCALED.transform(NEW), Y)
    shares = [0.1, 0.2, 0.7]
    np.testing.assert_allclose(
        model.predict_proba(NEW, class_prior=shares),
        by_hand.predict_proba(SCALED.transform(NEW), class_prior=shares),
        atol=1e-9,
    )
    assert model.n_features_in_ == 2


# -------------------------------------------------------------------- what models can say


@pytest.mark.parametrize("outer", [lambda m: Abstaining(m, cost=0.2), warmed], ids=["abstaining", "recalibrated"])
def test_methods_of_the_model_inside(outer):
    model, inner = outer(piped(lspc())).fit(X, Y), lspc().fit(SCALED.transform(X), Y)
    rows = SCALED.transform(NEW[:9])
    np.testing.assert_allclose(model.in_domain(NEW[:9]), inner.in_domain(rows))
    np.testing.assert_allclose(model.novelty_pvalue(NEW[:9]), inner.novelty_pvalue(rows))
    np.testing.assert_array_equal(model.influence(NEW[:9], 4).rows, inner.influence(rows, 4).rows)
    np.testing.assert_allclose(estimate_class_prior(outer(lspc()).fit(X, Y), NEW).sum(), 1)


def test_class_shares_through_wrappers():
    for model in (Abstaining(piped(lspc()), cost=0.2), Abstaining(labelled(), cost=0.2)):
        data = (LABELS.X, LABELS.Y) if isinstance(model.estimator, MultiLabelLSPC) else (X, Y)
        expected = estimate_class_prior(clone(model.estimator).fit(*data), data[0][:50])
        np.testing.assert_allclose(estimate_class_prior(model.fit(*data), data[0][:50]), expected)
        np.testing.assert_allclose(
            model.class_prior_, getattr(model.estimator_, "steps", [[0, model.estimator_]])[-1][1].class_prior_
        )


def test_methods_are_there_where_the_model_has_them():
    assert not hasattr(Abstaining(KernelLogisticRegression(), cost=0.2), "influence")
    frozen = Abstaining(FrozenEstimator(LogisticRegression().fit(X, Y)), cost=0.2).fit(X, Y)
    assert not any(hasattr(frozen, name) for name in ("predict_set", "in_domain", "heldout_proba_", "class_prior_"))
    assert not hasattr(Abstaining(FrozenEstimator(lspc().fit(X, Y)), cost=0.2).fit(X, Y), "heldout_proba_")
    assert not hasattr(Abstaining(lspc(), cost=0.2), "heldout_proba_")
    with pytest.raises(AttributeError, match="not fitted"):
        _ = Abstaining(lspc(), cost=0.2).class_prior_


@pytest.mark.parametrize("method", ["lac", "aps"])
@pytest.mark.parametrize("by_class", [False, True])
def test_recalibrated_sets_use_recalibrated_probabilities(method, by_class):
    model = Recalibrated(piped(lspc(calibration=None)), "vector").fit(X, Y, groups=PERSON)
    flags = {"by_class": by_class, "by_task": False, "allow_empty": False}
    evidence = gather(model.heldout_proba_, model.heldout_rows_)
    expected = SetOptions.checked(0.9, method, 0, **flags).of(model.predict_proba(NEW), evidence)
    found = model.predict_set(NEW, 0.9, method=method, by_class=by_class)
    np.testing.assert_array_equal(found, expected)
    assert (
        found != model.estimator_[-1].predict_set(SCALED.transform(NEW), 0.9, method=method, by_class=by_class)
    ).any()
    np.testing.assert_array_equal(
        Abstaining(model, cost=0.2).fit(X, Y, groups=PERSON).predict_set(NEW, 0.9, method=method, by_class=by_class),
        found,
    )


def test_recalibrated_sets_of_one_level_by_its_definition():
    """The quantile of 1 - p(true class) over cross-fitted rows, counted."""
    model = warmed(lspc()).fit(X, Y)
    scores = np.sort(1 - model.heldout_proba_[np.arange(240), Y])
    level = scores[int(np.ceil(241 * 0.95)) - 1]
    np.testing.assert_array_equal(
        model.predict_set(NEW, 0.95, allow_empty=True), 1 - model.predict_proba(NEW) <= level + 1e-12
    )


def test_recalibrated_sets_of_tasks_and_labels():
    model = warmed(multi()).fit(TASKS.X, TASKS.y, tasks=TASKS.task)
    P, held = model.heldout_proba_, np.arange(len(TASKS.y))
    for t in range(6):
        own = TASKS.task == t
        scores = np.sort(1 - P[held, TASKS.y][own])
        inside = model.predict_set(TASKS.X[own], 0.9, tasks=TASKS.task[own], by_task=True, allow_empty=True)
        new = 1 - model.predict_proba(TASKS.X[own], tasks=TASKS.task[own])
        np.testing.assert_array_equal(inside, new <= scores[int(np.ceil(81 * 0.9)) - 1] + 1e-12)
    unseen = model.estimator_.predict_set(TASKS.X[:9], tasks="new")
    np.testing.assert_array_equal(model.predict_set(TASKS.X[:9], tasks="new"), unseen)
    tagger = warmed(labelled()).fit(LABELS.X, LABELS.Y)
    sets, p = tagger.predict_set(LABELS.X, 0.9, allow_empty=True), tagger.predict_proba(LABELS.X)
    for t in range(3):
        q = tagger.heldout_proba_[:, t]
        level = np.sort(1 - np.where(LABELS.Y[:, t] == 1, q, 1 - q))[int(np.ceil(161 * 0.9)) - 1]
        two = np.column_stack([p[:, t], 1 - p[:, t]])
        np.testing.assert_array_equal(sets[:, t], two <= level + 1e-12)
    with pytest.raises(ValueError, match="by_task=True needs a multi-task model"):
        tagger.predict_set(LABELS.X, by_task=True)


# --------------------------------------------------------------------- scores and promises


@pytest.mark.filterwarnings("ignore:max_error")
def test_scores_are_numbers_where_nothing_is_accepted():
    scores = cross_val_score(Abstaining(lspc(), max_error=0.001), X, Y, cv=3, error_score="raise")
    np.testing.assert_array_equal(scores, 0)
    tagger = Abstaining(labelled(), max_error=0.001).fit(LABELS.X, LABELS.Y)
    assert tagger.score(LABELS.X, LABELS.Y) == 0


@pytest.mark.filterwarnings("ignore:max_error")
def test_tasks_know_what_they_are_promised():
    place = np.arange(len(TASKS.y)) % 80

    def promised(limit, few, **more):
        keep = (TASKS.task < 2) | (place < few)
        model = Abstaining(multi(), by_task=True, **(more or {"max_error": limit}))
        model.fit(TASKS.X[keep], TASKS.y[keep], tasks=TASKS.task[keep])
        return model

    together = promised(0.1, 10)  # 29 rows are needed: 80 are enough, 40 of four tasks too
    assert together.task_guarantees_.tolist() == ["own"] * 2 + ["together"] * 4
    assert len(set(together.task_thresholds_[2:])) == 1
    trusted = promised(0.1, 5)  # 20 of four tasks are not
    assert trusted.task_guarantees_.tolist() == ["own"] * 2 + ["none"] * 4
    assert (trusted.task_thresholds_[2:] == trusted.threshold_).all()
    assert set(promised(0.1, 5, cost=0.2).task_guarantees_) == {"none"}
    trusted.set_params(by_task=False).fit(TASKS.X, TASKS.y, tasks=TASKS.task)
    assert not hasattr(trusted, "task_guarantees_")


# ------------------------------------------------------------------------------- frames


def kinds(container):
    frames = pytest.importorskip(container)
    words = {"plain": LABELS.Y[:, 0], "word": np.where(LABELS.Y[:, 1], "yes", "no"), "flag": LABELS.Y[:, 2] == 1}
    return frames.DataFrame({name: values.tolist() for name, values in words.items()})


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_labels_in_frames_are_rejected_in_frames(container):
    table = kinds(container)
    model = Abstaining(labelled(), min_confidence=0.8).fit(LABELS.X, table)
    said, own, ok = model.predict(LABELS.X), model.estimator_.predict(LABELS.X), model.accepts(LABELS.X)
    assert type(said) is type(own)
    assert list(said.columns) == list(table.columns)
    assert 0 < ok.mean() < 1
    for t, name in enumerate(table.columns):
        for value, truth, accepted in zip(said[name].to_list(), own[name].to_list(), ok[:, t], strict=True):
            assert value == truth if accepted else value is None or value != value
    if container == "polars":
        assert said.dtypes == own.dtypes
    else:
        assert said["plain"].dtype == float
    assert model.score(LABELS.X, table) > 0.8


def test_frames_keep_their_rows_and_types_of_missing():
    pandas = pytest.importorskip("pandas")
    table = kinds("pandas").astype({"plain": "Int64", "word": "category"})
    rows = pandas.DataFrame(LABELS.X).set_index(np.arange(1000, 1160))
    rows.columns = list("abcd")
    model = Abstaining(labelled(), min_confidence=0.8).fit(rows, table)
    said = model.predict(rows)
    assert said.index.tolist() == rows.index.tolist()
    assert [str(said[name].dtype) for name in ("plain", "word")] == ["Int64", "category"]
    np.testing.assert_array_equal(said.isna(), ~model.accepts(rows))


@pytest.mark.parametrize("container", ["pandas", "polars"])
@pytest.mark.parametrize("reject", ["open", -1])
def test_a_mark_of_ones_own_in_frames(container, reject):
    model = Abstaining(labelled(), min_confidence=0.8, reject=reject).fit(LABELS.X, kinds(container))
    said, ok = model.predict(LABELS.X), model.accepts(LABELS.X)
    for t, name in enumerate(said.columns):
        marks = [str(value) for value, accepted in zip(said[name].to_list(), ok[:, t], strict=True) if not accepted]
        assert set(marks) <= {str(reject), f"{float(-1)}"}


def test_sparse_labels_are_an_array_since_zero_is_a_class():
    model = Abstaining(labelled(), min_confidence=0.8).fit(LABELS.X, sparse.csr_matrix(LABELS.Y))
    said = model.predict(LABELS.X)
    assert isinstance(said, np.ndarray)
    np.testing.assert_array_equal(np.isnan(said), ~model.accepts(LABELS.X))


# ---------------------------------------------------------------------------- ONNX graphs


@pytest.mark.parametrize(
    "build", [lambda m: piped(warmed(m)), lambda m: warmed(piped(m))], ids=["last step", "around"]
)
def test_graphs_of_both_together(build):
    pytest.importorskip("onnxruntime")
    from leastwise.onnx import check, to_onnx

    model = Abstaining(build(lspc()), cost=0.2).fit(X, Y)
    assert check(model, to_onnx(model), NEW) < 1e-5
    tagger = Abstaining(build(labelled()), cost=0.2).fit(LABELS.X, LABELS.Y)
    assert check(tagger, to_onnx(tagger), LABELS.X) < 1e-5


# --------------------------------------------------------------------------------- words


def test_a_pipeline_that_loses_names_is_told_how_to_keep_them():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TASKS.X, columns=["u", "v"]).assign(site=TASKS.task)
    with pytest.raises(ValueError, match=r"set_output\(transform=\"pandas\"\)"):
        piped(multi(task_column="site")).fit(frame, TASKS.y)


def test_long_names_are_shortened_where_they_are_printed():
    names = np.array([f"hospital of the city number {t:02d}, department of radiology" for t in range(6)])
    model = multi().fit(TASKS.X, TASKS.y, tasks=names[TASKS.task])
    report = str(calibration_report(TASKS.y, model.heldout_proba_, tasks=names[TASKS.task], n_boot=2))
    assert max(map(len, report.splitlines())) < 160
    assert len({line.split()[0] for line in report.splitlines()[2:8]}) == 6
    text = str(model.influence(TASKS.X[:1], tasks=names[0], top=2))
    first, *rest = text.splitlines()
    assert "position" in first
    assert "from 0" in first
    assert max(map(len, rest)) <= 118
    part = model.influence(TASKS.X[:1], tasks=names[0], top=2).by_task[0].sum(axis=0).max()
    assert f"{part:.4g} (" in text
    assert "from 2 others" in text
