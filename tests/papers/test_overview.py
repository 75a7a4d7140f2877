"""The overview of the papers' tables agrees with the page and with the stored results."""

from pathlib import Path

from papers import overview

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reproduction.md"


def test_page_and_results_agree():
    assert overview.overview() in PAGE.read_text(), "run python -m benchmarks.pages"


def test_every_row_that_is_not_met_has_a_reason():
    found = overview.rows()
    assert all(bool(row.why) == (row.verdict != overview.MET) for row in found)
    assert {(row.paper, row.row) for row in found if row.why} == set(overview.REASONS)


def test_verdicts_follow_the_figures():
    by_row = {(row.paper, row.row): row for row in overview.rows()}
    assert by_row["MTLS-SVM", "table 2, MTLS-SVM"].verdict == overview.MET
    assert by_row["MTLS-SVM", "table 2, LS-SVM"].verdict == overview.NOT_MET
    assert by_row["MTLS-SVM", "table 3, independent, RBF, of another paper"].verdict == overview.IMPOSSIBLE


def test_a_mean_outside_the_range_is_not_met():
    (row,) = overview.ranges("multi_task_tables_landmine", "table 3", {35: ((0.9, 1.0),) * 6})
    assert row.verdict == overview.NOT_MET
