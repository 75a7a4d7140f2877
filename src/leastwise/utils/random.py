"""Random numbers: a separate generator for each purpose, derived from ``random_state`` and a name.

The draws for one purpose (centers, folds, stochastic gradients) do not depend on the draws for others.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
from sklearn.utils import check_random_state


def seed_of(random_state: Any) -> int:
    """The seed behind the parameter ``random_state``.

    ``None`` is a fixed seed, not the global generator of numpy: the same data give the same model. A ``RandomState``
    is advanced by one draw, as in scikit-learn.
    """
    return 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))


def generator(name: str, seed: int = 0) -> np.random.Generator:
    """The generator for one purpose; equal names and seeds give equal numbers."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(crc32(name.encode()),)))
