"""After an error or a signal, a model has all of its old state or all of its new state.

An exception is raised at sampled lines of every method that changes a model (``sys.settrace``), and signals are sent
to a process that fits. With the environment variable ``LEASTWISE_LINES=all`` it is raised at every line that runs,
where it runs for the first time, and at the last lines.
"""

import copy
import os
import subprocess
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from conftest import blobs
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leastwise
from leastwise import (
    LSPC,
    LSSVC,
    LSSVR,
    Abstaining,
    KernelLogisticRegression,
    MultiLabelLSPC,
    MultiTaskKernelLogisticRegression,
    MultiTaskLSPC,
    MultiTaskLSSVC,
    MultiTaskLSSVR,
    Recalibrated,
    TableModel,
    merge,
)
from leastwise.tables import TableEncoder

PACKAGE = str(Path(leastwise.__file__).parent)
#: No exception is raised here: a traced line can lie between a lock and its release, where no signal is handled, and
#: the free memory is not asked for in every fit.
LIMITS = ("utils/resources.py", "utils/resources.py")
#: Lines of each method at which an exception is raised: one in every stretch of the trace, and the last ones.
SAMPLED, LAST = 25, 8
EVERY_LINE = os.environ.get("LEASTWISE_LINES") == "all"

X, Y = blobs(n=60, c=2, seed=1)
X2, Y2 = blobs(n=48, c=2, seed=2)
X2 = X2[:, ::-1] * 1.5
TASK, TASK2 = np.arange(60) % 3, np.arange(48) % 3
LABELS, LABELS2 = (np.column_stack([y, x[:, 0] > 0, x[:, 1] > 0]).astype(int) for x, y in ((X, Y), (X2, Y2)))
TABLE, TABLE2 = (
    {"a": x[:, 0], "b": np.where(x[:, 1] > 0, "up", "down"), "y": np.where(y > 0, "yes", "no")}
    for x, y in ((X, Y), (X2, Y2))
)
FIXED = {"sigma": 1.0, "alpha": [0.01, 0.1], "random_state": 0}
STREAM = {**FIXED, "centers": X[::6]}
COUPLED = {**FIXED, "sharing": 0.5}


