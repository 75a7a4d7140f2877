"""From a header and arrays back to objects.

Objects are built in the order in which they stand in the file, each from those before it. So there is no recursion
but into lists and the like, and nothing can hold itself.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np

from leastwise.persistence.arrays import MAX_DIMENSIONS, MAX_EMPTY
from leastwise.persistence.checks import check_compressed, read_random
from leastwise.persistence.container import FileError
from leastwise.persistence.encode import COMPRESSED, MAX_DEPTH, MAX_RANGE
from leastwise.persistence.named import find_constant, find_dtype, find_function, find_type
from leastwise.persistence.registry import build, migrate, table

Array = np.ndarray


class Decoder:
    """Builds the objects of a file; ``array(k)`` reads its k-th array."""

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
            "random": lambda v, depth: read_random(*self._pair(v, depth)),
            "type": lambda v, _: find_type(v),
            "function": lambda v, _: find_function(v),
            "constant": lambda v, _: find_constant(v),
            "dtype": lambda v, depth: find_dtype(self._list(v, depth)),
        }

    def build_all(self, entries: Any, root: Any) -> Any:
        """All objects; the one that ``root`` says."""
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
            raise FileError("it has an object that is not described by a class, a version and a state")
        name, state = entry["class"], entry["state"]
        if not isinstance(name, str) or name not in table():
            raise FileError(
                f"it holds a {str(name)[:80]!r}, which is none of the classes that files may hold (or one of a newer "
                "leastwise)"
            )
        if not isinstance(state, dict):
            raise FileError(f"the attributes of {name} are no JSON object")
        known = table()[name]
        values = {key: self.value(node) for key, node in state.items()}
        return build(known, migrate(known, entry["version"], values))

    def value(self, node: Any, depth: int = 0) -> Any:
        """What a node stands for."""
        if depth > 2 * MAX_DEPTH + 2:  # a key and a list are one level of what was stored
            raise FileError("its header is nested too deeply")
        if isinstance(node, list):
            return self._list(node, depth)
        if not isinstance(node, dict):
            return node
        if len(node) != 1:
            raise FileError(f"it has a value with the keys {sorted(node)[:5]}; there must be one")
        ((kind, content),) = node.items()
        if kind not in self._kinds:
            raise FileError(f"it has a value of the kind {kind[:80]!r}, which is not known")
        return self._kinds[kind](content, depth + 1)

    # ----------------------------------------------------------------- groups

    def _list(self, nodes: Any, depth: int) -> list:
        if not isinstance(nodes, list):
            raise FileError("it has a list that is none")
        return [self.value(node, depth + 1) for node in nodes]

    def _dict(self, pairs: Any, depth: int) -> dict:
        made = {}
        for pair in pairs:
            key, value = self._pair(pair, depth)
            made[key] = value
        if len(made) < len(pairs):
            raise FileError("it has a dictionary with a key twice")
        return made

    def _pair(self, nodes: Any, depth: int) -> list:
        values = self._list(nodes, depth)
        if len(values) != 2:
            raise FileError("it has a pair that is none")
        return values

    def _three(self, nodes: Any, depth: int) -> list:
        values = self._list(nodes, depth)
        if len(values) != 3 or not all(v is None or type(v) is int for v in values):
            raise FileError("it has a slice, range or duration without three whole numbers")
        return values

    # ----------------------------------------------------------------- arrays

    def _array(self, number: Any) -> Array:
        if type(number) is not int or not 0 <= number < self._count:
            raise FileError(f"it speaks of array {str(number)[:20]}, and has {self._count}")
        if number not in self._arrays:
            self._arrays[number] = self._read(number)
        return self._arrays[number]

    def _scalar(self, node: Any, depth: int) -> Any:
        name, value = self._pair(node, depth)
        dtype = find_dtype(["numpy", name])
        if dtype.kind not in "biufU" or type(value) not in (bool, int, float, str):
            raise FileError("it has a NumPy scalar that is none")
        return dtype.type(value)

    def _object_array(self, node: Any, depth: int) -> Array:
        shape, values = self._pair(node, depth)
        array = np.empty(len(values), dtype=object)
        for k, value in enumerate(values):
            array[k] = value
        longest = max(len(values), MAX_EMPTY)
        if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or not all(0 <= n <= longest for n in shape):
            raise FileError("it has an array of objects without a valid shape")
        return array.reshape(shape)

    def _sparse(self, node: Any) -> Any:
        if not isinstance(node, list) or len(node) != 5:
            raise FileError("it has a sparse matrix that is not described by five things")
        cls, shape = find_type(node[0]), node[1]
        form = cls.__name__[:3]
        data, indices, indptr = (self._array(k) for k in node[2:])
        bounded = isinstance(shape, list) and len(shape) == 2 and all(map(_is_width, shape))
        whole = indices.dtype.kind == "i" and indptr.dtype.kind == "i" and data.dtype.kind in "biuf"
        if form not in COMPRESSED or not bounded or not whole:
            raise FileError("it has a sparse matrix of another kind than csr or csc, or without a valid shape")
        check_compressed(data, indices, indptr, *(shape if form == "csr" else shape[::-1]))
        return cls((data, indices, indptr), shape=tuple(shape))

    def _object(self, number: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(self._objects):
            raise FileError(f"it speaks of object {str(number)[:20]} before that is there")
        return self._objects[number]


def _is_width(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _range(start: int, stop: int, step: int) -> range:
    if None in (start, stop, step) or abs(stop - start) > MAX_RANGE * abs(step):  # NumPy would make an array of it
        raise FileError(f"it has a range of more than {MAX_RANGE} numbers")
    return range(start, stop, step)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise FileError("it has a text that is none")
    return value


def _float(value: Any) -> float:
    if value not in ("nan", "inf", "-inf"):
        raise FileError(f"it has a float {str(value)[:20]!r}; written so are nan, inf and -inf alone")
    return float(value)


def _int(value: Any) -> int:
    if len(_text(value)) > 40:
        raise FileError("it has a number of too many digits")
    return int(value)
