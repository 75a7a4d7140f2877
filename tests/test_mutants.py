"""The tool for mutation tests: mutants differ from the code, are repeatable, and are imported instead of it."""

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parent.parent / "tools" / "mutants.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("mutants", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["mutants"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a - b", "a + b"),
        ("a < b", "a <= b"),
        ("-a", "a"),
        ("a and b", "a or b"),
        ("np.min(a)", "np.max(a)"),
        ("3", "4"),
        ("0.25", "0.5"),
        ("0.0", "1.0"),
        ("1e-12", None),
        ("'text'", None),
        ("a @ b", None),
        ("f(a)", None),
    ],
)
def test_one_change_of_one_expression(tool, before, after):
    new = tool.changed(ast.parse(before, mode="eval").body)
    assert (None if new is None else ast.unparse(new)) == after


def test_samples_are_repeatable_and_spare_annotations_and_messages(tool):
    first, second = tool.sample(4, 0, None), tool.sample(4, 0, None)
    assert first == second
    assert {m.module for m in first} == set(tool.TESTS)
    for module in tool.TESTS:
        lines = (tool.SOURCE / "leastwise" / module).read_text().splitlines()
        assert all("raise " not in lines[m.line - 1] for m in tool.mutants(module))


def test_tests_of_the_core_exist(tool):
    for module, names in tool.TESTS.items():
        assert (tool.SOURCE / "leastwise" / module).is_file()
        assert all((tool.ROOT / "tests" / name).is_file() for name in names)


def test_the_changed_module_is_imported(tool, monkeypatch):
    mutant = next(m for m in tool.mutants("calibration/prior.py") if m.before.startswith("P / "))
    finder = tool.Import(mutant)
    spec = finder.find_spec("leastwise.calibration.prior")
    assert finder.find_spec("leastwise.calibration.risk") is None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    assert mutant.after in finder.text.decode()
    assert mutant.after not in (tool.SOURCE / "leastwise" / mutant.module).read_text()


def test_argued_mutants_are_those_of_the_code(tool):
    for module, line, before, after in tool.argued():
        assert (module, line, before, after) in {tool.key(mutant) for mutant in tool.mutants(module)}
