"""Streams on disk: the same rows again, tasks together, and nothing left behind."""

import os
import pickle
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from call_counts import counted_calls
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import leastwise
from leastwise.sources import gather
from leastwise.sources.blocks import Block, SpillError, StreamError
from leastwise.sources.opening import open_blocks
from leastwise.sources.spill import Spool, stable_hash

SRC = str(Path(leastwise.__file__).parent.parent)


def same(a, b):
    """Two blocks have the same rows, of the same types."""
    X, Z = (m.toarray() if sparse.issparse(m) else m for m in (a.X, b.X))
    np.testing.assert_array_equal(X, Z)
    assert X.dtype == Z.dtype
    for name in ("y", "sample_weight", "tasks", "groups"):
        u, v = getattr(a, name), getattr(b, name)
        assert (u is None) == (v is None), name
        if u is not None:
            assert u.tolist() == v.tolist()
            assert u.shape == v.shape


IDS = {
    "ints": lambda k: k * 7 - 3,
    "text": lambda k: f"site {k} ü",
    "tuples": lambda k: ("north", k),
    "dates": lambda k: date(2024, 1, 1 + k),
    "mixed": lambda k: (k, f"{k}", k + 0.5, ("t", k))[k % 4],
    "large": lambda k: 2**70 + k,
}


def stream(ids="ints", n_tasks=8, sizes=(10, 3, 25, 12), csr=False, seed=0):
    """Blocks of rows of many tasks; the first column of X counts all rows."""
    rng, first, blocks = np.random.default_rng(seed), 0, []
    for n in sizes:
        X = np.column_stack([np.arange(first, first + n), rng.normal(size=(n, 2))])
        tasks = np.empty(n, dtype=object)
        tasks[:] = [IDS[ids](int(k)) for k in rng.integers(0, n_tasks, n)]
        tasks = tasks.astype(np.int64) if ids == "ints" else tasks
        y = np.array(["yes", "no"], dtype=object)[rng.integers(0, 2, n)]
        blocks.append(Block(sparse.csr_matrix(X) if csr else X, y, rng.random(n), tasks, np.arange(n)))
        first += n
    return blocks


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("csr", [False, True])
def test_kept_blocks_are_the_blocks(ids, csr):
    blocks = stream(ids, csr=csr)
    with Spool() as spool:
        kept = spool.keep(iter(blocks))
        assert kept.repeatable
        assert kept.n_rows == 50
        for _ in range(2):
            for a, b in zip(blocks, kept, strict=True):
                same(a, b)
        assert [b.where for b in kept] == [f"block {k}" for k in range(4)]
        assert spool.keep(kept) is kept
        folder = spool.path
        assert os.listdir(folder)
        left = iter(kept)
        next(left)
    assert not os.path.exists(folder)
    with pytest.raises(StreamError, match="spool is closed"):
        list(left)
    with pytest.raises(StreamError, match="spool is closed"):
        spool.keep(iter(blocks))


def test_kept_blocks_of_other_kinds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 2))
    for block in (
        Block(X, None),
        Block(X.astype(np.float32), rng.random((9, 3))),
        Block(X, np.array([["a", None]] * 9, dtype=object)),
        Block(X, np.arange(9), groups=np.array(list("abcdefghi"))),
    ):
        with Spool() as spool:
            same(gather(spool.keep(iter([block, block]))), gather([block, block]))


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("how", [{"n_parts": 1}, {"n_parts": 5}, {"part_rows": 1}, {"part_rows": 13}, {}])
def test_parts_hold_whole_tasks_in_order(ids, csr, how):
    blocks = stream(ids, csr=csr)
    whole = gather(blocks)
    X, places = (whole.X.toarray() if csr else whole.X), []
    with Spool() as spool:
        parts = spool.by_task(iter(blocks), **how)
        assert parts.n_rows == 50 == sum(part.n_rows for part in parts)
        for part in parts:
            if not part.n_rows:
                assert list(part) == part.task_ids == []
                continue
            found = gather(part)
            assert set(found.tasks.tolist()) == set(part.task_ids)
            dense = found.X.toarray() if csr else found.X
            rows = dense[:, 0].astype(int)
            same(found, Block(whole.X[rows], whole.y[rows], *(v[rows] for v in beside(whole))))
            for task in part.task_ids:
                mine = [k for k, t in enumerate(whole.tasks.tolist()) if t == task]
                assert [r for r in rows if whole.tasks.tolist()[r] == task] == mine, "all rows, in order"
            places.extend(rows)
        np.testing.assert_array_equal(X[np.sort(places)], X)
        if how.get("part_rows") == 1:
            assert all(len(part.task_ids) == 1 for part in parts)
        if how.get("part_rows") == 13:
            assert all(part.n_rows <= 13 or len(part.task_ids) == 1 for part in parts)
        assert len(parts) == how.get("n_parts", len(parts))
        assert how or len(parts) == 1


