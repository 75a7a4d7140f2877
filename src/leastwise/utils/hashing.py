r"""A number for every row that depends on nothing but what is in it.

A sample by the lowest numbers is the same however rows are ordered or cut into blocks, files and machines: it is the
lowest of the lowest of the parts. Copies of a row have the same number, so that all of them are in it, or none.

Where some copies are to be taken and others not, as rows of few distinct values need it, :func:`sample_keys` numbers
the copies of a row and hashes the number too: each copy is drawn on its own, and cells of equal rows are sampled in
proportion to their sizes.

The number of a row x of d entries is a multilinear hash of its bits, mixed to spread it evenly over 64 bits::

    key(x) = mix(a_0 + sum_j a_j mix(bits(x_j))  mod 2^64),     mix(0) = 0,

with odd random numbers a_j. Zeros add nothing: a sparse row has the number of the same row in full.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np
from scipy import sparse

from leastwise.utils.arrays import Away, bits_of, here, library, numbers_like, shows_bits, widest

Array = np.ndarray

#: Numbers that are hashed at a time.
ROOM = 2**20
#: Above all keys that count.
EVERY = np.uint64(2**64 - 1)
#: a_0; without it a row of zeros would have the lowest number of all.
BASE = np.uint64(0x9E3779B97F4A7C15)
#: Of the mixture.
FACTORS = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))


def row_keys(X: Any, single: bool = False) -> Array:
    """A number for every row of an array or sparse matrix; -0.0 is 0.0, single precision the double it stands for.

    With ``single`` all entries are rounded to single precision first: rows have the same number in either precision.

    Returns
    -------
    ndarray of uint64 of shape (n,)
    """
    factors = _factors(X.shape[1])
    if sparse.issparse(X):
        return _sparse_keys(_rounded(X.tocsr()) if single else X.tocsr(), factors)
    if isinstance(X, Away) and shows_bits(X.there):
        return _keys_there(X.there, factors, single)
    keys, step = np.empty(X.shape[0], dtype=np.uint64), max(1, ROOM // max(X.shape[1], 1))
    for a in range(0, len(keys), step):
        part = _rounded(X[a : a + step]) if single else X[a : a + step]
        keys[a : a + step] = _mix((_mix(_bits(part)) * factors).sum(axis=1, dtype=np.uint64) + BASE)
    return keys


def _rounded(A: Any) -> Any:
    """In single precision; what is too large for that is infinite."""
    with np.errstate(over="ignore"):
        return A.astype(np.float32)


def _keys_there(X: Any, factors: Array, single: bool) -> Array:
    """Keys of rows that stay where they are, by whole numbers with a sign, which overflow alike."""
    a, step = numbers_like(factors.view(np.int64), X), max(1, ROOM // max(X.shape[1], 1))
    keys = []
    for first in range(0, X.shape[0], step):
        part = X[first : first + step, ...]
        part = library(X).astype(part, library(X).float32) if single else part
        terms = _mix_there(bits_of(widest(part) + 0.0)) * a
        keys.append(here(_mix_there(library(X).sum(terms, axis=1) + int(BASE.view(np.int64)))))
    return np.concatenate(keys).view(np.uint64)


def _mix_there(h: Any) -> Any:
    """``_mix`` of whole numbers with a sign: a shift brings in ones, which are masked."""
    mask = 2**31 - 1
    for factor in FACTORS:
        h = (h ^ ((h >> 33) & mask)) * int(factor.view(np.int64))
    return h ^ ((h >> 33) & mask)


def multiset_keys(K: Array) -> Array:
    """A number for every row of a kernel matrix that does not depend on the order of its columns.

    If rows and columns are permuted alike, each row keeps its number. Entries are rounded to single precision.
    """
    keys, step = np.empty(K.shape[0], dtype=np.uint64), max(1, ROOM // max(K.shape[1], 1))
    for a in range(0, len(keys), step):
        keys[a : a + step] = _mix(_mix(_bits(_rounded(K[a : a + step]))).sum(axis=1, dtype=np.uint64) + BASE)
    return keys


def id_keys(ids: Any) -> Array:
    """A number for every id, of any hashable kind: the same for equal ids of the same kind in any process.

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


