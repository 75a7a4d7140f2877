"""A block that is broken is named, and blocks before it have been delivered."""

import gzip
import os
import pickle

import numpy as np
import pytest

from leastwise.sources.blocks import StreamError
from leastwise.sources.opening import open_blocks

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ipc = pytest.importorskip("pyarrow.ipc")

N = 100
SIZE, SHADE = np.random.default_rng(0).normal(size=(2, N))
TABLE = pa.table({"size": SIZE, "shade": SHADE, "label": np.arange(N) % 2})


def consumed(blocks):
    """Rows of X that came before the error, and the error."""
    seen = []
    with pytest.raises(StreamError) as caught:
        seen.extend(block.X for block in blocks)
    return np.concatenate(seen) if seen else np.empty((0, 2)), caught.value


def expect(rows):
    return np.column_stack([SIZE, SHADE])[:rows]


def lines():
    return ["size,shade,label", *(f"{SIZE[k]},{SHADE[k]},{k % 2}" for k in range(N))]


def write_lines(path, listed):
    data = "\n".join([*listed, ""]).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


# ----------------------------------------------------------------------- text

BROKEN = {
    "words": (lambda line: "abc" + line[line.index(",") :], 'line 54, column "size": "abc" is not a number'),
    "few": (lambda line: line.rsplit(",", 1)[0], "line 54: 2 cells, but the header has 3"),
    "many": (lambda line: line + ",1", "line 54: 4 cells, but the header has 3"),
    "infinite": (lambda line: "-inf" + line[line.index(",") :], 'line 54, column "size": the value is -inf'),
    "half": (lambda line: line[:-1] + "0.5", 'line 54, column "label": "0.5" is not an integer'),
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize("step", [7, 10, 1000])
def test_a_broken_line(tmp_path, kind, ending, step, monkeypatch):
    change, message = BROKEN[kind]
    listed = lines()
    listed[51] = change(listed[51])
    listed.insert(20, "")  # blank lines count as lines, not as rows
    listed.insert(20, "")
    path = write_lines(tmp_path / f"a{ending}", listed)
    if kind == "half":  # types are found from the first lines
        monkeypatch.setattr("leastwise.sources.formats.csv.SAMPLED", 500)
    seen, error = consumed(open_blocks(path, target="label", block_rows=step))
    assert message in str(error)
    assert str(error).startswith(f"{path}, line 54")
    assert (error.where, error.rows, error.line) == (str(path), (50, 50), 54)
    by_value = kind == "infinite"  # found when the block is there
    assert len(seen) == (50 - 50 % step if by_value else 50)
    np.testing.assert_allclose(seen, expect(len(seen)), rtol=1e-15)
    assert by_value or isinstance(error.__cause__, pa.ArrowInvalid)


def test_a_broken_line_far_behind(tmp_path, monkeypatch):
    """Beyond the first piece of text that is parsed."""
    monkeypatch.setattr("leastwise.sources.formats.csv.PARSED", 500)
    monkeypatch.setattr("leastwise.sources.formats.csv.SAMPLED", 500)
    listed = lines()
    listed[91] = "1,x,1"
    seen, error = consumed(open_blocks(write_lines(tmp_path / "a.csv", listed), target="label", block_rows=9))
    assert (error.rows, error.line, error.column) == ((90, 90), 92, "shade")
    np.testing.assert_allclose(seen, expect(90), rtol=1e-15)


def test_text_that_breaks_off(tmp_path):
    rng = np.random.default_rng(0)
    path = write_lines(tmp_path / "a.csv.gz", ["a,b", *(f"{u},{v}" for u, v in rng.normal(size=(20_000, 2)))])
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    seen, error = consumed(open_blocks(path, block_rows=100))
    assert "cannot be read" in str(error)
    assert 9_000 < len(seen) < 11_000
    assert error.rows == (len(seen), len(seen))
    np.testing.assert_allclose(seen, np.random.default_rng(0).normal(size=(20_000, 2))[: len(seen)], rtol=1e-15)


def test_a_quote_that_is_not_closed(tmp_path):
    listed = lines()
    listed[61] = '"' + listed[61]
    path = write_lines(tmp_path / "a.csv", listed)
    seen, error = consumed(open_blocks(path, target="label"))
    assert str(error).startswith(f"{path}, line 62: ")
    assert error.rows == (60, 60)
    np.testing.assert_allclose(seen, expect(60), rtol=1e-15)


def test_bytes_that_are_no_text(tmp_path):
    path = write_lines(tmp_path / "a.csv", ["a,b,c", "1,2,x", "2,3,y"])
    path.write_bytes(path.read_bytes().replace(b"y", b"\xff"))
    seen, error = consumed(open_blocks(path, target="c"))
    assert 'line 3, column "c": "\\udcff" is not UTF-8 text' in str(error)
    np.testing.assert_array_equal(seen, [[1, 2]])
    assert sum(len(b) for b in open_blocks(path, features=["a", "b"])) == 2, "that column is not wanted"


# -------------------------------------------------------------------- parquet


def spoil(path, group, column):
    """Zeros in the middle of the pages of a column in a row group."""
    chunk = pq.ParquetFile(path).metadata.row_group(group).column(column)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    data = bytearray(path.read_bytes())
    data[start : start + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    path.write_bytes(data)


@pytest.mark.parametrize("step", [4, 10, 25, 1000])
def test_a_broken_row_group(tmp_path, step):
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, row_group_size=20)
    spoil(path, 3, 1)
    seen, error = consumed(open_blocks(path, target="label", block_rows=step))
    assert str(error).startswith(f'{path}, rows 60 to 79, column "shade": row group 3 is broken')
    assert (error.where, error.rows, error.column) == (str(path), (60, 79), "shade")
    assert error.__cause__ is not None
    np.testing.assert_array_equal(seen, expect(60))
    whole = open_blocks(path, target="label", features=["size"], block_rows=step)
    assert sum(len(b) for b in whole) == N, "columns that are not wanted are not read"


def test_a_flipped_bit_is_found_by_the_checksum_of_its_page(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, row_group_size=20, compression="none", write_page_checksum=True, use_dictionary=False)
    chunk = pq.ParquetFile(path).metadata.row_group(2).column(0)
    data = bytearray(path.read_bytes())
    data[chunk.data_page_offset + chunk.total_compressed_size - 3] ^= 1
    path.write_bytes(data)
    seen, error = consumed(open_blocks(path, target="label"))
    assert (len(seen), error.rows, error.column) == (40, (40, 59), "size")


def test_files_that_are_none(tmp_path):
    for ending in ("parquet", "arrow", "feather", "npy"):
        path = tmp_path / f"a.{ending}"
        for content in (b"", b"nothing", b"ARROW1\0\0nothing at all", bytes(500)):
            path.write_bytes(content)
            with pytest.raises(StreamError, match=f"a.{ending}"):
                list(open_blocks(path))


# ---------------------------------------------------------------------- arrow


@pytest.mark.parametrize("new", [ipc.new_file, ipc.new_stream])
@pytest.mark.parametrize("share", [0.3, 0.55, 0.8, 0.97])
def test_an_arrow_file_that_was_cut_off(tmp_path, new, share):
    path = tmp_path / "a.arrow"
    with new(str(path), TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=10)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    blocks = open_blocks(path, target="label", block_rows=7)
    if new is ipc.new_stream and share == 0.97:
        return  # within the mark of its end
    seen, error = consumed(blocks)
    assert "cut off" in str(error)
    assert len(seen) % 10 == 0
    assert error.rows[0] == len(seen)
    np.testing.assert_array_equal(seen, expect(len(seen)))
    assert len(seen) >= 10 * (share > 0.3)


def test_an_arrow_file_cut_off_between_batches(tmp_path):
    """It looks like a stream that is over; the mark at the end is missing."""
    path, cut = tmp_path / "a.arrow", tmp_path / "b.arrow"
    with ipc.new_file(str(path), TABLE.schema) as writer:
        writer.write_table(TABLE.slice(0, 50))
        writer.write_table(TABLE.slice(50))
    with pa.memory_map(str(path)) as file:
        file.seek(8)
        stream = ipc.open_stream(file)
        stream.read_next_batch()
        end = file.tell()
    cut.write_bytes(path.read_bytes()[:end])
    seen, error = consumed(open_blocks(cut, target="label"))
    assert len(seen) == 50
    assert "was cut off after row 49" in str(error)


# ------------------------------------------------------------ several, changed


def test_a_fault_in_a_later_file(tmp_path):
    for k in range(3):
        pq.write_table(TABLE.slice(30 * k, 30), tmp_path / f"{k}.parquet", row_group_size=15)
    spoil(tmp_path / "1.parquet", 1, 0)
    seen, error = consumed(open_blocks(tmp_path, target="label"))
    assert (error.where, error.rows) == (str(tmp_path / "1.parquet"), (15, 29))
    np.testing.assert_array_equal(seen, expect(45))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_columns(["shade"]), "b.parquet: there is no column 'shade'"),
        (lambda t: t.append_column("more", t["size"]), "b.parquet: column 'more' is not in the first table"),
        (lambda t: t.set_column(0, "size", t["size"].cast("string")), 'b.parquet: column "size" holds text'),
    ],
)
def test_a_later_file_with_other_columns(tmp_path, change, message):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    pq.write_table(change(TABLE), tmp_path / "b.parquet")
    seen, error = consumed(open_blocks(tmp_path, target="label"))
    assert message in str(error)
    assert error.where == str(tmp_path / "b.parquet")
    assert len(seen) == N


