"""Labels of every form as codes and back, and how much they count."""

import pickle
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.utils.class_weight import compute_sample_weight

from leastwise.problem.labels import Labels, encode_known, encode_labels
from leastwise.problem.targets.labels import label_weights

NAN = np.nan
#: The same labels in every form that holds numbers; row 3 knows nothing.
CODES = np.array([[0, 1, 1], [1, -1, 1], [-1, 0, 1], [-1, -1, -1], [1, 1, 1]])
FLOATS = np.where(CODES < 0, NAN, CODES)
NAMES = ["a", "b", "c"]


def objects(absent):
    table = CODES.astype(object)
    table[CODES < 0] = absent
    return table


FORMS = {
    "floats": FLOATS,
    "floats of half precision": FLOATS.astype(np.float16),
    "column-major floats": np.asfortranarray(FLOATS),
    "masked integers": np.ma.MaskedArray(np.where(CODES < 0, 77, CODES), mask=CODES < 0),
    "masked floats, NaN too": np.ma.MaskedArray(FLOATS, mask=np.isnan(FLOATS) & (np.arange(3) > 1)),
    "objects with None": objects(None),
    "objects with NA": objects(pd.NA),
    "objects with NaN": objects(NAN),
    "lists": FLOATS.tolist(),
    "lists with None": objects(None).tolist(),
    "sparse matrix": sparse.csr_matrix(FLOATS),
    "sparse array": sparse.coo_array(FLOATS),
    "pandas floats": pd.DataFrame(FLOATS, columns=NAMES),
    "pandas nullable": pd.DataFrame(FLOATS, columns=NAMES).astype("Int64"),
    "pandas nullable truth": pd.DataFrame(FLOATS, columns=NAMES).astype("boolean"),
    "pandas objects": pd.DataFrame(objects(None), columns=NAMES),
    "pandas categories": pd.DataFrame(FLOATS, columns=NAMES).astype("category"),
    "pandas sparse": pd.DataFrame(FLOATS, columns=NAMES).astype(pd.SparseDtype("float64")),
    "polars floats": pl.DataFrame(FLOATS, schema=NAMES),
    "polars integers": pl.DataFrame(FLOATS, schema=NAMES).fill_nan(None).cast(pl.Int8),
    "polars truth": pl.DataFrame(FLOATS, schema=NAMES).fill_nan(None).cast(pl.Boolean),
}


@pytest.mark.parametrize("Y", FORMS.values(), ids=FORMS)
def test_the_same_codes_from_every_form(Y):
    codes, labels = encode_labels(Y, 5)
    assert codes.tolist() == CODES.tolist()
    assert codes.dtype == np.intp
    assert [classes.tolist() for classes in labels.classes] == [[0, 1]] * 3
    assert labels.constant == (2,)
    assert labels.starts.tolist() == [0, 2, 4, 6]
    assert (labels.n_labels, labels.n_outputs, labels.binary) == (3, 6, True)
    assert list(labels.names) == (NAMES if labels.named else [0, 1, 2])
    assert encode_known(Y, labels, 5).tolist() == CODES.tolist()


@pytest.mark.parametrize("Y", FORMS.values(), ids=FORMS)
def test_predictions_have_the_form_of_the_labels(Y):
    _, labels = encode_labels(Y, 5)
    labels = pickle.loads(pickle.dumps(labels))
    full = np.array([[0, 1, 0], [1, 1, 0]])
    back = labels.decode(full)
    assert type(back) is (type(Y) if isinstance(Y, pd.DataFrame | pl.DataFrame) or sparse.issparse(Y) else np.ndarray)
    dense = back.toarray() if sparse.issparse(back) else np.asarray(back)
    assert not pd.isna(dense).any()
    assert dense.astype(int).tolist() == full.tolist()
    assert encode_known(back, labels, 2).tolist() == full.tolist()


