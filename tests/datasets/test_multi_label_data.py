"""Files of Mulan and MEKA made up here, Enron in each of its forms, and the labels that are rotated."""

from __future__ import annotations

import bz2
import gzip
import lzma

import numpy as np
import pytest
from conftest import DATA
from scipy import sparse

from leastwise.datasets import available, load, load_arff, make_rotated_labels
from leastwise.datasets.multi_label import LABELS

OPEN = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}

HEADER = """% a comment
@RELATION 'mail: -C {count}'

@attribute size numeric
@attribute 'it\\'s, "odd"' {{0, 1}}   % another
@Attribute "two words" REAL
@attribute spam {{0,1}}
@attribute ham {{0,1}}
@data
"""
DENSE = "1.5,0,-2e3,1,0\n% in between\n\n?, 1, 0, 0, '1'\n0\t1\t3\t0\t0\n"
SPARSE = "{0 1.5,2 -2e3, 3 1}\n{4 1,0 ?,1 1}\n{ 1 1, 2 3 }\n"
X = np.array([[1.5, 0, -2000], [np.nan, 1, 0], [0, 1, 3]])
Y = np.array([[1, 0], [0, 1], [0, 0]])


def write(path, text, ending=""):
    with OPEN[ending](f"{path}{ending}", "wb") as stream:
        stream.write(text.encode())
    return f"{path}{ending}"


def write_xml(path, names):
    inner = "".join(f'<label name="{name}"></label>\n' for name in names)
    return write(path, f'<?xml version="1.0"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">{inner}</labels>')


# ----------------------------------------------------------------------- arff


@pytest.mark.parametrize("ending", list(OPEN))
@pytest.mark.parametrize("rows", [DENSE, SPARSE])
def test_rows(tmp_path, rows, ending):
    data = load_arff(write(tmp_path / "mail.arff", HEADER.format(count=-2) + rows, ending))
    assert sparse.issparse(data.X) == (rows == SPARSE)
    np.testing.assert_array_equal(data.X.toarray() if rows == SPARSE else data.X, X)
    np.testing.assert_array_equal(data.Y, Y)
    assert data.Y.dtype.kind == "i"
    assert data.feature_names == ("size", 'it\'s, "odd"', "two words")
    assert data.label_names == ("spam", "ham")
    assert data.relation == "mail: -C -2"


def test_mixed_rows_and_windows_lines(tmp_path):
    text = "\ufeff" + HEADER.format(count=-2) + "{}\n1,1,1,1,1\n"
    data = load_arff(write(tmp_path / "a.arff", text.replace("\n", "\r\n")))
    np.testing.assert_array_equal(data.X.toarray(), [[0, 0, 0], [1, 1, 1]])
    np.testing.assert_array_equal(data.Y, [[0, 0], [1, 1]])


def test_labels_by_count(tmp_path):
    head = "@relation 'x: -C 2 -split-number 5'\n@attribute a {0,1}\n@attribute b {0,1}\n@attribute c {0,1}\n@data\n"
    path = write(tmp_path / "a.arff", head + "1,0,0\n1,1,0\n")
    assert load_arff(path).label_names == ("a", "b")
    assert load_arff(path, -1).label_names == ("c",)
    assert load_arff(path, np.int64(1)).label_names == ("a",)
    assert load_arff(path, 3).X.shape == (2, 0)


def test_labels_by_name(tmp_path):
    path = write(tmp_path / "a.arff", HEADER.format(count=1) + DENSE)
    for labels in (write_xml(tmp_path / "a.xml", ["ham", "spam"]), ["ham", "spam"]):
        data = load_arff(path, labels)
        np.testing.assert_array_equal(data.Y, Y)
        assert data.label_names == ("spam", "ham")


def test_labels_of_a_hierarchy(tmp_path):
    path = write(tmp_path / "a.arff", HEADER.format(count=1) + DENSE)
    nested = write(tmp_path / "a.xml", '<labels><label name="ham"><label name="spam"/></label></labels>')
    assert load_arff(path, nested).label_names == ("spam", "ham")


def test_lists_of_values(tmp_path):
    """What a sparse row leaves out is the first value; of two words the second is 1."""
    head = "@relation r\n@attribute sign {-1,1}\n@attribute found {NO,YES}\n@attribute y {0,1}\n@data\n"
    data = load_arff(write(tmp_path / "a.arff", head + "{2 1}\n{0 1,1 YES}\n{0 -1,1 NO}\n"), -1)
    np.testing.assert_array_equal(data.X.toarray(), [[-1, 0], [1, 1], [-1, 0]])


