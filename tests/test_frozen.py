"""Fits give what they gave: scores, probabilities, parameters, searches, held-out predictions, sets, intervals.

The records are in ``fixtures/frozen``; ``frozen_cases.py`` says what the cases are and how to write them anew.
"""

import json

import pytest
from frozen_cases import CASES
from frozen_records import FOLDER, differences


@pytest.mark.parametrize("name", list(CASES))
def test_the_fit_gives_what_it_gave(name):
    one = CASES[name]
    for module in one.needs:
        pytest.importorskip(module)
    found = differences(one, json.loads(one.path.read_text()), one.run())
    assert not found, "\n".join(["", *found])


def test_every_record_has_a_case():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(CASES)