UNKNOWN_AS_NUMBER = {
    "integers": np.array(CODES),
    "small integers": CODES.astype(np.int8),
    "floats": CODES.astype(float),
    "lists": CODES.tolist(),
    "objects": CODES.astype(object),
    "sparse": sparse.lil_matrix(CODES),
    "pandas": pd.DataFrame(CODES),
    "polars": pl.DataFrame(CODES, schema=NAMES),
    "some NaN": np.where((CODES < 0) & (np.arange(3) > 0), NAN, CODES),
}


@pytest.mark.parametrize("Y", UNKNOWN_AS_NUMBER.values(), ids=UNKNOWN_AS_NUMBER)
@pytest.mark.parametrize("missing", [-1, -1.0, np.int64(-1)])
def test_a_number_for_unknown(Y, missing):
    codes, labels = encode_labels(Y, 5, missing=missing)
    assert codes.tolist() == CODES.tolist()
    assert encode_known(Y, labels, 5, missing=missing).tolist() == CODES.tolist()


def test_a_string_for_unknown():
    Y = np.array([["x", "?"], ["y", "u"], ["x", "v"]])
    codes, _ = encode_labels(Y, 3, missing="?")
    assert codes.tolist() == [[0, -1], [1, 0], [0, 1]]
    assert encode_labels(Y.astype(object), 3, missing="?")[0].tolist() == codes.tolist()
    assert encode_labels(Y[[0, 1, 2, 1]], 4, missing=-1)[1].classes[1].tolist() == ["?", "u", "v"]


def test_zero_for_unknown_beside_plus_and_minus():
    codes, labels = encode_labels(np.array([[0, -1], [1, 1], [1, 0]]), 3, missing=0)
    assert codes.tolist() == [[-1, 0], [1, 1], [1, -1]]
    assert [classes.tolist() for classes in labels.classes] == [[-1, 1], [-1, 1]]
    assert labels.constant == (0,)
    with pytest.raises(ValueError, match="missing=0 leaves 1 as the only class"):
        encode_labels(sparse.csr_matrix([[0, 1], [1, 0]]), 2, missing=0)
    with pytest.raises(ValueError, match="missing=True leaves 0 as the only class"):
        encode_labels(np.array([[0, 1], [1, 0]]), 2, missing=True)


@pytest.mark.parametrize("missing", [NAN, None, pd.NA, np.float32("nan")])
def test_nothing_more_for_unknown(missing):
    assert encode_labels(FLOATS, 5, missing=missing)[0].tolist() == CODES.tolist()


# -------------------------------------------------------------------- classes


def test_classes_of_other_labels_are_those_seen():
    Y = [["x", 3, True, 0], ["y", 1, True, 1], ["z", None, None, 1], ["x", 2, True, 1]]
    codes, labels = encode_labels(Y, 4)
    assert [classes.tolist() for classes in labels.classes] == [["x", "y", "z"], [1, 2, 3], [False, True], [0, 1]]
    assert codes.tolist() == [[0, 2, 1, 0], [1, 0, 1, 1], [2, -1, -1, 1], [0, 1, 1, 1]]
    assert labels.constant == (2,)
    assert labels.starts.tolist() == [0, 3, 6, 8, 10]
    assert not labels.binary
    assert labels.decode(codes[[0, 3]]).tolist() == [Y[0], Y[3]]
    codes, labels = encode_labels(pd.DataFrame({"s": ["x", "y", "x"], "t": [1, 1, 1]}), 3)
    assert labels.classes[1].tolist() == [1]
    assert labels.starts.tolist() == [0, 2, 3]


def test_signs_are_an_indicator_too():
    codes, labels = encode_labels(np.array([[1, -1], [1, 1]]), 2)
    assert labels.binary
    assert codes.tolist() == [[1, 0], [1, 1]]
    frame = pd.DataFrame({"a": [-1, 1], "b": np.array([1, 1], dtype=np.uint8), "c": [True, False]})
    with pytest.raises(ValueError, match="missing=-1"):
        encode_labels(frame.assign(c=[1, 0]), 2)
    codes, labels = encode_labels(frame, 2)
    assert [classes.tolist() for classes in labels.classes] == [[-1, 1], [1], [False, True]]
    codes, labels = encode_labels(frame.assign(d=[1, 1]), 2)
    assert labels.classes[3].tolist() == [-1, 1]
    assert codes[:, 3].tolist() == [1, 1]


