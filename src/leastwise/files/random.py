"""States of random generators, checked: compiled code believes what they say."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.files.errors import FileError

#: For each kind, its parts: arrays with their type and length, whole numbers with their bound.
KINDS: dict[str, dict[str, Any]] = {
    "MT19937": {"state": {"key": ("uint32", 624), "pos": 625}},
    "PCG64": {"state": {"state": 2**128, "inc": 2**128}},
    "PCG64DXSM": {"state": {"state": 2**128, "inc": 2**128}},
    "Philox": {"state": {"counter": ("uint64", 4), "key": ("uint64", 2)}, "buffer": ("uint64", 4), "buffer_pos": 5},
    "SFC64": {"state": {"state": ("uint64", 4)}},
}
SPARE = {"has_uint32": 2, "uinteger": 2**32}


def read_random(kind: Any, state: Any) -> Any:
    """A RandomState or Generator in this state."""
    name = state.get("bit_generator") if isinstance(state, dict) else None
    if kind not in ("RandomState", "Generator") or name not in KINDS:
        raise FileError("it has a random generator of a kind that is not known")
    parts: dict[str, Any] = {**KINDS[name]}
    given = {key: value for key, value in state.items() if key != "bit_generator"}
    if kind == "RandomState":
        parts["has_gauss"] = 2
        if type(given.pop("gauss", None)) is not float:
            raise FileError("it has a random generator without a valid state")
    if name != "MT19937":
        parts |= SPARE
    _check(given, parts)
    generator = getattr(np.random, name)(0)
    if kind == "RandomState":
        made = np.random.RandomState(generator)
        made.set_state(state)
        return made
    generator.state = state
    return np.random.Generator(generator)


def _check(state: Any, parts: dict[str, Any]) -> None:
    if not isinstance(state, dict) or set(state) != set(parts):
        raise FileError("it has a random generator without a valid state")
    for name, wanted in parts.items():
        value = state[name]
        if isinstance(wanted, dict):
            _check(value, wanted)
        elif isinstance(wanted, tuple):
            dtype, length = wanted
            if not isinstance(value, np.ndarray) or value.dtype != dtype or value.shape != (length,):
                raise FileError("it has a random generator without a valid state")
        elif type(value) is not int or not 0 <= value < wanted:
            raise FileError("it has a random generator without a valid state")
