"""Mutation tests of the numerical core: change one operator or number, and see that a test fails.

Run by ``make mutants``. Every module of the core has the tests that must notice a change in it (``TESTS``). A sample
of its mutants, the same for the same ``--seed``, is tried one by one; each runs in a process of its own, in which the
import of the module gives the changed code. Files are not touched.

A mutant survives if all tests pass. Survivors are an error unless ``tools/mutants_argued.toml`` says why the change
does no harm. ``--list`` shows the mutants of the sample, ``--only`` repeats those of one module.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.util
import os
import random
import signal
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
#: Modules of the core, and the tests that must notice a change in them.
TESTS = {
    "linalg/decompositions.py": ["linalg/test_linalg.py", "solvers/test_heldout.py"],
    "linalg/kronecker.py": ["linalg/test_kronecker.py"],
    "linalg/sylvester.py": ["linalg/test_kronecker.py", "solvers/test_label_heldout.py"],
    "linalg/arrow.py": ["linalg/test_arrow.py"],
    "linalg/krylov.py": ["linalg/test_krylov.py"],
    "linalg/moments.py": ["solvers/test_moments.py", "linalg/test_moment_digits.py"],
    "solvers/heldout.py": ["solvers/test_heldout.py"],
    "solvers/label_evaluators.py": ["solvers/test_label_rows.py", "solvers/test_label_heldout.py"],
    "calibration/logits.py": ["calibration/test_calibration.py", "calibration/test_probability.py"],
    "calibration/blend.py": [
        "calibration/test_blend_steps.py",
        "calibration/test_probability.py",
        "calibration/test_cautious.py",
    ],
    "calibration/maps.py": ["calibration/test_calibration.py"],
    "calibration/calibrators.py": ["calibration/test_probability.py", "calibration/test_calibration.py"],
    "calibration/label_calibrators.py": ["calibration/test_label_probability.py"],
    "calibration/label_thresholds.py": ["calibration/test_label_thresholds.py"],
    "calibration/conformal.py": ["calibration/test_conformal.py"],
    "calibration/spread.py": ["calibration/test_spread.py"],
    "calibration/prior.py": ["calibration/test_prior.py"],
    "calibration/risk.py": ["estimators/test_abstention.py"],
}
SWAPS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
#: Smaller numbers are tolerances: twice as much is as good.
TOLERANCE = 1e-4
NAMES = {"min": "max", "max": "min", "argmin": "argmax", "argmax": "argmin", "maximum": "minimum"}
NAMES |= {"minimum": "maximum", "sum": "mean", "log": "sqrt", "exp": "cosh", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """One change: the node's place in the order of ``ast.walk``, and what it becomes."""

    module: str
    place: int
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.before}  ->  {self.after}"


def changed(node: ast.AST) -> ast.AST | None:
    """The node with one change; None for nodes that are left alone."""
    new = copy.deepcopy(node)
    if isinstance(new, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(new.op) in SWAPS:
        new.op = SWAPS[type(new.op)]()
    elif isinstance(new, ast.Compare) and len(new.ops) == 1 and type(new.ops[0]) in SWAPS:
        new.ops = [SWAPS[type(new.ops[0])]()]
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.USub | ast.Not):
        return new.operand
    elif isinstance(new, ast.Call) and isinstance(new.func, ast.Name | ast.Attribute):
        key = "id" if isinstance(new.func, ast.Name) else "attr"
        if getattr(new.func, key) not in NAMES:
            return None
        setattr(new.func, key, NAMES[getattr(new.func, key)])
    elif isinstance(new, ast.Constant) and type(new.value) in (int, float) and not 0 < new.value < TOLERANCE:
        new.value = new.value + 1 if isinstance(new.value, int) else 2 * new.value + (not new.value)
    else:
        return None
    return new


