"""Classes of other packages can be registered for model files, and are refused by name before that."""

from dataclasses import dataclass

import numpy as np
import pytest
from mutated_files import read
from saved_models import FIXED, Y1, X
from sklearn.base import BaseEstimator
from toy_parts import Cauchy, Sharpened, with_toy_calibrator, with_toy_kernel

import leastwise as lw
from leastwise.persistence import FileError, info, registry
from leastwise.persistence.fields import Floats, Real, Text
from leastwise.problem.kernels import KERNELS, RBF

SHARPENED = {"shares": Floats("n_classes", low=0, high=1), "power": Real(low=0)}


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    monkeypatch.setattr(registry, "ENTRIES", dict(registry.ENTRIES))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.lw"


@pytest.fixture(params=["kernel", "calibrator"])
def toy(request, monkeypatch):
    """A model with a toy part: the attribute, the class and its name in files."""
    if request.param == "kernel":
        model = with_toy_kernel(monkeypatch, X, Y1, **FIXED)
        monkeypatch.delitem(KERNELS, "cauchy")  # kernels that are known by name may stand in files
        return model, "kernel_", Cauchy, "toy.Cauchy", "kernel"
    return with_toy_calibrator(X, Y1, **FIXED), "calibrator_", Sharpened, "toy.Sharpened", "calibrator", SHARPENED


def test_an_unregistered_class_is_refused_and_the_registered_ones_are_named(toy, path):
    model, attribute, cls, *_ = toy
    with pytest.raises(FileError) as caught:
        lw.save(model, path)
    message = str(caught.value)
    assert f"model.{attribute} is a toy_parts.{cls.__name__}, which cannot be stored" in message
    for names in (
        "kernel: RBF, Laplace",
        "calibrator: ClipNormalise, Softmax",
        "sklearn: StandardScaler",
        "registry.register",
    ):
        assert names in message
    assert not path.exists()


def test_a_registered_class_is_saved_and_loaded(toy, path):
    model, attribute, cls, name, *declaration = toy
    registry.register(cls, name, *declaration)
    lw.save(model, path)
    back = lw.load(path)
    assert type(getattr(back, attribute)) is cls
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    header, _ = read(path)
    assert name in [obj["class"] for obj in header["objects"]]
    assert cls.__module__ not in str(header["objects"])  # names in files do not depend on modules


def test_a_file_with_a_class_that_is_no_longer_registered_is_refused(toy, path):
    model, _, cls, name, *declaration = toy
    registry.register(cls, name, *declaration)
    lw.save(model, path)
    del registry.ENTRIES[name]
    with pytest.raises(FileError, match=f"class '{name}', which is not registered. Registered are LSPC, "):
        lw.load(path)
    assert info(path).classes[name] == 1  # the header can be read all the same


def test_options_of_a_registered_class(path):
    """Single precision, attributes that are left out, checks and migrations are those of the entry."""
    model = with_toy_calibrator(X, Y1, **FIXED)
    model.calibrator_.cache = np.zeros(5)
    fields = {**SHARPENED, "note": Text()}
    options = {"skip": ("cache",), "report": ("note",), "exact": ("shares",)}
    registry.register(Sharpened, "toy.Sharpened", "calibrator", fields, **options)
    model.calibrator_.note = "from the first fit"
    lw.save(model, path, keep="predict", dtype="float32")
    back = lw.load(path).calibrator_
    assert vars(back).keys() == {"shares", "power"}
    assert back.shares.dtype == np.float64

    def check(state, sizes):
        assert sizes == {"n_classes": 3}
        return "power is above 1" if state["power"] > 1 else None

    registry.register(Sharpened, "toy.Sharpened", "calibrator", SHARPENED, check=check)
    with pytest.raises(FileError, match=r"toy\.Sharpened\.power is above 1"):
        lw.load(path)
    steps = {1: lambda state: {**state, "power": 1 + state["power"]}}
    registry.register(Sharpened, "toy.Sharpened", "calibrator", SHARPENED, version=2, migrations=steps)
    assert lw.load(path).calibrator_.power == 3.0


def test_a_registered_estimator_is_saved_by_itself(path):
    class Constant(BaseEstimator):
        def __init__(self, value=1.0):
            self.value = value

    with pytest.raises(FileError, match=r"A Constant cannot be saved. Supported are LSPC, .*sklearn: StandardScaler"):
        lw.save(Constant(), path)
    registry.register(Constant, "toy.Constant", "estimator", {"value": Real()})
    lw.save(Constant(2.0), path)
    assert lw.load(path).value == 2.0
    assert info(path).model == "toy.Constant"


def test_names_and_classes_are_registered_once():
    registry.register(Cauchy, "toy.Cauchy", "kernel")
    registry.register(
        Cauchy, "toy.Cauchy", "kernel", exact=True
    )  # the same class again, as a module that is reloaded
    assert registry.find(Cauchy).exact is True
    with pytest.raises(ValueError, match=r"'toy.Cauchy' is already registered for toy_parts:Cauchy: use another"):
        registry.register(Sharpened, "toy.Cauchy", "calibrator")
    with pytest.raises(ValueError, match=r"RBF is already registered under the name 'kernel.RBF'"):
        registry.register(RBF, "toy.RBF", "kernel")
    with pytest.raises(ValueError, match="role='thing': use one of"):
        registry.register(Sharpened, "toy.Sharpened", "thing")


def test_a_class_of_the_same_name_in_another_module_is_another_class(path):
    @dataclass(frozen=True)
    class Blend:
        shares: np.ndarray

    assert registry.find(Blend) is None
    registry.register(Blend, "toy.Blend", "calibrator", {"shares": Floats("n_classes")})
    model, other = (lw.LSPC(**FIXED).fit(X, Y1) for _ in range(2))
    model.calibrator_ = Blend(np.arange(3.0))
    for one in (model, other):
        lw.save(one, path)
        assert type(lw.load(path).calibrator_) is type(one.calibrator_)