def beside(block):
    return block.sample_weight, block.tasks, block.groups


@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5), most=st.integers(1, 60), n=st.integers(1, 400))
def test_parts_keep_to_their_size(sizes, most, n):
    blocks = stream(n_tasks=n, sizes=sizes)
    with Spool() as spool:
        parts = spool.by_task(iter(blocks), part_rows=most)
        assert all(part.n_rows <= most or len(part.task_ids) == 1 for part in parts)
        rows = np.concatenate([gather(part).X[:, 0] for part in parts])
        assert sorted(rows) == list(range(sum(sizes)))
        ids = [task for part in parts for task in part.task_ids]
        assert len(ids) == len(set(ids)), "no task is in two parts"


def test_parts_do_not_depend_on_blocks():
    blocks = stream("text")
    again = [
        Block(whole.X[p], whole.y[p], *(v[p] for v in beside(whole)))
        for whole in [gather(blocks)]
        for p in (slice(0, 17), slice(17, 50))
    ]
    with Spool() as spool:
        for a, b in zip(spool.by_task(blocks, n_parts=4), spool.by_task(iter(again), n_parts=4), strict=True):
            assert a.n_rows == b.n_rows
            if a.n_rows:
                same(gather(a), gather(b))


def test_hashes_are_the_same_in_every_process():
    values = [3, "a", ("a", 3), 2.5, None]
    code = f"from leastwise.sources.spill import stable_hash; print([stable_hash(v) for v in {values!r}])"
    env = os.environ | {"PYTHONPATH": SRC, "PYTHONHASHSEED": "5"}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert out.stdout.strip() == str([stable_hash(v) for v in values])
    assert stable_hash(1) == stable_hash(1.0) == stable_hash(True) == stable_hash(np.int64(1))
    assert stable_hash("1") != stable_hash(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.by_task(stream(), n_parts=0), "n_parts=0 must be"),
        (lambda s: s.by_task(stream(), part_rows=2.5), "part_rows=2.5 must be"),
        (lambda s: s.by_task(stream(), n_parts=2, part_rows=2), "not both"),
        (lambda s: s.by_task((np.ones((3, 1)), np.ones(3))), "have no tasks: name the column with task="),
        (lambda s: s.keep(iter([Block(np.ones((1, 1)), np.array([[]], dtype=object), groups=np.array([{}]))])),
         "groups has values that are not hashable"),
        (lambda s: s.keep(iter([(np.ones((1, 1)), np.ones(1)), (np.ones((1, 1)), np.array(["a"], dtype=object))])),
         "y contains objects in one block"),
    ],
)  # fmt: skip
def test_wrong_input(call, message):
    with Spool() as spool:
        with pytest.raises(ValueError, match=message):
            call(spool)
        assert os.listdir(spool.path) == [], "what was begun is taken away"


def test_parts_go_to_other_processes():
    with Spool() as spool:
        parts = spool.by_task(stream("tuples"), part_rows=20)
        for part in parts:
            same(gather(part), gather(pickle.loads(pickle.dumps(part))))
        sent = pickle.loads(pickle.dumps(parts[0]))
    with pytest.raises(StreamError, match="spool is closed"):
        list(sent)


def test_parts_of_sparse_rows_are_cut_by_what_they_hold():
    wide = sparse.csr_matrix((np.ones(3000), (np.arange(3000), np.arange(3000) * 300)), shape=(3000, 2**20))
    with Spool() as spool:
        assert len(spool.by_task(open_blocks(wide, task=np.arange(3000)))) == 1
    assert len(list(open_blocks(wide))) == 1


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(SpillError, match="No temporary folder can be created"):
        Spool(folder=tmp_path / "nowhere")


# ------------------------------------------------------------------ disk full


def endless():
    """Blocks of 80 KB."""
    for k in range(1000):
        yield Block(np.full((1000, 10), float(k)), np.arange(1000), tasks=np.arange(1000))


