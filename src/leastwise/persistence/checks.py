"""Validation of values from files that compiled code would use without checking.

Wrong values elsewhere give wrong predictions or Python errors, and no more. The values checked here (indices of
sparse matrices, columns of encoders, lengths in support vector machines, states of random generators) could crash the
process or exhaust its memory. Each ``check_`` function takes the attributes of an object before it is built, and
raises a FileError.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.persistence.container import FileError

Array = np.ndarray
State = dict[str, Any]

#: Largest number of columns of PolynomialFeatures.
MAX_COLUMNS = 10**6


def _require(condition: Any, what: str) -> None:
    if not condition:
        raise FileError(f"it has a {what} with inconsistent attributes")


def _is_array(value: Any, dtype: str, shape: tuple[int, ...]) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == dtype and value.shape == shape


def _is_int(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(low <= value <= high)


# ------------------------------------------------------ parts of leastwise models


def check_n_jobs(state: State) -> None:
    """A file must not decide how many processes are started."""
    if state.get("n_jobs") is not None:
        raise FileError("it sets the number of jobs (n_jobs), which a file must not do")


def check_model(state: State) -> None:
    """The class codes of stored rows are columns of the moments: they are used as indices."""
    check_n_jobs(state)
    moments, sample = state.get("moments_"), state.get("kept_")
    if moments is None and sample is None:
        return
    what = "model with moments"
    C: Any = getattr(moments, "C", None)
    _require(isinstance(C, np.ndarray) and C.ndim == 2, what)
    if sample is not None:
        y: Any = getattr(sample, "y", None)
        _require(isinstance(y, np.ndarray) and y.dtype.kind in "if", what)
        _require(y.dtype.kind == "f" or not y.size or y.max() < C.shape[1], what)


def check_moments(state: State) -> None:
    """All moments have the same numbers of basis functions and outputs."""
    what, C = "sum over rows", state.get("C")
    _require(isinstance(C, np.ndarray) and C.ndim == 2, what)
    assert isinstance(C, np.ndarray)
    b, c = C.shape
    for name, shape in (("A", (b, b)), ("C", (b, c)), ("p", (b,)), ("z", (c,))):
        _require(_is_array(state.get(name), "float64", shape), what)
    mass, n = state.get("mass"), state.get("n")
    _require(isinstance(mass, float) and 0 <= mass < np.inf and _is_int(n, 0, 2**63 - 1), what)
    whitening: Any = state.get("whitening")
    _require(whitening is None or len(getattr(whitening, "pivots", ())) == b, what)


def check_whitening(state: State) -> None:
    """One row of the triangle for each pivot; pivots are indices of basis functions."""
    what, size = "whitening", state.get("size")
    pivots: Any = state.get("pivots")
    _require(isinstance(pivots, np.ndarray) and pivots.ndim == 1 and pivots.dtype.kind == "i", what)
    r = len(pivots)
    _require(_is_int(size, r, 2**31 - 1) and _is_array(state.get("T"), "float64", (r, r)), what)
    _require(not r or (pivots.min() >= 0 and pivots.max() < size), what)


def check_row_sample(state: State) -> None:
    """A key, a target and a weight for every row; class codes are not negative."""
    what = "sample of rows"
    X: Any = state.get("X")
    y: Any = state.get("y")
    key: Any = state.get("key")
    _require(isinstance(key, np.ndarray) and key.ndim == 1 and key.dtype == np.uint64, what)
    m, group = len(key), state.get("group")
    _require(isinstance(X, np.ndarray) or sparse.issparse(X), what)
    _require(X.ndim == 2 and X.dtype.kind == "f" and X.shape[0] == m, what)
    _require(isinstance(y, np.ndarray) and y.ndim in (1, 2) and y.dtype.kind in "if" and len(y) == m, what)
    _require(y.dtype.kind == "f" or not y.size or y.min() >= 0, what)
    _require(_is_array(state.get("w"), "float64", (m,)), what)
    _require(group is None or (isinstance(group, np.ndarray) and group.shape == (m,)), what)
    _require(_is_int(state.get("limit"), 0, 2**63 - 1) and _is_int(state.get("bound"), 0, 2**64 - 1), what)


def check_label_starts(state: State) -> None:
    """The labels (and the knots of isotonic calibrators) fill their arrays one after the other."""
    what = "calibration of labels"
    for name, filled in (("starts", "shares"), ("corners", "knots")):
        if name not in state:
            continue
        starts: Any = state[name]
        values: Any = state.get(filled)
        _require(isinstance(starts, np.ndarray) and starts.dtype.kind == "i" and starts.ndim == 1, what)
        _require(len(starts) and isinstance(values, np.ndarray) and values.ndim == 1, what)
        places = starts.tolist()
        _require(places[0] == 0 and places[-1] == len(values) and all(a <= b for a, b in pairwise(places)), what)


def check_n_labels(state: State) -> None:
    """MLkNN has one prior for each label."""
    if "n_labels_" in state:
        prior = state.get("prior_")
        _require(isinstance(prior, np.ndarray) and state["n_labels_"] == prior.size, "MLkNN")


# ------------------------------------------------------------------ scikit-learn


def check_pipeline(state: State) -> None:
    """No cache: its contents would be unpickled."""
    if state.get("memory") is not None:
        raise FileError("it has a pipeline with a cache (memory), which a file must not have")


def check_neighbors(state: State) -> None:
    """The parameters from which the tree is rebuilt."""
    check_n_jobs(state)
    _require(isinstance(state.get("metric", "minkowski"), str), "NearestNeighbors")


def check_polynomial(state: State) -> None:
    """Memory for all columns is allocated before any is computed."""
    if "_n_out_full" in state:
        widths = (state.get("_n_out_full"), state.get("n_output_features_"))
        _require(all(_is_int(width, 0, MAX_COLUMNS) for width in widths), "PolynomialFeatures")


def check_one_hot(state: State) -> None:
    """Every category has a column, and no column is beyond the last."""
    if "categories_" not in state:
        return
    what, categories = "OneHotEncoder", state["categories_"]
    widths: Any = state.get("_n_features_outs")
    drops = state.get("_drop_idx_after_grouping")
    rare = state.get("_infrequent_indices") if state.get("_infrequent_enabled") else None
    maps = state.get("_default_to_infrequent_mappings") if state.get("_infrequent_enabled") else None
    _require(isinstance(categories, list) and isinstance(widths, list) and len(widths) == len(categories), what)
    _require(all(isinstance(c, np.ndarray) and c.ndim == 1 and len(c) for c in categories), what)
    for parts in (drops, rare, maps):
        _require(parts is None or len(parts) == len(categories), what)
    _require(not state.get("_infrequent_enabled") or (rare is not None and maps is not None), what)
    for k, values in enumerate(categories):
        if values.dtype.kind not in "OUS":  # numbers are found by bisection
            known = values[:-1] if values.dtype.kind == "f" and np.isnan(values[-1]) else values
            _require((known[:-1] < known[1:]).all(), what)
        own = [None if parts is None else parts[k] for parts in (drops, rare, maps)]
        _check_one_hot_columns(len(values), widths[k], *own)


def _check_one_hot_columns(n: int, width: Any, drop: Any, rare: Any, mapping: Any) -> None:
    what = "OneHotEncoder"
    _require(_is_int(width, 0, n), what)
    code = np.arange(n)
    if rare is not None:
        _require(isinstance(rare, np.ndarray) and rare.dtype.kind == "i" and rare.ndim == 1 and len(rare), what)
        _require(rare.min() >= 0 and rare.max() < n, what)
    if mapping is not None:
        _require(isinstance(mapping, np.ndarray) and mapping.dtype.kind == "i" and mapping.shape == (n,), what)
        code = mapping
    if drop is not None:
        _require(_is_int(drop, 0, n), what)
        code = code[code != drop]
        code = np.where(code > drop, code - 1, code)
    _require(not len(code) or (code.min() >= 0 and code.max() < width), what)


def check_svm(state: State) -> None:
    """The compiled code of libsvm does not check lengths. Kernels must be precomputed, as in RMTL."""
    what = "support vector machine"
    _require(state.get("kernel") == "precomputed" and not callable(state["kernel"]), what)
    if "support_" not in state:
        return
    support, classes = state["support_"], state.get("classes_")
    shape: Any = state.get("shape_fit_")
    c = 2 if classes is None else len(classes)
    m, pairs = len(support), 1 if classes is None else c * (c - 1) // 2
    _require(_is_array(support, "int32", (m,)) and c >= 2 and state.get("_sparse") is False, what)
    _require(isinstance(shape, tuple) and len(shape) == 2 and all(_is_int(n, 0, 2**31 - 1) for n in shape), what)
    _require(m == 0 or (support.min() >= 0 and support.max() < shape[0]), what)
    counts: Any = state.get("_n_support")
    _require(_is_array(counts, "int32", (c,)) and counts.min() >= 0, what)
    _require(classes is None or int(counts.sum(dtype=np.int64)) == m, what)
    _require(classes is not None or counts.max() <= m, what)
    _require(_is_array(state.get("support_vectors_"), "float64", (0, 0)), what)
    for name in ("dual_coef_", "_dual_coef_"):
        _require(_is_array(state.get(name), "float64", (c - 1, m)) and state[name].flags.c_contiguous, what)
    for name in ("intercept_", "_intercept_"):
        _require(_is_array(state.get(name), "float64", (pairs,)), what)
    for name in ("_probA", "_probB"):
        _require(_is_array(state.get(name), "float64", (0,)), what)
    _require(state.get("_effective_probability", False) is False, what)
    _require(state.get("probability", False) in (False, "deprecated"), what)


# ------------------------------------------- sparse matrices and random generators


def check_compressed(data: Array, indices: Array, indptr: Array, n: int, width: int) -> None:
    """Check the arrays of a compressed sparse matrix with n rows of this width. (SciPy checks less.)"""
    what = "sparse matrix"
    _require(data.ndim == indices.ndim == indptr.ndim == 1 and len(data) == len(indices), what)
    _require(len(indptr) == n + 1 and indptr[0] == 0 and indptr[-1] == len(data), what)
    _require((indptr[:-1] <= indptr[1:]).all(), what)
    _require(not len(indices) or (indices.min() >= 0 and indices.max() < width), what)


#: For each bit generator the parts of its state: arrays with dtype and length, integers with an upper bound.
BIT_GENERATORS: dict[str, dict[str, Any]] = {
    "MT19937": {"state": {"key": ("uint32", 624), "pos": 625}},
    "PCG64": {"state": {"state": 2**128, "inc": 2**128}},
    "PCG64DXSM": {"state": {"state": 2**128, "inc": 2**128}},
    "Philox": {"state": {"counter": ("uint64", 4), "key": ("uint64", 2)}, "buffer": ("uint64", 4), "buffer_pos": 5},
    "SFC64": {"state": {"state": ("uint64", 4)}},
}
#: All but MT19937 may keep half of a 64-bit number.
SPARE_BITS = {"has_uint32": 2, "uinteger": 2**32}


def random_generator(kind: Any, state: Any) -> Any:
    """Make a RandomState or Generator from a checked state."""
    name = state.get("bit_generator") if isinstance(state, dict) else None
    if kind not in ("RandomState", "Generator") or name not in BIT_GENERATORS:
        raise FileError("it has a random generator of an unknown kind")
    expected: dict[str, Any] = {**BIT_GENERATORS[name]}
    given = {key: value for key, value in state.items() if key != "bit_generator"}
    if kind == "RandomState":
        expected["has_gauss"] = 2
        _require(type(given.pop("gauss", None)) is float, "random generator")
    if name != "MT19937":
        expected |= SPARE_BITS
    _check_random_state(given, expected)
    generator = getattr(np.random, name)(0)
    if kind == "RandomState":
        made = np.random.RandomState(generator)
        made.set_state(state)
        return made
    generator.state = state
    return np.random.Generator(generator)


def _check_random_state(state: Any, expected: dict[str, Any]) -> None:
    what = "random generator"
    _require(isinstance(state, dict) and set(state) == set(expected), what)
    for name, wanted in expected.items():
        if isinstance(wanted, dict):
            _check_random_state(state[name], wanted)
        elif isinstance(wanted, tuple):
            _require(_is_array(state[name], wanted[0], (wanted[1],)), what)
        else:
            _require(type(state[name]) is int and 0 <= state[name] < wanted, what)
