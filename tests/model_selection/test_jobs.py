"""Searches side by side end where they do one after the other, and leave threads and processes as they were."""

import os
import signal
import subprocess
import sys
import threading
import time

import joblib
import numpy as np
import pytest
from conftest import blobs
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jobs_cases import CASES, X, Y, assert_same_model, deadly, fitted, loops, seen_by, spying
from mutated_files import read, write
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

import leastwise as lw
from leastwise.datasets import make_related_tasks
from leastwise.model_selection import steps
from leastwise.model_selection.checkpoint import checkpointing
from leastwise.persistence.container import FileError
from leastwise.utils import resources
from leastwise.utils.resources import available_memory


@pytest.fixture
def begun(monkeypatch):
    """How many tasks were dealt out, each time."""
    seen, begin = [], steps.in_order

    def spy(function, tasks, n):
        seen.append(len(tasks))
        return begin(function, tasks, n)

    monkeypatch.setattr(steps, "in_order", spy)
    return seen


# ---------------------------------------------------------------- same answer


@pytest.mark.parametrize("name", CASES)
def test_jobs_change_nothing(name, begun):
    model, data = CASES[name]
    one = fitted(model, data)
    assert not begun
    assert_same_model(one, fitted(model, data, n_jobs=2))
    assert (sum(begun) > 1) == (name != "tasks-arrow")


@pytest.mark.parametrize("name", ["tasks", "labels", "klr", "tasks-klr"])
def test_jobs_keep_nothing_in_common(name, monkeypatch):
    """What one job computes and keeps, another one must not clear or read in the middle."""
    sent, begin = [], steps.in_order
    monkeypatch.setattr(steps, "in_order", lambda function, tasks, n: sent.extend(tasks) or begin(function, tasks, n))
    fitted(*CASES[name], n_jobs=2)
    assert sent
    for _, evaluator, _ in sent:
        assert not any(getattr(evaluator, kept, None) for kept in ("_cached", "past", "_pasts", "unconverged"))


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_processes_change_nothing(backend, begun):
    with joblib.parallel_config(backend):
        for name in ("lspc-weights", "klr", "tasks", "labels"):
            model, data = CASES[name]
            assert_same_model(fitted(model, data), fitted(model, data, n_jobs=2))
    assert len(begun) >= 4


def test_large_arrays_reach_processes_by_files():
    """Beyond a million bytes joblib maps arrays into memory, read-only; what is learned are plain arrays."""
    data = blobs(400, d=3)
    with joblib.parallel_config("loky"):
        two = lw.LSPC(sigma=[0.5, 1.0], alpha=[0.1, 0.01], n_jobs=2).fit(*data)
        assert_same_model(lw.LSPC(sigma=[0.5, 1.0], alpha=[0.1, 0.01]).fit(*data), two)


@settings(max_examples=8)
@given(
    seed=st.integers(0, 10**6),
    sharing=st.one_of(st.just("auto"), st.lists(st.floats(0, 1), min_size=1, max_size=3)),
    sigmas=st.lists(st.sampled_from([0.2, 0.5, 1.0, 3.0, 9.0]), min_size=1, max_size=4, unique=True),
    n_jobs=st.integers(2, 5),
)
def test_any_grid(seed, sharing, sigmas, n_jobs):
    data = make_related_tasks(n_tasks=3, n_rows=8, random_state=seed)
    assume(len(np.unique(data.y)) == 2)
    model = lw.MultiTaskLSPC(sigmas, [0.01, 0.1], sharing, calibration=None)
    one = model.fit(data.X, data.y, tasks=data.task)
    two = clone(model).set_params(n_jobs=n_jobs).fit(data.X, data.y, tasks=data.task)
    assert_same_model(one, two)


def test_a_context_says_how_many(begun):
    with joblib.parallel_config("threading", n_jobs=2):
        fitted(*CASES["lspc"])
        assert len(begun) == 1
        fitted(*CASES["lspc"], n_jobs=1)
    with joblib.parallel_config("threading"):
        fitted(*CASES["lspc"])
    assert len(begun) == 1
    fitted(*CASES["lspc"], n_jobs=-1)
    assert len(begun) == (2 if joblib.cpu_count() > 1 else 1)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("value", [0, 1.5, "all", True])
def test_numbers_of_jobs_that_are_none(name, value):
    with pytest.raises(ValueError, match=r"n_jobs=.*whole number other than 0"):
        fitted(*CASES[name], n_jobs=value)


# --------------------------------------------------------------- told in order


class Memory:
    """Keeps the steps that it is told of; may stop a search, as Ctrl-C does."""

    def __init__(self, known=(), stop_after=None):
        self.known, self.steps, self.recalled, self.stop_after = dict(known), [], 0, stop_after

    def load(self, step):
        self.recalled += step in self.known
        return self.known.get(step)

    def save(self, step, entry):
        self.steps.append((step, entry))
        if len(self.steps) == self.stop_after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["lspc", "tasks"])
