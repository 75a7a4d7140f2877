"""The readers of the multi-task sets, on files in every form; the real files where they are."""

import gzip

import numpy as np
import pytest
from conftest import DATA
from scipy.io import savemat

from leastwise.datasets import available, load

PERSONS = [f"1{letter}" for letter in "abcdefghijklmnopqrst"]
WOMEN = ["1g", "1h", "1i", "1t"]


def cells(arrays):
    """A MATLAB row of cells."""
    row = np.empty((1, len(arrays)), dtype=object)
    for t, array in enumerate(arrays):
        row[0, t] = array
    return row


# ------------------------------------------------------------------- landmine


def minefields(sizes=(4, 6, 3)):
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, 9)) for n in sizes], [rng.integers(0, 2, n) for n in sizes]


def check_landmine(data, features, labels):
    np.testing.assert_array_equal(data.X, np.concatenate(features))
    np.testing.assert_array_equal(data.y, np.concatenate(labels))
    np.testing.assert_array_equal(data.task, np.repeat(np.arange(len(labels)), [len(y) for y in labels]))
    assert data.target_names == ("clutter", "mine")
    assert data.is_train.all()
    assert data.female is None


def write_landmine(path, features, labels):
    savemat(path, {"feature": cells(features), "label": cells([y[:, None].astype(float) for y in labels])})


def test_landmine_cells(tmp_path):
    write_landmine(tmp_path / "LandmineData.mat", *minefields())
    assert available(tmp_path) == ["landmine"]
    check_landmine(load("landmine", tmp_path), *minefields())


def test_landmine_archive_goes_first(tmp_path):
    features, labels = minefields()
    write_landmine(tmp_path / "LandmineData.mat", features[::-1], labels[::-1])
    task = np.repeat([0, 1, 2], [4, 6, 3]).astype(np.int16)
    np.savez(tmp_path / "landmine.npz", X=np.concatenate(features), y=np.concatenate(labels), task=task)
    check_landmine(load("landmine", tmp_path), features, labels)


def test_compressed_matlab_file(tmp_path):
    write_landmine(tmp_path / "LandmineData.mat", *minefields())
    content = (tmp_path / "LandmineData.mat").read_bytes()
    (tmp_path / "LandmineData.mat").unlink()
    (tmp_path / "LandmineData.mat.gz").write_bytes(gzip.compress(content))
    check_landmine(load("landmine", tmp_path), *minefields())


# ---------------------------------------------------------------------- umist


def faces():
    """Pictures of every person, 1 of the first, 2 of the second, 3 of the third and so on in turn."""
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 256, (1 + k % 3, 112, 92), dtype=np.uint8) for k in range(20)]
    return pictures, np.repeat(np.arange(20), [len(Z) for Z in pictures])


def check_umist(data, X, who):
    np.testing.assert_array_equal(data.X, X.reshape(len(X), -1))
    np.testing.assert_array_equal(data.y, who)
    np.testing.assert_array_equal(data.female, np.isin(np.array(PERSONS)[who], WOMEN))
    assert data.target_names == tuple(PERSONS)
    assert data.X.dtype == np.float32
    assert data.task is None
    assert data.is_train.all()


def write_cropped(path, pictures, names=PERSONS):
    savemat(path, {"facedat": cells([np.moveaxis(Z, 0, 2) for Z in pictures]), "dirnames": cells(names)})


def test_umist_cells_in_both_sizes(tmp_path):
    pictures, who = faces()
    write_cropped(tmp_path / "umist_cropped.mat", pictures)
    X = np.concatenate(pictures)
    assert available(tmp_path) == ["umist"]
    check_umist(load("umist", tmp_path), X[:, 2::4, 2::4], who)
    check_umist(load("umist", tmp_path, full_size=True), X, who)


def test_umist_cells_are_known_by_name(tmp_path):
    pictures, who = faces()
    write_cropped(tmp_path / "umist_cropped.mat", pictures[::-1], PERSONS[::-1])
    check_umist(load("umist", tmp_path, full_size=True), np.concatenate(pictures[::-1]), who[::-1])


def test_a_single_picture_comes_without_its_last_axis(tmp_path):
    pictures, who = faces()
    flat = [np.moveaxis(Z, 0, 2) if len(Z) > 1 else Z[0] for Z in pictures]
    savemat(tmp_path / "umist_cropped.mat", {"facedat": cells(flat), "dirnames": cells(PERSONS)})
    check_umist(load("umist", tmp_path, full_size=True), np.concatenate(pictures), who)


@pytest.mark.parametrize("names", [("X", "Y"), ("fea", "gnd")])
@pytest.mark.parametrize("turned", [False, True])
def test_umist_table(tmp_path, names, turned):
    pictures, who = faces()
    small = np.concatenate(pictures)[:, 2::4, 2::4]
    table = np.array([Z.ravel(order="F") for Z in small], dtype=float)
    savemat(tmp_path / "umist.mat", {names[0]: table.T if turned else table, names[1]: who[:, None] + 1.0})
    check_umist(load("umist", tmp_path), small, who)


