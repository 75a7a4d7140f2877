"""Models come back from files as they were."""

import numpy as np
import pytest
from saved_models import answers, assert_same, fitted, models

import leastwise as lw

NAMES = [name for name, *_ in models()]


@pytest.mark.parametrize("name", NAMES)
def test_a_model_says_the_same_after_a_round_trip(name, tmp_path):
    model, rows, more = fitted(name)
    said = answers(model, rows, more)
    lw.save(model, tmp_path / "model.lw")
    for mmap in (True, False):
        assert_same(said, answers(lw.load(tmp_path / "model.lw", mmap=mmap), rows, more))