def task_keys(ids: list) -> Array:
    """A number for every task id, the same in any process."""
    plain = all(type(name) in (int, float, bool, str) for name in ids)
    return id_keys(ids if plain else [repr(name) for name in ids])


def sample_keys(x: Array, kind: Sequence[Array], ties: Sequence[Array], purpose: str) -> Array:
    """A number for every row to draw samples by: the rows with the lowest numbers are a random sample.

    Rows that are equal in ``x`` and ``kind`` are numbered 0, 1, ... in the order of ``ties``; the key is a hash of x
    and that number. Copies are therefore drawn independently, and the order of the rows does not matter, except among
    rows that are equal in everything. If the heaviest copy has the number 0, merging copies into one row of a larger
    weight leaves the keys of all other rows as they are.

    Parameters
    ----------
    x : ndarray of uint64 of shape (n,)
        Keys of the inputs, as of :func:`row_keys`, and of the classes.
    kind : sequence of ndarray of shape (n,)
        What else has to be equal, and is not hashed: codes that depend on the other rows, as those of tasks do.
    ties : sequence of ndarray of shape (n,)
        What orders the copies, the most important one first.
    purpose : str
        Samples for different purposes are independent of each other.

    Returns
    -------
    ndarray of uint64 of shape (n,)
    """
    n = len(x)
    order = np.lexsort((*reversed(ties), *kind, x))
    fresh = np.ones(n, dtype=bool)
    for column in (x, *kind):
        fresh[1:] &= column[order[1:]] == column[order[:-1]]  # equal to the row before, for now
    fresh[1:] = ~fresh[1:]
    place, number = np.arange(n), np.empty(n, dtype=np.uint64)
    number[order] = place - np.maximum.accumulate(np.where(fresh, place, 0))
    return _salted(pair_keys(x, number), purpose)


def unit_keys(x: Array, unit: Array, purpose: str) -> Array:
    """A number for every unit 0 ... m-1 (a group of rows), from the set of its rows, in whatever order.

    Copies of a row in a unit make no difference. Unlike the lowest key of its rows, the key does not favour large
    units.
    """
    order = np.lexsort((x, unit))
    x, unit = x[order], unit[order]
    fresh = np.r_[True, (x[1:] != x[:-1]) | (unit[1:] != unit[:-1])]
    x, unit = x[fresh], unit[fresh]
    starts = np.searchsorted(unit, np.arange(int(unit.max()) + 1))
    return _salted(_mix(np.add.reduceat(x, starts) + BASE), purpose)


def _salted(keys: Array, purpose: str) -> Array:
    return pair_keys(keys, np.full(len(keys), crc32(purpose.encode()), dtype=np.uint64))


def pair_keys(one: Array, other: Array) -> Array:
    """A number for every pair of numbers, also where those of all pairs are equal (``one ^ other`` would be 0)."""
    return _mix(FACTORS[0] * one + other)


def threshold(keys: Array, count: int, rows: bool = False) -> np.uint64:
    """The largest of the ``count`` lowest distinct keys; above all keys if there are no more.

    With ``rows`` not keys are counted but all that have them, and two keys are taken at least.
    """
    distinct, sizes = np.unique(keys, return_counts=True)
    if rows:
        count = max(int(np.searchsorted(np.cumsum(sizes), count, side="right")), 2)
    return distinct[count - 1] if len(distinct) > count else EVERY


def _bits(A: Any) -> Array:
    """The bits of double precision numbers; those of 0.0 for -0.0."""
    return (np.ascontiguousarray(A, dtype=np.float64) + 0.0).view(np.uint64)


def _mix(h: Array) -> Array:
    """Every bit of a number to bear on every bit of another; 0 stays 0."""
    for factor in FACTORS:
        h = h ^ (h >> np.uint64(33))
        h *= factor
    return h ^ (h >> np.uint64(33))


def _factors(d: int) -> Array:
    """Odd random numbers, the same at all times."""
    return np.random.default_rng(20101016).integers(0, 2**63, size=d, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def _sparse_keys(X: Any, factors: Array) -> Array:
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    terms = _mix(_bits(X.data)) * factors[X.indices]
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
    return _mix(total[X.indptr[1:]] - total[X.indptr[:-1]] + BASE)
