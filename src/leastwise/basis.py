"""The basis functions of a model, and its design matrix.

A basis is a list of centres and a list of blocks. A block says which centres serve which classes:

* model (5), ``basis="full"``: one block, all centres for all classes;
* model (7), ``basis="class"``: one block per class, with the centres of that class alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.centers import cluster_centers, given_centers, random_rows
from leastwise.kernels import Kernel, Precomputed
from leastwise.linalg.cholesky import cholesky
from leastwise.linalg.spectrum import Spectrum, design_spectrum, gram_spectrum, square_spectrum

Array = np.ndarray

#: Bytes of kernel values that prediction holds at a time.
CHUNK = 2**26


@dataclass(frozen=True)
class Block:
    """Basis functions ``columns`` serve the classes ``classes``; ``own[i]`` is row i's own one, -1 for none."""

    columns: slice
    classes: slice
    own: Array | None


@dataclass(frozen=True)
class Basis:
    """All basis functions.

    Attributes
    ----------
    centers : array or sparse matrix of shape (b, d)
        Where they sit; with a precomputed kernel there are only ``rows``.
    rows : ndarray of shape (b,) or None
        Which training rows they are; None for centres that are no rows.
    blocks : tuple of Block
    every_row : bool
        Every training row is a centre. Then a row's weight counts for its basis function too, and repeating a
        row is the same as doubling its weight.
    """

    centers: Any
    rows: Array | None
    blocks: tuple[Block, ...]
    every_row: bool

    @property
    def square(self) -> bool:
        """Every row is a centre for all classes: the design is the kernel matrix."""
        return self.every_row and len(self.blocks) == 1

    def pairs(self, kernel: Kernel, X: Any) -> Array:
        """The width-free part of the kernel between rows and centres."""
        if isinstance(kernel, Precomputed):
            return X if self.square else X[:, self.rows]
        return kernel.pairs(X, X if self.square else self.centers)

    def center_pairs(self, kernel: Kernel, pairs: Array) -> Array:
        """The width-free part of the kernel between the centres themselves."""
        return pairs[self.rows] if self.rows is not None else kernel.pairs(self.centers, self.centers)


def make_basis(
    X: Any,
    y: Array,
    n_classes: int,
    *,
    kind: str = "full",
    n_centers: int | None = None,
    centers: Any = "random",
    rng: np.random.Generator,
    precomputed: bool = False,
) -> Basis:
    """Choose the centres. ``n_centers`` counts them, with ``kind="class"`` those of each class."""
    everyone = np.arange(len(y))
    if kind == "class":
        members = [everyone[y == k] for k in range(n_classes)]
        targets = [slice(k, k + 1) for k in range(n_classes)]
    else:
        members, targets = [everyone], [slice(0, n_classes)]
    if not isinstance(centers, str):
        C = given_centers(centers, X.shape[1], X.dtype)
        return Basis(C, None, (Block(slice(0, len(C)), targets[0], None),), False)
    if centers == "kmeans" and n_centers is not None:
        parts = [cluster_centers(X[m], n_centers, rng) for m in members]
        return Basis(np.vstack(parts), None, _blocks(parts, targets, len(y)), False)
    chosen = [m if n_centers is None else random_rows(m, n_centers, rng) for m in members]
    rows = np.concatenate(chosen)
    blocks = _blocks(chosen, targets, len(y), chosen)
    return Basis(None if precomputed else X[rows], rows, blocks, len(rows) == len(y))


def _blocks(parts: list, targets: list[slice], n: int, rows: list[Array] | None = None) -> tuple[Block, ...]:
    ends = np.cumsum([0] + [len(p) for p in parts])
    blocks = []
    for k, classes in enumerate(targets):
        own = None
        if rows is not None:
            own = np.full(n, -1)
            own[rows[k]] = np.arange(len(rows[k]))
        blocks.append(Block(slice(int(ends[k]), int(ends[k + 1])), classes, own))
    return tuple(blocks)


def block_spectrum(basis: Basis, block: Block, K: Array, Kcc: Array | None, norm: str, root: Array) -> Spectrum:
    """Decompose the ridge problem of one block.

    Parameters
    ----------
    K : ndarray of shape (n, b)
        Kernel between rows and all centres.
    Kcc : ndarray of shape (b, b) or None
        Kernel between the centres, where a penalty on the function needs it.
    norm : {"function", "coefficients"}
    root : ndarray of shape (n,)
        Roots of the weights.
    """
    weighted = bool(np.any(root != 1))
    if basis.square:
        A = K * root[:, None] * root if weighted else K
        spectrum = gram_spectrum(A) if norm == "function" else square_spectrum(A)
        return replace(spectrum, V=root[:, None] * spectrum.V) if weighted else spectrum
    Phi = K[:, block.columns] * root[:, None]
    if norm == "function":
        assert Kcc is not None
        part = Kcc[block.columns, block.columns]
        jitter = 1e3 * np.finfo(K.dtype).eps * float(np.abs(np.diagonal(part)).mean())
        return design_spectrum(Phi, cholesky(part, jitter=jitter))
    if basis.every_row and weighted:
        column = root[basis.rows[block.columns]] if basis.rows is not None else root
        spectrum = design_spectrum(Phi * column)
        return replace(spectrum, V=column[:, None] * spectrum.V)
    return design_spectrum(Phi)


def row_chunks(n: int, width: int, itemsize: int) -> Iterator[slice]:
    """Slices of rows so small that a (rows x width) array stays within ``CHUNK`` bytes."""
    step = max(1, CHUNK // max(1, width * itemsize))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def evaluate(kernel: Kernel, sigma: float, X: Any, centers: Any, rows: Array | None, coef: Array) -> Array:
    """``k(X, centres) @ coef`` by chunks of rows, in bounded memory whatever the number of rows."""
    F = np.empty((X.shape[0], coef.shape[1]), dtype=coef.dtype)
    if sparse.issparse(X):
        X = X.tocsr()
    for part in row_chunks(X.shape[0], coef.shape[0], coef.itemsize):
        if isinstance(kernel, Precomputed):
            F[part] = X[part][:, rows] @ coef
        else:
            F[part] = kernel(X[part], centers, sigma) @ coef
    return F
