"""Hashes (keys) of rows that depend on their content only.

The rows with the smallest keys are a random sample that does not depend on the order of the rows, or on how they are
distributed over blocks, files and machines: it is a bottom-k sample of the samples of the parts. Duplicates of a row
have the same key, so that the sample contains all of them or none.

If duplicates must be sampled independently, as for rows with few distinct values, :func:`sample_keys` numbers
the duplicates and includes the number in the hash: groups of equal rows are sampled in proportion to their sizes.

The key of a row x of d entries is a multilinear hash of its bits, mixed to spread it evenly over 64 bits::

    key(x) = mix(a_0 + sum_j a_j mix(bits(x_j))  mod 2^64),     mix(0) = 0,

with odd random numbers a_j. Zeros add nothing: a sparse row has the key of the same dense row.

Random numbers come from a separate generator for each purpose, derived from ``random_state`` and a name. The draws
for one purpose (centers, folds, stochastic gradients) do not depend on the draws for others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property, partial
from typing import Any
from zlib import crc32

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from leastwise.utils.arrays import DeviceRows, float_dtypes, get_namespace, numbers_like, to_numpy, widest

Array = np.ndarray

#: Entries hashed at a time.
ROOM = 2**20
#: The largest key.
EVERY = np.uint64(2**64 - 1)
#: a_0; without it a row of zeros would have the smallest key.
BASE = np.uint64(0x9E3779B97F4A7C15)
#: Multipliers of the mixing function.
FACTORS = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))


def row_hashes(X: Any, single: bool = False) -> Array:
    """Keys of the rows of an array or sparse matrix; -0.0 equals 0.0, and floats equal the same doubles.

    With ``single`` all entries are rounded to single precision first: rows have the same key in either precision.

    Returns
    -------
    ndarray of uint64 of shape (n,)
    """
    factors = _factors(X.shape[1])
    if sparse.issparse(X):
        return _sparse_keys(_rounded(X.tocsr()) if single else X.tocsr(), factors)
    # Viewing doubles as integers is not part of the array standard.
    if isinstance(X, DeviceRows) and hasattr(X.there, "view") and len(float_dtypes(X.there)) > 1:
        return _keys_there(X.there, factors, single)
    keys, step = np.empty(X.shape[0], dtype=np.uint64), max(1, ROOM // max(X.shape[1], 1))
    for a in range(0, len(keys), step):
        part = _rounded(X[a : a + step]) if single else X[a : a + step]
        keys[a : a + step] = _mix((_mix(_bits(part)) * factors).sum(axis=1, dtype=np.uint64) + BASE)
    return keys


def _rounded(A: Any) -> Any:
    """Round to single precision; overflow becomes infinite."""
    with np.errstate(over="ignore"):
        return A.astype(np.float32)


def _keys_there(X: Any, factors: Array, single: bool) -> Array:
    """Keys of rows in another array library, by signed integers, which overflow in the same way."""
    a, step = numbers_like(factors.view(np.int64), X), max(1, ROOM // max(X.shape[1], 1))
    keys, xp = [], get_namespace(X)
    for first in range(0, X.shape[0], step):
        part = X[first : first + step, ...]
        part = xp.astype(part, xp.float32) if single else part
        part = widest(part) + 0.0
        part = xp.where(xp.isnan(part), xp.full_like(part, xp.nan), part)
        terms = _mix_there(part.view(xp.int64)) * a
        keys.append(to_numpy(_mix_there(xp.sum(terms, axis=1) + int(BASE.view(np.int64)))))
    return np.concatenate(keys).view(np.uint64)


def _mix_there(h: Any) -> Any:
    """``_mix`` of signed integers: the sign bits that a shift introduces are masked."""
    mask = 2**31 - 1
    for factor in FACTORS:
        h = (h ^ ((h >> 33) & mask)) * int(factor.view(np.int64))
    return h ^ ((h >> 33) & mask)


def multiset_keys(K: Array) -> Array:
    """Keys of the rows of a kernel matrix that do not depend on the order of its columns.

    If rows and columns are permuted together, each row keeps its key. Entries are rounded to single precision.
    """
    keys, step = np.empty(K.shape[0], dtype=np.uint64), max(1, ROOM // max(K.shape[1], 1))
    for a in range(0, len(keys), step):
        keys[a : a + step] = _mix(_mix(_bits(_rounded(K[a : a + step]))).sum(axis=1, dtype=np.uint64) + BASE)
    return keys


def id_keys(ids: Any) -> Array:
    """Keys of ids of any type: equal for equal ids of the same type in every process.

    Returns
    -------
    ndarray of uint64 of shape (n,)
    """
    values = np.asarray(ids)
    if values.dtype.kind in "biuf":
        return _mix(_bits(values) + BASE)
    _, first, place = np.unique([str(v) for v in values.tolist()], return_index=True, return_inverse=True)
    texts = [str(values[i]).encode() for i in first]
    found = [int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") for text in texts]
    return np.array(found, dtype=np.uint64)[place]


def task_hashes(ids: list) -> Array:
    """Keys of task ids, the same in every process."""
    plain = all(type(name) in (int, float, bool, str) for name in ids)
    return id_keys(ids if plain else [repr(name) for name in ids])


def sample_hashes(x: Array, kind: Sequence[Array], ties: Sequence[Array], purpose: str) -> Array:
    """Keys to sample rows by: the rows with the smallest keys are a random sample.

    Rows that are equal in ``x`` and ``kind`` are numbered 0, 1, ... in the order of ``ties``; the key is a hash of x
    and that number. Duplicates are therefore drawn independently, and the order of the rows does not matter, except
    among rows that are equal in everything. If the duplicate with the largest weight has the number 0, merging
    duplicates into one row of a larger weight does not change the keys of the other rows.

    Parameters
    ----------
    x : ndarray of uint64 of shape (n,)
        Keys of the inputs, as of :func:`row_keys`, and of the classes.
    kind : sequence of ndarray of shape (n,)
        What else must be equal and is not hashed: codes that depend on the other rows, such as those of tasks.
    ties : sequence of ndarray of shape (n,)
        The order of the duplicates, the most important column first.
    purpose : str
        Samples for different purposes are independent.

    Returns
    -------
    ndarray of uint64 of shape (n,)
    """
    n = len(x)
    if all_distinct(x):
        return _salted(pair_hashes(x, np.zeros(n, dtype=np.uint64)), purpose)
    order = np.lexsort((*reversed(ties), *kind, x))
    fresh = np.ones(n, dtype=bool)
    for column in (x, *kind):
        fresh[1:] &= column[order[1:]] == column[order[:-1]]  # equal to the row before, for now
    fresh[1:] = ~fresh[1:]
    place, number = np.arange(n), np.empty(n, dtype=np.uint64)
    number[order] = place - np.maximum.accumulate(np.where(fresh, place, 0))
    return _salted(pair_hashes(x, number), purpose)


def all_distinct(keys: Array) -> bool:
    """True if no two keys are equal. Sorting takes a tenth of the time of ``unique``, which uses a hash table."""
    ordered = np.sort(keys)
    return not np.any(ordered[1:] == ordered[:-1])


def unit_hashes(x: Array, unit: Array, purpose: str) -> Array:
    """Keys of units 0 ... m-1 (groups of rows), from the sets of their rows.

    The order of the rows and duplicates within a unit do not matter. Unlike the smallest key of its rows, the key
    does not favour large units.
    """
    order = np.lexsort((x, unit))
    x, unit = x[order], unit[order]
    fresh = np.r_[True, (x[1:] != x[:-1]) | (unit[1:] != unit[:-1])]
    x, unit = x[fresh], unit[fresh]
    starts = np.searchsorted(unit, np.arange(int(unit.max()) + 1))
    return _salted(_mix(np.add.reduceat(x, starts) + BASE), purpose)


def _salted(keys: Array, purpose: str) -> Array:
    return pair_hashes(keys, np.full(len(keys), crc32(purpose.encode()), dtype=np.uint64))


def pair_hashes(one: Array, other: Array) -> Array:
    """Keys of pairs of keys, also if the two are equal (``one ^ other`` would be 0)."""
    return _mix(FACTORS[0] * one + other)


def threshold(keys: Array, count: int, rows: bool = False) -> np.uint64:
    """The largest of the ``count`` smallest distinct keys; ``EVERY`` if there are no more keys.

    With ``rows``, rows are counted instead of keys, and at least two keys are taken.
    """
    distinct, sizes = np.unique(keys, return_counts=True)
    if rows:
        count = max(int(np.searchsorted(np.cumsum(sizes), count, side="right")), 2)
    return distinct[count - 1] if len(distinct) > count else EVERY


def _bits(A: Any) -> Array:
    """The bits of doubles; -0.0 has those of 0.0, and every NaN those of one."""
    B = np.ascontiguousarray(A, dtype=np.float64) + 0.0
    B[np.isnan(B)] = np.nan
    return B.view(np.uint64)


def _mix(h: Array) -> Array:
    """Mix the bits of 64-bit integers; 0 stays 0."""
    for factor in FACTORS:
        h = h ^ (h >> np.uint64(33))
        h *= factor
    return h ^ (h >> np.uint64(33))


def _factors(d: int) -> Array:
    """Odd random numbers from a fixed seed."""
    return np.random.default_rng(20101016).integers(0, 2**63, size=d, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def _sparse_keys(X: Any, factors: Array) -> Array:
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    terms = _mix(_bits(X.data)) * factors[X.indices]
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
    return _mix(total[X.indptr[1:]] - total[X.indptr[:-1]] + BASE)


def seed_of(random_state: Any) -> int:
    """The seed behind the parameter ``random_state``.

    ``None`` is a fixed seed, not the global generator of numpy: the same data give the same model. A ``RandomState``
    is advanced by one draw, as in scikit-learn.
    """
    return 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))


def generator(name: str, seed: int = 0) -> np.random.Generator:
    """The generator for one purpose; equal names and seeds give equal numbers."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(crc32(name.encode()),)))


