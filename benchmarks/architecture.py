"""Measure the architecture of the package: its size, the depth of its classes, and the call path of each ``fit``.

package      Entries at the top level (without ``__pycache__`` and ``py.typed``), Python files, lines, and lines of
             code (without blank lines, comments and docstrings). File lengths count all lines. Function lengths count
             the lines of code of the body, nested functions included. Import ranks are the length of the longest
             chain of top-level entries that import one another, at module level or inside functions; entries in an
             import cycle count as one.
estimators   Classes of this package in the MRO, and the longest inheritance chain among them.
fits         Files and functions of this package that a fit on 120 rows passes through, and the reversals of direction
             in the MRO along its call stack; ``benchmarks._tracing`` has the exact definition.

Each fit is traced in a separate process. ``--package`` measures another copy of the package with the same fits.
``--path LSPC`` prints the call path of a fit instead of the tables.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import io
import json
import os
import statistics
import subprocess
import sys
import tokenize
from collections.abc import Iterator, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._common import print_table, write_json
from benchmarks._fits import DEFAULTS
from benchmarks._tracing import path_lines

NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
IGNORED = {"__pycache__", "py.typed"}
Function = ast.FunctionDef | ast.AsyncFunctionDef

# -------------------------------------------------------------------- the text


def code_lines(text: str) -> set[int]:
    """Numbers of the lines that are neither blank nor comments nor docstrings."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    spans = ((t.start[0], t.end[0]) for t in tokens if t.type not in NOT_CODE)
    found = {line for first, last in spans for line in range(first, last + 1)}
    for node in _docstrings(ast.parse(text)):
        found -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def _docstrings(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | Function)
            and ast.get_docstring(node, clean=False) is not None
        ):
            first = node.body[0]
            assert isinstance(first, ast.Expr)
            yield first.value


def body_lengths(text: str) -> list[int]:
    """Lines of code in the body of each function, without its signature and docstring."""
    code = code_lines(text)
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, Function))
    return [sum(f.body[0].lineno <= line <= (f.end_lineno or 0) for line in code) for f in functions]


def python_files(root: Path) -> list[Path]:
    return sorted(p for p in root.rglob("*.py") if "__pycache__" not in p.parts)


def measure_package(root: Path) -> dict[str, Any]:
    """Counts of one package."""
    texts = [path.read_text() for path in python_files(root)]
    lengths = [len(text.splitlines()) for text in texts]
    bodies = [n for text in texts for n in body_lengths(text)]
    return {
        "top_entries": sum(p.name not in IGNORED for p in root.iterdir()),
        "files": len(texts),
        "lines": sum(lengths),
        "code_lines": sum(len(code_lines(text)) for text in texts),
        **_middle("file_lines", lengths),
        "functions": len(bodies),
        **_middle("function_lines", bodies),
        "import_ranks": len(import_ranks(imports_of_parts(root))),
        "parts_in_import_cycles": len(in_cycles(imports_of_parts(root))),
    }


def _middle(name: str, counts: Sequence[int]) -> dict[str, float]:
    return {f"{name}_median": statistics.median(counts), f"{name}_p90": float(np.percentile(counts, 90))}


# --------------------------------------------------------------------- imports


def imports_of_parts(root: Path) -> dict[str, set[str]]:
    """Which entries at the top of the package each of them imports; the package itself is ``__init__``."""
    parts = {p.name.removesuffix(".py") for p in root.iterdir() if p.name not in IGNORED}
    found: dict[str, set[str]] = {part: set() for part in parts}
    for path in python_files(root):
        within = path.relative_to(root).parts
        part = within[0].removesuffix(".py")
        modules = (
            module for node in ast.walk(ast.parse(path.read_text())) for module in _modules(node, root, within)
        )
        for module in modules:
            other = module[1] if len(module) > 1 and module[1] in parts else "__init__"
            found[part] |= {other} - {part}
    return found


