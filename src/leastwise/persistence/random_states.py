"""States of NumPy's random generators: their compiled code trusts what it is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.persistence.container import FileError

#: For each bit generator the parts of its state: arrays with dtype and length, integers with an upper bound.
BIT_GENERATORS: dict[str, dict[str, Any]] = {
    "MT19937": {"state": {"key": ("uint32", 624), "pos": 625}},
    "PCG64": {"state": {"state": 2**128, "inc": 2**128}},
    "PCG64DXSM": {"state": {"state": 2**128, "inc": 2**128}},
    "Philox": {"state": {"counter": ("uint64", 4), "key": ("uint64", 2)}, "buffer": ("uint64", 4), "buffer_pos": 5},
    "SFC64": {"state": {"state": ("uint64", 4)}},
}
#: All but MT19937 may keep half of a 64-bit number.
SPARE_BITS = {"has_uint32": 2, "uinteger": 2**32}


def random_generator(kind: Any, state: Any) -> Any:
    """Make a RandomState or Generator from a checked state."""
    name = state.get("bit_generator") if isinstance(state, dict) else None
    if kind not in ("RandomState", "Generator") or name not in BIT_GENERATORS:
        raise FileError("it has a random generator of an unknown kind")
    expected: dict[str, Any] = {**BIT_GENERATORS[name]}
    given = {key: value for key, value in state.items() if key != "bit_generator"}
    if kind == "RandomState":
        expected["has_gauss"] = 2
        _require(type(given.pop("gauss", None)) is float)
    if name != "MT19937":
        expected |= SPARE_BITS
    _check_state(given, expected)
    generator = getattr(np.random, name)(0)
    if kind == "RandomState":
        made = np.random.RandomState(generator)
        made.set_state(state)
        return made
    generator.state = state
    return np.random.Generator(generator)


def _check_state(state: Any, expected: dict[str, Any]) -> None:
    _require(isinstance(state, dict) and set(state) == set(expected))
    for name, wanted in expected.items():
        value = state[name]
        if isinstance(wanted, dict):
            _check_state(value, wanted)
        elif isinstance(wanted, tuple):
            _require(isinstance(value, np.ndarray) and value.dtype == wanted[0] and value.shape == (wanted[1],))
        else:
            _require(type(value) is int and 0 <= value < wanted)


def _require(condition: bool) -> None:
    if not condition:
        raise FileError("it has a random generator with an invalid state")
