"""Imports point one way, and the core needs nothing but its core dependencies."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import leastwise

ROOT = Path(leastwise.__file__).parent

#: A package may import from packages in rows above its own, and from itself. No row imports from a row below.
LAYERS = [
    ["utils"],  # arrays of other libraries, hashing, memory, files, text
    ["linalg"],  # arrays in, arrays out
    ["problem"],  # kernels, centres, coupling, tasks, labels, weights
    ["metrics"],
    ["calibration"],  # from scores to probabilities, sets, intervals, thresholds
    ["solvers"],  # factor, held-out scores, solve; costs and the choice of a solver
    ["model_selection"],  # grids, search, objective, folds, checkpoints
    ["sources"],  # rows from memory, files, iterators, Dask
    ["fitting"],  # the path of fit: parameters, data, search, solution, storage
    ["estimators"],  # the public classes
    ["inspection", "datasets"],
    ["tables", "baselines"],
    ["onnx", "persistence", "displays"],
    ["report"],
    ["__init__"],
    ["cli"],
    ["__main__"],
]
RANK = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}
CORE = {"numpy", "scipy", "sklearn", "joblib", "threadpoolctl", "leastwise"} | set(sys.stdlib_module_names)


def imported(path):
    """Modules imported anywhere in a file, with whether it is at the top level."""
    tree = ast.parse(path.read_text())
    top = set(tree.body)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node in top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node in top


def part_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_imports_point_one_way():
    wrong = []
    for path in ROOT.rglob("*.py"):
        part = part_of(path)
        for module, _ in imported(path):
            if module.startswith("leastwise."):
                other = module.split(".")[1]
                if other != part and RANK[other] >= RANK[part]:
                    wrong.append(f"{path.relative_to(ROOT)} imports {module}")
    assert not wrong


def test_optional_dependencies_are_imported_where_used():
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in ROOT.rglob("*.py")
        for module, top in imported(path)
        if top and module.split(".")[0] not in CORE and part_of(path) != "cli"  # which is its own extra
    ]
    assert not wrong


def test_import_pulls_in_no_extra():
    """Nothing beyond what scikit-learn itself brings in."""
    parts = "sklearn.cluster, sklearn.isotonic, sklearn.metrics, sklearn.model_selection"
    code = f"import sys, {parts}; old = set(sys.modules); from leastwise import *; print(*(set(sys.modules) - old))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.split(".")[0] for name in out.stdout.split()} <= CORE


def test_the_package_starts_at_once():
    """Names are looked up when used: the command line shows its help without loading scikit-learn."""
    code = "import sys, leastwise; print('sklearn' in sys.modules or 'numpy' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"


def test_every_name_is_where_it_is_said_to_be():
    code = "import leastwise; [getattr(leastwise, name) for name in dir(leastwise)]; print(len(leastwise.__all__))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(out.stdout) == len(leastwise.__all__) == len(leastwise._HOMES) + 1
    assert set(leastwise.__all__) == {*leastwise._HOMES, "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = leastwise.nonsense