def test_a_class_of_its_own_for_the_masked_value_is_not_made():
    Y = np.ma.MaskedArray([["x"], ["y"], ["secret"], ["y"]], mask=[[0], [0], [1], [0]])
    codes, labels = encode_labels(Y, 4)
    assert labels.classes[0].tolist() == ["x", "y"]
    assert codes.ravel().tolist() == [0, 1, -1, 1]


def test_text_stays_text_beside_nan_in_lists():
    codes, _ = encode_labels([["x", NAN], ["nan", "u"], ["x", "v"]], 3)
    assert codes.tolist() == [[1, -1], [0, 0], [1, 1]]


COLUMNS = {
    "int64": np.array([[2], [0], [1], [2]]),
    "int8": np.array([[2], [0], [1], [2]], dtype=np.int8),
    "uint16": np.array([[2], [0], [1], [2]], dtype=np.uint16),
    "bool": np.array([[True], [False], [True]]),
    "text": np.array([["one"], ["three"], ["two"], ["one"]]),
    "bytes": np.array([[b"one"], [b"three"], [b"one"]]),
    "objects": np.array([["one"], ["three"], ["two"], ["one"]], dtype=object),
}


@pytest.mark.parametrize("y", COLUMNS.values(), ids=COLUMNS)
def test_one_column_comes_back_with_its_type(y):
    codes, labels = encode_labels(y, len(y))
    assert labels.classes[0].dtype == y.dtype
    assert labels.classes[0].tolist() == np.unique(y).tolist()
    back = labels.decode(codes)
    assert back.dtype == y.dtype
    assert back.tolist() == y.tolist()


def test_floats_come_back_as_whole_numbers():
    for Y in (np.array([[0.0, 2.0], [1.0, 3.0]]), np.array([[0.0, 2.0], [NAN, 3.0]])):
        codes, labels = encode_labels(Y, 2)
        assert labels.decode(np.maximum(codes, 0)).dtype == np.int64
    codes, labels = encode_labels(pd.DataFrame(FLOATS), 5)
    assert [t.name for t in labels.decode(np.maximum(codes, 0)).dtypes] == ["int64"] * 3
    codes, labels = encode_labels(pd.DataFrame(objects(None)), 5)
    assert [t.name for t in labels.decode(np.maximum(codes, 0)).dtypes] == ["int64"] * 3
    codes, labels = encode_labels(pl.DataFrame(FLOATS), 5)
    assert labels.decode(np.maximum(codes, 0)).dtypes == [pl.Int64] * 3


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy 2 has strings of any length")
def test_strings_of_any_length():
    Y = np.array([["x", "long"], ["y", "longer"]], dtype=np.dtypes.StringDType())
    codes, labels = encode_labels(Y, 2)
    assert labels.decode(codes).tolist() == Y.tolist()


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
@pytest.mark.parametrize("suffix", ["matrix", "array"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.bool_])
def test_sparse_of_every_kind(kind, suffix, dtype):
    dense = np.array([[0, 1], [1, 0], [0, 0]], dtype=dtype)
    Y = getattr(sparse, f"{kind}_{suffix}")(dense)
    codes, labels = encode_labels(Y, 3)
    back = labels.decode(codes)
    assert type(back) is type(Y)
    assert back.dtype == dtype
    assert back.toarray().tolist() == dense.tolist()
    assert back.nnz == 2 or kind in ("bsr", "dia")  # these store blocks and diagonals


