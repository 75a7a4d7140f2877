"""Which classes a file may hold, and under which names.

A file speaks of classes by names of its own, which stay the same when a module moves. Nothing that is not listed in
:mod:`leastwise.persistence.classes` is imported, let alone built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

from leastwise.persistence.container import FileError

State = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """A class that may stand in a file.

    Attributes
    ----------
    name : str
        What files call it, for ever.
    path : str
        ``module:Class``, where it is now.
    version : int
        Of its attributes. Raise it where they change their meaning, and add a migration.
    migrations : mapping of int to callable
        From the attributes of that version to those of the next. (Attributes of dataclasses that are new and have a
        default, and new parameters of estimators, need none.)
    skip : tuple of str
        Attributes that are not stored, since they can be had again.
    report : tuple of str
        Attributes that ``keep="predict"`` leaves out.
    exact : bool or tuple of str
        Attributes that keep their precision with ``dtype="float32"``; True for all. Parameters always do.
    check : callable, optional
        Called with the attributes before the object is built; raises an error where code below Python would not.
    build : callable, optional
        Called with the class and the attributes, in the place of what is usual.
    """

    name: str
    path: str
    version: int = 1
    migrations: Mapping[int, Callable[[State], State]] = field(default_factory=dict)
    skip: tuple[str, ...] = ()
    report: tuple[str, ...] = ()
    exact: bool | tuple[str, ...] = ()
    check: Callable[[State], None] | None = None
    build: Callable[[type, State], Any] | None = None

    @property
    def cls(self) -> type:
        """The class, imported now."""
        module, name = self.path.split(":")
        return getattr(import_module(module), name)

    @property
    def foreign(self) -> bool:
        """Whether the class is scikit-learn's."""
        return self.path.startswith("sklearn.")


@cache
def table() -> Mapping[str, Entry]:
    """All entries by name."""
    from leastwise.persistence.classes import ENTRIES

    made = {entry.name: entry for entry in ENTRIES}
    if len(made) < len(ENTRIES):
        raise ValueError("Two classes have the same name in files.")
    return made


def entry_of(cls: type) -> Entry | None:
    """The entry of a class; None where it has none."""
    same = (entry for entry in table().values() if entry.path.endswith(f":{cls.__name__}"))
    return next((entry for entry in same if entry.cls is cls), None)


def is_estimator(name: str) -> bool:
    """Whether a name is that of an estimator, not of a part of one."""
    return name.startswith("sklearn.") or "." not in name


def attributes(entry: Entry, thing: Any) -> State:
    """What is stored of an object: the fields of a dataclass, else all that it has."""
    names = [f.name for f in fields(thing)] if is_dataclass(thing) else list(vars(thing))
    return {name: getattr(thing, name) for name in names if name not in entry.skip}


def exact_names(entry: Entry, thing: Any) -> set[str]:
    """Attributes that keep their precision."""
    if entry.exact is True or entry.foreign:
        return set(attributes(entry, thing))
    return {*(entry.exact or ()), *(() if is_dataclass(thing) else defaults(type(thing)))}


def defaults(cls: type) -> State:
    """The parameters of an estimator, with their defaults."""
    made: Any = getattr(cls, "__init__")  # noqa: B009
    given = [] if made is object.__init__ else list(signature(made).parameters.values())[1:]
    return {p.name: p.default for p in given if p.kind not in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)}


def migrate(entry: Entry, version: Any, state: State) -> State:
    """Attributes of an older version as they are now."""
    if type(version) is not int or version < 1:
        raise FileError(f"{entry.name} has no valid version, {version!r}")
    if version > entry.version:
        raise FileError(
            f"{entry.name} is of version {version}, and this leastwise knows versions up to {entry.version}: the "
            "file was written by a newer one. Upgrade leastwise to read it"
        )
    for old in range(version, entry.version):
        state = entry.migrations[old](state)
    return state


def build(entry: Entry, state: State) -> Any:
    """The object with these attributes. Nothing of the class's own runs, but for the making of our dataclasses."""
    cls = entry.cls
    for name in state:
        if not name.isidentifier() or name.startswith("__") or callable(getattr(cls, name, None)):
            raise FileError(f"{entry.name} cannot have an attribute {name[:80]!r}")
    if entry.check is not None:
        entry.check(state)
    if entry.build is not None:
        return entry.build(cls, state)
    if is_dataclass(cls):
        return cls(**state)
    missing = {name: value for name, value in defaults(cls).items() if value is not Parameter.empty}
    thing: Any = object.__new__(cls)
    vars(thing).update({**missing, **state})
    return thing
