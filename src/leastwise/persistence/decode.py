"""Build objects from a header and arrays.

Objects are built in the order of the file, each from those before it. So there is no recursion except into lists and
other containers, and no object can contain itself.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np

from leastwise.persistence import registry
from leastwise.persistence.checks import check_compressed, random_generator
from leastwise.persistence.container import MAX_DIGITS, MAX_DIMENSIONS, MAX_EMPTY, FileError
from leastwise.persistence.encode import COMPRESSED, MAX_DEPTH, MAX_RANGE
from leastwise.persistence.named_values import find_constant, find_dtype, find_function, find_type

Array = np.ndarray


class Decoder:
    """Builds the objects of a file; ``array(k)`` reads the k-th of ``count`` arrays."""

    def __init__(self, array: Callable[[int], Array], count: int) -> None:
        self._read, self._count = array, count
        self._arrays: dict[int, Array] = {}
        self._objects: list[Any] = []
        self._kinds: dict[str, Callable[[Any, int], Any]] = {
            "float": lambda v, _: _float(v),
            "int": lambda v, _: _int(v),
            "tuple": lambda v, depth: tuple(self._list(v, depth)),
            "set": lambda v, depth: set(self._list(v, depth)),
            "frozenset": lambda v, depth: frozenset(self._list(v, depth)),
            "dict": self._dict,
            "slice": lambda v, depth: slice(*self._three(v, depth)),
            "range": lambda v, depth: _range(*self._three(v, depth)),
            "array": lambda v, _: self._array(v),
            "scalar": self._scalar,
            "objects": self._object_array,
            "sparse": lambda v, _: self._sparse(v),
            "object": lambda v, _: self._object(v),
            "bytes": lambda v, _: bytes.fromhex(_text(v)),
            "datetime": lambda v, _: datetime.datetime.fromisoformat(_text(v)),
            "date": lambda v, _: datetime.date.fromisoformat(_text(v)),
            "timedelta": lambda v, depth: datetime.timedelta(*self._three(v, depth)),
            "random": lambda v, depth: random_generator(*self._pair(v, depth)),
            "type": lambda v, _: find_type(v),
            "function": lambda v, _: find_function(v),
            "constant": lambda v, _: find_constant(v),
            "dtype": lambda v, depth: find_dtype(self._list(v, depth)),
        }

    def build_all(self, entries: Any, root: Any) -> Any:
        """Build all objects and return the one with number ``root``."""
        if not isinstance(entries, list):
            raise FileError("its header has no list of objects")
        for number, entry in enumerate(entries):
            try:
                self._objects.append(self._build(entry))
            except (FileError, MemoryError):
                raise
            except Exception as error:
                name = entry.get("class") if isinstance(entry, dict) else "?"
                raise FileError(f"object {number}, a {str(name)[:80]}, cannot be built: {error}") from error
        return self._object(root)

    def _build(self, entry: Any) -> Any:
        if not isinstance(entry, dict) or set(entry) != {"class", "version", "state"}:
            raise FileError("it has an object without class, version and state")
        name, state = entry["class"], entry["state"]
        known = registry.find_name(name) if isinstance(name, str) else None
        if known is None:
            raise FileError(
                f"it has an object of the class {str(name)[:80]!r}, which is not registered. Registered are "
                f"{registry.registered_names()}. A class of leastwise needs a newer version; register a class of "
                "another package with leastwise.persistence.registry.register"
            )
        if not isinstance(state, dict):
            raise FileError(f"the attributes of {name} are not a JSON object")
        values = {key: self.value(node) for key, node in state.items()}
        return registry.build(known, registry.migrate(known, entry["version"], values))

    def value(self, node: Any, depth: int = 0) -> Any:
        """The value of a node."""
        if depth > 2 * MAX_DEPTH + 2:  # one level of values has up to two levels of nodes
            raise FileError("its header is nested too deeply")
        if isinstance(node, list):
            return self._list(node, depth)
        if not isinstance(node, dict):
            return node
        if len(node) != 1:
            raise FileError(f"it has a value with the keys {sorted(node)[:5]}; there must be exactly one")
        ((kind, content),) = node.items()
        if kind not in self._kinds:
            raise FileError(f"it has a value of the unknown kind {kind[:80]!r}")
        return self._kinds[kind](content, depth + 1)

    # ------------------------------------------------------------- containers

    def _list(self, nodes: Any, depth: int) -> list:
        if not isinstance(nodes, list):
            raise FileError("it has a list that is not a JSON list")
        return [self.value(node, depth + 1) for node in nodes]

    def _dict(self, pairs: Any, depth: int) -> dict:
        values = {}
        for pair in pairs:
            key, value = self._pair(pair, depth)
            values[key] = value
        if len(values) < len(pairs):
            raise FileError("it has a dictionary with a duplicate key")
        return values

    def _pair(self, nodes: Any, depth: int) -> list:
        values = self._list(nodes, depth)
        if len(values) != 2:
            raise FileError("it has a pair without two values")
        return values

    def _three(self, nodes: Any, depth: int) -> list:
        values = self._list(nodes, depth)
        if len(values) != 3 or not all(v is None or type(v) is int for v in values):
            raise FileError("it has a slice, range or duration without three integers")
        return values

    # ----------------------------------------------------------------- arrays

    def _array(self, number: Any) -> Array:
        if type(number) is not int or not 0 <= number < self._count:
            raise FileError(f"it refers to array {str(number)[:20]}, and has {self._count} arrays")
        if number not in self._arrays:
            self._arrays[number] = self._read(number)
        return self._arrays[number]

    def _scalar(self, node: Any, depth: int) -> Any:
        name, value = self._pair(node, depth)
        dtype = find_dtype(["numpy", name])
        if dtype.kind not in "biufU" or type(value) not in (bool, int, float, str):
            raise FileError("it has an invalid NumPy scalar")
        return dtype.type(value)

    def _object_array(self, node: Any, depth: int) -> Array:
        shape, values = self._pair(node, depth)
        array = np.empty(len(values), dtype=object)
        for k, value in enumerate(values):
            array[k] = value
        longest = max(len(values), MAX_EMPTY)
        if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or not all(0 <= n <= longest for n in shape):
            raise FileError("it has an object array with an invalid shape")
        return array.reshape(shape)

    def _sparse(self, node: Any) -> Any:
        if not isinstance(node, list) or len(node) != 5:
            raise FileError("it has a sparse matrix without type, shape and three arrays")
        cls, shape = find_type(node[0]), node[1]
        form = cls.__name__[:3]
        data, indices, indptr = (self._array(k) for k in node[2:])
        bounded = isinstance(shape, list) and len(shape) == 2 and all(map(_is_side, shape))
        typed = indices.dtype.kind == "i" and indptr.dtype.kind == "i" and data.dtype.kind in "biuf"
        if form not in COMPRESSED or not bounded or not typed:
            raise FileError("it has a sparse matrix that is neither csr nor csc, or has an invalid shape or dtype")
        check_compressed(data, indices, indptr, *(shape if form == "csr" else shape[::-1]))
        return cls((data, indices, indptr), shape=tuple(shape))

    def _object(self, number: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(self._objects):
            raise FileError(f"it refers to object {str(number)[:20]}, which is not among those before it")
        return self._objects[number]


def _is_side(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _range(start: int, stop: int, step: int) -> range:
    if None in (start, stop, step) or abs(stop - start) > MAX_RANGE * abs(step):  # NumPy may convert it to an array
        raise FileError(f"it has a range of more than {MAX_RANGE} numbers")
    return range(start, stop, step)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise FileError("it has a text value that is not a string")
    return value


def _float(value: Any) -> float:
    if value not in ("nan", "inf", "-inf"):
        raise FileError(f"it has the float {str(value)[:20]!r}; only nan, inf and -inf are written this way")
    return float(value)


def _int(value: Any) -> int:
    if len(_text(value)) > MAX_DIGITS:
        raise FileError("it has an integer with too many digits")
    return int(value)
