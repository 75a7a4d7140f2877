"""What was asked for, and whether there are data for it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leastwise.datasets.loading import VARIABLE
from papers._common.data import DataAbsent, files_of, is_there
from papers._common.experiments import Experiment, Paper, Report

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
