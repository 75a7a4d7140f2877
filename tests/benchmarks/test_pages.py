"""Tables that are written from result files are up to date."""

import re

from benchmarks import _page_format, pages


def test_pages_are_up_to_date():
    found = pages.pages()
    assert len(found) >= 2
    for page in found:
        assert page.read_text() == pages.render(page.read_text()), f"{page.name}: run python -m benchmarks.pages"


def test_a_changed_number_is_noticed():
    page = next(page for page in pages.pages() if page.name == "svc.md")
    text = page.read_text()
    number = text[text.index("<!-- table: svc -->") :].split("**")[1]
    changed = text.replace(f"**{number}**", "**9.999**", 1)
    assert changed != text
    assert pages.render(changed) == text


#: Tables with numbers that are no measurements, by page and the first words of the table.
TYPED = {
    ("calibration.md", "column"),  # perfect values of measures
    ("cli.md", "exit code"),
    ("files.md", "offset"),  # bytes of the format
    ("distributed.md", "what"),  # bytes by formula
}


def typed_tables(text):
    """First header cell of every table outside the marks in which most rows have a cell that starts with a number."""
    for block in re.split(r"\n(?!\|)", pages.PLACE.sub("", text)):
        lines = block.strip("\n").splitlines()
        header, rows = lines[:1], lines[2:]
        numbers = [row for row in rows if re.search(r"\|\s*[-+*~<]*\.?\d", row)]
        if header and header[0].startswith("|") and 2 * len(numbers) > len(rows):
            yield next((cell.strip() for cell in header[0].split("|") if cell.strip()), "")


def test_tables_of_measurements_are_not_typed():
    """Tables of numbers come from result files, in the README and on every page."""
    every = [pages.ROOT / "README.md", *(pages.ROOT / "docs").rglob("*.md")]
    found = {
        (page.name, first)
        for page in every
        if not {"_build", "gallery"} & set(page.parts)
        for first in typed_tables(page.read_text())
    }
    assert found == TYPED


def test_a_typed_table_is_noticed():
    text = "words\n\n| set | s |\n|---|---|\n| a | **1.5** |\n| b | .2 |\n\n| a | b |\n|---|---|\n| c | d |\n"
    assert list(typed_tables(text)) == ["set"]
    assert not list(typed_tables(f"<!-- table: x -->\n{text}<!-- end of table -->"))


def test_every_place_has_its_table():
    used = [name for page in pages.pages() for _, name, _ in pages.PLACE.findall(page.read_text())]
    assert sorted(used) == sorted(set(used))
    assert set(used) <= set(pages.TABLES)


def test_files_of_one_command_share_a_line(monkeypatch):
    machine = {"command": "python -m x", "cpu": "c", "threads": 1, "python": "3", "numpy": "2", "scipy": "1"}
    machine["scikit-learn"] = "1.9"
    files = {name: {"machine": machine | {"date": f"2026-11-{day}T00:00"}} for name, day in (("a", 16), ("b", 18))}
    files["c"] = {"machine": files["a"]["machine"] | {"threads": 2}}
    monkeypatch.setattr(_page_format, "results", files.__getitem__)
    versions = "Python 3, NumPy 2, SciPy 1, scikit-learn 1.9"
    assert _page_format.origin("b", "a") == f"`python -m x` (2026-11-16 to 2026-11-18, c, one thread; {versions})"
    assert _page_format.origin("a", "c").count("\n") == 1