def test_pandas_columns_keep_names_types_and_index():
    Y = pd.DataFrame(
        {
            ("u", 1): pd.array([1, 2, None, 3], dtype="Int8"),
            ("u", 2): pd.Categorical(["low", "high", None, "low"], categories=["low", "mid", "high"], ordered=True),
            ("v", 1): pd.Series(["p", "q", None, "p"], dtype="string"),
            ("v", 2): pd.Series(["p", "q", None, "p"], dtype=object),
            ("w", 0): pd.array([True, False, None, True], dtype="boolean"),
        }
    )
    codes, labels = encode_labels(Y, 4)
    assert labels.classes[1].tolist() == ["high", "low"]
    back = labels.decode(codes[[3, 0]], index=["r", "s"])
    expected = Y.iloc[[3, 0]].set_axis(["r", "s"])
    pd.testing.assert_frame_equal(back, expected)


def test_polars_columns_keep_names_and_types():
    Y = pl.DataFrame(
        {
            "i": pl.Series([1, 2, None, 3], dtype=pl.UInt8),
            "c": pl.Series(["p", "q", None, "p"], dtype=pl.Categorical),
            "e": pl.Series(["p", "q", None, "p"], dtype=pl.Enum(["q", "p", "r"])),
            "s": ["p", "q", None, "p"],
            "t": [True, False, None, True],
        }
    )
    codes, labels = encode_labels(Y, 4)
    assert codes[2].tolist() == [-1] * 5
    back = labels.decode(codes[[3, 0]])
    assert back.to_dicts() == Y[[3, 0]].to_dicts()
    assert back.dtypes == Y.dtypes


values = st.one_of(
    st.sampled_from([[0, 1], [-1, 1], [False, True], [3, 5, 9]]),
    st.lists(st.text(max_size=3).filter(str.strip), min_size=1, max_size=4),
)


@settings(deadline=None)
@given(st.data(), st.lists(values, min_size=1, max_size=4), st.integers(5, 12))
def test_codes_and_back(data, pools, n):
    cells = [data.draw(st.lists(st.one_of(st.none(), st.sampled_from(p)), min_size=n, max_size=n)) for p in pools]
    for column, pool in zip(cells, pools, strict=True):
        column[0] = pool[0]
    held = set().union(*([v for v in column if type(v) is int] for column in cells))
    if held == {-1, 0, 1}:  # refused, see below
        return
    rows = [list(row) for row in zip(*cells, strict=True)]
    table = np.empty((n, len(pools)), dtype=object)
    table[:] = rows
    frame = pd.DataFrame({f"l{t}": pd.Series(column, dtype=object) for t, column in enumerate(cells)})
    for Y in (rows, table, frame):
        codes, labels = encode_labels(Y, n)
        for t, column in enumerate(cells):
            classes = labels.classes[t].tolist()
            assert classes == sorted(set(classes))
            assert set(classes) >= {v for v in column if v is not None}
            assert [None if k < 0 else classes[k] for k in codes[:, t]] == column
            assert (t in labels.constant) == (len({v for v in column if v is not None}) == 1)
        back = np.asarray(labels.decode(np.maximum(codes, 0)), dtype=object)
        known = codes >= 0
        assert back[known].tolist() == table[known].tolist()
        assert encode_known(Y, labels, n).tolist() == codes.tolist()


# --------------------------------------------------------------------- errors


class Thing:
    pass


