"""BLAS threads: idle processors, and limits that nest."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from leastwise.utils import resources
from leastwise.utils.resources import BLAS_LIMIT, blas_threads, idle_processors, map_on_threads, threads_for


def proc_files(monkeypatch, tmp_path, running, states):
    """Stand-ins for the files of the kernel: processes that run on the machine, and states of our threads."""
    (tmp_path / "loadavg").write_text(f"0.50 0.40 0.30 {running}/999 4242\n")
    for k, state in enumerate(states):
        (tmp_path / "task" / str(k)).mkdir(parents=True)
        (tmp_path / "task" / str(k) / "stat").write_text(f"{k} (a name) with ) brackets) {state} 1 2 3\n")
    places = {"/proc/loadavg": tmp_path / "loadavg", "/proc/self/task": tmp_path / "task"}
    monkeypatch.setattr(resources, "Path", lambda place: places[place])


@pytest.mark.parametrize(
    ("usable", "machine", "running", "states", "expected"),
    [
        (4, 4, 1, "R", 4),  # only this process
        (4, 4, 3, "R", 2),  # two others
        (4, 4, 9, "R", 1),  # never less than one
        (4, 4, 4, "RRRS", 3),  # own threads are not others
        (2, 64, 31, "R", 2),  # a quota of two on a large machine
        (1, 64, 1, "R", 1),
    ],
)
def test_idle_processors(monkeypatch, tmp_path, usable, machine, running, states, expected):
    proc_files(monkeypatch, tmp_path, running, states)
    monkeypatch.setattr(resources, "cpu_count", lambda: usable)
    monkeypatch.setattr(os, "cpu_count", lambda: machine)
    assert idle_processors() == expected


def test_without_these_files_all_processors_count(monkeypatch, tmp_path):
    monkeypatch.setattr(resources, "Path", lambda place: tmp_path / "absent")
    monkeypatch.setattr(resources, "cpu_count", lambda: 3)
    assert idle_processors() == 3


def test_idle_processors_of_this_machine():
    assert 1 <= idle_processors() <= resources.cpu_count()


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs Linux")
def test_a_thread_that_computes_is_our_own():
    stop = threading.Event()

    def spin():
        A = np.ones((200, 200))
        while not stop.is_set():
            A @ A

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        seen = []
        for _ in range(200):
            seen.append(sum(resources._runs(task) for task in resources.Path("/proc/self/task").iterdir()))
            time.sleep(0.001)
    finally:
        stop.set()
        thread.join()
    assert max(seen) >= 2


def test_small_matrices_have_one_thread_and_large_ones_the_idle_processors(monkeypatch):
    monkeypatch.setattr(resources, "idle_processors", lambda: 2)
    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        with threads_for(5000):
            assert blas_threads() == min(2, before)
            with threads_for(100):
                assert blas_threads() == 1
            assert blas_threads() == min(2, before)
        assert blas_threads() == before


def test_the_limit_of_the_caller_is_not_raised():
    with threadpool_limits(1, user_api="blas"), BLAS_LIMIT.at(4):
        assert blas_threads() == 1


def test_an_error_restores_the_threads():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with pytest.raises(KeyboardInterrupt), threads_for(10):
            raise KeyboardInterrupt
        assert blas_threads() == before


CHILD = """
import signal, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from threadpoolctl import threadpool_limits
from leastwise import LSPC, LSSVR
from leastwise.utils.resources import _libraries

def counts():
    return [library.num_threads for library in _libraries()]

rng = np.random.default_rng(0)
X = rng.normal(size=(250, 3))
y, z = (X[:, 0] + rng.normal(size=250) > 0).astype(int), X[:, 0]
LSPC(n_jobs=2).fit(X, y)
before, stopped = counts(), 0
assert max(before) > 1, before
signal.signal(signal.SIGALRM, signal.default_int_handler)
for k in range(24):
    make = LSPC(n_jobs=2).fit if k % 2 else LSSVR(n_jobs=2).fit
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.002, 0.25))
        make(X, y if k % 2 else z)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        stopped += 1
    for _ in range(500):  # jobs that were running may end later
        if counts() == before:
            break
        time.sleep(0.02)
    assert counts() == before, (k, counts(), before)
print(stopped)
"""


@pytest.mark.skipif(
    sys.platform == "win32" or resources.cpu_count() < 2, reason="needs interval timers, two processors"
)
def test_an_interrupted_fit_with_two_jobs_restores_the_threads():
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 6


def test_an_interrupt_while_the_limit_ends_restores_the_threads(monkeypatch):
    """Ctrl-C is pressed again while the number of threads is set back."""
    applied, again = BLAS_LIMIT._apply, [KeyboardInterrupt(), KeyboardInterrupt()]

    def interrupted():
        if not BLAS_LIMIT._asked and again:
            raise again.pop()
        applied()

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        monkeypatch.setattr(BLAS_LIMIT, "_apply", interrupted)
        with pytest.raises(KeyboardInterrupt), BLAS_LIMIT.at(1):
            pass
        assert not again
        assert blas_threads() == before


def test_a_limit_that_ends_inside_the_lock_does_not_block():
    """As a generator that is collected at any line does."""
    outer = BLAS_LIMIT.at(1)
    outer.__enter__()
    with BLAS_LIMIT._lock:
        thread_ends = outer.__exit__(None, None, None)
    assert thread_ends is False
    assert not BLAS_LIMIT._asked


@pytest.mark.parametrize("workers", [1, 3])
def test_results_of_threads_are_in_order_and_blas_has_one_thread(monkeypatch, workers):
    monkeypatch.setattr(resources, "idle_processors", lambda: workers)
    monkeypatch.setattr(BLAS_LIMIT, "usable", lambda: 4)
    with threadpool_limits(2, user_api="blas"):
        before, names = blas_threads(), set()

        def square(k):
            names.add(threading.current_thread().name)
            time.sleep(0.001 * (k % 3))
            return k * k, blas_threads()

        assert list(map_on_threads(square, range(20))) == [(k * k, 1) for k in range(20)]
        assert blas_threads() == before
    assert (names == {threading.current_thread().name}) == (workers == 1)


def test_items_are_read_as_results_are_used(monkeypatch):
    monkeypatch.setattr(resources, "idle_processors", lambda: 2)
    monkeypatch.setattr(BLAS_LIMIT, "usable", lambda: 2)
    read = []
    results = map_on_threads(lambda k: k, (read.append(k) or k for k in range(100)))
    assert next(results) == 0
    assert len(read) <= 5
    results.close()
    assert len(read) <= 5
    assert not BLAS_LIMIT._asked


def test_an_error_in_a_thread_is_raised(monkeypatch):
    monkeypatch.setattr(resources, "idle_processors", lambda: 2)
    monkeypatch.setattr(BLAS_LIMIT, "usable", lambda: 2)
    with pytest.raises(ZeroDivisionError):
        list(map_on_threads(lambda k: 1 // (7 - k), range(30)))
    assert not BLAS_LIMIT._asked


def test_threads_that_the_caller_allows():
    with threadpool_limits(1, user_api="blas"):
        assert BLAS_LIMIT.usable() == 1
        with BLAS_LIMIT.at(1):
            assert BLAS_LIMIT.usable() == 1
    with threadpool_limits(2, user_api="blas"), BLAS_LIMIT.at(1):  # limits of the library do not count
        assert BLAS_LIMIT.usable() == min(2, resources.cpu_count())
