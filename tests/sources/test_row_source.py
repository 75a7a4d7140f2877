"""Rows in blocks and rows of Dask are one interface: the same functions, the same sums, the same tasks together."""

import numpy as np
import pytest

from leastwise import LSPC
from leastwise.sources.blocks import Block, StreamError
from leastwise.sources.bottom_k import BottomKSample, Kept
from leastwise.sources.row_source import BlockSource, gather
from leastwise.sources.task_reading import UncheckedBlocks, moves

N, SIZE = 50, 8
X = np.arange(2.0 * N).reshape(N, 2)
TASKS = np.random.default_rng(0).integers(0, 5, N)


class Count:
    """Rows that were seen, and the sum of their inputs."""

    def __init__(self, n_rows, value):
        self.n_rows, self.value = n_rows, value

    def __add__(self, other):
        return Count(self.n_rows + other.n_rows, self.value + other.value)


def count(block, own, shared):
    return Count(len(block), block.X.sum() * shared)


def blocks():
    return [Block(X[a : a + SIZE], None, tasks=TASKS[a : a + SIZE], where=f"block {a}") for a in range(0, N, SIZE)]


def dask_source():
    pytest.importorskip("dask", reason="needs the extra dask")
    da = pytest.importorskip("dask.array", reason="needs the extra dask")
    from leastwise.sources.dask import DaskSource

    return DaskSource.of(da.from_array(X, chunks=(SIZE, 2)), tasks=da.from_array(TASKS, chunks=SIZE))


SOURCES = {
    "blocks": lambda: BlockSource(blocks()),
    "once": lambda: BlockSource(iter(blocks()), repeatable=False),
    "dask": dask_source,
}
every_source = pytest.mark.parametrize("kind", SOURCES)


@every_source
def test_every_source_has_all_rows_after_a_first_look(kind):
    source = SOURCES[kind]()
    found, rest = source.first_look(count, 3, 10)
    assert found.n_rows == (16 if kind == "once" else N)
    total = rest.total(count, 3)
    assert (total.n_rows, total.value) == (N, 3 * X.sum())
    assert rest.error is None


@every_source
def test_each_block_has_data_of_its_own(kind):
    found = SOURCES[kind]().map(lambda block, own, shared: (own, len(block) + shared), 1, list("abcdefg"))
    assert list(found) == [*((letter, SIZE + 1) for letter in "abcdef"), ("g", 3)]


@pytest.mark.parametrize("kind", ["blocks", "dask"])
def test_all_rows_of_a_task_are_brought_together(kind):
    source = SOURCES[kind]()
    cells = [np.unique(TASKS[a : a + SIZE], return_counts=True) for a in range(0, N, SIZE)]
    plan = moves(
        [ids.tolist() for ids, _ in cells],
        [sizes for _, sizes in cells],
        [min(SIZE, N - a) for a in range(0, N, SIZE)],
        home=source.home,
    )
    grouped = source.by_task(plan)
    found = list(grouped.map(lambda block, own, shared: (np.unique(block.tasks).tolist(), block.number), None))
    ids = [name for names, _ in found for name in names]
    assert sorted(ids) == sorted(set(TASKS.tolist()))
    assert all(np.all(np.diff(number) > 0) for _, number in found)
    whole = grouped.collect()
    np.testing.assert_array_equal(whole.X, X)
    np.testing.assert_array_equal(whole.tasks, TASKS)


def test_a_first_look_at_an_iterator_takes_no_more_blocks_than_it_needs():
    taken = []

    def slowly():
        for block in blocks():
            taken.append(block.where)
            yield block

    _, rest = BlockSource(slowly(), repeatable=False).first_look(count, 1, 20)
    assert len(taken) == 3
    assert rest.total(count, 1).n_rows == N


def broken():
    yield from blocks()[:3]
    raise StreamError("block 24: torn")


@pytest.mark.parametrize("once", [True, False])
def test_rows_before_an_error_are_used_where_this_is_wanted(once):
    class Torn:
        __iter__ = staticmethod(broken)

    def source(**more):
        return BlockSource(broken() if once else Torn(), not once, **more)

    found, rest = source(until_error=True).first_look(count, 1, 10**6)
    assert (found.n_rows, rest.total(count, 1).n_rows, str(rest.error)) == (24, 24, "block 24: torn")
    with pytest.raises(StreamError, match="torn"):
        source().first_look(count, 1, 10**6)
    with pytest.raises(StreamError, match="torn"):
        source().total(count, 1)


@pytest.mark.parametrize("error", [ValueError, TypeError])
def test_errors_say_where_if_it_is_known(error):
    def refuse(block, own, shared):
        raise error("no good")

    for source, message in (
        (BlockSource(blocks()), r"^In block 0: no good$"),
        (BlockSource(UncheckedBlocks([(X, TASKS)])), r"^In block 0: no good$"),
        (BlockSource([Block(X, None)]), r"^no good$"),
    ):
        with pytest.raises(error, match=message):
            source.total(refuse, None)


def test_sources_without_rows():
    with pytest.raises(StreamError, match="no rows"):
        BlockSource([]).first_look(count, 1, 10)
    with pytest.raises(StreamError, match="every pass"):
        BlockSource([]).total(count, 1)


def test_samples_add_up_however_rows_are_cut():
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(300, 2)), rng.integers(0, 3, 300)
    whole = Kept.of(rows, y, np.ones(300), None, 40)
    for size in (1, 7, 100, 300):
        total = BottomKSample(40)
        for a in range(0, 300, size):
            part = slice(a, a + size)
            total = total + BottomKSample.of(rows[part], y[part], np.ones(len(y[part])), None, 40)
        kept = total.kept()
        np.testing.assert_array_equal(kept.key, whole.key)
        np.testing.assert_array_equal(kept.X, whole.X)


def test_blocks_are_concatenated_in_order():
    assert gather(blocks()).X.tolist() == X.tolist()
    with pytest.raises(ValueError, match="no blocks"):
        gather([])


@pytest.mark.parametrize("kind", ["once", "callable", "first partial_fit", "dask"])
def test_one_fit_for_all_sources(kind):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, 2))
    y = (rows[:, 0] > 0).astype(int)
    cut = [(rows[a : a + 30], y[a : a + 30]) for a in range(0, 200, 30)]
    model = LSPC(n_centers=20, random_state=0)
    if kind == "first partial_fit":
        model.partial_fit(rows, y)
    elif kind == "dask":
        da = pytest.importorskip("dask.array", reason="needs the extra dask")
        model.fit(da.from_array(rows, chunks=(30, 2)), da.from_array(y, chunks=30))
    else:
        model.fit_stream(iter(cut) if kind == "once" else lambda: iter(cut))
    same = LSPC(n_centers=20, random_state=0).fit_stream(rows, y, block_rows=64)
    assert (model.sigma_, model.alpha_, len(model.kept_)) == (same.sigma_, same.alpha_, 200)
    np.testing.assert_allclose(model.predict_proba(rows), same.predict_proba(rows), atol=1e-9)
