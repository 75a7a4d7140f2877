"""HTML representations of fitted models in notebooks."""

import numpy as np
import pytest
from report_cases import Page, classes_model, labels_model, tasks_model, values_model
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from leastwise import LSPC
from leastwise.estimators._html_repr import facts_of, fitted_block
from leastwise.estimators.recalibrated import Recalibrated
from leastwise.tables import TableModel


def models():
    _, X, y = classes_model()
    yield classes_model()[0]
    yield classes_model()[0].estimator_
    yield tasks_model()[0]
    yield labels_model()[0]
    yield values_model()[0]
    yield LSPC(sigma=1.0, alpha=0.1, cv=None, calibration=None).fit(X, y)
    yield Recalibrated(LSPC(random_state=0), method="temperature").fit(X, y)


def test_fitted_models_begin_with_what_was_chosen():
    for model in models():
        block = fitted_block(model)
        html, bundle = model._repr_html_(), model._repr_mimebundle_()
        assert html.startswith(block)
        assert bundle["text/html"].startswith(block)
        assert "sk-top-container" in html[len(block) :]
        assert bundle["text/plain"] == repr(model)
        assert len(block.encode()) < 10_000
        assert not Page(block).wrong
        assert f"<dd>{dict(facts_of(model))['sigma']}</dd>" in block


def test_models_that_are_not_fitted_look_as_ever():
    for model in models():
        blank = clone(model)
        assert fitted_block(blank) == ""
        assert "leastwise-fitted" not in blank._repr_html_()


def test_display_is_honoured():
    model = classes_model()[0]
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}


def test_the_numbers_are_held_out():
    model, _, y = classes_model()
    facts = dict(facts_of(model))
    assert facts["held-out log-loss"] == f"{log_loss(y, model.estimator_.heldout_proba_):.4f}"
    assert facts["threshold"] == f"{model.threshold_:.4g}"
    model, _, y, _ = values_model()
    rmse = np.sqrt(np.mean((y - model.heldout_prediction_) ** 2))
    assert float(dict(facts_of(model))["held-out RMSE"]) == pytest.approx(rmse, rel=1e-3)
    _, X, y = classes_model()
    fixed = LSPC(sigma=1.0, alpha=0.1, cv=None, calibration=None).fit(X, y)
    assert dict(facts_of(fixed))["held out"] == "nothing (cv=None)"
    assert "<svg" not in fitted_block(fixed)
    model, _, Y = labels_model()
    p = model.heldout_proba_
    known = ~np.isnan(Y)
    loss = -np.log(np.where(Y[known] == 1, p[known], 1 - p[known])).mean()
    assert dict(facts_of(model))["held-out log-loss"] == f"{loss:.4f}"


def test_a_model_of_a_table_shows_what_it_has_fitted():
    _, X, y = classes_model()
    table = {"a": X[:, 0], "b": X[:, 1], "y": y}
    model = TableModel(target="y", kind="classes", model=LSPC(random_state=0)).fit(table)
    assert model._repr_html_().startswith(fitted_block(model.model_))
    other = TableModel(target="y", kind="classes", model=LogisticRegression()).fit(table)
    assert "leastwise-fitted" not in other._repr_html_()
