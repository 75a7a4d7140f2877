"""What ``influence`` of a model of many labels returns: the training rows and labels behind some predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.influence_report import Influence, sources, wrapped
from leastwise.naming import NAME, short, shortened

Array = np.ndarray

#: So many labels of a prediction, and so many labels that one comes from, are printed.
SHOWN, FROM = 3, 3


@dataclass(frozen=True, eq=False)
class LabelInfluence(Influence):
    """The training rows behind m predictions of some labels, those of the largest effects first.

    ``rows``, ``contribution``, ``effect``, ``score`` and ``outputs`` as in
    :class:`leastwise.influence_report.Influence`. The outputs are the classes of the first label that was asked for,
    then those of the second, and so on.

    Attributes
    ----------
    target : ndarray of shape (m, k, n_outputs)
        The rows' classes of the outputs' labels; NaN or None where these are not known.
    own_contribution : ndarray of shape (m, k, n_outputs)
        The part of ``contribution`` that comes from the row's value of the output's label; the rest comes from its
        other labels.
    by_label : ndarray of shape (m, T, n_outputs)
        Contributions of all rows, by the label that they come from; they sum to ``score``.
    labels : sequence of length T
        Names of all labels.
    output_label : ndarray of int of shape (n_outputs,)
        The label of each output, as its place in ``labels``.
    """

    own_contribution: Any = None
    by_label: Any = None
    labels: Sequence[Any] = ()
    output_label: Any = None

    COMMON = ("outputs", "tasks", "labels", "output_label")

    @property
    def own(self) -> Array:
        """What comes from the label itself, (m, n_outputs)."""
        return self.by_label[:, self.output_label, np.arange(len(self.output_label))]

    def to_frame(self) -> Any:
        """A frame (pandas) with a line for every prediction, training row and output."""
        frame = super().to_frame()
        m, k, _ = self.effect.shape
        frame.insert(2, "label", [self.labels[t] for t in np.tile(self.output_label, m * k)])
        frame.insert(frame.columns.get_loc("effect"), "own_contribution", self.own_contribution.ravel())
        return frame

    def _lines(self, i: int) -> list[str]:
        """One prediction: the likeliest class of each label, its rows, and the labels that it comes from."""
        asked = np.unique(self.output_label)
        lines = [line for t in asked[:SHOWN].tolist() for line in self._block(i, t)]
        hidden = len(asked) - SHOWN
        return lines + ([f"... {hidden} more labels: to_frame() has them all"] if hidden > 0 else [])

    def _block(self, i: int, t: int) -> list[str]:
        places = np.flatnonzero(self.output_label == t)
        j = int(places[self.score[i, places].argmax()])
        of = f"label {short(self.labels[t], NAME)}, score of {self.outputs[j]!s}"
        lines = wrapped(f"prediction {i}: {of} {self.score[i, j]:.4g} ({self._sources(i, j)})")
        lines += [f"{'row':>8}  {'target':>10}  {'contribution':>12}  {'of its own':>12}  {'effect':>10}"]
        for r, row in enumerate(self.rows[i]):
            parts = f"{self.contribution[i, r, j]:>12.4g}  {self.own_contribution[i, r, j]:>12.4g}"
            lines.append(f"{row:>8}  {self.target[i, r, j]!s:>10}  {parts}  {self.effect[i, r, j]:>+10.4g}")
        return lines

    def _sources(self, i: int, j: int) -> str:
        """Where the score comes from, label by label."""
        t, part = int(self.output_label[j]), self.by_label[i, :, j]
        order = [s for s in np.argsort(-np.abs(part), kind="stable") if s != t and part[s] != 0]
        own = f"{part[t]:.4g} from the label itself"
        return "; ".join([own, *sources(part, order, shortened(self.labels, NAME), FROM)])
