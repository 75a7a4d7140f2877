"""The readers of School and Dermatology, on files in every form; the real files where they are."""

import gzip

import numpy as np
import pytest
from conftest import DATA
from scipy.io import savemat

from leastwise.datasets import available, load

SIZES = (4, 6, 3)
SPLIT_FILES = [f"school_{i}_indexes.mat" for i in range(1, 11)]


def cells(arrays):
    """A MATLAB row of cells."""
    row = np.empty((1, len(arrays)), dtype=object)
    for t, array in enumerate(arrays):
        row[0, t] = array
    return row


# --------------------------------------------------------------------- school


def pupils():
    """Inputs with the constant, scores, schools, and ten splits."""
    rng = np.random.default_rng(0)
    n = sum(SIZES)
    X = np.column_stack([rng.integers(0, 90, (n, 27)), np.ones(n, dtype=int)])
    splits = np.array([rng.permutation(n) < 9 for _ in range(10)])
    return X, rng.integers(1, 71, n), np.repeat(np.arange(len(SIZES)), SIZES), splits


def check_school(data, with_splits=True):
    X, y, task, splits = pupils()
    np.testing.assert_array_equal(data.X, X[:, :27])
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.task, task)
    assert data.X.dtype == data.y.dtype == np.float64
    assert data.target_names is None
    assert data.is_train.all()
    assert len(data.feature_names) == 27
    if with_splits:
        np.testing.assert_array_equal(data.splits, splits)
        assert data.splits.dtype == bool
    else:
        assert data.splits is None


def write_archive(folder, **changes):
    X, y, task, splits = pupils()
    arrays = {"X": X, "y": y, "task": task.astype(np.int16), "split_is_train": splits.astype(np.uint8)}
    np.savez(folder / "school.npz", **{**arrays, **changes})


def write_school_b(folder, **changes):
    X, y, *_ = pupils()
    starts = 1 + np.append(0, np.cumsum(SIZES)[:-1])
    arrays = {"x": X.T.astype(np.uint8), "y": y[:, None].astype(float), "task_indexes": starts[:, None]}
    savemat(folder / "school_b.mat", {**arrays, **changes})


def write_splits(folder, files=SPLIT_FILES):
    rng = np.random.default_rng(1)
    for file, split in zip(files, pupils()[3], strict=False):
        train, test = (rng.permutation(1 + np.flatnonzero(part)) for part in (split, ~split))
        savemat(folder / file, {"tr": train[None].astype(np.uint16), "tst": test[None].astype(np.uint16)})


def write_cells(folder, upright=False, **changes):
    X, y, task, _ = pupils()
    schools = range(len(SIZES))
    features = cells([X[task == t].astype(float) for t in schools])
    scores = cells([y[task == t][:, None].astype(float) for t in schools])
    arrays = {"X": features.T, "Y": scores.T} if upright else {"X": features, "Y": scores}
    savemat(folder / "school.mat", {**arrays, **changes})


def test_school_archive(tmp_path):
    write_archive(tmp_path)
    assert available(tmp_path) == ["school"]
    check_school(load("school", tmp_path))


def test_school_with_a_file_for_every_split(tmp_path):
    write_school_b(tmp_path)
    write_splits(tmp_path, SPLIT_FILES[:-1])
    assert available(tmp_path) == []
    write_splits(tmp_path)
    assert available(tmp_path) == ["school"]
    check_school(load("school", tmp_path))


@pytest.mark.parametrize("upright", [False, True])
def test_school_cells_have_no_splits(tmp_path, upright):
    write_cells(tmp_path, upright)
    assert available(tmp_path) == ["school"]
    check_school(load("school", tmp_path), with_splits=False)


def test_the_form_with_splits_goes_before_the_one_without(tmp_path):
    write_cells(tmp_path)
    write_school_b(tmp_path)
    write_splits(tmp_path)
    check_school(load("school", tmp_path))


def test_missing_school_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        load("school", tmp_path)
    for part in ("school.npz; or school_b.mat + school_1_indexes.mat", *SPLIT_FILES, "or school.mat"):
        assert part in str(error.value)


