"""Bars of feature weights."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from leastwise import LSPC

pytest.importorskip("matplotlib").use("Agg")
from leastwise.displays import FeatureWeightsDisplay  # noqa: E402

FRAME, Y = load_iris(return_X_y=True, as_frame=True)
MODEL = LSPC(scale="standard", metric="diagonal", random_state=0)


def test_bars_are_the_weights_in_order():
    model = MODEL.fit(FRAME, Y)
    display = FeatureWeightsDisplay.from_estimator(model)
    widths = [bar.get_width() for bar in display.bars_]
    np.testing.assert_allclose(widths, np.sort(model.feature_weights_)[::-1])
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == list(FRAME.columns[np.argsort(-model.feature_weights_)])
    low, high = display.ax_.get_ylim()
    assert low > high  # the largest weight is at the top


def test_only_the_largest_are_drawn():
    display = FeatureWeightsDisplay.from_estimator(MODEL.fit(FRAME.to_numpy(), Y), max_features=2)
    assert len(display.bars_) == 2
    assert "2 of 4" in display.ax_.get_xlabel()
    assert display.ax_.get_yticklabels()[0].get_text().startswith("column ")


def test_models_inside_pipelines():
    pipeline = make_pipeline(FunctionTransformer(), MODEL).fit(FRAME.to_numpy(), Y)
    assert len(FeatureWeightsDisplay.from_estimator(pipeline).bars_) == 4


def test_without_weights_there_is_an_error():
    with pytest.raises(ValueError, match="metric='diagonal'"):
        FeatureWeightsDisplay.from_estimator(LSPC(metric=None, random_state=0).fit(FRAME, Y))
    with pytest.raises(ValueError, match="max_features=0"):
        FeatureWeightsDisplay.from_estimator(MODEL.fit(FRAME, Y), max_features=0)


def test_the_search_of_a_chosen_kernel_is_drawn(tmp_path):
    """Displays and reports show the points of the chosen scale and kernel, and the report names them."""
    from leastwise.displays import SelectionDisplay
    from leastwise.report import report_data

    auto = LSPC(kernel="auto", scale="auto", metric="diagonal", random_state=0).fit(FRAME, Y)
    display = SelectionDisplay.from_estimator(auto)
    assert set(display.searched.values) <= {"sigma", "alpha"}
    assert display.searched.chosen["sigma"] == auto.sigma_
    facts = dict(report_data(auto)["facts"])
    assert facts["Scale of the columns"] == auto.scale_
    assert facts["Kernel"] == type(auto.kernel_).__name__.lower()
    assert facts["Largest feature weights"].startswith(FRAME.columns[auto.feature_weights_.argmax()])
