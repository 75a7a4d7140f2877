"""Trace a call: which files and functions of a package it uses, and how it moves up and down the MRO.

``sys.setprofile`` sees the calls of this thread and of threads started during the call. Only functions of the package
count. Comprehensions, lambdas, code that runs at import, and other processes do not.

Reversals
---------
A *method frame* is a call of a method of the traced object: a class in the object's MRO defines it, and its first
argument is that object. Its *outer* method frame is the nearest method frame below it on the call stack, with any
other frames in between. If the two are defined in different files, the step between them goes *up* (to a class
later in the MRO, towards the bases) or *down* (to a class earlier in the MRO, towards the estimator). A step within
one file has no direction and keeps the last one. A step is a *reversal* if the last step with a direction on the
same stack went the opposite way. Each pair (outer method, method) counts once, however often it is called. The
count is thus how many times a reader who follows the fit has to turn around in the class hierarchy.

    python -m benchmarks._tracing NAME      trace one fit of ``_fits.DEFAULTS`` and print the result as JSON
    python -m benchmarks._tracing           print the public estimators and their classes as JSON
"""

from __future__ import annotations

import contextlib
import inspect
import json
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

#: Rows of the traced fits.
ROWS = 120

# --------------------------------------------------------------------- tracing


@dataclass(frozen=True)
class Step:
    """A method frame on the stack: place in the MRO, file, and direction of the last step (1 up, -1 down, 0 none)."""

    code: CodeType
    rank: int
    direction: int


@dataclass
class Trace:
    """What a traced call did.

    Attributes
    ----------
    edges : dict of (caller, callee) to None
        Calls between functions of the package, in the order of their first use. The first caller is None.
    reversals : dict of (caller, callee) to None
        Pairs of methods between which the direction in the MRO changed.
    """

    root: Path
    target: Any
    edges: dict[tuple[str | None, str], None] = field(default_factory=dict)
    reversals: dict[tuple[str, str], None] = field(default_factory=dict)
    steps: dict[int, Step] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.prefix = f"{self.root}/"
        self.ranks = {_place(c): rank for rank, c in enumerate(type(self.target).__mro__)}

    @property
    def functions(self) -> list[str]:
        """Functions of the package that were called."""
        return sorted({callee for _, callee in self.edges})

    @property
    def files(self) -> list[str]:
        """Files of the package that were passed through."""
        return sorted({function.partition(":")[0] for function in self.functions})

    def name(self, code: CodeType) -> str:
        """``file:function``, the file within the package."""
        return f"{code.co_filename.removeprefix(self.prefix)}:{code.co_qualname}"

    def profile(self, frame: FrameType, event: str, arg: Any) -> None:
        """Called by Python at every call and return."""
        if event == "return":
            self.steps.pop(id(frame), None)
        elif event == "call" and self._counts(frame.f_code):
            below = list(_below(frame))
            if not any(_is_import(f.f_code) for f in below):
                self._call(frame, below)

    def _counts(self, code: CodeType) -> bool:
        return code.co_filename.startswith(self.prefix) and _is_function(code)

    def _call(self, frame: FrameType, below: list[FrameType]) -> None:
        caller = next((self.name(f.f_code) for f in below if self._counts(f.f_code)), None)
        self.edges.setdefault((caller, self.name(frame.f_code)))
        rank = self._rank(frame)
        if rank is not None:
            outer = next((self.steps[id(f)] for f in below if id(f) in self.steps), None)
            self.steps[id(frame)] = self._step(frame.f_code, rank, outer)

    def _rank(self, frame: FrameType) -> int | None:
        """Place in the MRO of the class that defines the method; None if the frame is not a method of the target."""
        code = frame.f_code
        rank = self.ranks.get((code.co_filename, code.co_qualname.rpartition(".")[0]))
        if rank is None or not code.co_argcount or frame.f_locals.get(code.co_varnames[0]) is not self.target:
            return None
        return rank

    def _step(self, code: CodeType, rank: int, outer: Step | None) -> Step:
        if outer is None or outer.code.co_filename == code.co_filename:
            return Step(code, rank, outer.direction if outer else 0)
        direction = 1 if rank > outer.rank else -1
        if outer.direction == -direction:
            self.reversals.setdefault((self.name(outer.code), self.name(code)))
        return Step(code, rank, direction)


