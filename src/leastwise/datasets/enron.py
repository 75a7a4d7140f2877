"""The Enron messages of Mulan: 1001 words, of which a message has some, and 53 labels of content and tone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from leastwise.datasets.files import Array, Entry, Part, Source, blaming, opened
from leastwise.datasets.multi_label import load_arff

#: Berkeley's categories in the order of Mulan's files: coarse genre, forwarded parts, topics, emotional tone.
_SIZES = {"A": 8, "B": 13, "C": 13, "D": 19}
LABELS = tuple(f"{kind}.{kind}{i}" for kind, size in _SIZES.items() for i in sorted(range(1, size + 1), key=str))
N_WORDS = 1001


def _read_archive(paths: Sequence[Path]) -> list[Part]:
    with opened(paths[0]) as stream, np.load(stream, allow_pickle=False) as z:
        X, train = z["X"], z["is_train"].astype(bool)
        Y = _in_order(z["Y"], z["label_names"].tolist())
        if not len(X) == len(Y) == len(train):
            raise ValueError(f"{len(X)} rows but {len(Y)} of labels, and {len(train)} in is_train")
        names = tuple(z["feature_names"].tolist())
        return [Part(X[part], Y[part], feature_names=names) for part in (train, ~train)]


def _read_arff(paths: Sequence[Path]) -> list[Part]:
    """The files of the parts, then the one that names the labels."""
    *files, labels = paths
    return [_read_part(file, labels) for file in files]


def _read_part(file: Path, labels: Path) -> Part:
    data = load_arff(file, labels)
    X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    with blaming(f"{file} + {labels}"):
        return Part(X, _in_order(data.Y, data.label_names), feature_names=data.feature_names)


def _in_order(Y: Array, names: Sequence[str]) -> Array:
    """With the columns in the order of LABELS."""
    if sorted(names) != sorted(LABELS) or Y.ndim != 2 or Y.shape[1] != len(names):
        raise ValueError(f"{len(names)} labels, {', '.join(names[:3])}, ..., that are not the {len(LABELS)} of Enron")
    return Y[:, [list(names).index(label) for label in LABELS]]


ENRON = Entry(
    n_features=N_WORDS,
    target_names=None,
    dtype=np.float64,
    label_names=LABELS,
    sources=(
        Source(("enron.npz",), _read_archive, (0, 1)),
        Source(("enron-train.arff", "enron-test.arff", "enron.xml"), _read_arff, (0, 1)),
        Source(("enron.arff", "enron.xml"), _read_arff, (0, 1)),
    ),
)
