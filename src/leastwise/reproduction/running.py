"""Run the experiments of a paper, those for which there are data."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leastwise.datasets import available
from leastwise.datasets.loading import VARIABLE
from leastwise.reproduction._common.data import DataAbsent, files_of
from leastwise.reproduction._common.experiments import Experiment, Job, Paper, Report
from leastwise.reproduction._common.files import write_json
from leastwise.reproduction._common.machine import capped, machine
from leastwise.reproduction.registry import PAPERS


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
    >>> from leastwise.reproduction import reproduce
    >>> quiet = lambda line: None
    >>> found = reproduce("lspc", parts=["three-classes"], runs=1, rows=60, report=quiet)
    >>> [f["method"] for f in found["results"]["three-classes"]["figures"]]
    ['LSPC', 'LSPC(full)', 'KLR', 'LSPC()']
    """
    about = _one_of(PAPERS, paper, "paper")
    folder = _folder(data)
    wanted = _wanted(about, parts)
    _check_options(about, wanted, options)
    head = _Head(about, quick, parts, threads, options, Path(output) if output is not None else None)
    report(f"{about.title}.")
    missing = {e.name: _missing(e, folder, options) for e in wanted}
    skipped = {name: text for name, text in missing.items() if text}
    if parts is not None and skipped:
        raise DataAbsent(f"{'; '.join(skipped.values())}. {_ADVICE}")
    _tell_missing(about, skipped, report)
    due = [e for e in wanted if not missing[e.name]]
    if skipped:
        due += [e for e in about.experiments if e.role == "stand-in"]
    with capped(threads):
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
        words = ["python -m leastwise.reproduction", self.paper.name]
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
    settings = experiment.made(head.quick, head.options)
    report(f"\n{experiment.name}, {experiment.place}: {experiment.title}.")
    if head.quick and experiment.shortened():
        report(f"quick: {experiment.shortened()}.")
    stem = "_".join([experiment.record, *settings.ways()])
    places = _places(head.output, stem, "-quick" * head.quick)
    record = head.machine
    save = (
        (lambda figures: write_json(places("", "json"), {"machine": record, **figures})) if head.output else _nothing
    )
    job = Job(folder, report, save, (lambda name: places(f"_{name}", "png")) if head.output else _nowhere)
    figures = experiment.run(settings, job)
    save(figures)
    if head.output:
        report(f"written: {places('', 'json').name}")
    return figures


def _places(output: Path | None, stem: str, ending: str) -> Callable[[str, str], Path]:
    """From the end of a name and a kind of file to a path."""
    return lambda name, kind: (output or Path()) / f"{stem}{name}{ending}.{kind}"


def _nothing(figures: dict) -> None:
    """Nothing is written."""


def _nowhere(name: str) -> None:
    """No picture is wanted."""


# ------------------------------------------------------------------ what was asked for


def _wanted(about: Paper, parts: Sequence[str] | None) -> list[Experiment]:
    """The experiments that were named, or those of the paper."""
    if parts is None:
        return [e for e in about.experiments if e.role == "paper"]
    known = {e.name: e for e in about.experiments}
    return [_one_of(known, name, "part") for name in ([parts] if isinstance(parts, str) else parts)]


def _one_of(known: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in known:
        raise ValueError(f"There is no {what} {name!r}: use one of {list(known)}.")
    return known[name]


def _check_options(about: Paper, wanted: Sequence[Experiment], options: Mapping[str, Any]) -> None:
    """All are known to one experiment at least, and have values that it takes."""
    known = list(dict.fromkeys(name for e in wanted for name in e.options))
    for name in options:
        if name not in known:
            of = ", ".join(e.name for e in wanted)
            raise ValueError(f"There is no option {name!r} of {about.name} ({of}): use {known}.")
    for e in wanted:
        e.made(False, options)


# ------------------------------------------------------------------------------ data

_ADVICE = f"Name the folder that holds them by data= (--data), or by the variable {VARIABLE}"


def _folder(data: str | os.PathLike | None) -> str | None:
    """The folder that was named; one that is not there is an error, and not a reason to skip."""
    if data is not None and not Path(data).expanduser().is_dir():
        raise DataAbsent(f"data={os.fspath(data)!r}: there is no such folder. Leave it out for experiments without.")
    return None if data is None else str(Path(data).expanduser())


def _missing(experiment: Experiment, folder: str | None, options: Mapping[str, Any]) -> str:
    """What is missing, in words; nothing where the experiment can run."""
    needs = experiment.needs
    if experiment.any_of:
        needs = tuple(name for name in needs if name in options.get("sets", needs))
    absent = [name for name in needs if name not in available(folder)]
    if not absent or (experiment.any_of and len(absent) < len(needs)):
        return ""
    lines = "".join(f"\n  {name}: {files_of(name)}" for name in absent)
    return f"{experiment.name}, {experiment.place}, for want of files{lines}"


def _tell_missing(about: Paper, skipped: Mapping[str, str], report: Report) -> None:
    for text in skipped.values():
        report(f"skipped: {text}")
    if skipped:
        report(f"{_ADVICE}.")
        if about.remark:
            report(about.remark)
