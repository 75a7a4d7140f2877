"""The counts of ``benchmarks.architecture`` checked on a toy package that is small enough to count by hand."""

import importlib
import sys
import textwrap
import threading

import pytest

architecture = pytest.importorskip("benchmarks.architecture", reason="the benchmarks are not beside the tests")
tracing = importlib.import_module("benchmarks._tracing")

TOY = {
    "__init__.py": "from toypack.model import Model\n__all__ = ['Model']\n",
    "py.typed": "",
    "tools.py": '''
        """Two functions."""
        SHIFT = (
            1
        )  # over three lines


        def add(x):
            """Sum."""
            # why
            return x + SHIFT


        def twice(x):
            return [add(x) for _ in range(2)]
        ''',
    "base.py": """
        from . import tools


        class Base:
            def fit(self, x):
                self.check(x)
                return self.solve(x)

            def finish(self, x):
                return tools.twice(x)

            def check(self, x):
                return x
        """,
    "parts/__init__.py": "",
    "parts/solving.py": """
        from toypack.base import Base


        class Solving(Base):
            def solve(self, x):
                return self.target(self.finish(x))
        """,
    "model.py": """
        import toypack.parts.solving


        class Model(toypack.parts.solving.Solving):
            def target(self, x):
                return Model.other(x)

            @staticmethod
            def other(x):
                return x
        """,
}


@pytest.fixture
def toy(tmp_path, monkeypatch):
    root = tmp_path / "toypack"
    for name, text in TOY.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip())
    monkeypatch.syspath_prepend(str(tmp_path))
    yield root
    for name in [m for m in sys.modules if m.split(".")[0] == "toypack"]:
        del sys.modules[name]


def test_code_lines_leave_out_blanks_comments_and_docstrings():
    text = '"""Doc\nstring."""\n\n# why\nx = """a\nb"""\n\n\ndef f():\n    "Doc."\n    return (\n        1\n    )\n'
    assert architecture.code_lines(text) == {5, 6, 9, 11, 12, 13}
    assert architecture.body_lengths(text) == [3]


def test_counts_of_the_package(toy):
    (toy / "__pycache__").mkdir()
    (toy / "__pycache__" / "left.py").write_text("x = 1\n")
    found = architecture.measure_package(toy)
    lengths = [len((toy / name).read_text().splitlines()) for name in TOY if name.endswith(".py")]
    assert found["top_entries"] == 5  # __init__, base, model, parts, tools
    assert found["files"] == 6
    assert found["lines"] == sum(lengths)
    assert found["code_lines"] == 2 + 7 + 9 + 0 + 4 + 7
    assert found["file_lines_median"] == sorted(lengths)[2] / 2 + sorted(lengths)[3] / 2
    assert found["functions"] == 8
    assert found["function_lines_median"] == 1
    assert found["function_lines_p90"] == pytest.approx(1.3)  # seven of one line, one of two
    assert found["import_ranks"] == 5
    assert found["parts_in_import_cycles"] == 0


def test_imports_are_those_of_entries_at_the_top(toy):
    assert architecture.imports_of_parts(toy) == {
        "__init__": {"model"},
        "model": {"parts"},
        "parts": {"base"},
        "base": {"tools"},
        "tools": set(),
    }


def test_an_import_cycle_is_one_rank():
    imports = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}
    assert architecture.import_ranks(imports) == ["d", "b", "a"]
    assert architecture.in_cycles(imports) == ["b", "c"]


def test_inheritance(toy):
    toypack = importlib.import_module("toypack")
    assert [c.__name__ for c in tracing.own_classes(toypack.Model, "toypack")] == ["Model", "Solving", "Base"]
    assert tracing.own_depth(toypack.Model, "toypack") == 3


def test_public_estimators_are_found_among_the_public_names():
    import leastwise

    found = tracing.public_estimators(leastwise)
    assert {"LSPC", "LSSVR", "MultiLabelLSPC"} <= set(found)
    assert "Moments" not in found


def test_a_traced_call(toy):
    model = importlib.import_module("toypack").Model()
    found = tracing.trace(toy, model, lambda: model.fit(1))
    assert found.files == ["base.py", "model.py", "parts/solving.py", "tools.py"]
    assert list(found.edges) == [
        (None, "base.py:Base.fit"),
        ("base.py:Base.fit", "base.py:Base.check"),
        ("base.py:Base.fit", "parts/solving.py:Solving.solve"),
        ("parts/solving.py:Solving.solve", "base.py:Base.finish"),
        ("base.py:Base.finish", "tools.py:twice"),
        ("tools.py:twice", "tools.py:add"),
        ("parts/solving.py:Solving.solve", "model.py:Model.target"),
        ("model.py:Model.target", "model.py:Model.other"),
    ]
    # fit to solve goes down, solve to finish up: one reversal; solve to target goes on down.
    assert list(found.reversals) == [("parts/solving.py:Solving.solve", "base.py:Base.finish")]
    assert sys.getprofile() is None


def test_methods_of_another_object_do_not_count(toy):
    package = importlib.import_module("toypack")
    model = package.Model()
    found = tracing.trace(toy, package.Model(), lambda: model.fit(1))
    assert len(found.functions) == 8
    assert not found.reversals


def test_threads_are_traced_and_imports_are_not(toy):
    package = importlib.import_module("toypack")
    (toy / "late.py").write_text("from toypack.tools import twice\n\nTABLE = twice(1)\n")

    def call():
        importlib.import_module("toypack.late")
        thread = threading.Thread(target=package.Model().check, args=(1,))
        thread.start()
        thread.join()

    assert tracing.trace(toy, object(), call).functions == ["base.py:Base.check"]


def test_path_lists_each_edge_once_down_to_a_depth():
    edges = [(None, "fit"), ("fit", "a"), ("fit", "b"), ("a", "c"), ("c", "d"), ("b", "c")]
    assert tracing.path_lines(edges, 9) == ["fit", "  a", "    c", "      d", "  b", "    c ..."]
    assert tracing.path_lines(edges, 3) == ["fit", "  a", "    c ...", "  b", "    c ..."]
    assert tracing.path_lines([(None, "f"), ("f", "g"), ("g", "f")], 9) == ["f", "  g", "    f ..."]
