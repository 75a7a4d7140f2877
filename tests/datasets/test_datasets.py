"""The example in the plane against slow densities; the readers on files in every form."""

from __future__ import annotations

import bz2
import gzip
import lzma

import numpy as np
import pytest
from conftest import DATA
from scipy.stats import multivariate_normal

from leastwise.datasets import available, load, make_three_class, three_class_density, three_class_posterior

SHARES = np.array([0.25, 0.25, 0.5])


def _slow_densities(X):
    """Section 3.1 of the paper, written out."""
    first = multivariate_normal([-2, 0], np.eye(2)).pdf(X)
    second = multivariate_normal([2, 0], np.eye(2)).pdf(X)
    low = multivariate_normal([0, -3], np.diag([4, 1])).pdf(X)
    high = multivariate_normal([0, 2], np.diag([1, 4])).pdf(X)
    return np.column_stack([first, second, (low + high) / 2])


@pytest.fixture
def plane():
    return np.random.default_rng(0).uniform(-6, 6, (200, 2))


# --------------------------------------------------------------- three classes


def test_density_is_the_papers(plane):
    np.testing.assert_allclose(three_class_density(plane), _slow_densities(plane), rtol=1e-12)


def test_density_integrates_to_one():
    side = np.linspace(-14, 14, 561)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    mass = three_class_density(grid).sum(axis=0) * (side[1] - side[0]) ** 2
    np.testing.assert_allclose(mass, 1, rtol=1e-8)


def test_posterior_is_bayes_rule(plane):
    joint = _slow_densities(plane) * SHARES
    np.testing.assert_allclose(three_class_posterior(plane), joint / joint.sum(axis=1, keepdims=True), rtol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e5])
def test_posterior_sums_to_one_far_away(plane, scale):
    P = three_class_posterior(scale * plane)
    assert np.isfinite(P).all()
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)


def test_draws_follow_shares_and_posterior():
    X, y, P = make_three_class(40_000, random_state=0, return_posterior=True)
    np.testing.assert_allclose(np.bincount(y) / len(y), SHARES, atol=0.01)
    for corner in [(-2.0, 0.0), (0.0, 0.0), (1.0, 1.0), (0.0, -2.0)]:
        near = np.all(np.abs(X - corner) < 0.5, axis=1)
        frequency = np.bincount(y[near], minlength=3) / near.sum()
        np.testing.assert_allclose(frequency, P[near].mean(axis=0), atol=4 * np.sqrt(0.25 / near.sum()))


def test_draws_are_reproducible():
    first, again, other = (make_three_class(50, random_state=seed) for seed in (3, 3, 4))
    assert first[0].shape == (50, 2)
    assert first[1].shape == (50,)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])
    assert make_three_class()[0].shape == (200, 2)


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="n_samples=0"):
        make_three_class(0)
    with pytest.raises(ValueError, match="3 columns"):
        three_class_posterior(np.zeros((2, 3)))


# ------------------------------------------------------------- files of our own

#: Number of features, labels in the LIBSVM form, stem of that form's files.
LIBSVM = {
    "mnist": (784, range(10), "mnist"),
    "usps": (256, range(1, 11), "usps"),
    "satimage": (36, range(1, 7), "satimage.scale"),
    "letter": (16, range(1, 27), "letter.scale"),
}
OPEN = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def _rows(name, n, seed=0, high=16):
    d, labels, _ = LIBSVM[name]
    rng = np.random.default_rng(seed)
    return rng.integers(0, high, (n, d)), rng.integers(0, len(labels), n)


def _write_libsvm(path, X, y, labels, ending=""):
    lines = []
    for row, k in zip(X, y, strict=True):
        filled = " ".join(f"{j + 1}:{v}" for j, v in enumerate(row) if v)
        lines.append(f"{labels[k]} {filled}\n")
    with OPEN[ending](f"{path}{ending}", "wt") as stream:
        stream.writelines(lines)


def _write_idx(path, values, ending=""):
    values = np.asarray(values, dtype=np.uint8)
    head = b"\0\0\x08" + bytes([values.ndim]) + np.array(values.shape, dtype=">u4").tobytes()
    with OPEN[ending](f"{path}{ending}", "wb") as stream:
        stream.write(head + values.tobytes())


