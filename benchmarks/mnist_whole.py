"""All of MNIST: accuracy and time against the number of centres, compared with other methods on the same rows.

60,000 training images of 784 pixels, 10,000 test images, pixels from 0 to 255; all images are deskewed first by their
second moments (not with ``--raw``). LSPC with 500 to 8,000 centres (with ``--counts 0``: every row, by conjugate
gradients, with a line for each iteration) is compared with Nystroem features and logistic
regression (the same number of components, width from the same median distance, C chosen from three by a held-out
tenth), gradient boosting, and an SVC with Platt scaling on as many rows as it can fit in minutes. All run in one
benchmark, every point in its own process with the same number of threads; seconds are the wall time from pixels to a
model with probabilities.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from scipy.ndimage import affine_transform
from threadpoolctl import threadpool_limits

from benchmarks._common import parse, parser, print_table, quality, write_json
from leastwise import LSPC
from papers._common.data import load_set, median_distance

Array = np.ndarray

COUNTS = (500, 1000, 2000, 4000, 8000)
PEER_COUNTS = (500, 2000)
SVC_ROWS = 10_000


def upright(picture: Array) -> Array:
    """Deskewed image: rows are shifted to remove the slant, and the centre of mass is moved to the middle."""
    r, c = np.mgrid[: picture.shape[0], : picture.shape[1]]
    p = picture / picture.sum()
    middle = np.array([np.sum(p * r), np.sum(p * c)])
    slant = np.sum(p * (r - middle[0]) * (c - middle[1])) / np.sum(p * (r - middle[0]) ** 2)
    A = np.array([[1.0, 0.0], [slant, 1.0]])
    return affine_transform(picture, A, offset=middle - A @ (np.array(picture.shape) - 1) / 2, order=1)


def pictures(folder: str | None, rows: int | None, raw: bool) -> tuple[Array, Array, Array, Array]:
    """Training and test rows."""
    data = load_set("mnist", folder)
    train = np.asarray(data.is_train, dtype=bool)
    some = np.random.default_rng(0).permutation(np.flatnonzero(train))[:rows]
    parts = [data.X[some].astype(float), data.X[~train].astype(float)]
    if not raw:
        parts = [np.stack([upright(x.reshape(28, 28)).ravel() for x in part]) for part in parts]
    return parts[0].astype(np.float32), data.y[some], parts[1].astype(np.float32), data.y[~train]


def make(method: str, b: int, X: Array) -> Any:
    """A classifier."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import ShuffleSplit
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    width = 0.5 / median_distance(X.astype(float), 1000) ** 2
    if method == "LSPC, all rows":
        return LSPC(n_centers=None, solver="krylov", verbose=1, random_state=0)
    if method.startswith("LSPC"):
        return LSPC(n_centers=b, centers="kmeans" if "k-means" in method else "random", random_state=0)
    if method == "Nystroem":
        # LSPC chooses about half of the median distance here, too.
        features = Nystroem(gamma=4 * width, n_components=b, random_state=0)
        held = ShuffleSplit(1, test_size=0.1, random_state=0)
        return make_pipeline(features, LogisticRegressionCV(Cs=[10.0, 1e3, 1e5], cv=held, max_iter=1000))
    if method == "boosting":
        return HistGradientBoostingClassifier(random_state=0)
    return SVC(C=10.0, gamma=4 * width, probability=True, random_state=0)


def one(method: str, b: int, rows: int | None, folder: str | None, threads: int, raw: bool) -> dict:
    """One classifier in this process."""
    with threadpool_limits(limits=threads):
        X, y, new, truth = pictures(folder, rows, raw)
        model = make(method, b, X)
        began, ran = time.perf_counter(), time.process_time()
        model.fit(X, y)
        seconds, processor, began = time.perf_counter() - began, time.process_time() - ran, time.perf_counter()
        found = quality(model, new, truth)
        answer = time.perf_counter() - began
    chosen = {"sigma": model.sigma_, "alpha": model.alpha_} if isinstance(model, LSPC) else {}
    if method == "LSPC, all rows":
        chosen |= {"iterations": model.n_iter_, "residual": model.residual_}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "rows": len(y),
        "seconds": seconds,
        "processor": processor,
        "predict_seconds": answer,
        "peak_mb": peak,
        **chosen,
        **found,
    }


def cases(args: argparse.Namespace) -> Iterator[tuple[str, int, int | None]]:
    """Method, centres, rows."""
    rows = 1000 if args.quick else args.rows
    for b in (50, 0) if args.quick else args.counts:
        yield "LSPC" if b else "LSPC, all rows", b, rows
    for b in () if args.quick else args.counts:
        if 0 < b <= args.most_clusters:
            yield "LSPC, k-means", b, rows
    for b in (50,) if args.quick else PEER_COUNTS:
        yield "Nystroem", b, rows
    yield "boosting", 0, rows
    yield "SVC", 0, min(rows or SVC_ROWS, SVC_ROWS)


def run(args: argparse.Namespace) -> Iterator[dict]:
    for method, b, rows in cases(args):
        if args.methods and method not in args.methods:
            continue
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            found = pool.submit(one, method, b, rows, args.data, args.threads, args.raw).result()
        yield {"method": method, "centers": b, **found}


def report(found: list[dict]) -> None:
    header = ["method", "centres", "rows", "error %", "log-loss", "s", "test s", "peak MB"]
    rows = []
    for f in found:
        good = [f"{100 * (1 - f['accuracy']):.2f}", f"{f['log_loss']:.4f}"]
        cost = [f["seconds"], f["predict_seconds"], f"{f['peak_mb']:,.0f}"]
        rows.append([f["method"], f["centers"] or "", f"{f['rows']:,}", *good, *cost])
    print_table("MNIST, 10,000 test images", header, rows)


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.mnist_whole", __doc__)
    p.add_argument("--counts", type=int, nargs="+", default=COUNTS, help="numbers of centres; 0 for every row")
    p.add_argument("--rows", type=int, help="of the training images (default: all)")
    p.add_argument("--most-clusters", type=int, default=2000, help="largest number of centres found by k-means")
    p.add_argument("--methods", nargs="+", help="only these")
    p.add_argument("--raw", action="store_true", help="do not deskew the images")
    args = parse(p, argv)
    found: list[dict] = []
    for record in run(args):
        found.append(record)
        print(f"{record['method']}, {record['centers']}: {record['seconds']:.3g} s", flush=True)
        write_json(args, {"threads": args.threads, "raw": args.raw, "figures": found}, say=False)
    report(found)
    write_json(args, {"threads": args.threads, "raw": args.raw, "figures": found})


if __name__ == "__main__":
    main()
