"""Size limits of the code, lowered so that small data exceed them."""

import sys

#: Where each limit is defined, and what it is lowered to.
LIMITS = {
    "selection.plan.SEARCH_ROWS": 60,
    "selection.plan.ARROW_NUMBERS": 9_000,
    "selection.plan.SETTLE_NUMBERS": 1_000,
    "selection.coupled.OWN_LIMIT": 100,
    "selection.moments.SAMPLE_ROWS": 80,
    "selection.arrow.CHUNK": 2**12,
    "planning.choice.MANY_NUMBERS": 1_000,
    "planning.choice.DIRECT_ROWS": 120,
    "planning.choice.PARTLY_ROWS": 120,
    "planning.choice.CLASS_ROWS": 120,
    "estimators.solving.SETTLE_ROWS": 100,
    "estimators.spec.MANY_ROWS": 100,
    "estimators.sums.LARGE_FOLD": 20,
    "estimators.sums.STREAM_CENTERS": 20,
    "estimators.task_choice.SIMILARITY_ROWS": 80,
    "estimators.label_choice.SEARCH_LABELS": 2,
    "estimators.solving.IN_TURN": 10_000,
    "estimators.intervals.PLUS_ROWS": 100,
    "tables.model.MANY_ROWS": 120,
    "tables.model.CENTERS": 20,
    "labels.blending.ENTRIES": 100,
    "labels.blending.BLOCK": 100,
    "labels.thresholds.MANY": 100,
    "centers.SEED_ROWS": 50,
    "centers.BATCH_ROWS": 50,
    "reach.SOME": 50,
    "familiarity.REFERENCE": 80,
    "familiarity.MEASURED": 60,
    "krylov_fitting.RANK": 40,
    "linalg.logistic.FACTOR": 20,
}


#: Limits to lower: all, or those of the search alone, after which all rows are solved directly.
LEVELS = {
    "all": (),
    "search": (
        "selection.plan.SEARCH_ROWS",
        "selection.plan.ARROW_NUMBERS",
        "estimators.label_choice.SEARCH_LABELS",
        "estimators.task_choice.SIMILARITY_ROWS",
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