TWICE = pd.DataFrame([[0, 1], [1, 0]], columns=["a", "a"])
WRONG = {
    "none": (None, "requires y to be passed, but the target y is None"),
    "one dimension": (np.array([0, 1]), r"shape \(2,\).*classes.*LSPC.*reshape\(-1, 1\).*MultiLabelBinarizer"),
    "series": (pd.Series([0, 1]), r"shape \(2,\).*to_frame"),
    "polars series": (pl.Series([0, 1]), r"shape \(2,\)"),
    "quantities": (np.array([0.5, NAN, np.inf]), "continuous"),
    "sets": ([{"x"}, {"x", "y"}], "MultiLabelBinarizer"),
    "ragged": ([["x"], ["x", "y"]], "different lengths.*MultiLabelBinarizer"),
    "scalar": (3, r"shape \(\)"),
    "three dimensions": (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
    "no columns": (np.zeros((2, 0)), "no columns"),
    "rows": (np.zeros((3, 1)), "X has 2 rows and Y has 3"),
    "lazy": (pl.DataFrame({"a": [0, 1]}).lazy(), r"LazyFrame.*Y.collect\(\)"),
    "halves": (np.array([[0, 0.5], [1, 1]]), "Column 1 of Y holds 0.5.*continuous.*Y > 0.5"),
    "object halves": (np.array([[0, 0.5], [1, None]], dtype=object), "Column 1 of Y holds 0.5.*continuous"),
    "infinite": (np.array([[np.inf], [1]]), "holds inf"),
    "too large": (np.array([[1e300], [1]]), "holds 1e"),
    "large": ([[2**70], [1]], "64 bits"),
    "signs": (np.array([[-1, 0], [1, 1]]), "Column 0 of Y holds -1.*missing=-1.*three classes.*strings"),
    "nothing known": (pd.DataFrame({"a": [0, 1], "b": [NAN, NAN]}), r"no known value in the columns \['b'\]"),
    "mixed": ([["x"], [1]], "Column 0 of Y holds strings and numbers, 'x' and 1"),
    "names": (TWICE, "several columns with the name 'a'"),
    "complex": (np.array([[1j], [0]]), "Complex data not supported"),
    "dates": (np.array([["2020-01-01"], ["2020-01-02"]], dtype="M8[D]"), "datetime64.*strings"),
    "things": ([[Thing()], [Thing()]], "of type Thing.*classes must be"),
}


@pytest.mark.parametrize(("Y", "message"), WRONG.values(), ids=WRONG)
def test_what_is_refused(Y, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        encode_labels(Y, 2)


def test_cells_that_are_lists_are_refused():
    Y = np.empty((2, 1), dtype=object)
    Y[0, 0], Y[1, 0] = ["x"], ["x", "y"]
    with pytest.raises(ValueError, match=r"of type list.*MultiLabelBinarizer"):
        encode_labels(Y, 2)


@pytest.mark.parametrize("missing", [[-1], np.array([-1, -2]), {}, 1j])
def test_missing_must_be_one_value(missing):
    with pytest.raises(ValueError, match=r"missing=.*number or string"):
        encode_labels(FLOATS, 5, missing=missing)


def test_minus_one_beside_other_classes():
    with pytest.raises(ValueError, match="Column 0 of Y holds -1"):
        encode_labels(np.array([[-1], [0], [1], [2], [2]]), 5)
    assert encode_labels(np.array([[-1], [2], [1], [2], [2]]), 5)[1].classes[0].tolist() == [-1, 1, 2]


def test_ids_and_quantities():
    with pytest.raises(ValueError, match="holds 4 classes in 4 rows, like a number or an id"):
        encode_labels(np.array([[0, 7], [1, 6], [0, 5], [1, 4]]), 4)
    with pytest.raises(ValueError, match="holds 51 classes in 101 rows"):
        encode_labels(np.minimum(np.arange(101), 50)[:, None], 101)
    assert encode_labels(np.minimum(np.arange(102), 50)[:, None], 102)[1].n_outputs == 51
    assert encode_labels(np.minimum(np.arange(60), 49)[:, None], 60)[1].n_outputs == 50
    few = np.full((6, 1), NAN)
    few[:3, 0] = [3, 4, 5]
    assert encode_labels(few, 6)[1].n_outputs == 3  # the rest is not known, and may be any of them


# -------------------------------------------------------------- known labels


def test_new_truth_is_found_by_name_and_by_value():
    _, labels = encode_labels(pd.DataFrame({"a": [0, 1, 1], "b": ["x", "y", "x"]}), 3)
    new = pl.DataFrame({"b": ["y", None], "a": [True, False]})
    assert encode_known(new, labels, 2).tolist() == [[1, 1], [0, -1]]
    assert encode_known([[1.0, "x"], [None, "y"]], labels, 2).tolist() == [[1, 0], [-1, 1]]
    with pytest.raises(ValueError, match=r"Y has no column.*\['b'\].*\['a', 'c'\]"):
        encode_known(pd.DataFrame({"a": [0], "c": ["x"]}), labels, 1)
    with pytest.raises(ValueError, match=r"Column 1 of Y holds \['z'\].*knows are \['x', 'y'\]"):
        encode_known([[1, "z"]], labels, 1)
    with pytest.raises(ValueError, match=r"Column 0 of Y holds \[-1\].*missing=-1"):
        encode_known([[-1, "x"]], labels, 1)
    with pytest.raises(ValueError, match="Y has 1 labels; the model knows 2"):
        encode_known([[1]], labels, 1)
    with pytest.raises(ValueError, match=r"Column 0 of Y holds \['1'\]"):
        encode_known([["1", "x"]], labels, 1)
    assert encode_known([[None, None]], labels, 1).tolist() == [[-1, -1]]


def test_probabilities_as_frames(monkeypatch):
    P = np.array([[0.1, 0.9], [0.4, 0.6]])
    labels = Labels(("a", 7), (np.array([0, 1]),) * 2)
    assert labels.frame(P, "default") is P
    frame = labels.frame(P, "pandas", index=["r", "s"])
    pd.testing.assert_frame_equal(frame, pd.DataFrame(P, columns=["a", 7], index=["r", "s"]))
    pairs = Labels((("u", 1), ("u", 2)), labels.classes)
    assert pairs.frame(P, "pandas")["u"].columns.tolist() == [1, 2]
    assert labels.frame(P, "polars").equals(pl.DataFrame(P, schema=["a", "7"]))
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match="This needs polars"):
        labels.frame(P, "polars")


# -------------------------------------------------------------------- weights

TWO = (np.array([0, 1]),) * 3
THREE = Labels(("a", "b", "c"), TWO, "pandas")
W3 = np.arange(1.0, 16.0).reshape(5, 3)


def test_weights_of_rows_and_of_labels():
    known = CODES >= 0
    assert label_weights(None, None, CODES, THREE).tolist() == known.astype(float).tolist()
    rows = np.array([1.0, 2, 0, NAN, 0.5])
    expected = np.where(known, rows[:, None], 0.0)
    for given_ in (rows, rows.tolist(), pd.Series(rows), pl.Series(rows), pd.Series(rows).astype("Float64")):
        assert label_weights(given_, None, CODES, THREE).tolist() == expected.tolist()
    assert label_weights(2, None, CODES, THREE).tolist() == known.tolist()  # equal weights say nothing
    table = np.where(known, W3, NAN)
    turned = pd.DataFrame(table, columns=NAMES)[["c", "a", "b"]]
    forms = [W3, table, table.tolist(), np.ma.masked_invalid(table), turned, turned.astype("Float64")]
    for given_ in [
        *forms,
        pl.DataFrame(table, schema=NAMES).fill_nan(None),
        pd.DataFrame(W3.astype(int), columns=NAMES),
    ]:
        W = label_weights(given_, None, CODES, THREE)
        assert W.tolist() == np.where(known, W3, 0.0).tolist()
        assert W.dtype == np.float64


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(2, 4))
def test_balanced_is_that_of_scikit_learn_for_each_label(seed, T, c):
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, c, size=(30, T))
    codes[0] = 0
    labels = Labels(tuple(range(T)), (np.arange(c),) * T)
    W = label_weights(None, "balanced", codes, labels)
    counts = rng.integers(1, 4, size=30)
    repeated = label_weights(None, "balanced", np.repeat(codes, counts, axis=0), labels)
    weighted = label_weights(counts, "balanced", codes, labels)
    sums = np.add.reduceat(repeated, np.append(0, np.cumsum(counts)[:-1]))
    np.testing.assert_allclose(weighted, sums)  # a weight of 2 is a row that is there twice
    for t in range(T):
        known = codes[:, t] >= 0
        np.testing.assert_allclose(W[known, t], compute_sample_weight("balanced", codes[known, t]))
        assert not W[~known, t].any()
        assert np.isclose(weighted[:, t].sum(), counts[known].sum())


