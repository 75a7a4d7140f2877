"""The registry of classes that may stand in a model file, with their fields.

A file refers to classes by names of its own, which do not change when a module moves or a class is renamed. Nothing
but registered classes is imported or built, and these are built from the fields that they declare, after all of them
have been checked (:mod:`leastwise.persistence.fields`). The classes of leastwise are declared in
:mod:`leastwise.persistence.schemas` and :mod:`leastwise.persistence.estimator_schemas`, those of scikit-learn in
:mod:`leastwise.persistence.sklearn_schemas`. A class of another package is registered at run time, before saving and
before loading::

    from leastwise.persistence import registry
    from leastwise.persistence.fields import Floats, Real

    registry.register(
        MyCalibrator, "mypackage.MyCalibrator", "calibrator", {"shares": Floats("n_classes"), "power": Real(low=0)}
    )

Fields of a dataclass that are annotated as ``bool``, ``int``, ``float`` or ``str`` need no declaration, unless they
have a range. Kernels and scales of other packages need no entry here: ``register_kernel("cauchy", fields={...})``
declares their fields, and the kernel "cauchy" is ``kernel.cauchy`` in files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

from leastwise.persistence import fields as types
from leastwise.persistence.container import FileError
from leastwise.persistence.fields import Checked, Field, Scope
from leastwise.problem.inputs import SCALES
from leastwise.problem.kernels import KERNELS

State = dict[str, Any]

#: The places that an object of a registered class can stand in; see :class:`leastwise.persistence.fields.Part`.
ROLES = (
    *("kernel", "scale", "calibrator", "label_calibrator", "recalibration", "splitter"),
    *("estimator", "wrapper", "transformer", "part"),
)
#: Objects in an object, counted as often as they are reached, and the longest path to one.
MAX_OBJECTS = 10**6
MAX_DEPTH = 32
#: What a class that is not registered should use.
OTHERS = (
    "Model files contain estimators of leastwise and the usual preprocessing (see the page Model files). Save other "
    "estimators with skops (skops.io.dump)"
)


@dataclass(frozen=True)
class Entry:
    """A registered class.

    Attributes
    ----------
    name : str
        Its name in files, for ever.
    location : str or type
        ``module:Class``, imported when it is needed, or the class itself.
    role : str
        One of ``ROLES``: where it may stand.
    fields : mapping of str to Field
        The values that its attributes take. Attributes that are not declared are neither written nor read.
    check : callable, optional
        Called with the checked attributes, and the sizes; returns a problem or None. For what fields cannot say.
    version : int
        Version of its attributes. Increase it when their meaning changes, and add a migration.
    migrations : mapping of int to callable
        From the attributes of that version to those of the next. (New fields of dataclasses that have a default, and
        new parameters of estimators, need none.)
    skip : tuple of str
        Attributes that are not stored because they can be recomputed, or depend on the machine.
    report : tuple of str
        Attributes that ``keep="predict"`` leaves out.
    exact : bool or tuple of str
        Attributes that keep their precision with ``dtype="float32"``; True for all. Parameters always do.
    """

    name: str
    location: str | type
    role: str = "part"
    fields: Mapping[str, Field] = field(default_factory=dict)
    check: Callable[[State, dict[str, int]], str | None] | None = None
    version: int = 1
    migrations: Mapping[int, Callable[[State], State]] = field(default_factory=dict)
    skip: tuple[str, ...] = ()
    report: tuple[str, ...] = ()
    exact: bool | tuple[str, ...] = ()

    @property
    def class_name(self) -> str:
        """The name of the class in Python."""
        return self.location.split(":")[1] if isinstance(self.location, str) else self.location.__name__

    @property
    def cls(self) -> type:
        """The class; its module is imported if necessary."""
        if isinstance(self.location, type):
            return self.location
        module, name = self.location.split(":")
        return getattr(import_module(module), name)

    @property
    def estimator(self) -> bool:
        """True if it is an estimator, not a part of one."""
        return self.role in ("estimator", "wrapper", "transformer")

    @property
    def from_sklearn(self) -> bool:
        """True if the class is one of scikit-learn's."""
        return self.name.startswith("sklearn.")

    @property
    def declared(self) -> dict[str, Field]:
        """All fields: those that annotations of a dataclass declare, and those of the entry.

        Estimators share tables of parameters; each has those of its ``__init__``.
        """
        if not self.estimator:
            return {**_annotated(self.cls), **self.fields}
        own = parameter_defaults(self.cls)
        return {n: f for n, f in self.fields.items() if n in own or n.startswith("_") or n.endswith("_")}