# ------------------------------------------------------------- broken schools


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": pupils()[0][:, :27]}, "instead of 28 columns"),
        ({"X": pupils()[0][:, ::-1]}, "column 28 of the inputs is not constant 1"),
        ({"X": pupils()[0][:5]}, "5 rows but 13 labels"),
        ({"y": np.full(13, np.nan)}, "one finite number per row"),
        ({"y": np.ones((13, 2))}, "one finite number per row"),
        ({"task": np.zeros(12)}, "13 rows but tasks of shape"),
        ({"split_is_train": np.ones((10, 12))}, r"13 rows but splits of shape \(10, 12\)"),
        ({"split_is_train": np.ones(13)}, "13 rows but splits of shape"),
        ({"split_is_train": np.full((10, 13), 2)}, "0 or 1 in every row"),
    ],
)
def test_odd_archives_are_named(tmp_path, changes, message):
    write_archive(tmp_path, **changes)
    with pytest.raises(ValueError, match=rf"school\.npz.*{message}"):
        load("school", tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": pupils()[0]}, "instead of 28 columns"),
        ({"y": pupils()[1][:-1, None]}, "13 rows but 12 labels"),
        ({"task_indexes": [[2, 5, 11]]}, "increase from 1 to at most 13"),
        ({"task_indexes": [[1, 11, 5]]}, "increase from 1"),
        ({"task_indexes": [[1, 5, 14]]}, "increase from 1"),
        ({"task_indexes": np.zeros((0, 0))}, "increase from 1"),
    ],
)
def test_odd_columns_of_pupils_are_named(tmp_path, changes, message):
    write_splits(tmp_path)
    write_school_b(tmp_path, **changes)
    with pytest.raises(ValueError, match=rf"school_b\.mat.*{message}"):
        load("school", tmp_path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"tr": [[1, 2, 3]]}, "tst"),
        ({"tr": [[1, 2, 3]], "tst": [[4, 5]]}, "each of the 13 rows once"),
        ({"tr": [np.arange(0, 9)], "tst": [np.arange(9, 13)]}, "each of the 13 rows once"),
        ({"tr": [np.arange(1, 10)], "tst": [np.arange(9, 13)]}, "each of the 13 rows once"),
    ],
)
def test_odd_splits_are_named(tmp_path, arrays, message):
    write_school_b(tmp_path)
    write_splits(tmp_path)
    savemat(tmp_path / SPLIT_FILES[6], arrays)
    with pytest.raises(ValueError, match=rf"school_7_indexes\.mat.*{message}"):
        load("school", tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"Y": cells([np.ones((n, 1)) for n in SIZES[:2]])},
        {"Y": cells([np.ones((n, 1)) for n in SIZES[::-1]])},
        {"X": cells([np.ones((n, 27)) for n in SIZES])},
        {"X": np.ones((13, 28))},
    ],
)
def test_odd_cells_are_named(tmp_path, changes):
    write_cells(tmp_path, **changes)
    with pytest.raises(ValueError, match=r"school\.mat"):
        load("school", tmp_path)


