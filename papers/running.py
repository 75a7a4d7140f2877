"""The papers, by the names that they are asked for by.

What was asked for, and whether there are data for it.

Run the experiments of a paper, those for which there are data.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leastwise.datasets.loading import VARIABLE
from papers import lspc, lspc_mt, ml_lspc, mtls_svm
from papers._common.data import DataAbsent, files_of, is_there
from papers._common.experiments import Experiment, Job, Paper, Report
from papers._common.output import write_json
from papers._common.timing import capped, machine

#: The papers, by the names that the command has for them.
PAPERS: dict[str, Paper] = {p.name: p for p in (lspc.PAPER, lspc_mt.PAPER, ml_lspc.PAPER, mtls_svm.PAPER)}

ADVICE = f"Name the folder that holds them by data= (--data), or by the variable {VARIABLE}"


def experiments_of(about: Paper, parts: Sequence[str] | None) -> list[Experiment]:
    """The experiments that were named, or those of the paper."""
    if parts is None:
        return [e for e in about.experiments if e.role == "paper"]
    known = {e.name: e for e in about.experiments}
    return [one_of(known, name, "part") for name in parts]


def one_of(known: Mapping[str, Any], name: str, what: str) -> Any:
    """What goes by a name, or an error that lists the names."""
    if name not in known:
        raise ValueError(f"There is no {what} {name!r}: use one of {list(known)}.")
    return known[name]


def check_options(about: Paper, wanted: Sequence[Experiment], options: Mapping[str, Any]) -> None:
    """All are known to one experiment at least, and have values that it takes."""
    known = list(dict.fromkeys(name for e in wanted for name in e.options))
    for name in options:
        if name not in known:
            of = ", ".join(e.name for e in wanted)
            raise ValueError(f"There is no option {name!r} of {about.name} ({of}): use {known}.")
    for e in wanted:
        e.made(False, options)


def folder_of(data: str | os.PathLike | None) -> str | None:
    """The folder that was named; one that is not there is an error, and not a reason to skip."""
    if data is not None and not Path(data).expanduser().is_dir():
        raise DataAbsent(f"data={os.fspath(data)!r}: there is no such folder. Leave it out for experiments without.")
    return None if data is None else str(Path(data).expanduser())


def missing_files(experiment: Experiment, folder: str | None, options: Mapping[str, Any]) -> str:
    """What is missing, in words; nothing where the experiment can run."""
    needs = experiment.needs
    if experiment.any_of:
        needs = tuple(name for name in needs if name in options.get("sets", needs))
    absent = [name for name in needs if not is_there(name, folder)]
    if not absent or (experiment.any_of and len(absent) < len(needs)):
        return ""
    lines = "".join(f"\n  {name}: {files_of(name)}" for name in absent)
    return f"{experiment.name}, {experiment.place}, for want of files{lines}"


def tell_missing(about: Paper, skipped: Mapping[str, str], report: Report) -> None:
    """Which files to get for which table, and how to name their folder."""
    for text in skipped.values():
        report(f"skipped: {text}")
    if skipped:
        report(f"{ADVICE}.")
        if about.remark:
            report(about.remark)


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
