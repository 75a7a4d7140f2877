"""Run the experiments of a paper, those for which there are data."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from papers._common.data import DataAbsent
from papers._common.experiments import Experiment, Job, Paper, Report
from papers._common.files import write_json
from papers._common.machine import capped, machine
from papers.asking import (
    ADVICE,
    check_options,
    experiments_of,
    folder_of,
    missing_files,
    one_of,
    tell_missing,
)
from papers.registry import PAPERS


def reproduce(
    paper: str,
    *,
    data: str | os.PathLike | None = None,
    output: str | os.PathLike | None = None,
    quick: bool = False,
    parts: Sequence[str] | None = None,
    threads: int = 1,
    report: Report = print,
    **options: Any,
) -> dict[str, Any]:
    """Compute a paper's tables and figures anew, and set them beside the paper's own.

    Parameters
    ----------
    paper : {"lspc", "lspc-mt", "ml-lspc", "mtls-svm"}
        Which one: the least-squares probabilistic classifier, that for many tasks, that for many labels, and
        least-squares support vector machines for many tasks.
    data : path, optional
        Folder of the data sets, as :func:`leastwise.datasets.load` reads them; by default what the environment
        variable ``LEASTWISE_DATA`` says. Where files are absent, a line says which to get.
    output : path, optional
        Folder for the figures as JSON, one file an experiment, and for pictures, which need matplotlib (extra
        ``plot``). Nothing is written without it. A file is there whole or not at all.
    quick : bool, default=False
        Fewer draws and sizes, about a minute for a paper.
    parts : sequence of str, optional
        The experiments to run, by name; by default all that are in the paper, or, where their data are absent, those
        that need none.
    threads : int, default=1
        Cap for BLAS and OpenMP, the same for all methods.
    report : callable, default=print
        Is given lines of progress and tables, as text.
    **options
        Settings of the experiments, such as ``runs=3``; each takes those that it knows.
        ``PAPERS[paper].experiments`` has them.

    Returns
    -------
    dict
        ``"paper"``, ``"machine"``; ``"results"``, the figures by the name of the experiment; and ``"skipped"``, for
        those that could not be run the reason.

    Raises
    ------
    ValueError
        If there is no such paper, part or option.
    DataAbsent
        If a part is asked for whose data are not there.

    Examples
    --------
    >>> from papers import reproduce
    >>> quiet = lambda line: None
    >>> found = reproduce("lspc", parts=["three-classes"], runs=1, rows=60, report=quiet)
    >>> [f["method"] for f in found["results"]["three-classes"]["figures"]]
    ['LSPC', 'LSPC(full)', 'KLR', 'LSPC()']
    """
    about = one_of(PAPERS, paper, "paper")
    named = [parts] if isinstance(parts, str) else parts
    folder, asked = folder_of(data), experiments_of(about, named)
    check_options(about, asked, options)
    head = _Head(about, quick, named, threads, options, Path(output) if output is not None else None)
    report(f"{about.title}.")
    missing = {e.name: missing_files(e, folder, options) for e in asked}
    skipped = {name: text for name, text in missing.items() if text}
    if named is not None and skipped:
        raise DataAbsent(f"{'; '.join(skipped.values())}. {ADVICE}")
    tell_missing(about, skipped, report)
    stand_ins = [e for e in about.experiments if skipped and e.role == "stand-in"]
    with capped(threads):
        due = [e for e in asked if e.name not in skipped] + stand_ins
        results = {e.name: _run(e, head, folder, report) for e in due}
    return {"paper": paper, "machine": head.machine, "results": results, "skipped": skipped}


@dataclass(frozen=True)
class _Head:
    """What all experiments of one call have in common."""

    paper: Paper
    quick: bool
    parts: Sequence[str] | None
    threads: int
    options: Mapping[str, Any]
    output: Path | None

    @property
    def command(self) -> str:
        """As it may be published, without folders."""
        words = ["python -m papers", self.paper.name]
        words += ["--parts", *self.parts] if self.parts is not None else []
        words += ["--quick"] * self.quick + ([f"--threads {self.threads}"] if self.threads != 1 else [])
        for name, value in self.options.items():
            values = value if isinstance(value, tuple | list) else [value]
            words += [f"--{name.replace('_', '-')}"]
            words += [] if value is True else [shlex.quote(str(v)) for v in values]
        return " ".join(words)

    @property
    def machine(self) -> dict[str, Any]:
        """The head of a record."""
        return machine(self.command, self.threads, self.quick)


def _run(experiment: Experiment, head: _Head, folder: str | None, report: Report) -> dict[str, Any]:
    """One experiment: its figures go to the record as they come, and in the end as a whole."""
    settings = experiment.made(head.quick, head.options)
    report(f"\n{experiment.name}, {experiment.place}: {experiment.title}.")
    changed = experiment.changed(settings)
    if changed:
        report(f"{'quick' if head.quick else 'set'}: {changed}.")
    job = _job(head, "_".join([experiment.record, *settings.ways()]), folder, report)
    figures = experiment.run(settings, job)
    job.save(figures)
    return figures


def _job(head: _Head, stem: str, folder: str | None, report: Report) -> Job:
    output, ending, machine = head.output, "-quick" * head.quick, head.machine
    if output is None:
        return Job(folder, report)
    record = output / f"{stem}{ending}.json"
    report(f"record: {record.name}")
    return Job(
        folder,
        report,
        save=lambda figures: write_json(record, {"machine": machine, **figures}),
        picture=lambda name: output / f"{stem}_{name}{ending}.png",
    )