@pytest.mark.parametrize("file", ["school.npz", "school_b.mat", "school_4_indexes.mat", "school.mat"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_cut_off_schools_are_named(tmp_path, file, share):
    if file == "school.npz":
        write_archive(tmp_path)
    elif file == "school.mat":
        write_cells(tmp_path)
    else:
        write_school_b(tmp_path)
        write_splits(tmp_path)
    content = (tmp_path / file).read_bytes()
    (tmp_path / file).write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=file):
        load("school", tmp_path)


# ---------------------------------------------------------------- dermatology


def patients():
    """34 attributes, of which two ages are missing, and the class."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (9, 34)).astype(float)
    X[:, -1] = rng.integers(0, 76, 9)
    X[[2, 5], -1] = np.nan
    return X, np.array([0, 1, 2, 3, 4, 5, 0, 1, 0])


def check_dermatology(data):
    X, y = patients()
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    assert data.X.dtype == np.float64
    assert data.is_train.all()
    assert data.task is None
    assert data.splits is None
    assert data.target_names[0] == "psoriasis"
    assert len(data.feature_names) == 34
    assert data.feature_names[-1] == "age"


def text(X, y, space=""):
    rows = [[*("?" if np.isnan(v) else f"{v:.0f}" for v in row), str(k + 1)] for row, k in zip(X, y, strict=True)]
    return "".join(f",{space}".join(row) + "\n" for row in rows)


def test_dermatology_archive(tmp_path):
    X, y = patients()
    np.savez(tmp_path / "dermatology.npz", X=X[:, :33].astype(np.uint8), age=X[:, 33], y=y + 1)
    assert available(tmp_path) == ["dermatology"]
    check_dermatology(load("dermatology", tmp_path))


@pytest.mark.parametrize("space", ["", " "])
def test_dermatology_text(tmp_path, space):
    (tmp_path / "dermatology.data").write_text(text(*patients(), space))
    assert available(tmp_path) == ["dermatology"]
    check_dermatology(load("dermatology", tmp_path))


def test_compressed_dermatology_text(tmp_path):
    (tmp_path / "dermatology.data.gz").write_bytes(gzip.compress(text(*patients()).encode()))
    check_dermatology(load("dermatology", tmp_path))


def test_missing_dermatology_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"dermatology\.npz; or dermatology\.data \("):
        load("dermatology", tmp_path)


@pytest.mark.filterwarnings("ignore:loadtxt")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ""),
        (text(*patients())[:-3], "number of columns"),
        (text(*patients()).replace("?", "old"), "old"),
        ("?," + text(*patients())[2:], "not finite"),
        (text(*patients()).replace("?", "inf"), "not finite"),
        ("1,2,3\n", "2 features instead of 34"),
        ("0," * 34 + "7\n", r"label 7\.0 is not one of \[1, 2, 3, 4, 5, 6\]"),
        ("0," * 34 + "?\n", "label nan"),
    ],
)
def test_broken_dermatology_text_is_named(tmp_path, content, message):
    (tmp_path / "dermatology.data").write_text(content)
    with pytest.raises(ValueError, match=rf"dermatology\.data.*{message}"):
        load("dermatology", tmp_path)


def test_odd_dermatology_archives_are_named(tmp_path):
    X, y = patients()
    np.savez(tmp_path / "dermatology.npz", X=X[:, :33], y=y + 1)
    with pytest.raises(ValueError, match=r"dermatology\.npz.*age"):
        load("dermatology", tmp_path)
    np.savez(tmp_path / "dermatology.npz", X=X[:, :33], age=X[:4, 33], y=y + 1)
    with pytest.raises(ValueError, match=r"dermatology\.npz"):
        load("dermatology", tmp_path)


# ------------------------------------------------------------------ real data


def real(name):
    if name not in available(DATA):
        pytest.skip(f"no files of {name}: set LEASTWISE_DATA to the folder that has them")
    return load(name, DATA)


def test_real_school():
    data = real("school")
    assert data.X.shape == (15_362, 27)
    sizes = np.bincount(data.task)
    assert (len(sizes), sizes.min(), sizes.max()) == (139, 22, 251)
    assert (data.y.min(), data.y.max()) == (1, 70)
    if data.splits is not None:
        np.testing.assert_array_equal(data.splits.sum(axis=1), np.full(10, 11_472))


def test_names_of_school_columns_fit_the_values():
    data = real("school")
    column = dict(zip(data.feature_names, data.X.T, strict=True))
    girls_schools, boys_schools = column["school_female"] == 1, column["school_male"] == 1
    assert column["gender_female"][girls_schools].all()
    assert column["gender_male"][boys_schools].mean() > 0.99
    means = [data.y[column[f"vr_band_{band}"] == 1].mean() for band in (1, 2, 3)]
    assert means[0] > means[1] > means[2]


def test_real_dermatology():
    data = real("dermatology")
    assert data.X.shape == (366, 34)
    np.testing.assert_array_equal(np.bincount(data.y), [112, 61, 72, 49, 52, 20])
    np.testing.assert_array_equal(np.isnan(data.X).sum(axis=0), [0] * 33 + [8])


@pytest.mark.parametrize("name", ["school", "dermatology"])
def test_names_are_those_of_the_archive(name):
    path = DATA / f"{name}.npz"
    if not path.is_file():
        pytest.skip(f"no archive {name}.npz: set LEASTWISE_DATA to the folder that has it")
    data = load(name, DATA)
    with np.load(path) as z:
        names = z["feature_names"].tolist()
    assert list(data.feature_names) == (names[:-1] if name == "school" else [*names, "age"])
