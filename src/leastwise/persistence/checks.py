"""States of random generators, checked: compiled code believes what they say.

What must be right before compiled code, or memory, is trusted to numbers from a file.

Wrong numbers elsewhere make wrong predictions or Python's errors, and that is all. These would make a crash.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.persistence.container import FileError

#: For each kind, its parts: arrays with their type and length, whole numbers with their bound.
KINDS: dict[str, dict[str, Any]] = {
    "MT19937": {"state": {"key": ("uint32", 624), "pos": 625}},
    "PCG64": {"state": {"state": 2**128, "inc": 2**128}},
    "PCG64DXSM": {"state": {"state": 2**128, "inc": 2**128}},
    "Philox": {"state": {"counter": ("uint64", 4), "key": ("uint64", 2)}, "buffer": ("uint64", 4), "buffer_pos": 5},
    "SFC64": {"state": {"state": ("uint64", 4)}},
}
SPARE = {"has_uint32": 2, "uinteger": 2**32}


def read_random(kind: Any, state: Any) -> Any:
    """A RandomState or Generator in this state."""
    name = state.get("bit_generator") if isinstance(state, dict) else None
    if kind not in ("RandomState", "Generator") or name not in KINDS:
        raise FileError("it has a random generator of a kind that is not known")
    parts: dict[str, Any] = {**KINDS[name]}
    given = {key: value for key, value in state.items() if key != "bit_generator"}
    if kind == "RandomState":
        parts["has_gauss"] = 2
        if type(given.pop("gauss", None)) is not float:
            raise FileError("it has a random generator without a valid state")
    if name != "MT19937":
        parts |= SPARE
    _check(given, parts)
    generator = getattr(np.random, name)(0)
    if kind == "RandomState":
        made = np.random.RandomState(generator)
        made.set_state(state)
        return made
    generator.state = state
    return np.random.Generator(generator)


def _check(state: Any, parts: dict[str, Any]) -> None:
    if not isinstance(state, dict) or set(state) != set(parts):
        raise FileError("it has a random generator without a valid state")
    for name, wanted in parts.items():
        value = state[name]
        if isinstance(wanted, dict):
            _check(value, wanted)
        elif isinstance(wanted, tuple):
            dtype, length = wanted
            if not isinstance(value, np.ndarray) or value.dtype != dtype or value.shape != (length,):
                raise FileError("it has a random generator without a valid state")
        elif type(value) is not int or not 0 <= value < wanted:
            raise FileError("it has a random generator without a valid state")


Array = np.ndarray

#: Columns that a polynomial may have.
MAX_COLUMNS = 10**6


def _demand(right: Any, what: str) -> None:
    if not right:
        raise FileError(f"it holds a {what} whose parts do not belong together")


def _is_array(value: Any, dtype: str, shape: tuple[int, ...]) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == dtype and value.shape == shape


def _whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(low <= value <= high)


def _any(state: dict[str, Any], name: str) -> Any:
    return state.get(name)


def check_compressed(data: Array, indices: Array, indptr: Array, n: int, width: int) -> None:
    """Each of n rows of a sparse matrix has a start, in order, and each entry a column. (SciPy looks at less.)"""
    what = "sparse matrix"
    _demand(data.ndim == indices.ndim == indptr.ndim == 1 and len(data) == len(indices), what)
    _demand(len(indptr) == n + 1 and indptr[0] == 0 and indptr[-1] == len(data), what)
    _demand((indptr[:-1] <= indptr[1:]).all(), what)
    _demand(not len(indices) or (indices.min() >= 0 and indices.max() < width), what)


def check_jobs(state: dict[str, Any]) -> None:
    """How many processes are started is for the machine to say, not for a file."""
    _demand(state.get("n_jobs") is None, "number of jobs")


def check_model(state: dict[str, Any]) -> None:
    """Rows that were kept have classes that the sums know: they are counted by their numbers."""
    check_jobs(state)
    moments, kept = state.get("moments_"), state.get("kept_")
    if moments is None and kept is None:
        return
    what = "model with sums"
    C: Any = getattr(moments, "C", None)
    _demand(isinstance(C, np.ndarray) and C.ndim == 2, what)
    if kept is not None:
        y: Any = getattr(kept, "y", None)
        _demand(isinstance(y, np.ndarray) and y.dtype.kind in "if", what)
        _demand(y.dtype.kind == "f" or not y.size or y.max() < C.shape[1], what)


def check_moments(state: dict[str, Any]) -> None:
    """Sums of the same functions and outputs."""
    what = "sum over rows"
    C = _any(state, "C")
    _demand(isinstance(C, np.ndarray) and C.ndim == 2, what)
    b, c = C.shape
    for name, shape in (("A", (b, b)), ("C", (b, c)), ("p", (b,)), ("z", (c,))):
        _demand(_is_array(state.get(name), "float64", shape), what)
    mass, n = state.get("mass"), state.get("n")
    _demand(isinstance(mass, float) and 0 <= mass < np.inf and _whole(n, 0, 2**63 - 1), what)
    known: Any = state.get("whitening")
    _demand(known is None or len(getattr(known, "pivots", ())) == b, what)


def check_whitening(state: dict[str, Any]) -> None:
    """A triangle for every pivot, and pivots among the basis functions."""
    what, size = "whitening", state.get("size")
    pivots = _any(state, "pivots")
    _demand(isinstance(pivots, np.ndarray) and pivots.ndim == 1 and pivots.dtype.kind == "i", what)
    r = len(pivots)
    _demand(_whole(size, r, 2**31 - 1) and _is_array(state.get("T"), "float64", (r, r)), what)
    _demand(not r or (pivots.min() >= 0 and pivots.max() < size), what)


def check_kept(state: dict[str, Any]) -> None:
    """A key, a target and a weight for every row; classes are numbered from 0."""
    what = "sample of rows"
    X, y, key = (_any(state, name) for name in ("X", "y", "key"))
    _demand(isinstance(key, np.ndarray) and key.ndim == 1 and key.dtype == np.uint64, what)
    m, group = len(key), state.get("group")
    _demand(isinstance(X, np.ndarray) or sparse.issparse(X), what)
    _demand(X.ndim == 2 and X.dtype.kind == "f" and X.shape[0] == m, what)
    _demand(isinstance(y, np.ndarray) and y.ndim in (1, 2) and y.dtype.kind in "if" and len(y) == m, what)
    _demand(y.dtype.kind == "f" or not y.size or y.min() >= 0, what)
    _demand(_is_array(state.get("w"), "float64", (m,)), what)
    _demand(group is None or (isinstance(group, np.ndarray) and group.shape == (m,)), what)
    _demand(_whole(state.get("limit"), 0, 2**63 - 1) and _whole(state.get("bound"), 0, 2**64 - 1), what)


def check_pipeline(state: dict[str, Any]) -> None:
    """A pipeline caches nothing: what is in a cache is unpickled."""
    _demand(state.get("memory") is None, "pipeline with a cache")


def check_encoder(state: dict[str, Any]) -> None:
    """Every category has its column, and no column is beyond the last."""
    if "categories_" not in state:
        return
    what, cats = "OneHotEncoder", state["categories_"]
    outs: Any = state.get("_n_features_outs")
    drops = state.get("_drop_idx_after_grouping")
    rare = state.get("_infrequent_indices") if state.get("_infrequent_enabled") else None
    maps = state.get("_default_to_infrequent_mappings") if state.get("_infrequent_enabled") else None
    _demand(isinstance(cats, list) and isinstance(outs, list) and len(outs) == len(cats), what)
    _demand(all(isinstance(c, np.ndarray) and c.ndim == 1 and len(c) for c in cats), what)
    for parts in (drops, rare, maps):
        _demand(parts is None or (len(parts) == len(cats)), what)
    _demand(not state.get("_infrequent_enabled") or (rare is not None and maps is not None), what)
    for k, values in enumerate(cats):
        _check_sorted(values, what)
        one = [None if parts is None else parts[k] for parts in (drops, rare, maps)]
        _check_columns(len(values), outs[k], *one)


def _check_sorted(values: Array, what: str) -> None:
    """Numbers are found by bisection."""
    if values.dtype.kind not in "OUS":
        known = values[:-1] if values.dtype.kind == "f" and np.isnan(values[-1]) else values
        _demand((known[:-1] < known[1:]).all(), what)


def _check_columns(n: int, n_columns: Any, drop: Any, rare: Any, mapping: Any) -> None:
    what = "OneHotEncoder"
    _demand(_whole(n_columns, 0, n), what)
    code = np.arange(n)
    if rare is not None:
        _demand(isinstance(rare, np.ndarray) and rare.dtype.kind == "i" and rare.ndim == 1 and len(rare), what)
        _demand(rare.min() >= 0 and rare.max() < n, what)
    if mapping is not None:
        _demand(isinstance(mapping, np.ndarray) and mapping.dtype.kind == "i" and mapping.shape == (n,), what)
        code = mapping
    if drop is not None:
        _demand(_whole(drop, 0, n), what)
        code = code[code != drop]
        code = np.where(code > drop, code - 1, code)
    _demand(not len(code) or (code.min() >= 0 and code.max() < n_columns), what)


def check_polynomial(state: dict[str, Any]) -> None:
    """Space is made for all columns before any is computed."""
    if "_n_out_full" in state:
        _demand(
            all(_whole(state.get(n), 0, MAX_COLUMNS) for n in ("_n_out_full", "n_output_features_")), "polynomial"
        )


def check_machine(state: dict[str, Any]) -> None:
    """Support vector machines are compiled code: all lengths must fit. Kernels are precomputed, as in RMTL."""
    what = "support vector machine"
    _demand(state.get("kernel") == "precomputed" and not callable(state["kernel"]), what)
    if "support_" not in state:
        return
    support, classes = state["support_"], state.get("classes_")
    shape: Any = state.get("shape_fit_")
    c = 2 if classes is None else len(classes)
    m, pairs = len(support), 1 if classes is None else c * (c - 1) // 2
    _demand(_is_array(support, "int32", (m,)) and c >= 2 and state.get("_sparse") is False, what)
    _demand(isinstance(shape, tuple) and len(shape) == 2 and all(_whole(n, 0, 2**31 - 1) for n in shape), what)
    _demand(m == 0 or (support.min() >= 0 and support.max() < shape[0]), what)
    counts: Any = state.get("_n_support")
    _demand(_is_array(counts, "int32", (c,)) and counts.min() >= 0, what)
    _demand(classes is None or int(counts.sum(dtype=np.int64)) == m, what)
    _demand(_is_array(state.get("support_vectors_"), "float64", (0, 0)), what)
    for name in ("dual_coef_", "_dual_coef_"):
        _demand(_is_array(state.get(name), "float64", (c - 1, m)) and state[name].flags.c_contiguous, what)
    for name in ("intercept_", "_intercept_"):
        _demand(_is_array(state.get(name), "float64", (pairs,)), what)
    for name in ("_probA", "_probB"):
        _demand(_is_array(state.get(name), "float64", (0,)), what)
    plain = (state.get("_effective_probability", False), state.get("probability", False) in (False, "deprecated"))
    _demand(plain == (False, True), what)
    _demand(classes is not None or counts.max() <= m, what)


def check_neighbors(state: dict[str, Any]) -> None:
    """What the tree is made of again."""
    check_jobs(state)
    _demand(isinstance(state.get("metric", "minkowski"), str), "NearestNeighbors")


def check_labels_known(state: dict[str, Any]) -> None:
    """As many labels as there are shares of them."""
    if "n_labels_" in state:
        prior = state.get("prior_")
        _demand(isinstance(prior, np.ndarray) and state["n_labels_"] == prior.size, "MLkNN")


def check_starts(state: dict[str, Any]) -> None:
    """Labels fill all outputs, one after the other."""
    for starts, filled in (("starts", "shares"), ("corners", "knots")):
        if starts in state:
            _check_steps(state[starts], state.get(filled))


def _check_steps(starts: Any, filled: Any) -> None:
    what = "calibration of labels"
    _demand(isinstance(starts, np.ndarray) and starts.dtype.kind == "i" and starts.ndim == 1 and len(starts), what)
    _demand(isinstance(filled, np.ndarray) and filled.ndim == 1, what)
    steps = starts.tolist()
    _demand(steps[0] == 0 and steps[-1] == len(filled) and all(a <= b for a, b in pairwise(steps)), what)
