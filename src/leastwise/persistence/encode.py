"""Encode objects as a JSON header and arrays.

In the header, null, booleans, strings, numbers and lists stand for themselves. Every other value is a JSON object
with one key that names its kind, such as ``{"tuple": [...]}``; see docs/files.md.
"""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.persistence import registry
from leastwise.persistence.container import (
    MAPPED,
    MAX_DIMENSIONS,
    MAX_EMPTY,
    FileError,
    array_entry,
    as_bytes,
    memory_order,
    sha256,
    storable,
)
from leastwise.persistence.named_values import constant_name, dtype_node, function_name, type_name

Array = np.ndarray

#: Deepest nesting of values.
MAX_DEPTH = 64
#: Longest range.
MAX_RANGE = 10**4
#: Sparse formats that are stored.
COMPRESSED = ("csr", "csc")
NOT_STORABLE = (
    "which cannot be stored in a model file: it holds numbers, text, arrays and objects of registered classes, but "
    "no code. If predictions do not need the attribute (a scorer or a splitter, for example), set it to something "
    "else before saving; else use skops or joblib, see the page Model files."
)


class Encoder:
    """Collects the objects and arrays of a model.

    Parameters
    ----------
    single : bool
        Store float64 arrays as float32, except where the registry says that precision is kept.
    report : bool
        Store the attributes that predictions do not need.

    Attributes
    ----------
    objects : list of dict
        Class, version and state of every object, each after those it refers to.
    entries : list of dict
        Descriptions of the arrays.
    arrays : list of ndarray
        Their bytes.
    """

    def __init__(self, single: bool, report: bool) -> None:
        self.single, self.report = single, report
        self.objects: list[dict[str, Any]] = []
        self.entries: list[dict[str, Any]] = []
        self.arrays: list[Array] = []
        self._number: dict[Any, int | None] = {}
        self._alive: list[Any] = []  # references, so that no id is reused

    def node(self, value: Any, path: str, exact: bool = True, depth: int = 0) -> Any:
        """The JSON node of a value; ``exact`` keeps its precision, ``path`` names it in errors."""
        if depth > MAX_DEPTH:
            raise FileError(f"{path}: values are nested more than {MAX_DEPTH} deep, or contain themselves.")
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            if abs(value) >= 2**128:
                raise FileError(f"{path} is an integer of {value.bit_length()} bits; at most 128 are allowed.")
            return value if -(2**63) <= value < 2**64 else {"int": str(value)}
        if kind is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if kind in (list, tuple, set, frozenset, dict, slice, range):
            return self._container(kind, value, path, exact, depth + 1)
        if isinstance(value, np.ndarray | np.generic):
            return self._numpy(value, path, exact, depth + 1)
        return self._other(kind, value, path, exact, depth + 1)

    def _container(self, kind: type, value: Any, path: str, exact: bool, depth: int) -> Any:
        if kind is dict:
            pairs = [
                [self.node(k, f"{path}: a key", depth=depth), self.node(v, f"{path}[{k!r}]", exact, depth)]
                for k, v in value.items()
            ]
            return {"dict": pairs}
        if kind is range and len(value) > MAX_RANGE:
            raise FileError(f"{path} is a range of {len(value)} numbers: convert it with np.arange.")
        if kind in (slice, range):
            return {kind.__name__: [self.node(v, path) for v in (value.start, value.stop, value.step)]}
        parts = sorted(value, key=repr) if kind in (set, frozenset) else value
        nodes = [self.node(v, f"{path}[{k}]", exact, depth) for k, v in enumerate(parts)]
        return nodes if kind is list else {kind.__name__: nodes}

    # ----------------------------------------------------------------- arrays

    def _numpy(self, value: Any, path: str, exact: bool, depth: int) -> Any:
        if isinstance(value, np.generic):
            if value.dtype.kind not in "biufU" or storable(np.asarray(value)) is None:
                raise FileError(f"{path} is a {type(value).__name__}, {NOT_STORABLE}")
            return {"scalar": [value.dtype.newbyteorder("<").str, self.node(value.item(), path)]}
        if type(value) not in (np.ndarray, np.memmap):
            raise FileError(f"{path} is a {type(value).__name__}: convert it with np.asarray.")
        if value.ndim > MAX_DIMENSIONS or (not value.size and max(value.shape) > MAX_EMPTY):
            raise FileError(f"{path} is an array of shape {value.shape}: too many axes, or an axis is too long.")
        if value.dtype.kind == "O":
            flat = [self.node(v, f"{path}[{k}]", depth=depth) for k, v in enumerate(value.ravel().tolist())]
            return {"objects": [list(value.shape), flat]}
        return {"array": self._array(value, path, exact)}

    def _array(self, value: Array, path: str, exact: bool) -> int:
        """The number of an array. The same array, or a large one with equal contents, is stored once."""
        round_off = self.single and not exact and value.dtype == np.float64
        key = (value.__array_interface__["data"][0], value.shape, value.strides, value.dtype.str, round_off)
        known = self._number.get(key) if value.size else None
        if known is not None:
            return known
        array = storable(_to_single(value, path) if round_off else value)
        if array is None:
            raise FileError(
                f"{path} is an array of type {value.dtype}; allowed are booleans, integers and floats of up to 8 "
                "bytes, text, times, and objects of these."
            )
        content = sha256(as_bytes(array))
        same = (content, array.dtype.str, array.shape, memory_order(array))
        number = self._number.get(same) if array.nbytes >= MAPPED else None
        if number is None:
            number = len(self.arrays)
            self.arrays.append(as_bytes(array))
            self.entries.append(array_entry(array, content))
        self._number[key] = self._number[same] = number
        self._alive.append(value)
        return number

    def _sparse(self, value: Any, path: str, exact: bool) -> dict:
        if value.format not in COMPRESSED:
            raise FileError(f"{path} is a sparse matrix of format {value.format!r}: convert it to csr or csc.")
        parts = [self._array(getattr(value, n), f"{path}.{n}", exact) for n in ("data", "indices", "indptr")]
        return {"sparse": [type_name(type(value)), list(value.shape), *parts]}

    # ---------------------------------------------------------------- objects

    def _other(self, kind: type, value: Any, path: str, exact: bool, depth: int) -> Any:
        entry = registry.find(kind)
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
            state = value.get_state(legacy=False) if kind is np.random.RandomState else value.bit_generator.state
            return {"random": [kind.__name__, self.node(state, path)]}
        for group, name_of in (("type", type_name), ("function", function_name), ("constant", constant_name)):
            if (name := name_of(value)) is not None:
                return {group: name}
        if (dtype := dtype_node(value)) is not None:
            return {"dtype": self.node(dtype, path)}
        if callable(value) and hasattr(value, "__qualname__"):
            raise FileError(
                f"{path} is the function or class {value.__module__}.{value.__qualname__}, {NOT_STORABLE}"
            )
        raise FileError(
            f"{path} is a {kind.__module__}.{kind.__qualname__}, {NOT_STORABLE} Registered are "
            f"{registry.registered_names()}. Add a class of your own with leastwise.persistence.registry.register."
        )

    def _object(self, entry: registry.Entry, obj: Any, path: str, depth: int) -> int:
        if id(obj) in self._number:
            number = self._number[id(obj)]
            if number is None:
                raise FileError(f"{path} contains itself, directly or indirectly.")
            return number
        self._number[id(obj)] = None
        self._alive.append(obj)
        exact, state = registry.exact_names(entry, obj), {}
        for name, value in registry.attributes(entry, obj).items():
            if self.report or name not in entry.report:
                state[name] = self.node(value, f"{path}.{name}", name in exact, depth)
        self.objects.append({"class": entry.name, "version": entry.version, "state": state})
        self._number[id(obj)] = len(self.objects) - 1
        return len(self.objects) - 1


def _to_single(value: Array, path: str) -> Array:
    """Convert to float32; overflow is an error."""
    with np.errstate(over="ignore"):
        short = value.astype(np.float32, order="K")
    if (np.isinf(short) & np.isfinite(value)).any():
        raise FileError(f"{path} has values too large for dtype='float32': save without it.")
    return short