def state(value):
    """The type and the content of a value, of all its attributes and of theirs, without times; equal if these are."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return tuple((key, state(part)) for key, part in value.items() if key != "seconds_")
    if isinstance(value, list | tuple | np.ndarray):
        return type(value).__name__, *map(state, value)
    if callable(value) or not hasattr(value, "__dict__"):
        return repr(value)
    return type(value).__name__, state(vars(value))


class Injected(Exception):
    """Raised at a line."""


def run_until(action, last):
    """Call ``action`` and raise at the line with number ``last`` of the package.

    Returns the numbers at which each line was run for the first time, and the number of all lines.
    """
    count, first = 0, {}

    def trace(frame, event, arg):
        nonlocal count
        if not frame.f_code.co_filename.startswith(PACKAGE) or frame.f_code.co_filename.endswith(LIMITS):
            return None
        if event == "line":
            count += 1
            first.setdefault((frame.f_code, frame.f_lineno), count)
            if count == last:
                raise Injected
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return list(first.values()), count


def chosen_lines(first, total, seed=0):
    """Numbers of lines: one at random in each of equal stretches, or all lines, and the last ones."""
    if EVERY_LINE:
        return sorted({*first, *range(max(1, total - LAST), total + 1)})
    edges = np.linspace(1, total, SAMPLED + 1).astype(int)
    rng = np.random.default_rng(seed)
    some = [int(rng.integers(a, max(b, a + 1))) for a, b in pairwise(edges)]
    return sorted({*some, *range(max(1, total - LAST), total + 1)})


def check_whole(model, action):
    """Raise at sampled lines of ``action(model)``: the model has the old state or the new one."""
    action(copy.deepcopy(model))  # fills caches of the package, so that all runs have the same lines
    after = copy.deepcopy(model)
    first, total = run_until(lambda: action(after), last=-1)
    old, new = state(model), state(after)
    assert old != new
    found = []
    for line in chosen_lines(first, total):
        one = copy.deepcopy(model)
        assert state(one) == old
        with suppress(Injected, AttributeError):  # the latter where sklearn looks whether there is a method
            run_until(lambda one=one: action(one), line)
        found.append(state(one))
        assert found[-1] in (old, new), f"line {line} of {total}"
    assert found.count(old) >= SAMPLED - 1


def fit_to(*data, **named):
    return lambda model: model.fit(*data, **named)


#: An estimator, and the first and the second fit.
FITS = {
    "LSPC": (LSPC(**FIXED), fit_to(X, Y), fit_to(X2, Y2)),
    "LSSVC": (LSSVC(**FIXED), fit_to(X, Y), fit_to(X2, Y2)),
    "LSSVR": (LSSVR(**FIXED), fit_to(X, X[:, 0]), fit_to(X2, X2[:, 0])),
    "KernelLogisticRegression": (KernelLogisticRegression(**FIXED, cv=3), fit_to(X, Y), fit_to(X2, Y2)),
    "MultiLabelLSPC": (MultiLabelLSPC(**COUPLED), fit_to(X, LABELS), fit_to(X2, LABELS2)),
    "MultiTaskLSPC": (MultiTaskLSPC(**COUPLED), fit_to(X, Y, tasks=TASK), fit_to(X2, Y2, tasks=TASK2)),
    "MultiTaskLSSVC": (MultiTaskLSSVC(**COUPLED), fit_to(X, Y, tasks=TASK), fit_to(X2, Y2, tasks=TASK2)),
    "MultiTaskLSSVR": (
        MultiTaskLSSVR(**COUPLED),
        fit_to(X, X[:, 0], tasks=TASK),
        fit_to(X2, X2[:, 0], tasks=TASK2),
    ),
    "MultiTaskKernelLogisticRegression": (
        MultiTaskKernelLogisticRegression(**COUPLED, cv=3),
        fit_to(X, Y, tasks=TASK),
        fit_to(X2, Y2, tasks=TASK2),
    ),
    "Abstaining": (Abstaining(LSPC(**FIXED), max_error=0.3), fit_to(X, Y), fit_to(X2, Y2)),
    "Abstaining, frozen": (
        Abstaining(FrozenEstimator(LSPC(**FIXED).fit(X, Y)), max_error=0.4),
        fit_to(X, Y),
        fit_to(X2, Y2),
    ),
    "Abstaining, by task": (
        Abstaining(MultiTaskLSPC(**COUPLED), min_confidence=0.6, by_task=True),
        fit_to(X, Y, tasks=TASK),
        fit_to(X2, Y2, tasks=TASK2),
    ),
    "Recalibrated": (Recalibrated(LSPC(**FIXED), "temperature"), fit_to(X, Y), fit_to(X2, Y2)),
    "Abstaining, Recalibrated, pipeline": (
        Abstaining(Recalibrated(make_pipeline(StandardScaler(), LSPC(**FIXED)), "temperature"), min_confidence=0.6),
        fit_to(X, Y),
        fit_to(X2, Y2),
    ),
    "TableModel": (TableModel("y", model=LSPC(**FIXED), min_confidence=0.6), fit_to(TABLE), fit_to(TABLE2)),
    "TableEncoder": (TableEncoder(), fit_to(TABLE), fit_to(TABLE2)),
}
every_fit = pytest.mark.parametrize(("model", "first", "second"), FITS.values(), ids=FITS)


@every_fit
@pytest.mark.filterwarnings("ignore")
def test_fit(model, first, second):
    check_whole(first(copy.deepcopy(model)), second)


def use(model):
    """A prediction, which needs a fitted model."""
    return model.transform(TABLE) if isinstance(model, TableEncoder) else model.predict(X)


@every_fit
@pytest.mark.filterwarnings("ignore")
def test_a_failed_first_fit_leaves_a_model_that_is_not_fitted(model, first, second):
    first(copy.deepcopy(model))  # fills caches of the package
    lines, total = run_until(lambda: first(copy.deepcopy(model)), last=-1)
    for line in [*chosen_lines([k for k in lines if k < total // 2], total // 2)[::3], total - LAST]:
        one = copy.deepcopy(model)
        with pytest.raises(Injected):
            run_until(lambda one=one: first(one), line)
        call = one.predict_table if isinstance(one, TableModel) else lambda _, one=one: use(one)
        with pytest.raises(NotFittedError):
            call(TABLE)


STREAMED = {
    "LSPC": (LSPC(**STREAM), Y, Y2),
    "LSSVC": (LSSVC(**STREAM), Y, Y2),
    "LSSVR": (LSSVR(**STREAM), X[:, 0], X2[:, 0]),
    "MultiLabelLSPC": (MultiLabelLSPC(**STREAM, sharing=0.5), LABELS, LABELS2),
}


@pytest.mark.parametrize(("model", "y", "y2"), STREAMED.values(), ids=STREAMED)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["fit_stream", "partial_fit", "unfit", "forget", "merge"])
def test_streams(model, y, y2, method):
    model = copy.deepcopy(model).fit_stream(X, y)
    other = model.without_rows().partial_fit(X2, y2)
    actions = {
        "fit_stream": lambda one: one.fit_stream(X2, y2),
        "partial_fit": lambda one: one.partial_fit(X2, y2),
        "unfit": lambda one: one.unfit(X[:10], y[:10]),
        "forget": lambda one: one.forget(0.5),
    }
    if method in actions:
        check_whole(model, actions[method])
        return
    states = state(model), state(other)
    merge([model, other])
    first, total = run_until(lambda: merge([model, other]), last=-1)
    for line in chosen_lines(first, total):
        with pytest.raises(Injected):
            run_until(lambda: merge([model, other]), line)
        assert (state(model), state(other)) == states


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [MultiTaskLSPC, MultiTaskLSSVC])
def test_streams_of_tasks(make):
    model = make(**{**STREAM, "sharing": 0.5}).fit_stream(X, Y, task=TASK)
    check_whole(model, lambda one: one.fit_stream(X2, Y2, task=TASK2))


def test_a_threshold_that_cannot_be_set_leaves_the_old_model():
    """The second fit fails after the estimator was fitted."""
    model = Abstaining(LSPC(**FIXED), max_error=0.3).fit(X, Y)
    threshold, P = model.threshold_, model.predict_proba(X)

    def fails(*args, **named):
        raise ValueError("no threshold")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("leastwise.estimators.abstaining.row_thresholds", fails)
        with pytest.raises(ValueError, match="no threshold"):
            model.fit(X2, Y2)
    assert model.threshold_ == threshold
    np.testing.assert_array_equal(model.predict_proba(X), P)


# ------------------------------------------------------------------------ signals

CHILD = """
import signal, sys, time, warnings
sys.path[:0] = {paths!r}
warnings.simplefilter("ignore")
import copy, numpy as np
from tests.estimators.test_all_or_nothing import FITS, STREAMED, X2, state

