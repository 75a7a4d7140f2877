"""Code on the pages runs as it stands there."""

import re
import sys
import textwrap
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
#: Pages with code; each runs from top to bottom, with nothing but itself.
PAGES = sorted(
    str(page.relative_to(DOCS))
    for page in DOCS.rglob("*.md")
    if "_build" not in page.parts and "gallery" not in page.parts and "```python\n" in page.read_text()
)


def test_pages_are_found():
    if not DOCS.is_dir():
        pytest.skip("the documentation is not beside the tests")
    assert len(PAGES) > 15


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(page, capsys):
    found = re.findall(r"^( *)```python\n(.*?)^\1```", (DOCS / page).read_text(), flags=re.S | re.M)
    blocks = [textwrap.dedent(block) for _, block in found]
    if "leastwise.displays" in "".join(blocks):
        pytest.importorskip("matplotlib").use("Agg")
    scope: dict = {}
    for block in blocks:
        exec(compile(block, page, "exec"), scope)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
