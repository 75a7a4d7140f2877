"""Under ``ulimit -v`` a fit is done, or refused with figures: never killed, nor left with a bare error of NumPy.

Each fit runs in a process of its own, with a limit on the address space that leaves a given room. Rooms near what a
fit needs are where a plan can be wrong.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leastwise import LSPC
from leastwise.utils.resources import explained_memory

ROOMS = (1, 8, 25, 250)  # MB
CHILD = """
import os, resource, signal, sys, tempfile, warnings
import numpy as np, pandas as pd
from leastwise import *
from leastwise.cli import main
from leastwise.tables import TableModel

warnings.simplefilter("ignore")
n, rng = 400, np.random.default_rng(0)
X = rng.standard_normal((n, 6))
values = np.sin(X).sum(axis=1) + rng.standard_normal(n)
y, task, Y = values > 0, rng.integers(4, size=n), np.column_stack([values > 0, X[:, 1] + values > 0])
table = pd.DataFrame(X, columns=list("uvwxyz")).assign(found=np.where(y, "yes", "no"))
folder = tempfile.mkdtemp()
table.to_csv(folder + "/t.csv", index=False)

def streamed(model, y, **more):
    parts = [slice(i, i + 100) for i in range(0, n, 100)]
    return model.fit_stream([{"X": X[p], "y": y[p], **{k: v[p] for k, v in more.items()}} for p in parts])

def command():
    out = folder + f"/{os.getpid()}.lw"
    return main(["fit", folder + "/t.csv", "--target", "found", "--kernel", "rbf", "-o", out])

given = {"random_state": 0, "sigma": 2.0, "scale": "standard", "kernel": "rbf"}
few = {**given, "n_centers": 100}
FITS = {
    "LSPC": lambda: LSPC(**given).fit(X, y),
    "LSPC coefficients": lambda: LSPC(norm="coefficients", **given).fit(X, y),
    "LSPC centres": lambda: LSPC(**few).fit(X, y),
    "LSPC krylov": lambda: LSPC(norm="function", solver="krylov", **given).fit(X, y),
    "LSPC sgd": lambda: LSPC(solver="sgd", **few).fit(X, y),
    "LSSVC": lambda: LSSVC(**given).fit(X, y),
    "LSSVR": lambda: LSSVR(**given).fit(X, values),
    "KernelLogisticRegression": lambda: KernelLogisticRegression(**given).fit(X[:200], y[:200]),
    "MultiTaskLSPC": lambda: MultiTaskLSPC(**given).fit(X, y, tasks=task),
    "MultiTaskLSPC arrow": lambda: MultiTaskLSPC(**few).fit(X, y, tasks=task),
    "MultiTaskLSSVC": lambda: MultiTaskLSSVC(**given).fit(X, y, tasks=task),
    "MultiTaskLSSVR": lambda: MultiTaskLSSVR(**given).fit(X, values, tasks=task),
    "MultiTaskKernelLogisticRegression": lambda: MultiTaskKernelLogisticRegression(**given).fit(
        X[:200], y[:200], tasks=task[:200]
    ),
    "MultiLabelLSPC": lambda: MultiLabelLSPC(**given).fit(X, Y),
    "MultiLabelLSPC centres": lambda: MultiLabelLSPC(**few).fit(X, Y),
    "stream": lambda: streamed(LSPC(**few), y),
    "stream of tasks": lambda: streamed(MultiTaskLSPC(**few), y, tasks=task),
    "partial_fit": lambda: LSPC(**few).partial_fit(X, y),
    "Abstaining": lambda: Abstaining(Recalibrated(LSPC(**given)), max_error=0.4).fit(X, y),
    "TableModel": lambda: TableModel(target="found", kernel="rbf").fit(table),
}

def outcome(fit):
    try:
        fit()
    except MemoryError as error:
        text = str(error)
        return "refused" if "available" in text and type(error).__module__ == "builtins" else f"{error!r}"
    except BaseException as error:
        return f"{error!r}"
    return "done"

def in_room(room, run):
    '''What ``run`` returns in a process with this many MB of address space left.'''
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(120)
        pages = int(open("/proc/self/statm").read().split()[0])
        size = pages * os.sysconf("SC_PAGE_SIZE") + room * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        os.write(writing, run().encode())
        os._exit(0)
    os.close(writing)
    found = os.read(reading, 65536).decode()
    os.close(reading)
    return found or f"ended by {os.waitpid(child, 0)[1]}"

for fit in FITS.values():  # imports, buffers of BLAS, and the probe of the machine
    assert outcome(fit) == "done", outcome(fit)
assert command() == 0
for name, fit in FITS.items():
    for room in map(int, sys.argv[1:]):
        print(name, room, in_room(room, lambda: outcome(fit)), sep="|", flush=True)
for room in map(int, sys.argv[1:]):
    print("fit", room, in_room(room, lambda: str(command())), sep="|", flush=True)
"""
linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the address space is read from /proc")


@linux
def test_fits_in_a_limited_address_space_are_done_or_refused_with_figures():
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CHILD, *map(str, ROOMS)]
    run = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert run.returncode == 0, run.stderr
    lines = [line.split("|", 2) for line in run.stdout.splitlines() if line.count("|") == 2]
    found = {(name, int(room)): how for name, room, how in lines}
    train = {room: found.pop(("fit", room)) for room in ROOMS}
    assert len(found) == 20 * len(ROOMS)
    assert not {key: how for key, how in found.items() if how not in ("done", "refused")}
    names = sorted({name for name, _ in found})
    assert sum(found[name, ROOMS[0]] == "refused" for name in names) >= 10  # buffers of earlier fits serve some
    assert all(found[name, ROOMS[-1]] == "done" for name in names)
    assert train[ROOMS[-1]] == "0"
    assert set(train.values()) <= {"0", "3"}, train  # 3: data that cannot be used


def test_an_allocation_that_fails_in_a_fit_says_what_to_do():
    def greedy(A, B):
        return np.empty(2**58) if len(A) > 3 else np.ones((len(A), len(B)))

    model = LSPC(kernel=greedy, scale=None, sigma=1.0, alpha=0.1)
    with pytest.raises(MemoryError, match=r"^Out of memory: .*2.00 EiB.*B are available to this process") as caught:
        model.fit(np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2)
    assert type(caught.value) is MemoryError
    assert "n_centers=" in str(caught.value)
    assert not hasattr(model, "classes_")


def test_errors_with_figures_are_raised_as_they_are():
    with pytest.raises(MemoryError, match=r"^ours$"), explained_memory():
        raise MemoryError("ours")
    with pytest.raises(MemoryError, match=r"^Out of memory: an allocation failed; "), explained_memory():
        raise MemoryError
