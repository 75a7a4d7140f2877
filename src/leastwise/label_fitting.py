"""The last step of a fit of many labels: coefficients at the chosen sigma, alpha and sharing, from all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.linalg.sylvester import solve_sylvester
from leastwise.selection.incomplete import IncompleteTrial
from leastwise.selection.labels import LabelTrial

Array = np.ndarray


@dataclass(frozen=True)
class LabelSolution:
    """Coefficients on the centres (b x outputs), intercepts (outputs), and how they came about.

    ``jitter`` was added to a diagonal; ``lifted`` says that this was because the kernel matrix has negative
    eigenvalues. ``story`` is that of conjugate gradients, where they were needed.
    """

    coef: Array
    intercept: Array
    jitter: float = 0.0
    lifted: bool = False
    story: Any = None

    @classmethod
    def empty(cls, n_functions: int, n_outputs: int, dtype: Any, wide: bool = False, **known: Any) -> LabelSolution:
        """Zeros, to be filled in; ``wide`` coefficients have double precision, intercepts that of the rows."""
        coef = np.zeros((n_functions, n_outputs), float if wide else dtype)
        return cls(coef, np.zeros(n_outputs, dtype), **known)


def solve_labels(trial: LabelTrial, sigma: float, alpha: float, sharing: float) -> LabelSolution:
    """The exact solution: by two eigendecompositions, or, where labels are not known, by conjugate gradients."""
    trial = trial.tied(sharing)
    rho, (spectrum, known) = trial.least(alpha) / trial.unit * len(trial.rows), trial.decomposed(sigma)
    lifted = trial.basis.square and spectrum.jitter > 0
    stories: list = []
    found = LabelSolution.empty(
        trial.basis.n_functions,
        trial.Z.shape[1],
        trial.Z.dtype,
        wide=known is not None,
        jitter=spectrum.jitter,
        lifted=lifted,
        story=stories,
    )
    for tie in trial.ties:
        if isinstance(trial, IncompleteTrial):
            Theta, a, story = trial.solve(spectrum, tie, np.arange(len(trial.rows)), rho)
            stories.append(story)
        else:
            v = trial.root if trial.settings.bias else None
            Theta, a = solve_sylvester(spectrum, tie.modes, tie.take(trial.Z), rho, v)
        if known is not None:
            Theta = known.unwhiten(Theta.reshape(len(Theta), -1)).reshape(-1, *Theta.shape[1:])
        found.coef[:, tie.family.columns], found.intercept[tie.family.columns] = Theta, a
    return found
