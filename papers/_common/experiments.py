"""Descriptions of experiments: their place in the paper, data, settings and published numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

Report = Callable[[str], None]


def option(default: Any, says: str, *, kind: type = int, choices: Sequence[Any] | None = None, least: int = 0) -> Any:
    """Declare a field of an experiment's settings, with its help and valid values."""
    return field(default=default, metadata={"says": says, "kind": kind, "choices": choices, "least": least})


@dataclass(frozen=True)
class Settings:
    """Settings of an experiment: fields declared by :func:`option`."""

    def ways(self) -> list[str]:
        """Suffixes of the result file's name for settings that deviate from the paper's protocol."""
        return []


@dataclass(frozen=True)
class Job:
    """Where an experiment reads data and writes lines, results and figures."""

    data: str | None = None
    report: Report = print
    save: Callable[[dict], None] = lambda _: None
    #: Path of a figure by the end of its name; None where no figures are drawn.
    picture: Callable[[str], Path | None] = lambda _: None

    def gathered(self, records: Any) -> list[dict]:
        """Collect all records, and save after each of them."""
        found: list[dict] = []
        for record in records:
            found.append(record)
            self.save({"figures": found})
        if not found:
            raise ValueError("There is nothing to run: only= matches no method, or the number of runs is too small.")
        return found


@dataclass(frozen=True)
class Experiment:
    """A part of a paper that can be reproduced.

    Attributes
    ----------
    name : str
        Its name on the command line.
    place : str
        Its place in the paper.
    title : str
        One line.
    record : str
        Name of the result file, without suffix.
    settings : type of Settings
    run : callable
        Function of settings and a :class:`Job` that returns the results.
    usual, quick : mapping
        Settings of the full and of the quick experiment that differ from the defaults of the class.
    needs : tuple of str
        Data sets; empty for synthetic data.
    any_of : bool
        True if one of them suffices.
    printed : mapping
        The published numbers by table or section; empty where the paper shows curves only.
    role : {"paper", "stand-in", "beyond"}
        Part of the paper; substitute for an experiment whose data are missing; run only when requested.
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
        """Dataclass fields of the settings by name."""
        return {f.name: f for f in fields(self.settings)}

    def made(self, quick: bool, given: Mapping[str, Any]) -> Any:
        """Make the settings: the full or quick ones, overridden by the given options that exist here."""
        known = {name: checked(self.options[name], value) for name, value in given.items() if name in self.options}
        return self.settings(**{**self.usual, **(self.quick if quick else {}), **known})

    def changed(self, settings: Any) -> str:
        """Describe how settings differ from those of the full experiment."""
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
        """Names of the experiments."""
        return [e.name for e in self.experiments]


def checked(about: Any, value: Any) -> Any:
    """Validate the value of a setting."""
    kind, choices = about.metadata["kind"], about.metadata["choices"]
    many = isinstance(about.default, tuple) and not isinstance(value, str | int)
    values = tuple(value) if many else (value,)
    for one in values:
        least = about.metadata["least"]
        if one is not None and not (isinstance(one, kind) and (kind is not int or one >= least)):
            told = {int: f"an integer of at least {least}", str: "a string", bool: "True or False"}[kind]
            raise ValueError(f"{about.name}={value!r} ({about.metadata['says']}) must be {told}.")
        if choices is not None and one is not None and one not in choices:
            raise ValueError(f"{about.name}={value!r}: use {' or '.join(map(repr, choices))}.")
    return values if isinstance(about.default, tuple) else value


def shown(value: Any) -> str:
    """Format a setting; None and () mean "all"."""
    if value is None or value == ():
        return "all"
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