def test_umist_archive(tmp_path):
    pictures, who = faces()
    X, some = np.concatenate(pictures), np.array([0, 5, 6, 30])
    small = X[:, 2::4, 2::4]
    np.savez(tmp_path / "umist.npz", X28=small, subject=who + 1, X112=X[some], X112_index=some)
    check_umist(load("umist", tmp_path), small, who)
    check_umist(load("umist", tmp_path, full_size=True), X[some], who[some])
    write_cropped(tmp_path / "umist_cropped.mat", pictures)
    assert len(load("umist", tmp_path, full_size=True).X) == len(X), "all pictures are better than some"


# --------------------------------------------------------------------- errors


def test_full_size_is_for_pictures(tmp_path):
    with pytest.raises(ValueError, match=r"full_size=True: 'landmine'.*one of \['umist'\]"):
        load("landmine", tmp_path, full_size=True)
    with pytest.raises(FileNotFoundError) as error:
        load("umist", tmp_path, full_size=True)
    assert "umist_cropped.mat; or umist.npz (" in str(error.value)


def test_unequal_cells_are_named(tmp_path):
    features, labels = minefields((4, 6))
    write_landmine(tmp_path / "LandmineData.mat", features, labels[:1])
    with pytest.raises(ValueError, match=r"LandmineData\.mat.*2 cells of features but 1 of labels"):
        load("landmine", tmp_path)
    write_landmine(tmp_path / "LandmineData.mat", features, labels[::-1])
    with pytest.raises(ValueError, match=r"LandmineData\.mat.*task 0 has 4 rows but 6 labels"):
        load("landmine", tmp_path)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ([0, 0, 1], "4 rows but tasks of shape"),
        ([0, 0, 1, -1], "must be numbered"),
        ([0, 0.5, 1, 1], "must be numbered"),
    ],
)
def test_odd_tasks_are_named(tmp_path, task, message):
    np.savez(tmp_path / "landmine.npz", X=np.zeros((4, 9)), y=[0, 1, 0, 1], task=task)
    with pytest.raises(ValueError, match=message):
        load("landmine", tmp_path)


@pytest.mark.parametrize(
    ("name", "file", "arrays"),
    [
        ("landmine", "LandmineData.mat", {"feature": np.zeros((1, 3))}),
        ("landmine", "LandmineData.mat", {"feature": np.zeros((1, 3)), "label": np.zeros((1, 3))}),
        ("landmine", "LandmineData.mat", {"feature": cells([np.zeros((2, 8))]), "label": cells([np.zeros((2, 1))])}),
        ("landmine", "LandmineData.mat", {"feature": cells([np.zeros((2, 9))]), "label": cells([[[2], [0]]])}),
        ("umist", "umist_cropped.mat", {"facedat": cells([np.zeros((112, 92, 2))])}),
        ("umist", "umist_cropped.mat", {"facedat": cells([np.zeros((92, 112, 2))]), "dirnames": cells(["1a"])}),
        ("umist", "umist_cropped.mat", {"facedat": cells([np.zeros((112, 92, 2))]), "dirnames": cells(["2a"])}),
        ("umist", "umist_cropped.mat", {"facedat": cells([np.zeros((112, 92, 2))]), "dirnames": cells(PERSONS)}),
        ("umist", "umist.mat", {"X": np.zeros((3, 600)), "Y": np.ones((3, 1))}),
        ("umist", "umist.mat", {"X": np.zeros((3, 644)), "Y": np.ones((2, 1))}),
        ("umist", "umist.mat", {"X": np.zeros((3, 644))}),
    ],
)
def test_other_contents_are_named(tmp_path, name, file, arrays):
    savemat(tmp_path / file, arrays)
    with pytest.raises(ValueError, match=file):
        load(name, tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_cut_off_matlab_files_are_named(tmp_path, share):
    path = tmp_path / "LandmineData.mat"
    write_landmine(path, *minefields())
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"LandmineData\.mat"):
        load("landmine", tmp_path)


# ------------------------------------------------------------------ real data


def real(name):
    folder = DATA
    if name not in available(folder):
        pytest.skip(f"no files of {name}: set LEASTWISE_DATA to the folder that has them")
    return folder


def test_real_landmine():
    data = load("landmine", real("landmine"))
    assert data.X.shape == (14_820, 9)
    sizes = np.bincount(data.task)
    assert (len(sizes), sizes.min(), sizes.max(), data.y.sum()) == (29, 445, 690, 904)


def test_real_umist():
    data = load("umist", real("umist"))
    counts = [38, 35, 26, 24, 26, 23, 19, 22, 20, 32, 34, 34, 26, 30, 19, 26, 26, 33, 48, 34]
    assert data.X.shape == (575, 644)
    np.testing.assert_array_equal(np.bincount(data.y), counts)
    assert len(set(data.y[data.female])) == 4


def test_real_umist_in_full_size_is_the_same_pictures():
    folder = real("umist")
    small, full = load("umist", folder), load("umist", folder, full_size=True)
    reduced = full.X.reshape(-1, 112, 92)[:, 2::4, 2::4].reshape(-1, 644)
    known = {(row.tobytes(), who) for row, who in zip(small.X, small.y, strict=True)}
    assert all((row.tobytes(), who) in known for row, who in zip(reduced, full.y, strict=True))


def test_women_are_those_of_the_archive():
    path = real("umist") / "umist.npz"
    if not path.is_file():
        pytest.skip("umist is there in a form that does not say who presents as a woman")
    with np.load(path) as z:
        read = z["subject_female_reading"][z["subject"] - 1]
    np.testing.assert_array_equal(load("umist", path.parent).female, read)