def _check(data, X_train, y_train, X_test, y_test):
    np.testing.assert_array_equal(data.X, np.concatenate([X_train, X_test]))
    np.testing.assert_array_equal(data.y, np.concatenate([y_train, y_test]))
    np.testing.assert_array_equal(data.is_train, np.arange(len(data.y)) < len(y_train))
    assert data.X.dtype == (np.float32 if data.name in ("mnist", "usps") else np.float64)
    assert data.is_train.dtype == bool
    assert data.target_names is not None


@pytest.mark.parametrize("ending", list(OPEN))
@pytest.mark.parametrize("name", list(LIBSVM))
def test_libsvm_text(tmp_path, name, ending):
    train, test = _rows(name, 7), _rows(name, 4, seed=1)
    train[0][:, -4:] = 0  # trailing zeros are absent from the text and must come back
    _, labels, stem = LIBSVM[name]
    _write_libsvm(tmp_path / stem, *train, labels, ending)
    assert available(tmp_path) == []
    _write_libsvm(tmp_path / f"{stem}.t", *test, labels, ending)
    assert available(tmp_path) == [name]
    _check(load(name, tmp_path), *train, *test)


@pytest.mark.parametrize("name", ["satimage", "letter"])
def test_libsvm_text_in_three_parts(tmp_path, name):
    train, test, held = _rows(name, 5), _rows(name, 4, seed=1), _rows(name, 3, seed=2)
    _, labels, stem = LIBSVM[name]
    for ending, part in ((".tr", train), (".t", test), (".val", held)):
        _write_libsvm(tmp_path / f"{stem}{ending}", *part, labels)
    both = [np.concatenate(pair) for pair in zip(train, held, strict=True)]
    _check(load(name, tmp_path), *both, *test)


def test_scaled_mnist(tmp_path):
    train, test = _rows("mnist", 3), _rows("mnist", 2, seed=1)
    for stem, (X, y) in (("mnist.scale", train), ("mnist.scale.t", test)):
        _write_libsvm(tmp_path / stem, X, y, range(10))
    _check(load("mnist", tmp_path), *train, *test)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_idx(tmp_path, ending):
    train, test = _rows("mnist", 6, high=256), _rows("mnist", 5, seed=1, high=256)
    for part, (X, y) in (("train", train), ("t10k", test)):
        _write_idx(tmp_path / f"{part}-images-idx3-ubyte", X.reshape(-1, 28, 28), ending)
        _write_idx(tmp_path / f"{part}-labels-idx1-ubyte", y, ending)
    _check(load("mnist", tmp_path), *train, *test)


def test_letter_text(tmp_path):
    X, y = _rows("letter", 16_005)
    lines = (f"{chr(65 + k)},{','.join(map(str, row))}\n" for row, k in zip(X.tolist(), y, strict=True))
    (tmp_path / "letter-recognition.data").write_text("".join(lines))
    _check(load("letter", tmp_path), X[:16_000], y[:16_000], X[16_000:], y[16_000:])


def test_statlog_text(tmp_path):
    codes = np.array([1, 2, 3, 4, 5, 7])
    train, test = _rows("satimage", 9), _rows("satimage", 4, seed=1)
    for file, (X, y) in (("sat.trn", train), ("sat.tst", test)):
        np.savetxt(tmp_path / file, np.column_stack([X, codes[y]]), fmt="%d")
    _check(load("satimage", tmp_path), *train, *test)


@pytest.mark.parametrize("name", ["mnist", "usps"])
def test_archive_in_two_parts(tmp_path, name):
    train, test = _rows(name, 6), _rows(name, 3, seed=1)
    pixels = (-1, 28, 28) if name == "mnist" else (-1, 256)
    arrays = {"X_train": train[0].reshape(pixels), "y_train": train[1], "X_test": test[0], "y_test": test[1]}
    np.savez(tmp_path / f"{name}.npz", **arrays)
    _check(load(name, tmp_path), *train, *test)


@pytest.mark.parametrize("name", ["satimage", "letter"])
def test_archive_with_a_mask(tmp_path, name):
    X, y = _rows(name, 8)
    mask = np.array([1, 0, 1, 1, 0, 1, 0, 1])
    codes = np.array([1, 2, 3, 4, 5, 7]) if name == "satimage" else np.arange(26)
    np.savez(tmp_path / f"{name}.npz", X=X, y=codes[y], is_train=mask)
    _check(load(name, tmp_path), X[mask == 1], y[mask == 1], X[mask == 0], y[mask == 0])


