"""Columns of any kind become features by stated rules, which are found once and kept."""

import io
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from leastwise.sources.formats.cells import boolean, date, number, strip_cell
from leastwise.tables import Table, TableEncoder, TableError, read_table


@parametrize_with_checks([TableEncoder()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def csv(text):
    return read_table(io.StringIO(text))


def column(cells, name="a", **options):
    """What is found in one column, beside one of numbers."""
    return TableEncoder(**options).fit({name: cells}).columns_[0]


# ----------------------------------------------------------------------- cells


@pytest.mark.parametrize("cell", ["", " ", "NA", "n/a", "NaN", "null", "None", "?", "-", None])
def test_missing_cells(cell):
    assert strip_cell(cell) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-1.5", -1.5),
        ("+.5", 0.5),
        ("1.", 1),
        ("1e-3", 1e-3),
        ("1,234", 1234),
        ("-1,234,567.5", -1234567.5),
        ("1e999", np.inf),
        ("-inf", -np.inf),
    ],
)
def test_numbers(text, value):
    assert number(text) == value


@pytest.mark.parametrize("text", ["1,5", "1_000", "0x1", "1 2", "12,34", "1e", "--1", "١", "one", "1,2345"])
def test_no_numbers(text):
    assert number(text) is None


@settings(max_examples=200)
@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_as_python_writes_them(value):
    assert number(repr(value)) == value


def test_booleans_and_dates():
    assert [boolean(t) for t in ("true", "Yes", "FALSE", "no", "1", "maybe")] == [1, 1, 0, 0, None, None]
    assert date("1970-01-02") == 1
    assert date("1970-01-01 12:00") == date("1970-01-01T12:00:00.0") == 0.5
    assert date("1970-01-01T12:00:00+12:00") == date("1970-01-01T00:00Z") == 0
    assert [date(t) for t in ("1970-13-01", "01.02.1970", "1970", "1970-1-1")] == [None] * 4


@given(moment=st.datetimes())
def test_dates_are_days_since_1970(moment):
    given_days = date(moment.isoformat())
    assert given_days == pytest.approx(np.datetime64(moment, "us").astype("int64") / 86_400e6, abs=1e-9)


# ----------------------------------------------------------------------- kinds


@pytest.mark.parametrize(
    ("cells", "kind", "features"),
    [
        (["1", "2.5", ""], "number", ["a", "a=(missing)"]),
        (["1", "2", "2"], "number", ["a"]),
        (["true", "FALSE", "yes"], "boolean", ["a"]),
        (["no", "yes", "?"], "boolean", ["a", "a=(missing)"]),
        (["2024-01-31", "2024-02-01"], "date", ["a"]),
        (["x", "x", "y", "y"], "category", ["a=x", "a=y"]),
        ([" x", "x ", "y", "y", "NA"], "category", ["a=x", "a=y", "a=(missing)"]),
        (["x", "x", "y", "z"], "category", ["a=x", "a=(other)"]),
        (["1", "1", "2", "2", "x", "x"], "category", ["a=1", "a=2", "a=x"]),
        (["7", "7", "7"], "ignore", []),
        (["7", "", "7"], "number", ["a=(missing)"]),
        (["x", "x"], "ignore", []),
        (["x", "x", ""], "category", ["a=(missing)"]),
        (["yes", "yes"], "ignore", []),
        (["", "NA"], "ignore", []),
        ([None, None], "ignore", []),
        ([f"name {i}" for i in range(30)], "ignore", []),
        ([str(i) for i in range(1, 31)], "ignore", []),
        ([str(i * i) for i in range(30)], "number", ["a"]),
        (np.array([1.0, np.nan]), "ignore", []),
        (np.array([1.5, 2.0]), "number", ["a"]),
        (np.array([True, False]), "boolean", ["a"]),
        (np.array(["2024-01-31", "2024-02-01"], dtype="datetime64[D]"), "date", ["a"]),
    ],
)
def test_kinds_are_found(cells, kind, features):
    if kind == "ignore" and isinstance(cells, np.ndarray):
        kind, features = "number", ["a=(missing)"]  # one number and a gap
    found = column(cells)
    assert (found.kind, found.features) == (kind, features)