def test_lines_and_steps_come_in_order(name, capsys):
    told = []
    for n_jobs in (1, 2):
        memory = Memory()
        with checkpointing(memory):
            fitted(CASES[name][0].set_params(verbose=1), CASES[name][1], n_jobs)
        CASES[name][0].set_params(verbose=0)
        lines = [line.rpartition(",")[0] for line in capsys.readouterr().out.splitlines()]  # not the seconds
        assert len(lines) > 5
        told.append((lines, [step for step, _ in memory.steps]))
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("name", "stop_after"), [("lspc", 1), ("lspc", 4), ("lspc-chosen", 9), ("tasks", 5), ("labels", 3)]
)
def test_taken_up_again(name, stop_after, begun):
    """A search that was broken off goes on where it was, in jobs or not, and makes nothing twice."""
    model, data = CASES[name]
    one = fitted(model, data)
    broken = Memory(stop_after=stop_after)
    with pytest.raises(KeyboardInterrupt), checkpointing(broken):
        fitted(model, data, n_jobs=2)
    before = sum(begun)
    for n_jobs in (2, 1):
        again = Memory(known=broken.steps)
        with checkpointing(again):
            assert_same_model(one, fitted(model, data, n_jobs))
        assert again.recalled == stop_after
    if name == "lspc":
        assert sum(begun) - before == before - stop_after


# -------------------------------------------------------------------- threads


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_threads_are_shared_by_jobs_and_given_back(backend, tmp_path):
    path = tmp_path / "seen"
    model = lw.LSPC([0.5, 1.0, 2.0], [0.01, 0.1], scoring=spying(path))
    with threadpool_limits(2, user_api="blas"):
        before = resources.blas_threads()
        with joblib.parallel_config(backend):
            model.set_params(n_jobs=2).fit(X, Y)
        assert resources.blas_threads() == before
    lines = seen_by(path)
    assert {seen for _, _, seen in lines} == {1}
    assert len({(pid, thread) for pid, thread, _ in lines}) <= 2
    assert (os.getpid() in {pid for pid, _, _ in lines}) == (backend == "threading")


@pytest.mark.parametrize(("small", "idle", "used"), [(0, 2, 2), (0, 1, 1), (600, 2, 1)])
def test_one_job_has_the_idle_processors_for_large_matrices(small, idle, used, tmp_path, monkeypatch):
    path = tmp_path / "seen"
    monkeypatch.setattr(resources, "SMALL_ROWS", small)
    monkeypatch.setattr(resources, "idle_processors", lambda: idle)
    with threadpool_limits(2, user_api="blas"):
        before = resources.blas_threads()
        lw.LSPC([0.5, 1.0], [0.01, 0.1], scoring=spying(path)).fit(X, Y)
        assert resources.blas_threads() == before
    assert {(pid, seen) for pid, _, seen in seen_by(path)} == {(os.getpid(), min(before, used))}


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_jobs_in_jobs_do_not_multiply(backend, tmp_path):
    path = tmp_path / "seen"
    model = lw.LSPC([0.5, 1.0], [0.01, 0.1], scoring=spying(path), n_jobs=2)
    search = GridSearchCV(model, {"bias": [None, "shared"]}, cv=2, refit=False)
    with joblib.parallel_config(backend, n_jobs=2):
        search.fit(X, Y)
    assert len({(pid, thread) for pid, thread, _ in seen_by(path)}) <= 2
    search.set_params(n_jobs=1).fit(X, Y)  # then there is room for the model's own
    assert len({(pid, thread) for pid, thread, _ in seen_by(path)}) >= 2


@settings(max_examples=10)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 2)), min_size=1, max_size=6))
def test_the_last_thread_takes_the_limit_off(visits):
    """However visits overlap."""
    limit, seen = resources.BlasLimit(), []

    def visit(wait, stay, count):
        time.sleep(wait / 500)
        with limit.at(count):
            time.sleep(stay / 500)
            seen.append((count, resources.blas_threads()))

    with threadpool_limits(3, user_api="blas"):
        before = resources.blas_threads()
        visitors = [threading.Thread(target=visit, args=args) for args in visits]
        for visitor in visitors:
            visitor.start()
        for visitor in visitors:
            visitor.join()
        assert resources.blas_threads() == before
    assert len(seen) == len(visits)
    assert all(used <= count for count, used in seen)


