"""Targets of a stream that are many labels."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from leastwise.calibration.label_blend import class_counts
from leastwise.estimators._labels import as_column, is_flat
from leastwise.estimators._model import Training
from leastwise.estimators._stream_targets import ROUNDING, StreamTargets, united
from leastwise.linalg.moments import Moments
from leastwise.problem.labels import Labels, encode_known, some_labels, whole_labels
from leastwise.solvers.evaluator import Settings

Array = np.ndarray


class LabelStream(StreamTargets):
    """Targets that are many labels, all of them known."""

    def _learn(self: Any, y: Any) -> Labels:
        flat = is_flat(y)
        table = as_column(y) if flat else y
        labels = some_labels(table, np.shape(table)[0], self.missing)
        self.label_index_ = replace(labels, form="flat") if flat else labels
        return self.label_index_

    def _learn_classes(self: Any, classes: Any) -> Labels:
        if not is_flat(classes):
            raise ValueError("classes= names the classes of one label; those of many are read from the first rows.")
        return self._learn(np.repeat(np.asarray(classes), 2))

    def _grown(self: Any, known: Labels, y: Any) -> Labels:
        return self._combined(known, self._learn(y))

    def _combined(self: Any, known: Labels, fresh: Labels) -> Labels:
        if fresh.n_labels != known.n_labels:
            raise ValueError(f"There are {fresh.n_labels} labels; the first rows had {known.n_labels}.")
        if known.named and fresh.named and fresh.names != known.names:
            raise ValueError(f"Labels are {fresh.names[:10]} in some rows and {known.names[:10]} in others.")
        classes = tuple(united(*pair) for pair in zip(known.classes, fresh.classes, strict=True))
        same = all(a is b for a, b in zip(classes, known.classes, strict=True))
        return known if same else replace(known, classes=classes)

    def _completed(self: Any, known: Labels, n: int, names: Any = None) -> Labels:
        given = () if names is None or isinstance(names, str) else tuple(names)
        words = all(isinstance(name, str) for name in given)
        title = given if words and len(given) == known.n_labels and not known.named else known.names
        return whole_labels(replace(known, names=title), n, self.missing)

    def _seen(self: Any, known: Labels, moments: Moments) -> Labels:
        there = moments.z > ROUNDING * moments.mass
        constant = [t for t, (a, b) in enumerate(pairwise(known.starts)) if there[a:b].sum() == 1]
        return replace(known, constant=tuple(constant))

    def _known(self: Any) -> Labels:
        return self.label_index_

    def _encode(self: Any, y: Any, known: Labels) -> Array:
        self.label_index_ = known
        table = as_column(y) if is_flat(y) else y
        codes = encode_known(table, known, np.shape(table)[0], self.missing)
        if (codes < 0).any():
            raise ValueError(
                f"{int((codes < 0).any(axis=1).sum())} of {len(codes)} rows have labels that are not known: sums "
                "need all labels of a row. Leave these rows out, or fit in memory, where labels may be unknown."
            )
        return codes

    def _recode(self: Any, codes: Array, old: Labels, new: Labels) -> Array:
        pairs = enumerate(zip(old.classes, new.classes, strict=True))
        return np.column_stack([np.searchsorted(after, before)[codes[:, t]] for t, (before, after) in pairs])

    def _aligned(self: Any, moments: Moments, old: Labels, new: Labels) -> Moments:
        C, z = np.zeros((len(moments.C), new.n_outputs)), np.zeros(new.n_outputs)
        pairs = zip(new.starts[:-1], old.classes, new.classes, strict=True)
        place = np.concatenate([start + np.searchsorted(after, before) for start, before, after in pairs])
        C[:, place], z[place] = moments.C, moments.z
        return replace(moments, C=C, z=z)

    def _check_weight(self: Any, sample_weight: Any) -> None:
        if self.class_weight is not None or np.ndim(sample_weight) == 2:
            raise ValueError("A stream of many labels takes one weight a row: no class_weight, no weight per label.")

    def _row_weights(self: Any, w: Array, known: Labels) -> Array:
        return np.repeat(w[:, None], known.n_labels, axis=1)

    def _blank(self: Any, n: int, known: Labels) -> Array:
        return np.zeros((n, known.n_labels), dtype=int)

    def _stream_settings(self: Any, data: Training) -> Settings:
        return self._settings(data.kernel, self._label_judge(), self.norm)

    def _shares(self: Any, moments: Moments, unit: float) -> Array:
        return np.where(moments.z > ROUNDING * moments.mass, moments.z, 0) / unit

    def _shares_of(self: Any, rows: Any, n_outputs: int) -> Array:
        return class_counts(rows.y, rows.W, rows.starts)