def left_alone(tree: ast.Module) -> set[ast.AST]:
    """Nodes without effect on numbers: annotations, messages of errors, text, arguments of warnings."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
            parts = [node]
        elif isinstance(node, ast.FunctionDef):
            arguments = [*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs]
            parts = [node.returns, *(a.annotation for a in arguments), *node.decorator_list]
        elif isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "warn":
            parts = [node]
        skipped.update(inner for part in parts if part is not None for inner in ast.walk(part))
    return skipped


def mutants(module: str) -> Iterator[Mutant]:
    """All mutants of a module, in the order of its nodes."""
    tree = ast.parse((SOURCE / "leastwise" / module).read_text())
    skipped = left_alone(tree)
    for place, node in enumerate(ast.walk(tree)):
        new = changed(node) if node not in skipped else None
        if new is not None:
            yield Mutant(module, place, node.lineno, ast.unparse(node), ast.unparse(new))  # type: ignore[attr-defined]


class Replace(ast.NodeTransformer):
    """Puts the changed node in its place."""

    def __init__(self, target: ast.AST) -> None:
        self.target = target

    def visit(self, node: ast.AST) -> ast.AST:
        """The changed node instead of the target."""
        if node is self.target:
            return ast.copy_location(changed(node), node)  # type: ignore[type-var]
        return super().generic_visit(node)


class Import(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Imports one module from changed code."""

    def __init__(self, mutant: Mutant) -> None:
        self.file = SOURCE / "leastwise" / mutant.module
        self.name = "leastwise." + mutant.module.removesuffix(".py").replace("/", ".")
        tree = ast.parse(self.file.read_text())
        target = list(ast.walk(tree))[mutant.place]
        self.text = ast.unparse(ast.fix_missing_locations(Replace(target).visit(tree))).encode()

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        """Only this module."""
        return importlib.util.spec_from_loader(name, self, origin=str(self.file)) if name == self.name else None

    def get_filename(self, name: str) -> str:
        """The file of the module, for tracebacks."""
        return str(self.file)

    def get_data(self, path: str) -> bytes:
        """The changed code."""
        return self.text


def tested(mutant: Mutant | None, tests: list[str], seconds: float) -> tuple[str, float]:
    """What the tests say of a mutant, in a child process: survived, killed or too slow."""
    began, child = time.monotonic(), os.fork()
    if child == 0:
        devnull = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(devnull, stream)
        if mutant is not None:
            sys.meta_path.insert(0, Import(mutant))
        import pytest

        os._exit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests])))
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        spent = time.monotonic() - began
        if done:
            return ("survived" if status == 0 else "killed"), spent
        if spent > seconds:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "too slow", spent
        time.sleep(0.05)


def argued() -> dict[tuple[str, str, str, str], str]:
    """Reasons for mutants that may survive, by module, line of code, and code before and after."""
    file = Path(__file__).with_name("mutants_argued.toml")
    found = tomllib.loads(file.read_text())["mutant"] if file.is_file() else []
    return {(m["module"], m["line"], m["before"], m["after"]): m["why"] for m in found}


def key(mutant: Mutant) -> tuple[str, str, str, str]:
    """The key of a mutant among the argued ones."""
    line = (SOURCE / "leastwise" / mutant.module).read_text().splitlines()[mutant.line - 1].strip()
    return mutant.module, line, mutant.before, mutant.after


def sample(count: int, seed: int, only: list[str] | None) -> list[Mutant]:
    """As many mutants of each module, at most."""
    chosen = []
    for module in only or TESTS:
        every = list(mutants(module))
        kept = random.Random(f"{seed} {module}").sample(every, min(count, len(every)))
        chosen += sorted(kept, key=lambda m: m.place)
    return chosen


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=5, help="mutants of each module (default 5)")
    p.add_argument("--seed", type=int, default=0, help="of the sample (default 0)")
    p.add_argument("--only", nargs="+", choices=list(TESTS), metavar="MODULE", help="only these modules")
    p.add_argument("--list", action="store_true", help="show the mutants of the sample, and test nothing")
    args = p.parse_args()
    chosen, reasons = sample(args.count, args.seed, args.only), argued()
    if args.list:
        print(*chosen, sep="\n")
        return
    os.chdir(ROOT)
    sys.path[:0] = [str(SOURCE)]
    import sklearn.base
    import sklearn.utils.estimator_checks  # noqa: F401  imported once for all children

    counts = {"killed": 0, "too slow": 0, "survived": 0, "argued": 0}
    for module in dict.fromkeys(m.module for m in chosen):
        tests = [f"tests/{name}" for name in TESTS[module]]
        said, base = tested(None, tests, 600)
        if said != "survived":
            raise SystemExit(f"{module}: its tests fail without any change: {' '.join(tests)}")
        for mutant in (m for m in chosen if m.module == module):
            said, spent = tested(mutant, tests, 5 * base + 30)
            reason = reasons.get(key(mutant))
            said = "argued" if said == "survived" and reason else said
            counts[said] += 1
            print(f"{said:9s} {spent:5.1f} s  {mutant}", flush=True)
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    if counts["survived"]:
        raise SystemExit("Some mutants survive: improve the tests, or add a reason to tools/mutants_argued.toml.")


if __name__ == "__main__":
    main()
