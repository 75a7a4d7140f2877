"""Counts of the tests behind each promise, read from their source, for ``docs/promises.md``."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
#: A promise, and the files with its tests.
PROMISES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "A model file runs no code, and loads only if all fields are valid",
        ("persistence/test_schemas.py", "persistence/test_checks.py"),
    ),
    ("Damaged files are refused", ("persistence/test_files_fuzz.py",)),
    ("A failed or interrupted fit leaves the old model", ("estimators/test_all_or_nothing.py",)),
    ("An interrupted command leaves the old files", ("cli/test_cli_interrupted.py",)),
    ("An output replaces no input; a resumed search equals an unbroken one", ("cli/test_cli_outputs.py",)),
    ("Malformed tables give an error and no traceback", ("cli/test_cli_fuzz.py", "cli/test_cli_messy.py")),
    ("Small files that unpack to large tables are refused", ("tables/test_hostile_files.py",)),
    ("Text of a table is not obeyed by spreadsheets, terminals or pictures", ("tables/test_text_out.py",)),
    ("A report escapes names and loads nothing", ("report/test_report.py",)),
    ("The error of accepted rows stays below max_error", ("estimators/test_abstention.py",)),
    (
        "Sets and intervals have the nominal coverage",
        ("calibration/test_conformal.py", "calibration/test_intervals.py"),
    ),
    ("unfit and forget refuse what cannot be", ("sources/test_streaming_corners.py",)),
    ("A fit that needs too much memory is refused before it starts", ("solvers/test_planning.py",)),
    ("In a limited address space a fit is done, or refused with figures", ("utils/test_address_space.py",)),
    ("One long text does not take its length for every row", ("tables/test_long_text.py",)),
    ("The number of BLAS threads is restored", ("utils/test_threads.py",)),
)
#: What is counted, the file, and the pattern of the number.
SAMPLES: tuple[tuple[str, str, str], ...] = (
    ("model files with one broken field", "persistence/test_schemas.py", r'"LEASTWISE_FUZZ", "(\d+)"'),
    ("model files damaged at random", "persistence/test_files_fuzz.py", r'"LEASTWISE_FUZZ", "(\d+)"'),
    ("tables and options of the command line", "cli/test_cli_fuzz.py", r'"LEASTWISE_FUZZ_CLI", "(\d+)"'),
    (
        "sampled lines of each method at which an exception is raised",
        "estimators/test_all_or_nothing.py",
        r"SAMPLED, LAST = (\d+)",
    ),
    ("signals sent to each of five fits", "estimators/test_all_or_nothing.py", r"names=names, repeats=(\d+)"),
    ("fits with two jobs that are interrupted", "utils/test_threads.py", r"for k in range\((\d+)\):\n    make"),
    (
        "draws of 40 rows for `max_error`",
        "estimators/test_abstention.py",
        r"for seed in range\((\d+)\):\n +X, y = over",
    ),
)


def test_functions(file: str) -> int:
    """Number of test functions of a file; one with parameters counts once."""
    tree = ast.parse((TESTS / file).read_text())
    return sum(isinstance(node, ast.FunctionDef) and node.name.startswith("test_") for node in ast.walk(tree))


def promises() -> list[Sequence[str]]:
    """Promise, files, number of test functions."""
    return [
        [words, ", ".join(f"`tests/{file}`" for file in files), str(sum(map(test_functions, files)))]
        for words, files in PROMISES
    ]


def samples() -> list[Sequence[str]]:
    """What is sampled, file, number in a run of the tests."""
    rows = []
    for words, file, pattern in SAMPLES:
        found = re.search(pattern, (TESTS / file).read_text())
        if found is None:
            raise ValueError(f"tests/{file} has no number of {words}")
        rows.append([words, f"`tests/{file}`", f"{int(found[1]):,}"])
    return rows