#: All registered classes, by their names in files.
ENTRIES: dict[str, Entry] = {}


def register(
    cls: type | str, name: str, role: str = "part", fields: Mapping[str, Field] | None = None, **options: Any
) -> None:
    """Allow a class in model files.

    Parameters
    ----------
    cls : type or str
        The class, or ``module:Class``, which is imported when it is needed.
    name : str
        Its name in files. Use a prefix of your own, such as ``"mypackage.MyCalibrator"``.
    role : str
        Where it may stand: "kernel", "calibrator", "estimator", ..., see ``ROLES``.
    fields : mapping of str to Field, optional
        The values that its attributes take.
    **options
        Other fields of :class:`Entry`, such as ``exact=True``, ``version=2`` or ``check=function``.
    """
    if role not in ROLES:
        raise ValueError(f"role={role!r}: use one of {list(ROLES)}.")
    entry = Entry(name, cls, role, dict(fields or {}), **options)
    known = ENTRIES.get(name)
    if known is not None and _qualified_name(known) != _qualified_name(entry):  # else a module that was reloaded
        raise ValueError(f"The name {name!r} is already registered for {_qualified_name(known)}: use another name.")
    elsewhere = [entry.name for entry in _registered_elsewhere()]
    if isinstance(cls, type) and (other := find(cls)) is not None and other.name not in (name, *elsewhere):
        raise ValueError(f"{cls.__qualname__} is already registered under the name {other.name!r}.")
    ENTRIES[name] = entry


def _qualified_name(entry: Entry) -> str:
    place = entry.location
    return place if isinstance(place, str) else f"{place.__module__}:{place.__qualname__}"


def find(cls: type) -> Entry | None:
    """The entry of a class; None if it is not registered. Only modules with a class of that name are imported."""
    same_name = [entry for entry in [*ENTRIES.values(), *_registered_elsewhere()] if entry.class_name == cls.__name__]
    return next((entry for entry in same_name if entry.cls is cls), None)


def find_name(name: str) -> Entry | None:
    """The entry of a name in files; None if it is not registered."""
    return ENTRIES.get(name) or next((entry for entry in _registered_elsewhere() if entry.name == name), None)


def _registered_elsewhere() -> list[Entry]:
    """Entries of kernels and scales that other packages registered by name."""
    named: list[tuple[str, type, str]] = [(f"kernel.{name}", cls, "kernel") for name, cls in KERNELS.items()]
    named += [(f"inputs.{name}", cls, "scale") for name, cls in SCALES.items()]
    return [
        Entry(name, cls, role, getattr(cls, "file_fields", {}))
        for name, cls, role in named
        if not cls.__module__.startswith("leastwise.")
    ]


def registered_names(estimators: bool = False) -> str:
    """All names in the registry, or those of estimators alone, grouped by prefix: for error messages."""
    groups: dict[str, list[str]] = {}
    for entry in ENTRIES.values():
        if entry.estimator or not estimators:
            prefix, _, short = entry.name.rpartition(".")
            groups.setdefault(prefix, []).append(short)
    return "; ".join((f"{prefix}: " if prefix else "") + ", ".join(names) for prefix, names in groups.items())


# ---------------------------------------------------- objects and their attributes

#: Fields of a dataclass by the text of their annotation.
ANNOTATIONS: dict[str, Field] = {
    "bool": types.Bool(),
    "int": types.Int(),
    "float": types.Real(),
    "str": types.Text(),
    "float | None": types.Maybe(types.Real()),
    "int | None": types.Maybe(types.Int()),
    "str | None": types.Maybe(types.Text()),
}


@cache
def _annotated(cls: type) -> dict[str, Field]:
    """The fields of a dataclass that its annotations declare."""
    if not is_dataclass(cls):
        return {}
    written = {f.name: f.type if isinstance(f.type, str) else getattr(f.type, "__name__", "") for f in _fields(cls)}
    return {name: ANNOTATIONS[text] for name, text in written.items() if text in ANNOTATIONS}


