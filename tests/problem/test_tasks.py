"""Which task a row belongs to: ids of every kind, columns of every kind of table."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from leastwise.problem.tasks import Tasks, as_table, encode_tasks, list_tasks, split_tasks


def codes_by_loops(ids, names):
    """Where each id stands among the names."""
    return [next(code for code, name in enumerate(names) if name == one) for one in ids]


# ------------------------------------------------------------------------ ids

DAY = dt.date(2024, 2, 29)
HASHABLE = {
    "strings": (["b", "a", "c", "a"], ["a", "b", "c"]),
    "bytes": ([b"b", b"a", b"b"], [b"a", b"b"]),
    "integers": ([3, -1, 3], [-1, 3]),
    "large integers": ([2**70, 1], [1, 2**70]),
    "floats": ([0.5, -1.5, 0.5], [-1.5, 0.5]),
    "bools": ([True, False, True], [False, True]),
    "tuples": ([("b", 1), ("a", 2), ("b", 1)], [("a", 2), ("b", 1)]),
    "dates": ([DAY, dt.date(2020, 1, 1), DAY], [dt.date(2020, 1, 1), DAY]),
    "times": ([dt.datetime(2024, 1, 2), dt.datetime(2024, 1, 1)], [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)]),
    "fractions": ([Fraction(1, 2), Fraction(1, 3)], [Fraction(1, 3), Fraction(1, 2)]),
    "decimals": ([Decimal("1.5"), Decimal(1)], [Decimal(1), Decimal("1.5")]),
    "mixed": (["b", 1, ("x", 2), "b", DAY], ["b", 1, ("x", 2), DAY]),
    "tuples without an order": ([("b", 1), (2, "a"), ("b", 1)], [("b", 1), (2, "a")]),
    "empty string": (["", "a"], ["", "a"]),
}


@pytest.mark.parametrize(("ids", "names"), HASHABLE.values(), ids=HASHABLE)
def test_hashable_ids_of_every_kind(ids, names):
    codes, tasks = encode_tasks(ids, len(ids))
    assert tasks.ids == names
    assert len(tasks) == len(names)
    assert codes.tolist() == codes_by_loops(ids, names)
    assert codes.dtype == np.intp
    assert tasks.as_array().tolist() == names
    assert tasks.as_array().shape == (len(names),)
    assert tasks.codes(ids).tolist() == codes.tolist()


@given(st.lists(st.one_of(st.integers(), st.text(), st.booleans(), st.tuples(st.integers())), min_size=1))
def test_codes_and_back(ids):
    codes, tasks = encode_tasks(ids, len(ids))
    assert [tasks.ids[code] for code in codes] == ids
    assert sorted(set(codes.tolist())) == list(range(len(tasks)))


@given(st.lists(st.integers(-3, 3) | st.floats(-3, 3), min_size=2), st.randoms())
def test_order_of_the_rows_makes_no_difference_where_ids_have_one(ids, random):
    other = ids.copy()
    random.shuffle(other)
    assert encode_tasks(ids, len(ids))[1].ids == encode_tasks(other, len(ids))[1].ids


def test_equal_numbers_are_one_task():
    """As in any dict: 1, 1.0 and True are equal, "1" is not."""
    codes, tasks = encode_tasks([1, 1.0, True, np.int8(1), np.float32(1)], 5)
    assert codes.tolist() == [0] * 5
    assert len(tasks) == 1
    assert len(encode_tasks([1, "1"], 2)[1]) == 2


def test_as_array_has_the_type_of_the_ids():
    assert Tasks(["a", "bc"]).as_array().dtype == object  # each text has its own length
    assert Tasks([1, 2]).as_array().dtype.kind == "i"
    assert Tasks([0.5, 1]).as_array().dtype.kind == "f"
    for names in ([True, False], [(1, 2), (3, 4)], ["a", 1], [DAY, DAY + dt.timedelta(1)]):
        assert Tasks(names).as_array().dtype == object


def test_tasks_that_are_not_known():
    tasks = encode_tasks(["a", "b"], 2)[1]
    assert tasks.codes(["b", "c", "a", 1]).tolist() == [1, -1, 0, -1]
    assert tasks.codes([]).tolist() == []


# ----------------------------------------------------------------- containers

TEXT = {
    "list": ["b", "a", "b"],
    "array of text": np.array(["b", "a", "b"]),
    "array of objects": np.array(["b", "a", "b"], dtype=object),
    "pandas": pd.Series(["b", "a", "b"], index=[7, 8, 9]),
    "pandas string": pd.Series(["b", "a", "b"], dtype="string"),
    "pandas categorical": pd.Series(pd.Categorical(["b", "a", "b"], categories=["z", "b", "a"])),
    "pandas index": pd.Index(["b", "a", "b"]),
    "polars": pl.Series(["b", "a", "b"]),
    "polars categorical": pl.Series(["b", "a", "b"], dtype=pl.Categorical),
    "generator": "iterator",
}


@pytest.mark.parametrize("kind", TEXT)
def test_text_in_every_container(kind):
    ids = iter(["b", "a", "b"]) if kind == "generator" else TEXT[kind]
    codes, tasks = encode_tasks(ids, 3)
    assert tasks.ids == ["a", "b"]
    assert all(type(name) is str for name in tasks.ids)
    assert codes.tolist() == [1, 0, 1]


NUMBERS = {
    "list": [2, 1, 2],
    "range-like": np.array([2, 1, 2]),
    "small": np.array([2, 1, 2], dtype=np.int8),
    "float": np.array([2.0, 1.0, 2.0]),
    "float32": np.array([2.0, 1.0, 2.0], dtype=np.float32),
    "objects": np.array([2, 1, 2], dtype=object),
    "numpy scalars": [np.int64(2), np.int32(1), np.float64(2)],
    "pandas": pd.Series([2, 1, 2]),
    "pandas Int64": pd.Series([2, 1, 2], dtype="Int64"),
    "polars": pl.Series([2, 1, 2]),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_in_every_container(kind):
    codes, tasks = encode_tasks(NUMBERS[kind], 3)
    assert tasks.ids == [1, 2]
    assert all(type(name) in (int, float) for name in tasks.ids)
    assert codes.tolist() == [1, 0, 1]


def test_the_same_dates_are_the_same_tasks_whatever_holds_them():
    """A model fitted to one kind of table is asked with another."""
    days = [dt.datetime(2024, 1, 2), dt.datetime(2024, 1, 1)]
    tasks = encode_tasks(days, 2)[1]
    for unit in ("s", "ms", "us", "ns"):
        there = np.array(days, dtype=f"datetime64[{unit}]")
        assert tasks.codes(list_tasks(there, 2)).tolist() == [1, 0], unit
        assert tasks.codes(list_tasks(pd.Series(there), 2)).tolist() == [1, 0], f"pandas, {unit}"
    assert tasks.codes(list_tasks(pl.Series(days), 2)).tolist() == [1, 0]
    assert tasks.codes(list_tasks(list(pd.Series(days)), 2)).tolist() == [1, 0]


@pytest.mark.parametrize("one", ["farm", b"farm", 5, 2.5, True, frozenset("a"), DAY, np.str_("farm"), np.int64(3)])
def test_one_id_for_all_rows(one):
    assert list_tasks(one, 3) == [one] * 3
    codes, tasks = encode_tasks(one, 3)
    assert codes.tolist() == [0, 0, 0]
    assert tasks.ids == [one]


def test_no_rows():
    assert list_tasks([], 0) == []
    assert list_tasks("a", 0) == []


# ---------------------------------------------------------------------- missing

MISSING = {
    "none": ["a", None, "b"],
    "nan": [1.0, float("nan"), 2.0],
    "nan array": np.array([1.0, np.nan, 2.0]),
    "nan among text": ["a", np.nan, "b"],
    "numpy nan": [1, np.float32("nan"), 2],
    "inf": [1.0, np.inf, 2.0],
    "NA": ["a", pd.NA, "b"],
    "NaT": [pd.Timestamp("2024-01-01"), pd.NaT, pd.Timestamp("2024-01-02")],
    "numpy NaT": np.array(["2024-01-01", "NaT", "2024-01-02"], dtype="datetime64[D]"),
    "numpy NaT ns": np.array(["2024-01-01", "NaT", "2024-01-02"], dtype="datetime64[ns]"),
    "scalar NaT": ["a", np.datetime64("NaT"), "b"],
    "pandas": pd.Series(["a", None, "b"]),
    "pandas string": pd.Series(["a", None, "b"], dtype="string"),
    "pandas Int64": pd.Series([1, None, 3], dtype="Int64"),
    "pandas categorical": pd.Series(pd.Categorical(["a", None, "b"])),
    "pandas dates": pd.to_datetime(pd.Series(["2024-01-01", None, "2024-01-02"])),
    "polars": pl.Series(["a", None, "b"]),
    "polars integers": pl.Series([1, None, 3]),
    "polars dates": pl.Series([DAY, None, DAY]),
}


@pytest.mark.parametrize("kind", MISSING)
def test_missing_ids(kind):
    with pytest.raises(
        ValueError, match=r"Of 3 task ids 1 are missing \(None, NaN.*give every row a task.*'unknown'"
    ):
        encode_tasks(MISSING[kind], 3)


@pytest.mark.parametrize("one", [None, float("nan"), pd.NA, pd.NaT])
def test_a_single_missing_id(one):
    with pytest.raises(ValueError, match="Of 2 task ids 2 are missing"):
        list_tasks(one, 2)


# ------------------------------------------------------------------------ wrong


@pytest.mark.parametrize(
    ("ids", "shape"),
    [
        (["a", "b"], r"\(2,\)"),
        (["a"], r"\(1,\)"),
        ([], r"\(0,\)"),
        (np.array(["a", "b"]), r"\(2,\)"),
        (np.ones((3, 1)), r"\(3, 1\)"),
        (np.ones((3, 2)), r"\(3, 2\)"),
        (np.ones((1, 3)), r"\(1, 3\)"),
        (pd.Series(["a"] * 4), r"\(4,\)"),
        (pd.DataFrame({"t": ["a"] * 3}), r"\(3, 1\)"),
        (pl.DataFrame({"t": ["a"] * 3}), r"\(3, 1\)"),
        (pl.Series(["a"] * 4), r"\(4,\)"),
    ],
)
def test_wrong_lengths_and_shapes(ids, shape):
    with pytest.raises(ValueError, match=rf"tasks has shape {shape}; it must hold one id for each of the 3 rows"):
        encode_tasks(ids, 3)


@pytest.mark.parametrize("ids", [[["a"], ["b"]], [{1}, {2}], [{}, {}], [np.array([1]), np.array([2])]])
def test_ids_that_cannot_be_hashed(ids):
    with pytest.raises(TypeError, match=r"must be hashable, such as a string, a tuple or a number: row 0 has "):
        encode_tasks(ids, 2)


# ---------------------------------------------------------------------- columns

A = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize("column", [0, 1, 2, -1, -2, -3, np.int64(1)])
@pytest.mark.parametrize("dtype", [float, np.float32, int, object])
def test_array(column, dtype):
    X, tasks = split_tasks(A.astype(dtype), column)
    np.testing.assert_array_equal(X, np.delete(A, column, axis=1))
    np.testing.assert_array_equal(tasks, A[:, column])
    assert X.dtype == dtype


def test_the_table_is_left_alone():
    X = A.copy()
    rest, tasks = split_tasks(X, 1)
    rest[:], tasks_before = 0, tasks.copy()
    np.testing.assert_array_equal(X[:, 0], A[:, 0])
    np.testing.assert_array_equal(tasks_before, A[:, 1])


def test_array_of_objects_with_text():
    X = np.array([[1.0, "a", 2], [3.0, "b", 4]], dtype=object)
    rest, tasks = split_tasks(X, 1)
    assert rest.astype(float).tolist() == [[1, 2], [3, 4]]
    assert list_tasks(tasks, 2) == ["a", "b"]


def test_array_of_text():
    rest, tasks = split_tasks(np.array([["1", "a"], ["2", "b"]]), 1)
    assert rest.tolist() == [["1"], ["2"]]
    assert list_tasks(tasks, 2) == ["a", "b"]


def test_lists_of_rows():
    rest, tasks = split_tasks([[1, "a", 2.5], [3, "b", 4]], -2)
    assert rest.tolist() == [[1, 2.5], [3, 4]]
    assert list_tasks(tasks, 2) == ["a", "b"]
    rest, tasks = split_tasks([[1, 2], [3, 4]], 0)
    assert rest.tolist() == [[2], [4]]
    assert list_tasks(tasks, 2) == [1, 3]


FRAMES = {
    "pandas": pd.DataFrame({"x": [1.0, 2.0], "farm": ["a", "b"], "z": [0, 1]}, index=[5, 6]),
    "pandas string": pd.DataFrame({"x": [1.0, 2.0], "farm": pd.array(["a", "b"], dtype="string"), "z": [0, 1]}),
    "pandas categorical": pd.DataFrame({"x": [1.0, 2.0], "farm": pd.Categorical(["a", "b"]), "z": [0, 1]}),
    "polars": pl.DataFrame({"x": [1.0, 2.0], "farm": ["a", "b"], "z": [0, 1]}),
    "polars categorical": pl.DataFrame(
        {"x": [1.0, 2.0], "farm": ["a", "b"], "z": [0, 1]}, schema_overrides={"farm": pl.Categorical}
    ),
}


@pytest.mark.parametrize("column", ["farm", 1, -2])
@pytest.mark.parametrize("kind", FRAMES)
def test_frames(kind, column):
    frame = FRAMES[kind]
    rest, tasks = split_tasks(frame, column)
    assert type(rest) is type(frame)
    assert list(rest.columns) == ["x", "z"]
    np.testing.assert_array_equal(np.asarray(rest, dtype=float), [[1, 0], [2, 1]])
    assert list_tasks(tasks, 2) == ["a", "b"]
    assert list(frame.columns) == ["x", "farm", "z"]


def test_frames_with_numbers_for_names():
    """A number is a position, as in scikit-learn; names that are not text are found where they are no numbers."""
    frame = pd.DataFrame([[1.0, "a", 2.0], [3.0, "b", 4.0]])
    assert list_tasks(split_tasks(frame, 1)[1], 2) == ["a", "b"]
    reordered = frame[[1, 0, 2]]
    assert list_tasks(split_tasks(reordered, 0)[1], 2) == ["a", "b"]
    assert list(split_tasks(reordered, 0)[0].columns) == [0, 2]
    pairs = pd.DataFrame([[1.0, "a"]], columns=pd.MultiIndex.from_tuples([("x", 1), ("farm", 2)]))
    assert list_tasks(split_tasks(pairs, ("farm", 2))[1], 1) == ["a"]


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix", "coo_matrix", "csr_array", "csc_array", "lil_matrix"])
@pytest.mark.parametrize("column", [0, 2, -2])
def test_sparse(kind, column):
    X, tasks = split_tasks(getattr(sparse, kind)(A), column)
    assert sparse.issparse(X)
    np.testing.assert_array_equal(X.toarray(), np.delete(A, column, axis=1))
    np.testing.assert_array_equal(tasks, A[:, column])
    assert list_tasks(tasks, 4) == A[:, column].tolist()


def test_sparse_zeros_are_a_task():
    X = sparse.csr_matrix(np.array([[1.0, 0.0], [2.0, 3.0], [0.0, 0.0]]))
    assert encode_tasks(split_tasks(X, 1)[1], 3)[1].ids == [0.0, 3.0]


WRONG = {
    "beyond": (A, 3, r"task_column=3: X has n_features=3 columns.*from 0 to 2"),
    "before": (A, -4, r"task_column=-4: X has n_features=3 columns.*from -3 to -1"),
    "name without names": (A, "farm", r"task_column='farm' is a name, but ndarray has no column names: give its pos"),
    "name of sparse": (sparse.csr_matrix(A), "farm", "csr_matrix has no column names: give its position"),
    "name of lists": ([[1, "a"], [2, "b"]], "farm", "has no column names: give its position"),
    "bool": (A, True, "task_column=True"),
    "half": (A, 0.5, r"task_column=0\.5"),
    "unknown name": (FRAMES["pandas"], "Farm", r"task_column='Farm'.*\['x', 'farm', 'z'\]"),
    "unknown name polars": (FRAMES["polars"], "Farm", r"task_column='Farm'.*\['x', 'farm', 'z'\]"),
    "beyond in a frame": (FRAMES["pandas"], 3, "task_column=3: X has n_features=3 columns"),
    "name twice": (pd.DataFrame(A, columns=["t", "t", "x"]), "t", r"task_column='t'.*2.*\['t', 't', 'x'\]"),
    "one column": (A[:, :1], 0, r"1 feature\(s\) \(shape=\(4, 1\)\).*minimum of 2.*one column is the task"),
    "no column": (A[:, :0], 0, r"0 feature\(s\)"),
    "one dimension": (A[0], 0, "Expected 2D array, got 1D array instead.*Reshape your data"),
    "three dimensions": (np.ones((2, 2, 2)), 0, "Expected 2D array, got 3D"),
    "a number": (5.0, 0, "Expected 2D array, got 0D"),
    "series": (pd.Series([1.0, 2.0]), 0, "Expected 2D array, got 1D"),
    "complex": (A * 1j, 0, "Complex data not supported: X is of type complex128"),
}


@pytest.mark.parametrize(("X", "column", "message"), WRONG.values(), ids=WRONG)
def test_wrong_columns_and_tables(X, column, message):
    with pytest.raises(ValueError, match=message):
        split_tasks(X, column)


def test_as_table_keeps_what_it_is_given():
    for X in (A, sparse.csr_matrix(A), FRAMES["pandas"], FRAMES["polars"]):
        assert as_table(X) is X
    assert as_table([[1, 2]]).tolist() == [[1, 2]]
    assert as_table([[1, "a"]]).dtype == object