def test_an_infinite_value_in_a_later_file(tmp_path):
    infinite = TABLE.set_column(1, "shade", pa.array([np.inf if k == 33 else 0.5 for k in range(N)]))
    pq.write_table(TABLE, tmp_path / "a.parquet")
    pq.write_table(infinite, tmp_path / "b.parquet")
    _, error = consumed(open_blocks(tmp_path, target="label", block_rows=20))
    assert (error.where, error.rows, error.column) == (str(tmp_path / "b.parquet"), (33, 33), "shade")
    again = pickle.loads(pickle.dumps(error))  # as workers send it
    assert (str(again), again.rows, again.column) == (str(error), error.rows, "shade")


@pytest.mark.parametrize("ending", ["parquet", "csv", "npy"])
def test_files_that_change_between_passes(tmp_path, ending):
    path = tmp_path / f"a.{ending}"

    def write(n):
        if ending == "npy":
            np.save(path, np.ones((n, 2)))
        elif ending == "csv":
            write_lines(path, lines()[: n + 1])
        else:
            pq.write_table(TABLE.slice(0, n), path)

    write(N)
    blocks = open_blocks(path, target=None if ending == "npy" else "label")
    assert sum(len(b) for b in blocks) == sum(len(b) for b in blocks) == N
    write(N - 1)
    with pytest.raises(StreamError, match="has changed since the stream was opened"):
        list(blocks)
    path.unlink()
    with pytest.raises(StreamError, match="is gone") as caught:
        list(blocks)
    assert caught.value.where == str(path)


def test_a_file_that_changes_while_it_is_read(tmp_path):
    path = write_lines(tmp_path / "a.csv", lines())
    blocks = iter(open_blocks(path, target="label", block_rows=50))
    assert len(next(blocks)) == 50
    os.utime(path, ns=(1, 1))
    with pytest.raises(StreamError, match="has changed"):
        list(blocks)


def test_an_iterator_that_gives_other_rows_the_second_time():
    sizes = iter([10, 9])
    blocks = open_blocks(lambda: [np.ones((next(sizes), 2))])
    assert len(list(blocks)) == 1
    with pytest.raises(StreamError, match="9 rows in this pass, but 10 were expected"):
        list(blocks)


def test_an_iterator_that_fails():
    def items():
        yield np.ones((3, 2))
        raise RuntimeError("the line is dead")

    seen = []
    with pytest.raises(RuntimeError, match="the line is dead") as caught:
        seen.extend(block for block in open_blocks(items()))
    assert len(seen) == 1
    assert caught.value.__notes__ == ["Raised while block 1 of the stream was produced."]
