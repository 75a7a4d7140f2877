"""Code on the pages runs as it stands there."""

import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
#: Pages whose code blocks need nothing but themselves, from top to bottom.
PAGES = [
    "regression.md",
    "baselines.md",
    "labels.md",
    "displays.md",
    "calibration.md",
    "abstention.md",
    "explanations.md",
    "shift.md",
    "tutorial.md",
    "files.md",
]


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(page, capsys):
    if not DOCS.is_dir():
        pytest.skip("the documentation is not beside the tests")
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), flags=re.S)
    assert blocks
    if "leastwise.displays" in "".join(blocks):
        pytest.importorskip("matplotlib").use("Agg")
    scope: dict = {}
    for block in blocks:
        exec(compile(block, page, "exec"), scope)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
