"""Columns on their way from the inputs to the model: numbers and text, taken apart and put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leastwise.onnx._graph import Graph, Value

Array = np.ndarray


class TextNeeded(ValueError):
    """A column that is a number is to be text."""


@dataclass(eq=False)
class Block:
    """A table of numbers, or one column of text, of shape (n, width); ``used`` are the columns that were read."""

    value: Value
    width: int = 1
    text: bool = False
    used: set[int] = field(default_factory=set)


@dataclass(eq=False)
class Waiting:
    """A column of the input whose type is not known until something is done with it."""

    name: str
    block: Block | None = None

    def read(self, g: Graph, text: bool, dtype: Any = None) -> Block:
        """The column as text or numbers (of a type), which it then is for good."""
        if self.block is None:
            outer = np.dtype(object if text else dtype or g.outer)
            value = g.input(self.name, outer, [1])
            self.block = Block(value if text or outer == g.real else value.cast(g.real), 1, text)
        if self.block.text != text:
            raise ValueError(
                f"Column {self.name!r} is used as text in one place and as numbers in another, which one input of "
                "ONNX cannot be: give the model two columns."
            )
        return self.block


Place = tuple[Block | Waiting, int]


@dataclass(frozen=True)
class Columns:
    """Columns in their order: each is a place in a block."""

    g: Graph
    places: tuple[Place, ...]

    @staticmethod
    def of(block: Block) -> Columns:
        """All columns of a block."""
        return Columns(block.value.graph, tuple((block, j) for j in range(block.width)))

    @staticmethod
    def joined(g: Graph, parts: Sequence[Columns]) -> Columns:
        """Columns of several tables side by side."""
        return Columns(g, tuple(place for part in parts for place in part.places))

    def __len__(self) -> int:
        return len(self.places)

    def pick(self, which: Sequence[int]) -> Columns:
        """Some columns."""
        return Columns(self.g, tuple(self.places[j] for j in which))

    def without(self, place: int) -> Columns:
        """All columns but one."""
        return self.pick([j for j in range(len(self)) if j != place])

    def numbers(self) -> Value:
        """All columns as a table of numbers, of shape (n, width)."""
        parts: list[tuple[Block, list[int]]] = []
        for block, j in self.places:
            block = block.read(self.g, text=False) if isinstance(block, Waiting) else block
            if block.text:
                raise ValueError("A column of text goes into a step that needs numbers: encode it before.")
            block.used.add(j)
            if parts and parts[-1][0] is block:
                parts[-1][1].append(j)
            else:
                parts.append((block, [j]))
        return self.g.beside([_taken(block, which) for block, which in parts])

    def days(self, j: int) -> Value:
        """One column as days since 1970, of shape (n, 1), always in double precision where they come in."""
        block = self.places[j][0]
        if not isinstance(block, Waiting):
            raise TextNeeded("A column of numbers goes into a step that was fitted on dates: use the same types.")
        return block.read(self.g, text=False, dtype=np.float64).value

    def tell(self, j: int, kind: str) -> None:
        """Say what a column of a table holds, if it is an input of its own."""
        block = self.places[j][0]
        if isinstance(block, Waiting):
            self.g.kinds[block.name] = kind

    def text(self, j: int) -> Value:
        """One column as text, of shape (n, 1)."""
        block = self.places[j][0]
        block = block.read(self.g, text=True) if isinstance(block, Waiting) else block
        if not block.text:
            raise TextNeeded("A column of numbers goes into a step that was fitted on text: fit with the same types.")
        return block.value


def _taken(block: Block, which: list[int]) -> Value:
    return block.value if which == list(range(block.width)) else block.value.take(np.array(which))


def open_columns(g: Graph, names: Sequence[str], together: bool) -> Columns:
    """The columns of the input: one input for all, of numbers, or one for each, of what it turns out to be."""
    if not together:
        return Columns(g, tuple((Waiting(name), 0) for name in names))
    value = g.input("X", g.outer, [len(names)])
    return Columns.of(Block(value if g.outer == g.real else value.cast(g.real), len(names)))


def column_names(model: Any) -> list[str]:
    """Names of the columns that a model was fitted on; ``column_0`` and so on where they had none."""
    parts = [model, *(part for _, part in getattr(model, "steps", []))]  # the first step may be "passthrough"
    first = next(part for part in parts if hasattr(part, "n_features_in_"))
    given = getattr(first, "feature_names_in_", None)
    return [f"column_{j}" for j in range(first.n_features_in_)] if given is None else [str(name) for name in given]


def place_of(g: Graph, x: Value, keys: list) -> Value:
    """Where the entries of a column stand among ``keys``, text or numbers; -1 for others."""
    if isinstance(keys[0], str):
        return g.lookup(x, keys)
    numbers = np.array(keys, dtype=float).astype(g.outer).astype(g.real)  # what they are once they have come in
    if len(np.unique(numbers)) < len(keys):
        raise ValueError(
            f"Numbers that stand for tasks or categories, such as {keys[:3]}, are not told apart as {g.outer}: use "
            "dtype='float64'."
        )
    same = x.widened(1).equals(numbers)
    if np.isnan(numbers).any():
        both = g.node("And", g.node("IsNaN", x.widened(1)), np.isnan(numbers))
        same = g.node("Or", same, both)
    return first_hit(g, same)


def first_hit(g: Graph, same: Value) -> Value:
    """The first place of each row that is true; -1 where none is."""
    hit = same.cast(np.int64)
    return g.where(hit.max(keep=False).equals(np.array(1)), hit.argmax(), np.array(-1))