@pytest.mark.parametrize(
    ("row", "line", "problem"),
    [
        ("1,0,0,1", 11, "4 values, but there are 5"),
        ("1,0,x,1,0", 11, "'two words' is 'x', which is not a number"),
        ("1,2,0,1,0", 11, "'2', which is not one of"),
        ("1,0,0,?,0", 11, "label 'spam' is missing"),
        ("{5 1}", 11, "'5' is not in the range 0 to 4"),
        ("{-1 1}", 11, "'-1'"),
        ("{0 1, 0 2}", 11, "0 is given twice"),
        ("{0 1, 2}", 11, "pairs"),
        ("{0 1, 2 3", 11, "does not end"),
        ("{", 11, "does not end"),
        ("1,'0,0,1,0", 11, "not closed"),
    ],
)
def test_wrong_rows_are_named(tmp_path, row, line, problem):
    path = write(tmp_path / "bad.arff", HEADER.format(count=-2) + "0,0,0,0,0\n" + row + "\n")
    with pytest.raises(ValueError, match=rf"bad\.arff.*line {line}: .*{problem}"):
        load_arff(path)


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("@attribute a string\n@data\n", r"line 1: .*'string'.*recode"),
        ("@attribute a {0,1\n@data\n", "line 1: .*type"),
        ("@attribute a\n@data\n", "line 1: .*name and a type"),
        ("@attribute a real\n@attribute a real\n@data\n", "line 2: a second"),
        ("@data\n", "line 1: @data comes before"),
        ("hello\n", "line 1: found 'hello'; expected"),
        ("@attribute a real\n", "no @data line"),
        ("", "no @data line"),
    ],
)
def test_wrong_headers_are_named(tmp_path, header, problem):
    with pytest.raises(ValueError, match=rf"bad\.arff.*{problem}"):
        load_arff(write(tmp_path / "bad.arff", header), 1)


@pytest.mark.parametrize("labels", [9, -6, 0, True, [], [1, 2], 1.5, ["spam", "eggs"]])
def test_wrong_labels_are_named(tmp_path, labels):
    path = write(tmp_path / "a.arff", HEADER.format(count=-2) + DENSE)
    with pytest.raises(ValueError, match="labels"):
        load_arff(path, labels)


def test_files_that_do_not_tell_the_labels(tmp_path):
    path = write(tmp_path / "a.arff", "@relation r\n@attribute a {0,1}\n@data\n1\n")
    with pytest.raises(ValueError, match=r"a\.arff.*-C.*Give labels="):
        load_arff(path)
    for text in ("<labels></labels>", "<labels><label/></labels>", "<labels>", ""):
        with pytest.raises(ValueError, match=r"a\.xml"):
            load_arff(path, write(tmp_path / "a.xml", text))


def test_absent_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.arff"):
        load_arff(tmp_path / "none.arff")
    path = write(tmp_path / "a.arff", HEADER.format(count=-2) + DENSE)
    with pytest.raises(FileNotFoundError, match=r"none\.xml"):
        load_arff(path, str(tmp_path / "none.xml"))


def test_numbers_that_are_no_labels(tmp_path):
    path = write(tmp_path / "a.arff", HEADER.format(count=1) + "0,0,0,0,0\n2.5,0,0,0,0\n")
    with pytest.raises(ValueError, match=r"line 11: label 'size' is 2\.5"):
        load_arff(path)


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
def test_cut_off_arff_is_named(tmp_path, ending):
    path = write(tmp_path / "a.arff", HEADER.format(count=-2) + DENSE, ending)
    content = (tmp_path / f"a.arff{ending}").read_bytes()
    (tmp_path / f"a.arff{ending}").write_bytes(content[:-20])
    with pytest.raises(ValueError, match=rf"a\.arff{ending}"):
        load_arff(path)


# ---------------------------------------------------------------------- enron

WORDS = tuple(f"word {j}" for j in range(1001))


def messages(n, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.uniform(size=(n, 1001)) < 0.08).astype(int), (rng.uniform(size=(n, 53)) < 0.1).astype(int)


