"""Section 6.2, Enron's messages, and figure 1a, rotated boundaries: LSPC, ML-LSPC, ML-kNN, InsDif.

The protocols define what the paper leaves open (grids, scaling of features). Hyperparameters of LSPC, ML-LSPC and
ML-kNN are chosen by 5-fold cross-validation of micro F1 (enron) or the Hamming loss (toy). Times are those of the
search and a final fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from leastwise.metrics import hamming, label_f1
from papers._common.experiments import Job, Settings, option
from papers._common.timing import timed
from papers.ml_lspc import tables
from papers.ml_lspc.draws import ENRON_ROWS, LabelSplit, calmly, enron, rotated
from papers.ml_lspc.methods import OURS, PAPERS, VARIANTS, Case, Method, Protocol, ours
from papers.ml_lspc.tables import SECTION_6_2

ENRON, TOY = Protocol("f1_micro"), Protocol("hamming", sigmas=(0.7, 1.0, 1.5, 2.25))
TOY_OURS = ("MultiLabelLSPC()", "MultiLabelLSPC(sharing=0)")


@dataclass(frozen=True)
class LabelSettings(Settings):
    """Common settings."""

    runs: int = option(20, "random draws", least=1)
    variant_runs: int | None = option(None, "draws with the learned similarity and ten neighbours (None: all)")
    more_runs: int = option(5, "draws with this library's own methods")
    insdif_labels: int = option(100, "labels up to which InsDif runs")
    only: tuple[str, ...] = option((), "methods with one of these words in their names", kind=str)


@dataclass(frozen=True)
class EnronSettings(LabelSettings):
    """Settings of Enron."""

    rows: int = option(ENRON_ROWS, "training rows", least=1)
    test_rows: int | None = option(None, "test rows (None: all others)", least=1)


@dataclass(frozen=True)
class ToySettings(LabelSettings):
    """Settings of the toy data."""

    rows: int = option(2000, "training rows", least=1)
    test_rows: int = option(2000, "test rows", least=1)
    labels: tuple[int, ...] = option((10, 20, 50, 100), "numbers of labels", least=1)
    features: int = option(300, "features, of which two are relevant", least=1)


def run_enron(settings: EnronSettings, job: Job) -> dict[str, Any]:
    """1,000 training rows drawn at random, the other 702 for testing, 53 labels: micro F1."""
    draw = enron(job.data, settings.rows, settings.test_rows)
    draws = ((run, draw(run)) for run in range(settings.runs))
    found = job.gathered(compared(draws, ENRON, OURS, settings, job))
    tables.tell_enron(found, job.report)
    tests = tables.differences(found, "f1_micro", job.report)
    return {"paper": SECTION_6_2, "protocol": vars(ENRON), "tests": tests, "figures": found}


def run_toy(settings: ToySettings, job: Job) -> dict[str, Any]:
    """Rotated boundaries in two of 300 features, 2,000 training rows: Hamming loss."""
    s = settings
    draws = (
        (run, rotated(T, s.rows, s.test_rows, run, n_features=s.features)) for run in range(s.runs) for T in s.labels
    )
    found = job.gathered(compared(draws, TOY, {name: OURS[name] for name in TOY_OURS}, s, job))
    tables.tell_toy(found, job)
    return {
        "paper": None,
        "protocol": vars(TOY),
        "tests": tables.differences(found, "wrong", job.report),
        "figures": found,
    }


def compared(
    draws: Iterator[tuple[int, LabelSplit]], protocol: Protocol, own: dict[str, dict], settings: Any, job: Job
) -> Iterator[dict]:
    """Run all methods on all draws."""
    for run, data in draws:
        case = Case(data.scaled() if protocol.scaled else data, protocol, run)
        for name, method in due(settings, own, data.Y.shape[1], run).items():
            yield measured(name, method, case, job)


def due(settings: LabelSettings, own: dict[str, dict], n_labels: int, run: int) -> dict[str, Method]:
    """The methods to run in a draw."""
    variants = settings.variant_runs is None or run < settings.variant_runs
    found = {name: m for name, m in PAPERS.items() if variants or name not in VARIANTS}
    if n_labels > settings.insdif_labels:
        del found["InsDif"]
    if run < settings.more_runs:
        found |= {name: partial(ours, options) for name, options in own.items()}
    return {k: m for k, m in found.items() if not settings.only or any(word in k for word in settings.only)}


def measured(name: str, method: Method, case: Case, job: Job) -> dict[str, Any]:
    """Run one method on one draw."""
    done = timed(lambda: calmly(lambda: method(case)))
    (predict, more), unsettled = done.value
    predicted = timed(predict)
    Y = case.data.Y_test
    f1, wrong = float(label_f1(Y, predicted.value)), float(hamming(Y, predicted.value))
    where = f"run {case.seed}, {Y.shape[1]} labels, {name}"
    job.report(f"{where}: F1 {f1:.4f}, wrong {wrong:.4f}, {done.wall:.2f} s, chosen {more.get('chosen')}")
    return {
        "labels": Y.shape[1],
        "rows": len(case.data.Y),
        "method": name,
        "run": case.seed,
        "f1_micro": f1,
        "wrong": wrong,
        "seconds": done.wall,
        "predict_seconds": predicted.wall,
        "unsettled": unsettled,
        **more,
    }
