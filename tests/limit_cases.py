"""Size limits of the code, lowered so that small data exceed them."""

import sys

#: Where each limit is defined, and what it is lowered to.
LIMITS = {
    "solvers.work.SEARCH_ROWS": 60,
    "solvers.work.REFINE_ROWS": 80,
    "solvers.work.ARROW_NUMBERS": 9_000,
    "solvers.work.SETTLE_NUMBERS": 1_000,
    "solvers.task_evaluators.OWN_LIMIT": 100,
    "solvers.moments.SAMPLE_ROWS": 80,
    "solvers.arrow.CHUNK": 2**12,
    "solvers.choose.COMPLETE": 1e-9,
    "solvers.choose.PATIENCE": 1e-9,
    "solvers.work.SETTLE_ROWS": 100,
    "fitting.spec.MANY_ROWS": 100,
    "fitting.sums.LARGE_FOLD": 20,
    "fitting.sums.STREAM_CENTERS": 20,
    "fitting.task_problem.SIMILARITY_ROWS": 80,
    "fitting.label_problem.SEARCH_LABELS": 2,
    "solvers.work.IN_TURN": 10_000,
    "estimators.intervals.PLUS_ROWS": 100,
    "tables.planning.MANY_ROWS": 120,
    "tables.planning.CENTERS": (20,),
    "calibration.label_blend.ENTRIES": 100,
    "calibration.label_blend.BLOCK": 100,
    "calibration.label_thresholds.MANY": 100,
    "problem.centers.SEED_ROWS": 50,
    "problem.centers.BATCH_ROWS": 50,
    "calibration.extrapolation.SOME": 50,
    "calibration.extrapolation.REFERENCE": 80,
    "calibration.extrapolation.MEASURED": 60,
    "solvers.work.RANK": 40,
    "linalg.logistic.FACTOR": 20,
}


#: Limits to lower: all, or those of the search alone, after which all rows are solved directly.
LEVELS = {
    "all": (),
    "search": (
        "solvers.work.SEARCH_ROWS",
        "solvers.work.REFINE_ROWS",
        "solvers.work.ARROW_NUMBERS",
        "fitting.label_problem.SEARCH_LABELS",
        "fitting.task_problem.SIMILARITY_ROWS",
    ),
}


def lower(monkeypatch, *names):
    """Lower these limits (by default all), wherever they have been imported."""
    for path in names or LIMITS:
        home, _, name = f"leastwise.{path}".rpartition(".")
        __import__(home)
        value = getattr(sys.modules[home], name)
        assert value > LIMITS[path]
        for module_name, module in list(sys.modules.items()):
            if module_name.startswith("leastwise") and vars(module).get(name) == value:
                monkeypatch.setattr(module, name, LIMITS[path])
