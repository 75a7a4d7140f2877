"""Fits of every estimator on synthetic data, by public names only.

``architecture`` traces them and ``fit_costs`` times them, also with other versions of the package. This module
therefore imports nothing private from the package, and imports the package only when a fit is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray
D = 5


def inputs(n: int, outputs: int = 1, d: int = D, seed: int = 0) -> tuple[Array, Array]:
    """Rows, and noisy sums of sines of their features."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(2 * X) @ rng.standard_normal((d, outputs)) + 0.5 * rng.standard_normal((n, outputs))


def classes(n: int, d: int = D) -> tuple[Array, Array]:
    """Three classes."""
    X, S = inputs(n, 3, d)
    return X, S.argmax(axis=1)


def values(n: int) -> tuple[Array, Array]:
    """A regression target."""
    X, S = inputs(n)
    return X, S[:, 0]


def labels(n: int, unknown: float = 0.0) -> tuple[Array, Array]:
    """Four labels; a share of the entries is NaN."""
    X, S = inputs(n, 4)
    Y = (S > 0).astype(float)
    Y[np.random.default_rng(1).uniform(size=Y.shape) < unknown] = np.nan
    return X, Y if unknown else Y.astype(int)


def tasks(n: int, count: int = 6) -> Array:
    """The task of each row; every task has rows."""
    return np.random.default_rng(2).permutation(np.arange(n) % count)


def blocks(X: Array, y: Array, size: int) -> Iterator[tuple[Array, Array]]:
    """Consecutive blocks of rows."""
    for first in range(0, len(X), size):
        yield X[first : first + size], y[first : first + size]


def make(name: str, **parameters: Any) -> Any:
    """An unfitted estimator."""
    import leastwise

    return getattr(leastwise, name)(random_state=0, **parameters)


# ------------------------------------------------------------------------ fits

#: An estimator, and the call that fits it; the data already exist, so that the call is only the fit.
Fit = tuple[Any, Callable[[], Any]]


def plain(name: str, n: int, data: Callable[[int], tuple[Array, Array]] = classes, **parameters: Any) -> Fit:
    """``fit(X, y)``."""
    X, y = data(n)
    model = make(name, **parameters)
    return model, lambda: model.fit(X, y)


def of_tasks(
    name: str, n: int, data: Callable[[int], tuple[Array, Array]] = classes, count: int = 6, **parameters: Any
) -> Fit:
    """``fit(X, y, tasks=...)``."""
    X, y = data(n)
    task = tasks(n, count)
    model = make(name, **parameters)
    return model, lambda: model.fit(X, y, tasks=task)


def streamed(n: int, size: int, **parameters: Any) -> Fit:
    """``fit_stream`` of an iterator of blocks, which can be read only once."""
    X, y = classes(n)
    model = make("LSPC", **parameters)
    return model, lambda: model.fit_stream(blocks(X, y, size), classes=[0, 1, 2])


def of_dask(n: int, size: int, **parameters: Any) -> Fit:
    """``fit`` of Dask arrays, computed in threads."""
    import dask.array as da

    X, y = classes(n)
    model = make("LSPC", **parameters)
    return model, lambda: model.fit(da.from_array(X, chunks=(size, X.shape[1])), da.from_array(y, chunks=size))


def unknown_labels(n: int) -> tuple[Array, Array]:
    """A fifth of the labels is unknown."""
    return labels(n, 0.2)


#: Each estimator with default parameters, and LSPC with other row sources; the argument is the number of rows.
DEFAULTS: dict[str, Callable[[int], Fit]] = {
    "LSPC": lambda n: plain("LSPC", n),
    "MultiTaskLSPC": lambda n: of_tasks("MultiTaskLSPC", n),
    "MultiLabelLSPC": lambda n: plain("MultiLabelLSPC", n, labels),
    "MultiLabelLSPC, unknown labels": lambda n: plain("MultiLabelLSPC", n, unknown_labels),
    "LSSVC": lambda n: plain("LSSVC", n),
    "LSSVR": lambda n: plain("LSSVR", n, values),
    "MultiTaskLSSVC": lambda n: of_tasks("MultiTaskLSSVC", n),
    "MultiTaskLSSVR": lambda n: of_tasks("MultiTaskLSSVR", n, values),
    "KernelLogisticRegression": lambda n: plain("KernelLogisticRegression", n),
    "MultiTaskKernelLogisticRegression": lambda n: of_tasks("MultiTaskKernelLogisticRegression", n),
    "LSPC.fit_stream": lambda n: streamed(n, max(1, n // 4), n_centers=30),
    "LSPC, Dask": lambda n: of_dask(n, max(1, n // 4), n_centers=30),
}