def write_enron(path, X, Y, labels=LABELS, words=WORDS):
    columns = [list(LABELS).index(name) for name in labels]
    lines = ["@relation enron", *(f"@attribute '{name}' {{0,1}}" for name in (*words, *labels)), "@data"]
    for row in np.column_stack([X, Y[:, columns]]):
        lines.append("{" + ",".join(f"{j} 1" for j in np.flatnonzero(row)) + "}")
    write(path, "\n".join(lines) + "\n")


def check_enron(data, X, Y, n_train):
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.Y, Y)
    assert data.Y is data.y
    np.testing.assert_array_equal(data.is_train, np.arange(len(X)) < n_train)
    assert data.X.dtype == np.float64
    assert data.label_names == LABELS
    assert data.feature_names == WORDS
    assert data.target_names is None


def test_enron_archive(tmp_path):
    X, Y = messages(7)
    mask = np.array([1, 0, 1, 1, 0, 1, 0])
    arrays = {"X": X, "Y": Y[:, ::-1], "is_train": mask, "feature_names": WORDS, "label_names": LABELS[::-1]}
    np.savez(tmp_path / "enron.npz", **arrays)
    assert available(tmp_path) == ["enron"]
    order = np.argsort(1 - mask, kind="stable")
    check_enron(load("enron", tmp_path), X[order], Y[order], 4)


def test_enron_arff_in_two_parts(tmp_path):
    (X, Y), (X_test, Y_test) = messages(5), messages(3, seed=1)
    write_enron(tmp_path / "enron-train.arff", X, Y)
    write_enron(tmp_path / "enron-test.arff", X_test, Y_test, labels=LABELS[::-1])
    assert available(tmp_path) == []
    write_xml(tmp_path / "enron.xml", LABELS)
    check_enron(load("enron", tmp_path), np.vstack([X, X_test]), np.vstack([Y, Y_test]), 5)


def test_enron_arff_in_one_part(tmp_path):
    X, Y = messages(5)
    write_enron(tmp_path / "enron.arff", X, Y)
    write_xml(tmp_path / "enron.xml", LABELS[::-1])
    check_enron(load("enron", tmp_path), X, Y, 5)


def test_enron_of_other_labels_or_words(tmp_path):
    X, Y = messages(5)
    write_enron(tmp_path / "enron-train.arff", X, Y)
    write_enron(tmp_path / "enron-test.arff", X, Y, words=WORDS[::-1])
    write_xml(tmp_path / "enron.xml", LABELS)
    with pytest.raises(ValueError, match=r"enron-train\.arff \+ .*differ in their feature names"):
        load("enron", tmp_path)
    write_xml(tmp_path / "enron.xml", LABELS[:5])
    with pytest.raises(ValueError, match=r"enron-train\.arff \+ .*enron\.xml.*5 labels, A\.A1"):
        load("enron", tmp_path)
    write_xml(tmp_path / "enron.xml", [*LABELS, "E.E1"])
    with pytest.raises(ValueError, match=r"enron\.xml names 'E\.E1', .*not an attribute of .*enron-train\.arff"):
        load("enron", tmp_path)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"Y": np.full((4, 53), 2)}, "0 or 1"),
        ({"Y": np.zeros((4, 52))}, "not the 53"),
        ({"Y": np.zeros((3, 53))}, "4 rows but 3"),
        ({"label_names": ["a"] * 53}, "not the 53"),
        ({"feature_names": ["a"]}, "1 feature names instead of 1001"),
        ({"X": np.zeros((4, 9))}, "9 features instead of 1001"),
        ({"is_train": [1, 1, 1, 1]}, "a part has no rows"),
    ],
)
def test_wrong_enron_archives_are_named(tmp_path, change, problem):
    X, Y = messages(4)
    arrays = {"X": X, "Y": Y, "is_train": [1, 1, 1, 0], "feature_names": WORDS, "label_names": LABELS}
    np.savez(tmp_path / "enron.npz", **{**arrays, **change})
    with pytest.raises(ValueError, match=rf"enron\.npz.*{problem}"):
        load("enron", tmp_path)


def test_sets_of_classes_have_no_labels(tmp_path):
    np.savez(tmp_path / "letter.npz", X=np.zeros((2, 16)), y=[0, 1], is_train=[1, 0])
    data = load("letter", tmp_path)
    assert data.label_names is None
    with pytest.raises(AttributeError, match="use y"):
        _ = data.Y