def test_weights_of_classes():
    known = CODES >= 0
    double = np.where(CODES == 1, 2.0, 1.0) * known
    assert label_weights(None, {1: 2}, CODES, THREE).tolist() == double.tolist()
    assert label_weights(3, {1: 2.0, 0: 1}, CODES, THREE).tolist() == double.tolist()
    only_b = np.where(np.arange(3) == 1, double, known)
    assert label_weights(None, {"b": {1: 2}}, CODES, THREE).tolist() == only_b.tolist()
    assert label_weights(None, [None, {1: 2}, {}], CODES, THREE).tolist() == only_b.tolist()
    assert label_weights(None, {}, CODES, THREE).tolist() == known.tolist()
    mixed = label_weights(None, {"a": "balanced"}, CODES, THREE)
    assert mixed[:, 0].tolist() == label_weights(None, "balanced", CODES, THREE)[:, 0].tolist()
    assert mixed[:, 1:].tolist() == known[:, 1:].tolist()
    words = Labels((0, 1), (np.array(["x", "y"]), np.array([3, 5, 7])))
    codes = np.array([[0, 2], [1, 0], [1, 1]])
    assert label_weights(None, {"y": 4, 7: 3}, codes, words).tolist() == [[1, 3], [4, 1], [4, 1]]
    with pytest.raises(ValueError, match=r"names \['z'\]; the classes of all labels are \['x', 'y', 3, 5, 7\]"):
        label_weights(None, {"z": 4}, codes, words)
    weighted = label_weights([1.0, 0, 3], "balanced", np.array([[0, 2], [1, 0], [0, 1]]), words)
    np.testing.assert_allclose(weighted, [[1, 2], [0, 0], [3, 2]])  # what has no weight is no class to be balanced


