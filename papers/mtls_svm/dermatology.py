"""Table 3: six skin diseases, ten random splits of 200 and 166 rows, six tasks "this disease or not"; errors.

With the 33 attributes without age, raw and standardised, and with the other reading of "33 attributes", those that
UCI calls linear valued: age instead of the family history, raw.

"binary" is the mean error of the six tasks, "class" that of the class with the greatest score, "any" counts a row
where one of the six signs is wrong, "sum" adds the errors of the six tasks.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from papers._common.data import Array
from papers._common.experiments import Job, Settings, option
from papers._common.timing import timed
from papers.mtls_svm import skin
from papers.mtls_svm.patients import ERRORS, Patients, errors, patient_draws
from papers.mtls_svm.printed import TABLE_3
from papers.mtls_svm.tables import MAIN, differences, tell

INPUTS = ("raw", "standardised", "with age")
METHODS: dict[str, Callable[[Patients], tuple[Array, dict]]] = {
    "LS-SVM, own gamma and p": skin.skin_each,
    "LS-SVM, same gamma and p": skin.skin_same,
    MAIN: skin.skin_tied,
    "MTLS-SVM, single": partial(skin.skin_tied, single=True),
    "MTL-FEAT": skin.skin_feat,
    "LSSVC()": skin.skin_default,
}


@dataclass(frozen=True)
class SkinSettings(Settings):
    """What can be set."""

    runs: int = option(10, "splits", least=1)
    inputs: tuple[str, ...] = option(INPUTS, "which attributes, and how they are scaled", kind=str, choices=INPUTS)
    only: tuple[str, ...] = option((), "methods with one of these words in their names", kind=str)


def run(settings: SkinSettings, job: Job) -> dict[str, Any]:
    """All methods."""
    found = job.gathered(_records(settings, job))
    tell("Table 3: dermatology, error in percent by four definitions", found, ERRORS, TABLE_3, job.report)
    return {"paper": TABLE_3, "tests": differences(found, "binary", job.report), "figures": found}


def _records(settings: SkinSettings, job: Job) -> Iterator[dict]:
    draw = patient_draws(job.data)
    methods = {k: m for k, m in METHODS.items() if not settings.only or any(word in k for word in settings.only)}
    for k, inputs in itertools.product(range(settings.runs), settings.inputs):
        data = draw(k, inputs)
        for name, fit in methods.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                done = timed(partial(fit, data))
            F, more = done.value
            found = errors(data.y_test, F)
            job.report(f"split {k}, {name}, {inputs}: {found['any']:.2f}, {done.wall:.1f} s")
            yield {"method": name, "inputs": inputs, "run": k, **found, "seconds": done.wall, **more}
