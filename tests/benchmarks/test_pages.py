"""Tables that are written from result files are up to date."""

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


def test_tables_of_measurements_are_not_typed():
    """The page of benchmarks and the measurements of the README have tables from result files only."""
    readme = (pages.ROOT / "README.md").read_text()
    start, end = readme.index("## Accuracy and speed"), readme.index("## Documentation")
    parts = {"README": readme[start:end]}
    text = (pages.ROOT / "docs" / "benchmarks.md").read_text()
    parts |= {part.split("\n", 1)[0]: part for part in text.split("\n## ")}
    typed = {name for name, part in parts.items() if "\n|" in pages.PLACE.sub("", part)}
    # These were measured before their scripts kept results.
    assert typed <= {"Intervals with few rows and groups", "All rows as centres up to 50,000"}


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
