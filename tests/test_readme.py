"""What the README shows is what comes out."""

import ast
import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parent.parent / "README.md"


@pytest.mark.skipif(not README.is_file(), reason="the README is not beside the tests")
def test_the_first_lines_say_what_stands_below_them(capsys):
    code, said = re.search(r"```python\n(.*?)```\s*```text\n(.*?)```", README.read_text(), flags=re.S).groups()
    assert len([line for line in code.splitlines() if line]) == 9
    exec(compile(code, "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert re.sub(r"[\d.]+", "#", out) == re.sub(r"[\d.]+", "#", said)
    numbers = [[float(x.strip(".")) for x in re.findall(r"[\d.]+", text)] for text in (out, said)]
    assert numbers[0] == pytest.approx(numbers[1], abs=2)  # other machines round otherwise


@pytest.mark.skipif(not README.is_file(), reason="the README is not beside the tests")
def test_its_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)#]+)", README.read_text()):
        assert link.startswith("http") or (README.parent / link).exists(), link


GUIDE = README.with_name("CONTRIBUTING.md")


@pytest.mark.skipif(not GUIDE.is_file(), reason="CONTRIBUTING.md is not beside the tests")
def test_the_paths_in_the_contributing_guide_exist():
    text = GUIDE.read_text()
    paths = re.findall(r"`((?:src|tests|docs|papers|benchmarks)/[\w./]*)`", text)
    assert len(paths) > 30
    assert [path for path in paths if not (README.parent / path).exists()] == []
    tree = re.search(r"src/leastwise/\n(.*?)\n    papers/", text, flags=re.S)[1]
    packages = {path.parent.name for path in (README.parent / "src" / "leastwise").glob("*/__init__.py")}
    assert set(re.findall(r"^ +(\w+)/", tree, flags=re.M)) == packages


@pytest.mark.skipif(not GUIDE.is_file(), reason="CONTRIBUTING.md is not beside the tests")
def test_the_tree_in_the_contributing_guide_has_the_order_of_the_layers():
    from test_layout import LAYERS

    tree = re.findall(r"^      (\w+)/", GUIDE.read_text(), flags=re.M)
    assert tree == [name for layer in LAYERS for name in layer if name in tree]


@pytest.mark.skipif(not GUIDE.is_file(), reason="the documentation is not beside the tests")
def test_the_calls_on_the_architecture_page_exist():
    """Every ``file.py:function`` of the page is a function, or a method, of that file."""
    page = (README.parent / "docs" / "architecture.md").read_text()
    named = re.findall(r"([\w/]+\.py):(\w+)", page)
    assert len(named) > 30
    for file, function in named:
        tree = ast.parse((README.parent / "src" / "leastwise" / file).read_text())
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert function in names, (file, function)


@pytest.mark.skipif(not GUIDE.is_file(), reason="the documentation is not beside the tests")
def test_the_packages_on_the_architecture_page_are_those_of_the_layout():
    page = (README.parent / "docs" / "architecture.md").read_text()
    table = page[page.index("| package |") : page.index("`papers` and `benchmarks`")]
    named = [name for line in table.splitlines()[2:] if line for name in re.findall(r"`(\w+)`", line.split("|")[1])]
    folders = [path.parent.name for path in (README.parent / "src" / "leastwise").glob("*/__init__.py")]
    assert sorted(named) == sorted(folders)