def _place(cls: type) -> tuple[str | None, str]:
    """File and qualified name of a class, as the code of its methods tells them."""
    return getattr(sys.modules.get(cls.__module__), "__file__", None), cls.__qualname__


def _below(frame: FrameType) -> Iterator[FrameType]:
    while frame.f_back is not None:
        frame = frame.f_back
        yield frame


def _is_import(code: CodeType) -> bool:
    return code.co_filename.startswith("<frozen importlib")


def _is_function(code: CodeType) -> bool:
    """False for bodies of modules and classes, comprehensions and lambdas."""
    return bool(code.co_flags & inspect.CO_NEWLOCALS and code.co_flags & inspect.CO_OPTIMIZED) and (
        not code.co_name.startswith("<")
    )


@contextlib.contextmanager
def profiled(profile: Callable[[FrameType, str, Any], None]) -> Iterator[None]:
    """Context in which this thread and new ones call ``profile``."""
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def trace(root: Path, target: Any, call: Callable[[], Any]) -> Trace:
    """Trace a call in which ``target`` is the object whose methods are followed; ``root`` is the package's folder."""
    found = Trace(root, target)
    with profiled(found.profile):
        call()
    return found


def path_lines(edges: list[tuple[str | None, str]], depth: int) -> list[str]:
    """Indented call path; the calls of a function are listed at its first occurrence, down to ``depth`` levels."""
    calls: dict[str | None, list[str]] = {}
    for caller, callee in edges:
        calls.setdefault(caller, []).append(callee)
    lines: list[str] = []
    expanded: set[str] = set()

    def add(function: str, level: int) -> None:
        inner = [f for f in calls.get(function, []) if f != function]
        hidden = inner and (function in expanded or level + 1 >= depth)
        lines.append("  " * level + function + (" ..." if hidden else ""))
        if not hidden:
            expanded.add(function)
            for callee in inner:
                add(callee, level + 1)

    for function in calls.get(None, []):
        add(function, 0)
    return lines


# ---------------------------------------------------------------- inheritance


def own_classes(cls: type, package: str) -> list[type]:
    """Classes of the package in the MRO, the class itself included."""
    return [c for c in cls.__mro__ if c.__module__.split(".")[0] == package]


def own_depth(cls: type, package: str) -> int:
    """Length of the longest chain of classes of the package from this one to its bases."""
    if cls.__module__.split(".")[0] != package:
        return 0
    return 1 + max(own_depth(base, package) for base in cls.__bases__)


def public_estimators(module: Any) -> dict[str, type]:
    """Estimators among the public names of a package."""
    from sklearn.base import BaseEstimator

    found = {name: getattr(module, name) for name in module.__all__}
    return {n: c for n, c in sorted(found.items()) if inspect.isclass(c) and issubclass(c, BaseEstimator)}


# --------------------------------------------------------------------- process


def main() -> None:
    """Print JSON for ``benchmarks.architecture``, which starts this with the source folder to be measured."""
    import leastwise
    from benchmarks._fits import DEFAULTS

    warnings.simplefilter("ignore")
    root = Path(leastwise.__file__).parent
    if len(sys.argv) == 1:
        every = public_estimators(leastwise).items()
        record: Any = [{"estimator": n, **_inheritance(c)} for n, c in every]
    else:
        target, call = DEFAULTS[sys.argv[1]](ROWS)
        found = trace(root, target, call)
        record = {"edges": list(found.edges), "reversals": list(found.reversals)}
        record |= {"files": found.files, "functions": found.functions}
    print(json.dumps({"root": str(root), "record": record}))


def _inheritance(cls: type) -> dict[str, Any]:
    return {
        "own_classes": len(own_classes(cls, "leastwise")),
        "depth": own_depth(cls, "leastwise"),
        "mro": [c.__name__ for c in own_classes(cls, "leastwise")],
    }


if __name__ == "__main__":
    main()
