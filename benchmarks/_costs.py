"""Time one representative fit and prediction in this process; ``fit_costs`` starts it.

    python -m benchmarks._costs NAME SCALE      print processor seconds and peak memory as JSON

It uses only public names of the package, so that it also measures other versions.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks import _fits
from benchmarks._fits import DEFAULTS, Fit

#: Rows of the default fits; fewer for kernel logistic regression, which is slower.
ROWS, SLOW_ROWS = 500, 300
NEW_ROWS = 5000
ARROW_TASKS = 500
#: Largest number of repeats of a call, and the total of seconds below which it is repeated.
REPEATS = ((3, 3.0), (30, 0.5))


def _default(name: str) -> Callable[[float], Fit]:
    rows = SLOW_ROWS if "Logistic" in name else ROWS
    return lambda scale: DEFAULTS[name](int(rows * scale))


def _centers(scale: float) -> Fit:
    return _fits.plain("LSPC", int(20_000 * scale), n_centers=int(300 * scale))


def _stream(scale: float) -> Fit:
    return _fits.streamed(int(50_000 * scale), int(5000 * scale), n_centers=int(300 * scale))


def _arrow(scale: float) -> Fit:
    count = int(ARROW_TASKS * scale)
    return _fits.of_tasks("MultiTaskLSPC", 40 * count, count=count, n_centers=int(100 * scale))


#: Fits whose memory is reported too; for the others it is mostly that of the libraries.
LARGE: dict[str, Callable[[float], Fit]] = {
    "LSPC, 300 centres, 20,000 rows": _centers,
    "LSPC.fit_stream, 50,000 rows": _stream,
    "MultiTaskLSPC, 500 tasks": _arrow,
}
#: Each estimator with default parameters, and the large fits; the argument scales rows, centres and tasks.
COSTS = {**{name: _default(name) for name in DEFAULTS if "." not in name and "," not in name}, **LARGE}


def predict(model: Any) -> Callable[[], Any]:
    """A call that predicts probabilities, or values, of new rows."""
    X, _ = _fits.inputs(NEW_ROWS, seed=9)
    given = {"tasks": _fits.tasks(NEW_ROWS)} if type(model).__name__.startswith("MultiTask") else {}
    method = getattr(model, "predict_proba", model.predict)
    return lambda: method(X, **given)


def best(call: Callable[[], Any]) -> float:
    """Minimum processor seconds over the repeats."""
    seconds: list[float] = []
    while any(len(seconds) < count and sum(seconds) < total for count, total in REPEATS):
        began = time.process_time()
        call()
        seconds.append(time.process_time() - began)
    return min(seconds)


def peak_mb() -> float:
    """Peak memory of this process. ``ru_maxrss`` is only the fallback: on Linux it includes the parent's memory."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure and print."""
    import leastwise

    name, scale = sys.argv[1], float(sys.argv[2])
    warnings.simplefilter("ignore")
    with threadpool_limits(limits=1):
        warm, fit_warm = COSTS[name](0.2 if scale > 0.2 else scale)
        fit_warm()  # modules are loaded when first used
        predict(warm)()
        model, fit = COSTS[name](scale)
        record = {"fit": best(fit)}
        if name in LARGE:
            record["peak_mb"] = peak_mb()
        record["predict"] = best(predict(model))
    print(json.dumps({"root": str(Path(leastwise.__file__).parent), "record": record}))


if __name__ == "__main__":
    main()
