"""A wrong ``class_weight`` is refused with one message by every estimator, wherever its rows come from."""

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from leastwise import (
    LSPC,
    LSSVC,
    KernelLogisticRegression,
    MultiLabelLSPC,
    MultiTaskKernelLogisticRegression,
    MultiTaskLSPC,
    MultiTaskLSSVC,
)
from leastwise.estimators.abstaining import Abstaining
from leastwise.estimators.recalibrated import Recalibrated
from leastwise.problem.targets.classes import balanced_factors, check_class_weight, class_factors
from leastwise.tables import TableModel

RNG = np.random.default_rng(0)
N = 60
X = RNG.normal(size=(N, 2))
Y = np.where(X[:, 0] + 0.5 * RNG.normal(size=N) > 0, "yes", "no").astype("U5")
Y[:6] = "maybe"
TASK = np.arange(N) % 3
CODED = {"sigma": 1.0, "alpha": 0.1, "random_state": 0}
FEW = {**CODED, "centers": X[::6]}
TABLES = np.stack([Y == "yes", X[:, 1] > 0, X[:, 0] > 0.5], axis=1).astype(int)


def lazy(*arrays):
    da = pytest.importorskip("dask.array")
    return [da.from_array(a, chunks=(20, *a.shape[1:])) for a in arrays]


def on_dask(model, **more):
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="synchronous"):
        A, b = lazy(X, Y)
        return model.fit(A, b, **{name: lazy(value)[0] for name, value in more.items()})


def by_parts(model):
    half = [{"X": X[k::2], "y": Y[k::2], "tasks": TASK[k::2]} for k in range(2)]
    return model.fit_stream(half)


def going_on(model):
    """The parameter is changed between two calls."""
    weight = model.class_weight
    model.set_params(class_weight=None).fit_stream(X, Y)
    return model.set_params(class_weight=weight).partial_fit(X, Y)


#: Every estimator with the parameter, by every path that rows take.
PATHS = {
    "LSPC": lambda weight: LSPC(**CODED, class_weight=weight).fit(X, Y),
    "LSPC, weights": lambda weight: LSPC(**CODED, class_weight=weight).fit(X, Y, sample_weight=np.arange(N)),
    "LSPC, sums": lambda weight: LSPC(**FEW, solver="moments", class_weight=weight).fit(X, Y),
    "LSPC, krylov": lambda weight: LSPC(**CODED, solver="krylov", class_weight=weight).fit(X, Y),
    "LSPC, stream": lambda weight: LSPC(**FEW, class_weight=weight).fit_stream(X, Y),
    "LSPC, iterator": lambda weight: LSPC(**FEW, class_weight=weight).fit_stream(iter([(X, Y)])),
    "LSPC, partial_fit": lambda weight: LSPC(**FEW, class_weight=weight).partial_fit(X, Y),
    "LSPC, second partial_fit": lambda weight: going_on(LSPC(**FEW, class_weight=weight)),
    "LSPC, Dask": lambda weight: on_dask(LSPC(**FEW, class_weight=weight)),
    "LSSVC": lambda weight: LSSVC(**CODED, class_weight=weight).fit(X, Y),
    "LSSVC, stream": lambda weight: LSSVC(**FEW, class_weight=weight).fit_stream(X, Y),
    "LSSVC, Dask": lambda weight: on_dask(LSSVC(**FEW, class_weight=weight)),
    "KLR": lambda weight: KernelLogisticRegression(**CODED, class_weight=weight).fit(X, Y),
    "tasks": lambda weight: MultiTaskLSPC(**CODED, class_weight=weight).fit(X, Y, tasks=TASK),
    "tasks, parts": lambda weight: by_parts(MultiTaskLSPC(**FEW, class_weight=weight)),
    "tasks, Dask": lambda weight: on_dask(MultiTaskLSPC(**FEW, class_weight=weight), tasks=TASK),
    "task machine": lambda weight: MultiTaskLSSVC(**CODED, class_weight=weight).fit(X, Y, tasks=TASK),
    "task machine, parts": lambda weight: by_parts(MultiTaskLSSVC(**FEW, class_weight=weight)),
    "task machine, Dask": lambda weight: on_dask(MultiTaskLSSVC(**FEW, class_weight=weight), tasks=TASK),
    "task KLR": lambda weight: MultiTaskKernelLogisticRegression(**CODED, class_weight=weight).fit(X, Y, tasks=TASK),
    "one label": lambda weight: MultiLabelLSPC(**CODED, class_weight=weight).fit(X, Y),
    "table": lambda weight: TableModel(target="y", model=LSPC(**CODED, class_weight=weight)).fit(
        {"a": X[:, 0], "b": X[:, 1], "y": Y}
    ),
    "abstaining": lambda weight: Abstaining(LSPC(**CODED, class_weight=weight), cost=0.1).fit(X, Y),
    "recalibrated": lambda weight: Recalibrated(LSPC(**CODED, class_weight=weight)).fit(X, Y),
}
WRONG = {
    "infinite": ({"yes": np.inf}, "The weight of 'yes' is inf: give a finite number of 0 or more"),
    "NaN": ({"yes": np.nan}, "The weight of 'yes' is nan: give a finite number of 0 or more"),
    "negative": ({"no": -1.0, "yes": 1}, r"The weight of 'no' is -1\.0: give a finite number of 0 or more"),
    "text": ({"no": "2"}, "The weight of 'no' is '2': give a finite number of 0 or more"),
    "array": ({"no": np.ones(2)}, r"The weight of 'no' is array\(\[1., 1.\]\): give a finite number"),
    "all zero": ({"yes": 0, "no": 0.0, "maybe": 0}, "weight 0, so that no row counts: give one a weight above 0"),
    "no class": ({"yes": 2, "oui": 2}, r"It names \['oui'\]; .* are \['maybe', 'no', 'yes'\]. Remove or correct"),
    "no class, zero": ({"oui": 0}, r"It names \['oui'\]; .* are \['maybe', 'no', 'yes'\]"),
    "number for a class": ({1: 2.0}, r"It names \[1\]; .* are \['maybe', 'no', 'yes'\]"),
    "word": ("balance", "'balance' is not supported: give one of these"),
    "number": (2.0, "It is a float: give one of these"),
    "set": ({"yes"}, "It is a set: give one of these"),
}


