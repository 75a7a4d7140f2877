"""Load the data sets of the papers' experiments from local files."""

from __future__ import annotations

import os
from pathlib import Path

from leastwise.datasets.files import Dataset, Entry, read_dataset
from leastwise.datasets.multi_label import ENRON
from leastwise.datasets.multi_task import MULTI_TASK
from leastwise.datasets.single_task import DERMATOLOGY, SINGLE_TASK

#: The environment variable with the folder.
VARIABLE = "LEASTWISE_DATA"

REGISTRY: dict[str, Entry] = {**SINGLE_TASK, **MULTI_TASK, "dermatology": DERMATOLOGY, "enron": ENRON}


def load(name: str, folder: str | os.PathLike | None = None, *, full_size: bool = False) -> Dataset:
    """Read a data set from files.

    Parameters
    ----------
    name : {"mnist", "usps", "satimage", "letter", "landmine", "umist", "school", "dermatology", "enron"}
        The data set.
    folder : path, optional
        The folder of its files; by default that of the environment variable ``LEASTWISE_DATA``. The files are
        those of the LIBSVM page (plain or compressed), the original ones (MNIST's idx files, UCI's
        ``letter-recognition.data`` and ``dermatology.data``, Statlog's ``sat.trn`` and ``sat.tst``,
        ``LandmineData.mat``, ``umist_cropped.mat``, ``school_b.mat`` with ``school_1_indexes.mat`` to
        ``school_10_indexes.mat``), the table ``umist.mat``, MALSAR's ``school.mat``,
        Mulan's ``enron.xml`` with ``enron-train.arff`` and ``enron-test.arff`` or with ``enron.arff``, or one archive
        ``<name>.npz``.
    full_size : bool, default=False
        For ``"umist"``: images of 112 x 92 pixels, instead of every fourth pixel of every fourth row (28 x 23,
        ``picture[2::4, 2::4]``). ``umist.npz`` contains 488 of the 575 in this size.

    Returns
    -------
    Dataset
        Landmine has a ``task``, the minefield. In UMIST the class is the person, and ``female`` is True for persons
        who present as women, for the tasks of the paper: pairs of a man and a woman. School is regression: ``y`` is
        a score, the ``task`` is the school, and ``splits`` are the ten published ones. In Dermatology the last of 34
        columns is the age, NaN if missing. Enron has 53 labels: ``Y`` has a column for each, named by
        ``label_names``, and X has one for each word.

    Raises
    ------
    FileNotFoundError
        If there are no files. The message lists the possible ones.
    ValueError
        If a file cannot be read in the format of its name.

    Notes
    -----
    ``female`` is judged from the UMIST images, not recorded by their makers. Four of the twenty persons present as
    women (1g, 1h, 1i, 1t), the number that papers report.
    Ten images of the second UMIST person are exact copies of others: keep copies on one side of a split.

    School has 27 inputs. The files have one more column, constant 1, which is left out: append ones for a method
    without an intercept. MALSAR's ``school.mat`` has no splits, so that ``splits`` is None.

    Dermatology's age is missing (NaN) for 8 of 366 patients; nothing else is. ``X[:, :-1]`` are the 33 other
    attributes, those of the paper; ``feature_names`` has their names.

    Enron's published split, 1123 and 579 messages, is in the archive and in Mulan's two files; ``enron.arff`` has the
    same messages in another order, so that ``is_train`` is True throughout. The only message with the label D.D18 is
    in the test part. X is dense.
    """
    entry = _entry(name, full_size)
    where = _folder(folder)
    if where is None:
        raise FileNotFoundError(f"No folder is given for {name!r}. {_advice(name, entry)}")
    if not where.is_dir():
        raise FileNotFoundError(f"There is no folder {str(where)!r} for {name!r}. {_advice(name, entry)}")
    for source in entry.sources:
        paths = source.paths(where)
        if paths:
            return read_dataset(name, entry, source, paths)
    raise FileNotFoundError(f"No files of {name!r} are in the folder {str(where)!r}. {_advice(name, entry)}")


def available(folder: str | os.PathLike | None = None) -> list[str]:
    """Names of the data sets whose files are in the folder; see :func:`load`."""
    where = _folder(folder)
    if where is None or not where.is_dir():
        return []
    return [name for name, entry in REGISTRY.items() if any(source.paths(where) for source in entry.sources)]


def _entry(name: str, full_size: bool) -> Entry:
    if name not in REGISTRY:
        raise ValueError(f"There is no data set {name!r}: use one of {list(REGISTRY)}.")
    entry = REGISTRY[name].full_size if full_size else REGISTRY[name]
    if entry is None:
        sized = [other for other, known in REGISTRY.items() if known.full_size]
        raise ValueError(f"full_size=True: {name!r} has one size only; remove it, or load one of {sized}.")
    return entry


def _folder(folder: str | os.PathLike | None) -> Path | None:
    given = folder if folder is not None else os.environ.get(VARIABLE)
    return Path(given).expanduser() if given else None


def _advice(name: str, entry: Entry) -> str:
    choices = "; or ".join(" + ".join(source.files) for source in entry.sources)
    return (
        f"Needed is one of: {choices} (text and idx files also with .gz, .bz2 or .xz). Give their folder with "
        f"load({name!r}, folder=...) or the environment variable {VARIABLE}."
    )
