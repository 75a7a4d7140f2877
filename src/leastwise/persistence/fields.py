"""Types of the fields of objects in model files.

Every class that may stand in a file declares its fields. A field knows which values it takes: their type (True is not
1), dtype, shape, range. ``Size`` names tie fields together: in ::

    {"coef": Floats("n_centers", "n_outputs"), "intercept": Floats("n_outputs")}

the second axis of ``coef`` is as long as ``intercept``. :class:`Part` ties the sizes of an object to those of the
objects in it. Values are checked when a file is written and when it is read, before anything is built from them.

``problem(value, scope)`` of a field is None for a value that it takes. Else it is the rest of a sentence that begins
with the name of the field, such as " is 2; expected True or False".
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from leastwise.persistence.named_values import constant_name, dtype_node, function_name, type_name

#: A length: a number, a name that all fields of an object share, a name plus a number ("n_tasks+1"), or any.
Size = int | str | None
#: Deepest nesting of tuples in a name.
MAX_DEPTH = 8


@dataclass(frozen=True)
class Checked:
    """A checked object: its name and role in the registry, its sizes, and the objects in it.

    ``n_objects`` counts an object as often as it is reached, and ``depth`` is the longest path.
    """

    name: str
    role: str
    sizes: Mapping[str, int]
    n_objects: int
    depth: int


@dataclass
class Scope:
    """What the fields of one object share while they are checked.

    Attributes
    ----------
    parts : mapping of int to Checked
        Objects that were checked before, by ``id``.
    entries : bool
        Whether to check the entries of float arrays, which reads them.
    sizes : dict of str to int
    at : str
        Name of the field that is checked.
    largest : dict of (str, str) to int
        The largest index in a field, and the size that it stays below: compared when all sizes are known.
    used : list of Checked
        The objects that are reached.
    """

    parts: Mapping[int, Checked]
    entries: bool = True
    sizes: dict[str, int] = field(default_factory=dict)
    at: str = ""
    largest: dict[tuple[str, str], int] = field(default_factory=dict)
    used: list[Checked] = field(default_factory=list)

    def fits(self, size: Size, n: int) -> bool:
        """True if ``n`` is this size; a name that is new gets its value from it."""
        if size is None or isinstance(size, int):
            return size is None or size == n
        name, _, more = size.partition("+")
        n -= int(more or 0)
        return n >= 0 and self.sizes.setdefault(name, n) == n

    def shown(self, size: Size) -> str:
        """The size for a message, with its value."""
        name, plus, more = str("any" if size is None else size).partition("+")
        known = self.sizes.get(name)
        return f"{name}{plus}{more}" + ("" if known is None else f" = {known + int(more or 0)}")

    def index(self, largest: int, size: str) -> None:
        """Note an index that must stay below a size."""
        key = (self.at, size)
        self.largest[key] = max(largest, self.largest.get(key, largest))

    def index_problem(self) -> str | None:
        """The first index that is not below its size, with the name of the field; None if there is none."""
        for (at, size), largest in self.largest.items():
            if largest >= self.sizes.get(size, 0):
                return f"{at} has {largest}; expected less than {self.shown(size)}"
        return None

    def same(self, name: str, n: int) -> str | None:
        """A problem if the size with this name is known and is not ``n``."""
        return None if self.fits(name, n) else f" has {name} = {n}; expected {self.sizes[name]}"


class Field(Protocol):
    """The values that a field takes."""

    def problem(self, value: Any, scope: Scope) -> str | None:
        """What is wrong with a value; None if nothing is."""
        ...


def shown(value: Any) -> str:
    """A value for a message, cut short."""
    if isinstance(value, np.ndarray):
        return f"an array of dtype {value.dtype} and shape {value.shape}"
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        text = repr(value)
        return text if len(text) <= 60 else text[:60] + "..."
    return f"a {type(value).__name__}"


def wrong(value: Any, expected: str) -> str:
    """The usual problem."""
    return f" is {shown(value)}; expected {expected}"


# ----------------------------------------------------------------------- scalars


@dataclass(frozen=True)
class Bool:
    """True or False."""

    def problem(self, value: Any, scope: Scope) -> str | None:
        return None if type(value) is bool else wrong(value, "True or False")


@dataclass(frozen=True)
class Int:
    """An integer from ``low`` to ``high``. ``size`` names it, and ``below`` is a size that it stays below."""

    low: int = -(2**63)
    high: int = 2**63 - 1
    size: str | None = None
    below: str | None = None

    def problem(self, value: Any, scope: Scope) -> str | None:
        integer = type(value) is int or isinstance(value, np.integer)
        if not integer or not self.low <= value <= self.high:
            return wrong(value, f"an integer from {self.low} to {self.high}")
        if self.size is not None and not scope.fits(self.size, int(value)):
            return wrong(value, scope.shown(self.size))
        if self.below is not None:
            scope.index(int(value), self.below)
        return None


@dataclass(frozen=True)
class Real:
    """A number from ``low`` to ``high``; unless ``finite``, also NaN, and infinities if they are in the range.

    Integers have 64 bits: NumPy does not calculate with larger ones.
    """

    low: float = -math.inf
    high: float = math.inf
    finite: bool = True

    def problem(self, value: Any, scope: Scope) -> str | None:
        number = type(value) in (int, float) or isinstance(value, np.integer | np.floating)
        number = number and (type(value) is not int or -(2**63) <= value < 2**63)
        if number and self.low <= value <= self.high and (not self.finite or abs(value) < math.inf):
            return None
        if number and value != value and not self.finite:
            return None
        return wrong(value, f"a {'finite ' if self.finite else ''}number from {self.low} to {self.high}")


@dataclass(frozen=True, init=False)
class Text:
    """Text: one of ``choices``, or any."""

    choices: tuple[str, ...]

    def __init__(self, *choices: str) -> None:
        object.__setattr__(self, "choices", choices)

    def problem(self, value: Any, scope: Scope) -> str | None:
        if type(value) in (str, np.str_) and (not self.choices or value in self.choices):
            return None
        return wrong(value, f"one of {list(self.choices)}" if self.choices else "text")


@dataclass(frozen=True)
class Null:
    """None."""

    def problem(self, value: Any, scope: Scope) -> str | None:
        return None if value is None else wrong(value, "None")


SCALARS = (bool, int, float, str, datetime.datetime, datetime.date, datetime.timedelta)


@dataclass(frozen=True)
class Scalar:
    """A number, text, a truth value, a time, or something missing: what a cell of a table may hold."""

    def problem(self, value: Any, scope: Scope) -> str | None:
        cell = value is None or type(value) in SCALARS or isinstance(value, np.generic)
        return None if cell or constant_name(value) is not None else wrong(value, "a number, text or a time")


@dataclass(frozen=True)
class Name:
    """The id of a task, class or label: a scalar, or a tuple of these."""

    def problem(self, value: Any, scope: Scope, depth: int = 0) -> str | None:
        if type(value) is not tuple:
            return Scalar().problem(value, scope)
        if depth > MAX_DEPTH:
            return f" is a tuple nested more than {MAX_DEPTH} deep"
        return next((p for each in value if (p := self.problem(each, scope, depth + 1))), None)


@dataclass(frozen=True)
class Plain:
    """A scalar, or lists and dictionaries of scalars: what JSON can hold."""

    def problem(self, value: Any, scope: Scope, depth: int = 0) -> str | None:
        if type(value) not in (list, dict) or depth > MAX_DEPTH:
            return Scalar().problem(value, scope)
        inner = value if type(value) is list else [*value.values(), *value]
        return next((p for each in inner if (p := self.problem(each, scope, depth + 1))), None)


# ----------------------------------------------------------------------- choices


@dataclass(frozen=True, init=False)
class OneOf:
    """A value that one of several fields takes."""

    fields: tuple[Field, ...]

    def __init__(self, *fields: Field) -> None:
        object.__setattr__(self, "fields", fields)

    def problem(self, value: Any, scope: Scope) -> str | None:
        problems = []
        for each in self.fields:
            trial = Scope(scope.parts, scope.entries, dict(scope.sizes), scope.at)
            found = each.problem(value, trial)
            if found is None:
                scope.sizes.update(trial.sizes)
                for (_, size), largest in trial.largest.items():
                    scope.index(largest, size)
                scope.used += trial.used
                return None
            problems.append(found)
        prefix = wrong(value, "")
        deeper = [found for found in problems if not found.startswith(prefix)]
        return deeper[0] if deeper else prefix + ", or ".join(found.removeprefix(prefix) for found in problems)


def Maybe(*fields: Field) -> OneOf:
    """A value that one of the fields takes, or None."""
    return OneOf(Null(), *fields)


@dataclass(frozen=True)
class Optional:
    """A field that an object may lack."""

    field: Field

    def problem(self, value: Any, scope: Scope) -> str | None:
        return self.field.problem(value, scope)


# ------------------------------------------------------------------------ arrays


@dataclass(frozen=True, init=False)
class Array:
    """An array of numbers, truth values, text or times.

    Parameters
    ----------
    kinds : str
        Kinds of dtype as in ``numpy.dtype.kind``; floats have four or eight bytes.
    *shape : Size
        The length of each axis.
    low, high : float
        Range of the entries.
    below : str, optional
        A size that all entries stay below: they are indices.
    finite : bool
        False if there may be NaN, and infinities in the range.
    order : {"rising", "strict"}, optional
        Entries of a one-dimensional array of numbers do not fall, or rise.
    """

    kinds: str
    shape: tuple[Size, ...]
    low: float
    high: float
    below: str | None
    finite: bool
    order: str | None

    def __init__(
        self,
        kinds: str,
        *shape: Size,
        low: float = -math.inf,
        high: float = math.inf,
        below: str | None = None,
        finite: bool = True,
        order: str | None = None,
    ) -> None:
        for name, value in list(locals().items()):
            if name != "self":
                object.__setattr__(self, name, value)

    def problem(self, value: Any, scope: Scope) -> str | None:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in self.kinds or value.dtype == np.float16:
            return wrong(value, f"an array with a dtype of kind {' or '.join(self.kinds)}")
        fits = value.ndim == len(self.shape) and all(map(scope.fits, self.shape, value.shape))
        if not fits:
            return f" has the shape {value.shape}; expected ({', '.join(map(scope.shown, self.shape))})"
        if value.size and value.dtype.kind in "iuf" and (scope.entries or value.dtype.kind != "f" or self.order):
            return self._entries_problem(value, scope)
        return None

    def _entries_problem(self, value: np.ndarray, scope: Scope) -> str | None:
        """The smallest and largest entries are NaN if any entry is."""
        low, high = value.min(), value.max()
        if not self.finite:
            low, high = np.fmin.reduce(value, axis=None), np.fmax.reduce(value, axis=None)
        elif not (np.isfinite(low) and np.isfinite(high)):
            return " has entries that are not finite"
        if low < self.low or high > self.high:
            return f" has entries from {low} to {high}; expected {self.low} to {self.high}"
        if self.order is not None and not _in_order(value, self.order):
            return " is not in rising order"
        if self.below is not None:
            scope.index(int(high), self.below)
        return None


def _in_order(value: np.ndarray, order: str) -> bool:
    return bool((value[:-1] < value[1:]).all() if order == "strict" else (value[:-1] <= value[1:]).all())


def Floats(*shape: Size, **options: Any) -> Array:
    """An array of floats."""
    return Array("f", *shape, **options)


def Ints(*shape: Size, **options: Any) -> Array:
    """An array of integers."""
    return Array("i", *shape, **options)


@dataclass(frozen=True, init=False)
class Objects:
    """An array of Python objects, all of which a field takes."""

    field: Field
    shape: tuple[Size, ...]

    def __init__(self, field: Field, *shape: Size) -> None:
        object.__setattr__(self, "field", field)
        object.__setattr__(self, "shape", shape)

    def problem(self, value: Any, scope: Scope) -> str | None:
        if not isinstance(value, np.ndarray) or value.dtype != object:
            return wrong(value, "an array of objects")
        if value.ndim != len(self.shape) or not all(map(scope.fits, self.shape, value.shape)):
            return f" has the shape {value.shape}; expected ({', '.join(map(scope.shown, self.shape))})"
        return _first_problem(self.field, value.ravel().tolist(), scope)


@dataclass(frozen=True, init=False)
class Rows:
    """A matrix of floats, dense or compressed sparse; finite unless ``finite=False``."""

    shape: tuple[Size, ...]
    finite: bool

    def __init__(self, *shape: Size, finite: bool = True) -> None:
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "finite", finite)

    def problem(self, value: Any, scope: Scope) -> str | None:
        if not sparse.issparse(value):
            return Floats(*self.shape, finite=self.finite).problem(value, scope)
        if not all(map(scope.fits, self.shape, value.shape)):
            return f" has the shape {value.shape}; expected ({', '.join(map(scope.shown, self.shape))})"
        return Floats(None, finite=self.finite).problem(value.data, scope)


def Names(size: Size = None) -> OneOf:
    """The sorted classes of a target, or the ids of tasks and labels: an array with one axis."""
    return OneOf(Array("biufUM", size, finite=False), Objects(Name(), size))


# -------------------------------------------------------------------- containers


@dataclass(frozen=True)
class ListOf:
    """A list of values that a field takes."""

    field: Field
    size: Size = None
    kind: type = list

    def problem(self, value: Any, scope: Scope) -> str | None:
        if not isinstance(value, list | tuple) or type(value) is not self.kind:
            return wrong(value, f"a {self.kind.__name__}")
        if not scope.fits(self.size, len(value)):
            return f" has {len(value)} items; expected {scope.shown(self.size)}"
        return _first_problem(self.field, value, scope)


def TupleOf(field: Field, size: Size = None) -> ListOf:
    """A tuple of values that a field takes."""
    return ListOf(field, size, tuple)


def Sequence(field: Field, size: Size = None) -> OneOf:
    """A list or a tuple of values that a field takes."""
    return OneOf(ListOf(field, size), TupleOf(field, size))


def _first_problem(field: Field, values: Any, scope: Scope) -> str | None:
    for k, value in enumerate(values):
        found = field.problem(value, scope)
        if found is not None:
            return f"[{k}]{found}"
    return None


@dataclass(frozen=True, init=False)
class Record:
    """A tuple with one field for each place."""

    fields: tuple[Field, ...]

    def __init__(self, *fields: Field) -> None:
        object.__setattr__(self, "fields", fields)

    def problem(self, value: Any, scope: Scope) -> str | None:
        if type(value) is not tuple or len(value) != len(self.fields):
            return wrong(value, f"a tuple of {len(self.fields)} values")
        for k, (each, item) in enumerate(zip(self.fields, value, strict=True)):
            if (found := each.problem(item, scope)) is not None:
                return f"[{k}]{found}"
        return None


@dataclass(frozen=True)
class DictOf:
    """A dictionary; ``required`` keys must be there."""

    keys: Field
    values: Field
    size: Size = None

    def problem(self, value: Any, scope: Scope) -> str | None:
        if type(value) is not dict:
            return wrong(value, "a dict")
        if not scope.fits(self.size, len(value)):
            return f" has {len(value)} items; expected {scope.shown(self.size)}"
        for key, item in value.items():
            if (found := self.keys.problem(key, scope)) is not None:
                return f": a key{found}"
            if (found := self.values.problem(item, scope)) is not None:
                return f"[{key!r:.60}]{found}"
        return None


# --------------------------------------------------------------- objects and names


@dataclass(frozen=True, init=False)
class Part:
    """An object of a registered class, named by its name or its role.

    ``sizes`` are those that it has in common with the object that it is part of; "ours=theirs" where names differ.
    """

    roles: tuple[str, ...]
    sizes: tuple[str, ...]

    def __init__(self, *roles: str, sizes: tuple[str, ...] = ()) -> None:
        object.__setattr__(self, "roles", roles)
        object.__setattr__(self, "sizes", sizes)

    def problem(self, value: Any, scope: Scope) -> str | None:
        known = scope.parts.get(id(value))
        if known is None or not {known.name, known.role} & set(self.roles):
            return wrong(value, f"an object of the kind {' or '.join(self.roles)}")
        scope.used.append(known)
        for size in self.sizes:
            ours, _, theirs = size.partition("=")
            n = known.sizes.get(theirs or ours)
            if n is not None and (found := scope.same(ours, n)) is not None:
                return found
        return None


@dataclass(frozen=True)
class Function:
    """One of the listed functions."""

    def problem(self, value: Any, scope: Scope) -> str | None:
        return None if function_name(value) is not None else wrong(value, "a function that files may name")


@dataclass(frozen=True)
class DType:
    """A listed type, or a dtype of NumPy, pandas or polars."""

    def problem(self, value: Any, scope: Scope) -> str | None:
        known = type_name(value) is not None or dtype_node(value) is not None
        return None if known else wrong(value, "a type or dtype that files may name")


@dataclass(frozen=True)
class RandomSource:
    """None, a seed, or a random generator of NumPy (decoding checks its state)."""

    def problem(self, value: Any, scope: Scope) -> str | None:
        if value is None or isinstance(value, np.random.RandomState | np.random.Generator):
            return None
        return Int(0, 2**32 - 1).problem(value, scope)


@dataclass(frozen=True)
class Slice:
    """A slice of integers from 0 on, with step 1, within ``size``; ``by_name`` also takes names of columns."""

    size: str | None = None
    by_name: bool = False

    def problem(self, value: Any, scope: Scope) -> str | None:
        if type(value) is not slice:
            return wrong(value, "a slice")
        kinds = (int, str, type(None)) if self.by_name else (int,)
        ends = (value.start, value.stop)
        if any(type(end) not in kinds for end in ends) or value.step not in (None, 1) or value.step is True:
            return f" is {value!r:.60}; expected a slice with step 1"
        if not self.by_name and not 0 <= value.start <= value.stop:
            return f" is {value!r:.60}; expected 0 <= start <= stop"
        return None