def test_notes_say_why_columns_are_not_used():
    found = TableEncoder().fit(
        {"id": np.arange(30), "name": [f"n {i}" for i in range(30)], "one": ["x"] * 30, "none": [None] * 30}
    )
    assert [c.note for c in found.columns_] == [
        "increases by one from row to row: a row number",
        "30 distinct texts in 30 rows: names, ids or free text",
        "constant",
        "no values",
    ]
    assert found.transform({}).shape == (0, 0)


def test_kinds_may_be_said():
    cells = ["1", "2", "1", "2", "1"]
    assert column(cells, kinds={"a": "category"}).features == ["a=1", "a=2"]
    assert column(cells, ignore=["a"]).kind == "ignore"
    assert column([str(i) for i in range(30)], kinds={"a": "number"}).features == ["a"]
    with pytest.raises(
        TableError,
        match=r"kinds= and ignore= name the column 'b', which the table does not have; the columns are \['a'\]",
    ):
        column(cells, kinds={"b": "category"})
    with pytest.raises(TableError, match=r"kinds= has 'word' for column \"a\": use one of"):
        column(cells, kinds={"a": "word"})


def test_a_word_among_numbers_is_a_mistake():
    rows = [f"{i * 0.7:.2f},x" for i in range(50)]
    rows[9] = "abc,x"
    text = "size,b\n" + "\n".join(rows)
    with pytest.raises(TableError) as caught:
        TableEncoder().fit(csv(text))
    assert str(caught.value).startswith(
        '<stream>, line 11, column "size": "abc" is not a number, but 49 of 50 cells of this column are. Correct it'
    )
    with pytest.raises(TableError, match=r'line 11, column "size": "abc" is not a number\.$'):
        TableEncoder(kinds={"size": "number"}).fit(csv(text))


@pytest.mark.parametrize("cell", ["inf", "1e999", "-Infinity"])
def test_infinite_numbers_are_named(cell):
    with pytest.raises(TableError, match=rf'line 3, column "a": {cell} is not a finite number'):
        TableEncoder().fit(csv(f"a,b\n1,2\n{cell},3\n"))


# -------------------------------------------------------------------- features


@settings(deadline=None, max_examples=50)
@given(
    x=arrays(float, st.integers(3, 12), elements=st.integers(-9999, 9999).map(lambda v: v / 8) | st.just(np.nan)),
)
def test_numbers_by_their_definition(x):
    known = x[~np.isnan(x)]
    if len(np.unique(known)) < 2:
        return
    encoder = TableEncoder(kinds={"a": "number"}).fit({"a": x})
    filled = np.where(np.isnan(x), np.median(known), x)
    expected = (filled - filled.mean()) / filled.std()
    X = encoder.transform({"a": x})
    np.testing.assert_allclose(X[:, 0], expected, atol=1e-9)
    assert X.shape[1] == 1 + bool(len(known) < len(x))
    if X.shape[1] == 2:
        np.testing.assert_array_equal(X[:, 1], np.isnan(x))


def test_huge_numbers_are_standardised_and_far_ones_are_a_million():
    x = np.array([1e300, -1e300, 3e299, 0])
    X = TableEncoder().fit_transform({"a": x})
    np.testing.assert_allclose(X[:, 0], (x / 1e300 - np.mean(x / 1e300)) / np.std(x / 1e300))
    encoder = TableEncoder().fit({"a": [0.0, 1.0]})
    assert encoder.transform({"a": [1e308, -1e308]}).tolist() == [[1e6], [-1e6]]


@settings(deadline=None, max_examples=50)
@given(cells=st.lists(st.sampled_from(["x", "y", "z", "rare", None]), min_size=2, max_size=30))
def test_categories_by_their_definition(cells):
    encoder = TableEncoder(kinds={"a": "category"}).fit({"a": cells})
    found, X = encoder.columns_[0], encoder.transform({"a": cells})
    counts = {c: cells.count(c) for c in set(cells) - {None}}
    kept = sorted(c for c, k in counts.items() if k >= 2)
    if len(counts) < 2 or not kept:
        assert found.features == (["a=(missing)"] if None in cells and counts else [])
        return
    expected = [[cell == c for c in kept] for cell in cells]
    if len(kept) < len(counts):
        expected = [[*row, cell is not None and cell not in kept] for row, cell in zip(expected, cells, strict=True)]
    if None in cells:
        expected = [[*row, cell is None] for row, cell in zip(expected, cells, strict=True)]
    np.testing.assert_array_equal(X, expected)


