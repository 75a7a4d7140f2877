"""Rows by blocks are the rows, wherever they come from and however they are cut."""

import gzip
import pickle
import tracemalloc
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from leastwise import LSPC, MultiTaskLSPC
from leastwise import sources as streaming
from leastwise.sources import gather
from leastwise.sources.blocks import BUDGET, MOST_ROWS, Block, Blocks, StreamError
from leastwise.sources.opening import open_blocks
from leastwise.sources.predictions import predict_blocks, write_predictions

N = 57
NAMES = ["size", "shade", "count", "hot"]


def columns(n=N, seed=0):
    """Numbers of four types, two kinds of targets, weights, tasks, groups."""
    rng = np.random.default_rng(seed)
    return {
        "size": rng.normal(size=n),
        "shade": rng.normal(size=n).astype(np.float32),
        "count": rng.integers(-5, 5, n),
        "hot": rng.random(n) < 0.5,
        "finding": rng.choice(["fine", "fault"], n).astype(object),
        "label": rng.integers(0, 2, n),
        "weight": rng.random(n),
        "site": rng.choice(["a", "b", "ü"], n).astype(object),
        "person": rng.integers(0, 9, n),
    }


TABLE = columns()
ROLES = {"target": "finding", "features": NAMES, "weight": "weight", "task": "site", "group": "person"}
X = np.column_stack([TABLE[name].astype(float) for name in NAMES])


def arrow(part=slice(None)):
    pa = pytest.importorskip("pyarrow")
    return pa.table(
        {name: pa.array(v[part].tolist() if v.dtype.kind == "O" else v[part]) for name, v in TABLE.items()}
    )


def write(path, part=slice(None), **more):
    """The table, or rows of it, as a file of the format that its ending says."""
    table, ending = arrow(part), path.name.removesuffix(".gz").rsplit(".")[-1]
    if ending in ("parquet", "pq"):
        import pyarrow.parquet as pq

        pq.write_table(table, path, **({"row_group_size": 10} | more))
    elif ending in ("arrow", "ipc"):
        import pyarrow.ipc as ipc

        new = ipc.new_file if ending == "arrow" else ipc.new_stream
        with new(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=7)
    elif ending == "feather":
        import pyarrow.feather as feather

        feather.write_feather(table, path, **({"compression": "lz4"} | more))
    else:
        text(path, table, "\t" if ending == "tsv" else more.get("delimiter", ","))
    return path


def text(path, table, delimiter):
    lines = [delimiter.join(table.column_names)]
    for row in table.to_pylist():
        lines.append(delimiter.join(str(v).lower() if isinstance(v, bool) else str(v) for v in row.values()))
    data = "\n".join([*lines, ""]).encode()
    path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)


def check(blocks, step=None, part=slice(None), dtype=np.float64):
    """The blocks are the table, twice."""
    for _ in range(2):
        listed = list(blocks)
        assert all(isinstance(b, Block) and b.X.dtype == dtype and len(b.y) == len(b) for b in listed)
        assert step is None or all(len(b) <= step for b in listed)
        all_rows = gather(listed)
        np.testing.assert_array_equal(all_rows.X, X[part])
        assert all_rows.y.tolist() == TABLE["finding"][part].tolist()
        np.testing.assert_array_equal(all_rows.sample_weight, TABLE["weight"][part])
        assert all_rows.tasks.tolist() == TABLE["site"][part].tolist()
        np.testing.assert_array_equal(all_rows.groups, TABLE["person"][part])
        assert blocks.n_rows == len(all_rows)
    assert isinstance(blocks, Blocks)
    assert blocks.repeatable


# -------------------------------------------------------------------- sources