def _fields(cls: Any) -> tuple[Any, ...]:
    return dataclasses.fields(cls)


@cache
def parameter_defaults(cls: type) -> State:
    """The parameters of ``__init__`` with their defaults."""
    init: Any = getattr(cls, "__init__")  # noqa: B009
    parameters = [] if init is object.__init__ else list(signature(init).parameters.values())[1:]
    return {p.name: p.default for p in parameters if p.kind not in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)}


def attributes(entry: Entry, obj: Any) -> State:
    """The attributes of an object that are stored: the fields of a dataclass, else ``vars``."""
    names = [f.name for f in _fields(obj)] if is_dataclass(obj) else list(vars(obj))
    return {name: getattr(obj, name) for name in names if name not in entry.skip}


def exact_names(entry: Entry, obj: Any) -> set[str]:
    """Attributes that keep their precision with ``dtype="float32"``."""
    if entry.exact is True or entry.from_sklearn:
        return set(attributes(entry, obj))
    cls: Any = type(obj)
    return {*(entry.exact or ()), *(() if is_dataclass(cls) else parameter_defaults(cls))}


def check(entry: Entry, state: State, scope: Scope) -> tuple[str | None, Checked]:
    """What is wrong with the attributes of an object, and what other objects need to know about it.

    The problem begins with a point and the name of an attribute.
    """
    declared = entry.declared
    problem = _unknown_or_missing(entry, declared, state) or _wrong_value(declared, state, scope)
    if problem is None and entry.check is not None and (found := entry.check(state, scope.sizes)):
        problem = f".{found}"
    n_objects, depth = 1 + sum(p.n_objects for p in scope.used), 1 + max((p.depth for p in scope.used), default=0)
    if problem is None and (n_objects > MAX_OBJECTS or depth > MAX_DEPTH):
        problem = f" has {n_objects} objects nested {depth} deep; at most {MAX_OBJECTS} and {MAX_DEPTH} are allowed"
    return problem, Checked(entry.name, entry.role, scope.sizes, n_objects, depth)


def _unknown_or_missing(entry: Entry, declared: dict[str, Field], state: State) -> str | None:
    unknown = [name for name in state if name not in declared]
    if unknown:
        return f".{unknown[0][:80]} is not declared: {entry.name} has no such field in its schema"
    cls: Any = entry.cls
    default = {name for name, value in parameter_defaults(cls).items() if value is not Parameter.empty}
    fitted = any(name.endswith("_") and not name.startswith("_") for name in state)
    if entry.estimator and not fitted:
        return None
    needed = (n for n, f in declared.items() if not isinstance(f, types.Optional) and n not in default)
    missing = [name for name in needed if name not in state and name not in entry.report]
    return f".{missing[0]} is missing" if missing else None


def _wrong_value(declared: dict[str, Field], state: State, scope: Scope) -> str | None:
    for scope.at, each in declared.items():
        if scope.at in state and (found := each.problem(state[scope.at], scope)) is not None:
            return f".{scope.at}{found}"
    return None if (found := scope.index_problem()) is None else f".{found}"


def migrate(entry: Entry, version: Any, state: State) -> State:
    """Bring attributes of an older version up to date."""
    if type(version) is not int or version < 1:
        raise FileError(f"{entry.name} has the invalid version {version!r}")
    if version > entry.version:
        raise FileError(
            f"{entry.name} has version {version}, and this leastwise reads versions up to {entry.version}: the file "
            "was written by a newer one. Upgrade leastwise to read it"
        )
    for old in range(version, entry.version):
        state = entry.migrations[old](state)
    return state


def build(entry: Entry, state: State) -> Any:
    """Build an object from checked attributes. No code of the class runs, except ``__init__`` of dataclasses."""
    cls = entry.cls
    if is_dataclass(cls):
        return cls(**state)
    defaults = {name: value for name, value in parameter_defaults(cls).items() if value is not Parameter.empty}
    obj: Any = object.__new__(cls)
    vars(obj).update({**defaults, **state})
    return obj