def test_as_many_jobs_as_fit(monkeypatch):
    monkeypatch.setenv("LEASTWISE_MEMORY", "1000")
    with joblib.parallel_config("threading"):
        assert [steps.jobs_allowed(4, 10, need) for need in (100, 250, 334, 999, 5000)] == [4, 4, 2, 1, 1]
        assert steps.jobs_allowed(4, 3, 1) == 3
        assert steps.jobs_allowed(4, 1, 1) == 1


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_jobs_keep_to_the_memory_limit_of_who_asks(backend, monkeypatch):
    monkeypatch.delenv("LEASTWISE_MEMORY", raising=False)
    with joblib.parallel_config(backend):
        with lw.memory_limit("3MB"):
            assert list(steps.in_order(available_memory, [()] * 4, 2)) == [3 * 2**20] * 4
        assert 3 * 2**20 not in steps.in_order(available_memory, [()] * 4, 2)


def test_a_search_without_room_for_two(monkeypatch, begun):
    n = len(X)
    monkeypatch.setenv("LEASTWISE_MEMORY", str(13 * 8 * n * n))  # seven arrays of n x n at the peak of each
    fitted(*CASES["lspc"], n_jobs=2)
    assert not begun
    monkeypatch.setenv("LEASTWISE_MEMORY", str(15 * 8 * n * n))
    fitted(*CASES["lspc"], n_jobs=2)
    assert begun


# ---------------------------------------------------------------------- files


@pytest.mark.parametrize("name", CASES)
def test_files_start_no_jobs(name, tmp_path):
    """How many jobs there are is for the machine to say, not for a file."""
    model = clone(CASES[name][0]).set_params(n_jobs=2)
    lw.save(model, tmp_path / "model.lw")
    assert b"n_jobs" not in (tmp_path / "model.lw").read_bytes()
    assert lw.load(tmp_path / "model.lw").n_jobs is None
    header, blobs = read(tmp_path / "model.lw")
    header["objects"][0]["state"]["n_jobs"] = 2
    write(tmp_path / "changed.lw", header, blobs)
    with pytest.raises(FileError, match="n_jobs is not declared"):
        lw.load(tmp_path / "changed.lw")


# -------------------------------------------------------- scikit-learn's loops


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_loops_of_others(backend):
    expected = list(loops())
    with joblib.parallel_config(backend, n_jobs=2):
        for one, other in zip(expected, loops(), strict=True):
            np.testing.assert_array_equal(one, other)


# ------------------------------------------------------------------- failures


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
def test_a_process_is_killed(tmp_path):
    """joblib does nothing twice: an error, the model as it was, and another fit goes well."""
    model = lw.LSPC([0.5, 1.0, 2.0], [0.01, 0.1], scoring=deadly(tmp_path / "once"), n_jobs=2)
    before = resources.blas_threads()
    with joblib.parallel_config("loky"):
        with pytest.raises(Exception, match="terminated"):
            model.fit(X, Y)
        assert not hasattr(model, "sigma_")
        assert resources.blas_threads() == before
        model.fit(X, Y)
    assert_same_model(model, clone(model).set_params(n_jobs=1).fit(X, Y))


def failing(model, X, y):
    raise RuntimeError("no score today")


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_what_fails_in_a_job_leaves_the_model_as_it_was(backend):
    model = lw.LSPC(n_jobs=2).fit(X, Y)
    before = dict(vars(model))
    used = resources.blas_threads()
    model.set_params(scoring=lambda *args: failing(*args))
    with joblib.parallel_config(backend), pytest.raises(RuntimeError, match="no score today"):
        model.fit(X, Y)
    assert {**vars(model), "scoring": "log_loss"} == before
    assert resources.blas_threads() == used


INTERRUPTED = """
import _thread, os, threading, time
import joblib, numpy as np
import leastwise as lw

def slow(model, X, y):
    import time
    time.sleep(0.1)
    return 0.5

def interrupted(backend, seconds):
    model = lw.LSPC(1.0, 0.1).fit(X, y).set_params(sigma="auto", alpha="auto", n_jobs=2, scoring=slow)
    before = dict(vars(model))
    threading.Timer(seconds, _thread.interrupt_main).start()
    with joblib.parallel_config(backend):
        try:
            model.fit(X, y)
        except KeyboardInterrupt:
            print(backend, all(vars(model)[name] is value for name, value in before.items()))

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
y = (X[:, 0] > 0).astype(int)
interrupted("threading", 0.3)
interrupted("loky", 2.0)
"""


def test_interrupted():
    """Ctrl-C in the middle: the model is as it was, and no process is left."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    run = subprocess.Popen([sys.executable, "-c", INTERRUPTED], start_new_session=True, **pipes)
    out, err = run.communicate(timeout=60)
    assert out == "threading True\nloky True\n", err
    for _ in range(100):  # processes that were told to end take a moment
        try:
            os.killpg(run.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("processes are left")
