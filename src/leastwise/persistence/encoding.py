"""Objects as a JSON header and arrays, and back.

**Encoding.** In the header, null, booleans, strings, numbers and lists stand for themselves. Every other value is a
JSON object with one key that names its kind, such as ``{"tuple": [...]}``; see docs/files.md.

**Decoding.** Objects are built in the order of the file, each from those before it. So there is no recursion except
into lists and other containers, and no object can contain itself.
"""

from __future__ import annotations

import datetime
import math
from collections import UserList
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.persistence import registry
from leastwise.persistence.container import (
    MAPPED,
    MAX_DIGITS,
    MAX_DIMENSIONS,
    MAX_EMPTY,
    FileError,
    array_entry,
    as_bytes,
    memory_order,
    sha256,
    storable,
)
from leastwise.persistence.fields import Checked, Scope
from leastwise.persistence.named_values import (
    constant_name,
    dtype_node,
    find_constant,
    find_dtype,
    find_function,
    find_type,
    function_name,
    type_name,
)
from leastwise.persistence.random_states import random_generator

Array = np.ndarray

# ----------------------------------------------------------------------- encode


#: Deepest nesting of values.
MAX_DEPTH = 64
#: All uses of arrays together are at most this many times the file, and this many bytes more: checks read every use.
MAX_USES = 16
FREE_USES = 2**28
#: Sparse formats that are stored.
COMPRESSED = ("csr", "csc")
NOT_STORABLE = (
    "which cannot be stored in a model file: it holds numbers, text, arrays and objects of registered classes, but "
    "no code. If predictions do not need the attribute (a scorer or a splitter, for example), set it to something "
    "else before saving; else use skops or joblib, see the page Model files."
)
NOT_DECLARED = (
    "If you have set the attribute yourself, delete it. A class of leastwise declares its fields in "
    "leastwise/persistence/schemas.py or estimator_schemas.py, a class of another package where it is registered."
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
        self._checked: dict[int, Checked] = {}
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
        if kind in (list, tuple, dict, slice):
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
        if kind is slice:
            return {"slice": [self.node(v, path) for v in (value.start, value.stop, value.step)]}
        nodes = [self.node(v, f"{path}[{k}]", exact, depth) for k, v in enumerate(value)]
        return nodes if kind is list else {"tuple": nodes}

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
        if hasattr(value, "get_params"):
            raise FileError(f"{path} is a {kind.__module__}.{kind.__qualname__}. {registry.OTHERS}.")
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
        exact = registry.exact_names(entry, obj)
        kept = {n: v for n, v in registry.attributes(entry, obj).items() if self.report or n not in entry.report}
        values = {n: _plain_lists(v) for n, v in kept.items()}
        state = {n: self.node(v, f"{path}.{n}", n in exact, depth) for n, v in values.items()}
        problem, self._checked[id(obj)] = registry.check(entry, values, Scope(self._checked))
        if problem is not None:
            raise FileError(f"{path}{problem}." + (f" {NOT_DECLARED}" if "is not declared" in problem else ""))
        self.objects.append({"class": entry.name, "version": entry.version, "state": state})
        self._number[id(obj)] = len(self.objects) - 1
        return len(self.objects) - 1


def _plain_lists(value: Any, depth: int = 3) -> Any:
    """Replace a UserList by its list: ColumnTransformer has them in scikit-learn 1.6, and lists in later versions."""
    if isinstance(value, UserList):
        return value.data
    if depth and type(value) in (list, tuple):
        return type(value)(_plain_lists(v, depth - 1) for v in value)
    return value


def _to_single(value: Array, path: str) -> Array:
    """Convert to float32; overflow is an error."""
    with np.errstate(over="ignore"):
        short = value.astype(np.float32, order="K")
    if (np.isinf(short) & np.isfinite(value)).any():
        raise FileError(f"{path} has values too large for dtype='float32': save without it.")
    return short


# ----------------------------------------------------------------------- decode


class Decoder:
    """Builds the objects of a file.

    Parameters
    ----------
    array : callable
        ``array(k)`` reads the k-th array.
    sizes : list of int
        Bytes of all arrays.
    entries : bool
        Whether to check the entries of float arrays.
    """

    def __init__(self, array: Callable[[int], Array], sizes: list[int], entries: bool = True) -> None:
        self._read, self._sizes, self._entries = array, sizes, entries
        self._arrays: dict[int, Array] = {}
        self._uses = MAX_USES * sum(sizes) + FREE_USES
        self._objects: list[Any] = []
        self._checked: dict[int, Checked] = {}
        self._kinds: dict[str, Callable[[Any, int], Any]] = {
            "float": lambda v, _: _float(v),
            "int": lambda v, _: _int(v),
            "tuple": lambda v, depth: tuple(self._list(v, depth)),
            "dict": self._dict,
            "slice": lambda v, depth: slice(*self._three(v, depth)),
            "array": lambda v, _: self._array(v),
            "scalar": self._scalar,
            "objects": self._object_array,
            "sparse": lambda v, _: self._sparse(v),
            "object": lambda v, _: self._object(v),
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
                f"{registry.registered_names()}. {registry.OTHERS}. A class of leastwise needs a newer version; "
                "register a class of another package with leastwise.persistence.registry.register"
            )
        if not isinstance(state, dict):
            raise FileError(f"the attributes of {name} are not a JSON object")
        values = registry.migrate(known, entry["version"], self._attributes(known, state))
        problem, checked = registry.check(known, values, Scope(self._checked, self._entries))
        if problem is not None:
            raise FileError(f"{known.name}{problem}")
        built = registry.build(known, values)
        self._checked[id(built)] = checked
        return built

    def _attributes(self, known: registry.Entry, state: dict[str, Any]) -> dict[str, Any]:
        values = {}
        for key, node in state.items():
            if not key.isidentifier():  # names that are shown in messages
                raise FileError(f"{known.name} has an attribute {key[:80]!r}, which is not declared")
            try:
                values[key] = self.value(node)
            except FileError as error:
                raise FileError(f"{known.name}.{key[:80]}: {error}") from error.__cause__
        return values

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
            try:
                values[key] = value
            except TypeError:
                raise FileError(f"it has a dictionary with a {type(key).__name__} as a key") from None
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
            raise FileError("it has a slice or duration without three integers")
        return values

    # ----------------------------------------------------------------- arrays

    def _array(self, number: Any) -> Array:
        if type(number) is not int or not 0 <= number < len(self._sizes):
            raise FileError(f"it refers to array {str(number)[:20]}, and has {len(self._sizes)} arrays")
        self._uses -= self._sizes[number]
        if self._uses < 0:
            raise FileError(f"it uses its arrays more than {MAX_USES} times")
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
        typed = indices.dtype == indptr.dtype and indices.dtype in (np.int32, np.int64) and data.dtype.kind in "biuf"
        if form not in COMPRESSED or not bounded or not typed:
            raise FileError("it has a sparse matrix that is neither csr nor csc, or has an invalid shape or dtype")
        if not _is_compressed(data, indices, indptr, *(shape if form == "csr" else shape[::-1])):
            raise FileError("it has a sparse matrix with inconsistent indices")
        matrix = cls(tuple(shape), dtype=data.dtype)
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr  # the constructor would copy them
        return matrix

    def _object(self, number: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(self._objects):
            raise FileError(f"it refers to object {str(number)[:20]}, which is not among those before it")
        return self._objects[number]


def _is_side(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _is_compressed(data: Array, indices: Array, indptr: Array, n: int, width: int) -> bool:
    """True if these are the arrays of a compressed matrix of n rows of this width. (SciPy checks less.)"""
    if not data.ndim == indices.ndim == indptr.ndim == 1 or len(data) != len(indices) or len(indptr) != n + 1:
        return False
    if indptr[0] != 0 or indptr[-1] != len(data) or not (indptr[:-1] <= indptr[1:]).all():
        return False
    return not len(indices) or bool(indices.min() >= 0 and indices.max() < width)


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
