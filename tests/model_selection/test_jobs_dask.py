"""Searches and scikit-learn's loops on a cluster of Dask: two worker processes, one of which is killed in the end."""

import os
import signal

import joblib
import numpy as np
import pytest
from jobs_cases import CASES, X, Y, assert_same_model, deadly, fitted, loops, seen_by, spying

import leastwise as lw
from leastwise.model_selection import steps


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes; at any free port, for there may be other clusters."""
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed (extra dask)")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


def test_loops_of_others(cluster):
    expected = list(loops())
    with joblib.parallel_config("dask"):
        for one, other in zip(expected, loops(), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.fixture
def begun(monkeypatch):
    """How many tasks were dealt out, each time."""
    seen, begin = [], steps.in_order

    def spy(function, tasks, n):
        seen.append(len(tasks))
        return begin(function, tasks, n)

    monkeypatch.setattr(steps, "in_order", spy)
    return seen


def test_a_search_on_dask(cluster, begun, tmp_path):
    path = tmp_path / "seen"
    with joblib.parallel_config("dask"):
        for name in ("lspc", "tasks"):
            model, data = CASES[name]
            assert_same_model(fitted(model, data, n_jobs=1), fitted(model, data))
        assert len(begun) >= 2
        lw.LSPC([0.5, 1.0, 2.0], [0.01, 0.1], scoring=spying(path)).fit(X, Y)
    assert {pid for pid, _, _ in seen_by(path)} <= set(cluster.run(os.getpid).values())


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
def test_a_worker_of_dask_is_killed(cluster, tmp_path):
    """Its task is done by another: the same answer."""
    (tmp_path / "done").touch()
    one = lw.LSPC([0.5, 1.0, 2.0], [0.01, 0.1], scoring=deadly(tmp_path / "done")).fit(X, Y)
    with joblib.parallel_config("dask"):
        two = lw.LSPC([0.5, 1.0, 2.0], [0.01, 0.1], scoring=deadly(tmp_path / "once")).fit(X, Y)
    assert (tmp_path / "once").exists()
    assert_same_model(one, two)
