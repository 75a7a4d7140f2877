"""Tables that are written from result files are up to date."""

from benchmarks import pages


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
