"""Bad input is refused with words that say what was given and what to do, and leaves nothing half-fitted."""

import re

import numpy as np
import pytest
from conftest import blobs
from scipy import sparse

from leastwise import LSPC

X, Y = blobs(40)


def with_value(value):
    bad = X.copy()
    bad[3, 1] = value
    return bad


PARAMETERS = {
    "alpha zero": ({"alpha": 0}, r"alpha contains 0: every value must be a finite number above 0"),
    "alpha negative": ({"alpha": -1.0}, r"alpha contains -1\.0"),
    "alpha in a grid": ({"alpha": [0.1, -0.1]}, r"alpha contains -0\.1"),
    "alpha empty": ({"alpha": []}, "alpha is an empty sequence"),
    "alpha text": ({"alpha": "best"}, "alpha='best' is not known"),
    "alpha true": ({"alpha": True}, "alpha contains True"),
    "alpha none": ({"alpha": None}, "alpha contains None"),
    "sigma zero": ({"sigma": 0.0}, r"sigma contains 0\.0"),
    "sigma inf": ({"sigma": np.inf}, "sigma contains inf"),
    "sigma nan": ({"sigma": [1.0, np.nan]}, "sigma contains nan"),
    "kernel": ({"kernel": "gauss"}, "Unknown kernel 'gauss'"),
    "norm": ({"norm": "l2"}, r"norm='l2' is not known: use one of \['function', 'coefficients'\]"),
    "basis": ({"basis": "classwise"}, "basis='classwise' is not known"),
    "bias": ({"bias": True}, "bias=True is not known"),
    "calibration": ({"calibration": "platt"}, "calibration='platt' is not known"),
    "solver": ({"solver": "svd"}, "solver='svd' is not known"),
    "scoring": ({"scoring": "mse"}, "scoring='mse' is not known"),
    "cv": ({"cv": "ten"}, "cv='ten' is not known"),
    "cv none": ({"cv": None}, "cv=None holds nothing out"),
    "cv none calibration": ({"cv": None, "sigma": 1.0, "alpha": 1.0}, "cv=None holds nothing out"),
    "n_centers": ({"n_centers": 0}, "n_centers=0 must be None or a whole number"),
    "n_centers half": ({"n_centers": 2.5}, "n_centers=2.5 must be None or a whole number"),
    "centers": ({"centers": "grid"}, "centers='grid' is not known"),
    "centers shape": ({"centers": np.zeros((3, 5))}, r"shape \(3, 5\).*2 features"),
    "centers nan": ({"centers": np.full((3, 2), np.nan)}, "centers contains NaN"),
    "centers class": ({"centers": np.zeros((3, 2)), "basis": "class"}, "shared by all classes"),
    "precomputed kmeans": ({"kernel": "precomputed", "centers": "kmeans"}, "has no rows to place"),
    "precomputed shape": ({"kernel": "precomputed"}, r"needs a square matrix.*\(40, 2\)"),
    "sgd class": ({"solver": "sgd", "basis": "class"}, "solver='sgd' needs"),
    "search rows": ({"search_rows": -5}, "search_rows=-5 must be"),
    "degree": ({"kernel": "poly", "degree": 1.5}, "degree=1.5"),
    "kernel function shape": (
        {"kernel": lambda A, B: np.ones((2, 2))},
        r"returned an array of shape \(2, 2\)",
    ),
    "sigma generator": ({"sigma": iter([1.0])}, "sigma is an iterator"),
    "sigma tiny": ({"sigma": 1e-170}, "between 1e-100 and 1e100"),
    "alpha huge": ({"alpha": 1e308}, "between 1e-100 and 1e100"),
    "kernel list": ({"kernel": ["rbf"]}, "Unknown kernel"),
    "coef0": ({"kernel": "poly", "coef0": "x"}, "coef0='x' must be a finite number"),
    "tol": ({"tol": float("nan")}, "tol contains nan"),
    "max_passes": ({"max_passes": None}, "max_passes=None must be"),
    "kmeans without number": ({"centers": "kmeans"}, "give n_centers"),
    "array and number": ({"centers": np.zeros((3, 2)), "n_centers": 2}, "leave it None"),
    "kernel function asymmetric": ({"kernel": lambda A, B: A @ B.T + np.arange(len(B))}, "is not symmetric"),
    "kernel function complex": ({"kernel": lambda A, B: (A @ B.T) * 1j}, "must be real"),
    "poly overflow": ({"kernel": "poly", "sigma": 1e-99, "degree": 9}, "overflow"),
    "kernel function nan": ({"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)}, "not finite"),
}


@pytest.mark.parametrize(("parameters", "message"), PARAMETERS.values(), ids=PARAMETERS)
def test_parameters(parameters, message):
    model = LSPC(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    assert not [name for name in vars(model) if name.endswith("_")]


DATA = {
    "nan, sparse": ((sparse.csr_matrix(with_value(np.nan)), Y), {}, "contains NaN, and is sparse.*SimpleImputer"),
    "inf": ((with_value(np.inf), Y), {}, "infinity"),
    "huge": ((with_value(1e300), Y), {}, r"values up to 1e\+300, whose squares overflow.*StandardScaler"),
    "huge float32": ((with_value(1e30).astype(np.float32), Y), {}, "overflow float32"),
    "empty": ((np.empty((0, 2)), np.empty(0)), {}, "0 sample"),
    "no features": ((np.empty((40, 0)), Y), {}, "0 feature"),
    "one class": ((X, np.ones(40)), {}, "one class only"),
    "one class left": ((X, Y), {"sample_weight": (Y == 1).astype(float)}, "one class only"),
    "a class for every row": ((X, np.arange(40)), {}, "40 classes in 40 rows"),
    "a quantity": ((X, X[:, 0]), {}, "Unknown label type"),
    "lengths": ((X, Y[:-1]), {}, "inconsistent numbers of samples"),
    "missing labels": ((X, np.where(Y == 0, np.nan, Y)), {}, "NaN"),
    "text": ((np.full((40, 2), "a"), Y), {}, "could not convert string"),
    "three dimensions": ((np.zeros((40, 2, 2)), Y), {}, "dim 3"),
    "negative weights": ((X, Y), {"sample_weight": np.r_[-1.0, np.ones(39)]}, "1 negative values"),
    "weights of zero": ((X, Y), {"sample_weight": np.zeros(40)}, "sums to 0|non-zero"),
    "weights nan": ((X, Y), {"sample_weight": np.r_[np.nan, np.ones(39)]}, "NaN"),
    "weights length": ((X, Y), {"sample_weight": np.ones(39)}, "39"),
    "all rows equal": ((np.ones((40, 2)), Y), {}, "All rows of X are equal"),
    "groups missing": ((X, Y), {"groups": [None] + [1] * 20 + [2] * 19}, "missing labels"),
    "groups nan": ((X, Y), {"groups": np.r_[np.nan, np.ones(20), np.zeros(19)]}, "missing labels"),
    "tiny values": ((X * 1e-170, Y), {}, "so close that their squared distances are 0"),
    "groups length": ((X, Y), {"groups": np.ones(3)}, r"groups has shape \(3,\)"),
    "one group": ((X, Y), {"groups": np.ones(40)}, "only one group"),
}


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@pytest.mark.parametrize(("args", "kwargs", "message"), DATA.values(), ids=DATA)
def test_data(args, kwargs, message):
    model = LSPC(scale=None)
    with pytest.raises(ValueError, match=message):
        model.fit(*args, **kwargs)
    assert not hasattr(model, "coef_")


def test_class_weight_of_the_wrong_kind():
    with pytest.raises(ValueError, match=r"'balanced' or a dict.*\[0, 1, 2\]"):
        LSPC(class_weight={"z": 2}).fit(X, Y)
    with pytest.raises(ValueError, match="class_weight='balance' must be"):
        LSPC(class_weight="balance").fit(X, Y)


def test_negative_class_weight():
    with pytest.raises(ValueError, match=r"class_weight=.*The weight of 1 is -1: give a finite number of 0 or more"):
        LSPC(class_weight={0: 1, 1: -1, 2: 1}).fit(X, Y)


def test_precomputed_must_be_symmetric():
    K = np.exp(-np.abs(X[:, :1] - X[:, 0]))
    K[0, 1] += 0.5
    with pytest.raises(ValueError, match="is not symmetric"):
        LSPC(kernel="precomputed").fit(K, Y)


def test_sigma_given_all_rows_equal_works_and_says_the_shares():
    model = LSPC(1.0, 0.1, cv=2, random_state=0).fit(np.ones((40, 2)), Y)
    np.testing.assert_allclose(model.predict_proba(np.ones((1, 2)))[0], np.bincount(Y) / 40, atol=0.02)


def test_a_failed_fit_keeps_the_old_model():
    model = LSPC(random_state=0).fit(X, Y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(with_value(np.inf), Y)
    with pytest.raises(ValueError, match="one class"):
        model.fit(np.ones((40, 5)), np.ones(40))
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_a_new_fit_leaves_nothing_of_the_old_one():
    model = LSPC(random_state=0).fit(X, Y)
    model.set_params(sigma=1.0, alpha=0.1, cv=None, calibration=None).fit(X, Y)
    assert not hasattr(model, "heldout_proba_")
    assert not hasattr(model, "cv_results_")


def test_prediction_checks_its_input():
    model = LSPC(1.0, 0.1).fit(X, Y)
    with pytest.raises(ValueError, match="X has 3 features, but LSPC is expecting 2 features"):
        model.predict(np.ones((2, 3)))
    with pytest.raises(ValueError, match="infinity"):
        model.predict_proba(with_value(np.inf))
    with pytest.raises(ValueError, match="NaN"):
        model.predict_proba(sparse.csr_matrix(with_value(np.nan)))
    with pytest.raises(ValueError, match="overflow"):
        model.predict_proba(with_value(1e300))
    poly = LSPC(1.0, 0.1, kernel="poly").fit(X, Y)
    with pytest.raises(ValueError, match="Scores overflow"):
        poly.predict_proba(with_value(1e120))


def test_too_little_memory_is_said_before_any_work(monkeypatch):
    called = []
    kernel = lambda A, B: called.append(1) or A @ B.T  # noqa: E731
    monkeypatch.setenv("LEASTWISE_MEMORY", "20KB")
    with pytest.raises(MemoryError, match=r"40 rows with 40 basis functions need about 90 KB.*20 KB.*n_centers=\d+ "):
        LSPC(kernel=kernel).fit(X, Y)
    assert not called
    assert LSPC(n_centers=9, random_state=0).fit(X, Y).score(X, Y) > 0.5
    monkeypatch.setenv("LEASTWISE_MEMORY", "60KB")
    with pytest.raises(MemoryError, match=r"n_centers=\d ") as refused:
        LSPC(basis="class").fit(X, Y)
    count = int(re.search(r"n_centers=(\d+)", str(refused.value)).group(1))
    assert LSPC(n_centers=count, basis="class", random_state=0).fit(X, Y).score(X, Y) > 0.5
    with pytest.raises(MemoryError):
        LSPC(n_centers=count + 1, basis="class", random_state=0).fit(X, Y)


def test_constant_and_duplicated_columns_and_rows_do_no_harm():
    wide = np.column_stack([X, np.full(40, 7.0)])
    plain, padded = LSPC(random_state=0).fit(X, Y), LSPC(random_state=0).fit(wide, Y)
    np.testing.assert_allclose(padded.predict_proba(wide), plain.predict_proba(X), atol=1e-7)
    twice = np.column_stack([X, X])
    assert np.isfinite(LSPC(random_state=0).fit(twice, Y).predict_proba(twice)).all()
    many, labels = np.repeat(X, 3, axis=0), np.repeat(Y, 3)
    model = LSPC(random_state=0).fit(many, labels)
    assert np.isfinite(model.heldout_proba_).all()


def test_tiny_data():
    two = LSPC().fit([[0.0], [1.0]], ["a", "b"])
    assert np.isfinite(two.predict_proba([[0.5]])).all()
    model = LSPC().fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    np.testing.assert_allclose(model.predict_proba([[1.5]]).sum(), 1)


def test_sparse_formats_are_taken_as_they_come():
    for maker in (sparse.coo_array, sparse.csc_array, sparse.csr_matrix):
        assert LSPC(1.0, 0.1).fit(maker(X), Y).predict_proba(maker(X)).shape == (40, 3)


def test_weights_that_are_no_numbers_are_named():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(ValueError, match=r"sample_weight must hold a number of 0 or more for each row: .*'heavy'"):
        LSPC(1.0, 0.1).fit(X, y, sample_weight=["heavy"] * 20)
