"""Code on the pages runs as it stands there."""

import re
import sys
import textwrap
import warnings
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
#: Pages with code; each runs from top to bottom, with nothing but itself.
PAGES = sorted(
    str(page.relative_to(DOCS))
    for page in DOCS.rglob("*.md")
    if "_build" not in page.parts and "gallery" not in page.parts and "```python\n" in page.read_text()
)
#: A block, and what it prints where that stands right below it.
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```\n(?:\n```text\n(.*?)^```)?", flags=re.S | re.M)


def test_pages_are_found():
    if not DOCS.is_dir():
        pytest.skip("the documentation is not beside the tests")
    assert len(PAGES) > 15


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(page, capsys, monkeypatch):
    text = (DOCS / page).read_text()
    if "leastwise.displays" in text:
        pytest.importorskip("matplotlib").use("Agg")
    if "import skops" in text:
        pytest.importorskip("skops")
    if "import torch" in text:
        pytest.importorskip("torch", reason="torch is not there")
        monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # as the page says
    if "import dask" in text:
        pytest.importorskip("dask.dataframe")
        warnings.filterwarnings("ignore", "The inplace keyword")  # of pandas, at Dask's to_parquet
    scope: dict = {}
    for _, block, said in BLOCK.findall(text):
        capsys.readouterr()
        exec(compile(textwrap.dedent(block), page, "exec"), scope)
        if said:
            assert words(capsys.readouterr().out) == words(said), page
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def words(text):
    """Without its numbers, which other machines round otherwise, and without spaces, which line them up."""
    return re.sub(r"[\d.]+(e[-+]\d+)?", "#", text).split()