@pytest.fixture
def tiny(tmp_path):
    """A disk of 1 MB."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root can mount a disk of 1 MB")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", tmp_path], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no disk of 1 MB can be mounted here: {done.stderr.strip()}")
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.parametrize("how", ["keep", "by_task"])
def test_a_full_disk(tiny, how):
    with Spool(folder=tiny) as spool:
        with pytest.raises(SpillError, match="The disk is full") as caught:
            getattr(spool, how)(endless())
        assert caught.value.errno == 28
        assert caught.value.filename == spool.path
        assert "KB (" in str(caught.value)
        assert "more is needed" in str(caught.value)
        assert "folder=" in str(caught.value)
        assert "TMPDIR" in str(caught.value)
        assert os.listdir(spool.path) == []
        kept = spool.keep(iter([np.ones((1000, 10))]))  # there is room again
        assert len(gather(kept)) == 1000
    assert os.listdir(tiny) == []


def test_a_disk_that_will_be_full(tiny):
    """Rows that are counted beforehand are weighed before the disk is filled."""
    blocks = open_blocks(np.ones((100_000, 10)), task=np.arange(100_000) % 9, block_rows=100)
    with Spool(folder=tiny) as spool:
        with pytest.raises(SpillError, match=r"0 B \(0 rows\) were written, about 8.39 MB are needed"):
            spool.by_task(blocks)
        assert os.listdir(spool.path) == []


CHILD = """
import resource, signal, sys
import numpy as np
from leastwise.sources import Block, SpillError, Spool

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
blocks = (Block(np.full((1000, 10), float(k)), None, tasks=np.full(1000, k % 3)) for k in range(100))
with Spool(folder=sys.argv[1]) as spool:
    try:
        getattr(spool, sys.argv[2])(blocks)
    except SpillError as error:
        print(error.errno, error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of the size of files are of Unix")
@pytest.mark.parametrize("how", ["keep", "by_task"])
def test_a_file_that_cannot_grow(tmp_path, how):
    """The same without a disk of its own: the system refuses to let files grow."""
    env = os.environ | {"PYTHONPATH": SRC}
    out = subprocess.run([sys.executable, "-c", CHILD, tmp_path, how], capture_output=True, text=True, env=env)
    assert out.returncode == 0, out.stderr
    assert out.stdout.startswith("27 [Errno 27] The disk is full: ")
    assert "rows) were written" in out.stdout
    assert os.listdir(tmp_path) == []


SLOW = """
import sys, time
import numpy as np
from leastwise.sources import Spool

def blocks():
    for k in range(1000):
        yield np.ones((1000, 10))
        print("block", flush=True)
        time.sleep(0.1)

with Spool(folder=sys.argv[1]) as spool:
    spool.keep(blocks())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent otherwise there")
def test_ctrl_c_leaves_nothing(tmp_path):
    env = os.environ | {"PYTHONPATH": SRC}
    child = subprocess.Popen(
        [sys.executable, "-c", SLOW, tmp_path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    )
    child.stdout.readline()
    child.stdout.readline()
    assert len(list(tmp_path.rglob("*.npys"))) == 1
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in said
    assert os.listdir(tmp_path) == []


def test_a_spool_that_is_forgotten_leaves_nothing(tmp_path):
    code = "import sys; from leastwise.sources import Spool; kept = Spool(sys.argv[1]); print(kept.path)"
    env = os.environ | {"PYTHONPATH": SRC}
    out = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True, env=env)
    assert out.stdout.startswith(str(tmp_path))
    assert os.listdir(tmp_path) == []
    spool = Spool(tmp_path)
    assert os.listdir(tmp_path)
    del spool
    assert os.listdir(tmp_path) == []


def test_a_broken_stream_leaves_nothing():
    def items():
        yield np.ones((5, 2))
        yield np.full((5, 2), np.inf)

    with Spool() as spool:
        with pytest.raises(StreamError, match="block 1, row 0"):
            spool.keep(items())
        assert os.listdir(spool.path) == []


def test_sorting_by_task_has_no_loop_over_rows():
    """Python calls grow with the tasks and the files written, not with the rows."""
    rng = np.random.default_rng(0)
    blocks = open_blocks(np.ones((10**6, 2)), task=rng.integers(0, 10**4, 10**6))
    with Spool() as spool:
        parts, calls = counted_calls(lambda: spool.by_task(blocks, part_rows=10**5))
        assert 10 <= len(parts) <= 30
        assert parts.n_rows == 10**6
    assert calls < 10**6