REFUSED = {
    "shape": (np.ones(4), None, r"shape \(4,\).*5 rows.*\(5, 3\)"),
    "one column": (np.ones((5, 1)), None, r"shape \(5, 1\)"),
    "negative": ([1, 1, -1, 1, 1], None, "1 negative"),
    "infinite": ([1, 1, np.inf, 1, 1], None, "1 infinite"),
    "NaN": ([1, 1, NAN, 1, 1], None, "sample_weight is NaN for label 'b'"),
    "text": (["x"] * 5, None, "must hold numbers"),
    "sparse": (sparse.csr_matrix(W3), None, "toarray"),
    "names": (pd.DataFrame(W3, columns=["a", "b", "d"]), None, r"sample_weight has no column.*\['c'\]"),
    "all zero": (np.zeros(5), None, "sums to zero"),
    "one label zero": (W3 * [1, 0, 1], None, r"labels \['b'\] have weight 0"),
    "class zero": (None, {1: 0}, r"labels \['c'\] have weight 0"),
    "word": (None, "equal", "class_weight='equal' must be None, 'balanced'"),
    "number": (None, 3, "class_weight=3 must be"),
    "length": (None, [{1: 2}], "a list of 3 such dicts"),
    "class": (None, {2: 1.0}, r"names \[2\]; the classes of all labels are \[0, 1\]"),
    "label": (None, {"d": {1: 2}}, r"names \['d'\], which are not labels.*\['a', 'b', 'c'\]"),
    "class of label": (None, {"b": {2: 2}}, r"names \[2\]; the classes of label 'b' are \[0, 1\]"),
    "mixture": (None, {"a": {1: 2}, "b": 3}, "must be None, 'balanced'"),
    "negative class": (None, {1: -2}, "The weight of 1 is -2: give a finite number of 0 or more"),
    "NaN class": (None, [{1: NAN}, None, None], "The weight of 1 is nan: give"),
    "word for class": (None, [{1: "x"}, None, None], "The weight of 1 is 'x': give"),
}


@pytest.mark.parametrize(("sample_weight", "class_weight", "message"), REFUSED.values(), ids=REFUSED)
def test_weights_that_are_refused(sample_weight, class_weight, message):
    with pytest.raises(ValueError, match=message):
        label_weights(sample_weight, class_weight, CODES, THREE)