def test_folder_from_the_environment(tmp_path, monkeypatch):
    X, y = _rows("letter", 4)
    np.savez(tmp_path / "letter.npz", X=X, y=y, is_train=[1, 1, 0, 0])
    monkeypatch.setenv("LEASTWISE_DATA", str(tmp_path))
    assert available() == ["letter"]
    assert load("letter").X.shape == (4, 16)


# --------------------------------------------------------------------- errors


def test_missing_files_say_what_would_do(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError) as error:
        load("satimage", tmp_path)
    for part in (str(tmp_path), "satimage.npz", "sat.trn + sat.tst", "satimage.scale.t", "LEASTWISE_DATA"):
        assert part in str(error.value)
    with pytest.raises(FileNotFoundError, match="no folder"):
        load("usps", tmp_path / "nowhere")
    monkeypatch.delenv("LEASTWISE_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="No folder is given for 'usps'"):
        load("usps")
    assert available() == available(tmp_path / "nowhere") == []


def test_unknown_name():
    with pytest.raises(ValueError, match=r"no data set 'cifar'.*'mnist'"):
        load("cifar", ".")


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".xz"])
def test_cut_off_files_are_named(tmp_path, ending):
    for part in ("train", "t10k"):
        X, y = _rows("mnist", 5, high=256)
        _write_idx(tmp_path / f"{part}-images-idx3-ubyte", X.reshape(-1, 28, 28), ending)
        _write_idx(tmp_path / f"{part}-labels-idx1-ubyte", y, ending)
    path = tmp_path / f"t10k-images-idx3-ubyte{ending}"
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ValueError, match=f"t10k-images-idx3-ubyte{ending}"):
        load("mnist", tmp_path)


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        ("usps", "usps.npz", b"PK\x03\x04 this was cut"),
        ("usps", "usps", b"1 1:0.5 2:oh\n"),
        ("usps", "usps", b"1 1:0.5 300:1\n"),
        ("usps", "usps", b"11 1:0.5\n"),
        ("usps", "usps", b""),
        ("satimage", "sat.trn", b"1 2 3\n1 2\n"),
        ("satimage", "sat.trn", b"1 2 3\n"),
        ("letter", "letter-recognition.data", b"A,1,2,x\n"),
        ("letter", "letter-recognition.data", b"A,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\n"),
    ],
)
def test_broken_files_are_named(tmp_path, name, file, content):
    (tmp_path / "usps.t").write_bytes(b"1 1:0.5\n")
    (tmp_path / "sat.tst").write_bytes((b"1 " * 37).strip() + b"\n")
    (tmp_path / file).write_bytes(content)
    with pytest.raises(ValueError, match=file):
        load(name, tmp_path)


@pytest.mark.filterwarnings("error")
def test_archive_without_an_array_or_with_odd_lengths(tmp_path):
    X, y = _rows("usps", 4)
    np.savez(tmp_path / "usps.npz", X_train=X, y_train=y)
    with pytest.raises(ValueError, match=r"usps\.npz.*X_test"):
        load("usps", tmp_path)
    np.savez(tmp_path / "usps.npz", X_train=X, y_train=y[:3], X_test=X, y_test=y)
    with pytest.raises(ValueError, match=r"usps\.npz.*4 rows but 3 labels"):
        load("usps", tmp_path)


# ------------------------------------------------------------------- real data

#: Rows, features, training rows; class counts of the training and test parts where they are published.
PUBLISHED = {
    "mnist": (70_000, 784, 60_000, None, None),
    "usps": (
        9298,
        256,
        7291,
        [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644],
        [359, 264, 198, 166, 200, 160, 170, 147, 166, 177],
    ),
    "satimage": (6435, 36, 4435, [1072, 479, 961, 415, 470, 1038], [461, 224, 397, 211, 237, 470]),
    "letter": (20_000, 16, 16_000, None, None),
}


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_real_data(name):
    folder = DATA
    if name not in available(folder):
        pytest.skip(f"no files of {name}: set LEASTWISE_DATA to the folder that has them")
    data = load(name, folder)
    n, d, n_train, train_counts, test_counts = PUBLISHED[name]
    assert data.X.shape == (n, d)
    assert data.is_train.sum() == n_train
    assert len(np.unique(data.y)) == len(data.target_names)
    for part, counts in ((data.is_train, train_counts), (~data.is_train, test_counts)):
        if counts:
            np.testing.assert_array_equal(np.bincount(data.y[part]), counts)
