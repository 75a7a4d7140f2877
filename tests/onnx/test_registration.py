"""Converters can be registered for classes of other packages; without one an object is refused by name."""

import numpy as np
import pytest
from conftest import blobs
from onnx_cases import FIXED, agrees, label_data, run, somewhere
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from toy_parts import Cauchy, Sharpened, with_toy_calibrator, with_toy_kernel

from leastwise import LSPC, MultiLabelLSPC
from leastwise.baselines import MLkNN
from leastwise.calibration.label_calibrators import LabelClip
from leastwise.estimators.abstaining import Abstaining
from leastwise.onnx import registry, to_onnx
from leastwise.onnx.models import KernelMatrix, squared_distances
from leastwise.onnx.transformers import Columns, register_numeric
from leastwise.problem.kernels import RBF

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
TABLES = ("kernels", "calibrators", "label_calibrators", "recalibration_maps", "transformers", "estimators")


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    for name in TABLES:
        table = getattr(registry, name)
        monkeypatch.setattr(table, "entries", dict(table.entries))


def test_a_kernel(monkeypatch):
    X, y = blobs(60)
    model = with_toy_kernel(monkeypatch, X, y, **FIXED)
    with pytest.raises(
        ValueError, match=r"The kernel Cauchy has no ONNX converter; .* for Laplace, .*kernels\.register"
    ):
        to_onnx(model)

    @registry.kernels.register(Cauchy)
    def cauchy(g, kernel, X, C, sigma):
        D = squared_distances(X, C)
        return KernelMatrix(1.0 / (D * (1 / sigma**2) + 1.0), D, squared=True)

    assert model.extrapolation_ is not None  # rows far from the data are not trusted: distances are used
    agrees(model, somewhere(X), dtype="float64")


def test_a_calibrator():
    X, y = blobs(60)
    model = with_toy_calibrator(X, y, **FIXED)
    with pytest.raises(TypeError, match=r"calibrator Sharpened has no ONNX converter; .* for Blend, ClipNormalise, "):
        to_onnx(model)

    @registry.calibrators.register(Sharpened)
    def sharpened(g, calibrator, F, in_domain):
        P = g.node("Pow", F.maximum(0.0) + 1e-3, calibrator.power)
        P = P / P.sum()
        return P if in_domain is None else in_domain * P + (1.0 - in_domain) * calibrator.shares

    agrees(model, somewhere(X), dtype="float64")


def test_a_subclass_of_a_kernel_or_calibrator_is_another_one():
    """It may compute something else."""
    X, y = blobs(60)
    model = LSPC(**FIXED).fit(X, y)

    class Wider(RBF):
        def values(self, pairs, sigma, out=None):
            return super().values(pairs, 2 * sigma, out)

    model.kernel_ = Wider()
    with pytest.raises(ValueError, match="The kernel Wider has no ONNX converter"):
        to_onnx(model)

    class Other(type(model.calibrator_)):
        pass

    model = LSPC(**FIXED).fit(X, y)
    model.calibrator_ = Other(**vars(model.calibrator_))
    with pytest.raises(TypeError, match="The calibrator Other has no ONNX converter"):
        to_onnx(model)


def test_a_calibrator_of_labels():
    X, Y = label_data()
    model = MultiLabelLSPC(**FIXED, sharing=0.3, calibration=None).fit(X, Y)

    class Halved(LabelClip):
        def proba(self, F, in_domain=None):
            return super().proba(F, in_domain) / 2

    model.calibrator_ = Halved(**vars(model.calibrator_))
    with pytest.raises(TypeError, match=r"label calibrator Halved has no ONNX converter; .* LabelBlend, LabelClip"):
        to_onnx(model)

    @registry.label_calibrators.register(Halved)
    def halved(g, calibrator, F, in_domain, labels, columns):
        clip = registry.label_calibrators.find(LabelClip(calibrator.starts, calibrator.shares)).convert
        return clip(g, calibrator, F, in_domain, labels, columns) * 0.5

    out = run(to_onnx(model, dtype="float64"), X)
    np.testing.assert_allclose(out["probabilities"], model.predict_proba(X), rtol=0, atol=1e-9)


class Clipped(TransformerMixin, BaseEstimator):
    """Numbers of at least zero."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return np.maximum(X, 0)


class Reversed(Clipped):
    """Columns in reverse order."""

    def transform(self, X):
        return X[:, ::-1]


def test_transformers():
    X, y = blobs(60)
    model = make_pipeline(Clipped(), LSPC(**FIXED)).fit(X, y)
    with pytest.raises(TypeError, match=r"transformer Clipped has no ONNX converter; .*StandardScaler.*register"):
        to_onnx(model)
    register_numeric(Clipped)(lambda g, step, X: X.maximum(0.0))
    agrees(model, somewhere(X), dtype="float64")
    registry.transformers.register(Reversed)(lambda g, step, columns: columns.pick(range(len(columns))[::-1]))
    agrees(make_pipeline(Reversed(), LSPC(**FIXED)).fit(X, y), somewhere(X), dtype="float64")

    class Scaler(StandardScaler):
        """A subclass is converted as its class."""

    agrees(make_pipeline(Scaler(), LSPC(**FIXED)).fit(X, y), somewhere(X), dtype="float64")


class Mean(BaseEstimator):
    """A regressor that predicts the mean of a row."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return X.mean(axis=1)


def test_an_estimator_with_the_options_that_it_supports():
    X, _ = blobs(60)
    model = make_pipeline(StandardScaler(), Mean()).fit(X)
    with pytest.raises(
        TypeError, match=r"estimator Mean has no ONNX converter; there are .* LSPC, .*estimators\.register"
    ):
        to_onnx(model)

    @registry.estimators.register(Mean, options=("interval",))
    def mean(g, model, columns: Columns, options):
        values = g.node("ReduceMean", columns.numbers(), axes=[1], keepdims=0)
        g.output("variable", values, g.io_dtype)
        if options.interval is not None:
            g.output("lower", values - options.interval, g.io_dtype)

    out = run(to_onnx(model, dtype="float64", interval=0.5), X)
    np.testing.assert_allclose(out["variable"], model.predict(X), atol=1e-12)
    np.testing.assert_allclose(out["lower"], model.predict(X) - 0.5, atol=1e-12)
    with pytest.raises(ValueError, match=r"coverage=0.9 is for classifiers with predict_set; Mean does not have it"):
        to_onnx(model, coverage=0.9)
    with pytest.raises(ValueError, match="class_prior= is for classifiers"):
        to_onnx(model, class_prior="uniform")


def test_abstention_needs_an_estimator_that_supports_it():
    X, Y = label_data()
    model = Abstaining(MultiLabelLSPC(**FIXED, sharing=0.3), min_confidence=0.8).fit(X, Y)
    model.estimator_ = MLkNN(5).fit(X, Y)
    with pytest.raises(TypeError, match="Abstaining around MLkNN has no ONNX converter"):
        to_onnx(model)


def test_every_table_lists_classes_that_are_there():
    for name in TABLES:
        table = getattr(registry, name)
        assert table.table == name
        assert all(isinstance(cls, type) for cls in table.entries)
