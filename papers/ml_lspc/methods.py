"""The methods of section 6, each a function of a draw.

LSPC          independent labels (sharing = 0); penalty on the coefficients, clipped and normalised
ML-LSPC       labels coupled by the positive part of their correlation, eq. (1)
... learned   labels coupled by the similarity that MultiLabelLSPC learns
ML-kNN        number of neighbours by cross-validation; also with 10, as in its own paper
InsDif        medoids for 20 % of the rows, as in its own paper
MultiLabel..  MultiLabelLSPC of this library with its defaults, and with one parameter changed
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from leastwise import MultiLabelLSPC
from leastwise.baselines import InsDif, MLkNN
from leastwise.metrics import hamming, label_f1
from papers._common import PLAIN
from papers._common.data import Array, median_distance
from papers.ml_lspc.draws import LabelSplit

MAIN = "ML-LSPC"


@dataclass(frozen=True)
class Protocol:
    """Grids and selection criterion. "auto" is the grid of MultiLabelLSPC."""

    scoring: str
    #: In units of the median distance between rows.
    sigmas: Sequence[float] | str = "auto"
    alphas: Sequence[float] | str = "auto"
    sharings: Sequence[float] | str = "auto"
    neighbors: Sequence[int] = (5, 10, 20, 40)
    #: True to standardise the features by the training rows.
    scaled: bool = False
    folds: int = 5

    def objective(self, Y: Array, decisions: Array) -> float:
        """The score that the search maximises."""
        return float(label_f1(Y, decisions) if self.scoring == "f1_micro" else -hamming(Y, decisions))

    def widths(self, X: Array) -> Any:
        """Sigmas for these rows."""
        return "auto" if isinstance(self.sigmas, str) else [s * median_distance(X) for s in self.sigmas]


@dataclass(frozen=True)
class Case:
    """A draw and its protocol."""

    data: LabelSplit
    protocol: Protocol
    seed: int


#: A function that predicts the test rows, and the chosen hyperparameters.
Fitted = tuple[Callable[[], Array], dict]
Method = Callable[[Case], Fitted]


def chosen(model: MultiLabelLSPC) -> dict:
    """Sigma, alpha and sharing."""
    return {"chosen": [model.sigma_, model.alpha_, model.sharing_]}


def paper_form(case: Case, sharings: Any = None, similarity: str = "correlation") -> Fitted:
    """LSPC and ML-LSPC as in the paper."""
    p, data = case.protocol, case.data
    model = MultiLabelLSPC(
        p.widths(data.X),
        p.alphas,
        p.sharings if sharings is None else sharings,
        similarity=similarity,
        **PLAIN,
        norm="coefficients",
        calibration=None,
        cv=p.folds,
        scoring=p.scoring,
        search_rows=None,
        random_state=case.seed,
    ).fit(data.X, data.Y)
    return partial(model.predict, data.X_test), chosen(model)


def nearest(case: Case, ks: Sequence[int] | None = None) -> Fitted:
    """ML-kNN with the number of neighbours by cross-validation."""
    p, data = case.protocol, case.data
    ks = p.neighbors if ks is None else ks
    best = max(ks, key=partial(nearest_score, case)) if len(ks) > 1 else ks[0]
    model = MLkNN(best).fit(data.X, data.Y)
    return partial(model.predict, data.X_test), {"chosen": best}


def nearest_score(case: Case, k: int) -> float:
    """Held-out score of k neighbours."""
    X, Y = case.data.X, case.data.Y
    decisions = np.empty_like(Y)
    for stay, out in KFold(case.protocol.folds, shuffle=True, random_state=case.seed).split(X):
        decisions[out] = MLkNN(k).fit(X[stay], Y[stay]).predict(X[out])
    return case.protocol.objective(Y, decisions)


def insdif(case: Case) -> Fitted:
    """InsDif with the settings of its own paper."""
    model = InsDif(random_state=case.seed).fit(case.data.X, case.data.Y)
    return partial(model.predict, case.data.X_test), {}


def ours(options: dict[str, Any], case: Case) -> Fitted:
    """MultiLabelLSPC with its own search."""
    model = MultiLabelLSPC(**PLAIN, **options, random_state=case.seed).fit(case.data.X, case.data.Y)
    return partial(model.predict, case.data.X_test), chosen(model)


#: The paper's methods, and variants of them.
PAPERS: dict[str, Method] = {
    "LSPC": partial(paper_form, sharings=0.0),
    MAIN: paper_form,
    "ML-LSPC, learned": partial(paper_form, similarity="learned"),
    "ML-kNN": nearest,
    "ML-kNN, k = 10": partial(nearest, ks=(10,)),
    "InsDif": insdif,
}
VARIANTS = ("ML-LSPC, learned", "ML-kNN, k = 10")
OURS: dict[str, dict[str, Any]] = {
    "MultiLabelLSPC()": {},
    "MultiLabelLSPC(threshold='auto')": {"threshold": "auto"},
    "... and scoring='f1_micro'": {"threshold": "auto", "scoring": "f1_micro"},
    "MultiLabelLSPC(sharing=0)": {"sharing": 0.0},
    "MultiLabelLSPC(similarity='shared')": {"similarity": "shared"},
    "MultiLabelLSPC(similarity='correlation')": {"similarity": "correlation"},
}