def test_rare_categories_share_a_feature():
    cells = ["a"] * 300 + ["b"] * 300 + ["c"] * 2 + ["d"] * 4
    found = column(cells, "k")
    assert found.features == ["k=a", "k=b", "k=d", "k=(other)"]
    assert (found.categories, found.pooled) == (("a", "b", "d"), ("c",))  # 2 of 606 are fewer than 0.5 %
    found = column(cells, "k", max_categories=1)
    assert (found.categories, found.pooled) == (("a",), ("b", "c", "d"))


def test_values_that_training_has_not_seen_are_counted():
    plain = TableEncoder().fit({"k": ["x", "x", "y", "y"]}).encode({"k": ["x", "new", "new", None]})
    assert plain.X.tolist() == [[1, 0], [0, 0], [0, 0], [0, 0]]
    assert plain.unseen == {"k": 2}
    assert plain.missing == {"k": 1}
    assert plain.notes == [
        'Column "k": 2 cells with values that did not occur in training.',
        'Column "k": 1 missing cells; training had none.',
    ]
    pooled = TableEncoder().fit({"k": ["x", "x", "y", "y", "z"]}).encode({"k": ["z", "new"]})
    assert pooled.X.tolist() == [[0, 0, 1], [0, 0, 1]]
    assert pooled.unseen == {"k": 1}


def test_codes_are_numbers_as_they_are_and_positions_of_categories():
    table = csv("size,line,ok\n1.5,north,yes\n,south,no\n-3,,\n2,south,no\n2,north,yes\n4,rare,no\n")
    encoder = TableEncoder(output="codes").fit(table)
    assert encoder.get_feature_names_out().tolist() == ["size", "line", "ok"]
    assert encoder.nominal_ == [1, 2]
    assert encoder.describe()["features"].tolist() == [1, 1, 1]
    new = encoder.encode(csv("ok,line,size\nno,rare,7\n?,west,\nyes,north,1e300\n"))
    far = encoder.columns_[0].mean + 1e6 * encoder.columns_[0].scale
    np.testing.assert_array_equal(new.X, [[7, 2, 0], [np.nan, -1, np.nan], [far, 0, 1]])
    assert new.unseen == {"line": 1}
    with pytest.raises(TableError, match=r"output='numbers' is unknown: use one of \['features', 'codes'\]"):
        TableEncoder(output="numbers").fit(table)


# ------------------------------------------------------------------ prediction

TRAINING = "size,line,ok,day\n" + "".join(
    f"{i % 7}.5,{'north' if i % 2 else 'south'},{'yes' if i % 3 else 'no'},2024-01-{i + 1:02d}\n" for i in range(20)
)


def test_columns_in_another_order_and_others_beside():
    table = csv(TRAINING)
    encoder = TableEncoder().fit(table)
    columns = {"more": table["size"], **{name: table[name] for name in reversed(table.names)}}
    encoded = encoder.encode(Table(columns))
    np.testing.assert_array_equal(encoded.X, encoder.transform(table))
    assert encoded.extra == ["more"]
    assert encoded.notes == ["Columns that the model does not use: more."]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "size,line,ok\n1,north,yes\n",
            ": the model needs the column 'day', which the table does not have; the columns are ['size', ",
        ),
        ("line\nnorth\n", ": the model needs the columns 'size', 'ok', 'day', which the table does not have"),
        (TRAINING + "abc,north,no,2024-01-01\n", ', line 22, column "size": "abc" is not a number.'),
        (TRAINING + "1,north,maybe,2024-01-01\n", ', line 22, column "ok": "maybe" is not true or false'),
        (TRAINING + "1,north,no,1.1.2024\n", ', line 22, column "day": "1.1.2024" is not an ISO date'),
        (TRAINING + "inf,north,no,2024-01-01\n", ', line 22, column "size": inf is not a finite number'),
    ],
)
def test_what_does_not_fit_is_named(text, message):
    encoder = TableEncoder().fit(csv(TRAINING))
    with pytest.raises(TableError) as caught:
        encoder.transform(csv(text))
    assert str(caught.value).startswith(f"<stream>{message}")


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("ok", np.array([0.0, 3.0]), 'row 2, column "ok": 3 is not true or false'),
        ("day", np.array([np.nan, 3.5]), 'row 2, column "day": 3.5 is not an ISO date'),
        (
            "size",
            np.array(["2024-01-01"] * 2, dtype="datetime64[D]"),
            'row 1, column "size": the column contains dates',
        ),
    ],
)
def test_types_that_do_not_fit_are_named(name, values, message):
    encoder = TableEncoder().fit(csv(TRAINING))
    columns = csv(TRAINING).take([0, 1]).columns
    with pytest.raises(TableError) as caught:
        encoder.transform({**columns, name: values})
    assert str(caught.value).startswith(message)


