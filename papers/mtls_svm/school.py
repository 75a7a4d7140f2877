"""Table 2: exam scores of 139 schools, the ten published splits, 27 inputs; explained variance in percent.

gamma, lambda and p are chosen on the paper's grid by leave-one-out on all training rows. All methods run on raw
inputs (two columns are percentages, the others 0 or 1) and standardised ones.

Explained variance has several definitions: "total" is the paper's, 1 - squared error / variance of all test scores;
"within" divides the error by the variance within schools; "schools" is the mean over schools of the explained
variance of each, weighted by rows, and "plain" is that without weights.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from papers._common.experiments import Job, Settings, option
from papers._common.timing import timed
from papers.mtls_svm import school_methods as methods
from papers.mtls_svm.school_data import EXPLAINED, Split, explained, made_splits, school_splits
from papers.mtls_svm.school_methods import Fit, multi_task
from papers.mtls_svm.tables import MAIN, TABLE_2, differences, tell

INPUTS = ("raw", "standardised")
SCHOOL: dict[str, Fit] = {
    "mean of the school": methods.means,
    "LS-SVM, own gamma and p": methods.ls_svm_each,
    "LS-SVM, same gamma and p": methods.ls_svm_same,
    "LS-SVM pooled, 1,000 rows": methods.ls_svm_pooled,
    MAIN: methods.mtls_svm,
    "RMTL": methods.rmtl,
    "BMTL": methods.bmtl,
    "MTL-FEAT": methods.mtl_feat,
    "ridge per school": methods.ridge_each,
    "ridge + schools": methods.ridge_one_hot,
    "MultiTaskLSSVR linear": partial(multi_task, kernel="linear"),
    "MultiTaskLSSVR linear, bias=task": partial(multi_task, kernel="linear", bias="task"),
}
#: Methods that take minutes, on standardised inputs: with 200 centers, and the default, "rbf+linear" with a
#: coefficient for every row.
SLOW: dict[str, Fit] = {
    "MultiTaskLSSVR 200 centres": partial(multi_task, n_centers=200),
    "MultiTaskLSSVR": multi_task,
}
#: On every fifth school. A general task matrix needs the dual form, an n x n matrix and its decomposition for every
#: sharing, which is too much for 11,472 rows.
SIMILAR: dict[str, Fit] = {
    MAIN: methods.mtls_svm,
    "ridge + schools": methods.ridge_one_hot,
    "MultiTaskLSSVR linear": partial(multi_task, kernel="linear"),
    "MultiTaskLSSVR linear learned": partial(multi_task, kernel="linear", similarity="learned"),
    "MultiTaskLSSVR linear correlation": partial(multi_task, kernel="linear", similarity="correlation"),
    "MultiTaskLSSVR": multi_task,
}
#: On synthetic tasks. RMTL is left out: its grid is in units of exam scores.
MADE = (MAIN, "LS-SVM, own gamma and p", "LS-SVM, same gamma and p", "BMTL", "MTL-FEAT")


@dataclass(frozen=True)
class SplitSettings(Settings):
    """Settings."""

    runs: int = option(10, "splits", least=1)
    inputs: tuple[str, ...] = option(INPUTS, "how the inputs are scaled", kind=str, choices=INPUTS)
    only: tuple[str, ...] = option((), "methods whose names contain one of these words", kind=str)

    def wanted(self, methods: Mapping[str, Fit]) -> dict[str, Fit]:
        """The methods that ``only`` selects."""
        return {k: fit for k, fit in methods.items() if not self.only or any(word in k for word in self.only)}


@dataclass(frozen=True)
class SchoolSettings(SplitSettings):
    """Settings of School."""

    schools: int | None = option(None, "number of schools (None: all)")
    slow: bool = option(False, "include methods that take minutes for one split", kind=bool)


def run_school(settings: SchoolSettings, job: Job) -> dict[str, Any]:
    """Run the experiment of table 2."""
    more = SLOW if settings.slow else {}
    split = school_splits(job.data, settings.schools)
    found = job.gathered(compared(split, settings, {"raw": SCHOOL, "standardised": {**SCHOOL, **more}}, job))
    tell("Table 2: School, explained variance in percent", found, EXPLAINED, TABLE_2, job.report)
    return {"paper": TABLE_2, "tests": differences(found, "total", job.report), "figures": found}


def run_similar(settings: SchoolSettings, job: Job) -> dict[str, Any]:
    """Learned similarities on every fifth school; standardised inputs."""
    split = school_splits(job.data, settings.schools, 5)
    found = job.gathered(compared(split, settings, {"standardised": SIMILAR}, job))
    tell("School, every fifth: explained variance in percent", found, EXPLAINED, {}, job.report)
    return {"paper": None, "tests": differences(found, "total", job.report), "figures": found}


def run_made(settings: SplitSettings, job: Job) -> dict[str, Any]:
    """Run the experiment on synthetic tasks."""
    split, chosen = made_splits(20, 25), {name: SCHOOL[name] for name in MADE}
    found = job.gathered(compared(split, settings, dict.fromkeys(INPUTS, chosen), job))
    tell("Synthetic linear tasks: explained variance in percent", found, EXPLAINED, {}, job.report)
    return {"paper": None, "tests": differences(found, "total", job.report), "figures": found}


def compared(
    split: Callable[[int, bool], Split], settings: SplitSettings, methods: Mapping[str, Mapping[str, Fit]], job: Job
) -> Iterator[dict]:
    """Run the methods for every scaling of the inputs, on all splits."""
    for k, inputs in itertools.product(range(settings.runs), settings.inputs):
        data = split(k, inputs == "standardised")
        for name, fit in settings.wanted(methods.get(inputs, {})).items():
            done = timed(partial(_quietly, fit, data))
            f, more = done.value
            found = explained(data.y_test, f, data.task_test)
            job.report(f"split {k}, {name}, {inputs}: {found['total']:.2f}, {done.wall:.1f} s")
            yield {"method": name, "inputs": inputs, "run": k, **found, "seconds": done.wall, **more}


def _quietly(fit: Fit, data: Split) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit(data)