@given(step=st.integers(1, N + 5), dtype=st.sampled_from(["f8", "f4", "f2", "i4", "u1", "?"]), make=st.booleans())
def test_arrays(step, dtype, make):
    values = (np.random.default_rng(1).normal(size=(N, 3)) * 9).astype(dtype)
    y, w = np.arange(N) % 3, np.arange(N) + 0.5
    source = sparse.csr_matrix(values.astype("f8" if dtype == "f2" else dtype)) if make else values
    blocks = open_blocks(source, y, weight=w, task=list("abc" * (N // 3)), block_rows=step)
    listed = list(blocks)
    assert [len(b) for b in listed] == [min(step, N - k) for k in range(0, N, step)]
    assert all(sparse.issparse(b.X) == make and b.X.dtype == ("f4" if dtype == "f4" else "f8") for b in listed)
    found = gather(listed)
    np.testing.assert_array_equal(found.X.toarray() if make else found.X, values.astype(float))
    np.testing.assert_array_equal(found.y, y)
    np.testing.assert_array_equal(found.sample_weight, w)
    assert found.tasks.tolist() == list("abc" * (N // 3))
    assert found.groups is None
    assert listed[0].where == ("X, row 0" if step == 1 else f"X, rows 0 to {min(step, N) - 1}")


@pytest.mark.parametrize("dtype", ["f8", "f2", "u1", "i8"])
def test_memory_maps(dtype, tmp_path):
    values, y = (np.arange(N * 3) % 250).reshape(N, 3).astype(dtype), np.arange(N)
    np.save(tmp_path / "X.npy", values)
    np.save(tmp_path / "y.npy", y)
    x_path, y_path = tmp_path / "X.npy", str(tmp_path / "y.npy")
    mapped = np.load(x_path, mmap_mode="r")
    for blocks in (
        open_blocks(mapped, y, block_rows=10),
        open_blocks(x_path, y_path, block_rows=10),
        open_blocks((x_path, y_path), block_rows=10),
    ):
        assert blocks.n_rows == N
        found = gather(blocks)
        np.testing.assert_array_equal(found.X, values.astype(float))
        np.testing.assert_array_equal(found.y, y)
    twice = open_blocks([(x_path, y_path), (x_path, y_path)])
    assert twice.n_rows == 2 * N == len(gather(twice))
    assert gather(open_blocks(x_path)).y is None


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "mapping"])
@given(step=st.integers(1, N + 5))
def test_tables_in_memory(library, step):
    table = TABLE if library == "mapping" else arrow()
    if library in ("pandas", "polars"):
        made = pytest.importorskip(library).DataFrame(TABLE)
        table = made.set_index("person", drop=False) if library == "pandas" else made
    check(open_blocks(table, block_rows=step, **ROLES), step)
    features = table.select(NAMES) if library in ("polars", "pyarrow") else {n: TABLE[n] for n in NAMES}
    beside = open_blocks(features, TABLE["label"], weight=TABLE["weight"], block_rows=step)
    found = gather(beside)
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.y, TABLE["label"])
    np.testing.assert_array_equal(found.sample_weight, TABLE["weight"])
    assert beside.names == NAMES


ENDINGS = ["parquet", "pq", "arrow", "ipc", "feather", "csv", "csv.gz", "tsv"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The table in files of every format, whole and cut into three."""
    pytest.importorskip("pyarrow")
    place = tmp_path_factory.mktemp("files")
    for ending in ENDINGS:
        write(place / f"whole.{ending}")
        (place / ending).mkdir()
        for k, part in enumerate((slice(0, 20), slice(20, 23), slice(23, N))):
            write(place / ending / f"part-{k}.{ending}", part)
    return place


@pytest.mark.parametrize("ending", ENDINGS)
@given(step=st.integers(1, N + 5))
def test_files(folder, ending, step):
    blocks = open_blocks(folder / f"whole.{ending}", block_rows=step, **ROLES)
    check(blocks, step)
    sizes = [len(b) for b in blocks]
    assert sizes == [min(step, N - k) for k in range(0, N, step)], "row groups and batches are put together and cut"
    first, last = next(iter(blocks)).where, list(blocks)[-1].where
    assert first.startswith(str(folder / f"whole.{ending}, row"))
    assert last.endswith(str(N - 1))


@pytest.mark.parametrize("ending", ENDINGS)
def test_folders_patterns_and_lists_of_files(folder, ending):
    parts = sorted((folder / ending).iterdir())
    for source in (folder / ending, str(folder / ending / "part-*"), parts, [str(p) for p in parts]):
        blocks = open_blocks(source, block_rows=11, **ROLES)
        check(blocks, 11)
        assert [len(b) for b in blocks] == [11, 9, 3, 11, 11, 11, 1]
    mixed = [folder / "csv" / "part-0.csv", folder / ending / parts[1].name, folder / "arrow" / "part-2.arrow"]
    check(open_blocks(mixed, **ROLES))


def test_open_files_go_to_other_processes(folder):
    blocks = open_blocks(folder / "parquet", block_rows=11, **ROLES)
    check(pickle.loads(pickle.dumps(blocks)), 11)


def test_columns_are_matched_by_name(folder, tmp_path):
    import pyarrow.parquet as pq

    write(tmp_path / "a.parquet", slice(0, 30))
    rest = arrow(slice(30, N))
    pq.write_table(rest.select(rest.column_names[::-1]), tmp_path / "b.parquet")
    check(open_blocks(tmp_path, **ROLES))
    chosen = open_blocks(tmp_path, features=["count", "size"], target=["label", "hot"])
    assert chosen.names == ["count", "size"]
    found = gather(chosen)
    np.testing.assert_array_equal(found.X, X[:, [2, 0]])
    np.testing.assert_array_equal(found.y, np.column_stack([TABLE["label"], TABLE["hot"]]))
    everything = open_blocks(tmp_path, target="finding", task="site")
    assert everything.names == ["size", "shade", "count", "hot", "label", "weight", "person"]
    assert gather(open_blocks(tmp_path, features=["shade"])).X.dtype == np.float32
    assert gather(open_blocks(tmp_path, features=["shade"])).y is None


def test_delimiters_blank_lines_and_quotes(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.csv"
    path.write_bytes('\ufeffid;note;size;hot\n1;"a ""b"";\nc";1.5;true\n\n2;d; 2e0 ;false\r\n'.encode())
    found = gather(open_blocks(path, target="note", features=["id", "size", "hot"]))
    np.testing.assert_array_equal(found.X, [[1, 1.5, 1], [2, 2, 0]])
    assert found.y.tolist() == ['a "b";\nc', "d"]


def test_unknown_labels_are_nan(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.csv"
    path.write_text("x,a,b\n1,0,1\n2,,0\n3,1,NA\n")
    np.testing.assert_array_equal(gather(open_blocks(path, target=["a", "b"])).y, [[0, 1], [np.nan, 0], [1, np.nan]])


def test_datasets_and_lazy_frames(folder):
    dataset = pytest.importorskip("pyarrow.dataset")
    check(open_blocks(dataset.dataset(folder / "parquet"), block_rows=8, **ROLES), 8)
    polars = pytest.importorskip("polars")
    frame = polars.scan_parquet(folder / "parquet" / "*.parquet")
    if not hasattr(frame, "collect_batches"):
        pytest.skip("this polars does not collect by batches")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # polars calls it unstable
        check(open_blocks(frame, block_rows=8, **ROLES), 8)


@given(cuts=st.lists(st.integers(1, N - 1), unique=True, max_size=6), step=st.integers(1, N), kind=st.integers(0, 5))
def test_iterators(cuts, step, kind):
    edges = [0, *sorted(cuts), N]

    def items():
        for first, last in pairwise(edges):
            p = slice(first, last)
            beside = {"y": TABLE["finding"][p], "sample_weight": TABLE["weight"][p], "groups": TABLE["person"][p]}
            beside["tasks"] = TABLE["site"][p].tolist()
            yield (
                Block(X[p], **beside),
                {"X": X[p]} | beside,
                {"X": sparse.csc_matrix(X[p])} | beside,
                {name: v[p] for name, v in TABLE.items()},
                {"X": X[p].tolist()} | beside,
                Block(X[p], **beside, where=f"day {first}"),
            )[kind]

    roles = ROLES if kind == 3 else {}
    blocks = open_blocks(items, block_rows=step, **roles)
    assert blocks.n_rows is None
    dense = (gather(blocks).X.toarray() if kind == 2 else gather(blocks).X, gather(blocks))
    np.testing.assert_array_equal(dense[0], X)
    assert dense[1].tasks.tolist() == TABLE["site"].tolist()
    if kind != 2:
        check(blocks, step)
    once = open_blocks(items(), block_rows=step, **roles)
    assert not once.repeatable
    assert sum(len(b) for b in once) == N == once.n_rows
    with pytest.raises(StreamError, match="which is exhausted"):
        iter(once)
    wheres = [b.where for b in open_blocks(items, **roles)]
    assert wheres == [f"day {e}" if kind == 5 else f"block {k}" for k, e in enumerate(edges[:-1])]


def test_tuples_lists_and_loaders():
    y, w = TABLE["label"], TABLE["weight"]
    for source in ((X, y, w), [(X[:9], y[:9], w[:9]), (X[9:], y[9:], w[9:])], lambda: iter([(X, y, w)])):
        blocks = open_blocks(source)
        assert blocks.repeatable
        for _ in range(2):
            np.testing.assert_array_equal(gather(blocks).X, X)
            np.testing.assert_array_equal(gather(blocks).sample_weight, w)
    assert open_blocks(blocks) is blocks
    torch = pytest.importorskip("torch")
    rows = torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(y))
    loader = open_blocks(torch.utils.data.DataLoader(rows, batch_size=10))
    assert loader.repeatable
    np.testing.assert_array_equal(gather(loader).X, X)
    np.testing.assert_array_equal(gather(loader).y, y)


def test_iterators_of_frames():
    y, pandas = TABLE["label"], pytest.importorskip("pandas")
    frames = open_blocks([pandas.DataFrame(TABLE)[:30], pandas.DataFrame(TABLE)[30:]], **ROLES)
    check(frames)
    assert frames.names == NAMES
    pairs = open_blocks(
        [(pandas.DataFrame(X[:9], columns=NAMES), y[:9]), (pandas.DataFrame(X[9:], columns=NAMES), y[9:])]
    )
    np.testing.assert_array_equal(gather(pairs).X, X)
    assert pairs.names == NAMES


# --------------------------------------------------------------------- memory


def peak(blocks):
    """Bytes that numpy and Python held at most, beside the rows seen."""
    tracemalloc.start()
    rows = 0
    for block in blocks:
        rows += len(block)
        del block
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return rows, most


def test_a_large_memory_map_takes_little_memory(tmp_path):
    path = tmp_path / "X.npy"
    big = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=(2_000_000, 50))  # 200 MB, not written
    del big
    rows, most = peak(open_blocks(path))
    assert rows == 2_000_000
    assert most < 4 * BUDGET, "800 MB as numbers of float64"


def test_a_large_parquet_file_takes_little_memory(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    values = np.random.default_rng(0).random((1_000_000, 5))  # that do not get smaller by packing
    table = pa.table({f"x{k}": values[:, k] for k in range(5)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1_000_000)
    del table, values
    before = pa.total_allocated_bytes()
    blocks, held, rows = open_blocks(tmp_path / "a.parquet", target="x4", block_rows=50_000), [], 0
    for block in blocks:
        rows += len(block)
        held.append(pa.total_allocated_bytes() - before)
    assert rows == 1_000_000
    assert max(held) < 30e6, "the row group has 40 MB, and as much again unpacked; a block has 2"
    assert peak(blocks)[1] < 10e6


def test_blocks_are_cut_by_bytes():
    wide, narrow = np.zeros((10, 3_000_000), dtype=np.uint8), np.zeros((MOST_ROWS + 10, 1), dtype=np.uint8)
    assert [len(b) for b in open_blocks(wide)] == [BUDGET // (8 * 3_000_000)] * 10
    assert [len(b) for b in open_blocks(narrow)] == [MOST_ROWS, 10]


# ---------------------------------------------------------------- predictions


def test_predictions_by_blocks(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TABLE)
    model = LSPC(n_centers=20, random_state=0).fit(frame[NAMES], TABLE["label"])
    whole = model.predict_proba(frame[NAMES])
    path = write(tmp_path / "a.parquet")
    for source, roles in ((frame, {"features": NAMES[::-1]}), (path, {"features": NAMES}), (path, ROLES)):
        found = list(predict_blocks(model, source, block_rows=10, **roles))
        assert [len(P) for P in found] == [10] * 5 + [7]
        np.testing.assert_allclose(np.concatenate(found), whole, rtol=1e-10)
    found = np.concatenate(list(predict_blocks(model, path, "predict", features=NAMES)))
    np.testing.assert_array_equal(found, model.predict(frame[NAMES]))
    with pytest.raises(StreamError, match="no column 'hot'"):
        list(predict_blocks(model, path, features=NAMES[:3]))
    with pytest.raises(ValueError, match="LSPC has no method 'guess'"):
        predict_blocks(model, path, "guess")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predictions_are_written_as_a_whole_or_not_at_all(tmp_path, ending):
    pandas, path = pytest.importorskip("pandas"), tmp_path / f"out.{ending}"
    pytest.importorskip("pyarrow")
    model = LSPC(n_centers=20, random_state=0).fit(X, TABLE["finding"])
    exactly = partial(pandas.read_csv, engine="python")
    read = exactly if ending == "csv" else pandas.read_parquet
    assert write_predictions(model, X, path, block_rows=10) == N
    assert list(read(path).columns) == ["p_fault", "p_fine"]
    np.testing.assert_array_equal(
        read(path).to_numpy(), np.concatenate(list(predict_blocks(model, X, block_rows=10)))
    )
    assert write_predictions(model, X, str(path), "predict") == N
    assert read(path)["prediction"].tolist() == model.predict(X).tolist()
    before, broken = path.read_bytes(), np.where(np.arange(N)[:, None] == 40, np.inf, X)
    with pytest.raises(StreamError, match="row 40"):
        write_predictions(model, broken, path, block_rows=10)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    with pytest.raises(ValueError, match=r"the extension '\.doc' is not one of"):
        write_predictions(model, X, tmp_path / "a.doc")


def test_predictions_for_tasks_by_blocks():
    tasks = TABLE["person"] % 2
    model = MultiTaskLSPC(random_state=0).fit(X, TABLE["label"], tasks=tasks)
    found = list(predict_blocks(model, X, task=tasks, block_rows=20))
    np.testing.assert_allclose(np.concatenate(found), model.predict_proba(X, tasks=tasks), rtol=1e-10)


# ----------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        (X, {"y": np.zeros(3)}, "y has 3 rows, but X has 57"),
        (X[:, 0], {}, r"shape \(57,\), but must be two-dimensional"),
        (X, {"target": "a"}, r"the columns \['a'\] cannot be given with an array"),
        (X, {"features": ["a"]}, "cannot be given with an array"),
        (X, {"block_rows": 0}, "block_rows=0 must be a positive integer"),
        (X, {"block_rows": 2.5}, "block_rows=2.5 must be a positive integer"),
        (X, {"y": 3}, "3 is not an array"),
        (TABLE, {"target": "finding", "y": X}, "both given"),
        (TABLE, {"target": "finding"}, 'column "site" holds text, not numbers: encode it first'),
        (TABLE, {"target": "findin"}, "did you mean 'finding'"),
        (TABLE, {"target": "label", "weight": "label", "features": NAMES}, "'label' is used twice"),
        (TABLE, {"features": "size"}, "must be a list of column names"),
        (TABLE, {"features": []}, "leaves no inputs"),
        ({"a": [1.0]}, {"target": "a"}, "no column is left for the inputs"),
        ({"a": [1.0], "b": [1.0, 2.0]}, {}, "different numbers of rows"),
        (TABLE, {"features": NAMES, "y": np.zeros(3)}, "y has 3 rows, but the table has 57"),
        (7, {}, "int is not a source of rows"),
        (lambda: 7, {}, "it must return an iterator of blocks"),
        ([7], {}, "block 0: int is not a block"),
        ([], {}, "The stream has no rows"),
        (np.zeros((0, 3)), {}, "The stream has no rows"),
        ([X[:3], (X[:3], np.zeros(3))], {}, "block 1: y differs from earlier blocks"),
        ([X[:3], X[:3, :2]], {}, "block 1: X has 2 columns, but earlier blocks had 4"),
        ([(X[:3], np.zeros(4))], {}, "block 0: y has 4 rows, but X has 3"),
        ([(X[:3], np.zeros((3, 1, 1)))], {}, r"y has shape \(3, 1, 1\)"),
        ([(X, 1, 2, 3)], {}, "a tuple of 4 parts"),
        ([{"X": X, "z": 1}], {}, "'z' is not one of"),
        ([X], {"y": np.zeros(3)}, "arrays for y cannot be given with an iterator"),
        ([X], {"target": "a"}, "an array has no named columns"),
        ([X.astype(str)], {}, "X must be numeric, but has type .*: encode it first"),
        ([(X, None, -np.ones(N))], {}, "the weight is -1.0, but weights must be 0 or more"),
        ([(X, None, np.array(["a"] * N))], {}, "weights must be numeric; their type is <U1"),
        ([(X, np.where(np.arange(N) == 5, np.nan, 1.0))], {}, "block 0, row 5: the target is nan"),
        ([Block(X, None, tasks=np.array([None] * N))], {}, "row 0: the task is None"),
        ([{"a": np.ones(3)}, {"b": np.ones(3)}], {}, "block 1: there is no column 'a'"),
        ([{"a": np.ones(3)}, {"a": np.ones(3), "b": np.ones(3)}], {}, "column 'b' is not in the first table"),
        ("nowhere.parquet", {}, "nowhere.parquet: the file cannot be read"),
        ("nowhere/*.parquet", {}, "no file matches"),
    ],
)
def test_wrong_input_is_named(source, more, message):
    with pytest.raises(ValueError, match=message):
        list(open_blocks(source, **more))


def test_wrong_files_are_named(folder, tmp_path):
    def refused(source, message, **more):
        with pytest.raises(StreamError, match=message):
            list(open_blocks(source, **(ROLES | more)))

    refused(tmp_path, "the folder has no data files")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "notes.doc").touch()
    refused(tmp_path, "also contains 'notes.doc'")
    refused(tmp_path / "notes.doc", "the extension '.doc' is not one of")
    (tmp_path / "a.parquet.gz").touch()
    refused(tmp_path / "a.parquet.gz", "only text files can be gzipped")
    refused([folder / "whole.csv", folder / "whole.csv"], "in the list twice")
    refused(folder / "whole.csv", "arrays for y cannot be given with files", y=np.zeros(N), target=None)
    refused(folder / "whole.parquet", 'column "site" holds text', features=None, task=None)
    refused(folder / "whole.csv", 'column "site" holds text', features=None, task=None)
    refused(folder / "whole.arrow", "no column 'sizes'", features=["sizes"])
    (tmp_path / "empty.csv").touch()
    refused(tmp_path / "empty.csv", "line 1: the file is empty")
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
    refused(tmp_path / "twice.csv", 'columns 1 and 2 are both named "a"')
    np.save(tmp_path / "X.npy", X)
    refused(tmp_path / "X.npy", "which have no column names")
    refused([tmp_path / "X.npy", folder / "whole.csv"], "cannot be in one list")


def test_values_that_no_fit_takes_are_named():
    for value, what in ((np.nan, "missing value"), (np.inf, "the value is inf")):
        broken = X.copy()
        broken[23, 2] = value
        thin = sparse.csr_matrix(broken)
        for source in (thin,) if np.isnan(value) else (broken, thin):
            with pytest.raises(StreamError, match=rf'X, row 23, column "X\[:, 2\]": {what}') as caught:
                list(open_blocks(source, block_rows=10))
            assert (caught.value.where, caught.value.rows) == ("X", (23, 23))
        if np.isnan(value):
            assert np.isnan(gather(open_blocks(broken, block_rows=10)).X[23, 2])
            continue
        with pytest.raises(StreamError, match=r'block 1, row 3, column "b"'):
            list(open_blocks([{"a": X[:20, 0], "b": X[:20, 2]}, {"a": broken[20:, 0], "b": broken[20:, 2]}]))
    huge = np.full((4, 2), 1e308)
    assert len(gather(open_blocks(huge))) == 4, "a sum that is infinite is no fault"


def test_extras_are_named(monkeypatch, tmp_path):
    import sys

    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"leastwise\[frames\]"):
        open_blocks(tmp_path / "a.csv")


def test_the_part_is_there():
    import leastwise

    assert leastwise.sources is streaming


@pytest.mark.parametrize("index", [None, "row"])
def test_an_index_of_pandas_is_no_input_unless_it_is_asked_for(tmp_path, index):
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [0.1, 0.2, 0.3], "b": [1, 2, 3], "y": [0, 1, 0]}, index=[7, 5, 6]).rename_axis(index)
    name = index or "__index_level_0__"
    frame.to_parquet(tmp_path / "rows.parquet")
    for source in (tmp_path / "rows.parquet", pa.Table.from_pandas(frame), frame):
        assert open_blocks(source, target="y").names == ["a", "b"]
    (block,) = open_blocks(tmp_path / "rows.parquet", target="y", features=[name, "a"])
    assert block.X[:, 0].tolist() == [7, 5, 6]
    frame.reset_index(drop=True).to_parquet(tmp_path / "more.parquet")  # the one has an index, the other has none
    for order in (["rows", "more"], ["more", "rows"]):
        files = [tmp_path / f"{part}.parquet" for part in order]
        assert len(gather(open_blocks(files, target="y"))) == 6
    frame.rename_axis(None).to_csv(tmp_path / "rows.csv")
    with pytest.raises(StreamError, match=r"no name.*index=False"):
        open_blocks(tmp_path / "rows.csv", target="y")
    assert open_blocks(tmp_path / "rows.csv", target="y", features=["a"]).names == ["a"]


def test_categories_are_called_so(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pd.DataFrame({"kind": pd.Categorical(["x", "y"]), "y": [0, 1]}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(StreamError, match='"kind" holds categories'):
        open_blocks(tmp_path / "rows.parquet", target="y")


def test_a_model_reads_the_columns_that_it_knows(tmp_path):
    pytest.importorskip("pyarrow")
    write(tmp_path / "rows.parquet")
    model = LSPC(n_centers=5, random_state=0).fit_stream(tmp_path, target="finding", features=NAMES)
    for source in (
        tmp_path / "rows.parquet",
        str(tmp_path),
        [tmp_path],
        arrow(),
    ):  # with words, weights and the target in it
        found = np.concatenate(list(predict_blocks(model, source)))
        np.testing.assert_array_equal(found, np.concatenate(list(predict_blocks(model, source, features=NAMES))))
    assert write_predictions(model, tmp_path, tmp_path / "answers.csv") == N


def test_folders_within_a_folder_are_found_by_the_pattern_that_is_advised(tmp_path):
    pytest.importorskip("pyarrow")
    for year in ("year=2024", "year=2025"):
        (tmp_path / year).mkdir()
        write(tmp_path / year / "rows.parquet")
    with pytest.raises(StreamError) as refused:
        open_blocks(tmp_path, **ROLES)
    pattern = str(refused.value).split("'")[-2]
    assert len(gather(open_blocks(pattern, **ROLES))) == 2 * N