@pytest.mark.parametrize(("weight", "message"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("path", PATHS)
def test_a_wrong_weight_is_refused_alike_on_every_path(path, weight, message):
    with pytest.raises(ValueError, match=rf"class_weight=.* must be None, 'balanced'.*{message}"):
        PATHS[path](weight)


@pytest.mark.parametrize("path", [path for path in PATHS if path != "one label"])
def test_a_list_is_for_labels(path):
    with pytest.raises(ValueError, match=r"class_weight=.* must be None, 'balanced' or a dict.* It is a list"):
        PATHS[path]([{"yes": 1}, {"no": 2}, {"maybe": 1}])


@pytest.mark.parametrize("path", PATHS)
def test_a_class_that_is_not_named_has_weight_1(path):
    some, every = PATHS[path]({"yes": 2}), PATHS[path]({"yes": 2.0, "no": 1, "maybe": np.float32(1)})
    if path == "table":
        some, every = some.model_, every.model_
    more = {"tasks": TASK} if "task" in path else {}
    np.testing.assert_array_equal(some.predict_proba(X, **more), every.predict_proba(X, **more))


@pytest.mark.parametrize("path", ["LSPC", "LSSVC", "KLR", "tasks", "task machine", "task KLR", "tasks, parts"])
def test_a_class_of_weight_0_is_left_out(path):
    model = PATHS[path]({"maybe": 0})
    assert model.classes_.tolist() == ["no", "yes"]


# ---------------------------------------------------------------------------- labels

LABELS_WRONG = {
    "infinite": ({1: np.inf}, "The weight of 1 is inf: give a finite number of 0 or more"),
    "all zero": ({0: 0, 1: 0}, "weight 0, so that no row counts"),
    "no class": ({2: 1.0}, r"It names \[2\]; the classes of all labels are \[0, 1\]"),
    "no class of a label": ([None, {2: 1.0}, None], r"It names \[2\]; the classes of label 1 are \[0, 1\]"),
    "all zero in a label": ([None, {0: 0, 1: 0}, None], "It gives all of the classes of label 1 weight 0"),
    "too few": ([{1: 2}, {1: 3}], "a list of 3 such dicts, one for each label. It has 2 entries"),
    "too many": (["balanced"] * 4, "a list of 3 such dicts, one for each label. It has 4 entries"),
    "no label": ({"oak": {1: 2}}, r"It names \['oak'\], which are not labels; the labels are \[0, 1, 2\]"),
    "negative in a label": ({1: {0: -2}}, "The weight of 0 is -2: give a finite number"),
    "word in a list": (["balance", None, None], "'balance' is not supported"),
    "array": (np.ones(3), "It is a ndarray"),
}


@pytest.mark.parametrize(("weight", "message"), LABELS_WRONG.values(), ids=LABELS_WRONG)
def test_a_wrong_weight_of_labels_is_refused(weight, message):
    with pytest.raises(ValueError, match=rf"(?s)class_weight=.* must be None, 'balanced', a dict from.*{message}"):
        MultiLabelLSPC(**CODED, class_weight=weight).fit(X, TABLES)
    with pytest.raises(ValueError, match="no class_weight"):  # sums have one weight for all labels of a row
        MultiLabelLSPC(**FEW, class_weight=weight).fit_stream(X, TABLES)


# ------------------------------------------------------------------------- the parts


def test_balanced_is_that_of_scikit_learn_up_to_a_constant():
    classes, codes = np.unique(Y, return_inverse=True)
    factor = class_factors("balanced", classes, np.bincount(codes))
    np.testing.assert_allclose(factor / len(classes), compute_class_weight("balanced", classes=classes, y=Y))
    np.testing.assert_array_equal(balanced_factors(np.array([0.0, 2.0, 6.0])), [0, 4, 8 / 6])


def test_before_the_classes_are_known_values_are_looked_at_all_the_same():
    check_class_weight({"anything": 2})
    with pytest.raises(ValueError, match="The weight of 'anything' is nan"):
        check_class_weight({"anything": np.nan})


def test_weights_that_overflow_are_refused():
    with pytest.raises(ValueError, match="overflow when they are summed: divide them by a constant"):
        LSPC(**CODED, class_weight={"yes": 1e308, "no": 1e308}).fit(X, Y)
