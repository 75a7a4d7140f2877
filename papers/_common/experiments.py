"""What an experiment is: which part of a paper, what it needs, what can be set, and what the paper says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

Report = Callable[[str], None]


def option(default: Any, says: str, *, kind: type = int, choices: Sequence[Any] | None = None, least: int = 0) -> Any:
    """A field of an experiment's settings, with what a command line has to know of it."""
    return field(default=default, metadata={"says": says, "kind": kind, "choices": choices, "least": least})


@dataclass(frozen=True)
class Settings:
    """What can be set of an experiment: fields made by :func:`option`."""

    def ways(self) -> list[str]:
        """Words that its record has in its name, where it is run in another way than the paper's."""
        return []


@dataclass(frozen=True)
class Job:
    """Where an experiment finds its data, and where its lines, figures and pictures go."""

    data: str | None = None
    report: Report = print
    save: Callable[[dict], None] = lambda _: None
    #: From the end of a name to the path of a picture, or None where none is wanted.
    picture: Callable[[str], Path | None] = lambda _: None

    def gathered(self, records: Any) -> list[dict]:
        """All records; what is there is on disk at any time."""
        found: list[dict] = []
        for record in records:
            found.append(record)
            self.save({"figures": found})
        if not found:
            raise ValueError("There is nothing to run: only= leaves no method, or the numbers of runs are too small.")
        return found


@dataclass(frozen=True)
class Experiment:
    """A part of a paper that can be run.

    Attributes
    ----------
    name : str
        What one calls it by.
    place : str
        Where it stands in the paper.
    title : str
        What it is, in a line.
    record : str
        The name of its file, without an ending.
    settings : type of Settings
    run : callable
        From settings and a :class:`Job` to figures.
    usual, quick : mapping
        Settings of the whole experiment, where they differ from those of the class; and of a short one.
    needs : tuple of str
        The data sets; empty for data that are drawn.
    any_of : bool
        Whether one of them is enough.
    printed : mapping
        The paper's own figures, by the table or section that they stand in; empty where it draws curves only.
    role : {"paper", "stand-in", "beyond"}
        Of the paper; run in place of an experiment whose data are absent; run only when it is named.
    """

    name: str
    place: str
    title: str
    record: str
    settings: type[Settings]
    run: Callable[[Any, Job], dict]
    usual: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    any_of: bool = False
    printed: Mapping[str, Any] = field(default_factory=dict)
    role: str = "paper"

    @property
    def options(self) -> dict[str, Any]:
        """What can be set, by name, as dataclass fields."""
        return {f.name: f for f in fields(self.settings)}

    def made(self, quick: bool, given: Mapping[str, Any]) -> Any:
        """Settings: the usual or the quick ones, and over them what is given and known here."""
        known = {name: checked(self.options[name], value) for name, value in given.items() if name in self.options}
        return self.settings(**{**self.usual, **(self.quick if quick else {}), **known})

    def changed(self, settings: Any) -> str:
        """In words, what some settings have otherwise than the whole experiment."""
        whole = self.made(False, {})
        pairs = {name: (getattr(settings, name), getattr(whole, name)) for name in self.options}
        return "; ".join(f"{name} {shown(a)} instead of {shown(b)}" for name, (a, b) in pairs.items() if a != b)


@dataclass(frozen=True)
class Paper:
    """A paper and its experiments."""

    name: str
    title: str
    experiments: tuple[Experiment, ...]
    remark: str = ""

    @property
    def names(self) -> list[str]:
        """Of the experiments."""
        return [e.name for e in self.experiments]


def checked(about: Any, value: Any) -> Any:
    """A value as the field of the settings takes it, or an error that says what it takes."""
    kind, choices = about.metadata["kind"], about.metadata["choices"]
    many = isinstance(about.default, tuple) and not isinstance(value, str | int)
    values = tuple(value) if many else (value,)
    for one in values:
        least = about.metadata["least"]
        if one is not None and not (isinstance(one, kind) and (kind is not int or one >= least)):
            told = {int: f"a whole number of {least} or more", str: "a word", bool: "True or False"}[kind]
            raise ValueError(f"{about.name}={value!r}: {about.metadata['says']}, {told}.")
        if choices is not None and one is not None and one not in choices:
            raise ValueError(f"{about.name}={value!r}: use {' or '.join(map(repr, choices))}.")
    return values if isinstance(about.default, tuple) else value


def shown(value: Any) -> str:
    """A setting as one would type it, and "all" where nothing is left out."""
    if value is None or value == ():
        return "all"
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
