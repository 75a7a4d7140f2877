"""The points of a search: parameters and held-out scores, as people know them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from leastwise.displays._drawing import pyplot
from leastwise.inspection.outcomes import having

Array = np.ndarray

#: Scores of which less is better, kept with a minus in ``cv_results_``; and what scores are called.
LOSSES = {"log_loss": "log-loss", "brier": "Brier score", "mse": "squared error", "mae": "absolute error"}
LOSSES |= {"neg_log_loss": "log-loss", "hamming": "Hamming loss"}
NAMES = {"auc": "AUC", "task_auc": "AUC, mean over tasks", "f1": "F1", "r2": "R²", "task_r2": "R², mean over tasks"}


@dataclass(frozen=True)
class Searched:
    """Points of a search.

    Attributes
    ----------
    values : dict of str to ndarray of shape (m,)
        Parameters by name, without those that have one value only.
    score : ndarray of shape (m,)
        Losses with their own sign.
    rows : ndarray of int of shape (m,)
        How many rows the point was searched on.
    chosen : dict of str to float
    label : str
        What the score is called.
    loss : bool
        Whether less is better.
    """

    values: dict[str, Array]
    score: Array
    rows: Array
    chosen: dict[str, float]
    label: str
    loss: bool

    def only(self, some: Array) -> Searched:
        """Some of the points."""
        values = {name: column[some] for name, column in self.values.items()}
        return Searched(values, self.score[some], self.rows[some], self.chosen, self.label, self.loss)

    def largest_stage(self) -> Searched:
        """The points on one set of rows, the one with most points: scores on others are not comparable."""
        sizes, counts = np.unique(self.rows, return_counts=True)
        return self.only(self.rows == sizes[counts.argmax()])

    def latest(self) -> Searched:
        """Every point once: one that was met again on the same rows, with the score that it had last."""
        keys = np.array([*([f"{v:.9g}" for v in c] for c in self.values.values()), list(map(str, self.rows))]).T[::-1]
        return self.only(np.sort(len(keys) - 1 - np.unique(keys, axis=0, return_index=True)[1]))

    def best(self, *names: str) -> Searched:
        """For every pair, triple, ... of these parameters the best point over all others."""
        order = np.argsort(self.score if self.loss else -self.score, kind="stable")
        # Values that are the same may differ by rounding.
        keys = np.array([[f"{self.values[name][i]:.9g}" for name in names] for i in order])
        return self.only(np.sort(order[np.unique(keys, axis=0, return_index=True)[1]]))

    def at_chosen(self, *free: str) -> Searched:
        """Points where all parameters but these are as they were chosen."""
        keep = np.ones(len(self.score), dtype=bool)
        for name in self.values.keys() - set(free):
            keep &= same(self.values[name], self.chosen[name])
        return self.only(keep)

    def check(self, *names: str) -> None:
        """An error where a parameter was not searched."""
        for name in names:
            if name not in self.values:
                known = sorted(self.values)
                raise ValueError(f"{name!r} has one value only, or is not there; searched were {known}.")


def same(values: Array, value: float) -> Array:
    """Which values are this one."""
    return np.isclose(values, value, rtol=1e-9, atol=0)


def is_log(name: str, values: Array) -> bool:
    """Whether a parameter has a logarithmic axis: a share has not."""
    return name != "sharing" and bool((values > 0).all())


def read_model(model: Any) -> Searched:
    """The search of a fitted model, of that inside a pipeline or wrapper too."""
    model = having(model, "cv_results_", "fit a model of leastwise with cv= other than None, or use from_results")
    names = [name.removeprefix("param_") for name in model.cv_results_ if name.startswith("param_")]
    chosen = {name: float(value) for name in names if (value := getattr(model, f"{name}_", None)) is not None}
    return read_results(model.cv_results_, chosen=chosen, scoring=getattr(model, "scoring", None))


def read_results(results: Mapping[str, Any], *, chosen: Mapping[str, float] | None, scoring: Any) -> Searched:
    """A table of points; without ``chosen`` the best one counts as chosen."""
    columns = {name: np.asarray(results[name]) for name in results}
    score = np.asarray(columns["mean_test_score"], dtype=float)
    kept = np.flatnonzero(~np.isnan(score))
    if not len(kept):
        raise ValueError("cv_results_ holds no point with a score.")
    rows = np.asarray(columns.get("n_rows", np.zeros(len(score), dtype=int)))[kept]
    params = {n.removeprefix("param_"): c[kept].astype(float) for n, c in columns.items() if n.startswith("param_")}
    best = _last_stage_best(score[kept], rows)
    found = {name: float(column[best]) for name, column in params.items()} | dict(chosen or {})
    loss = isinstance(scoring, str) and (scoring in LOSSES or scoring.startswith("neg_"))
    values = {name: column for name, column in params.items() if len(np.unique(column)) > 1}
    points = Searched(values, -score[kept] if loss else score[kept], rows, found, _called(scoring), loss)
    return points.latest()


def _last_stage_best(score: Array, rows: Array) -> int:
    """The best point of those on the most rows, which is what the search ends with."""
    last = np.flatnonzero(rows == rows.max())
    return int(last[score[last].argmax()])


def _called(scoring: Any) -> str:
    if not isinstance(scoring, str):
        return "Held-out score"
    words = scoring.removeprefix("neg_").replace("_", " ")
    return f"Held-out {LOSSES.get(scoring) or NAMES.get(scoring) or words}"


class SearchDisplay:
    """Base of the displays of what a search tried; a subclass has ``plot``."""

    def __init__(self, searched: Searched) -> None:
        self.searched = searched

    @classmethod
    def from_estimator(cls, estimator: Any, **kwargs: Any) -> Self:
        """Draw what a fitted model tried.

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
        """Draw a table of points.

        Parameters
        ----------
        cv_results : mapping
            With ``param_sigma``, ``param_alpha``, ... and ``mean_test_score``, as models keep it.
        chosen : mapping of str to float, optional
            The values of the chosen point; by default the best one, of those on the most rows.
        scoring : str, optional
            What the scores are: losses such as "log_loss" are shown with their own sign.
        **kwargs
            For :meth:`plot`.
        """
        pyplot()
        return cls(read_results(cv_results, chosen=chosen, scoring=scoring)).plot(**kwargs)

    plot: Any
