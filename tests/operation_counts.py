"""Counts of what a fit or a prediction computes: a slowdown that no busy machine hides and no fast one excuses.

``tests/test_operation_counts.py`` counts every case again and compares it with ``fixtures/operation_counts.json``.
Write the counts anew where a fit is meant to compute more, or has come to compute less::

    python tests/operation_counts.py --write

functions       calls of functions of the package, without lambdas, comprehensions and generators
products        operations in matrix products
decompositions  operations in factors, decompositions and solves, by their usual formulas
numbers         entries of arrays that operators and functions of numpy and scipy make

Only what the package itself calls is counted, never what libraries do inside, so that counts are the same for all
versions of these. An import hook rewrites the modules of the package: ``A @ B`` becomes a call that counts and
multiplies, and so on. This needs a process of its own, whose memory and threads are fixed: they decide on blocks.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import json
import math
import operator
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
BASELINE = HERE / "fixtures" / "operation_counts.json"
#: A count may rise by this factor.
ALLOWED = 1.2
KINDS = ("functions", "products", "decompositions", "numbers")


# --- Operations ---------------------------------------------------------------------------------------------------


class Counter:
    """Operations so far, by kind; the rewritten modules call its methods."""

    def __init__(self) -> None:
        self.total = dict.fromkeys(KINDS, 0.0)

    def operate(self, name: str, left: Any, right: Any) -> Any:
        """``left + right`` or another operator, with a product of matrices among them."""
        result = getattr(operator, name)(left, right)
        if name == "matmul":
            self.total["products"] += product(left, right, result)
        self.total["numbers"] += entries(result)
        return result

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function of numpy or scipy."""
        result = function(*args, **options)
        name = getattr(function, "__name__", "")
        if name in {"get_lapack_funcs", "get_blas_funcs"}:
            return [self.counted(*pair) for pair in zip(args[0], result, strict=True)]
        if name in {"matmul", "dot"}:
            self.total["products"] += product(*args[:2], result)
        elif name == "einsum":
            self.total["products"] += einsum_product(*args)
        elif name in DECOMPOSITIONS:
            self.total["decompositions"] += DECOMPOSITIONS[name](*map(shape_of, args[:2]))
        self.total["numbers"] += entries(result)
        return result

    def counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of BLAS or LAPACK that counts its operations."""
        kind, operations = BLAS[name]

        def call(*args: Any, **options: Any) -> Any:
            shapes = [np.shape(a) for a in args if np.ndim(a)]
            result = function(*args, **options)
            self.total[kind] += operations(*shapes)
            self.total["numbers"] += entries(result)
            return result

        return call

    def seen(self, value: Any) -> None:
        """An array that was changed in place."""
        self.total["numbers"] += entries(value)


def entries(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.size if value.ndim else 0
    return sum(map(entries, value)) if isinstance(value, tuple | list) and len(value) < 10 else 0


def shape_of(value: Any) -> tuple[int, ...]:
    """Of an array, or of a factor with its triangle, as ``cho_factor`` returns it."""
    return np.shape(value[0] if isinstance(value, tuple) else value)


def product(left: Any, right: Any, result: Any) -> float:
    """Every entry of the result is a sum over the last axis of the left factor; sparse ones have fewer entries."""
    if hasattr(left, "nnz"):
        return 2.0 * left.nnz * (np.shape(right)[1] if np.ndim(right) == 2 else 1)
    return 2.0 * math.prod(np.shape(result)) * (np.shape(left)[-1] if np.ndim(left) else 1)


def einsum_product(subscripts: str, *operands: Any) -> float:
    names = subscripts.replace(" ", "").partition("->")[0].split(",")
    sizes = {
        letter: size
        for part, operand in zip(names, operands, strict=False)
        for letter, size in zip(part.replace("...", "")[::-1], np.shape(operand)[::-1], strict=False)
    }
    return 2.0 * math.prod(sizes.values())


def square(factor: float) -> Callable[..., float]:
    """A multiple of n^3 for every matrix, and 2 n^2 for every right-hand side."""

    def operations(A: tuple[int, ...], B: tuple[int, ...] = ()) -> float:
        right = B[-1] if len(B) > 1 else 1 if B else 0
        return math.prod(A[:-2]) * (factor * A[-1] ** 3 + 2 * A[-1] ** 2 * right)

    return operations


def tall(factor: float) -> Callable[..., float]:
    """A multiple of n b^2 for a matrix with n rows and b columns, or the transpose."""
    return lambda A, *_: factor * math.prod(A[:-2]) * max(A[-2:]) * min(A[-2:]) ** 2


DECOMPOSITIONS: dict[str, Callable[..., float]] = {
    "eigh": square(9),
    "eigvalsh": square(4 / 3),
    "cholesky": square(1 / 3),
    "cho_factor": square(1 / 3),
    "cho_solve": square(0),
    "solve": square(2 / 3),
    "inv": square(2),
    "slogdet": square(2 / 3),
    "solve_triangular": square(0),
    "qr": tall(4),
    "svd": tall(14),
    "lstsq": tall(4),
}
BLAS: dict[str, tuple[str, Callable[..., float]]] = {
    "gemm": ("products", lambda A, B: 2.0 * math.prod(A) * math.prod(B) / B[0]),
    "trmm": ("products", lambda A, B: 2.0 * A[0] * math.prod(B)),
    "trsm": ("decompositions", lambda A, B: 2.0 * A[0] * math.prod(B)),
    "potrs": ("decompositions", square(0)),
    **{name: ("decompositions", square(1 / 3)) for name in ("potrf", "pstrf", "trtri")},
}


# --- Rewriting the package ----------------------------------------------------------------------------------------

OPERATORS = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "Pow": "pow", "MatMult": "matmul"}


class Rewriter(ast.NodeTransformer):
    """Operators, and calls of numpy and scipy, become methods of the counter ``__counter__``."""

    def __init__(self, tree: ast.Module) -> None:
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        self.names = {
            alias.asname or alias.name
            for node in imports
            for alias in node.names
            if (node.module or "").split(".")[0] in {"numpy", "scipy"} and alias.name != "sparse"
        }

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        name = OPERATORS.get(type(node.op).__name__)
        return _counter("operate", [ast.Constant(name), node.left, node.right], node) if name else node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        changed = ast.Name(node.target.id, ast.Load())
        return [node, ast.copy_location(ast.Expr(_counter("seen", [changed], node)), node)]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        root = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        counted = isinstance(root, ast.Name) and (
            root.id in self.names or (root.id == "np" and isinstance(node.func, ast.Attribute))
        )
        return _counter("call", [node.func, *node.args], node, node.keywords) if counted else node


def _counter(method: str, args: list[ast.expr], at: ast.AST, keywords: Iterable[ast.keyword] = ()) -> ast.expr:
    function = ast.Attribute(ast.Name("__counter__", ast.Load()), method, ast.Load())
    return ast.fix_missing_locations(ast.copy_location(ast.Call(function, args, list(keywords)), at))


class Loader(importlib.machinery.SourceFileLoader):
    """Reads and rewrites a module; stored bytecode is ignored."""

    counter: Counter

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        tree = ast.parse(Path(path).read_text(encoding="utf-8"))
        return compile(Rewriter(tree).visit(tree), path, "exec", dont_inherit=True)

    def exec_module(self, module: Any) -> None:
        module.__counter__ = self.counter
        super().exec_module(module)


class Finder(importlib.abc.MetaPathFinder):
    """Finds modules of the package."""

    def __init__(self, root: Path, counter: Counter) -> None:
        self.root, self.counter = root, counter

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name.split(".")[0] != self.root.name:
            return None
        place = self.root.parent.joinpath(*name.split("."))
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if not file.is_file():
            return None
        loader = Loader(name, str(file))
        loader.counter = self.counter
        return importlib.util.spec_from_file_location(name, file, loader=loader)


# --- Counting -----------------------------------------------------------------------------------------------------


def count(counter: Counter, root: Path, call: Callable[[], Any]) -> dict[str, int]:
    """Operations of a call, the second time it is made: modules are loaded and caches are filled by the first."""
    call()
    prefix, before = f"{root}{os.sep}", dict(counter.total)

    def profile(frame: Any, event: str, arg: Any) -> None:
        code = frame.f_code
        if (
            event == "call"
            and code.co_filename.startswith(prefix)
            and not code.co_name.startswith("<")
            and not code.co_flags & inspect.CO_GENERATOR
        ):
            counter.total["functions"] += 1

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {kind: round(counter.total[kind] - before[kind]) for kind in KINDS}


def count_here(root: Path, names: list[str]) -> dict[str, dict[str, int]]:
    """Counts of the cases, for the package in the folder ``root``; in a fresh process."""
    counter = Counter()
    sys.meta_path.insert(0, Finder(root, counter))
    from operation_cases import CASES

    warnings.simplefilter("ignore")
    return {name: count(counter, root, CASES[name]()) for name in names or CASES}


def counts(root: Path, names: Iterable[str] = ()) -> dict[str, dict[str, int]]:
    """Counts of the cases with these names, or of all, by a process of its own."""
    fixed = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "LEASTWISE_MEMORY": "2GB", "PYTHONHASHSEED": "0"}
    folders = os.pathsep.join([str(HERE.parent), str(HERE), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, __file__, "--count", str(root), *names]
    done = subprocess.run(
        command, env={**os.environ, **fixed, "PYTHONPATH": folders}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def rises(old: dict[str, dict[str, int]], new: dict[str, dict[str, int]]) -> list[str]:
    """One line for every count that has risen by more than a fifth."""
    return [
        f"{name}: {kind} {old[name][kind]:,} -> {value:,} (x {value / max(old[name][kind], 1):.2f})"
        for name, kinds in new.items()
        for kind, value in kinds.items()
        if value > ALLOWED * old[name][kind]
    ]


def package() -> Path:
    """The folder of the package, which is not imported."""
    found = importlib.util.find_spec("leastwise")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the counts of all cases anew")
    parser.add_argument("--count", nargs="+", metavar=("FOLDER", "NAME"), help="print the counts of a package")
    given = parser.parse_args()
    if given.count:
        print(json.dumps(count_here(Path(given.count[0]), given.count[1:])))
        return
    found = counts(package())
    for line in rises(json.loads(BASELINE.read_text()), found) if BASELINE.exists() else ():
        print(line)
    if given.write:
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(kinds)}" for name, kinds in found.items())
        BASELINE.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