def test_real_enron():
    if "enron" not in available(DATA):
        pytest.skip("no files of enron: set LEASTWISE_DATA to the folder that has them")
    data = load("enron", DATA)
    assert data.X.shape == (1702, 1001)
    assert data.Y.shape == (1702, 53)
    assert data.is_train.sum() == 1123
    assert np.isin(data.X, (0, 1)).all()
    # Published by Mulan: labels of a message, on average, and sets of labels that occur.
    assert round(data.Y.sum() / len(data.Y), 3) == 3.378
    assert len(np.unique(data.Y, axis=0)) == 753
    never = np.flatnonzero(data.Y[data.is_train].sum(axis=0) == 0)
    assert [data.label_names[t] for t in never] == ["D.D18"]
    assert len(data.feature_names) == 1001


# -------------------------------------------------------------- rotated labels


def test_the_papers_boundaries():
    data = make_rotated_labels(7, 50, n_features=5, random_state=0)
    for t in range(1, 8):
        side = np.cos(2 * np.pi * t / 7) * data.X[:, 0] + np.sin(2 * np.pi * t / 7) * data.X[:, 1]
        np.testing.assert_array_equal(data.Y[:, t - 1], side > 0)
    np.testing.assert_array_equal(data.posterior(data.X), data.Y)
    np.testing.assert_allclose(np.linalg.norm(data.coef, axis=1), 1)
    assert data.bayes_error == 0
    paper = make_rotated_labels(random_state=0)
    assert paper.X.shape == (2000, 300)
    assert paper.Y.shape == (2000, 10)


@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 9])
def test_correlation_is_that_of_many_rows(n_labels, noise):
    data = make_rotated_labels(n_labels, 100_000, n_features=2, noise=noise, random_state=0)
    measured = np.corrcoef(data.Y.T).reshape(n_labels, n_labels)
    np.testing.assert_allclose(data.correlation, measured, atol=0.015)


def test_labels_are_positively_correlated_from_five_on():
    off = [make_rotated_labels(T, 1, n_features=2).correlation - np.eye(T) for T in (2, 3, 4, 5)]
    assert [np.max(C) > 1e-9 for C in off] == [False, False, False, True]


def test_noise_is_what_the_posterior_says():
    data = make_rotated_labels(6, 100_000, n_features=2, noise=0.7, random_state=1)
    P = data.posterior(data.X)
    for low in (0.1, 0.4, 0.8):
        near = (low <= P) & (low + 0.1 > P)
        np.testing.assert_allclose(data.Y[near].mean(), P[near].mean(), atol=0.01)
    np.testing.assert_allclose(np.mean((P > 0.5) != data.Y), data.bayes_error, atol=0.005)


def test_rotated_draws_are_reproducible():
    first, again, other, noisy = (
        make_rotated_labels(3, 20, random_state=seed, noise=noise)
        for seed, noise in ((3, 0), (3, 0), (4, 0), (3, 1.0))
    )
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.Y, again.Y)
    np.testing.assert_array_equal(first.X, noisy.X)
    assert not np.array_equal(first.X, other.X)


@pytest.mark.parametrize(
    "wrong",
    [{"n_labels": 0}, {"n_rows": 2.5}, {"n_features": 1}, {"noise": -1}, {"noise": np.inf}, {"n_labels": True}],
)
def test_wrong_numbers_of_rotated_labels_are_named(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"{name}={value!r}"):
        make_rotated_labels(**wrong)


def test_rows_of_another_width_have_no_posterior():
    data = make_rotated_labels(3, 4, n_features=5, random_state=0)
    with pytest.raises(ValueError, match=r"3 columns.*5"):
        data.posterior(np.zeros((2, 3)))


def test_text_values_become_one_column_each(tmp_path):
    """A sparse row without the attribute has its first value, as in Weka; "?" is missing in all columns."""
    header = (
        "@relation 'flags: -C 1'\n@attribute l {0,1}\n@attribute hue {red,'dark blue',green}\n@attribute size real\n"
    )
    path = write(tmp_path / "flags.arff", header + "@data\n1,green,2\n0,'dark blue',0\n{0 1,2 3}\n{1 green}\n0,?,1\n")
    data = load_arff(path)
    assert data.feature_names == ("hue=red", "hue=dark blue", "hue=green", "size")
    nan = np.nan
    expected = [[0, 0, 1, 2], [0, 1, 0, 0], [1, 0, 0, 3], [0, 0, 1, 0], [nan, nan, nan, 1]]
    np.testing.assert_array_equal(data.X.toarray(), expected)
    np.testing.assert_array_equal(data.Y.ravel(), [1, 0, 1, 0, 0])
