"""The reference has every public name, and no name that is not there."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import leastwise

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="the documentation is not beside the tests")
#: Modules that users import from; "" is the package itself.
PUBLIC = ["", *sorted(leastwise._PARTS)]


def listed():
    """Names on the page, by their module."""
    names, module = {}, ""
    for line in PAGE.read_text().splitlines():
        if found := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.fullmatch(r"   ([A-Za-z]\w*)", line):
            names.setdefault(module, []).append(found[1])
    return names


def module_of(name):
    """A module by its full name."""
    if name == "leastwise.displays":
        pytest.importorskip("matplotlib")
    return import_module(name)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_on_the_page(name):
    module = module_of(f"leastwise.{name}".rstrip("."))
    on_page = {"__version__", *listed()["leastwise"], *listed().get(module.__name__, [])}
    missing = [n for n in module.__all__ if n not in on_page]
    assert not missing, f"docs/api.md has no entry for {missing} of {module.__name__}"


@pytest.mark.parametrize(("module", "names"), listed().items() if PAGE.is_file() else [])
def test_every_name_on_the_page_is_there(module, names):
    assert len(names) == len(set(names)), module
    found = module_of(module)
    for name in names:
        assert hasattr(found, name) or import_module(f"{module}.{name}"), name
        if module != "leastwise" and hasattr(found, "__all__"):
            assert name in found.__all__, f"{module}.{name} is on the page, but not in __all__"
