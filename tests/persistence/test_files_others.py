"""Pickle, joblib and skops keep models as they are, too."""

import pickle

import joblib
import pytest
from saved_models import answers, assert_same, known, models


@pytest.mark.parametrize("name", [name for name, *_ in models()])
def test_pickle_joblib_and_skops(name, tmp_path):
    model, rows, more, said = known(name)
    assert_same(said, answers(pickle.loads(pickle.dumps(model)), rows, more))
    joblib.dump(model, tmp_path / "model.joblib")
    assert_same(said, answers(joblib.load(tmp_path / "model.joblib"), rows, more))
    skops = pytest.importorskip("skops.io")
    if name == "labels-pandas":
        pytest.skip("skops knows no types of pandas columns")
    data = skops.dumps(model)
    unseen = skops.get_untrusted_types(data=data)
    assert_same(said, answers(skops.loads(data, trusted=unseen), rows, more))