# ------------------------------------------------------------------ fingerprints


def fingerprint(*values: Any) -> str:
    """Hash of values with everything that they contain: equal for equal values in every process.

    Arrays count with their type, shape and entries; objects with their fields, without cached properties; functions
    and classes with their names.
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in _pieces(values):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def _pieces(value: Any) -> Iterator[bytes]:
    """The bytes of a value, piece by piece."""
    if isinstance(value, DeviceRows) or sparse.issparse(value):
        value = to_numpy(value) if isinstance(value, DeviceRows) else _sorted_parts(value)
    if isinstance(value, np.ndarray):
        yield f"{value.dtype.str}{value.shape}".encode()
        if value.dtype.hasobject:
            yield from _pieces(value.ravel().tolist())
        else:
            yield np.ascontiguousarray(value).tobytes()
        return
    if is_dataclass(value) and not isinstance(value, type):
        inside: list = [getattr(value, field.name) for field in fields(value)]
    elif isinstance(value, Mapping):
        inside = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple):
        inside = list(value)
    elif isinstance(value, set | frozenset):
        inside = sorted(fingerprint(entry) for entry in value)
    elif isinstance(value, partial):
        inside = [value.func, value.args, value.keywords]
    elif isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        yield f"{value.__module__}.{value.__qualname__}".encode()
        return
    elif hasattr(value, "__dict__"):
        known = vars(value)
        cached = [name for name in known if isinstance(getattr(type(value), name, None), cached_property)]
        inside = [(name, known[name]) for name in sorted(known) if name not in cached]
    else:  # None, numbers, text, slices
        yield f"{type(value).__name__} {value!r}".encode()
        return
    yield f"{type(value).__qualname__} {len(inside)}".encode()
    for part in inside:
        yield from _pieces(part)


def _sorted_parts(X: Any) -> tuple:
    """The parts of a sparse matrix in one order."""
    X = X.tocsr().copy()
    X.sum_duplicates()
    return X.shape, X.data, X.indices, X.indptr
