"""From objects to a header and arrays.

In the header JSON's own values stand for themselves: null, true, false, texts, numbers and lists. All else is an
object with one key that says what it is, such as ``{"tuple": [...]}``; see docs/files.md.
"""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.persistence.arrays import MAPPED, MAX_DIMENSIONS, MAX_EMPTY, as_bytes, described, order_of, storable
from leastwise.persistence.container import FileError, digest
from leastwise.persistence.named import constant_name, dtype_node, function_name, type_name
from leastwise.persistence.registry import attributes, entry_of, exact_names

Array = np.ndarray

#: How deeply things may stand in one another.
MAX_DEPTH = 64
#: Numbers that a range may stand for.
MAX_RANGE = 10**4
#: Kinds of sparse matrices that are stored as they are.
COMPRESSED = ("csr", "csc")


class Encoder:
    """Gathers the objects and arrays of a model.

    Parameters
    ----------
    single : bool
        Whether floats in double precision are stored in single precision, where precision is not kept on purpose.
    report : bool
        Whether attributes are stored that predictions do without.
    """

    def __init__(self, single: bool, report: bool) -> None:
        self.single, self.report = single, report
        self.objects: list[dict[str, Any]] = []
        self.entries: list[dict[str, Any]] = []
        self.arrays: list[Array] = []
        self._number: dict[Any, int | None] = {}
        self._alive: list[Any] = []  # so that no id is used twice

    def node(self, value: Any, path: str, exact: bool = True, depth: int = 0) -> Any:
        """What stands for a value; ``exact`` where its precision is kept."""
        if depth > MAX_DEPTH:
            raise FileError(f"{path}: things stand in one another more than {MAX_DEPTH} deep, or without end.")
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            return value if -(2**63) <= value < 2**64 else self._long(value, path)
        if kind is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if kind in (list, tuple, set, frozenset, dict, slice, range):
            return self._group(kind, value, path, exact, depth + 1)
        if isinstance(value, np.ndarray | np.generic):
            return self._numpy(value, path, exact, depth + 1)
        return self._other(kind, value, path, exact, depth + 1)

    def _long(self, value: int, path: str) -> dict:
        if abs(value) >= 2**128:
            raise FileError(f"{path} is a number of {value.bit_length()} bits; 128 are allowed.")
        return {"int": str(value)}

    def _group(self, kind: type, value: Any, path: str, exact: bool, depth: int) -> Any:
        if kind is dict:
            pairs = [
                [self.node(k, f"{path}: a key", depth=depth), self.node(v, f"{path}[{k!r}]", exact, depth)]
                for k, v in value.items()
            ]
            return {"dict": pairs}
        if kind is range and len(value) > MAX_RANGE:
            raise FileError(f"{path} is a range of {len(value)} numbers: make it an array, with np.arange.")
        if kind in (slice, range):
            return {kind.__name__: [self.node(v, path) for v in (value.start, value.stop, value.step)]}
        parts = sorted(value, key=repr) if kind in (set, frozenset) else value
        nodes = [self.node(v, f"{path}[{k}]", exact, depth) for k, v in enumerate(parts)]
        return nodes if kind is list else {kind.__name__: nodes}

    # ----------------------------------------------------------------- arrays

    def _numpy(self, value: Any, path: str, exact: bool, depth: int) -> Any:
        if isinstance(value, np.generic):
            if value.dtype.kind not in "biufU" or storable(np.asarray(value)) is None:
                raise FileError(f"{path} is a {type(value).__name__}, {self._allowed()}")
            return {"scalar": [value.dtype.newbyteorder("<").str, self.node(value.item(), path)]}
        if type(value) not in (np.ndarray, np.memmap):
            raise FileError(f"{path} is a {type(value).__name__}: make it a plain array, with np.asarray.")
        if value.ndim > MAX_DIMENSIONS or (not value.size and max(value.shape) > MAX_EMPTY):
            raise FileError(f"{path} is an array of shape {value.shape}, which has too many axes, or too long ones.")
        if value.dtype.kind == "O":
            flat = [self.node(v, f"{path}[{k}]", depth=depth) for k, v in enumerate(value.ravel().tolist())]
            return {"objects": [list(value.shape), flat]}
        return {"array": self._array(value, path, exact)}

    def _array(self, value: Array, path: str, exact: bool) -> int:
        """The number of an array; that of an equal one where it is the same, or large."""
        shorten = self.single and not exact and value.dtype == np.float64
        key = (value.__array_interface__["data"][0], value.shape, value.strides, value.dtype.str, shorten)
        known = self._number.get(key) if value.size else None
        if known is not None:
            return known
        array = storable(_shortened(value, path) if shorten else value)
        if array is None:
            raise FileError(
                f"{path} is an array of type {value.dtype}; allowed are truth values, whole numbers and floats of up "
                "to 8 bytes, text, times, and objects of these."
            )
        content = digest(as_bytes(array))
        same = (content, array.dtype.str, array.shape, order_of(array))
        number = self._number.get(same) if array.nbytes >= MAPPED else None
        if number is None:
            number = len(self.arrays)
            self.arrays.append(as_bytes(array))
            self.entries.append(described(array, content))
        self._number[key] = self._number[same] = number
        self._alive.append(value)
        return number

    def _sparse(self, value: Any, path: str, exact: bool) -> dict:
        if value.format not in COMPRESSED:
            raise FileError(f"{path} is a sparse matrix of format {value.format!r}: make it csr or csc.")
        parts = [self._array(getattr(value, n), f"{path}.{n}", exact) for n in ("data", "indices", "indptr")]
        return {"sparse": [type_name(type(value)), list(value.shape), *parts]}

    # ---------------------------------------------------------------- objects

    def _other(self, kind: type, value: Any, path: str, exact: bool, depth: int) -> Any:
        entry = entry_of(kind)
        if entry is not None:
            return {"object": self._object(entry, value, path, depth)}
        if sparse.issparse(value):
            return self._sparse(value, path, exact)
        if kind is bytes:
            return {"bytes": value.hex()}
        if kind in (datetime.datetime, datetime.date):
            return {kind.__name__: value.isoformat()}
        if kind is datetime.timedelta:
            return {"timedelta": [value.days, value.seconds, value.microseconds]}
        if kind in (np.random.RandomState, np.random.Generator):
            return self._random(kind, value, path)
        for name, known in (("type", type_name), ("function", function_name), ("constant", constant_name)):
            if (found := known(value)) is not None:
                return {name: found}
        if (dtype := dtype_node(value)) is not None:
            return {"dtype": self.node(dtype, path)}
        raise FileError(f"{path} is {_what(value)}, {self._allowed()}")

    def _object(self, entry: Any, thing: Any, path: str, depth: int) -> int:
        if id(thing) in self._number:
            number = self._number[id(thing)]
            if number is None:
                raise FileError(f"{path} holds itself, directly or not.")
            return number
        self._number[id(thing)] = None
        self._alive.append(thing)
        exact, state = exact_names(entry, thing), {}
        for name, value in attributes(entry, thing).items():
            if self.report or name not in entry.report:
                state[name] = self.node(value, f"{path}.{name}", name in exact, depth)
        self.objects.append({"class": entry.name, "version": entry.version, "state": state})
        self._number[id(thing)] = len(self.objects) - 1
        return len(self.objects) - 1

    def _random(self, kind: type, value: Any, path: str) -> dict:
        state = value.get_state(legacy=False) if kind is np.random.RandomState else value.bit_generator.state
        return {"random": [kind.__name__, self.node(state, path)]}

    def _allowed(self) -> str:
        return (
            "which no model file can hold: it holds numbers, texts, arrays, and objects of the classes that "
            "leastwise.persistence knows, but no code. Set the attribute to something else before saving where "
            "predictions do without it (a scorer or a splitter, say), or use skops or joblib: see "
            "the page Model files."
        )


def _what(value: Any) -> str:
    cls = type(value)
    if callable(value) and hasattr(value, "__qualname__"):
        return f"the function or class {value.__module__}.{value.__qualname__}"
    return f"a {cls.__module__}.{cls.__qualname__}"


def _shortened(value: Array, path: str) -> Array:
    """In single precision, unless numbers become infinite."""
    with np.errstate(over="ignore"):
        short = value.astype(np.float32, order="K")
    if (np.isinf(short) & np.isfinite(value)).any():
        raise FileError(f"{path} holds numbers too large for dtype='float32': save without it.")
    return short