def test_other_types_with_the_same_meaning_give_the_same_features():
    table = csv(TRAINING)
    encoder = TableEncoder().fit(table)
    typed = {
        "size": table["size"].astype(float),
        "line": table["line"],
        "ok": table["ok"] == "yes",
        "day": table["day"].astype("datetime64[D]"),
    }
    np.testing.assert_array_equal(encoder.transform(typed), encoder.transform(table))
    np.testing.assert_array_equal(
        encoder.transform({**typed, "ok": typed["ok"].astype(int)}), encoder.transform(table)
    )
    again = TableEncoder().fit(typed)
    np.testing.assert_array_equal(again.transform(table), encoder.transform(table))


def test_columns_that_are_absent_mean_zero_in_libsvm():
    train = read_table(io.StringIO("1 1:1 2:5\n0 1:2\n1 2:4\n"), format="libsvm").without(["y"])
    encoder = TableEncoder().fit(train)
    new = read_table(io.StringIO("0 1:2\n"), format="libsvm").without(["y"])
    np.testing.assert_array_equal(encoder.transform(new), encoder.transform({"x1": [2.0], "x2": [0.0]}))


def test_declared_categories_are_categories_though_they_look_like_numbers():
    table = Table.of({"a": ["1", "2", "1", "2"]})
    declared = Table(table.columns, declared={"a": "category"})
    assert TableEncoder().fit(declared).columns_[0].kind == "category"
    assert TableEncoder().fit(table).columns_[0].kind == "number"
    np.testing.assert_array_equal(TableEncoder().fit(declared).transform({"a": [1.0, 2.0]}), np.eye(2))


def test_kinds_are_found_by_all_rows_and_the_rest_by_some():
    table = Table.of({"id": np.arange(20), "x": np.arange(20.0) ** 2})
    encoder = TableEncoder().fit_rows(table, np.array([0, 5, 7]))
    assert [c.kind for c in encoder.columns_] == ["ignore", "number"]
    assert encoder.columns_[1].fill == 25


def test_describe():
    described = TableEncoder().fit(csv(TRAINING)).describe()
    assert described.names == ["column", "kind", "missing", "values", "features", "note"]
    assert described["kind"].tolist() == ["number", "category", "boolean", "date"]
    assert described["features"].tolist() == [1, 2, 1, 4]  # the date has its weekday too


def test_frames_and_set_output():
    pd = pytest.importorskip("pandas")
    frame = pd.read_csv(io.StringIO(TRAINING))
    encoder = clone(TableEncoder()).set_output(transform="pandas").fit(frame)
    out = encoder.transform(frame)
    assert list(out.columns) == list(encoder.get_feature_names_out())
    np.testing.assert_array_equal(out, TableEncoder().fit(csv(TRAINING)).transform(csv(TRAINING)))


def test_the_state_is_plain():
    encoder = TableEncoder().fit(csv(TRAINING))
    for found in encoder.columns_:
        for value in vars(found).values():
            assert type(value) in (str, int, float, tuple)
    again = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(again.transform(csv(TRAINING)), encoder.transform(csv(TRAINING)))


def test_too_many_features_for_the_memory_are_refused(monkeypatch):
    encoder = TableEncoder().fit({"a": [1.0, 2.0]})
    monkeypatch.setenv("LEASTWISE_MEMORY", "1KB")
    with pytest.raises(TableError, match="1000 rows with 1 features need"):
        encoder.transform({"a": np.ones(1000)})


def test_many_columns_take_bounded_time():
    rng = np.random.default_rng(0)
    names = [f"c{j}" for j in range(4_000)]
    table = Table.of(dict(zip(names, rng.normal(size=(4_000, 5)).astype(str).astype(object), strict=True)))
    assert TableEncoder().fit(table).transform(table).shape == (5, 4_000)
