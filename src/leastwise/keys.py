r"""A number for every row that depends on nothing but what is in it.

A sample by the lowest numbers is the same however rows are ordered or cut into blocks, files and machines: it is the
lowest of the lowest of the parts. Copies of a row have the same number, so that all of them are in it, or none.

The number of a row x of d entries is a multilinear hash of its bits, mixed to spread it evenly over 64 bits::

    key(x) = mix(a_0 + sum_j a_j mix(bits(x_j))  mod 2^64),     mix(0) = 0,

with odd random numbers a_j. Zeros add nothing: a sparse row has the number of the same row in full.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.arrays import Away, bits_of, here, library, numbers_like, shows_bits, widest

Array = np.ndarray

#: Numbers that are hashed at a time.
ROOM = 2**20
#: Above all keys that count.
EVERY = np.uint64(2**64 - 1)
#: a_0; without it a row of zeros would have the lowest number of all.
BASE = np.uint64(0x9E3779B97F4A7C15)
#: Of the mixture.
FACTORS = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))


def row_keys(X: Any) -> Array:
    """A number for every row of an array or sparse matrix; -0.0 is 0.0, single precision the double it stands for.

    Returns
    -------
    ndarray of uint64 of shape (n,)
    """
    factors = _factors(X.shape[1])
    if sparse.issparse(X):
        return _sparse_keys(X.tocsr(), factors)
    if isinstance(X, Away) and shows_bits(X.there):
        return _keys_there(X.there, factors)
    keys, step = np.empty(X.shape[0], dtype=np.uint64), max(1, ROOM // max(X.shape[1], 1))
    for a in range(0, len(keys), step):
        keys[a : a + step] = _mix((_mix(_bits(X[a : a + step])) * factors).sum(axis=1, dtype=np.uint64) + BASE)
    return keys


def _keys_there(X: Any, factors: Array) -> Array:
    """Keys of rows that stay where they are, by whole numbers with a sign, which overflow alike."""
    a, step = numbers_like(factors.view(np.int64), X), max(1, ROOM // max(X.shape[1], 1))
    keys = []
    for first in range(0, X.shape[0], step):
        terms = _mix_there(bits_of(widest(X[first : first + step, ...]) + 0.0)) * a
        keys.append(here(_mix_there(library(X).sum(terms, axis=1) + int(BASE.view(np.int64)))))
    return np.concatenate(keys).view(np.uint64)


def _mix_there(h: Any) -> Any:
    """``_mix`` of whole numbers with a sign: a shift brings in ones, which are masked."""
    mask = 2**31 - 1
    for factor in FACTORS:
        h = (h ^ ((h >> 33) & mask)) * int(factor.view(np.int64))
    return h ^ ((h >> 33) & mask)


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
