"""Draws that are measured in pieces are those that are measured at once."""

import pytest

from benchmarks import few_rows


@pytest.mark.filterwarnings("ignore")
def test_pieces_add_up():
    names = ("LSPC", "Recalibrated")
    whole = [*few_rows.cell("overlap", 30, names, range(3))]
    found = []
    for seeds in (range(2), range(2, 3)):
        for figure in few_rows.cell("overlap", 30, names, seeds):
            found = few_rows.added(found, figure)
    assert len(found) == len(whole) == 2 * 6
    for one, other in zip(found, whole, strict=True):
        assert one.pop("seeds") == [[0, 2], [2, 3]]
        assert other.pop("seeds") == [[0, 3]]
        assert one == pytest.approx(other)
    again = next(few_rows.cell("overlap", 30, ["LSPC"], range(1)))
    with pytest.raises(ValueError, match="give another --first"):
        few_rows.added([{**again, "seeds": [[0, 2]]}], again)


def test_a_figure_that_chance_does_not_allow_is_marked():
    error = {"kind": "max_error", "level": 0.1, "draws": 1000, "plain broken": 0.2, "broken": 0.05}
    error |= {"counted broken": 0.0}
    judged = few_rows.judged(error)
    assert [judged[name] for name in ("kept", "counted kept", "plain kept")] == [True, True, False]
    sets = {"kind": "coverage", "level": 0.9, "draws": 1000, "squares": 0.01, "plain squares": 0.01}
    sets |= {"coverage": 0.895, "plain coverage": 0.88}
    assert [few_rows.judged(sets)[name] for name in ("kept", "plain kept")] == [True, False]