def _modules(node: ast.AST, root: Path, within: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Dotted names in the package that a statement imports, absolute."""
    if isinstance(node, ast.Import):
        names = [tuple(alias.name.split(".")) for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        here = (root.name, *within[:-1])
        base = here[: len(here) - node.level + 1] if node.level else ()
        base += tuple(node.module.split(".")) if node.module else ()
        names = [(*base, alias.name) for alias in node.names]
    else:
        names = []
    return (name for name in names if name[0] == root.name)


def import_ranks(imports: dict[str, set[str]]) -> list[str]:
    """The longest chain of parts that import one another, bottom first; one part represents its import cycle."""
    cycle = {part: frozenset(_mutual(part, imports)) for part in imports}
    graph: dict[frozenset[str], set[frozenset[str]]] = {c: set() for c in cycle.values()}
    for part, others in imports.items():
        graph[cycle[part]] |= {cycle[o] for o in others} - {cycle[part]}
    longest: dict[frozenset[str], list[str]] = {}
    for node in TopologicalSorter(graph).static_order():
        below = max((longest[other] for other in graph[node]), key=len, default=[])
        longest[node] = [*below, min(node)]
    return max(longest.values(), key=len, default=[])


def in_cycles(imports: dict[str, set[str]]) -> list[str]:
    """Parts that import themselves through others."""
    return sorted(part for part in imports if part in _reached(part, imports))


def _mutual(part: str, imports: dict[str, set[str]]) -> set[str]:
    """The strongly connected component of a part."""
    return {part} | {other for other in _reached(part, imports) if part in _reached(other, imports)}


def _reached(part: str, imports: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [part]
    while waiting:
        new = imports[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


# ------------------------------------------------------------------- processes


def package_folder(given: Path | None) -> Path:
    """The folder of the package that is measured: the installed one by default."""
    if given is not None:
        if not (given / "__init__.py").is_file():
            raise SystemExit(f"--package: {given} is not a package; give the folder that contains __init__.py")
        return given.resolve()
    spec = importlib.util.find_spec("leastwise")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def in_process(root: Path, *arguments: str) -> Any:
    """Run ``benchmarks._tracing`` with this copy of the package."""
    here = Path(__file__).resolve().parent.parent
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root.parent), str(here)])}
    command = [sys.executable, "-m", "benchmarks._tracing", *arguments]
    done = subprocess.run(command, env=env, cwd=here, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"tracing {' '.join(arguments)} failed:\n{done.stderr}")
    found = json.loads(done.stdout)
    if Path(found["root"]) != root:
        raise SystemExit(f"traced {found['root']} instead of {root}")
    return found["record"]


def measure_fits(root: Path) -> list[dict[str, Any]]:
    """Counts of every fit."""
    found = []
    for name in DEFAULTS:
        record = in_process(root, name)
        counts = {key: len(record[key]) for key in ("files", "functions", "reversals")}
        found.append({"fit": name, **counts, "passed_files": record["files"]})
    return found


# ---------------------------------------------------------------------- report


def report(figures: dict[str, Any]) -> None:
    rows = [[key.replace("_", " "), value] for key, value in figures["package"].items()]
    print_table("Package", ["measure", "value"], rows)
    header = ["estimator", "own_classes", "depth"]
    print_table("Estimators", header, [[e[key] for key in header] for e in figures["estimators"]])
    header = ["fit", "files", "functions", "reversals"]
    print_table("Fits", header, [[f[key] for key in header] for f in figures["fits"]])


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    p = argparse.ArgumentParser(
        prog="python -m benchmarks.architecture",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--json", metavar="FILE", type=Path, dest="output", help="write the figures to this file")
    p.add_argument("--package", metavar="DIR", type=Path, help="folder of the package (default: the installed one)")
    p.add_argument("--path", metavar="FIT", choices=DEFAULTS, help=f"print the calls of a fit: {', '.join(DEFAULTS)}")
    p.add_argument("--depth", type=int, default=6, help="deepest level of --path (default 6)")
    args = p.parse_args(argv)
    root = package_folder(args.package)
    if args.path:
        print("\n".join(path_lines(in_process(root, args.path)["edges"], args.depth)))
        return
    chain = import_ranks(imports_of_parts(root))
    figures: dict[str, Any] = {"package": measure_package(root), "import_chain": chain}
    figures |= {"estimators": in_process(root), "fits": measure_fits(root)}
    report(figures)
    if args.output:
        given = " --package DIR" if args.package else ""
        args.command, args.threads, args.quick = f"{p.prog} --json {args.output.name}{given}", 1, False
        write_json(args, figures)


if __name__ == "__main__":
    main()
