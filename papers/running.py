"""Run the experiments of a paper for which data are available."""

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

#: The papers by name.
PAPERS: dict[str, Paper] = {p.name: p for p in (lspc.PAPER, lspc_mt.PAPER, ml_lspc.PAPER, mtls_svm.PAPER)}

ADVICE = f"Give the folder that contains them with data= (--data) or in the variable {VARIABLE}"


def experiments_of(about: Paper, parts: Sequence[str] | None) -> list[Experiment]:
    """Select the named experiments; by default those that are in the paper."""
    if parts is None:
        return [e for e in about.experiments if e.role == "paper"]
    known = {e.name: e for e in about.experiments}
    return [one_of(known, name, "part") for name in parts]


def one_of(known: Mapping[str, Any], name: str, what: str) -> Any:
    """Look up a name; raise an error that lists the valid names."""
    if name not in known:
        raise ValueError(f"Unknown {what} {name!r}: use one of {list(known)}.")
    return known[name]


def check_options(about: Paper, wanted: Sequence[Experiment], options: Mapping[str, Any]) -> None:
    """Check that every option belongs to at least one experiment and has a valid value."""
    known = list(dict.fromkeys(name for e in wanted for name in e.options))
    for name in options:
        if name not in known:
            of = ", ".join(e.name for e in wanted)
            raise ValueError(f"Unknown option {name!r} of {about.name} ({of}): use {known}.")
    for e in wanted:
        e.made(False, options)


def folder_of(data: str | os.PathLike | None) -> str | None:
    """Expand the name of the data folder; a missing folder is an error, not a reason to skip experiments."""
    if data is not None and not Path(data).expanduser().is_dir():
        raise DataAbsent(
            f"data={os.fspath(data)!r}: no such folder. Omit data= to run the experiments that need none."
        )
    return None if data is None else str(Path(data).expanduser())


def missing_files(experiment: Experiment, folder: str | None, options: Mapping[str, Any]) -> str:
    """Describe the missing files; empty if the experiment can run."""
    needs = experiment.needs
    if experiment.any_of:
        needs = tuple(name for name in needs if name in options.get("sets", needs))
    absent = [name for name in needs if not is_there(name, folder)]
    if not absent or (experiment.any_of and len(absent) < len(needs)):
        return ""
    lines = "".join(f"\n  {name}: {files_of(name)}" for name in absent)
    return f"{experiment.name}, {experiment.place}, because files are missing{lines}"


def tell_missing(about: Paper, skipped: Mapping[str, str], report: Report) -> None:
    """Report which files are needed for which experiment, and how to give their folder."""
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
    """Reproduce the tables and figures of a paper, next to the published numbers.

    Parameters
    ----------
    paper : {"lspc", "lspc-mt", "ml-lspc", "mtls-svm"}
        Least-squares probabilistic classifier (LSPC), multi-task LSPC, multi-label LSPC, multi-task LS-SVM.
    data : path, optional
        Folder of the data sets, as :func:`leastwise.datasets.load` reads them; by default the environment variable
        ``LEASTWISE_DATA``. Missing files are reported.
    output : path, optional
        Folder for the results as JSON, one file for each experiment, and for figures, which need matplotlib (extra
        ``plot``). By default nothing is written. Files are written atomically.
    quick : bool, default=False
        Fewer repetitions and sizes, about a minute for a paper.
    parts : sequence of str, optional
        Names of the experiments to run; by default all of the paper, or substitutes on synthetic data where data are
        missing.
    threads : int, default=1
        Number of threads of BLAS and OpenMP, the same for all methods.
    report : callable, default=print
        Called with lines of progress and tables, as text.
    **options
        Settings of the experiments, such as ``runs=3``; ``PAPERS[paper].experiments`` lists them.

    Returns
    -------
    dict
        ``"paper"``, ``"machine"``, ``"results"`` by the name of the experiment, and ``"skipped"``, the reasons why
        experiments could not run.

    Raises
    ------
    ValueError
        If the paper, a part or an option is unknown.
    DataAbsent
        If the data of a requested part are missing.

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
    """Arguments that all experiments of one call share."""

    paper: Paper
    quick: bool
    parts: Sequence[str] | None
    threads: int
    options: Mapping[str, Any]
    output: Path | None

    @property
    def command(self) -> str:
        """The command that repeats this call, without folders."""
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
        """Header of the result files."""
        return machine(self.command, self.threads, self.quick)


def _run(experiment: Experiment, head: _Head, folder: str | None, report: Report) -> dict[str, Any]:
    """Run one experiment; intermediate results are saved while it runs."""
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
