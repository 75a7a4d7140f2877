"""With the rest of the user's world: scikit-learn's tools, frames, files."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import blobs
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

from leastwise import LSPC

X, Y = blobs(90)
NAMES = np.array(["ant", "bee", "cat"])[Y]


def test_pipeline_grid_search_and_cross_validation():
    pipe = make_pipeline(StandardScaler(), LSPC(sigma=[0.5, 1.0], alpha=[0.1, 0.01]))
    assert cross_val_score(pipe, X, NAMES, cv=3).mean() > 0.6
    P = cross_val_predict(pipe, X, NAMES, cv=3, method="predict_proba")
    assert log_loss(NAMES, P) < np.log(3)
    search = GridSearchCV(pipe, {"lspc__basis": ["full", "class"]}, cv=3, scoring="neg_log_loss").fit(X, NAMES)
    assert search.best_params_["lspc__basis"] in ("full", "class")


def test_calibrated_classifier_can_wrap_it():
    model = CalibratedClassifierCV(LSPC(1.0, 0.01), cv=3).fit(X, NAMES)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_clone_pickle_and_repr():
    model = LSPC(n_centers=20, random_state=0).fit(X, NAMES)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "coef_")
    assert repr(model) == "LSPC(n_centers=20, random_state=0)"
    assert "LSPC" in estimator_html_repr(model)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_in(frame):
    data = frame({"length": X[:, 0], "width": X[:, 1]})
    model = LSPC(1.0, 0.1).fit(data, NAMES)
    assert model.feature_names_in_.tolist() == ["length", "width"]
    np.testing.assert_allclose(model.predict_proba(data), LSPC(1.0, 0.1).fit(X, NAMES).predict_proba(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame({"width": X[:, 1], "length": X[:, 0]}))


def test_frames_out():
    data = pd.DataFrame(X, columns=["a", "b"], index=np.arange(90) + 100)
    model = LSPC(1.0, 0.1).fit(data, NAMES).set_output(transform="pandas")
    P = model.predict_proba(data)
    assert isinstance(P, pd.DataFrame)
    assert P.columns.tolist() == ["ant", "bee", "cat"]
    assert P.index[0] == 100
    assert isinstance(model.decision_function(data), pd.DataFrame)
    assert isinstance(model.set_output(transform="polars").predict_proba(data), pl.DataFrame)
    assert isinstance(model.set_output(transform="default").predict_proba(data), np.ndarray)
    assert isinstance(model.set_output().predict_proba(data), np.ndarray)
    assert clone(model.set_output(transform="pandas"))._sklearn_output_config == {"transform": "pandas"}
    with pytest.raises(ValueError, match="transform='excel' is not known"):
        model.set_output(transform="excel")


def test_a_missing_frame_library_names_theframes(monkeypatch):
    import sys

    from leastwise.utils.optional import frames

    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"leastwise\[frames\]"):
        frames("polars")


def test_random_state_repeats_and_global_state_is_left_alone():
    np.random.seed(7)
    before = np.random.get_state()[1].copy()
    a = LSPC(n_centers=15, cv=4, random_state=3).fit(X, NAMES).predict_proba(X)
    b = LSPC(n_centers=15, cv=4, random_state=3).fit(X, NAMES).predict_proba(X)
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


def test_fit_writes_no_parameter():
    model = LSPC(sigma="auto", alpha=[0.1, 1.0], n_centers=20, random_state=0)
    before = dict(model.get_params())
    model.fit(X, NAMES)
    assert model.get_params() == before


def test_metadata_routing_takes_weights_and_groups():
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        model = LSPC(1.0, 0.1).set_fit_request(sample_weight=True, groups=True).set_score_request(sample_weight=False)
        search = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=3)
        search.fit(X, NAMES, sample_weight=np.ones(90), groups=np.arange(90) // 3)
    assert search.best_params_["alpha"] in (0.1, 1.0)
