"""The points of a hyperparameter search with their held-out scores, and the base of the displays of searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from leastwise.displays._base import pyplot
from leastwise.inspection.outcomes import require
from leastwise.model_selection.label_objective import LABEL_SCORINGS
from leastwise.model_selection.objective import CLASS_SCORINGS, VALUE_SCORINGS

Array = np.ndarray

#: Names of scorings on axes; others are shown as they are.
NAMES = {"log_loss": "log-loss", "brier": "Brier score", "mse": "squared error", "mae": "absolute error"}
NAMES |= {"neg_log_loss": "log-loss", "hamming": "Hamming loss"}
NAMES |= {"auc": "AUC", "task_auc": "AUC, mean over tasks", "f1": "F1", "r2": "R²", "task_r2": "R², mean over tasks"}

#: Hyperparameters that are names.
CONFIGURATION = ("scale", "kernel")


@dataclass(frozen=True)
class SearchResults:
    """Points of a hyperparameter search.

    Attributes
    ----------
    values : dict of str to ndarray of shape (m,)
        Hyperparameters by name, without those that have one value only.
    score : ndarray of shape (m,)
        Held-out scores; losses are positive.
    rows : ndarray of int of shape (m,)
        The number of rows that the point was evaluated on.
    chosen : dict of str to float
    label : str
        The name of the score.
    loss : bool
        True if lower is better.
    """

    values: dict[str, Array]
    score: Array
    rows: Array
    chosen: dict[str, float]
    label: str
    loss: bool

    def take(self, some: Array) -> SearchResults:
        """Some of the points."""
        values = {name: column[some] for name, column in self.values.items()}
        return SearchResults(values, self.score[some], self.rows[some], self.chosen, self.label, self.loss)

    def largest_stage(self) -> SearchResults:
        """The points on the set of rows that has the most points: scores on different rows are not comparable."""
        sizes, counts = np.unique(self.rows, return_counts=True)
        return self.take(self.rows == sizes[counts.argmax()])

    def latest(self) -> SearchResults:
        """Every point once; one that was evaluated again on the same rows has its last score."""
        keys = np.array([*([f"{v:.9g}" for v in c] for c in self.values.values()), list(map(str, self.rows))]).T[::-1]
        return self.take(np.sort(len(keys) - 1 - np.unique(keys, axis=0, return_index=True)[1]))

    def best(self, *names: str) -> SearchResults:
        """For every combination of values of these hyperparameters, the best point over all others."""
        order = np.argsort(self.score if self.loss else -self.score, kind="stable")
        # Equal values may differ by rounding.
        keys = np.array([[f"{self.values[name][i]:.9g}" for name in names] for i in order])
        return self.take(np.sort(order[np.unique(keys, axis=0, return_index=True)[1]]))

    def at_chosen(self, *free: str) -> SearchResults:
        """Points where all hyperparameters but these have their chosen values."""
        keep = np.ones(len(self.score), dtype=bool)
        for name in self.values.keys() - set(free):
            keep &= same(self.values[name], self.chosen[name])
        return self.take(keep)

    def check(self, *names: str) -> None:
        """Raise an error if a hyperparameter was not searched."""
        for name in names:
            if name not in self.values:
                raise ValueError(
                    f"{name!r} was not searched, or has one value only; searched: {sorted(self.values)}."
                )


def same(values: Array, value: float) -> Array:
    """True for values that are equal up to rounding."""
    return np.isclose(values, value, rtol=1e-9, atol=0)


def is_log(name: str, values: Array) -> bool:
    """True if a hyperparameter has a logarithmic axis; ``sharing`` has not."""
    return name != "sharing" and bool((values > 0).all())


def read_model(model: Any) -> SearchResults:
    """The search of a fitted model, inside a pipeline or wrapper too."""
    model = require(model, "cv_results_", "fit a model of leastwise with cv= other than None, or use from_results")
    names = [name.removeprefix("param_") for name in model.cv_results_ if name.startswith("param_")]
    names = [name for name in names if name not in CONFIGURATION]
    chosen = {name: float(value) for name in names if (value := getattr(model, f"{name}_", None)) is not None}
    return read_results(model.cv_results_, chosen=chosen, scoring=getattr(model, "scoring", None))


def read_results(results: Mapping[str, Any], *, chosen: Mapping[str, float] | None, scoring: Any) -> SearchResults:
    """From a table of points; without ``chosen`` the best one is taken as chosen."""
    columns = {name: np.asarray(results[name]) for name in results}
    score = np.asarray(columns["mean_test_score"], dtype=float)
    known = ~np.isnan(score)
    # Other scales and kernels are other problems; the last point has the chosen ones.
    for name in CONFIGURATION:
        if f"param_{name}" in columns:
            column = columns.pop(f"param_{name}")
            known &= column == column[-1]
    kept = np.flatnonzero(known)
    if not len(kept):
        raise ValueError("cv_results_ has no point with a score.")
    rows = np.asarray(columns.get("n_rows", np.zeros(len(score), dtype=int)))[kept]
    params = {n.removeprefix("param_"): c[kept].astype(float) for n, c in columns.items() if n.startswith("param_")}
    best = _last_stage_best(score[kept], rows)
    found = {name: float(column[best]) for name, column in params.items()} | dict(chosen or {})
    tables: list[Mapping[str, Any]] = [CLASS_SCORINGS, VALUE_SCORINGS, LABEL_SCORINGS]
    loss = isinstance(scoring, str) and (
        scoring.startswith("neg_") or any(scoring in table and table[scoring].loss for table in tables)
    )
    values = {name: column for name, column in params.items() if len(np.unique(column)) > 1}
    points = SearchResults(values, -score[kept] if loss else score[kept], rows, found, _score_name(scoring), loss)
    return points.latest()


def cell_edges(values: Array, log: bool) -> Array:
    """Edges half-way between sorted values; the outer ones as far outside as their neighbours are inside."""
    v = np.log10(values) if log else np.asarray(values, dtype=float)
    half = np.diff(v) / 2 if len(v) > 1 else np.array([0.5])
    edges = np.concatenate([v[:1] - half[:1], v[: len(v) - 1] + half[: len(v) - 1], v[-1:] + half[-1:]])
    return 10.0**edges if log else edges


def _last_stage_best(score: Array, rows: Array) -> int:
    """The best point of those on the most rows, with which the search ends."""
    last = np.flatnonzero(rows == rows.max())
    return int(last[score[last].argmax()])


def _score_name(scoring: Any) -> str:
    if not isinstance(scoring, str):
        return "Held-out score"
    words = scoring.removeprefix("neg_").replace("_", " ")
    return f"Held-out {NAMES.get(scoring) or words}"


class SearchDisplay:
    """Base of the displays of a hyperparameter search; subclasses have ``plot``."""

    def __init__(self, searched: SearchResults) -> None:
        self.searched = searched

    @classmethod
    def from_estimator(cls, estimator: Any, **kwargs: Any) -> Self:
        """Draw the search of a fitted model.

        Parameters
        ----------
        estimator : fitted model of leastwise
            Or a pipeline that ends in one, or a wrapper around one.
        **kwargs
            For :meth:`plot`.
        """
        pyplot()
        return cls(read_model(estimator)).plot(**kwargs)

    @classmethod
    def from_results(
        cls,
        cv_results: Mapping[str, Any],
        *,
        chosen: Mapping[str, float] | None = None,
        scoring: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the search of a table of points.

        Parameters
        ----------
        cv_results : mapping
            With ``param_sigma``, ``param_alpha``, ... and ``mean_test_score``, as in the ``cv_results_`` of a model.
        chosen : mapping of str to float, optional
            The values of the chosen point; by default the best one, of those on the most rows.
        scoring : str, optional
            The name of the score; losses such as "log_loss" are shown as positive numbers.
        **kwargs
            For :meth:`plot`.
        """
        pyplot()
        return cls(read_results(cv_results, chosen=chosen, scoring=scoring)).plot(**kwargs)

    plot: Any