def begin(name):
    if name.startswith("stream "):
        model, y, y2 = STREAMED[name[7:]]
        return copy.deepcopy(model).fit_stream(X2[::-1], y2[::-1]), lambda one: one.partial_fit(X2, y2)
    model, first, second = FITS[name]
    return first(copy.deepcopy(model)), second

def interrupt(number, frame):
    global fired
    fired = True
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
rng, seen = np.random.default_rng(0), dict(old=0, new=0)
for name in {names!r}:
    model, action = begin(name)
    start = time.perf_counter()
    after = action(copy.deepcopy(model))
    seconds = time.perf_counter() - start
    old, new = state(model), state(after)
    for _ in range({repeats}):
        one, fired = copy.deepcopy(model), False
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.02, 1.05) * seconds)
            action(one)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except BaseException:  # compiled code may turn the interrupt into another error
            if not fired:
                raise
        found = state(one)
        assert found in (old, new), name
        seen["old" if found == old else "new"] += 1
print(seen["old"], seen["new"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs interval timers")
def test_signals():
    names = ["LSPC", "Abstaining", "Recalibrated", "TableModel", "stream LSPC"]
    paths = [str(Path(PACKAGE).parent), str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]
    code = CHILD.format(paths=paths, names=names, repeats=12)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    old, new = map(int, done.stdout.split())
    assert old + new == 12 * len(names)
    assert old > 0
